"""Redis unavailable at the start, restarted, cut off: streams continue, and no client misses an event."""

import re
import signal
import time

import pytest

from harness import events, processes
from harness.ports import steady_port
from harness.redis_server import RedisServer, shard_of
from harness.streams import Collector, Refused

FIREHOSE = "/v1/stream/firehose"


def test_redis_down_at_the_start(servers):
    redis = RedisServer(servers.folder / "late")
    gateway = servers.gateway(redis.url, start=False, listen=f"127.0.0.1:{steady_port()}").launch()
    gateway.wait_status("/healthz", 200)
    response = gateway.get("/readyz")
    assert response.status == 503 and response.error["code"]
    ahead = int((time.time() + 600 - 1767225600) * 1000) * 4096  # of a Redis whose clock was ahead: not known yet
    for target in (FIREHOSE, f"{FIREHOSE}?since={ahead}"):
        with pytest.raises(Refused) as refused:
            gateway.stream(target)
        assert refused.value.response.status == 503
        assert int(refused.value.response.headers["retry-after"]) >= 1
    assert redis.url in gateway.log()
    servers.redis_servers.append(redis)
    redis.start()
    gateway.wait_ready()
    assert gateway.get("/readyz").status == 200
    with gateway.stream(FIREHOSE) as stream:
        redis.publish(events.dump(events.post(1, "at last")))
        assert stream.next()["id"] == "1"


@pytest.mark.parametrize("name", ["sluiced-streams", "sluiced-api"])
def test_worker_is_ready_only_while_its_commands_are_answered(servers, cli_for, name):
    """It receives the live channels all the time; Redis refuses one of its other connections."""
    redis = servers.redis()
    gateway = servers.gateway(redis, "--redis-timeout", "1s", "--api-timeout", "1s")
    redis.client.config_set("maxclients", 1)
    redis.drop_clients(name)
    gateway.wait_status("/readyz", 503)
    with pytest.raises(Refused) as refused:
        gateway.stream(FIREHOSE)
    assert refused.value.response.status == 503
    numbers = gateway.metrics()
    assert numbers['sluice_worker_ready{worker="0"}'] == 0
    assert numbers['sluice_worker_subscribed{worker="0"}'] == 1
    page = cli_for(None).run("top", "--once", "--url", f"http://127.0.0.1:{gateway.port}", "--interval", "0.5")
    assert "all well" not in page.splitlines()[0] and re.search(r"^0 +not ready ", page, re.M)
    redis.client.config_set("maxclients", 10000)
    gateway.wait_status("/readyz", 200)
    assert gateway.metrics()['sluice_worker_ready{worker="0"}'] == 1
    assert gateway.log().count("event=redis_unusable") == 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_redis_restarted_under_load(servers, cli_for, how):
    redis = servers.redis(append_only=True)
    redis.client.config_set("appendfsync", "always")
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis, workers=2)
    streams = [Collector(gateway.stream(FIREHOSE, transport))
               for transport in ("ndjson", "sse", "websocket", "delimited")]
    first = cli.ids("post", "--user", "ada", "before")[0]
    for stream in streams:
        stream.wait_id(first)
    load = cli.start("replay", write_posts(servers.folder, 400), "--rate", "400")
    streams[0].wait(lambda ms: len(ms) > 50, "the load flows")
    redis.stop(how)
    gateway.wait_status("/readyz", 503)
    load.process.wait(60)
    redis.start()
    gateway.wait_status("/readyz", 200)
    last = cli.ids("post", "--user", "ada", "after")[0]
    log = redis.log()
    wanted = [e["id"] for e in log if e["type"] in ("post", "delete")]
    assert wanted[-1] == last
    for stream in streams:
        assert_has_all(stream, wanted)


def assert_has_all(collector, wanted):
    """Waits until there are this many; then they must be these, each shard's in order, without a gap."""
    collector.wait(lambda ms: len(ms) >= len(wanted), f"{len(wanted)} events")
    got = [m["id"] for m in collector.events()]
    assert events.by_shard(got) == events.by_shard(wanted)
    assert not [m for m in collector.messages if m.is_control]


