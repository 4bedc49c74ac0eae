# SPDX-License-Identifier: Apache-2.0
"""The messages between a broker and its service manager: service.py PROGRAM SCENARIO

The manager is played by `keeping/manager.py`. A scenario that fails ends with a traceback.
"""

import concurrent.futures
import ctypes
import functools
import json
import os
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "keeping"))

from manager import DEADLINE, Manager  # noqa: E402


class Service(Manager):
    running = []

    def __init__(self, program, configuration=None, variables=None, arguments=()):
        super().__init__(program, list(arguments))
        self.running.append(self)
        self.configuration = os.path.join(self.directory, "config.json")
        self.arguments += ["--config", self.configuration]
        self.configure(configuration or {})
        self.variables = variables or {}

    def configure(self, configuration):
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(configuration if isinstance(configuration, str) else json.dumps(configuration))

    def start(self):
        kept = {name: os.environ.get(name) for name in self.variables}
        os.environ.update(self.variables)
        try:
            super().start()
        finally:
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        return self

    def log_text(self):
        with open(os.path.join(self.directory, "log"), encoding="utf-8") as file:
            return file.read()

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(DEADLINE)
        client.connect(self.path)
        return client.makefile("rwb", buffering=0)

    def call(self, client, method, **params):
        client.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        reply = json.loads(client.readline())
        assert "result" in reply, reply
        return reply["result"]

    def lines_until(self, wanted):
        """Every line up to one that begins like this."""
        lines = []
        while not any(line.startswith(wanted) for line in lines):
            lines += self.take()
        return lines

    def says_within(self, wanted, seconds):
        """Whether a line that begins like this comes within that time."""
        end = time.monotonic() + seconds
        try:
            while (left := end - time.monotonic()) > 0:
                self.notify.settimeout(left)
                if any(line.startswith(wanted) for line in self.take()):
                    return True
            return False
        except TimeoutError:
            return False
        finally:
            self.notify.settimeout(DEADLINE)

    def threads(self, name):
        """The numbers of the threads whose names begin so; those that they start may inherit the name."""
        tasks = f"/proc/{self.process.pid}/task"
        names = {int(task): open(f"{tasks}/{task}/comm", encoding="utf-8").read().strip() for task in os.listdir(tasks)}
        found = [task for task, title in names.items() if title.startswith(name)]
        assert found, names
        return found


class Frozen:
    """Some stopped threads, while all others of their process run."""

    SEIZE, INTERRUPT, DETACH, ALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, threads):
        self.threads = threads
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def trace(self, request):
        for thread in self.threads:
            assert self.libc.ptrace(request, thread, None, None) == 0, os.strerror(ctypes.get_errno())

    def __enter__(self):
        self.trace(self.SEIZE)
        self.trace(self.INTERRUPT)
        for thread in self.threads:
            os.waitpid(thread, self.ALL)
        return self

    def __exit__(self, *_):
        self.trace(self.DETACH)


