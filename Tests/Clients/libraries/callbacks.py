#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Callbacks of a program, with Protocol/clients/python: callbacks.py SOCKET SCENARIO...

Each function at the end is a scenario. It ends with status 0 on success.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import queue
import select
import socket as sockets
import sys
import tempfile
import threading
from typing import Any, Dict, Iterator, List, Set

import restorationd

APPLICATION = "org.example.Notes"
CALLED = {"encode", "decode", "finished"}


def equal(found: Any, expected: Any) -> None:
    assert found == expected, f"{found!r} instead of {expected!r}"


class Broker:
    """Asks for the state of each object, and hands it out, with the answer to its registration, in one piece."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.answers: "queue.SimpleQueue[Dict[str, Any]]" = queue.SimpleQueue()
        self.handles = itertools.count(1)
        self.listener = sockets.socket(sockets.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        connection, _ = self.listener.accept()
        with self.listener, connection, connection.makefile("rb") as lines:
            for line in lines:
                messages = [{"jsonrpc": "2.0", **each} for each in self.taken(json.loads(line))]
                if messages:  # an answer may be the last thing that the program sends
                    connection.sendall(b"".join(json.dumps(each).encode() + b"\n" for each in messages))

    def taken(self, message: Dict[str, Any]) -> List[Dict[str, Any]]:
        if "method" not in message:
            self.answers.put(message)
            return []
        result: Dict[str, Any] = {"session": "t", "application": APPLICATION, "status": "none"}
        if message["method"] != "registerObjectForStateRestoration":
            asked = {"id": "c", "method": "shouldRestoreApplicationState", "params": {}}
            return [{"id": message["id"], "result": result}, *([asked] if message["params"].get("delegate") else [])]
        handle, state = next(self.handles), {"text": "an hour of work"}
        return [
            {"id": message["id"], "result": {
                "object": handle, "path": [message["params"]["restorationIdentifier"]],
                "restoration": {"state": "available", "handing": True}}},
            {"id": "a", "method": "encodeRestorableStateWithCoder", "params": {
                "round": 1, "objects": [{"object": handle}]}},
            {"id": "b", "method": "decodeRestorableStateWithCoder", "params": {
                "objects": [{"object": handle, "state": state}]}},
            {"method": "applicationFinishedRestoringState", "params": {"objects": [handle]}}]


@contextlib.contextmanager
def hasty() -> Iterator[Broker]:
    with tempfile.TemporaryDirectory() as directory:
        broker = Broker(f"{directory}/broker.sock")
        yield broker
        # All calls came to a good end.
        answers = {each["id"]: each.get("result") for each in (broker.answers.get(timeout=30) for _ in range(2))}
        equal(answers, {"a": {"states": [{"object": 1, "unchanged": True}]}, "b": {}})
        broker.thread.join()


class Program:
    """Its callbacks need the object that it gets from `register`."""

    editor: Any

    def __init__(self) -> None:
        self.called: Set[str] = set()
        self.is_done = asyncio.Event()

    def note(self, what: str) -> Any:
        equal((self.editor.path, self.editor.handle), (("Editor",), 1))
        self.called.add(what)
        if self.called == CALLED:
            self.is_done.set()

    def callbacks(self) -> Dict[str, Any]:
        return {"encode": lambda: self.note("encode"), "decode": lambda saved: self.note("decode"),
                "finished": lambda: self.note("finished")}


def wait_until_register_has_returned(_: str) -> None:
    """Then the program hears of them as of any other call: by the descriptor, or in its next call."""
    for waits in (True, False):
        with hasty() as broker:
            program = Program()
            session = restorationd.Session(APPLICATION, socket=broker.path, serving=True)
            program.editor = session.register("Editor", **program.callbacks())
            while program.called != CALLED:
                if waits:
                    assert select.select([session], [], [], 30)[0]
                    session.serve(0)
                else:
                    session.call("ping")
            session.close()


def wait_until_the_session_is_open(_: str) -> None:
    """A delegate may be asked as soon as its session has begun."""
    class Delegate(restorationd.Delegate):
        def should_restore(self, state: Any, coder: Any) -> bool:
            return bool(session.application)

    async def work() -> None:
        nonlocal session
        async with restorationd.AsyncSession(APPLICATION, socket=broker.path, delegate=Delegate()) as session:
            while broker.answers.empty():
                await asyncio.sleep(0)

    with tempfile.TemporaryDirectory() as directory:
        broker = Broker(f"{directory}/first.sock")
        with restorationd.Session(APPLICATION, socket=broker.path, delegate=Delegate()) as session:
            assert select.select([session], [], [], 30)[0]
            session.serve(0)
            equal(broker.answers.get(timeout=30).get("result"), True)
        del session
        broker = Broker(f"{directory}/second.sock")
        asyncio.run(work())
        equal(broker.answers.get().get("result"), True)


def wait_for_attributes(_: str) -> None:
    """`register` itself makes a second call then."""
    class Editor:
        text = restorationd.restorable("")

    with hasty() as broker:
        program, editor = Program(), Editor()
        finished = program.callbacks()["finished"]
        session = restorationd.Session(APPLICATION, socket=broker.path, serving=True)
        program.editor = session.register("Editor", target=editor, finished=finished)
        while not program.called:
            assert select.select([session], [], [], 30)[0]
            session.serve(0)
        equal((program.called, editor.text), ({"finished"}, "an hour of work"))
        session.close()


def wait_for_the_end_of_a_batch(_: str) -> None:
    with hasty() as broker:
        program = Program()
        session = restorationd.Session(APPLICATION, socket=broker.path, serving=True)
        with session.batch() as batch:
            made = batch.register("Editor", **program.callbacks())
        program.editor = made.result()
        while program.called != CALLED:
            assert select.select([session], [], [], 30)[0]
            session.serve(0)
        session.close()


def wait_in_asyncio(_: str) -> None:
    async def directly(work: Any) -> Any:
        return await work

    async def gathered(work: Any) -> Any:
        return (await asyncio.gather(work))[0]

    async def limited(work: Any) -> Any:
        return await asyncio.wait_for(work, 30)

    async def work(how: Any, broker: Broker) -> None:
        program = Program()
        session = restorationd.AsyncSession(APPLICATION, socket=broker.path)
        program.editor = await how(session.register("Editor", **program.callbacks()))
        await asyncio.wait_for(program.is_done.wait(), 30)
        equal(program.called, CALLED)
        await session.close()

    for how in (directly, gathered, limited):
        with hasty() as broker:
            asyncio.run(work(how, broker))


def do_not_wait_for_a_register_that_fails(_: str) -> None:
    """One that an error ends after the broker has answered, as when a signal interrupts the program."""
    class Session(restorationd.Session):
        def _drive(self, steps: Any, perform: Any) -> Any:
            if steps.__name__ == "_bind":
                raise KeyboardInterrupt
            return super()._drive(steps, perform)

    with hasty() as broker:
        program = Program()
        session = Session(APPLICATION, socket=broker.path, serving=True)
        try:
            session.register("Editor", **program.callbacks())
        except KeyboardInterrupt:
            program.editor = session.object_at("Editor")
        while program.called != CALLED:
            session.call("ping")
        session.close()


def come_to_a_late_process(socket: str) -> None:
    """An object that a real broker hands out as soon as it is registered."""
    with restorationd.Session(APPLICATION, socket=socket, process="main") as session:
        session.register("Main").encode({"is": "main"})
        with restorationd.Session(APPLICATION, socket=socket, process="editor") as other:
            other.register("Editor", ["Main"]).encode({"text": "an hour of work"})
    with restorationd.Session(APPLICATION, socket=socket, process="main", serving=True) as session:
        decoded: List[Any] = []
        session.register("Main", decode=decoded.append)
        session.restore(deadline=0.1)
        with restorationd.Session(APPLICATION, socket=socket, process="editor", serving=True) as late:
            editor = late.register("Editor", ["Main"], decode=lambda saved: decoded.append((editor.path, saved)))
            assert editor.handing
            while len(decoded) < 2:
                late.serve(0.1)
        equal(decoded[-1], (("Main", "Editor"), {"text": "an hour of work"}))


def are_told_of_when_they_fail(socket: str) -> None:
    """A coroutine that nobody awaits, as well as a function."""
    restorationd.store(APPLICATION, "Editor", {"text": "a"}, socket)
    failures: List[str] = []
    log = logging.Handler()
    log.emit = lambda record: record.exc_info and failures.append(str(record.exc_info[1]))  # type: ignore
    logging.getLogger("restoration").addHandler(log)

    async def fail(*arguments: Any) -> None:
        raise KeyError("late")

    def fail_at_once(*arguments: Any) -> None:
        raise KeyError("at once")

    async def work(callback: Any) -> None:
        async with restorationd.AsyncSession(APPLICATION, socket=socket, on_notification=callback) as session:
            await session.register("Editor", finished=callback)
            await session.restore()
            while len(failures) < 2:  # of `finished`, and of the notification
                await asyncio.sleep(0)

    asyncio.run(work(fail))
    equal(set(failures), {"'late'"})
    failures.clear()
    asyncio.run(work(fail_at_once))
    equal(set(failures), {"'at once'"})


def cannot_save_what_waits_for_them(socket: str) -> None:
    """The round waits for the callback: one that waited for the round would be late."""
    told: List[str] = []
    with restorationd.Session(APPLICATION, socket=socket, serving=True) as session:
        def encode() -> Dict[str, Any]:
            try:
                session.save()
            except restorationd.RestorationError as error:
                told.append(str(error))
            return {}

        session.register("Editor", encode=encode)
        equal(session.save()["stale"], [])

    async def work() -> None:
        async with restorationd.AsyncSession(APPLICATION, socket=socket) as other:
            beside: List[Any] = []

            async def encode() -> Dict[str, Any]:
                if not beside:
                    beside.append(asyncio.ensure_future(other.save()))
                try:
                    await other.save()
                except restorationd.RestorationError as error:
                    told.append(str(error))
                return {}

            await other.register("Other", encode=encode)
            equal((await other.save())["stale"], [])
            equal((await beside[0])["stale"], [])

    asyncio.run(work())
    assert len(told) > 1 and len(set(told)) == 1, told


def give_what_is_refused(socket: str) -> None:
    told: List[str] = []
    log = logging.Handler()
    log.emit = lambda record: told.append(record.getMessage())  # type: ignore
    logging.getLogger("restoration").addHandler(log)
    with restorationd.Session(APPLICATION, socket=socket, serving=True) as session:
        session.register("Editor", encode=lambda: {"next": {"$restorable": ["Nowhere"]}})
        equal(session.save()["stale"][0]["why"], "invalidReference")
        while not told:
            session.serve(0.1)
    assert "invalidReference" in told[0], told


if __name__ == "__main__":
    for scenario in sys.argv[2:]:
        APPLICATION = f"org.example.{scenario}"
        globals()[scenario](sys.argv[1])
