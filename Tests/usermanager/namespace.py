# SPDX-License-Identifier: Apache-2.0
"""A real user manager (`systemd --user`) for tests, without a booted systemd and without a trace on the machine.

Started by root as process 1 of namespaces of its own:

    unshare --mount --pid --cgroup --fork --kill-child --mount-proc python3 Tests/usermanager/namespace.py

It makes an ordinary user who exists nowhere else, with a home and a runtime directory in memory and a group of
processes of their own, and plays what of a system a user manager looks for: the notification socket and the journal.
It obeys commands, one JSON object a line on standard input, and answers each with one on standard output:

    login             starts the user manager; answers when it says that it is ready. `environment`: more variables
    logout            ends it as the end of the last login does, with what the user still runs in it, and empties the
                      runtime directory
    add               puts `from` (a file or a directory of the machine) at `to`, readable by the user: a copy, which
                      replaces a file that is there by a new one, or with `bind` the directory itself
    write             writes `text` to a file of the user at `path` and makes the directories to it
    journal           what was logged since it was asked for last: `{"entries": [{FIELD: value}]}`
    awaitJournal      waits for entries that have all of `fields`, as many as `count`, and gives them; nothing is taken

Its first line says who the user is. Whoever wants to run something as the user enters the namespaces (see the fixture
`UserManager`). At the end of standard input, which comes when the test's process dies, everything in here ends.
"""

import ctypes
import errno
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import sys
import time

UID = 59999
NAME = "restorationd-test"
HOME = f"/run/home/{NAME}"
RUNTIME = f"/run/user/{UID}"
PATIENCE = 30
GROUPS = "/sys/fs/cgroup"
MS_BIND, MNT_DETACH = 0x1000, 2

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind=None, flags=0, options=None):
    encoded = [value.encode() if value else None for value in (source, target, kind)]
    check(libc.mount(*encoded, ctypes.c_ulong(flags), options.encode() if options else None), f"mount {target}")


def own(path, mode):
    os.chown(path, UID, UID)
    os.chmod(path, mode)


def make_directories(path):
    """Makes what is missing; what is in the user's home is the user's."""
    if not os.path.isdir(path):
        make_directories(os.path.dirname(path))
        os.mkdir(path)
        if path.startswith(HOME):
            own(path, 0o755)


class Group:
    """The control group of this process, with one below it that is the user's."""

    # What is said of a group that another process has just swept, because nobody was in it.
    SWEPT = (errno.ENOENT, errno.ENODEV)

    def __init__(self):
        mount("cgroup2", GROUPS, "cgroup2")
        self.sweep()
        while True:
            self.path = f"{GROUPS}/restorationdtest{os.urandom(6).hex()}.slice"
            try:
                os.makedirs(f"{self.path}/init.scope")
                self.join(f"{self.path}/init.scope")
                break
            except OSError as error:
                if error.errno not in self.SWEPT:
                    raise
        # As logind names it: that is how libsystemd tells the units of a user manager.
        self.user = f"{self.path}/user@{UID}.service"

    @staticmethod
    def join(path):
        with open(f"{path}/cgroup.procs", "w", encoding="ascii") as processes:
            processes.write("0")

    def make(self):
        os.makedirs(self.user)
        for name in ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"]:
            os.chown(os.path.join(self.user, name), UID, UID)

    def kill(self):
        """Kills what is left in the user's group, and removes it."""
        if not os.path.exists(self.user):
            return
        with open(f"{self.user}/cgroup.kill", "w", encoding="ascii") as kill:
            kill.write("1")
        self.remove(self.user)

    def remove(self, path):
        with open(f"{path}/cgroup.events", "rb") as events:
            poll = select.poll()
            poll.register(events, select.POLLPRI)
            while b"populated 1" in os.pread(events.fileno(), 100, 0):
                poll.poll(1000)
        for directory, _, _ in os.walk(path, topdown=False):
            os.rmdir(directory)

    def end(self):
        self.kill()
        self.join(GROUPS)
        try:
            self.remove(self.path)
        except OSError as error:
            if error.errno not in self.SWEPT:
                raise

    def sweep(self):
        """Removes what was left by a process that was killed before it could clean up."""
        for name in os.listdir(GROUPS):
            if re.fullmatch("restorationdtest[0-9a-f]{12}[.]slice", name):
                try:
                    with open(f"{GROUPS}/{name}/cgroup.events", encoding="ascii") as events:
                        if "populated 0" in events.read():
                            self.remove(f"{GROUPS}/{name}")
                except OSError:
                    pass  # another one's that is just starting or ending


