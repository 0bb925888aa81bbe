"""The vocabulary of situations: a visit and its steps, and events with their places in the log.

Most steps can be sent on any carrier of the stream, HTTP or WebSocket (carriers.py). Some are bytes of one of the two,
and a situation with such a step is for that carrier only."""

import dataclasses
import json

FIRST = 10_000_000_000_000  # a lower number is not an id of the log: docs/streaming-api.md
ONLY_HTTP, ONLY_WEBSOCKET = {"http", "id"}, {"frame", "fragments", "deflated", "pinged", "close", "upgrade"}


@dataclasses.dataclass(frozen=True)
class Visit:
    """One connection: `asks` is what its request must contain (since, token, ...); then the steps."""
    steps: tuple
    asks: dict = dataclasses.field(default_factory=dict)


def visit(*steps, **asks):
    return Visit(steps, asks)


def at(number):
    """The text of a position in the log."""
    return str(FIRST + number)


# --- the beginning

def head(content_type="text/event-stream"):
    """200, or 101."""
    return "head", content_type


def upgrade(**faults):
    """101 with an error, or with more than that: see OverWebSocket.upgrade()."""
    return "upgrade", faults


def answer(status, body=b"", content_type="application/json", **headers):
    """This answer instead of a stream."""
    lines = [f"HTTP/1.1 {status} Answer", f"Content-Type: {content_type}",
             *([f"Content-Length: {len(body)}"] if status != 204 else []),
             *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "answer", ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def error_body(code):
    return json.dumps({"error": {"code": code, "message": "as the script says"}}).encode()


def refuse(status, code, **headers):
    return answer(status, error_body(code), **headers)


# --- streams on one connection, which a client opens on `/v1/stream`: a stream is named by what it tracks

def asked(track, refused=None, **asks):
    """Waits until a stream is requested, whose path must contain `asks`, and opens it, or refuses it with a code."""
    return "asked", track, refused, asks


def left(track):
    """Waits until the client closes the stream."""
    return "left", track


def of(track, *steps):
    """Steps of this stream."""
    return tuple(("of", track, *step) for step in steps)


def of_all(step):
    """Sent for the connection, not for a stream."""
    return "of_all", *step


# --- filters by name on one connection

def named(name, refused=None, more=None, **asks):
    """Waits until the client subscribes to a filter of this name, which must say `asks`, and takes it, or refuses it with a
    code."""
    return "named", name, refused, more, asks


def unnamed(name):
    """Waits until it is unsubscribed from."""
    return "unnamed", name


def matched(number, *names):
    """An event that matches these."""
    return say(post(number, matching_rules=[{"id": name} for name in names]))


# --- messages

def post(number, **members):
    return {"id": at(number), "type": "post", "post": {"id": at(number), "user": {"id": "1"}, "text": "tea"}, **members}


def say(message, cursor=None):
    return "say", message, cursor


def events(*numbers):
    return tuple(say(post(number), at(number)) for number in numbers)


def cursor(number):
    """Sent after a silence: everything up to here has been seen."""
    return "cursor", at(number)


def disconnect(code, number=None, **members):
    message = {"type": "disconnect", "code": code, "reason": "as the script says", **members}
    if number is not None:
        message["cursor"] = at(number)
    return say(message)


EXPIRING = say({"type": "warning", "code": "token_expiring", "ms": 60000})


def renewed(token, refused=None):
    """Waits until the stream is given this token, and accepts it, or refuses it with a code."""
    return "renewed", token, refused


# --- the end

END = ("end",)          # properly
CUT = ("cut",)          # the connection, wherever it is
RESET = ("reset",)
SILENCE = ("silence",)  # until the client has disconnected
COMPLETE = (disconnect("complete"), END)


# --- bytes of HTTP

def http(data):
    return "http", data


def chunk(data):
    return http(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def bytewise(data):
    return tuple(chunk(data[i:i + 1]) for i in range(len(data)))


def sse(message, place=None):
    """A message with its cursor in an `id:` line."""
    line = f"id: {place}\n" if place is not None else ""
    return f"{line}event: {message['type']}\ndata: {json.dumps(message)}\n\n".encode()


# --- bytes of WebSockets

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def frame_bytes(payload, opcode=TEXT, final=True, reserved=0, mask=None):
    size = len(payload)
    first = (0x80 if final else 0) | reserved << 4 | opcode
    bit = 0x80 if mask else 0
    if size < 126:
        start = bytes([first, bit | size])
    elif size < 65536:
        start = bytes([first, bit | 126]) + size.to_bytes(2, "big")
    else:
        start = bytes([first, bit | 127]) + size.to_bytes(8, "big")
    if mask:
        payload = mask + bytes(byte ^ mask[i & 3] for i, byte in enumerate(payload))
    return start + payload


def message_bytes(message):
    return json.dumps(message, ensure_ascii=False).encode()


def frame(data):
    return "frame", data


def frames(*messages):
    """All in one piece."""
    return frame(b"".join(frame_bytes(message_bytes(message)) for message in messages))


def fragments(message, size, between=b""):
    """A message in frames of `size` bytes, with other frames between them."""
    return "fragments", message_bytes(message), size, between


def deflated(message):
    """Compressed, if the client has offered to read that."""
    return "deflated", message_bytes(message)


PINGED = ("pinged",)  # sends a ping, and waits for its pong


def close(code=None):
    """Without a message before it."""
    return "close", code
