#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that begin without a broker, and a scripted broker that comes then: alone.py SCENARIO"""

import asyncio
import contextlib
import gc
import itertools
import json
import logging
import os
import select
import socket
import sys
import tempfile
import threading
import weakref

import restoration

logging.disable(logging.CRITICAL)
restoration._pauses = lambda most=0: itertools.repeat(0.01)


class Broker:
    """Answers as `script` says: with a result, an error's kind, None for nothing, or ConnectionError for an end."""

    def __init__(self, path, script=lambda method, params: {}):
        self.script, self.calls, self.handles = script, [], itertools.count(100)
        self.connections, self.ended = [], False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path + ".new")
        self.listener.listen()
        os.rename(path + ".new", path)
        self.path = path
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self.listener.accept()[0]
                if self.ended:
                    return connection.close()
                self.connections.append(connection)
                threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    def end(self):
        self.ended = True
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            for line in connection.makefile("rb"):
                message = json.loads(line)
                method, params = message["method"], message.get("params", {})
                self.calls.append((method, params))
                answer = self.script(method, params)
                if answer is ConnectionError:
                    return self.end()
                if answer is None or "id" not in message:
                    continue
                if isinstance(answer, str):
                    member = {"error": {"code": -32000, "message": answer, "data": {"kind": answer}}}
                else:
                    member = {"result": {**self.result(method, params), **answer}}
                connection.sendall(json.dumps({"jsonrpc": "2.0", "id": message["id"], **member}).encode() + b"\n")

    def result(self, method, params):
        if method == "initialize":
            return {"session": f"of {id(self)}", "application": params["application"]}
        if method == "registerObjectForStateRestoration":
            path = [*(params.get("restorationParent") or []), params["restorationIdentifier"]]
            return {"object": next(self.handles), "path": path, "restoration": {"state": "none"}}
        return {"status": "none", "pending": 0}

    def of(self, method):
        return [params for name, params in self.calls if name == method]

    def states(self):
        return [params["state"] for params in self.of("encodeRestorableState")]


def eventually(condition):
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it does not happen")


def alone(**more):
    return restoration.Session("org.example.Notes", socket=PATH, **more)


# Scenarios


def references():
    """References follow an object that moves, and are null if it is gone."""
    with alone() as session:
        main, tab = session.register("Main"), session.register("Tab")
        main.encode({
            "handle": tab, "path": {"$restorable": ["Tab"]}, "number": 0.1, "gone": session.register("Gone"),
            "foreign": {"$restorable": ["Foreign"]}, "literal": {"$literal": {"$restorable": ["Tab"]}}})
        session.object_at("Gone").unregister()
        tab.rename("Renamed")
        decoded = main.decode()
        assert decoded["path"].path == ("Renamed",) and decoded["path"].object is tab
        assert decoded["gone"].path is None and decoded["gone"].object is None
        broker = Broker(PATH)
    state, = broker.states()
    renamed = next(
        100 + place for place, params in enumerate(
            params for params in broker.of("registerObjectForStateRestoration"))
        if params["restorationIdentifier"] == "Renamed")
    assert state == {
        "handle": {"$restorable": renamed}, "path": {"$restorable": renamed}, "number": 0.1,
        "gone": {"$restorable": None}, "foreign": {"$restorable": ["Foreign"]},
        "literal": {"$literal": {"$restorable": ["Tab"]}}}, state


def _interrupted():
    """A broker ends before anything is saved there; the next one gets everything."""
    def script(method, params):
        return ConnectionError if method == "registerObjectForStateRestoration" else {}

    return Broker(PATH, script)


def interrupted():
    """The session still finds a broker that comes after its patience is over."""
    session = alone(patience=0.1).open()
    session.register("Main").encode({"kept": True})
    broker = _interrupted()
    eventually(lambda: broker.ended)
    eventually(lambda: session._lock.acquire(blocking=False) and (session._lock.release() or True))
    broker = Broker(PATH)
    eventually(lambda: broker.states() == [{"kept": True}])
    session.close()


def interrupted_at_the_end():
    """The call that ends the session saves what is in memory."""
    restoration._pauses = lambda most=0: itertools.chain([0.01] * 20, itertools.repeat(3600))
    for end in (lambda session: session.close(), lambda session: session.goodbye("restart")):
        restoration.Session._look_later = lambda session: None
        session = alone(patience=0.1).open()
        session.register("Main").encode({"kept": True})
        broker = _interrupted()
        session._look()
        assert broker.ended and session._memory and not session._is_alone
        broker = Broker(PATH)
        end(session)
        assert broker.states() == [{"kept": True}], broker.calls
        broker.end()


