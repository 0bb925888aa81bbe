"""X's API, version 2: what clients send to its streams, and what they must get; one of them, unmodified."""

import datetime
import json
import queue
import time

import pytest

from harness import events
from harness.cli import Cli
from harness.recompute import hash_of_id
from harness.waiting import eventually

SAMPLE, SAMPLE10, FIREHOSE = (f"/2/tweets/{name}/stream" for name in ("sample", "sample10", "firehose"))
PROBLEMS = "https://api.x.com/2/problems/"


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--dialects", "twitter2")


def refusal(gateway, target, method="GET", **arguments):
    with gateway.connect() as connection:
        answer = connection.request(method, target, headers=gateway.bearer(**arguments))
    problem = json.loads(answer.body)
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["status"] == answer.status and problem["title"] and problem["detail"]
    return answer, problem


def is_sampled(number, percent=1):
    return (hash_of_id(number) >> 32) * 1000000 >> 32 < percent * 10000


def sampled(number, percent=1):
    """The first id from `number` on that is in everybody's sample."""
    return next(one for one in range(number, number + 100000) if is_sampled(one, percent))


@pytest.mark.parametrize("transport", ["ndjson", "ndjson+gzip"])
def test_a_post_is_a_tweet(gateway, publish, transport):
    number = sampled(114677036875776)
    with gateway.stream(SAMPLE, transport) as stream:
        publish(events.post(number, "tea & cake ä"))
        line = stream.next().raw
    assert line.isascii()
    assert json.loads(line) == {"data": {"id": str(number), "text": "tea &amp; cake ä",
                                         "edit_history_tweet_ids": [str(number)]}}


def test_deletions_are_none_of_it(gateway, publish):
    first = events.post(sampled(114677036900000), "gone")
    last = events.post(sampled(int(first["id"]) + 1), "last")
    with gateway.stream(SAMPLE) as stream:
        publish(first)
        publish(events.delete(int(first["id"]) + 1, first))
        publish(last)
        assert [stream.next().json["data"]["text"] for _ in range(2)] == ["gone", "last"]


def test_deletions_have_a_stream_of_their_own(gateway, publish):
    number = 114677036950000
    first = events.post(number, "gone", user="42")
    with gateway.stream(f"/2/tweets/compliance/stream?partition={partition_of(number, 4)}") as stream:
        publish(first)
        publish(events.delete(number + 1, first))
        message = stream.next().json
    deletion = message["data"]["delete"]
    assert deletion["tweet"] == {"id": str(number), "author_id": "42"} and deletion["event_at"].endswith("Z")
    answer, problem = refusal(gateway, "/2/tweets/compliance/stream?partition=1&tweet.fields=id")
    assert answer.status == 400 and problem["errors"][0]["parameters"] == {"tweet.fields": ["id"]}


def test_a_stream_that_is_ended_says_why(module_servers, redis, publish):
    gateway = module_servers.gateway(redis, "--dialects", "twitter2")
    number = sampled(114677036960000)
    with gateway.stream(SAMPLE) as stream:
        publish(events.post(number, "tea"))
        assert stream.next().json["data"]["id"] == str(number)
        gateway.stop()
        last, = stream.to_end()
    error, = last.json["errors"]
    assert (error["title"], error["disconnect_type"], error["type"]) == (
        "operational-disconnect", "UpstreamOperationalDisconnect", PROBLEMS + "operational-disconnect")


# --- fields and expansions --------------------------------------------------------------------------


EVERY_FIELD = ("tweet.fields=attachments,author_id,conversation_id,created_at,display_text_range,edit_controls,entities,geo,"
               "in_reply_to_user_id,lang,public_metrics,referenced_tweets,reply_settings,source,note_tweet,withheld")
EVERY_EXPANSION = ("expansions=attachments.media_keys,author_id,entities.mentions.username,geo.place_id,in_reply_to_user_id,"
                   "referenced_tweets.id,referenced_tweets.id.author_id,attachments.poll_ids")


