"""Streams for threads: `for event in client.filter(track="tea")`. Standard library only."""

import contextlib
import http.client
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from .api import Streams
from .errors import Disconnected, SluiceError
from .messages import Message
from .merge import Merge
from .session import Complete, Given, Interrupted, Options, Session, token_is_fresh
from .store import CursorStore

Token = str | Callable[[], str]
All = queue.Queue[tuple[Session, Given | BaseException | None]]
PIECE = 1 << 16
QUEUE_SIZE = 1000


class Client(Streams[Iterator[Message]]):
    """`url`: of the server; with two or more, all are read and each event is passed on once. `token`: a JWT, or a
    function that returns a new one, called before the old one expires. One client may be used by many threads."""

    def __init__(self, url: str | Sequence[str], token: Token, options: Options = Options(),
                 context: ssl.SSLContext | None = None) -> None:
        self._urls = [url] if isinstance(url, str) else list(url)
        self._token, self._options, self._context = token, options, context
        self._held: str | None = None
        self._renewing = threading.Lock()
        self._readers: set[_Reader] = set()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all streams, even those that other threads read: their iterators stop."""
        for reader in list(self._readers):
            reader.stop()

    # --- tokens ---

    def fresh_token(self) -> str:
        if isinstance(self._token, str):
            return self._token
        with self._renewing:
            if not token_is_fresh(self._held):
                self._held = self._token()
            assert self._held is not None
            return self._held

    def renew(self, session: Session, why: Interrupted) -> None:
        if isinstance(self._token, str):
            raise Disconnected("token_expired", "and there is no other token", session.cursor) from why
        self._held = None

    def renewed(self, session: Session, connection_id: str | None, used: str) -> str:
        """Returns the token that the connection has from now on. Raises Interrupted if it must be opened again with it.
        """
        if isinstance(self._token, str):
            return used  # until it expires
        with self._renewing:
            if self._held == used:
                self._held = None
        token = self.fresh_token()
        connection = self.connect(session.base)
        try:
            connection.request("PUT", session.renewal_target(connection_id), headers=session.headers(token))
            status = connection.getresponse().status
        finally:
            connection.close()
        if status != 200:
            raise Interrupted(f"{status}: the new token was refused", 0)
        return token

    # --- streams ---

    def connect(self, base: str) -> http.client.HTTPConnection:
        parts = urlsplit(base)
        assert parts.hostname
        if parts.scheme == "https":
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=self._options.silence_s,
                                               context=self._context)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=self._options.silence_s)

    def _open(self, stream: str, parameters: dict[str, Any], store: CursorStore | None,
              name: str | None) -> Iterator[Message]:
        readers = [_Reader(self, session) for session in self._sessions(stream, parameters, store, name)]
        return self._read(readers[0]) if len(readers) == 1 else self._merge(readers)

    def _read(self, reader: "_Reader") -> Iterator[Message]:
        self._readers.add(reader)
        try:
            for given in reader.given():
                if given.message is not None:
                    yield given.message
                reader.session.commit(given.cursor)
        finally:
            self._readers.discard(reader)

    def _merge(self, readers: list["_Reader"]) -> Iterator[Message]:
        all_given: All = queue.Queue(QUEUE_SIZE)
        merge = Merge(len(readers))
        self._readers.update(readers)
        for reader in readers:
            threading.Thread(target=reader.read_into, args=(all_given,), daemon=True).start()
        try:
            while not merge.is_over:
                session, one = all_given.get()
                if readers[0].is_stopped:
                    return
                if (message := merge.take(one)) is not None:
                    yield message
                if isinstance(one, Given):
                    session.commit(one.cursor)
        finally:
            for reader in readers:
                reader.stop()
                self._readers.discard(reader)


class _Reader:
    """Reads one session, connection after connection."""

    def __init__(self, client: Client, session: Session) -> None:
        self._client, self.session = client, session
        self._stopped = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._all_given: All | None = None

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()
        if self._all_given is not None:
            with contextlib.suppress(queue.Full):  # if it is full, the reader wakes up anyway
                self._all_given.put_nowait((self.session, None))
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def given(self) -> Iterator[Given]:
        while not self._stopped.is_set():
            try:
                yield from self._connect()
                why: Exception = Interrupted("the body has ended")
            except (OSError, http.client.HTTPException) as error:
                why = error
            except (Interrupted, Complete, SluiceError) as error:
                why = error
            if self._stopped.is_set() or isinstance(why, Complete):
                return
            if isinstance(why, Interrupted) and why.needs_token:
                self._client.renew(self.session, why)
            self._stopped.wait(self.session.retry(why))

    def _connect(self) -> Iterator[Given]:
        session = self.session
        connection = self._connection = self._client.connect(session.base)
        try:
            token = self._client.fresh_token()
            connection.request("GET", session.target(), headers=session.headers(token))
            response = connection.getresponse()
            if response.status != 200:
                headers = {name.lower(): value for name, value in response.getheaders()}
                raise session.refused(response.status, headers, response.read(PIECE))
            session.opened(response.getheader("Content-Type", ""))
            while piece := response.read1(PIECE):
                for given in session.feed(piece):
                    if given.expires:
                        token = self._client.renewed(session, response.getheader("Sluice-Connection"), token)
                    else:
                        yield given
        finally:
            self._connection = None
            connection.close()

    def read_into(self, all_given: All) -> None:
        self._all_given = all_given
        end: BaseException | None = None
        try:
            for one in self.given():
                self._put(all_given, one)
        except Exception as error:
            end = error
        self._put(all_given, end)

    def _put(self, all_given: All, one: Given | BaseException | None) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                return all_given.put((self.session, one), timeout=1)
