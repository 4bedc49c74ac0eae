# SPDX-License-Identifier: Apache-2.0
"""Proof that an application loses nothing: a private broker for a test, and an application killed again and again.

    def test_that_nothing_is_lost():
        restorationd.testing.kill_at_random_points(["python3", "notes.py"], 20)

A plugin of pytest: a test with the parameter `broker` gets a `Broker` of its own. Needs Python 3.9 and `restorationd`.
"""

from __future__ import annotations

import contextlib
import datetime
import fnmatch
import itertools
import json
import math
import operator
import os
import pathlib
import random
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple,
    Union,
)

import pytest
import restorationd as client

__all__ = ["Broker", "broker", "kill_at_random_points", "replay"]

#: A failure shows the lines of the test, not those that found it; `pytest --full-trace` shows both.
__tracebackhide__: Callable[[Any], bool] = operator.methodcaller("errisinstance", AssertionError)

#: A command line, or its words.
Command = Union[str, Sequence[Union[str, "os.PathLike[str]"]]]
#: What drives an application: one piece of work, given the running process.
Work = Callable[["subprocess.Popen[str]"], Any]
#: Fields that change for good reasons: patterns, or each with a test of the values before and after.
Changing = Union[Iterable[str], Mapping[str, Optional[Callable[[Any, Any], bool]]]]
_Path = Tuple[str, ...]
_Key = Tuple[str, _Path]  # application and path

#: An application is killed after one to this many writes, or, while it starts, registrations and writes.
_WRITES, _EVENTS = 12, 4
#: How many losses a failure names.
_LINES = 20
#: Seconds in which it must have a session, at least, and in which its sessions must end when it was killed.
_START, _END = 30, 60
#: What to do where the work itself may be what differs.
_AFTER_WORK = ("It pushed nothing before one more piece of work. If that changes these fields, let it push what it has "
               "decoded first, or name them in changing=.")
#: Seconds in which a broker must answer that its clock was moved; it gives up before. Milliseconds by which the clock
#: can be ahead: a hundred years.
_MOVE, _AHEAD = 60, 36_525 * 86_400_000
#: Runs a program that is killed when the thread which has started it ends (PR_SET_PDEATHSIG).
_TIED = [sys.executable, "-I", "-S", "-c",
         "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"]
#: What makes a program believe that a service manager has started it.
_MANAGED = ["LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "FDSTORE",
            "JOURNAL_STREAM", "RESTORATIOND_ARCHIVES", "RESTORATIOND_LOG_LEVEL", "RESTORATION_UNIT"]