def interrupted_in_asyncio():
    async def main():
        session = await restoration.AsyncSession("org.example.Notes", socket=PATH, patience=0.1).open()
        await (await session.register("Main")).encode({"kept": True})
        broker = _interrupted()
        while not broker.ended or (session._reconnecting and not session._reconnecting.done()):
            await asyncio.sleep(0.01)
        broker = Broker(PATH)
        while not broker.states():
            await asyncio.sleep(0.01)
        await session.close()

    asyncio.run(asyncio.wait_for(main(), 10))


def refused_in_passing():
    """A state that the broker refuses in passing is pushed again, also if the broker is shutting down."""
    for method, refusal in (
        ("unregisterObject", "shuttingDown"), ("registerObjectForStateRestoration", "shuttingDown"),
        ("encodeRestorableState", "shuttingDown"), ("encodeRestorableState", "storeFailed"),
        ("encodeRestorableState", None), ("registerRestorationClass", None),
    ):
        with alone(timeout=0.1, patience=0.1) as session:
            session.register("Main").encode({"kept": True})
            session.register("Gone").unregister()
            session.register_class("Tab", lambda wanted: None)
            refused = []

            def script(called, params):
                begun = len(broker.of("initialize"))
                if called == method and (not refused or (refusal == "shuttingDown" and begun == 1)):
                    refused.append(params)
                    return refusal
                return {}

            broker = Broker(PATH, script)
            eventually(lambda: session._memory is None)
            with session._lock:
                assert session.object_at("Main").handle in session._objects, method
            done = broker.of(method)[len(refused):]
            assert refused and (refusal is None and method.startswith("registerR") or done), (method, refusal)
            assert method == "encodeRestorableState" or len(broker.states()) == 1, (method, broker.calls)
        broker.end()


def refused_registration():
    """An object that a full disk refuses keeps its state, holds up no other, and follows with what is below it."""
    full = [True]
    with alone() as session:
        main, other = session.register("Main"), session.register("Other")
        main.encode({"of": "Main"})
        session.register("Tab", main).encode({"of": "Tab"})
        other.encode({"of": "Other", "main": main})

        def script(method, params):
            if method == "registerObjectForStateRestoration" and full[0] and params["restorationIdentifier"] == "Main":
                return "storeFailed"
            refers = method == "encodeRestorableState" and params["state"].get("main")
            return "invalidReference" if refers and isinstance(refers["$restorable"], list) else {}

        broker = Broker(PATH, script)
        eventually(lambda: len(broker.states()) >= 2)
        assert {state["of"] for state in broker.states()} == {"Other"}, broker.calls
        try:
            main.encode({"of": "the new Main"})
        except restoration.BrokerError as error:
            assert error.kind == "storeFailed"
        full[0] = False
        eventually(lambda: session._memory is None)
        handle = main.handle
    registrations = broker.of("registerObjectForStateRestoration")
    tab, = (params for params in registrations if params["restorationIdentifier"] == "Tab")
    assert tab["restorationParent"] == ["Main"] and tab["fresh"]
    last = {state["of"]: state for state in broker.states()}
    assert set(last) == {"Main", "Tab", "Other"} and last["Other"]["main"] == {"$restorable": handle}, broker.calls


def refused_later():
    """A state in memory never replaces a newer one, even of another session."""
    restoration.Session._look_later = lambda session: None
    full = [True]
    with alone(patience=1) as session:
        main = session.register("Main")
        main.encode({"from": "memory"})
        broker = Broker(PATH, lambda method, _: "storeFailed" if method.startswith("encode") and full[0] else {})
        session._look()
        assert session._memory is not None
        full[0] = False
        main.encode({"from": "later"})
        broker.end()
        broker = Broker(PATH)
    assert broker.states() == [], broker.calls


def gap():
    """If a broker is being restarted, a program that starts waits for it; if there was none, it does not wait."""
    def comes(path):
        threading.Timer(0.1, lambda: found.append(Broker(path))).start()

    async def register(path):
        async with restoration.AsyncSession("org.example.Notes", socket=path) as session:
            await session.register("Main")

    directory = os.path.join(os.path.dirname(PATH), "restorationd")
    os.mkdir(directory)
    for place, end in itertools.product((PATH, os.path.join(directory, "broker.sock")), (False, True)):
        found = []
        if place == PATH:
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(place)  # it refuses from then on
        comes(place)
        if end:
            asyncio.run(register(place))
        else:
            with restoration.Session("org.example.Notes", socket=place) as session:
                session.register("Main")
        eventually(lambda: found)
        params, = found[0].of("registerObjectForStateRestoration")
        assert "fresh" not in params, place
        found[0].end()

    def fail(seconds):
        raise AssertionError(f"it waits for {seconds}")

    setattr(restoration.time, "sleep", fail)
    assert alone().open()._is_alone
    os.rmdir(directory)
    assert restoration.Session("org.example.Notes", socket=os.path.join(directory, "broker.sock")).open()._is_alone


