#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python half of the sample application: sample.py ROLE SOCKET JOURNAL [restore]

The role `previews` has a preview for each source file, `outlines` an outline; both are children of documents that
another process has. Paths of the files come on standard input. Does what Sources/restoration-sample does, with nothing
but the standard library.
"""

import json
import os
import random
import re
import socket
import sys

APPLICATION = "org.restorationd.Try"
DECLARATION = re.compile(r"\b(?:func|struct|enum|class|actor|extension|def)\s+(\w+)")


class Broker:
    """A connection: one call after the other."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rw", encoding="utf-8", newline="\n")
        self.last_id = 0

    def call(self, method, **params):
        self.last_id += 1
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        print(json.dumps(message, ensure_ascii=False), file=self.lines, flush=True)
        line = self.lines.readline()
        if not line:
            sys.exit(f"the broker closed the connection during {method}")
        answer = json.loads(line)
        if "error" in answer:
            sys.exit(f"{method}: {answer['error']}")
        return answer["result"]


class Preview:
    identifier, class_name = "Preview", "SourcePreview"

    def __init__(self, path):
        *folders, name = path.split("/")
        self.parent = [" ".join(folders), name]
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")

    def path(self):
        return self.parent + [self.identifier]

    def next_state(self):
        first = random.randrange(len(self.lines))
        return {"zoom": random.choice((0.5, 1.0, 1.1, 2.0)), "shows": self.lines[first : first + 8]}


class Outline(Preview):
    identifier, class_name = "Outline", "SourceOutline"

    def next_state(self):
        names = DECLARATION.findall("\n".join(self.lines))
        expanded = random.sample(names, random.randint(0, min(12, len(names))))
        # A reference to an object of another process.
        return {"expanded": expanded, "of": {"$restorable": self.parent}}


class Journal:
    """What was sent and what was acknowledged; survives this process."""

    def __init__(self, path):
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def will_send(self, key, state):
        os.write(self.descriptor, f"sent\t{key}\t{json.dumps(state)}\n".encode())

    def acknowledged(self, key):
        os.write(self.descriptor, f"done\t{key}\n".encode())

    @staticmethod
    def read(path):
        """For each object the state acknowledged last, and those sent after it."""
        states = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                word, key, *rest = line.rstrip("\n").split("\t", 2)
                if word == "sent" and rest:
                    states.setdefault(key, []).append(json.loads(rest[0]))
                elif word == "done":
                    del states[key][:-1]
        return states


def say(**members):
    print(json.dumps(members), flush=True)


def as_sent(value):
    """A state without what decoding adds to references."""
    if isinstance(value, dict):
        if "$restorable" in value:
            return {"$restorable": value["$restorable"]}
        return {key: as_sent(member) for key, member in value.items()}
    return [as_sent(element) for element in value] if isinstance(value, list) else value


def edit(broker, objects, journal):
    saved = 0

    def save(key, item, handle):
        nonlocal saved
        state = item.next_state()
        journal.will_send(key, state)
        broker.call("encodeRestorableState", object=handle, state=state)
        journal.acknowledged(key)
        saved += 1

    for entry in objects:
        save(*entry)
    say(event="saved", objects=len(objects))
    while True:
        save(*random.choice(objects))
        if saved % 100 == 0:
            say(event="typed", states=saved)


def restore(broker, objects, states, reason):
    last = newer = different = 0
    for key, item, handle in objects:
        state = as_sent(broker.call("decodeRestorableState", object=handle)["state"])
        expected = states.get(key, [])
        if state not in expected:
            different += 1
            print(f"{key}: {state} came back", file=sys.stderr)
        elif state == expected[0]:
            last += 1
        else:
            newer += 1
    broker.call("completeStateRestoration")
    say(event="restored", reason=reason, objects=len(objects), last=last, newer=newer, different=different)
    broker.call("goodbye", reason="logout")


def main():
    role, path, journal = sys.argv[1:4]
    kind = {"previews": Preview, "outlines": Outline}[role]
    items = [kind(line.rstrip("\n")) for line in sys.stdin]
    broker = Broker(path)
    session = broker.call("initialize", application=APPLICATION, process=role)
    objects = []
    for item in items:
        registered = broker.call(
            "registerObjectForStateRestoration",
            restorationIdentifier=item.identifier,
            restorationParent=item.parent,
            objectClass=kind.class_name,
            awaitParentMilliseconds=30000,
        )
        objects.append(("/".join(item.path()), item, registered["object"]))
    if len(sys.argv) > 4:
        restore(broker, objects, Journal.read(journal), session["restoration"]["reason"])
    else:
        edit(broker, objects, Journal(journal))


if __name__ == "__main__":
    main()
