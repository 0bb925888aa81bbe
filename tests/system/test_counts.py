"""Counts: one message per bucket, the same from the past, live and resumed, equal to a second computation from the log.
"""

import json
import math
import os
import signal
import time

import pytest

from harness import events, programs
from harness.cli import Cli
from harness.http import form_bytes
from harness.redis_server import shard_of
from harness.streams import Refused
from harness.waiting import eventually

STREAM, PAST = "/v1/stream/counts", "/v1/counts"
EPOCH_MS = 1767225600000
BUCKETS = {"1s": 1000, "10s": 10000, "1m": 60000, "1h": 3600000, "1d": 86400000}
LANGS, PLACES = ["en", "fr", "ja", None], ["FR", "JP", None]


def ms_of(event_id):
    return int(event_id) // 4096 + EPOCH_MS


def id_before(ms):
    return (ms - EPOCH_MS) * 4096 - 1


def cell_of(post, side):
    if "geo" not in post:
        return "none"

    def corner(degrees, first):
        edge = min(math.floor((degrees - first) / side), math.ceil(-2 * first / side) - 1) * side + first
        return str(int(edge)) if edge == int(edge) else str(round(edge, 3))
    return f"{corner(post['geo']['lon'], -180)},{corner(post['geo']['lat'], -90)}"


AUTHOR = {}  # of the first post in the log
KEYS = {"lang": lambda event: event["post"].get("lang") or "und",
        "country": lambda event: event["post"].get("place", {}).get("country") or "none",
        "cell": lambda event: cell_of(event["post"], 0.5)}


def recount(log, bucket, by=None, wants=lambda event: True):
    """{the id of a bucket: what should be sent for it}, for the buckets with events of this log."""
    length, found = BUCKETS[bucket], {}
    for event in sorted(log, key=lambda event: int(event["id"])):
        if event["type"] not in ("post", "delete") or not wants(event):
            continue
        start = ms_of(event["id"]) // length * length
        counts = found.setdefault(str(id_before(start + length)), {"posts": 0, "deletes": 0, "users": set(), "groups": {}})
        counts[event["type"] + "s"] += 1
        if event["type"] == "post":
            counts["users"].add(event["post"]["user"]["id"])
        if by == "type" or (by and event["type"] == "post"):
            key = event["type"] if by == "type" else KEYS[by](event)
            counts["groups"][key] = counts["groups"].get(key, 0) + 1
    for counts in found.values():
        counts["users"] = len(counts["users"])
    return found


def as_counted(message, by=None):
    told = {name: message[name] for name in ("posts", "deletes", "users")}
    groups = {group["key"]: group["events" if by == "type" else "posts"] for group in message.get("groups", [])}
    assert message.get("other", 0) == 0
    return {**told, "groups": groups}


NOTHING = {"posts": 0, "deletes": 0, "users": 0, "groups": {}}


def check(messages, expected, by=None):
    """They are whole buckets, one after the other, and contain exactly what was expected."""
    ids = [int(message["id"]) for message in messages]
    for message in messages:
        assert as_counted(message, by) == expected.get(message["id"], NOTHING), message
    if len(ids) > 1:
        assert {b - a for a, b in zip(ids, ids[1:])} == {ids[1] - ids[0]}
    assert {bucket for bucket in expected if ids[0] <= int(bucket) <= ids[-1]} <= {m["id"] for m in messages}


def ask(gateway, query, token=None):
    with gateway.connect() as connection:
        headers = {"Authorization": f"Bearer {token}"} if token else gateway.bearer()
        connection.send(form_bytes("GET", f"{PAST}?{query}", headers))
        return connection.read_response("GET")


def get(gateway, query):
    response = ask(gateway, query)
    assert response.status == 200, response
    return response.json


def write(folder, count, name="posts"):
    """Writes posts of a few users, languages and places."""
    file = folder / f"{name}.jsonl"
    with open(file, "w") as out:
        for n in range(count):
            post = events.post(n + 1, f"post {n} w{n % 5}", user=str(n % 11))
            lang, place = LANGS[n % 4], PLACES[n % 3]
            post["post"].update(({"lang": lang} if lang else {}) | ({"place": {"country": place}} if place else {}))
            if n % 2:
                post["post"]["geo"] = {"lon": n % 7 * 0.3 - 1, "lat": n % 5 * 0.4 - 0.9}
            out.write(events.dump(post) + "\n")
    return file


