"""Behaves like a browser's EventSource according to the HTML standard: it reconnects when its stream ends or breaks,
with the id of the last event; and after an answer other than 200 with text/event-stream it gives up for good."""

import contextlib
import json
import threading

from .http import HttpConnection, form_bytes
from .waiting import Deadline, DeadlinePassed, eventually

LONGEST_PAUSE_S = 0.3  # even if the server asks for more: tests do not wait


class EventSource:
    def __init__(self, port, target, token, tls):
        self.port, self.target, self.token, self.tls = port, target, token, tls
        self.texts = []  # of posts
        self.tries = 0
        self.gave_up = None  # the answer after which it gave up
        self.last_id = None
        self._pause_s = LONGEST_PAUSE_S
        self._connection = None
        self._closing = threading.Event()
        self._trying = threading.Lock()  # locked during an attempt
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._closing.set()
        self._thread.join(Deadline().seconds)
        assert not self._thread.is_alive()

    def wait_texts(self, texts):
        """Waits until the texts of all posts so far are these; it must not have given up."""
        eventually(lambda: self.gave_up or len(self.texts) >= len(texts), f"{texts}, after {self.texts}")
        assert not self.gave_up, f"it gave up at {self.gave_up}"
        assert self.texts == texts

    @contextlib.contextmanager
    def holding(self):
        """Prevents reconnecting; an attempt in progress has ended."""
        with self._trying:
            yield

    def _run(self):
        while not self._closing.is_set() and not self.gave_up:
            with self._trying:
                self.tries += 1
                try:
                    with HttpConnection(self.port, tls=self.tls) as connection:
                        self._read(connection)
                except (ConnectionError, OSError):
                    pass  # a network error: it reconnects
            self._closing.wait(self._pause_s)

    def _read(self, connection):
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {self.token}"}
        if self.last_id is not None:
            headers["Last-Event-ID"] = self.last_id
        connection.send(form_bytes("GET", self.target, headers))
        response = connection.read_head()
        if response.status != 200 or not response.headers.get("content-type", "").startswith("text/event-stream"):
            self.gave_up = response
            return
        text = b""
        while (some := self._more(connection, response)) is not None:
            text += some
            while b"\n\n" in text:
                event, text = text.split(b"\n\n", 1)
                self._take(event.decode())

    def _more(self, connection, response):
        """Returns what has arrived of the body; None: it has ended."""
        is_chunked = response.headers.get("transfer-encoding") == "chunked"
        left = 0 if is_chunked else getattr(response, "left", int(response.headers["content-length"]))
        while (is_chunked or left) and not connection.buffer and not (connection.is_tls and connection.socket.pending()):
            if self._closing.is_set():
                return None
            try:
                Deadline(0.05).wait_readable(connection)
                break
            except DeadlinePassed:
                continue
        if is_chunked:
            return connection.read_chunk(Deadline(what="a chunk")) or None
        some = connection.read_exactly(left, Deadline(what="a body"))
        response.left = 0
        return some or None

    def _take(self, event):
        data = []
        for line in event.splitlines():
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name == "id":
                self.last_id = value
            elif name == "retry":
                self._pause_s = min(int(value) / 1000, LONGEST_PAUSE_S)
        message = json.loads("\n".join(data)) if data else {}
        if message.get("type") == "post":
            self.texts.append(message["post"]["text"])
