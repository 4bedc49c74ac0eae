#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that are made together, with Protocol/clients/python: batch.py SOCKET SCENARIO...

Each function at the end is a scenario, with an application of its own. It ends with status 0 on success.
"""

from __future__ import annotations

import itertools
import json
import socket as sockets
import sys
import tempfile
import threading
from concurrent import futures
from typing import Any, Callable, Dict, List

import restorationd

APPLICATION = "org.example.Notes"
COUNT = 300


def equal(found: Any, expected: Any) -> None:
    assert found == expected, f"{found!r} instead of {expected!r}"


class Broker:
    """Answers when so many requests have come as `patience` says for each connection, and closes after so many answers
    as `answers` says."""

    def __init__(self, patience: Callable[[int], int], answers: Callable[[int], int] = lambda _: 1 << 30) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.path = f"{self.directory.name}/broker.sock"
        self.patience, self.answers = patience, answers
        self.taken: List[Dict[str, Any]] = []  # which it has answered
        self.connections = 0
        self.listener = sockets.socket(sockets.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        for number in itertools.count():
            connection, _ = self.listener.accept()
            self.connections += 1
            with connection, connection.makefile("rb") as lines:
                self.serve(connection, lines, self.patience(number), self.answers(number))

    def serve(self, connection: sockets.socket, lines: Any, patience: int, left: int) -> None:
        waiting: List[Dict[str, Any]] = []
        for line in lines:
            message = json.loads(line)
            if "id" in message:
                waiting.append(message)
            if len(waiting) < patience and message["method"] != "initialize":
                continue
            for each in waiting:
                self.taken.append(each)
                handle = len(self.taken)
                path = [each["params"].get("restorationIdentifier")]
                result = {"session": "t", "application": APPLICATION, "object": handle, "path": path}
                answer = {"jsonrpc": "2.0", "id": each["id"], "result": result}
                connection.sendall(json.dumps(answer).encode() + b"\n")
                left -= 1
                if left == 0:
                    return
            waiting.clear()


def is_sent_before_anything_is_answered(_: str) -> None:
    broker = Broker(lambda _: COUNT)
    session = restorationd.Session(APPLICATION, socket=broker.path).open()
    with session.batch() as batch:
        things = [batch.register(f"Tab{number}", "Window") for number in range(COUNT)]
        assert not any(each.done() for each in things)
    with session.batch() as batch:
        done = [batch.encode(thing.result(), [number]) for number, thing in enumerate(things)]
    equal([each.result() for each in done], [True] * COUNT)
    states = [each["params"]["state"] for each in broker.taken if each["method"] == "encodeRestorableState"]
    equal(states, [{"value": [number]} for number in range(COUNT)])
    session.close()


def is_saved(socket: str) -> None:
    """What is registered can be named by its path in the same batch, with a broker and without."""
    for place in (socket, socket + ".none"):
        with restorationd.Session(APPLICATION, socket=place) as session:
            with session.batch() as batch:
                batch.register("Window")
                for number in range(COUNT):
                    batch.register("Tab", ["Window"], position=number)
                    batch.encode(["Window", f"Tab#{number}"], {"number": number})
                saved = batch.decode(["Window", "Tab#7"])
            equal(saved.result(), {"number": 7})
            equal([each.decode()["number"] for each in session.objects[1:]], list(range(COUNT)))
    equal(restorationd.load(APPLICATION, ["Window", "Tab#299"], socket), {"number": 299})


def tells_errors_apart(socket: str) -> None:
    class Editor:
        text = restorationd.restorable("")

    restorationd.store(APPLICATION, "Editor", {"text": "kept"}, socket)
    with restorationd.Session(APPLICATION, socket=socket) as session:
        editor = Editor()
        try:
            with session.batch() as batch:
                made = [
                    batch.register("First"), batch.register("a/b"), batch.encode("First", "x" * 1_000_000),
                    batch.encode("First", {"size": float("nan")}), batch.encode("First", "x" * 5_000_000),
                    batch.encode("First", "good"), batch.decode("Nobody"), batch.register("Editor", target=editor)]
        except restorationd.BrokerError as error:
            equal(error.kind, "invalidIdentifier")
        else:
            raise AssertionError("it is told of no error")
        errors = [each.exception() for each in made]
        kinds = [getattr(each, "kind", each and type(each).__name__) for each in errors]
        equal(kinds, [None, "invalidIdentifier", "limitExceeded", "InvalidStateError", "limitExceeded", None,
                      "unknownObject", None])
        assert "'a/b'" in str(errors[1]) and str(errors[3]).startswith("First: size: nan"), errors
        equal((session.object_at("First").decode(str), editor.text), ("good", "kept"))
        try:
            with session.batch() as batch:
                batch.encode("First", "never sent")
                raise KeyError
        except KeyError:
            pass
        equal(session.object_at("First").decode(str), "good")
        for wrong in ({"kind": 5}, {"encod": print}):
            try:
                with session.batch() as batch:
                    batch.register("Other", **wrong)
            except (TypeError, restorationd.BrokerError) as error:
                assert next(iter(wrong)) in str(error), error
            else:
                raise AssertionError(wrong)


def takes_nothing_after_its_block(socket: str) -> None:
    refused: List[str] = []
    for place in (socket, socket + ".none"):
        with restorationd.Session(APPLICATION, socket=place) as session:
            note = session.register("Note")

            def add() -> None:
                try:
                    batch.encode(note, "lost")
                except RuntimeError as error:
                    refused.append(str(error))

            def add_twice(_: Any) -> None:
                thread = threading.Thread(target=add)
                thread.start()
                thread.join()
                add()

            with session.batch() as batch:
                batch.encode(note, "kept").add_done_callback(add_twice)
            add()
            equal(note.decode(str), "kept")
    equal((len(refused), set(refused)), (6, {"the block of this batch has ended; begin another one: session.batch()"}))


def ends_all_of_its_futures(socket: str) -> None:
    def refused(work: Callable[[], Any]) -> bool:
        try:
            work()
        except RuntimeError as error:
            return str(error) == "this is done when the block of its batch has ended; wait for it after the block"
        return False

    with restorationd.Session(APPLICATION, socket=socket) as session:
        note, line = session.register("Note"), session.register("Line")
        with session.batch() as batch:
            first, cancelled, last = batch.encode(note, 1), batch.encode(line, "never sent"), batch.encode(note, 2)
            assert refused(first.result) and refused(first.exception)
            seen: List[Any] = []
            first.add_done_callback(lambda _: seen.append((refused(last.result), last.cancel())))
            assert cancelled.cancel()
            others: List[bool] = []
            other = threading.Thread(target=lambda: others.append(last.result()))
            other.start()
        other.join()
        equal((first.result(), cancelled.cancelled(), others, seen), (True, True, [True], [(True, False)]))
        equal((note.decode(int), line.decode(str)), (2, None))

        def interrupt(_: Any) -> None:
            raise KeyboardInterrupt

        for end, ends in (
            ({}.popitem, [futures.CancelledError] * 2), (lambda: None, [type(None), KeyboardInterrupt]),
        ):
            try:
                with session.batch() as batch:
                    made = [batch.encode(note, 3), batch.encode(note, 4)]
                    made[0].add_done_callback(interrupt if ends[0] is type(None) else id)
                    end()
            except (KeyError, KeyboardInterrupt):
                pass
            equal([outcome(each) for each in made], ends)
            equal(futures.wait(made, 0).not_done, set())


def outcome(future: "futures.Future[Any]") -> Any:
    try:
        return type(future.exception(0))
    except (futures.CancelledError, futures.TimeoutError) as error:
        return type(error)


def is_made_again_on_the_next_connection(_: str) -> None:
    broker = Broker(lambda _: 1, lambda number: COUNT // 2 if number == 0 else 1 << 30)
    with restorationd.Session(APPLICATION, socket=broker.path) as session:
        with session.batch() as batch:
            things = [batch.register(f"Tab{number}") for number in range(COUNT)]
        equal([each.result().path for each in things], [(f"Tab{number}",) for number in range(COUNT)])
    session = restorationd.Session(APPLICATION, socket=Broker(lambda _: 1, lambda _: 10).path, patience=0)
    try:
        with session.batch() as batch:
            things = [batch.register(f"Tab{number}") for number in range(COUNT)]
    except restorationd.ConnectionLostError:
        failed = [type(each.exception()) for each in things]
        # One of the ten answers has opened the session.
        equal(failed, 9 * [type(None)] + (COUNT - 9) * [restorationd.ConnectionLostError])
        session.close()
    try:
        with session.batch() as batch:
            made = batch.register("Late")
    except restorationd.SessionEndedError:
        equal(type(made.exception()), restorationd.SessionEndedError)
    else:
        raise AssertionError("the connection is lost")


class DeafBroker(Broker):
    """Answers `initialize`, and reads nothing after it."""

    def __init__(self) -> None:
        super().__init__(lambda _: 1, lambda _: 1)

    def serve(self, connection: sockets.socket, lines: Any, patience: int, left: int) -> None:
        super().serve(connection, lines, patience, left)
        threading.Event().wait()


def gives_up_after_silence(_: str) -> None:
    # The calls have room in the second one's socket, and not also what cancels them.
    for broker, count in (Broker(lambda _: 1 << 30), COUNT), (DeafBroker(), 150):
        session = restorationd.Session(APPLICATION, socket=broker.path, timeout=0.2)
        try:
            with session.batch() as batch:
                things = [batch.register(f"Tab{number}") for number in range(count)]
        except restorationd.CallTimedOutError:
            equal({type(each.exception()) for each in things}, {restorationd.CallTimedOutError})
        else:
            raise AssertionError("nothing is answered")
        equal(broker.connections, 1)
        session.close()


if __name__ == "__main__":
    for scenario in sys.argv[2:]:
        APPLICATION = f"org.example.{scenario}"
        globals()[scenario](sys.argv[1])
