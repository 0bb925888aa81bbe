"""A pace: which posts of a window are sent, and how many are not, compared with the log.

What is delivered and what is skipped add up to what matches, however the stream was resumed."""

import json
import os
import random
import signal

import pytest

from harness import events, picks
from harness.cli import Cli
from harness.redis_server import shard_of
from harness.streams import Refused
from harness.waiting import eventually

FIREHOSE, FILTER = "/v1/stream/firehose", "/v1/stream/filter"


def id_of(event):
    return int(event["id"])


def recount(log, rate, pick="", wants=lambda event: True, until=None):
    """What a stream should send: (id, type) of events, and (id, "skipped", n), in order."""
    pace, windows = picks.Pace(f"?max_rate={rate}{pick}"), {}
    for event in sorted(log, key=id_of):
        if event["type"] in ("post", "delete") and wants(event) and (until is None or id_of(event) <= until):
            windows.setdefault(pace.window_of(event["id"]), []).append(event)
    told = []
    for end, found in sorted(windows.items()):
        posts = [event for event in found if event["type"] == "post"]
        sent = {post.id for post in pace.choose([picks.post_of(event) for event in posts])}
        told += [(id_of(event), event["type"]) for event in found if event["type"] != "post" or id_of(event) in sent]
        if len(posts) > len(sent):
            told.append((min(end, until) if until else end, "skipped", len(posts) - len(sent)))
    return told


def as_told(messages):
    return [(int(m["id"]), m.type) + ((m["events"],) if m.type == "skipped" else ())
            for m in messages if not m.is_control and "op" not in m]


def write(folder, count, name="posts"):
    """Writes posts of a few users and places."""
    file = folder / f"{name}.jsonl"
    with open(file, "w") as out:
        for n in range(count):
            post = events.post(n + 1, f"post {n} w{n % 5}", user=str(n % 11))
            if n % 3:
                post["post"]["geo"] = {"lon": n % 7 * 0.3 - 1, "lat": n % 5 * 0.4 - 0.9}
            out.write(events.dump(post) + "\n")
    return file


