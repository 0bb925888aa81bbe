"""Resuming from a cursor: everything since, then live, without a seam.

With several shards the order of each shard is exact, not that between them; tests of what only one shard guarantees use
shards=1."""

import json
import time
from datetime import datetime, timedelta, timezone

import pytest

from harness import events
from harness.cli import Cli
from harness.producers import Outsider
from harness.redis_server import shard_of
from harness.streams import Collector, Refused
from harness.waiting import eventually

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
TRANSPORTS = ["ndjson", "delimited", "sse", "websocket"]


def replay(cli, folder, count, first=1, rate=None, text="post", name="posts"):
    """Posts by seven users, logged; in the background if there is a rate."""
    file = folder / f"{name}.jsonl"
    with open(file, "w") as out:
        for number in range(first, first + count):
            out.write(events.dump(events.post(number, f"{text} {number} w{number % 5}",
                                              user=str(number % 7))) + "\n")
    if rate is None:
        return cli.run("replay", file)
    return cli.start("replay", file, "--rate", str(rate))


def logged(redis, after=0, kinds=("post", "delete")):
    """Returns the events of the log after this id."""
    return [e for e in redis.log() if int(e["id"]) > int(after) and e["type"] in kinds]


def ids(some):
    return [e["id"] for e in some]


def assert_next(stream, wanted):
    """Expects these as the next events, in each shard's order; returns them."""
    got = [stream.next() for _ in wanted]
    assert events.by_shard(ids(got)) == events.by_shard(wanted)
    return got


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_was_missed_comes_first_then_what_happens(servers, cli_for, transport):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    replay(cli, servers.folder, 500)
    cursor = logged(redis)[100]["id"]
    with gateway.stream(f"{FIREHOSE}?since={cursor}", transport) as stream:
        wanted = ids(logged(redis, cursor))
        assert_next(stream, wanted)
        last = cli.ids("post", "--user", "u1", "and now")[0]
        assert stream.next()["id"] == last


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_resume_under_load_has_no_seam(servers, cli_for, transport):
    """Clients resume again and again while events arrive: together they get each once."""
    redis = servers.redis(shards=1)
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    load = replay(cli, servers.folder, 1500, rate=1500)
    first = Collector(gateway.stream(FIREHOSE))
    first.wait(lambda ms: len(ms) > 10, "the load flows")
    cursor, got = first.messages[5]["id"], []
    while len(got) < 1000:
        with gateway.stream(f"{FIREHOSE}?since={cursor}", transport) as stream:
            got += [stream.next() for _ in range(200)]
            cursor = got[-1]["id"]
    load.ended()
    assert not [m for m in got if m.is_control]
    assert [m["id"] for m in got] == ids(logged(redis, first.messages[5]["id"]))[:len(got)]


@pytest.fixture(scope="module")
def past(module_servers, redis, gateway):
    """A log of 600 posts by seven users, read only; with two deletions and a follow."""
    cli = Cli(redis)
    replay(cli, module_servers.folder, 600)
    post = logged(redis)[300]
    cli.run("delete", "--user", post["post"]["user"]["login"], post["id"])
    cli.run("follow", "u1", "u2")
    cli.run("follow", "u1", "u3")
    return logged(redis, kinds=("post", "delete", "follow"))


def behind(past, cursor, wanted):
    return [e["id"] for e in past if int(e["id"]) > int(cursor) and wanted(e)]


def is_public(event):
    return event["type"] in ("post", "delete")


def follows(event):
    return event["type"] == "follow"


def has_word(word):
    return lambda e: e["type"] == "delete" or (e["type"] == "post" and word in e["post"]["text"].split())


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("target, wanted", [
    ("firehose?types=follow", follows), ("firehose?types=post", lambda e: e["type"] == "post"),
    ("filter?track=w3&types=post", lambda e: e["type"] == "post" and has_word("w3")(e)),
    ("filter?rule=from:u4&types=post", lambda e: e["type"] == "post" and
     e["post"]["user"]["login"] == "u4"),
    ("sample?percent=100", is_public)])