def activation(program):
    """A client that connects before the broker runs is served; the manager is told of every step, and of the end."""
    service = Service(program)
    early = service.connect()
    early.write(b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n')
    service.start()
    assert json.loads(early.readline())["id"] == 7
    service.lines_until("STATUS=0 applications, 0 sessions, 0 objects, 1 connection")
    service.call(early, "initialize", application="org.example.Service")
    service.call(early, "registerObjectForStateRestoration", restorationIdentifier="Main")
    service.lines_until("STATUS=1 application, 1 session, 1 object, 1 connection")
    for _ in range(200):
        service.call(early, "ping")
    assert not service.says_within("STATUS=", 1.5), "nothing has changed"
    service.process.send_signal(signal.SIGTERM)
    lines = service.lines_until("STATUS=saving")
    assert "STOPPING=1" in lines, lines
    service.lines_until("EXTEND_TIMEOUT_USEC=")
    service.lines_until("BARRIER=1")
    assert service.process.wait(DEADLINE) == 0
    assert os.path.exists(service.path), "the socket is the manager's"
    service.end()


def changes_are_told_once_a_second(program):
    service = Service(program).start()
    service.lines_until("STATUS=")
    begin = time.monotonic()
    clients = []
    said = 0
    while time.monotonic() - begin < 2.5:
        clients.append(service.connect())
        service.call(clients[-1], "ping")
        if len(clients) > 100:
            clients.clear()
        said += service.says_within("STATUS=", 0.02)
    assert 1 <= said <= 3, said
    service.end()


def reload(program):
    service = Service(program, {"limits": {"objectsPerApplicationMax": 1}}).start()
    client = service.connect()
    service.call(client, "initialize", application="org.example.Service")
    service.call(client, "registerObjectForStateRestoration", restorationIdentifier="One")
    two = {"jsonrpc": "2.0", "id": 2, "method": "registerObjectForStateRestoration"}
    two["params"] = {"restorationIdentifier": "Two"}

    def register():
        client.write(json.dumps(two).encode() + b"\n")
        return json.loads(client.readline())

    def again():
        service.process.send_signal(signal.SIGHUP)
        lines = service.lines_until("RELOADING=1")
        assert any(line.startswith("MONOTONIC_USEC=") for line in lines), lines
        return [line for line in service.lines_until("READY=1") if line.startswith("STATUS=")]

    assert register()["error"]["code"] == -32008
    service.lines_until("STATUS=1 application, 1 session, 1 object, 1 connection")
    service.configure('{"limits":')
    [status] = again()
    assert "is unchanged" in service.log_text() and "config.json" in service.log_text()
    assert "1 object" in status and "is unchanged" in status and "config.json" in status, status
    assert register()["error"]["code"] == -32008
    service.configure({"limits": {"objectsPerApplicationMax": 0}})
    again()
    assert register()["error"]["code"] == -32008
    service.configure({"limits": {"objectsPerApplicationMax": 2, "batchMax": 5}, "logLevel": "error"})
    assert again() == ["STATUS=1 application, 1 session, 1 object, 1 connection"], "it is mended"
    assert "batchMax" not in service.log_text(), "it is not an error"
    assert "result" in register()
    limits = service.call(client, "limits")
    assert limits["objectsPerApplicationMax"] == 2 and limits["batchMax"] == 256, limits
    service.configure({"limits": {"objectsPerApplicationMax": 3, "batchMax": 5}})
    again()
    service.call(client, "ping")
    assert "batchMax" in service.log_text(), service.log_text()
    service.stop()
    service.end()


def watchdog(program, name):
    """Pings stop if the threads of one kind hang although all others run, and continue with them."""
    variables = {"WATCHDOG_USEC": "600000"}
    service = Service(program, variables=variables).start()
    client = service.connect()
    service.call(client, "initialize", application="org.example.Service")
    service.call(client, "registerObjectForStateRestoration", restorationIdentifier="Main")
    for _ in range(5):
        assert service.says_within("WATCHDOG=1", 0.6), "the broker is well"
    with Frozen(service.threads(name)):
        service.drain()
        # One may have been sent already.
        service.says_within("WATCHDOG=1", 0.4)
        assert not service.says_within("WATCHDOG=1", 2), f"{name} hangs"
        if name == "archive-writer":
            assert service.call(client, "ping") == {}, "all others run"
    assert service.says_within("WATCHDOG=1", DEADLINE), f"{name} goes on"
    service.call(client, "encodeRestorableState", object=["Main"], state={"a": 1})
    service.stop()
    service.end()


def watchdog_is_for_this_process(program):
    service = Service(program, variables={"WATCHDOG_USEC": "300000", "WATCHDOG_PID": "1"}).start()
    assert not service.says_within("WATCHDOG=1", 1)
    service.stop()
    service.end()


def long_work_is_no_hang(program):
    """A long queue for the archives' threads is no fault while it gets shorter."""
    service = Service(program, variables={"WATCHDOG_USEC": "500000"}).start()
    clients = [service.connect() for _ in range(8)]
    for number, client in enumerate(clients):
        service.call(client, "initialize", application=f"org.example.Service{number}")
        service.call(client, "registerObjectForStateRestoration", restorationIdentifier="Main")
    state = {"text": "x" * 100_000}
    # Beats are counted, not timed: on a busy machine this process reads them late. A broker that took its work for a
    # hang would send none while it works.
    beats, end = 0, time.monotonic() + DEADLINE
    while beats < 8:
        assert time.monotonic() < end, f"the broker works, and has said so {beats} times"
        for client in clients:
            client.write(
                json.dumps(
                    {"jsonrpc": "2.0", "id": 5, "method": "encodeRestorableState",
                     "params": {"object": ["Main"], "state": state}}
                ).encode() + b"\n"
            )
        for client in clients:
            client.readline()
        service.notify.setblocking(False)
        try:
            while True:
                beats += "WATCHDOG=1" in service.take()
        except BlockingIOError:
            pass
        service.notify.settimeout(DEADLINE)
    service.stop()
    service.end()


def idle_exit(program):
    """An idle broker ends, and nobody who connects meanwhile is refused. All of this takes seconds, and is done at once."""
    # Just about as long as the broker waits, or until it says that it ends.
    parts = [functools.partial(connect_after, pause=2.98 + 0.004 * number) for number in range(8)]
    parts += [functools.partial(connect_after, pause=DEADLINE), connection_holds, session_holds, never, changed]
    # A broker ends with the thread that has started it: none does before the last part is over.
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as threads:
        for done in [threads.submit(part, program) for part in parts]:
            done.result()


IDLE = {"idleExitSeconds": 3}


def connect_after(program, pause):
    service = Service(program, IDLE).start()
    client = service.connect()
    service.call(client, "ping")
    client.close()
    service.says_within("STOPPING=1", pause)
    late = service.connect()
    late.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    if service.wait_for_end(late):
        service.start()
    line = late.readline()
    assert line and json.loads(line)["id"] == 1, "a connection was refused"
    late.close()
    service.wait_for_end()
    service.end()


def connection_holds(program):
    service = Service(program, IDLE).start()
    client = service.connect()
    service.call(client, "ping")
    assert not service.says_within("STOPPING=1", 4), "somebody is connected"
    client.close()
    ends(service)


def session_holds(program):
    """Also one without a connection."""
    service = Service(program, IDLE).start()
    client = service.connect()
    token = service.call(client, "registerObjectForStateRestoration", application="org.example.Service",
                         restorationIdentifier="Main")["session"]
    other = service.connect()
    service.call(other, "encodeRestorableState", application="org.example.Service", session=token,
                 object=["Main"], state={})
    other.close()
    client.close()
    assert not service.says_within("STOPPING=1", 4), "a session is there"
    client = service.connect()
    service.call(client, "goodbye", application="org.example.Service", session=token, reason="closed")
    client.close()
    ends(service)


def never(program):
    service = Service(program).start()
    assert not service.says_within("STOPPING=1", 4), "by default it does not end"
    service.stop()
    service.end()


def changed(program):
    service = Service(program).start()
    for seconds in 3, 0:
        reload_with(service, seconds)
    assert not service.says_within("STOPPING=1", 4), "it is not to end any more"
    reload_with(service, 3)
    ends(service)


def reload_with(service, seconds):
    service.configure({"idleExitSeconds": seconds})
    service.process.send_signal(signal.SIGHUP)
    service.lines_until("READY=1")


def ends(service):
    service.wait_for_end()
    service.end()


def failure_is_told(program):
    """A broker that cannot start says why, where its manager shows it."""
    service = Service(program)
    with open(os.path.join(service.directory, "archives"), "w", encoding="utf-8"):
        pass
    service.wait_for = lambda _: None
    service.start()
    lines = service.lines_until("STATUS=")
    assert any("archives" in line for line in lines), lines
    service.lines_until("BARRIER=1")
    assert service.process.wait(DEADLINE) == 1
    service.end()


def wrong_configuration_is_told(program):
    """A broker with an invalid configuration ends with 64 and says why, where its manager shows it."""
    service = Service(program, {"idleExitSeconds": -1})
    service.wait_for = lambda _: None
    service.start()
    status = service.lines_until("STATUS=")[-1]
    assert "config.json: idleExitSeconds" in status and "-1" in status, status
    service.lines_until("BARRIER=1")
    assert service.process.wait(DEADLINE) == 64
    service.end()


def slow_manager(program):
    """A manager that does not read blocks no client."""
    service = Service(program, variables={"WATCHDOG_USEC": "3000"}).start()
    client = service.connect()
    end = time.monotonic() + 1
    slowest = 0
    while time.monotonic() < end:
        begin = time.monotonic()
        service.call(client, "ping")
        slowest = max(slowest, time.monotonic() - begin)
    assert slowest < 1, slowest
    queued = open("/proc/sys/net/unix/max_dgram_qlen", encoding="utf-8").read()
    assert int(queued) < 300, "the queue was never full"
    service.stop()
    service.end()


def journal(program):
    """Log entries arrive in the journal with their fields. In a mount namespace of its own."""
    os.makedirs("/run/systemd/journal", exist_ok=True)
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind("/run/systemd/journal/socket")
    receiver.settimeout(DEADLINE)
    service = Service(program)
    status = os.fstat(service.log.fileno())
    service.variables = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
    service.start()

    def entry(wanted):
        while True:
            fields = parse(receiver.recv(1 << 16))
            if wanted in fields["MESSAGE"]:
                return fields

    begin = entry("serving")
    assert begin["PRIORITY"] == "6" and begin["SYSLOG_IDENTIFIER"] == "restorationd", begin
    assert "archives=" in begin["MESSAGE"], begin
    client = service.connect()
    service.call(client, "initialize", application="org.example.Service")
    note = {"jsonrpc": "2.0", "method": "encodeRestorableState", "params": {"object": ["None"], "state": 5}}
    client.write(json.dumps(note).encode() + b"\n")
    warning = entry("as a notification failed")
    assert warning["PRIORITY"] == "4", warning
    assert warning.get("RESTORATION_METHOD") == "encodeRestorableState", warning
    assert warning["RESTORATION_APPLICATION"] == "org.example.Service", warning
    assert warning["RESTORATION_SESSION"], warning
    service.stop()
    entry("ending")
    # One that cannot start says so once, where it stands out.
    service.configure({"idleExitSeconds": -1})
    service.wait_for = lambda _: None
    service.start()
    assert entry("idleExitSeconds")["PRIORITY"] == "2"
    assert service.process.wait(DEADLINE) == 64
    assert service.log_text() == "", service.log_text()
    service.end()


def parse(data):
    fields = {}
    while data:
        line, _, data = data.partition(b"\n")
        name, is_text, value = line.partition(b"=")
        if not is_text:
            (length,) = struct.unpack("<Q", data[:8])
            value, data = data[8:8 + length], data[9 + length:]
        fields[name.decode()] = value.decode()
    return fields


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in [
        activation, changes_are_told_once_a_second, reload, watchdog_is_for_this_process, long_work_is_no_hang,
        idle_exit, failure_is_told, wrong_configuration_is_told, slow_manager, journal,
    ]
}

if __name__ == "__main__":
    try:
        if sys.argv[2].startswith("watchdog:"):
            watchdog(sys.argv[1], sys.argv[2].partition(":")[2])
        else:
            SCENARIOS[sys.argv[2]](sys.argv[1])
    finally:
        # Even after a failure nothing is left running.
        for service in Service.running:
            if service.process and service.process.poll() is None:
                service.process.kill()
