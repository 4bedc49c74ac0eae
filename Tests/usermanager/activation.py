# SPDX-License-Identifier: Apache-2.0
"""Measures how long a service takes from the first connect or call, which starts it, to its first answer.

    activation.py PROGRAM [ROUNDS]       as root; PROGRAM is an optimised restorationd. activation.sh builds one first.

In a user manager of its own (see namespace.py), in turns: the broker by its socket; dbus-daemon, which is socket
activated too; and dconf-service, which dbus-daemon has the manager start for the first call to its name. Prints the
median and the tenth and ninetieth hundredth in milliseconds, and how the broker compares.
"""

import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
SERVICES = {"restorationd": "restorationd.service", "dbus-daemon": "dbus.service", "dconf-service": "dconf.service"}


# In the namespaces, as the user


def connect(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(20)
    connection.connect(path)
    return connection


class Bus:
    """As much of D-Bus as it takes to call a method without arguments, or with one string."""

    def __init__(self, path):
        self.connection = connect(path)
        self.file = self.connection.makefile("rb")
        self.serial = 0
        uid = str(os.getuid()).encode().hex()
        self.connection.sendall(f"\0AUTH EXTERNAL {uid}\r\n".encode())
        if not self.file.readline().startswith(b"OK"):
            raise RuntimeError("the bus lets nobody in")
        self.connection.sendall(b"BEGIN\r\n")
        self.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")

    def call(self, name, path, interface, method):
        self.serial += 1
        fields = b""
        for code, kind, value in [(1, b"o", path), (2, b"s", interface), (3, b"s", method), (6, b"s", name)]:
            fields += b"\0" * (-len(fields) % 8)
            text = value.encode()
            fields += bytes([code, 1]) + kind + b"\0" + struct.pack("<I", len(text)) + text + b"\0"
        head = struct.pack("<BBBBIII", ord("l"), 1, 0, 1, 0, self.serial, len(fields))
        self.connection.sendall(head + fields + b"\0" * (-len(fields) % 8))
        while True:
            head = self.file.read(16)
            _, kind, _, _, body, _, fields = struct.unpack("<BBBBIII", head)
            rest = self.file.read(fields + -fields % 8 + body)
            # The first field of those that are unsigned is the serial that is answered.
            if kind in (2, 3) and b"\x05\x01u\0" + struct.pack("<I", self.serial) in rest:
                if kind == 3:
                    raise RuntimeError(f"{method}: {rest}")
                return


def ask_broker(runtime):
    connection = connect(f"{runtime}/restorationd/broker.sock")
    connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    if b'"result"' not in connection.recv(4096):
        raise RuntimeError("not an answer")
    connection.close()


def ask_bus(runtime):
    Bus(f"{runtime}/bus").connection.close()


def measure(rounds):
    """Prints the milliseconds of each round, one JSON object a line."""
    runtime = os.environ["XDG_RUNTIME_DIR"]

    def stop(service):
        subprocess.run(["systemctl", "--user", "stop", service], check=True, stderr=subprocess.DEVNULL)

    for _ in range(rounds):
        times = {}
        for name, ask in [("dbus-daemon", ask_bus), ("restorationd", ask_broker)]:
            stop(SERVICES[name])
            begin = time.monotonic()
            ask(runtime)
            times[name] = (time.monotonic() - begin) * 1000
        bus = Bus(f"{runtime}/bus")
        stop(SERVICES["dconf-service"])
        begin = time.monotonic()
        bus.call("ca.desrt.dconf", "/ca/desrt/dconf/Writer/user", "org.freedesktop.DBus.Peer", "Ping")
        times["dconf-service"] = (time.monotonic() - begin) * 1000
        bus.connection.close()
        print(json.dumps(times), flush=True)


# On the machine


class Host:
    """The user manager."""

    def __init__(self):
        command = ["unshare", "--mount", "--pid", "--cgroup", "--fork", "--kill-child", "--mount-proc", "python3", "-B"]
        self.process = subprocess.Popen(
            command + [os.path.join(HERE, "namespace.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.user = json.loads(self.process.stdout.readline())
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            self.pid = children.read().strip()

    def tell(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "failure" in answer:
            sys.exit(answer["failure"])

    def command(self, *command):
        uid, home, runtime = str(self.user["uid"]), self.user["home"], self.user["runtime"]
        return [
            "nsenter", "--target", self.pid, "--mount", "--pid", "--cgroup", "setpriv", "--reuid", uid, "--regid", uid,
            "--clear-groups", "--inh-caps=-all", "env", "-i", "-C", home, f"HOME={home}", f"XDG_RUNTIME_DIR={runtime}",
            "PATH=/usr/bin:/bin", *command,
        ]

    def install(self, program):
        home = self.user["home"]
        # Without its symbols, as it is installed.
        with tempfile.NamedTemporaryFile() as stripped:
            shutil.copy(program, stripped.name)
            subprocess.run(["strip", stripped.name], check=True)
            os.chmod(stripped.name, 0o755)
            self.tell(do="add", **{"from": stripped.name}, to=f"{home}/.local/bin/restorationd")
        for name in ["restorationd.service", "restorationd.socket"]:
            with open(os.path.join(TOP, "systemd/user", name), encoding="utf-8") as unit:
                text = unit.read().replace("/usr/bin/", f"{home}/.local/bin/")
            self.tell(do="write", path=f"{home}/.config/systemd/user/{name}", text=text)
        # As often as it is wanted.
        for service in SERVICES.values():
            path = f"{home}/.config/systemd/user/{service}.d/often.conf"
            self.tell(do="write", path=path, text="[Unit]\nStartLimitIntervalSec=0\n")
        subprocess.run(
            self.command("env", "SYSTEMD_OFFLINE=1", "systemctl", "--user", "enable", "-q", "restorationd.socket"),
            check=True)


def main():
    if sys.argv[1:2] == ["measure"]:
        measure(int(sys.argv[2]))
        return
    program = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    host = Host()
    host.install(program)
    host.tell(do="add", **{"from": os.path.abspath(__file__)}, to="/run/restorationd-test/activation.py")
    host.tell(do="login")
    command = host.command("python3", "/run/restorationd-test/activation.py", "measure", str(rounds + 3))
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    # The first rounds find files that nobody has read for a while.
    times = [json.loads(line) for line in result.stdout.splitlines()][3:]
    host.process.stdin.close()
    host.process.wait()
    medians = {}
    for name in SERVICES:
        values = sorted(time[name] for time in times)
        low, medians[name], high = values[len(values) // 10], statistics.median(values), values[len(values) * 9 // 10]
        print(f"{name:14} {medians[name]:7.1f} ms   ({low:.1f} to {high:.1f}, {len(values)} rounds)")
    for name in list(SERVICES)[1:]:
        print(f"restorationd / {name}: {medians['restorationd'] / medians[name]:.2f}")


if __name__ == "__main__":
    main()
