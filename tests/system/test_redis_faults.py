"""Faults of Redis. During each fault posts continue, each with its own `sluice`, and clients on every transport listen.
In the end each must have what the log has, in its order, none twice; what was acknowledged must be there, and nothing
may have happened twice."""

import json
import pathlib
import re
import signal
import subprocess
import threading

import pytest
import redis as redis_client

from harness import programs
from harness.api import Api
from harness.ports import steady_port
from harness.proxy import Proxy
from harness.redis_group import RedisGroup
from harness.redis_server import shard_of
from harness.streams import Collector
from harness.waiting import Deadline, eventually

FIREHOSE = "/v1/stream/firehose"
TRANSPORTS = ["ndjson", "delimited", "sse", "websocket"]


class Producer:
    """Posts one text after the other, in a thread, until it is stopped."""

    def __init__(self, url, before=None):
        """Continues where the producer `before` stopped."""
        self.url = url
        self.answered = dict(before.answered) if before else {}  # text -> id
        self.refused = []  # standard error output
        self._number = before._number if before else 0
        self._is_stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._is_stopping:
            self._number += 1
            text = f"number {self._number}"
            done = subprocess.run(
                [programs.sluice(), "--redis", self.url, "post", "--user", "ada", text],
                env=programs.environment(), capture_output=True, text=True, timeout=120)
            with self._changed:
                if done.returncode == 0:
                    self.answered[text] = done.stdout.strip()
                else:
                    self.refused.append(done.stderr)
                self._changed.notify_all()

    def _wait(self, condition, what, seconds=60):
        deadline = Deadline(seconds, what)
        with self._changed:
            while not condition():
                self._changed.wait(deadline.left())

    def wait_more(self, count=5):
        """Waits until this many more posts have been acknowledged."""
        before = len(self.answered)
        self._wait(lambda: len(self.answered) >= before + count, "posts are answered")

    def wait_refused(self, word):
        self._wait(lambda: any(word in said for said in self.refused), f"a post is refused: {word}")

    def stop(self):
        self._is_stopping = True
        self._thread.join(120)


class Scene:
    """A gateway, clients on every transport, posts in progress."""

    def __init__(self, servers, cli_for, redis, url=None, *options):
        self.redis = redis
        self.cli = cli_for(redis)
        self.shard = shard_of(self.cli.run("user", "add", "ada"))
        self.gateway = servers.gateway(url or redis.url, *options)
        self.streams = [Collector(self.gateway.stream(FIREHOSE, transport)) for transport in TRANSPORTS]
        self.streams.append(Collector(self.gateway.stream("/v1/stream/filter?track=number", "sse")))
        self.producer = Producer(redis.url)
        self.producer.wait_more()

    def events(self, redis=None):
        """Those in the log, without that of the user."""
        log = (redis or self.redis).client.xrange(f"sluice:{{{self.shard}}}:log")
        return [event for event in (json.loads(fields["e"]) for _, fields in log) if event["type"] != "user"]

    def wait_heard(self):
        """Waits until the clients have what is acknowledged now."""
        last = list(self.producer.answered.values())[-1]
        for stream in self.streams:
            stream.wait_id(last, 60)

    def finish(self, redis=None):
        """Lets it run a bit longer, then compares everything; returns the events of the log."""
        self.producer.wait_more()
        self.producer.stop()
        self.wait_heard()
        events = self.events(redis)
        texts = [event["post"]["text"] for event in events]
        assert len(set(texts)) == len(texts), "a post happened twice"
        there = {event["post"]["text"]: event["id"] for event in events}
        assert {text: there.get(text) for text in self.producer.answered} == self.producer.answered
        profile = (redis or self.redis).client.zcard(
            f"sluice:{{{self.shard}}}:profile:{events[0]['post']['user']['id']}")
        assert profile == len(events), "state and log differ"
        for stream in self.streams:
            stream.wait_id(events[-1]["id"])
            assert [m["id"] for m in stream.events()] == [event["id"] for event in events]
            assert not [m for m in stream.messages if m.is_control]
        return events


