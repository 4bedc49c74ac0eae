# SPDX-License-Identifier: Apache-2.0
"""Applications of which `kill_at_random_points` can prove nothing, and says why."""

import sys

import pytest
import restorationd.testing
from restorationd.testing import kill_at_random_points


def work(process):
    process.stdin.write("word\n")


def test_an_application_that_shows_nothing_has_proven_nothing():
    script = """
import restorationd
page = restorationd.Session("a").register("Page")
if not page.decode():
    page.encode({"n": 1})
input()
"""
    with pytest.raises(AssertionError, match="has never shown a Page when it was back, so nothing is proven: .*work="):
        kill_at_random_points([sys.executable, "-c", script], 2)


def test_an_application_that_saves_nothing_is_told_in_its_first_run(monkeypatch):
    script = """
import restorationd
restorationd.Session("a").register("Page")
input()
"""
    monkeypatch.setattr(restorationd.testing, "_START", 2)
    with pytest.raises(AssertionError, match="has saved nothing in 2 seconds, in its first run, so nothing is proven"):
        kill_at_random_points([sys.executable, "-c", script], 20)


def test_an_application_that_does_not_even_decode_is_told():
    script = """
import restorationd
session = restorationd.Session("a")
page = session.register("Page")
if session.restoration["reason"] == "pristine":
    page.encode({"n": 1})
input()
"""
    with pytest.raises(AssertionError, match='a Page: its state was neither decoded nor pushed again; it was {"n": 1}'):
        kill_at_random_points([sys.executable, "-c", script], 2, patience=5)


def test_an_object_that_is_never_shown_is_named_beside_one_that_is():
    script = """
import restorationd
session = restorationd.Session("a")
for name in "One", "Two":
    page = session.register(name)
    if not page.decode() or name == "Two":
        page.encode({"n": 1})
session.complete()
input()
"""
    with pytest.raises(AssertionError, match="has never shown a One when it was back"):
        kill_at_random_points([sys.executable, "-c", script], 2)


def test_save_rounds_that_are_declined_have_asked_nobody():
    script = """
import restorationd
class No(restorationd.Delegate):
    def should_save(self, state, coder):
        return False
session = restorationd.Session("a", delegate=No())
page = session.register("Page", encode=lambda: {})
if not page.decode():
    page.encode({"n": 1})
session.complete()
session.serve()
"""
    with pytest.raises(AssertionError, match="has never shown a Page when it was back"):
        kill_at_random_points([sys.executable, "-c", script], 2)


@pytest.mark.parametrize("callbacks", ["", ", encode=lambda: None, decode=lambda saved: page.encode(saved.state)"])
def test_a_process_that_serves_and_restores_nothing_has_lost_what_it_calls_unchanged(callbacks):
    script = f"""
import restorationd
session = restorationd.Session("a", serving=True)
page = session.register("Page"{callbacks})
if session.restoration["reason"] == "pristine":
    page.encode({{"n": 1}})
session.serve()
"""
    with pytest.raises(AssertionError, match='a Page: its state was neither decoded nor pushed again; it was {"n": 1}'):
        kill_at_random_points([sys.executable, "-c", script], 2, patience=5)


def test_an_application_that_ends_by_itself_is_told(application):
    with pytest.raises(AssertionError, match="ended by itself with status 3, in its first run; .*seed=7"):
        kill_at_random_points(application("words", "crash"), 2, work=work, seed=7)


def test_an_application_that_does_not_use_the_broker_is_told(monkeypatch):
    monkeypatch.setattr("restorationd.testing._START", 1)
    with pytest.raises(AssertionError, match="cat has no session 1 seconds after its start, .*RESTORATIOND_SOCKET"):
        kill_at_random_points("cat", 2, work=work, patience=1)


@pytest.mark.parametrize("options, told", [
    ({"kills": 0}, "kills= takes an integer of at least 1, not 0"),
    ({"kills": "3"}, "kills= takes an integer of at least 1, not '3'"),
    ({"changing": "Page:/words"}, r"changing= takes patterns in a list, \['Page:/words'\], not one text"),
    ({"changing": ["Page:/words", "pid"]}, "changing= has 'pid'; a pattern is path:pointer"),
])
def test_arguments_that_would_prove_nothing_are_refused_before_anything_is_started(options, told):
    with pytest.raises((TypeError, ValueError), match=told):
        kill_at_random_points("no-such-program", **options)