class Broker:
    """A broker in a directory of its own. When its `with` block ends, nothing of it and of its children is left.

    If the test's process is killed, a broker that its main thread has started ends too; children and directory stay.
    """

    def __init__(
        self, *arguments: str, developer_mode: bool = False, test_clock: bool = False,
        limits: Optional[Mapping[str, int]] = None,
    ) -> None:
        """
        - arguments: more arguments of `restorationd`.
        - test_clock: `advance` moves the broker's clock.
        - developer_mode: the broker quarantines and discards nothing, however often an application is killed.
        - limits: those of the broker's configuration, such as `{"roundQuietMilliseconds": 100}`.

        Raises FileNotFoundError if there is no `restorationd`, and ValueError if the directory's path is too long.
        """
        self.program: str = _program()
        self.directory: pathlib.Path = pathlib.Path(tempfile.mkdtemp(prefix="restorationd-"))
        self.socket: pathlib.Path = self.directory / "broker.sock"
        self.archives: pathlib.Path = self.directory / "archives"
        if len(os.fsencode(self.socket)) > 107:
            self.directory.rmdir()
            raise ValueError(f"{self.socket} is longer than the 107 bytes of a socket's path; let TMPDIR be shorter")
        self.log: pathlib.Path = self.directory / "log"  #: the standard error of all its broker processes
        configuration = self.directory / "config.json"
        configuration.write_text(json.dumps({"limits": dict(limits or {})}))
        self._command = [
            self.program, "--socket", str(self.socket), "--archives", str(self.archives),
            "--config", str(configuration), *(["--developer-mode"] if developer_mode else []), *arguments]
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._ahead: Optional[int] = 0 if test_clock else None  # milliseconds, of its clock
        self._clock: Optional[socket.socket] = None
        self._children: List["subprocess.Popen[str]"] = []

    def __enter__(self) -> "Broker":
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            self.start()
            stack.pop_all()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def environment(self) -> Dict[str, str]:
        """The variables of a process that is to use this broker."""
        mine = {name: value for name, value in os.environ.items() if name not in _MANAGED}
        return {**mine, "RESTORATIOND_SOCKET": str(self.socket)}

    @property
    def pid(self) -> int:
        """The number of its process. Raises RuntimeError if it is not running."""
        if self._process is None:
            raise RuntimeError("the broker is not running; call start()")
        return self._process.pid

    def start(self, patience: float = 60) -> None:
        """Starts it, and returns when it takes connections. Raises RuntimeError with its log if it does not."""
        if self._process is not None:
            raise RuntimeError("the broker is running; call kill() or restart()")
        # Its runtime directory is where it would look for a service manager that can start units.
        environment = {**self.environment, "XDG_RUNTIME_DIR": str(self.directory)}
        tied = _TIED if threading.current_thread() is threading.main_thread() else []
        self._clock, theirs = socket.socketpair()
        clock = [] if self._ahead is None else [f"--test-clock={self._ahead}"]
        with open(self.log, "ab") as log, theirs:
            self._process = subprocess.Popen(
                [*tied, *self._command, *clock], env=environment, stdin=theirs.fileno(), stdout=log, stderr=log,
                start_new_session=True)
        end = time.monotonic() + patience
        while not self._accepts():
            with contextlib.suppress(subprocess.TimeoutExpired):  # the end of the process is the event that may come
                self._process.wait(0.01)
            if self._process.returncode is not None or time.monotonic() > end:
                self.kill()
                raise RuntimeError(f"{self.program} does not take connections:\n{self.log.read_text()}")

    def _accepts(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def kill(self) -> None:
        """Ends it by SIGKILL, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._clock is not None:
            self._clock.close()
            self._clock = None

    def restart(self) -> None:
        """Kills it, and starts it again over the same archives."""
        self.kill()
        self.start()

    def freeze(self) -> None:
        """Stops it (SIGSTOP): connections stay, and nothing is answered until `thaw`."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """Lets it continue after `freeze`."""
        os.kill(self.pid, signal.SIGCONT)

    def advance(self, *, days: float = 0, seconds: float = 0) -> None:
        """Moves its clock ahead: dates, and what the broker does or gives up after a time.

        Returns when what became due was done, in its order. The clock stays ahead when the broker is started again.
        Clocks of clients do not move, and a client gets no time on the way: what the broker waits for is over if its
        time limit is passed. Raises RuntimeError if the broker is not running, was made without `test_clock`, or is not
        done within a minute; and ValueError for a negative time, or if the clock would be ahead by more than 100 years.
        """
        if self._ahead is None:
            raise RuntimeError("the broker has the computer's clock; make it with Broker(test_clock=True)")
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("the broker is not running; call restart()")
        milliseconds = round((days * 86_400 + seconds) * 1_000)
        if not 0 <= milliseconds <= _AHEAD - self._ahead:
            raise ValueError(f"{milliseconds} is not a number of milliseconds from 0 to {_AHEAD - self._ahead}")
        # Before it is asked: wherever it ends on the way, nothing that it has dated is in the future of the next one.
        self._ahead += milliseconds
        answer = self._ask(f"advance {milliseconds}")
        if not answer.startswith("ok "):
            raise RuntimeError(answer)

    def _ask(self, line: str) -> str:
        """Writes a line to its standard input, and returns the line that it answers there. Raises RuntimeError."""
        if self._clock is None:
            raise RuntimeError("the broker's clock can be moved no longer; call restart()")
        try:
            self._clock.settimeout(_MOVE)
            self._clock.sendall(line.encode() + b"\n")
            with self._clock.makefile("rb") as answers:
                answer = answers.readline().decode()
            if not answer.endswith("\n"):
                raise EOFError("it has ended")
        except (OSError, EOFError) as error:
            # A late answer must not be taken for that of the next line.
            self._clock.close()
            self._clock = None
            raise RuntimeError(f"the broker has not answered {line!r} ({error}); see {self.log}") from error
        return answer.rstrip("\n")

    def spawn(self, command: Command, **options: Any) -> "subprocess.Popen[str]":
        """Starts a process that uses this broker and ends with it, in a group of its own.

        - options: those of `subprocess.Popen`. By default standard input is a pipe of text, written line by line.
        """
        words = shlex.split(command) if isinstance(command, str) else [os.fspath(word) for word in command]
        child: "subprocess.Popen[str]" = subprocess.Popen(words, **{
            "env": self.environment, "stdin": subprocess.PIPE, "text": True, "bufsize": 1, **options,
            "start_new_session": True})
        self._children.append(child)
        return child

    def call(self, method: str, application: Optional[str] = None, **params: Any) -> Any:
        """Makes one call without a session. Raises BrokerError."""
        with self._connected() as connection:
            return connection.call(method, {"application": application, **params}, timeout=10)

    def state(self, application: str, path: Union[str, Sequence[str]]) -> Optional[Dict[str, Any]]:
        """The newest state of an object; None if it has no state."""
        state: Optional[Dict[str, Any]] = client.load(application, path, str(self.socket)).state
        return state

    def document(self, application: str, generation: Optional[int] = None) -> Dict[str, Any]:
        """What is saved, or a generation, as a document of the export format, with confidential states."""
        parts = [page["part"] for page in self._pages("exportArchive", application, generation=generation, reveal=True)]
        return {**parts[0], "objects": [each for part in parts for each in part["objects"]]}

    def load(self, application: str, document: Mapping[str, Any]) -> int:
        """Makes a document what is saved, and a generation, whose number it returns.

        Raises BrokerError (`alreadyServed`) while the application has sessions: load it before the application starts.
        """
        self.call("importArchive", application, document=document, force=True)
        with client.Session(application, socket=str(self.socket), without_broker="fails"):
            pass  # what a run starts from is sealed
        return int(self.call("listGenerations", application)["generations"][-1]["generation"])

    def close(self) -> None:
        """Kills its children and itself, and removes its directory."""
        while self._children:
            self._end(self._children[-1])
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end(self, child: "subprocess.Popen[str]") -> Set[int]:
        """Kills a child with its group, once, and returns the processes that have ended with it.

        If the test has awaited it, its number may be another's by now.
        """
        if child not in self._children:
            return set()
        self._children.remove(child)
        ended: Set[int] = set()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
            ended = _wait_for_group(child.pid)
        child.wait()
        for pipe in filter(None, (child.stdin, child.stdout, child.stderr)):
            with contextlib.suppress(OSError):
                pipe.close()
        return ended

    @contextlib.contextmanager
    def _connected(self) -> Iterator["client.Session"]:
        with contextlib.closing(client._Once("restorationd", socket=str(self.socket), patience=0)) as connection:
            yield connection.open()

    def _pages(self, method: str, application: str, **params: Any) -> Iterator[Dict[str, Any]]:
        with self._connected() as connection:
            page: Dict[str, Any] = {"cursor": None}
            while "cursor" in page:
                params.update(application=application, cursor=page["cursor"])
                page = connection.call(method, params, timeout=10)
                yield page


_given: Optional[int] = None  # the seed on the command line of pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("restorationd").addoption(
        "--restoration-seed", type=int, metavar="SEED", help="kill at the points of this seed, which a failure has named")


def pytest_configure(config: pytest.Config) -> None:
    global _given
    _given = config.getoption("--restoration-seed")


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker of this test alone."""
    with Broker() as started:
        yield started


def replay(broker: Broker, application: str, generation: int) -> Dict[str, Any]:
    """Puts a stored generation into a running application, and returns how it was restored (restoreApplicationState).

    Sessions that serve are given their states. Others are told by `headReplaced`, and fetch them. A document becomes a
    generation by `Broker.load`, before the application starts: no archive can be imported under live sessions.
    """
    broker.call("rollBack", application, generation=generation, force=True)
    restored: Dict[str, Any] = broker.call("restoreApplicationState", application)
    return restored


def _wait_for_group(group: int) -> Set[int]:
    """Waits until the processes of a group that was killed have ended, each by its pidfd, and returns their numbers.

    Before its leader is awaited, the number stays the group's; no process joins it.
    """
    ended = set()
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        # A process that is gone is not a member, and one of another user may live on.
        with contextlib.suppress(ProcessLookupError, PermissionError), contextlib.ExitStack() as stack:
            if os.getpgid(pid) == group:
                process = os.pidfd_open(pid)
                stack.callback(os.close, process)
                if os.getpgid(pid) == group:  # its number may be another's by now
                    os.kill(pid, signal.SIGKILL)
                    end = select.poll()
                    end.register(process, select.POLLIN)
                    end.poll()
                    ended.add(pid)
    return ended


def _program() -> str:
    named = os.environ.get("RESTORATIOND_BINARY")
    found = shutil.which(named or "restorationd")
    if found is None and named is None:
        with contextlib.suppress(ImportError):
            import restorationd_bin  # type: ignore[import-not-found,unused-ignore]
            return str(restorationd_bin.path("restorationd"))
    if found is None:
        where = f"RESTORATIOND_BINARY names {named!r}, which" if named else "restorationd"
        raise FileNotFoundError(
            f"{where} is not a program that can be found; install it (pip install restorationd-bin), "
            "or name its program in RESTORATIOND_BINARY")
    return os.path.abspath(found)


def kill_at_random_points(
    command: Command,
    kills: int = 20,
    *,
    work: Optional[Work] = None,
    changing: Changing = (),
    seed: Optional[int] = None,
    patience: float = 15,
    quiet: float = 0.2,
    broker: Optional[Broker] = None,
) -> None:
    """Kills an application again and again, and compares what it shows when it is back with what it had saved.

    It is killed by SIGKILL, with its process group, after a random number of acknowledged writes, and now and then
    while it starts. When it is back it shows its objects: in a save round if its process serves encode and has decoded
    them, otherwise by pushing them again; at the latest after one piece of work, which it gets when it has decoded
    everything and has been silent for a third of `patience`.

    Raises AssertionError that names objects and fields which were lost, and the seed, or says why the application has
    shown nothing; RuntimeError if the broker's events do not come; TypeError or ValueError for arguments that would prove
    nothing. What is never saved cannot be missed.

    - work: does one piece of work, such as writing a line to `process.stdin`, and each time something else. Without it
      the application works by itself.
    - changing: fields that need not come back as they were, as patterns of `path:pointer`, such as `Main/Clock:/time`
      or `*:/pid`. A mapping gives each a function which tells, from the values before and after, if a change is right.
    - seed: decides the points, counted in writes; that of a failure repeats them. `pytest --restoration-seed` gives it
      to all calls that have none.
    - patience: seconds in which everything must be back, from when the application has a session, or got that work.
    - quiet: seconds without an event after which the application counts as ready.
    - broker: one in developer mode, in which something may be saved already; by default a new one.
    """
    if isinstance(kills, bool) or not isinstance(kills, int) or kills < 1:
        raise ValueError(f"kills= takes an integer of at least 1, not {kills!r}")
    if isinstance(changing, str):
        raise TypeError(f"changing= takes patterns in a list, [{changing!r}], not one text")
    tests = dict(changing) if isinstance(changing, Mapping) else dict.fromkeys(changing)
    for pattern in tests:
        if not set(pattern) & set(":*?["):
            raise ValueError(f"changing= has {pattern!r}; a pattern is path:pointer, such as 'Main/Clock:/time'")
    seed = _given if seed is None else seed
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    with contextlib.ExitStack() as stack:
        used = broker or stack.enter_context(Broker(developer_mode=True, limits={"eventBytesMax": 1 << 26}))
        watch = _Watch(stack.enter_context(used._connected()))
        stack.callback(watch.close)
        _Proof(used, watch, command, work, tests, patience, quiet, seed).run(kills)


class _Watch:
    """What one application does, told by the broker's events, and its end."""

    def __init__(self, connection: "client.Session") -> None:
        self._connection = connection
        self._condition = threading.Condition()
        self.applications: Set[str] = set()
        self.events = 0  #: of any process
        self.detached: Set[int] = set()  #: processes whose sessions may outlive them
        self._failure: Optional[str] = None  # why nothing more is known
        self._forget(None, 0)
        connection.on_notification = self._take
        connection.call("subscribe", {"events": [
            "sessionBegan", "sessionEnded", "objectRegistered", "objectUnregistered", "pathChanged", "stateEncoded",
            "generationSealed"]})
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self._connection.serve()
        except client.RestorationError as error:
            with self._condition:
                self._failure = f"the broker's events ended ({error}); let it run as long as kill_at_random_points"
                self._condition.notify_all()

    def close(self) -> None:
        self._connection.close()
        self._thread.join()

    def start(self, spawn: Callable[[], "subprocess.Popen[str]"], kill_after: int = 0) -> "subprocess.Popen[str]":
        """Starts the application, and kills it after so many registrations and writes, if the number is not 0."""
        with self._condition:  # no event is taken before the process is known
            self._forget(process := spawn(), kill_after)
            return process

    def _forget(self, process: Optional["subprocess.Popen[str]"], left: float) -> None:
        self._process = process
        self.started = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")[:23] + "Z"
        self.pids: Set[int] = set()
        self.sessions = self.writes = 0
        self.pushed: Set[_Key] = set()
        self.last, self.has_killed = time.monotonic(), False
        self._left, self._counts_registrations = left or math.inf, True

    def kill_after(self, writes: int) -> None:
        """Kills the application as soon as so many further writes have come."""
        with self._condition:
            self._left, self._counts_registrations = writes, False

    def kill(self) -> None:
        with self._condition, contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process is not None and not self.has_killed:
                self.has_killed = True
                os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self, condition: Callable[[], Any], seconds: float) -> bool:
        """Raises RuntimeError if events do not come."""
        with self._condition:
            holds = self._condition.wait_for(lambda: self._failure or condition(), max(0, seconds))
            if self._failure:
                raise RuntimeError(self._failure)
            return bool(holds)

    def settle(self, quiet: float, end: float) -> None:
        """Waits until the application has a session and nothing happens any longer, or it has ended."""
        while not self.has_ended():
            now = time.monotonic()
            ready = min(self.last + quiet, end) if self.sessions else end
            if now >= ready:
                return
            seen = self.last
            self.wait(lambda: self.last != seen, min(ready - now, quiet))

    def has_ended(self) -> bool:
        if self._process is None or self.sessions > 0:
            return False
        # It is not awaited: its number stays that of its group.
        return self._process.returncode is not None or os.waitid(
            os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _take(self, method: str, event: Dict[str, Any]) -> None:
        name, pid = event.get("name"), event.get("pid")
        with self._condition:
            self.events += 1
            self._condition.notify_all()
            if name == "sessionBegan" and event["detached"]:
                self.detached.add(event["pid"])
            elif name == "sessionBegan" and self._is_followed(pid):
                self.pids.add(event["pid"])
                self.applications.add(event["application"])
                self.sessions += 1
            elif name == "eventsLost":
                self._failure = "events of the broker were lost; give it a larger eventBytesMax, such as 1 << 28"
            elif "pid" in event and pid not in self.pids:
                return
            elif name == "sessionEnded":
                self.sessions -= 1
            elif name == "stateEncoded":
                self.pushed.add((event["application"], tuple(event["path"] or ())))
            writes = name == "stateEncoded" or (name == "generationSealed" and event["kind"] == "round")
            self.writes += writes
            self._left -= writes or (name == "objectRegistered" and self._counts_registrations)
            if self._left == 0:
                self.kill()
            self.last = time.monotonic()

    def _is_followed(self, pid: Optional[int]) -> bool:
        with contextlib.suppress(ProcessLookupError):
            return self._process is not None and pid is not None and os.getpgid(pid) == self._process.pid
        return False


class _View(NamedTuple):
    """What the broker has of an application, and what a round has told."""

    owners: Dict[_Path, int] = {}
    orphans: Set[_Path] = set()
    entries: Dict[_Path, Dict[str, Any]] = {}
    serving: Set[int] = set()  # processes that the round has asked
    reason: Optional[str] = None  # why it has asked nobody, if another one may
    decodes: bool = False  # whether a restoration would hand out states
    stale: Dict[_Path, str] = {}


class _Proof:
    """One run of `kill_at_random_points`."""

    def __init__(
        self, broker: Broker, watch: _Watch, command: Command, work: Optional[Work],
        changing: Dict[str, Optional[Callable[[Any, Any], bool]]], patience: float, quiet: float, seed: int,
    ) -> None:
        self.broker, self.watch, self.command, self.work = broker, watch, command, work
        self.changing, self.patience, self.quiet, self.seed = changing, patience, quiet, seed
        self.name = command if isinstance(command, str) else " ".join(map(str, command))
        self.saved: Dict[_Key, Dict[str, Any]] = {}  # entries of the export format, when the application was killed
        self.shown: Set[_Key] = set()
        self.decoded: Set[Tuple[_Key, int]] = set()  # with the process that has got the state
        self.when = "in its first run"
        self.child: Optional["subprocess.Popen[str]"] = None

    def run(self, kills: int) -> None:
        chance = random.Random(self.seed)
        try:
            for number in range(1, kills + 1):
                starting = number > 1 and chance.random() < 0.25
                point = chance.randint(1, _EVENTS if starting else _WRITES)
                self.child = child = self.watch.start(lambda: self.broker.spawn(self.command), point * starting)
                if starting:
                    self.watch.settle(self.quiet, time.monotonic() + self.patience)
                else:
                    self._compare(child)
                    self._work(child, point)
                self._kill(child)
                if not starting:  # in a start nothing changes, and what is lost in it is missed later
                    self.saved = self._snapshot()
                    if not self.saved and not self.watch.writes:
                        raise AssertionError(
                            f"{self.name} has saved nothing in {_START} seconds, {self.when}, so nothing is proven: let "
                            "it push its states, or serve encode, or give work= which makes it push")
                where = "while it started" if starting else f"at its write {self.watch.writes}"
                self.when = f"after kill {number} of {kills}, {where}"
            self.child = child = self.watch.start(lambda: self.broker.spawn(self.command))
            self._compare(child)
            self._kill(child)
        finally:
            if self.child is not None:
                self.broker._end(self.child)
        never = [f"{application} {'/'.join(path)}" for application, path in self.saved.keys() - self.shown]
        if never or not self.shown:
            raise AssertionError(
                f"{self.name} has never shown {', '.join(sorted(never)) or 'anything'} when it was back, so nothing is "
                "proven: let it push its states, or serve encode and accept rounds, or give work= which makes it push")

    def _kill(self, child: "subprocess.Popen[str]") -> None:
        """Kills the application, and waits until the broker has ended its sessions and told so.

        What is started before would find their objects owned.
        """
        self.watch.kill()
        killed, end = self.broker._end(child), time.monotonic() + _END
        while True:
            seen = self.watch.events
            # Those that have begun last may not have been told yet.
            if self.watch.sessions <= 0 and not self._sessions_of(killed) and self.watch.sessions <= 0:
                return
            if not self.watch.wait(lambda: self.watch.events != seen, end - time.monotonic()):
                raise AssertionError(
                    f"{self.name} was killed with its group, and {_END} seconds later the broker has not ended its "
                    f"sessions ({', '.join(self._sessions_of(killed))}): let its processes stay in its group")

    def _sessions_of(self, killed: Set[int]) -> List[str]:
        """What the broker has of sessions of killed processes.

        Each call has a connection of its own, which the broker accepts after those that the killed have made.
        """
        pids, found = (killed | self.watch.pids) - self.watch.detached, []
        listed = self.broker.call("listApplications")["applications"]
        for application in [each["application"] for each in listed if each["sessions"]]:
            try:
                sessions = self.broker.call("describeApplication", application)["sessions"]
                found += [f"process {each['pid']} in {application}" for each in sessions if each["pid"] in pids]
            except client.BrokerError as error:
                if error.kind != "unknownApplication":  # its last session has just ended
                    raise
        return found

    def _check(self, child: "subprocess.Popen[str]") -> None:
        if self.watch.has_ended() and not self.watch.has_killed:
            self.broker._end(child)
            raise AssertionError(
                f"{self.name} ended by itself with status {child.returncode}, {self.when}; it has to go on until it is "
                f"killed; repeat this with seed={self.seed}")

    def _work(self, child: "subprocess.Popen[str]", point: int) -> None:
        """Lets the application work until it is killed: at the point, or when no work makes it write."""
        idle, writes, start = 0, self.watch.writes, time.monotonic()
        self.watch.kill_after(point)
        # Until something is saved there is nothing to lose.
        while not self.watch.has_killed and (
                idle < (10 if self.work else 1) or not (self.saved or writes or time.monotonic() > start + _START)):
            self._check(child)
            self._do_one(child)
            for application in sorted(self.watch.applications):
                self._look(application, ask=True)
            self.watch.wait(lambda: self.watch.writes > writes or self.watch.has_killed, self.quiet)
            idle, writes = 0 if self.watch.writes > writes else idle + 1, self.watch.writes

    def _do_one(self, child: "subprocess.Popen[str]") -> None:
        try:
            if self.work:
                self.work(child)
        except Exception:
            # It may have failed because the application is gone, of which the broker tells a little later. If not, that
            # error is the one to report.
            self.watch.wait(lambda: self.watch.has_killed or self.watch.has_ended(), 5)
            if not self.watch.has_killed:
                self._check(child)
                raise

    def _look(self, application: str, ask: bool) -> _View:
        """What the broker has, if it is to ask, after a save round in which sessions that serve encode give states."""
        try:
            pages = list(self.broker._pages("describeApplication", application))
            sessions = [each for page in pages for each in page["sessions"]]
            serving = {each["pid"] for each in sessions if ask and "encodeRestorableStateWithCoder" in each["serves"]}
            answer = self.broker.call("saveApplicationState", application) if serving else {"stale": []}
            objects = [each for page in pages for each in page["objects"] if each["path"]]
            entries = self.broker.document(application)["objects"]
        except client.BrokerError as error:
            if error.kind != "unknownApplication":  # nothing was saved
                raise
            return _View()
        reason = answer.get("reason")
        return _View(
            {tuple(each["path"]): each["pid"] for each in objects if each["object"]},
            {tuple(each["path"]) for each in objects if each["orphaned"]},
            {tuple(each.get("path") or ()): each for each in entries if each.get("path") or "state" in each},
            serving if reason in (None, "unchanged") else set(),
            reason if reason in ("restoring", "interrupted") else None,
            any("decodeRestorableStateWithCoder" in each["serves"] for each in sessions),
            {tuple(each["path"] or ()): each.get("message", each["why"]) for each in answer["stale"]})

    def _snapshot(self) -> Dict[_Key, Dict[str, Any]]:
        """What is saved of the objects that the killed processes had, and of the application itself."""
        views = {application: self._look(application, ask=False) for application in sorted(self.watch.applications)}
        # A blank push at the start of a process hides nothing from the next one (R19).
        return {(application, path): entry.get("beforeClaim") or entry
                for application, view in views.items() for path, entry in view.entries.items()
                if "state" in entry and (not path or path in view.orphans)}

    def _compare(self, child: "subprocess.Popen[str]") -> None:
        """Waits until the application shows everything as it was saved; raises what is wrong when time is over."""
        start = max(self.patience, _START)
        self.watch.settle(self.quiet, time.monotonic() + start)
        end, work, quiet, silence = time.monotonic() + self.patience, self.work, self.quiet, self.patience / 3
        writes = -1  # before the one piece of work; a slow application may take its time to answer that
        while True:
            self.watch.settle(quiet, end)
            self._check(child)
            if not self.watch.pids:
                raise AssertionError(
                    f"{self.name} has no session {start:g} seconds after its start, {self.when}; it has to open one, "
                    "but not over HTTP, at the broker to which RESTORATIOND_SOCKET leads")
            silent, wrong = self._lost()
            seen, is_over = self.watch.last, time.monotonic() >= end
            is_idle = silent and all(silent.values())
            if is_idle and not is_over and quiet < silence:
                quiet = silence  # it may be slow: work that comes too early would hide what it has
            elif is_idle and work:
                writes = self.watch.writes
                self._do_one(child)
                end, work, quiet = time.monotonic() + self.patience, None, self.quiet
            elif not wrong and (is_over or self.watch.writes != writes):
                self.shown |= self.saved.keys() - silent.keys()
                return
            elif is_over:
                more = [f"and {len(wrong) - _LINES} more"] if len(wrong) > _LINES else []
                lines = [f"{self.name} lost what it had saved, {self.when}; repeat this with seed={self.seed}",
                         *wrong[:_LINES], *more]
                raise AssertionError("\n  ".join(lines if work is self.work else [*lines, _AFTER_WORK]))
            else:
                self.watch.wait(lambda: self.watch.last != seen, min(self.quiet, end - time.monotonic()))

    def _lost(self) -> Tuple[Dict[_Key, bool], List[str]]:
        """What the application has not shown since it is back, each with whether it has got it, and what is wrong."""
        silent: Dict[_Key, bool] = {}
        views = {application: self._look(application, ask=True) for application, _ in self.saved}
        wrong = [f"{application}: a save round could not ask for states ({view.reason})"
                 for application, view in views.items() if view.reason]
        for key, before in self.saved.items():
            application, path = key
            view = views[application]
            name, was = f"{application} {'/'.join(path)}", f"it was {_shown(before['state'])}"
            if path and path not in view.owners:
                wrong.append(f"{name}: the object did not come back; {was}")
                continue
            if path in view.stale:
                wrong.append(f"{name}: it gave no state when it was asked ({view.stale[path]}); {was}")
                continue
            if key not in self.watch.pushed:
                has_decoded = not path or self._has_decoded(key, view)
                # One that answers "unchanged" without having decoded shows nothing.
                if not has_decoded or not (view.owners[path] in view.serving if path else view.serving):
                    silent[key] = has_decoded
                if not has_decoded:
                    wrong.append(f"{name}: its state was neither decoded nor pushed again; {was}")
            after = view.entries.get(path, {})
            for part in ("state", "elements"):
                field = f"{'/'.join(path)}:{'' if part == 'state' else part}"
                for field, old, new in self._differences(field, _part(before, part), _part(after, part)):
                    wrong.append(f"{application} {field}: {_shown(old)} came back as {_shown(new)}")
        return silent, wrong

    def _has_decoded(self, key: _Key, view: _View) -> bool:
        """Whether the object's present owner has got its state. Asking hands out nothing."""
        (application, path), owner = key, view.owners[key[1]]
        has = (key, owner) in self.decoded or any(
            each["step"] == "finished" and each["at"] >= self.watch.started
            for each in self.broker.call("explainRestoration", application, object=path)["restored"])
        if not has and not view.decodes:  # a restoration skips what its owner fetches itself until it has (R22)
            answer = self.broker.call("restoreApplicationState", application, objects=[path], deadlineMilliseconds=100)
            left = [*answer["absent"], *(each["path"] for each in answer["skipped"])]
            has = "declined" not in answer and list(path) not in left
        if has:  # otherwise it is finished when its decode window closes (R31)
            self.decoded.add((key, owner))
        return has

    def _differences(self, field: str, before: Any, after: Any) -> Iterator[Tuple[str, Any, Any]]:
        """Fields that differ, each with both values."""
        tests = [test for pattern, test in self.changing.items() if fnmatch.fnmatchcase(field, pattern)]
        both = before is not _NOTHING and after is not _NOTHING
        if any(test is None or (both and test(before, after)) for test in tests):
            return
        if isinstance(before, dict) and isinstance(after, dict):
            for key in {**before, **after}:
                name = key.replace("~", "~0").replace("/", "~1")
                yield from self._differences(f"{field}/{name}", before.get(key, _NOTHING), after.get(key, _NOTHING))
        elif isinstance(before, list) and isinstance(after, list):
            for index, pair in enumerate(itertools.zip_longest(before, after, fillvalue=_NOTHING)):
                yield from self._differences(f"{field}/{index}", *pair)
        elif before != after or isinstance(before, bool) != isinstance(after, bool):  # True is 1 in Python
            yield field, before, after


_NOTHING = object()


def _part(entry: Mapping[str, Any], name: str) -> Any:
    """A state, or elements without what depends on the data source."""
    if name == "state":
        return entry.get("state", _NOTHING)
    return [{key: value for key, value in each.items() if key not in ("resolved", "unresolved")}
            for each in entry.get("elements", [])]


def _shown(value: Any) -> str:
    text = "nothing" if value is _NOTHING else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:200]}…"
