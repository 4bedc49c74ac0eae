# SPDX-License-Identifier: Apache-2.0
"""A session in the event loop of a toolkit: loops.py glib|pyside|pyqt BROKER DIRECTORY

Starts a broker in the directory, and freezes and kills it while a timer of the toolkit ticks. Exits with 0 if all was
saved and the longest time between two ticks stayed short.
"""

import asyncio
import signal
import sys
import threading
import time

import restoration
from broker import Broker
from restorationd_loops import HostedLoop, glib, qt

APPLICATION = "org.example.Loops"
TICK = 0.01  # seconds
GAP = 0.5  # the longest time between two ticks; the machine may be busy


class Toolkit:
    """`every` calls back each TICK, `run` returns after `quit`."""

    def __init__(self, name: str) -> None:
        if name == "glib":
            from gi.repository import GLib

            main = GLib.MainLoop()
            self.run, self.quit = main.run, main.quit
            self.every = lambda tick: GLib.timeout_add(int(TICK * 1000), lambda: (tick(), True)[1])
            self.loop: HostedLoop = glib()
        else:
            if name == "pyside":
                from PySide2 import QtCore
            else:
                from PyQt6 import QtCore
            self.application = QtCore.QCoreApplication([])
            self.run = getattr(self.application, "exec", None) or self.application.exec_
            self.quit = self.application.quit
            self.timer = QtCore.QTimer()
            self.every = lambda tick: (self.timer.timeout.connect(tick), self.timer.start(int(TICK * 1000)))
            self.loop = qt()


async def other(work):
    """A function that blocks, beside the loop."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


async def work(broker: Broker) -> None:
    thread = threading.current_thread()
    text, asked, connected = "one", asyncio.Event(), asyncio.Event()

    def encode():
        assert threading.current_thread() is thread
        asked.set()
        return {"text": text}

    session = restoration.AsyncSession(
        APPLICATION, process="window", socket=broker.socket, on_reconnected=lambda same: connected.set())
    async with session:
        window = await session.register("Main", encode=encode)
        assert not await window.decode()
        await window.invalidate()
        await asyncio.wait_for(asked.wait(), 20)
        await window.encode({"text": "two"})
        assert (await session.call("decodeRestorableState", {"object": window.handle}))["state"] == {"text": "two"}

        # Nothing is answered: the coroutine waits, and the loop does not.
        broker.signal(signal.SIGSTOP)
        text, pushed = "three", asyncio.ensure_future(window.encode({"text": "three"}))
        done, _ = await asyncio.wait([pushed], timeout=1)
        assert not done
        broker.signal(signal.SIGCONT)
        assert await pushed

        # The broker is gone for longer than a call would take, and back.
        broker.signal(signal.SIGKILL)
        text, pushed = "four", asyncio.ensure_future(window.encode({"text": "four"}))
        done, _ = await asyncio.wait([pushed], timeout=1)
        assert not done
        await other(broker.start)
        assert await pushed and await asyncio.wait_for(connected.wait(), 20) is True
        asked.clear()
        assert (await session.save())["saved"] and asked.is_set()
        assert (await session.call("decodeRestorableState", {"object": window.handle}))["state"] == {"text": "four"}


def main(name: str, program: str, directory: str) -> None:
    toolkit, broker, ticks, last = Toolkit(name), Broker(program, directory), [], []
    try:
        def tick() -> None:
            now = time.monotonic()
            ticks.append(now - last[-1] if last else 0)
            last[:] = [now]

        task = toolkit.loop.start(work(broker))
        task.add_done_callback(lambda _: toolkit.quit())
        toolkit.every(tick)
        toolkit.run()
        task.result()
        toolkit.loop.close()
        print(f"{len(ticks)} ticks, at most {max(ticks) * 1000:.0f} ms apart")
        assert len(ticks) > 50 and max(ticks) < GAP, max(ticks)
    finally:
        broker.signal(signal.SIGKILL)


main(*sys.argv[1:])
