"""A post on its way to clients of every transport."""

import json

import pytest

from harness import events
from harness.cli import Cli
from harness.streams import Refused
from harness.waiting import Deadline, eventually

pytestmark = pytest.mark.wires
TRANSPORTS = ["ndjson", "delimited", "sse", "websocket"]
FIREHOSE = "/v1/stream/firehose"


@pytest.fixture(params=TRANSPORTS)
def transport(request):
    return request.param


@pytest.fixture(scope="module")
def ada(module_servers, redis):
    """The login of a user."""
    Cli(redis).run("user", "add", "ada", "--name", "Ada")
    return "ada"


def test_post_reaches_clients_of_every_transport_with_the_same_bytes(gateway, cli, redis, ada):
    streams = [gateway.stream(FIREHOSE, transport) for transport in TRANSPORTS]
    post_id = cli.run("post", "--user", ada, "--lang", "en", "--geo", "-0.1,51.5", "Hello, café ☕")
    messages = [stream.next() for stream in streams]
    for message in messages:
        assert message.type == "post" and message["id"] == post_id
    assert len({bytes(m.raw if isinstance(m.raw, bytes) else m.raw.encode())
                for m in messages}) == 1
    event = messages[0].json
    assert event["post"]["id"] == post_id
    assert event["post"]["user"]["login"] == "ada" and event["post"]["user"]["name"] == "Ada"
    assert event["post"]["text"] == "Hello, café ☕"
    assert event["post"]["lang"] == "en"
    assert event["post"]["geo"] == {"lon": -0.1, "lat": 51.5}
    assert event["post"]["created_at"] == event["at"]
    assert event["at"].endswith("Z") and len(event["at"]) == len("2026-11-21T01:02:03.456Z")
    (entry, fields), = redis.client.xrevrange(redis.key(post_id, "log"), count=1)
    assert entry == f"{post_id}-0" and json.loads(fields["e"]) == event


def test_sse_says_id_and_event(gateway, cli, publish, ada):
    with gateway.stream(FIREHOSE, "sse") as stream:
        post_id = cli.run("post", "--user", ada, "with an id")
        message = stream.next()
        assert (message.sse_id, message.sse_event) == (post_id, "post")
        publish(events.post(5, "a producer's own id is no cursor"))
        message = stream.next()
        assert (message["id"], message["cursor"], message.sse_id, message.sse_event) == ("5", post_id, post_id, "post")


def test_stream_needs_no_accept_header(gateway, publish):
    for accept in (None, "*/*", "application/x-ndjson", "text/html, */*;q=0.1"):
        with gateway.stream(FIREHOSE, headers={"Accept": accept}) as stream:
            publish(events.post(6, "hello"))
            assert stream.next()["id"] == "6"


def test_accept_decides_between_sse_and_refusal(gateway):
    with gateway.stream(FIREHOSE, "sse", headers={"Accept": "text/event-stream, */*;q=0.1"}) as s:
        assert "no-cache" in s.response.headers["cache-control"] or \
            "no-store" in s.response.headers["cache-control"]
    with pytest.raises(Refused) as refused:
        gateway.stream(FIREHOSE, headers={"Accept": "image/png"})
    assert refused.value.response.status == 406 and refused.value.response.error


def test_http_1_0_gets_plain_lines(gateway, publish):
    with gateway.connect() as connection:
        connection.send(f"GET {FIREHOSE} HTTP/1.0\r\n"
                        f"Authorization: Bearer {gateway.token()}\r\n\r\n".encode())
        response = connection.read_head()
        assert response.status == 200
        assert "transfer-encoding" not in response.headers
        publish(events.post(7, "old times"))
        assert json.loads(connection.read_line(Deadline()))["id"] == "7"


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "sse"])
def test_post_form_opens_a_stream(gateway, publish, transport):
    body = b"track=coff%65e%2Ctea&language=en"
    target = "/v1/stream/filter" + ("?delimited=length" if transport == "delimited" else "")
    with gateway.stream(target, transport, "POST", body) as stream:
        publish(events.post(8, "water", lang="en"))
        publish(events.post(9, "coffee", lang="de"))
        publish(events.post(10, "coffee", lang="en"))
        assert stream.next()["id"] == "10"


