#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of the broker that executes commands from standard input: client.py SOCKET

One command a line, a JSON object with a member `do`; each is answered with one line. Needs only the standard library.
"""

import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys


class Client:
    def __init__(self, path):
        self.path = path
        self.last_id = 0
        self.notifications = []
        self.answers = {}
        self.connect()

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(self.path)
        self.lines = self.socket.makefile("rb")

    def disconnect(self):
        self.lines.close()
        self.socket.close()
        self.answers.clear()

    def message(self, method, params, with_id=True):
        message = {"jsonrpc": "2.0", "method": method}
        if with_id:
            self.last_id += 1
            message["id"] = self.last_id
        if params is not None:
            message["params"] = params
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def request(self, method, params=None):
        self.socket.sendall(self.message(method, params))
        return self.last_id

    def receive(self):
        line = self.lines.readline()
        if not line.endswith(b"\n"):
            raise EOFError("the broker closed the connection")
        return json.loads(line)

    def answer(self, number):
        while number not in self.answers:
            message = self.receive()
            if "method" in message:
                self.notifications.append(message)
            else:
                self.answers[message["id"]] = message
        return self.answers.pop(number)

    def call(self, method, params=None):
        return self.answer(self.request(method, params))

    def result(self, method, params=None):
        answer = self.call(method, params)
        if "error" in answer:
            raise ValueError(f"{method}: {answer['error']}")
        return answer["result"]


def pad(size):
    return "x" * size


def state(number, size):
    """A state that shows whether a part of it is missing or belongs to another one."""
    return {"n": number, "pad": pad(size), "sum": number * 31 + size}


def is_whole(value):
    return set(value) == {"n", "pad", "sum"} and value["sum"] == value["n"] * 31 + len(value["pad"])


class Commands:
    """The commands; each method answers one."""

    def __init__(self, client):
        self.client = client
        self.children = []

    def call(self, command):
        answer = self.client.call(command["method"], command.get("params"))
        return {name: answer[name] for name in ("result", "error") if name in answer}

    def notify(self, command):
        self.client.socket.sendall(self.client.message(command["method"], command.get("params"), with_id=False))
        return {}

    def request(self, command):
        return {"id": self.client.request(command["method"], command.get("params"))}

    def answer(self, command):
        answer = self.client.answer(command["id"])
        return {name: answer[name] for name in ("result", "error") if name in answer}

    def notification(self, command):
        while not self.client.notifications:
            message = self.client.receive()
            if "method" in message:
                self.client.notifications.append(message)
            else:
                self.client.answers[message["id"]] = message
        return self.client.notifications.pop(0)

    def disconnect(self, command):
        self.client.disconnect()
        return {}

    def connect(self, command):
        self.client.connect()
        return {}

    def inherit(self, command):
        """Leaves the connection's descriptor to a child that survives when this process is killed."""
        number = self.client.socket.fileno()
        child = subprocess.Popen(["cat"], pass_fds=[number], stdout=subprocess.DEVNULL)
        self.children.append(child)
        return {"pid": child.pid}

    def fill(self, command):
        """Registers `count` objects below `parent` and encodes a state of about `bytes` for each."""
        count, size, parent = command["count"], command["bytes"], command["parent"]
        self.client.result("registerObjectForStateRestoration", {"restorationIdentifier": parent})
        window = 64
        for first in range(0, count, window):
            names = [f"o{number}" for number in range(first, min(count, first + window))]
            ids = [
                self.client.request(
                    "registerObjectForStateRestoration",
                    {"restorationIdentifier": name, "restorationParent": [parent]},
                )
                for name in names
            ]
            ids += [
                self.client.request(
                    "encodeRestorableState",
                    {"object": [parent, name], "state": {"name": name, "pad": pad(size)}},
                )
                for name in names
            ]
            for number in ids:
                answer = self.client.answer(number)
                if "result" not in answer:
                    return answer
        return {"count": count}

    def restore(self, command):
        """Decodes objects, one after the other or all at once, and crashes if a state has a member `poison`."""
        paths = command["objects"]
        pipelined = command.get("pipelined", False)
        ids = [self.client.request("decodeRestorableState", {"object": path}) for path in paths] if pipelined else []
        statuses = {}
        for index, path in enumerate(paths):
            number = ids[index] if pipelined else self.client.request("decodeRestorableState", {"object": path})
            result = self.client.answer(number)["result"]
            if "poison" in (result["state"] or {}):
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                os.kill(os.getpid(), signal.SIGSEGV)
            statuses.setdefault(result["status"], []).append(path)
        return statuses

    def encode(self, command):
        """Encodes `count` states of one object, one after the other; how many were acknowledged."""
        done = 0
        for number in range(1, command["count"] + 1):
            answer = self.client.call(
                "encodeRestorableState",
                {"object": command["object"], "state": state(number, command.get("bytes", 100))},
            )
            if "result" not in answer:
                return answer
            done += 1
        return {"count": done}

    def load(self, command):
        """Random load on objects of its own until the broker is gone. Answers twice: when it runs, and at the end.

        The last answer has for each object the last acknowledged state, and the last that was sent.
        """
        chance = random.Random(command["seed"])
        parent, objects = command["parent"], command["objects"]
        acknowledged = {str(key): value for key, value in command.get("acknowledged", {}).items()}
        sent = {str(key): value for key, value in command.get("sent", {}).items()}
        registered = set()
        total = 0
        try:
            self.client.result("registerObjectForStateRestoration", {"restorationIdentifier": parent})
            print(json.dumps({"running": True}), flush=True)
            while True:
                batch, frames = [], []
                for _ in range(chance.choice((1, 1, 4, 16, 32))):
                    name = f"o{chance.randrange(objects)}"
                    if name not in registered:
                        registered.add(name)
                        params = {"restorationIdentifier": name, "restorationParent": [parent]}
                        frames.append(self.client.message("registerObjectForStateRestoration", params))
                        batch.append((self.client.last_id, name, 0))
                        # What is written before the owner has looked would be dropped when it looks (R19).
                        frames.append(self.client.message("decodeRestorableState", {"object": [parent, name]}))
                        batch.append((self.client.last_id, None, 0))
                    number = sent.get(name, 0) + 1
                    sent[name] = number
                    params = {"object": [parent, name], "state": state(number, chance.choice((1, 30, 1000, 9000)))}
                    frames.append(self.client.message("encodeRestorableState", params))
                    batch.append((self.client.last_id, name, number))
                if chance.random() < 0.2:
                    params = {"object": [parent, f"o{chance.randrange(objects)}"]}
                    frames.append(self.client.message("decodeRestorableState", params))
                    batch.append((self.client.last_id, None, 0))
                self.client.socket.sendall(b"".join(frames))
                for identifier, name, number in batch:
                    answer = self.client.answer(identifier)
                    if name is None:
                        value = answer.get("result", {}).get("state")
                        if value is not None and not is_whole(value):
                            return {"failure": f"half a state while running: {value}"}
                    elif "result" not in answer:
                        return {"failure": f"{name}: {answer}"}
                    elif number:
                        acknowledged[name] = max(number, acknowledged.get(name, 0))
                        total += 1
        except (EOFError, OSError):
            return {"acknowledged": acknowledged, "sent": sent, "total": total}

    def check(self, command):
        """Decodes the objects that `load` reported: no acknowledged state may be lost, and none incomplete."""
        parent, acknowledged, sent = command["parent"], command["acknowledged"], command["sent"]
        faults = []
        checked = 0
        for name, last in sent.items():
            least = acknowledged.get(name, 0)
            answer = self.client.call("decodeRestorableState", {"object": [parent, name]})
            value = answer.get("result", {}).get("state")
            checked += 1
            if value is None:
                if least:
                    faults.append(f"{parent}/{name}: {least} was acknowledged and nothing is there: {answer}")
            elif not is_whole(value):
                faults.append(f"{parent}/{name}: half a state: {value['n']}")
            elif not least <= value["n"] <= last:
                faults.append(f"{parent}/{name}: {value['n']} came back, {least} was acknowledged, {last} was sent")
        return {"checked": checked, "faults": faults}


def main():
    client = Client(sys.argv[1])
    commands = Commands(client)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(commands, command["do"])(command)
        except (EOFError, OSError) as error:
            answer = {"lost": str(error) or type(error).__name__}
        print(json.dumps(answer, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(1)
