"""Reads streams as messages, over any transport.

HttpStream and websocket.WebSocket have the same methods: next(), until(), closed(), close()."""

import json
import threading
import zlib

from .http import ConnectionEnded, HttpConnection, form_bytes
from .waiting import Deadline, DeadlinePassed
from .zstd import ZstdFrames

CONTROL = {"hello", "gap", "warning", "disconnect", "cursor", "sampling"}


class Message:
    """One JSON object from the server, with the metadata of its stream format."""

    def __init__(self, raw, sse_id=None, sse_event=None):
        self.raw = raw
        self.json = json.loads(raw)
        assert isinstance(self.json, dict), raw
        self.sse_id, self.sse_event = sse_id, sse_event

    @property
    def type(self):
        return self.json.get("type")

    @property
    def is_control(self):
        return self.type in CONTROL

    def __getitem__(self, key):
        return self.json[key]

    def __contains__(self, key):
        return key in self.json

    def __repr__(self):
        return f"<{self.raw!r} id={self.sse_id} event={self.sse_event}>"


class _KeepAlive:
    type = "keep-alive"
    is_control = True


KEEPALIVE = _KeepAlive()


class Refused(Exception):
    """The stream was not opened; `response` has the reason."""

    def __init__(self, response):
        super().__init__(repr(response))
        self.response = response


class Stream:
    """What all streams have in common; next() is the transport's."""

    keepalives = 0
    shows_keepalives = False  # if set, next() returns KEEPALIVE for each

    def next(self, seconds=None):
        """Returns the next message; None: the server ended the stream properly."""
        raise NotImplementedError

    def wait_keepalives(self, count, seconds=None):
        """Waits for this many keep-alives in a row; a message before them is an error."""
        self.shows_keepalives = True
        deadline = Deadline(seconds, "keep-alives")
        for _ in range(count):
            message = self.next(deadline.left())
            assert message is KEEPALIVE, f"not a keep-alive: {message}"
        self.shows_keepalives = False

    def until(self, wanted, seconds=None):
        """Returns the messages up to and including the first that `wanted` (a function, or an event id) matches."""
        if not callable(wanted):
            wanted_id, wanted = str(wanted), lambda m: m.json.get("id") == wanted_id
        deadline = Deadline(seconds, "the message a test waits for")
        messages = []
        while True:
            message = self.next(deadline.left())
            if message is None:
                raise AssertionError(f"the stream ended before; it brought {messages[-3:]}")
            messages.append(message)
            if wanted(message):
                return messages

    def to_end(self, seconds=None):
        """Returns every message until the server ends the stream."""
        deadline = Deadline(seconds, "the end of the stream")
        messages = []
        while (message := self.next(deadline.left())) is not None:
            messages.append(message)
        return messages

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class HttpStream(Stream):
    """A chunked HTTP response: ndjson, delimited or sse; decompressed if it is gzip or zstd."""

    CONTENT_TYPE = {"ndjson": "application/x-ndjson", "delimited": "application/x-ndjson",
                    "sse": "text/event-stream"}

    def __init__(self, port, target, transport, method="GET", body=None, headers=None,
                 receive_buffer=None, tls=None, dictionary=None):
        self.transport = transport
        self.connection = HttpConnection(port, receive_buffer, tls)
        sent = dict(headers or {})
        if transport == "sse":
            sent.setdefault("Accept", "text/event-stream")
        if transport == "delimited" and "delimited=" not in target:
            target += ("&" if "?" in target else "?") + "delimited=length"
        if method == "POST":
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
            body = body or b""
        self.connection.send(form_bytes(method, target, sent, body))
        self.response = self.connection.read_head()
        if self.response.status != 200:
            length = int(self.response.headers.get("content-length", 0))
            self.response.body = self.connection.read_exactly(
                length, Deadline(what="the body of a refusal"))
            self.connection.close()
            raise Refused(self.response)
        assert self.response.headers["transfer-encoding"] == "chunked", self.response
        content_type = self.response.headers["content-type"].split(";")[0]
        assert content_type in (self.CONTENT_TYPE[transport], "application/json"), self.response
        encoding = self.response.headers.get("content-encoding")
        assert encoding in (None, "gzip", "zstd"), self.response
        self.decoder = None
        if encoding:
            self.decoder = zlib.decompressobj(16 + zlib.MAX_WBITS) if encoding == "gzip" else ZstdFrames(dictionary)
        self.bytes = bytearray()
        self.ended = False
        self.last_event_id = None
        self.retry_ms = None

    def fileno(self):
        return self.connection.fileno()

    def _more(self, deadline):
        """Appends the next chunk's bytes; False: the body has ended."""
        if self.ended:
            return False
        chunk = self.connection.read_chunk(deadline)
        if not chunk:
            self.ended = True
            assert not self.decoder or self.decoder.eof, "the body ends inside of what is compressed"
            return False
        self.bytes += self.decoder.decompress(chunk) if self.decoder else chunk
        assert not self.decoder or not self.decoder.unused_data, "something behind the end of gzip"
        return True

    def _line(self, deadline, ending):
        """Returns the next line of the body without its terminator; None: the body has ended."""
        while True:
            end = self.bytes.find(b"\n")
            if end >= 0:
                line = bytes(self.bytes[:end + 1])
                del self.bytes[:end + 1]
                assert line.endswith(ending), f"line not ended by {ending!r}: {line!r}"
                return line[:-len(ending)]
            if not self._more(deadline):
                assert not self.bytes, f"the body ends inside a line: {bytes(self.bytes)!r}"
                return None

    def next(self, seconds=None):
        deadline = Deadline(seconds, "the next message of a stream")
        return {"ndjson": self._next_ndjson, "delimited": self._next_delimited,
                "sse": self._next_sse}[self.transport](deadline)

    def _next_ndjson(self, deadline):
        while (line := self._line(deadline, b"\r\n")) is not None:
            if line:
                return Message(line)
            self.keepalives += 1
            if self.shows_keepalives:
                return KEEPALIVE
        return None

    def _next_delimited(self, deadline):
        while (line := self._line(deadline, b"\r\n")) is not None:
            if not line:
                self.keepalives += 1
                if self.shows_keepalives:
                    return KEEPALIVE
                continue
            assert line.isdigit(), f"not a length: {line!r}"
            length = int(line)
            while len(self.bytes) < length:
                if not self._more(deadline):
                    raise ConnectionEnded("the body ends inside a message")
            message = bytes(self.bytes[:length])
            del self.bytes[:length]
            assert message.endswith(b"\r\n"), f"the length does not cover the CRLF: {message!r}"
            return Message(message[:-2])
        return None

    def _next_sse(self, deadline):
        data, event, event_id, comment = [], None, None, False
        while (line := self._line(deadline, b"\n")) is not None:
            line = line[:-1] if line.endswith(b"\r") else line
            if not line:
                if event_id is not None:
                    self.last_event_id = event_id
                if data:
                    return Message(b"\n".join(data), event_id, event)
                if comment or event_id is not None:
                    self.keepalives += 1
                    if self.shows_keepalives:
                        return KEEPALIVE
                event, event_id, comment = None, None, False
                continue
            name, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if not name:
                comment = True
            elif name == b"data":
                data.append(value)
            elif name == b"event":
                event = value.decode()
            elif name == b"id":
                event_id = value.decode()
            elif name == b"retry":
                self.retry_ms = int(value)
            else:
                raise AssertionError(f"not a field of an event stream: {line!r}")
        return None

    def closed(self, seconds=None):
        """Waits until the server has closed the connection as well."""
        self.connection.wait_closed(seconds)

    def close(self):
        self.connection.close()


