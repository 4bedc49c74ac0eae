# SPDX-License-Identifier: Apache-2.0
"""A private broker, killed, restarted and frozen on command."""

import contextlib
import datetime
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys

import pytest
import restorationd
from restorationd.testing import Broker


def running(groups):
    """The processes of these groups, without those that have ended and were not awaited by their parent."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, group = (process / "stat").read_text().rpartition(")")[2].split()[:3]
            found += [process.name] if int(group) in groups and state != "Z" else []
    return found


def test_states_outlive_its_kill(broker):
    restorationd.store("org.example.Notes", "Page", {"n": 1}, str(broker.socket))
    broker.restart()
    assert broker.state("org.example.Notes", ["Page"]) == {"n": 1}
    broker.kill()
    with pytest.raises(restorationd.NoBrokerError):
        broker.state("org.example.Notes", "Page")
    broker.start()
    assert broker.state("org.example.Notes", "Page") == {"n": 1}
    assert broker.state("org.example.Notes", "Other") is None


def test_its_clock_is_moved_and_stays_ahead():
    with Broker(test_clock=True) as broker:
        for application in ("org.example.Old", "org.example.New"):
            restorationd.store(application, "Page", {"n": 1}, str(broker.socket))
        for _ in range(3):
            broker.advance(days=1)
            restorationd.store("org.example.New", "Page", {"n": 2}, str(broker.socket))
            broker.restart()
        applications = broker.call("listApplications")["applications"]
        assert [each["unusedDays"] for each in applications] == [0, 3]
        objects = broker.call("readArchive", "org.example.New")["objects"]
        today = datetime.datetime.now(datetime.timezone.utc)
        assert objects[0]["modified"] > (today + datetime.timedelta(days=2.9)).isoformat()


def test_a_clock_that_is_told_nonsense_says_so_and_goes_on():
    with Broker(test_clock=True) as broker:
        for line in ("garbage", "advance", "advance soon", "advance -1", "advance 1 2", "advance 9223372036854775807"):
            assert broker._ask(line).startswith(f'error "{line}" is not "advance MILLISECONDS", from 0 to ')
        broker.advance(seconds=1.5)
        broker.restart()
        assert broker._ask("advance 0") == "ok 1500"
        broker._clock.shutdown(socket.SHUT_RDWR)
        assert broker.call("ping") is not None
    with Broker() as broker, pytest.raises(RuntimeError, match=r"Broker\(test_clock=True\)"):
        broker.advance(days=1)


def test_a_clock_that_cannot_be_moved_stays_where_it_is():
    with Broker(test_clock=True) as broker:
        for days in (-1, 36_526):
            with pytest.raises(ValueError, match=f"^{days * 86_400_000} is not a number of milliseconds from 0 to "):
                broker.advance(days=days)
        broker.kill()
        with pytest.raises(RuntimeError, match="not running"):
            broker.advance(days=1)
        broker.start()
        os.kill(broker.pid, signal.SIGKILL)
        os.waitid(os.P_PID, broker.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(RuntimeError, match="not running"):
            broker.advance(days=1)
        broker.restart()
        assert broker._ask("advance 0") == "ok 0"


def test_a_late_answer_about_the_clock_is_not_taken_for_that_of_the_next_move(monkeypatch):
    with Broker(test_clock=True) as broker:
        broker.freeze()
        monkeypatch.setattr("restorationd.testing._MOVE", 0.1)
        with pytest.raises(RuntimeError, match=r"has not answered 'advance 1000' \(timed out\); see .*/log"):
            broker.advance(seconds=1)
        monkeypatch.undo()
        broker.thaw()
        with pytest.raises(RuntimeError, match=r"can be moved no longer; call restart\(\)"):
            broker.advance(seconds=0)
        broker.restart()
        assert broker._ask("advance 0") == "ok 1000"
        broker._process.kill()
        with pytest.raises(RuntimeError, match="has not answered 'advance 0'"):
            broker._ask("advance 0")


def test_it_answers_nothing_while_it_is_frozen(broker):
    with restorationd.Session("org.example.Notes", socket=str(broker.socket)) as session:
        page = session.register("Page")
        broker.freeze()
        session.timeout = 0.1
        with pytest.raises(restorationd.CallTimedOutError):
            page.encode({"n": 1})
        broker.thaw()
        session.timeout = 30
        assert page.encode({"n": 2})
    assert broker.state("org.example.Notes", "Page") == {"n": 2}


def test_children_use_it_and_end_with_it():
    script = "import restorationd, sys; restorationd.store('a', 'Page', {'n': 1}); print('stored', flush=True); input()"
    with Broker() as broker:
        child = broker.spawn([sys.executable, "-c", script], stdout=subprocess.PIPE)
        assert child.stdout.readline() == "stored\n"
        assert broker.state("a", "Page") == {"n": 1}
        pid, directory = broker.pid, broker.directory
    assert child.returncode == -9
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not directory.exists()


def test_a_test_that_fails_leaves_no_process_behind(tmp_path):
    (tmp_path / "test_failing.py").write_text(
        "def test_fails(broker):\n"
        "    child = broker.spawn('sh -c \"sleep 100 & wait\"')\n"
        "    assert False, f'pids {broker.pid} {child.pid} end'\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "restorationd.testing", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True)
    assert run.returncode == 1
    pids = [int(word) for word in run.stdout.split("AssertionError: pids ")[1].split(" end")[0].split()]
    assert len(pids) == 2
    assert not running(pids)


def test_children_have_ended_with_their_group_however_long_one_takes():
    # What gives so much memory back does not end at once.
    script = "import signal; memory = b'x' * (400 << 20); print('filled', flush=True); signal.pause()"
    with Broker() as broker:
        child = broker.spawn(["sh", "-c", '"$0" -c "$1" & wait', sys.executable, script], stdout=subprocess.PIPE)
        assert child.stdout.readline() == "filled\n"
    assert not running([child.pid])


def test_a_missing_program_is_named(monkeypatch):
    monkeypatch.setenv("RESTORATIOND_BINARY", "/nowhere/restorationd")
    with pytest.raises(FileNotFoundError, match="'/nowhere/restorationd'.*pip install restorationd-bin.*RESTORATIOND_BINARY"):
        Broker()


def test_without_a_broker_on_the_path_that_of_restorationd_bin_is_used(monkeypatch, tmp_path):
    wheel = pathlib.Path(__file__).parents[3] / "systemd/release/wheel"
    shutil.copytree(wheel, tmp_path, dirs_exist_ok=True)
    program = tmp_path / "restorationd_bin/bin/restorationd"
    program.parent.mkdir()
    program.symlink_to(shutil.which(os.environ["RESTORATIOND_BINARY"]))
    monkeypatch.delenv("RESTORATIOND_BINARY")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="pip install restorationd-bin"):
        Broker()
    monkeypatch.syspath_prepend(tmp_path)
    with Broker() as broker:
        assert broker.program == str(program)
    become = [sys.executable, "-c", "import restorationd_bin; restorationd_bin.restorationd()", "--version"]
    run = subprocess.run(become, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", run.stdout), run.stderr


def test_a_directory_too_long_for_a_socket_is_named(monkeypatch, tmp_path):
    long = tmp_path / ("d" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with pytest.raises(ValueError, match="ddd/.*/broker.sock is longer than the 107 bytes .* TMPDIR"):
        Broker()
    assert not list(long.iterdir())


def test_it_ends_when_the_process_of_the_test_is_killed():
    script = "from restorationd.testing import Broker; broker = Broker().__enter__(); print(broker.pid, flush=True); "
    script += "print(broker.directory, flush=True); input()"
    test = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid, directory = int(test.stdout.readline()), test.stdout.readline().strip()
    end = os.pidfd_open(pid)
    test.kill()
    test.communicate()
    try:
        assert select.select([end], [], [], 10)[0]
    finally:
        os.close(end)
        shutil.rmtree(directory)


def test_a_broker_that_does_not_start_says_why():
    with pytest.raises(RuntimeError, match="no-such-flag"):
        Broker("--no-such-flag").__enter__()