def fill(redis, cli, count, rate):
    """Adds events of some seconds, including deletions."""
    cli.run("user", "add", "ada")
    for part in range(3):
        for text in ("one", "two"):
            cli.run("delete", "--user", "ada", cli.run("post", "--user", "ada", text))
        cli.run("replay", write(redis.folder, count // 3, f"part{part}"), "--rate", str(rate))
    return redis.log()


def follow(stream, expected):
    """Returns the messages up to the last expected one."""
    return as_told(stream.until(lambda m: (int(m.json.get("id", 0)), m.type) == expected[-1][:2])) if expected else []


@pytest.fixture(scope="module")
def filled(module_servers):
    """A log of some seconds, and a gateway that received none of it live."""
    redis = module_servers.redis()
    log = fill(redis, Cli(redis), 1800, 450)
    return redis, module_servers.gateway(redis), log


RATES = [("", 20), ("&pick=newest", 7), ("&pick=first", 20), ("&latest_by=user", 5), ("&latest_by=user", 100),
         ("&latest_by=cell&cell_degrees=0.5", 9), ("&pick=even", 2.9), ("&pick=newest", 0.3), ("&pick=first", 0.7), ("", 1000)]


@pytest.mark.parametrize("pick, rate", RATES)
def test_the_past_is_picked_as_a_recount_of_the_log_does(filled, pick, rate):
    _, gateway, log = filled
    until = id_of(log[-1])
    expected = recount(log, rate, pick, until=until)
    with gateway.stream(f"{FIREHOSE}?max_rate={rate}{pick}&since={id_of(log[0]) - 1}&until={until}") as stream:
        got = stream.to_end()
    assert as_told(got) == expected
    assert got[-1]["code"] == "complete" and got[-1]["cursor"] == str(until)
    posts = sum(event["type"] == "post" for event in log)
    assert sum(m["events"] for m in got if m.type == "skipped") + sum(m.type == "post" for m in got) == posts
    assert sum(m.type == "delete" for m in got) == 6


@pytest.mark.parametrize("pick", ["", "&pick=newest", "&pick=first", "&latest_by=user"])
def test_some_posts_of_then_are_picked_of_all(filled, pick):
    _, gateway, log = filled
    since, until = id_of(log[100]), id_of(log[-50])
    posts = [event for event in log if event["type"] == "post" and since < id_of(event) <= until]
    deleted = {event["post"]["id"] for event in log if event["type"] == "delete" and id_of(event) <= until}
    chosen = picks.Pace(f"?max=7{pick}").choose([picks.post_of(event) for event in posts])
    sent = [post.id for post in chosen if str(post.number) not in deleted]
    with gateway.stream(f"{FIREHOSE}?max=7{pick}&since={since}&until={until}") as stream:
        got = stream.to_end()
    assert as_told(got) == [(event_id, "post") for event_id in sorted(sent)] + [(until, "skipped", len(posts) - len(sent))]
    assert got[-1]["code"] == "complete" and got[-1]["cursor"] == str(until)


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "sse", "websocket"])
def test_it_is_resumed_from_anywhere_on_every_wire(filled, transport):
    """A stream resumes from every cursor that it has sent, and from others."""
    _, gateway, log = filled
    wants = lambda event: event["type"] == "post" and "w1" in event["post"]["text"].split()
    chance = random.Random(transport)
    for pick in ("", "&pick=first", "&latest_by=user"):
        until = id_of(log[-1])
        expected = recount(log, 6, pick, wants, until)
        path = f"{FILTER}?track=w1&types=post&max_rate=6{pick}&until={until}&fields=text"
        with gateway.stream(f"{path}&since={id_of(log[0]) - 1}", transport) as stream:
            got = [message for message in stream.to_end() if not message.is_control]
        assert as_told(got) == expected
        if transport == "sse":
            assert all(m.sse_id == m["id"] and m.sse_event == m.type for m in got)
        cursors = chance.sample([told[0] for told in expected], 6) + [id_of(event) for event in chance.sample(log, 4)]
        for cursor in cursors:
            if cursor >= until:
                continue
            with gateway.stream(f"{path}&since={cursor}", transport) as stream:
                assert as_told(stream.to_end()) == [told for told in expected if told[0] > cursor], cursor


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_it_is_compressed(filled, encoding):
    _, gateway, log = filled
    until = id_of(log[-1])
    with gateway.stream(f"{FIREHOSE}?max_rate=9&since={id_of(log[0]) - 1}&until={until}",
                        headers={"Accept-Encoding": encoding}) as stream:
        assert as_told(stream.to_end()) == recount(log, 9, until=until)


def test_the_rules_of_a_connection_are_paced_together(filled):
    _, gateway, log = filled
    until, since = id_of(log[-1]), id_of(log[0]) - 1

    def wants(event):
        return event["type"] == "post" and {"w1", "w2"} & set(event["post"]["text"].split())
    with gateway.stream(f"/v1/stream?max_rate=8&since={since}&until={until}", "websocket") as stream:
        stream.send(json.dumps({"op": "subscribe", "id": "one", "more": True, "filter": {"track": "w1", "types": "post"}}))
        stream.send(json.dumps({"op": "subscribe", "id": "two", "filter": {"track": "w2,w1", "types": "post"}}))
        got = stream.to_end()
    assert as_told(got) == recount(log, 8, wants=wants, until=until)
    for message in (m for m in got if m.type == "post"):
        words = set(message["post"]["text"].split())
        rules = (["one"] if "w1" in words else []) + ["two"]
        assert [rule["id"] for rule in message["matching_rules"]] == rules


def test_it_is_opened_among_other_streams(filled):
    _, gateway, log = filled
    until, since = id_of(log[-1]), id_of(log[0]) - 1
    with gateway.stream("/v1/stream", "websocket") as stream:
        stream.send(json.dumps({"op": "open", "id": "some", "path": f"{FIREHOSE}?max_rate=3&since={since}&until={until}"}))
        got = stream.until(lambda message: message.type == "disconnect")
    assert all(message["stream"] == "some" for message in got if "op" not in message)
    assert as_told(got) == recount(log, 3, until=until)


