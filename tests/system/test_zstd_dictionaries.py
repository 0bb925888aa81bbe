"""Streams as frames of zstd with a dictionary, which independent decoders get from the server."""

import json
import random
import subprocess

import pytest

from harness import events, zstd
from harness.http import form_bytes
from harness.openapi import Description
from harness.streams import Collector, Refused
from harness.waiting import Deadline, eventually
from harness.websocket import TEXT

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
MANY = "/v1/stream"
PAIRS = [(wire, wire + "+dictionary") for wire in ("ndjson", "delimited", "sse", "raw-websocket")]
FIRST, SECOND = 40_001, 65_535


def text(number):
    rng = random.Random(number)
    words = ["stream", "of", "events", "coffee", "tea", "the", "a", "gateway", "日本", "☕", "Dublin"]
    return " ".join(rng.choice(words) + str(rng.randrange(50)) for _ in range(rng.choice([1, 14, 60])))


def publish(redis, number, words=None):
    redis.publish(events.dump(events.post(number, words or text(number))))


@pytest.fixture(scope="module", name="dictionary")
def a_dictionary(module_servers, redis):
    data = zstd.train(FIRST, [text(number) for number in range(1000, 1400)])
    zstd.add_dictionary(redis, FIRST, data, posts=400)
    return data


@pytest.fixture(name="loaded")
def the_gateway_has_it(gateway, dictionary):
    eventually(lambda: FIRST in zstd.listed(gateway) and gateway.get(f"/v1/dictionaries/{FIRST}").status == 200,
               "the gateway has the dictionary")
    return gateway


def test_the_list_and_the_bytes(loaded, dictionary):
    entry = zstd.listed(loaded)[FIRST]
    assert entry["bytes"] == len(dictionary) and entry["posts"] == 400
    description = Description()
    description.validate(loaded.get("/v1/dictionaries").json, {"$ref": "#/components/schemas/Dictionaries"})
    assert [operation.path for operation in description.public] == ["/v1/dictionaries", "/v1/dictionaries/{dictionary}"]
    assert entry["state"] in ("new", "active") and entry["trained_at"].endswith("Z")
    answer = loaded.get(f"/v1/dictionaries/{FIRST}")  # without a token
    assert answer.body == dictionary
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    for path, status, code in [("40002", 404, "unknown_dictionary"), ("x", 404, "unknown_dictionary"),
                               ("99999999999999999999", 404, "unknown_dictionary"), (f"{FIRST}/", 404, "unknown_dictionary")]:
        answer = loaded.get(f"/v1/dictionaries/{path}")
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (status, code), path
    with loaded.connect() as connection:
        answer = connection.request("DELETE", f"/v1/dictionaries/{FIRST}")
        assert answer.status == 405 and answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("plain, compressed", PAIRS, ids=[pair[1] for pair in PAIRS])
def test_a_stream_says_what_its_sibling_says(loaded, redis, plain, compressed):
    readers = [Collector(loaded.stream(FIREHOSE + "?hello=true", transport)) for transport in (plain, compressed)]
    for number in range(1, 61):
        publish(redis, number)
    for reader in readers:
        reader.wait_id(60)
    said = [[m.raw for m in reader.messages if m.type != "hello"] for reader in readers]
    assert said[0] == said[1]
    assert readers[1].messages[0].type == "hello"
    assert readers[1].stream.decoder.with_dictionary > 0


def test_named_rules_stand_behind_the_frame_that_all_share(loaded, redis):
    """matching_rules, in a final uncompressed block: whatever the name of a rule, however large the event."""
    names = ["a-rule", "r" * 32, "last"]
    sockets = [loaded.stream(MANY, transport) for transport in ("raw-websocket", "raw-websocket+dictionary")]
    for socket in sockets:
        for number, name in enumerate(names, 1):
            socket.send_frame(TEXT, json.dumps({"op": "subscribe", "id": name, "filter": {"track": "espresso"},
                                                "more": number < len(names)}))
        for _ in names:
            assert socket.next()["op"] == "subscribed"
    for number, size in [(1, 1), (2, 30), (3, 300), (4, 8000)]:
        publish(redis, number, "espresso " * size)
        plain, compressed = (socket.next() for socket in sockets)
        assert plain.raw == compressed.raw and [rule["id"] for rule in compressed["matching_rules"]] == names
    assert sockets[1].decoder.with_dictionary == 4
    for socket in sockets:
        socket.close()


