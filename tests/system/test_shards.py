"""sluice shards: contents of the shards of a database, and moving them between the masters of a cluster."""

import collections
import json
import re
import signal
import subprocess
import threading

import pytest
import redis

from harness import programs
from harness.cli import Cli
from harness.producers import Writer
from harness.redis_server import shard_of
from harness.waiting import eventually


@pytest.fixture(scope="module")
def cli(cluster):
    cli = Cli(cluster)
    for n in range(12):
        cli.run("user", "add", f"user{n}")
        cli.run("post", "--user", f"user{n}", "text")
    return cli


def name(node):
    return f"127.0.0.1:{node.port}"


def rows(cli):
    return [json.loads(line) for line in cli.run("shards", "list", "--json").splitlines()]


def planned(text):
    """Parses the output of 'sluice shards plan': {shard: HOST:PORT}."""
    moves = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            assert line.startswith("sluice shards move "), line
            *shards, target = line.split()[3:]
            moves.update({int(shard): target for shard in shards})
    return moves


def test_list_says_what_each_shard_has_and_where(cluster, cli):
    listed = rows(cli)
    assert [row["shard"] for row in listed] == list(range(64))
    for row in listed:
        owner = cluster.owner(row["shard"])
        log = f"sluice:{{{row['shard']}}}:log"
        assert row["slot"] == cluster.slot(row["shard"]) and row["node"] == name(owner)
        assert row["keys"] == owner.ask("COUNTKEYSINSLOT", row["slot"])
        assert row["log_entries"] == owner.client.xlen(log)
        assert row["log_bytes"] == (owner.client.memory_usage(log, samples=5) or 0)
        assert not row["half_moved"] and row["to"] is None
    assert sum(row["log_entries"] for row in listed) == 24  # users and posts
    assert sum(row["events_per_second"] for row in listed) == pytest.approx(24 / 60, rel=0.01)
    assert max(row["share_of_busiest"] for row in listed) == 1


def test_list_for_people_sums_up_the_nodes(cluster, cli):
    shards, nodes = cli.run("shards", "list").split("\n\n")
    assert len(shards.splitlines()) == 65
    counts = {line.split()[0]: int(line.split()[1]) for line in nodes.splitlines()[1:]}
    assert counts.keys() == {name(node) for node in cluster.nodes[:3]} and sum(counts.values()) == 64


@pytest.mark.one_redis("the list has one node")
def test_list_of_one_redis(servers):
    redis = servers.redis(shards=8)
    cli = Cli(redis)
    user = cli.run("user", "add", "ada")
    cli.run("post", "--user", "ada", "text")
    listed = rows(cli)
    assert len(listed) == 8 and len({row["node"] for row in listed}) == 1
    assert [row["log_entries"] for row in listed] == [2 * (row["shard"] == shard_of(user)) for row in listed]
    assert sum(row["keys"] for row in listed) == redis.client.dbsize()
    cli.run("shards", "plan", status=1)
    assert "not a cluster" in cli.done.stderr


def test_list_makes_no_database(servers):
    redis = servers.redis(shards=None)
    cli = Cli(redis)
    cli.run("shards", "list", status=1)
    assert "no Sluice database" in cli.done.stderr and redis.client.dbsize() == 0


def test_plan_empties_a_master_and_says_what_each_would_have(cluster, cli):
    leaving = name(cluster.nodes[0])
    said = cli.run("shards", "plan", "--by", "shards", "--drain", leaving)
    assert planned(said).keys() == {row["shard"] for row in rows(cli) if row["node"] == leaving}
    assert set(planned(said).values()) == {name(node) for node in cluster.nodes[1:3]}
    shares = {line.split()[1]: int(line.split()[3]) for line in said.splitlines() if line.startswith("# 127")}
    assert shares[leaving] == 0 and sorted(shares.values()) == [0, 32, 32]