def closed_after(stream, wanted_id):
    """Returns whole buckets up to the first that ends after this id."""
    got = stream.until(lambda message: message.type == "counts" and int(message.json.get("id", 0)) >= int(wanted_id))
    return [message.json for message in got if message.type == "counts" and "id" in message]


@pytest.fixture(scope="module")
def filled(module_servers):
    """A log of some seconds, and a gateway that received none of it live."""
    redis = module_servers.redis()
    cli = Cli(redis)
    cli.run("replay", write(redis.folder, 1500), "--rate", "600")
    cli.run("user", "add", "ada")
    for text in ("one", "two"):
        cli.run("delete", "--user", "ada", cli.run("post", "--user", "ada", text))
    gateway = module_servers.gateway(redis)
    log = redis.log()
    last = log[-1]["id"]
    eventually(lambda: int(get(gateway, "bucket=1s&since=-1s")["cursor"]) >= int(last), "its second is over")
    return redis, gateway, log


@pytest.mark.parametrize("by", [None, "type", "lang", "country", "cell"])
def test_the_past_is_a_recount_of_the_log(filled, by):
    _, gateway, log = filled
    first = next(event["id"] for event in log if event["type"] == "post")
    by_query = "" if not by else f"&by={by}" + ("&cell_degrees=0.5" if by == "cell" else "")
    expected = recount(log, "1s", by)
    answer = get(gateway, f"bucket=1s{by_query}&since={first}")
    assert answer["gaps"] == [] and sum(expected[bucket]["posts"] for bucket in expected) >= 1500
    check(answer["counts"], expected, by)
    assert answer["counts"][0]["id"] == min(expected, key=int) and answer["cursor"] == answer["counts"][-1]["id"]


@pytest.mark.parametrize("query, wants", [
    ("track=w3", lambda event: "w3" in event["post"].get("text", "")),
    ("follow=AUTHOR", lambda event: event["post"]["user"]["id"] == AUTHOR["id"]),
    ("rule=w1+country:FR&types=post", lambda event: event["type"] == "post" and (
        "w1" in event["post"]["text"].split() and event["post"].get("place", {}).get("country") == "FR")),
    ("language=ja", lambda event: event["post"].get("lang") == "ja"),
    ("rule=lang:ja", lambda event: event["post"].get("lang") == "ja"),
    ("rule=country:FR+OR+(lang:ja+-w1)", lambda event: (
        event["post"].get("place", {}).get("country") == "FR" or
        event["post"].get("lang") == "ja" and "w1" not in event["post"]["text"].split()))])
def test_filters_are_those_of_streams(filled, query, wants):
    _, gateway, log = filled
    first = log[0]["id"]
    AUTHOR["id"] = next(event["post"]["user"]["id"] for event in log if event["type"] == "post")
    query = query.replace("AUTHOR", AUTHOR["id"])
    expected = recount([event for event in log if event["type"] == "post"], "1s", wants=wants)
    assert expected
    for message in get(gateway, f"bucket=1s&{query}&since={first}")["counts"]:
        want = expected.get(message["id"], NOTHING)
        assert (message["posts"], message["users"]) == (want["posts"], want["users"])


