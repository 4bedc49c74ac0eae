# SPDX-License-Identifier: Apache-2.0
"""Shared by all Python programs of this directory: the states, and the reports. See README.md."""

import os
import sys

SOCKET = os.environ["RESTORATIOND_SOCKET"]
APPLICATION = os.environ["RESTORATION_APPLICATION"]

DRAFT = {"draft": True}
STATE = {
    "text": "Grüße, 世界 🗒 \"\\\u2028",
    "nested": {"list": [1, [True, None], {"a": {"b": []}}], "": {}},
    "ratio": 0.1,
    "big": 9007199254740993,
    "huge": 12345678901234567890123,
}
ASKED = dict(STATE, asked=True)

OBJECT = {"restorationIdentifier": "Notes", "objectClass": "Notes"}
PATH = ["Notes"]
MISSING = ["Missing"]
SERVES = ["encodeRestorableStateWithCoder", "applicationStateSaved"]


def say(line):
    print(line, flush=True)


def expect(step, actual, expected):
    """Reports a step, or ends the program if the value is not the expected one."""
    if actual != expected:
        say(f"not ok {step}: {actual!r} instead of {expected!r}")
        sys.exit(1)
    say(f"ok {step}")


def answer_polled(call):
    """The answer to a call of the broker that a client has fetched with nextRequest."""
    objects = call["params"]["objects"]
    expect("encodeRequest", (call["method"], [entry["path"] for entry in objects]), (SERVES[0], [PATH]))
    return {"states": [{"object": entry["object"], "state": ASKED} for entry in objects]}


def expect_saved(notice):
    expect("saved", notice, {"id": None, "method": SERVES[1], "params": {"generation": 1}})


def expect_state(step, decoded, state):
    expect(step, (decoded["status"], decoded["state"]), ("available", state))