def kill_redis(scene):
    scene.redis.stop(signal.SIGKILL)
    scene.gateway.wait_status("/readyz", 503)
    scene.redis.start()


def restart_redis(scene):
    scene.redis.stop(signal.SIGTERM)
    scene.redis.start()


def kill_clients(scene):
    for kind in ["normal", "pubsub"] * 4:
        scene.redis.client.execute_command("CLIENT", "KILL", "TYPE", kind)
        scene.producer.wait_more(2)


def flush_scripts(scene):
    for _ in range(5):
        scene.redis.client.script_flush()
        scene.producer.wait_more(1)


def run_out_of_memory(scene):
    scene.redis.client.config_set("maxmemory", 1)
    scene.producer.wait_refused("OOM")
    scene.redis.client.config_set("maxmemory", 0)


def become_replica(scene):
    scene.redis.client.config_set("replica-serve-stale-data", "yes")
    scene.redis.client.replicaof("127.0.0.1", 1)
    scene.producer.wait_refused("READONLY")
    scene.redis.client.execute_command("REPLICAOF", "NO", "ONE")


def lack_replicas(scene):
    """Writes are refused at first, and retried until they are not."""
    scene.redis.client.config_set("min-replicas-to-write", 2)
    eventually(lambda: scene.redis.client.info("errorstats").get("errorstat_NOREPLICAS"), "a write is refused")
    scene.redis.client.config_set("min-replicas-to-write", 0)


def stay_busy(scene):
    """A long script of somebody else: BUSY, until it ends."""
    scene.redis.client.config_set("lua-time-limit", 20)
    master = scene.redis.master_of(0)

    def spin():
        with pytest.raises(redis_client.ResponseError):
            master.eval("while true do end", 0)
    script = threading.Thread(target=spin)
    script.start()

    def is_busy():
        try:
            master.ping()
        except redis_client.ResponseError as error:
            return "BUSY" in str(error)
        return False
    eventually(is_busy, "the script keeps Redis busy")
    master.execute_command("SCRIPT", "KILL")
    script.join(20)


OF_ONE = pytest.mark.one_redis("another one would become the master")


@pytest.mark.parametrize("fault", [kill_redis, restart_redis, kill_clients, flush_scripts, run_out_of_memory,
                                   pytest.param(become_replica, marks=OF_ONE), lack_replicas, stay_busy])
def test_nothing_is_lost_or_done_twice(servers, cli_for, fault):
    redis = servers.redis(append_only=True)
    redis.client.config_set("appendfsync", "always")
    scene = Scene(servers, cli_for, redis)
    fault(scene)
    scene.finish()


@pytest.mark.one_redis("a proxy stands before one server")
def test_network_that_is_cut_and_heals(servers, cli_for):
    """Connections stay open, but nothing is transmitted: the silence is noticed; producers use another way."""
    redis = servers.redis()
    proxy = Proxy(redis.socket)
    scene = Scene(servers, cli_for, redis, f"redis://127.0.0.1:{proxy.port}", "--redis-timeout", "500ms")
    proxy.cut()
    scene.producer.wait_more()
    scene.gateway.wait_status("/readyz", 503)
    eventually(lambda: "Redis is silent" in scene.gateway.log(), "the silence is noticed")
    proxy.heal()
    scene.gateway.wait_status("/readyz", 200)
    scene.finish()
    proxy.close()


@pytest.fixture
def group(servers):
    group = RedisGroup(servers.folder / "group")
    group.client = group.master.client
    yield group
    group.end()


