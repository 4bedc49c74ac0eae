# SPDX-License-Identifier: Apache-2.0
"""Runs a process of Protocol/examples/gtk/mail.py and obeys: driven.py list|palette [asking]

If it is asking, it says "restoring" once its state is restored, and once each window is, and waits for a line.

Each line of standard input is a command, and gets one line of JSON:

    new                 opens a window
    select N LETTER     selects a letter in window N
    pane N POSITION     moves the divider of window N
    zoom VALUE          moves the slider of the palette
    close N             closes window N, as its user does
    show                what the windows have; puts each into a place of its own, as a compositor would
    ticks COUNT         waits for so many turns of a timer of 10 ms; the longest time between two, in milliseconds, and
                        the part of the time that this process has used of a processor
    flash               opens a window, closes it, and ends the application, before the broker can answer
    save                saves
    forget              forgets what is saved
    quit                ends the application
"""

import ctypes
import json
import os
import pathlib
import sys
import time
import warnings

import gi

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "Protocol/examples/gtk"))
warnings.simplefilter("error", gi.PyGIWarning)
import mail  # noqa: E402  # first, because a namespace that is loaded already gives no warning

gi.require_version("GdkX11", "4.0")
from gi.repository import GLib, GdkX11  # noqa: E402,F401

PLACES = {"Window-1": (0, 0), "Window-2": (700, 0), "Window-3": (0, 600), "Palette": (700, 600)}

x11 = ctypes.CDLL("libX11.so.6")
x11.XOpenDisplay.restype = ctypes.c_void_p
x11.XMoveWindow.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_int]
x11.XCloseDisplay.argtypes = [ctypes.c_void_p]

application = mail.application(sys.argv[1])


def ask(*_):
    answer("restoring")
    os.read(0, 100)


if "asking" in sys.argv[2:]:
    application.connect("restore-state", ask)
    application.connect("restore-window", ask)


def named():
    """The windows by the names that the broker knows them by."""
    return {each.get_property("restoration-identifier"): each for each in application.get_windows()}


def window(number):
    return named()[f"Window-{number}"]


def show():
    display = x11.XOpenDisplay(None)
    shown = {"session-id": application.get_property("session-id"), "opened": getattr(application, "opened", None)}
    for name, each in named().items():
        x11.XMoveWindow(display, each.get_surface().get_xid(), *PLACES.get(name, (0, 0)))
        shown[name] = {"size": [each.get_width(), each.get_height()]}
        if name == "Palette":
            shown[name]["zoom"] = each.zoom.get_value()
        else:
            shown[name]["letter"] = each.selection.get_selected_item().get_string()
            shown[name]["pane"] = each.panes.get_position()
    x11.XCloseDisplay(display)
    return shown


def ticks(count):
    times, used = [time.monotonic()], time.process_time()

    def tick():
        times.append(time.monotonic())
        if len(times) <= count:
            return True
        longest = max(after - before for before, after in zip(times, times[1:]))
        answer([longest * 1000, (time.process_time() - used) / (times[-1] - times[0])])
        return False

    GLib.timeout_add(10, tick)


def obey(words):
    what, *arguments = words
    numbers = [float(each) if "." in each else int(each) for each in arguments]
    if what == "new":
        application.open_window()
    elif what == "select":
        window(numbers[0]).selection.set_selected(numbers[1])
    elif what == "pane":
        window(numbers[0]).panes.set_position(numbers[1])
    elif what == "zoom":
        application.get_windows()[0].zoom.set_value(numbers[0])
    elif what == "close":
        window(numbers[0]).close()
    elif what == "show":
        return show()
    elif what == "flash":
        before = application.get_windows()
        application.open_window()
        next(each for each in application.get_windows() if each not in before).close()
        application.quit()
    elif what == "save":
        application.save()
    elif what == "forget":
        application.forget()
    elif what == "quit":
        application.quit()
    return None


def answer(what):
    print(json.dumps(what), flush=True)


def fail(*error):
    sys.__excepthook__(*error)
    os._exit(1)


sys.excepthook = fail  # also in callbacks, which GLib would outlive


def read(channel, _condition):
    words = channel.readline().split()
    if not words:
        return False
    if words[0] == "ticks":
        ticks(int(words[1]))
    else:
        answer(obey(words))
    return True


GLib.io_add_watch(GLib.IOChannel.unix_new(0), GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN | GLib.IOCondition.HUP, read)
sys.exit(application.run())