class Journal:
    """What is sent to the journal: native datagrams, and the standard error of services."""

    LIMIT = 50_000

    def __init__(self, loop):
        self.loop = loop
        self.entries = []
        os.makedirs("/run/systemd/journal")
        self.datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.datagrams.bind("/run/systemd/journal/socket")
        self.streams = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.streams.bind("/run/systemd/journal/stdout")
        self.streams.listen(100)
        for name in ["socket", "stdout"]:
            os.chmod(f"/run/systemd/journal/{name}", 0o666)
        loop.add(self.datagrams, self.receive)
        loop.add(self.streams, self.accept)

    def note(self, entry):
        self.entries = self.entries[-self.LIMIT:] + [entry]

    def receive(self):
        data, descriptors, _, _ = socket.recv_fds(self.datagrams, 1 << 20, 4)
        for descriptor in descriptors:
            # Too large for a datagram: in a file in memory.
            data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            os.close(descriptor)
        entry = {"_TRANSPORT": "journal"}
        while data:
            line, _, data = data.partition(b"\n")
            name, equals, value = line.partition(b"=")
            if not equals and line:
                length = struct.unpack("<Q", data[:8])[0]
                value, data = data[8:8 + length], data[9 + length:]
            entry[name.decode()] = value.decode(errors="replace")
        self.note(entry)

    def accept(self):
        connection, _ = self.streams.accept()
        rest = b""
        head = []

        def read():
            nonlocal rest
            data = connection.recv(1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if len(head) < 7:
                    head.append(line.decode(errors="replace"))
                else:
                    self.note({
                        "_TRANSPORT": "stdout", "SYSLOG_IDENTIFIER": head[0], "UNIT": head[1],
                        "MESSAGE": line.decode(errors="replace"),
                    })
            if not data:
                self.loop.remove(connection)
                connection.close()

        self.loop.add(connection, read)

    def matching(self, fields):
        return [entry for entry in self.entries if all(entry.get(name) == value for name, value in fields.items())]


class Loop:
    """Waits for everything at once; children that end are waited for as they come."""

    def __init__(self):
        self.poll = select.poll()
        self.readers = {}
        self.ended = {}
        wake, self.wakeup = socket.socketpair()
        for end in (wake, self.wakeup):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wakeup.fileno(), warn_on_full_buffer=False)
        self.add(wake, lambda: (wake.recv(4096), self.reap()))

    def add(self, source, reader):
        self.readers[source.fileno()] = reader
        self.poll.register(source, select.POLLIN)

    def remove(self, source):
        self.poll.unregister(source)
        del self.readers[source.fileno()]

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.ended[pid] = os.waitstatus_to_exitcode(status)

    def until(self, is_true, seconds=PATIENCE):
        """False when the time was over before."""
        deadline = time.monotonic() + seconds
        while not is_true():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for number, _ in self.poll.poll(min(left, 1_000) * 1000):
                if number in self.readers:
                    self.readers[number]()
        return True


class Failure(Exception):
    """A command cannot be obeyed."""


