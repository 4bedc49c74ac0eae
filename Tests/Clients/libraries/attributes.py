#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Restorable attributes, with Protocol/clients/python: attributes.py SOCKET SCENARIO...

Each function at the end is a scenario, with an application of its own. It ends with status 0 on success.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import enum
import itertools
import logging
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Iterator, List, Optional, Tuple

import restorationd
from restorationd import restorable

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


class Counted(restorationd.Session):
    """Counts what it encodes. A turn, which comes 50 ms after a write, waits for whoever has `between_turns`."""

    encoded = 0

    @property
    def between_turns(self) -> Any:
        return self._lock

    def _encode(self, *arguments: Any) -> Any:
        self.encoded += 1
        self.pushed.set()
        return super()._encode(*arguments)

    def _prepare(self) -> None:
        super()._prepare()
        self.pushed, self.turned = threading.Event(), threading.Event()

    def _turn(self, *arguments: Any) -> None:
        super()._turn(*arguments)
        self.turned.set()


def equal(found: Any, expected: Any) -> None:
    assert found == expected, f"{found!r} instead of {expected!r}"


@contextlib.contextmanager
def logged() -> Iterator[List[str]]:
    """What is logged meanwhile."""
    messages: List[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("restoration").addHandler(handler)
    yield messages
    logging.getLogger("restoration").removeHandler(handler)


def refused(kind: Any, work: Any) -> str:
    try:
        work()
    except kind as error:
        return str(error)
    raise AssertionError("it is not refused")


def opened(socket: str, **more: Any) -> Counted:
    session = Counted(APPLICATION, socket=socket, **more)
    session.open()
    return session


def registered(session: restorationd.Session) -> Editor:
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
    with session.between_turns:
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
    equal(restorationd.load(APPLICATION, "Editor", socket)["cursor"], 5)


def are_not_lost_at_the_end(socket: str) -> None:
    def ends_well(session: restorationd.Session, editor: Editor) -> None:
        with session:
            editor.cursor = 1

    def fails(session: restorationd.Session, editor: Editor) -> None:
        try:
            with session:
                editor.cursor = 2
                raise KeyError
        except KeyError:
            pass

    def closes(session: restorationd.Session, editor: Editor) -> None:
        editor.cursor = 3
        session.close()

    def saves(session: restorationd.Session, editor: Editor) -> None:
        editor.cursor = 4
        session.save()
        equal(restorationd.load(APPLICATION, "Editor", socket)["cursor"], 4)
        session.close()

    def says_goodbye(session: restorationd.Session, editor: Editor) -> None:
        editor.cursor = 5
        session.goodbye("logout")

    for number, end in enumerate((ends_well, fails, closes, saves, says_goodbye), 1):
        session = opened(socket)
        end(session, registered(session))
        equal(restorationd.load(APPLICATION, "Editor", socket)["cursor"], number)
    ended = subprocess.run(started(socket, "editor.cursor = 6; sys.exit(3)"))
    equal(ended.returncode, 3)
    equal(restorationd.load(APPLICATION, "Editor", socket)["cursor"], 6)


def are_what_the_broker_asks_for(socket: str) -> None:
    with opened(socket, serving=True) as session:
        editor = registered(session)
        editor.cursor = 1
        session._marks.clear()  # as if nobody had marked it yet
        equal(session.save()["stale"], [])
        equal(restorationd.load(APPLICATION, "Editor", socket)["cursor"], 1)
        handed = {"object": session.object_at("Editor").handle, "state": {"cursor": 2}}  # R29: it comes late
        list(session._answer_decodeRestorableStateWithCoder({"objects": [handed]}))
        equal(editor.cursor, 2)
        with session.between_turns:
            editor.cursor = 3
            list(session._answer_decodeRestorableStateWithCoder({"objects": [handed]}))
            equal(editor.cursor, 3)  # what was set last is newer
        with logged() as messages:
            editor.cursor, editor.tabs = 4, [len]  # type: ignore[list-item]
            equal(session.call("saveApplicationState")["stale"], [])
        [message] = messages
        assert "Editor: tabs[0]: <built-in function len>" in message, message
        equal(restorationd.load(APPLICATION, "Editor", socket)["cursor"], 4)
        editor.tabs = []
        editor.cursor = 5
        session.restore()
        equal(editor.cursor, 5)
        said = refused(ValueError, lambda: session.register("Other", target=editor, decode=print))
        assert "leave out encode= and decode=" in said, said


def outlive_what_they_are_not(socket: str) -> None:
    """Copies are not bound, a value that does not fit is left out, and after the end nothing happens."""
    restorationd.store(APPLICATION, "Editor", {"cursor": 3, "tabs": "wrong", "path": "/a"}, socket)
    with logged() as messages:
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
        async with restorationd.AsyncSession(APPLICATION, socket=socket) as session:
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
        equal(restorationd.load(APPLICATION, "Editor", socket)["cursor"], 1002)
        other = restorationd.AsyncSession(APPLICATION, socket=socket)
        restored = Editor()
        await other.register("Editor", target=restored)
        equal(restored.cursor, 1002)
        restored.cursor = 1003
        await other.close()
        equal(restorationd.load(APPLICATION, "Editor", socket)["cursor"], 1003)

    asyncio.run(work())


def are_saved_whoever_holds_them(socket: str) -> None:
    """Whoever has taken a list from an attribute may change it much later."""
    def closes(session: restorationd.Session) -> None:
        session.close()

    def ends_well(session: restorationd.Session) -> None:
        with session:
            pass

    def saves(session: restorationd.Session) -> None:
        session.save()
        equal(len(restorationd.load(APPLICATION, "Editor", socket)["tabs"]), 3)
        session.close()

    for number, end in enumerate((closes, ends_well, saves), 1):
        session = opened(socket)
        tabs = registered(session).tabs
        session.flush()
        tabs.append("held")
        end(session)
        equal(len(restorationd.load(APPLICATION, "Editor", socket)["tabs"]), number)

    async def work() -> None:
        for number in (4, 5):
            session = restorationd.AsyncSession(APPLICATION, socket=socket)
            editor = Editor()
            await session.register("Editor", target=editor)
            tabs = editor.tabs
            await session.flush()
            tabs.append("held")
            await (session.close() if number == 4 else session.goodbye("logout"))
            equal(len(restorationd.load(APPLICATION, "Editor", socket)["tabs"]), number)
            await session.close()

    asyncio.run(work())


@restorable
@dataclass
class View:
    zoom: float = 1
    rows: Any = None
    cursor: int = 0


def are_saved_without_those_that_cannot_be(socket: str) -> None:
    """What cannot be written stays as it last was, and is told; all others are saved, also at close."""
    rows: List[Any] = []
    rows.append(rows)
    broken: List[Dict[str, Any]] = [{"zoom": float("nan")}, {"rows": rows}, {"rows": "\ud800"}, {"rows": Fails()}]
    for number, values in enumerate(broken, 1):
        session = opened(socket)
        view, editor = View(), Editor()
        session.register("View", target=view)
        session.register("Editor", target=editor)
        view.zoom, view.rows = number, number
        session.flush()
        [field] = values
        with logged() as messages:
            setattr(view, field, values[field])
            view.cursor, editor.cursor = number, number
            assert f"View: {field}" in refused(restorationd.InvalidStateError, session.flush)
            equal(restorationd.load(APPLICATION, "View", socket)["cursor"], number)
            view.cursor, editor.cursor = number + 10, number + 10
            session.close()
        assert session._connection is None
        [message] = messages
        assert f"not saved: View: {field}" in message, message
        equal(restorationd.load(APPLICATION, "Editor", socket)["cursor"], number + 10)
        equal(restorationd.load(APPLICATION, "View", socket).state,
              {"zoom": number, "rows": number, "cursor": number + 10})


def fit_their_annotations_when_they_are_saved(socket: str) -> None:
    """Otherwise the next start could not restore them. The last value that fits stays saved, with all others."""
    session = opened(socket)
    editor, pane = registered(session), Pane()
    session.register("Pane", target=pane)
    editor.tabs = ["x"]
    session.flush()
    with logged() as messages:
        editor.tabs.append(5)  # type: ignore[arg-type]
        editor.cursor = 2  # no flush follows
        while not messages:
            assert session.turned.wait(30)
            session.turned.clear()
        said = refused(restorationd.InvalidStateError, session.flush)
    equal(said, "Editor: tabs[1]: expected str, found 5 (int)")
    equal(messages, [f"attributes are not saved: {said}"])
    found = restorationd.load(APPLICATION, "Editor", socket)
    equal((found["tabs"], found["cursor"]), (["x"], 2))
    editor.tabs.pop()
    pane.width = 1.5  # type: ignore[assignment]
    equal(refused(restorationd.InvalidStateError, session.flush), "Pane: width: expected int, found 1.5 (float)")
    pane.width = 2
    session.close()


class Fails(Dict[str, Any]):
    """A mapping that cannot be read at first."""

    errors: Iterator[Exception] = itertools.repeat(KeyError("?"))

    def items(self) -> Any:
        for error in self.errors:
            raise error
        return super().items()


def are_pushed_again_if_they_change_meanwhile(socket: str) -> None:
    session = opened(socket)
    view, editor = View(), Editor()
    session.register("View", target=view)
    session.register("Editor", target=editor)
    rows = Fails(a=1)
    changed = RuntimeError("dictionary changed size during iteration")  # by another thread
    rows.errors = iter([changed, changed])
    view.rows = rows  # nobody flushes
    editor.cursor = 1
    while not session.object_at("View").decode().get("rows"):
        assert session.turned.wait(30)
        session.turned.clear()
    equal(session.object_at("View").decode()["rows"], {"a": 1})
    equal(session.object_at("Editor").decode()["cursor"], 1)
    editor.cursor = 2
    while session.object_at("Editor").decode()["cursor"] != 2:  # the turn before may not have ended
        assert session.turned.wait(30)
        session.turned.clear()
    session.close()


def are_refused_if_they_could_not_be_restored(socket: str) -> None:
    """Before anything is saved, and by name."""
    @dataclass
    class Local:
        size: int = 0

    class Window:
        local: Local = restorable(Local())

    class Owner:
        thing: Optional[restorationd.RestorableObject] = restorable(None)

    with opened(socket) as session:
        for target, why in ((Window(), "Local"), (Owner(), "RestorableObject")):
            said = refused(restorationd.InvalidStateError, lambda: session.register("Window", target=target))
            assert why in said, said
        equal(session.object_at("Window"), None)

    class Slotted:
        __slots__ = ("size",)
        size: int

    assert "Slotted has __slots__" in refused(TypeError, lambda: restorable(Slotted))

    class Options:
        names: List[str] = field(default_factory=list, repr=False)

    assert "names" in refused(TypeError, lambda: restorable(Options))


@dataclass
@restorable
class Below:
    names: List[str] = field(default_factory=list)
    size: int = field(default=3)


class Side(enum.Enum):
    LEFT = "left"


def are_marked_only_by_what_may_change_them(socket: str) -> None:
    with opened(socket) as session:
        editor, view, below = Editor(), View(), Below()
        view.rows = (Side.LEFT, 1, pathlib.Path("/"))
        session.register("Editor", target=editor)
        session.register("View", target=view)
        session.register("Below", target=below)
        with session.between_turns:
            session.flush()
            editor.where, view.rows, below.size
            equal(session._marks, {})
            below.names.append("a")
            equal(len(session._marks), 1)
    with opened(socket) as session:
        below = Below(size=5)
        session.register("Below", target=below)
        equal((below.names, below.size, Below().names), (["a"], 3, []))


def are_killed_at_any_time(socket: str) -> None:
    """Nothing is lost that was there longer than a turn: a program that is killed has what its last turn pushed."""
    work = (
        "while True: session.turned.clear(); editor.cursor += 1; session.turned.wait(); "
        "print(editor.cursor, flush=True)")
    last = 0
    for lines in (1, 5):
        process = subprocess.Popen(started(socket, work), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(lines):
            last = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].split()
        last = int(rest[-1]) if rest else last
        found = restorationd.load(APPLICATION, "Editor", socket)["cursor"]
        assert found in (last, last + 1), (found, last)
        last = found


if __name__ == "__main__":
    for scenario in sys.argv[2:]:
        APPLICATION = f"org.example.{scenario}"
        globals()[scenario](sys.argv[1])
