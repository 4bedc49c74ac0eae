# SPDX-License-Identifier: Apache-2.0
"""What `kill_at_random_points` does not mistake for a loss, and how values and changes are compared."""

import sys

import pytest
from restorationd.testing import kill_at_random_points


def work(process):
    process.stdin.write("word\n")


@pytest.mark.parametrize("seed", [1, 2])
def test_an_application_that_pushes_passes(application, seed):
    kill_at_random_points(application("words"), 6, work=work, seed=seed)


def test_an_application_of_two_processes_that_serve_passes(application):
    kill_at_random_points(application("editor"), 4, work=work, changing=["Main:/pid"], seed=1, quiet=0.5)


def test_a_process_that_decodes_by_itself_and_serves_passes():
    script = """
import restorationd
session = restorationd.Session("a", serving=True)
page = session.register("Page", encode=lambda: fields)
saved = page.decode()
fields = dict(saved.state) if saved else {"n": 1}
if not saved:
    page.encode(fields)
session.serve()
"""
    kill_at_random_points([sys.executable, "-c", script], 3)


def test_an_application_starts_again_when_the_sessions_of_the_killed_one_have_ended(application):
    kill_at_random_points(application("lingering"), 3, work=work, seed=3)


def grows(before, after):
    return isinstance(after, int) and after >= before


# It pushes nothing before it has work; then the work shows what it has taken in.
CHANGES = {"Window:/frame/0": grows, "Window/Page:/words": lambda before, after: after[:len(before)] == before}


def test_work_makes_an_application_show_what_it_has(application):
    kill_at_random_points(application("words", "silent"), 4, work=work, changing=CHANGES, seed=1, patience=5)


def test_a_change_that_is_not_right_is_a_loss(application):
    wrong = {**CHANGES, "Window:/frame/0": lambda before, after: after < before}
    with pytest.raises(AssertionError, match=r"org.example.Words Window:/frame/0: \d+ came back as \d+") as failure:
        kill_at_random_points(application("words", "silent"), 4, work=work, changing=wrong, seed=1, patience=5)
    assert str(failure.value).endswith(
        "It pushed nothing before one more piece of work. If that changes these fields, let it push what it has decoded "
        "first, or name them in changing=.")


def test_values_are_told_from_one_another():
    script = """
import restorationd
page = restorationd.Session("a").register("Page")
saved = page.decode()
page.encode({"a": {"b~/": [1, %s]}, "c": 1.0} if saved else {"a": {"b~/": [1, True]}, "c": 1})
input()
"""
    kill_at_random_points([sys.executable, "-c", script % "True"], 2)
    with pytest.raises(AssertionError, match=r"a Page:/a/b~0~1/1: true came back as 1"):
        kill_at_random_points([sys.executable, "-c", script % "1"], 2, patience=5)
