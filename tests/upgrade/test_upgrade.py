"""Programs of an older commit and of this tree with one database: side by side, and replacing each other."""

import json

import pytest

from harness import processes, programs
from harness.api import Api
from harness.cli import Cli
from harness.followers import WITHOUT_DICTIONARY, id_of
from harness.servers import SHARDS
from harness.streams import Collector, Refused
from harness.waiting import eventually
from harness.wall_clock import WallClock
from world import (ALL_TYPES, NO_TASKS, PEOPLE, ApiWriter, CommandWriter, Keeper, ReplayWriter, World, fill, is_within,
                   lines, logged, milliseconds, read_everything, read_list)

ROUNDS = 8  # in each, both programs write
EVENTS = 400  # in each replay, and between two takeovers
# With several shards the old programs' cursor is a single number for all: when a client changes to or from an old
# program, events within this many milliseconds of it may be missing or repeated.
NEAR_MS = 100


@pytest.fixture
def world(servers, old):
    return World(servers, old)


def assert_same(old, new):
    assert old.keys() == new.keys()
    for what, said in old.items():
        assert is_within(said, new[what]), (what, said, new[what])


def test_what_the_old_wrote_is_read_as_before(world):
    posts = fill(world, 1500)
    old, new = world.gateway(True), world.gateway(False)
    before = read_everything(world, old, posts)
    assert_same(before, read_everything(world, new, posts))
    assert world.count("tasks") > 0
    # New workers do what old programs left to do, and vice versa.
    world.new.run("worker", "--until-empty")
    world.new.run("post", "--user", "u5", "--reply-to", posts[0], "by the new one")
    world.new.run("unfollow", "u6", "u7")
    world.old.run("worker", "--until-empty")
    assert world.count("tasks") == world.count("dead") == 0
    assert world.tasks_ended() == world.tasks_left()
    after = read_everything(world, old, posts)
    assert_same(after, read_everything(world, new, posts))
    assert after[posts[0]]["comments"] == 4
    for command in (["user", "show", *world.people], ["read", *posts], ["home", "u1", "--limit", 200],
                    ["posts", "u2"], ["followers", "u3"], ["following", "u3"], ["likes", posts[0]],
                    ["comments", posts[0]], ["common", "followers", "u1", "u2"]):
        assert is_within(lines(world.old.run(*command)), lines(world.new.run(*command))), command


def test_side_by_side(world):
    gateways = [world.gateway(is_old) for is_old in (True, False)]
    world.redis.client.config_resetstat()
    ended_before, left_before = world.tasks_ended(), world.tasks_left() - world.count("tasks")
    keepers = [Keeper(world, gateway, transport) for gateway in gateways for transport in WITHOUT_DICTIONARY]
    start = keepers[0].storm.start
    workers = [world.worker(cli) for cli in (world.old, world.new)]
    old, new = gateways
    people = world.people
    by_hand = [CommandWriter(world.old, "u8", "u9"), CommandWriter(world.new, "u10", "u11"),
               ApiWriter(old, people["u2"], people["u3"], read_by=new),
               ApiWriter(new, people["u4"], people["u5"], read_by=old)]
    replays = [ReplayWriter(world.old, 1, beside_workers=world), ReplayWriter(world.new, 2, beside_workers=world)]
    eventually(lambda: all(writer.made >= ROUNDS or writer.fault for writer in by_hand) and
               all(writer.made >= EVENTS or writer.fault for writer in replays), "enough was written", 120)
    for writer in (*by_hand, *replays):
        writer.stop()
    world.wait_tasks()
    wanted = logged(world, start)
    for keeper in keepers:
        eventually(lambda k=keeper: len(k.seen) >= len(wanted), f"{keeper.transport} has got everything")
        keeper.stop()
        assert not keeper.faults and not keeper.gaps and keeper.connections == 1
        assert keeper.bytes.keys() == wanted.keys() and len(keeper.ids) == len(wanted)
        assert keeper.bytes == keepers[0].bytes
    assert_as_logged(keepers[0], wanted)
    assert world.tasks_ended() - ended_before == world.tasks_left() - left_before
    for worker in workers:
        worker.stop()
    assert_same(*(read_everything(world, gateway, []) for gateway in gateways))


def test_one_takes_the_place_of_the_other(world):
    """Under load, and back; every client resumes with the cursor that the other gateway gave it."""
    gateway = world.gateway(True)
    keepers = [Keeper(world, gateway, transport) for transport in WITHOUT_DICTIONARY]
    writers = [ReplayWriter(world.old, 1), ReplayWriter(world.new, 2)]
    for is_old in (False, True, False):
        wait_for_more(keepers)
        gateway = world.take_over(gateway, is_old)
    wait_for_more(keepers)
    for writer in writers:
        writer.stop()
    wanted = logged(world, keepers[0].storm.start)
    last = max(wanted)
    for keeper in keepers:
        eventually(lambda k=keeper: last in k.seen, f"{keeper.transport} has got the last")
        keeper.stop()
        assert not keeper.faults and not keeper.gaps, (keeper.faults, keeper.gaps)
        assert keeper.connections >= 4 and keeper.disconnects["draining"] == 3
        check_exactly_once(keeper, wanted)
        assert_as_logged(keeper, wanted)

    # A cursor of one is valid in the other: the same events follow, in the same bytes.
    old = world.gateway(True)
    for cursor in {cursor for keeper in keepers for cursor in keeper.cursors[1:]}:
        count = sum(event_id > id_of(cursor) for event_id in wanted)
        behind = []
        for one in (old, gateway):
            with one.stream(f"{ALL_TYPES}&since={cursor}") as stream:
                behind.append({message["id"]: message.raw for message in [stream.next() for _ in range(count)]})
        assert len(behind[0]) == count and behind[0] == behind[1]


