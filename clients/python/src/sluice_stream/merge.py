"""The same events from more than one server, each once."""

from collections import OrderedDict
from typing import Any

from .messages import Message

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