def test_long_list_in_a_form(gateway, publish):
    body = ("follow=" + ",".join(str(n) for n in range(100000, 105000))).encode()
    with gateway.stream("/v1/stream/filter", method="POST", body=body) as stream:
        publish(events.post(11, "nobody", user="99999"))
        publish(events.post(12, "the last of five thousand", user="104999"))
        assert stream.next()["id"] == "12"


def test_form_arriving_in_pieces(gateway, publish):
    body = b"track=" + b"%63" * 3 + b"at"
    with gateway.connect() as connection:
        connection.send((f"POST /v1/stream/filter HTTP/1.1\r\nHost: x\r\n"
                         f"Authorization: Bearer {gateway.token()}\r\n"
                         f"Content-Type: application/x-www-form-urlencoded\r\n"
                         f"Content-Length: {len(body)}\r\n\r\n").encode())
        for byte in body:
            connection.send(bytes([byte]))
        assert connection.read_head().status == 200


def test_deletion_reaches_those_who_were_shown_the_post_with_ids_only(gateway, cli, ada, transport):
    shown = gateway.stream("/v1/stream/filter?track=umbrella", transport)
    other = gateway.stream("/v1/stream/filter?track=parasol", transport)
    post_id = cli.run("post", "--user", ada, "A secret umbrella")
    cli.run("delete", "--user", ada, post_id)
    end = cli.run("post", "--user", ada, "umbrella parasol")
    post, deletion, last = shown.until(end)
    assert post["id"] == post_id and last["id"] == end
    assert deletion.type == "delete" and deletion["id"] not in (post_id, end)
    assert set(deletion.json) == {"id", "type", "at", "post"}
    assert deletion["post"] == {"id": post_id, "user": {"id": post["post"]["user"]["id"]},
                                "state": "deleted"}
    assert "secret" not in str(deletion.raw)
    assert [m["id"] for m in other.until(end)] == [end]


def test_deletions_of_plain_producers(gateway, publish):
    with gateway.stream("/v1/stream/filter?track=kite") as stream:
        post = events.post(20, "a kite")
        publish(post)
        publish(events.delete(21, post))
        publish(events.delete(22, events.post(23, "something else")))
        bare = events.delete(24, post)
        del bare["post"]["text"]
        publish(bare)
        publish(events.post(25, "the last kite"))
        messages = stream.until(25)
        assert [(m.type, m["id"]) for m in messages] == [
            ("post", "20"), ("delete", "21"), ("delete", "24"), ("post", "25")]
        assert messages[1]["post"] == {"id": "20", "user": {"id": "1"}, "state": "deleted"}


def test_types_choose(gateway, cli, ada, transport):
    cli.run("user", "add", f"bob_{transport}")
    wanted = gateway.stream(FIREHOSE + "?types=follow,unfollow", transport)
    usual = gateway.stream(FIREHOSE, transport)
    cli.run("post", "--user", ada, "not this")
    cli.run("follow", ada, f"bob_{transport}")
    cli.run("unfollow", ada, f"bob_{transport}")
    end = cli.run("post", "--user", ada, "the end")
    follow, unfollow = wanted.next(), wanted.next()
    assert (follow.type, unfollow.type) == ("follow", "unfollow")
    assert follow["user"]["login"] == "ada" and follow["target"]["login"] == f"bob_{transport}"
    assert int(follow["id"]) < int(unfollow["id"]) < int(end)
    assert [m.type for m in usual.until(end)] == ["post", "post"]


