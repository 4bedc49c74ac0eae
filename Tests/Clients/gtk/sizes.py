# SPDX-License-Identifier: Apache-2.0
"""A program that gives its windows a default size like any other: sizes.py, with the broker of the environment

It opens two windows, is killed with SIGKILL when
they are saved as they were changed, and is started again, twice. Prints how many windows came back with their sizes.

sizes.py new|next   is the program: it writes its windows as JSON whenever something of them may have changed.
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
import restoration  # noqa: E402

APPLICATION = "org.example.Sizes"


class Program:
    """Makes each window as an ordinary program does: the default size comes after it was made.

    The next version of it shows its windows maximized by default.
    """

    def __init__(self, is_new):
        self.is_new = is_new
        self.opened = {}
        self.application = RestorationGtk.Application(
            flags=Gio.ApplicationFlags.NON_UNIQUE, restoration_application=APPLICATION)
        self.application.connect("restore-window", lambda _, reason, state: self.open(state.unpack()["name"]))
        self.application.connect("activate", self.activated)

    def open(self, name, is_maximized=False):
        window = self.opened[name] = RestorationGtk.ApplicationWindow(application=self.application)
        window.connect("save-state", self.save)
        if not self.is_new:
            window.maximize()
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
        self.application.invalidate()

    def activated(self, _application):
        if not self.opened:
            self.open("one").set_default_size(500, 350)
            self.open("two", is_maximized=True)


def saved():
    """What is saved of the windows."""
    with restoration.Session(APPLICATION, process="test", socket=os.environ["RESTORATIOND_SOCKET"]) as session:
        objects = session.call("readArchive")["objects"]
    states = [each["state"] for each in objects if len(each["path"]) == 2 and each["state"]]
    return {each["state"]["name"]: [each["gtk"][key] for key in ("width", "height", "maximized")] for each in states}


def run(age, is_right):
    """Runs the program until its windows are right, and are saved; then it is killed. What it had."""
    child = subprocess.Popen([sys.executable, "-B", __file__, age], stdout=subprocess.PIPE, text=True)
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


def main():
    # Width and height that it has when it is not maximized, and whether it is; behind them, what it has on the screen.
    changed = {"one": [500, 350, False], "two": [300, 200, True]}
    windows = run("new", lambda shown: {
        name: each[:3] for name, each in shown.items() if each[3] and each[4]} == changed)
    for _ in range(2):
        run("next", lambda shown: shown == windows)
    print(f"{len(windows)} windows came back with their sizes")


if sys.argv[1:]:
    sys.exit(Program(sys.argv[1] == "new").application.run())
main()
