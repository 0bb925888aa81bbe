"""Twitter's Streaming API 1.1: what its clients send, and what they must get; two of them, unmodified."""

import base64
import itertools
import json
import queue
import socket
import threading
from urllib.parse import quote

import pytest

from harness import events
from harness.cli import Cli
from harness.recompute import hash_of_id
from harness.streams import Refused
from harness.waiting import eventually

FILTER, FIREHOSE = (f"/1.1/statuses/{name}.json" for name in ("filter", "firehose"))


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--dialects", "twitter1")


@pytest.fixture(scope="module")
def ada(module_servers, redis):
    Cli(redis).run("user", "add", "ada", "--name", "Ada")
    return "ada"


def oauth(token):
    return {"Authorization": 'OAuth oauth_nonce="n", oauth_timestamp="1", oauth_version="1.0", '
                             'oauth_signature_method="HMAC-SHA1", oauth_consumer_key="key", '
                             f'oauth_token="{token}", oauth_signature="c2ln%3D"'}


def refusal(gateway, target, method="GET", body=None, headers=None):
    with gateway.connect() as connection:
        return connection.request(method, target, body=body,
                                  headers={**gateway.bearer(), **(headers or {})})


def test_a_post_is_a_tweet(gateway, publish):
    with gateway.stream(f"{FILTER}?track=tea") as stream:
        publish(events.post(
            114677036875776, "tea & <cake> for @bob #Kräuter $TEA http://a.example/b?c.", user="42", login="ada",
            lang="en", source="web", geo={"lon": 8.5, "lat": 47.3},
            place={"name": "Zürich", "country": "CH", "bbox": [8.4, 47.3, 8.6, 47.4]},
            reply_to={"post": "114677036740608", "user": "7", "login": "eve"}))
        line = stream.next().raw
        tweet = json.loads(line)
    assert line.isascii()
    text = "tea &amp; &lt;cake&gt; for @bob #Kräuter $TEA http://a.example/b?c."
    assert (tweet["id"], tweet["id_str"], tweet["text"]) == (114677036875776, "114677036875776", text)
    assert tweet["created_at"] == "Sat Nov 21 01:02:03 +0000 2026" or tweet["created_at"].endswith("2026")
    assert tweet["source"] == '<a href="" rel="nofollow">web</a>' and tweet["lang"] == "en"
    assert (tweet["user"]["id"], tweet["user"]["screen_name"]) == (42, "ada")
    assert (tweet["in_reply_to_status_id"], tweet["in_reply_to_screen_name"]) == (114677036740608, "eve")
    assert tweet["coordinates"] == {"type": "Point", "coordinates": [8.5, 47.3]}
    assert tweet["place"]["bounding_box"]["coordinates"][0][0] == [8.4, 47.3]
    marked = {kind: [text[slice(*one["indices"])] for one in found]
              for kind, found in tweet["entities"].items()}
    assert marked == {"hashtags": ["#Kräuter"], "urls": ["http://a.example/b?c"],
                      "user_mentions": ["@bob"], "symbols": ["$TEA"]}


def test_members_that_clients_need_are_there(gateway, publish):
    with gateway.stream(FIREHOSE) as stream:
        first = events.post(114677036875777, "plain", user="no-number")
        publish(first)
        tweet = stream.next().json
        publish(events.delete(114677036875778, first))
        deletion = stream.next().json
    assert tweet["in_reply_to_status_id"] is None and tweet["source"] == "" and tweet["created_at"]
    assert "retweeted_status" not in tweet
    assert tweet["user"]["id_str"] == "no-number" and isinstance(tweet["user"]["id"], int)
    status = deletion["delete"]["status"]
    assert (status["id"], status["user_id_str"]) == (114677036875777, "no-number")
    assert isinstance(status["user_id"], int) and int(deletion["delete"]["timestamp_ms"]) > 0


def test_ids_may_be_integers_and_other_numbers_anything(gateway, publish):
    with gateway.stream(FIREHOSE) as stream:
        publish({"id": 114677036875790, "type": "post", "large": 10**40, "post": {
            "id": 114677036875790, "user": {"id": 7}, "text": 'a "1e999" \\',
            "reply_to": {"post": 114677036740608, "user": 9}}})
        tweet = stream.next().json
    assert (tweet["id"], tweet["id_str"], tweet["text"]) == (114677036875790, "114677036875790", 'a "1e999" \\')
    assert (tweet["user"]["id_str"], tweet["in_reply_to_status_id_str"]) == ("7", "114677036740608")


