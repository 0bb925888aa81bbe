"""How the steps of a script are sent on a connection: over HTTP as Server-Sent Events, on a WebSocket, or on a
WebSocket to `/v1/stream` on which the client opens its streams, or subscribes to filters."""

import base64
import hashlib
import json
import zlib
from urllib.parse import parse_qs, urlsplit

from script import CLOSE, PING, PONG, TEXT, error_body, frame_bytes, message_bytes, sse

CODES = {"draining": 1012, "token_expired": 4001, "token_revoked": 1008, "replaced": 4003, "ended": 4004, "quota": 4012,
         "too_slow": 4008, "bad_message": 1002, "busy": 1013, "internal": 1011, "complete": 1000}
OF_FILTERS = {"path", "track"}  # these are not parameters of `/v1/stream`
EXPIRES = "2026-11-21T03:02:03.000Z"


class Fault(Exception):
    """The client did not do what the script expects."""


def read_target(target):
    """Returns path and parameters of a request. Like sluiced, it refuses repeated parameters."""
    target = urlsplit(target)
    parameters = parse_qs(target.query)
    if twice := [name for name, values in parameters.items() if len(values) > 1]:
        raise Fault(f"{target.query}: {', '.join(twice)} comes twice")
    return {"path": target.path, **{name: values[0] for name, values in parameters.items()}}


def differences(asks, asked):
    return [f"{name} is {asked.get(name)!r}, not {wanted!r}" for name, wanted in asks.items() if asked.get(name) != wanted]


class OverHttp:
    """`renewals`: of this connection, where a PUT on another one stores the new token."""

    def __init__(self, connection, asked, connection_id, renewals):
        self._connection, self._id, self._renewals = connection, connection_id, renewals

    def _send(self, text):
        self._connection.sendall(text)

    def _chunk(self, data):
        self._send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def head(self, content_type):
        lines = ["HTTP/1.1 200 OK", f"Content-Type: {content_type}", "Transfer-Encoding: chunked"]
        if self._id:
            lines.append(f"Sluice-Connection: {self._id}")
        self._send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def answer(self, data):
        self._send(data)

    def say(self, message, cursor):
        self._chunk(sse(message, cursor))

    def cursor(self, place):
        self._chunk(f"id: {place}\n\n".encode())

    def http(self, data):
        self._send(data)

    def end(self):
        self._send(b"0\r\n\r\n")

    def renewed(self, token, refused):
        self._renewals.wait(token, refused)


class OverWebSocket:
    def __init__(self, connection, asked, *_):
        self._connection, self._asked = connection, asked
        self._read = b""
        self._deflater = None
        self._last_code = None

    def _send(self, payload, opcode=TEXT, **parts):
        self._connection.sendall(frame_bytes(payload, opcode, **parts))

    def head(self, _):
        self.upgrade({})

    def upgrade(self, faults):
        """`key`: from which the answer is computed; `protocol`: none is named; `deflate`: messages may be compressed;
        `then`: messages in one piece with the answer."""
        key = faults.get("key", self._asked["key"]) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
                 "Sec-WebSocket-Accept: " + base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()]
        if faults.get("protocol", True):
            lines.append("Sec-WebSocket-Protocol: sluice.v1")
        if faults.get("deflate") and "permessage-deflate" in self._asked["extensions"]:
            lines.append("Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover")
            self._deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        more = b"".join(frame_bytes(message_bytes(message)) for message in faults.get("then", ()))
        self._connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + more)

    def answer(self, data):
        self._connection.sendall(data)

    def say(self, message, _):
        if message["type"] == "disconnect":
            self._last_code = CODES.get(message["code"])
        self._send(message_bytes(message))

    def cursor(self, place):
        self.say({"type": "cursor", "id": place}, None)

    def frame(self, data):
        self._connection.sendall(data)

    def fragments(self, text, size, between):
        pieces = [text[i:i + size] for i in range(0, len(text), size)]
        for number, piece in enumerate(pieces):
            self._send(piece, 0 if number else TEXT, final=number + 1 == len(pieces))
            if number + 1 < len(pieces):
                self._connection.sendall(between)

    def deflated(self, text):
        if self._deflater is None:
            return self._send(text)
        data = self._deflater.compress(text) + self._deflater.flush(zlib.Z_SYNC_FLUSH)
        self._send(data[:-4], reserved=4)

    def close(self, code):
        self._send(b"" if code is None else code.to_bytes(2, "big"), CLOSE)

    def end(self):
        self.close(self._last_code or 1000)

    def pinged(self):
        self._send(b"how?", PING)
        if self._hear(PONG) != b"how?":
            raise Fault("another pong than the ping")

    def renewed(self, token, refused):
        heard = json.loads(self._hear(TEXT))
        if heard != {"op": "token", "token": token}:
            raise Fault(f"heard {heard}, not the token {token}")
        self._send(message_bytes({"op": "renewed", "expires": EXPIRES} if refused is None
                                 else {"op": "token", **json.loads(error_body(refused))}))

    def _hear_operation(self, op):
        operation = json.loads(self._hear(TEXT))
        if operation["op"] != op:
            raise Fault(f"heard {operation}, not {op}")
        return operation

    def _hear(self, wanted):
        """Returns the next frame of this kind."""
        while True:
            first, second = self._more(2)
            size = second & 127
            if size > 125:
                size = int.from_bytes(self._more(2 if size == 126 else 8), "big")
            mask, payload = self._more(4), self._more(size)
            if first & 15 == wanted:
                return bytes(byte ^ mask[i & 3] for i, byte in enumerate(payload))
            if first & 15 == CLOSE:
                raise Fault("the client has left")

    def _more(self, size):
        while len(self._read) < size:
            piece = self._connection.recv(65536)
            if not piece:
                raise Fault("the client has left")
            self._read += piece
        some, self._read = self._read[:size], self._read[size:]
        return some


