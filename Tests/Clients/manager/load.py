# SPDX-License-Identifier: Apache-2.0
"""Clients of many kinds that work while the broker is restarted, and notice every fault: load.py SOCKET

Each kind is a thread with its own connection, which stays open: its end is a fault, unless the broker was killed while
the connection was busy. Lines on standard input say what to do, one JSON object each, answered by one:

  start {application, kinds: {KIND: how many}}          -> {} when all are at work
  before    the kinds that are to be caught in the middle of something get there (see `Client.before`)   -> {}
  killed    the broker was killed: connections that were at work then may end, and are opened anew       -> {}
  after     they go on; each must do something that shows that all is well                               -> {}
  progress  everybody who works all the time has gone on since                                           -> {}
  stop      all end -> {faults: [text], answers, connects, refused, reconnected, objects: {NAME: {sent, acknowledged}}}

A state is {"n": N, "pad", "sum"}; each object's states are numbered from 1, and the number is the revision.
"""

import json
import os
import random
import sys
import threading
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from connection import PATIENCE, Connection, Fault  # noqa: E402


class Thing:
    """An object, and the known states."""

    def __init__(self, name):
        self.name = name
        self.reference = None
        self.sent = 0
        self.acknowledged = 0
        self.sequence = 0

    @staticmethod
    def state(number):
        size = [1, 300, 6_000][number % 3]
        return {"n": number, "pad": "x" * size, "sum": number * 31 + size}

    def next(self):
        self.sent += 1
        return {"object": self.reference, "state": self.state(self.sent), "revision": self.sent}

    def stored(self, number, result):
        if "sequence" in result:
            if result["sequence"] <= self.sequence:
                raise Fault(f"{self.name} {number}: sequence {result['sequence']} after {self.sequence}")
            self.sequence = result["sequence"]
        elif result != {"superseded": True}:
            raise Fault(f"{self.name} {number}: {result}")
        if number <= self.acknowledged:
            raise Fault(f"{self.name} {number}: acknowledged again, after {self.acknowledged}")
        self.acknowledged = number


class Client:
    """One kind of client. `work` is called again and again; it waits only in ways that `stop` ends."""

    framing = "stream"
    #: It always waits for an answer, so its connection may end when the broker is killed.
    is_busy = False
    #: It is idle between `after` and `before`.
    rests = False
    #: It is always active.
    is_at_work = False

    def __init__(self, load, name):
        self.load = load
        self.name = name
        self.faults = []
        self.answers = 0
        self.things = []
        self.token = None
        self.reconnected = 0
        self.has_begun = threading.Event()
        self.thread = threading.Thread(target=self.run, name=name, daemon=True)

    # What kinds differ in

    def begin(self):
        """Opens the connection and makes what is needed."""
        self.connection = Connection(self.load.path, self.framing)

    def work(self):
        """Does one thing."""

    def before(self):
        """Enters the state in which the broker is to end; in its own thread."""

    def after(self):
        """Continues with the new broker, and shows that all is well."""

    def end(self):
        """Finishes its work."""

    def again(self):
        """Opens another connection after the broker was killed while this one was busy."""
        self.connection.close()
        self.begin()

    # What they have in common

    def session(self, things=1, **more):
        """Begins a session, or resumes the one before the loss."""
        token = {"session": self.token} if self.token else {}
        reply = self.connection.call(
            "initialize", {"application": self.load.application, "process": self.name, **token, **more})
        self.token = reply["session"]
        if not self.things:
            self.things = [Thing(f"{self.name}-{number}") for number in range(things)]
        for thing in self.things:
            self.register(thing)

    def register(self, thing):
        reply = self.connection.call("registerObjectForStateRestoration", {"restorationIdentifier": thing.name})
        if reply["path"] != [thing.name]:
            raise Fault(f"{thing.name} is at {reply['path']}")
        thing.reference = reply["object"]

    def encode(self, thing):
        state = thing.next()
        thing.stored(state["revision"], self.connection.call("encodeRestorableState", state))
        self.answered()

    def answered(self):
        self.answers += 1
        if self.load.wanting:
            self.load.wake()

    def run(self):
        try:
            self.begin()
            self.has_begun.set()
            while not self.load.is_over:
                try:
                    self.turn()
                except (EOFError, ConnectionError) as error:
                    if not self.load.take_kill(self):
                        raise Fault(f"{type(error).__name__} {error}") from error
                    self.reconnected += 1
                    self.again()
            self.end()
        except Exception as error:  # pylint: disable=broad-except
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.faults.append(f"{self.name}: {error or type(error).__name__} ({where.name}:{where.lineno})")
            self.load.has_failed = True
        finally:
            self.has_begun.set()
            self.load.wake()

    def turn(self):
        """One thing of its own, or what `before` and `after` ask for."""
        phase = self.load.phase_for(self)
        if phase == "before":
            self.before()
        elif phase == "after":
            self.after()
        elif phase == "work":
            self.work()
            return
        self.load.has_done(self, phase)


