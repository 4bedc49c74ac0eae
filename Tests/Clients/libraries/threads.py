#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads that share a session of Protocol/clients/python: threads.py SCENARIO SOCKET

Each function at the end is a scenario. It ends with status 0 when all went as it should.
"""

import asyncio
import sys
import threading

import restoration

APPLICATION = "org.example.Notes"


class Running(threading.Thread):
    """Does something in a thread; `outcome()` waits for its result, or the name of its exception."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work = work
        self.start()

    def run(self):
        try:
            self.result = self.work()
        except Exception as error:
            self.result = type(error).__name__

    def outcome(self):
        self.join()
        return self.result


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def stays_in_its_loop(socket):
    session = restoration.AsyncSession(APPLICATION, socket=socket)
    home = asyncio.new_event_loop()
    Running(home.run_forever)

    def at_home(work):
        return asyncio.run_coroutine_threadsafe(work, home).result()

    at_home(session.open())
    editor = at_home(session.register("Editor"))

    async def elsewhere():
        calls = [lambda: editor.encode({"count": number}) for number in range(50)]
        calls += [lambda: editor.encode_later({}), session.open, session.serve, session.close,
                  lambda: session.goodbye("closed")]
        outcomes = await asyncio.wait_for(asyncio.gather(*(call() for call in calls), return_exceptions=True), 20)
        return {type(outcome).__name__ for outcome in outcomes}

    equal(asyncio.run(elsewhere()), {"RuntimeError"})
    equal(at_home(editor.encode({"count": 50})), True)
    at_home(session.goodbye("restart"))
    at_home(session.close())
    asyncio.run(session.close())  # as often as one likes
    home.call_soon_threadsafe(home.stop)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