def test_every_stream_resumes_with_its_own_filter(gateway, past, transport, target, wanted):
    cursor = past[50]["id"]
    ids_wanted = behind(past, cursor, wanted)
    assert ids_wanted
    joined = target + ("&" if "?" in target else "?") + f"since={cursor}"
    with gateway.stream(f"/v1/stream/{joined}", transport) as stream:
        assert_next(stream, ids_wanted)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_home_resumes_with_the_graph_of_today(gateway, redis, past, transport):
    """Including posts from before their author was followed."""
    logins = {e["post"]["user"]["login"]: e["post"]["user"]["id"] for e in past if e["type"] == "post"}
    mine = {logins[login] for login in ("u1", "u2", "u3")}
    wanted = behind(past, past[50]["id"], lambda e: is_public(e) and e["post"]["user"]["id"] in mine)
    token = gateway.token(sub=logins["u1"])
    with gateway.stream(f"/v1/stream/home?since={past[50]['id']}", transport, token=token) as stream:
        assert_next(stream, wanted)


def test_named_filters_resume_together(gateway, past):
    cursor = past[50]["id"]
    wanted = behind(past, cursor, lambda e: e["type"] == "post" and
                    (has_word("w1")(e) or has_word("w2")(e)))
    with gateway.stream(f"/v1/stream?since={cursor}", "websocket") as stream:
        for name, more in (("w1", True), ("w2", False)):
            stream.send(json.dumps({"op": "subscribe", "id": name, "more": more,
                                    "filter": {"track": name, "types": "post"}}))
        assert [stream.next()["id"] for _ in range(2)] == ["w1", "w2"]
        got = assert_next(stream, wanted)
    for message in got:
        [rule] = message["matching_rules"]
        assert rule["id"] in message["post"]["text"].split()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_since_a_time(gateway, past, transport):
    time = past[100]["at"]  # several may have happened in that millisecond
    wanted = [e["id"] for e in past if is_public(e) and e["at"] >= time]
    with gateway.stream(f"{FIREHOSE}?since={time}", transport) as stream:
        assert_next(stream, wanted)


def test_since_is_written_as_people_write_times(gateway, past):
    """The first ones are before the first event."""
    wanted = [e["id"] for e in past if is_public(e)]
    begun = datetime.fromisoformat(past[0]["at"].replace("Z", "+00:00"))
    seconds = int(begun.timestamp()) - 1
    for since in (seconds, seconds * 1000, "-1h", "1h", "90m", (begun - timedelta(days=1)).date()):
        with gateway.stream(f"{FIREHOSE}?since={since}") as stream:
            assert_next(stream, wanted)
    at = datetime.fromisoformat(past[100]["at"].replace("Z", "+00:00"))
    with gateway.stream(f"{FIREHOSE}?since={round(at.timestamp() * 1000)}") as stream:
        assert_next(stream, [e["id"] for e in past if is_public(e) and e["at"] >= past[100]["at"]])
    with pytest.raises(Refused) as refused:
        gateway.stream(f"{FIREHOSE}?since=7")
    assert "7 is no event id" in refused.value.response.json["error"]["message"]


