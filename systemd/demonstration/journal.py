# SPDX-License-Identifier: Apache-2.0
"""The states a process sent, got acknowledged and got back: the demonstration's comparison."""

import json
import os


class Journal:
    """A process's journal, read incrementally. Knows for each object which states may be restored.

    These are the state acknowledged last, and any state sent after it: the kill may have come between the disk and
    the answer. Once a state has been restored, it is the only one.
    """

    def __init__(self, path):
        self.path = path
        self.position = 0
        self.possible = {}
        self.sent = self.acknowledged = 0
        self.moves = []

    def read(self):
        """Reads what is new. Gives what came back: how many as acknowledged, how many newer, and [(key, state)] of
        what is different."""
        exact, newer, different = 0, 0, []
        for word, key, text in self._lines():
            possible = self.possible.setdefault(key, [])
            if word == "sent":
                possible.append(json.loads(text))
                self.sent += 1
            elif word == "done":
                del possible[:-1]
                self.acknowledged += 1
            elif word == "back":
                state = self.without_handles(json.loads(text))
                expected = [self.today(state) for state in possible]
                if state is None or state not in expected:
                    different.append((key, text))
                elif state == expected[0]:
                    exact += 1
                else:
                    newer += 1
                self.possible[key] = [state]
        return exact, newer, different

    def _lines(self):
        if not os.path.exists(self.path):
            return
        with open(self.path, "rb+") as file:
            file.seek(self.position)
            text = file.read()
            end = text.rfind(b"\n") + 1
            # A killed process may leave part of a line: of a state that it did not come to send.
            file.truncate(self.position + end)
        self.position += end
        for line in text[:end].decode().split("\n")[:-1]:
            word, key, *rest = line.split("\t", 2)
            yield word, key, rest[0] if rest else "null"

    def moved(self, old, new):
        """References lead to where their objects are: from now on `old` and what is below it is `new`."""
        self.moves.append((old, new))

    def today(self, value):
        """A state with references to where their objects are now."""
        return self._mapped(value, self._path_today)

    @classmethod
    def without_handles(cls, value):
        """A state without what decoding adds to references."""
        return cls._mapped(value, lambda path: path)

    @classmethod
    def _mapped(cls, value, path):
        if isinstance(value, list):
            return [cls._mapped(element, path) for element in value]
        if not isinstance(value, dict):
            return value
        if "$restorable" in value:
            return {"$restorable": path(value["$restorable"])}
        return {key: cls._mapped(member, path) for key, member in value.items()}

    def _path_today(self, path):
        for old, new in self.moves:
            if path and path[:len(old)] == old:
                path = new + path[len(old):]
        return path