def test_what_was_not_logged_is_skipped_by_itself(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    with gateway.stream(f"{FIREHOSE}?max_rate=5") as stream:
        eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 0, "it is live")
        redis.publish(events.dump(events.post(7, "past the log")))
        told = stream.next()
    assert (told.type, told["events"], told["reason"]) == ("skipped", 1, "unlogged")


def test_live_replayed_resumed_and_after_a_kill_all_pick_the_same(servers, cli_for):
    """Clients of two workers, one of which dies, resume from their last cursor."""
    redis = servers.redis()
    gateway = servers.gateway(redis, workers=2)
    cli = cli_for(redis)
    clients = [(f"{FIREHOSE}?max_rate={rate}{pick}", rate, pick) for pick, rate in
               [("", 20), ("&pick=newest", 5), ("&pick=first", 15), ("&latest_by=user", 4), ("&pick=first", 0.4)] for _ in range(2)]
    streams = [gateway.stream(path) for path, _, _ in clients]
    eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 0, "all are live")
    log = fill(redis, cli, 600, 300)
    os.kill(gateway.workers()[0], signal.SIGKILL)
    log = fill_more(redis, cli)
    for (path, rate, pick), stream in zip(clients, streams):
        expected = recount(log, rate, pick)
        got = []
        while not got or got[-1][:2] != expected[-1][:2]:
            try:
                message = stream.next()
            except ConnectionError:
                message = None
            if message is None:
                since = got[-1][0] if got else id_of(log[0]) - 1
                stream.close()
                stream = gateway.stream(f"{path}&since={since}")
            else:
                got += as_told([message])
        stream.close()
        assert got == expected
    assert gateway.metrics()["sluice_posts_skipped_total"] > 0


def fill_more(redis, cli):
    cli.run("replay", write(redis.folder, 500, "more"), "--rate", "400")
    return redis.log()


def test_equal_paces_are_picked_once(servers, cli_for):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    one, other = (gateway.stream(f"{FILTER}?track=post&types=post&max_rate=5") for _ in range(2))
    before = gateway.metrics()["sluice_matches_total"]
    eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 0, "both are live")
    cli_for(redis).run("replay", write(servers.folder, 300), "--rate", "600")
    log = redis.log()
    expected = recount(log, 5)
    with one, other:
        assert follow(one, expected) == follow(other, expected) == expected
    metrics = gateway.metrics()
    assert metrics["sluice_matches_total"] - before == 300
    assert metrics["sluice_posts_skipped_total"] == sum(told[2] for told in expected if told[1] == "skipped")


def test_who_does_not_read_is_told_the_same_later(servers, cli_for):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--max-owed-bytes", "20000")
    slow = gateway.stream(f"{FIREHOSE}?max_rate=400", receive_buffer=4096)
    eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 0, "it is live")
    file = servers.folder / "long.jsonl"
    file.write_text("".join(events.dump(events.post(n + 1, f"{n} " + "long " * 600)) + "\n" for n in range(3600)))
    cli_for(redis).run("replay", file, "--rate", "1500")
    eventually(lambda: gateway.metrics()["sluice_streams_fallen_behind_total"] > 0, "it has fallen behind")
    expected = recount(redis.log(), 400)
    assert any(told[1] == "skipped" for told in expected)
    with slow:
        assert follow(slow, expected) == expected


def test_a_home_stream_has_a_pace(servers, cli_for):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    bob = cli.run("user", "add", "bob").strip()
    cli.run("follow", "bob", "ada")
    token = gateway.token(sub=bob, scope="stream:home")
    with gateway.stream("/v1/stream/home?max_rate=1&pick=newest", token=token) as stream:
        for n in range(12):
            cli.run("post", "--user", "ada", f"post {n}")
        expected = recount(redis.log(), 1, "&pick=newest")
        assert follow(stream, expected) == expected
    since = expected[0][0] - 1
    with gateway.stream(f"/v1/stream/home?max_rate=1&pick=newest&since={since}", token=token) as stream:
        assert follow(stream, expected) == expected


