"""sluiced and the command line with a Redis Cluster of three masters and three replicas."""

import json
import os
import pathlib
import signal

import pytest

from harness import events, processes
from harness.api import Api
from harness.cli import Cli
from harness.producers import Writer
from harness.redis_cluster import NODE_TIMEOUT_MS
from harness.redis_server import shard_of
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"


@pytest.fixture(scope="module")
def cli(cluster):
    return Cli(cluster)


@pytest.fixture(scope="module")
def users(cluster, cli):
    """{login: id} of three users, one of each master."""
    found, masters = {}, set()
    for n in range(100):
        user = cli.run("user", "add", f"user{n}")
        if cluster.owner(shard_of(user)) not in masters:
            masters.add(cluster.owner(shard_of(user)))
            found[f"user{n}"] = user
        if len(found) == 3:
            return found
    raise AssertionError("a hundred users live in two nodes")


@pytest.fixture(scope="module")
def followers(cli, users):
    """The others follow the first of them, and read their home timelines, which are therefore maintained from now on.
    """
    author, *followers = users
    for follower in followers:
        cli.run("follow", follower, author)
    cli.run("worker", "--until-empty")
    for follower in followers:
        cli.run("home", follower)
    return followers


@pytest.fixture(scope="module")
def gateway(module_servers, cluster, cli):
    return module_servers.gateway(cluster.url, "--run-tasks", "on", workers=2)


@pytest.fixture
def writer(cluster, users):
    writer = Writer(cluster, next(iter(users)))
    yield writer
    writer.is_over = True
    if writer.is_alive():
        writer.join()


def posts_of(cli, login):
    return sorted(int(json.loads(line)["id"]) for line in cli.run("posts", login, "--limit", "1000").splitlines())


def test_a_node_that_is_named_as_a_redis_alone_says_how_to_name_it(cluster, cli):
    alone = Cli(cluster)
    for node in cluster.nodes:
        alone.run("--redis", f"redis://127.0.0.1:{node.port}", "init", status=1)
        assert "redis+cluster://" in alone.done.stderr


def test_a_database_of_a_cluster_has_all_shards(cluster, cli):
    assert cli.run("init").endswith("shards: 64")
    assert {cluster.owner(shard) for shard in range(64)} == set(cluster.nodes[:3])


def test_a_user_with_the_documented_rights_may_do_all(cluster, cli):
    page = (pathlib.Path(__file__).parents[2] / "docs" / "core.md").read_text()
    rights = [line.split(maxsplit=3)[3] for line in page.splitlines() if line.startswith("    ACL SETUSER sluice ")]
    assert len(rights) == 2
    for node in cluster.nodes:
        for words in rights:
            node.client.execute_command("ACL", "SETUSER", "sluice", *words.replace(">PASSWORD", ">secret").split())
    own = Cli(cluster)
    own.environment["SLUICE_REDIS"] = cluster.url.replace("://", "://sluice:secret@")
    own.run("user", "add", "ada")
    own.run("--wait-replicas", "1", "post", "--user", "ada", "hello")
    own.run("worker", "--until-empty")
    assert json.loads(own.run("home", "ada"))["text"] == "hello"


def test_posts_reach_followers_of_other_nodes(cluster, cli, users, followers):
    author = next(iter(users))
    post = cli.run("post", "--user", author, "to all nodes")
    cli.run("worker", "--until-empty")
    for follower in followers:
        assert json.loads(cli.run("home", follower))["id"] == post
    assert json.loads(cli.run("user", "show", author))["followers"] == 2
    published = [node.client.info("commandstats") for node in cluster.nodes]
    assert not any("cmdstat_publish" in commands for commands in published)
    assert any("cmdstat_spublish" in commands for commands in published)


def post(gateway, user):
    return int(Api(gateway, user).expect(201, "POST", "/v1/posts", {"text": "text"})["id"])


def read_posts(stream, posts):
    """Returns the ids of all posts from the first of `posts` up to the last of them, in the order of arrival. A worker
    that was searching for a moved shard may deliver older ones first."""
    found = []
    while not found or found[-1] != posts[-1]:
        event = stream.next()
        assert event["type"] != "gap", event
        if event["type"] == "post" and int(event["id"]) >= posts[0]:
            found.append(int(event["id"]))
    return found


def test_a_stream_has_the_posts_of_all_nodes_in_order(cluster, cli, users, gateway):
    with gateway.stream(FIREHOSE) as stream:
        posts = [int(cli.run("post", "--user", login, "one of many")) for _ in range(10) for login in users]
        assert read_posts(stream, posts) == posts == sorted(posts)
    for node in cluster.nodes[:3]:
        names = [line["name"] for line in node.client.client_list()]
        assert names.count("sluiced") == 1  # of the intake process, for both workers
        assert names.count("sluiced-streams") <= 2 and names.count("sluiced-api") <= 2


