# SPDX-License-Identifier: Apache-2.0
"""Applications of which `kill_at_random_points` can prove nothing, and says why."""

import sys

import pytest
from restorationd_testing import kill_at_random_points


def work(process):
    process.stdin.write("word\n")


def test_an_application_that_shows_nothing_has_proven_nothing():
    script = """
import restoration
page = restoration.Session("a").register("Page")
if not page.decode():
    page.encode({"n": 1})
input()
"""
    with pytest.raises(AssertionError, match="so nothing is proven: .*work="):
        kill_at_random_points([sys.executable, "-c", script], 2)


def test_an_application_that_does_not_even_decode_is_told():
    script = """
import restoration
session = restoration.Session("a")
page = session.register("Page")
if session.restoration["reason"] == "pristine":
    page.encode({"n": 1})
input()
"""
    with pytest.raises(AssertionError, match='a Page: its state was neither decoded nor pushed again; it was {"n": 1}'):
        kill_at_random_points([sys.executable, "-c", script], 2, patience=1)


def test_an_application_that_ends_by_itself_is_told(application):
    with pytest.raises(AssertionError, match="ended by itself with status 3, in its first run; .*seed=7"):
        kill_at_random_points(application("words", "crash"), 2, work=work, seed=7)


def test_an_application_that_does_not_use_the_broker_is_told(monkeypatch):
    monkeypatch.setattr("restorationd_testing._START", 1)
    with pytest.raises(AssertionError, match="cat has no session 1 seconds after its start, .*RESTORATIOND_SOCKET"):
        kill_at_random_points("cat", 2, work=work, patience=1)
