#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that begin without a broker, and a scripted broker that comes then: alone.py SCENARIO..."""

import asyncio
import contextlib
import gc
import itertools
import json
import logging
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import traceback
import weakref

import restorationd

logging.disable(logging.CRITICAL)
restorationd._pauses = lambda most=0: itertools.repeat(0.01)


class Broker:
    """Answers as `script` says: with a result, an error's kind, None for nothing, or ConnectionError for an end."""

    def __init__(self, path, script=lambda method, params: {}, handles=100):
        self.script, self.calls, self.handles = script, [], itertools.count(handles)
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
            parent = params.get("restorationParent")
            path = [*(parent if isinstance(parent, list) else []), params["restorationIdentifier"]]
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
    return restorationd.Session("org.example.Notes", socket=PATH, **more)


def gives_up(session, is_silent):
    """Has the session await no call for long to which the broker will say nothing, and all others on a busy machine."""
    ask = session._ask

    def asked(call):
        session.timeout = 0.1 if is_silent(call.method) else 30
        return ask(call)

    session._ask = asked


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
    restorationd._pauses = lambda most=0: itertools.chain([0.01] * 20, itertools.repeat(3600))
    for end in (lambda session: session.close(), lambda session: session.goodbye("restart")):
        restorationd.Session._look_later = lambda session: None
        session = alone(patience=0.1).open()
        session.register("Main").encode({"kept": True})
        broker = _interrupted()
        session._look()
        assert broker.ended and session._memory and session._is_alone
        broker = Broker(PATH)
        end(session)
        assert broker.states() == [{"kept": True}], broker.calls
        broker.end()


def interrupted_in_asyncio():
    async def main():
        session = await restorationd.AsyncSession("org.example.Notes", socket=PATH, patience=0.1).open()
        await (await session.register("Main")).encode({"kept": True})
        broker = _interrupted()
        while not broker.ended or (session._reconnecting and not session._reconnecting.done()):
            await asyncio.sleep(0.01)
        broker = Broker(PATH)
        while not broker.states():
            await asyncio.sleep(0.01)
        await session.close()

    asyncio.run(asyncio.wait_for(main(), 10))


def looks_soon_again():
    """If a broker has gone before it was told everything, an AsyncSession looks as often as at first."""
    pauses = iter([itertools.chain([0.01], itertools.repeat(3600))])
    restorationd._pauses = lambda most=0: most and next(pauses, None) or itertools.repeat(0.01)
    found = []

    def script(method, params):
        if method == "registerObjectForStateRestoration":
            first.end()
            found.append(Broker(PATH))
            return None
        return {}

    async def main():
        nonlocal first
        async with restorationd.AsyncSession("org.example.Notes", socket=PATH, patience=0.1) as session:
            await (await session.register("Main")).encode({"kept": True})
            first = Broker(PATH, script)
            while not found or not found[0].states():
                await asyncio.sleep(0.01)

    first = None
    asyncio.run(asyncio.wait_for(main(), 10))


def refused_in_passing():
    """A state that the broker refuses in passing is pushed again, also if the broker is shutting down."""
    for method, refusal in (
        ("unregisterObject", "shuttingDown"), ("registerObjectForStateRestoration", "shuttingDown"),
        ("encodeRestorableState", "shuttingDown"), ("encodeRestorableState", "storeFailed"),
        ("encodeRestorableState", None), ("registerRestorationClass", None),
    ):
        with alone(patience=0.1) as session:
            session.register("Main").encode({"kept": True})
            session.register("Gone").unregister()
            session.register_class("Tab", lambda wanted: None)
            refused, begun = [], []
            gives_up(session, lambda called: called == method and refusal is None and not refused)

            def script(called, params):  # which may run before `broker` is assigned
                begun.extend([params] if called == "initialize" else [])
                if called == method and (not refused or (refusal == "shuttingDown" and len(begun) == 1)):
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
        except restorationd.BrokerError as error:
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
    restorationd.Session._look_later = lambda session: None
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


