"""A cursor is exact over all shards: wherever the connection ends, a client that resumes misses nothing, gets nothing
twice, and everything in the order of ids; it is always told about late events."""

import json
import random
import time

from harness import events, processes
from harness.redis_server import shard_of
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"
SHARDS = 8
EPOCH_MS = 1767225600000  # of ids


def ids(some):
    return [int(event["id"]) for event in some]


def logged(redis):
    return ids(event for event in redis.log() if event["type"] == "post")


def write_posts(folder, writer, count):
    file = folder / f"{writer}.jsonl"
    file.write_text("".join(events.dump(events.post(number, "text", user=f"{writer}{number % 9}")) + "\n"
                            for number in range(count)))
    return file


def test_whoever_is_cut_between_two_events_of_a_millisecond_gets_the_other(servers, cli_for):
    redis = servers.redis(shards=SHARDS)
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    with gateway.stream(FIREHOSE) as stream:
        writers = [cli.start("replay", write_posts(redis.folder, writer, 60)) for writer in range(4)]
        for writer in writers:
            writer.ended(0)
        wanted = logged(redis)
        live = ids(stream.until(str(wanted[-1])))
    assert live == wanted
    pairs = [place for place, (one, other) in enumerate(zip(wanted, wanted[1:]))
             if one // 4096 == other // 4096 and shard_of(one) != shard_of(other)]
    assert pairs
    for place in pairs[:12]:
        for since in (place, place + 1):
            with gateway.stream(f"{FIREHOSE}?since={wanted[since]}") as stream:
                assert ids(stream.until(str(wanted[-1]))) == wanted[since + 1:]


def test_many_reconnects_under_load_miss_nothing_and_keep_the_order(servers, cli_for):
    redis = servers.redis(shards=SHARDS)
    cli = cli_for(redis)
    gateway = servers.gateway(redis, "--ring-bytes", "64K")  # much comes from the logs
    chance = random.Random(13)
    cli.run("user", "add", "first")
    first = cli.run("post", "--user", "first", "text")
    writers = [cli.start("replay", write_posts(redis.folder, writer, 500), "--rate", "250")
               for writer in range(4)]
    got, cursors = [int(first)], 0
    while len(got) < 2001:
        cursors += 1
        with gateway.stream(f"{FIREHOSE}?since={got[-1]}") as stream:
            for _ in range(min(2001 - len(got), chance.randrange(1, 50))):
                got.append(int(stream.next()["id"]))
    for writer in writers:
        writer.ended(0)
    assert cursors >= 60
    assert got == logged(redis)


class LeftBehind:
    """Eight shards, one of which the gateway cannot read for a while."""

    def __init__(self, servers, cli_for):
        self.servers = servers
        self.redis = servers.redis(shards=SHARDS)
        self.cli = cli_for(self.redis)
        user_of = {shard_of(self.cli.run("user", "add", f"user{n}")): f"user{n}" for n in range(12)}
        (self.silent, self.silent_user), (_, self.user), *_ = user_of.items()
        self.redis.client.execute_command("ACL", "SETUSER", "gate", "on", ">secret", "~*", "&*", "+@all")
        self.gateway = self.start()

    def start(self):
        return self.servers.gateway(self.redis.url_over_tcp("gate:secret@"), "--order-wait", "300ms", "--keepalive-ms", "200")

    def post(self, login):
        return self.cli.run("post", "--user", login, "text")

    def leave_behind(self):
        """Returns what is in the silent shard's log and was not received; and the last one that was received."""
        first = self.post(self.silent_user)
        others = [f"%RW~sluice:{{{shard}}}:*" for shard in range(SHARDS) if shard != self.silent]
        eventually(lambda: self.heard(first), "it has been heard")
        self.redis.client.execute_command("ACL", "SETUSER", "gate", "resetkeys", *others)
        # Between an entry that is not published and the next one, which names it, the gateway must not ask Redis for
        # the time.
        with processes.stopped(processes.descendants(self.gateway.process.pid)):
            missed = (int(time.time() * 1000) - EPOCH_MS) * 4096 + self.silent * 64
            entry = json.dumps(events.post(missed, "missed"))
            self.redis.client.xadd(f"sluice:{{{self.silent}}}:log", {"p": first, "e": entry}, id=f"{missed}-0")
            time.sleep(0.002)  # the next id is in a later millisecond
            return first, [str(missed), self.post(self.silent_user)]

    def heard(self, post):
        with self.gateway.stream(f"{FIREHOSE}?hello=true") as stream:
            return int(stream.next()["cursor"].partition("~")[0]) >= int(post)

    def bring_back(self):
        self.redis.client.execute_command("ACL", "SETUSER", "gate", "allkeys")

    def is_whole(self):
        return self.gateway.metrics()["sluice_order_shards_behind"] == 0


def test_cursors_say_which_shard_is_behind_and_late_events_where_one_stands(servers, cli_for):
    shard = LeftBehind(servers, cli_for)
    with shard.gateway.stream(FIREHOSE, "sse") as stream:
        low, late = shard.leave_behind()
        passed = [shard.post(shard.user) for _ in range(3)]
        got = stream.until(passed[-1])
        assert ids(got) == list(map(int, [low, *passed]))
        assert [event.sse_id for event in got[:1]] == [low]
        head, _, rest = got[-1].sse_id.partition("~")
        assert head == passed[-1] and int(rest.partition(":")[2], 16) == 1 << shard.silent
        assert int(low) <= int(rest.partition(":")[0]) < int(passed[0])
        while_behind = got[-1].sse_id
        with shard.gateway.stream(FIREHOSE + "?cursors=true") as other:
            assert other.next().json == {"type": "cursor", "id": while_behind}
        shard.bring_back()
        got = stream.until(late[-1])
    assert [event["id"] for event in got] == late
    for event in got:
        bits = f"{1 << shard.silent:x}"
        assert event["late"] is True
        assert event.sse_id == event["cursor"] == f"{passed[-1]}~{event['id']}:{bits}"
    eventually(shard.is_whole, "it has caught up")
    last = shard.post(shard.user)
    for cursor, wanted in ((while_behind, late), (got[0]["cursor"], late[1:]), (got[1]["cursor"], [])):
        with shard.gateway.stream(f"{FIREHOSE}?since={cursor}") as stream:
            came = stream.until(last)
        assert [event["id"] for event in came] == [*wanted, last]
        assert all("late" in event for event in came[:-1]) and "late" not in came[-1]
    headers = {"Last-Event-ID": while_behind}
    with shard.gateway.stream(FIREHOSE, "sse", headers=headers) as stream:
        assert [event["id"] for event in stream.until(last)] == [*late, last]


def test_who_comes_with_a_plain_id_is_told_what_came_late(servers, cli_for):
    shard = LeftBehind(servers, cli_for)
    with shard.gateway.stream(FIREHOSE) as stream:
        low, late = shard.leave_behind()
        passed = [shard.post(shard.user) for _ in range(3)]
        stream.until(passed[-1])
        since = f"{FIREHOSE}?since={passed[1]}"

        def gap_of(gateway):
            with gateway.stream(since) as other:
                return other.until(lambda message: message.type == "gap")[-1].json
        gap = gap_of(shard.gateway)  # while the shard is unavailable
        assert int(low) <= int(gap["from"]) < int(late[0])
        assert gap == {"type": "gap", "from": gap["from"], "to": passed[1], "reason": "late",
                       "shard": shard.silent}
        shard.bring_back()
        stream.until(late[-1])
    eventually(shard.is_whole, "it has caught up")
    assert {**gap_of(shard.gateway), "from": 0} == {**gap, "from": 0}
    with shard.gateway.stream(f"{FIREHOSE}?since={gap['from']}") as other:
        assert set(late) <= {event["id"] for event in other.until(late[-1])}
    log = f"sluice:{{{shard.silent}}}:log"
    eventually(lambda: '"late"' in shard.redis.client.xrevrange(log, count=1)[0][1]["e"], "it is marked")
    invalid = shard.gateway.metrics()['sluice_events_refused_total{reason="invalid"}']
    assert invalid == 0
    another = shard.start()  # it was not running then: the log has it
    told = gap_of(another)
    assert told["reason"] == "late" and told["shard"] == shard.silent and told["to"] == passed[1]
    assert int(told["from"]) < int(late[0])
