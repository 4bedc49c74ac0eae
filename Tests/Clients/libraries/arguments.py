#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arguments of a program, as the broker gets them from Protocol/clients/python: arguments.py SOCKET SCENARIO...

Each function at the end is a scenario, with an application of its own. It ends with status 0 on success.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import restorationd

APPLICATION = "org.example.Notes"


def equal(found: Any, expected: Any) -> None:
    assert found == expected, f"{found!r} instead of {expected!r}"


def name_the_unit_of_an_object(socket: str) -> None:
    def unit() -> Any:
        coder = restorationd.load(APPLICATION, "Window", socket).coder
        return coder and coder.get("UIStateRestorationViewControllerStoryboardKey")

    with restorationd.Session(APPLICATION, socket=socket) as session:
        session.register("Window", kind="viewController", storyboard={"unit": "notes.service"}).encode({})
        equal(unit(), {"unit": "notes.service"})

    async def work() -> None:
        async with restorationd.AsyncSession(APPLICATION, socket=socket) as session:
            await session.register("Window", kind="viewController")
            equal(unit(), {"unit": "notes.service"})  # it stays recorded until it is removed
            window = await session.register("Window", kind="viewController", storyboard={"unit": ""})
            await window.encode({})
            equal(unit(), None)

    asyncio.run(work())


def have_names_of_python(socket: str) -> None:
    with restorationd.Session(
            APPLICATION, socket=socket, process="main", instance="auto", bundle_version="2.1", user_interface_idiom=5,
            storyboard={"unit": "notes.service"}, message_bytes_max=1 << 20, aliases={"classes": {"Old": "New"}},
            protocol_version=1) as session:
        equal(session.application, f"{APPLICATION}@1")
        session.register("Window").encode({})
        coder = restorationd.load(session.application, "Window", socket).coder or {}
        names = ("BundleVersion", "UserInterfaceIdiom")
        equal([coder[f"UIApplicationStateRestoration{name}Key"] for name in names], ["2.1", 5])
        own, = session.call("describeApplication")["sessions"]
        equal(own["process"], "main")


if __name__ == "__main__":
    for scenario in sys.argv[2:]:
        APPLICATION = f"org.example.{scenario}"
        globals()[scenario](sys.argv[1])
