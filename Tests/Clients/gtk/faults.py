# SPDX-License-Identifier: Apache-2.0
"""Programs that do what they should not, with the broker of the environment: faults.py

Prints how many windows came back. With a word, such a program is run once: `die` closes a window and is killed then;
`hold` opens a window while its last one is closed, and is killed when that is saved; `linger` is killed when
another one has begun; `withheld` is one of org.example.Withheld that ends when its windows are saved.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading

import gi

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "Protocol/clients/python"))
import restorationd  # noqa: E402

gi.require_version("Gtk", "4.0")
gi.require_version("RestorationGtk", "1")
from gi.repository import Gio, GLib, Gtk, RestorationGtk  # noqa: E402


APPLICATION = "org.example.Faults"


def described(application):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ["RESTORATIOND_SOCKET"])
        call = {"jsonrpc": "2.0", "id": 1, "method": "describeApplication", "params": {"application": application}}
        connection.sendall(json.dumps(call).encode() + b"\n")
        answer = json.loads(connection.makefile().readline())
    return answer.get("result", {"objects": [], "sessions": []})


def saved(application):
    """The names of its windows that are registered and have a state."""
    objects = described(application)["objects"]
    return {each["path"][1] for each in objects if len(each["path"]) > 1 and each["object"] and each["bytes"]}


class Application(RestorationGtk.Application):
    """Names Gtk.Application in its methods, and has a window that closes when it is saved."""

    def __init__(self, name=APPLICATION):
        super().__init__(flags=Gio.ApplicationFlags.NON_UNIQUE, restoration_application=name)
        self.name = name
        self.restored, self.reasons = [], set()
        self.connect("restore-window", self.restore_window)

    def do_startup(self):
        Gtk.Application.do_startup(self)

    def do_shutdown(self):
        Gtk.Application.do_shutdown(self)

    def do_activate(self):
        if self.restored:
            GLib.idle_add(self.quit)
        else:
            self.begin()

    def begin(self):
        self.open_window("one"), self.open_window("closing", closes=True), self.open_window("two")
        self.when_saved({"Window-1", "Window-3"}, self.quit)

    def when_saved(self, names, work):
        """Does the work when these windows are registered and have a state."""
        GLib.timeout_add(10, lambda: not names <= saved(self.name) or work())

    def restore_window(self, _application, reason, state):
        self.reasons.add(reason)
        self.restored.append(state.unpack().get("name"))
        self.save()  # takes nothing from the windows that are not restored yet
        self.open_window(self.restored[-1])

    def open_window(self, name, closes=False):
        def save(window, state):
            if closes:
                window.destroy()
            state.insert_value("name", GLib.Variant("s", name))
            return False

        window = RestorationGtk.ApplicationWindow(application=self)
        window.connect("save-state", save)
        return window


class Dying(Application):
    """Is killed when a window has been closed, before its loop has gone on."""

    def __init__(self):
        super().__init__("org.example.Dying")

    def begin(self):
        self.closed = self.open_window("closed")
        self.open_window("kept")
        self.when_saved({"Window-1", "Window-2"}, self.die)

    def die(self):
        self.closed.destroy()
        os.kill(os.getpid(), signal.SIGKILL)


class Holding(Application):
    """Opens a window when it is saved because the last one is closed, and goes on."""

    def __init__(self):
        super().__init__("org.example.Holding")
        self.last = None

    def begin(self):
        self.hold()
        last = self.open_window("last")
        self.connect("save-state", self.save_state)
        self.when_saved({"Window-1"}, lambda: self.close(last))

    def close(self, last):
        self.last = last
        last.destroy()
        self.when_saved({"Window-2"}, lambda: os.kill(os.getpid(), signal.SIGKILL))

    def save_state(self, _application, _state):
        if self.last:
            self.last = None
            self.open_window("next")
        return False


class Lingering(Application):
    """Is killed when the next one awaits its place."""

    def __init__(self):
        super().__init__("org.example.Lingering")

    def begin(self):
        self.open_window("one"), self.open_window("two")
        self.when_saved({"Window-1", "Window-2"}, self.linger)

    def linger(self):
        print("saved", flush=True)
        GLib.timeout_add(
            10, lambda: len(described(self.name)["sessions"]) < 2 or os.kill(os.getpid(), signal.SIGKILL))


def run(application=None):
    application = application or Application()
    assert application.run() == 0
    return sorted(application.restored)


def killed(word):
    end = subprocess.run([sys.executable, __file__, word]).returncode
    assert end == -signal.SIGKILL, end


if sys.argv[1:] == ["die"]:
    run(Dying())
elif sys.argv[1:] == ["hold"]:
    run(Holding())
elif sys.argv[1:] == ["linger"]:
    run(Lingering())
elif sys.argv[1:] == ["withheld"]:
    run(Application("org.example.Withheld"))
    sys.exit()


assert run() == []
for _ in range(2):
    restored = run()
    assert restored == ["one", "two"], restored

# A window that the broker refuses costs no other one, and comes back the next time.
with restorationd.Session(APPLICATION, process="another", socket=os.environ["RESTORATIOND_SOCKET"]) as session:
    taken = {"restorationIdentifier": "Window-1", "restorationParent": ["main"], "kind": "viewController"}
    session.call("registerObjectForStateRestoration", taken)
    assert run() == ["two"]
restored = run()
assert restored == ["one", "two"], restored

# A former process may have to die first.
former = restorationd.Session(APPLICATION, process="former", socket=os.environ["RESTORATIOND_SOCKET"])
former.register("main", kind="viewController")
threading.Timer(0.5, former.close).start()
restored = run()
assert restored == ["one", "two"], restored

killed("die")
restored = run(Dying())
assert restored == ["kept"], restored
killed("hold")
restored = run(Holding())
assert restored == ["next"], restored

# It may have begun the run in which the next one is started, so that nothing was saved when that began.
lingering = subprocess.Popen([sys.executable, __file__, "linger"], stdout=subprocess.PIPE, text=True)
assert lingering.stdout.readline() == "saved\n"
application = Application("org.example.Lingering")
restored = run(application)
assert lingering.wait() == -signal.SIGKILL
assert restored == ["one", "two"], restored
assert application.reasons == {RestorationGtk.RestoreReason.RECOVER}, application.reasons
print("2 windows came back")