@pytest.mark.skipif(programs.have_sanitizer(), reason="with a sanitizer there is no clock shim")
def test_a_mark_of_late_events_is_passed_over(servers, old):
    """It is in logs and on channels; the old gateway counts it as unknown, and continues."""
    clock = WallClock(servers.folder / "clock")
    redis = servers.redis(shards=8, env=clock.environment)
    new_cli, old_cli = Cli(redis), Cli(redis, build=old)
    people = [new_cli.run("user", "add", f"u{n}") for n in range(PEOPLE)]
    new, beside = (servers.gateway(redis, *NO_TASKS, build=build) for build in (None, old))
    follower = Collector(beside.stream(ALL_TYPES))
    follow_new = Collector(new.stream(ALL_TYPES))
    first = new_cli.run("post", "--user", "u0", "first")
    follow_new.wait_id(first)
    with processes.stopped(new.workers()):
        clock.set(-600)
        posts = [new_cli.run("post", "--user", f"u{n}", "late perhaps") for n in range(PEOPLE)]
    marks = eventually(lambda: [event for event in redis.log() if event["type"] == "late"], "late events are marked")
    posts += [cli.run("post", "--user", f"u{n}", "and on") for n in range(PEOPLE) for cli in (old_cli, new_cli)]
    for post in (first, *posts):
        follower.wait_id(post)
    assert beside.metrics()['sluice_events_refused_total{reason="invalid"}'] >= len(marks) > 0
    with beside.stream(f"{ALL_TYPES}&since={int(people[0])}") as stream:
        got = {stream.next()["id"] for _ in range(1 + len(posts))}
    assert got == {first, *posts}


def test_revocations_are_passed_over(world):
    """Old gateways do not know them: their streams continue, and lack nothing. New ones obey them, even if old ones
    run."""
    old, new = world.gateway(True), world.gateway(False)
    token = new.token(sub="leaver")
    with old.stream(ALL_TYPES, token=token) as stays, new.stream(ALL_TYPES, token=token) as ends:
        made = world.new.run("revoke", "--sub", "leaver")
        assert ends.to_end()[-1]["code"] == "token_revoked"
        posted = world.old.run("post", "--user", "u1", "behind it")
        assert stays.next()["id"] == posted
        assert old.metrics()["sluice_events_refused_total{reason=\"invalid\"}"] == 1
    world.new.run("config", "set", "token-life", "1d")
    world.old.run("config", "list")
    world.old.run("worker", "--until-empty")
    successor = world.take_over(old, False)
    for gateway in (new, successor):
        with pytest.raises(Refused) as refused:
            gateway.stream(ALL_TYPES, token=token)
        assert refused.value.response.error["code"] == "token_revoked"
    with new.stream(ALL_TYPES + f"&since={made}") as stream:
        assert stream.next()["id"] == posted


def test_changes_of_users_are_passed_over(world):
    """The old gateway counts them as unknown; otherwise its streams lack nothing, neither live nor from the log."""
    old, new = world.gateway(True), world.gateway(False)
    first = world.old.run("post", "--user", "u0", "first")
    with old.stream(ALL_TYPES + f"&since={int(first) - 1}") as before, new.stream(f"{ALL_TYPES},user&since={first}") as told:
        assert before.next()["id"] == first
        made = world.new.run("user", "add", "newcomer")
        world.new.run("user", "rename", "u0", "Another")
        world.old.run("user", "rename", "u1", "Untold")
        posts = [cli.run("post", "--user", who, "behind it") for cli in (world.old, world.new) for who in ("newcomer", "u0")]
        world.old.run("follow", "newcomer", "u0")
        assert [message["id"] for message in before.until(posts[-1])] == posts
        got = told.until(lambda message: message.type == "follow")
        assert [message.type for message in got] == ["user", "user"] + ["post"] * 4 + ["follow"]
        assert got[0]["id"] == made and got[1]["user"]["name"] == "Another"
        assert old.metrics()['sluice_events_refused_total{reason="invalid"}'] == 2
    with old.stream(ALL_TYPES + f"&since={int(first) - 1}") as again:
        assert [again.next()["id"] for _ in range(5)] == [first, *posts]
    assert Api(old, made).get("/v1/users/me")["login"] == "newcomer"


def wait_for_more(keepers):
    goals = [(keeper, len(keeper.seen) + EVENTS) for keeper in keepers]
    eventually(lambda: all(len(keeper.seen) >= goal for keeper, goal in goals), "events have come", 60)


