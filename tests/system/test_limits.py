"""Each limit of the server is reached: who is refused, who is disconnected, what is counted, and that nobody else is
affected."""

import contextlib
import json
import os
import resource
import select
import signal

import pytest

from harness import events, processes
from harness.http import ConnectionEnded
from harness.programs import NO_QUARANTINE, have_sanitizer
from harness.streams import Collector, Refused
from harness.waiting import eventually
from harness.websocket import TEXT, frame

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
BUSY = 'sluice_disconnects_total{code="busy"}'
BROKEN = "sluice_broken_connections_total"
HALF_A_MESSAGE = frame(TEXT, b"{" * ((256 << 10) - 1), final=False)
# How much freed memory the allocator keeps, in bytes; asan's keeps more.
MARGIN = 64 << 20 if have_sanitizer() else 16 << 20
REFUSED = "sluice_streams_refused_total"


def assert_refused(gateway, transport="ndjson", **token):
    with pytest.raises(Refused) as refused:
        gateway.stream(FIREHOSE, transport, token=gateway.token(**token))
    response = refused.value.response
    assert response.status == 429, response
    assert response.error["code"] == "too_many_connections"
    assert int(response.headers["retry-after"]) >= 1


@pytest.mark.parametrize("transport", ["ndjson", "websocket"])
def test_streams_are_limited_across_workers(servers, redis, transport):
    gateway = servers.gateway(redis, "--max-connections", 4, workers=2)
    streams = [gateway.stream(FIREHOSE, transport) for _ in range(4)]
    for _ in range(6):  # any of the workers
        assert_refused(gateway, "raw-websocket" if transport == "websocket" else transport)
    assert gateway.metrics()[f'{REFUSED}{{limit="server"}}'] == 6
    assert gateway.get("/healthz").status == 200
    streams.pop().close()
    eventually(lambda: gateway.metrics()["sluice_streams"] == 3, "the stream has gone")
    with gateway.stream(FIREHOSE, transport):
        assert_refused(gateway)


def test_streams_of_a_subject_are_limited(servers, redis):
    gateway = servers.gateway(redis, "--max-connections-per-subject", 2, workers=2)
    with gateway.stream(FIREHOSE, token=gateway.token(sub="1")), \
            gateway.stream(FIREHOSE, "websocket", token=gateway.token(sub="1")), \
            gateway.stream(FIREHOSE, token=gateway.token(sub="2")):
        for _ in range(4):
            assert_refused(gateway, sub="1")
        with gateway.stream(FIREHOSE, token=gateway.token(sub="2")):
            assert_refused(gateway, sub="2")
        assert gateway.metrics()[f'{REFUSED}{{limit="subject"}}'] == 5


def test_a_subject_has_a_bound_that_nobody_set(servers, redis):
    gateway = servers.gateway(redis, workers=2)
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(gateway.stream(FIREHOSE, token=gateway.token(sub="1")))
        assert_refused(gateway, sub="1")
        with gateway.stream(FIREHOSE, token=gateway.token(sub="2")):
            assert gateway.metrics()["sluice_streams"] == 101


def test_a_token_without_a_subject_counts_by_itself(servers, redis):
    gateway = servers.gateway(redis, "--max-connections-per-subject", 2, workers=2)
    one, other = {"sub": None, "jti": "1"}, {"sub": None, "jti": "2"}
    with gateway.stream(FIREHOSE, token=gateway.token(**one)), \
            gateway.stream(FIREHOSE, "websocket", token=gateway.token(**one)):
        assert_refused(gateway, **one)
        with gateway.stream(FIREHOSE, token=gateway.token(**other)):
            assert gateway.metrics()["sluice_streams"] == 3


def users(number, count=4000):
    return ",".join(f"{number + 1}{user:05}" for user in range(count))


def follow(gateway, number, sub, count=4000):
    return gateway.stream("/v1/stream/filter", method="POST", body=f"follow={users(number, count)}".encode(),
                          headers={"Content-Type": "application/x-www-form-urlencoded"},
                          token=gateway.token(sub=sub))


def assert_filter_refused(gateway, number, sub, whose):
    with pytest.raises(Refused) as refused:
        follow(gateway, number, sub)
    response = refused.value.response
    assert (response.status, response.error["code"]) == (429, "too_many_filters")
    assert int(response.headers["retry-after"]) >= 1
    assert gateway.metrics()[f'sluice_filters_refused_total{{limit="{whose}"}}'] >= 1


