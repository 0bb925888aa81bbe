"""Clients that do random things at any time, determined by a seed; when all have left, nothing of them remains."""

import json
import random
import select
import time

import pytest

from harness import events, processes
from harness.api import Site
from harness.http import form_bytes
from harness.programs import NO_QUARANTINE
from harness.waiting import eventually
from harness.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, frame

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
           "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
# Metrics that count connections, or their resources.
GAUGES = ["sluice_connections", "sluice_connections_idle", "sluice_connections_lingering", "sluice_streams",
          "sluice_handshakes_pending", "sluice_api_requests_in_flight"]


class Unruly:
    """Produces the bytes that a client sends."""

    def __init__(self, gateway, user, rng):
        self.gateway, self.user, self.rng = gateway, user, rng

    def request(self):
        rng, bearer = self.rng, self.gateway.bearer(scope="read write stream:firehose stream:filter")
        body = b"track=a" + b"," * rng.choice([0, 100, 20_000, 300_000])
        return rng.choice([
            lambda: form_bytes("GET", "/healthz"), lambda: form_bytes("GET", "/metrics"),
            lambda: form_bytes("GET", "/nowhere"), lambda: form_bytes("HEAD", "/healthz"),
            lambda: form_bytes("GET", "/healthz", {"Connection": "close"}),
            lambda: form_bytes("GET", "/healthz", version="HTTP/1.0"),
            lambda: self.user.request_bytes("GET", "/v1/users/me"),
            lambda: self.user.request_bytes("POST", "/v1/posts", {"text": "a" * rng.randrange(1, 9000)}),
            lambda: self.user.request_bytes("POST", "/v1/posts", b"{" * rng.randrange(1, 30_000)),
            lambda: form_bytes("POST", "/v1/stream/filter", {**bearer, **FORM}, body),
            lambda: form_bytes("POST", "/v1/stream/filter", FORM, body),
            lambda: form_bytes("GET", FIREHOSE, bearer), lambda: form_bytes("GET", FIREHOSE),
            lambda: form_bytes("GET", FIREHOSE, {**bearer, **UPGRADE}) + self.frames(),
            lambda: form_bytes("GET", "/v1/stream", {**bearer, **UPGRADE}) + self.frames(),
            lambda: rng.randbytes(rng.randrange(1, 3000)),
            lambda: b"GET / HTTP/1.1\r\nX: " + b"x" * rng.choice([10, 20_000]) + b"\r\nno colon\r\n\r\n",
        ])()

    def frames(self):
        rng = self.rng
        return b"".join(frame(
            rng.choice([TEXT, TEXT, BINARY, CONTINUATION, PING, PING, PONG, CLOSE, 3]),
            rng.choice([b"", b"x" * 10, b'{"op":"list"}', b"\xff", b"x" * 70_000, b"\x03\xe8bye"]),
            final=rng.random() < 0.8, masked=rng.random() < 0.95,
            reserved=rng.choice([0] * 20 + [4])) for _ in range(rng.randrange(6)))

    def visit(self):
        """One connection from its beginning to its end."""
        rng = self.rng
        if rng.random() < 0.1:
            connection = self.gateway.connect_half()
        else:
            connection = self.gateway.connect(receive_buffer=rng.choice([None, 2048]))
            connection.socket.settimeout(0.05)  # for sending: it does not wait long
        try:
            data = b"".join(self.request() for _ in range(rng.randrange(1, 8)))
            data = data[:rng.randrange(len(data) + 1)] if rng.random() < 0.5 else data
            while data:
                size = rng.choice([1, 100, 5000, len(data)])
                connection.send(data[:size])
                data = data[size:] if size > 1 else data[1:rng.randrange(200)]
                if rng.random() < 0.3:
                    connection.has_news()
                    connection.buffer.clear()
            if rng.random() < 0.2:
                connection.half_close()
            for _ in range(rng.choice([0, 1, 1, 3])):
                select.select([connection.socket], [], [], 0.05)
                connection.has_news()
                connection.buffer.clear()
        except OSError:
            pass  # the server has closed, or does not read
        if rng.random() < 0.5:
            connection.reset()
        else:
            connection.close()