class Pipelined(Client):
    """Many requests at once, in one piece."""

    is_busy = is_at_work = True
    depth = 32

    def begin(self):
        super().begin()
        self.session(4)
        self.pending = {}
        self.turns = 0

    def send(self):
        frames = b""
        while len(self.pending) < self.depth:
            thing = self.things[self.turns % len(self.things)]
            self.turns += 1
            state = thing.next()
            message = self.connection.message("encodeRestorableState", state)
            self.pending[message["id"]] = (thing, state["revision"])
            frames += self.connection.frame(message)
        self.connection.write(frames)

    def receive(self):
        message = self.connection.receive()
        thing, number = self.pending.pop(message.get("id"), (None, None))
        if thing is None:
            raise Fault(f"an answer to nothing: {message}")
        if "error" in message:
            raise Fault(f"refused: {message['error']}")
        thing.stored(number, message["result"])
        self.answered()

    def work(self):
        if len(self.pending) <= self.depth // 2:
            self.send()
        self.receive()

    def after(self):
        self.work()

    def again(self):
        super().again()
        # Whether the unanswered ones took effect is unknown; they are not sent again.

    def end(self):
        while self.pending:
            self.receive()


class ContentLength(Pipelined):
    """The framing of language servers."""

    framing = "length"
    depth = 4


class KeepAlive(Client):
    """HTTP, one request after the other on one connection, without a session."""

    framing = "http"
    is_busy = is_at_work = True

    def begin(self):
        super().begin()
        if not self.things:
            self.things = [Thing(f"{self.name}-0")]
        self.things[0].reference = [self.things[0].name]

    def work(self):
        thing = self.things[0]
        params = {"application": self.load.application, **thing.next()}
        del params["revision"]
        thing.stored(thing.sent, self.connection.call("encodeRestorableState", params))
        self.answered()

    def after(self):
        self.work()


class Halves(Client):
    """Sends a frame in two halves, between which the broker is restarted."""

    rests = True

    def begin(self):
        super().begin()
        self.rest = None
        if self.framing == "http":
            self.things = self.things or [Thing(f"{self.name}-0")]
            self.things[0].reference = [self.things[0].name]
        else:
            self.session()

    def before(self):
        params = self.things[0].next()
        if self.framing == "http":
            params["application"] = self.load.application
            del params["revision"]
        frame = self.connection.frame(self.connection.message("encodeRestorableState", params))
        cut = random.randrange(1, len(frame))
        self.connection.write(frame[:cut])
        self.rest = frame[cut:]

    def after(self):
        rest, self.rest = self.rest, None
        if rest is None:
            return
        self.connection.write(rest)
        thing = self.things[0]
        thing.stored(thing.sent, self.connection.answer(self.connection.last_id))
        self.answered()

    end = after

    # With half a frame, a connection is busy.
    is_busy = True


class HalvesOfLength(Halves):
    framing = "length"


class HalvesOfHTTP(Halves):
    """A broker that ends waits for the rest of a partial request, which the next one could not read."""

    framing = "http"
    rests = False

    def work(self):
        if not self.connection.has_input(0.05):
            self.after()


