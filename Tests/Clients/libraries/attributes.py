#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Restorable attributes, with Protocol/clients/python: attributes.py SOCKET SCENARIO...

Each function at the end is a scenario, with an application of its own. It ends with status 0 on success.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Dict, List, Optional, Tuple

import restoration
from restoration import restorable

if TYPE_CHECKING:
    from toolkit import Widget  # type: ignore[import-not-found]

APPLICATION = "org.example.Notes"


class Editor:
    widget: Widget  # which only type checkers know
    cursor = restorable(0)
    file: Optional[pathlib.Path] = restorable(None, key="path")
    tabs: List[str] = restorable(default_factory=list)
    where = restorable(pathlib.Path("/"))
    unset: Optional[int] = restorable(None)


@restorable
@dataclass
class Pane:
    width: int = 80
    rows: Dict[str, Tuple[int, int]] = field(default_factory=dict)
    _view: Any = None
    count: ClassVar[int] = 3


class Counted(restoration.Session):
    """Counts what it encodes."""

    encoded = 0

    def _encode(self, *arguments: Any) -> Any:
        self.encoded += 1
        self.pushed.set()
        return super()._encode(*arguments)

    def _prepare(self) -> None:
        super()._prepare()
        self.pushed = threading.Event()


def equal(found: Any, expected: Any) -> None:
    assert found == expected, f"{found!r} instead of {expected!r}"


def opened(socket: str, **more: Any) -> Counted:
    session = Counted(APPLICATION, socket=socket, **more)
    session.open()
    return session


def registered(session: restoration.Session) -> Editor:
    editor = Editor()
    session.register("Editor", target=editor)
    return editor


