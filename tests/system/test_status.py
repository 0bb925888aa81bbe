"""/status.json: the state of the server, and who may see whose clients are slow."""

import itertools
import re
import time

from harness import events
from harness.api import Api
from harness.cli import Cli
from harness.waiting import Deadline, eventually

TEXT = "a long post, so that few of them fill a socket " * 40


def status(gateway):
    answer = gateway.get("/status.json")
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    return answer.json


def test_it_says_what_metrics_says(gateway, redis):
    with gateway.stream("/v1/stream/firehose", "sse"), gateway.stream("/v1/stream", "websocket"):
        redis.publish(events.dump(events.post(1, "one")))
        now = eventually(lambda: (found := status(gateway))["metrics"]["sluice_matches_total"] >= 1
                         and found, "the event is counted")
        numbers, metrics = now["metrics"], gateway.metrics()
        kinds = numbers["sluice_streams_by_kind"]
        assert (kinds["firehose/sse"], kinds["many/websocket"], kinds["home/ndjson"]) == (1, 1, 0)
        assert numbers["sluice_streams"] == sum(kinds.values()) == 2
    families = {key.split("{")[0] for key in metrics}
    histograms = {name for name in families if name.endswith("_bucket")}
    assert set(numbers) == {name for name in families if not name.endswith(("_bucket", "_count", "_sum"))} \
        - {"sluice_build_info"}
    assert set(now["histograms"]) == {name.removesuffix("_bucket") for name in histograms}
    assert numbers["sluice_events_received_total"] == metrics["sluice_events_received_total"]
    assert numbers["sluice_worker_up"] == [1]
    eventually(lambda: status(gateway)["metrics"]["sluice_streams"] == 0, "the streams are gone")
    assert sum(status(gateway)["metrics"]["sluice_streams_by_kind"].values()) == 0


def exposed(gateway):
    """Every family and set of labels; of those with a shard, those of the first."""
    return {key for key in gateway.metrics() if "shard=" not in key or 'shard="0"' in key}


def be_busy(gateway, redis, cli):
    """Causes a bit of everything that is counted."""
    ada = cli.ids("user", "add", "ada")[0]
    first = cli.ids("post", "--user", "ada", "one")[0]
    api = Api(gateway, ada)
    post = api.post("two")
    api.get(f"/v1/posts/{post['id']}")
    api.refused(404, "not_found", "GET", "/v1/posts/1")
    api.close()
    for path, transport in itertools.product(["firehose", "sample?percent=100", "home", "filter?track=x"],
                                        ["ndjson", "delimited", "sse", "websocket"]):
        stream = f"/v1/stream/{path}{'&' if '?' in path else '?'}since={first}"
        gateway.stream(stream, transport, token=gateway.token(sub=ada)).close()
    gateway.stream("/v1/stream", "websocket").close()
    for bad in ("{", "1 2 3", "no event"):
        redis.publish(bad)
    for token in ("x", "x.y.z", gateway.token(exp=1)):
        assert gateway.get("/v1/stream/firehose", {"Authorization": f"Bearer {token}"}).status == 401
    assert gateway.get("/nothing").status == 404


def test_every_family_is_there_from_the_start_and_no_other_comes(servers, cli_for):
    """Before Redis is available, on an empty one, and after much has happened."""
    redis = servers.redis()
    redis.stop()
    gateway = servers.gateway(redis, "--log-level", "debug", start=False).launch()
    said = eventually(lambda: re.search(r"event=listening .*port=(\d+)", gateway.log()), "it listens")
    gateway.port = int(said.group(1))
    before = exposed(gateway)
    redis.start()
    gateway.wait_ready()
    assert exposed(gateway) == before
    be_busy(gateway, redis, cli_for(redis))
    assert exposed(gateway) == before
    # ...and the same in the other form.
    now = status(gateway)
    assert {key.split("{")[0] for key in before if "_bucket" not in key} - {"sluice_build_info"} == \
        set(now["metrics"]) | {f"{name}_{part}" for name in now["histograms"] for part in ("sum", "count")}


def test_redis_is_timed(gateway):
    def timed():
        now = status(gateway)
        pulse = now["histograms"]["sluice_redis_round_trip_seconds"]
        assert len(pulse["buckets"]) == len(now["bounds"]) + 1
        return sum(pulse["buckets"]) >= 2 and pulse["sum"] > 0
    eventually(timed, "Redis has answered twice")


