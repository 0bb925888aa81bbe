"""A stream without its connections: what to request, what the answer means, when to reconnect. No I/O.

The order of calls: target() and headers() make a request; refused(), or opened() and then feed(), handle the answer;
commit() says that a message has been handled; retry() when to reconnect. Server-Sent Events carry an exact cursor with
everything (also while a shard is behind), so they are requested over HTTP. On a WebSocket (begun(), feed_message(),
closed()) the cursor is the greatest id that arrived, or what the server sends as `cursor`."""

import base64
import dataclasses
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, cast
from urllib.parse import urlencode, urlsplit

from .errors import Disconnected, Refused, SluiceError, TooManyTries
from .messages import Message
from .store import CursorStore, MemoryStore

PATHS = {"filter": "/v1/stream/filter", "sample": "/v1/stream/sample", "firehose": "/v1/stream/firehose",
         "home": "/v1/stream/home", "counts": "/v1/stream/counts", "trends": "/v1/stream/trends", "filters": "/v1/stream"}
SILENCE_S = 70.0  # by default the server sends something every 20 s
RENEW_BEFORE_S = 60.0
FIRST_WAIT_S, MAX_WAIT_S = 0.5, 60.0
FINAL = {"token_revoked", "replaced", "ended", "bad_message"}
MAX_LINE = 16 << 20
FIRST_ID = 10_000_000_000_000  # numbers from here on are ids of the log


@dataclasses.dataclass(frozen=True)
class Options:
    """`max_tries`: this many connections in a row may deliver nothing; None: any number. `wait_scale` multiplies the
    pauses between them."""
    max_tries: int | None = None
    silence_s: float = SILENCE_S
    wait_scale: float = 1.0


@dataclasses.dataclass(frozen=True)
class Given:
    """A message, and the position of the stream after it; or only the position. `expires`: the token of this connection
    expires soon, and another one may replace it."""
    message: Message | None
    cursor: str | None
    expires: bool = False


class Interrupted(Exception):
    """The connection is over, and another one must be opened. `wait_ms`: requested by the server."""

    def __init__(self, why: str, wait_ms: int | None = None, needs_token: bool = False) -> None:
        super().__init__(why)
        self.wait_ms, self.needs_token = wait_ms, needs_token


class Complete(Exception):
    """`until` is reached."""


