"""The streams by name: the same for both kinds of client, whose `_open` defines how they are read."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Generic, TypeVar

from .session import Answers, Options, Session
from .store import CursorStore

Opened = TypeVar("Opened")


class Streams(Generic[Opened]):
    """Parameters are the server's (docs/streaming-api.md); lists are joined with commas; a name that is reserved in
    Python may be written with an underscore, such as `lang_`. `store` stores the cursor, under `name` (by default under
    the stream's path and parameters)."""

    _urls: list[str]
    _options: Options

    def _sessions(self, stream: str, parameters: dict[str, Any], store: CursorStore | None, name: str | None,
                  filters: Sequence[Answers] = ()) -> list[Session]:
        """Returns one session for each server, each with its own cursor."""
        return [Session(url, stream, parameters, store, f"{name or stream}@{url}" if len(self._urls) > 1 else name,
                        self._options, each) for url, each in zip_longest(self._urls, filters)]

    def _open(self, stream: str, parameters: dict[str, Any], store: CursorStore | None, name: str | None) -> Opened:
        raise NotImplementedError

    def filter(self, *, store: CursorStore | None = None, name: str | None = None, **parameters: Any) -> Opened:
        """What matches track, follow, locations or rule."""
        return self._open("filter", parameters, store, name)

    def sample(self, *, store: CursorStore | None = None, name: str | None = None, **parameters: Any) -> Opened:
        """One post in a hundred, or percent=."""
        return self._open("sample", parameters, store, name)

    def firehose(self, *, store: CursorStore | None = None, name: str | None = None, **parameters: Any) -> Opened:
        """Everything that is public."""
        return self._open("firehose", parameters, store, name)

    def home(self, *, store: CursorStore | None = None, name: str | None = None, **parameters: Any) -> Opened:
        """The posts of the users that the token's user follows."""
        return self._open("home", parameters, store, name)

    def counts(self, *, store: CursorStore | None = None, name: str | None = None, **parameters: Any) -> Opened:
        """The number of events in each bucket=."""
        return self._open("counts", parameters, store, name)

    def trends(self, *, store: CursorStore | None = None, name: str | None = None, **parameters: Any) -> Opened:
        """Rising terms."""
        return self._open("trends", parameters, store, name)


__all__ = ["Options", "Streams"]
