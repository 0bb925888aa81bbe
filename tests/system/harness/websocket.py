"""Two WebSocket clients: the `websockets` library, strict and independent, and a low-level one that can send what no
library would."""

import asyncio
import base64
import hashlib
import os
import struct
import threading
import zlib

import websockets
from websockets.version import version as websockets_version

from .http import ConnectionEnded, HttpConnection, form_bytes
from .streams import KEEPALIVE, Message, Refused, Stream
from .waiting import Deadline, DeadlinePassed
from .zstd import ZstdFrames

TEXT, BINARY, CLOSE, PING, PONG, CONTINUATION = 1, 2, 8, 9, 10, 0
# The library's name for additional headers.
ADDED_HEADERS = "extra_headers" if int(websockets_version.split(".")[0]) < 14 \
    else "additional_headers"


class _Loop:
    """The event loop of all library clients, in its own thread."""

    _loop = None
    _lock = threading.Lock()

    @classmethod
    def run(cls, coroutine, seconds):
        with cls._lock:
            if cls._loop is None:
                cls._loop = asyncio.new_event_loop()
                threading.Thread(target=cls._loop.run_forever, daemon=True).start()
        waiting = asyncio.run_coroutine_threadsafe(coroutine, cls._loop)
        try:
            return waiting.result(seconds)
        except TimeoutError:
            waiting.cancel()
            raise DeadlinePassed(f"nothing over the WebSocket within {seconds:g} s") from None


class UpgradeRefused(AssertionError):
    pass


class WebSocket(Stream):
    """A stream over WebSocket, read by the `websockets` library."""

    def __init__(self, port, target, headers=None, subprotocols=None, tls=None, compression=None,
                 extensions=None):
        self.close_code = self.close_reason = None

        async def open_it():
            return await websockets.connect(
                f"{'wss' if tls else 'ws'}://localhost:{port}{target}", host="127.0.0.1", ssl=tls,
                subprotocols=subprotocols, compression=compression, extensions=extensions, max_size=None, max_queue=None,
                ping_interval=None, **{ADDED_HEADERS: headers or {}})
        try:
            self.socket = _Loop.run(open_it(), Deadline().seconds)
        except websockets.InvalidHandshake as refusal:
            raise UpgradeRefused(f"{refusal}; upgrade() shows the answer") from None
        self.subprotocol = self.socket.subprotocol

    def next(self, seconds=None):
        deadline = Deadline(seconds, "the next WebSocket message")
        try:
            frame = _Loop.run(self.socket.recv(), deadline.left())
        except websockets.ConnectionClosed:
            self.close_code, self.close_reason = self.socket.close_code, self.socket.close_reason
            return None
        assert isinstance(frame, str), "a binary message"
        return Message(frame)

    def send(self, text):
        _Loop.run(self.socket.send(text), Deadline().seconds)

    def ping(self):
        """Sends a ping and waits for its pong."""
        async def there_and_back():
            await (await self.socket.ping())
        _Loop.run(there_and_back(), Deadline(what="a pong").seconds)

    def close(self):
        _Loop.run(self.socket.close(), Deadline().seconds)


def upgrade(port, target, headers=None, receive_buffer=None, tls=None):
    """Requests a WebSocket manually: returns (connection, response). 101 leaves the connection open, any other answer
    is read to its end."""
    key = base64.b64encode(os.urandom(16)).decode()
    sent = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Version": "13"}
    sent.update(headers or {})
    connection = HttpConnection(port, receive_buffer, tls)
    connection.send(form_bytes("GET", target, sent))
    response = connection.read_head()
    if response.status == 101:
        digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        assert response.headers["sec-websocket-accept"] == base64.b64encode(digest).decode()
    else:
        length = int(response.headers.get("content-length", 0))
        response.body = connection.read_exactly(length, Deadline(what="a refusal's body"))
    return connection, response


