"""A stream of what matches any of its filters, for asyncio."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Any

from .filters import Filter, Filters
from .messages import FilterWarning, Message
from .session import Given, Session

OfSession = tuple[Session, Given]


class FilterStream:
    """What matches any of its filters; `matching_rules` of an event says which ones. They may be changed while it is
    read: each change takes effect between two events. Waiting for an answer also reads the stream, so it may be done
    within the loop, too."""

    def __init__(self, given: AsyncGenerator[OfSession, None], servers: list[Filters]) -> None:
        self._given, self._servers = given, servers
        self._next: asyncio.Task[OfSession] | None = None
        self._unread: deque[OfSession] = deque()
        self._taken: OfSession | None = None  # committed when the next one is requested
        self._end: BaseException | None = None

    async def __aenter__(self) -> "FilterStream":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if self._next:
            self._next.cancel()
            await asyncio.wait({self._next})
        await self._given.aclose()
        self._over(StopAsyncIteration())

    def __aiter__(self) -> "FilterStream":
        return self

    async def __anext__(self) -> Message:
        while True:
            if self._taken:
                session, given = self._taken
                session.commit(given.cursor)
            while not self._unread:
                if self._end:
                    raise self._end
                await self._read()
            _, given = self._taken = self._unread.popleft()
            if given.message is not None:
                return given.message

    async def subscribe(self, name: str, **wanted: Any) -> list[FilterWarning]:
        """Adds a filter, or replaces the one with this name; no event is missed, and none comes twice. Returns when the
        server has accepted it; if it raises Refused, nothing has changed."""
        return await self._change(name, wanted)

    async def unsubscribe(self, name: str) -> None:
        await self._change(name, None)

    async def _change(self, name: str, wanted: Filter | None) -> list[FilterWarning]:
        answers = {asyncio.wrap_future(server.change(name, wanted)) for server in self._servers}
        while True:  # the first server that answers counts: another one may be unavailable
            for answer in answers:
                if answer.done():
                    return answer.result()
            await self._read(answers)

    async def _read(self, answers: Any = frozenset()) -> None:
        """Reads until there is a message, or one of `answers`. If it is cancelled meanwhile, nothing is lost."""
        if self._next is None and not self._end:
            self._next = asyncio.ensure_future(anext(self._given))
        reading = self._next
        await asyncio.wait({*answers, *([reading] if reading else [])}, return_when=asyncio.FIRST_COMPLETED)
        if reading is None or reading is not self._next or not reading.done():
            return  # another task has taken it
        self._next = None
        try:
            self._unread.append(reading.result())
        except BaseException as why:
            self._over(why)

    def _over(self, why: BaseException) -> None:
        self._end = why
        for server in self._servers:
            server.end(why if isinstance(why, Exception) and not isinstance(why, StopAsyncIteration) else None)
