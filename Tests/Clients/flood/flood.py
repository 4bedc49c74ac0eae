# SPDX-License-Identifier: Apache-2.0
"""A client that tries to make the broker hold much: flood.py SOCKET SHAPE VOLUME

SHAPE is one of those below; VOLUME is a number of hundredths of what it does at most. When it has done its worst, at
the latest after a minute, it writes one line, {"sent": bytes, "answers": lines}, and holds its connections and whatever
it has made the broker hold until its standard input ends. `flood.py --list` names the shapes.
"""

import itertools
import json
import select
import signal
import socket
import sys

#: An application of its own; what is in it was made by this process.
APPLICATION = "org.example.Flood"
#: The most time it takes, in seconds.
LIMIT = 60
#: A connection that takes nothing for so long will take nothing more, in seconds.
STALL = 0.3
KIB = 1024


def message(method, params, number=1):
    params = {"application": APPLICATION, **params}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def state(size):
    return {"pad": "x" * size}


class Line:
    """A connection. What is sent without waiting is an iterator of texts, so that a flood needs little memory here."""

    def __init__(self, flood):
        self.flood = flood
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(flood.path)
        self.texts = iter(())
        self.unsent = memoryview(b"")
        self.unread = b""
        self.reads = True

    def call(self, method, **params):
        """Waits for the answer, which may be an error."""
        text = message(method, params)
        self.socket.setblocking(True)
        self.socket.sendall(text.encode())
        self.flood.sent += len(text)
        while True:
            while b"\n" not in self.unread:
                data = self.socket.recv(256 * KIB)
                if not data:
                    return {"error": {"message": "closed"}}
                self.unread += data
            line, self.unread = self.unread.split(b"\n", 1)
            answer = json.loads(line)
            if "id" in answer and "method" not in answer:
                return answer

    def result(self, method, **params):
        answer = self.call(method, **params)
        if "result" not in answer:
            raise SystemExit(f"{method}: {json.dumps(answer)[:500]}")
        return answer["result"]

    # What `Flood.pump` asks for.

    def write(self):
        """False when there is nothing more to send."""
        if not self.unsent:
            batch = list(itertools.islice(self.texts, 32))
            if not batch:
                return False
            self.unsent = memoryview("".join(batch).encode())
        count = self.socket.send(self.unsent)
        self.unsent = self.unsent[count:]
        self.flood.sent += count
        return True

    def read(self):
        """False when the connection has ended."""
        data = self.socket.recv(256 * KIB)
        self.flood.answers += data.count(b"\n")
        return bool(data)


