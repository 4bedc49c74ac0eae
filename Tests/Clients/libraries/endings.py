#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends of programs, with Protocol/clients/python: endings.py SOCKET SCENARIO...

Each function at the end is a scenario, with an application of its own. It ends with status 0 on success.
"""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from typing import Any, Dict, Tuple

import restorationd

APPLICATION = "org.example.Notes"
BLOCK = """
with restorationd.Session(application, socket=socket, leave=leave) as session:
    session.register("Editor").encode("kept")
    print("ready", flush=True)
    wait()
"""
TASK = """
import asyncio

async def work():
    async with restorationd.AsyncSession(application, socket=socket, leave=leave) as session:
        await (await session.register("Editor")).encode("kept")
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(work())
"""
#: What ends a program, by a signal: what it does before, its work, and the signal.
SIGNALS: Dict[str, Tuple[str, str, signal.Signals]] = {
    "Ctrl-C": ("", BLOCK, signal.SIGINT),
    "Ctrl-C in asyncio": ("", TASK, signal.SIGINT),
    "SIGTERM that exits": ("signal.signal(signal.SIGTERM, lambda *_: sys.exit())", BLOCK, signal.SIGTERM),
    "SIGHUP that exits": ("signal.signal(signal.SIGHUP, lambda *_: sys.exit())", BLOCK, signal.SIGHUP),
    "SIGTERM without a handler": ("", BLOCK, signal.SIGTERM),
}


def equal(found: Any, expected: Any) -> None:
    assert found == expected, f"{found!r} instead of {expected!r}"


def started(socket: str, leave: str, work: str) -> "subprocess.Popen[str]":
    """A program that has saved something."""
    head = "import signal, sys, restorationd; wait = signal.pause; application, socket, leave = sys.argv[1:]\n"
    process = subprocess.Popen(
        [sys.executable, "-c", head + work, APPLICATION, socket, leave], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    equal(process.stdout.readline(), "ready\n")
    return process


def remove_what_the_user_closes(socket: str) -> None:
    for leave in ("closed", "userQuit"):
        process = started(socket, leave, "wait = lambda: None\n" + BLOCK)
        equal(process.wait(30), 0)
        assert not restorationd.load(APPLICATION, "Editor", socket)


def remove_nothing_by_a_signal(socket: str) -> None:
    for leave in ("closed", "userQuit"):
        for name, (before, work, number) in SIGNALS.items():
            process = started(socket, leave, f"{before}\n{work}")
            process.send_signal(number)
            process.wait(30)
            equal((name, restorationd.load(APPLICATION, "Editor", socket).decode(str)), (name, "kept"))


#: What a program does last with its session, and why the next one is told that it begins.
LAST: Dict[str, str] = {
    "pass": "launch",
    "sys.exit(3)": "launch",
    "del session, editor": "launch",
    "asyncio.run(begin())": "launch",
    "session.close()": "recover",
    "raise ValueError": "recover",
    "asyncio.run(fail())": "recover",
    "os.abort()": "recover",
}
PROGRAM = """
import asyncio, os, sys, restorationd

async def begin():
    other = restorationd.AsyncSession(application, process="other", socket=socket)
    await (await other.register("Other")).encode("kept")

async def fail():
    await begin()
    raise ValueError

application, socket = sys.argv[1:]
session = restorationd.Session(application, socket=socket)
editor = session.register("Editor")
editor.encode("kept")
"""


def reason(socket: str) -> Any:
    with restorationd.Session(APPLICATION, socket=socket) as session:
        return session.restoration["reason"]


def are_no_crash_of_a_program_that_ends_by_itself(socket: str) -> None:
    for last, expected in LAST.items():
        subprocess.run(
            [sys.executable, "-c", PROGRAM + last, APPLICATION, socket], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, check=False)
        equal((last, reason(socket)), (last, expected))


def are_said_of_a_session_that_is_dropped(socket: str) -> None:
    session = restorationd.Session(APPLICATION, process="editor", socket=socket)
    session.register("Editor").encode("kept")
    del session
    gc.collect()
    with restorationd.Session(APPLICATION, process="main", socket=socket) as other:
        while len(other.call("describeApplication")["sessions"]) > 1:
            pass
        other.register("Editor")


if __name__ == "__main__":
    for scenario in sys.argv[2:]:
        APPLICATION = f"org.example.{scenario}"
        globals()[scenario](sys.argv[1])
