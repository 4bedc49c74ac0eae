# SPDX-License-Identifier: Apache-2.0
"""The processes of the demonstration: started, spoken with, killed, and none of them left behind.

A process of the sample editor is started as PROGRAM ROLE SOCKET JOURNAL. It reads its files from standard input, one
`PATH<tab>WINDOW<tab>DOCUMENT` a line up to an empty line: the file, and the identifiers of the window and the document
that show it. It connects, registers an object for each file (or window), and then obeys, with one JSON object a line on
standard output for each:

    register itself     {"event":"registered","objects":N,"reason":why the broker says it was started}
    save                encodes a state of every object                    {"event":"saved","objects":N}
    type N              encodes N states of random objects                 {"event":"typed","states":N}
                        and says every 50 of them                          {"event":"typing","states":N}
    decode              decodes every object, completes the restoration    {"event":"decoded","objects":N}
    move KEY WINDOW     gives an object another parent                     {"event":"moved","path":[...]}
    told N              waits for N notifications of new paths             {"event":"told","paths":[[...],...]}
    goodbye             says goodbye to the broker                         {"event":"left","objects":N}

It notes in its journal, `sent<tab>KEY<tab>STATE` before a state leaves, `done<tab>KEY` when it was acknowledged, and
`back<tab>KEY<tab>STATE` for what it decodes (see journal.py).
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE = 60
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failure(Exception):
    """The demonstration cannot continue."""


class Interrupted(Exception):
    """A signal asks the demonstration to end."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


def on_signals(handler):
    for number in SIGNALS:
        signal.signal(number, handler)


def interrupt(number, _frame):
    on_signals(signal.SIG_IGN)
    raise Interrupted(number)


class Stage:
    """A directory for files and the processes started with it; all are gone when the `with` is left, however it is."""

    def __enter__(self):
        self.processes = []
        self.directory = tempfile.mkdtemp(prefix="rd-try-", dir=self._place())
        on_signals(interrupt)
        return self

    def __exit__(self, *_):
        on_signals(signal.SIG_IGN)
        # Clients before the broker: they would complain of its end.
        kill(*reversed(self.processes))
        shutil.rmtree(self.directory, ignore_errors=True)

    @staticmethod
    def _place():
        """$TMPDIR and the like, unless a socket's path would be too long there."""
        place = tempfile.gettempdir()
        return place if len(place) <= 64 else "/tmp"

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, command, **options):
        # Ctrl-C on the terminal is for this process alone, which ends the others; should it be killed, they are too.
        command = ["setpriv", "--pdeathsig", "KILL", *command]
        try:
            process = subprocess.Popen(command, bufsize=0, start_new_session=True, **options)
        except OSError as error:
            raise Failure(f"{command[0]} cannot be started: {error.strerror}")
        self.processes.append(process)
        return process


class Broker:
    def __init__(self, stage, programs):
        self.stage = stage
        self.socket = stage.path("run/broker.sock")
        self.command = [os.path.join(programs, "restorationd"), "--socket", self.socket,
                        "--archives", stage.path("archives")]
        os.mkdir(os.path.dirname(self.socket), 0o700)

    def start(self):
        """Gives the milliseconds until it accepted a connection."""
        if self.accepts():
            raise Failure("there is a broker already")
        begin = time.monotonic()
        with open(self.stage.path("log"), "ab") as log:
            self.process = self.stage.start(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        while not self.accepts():
            if self.process.poll() is not None or time.monotonic() - begin > PATIENCE:
                with open(self.stage.path("log"), encoding="utf-8", errors="replace") as log:
                    raise Failure(f"the broker did not start; its log is\n{log.read()}")
            os.sched_yield()
        return round((time.monotonic() - begin) * 1000)

    def accepts(self):
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.socket) == 0

    def end(self):
        """Gives the exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE)


class Client:
    """A process of the sample editor."""

    def __init__(self, role, command, files):
        self.role = role
        self.command = command
        self.files = files
        self.process = None

    def start(self, stage, folder):
        self.process = stage.start(self.command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._write("".join(line + "\n" for line in self.files) + "\n")

    def tell(self, *command):
        self._write("\t".join(map(str, command)) + "\n")

    def event(self, name):
        """Waits until the process reports that, and gives the report."""
        deadline = time.monotonic() + PATIENCE
        while True:
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise Failure(f"{self.role} did not report \"{name}\" within {PATIENCE} s")
            line = self.process.stdout.readline()
            if not line:
                raise Failure(f"{self.role} ended with status {self.process.wait()}")
            report = json.loads(line)
            if report["event"] == name:
                return report

    def end(self):
        """Closes its input and gives the exit status."""
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def _write(self, text):
        data = text.encode()
        try:
            while data:
                data = data[self.process.stdin.write(data):]
        except BrokenPipeError:
            raise Failure(f"{self.role} ended with status {self.process.wait()}")


def kill(*processes):
    """Kills all of them with SIGKILL, and returns when they are gone."""
    for process in processes:
        process.kill()  # does nothing where it has ended and was waited for
    for process in processes:
        process.wait()
