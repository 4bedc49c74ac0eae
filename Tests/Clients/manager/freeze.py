# SPDX-License-Identifier: Apache-2.0
"""Stops some threads of a process while the others run, until the process is killed: freeze.py PID NAME

NAME is how the names of the threads begin.
"""

import ctypes
import os
import sys

PTRACE_INTERRUPT, PTRACE_SEIZE = 0x4207, 0x4206
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def trace(request, thread):
    if libc.ptrace(request, thread, None, None) < 0:
        sys.exit(f"ptrace {request:#x}: {os.strerror(ctypes.get_errno())}")


def find(pid, name):
    names = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
            names[int(thread)] = file.read().strip()
    found = [thread for thread, known in sorted(names.items()) if known.startswith(name)]
    return found or sys.exit(f"there is no thread {name}: {names}")


def main():
    threads = find(int(sys.argv[1]), sys.argv[2])
    for thread in threads:
        trace(PTRACE_SEIZE, thread)
        trace(PTRACE_INTERRUPT, thread)
        os.waitpid(thread, WALL)
    print("frozen", flush=True)
    # A traced thread ends only when its tracer has waited for it.
    for thread in threads:
        while os.WIFSTOPPED(os.waitpid(thread, WALL)[1]):
            pass


if __name__ == "__main__":
    main()