def ends_soon():
    """A session that ends waits neither for parents of other processes nor for each answer of a silent broker."""
    restoration.Session._look_later = lambda session: None
    for answer in (lambda params: "unknownParent", lambda params: None):
        session = alone().open()
        for name in "abcdef":
            session.register(name, "Elsewhere", wait=30)
        broker = Broker(PATH, lambda method, params: answer(params) if method.startswith("registerObject") else {})
        begin = restoration.time.monotonic()
        session.close()
        assert restoration.time.monotonic() - begin < 3, restoration.time.monotonic() - begin
        waits = [params.get("awaitParentMilliseconds") for params in broker.of("registerObjectForStateRestoration")]
        assert waits and set(waits) == {None}, waits
        broker.end()

    async def main():
        session = await restoration.AsyncSession("org.example.Notes", socket=PATH).open()
        await session.register("a", "Elsewhere", wait=30)
        session._looking.cancel()
        broker = Broker(PATH)
        await session.close()
        params, = broker.of("registerObjectForStateRestoration")
        assert "awaitParentMilliseconds" not in params

    asyncio.run(main())


def forgets_what_is_gone():
    """The session does not keep unregistered objects alive, and removes each once."""
    class Thing:
        pass

    with alone() as session:
        main, things = session.register("Main"), weakref.WeakSet()
        for _ in range(100):
            thing = Thing()
            things.add(thing)
            tab = session.register("Tab", main, target=thing)
            tab.encode({"tab": True})
            main.encode({"front": tab})
            tab.unregister()
        del tab, thing
        gc.collect()
        assert not things
        broker = Broker(PATH)
    assert len(broker.of("unregisterObject")) == 1
    assert broker.states() == [{"front": {"$restorable": None}}], broker.states()


def barrier():
    """The calls that hold back and complete the restoration are repeated in their order."""
    with alone() as session:
        session.complete()
        session.complete()
        broker = Broker(PATH)
    assert len(broker.of("completeStateRestoration")) == 1
    broker.end()
    with alone() as session:
        assert session.extend() == 1
        session.complete()
        session.complete()
        broker = Broker(PATH)
    said = [method for method, _ in broker.calls if method.endswith("Restoration") and "register" not in method]
    assert said == ["extendStateRestoration", "completeStateRestoration", "completeStateRestoration"], said


def invalid_parameters():
    """Invalid parameters are refused with an error of the library."""
    with alone() as session:
        main = session.register("Main")
        for method, params in (
            ("encodeRestorableState", {"state": {}}), ("encodeRestorableState", {"object": 1.5, "state": {}}),
            ("unregisterObject", {}), ("setChildren", {"object": main, "children": [7]}),
        ):
            try:
                session.notify(method, params)
            except restoration.RestorationError:
                continue
            raise AssertionError(f"{method} {params}")


class Tab:
    title = restoration.restorable("")


def own_thread():
    """Callbacks run in the thread that serves, also when the first broker comes."""
    threads, refuses = [], [True]
    session = alone(serving=True, on_reconnected=lambda same: threads.append(threading.current_thread())).open()
    session.register("Main", encode=dict).encode({"kept": True})
    session.register("Tab", target=Tab())
    wait = select.poll()
    wait.register(session.fileno(), select.POLLIN)
    assert not wait.poll(0)

    def script(method, params):
        return "limitExceeded" if method == "initialize" and refuses[0] else {}

    broker, served = Broker(PATH, script), 0
    while not threads:
        assert wait.poll(10_000)
        session.object_at("Tab").target.title = f"{served}"
        timer = session._timer
        timer and timer.join()
        session.serve(0)
        served += 1
        refuses[0] = False
    assert served < 5  # the descriptor is not readable for nothing
    assert threads == [threading.main_thread()] and {"kept": True} in broker.states()
    session.close()


def nested():
    """If a callback ends the session while states are saved, nothing is saved twice."""
    restoration.Session._look_later = lambda session: None
    with alone() as session:
        session.register("Main").encode({"kept": True})
        session.register("Gone").unregister()
        broker, read = Broker(PATH), session._read
        session._read = lambda end: (None if session._is_alone else session._look()) or read(end)  # as from a callback
        session._look()
    assert broker.states() == [{"kept": True}] and len(broker.of("unregisterObject")) == 1, broker.calls


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        PATH = os.path.join(directory, "broker.sock")
        globals()[sys.argv[1]]()
