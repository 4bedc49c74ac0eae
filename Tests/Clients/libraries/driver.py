#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes commands of a test with Protocol/clients/python: driver.py sync|async SOCKET

A line of standard input is a JSON object with a member `do`, and is answered by one line: {ok: …} or {error: {code,
message, data}}. Between commands the broker is answered. The same lines are known to driver.c. The module is that of
PYTHONPATH, so that an installed one can be tested.

  open {application, process?, serving?, patience?, without_broker?, takeOver?}      -> restoration
  together {application, identifiers}   opens a session by registering them at once, with asyncio        -> null
  register {identifier, parent?, restorationClass?, wait?, kind?, fresh?}
                                                 -> {path, state, existing?, handing?}; the parent is a path
  set {name, state, elements?}  what its encode callback gives: null for unchanged, "fail" for a failure, in the factory
                             and in decode as well, or {fail: number} for one with so long a message; {instead: "awaited",
                             "pass" or "forget"} is what the factory answers
  source {name, rows}        registers a data source of a view that shows the model identifiers `rows`           -> null
  push {name, state? | bytes?}                                 -> whether it was stored; `bytes` long text
  later {name, state}        pushes without waiting                                              -> null
  large {name, digits}       pushes large numbers, and what they are read as: is it all the same?            -> bool
  unwritable {name}          pushes what JSON has no form for
  interrupted {name, bytes}  pushes in a `with` block that a signal ends                          -> what came out of it
  pass {from, to}            reads the bytes and the date of a state and writes them to another one
                                                               -> {bytes: [number, ...], milliseconds}, as it read them
  at {path}                  the program's own object there    -> its name, or null
  referred {name, key}       the program's own object that a reference in a decoded state leads to -> its name, or null
  twice {identifier}         registers another object of the program under the path
  decode {name}                                  -> {status, state, elements?}; of a long text its length
  forget {path}              forgets what no session has                                          -> null
  invalidate, unregister {name}; rename {name, identifier}; move {name, parent}      -> null
  class {restorationClass, shared?}   makes objects of the path's last component                 -> null
  save, complete, goodbye {reason}, close                      -> what the broker answers
  restore {deadline}                                           -> what the broker answers
  call {method, params, timeout?}                              -> what the broker answers
  notify {method, params}                                      -> null
  fork {name, identifier}    a child uses the session, lets it go, and pushes with its own    -> [[call, outcome], ...]
  threads {names, count}     a thread for each name pushes {"count": 1...count}, others serve; then closes -> all true?
  log                        -> [[what, name, ...], ...] since it was asked last: encode, decode, finished, reconnected,
                             archiveLost with the host
  errors                     -> what the library has logged as errors; each counts as `error`
  logged                     -> what it has logged otherwise: [[level, message], ...]
  wrong {what, members}      what the library says of arguments of the program's: register, save, session, load, store
                                                                                                 -> text
  await {what, count}        serves until it has happened so often                               -> count
  objects                    -> {name: [path, is it replaced]}
