"""Streams on WebSockets for asyncio. Needs websockets."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from typing import Any, cast
from urllib.parse import urlsplit

from .aio_tokens import Tokens
from .session import Given, Options, Session
from .websocket import WebSocket

CONNECT_S = 30.0
MAX_UNREAD = 1 << 20


class Wire(asyncio.Protocol):
    """The bytes of a connection. Those that arrived before a reset are read first; asyncio.StreamReader would drop
    them."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._changed = asyncio.Event()
        self._is_over = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if len(self._unread) > MAX_UNREAD:
            self.transport.pause_reading()
        self._changed.set()

    def connection_lost(self, _: Exception | None) -> None:
        self._is_over = True
        self._changed.set()

    async def read(self) -> bytes:
        """Returns empty bytes at the end."""
        while not self._unread and not self._is_over:
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._unread)
        self._unread.clear()
        self.transport.resume_reading()
        return data


class OverWebSocket:
    def __init__(self, options: Options, context: ssl.SSLContext | None) -> None:
        self._options, self._context = options, context
        self._wires: set[Wire] = set()

    async def close(self) -> None:
        for wire in self._wires:
            wire.transport.close()

    async def given(self, session: Session, tokens: Tokens) -> AsyncGenerator[Given, None]:
        """Yields what one connection delivers."""
        token = await tokens.fresh()
        wire = await self._connect(session)
        websocket = WebSocket(session, token)
        self._wires.add(wire)
        session.begun()

        def send(operation: dict[str, Any]) -> None:
            websocket.send(operation)
            wire.transport.write(websocket.to_send())
        is_told = False
        try:
            while True:
                wire.transport.write(websocket.to_send())
                piece = await asyncio.wait_for(wire.read(), self._options.silence_s)
                for text in websocket.receive(piece):
                    for given in session.feed_message(text):
                        if not given.expires:
                            yield given
                        elif (new := await tokens.next(token)) is not None:
                            token = new
                            send({"op": "token", "token": token})
                if session.filters and websocket.is_open and not is_told:
                    is_told = True
                    session.filters.opened(send)
        finally:
            if session.filters:
                session.filters.closed()
            self._wires.discard(wire)
            websocket.close()
            wire.transport.write(websocket.to_send())
            wire.transport.close()

    async def _connect(self, session: Session) -> Wire:
        parts = urlsplit(session.base)
        context = self._context or ssl.create_default_context() if parts.scheme == "https" else None
        connecting = asyncio.get_running_loop().create_connection(
            Wire, parts.hostname or "", parts.port or (443 if context else 80), ssl=context)
        return (await asyncio.wait_for(connecting, CONNECT_S))[1]