def test_a_shard_that_is_moved_has_one_log_and_nothing_half_done(cluster, cli, users, gateway, writer):
    shard = shard_of(users[writer.login])
    source, target = cluster.owner(shard), cluster.owner(shard_of(list(users.values())[1]))

    def is_refused():
        return "errorstat_MOVING" in source.client.info("errorstats")
    with gateway.stream(FIREHOSE) as stream:
        writer.begin(3)
        cluster.move(shard, target, at_once=2, between=lambda: eventually(is_refused, "a post is refused for now"))
        writer.wait_for(3)
        posts = writer.finish()
        assert read_posts(stream, posts) == posts
    assert cluster.posts(shard)[-len(posts):] == posts
    assert posts_of(cli, writer.login)[-len(posts):] == posts
    assert source.ask("COUNTKEYSINSLOT", cluster.slot(shard)) == 0
    cluster.move(shard, source)
    cluster.wait_whole()


def test_a_failover_in_good_order_loses_no_post(cluster, cli, users, followers, gateway, writer):
    shard = shard_of(users[writer.login])
    replica = cluster.replica_of(cluster.owner(shard))
    with gateway.stream(FIREHOSE) as stream:
        writer.begin(3)
        cluster.promote(replica)
        writer.wait_for(3)
        posts = writer.finish()
        assert read_posts(stream, posts) == posts
    cluster.wait_whole()
    assert cluster.owner(shard) is replica
    assert cluster.posts(shard)[-len(posts):] == posts
    eventually(lambda: all(json.loads(cli.run("home", follower, "--limit", "1"))["id"] == str(posts[-1])
                           for follower in followers), "the tasks have pushed the last post", 60)


@pytest.fixture
def no_failover(cluster):
    """An unavailable master is not replaced, unless the test does that."""
    def set_timeout(milliseconds):
        for node in cluster.nodes:
            if node.is_running():
                node.client.config_set("cluster-node-timeout", milliseconds)
    set_timeout(600000)
    yield
    set_timeout(NODE_TIMEOUT_MS)


@pytest.mark.usefixtures("no_failover")
def test_a_master_that_hangs_holds_up_its_own_shards_only(cluster, users, gateway):
    lost, *others = users.items()
    with gateway.stream(FIREHOSE) as stream:
        with cluster.owner(shard_of(lost[1])).hanging():
            posts = [post(gateway, user) for _ in range(3) for _, user in others]
            assert read_posts(stream, posts) == posts
            assert gateway.get("/readyz").status == 200
        back = post(gateway, lost[1])
        assert read_posts(stream, [back]) == [back]


@pytest.mark.usefixtures("no_failover")
def test_while_a_master_is_away_the_others_go_on(cluster, cli, users, gateway, servers):
    master = cluster.owner(0)  # where a database is looked up first
    lost, *others = sorted(users.items(), key=lambda user: cluster.owner(shard_of(user[1])) is not master)
    replica, away = cluster.replica_of(master), len(cluster.shards_of(master))
    with gateway.stream(FIREHOSE) as stream:
        master.stop(signal.SIGKILL)
        posts = [post(gateway, user) for _ in range(3) for _, user in others]
        posts += [int(cli.run("post", "--user", login, "by the command line")) for login, _ in others]
        cli.run("post", "--user", lost[0], "lost", status=1)
        assert f"shard {shard_of(lost[1])} is away: cannot connect to the node 127.0.0.1:{master.port}" \
            in cli.done.stderr
        assert read_posts(stream, posts) == posts
        assert gateway.get("/readyz").status == 200
        late = servers.gateway(cluster.url, "--api-timeout", "500ms", workers=2)  # ready without that master
        part = late.get("/readyz?verbose", late.bearer(scope="admin")).json["parts"]["shards"]
        assert part["state"] == "failing" and part["why"].startswith(f"{away} of 64 are not heard (0"), part
        assert late.metrics()["sluice_shards_heard"] == 64 - away
        with late.stream(FIREHOSE) as second:
            posts = [post(late, user) for _, user in others]
            assert read_posts(second, posts) == posts
            refused = Api(late, lost[1]).request("POST", "/v1/posts", {"text": "nobody takes it"})
            assert refused.status == 503 and refused.headers["retry-after"]
            cluster.promote(replica, "TAKEOVER")
            back = [post(gateway, lost[1]) for _ in range(3)]
            assert read_posts(second, back) == back
            eventually(lambda: late.metrics()["sluice_shards_heard"] == 64, "all shards are heard")
            assert late.get("/readyz?verbose").json["parts"]["shards"]["state"] == "ok"
        assert read_posts(stream, back) == back


CHANNEL = "sluice:{7}:live"