def subscribe(stream, filter, id="a"):
    """Returns the answer's error code; None if there is none."""
    stream.send(json.dumps({"op": "subscribe", "id": id, "filter": filter}))
    answer = stream.next().json
    assert (answer["op"], answer["id"]) in [("subscribed", id), ("subscribe", id)]
    return answer["error"]["code"] if "error" in answer else None


@pytest.mark.parametrize("whose, option", [("subject", "--max-filter-bytes-per-subject"),
                                           ("worker", "--max-filter-bytes")])
def test_filters_are_limited_by_what_they_cost(servers, redis, whose, option):
    gateway = servers.gateway(redis, option, "1M")
    with follow(gateway, 1, "1"):
        assert_filter_refused(gateway, 2, "1", whose)
        with gateway.stream("/v1/stream", "websocket", token=gateway.token(sub="1")) as many:
            assert subscribe(many, {"follow": users(3)}) == "too_many_filters"
            assert subscribe(many, {"follow": "7"}) is None
        if whose == "subject":
            with follow(gateway, 2, "2"):
                pass
    eventually(lambda: gateway.metrics()["sluice_streams"] == 0, "the streams have gone")
    eventually(lambda: gateway.metrics()["sluice_filter_bytes"] == 0, "their filters are forgotten")
    with follow(gateway, 2, "1"):
        pass


@pytest.mark.parametrize("option", ["--max-filter-bytes-per-subject", "--max-filter-bytes"])
def test_a_filter_is_replaced_where_there_is_room_for_one(servers, redis, option):
    gateway = servers.gateway(redis, option, "1M")
    with gateway.stream("/v1/stream", "websocket", token=gateway.token(sub="1")) as many:
        assert subscribe(many, {"follow": users(0)}) is None
        assert subscribe(many, {"follow": users(1)}, "b") == "too_many_filters"
        for number in range(2, 6):
            eventually(lambda: gateway.metrics()["sluice_filter_bytes"] < 1 << 20, "one is left")
            assert subscribe(many, {"follow": users(number)}) is None
        many.send('{"op":"unsubscribe","id":"a"}')
        assert many.next().json["op"] == "unsubscribed"
        eventually(lambda: gateway.metrics()["sluice_filter_bytes"] == 0, "it is forgotten")
        assert subscribe(many, {"follow": users(9)}, "b") is None


def test_filters_of_all_together_are_bounded_in_bytes(servers, redis):
    """Each with other users, of a different subject, through both protocols."""
    gateway = servers.gateway(redis, "--max-filter-bytes", "8M", env=NO_QUARANTINE)
    follow(gateway, 0, "0").close()
    before = gateway.resident_bytes()
    refused = 0
    with contextlib.ExitStack() as stack:
        for number in range(1, 41):
            try:
                stack.enter_context(follow(gateway, number, f"{number}", 5000))
            except Refused as answer:
                assert answer.response.error["code"] == "too_many_filters"
                refused += 1
        many = stack.enter_context(gateway.stream("/v1/stream", "websocket"))
        for number in range(25):
            refused += subscribe(many, {"follow": users(100 + number, 5000)}, f"{number}") is not None
        metrics = gateway.metrics()
        assert metrics["sluice_filter_bytes"] <= 8 << 20
        assert metrics['sluice_filters_refused_total{limit="worker"}'] == refused >= 45
        assert gateway.resident_bytes() - before < 16 << 20


class Chatty:
    """A client of /v1/stream that starts a message of the maximum size and does not finish it."""

    def __init__(self, gateway, sub, **options):
        self.stream = gateway.stream("/v1/stream", "raw-websocket", token=gateway.token(sub=sub), **options)

    def begin(self):
        with contextlib.suppress(OSError):  # it was disconnected meanwhile
            self.stream.connection.send(HALF_A_MESSAGE)

    def is_told_busy(self):
        if not self.stream.connection.has_news():
            return False
        last = self.stream.to_end()[-1]
        assert (last.type, last["code"], self.stream.close_code) == ("disconnect", "busy", 1013)
        assert last["retry_ms"] >= 1
        return True