def test_replica_is_promoted_by_its_sentinel(servers, cli_for, group):
    """The master dies; only the sentinel reports that."""
    scene = Scene(servers, cli_for, group)
    scene.producer.stop()
    scene.wait_heard()
    eventually(lambda: group.replica.client.xlen("sluice:{0}:log") == 1 + len(scene.events()),
               "the replica has everything")
    group.kill_master()
    scene.producer = Producer(group.url, scene.producer)
    group.wait_failover()
    group.client = group.replica.client
    scene.finish()
    scene.gateway.wait_status("/readyz", 200)
    scene.gateway.stop()
    assert f"master=127.0.0.1:{group.replica.public_port}" in scene.gateway.log()


def tcp_clients(redis):
    """The TCP connections, without those of sentinels and replicas; tests use the unix socket."""
    return [client for client in redis.client.client_list()
            if not client["name"].startswith("sentinel-") and not set(client["flags"]) & set("SMU")]


def test_master_that_is_replaced_while_it_lives_is_left_at_once(servers, cli_for, group):
    """It cannot be demoted, and closes no connection: only the sentinel, which was unavailable itself meanwhile,
    reports that it is replaced. Streams, the API and the process that runs tasks continue with the other one."""
    group.master.client.execute_command("ACL", "SETUSER", "default", "-replicaof", "-slaveof")
    scene = Scene(servers, cli_for, group, None, "--run-tasks", "on")
    ada = scene.events()[0]["post"]["user"]["id"]
    api = Api(scene.gateway, ada)
    api.expect(201, "POST", "/v1/posts", {"text": "a number for the first"})
    scene.producer.stop()
    eventually(lambda: group.replica.client.xlen("sluice:{0}:log") == 1 + len(scene.events()),
               "the replica has everything")
    assert tcp_clients(group.master)
    group.sentinel.stop()
    group.sentinel.start()
    eventually(group.sentinel.knows_replica, "the sentinel knows the replica", 60)
    group.sentinel.fail_over()
    group.wait_failover()
    eventually(lambda: not tcp_clients(group.master), "everybody has left", 60)
    assert group.master.client.role()[0] == "master"
    scene.gateway.wait_status("/readyz", 200)
    api.expect(201, "POST", "/v1/posts", {"text": "a number for the second"})
    api.close()
    scene.producer = Producer(group.url, scene.producer)
    group.client = group.replica.client
    texts = [event["post"]["text"] for event in scene.finish()]
    assert texts.index("a number for the first") < texts.index("a number for the second")
    numbers = scene.gateway.metrics()
    assert numbers["sluice_redis_master_moves_total"] == 1 and numbers["sluice_sentinels_heard"] == 1
    assert f"have made 127.0.0.1:{group.replica.public_port} the master" in scene.gateway.log()


def test_tail_that_a_failover_lost_is_told(servers, cli_for, group):
    """The replica was disconnected before, so it does not have what clients received last."""
    cli = cli_for(group)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(group.url)
    streams = [gateway.stream(FIREHOSE, transport) for transport in TRANSPORTS]
    kept = cli.ids("post", "--user", "ada", "kept")[0]
    eventually(lambda: group.replica.client.xlen("sluice:{0}:log") == 2, "the replica has the user and the first post")
    group.forget_master()
    group.replica.client.execute_command("REPLICAOF", "NO", "ONE")
    lost = [cli.ids("--redis", group.master.url, "post", "--user", "ada", f"lost {number}")[0]
            for number in range(2)]
    for stream in streams:
        assert [m["id"] for m in stream.until(lost[-1])] == [kept, *lost]
    group.name_master(group.replica)
    group.master.stop(signal.SIGKILL)
    after = cli.ids("post", "--user", "ada", "after")[0]
    for stream in streams:
        gap = stream.next().json
        assert gap.pop("shard", 0) == 0
        assert gap == {"type": "gap", "from": kept, "to": lost[-1], "reason": "rewound"}
        assert stream.next()["id"] == after
        stream.close()
    numbers = gateway.metrics()
    assert numbers['sluice_event_gaps_total{reason="rewound"}'] == 1
    assert numbers['sluice_gaps_told_total{reason="rewound"}'] == 1