def partition_of(number, parts=20):
    return ((hash_of_id(number) & 0xffffffff) * parts >> 32) + 1


def all_of(number, query=""):
    """A firehose that has delivered the post with this id."""
    return f"{FIREHOSE}?partition={partition_of(number)}&{query}"


def rich(number):
    event = events.post(
        number, "tea & <cake> for @bob @eve #Kräuter $TEA http://a.example/b?c.", user="42", login="ada",
        lang="en", source="web", geo={"lon": 8.5, "lat": 47.3},
        place={"name": "Zürich", "country": "CH", "bbox": [8.4, 47.3, 8.6, 47.4]},
        media=[{"type": "photo", "url": "http://a.example/1.png", "width": 8}, {"media_key": "7_8", "type": "video"}],
        reply_to={"post": "114677036740608", "user": "7", "login": "eve"},
        quote_of={"post": "114677036740609", "user": "someone", "login": "who"})
    event["post"]["user"]["name"] = "Ada"
    return event


def test_every_field(gateway, publish):
    number = 114677036875776
    with gateway.stream(all_of(number, EVERY_FIELD)) as stream:
        publish(rich(number))
        message = stream.next().json
    tweet = message["data"]
    assert set(message) == {"data"}
    text = tweet["text"]
    assert text == "tea &amp; &lt;cake&gt; for @bob @eve #Kräuter $TEA http://a.example/b?c."
    assert (tweet["author_id"], tweet["in_reply_to_user_id"]) == ("42", "7")
    assert tweet["attachments"] == {"media_keys": [f"1_{number}", "7_8"]}
    assert tweet["display_text_range"] == [0, len(text)]
    assert datetime.datetime.strptime(tweet["created_at"], "%Y-%m-%dT%H:%M:%S.%f%z").year == 2026
    assert tweet["geo"]["coordinates"] == {"type": "Point", "coordinates": [8.5, 47.3]} and tweet["geo"]["place_id"]
    assert (tweet["lang"], tweet["source"], tweet["reply_settings"]) == ("en", "web", "everyone")
    assert tweet["public_metrics"]["like_count"] == 0
    assert [(one["type"], one["id"]) for one in tweet["referenced_tweets"]] == [
        ("replied_to", "114677036740608"), ("quoted", "114677036740609")]
    assert "conversation_id" not in tweet  # for a reply it is unknown
    entities = tweet["entities"]
    marked = {kind: [text[one["start"]:one["end"]] for one in found] for kind, found in entities.items()}
    assert marked == {"hashtags": ["#Kräuter"], "urls": ["http://a.example/b?c"], "mentions": ["@bob", "@eve"],
                      "cashtags": ["$TEA"]}
    assert [one.get("id") for one in entities["mentions"]] == [None, "7"]
    assert entities["hashtags"][0]["tag"] == "Kräuter" and entities["cashtags"][0]["tag"] == "TEA"
    assert entities["urls"][0]["expanded_url"] == "http://a.example/b?c"


def test_every_expansion(gateway, publish):
    number = 114677036875776
    query = EVERY_EXPANSION + ("&user.fields=verified,description&place.fields=country_code,geo,name"
                               "&media.fields=url,width,height&poll.fields=options")
    with gateway.stream(all_of(number, query)) as stream:
        publish(rich(number))
        message = stream.next().json
    tweet, includes = message["data"], message["includes"]
    assert set(tweet) == {"id", "text", "edit_history_tweet_ids", "author_id", "entities", "geo", "in_reply_to_user_id",
                          "referenced_tweets", "attachments"}  # each expansion adds the members that refer to it
    users = {user["username"]: user for user in includes["users"]}
    assert list(users) == ["ada", "eve", "who"]
    assert users["ada"] == {"id": "42", "name": "Ada", "username": "ada", "verified": False}
    assert users["eve"]["id"] == "7" and users["who"]["id"].isdigit()
    place, = includes["places"]
    assert (place["id"], place["full_name"], place["country_code"]) == (tweet["geo"]["place_id"], "Zürich", "CH")
    assert place["geo"] == {"type": "Feature", "bbox": [8.4, 47.3, 8.6, 47.4], "properties": {}}
    assert includes["media"] == [
        {"media_key": f"1_{number}", "type": "photo", "url": "http://a.example/1.png", "width": 8},
        {"media_key": "7_8", "type": "video"}]


