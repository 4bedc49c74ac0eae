#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python process of the sample editor: preview.py ROLE SOCKET JOURNAL

Has a preview for each source file, a child of the file's document, which a Swift process has. Needs nothing but the
standard library. What it reads and says is described in stage.py.
"""

import json
import os
import random
import socket
import sys

APPLICATION = "org.restorationd.Try"


AT_A_TIME = 64


class Broker:
    """A connection to it."""

    def __init__(self, path):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        self.lines = connection.makefile("rw", encoding="utf-8", newline="\n")
        connection.close()  # `lines` keeps it open
        self.last_id = 0
        self.notifications = []

    def call(self, method, **params):
        return self.call_all(method, [params])[0]

    def call_all(self, method, all_params):
        """Makes several calls at once. They share the wait for the disk; answers may come in any order."""
        ids = []
        for params in all_params:
            self.last_id += 1
            ids.append(self.last_id)
            message = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
            print(json.dumps(message, ensure_ascii=False), file=self.lines)
        self.lines.flush()
        results = {}
        while len(results) < len(ids):
            answer = self.receive()
            if "id" not in answer:
                self.notifications.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                results[answer["id"]] = answer["result"]
        return [results[id] for id in ids]

    def notification(self):
        return self.notifications.pop(0) if self.notifications else self.receive()

    def receive(self):
        if line := self.lines.readline():
            return json.loads(line)
        raise ConnectionError("the broker closed the connection")


class Preview:
    def __init__(self, line):
        self.key, window, document = line.split("\t")
        self.parent = [window, document]
        with open(self.key, encoding="utf-8", errors="replace") as file:
            self.lines = file.read().split("\n")

    def next_state(self):
        first = random.randrange(len(self.lines))
        return {"zoom": random.choice((0.5, 1.0, 1.1, 2.0)), "shows": self.lines[first : first + 8]}


class Editor:
    """This process's objects, and what it is told to do with them."""

    def __init__(self, role, path, journal, previews):
        self.broker = Broker(path)
        self.journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.previews = previews
        session = self.broker.call("initialize", application=APPLICATION, process=role, serves=["pathChanged"])
        for some in self.portions():
            registered = self.broker.call_all("registerObjectForStateRestoration", [
                {"restorationIdentifier": "Preview", "restorationParent": preview.parent, "objectClass": "Preview",
                 "awaitParentMilliseconds": 30000}
                for preview in some])
            for preview, result in zip(some, registered):
                preview.object = result["object"]
        self.report("registered", objects=len(previews), reason=session["restoration"]["reason"])

    def portions(self):
        return (self.previews[i : i + AT_A_TIME] for i in range(0, len(self.previews), AT_A_TIME))

    def save(self):
        for some in self.portions():
            self.encode(some)
        self.report("saved", objects=len(self.previews))

    def type(self, count):
        for number in range(1, int(count) + 1):
            self.encode([random.choice(self.previews)])
            if number % 50 == 0:
                self.report("typing", states=number)
        self.report("typed", states=int(count))

    def encode(self, previews):
        states = [preview.next_state() for preview in previews]
        for preview, state in zip(previews, states):
            self.note("sent", preview.key, json.dumps(state))
        self.broker.call_all("encodeRestorableState", [
            {"object": preview.object, "state": state} for preview, state in zip(previews, states)])
        for preview in previews:
            self.note("done", preview.key)

    def decode(self):
        for some in self.portions():
            decoded = self.broker.call_all("decodeRestorableState", [{"object": preview.object} for preview in some])
            for preview, result in zip(some, decoded):
                self.note("back", preview.key, json.dumps(result["state"]))
        self.broker.call("completeStateRestoration")
        self.report("decoded", objects=len(self.previews))

    def told(self, count):
        """Waits for this many notifications of new paths."""
        self.report("told", paths=[self.broker.notification()["params"]["path"] for _ in range(int(count))])

    def goodbye(self):
        self.broker.call("goodbye", reason="logout")
        self.report("left", objects=len(self.previews))

    def note(self, *fields):
        os.write(self.journal, ("\t".join(fields) + "\n").encode())

    @staticmethod
    def report(event, **members):
        print(json.dumps({"event": event, **members}), flush=True)


def main():
    role, path, journal = sys.argv[1:]
    files = iter(lambda: sys.stdin.readline().rstrip("\n"), "")
    editor = Editor(role, path, journal, [Preview(line) for line in files])
    for line in sys.stdin:
        command, *arguments = line.split()
        {"save": editor.save, "type": editor.type, "decode": editor.decode, "told": editor.told,
         "goodbye": editor.goodbye}[command](*arguments)


if __name__ == "__main__":
    main()