def newer():
    """A state in memory never follows a newer one, in whatever way the program has given that."""
    class Delegate(restorationd.Delegate):
        def will_encode(self, round):
            return new

    restorationd.Session._look_later = lambda session: None
    old, new = {"from": "memory"}, {"from": "later"}

    def given(session, method, target):
        getattr(session, method)("encodeRestorableState", {"object": target, "state": new})

    ways = {
        "called": lambda session, main: given(session, "call", main.handle),
        "notified": lambda session, main: given(session, "notify", main),
        "notified by its handle": lambda session, main: given(session, "notify", main.handle),
        "notified by its path": lambda session, main: given(session, "notify", ["Main"]),
        "notified for the application": lambda session, main: given(session, "notify", []),
        "asked for the application": lambda session, main: asks(session, "willEncodeRestorableState", round=1),
        "not answered": lambda session, main: main.encode(new),
    }
    for name, way in ways.items():
        with alone(serving=True, delegate=Delegate() if name.startswith("asked") else None) as session:
            is_silent = lambda method: name == "not answered" and broker.script != refuses and method[:6] == "encode"
            gives_up(session, is_silent)
            main = session.register("Main")
            (session if name.endswith("the application") else main).encode(old)
            broker = Broker(PATH, refuses)
            session._look()
            broker.script = lambda method, params: None if is_silent(method) else {}
            with contextlib.suppress(restorationd.CallTimedOutError):
                way(session, main)
            broker.end()
            broker = Broker(PATH)
        assert broker.states() == ([] if name == "called" else [new]), (name, broker.calls)
        broker.end()


def refused_removal():
    """What was removed is removed once the disk has room, unless another object has the path by then."""
    full = [True]
    with alone() as session:
        for name in ("Gone", "Again"):
            session.register(name).unregister()
        session.register("Left")
        session.forget(["Forgotten"])

        def script(method, params):
            return "storeFailed" if method == "unregisterObject" and full[0] else {}

        broker = Broker(PATH, script)
        eventually(lambda: len(broker.of("unregisterObject")) > 2)
        again = session.register("Again")
        full[0], refused = False, len(broker.of("unregisterObject"))
        eventually(lambda: session._memory is None)
        removed = [params["object"] for params in broker.of("unregisterObject")[refused:]]
        assert ["Forgotten"] in removed and len(removed) >= 2 and again.handle not in removed, broker.calls


def parents():
    """What has objects of the session below it is removed after they are registered."""
    known, removed = {}, []

    def script(method, params):
        path = (*(params.get("restorationParent") or []), params.get("restorationIdentifier"))
        if method == "registerObjectForStateRestoration":
            if path[:-1] and path[:-1] not in known.values():
                return "unknownParent"
            handle = next((handle for handle, each in known.items() if each == path), 1000 + len(known))
            known[handle] = path
            return {"object": handle}
        if method == "unregisterObject":
            removed.append(known.pop(params["object"]))
        return {}

    with alone() as session:
        main = session.register("Main")
        tab = session.register("Tab", main)
        session.register("Page", tab).encode({"kept": True})
        main.unregister()
        tab.unregister()
        broker = Broker(PATH, script)
    assert broker.states() == [{"kept": True}] and sorted(removed) == [("Main",), ("Main", "Tab")], broker.calls


def parents_refused():
    """What has lost its parent without a broker keeps its state while the broker refuses to register that."""
    full, known, removed = [True], {}, []

    def script(method, params):
        path = [*(params.get("restorationParent") or []), params.get("restorationIdentifier")]
        if method == "registerObjectForStateRestoration":
            if path == ["Main"] and full[0]:
                return "storeFailed"
            if path[:-1] and path[:-1] not in known.values():
                return "unknownParent"
            known[len(known) + 1] = path
            return {"object": len(known)}
        if method == "unregisterObject":
            removed.append(known[params["object"]])
        return {}

    with alone() as session:
        tab = session.register("Tab", session.register("Main"))
        tab.encode({"kept": True})
        session.object_at("Main").unregister()
        broker = Broker(PATH, script)
        eventually(lambda: len(broker.of("registerObjectForStateRestoration")) > 5)
        full[0] = False
        eventually(lambda: session._memory is None)
        assert not tab.is_replaced
    assert broker.states() == [{"kept": True}] and removed == [["Main"]], broker.calls


def silent():
    """No object is lost if a broker stands still while it is told of them. It is not asked for each of them."""
    for method in ("registerObjectForStateRestoration", "encodeRestorableState"):
        with alone() as session:
            for name in ("Gone", "Main", "Other"):
                session.register(name).encode({"of": name})
            session.object_at("Gone").unregister()
            loud = threading.Event()
            gives_up(session, lambda called: called == method and not loud.is_set())
            broker = Broker(PATH, lambda called, _: None if called == method and not loud.is_set() else {})
            eventually(lambda: len(broker.of("initialize")) > 1)
            called = [called for called, _ in broker.calls]
            assert called[:called.index("initialize", 1)].count(method) == 1, called
            loud.set()
            eventually(lambda: session._memory is None)
            assert not session.object_at("Main").is_replaced
        assert {state["of"] for state in broker.states()} == {"Main", "Other"}, broker.calls
        assert broker.of("unregisterObject"), broker.calls
        broker.end()