@pytest.mark.parametrize("seed", range(4))
def test_unruly_clients_leave_nothing_behind(servers, redis, seed):
    gateway = servers.gateway(redis, env=NO_QUARANTINE)
    worker, = gateway.workers()
    site = Site(gateway)
    user = site.user(f"unruly{seed}")
    user.get("/v1/users/me")
    site.close()
    unruly = Unruly(gateway, user, random.Random(seed))
    files = memory = None  # after some have left
    for turn in range(4):
        for number in range(60):
            unruly.visit()
            if number % 10 == 0:
                redis.publish(events.dump(events.post(turn * 1000 + number, "a " * 1000)))

        def all_have_left():
            """The client that asks is the only connection, and is neither pending nor idle."""
            metrics = gateway.metrics()
            return [metrics[name] for name in GAUGES] == [1, 0, 0, 0, 0, 0]
        eventually(all_have_left, f"all have left, gauges are right: {GAUGES}")
        if turn == 0:
            files, memory = processes.open_files(worker), gateway.resident_bytes()
        eventually(lambda: processes.open_files(worker) <= files + 1, "descriptors are back")
    assert gateway.resident_bytes() - memory < 16 << 20


# Who sends messages without end

AT_ONCE = 100  # plus as many a second
PAUSES = "sluice_message_pauses_total"
LIST = b'{"op":"list"}'


def flood(stream, count, message=LIST):
    """Sends all in one piece."""
    stream.connection.send(frame(TEXT, message) * count)


def open_many(gateway, **more):
    return gateway.stream("/v1/stream", "raw-websocket", token=gateway.token(sub="floods"), **more)


def is_answer(message):
    return "op" in message.json


def test_who_floods_is_slowed_and_hears_events_meanwhile(servers, redis):
    """500 messages take four seconds, and all are answered."""
    gateway = servers.gateway(redis)
    with open_many(gateway) as stream:
        stream.send_frame(TEXT, b'{"op":"subscribe","id":"a","filter":{"track":"tea"}}')
        assert stream.until(is_answer)
        begin = time.monotonic()
        flood(stream, 5 * AT_ONCE)
        redis.publish(events.dump(events.post(7, "tea")))
        messages = [stream.next() for _ in range(5 * AT_ONCE + 1)]
        took = time.monotonic() - begin
        assert sum(is_answer(message) for message in messages) == 5 * AT_ONCE
        assert next(i for i, message in enumerate(messages) if not is_answer(message)) < 3 * AT_ONCE
        assert took >= 3.9
        assert gateway.metrics()[PAUSES] >= 1
        stream.send_frame(TEXT, b'{"op":"list"}')
        assert stream.until(is_answer)


def test_who_sends_as_much_as_one_may_is_not_slowed(servers, redis):
    gateway = servers.gateway(redis)
    with open_many(gateway) as stream:
        flood(stream, AT_ONCE)
        for _ in range(AT_ONCE):
            assert is_answer(stream.next())
        assert gateway.metrics()[PAUSES] == 0


def test_long_messages_count_for_more(servers, redis):
    """Each of these counts as 51: the second one fills the bucket."""
    gateway = servers.gateway(redis)
    with open_many(gateway) as stream:
        begin = time.monotonic()
        flood(stream, 4, json.dumps({"op": "list", "x": "x" * (50 * 4096)}).encode())
        for _ in range(4):
            assert is_answer(stream.next())
        assert time.monotonic() - begin >= 0.5


@pytest.mark.parametrize("message", [LIST, b'{"op":"token","token":"x"}'])
def test_who_floods_and_is_ended_hears_why(servers, redis, message):
    gateway = servers.gateway(redis)
    with open_many(gateway) as stream:
        flood(stream, 20 * AT_ONCE, message)
        eventually(lambda: gateway.metrics()[PAUSES], "it is not read")
        with gateway.connect() as connection:
            assert connection.request("DELETE", "/v1/connections?sub=floods",
                                      gateway.bearer(sub="floods", scope="write")).json["ended"] == 1
        assert stream.to_end()[-1]["code"] == "ended"
        assert stream.close_code == 4004
    eventually(lambda: gateway.metrics()["sluice_streams"] == 0, "it is gone")


def test_who_floods_and_closes_is_answered(servers, redis):
    gateway = servers.gateway(redis)
    with open_many(gateway) as stream:
        flood(stream, 2 * AT_ONCE)
        stream.send_frame(CLOSE, b"\x03\xe8")
        messages = stream.to_end()
        assert len(messages) == 2 * AT_ONCE and stream.close_code == 1000


def test_who_floods_and_dies_is_forgotten(servers, redis):
    gateway = servers.gateway(redis)
    stream = open_many(gateway)
    flood(stream, 100 * AT_ONCE)
    eventually(lambda: gateway.metrics()[PAUSES], "it is not read")
    stream.connection.reset()
    eventually(lambda: gateway.metrics()["sluice_streams"] == 0, "it is gone")