def check_exactly_once(keeper, wanted):
    def is_near_a_cursor(event_id):
        return SHARDS > 1 and any(abs(milliseconds(event_id) - milliseconds(id_of(cursor))) <= NEAR_MS
                                  for cursor in keeper.cursors)
    got = [event_id for event_id in keeper.ids if event_id in wanted]
    twice = [event_id for event_id in set(got) if got.count(event_id) > 1]
    missing = [event_id for event_id in wanted if event_id not in keeper.seen]
    assert [event_id for event_id in twice + missing if not is_near_a_cursor(event_id)] == []


def assert_as_logged(keeper, wanted):
    """Every event comes exactly as it was logged, except for deletions, of which less is sent than logged."""
    for event_id, said in keeper.bytes.items():
        event = json.loads(said)
        assert said == wanted[event_id] or event["type"] == "delete" and \
            is_within({"id": event["post"]["id"]}, json.loads(wanted[event_id])["post"])


REFUSED = "the database has schema '2', this program knows 1"  # in the words of the old programs


def test_an_upgraded_database_is_refused_by_name(world):
    posts = fill(world, 300)
    old, new = world.gateway(True), world.gateway(False)
    worker = world.worker(world.old)
    liker = Api(new, world.people["u3"])
    assert "not yet" in world.new.run("upgrade")
    world.old.run("post", "--user", "u0", "to ask has changed nothing")
    world.wait_tasks()
    before = read_everything(world, new, posts)
    assert read_list(liker, "/v1/users/me/likes") == []

    home = world.redis.key(liker.sub, f"home:{liker.sub}")
    assert world.redis.client.type(home) == "zset"

    keeper = Keeper(world, old, "ndjson")
    said = world.new.run("upgrade", "--yes")
    assert "not yet" not in said and "in part" not in said
    assert said.endswith(world.new.run("upgrade"))
    assert world.new.run("upgrade", "--yes") == world.new.run("upgrade")
    assert_same(before, read_everything(world, new, posts))
    assert {post["id"] for post in read_list(liker, "/v1/users/me/likes")} == {posts[0], posts[1]}
    liker.close()
    assert world.redis.client.type(home) == "list"

    # The old programs report why they do nothing; their open streams continue.
    assert "the database has schema 2, not 1" in worker.ended(1)
    world.old.run("post", "--user", "u0", "never", status=1)
    assert REFUSED in world.old.done.stderr
    Api(old, world.people["u0"]).expect(503, "POST", "/v1/posts", {"text": "never"})
    assert 'why="the database has schema 2, not 1"' in old.log()
    late = world.gateway(True, start=False).launch()
    eventually(lambda: f'reason="{REFUSED}"' in late.log(), "it says why it does not begin")
    post = world.new.run("post", "--user", "u0", "by the new one")
    eventually(lambda: int(post) in keeper.seen, "an old stream goes on")
    keeper.stop()
    world.new.run("worker", "--until-empty")


def test_an_upgrade_that_broke_off_goes_on(world):
    posts = fill(world, 50)
    for shard in range(0, SHARDS, 2):
        world.redis.client.hset(f"sluice:{{{shard}}}:meta", "schema", "2")
    world.new.run("worker", "--until-empty")
    before = read_everything(world, world.gateway(False), posts)
    assert "not yet" in world.new.run("upgrade")
    world.new.run("upgrade", "--yes")
    assert {world.redis.client.hget(key, "schema") for key in world.shard_keys("meta")} == {"2"}
    assert_same(before, read_everything(world, world.gateway(False), posts))


def test_an_upgrade_under_load(world):
    """The newer programs write, read and run tasks meanwhile; afterwards everything is in its place."""
    fill(world, 300)
    gateway = world.gateway(False)
    world.new.run("worker", "--until-empty")
    read_everything(world, gateway, [])  # whose home timelines are maintained from now on
    keeper = Keeper(world, gateway, "ndjson")
    worker = world.worker(world.new)
    people = world.people
    writers = [ReplayWriter(world.new, 3, beside_workers=world), CommandWriter(world.new, "u8", "u9"),
               ApiWriter(gateway, people["u4"], people["u5"], read_by=gateway)]
    wait_for_more([keeper])
    world.new.run("upgrade", "--yes")
    wait_for_more([keeper])
    for writer in writers:
        writer.stop()
    world.wait_tasks()
    wanted = logged(world, keeper.storm.start)
    eventually(lambda: len(keeper.seen) >= len(wanted), "everything has come")
    keeper.stop()
    assert keeper.bytes.keys() == wanted.keys() and len(keeper.ids) == len(wanted) and not keeper.gaps
    worker.stop()
    for login, user in people.items():
        reader = Api(gateway, user)
        authors = [user, *(one["id"] for one in read_list(reader, "/v1/users/me/following"))]
        posts = [post["id"] for author in authors for post in read_list(reader, f"/v1/users/{author}/posts")]
        home = [post["id"] for post in read_list(reader, "/v1/timelines/home")]
        assert home == sorted(posts, key=int, reverse=True)[:800], login
        reader.close()