def silent_later():
    """A broker that has refused states, and then answers nothing, holds the program up for one of them."""
    restorationd.Session._look_later = lambda session: None
    quiet = []
    with alone() as session:
        gives_up(session, quiet.__contains__)
        for name in "abc":
            session.register(name).encode({"of": name})
        broker = Broker(PATH, refuses)
        session._look()
        quiet.append("encodeRestorableState")
        broker.script = lambda method, params: None if method in quiet else {}
        session._look()
        assert len(broker.states()) == 4 and session._memory, broker.calls
        quiet.clear()
        session._look()
        assert session._memory is None and len(broker.states()) == 7, broker.calls


def comes_and_goes():
    """A session that has told a broker half stays in memory, and tells the next one all of it."""
    restorationd.Session._look_later = lambda session: None
    told = []
    with alone(patience=30, on_reconnected=told.append) as session:
        main, other = session.register("Main"), session.register("Other")
        for each in (main, other):
            each.encode({"of": each.path[0], "main": main})
        session.extend()

        def script(method, params):
            ends = method == "encodeRestorableState" and params["state"]["of"] == "Other"
            return ConnectionError if ends else {}

        broker = Broker(PATH, script)
        session._look()
        assert broker.ended and session._is_alone and not told
        assert main.decode()["of"] == "Main" and main.decode()["main"].object is main
        other.encode({"of": "the other", "main": main})
        session.register("New", main).encode({"of": "New"})
        main.rename("Renamed")
        assert other.decode()["main"].path == ("Renamed",)
        broker = Broker(PATH)
        session._look()
        assert told == [False] and session._memory is None
    registrations = broker.of("registerObjectForStateRestoration")
    registered = [params["restorationIdentifier"] for params in registrations]
    assert registrations[registered.index("Renamed")]["fresh"], registrations
    assert [state["of"] for state in broker.states()] == ["Main", "the other", "New"], broker.calls
    assert broker.states()[1]["main"] == {"$restorable": 100 + registered.index("Renamed")}, broker.calls
    # What another object at that path has stored has a lower number.
    numbers = [params["revision"] for params in broker.of("encodeRestorableState")]
    assert numbers[0] > numbers[1], numbers
    assert len(broker.of("extendStateRestoration")) == 1


def comes_and_goes_in_asyncio():
    async def main():
        async with restorationd.AsyncSession("org.example.Notes", socket=PATH, patience=30) as session:
            objects = [await session.register(name) for name in ("Main", "Other")]
            for each in objects:
                await each.encode({"of": each.path[0]})
            begun = asyncio.Event()
            loop = asyncio.get_running_loop()

            def script(method, params):
                if method == "encodeRestorableState" and params["state"]["of"] == "Other":
                    loop.call_soon_threadsafe(begun.set)
                    return None if not ends.is_set() else {}
                return {}

            ends = threading.Event()
            broker = Broker(PATH, script)
            await begun.wait()
            waits = asyncio.ensure_future(session.register("New"))
            assert await objects[0].encode({"of": "the new Main"})
            broker.end()
            assert (await asyncio.wait_for(waits, 5)).restoration == "none" and session._is_alone
            ends.set()
            broker = Broker(PATH)
            while session._memory:
                await asyncio.sleep(0.01)
            assert {state["of"] for state in broker.states()} == {"the new Main", "Other"}, broker.calls

    asyncio.run(asyncio.wait_for(main(), 10))


def decodes_what_is_kept():
    """While a broker refuses a state, it is decoded from memory; whatever is newer is not replaced by it."""
    restorationd.Session._look_later = lambda session: None
    full = [True]

    def script(method, params):
        return "storeFailed" if full[0] and method == "encodeRestorableState" else {}

    with alone() as session:
        main = session.register("Main")
        main.encode({"from": "memory"})
        broker = Broker(PATH, script)
        session._look()
        assert not session._is_alone and main.decode().state == {"from": "memory"}
        main.encode_later({"from": "later"})
        assert main.decode().state == {"from": "later"}
        broker.end()
        full[0] = False
        broker = Broker(PATH, script)
    assert [state["from"] for state in broker.states()][-1] == "later", broker.calls
    broker.end()

    async def main():
        async with restorationd.AsyncSession("org.example.Notes", socket=PATH) as session:
            main = await session.register("Main")
            await main.encode({"from": "memory"})
            full[0] = True
            broker = Broker(PATH, script)
            while session._is_alone or not session._memory._is_told:
                await asyncio.sleep(0.01)
            assert (await main.decode()).state == {"from": "memory"}
            await main.encode_later({"from": "later"})
            assert (await main.decode()).state == {"from": "later"}
            full[0] = False
            while session._memory:
                await asyncio.sleep(0.01)
            assert broker.states()[-1] == {"from": "later"}, broker.calls

    asyncio.run(asyncio.wait_for(main(), 10))


