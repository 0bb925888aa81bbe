"""Thousands of posts, received by clients of every kind over every transport at once. Each must get exactly what its
filter matches: in log order, none twice, none missing."""

import itertools
import json

import pytest

from harness import events, programs, recompute
from harness.recompute import Filter
from harness.streams import Collector
from urllib.parse import quote

TRANSPORTS = ["ndjson", "delimited", "sse", "websocket", "form"]

# Our own posts, so that the test runs everywhere; real ones are next to the source tree.
OWN = [
    ("en", "Coffee on the night train, and the dining car has real cups"), ("en", "Rain again. #tea"),
    ("zh", "今天的地铁又晚点了，站台上全是人"), ("zh-CN", "#周末去哪儿# 去爬山，天气很好"),
    ("ja", "今日は電車が遅れていて会議に間に合わなかった"), ("ja", "ラーメンを食べてから帰ろう🍜"),
    ("es", "Mañana salimos temprano hacia la montaña"), ("ru", "Сегодня первый снег"),
    ("ar", "صباح الخير من القاهرة"), ("hi", "दिल्ली की बारिश और चाय"), ("de", "Die Straße ist gesperrt"),
    ("en", "@u3 have you seen https://x.example/rain ?"), ("und", "☕☕☕"), ("he", "קפה שחור על הגז"),
]


def own_posts(folder):
    file = folder / "own.jsonl"
    with open(file, "w") as out:
        for number in range(700):
            lang, text = OWN[number % len(OWN)]
            members = {"lang": lang}
            if number % 5 == 0:
                members["geo"] = {"lon": number % 180 + 0.5, "lat": number % 90 + 0.25}
            if number % 7 == 0:
                members["place"] = {"name": "Suva", "bbox": [178.0, -19.0, -179.0, -16.0]}
            out.write(events.dump(events.post(number + 1, f"{text} {number}", user=str(number % 41),
                                              **members)) + "\n")
    return file


def shared(name):
    file = programs.SHARED / "data" / name
    return pytest.param(file, id=name, marks=[] if file.exists() else
                        pytest.mark.skip(reason=f"no ../shared/data/{name}"))


# The ids of real users are filled in for `follow`.
FILTERS = {
    "own": [
        dict(track="coffee,tea"), dict(track="地铁"), dict(track="#周末去哪儿"), dict(track="電車 会議,ラーメン"),
        dict(track="strasse,снег"), dict(track="☕"), dict(follow="{0},{1}"), dict(follow="@u3"),
        dict(locations="0,0,90,45"), dict(locations="170,-20,-170,-10"),
        dict(track="rain,الخير,चाय", follow="{2}", locations="178,-19,-179,-16"),
        dict(language="zh", firehose=None, track="去,站台")],
    "posts-tweets.jsonl": [
        dict(track="happy"), dict(track="new year"), dict(track="#newyear,#nye"), dict(track="love,hate,lol"),
        dict(track="the"), dict(track="@justinbieber"), dict(follow="{0},{1},{2}"), dict(track="http"),
        dict(locations="-180,-90,180,90"), dict(locations="-10,49,3,60"), dict(track="i you"),
        dict(track="que,de", language="es,pt"), dict(track="don't"), dict(track="2012")],
    "posts-chinese.jsonl": [
        dict(track="的"), dict(track="中国"), dict(track="中国 的,大学"), dict(track="一个"),
        dict(track="#网文作家拒绝魔改亲自导#,#needy"), dict(follow="{0},{1},{2}"), dict(track="年 月"),
        dict(track="是", language="zh"), dict(track="是", language="zh-TW"), dict(track="了", language="en")],
}
SAMPLES = [dict(percent=1), dict(percent="12.5"), dict(percent=100), dict(percent=100, partition="2/3"),
           dict(percent=50, partition="1/2")]


def url_query(parameters):
    return "&".join(f"{k}={quote(str(v), safe='')}" for k, v in parameters.items() if v is not None)


def as_filter(parameters):
    given = dict(parameters)
    given.pop("firehose", None)
    if "percent" in given:
        given["percent"] = float(given["percent"])
    if "partition" in given:
        given["partition"] = tuple(int(n) for n in given["partition"].split("/"))
    return Filter(**given)


def open_stream(gateway, path, query, transport, **token):
    token = gateway.token(**token)
    if transport == "form":
        return gateway.stream(path, method="POST", body=query.encode(), token=token)
    return gateway.stream(f"{path}?{query}" if query else path, transport, token=token)


@pytest.mark.parametrize("file", [
    "own", shared("posts-tweets.jsonl"), shared("posts-chinese.jsonl")])
