"""How much the event log keeps, how it is trimmed while events arrive, and what /metrics shows of it."""

import json
import time

from harness.redis_server import shard_of
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"
EPOCH_MS = 1767225600000  # 2026-01-01T00:00:00Z


def log_of(redis, shard=0):
    return redis.client.xrange(f"sluice:{{{shard}}}:log")


def append_old(redis, count, age_ms, shard=0):
    """Adds events of some time ago to the empty log of a shard."""
    first, previous = (int(time.time() * 1000) - EPOCH_MS - age_ms) * 4096, 0
    for number in range(first, first + count):
        redis.client.xadd(f"sluice:{{{shard}}}:log", {"p": previous, "e": "{}"}, id=f"{number}-0")
        previous = number


def test_numbers_of_the_log_are_there_from_the_start(servers):
    redis = servers.redis(shards=3)
    append_old(redis, 50, 3600000)
    gateway = servers.gateway(redis, workers=2)
    numbers = gateway.metrics()
    assert {key for key in numbers if key.startswith("sluice_log_events")} == \
        {f'sluice_log_events{{shard="{shard}"}}' for shard in range(3)}
    assert numbers["sluice_shards"] == 3
    numbers = eventually(
        lambda: (n := gateway.metrics())['sluice_log_events{shard="0"}'] == 50 and n, "the log is looked at")
    assert 3600 <= numbers['sluice_log_age_seconds{shard="0"}'] < 7200
    assert 50 * len("{}") < numbers['sluice_log_bytes{shard="0"}'] < 100000
    assert numbers['sluice_log_events{shard="2"}'] == numbers['sluice_log_age_seconds{shard="2"}'] == 0


def test_log_keeps_what_both_limits_allow(servers, cli_for):
    """Old events in a burst, then new ones: each limit removes its part, and only whole nodes."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("init", "--log-count", "150", "--log-age", "2h")
    shard = shard_of(cli.run("user", "add", "ada"))
    redis.client.delete(f"sluice:{{{shard}}}:log")  # it must not contain newer ones
    append_old(redis, 500, 3 * 3600000, shard)
    assert len(log_of(redis, shard)) == 500  # nothing is trimmed as long as nothing is written
    newest = cli.ids("post", "--user", "ada", "new")[0]
    left = [entry for entry, _ in log_of(redis, shard)]
    assert left[-1] == f"{newest}-0" and 1 <= len(left) <= 1 + 100
    for number in range(4):
        cli.run("config", "set", "log-count", str(400 - 100 * number))
        cli.run("post", "--user", "ada", "more")
    posts = [json.loads(fields["e"]) for _, fields in log_of(redis, shard)][-5:]
    assert [post["post"]["text"] for post in posts] == ["new"] + ["more"] * 4


def test_deleted_post_is_in_the_log_until_it_is_trimmed_or_taken_out(servers, cli_for):
    """As in docs/events.md, including the redis-cli line."""
    redis = servers.redis()
    cli = cli_for(redis)
    ada = cli.run("user", "add", "ada")
    shard = shard_of(ada)
    gateway = servers.gateway(redis)
    with gateway.stream(FIREHOSE) as stream:
        before, secret = cli.ids("post", "--user", "ada", "before") + \
            cli.ids("post", "--user", "ada", "a secret")
        cli.run("delete", "--user", "ada", secret)
        deletion = stream.until(lambda m: m.type == "delete")[-1]["id"]
    assert str(log_of(redis, shard)).count("a secret") == 2
    assert redis.client.xdel(redis.key(secret, "log"), f"{secret}-0", f"{deletion}-0") == 2
    assert str(log_of(redis, shard)).count("a secret") == 0
    with gateway.stream(FIREHOSE) as stream:
        after = cli.ids("post", "--user", "ada", "after")[0]
        assert stream.next()["id"] == after
    assert [entry for entry, _ in log_of(redis, shard)] == [f"{ada}-0", f"{before}-0", f"{after}-0"]
    # Clients that resume are told where the deleted entries were, whether or not the filter matches what follows.
    late = servers.gateway(redis)
    for target, wanted in (("firehose?", [before, "gap", after]),
                           ("filter?track=before,live&", [before, "gap"])):
        with late.stream(f"/v1/stream/{target}since={int(before) - 1}") as stream:
            live = cli.ids("post", "--user", "ada", "live")[0]
            got = stream.until(lambda m: not m.is_control and m["id"] == live)[:len(wanted)]
        assert [m.type if m.is_control else m["id"] for m in got] == wanted
        gap = got[1]
        assert (gap["from"], gap["to"], gap["reason"]) == (before, deletion, "retention")