def write_posts(folder, count, size=40):
    file = folder / "posts.jsonl"
    with open(file, "w") as out:
        for number in range(count):
            text = f"post {number} " + "x" * size
            out.write(events.dump(events.post(number + 1, text, user=str(number % 20))) + "\n")
    return file


def test_lost_subscription_is_repaired_from_the_log(servers, cli_for):
    """The subscriber is disconnected again and again while posts continue."""
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    streams = [Collector(gateway.stream(FIREHOSE, transport)) for transport in ("ndjson", "websocket")]
    load = cli.start("replay", write_posts(servers.folder, 2000), "--rate", "1000")
    for seen in range(100, 1900, 300):
        streams[0].wait(lambda ms: len(ms) > seen, "the load flows")
        redis.drop_subscribers()
    load.ended()
    log = redis.log()
    wanted = [e["id"] for e in log if e["type"] == "post"]
    assert len(wanted) == 2000
    for stream in streams:
        assert_has_all(stream, wanted)
    assert gateway.metrics()["sluice_redis_subscriptions_total"] >= 2


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "sse", "websocket"])
def test_what_the_log_has_lost_is_told_as_a_gap(servers, cli_for, transport):
    """It is cut off, and what was published meanwhile is partly trimmed, in one transaction."""
    redis = servers.redis(shards=1)  # with several, lower ids than those of others are late
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis)
    log = "sluice:{0}:log"
    with gateway.stream(FIREHOSE, transport) as stream:
        first = cli.ids("post", "--user", "ada", "before")[0]
        assert stream.next()["id"] == first
        lost, kept = int(first) + 1, int(first) + 2
        with redis.master_of(0).pipeline() as transaction:
            transaction.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            for number, previous in ((lost, first), (kept, lost)):
                event = events.dump(events.post(number, "meanwhile"))
                transaction.xadd(log, {"p": str(previous), "e": event}, id=f"{number}-0")
            transaction.xtrim(log, minid=str(kept), approximate=False)
            transaction.execute()
        gap = stream.next()
        assert gap.json == {"type": "gap", "from": first, "to": str(lost), "reason": "retention"}
        assert gap.sse_id is None
        assert stream.next()["id"] == str(kept)
        last = cli.ids("post", "--user", "ada", "after")[0]
        assert stream.next()["id"] == last
    numbers = gateway.metrics()
    assert numbers['sluice_gaps_told_total{reason="retention"}'] == 1
    assert numbers["sluice_events_repaired_total"] == 1


