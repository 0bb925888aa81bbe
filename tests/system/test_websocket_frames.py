"""RFC 6455 section by section, with a client that creates its frames manually: what a server must accept, what it must
refuse and with which close code, whole and byte by byte, on every kind of WebSocket here."""

import contextlib
import json
import os
import signal
import socket
import struct
import time

import pytest

from harness import events
from harness.programs import NO_QUARANTINE
from harness.streams import Collector, Refused
from harness.waiting import TIMEOUT_FACTOR, Deadline, eventually
from harness.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, RawWebSocket, frame

pytestmark = pytest.mark.wires

MANY = "/v1/stream"  # accepts messages
ONE = "/v1/stream/filter?track=nothing"  # accepts none
FIREHOSE = "/v1/stream/firehose"
MAX_MESSAGE_BYTES = 256 << 10
MAX_UNHEARD_BYTES = 12 << 10
LIST = b'{"op":"list"}'
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


def head(opcode, form, length=b"", final=True, mask=b"mask"):
    """The beginning of a frame with its length in any form; mask None: without a mask."""
    first = (0x80 if final else 0) | opcode
    return bytes([first, (0 if mask is None else 0x80) | form]) + length + (mask or b"")


def close_payload(code, reason=b""):
    return struct.pack(">H", code) + reason


def padded(message, size):
    """The same in JSON, padded to this number of bytes."""
    return message[:1] + b" " * (size - len(message)) + message[1:]


class Peer:
    """A WebSocket that answers nothing by itself."""

    def __init__(self, gateway, target=MANY, headers=None, receive_buffer=None):
        self.socket = gateway.stream(target, "raw-websocket", headers=headers, receive_buffer=receive_buffer)

    def send(self, data, bytewise=False):
        """All at once; or byte by byte, each in a separate write."""
        try:
            for piece in [data[i:i + 1] for i in range(len(data))] if bytewise else [data]:
                self.socket.connection.send(piece)
        except ConnectionError:
            pass  # the server has ended it meanwhile

    def next(self):
        """Returns (opcode, payload) of the next frame that is not a keep-alive."""
        deadline = Deadline(what="the next frame")
        while True:
            opcode, payload = self.socket.read_frame(deadline)
            if opcode != PING:
                return opcode, payload

    def ask_list(self):
        """Checks that the server still reads and answers."""
        self.send(frame(TEXT, LIST))
        opcode, payload = self.next()
        assert opcode == TEXT, (opcode, payload)
        return json.loads(payload)["rules"]

    def to_end(self, answers=True):
        """Returns the frames until the server ends the connection, which it must."""
        frames = []
        while True:
            try:
                frames.append(self.next())
            except ConnectionError:
                return frames
            if frames[-1][0] == CLOSE and answers:
                self.send(frame(CLOSE, frames[-1][1][:2]))

    def assert_ended(self, code, answers=True):
        """Expects a close frame with this code, nothing after it, and a message before it with the reason."""
        frames = self.to_end(answers)
        assert frames, "ended without a close frame"
        opcode, payload = frames[-1]
        assert opcode == CLOSE and payload[:2] == close_payload(code), frames
        assert len(payload) <= 125 and payload[2:].decode() == "bad_message", frames
        goodbye = json.loads(frames[-2][1])
        assert (goodbye["type"], goodbye["code"]) == ("disconnect", "bad_message")
        assert [opcode for opcode, _ in frames[:-1]].count(CLOSE) == 0, frames

    def assert_close_is_answered(self, payload=b""):
        """Expects the same code and nothing else."""
        assert self.to_end(answers=False) == [(CLOSE, payload[:2])]


@pytest.fixture(params=["whole", "bytewise"])
def bytewise(request):
    return request.param == "bytewise"


def assert_refused(gateway, code, sent, bytewise):
    for target in MANY, ONE:
        peer = Peer(gateway, target)
        peer.send(sent, bytewise)
        peer.assert_ended(code)


# --- 4.2: the handshake ---

def handshake(target=MANY, **headers):
    fields = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade",
              "Sec-WebSocket-Key": KEY, "Sec-WebSocket-Version": "13"}
    fields.update({name.replace("_", "-"): value for name, value in headers.items()})
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([f"GET {target} HTTP/1.1", *lines, "", ""]).encode()


HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def asked(gateway, sent, bytewise=False):
    connection = gateway.connect()
    for piece in [sent[i:i + 1] for i in range(len(sent))] if bytewise else [sent]:
        connection.send(piece)
    return connection, connection.read_head()


def test_a_handshake_is_answered(gateway, bytewise):
    _, response = asked(gateway, handshake(**gateway.bearer()), bytewise)
    assert response.status == 101
    assert response.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert response.headers["upgrade"].lower() == "websocket"
    assert response.headers["connection"].lower() == "upgrade"
    assert "sec-websocket-extensions" not in response.headers
    assert "sec-websocket-protocol" not in response.headers


@pytest.mark.parametrize("headers", [
    {"Upgrade": "WebSocket", "Connection": "keep-alive, Upgrade"},
    {"Upgrade": "h2c, websocket", "Connection": "UPGRADE,keep-alive"},
    {"Sec-WebSocket-Key": f" \t{KEY} "},
])
def test_a_handshake_may_be_spelled_otherwise(gateway, headers):
    _, response = asked(gateway, handshake(**gateway.bearer(), **headers))
    assert response.status == 101
    assert response.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize("headers, status", [
    ({"Connection": "keep-alive"}, 400),
    ({"Connection": None}, 400),
    ({"Sec-WebSocket-Version": "8"}, 426),
    ({"Sec-WebSocket-Version": "14"}, 426),
    ({"Sec-WebSocket-Version": None}, 426),
    ({"Sec-WebSocket-Key": None}, 400),
    ({"Sec-WebSocket-Key": KEY[:-2]}, 400),
    ({"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZXM="}, 400),  # 17 bytes
    ({"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25j*Q=="}, 400),
    ({"Sec-WebSocket-Key": KEY + "\r\nSec-WebSocket-Key: " + KEY}, 400),
    ({"Sec-WebSocket-Version": "13\r\nSec-WebSocket-Version: 13"}, 400),
])
def test_a_bad_handshake_is_refused(gateway, headers, status):
    _, response = asked(gateway, handshake(**gateway.bearer(), **headers))
    assert response.status == status
    if status == 426:
        assert response.headers["sec-websocket-version"] == "13"


@pytest.mark.parametrize("before", [b"", HEALTHZ * 3, HEALTHZ * 100], ids=["first", "kept", "many"])
@pytest.mark.parametrize("size", [13, 100_000])
def test_frames_may_follow_the_handshake_at_once(gateway, before, size):
    early = frame(PING, b"early") + frame(TEXT, padded(LIST, size))
    connection, response = asked(gateway, before + handshake(**gateway.bearer()) + early)
    while response.status == 200:
        connection.read_exactly(int(response.headers["content-length"]), Deadline())
        response = connection.read_head()
    assert response.status == 101
    peer = Peer.__new__(Peer)
    peer.socket = RawWebSocket.__new__(RawWebSocket)
    peer.socket.connection = connection
    frames = [peer.next(), peer.next()]
    assert (PONG, b"early") in frames
    assert [json.loads(payload)["rules"] for opcode, payload in frames if opcode == TEXT] == [[]]


# --- 5.1, 5.2: masks and the form of frames ---