def frame(opcode, payload=b"", final=True, masked=True, reserved=0, length=None):
    """A client's frame; every part of it may deliberately be wrong."""
    payload = payload.encode() if isinstance(payload, str) else payload
    size = len(payload) if length is None else length
    head = bytes([(0x80 if final else 0) | reserved << 4 | opcode])
    mask_bit = 0x80 if masked else 0
    if size < 126:
        head += bytes([mask_bit | size])
    elif size < 65536:
        head += bytes([mask_bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([mask_bit | 127]) + struct.pack(">Q", size)
    if not masked:
        return head + payload
    mask = os.urandom(4)
    return head + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(payload))


class RawWebSocket(Stream):
    """A WebSocket without a library. Checks every frame of the server."""

    inflater = None  # of a compressed stream
    deflated = 0  # number of compressed messages

    def __init__(self, port, target, headers=None, receive_buffer=None, tls=None, dictionary=None):
        self.connection, self.response = upgrade(port, target, headers, receive_buffer, tls)
        if self.response.status != 101:
            raise Refused(self.response)
        if "sec-websocket-extensions" in self.response.headers:
            self.inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        self.decoder = ZstdFrames(dictionary) if dictionary else None
        self.close_code = self.close_reason = None
        self.pongs = []

    def fileno(self):
        return self.connection.fileno()

    def send_frame(self, opcode, payload=b"", **parts):
        self.connection.send(frame(opcode, payload, **parts))

    def read_frame(self, deadline):
        """Returns (opcode, payload) of one frame; the server's frames are whole and unmasked. Compressed ones are
        inflated by an inflater that has seen all of them before, and nothing else."""
        first, second = self.connection.read_exactly(2, deadline)
        is_deflated = self.inflater and first & 0x70 == 0x40 and first & 15 == TEXT
        assert first & 0x70 == 0 or is_deflated, f"reserved bits set: {first:#x}"
        assert first & 0x80, "a fragmented message"
        assert not second & 0x80, "a masked frame from the server"
        opcode, size = first & 15, second & 127
        assert opcode in (TEXT, CLOSE, PING, PONG) or (opcode == BINARY and self.decoder), f"opcode {opcode}"
        if size == 126:
            size, = struct.unpack(">H", self.connection.read_exactly(2, deadline))
        elif size == 127:
            size, = struct.unpack(">Q", self.connection.read_exactly(8, deadline))
        payload = self.connection.read_exactly(size, deadline)
        if is_deflated:
            self.deflated += 1
            payload = self.inflater.decompress(payload + b"\0\0\xff\xff")
            assert not self.inflater.eof and not self.inflater.unconsumed_tail
        if opcode == BINARY:
            before = self.decoder.frames
            opcode, payload = TEXT, self.decoder.decompress(payload)
            assert self.decoder.eof and self.decoder.frames == before + 1, "not one whole frame"
        return opcode, payload

    def next(self, seconds=None):
        deadline = Deadline(seconds, "the next WebSocket message")
        while True:
            try:
                opcode, payload = self.read_frame(deadline)
            except ConnectionError:
                if self.close_code is None:
                    raise ConnectionEnded("closed without a close frame") from None
                return None
            if opcode == TEXT:
                return Message(payload.decode())
            if opcode == PING:
                self.keepalives += 1
                self.send_frame(PONG, payload)
                if self.shows_keepalives:
                    return KEEPALIVE
            elif opcode == PONG:
                self.pongs.append(payload)
            else:
                self.close_code = struct.unpack(">H", payload[:2])[0] if payload else 1005
                self.close_reason = payload[2:].decode()
                self._answer_close(payload)
                return None

    def _answer_close(self, payload):
        try:
            self.send_frame(CLOSE, payload[:2])
        except ConnectionError:
            pass  # the server did not wait for it

    def closed(self, seconds=None):
        self.connection.wait_closed(seconds)

    def close(self):
        self.connection.close()