def test_a_repost_has_the_status_that_it_repeats(gateway, publish):
    with gateway.stream(FIREHOSE) as stream:
        publish(events.post(114677036875779, "again", repost_of={"post": "114677036740608", "user": "7",
                                                                 "login": "eve"}))
        tweet = stream.next().json
    repeated = tweet["retweeted_status"]
    assert (repeated["id"], repeated["user"]["screen_name"]) == (114677036740608, "eve")


@pytest.mark.parametrize("carry", ["bearer", "oauth", "parameter"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_tokens_and_methods(gateway, publish, carry, method):
    token = gateway.token()
    headers = {"bearer": {}, "oauth": oauth(token), "parameter": {"Authorization": ""}}[carry]
    target = f"{FILTER}?track=hello" + (f"&access_token={token}" if carry == "parameter" else "")
    with gateway.stream(target, method=method, headers=headers, token=token) as stream:
        publish(events.post(5, "hello"))
        assert stream.next().json["text"] == "hello"


@pytest.mark.parametrize("target, status", [
    (FILTER, 406),
    (f"{FILTER}?track=" + "x" * 61, 406),
    (f"{FILTER}?track=%C3%A9" + "x" * 59, 406),
    (f"{FILTER}?track=tea,,milk", 406),
    (f"{FILTER}?locations=1,2,3", 406),
    (f"{FILTER}?locations=170,-20,-170,-10", 406),
    (f"{FILTER}?follow=%40%40", 406),
    (f"{FILTER}?track=" + ",".join(f"word{i}" for i in range(401)), 413),
    (f"{FILTER}?locations=" + ",".join("1,2,3,4" for _ in range(26)), 413),
    (f"{FILTER}?locations=1,2,3,north", 406),
    (f"{FILTER}?locations=1,2,181,4", 406),
    (f"{FILTER}?locations=1,2,3,91", 406),
    (f"{FILTER}?locations=1,4,3,2", 406),
    (f"{FILTER}?track=tea&count=0", 416),
    (f"{FILTER}?track=tea&count=many", 416),
    (f"{FILTER}?track=tea&count=150001", 416),
    (f"{FILTER}?track=tea&filter_level=medium", 406),
    (f"{FIREHOSE}?partitions=", 406),
    (f"{FIREHOSE}?partitions=16", 406),
    (f"{FIREHOSE}?partitions=1,16", 406),
    (f"{FIREHOSE}?partitions=1,,2", 406),
    (f"{FIREHOSE}?partitions=1/16", 406),
    (f"{FILTER}?track=tea&delimited=yes", 406),
])
def test_refusals(gateway, target, status):
    answer = refusal(gateway, target)
    assert answer.status == status
    assert answer.headers["content-type"].startswith("text/plain") and answer.body.endswith(b"\r\n")


def test_too_many_users_are_413(gateway):
    body = "follow=" + ",".join(map(str, range(1, 5002)))
    answer = refusal(gateway, FILTER, "POST", body.encode(), {"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status == 413


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_sample_is_a_hundredth_for_get_and_post(gateway, publish, method):
    wanted = [number for number in range(114677080000000, 114677080000400) if (hash_of_id(number) >> 32) * 100 >> 32 == 0]
    assert 1 <= len(wanted) < 20
    with gateway.stream("/1.1/statuses/sample.json", method=method) as stream:
        for number in range(114677080000000, wanted[-1] + 1):
            publish(events.post(number, "some"))
        assert [stream.next().json["id"] for _ in wanted] == wanted


def test_a_bad_token_is_401_in_plain_text(gateway):
    for headers in ({"Authorization": "Bearer x.y.z"}, oauth("x.y.z"), {"Authorization": "OAuth oauth_nonce=\"n\""}):
        answer = refusal(gateway, f"{FILTER}?track=tea", headers=headers)
        assert answer.status == 401 and answer.headers["content-type"].startswith("text/plain")


# Twitter's own examples: what matches a phrase, and what does not.
TRACK = {
    "Twitter": (["TWITTER", '"Twitter"', "twitter.", "#twitter", "@twitter", "http://twitter.com"],
                ["TwitterTracker", "#newtwitter"]),
    "Twitter's": (["I like Twitter's new design"], ["Someday I'd like to visit @Twitter's office"]),
    "twitter api,twitter streaming": (
        ["The Twitter API is awesome", "The twitter streaming service is fast", "Twitter has a streaming API"],
        ["I'm new to Twitter"]),
    "example.com": (["Someday I will visit example.com"], ["There is no example.com/foobarbaz"]),
    "example.com/foobarbaz": (["example.com/foobarbaz", "www.example.com/foobarbaz"], ["example.com"]),
    "www.example.com/foobarbaz": ([], ["www.example.com/foobarbaz"]),
    "example com": (["example.com", "www.example.com", "foo.example.com", "foo.example.com/bar", "yet another example of a dot com boom!"], ["example"]),
    "helm's-alee": (["helm's-alee"], ["#helm's-alee"]),
    "touché": (["touché", "TOUCHÉ"], ["touche"]),
}


def test_track_finds_what_twitter_found(gateway, publish):
    number = 114677036876000
    for track, (found, missed) in TRACK.items():
        with gateway.stream(f"{FILTER}?track={quote(track)},endofrow", method="POST") as stream:
            for text in [*missed, *found, "endofrow"]:
                number += 1
                publish(events.post(number, text))
            assert [stream.next().json["text"] for _ in range(len(found) + 1)] == [*found, "endofrow"]


def found(gateway, publish, parameters, posts):
    """Returns the texts that match, before one that always does."""
    with gateway.stream(f"{FILTER}?{parameters},endoftest") as stream:
        for event in [*posts, events.post(next(numbers), "endoftest", user="4299", lang="en")]:
            publish(event)
        texts = []
        while texts[-1:] != ["endoftest"]:
            texts.append(stream.next().json["text"])
        return texts[:-1]


numbers = itertools.count(114677036878000)


def posted(text, **members):
    return events.post(next(numbers), text, **{"user": "4201", **members})


def test_follow_brings_what_is_by_a_user_to_it_and_of_it(gateway, publish):
    own = posted("own", user="4200")
    texts = found(gateway, publish, "follow=4200&track=nothing", [
        posted("another's"), posted("a mention of @u4200"), own, posted("RT @u4200 own"),
        posted("its repost", user="4200", repost_of={"post": "5", "user": "4202"}),
        posted("a reply to it", reply_to={"post": own["id"], "user": "4200"}),
        posted("a reply to another", reply_to={"post": "5", "user": "4202"}),
        posted("a repost of it", repost_of={"post": own["id"], "user": "4200"}),
        posted("a quote of it", quote_of={"post": own["id"], "user": "4200"})])
    assert texts == ["own", "its repost", "a reply to it", "a repost of it"]


def test_a_box_has_the_points_in_it_and_the_places_that_it_touches(gateway, publish):
    inside, beyond = {"lon": 8.5, "lat": 47.3}, {"lon": 47.3, "lat": 8.5}
    near = {"name": "Zürich", "bbox": [8.9, 47.5, 9.5, 48]}
    far = {"name": "Bern", "bbox": [7.2, 46.8, 7.6, 47]}
    texts = found(gateway, publish, "locations=8.2,46.8,9,47.6,-122.75,36.8,-121.75,37.8&track=nothing", [
        posted("inside", geo=inside), posted("beyond", geo=beyond), posted("near", place=near), posted("far", place=far),
        posted("beyond in near", geo=beyond, place=near), posted("inside in far", geo=inside, place=far),
        posted("nowhere"), posted("second box", geo={"lon": -122, "lat": 37})])
    assert texts == ["inside", "near", "inside in far", "second box"]


def test_a_language_restricts_all_the_rest(gateway, publish):
    texts = found(gateway, publish, "language=en,de&follow=4200&track=tea", [
        posted("tea", lang="en"), posted("tea in Japan", lang="ja"), posted("tea at its place", lang="de-CH"), posted("tea anywhere"),
        posted("followed", user="4200", lang="fr"), posted("followed here", user="4200", lang="de")])
    assert texts == ["tea", "tea at its place", "followed here"]


def test_the_firehose_has_sixteen_partitions(gateway, publish):
    streams = [gateway.stream(f"{FIREHOSE}?partitions={part}") for part in range(16)]
    try:
        with gateway.stream(f"{FIREHOSE}?partitions=" + ",".join(map(str, range(16)))) as whole, \
                gateway.stream(f"{FIREHOSE}?partitions=9,0,1,2,9") as some, \
                gateway.stream(f"{FIREHOSE}?partitions=" + ",".join(str(part) for part in range(16) if part not in (0, 1, 2, 9))) as rest:
            counted = {part: 0 for part in range(16)}
            for number in range(114677090000000, 114677090000100):
                publish(events.post(number, "shared"))
                part = (hash_of_id(number) & 0xffffffff) * 16 >> 32
                counted[part] += 1
                wanted = (streams[part], whole, some if part in (0, 1, 2, 9) else rest)
                assert [one.next().json["id"] for one in wanted] == [number] * 3
        assert sum(count > 0 for count in counted.values()) > 10
    finally:
        for stream in streams:
            stream.close()


def test_a_program_gets_the_token_that_is_its_secret(gateway, publish):
    def ask(secret, body="grant_type=client_credentials"):
        return refusal(gateway, "/oauth2/token", "POST", body.encode(), {
            "Authorization": "Basic " + base64.b64encode(f"key:{secret}".encode()).decode(),
            "Content-Type": "application/x-www-form-urlencoded;charset=UTF-8"})

    token = gateway.token()
    answer = ask(token)
    assert answer.json == {"token_type": "bearer", "access_token": token}
    assert answer.headers["cache-control"] == "no-store"
    assert [ask("x.y.z").status, ask("").status, ask(token, "grant_type=password").status] == [401, 401, 403]


def test_unknown_parameters_count_for_nothing(gateway, publish):
    with gateway.stream(f"{FILTER}?track=tea&stall_warnings=True&tweet_mode=extended") as stream:
        publish(events.post(6, "tea"))
        assert stream.next().json["text"] == "tea"


def test_delimited_counts_the_line_end(gateway, publish):
    with gateway.stream(f"{FILTER}?track=tea&delimited=length", "delimited") as stream:
        publish(events.post(7, "tea"))
        assert stream.next().json["id"] == 7


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "ndjson+gzip"])
def test_silence_is_filled_with_empty_lines(module_servers, redis, publish, transport):
    gateway = module_servers.gateway(redis, "--dialects", "twitter1", "--keepalive-ms", 100)
    with gateway.stream(f"{FILTER}?track=tea" + ("&delimited=length" if transport == "delimited" else ""), transport) as stream:
        stream.wait_keepalives(2)
        publish(events.post(9, "tea"))
        assert stream.next().json["id"] == 9
        stream.wait_keepalives(2)


def test_a_client_that_falls_behind_is_warned_if_it_wants_to_be(servers, cli_for):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--dialects", "twitter1", "--max-owed-bytes", 65536)
    streams = [gateway.stream(FIREHOSE + query, receive_buffer=4096) for query in ("?stall_warnings=True", "")]
    file = servers.folder / "posts.jsonl"
    file.write_text("".join(events.dump(events.post(number, 10000 * "x")) + "\n" for number in range(1, 1501)))
    cli_for(redis).run("replay", file)
    warned = []
    for stream in streams:
        stream.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        posts, warnings = 0, []
        while posts < 1500:
            message = stream.next(60)
            posts += "id" in message
            warnings += [message["warning"]] if "warning" in message else []
        warned.append(warnings)
    first, *_ = warned[0]
    assert (first["code"], first["percent_full"]) == ("FALLING_BEHIND", 60) and first["message"]
    assert warned[1] == []


LARGEST = 500_000  # bytes of a message that hbc takes


def of_size(number, size):
    """A post with a text that takes so many bytes in a Tweet: six for an accented letter."""
    return events.post(number, "é" * (size // 6) + "x" * (size % 6))


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "ndjson+gzip", "ndjson+zstd", "delimited+gzip"])
def test_posts_too_large_for_clients_are_counted(module_servers, redis, publish, transport):
    gateway = module_servers.gateway(redis, "--dialects", "twitter1", "--keepalive-ms", 100)
    query = "?delimited=length" if "delimited" in transport else ""
    before = gateway.metrics()["sluice_posts_undelivered_total"]

    def limit(stream):
        notice = stream.next().json["limit"]
        assert set(notice) == {"track", "timestamp_ms"} and notice["timestamp_ms"].isdigit()
        return notice["track"]
    with gateway.stream(FIREHOSE + query, transport) as stream:
        publish(of_size(114677095000000, 0))
        room = LARGEST - len(stream.next().raw + b"\r\n")
        publish(of_size(114677095000001, room))
        assert len(stream.next().raw + b"\r\n") == LARGEST
        publish(of_size(114677095000002, room + 1))
        assert limit(stream) == 1
        with gateway.stream(FIREHOSE + query, transport) as later:
            for number in range(114677095000003, 114677095000005):
                publish(of_size(number, room + 1))
            publish(events.post(114677095000005, "small"))
            noticed = []
            while noticed[-1:] != [3] or "small" not in noticed:
                message = stream.next().json
                noticed.append(message["limit"]["track"] if "limit" in message else message["text"])
            assert [one for one in noticed if one != "small"] in ([3], [2, 3])
            assert later.until(lambda message: message.json.get("limit", {}).get("track") == 2)
        stream.wait_keepalives(2)  # it is not repeated
    assert gateway.metrics()["sluice_posts_undelivered_total"] - before == 5


def write(redis, first, sizes):
    """Posts of these sizes behind the event `first`, as the core would write them if it took any size."""
    previous = first
    for size in sizes:
        number = previous + 4096  # a millisecond
        event = events.dump(of_size(number, size))
        redis.master_of(0).xadd("sluice:{0}:log", {"p": str(previous), "e": event}, id=f"{number}-0")
        redis.publish(f"{number} {previous} {event}")
        previous = number


def test_who_falls_behind_is_told_of_each_once(servers, cli_for):
    """Some were left out while it kept step, and some of what it was then given from memory and from the log."""
    redis = servers.redis(shards=1)
    first = int(cli_for(redis).run("user", "add", "ada"))
    gateway = servers.gateway(redis, "--dialects", "twitter1", "--keepalive-ms", 100, "--max-owed-bytes", 65536,
                              "--ring-bytes", 4 << 20)
    with gateway.stream(FIREHOSE, receive_buffer=4096) as stream:
        sizes = [LARGEST if number % 30 == 7 else 10_000 for number in range(1, 901)]
        write(redis, first, sizes)
        eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 1, "the client falls behind")
        stream.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        posts, told = 0, []
        while posts + (told or [0])[-1] < len(sizes):
            message = stream.next()
            posts += "id" in message
            told += [message["limit"]["track"]] if "limit" in message else []
        assert posts == sizes.count(10_000) and told[-1] == sizes.count(LARGEST) == 30
        assert told == sorted(set(told))
        stream.wait_keepalives(2)


def test_at_the_end_the_last_of_them_are_told(servers, cli_for):
    redis = servers.redis(shards=1)
    first = int(cli_for(redis).run("user", "add", "ada"))
    write(redis, first, [1, LARGEST, 1, LARGEST])
    gateway = servers.gateway(redis, "--dialects", "twitter1")
    with gateway.stream(f"{FIREHOSE}?count=-10") as stream:
        *posts, last = stream.to_end()
    assert [len(message["text"]) for message in posts] == [1, 1] and last["limit"]["track"] == 2


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "ndjson+gzip"])
def test_a_gap_is_a_warning(servers, cli_for, transport):
    """Also for who has not asked for any. How many posts it was is not known."""
    redis = servers.redis(shards=1)
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis, "--dialects", "twitter1")
    log = "sluice:{0}:log"
    query = "?track=before,meanwhile" + ("&delimited=length" if transport == "delimited" else "")
    with gateway.stream(FILTER + query, transport) as stream:
        first = int(cli.ids("post", "--user", "ada", "before")[0])
        assert stream.next()["id"] == first
        lost, kept = first + 1, first + 2
        with redis.master_of(0).pipeline() as transaction:
            transaction.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            for number, previous in ((lost, first), (kept, lost)):
                transaction.xadd(log, {"p": str(previous), "e": events.dump(events.post(number, "meanwhile"))}, id=f"{number}-0")
            transaction.xtrim(log, minid=str(kept), approximate=False)
            transaction.execute()
        warning = stream.next()["warning"]
        assert (warning["code"], warning["percent_full"]) == ("GAP", 0)
        assert f"after id {first}, up to id {lost}" in warning["message"]
        assert stream.next()["id"] == kept