def refuses(method, _):
    """A broker whose disk is full."""
    return "storeFailed" if method == "encodeRestorableState" else {}


def asks(session, method, **params):
    """The broker calls the session, which returns its answer."""
    return session._drive(session._reply({"id": 1, "method": method, "params": params}), session._perform)


def asked_meanwhile():
    """A state that a round was given is not replaced by an older one in memory, and refers to the same objects."""
    restorationd.Session._look_later = lambda session: None
    with alone(serving=True) as session:
        main, tab = session.register("Main", encode=lambda: {"from": "a round", "front": tab}), session.register("Tab")
        main.encode({"from": "memory", "front": tab})
        broker = Broker(PATH, refuses)
        session._look()
        objects = [{"object": main.handle, "path": ["Main"]}]
        assert "a round" in asks(session, "encodeRestorableStateWithCoder", round=1, objects=objects)
        assert main.decode()["front"].object is tab
        broker.end()
        broker = Broker(PATH, handles=500)
    assert broker.states() == [{"from": "a round", "front": {"$restorable": 501}}], broker.calls


def unregistered():
    """The state of an object that is unregistered while a broker refuses it becomes that of no other object."""
    restorationd.Session._look_later = lambda session: None
    with alone() as session:
        gone, main = session.register("Gone"), session.register("Main")
        gone.encode({"of": "Gone"})
        main.encode({"front": gone})
        broker = Broker(PATH, refuses)
        session._look()
        gone.unregister()
        broker.end()
        broker = Broker(PATH)
        session._look()
        for call in (gone.encode, lambda state: main.encode({"front": gone})):
            with contextlib.suppress(restorationd.BrokerError):
                call({"of": "Gone"})
    assert broker.states() == [{"front": {"$restorable": None}}, {"front": {"$restorable": 0}}], broker.calls


def makes_objects():
    """A factory gets the state of its object, even while the application's own is still in memory."""
    restorationd.Session._look_later = lambda session: None

    def script(method, params):
        saved = method == "decodeRestorableState" and {"status": "available", "state": {"of": params["object"]}}
        return saved or refuses(method, params)

    with alone(serving=True) as session:
        session.encode({"of": "the application"})
        wanted = []
        session.register_class("Tab", wanted.append)
        Broker(PATH, script)
        session._look()
        asks(
            session, "objectWithRestorationIdentifierPath", identifierPath=["Tab"], restorationClass="Tab",
            deferred=True)
        assert [each.state for each in wanted] == [{"of": ["Tab"]}], wanted
        assert session.decode().state == {"of": "the application"}


def renewed_meanwhile():
    """What a callback saves while states are told is neither replaced by an older one nor forgotten."""
    restorationd.Session._look_later = lambda session: None
    for names in ("ABC", "BAC"):
        with alone() as session:
            things = {name: session.register(name) for name in names}
            for name in names:
                things[name].encode({"of": name})
            broker = Broker(PATH, lambda method, params: ConnectionError if params.get("state") == {"of": "C"} else {})
            send, renewed = session._send, []

            def call_back(data, end):
                send(data, end)
                if b'"of":"A"' in data and not renewed:
                    renewed.append(True)
                    things["B"].encode({"of": "the new B"})

            session._send = call_back
            session._look()
            assert broker.ended and session._is_alone
            assert things["B"].decode().state == {"of": "the new B"}, names
            things["B"].rename("Renamed")
            broker = Broker(PATH)
            session._look()
            assert session._memory is None
        assert sorted(state["of"] for state in broker.states()) == ["A", "C", "the new B"], (names, broker.calls)
        broker.end()


def renewed_by_two_threads():
    """What another thread pushes while memory notes that the broker has a state does not count as saved."""
    restorationd.Session._look_later = lambda session: None
    with alone() as session:
        main = session.register("Main")
        main.encode({"of": "memory"})
        keep, pushing = restorationd._Memory.encodeRestorableState, []

        def meanwhile(memory, object, state, **more):
            kept = keep(memory, object, state, **more)
            if state == {"of": "a callback"}:
                pushing.append(threading.Thread(target=lambda: main.encode({"of": "another thread"})))
                pushing[0].start()
                pushing[0].join(0.1)  # it waits for memory
            return kept

        restorationd._Memory.encodeRestorableState = meanwhile
        broker, send = Broker(PATH), session._send

        def call_back(data, end):
            send(data, end)
            if b'"of":"memory"' in data:
                session.call("encodeRestorableState", {"object": main.handle, "state": {"of": "a callback"}})
                pushing[0].join()

        session._send = call_back
        session._look()
        assert session._memory is None
    assert [state["of"] for state in broker.states()] == ["memory", "a callback", "another thread"], broker.calls


