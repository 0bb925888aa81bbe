"""Trends: which terms rise, compared with a second computation from the log; the same from the past, live, and on every
gateway."""

import collections
import json
import math
import random
import time

import pytest

from harness import events, processes
from harness.redis_server import shard_of
from harness.streams import Refused
from harness.waiting import eventually

STREAM = "/v1/stream/trends"
EPOCH_MS = 1767225600000
WINDOW_MS, PARTS = 300000, 12
SLICE_MS = WINDOW_MS // PARTS
STOP_WORDS = ["the", "of"]


def ms_of(event_id):
    return int(event_id) // 4096 + EPOCH_MS


def id_at(ms, shard=0, n=0):
    return (ms - EPOCH_MS) * 4096 + shard * 64 + n


def slices_of(end_ms):
    """The first millisecond of the past and of the window of what ends here, and of the end of the last slice."""
    last = ((end_ms - 1) // SLICE_MS + 1) * SLICE_MS
    return last - 2 * WINDOW_MS, last - WINDOW_MS, last


def terms_of(event, of):
    words = event["post"]["text"].split()
    if of == "hashtags":
        return {word for word in words if word.startswith("#")}
    if of == "users":
        return {word for word in words if word.startswith("@")}
    if of == "cashtags":
        return {word for word in words if word.startswith("$")}
    if of == "links":
        return {word.removeprefix("https://") for word in words if word.startswith("https://")}
    return {word.lstrip("#@$") for word in words if not word.startswith("https://")}


def recount(log, end_ms, of="hashtags", limit=20, wants=lambda event: True):
    """The terms that should be sent, while all numbers are exact."""
    past, start, _ = slices_of(end_ms)
    posts, users, before, parts = collections.Counter(), {}, {}, {}
    had, total, total_before = collections.Counter(), 0, 0
    for event in log:
        ms = ms_of(event["id"])
        if not past <= ms < end_ms or event["type"] != "post" or not wants(event):
            continue
        user = event["post"]["user"]["id"]
        total, total_before = total + (ms >= start), total_before + (ms < start)
        for term in terms_of(event, of):
            if ms < start:
                before.setdefault(term, set()).add(user)
                had[term] += 1
                continue
            posts[term] += 1
            users.setdefault(term, set()).add(user)
            parts.setdefault(term, [set() for _ in range(PARTS)])[(ms - start) // SLICE_MS].add(user)
    rate = (total + 100) / (total_before + 100)
    told = []
    for term in users:
        u, b = len(users[term]), len(before.get(term, ()))
        share = had[term] / total_before if total_before >= 100 else posts[term] / total if total >= 100 else 0
        if u < 2 or (of == "words" and share > 1 / 50):
            continue
        score = math.floor((u - rate * b - 0.5) / math.sqrt(u + rate * rate * b + 0.5) * 10 + 0.5)
        if score > 0:
            told.append((-score, -u, term.encode(), {
                "term": term, "posts": posts[term], "users": u, "before": b, "score": score / 10,
                "past": [len(part) for part in parts[term]]}))
    return [row[3] for row in sorted(told, key=lambda row: row[:3])[:limit]]


def write(redis, posts):
    """Adds (ms, user, text) to the logs of a database, before anything reads them."""
    previous, minted = {}, collections.Counter()
    for n, (ms, user, text, *lang) in enumerate(sorted(posts)):
        shard = n % redis.shards
        event_id = id_at(ms, shard, minted[ms, shard])
        minted[ms, shard] += 1
        event = events.post(event_id, text, user=user)
        event["post"] |= {"lang": lang[0]} if lang else {}
        redis.client.xadd(f"sluice:{{{shard}}}:log", {"p": previous.get(shard, 0), "e": events.dump(event)}, id=f"{event_id}-0")
        previous[shard] = event_id


def corpus(now_ms):
    """More than ten minutes, until some seconds ago: terms that are used all the time, and some that begin in the last
    minutes."""
    draw = random.Random(15)
    posts = []
    for _ in range(2500):
        ms = now_ms - draw.randrange(1000, 2 * WINDOW_MS + 60000)
        words = ["the", f"w{int(draw.paretovariate(0.7)) % 300}", f"#t{int(draw.paretovariate(1)) % 60}"]
        words += draw.choices([["@mei"], ["$abc"], ["https://example.org/a"], ["of"], []], k=1)[0]
        posts.append((ms, str(draw.randrange(400)), " ".join(words), draw.choice(["en", "ja"])))
    for user in range(40):
        posts.append((now_ms - 1000 - user * 4000, f"9{user}", "#rain storm @tom $wet https://example.org/rain", "en"))
    for _ in range(300):
        posts.append((now_ms - draw.randrange(1000, 100000), "7", "#flood flooding", "en"))
    return posts


@pytest.fixture(scope="module")
def filled(module_servers):
    redis = module_servers.redis()
    write(redis, corpus(int(time.time() * 1000)))
    gateway = module_servers.gateway(redis)
    return redis, gateway, redis.log()


def trends_of(stream, count):
    got = []
    while len(got) < count:
        message = stream.next()
        assert message.type == "trends", message
        got.append(message.json)
    return got


def past_of(gateway, log, query, seconds=20, count=10):
    """What was sent some seconds ago, and since then."""
    since = id_at(ms_of(log[-1]["id"]) // 1000 * 1000 - seconds * 1000)
    with gateway.stream(f"{STREAM}?window=5m&bucket=1s&since={since}&{query}") as stream:
        return trends_of(stream, count)


@pytest.mark.parametrize("of", ["hashtags", "words", "links", "users", "cashtags"])
def test_the_past_is_a_recount_of_the_log(filled, of):
    _, gateway, log = filled
    for message in past_of(gateway, log, f"of={of}"):
        end_ms = ms_of(int(message["id"]) + 1)
        _, start_ms, _ = slices_of(end_ms)
        assert (message["of"], message["complete"], message["error"]) == (of, True, 0)
        assert message["start"] == time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(start_ms / 1000))
        assert message["end"] == time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(end_ms / 1000))
        assert message["terms"] == recount(log, end_ms, of)
        assert message["terms"]


def test_what_many_say_is_a_trend_and_what_one_says_is_none(filled):
    _, gateway, log = filled
    message = past_of(gateway, log, "of=hashtags", seconds=1, count=3)[-1]
    assert message["terms"][0]["term"] == "#rain" and message["terms"][0]["users"] == 40
    assert message["terms"][0]["before"] == 0 and sum(message["terms"][0]["past"]) == 40
    assert "#flood" not in {term["term"] for term in message["terms"]}
    words = past_of(gateway, log, "of=words&limit=100", seconds=1, count=3)[-1]
    assert not {"flooding", *STOP_WORDS} & {term["term"] for term in words["terms"]}
    assert words["terms"][0]["term"] in ("rain", "storm", "tom", "wet")


@pytest.mark.parametrize("query, wants", [
    ("lang=ja", lambda event: event["post"].get("lang") == "ja"),
    ("language=en&limit=3", lambda event: event["post"].get("lang") == "en"),
    ("track=storm", lambda event: "storm" in event["post"]["text"].split()),
    ("follow=7&limit=1", lambda event: event["post"]["user"]["id"] == "7"),
    ("rule=w1+%23t1", lambda event: {"w1", "#t1"} <= set(event["post"]["text"].split()))])
def test_filters_are_those_of_streams(filled, query, wants):
    _, gateway, log = filled
    limit = int(query.partition("limit=")[2] or 20)
    for message in past_of(gateway, log, f"of=hashtags&{query}", count=5):
        assert message["terms"] == recount(log, ms_of(int(message["id"]) + 1), limit=limit, wants=wants)


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "sse", "websocket"])
def test_a_message_for_each_kind_and_a_cursor_between_them(filled, transport):
    _, gateway, log = filled
    first = id_at(ms_of(log[-1]["id"]) // 1000 * 1000 - 20000) - 1
    query = f"{STREAM}?window=5m&bucket=1s&of=words,hashtags,links"
    with gateway.stream(f"{query}&since={first}", transport) as stream:
        got = trends_of(stream, 12)
    assert [message["of"] for message in got] == ["hashtags", "words", "links"] * 4
    ids = [int(message["id"]) for message in got]
    assert ids[:6] == [first + 4096000 - 2, first + 4096000 - 1, first + 4096000, first + 8192000 - 2, first + 8192000 - 1,
                       first + 8192000]
    for at in (2, 3, 4):
        with gateway.stream(f"{query}&since={ids[at]}", transport) as stream:
            assert trends_of(stream, 12 - at - 1) == got[at + 1:]


def test_live_and_past_are_the_same_and_the_same_on_all_gateways(filled, module_servers):
    redis, gateway, log = filled
    query = f"{STREAM}?window=5m&bucket=1s&of=hashtags"
    other = module_servers.gateway(redis, workers=2)
    with gateway.stream(query) as live, other.stream(query, "sse") as elsewhere, other.stream(query) as third:
        last = id_at(int(time.time()) * 1000 + 3000) - 1
        got = [[message.json for message in stream.until(lambda message: int(message.json.get("id", 0)) >= last)]
               for stream in (live, elsewhere, third)]
    told = [{message["id"]: message for message in messages} for messages in got]
    shared = set(told[0]) & set(told[1]) & set(told[2])
    assert shared and all(told[0][each] == told[1][each] == told[2][each] for each in shared)
    since = int(got[0][0]["id"])
    with gateway.stream(f"{query}&since={since - 4096000}") as stream:
        assert trends_of(stream, len(got[0])) == got[0]
    for message in got[0]:
        assert message["complete"] is True
        assert message["terms"] == recount(log, ms_of(int(message["id"]) + 1))
    # They continue without clients, one for each worker that was asked.
    assert 1 <= other.metrics()["sluice_trend_sketches"] <= 2


def test_who_comes_back_at_once_is_told_by_what_is_there(filled):
    _, gateway, _ = filled
    query = f"{STREAM}?window=5m&bucket=1s&of=users"
    with gateway.stream(query) as stream:
        got = trends_of(stream, 2)
        matches = gateway.metrics()["sluice_trend_sketches"]
        with gateway.stream(f"{query}&since={got[-1]['id']}") as again:
            assert int(trends_of(again, 1)[0]["id"]) == int(got[-1]["id"]) + 4096000
            assert gateway.metrics()["sluice_trend_sketches"] == matches


def test_posts_that_come_are_in_the_next_one(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    for user in ("ada", "bob"):
        cli.run("user", "add", user)
    with gateway.stream(f"{STREAM}?window=1h&bucket=1s&of=hashtags,words") as stream:
        cli.run("post", "--user", "ada", "#tea and 早茶 ☕")
        cli.run("post", "--user", "ada", "#tea again")
        last = cli.run("post", "--user", "bob", "#Tea 早茶! ☕")
        got = stream.until(lambda message: message.json.get("of") == "words" and int(message["id"]) >= int(last))
    hashtags, words = got[-2].json, got[-1].json
    assert hashtags["terms"] == [{"term": "#tea", "posts": 3, "users": 2, "before": 0, "score": 0.9, "past": [0] * 11 + [2]}]
    assert [(term["term"], term["posts"], term["users"]) for term in words["terms"]] == [
        ("tea", 3, 2), ("☕", 2, 2), ("早茶", 2, 2)]


def test_what_comes_late_is_told_again(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    login = {shard_of(cli.run("user", "add", f"u{n}")): f"u{n}" for n in range(12)}
    shard, user = next(iter(login.items()))

    def told(messages):
        final = {message["id"]: message.json for message in messages if message.type == "trends"}
        return final.values()

    with gateway.stream(f"{STREAM}?window=5m&bucket=1s&of=hashtags") as stream:
        post = cli.run("post", "--user", user, "#one")
        stream.until(lambda message: int(message.json.get("id", 0)) >= int(post))
        late = (int(post) // 4096 + 1) * 4096 + shard * 64
        event = events.post(late, "#one", user="77")
        redis.client.xadd(f"sluice:{{{shard}}}:log", {"p": post, "e": events.dump(event)}, id=f"{late}-0")
        redis.publish(f"{late} {post} " + json.dumps(event), shard=shard)
        got = stream.until(lambda message: message.json.get("revision"))
        got += stream.until(lambda message: message.type == "trends" and not message.json.get("revision"))
        for message in told(got):
            assert message["terms"] == recount(redis.log(), ms_of(int(message["id"]) + 1)), message
        assert got[-1]["terms"][0]["users"] == 2 and got[-1]["complete"] is True


def test_what_was_rewound_is_told_again_without_it(servers, cli_for):
    """Posts that are received but missing in the log, as after a failover."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis)
    with gateway.stream(f"{STREAM}?window=5m&bucket=1s&of=hashtags") as stream:
        kept = cli.run("post", "--user", "ada", "#one")
        previous, shard = kept, shard_of(kept)
        for number in range(1, 4):
            lost = str(id_at(int(time.time() * 1000) + 300 + number, shard))  # above what has passed
            redis.publish(f"{lost} {previous} " + json.dumps(events.post(lost, "#lost", user=str(number))), shard=shard)
            previous = lost
        stream.until(lambda message: any(term["term"] == "#lost" and term["users"] == 3 for term in message.json.get("terms", [])))
        after = cli.run("post", "--user", "ada", "#one")
        got = stream.until(lambda message: message.type == "trends" and int(message["id"]) >= int(after)
                           and not message.json.get("revision"))
    gap = next(message.json for message in got if message.type == "gap")
    assert (gap["from"], gap["to"], gap["reason"]) == (kept, lost, "rewound")
    assert any(message.json.get("revision") and message["terms"] == [] for message in got if message.type == "trends")
    assert got[-1]["complete"] is False and got[-1]["gap"] is True
    assert got[-1]["terms"] == recount(redis.log(), ms_of(int(got[-1]["id"]) + 1))


def test_what_the_log_has_let_go_of_makes_it_incomplete(servers):
    redis = servers.redis()
    now_ms = int(time.time() * 1000)
    write(redis, corpus(now_ms))
    for key in redis.logs():
        redis.client.xtrim(key, minid=f"{id_at(now_ms - WINDOW_MS)}-0")
    gateway = servers.gateway(redis)
    message = past_of(gateway, redis.log(), "of=hashtags", seconds=1, count=2)[-1]
    assert message["complete"] is False
    assert message["terms"] == recount(redis.log(), ms_of(int(message["id"]) + 1))


def refusal(gateway, query, token=None):
    with pytest.raises(Refused) as refused:
        gateway.stream(f"{STREAM}?{query}", token=token).close()
    return refused.value.response


GOOD = "window=5m&of=hashtags&bucket=1s"


@pytest.mark.parametrize("query, code, param", [
    ("of=hashtags&bucket=1s", "no_window", "window"), ("window=2m&of=hashtags&bucket=1s", "bad_window", "window"),
    ("window=5m&bucket=1s", "no_of", "of"), ("window=5m&of=&bucket=1s", "bad_of", "of"),
    ("window=5m&of=tags&bucket=1s", "bad_of", "of"), ("window=5m&of=words,&bucket=1s", "bad_of", "of"),
    ("window=5m&of=words,words&bucket=1s", "bad_of", "of"),
    ("window=5m&of=words", "no_bucket", "bucket"), ("window=5m&of=words&bucket=5s", "bad_bucket", "bucket"),
    (f"{GOOD}&limit=0", "bad_limit", "limit"), (f"{GOOD}&limit=101", "bad_limit", "limit"),
    (f"{GOOD}&limit=", "bad_limit", "limit"), (f"{GOOD}&limit=1e1", "bad_limit", "limit"),
    (f"{GOOD}&lang=en&language=en", "bad_lang", "lang"), (f"{GOOD}&by=lang", "unknown_parameter", "by"),
    (f"{GOOD}&types=post", "unknown_parameter", "types"), (f"{GOOD}&last=3", "unknown_parameter", "last"),
    (f"{GOOD}&since=-20m", "too_many_buckets", "since")])
def test_what_is_refused(filled, query, code, param):
    _, gateway, _ = filled
    response = refusal(gateway, query)
    assert response.status == 400
    error = response.json["error"]
    assert (error["code"], error["param"]) == (code, param)


def test_a_language_that_is_none_is_refused_by_its_parameter(filled):
    response = refusal(filled[1], f"{GOOD}&lang=!")
    assert (response.status, response.json["error"]["param"]) == (400, "lang")


def test_scopes_are_those_of_the_streams_with_the_same_events(filled):
    _, gateway, _ = filled
    for scope, query, status in (("stream:filter", "track=tea", 200), ("stream:filter", "", 403),
                                 ("stream:firehose", "lang=en", 200), ("stream:firehose", "track=tea", 403),
                                 ("stream:sample", "percent=1", 200), ("stream:sample", "", 403)):
        token = gateway.token(scope=scope)
        if status == 200:
            gateway.stream(f"{STREAM}?{GOOD}&{query}", token=token).close()
        else:
            assert refusal(gateway, f"{GOOD}&{query}", token).status == 403


def test_the_number_of_trends_is_limited(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    every = "window=5m&of=hashtags,words,links,users,cashtags&bucket=10s"
    streams = [gateway.stream(f"{STREAM}?{GOOD}&track=w{n}") for n in range(10)]
    response = refusal(gateway, f"{GOOD}&track=more")
    assert response.status == 429 and response.json["error"]["code"] == "too_many_trends" and response.headers["retry-after"]
    streams.append(gateway.stream(f"{STREAM}?{GOOD}"))  # it costs this one nothing
    others = [gateway.token(sub=f"s{n}") for n in range(6)]
    streams += [gateway.stream(f"{STREAM}?{every}&track=o{n}", token=others[n]) for n in range(4)]
    assert gateway.metrics()["sluice_trend_sketches"] == 31
    assert refusal(gateway, f"{every}&track=o5", others[5]).status == 429
    assert gateway.metrics()['sluice_streams_refused_total{limit="trends"}'] == 2
    for stream in streams:
        stream.close()
    # Only the one for all posts stays, and makes room for others.
    eventually(lambda: gateway.metrics()["sluice_trend_sketches"] == 1, "the others are gone")
    streams = [gateway.stream(f"{STREAM}?{every}&track=o{n}", token=others[n]) for n in range(6)]
    assert gateway.metrics()["sluice_trend_sketches"] == 31
    streams.append(gateway.stream(f"{STREAM}?{GOOD}&track=last,two&limit=5"))
    assert gateway.metrics()["sluice_trend_sketches"] == 32
    for stream in streams:
        stream.close()


def test_a_server_ends_while_it_reads_the_past_for_who_comes_next(servers):
    redis = servers.redis()
    write(redis, corpus(int(time.time() * 1000)))
    gateway = servers.gateway(redis)
    with processes.stopped(redis.pids):
        with gateway.stream(f"{STREAM}?window=5m&of=words&bucket=1s"):
            pass
        gateway.stop()


def test_they_are_opened_beside_others_on_one_connection(filled):
    _, gateway, log = filled
    with gateway.stream("/v1/stream", "websocket") as stream:
        stream.send(json.dumps({"op": "open", "id": "rising", "path": f"{STREAM}?{GOOD}"}))
        *_, message = stream.until(lambda message: message.json.get("type") == "trends")
        assert message["stream"] == "rising" and message["terms"] == recount(log, ms_of(int(message["id"]) + 1))
        stream.send(json.dumps({"op": "open", "id": "bad", "path": f"{STREAM}?of=words&bucket=1s"}))
        *_, message = stream.until(lambda message: "error" in message)
        assert message["error"]["code"] == "no_window"
