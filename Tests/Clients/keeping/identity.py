# SPDX-License-Identifier: Apache-2.0
"""Processes that pretend to be others, or are gone: identity.py BROKER COUNT SEED [LIBRARY]

Each try is a function below: it connects in some way and says what the broker may take it for. Who is in a sandbox, or
cannot be told from one who is, must not get what a client of the host gets, and every client of the host must get it.
Prints one JSON object: how many tries of each kind there were, and which went wrong. Needs root, and a namespace of its
own for the numbers of processes, which it turns back: others beside it would use them. If a library is given,
the broker is run with it as on a kernel before 6.5 (oldkernel.c), where a number that is used again is not noticed.
"""

import ctypes
import json
import os
import random
import re
import signal
import socket
import sys
import tempfile

from manager import DEADLINE, Manager

NEWUSER, NEWNS, NEWPID = 0x10000000, 0x00020000, 0x20000000
OTHER, OWN = "org.example.Other", "org.example.Notes"
LAST_PID = "/proc/sys/kernel/ns_last_pid"
#: Tells control groups of this run from those of others beside it, whose processes may have the same numbers.
RUN = random.SystemRandom().randrange(10**6)
GROUPS = [path for path in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(path + "/cgroup.procs")]
libc = ctypes.CDLL(None, use_errno=True)


class Skipped(Exception):
    """This machine does not let the try be made."""


class Stage:
    def __init__(self, program, seed, library=None):
        self.dice = random.Random(seed)
        self.is_old = library is not None
        self.manager = Manager(program)
        self.manager.variables["LD_PRELOAD"] = library or ""
        self.folder = self.manager.directory
        # For the other user, whom the modes of files would keep out.
        os.chmod(self.folder, 0o711)
        os.chmod(self.manager.path, 0o777)
        self.manager.start()
        self.confined = ask(connect(self.manager.path), "openApplicationSocket", application=OWN)["result"]["socket"]
        self.reused = self.handed = 0

    def away(self, act):
        """Does something while the broker does not run: it is stopped, ended in order, or killed."""
        way = self.dice.randrange(8)
        if way > 1:
            self.manager.process.send_signal(signal.SIGSTOP)
        elif way == 1:
            self.manager.stop()
        else:
            self.manager.kill()
        try:
            return act()
        finally:
            if way > 1:
                self.manager.process.send_signal(signal.SIGCONT)
            else:
                self.restart()

    def restart(self):
        self.handed += 1
        self.manager.start()
        path = ask(connect(self.manager.path), "openApplicationSocket", application=OWN)["result"]["socket"]
        assert path == self.confined, path


# Connections