@pytest.mark.parametrize("subjects, each, bound", [(1, 90, 16 << 20), (6, 50, 64 << 20)])
def test_unfinished_messages_are_bounded_in_all(servers, redis, subjects, each, bound):
    """And for one subject. Clients that continue are served; of those that stopped some must be disconnected."""
    gateway = servers.gateway(redis, "--keepalive-ms", 600000, env=NO_QUARANTINE)
    chatty = [Chatty(gateway, f"{subject}") for _ in range(each) for subject in range(subjects)]
    before = gateway.resident_bytes()
    for one in chatty:
        one.begin()

    def are_in_bounds():
        """Also that nothing is pending: each is connected, or was disconnected."""
        metrics = gateway.metrics()
        assert metrics["sluice_stream_kept_bytes"] <= bound
        assert gateway.resident_bytes() - before < bound + MARGIN
        return metrics[BUSY] > 0 and \
            metrics["sluice_stream_kept_bytes"] == (len(chatty) - metrics[BUSY]) * (256 << 10)
    eventually(are_in_bounds, "all have said what they say")
    large = {"track": ",".join(f"{number:060}" for number in range(400)), "tag": "x"}

    def is_heard():
        with gateway.stream("/v1/stream", "raw-websocket", token=gateway.token(sub="other")) as other:
            other.send_frame(TEXT, json.dumps({"op": "subscribe", "id": "a", "filter": large}).encode())
            return other.next().json == {"op": "subscribed", "id": "a"}
    assert subjects > 1 or is_heard(), "another subject is not concerned"
    eventually(is_heard, "somebody who ends what they say; in its first second nobody is slow")
    assert gateway.metrics()["sluice_stream_kept_bytes"] <= bound
    assert gateway.resident_bytes() - before < bound + MARGIN
    eventually(lambda: any(one.is_told_busy() for one in chatty), "somebody is told")
    for one in chatty:
        one.stream.close()
    eventually(lambda: gateway.metrics()["sluice_stream_kept_bytes"] == 0, "all is given back")


def test_answers_that_are_not_read_are_bounded_in_all(servers, redis):
    """A stream may have 1 MiB of them, which none of these has; a subject 16 MiB, which is less than 200 kB for each of
    these."""
    gateway = servers.gateway(redis, "--keepalive-ms", 600000, env=NO_QUARANTINE)
    deaf = [Chatty(gateway, "1", receive_buffer=4096).stream for _ in range(90)]
    before = gateway.resident_bytes()
    for stream in deaf:
        for number in range(25):
            stream.send_frame(TEXT, json.dumps({"op": "subscribe", "id": f"{number}", "filter": {
                "track": "kite", "tag": "t" * 200}}).encode())
    for stream in deaf:
        before_it = gateway.metrics()
        for _ in range(100):  # until the socket is full; the answers to these have 300 kB
            stream.connection.send(frame(TEXT, b'{"op":"list"}') * 50)
            metrics = gateway.metrics()
            assert metrics["sluice_stream_kept_bytes"] <= 16 << 20
            if (metrics["sluice_stream_kept_bytes"] >= before_it["sluice_stream_kept_bytes"] + (200 << 10)
                    or metrics[BROKEN] > before_it[BROKEN]):
                break
    assert gateway.metrics()[BROKEN] > 0
    assert gateway.resident_bytes() - before < 48 << 20
    for stream in deaf:
        stream.close()
    eventually(lambda: gateway.metrics()["sluice_stream_kept_bytes"] == 0, "all is given back")


def test_streams_from_an_address_are_limited(servers, redis):
    gateway = servers.gateway(redis, "--max-connections-per-address", 3, workers=2)
    with contextlib.ExitStack() as stack:
        for number in range(3):
            stack.enter_context(gateway.stream(FIREHOSE, token=gateway.token(sub=str(number))))
        for number in range(4):
            assert_refused(gateway, sub=f"other{number}")
        assert gateway.metrics()[f'{REFUSED}{{limit="address"}}'] == 4


def test_oldest_stream_of_a_subject_makes_room(servers, redis):
    gateway = servers.gateway(redis, "--max-connections-per-subject", 2, "--replace-oldest",
                              workers=2)
    oldest = gateway.stream(FIREHOSE, "raw-websocket", token=gateway.token(sub="1"))
    second = gateway.stream(FIREHOSE, "sse", token=gateway.token(sub="1"))
    other = gateway.stream(FIREHOSE, token=gateway.token(sub="2"))
    third = gateway.stream(FIREHOSE, token=gateway.token(sub="1"))
    disconnect, = oldest.to_end()
    assert (disconnect.type, disconnect["code"], oldest.close_code) == ("disconnect", "replaced", 4003)
    assert "retry_ms" not in disconnect.json
    redis.publish(events.dump(events.post(7, "for those who are left")))
    for stream in (second, other, third):
        assert stream.next()["id"] == "7"


def test_event_source_that_is_replaced_is_told_to_stay_away(servers, redis):
    """Two tabs that reconnect by themselves would replace each other forever."""
    gateway = servers.gateway(redis, "--max-connections-per-subject", 1, "--replace-oldest")
    first = gateway.stream(FIREHOSE, "sse")
    with gateway.stream(FIREHOSE, "sse"):
        disconnect, = first.to_end()
        assert (disconnect["code"], first.retry_ms) == ("replaced", 86400000)


