# SPDX-License-Identifier: Apache-2.0
"""A session in the event loop of a toolkit: loops.py glib|pyside|pyqt BROKER DIRECTORY

Starts a broker in the directory, and freezes and kills it while a timer of the toolkit ticks. Exits with 0 if all was
saved and the longest time between two ticks stayed short, and if handlers of the toolkit wake the loop, nested loops do
not make it busy, exceptions do not stop it, and `close` lets sessions say goodbye.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import sys
import threading
import time
from typing import Iterator, List

import restorationd
from broker import Broker
from restorationd.loops import HostedLoop, glib, qt

APPLICATION = "org.example.Loops"
TICK = 0.01  # seconds
GAP = 0.5  # the longest time between two ticks; the machine may be busy
LIMIT = 20  # seconds for one task


class Toolkit:
    """`every` calls back each TICK, `after` once, `run` returns after `quit`, `nest` runs a second loop for a time."""

    def __init__(self, name: str) -> None:
        if name == "glib":
            from gi.repository import GLib

            main = GLib.MainLoop()
            self.run, self.quit = main.run, main.quit
            self.every = lambda tick: GLib.timeout_add(int(TICK * 1000), lambda: (tick(), True)[1])
            self.after = lambda seconds, call: GLib.timeout_add(int(seconds * 1000), lambda: (call(), False)[1])
            self.host, self.second = glib, GLib.MainLoop
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
            self.after = lambda seconds, call: QtCore.QTimer.singleShot(int(seconds * 1000), call)
            self.host, self.second = qt, QtCore.QEventLoop
        self.loop: HostedLoop = self.host()

    def nest(self, seconds: float) -> None:
        second = self.second()
        self.after(seconds, second.quit)
        (getattr(second, "run", None) or getattr(second, "exec", None) or second.exec_)()

    def until(self, task: "asyncio.Task") -> None:
        ended: list = []
        task.add_done_callback(lambda _: (ended.append(task), self.quit()))
        self.after(LIMIT, lambda: ended or self.quit())  # it may be stuck
        self.run()
        assert ended, task


def handlers_wake(toolkit: Toolkit) -> None:
    """What a handler of the toolkit cancels, sets or schedules is seen although nothing else happens."""
    loop = toolkit.loop
    for act in (
        lambda task, event: task.cancel(),
        lambda task, event: event.set(),
        lambda task, event: loop.asyncio.call_later(TICK, event.set),
    ):
        event = asyncio.Event()
        task = loop.start(event.wait())
        toolkit.after(0.1, lambda: act(task, event))
        toolkit.until(task)


def dialogs_are_idle(toolkit: Toolkit) -> None:
    """While a callback runs a loop of the toolkit, a timer and input of asyncio wait without using the CPU."""
    loop, used = toolkit.loop, []

    async def dialog() -> None:
        loop.asyncio.call_later(0.3, lambda: None)
        await asyncio.sleep(0.2)  # the toolkit has a timer from here on, and wakes for the event before
        await event.wait()
        loop.asyncio.call_soon_threadsafe(lambda: None)
        start = time.process_time()
        toolkit.nest(1)
        used.append(time.process_time() - start)

    event = asyncio.Event()
    toolkit.after(0.25, lambda: loop.asyncio.call_soon_threadsafe(event.set))
    toolkit.until(loop.start(dialog()))
    assert used[0] < 0.1, used


def interrupts_are_reported(toolkit: Toolkit) -> None:
    """A KeyboardInterrupt of a coroutine is reported by the toolkit, and the loop lives on."""
    async def interrupt() -> None:
        raise KeyboardInterrupt

    kinds: list = []
    sys.excepthook = lambda kind, *_: kinds.append(kind)
    task = toolkit.loop.start(interrupt())
    toolkit.until(task)
    sys.excepthook = sys.__excepthook__
    assert isinstance(task.exception(), KeyboardInterrupt)
    assert kinds == [KeyboardInterrupt], kinds


def failures_are_logged_at_once(toolkit: Toolkit) -> None:
    """An exception of a coroutine is logged while the program runs, once, also if somebody has the task."""
    async def fail() -> None:
        raise KeyError("duplicatePath")

    with logged() as messages:
        task = toolkit.loop.start(fail())
        toolkit.until(task)
        [message] = messages
        assert "fail failed" in message and "KeyError: 'duplicatePath'" in message, message
        del task
        gc.collect()
        assert messages == [message], messages


@contextlib.contextmanager
def logged() -> Iterator[List[str]]:
    """What asyncio logs meanwhile."""
    messages: List[str] = []
    log = logging.Handler()
    log.emit = lambda record: messages.append(log.format(record))  # type: ignore[method-assign]
    logging.getLogger("asyncio").addHandler(log)
    yield messages
    logging.getLogger("asyncio").removeHandler(log)


def closing_says_goodbye(toolkit: Toolkit, broker: Broker) -> None:
    """`close` ends every task, at once if the broker answers and soon if not. A callback cannot close its loop."""
    answered: list = []

    class Session(restorationd.AsyncSession):
        async def goodbye(self, reason):
            await super().goodbye(reason)
            answered.append(reason)

    async def stay(opened: asyncio.Event) -> None:
        async with Session(APPLICATION, process="block", socket=broker.socket):
            opened.set()
            await asyncio.Event().wait()

    async def begin() -> None:
        try:
            toolkit.loop.close()
        except RuntimeError as error:
            assert "toolkit" in str(error), error
        else:
            raise AssertionError("a coroutine has closed its loop")
        await Session(APPLICATION, process="open", socket=broker.socket).open()
        opened = asyncio.Event()
        toolkit.loop.start(stay(opened))
        await opened.wait()

    for number, expected, limit in ((signal.SIGCONT, ["restart"], 0.9), (signal.SIGSTOP, [], 2.5)):
        with logged() as problems:
            task = toolkit.loop.start(begin())
            toolkit.until(task)
            task.result()
            broker.signal(number)
            start = time.monotonic()
            toolkit.loop.close()
            assert time.monotonic() - start < limit, time.monotonic() - start
            assert answered == expected, answered
            del task
            gc.collect()
            assert not problems, problems
        answered.clear()
        toolkit.loop = toolkit.host()
    broker.signal(signal.SIGCONT)


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

    session = restorationd.AsyncSession(
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
        handlers_wake(toolkit)
        dialogs_are_idle(toolkit)
        interrupts_are_reported(toolkit)
        failures_are_logged_at_once(toolkit)
        closing_says_goodbye(toolkit, broker)

        def tick() -> None:
            now = time.monotonic()
            ticks.append(now - last[-1] if last else 0)
            last[:] = [now]

        task = toolkit.loop.start(work(broker))
        toolkit.every(tick)
        toolkit.until(task)
        task.result()
        toolkit.loop.close()
        print(f"{len(ticks)} ticks, at most {max(ticks) * 1000:.0f} ms apart")
        assert len(ticks) > 50 and max(ticks) < GAP, max(ticks)
    finally:
        broker.signal(signal.SIGKILL)


main(*sys.argv[1:])