def test_a_part_of_the_past_has_whole_buckets(filled):
    _, gateway, log = filled
    expected = recount(log, "1s")
    ids = sorted(map(int, expected))
    within, end = ids[1] - 1000000, ids[2] - 4000000
    answer = get(gateway, f"bucket=1s&since={within}&until={end}")
    assert [int(message["id"]) for message in answer["counts"]] == ids[1:3]
    check(answer["counts"], expected)
    after = get(gateway, f"bucket=1s&since={ids[1]}&until={ids[2]}")
    assert [int(message["id"]) for message in after["counts"]] == [ids[2]] and after["cursor"] == str(ids[2])
    assert get(gateway, f"bucket=1s&since={ids[1]}&until={ids[1]}") == {"counts": [], "gaps": [], "cursor": str(ids[1])}
    # the current bucket is not past yet
    assert get(gateway, "bucket=1d&since=-1ms")["counts"] == []


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "sse", "websocket"])
def test_the_stream_tells_the_past_and_goes_on_live(filled, transport):
    redis, gateway, log = filled
    expected = recount(log, "1s")
    with gateway.stream(f"{STREAM}?bucket=1s&since={log[0]['id']}", transport) as stream:
        got = closed_after(stream, log[-1]["id"])
        check(got, expected)
        check(got + [stream.next().json for _ in range(2)], expected)
    middle = got[len(got) // 2]["id"]
    with gateway.stream(f"{STREAM}?bucket=1s&since={middle}", transport) as stream:
        again = closed_after(stream, log[-1]["id"])
    assert again == [message for message in got if int(message["id"]) > int(middle)]


def test_live_counts_are_those_of_the_log(servers, cli_for):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    asked = {f"{STREAM}?bucket=1s&by=lang": ("lang", lambda event: True),
             f"{STREAM}?bucket=1s&track=w2&refresh_ms=100": (None, lambda event: "w2" in event["post"]["text"])}
    streams = {query: gateway.stream(query) for query in asked}
    cli_for(redis).run("replay", write(servers.folder, 2500), "--rate", "1000")
    log = redis.log()
    for query, (by, wants) in asked.items():
        with streams[query] as stream:
            got = stream.until(lambda message: int(message.json.get("id", 0)) >= int(log[-1]["id"]))
        check([m.json for m in got if "id" in m], recount(log, "1s", by, wants), by)
        partial = [m.json for m in got if "partial" in m]
        assert bool(partial) == ("refresh" in query)
    assert gateway.metrics()["sluice_streams_catching_up"] == 0


def test_only_public_posts_are_counted(servers, cli_for):
    """Live and from the past, in groups and in trends; also for their author."""
    redis = servers.redis()
    cli, gateway = cli_for(redis), servers.gateway(redis)
    ada, bob = (cli.run("user", "add", login) for login in ("ada", "bob"))
    token = gateway.token(sub=ada)
    counts = gateway.stream(f"{STREAM}?bucket=1s&track=tea&by=lang", token=token)
    trends = gateway.stream("/v1/stream/trends?window=5m&of=hashtags&bucket=1s", token=token)
    posts = [cli.run("post", "--user", "ada", "--lang", "en", "--audience", audience, "tea #tea") for audience in
             ("public", "followers", f"only:{ada}", f"except:{bob}", f"followers-except:{bob}")]
    cli.run("delete", "--user", "ada", posts[1])
    cli.run("post", "--user", "bob", "--lang", "en", "tea #tea")
    log = redis.log()
    assert len([event for event in log if event["type"] == "post"]) == 6  # all of them are there
    last = log[-1]["id"]

    def totals(messages):
        groups = [group for message in messages for group in message["groups"]]
        return [sum(message[what] for message in messages) for what in ("posts", "deletes")] + \
            [sum(group["posts"] for group in groups), {group["key"] for group in groups}]

    with counts, trends:
        assert totals(closed_after(counts, last)) == [2, 0, 2, {"en"}]
        *_, rising = trends.until(lambda message: int(message["id"]) >= int(last))
        assert [(term["term"], term["posts"], term["users"]) for term in rising["terms"]] == [("#tea", 2, 2)]
    response = ask(gateway, f"bucket=1s&track=tea&by=lang&since={int(posts[0]) - 1}", token)
    assert totals(response.json["counts"]) == [2, 0, 2, {"en"}]


def test_all_workers_tell_the_same_and_quiet_buckets_too(servers, cli_for):
    """If there are several, another process asks Redis for the time."""
    redis = servers.redis()
    gateway = servers.gateway(redis, workers=2)
    streams = [gateway.stream(f"{STREAM}?bucket=1s") for _ in range(4)]
    cli_for(redis).run("replay", write(servers.folder, 300))
    log = redis.log()
    got = [closed_after(stream, log[-1]["id"]) + [stream.next().json for _ in range(2)] for stream in streams]
    for told, stream in zip(got, streams):
        check(told, recount(log, "1s"))
        stream.close()
    shared = min(map(len, got))
    assert all(told[-shared:] == got[0][-shared:] for told in got)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("query", [
    "counts?bucket=1s&track=post", "trends?window=5m&bucket=1s&of=hashtags", "trends?window=5m&bucket=1s&of=hashtags,words"])
def test_a_cursor_may_be_ahead_of_what_this_gateway_has_told(servers, query, order):
    """Another gateway was faster. Clients get no bucket twice, and miss none."""
    gateway = servers.gateway(servers.redis())
    start, second = id_before(int(time.time()) * 1000), 4096000
    ahead = start + 3 * second - query.count(",")  # with two kinds, the first message of the last bucket was sent
    streams = {}
    for number in order:
        streams[number] = gateway.stream(f"/v1/stream/{query}&since={(ahead, start)[number]}")
        eventually(lambda: gateway.metrics()["sluice_streams"] == len(streams), "it has begun")
    got, other = ([int(message["id"]) for message in streams[number].until(
        lambda message: int(message["id"]) >= start + 5 * second)] for number in (0, 1))
    assert got == [each for each in other if each > ahead]
    assert len(other) == len(set(other)) and {start + n * second for n in range(1, 6)} <= set(other)


def test_clients_with_the_same_question_are_counted_for_once(servers, cli_for):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    one, other = (gateway.stream(f"{STREAM}?bucket=1s&track=post") for _ in range(2))
    before = gateway.metrics()["sluice_matches_total"]
    eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 0, "both are live")
    cli_for(redis).run("replay", write(servers.folder, 300))
    last = redis.log()[-1]["id"]
    got = [closed_after(stream, last) for stream in (one, other)]
    shared = min(map(len, got))
    assert got[0][-shared:] == got[1][-shared:]
    assert gateway.metrics()["sluice_matches_total"] - before == 300
    one.close()
    other.close()


