#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A broker that makes the calls that its client requests: asking.py SOCKET

  ask {method, params}    makes this call, and answers with the client's whole answer
  mutter                  reports an unreadable message, for a call and for a notification

Each registration gets the next handle; the identifier "Taken" is refused. Prints "ready".
"""

import json
import socket
import sys


def result(method, params, handle):
    if method == "initialize":
        return {"session": "t", "application": params["application"], "limits": {}, "restoration": {}}
    if method == "registerObjectForStateRestoration":
        return {"object": handle, "path": [params["restorationIdentifier"]], "restoration": {"state": "none"}}
    return {}


def serve(connection):
    asked, handle = None, 0
    for line in connection.makefile("rb"):
        message = json.loads(line)
        method, params = message.get("method"), message.get("params", {})
        handle += method == "registerObjectForStateRestoration"
        if method == "ask":
            asked = message["id"]
            answer = {"id": 1, **params}
        elif method == "mutter":
            answer = {"id": None, "error": {"code": -32700, "message": "Parse error", "data": {"kind": "parseError"}}}
        elif method is None:
            answer = {"id": asked, "result": {name: message[name] for name in message.keys() & {"result", "error"}}}
        elif params.get("restorationIdentifier") == "Taken":
            error = {"code": -32004, "message": "it is taken", "data": {"hint": "Take another."}}
            answer = {"id": message["id"], "error": error}
        else:
            answer = {"id": message["id"], "result": result(method, params, handle)}
        connection.sendall(json.dumps({"jsonrpc": "2.0", **answer}).encode() + b"\n")


def main():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    print("ready", flush=True)
    serve(listener.accept()[0])


if __name__ == "__main__":
    main()