def test_what_there_is_not_is_left_out(gateway, publish):
    number = 114677036875777
    with gateway.stream(all_of(number, f"{EVERY_FIELD}&{EVERY_EXPANSION}")) as stream:
        publish(events.post(number, "plain", user="no-number"))
        message = stream.next().json
    tweet = message["data"]
    assert not {"attachments", "entities", "geo", "in_reply_to_user_id", "referenced_tweets", "source"} & set(tweet)
    assert tweet["conversation_id"] == tweet["id"] and tweet["lang"] == "und"
    assert message["includes"] == {"users": [{"id": tweet["author_id"], "name": "uno-number",
                                              "username": "uno-number"}]}
    assert tweet["author_id"].isdigit()


# --- which posts ------------------------------------------------------------------------------------


def test_partitions_are_disjoint_and_complete(gateway, publish):
    numbers = range(114677040000000, 114677040000060)
    streams = [gateway.stream(f"{FIREHOSE}?partition={part}") for part in range(1, 21)]
    try:
        for number in numbers:
            publish(events.post(number, "shared"))
        for number in numbers:
            message = streams[partition_of(number) - 1].next()
            assert message.json["data"]["id"] == str(number)
        for last in range(114677050000000, 114677050000400):  # nothing else came before the last of each
            publish(events.post(last, "last"))
        for stream in streams:
            assert stream.next().json["data"]["text"] == "last"
        while streams[partition_of(last) - 1].next().json["data"]["id"] != str(last):
            pass  # until nothing is left that the streams of other tests could get
    finally:
        for stream in streams:
            stream.close()


def test_a_tenth_in_two_parts(gateway, publish):
    numbers = [number for number in range(114677060000000, 114677060000300) if is_sampled(number, 10)]
    with gateway.stream(f"{SAMPLE10}?partition=1") as first, gateway.stream(f"{SAMPLE10}?partition=2") as second:
        for number in range(114677060000000, 114677060000300):
            publish(events.post(number, "some"))
        for number in numbers:
            stream = first if partition_of(number, 2) == 1 else second
            assert stream.next().json["data"]["id"] == str(number)


def test_a_language(gateway, publish):
    number = 114677070000000
    with gateway.stream(f"{FIREHOSE}/lang/ja?partition={partition_of(number, 2)}") as stream:
        publish(events.post(number, "tea", lang="en"))
        publish(events.post(number, "cha", lang="ja"))
        assert stream.next().json["data"]["text"] == "cha"


@pytest.fixture(scope="module")
def ada(module_servers, redis):
    Cli(redis).run("user", "add", "ada", "--name", "Ada")
    return "ada"


def moment(ms):
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def posted_ms(number):
    return number // 4096 + 1767225600000


def test_what_has_passed(gateway, cli, ada):
    ids = [int(cli.run("post", "--user", ada, f"passed {i}")) for i in range(3)]
    eventually(lambda: time.time() * 1000 > posted_ms(ids[-1]) + 2, "the last post to have passed")
    span = f"start_time={moment(posted_ms(ids[0]))}&end_time={moment(posted_ms(ids[-1]) + 1)}"
    streams = {part: gateway.stream(f"{FIREHOSE}?partition={part}&{span}") for part in set(map(partition_of, ids))}
    found = [message.json["data"]["id"] for stream in streams.values() for message in stream.to_end()]
    assert sorted(map(int, found)) == ids
    with gateway.stream(all_of(ids[0], "backfill_minutes=5")) as stream:
        assert stream.next().json["data"]["id"] == str(ids[0])