def test_every_client_gets_exactly_its_events(servers, cli_for, tmp_path, file):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis, workers=2)
    name = "own" if file == "own" else file.name
    file = own_posts(tmp_path) if name == "own" else file
    source = [json.loads(line) for line in file.read_text().splitlines()]

    # Users first, so that they can be followed: three authors, and a reader of a home stream.
    logins = list(dict.fromkeys(event["post"]["user"]["login"] for event in source))
    followed = {login: cli.run("user", "add", login) for login in logins[:3]}
    reader = cli.run("user", "add", "reader")
    for login in followed:
        cli.run("follow", "reader", login)
    ids = list(followed.values())

    clients = []  # (expected events, collector, description)
    for number, parameters in enumerate(FILTERS[name]):
        parameters = dict(parameters)
        if "follow" in parameters:
            parameters["follow"] = parameters["follow"].format(*ids)
        if number % 4 == 3:
            parameters["types"] = "post"
        for transport in (TRANSPORTS if number % 3 == 0 else
                          [TRANSPORTS[number % 5], TRANSPORTS[(number + 2) % 5]]):
            clients.append((as_filter(parameters).matches, Collector(open_stream(
                gateway, "/v1/stream/filter", url_query(parameters), transport)), f"{parameters} over {transport}"))
    for number, parameters in enumerate(SAMPLES):
        for transport in (TRANSPORTS[number % 4], TRANSPORTS[(number + 1) % 4]):
            clients.append((as_filter(parameters).matches, Collector(open_stream(
                gateway, "/v1/stream/sample", url_query(parameters), transport)), f"{parameters} over {transport}"))
    for transport in TRANSPORTS[:4]:
        clients.append((Filter().matches, Collector(open_stream(
            gateway, "/v1/stream/firehose", "", transport)), f"firehose over {transport}"))
        clients.append((Filter(types="delete").matches, Collector(open_stream(
            gateway, "/v1/stream/firehose", "types=delete", transport)), f"deletions over {transport}"))
        at_home = {*ids, reader}
        clients.append((lambda e: e["type"] in ("post", "delete") and
                        e["post"]["user"]["id"] in at_home, Collector(open_stream(
                            gateway, "/v1/stream/home", "", transport, sub=reader)), f"home over {transport}"))

    cli.run("replay", file)
    posted = [e for e in redis.log() if e["type"] == "post"]
    assert by_user(posted) == by_user(source)
    for event in posted[::max(1, len(posted) // 25)]:
        cli.run("delete", "--user", event["post"]["user"]["login"], event["post"]["id"])

    log = redis.log()
    by_id = {e["id"]: e for e in log}
    for wants, collector, description in clients:
        wanted = [e["id"] for e in log if wants(e)]
        if wanted:
            collector.wait(lambda ms: len(of_events(ms)) >= len(wanted), description, 60)
    # One more post that all match, by a producer without a log: any unexpected event would have arrived before it.
    end = end_of(name, ids)
    redis.publish(events.dump(end))
    for wants, collector, description in clients:
        wanted = [e["id"] for e in log if wants(e)]
        if wants(end):
            collector.wait(lambda ms: ms and ms[-1].json.get("id") == end["id"], description)
            wanted.append(end["id"])
        heard = of_events(collector.messages)
        assert events.by_shard([m["id"] for m in heard]) == events.by_shard(wanted), description
        for message in heard[:-1]:
            assert_delivered(message, by_id[message["id"]])
    assert sum(wants(end) for wants, _, _ in clients) > len(clients) * 0.75


def of_events(messages):
    """Without the warnings about logins that nobody had when the streams began."""
    return [m for m in messages if m.type != "warning"]


def by_user(posts):
    """Posts by user, in order: users may be in different shards."""
    return sorted(((e["post"]["user"]["login"], e["post"]["text"]) for e in posts),
                  key=lambda pair: pair[0])


def assert_delivered(message, event):
    """A post exactly as in the log; of a deletion the ids."""
    if message.type == "post":
        assert message.json == event
    else:
        assert message["post"] == {"id": event["post"]["id"], "state": "deleted",
                                   "user": {"id": event["post"]["user"]["id"]}}
    if message.sse_event:
        assert (message.sse_event, message.sse_id) == (message.type, message["id"])


def end_of(name, ids):
    """A post that matches nearly all filters: all the words, all the samples."""
    number = next(n for n in itertools.count(10**9) if recompute.in_percent(n, 1) and
                  recompute.in_partition(n, 2, 3) and recompute.in_partition(n, 1, 2))
    words = " ".join(word.replace(",", " ") for parameters in FILTERS[name]
                     for word in [parameters.get("track", "")])
    return events.post(number, words, user=ids[0], lang="zh" if name != "posts-tweets.jsonl" else "es",
                       login="u3", geo={"lon": 0.5, "lat": 50.0} if name != "own"
                       else {"lon": 2.0, "lat": 2.0})