def test_last_event_id_wins(gateway, past):
    headers = {"Last-Event-ID": past[-10]["id"]}
    wanted = behind(past, past[-10]["id"], is_public)
    with gateway.stream(f"{FIREHOSE}?since={past[0]['id']}", "sse", headers=headers) as stream:
        for message in assert_next(stream, wanted):
            assert message.sse_id == message["id"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_many_come_back_at_once(gateway, past, transport):
    """Each from a different position and with a filter; batches are shared."""
    before = gateway.metrics()
    streams = []
    for number in range(120):
        cursor, word = past[number]["id"], f"w{number % 5}"
        wanted = behind(past, cursor, lambda e: e["type"] == "post" and has_word(word)(e))
        target = f"/v1/stream/filter?track={word}&types=post&since={cursor}"
        token = gateway.token(sub=str(number))
        streams.append((gateway.stream(target, transport, token=token), wanted))
    for stream, wanted in streams:
        assert_next(stream, wanted)
        stream.close()
    after = gateway.metrics()
    assert after["sluice_streams_resumed_total"] - before["sluice_streams_resumed_total"] == 120


@pytest.mark.parametrize("transport", ["ndjson", "websocket", "sse"])
def test_quiet_stream_is_told_how_far_it_has_got(servers, cli_for, transport):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis, "--keepalive-ms", 2000 if transport == "websocket" else 50)
    replay(cli, servers.folder, 300)
    log = logged(redis)
    target = f"/v1/stream/filter?track=nothing&types=post&since={log[3]['id']}&cursors=true"
    with gateway.stream(target, transport) as stream:
        def is_at_the_end():
            if transport == "sse":
                stream.wait_keepalives(1)
                return stream.last_event_id == log[-1]["id"]
            return stream.next().json == {"type": "cursor", "id": log[-1]["id"]}
        eventually(is_at_the_end, "the cursor is the newest event")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_cursor_older_than_the_log(servers, cli_for, transport):
    redis = servers.redis()
    cli = cli_for(redis)
    replay(cli, servers.folder, 300)
    log = logged(redis, kinds=("post", "user", "follow", "delete"))
    lost = []  # by shard: the newest event that its log does not have
    for name in redis.logs():
        redis.client.xtrim(name, minid=log[200]["id"], approximate=False)
        lost += [int(fields["p"]) for _, fields in redis.client.xrange(name, count=1)]
    gateway = servers.gateway(redis)
    with gateway.stream(f"{FIREHOSE}?since={log[5]['id']}", transport) as stream:
        got = [stream.next() for _ in [*lost, *log[200:]]]
        gaps = [message for message in got if message.type == "gap"]
        assert sorted(int(gap["to"]) for gap in gaps) == sorted(lost)
        for gap in gaps:
            assert (gap["from"], gap["reason"], gap.sse_id) == (log[5]["id"], "retention", None)
        assert events.by_shard(ids(message for message in got if message not in gaps)) == \
            events.by_shard(ids(log[200:]))
    with gateway.stream(f"{FIREHOSE}?since={max(lost)}", transport) as stream:  # nothing is missing
        assert_next(stream, ids(log[200:]))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_event_without_the_log_says_where_to_resume(servers, cli_for, transport):
    """Its id is the producer's, whose clock is an hour ahead."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis)
    with gateway.stream(FIREHOSE, transport) as stream:
        stream.until(cli.run("post", "--user", "ada", "before"))
        Outsider(redis).publish(ahead_s=3600)
        outside = stream.next()
    with pytest.raises(Refused) as refused:
        gateway.stream(f"{FIREHOSE}?since={outside['id']}")
    assert refused.value.response.json["error"]["code"] == "bad_since"
    missed = cli.run("post", "--user", "ada", "missed")
    with gateway.stream(f"{FIREHOSE}?since={outside['cursor']}", transport) as stream:
        assert stream.next()["id"] == missed


def test_since_a_little_ahead_of_now_is_now(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    cli.run("post", "--user", "ada", "before")
    gateway = servers.gateway(redis)
    ahead = (datetime.now(timezone.utc) + timedelta(seconds=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    with gateway.stream(f"{FIREHOSE}?since={ahead}") as stream:
        last = cli.run("post", "--user", "ada", "after")
        assert stream.next()["id"] == last
    much = (datetime.now(timezone.utc) + timedelta(seconds=90)).strftime("%Y-%m-%dT%H:%M:%SZ")
    with pytest.raises(Refused) as refused:
        gateway.stream(f"{FIREHOSE}?since={much}")
    assert refused.value.response.status == 400


def clock_goes_ahead(redis, minutes):
    """What the core writes from now on has ids of a clock that is ahead: ids never go back."""
    ahead = int((time.time() + minutes * 60 - 1767225600) * 1000) * 4096
    for log in redis.logs():
        redis.client.xadd(log, {"p": 0, "e": "{}"}, id=f"{ahead}-0")
        redis.client.xdel(log, f"{ahead}-0")


def test_what_a_clock_that_was_ahead_gave_out_is_a_cursor(servers, cli_for):
    redis = servers.redis(shards=1)  # with several, the others are behind it for ten minutes
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    clock_goes_ahead(redis, 10)
    gateway = servers.gateway(redis)

    def post(text):
        return cli.run("post", "--user", "ada", text)

    def comes_back(gateway, cursor, expected):
        for transport, request in (("ndjson", {}), ("sse", {}), ("sse", {"headers": {"Last-Event-ID": cursor}})):
            path = FIREHOSE if request else f"{FIREHOSE}?since={cursor}"
            with gateway.stream(path, transport, **request) as stream:
                assert stream.next()["id"] == expected

    with gateway.stream(FIREHOSE) as stream:
        first = post("ahead")
        stream.until(first)
        second = post("and on")
        stream.until(second)
    comes_back(gateway, first, second)
    with gateway.stream(FIREHOSE, "sse", headers={"Last-Event-ID": "nothing"}) as stream:
        gap = stream.next()
        assert (gap.type, gap["from"], gap["to"]) == ("gap", "0", second)
    comes_back(servers.gateway(redis), first, second)  # one that only knows the log's end
    with pytest.raises(Refused) as refused:
        gateway.stream(f"{FIREHOSE}?since={int(second) + 90 * 1000 * 4096}")
    assert refused.value.response.status == 400


def test_leaving_while_it_catches_up(servers, cli_for):
    """The next server continues from the cursor in the disconnect."""
    redis = servers.redis(shards=1)
    cli = cli_for(redis)
    replay(cli, servers.folder, 600, text="long " * 2000)
    wanted = ids(logged(redis))
    gateway = servers.gateway(redis, "--drain-timeout", "10m")
    stream = gateway.stream(f"{FIREHOSE}?since={int(wanted[0]) - 1}", receive_buffer=4096)
    got = [stream.next()["id"] for _ in range(20)]
    gateway.begin_stop()
    *events_got, disconnect = stream.to_end()
    assert disconnect.type == "disconnect" and disconnect["code"] == "draining"
    got += [m["id"] for m in events_got]
    assert disconnect["cursor"] == got[-1]
    gateway.stop()
    with servers.gateway(redis).stream(f"{FIREHOSE}?since={disconnect['cursor']}") as stream:
        got += [stream.next()["id"] for _ in wanted[len(got):]]
    assert got == wanted


def test_who_does_not_read_for_too_long_is_sent_away_with_the_cursor(servers, cli_for):
    """The disconnect waits after megabytes in the kernel: longer than the five seconds of other connections; here the
    gateway's own timeout for requests applies."""
    redis = servers.redis(shards=1)
    cli = cli_for(redis)
    gateway = servers.gateway(redis, "--max-owed-bytes", 65536, "--max-lag", "1s",
                              "--handshake-timeout-ms", 6500)
    stream = gateway.stream(FIREHOSE, receive_buffer=4096)
    replay(cli, servers.folder, 1000, text="long " * 2000)
    wanted = ids(logged(redis))
    eventually(lambda: gateway.metrics()['sluice_disconnects_total{code="too_slow"}'] == 1, "too slow")
    with gateway.connect() as clock:
        clock.send(b"GET / HTTP/1.1\r\n")
        clock.wait_closed()
    *got, disconnect = stream.to_end()
    assert disconnect.type == "disconnect" and disconnect["code"] == "too_slow"
    assert disconnect["retry_ms"] > 0
    got = [message["id"] for message in got if not message.is_control]
    assert got == wanted[:len(got)] and len(got) < 1000
    assert int(got[-1]) <= int(disconnect["cursor"]) < int(wanted[len(got)])
    with gateway.stream(f"{FIREHOSE}?since={disconnect['cursor']}") as stream:
        assert [stream.next()["id"] for _ in wanted[len(got):]] == wanted[len(got):]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_with_more_shards_each_keeps_its_order(servers, cli_for, transport):
    """Everything of every shard, once; what is read from the logs is merged by id."""
    redis = servers.redis(shards=4)
    cli = cli_for(redis)
    gateway = servers.gateway(redis, "--ring-bytes", 65536)
    replay(cli, servers.folder, 400)
    wanted = []
    for shard in range(4):
        entries = redis.client.xrange(f"sluice:{{{shard}}}:log")
        wanted += [int(e["id"]) for e in (json.loads(fields["e"]) for _, fields in entries)
                   if e["type"] == "post"]
    wanted.sort()
    assert len({number // 64 % 64 for number in wanted}) > 1
    with gateway.stream(f"{FIREHOSE}?types=post&since={wanted[30]}", transport) as stream:
        got = [int(stream.next()["id"]) for _ in wanted[31:]]
        assert sorted(got) == wanted[31:]
        for shard in range(4):
            of_shard = [number for number in got if number // 64 % 64 == shard]
            assert of_shard == sorted(of_shard)
        last = cli.run("post", "--user", "u1", "live")
        assert stream.next()["id"] == last


# --- until ---

def time_of(event_id, after_ms=0):
    """As a parameter: the time of an id."""
    epoch = datetime(2026, 1, 1, tzinfo=timezone.utc)
    moment = epoch + timedelta(milliseconds=int(event_id) // 4096 + after_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_until_in_the_past_ends_the_stream_there(gateway, cli, redis, transport):
    replay(cli, redis.folder, 300)
    all_of_it = ids(logged(redis))
    since, until = all_of_it[20], all_of_it[250]
    with gateway.stream(f"{FIREHOSE}?since={since}&until={until}", transport) as stream:
        *got, end = stream.to_end()
    assert events.by_shard(ids(got)) == \
        events.by_shard([i for i in all_of_it if int(since) < int(i) <= int(until)])
    assert (end.type, end["code"], end["cursor"]) == ("disconnect", "complete", until)
    assert "retry_ms" not in end
    if transport == "websocket":
        assert stream.close_code == 1000
    if transport == "sse":
        assert stream.last_event_id in (until, until.encode())


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_until_of_a_moment_to_come_ends_a_live_stream(gateway, cli, transport):
    cli.run("user", "add", f"{transport}x")
    with gateway.stream("/v1/stream/filter?track=tick&until=%2B1s", transport) as stream:
        post = cli.run("post", "--user", f"{transport}x", "tick")
        *got, end = stream.to_end()
    assert (end.type, end["code"]) == ("disconnect", "complete")
    assert ids(got) == [i for i in [post] if int(i) <= int(end["cursor"])]


def test_what_happens_behind_until_is_not_sent(gateway, cli, redis):
    cli.run("user", "add", "late")
    before = cli.run("post", "--user", "late", "before")
    target = f"{FIREHOSE}?since={int(before) - 1}&until={time_of(before, 1)}"
    eventually(lambda: int(cli.run("post", "--user", "late", "after")) > int(before) + 8192, "it is later")
    with gateway.stream(target) as stream:
        *got, end = stream.to_end()
    assert ids(got) == [before] and end["code"] == "complete"


def test_an_event_source_that_has_seen_all_is_told_to_stay_away(gateway, cli, redis):
    cli.run("user", "add", "source")
    first, last = (cli.run("post", "--user", "source", text) for text in ("one", "two"))
    for cursor in (last, str(int(last) + 5)):
        answer = gateway.get(f"{FIREHOSE}?until={last}", {
            "Authorization": f"Bearer {gateway.token()}", "Accept": "text/event-stream",
            "Last-Event-ID": cursor})
        assert (answer.status, answer.body) == (204, b"")
    headers = {"Last-Event-ID": first}
    with gateway.stream(f"{FIREHOSE}?until={last}", "sse", headers=headers) as stream:
        got, end = stream.to_end()
    assert got["id"] == last and end["code"] == "complete"
    with pytest.raises(Refused) as refused:
        gateway.stream(f"{FIREHOSE}?until={last}", "sse")
    assert refused.value.response.json["error"]["code"] == "bad_until"


# --- last ---

def left(redis, wanted=lambda event: True):
    """Returns the ids of the posts in the log that are not deleted, oldest first."""
    log = logged(redis)
    deleted = {e["post"]["id"] for e in log if e["type"] == "delete"}
    return ids([e for e in log if e["type"] == "post" and wanted(e)
                and e["post"]["id"] not in deleted])


def assert_newest(got, every, count):
    """Expects this many of the newest; with several shards, which ones are newest is not guaranteed exactly."""
    assert len(got) == min(count, len(every))
    for shard in {shard_of(i) for i in got}:
        of_shard = [i for i in got if shard_of(i) == shard]
        assert of_shard == [i for i in every if shard_of(i) == shard][-len(of_shard):]


def posts_and_deletions(redis, cli, count=400):
    """The newest posts are among the deleted ones."""
    replay(cli, redis.folder, count)
    for event in [e for e in logged(redis) if e["type"] == "post"][-8::3]:
        cli.run("delete", "--user", event["post"]["user"]["login"], event["post"]["id"])


def gateway_after_posts(servers, redis, cli, is_remembered):
    """A gateway that has these posts in its ring, or one that must read them from the log."""
    if not is_remembered:
        posts_and_deletions(redis, cli)
        return servers.gateway(redis)
    gateway = servers.gateway(redis)
    with gateway.stream(FIREHOSE) as stream:
        posts_and_deletions(redis, cli)
        stream.until(logged(redis)[-1]["id"])
    return gateway


@pytest.mark.parametrize("is_remembered", [True, False], ids=["ring", "log"])
def test_last_is_the_newest_then_what_happens(servers, cli_for, is_remembered):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = gateway_after_posts(servers, redis, cli, is_remembered)
    streams = {(query, last, transport): gateway.stream(f"/v1/stream/{query}last={last}", transport)
               for query in ("firehose?", "filter?track=w3&") for last in (1, 7, 300, 1000)
               for transport in TRANSPORTS}
    late = cli.ids("post", "--user", "u1", "live w3")[0]
    for (query, last, _), stream in streams.items():
        every = left(redis, lambda e: "w3" in e["post"]["text"] or "fire" in query)
        assert_newest(ids(stream.until(late)), every, last + 1)
        stream.close()


def test_last_and_more_of_the_log_than_a_page_holds_meet_without_a_seam(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    replay(cli, redis.folder, 2000)
    gateway = servers.gateway(redis, "--ring-bytes", 65536)
    running = replay(cli, redis.folder, 750, first=2001, rate=750, name="more")
    streams = [gateway.stream(f"{FIREHOSE}?last={last}", transport)
               for last in (1, 200, 1000) for transport in ("ndjson", "sse", "websocket")]
    running.ended(0)
    log = ids(logged(redis))
    for stream in streams:
        got = ids(stream.until(log[-1]))
        for shard in {shard_of(i) for i in got}:
            of_shard = [i for i in got if shard_of(i) == shard]
            every = [i for i in log if shard_of(i) == shard]
            at = every.index(of_shard[0])
            assert of_shard == every[at:at + len(of_shard)]
        stream.close()


def test_last_of_what_takes_no_posts_is_deletions(gateway, cli, redis):
    posts_and_deletions(redis, cli, 50)
    wanted = [e["id"] for e in logged(redis, kinds=("delete",))][-2:]
    with gateway.stream(f"{FIREHOSE}?types=delete&last=2") as stream:
        assert events.by_shard(ids([stream.next(), stream.next()])) == events.by_shard(wanted)


def test_last_looks_at_ten_thousand_events_and_no_more(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    replay(cli, redis.folder, 300, text="rare")
    replay(cli, redis.folder, 9900, first=301, text="common", name="common")
    gateway = servers.gateway(redis)
    with gateway.stream("/v1/stream/filter?track=rare&last=1000") as stream:
        late = cli.ids("post", "--user", "u1", "rare")[0]
        got = ids(stream.until(late))
    rare = ids([e for e in logged(redis) if "rare" in e["post"]["text"]])
    assert 100 <= len(got) <= 101 + 128 and set(got) <= set(rare)
    assert gateway.metrics()["sluice_log_pages_read_total"] < 9900 / 128 + 8 * 2


@pytest.mark.parametrize("is_remembered", [True, False], ids=["ring", "log"])
def test_last_on_a_stream_of_many_waits_for_its_filters(servers, cli_for, is_remembered):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = gateway_after_posts(servers, redis, cli, is_remembered)
    with gateway.stream("/v1/stream?last=20", "websocket") as stream:
        for name, more in (("w1", True), ("w2", False)):
            stream.send(json.dumps({"op": "subscribe", "id": name, "filter": {"track": name},
                                    "more": more}))
            assert stream.next()["op"] == "subscribed"
        got = [stream.next() for _ in range(20)]
    assert_newest(ids(got), left(redis, lambda e: e["post"]["text"][-2:] in ("w1", "w2")), 20)
    assert all([rule["id"] for rule in e["matching_rules"]] == [e["post"]["text"][-2:]] for e in got)


def test_last_of_a_home_stream(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    posts_and_deletions(redis, cli)
    reader = cli.run("user", "add", "reader")
    cli.run("follow", "reader", "u1")
    gateway = servers.gateway(redis)
    with gateway.stream("/v1/stream/home?last=10", token=gateway.token(sub=reader)) as stream:
        got = ids([stream.next() for _ in range(10)])
    assert_newest(got, left(redis, lambda e: e["post"]["user"]["login"] == "u1"), 10)


def test_a_last_event_id_wins_over_last(gateway, cli, redis):
    replay(cli, redis.folder, 30)
    cursor, *rest = ids(logged(redis))[-3:]
    with gateway.stream(f"{FIREHOSE}?last=20", "sse", headers={"Last-Event-ID": cursor}) as stream:
        assert_next(stream, rest)
