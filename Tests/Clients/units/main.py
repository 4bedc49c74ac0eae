# SPDX-License-Identifier: Apache-2.0
"""The delegate of an application of three units: main.py

Each of its processes has one object. It pushes a state when there is none, and writes down in the file `journal` of the
home directory what it pushed, what came back, and that the restoration is over. worker.pl and worker.mjs do the same.
"""

import json
import os
import socket

journal = open(os.path.expanduser("~/journal"), "a", buffering=1)
broker = socket.socket(socket.AF_UNIX)
broker.connect(os.environ["XDG_RUNTIME_DIR"] + "/restorationd/broker.sock")
lines = broker.makefile("r")


def send(**message):
    broker.sendall((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())


def handle(message):
    method, params = message.get("method"), message.get("params", {})
    result = {}
    if method == "shouldRestoreApplicationState":
        journal.write("main asked\n")
        result = True
    elif method == "decodeRestorableStateWithCoder":
        for each in params["objects"]:
            journal.write(f"main back {each['state']['n']}\n")
    elif method == "didDecodeRestorableState":
        journal.write("main told\n")
    elif method == "applicationFinishedRestoringState":
        journal.write("main finished\n")
    if "id" in message:
        send(id=message["id"], result=result)


def call(number, method, **params):
    send(id=number, method=method, params=params)
    for line in lines:
        message = json.loads(line)
        if "method" not in message:
            return message["result"]
        handle(message)


served = [
    "shouldRestoreApplicationState", "didDecodeRestorableState", "decodeRestorableStateWithCoder",
    "applicationFinishedRestoringState",
]
session = call(
    1, "initialize", application="org.example.Three", process="main", delegate=True, serves=served,
    storyboard={"unit": os.environ["RESTORATION_UNIT"]},
)
journal.write(f"main began {session['restoration']['reason']}\n")
thing = call(2, "registerObjectForStateRestoration", restorationIdentifier="Main", kind="viewController")
if thing["restoration"]["state"] == "none":
    call(3, "encodeRestorableState", object=thing["object"], state={"n": os.getpid()})
    journal.write(f"main pushed {os.getpid()}\n")
for each in lines:
    handle(json.loads(each))
