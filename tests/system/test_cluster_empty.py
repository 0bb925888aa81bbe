"""A Redis Cluster that has lost its data, all of it or that of a node: what is recreated, and what clients are told."""

import re
import signal

import pytest

from harness import events
from harness.cli import Cli
from harness.redis_cluster import RedisCluster
from harness.redis_server import shard_of
from harness.streams import Collector
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"
SHARDS = 8


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = RedisCluster(tmp_path_factory.mktemp("cluster"))
    cluster.shards = SHARDS
    Cli(cluster).run("init", "--shards", SHARDS)
    yield cluster
    cluster.stop()


def databases(cluster):
    """The database id of each shard."""
    return [cluster.owner(shard).client.hget(f"sluice:{{{shard}}}:meta", "database") for shard in range(SHARDS)]


class Site:
    """A user in each of two nodes, two workers, and a client that has received a post of each."""

    def __init__(self, servers, cluster):
        self.cluster, self.cli, self.made = cluster, Cli(cluster), 0
        self.first, self.others = self.user(lambda _: True), None
        self.node = cluster.owner(shard_of(self.first))
        self.others = self.user(lambda user: shard_of(user) not in cluster.shards_of(self.node))
        self.gateway = servers.gateway(cluster.url, "--run-tasks", "on", workers=2)
        self.client = Collector(self.gateway.stream(FIREHOSE))
        self.lost, self.kept = self.post(self.first), self.post(self.others)
        self.database = databases(cluster)[0]
        assert databases(cluster) == [self.database] * SHARDS

    def user(self, is_wanted):
        """Creates a user for whom `is_wanted` is true."""
        while True:
            self.made += 1
            user = self.cli.run("user", "add", f"user{self.made}x{len(self.cluster.entries())}").strip()
            if is_wanted(user):
                return user

    def post(self, user):
        """Creates a post, which the client receives."""
        post = self.cli.run("post", "--user", user, "hello").strip()
        self.client.wait_id(post)
        return post

    def is_told(self, post):
        """Expects that it is reported as lost."""
        return any(int(gap["from"]) < int(post) <= int(gap["to"]) and gap["shard"] == shard_of(post)
                   for gap in self.client.messages if gap.type == "gap" and gap["reason"] == "rewound")

    def heard(self):
        return self.gateway.metrics()["sluice_shards_heard"]

    def admin(self):
        return {"Authorization": f"Bearer {self.gateway.token('admin')}"}

    def leave(self):
        self.gateway.begin_stop()
        self.client.wait_end()
        self.client.close()


@pytest.fixture
def site(servers, cluster):
    site = Site(servers, cluster)
    yield site
    site.leave()


def restart_empty(cluster):
    cluster.stop(signal.SIGKILL)
    for node in cluster.nodes:
        node.start()
    cluster.wait_whole()


def flush(cluster):
    for node in cluster.owners():
        node.client.flushall()


@pytest.mark.parametrize("empty", [flush, restart_empty])
def test_a_cluster_that_is_empty_is_made_anew(site, cluster, empty):
    empty(cluster)
    eventually(lambda: len(set(databases(site.cluster))) == 1 and databases(site.cluster)[0] not in (None, site.database),
               "there is a database again, another one")
    site.gateway.wait_status("/readyz", 200)
    eventually(lambda: site.heard() == SHARDS, "all shards are heard")
    for lost in site.lost, site.kept:
        site.post(site.user(lambda user, lost=lost: shard_of(user) == shard_of(lost)))
        assert site.is_told(lost)
    assert len(re.findall(f"event=database_created .*shards={SHARDS}", site.gateway.log())) == 1


def test_the_shards_of_a_node_that_is_empty_are_made_anew_in_the_same_database(site):
    site.node.client.flushall()
    eventually(lambda: databases(site.cluster) == [site.database] * SHARDS, "the database is whole again")
    eventually(lambda: site.heard() == SHARDS, "all shards are heard")
    site.post(site.others)
    site.post(site.user(lambda user: shard_of(user) == shard_of(site.first)))
    assert site.is_told(site.lost) and not site.is_told(site.kept)
    assert "event=shards_empty" in site.gateway.log()


def publish(cluster, user, number):
    """An event in the user's shard that is not logged."""
    shard = shard_of(user)
    cluster.owner(shard).client.execute_command(
        "SPUBLISH", f"sluice:{{{shard}}}:live", events.dump(events.post(number, "not logged")))


def test_shards_of_another_database_are_not_heard(site, cluster):
    shards = cluster.shards_of(site.node)
    for shard in shards:
        site.node.client.hset(f"sluice:{{{shard}}}:meta", "database", "f" * 32)
    eventually(lambda: site.heard() == SHARDS - len(shards), "they are not heard")
    assert site.gateway.get("/readyz").status == 200
    assert "belong to different databases" in site.gateway.get("/readyz?verbose", site.admin()).body.decode()
    site.cli.run("post", "--user", site.others, "hello", status=1)
    assert "belong to different databases" in site.cli.done.stderr
    publish(cluster, site.first, 1)
    publish(cluster, site.others, 2)
    site.client.wait_id("2")
    assert "1" not in site.client.ids
    for shard in shards:
        site.node.client.hset(f"sluice:{{{shard}}}:meta", "database", site.database)
    eventually(lambda: site.heard() == SHARDS, "they are heard again")
    site.post(site.first)
    site.post(site.others)


@pytest.mark.parametrize("who", ["sluice", "sluiced"])
def test_who_begins_where_shard_0_is_gone_finds_the_database_in_others(servers, cluster, who):
    database = databases(cluster)[0]
    cluster.owner(0).client.flushall()
    if who == "sluice":
        Cli(cluster).run("user", "add", "somebody")
    else:
        servers.gateway(cluster.url, "--run-tasks", "off")
    eventually(lambda: databases(cluster) == [database] * SHARDS, "the database is whole again")
