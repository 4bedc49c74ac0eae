# SPDX-License-Identifier: Apache-2.0
"""What `kill_at_random_points` finds, and what it does not mistake for a loss."""

import re
import sys

import pytest
from restorationd_testing import kill_at_random_points


def work(process):
    process.stdin.write("word\n")


@pytest.mark.parametrize("seed", [1, 2])
def test_an_application_that_pushes_passes(application, seed):
    kill_at_random_points(application("words"), 8, work=work, seed=seed)


def test_an_application_of_two_processes_that_serve_passes(application):
    kill_at_random_points(application("editor"), 6, work=work, changing=["Main:/pid"], seed=1)


@pytest.mark.parametrize("command, lost", [
    (["words", "forget-field"], 'org.example.Words Window/Page:/title: "word" came back as "untitled"'),
    (["words", "forget-object"], "org.example.Words Window/Page: the object did not come back; it was {"),
    (["words", "blank"], 'org.example.Words Window/Page:/words/0: "word" came back as nothing'),
    (["editor", "forget-field"], "org.example.Editor Main:/text: "),
    (["editor", "forget-object"], "org.example.Editor Main/List: the object did not come back; it was {"),
])
def test_what_is_lost_is_named(application, command, lost):
    with pytest.raises(AssertionError) as failure:
        kill_at_random_points(application(*command), 6, work=work, changing=["Main:/pid"], seed=5, patience=2)
    assert lost in str(failure.value)
    where = r"lost what it had saved, after kill \d of 6, at its write \d+; repeat this with seed=5"
    assert re.search(where, str(failure.value))


def test_a_field_that_changes_is_lost_unless_it_is_named(application):
    with pytest.raises(AssertionError, match="org.example.Editor Main:/pid: "):
        kill_at_random_points(application("editor"), 1, work=work, seed=1, patience=2)


def grows(before, after):
    return isinstance(after, int) and after >= before


# It pushes nothing before it has work; then the work shows what it has taken in.
CHANGES = {"Window:/frame/0": grows, "Window/Page:/words": lambda before, after: after[:len(before)] == before}


def test_work_makes_an_application_show_what_it_has(application):
    kill_at_random_points(application("words", "silent"), 4, work=work, changing=CHANGES, seed=1)


def test_a_change_that_is_not_right_is_a_loss(application):
    wrong = {**CHANGES, "Window:/frame/0": lambda before, after: after < before}
    with pytest.raises(AssertionError, match=r"org.example.Words Window:/frame/0: \d+ came back as \d+"):
        kill_at_random_points(application("words", "silent"), 4, work=work, changing=wrong, seed=1, patience=2)


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


def test_values_are_told_from_one_another():
    script = """
import restoration
page = restoration.Session("a").register("Page")
saved = page.decode()
page.encode({"a": {"b~/": [1, %s]}, "c": 1.0} if saved else {"a": {"b~/": [1, True]}, "c": 1})
input()
"""
    kill_at_random_points([sys.executable, "-c", script % "True"], 2)
    with pytest.raises(AssertionError, match=r"a Page:/a/b~0~1/1: true came back as 1"):
        kill_at_random_points([sys.executable, "-c", script % "1"], 2, patience=1)
