# SPDX-License-Identifier: Apache-2.0
"""An application of two processes that serve, of which one drives the restoration: editor.py [fault]

Each line of its input is typed in the editor. Faults: forget-field, forget-object.
"""

import os
import subprocess
import sys
import threading

import restorationd

fault = sys.argv[1] if len(sys.argv) > 1 else ""
role = sys.argv[2] if len(sys.argv) > 2 else "editor"


class Part:
    def __init__(self, **fields):
        self.fields = fields

    def encode(self):
        return dict(self.fields)

    def decode(self, saved):
        forgotten = {"text"} if fault == "forget-field" and role == "editor" else set()
        self.fields.update((key, value) for key, value in saved.state.items() if key not in forgotten)


part = Part(text="", pid=os.getpid()) if role == "editor" else Part(scroll=0, rows=[])
session = restorationd.Session("org.example.Editor", process=role, serving=True)
with session:
    if role == "editor":
        command = [sys.executable, __file__, fault, "list"]
        other = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        main = session.register("Main", encode=part.encode, decode=part.decode)
        session.restore(deadline=5)
        part.fields["pid"] = os.getpid()

        def read():
            other.stdout.readline()  # it has registered what it has
            for line in sys.stdin:
                part.fields["text"] += line.strip()
                main.invalidate()

        threading.Thread(target=read, daemon=True).start()
    elif fault != "forget-object" or not restorationd.load("org.example.Editor", ["Main", "List"]):
        rows = session.register("List", ["Main"], encode=part.encode, decode=part.decode)
        if not rows.handing and rows.restoration == "none":
            part.fields.update(scroll=17, rows=["a", {"b": True}])
    if role == "list":
        print("ready", flush=True)
    session.serve()
