"""What SIGTERM promises to connected clients: queues are emptied, requests are answered, every stream gets its cursor
and a hint when to come back, and no new client is admitted."""

import json
import os
import select
import signal

import pytest

from harness import events, processes
from harness.api import Api
from harness.streams import Collector
from harness.waiting import eventually
from harness.websocket import CLOSE, TEXT

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
TRANSPORTS = ["ndjson", "delimited", "sse", "raw-websocket"]
FLOOD = 199


def fall_behind(gateway, redis, transports):
    """Returns streams that have not read more than their sockets hold, and one that has read everything."""
    behind = {transport: gateway.stream(FIREHOSE, transport, receive_buffer=4096) for transport in transports}
    neighbour = Collector(gateway.stream(FIREHOSE))
    for number in range(1, FLOOD + 1):
        redis.publish(events.dump(events.post(number, "x" * 5000)))
    neighbour.wait_id(FLOOD)
    return behind, neighbour


def begin_to_drain(gateway, neighbour):
    gateway.begin_stop()
    neighbour.wait(lambda ms: ms[-1].type == "disconnect", "draining has begun")


def test_who_is_behind_is_sent_what_it_is_owed_and_then_told(servers, redis):
    gateway = servers.gateway(redis, "--drain-timeout", "10m", "--max-owed-bytes", "8M")
    behind, neighbour = fall_behind(gateway, redis, TRANSPORTS)
    begin_to_drain(gateway, neighbour)
    for stream in behind.values():
        *owed, last = stream.to_end()
        assert [m["id"] for m in owed] == [str(n) for n in range(1, FLOOD + 1)]
        assert (last.type, last["code"]) == ("disconnect", "draining")
    gateway.stop()


def test_who_does_not_read_is_told_how_far_it_was_sent(servers, redis, cli_for):
    """The time is over before the stalled client reads: its cursor is the last event that it gets."""
    cli = cli_for(redis)
    cli.run("user", "add", "dora")
    gateway = servers.gateway(redis, "--drain-timeout", "200ms")
    stalled = gateway.stream(FIREHOSE, "raw-websocket", receive_buffer=4096)
    neighbour = Collector(gateway.stream(FIREHOSE))
    posts = servers.folder / "posts.jsonl"
    with open(posts, "w") as out:
        for number in range(FLOOD):
            out.write(events.dump(events.post(number + 1, "x" * 4000)) + "\n")
    cli.run("replay", posts)
    neighbour.wait(lambda ms: len(ms) >= FLOOD, "the flood")
    gateway.stop()
    sent = []
    while True:
        try:
            message = stalled.next()
        except ConnectionError:
            return  # there was no room for the disconnect in the socket
        if message is None or message.type == "disconnect":
            break
        sent.append(message["id"])
    assert message is None or message["cursor"] == sent[-1]


def test_hints_when_to_come_back_are_spread(servers, redis):
    gateway = servers.gateway(redis)
    streams = [gateway.stream(FIREHOSE, transport) for transport in TRANSPORTS * 4]
    gateway.begin_stop()
    hints = []
    for stream in streams:
        last = stream.to_end()[-1]
        hints.append(last["retry_ms"])
        if getattr(stream, "transport", None) == "sse":
            assert stream.retry_ms == last["retry_ms"]  # an EventSource obeys the `retry:` field
    gateway.stop()
    assert len(set(hints)) > 8 and all(hint > 0 for hint in hints)