def test_rules_are_counted_each(filled):
    _, gateway, log = filled
    first, last = log[0]["id"], log[-1]["id"]
    words = {"a": {"w1"}, "both": {"w1", "w2"}}

    def say(stream, message):
        stream.send(json.dumps(message))
        *told, answer = stream.until(lambda message: "op" in message)
        assert "error" not in answer, answer
        return told

    def expected(rules):
        found = {}
        for event in (event for event in log if event["type"] == "post"):
            hit = [rule for rule in rules if words[rule] & set(event["post"]["text"].split())]
            start = ms_of(event["id"]) // 1000 * 1000
            counts = found.setdefault(str(id_before(start + 1000)), {"posts": 0, "groups": {}})
            counts["posts"] += bool(hit)
            for rule in hit:
                counts["groups"][rule] = counts["groups"].get(rule, 0) + 1
        return found

    def check_rules(messages, rules):
        wanted = expected(rules)
        assert sum(counts["posts"] for counts in wanted.values()) > 0
        for message in messages:
            want = wanted.get(message["id"], {"posts": 0, "groups": {}})
            groups = {group["key"]: group["posts"] for group in message["groups"]}
            assert (message["posts"], groups) == (want["posts"], want["groups"]), message

    with gateway.stream(f"{STREAM}?bucket=1s&by=rule&since={first}", "websocket") as stream:
        told = say(stream, {"op": "subscribe", "id": "a", "filter": {"track": "w1"}, "more": True})
        told += say(stream, {"op": "subscribe", "id": "both", "filter": {"track": "w1,w2"}})
        assert told == []
        check_rules(closed_after(stream, last), ["a", "both"])
        say(stream, {"op": "unsubscribe", "id": "a"})
        told = [stream.next() for _ in range(2)]
        assert [message["groups"] for message in told] == [[], []] and "revision" not in told[0]


def test_what_the_log_has_let_go_of_is_told(servers, cli_for):
    redis = servers.redis()
    cli_for(redis).run("replay", write(servers.folder, 2000), "--rate", "800")
    log = redis.log()
    first, middle = log[0]["id"], log[1100]["id"]
    for key in redis.logs():
        redis.client.xtrim(key, minid=f"{middle}-0")
    left = redis.log()
    gateway = servers.gateway(redis)
    eventually(lambda: int(get(gateway, "bucket=1s&since=-1s")["cursor"]) >= int(log[-1]["id"]), "it is over")
    answer = get(gateway, f"bucket=1s&since={first}")
    assert answer["gaps"] and {gap["reason"] for gap in answer["gaps"]} == {"retention"}
    expected, whole = recount(left, "1s"), recount(log, "1s")
    for message in answer["counts"]:
        assert as_counted(message) == expected.get(message["id"], NOTHING)
        if as_counted(message) != whole.get(message["id"], NOTHING):
            assert message["gap"] is True
    assert any("gap" not in message for message in answer["counts"])
    with gateway.stream(f"{STREAM}?bucket=1s&since={first}") as stream:
        told = closed_after(stream, log[-1]["id"])
        assert told == answer["counts"][:len(told)]


