# SPDX-License-Identifier: Apache-2.0
"""A stored generation comes back in a running application."""

import subprocess

import pytest
import restorationd
from restorationd.testing import replay

NAME = "org.example.Follower"


def started(broker, command):
    child = broker.spawn(command, stdout=subprocess.PIPE)
    return child, lambda: child.stdout.readline().strip()


@pytest.mark.parametrize("kind", ["serves", "fetches"])
def test_a_generation_is_restored_while_the_application_runs(broker, application, kind):
    document = {"format": "restorationd.archive", "version": 1, "objects": [
        {"path": ["Page"], "kind": "object", "state": {"title": "old", "large": 2 ** 70},
         "writer": {"written": "2026-02-28T09:05:00.042Z"}}]}
    old = broker.load(NAME, document)
    document["objects"][0]["state"]["title"] = "new"
    new = broker.load(NAME, document)
    child, line = started(broker, application("follower", kind))
    assert line() == "new"
    replay(broker, NAME, old)
    assert line() == "old"
    assert broker.document(NAME)["objects"][0]["state"] == {"title": "old", "large": 2 ** 70}
    restored = replay(broker, NAME, new)
    assert line() == "new"
    assert (restored["restored"] == [["Page"]]) == (kind == "serves")
    assert child.poll() is None


def test_a_document_is_loaded_before_the_application_starts(broker, application):
    child, line = started(broker, application("follower", "serves"))
    assert [line(), line()] == ["nothing", "saved"]
    document = broker.document(NAME)
    with pytest.raises(restorationd.BrokerError) as refused:
        broker.load(NAME, document)
    assert refused.value.kind == "alreadyServed"
    child.kill()
    child.wait()
    document["objects"][0]["state"] = {"title": "two"}
    broker.load(NAME, document)
    assert started(broker, application("follower", "serves"))[1]() == "two"