@pytest.mark.parametrize("leaves", ["client", "server"])
def test_filters_of_a_stream_are_in_its_last_line_of_the_log(servers, redis, leaves):
    """They belong to delivery, which may have freed them by then."""
    gateway = servers.gateway(redis)
    stream = gateway.stream("/v1/stream", "raw-websocket")
    for name, phrase in (("a", "tea"), ("b", "coffee")):
        stream.send_frame(TEXT, json.dumps({"op": "subscribe", "id": name,
                                            "filter": {"track": phrase}}))
        assert stream.next()["op"] == "subscribed"
    if leaves == "client":
        stream.send_frame(CLOSE, b"\x03\xe8")
    else:
        gateway.begin_stop()
        assert stream.next()["code"] == "draining"
    stream.closed()
    line, = eventually(lambda: [line for line in gateway.log().splitlines()
                                if "event=stream_end" in line], "the line")
    assert "stream=many" in line and " filters=2 " in line and " filter_bytes=0 " not in line
    gateway.stop()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_cursor_of_a_stream_that_has_seen_nothing_is_one_too(servers, cli_for, transport):
    """What happens between the disconnect and the next server is not missed, even if it is the first event of all."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    for _ in range(2):
        gateway = servers.gateway(redis)
        stream = gateway.stream(FIREHOSE, transport)
        gateway.begin_stop()
        cursor = stream.to_end()[-1]["cursor"]
        gateway.stop()
        missed = cli.run("post", "--user", "ada", "to nobody")
        gateway = servers.gateway(redis)
        with gateway.stream(f"{FIREHOSE}?since={cursor}", transport) as stream:
            assert stream.next()["id"] == missed
        gateway.stop()


def test_who_catches_up_leaves_with_where_it_was(servers, cli_for):
    redis = servers.redis(shards=1)  # with more, repeated events come with a gap
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    posts = servers.folder / "posts.jsonl"
    with open(posts, "w") as out:
        for number in range(600):
            out.write(events.dump(events.post(number + 1, "x" * 2000)) + "\n")
    first = cli.run("post", "--user", "ada", "the first")
    cli.run("replay", posts)
    wanted = [event["id"] for event in redis.log() if event["type"] == "post"][1:]
    gateway = servers.gateway(redis, "--drain-timeout", "10m")
    stream = gateway.stream(f"{FIREHOSE}?since={first}", receive_buffer=4096)
    got = [stream.next()["id"]]
    gateway.begin_stop()
    while (message := stream.next()) is not None and message.type != "disconnect":
        got.append(message["id"])
    gateway.stop()
    assert message["cursor"] == got[-1]
    gateway = servers.gateway(redis)
    with gateway.stream(f"{FIREHOSE}?since={got[-1]}") as stream:
        got += [m["id"] for m in stream.until(wanted[-1])] if got[-1] != wanted[-1] else []
    assert got == wanted


def half_a_request(gateway, path):
    """Returns a connection with an incomplete request, of which the server knows."""
    pending = gateway.metrics()["sluice_handshakes_pending"]
    connection = gateway.connect()
    connection.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n".encode())
    eventually(lambda: gateway.metrics()["sluice_handshakes_pending"] > pending, "half a request")
    return connection


def test_while_draining_readyz_and_new_streams_get_503(servers, redis):
    gateway = servers.gateway(redis, "--drain-timeout", "10m", "--max-owed-bytes", "8M")
    health, ready, stream = (half_a_request(gateway, path)
                             for path in ("/healthz", "/readyz", FIREHOSE))
    behind, neighbour = fall_behind(gateway, redis, ["ndjson"])
    begin_to_drain(gateway, neighbour)
    for connection, status in ((health, 200), (ready, 503), (stream, 503)):
        connection.send(f"Authorization: Bearer {gateway.token()}\r\n\r\n".encode())
        answer = connection.read_response()
        assert answer.status == status
        assert answer.headers["connection"] == "close"
        if status == 503:
            assert answer.error["code"] == "draining"
            assert int(answer.headers["retry-after"]) >= 1
        connection.wait_closed()

    def refused():
        try:
            gateway.connect().close()
        except ConnectionRefusedError:
            return True
        return False
    eventually(refused, "the port is closed while the drain goes on")
    behind["ndjson"].to_end()
    gateway.stop()


def test_a_request_that_waits_for_redis_is_answered(servers, cli_for):
    redis = servers.redis()
    user = cli_for(redis).run("user", "add", "ada")
    gateway = servers.gateway(redis, "--drain-timeout", "10m")
    api = Api(gateway, user)
    api.expect(200, "GET", "/v1/users/ada")
    with processes.stopped(redis.pids):
        api.send("POST", "/v1/posts", {"text": "just in time"})
        eventually(lambda: gateway.metrics()["sluice_api_requests_in_flight"] == 1, "it is under way")
        gateway.begin_stop()
        eventually(lambda: "event=draining" in gateway.log(), "it drains")
    answer = api.read()
    assert answer.status == 201 and answer.headers["connection"] == "close"
    gateway.stop()


def test_half_a_request_does_not_hold_up_the_exit_for_ever(servers, redis):
    gateway = servers.gateway(redis, "--drain-timeout", "300ms")
    connection = half_a_request(gateway, "/healthz")
    gateway.stop()
    connection.wait_closed()


def test_who_has_connected_and_said_nothing_is_not_waited_for(servers, redis):
    gateway = servers.gateway(redis, "--drain-timeout", "10m")
    known, fresh = gateway.connect(), gateway.connect()
    known.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert known.read_response().status == 200
    gateway.stop()
    known.wait_closed()
    fresh.send(b"x")  # the server does not know of it yet
    fresh.wait_closed()


def test_who_is_half_through_a_handshake_is_answered(servers, redis, certificate):
    """It counts like an incomplete request: as a client that has connected, however long ago."""
    gateway = servers.gateway(redis, "--drain-timeout", "10m", "--keepalive-ms", 200,
                              certificate=certificate)
    knocking = [gateway.connect(shakes_hands=False) for _ in range(3)]
    eventually(lambda: all(select.select([c.socket], [], [], 0)[0] for c in knocking), "the server's part")
    with gateway.stream("/v1/stream/filter?track=nothing") as stream:
        stream.wait_keepalives(2)
        gateway.begin_stop()
        stream.to_end()
    for connection in knocking:
        connection.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.read_response().status == 503
    gateway.stop()


def test_who_has_knocked_is_answered(servers, redis):
    """A connection that waits in the socket's queue when the signal comes is not reset."""
    gateway = servers.gateway(redis)
    worker, = gateway.workers()
    os.kill(worker, signal.SIGSTOP)
    knocking = [gateway.connect(shakes_hands=False) for _ in range(20)]
    for connection in knocking:
        connection.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
    gateway.begin_stop()
    eventually(lambda: "event=signal" in gateway.log(), "the signal has come")
    os.kill(worker, signal.SIGCONT)
    for connection in knocking:  # those that it accepts before it sees the signal: 200
        assert connection.read_response().status in (200, 503)
    gateway.stop()
