# SPDX-License-Identifier: Apache-2.0
"""asyncio inside the event loop of GLib or Qt, so that an AsyncSession serves in a program with windows.

    from restorationd.loops import glib             # or qt

    loop = glib()
    task = loop.start(restore_windows())            # a coroutine function of the program, which opens an AsyncSession

The toolkit's loop runs as ever. Coroutines and callbacks of the session run in its thread, and nothing blocks it.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import sys
from typing import Any, Callable, Coroutine, List, Optional, Set, Tuple, TypeVar

__all__ = ["HostedLoop", "glib", "qt"]

_T = TypeVar("_T")
_TURNS = 100  # of asyncio, before the toolkit has its own turn


class _Idle(Exception):
    """asyncio would wait; `args[0]` are the seconds until its next timer, or None."""


class _Selector(selectors.EpollSelector):
    is_hosted = True
    turns = 0

    def select(self, timeout: Optional[float] = None) -> List[Tuple[selectors.SelectorKey, int]]:
        if not self.is_hosted:
            return super().select(timeout)
        self.turns += 1
        if self.turns > _TURNS:
            raise _Idle(0)
        events = super().select(0)
        if not events and (timeout is None or timeout > 0):
            raise _Idle(timeout)
        return events


class _Loop(asyncio.SelectorEventLoop):
    """What is scheduled between two steps, as by a handler of the toolkit, makes the descriptor readable."""

    def call_soon(self, *arguments: Any, **context: Any) -> asyncio.Handle:  # type: ignore[override,unused-ignore]
        schedule = super().call_soon if self.is_running() else super().call_soon_threadsafe
        return schedule(*arguments, **context)

    def call_at(self, *arguments: Any, **context: Any) -> asyncio.TimerHandle:  # type: ignore[override,unused-ignore]
        timer = super().call_at(*arguments, **context)
        if not self.is_running():
            self.call_soon(lambda: None)  # that step returns the seconds until then
        return timer


class HostedLoop:
    """An asyncio loop that another loop drives: it calls `step` if `fileno()` is readable, and after the seconds that
    the last `step` has returned. For GLib and Qt, `glib` and `qt` do so.
    """

    def __init__(self) -> None:
        self._selector = _Selector()
        self.asyncio: asyncio.SelectorEventLoop = _Loop(self._selector)
        self.unhook: Callable[[], Any] = lambda: None  # ends the calls of `step`
        self._tasks: Set["asyncio.Task[Any]"] = set()

    def fileno(self) -> int:
        return self._selector.fileno()

    def start(self, work: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """Has a coroutine run, from the thread of the loop. An exception is logged at once, by the logger `asyncio`."""
        task = self.asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):  # others are raised by `step`
            name = getattr(task.get_coro(), "__qualname__", "a coroutine")
            self.asyncio.call_exception_handler({"message": f"{name} failed", "exception": error, "task": task})

    def step(self) -> Optional[float]:
        """Does what can be done without waiting. Returns the seconds after which it is to be called again, or None.

        A SystemExit or KeyboardInterrupt of a coroutine is raised; the step is then to be called again at once.
        """
        if self.asyncio.is_closed() or self.asyncio.is_running():
            return None
        self._selector.turns = 0
        try:
            self.asyncio.run_forever()
        except _Idle as idle:
            seconds: Optional[float] = idle.args[0]
            return seconds
        return 0  # something has stopped the asyncio loop; it goes on

    def close(self) -> None:
        """Cancels what `start` has started, and a second later what has not ended. Then the loop ends.

        An `async with` block of a session says goodbye when it is cancelled. RuntimeError from a callback of the loop.
        """
        if self.asyncio.is_running():
            raise RuntimeError("close() in a callback or coroutine of the loop; call it after the toolkit's own loop")
        self.unhook()
        self._selector.is_hosted = False  # from here on it waits
        try:
            self._cancel(set(self._tasks))
            self._cancel(asyncio.all_tasks(self.asyncio))  # those of sessions, without which there is no goodbye
        finally:
            self.asyncio.close()

    def _cancel(self, tasks: Set["asyncio.Task[Any]"]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            self.asyncio.run_until_complete(asyncio.wait(tasks, timeout=1))


def glib() -> HostedLoop:
    """In the main context of GLib, with PyGObject, for GTK and others."""
    from gi.repository import GLib  # type: ignore[import-not-found,import-untyped,unused-ignore]

    loop = HostedLoop()

    class Source(GLib.Source):  # type: ignore[misc]
        def prepare(self) -> Tuple[bool, int]:
            return False, -1

        def check(self) -> bool:  # GLib itself looks at the descriptor and the time
            return False

        def dispatch(self, callback: Any, arguments: Any) -> bool:
            seconds: Optional[float] = 0
            try:
                seconds = loop.step()
            except KeyboardInterrupt:  # GLib would remove the source
                sys.excepthook(*sys.exc_info())
            self.set_ready_time(-1 if seconds is None else GLib.get_monotonic_time() + math.ceil(seconds * 1e6))
            return True

    source = Source()
    source.add_unix_fd(loop.fileno(), GLib.IOCondition.IN)
    source.attach()
    loop.unhook = source.destroy
    return loop


def qt() -> HostedLoop:
    """In the thread of a QCoreApplication, with the PySide or PyQt that the program has imported."""
    names = [f"{binding}.QtCore" for binding in ("PySide6", "PyQt6", "PySide2", "PyQt5")]
    core: Any = next((sys.modules[name] for name in names if name in sys.modules), None)
    if core is None:
        raise ImportError(f"import one of {', '.join(names)} before")
    loop = HostedLoop()
    kinds = getattr(core.QSocketNotifier, "Type", core.QSocketNotifier)
    notifier, timer = core.QSocketNotifier(loop.fileno(), kinds.Read), core.QTimer()
    timer.setSingleShot(True)

    def step(*_: Any) -> None:
        if loop.asyncio.is_running():  # a callback runs a loop of its own
            return
        notifier.setEnabled(False)
        seconds: Optional[float] = 0
        try:
            seconds = loop.step()
        finally:
            notifier.setEnabled(True)
            if seconds is not None:
                timer.start(min(math.ceil(seconds * 1000), 1 << 30))

    def unhook() -> None:
        timer.stop()
        notifier.setEnabled(False)

    notifier.activated.connect(step)
    timer.timeout.connect(step)
    loop.unhook = unhook
    return loop