"""

import asyncio
import datetime
import decimal
import gc
import inspect
import json
import logging
import os
import select
import signal
import sys
import threading

import restorationd


class Driver:
    def __init__(self, kind, socket):
        self.kind = kind
        self.socket = socket
        self.session = None
        self.objects = {}
        self.states = {}
        self.elements = {}
        self.events = []
        self.errors = []
        self.messages = []
        self.counts = {}
        self.things = {}

    def note(self, what, *more):
        self.events.append([what, *more])
        self.count(what)

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def encode(self, name):
        self.note("encode", name)
        self.fail(name)
        state = long(self.states.get(name))
        return restorationd.Snapshot(state, self.elements[name]) if self.elements.get(name) else state

    def decode(self, name, saved):
        self.note("decode", name, short(saved.state))
        self.fail(name)

    def fail(self, name):
        state = self.states.get(name)
        if state == "fail":
            raise ValueError("there is none now")
        if isinstance(state, dict) and "fail" in state:
            raise ValueError("x" * state["fail"])

    def factory(self, wanted):
        name = wanted.path[-1]
        self.note("create", "/".join(wanted.path))
        self.fail(name)
        state = self.states.get(name)
        if isinstance(state, dict) and "instead" in state:
            return restorationd.Instead(state["instead"])
        made = wanted.register(**self.callbacks(name))
        if not inspect.isawaitable(made):
            self.objects[name] = made
            return made

        async def wait():
            self.objects[name] = await made
            return self.objects[name]

        return wait()

    def callbacks(self, name):
        target = self.things.setdefault(name, Thing(name))
        if not self.session.serving:
            return {"target": target}
        return {
            "target": target,
            "encode": lambda: self.encode(name),
            "decode": lambda saved: self.decode(name, saved),
            "finished": lambda: self.note("finished", name),
        }

    def notified(self, method, params):
        if method == "archiveLost":
            self.note(method, params["host"])

    def do_open(
            self, application, process=None, serving=True, patience=10, without_broker="fails", takeOver=False):
        kind = restorationd.Session if self.kind == "sync" else restorationd.AsyncSession
        session = kind(
            application, process=process, socket=self.socket, serving=serving, patience=patience,
            without_broker=without_broker, take_over=takeOver, on_notification=self.notified,
            on_reconnected=lambda same: self.note("reconnected", same))
        yield session.open()
        self.session = session
        return session.restoration

    def do_together(self, application, identifiers):
        self.session = restorationd.AsyncSession(application, socket=self.socket)
        things = yield asyncio.gather(*(self.session.register(each) for each in identifiers))
        self.objects.update(zip(identifiers, things))

    def do_register(
            self, identifier, parent=None, restorationClass=None, wait=None, kind="object", fresh=False):
        self.states.setdefault(identifier, None)
        self.objects[identifier] = thing = yield self.session.register(
            identifier, parent, restoration_class=restorationClass, wait=wait, kind=kind, fresh=fresh,
            **self.callbacks(identifier))
        answer = {"path": thing.path, "state": thing.restoration}
        return {**answer, **{name: True for name in ("existing", "handing") if getattr(thing, name)}}

    def do_set(self, name, state, elements=()):
        self.states[name], self.elements[name] = state, elements
        return None
        yield

    def do_source(self, name, rows):
        yield self.session.register_data_source(self.objects[name], Rows(rows, self.kind))

    def do_push(self, name, state=None, bytes=None):
        state = state if bytes is None else {"text": "x" * bytes}
        return (yield self.objects[name].encode(state))

    def do_own(self, state):
        yield self.session.encode(state)
        return (yield self.session.decode()).state

    def do_later(self, name, state):
        yield self.objects[name].encode_later(state)

    def do_large(self, name, digits):
        state = {"n": [decimal.Decimal("7" * digits), decimal.Decimal("-1E+400"), 1.5, 3]}
        yield self.objects[name].encode(state)
        first = yield self.objects[name].decode()
        yield self.objects[name].encode(first.state)
        second = yield self.objects[name].decode()
        return first.state == state and second.state == state

    def do_unwritable(self, name):
        yield self.objects[name].encode({"set": {1}})

    def do_interrupted(self, name, bytes):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        session, self.session = self.session, None
        try:
            with session:
                self.objects[name].encode({"text": "x" * bytes})
        except BaseException as error:
            return type(error).__name__
        return None
        yield

    def do_pass(self, to, **command):
        saved = yield self.objects[command["from"]].decode()
        yield self.objects[to].encode({"data": saved["data"], "date": saved["date"]})
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return {
            "bytes": list(saved["data"]), "milliseconds": (saved["date"] - epoch) // datetime.timedelta(milliseconds=1)}

    def do_at(self, path):
        found = self.session.object_at(path)
        return found and found.target.name
        yield

    def do_referred(self, name, key):
        saved = yield self.objects[name].decode()
        found = saved[key].object
        return found and found.target.name

    def do_twice(self, identifier):
        yield self.session.register(identifier, **{**self.callbacks(identifier), "target": Thing("another")})

    def do_wrong(self, members, **command):
        kind = restorationd.Session if self.kind == "sync" else restorationd.AsyncSession
        call = {"register": lambda **more: self.session.register(**more), "save": lambda **more: self.session.save(**more),
                "session": lambda application=self.session.application, **more: kind(application, **more),
                "open": lambda **more: kind(self.session.application, socket=self.socket, **more).open(),
                "load": lambda **more: restorationd.load(socket=self.socket, **more),
                "store": lambda **more: restorationd.store(socket=self.socket, **more)}[command["what"]]
        try:
            result = call(**members)
            if inspect.isawaitable(result):
                yield result
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None
        yield

    def do_logged(self):
        messages, self.messages = self.messages, []
        return messages
        yield

    def do_decode(self, name):
        saved = yield self.objects[name].decode()
        answer = {"status": saved.status, "state": short(saved.state)}
        return {**answer, "elements": saved.elements} if saved.elements else answer

    def do_invalidate(self, name):
        yield self.objects[name].invalidate()

    def do_unregister(self, name):
        yield self.objects.pop(name).unregister()

    def do_forget(self, path):
        yield self.session.forget(path)

    def do_rename(self, name, identifier):
        yield self.objects[name].rename(identifier)

    def do_move(self, name, parent):
        yield self.objects[name].move(self.objects[parent])

    def do_class(self, restorationClass, shared=False):
        yield self.session.register_class(restorationClass, self.factory, shared)

    def do_save(self):
        return (yield self.session.save(deadline=15))

    def do_restore(self, deadline):
        return (yield self.session.restore(deadline))

    def do_complete(self):
        return (yield self.session.complete())

    def do_goodbye(self, reason):
        yield self.session.goodbye(reason)
        self.session = None

    def do_close(self):
        yield self.session.close()
        self.session = None

    def do_call(self, method, params, timeout=None):
        if timeout is not None:
            self.session.timeout = timeout
        return (yield self.session.call(method, params))

    def do_notify(self, method, params):
        yield self.session.notify(method, params)

    def do_fork(self, name, identifier):
        incoming, outgoing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                told = self.in_child(name, identifier)
                os.write(outgoing, json.dumps(told).encode())
            finally:
                os._exit(0)
        os.close(outgoing)
        with open(incoming, "rb") as answer:
            told = json.loads(answer.read() or b"null")
        os.waitpid(child, 0)
        return told
        yield

    def in_child(self, name, identifier):
        session, thing = self.session, self.objects[name]
        calls = {
            "encode": lambda: thing.encode({"child": True}), "decode": thing.decode, "invalidate": thing.invalidate,
            "encode_later": lambda: thing.encode_later({"child": True}), "register": lambda: session.register("Child"),
            "save": session.save, "goodbye": lambda: session.goodbye("closed"), "serve": session.serve,
            "open": session.open, "notify": lambda: session.notify("goodbye", {"reason": "closed"}),
        }
        if self.kind == "sync":
            calls["fileno"] = session.fileno
        told = [[what, self.outcome(call)] for what, call in calls.items()]
        leave = session.__exit__ if self.kind == "sync" else session.__aexit__
        told += [["exit", self.outcome(lambda: leave(None, None, None))], ["close", self.outcome(session.close)]]
        application, socket = session.application, session.socket
        self.session = self.objects = session = thing = calls = leave = None
        gc.collect()
        own = restorationd.Session(application, process="child", socket=socket)
        told.append(["own", self.outcome(lambda: own.open().register(identifier).encode({"of": "child"}))])
        own.goodbye("restart")
        return told

    def outcome(self, call):
        try:
            result = call()
            return asyncio.run(result) if inspect.isawaitable(result) else result
        except Exception as error:
            return type(error).__name__

    def do_threads(self, names, count):
        outcomes = []

        def run(work):
            try:
                outcomes.append(work())
            except Exception as error:
                outcomes.append(f"{type(error).__name__}: {error}")

        def push(thing):
            return all([thing.encode({"count": number}) for number in range(1, count + 1)])

        serving = [threading.Thread(target=run, args=[self.session.serve]) for _ in range(2)]
        pushing = [threading.Thread(target=run, args=[lambda name=name: push(self.objects[name])]) for name in names]
        for thread in serving + pushing:
            thread.start()
        for thread in pushing:
            thread.join()
        self.session.close()
        for thread in serving:
            thread.join()
        self.session = None
        return outcomes
        yield

    def do_log(self):
        events, self.events = self.events, []
        return events
        yield

    def do_errors(self):
        errors, self.errors = self.errors, []
        return errors
        yield

    def do_objects(self):
        return {name: [thing.path, thing.is_replaced] for name, thing in self.objects.items()}
        yield


class Rows:
    """Knows the rows of a view by their model identifiers."""

    def __init__(self, rows, kind):
        self.rows = rows
        self.kind = kind

    def identifier(self, index_path):
        return self.told(self.rows[index_path[-1]])

    def index_path(self, identifier):
        return self.told([0, self.rows.index(identifier)] if identifier in self.rows else None)

    def told(self, answer):
        if self.kind == "sync":
            return answer

        async def wait():
            return answer

        return wait()


class Thing:
    """An object of the program's own."""

    def __init__(self, name):
        self.name = name