def test_the_command_reads_it(loaded, redis, dictionary, tmp_path):
    """And `zstd -D` also reads frames without a dictionary among the others: those for this client alone."""
    connection = loaded.connect()
    connection.send(form_bytes("GET", f"{FIREHOSE}?hello=true&zstd_dictionary={FIRST}", loaded.bearer()))
    head = connection.read_head()
    assert head.headers["content-encoding"] == "zstd"
    body, deadline = b"", Deadline(what="chunks")
    neighbour = Collector(loaded.stream(FIREHOSE, "ndjson"))
    for number in range(1, 11):
        publish(redis, number)
        neighbour.wait_id(number)
    while body.count(b"\x28\xb5\x2f\xfd") < 11:  # some may have been gathered
        body += connection.read_chunk(deadline)
        (tmp_path / "body.zst").write_bytes(body)
        (tmp_path / "dictionary").write_bytes(dictionary)
        said = subprocess.run(["zstd", "-dc", "-D", tmp_path / "dictionary", tmp_path / "body.zst"], check=True,
                              capture_output=True).stdout
        if said.count(b"\r\n") == 11:
            break
    lines = said.split(b"\r\n")
    assert b'"type":"hello"' in lines[0]
    assert lines[1:11] == [m.raw for m in neighbour.messages]
    connection.close()


def refusal(gateway, parameter, headers=None, target=FIREHOSE, transport="ndjson"):
    with pytest.raises(Refused) as refused:
        gateway.stream(f"{target}?zstd_dictionary={parameter}", transport, headers=headers)
    response = refused.value.response
    error = json.loads(response.body)["error"]
    assert error["param"] == "zstd_dictionary"
    return response.status, error["code"]


@pytest.mark.parametrize("transport", ["ndjson", "sse", "raw-websocket"])
def test_what_is_no_dictionary_is_refused(loaded, transport):
    for parameter, wanted in [("", (400, "bad_zstd_dictionary")), ("latest", (400, "bad_zstd_dictionary")),
                              ("1", (400, "bad_zstd_dictionary")), ("65536", (400, "bad_zstd_dictionary")),
                              ("-40001", (400, "bad_zstd_dictionary")), ("40002", (400, "unknown_dictionary"))]:
        assert refusal(loaded, parameter, transport=transport) == wanted, parameter
    assert refusal(loaded, FIRST, target="/v1/stream/home", transport=transport) == (400, "unknown_parameter")


def test_accept_encoding_is_heeded(loaded):
    """Without the header any coding is acceptable (RFC 9110, 12.5.3)."""
    assert refusal(loaded, FIRST, {"Accept-Encoding": "gzip"}) == (406, "not_acceptable")
    assert refusal(loaded, FIRST, {"Accept-Encoding": "zstd;q=0, *"}) == (406, "not_acceptable")
    for accept in ("zstd", "gzip, zstd;q=0.1", "*", "identity;q=0, zstd"):
        stream = loaded.stream(f"{FIREHOSE}?zstd_dictionary={FIRST}", headers={"Accept-Encoding": accept})
        assert stream.response.headers["content-encoding"] == "zstd"
        stream.close()
    with loaded.stream(f"{FIREHOSE}?zstd_dictionary={FIRST}", "raw-websocket+deflate") as socket:
        assert "sec-websocket-extensions" not in socket.response.headers


def test_a_server_that_compresses_nothing_says_so(servers, redis, dictionary):
    gateway = servers.gateway(redis, "--compression", "off")
    assert zstd.listed(gateway) == {}
    assert gateway.get(f"/v1/dictionaries/{FIRST}").status == 404
    assert refusal(gateway, FIRST) == (400, "bad_zstd_dictionary")
    gateway.stop()


def test_where_zstd_is_all_that_there_is(servers, redis, dictionary):
    """A WebSocket is compressed with a dictionary, or not at all."""
    gateway = servers.gateway(redis, "--compression", "zstd")
    eventually(lambda: gateway.get(f"/v1/dictionaries/{FIRST}").status == 200, "the gateway has the dictionary")
    with gateway.stream(FIREHOSE, "raw-websocket+deflate") as plain, \
            gateway.stream(FIREHOSE, "raw-websocket+dictionary", dictionary=(FIRST, dictionary)) as compressed:
        publish(redis, 1)
        assert plain.next().raw == compressed.next().raw
        assert not plain.deflated and "sec-websocket-extensions" not in plain.response.headers
    numbers = gateway.metrics()
    assert numbers['sluice_compression_blocks_total{encoding="zstd_dictionary"}'] == 1
    assert numbers['sluice_compression_blocks_total{encoding="deflate"}'] == 0
    gateway.stop()