def heard_at(cluster):
    """The node to which the gateway is subscribed for classic PUBLISH; None: there is none at the moment."""
    return next((node for node in cluster.nodes
                 if node.is_running() and node.client.pubsub_numsub(CHANNEL)[0][1]), None)


@pytest.mark.usefixtures("no_failover")
def test_what_is_published_without_the_core_is_heard_wherever_it_is_published(cluster, users, gateway):
    made = []

    def publish(node):
        made.append(events.post(len(made) + 1, f"published {len(made)}", user="7"))
        node.client.publish(CHANNEL, events.dump(made[-1]))

    def running():
        return [node for node in cluster.nodes if node.is_running()]

    def part():
        return gateway.get("/readyz?verbose", gateway.bearer(scope="admin")).json["parts"]["shards"]
    with gateway.stream(FIREHOSE) as stream:
        for node in running():
            publish(node)
            assert stream.next()["post"]["text"] == made[-1]["post"]["text"]
        publish(cluster.owner(7))
        cluster.owner(7).client.execute_command("SPUBLISH", CHANNEL, events.dump(made[-1]))  # the same event: delivered once
        assert stream.next()["post"]["text"] == made[-1]["post"]["text"]
        logged = post(gateway, next(iter(users.values())))
        assert read_posts(stream, [logged]) == [logged]
        number, fields = cluster.entries()[-1]
        for node in running():  # an event of the core again: its id was delivered already
            node.client.publish(f"sluice:{{{shard_of(logged)}}}:live", f"{number.split('-')[0]} {fields['p']} {fields['e']}")
            publish(node)
            assert stream.next()["post"]["text"] == made[-1]["post"]["text"]
        while not cluster.has_replica(heard_at(cluster)):  # another test has killed its master: one is chosen at random
            heard_at(cluster).client.client_kill_filter(_type="pubsub")
            eventually(lambda: heard_at(cluster), "a node is subscribed to")
        before, replica = heard_at(cluster), cluster.replica_of(heard_at(cluster))
        before.stop(signal.SIGKILL)
        eventually(lambda: heard_at(cluster) not in (None, before), "another node is subscribed to")
        for node in running():
            publish(node)
            assert stream.next()["post"]["text"] == made[-1]["post"]["text"]
        assert gateway.metrics()["sluice_publish_lost_total"] >= 1
        cluster.promote(replica, "TAKEOVER")
        eventually(lambda: part()["state"] == "ok", "all shards are heard")
        for node in running():
            node.client.execute_command("ACL", "SETUSER", "default", "-subscribe")
        heard_at(cluster).client.client_kill_filter(_type="pubsub")
        eventually(lambda: "PUBLISH is not heard" in (part()["why"] or ""), "that is told")
        eventually(lambda: gateway.metrics()["sluice_shards_heard"] == 64, "the shards are heard without it")
        posted = post(gateway, next(iter(users.values())))
        assert read_posts(stream, [posted]) == [posted]
        for node in running():
            node.client.execute_command("ACL", "SETUSER", "default", "+subscribe")
        eventually(lambda: part()["state"] == "ok" and gateway.metrics()["sluice_publish_heard"] == 1, "it is heard again")
        publish(running()[0])
        assert stream.next()["post"]["text"] == made[-1]["post"]["text"]


def intake_of(gateway):
    """Its process id; None: there is none at the moment."""
    return next((child for child in processes.children(gateway.pid) if processes.name(child) == "sluiced-intake"), None)


@pytest.mark.usefixtures("no_failover")
def test_intake_that_dies_while_a_master_is_away_is_replaced_by_one_that_hears_the_others(cluster, users, gateway):
    lost, *others = sorted(users.values(), key=lambda user: not cluster.has_replica(cluster.owner(shard_of(user))))
    master = cluster.owner(shard_of(lost))
    replica, away = cluster.replica_of(master), len(cluster.shards_of(master))

    def part():
        return gateway.get("/readyz?verbose", gateway.bearer(scope="admin")).json["parts"]["shards"]

    def misses():
        return part()["state"] == "failing" and part()["why"].startswith(f"{away} of 64 are not heard")
    with gateway.stream(FIREHOSE) as stream:
        master.stop(signal.SIGKILL)
        eventually(misses, "the shards of the master are missed")
        before, intake = part()["since_ms"], intake_of(gateway)
        os.kill(intake, signal.SIGKILL)
        eventually(lambda: intake_of(gateway) not in (None, intake) and gateway.get("/readyz").status == 200,
                   "another one hears the others")
        assert misses() and part()["since_ms"] > before  # what the dead process had counted does not matter any more
        posts = [post(gateway, user) for user in others]
        assert read_posts(stream, posts) == posts
        cluster.promote(replica, "TAKEOVER")
        eventually(lambda: part()["state"] == "ok", "all shards are heard")
        posts = [post(gateway, user) for user in users.values()]
        assert read_posts(stream, posts) == posts  # and there is no gap
