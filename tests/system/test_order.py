"""The order over all shards: by id, whichever process writes, and which shards are passed by when they are silent."""

import json

from harness import events
from harness.redis_server import shard_of
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"


def ids(some):
    return [int(event["id"]) for event in some]


def test_live_events_of_all_shards_come_in_the_order_of_their_ids(servers, cli_for):
    redis = servers.redis(shards=8)
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    files = [redis.folder / f"{writer}.jsonl" for writer in range(4)]
    for writer, file in enumerate(files):
        file.write_text("".join(events.dump(events.post(number, "text", user=f"{writer}{number % 9}")) + "\n"
                                for number in range(150)))
    with gateway.stream(FIREHOSE) as stream:
        writers = [cli.start("replay", file) for file in files]
        for writer in writers:
            writer.ended(0)
        posted = ids(event for event in redis.log() if event["type"] == "post")
        got = ids(event for event in stream.until(str(posted[-1])) if event.type == "post")
    assert len({shard_of(post) for post in posted}) == 8
    assert len(posted) == 600 and got == posted
    assert gateway.metrics()["sluice_events_late_total"] == 0


def test_a_shard_that_cannot_be_read_is_left_behind_and_comes_late(servers, cli_for):
    redis = servers.redis(shards=8)
    cli = cli_for(redis)
    user_of = {shard_of(cli.run("user", "add", f"user{n}")): f"user{n}" for n in range(12)}
    (silent, silent_user), (_, user), *_ = user_of.items()
    redis.client.execute_command("ACL", "SETUSER", "gate", "on", ">secret", "~*", "&*", "+@all")
    gateway = servers.gateway(redis.url_over_tcp("gate:secret@"), "--order-wait", "300ms")

    def post(login):
        return cli.run("post", "--user", login, "text")

    def metric(name):
        return gateway.metrics()[name]

    with gateway.stream(FIREHOSE) as stream:
        first = post(silent_user)
        stream.until(first)
        others = [f"%RW~sluice:{{{shard}}}:*" for shard in range(8) if shard != silent]
        redis.client.execute_command("ACL", "SETUSER", "gate", "resetkeys", *others)
        # An event that is in the log, and was not received.
        missed = int(first) + 1
        entry = json.dumps(events.post(missed, "missed"))
        redis.client.xadd(f"sluice:{{{silent}}}:log", {"p": first, "e": entry}, id=f"{missed}-0")
        held = post(silent_user)
        passed = [post(user) for _ in range(3)]
        assert ids(stream.until(passed[-1])) == list(map(int, passed))
        assert metric('sluice_order_left_behind_total{reason="wait"}') == 1
        assert metric("sluice_order_shards_behind") == 1 and metric("sluice_events_late_total") == 0
        assert gateway.log().count("event=shard_left_behind") == 1

        redis.client.execute_command("ACL", "SETUSER", "gate", "allkeys")
        assert ids(stream.until(held)) == [missed, int(held)]
        assert metric("sluice_events_late_total") == 2
        eventually(lambda: metric("sluice_order_shards_behind") == 0, "it has caught up")
        assert gateway.log().count("event=shards_in_order") == 1
        in_order = [post(login) for login in (user, silent_user, user)]
        assert ids(stream.until(in_order[-1])) == list(map(int, in_order))
    assert metric("sluice_events_late_total") == 2
