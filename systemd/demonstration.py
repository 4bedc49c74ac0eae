#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What systemd/try.sh shows: demonstration.py DIRECTORY-OF-PROGRAMS

Runs a private broker and four processes of one application, kills all five with SIGKILL while they work, starts them
again, and compares. The exit code is 0 when every object has its state.
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAMS = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
ROLES = [("windows", "Swift", "-"), ("documents", "Swift", "windows"), ("previews", "Python", "documents"),
         ("outlines", "Python", "documents")]
PATIENCE = 60


class Failure(Exception):
    pass


def source_files():
    """Every Swift, C and Python source of this repository, relative to its top."""
    files = []
    for top in ("Sources", "Tests", "systemd", "Protocol"):
        for folder, folders, names in os.walk(os.path.join(REPOSITORY, top)):
            folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
            files += [os.path.relpath(os.path.join(folder, name), REPOSITORY) for name in sorted(names)
                      if name.endswith((".swift", ".h", ".py"))]
    return files


RUNNING = []


def start(command, **options):
    try:
        RUNNING.append(subprocess.Popen(command, **options))
    except OSError as error:
        raise Failure(f"{command[0]} cannot be started: {error.strerror}")
    return RUNNING[-1]


class Broker:
    def __init__(self, directory):
        self.socket = os.path.join(directory, "run", "broker.sock")
        self.archives = os.path.join(directory, "archives")
        self.log = os.path.join(directory, "broker.log")
        os.mkdir(os.path.dirname(self.socket), 0o700)

    def start(self):
        """Milliseconds until it accepted a connection."""
        begin = time.monotonic()
        command = [os.path.join(PROGRAMS, "restorationd"), "--socket", self.socket, "--archives", self.archives]
        with open(self.log, "ab") as log:
            self.process = start(command, stdin=subprocess.DEVNULL, stderr=log)
        while True:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(self.socket) == 0:
                    return (time.monotonic() - begin) * 1000
            if self.process.poll() is not None or time.monotonic() - begin > PATIENCE:
                raise Failure(f"the broker did not start; its log is\n{open(self.log).read()}")
            os.sched_yield()


class Client:
    def __init__(self, role, language, broker, directory, files, restore=False):
        program = [os.path.join(PROGRAMS, "restoration-sample")] if language == "Swift" else \
            [sys.executable, os.path.join(HERE, "sample.py")]
        command = program + [role, broker.socket, os.path.join(directory, role)] + (["restore"] if restore else [])
        self.role = role
        self.process = start(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdin.write("".join(file + "\n" for file in files).encode())
        self.process.stdin.close()

    def event(self, name):
        """Waits for the process to report an event."""
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


def count(number):
    return f"{number:,}"


def acknowledged(directory):
    total = 0
    for role, _, _ in ROLES:
        with open(os.path.join(directory, role), "rb") as journal:
            total += sum(line.startswith(b"done\t") for line in journal)
    return total


def first_half(broker, directory, files):
    started = broker.start()
    print(f"A private broker is ready after {started:.0f} ms (process {broker.process.pid}).")
    print(f"Four processes of one application register windows, documents, previews and\n"
          f"outlines for the {len(files)} source files of this repository:\n")
    clients = [Client(role, language, broker, directory, files) for role, language, _ in ROLES]
    print(f"  {'process':<12}{'pid':>8}  {'language':<10}{'objects':>8}  parents are in process")
    for client, (role, language, parent) in zip(clients, ROLES):
        objects = client.event("saved")["objects"]
        print(f"  {role:<12}{client.process.pid:>8}  {language:<10}{objects:>8}  {parent}")
    for client in clients:
        client.event("typed")
    processes = [client.process for client in clients] + [broker.process]
    for process in processes:
        process.send_signal(signal.SIGKILL)
    for process in processes:
        process.wait()
    print(f"\nEvery object has a state, and all four went on moving cursors and selections:\n"
          f"{count(acknowledged(directory))} states were acknowledged, so they are on disk. In the middle of that\n"
          f"all five processes, the broker included, got SIGKILL. Nothing runs any more.")


def second_half(broker, directory, files):
    started = broker.start()
    print(f"\nThe broker is ready again after {started:.0f} ms. The four start again, children before\n"
          f"their parents; each registers its objects, decodes them and compares:\n")
    clients = {role: Client(role, language, broker, directory, files, restore=True)
               for role, language, _ in reversed(ROLES)}
    print(f"  {'process':<12}{'is told':<10}{'objects':>8}{'as acknowledged':>17}{'newer':>8}{'different':>11}")
    total = restored = 0
    for role, _, _ in ROLES:
        report = clients[role].event("restored")
        clients[role].process.wait()
        total += report["objects"]
        restored += report["last"] + report["newer"]
        print(f"  {role:<12}{report['reason']:<10}{report['objects']:>8}{report['last']:>17}{report['newer']:>8}"
              f"{report['different']:>11}")
    print("\n(\"Newer\" was sent and stored, and the kill came before the answer was read.)\n")
    print(f"{count(restored)} of {count(total)} objects have their state again.")
    return restored == total and total > 0


def main():
    files = source_files()
    directory = tempfile.mkdtemp(prefix="rd-try-", dir="/tmp")
    broker = Broker(directory)
    try:
        first_half(broker, directory, files)
        everything_is_back = second_half(broker, directory, files)
        broker.process.terminate()
        if broker.process.wait() != 0:
            raise Failure("the broker did not end cleanly")
        return 0 if everything_is_back else 1
    except Failure as failure:
        print(f"\nThis did not work: {failure}", file=sys.stderr)
        return 1
    finally:
        for process in RUNNING:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
