#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""States without a type of the program's own, with Protocol/clients/python: plain.py SOCKET SCENARIO...

Each function at the end is a scenario, with an application of its own. It ends with status 0 on success.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Dict

import restoration

APPLICATION = "org.example.Notes"


def equal(found: Any, expected: Any) -> None:
    assert found == expected, f"{found!r} instead of {expected!r}"


def is_a_mapping(socket: str) -> None:
    state: Dict[str, Any] = {"text": "Grüße", "zoom": None, "picture": b"\0"}
    with restoration.Session(APPLICATION, socket=socket) as session:
        editor = session.register("Editor")
        nothing = editor.decode()
        equal((list(nothing), len(nothing), dict(nothing), bool(nothing), "text" in nothing), ([], 0, {}, False, False))
        editor.encode({})
        assert editor.decode()  # it is saved, although there is nothing in it
        editor.encode(state)
        for saved in (editor.decode(), restoration.load(APPLICATION, "Editor", socket)):
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
        async with restoration.AsyncSession(APPLICATION, socket=socket) as session:
            equal(dict(await (await session.register("Editor")).decode()), state)

    asyncio.run(work())


if __name__ == "__main__":
    for scenario in sys.argv[2:]:
        APPLICATION = f"org.example.{scenario}"
        globals()[scenario](sys.argv[1])