class Collector:
    """Reads a stream in its own thread, so that a test can follow many at once."""

    def __init__(self, stream):
        self.stream = stream
        self.messages = []
        self.ids = set()  # of the messages
        self.error = None
        self.ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            while (message := self.stream.next(3600)) is not None:
                with self._changed:
                    self.messages.append(message)
                    self.ids.add(message.json.get("id"))
                    self._changed.notify_all()
        except (Exception, DeadlinePassed) as error:  # passed to the test by wait()
            self.error = error
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def wait(self, condition, what, seconds=None):
        """Waits until condition(messages) holds."""
        deadline = Deadline(seconds, what)
        with self._changed:
            while not condition(self.messages):
                if self.ended:
                    raise AssertionError(f"{what}: the stream ended before "
                                         f"({self.error!r}, {len(self.messages)} messages)")
                self._changed.wait(deadline.left())
        return self.messages

    def wait_end(self, seconds=None):
        """Waits until the server has ended the stream properly; returns all messages."""
        deadline = Deadline(seconds, "the end of the stream")
        with self._changed:
            while not self.ended:
                self._changed.wait(deadline.left())
        assert self.error is None, repr(self.error)
        return self.messages

    def wait_id(self, event_id, seconds=None):
        """Waits for the message with this id; returns all messages so far."""
        return self.wait(lambda _: str(event_id) in self.ids, f"message {event_id}", seconds)

    def events(self):
        return [m for m in self.messages if not m.is_control]

    def close(self):
        self.stream.close()
        self._thread.join(Deadline().seconds)
