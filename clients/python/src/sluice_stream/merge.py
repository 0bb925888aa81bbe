"""The same events from more than one server, each once."""

from collections import OrderedDict
from typing import Any

from .messages import Message
from .session import Given

REMEMBERED = 100_000


class Seen:
    """The ids of the last messages. What has none (a gap, a warning) is each server's own."""

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
    """What is given of several sessions. One that ends is done without; the end of the last one is the end of all."""

    def __init__(self, count: int) -> None:
        self._seen, self._left = Seen(), count
        self._last: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Raises what a session has ended with."""
        if self._left == 0 and self._last is not None:
            raise self._last
        return self._left == 0

    def take(self, one: Given | BaseException | None) -> Message | None:
        """One thing that a session gave; None is its end. The message, if it is new."""
        if isinstance(one, Given):
            return one.message if one.message is not None and self._seen.is_new(one.message) else None
        self._left -= 1
        self._last = one or self._last
        return None