def test_dead_worker_costs_only_its_own_clients(servers, redis):
    gateway = servers.gateway(redis, "--max-connections", 20, workers=2)
    streams = [Collector(gateway.stream(FIREHOSE)) for _ in range(20)]
    assert_refused(gateway)
    opened = gateway.metrics()["sluice_streams_opened_total"]
    victim, survivor = gateway.workers()
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: len(gateway.workers()) == 2 and victim not in gateway.workers(),
               "the worker is replaced")
    gateway.first_workers = gateway.workers()
    redis.publish(events.dump(events.post(8, "after the crash")))
    eventually(lambda: all(c.ended or c.messages for c in streams), "each has ended or goes on")
    left = [c for c in streams if not c.ended]
    # The streams of the dead worker are free again; what it counted is not lost.
    eventually(lambda: gateway.metrics()["sluice_streams"] == len(left), "its streams are freed")
    assert gateway.metrics()["sluice_streams_opened_total"] >= opened
    assert survivor in gateway.workers()
    eventually(lambda: gateway.metrics()["sluice_worker_ready{worker=\"0\"}"] +
               gateway.metrics()["sluice_worker_ready{worker=\"1\"}"] == 2, "both serve")
    back = [gateway.stream(FIREHOSE) for _ in range(20 - len(left))]
    assert_refused(gateway)
    for stream in back:
        stream.close()


def test_silent_connections_are_bounded(servers, redis):
    gateway = servers.gateway(redis, "--max-pending-handshakes", 8)
    with gateway.stream(FIREHOSE) as stream:
        silent = [gateway.connect_half() for _ in range(30)]
        eventually(lambda: len(select.select(silent, [], [], 0)[0]) >= 22, "the others are closed")
        redis.publish(events.dump(events.post(9, "still served")))
        assert stream.next()["id"] == "9"
        for connection in silent:
            connection.close()

        def dropped():
            with contextlib.suppress(OSError, ConnectionEnded):
                return gateway.metrics()["sluice_handshakes_dropped_total"] >= 22
        eventually(dropped, "they are counted")


def test_events_owed_by_all_together_are_bounded(servers, redis):
    """Each stalled client alone is within its own limit."""
    gateway = servers.gateway(redis, "--max-owed-bytes", "64M", "--max-shared-bytes", "1M",
                              "--ring-bytes", "1M")
    stalled = [gateway.stream(FIREHOSE, transport, receive_buffer=4096)
               for transport in ("ndjson", "sse", "raw-websocket")]
    neighbour = Collector(gateway.stream(FIREHOSE))
    text = "x" * 20_000
    for number in range(1, 701):
        redis.publish(events.dump(events.post(number, text)))
        if number % 50 == 0:
            neighbour.wait_id(number)
    metrics = gateway.metrics()
    assert metrics["sluice_event_bytes_exceeded_total"] >= 1
    assert metrics["sluice_event_bytes"] <= 3 << 20
    assert metrics["sluice_streams_fallen_behind_total"] >= len(stalled)


def test_accepting_survives_a_lack_of_descriptors(servers, redis):
    gateway = servers.gateway(redis)
    worker, = gateway.workers()
    with gateway.stream(FIREHOSE) as stream:
        limit = processes.open_files(worker) + 8
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (limit, limit))
        crowd = []
        for _ in range(60):
            with contextlib.suppress(OSError):
                crowd.append(gateway.connect_half())
        redis.publish(events.dump(events.post(10, "to those inside")))
        assert stream.next()["id"] == "10"
        for connection in crowd:
            connection.close()

        def answers():
            with contextlib.suppress(OSError, ConnectionEnded):
                return gateway.get("/healthz").status == 200
        eventually(answers, "it accepts again")
        assert gateway.metrics()["sluice_accept_exhausted_total"] >= 1


def test_peer_that_answers_no_ping_is_let_go(servers, redis):
    """It does not close either: as if its machine had disappeared."""
    gateway = servers.gateway(redis, "--keepalive-ms", 2000)
    with gateway.stream(FIREHOSE, "websocket"):  # its library answers
        dead = gateway.stream(FIREHOSE, "raw-websocket")
        eventually(lambda: gateway.metrics()["sluice_broken_connections_total"] == 1, "it is found")
        assert gateway.metrics()["sluice_streams"] == 1
        dead.close()