def test_what_changes_of_a_user_is_told_to_who_asks(gateway, cli, ada, transport):
    wanted = gateway.stream(FIREHOSE + "?types=post,user", transport)
    usual = gateway.stream(FIREHOSE, transport)
    eve = cli.run("user", "add", f"eve_{transport}", "--name", "Eve")
    new = wanted.next()
    about = gateway.stream(f"/v1/stream/filter?types=user&follow={eve}", transport)
    counts = gateway.stream("/v1/stream/counts?types=user&by=type&bucket=1s", transport)
    cli.run("user", "rename", eve, "Eve")  # her current name
    cli.run("user", "rename", eve, "Eve L.")
    cli.run("user", "rename", ada, f"Ada {transport}")
    cli.run("user", "rename", eve, "Eve")
    end = cli.run("post", "--user", ada, "the end")
    got = [new, *wanted.until(end)]
    assert [m.type for m in got] == ["user"] * 4 + ["post"] and [m["id"] for m in usual.until(end)] == [end]
    renamed, of_ada, back = got[1:4]
    assert new["id"] == eve and new["change"] == "created" and "members" not in new.json
    assert new["user"] == {"id": eve, "login": f"eve_{transport}", "name": "Eve"}
    assert renamed["user"]["name"] == "Eve L." and (renamed["change"], renamed["members"]) == ("updated", ["name"])
    assert (of_ada["user"]["login"], of_ada["user"]["name"]) == ("ada", f"Ada {transport}")
    assert [about.next().raw for _ in range(2)] == [renamed.raw, back.raw]
    since = gateway.stream(FIREHOSE + f"?types=user&since={int(eve) - 1}", transport)
    assert [since.next().raw for _ in range(4)] == [message.raw for message in got[:4]]
    buckets = counts.until(lambda message: "groups" in message.json)
    assert buckets[-1]["groups"][0]["key"] == "user" and buckets[-1]["groups"][0]["events"] >= 1
    assert all(m["posts"] == m["deletes"] == 0 for m in buckets)


def test_unknown_members_pass_through(gateway, publish):
    event = events.post(30, "hello")
    event["later"] = {"x": [1, 2.50, None, "\u00e9"]}
    event["post"]["mood"] = "☀"
    with gateway.stream(FIREHOSE) as stream:
        text = events.dump(event)
        publish(text)
        message = stream.next()
        assert message.raw.decode() == f'{text[:-1]},"cursor":"{message["cursor"]}"}}'  # unlogged


def test_restricted_posts_stay_off_the_public_streams(gateway, publish, transport):
    streams = [gateway.stream(FIREHOSE, transport),
               gateway.stream("/v1/stream/sample?percent=100", transport),
               gateway.stream("/v1/stream/filter?track=hush&follow=1", transport)]
    for audience in ("followers", "only", "except", "whoever", {"only": ["1"]}):
        publish(events.post(40, "hush", audience=audience))
    publish(events.post(41, "hush", audience="public"))
    assert [stream.next()["id"] for stream in streams] == ["41"] * 3


def test_what_is_for_gateways_only_is_not_delivered(gateway, publish):
    with gateway.stream(FIREHOSE + "?types=post,delete,follow,unfollow") as stream:
        for kind in ("hide", "unhide", "mute", "unmute"):
            publish(events.follow(50, 1, 2, kind))
        publish(events.post(51, "the end"))
        assert stream.next()["id"] == "51"


def test_events_keep_their_order(gateway, redis, transport):
    stream = gateway.stream(FIREHOSE, transport)
    redis.publish_many(events.dump(events.post(number, "in order " * (number % 60))) for number in range(1, 2001))
    assert [m["id"] for m in stream.until(2000)] == [str(n) for n in range(1, 2001)]


def test_silence_is_filled_with_keepalives(servers, redis, transport):
    # a client that has not answered a ping when the next one is due is disconnected
    gateway = servers.gateway(redis, "--keepalive-ms", 2000 if transport == "websocket" else 100)
    transport = "raw-websocket" if transport == "websocket" else transport
    stream = gateway.stream("/v1/stream/filter?track=kite", transport)
    stream.wait_keepalives(2)
    redis.publish(events.dump(events.post(60, "kite")))
    while stream.next()["id"] != "60":
        pass


def test_streams_of_two_workers_bring_the_same(servers, redis):
    gateway = servers.gateway(redis, workers=2)
    streams = [gateway.stream(FIREHOSE, TRANSPORTS[n % 4]) for n in range(16)]
    for number in range(1, 51):
        redis.publish(events.dump(events.post(number, "twice served")))
    wanted = [str(n) for n in range(1, 51)]
    assert all([m["id"] for m in stream.until(50)] == wanted for stream in streams)


