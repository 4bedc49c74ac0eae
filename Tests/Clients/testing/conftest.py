# SPDX-License-Identifier: Apache-2.0
"""What the tests of `restorationd.testing` share. Where it is installed, pytest loads it by itself."""

import pathlib
import sys

import pytest

pytest_plugins = ["restorationd.testing"]


@pytest.fixture
def application():
    """The command line of a sample application."""
    folder = pathlib.Path(__file__).parent / "applications"
    return lambda name, *arguments: [sys.executable, "-B", folder / f"{name}.py", *arguments]