def test_what_comes_late_is_told_again_whole(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    login = {shard_of(cli.run("user", "add", f"u{n}")): f"u{n}" for n in range(12)}
    shard, user = next(iter(login.items()))
    with gateway.stream(f"{STREAM}?bucket=1s") as stream:
        post = cli.run("post", "--user", user, "text")
        closed_after(stream, post)
        # An event with an id of a past second, in its place in the log, received now.
        late = (int(post) // 4096 + 1) * 4096 + shard * 64
        redis.client.xadd(f"sluice:{{{shard}}}:log",
                          {"p": post, "e": json.dumps(events.post(late, "late"))}, id=f"{late}-0")
        redis.client.execute_command(redis.publish_command, redis.channel(shard), f"{late} {post} " + json.dumps(
            events.post(late, "late")))
        got = stream.until(lambda message: message.json.get("revision"))
    expected = recount(redis.log(), "1s")
    assert got[-1]["id"] in expected and got[-1]["revision"] == 1
    assert as_counted(got[-1].json) == expected[got[-1]["id"]]


def test_what_was_rewound_is_told_again_without_it(servers, cli_for):
    """Three posts that are received but missing in the log, as after a failover."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis)
    with gateway.stream(f"{STREAM}?bucket=1s&types=post") as stream:
        kept = cli.run("post", "--user", "ada", "kept")
        lost = [kept]
        for number in range(1, 4):
            lost.append(str(int(kept) + number * 64 * 64))
            redis.publish(f"{lost[-1]} {lost[-2]} " + json.dumps(events.post(lost[-1], "lost")), shard=shard_of(kept))
        told = closed_after(stream, lost[-1])
        assert sum(message["posts"] for message in told) == 4
        after = cli.run("post", "--user", "ada", "after")
        got = stream.until(lambda message: message.type == "counts" and int(message["id"]) >= int(after)
                           and not message.json.get("revision"))
        gap = next(message.json for message in got if message.type == "gap")
        assert (gap["from"], gap["to"], gap["reason"]) == (kept, lost[-1], "rewound")
        expected = recount(redis.log(), "1s")
        again = [message.json for message in got if message.json.get("revision")]
        assert again and again[0]["revision"] == 1 and all(message["gap"] for message in again)
        final = {message["id"]: message for message in [*told, *(m.json for m in got if m.type == "counts" and "id" in m)]}
        check(sorted(final.values(), key=lambda message: int(message["id"])), expected)


def test_only_so_many_counts_of_the_past_are_read_for_a_subject(servers, cli_for):
    redis = servers.redis()
    cli_for(redis).run("replay", write(servers.folder, 10))
    first, *_, last = (event["id"] for event in redis.log())
    gateway = servers.gateway(redis, "--redis-timeout", "60s")  # which has read nothing
    next_second = id_before(ms_of(last) // 1000 * 1000 + 1000)
    eventually(lambda: get(gateway, f"bucket=1s&since={next_second}")["counts"], "it knows that the next second is over")
    pids = redis.pids
    waiting = []
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for _ in range(2):
            connection = gateway.connect()
            connection.send(form_bytes("GET", f"{PAST}?bucket=1s&since={first}&track=w{len(waiting)}", gateway.bearer()))
            waiting.append(connection)
        eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 2, "they are read")
        refused = ask(gateway, f"bucket=1s&since={first}")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert refused.status == 429 and refused.json["error"]["code"] == "too_many_counts"
    for connection in waiting:
        assert connection.read_response("GET").status in (200, 503)
        connection.close()


def test_scopes_are_those_of_the_streams_with_the_same_events(filled):
    _, gateway, _ = filled
    for scope, query, status in (("stream:filter", "track=tea", 200), ("stream:filter", "", 403),
                                 ("stream:filter", "rule=lang:ja", 200), ("stream:firehose", "rule=lang:ja", 403),
                                 ("stream:firehose", "language=en", 200), ("stream:firehose", "track=tea", 403),
                                 ("stream:sample", "percent=1", 200), ("stream:sample", "", 403)):
        answer = ask(gateway, f"bucket=1s&since=-5s&{query}", gateway.token(scope=scope))
        assert answer.status == status, (scope, query, answer)
        try:
            gateway.stream(f"{STREAM}?bucket=1s&{query}", token=gateway.token(scope=scope)).close()
            assert status == 200
        except Refused as refused:
            assert refused.response.status == status == 403


def test_the_panel_for_grafana_asks_for_what_is_there(filled):
    """Like its data source does: the URL with its variables, the elements of one member, columns of each."""
    _, gateway, log = filled
    target, = json.loads((programs.SOURCE / "examples" / "grafana-counts" / "panel.json").read_text())["targets"]
    began, ended = ms_of(log[0]["id"]), ms_of(log[-1]["id"]) + 60000
    path, query = target["url"].removeprefix("http://127.0.0.1:8080").split("?")
    assert path == PAST
    query = query.replace("bucket=10s", "bucket=1s").replace("${__from}", str(began)).replace("${__to}", str(ended))
    buckets = get(gateway, query)[target["root_selector"]]
    assert buckets and all(column["selector"] in bucket for bucket in buckets for column in target["columns"])