def waits_long():
    """Where a session waits for a broker that is being restarted, this one may come late: the machine may be busy."""
    gap = restorationd._Session._gap
    restorationd._Session._gap = lambda session, error: 20 * gap(session, error)


def starts_while_a_broker_ends():
    """A broker that ends while a program starts is awaited like one that is gone."""
    waits_long()

    async def register():
        async with restorationd.AsyncSession("org.example.Notes", socket=PATH) as session:
            await session.register("Main")

    for answer, is_async in itertools.product((ConnectionError, "shuttingDown"), (False, True)):
        found = []

        def script(method, params):
            if not found:
                threading.Timer(0.05, lambda: (first.ended or first.end(), found.append(Broker(PATH)))).start()
                found.append(None)
            return answer

        first = Broker(PATH, script)
        if is_async:
            asyncio.run(register())
        else:
            with alone() as session:
                session.register("Main")
        eventually(lambda: len(found) > 1)
        params, = found[1].of("registerObjectForStateRestoration")
        assert "fresh" not in params, (answer, is_async)
        found[1].end()


def gap():
    """If a broker is being restarted, a program that starts waits for it; if there was none, it does not wait."""
    waits_long()

    def comes(path):
        threading.Timer(0.1, lambda: found.append(Broker(path))).start()

    async def register(path):
        async with restorationd.AsyncSession("org.example.Notes", socket=path) as session:
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
            with restorationd.Session("org.example.Notes", socket=place) as session:
                session.register("Main")
        eventually(lambda: found)
        params, = found[0].of("registerObjectForStateRestoration")
        assert "fresh" not in params, place
        found[0].end()

    def fail(seconds):
        raise AssertionError(f"it waits for {seconds}")

    setattr(restorationd.time, "sleep", fail)
    assert alone().open()._is_alone
    os.rmdir(directory)
    assert restorationd.Session("org.example.Notes", socket=os.path.join(directory, "broker.sock")).open()._is_alone


def ends_soon():
    """A session that ends waits neither for parents of other processes nor for each answer of a silent broker."""
    restorationd.Session._look_later = lambda session: None
    for answer in (lambda params: "unknownParent", lambda params: None):
        session = alone().open()
        for name in "abcdef":
            session.register(name, "Elsewhere", wait=30)
        broker = Broker(PATH, lambda method, params: answer(params) if method.startswith("registerObject") else {})
        begin = restorationd.time.monotonic()
        session.close()
        assert restorationd.time.monotonic() - begin < 3, restorationd.time.monotonic() - begin
        waits = [params.get("awaitParentMilliseconds") for params in broker.of("registerObjectForStateRestoration")]
        assert waits and set(waits) == {None}, waits
        broker.end()

    async def main():
        session = await restorationd.AsyncSession("org.example.Notes", socket=PATH).open()
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
    broker.end()
    restorationd._REMOVED_MAX = 3
    with alone() as session:
        for name in "abcde":
            session.register(name).unregister()
        broker = Broker(PATH)
    removed = [params["restorationIdentifier"] for params in broker.of("registerObjectForStateRestoration")]
    assert removed == ["c", "d", "e"]


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
    assert said(broker) == ["complete"]
    broker.end()
    # A broker that has gone, or answered nothing, before it was told everything: another one, or the same again.
    restorationd.Session._look_later = lambda session: None
    for is_same in (False, True):
        with alone() as session:
            gives_up(session, lambda _: len(said(broker)) == 1)
            session.extend()
            session.extend()
            broker = Broker(PATH, lambda method, _: None if len(said(broker)) == 2 else {})
            session._look()
            assert session._is_alone and said(broker) == ["extend", "extend"]
            assert session.complete() == 1
            for _ in range(1000):
                session.extend()
                session.complete()
            broker.script = lambda method, params: {}
            if not is_same:
                broker.end()
                broker = Broker(PATH)
            session._look()
            assert session._memory is None
        assert said(broker) == (["extend", "extend", "complete"] if is_same else ["extend"]), said(broker)
        broker.end()
    with alone() as session:
        session.complete()
        session.extend()
        broker = Broker(PATH)
    assert said(broker) == ["complete", "extend"]


def said(broker):
    """What holds back and completes the restoration."""
    ends = ("extendStateRestoration", "completeStateRestoration")
    return [method.replace("StateRestoration", "") for method, _ in broker.calls if method in ends]


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
            except restorationd.RestorationError:
                continue
            raise AssertionError(f"{method} {params}")


class Tab:
    title = restorationd.restorable("")


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