def test_plan_refuses_what_is_no_master(cluster, cli):
    cli.run("shards", "plan", "--drain", name(cluster.nodes[3]), status=1)
    assert "is a replica" in cli.done.stderr and name(cluster.nodes[0]) in cli.done.stderr
    cli.run("shards", "plan", "--drain", "127.0.0.1:1", status=1)
    assert "not a node of the cluster" in cli.done.stderr
    cli.run("shards", "plan", *(word for node in cluster.nodes[:3] for word in ("--drain", name(node))), status=1)
    assert "must stay" in cli.done.stderr
    cli.run("shards", "plan", "--by", "size", status=2)


# ---- moving ----


def name_of_owner(cli, shard):
    return rows(cli)[shard]["node"]


def other_master(cluster, shard):
    owner = cluster.owner(shard)
    return next(node for node in cluster.nodes[:3] if node is not owner)


def stream(client, key):
    """A stream with its groups and pending entries; when a consumer was last seen does not matter."""
    info, groups = client.xinfo_stream(key), client.xinfo_groups(key)
    owed = {group["name"]: [(entry["message_id"], entry["consumer"], entry["times_delivered"])
                            for entry in client.xpending_range(key, group["name"], "-", "+", 100)] for group in groups}
    return (client.xrange(key), groups, owed,
            {field: info[field] for field in ("length", "last-generated-id", "max-deleted-entry-id", "entries-added")})


def content(cluster, shard):
    """Everything in the slot of the shard; for its streams also what a copy of the entries might lose. Without what
    gateways exchange about the use of subjects, which they write at any time."""
    client, slot = cluster.owner(shard).client, cluster.slot(shard)
    raw = redis.Redis(port=cluster.owner(shard).port)
    return {key: stream(client, key) if client.type(key) == "stream" else (raw.dump(key), client.pttl(key) > 0)
            for key in client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10000) if ":use:" not in key}


@pytest.fixture
def by_parts(cluster):
    if cluster.moves_in_one_piece:
        pytest.skip("these servers move a slot in one piece")


@pytest.fixture
def in_one_piece(cluster):
    if not cluster.moves_in_one_piece:
        pytest.skip("these servers move a slot key by key")


@pytest.fixture(scope="module")
def full(cluster, cli):
    """A shard with something of everything: a user, posts, foreign keys, an expiry, a group, a trimmed log."""
    shard = shard_of(cli.run("user", "add", "full"))
    for n in range(20):
        cli.run("post", "--user", "full", f"post {n}")
    client, log = cluster.owner(shard).client, f"sluice:{{{shard}}}:log"
    client.xdel(log, client.xrange(log)[3][0])
    client.xtrim(log, maxlen=15, approximate=False)
    client.set(f"other:{{{shard}}}:key \r\n", b"\x00\xff", px=3600000)
    client.xadd(f"sluice:{{{shard}}}:tasks", {"kind": "none", "id": "1", "kept": "for nobody"}, id="9-1")
    client.xreadgroup("workers", "somebody", {f"sluice:{{{shard}}}:tasks": ">"})
    yield shard
    cluster.owner(shard).client.delete(f"sluice:{{{shard}}}:tasks")


def test_moved_shard_is_the_same_at_the_other_master(cluster, cli, full):
    source, target, before = cluster.owner(full), other_master(cluster, full), content(cluster, full)
    said = cli.run("shards", "move", full, name(target))
    done = r"\d+ keys by the servers themselves in " if cluster.moves_in_one_piece else r"15 events and .*, writers waited "
    assert re.match(f"shard {full}: {name(source)} -> {name(target)}, {done}", said), said
    cluster.wait_whole()
    assert cluster.owner(full) is target and content(cluster, full) == before
    assert source.ask("COUNTKEYSINSLOT", cluster.slot(full)) == 0
    assert name_of_owner(cli, full) == name(target) and not rows(cli)[full]["half_moved"]
    assert "is at" in cli.run("shards", "move", full, name(target))
    cli.run("post", "--user", "full", "goes on")


