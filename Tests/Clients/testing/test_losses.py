# SPDX-License-Identifier: Apache-2.0
"""Losses that `kill_at_random_points` names."""

import re
import subprocess
import sys
import types

import pytest
import restorationd.testing
from restorationd.testing import kill_at_random_points


def work(process):
    process.stdin.write("word\n")


@pytest.mark.parametrize("command, lost", [
    (["words", "forget-field"], 'org.example.Words Window/Page:/title: "word" came back as "untitled"'),
    (["words", "forget-object"], "org.example.Words Window/Page: the object did not come back; it was {"),
    (["words", "blank"], 'org.example.Words Window/Page:/words/0: "word" came back as nothing'),
    (["editor", "forget-field"], "org.example.Editor Main:/text: "),
    (["editor", "forget-object"], "org.example.Editor Main/List: the object did not come back; it was {"),
])
def test_what_is_lost_is_named(application, command, lost):
    quiet = 0.5 if command[0] == "editor" else 0.2  # the second process takes longer to come up
    with pytest.raises(AssertionError) as failure:
        kill_at_random_points(
            application(*command), 6, work=work, changing=["Main:/pid"], seed=5, patience=5, quiet=quiet)
    assert lost in str(failure.value)
    where = r"lost what it had saved, after kill \d of 6, at its write \d+; repeat this with seed=5"
    assert re.search(where, str(failure.value)) and "one more piece of work" not in str(failure.value)


def test_a_field_that_changes_is_lost_unless_it_is_named(application):
    with pytest.raises(AssertionError, match="org.example.Editor Main:/pid: "):
        kill_at_random_points(application("editor"), 1, work=work, seed=1, patience=5)


def test_an_application_that_comes_while_others_are_looked_at_disturbs_nothing():
    class Proof(restorationd.testing._Proof):
        def __init__(self):
            self.watch = types.SimpleNamespace(applications={"org.example.First"})

        def _look(self, application, ask):
            self.watch.applications.add("org.example.Second")  # by the thread that takes the broker's events
            return restorationd.testing._View()

    assert Proof()._snapshot() == {}


def test_pytest_takes_the_seed_and_shows_the_lines_of_the_test_alone(application, tmp_path):
    command = [str(word) for word in application("words", "forget-field")]
    (tmp_path / "test_it.py").write_text(
        "from restorationd.testing import kill_at_random_points\n\n"
        "def test_that_nothing_is_lost():\n"
        f"    kill_at_random_points({command}, 1, work=lambda each: each.stdin.write('word\\n'), patience=5)\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "restorationd.testing", "-p", "no:cacheprovider", "--restoration-seed=7",
         str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 1
    assert "; repeat this with seed=7\n" in run.stdout and "> " in run.stdout
    assert "restorationd/testing.py" not in run.stdout, run.stdout