class Log(logging.Handler):
    """What the library logs."""

    def __init__(self, driver):
        super().__init__()
        self.driver = driver

    def emit(self, record):
        if record.levelno < logging.ERROR:
            self.driver.messages.append([record.levelname, record.getMessage()])
            return
        self.driver.errors.append(record.getMessage())
        self.driver.count("error")


def long(state):
    """A state of the test may be given by its length."""
    return {"text": "x" * state["bytes"]} if isinstance(state, dict) and "bytes" in state else state


def short(state):
    return {"bytes": len(state["text"])} if state and len(state.get("text", "")) > 1000 else state


def failure(error):
    if isinstance(error, restorationd.BrokerError):
        return {"error": {"code": error.code, "message": error.message, "data": {
            "kind": error.kind, "hint": error.hint, "path": error.path and list(error.path)}}}
    kind = type(error).__name__[:-len("Error")]
    kinds = {"NoBroker": "noBroker", "ConnectionLost": "connectionLost", "CallTimedOut": "callTimedOut",
             "ArchiveLost": "fenced"}
    return {"error": {"code": 0, "message": str(error), "data": {"kind": kinds.get(kind, kind)}}}


def say(answer):
    print(json.dumps(answer, ensure_ascii=False), flush=True)


def start(driver, line):
    command = json.loads(line)
    return getattr(driver, "do_" + command.pop("do"))(**command)


