"""Streams for asyncio: `async for event in client.filter(track="tea")`. Needs httpx."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any

import httpx

from .api import Streams
from .errors import Disconnected, SluiceError
from .merge import Merge
from .messages import Message
from .session import Complete, Given, Interrupted, Options, Session, token_is_fresh
from .store import CursorStore

Token = str | Callable[[], str | Awaitable[str]]
CONNECT_S = 30.0
QUEUE_SIZE = 1000


class Client(Streams[AsyncIterator[Message]]):
    """`url`: of the server; of two or more, all are read and each event is given once. `token`: a JWT, or what gives a
    new one, also by a coroutine, which is asked before it ends."""

    def __init__(self, url: str | Sequence[str], token: Token, options: Options = Options(),
                 context: ssl.SSLContext | None = None) -> None:
        self._urls = [url] if isinstance(url, str) else list(url)
        self._token, self._options = token, options
        self._held: str | None = None
        self._renewing = asyncio.Lock()
        self._http = httpx.AsyncClient(
            verify=context or True, timeout=httpx.Timeout(CONNECT_S, read=options.silence_s, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0), trust_env=False)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    # --- tokens ---

    async def _fresh_token(self) -> str:
        if isinstance(self._token, str):
            return self._token
        async with self._renewing:
            if not token_is_fresh(self._held):
                given = self._token()
                self._held = given if isinstance(given, str) else await given
            assert self._held is not None
            return self._held

    def _renew(self, session: Session, why: Interrupted) -> None:
        if isinstance(self._token, str):
            raise Disconnected("token_expired", "and there is no other token", session.cursor) from why
        self._held = None

    async def _renewed(self, session: Session, base: str, connection_id: str | None, used: str) -> str:
        """The token that the connection has from now on. Raises Interrupted when it is to be made anew with it."""
        if isinstance(self._token, str):
            return used  # until it ends
        async with self._renewing:
            if self._held == used:
                self._held = None
        token = await self._fresh_token()
        answer = await self._http.put(base + session.renewal_target(connection_id), headers=session.headers(token))
        if answer.status_code != 200:
            raise Interrupted(f"{answer.status_code}: the new token was refused", 0)
        return token

    # --- streams ---

    def _open(self, stream: str, parameters: dict[str, Any], store: CursorStore | None,
              name: str | None) -> AsyncIterator[Message]:
        sessions = self._sessions(stream, parameters, store, name)
        if len(sessions) == 1:
            return self._read(sessions[0])
        return self._merge(sessions)

    async def _read(self, session: Session) -> AsyncIterator[Message]:
        async with contextlib.aclosing(self._given(session)) as all_given:
            async for given in all_given:
                if given.message is not None:
                    yield given.message
                session.commit(given.cursor)

    async def _given(self, session: Session) -> Any:
        while True:
            try:
                async with contextlib.aclosing(self._connection(session)) as all_given:
                    async for given in all_given:
                        yield given
                why: Exception = Interrupted("the body has ended")
            except (httpx.HTTPError, OSError) as error:
                why = error
            except (Interrupted, Complete, SluiceError) as error:
                why = error
            if isinstance(why, Complete):
                return
            if isinstance(why, Interrupted) and why.needs_token:
                self._renew(session, why)
            await asyncio.sleep(session.retry(why))

    async def _connection(self, session: Session) -> Any:
        url = session.base.split("://", 1)[0] + "://" + session.base.split("://", 1)[1].split("/", 1)[0]
        token = await self._fresh_token()
        async with self._http.stream("GET", url + session.target(), headers=session.headers(token)) as response:
            if response.status_code != 200:
                body = await response.aread()
                raise session.refused(response.status_code, response.headers, body)
            session.opened(response.headers.get("content-type", ""))
            async for piece in response.aiter_raw():
                for given in session.feed(piece):
                    if given.expires:
                        token = await self._renewed(session, url, response.headers.get("sluice-connection"), token)
                    else:
                        yield given

    # --- from more than one server ---

    async def _merge(self, sessions: list[Session]) -> AsyncIterator[Message]:
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
                if (message := merge.take(one)) is not None:
                    yield message
                if isinstance(one, Given):
                    session.commit(one.cursor)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