@pytest.mark.parametrize("target, name, value", [
    (f"{SAMPLE}?tweet.fields=id,flavour", "tweet.fields", "id,flavour"),
    (f"{SAMPLE}?tweet.fields=", "tweet.fields", ""),
    (f"{SAMPLE}?expansions=author", "expansions", "author"),
    (f"{SAMPLE}?user.fields=shoe_size", "user.fields", "shoe_size"),
    (f"{SAMPLE}?place.fields=x", "place.fields", "x"),
    (f"{SAMPLE}?media.fields=x", "media.fields", "x"),
    (f"{SAMPLE}?poll.fields=x", "poll.fields", "x"),
    (f"{SAMPLE}?partition=1", "partition", "1"),
    (f"{SAMPLE}?start_time=2026-11-22T10:00:00Z", "start_time", "2026-11-22T10:00:00Z"),
    (f"{SAMPLE}?backfill_minutes=6", "backfill_minutes", "6"),
    (f"{SAMPLE}?backfill_minutes=-1", "backfill_minutes", "-1"),
    (f"{SAMPLE}?tee=a%20b", "tee", "a b"),
    (f"{SAMPLE10}?partition=3", "partition", "3"),
    (f"{FIREHOSE}?partition=0", "partition", "0"),
    (f"{FIREHOSE}?partition=21", "partition", "21"),
    (f"{FIREHOSE}?partition=1/20", "partition", "1/20"),
    (f"{FIREHOSE}/lang/en?partition=9", "partition", "9"),
    (f"{FIREHOSE}?partition=1&start_time=yesterday", "start_time", "yesterday"),
    (f"{FIREHOSE}?partition=1&start_time=1h", "start_time", "1h"),
    (f"{FIREHOSE}?partition=1&start_time=2099-01-01T00:00:00Z", "start_time", "2099-01-01T00:00:00Z"),
    (f"{FIREHOSE}?partition=1&end_time=2026-01-01T00:00:00Z", "end_time", "2026-01-01T00:00:00Z"),
    (f"{FIREHOSE}?partition=1&start_time=2026-02-01T00:00:00Z&end_time=2026-01-31T00:00:00Z", "end_time",
     "2026-01-31T00:00:00Z"),
    (f"{FIREHOSE}?partition=1&start_time=2026-02-01T00:00:00Z&backfill_minutes=1", "backfill_minutes", "1"),
])
def test_bad_parameters(gateway, target, name, value):
    answer, problem = refusal(gateway, target)
    assert answer.status == 400
    assert (problem["type"], problem["title"]) == (PROBLEMS + "invalid-request", "Invalid Request")
    error, = problem["errors"]
    assert error["parameters"] == {name: [value]} and name in error["message"]


def test_a_partition_must_be_asked_for(gateway):
    answer, problem = refusal(gateway, FIREHOSE)
    assert answer.status == 400 and problem["errors"][0]["parameters"] == {"partition": []}


def test_whoever_has_no_token_learns_nothing(gateway):
    with gateway.connect() as connection:
        answer = connection.request("GET", f"{SAMPLE}?tee=a", headers={"Authorization": "Bearer x.y.z"})
    assert answer.status == 401 and answer.headers["content-type"] == "application/problem+json"
    assert json.loads(answer.body)["type"] == "about:blank"
    assert "www-authenticate" in answer.headers


def test_a_scope_that_does_not_cover_it(gateway):
    answer, problem = refusal(gateway, SAMPLE, scope="stream:filter")
    assert answer.status == 403 and problem["type"] == PROBLEMS + "client-forbidden"


def test_too_many_connections(module_servers, redis):
    gateway = module_servers.gateway(redis, "--dialects", "twitter2", "--max-connections-per-subject", 1)
    with gateway.stream(SAMPLE):
        answer, problem = refusal(gateway, SAMPLE)
    assert answer.status == 429
    assert (problem["title"], problem["connection_issue"], problem["type"]) == (
        "ConnectionException", "TooManyConnections", PROBLEMS + "streaming-connection")
    assert int(answer.headers["x-rate-limit-reset"]) >= int(time.time()) and answer.headers["retry-after"]


