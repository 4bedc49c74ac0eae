#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads that share a session of Protocol/clients/python: threads.py SCENARIO SOCKET

Each function at the end is a scenario. It ends with status 0 on success.
"""

import asyncio
import contextlib
import os
import signal
import socket as sockets
import sys
import threading

import restorationd

APPLICATION = "org.example.Notes"
FOREVER = 3000


class Watched:
    """A lock that reports when a thread must wait for it."""

    def __init__(self, lock):
        self.lock = lock
        self.contended = threading.Event()

    def __enter__(self):
        if not self.lock.acquire(blocking=False):
            self.contended.set()
            self.lock.acquire()

    def __exit__(self, *error):
        self.lock.release()


class Running(threading.Thread):
    """Runs a function in a thread; `outcome()` waits for its result, or the name of its exception."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work = work
        self.start()

    def run(self):
        try:
            self.result = self.work()
        except Exception as error:
            self.result = type(error).__name__

    def outcome(self):
        self.join()
        return self.result


def opened(socket, **more):
    session = restorationd.Session(APPLICATION, socket=socket, serving=True, **more)
    session._lock = Watched(session._lock)
    return session.open()


def waiting(session, socket):
    """A thread whose call is pending until "Parent" is registered. The call is not sent twice."""
    session.register("Asked", encode=lambda: {"asked": True})
    child = {"restorationIdentifier": "Child", "restorationParent": ["Parent"],
             "awaitParentMilliseconds": FOREVER * 1000}
    register = "registerObjectForStateRestoration"
    thread = Running(lambda: session.call(register, child, timeout=FOREVER, repeatable=False)["path"])
    with restorationd.Session(APPLICATION, socket=socket) as other:
        assert other.save()["stale"] == []  # no other thread could have answered
    return thread


def lose(session):
    """Ends the connection as if the broker had ended."""
    with sockets.socket(fileno=os.dup(session.fileno())) as connection:
        connection.shutdown(sockets.SHUT_RDWR)


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def closes(socket):
    session = opened(socket)
    call = waiting(session, socket)
    session.close()
    equal(call.outcome(), "SessionEndedError")


def closes_while_reconnecting(socket):
    link = socket + ".link"
    for first in ("serve", "call"):
        os.symlink(socket, link)
        session = opened(link, patience=FOREVER)
        os.unlink(link)
        lose(session)
        works = {"serve": session.serve, "call": lambda: session.call("ping")}
        threads = {first: Running(works.pop(first))}
        threads.update((name, Running(work)) for name, work in works.items())
        session._lock.contended.wait()
        session.close()
        outcomes = {name: thread.outcome() for name, thread in threads.items()}
        equal(outcomes, {"serve": None, "call": "SessionEndedError"})


def closes_while_reconnecting_in_asyncio(socket):
    async def work():
        link = socket + ".link"
        os.symlink(socket, link)
        session = restorationd.AsyncSession(APPLICATION, socket=link, patience=FOREVER)
        await session.open()
        os.unlink(link)
        session._broken(session._writer)
        tasks = [asyncio.ensure_future(each) for each in (session.serve(), session.call("ping"))]
        cancelled = asyncio.ensure_future(session.call("ping"))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        await session.close()
        outcomes = await asyncio.gather(*tasks, cancelled, return_exceptions=True)
        equal([type(each).__name__ for each in outcomes], ["NoneType", "SessionEndedError", "CancelledError"])

    asyncio.run(work())


def ends_serving(socket):
    for _ in range(100):
        session = opened(socket, patience=0)
        serving = Running(session.serve)
        session.close()
        equal(serving.outcome(), None)


def opens_no_more(socket):
    session = opened(socket)
    call = waiting(session, socket)
    late = Running(session.open)
    session._lock.contended.wait()
    session.close()
    equal([call.outcome(), late.outcome()], ["SessionEndedError", "SessionEndedError"])


class Name(str):
    """A name that runs `looked_up` at its first lookup after that was set."""

    looked_up = None

    def __hash__(self):
        looked_up, self.looked_up = self.looked_up, None
        if looked_up:
            looked_up()
        return super().__hash__()


def registers_classes(socket):
    session = opened(socket)
    name, late = Name("First"), []
    session.register_class(name, lambda wanted: None)

    def look_up():
        late.append(Running(lambda: session.register_class("Late", lambda wanted: None)))
        session._lock.contended.wait()

    name.looked_up = look_up
    lose(session)
    session.call("ping")
    equal([thread.outcome() for thread in late], [None])
    session.goodbye("restart")


def forks(socket):
    session = opened(socket)
    editor = session.register("Editor")
    call = waiting(session, socket)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            for work in (lambda: editor.encode({}), session.open, session.serve, lambda: session.goodbye("closed")):
                equal(Running(work).outcome(), "SessionForkedError")
            session.close()
            with restorationd.Session(APPLICATION, socket=socket) as own:
                own.register("Own").encode({"of": "child"})
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    equal(os.waitpid(child, 0)[1], 0)
    with restorationd.Session(APPLICATION, socket=socket) as other:
        other.register("Parent")
        equal(call.outcome(), ["Parent", "Child"])
        equal(editor.encode({"of": "parent"}), True)
        equal(restorationd.load(APPLICATION, "Own", socket).state, {"of": "child"})
    session.goodbye("restart")


def stays_in_its_loop(socket):
    session = restorationd.AsyncSession(APPLICATION, socket=socket)
    home = asyncio.new_event_loop()
    Running(home.run_forever)

    def at_home(work):
        return asyncio.run_coroutine_threadsafe(work, home).result()

    at_home(session.open())
    editor = at_home(session.register("Editor"))

    async def elsewhere():
        calls = [lambda: editor.encode({"count": number}) for number in range(50)]
        calls += [lambda: editor.encode_later({}), session.open, session.serve, session.close,
                  lambda: session.goodbye("closed")]
        outcomes = await asyncio.wait_for(asyncio.gather(*(call() for call in calls), return_exceptions=True), 20)
        return {type(outcome).__name__ for outcome in outcomes}

    equal(asyncio.run(elsewhere()), {"RuntimeError"})
    equal(at_home(editor.encode({"count": 50})), True)
    at_home(session.goodbye("restart"))
    at_home(session.close())
    asyncio.run(session.close())  # any number of times
    home.call_soon_threadsafe(home.stop)


def ends_while_sessions_open(socket):
    """At the end of the program no session is left out because another thread opens one at that moment."""
    sys.setswitchinterval(1e-6)
    sessions = {restorationd.Session(APPLICATION, socket=socket).open() for _ in range(100)}
    pushed, has_ended = set(), threading.Event()
    restorationd.Session._push_last = lambda session: pushed.add(session)

    def opens():
        while not has_ended.is_set():
            with contextlib.suppress(restorationd.SessionEndedError):  # it ends with the program
                restorationd.Session(APPLICATION, socket=socket).open()

    opening = Running(opens)
    for _ in range(1000):
        restorationd._at_exit()
    has_ended.set()
    equal(opening.outcome(), None)
    assert pushed >= sessions


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