class Flood:
    def __init__(self, path, volume):
        self.path = path
        self.volume = volume
        self.lines = []
        self.sent = 0
        self.answers = 0

    def part(self, count, least=1):
        """So much of `count` as the volume says."""
        return max(least, count * self.volume // 100)

    def line(self, **initialize):
        line = Line(self)
        self.lines.append(line)
        if initialize:
            line.result("initialize", application=APPLICATION, **initialize)
        return line

    def crowd(self, count):
        return [self.line() for _ in range(count)]

    def swamp(self, texts, count=None, reads=False):
        """Each of many connections sends `texts()`; unless it `reads`, nobody takes the answers."""
        crowd = self.crowd(count or self.part(100, 10))
        for one in crowd:
            one.texts = texts()
        self.pump(crowd, reads)

    def pump(self, lines=None, reads=True):
        """Sends what the lines have to send, until all of it is sent and nothing more happens."""
        lines = list(self.lines if lines is None else lines)
        poll = select.poll()
        by_descriptor = {}
        for line in lines:
            line.socket.setblocking(False)
            by_descriptor[line.socket.fileno()] = line
            poll.register(line.socket, select.POLLOUT | (select.POLLIN if reads else 0))
        while by_descriptor:
            events = poll.poll(int(1000 * STALL))
            if not events:
                return
            for descriptor, event in events:
                line = by_descriptor[descriptor]
                try:
                    if event & select.POLLIN and reads and not line.read():
                        raise ConnectionResetError
                    if event & (select.POLLERR | select.POLLHUP) and not event & select.POLLIN:
                        raise ConnectionResetError
                    if event & select.POLLOUT and not line.write():
                        if reads:
                            poll.modify(descriptor, select.POLLIN)
                        else:
                            poll.unregister(descriptor)
                            del by_descriptor[descriptor]
                except BlockingIOError:
                    pass
                except ConnectionError:
                    poll.unregister(descriptor)
                    del by_descriptor[descriptor]


class Enough(Exception):
    """The time is over."""


def end(*_):
    raise Enough


SHAPES = {}


def shape(function):
    SHAPES[function.__name__] = function
    return function


def classes(number, size=255, count=64):
    return [f"{number}.{index}.".ljust(size, "c") for index in range(count)]


# What is stored


@shape
def class_lists(flood):
    """One object, registered with another list of classes again and again, and encoded."""
    line = flood.line(process="main")

    def texts():
        for number in range(flood.part(50_000)):
            register = {"restorationIdentifier": "A", "objectClass": classes(number)}
            yield message("registerObjectForStateRestoration", register, 2 * number)
            yield message("encodeRestorableState", {"object": ["A"], "state": {"n": number}}, 2 * number + 1)

    line.texts = texts()
    flood.pump()


@shape
def stateless_objects(flood):
    """As many objects as there may be, with the longest texts, and no state."""
    line = flood.line()
    line.texts = (
        message(
            "registerObjectForStateRestoration",
            {
                "restorationIdentifier": f"{number}.".ljust(255, "i"),
                "objectClass": classes(number),
                "restorationClass": f"{number}.".ljust(1_024, "r"),
            },
            number,
        )
        for number in range(flood.part(20_000))
    )
    flood.pump()


@shape
def texts_of_applications(flood):
    """As many texts as an archive may have, in one application after the other."""
    lines = []
    for application in range(flood.part(8)):
        line = flood.line()
        line.call("initialize", application=f"a{application}")
        lines.append(line)
    for application, line in enumerate(lines):
        line.texts = (
            message(
                "registerObjectForStateRestoration",
                {"application": f"a{application}", "restorationIdentifier": f"o{number}", "objectClass": classes(number)},
                number,
            )
            for number in range(flood.part(5_000))
        )
    flood.pump()


@shape
def changing_states(flood):
    """States that change below a pinned generation, which may not be given up."""
    line = flood.line(process="main")
    for number in range(8):
        line.result("registerObjectForStateRestoration", restorationIdentifier=f"o{number}")
        line.result("encodeRestorableState", object=[f"o{number}"], state=state(200 * KIB))
    line.result("saveApplicationState")
    line.result("restoreApplicationState", deadlineMilliseconds=1_000)

    def texts():
        for number in range(flood.part(8_000)):
            pushed = {"n": number, **state(200 * KIB)}
            yield message("encodeRestorableState", {"object": [f"o{number % 8}"], "state": pushed}, number)
            if number % 100 == 99:
                yield message("saveApplicationState", {}, number + 1_000_000)

    line.texts = texts()
    flood.pump()


@shape
def full_archive(flood):
    """States up to the limit of the archive, then all of them again, with a generation after each time."""
    line = flood.line(process="main")

    def texts():
        for again in range(4):
            for number in range(flood.part(320)):
                pushed = {"n": again, **state(210 * KIB)}
                yield message("encodeRestorableState", {"object": [f"o{number}"], "state": pushed}, number + 1)
            yield message("saveApplicationState", {}, 1_000_000 + again)

    line.texts = texts()
    flood.pump()


@shape
def small_states(flood):
    """Many objects, with a state of a few bytes that is written again and again."""
    line = flood.line()
    line.texts = (
        message("encodeRestorableState", {"object": [f"o{number % 16_000}"], "state": {"n": number}}, number)
        for number in range(flood.part(300_000))
    )
    flood.pump()


@shape
def early_states(flood):
    """States that hide what other sessions stored before."""
    line = flood.line(process="main")
    line.result("encodeRestorableState", object=["first"], state={})
    for number in range(flood.part(240)):
        line.call("encodeRestorableState", object=[f"o{number}"], state=state(250 * KIB))
    line.result("goodbye", reason="restart")
    again = flood.line(process="main")

    def texts():
        for number in range(flood.part(240)):
            yield message("registerObjectForStateRestoration", {"restorationIdentifier": f"o{number}"}, 2 * number)
            yield message("encodeRestorableState", {"object": [f"o{number}"], "state": state(240 * KIB)}, 2 * number + 1)

    again.texts = texts()
    flood.pump([again])


@shape
def excluded_states(flood):
    """States of views without identifier, which are kept in memory."""
    line = flood.line(process="main")
    for _ in range(flood.part(400)):
        view = line.result("registerObjectForStateRestoration", kind="view")["object"]
        line.call("encodeRestorableState", object=view, state=state(250 * KIB))


@shape
def closed_subtrees(flood):
    """Subtrees that are closed, and can be opened again."""
    line = flood.line(process="main")
    for number in range(flood.part(300)):
        for name in ("A", "B"):
            path = [f"w{number}"] if name == "A" else [f"w{number}", "B"]
            line.call(
                "registerObjectForStateRestoration",
                restorationIdentifier=path[-1],
                restorationParent=path[:-1] or None,
                kind="viewController",
            )
            line.call("encodeRestorableState", object=path, state=state(250 * KIB))
        line.call("unregisterObject", object=[f"w{number}"], keepState=False)


@shape
def writers(flood):
    """States of ever different roles and versions."""
    for number in range(flood.part(3_000)):
        line = Line(flood)
        line.call("initialize", process=f"{number}.".ljust(255, "p"), bundleVersion=f"{number}.".ljust(1_000, "v"))
        line.call("registerObjectForStateRestoration", restorationIdentifier=f"o{number}", objectClass=classes(number))
        line.call("encodeRestorableState", object=[f"o{number}"], state={"n": number})
        line.call("goodbye", reason="restart")
        line.socket.close()


@shape
def references(flood):
    """Short states that are long when they are decoded: each reference leads to a path of 4 KiB."""
    line = flood.line()
    path = [f"{number}".ljust(255, "p") for number in range(16)]
    target = line.result("encodeRestorableState", object=path, state={})
    assert target
    parent, handles = None, []
    for name in path:
        made = line.result("registerObjectForStateRestoration", restorationIdentifier=name, restorationParent=parent)
        parent = made["object"]
    handles = {"list": [{"$restorable": parent}] * 500}

    def texts():
        for number in range(flood.part(4_000)):
            yield message("encodeRestorableState", {"object": [f"o{number % 64}"], "state": handles}, 2 * number)
            yield message("decodeRestorableState", {"object": [f"o{number % 64}"]}, 2 * number + 1)

    line.texts = texts()
    flood.pump([line], reads=False)


@shape
def deep_paths(flood):
    """Paths of 2,000 components, renamed at their root."""
    line = flood.line()
    for number in range(flood.part(8)):
        path = [f"r{number}"] + ["p"] * 2_000
        line.call("encodeRestorableState", object=path, state={})
    root = line.result("registerObjectForStateRestoration", restorationIdentifier="r0")["object"]
    line.texts = (
        message("setRestorationIdentifier", {"object": root, "restorationIdentifier": f"q{number}"}, number)
        for number in range(flood.part(400))
    )
    flood.pump()


# What is asked for


def store(line, count, size):
    for number in range(count):
        line.result("encodeRestorableState", object=[f"o{number}"], state=state(size))


@shape
def batches_of_decodes(flood):
    """Batches of 256 decodes of long states over many connections, which nobody reads."""
    line = flood.line()
    store(line, 16, 250 * KIB)
    decodes = [message("decodeRestorableState", {"object": [f"o{n % 16}"]}, n)[:-1] for n in range(256)]
    flood.swamp(lambda: iter(["[" + ",".join(decodes) + "]\n"] * 4))


@shape
def pages_nobody_reads(flood):
    """Pages of 1 MiB over many connections, which nobody reads."""
    line = flood.line()
    store(line, 64, 200 * KIB)
    flood.swamp(lambda: (message("readArchive", {}, number) for number in range(1_000)))


@shape
def decodes_nobody_reads(flood):
    line = flood.line()
    store(line, 64, 250 * KIB)
    decodes = lambda: (message("decodeRestorableState", {"object": [f"o{n % 64}"]}, n) for n in range(1_000))
    flood.swamp(decodes, flood.part(120, 10))


@shape
def exports(flood):
    """Exports that are begun over many connections and never ended."""
    line = flood.line()
    store(line, 64, 200 * KIB)
    flood.swamp(lambda: (message("exportArchive", {}, number) for number in range(200)))


@shape
def long_exports(flood):
    """Exports of many objects with the longest paths, over many connections, which nobody reads."""
    line = flood.line()
    line.texts = (
        message("encodeRestorableState", {"object": ["p"] * 1_900 + [f"{n}"], "state": {}}, n)
        for n in range(flood.part(14_000))
    )
    flood.pump()
    flood.swamp(lambda: (message("exportArchive", {}, number) for number in range(20)))


@shape
def descriptions(flood):
    """Descriptions and lists of much, which nobody reads."""
    line = flood.line()
    line.texts = (
        message("encodeRestorableState", {"object": [f"{n}.".ljust(255, "o")], "state": {}}, n)
        for n in range(flood.part(16_000))
    )
    flood.pump()
    methods = ("describeApplication", "listApplications", "rpc.discover", "limits")
    flood.swamp(lambda: (message(methods[n % 4], {}, n) for n in range(1_000)))


@shape
def comparisons(flood):
    """Generations that are compared, verified and rolled back over many connections, which nobody reads."""
    line = flood.line()
    for again in range(3):
        line.texts = (
            message("encodeRestorableState", {"object": [f"o{n}"], "state": {"n": n, "again": again}}, n)
            for n in range(flood.part(16_000))
        )
        flood.pump([line])
        line.result("saveApplicationState")
    calls = (("diffGenerations", {"from": 1}), ("verifyArchive", {}), ("readArchive", {}))
    flood.swamp(lambda: (message(*calls[n % 3], n) for n in range(300)))


@shape
def errors(flood):
    """Requests that are invalid, so that errors tell their long values; nobody reads them."""
    long = "x" * 200_000
    params = (
        {"object": [long], "state": {}},
        {"object": long, "state": {}},
        {"object": ["a"], "state": {"UIStateRestoration" + long: 1}},
        {"object": ["a"], "state": {"r": {"$restorable": [long]}}},
        {"object": ["a"], "state": long},
    )
    count = flood.part(200)
    flood.swamp(lambda: (message("encodeRestorableState", params[n % len(params)], n) for n in range(count)))


@shape
def long_ids(flood):
    """Requests with ids of 1 MB, which are refused; nobody reads that."""
    count = flood.part(30)
    flood.swamp(lambda: (message("ping", {}, f"{n}.".ljust(1_000_000, "i")) for n in range(count)))


# What waits


@shape
def parked_calls(flood):
    """Calls with long parameters that wait for a parent."""
    crowd = flood.crowd(flood.part(100, 10))
    for one in crowd:
        one.result("initialize", application=APPLICATION)
        one.texts = (
            message(
                "registerObjectForStateRestoration",
                {
                    "restorationIdentifier": f"o{n}",
                    "restorationParent": ["never"],
                    "awaitParentMilliseconds": 3_600_000,
                    "objectClass": classes(n),
                },
                n,
            )
            for n in range(flood.part(1_100, 100))
        )
    flood.pump(crowd, reads=False)


@shape
def polls(flood):
    """Sessions that poll, and never fetch what is there for them."""
    crowd = flood.crowd(flood.part(100, 10))
    for number, one in enumerate(crowd):
        one.result("initialize", application=APPLICATION, process=f"p{number}")
        serves = ["encodeRestorableStateWithCoder", "pathChanged", "applicationStateSaved"]
        one.result("nextRequest", serves=serves)
        one.result("registerObjectForStateRestoration", restorationIdentifier=f"o{number}")
    line = flood.line()
    line.texts = (
        message("saveApplicationState", {"deadlineMilliseconds": 10, "reason": "r" * 50_000}, n)
        for n in range(flood.part(1_000))
    )
    flood.pump([line])


@shape
def subscriptions(flood):
    """As many subscriptions as there may be, over many connections, which nobody reads; and much that happens."""
    crowd = flood.crowd(flood.part(100, 10))
    # Until one is refused.
    all("result" in one.call("subscribe") for one in crowd * 64)
    line = flood.line()
    line.texts = (
        message("encodeRestorableState", {"object": [f"{n}.".ljust(255, "o")] * 8, "state": {"n": n}}, n)
        for n in range(flood.part(3_000))
    )
    flood.pump([line])


@shape
def progress_tokens(flood):
    """Operations with the longest tokens, which wait for each other."""
    line = flood.line()
    store(line, 8, 100 * KIB)
    crowd = flood.crowd(flood.part(100, 10))
    for one in crowd:
        one.result("initialize", application=APPLICATION, serves=["progress"])
        one.texts = (
            message(("verifyArchive", "exportArchive")[n % 2], {"progressToken": f"{n}.".ljust(1_024, "t")}, n)
            for n in range(1_000)
        )
    flood.pump(crowd, reads=False)


@shape
def sessions(flood):
    """As many sessions as one process may have, detached ones among them, each of another role."""
    for number in range(flood.part(1_000)):
        body = message("initialize", {"process": f"{number}.".ljust(255, "p"), "bundleVersion": "v" * 1_000_000}).encode()
        line = flood.lines[number % 100] if number >= 100 else flood.line()
        head = f"POST / HTTP/1.1\r\nHost: broker\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        line.socket.sendall(head + body)
        flood.sent += len(head + body)
        line.socket.recv(256 * KIB)


@shape
def applications(flood):
    """As many applications as there may be, and calls that make more."""
    line = flood.line()
    line.texts = (
        message("encodeRestorableState", {"application": f"a{n}", "object": ["o"], "state": state(60 * KIB)}, n)
        for n in range(flood.part(2_000))
    )
    flood.pump()


@shape
def questions(flood):
    """Data sources that are asked to name elements, and never answer."""
    line = flood.line()
    line.result("initialize", application=APPLICATION, serves=["modelIdentifierForElementAtIndexPath"])
    elements = [{"role": "selected", "indexPath": [n] * 8} for n in range(2_000)]

    def texts():
        for number in range(flood.part(400)):
            name = f"v{number % 64}"
            yield message("registerObjectForStateRestoration", {"restorationIdentifier": name, "kind": "view"}, 3 * number)
            yield message("registerDataSource", {"view": [name]}, 3 * number + 1)
            params = {"object": [name], "state": {}, "elements": elements}
            yield message("encodeRestorableState", params, 3 * number + 2)

    line.texts = texts()
    flood.pump([line], reads=False)


@shape
def notifications(flood):
    """Encodes that have no answer, faster than the disk takes them."""
    crowd = flood.crowd(flood.part(100, 10))
    for number, one in enumerate(crowd):
        text = json.loads(message("encodeRestorableState", {"object": [f"o{number}"], "state": state(100 * KIB)}))
        del text["id"]
        one.texts = iter([json.dumps(text) + "\n"] * flood.part(300))
    flood.pump()


# What comes in parts


def upload(flood, objects):
    """Imports in parts over many connections, never finished; `objects` of each part."""
    for number, one in enumerate(flood.crowd(flood.part(100, 10))):
        begun = {}
        for part in range(flood.part(40)):
            document = {"format": "restorationd.archive", "version": 1, "objects": objects(part)}
            application = f"{APPLICATION}{number % 20}"
            answer = one.call("importArchive", application=application, part=document, more=True, **begun)
            if "result" not in answer:
                break
            begun = {"upload": answer["result"]["upload"]}


@shape
def uploads(flood):
    """Imports of many short objects."""
    upload(flood, lambda part: [{"path": [f"{part}.{n}"], "kind": "view"} for n in range(8_000)])


@shape
def long_states_in_parts(flood):
    """Imports of long states."""
    writer = {"userInterfaceIdiom": -1, "systemVersion": "s", "written": "2026-01-01T00:00:00.000Z"}
    kept = {"kind": "view", "state": state(250 * KIB), "writer": writer}
    upload(flood, lambda part: [{"path": [f"{part}.{n}"], **kept} for n in range(14)])


def endless(flood, head, piece, count):
    """Each connection sends the head and then as many pieces as the broker takes."""
    flood.swamp(lambda: itertools.chain([head], itertools.repeat(piece, count)), reads=True)


@shape
def unfinished_frames(flood):
    """Frames of nearly 4 MiB over many connections, never finished."""
    endless(flood, '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', "x" * 64 * KIB, 63)


@shape
def unfinished_values(flood):
    """The same, of as many short values as a frame may have."""
    endless(flood, '{"jsonrpc":"2.0","id":1,"method":"ping","params":[[', "[]," * 16 * KIB + "[],[", 1)


@shape
def endless_frames(flood):
    """Frames that are too long, and go on."""
    endless(flood, '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', "x" * 64 * KIB, flood.part(1_000))


@shape
def endless_headers(flood):
    """Requests of HTTP whose head does not end."""
    endless(flood, "POST / HTTP/1.1\r\n", "X-Header: " + "h" * 8_000 + "\r\n", flood.part(4_000))


@shape
def chunked_bodies(flood):
    """Bodies in chunks of one byte that go on for ever."""
    head = "POST / HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    endless(flood, head, "1\r\n[\r\n1\r\n\"\r\n" + "1\r\nx\r\n" * 8_000, flood.part(200))


@shape
def pipelined_posts(flood):
    """Requests of HTTP one behind the other, whose responses nobody reads."""
    line = flood.line()
    store(line, 8, 250 * KIB)
    body = message("decodeRestorableState", {"object": ["o1"]})
    post = f"POST / HTTP/1.1\r\nHost: b\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    flood.swamp(lambda: itertools.repeat(post, 1_000))


@shape
def content_lengths(flood):
    """Frames whose announced length never comes, behind ever longer heads."""
    endless(flood, "Content-Length: 4194304\r\n\r\n", "[" * 60 + "x" * 60 * KIB, 64)


@shape
def deep_arrays(flood):
    """Arrays as deep and as many as a frame may have."""
    one = "[" * 60 + "]" * 60
    text = '{"jsonrpc":"2.0","id":1,"method":"ping","params":[' + ",".join([one] * 1_000) + "]}\n"
    flood.swamp(lambda: itertools.repeat(text, flood.part(100)), reads=True)


@shape
def pings(flood):
    """Pings over as many connections as one process may have."""
    text = message("ping", {})
    flood.swamp(lambda: itertools.repeat(text, flood.part(20_000)), flood.part(127, 12), reads=True)


@shape
def connections(flood):
    """Connections that come and go, in the middle of a message."""
    for number in range(flood.part(20_000)):
        one = Line(flood)
        one.socket.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * (number % 4) * KIB)
        one.socket.close()


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(SHAPES))
        return
    path, name, volume = sys.argv[1:]
    flood = Flood(path, int(volume))
    signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT)
    try:
        SHAPES[name](flood)
    except (ConnectionError, Enough):
        # To cut it off is one way to bound it.
        pass
    signal.alarm(0)
    print(json.dumps({"sent": flood.sent, "answers": flood.answers}), flush=True)
    sys.stdin.read()


main()