class Slow(Client):
    """Asks for more than the sockets hold, and reads it only after the restart."""

    rests = True
    is_busy = True
    count = 64
    big = {"pad": "y" * 100_000}

    def begin(self):
        super().begin()
        self.session()
        self.pending = []
        self.connection.call("encodeRestorableState", {"object": self.things[0].reference, "state": self.big})

    def before(self):
        params = {"object": [self.things[0].name]}
        messages = [self.connection.message("decodeRestorableState", params) for _ in range(self.count)]
        self.pending = [message["id"] for message in messages]
        self.connection.write(b"".join(self.connection.frame(message) for message in messages))
        self.connection.has_input(PATIENCE)

    def after(self):
        while self.pending:
            message = self.connection.receive()
            # In any order: a state that is not at hand is read, while those that were read before are answered.
            if message.get("id") not in self.pending:
                raise Fault(f"not an answer to one of {self.pending}: {str(message)[:200]}")
            if message.get("result", {}).get("state") != self.big:
                raise Fault(f"not the state: {str(message)[:200]}")
            self.pending.remove(message["id"])
            self.answered()

    end = after


class Idle(Client):
    """Never says anything until the very end."""

    rests = True

    def end(self):
        if self.connection.has_input():
            raise Fault(f"something came: {self.connection.receive()}")
        self.connection.call("ping")


class IdleSession(Client):
    """Has a session with objects, and is active only after the restart."""

    rests = True

    def begin(self):
        super().begin()
        self.session(2)

    def after(self):
        if self.connection.has_input():
            raise Fault(f"something came: {self.connection.receive()}")
        for thing in self.things:
            handle = thing.reference
            if thing.sent:
                found = self.connection.call("decodeRestorableState", {"object": handle})
                if (found["state"] or {}).get("n") != thing.acknowledged:
                    raise Fault(f"{thing.name}: not {thing.acknowledged}: {found}")
            self.register(thing)
            if thing.reference != handle:
                raise Fault(f"{thing.name} was {handle} and is {thing.reference}")
            self.encode(thing)


class IdleSubscriber(Client):
    """Has a session of its own application, and subscribes to its own events."""

    rests = True

    def begin(self):
        super().begin()
        self.connection.call("initialize", {"application": f"{self.load.application}.{self.name}"})
        self.subscription = self.connection.call("subscribe", {"events": ["stateEncoded"]})["subscription"]
        self.things = [Thing(self.name)]
        self.register(self.things[0])

    def after(self):
        thing = self.things[0]
        number = self.connection.request("encodeRestorableState", thing.next())
        messages = [self.receive(), self.receive()]
        messages.sort(key=lambda message: "method" in message)
        event = messages[1].get("params", {})
        if messages[0].get("id") != number or (event.get("name"), event.get("path")) != ("stateEncoded", [thing.name]):
            raise Fault(f"not an answer and an event: {messages}")
        if event["subscription"] != self.subscription or event["sequence"] != messages[0]["result"]["sequence"]:
            raise Fault(f"not its event: {messages}")
        thing.stored(thing.sent, messages[0]["result"])
        self.answered()

    def receive(self):
        """The next message, except the one that events may be missing after a kill."""
        while True:
            message = self.connection.receive()
            loss = {"subscription": self.subscription, "name": "eventsLost", "lost": 0}
            if message.get("method") != "event" or message["params"] != loss:
                return message


class Serving(Client):
    """Encodes its states for the rounds at the broker's end, and for those of `Saver`."""

    def begin(self):
        super().begin()
        self.session(3, serves=["encodeRestorableStateWithCoder"])
        self.calls = 0

    def work(self):
        if self.connection.has_input(0.05):
            self.serve()

    def serve(self):
        message = self.connection.receive()
        if message.get("method") != "encodeRestorableStateWithCoder":
            raise Fault(f"not a call: {message}")
        self.calls += 1
        named = {thing.reference: thing for thing in self.things}
        states = []
        for asked in message["params"]["objects"]:
            thing = named[asked["object"]]
            thing.sent += 1
            states.append({"object": thing.reference, "state": thing.state(thing.sent), "revision": thing.sent})
        self.connection.write(self.connection.frame({"id": message["id"], "result": {"states": states}}))
        self.answered()

    def end(self):
        if not self.calls:
            raise Fault("it was never asked")


