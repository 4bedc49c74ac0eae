#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A broker that makes the calls that its client requests: asking.py SOCKET

  ask {method, params}    makes this call, and answers with the client's whole answer
  mutter                  reports an unreadable message, for a call and for a notification
  lose                    has another host get the application: the client is told, and its calls are refused
  opened                  answers with the `takeOver` of each `initialize` so far, of all connections
  cut                     ends the other connections

Each registration gets the next handle; the identifier "Taken" is refused, and "Hasty" is handed its state and is told
of the end in one piece with the answer. Prints "ready".
"""

import json
import socket
import sys
import threading

ELSEWHERE = {"host": "tower", "since": "2026-02-28T09:05:00.042Z"}
opened, connections = [], []


def result(method, params, handle):
    if method == "initialize":
        return {"session": "t", "application": params["application"], "limits": {}, "restoration": {}}
    if method == "registerObjectForStateRestoration":
        return {"object": handle, "path": [params["restorationIdentifier"]], "restoration": {"state": "none"}}
    return {}


def hand_out(handle):
    state = {"object": handle, "state": {"text": "an hour of work"}}
    yield {"id": 2, "method": "decodeRestorableStateWithCoder", "params": {"objects": [state]}}
    yield {"method": "applicationFinishedRestoringState", "params": {"objects": [handle]}}


def lines(*messages):
    return b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in messages)


def serve(connection):
    asked, handle, is_lost = None, 0, False
    for line in connection.makefile("rb"):
        message = json.loads(line)
        method, params = message.get("method"), message.get("params", {})
        handle += method == "registerObjectForStateRestoration"
        # A goodbye at the end of the program, and the answer to what was handed out.
        if "id" not in message and method != "mutter" or method is None and asked is None:
            continue
        if method == "ask":
            asked = message["id"]
            answer = {"id": 1, **params}
        elif method == "mutter":
            answer = {"id": None, "error": {"code": -32700, "message": "Parse error", "data": {"kind": "parseError"}}}
        elif method == "opened":
            answer = {"id": message["id"], "result": opened}
        elif method == "cut":
            for other in connections:
                if other is not connection:
                    other.shutdown(socket.SHUT_RDWR)
            answer = {"id": message["id"], "result": {}}
        elif method is not None and is_lost and method not in ("initialize", "goodbye"):
            data = {"kind": "fenced", "hint": "Continue there.", **ELSEWHERE}
            error = {"code": -32023, "message": "tower has the application", "data": data}
            answer = {"id": message["id"], "error": error}
        elif method is None:
            answer = {"id": asked, "result": {name: message[name] for name in message.keys() & {"result", "error"}}}
        elif params.get("restorationIdentifier") == "Taken":
            error = {"code": -32004, "message": "it is taken", "data": {"hint": "Take another."}}
            answer = {"id": message["id"], "error": error}
        else:
            answer = {"id": message["id"], "result": result(method, params, handle)}
            if method == "initialize":
                opened.append(params.get("takeOver", False))
            if method == "lose":
                is_lost = True
                connection.sendall(lines({"method": "archiveLost", "params": {**ELSEWHERE, "unshipped": 0}}))
        more = hand_out(handle) if params.get("restorationIdentifier") == "Hasty" else []
        connection.sendall(lines(answer, *more))


def main():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    print("ready", flush=True)
    while True:
        connections.append(listener.accept()[0])
        threading.Thread(target=serve, args=connections[-1:], daemon=True).start()


if __name__ == "__main__":
    main()
