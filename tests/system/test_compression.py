"""Compressed streams, read by independent decoders: each equals its uncompressed sibling, byte by byte, whichever
clients connect, disconnect, fall behind or come back meanwhile. And compressed messages of clients."""

import gzip
import json
import os
import random
import shutil
import subprocess
import zlib

import pytest
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory

from harness import events
from harness.cli import Cli
from harness.http import form_bytes
from harness.streams import Collector
from harness.waiting import Deadline, eventually
from harness.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
MANY = "/v1/stream"
PAIRS = [("ndjson", "ndjson+gzip"), ("delimited", "delimited+gzip"), ("sse", "sse+gzip"),
         ("ndjson", "ndjson+zstd"), ("delimited", "delimited+zstd"), ("sse", "sse+zstd"),
         ("raw-websocket", "raw-websocket+deflate"), ("websocket", "websocket+deflate")]
COMPRESSED = [pair[1] for pair in PAIRS]
MAX_MESSAGE_BYTES = 256 << 10


def text(random, size=120):
    """Random words, up to this size."""
    words = ["stream", "of", "events", "coffee", "tea", "the", "a", "gateway", "日本", "☕", "Dublin"]
    return " ".join(random.choice(words) + str(random.randrange(50)) for _ in range(size // 8))


def publish_some(redis, first, count, random):
    for number in range(first, first + count):
        redis.publish(events.dump(events.post(number, text(random, random.choice([8, 120, 4000])))))


def raws(messages):
    return [m.raw if isinstance(m.raw, bytes) else m.raw.encode() for m in messages]


@pytest.mark.parametrize("plain, compressed", PAIRS, ids=COMPRESSED)
def test_a_compressed_stream_says_what_its_sibling_says(gateway, redis, plain, compressed):
    rng = random.Random(compressed)
    readers = [Collector(gateway.stream(FIREHOSE, transport)) for transport in (plain, compressed)]
    for begin in range(1, 200, 20):
        publish_some(redis, begin, 20, rng)
        late = gateway.stream(FIREHOSE, compressed)  # connects, is fresh, and disconnects
        publish_some(redis, begin + 1000, 1, rng)
        assert late.next()["id"]
        late.close()
        for reader in readers:
            reader.wait_id(begin + 1000)
    assert raws(readers[0].messages) == raws(readers[1].messages)


def raw_body(gateway, target, headers):
    """Returns the head, and a reader of the chunks of the body."""
    connection = gateway.connect()
    connection.send(form_bytes("GET", target, {**gateway.bearer(), **headers}))
    return connection, connection.read_head()


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream"])
def test_a_stream_that_ends_is_one_whole_member_of_gzip(servers, redis, accept, tmp_path):
    """With control messages, keep-alives and a reset or two in between, up to the trailer."""
    gateway = servers.gateway(redis, "--keepalive-ms", "50", "--compression-reset-flushes", "3")
    headers = {"Accept": accept}
    target = FIREHOSE + "?hello=true&cursors=true"
    connection, head = raw_body(gateway, target, {**headers, "Accept-Encoding": "gzip"})
    assert head.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in head.headers["vary"]
    neighbour = Collector(gateway.stream(FIREHOSE, "ndjson+gzip"))
    for number in range(1, 30):
        publish_some(redis, number, 1, random.Random(number))
        neighbour.wait_id(number)
        if number % 10 == 0:
            neighbour.stream.keepalives = 0
            eventually(lambda: neighbour.stream.keepalives > 0, "a keep-alive")
    gateway.begin_stop()
    body, deadline = b"", Deadline(what="the end of the body")
    while chunk := connection.read_chunk(deadline):
        body += chunk
    decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
    said = decoder.decompress(body)
    assert decoder.eof and not decoder.unused_data  # one member, and nothing after it
    assert gzip.decompress(body) == said
    (tmp_path / "body.gz").write_bytes(body)
    subprocess.run(["gzip", "-t", tmp_path / "body.gz"], check=True)
    assert said.count(b'"type":"post"') == 29 and b'"draining"' in said and b'"hello"' in said
    neighbour.wait_end()
    gateway.stop()


@pytest.mark.parametrize("compressed", ["ndjson+gzip", "sse+gzip", "sse+zstd", "raw-websocket+deflate"])
def test_who_falls_behind_and_comes_back_misses_nothing(servers, redis, compressed):
    gateway = servers.gateway(redis, "--max-owed-bytes", "8M")
    rng = random.Random(1)
    slow = gateway.stream(FIREHOSE, compressed, receive_buffer=4096)
    neighbour = Collector(gateway.stream(FIREHOSE, compressed))
    for begin in (1, 10001, 20001):
        for number in range(begin, begin + 150):  # incompressible, so that sockets fill
            noise = rng.randbytes(4000).hex()
            redis.publish(events.dump(events.post(number, noise)))
        neighbour.wait_id(begin + 149)
        slow.until(begin + 149)  # it reads on, and is in step again
        publish_some(redis, begin + 5000, 20, rng)
        slow.until(begin + 5019)
        neighbour.wait_id(begin + 5019)
    gateway.stop()


@pytest.mark.parametrize("compressed", COMPRESSED)
def test_catching_up_is_compressed_too(gateway, cli, redis, compressed):
    first = cli.run("post", "--user", "ada", "the first of many")
    ids = [cli.run("post", "--user", "ada", f"number {n} of many, many posts") for n in range(20)]
    with gateway.stream(f"{FIREHOSE}?since={first}", compressed) as stream:
        logged = [m["id"] for m in stream.until(ids[-1]) if int(m["id"]) > int(first)]  # others have no cursor
        assert logged == ids
        live = cli.run("post", "--user", "ada", "and then a live one")
        assert [m["id"] for m in stream.until(live) if int(m["id"]) > int(first)] == [live]


@pytest.fixture(scope="module", autouse=True)
def ada(module_servers, redis):
    Cli(redis).run("user", "add", "ada", "--name", "Ada")


def test_deflate_makes_it_smaller_and_the_metrics_say_so(servers, redis):
    gateway = servers.gateway(redis)
    streams = [Collector(gateway.stream(FIREHOSE, t)) for t in ("sse+gzip", "raw-websocket+deflate")]
    for number in range(1, 101):
        publish_some(redis, number, 1, random.Random(number % 7))
        for stream in streams:
            stream.wait_id(number)
    assert streams[1].stream.deflated == 100
    numbers = eventually(lambda: (m := gateway.metrics()) and m["sluice_deliveries_total"] == 200 and m,
                         "all is counted")
    before = numbers['sluice_compression_before_bytes_total{encoding="deflate"}']
    after = numbers['sluice_compression_after_bytes_total{encoding="deflate"}']
    assert before > 3 * after > 0
    assert numbers["sluice_compression_histories"] == 2
    assert 500_000 < numbers["sluice_compression_history_bytes"] < 600_000
    assert numbers['sluice_compression_seconds_total{encoding="deflate"}'] > 0
    gateway.stop()


def test_without_memory_for_histories_each_event_is_compressed_by_itself(servers, redis):
    gateway = servers.gateway(redis, "--max-compression-bytes", "300K")
    streams = [Collector(gateway.stream(FIREHOSE, t)) for t in COMPRESSED if "zstd" not in t]
    publish_some(redis, 1, 1, random.Random(1))
    for number in range(2, 30):
        publish_some(redis, number, 1, random.Random(1))
        for stream in streams:
            stream.wait_id(number)
    numbers = gateway.metrics()
    assert numbers["sluice_compression_histories"] == 1
    assert numbers["sluice_compression_refusals_total"] > 0
    assert numbers["sluice_compression_refused_histories"] == 3  # both WebSockets share one
    assert status_of(gateway, "gzip") == (200, "gzip")  # new clients are compressed, too
    gateway.stop()


@pytest.mark.parametrize("compressed", ["ndjson+gzip", "delimited+gzip", "sse+gzip"])
@pytest.mark.parametrize("cursors", ["", "?cursors=true"], ids=["plain", "cursors"])
def test_keepalives_are_said_to_all_and_cost_nobody_the_history(servers, redis, compressed, cursors):
    gateway = servers.gateway(redis, "--keepalive-ms", "50")
    with gateway.stream(FIREHOSE + cursors, compressed) as one, gateway.stream(FIREHOSE + cursors, compressed) as other:
        for number in range(1, 5):
            publish_some(redis, number, 1, random.Random(number))
            for stream in (one, other):
                stream.until(number)
                stream.wait_keepalives(1)
        numbers = gateway.metrics()
        assert numbers["sluice_compression_resets_total"] == 0
        assert numbers["sluice_deliveries_total"] == 8
    gateway.stop()


def test_curl_decompresses(gateway, redis, tmp_path):
    token = gateway.token()
    out = tmp_path / "out"
    with out.open("wb") as file:
        curl = subprocess.Popen(
            ["curl", "-sN", "--compressed", "--insecure", "-H", f"Authorization: Bearer {token}",
             gateway.url + FIREHOSE], stdout=file)
    try:
        with gateway.stream(FIREHOSE) as stream:
            def published():
                redis.publish(events.dump(events.post(1, "for curl, for curl, for curl")))
                return b"for curl" in out.read_bytes()
            eventually(published, "curl shows a post")
            assert out.read_bytes().split(b"\r\n")[0] == raws([stream.next()])[0]
    finally:
        curl.terminate()
        curl.wait()


NODE_FETCH = """
const [url, token] = process.argv.slice(1);
const answer = await fetch(url, {headers: {Authorization: `Bearer ${token}`, Accept: "text/event-stream"}});
process.stdout.write(answer.headers.get("content-encoding") + "\\n");
for await (const piece of answer.body) process.stdout.write(piece);
"""
NODE_WEBSOCKET = """
const [url, token] = process.argv.slice(1);
const socket = new WebSocket(url.replace("http", "ws") + "?access_token=" + token);
socket.onopen = () => process.stdout.write((socket.extensions || "none") + "\\n");
socket.onmessage = message => process.stdout.write(message.data + "\\n");
"""


@pytest.mark.parametrize("script, encoding", [(NODE_FETCH, "gzip"), (NODE_WEBSOCKET, "permessage-deflate")],
                         ids=["fetch", "websocket"])
def test_node_decompresses(gateway, redis, wire, script, encoding):
    node = shutil.which("node")
    if node is None or wire == "tls":
        pytest.skip("Node is not there, or would not take the certificate")
    options = ["--experimental-websocket"] if "WebSocket" in script else []
    command = [node, *options, "--input-type=module", "-e", script, gateway.url + FIREHOSE, gateway.token()]
    if options and subprocess.run([node, *options, "-e", "new WebSocket"], capture_output=True).returncode == 9:
        pytest.skip("this Node has no WebSocket of its own")
    reader = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        first = reader.stdout.readline().decode()
        if "WebSocket" in script and first == "none\n":
            pytest.skip("this Node asks for no compression")
        assert first.startswith(encoding)
        for number in range(1, 10):
            redis.publish(events.dump(events.post(number, "for node, " * 5)))
        lines = iter(lambda: reader.stdout.readline().decode(), "")
        ids = []
        for line in lines:
            line = line.removeprefix("data: ")
            if line.startswith("{"):
                ids.append(json.loads(line)["id"])
            if len(ids) == 9:
                break
        assert ids == [str(n) for n in range(1, 10)]
    finally:
        reader.kill()
        reader.wait()


# --- negotiation ---

@pytest.mark.parametrize("factory, agreed", [
    (ClientPerMessageDeflateFactory(), (False, None)),
    (ClientPerMessageDeflateFactory(server_max_window_bits=12), (False, 12)),
    (ClientPerMessageDeflateFactory(server_max_window_bits=15, client_max_window_bits=9), (False, 15)),
    (ClientPerMessageDeflateFactory(server_no_context_takeover=True), (True, None)),
    (ClientPerMessageDeflateFactory(server_max_window_bits=8), None),
    (ClientPerMessageDeflateFactory(server_max_window_bits=11), None),
])
def test_what_the_library_asks_for_is_agreed_on_and_kept(gateway, redis, factory, agreed):
    socket = gateway.websocket(FIREHOSE, headers=gateway.bearer(), extensions=[factory])
    chosen = socket.socket.extensions
    assert bool(chosen) == (agreed is not None)
    if agreed:
        assert chosen[0].remote_no_context_takeover == agreed[0]
        assert chosen[0].remote_max_window_bits == (agreed[1] or 15)
        assert chosen[0].local_no_context_takeover
    with socket, gateway.stream(FIREHOSE, "raw-websocket") as plain:
        for number in range(1, 40):
            publish_some(redis, number, 1, random.Random(number % 3))
            assert raws([socket.next()]) == raws([plain.next()])


def answer_to(gateway, extensions, target=FIREHOSE):
    connection, response = gateway.upgrade(target, {**gateway.bearer(), "Sec-WebSocket-Extensions": extensions})
    connection.close()
    assert response.status == 101
    return response.headers.get("sec-websocket-extensions")


def test_offers(gateway):
    plain = "permessage-deflate; client_no_context_takeover"
    assert answer_to(gateway, "permessage-deflate") == plain
    assert answer_to(gateway, ", ".join(["x-nothing; a=1"] * 99 + ["permessage-deflate"])) == plain
    assert answer_to(gateway, "permessage-deflate; server_max_window_bits=8, permessage-deflate") == plain
    assert answer_to(gateway, "permessage-deflate; server_max_window_bits=8") is None
    assert answer_to(gateway, "permessage-deflate", "/v1/stream/home") is None


def status_of(gateway, accept_encoding, target=FIREHOSE):
    """Returns status and coding of a stream."""
    with gateway.connect() as connection:
        connection.send(form_bytes("GET", target, {**gateway.bearer(), "Accept-Encoding": accept_encoding}))
        head = connection.read_head()
        return head.status, head.headers.get("content-encoding")


def test_accept_encoding(gateway):
    for accept, expected in [("gzip", (200, "gzip")), ("br, gzip;q=0.1", (200, "gzip")), ("*", (200, "gzip")),
                             ("gzip;q=0", (200, None)), ("br", (200, None)), ("identity;q=0", (406, None)),
                             ("gzip, identity;q=0", (200, "gzip")), ("*;q=0", (406, None)),
                             ("gzip;q=0.2, identity;q=0.8", (200, None)),
                             ("zstd", (200, "zstd")), ("gzip, deflate, br, zstd", (200, "gzip")),
                             ("gzip;q=0.9, zstd", (200, "zstd")), ("gzip;q=0, *", (200, "zstd")),
                             ("zstd;q=0.5, identity", (200, None)), ("zstd;q=0", (200, None)),
                             ("br, zstd;q=0.001, identity;q=0", (200, "zstd")), ("zstd;q=2", (200, None)),
                             ("*;q=0, zstd;q=0.1", (200, "zstd")), (", ".join(["zstd;q=0"] * 200 + ["*"]), (200, "gzip"))]:
        assert status_of(gateway, accept) == expected, accept


def test_home_streams_are_never_compressed(gateway):
    assert status_of(gateway, "gzip, zstd", "/v1/stream/home") == (200, None)
    assert status_of(gateway, "gzip, identity;q=0", "/v1/stream/home") == (406, None)


def test_compression_can_be_switched_off(servers, redis):
    gateway = servers.gateway(redis, "--compression", "off")
    assert status_of(gateway, "gzip, zstd") == (200, None)
    assert answer_to(gateway, "permessage-deflate") is None
    gateway.stop()


def test_compression_can_be_zstd_alone(servers, redis):
    gateway = servers.gateway(redis, "--compression", "zstd", "--compression-zstd-level", "19")
    assert status_of(gateway, "gzip, zstd;q=0.1") == (200, "zstd")
    assert status_of(gateway, "gzip, identity;q=0") == (406, None)
    assert answer_to(gateway, "permessage-deflate") is None
    gateway.stop()


def test_http_1_0_gets_gzip_without_chunks(gateway, redis):
    with gateway.connect() as connection:
        connection.send(f"GET {FIREHOSE} HTTP/1.0\r\nAccept-Encoding: gzip\r\n"
                        f"Authorization: Bearer {gateway.token()}\r\n\r\n".encode())
        head = connection.read_head()
        assert head.headers["content-encoding"] == "gzip" and "transfer-encoding" not in head.headers
        decoder, said = zlib.decompressobj(16 + zlib.MAX_WBITS), b""
        deadline = Deadline(what="the posts")
        for number in (1, 2, 3):
            redis.publish(events.dump(events.post(number, "for an old client")))
            while said.count(b"\r\n") < number:
                assert connection.fill(deadline)
                said += decoder.decompress(connection.take(len(connection.buffer)))
        assert [json.loads(line)["id"] for line in said.splitlines()] == ["1", "2", "3"]


# --- compressed messages of clients ---

def deflated(data, level=9):
    """Compresses a message for permessage-deflate."""
    compressor = zlib.compressobj(level, wbits=-15)
    return (compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH))[:-4]


def many(gateway):
    return gateway.stream(MANY, "raw-websocket+deflate")


def test_a_client_may_compress_what_it_says(gateway, redis):
    with many(gateway) as socket:
        add = json.dumps({"op": "subscribe", "id": "a-rule", "filter": {"track": "espresso"}}).encode()
        socket.send_frame(TEXT, deflated(add), reserved=4)
        assert socket.next()["op"] == "subscribed"
        whole = deflated(b'{"op":"list"}')
        socket.send_frame(TEXT, whole[:3], reserved=4, final=False)  # RSV1 with the first frame only
        socket.send_frame(CONTINUATION, whole[3:])
        assert "a-rule" in socket.next().raw
        socket.send_frame(TEXT, b'{"op":"list"}')  # compression is optional
        assert "a-rule" in socket.next().raw
        redis.publish(events.dump(events.post(7, "an espresso, please")))
        event = socket.next()
        assert event["id"] == "7" and event["matching_rules"]


def test_the_library_compresses_what_it_says(gateway):
    socket = gateway.websocket(MANY, headers=gateway.bearer(), compression="deflate")
    with socket:
        for number in range(3):
            socket.send(json.dumps({"op": "subscribe", "id": f"rule-{number}", "filter": {"track": "coffee " * 20}}))
            assert f"rule-{number}" in socket.next().raw


def end_of(socket):
    messages = socket.to_end()
    return socket.close_code, [m for m in messages if m.type == "disconnect"]


def bomb_pieces():
    bomb = deflated(b"{" * (8 << 20))
    half = len(bomb) // 2
    return (TEXT, bomb[:half], 4), (CONTINUATION, bomb[half:], 0)


BAD = {
    "bomb": (1009, lambda s: s.send_frame(TEXT, deflated(b" " * (64 << 20)), reserved=4)),
    "too long by one": (1009, lambda s: s.send_frame(TEXT, deflated(b" " * (MAX_MESSAGE_BYTES + 1)), reserved=4)),
    "not deflate": (1002, lambda s: s.send_frame(TEXT, b"\xff\xff\xff", reserved=4)),
    "cut off": (1002, lambda s: s.send_frame(TEXT, deflated(os.urandom(50))[:-9], reserved=4)),
    "empty": (1002, lambda s: s.send_frame(TEXT, b"", reserved=4)),
    "many streams": (1002, lambda s: s.send_frame(TEXT, b"\x03\x00" * 1000, reserved=4)),
    "back before the beginning": (1002, lambda s: s.send_frame(TEXT, b"\x03\x02\x00\x00", reserved=4)),
    "not UTF-8": (1007, lambda s: s.send_frame(TEXT, deflated(b"\xff"), reserved=4)),
    "binary": (1003, lambda s: s.send_frame(BINARY, deflated(b"{}"), reserved=4)),
    "RSV1 on a ping": (1002, lambda s: s.send_frame(PING, b"", reserved=4)),
    "RSV1 on a pong": (1002, lambda s: s.send_frame(PONG, b"", reserved=4)),
    "RSV1 on a close": (1002, lambda s: s.send_frame(CLOSE, b"\x03\xe8", reserved=4)),
    "RSV2": (1002, lambda s: s.send_frame(TEXT, deflated(b"{}"), reserved=2)),
    "RSV1 on a continuation": (1002, lambda s: (s.send_frame(TEXT, b"a", reserved=4, final=False),
                                                s.send_frame(CONTINUATION, b"b", reserved=4))),
    "RSV1 on both": (1002, lambda s: (s.send_frame(TEXT, deflated(b"{}")[:2], reserved=4, final=False),
                                      s.send_frame(CONTINUATION, deflated(b"{}")[2:], reserved=4))),
    "a bomb in pieces": (1009, lambda s: ([s.send_frame(opcode, piece, reserved=rsv, final=False)
                                           for opcode, piece, rsv in bomb_pieces()],
                                          s.send_frame(CONTINUATION, b"\0"))),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_fault_ends_its_own_connection_only(gateway, redis, fault):
    code, send = BAD[fault]
    with many(gateway) as neighbour, many(gateway) as socket:
        send(socket)
        close_code, disconnects = end_of(socket)
        assert (close_code, len(disconnects)) == (code, 1)
        neighbour.send_frame(TEXT, deflated(b'{"op":"list"}'), reserved=4)
        assert neighbour.next()["op"] == "list"


def test_rsv1_without_the_extension_stays_an_error(gateway):
    with gateway.stream(MANY, "raw-websocket") as socket:
        socket.send_frame(TEXT, deflated(b'{"op":"list"}'), reserved=4)
        assert end_of(socket)[0] == 1002


def test_the_largest_message_fits(gateway):
    with many(gateway) as socket:
        message = b'{"op":"list"' + b" " * (MAX_MESSAGE_BYTES - 13) + b"}"
        socket.send_frame(TEXT, deflated(message), reserved=4)
        assert socket.next()["op"] == "list"
