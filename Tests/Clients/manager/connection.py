# SPDX-License-Identifier: Apache-2.0
"""A raw connection to the broker in one of the framings, which accepts only valid answers."""

import json
import select
import socket

PATIENCE = 60


class Fault(Exception):
    """The broker violated the protocol."""


class Connection:
    def __init__(self, path, framing="stream"):
        self.framing = framing
        self.buffer = bytearray()
        self.last_id = 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)

    # Bytes

    def frame(self, message):
        text = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
        if self.framing == "stream":
            return text + b"\n"
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\n" if self.framing == "http" else b""
        return head + b"Content-Length: %d\r\n\r\n" % len(text) + text

    def write(self, data):
        self.socket.sendall(data)

    def has_input(self, seconds=0):
        return bool(self.buffer) or bool(select.select([self.socket], [], [], seconds)[0])

    def fill(self):
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            raise Fault(f"nothing came within {PATIENCE} s") from None
        if not data:
            raise EOFError("the broker closed the connection")
        self.buffer += data

    def until(self, mark):
        searched = 0
        while (end := self.buffer.find(mark, searched)) < 0:
            searched = max(0, len(self.buffer) - len(mark))
            self.fill()
        return self.take(end + len(mark))

    def take(self, count):
        while len(self.buffer) < count:
            self.fill()
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    # Messages

    def receive(self):
        if self.framing == "stream":
            return json.loads(self.until(b"\n"))
        lines = self.until(b"\r\n\r\n").decode().split("\r\n")[:-2]
        if self.framing == "http" and (status := lines.pop(0)) != "HTTP/1.1 200 OK":
            raise Fault(f"{status}: {lines}")
        headers = dict(line.lower().split(": ") for line in lines)
        return json.loads(self.take(int(headers["content-length"])))

    def message(self, method, params=None):
        self.last_id += 1
        return {"id": self.last_id, "method": method, **({} if params is None else {"params": params})}

    def request(self, method, params=None):
        self.write(self.frame(self.message(method, params)))
        return self.last_id

    def answer(self, number):
        """The result of the request, which must be the next message."""
        message = self.receive()
        if message.get("id") != number or "method" in message:
            raise Fault(f"not an answer to {number}: {message}")
        if "error" in message:
            raise Fault(f"refused: {message['error']}")
        return message["result"]

    def call(self, method, params=None):
        return self.answer(self.request(method, params))

    def close(self):
        self.socket.close()
