"""A WebSocket without its connection: bytes in; messages, and bytes for the server, out. Needs websockets.

It uses only the protocol of that package, which does no I/O either. Its interface has been the same since 10.4, and it
reads the body of a refusal, which has the reason."""

import json
from collections.abc import Iterator
from typing import Any

from websockets import client
from websockets.exceptions import InvalidStatus
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from .session import MAX_LINE, Interrupted, Session

_Protocol: Any = getattr(client, "ClientProtocol", None) or getattr(client, "ClientConnection")  # its name before 11.0


class WebSocket:
    def __init__(self, session: Session, token: str) -> None:
        self._session = session
        self._protocol = _Protocol(parse_uri(session.websocket_url()), subprotocols=["sluice.v1"],
                                   extensions=[ClientPerMessageDeflateFactory()], max_size=MAX_LINE)
        request = self._protocol.connect()
        request.headers["Authorization"] = f"Bearer {token}"
        self._protocol.send_request(request)
        self._parts: list[bytes] = []  # of an incomplete message

    @property
    def is_open(self) -> bool:
        return str(self._protocol.state.name) == "OPEN"

    def to_send(self) -> bytes:
        """Bytes for the server; to be called after each other call."""
        return b"".join(self._protocol.data_to_send())

    def send(self, operation: object) -> None:
        if self.is_open:
            self._protocol.send_text(json.dumps(operation).encode())

    def close(self) -> None:
        if self.is_open and not self._protocol.expect_continuation_frame:
            self._protocol.send_close(1000)

    def receive(self, piece: bytes) -> Iterator[str]:
        """Yields the messages in the next piece; an empty piece is the end. Raises an error that ends the connection,
        or the stream."""
        protocol = self._protocol
        try:
            protocol.receive_data(piece) if piece else protocol.receive_eof()
        except Exception as error:  # for an answer that is not HTTP
            raise Interrupted(f"the upgrade failed: {error!r}") from error
        for event in protocol.events_received():
            if isinstance(event, Frame) and (text := self._text(event)) is not None:
                yield text
        if protocol.handshake_exc:
            raise self._refused(protocol.handshake_exc)
        if protocol.state.name in ("CLOSING", "CLOSED"):
            code = protocol.close_rcvd.code if protocol.close_rcvd else None
            raise self._session.closed(code, protocol.parser_exc)

    def _text(self, frame: Frame) -> str | None:
        if frame.opcode is Opcode.BINARY:
            raise Interrupted("a binary message")
        if frame.opcode not in (Opcode.TEXT, Opcode.CONT):
            return None
        self._parts.append(frame.data)
        if not frame.fin:
            return None
        text, self._parts = b"".join(self._parts), []
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise Interrupted("a text that is not UTF-8") from error

    def _refused(self, why: Exception) -> Exception:
        if not isinstance(why, InvalidStatus):
            return Interrupted(f"the upgrade failed: {why!r}")
        answer = why.response
        if answer.status_code < 400 and answer.status_code != 204:
            return Interrupted(f"{answer.status_code} in place of an upgrade: something else than sluiced answered")
        headers = {name.lower(): value for name, value in answer.headers.raw_items()}
        return self._session.refused(answer.status_code, headers, answer.body or b"")
