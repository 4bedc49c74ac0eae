# SPDX-License-Identifier: Apache-2.0
"""The mail reader of Protocol/examples/gtk under Xvfb: sample.py BROKER DIRECTORY

Kills it with the broker, starts all again, and compares what its windows have, the pixels of the screen, and the
broker's tree. Exits with 0 if all came back.
"""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "loops"), str(HERE.parents[2] / "Protocol/clients/python")]
import restorationd  # noqa: E402
from broker import Broker  # noqa: E402

APPLICATION = "org.example.Mail"
COLOURS = {"c01c28": 0, "26a269": 1, "1a5fb4": 2, "613583": 3}
LONGEST_TURN = 900  # milliseconds; the machine may be busy, and a call to a frozen broker would take a second
BUSIEST = 0.3  # of a processor, of a loop that has nothing to do


running = []


class Screen:
    """An X server that keeps its screen in a file."""

    def __init__(self, directory):
        self.file = pathlib.Path(directory, "Xvfb_screen0")
        reading, writing = os.pipe()
        self.process = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1280x1024x24", "-nolisten", "tcp", "-fbdir",
             directory],
            pass_fds=[writing], stderr=subprocess.DEVNULL)
        os.close(writing)
        with os.fdopen(reading) as number:
            self.display = f":{number.readline().strip()}"

    def boxes(self):
        """For each colour of a letter the smallest box that has it on the screen: left, top, right, bottom."""
        data = self.file.read_bytes()
        header = struct.unpack(">25I", data[:100])
        size, width, height, line, colours = header[0], header[4], header[5], header[12], header[19]
        start = size + colours * 12
        found = {}
        for name in COLOURS:
            pixel = bytes(reversed(bytes.fromhex(name)))
            for y in range(height):
                row = data[start + y * line:start + (y + 1) * line]
                columns = [at // 4 for at in occurrences(row, pixel) if at % 4 == 0]
                if columns:
                    left, top, right, _ = found.get(name, (width, y, 0, y))
                    found[name] = (min(left, columns[0]), top, max(right, columns[-1]), y)
        return found


def occurrences(row, pixel):
    at = row.find(pixel)
    while at >= 0:
        yield at
        at = row.find(pixel, at + 1)


class Process:
    """A process of the sample, which obeys."""

    def __init__(self, environment, *arguments):
        self.child = subprocess.Popen(
            ["/usr/bin/python3", "-B", str(HERE / "driven.py"), *arguments], env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)

    def __call__(self, command):
        self.say(command)
        return self.hear(command)

    def say(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def hear(self, command):
        answer = self.child.stdout.readline()
        if not answer:
            raise AssertionError(f"{command} was not answered")
        return json.loads(answer)

    def kill(self):
        self.child.kill()
        self.child.wait()


def until(what, condition):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        for each in running:
            each("ticks 2")  # a pause, in which they go on
    raise AssertionError(f"not reached: {what}")


def settled(screen, processes, is_right):
    """What all windows have, and the boxes on the screen, once they are right and three looks at them are equal."""
    def look():
        shown = {}
        for each in processes:
            each("ticks 10")
            shown.update({key: value for key, value in each("show").items() if key not in shown or value})
        return shown, screen.boxes()

    looks, end = [look(), look()], time.monotonic() + 30
    while time.monotonic() < end:
        looks.append(look())
        if looks[-3] == looks[-2] == looks[-1] and is_right(*looks[-1]):
            return looks[-1]
    raise AssertionError(f"the screen does not become right: {looks[-2:]}")


def tree(socket):
    """The paths of the application with their processes and states, from the broker.

    What is closed between two calls cannot be asked for in the second one: one call reads all the states.
    """
    with restorationd.Session(APPLICATION, process="test", socket=socket) as session:
        owners = {
            "/".join(each["path"]): (each["process"], each["pid"])
            for each in session.call("describeApplication")["objects"] if each["path"]}
        return {
            path: (*owners.get(path, (None, None)), each["state"])
            for each in session.call("readArchive")["objects"] for path in ["/".join(each["path"])]}


def letter_of(socket, path):
    """The letter that is saved of a window, or None."""
    return ((tree(socket).get(path) or (None, None, None))[2] or {}).get("state", {}).get("letter")


def main(program, directory):
    screen, broker = Screen(directory), Broker(program, directory)
    environment = {
        **os.environ, "DISPLAY": screen.display, "RESTORATIOND_SOCKET": broker.socket, "GDK_BACKEND": "x11",
        "GSK_RENDERER": "cairo", "RESTORATION_APPLICATION": APPLICATION, "DBUS_SESSION_BUS_ADDRESS": "disabled:",
        "MALLOC_PERTURB_": "165"}  # memory that was freed reads as something else

    def start():
        # The palette may come first: its window waits for its parent, and its loop goes on.
        running[:] = [Process(environment, name) for name in ("palette", "list")]
        return running

    def quit_all():
        for each in running:
            each("quit")
        assert [each.child.wait(20) for each in running] == [0, 0]

    def is_empty():
        return not any(state for _, _, state in tree(broker.socket).values())

    def end():
        for each in running:
            each.kill()
        running.clear()

    try:
        palette, mail = start()
        mail("new")
        for command in ("select 1 6", "pane 1 150", "select 2 3", "pane 2 220"):
            mail(command)
        palette("zoom 7.25")
        # Letter 7 has the third colour, letter 4 the fourth; each begins where the divider is.
        shown, boxes = settled(
            screen, running, lambda _, boxes: set(boxes) == {"1a5fb4", "613583"}
            and boxes["613583"][0] - 700 - (boxes["1a5fb4"][0] - 0) == 220 - 150)
        assert shown["Window-1"]["letter"] == "Letter 7" and shown["Window-1"]["pane"] == 150, shown
        assert shown["Window-2"]["letter"] == "Letter 4" and shown["Window-2"]["pane"] == 220, shown
        assert shown["Palette"]["zoom"] == 7.25 and shown["session-id"] and shown["opened"] == 2, shown

        def is_saved():
            found = tree(broker.socket)
            states = {path: each[2]["state"] for path, each in found.items() if each[2]}
            return found if states == {
                "list": {"opened": 2}, "palette": {}, "list/Window-1/Palette": {"zoom": 7.25},
                "list/Window-1": {"letter": "Letter 7", "pane": 150},
                "list/Window-2": {"letter": "Letter 4", "pane": 220}} else None

        before = until("all is saved", is_saved)
        assert {path: each[:2] for path, each in before.items()} == {
            "list": ("list", mail.child.pid), "list/Window-1": ("list", mail.child.pid),
            "list/Window-2": ("list", mail.child.pid), "palette": ("palette", palette.child.pid),
            "list/Window-1/Palette": ("palette", palette.child.pid)}, before

        # Everything is killed at once, and comes back, even if the broker is killed again before each window.
        broker.signal(signal.SIGKILL)
        end()
        until("the windows are gone", lambda: not screen.boxes())
        broker.start()
        mail = Process(environment, "list", "asking")
        running[:] = [mail]
        for _ in range(3):
            assert mail.hear("restore") == "restoring"
            broker.signal(signal.SIGKILL)
            broker.start()
            mail.say("go on")
        palette = Process(environment, "palette")
        running[:] = [palette, mail]
        settled(screen, running, lambda *look: look == (shown, boxes))
        after = until("all is saved", is_saved)
        for path, (_, _, state) in before.items():
            # The order of windows is that of their last use, which begins anew.
            state["windows"] = sorted(state.get("windows", []))
            after[path][2]["windows"] = sorted(after[path][2].get("windows", []))
            assert after[path][2] == state, (path, after[path][2], state)

        # A loop with nothing to do sleeps, with a broker and without.
        turns = [mail("ticks 100")]

        # A broker that is frozen, killed and back holds no loop up, and gets what it has missed.
        broker.signal(signal.SIGSTOP)
        mail("select 1 10")
        turns.append(mail("ticks 100"))
        broker.signal(signal.SIGKILL)
        mail("select 1 11")
        turns.append(mail("ticks 100"))
        broker.start()
        until("it is saved", lambda: letter_of(broker.socket, "list/Window-1") == "Letter 12")
        turns.append(mail("ticks 100"))
        longest, busy = zip(*turns)
        print("of a processor were used", *(f"{each:.0%}" for each in busy))
        assert max(busy) < BUSIEST, busy
        print("the longest turns took", *(f"{each:.0f}" for each in longest), "ms")
        assert max(longest) < LONGEST_TURN, longest

        # A window that is closed before the broker has answered takes no other one along.
        broker.signal(signal.SIGSTOP)
        mail("new"), mail("close 3"), mail("new")
        broker.signal(signal.SIGCONT)
        windows = {"list/Window-1", "list/Window-2", "list/Window-4"}
        until("it is saved", lambda: windows == {
            path for path, each in tree(broker.socket).items() if path.count("/") == 1 and each[2]})
        mail("close 4")

        # A window that is closed does not come back, even if the broker was away; the others do after a good end.
        broker.signal(signal.SIGKILL)
        mail("close 2"), mail("ticks 5")
        broker.start()
        until("it is closed", lambda: "list/Window-2" not in tree(broker.socket))
        quit_all()
        palette, mail = start()
        shown, _ = settled(screen, running, lambda shown, _: {"Window-1", "Palette"} <= set(shown))
        assert "Window-2" not in shown and shown["Window-1"]["letter"] == "Letter 12", shown

        # Nothing comes back after it was forgotten, even if the broker was away, until something is saved again.
        broker.signal(signal.SIGKILL)
        mail("forget"), mail("pane 1 200"), mail("ticks 5")
        broker.start()
        until("all is forgotten", is_empty)
        mail("pane 1 210"), mail("ticks 5")
        assert is_empty()
        mail("save")
        until("it is saved", lambda: letter_of(broker.socket, "list/Window-1") == "Letter 12")

        # The broker comes back a moment before the processes end: it still learns what it has missed.
        broker.signal(signal.SIGKILL)
        mail("forget"), mail("ticks 100")
        broker.start()
        quit_all()
        assert is_empty(), tree(broker.socket)
        palette, mail = start()
        settled(screen, [mail], lambda shown, _: shown["Window-1"]["letter"] == "Letter 1" and shown["opened"] == 1)

        # A window that the end overtakes leaves nothing.
        mail("flash")
        assert mail.child.wait(20) == 0
        assert "list/Window-2" not in tree(broker.socket), tree(broker.socket)
        print("all came back")
    finally:
        end()
        broker.signal(signal.SIGKILL)
        screen.process.kill()
        screen.process.wait()


main(*sys.argv[1:])