class Host:
    def __init__(self):
        self.loop = Loop()
        self.group = Group()
        self.manager = None
        self.is_over = False
        self.input = b""
        self.commands = []
        mount("tmpfs", "/run", "tmpfs", options="mode=0755")
        # The first says that this is systemd's machine, the second is needed to test units that want a file system.
        for path in ["/run/systemd/system", "/run/systemd/unit-root", "/run/user", "/run/home", HOME]:
            os.makedirs(path)
        own(HOME, 0o700)
        self.introduce("/etc/passwd", f"{NAME}:x:{UID}:{UID}::{HOME}:/bin/sh\n")
        self.introduce("/etc/group", f"{NAME}:x:{UID}:\n")
        self.journal = Journal(self.loop)
        self.notifications = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.notifications.bind("/run/systemd/notify")
        os.chmod("/run/systemd/notify", 0o666)
        self.is_ready = False
        self.loop.add(self.notifications, self.notified)
        os.set_blocking(0, False)
        self.loop.add(sys.stdin, self.read)

    @staticmethod
    def introduce(path, line):
        with open(path, encoding="utf-8") as file:
            text = line + file.read()
        copy = f"/run/{os.path.basename(path)}"
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text)
        mount(copy, path, flags=MS_BIND)

    def notified(self):
        if b"READY=1" in self.notifications.recv(1 << 16).split(b"\n"):
            self.is_ready = True

    def login(self, command):
        if self.manager:
            raise Failure("there is a user manager already")
        os.mkdir(RUNTIME)
        mount("tmpfs", RUNTIME, "tmpfs", options=f"mode=0700,uid={UID},gid={UID}")
        self.group.make()
        self.is_ready = False
        begin = time.monotonic()
        environment = {
            "HOME": HOME, "USER": NAME, "LOGNAME": NAME, "SHELL": "/bin/sh", "XDG_RUNTIME_DIR": RUNTIME,
            "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "NOTIFY_SOCKET": "/run/systemd/notify",
            **command.get("environment", {}),
        }
        self.manager = self.start(["/lib/systemd/systemd", "--user"], environment)
        self.loop.until(lambda: self.is_ready or self.manager in self.loop.ended)
        if not self.is_ready:
            said = [entry.get("MESSAGE") for entry in self.journal.entries[-20:]]
            raise Failure(f"the user manager is not ready; {self.loop.ended.get(self.manager)}; {said}")
        return {"manager": self.manager, "milliseconds": round((time.monotonic() - begin) * 1000)}

    def start(self, command, environment):
        """Starts a program as the user, in the user's group."""
        pid = os.fork()
        if pid:
            return pid
        try:
            signal.set_wakeup_fd(-1)
            self.group.join(self.group.user)
            os.setsid()
            os.setgroups([])
            os.setresgid(UID, UID, UID)
            os.setresuid(UID, UID, UID)
            os.umask(0o022)
            os.chdir(HOME)
            null = os.open("/dev/null", os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(2, 1)  # standard output is for answers
            os.execve(command[0], command, environment)
        finally:
            os._exit(127)

    def logout(self, _):
        if not self.manager:
            raise Failure("there is no user manager")
        begin = time.monotonic()
        os.kill(self.manager, signal.SIGTERM)
        has_ended = self.loop.until(lambda: self.manager in self.loop.ended, 90 + PATIENCE)
        status = self.loop.ended.get(self.manager)
        self.group.kill()
        self.manager = None
        check(libc.umount2(RUNTIME.encode(), MNT_DETACH), "umount")
        os.rmdir(RUNTIME)
        if not has_ended:
            raise Failure("the user manager did not end")
        return {"status": status, "milliseconds": round((time.monotonic() - begin) * 1000)}

    @staticmethod
    def add(command):
        source, target = command["from"], command["to"]
        make_directories(os.path.dirname(target))
        if command.get("bind"):
            os.makedirs(target, exist_ok=True)
            mount(source, target, flags=MS_BIND)
        elif os.path.isdir(source):
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            for directory, _, files in os.walk(target):
                for path in [directory] + [os.path.join(directory, name) for name in files]:
                    if not os.path.islink(path):
                        os.chmod(path, 0o755 if os.access(path, os.X_OK) else 0o644)
        else:
            # A new file: what runs the old one goes on with it.
            shutil.copyfile(source, f"{target}.new")
            os.chmod(f"{target}.new", 0o755 if os.access(source, os.X_OK) else 0o644)
            if target.startswith(HOME):
                os.chown(f"{target}.new", UID, UID)
            os.rename(f"{target}.new", target)
        return {}

    @staticmethod
    def write(command):
        make_directories(os.path.dirname(command["path"]))
        with open(command["path"], "w", encoding="utf-8") as file:
            file.write(command["text"])
        own(command["path"], 0o644)
        return {}

    def take_journal(self, _):
        entries, self.journal.entries = self.journal.entries, []
        return {"entries": entries}

    def await_journal(self, command):
        fields, count = command["fields"], command.get("count", 1)
        if not self.loop.until(lambda: len(self.journal.matching(fields)) >= count, command.get("seconds", PATIENCE)):
            raise Failure(f"{len(self.journal.matching(fields))} entries of {count} came with {fields}")
        return {"entries": self.journal.matching(fields)}

    def read(self):
        data = os.read(0, 1 << 20)
        *lines, self.input = (self.input + data).split(b"\n")
        if not data:
            self.loop.remove(sys.stdin)
            self.is_over = True
        self.commands += lines

    def obey(self, command):
        verbs = {
            "login": self.login, "logout": self.logout, "add": self.add, "journal": self.take_journal,
            "awaitJournal": self.await_journal, "write": self.write,
        }
        try:
            answer = verbs[command["do"]](command)
        except (Failure, OSError) as error:
            answer = {"failure": str(error)}
        print(json.dumps(answer), flush=True)

    def run(self):
        print(json.dumps({"uid": UID, "home": HOME, "runtime": RUNTIME}), flush=True)
        while not self.is_over:
            self.loop.until(lambda: self.commands or self.is_over, float("inf"))
            while self.commands:
                self.obey(json.loads(self.commands.pop(0)))

    def end(self):
        # Everything else in here; the namespaces go with this process.
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.group.end()


def main():
    if os.getpid() != 1 or os.geteuid() != 0:
        sys.exit("this is to be process 1 of a namespace, and root")
    host = Host()
    try:
        host.run()
    except BrokenPipeError:
        pass
    finally:
        host.end()


if __name__ == "__main__":
    main()