def timed(gateway, family):
    """Returns the count, and the sum in seconds."""
    numbers = gateway.metrics()
    return numbers[f"{family}_count"], numbers[f"{family}_sum"]


def test_matching_and_delivery_are_timed(servers, redis):
    gateway = servers.gateway(redis)
    began = time.monotonic()
    with gateway.stream("/v1/stream/firehose", "sse") as stream:
        for number in range(1, 21):  # one at a time, so that each is a send
            redis.publish(events.dump(events.post(number, "one")))
            assert stream.next()["id"] == str(number)
        for family in "sluice_match_seconds", "sluice_delivery_seconds":
            eventually(lambda: timed(gateway, family)[0] == 20, f"{family} has each")
    _, match = timed(gateway, "sluice_match_seconds")
    _, delivery = timed(gateway, "sluice_delivery_seconds")
    assert 0 <= match <= delivery  # the time of matching is a part of that until delivery
    assert 0 < delivery <= 20 * (time.monotonic() - began)


def test_what_is_replayed_is_not_timed(servers):
    redis = servers.redis()
    gateway, cli = servers.gateway(redis), Cli(redis)
    cli.run("user", "add", "u1")
    first, *missed = [cli.ids("post", "--user", "u1", f"post {number}")[0] for number in range(4)]
    eventually(lambda: timed(gateway, "sluice_match_seconds")[0] == 5, "the user and all posts have passed")
    with gateway.stream(f"/v1/stream/firehose?since={first}") as stream:
        assert [stream.next()["id"] for _ in missed] == missed
        eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 0, "it is live")
        assert timed(gateway, "sluice_match_seconds")[0] == 5
        assert timed(gateway, "sluice_delivery_seconds") == (0, 0)
        cli.run("post", "--user", "u1", "live")
        stream.next()
        eventually(lambda: timed(gateway, "sluice_delivery_seconds")[0] == 1, "it is timed")
    assert timed(gateway, "sluice_match_seconds")[0] == 6


def fall_behind(gateway, redis):
    """Publishes until the only stream, which does not read, is owed some posts."""
    deadline = Deadline(60, "the stream is behind")
    number = 0

    def owed():
        numbers = status(gateway)["metrics"]
        return numbers["sluice_matches_total"] - numbers["sluice_deliveries_total"]
    while owed() < 50:
        for _ in range(50):
            number += 1
            redis.publish(events.dump(events.post(number, TEXT)))
        eventually(lambda: status(gateway)["metrics"]["sluice_matches_total"] == number,
                   "what was published is matched", deadline.left())


def test_slow_clients_are_shown_by_subject_to_developers_and_operators_only(servers, redis):
    for options, subject in (["--dev"], "ada \"x\""), ([], None):
        gateway = servers.gateway(redis, *options, workers=2)
        stalled = gateway.stream("/v1/stream/firehose", "ndjson", receive_buffer=4096,
                                 token=gateway.token(sub="ada \"x\""))
        fall_behind(gateway, redis)
        slow, = eventually(lambda: status(gateway)["slowest"], "it is on the list")
        assert slow["subject"] == subject
        assert slow["filter"] == (subject and "posts and deletions, all")
        assert (slow["stream"], slow["transport"]) == ("firehose", "ndjson")
        assert slow["owed_events"] > 0 and slow["owed_bytes"] > len(TEXT)
        assert slow["worker"] in (0, 1) and slow["connected_ms"] >= 0
        for scope, seen in ("read admin", "ada \"x\""), ("stream:firehose", subject):
            answer = gateway.get("/status.json", gateway.bearer(scope=scope))
            assert [one["subject"] for one in answer.json["slowest"]] == [seen]
            assert answer.json["subjects"] == bool(seen)
        numbers = eventually(lambda: (found := status(gateway)["metrics"])["sluice_owed_bytes"] and
                             found["sluice_streams_behind"] == 1 and found, "it is counted")
        assert numbers["sluice_owed_events"] > 0
        stalled.close()
        eventually(lambda: status(gateway)["slowest"] == [], "it has left the list")


def test_a_token_that_is_shown_must_be_good(gateway):
    answer = gateway.get("/status.json", {"Authorization": "Bearer x.y.z"})
    assert answer.status == 401 and "invalid_token" in answer.headers["www-authenticate"]
