# SPDX-License-Identifier: Apache-2.0
"""An application whose process leaves its group, and ends a second after the others were killed: lingering.py

Each line of its input is one more for what it counts.
"""

import os
import select
import sys

import restorationd

told, held = os.pipe()
if child := os.fork():
    os.waitpid(child, 0)
    sys.exit()
os.close(held)
session = restorationd.Session("org.example.Lingering")
page = session.register("Page")
count = page.decode().get("count", 0)
page.encode({"count": count})
while told not in select.select([0, told], [], [])[0]:
    if not os.read(0, 100):
        break
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    count += 1
    page.encode({"count": count})
select.select([told], [], [])
select.select([], [], [], 1)
os._exit(0)
