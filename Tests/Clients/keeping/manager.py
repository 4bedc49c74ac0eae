# SPDX-License-Identifier: Apache-2.0
"""Plays the service manager for one broker: the listening socket, the notify socket, and the descriptor store.

It keeps what the broker stores, as systemd does, and hands it to the next broker. It waits for messages of the broker,
never for time.
"""

import array
import os
import select
import signal
import socket
import subprocess
import tempfile

DEADLINE = 20


class Manager:
    def __init__(self, program, arguments=()):
        self.program = program
        self.arguments = list(arguments)
        self.variables = {}  # more of the broker's environment
        self.directory = tempfile.mkdtemp(prefix="keeping-")
        self.path = os.path.join(self.directory, "broker.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(1024)
        self.notify_path = os.path.join(self.directory, "notify")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.notify_path)
        self.notify.settimeout(DEADLINE)
        self.store = []  # (name, descriptor), in the order in which they came
        self.process = None
        self.log = open(os.path.join(self.directory, "log"), "ab")

    # The broker

    def start(self):
        """Starts a broker with all stored descriptors, and returns when it is ready."""
        passed = [("restorationd", self.listener.fileno())] + self.store
        self.store = [(name, os.dup(fd)) for name, fd in self.store]
        numbers = [fd for _, fd in passed]
        environment = dict(os.environ, NOTIFY_SOCKET=self.notify_path, XDG_RUNTIME_DIR=self.directory, **self.variables)
        environment.pop("RESTORATIOND_SOCKET", None)
        environment["LISTEN_FDS"] = str(len(passed))
        environment["LISTEN_FDNAMES"] = ":".join(name for name, _ in passed)
        # A shell puts the descriptors where the broker looks for them, and its own number into LISTEN_PID.
        moves = " ".join(f"{3 + i}<&{fd} {fd}<&-" for i, fd in enumerate(self.shifted(numbers)))
        command = f'exec env LISTEN_PID=$$ "$@" {moves}'
        self.process = subprocess.Popen(
            # The broker ends with the thread that started it, which must be the main thread.
            ["bash", "-c", command, "bash", "setpriv", "--pdeathsig", "KILL", self.program, "--archives",
             os.path.join(self.directory, "archives")]
            + self.arguments,
            env=environment,
            pass_fds=self.high,
            stderr=self.log,
        )
        for fd in self.high:
            os.close(fd)
        for name, fd in passed[1:]:
            os.close(fd)
        self.wait_for("READY=1")
        return self

    def shifted(self, numbers):
        """Duplicates beyond every number the broker will see, so that moving one does not overwrite another."""
        import fcntl

        self.high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 2000) for fd in numbers]
        for fd in self.high:
            os.set_inheritable(fd, True)
        return self.high

    def wait_for(self, line):
        """Reads messages until one has this line."""
        while True:
            if line in self.take():
                return

    def take(self):
        data, control, _, _ = self.notify.recvmsg(65536, socket.CMSG_SPACE(4 * 8))
        descriptors = array.array("i")
        for level, kind, payload in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(payload[: len(payload) - len(payload) % 4])
        lines = data.decode().split("\n")
        fields = dict(line.split("=", 1) for line in lines if "=" in line)
        name = fields.get("FDNAME", "stored")
        if fields.get("FDSTORE") == "1":
            for fd in descriptors:
                if any(os.fstat(fd).st_ino == os.fstat(kept).st_ino for _, kept in self.store):
                    os.close(fd)
                else:
                    self.store.append((name, fd))
        elif fields.get("FDSTOREREMOVE") == "1":
            for kept in [kept for kept in self.store if kept[0] == name]:
                os.close(kept[1])
                self.store.remove(kept)
        else:
            for fd in descriptors:
                os.close(fd)  # BARRIER=1 waits for this
        return lines

    def take_stored(self, count):
        """Reads messages until this many connections are stored."""
        while len(self.stored()) < count:
            self.take()

    def stored(self):
        return [name for name, _ in self.store if name.startswith("connection-")]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE)
        self.drain()

    def drain(self):
        self.notify.setblocking(False)
        try:
            while True:
                self.take()
        except BlockingIOError:
            pass
        finally:
            self.notify.settimeout(DEADLINE)

    def stop(self):
        """Ends the broker in order, and reads its messages meanwhile."""
        self.process.send_signal(signal.SIGTERM)
        self.wait_for_end()

    def wait_for_end(self, *others):
        """Takes in what the broker says until it has ended; False when one of the others can be read before that."""
        end = os.pidfd_open(self.process.pid)
        try:
            while True:
                ready, _, _ = select.select([self.notify, end, *others], [], [], DEADLINE)
                assert ready, "the broker does not end"
                if self.notify in ready:
                    self.take()
                elif end in ready:
                    break
                else:
                    return False
        finally:
            os.close(end)
        assert self.process.wait() == 0, f"the broker ended with {self.process.returncode}"
        return True

    def logged(self, text):
        """In how many lines the brokers have logged this before they were ready."""
        with open(self.log.name) as log:
            return sum(text in line for line in log)

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for _, fd in self.store:
            os.close(fd)
        self.listener.close()
        self.notify.close()
        subprocess.run(["rm", "-rf", self.directory], check=True)
