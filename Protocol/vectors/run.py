#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays test vectors against a broker: run.py SOCKET [FILES…]

Without FILES it plays every vector beside this script. The exit code is 0 when all pass, 1 when one fails, 2 for a
usage error. Vectors are described in README.md beside this script. Needs nothing but Python 3.8.
"""

import argparse
import difflib
import glob
import json
import os
import re
import secrets
import socket
import sys
import time

DIRECTIVES = {"$any", "$bind", "$use", "$exact", "$absent", "$match", "$unordered", "$not", "$repeat"}
ACTIONS = {"send", "raw", "hex", "endInput", "close", "expect", "contains", "expectNothing", "expectClose"}


class Number:
    """A number by its text: 1, 1.0 and 1e0 are three."""

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return isinstance(other, Number) and self.text == other.text

    def __hash__(self):
        return hash(self.text)


class Failure(Exception):
    """What went wrong, in lines for people."""


class Skipped(Exception):
    """The vector is about the bytes of another framing."""


def parse(text):
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=refuse)


def refuse(word):
    raise ValueError(f"{word} is not JSON")


def write(value):
    """Compact JSON text."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{write(name)}:{write(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(write(element) for element in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def pretty(value, indent=""):
    """JSON text for a comparison line by line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        members = (f"{inner}{write(name)}: {pretty(member, inner)}" for name, member in sorted(value.items()))
        return "{\n" + ",\n".join(members) + "\n" + indent + "}"
    if isinstance(value, list) and any(isinstance(element, (dict, list)) for element in value):
        return "[\n" + ",\n".join(inner + pretty(element, inner) for element in value) + "\n" + indent + "]"
    return write(value)


def directive(value):
    """Name and argument of an object that is a directive, else (None, None)."""
    if isinstance(value, dict) and len(value) == 1:
        name = next(iter(value))
        if name in DIRECTIVES:
            return name, value[name]
    return None, None


def fill(value, bound):
    """What is to be sent: bound values and repetitions in place."""
    name, argument = directive(value)
    if name == "$use":
        if argument not in bound:
            raise Failure(f"nothing is bound to {argument!r}")
        return bound[argument]
    if name == "$repeat":
        return argument[0] * int(argument[1].text)
    if isinstance(value, dict):
        return {key: fill(member, bound) for key, member in value.items()}
    if isinstance(value, list):
        return [fill(element, bound) for element in value]
    return value


def match(expected, actual, bound, exact=False, place="$"):
    """Compares; binds what is to be bound. Raises Failure with the place of the first difference."""
    name, argument = directive(expected)
    if name == "$any":
        return
    if name == "$bind":
        bound[argument] = actual
        return
    if name == "$exact":
        return match(argument, actual, bound, True, place)
    if name == "$not":
        try:
            match(argument, actual, dict(bound), exact, place)
        except Failure:
            return
        raise Failure(f"{place}: is {shown(actual)}, which it must not be")
    if name == "$match":
        if not isinstance(actual, str) or not re.fullmatch(argument, actual):
            raise Failure(f"{place}: {shown(actual)} does not match {argument}")
        return
    if name == "$unordered":
        return match_unordered(argument, actual, bound, exact, place)
    if name in ("$use", "$repeat"):
        expected = fill(expected, bound)
    if isinstance(expected, dict):
        return match_object(expected, actual, bound, exact, place)
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(expected) != len(actual):
            raise Failure(f"{place}: {shown(actual)} is not an array of {len(expected)}")
        for index, (want, have) in enumerate(zip(expected, actual)):
            match(want, have, bound, exact, f"{place}[{index}]")
        return
    if type(expected) is not type(actual) or expected != actual:
        raise Failure(f"{place}: is {shown(actual)}, expected {shown(expected)}")


def match_object(expected, actual, bound, exact, place):
    if not isinstance(actual, dict):
        raise Failure(f"{place}: {shown(actual)} is not an object")
    for key, want in expected.items():
        if directive(want)[0] == "$absent":
            if key in actual:
                raise Failure(f"{place}.{key}: is {shown(actual[key])}, expected no such member")
        elif key not in actual:
            raise Failure(f"{place}.{key}: is missing in {shown(actual)}")
        else:
            match(want, actual[key], bound, exact, f"{place}.{key}")
    surplus = [key for key in actual if key not in expected] if exact else []
    if surplus:
        raise Failure(f"{place}: has more members than expected: {', '.join(surplus)}")


def match_unordered(expected, actual, bound, exact, place):
    if not isinstance(actual, list) or len(expected) != len(actual):
        raise Failure(f"{place}: {shown(actual)} is not an array of {len(expected)}")
    left = list(actual)
    for want in expected:
        for index, have in enumerate(left):
            trial = dict(bound)
            try:
                match(want, have, trial, exact, place)
            except Failure:
                continue
            bound.update(trial)
            del left[index]
            break
        else:
            raise Failure(f"{place}: no element is {shown(want)}")


def shown(value):
    text = write(value)
    return text if len(text) <= 200 else text[:200] + "…"


class Client:
    """One connection, and what it has received and nobody has asked for yet."""

    def __init__(self, path, timeout, framing):
        self.timeout = timeout
        self.framing = framing
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.buffer = b""
        self.inbox = []

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Failure(f"cannot send: {error}")

    def send_message(self, text):
        data = text.encode("utf-8")
        if self.framing == "content-length":
            self.send(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        else:
            self.send(data + b"\n")

    def cut(self):
        """Takes the next whole message from the buffer; None where there is none."""
        if self.framing == "content-length":
            head, end, rest = self.buffer.partition(b"\r\n\r\n")
            if not end:
                return None
            length = re.fullmatch(rb"Content-Length: (\d+)", head)
            if not length:
                raise Failure(f"not exactly one Content-Length: {head[:200]!r}")
            if len(rest) < int(length[1]):
                return None
            message, self.buffer = rest[: int(length[1])], rest[int(length[1]) :]
            return message
        if b"\n" not in self.buffer:
            return None
        message, self.buffer = self.buffer.split(b"\n", 1)
        return message

    def receive(self, deadline):
        """Takes one message into the inbox; False at the end of input."""
        while (message := self.cut()) is None:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self.socket.recv(65536)
            except socket.timeout:
                raise Failure(f"nothing came within {self.timeout} s" + self.unread())
            except ConnectionResetError:
                data = b""
            if not data:
                if self.buffer:
                    raise Failure(f"the last message is not whole: {self.buffer[:200]!r}")
                return False
            self.buffer += data
        try:
            text = message.decode("utf-8")
            self.inbox.append((parse(text), text))
        except ValueError as error:
            raise Failure(f"a message is not JSON ({error}): {message[:200]!r}")
        return True

    def take(self, expected):
        """The first message that `expected` can be about: by method, by id, or the first array."""
        deadline = time.monotonic() + self.timeout
        seen = 0
        while True:
            while seen < len(self.inbox):
                if concerns(self.inbox[seen][0], expected):
                    return self.inbox.pop(seen)
                seen += 1
            if not self.receive(deadline):
                raise Failure("the connection was closed" + self.unread())

    def expect_nothing(self):
        fence = "fence-" + secrets.token_hex(4)
        self.send_message(json.dumps({"jsonrpc": "2.0", "id": fence, "method": "ping"}))
        self.take({"id": fence})
        if self.inbox:
            raise Failure("expected nothing" + self.unread())

    def expect_close(self):
        deadline = time.monotonic() + self.timeout
        while self.receive(deadline):
            pass
        if self.inbox:
            raise Failure("expected nothing but the end" + self.unread())

    def unread(self):
        return "".join(f"\n    unread: {text[:400]}" for _, text in self.inbox)


def concerns(message, expected):
    if isinstance(expected, list) or directive(expected)[0] == "$unordered":
        return isinstance(message, list)
    if not isinstance(message, dict):
        return False
    if "method" in expected:
        return message.get("method") == expected["method"]
    return "id" in expected and "id" in message and "method" not in message and message["id"] == expected["id"]


def step(client, step, bound):
    """Does one step; returns nothing, raises Failure."""
    if "send" in step:
        client.send_message(write(fill(step["send"], bound)))
    if "raw" in step:
        client.send(step["raw"].encode("utf-8"))
    if "hex" in step:
        client.send(bytes.fromhex(step["hex"]))
    if step.get("endInput"):
        client.socket.shutdown(socket.SHUT_WR)
    if "expect" in step:
        message, text = client.take(step["expect"])
        try:
            match(step["expect"], message, bound)
        except Failure as failure:
            raise Failure(f"{failure}\n{difference(step['expect'], message, bound)}")
        for part in step.get("contains", []):
            if part not in text:
                raise Failure(f"the text of the answer does not contain {part}\n    it is: {text[:2000]}")
    if step.get("expectNothing"):
        client.expect_nothing()
    if step.get("expectClose"):
        client.expect_close()


def difference(expected, actual, bound):
    """Both sides line by line, without what may differ."""
    wanted, received = align(expected, actual, bound)
    lines = difflib.unified_diff(
        pretty(wanted).split("\n"), pretty(received).split("\n"), "expected", "received", lineterm="", n=2
    )
    return "\n".join("    " + line[:400] for line in lines)


def align(expected, actual, bound):
    """Expected and actual value, with what matches made equal and surplus members left out."""
    try:
        match(expected, actual, dict(bound))
        return actual, actual
    except Failure:
        pass
    name, argument = directive(expected)
    if name == "$exact":
        return argument, actual
    if name == "$use":
        return bound.get(argument), actual
    if isinstance(expected, dict) and name is None and isinstance(actual, dict):
        wanted, received = {}, {}
        for key, want in expected.items():
            if key in actual:
                wanted[key], received[key] = align(want, actual[key], bound)
            elif directive(want)[0] != "$absent":
                wanted[key] = want
        return wanted, received
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = [align(want, have, bound) for want, have in zip(expected, actual)]
        return [want for want, _ in pairs], [have for _, have in pairs]
    return expected, actual


def play(path, address, timeout, framing="stream"):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    name = os.path.splitext(os.path.basename(path))[0]
    application = f"vector.{name}.{secrets.token_hex(4)}"
    vector = parse(text.replace("$APPLICATION", application))
    if framing != "stream" and any("raw" in step or "hex" in step for step in vector["steps"]):
        raise Skipped
    bound, clients = {}, {}
    for number, current in enumerate(vector["steps"], 1):
        unknown = set(current) - ACTIONS - {"client", "note", "tell", "told"}
        if unknown:
            raise Failure(f"step {number}: unknown member {', '.join(sorted(unknown))}")
        key = current["client"]
        try:
            if key not in clients:
                clients[key] = Client(address, timeout, framing)
            step(clients[key], current, bound)
            if current.get("close"):
                clients.pop(key).socket.close()
        except Failure as failure:
            note = f" ({current['note']})" if "note" in current else ""
            raise Failure(f"step {number}, client {key}{note}: {failure}\n    step: {write(current)[:1000]}")
    for client in clients.values():
        client.socket.close()


def find(pattern):
    """Vectors beside this script."""
    beside = os.path.dirname(os.path.abspath(__file__))
    return sorted(path for path in glob.glob(os.path.join(beside, pattern)) if not path.endswith("schema.json"))


def play_all(files, what, quiet, play_one):
    """Plays each file, says how it went, and returns the exit status."""
    failed = skipped = 0
    for path in files:
        name = os.path.splitext(os.path.basename(path))[0]
        try:
            play_one(path)
        except Skipped:
            skipped += 1
            if not quiet:
                print(f"skip {name}")
        except (Failure, OSError, ValueError, KeyError) as failure:
            failed += 1
            print(f"FAIL {name}\n  {failure if isinstance(failure, Failure) else repr(failure)}")
        else:
            if not quiet:
                print(f"pass {name}")
    note = f", {skipped} skipped" if skipped else ""
    print(f"{len(files) - failed - skipped} of {len(files)} {what} passed{note}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description="Plays test vectors against a broker.")
    parser.add_argument("socket", help="the broker's socket")
    parser.add_argument("files", nargs="*", help="vectors; all beside this script where none is given")
    parser.add_argument("--timeout", type=float, default=5, help="seconds to wait for a message (default 5)")
    parser.add_argument(
        "--framing", choices=["stream", "content-length"], default="stream", help="how messages are told apart"
    )
    parser.add_argument("--quiet", action="store_true", help="show failures and the sum only")
    options = parser.parse_intermixed_args()
    files = options.files or find("*.json")

    def play_one(path):
        play(path, options.socket, options.timeout, options.framing)

    return play_all(files, "vectors", options.quiet, play_one)


if __name__ == "__main__":
    sys.exit(main())
