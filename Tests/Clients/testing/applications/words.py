# SPDX-License-Identifier: Apache-2.0
"""An application that pushes what it has whenever that changes: words.py [fault]

Each line of its input is a word for the page. Faults: forget-field, forget-digit (the title is a large number, and one
less when it is back), round (the same, and a real), forget-object, blank (decodes, and pushes defaults over what it
got), silent (shows nothing before it has work), late (as silent, and takes its time then), crash.
"""

import sys
import threading

import restorationd

fault = sys.argv[1] if len(sys.argv) > 1 else ""
with restorationd.Session("org.example.Words") as session:
    window = session.register("Window")
    frame = window.decode().get("frame", [0, 0, 640, 480])
    page, words, title = None, [], "untitled"
    if fault != "forget-object" or session.restoration["reason"] == "pristine":
        page = session.register("Page", window)
        saved = page.decode()
        words = saved.get("words", [])
        title = title if fault == "forget-field" else saved.get("title", title)
    if fault in ("forget-digit", "round"):
        less = float(2**53) if fault == "round" else 2**53
        title = 2**53 + 1 if session.restoration["reason"] == "pristine" else less
    if fault == "blank":
        words = []

    def show():
        window.encode({"frame": frame})
        if page:
            page.encode({"words": words, "title": title})

    if fault not in ("silent", "late"):
        show()
    for line in sys.stdin:
        words.append(line.strip())
        title = title if title != "untitled" else line.strip()
        frame = [len(words), 0, 640, 480]
        if fault == "late":
            threading.Event().wait(2.5)  # which nothing sets
        show()
        if fault == "crash":
            sys.exit(3)
