"""Streams for asyncio: `async for event in client.filter(track="tea")`. Needs httpx, or websockets."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Protocol

from .aio_filters import FilterStream
from .aio_tokens import Token, Tokens
from .api import Streams
from .errors import SluiceError
from .filters import Filter, Filters
from .merge import Merge
from .messages import Message
from .session import Complete, Given, Interrupted, Options, Session
from .store import CursorStore

QUEUE_SIZE = 1000


class Transport(Protocol):
    async def close(self) -> None: ...

    def given(self, session: Session, tokens: Tokens) -> AsyncGenerator[Given, None]:
        """Yields what one connection delivers. Raises OSError, or an error from Session."""


def over_http(options: Options, context: ssl.SSLContext | None) -> Transport:
    from .aio_http import OverHttp
    return OverHttp(options, context)


def over_websocket(options: Options, context: ssl.SSLContext | None) -> Transport:
    from .aio_websocket import OverWebSocket
    return OverWebSocket(options, context)


class Client(Streams[AsyncIterator[Message]]):
    """`url`: of the server; with two or more, all are read and each event is passed on once. `token`: a JWT, or a
    function or coroutine function that returns a new one, called before the old one expires. `transport`: `http`, whose
    cursors are always exact, with httpx; or `websocket`, with websockets."""

    def __init__(self, url: str | Sequence[str], token: Token, options: Options = Options(),
                 context: ssl.SSLContext | None = None, transport: Literal["http", "websocket"] = "http") -> None:
        self._urls = [url] if isinstance(url, str) else list(url)
        self._options, self._tokens = options, Tokens(token)
        self._context, self._transport = context, transport
        self._transports: dict[str, Transport] = {}
        self._closing = asyncio.Event()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all streams, even those that other tasks read: their iterators stop."""
        self._closing.set()
        for transport in self._transports.values():
            await transport.close()

    def _over(self, name: str) -> Transport:
        """Created, and its package imported, when it is needed."""
        if name not in self._transports:
            make = {"http": over_http, "websocket": over_websocket}[name]
            self._transports[name] = make(self._options, self._context)
        return self._transports[name]

    # --- streams ---

    def filters(self, filters: Mapping[str, Filter], *, store: CursorStore | None = None, name: str | None = None,
                **parameters: Any) -> FilterStream:
        """What matches any of these filters, which you name. Uses a WebSocket, and needs websockets."""
        servers = [Filters(filters) for _ in self._urls]
        return FilterStream(self._all_given(self._sessions("filters", parameters, store, name, servers)), servers)

    def _open(self, stream: str, parameters: dict[str, Any], store: CursorStore | None,
              name: str | None) -> AsyncIterator[Message]:
        return self._read(self._sessions(stream, parameters, store, name))

    async def _read(self, sessions: list[Session]) -> AsyncIterator[Message]:
        async with contextlib.aclosing(self._all_given(sessions)) as all_given:
            async for session, given in all_given:
                if given.message is not None:
                    yield given.message
                session.commit(given.cursor)

    def _all_given(self, sessions: list[Session]) -> AsyncGenerator[tuple[Session, Given], None]:
        return self._tagged(sessions[0]) if len(sessions) == 1 else self._merge(sessions)

    async def _tagged(self, session: Session) -> AsyncGenerator[tuple[Session, Given], None]:
        async with contextlib.aclosing(self._given(session)) as all_given:
            async for given in all_given:
                yield session, given

    async def _given(self, session: Session) -> AsyncGenerator[Given, None]:
        transport = self._over("websocket" if session.filters else self._transport)
        while not self._closing.is_set():
            why: Exception = Interrupted("the connection has ended")
            try:
                async with contextlib.aclosing(transport.given(session, self._tokens)) as all_given:
                    async for given in all_given:
                        yield given
            except (OSError, Interrupted, Complete, SluiceError) as error:
                why = error
            if self._closing.is_set() or isinstance(why, Complete):
                return
            if isinstance(why, Interrupted) and why.needs_token:
                self._tokens.drop(session, why)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), session.retry(why))

    # --- several servers ---

    async def _merge(self, sessions: list[Session]) -> AsyncGenerator[tuple[Session, Given], None]:
        all_given: asyncio.Queue[tuple[Session, Given | Exception | None]] = asyncio.Queue(QUEUE_SIZE)

        async def read(session: Session) -> None:
            try:
                async for one in self._given(session):
                    await all_given.put((session, one))
                await all_given.put((session, None))
            except Exception as error:
                await all_given.put((session, error))

        merge = Merge(len(sessions))
        tasks = [asyncio.create_task(read(session)) for session in sessions]
        try:
            while not merge.is_over:
                session, one = await all_given.get()
                message = merge.take(one)
                if isinstance(one, Given):
                    yield session, Given(message, one.cursor)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