def parameters_of(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Converts Python values for the server: lists joined with commas, booleans in lower case."""
    texts = {}
    for name, value in parameters.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, list | tuple):
            value = ",".join(str(one) for one in value)
        texts[name.rstrip("_")] = str(value)
    return texts


def token_ends(token: str) -> float | None:
    """`exp` of a JWT, in Unix time; None: unknown."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return float(claims["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return None


def token_is_fresh(token: str | None) -> bool:
    if token is None:
        return False
    ends = token_ends(token)
    return ends is None or ends > time.time() + RENEW_BEFORE_S


def parse(text: str) -> dict[str, Any]:
    try:
        return cast(dict[str, Any], json.loads(text))
    except ValueError as error:
        raise Interrupted("a message that is no JSON") from error


class Blocks:
    """Bytes of Server-Sent Events -> blocks (event, data, id). An incomplete block at the end is dropped."""

    def __init__(self) -> None:
        self._buffer = b""
        self._event, self._id = "", None
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[tuple[str, str | None, str | None]]:
        self._buffer += piece
        *lines, self._buffer = self._buffer.split(b"\n")
        if len(self._buffer) > MAX_LINE:
            raise Interrupted("a line without an end")
        for line in lines:
            block = self._line(line.removesuffix(b"\r").decode())
            if block:
                yield block

    def _line(self, line: str) -> tuple[str, str | None, str | None] | None:
        if not line:
            block = self._event, "\n".join(self._data) if self._data else None, self._id
            self._event, self._id, self._data = "", None, []
            return block if block[1] is not None or block[2] is not None else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = cast(Any, value)
        return None


class Answers(Protocol):
    """Reads the answers to operations on a WebSocket: filters.Filters."""

    def answered(self, message: dict[str, Any]) -> bool: ...

    def opened(self, send: Callable[[dict[str, Any]], None]) -> None: ...

    def closed(self) -> None: ...


class Session:
    """One stream, through all of its connections. `filters`: of `/v1/stream`."""

    def __init__(self, url: str, stream: str, parameters: Mapping[str, Any], store: CursorStore | None = None,
                 name: str | None = None, options: Options = Options(), filters: Answers | None = None) -> None:
        self.base = url.rstrip("/")
        self.origin = "://".join(urlsplit(self.base)[:2])
        self._path = PATHS[stream]
        self._parameters = parameters_of(parameters)
        self._store: CursorStore = store or MemoryStore()
        self.name = name or self._path + "?" + urlencode(sorted(self._parameters.items()))
        self.cursor = self._store.load(self.name)
        self.options, self.filters = options, filters
        self._came = False  # something was received on this connection
        self._tries = 0
        self._blocks = Blocks()

    # --- a request ---

    def target(self, **more: str) -> str:
        """`more`: parameters in addition to those of the user."""
        parameters = {**self._parameters, **more}
        if self.cursor is not None:
            parameters["since"] = self.cursor
            parameters.pop("last", None)
        query = urlencode(parameters)
        return urlsplit(self.base).path + self._path + ("?" + query if query else "")

    def websocket_url(self) -> str:
        return "ws" + self.origin.removeprefix("http") + self.target(cursors="true")

    @staticmethod
    def headers(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}", "Accept": "text/event-stream", "Accept-Encoding": "identity"}

    def renewal_target(self, connection_id: str | None) -> str:
        """The path to which a PUT sends another token for the connection."""
        if not connection_id:
            raise Interrupted("a connection without an id", 0)
        return urlsplit(self.base).path + f"/v1/connections/{connection_id}/token"

    # --- its answer ---

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> Exception:
        """Returns the error, to be raised, or passed to retry()."""
        if status == 204:
            return Complete()
        try:
            error = json.loads(body)["error"]
            code, message, param, at = str(error["code"]), str(error["message"]), error.get("param"), error.get("at")
        except (ValueError, KeyError, TypeError):  # from a proxy
            code, message, param, at = "unknown", body[:200].decode(errors="replace"), None, None
        if status == 401 and code in ("token_expired", "no_token"):
            return Interrupted(f"{status} {code}", None, needs_token=True)
        if status in (408, 425, 429) or status >= 500:
            after = headers.get("retry-after", "")
            return Interrupted(f"{status} {code}: {message}", int(after) * 1000 if after.isdigit() else None)
        return Refused(status, code, message, param, at)

    def begun(self) -> None:
        self._blocks = Blocks()
        self._came = False

    def opened(self, content_type: str) -> None:
        self.begun()
        if content_type.split(";")[0].strip() != "text/event-stream":
            raise Interrupted(f"an answer of {content_type or 'no type'}: something else than sluiced gave it")

    def feed(self, piece: bytes) -> Iterator[Given]:
        """Yields the messages in the next piece of the body. Raises Interrupted, Complete, or an error that ends the
        stream."""
        for _, data, cursor in self._blocks.feed(piece):
            self._came = True
            if data is None:
                yield self._give(None, cursor)
            else:
                yield from self._message(parse(data), cursor)

    def feed_message(self, text: str) -> Iterator[Given]:
        """One message of a WebSocket. Raises like feed()."""
        self._came = True
        message = parse(text)
        if "op" not in message:
            yield from self._message(message, self._cursor_of(message))
        elif self.filters and self.filters.answered(message):
            return
        elif "error" in message:
            raise Interrupted(f"the new token was refused: {message['error'].get('code')}", 0)

    def closed(self, code: int | None, why: Exception | None) -> Exception:
        """Returns the error for a WebSocket that was closed without a `disconnect`. A code that is not sluiced's own
        may be a proxy's."""
        if code == 4001:
            return Interrupted("token_expired", 0, needs_token=True)
        final = {4003: "replaced", 4004: "ended"}.get(code or 0)
        return Disconnected(final, f"closed with {code}", self.cursor) if final else Interrupted(f"closed with {code}: {why}")

    def _give(self, message: Message | None, cursor: str | None) -> Given:
        self.cursor = cursor or self.cursor
        return Given(message, cursor)

    def _cursor_of(self, message: dict[str, Any]) -> str | None:
        """Returns the position after a message without a separate cursor."""
        if message.get("type") == "cursor" or isinstance(message.get("cursor"), str):
            return str(message.get("cursor") or message.get("id"))
        place = message.get("to") if message.get("type") == "gap" and "shard" not in message else message.get("id")
        if place is None or not str(place).isdigit() or int(place) < FIRST_ID or message.get("partial"):
            return None
        is_past = self.cursor is not None and self.cursor.isdigit() and int(self.cursor) > int(place)
        return None if is_past else str(place)

    def _message(self, message: dict[str, Any], cursor: str | None) -> Iterator[Given]:
        kind = message.get("type")
        if kind == "disconnect":
            yield self._give(None, message.get("cursor"))
            raise self._disconnect(message)
        if kind == "warning" and message.get("code") == "token_expiring":
            yield Given(None, None, expires=True)
        elif kind == "cursor":
            yield self._give(None, cursor)
        elif kind != "hello":
            yield self._give(cast(Message, message), cursor)

    def _disconnect(self, message: dict[str, Any]) -> Exception:
        code, reason = str(message.get("code")), str(message.get("reason", ""))
        if code == "complete":
            return Complete()
        if code == "token_expired":
            return Interrupted(code, 0, needs_token=True)
        if code in FINAL:
            return Disconnected(code, reason, self.cursor)
        wait = message.get("retry_ms")
        if not isinstance(wait, int) and code not in ("internal", "busy", "draining", "too_slow"):
            return Disconnected(code, reason, self.cursor)
        return Interrupted(code, wait if isinstance(wait, int) else None)

    def commit(self, cursor: str | None) -> None:
        """Everything up to there has been handled."""
        if cursor is not None:
            self._store.save(self.name, cursor)

    # --- another connection ---

    def retry(self, why: BaseException) -> float:
        """Returns how many seconds to wait. Raises an error that ends the stream."""
        if isinstance(why, SluiceError | Complete):
            raise why
        if self._came:
            self._tries = 0
        self._came = False
        self._tries += 1
        if self.options.max_tries is not None and self._tries > self.options.max_tries:
            raise TooManyTries(f"{self._tries} connections in a row brought nothing; at last: {why}") from why
        wait_ms = why.wait_ms if isinstance(why, Interrupted) else None
        if wait_ms is not None and (wait_ms > 0 or self._tries == 1):
            return wait_ms / 1000 * self.options.wait_scale
        longest = min(MAX_WAIT_S, FIRST_WAIT_S * 2 ** min(self._tries, 10))
        return random.uniform(longest / 2, longest) * self.options.wait_scale
