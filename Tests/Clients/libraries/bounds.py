#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brokers that fall silent, never end a line, or close at any byte, against the libraries: bounds.py STEP DRIVER

Every call ends with an error of the library, soon, and without much memory. The connection is closed after each STEPth
byte. Prints how many ends were tried. In Python the module is that of PYTHONPATH; DRIVER is that of the library in C.
"""

import asyncio
import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time

import restorationd

# Instead of a gigabyte.
restorationd._LINE_BYTES_MAX = 1 << 20
RESULTS = {
    "initialize": {"session": "00000000", "application": "a", "limits": {}, "restoration": {"state": "none"}},
    "registerObjectForStateRestoration": {
        "object": 1, "path": ["A"], "included": True, "restoration": {"state": "none"}},
    "encodeRestorableState": {"sequence": 1, "durability": "disk"},
}


class Broker:
    """Answers, until it has sent `count` bytes; then it closes, is silent, or sends a line without an end."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.count, self.then, self.sessions = 0, "close", 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            connection = self.listener.accept()[0]
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    @staticmethod
    def line(connection):
        """A file would keep the connection open."""
        line = b""
        while not line.endswith(b"\n"):
            part = connection.recv(65536)
            if not part:
                return b""
            line += part
        return line

    def serve(self, connection):
        # Each session is new, so that a client that connects again has to say everything again.
        self.sessions += 1
        token = f"{self.sessions:08}"
        try:
            left = self.count
            for line in iter(lambda: self.line(connection), b""):
                message = json.loads(line.splitlines()[-1])
                if "id" not in message:
                    continue
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": RESULTS.get(message["method"], {})}
                data = json.dumps(answer).replace("00000000", token).encode() + b"\n"
                connection.sendall(data[:left])
                left -= len(data)
                if left > 0:
                    continue
                while self.then == "endless":
                    connection.sendall(b"x" * 65536)
                if self.then == "close":
                    break
        except OSError:
            pass
        connection.close()


def blocking(path, **options):
    with restorationd.Session("org.example.Bounds", socket=path, **options) as session:
        session.register("A").encode({"n": 1})


async def concurrent(path, **options):
    async with restorationd.AsyncSession("org.example.Bounds", socket=path, **options) as session:
        await (await session.register("A")).encode({"n": 1})


def attempt(use, path, timeout, allowed):
    """Fails unless it ends with such an error, soon."""
    start = time.monotonic()
    try:
        work = use(path, timeout=timeout, patience=0, without_broker="fails")
        if work is not None:
            asyncio.run(work)
        outcome = None
    except restorationd.RestorationError as error:
        outcome = error
        assert str(error), repr(error)
    assert type(outcome) in allowed, (repr(outcome), use.__name__)
    assert time.monotonic() - start < 5, (time.monotonic() - start, outcome)


def native(driver, path):
    """Fails unless each command is answered, soon, and the program ends well."""
    start, answers = time.monotonic(), []
    commands = [
        {"do": "open", "application": "org.example.Bounds", "patience": 0}, {"do": "register", "identifier": "A"},
        {"do": "push", "name": "A", "state": {"n": 1}}, {"do": "call", "method": "ping", "timeout": 0.1},
        {"do": "close"},
    ]
    process = subprocess.Popen(
        [driver, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
    with contextlib.suppress(BrokenPipeError):
        for command in commands:
            # Without a session there is nothing to use.
            if not answers or "ok" in answers[0]:
                process.stdin.write(json.dumps(command) + "\n")
                answers.append(json.loads(process.stdout.readline() or '{"error": "it has ended"}'))
    _, errors = process.communicate(timeout=60)
    # 3: the driver ends, because the session cannot be resumed.
    assert process.returncode in (0, 3) and any("error" in answer for answer in answers), (answers, errors)
    assert time.monotonic() - start < 5, (time.monotonic() - start, answers)


def main():
    path = os.path.join(tempfile.mkdtemp(), "b.sock")
    broker, step, tried = Broker(path), int(sys.argv[1]), 0
    whole = sum(len(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result})) + 1 for result in RESULTS.values())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lost = (restorationd.ConnectionLostError, restorationd.NoBrokerError)
    for use in (blocking, concurrent):
        for count in range(0, whole, step):
            broker.count, broker.then = count, "close"
            attempt(use, path, 30, lost)
            tried += 1
        for count in (0, 20, whole // 2, whole - 1):
            silent = (restorationd.CallTimedOutError, restorationd.NoBrokerError)
            for then, timeout, allowed in (("silence", 0.1, silent), ("endless", 30, lost)):
                broker.count, broker.then = count, then
                attempt(use, path, timeout, allowed)
                tried += 1
    for count in range(0, whole, 2 * step):
        broker.count, broker.then = count, "close"
        native(sys.argv[2], path)
        tried += 1
    broker.count, broker.then = whole, "silence"
    native(sys.argv[2], path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert grown < 64 << 10, f"{grown} KiB"
    print(f"{tried} ends, {grown} KiB")


if __name__ == "__main__":
    main()
