"""Streams with only some members of events (fields=): compared with a walk over the whole event, in every stream
format, compressed or not, live, replayed and behind."""

import json
import random

import pytest

from harness import events
from harness.cli import Cli
from harness.streams import Collector
from harness.waiting import eventually
from harness.websocket import TEXT

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
TRANSPORTS = ["ndjson", "delimited", "sse", "raw-websocket"]
COMPRESSED = ["ndjson+gzip", "delimited+zstd", "sse+gzip", "raw-websocket+deflate"]
ALWAYS = ["id", "type", "late", "cursor", "matching_rules"]
REFERENCES = ["reply_to", "repost_of", "quote_of"]
IDS = ["user.id", "target.id"] + [f"{reference}.{part}" for reference in REFERENCES for part in ("post", "user")]
LISTS = ["text,user.login", "at,user,geo.lon,place.name", "post.id,created_at,audience,urls,media", "ids", "short",
         "lang"]


def copy(source, target, path):
    """Copies what is at the path, if it consists of objects."""
    name, _, rest = path.partition("/")
    if name not in source:
        return
    if not rest:
        target[name] = source[name]
    elif isinstance(source[name], dict):
        inner = target.get(name, {})
        copy(source[name], inner, rest)
        if inner:
            target[name] = inner


def reduced(event, fields):
    """Returns what is left of it according to docs/streaming-api.md."""
    if fields == "full":
        return event
    if fields == "short":
        post = event.get("post", {})
        twice = {"id": event["id"], "created_at": event.get("at", event), "audience": "public"}
        return {**event, **({"post": {k: v for k, v in post.items() if twice.get(k, event) != v}} if post else {})}
    names = IDS if fields == "ids" else fields.split(",")
    if event["type"] == "delete":
        names = [*names, "post.id"]
    left = {name: event[name] for name in ALWAYS if name in event}
    for name in names:
        path = {"post.id": "id"}.get(name, name.replace(".", "/"))
        if path.split("/")[0] in ("at", "user", "target"):
            copy(event, left, path)
        copy(event, left, "post/" + path)
    return left


def some_event(number, rng):
    """With members of all kinds, some that Sluice does not know, and some of the wrong type."""
    def perhaps(**members):
        return {name: value for name, value in members.items() if rng.random() < 0.5}
    at = "2026-11-21T01:02:03.456Z"
    if rng.random() < 0.1:
        user = {"id": "1", **perhaps(login="ada", name="Ada", x=[1])}
        return {**events.follow(number, 1, 2), "user": user, **perhaps(at=at)}
    event = events.post(number, rng.choice(["tea", "\u2028 \\ \"}{][", "😀 \u00fc", "x" * 3000]), **perhaps(
        created_at=rng.choice([at, "2020-01-01T00:00:00Z"]), lang="en", audience="public", source="w\teb",
        geo=rng.choice([{"lon": 1.5, "lat": -2}, [1], None]), media=[{"id": [{"a": "]"}]}], urls=["https://x.y/"],
        place={"name": "Here", "country": "FR", "bbox": [1, 2, 3, 4], "z": {}}, unheard_of={"text": "no"},
        reply_to={"post": "7", "user": "8", "login": "bob"}, quote_of={"post": "9"}))
    if rng.random() < 0.2:
        return events.delete(number, event)
    return {**event, **perhaps(at=at, text="not of the post", target=5)}


def raws(messages):
    return [m.raw if isinstance(m.raw, bytes) else m.raw.encode() for m in messages]


def target(fields, more=""):
    return f"{FIREHOSE}?types=post,delete,follow,unfollow&fields={fields}{more}"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_stream_says_of_each_event_what_is_left_of_it(gateway, redis, transport):
    rng = random.Random(transport)
    streams = {fields: Collector(gateway.stream(target(fields), transport)) for fields in ["full", *LISTS]}
    for number in range(1, 200):
        redis.publish(events.dump(some_event(number, rng)))
    for stream in streams.values():
        stream.wait_id(199)
    whole = [m.json for m in streams["full"].messages]
    assert len(whole) == 199
    for fields in LISTS:
        messages = streams[fields].messages
        assert [m.json for m in messages] == [reduced(event, fields) for event in whole]
        if transport == "sse":
            assert [m.sse_event for m in messages] == [event["type"] for event in whole]


@pytest.mark.parametrize("plain, compressed", zip(TRANSPORTS, COMPRESSED), ids=COMPRESSED)
def test_a_compressed_stream_says_the_same(gateway, redis, plain, compressed):
    rng = random.Random(compressed)
    readers = [Collector(gateway.stream(target("text,user"), transport)) for transport in (plain, compressed)]
    for begin in range(1, 100, 10):
        for number in range(begin, begin + 10):
            redis.publish(events.dump(some_event(number, rng)))
        with gateway.stream(target("text,user"), compressed):  # connects, is fresh, and disconnects
            redis.publish(events.dump(some_event(begin + 1000, rng)))
        for reader in readers:
            reader.wait_id(begin + 1000)
    assert raws(readers[0].messages) == raws(readers[1].messages)
    assert len(readers[0].messages) == 110


@pytest.mark.parametrize("transport", ["ndjson", "raw-websocket+deflate"])
def test_who_falls_behind_misses_nothing(servers, redis, transport):
    gateway = servers.gateway(redis, "--max-owed-bytes", "64K")
    slow = gateway.stream(target("text"), transport, receive_buffer=4096)
    neighbour = Collector(gateway.stream(target("text"), "ndjson"))
    rng = random.Random(3)
    for number in range(1, 121):  # more than sockets hold, even compressed
        redis.publish(events.dump(events.post(number, rng.randbytes(40000).hex())))
    neighbour.wait_id(120)
    assert gateway.metrics()["sluice_streams_fallen_behind_total"] > 0
    heard = [m for m in slow.until(120) if not m.is_control]
    assert raws(heard) == raws(neighbour.messages)
    gateway.stop()