def test_write_is_good_only_when_replicas_have_it(cli_for, group):
    cli = cli_for(group)
    cli.run("--wait-replicas", "1", "user", "add", "ada")
    assert group.replica.client.hget("sluice:{0}:logins", "ada")
    post_id = cli.run("post", "--wait-replicas", "1", "--user", "ada", "text")
    assert group.replica.client.hget(f"sluice:{{0}}:post:{post_id}", "text") == "text"
    cli.run("--wait-replicas", "2", "post", "--user", "ada", "alone", status=1)
    assert "it is done, but only 1 of 2 replicas had it" in cli.done.stderr
    assert group.client.hget("sluice:{0}:user:" + group.client.hget("sluice:{0}:logins", "ada"), "posts") == "2"
    for wrong in ("x", "", "-1", "101"):
        cli.run("--wait-replicas", wrong, "init", status=2)


@pytest.mark.one_redis("replicas of its own")
def test_what_all_replicas_have_is_acknowledged_once_and_what_some_have_maybe_twice(servers, cli_for):
    """docs/operating.md: a writer that waits for all replicas loses nothing, whichever is promoted."""
    master, left, promoted = (servers.redis(port=steady_port()) for _ in range(3))
    old, new = cli_for(master), cli_for(promoted)
    for replica in (left, promoted):
        replica.client.replicaof("127.0.0.1", master.port)
        eventually(lambda: replica.client.info("replication")["master_link_status"] == "up", "it has the data")
    old.run("--wait-replicas", "2", "user", "add", "ada")
    kept = old.run("--wait-replicas", "2", "post", "--user", "ada", "all have it")
    for shard in range(master.shards):  # both will continue from here
        master.client.set(f"sluice:{{{shard}}}:clock", str((1 << 52) + 64 * shard))
    assert master.client.wait(2, 20000) == 2
    promoted.client.replicaof("NO", "ONE")  # by order; the old master does not know yet
    lost = old.run("--wait-replicas", "1", "post", "--user", "ada", "one has it")
    old.run("--wait-replicas", "2", "post", "--user", "ada", "not acknowledged", status=1)
    assert "only 1 of 2 replicas had it" in old.done.stderr
    assert new.run("post", "--user", "ada", "another") == lost  # acknowledged twice
    texts = [json.loads(line)["text"] for line in new.run("posts", "ada").splitlines()]
    assert texts == ["another", "all have it"] and kept != lost


def test_user_who_may_do_no_more_than_the_docs_say(servers, cli_for):
    """The first line of docs/core.md; in a cluster with the second."""
    lines = re.findall(r"^    (ACL SETUSER sluice .*)$",
                       (pathlib.Path(__file__).parents[2] / "docs/core.md").read_text(), re.MULTILINE)
    assert len(lines) == 2
    redis = servers.redis()
    for line in lines if redis.is_clustered else lines[:1]:
        redis.client.execute_command(*line.split())
    url = redis.url_over_tcp("sluice:PASSWORD@")
    redis.client.execute_command("ACL", "SETUSER", "default", "off")
    redis.url = url
    cli = cli_for(redis)
    cli.run("config", "set", "log-age", "2h")
    cli.run("user", "add", "ada")
    cli.run("user", "add", "bob")
    cli.run("post", "--user", "ada", "so that there is a log")
    gateway = servers.gateway(redis.url)
    with gateway.stream(FIREHOSE) as stream:
        cli.run("follow", "bob", "ada")
        post_id = cli.run("post", "--user", "ada", "text")
        assert stream.next()["id"] == post_id
        cli.run("delete", "--user", "ada", post_id)
        assert stream.next().type == "delete"
    eventually(lambda: gateway.metrics()['sluice_log_bytes{shard="0"}'] > 0, "the log is looked at")
    gateway.stop()
    assert "NOPERM" not in gateway.log()
