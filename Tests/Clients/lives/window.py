#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program with windows, as people write one with Protocol/clients/python: window.py ROLE [OPTION...]

It has one window, which is named after its role. That is blank at first, and shows what is saved as soon as it is given
that. What it shows is saved when it is there, and when a line is typed, which it shows then. The end of the input ends
the program. Prints a line for each event: "open", "shows TEXT", "cannot read TEXT", "ready" when all is restored,
"restored" when it has restored the application, and "saved TEXT".

  --main        restores the application when its window is there
  --declines    the user declines the saved state
  --saves       saves the application before it restores it
  --unreadable  is of another version, which cannot read the saved state
"""

import asyncio
import sys

import restorationd

APPLICATION = "org.example.Notes"


class User(restorationd.Delegate):
    def should_restore(self, state, coder):
        return False


class Window:
    text = ""

    def __init__(self, is_readable):
        self.is_readable = is_readable

    def encode(self):
        return {"text": self.text}

    def decode(self, saved):
        if not self.is_readable:
            print("cannot read", saved["text"])
            raise ValueError("of another version")
        self.text = saved["text"]
        print("shows", self.text)

    def finished(self):
        print("ready")


async def main(role, *options):
    reader, loop = asyncio.StreamReader(), asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    window, user = Window("--unreadable" not in options), User() if "--declines" in options else None
    async with restorationd.AsyncSession(APPLICATION, process=role, delegate=user) as session:
        saved = await session.register(role, encode=window.encode, decode=window.decode, finished=window.finished)
        await saved.encode(window.encode())
        print("open")
        if "--saves" in options:
            await session.save()
        if "--main" in options:
            await session.restore()
            print("restored")
        async for line in reader:
            window.text = line.decode().rstrip("\n")
            await saved.encode(window.encode())
            print("saved", window.text)


sys.stdout.reconfigure(line_buffering=True)
asyncio.run(main(*sys.argv[1:]))