class Input:
    """Whole lines of standard input."""

    def __init__(self):
        self.rest = b""

    def read(self):
        data = os.read(0, 1 << 16)
        *lines, self.rest = (self.rest + data).split(b"\n")
        return lines if data else None


def run_sync(driver):
    source = Input()
    while True:
        readable = [0]
        try:
            readable = select.select([0] + ([driver.session] if driver.session else []), [], [])[0]
            if driver.session in readable:
                driver.session.serve(0)
        except restorationd.ArchiveLostError:
            pass  # nothing more comes
        except restorationd.RestorationError as error:
            driver.note("failed", str(error))  # the next command may have more luck
        if 0 not in readable:
            continue
        lines = source.read()
        if lines is None:
            return
        for line in lines:
            command = json.loads(line)
            try:
                if command["do"] == "await":
                    while driver.counts.get(command["what"], 0) < command["count"]:
                        select.select([driver.session], [], [])
                        driver.session.serve(0)
                    say({"ok": driver.counts[command["what"]]})
                    continue
                steps, value = start(driver, line), None
                while True:
                    value = steps.send(value)
            except StopIteration as stop:
                say({"ok": stop.value})
            except Exception as error:
                say(failure(error))


async def run_async(driver):
    loop, source, waiting = asyncio.get_running_loop(), Input(), asyncio.Queue()
    happened = asyncio.Event()
    count = driver.count

    def counted(what):
        count(what)
        happened.set()

    driver.count = counted
    loop.add_reader(0, lambda: waiting.put_nowait(source.read()))
    while True:
        lines = await waiting.get()
        if lines is None:
            return
        for line in lines:
            command = json.loads(line)
            try:
                if command["do"] == "await":
                    while driver.counts.get(command["what"], 0) < command["count"]:
                        happened.clear()
                        await happened.wait()
                    say({"ok": driver.counts[command["what"]]})
                    continue
                steps = start(driver, line)
                step = steps.send(None)
                while True:
                    try:
                        value = await step
                    except Exception as error:
                        step = steps.throw(error)
                    else:
                        step = steps.send(value)
            except StopIteration as stop:
                say({"ok": stop.value})
            except Exception as error:
                say(failure(error))


if __name__ == "__main__":
    driver = Driver(*sys.argv[1:])
    logging.basicConfig()
    logging.getLogger("restoration").addHandler(Log(driver))
    logging.getLogger("restoration").setLevel(logging.INFO)
    if driver.kind == "sync":
        run_sync(driver)
    else:
        asyncio.run(run_async(driver))
