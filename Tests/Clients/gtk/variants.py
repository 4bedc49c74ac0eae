# SPDX-License-Identifier: Apache-2.0
"""Random a{sv} go through the GTK module and back: variants.py COUNT SEED

Reads and writes them as JSON, and saves and restores them as states of windows with the broker of the environment.
Prints how many came back, and how many of the values were plain JSON.
"""

import json
import random
import sys

import gi

gi.require_version("RestorationGtk", "1")
from gi.repository import Gio, GLib, RestorationGtk  # noqa: E402

APPLICATION = "org.example.Variants"
TEXTS = ["", "a", "Grüße", "𝒳😀", "\u2028\u0001\x7f\"\\'", "$variant", "$restorable", "$literal",
         "uint32 5", "UIStateRestorationX"]
INTEGERS = [0, 1, -1, 127, 255, 2**15 - 1, 2**31 - 1, -2**31, 2**31, -2**63, 2**63 - 1]
REALS = ["0x0000000000000000", "0x8000000000000000", "0x7ff0000000000000", "0x7ff8000000000001", "0x0000000000000001",
         "0x3fb999999999999a", "0x7fefffffffffffff", "0x4340000000000000"]
BITS = {"y": (0, 8), "n": (-15, 16), "q": (0, 16), "i": (-31, 32), "u": (0, 32), "x": (-63, 64), "t": (0, 64)}


def real(chance):
    bits = int(chance.choice(REALS), 16) if chance.random() < 0.5 else chance.getrandbits(64)
    return GLib.Variant.new_from_bytes(
        GLib.VariantType("d"), GLib.Bytes(bits.to_bytes(8, sys.byteorder)), True)


def text(chance):
    return chance.choice(TEXTS) + chance.choice(TEXTS)


def basic(chance, kind):
    if kind == "b":
        return GLib.Variant("b", chance.random() < 0.5)
    if kind == "d":
        return real(chance)
    if kind == "s":
        return GLib.Variant("s", text(chance))
    if kind == "o":
        return GLib.Variant("o", chance.choice(["/", "/a/b_1"]))
    if kind == "g":
        return GLib.Variant("g", chance.choice(["", "a{sv}", "(iu)"]))
    low, width = BITS[kind]
    least, most = (0, 2**width - 1) if low == 0 else (-2**(width - 1), 2**(width - 1) - 1)
    number = chance.choice(INTEGERS) if chance.random() < 0.6 else chance.getrandbits(63) - 2**62
    return GLib.Variant(kind, max(least, min(most, number)))


def value(chance, depth):
    """Of any type that a state may have."""
    kind = chance.choice("sssiiidbbynquxtog" + ("avvmtd" * 2 if depth < 4 else ""))
    roll = chance.random() if depth < 4 else 1
    if roll < 0.15:
        return dictionary(chance, depth + 1)
    if roll < 0.3:  # an array of a basic type, also an empty one
        element = chance.choice("sixdbynquto")
        return GLib.Variant.new_array(
            GLib.VariantType(element), [basic(chance, element) for _ in range(chance.randrange(4))])
    if roll < 0.4:
        return GLib.Variant.new_array(
            GLib.VariantType("v"),
            [GLib.Variant.new_variant(value(chance, depth + 1)) for _ in range(chance.randrange(4))])
    if roll < 0.45:
        return GLib.Variant.new_array(
            GLib.VariantType("a{sv}"), [dictionary(chance, depth + 1) for _ in range(chance.randrange(3))])
    if roll < 0.5:
        return GLib.Variant.new_tuple(*[value(chance, depth + 1) for _ in range(chance.randrange(3))])
    if roll < 0.55:
        return GLib.Variant.new_variant(value(chance, depth + 1))
    if roll < 0.6:
        inner = value(chance, depth + 1)
        return GLib.Variant.new_maybe(inner.get_type(), inner if chance.random() < 0.5 else None)
    if roll < 0.63:
        return GLib.Variant.new_maybe(GLib.VariantType("v"), None)
    return basic(chance, kind if kind in "sidbynquxtog" else "s")


def dictionary(chance, depth=0):
    entries = [
        GLib.Variant.new_dict_entry(
            GLib.Variant("s", text(chance)), GLib.Variant.new_variant(value(chance, depth)))
        for _ in range(chance.randrange(6))]  # keys may be there twice
    return GLib.Variant.new_array(GLib.VariantType("{sv}"), entries)


def plain(json_value):
    """The values in JSON that are plain, and all."""
    if isinstance(json_value, dict):
        if list(json_value) == ["$variant"]:
            return 0, 1
        counts = [plain(each) for each in json_value.values()]
    elif isinstance(json_value, list):
        counts = [plain(each) for each in json_value]
    else:
        return 1, 1
    return sum(each[0] for each in counts), sum(each[1] for each in counts)


def through_json(states):
    plains = alls = 0
    for state in states:
        written = RestorationGtk.state_to_json(state)
        read = RestorationGtk.state_from_json(written)
        assert read.equal(state), f"{state.print_(True)}\n{written}\n{read.print_(True)}"
        ones, all_values = plain(json.loads(written))
        plains, alls = plains + ones, alls + all_values
    return plains, alls


def run(restored, make=None):
    """One run of an application; `make` gives the states of its windows."""
    application = RestorationGtk.Application(
        flags=Gio.ApplicationFlags.NON_UNIQUE, restoration_application=APPLICATION)

    def open_window(state):
        def save(_window, saved):
            saved.insert_value("all", state)
            return False

        RestorationGtk.ApplicationWindow(application=application).connect("save-state", save)

    def restore_window(_application, _reason, state):
        kept = state.lookup_value("all", None)
        restored.append(kept)
        open_window(kept)

    application.connect("restore-window", restore_window)
    application.connect("activate", lambda _: [open_window(state) for state in make or []])
    application.connect("activate", lambda _: GLib.idle_add(application.quit))  # the end saves, and says goodbye
    assert application.run() == 0


def through_the_broker(states, per_window):
    boxed = [GLib.Variant.new_variant(state) for state in states]
    arrays = [
        GLib.Variant.new_array(GLib.VariantType("v"), boxed[at:at + per_window])
        for at in range(0, len(boxed), per_window)]
    run([], arrays)
    restored = []
    run(restored)
    back = [each.get_child_value(at).get_variant() for each in reversed(restored) for at in range(each.n_children())]
    assert len(back) == len(states), f"{len(back)} of {len(states)} states came back"
    for state, found in zip(states, back):
        assert found.equal(state), f"{state.print_(True)}\n{found.print_(True)}"
    return len(back)


def resident():
    """The kilobytes of memory that this process has."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def keeps_no_memory():
    picture = GLib.Variant.new_from_bytes(GLib.VariantType("ay"), GLib.Bytes(bytes(1 << 14)), True)
    entry = GLib.Variant.new_dict_entry(GLib.Variant("s", "picture"), GLib.Variant.new_variant(picture))
    state = GLib.Variant.new_array(GLib.VariantType("{sv}"), [entry])

    def go(times):
        for _ in range(times):
            RestorationGtk.state_from_json(RestorationGtk.state_to_json(state))
        return resident()

    growth = -go(20) + go(100)
    assert growth < 1 << 10, f"100 states of 16 KiB were read and written, and {growth} KiB stay"


def main(count, seed):
    keeps_no_memory()
    chance = random.Random(seed)
    states = [dictionary(chance) for _ in range(count)]
    plains, alls = through_json(states)
    print(f"{through_the_broker(states, 50)} of {count} came back; {plains} of {alls} values were plain JSON")


main(int(sys.argv[1]), int(sys.argv[2]))