class Saver(Client):
    """Has the application saved after each restart."""

    rests = True

    def begin(self):
        super().begin()
        self.connection.call("initialize", {"application": self.load.application, "process": self.name})
        self.generation = 0

    def after(self):
        result = self.connection.call("saveApplicationState")
        # The round at the broker's end may have been the last change.
        if result["saved"] and not result["generation"] > self.generation:
            raise Fault(f"after generation {self.generation}: {result}")
        self.generation = result["generation"] or self.generation
        self.answered()


class Poller(Client):
    """Always waits for calls; an empty answer is allowed, no answer is not."""

    def begin(self):
        super().begin()
        self.session(1)
        self.connection.call("nextRequest", {"serves": ["encodeRestorableStateWithCoder"]})
        self.number = None

    def work(self):
        if self.number is None:
            self.number = self.connection.request("nextRequest", {"waitMilliseconds": 30_000})
        if not self.connection.has_input(0.05):
            return
        number, self.number = self.number, None
        found = self.connection.answer(number)
        self.answered()
        if found is None:
            return
        if found["method"] != "encodeRestorableStateWithCoder":
            raise Fault(f"not a call: {found}")
        thing = self.things[0]
        thing.sent += 1
        states = [{"object": thing.reference, "state": thing.state(thing.sent), "revision": thing.sent}]
        # The round may be over: then the answer is refused, and only then.
        number = self.connection.request("answerRequest", {"id": found["id"], "result": {"states": states}})
        message = self.connection.receive()
        if message.get("id") != number or message.get("error", {}).get("code", -32602) != -32602:
            raise Fault(f"not an answer to {number}: {message}")
        self.answered()


class Connector(Client):
    """Connects, begins a session and ends it, repeatedly. `Subscriber` hears of each."""

    is_busy = is_at_work = True

    def __init__(self, load, name):
        super().__init__(load, name)
        self.connects = 0
        self.refused = 0
        self.confirmed = []

    def begin(self):
        pass

    def work(self):
        number = self.connects + 1
        try:
            self.connection = Connection(self.load.path)
        except OSError as error:
            self.refused += 1
            raise Fault(f"connect {number}: {error}") from error
        self.connects = number
        application = f"{self.load.application}.Guests"
        self.connection.call("initialize", {"application": application, "process": f"{self.name}-{number}"})
        self.connection.call("goodbye", {"reason": "restart"})
        self.connection.close()
        self.confirmed.append(f"{self.name}-{number}")
        self.answered()

    def after(self):
        self.work()

    def again(self):
        pass


class Subscriber(Client):
    """Hears of each session of the connectors once, across all restarts."""

    def begin(self):
        super().begin()
        self.seen = {}
        self.connection.call(
            "subscribe", {"application": f"{self.load.application}.Guests", "events": ["sessionBegan", "sessionEnded"]})

    def work(self):
        if self.connection.has_input(0.05):
            self.hear()

    def hear(self):
        message = self.connection.receive()
        event = message.get("params", {})
        key = (event.get("process"), event.get("name"))
        if message.get("method") != "event" or key in self.seen:
            raise Fault(f"not a new event: {message}")
        self.seen[key] = event
        self.answered()

    def end(self):
        missing = [
            (process, name) for client in self.load.clients if isinstance(client, Connector)
            for process in client.finished() for name in ("sessionBegan", "sessionEnded")
        ]
        while not all(key in self.seen for key in missing):
            if not self.connection.has_input(5):
                left = [key for key in missing if key not in self.seen]
                raise Fault(f"{len(left)} events of {len(missing)} did not come: {left[:4]}")
            self.hear()


def finished(client):
    """The sessions of a connector, once it has ended."""
    client.thread.join(PATIENCE)
    return client.confirmed


Connector.finished = finished