def test_the_newest_come_first_and_then_a_pace(filled):
    _, gateway, log = filled
    with gateway.stream(f"{FIREHOSE}?max_rate=1&last=30&types=post") as stream:
        got = [stream.next() for _ in range(30)]
    live = [event for event in log if event["type"] == "post" and event["post"]["text"] not in ("one", "two")]
    assert [int(m["id"]) for m in got] == [id_of(event) for event in live[-30:]]


def test_what_comes_late_is_skipped_by_itself(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    login = {shard_of(cli.run("user", "add", f"u{n}")): f"u{n}" for n in range(12)}
    shard, user = next(iter(login.items()))
    with gateway.stream(f"{FIREHOSE}?max_rate=5") as stream:
        post = cli.run("post", "--user", user, "text")
        stream.until(post)
        late = (int(post) // 4096 + 1) * 4096 + shard * 64
        redis.client.xadd(f"sluice:{{{shard}}}:log",
                          {"p": post, "e": json.dumps(events.post(late, "late"))}, id=f"{late}-0")
        redis.client.execute_command(redis.publish_command, redis.channel(shard),
                                     f"{late} {post} " + json.dumps(events.post(late, "late")))
        told = stream.until(lambda message: message.type == "skipped")[-1]
    assert (told["events"], told["reason"]) == (1, "late") and int(told["id"]) > late
    with gateway.stream(f"{FIREHOSE}?max_rate=5&since={int(post) - 1}") as stream:
        # A gap before them may say that something in this window was late.
        assert as_told(stream.until(late)) == [(int(post), "post"), (late, "post")]


@pytest.mark.parametrize("query, code, param", [
    ("max_rate=0", "bad_max_rate", "max_rate"), ("max_rate=0.09", "bad_max_rate", "max_rate"),
    ("max_rate=1000.001", "bad_max_rate", "max_rate"), ("max_rate=1e2", "bad_max_rate", "max_rate"),
    ("max_rate=", "bad_max_rate", "max_rate"), ("max_rate=4294968", "bad_max_rate", "max_rate"),
    ("max=0&since=-1h&until=-1m", "bad_max", "max"), ("max=1001&since=-1h&until=-1m", "bad_max", "max"),
    ("max=1.5&since=-1h&until=-1m", "bad_max", "max"), ("max=5", "bad_max", "max"), ("max=5&since=-1h", "bad_max", "max"),
    ("max=5&max_rate=1&since=-1h&until=-1m", "bad_max", "max"),
    ("max_rate=1&pick=oldest", "bad_pick", "pick"), ("pick=even", "bad_pick", "pick"),
    ("latest_by=user", "bad_latest_by", "latest_by"), ("max_rate=1&latest_by=lang", "bad_latest_by", "latest_by"),
    ("max_rate=1&pick=even&latest_by=user", "bad_latest_by", "latest_by"),
    ("max_rate=1&latest_by=cell", "no_cell_degrees", "cell_degrees"),
    ("max_rate=1&latest_by=cell&cell_degrees=91", "bad_cell_degrees", "cell_degrees"),
    ("max_rate=1&cell_degrees=1", "bad_cell_degrees", "cell_degrees"),
    ("cell_degrees=1", "bad_cell_degrees", "cell_degrees")])
def test_what_is_no_pace_is_refused(filled, query, code, param):
    _, gateway, _ = filled
    with pytest.raises(Refused) as refused:
        gateway.stream(f"{FIREHOSE}?{query}")
    error = refused.value.response.json["error"]
    assert (refused.value.response.status, error["code"], error["param"]) == (400, code, param)


def test_counts_have_no_pace(filled):
    _, gateway, _ = filled
    with pytest.raises(Refused) as refused:
        gateway.stream("/v1/stream/counts?bucket=1s&max_rate=1")
    assert refused.value.response.json["error"]["code"] == "unknown_parameter"
