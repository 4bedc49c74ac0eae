# SPDX-License-Identifier: Apache-2.0
"""All messages when the vectors and the documented exchanges are played against a broker."""

import glob
import json
import os
import re
import secrets
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

PROTOCOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "Protocol")
sys.path.insert(0, os.path.join(PROTOCOL, "vectors"))
import run  # noqa: E402


# In these vectors clients send answers that are not what the document describes, to show what the broker makes of them.
WRONG_ANSWERS = {"r12-stale.json", "r28-round.json"}

# Several at a time: they wait for the broker's seconds more than they compute. Those of events come first, each alone,
# because some of them subscribe to all applications.
PLAYED_AT_A_TIME = 8


class Traffic:
    """The messages by method. A request is valid if it was answered with a result."""

    def __init__(self):
        self.parameters = []  # (method, parameters): taken by the broker, or sent by it
        self.results = []  # (method, result): of the broker
        self.answers = []  # (method, result): of a client
        self.errors = []  # (method, parameters, error): of the broker
        self.polled = {}  # id: method, of calls that were fetched

    def add(self, other):
        for name in ("parameters", "results", "answers", "errors"):
            getattr(self, name).extend(getattr(other, name))

    def distinct(self):
        """Keeps of what is the same one."""
        for name in ("parameters", "results", "answers", "errors"):
            distinct = {json.dumps(one, sort_keys=True): one for one in getattr(self, name)}
            setattr(self, name, list(distinct.values()))
        return self

    def forget(self, methods):
        for name in ("parameters", "results", "answers", "errors"):
            setattr(self, name, [one for one in getattr(self, name) if one[0] not in methods])


class Conversation:
    """One connection: matches answers to calls."""

    def __init__(self, traffic):
        self.traffic = traffic
        self.asked = {}
        self.called = {}

    def sent(self, data):
        try:
            message = json.loads(data)
        except ValueError:
            return
        for one in message if isinstance(message, list) else [message]:
            if not isinstance(one, dict):
                continue
            if "method" in one and "id" in one:
                self.asked[json.dumps(one["id"])] = (one["method"], one.get("params", {}))
            elif "method" not in one and "result" in one:
                method = self.called.pop(json.dumps(one.get("id")), None)
                if method:
                    self.traffic.answers.append((method, one["result"]))

    def received(self, text):
        message = json.loads(text)
        for one in message if isinstance(message, list) else [message]:
            if "method" in one:
                self.traffic.parameters.append((one["method"], one["params"]))
                if "id" in one:
                    self.called[json.dumps(one["id"])] = one["method"]
                continue
            method, parameters = self.asked.pop(json.dumps(one["id"]), (None, None))
            if method is None:
                continue
            if "result" in one:
                self.traffic.parameters.append((method, parameters))
                self.traffic.results.append((method, one["result"]))
                self.polling(method, parameters, one["result"])
            else:
                self.traffic.errors.append((method, parameters, one["error"]))

    def polling(self, method, parameters, result):
        """The messages inside nextRequest and answerRequest, as if they were sent directly."""
        if method == "nextRequest" and result:
            self.traffic.parameters.append((result["method"], result["params"]))
            self.traffic.polled[result["id"]] = result["method"]
        elif method == "answerRequest" and isinstance(parameters, dict) and "result" in parameters:
            self.traffic.answers.append((self.traffic.polled[parameters["id"]], parameters["result"]))


def recording(current):
    """A client of the vectors' runner that writes down what it sends and receives, in the traffic of its thread."""

    class Client(run.Client):
        def __init__(self, path, timeout, framing="stream"):
            super().__init__(path, timeout, framing)
            self.conversation = Conversation(current.traffic)

        def send(self, data):
            self.conversation.sent(data)
            super().send(data)

        def receive(self, deadline):
            has_more = super().receive(deadline)
            if has_more:
                self.conversation.received(self.inbox[-1][1])
            return has_more

    return Client


def play(address, timeout=20):
    """Plays all vectors and all documented exchanges; returns the messages."""
    current = threading.local()
    run.Client = recording(current)

    def play_vector(path):
        current.traffic = Traffic()
        run.play(path, address, timeout)
        if os.path.basename(path) in WRONG_ANSWERS:
            current.traffic.answers = []
        return current.traffic

    def play_page(page):
        current.traffic = Traffic()
        for exchange in exchanges(page):
            play_exchange(exchange, run.Client, address, timeout)
        return current.traffic

    alone = run.find("events*.json")
    others = [path for path in run.find("*.json") if path not in alone]
    pages = sorted(glob.glob(os.path.join(PROTOCOL, "**", "*.md"), recursive=True))
    played = [play_vector(path) for path in alone]
    with ThreadPoolExecutor(PLAYED_AT_A_TIME) as pool:
        played += [*pool.map(play_vector, others), *pool.map(play_page, pages)]
    whole = Traffic()
    for traffic in played:
        whole.add(traffic)
    return whole.distinct()


def exchanges(page):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for block in re.findall(r"^```exchange\n(.*?)^```", text, re.M | re.S):
        yield re.findall(r"^(\w?) ?([→←]) (.*)$", block.replace("org.example.Notes", application()), re.M)


def application():
    return f"exchange.{secrets.token_hex(4)}"


def play_exchange(lines, client, address, timeout):
    """Sends the page's messages, and reads as many answers as it shows; their content is tested elsewhere."""
    clients, handles, calls = {}, {}, {}
    for name, arrow, text in lines:
        if name not in clients:
            clients[name] = client(address, timeout)
        if arrow == "→":
            text = text.replace("<handle>", handles.get(name, "0")).replace("<call>", calls.get(name, "0"))
            clients[name].send(text.encode() + b"\n")
            continue
        if not clients[name].receive(time.monotonic() + timeout):
            break
        _, text = clients[name].inbox.pop()
        message = json.loads(text)
        if isinstance(message, dict) and isinstance(message.get("result"), dict) and "object" in message["result"]:
            handles[name] = json.dumps(message["result"]["object"])
        if isinstance(message, dict) and "method" in message and "id" in message:
            calls[name] = json.dumps(message["id"])
    for one in clients.values():
        one.socket.close()
