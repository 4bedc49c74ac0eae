# SPDX-License-Identifier: Apache-2.0
"""An application that prints its title whenever it gets one: follower.py serves|fetches

One that serves is given its state by the broker; one that fetches decodes when it is told of another head.
"""

import sys

import restorationd


def show(saved):
    print(saved.get("title", "nothing"), flush=True)


def told(method, params):
    replaced.append(method == "headReplaced")


replaced = []
serves = sys.argv[1] == "serves"
session = restorationd.Session("org.example.Follower", serving=serves, on_notification=told)
page = session.register("Page", encode=lambda: None, decode=show) if serves else session.register("Page")
show(page.decode())
if not replaced and page.restoration == "none":
    page.encode({"title": "one"})
    print("saved", flush=True)
while True:
    session.serve(0.05)
    if not serves and any(replaced):
        replaced.clear()
        show(page.decode())
