"""A server that plays a script: what each visit is answered with, byte by byte, and what it should have asked.

It stands for sluiced and for what may stand in front of it, in situations that are hard to bring about in a real one. A
client is right if it gives exactly the messages that the situation wants, in order, and ends as it should."""

import dataclasses
import json
import socket
import struct
import threading
from urllib.parse import parse_qs, urlsplit

PATIENCE_S = 30


@dataclasses.dataclass(frozen=True)
class Visit:
    """One connection: `asks` is what its request must say (since, token, ...); then the steps."""
    steps: tuple
    asks: dict = dataclasses.field(default_factory=dict)


def visit(*steps, **asks):
    return Visit(steps, asks)


def head(status=200, reason="OK", content_type="text/event-stream", **headers):
    lines = [f"HTTP/1.1 {status} {reason}", f"Content-Type: {content_type}", "Transfer-Encoding: chunked",
             *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return ("bytes", ("\r\n".join(lines) + "\r\n\r\n").encode())


def chunk(data):
    return ("bytes", f"{len(data):x}\r\n".encode() + data + b"\r\n")


def sse(message, cursor=None):
    """A message, with its cursor in an `id:` line."""
    line = f"id: {cursor}\n" if cursor is not None else ""
    return f"{line}event: {message['type']}\ndata: {json.dumps(message)}\n\n".encode()


def post(number, **members):
    return {"id": str(number), "type": "post", "post": {"id": str(number), "user": {"id": "1"}, "text": "tea"}, **members}


def events(*numbers):
    return tuple(chunk(sse(post(number), number)) for number in numbers)


def say(message, cursor=None):
    return chunk(sse(message, cursor))


def disconnect(code, cursor=None, **members):
    message = {"type": "disconnect", "code": code, "reason": "as the script says", **members}
    if cursor is not None:
        message["cursor"] = str(cursor)
    return chunk(sse(message))


END = ("bytes", b"0\r\n\r\n")       # of the body, properly
CUT = ("cut",)                      # the connection, in the middle of whatever it is
RESET = ("reset",)
COMPLETE = (disconnect("complete"), END)


def answer(status, body=b"", content_type="application/json", **headers):
    lines = [f"HTTP/1.1 {status} Answer", f"Content-Length: {len(body)}", f"Content-Type: {content_type}",
             *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return ("bytes", ("\r\n".join(lines) + "\r\n\r\n").encode() + body)


def refuse(status, code, **headers):
    return answer(status, json.dumps({"error": {"code": code, "message": "as the script says"}}).encode(), **headers)


class ScriptedServer:
    """Plays the visits one after the other; who comes again behind the last one is told that it is complete."""

    def __init__(self, visits):
        self._visits = list(visits)
        self.faults = []
        self.requests = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    @property
    def unplayed(self):
        return len(self._visits)

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(PATIENCE_S)
                try:
                    self._play(connection)
                except OSError:
                    pass  # the client has left

    def _read_request(self, connection):
        text = b""
        while b"\r\n\r\n" not in text:
            piece = connection.recv(65536)
            if not piece:
                return None
            text += piece
        first, *lines = text.split(b"\r\n\r\n")[0].decode().split("\r\n")
        target = urlsplit(first.split()[1])
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        asked = {name: values[0] for name, values in parse_qs(target.query).items()}
        asked.update(path=target.path, token=headers.get("authorization", "").removeprefix("Bearer "))
        if "last-event-id" in headers:
            asked["since"] = headers["last-event-id"]
        return asked

    def _play(self, connection):
        asked = self._read_request(connection)
        if asked is None:
            return
        self.requests.append(asked)
        now = self._visits.pop(0) if self._visits else visit(head(), *COMPLETE)
        for name, wanted in now.asks.items():
            if asked.get(name) != wanted:
                self.faults.append(f"visit {len(self.requests)}: {name} is {asked.get(name)!r}, not {wanted!r}")
        for step in now.steps:
            if step[0] == "bytes":
                connection.sendall(step[1])
            elif step[0] == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            elif step[0] == "silence":
                self._wait_until_it_leaves(connection)
                return
            else:
                return
        connection.shutdown(socket.SHUT_WR)
        self._wait_until_it_leaves(connection)

    @staticmethod
    def _wait_until_it_leaves(connection):
        while connection.recv(65536):
            pass
