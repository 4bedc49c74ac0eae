# SPDX-License-Identifier: Apache-2.0
"""A broker in a directory, which is stopped and killed."""

import os
import signal
import socket
import subprocess


class Broker:
    def __init__(self, program: str, directory: str) -> None:
        self.socket = f"{directory}/broker.sock"
        self.command = [program, "--socket", self.socket, "--archives", f"{directory}/archives"]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command)
        while True:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                if probe.connect_ex(self.socket) == 0:
                    return
            try:
                self.process.wait(0.01)  # a pause that leaves the processor to the broker
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError("the broker does not start")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()
        elif number == signal.SIGSTOP:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
