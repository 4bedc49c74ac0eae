# SPDX-License-Identifier: Apache-2.0
"""The programs restorationd and restorationctl, as they come with this package."""

import os
import sys
from typing import NoReturn

__all__ = ["path", "restorationctl", "restorationd"]
__version__ = "@VERSION@"


def path(program: str) -> str:
    """Where the program is."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", program)


def restorationd() -> NoReturn:
    """Becomes the broker."""
    os.execv(path("restorationd"), ["restorationd", *sys.argv[1:]])


def restorationctl() -> NoReturn:
    """Becomes the tool."""
    os.execv(path("restorationctl"), ["restorationctl", *sys.argv[1:]])
