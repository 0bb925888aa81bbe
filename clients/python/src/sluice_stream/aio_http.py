"""Streams over HTTP for asyncio. Needs httpx."""

import ssl
from collections.abc import AsyncGenerator

import httpx

from .aio_tokens import Tokens
from .session import Given, Interrupted, Options, Session

CONNECT_S = 30.0


class OverHttp:
    def __init__(self, options: Options, context: ssl.SSLContext | None) -> None:
        self._http = httpx.AsyncClient(
            verify=context or ssl.create_default_context(), timeout=httpx.Timeout(CONNECT_S, read=options.silence_s, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0), trust_env=False)

    async def close(self) -> None:
        await self._http.aclose()

    async def given(self, session: Session, tokens: Tokens) -> AsyncGenerator[Given, None]:
        """Yields what one connection delivers."""
        token = await tokens.fresh()
        try:
            async with self._http.stream("GET", session.origin + session.target(), headers=session.headers(token)) as response:
                if response.status_code != 200:
                    raise session.refused(response.status_code, response.headers, await response.aread())
                session.opened(response.headers.get("content-type", ""))
                async for piece in response.aiter_raw():
                    for given in session.feed(piece):
                        if given.expires:
                            token = await self._renewed(session, response.headers.get("sluice-connection"), tokens, token)
                        else:
                            yield given
        except httpx.HTTPError as error:
            raise Interrupted(repr(error)) from error

    async def _renewed(self, session: Session, connection_id: str | None, tokens: Tokens, used: str) -> str:
        """Returns the token that the connection has from now on. Raises Interrupted if it must be opened again with it.
        """
        token = await tokens.next(used)
        if token is None:
            return used  # until it expires
        answer = await self._http.put(session.origin + session.renewal_target(connection_id), headers=session.headers(token))
        if answer.status_code != 200:
            raise Interrupted(f"{answer.status_code}: the new token was refused", 0)
        return token