def test_a_new_one_is_rolled_out_and_the_old_one_withdrawn_without_the_end_of_a_stream(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    first, second = (zstd.train(name, [text(seed + n) for n in range(400)]) for name, seed in
                     ((FIRST, 1000), (SECOND, 2000)))

    def add(name, data):
        zstd.add_dictionary(redis, name, data)
        eventually(lambda: gateway.get(f"/v1/dictionaries/{name}").status == 200, "it is there")

    add(FIRST, first)
    streams = [Collector(gateway.stream(FIREHOSE, t)) for t in ("ndjson+dictionary", "raw-websocket+dictionary")]
    many = gateway.stream(MANY, "raw-websocket+dictionary")
    many.send_frame(TEXT, json.dumps({"op": "subscribe", "id": "all", "filter": {"track": "stream"}}))
    assert many.next()["op"] == "subscribed"
    add(SECOND, second)
    streams += [Collector(gateway.stream(FIREHOSE, t)) for t in ("sse+dictionary", "raw-websocket+dictionary")]
    for number in range(1, 21):
        publish(redis, number, "a stream of " + text(number))
    for stream in streams:
        stream.wait_id(20)
    assert all(stream.stream.decoder.with_dictionary > 0 for stream in streams)
    said = f"{zstd.listed(gateway)[FIRST]['bytes']}"
    redis.client.hset("sluice:{0}:dictionaries", FIRST, f"1 {said} 1 1763863214000")
    redis.client.delete(f"sluice:{{0}}:dictionary:{FIRST}")
    eventually(lambda: gateway.get(f"/v1/dictionaries/{FIRST}").status == 410, "it is withdrawn")
    assert zstd.listed(gateway)[FIRST]["state"] == "withdrawn"
    assert refusal(gateway, FIRST) == (410, "dictionary_withdrawn")
    before = [stream.stream.decoder.with_dictionary for stream in streams]
    for number in range(21, 41):
        publish(redis, number, "a stream of " + text(number))
    for stream in streams:
        stream.wait_id(40)
    after = [stream.stream.decoder.with_dictionary for stream in streams]
    assert after[:2] == before[:2]  # frames without a dictionary now
    assert after[2] > before[2] and after[3] > before[3]
    raws = [[m.raw for m in stream.messages] for stream in streams]
    assert raws[0] == [m.encode() for m in raws[1]]
    many.until(lambda message: message["id"] == "40")
    gateway.stop()


def test_what_is_no_dictionary_in_redis_is_not_loaded(servers):
    redis = servers.redis()
    zstd.add_dictionary(redis, FIRST, b"certainly no dictionary")
    zstd.add_dictionary(redis, SECOND, zstd.train(FIRST, [text(n) for n in range(400)]))  # with another id
    gateway = servers.gateway(redis)
    eventually(lambda: len(zstd.listed(gateway)) == 2, "the list has been read")
    assert gateway.get(f"/v1/dictionaries/{FIRST}").status == 503
    assert refusal(gateway, FIRST) == (503, "dictionary_not_ready")
    assert refusal(gateway, SECOND) == (503, "dictionary_not_ready")
    assert gateway.metrics()["sluice_dictionaries"] == 0
    gateway.stop()


def test_metrics_count_it_by_itself(servers):
    redis = servers.redis()
    zstd.add_dictionary(redis, FIRST, zstd.train(FIRST, [text(n) for n in range(400)]))
    gateway = servers.gateway(redis, "--gather-ms", "0")
    eventually(lambda: gateway.get(f"/v1/dictionaries/{FIRST}").status == 200, "it is there")
    streams = [Collector(gateway.stream(target, "sse+dictionary")) for target in (FIREHOSE, FIREHOSE + "?language=en,de,und")]
    for number in range(1, 21):
        publish(redis, number)
        streams[0].wait_id(number)
    numbers = gateway.metrics()
    assert numbers["sluice_dictionaries"] == 1
    assert 20 <= numbers['sluice_compression_blocks_total{encoding="zstd_dictionary"}'] <= 22
    before = numbers['sluice_compression_before_bytes_total{encoding="zstd_dictionary"}']
    assert before > 1.5 * numbers['sluice_compression_after_bytes_total{encoding="zstd_dictionary"}'] > 0
    gateway.stop()
