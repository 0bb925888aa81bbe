"""Streams as frames of zstd, read by independent decoders. test_compression.py compares them with their uncompressed
siblings."""

import random
import subprocess

import pytest
import zstandard

from harness import events
from harness.http import form_bytes
from harness.streams import Collector
from harness.waiting import Deadline, eventually

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
WORDS = ["stream", "of", "events", "coffee", "tea", "the", "a", "gateway", "日本", "☕", "Dublin"]


def text(rng, size=120):
    return " ".join(rng.choice(WORDS) + str(rng.randrange(50)) for _ in range(size // 8))


def publish(redis, number, words):
    redis.publish(events.dump(events.post(number, words)))


def open_body(gateway, target, headers):
    """Returns the head of the answer, and its connection."""
    connection = gateway.connect()
    connection.send(form_bytes("GET", target, {**gateway.bearer(), **headers}))
    return connection, connection.read_head()


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream"])
def test_each_chunk_is_a_whole_frame_and_so_is_the_end(servers, redis, accept, tmp_path):
    """With control messages and keep-alives: a blank line, which is a frame, too."""
    gateway = servers.gateway(redis, "--keepalive-ms", "50")
    connection, head = open_body(gateway, FIREHOSE + "?hello=true&cursors=true",
                                 {"Accept": accept, "Accept-Encoding": "zstd"})
    assert head.headers["content-encoding"] == "zstd" and "Accept-Encoding" in head.headers["vary"]
    neighbour = Collector(gateway.stream(FIREHOSE, "ndjson+zstd"))
    for number in range(1, 30):
        publish(redis, number, text(random.Random(number)))
        neighbour.wait_id(number)
        if number % 10 == 0:
            neighbour.stream.keepalives = 0
            eventually(lambda: neighbour.stream.keepalives > 0, "a keep-alive")
    gateway.begin_stop()
    body, said, deadline = b"", b"", Deadline(what="the end of the body")
    while chunk := connection.read_chunk(deadline):
        frame = zstandard.get_frame_parameters(chunk)
        one = zstandard.ZstdDecompressor().decompress(chunk)  # refuses to read less than its frame says
        assert not frame.has_checksum and not frame.dict_id and frame.content_size == len(one)
        body, said = body + chunk, said + one
    (tmp_path / "body.zst").write_bytes(body)
    by_command = subprocess.run(["zstd", "-dc", tmp_path / "body.zst"], check=True, capture_output=True)
    assert by_command.stdout == said
    assert said.count(b'"type":"post"') == 29 and b'"draining"' in said and b'"hello"' in said
    neighbour.wait_end()
    gateway.stop()


def test_what_is_gathered_is_one_frame_and_made_once(servers, redis):
    """For all lanes and formats of a kind; only what is sent together is encoded by each lane."""
    gateway = servers.gateway(redis, "--gather-ms", "0")
    streams = [Collector(gateway.stream(target, "ndjson+zstd"))
               for target in (FIREHOSE, FIREHOSE, "/v1/stream/filter?track=coffee", "/v1/stream/sample?percent=100")]
    for number in range(1, 21):
        publish(redis, number, f"coffee, number {number}: " + text(random.Random(number)))
        for stream in streams:
            stream.wait_id(number)
    numbers = eventually(lambda: (m := gateway.metrics()) and m["sluice_deliveries_total"] == 80 and m,
                         "all is counted")
    assert numbers['sluice_compression_blocks_total{encoding="zstd"}'] == 20
    assert numbers['sluice_compression_blocks_total{encoding="deflate"}'] == 0
    before = numbers['sluice_compression_before_bytes_total{encoding="zstd"}']
    assert before > numbers['sluice_compression_after_bytes_total{encoding="zstd"}'] > 0
    assert numbers['sluice_compression_seconds_total{encoding="zstd"}'] > 0
    assert all(stream.stream.decoder.frames == 20 for stream in streams)
    gathering = Collector(gateway.stream(FIREHOSE + "?gather_ms=1000", "sse+zstd"))
    for number in range(21, 42):
        publish(redis, number, text(random.Random(number)))
    gathering.wait_id(41)
    assert gathering.stream.decoder.frames < 10
    gateway.stop()


def test_http_1_0_gets_frames_without_chunks(gateway, redis, tmp_path):
    with gateway.connect() as connection:
        connection.send(f"GET {FIREHOSE} HTTP/1.0\r\nAccept-Encoding: zstd\r\n"
                        f"Authorization: Bearer {gateway.token()}\r\n\r\n".encode())
        head = connection.read_head()
        assert head.headers["content-encoding"] == "zstd" and "transfer-encoding" not in head.headers
        body, deadline = b"", Deadline(what="the posts")
        for number in (1, 2, 3):
            publish(redis, number, "for an old client")
            while True:
                assert connection.fill(deadline)
                body += connection.take(len(connection.buffer))
                (tmp_path / "body.zst").write_bytes(body)
                said = subprocess.run(["zstd", "-dc", tmp_path / "body.zst"], capture_output=True).stdout
                if said.count(b"\r\n") == number:
                    break