def connect(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(DEADLINE)
    connection.connect(path)
    return connection


def ask(connection, method, **params):
    message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
    connection.sendall(json.dumps(message).encode() + b"\n")
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(1 << 16)
        if not part:
            return None
        data += part
    return json.loads(data)


def taken_for(connection):
    """What the broker takes this peer for: "host", the name of an application, or "refused"."""
    try:
        answer = ask(connection, "describeApplication", application=OTHER)
        if answer is None or answer["id"] is None:
            return "refused"
        if answer["error"]["code"] != -32014:
            return "host"
        own = ask(connection, "describeApplication", application=OWN)
        return OWN if own.get("error", {}).get("code") != -32014 else "another"
    except ConnectionError:
        return "refused"


# Processes

def unshare(kinds):
    if libc.unshare(kinds) != 0:
        raise Skipped(f"unshare: {os.strerror(ctypes.get_errno())}")


def nest(depth):
    """User namespaces in one another: each needs a number for its root in the one around it."""
    for _ in range(depth):
        user, group = os.geteuid(), os.getegid()
        unshare(NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def fork(act):
    """Runs `act` in a child, which sends what it returns, and a descriptor if that is a socket; gives both."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        try:
            result = act()
            if isinstance(result, socket.socket):
                socket.send_fds(theirs, [b"s"], [result.fileno()])
            else:
                theirs.sendall(b"r" + result.encode())
        except Skipped as reason:
            theirs.sendall(b"k" + str(reason).encode())
        except BaseException as error:  # the caller fails with it
            theirs.sendall(b"e" + repr(error).encode())
        os._exit(0)
    theirs.close()
    ours.settimeout(DEADLINE)
    data, descriptors, _, _ = socket.recv_fds(ours, 4096, 1)
    os.waitpid(pid, 0)
    ours.close()
    kind, text = data[:1], data[1:].decode()
    if kind == b"k":
        raise Skipped(text)
    assert kind != b"e", text
    if not descriptors:
        return pid, text
    connection = socket.socket(fileno=descriptors[0])
    connection.settimeout(DEADLINE)
    return pid, connection


def in_child(*steps):
    """What the broker takes a child for that has taken these steps; the last one connects."""
    def act():
        for step in steps[:-1]:
            step()
        return taken_for(steps[-1]())
    return fork(act)[1]


def false_root(folder, name):
    """The root has the file of a Flatpak of this name; the working directory stays where the socket is."""
    def act():
        root = tempfile.mkdtemp(dir=folder)
        with open(os.path.join(root, ".flatpak-info"), "w") as file:
            file.write(f"[Application]\nname={name}\n")
        os.chdir(folder)
        os.chroot(root)
    return act


def in_scope(name):
    """In the control group of a Flatpak of this name, as far as its name says."""
    def act():
        if not GROUPS:
            raise Skipped("there are no control groups")
        group = os.path.join(GROUPS[0], f"app-flatpak-{name}-{RUN}{os.getpid():010}.scope")
        try:
            os.mkdir(group)
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write("0")
        except OSError as error:
            raise Skipped(str(error))
    return act


# Tries: each gives what the broker took the peer for, and what it may take it for.

def a_process_of_the_host(stage):
    return in_child(lambda: connect(stage.manager.path)), {"host"}


def a_child_that_inherits_the_connection(stage):
    connection = connect(stage.manager.path)
    return in_child(lambda: connection), {"host"}


def a_child_in_a_namespace_that_inherits_the_connection(stage):
    connection = connect(stage.manager.path)
    return in_child(lambda: unshare(NEWUSER), lambda: connection), {"host"}


def a_process_of_the_host_with_a_root_of_its_own(stage):
    return in_child(false_root(stage.folder, OWN), lambda: connect("broker.sock")), {"host"}


def a_process_of_the_host_in_other_namespaces(stage):
    return in_child(lambda: unshare(NEWNS | NEWPID), lambda: connect(stage.manager.path)), {"host"}


def a_process_that_says_that_it_is_another(stage):
    def act():
        connection = connect(stage.manager.path)
        claim = (ctypes.c_int * 3)(1, 0, 0)
        connection.sendmsg([b" "], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, bytes(claim))])
        return connection
    return in_child(act), {"host"}


def a_process_in_a_user_namespace(stage):
    return in_child(lambda: unshare(NEWUSER), lambda: connect(stage.manager.path)), {"refused"}


def a_process_in_nested_namespaces(stage):
    depth = stage.dice.randrange(1, 5)
    steps = [lambda: nest(depth), lambda: unshare(NEWNS | NEWPID)]
    return in_child(*steps, lambda: connect(stage.manager.path)), {"refused"}


def a_false_file_in_a_user_namespace(stage):
    steps = [lambda: unshare(NEWUSER), false_root(stage.folder, OTHER)]
    return in_child(*steps, lambda: connect("broker.sock")), {"refused"}


def a_scope_without_its_file(stage):
    return in_child(in_scope(OWN), lambda: connect(stage.manager.path)), {"refused"}


def a_scope_with_the_file_of_another(stage):
    steps = [in_scope(OWN), false_root(stage.folder, OTHER)]
    return in_child(*steps, lambda: connect("broker.sock")), {"refused"}


def a_scope_with_its_file(stage):
    return in_child(in_scope(OWN), false_root(stage.folder, OWN), lambda: connect("broker.sock")), {OWN}


def another_user(stage):
    steps = [lambda: os.chdir(stage.folder), lambda: os.setresuid(59998, 59998, 59998)]
    return in_child(*steps, lambda: connect("broker.sock")), {"refused"}


def the_socket_of_an_application(stage):
    return in_child(lambda: connect(stage.confined)), {OWN}


def a_confined_connection_that_is_passed_on(stage):
    return taken_for(fork(lambda: connect(stage.confined))[1]), {OWN}


def passed_out_of_a_namespace(stage):
    """The one who connected is gone when the broker looks, or not; in neither case is it of the host."""
    def act():
        unshare(NEWUSER)
        return connect(stage.manager.path)
    return taken_for(fork(act)[1]), {"refused"}


def dead_before_the_broker_looks(stage):
    def act():
        unshare(NEWUSER)
        return connect(stage.manager.path)
    return taken_for(stage.away(lambda: fork(act))[1]), {"refused"}


def a_number_that_is_used_again(stage):
    """When the broker looks, the number of the one who connected is that of a process of the host."""
    if not os.access(LAST_PID, os.W_OK):
        raise Skipped(f"{LAST_PID} cannot be written")
    stop, go = os.pipe()

    def act():
        unshare(NEWUSER)
        return connect(stage.manager.path)

    def reuse():
        pid, connection = fork(act)
        with open(LAST_PID, "w") as file:
            file.write(str(pid - 1))
        heir = os.fork()
        if heir == 0:
            os.close(go)
            os.read(stop, 1)
            os._exit(0)
        stage.reused += heir == pid
        return heir, connection

    heir, connection = stage.away(reuse)
    verdict = taken_for(connection)
    os.close(go)
    os.close(stop)
    os.waitpid(heir, 0)
    return verdict, {"refused", "host"} if stage.is_old else {"refused"}


def handed_over(stage):
    """Connections are the next broker's, with what they are confined to."""
    host, confined = connect(stage.manager.path), connect(stage.confined)
    before = taken_for(host), taken_for(confined)
    # They are idle when a later one is answered, and stored.
    ask(connect(stage.manager.path), "ping")
    stage.manager.drain()
    if stage.dice.randrange(2):
        stage.manager.stop()
    else:
        stage.manager.kill()
    stage.restart()
    after = taken_for(host), taken_for(confined)
    # After a kill a connection may have ended; it is never somebody else's.
    rest = [now for now, former in zip(after, before) if now not in (former, "refused")]
    return "wrong" if rest or before != ("host", OWN) else "kept", {"kept"}


SELDOM = [handed_over]
TRIES = [
    a_process_of_the_host, a_child_that_inherits_the_connection, a_child_in_a_namespace_that_inherits_the_connection,
    a_process_of_the_host_with_a_root_of_its_own, a_process_of_the_host_in_other_namespaces,
    a_process_that_says_that_it_is_another, a_process_in_a_user_namespace, a_process_in_nested_namespaces,
    a_false_file_in_a_user_namespace, a_scope_without_its_file, a_scope_with_the_file_of_another,
    a_scope_with_its_file, another_user, the_socket_of_an_application, a_confined_connection_that_is_passed_on,
    passed_out_of_a_namespace, dead_before_the_broker_looks, a_number_that_is_used_again,
]


def main():
    program, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    stage = Stage(program, seed, *sys.argv[4:])
    tried, skipped, wrong = {}, {}, []
    for number in range(count):
        act = stage.dice.choice(SELDOM) if number % 50 == 49 else TRIES[number % len(TRIES)]
        try:
            verdict, allowed = act(stage)
        except Skipped as reason:
            skipped[act.__name__] = str(reason)
            continue
        tried[act.__name__] = tried.get(act.__name__, 0) + 1
        if verdict not in allowed:
            wrong.append([number, act.__name__, verdict])
    stage.manager.stop()
    for root, folders, _ in os.walk(GROUPS[0] if GROUPS else "/nonexistent", topdown=False):
        for folder in folders:
            if re.fullmatch(rf"app-flatpak-{re.escape(OWN)}-{RUN}\d{{10}}\.scope", folder):
                os.rmdir(os.path.join(root, folder))
    numbers = {"tries": sum(tried.values()), "reused": stage.reused, "handedOver": stage.handed}
    print(json.dumps({**numbers, "wrong": wrong, "skipped": skipped, "of": tried}))


if __name__ == "__main__":
    main()