BAD_FRAMES = {
    "no mask": b"\x81\x0d" + LIST,
    "no mask, empty": b"\x81\x00",
    "no mask, ping": b"\x89\x01p",
    "no mask, close": b"\x88\x02\x03\xe8",
    "no mask behind a good frame": frame(PONG) + b"\x81\x00",
    "125 bytes in 16 bits": head(TEXT, 126, struct.pack(">H", 125)),
    "0 bytes in 16 bits": head(TEXT, 126, struct.pack(">H", 0)),
    "65535 bytes in 64 bits": head(TEXT, 127, struct.pack(">Q", 65535)),
    "0 bytes in 64 bits": head(TEXT, 127, bytes(8)),
    "a length beyond 63 bits": head(TEXT, 127, b"\x80" + bytes(7)),
    "all bits of a length": head(TEXT, 127, b"\xff" * 8),
    "RSV1": frame(TEXT, LIST, reserved=4),
    "RSV2": frame(TEXT, LIST, reserved=2),
    "RSV3": frame(TEXT, LIST, reserved=1),
    "RSV1 of a ping": frame(PING, reserved=4),
    "RSV1 of a close": frame(CLOSE, reserved=4),
    "RSV1 of a continuation": frame(TEXT, b"{", final=False) + frame(CONTINUATION, b"}", reserved=4),
    **{f"opcode {opcode}": frame(opcode, b"x") for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    "a ping of 126 bytes": frame(PING, bytes(126)),
    "a pong of 126 bytes": frame(PONG, bytes(126)),
    "a close of 126 bytes": frame(CLOSE, close_payload(1000, b"a" * 124)),
    "a ping of 65536 bytes": frame(PING, bytes(65536))[:14],
    "a ping in fragments": frame(PING, final=False),
    "a pong in fragments": frame(PONG, final=False),
    "a close in fragments": frame(CLOSE, final=False),
    "a continuation of nothing": frame(CONTINUATION, b"x"),
    "a continuation of nothing, not final": frame(CONTINUATION, b"x", final=False),
    "a message in a message": frame(TEXT, b"{", final=False) + frame(TEXT, LIST),
    "a fragment in a message": frame(TEXT, b"{", final=False) + frame(TEXT, b"}", final=False),
    "a close of one byte": frame(CLOSE, b"\x03"),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_a_bad_frame_ends_with_1002(gateway, name, bytewise):
    assert_refused(gateway, 1002, BAD_FRAMES[name], bytewise)


@pytest.mark.parametrize("sent", [
    b"\xc1", b"\x83", b"\x8b", b"\x09", b"\x80",  # first bytes: these are sufficient
    b"\x81\x0d", b"\x89\xfe",
    head(TEXT, 126, b"\0\5", mask=b""),
], ids=bytes.hex)
def test_a_bad_frame_is_refused_before_it_is_whole(gateway, sent):
    assert_refused(gateway, 1002, sent, False)


@pytest.mark.parametrize("size", [13, 125, 126, 127, 65535, 65536, MAX_MESSAGE_BYTES])
def test_a_message_of_any_length_is_read(gateway, size):
    peer = Peer(gateway)
    peer.send(frame(TEXT, padded(LIST, size)))
    assert json.loads(peer.next()[1])["rules"] == []
    assert peer.ask_list() == []


def test_messages_come_whole_in_pieces_and_together(gateway, bytewise):
    peer = Peer(gateway)
    peer.send(frame(TEXT, LIST) * 20, bytewise)
    for _ in range(20):
        assert json.loads(peer.next()[1])["rules"] == []


# --- 5.4: fragments ---

def test_a_message_in_fragments(gateway, bytewise):
    peer = Peer(gateway)
    peer.send(frame(TEXT, LIST[:1], final=False) + frame(CONTINUATION, b"", final=False)
              + frame(PONG, b"unasked") + frame(CONTINUATION, LIST[1:7], final=False)
              + frame(CONTINUATION, LIST[7:]), bytewise)
    assert json.loads(peer.next()[1])["rules"] == []
    peer.send(frame(TEXT, b"", final=False) + frame(CONTINUATION, LIST, final=False)
              + frame(CONTINUATION, b""), bytewise)
    assert json.loads(peer.next()[1])["rules"] == []
    peer.send(b"".join(frame(CONTINUATION if i else TEXT, LIST[i:i + 1], final=i + 1 == len(LIST))
                       for i in range(len(LIST))), bytewise)
    assert json.loads(peer.next()[1])["rules"] == []


def test_a_ping_between_fragments_is_answered_at_once(gateway, bytewise):
    peer = Peer(gateway)
    peer.send(frame(TEXT, LIST[:5], final=False) + frame(PING, b"meanwhile"), bytewise)
    assert peer.next() == (PONG, b"meanwhile")
    peer.send(frame(CONTINUATION, LIST[5:]), bytewise)
    assert json.loads(peer.next()[1])["rules"] == []


def test_a_close_between_fragments_is_answered(gateway, bytewise):
    peer = Peer(gateway)
    peer.send(frame(TEXT, LIST[:5], final=False) + frame(CLOSE, close_payload(1001)), bytewise)
    peer.assert_close_is_answered(close_payload(1001))


# --- 5.5.1, 7: closing ---

GOOD_CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999]
BAD_CODES = [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535]


@pytest.mark.parametrize("target", [MANY, ONE])
@pytest.mark.parametrize("payload", [
    b"", *map(close_payload, GOOD_CODES), close_payload(1000, "tschüß ☀ 😀".encode()),
    close_payload(1000, b"a" * 123),
], ids=lambda payload: f"{payload[:2].hex() or 'none'}-{len(payload)}")
def test_a_close_is_answered_with_its_code(gateway, target, payload, bytewise):
    peer = Peer(gateway, target)
    peer.send(frame(CLOSE, payload), bytewise)
    peer.assert_close_is_answered(payload)


@pytest.mark.parametrize("code", BAD_CODES)
def test_a_close_with_a_bad_code_is_an_error(gateway, code, bytewise):
    assert_refused(gateway, 1002, frame(CLOSE, close_payload(code)), bytewise)


@pytest.mark.parametrize("reason", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\xaf"])
def test_a_close_reason_that_is_not_utf8(gateway, reason, bytewise):
    assert_refused(gateway, 1007, frame(CLOSE, close_payload(1000, reason)), bytewise)


@pytest.mark.parametrize("behind", [
    frame(TEXT, LIST), frame(PING, b"anybody there?"), frame(CLOSE, close_payload(1001)),
    frame(BINARY, b"x"), b"\xff" * 40, frame(TEXT, LIST) * 5000,
], ids=["message", "ping", "close", "binary", "no frame", "much"])
def test_nothing_behind_a_close_is_looked_at(gateway, behind, bytewise):
    for target in MANY, ONE:
        peer = Peer(gateway, target)
        peer.send(frame(CLOSE, close_payload(1000)) + behind, bytewise and len(behind) < 1000)
        peer.assert_close_is_answered(close_payload(1000))


def test_a_message_and_a_close_at_once(gateway, bytewise):
    peer = Peer(gateway)
    peer.send(frame(TEXT, LIST) + frame(CLOSE, close_payload(1000)), bytewise)
    frames = peer.to_end(answers=False)
    assert json.loads(frames[0][1])["rules"] == [] and frames[1:] == [(CLOSE, close_payload(1000))]


def test_a_refused_message_and_a_close_at_once(gateway):
    """The server closes because of the message: it sends that code, although the client closes, too."""
    for sent, code in ((LIST, 1002), (b"\xff", 1007)):
        peer = Peer(gateway, ONE)
        peer.send(frame(TEXT, sent) + frame(CLOSE, close_payload(1000)))
        frames = peer.to_end(answers=False)
        assert frames[-1] == (CLOSE, close_payload(code, b"bad_message")), frames


@contextlib.contextmanager
def stopped(gateway):
    """What is sent meanwhile has all arrived when the server continues."""
    workers = gateway.workers()
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    yield
    for worker in workers:
        os.kill(worker, signal.SIGCONT)


@pytest.mark.parametrize("sent, code", [
    (frame(TEXT, LIST), 1002), (b"\x83", 1002), (frame(BINARY), 1003), (frame(TEXT, b"\xff"), 1007),
], ids=["message", "opcode", "binary", "text"])
def test_a_client_that_errs_and_ends_its_side_is_told_why(gateway, sent, code):
    peer = Peer(gateway, ONE)
    with stopped(gateway):
        peer.send(sent)
        peer.socket.connection.half_close()
    peer.assert_ended(code, answers=False)


def test_a_client_that_closes_and_ends_its_side_is_answered(gateway):
    for target in MANY, ONE:
        peer = Peer(gateway, target)
        with stopped(gateway):
            peer.send(frame(CLOSE, close_payload(4321)))
            peer.socket.connection.half_close()
        peer.assert_close_is_answered(close_payload(4321))


def test_a_close_that_is_not_answered_ends_all_the_same(gateway):
    peer = Peer(gateway, ONE)
    peer.send(frame(TEXT, LIST))
    frames = peer.to_end(answers=False)
    assert frames[-1] == (CLOSE, close_payload(1002, b"bad_message"))


def test_behind_a_fault_no_close_is_waited_for(gateway):
    """It would not be read: each of these would take a second."""
    began = time.monotonic()
    for _ in range(5):
        assert_refused(gateway, 1002, b"\x83", False)
    assert time.monotonic() - began < 5 * TIMEOUT_FACTOR


def test_a_client_that_closes_with_a_backlog_gets_whole_frames_and_a_close(servers, redis):
    """The close frame comes after what is in flight, and nothing after it."""
    gateway = servers.gateway(redis, "--gather-ms", 0)
    peer = Peer(gateway, FIREHOSE, receive_buffer=4096)
    neighbour = Collector(gateway.stream(FIREHOSE))
    for number in range(1, 101):
        redis.publish(events.dump(events.post(number, "z" * 60000)))
    neighbour.wait_id(100)
    peer.send(frame(CLOSE, close_payload(1000)))
    assert gateway.get("/healthz").status == 200  # meanwhile it has read the close
    peer.socket.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    frames = peer.to_end(answers=False)
    ids = [int(json.loads(payload)["id"]) for opcode, payload in frames if opcode == TEXT]
    assert ids == list(range(1, len(ids) + 1)) and 0 < len(ids) < 100
    assert frames[len(ids):] == [(CLOSE, close_payload(1000))]


def test_a_client_that_goes_on_after_the_close_is_cut_off(gateway):
    peer = Peer(gateway, ONE)
    peer.send(frame(TEXT, LIST))
    while peer.next()[0] != CLOSE:
        pass
    for _ in range(50):
        peer.send(frame(PING, b"x" * 100))
    assert peer.to_end(answers=False) == []


@pytest.mark.parametrize("sent", [b"", frame(PING)[:3], frame(TEXT, LIST, final=False), frame(TEXT, LIST)[:8]],
                         ids=["nothing", "half a head", "a fragment", "half a frame"])
def test_a_client_that_ends_without_a_close(gateway, sent):
    for target in MANY, ONE:
        peer = Peer(gateway, target)
        peer.send(sent)
        peer.socket.connection.half_close()
        assert peer.to_end(answers=False) in ([], [(CLOSE, b"")])


# --- 5.5.2, 5.5.3: pings and pongs ---

@pytest.mark.parametrize("payload", [b"", b"p", "ß☀".encode(), b"\xff\x00\xfe", bytes(range(125))],
                         ids=lambda payload: str(len(payload)))
def test_a_ping_is_answered_with_its_payload(gateway, payload, bytewise):
    for target in MANY, ONE:
        peer = Peer(gateway, target)
        peer.send(frame(PING, payload), bytewise)
        assert peer.next() == (PONG, payload)


@pytest.mark.parametrize("count", [2, 10, 500])
def test_of_bunched_pings_the_last_is_answered(gateway, count):
    for target in MANY, ONE:
        peer = Peer(gateway, target)
        peer.send(b"".join(frame(PING, b"%d" % number) for number in range(count)))
        pongs = []
        while not pongs or pongs[-1] != count - 1:
            opcode, payload = peer.next()
            assert opcode == PONG
            pongs.append(int(payload))
        assert pongs == sorted(set(pongs))
        peer.send(frame(CLOSE))
        peer.assert_close_is_answered()


def test_pongs_that_nobody_asked_for_are_passed_over(gateway, bytewise):
    peer = Peer(gateway)
    peer.send(frame(PONG) + frame(PONG, b"unasked") + frame(PONG, b"\xff" * 125), bytewise)
    assert peer.ask_list() == []


# --- 5.6, 8.1: text is UTF-8 ---

BAD_TEXTS = [b"\x80", b"a\xc3(", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf",
             b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b'{"op":"list"\xfe}']


@pytest.mark.parametrize("text", BAD_TEXTS, ids=bytes.hex)
def test_text_that_is_not_utf8_ends_with_1007(gateway, text, bytewise):
    assert_refused(gateway, 1007, frame(TEXT, text), bytewise)
    assert_refused(gateway, 1007, b"".join(
        frame(CONTINUATION if i else TEXT, text[i:i + 1], final=False) for i in range(len(text))), bytewise)
    # At the first invalid byte: most of this frame is never sent.
    assert_refused(gateway, 1007, frame(TEXT, text + b"a" * 4000)[:8 + len(text)], bytewise)


@pytest.mark.parametrize("text", [b"\xc3", b"ab\xe2\x98", b"\xf0\x9f\x98"], ids=bytes.hex)
def test_text_that_ends_within_a_character_ends_with_1007(gateway, text, bytewise):
    assert_refused(gateway, 1007, frame(TEXT, text), bytewise)
    assert_refused(gateway, 1007, frame(TEXT, text, final=False) + frame(CONTINUATION), bytewise)


def test_fragments_may_cut_characters(gateway, bytewise):
    tag = "ß☀😀é"
    message = json.dumps({"op": "subscribe", "id": "a", "filter": {"track": "kite", "tag": tag}},
                         ensure_ascii=False).encode()
    peer = Peer(gateway)
    peer.send(b"".join(frame(CONTINUATION if i else TEXT, message[i:i + 1], final=i + 1 == len(message))
                       + frame(PONG, b"\xff") for i in range(len(message))), bytewise)
    assert json.loads(peer.next()[1]) == {"op": "subscribed", "id": "a"}
    assert peer.ask_list() == [{"id": "a", "tag": tag}]


def test_a_binary_message_ends_with_1003(gateway, bytewise):
    assert_refused(gateway, 1003, frame(BINARY, LIST), bytewise)
    assert_refused(gateway, 1003, frame(BINARY, b"", final=False), bytewise)
    assert_refused(gateway, 1003, frame(BINARY, LIST)[:1], bytewise)


# --- 7.4.1: too big ---

@pytest.mark.parametrize("length", [MAX_MESSAGE_BYTES + 1, 1 << 24, 1 << 32, (1 << 63) - 1])
def test_a_message_too_long_is_refused_by_its_head(gateway, length):
    assert_refused(gateway, 1009, head(TEXT, 127, struct.pack(">Q", length)), False)


def test_where_no_message_is_taken_the_bound_is_small(gateway):
    peer = Peer(gateway, ONE)
    peer.send(head(TEXT, 126, struct.pack(">H", MAX_UNHEARD_BYTES + 1)))
    peer.assert_ended(1009)
    peer = Peer(gateway, ONE)
    peer.send(frame(TEXT, padded(LIST, MAX_UNHEARD_BYTES)))
    peer.assert_ended(1002)


def test_the_bound_counts_all_fragments(gateway):
    half = padded(LIST, MAX_MESSAGE_BYTES)
    peer = Peer(gateway)
    peer.send(frame(TEXT, half[:200_000], final=False) + frame(CONTINUATION, half[200_000:]))
    assert json.loads(peer.next()[1])["rules"] == []
    assert_refused(gateway, 1009, frame(TEXT, half, final=False) + frame(CONTINUATION, b"}"), False)


def test_a_client_that_asks_and_does_not_read_is_cut_off(servers, redis):
    """Unread answers are buffered up to a limit, and no further."""
    gateway = servers.gateway(redis, env=NO_QUARANTINE)
    peer = Peer(gateway, receive_buffer=4096)
    for number in range(20):
        peer.send(frame(TEXT, json.dumps({"op": "subscribe", "id": f"{number}", "filter": {
            "track": "kite", "tag": "t" * 200}}).encode()))
        assert "error" not in json.loads(peer.next()[1])
    before = gateway.resident_bytes()
    peer.send(frame(TEXT, LIST) * 20_000)  # the answers have more than 4 kB each
    eventually(lambda: gateway.metrics()["sluice_broken_connections_total"] == 1, "it is cut off")
    assert gateway.resident_bytes() - before < 16 << 20


# --- 9.1: extensions ---

@pytest.mark.parametrize("offer", [
    ", ".join(["permessage-deflate; server_max_window_bits=8; client_max_window_bits=15"] * 5),
    ", ".join(f"x-extension-{number}; parameter=value" for number in range(100)),
    "x-" + "a" * 254, "x-" + "a" * 4000,
], ids=["small windows", "many", "256 bytes", "4002 bytes"])
def test_extensions_that_are_not_understood_are_declined(gateway, offer):
    for target in MANY, ONE:
        try:
            peer = Peer(gateway, target, {"Sec-WebSocket-Extensions": offer})
        except Refused as refused:
            pytest.fail(f"{refused}")
        assert "sec-websocket-extensions" not in peer.socket.response.headers
        peer.send(frame(PING, b"well?"))
        assert peer.next() == (PONG, b"well?")