class OverConnection(OverWebSocket):
    """`asks`: what the visit must request; what does not belong to the connection belongs to its single stream. With
    the steps `asked` there are several streams."""

    def __init__(self, connection, asked, asks):
        super().__init__(connection, asked)
        self._asks = asks
        self._names = {}  # of streams, by what they track

    def head(self, content_type):
        super().head(content_type)
        self.asked(None, None, self._asks)

    def asked(self, track, refused, asks):
        operation = self._hear_operation("open")
        asked = read_target(operation["path"])
        if track is not None and asked.get("track") != track:
            raise Fault(f"{asked} is opened, not {track}")
        if faults := differences({name: value for name, value in asks.items() if name != "token"}, asked):
            raise Fault(f"{asked}: {'; '.join(faults)}")
        self._names[track] = name = operation["id"]
        self._send(message_bytes({"op": "opened", "id": name} if refused is None
                                 else {"op": "open", "id": name, **json.loads(error_body(refused))}))

    def left(self, track):
        operation = self._hear_operation("close")
        if operation["id"] != self._names[track]:
            raise Fault(f"{operation} is closed, not {track}")

    def of(self, track, _, message, __):
        self._send(message_bytes({**message, "stream": self._names[track]}))

    def of_all(self, _, message, cursor):
        super().say(message, cursor)

    def say(self, message, cursor):
        """Before the connection ends, its stream is ended; a token is that of the connection."""
        of_connection = message["type"] == "warning" and message["code"] == "token_expiring"
        if not of_connection:
            self._send(message_bytes({**message, "stream": self._names[None]}))
        if of_connection or message["type"] == "disconnect" and message["code"] != "complete":
            super().say({name: value for name, value in message.items() if name != "cursor"}, cursor)


class OverFilters(OverWebSocket):
    """`asks`: what the visit must request. A situation that is not about filters has one, `tea`."""

    def __init__(self, connection, asked, asks):
        super().__init__(connection, asked)
        self._asks = asks

    def head(self, content_type):
        super().head(content_type)
        self.named("tea", None, None, {name: value for name, value in self._asks.items() if name == "track"})

    def named(self, name, refused, more, asks):
        operation = self._hear_operation("subscribe")
        wanted = {"id": name, "more": more}
        if faults := differences(wanted, operation) + differences(asks, operation["filter"]):
            raise Fault(f"{operation}: {'; '.join(faults)}")
        self._send(message_bytes({"op": "subscribed", "id": name} if refused is None
                                 else {"op": "subscribe", "id": name, **json.loads(error_body(refused))}))

    def unnamed(self, name):
        operation = self._hear_operation("unsubscribe")
        if operation["id"] != name:
            raise Fault(f"{operation}, not {name}")
        self._send(message_bytes({"op": "unsubscribed", "id": name}))
