#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the broker's part of transcripts against a client: talk.py COMMAND [FILES…]

COMMAND starts the client's program; {} in it is replaced by the path of a socket. Without FILES it plays every
transcript beside this script. The exit code is 0 when all pass, 1 when one fails, 2 for a usage error. Transcripts, and
what the program has to understand, are described in README.md beside this script. Needs nothing but Python 3.8.
"""

import argparse
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time

from run import Failure, Number, directive, fill, find, match, parse, play_all, shown, write


class Lines:
    """Lines from a descriptor, each waited for up to a deadline."""

    def __init__(self, read, timeout, who):
        self.read = read
        self.timeout = timeout
        self.who = who
        self.buffer = b""

    def next(self):
        deadline = time.monotonic() + self.timeout
        while b"\n" not in self.buffer:
            data = self.read(max(0.001, deadline - time.monotonic()))
            if data is None:
                raise Failure(f"{self.who} said nothing for {self.timeout} s")
            if not data:
                raise Failure(f"{self.who} has ended")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        try:
            return parse(line.decode("utf-8"))
        except ValueError as error:
            raise Failure(f"{self.who} said what is not JSON ({error}): {line[:200]!r}")


def reader(channel):
    """Reads what has come through a socket; None when nothing has."""

    def read(seconds):
        channel.settimeout(seconds)
        try:
            return channel.recv(65536)
        except socket.timeout:
            return None
        except ConnectionResetError:
            return b""

    return read


class Program:
    """A client's program, and its connection as the broker sees it."""

    def __init__(self, command, name, folder, timeout):
        self.name, self.timeout = name, timeout
        path = os.path.join(folder, name + ".sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(1)
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen([word.replace("{}", path) for word in command], stdin=theirs, stdout=theirs)
        theirs.close()
        self.control = ours
        self.answers = Lines(reader(ours), timeout, f"the program {name}")
        self.connection = None
        self.inbox = []
        self.ids = {}
        self.tells = 0
        self.answered = []
        self.last_id = 0

    def tell(self, command):
        self.tells += 1
        self.control.sendall(write(command).encode("utf-8") + b"\n")

    def told(self):
        """What it said to the last thing it was told."""
        while len(self.answered) < self.tells:
            self.answered.append(self.answers.next())
        return self.answered[-1] if self.answered else None

    def accept(self):
        if not self.connection:
            self.listener.settimeout(self.timeout)
            try:
                self.connection, _ = self.listener.accept()
            except socket.timeout:
                raise Failure(f"the program {self.name} does not connect")
            self.messages = Lines(reader(self.connection), self.timeout, f"the connection of {self.name}")
        return self.connection

    def take(self, expected):
        """The first message of its that `expected` can be about: a call of its own by method, an answer by id."""
        self.accept()
        seen = 0
        while True:
            while seen < len(self.inbox):
                message = self.inbox[seen]
                if isinstance(message, dict) and (
                    message.get("method") == expected["method"]
                    if "method" in expected
                    else "method" not in message and message.get("id") == expected["id"]
                ):
                    return self.inbox.pop(seen)
                seen += 1
            self.inbox.append(self.messages.next())

    def send(self, message):
        self.accept().sendall(write(message).encode("utf-8") + b"\n")

    def end(self):
        self.control.close()
        if self.connection:
            self.connection.close()
        self.listener.close()
        try:
            self.process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def say(expected, values, bound):
    """What a broker sends where clients expect this."""
    name, argument = directive(expected)
    if name == "$bind":
        if argument not in values:
            raise Failure(f"the transcript has no value for {argument!r}")
        bound[argument] = values[argument]
        return bound[argument]
    if name == "$exact":
        return say(argument, values, bound)
    if name == "$use":
        return fill(expected, bound)
    if name is not None:
        raise Failure(f"{name} does not say what a broker sends")
    if isinstance(expected, dict):
        return {key: say(member, values, bound) for key, member in expected.items()}
    if isinstance(expected, list):
        return [say(element, values, bound) for element in expected]
    return expected


def any_error(value):
    """The value, with errors of which it does not matter what they say."""
    if isinstance(value, dict):
        return {key: {"$any": True} if key == "error" else any_error(member) for key, member in value.items()}
    return [any_error(element) for element in value] if isinstance(value, list) else value


def receive(program, expected, bound):
    """The program sends what it has to; it may say more, and choose its own ids."""
    expected = fill(expected, bound)
    message = program.take(expected)
    wanted = dict(expected)
    if "method" in wanted:
        if ("id" in wanted) != ("id" in message):
            raise Failure(f"{wanted['method']} is a request or a notification, not the other: {shown(message)}")
        if "id" in wanted:
            program.ids[write(wanted.pop("id"))] = message["id"]
        served = (wanted.get("params") or {}).get("serves")
        if served is not None:
            missing = set(served) - set(message["params"].get("serves") or [])
            if missing:
                raise Failure(f"serves has not {', '.join(sorted(missing))}")
            wanted["params"] = {key: value for key, value in wanted["params"].items() if key != "serves"}
    try:
        match(any_error(wanted), message, dict(bound))
    except Failure as failure:
        raise Failure(f"{failure}\n    received: {shown(message)}")


def answer(program, expected, values, bound):
    """The broker's answer, notification or call."""
    if "method" in expected and "id" in expected:
        program.last_id += 1
        values = {**values, expected["id"]["$bind"]: Number(str(program.last_id))}
    message = say(expected, values, bound)
    if "method" not in expected:
        message["id"] = program.ids[write(expected["id"])]
    program.send(message)


def play(path, command, timeout):
    with open(path, encoding="utf-8") as file:
        transcript = parse(file.read().replace("$APPLICATION", "org.example.Transcript"))
    steps, values, bound = transcript["steps"], transcript["values"], {}
    # A client that is told nothing is no program: it only makes what a real broker then has.
    played = {step["client"] for step in steps if "tell" in step}
    programs = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number, step in enumerate(steps, 1):
                name = step["client"]
                if name not in played:
                    continue
                try:
                    if name not in programs:
                        programs[name] = Program(command, name, folder, timeout)
                    program = programs[name]
                    if "tell" in step:
                        program.tell(fill(step["tell"], bound))
                    if "send" in step:
                        receive(program, step["send"], bound)
                    if "expect" in step:
                        answer(program, step["expect"], values, bound)
                    if "told" in step:
                        match(step["told"], program.told(), bound)
                    if step.get("close"):
                        program.told()
                        programs.pop(name).end()
                except Failure as failure:
                    note = f" ({step['note']})" if "note" in step else ""
                    raise Failure(f"step {number}, client {name}{note}: {failure}\n    step: {write(step)[:1000]}")
            for program in programs.values():
                program.told()
                faults = [said for said in program.answered if set(said) & {"error", "lost", "fault"}]
                if faults:
                    raise Failure(f"the program {program.name} said {shown(faults)}")
        finally:
            for program in programs.values():
                program.end()


def main():
    parser = argparse.ArgumentParser(description="Plays the broker's part of transcripts against a client.")
    parser.add_argument("command", help="the client's program with its arguments, in one word, {} for the socket")
    parser.add_argument("files", nargs="*", help="transcripts; all beside this script where none is given")
    parser.add_argument("--timeout", type=float, default=10, help="seconds to wait for the program (default 10)")
    parser.add_argument("--quiet", action="store_true", help="show failures and the sum only")
    options = parser.parse_intermixed_args()
    files = options.files or find("talk-*.json")
    command = shlex.split(options.command)
    return play_all(files, "transcripts", options.quiet, lambda path: play(path, command, options.timeout))


if __name__ == "__main__":
    sys.exit(main())