def test_last_event_lost_is_found_in_the_log(servers, cli_for):
    """No later event names it: only the log has it."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis)
    with gateway.stream(FIREHOSE) as stream:
        first = cli.ids("post", "--user", "ada", "heard")[0]
        assert stream.next()["id"] == first
        event = events.dump(events.post(int(first) + 1, "unheard"))
        redis.client.xadd(redis.key(first, "log"), {"p": first, "e": event}, id=f"{int(first) + 1}-0")
        assert stream.next()["id"] == str(int(first) + 1)


def test_redis_that_stops_for_a_while_costs_no_event(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis, "--redis-timeout", "500ms")
    stream = Collector(gateway.stream(FIREHOSE))
    load = cli.start("replay", write_posts(servers.folder, 500), "--rate", "500")
    stream.wait(lambda ms: len(ms) > 50, "the load flows")
    with processes.stopped(redis.pids):
        gateway.wait_status("/readyz", 503)
    load.process.wait(60)
    gateway.wait_status("/readyz", 200)
    log = redis.log()
    wanted = [e["id"] for e in log if e["type"] == "post"]
    assert_has_all(stream, wanted)


def test_events_seen_twice_are_delivered_once(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis)
    with redis.listening() as next_message, gateway.stream(FIREHOSE) as stream:
        wanted = []
        for number in range(3):
            wanted += cli.ids("post", "--user", "ada", f"number {number}")
            redis.publish(next_message(), shard_of(wanted[-1]))
        wanted += cli.ids("post", "--user", "ada", "the end")
        assert [m["id"] for m in stream.until(wanted[-1])] == wanted


def test_redis_that_refuses_the_password(servers, redis):
    protected = servers.redis()
    protected.client.config_set("requirepass", "secret-word")
    gateway = servers.gateway(protected.url, start=False, listen=f"127.0.0.1:{steady_port()}").launch()
    gateway.wait_status("/healthz", 200)
    gateway.wait_status("/readyz", 503)
    protected.client.execute_command("AUTH", "secret-word")
    protected.client.config_set("requirepass", "")
    gateway.wait_ready()


@pytest.mark.one_redis("a cluster has one database")
def test_redis_url_with_user_password_and_database(servers, cli_for):
    redis = servers.redis()
    port = steady_port()
    redis.client.config_set("port", port)
    redis.client.execute_command("ACL", "SETUSER", "watch", "on", ">p@ss:word", "~*", "&*", "+@all")
    redis.url = f"redis://watch:p%40ss%3Aword@127.0.0.1:{port}/3"
    gateway = servers.gateway(redis.url)
    assert "p%40ss" not in gateway.ready["redis"] and "p@ss" not in gateway.ready["redis"]
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    with gateway.stream(FIREHOSE) as stream:
        post_id = cli.run("post", "--user", "ada", "over TCP")
        assert stream.next()["id"] == post_id
    gateway.stop()
    assert "p@ss:word" not in gateway.log() and "p%40ss" not in gateway.log()


def header(number, previous, text):
    """Returns a message of the live channel, as the core writes it."""
    return f"{number} {previous} {events.dump(events.post(number, text))}"


def test_an_id_in_the_future_from_outside_has_no_say(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis)

    def post():
        return cli.run("post", "--user", "ada", "post")

    with gateway.stream(FIREHOSE) as stream:
        first = post()
        stream.until(first)
        future = int(first) + 24 * 3600 * 1000 * 4096
        redis.publish(header(future, first, "from tomorrow"), shard=shard_of(first))
        second = post()
        assert stream.next()["id"] == second
        metrics = gateway.metrics()
        assert metrics['sluice_events_refused_total{reason="future"}'] == 1
        assert metrics['sluice_event_gaps_total{reason="rewound"}'] == 0
        assert f"event=event_in_the_future shard={shard_of(first)} id={future}" in gateway.log()
        with gateway.stream(f"{FIREHOSE}?since={first}") as again:
            assert again.next()["id"] == second
            third = post()
            assert again.next()["id"] == stream.next()["id"] == third


@pytest.mark.parametrize("transport", ["ndjson", "sse", "websocket"])
def test_after_a_failover_to_a_slow_clock_nothing_comes_twice(servers, cli_for, transport):
    """The last ids of the old master are ahead of the new master's clock."""
    redis = servers.redis(shards=1)  # with several, lower ids than those of others are late
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis)

    def post():
        return cli.run("post", "--user", "ada", "post")

    def comes_back(cursor, *expected):
        stream = gateway.stream(f"{FIREHOSE}?since={cursor}", transport)
        assert [stream.next()["id"] for _ in expected] == list(expected)
        return stream

    with gateway.stream(FIREHOSE, transport) as stream:
        kept = post()
        stream.until(kept)
        lost = [kept]
        for number in range(3):
            lost.append(str(int(kept) + (20000 + number) * 4096))
            redis.publish(header(lost[-1], lost[-2], "lost"), shard=shard_of(kept))
        stream.until(lost[-1])
        posts = [post() for _ in range(5)]
        gap = stream.next()
        assert (gap["from"], gap["to"], gap["reason"]) == (kept, lost[-1], "rewound")
        stream.until(posts[-1])
        back = [comes_back(posts[0], *posts[1:]), comes_back(posts[3], posts[4]), comes_back(posts[4])]
        late = gateway.stream(f"{FIREHOSE}?since={lost[-1]}", transport)
        assert late.next().type == "gap"
        assert [late.next()["id"] for _ in posts] == posts
        last = post()
        for each in (stream, late, *back):
            assert each.next()["id"] == last
        for each in (late, *back):
            each.close()