def test_who_connects_too_often_is_told_when_to_come_back(module_servers, redis):
    gateway = module_servers.gateway(redis, "--dialects", "twitter1", "--max-connections-per-subject", 1)
    with gateway.stream(f"{FILTER}?track=tea"):
        answer = refusal(gateway, f"{FILTER}?track=tea")
    assert answer.status == 420 and int(answer.headers["retry-after"]) > 0
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("more, headers, status", [
    ((), {}, 403), ((), {"X-Forwarded-Proto": "https"}, 200), (("--plain-oauth",), {}, 200)])
def test_oauth_from_elsewhere_needs_tls(module_servers, redis, more, headers, status):
    """From elsewhere according to a trusted proxy."""
    gateway = module_servers.gateway(redis, "--dialects", "twitter1", "--trusted-proxies", "127.0.0.1", *more)
    sent = {"X-Forwarded-For": "192.0.2.7", **headers}

    def answered(credential):
        try:
            gateway.stream(f"{FILTER}?track=tea", headers={**sent, **credential}).close()
            return 200
        except Refused as refused:
            return refused.response.status
    assert answered(oauth(gateway.token())) == status
    assert answered(gateway.bearer()) == 200


def test_count_begins_with_what_has_passed(gateway, cli, ada):
    with gateway.stream(f"{FILTER}?track=counted") as stream:
        ids = [int(cli.run("post", "--user", ada, f"counted {i}")) for i in range(5)]
        assert [stream.next().json["id"] for _ in ids] == ids  # they have been received
    with gateway.stream(f"{FILTER}?track=counted&count=3") as stream:
        assert [stream.next().json["id"] for _ in range(3)] == ids[2:]
        ids.append(int(cli.run("post", "--user", ada, "counted live")))
        assert stream.next().json["id"] == ids[-1]
    for count, past in (("-2", ids[-2:]), ("-1000", ids), ("-1001", ids), ("-150000", ids)):
        with gateway.stream(f"{FILTER}?track=counted&count={count}") as stream:
            if int(count) < -1000:
                warning = stream.next()["warning"]
                assert (warning["code"], warning["percent_full"]) == ("COUNT", 0) and "1000" in warning["message"]
            assert [stream.next().json["id"] for _ in past] == past
            assert stream.to_end() == []