@pytest.fixture(scope="module", autouse=True)
def people(module_servers, redis):
    cli = Cli(redis)
    ids = {login: cli.run("user", "add", login) for login in ("ada", "bob")}
    cli.run("follow", "bob", "ada")
    return ids


@pytest.mark.parametrize("transport", ["ndjson", "sse+gzip", "raw-websocket+deflate"])
def test_replay_and_another_server_go_on_with_the_same_members(servers, redis, cli, transport):
    gateway = servers.gateway(redis)
    first = cli.run("post", "--user", "ada", "the first")
    with gateway.stream(target("text,user.id", f"&since={first}"), transport) as stream:
        ids = [cli.run("post", "--user", "ada", f"number {n}") for n in range(5)]
        live = raws(stream.until(ids[-1]))
        gateway.begin_stop()
        cursor = stream.to_end()[-1]["cursor"]
    gateway = servers.gateway(redis)
    later = cli.run("post", "--user", "ada", "later")
    with gateway.stream(target("text,user.id", f"&since={first}"), transport) as stream:
        assert raws(stream.until(ids[-1])) == live
        assert stream.until(later)[-1]["post"]["text"] == "later"
    with gateway.stream(target("ids", f"&since={cursor}"), transport) as stream:  # other members when it resumes
        assert set(stream.until(later)[0]["post"]) == {"user"}
    with gateway.stream(target("text", "&last=2"), transport) as stream:
        assert [m["post"] for m in stream.until(later)] == [{"text": "number 4"}, {"text": "later"}]
    gateway.stop()


def test_a_home_stream_keeps_who_may_read_it(gateway, cli, people):
    with gateway.stream("/v1/stream/home?fields=short", token=gateway.token(sub=people["bob"])) as stream:
        cli.run("post", "--user", "ada", "for all")
        cli.run("post", "--user", "ada", "--audience", "followers", "for some")
        posts = [m["post"] for m in stream.until(lambda m: m.json.get("post", {}).get("text") == "for some")]
        assert [(p["text"], p.get("audience")) for p in posts][-2:] == [("for all", None), ("for some", "followers")]


def test_all_lanes_of_a_set_share_what_is_made(servers, redis):
    gateway = servers.gateway(redis)
    streams = [Collector(gateway.stream(target(fields), transport)) for transport in TRANSPORTS + COMPRESSED
               for fields in ("text,user.login", "user.login,text", "full")]
    for number in range(1, 21):
        redis.publish(events.dump(events.post(number, "tea")))
    for stream in streams:
        stream.wait_id(20)
    eventually(lambda: gateway.metrics()["sluice_event_reductions_total"] == 20, "one for each event")
    gateway.stop()


def test_many_sets_at_once(gateway, redis):
    names = ["at", "text", "lang", "created_at", "source", "audience", "user", "target", "geo", *REFERENCES, *IDS]
    streams = [Collector(gateway.stream(target(name))) for name in names]
    whole, rng = Collector(gateway.stream(target("full"))), random.Random(5)
    for number in range(2001, 2021):
        redis.publish(events.dump(some_event(number, rng)))
    whole.wait_id(2020)
    for name, stream in zip(names, streams):
        stream.wait_id(2020)
        assert [m.json for m in stream.messages[-20:]] == [reduced(m.json, name) for m in whole.messages[-20:]]


def test_hello_says_what_was_understood(gateway):
    for fields, said in [("user.login,text,id", "id,type,text,user.login"), ("short", "short")]:
        with gateway.stream(target(fields, "&hello=true")) as stream:
            assert stream.next()["fields"] == said
    with gateway.stream(target("full", "&hello=true")) as stream:
        assert "fields" not in stream.next()


@pytest.mark.parametrize("transport", ["raw-websocket", "raw-websocket+deflate"])
def test_named_filters_change_the_members_between_two_events(gateway, redis, transport):
    rules = [{"id": "r"}]

    def say(message):
        data = json.dumps(message).encode()
        stream.send_frame(TEXT, data)
        answer = stream.next().json
        assert answer["op"], answer
        return answer

    with gateway.stream("/v1/stream?fields=text", transport) as stream:
        assert say({"op": "subscribe", "id": "r", "filter": {"track": "tea"}}) == {"op": "subscribed", "id": "r"}
        for number, fields in enumerate(["text", "short", "ids", "full", "user.login"], 1):
            if number > 1:
                assert say({"op": "fields", "id": "x", "fields": fields})["id"] == "x"
            event = events.post(number, "a cup of tea " * 20)
            redis.publish(events.dump(event))
            got = stream.next().json
            assert got == {**reduced(event, fields), "cursor": got["cursor"], "matching_rules": rules}
        for wrong in ("likes", "", 5, None, "text,text"):
            assert say({"op": "fields", "fields": wrong})["error"]["code"] == "bad_fields"
        redis.publish(events.dump(event))
        assert stream.next()["post"] == {"user": {"login": "u1"}}


def test_tail_prints_the_members(gateway, cli):
    first = cli.run("post", "--user", "ada", "the first")
    cli.run("post", "--user", "ada", "to be printed")
    trust = ["--cacert", gateway.certificate.file] if gateway.certificate else []
    tail = ["tail", "firehose", "--token", gateway.token(), "--url", gateway.url, "--since", first, "--limit", "1",
            *trust, "--fields", "text", "--fields", "user.login"]
    printed = cli.run(*tail)
    assert json.loads(printed)["post"] == {"text": "to be printed", "user": {"login": "ada"}}
    assert cli.run(*tail, "--pretty") == "@ada: to be printed"