def test_move_ends_when_every_node_has_heard(by_parts, cluster, cli, full):
    """Otherwise, if a replica is promoted before it knows, Redis 7.0 would forget who has the slot."""
    slot, target, replica = cluster.slot(full), other_master(cluster, full), cluster.nodes[5]

    def keep_deaf():
        while not target.has_slot(slot):
            replica.cut_links()
        for _ in range(50):
            replica.cut_links()
    deaf = threading.Thread(target=keep_deaf, daemon=True)
    deaf.start()
    said = cli.run("shards", "move", full, name(target))
    assert "does not know yet" not in said and replica.port_of(slot) == target.port
    deaf.join()
    cluster.wait_whole()
    with replica.hanging():  # nodes that cannot be promoted are not waited for
        said = cli.run("shards", "move", full, name(other_master(cluster, full)))
    assert "does not know yet" not in said
    cluster.wait_whole()


def test_mover_that_is_killed_anywhere_is_gone_on_with(cluster, cli, full):
    """After its first command, its second, ... until it finishes. Scripts refuse while the shard is half moved, or find
    all of it."""
    killer = Cli(cluster)
    killer.environment = dict(killer.environment)
    killed, seen_half, behind = 0, 0, 0
    while True:
        behind += 1 + behind // 20
        before, target = content(cluster, full), other_master(cluster, full)
        killer.environment["SLUICE_KILLED_BEHIND"] = str(behind)
        died = subprocess.run([programs.sluice_killed(), "shards", "move", str(full), name(target)],
                              env=killer.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert died.returncode in (0, -signal.SIGKILL), died.stderr
        if died.returncode == 0:
            break
        killed += 1
        row = rows(cli)[full]
        seen_half += row["half_moved"]
        assert not row["half_moved"] or row["to"] == name(target)
        cli.run("shards", "move", full, name(target))
        assert cluster.owner(full) is target and content(cluster, full) == before, f"killed behind command {behind}"
    assert not seen_half if cluster.moves_in_one_piece else killed > 20 and seen_half > 10
    assert killed > 5
    cluster.wait_whole()


def test_servers_that_can_move_a_shard_in_one_piece(in_one_piece, cluster, cli, full):
    source, target = cluster.owner(full), other_master(cluster, full)
    before = source.moves_made()
    writer = Writer(cluster, "full")
    writer.begin(2)
    cli.run("shards", "move", full, name(target))
    writer.wait_for(2)
    writer.finish()
    assert cluster.owner(full) is target
    assert source.moves_made() == before + 1
    assert source.ask("COUNTKEYSINSLOT", cluster.slot(full)) == 0
    cluster.wait_whole()


def test_shard_is_moved_while_it_is_written_to(cluster, cli, full, module_servers):
    gateway = module_servers.gateway(cluster.url)
    writers = [Writer(cluster, "full") for _ in range(2)]
    with gateway.stream("/v1/stream/firehose") as stream:
        for writer in writers:
            writer.start()
        for _ in range(6):
            for writer in writers:
                writer.wait_for(2)
            cli.run("shards", "move", full, name(other_master(cluster, full)))
        for writer in writers:
            writer.wait_for(2)
        posts = sorted(post for writer in writers for post in writer.finish())
        heard = []
        while len(heard) < len(posts):
            event = stream.next()
            assert event["type"] != "gap", event
            if event["type"] == "post":
                heard.append(int(event["id"]))
    assert heard == posts
    assert [post for post in cluster.posts(full) if post >= posts[0]] == posts
    cluster.wait_whole()


def test_move_refuses_precisely(cluster, cli, full, servers):
    target = other_master(cluster, full)
    cli.run("shards", "move", full, name(cluster.nodes[3]), status=1)
    assert "is a replica" in cli.done.stderr
    cli.run("shards", "move", full, "127.0.0.1:1", status=1)
    assert "not a node of the cluster" in cli.done.stderr
    for shards in (["64"], ["x"], ["9-4"], ["-1"], []):
        cli.run("shards", "move", "--", *shards, name(target), status=2)
    target.client.config_set("maxmemory", "1mb")
    cli.run("shards", "move", full, name(target), status=1)
    assert "has room for" in cli.done.stderr and "maxmemory 1.0 MB" in cli.done.stderr
    target.client.config_set("maxmemory", "0")
    alone = Cli(servers.redis(shards=8, kind="unix"))
    alone.run("shards", "move", "0", name(target), status=1)
    assert "not a cluster" in alone.done.stderr
    assert not any(row["half_moved"] for row in rows(cli) if row["shard"] != full)
    cli.run("shards", "move", full, name(target))
    cluster.wait_whole()


def test_move_by_parts_refuses_what_it_would_lose(by_parts, cluster, cli, full):
    log, target = f"sluice:{{{full}}}:log", other_master(cluster, full)
    cluster.owner(full).client.xgroup_create(log, "strangers")
    cli.run("shards", "move", full, name(target), status=1)
    assert "consumer groups" in cli.done.stderr
    cluster.owner(full).client.xgroup_destroy(log, "strangers")


def carry_out(cli, plan):
    for line in plan.splitlines():
        if not line.startswith("#"):
            cli.run(*line.split()[1:])


def test_master_is_added_gets_its_share_and_is_emptied(cluster, cli, full):
    node = cluster.add_master()
    before = content(cluster, full)
    carry_out(cli, cli.run("shards", "plan", "--by", "shards"))
    shares = collections.Counter(row["node"] for row in rows(cli))
    assert sorted(shares.values()) == [16, 16, 16, 16] and shares[name(node)] == 16
    assert "nothing to move" in cli.run("shards", "plan", "--by", "shards")
    carry_out(cli, cli.run("shards", "plan", "--by", "shards", "--drain", name(node)))
    assert name(node) not in {row["node"] for row in rows(cli)}
    assert content(cluster, full) == before
    cli.run("post", "--user", "full", "text")
    cluster.remove(node)
    cluster.wait_whole()


def test_source_that_fails_over_in_the_middle_is_gone_on_with(cluster, cli, full):
    """A promoted replica does not know about open slots, except for the marker; scripts never find half of a shard."""
    before, source, target = content(cluster, full), cluster.owner(full), other_master(cluster, full)
    slot, prefix = cluster.slot(full), f"sluice:{{{full}}}:"
    source.client.hset(f"{prefix}meta", "moving", name(target))
    target.ask("SETSLOT", slot, "IMPORTING", source.id)
    source.ask("SETSLOT", slot, "MIGRATING", target.id)
    source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 10000, "KEYS", f"{prefix}tasks", f"{prefix}logins")
    replica = cluster.replica_of(source)
    assert source.client.wait(1, 10000) == 1
    cluster.promote(replica)
    eventually(lambda: source.master_port() == replica.port, "the source is a replica", 60)
    assert replica.client.hget(f"{prefix}meta", "moving") == name(target)
    hearing = [node for node in cluster.nodes if node is not target]  # a node that imports a slot accepts no other owner
    eventually(lambda: all(node.port_of(slot) == replica.port for node in hearing), "all have heard of it", 60)
    assert name_of_owner(cli, full) == name(replica)
    listed = rows(cli)[full]
    assert listed["half_moved"] and listed["to"] == name(target)
    cli.run("post", "--user", "full", "now?", status=1)
    assert f"is being moved to {name(target)}" in cli.done.stderr
    cli.run("shards", "plan", status=1)
    assert f"sluice shards move {full} {name(target)}" in cli.done.stderr
    third = next(node for node in cluster.nodes[:3] if node is not source and node is not target)
    for elsewhere in (third, replica):
        cli.run("shards", "move", full, name(elsewhere), status=1)
        assert f"sluice shards move {full} {name(target)}" in cli.done.stderr
    cli.run("shards", "move", full, name(target))
    cluster.wait_whole()
    assert content(cluster, full) == before
    cli.run("post", "--user", "full", "the end")
