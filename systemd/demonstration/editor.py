#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Python process of the sample editor: editor.py ROLE SOCKET JOURNAL

The role `previews` has a preview for each source file, a child of the file's document, which another process has. Where
restoration-sample is not built, the processes that it would be are this program, too: `windows` has a window for each
folder, the others a document for each file. Needs nothing but the standard library. What it reads and says is described
in stage.py.
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


class Text:
    """A source file, and what an object that shows it has in common with others."""

    def __init__(self, line):
        self.key, self.window, self.document = line.split("\t")
        with open(self.key, encoding="utf-8", errors="replace") as file:
            self.lines = file.read().split("\n")


class Window(Text):
    """Shows the first file of a folder in front, which is an object of another process."""

    def __init__(self, line):
        super().__init__(line)
        self.identifier, self.parent, self.key = self.window, None, self.window

    def next_state(self):
        return {"frame": [random.randrange(2000) for _ in range(4)], "zoomed": random.random() < 0.5,
                "front": {"$restorable": [self.window, self.document]}}


class Document(Text):
    def __init__(self, line):
        super().__init__(line)
        self.identifier, self.parent = self.document, [self.window]

    def next_state(self):
        line = random.randrange(len(self.lines))
        column = random.randint(0, len(self.lines[line]))
        return {"cursor": {"line": line + 1, "column": column + 1}, "selection": self.lines[line][:column],
                "scroll": line / len(self.lines), "lines": len(self.lines)}


class Preview(Text):
    identifier = "Preview"

    def __init__(self, line):
        super().__init__(line)
        self.parent = [self.window, self.document]

    def next_state(self):
        first = random.randrange(len(self.lines))
        return {"zoom": random.choice((0.5, 1.0, 1.1, 2.0)), "shows": self.lines[first : first + 8]}


class Editor:
    """This process's objects, and what it is told to do with them."""

    def __init__(self, role, path, journal, objects):
        self.broker = Broker(path)
        self.journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.objects = objects
        session = self.broker.call("initialize", application=APPLICATION, process=role, serves=["pathChanged"],
                                   delegate=role == "windows")
        for some in self.portions():
            registered = self.broker.call_all("registerObjectForStateRestoration", [
                {"restorationIdentifier": each.identifier, "restorationParent": each.parent,
                 "objectClass": type(each).__name__, "awaitParentMilliseconds": 30000,
                 "kind": "viewController" if each.parent is None else "object"}
                for each in some])
            for each, result in zip(some, registered):
                each.object = result["object"]
        self.report("registered", objects=len(objects), reason=session["restoration"]["reason"])

    def portions(self):
        return (self.objects[i : i + AT_A_TIME] for i in range(0, len(self.objects), AT_A_TIME))

    def save(self):
        for some in self.portions():
            self.encode(some)
        self.report("saved", objects=len(self.objects))

    def type(self, count):
        for number in range(1, int(count) + 1):
            self.encode([random.choice(self.objects)])
            if number % 50 == 0:
                self.report("typing", states=number)
        self.report("typed", states=int(count))

    def encode(self, objects):
        states = [each.next_state() for each in objects]
        for each, state in zip(objects, states):
            self.note("sent", each.key, json.dumps(state))
        self.broker.call_all("encodeRestorableState", [
            {"object": each.object, "state": state} for each, state in zip(objects, states)])
        for each in objects:
            self.note("done", each.key)

    def decode(self):
        for some in self.portions():
            decoded = self.broker.call_all("decodeRestorableState", [{"object": each.object} for each in some])
            for each, result in zip(some, decoded):
                self.note("back", each.key, json.dumps(result["state"]))
        self.broker.call("completeStateRestoration")
        self.report("decoded", objects=len(self.objects))

    def move(self, key, parent):
        [moved] = (each for each in self.objects if each.key == key)
        result = self.broker.call("setRestorationParent", object=moved.object, restorationParent=[parent])
        self.report("moved", path=result["path"])

    def told(self, count):
        """Waits for this many notifications of new paths."""
        self.report("told", paths=[self.broker.notification()["params"]["path"] for _ in range(int(count))])

    def goodbye(self):
        self.broker.call("goodbye", reason="logout")
        self.report("left", objects=len(self.objects))

    def note(self, *fields):
        os.write(self.journal, ("\t".join(fields) + "\n").encode())

    @staticmethod
    def report(event, **members):
        print(json.dumps({"event": event, **members}), flush=True)


def main():
    role, path, journal = sys.argv[1:]
    kind = {"windows": Window, "previews": Preview}.get(role, Document)
    objects = [kind(line) for line in iter(lambda: sys.stdin.readline().rstrip("\n"), "")]
    if kind is Window:
        objects = list({each.key: each for each in reversed(objects)}.values())[::-1]  # the first file of each folder
    editor = Editor(role, path, journal, objects)
    for line in sys.stdin:
        command, *arguments = line.rstrip("\n").split("\t")
        {"save": editor.save, "type": editor.type, "decode": editor.decode, "move": editor.move, "told": editor.told,
         "goodbye": editor.goodbye}[command](*arguments)


if __name__ == "__main__":
    main()
