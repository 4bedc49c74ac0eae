#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mail reader of two processes, in GTK 4, which comes back as it was: windows, panes, and the selected letter.

    mail.py list        the window with folders and letters, of which more can be opened (Control+N)
    mail.py palette     a window of another process, below the first window of the list

The signals are those of GTK 4.24. Needs the module of Protocol/clients/gtk, and python3-gi.
"""

import os
import sys

import gi

gi.require_version("Gdk", "4.0")
gi.require_version("Gtk", "4.0")
gi.require_version("RestorationGtk", "1")
from gi.repository import Gdk, Gio, GLib, Gtk, RestorationGtk  # noqa: E402

LETTERS = [f"Letter {number}" for number in range(1, 41)]
COLOURS = ["#c01c28", "#26a269", "#1a5fb4", "#613583"]  # of what a letter shows, so that a picture tells them apart


class Mail(RestorationGtk.Application):
    """The list: each window has two panes, a list with a selection, and the letter that is selected."""

    def __init__(self, process: str) -> None:
        super().__init__(
            flags=Gio.ApplicationFlags.NON_UNIQUE, restoration_process=process,
            restoration_application=os.environ.get("RESTORATION_APPLICATION", "org.example.Mail"))
        self.opened = 0
        self.connect("startup", self.show_colours)
        self.connect("save-state", self.save_state)
        self.connect("restore-state", self.restore_state)
        self.connect("restore-window", self.restore_window)
        self.connect("activate", self.activated)

    def save_state(self, _application, state):
        state.insert_value("opened", GLib.Variant("i", self.opened))
        return False

    def restore_state(self, _application, _reason, state):
        self.opened = state.unpack().get("opened", 0)
        return False

    def restore_window(self, _application, _reason, state):
        self.open_window(state.unpack())

    def show_colours(self, _application):
        provider, rules = Gtk.CssProvider(), (f".colour-{n} {{background: {c};}}" for n, c in enumerate(COLOURS))
        provider.load_from_data("".join(rules).encode())
        Gtk.StyleContext.add_provider_for_display(Gdk.Display.get_default(), provider, 600)

    def activated(self, _application):
        if not self.get_windows():
            self.open_window()
        if not self.get_property("session-id"):
            self.set_property("session-id", GLib.uuid_string_random())  # a compositor's, where there is one
        action = Gio.SimpleAction(name="new")
        action.connect("activate", lambda *_: self.open_window())
        self.add_action(action)
        self.set_accels_for_action("app.new", ["<Control>n"])

    def open_window(self, state=None):
        window = RestorationGtk.ApplicationWindow(application=self, title="Mail")
        window.set_default_size(400, 300)
        if state is None:  # a new one
            self.opened += 1
            state = {}
        selection = Gtk.SingleSelection(model=Gtk.StringList.new(LETTERS))
        factory = Gtk.SignalListItemFactory()
        factory.connect("setup", lambda _, item: item.set_child(Gtk.Label(xalign=0)))
        factory.connect("bind", lambda _, item: item.get_child().set_label(item.get_item().get_string()))
        letter = Gtk.Box(hexpand=True, vexpand=True)
        panes = Gtk.Paned(
            start_child=Gtk.ScrolledWindow(child=Gtk.ListView(model=selection, factory=factory)), end_child=letter)
        window.set_child(panes)

        def save(_window, saved):
            saved.insert_value("letter", GLib.Variant("s", LETTERS[selection.get_selected()]))
            saved.insert_value("pane", GLib.Variant("i", panes.get_position()))
            return False

        def changed(*_):
            letter.set_css_classes([f"colour-{selection.get_selected() % len(COLOURS)}"])
            self.invalidate()

        # The letter, not its row: rows may have changed. A letter that is gone leaves the first one selected.
        selection.set_selected(LETTERS.index(state["letter"]) if state.get("letter") in LETTERS else 0)
        panes.set_position(state.get("pane", 120))
        window.connect("save-state", save)
        selection.connect("notify::selected", changed)
        panes.connect("notify::position", changed)
        changed()
        window.selection, window.panes = selection, panes
        window.present()


class Palette(RestorationGtk.Application):
    """A window of another process, whose place in the tree is below the first window of the list."""

    def __init__(self) -> None:
        super().__init__(
            flags=Gio.ApplicationFlags.NON_UNIQUE, restoration_process="palette",
            restoration_application=os.environ.get("RESTORATION_APPLICATION", "org.example.Mail"))
        self.connect("restore-window", lambda _application, _reason, state: self.open_window(state.unpack()))
        self.connect("activate", lambda _: self.get_windows() or self.open_window({}))

    def open_window(self, state):
        window = RestorationGtk.ApplicationWindow(
            application=self, title="Palette", restoration_identifier="Palette",
            restoration_parent=["list", "Window-1"])
        zoom = Gtk.Scale(adjustment=Gtk.Adjustment(lower=0, upper=10, value=state.get("zoom", 1.0)), draw_value=True)
        window.set_child(zoom)

        def save(_window, saved):
            saved.insert_value("zoom", GLib.Variant("d", zoom.get_value()))
            return False

        window.connect("save-state", save)
        zoom.connect("value-changed", lambda _: self.invalidate())
        window.zoom = zoom
        window.present()


def application(process: str) -> RestorationGtk.Application:
    return Palette() if process == "palette" else Mail(process)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("list", "palette"):
        sys.exit("usage: mail.py list|palette")
    sys.exit(application(sys.argv[1]).run())
