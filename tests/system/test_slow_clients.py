"""Clients that stop reading: their memory is limited, they lose nothing without being told, and other clients are not
affected."""

import socket

import pytest

from harness import events
from harness.programs import NO_QUARANTINE
from harness.streams import Collector
from harness.waiting import eventually

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
TEXT = "a long post, so that few of them fill a socket " * 40


def publish_many(redis, first, count):
    redis.publish_many(events.dump(events.post(number, TEXT)) for number in range(first, first + count))


def flood(redis, first, count, reader):
    """Publishes more than a stalled client may be owed, but never more than `reader` can follow: at most 50 posts, 100
    kB, are in flight."""
    for start in range(first, first + count, 50):
        publish_many(redis, start, 50)
        reader.wait_id(start + 49, 60)


def sort_out(stream, is_all):
    """Reads, fast, until `is_all` is true for the ids of events: returns these ids, and the control messages between
    them."""
    stream.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    got, said = [], []
    while not is_all(got):
        message = stream.next(60)
        assert message, "the stream ended"
        if message.is_control:
            said.append((len(got), message))
        else:
            got.append(message["id"])
    return got, said


@pytest.mark.parametrize("transport", ["ndjson", "sse", "raw-websocket"])
def test_stalled_clients_cost_a_bounded_amount(servers, redis, transport):
    """Events without a log: what is no longer in memory is reported as a gap, and then comes everything else."""
    gateway = servers.gateway(redis, "--max-owed-bytes", 262144, "--ring-bytes", 1 << 20,
                              env=NO_QUARANTINE)
    neighbour = Collector(gateway.stream(FIREHOSE, "ndjson"))
    flood(redis, 1, 2000, neighbour)  # buffers and caches reach their usual size
    stalled = [gateway.stream(FIREHOSE, transport, receive_buffer=4096) for _ in range(20)]
    before = gateway.resident_bytes()
    flood(redis, 10001, 15000, neighbour)  # about 30 MB for each
    after = gateway.resident_bytes()
    assert [m["id"] for m in neighbour.messages] == \
        [str(n) for n in [*range(1, 2001), *range(10001, 25001)]]
    assert after - before < 20 * (128 << 10) + (8 << 20), (before, after)
    for stream in stalled[:2]:
        got, said = sort_out(stream, lambda got: got[-1:] == ["25000"])
        assert {m.type for _, m in said} <= {"warning", "gap"}
        [(place, gap)] = [(place, m) for place, m in said if m.type == "gap"]
        assert gap["reason"] == "unlogged"
        first = int(got[place])
        assert got == [str(n) for n in [*range(10001, 10001 + place), *range(first, 25001)]]


@pytest.mark.parametrize("transport, ring_bytes", [("ndjson", 64 << 10), ("raw-websocket", 64 << 10),
                                              ("sse", 64 << 20), ("delimited", 64 << 20)])
def test_slow_client_gets_everything_and_is_live_again(servers, cli_for, transport, ring_bytes):
    """From memory while it reaches back far enough, otherwise from the log: nothing missing, nothing twice."""
    redis = servers.redis()
    gateway = servers.gateway(redis, "--max-owed-bytes", 65536, "--ring-bytes", ring_bytes)
    stream = gateway.stream(FIREHOSE, transport, receive_buffer=4096)
    file = servers.folder / "posts.jsonl"
    with open(file, "w") as out:
        for number in range(1, 1501):  # 15 MB: more than a socket holds
            out.write(events.dump(events.post(number, 5 * TEXT, user=str(number % 9 + 1))) + "\n")
    cli = cli_for(redis)
    cli.run("replay", file)
    wanted = [event["id"] for event in redis.log() if event["type"] == "post"]
    assert len(wanted) == 1500
    got, said = sort_out(stream, lambda got: len(got) == 1500)
    assert events.by_shard(got) == events.by_shard(wanted)
    (place, warning), *_ = said
    assert (warning.type, warning["code"]) == ("warning", "behind")
    assert 0 < warning["events"] <= 1500 - place and warning["ms"] >= 0
    numbers = gateway.metrics()
    assert numbers["sluice_streams_fallen_behind_total"] >= 1
    assert (numbers["sluice_log_pages_read_total"] > 0) == (ring_bytes == 64 << 10)
    eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 0, "it is live again")
    last = cli.ids("post", "--user", "u1", "live")[0]
    assert stream.next()["id"] == last


def test_neighbours_of_stalled_clients_get_each_post_before_the_next(servers, redis):
    gateway = servers.gateway(redis, "--gather-ms", 0, "--max-owed-bytes", 262144)
    stalled = [gateway.stream(FIREHOSE, transport, receive_buffer=4096)
               for transport in ("ndjson", "sse", "raw-websocket") for _ in range(10)]
    neighbour = Collector(gateway.stream(FIREHOSE, "websocket"))
    flood(redis, 1000, 2000, neighbour)
    for number in range(5000, 5200):
        publish_many(redis, number, 1)
        neighbour.wait_id(number)
    assert len(neighbour.messages) == 2200
    del stalled


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "sse", "raw-websocket"])
def test_client_that_pauses_goes_on_intact(gateway, redis, transport):
    """A partial write, then the rest: no byte lost, none twice."""
    stream = gateway.stream(FIREHOSE, transport, receive_buffer=4096)
    neighbour = Collector(gateway.stream(FIREHOSE))
    publish_many(redis, 1, 300)  # 600 kB: more than the socket holds, less than what may be owed
    neighbour.wait_id(300)
    assert [m["id"] for m in stream.until(300)] == [str(n) for n in range(1, 301)]


def test_reading_one_byte_at_a_time(gateway, redis):
    stream = gateway.stream(FIREHOSE, "ndjson", receive_buffer=4096)
    publish_many(redis, 1, 20)
    body = bytearray()
    while body.count(b"\r\n{") + body.count(b"\n{") < 19 or b'"20"' not in body:
        byte = stream.connection.socket.recv(1)
        assert byte
        body += byte
    assert body.count(b'"type":"post"') >= 19
