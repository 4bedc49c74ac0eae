# SPDX-License-Identifier: Apache-2.0
"""A program that gives its windows a default size like any other: sizes.py gtk|adw, with the broker of the environment

Its windows are those of RestorationGtk, or those of libadwaita in a session. It opens two, is killed with SIGKILL when
they are saved as they were changed, and is started again, twice. Prints how many windows came back with their sizes.

sizes.py gtk|adw new|next   is the program: it writes its windows as JSON whenever something of them may have changed.
"""

import json
import os
import pathlib
import subprocess
import sys

import gi

gi.require_version("Gtk", "4.0")
gi.require_version("RestorationGtk", "1")
from gi.repository import Gio, GLib, Gtk, RestorationGtk  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "Protocol/clients/python"))
import restorationd  # noqa: E402

APPLICATION = "org.example.Sizes"


class Program:
    """Makes each window as an ordinary program does: the default size comes after it was made."""

    def __init__(self, is_new):
        self.is_new = is_new
        self.opened = {}
        self.application, self.session = self.make_application()
        self.session.connect("restore-window", lambda _, reason, state: self.open(state.unpack()["name"]))
        self.application.connect("activate", self.activated)

    def open(self, name, is_maximized=False):
        window = self.opened[name] = self.make_window(Gtk.Label(label=name))
        window.set_default_size(300, 200)
        if is_maximized:
            window.maximize()
        window.present()
        for each in ("default-width", "default-height", "maximized"):
            window.connect(f"notify::{each}", lambda *_: self.tell())
        window.get_surface().connect("layout", lambda *_: GLib.idle_add(self.tell))
        return window

    def save(self, window, state):
        state.insert_value("name", GLib.Variant("s", next(n for n, each in self.opened.items() if each == window)))
        return False

    def tell(self):
        shown = {name: [*each.get_default_size(), each.is_maximized(), each.get_width(), each.get_height()]
                 for name, each in self.opened.items()}
        print(json.dumps(shown), flush=True)
        self.session.invalidate()

    def activated(self, _application):
        if not self.opened:
            self.open("one").set_default_size(500, 350)
            self.open("two", is_maximized=True)


class WithGtk(Program):
    """The next version of it shows its windows maximized by default."""

    def make_application(self):
        application = RestorationGtk.Application(
            flags=Gio.ApplicationFlags.NON_UNIQUE, restoration_application=APPLICATION)
        return application, application

    def make_window(self, child):
        window = RestorationGtk.ApplicationWindow(application=self.application, child=child)
        window.connect("save-state", self.save)
        if not self.is_new:
            window.maximize()
        return window


class WithAdwaita(Program):
    """The next version of it needs its windows' surfaces before it gives them a default size."""

    def make_application(self):
        gi.require_version("Adw", "1")
        from gi.repository import Adw
        self.window_class = Adw.ApplicationWindow
        application = Adw.Application(application_id=APPLICATION, flags=Gio.ApplicationFlags.NON_UNIQUE)
        session = RestorationGtk.Session(application=application)
        session.connect("save-window", lambda _, window, state: self.save(window, state))
        return application, session

    def make_window(self, child):
        window = self.window_class(application=self.application, content=child)
        self.session.add_window(window)
        if not self.is_new:
            window.realize()
        return window


def saved():
    """What is saved of the windows."""
    with restorationd.Session(APPLICATION, process="test", socket=os.environ["RESTORATIOND_SOCKET"]) as session:
        objects = session.call("readArchive")["objects"]
    states = [each["state"] for each in objects if len(each["path"]) == 2 and each["state"]]
    return {each["state"]["name"]: [each["gtk"][key] for key in ("width", "height", "maximized")] for each in states}


def run(kind, age, is_right):
    """Runs the program until its windows are right, and are saved; then it is killed. What it had."""
    child = subprocess.Popen([sys.executable, "-B", __file__, kind, age], stdout=subprocess.PIPE, text=True)
    try:
        shown = {}
        while not is_right(shown):
            line = child.stdout.readline()
            assert line, f"the program ended: {child.wait()}"
            shown = json.loads(line)
        while saved() != {name: each[:3] for name, each in shown.items()}:
            assert child.poll() is None
        return shown
    finally:
        child.kill()
        child.wait()


def main(kind):
    # Width and height that it has when it is not maximized, and whether it is; behind them, what it has on the screen.
    changed = {"one": [500, 350, False], "two": [300, 200, True]}
    windows = run(kind, "new", lambda shown: {
        name: each[:3] for name, each in shown.items() if each[3] and each[4]} == changed)
    for _ in range(2):
        run(kind, "next", lambda shown: shown == windows)
    print(f"{len(windows)} windows came back with their sizes")


if sys.argv[2:]:
    programs = {"gtk": WithGtk, "adw": WithAdwaita}
    sys.exit(programs[sys.argv[1]](sys.argv[2] == "new").application.run())
main(sys.argv[1])
