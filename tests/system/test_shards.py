"""sluice shards: what the shards of a database have, and moving them between the masters of a cluster."""

import json

import pytest

from harness.cli import Cli
from harness.redis_cluster import RedisCluster
from harness.redis_server import shard_of


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = RedisCluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def cli(cluster):
    cli = Cli(cluster)
    cli.run("init")
    for n in range(12):
        cli.run("user", "add", f"user{n}")
        cli.run("post", "--user", f"user{n}", "text")
    return cli


def name(node):
    return f"127.0.0.1:{node.port}"


def rows(cli):
    return [json.loads(line) for line in cli.run("shards", "list", "--json").splitlines()]


def planned(text):
    """{shard: HOST:PORT} of what 'sluice shards plan' prints."""
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
    assert sum(row["log_entries"] for row in listed) == 12
    assert sum(row["events_per_second"] for row in listed) == pytest.approx(12 / 60, rel=0.01)
    assert max(row["share_of_busiest"] for row in listed) == 1


def test_list_for_people_sums_up_the_nodes(cluster, cli):
    shards, nodes = cli.run("shards", "list").split("\n\n")
    assert len(shards.splitlines()) == 65
    counts = {line.split()[0]: int(line.split()[1]) for line in nodes.splitlines()[1:]}
    assert counts.keys() == {name(node) for node in cluster.nodes[:3]} and sum(counts.values()) == 64


def test_list_of_one_redis(servers):
    redis = servers.redis(shards=8)
    cli = Cli(redis)
    user = cli.run("user", "add", "ada")
    cli.run("post", "--user", "ada", "text")
    listed = rows(cli)
    assert len(listed) == 8 and len({row["node"] for row in listed}) == 1
    assert [row["log_entries"] for row in listed] == [int(row["shard"] == shard_of(user)) for row in listed]
    assert sum(row["keys"] for row in listed) == redis.client.dbsize()
    cli.run("shards", "plan", status=1)
    assert "no cluster" in cli.done.stderr


def test_list_makes_no_database(servers):
    redis = servers.redis(shards=1)
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
    assert "no node of the cluster" in cli.done.stderr
    cli.run("shards", "plan", *(word for node in cluster.nodes[:3] for word in ("--drain", name(node))), status=1)
    assert "has to stay" in cli.done.stderr
    cli.run("shards", "plan", "--by", "size", status=2)
