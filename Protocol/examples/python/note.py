#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A note that comes back: note.py IDENTIFIER [PARENT_COMPONENT ...]

Every line on standard input becomes the note. End of input, or a line `quit`, ends the program; whatever ends it, the
note is there when it is started again. See ../README.md for what all examples have in common.
"""

import os
import pathlib
import select
import sys
from typing import Any, Iterator, List, Optional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

import restorationd  # noqa: E402


class Note:
    def __init__(self) -> None:
        self.text: Optional[str] = None

    def encode(self) -> Optional[restorationd.State]:
        """The state that the broker asks for. If there is no note yet, the saved state stays."""
        return None if self.text is None else {"language": "python", "note": self.text}


def lines(session: restorationd.Session) -> Iterator[str]:
    """Lines of standard input; the broker is answered while none comes."""
    rest = b""
    while True:
        sources: List[Any] = [0, session]
        readable, _, _ = select.select(sources, [], [])
        if session in readable:
            session.serve(0)
        if 0 in readable:
            data = os.read(0, 65536)
            *whole, rest = (rest + data).split(b"\n")
            if not data and rest:
                whole.append(rest)
            for line in whole:
                yield line.decode("utf-8", "replace")
            if not data:
                return


def run(identifier: str, parent: List[str]) -> None:
    note = Note()
    application = os.environ.get("RESTORATION_APPLICATION") or "org.example.notes"
    # At the end of the block the session says goodbye for a restart, which keeps what is saved.
    with restorationd.Session(application, process="python", serving=True) as session:
        thing = session.register(identifier, parent or None, wait=10, encode=note.encode)
        saved = thing.decode()
        text = saved.get("note")
        if isinstance(text, str):
            note.text = text
            print(f"restored: {note.text}", flush=True)
        else:
            print("new", flush=True)
        session.complete()
        for line in lines(session):
            if line == "quit":
                break
            note.text = line
            print(f"noted: {line}", flush=True)
            thing.invalidate()
        # The broker may not have asked for the last line yet.
        last = note.encode()
        if last is not None:
            thing.encode(last)


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: note.py IDENTIFIER [PARENT_COMPONENT ...]", file=sys.stderr)
        return 64
    try:
        run(sys.argv[1], sys.argv[2:])
    except (restorationd.NoBrokerError, restorationd.ConnectionLostError) as error:
        print(error, file=sys.stderr)
        return 69
    except restorationd.RestorationError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