@pytest.mark.parametrize("transport", ["ndjson", "sse", "raw-websocket"])
def test_client_that_leaves_costs_nothing_more(gateway, publish, transport):
    before = gateway.metrics()["sluice_connections"]
    for how in ("close", "reset"):
        stream = gateway.stream(FIREHOSE, transport)
        publish(events.post(70, "hello"))
        stream.next()
        getattr(stream.connection, how)()
    eventually(lambda: gateway.metrics()["sluice_connections"] <= before, "the clients are gone")
    publish(events.post(71, "nobody is there"))


def test_health_and_metrics_need_no_token(gateway):
    assert gateway.get("/healthz").status == 200
    assert gateway.get("/readyz").status == 200
    answer = gateway.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "version=0.0.4" in answer.headers["content-type"]
    for line in answer.text.splitlines():
        assert line.startswith(("# HELP sluice_", "# TYPE sluice_", "sluice_")), line


def test_metrics_count_events(gateway, publish):
    with gateway.stream(FIREHOSE) as stream:
        before = gateway.metrics()
        for number in range(80, 90):
            publish(events.post(number, "counted"))
        stream.until(89)
        after = gateway.metrics()
    name = "sluice_events_received_total"
    assert after[name] - before[name] == 10


@pytest.mark.parametrize("cursor", ["no cursor", "9007199254740991"])
def test_an_event_source_with_an_invalid_cursor_gets_a_gap(gateway, publish, cursor):
    headers = {"Last-Event-ID": cursor}
    with gateway.stream(FIREHOSE + "?since=1h", "sse", headers=headers) as stream:
        gap = stream.next()
        assert (gap.type, gap["from"], gap["reason"]) == ("gap", "0", "retention")
        publish(events.post(4, "live"))
        assert stream.next()["id"] == "4"


def test_a_reader_that_knows_more_line_ends_gets_each_event_in_one_line(gateway, publish, transport):
    text = "one\u2028two\u2029three\u0085four \u2027\u20ac"
    track = "/v1/stream/filter?track=four"
    streams = [gateway.stream(target, transport) for target in (FIREHOSE, FIREHOSE, track)]
    publish(events.dump(events.post(90, text)))
    for stream in streams:
        message = stream.next()
        raw = message.raw if isinstance(message.raw, str) else message.raw.decode()
        assert message["post"]["text"] == text
        assert raw.splitlines() == [raw]
        assert "\\u2028two\\u2029three\\u0085four \u2027\u20ac" in raw


@pytest.mark.parametrize("query, words", [
    ("filter?track=Kite,night+train&language=en",
     'posts and deletions with ("night" and "train") or "kite"; only in language en'),
    ("firehose?types=follow,delete&partition=2/4", "deletions and follows, all; part 2 of 4"),
    ("home?types=post", "posts of user 42 and of the users it follows"),
])
def test_hello_comes_first_and_says_what_was_understood(gateway, cli, ada, transport, query, words):
    with gateway.stream(f"/v1/stream/{query}&hello=true", transport) as stream:
        hello = stream.next()
    assert (hello.type, hello["filter"]) == ("hello", words)
    assert hello["stream"] == query.partition("?")[0]
    assert hello.sse_id is None and hello.sse_event in (None, "hello")
    assert hello["server"] == "sluiced " + cli.run("--version").split()[1]


def test_the_cursor_of_hello_is_where_the_stream_begins(gateway, cli, redis, ada, transport):
    first, second = (cli.run("post", "--user", ada, f"number {n}") for n in (1, 2))

    def hello(more):
        with gateway.stream(FIREHOSE + "?hello=true" + more, transport) as stream:
            return stream.next()
    assert hello(f"&since={first}")["cursor"] == first
    eventually(lambda: hello("")["cursor"] == second, "the second has had its turn")
    now = hello("")
    assert now["connection"] != hello("")["connection"]
    third = cli.run("post", "--user", ada, "number 3")
    with gateway.stream(FIREHOSE + f"?since={now['cursor']}", transport) as stream:
        assert stream.next()["id"] == third


def test_hello_on_a_stream_of_many_comes_before_the_first_answer(gateway):
    with gateway.stream("/v1/stream?hello=true", "websocket") as stream:
        stream.send('{"op":"list"}')
        assert [stream.next()[key] for key in ("stream", "rules")] == ["many", []]