def test_it_ends_without_a_word_when_the_server_drains(module_servers, redis, publish):
    gateway = module_servers.gateway(redis, "--dialects", "twitter1")
    with gateway.stream(f"{FILTER}?track=tea") as stream:
        publish(events.post(8, "tea"))
        assert stream.next().json["id"] == 8
        gateway.stop()
        assert stream.to_end() == []


def test_without_redis_they_are_to_come_back(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--dialects", "twitter1")
    redis.stop()
    gateway.wait_status("/readyz", 503)
    answer = refusal(gateway, f"{FILTER}?track=tea")
    assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
    assert answer.headers["content-type"].startswith("text/plain")


def test_without_the_setting_there_are_no_such_paths(module_servers, redis):
    gateway = module_servers.gateway(redis)
    assert refusal(gateway, f"{FILTER}?track=tea").status == 404


# --- clients ----------------------------------------------------------------------------------------


def wait_for(received, publish, text="tea for clients"):
    """A client does not report when it is connected: posts until it has received one."""
    def one():
        publish(events.post(114677036875900, text))
        try:
            return received.get(timeout=0.5)
        except queue.Empty:
            return None
    return eventually(one, "a post to arrive", 60)


def test_tweepy(gateway, publish):
    tweepy = pytest.importorskip("tweepy", reason="this Debian has no python3-tweepy")
    received, deleted = queue.Queue(), queue.Queue()

    class Listener(tweepy.Stream):
        def on_status(self, status):
            received.put(status)

        def on_delete(self, status_id, user_id):
            deleted.put((status_id, user_id))

        def _connect(self, method, endpoint, **arguments):
            url = f"http://127.0.0.1:{gateway.port}/1.1/{endpoint}.json"
            arguments["auth"] = tweepy.OAuth1UserHandler(
                self.consumer_key, self.consumer_secret, self.access_token, self.access_token_secret).apply_auth()
            return tweepy.streaming.BaseStream._connect(self, method, url, **arguments)

    client = Listener("key", "secret", gateway.token(), "secret")
    client.filter(track=["tea"], stall_warnings=True, threaded=True)
    try:
        status = wait_for(received, publish)
        assert (status.id, status.text, status.user.screen_name) == (114677036875900, "tea for clients", "u1")
        assert status.created_at.year == 2026
        publish(events.delete(114677036875901, events.post(114677036875900, "tea for clients")))
        assert deleted.get(timeout=30) == (114677036875900, 1)
    finally:
        client.disconnect()


def test_twython(gateway, publish):
    twython = pytest.importorskip("twython", reason="this Debian has no python3-twython")
    received = queue.Queue()

    class Streamer(twython.TwythonStreamer):
        def on_success(self, data):
            received.put(data)

        def _request(self, url, method="GET", params=None):
            path = url[url.index("/1.1/"):]
            return super()._request(f"http://127.0.0.1:{gateway.port}{path}", method, params)

    streamer = Streamer("key", "secret", gateway.token(), "secret")
    thread = threading.Thread(target=streamer.statuses.filter, kwargs={"track": "tea"}, daemon=True)
    thread.start()
    assert wait_for(received, publish)["text"] == "tea for clients"
    streamer.disconnect()