def serves():
    """A session that only serves pushes again what the broker has refused."""
    session = alone(serving=True).open()
    session.register("Main").encode({"kept": True})
    broker = Broker(PATH, refuses)
    serving = threading.Thread(target=session.serve)
    serving.start()
    eventually(broker.states)
    broker.script = lambda method, params: {}
    eventually(lambda: session._memory is None)
    session.close()
    serving.join()


def nested():
    """If a callback ends the session while states are saved, nothing is saved twice."""
    restorationd.Session._look_later = lambda session: None
    with alone() as session:
        session.register("Main").encode({"kept": True})
        session.register("Gone").unregister()
        broker, read = Broker(PATH), session._read
        session._read = lambda end: (None if session._is_alone else session._look()) or read(end)  # as from a callback
        session._look()
    assert broker.states() == [{"kept": True}] and len(broker.of("unregisterObject")) == 1, broker.calls


def changed_meanwhile():
    """What a callback unregisters or renames while the first broker is told is not known to the next one either."""
    restorationd.Session._look_later = lambda session: None
    ways = {"unregister": lambda thing: thing.unregister(), "rename": lambda thing: thing.rename("Renamed")}
    # The broker has been told of A, is told of B, and not of C yet. It answers a change, or is gone.
    for (way, change), name, is_answered in itertools.product(ways.items(), "ABC", (True, False)):
        with alone(patience=0.1) as session:
            things = {each: session.register(each) for each in "ABC"}
            for each, thing in things.items():
                thing.encode({"of": each})

            def script(method, params):
                if method in ("unregisterObject", "setRestorationIdentifier"):
                    return {"path": ["Renamed"]} if is_answered else ConnectionError
                return ConnectionError if method == "encodeRestorableState" else {}

            broker, send, changed = Broker(PATH, script), session._send, []

            def call_back(data, end):
                send(data, end)
                if b'"restorationIdentifier":"B"' in data and not changed:
                    changed.append(True)
                    change(things[name])

            session._send = call_back
            session._look()
            assert broker.ended and session._is_alone, (way, name, is_answered)
            names = [params["restorationIdentifier"] for params in broker.of("registerObjectForStateRestoration")]
            assert (way == "rename" and name != "A") == ("Renamed" in names), (way, name, names)
            assert name != "C" or names.count("C") == 1, names  # to remove what an earlier run has saved there
            broker = Broker(PATH)
            session._look()
            assert session._memory is None
        names = [params["restorationIdentifier"] for params in broker.of("registerObjectForStateRestoration")]
        assert sorted(names) == sorted(["A", "B", "C"] + ["Renamed"] * (way == "rename")), (way, name, broker.calls)
        removed, = broker.of("unregisterObject")
        assert removed["object"] == 100 + names.index(name), (way, name, is_answered, broker.calls)
        states = sorted(state["of"] for state in broker.states())
        assert states == sorted(set("ABC") - (set(name) if way == "unregister" else set())), broker.calls
        broker.end()


class Known:
    """Answers as a broker that knows paths: nothing has a parent that is not registered. It keeps the last states."""

    def __init__(self, refuses=lambda method, params: None):
        self.paths, self.states, self.refuses, self.handles = {}, {}, refuses, itertools.count(100)

    def path(self, parent, name):
        above = self.paths.get(parent) if isinstance(parent, int) else tuple(parent or ())
        return None if above and above not in self.paths.values() else (*(above or ()), name)

    def move(self, handle, path):
        before = self.paths[handle]
        for other, each in self.paths.items():
            if each[:len(before)] == before:
                self.paths[other] = (*path, *each[len(before):])

    def __call__(self, method, params):
        handle, refusal = params.get("object"), self.refuses(method, params)
        if refusal:
            return refusal
        if method == "registerObjectForStateRestoration":
            path = self.path(params.get("restorationParent"), params["restorationIdentifier"])
            if path is None:
                return "unknownParent"
            handle = next((handle for handle, each in self.paths.items() if each == path), None) or next(self.handles)
            self.paths[handle] = path
            return {"object": handle, "path": path}
        if method.startswith("set"):
            handles = [child if isinstance(child, int) else None for child in params.get("children", [handle])]
            for place, each in enumerate(handles):
                if each not in self.paths:
                    return "unknownObject"
                name, parent = self.paths[each][-1], self.paths[each][:-1]
                if method == "setRestorationIdentifier":
                    path = self.path(parent, params["restorationIdentifier"])
                elif method == "setRestorationParent":
                    path = self.path(params["restorationParent"], name)
                else:
                    path = self.path(handle, f"{name}#{place}")
                if path is None:
                    return "unknownParent"
                self.move(each, path)
            paths = [self.paths[each] for each in handles]
            return {"path": paths[0], "paths": paths}
        if method == "unregisterObject":
            self.paths.pop(handle if isinstance(handle, int) else None, None)
        if method == "encodeRestorableState":
            if handle not in self.paths:
                return "unknownObject"
            self.states[handle] = params["state"]
        return {}

    def saved(self):
        return {"/".join(self.paths[handle]): state["of"] for handle, state in self.states.items()
                if handle in self.paths}


