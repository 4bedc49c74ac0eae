# SPDX-License-Identifier: Apache-2.0
"""Programs that do what they should not, with the broker of the environment: faults.py

Prints how many windows came back.
"""

import os
import pathlib
import sys

import gi

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "Protocol/clients/python"))
import restoration  # noqa: E402

gi.require_version("Gtk", "4.0")
gi.require_version("RestorationGtk", "1")
from gi.repository import Gio, GLib, Gtk, RestorationGtk  # noqa: E402


APPLICATION = "org.example.Faults"


class Application(RestorationGtk.Application):
    """Names Gtk.Application in its methods, and has a window that closes when it is saved."""

    def __init__(self):
        super().__init__(flags=Gio.ApplicationFlags.NON_UNIQUE, restoration_application=APPLICATION)
        self.restored = []
        self.connect("restore-window", self.restore_window)

    def do_startup(self):
        Gtk.Application.do_startup(self)

    def do_shutdown(self):
        Gtk.Application.do_shutdown(self)

    def do_activate(self):
        if not self.restored:
            self.open_window("one"), self.open_window("closing", closes=True), self.open_window("two")
        GLib.timeout_add(300, self.quit)

    def restore_window(self, _application, _reason, state):
        self.restored.append(state.unpack().get("name"))
        self.save()  # takes nothing from the windows that are not restored yet
        self.open_window(self.restored[-1])

    def open_window(self, name, closes=False):
        def save(window, state):
            if closes:
                window.destroy()
            state.insert_value("name", GLib.Variant("s", name))
            return False

        RestorationGtk.ApplicationWindow(application=self).connect("save-state", save)


def run():
    application = Application()
    assert application.run() == 0
    return sorted(application.restored)


assert run() == []
for _ in range(2):
    restored = run()
    assert restored == ["one", "two"], restored

# A window that the broker refuses costs no other one, and comes back the next time.
with restoration.Session(APPLICATION, process="another", socket=os.environ["RESTORATIOND_SOCKET"]) as session:
    taken = {"restorationIdentifier": "Window-1", "restorationParent": ["main"], "kind": "viewController"}
    session.call("registerObjectForStateRestoration", taken)
    assert run() == ["two"]
restored = run()
assert restored == ["one", "two"], restored
print("2 windows came back")
