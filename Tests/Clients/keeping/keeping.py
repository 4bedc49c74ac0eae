# SPDX-License-Identifier: Apache-2.0
"""Connections that outlive their broker: keeping.py BROKER SCENARIO

Each scenario is a function below, and fails by an exception. Without a scenario, their names are printed.
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
import threading
import time
from random import Random

from manager import DEADLINE, Manager

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Protocol/clients/python"))
import restorationd  # noqa: E402


class Client:
    """A connection that speaks a stream of JSON texts, one line each."""

    def __init__(self, manager):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(manager.path)
        self.buffer = b""
        self.last = 0

    def send(self, method, **params):
        self.last += 1
        self.socket.sendall(self.text(self.last, method, params))
        return self.last

    @staticmethod
    def text(number, method, params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return json.dumps(message).encode() + b"\n"

    def receive(self):
        """The next message; None at the end of the connection."""
        while b"\n" not in self.buffer:
            part = self.socket.recv(1 << 16)
            if not part:
                return None
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def answer(self, number):
        message = self.receive()
        assert message is not None, "the connection has ended"
        assert message.get("id") == number, message
        return message

    def call(self, method, **params):
        message = self.answer(self.send(method, **params))
        assert "result" in message, message
        return message["result"]

    def reply(self, message, result):
        text = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self.socket.sendall(json.dumps(text).encode() + b"\n")

    def goes_on(self):
        try:
            return self.answer(self.send("ping"))["result"] == {}
        except (AssertionError, OSError):
            return False

    def has_ended(self):
        try:
            return self.receive() is None
        except ConnectionResetError:
            return True


def owner(manager, serves=()):
    client = Client(manager)
    client.session = client.call("initialize", application="org.example.kept", process="editor", serves=list(serves))
    client.object = client.call("registerObjectForStateRestoration", restorationIdentifier="Editor")["object"]
    return client


def settle(manager):
    """Returns when the broker has finished all that it answered before, which it does after sending the answer."""
    Client(manager).call("ping")


def check_owner(client, cursor):
    """The session and its handle are unchanged."""
    stored = client.call("encodeRestorableState", object=client.object, state={"cursor": cursor})
    assert stored["durability"] == "disk", stored
    assert client.call("decodeRestorableState", object=client.object)["state"] == {"cursor": cursor}
    sessions = client.call("describeApplication")["sessions"]
    assert [session["pid"] for session in sessions if session["process"]] == [os.getpid()], sessions


def idle_connections_survive_a_kill(manager):
    client = owner(manager)
    silent = Client(manager)
    manager.take_stored(2)
    client.call("encodeRestorableState", object=client.object, state={"cursor": 1})
    for round in range(3):
        settle(manager)
        manager.kill()
        manager.start()
        check_owner(client, round + 2)
    assert silent.call("ping") == {}


def idle_connections_survive_a_kill_after_an_orderly_end(manager):
    client = owner(manager)
    # An archive each: the successor is killed while it opens them.
    others = [Client(manager) for _ in range(20)]
    for number, other in enumerate(others):
        other.call("initialize", application=f"org.example.kept{number}")
    manager.take_stored(21)
    for round in range(3):
        manager.stop()
        manager.start()
        manager.kill()
        manager.start()
        check_owner(client, round)
        assert all(other.goes_on() for other in others)


def busy_connections_end_with_a_kill(manager):
    client = owner(manager)
    half = Client(manager)
    waiting = Client(manager)
    manager.take_stored(3)
    half.socket.sendall(b'{"jsonrpc":"2.0",')
    waiting.send("registerObjectForStateRestoration", application="org.example.kept", restorationIdentifier="Child",
                 restorationParent=["Missing"], awaitParentMilliseconds=20000)
    # Both were read if a later connection is answered.
    client.call("ping")
    settle(manager)
    manager.kill()
    manager.start()
    assert half.has_ended()
    assert waiting.has_ended()
    check_owner(client, 1)


def all_connections_survive_an_orderly_end(manager):
    client = owner(manager)
    half = Client(manager)
    text = Client.text(7, "ping", {})
    half.socket.sendall(text[:20])
    headed = Client(manager)
    body = Client.text(9, "ping", {})
    headed.socket.sendall(b"Content-Length: %d\r\n" % len(body))
    new = Client(manager)
    client.call("ping")
    for round in range(3):
        manager.stop()
        manager.start()
        check_owner(client, round)
    half.socket.sendall(text[20:])
    assert half.answer(7)["result"] == {}
    headed.socket.sendall(b"\r\n" + body)
    while not headed.buffer.endswith(b"}"):
        headed.buffer += headed.socket.recv(4096)
    assert headed.buffer.startswith(b"Content-Length: "), headed.buffer
    assert new.call("ping") == {}


def a_reader_that_does_not_read_gets_all_its_answers(manager):
    client = owner(manager)
    client.call("encodeRestorableState", object=client.object, state={"text": "x" * 200_000})
    count = 60  # more than the kernel holds, and more than pauses reading
    numbers = [client.send("decodeRestorableState", object=client.object) for _ in range(count)]
    other = Client(manager)
    other.call("ping")
    manager.stop()
    manager.start()
    manager.stop()
    manager.start()
    seen = []
    for _ in numbers:
        message = client.receive()
        assert len(message["result"]["state"]["text"]) == 200_000
        seen.append(message["id"])
    assert sorted(seen) == numbers, seen
    check_owner(client, 1)


def requests_in_flight_are_answered_exactly_once(manager):
    client = owner(manager)
    stop = threading.Event()
    sent, received, errors = [], [], []

    def read():
        while len(received) < len(sent) or not stop.is_set():
            message = client.receive()
            if message is None:
                errors.append("the connection has ended")
                return
            received.append(message["id"])

    def write():
        while not over.is_set():
            sent.append(client.send("encodeRestorableState", object=client.object, state={"n": len(sent) + 1},
                                    revision=len(sent) + 1))
            while len(sent) - len(received) > 300 and not errors:
                pass

    over = threading.Event()
    reader, writer = threading.Thread(target=read), threading.Thread(target=write)
    reader.start()
    writer.start()
    for _ in range(5):
        manager.stop()
        manager.start()
    over.set()
    writer.join()
    stop.set()
    last = len(sent)
    sent.append(client.send("ping"))
    reader.join()
    assert not errors, errors
    assert sorted(received) == sent, (len(received), len(sent))
    assert client.call("decodeRestorableState", object=client.object)["state"] == {"n": last}


def parked_calls_end_early(manager):
    client = owner(manager, serves=["encodeRestorableStateWithCoder"])
    poller = Client(manager)
    session = poller.call("registerObjectForStateRestoration", application="org.example.kept",
                          restorationIdentifier="Polled")["session"]
    polling = poller.send("nextRequest", application="org.example.kept", session=session, waitMilliseconds=30000)
    parked = client.send("registerObjectForStateRestoration", restorationIdentifier="Child",
                         restorationParent=["Missing"], awaitParentMilliseconds=30000)
    other = Client(manager)
    other.call("ping")

    def answer():
        message = client.receive()
        assert message["method"] == "encodeRestorableStateWithCoder", message
        states = [{"object": entry["object"], "state": {"saved": True}} for entry in message["params"]["objects"]]
        client.reply(message, {"states": states})

    saving = threading.Thread(target=answer)
    saving.start()
    manager.stop()
    saving.join()
    manager.start()
    error = client.answer(parked)["error"]
    assert error["code"] == -32017 and error["data"]["kind"] == "shuttingDown", error
    assert poller.answer(polling)["result"] is None
    # The session is resumed: its token, its objects, its served calls.
    assert poller.call("nextRequest", application="org.example.kept", session=session) is None
    assert client.call("decodeRestorableState", object=client.object)["state"] == {"saved": True}
    saved = client.send("saveApplicationState")
    answer()
    assert client.answer(saved)["result"]["saved"]


def subscriptions_survive(manager):
    client = owner(manager)
    observer = Client(manager)
    number = observer.call("subscribe", application="org.example.kept", events=["objectRegistered"])["subscription"]
    manager.take_stored(2)
    for end in (manager.kill, manager.stop):
        settle(manager)
        end()
        manager.start()
        client.call("registerObjectForStateRestoration", restorationIdentifier=f"Object{end.__name__}")
        event = observer.receive()
        if end == manager.kill:
            # What peers were not told is unknown.
            assert event["params"] == {"subscription": number, "name": "eventsLost", "lost": 0}, event
            event = observer.receive()
        assert event["params"]["subscription"] == number and event["params"]["name"] == "objectRegistered", event
    assert observer.call("unsubscribe", subscription=number) == {}


def http_connections_survive(manager):
    peer = Client(manager)

    def post(method, **params):
        body = Client.text(1, method, params)
        peer.socket.sendall(b"POST / HTTP/1.1\r\nHost: broker\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return response()

    def response():
        data = b""
        while b"\r\n\r\n" not in data:
            part = peer.socket.recv(65536)
            assert part, "the connection has ended"
            data += part
        head, rest = data.split(b"\r\n\r\n", 1)
        length = int([line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")][0].split()[1])
        while len(rest) < length:
            rest += peer.socket.recv(65536)
        message = json.loads(rest)
        assert "result" in message, message
        return message["result"]

    initialized = post("initialize", application="org.example.kept")
    manager.take_stored(1)
    for end in (manager.kill, manager.stop):
        settle(manager)
        end()
        manager.start()
        # The connection still has its session.
        name = {"application": "org.example.kept"}
        post("registerObjectForStateRestoration", restorationIdentifier=end.__name__, **name)
        post("encodeRestorableState", object=[end.__name__], state={"a": 1}, **name)
    # A request that has begun is read to its end by the broker that began to read it.
    body = Client.text(1, "ping", {})
    peer.socket.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:9])
    other = Client(manager)
    other.call("ping")
    later = threading.Timer(0.3, lambda: peer.socket.sendall(body[9:]))
    later.start()
    manager.stop()
    assert response() == {}
    manager.start()
    assert post("ping") == {}
    description = post("describeApplication", application="org.example.kept", session=initialized["session"])
    assert sorted(entry["path"] for entry in description["objects"]) == [["kill"], ["stop"]], description
    assert len(description["sessions"]) == 1, description


def detached_sessions_stay_with_their_connection(manager):
    own = Client(manager)
    name = {"application": "org.example.kept"}
    registered = own.call("registerObjectForStateRestoration", restorationIdentifier="Own", **name)
    manager.take_stored(1)
    for end in (manager.kill, manager.stop):
        settle(manager)
        end()
        manager.start()
        own.call("encodeRestorableState", object=registered["object"], state={"a": 1}, **name)
    # It was used only there, so it ends with the connection.
    own.socket.close()
    observer = Client(manager)
    while observer.call("describeApplication", **name)["sessions"]:
        pass


def what_was_not_stored_is_asked_for_by_the_next_broker(manager):
    own = Client(manager)
    own.call("initialize", application="org.example.kept", serves=["stateWanted"])
    excluder = own.call("registerObjectForStateRestoration", kind="viewController")["object"]
    sheet = {"restorationIdentifier": "Sheet", "restorationParent": excluder, "kind": "viewController"}
    sheet = own.call("registerObjectForStateRestoration", **sheet)["object"]
    manager.take_stored(1)
    for end in (manager.stop, manager.kill):
        own.call("setRestorationIdentifier", object=excluder, restorationIdentifier=None)
        answer = own.call("encodeRestorableState", object=sheet, state={"n": 1}, revision=1)
        assert answer["included"] is False and "durability" not in answer, answer
        settle(manager)
        end()
        manager.start()
        own.send("setRestorationIdentifier", object=excluder, restorationIdentifier="Shown")
        # The broker does not know who has pushed anything: the renamed object has no state either.
        messages = [own.receive() for _ in range(3)]
        told = [message["params"] for message in messages if message.get("method") == "stateWanted"]
        assert {"object": sheet, "path": ["Shown", "Sheet"]} in told and len(told) == 2, messages


def notifications_are_on_disk_before_a_connection_is_idle(manager):
    client = owner(manager)
    manager.take_stored(1)
    for round in range(20):
        message = {"jsonrpc": "2.0", "method": "encodeRestorableState",
                   "params": {"object": client.object, "state": {"round": round}}}
        client.socket.sendall(json.dumps(message).encode())
        Client(manager).call("ping")
        manager.kill()
        manager.start()
        if client.goes_on():
            state = client.call("decodeRestorableState", object=client.object)["state"]
            assert state == {"round": round}, state
        else:
            # It was busy, and its peer saw the end.
            client = owner_again(manager, client)
            manager.take_stored(1)


class Framed(Client):
    """The same over Content-Length or HTTP, whose frames may be cut anywhere."""

    def __init__(self, manager, kind):
        super().__init__(manager)
        self.kind = kind

    def frame(self, number):
        body = self.text(number, "ping", {})
        if self.kind == "json":
            return body
        line = b"POST / HTTP/1.1\r\nHost: broker\r\n" if self.kind == "http" else b""
        return line + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def receive(self):
        if self.kind == "json":
            return super().receive()
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(self.buffer) < length:
            self.more()
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return json.loads(body)

    def more(self):
        part = self.socket.recv(1 << 16)
        assert part, "the connection has ended"
        self.buffer += part


def requests_may_be_cut_anywhere_by_an_orderly_end(manager):
    over = threading.Event()
    faults = []
    peers = [Framed(manager, kind) for kind in ("json", "length", "http") for _ in range(4)]

    def run(peer, random):
        number = 0
        try:
            while not over.is_set():
                count = random.choice([1, 2, 3])
                data = b"".join(peer.frame(number + i + 1) for i in range(count))
                while data:
                    cut = random.randrange(1, 60)
                    peer.socket.sendall(data[:cut])
                    data = data[cut:]
                for _ in range(count):
                    number += 1
                    assert peer.answer(number)["result"] == {}
        except Exception as error:
            faults.append(f"{peer.kind} {number}: {error!r}")

    threads = [threading.Thread(target=run, args=(peer, Random(i))) for i, peer in enumerate(peers)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        manager.stop()
        manager.start()
    over.set()
    for thread in threads:
        thread.join()
    assert not faults, faults


def a_body_that_comes_while_others_are_waited_for_is_whole(manager):
    slow = Framed(manager, "http")
    peer = Framed(manager, "length")
    first, second = slow.frame(1), peer.frame(2)
    slow.socket.sendall(first[:-5])
    peer.socket.sendall(second[:-30])
    settle(manager)
    # The broker reads once more than it needs to, and waits for the slow one.
    timers = [threading.Timer(0.2, peer.socket.sendall, [second[-30:-10]]),
              threading.Timer(0.4, slow.socket.sendall, [first[-5:]])]
    for timer in timers:
        timer.start()
    manager.stop()
    assert slow.answer(1)["result"] == {}
    manager.start()
    peer.socket.sendall(second[-10:] + peer.frame(3))
    assert peer.answer(2)["result"] == {}
    assert peer.answer(3)["result"] == {}


def a_peer_that_has_ended_its_input_gets_all_its_answers(manager):
    client = owner(manager)
    client.call("encodeRestorableState", object=client.object, state={"text": "x" * 200_000})
    numbers = [client.send("decodeRestorableState", object=client.object) for _ in range(40)]
    client.socket.shutdown(socket.SHUT_WR)
    settle(manager)
    manager.stop()
    manager.start()
    seen = []
    while (message := client.receive()) is not None:
        seen.append(message["id"])
    assert sorted(seen) == numbers, (len(seen), client.buffer[-100:])


def a_notification_that_waits_holds_its_connection(manager):
    for round in range(5):
        name = f"org.example.new{round}"
        client = Client(manager)
        manager.take_stored(1)
        params = {"application": name, "restorationIdentifier": "X"}
        message = {"jsonrpc": "2.0", "method": "registerObjectForStateRestoration", "params": params}
        # Its archive must be created first.
        client.socket.sendall(json.dumps(message).encode())
        settle(manager)
        manager.kill()
        manager.start()
        if client.goes_on():
            objects = client.call("describeApplication", application=name)["objects"]
            assert [entry["path"] for entry in objects] == [["X"]], objects
        client.socket.close()
        while manager.stored():
            manager.take()


def what_events_were_lost_is_told_before_the_end(manager):
    client = owner(manager)
    observer = Client(manager)
    observer.call("subscribe", application="org.example.kept", events=["objectRegistered"])
    manager.take_stored(2)
    count = 9000

    def read():
        for _ in range(count):
            client.receive()

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(count):
        client.send("registerObjectForStateRestoration", restorationIdentifier=f"object-{number}-" + "y" * 80)
    reader.join()
    manager.stop()
    manager.start()
    told = 0
    while told < count:
        event = observer.receive()["params"]
        told += event["lost"] if event["name"] == "eventsLost" else 1
    assert told == count, told


def a_connection_that_closes_is_let_go(manager):
    client = owner(manager)
    manager.take_stored(1)
    client.socket.close()
    while manager.stored():
        manager.take()
    refused = Client(manager)
    manager.take_stored(1)
    refused.socket.sendall(b"?")
    # The broker ends this connection although the store holds a duplicate.
    while refused.receive() is not None:
        pass
    refused.socket.close()
    while manager.stored():
        manager.take()


def descriptors(manager):
    """The descriptors that the broker has open, by kind."""
    directory = f"/proc/{manager.process.pid}/fd"
    found = []
    for number in os.listdir(directory):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            name = os.readlink(f"{directory}/{number}")
            found.append("socket" if name.startswith("socket:") else name)
    return sorted(found)


def connections_that_come_and_go_leave_nothing(manager):
    def come_and_go():
        clients = [owner(manager)] + [Client(manager) for _ in range(20)]
        for client in clients:
            client.call("ping")
        manager.take_stored(len(clients))
        for end in (manager.kill, manager.stop):
            settle(manager)
            end()
            manager.start()
        # A session without a goodbye could be resumed, so its process is watched.
        clients[0].call("goodbye", reason="restart")
        for client in clients:
            client.call("ping")
            client.socket.close()
        # The store drops its duplicates when the broker has closed its own.
        while manager.stored():
            manager.take()
        assert [name for name, _ in manager.store] == ["ledger"], manager.store
        # The pidfd is closed after the session has ended, soon after the answer.
        end_of_waiting = time.monotonic() + DEADLINE
        while "anon_inode:[pidfd]" in descriptors(manager):
            assert time.monotonic() < end_of_waiting, descriptors(manager)
        # The archive may be open or closed.
        return len([name for name in descriptors(manager) if "/org.example.kept" not in name])

    sockets = descriptors(manager).count("socket")
    count = come_and_go()
    for _ in range(3):
        again = come_and_go()
        assert again <= count, (again, count, descriptors(manager))
    assert descriptors(manager).count("socket") == sockets, descriptors(manager)


def a_ledger_that_makes_no_sense_ends_connections(manager):
    def overwrite(ledger):
        os.pwrite(ledger, b"\xff" * 4096, 0)

    def shorten(ledger):
        os.ftruncate(ledger, 256)

    client = owner(manager)
    for cursor, damage in enumerate([overwrite, shorten]):
        manager.take_stored(1)
        settle(manager)
        manager.kill()
        for name, descriptor in manager.store:
            if name == "ledger":
                damage(descriptor)
        manager.start()
        assert client.has_ended()
        assert manager.logged("their ledger is damaged") == cursor + 1
        client = owner_again(manager, client)
        check_owner(client, cursor)


def owner_again(manager, former):
    client = Client(manager)
    session = client.call("initialize", application="org.example.kept", process="editor",
                          session=former.session["session"])
    assert session["session"] == former.session["session"]
    client.object = former.object
    client.session = session
    return client


def the_library_in_python_waits_on_at_the_next_broker(manager):
    sent, reconnected = threading.Semaphore(0), []
    with restorationd.Session("org.example.kept", socket=manager.path) as session:
        session.on_reconnected = reconnected.append
        send = session._send
        results = []

        def counted(*arguments):
            send(*arguments)
            sent.release()

        session._send = counted
        waiting = threading.Thread(
            target=lambda: results.append(session.register("Child", parent=["Missing"], wait=DEADLINE)))
        waiting.start()
        assert sent.acquire(timeout=DEADLINE)
        Client(manager).call("ping")
        manager.stop()
        manager.start()
        # One broker refused it, and the other answered.
        assert sent.acquire(timeout=DEADLINE)
        parent = owner(manager)
        parent.call("registerObjectForStateRestoration", restorationIdentifier="Missing")
        waiting.join()
        assert results[0].path == ("Missing", "Child"), results
        assert not reconnected


def the_library_for_asyncio_waits_on_at_the_next_broker(manager):
    async def wait_on():
        sent, reconnected = asyncio.Semaphore(0), []
        async with restorationd.AsyncSession("org.example.kept", socket=manager.path) as session:
            session.on_reconnected = reconnected.append
            send = session._send

            async def counted(*arguments):
                await send(*arguments)
                sent.release()

            session._send = counted
            waiting = asyncio.ensure_future(session.register("Child", parent=["Missing"], wait=DEADLINE))
            await asyncio.wait_for(sent.acquire(), DEADLINE)
            Client(manager).call("ping")
            manager.stop()
            manager.start()
            await asyncio.wait_for(sent.acquire(), DEADLINE)
            parent = owner(manager)
            parent.call("registerObjectForStateRestoration", restorationIdentifier="Missing")
            assert (await waiting).path == ("Missing", "Child")
            assert not reconnected

    asyncio.run(wait_on())


SCENARIOS = [
    idle_connections_survive_a_kill,
    idle_connections_survive_a_kill_after_an_orderly_end,
    busy_connections_end_with_a_kill,
    all_connections_survive_an_orderly_end,
    a_reader_that_does_not_read_gets_all_its_answers,
    requests_in_flight_are_answered_exactly_once,
    parked_calls_end_early,
    subscriptions_survive,
    http_connections_survive,
    detached_sessions_stay_with_their_connection,
    what_was_not_stored_is_asked_for_by_the_next_broker,
    notifications_are_on_disk_before_a_connection_is_idle,
    requests_may_be_cut_anywhere_by_an_orderly_end,
    a_body_that_comes_while_others_are_waited_for_is_whole,
    a_peer_that_has_ended_its_input_gets_all_its_answers,
    a_notification_that_waits_holds_its_connection,
    what_events_were_lost_is_told_before_the_end,
    a_connection_that_closes_is_let_go,
    connections_that_come_and_go_leave_nothing,
    a_ledger_that_makes_no_sense_ends_connections,
    the_library_in_python_waits_on_at_the_next_broker,
    the_library_for_asyncio_waits_on_at_the_next_broker,
]


def main():
    if len(sys.argv) < 3:
        print("\n".join(scenario.__name__ for scenario in SCENARIOS))
        return
    scenario = next(scenario for scenario in SCENARIOS if scenario.__name__ == sys.argv[2])
    manager = Manager(sys.argv[1])
    try:
        manager.start()
        scenario(manager)
    except BaseException:
        sys.stderr.write(open(os.path.join(manager.directory, "log")).read()[-4000:])
        raise
    finally:
        manager.end()


main()