def _changes_while_told(names, during, change, refuses=lambda method, params: None):
    """A callback changes objects right after the broker was asked to register one. What is saved afterwards."""
    restorationd.Session._look_later = lambda session: None
    with alone(patience=0.1) as session:
        things = {}
        for name in names:
            *above, identifier = name.split("/")
            things[name] = session.register(identifier, things["/".join(above)] if above else None)
            things[name].encode({"of": name})
        known = Known(refuses)
        broker, send, changed = Broker(PATH, known), session._send, []

        def call_back(data, end):
            send(data, end)
            if f'"restorationIdentifier":"{during}"'.encode() in data and not changed:
                changed.append(None)
                try:
                    change(things)
                except restorationd.RestorationError as error:
                    changed.append(error)

        session._send = call_back
        for _ in range(3):
            session._look()
        assert changed == [None] and session._memory is None and not session._is_alone, (changed, broker.calls)
        for name, thing in things.items():
            assert not thing.is_replaced, (name, broker.calls)
            assert thing._is_gone or known.paths[thing.handle] == thing.path, (name, thing, known.paths)
        paths = [thing.path for thing in things.values() if not thing._is_gone]
        assert sorted(known.paths.values()) == sorted(paths), (known.paths, paths)
    broker.end()
    return known.saved()


def parents_change_meanwhile():
    """What awaits a broker that is being told follows if a callback changes what is above it."""
    nested, saved = ["A", "B", "A/C", "A/C/D"], {"A": "A", "B": "B", "A/C": "A/C", "A/C/D": "A/C/D"}
    for during in "BC":
        found = _changes_while_told(nested, during, lambda things: things["A"].rename("R"))
        assert found == {name.replace("A", "R"): of for name, of in saved.items()}, (during, found)
        found = _changes_while_told(nested, during, lambda things: things["A"].move(["B"]))
        assert found == {name.replace("A", "B/A"): of for name, of in saved.items()}, (during, found)
    found = _changes_while_told(nested, "B", lambda things: things["A"].unregister())
    assert found == {name: of for name, of in saved.items() if name != "A"}, found


def moved_below_meanwhile():
    """A callback may move objects below one that the broker has still to be told of."""
    found = _changes_while_told(["A", "B", "D"], "A", lambda things: things["B"].move(["D"]))
    assert found == {"A": "A", "D": "D", "D/B": "B"}, found


def names_what_awaits():
    """A change that a callback asks for may name objects that the broker has still to be told of."""
    found = _changes_while_told(["A", "B", "D"], "A", lambda things: things["B"].move(things["D"]))
    assert found == {"A": "A", "D": "D", "D/B": "B"}, found
    for during in "BD":
        found = _changes_while_told(["A", "B", "D", "D/E"], during, lambda things: things["A"].move(things["D/E"]))
        assert found == {"B": "B", "D": "D", "D/E": "D/E", "D/E/A": "A"}, found
    for during in "ADE":
        found = _changes_while_told(
            ["A", "A/D", "A/E"], during, lambda things: things["A"].set_children([things["A/E"], things["A/D"]]))
        assert found == {"A": "A", "A/E#0": "A/E", "A/D#1": "A/D"}, (during, found)
    made = []
    found = _changes_while_told(
        ["A", "B", "D"], "B", lambda things: made.append(things["D"]._session.register("New", things["D"])) or
        made[0].unregister())
    assert found == {"A": "A", "B": "B", "D": "D"} and made, found


def changed_while_registered():
    """A refusal of an object that a callback has unregistered or renamed meanwhile is one of what it was."""
    def refuses(method, params):
        refused = method.startswith("registerObject") and params["restorationIdentifier"] == "B"
        return "duplicatePath" if refused else None

    found = _changes_while_told(["A", "B"], "B", lambda things: things["B"].rename("R"), refuses)
    assert found == {"A": "A", "R": "B"}, found
    found = _changes_while_told(["A", "B"], "B", lambda things: things["B"].unregister(), refuses)
    assert found == {"A": "A"}, found


