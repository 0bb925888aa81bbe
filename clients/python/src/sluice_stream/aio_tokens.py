"""The token of a client for asyncio: a text, or a function that returns a new one."""

import asyncio
from collections.abc import Awaitable, Callable

from .errors import Disconnected
from .session import Interrupted, Session, token_is_fresh

Token = str | Callable[[], str | Awaitable[str]]


class Tokens:
    def __init__(self, source: Token) -> None:
        self._source = source
        self._held: str | None = None
        self._asking = asyncio.Lock()

    async def fresh(self) -> str:
        if isinstance(self._source, str):
            return self._source
        async with self._asking:
            if not token_is_fresh(self._held):
                given = self._source()
                self._held = given if isinstance(given, str) else await given
            assert self._held is not None
            return self._held

    async def next(self, used: str) -> str | None:
        """Returns a token to replace `used`; None: there is no other, and the connection ends with it."""
        if isinstance(self._source, str):
            return None
        async with self._asking:
            if self._held == used:
                self._held = None
        return await self.fresh()

    def drop(self, session: Session, why: Interrupted) -> None:
        """It was refused as expired."""
        if isinstance(self._source, str):
            raise Disconnected("token_expired", "and there is no other token", session.cursor) from why
        self._held = None
