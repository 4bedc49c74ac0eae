#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A process of an application that the broker calls: serving.py SOCKET

What it has and does is told by lines on standard input, the same for `serving.pl` and `restoration-test-client SOCKET
serving`. A line is a JSON object with a member `do`, and is answered by one line. Between commands, and while calls of
its own are pending, the process answers the broker. Needs only the standard library.

An object has a NAME: the components of the path it was registered under, joined by "/"; or what `register` calls it.

  open {application, process?, delegate?, bundleVersion?, aliases?, messageBytesMax?, serves?}
            serves everything, unless told what (not Swift)              -> {session, reason, state, generation}
  register {objects: [{identifier, parent?: NAME|PATH, name?, kind?, classes?, restorationClass?, position?, await?,
            takeOver?, confidential?, keep?, state?, elements?, encode?, decode?}]}
                                   -> {objects: [{name, path, included, state}]}; `await` are milliseconds
  set {name, state?, elements?, encode?, decode?}
            what the object answers: `encode` is null or "fail", and "later" or "missing", but not for Swift; `decode` is
            null or "crash"                                                                              -> {}
  application {state}              what the delegate writes at the beginning of a round                         -> {}
  def crash():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)


class {restorationClass}         its objects are registered when the broker asks for them                     -> {}
  dataSource {view: NAME|PATH, items}
            answers for that view: items are identifiers, or lists of them, one for each section. Again: new items -> {}
  push {names?}                    encodes these (or all) objects now    -> {results: {NAME: result or {error}}}
  decode {name}                    asks for one state                    -> {status}
  invalidate {name}                                                      -> {}
  save {reason?, deadlineMilliseconds?, wait?}                           -> what the broker answers
  restore {deadlineMilliseconds?, wait?}                                 -> what the broker answers
            with `wait` false -> {call}, and the answer is taken by: wait {call}
  extend, complete                                                       -> {pending}
  goodbye {reason}                                                       -> {}
  resume    waits for a broker and goes on with the session there         -> {resumed}: false where it was forgotten
  behave {method, as}              how calls of that method are answered from now on                            -> {}
            `as` null: well; "hold": after `release`; "never"; "crash": the process fails; {result}, for Swift
            of the delegate's and null of factories only; {error} and {raw} (a line as it is), not for Swift
  release                          answers what is held                  -> {released}
  log                              what has happened since it was asked last, in order: {log: [[WHAT, ...], ...]}
  await {what, count}              until so many WHAT have happened since the start (also while held)    -> {count}
  restored                         -> {objects: {NAME: {state, coder, elements, times}}, application, finished: [NAME]}
  call {method, params?}, notify {method, params?}    as they are, not for Swift

WHAT is one of: shouldSave, shouldRestore, willEncode, didDecode; encode NAME, decode NAME, create NAME (for a whole
batch or call when it comes); model NAME, index NAME (of the view); finished NAME, saved GENERATION, headReplaced
GENERATION, pathChanged NAME, replaced NAME. An error of the broker is {error: {code, message, data}}; a lost
connection {lost}.
"""

import json
import os
import resource
import select
import signal
import socket
import sys
import time

DELEGATE = [
    "shouldSaveApplicationState", "shouldRestoreApplicationState", "willEncodeRestorableState",
    "viewControllerWithRestorationIdentifierPath", "didDecodeRestorableState",
]
SERVED = [
    "encodeRestorableStateWithCoder", "decodeRestorableStateWithCoder", "objectWithRestorationIdentifierPath",
    "modelIdentifierForElementAtIndexPath", "indexPathForElementWithModelIdentifier",
    "applicationFinishedRestoringState", "applicationStateSaved", "headReplaced", "pathChanged",
    "registrationReplaced",
]
PATIENCE = 60


class Refused(Exception):
    """The broker has answered with an error."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.error = error


class Lines:
    """Lines that come through a descriptor, without reading more than there is."""

    def __init__(self, number):
        self.number = number
        self.buffer = bytearray()
        self.searched = 0

    def next(self):
        """The next line if it is there."""
        end = self.buffer.find(b"\n", self.searched)
        if end < 0:
            self.searched = len(self.buffer)
            return None
        line = bytes(self.buffer[:end])
        del self.buffer[:end + 1]
        self.searched = 0
        return line

    def read(self):
        data = os.read(self.number, 1 << 18)
        if not data:
            raise EOFError("the end")
        self.buffer += data