def _slow(method):
    """A broker that takes its time for the first call of a method, and when that has begun."""
    begun, may_answer, calls_waited = threading.Event(), threading.Event(), []

    def script(called, params):
        if called == method and not begun.is_set():
            begun.set()
            calls_waited.append(not may_answer.wait(2))
        return {}

    return Broker(PATH, script), begun, may_answer, calls_waited


_TELLING = ("initialize", "registerObjectForStateRestoration", "encodeRestorableState", "extendStateRestoration")


def slow():
    """While the first broker is told, which may be slow, other threads push and read states in memory."""
    restorationd.Session._look_later = lambda session: None
    for method in _TELLING:
        with alone() as session:
            main, other = session.register("Main"), session.register("Other")
            main.encode({"count": 1})
            session.extend()
            broker, begun, may_answer, calls_waited = _slow(method)
            telling = threading.Thread(target=session._look)
            telling.start()
            assert begun.wait(5)
            assert main.encode({"count": 2, "other": other}) and main.decode()["count"] == 2
            assert main.decode()["other"].object is other
            other.encode_later({"count": 3})
            assert session.encode({"count": 4}) and other.decode()["count"] == 3 and session.decode()["count"] == 4
            may_answer.set()
            telling.join()
            assert session._memory is None and calls_waited == [False], method
            handles = main.handle, other.handle
        last = {str(params["object"]): params["state"] for params in broker.of("encodeRestorableState")}
        assert last[str(handles[0])] == {"count": 2, "other": {"$restorable": handles[1]}}, (method, broker.calls)
        assert last[str(handles[1])] == {"count": 3} and last["[]"] == {"count": 4}, (method, broker.calls)
        broker.end()


def slow_at_the_end():
    """A session that is closed while a slow broker is told waits for that: what a push was promised is saved."""
    restorationd.Session._look_later = lambda session: None

    ends = (lambda session: session.close(), lambda session: session.__exit__(KeyError, KeyError(), None))
    for end, method in zip(ends, ("initialize", "registerObjectForStateRestoration")):
        session = alone().open()
        main = session.register("Main")
        main.encode({"count": 1})
        broker, begun, may_answer, _ = _slow(method)
        telling = threading.Thread(target=session._look)
        telling.start()
        assert begun.wait(5) and main.encode({"count": 2})
        answering = threading.Timer(1.2, may_answer.set)
        answering.start()
        end(session)
        telling.join()
        answering.join()
        assert broker.states()[-1:] == [{"count": 2}], (method, broker.calls)
        broker.end()


def slow_at_the_end_in_asyncio():
    async def main(method):
        session = await restorationd.AsyncSession("org.example.Notes", socket=PATH).open()
        main = await session.register("Main")
        await main.encode({"count": 1})
        broker, begun, may_answer, _ = _slow(method)
        while not begun.is_set():
            await asyncio.sleep(0.01)
        assert await main.encode({"count": 2})
        threading.Timer(1.2, may_answer.set).start()
        await session.__aexit__(KeyError, KeyError(), None)
        assert broker.states()[-1:] == [{"count": 2}], (method, broker.calls)
        broker.end()

    asyncio.run(asyncio.wait_for(main("initialize"), 10))


def slow_in_asyncio():
    async def main(method):
        async with restorationd.AsyncSession("org.example.Notes", socket=PATH) as session:
            main, other = [await session.register(name) for name in ("Main", "Other")]
            await main.encode({"count": 1})
            await session.extend()
            broker, begun, may_answer, calls_waited = _slow(method)
            while not begun.is_set():
                await asyncio.sleep(0.01)
            assert await main.encode({"count": 2, "other": other}) and (await main.decode())["count"] == 2
            await other.encode_later({"count": 3})
            assert await session.encode({"count": 4}) and (await other.decode())["count"] == 3
            may_answer.set()
            while session._memory:
                await asyncio.sleep(0.01)
            assert calls_waited == [False], method
        assert sorted(state["count"] for state in broker.states())[-3:] == [2, 3, 4], (method, broker.calls)
        broker.end()

    for method in _TELLING:
        asyncio.run(asyncio.wait_for(main(method), 10))


def start(name):
    """In a process of its own, which leaves nothing of what a scenario changes in the library."""
    global PATH
    child = os.fork()
    if child:
        return child
    signal.alarm(60)  # the status of a scenario that hangs names it
    with tempfile.TemporaryDirectory() as directory:
        PATH, status = os.path.join(directory, "broker.sock"), 1
        try:
            globals()[name]()
            status = 0
        except BaseException:
            traceback.print_exc()
    os._exit(status)


if __name__ == "__main__":
    # All at once: they wait more than they compute.
    children = {name: start(name) for name in sys.argv[1:]}
    failed = [name for name, child in children.items() if os.waitpid(child, 0)[1]]
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)
