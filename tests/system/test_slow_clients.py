"""Clients that stop reading: their memory is bounded, they lose nothing in silence, and their
neighbours feel nothing."""

import pytest

from harness import events
from harness.streams import Collector

FIREHOSE = "/v1/stream/firehose"
# Without its quarantine asan gives freed memory back, so that memory can be read off.
NO_QUARANTINE = {"ASAN_OPTIONS": "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}
TEXT = "a long post, so that few of them fill a socket " * 40


def publish_many(redis, first, count):
    pipe = redis.client.pipeline(transaction=False)
    for number in range(first, first + count):
        pipe.publish("sluice:{0}:live", events.dump(events.post(number, TEXT)))
    pipe.execute()


def flood(redis, first, count, reader):
    """Publishes more than a stalled client may be owed, but never more than `reader` keeps up with:
    at most 50 posts, 100 kB, are on their way to it."""
    for start in range(first, first + count, 50):
        publish_many(redis, start, 50)
        reader.wait_id(start + 49, 60)


@pytest.mark.parametrize("wire", ["ndjson", "sse", "raw-websocket"])
def test_stalled_clients_cost_a_bounded_amount(servers, redis, wire):
    gateway = servers.gateway(redis, "--max-owed-bytes", 262144, env=NO_QUARANTINE)
    neighbour = Collector(gateway.stream(FIREHOSE, "ndjson"))
    flood(redis, 1, 2000, neighbour)  # buffers and caches reach their usual size
    stalled = [gateway.stream(FIREHOSE, wire, receive_buffer=4096) for _ in range(20)]
    before = gateway.resident_bytes()
    flood(redis, 10001, 15000, neighbour)  # some 30 MB for each
    after = gateway.resident_bytes()
    assert [m["id"] for m in neighbour.messages] == \
        [str(n) for n in [*range(1, 2001), *range(10001, 25001)]]
    assert after - before < 20 * 262144 * 2 + (24 << 20), (before, after)
    for stream in stalled:
        assert_nothing_lost_in_silence(stream)


def assert_nothing_lost_in_silence(stream):
    """A prefix without holes; where it stops, the server has said so."""
    expected = 10001
    try:
        while (message := stream.next()) is not None:
            if message.is_control:
                assert message.type in ("disconnect", "gap", "warning"), message
                if message.type == "disconnect":
                    assert message["code"] == "too_slow"
                    return
                if message.type == "gap":
                    return
                continue
            assert message["id"] == str(expected)
            expected += 1
            if expected == 25001:
                return
    except ConnectionError:
        return  # cut off hard: a stalled client cannot be told anything


def test_slow_client_of_the_log_gets_everything(servers, cli_for):
    """What the log holds, a client who reads late gets, or is told its cursor."""
    redis = servers.redis()
    gateway = servers.gateway(redis, "--max-owed-bytes", 65536)
    stream = gateway.stream(FIREHOSE, "ndjson", receive_buffer=4096)
    file = servers.folder / "posts.jsonl"
    with open(file, "w") as out:
        for number in range(1, 3001):
            out.write(events.dump(events.post(number, TEXT, user=str(number % 9 + 1))) + "\n")
    cli_for(redis).run("replay", file)
    wanted = [entry.split("-")[0] for entry, fields
              in redis.client.xrange("sluice:{0}:log") if '"type":"post"' in fields["e"]]
    assert len(wanted) == 3000
    got = []
    try:
        while len(got) < 3000 and (message := stream.next()) is not None:
            if message.type == "disconnect":
                assert message["code"] == "too_slow"
                # Between what it has and what it lacks.
                assert int(got[-1]) <= int(message["cursor"]) < int(wanted[len(got)])
                break
            if not message.is_control:
                got.append(message["id"])
    except ConnectionError:
        pass
    assert got and got == wanted[:len(got)]


def test_neighbours_of_stalled_clients_get_each_post_before_the_next(servers, redis):
    gateway = servers.gateway(redis, "--gather-ms", 0, "--max-owed-bytes", 262144)
    stalled = [gateway.stream(FIREHOSE, wire, receive_buffer=4096)
               for wire in ("ndjson", "sse", "raw-websocket") for _ in range(10)]
    neighbour = Collector(gateway.stream(FIREHOSE, "websocket"))
    flood(redis, 1000, 2000, neighbour)
    for number in range(5000, 5200):
        publish_many(redis, number, 1)
        neighbour.wait_id(number)
    assert len(neighbour.messages) == 2200
    del stalled


@pytest.mark.parametrize("wire", ["ndjson", "delimited", "sse", "raw-websocket"])
def test_client_that_pauses_goes_on_intact(gateway, redis, wire):
    """A partial write, then the rest: no byte lost, none twice."""
    stream = gateway.stream(FIREHOSE, wire, receive_buffer=4096)
    neighbour = Collector(gateway.stream(FIREHOSE))
    publish_many(redis, 1, 300)  # 600 kB: more than the socket takes, less than what may be owed
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