class Connection:
    """JSON-RPC both ways; `serve` is given what the broker wants."""

    def __init__(self, path, serve):
        self.path = path
        self.serve = serve
        self.last_id = 0
        self.socket = None
        self.connect()

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.connect(self.path)
        except OSError:
            self.close()
            raise
        self.lines = Lines(self.socket.fileno())
        self.answers = {}

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def write(self, text):
        if not self.socket:
            raise EOFError("there is no connection")
        self.socket.sendall(text.encode() + b"\n")

    def send(self, **members):
        self.write(json.dumps({"jsonrpc": "2.0", **members}, ensure_ascii=False, separators=(",", ":")))

    def request(self, method, params=None):
        self.last_id += 1
        self.send(id=self.last_id, method=method, **({} if params is None else {"params": params}))
        return self.last_id

    def take(self):
        """Reads the input; false if there is no complete message."""
        line = self.lines.next()
        if line is None:
            return False
        message = json.loads(line)
        if "method" in message:
            self.serve(message)
        else:
            self.answers[message["id"]] = message
        return True

    def answer(self, number):
        while number not in self.answers:
            if not self.socket:
                raise EOFError("the connection was lost")
            if not self.take():
                self.lines.read()
        answer = self.answers.pop(number)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def call(self, method, params=None):
        return self.answer(self.request(method, params))