KINDS = {
    "pipelined": Pipelined, "contentLength": ContentLength, "keepAlive": KeepAlive, "halves": Halves,
    "halvesOfLength": HalvesOfLength, "halvesOfHTTP": HalvesOfHTTP, "slow": Slow, "idle": Idle,
    "idleSession": IdleSession, "idleSubscriber": IdleSubscriber, "serving": Serving, "saver": Saver, "poller": Poller,
    "connector": Connector, "subscriber": Subscriber,
}


class Load:
    def __init__(self, path):
        self.path = path
        self.clients = []
        self.phase = "work"
        self.done = set()
        self.changed = threading.Condition()
        self.wanting = False
        self.is_over = False
        self.has_failed = False
        self.killed = set()

    # Asked by the clients

    def phase_for(self, client):
        """The next task; waits until there is one."""
        with self.changed:
            while True:
                if self.is_over:
                    return "work"
                if self.phase != "work" and client not in self.done:
                    return self.phase
                if not client.rests:
                    return "work"
                self.changed.wait()

    def has_done(self, client, _):
        with self.changed:
            self.done.add(client)
            self.changed.notify_all()

    def take_kill(self, client):
        """Whether the connection may end: once for each kill, if it was busy."""
        with self.changed:
            if client not in self.killed:
                return False
            self.killed.discard(client)
            return True

    def wake(self):
        with self.changed:
            self.changed.notify_all()

    # Asked for by the test

    def wait(self, is_true, what):
        with self.changed:
            if not self.changed.wait_for(lambda: self.has_failed or is_true(), PATIENCE):
                self.has_failed = True
                waiting = [client.name for client in self.clients if client not in self.done]
                return {"failure": f"{what}: {waiting}", **self.report()}
        return {"failure": "faults", **self.report()} if self.has_failed else {}

    def start(self, command):
        self.application = command["application"]
        for kind, count in command["kinds"].items():
            self.clients += [KINDS[kind](self, f"{kind}{number}") for number in range(count)]
        # Subscribers hear of connectors, so they start first.
        for client in sorted(self.clients, key=lambda client: isinstance(client, Connector)):
            client.thread.start()
            client.has_begun.wait(PATIENCE)
        return self.progress({})

    def pass_phase(self, name):
        with self.changed:
            self.done = set()
            self.phase = name
            self.changed.notify_all()
        answer = self.wait(lambda: len(self.done) == len(self.clients), name)
        with self.changed:
            self.phase = "work"
        return answer

    def before(self, _):
        return self.pass_phase("before")

    def after(self, _):
        answer = self.pass_phase("after")
        with self.changed:
            self.killed = set()
        return answer

    def kill(self, _):
        """The broker will be killed."""
        with self.changed:
            self.killed = {client for client in self.clients if client.is_busy}
        return {}

    def progress(self, _):
        workers = [client for client in self.clients if client.is_at_work]
        start = {client: client.answers for client in workers}
        self.wanting = True
        answer = self.wait(lambda: all(client.answers > start[client] for client in workers), "progress")
        self.wanting = False
        return answer

    def stop(self, _):
        with self.changed:
            self.is_over = True
            self.changed.notify_all()
        for client in self.clients:
            client.thread.join(PATIENCE)
            if client.thread.is_alive():
                client.faults.append(f"{client.name} does not end")
        return self.report()

    def report(self):
        return {
            "faults": [fault for client in self.clients for fault in client.faults],
            "answers": sum(client.answers for client in self.clients),
            "connects": sum(getattr(client, "connects", 0) for client in self.clients),
            "refused": sum(getattr(client, "refused", 0) for client in self.clients),
            "reconnected": sum(client.reconnected for client in self.clients),
            "objects": {
                thing.name: {"sent": thing.sent, "acknowledged": thing.acknowledged}
                for client in self.clients for thing in client.things
            },
        }


def main():
    load = Load(sys.argv[1])
    verbs = {
        "start": load.start, "before": load.before, "kill": load.kill, "after": load.after, "progress": load.progress,
        "stop": load.stop,
    }
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(verbs[command["do"]](command)), flush=True)


if __name__ == "__main__":
    main()
