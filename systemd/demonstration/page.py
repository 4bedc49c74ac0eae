# SPDX-License-Identifier: Apache-2.0
"""What the demonstration prints: 80 columns, colour on terminals that want it."""

import os
import sys
import textwrap

WIDTH = 80
INDENT = "   "


def wants_colour():
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


class Page:
    def __init__(self):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)
        self.colour = wants_colour()
        self.printed = []

    def title(self, text):
        self._print(text, 1)

    def heading(self, text):
        self._print("")
        self._print(text, 1)

    def say(self, text):
        self._print(textwrap.fill(text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT))

    def lines(self, lines, code=None):
        """Lines as they are, cut where they are too long."""
        for line in lines:
            line = (INDENT + line).rstrip()
            self._print(line if len(line) <= WIDTH else line[:WIDTH - 3] + "...", code)

    def table(self, header, rows):
        """Numbers to the right, text to the left."""
        rows = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(header, *rows)]
        right = [all(cell.replace(",", "").isdigit() for cell in column) for column in zip(*rows)]
        for row in [header, *rows]:
            cells = [cell.rjust(width) if numeric else cell.ljust(width)
                     for cell, width, numeric in zip(row, widths, right)]
            self.lines(["  ".join(cells).rstrip()])

    def command(self, text):
        self.lines(["$ " + text], 1)

    def complaint(self, text):
        self.lines([text], 31)

    def verdict(self, text, good):
        self._print("")
        self._print(text, 32 if good else 31)

    def _print(self, text, code=None):
        self.printed.append(text)
        print(f"\033[{code}m{text}\033[0m" if self.colour and code is not None else text)