class Process:
    """The process's objects, and its answers to the broker."""

    def __init__(self, path):
        self.connection = Connection(path, self.serve)
        self.options = None
        self.objects = {}  # by name: handle, registration, state, elements, encode, decode
        self.names = {}  # by handle
        self.classes = []
        self.sources = {}  # by the view's path or handle as text: view, items, name
        self.behaviours = {}
        self.held = []
        self.log = []
        self.counts = {}
        self.restored = {}
        self.finished = []
        self.application_state = {}
        self.decoded_application_state = None
        self.answer_bytes_max = 1 << 21

    # The broker's calls

    def note(self, what, *more):
        self.log.append([what, *more])
        self.counts[what] = self.counts.get(what, 0) + 1

    def name(self, handle):
        return self.names.get(handle, f"?{handle}")

    def serve(self, message):
        method, params = message["method"], message.get("params") or {}
        note = getattr(self, "note_" + method, None)
        if note:
            note(params)
        if "id" not in message:
            return
        behaviour = self.behaviours.get(method)
        if behaviour == "crash":
            crash()
        elif behaviour == "hold":
            self.held.append(message)
        elif behaviour is None:
            self.answer(message)
        elif behaviour != "never":
            self.misbehave(message["id"], behaviour)

    def misbehave(self, number, behaviour):
        if "raw" in behaviour:
            self.connection.write(behaviour["raw"])
        else:
            self.connection.send(id=number, **behaviour)

    def answer(self, message):
        serve = getattr(self, message["method"], None)
        if message["method"] not in SERVED + DELEGATE or serve is None:
            error = {"code": -32601, "message": f"there is no method {message['method']}"}
            self.connection.send(id=message["id"], error=error)
        else:
            self.connection.send(id=message["id"], result=serve(message.get("params") or {}))

    def note_shouldSaveApplicationState(self, params):
        self.note("shouldSave")

    def shouldSaveApplicationState(self, params):
        return True

    def note_shouldRestoreApplicationState(self, params):
        self.note("shouldRestore")

    def shouldRestoreApplicationState(self, params):
        return True

    def note_willEncodeRestorableState(self, params):
        self.note("willEncode")

    def willEncodeRestorableState(self, params):
        return {"state": self.application_state}

    def note_didDecodeRestorableState(self, params):
        self.note("didDecode")
        self.decoded_application_state = params.get("state")

    def didDecodeRestorableState(self, params):
        return {}

    def note_encodeRestorableStateWithCoder(self, params):
        for entry in params["objects"]:
            self.note("encode", self.name(entry["object"]))

    def encodeRestorableStateWithCoder(self, params):
        states, size = [], 0
        for entry in params["objects"]:
            handle = entry["object"]
            thing = self.objects.get(self.names.get(handle))
            if thing is None:
                states.append({"object": handle, "error": {"message": "there is no such object"}})
                continue
            if thing["encode"] == "missing":
                continue
            if thing["encode"] == "fail":
                states.append({"object": handle, "error": {"message": "it cannot be encoded"}})
                continue
            state = self.state_of(thing)
            size += len(json.dumps(state, ensure_ascii=False).encode()) + 64
            if thing["encode"] == "later" or (size > self.answer_bytes_max and states):
                states.append({"object": handle, "later": True})
            else:
                states.append({"object": handle, **state})
        return {"states": states}

    @staticmethod
    def state_of(thing):
        return {"state": thing["state"], **({"elements": thing["elements"]} if thing["elements"] else {})}

    def note_decodeRestorableStateWithCoder(self, params):
        for entry in params["objects"]:
            # Answers are taken in the order of the calls: that of an earlier one may still be awaited.
            self.names.setdefault(entry["object"], "/".join(entry["path"]))
            self.note("decode", self.name(entry["object"]))

    def decodeRestorableStateWithCoder(self, params):
        for entry in params["objects"]:
            if entry.get("deferred"):
                self.fetch(self.name(entry["object"]), entry["object"])
            else:
                self.decoded(self.name(entry["object"]), entry)
        return {}

    def fetch(self, name, handle):
        reply = self.connection.call("decodeRestorableState", {"object": handle})
        if reply["status"] == "available":
            self.decoded(name, reply)
        return reply["status"]

    def decoded(self, name, entry):
        if self.objects.get(name, {}).get("decode") == "crash":
            crash()
        times = self.restored.get(name, {}).get("times", 0) + 1
        self.restored[name] = {
            "state": entry["state"], "coder": entry.get("coder"), "elements": entry.get("elements") or [],
            "times": times,
        }
        if name in self.objects:
            self.objects[name]["state"] = entry["state"]
            self.objects[name]["elements"] = [
                {key: value for key, value in element.items() if key != "resolved"}
                for element in entry.get("elements") or []
            ]

    def note_objectWithRestorationIdentifierPath(self, params):
        self.note("create", "/".join(params["identifierPath"]))

    note_viewControllerWithRestorationIdentifierPath = note_objectWithRestorationIdentifierPath

    def objectWithRestorationIdentifierPath(self, params):
        """Makes the object as it was, unless it exists."""
        path = params["identifierPath"]
        name = "/".join(path)
        if name not in self.objects:
            identifier, _, position = path[-1].partition("#")
            classes = params.get("objectClass") or []
            self.register_all([{
                "identifier": identifier, "parent": path[:-1] or None, "kind": params.get("kind"),
                "classes": [classes] if isinstance(classes, str) else classes,
                "restorationClass": params.get("restorationClass"),
                "position": int(position) if position else None,
            }])
        return {"object": self.objects[name]["handle"]}

    def viewControllerWithRestorationIdentifierPath(self, params):
        """The delegate makes none of its own."""
        return None

    def source(self, view):
        """Data source and name of a view, which the broker may name by handle or path."""
        source = self.sources.get(json.dumps(view))
        if source is None and view in self.names:
            source = self.sources.get(json.dumps(self.names[view].split("/")))
        return source or (next(iter(self.sources.values())) if len(self.sources) == 1 else None)

    def note_modelIdentifierForElementAtIndexPath(self, params):
        self.note("model", (self.source(params["view"]) or {"name": "?"})["name"])

    def modelIdentifierForElementAtIndexPath(self, params):
        source = self.source(params["view"])
        found = source and source["items"]
        for index in params["indexPath"]:
            if not isinstance(found, list) or index >= len(found):
                return None
            found = found[index]
        return found if isinstance(found, str) else None

    def note_indexPathForElementWithModelIdentifier(self, params):
        self.note("index", (self.source(params["view"]) or {"name": "?"})["name"])

    def indexPathForElementWithModelIdentifier(self, params):
        def find(items, path):
            for index, item in enumerate(items):
                found = find(item, path + [index]) if isinstance(item, list) else None
                if found or item == params["identifier"]:
                    return found or path + [index]
            return None

        source = self.source(params["view"])
        return find(source["items"], []) if source else None

    # Its notifications

    def note_applicationFinishedRestoringState(self, params):
        for handle in params["objects"]:
            self.finished.append(self.name(handle))
            self.note("finished", self.name(handle))

    def note_applicationStateSaved(self, params):
        self.note("saved", params["generation"])

    def note_headReplaced(self, params):
        self.note("headReplaced", params["generation"])

    def note_pathChanged(self, params):
        self.note("pathChanged", self.name(params["object"]))

    def note_registrationReplaced(self, params):
        name = self.name(params["object"])
        self.note("replaced", name)
        self.objects.pop(name, None)

    # The commands

    def register_all(self, objects):
        waiting, registered = [], []

        def take():
            for number, wanted, registration in waiting:
                reply = self.connection.answer(number)
                path = reply["path"]
                name = wanted.get("name") or "/".join(path)
                self.objects[name] = {
                    "handle": reply["object"], "registration": registration, "path": path,
                    "state": wanted.get("state", {}), "elements": wanted.get("elements", []),
                    "encode": wanted.get("encode"), "decode": wanted.get("decode"),
                }
                self.names[reply["object"]] = name
                registered.append({
                    "name": name, "path": path, "included": reply["included"],
                    "state": reply["restoration"]["state"],
                })
            waiting.clear()

        for wanted in objects:
            parent = wanted.get("parent")
            if isinstance(parent, str):
                if parent not in self.objects:
                    take()
                parent = self.objects[parent]["handle"]
            members = {
                "restorationIdentifier": wanted["identifier"], "restorationParent": parent, "kind": wanted.get("kind"),
                "objectClass": wanted.get("classes") or None, "restorationClass": wanted.get("restorationClass"),
                "position": wanted.get("position"), "awaitParentMilliseconds": wanted.get("await"),
                "takeOver": wanted.get("takeOver"), "confidential": wanted.get("confidential"),
                "keep": wanted.get("keep"),
            }
            members = {
                key: value for key, value in members.items() if value is not None or key == "restorationIdentifier"
            }
            number = self.connection.request("registerObjectForStateRestoration", members)
            waiting.append((number, wanted, members))
            if len(waiting) == 64:
                take()
        take()
        return registered

    def do_open(self, command):
        served = command.get("serves")
        if served is None:
            served = SERVED + (DELEGATE if command.get("delegate") else [])
        names = ("application", "process", "delegate", "bundleVersion", "aliases", "messageBytesMax")
        self.options = {key: command[key] for key in names if key in command}
        self.options["serves"] = served
        return self.initialize(self.options)

    def initialize(self, params):
        reply = self.connection.call("initialize", params)
        self.options["session"] = reply["session"]
        self.answer_bytes_max = reply["limits"]["frameBytesMax"] // 2
        restoration = reply["restoration"]
        return {"session": reply["session"], **{key: restoration[key] for key in ("reason", "state", "generation")}}

    def do_register(self, command):
        return {"objects": self.register_all(command["objects"])}

    def do_set(self, command):
        thing = self.objects[command["name"]]
        thing.update({key: command[key] for key in ("state", "elements", "encode", "decode") if key in command})
        return {}

    def do_application(self, command):
        self.application_state = command["state"]
        return {}

    def do_class(self, command):
        self.classes.append(command["restorationClass"])
        return self.connection.call("registerRestorationClass", {"restorationClass": command["restorationClass"]})

    def do_dataSource(self, command):
        view = command["view"]
        path = view.split("/") if isinstance(view, str) else view
        key = json.dumps(path)
        known = key in self.sources
        self.sources[key] = {"view": path, "items": command["items"], "name": "/".join(path)}
        return {} if known else self.connection.call("registerDataSource", {"view": path})

    def do_push(self, command):
        names = command.get("names") or list(self.objects)
        results = {}
        for first in range(0, len(names), 64):
            portion = names[first:first + 64]
            numbers = [
                self.connection.request(
                    "encodeRestorableState",
                    {"object": self.objects[name]["handle"], **self.state_of(self.objects[name])},
                )
                for name in portion
            ]
            for name, number in zip(portion, numbers):
                try:
                    results[name] = self.connection.answer(number)
                except Refused as refusal:
                    results[name] = {"error": refusal.error}
        return {"results": results}

    def do_decode(self, command):
        name = command["name"]
        return {"status": self.fetch(name, self.objects[name]["handle"])}

    def do_invalidate(self, command):
        return self.connection.call("invalidateRestorableState", {"object": self.objects[command["name"]]["handle"]})

    def do_save(self, command):
        return self.long_call("saveApplicationState", command, "reason", "deadlineMilliseconds")

    def do_restore(self, command):
        return self.long_call("restoreApplicationState", command, "deadlineMilliseconds")

    def long_call(self, method, command, *members):
        number = self.connection.request(method, {key: command[key] for key in members if key in command})
        return self.connection.answer(number) if command.get("wait", True) else {"call": number}

    def do_wait(self, command):
        return self.connection.answer(command["call"])

    def do_extend(self, command):
        return self.connection.call("extendStateRestoration", {})

    def do_complete(self, command):
        return self.connection.call("completeStateRestoration", {})

    def do_goodbye(self, command):
        return self.connection.call("goodbye", {"reason": command["reason"]})

    def do_behave(self, command):
        self.behaviours[command["method"]] = command.get("as")
        return {}

    def do_release(self, command):
        held, self.held = self.held, []
        for message in held:
            self.answer(message)
        return {"released": len(held)}

    def do_log(self, command):
        log, self.log = self.log, []
        return {"log": log}

    def do_await(self, command):
        while self.counts.get(command["what"], 0) < command["count"]:
            if not self.connection.socket:
                raise EOFError("there is no connection")
            if not self.connection.take():
                self.connection.lines.read()
        return {"count": self.counts.get(command["what"], 0)}

    def do_restored(self, command):
        return {
            "objects": self.restored, "application": self.decoded_application_state, "finished": self.finished,
        }

    def do_call(self, command):
        return self.connection.call(command["method"], command.get("params"))

    def do_notify(self, command):
        self.connection.send(method=command["method"], params=command.get("params") or {})
        return {}

    def do_resume(self, command):
        """Connects until there is a broker, resumes the session, and repeats what the broker has forgotten."""
        self.connection.close()
        self.held = []
        deadline = time.monotonic() + PATIENCE
        while not self.connection.socket:
            try:
                self.connection.connect()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                select.select([], [], [], 0.005)
        former = self.options.get("session")
        resumed = self.initialize(self.options)["session"] == former
        if not resumed:
            self.register_again()
        for name in self.classes:
            self.connection.call("registerRestorationClass", {"restorationClass": name})
        for source in self.sources.values():
            self.connection.call("registerDataSource", {"view": source["view"]})
        return {"resumed": resumed}

    def register_again(self):
        handles = {}
        for name, thing in self.objects.items():
            registration = thing["registration"]
            parent = registration.get("restorationParent")
            if isinstance(parent, int):
                registration["restorationParent"] = handles.get(parent, parent)
            reply = self.connection.call("registerObjectForStateRestoration", registration)
            handles[thing["handle"]] = reply["object"]
            thing["handle"] = reply["object"]
            self.names[reply["object"]] = name

    # The loop

    def obey(self, line):
        command = json.loads(line)
        try:
            answer = getattr(self, "do_" + command["do"])(command)
        except Refused as refusal:
            answer = {"error": refusal.error}
        except (EOFError, OSError) as error:
            self.connection.close()
            answer = {"lost": str(error) or type(error).__name__}
        print(json.dumps(answer, ensure_ascii=False), flush=True)

    def run(self):
        commands = Lines(0)
        while True:
            line = commands.next()
            if line is not None:
                self.obey(line)
                continue
            self.listen()
            try:
                commands.read()
            except EOFError:
                return

    def listen(self):
        """Serves the broker until there is input on standard input."""
        while True:
            try:
                while self.connection.socket and self.connection.take():
                    pass
                numbers = [0] + ([self.connection.lines.number] if self.connection.socket else [])
                if 0 in select.select(numbers, [], [])[0]:
                    return
                self.connection.lines.read()
            except (EOFError, OSError, Refused):
                self.connection.close()


if __name__ == "__main__":
    try:
        Process(sys.argv[1]).run()
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(1)