def started(socket: str, work: str) -> List[str]:
    """The command of a program that does something with an editor."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import attributes; attributes.APPLICATION = sys.argv[2]\n"
        f"session = attributes.opened(sys.argv[3]); editor = attributes.registered(session)\n{work}\n")
    return [sys.executable, "-c", program, os.path.dirname(os.path.abspath(__file__)), APPLICATION, socket]


def come_back(socket: str) -> None:
    with opened(socket) as session:
        editor = registered(session)
        equal((editor.cursor, editor.file, editor.tabs), (0, None, []))
        editor.cursor, editor.file, editor.where = 7, pathlib.Path("/a"), pathlib.Path("/b")
        editor.tabs.append("one")
        pane = Pane(rows={"a": (1, 2)})
        session.register("Pane", ["Editor"], target=pane)
        pane.width, pane._view, Pane.count = 40, object(), 4
    with opened(socket) as session:
        editor = Editor()
        editor.cursor, editor.unset = 99, 5
        thing = session.register("Editor", target=editor)
        equal(vars(editor)["tabs"], ["one"])
        equal((editor.cursor, editor.file, editor.where), (7, pathlib.Path("/a"), pathlib.Path("/b")))
        equal(editor.unset, None)  # it had that value when it was saved
        editor.cursor = 8
        session.flush()
        equal(thing.decode().state, {"cursor": 8, "path": "/a", "tabs": ["one"], "where": "/b", "unset": None})
        pane = Pane()
        equal(session.register("Pane", ["Editor"], target=pane).decode().state, {"width": 40, "rows": {"a": [1, 2]}})
        equal((pane.width, pane.rows), (40, {"a": (1, 2)}))


def are_pushed_once_a_turn(socket: str) -> None:
    session = opened(socket)
    editor = registered(session)
    for number in range(1000):
        editor.cursor = number
        equal(editor.cursor, number)
    session.flush()
    equal((session.encoded, editor.cursor), (1, 999))
    session.flush()
    editor.tabs  # reads only
    session.flush()
    equal(session.encoded, 1)
    editor.tabs.append("in place")
    session.flush()
    equal(session.encoded, 2)
    session.pushed.clear()
    editor.cursor = 5  # nobody flushes
    assert session.pushed.wait(30)
    session.close()
    equal(restoration.load(APPLICATION, "Editor", socket)["cursor"], 5)


def are_not_lost_at_the_end(socket: str) -> None:
    def ends_well(session: restoration.Session, editor: Editor) -> None:
        with session:
            editor.cursor = 1

    def fails(session: restoration.Session, editor: Editor) -> None:
        try:
            with session:
                editor.cursor = 2
                raise KeyError
        except KeyError:
            pass

    def closes(session: restoration.Session, editor: Editor) -> None:
        editor.cursor = 3
        session.close()

    def saves(session: restoration.Session, editor: Editor) -> None:
        editor.cursor = 4
        session.save()
        equal(restoration.load(APPLICATION, "Editor", socket)["cursor"], 4)
        session.close()

    def says_goodbye(session: restoration.Session, editor: Editor) -> None:
        editor.cursor = 5
        session.goodbye("logout")

    for number, end in enumerate((ends_well, fails, closes, saves, says_goodbye), 1):
        session = opened(socket)
        end(session, registered(session))
        equal(restoration.load(APPLICATION, "Editor", socket)["cursor"], number)
    ended = subprocess.run(started(socket, "editor.cursor = 6; sys.exit(3)"))
    equal(ended.returncode, 3)
    equal(restoration.load(APPLICATION, "Editor", socket)["cursor"], 6)


def are_what_the_broker_asks_for(socket: str) -> None:
    with opened(socket, serving=True) as session:
        editor = registered(session)
        editor.cursor = 1
        session._marks.clear()  # as if nobody had marked it yet
        equal(session.save()["stale"], [])
        equal(restoration.load(APPLICATION, "Editor", socket)["cursor"], 1)
        handed = {"object": session.object_at("Editor").handle, "state": {"cursor": 2}}  # R34: it comes late
        list(session._answer_decodeRestorableStateWithCoder({"objects": [handed]}))
        equal(editor.cursor, 2)
        editor.tabs = [len]  # type: ignore[list-item]
        try:
            session.save()
        except restoration.InvalidStateError as error:
            equal((error.path, error.field), (("Editor",), "tabs[0]"))
        else:
            raise AssertionError("it is saved")
        [stale] = session.call("saveApplicationState")["stale"]
        assert "InvalidStateError: Editor: tabs[0]: <built-in function len>" in stale["message"], stale
        try:
            session.register("Other", target=editor, decode=print)
        except ValueError as error:
            assert "leave out encode= and decode=" in str(error)
        else:
            raise AssertionError("it is registered")


def outlive_what_they_are_not(socket: str) -> None:
    """Copies are not bound, a value that does not fit is left out, and after the end nothing happens."""
    restoration.store(APPLICATION, "Editor", {"cursor": 3, "tabs": "wrong", "path": "/a"}, socket)
    messages: List[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("restoration").addHandler(handler)
    session = opened(socket)
    editor = registered(session)
    equal((editor.cursor, editor.tabs, editor.file), (3, [], pathlib.Path("/a")))
    equal(messages, ["Editor: tabs: expected List[str], found 'wrong' (str); the attribute keeps its value"])
    session.flush()
    before = session.encoded
    for other in (copy.copy(editor), copy.deepcopy(editor), pickle.loads(pickle.dumps(editor))):
        other.cursor = 4
        equal((editor.cursor, other.cursor, other.file), (3, 4, pathlib.Path("/a")))
    session.flush()
    equal(session.encoded, before)
    session.close()
    editor.cursor = 5
    equal(session._marks, {})


def are_pushed_once_a_turn_in_asyncio(socket: str) -> None:
    async def work() -> None:
        async with restoration.AsyncSession(APPLICATION, socket=socket) as session:
            pushed = asyncio.Event()
            encode, count = session._encode, [0]

            def counted(*arguments: Any) -> Any:
                count[0] += 1
                pushed.set()
                return encode(*arguments)

            session._encode = counted  # type: ignore[method-assign, assignment]
            editor = Editor()
            thing = await session.register("Editor", target=editor)
            for number in range(1000):
                editor.cursor = number
            await pushed.wait()
            equal((await thing.decode())["cursor"], 999)
            await session.flush()
            equal(count, [1])
            pushed.clear()
            thread = threading.Thread(target=lambda: setattr(editor, "cursor", 1000))
            thread.start()
            await pushed.wait()
            thread.join()
            editor.cursor = 1001
            equal((await session.save())["saved"], True)
            equal((await thing.decode())["cursor"], 1001)
            editor.cursor = 1002
        equal(restoration.load(APPLICATION, "Editor", socket)["cursor"], 1002)
        other = restoration.AsyncSession(APPLICATION, socket=socket)
        restored = Editor()
        await other.register("Editor", target=restored)
        equal(restored.cursor, 1002)
        restored.cursor = 1003
        await other.close()
        equal(restoration.load(APPLICATION, "Editor", socket)["cursor"], 1003)

    asyncio.run(work())


def are_killed_at_any_time(socket: str) -> None:
    """Nothing is lost that was there longer than a turn: a program that is killed has what it saw acknowledged."""
    work = "while True: editor.cursor += 1; session.flush(); print(editor.cursor, flush=True)"
    last = 0
    for lines in (1, 30):
        process = subprocess.Popen(started(socket, work), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(lines):
            last = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].split()
        last = int(rest[-1]) if rest else last
        found = restoration.load(APPLICATION, "Editor", socket)["cursor"]
        assert found in (last, last + 1), (found, last)
        last = found


if __name__ == "__main__":
    for scenario in sys.argv[2:]:
        APPLICATION = f"org.example.{scenario}"
        globals()[scenario](sys.argv[1])
