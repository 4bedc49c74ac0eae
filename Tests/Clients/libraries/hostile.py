#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A broker that sends arbitrary messages: hostile.py SOCKET SEED

Every request finally gets a valid answer, so that a client that tolerates the rest continues. In between come messages
that are truncated, changed, deep, long or of another form, and sometimes the end of the connection. Prints "ready".
"""

import json
import random
import socket
import sys
import threading

CALLS = [
    {"jsonrpc": "2.0", "id": 1, "method": "encodeRestorableStateWithCoder",
     "params": {"round": 1, "objects": [{"object": 1, "path": ["A"]}, {"object": 2, "path": ["B"]}]}},
    {"jsonrpc": "2.0", "id": 2, "method": "decodeRestorableStateWithCoder",
     "params": {"objects": [{"object": 1, "path": ["A"], "state": {"a": [1, "é\u0000", None]}, "elements": []}]}},
    {"jsonrpc": "2.0", "id": 3, "method": "decodeRestorableStateWithCoder",
     "params": {"objects": [{"object": 1, "path": ["A"], "deferred": True}]}},
    {"jsonrpc": "2.0", "id": 4, "method": "objectWithRestorationIdentifierPath",
     "params": {"restorationClass": "C", "identifierPath": ["A", "X"], "kind": "object", "state": {}}},
    {"jsonrpc": "2.0", "id": 5, "method": "noSuchCall", "params": []},
    {"jsonrpc": "2.0", "method": "pathChanged", "params": {"object": 1, "path": ["B", "A#3"]}},
    {"jsonrpc": "2.0", "method": "pathChanged", "params": {"object": 1, "path": None}},
    {"jsonrpc": "2.0", "method": "registrationReplaced", "params": {"object": 2, "path": ["B"], "by": {}}},
    {"jsonrpc": "2.0", "method": "applicationFinishedRestoringState", "params": {"objects": [1, 2, 99]}},
    {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no", "data": {"kind": "parseError"}}},
    {"jsonrpc": "2.0", "id": 7, "error": {"code": 1 << 40, "message": 7, "data": {"path": [1, None, "x" * 2000]}}},
    [{"jsonrpc": "2.0", "id": 1, "result": {}}],
]
VALUES = [None, True, -1, 1.5, 1 << 62, "", "x" * 70, [], {}, [[]], {"object": "x"}, "é" * 700]
RAW = [
    b"", b"null", b"7", b"{", b"}{", b"\xff\xfe", b"[" * 3000, b'{"a":' * 3000, b'{"id":99999999999999999999999}',
    b'{"jsonrpc":"2.0","id":4,"method":"x","params":1e400}', b'{"jsonrpc":"2.0","id":4,"result":1e400}', b"\x00",
    b'{"id":', b'{"id":"\\', b'"' * 99, b" " * 100000, b'{"x":"' + b"y" * 3000000 + b'"}',
]


def members(value, found):
    """Every place in a value that can be replaced."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in list(pairs):
        found.append((value, key))
        members(member, found)
    return found


def mutated(message, dice):
    """One message, with something wrong about it."""
    message = json.loads(json.dumps(message))
    way = dice.randrange(5)
    if way < 2:
        container, key = dice.choice(members(message, []))
        if way == 0:
            container[key] = dice.choice(VALUES)
        else:
            del container[key]
        return json.dumps(message, ensure_ascii=False).encode()
    text = bytearray(json.dumps(message).encode())
    place = dice.randrange(len(text))
    if way == 2:
        text[place] = dice.choice(b'\x00\n"\\{}[]:,\x80\xff0')
    elif way == 3:
        del text[place:place + dice.randrange(20)]
    else:
        text[place:place] = bytes(dice.randrange(256) for _ in range(dice.randrange(8)))
    return bytes(text)


def junk(dice):
    if dice.random() < 0.15:
        return dice.choice(RAW)
    message = dice.choice(CALLS)
    return json.dumps(message).encode() if dice.random() < 0.3 else mutated(message, dice)


def result(method, handle):
    return {
        "initialize": {"session": "t", "application": "a", "limits": {"depthMax": 64}, "restoration": {}},
        "registerObjectForStateRestoration": {
            "object": handle, "path": ["A"], "included": True, "restoration": {"state": "none"}},
        "decodeRestorableState": {"status": "available", "state": {"a": 1}, "coder": None, "elements": []},
        "setRestorationIdentifier": {"path": ["Z"], "included": True},
        "completeStateRestoration": {"pending": 0},
    }.get(method, {})


def serve(connection, dice):
    handle = 0
    for line in connection.makefile("rb"):
        message = json.loads(line)
        if "method" not in message or "id" not in message:
            continue
        method = message["method"]
        handle += method == "registerObjectForStateRestoration"
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result(method, handle)}
        # Few if the client calls because it was called: otherwise it would be called for ever.
        count = {"initialize": 1, "registerObjectForStateRestoration": 2, "decodeRestorableState": 2}.get(method, 6)
        sent = [junk(dice) for _ in range(dice.randrange(count))]
        if dice.random() < 0.4 and method != "initialize":
            sent.append(mutated(answer, dice))
        if dice.random() < 0.03 and method != "initialize":
            connection.sendall(b"\n".join(sent))
            return
        sent.append(json.dumps(answer).encode())
        data = b"".join(line + b"\n" for line in sent)
        while data:  # in pieces of any size
            count = dice.choice([1, 7, 4096, 1 << 20])
            connection.sendall(data[:count])
            data = data[count:]


def main():
    dice = random.Random(int(sys.argv[2]))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    print("ready", flush=True)

    def run(connection):
        try:
            serve(connection, dice)
        except OSError:
            pass
        connection.close()

    while True:
        threading.Thread(target=run, args=(listener.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    main()
