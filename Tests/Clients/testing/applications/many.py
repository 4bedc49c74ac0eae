# SPDX-License-Identifier: Apache-2.0
"""An application that registers 1,500 objects without waiting for the answers: many.py

Each line of its input is one more for what the first of them counts.
"""

import json
import os
import socket
import sys
import threading

link = socket.socket(socket.AF_UNIX)
link.connect(os.environ["RESTORATIOND_SOCKET"])
answers = link.makefile()


def call(method, *calls):
    """Makes calls of one method at once, and gives their results."""
    messages = [{"jsonrpc": "2.0", "id": n, "method": method, "params": params} for n, params in enumerate(calls)]
    text = "".join(json.dumps(message) + "\n" for message in messages)
    threading.Thread(target=link.sendall, args=(text.encode(),)).start()
    return [json.loads(answers.readline())["result"] for _ in calls]


def push(count):
    call("encodeRestorableState", {"object": ["Page0"], "state": {"count": count}})


call("initialize", {"application": "org.example.Many"})
call("registerObjectForStateRestoration", *[{"restorationIdentifier": f"Page{n}"} for n in range(1_500)])
saved = call("decodeRestorableState", {"object": ["Page0"]})[0]["state"] or {}
count = saved.get("count", 0)
push(count)
for _line in sys.stdin:
    count += 1
    push(count)
