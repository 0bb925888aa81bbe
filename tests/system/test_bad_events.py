"""Messages on the live channel that are not events: counted, dropped, never delivered, never fatal."""

import json

import pytest

from harness import events

FIREHOSE = "/v1/stream/firehose?types=post,delete,follow,unfollow"
GOOD = events.dump(events.post(1, "good"))


def with_post(**members):
    return events.dump({"id": "1", "type": "post", "post": {
        "id": "1", "user": {"id": "1"}, "text": "x", **members}})


def without(path):
    event = json.loads(with_post())
    *parents, last = path.split(".")
    inside = event
    for name in parents:
        inside = inside[name]
    del inside[last]
    return events.dump(event)


BAD = {
    "empty": "",
    "no JSON": "hello",
    "array": "[]",
    "number": "17",
    "string": '"post"',
    "null": "null",
    "cut off": GOOD[:-1],
    "cut off in a string": GOOD[:40],
    "two objects": GOOD + GOOD,
    "something behind": GOOD + "x",
    "comma at the end": GOOD[:-1] + ",}",
    "comment": "/* */" + GOOD,
    "single quotes": GOOD.replace('"', "'"),
    "NaN": GOOD[:-1] + ',"x":NaN}',
    "Infinity": GOOD[:-1] + ',"x":-Infinity}',
    "bare control character": GOOD.replace("good", "go\nod"),
    "invalid UTF-8": GOOD.encode().replace(b"good", b"go\xffod"),
    "overlong UTF-8": GOOD.encode().replace(b"good", b"\xc0\xaf"),
    "surrogate in UTF-8": GOOD.encode().replace(b"good", b"\xed\xa0\x80"),
    "cut-off UTF-8": GOOD.encode().replace(b"good", b"\xe4\xbd"),
    "beyond Unicode": GOOD.encode().replace(b"good", b"\xf4\x90\x80\x80"),
    "UTF-16": GOOD.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "NUL byte in a string": GOOD.replace("good", "go\0od"),
    "NUL byte behind": GOOD + "\0",
    "only NUL bytes": "\0" * 1000,
    "escaped NUL": GOOD.replace("good", "go\\u0000od"),
    "escaped NUL in a name": GOOD[:-1] + ',"a\\u0000b":1}',
    "lone surrogate": GOOD.replace("good", "\\ud800"),
    "surrogates the wrong way round": GOOD.replace("good", "\\udc00\\ud800"),
    "too deep": GOOD[:-1] + ',"x":' + "[" * 40 + "]" * 40 + "}",
    "very deep": "[" * 1_000_000,
    "deep objects": '{"a":' * 200_000,
    "no id": without("id"),
    "no type": without("type"),
    "no post": without("post"),
    "no post id": without("post.id"),
    "no user": without("post.user"),
    "no user id": without("post.user.id"),
    "no text": without("post.text"),
    "type is unknown": GOOD.replace('"post"', '"like"', 1),
    "type is a number": GOOD.replace('"type":"post"', '"type":1'),
    "id is zero": with_post(id="0"),
    "id is negative": with_post(id=-5),
    "id is a fraction": with_post(id=1.5),
    "id is text": with_post(id="abc"),
    "id is too large": with_post(id="9223372036854775808"),
    "id has twenty digits": with_post(id="00000000000000000001"),
    "id is an exponent": GOOD.replace('"id":"1"', '"id":1e3'),
    "text is a number": with_post(text=5),
    "text is null": with_post(text=None),
    "user is text": with_post(user="1"),
    "user id is empty": with_post(user={"id": ""}),
    "user id is too long": with_post(user={"id": "x" * 65}),
    "post is a list": GOOD.replace('"post":{', '"post":[{').replace("}}", "}]}"),
    "follow without a target": '{"id":"1","type":"follow","user":{"id":"1"}}',
    "delete without a post": '{"id":"1","type":"delete"}',
    "log form with a bad event": "4096 0 {}",
    "log form without an event": "4096 0 ",
    "log form without a previous id": "4096 " + GOOD,
    "log form with bad numbers": "x y " + GOOD,
    "log form with a huge number": "99999999999999999999999 0 " + GOOD,
    "log form with negative numbers": "-1 -2 " + GOOD,
    "ten megabytes": with_post(text="x" * 10_000_000),
    "ten megabytes of nothing": " " * 10_000_000,
}


@pytest.fixture(scope="module")
def listeners(gateway):
    """One client for each transport, which is connected all the time."""
    return [gateway.stream(FIREHOSE, transport) for transport in ("ndjson", "delimited", "sse", "websocket")]


@pytest.mark.parametrize("name", BAD)
def test_dropped_and_counted(gateway, publish, listeners, name):
    before = gateway.metrics()
    assert publish(BAD[name]) == 1
    publish(events.post(2, "good again"))
    for listener in listeners:
        assert listener.next()["id"] == "2"
    after = gateway.metrics()
    refused = {key: after[key] - before[key] for key in after
               if key.startswith("sluice_events_refused_total")}
    assert sum(refused.values()) == 1, refused
    assert refused['sluice_events_refused_total{reason="too_big"}'] == (name == "ten megabytes")


def test_last_of_repeated_members_counts(gateway, publish, listeners):
    publish(GOOD.replace('"text":"good"', '"text":5,"text":"kite"'))
    assert [listener.next()["id"] for listener in listeners] == ["1"] * 4
    with gateway.stream("/v1/stream/filter?track=kite") as stream:
        publish(GOOD.replace('"text":"good"', '"text":"other","text":"kite"'))
        publish(GOOD.replace('"text":"good"', '"text":"kite","text":"other"'))
        publish(events.post(3, "last kite"))
        assert [m["id"] for m in stream.until(3)] == ["1", "3"]
    for listener in listeners:
        listener.until(3)


@pytest.mark.parametrize("members", [
    {"lang": 5}, {"geo": "x"}, {"geo": {"lon": "1", "lat": 1}}, {"geo": {"lon": 181.0, "lat": 0.0}},
    {"place": 5}, {"place": {"name": 1, "bbox": [1, 2, 3]}}, {"place": {"bbox": [0, 5, 1, 4]}},
    {"urls": "x"}, {"urls": [1, None]}, {"media": 3}, {"reply_to": "5"}, {"reply_to": {"user": {}}},
    {"lang": None, "geo": None, "place": None, "audience": None}, {"user": {"id": 7, "login": 8}}])
def test_optional_members_in_bad_shape_count_as_absent(publish, listeners, members):
    publish(with_post(**members))
    assert [listener.next()["id"] for listener in listeners] == ["1"] * 4


def test_large_event_within_the_limit(publish, listeners):
    text = "a large one " * 80_000
    publish(events.post(4, text))
    for listener in listeners:
        assert listener.next()["post"]["text"] == text


def test_flood_of_garbage_does_not_flood_the_log(servers, redis):
    gateway = servers.gateway(redis)
    with gateway.stream(FIREHOSE) as stream:
        redis.publish_many(["garbage"] * 20_000)
        redis.publish(events.dump(events.post(5, "the end")))
        assert stream.next()["id"] == "5"
    assert len(gateway.log()) < 100_000


def test_other_channels_are_not_read(gateway, redis, listeners):
    redis.publish(GOOD, shard=redis.shards)  # there is no shard with this number
    redis.client.publish("live", GOOD)
    redis.publish(events.dump(events.post(6, "the end")))
    for listener in listeners:
        assert {message["id"] for message in listener.until(6)} <= {"5", "6"}
