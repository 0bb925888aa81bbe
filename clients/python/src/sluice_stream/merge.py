"""The same events from several servers, each once."""

from collections import OrderedDict
from typing import Any

from .messages import Message
from .session import Given

REMEMBERED = 100_000


class Seen:
    """The ids of the last messages. Messages without an id (a gap, a warning) belong to one server."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._ids: OrderedDict[tuple[Any, ...], None] = OrderedDict()
        self._remembered = remembered

    def is_new(self, message: Message) -> bool:
        identity = message.get("id")
        if identity is None:
            return True
        key = (message["type"], identity, message.get("revision"))
        if key in self._ids:
            return False
        self._ids[key] = None
        if len(self._ids) > self._remembered:
            self._ids.popitem(last=False)
        return True


class Merge:
    """Merges several sessions. When one ends, the others continue; the end of the last one is the end."""

    def __init__(self, count: int) -> None:
        self._seen, self._left = Seen(), count
        self._last: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Raises the error with which a session has ended."""
        if self._left == 0 and self._last is not None:
            raise self._last
        return self._left == 0

    def take(self, one: Given | BaseException | None) -> Message | None:
        """Takes one item from a session; None is its end. Returns the message if it is new."""
        if isinstance(one, Given):
            return one.message if one.message is not None and self._seen.is_new(one.message) else None
        self._left -= 1
        self._last = one or self._last
        return None