def test_a_quota_that_is_used_up(gateway):
    answer, problem = refusal(gateway, SAMPLE, lim={"bytes": 0})
    assert answer.status == 429 and (problem["type"], problem["title"]) == (PROBLEMS + "usage-capped", "UsageCapExceeded")
    assert int(answer.headers["x-rate-limit-reset"]) >= int(time.time())


def test_rate_limits_of_requests_are_told(module_servers, redis):
    gateway = module_servers.gateway(redis, "--dialects", "twitter2", "--max-requests-per-second", 2)
    with gateway.connect() as connection:
        answer = connection.request("GET", "/2/tweets/search/stream/rules", headers=gateway.bearer())
    assert answer.status == 200 and answer.headers["x-rate-limit-limit"] == "2"
    assert int(answer.headers["x-rate-limit-remaining"]) < 2
    assert int(answer.headers["x-rate-limit-reset"]) >= int(time.time())


def test_rate_limits_are_told(module_servers, redis):
    gateway = module_servers.gateway(redis, "--dialects", "twitter1,twitter2", "--max-connects-per-minute", 2)
    ada, bob = gateway.token(sub="ada-x"), gateway.token(sub="bob-x")
    for left in (1, 0):
        with gateway.stream(SAMPLE, token=ada) as stream:
            told = stream.response.headers
        assert (told["x-rate-limit-limit"], told["x-rate-limit-remaining"]) == ("2", str(left))
        assert int(told["x-rate-limit-reset"]) >= int(time.time())
    answer, problem = refusal(gateway, SAMPLE, sub="ada-x")
    assert answer.status == 429 and (problem["type"], problem["title"]) == ("about:blank", "Too Many Requests")
    assert answer.headers["x-rate-limit-remaining"] == "0"
    assert int(answer.headers["x-rate-limit-reset"]) >= int(time.time())
    with gateway.stream("/1.1/statuses/sample.json", token=bob) as stream:
        assert "x-rate-limit-limit" not in stream.response.headers


def test_without_the_setting_there_are_no_such_paths(module_servers, redis):
    gateway = module_servers.gateway(redis)
    with gateway.connect() as connection:
        assert connection.request("GET", SAMPLE, headers=gateway.bearer()).status == 404


# --- clients ----------------------------------------------------------------------------------------


def wait_for(received, publish, number):
    """A client does not report when it is connected: posts until it has received one."""
    def one():
        publish(rich(number))
        try:
            return received.get(timeout=0.5)
        except queue.Empty:
            return None
    return eventually(one, "a post to arrive", 60)


def test_tweepy(gateway, publish):
    tweepy = pytest.importorskip("tweepy", reason="this Debian has no python3-tweepy")
    requests = pytest.importorskip("requests")
    received, errors = queue.Queue(), queue.Queue()

    class Here(requests.adapters.HTTPAdapter):
        """Connects to the server instead of X's API; the rest is unmodified."""
        def send(self, request, **arguments):
            request.url = request.url.replace("https://api.twitter.com", f"http://127.0.0.1:{gateway.port}")
            return super().send(request, **arguments)

    class Client(tweepy.StreamingClient):
        def on_response(self, response):
            received.put(response)

        def on_request_error(self, status_code):
            errors.put(status_code)

    client = Client(gateway.token())
    client.session.mount("https://api.twitter.com", Here())
    client.sample(threaded=True, expansions=["author_id", "geo.place_id"], tweet_fields=["created_at", "geo"],
                  place_fields=["country_code"])
    number = sampled(114677080000000)
    try:
        response = wait_for(received, publish, number)
    finally:
        client.disconnect()
    assert errors.empty()
    tweet = response.data
    assert (tweet.id, tweet.author_id, tweet.created_at.year) == (number, 42, 2026)
    assert tweet.geo["place_id"] == response.includes["places"][0].id
    assert [user.username for user in response.includes["users"]] == ["ada"]
    assert response.matching_rules == []
