#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""States without a type of the program's own, with Protocol/clients/python: plain.py SOCKET SCENARIO...

Each function at the end is a scenario, with an application of its own. It ends with status 0 on success.
"""

from __future__ import annotations

import asyncio
import datetime
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

import restorationd

APPLICATION = "org.example.Notes"


def equal(found: Any, expected: Any) -> None:
    assert found == expected, f"{found!r} instead of {expected!r}"


def refused(work: Any) -> Tuple[str, str]:
    try:
        work()
    except restorationd.InvalidStateError as error:
        return str(error), error.field
    raise AssertionError("it is not refused")


def is_a_mapping(socket: str) -> None:
    state: Dict[str, Any] = {"text": "Grüße", "zoom": None, "picture": b"\0"}
    with restorationd.Session(APPLICATION, socket=socket) as session:
        editor = session.register("Editor")
        nothing = editor.decode()
        equal((list(nothing), len(nothing), dict(nothing), bool(nothing), "text" in nothing), ([], 0, {}, False, False))
        editor.encode({})
        assert editor.decode()  # it is saved, although there is nothing in it
        editor.encode(state)
        for saved in (editor.decode(), restorationd.load(APPLICATION, "Editor", socket)):
            equal(("text" in saved, "lost" in saved, 0 in saved), (True, False, False))
            equal((list(saved), len(saved), dict(**saved)), (list(state), 3, state))
            equal((list(saved.keys()), list(saved.values())), (list(state), list(state.values())))
            equal((dict(saved.items()), saved, {**saved, "zoom": 2}), (state, state, {**state, "zoom": 2}))
            equal((saved["zoom"], saved.get("zoom", 1), saved.get("lost", 1)), (None, None, 1))
            try:
                raise AssertionError(saved["lost"])
            except KeyError as error:
                equal(error.args, ("lost",))
        editor.encode(editor.decode())  # as any mapping
        equal(editor.decode(), state)
        given: Dict[str, Any] = {}
        given.update(editor.decode())
        equal(given, state)

    async def work() -> None:
        async with restorationd.AsyncSession(APPLICATION, socket=socket) as session:
            equal(dict(await (await session.register("Editor")).decode()), state)

    asyncio.run(work())


@dataclass
class Draft:
    text: str = ""


#: Values that are no objects, each with types that bring it back. Swift saves them in the same way.
VALUES: List[Tuple[Any, List[Any]]] = [
    ("Grüße", [str, Optional[str], Union[Draft, str], Any]), ("", [str]), (7, [int, float, Union[int, Draft]]),
    (1.5, [float]), (True, [bool]), (None, [Optional[str], Optional[Draft], type(None)]),
    ([1, "two", None], [list, List[Union[int, str, None]]]), ([], [List[int]]), ([{"text": "a"}], [List[Draft]]),
    (b"\0\xff", [bytes]), (datetime.datetime(2026, 2, 28, 9, 5, tzinfo=datetime.timezone.utc), [datetime.datetime]),
]


def holds_a_value(socket: str) -> None:
    for path in (socket, socket + ".none"):  # also in memory
        with restorationd.Session(APPLICATION, socket=path, serving=path == socket) as session:
            note = session.register("Note")
            for value, kinds in VALUES:
                assert note.encode(value)
                equal(note.decode().state, {"value": value})
                for kind in kinds:
                    expected = {"value": value} if kind is Any else value
                    expected = [Draft("a")] if kind == List[Draft] else expected
                    equal((kind, note.decode(kind)), (kind, expected))
            note.encode(Draft("a"))
            equal((note.decode(Union[Draft, str]), note.decode(Dict[str, str])), (Draft("a"), {"text": "a"}))
            equal(refused(lambda: note.decode(str)), ("Note: expected str, found {'text': 'a'} (dict)", ""))
            note.encode("a")
            equal(refused(lambda: note.decode(int)), ("Note: value: expected int, found 'a' (str)", "value"))
            equal(refused(lambda: note.encode([1, {2}]))[1], "value[1]")
            note.encode(note)
            reference = note.decode(restorationd.Reference)
            assert reference is not None and reference.object is note
            note.encode(reference)  # not a mapping of the program's own
            equal(note.decode()["value"], reference)
            session.encode(["own"])
            equal(session.decode(List[str]), ["own"])


@dataclass
class Setting:
    value: Optional[str] = None


@dataclass
class Choice:
    value: List[int]


@dataclass
class Titled:
    value: str = ""
    title: str = ""


def holds_an_object_whose_only_field_is_value(socket: str) -> None:
    with restorationd.Session(APPLICATION, socket=socket) as session:
        note = session.register("Note")
        cases: List[Tuple[Any, Any, Any]] = [
            (Setting(), Optional[Setting], Setting()), (Setting("a"), Union[str, Setting], Setting("a")),
            (Setting("a"), Union[int, Choice, Setting], Setting("a")),
            (Choice([1]), Union[List[int], Choice], Choice([1])),
            # What is none, or fits none, is what it was before.
            (5, Union[Setting, int], 5), ("a", Union[Titled, str], "a"), (None, Optional[Titled], None),
            (None, Optional[Dict[str, Any]], None), (Titled("a"), Union[Titled, str], Titled("a")),
        ]
        for state, kind, expected in cases:
            note.encode(state)
            equal((state, kind, note.decode(kind)), (state, kind, expected))


def holds_what_a_callback_gives(socket: str) -> None:
    async def work() -> None:
        state: Any = "asked"
        async with restorationd.AsyncSession(APPLICATION, socket=socket) as session:
            note = await session.register("Note", encode=lambda: state)
            await session.save()
            equal(await note.decode(str), "asked")
            state = None  # which a callback says for "unchanged"
            await session.save()
            equal(await note.decode(str), "asked")
            state = restorationd.Snapshot([1, 2])
            await session.save()
            equal(await note.decode(List[int]), [1, 2])

    asyncio.run(work())
    restorationd.store(APPLICATION, "Note", "stored", socket)
    equal(restorationd.load(APPLICATION, "Note", socket).decode(str), "stored")


if __name__ == "__main__":
    for scenario in sys.argv[2:]:
        APPLICATION = f"org.example.{scenario}"
        globals()[scenario](sys.argv[1])
