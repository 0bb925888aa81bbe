"""A storm over a Redis Cluster: nodes die, hang, change roles, are added and removed; shards move; the map is wrong."""

import os
import signal
import threading
import time

from . import processes, programs
from .cli import Cli
from .followers import Client, Kind
from .library import ask
from .producers import Posts
from .proxy import Proxy
from .redis_cluster import SLOTS, ClusterNode, RedisCluster
from .redis_server import shard_of
from .storm import Storm
from .waiting import eventually
from .wall_clock import WallClock

BURST = 1500  # events: more than the broadcast holds
PROBE_EVERY_S = 0.02


class Probes:
    """Users of several shards who post through the API all the time, and a stream of their posts: for how long was
    nothing written, and for how long did nothing arrive? `users`: id by shard."""

    def __init__(self, storm, users):
        self.storm, self.users = storm, users
        self.written = {shard: [] for shard in users}  # when a post was acknowledged
        self.acknowledged = set()
        wanted = set(users.values())
        kind = Kind("probes", f"/v1/stream/filter?follow={','.join(users.values())}&gather_ms=0",
                    lambda event: event["type"] in ("post", "delete") and event["post"]["user"]["id"] in wanted)
        self.watcher = Watcher(storm, kind)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=item, daemon=True) for item in users.items()]
        for thread in self._threads:
            thread.start()

    def _write(self, shard, user):
        while not self._over.wait(PROBE_EVERY_S):
            status, post = ask(self.storm.gateway, "POST", "/v1/posts", {"text": "probe"}, 1, sub=user)
            if status == 201:
                self.acknowledged.add(int(post["id"]))
                self.written[shard].append(time.monotonic())

    def stop(self):
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def pauses(self, shards, began):
        """Returns the longest (time without an acknowledged post, time without an event) since `began` in any of these
        shards, in seconds; None: there is no shard."""
        if not shards:
            return None
        return tuple(max(_longest(times[shard], began) for shard in shards)
                     for times in (self.written, self.watcher.came))


def _longest(times, began):
    times = list(times)
    late = [at for at in times if at >= began]
    last = times[len(times) - len(late) - 1] if len(late) < len(times) else began
    return max((b - a for a, b in zip([last, *late], [*late, time.monotonic()])), default=0)


class Watcher(Client):
    """A client that records when events have arrived, by shard."""

    def __init__(self, storm, kind):
        self.came = {shard: [] for shard in range(storm.shards)}
        super().__init__(storm, kind, "ndjson", storm.rng.random(), is_calm=True)

    def _keep(self, event_id):
        self.came[shard_of(event_id)].append(time.monotonic())
        super()._keep(event_id)


class ClusterStorm(Storm):
    """Three masters and three replicas. The nodes that sluiced's URL names are behind proxies."""

    least_workers = 2  # so that there is an intake process

    def __init__(self, servers, seed, shards=64, node_timeout_ms=2000, workers=2, options=(), settings=(),
                 is_impatient=False):
        """`settings`: further options for the nodes. `is_impatient`: dead nodes are replaced by order, so the node
        timeout can be long enough that a slow node is not considered dead."""
        self.node_timeout_ms, self.settings, self.is_impatient = node_timeout_ms, settings, is_impatient
        self.added, self.impostors = [], 0
        self.struck = None  # shards that the fault affects; None: all
        self.began = 0
        options = ["--run-tasks", "on", "--max-event-bytes", 4096, *options]
        super().__init__(servers, seed, workers=workers, options=options, shards=shards)
        self.probes = Probes(self, self._users_of_all_masters())
        self.clients.append(self.probes.watcher)

    def _start_servers(self, _, **more):
        folder = self.servers.folder
        self.clocks = [WallClock(folder / f"clock{n}") for n in range(6)] if not programs.have_sanitizer() else []
        self.redis = self.cluster = RedisCluster(folder / "cluster", clocks=self.clocks, append_only=True,
                                                 node_timeout_ms=self.node_timeout_ms, settings=self.settings)
        self.servers.redis_servers.append(self.cluster)
        self.cluster.shards = self.shards
        Cli(self.cluster).run("init", "--shards", self.shards)
        self.seeds = [Proxy(node.port) for node in self.cluster.nodes[:2]]
        seeds = ",".join(f"127.0.0.1:{seed.port}" for seed in self.seeds)
        self.gateway = self._start_gateway(f"redis+cluster://{seeds}", *self.options, **more)

    def _users_of_all_masters(self):
        """{shard: user}, one shard of each master."""
        found, masters, number = {}, [], 0
        while len(found) < 3:
            user = self.cli.run("user", "add", f"probe{number}")
            number += 1
            owner = self.cluster.owner(shard_of(user))
            if owner not in masters:
                masters.append(owner)
                found[shard_of(user)] = user
        return found

    def witnesses(self):
        return list(self.probes.users.values())

    # Faults

    def faults(self):
        clocks = [self.slow_clock] if self.clocks else []
        intake = [self.kill_intake, self.overrun_ring] if self._intake() else []
        return [self.kill_master, self.stop_master, self.promote_replica, self.kill_node_connections,
                self.kill_subscribers, self.restart_node, self.add_master, self.remove_master, self.move_shard,
                self.interrupted_move, self.all_seeds_gone, self.map_that_flaps, self.wrong_database, self.bus_cut,
                self.kill_worker, self.kill_gateway, self.restart_gateway, self.take_over, self.kill_everything,
                *intake, *clocks]

    def inflict(self, fault, pause):
        self.struck, self.began = None, time.monotonic()
        super().inflict(fault, pause)

    def pauses(self):
        """Since the last fault began: (those of the affected shards, those of the others), as from Probes.pauses()."""
        shards = set(self.probes.users)
        struck = shards if self.struck is None else shards & self.struck
        return self.probes.pauses(struck, self.began), self.probes.pauses(shards - struck, self.began)

    def _find_master(self):
        self.cluster.wait_whole()

    def _masters(self):
        """Those that have a replica."""
        return [node for node in self.cluster.nodes if self.cluster.has_replica(node)]

    def _victim(self, spared=()):
        """Returns (a master, its replica)."""
        node = self.rng.choice([node for node in self._masters() if node not in spared])
        self.struck = self.cluster.shards_of(node)
        return node, self.cluster.replica_of(node)

    def _busy_shard(self):
        """A shard with posts, of a master that has a replica."""
        masters = self._masters()
        shards = {shard_of(user) for user in (*self.people.values(), *self.probes.users.values())}
        shard = self.rng.choice(sorted(shard for shard in shards if self.cluster.owner(shard) in masters))
        self.struck = {shard}
        return shard

    def _another_master(self, node):
        return self.rng.choice([other for other in self.cluster.nodes
                                if other is not node and other.master_port() is None])

    def _await_promotion(self, replica):
        if self.is_impatient:
            self.cluster.promote(replica, "TAKEOVER")
        eventually(lambda: replica.master_port() is None, "the replica was promoted", 60)

    def kill_master(self, pause):
        """Long enough that the replica is promoted; then the master is back, and becomes a replica."""
        node, replica = self._victim()
        node.stop(signal.SIGKILL)
        self._await_promotion(replica)
        pause(self.rng.uniform(0, 2))
        node.start()

    def stop_master(self, pause):
        """It accepts and publishes further calls until it learns that it is no longer a master."""
        node, replica = self._victim()
        os.kill(node.process.pid, signal.SIGSTOP)
        self._await_promotion(replica)
        pause(3)
        os.kill(node.process.pid, signal.SIGCONT)

    def promote_replica(self, _):
        _, replica = self._victim()
        self.cluster.promote(replica, *self.rng.choice([(), ("FORCE",)]))

    @staticmethod
    def _kill_connections(node, kind):
        node.client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")

    def kill_node_connections(self, _):
        self._kill_connections(self._victim()[0], "normal")

    def kill_subscribers(self, _):
        self._kill_connections(self._victim()[0], "pubsub")

    def restart_node(self, pause):
        node = self.rng.choice(self.cluster.nodes)
        self.struck = self.cluster.shards_of(node)
        node.stop()
        pause(self.rng.uniform(0, 1))
        node.start()

    def add_master(self, _):
        node = self.cluster.add_master()
        self.added.append(node)
        self.struck = set()
        for shard in self.rng.sample(range(self.shards), 2):
            self.cluster.move(shard, node)
            self.struck.add(shard)
        self.cluster.masters += 1

    def remove_master(self, pause):
        if not self.added:
            self.add_master(pause)
            self.cluster.wait_whole()
        node = self.added.pop()
        self.struck = self.cluster.shards_of(node)
        for shard in self.struck:
            self.cluster.move(shard, self.rng.choice(self._masters()))
        self.cluster.masters -= 1
        self.cluster.remove(node)

    def move_shard(self, _):
        shard = self._busy_shard()
        self.cluster.move(shard, self._another_master(self.cluster.owner(shard)), at_once=self.rng.choice([20, 100]))

    def interrupted_move(self, pause):
        """The program that moved the shard was killed; another one completes the move later."""
        shard = self._busy_shard()
        self.cluster.begin_move(shard, self._another_master(self.cluster.owner(shard)), keys=3)
        pause(self.rng.uniform(0, 2))
        self.cluster.fix()

    def all_seeds_gone(self, pause):
        """While a replica is promoted, and nodes must be found without any of the known ones."""
        for seed in self.seeds:
            seed.cut()
        _, replica = self._victim()
        self.cluster.promote(replica)
        self.struck = None
        for node in self.cluster.nodes:
            self._kill_connections(node, "normal")
        pause(self.rng.uniform(0, 3))
        for seed in self.seeds:
            seed.heal()

    def map_that_flaps(self, _):
        node, replica = self._victim()
        struck = self.struck
        shard = self._busy_shard()
        self.struck |= struck
        source = self.cluster.owner(shard)
        target = self._another_master(source)
        for place in (target, source) * 3:
            self.cluster.move(shard, place)
            self.cluster.wait_agreed()
        for latter in (replica, node):
            self.cluster.wait_whole()
            self.cluster.promote(latter)

    def wrong_database(self, pause):
        """At the address of a node that was a master just before; not of a node named in a URL, which a starting
        program would have to trust."""
        node, replica = self._victim(spared=self.cluster.nodes[:2])
        self.cluster.promote(replica)
        eventually(lambda: node.master_port() == replica.port, "it has heard of that")
        node.stop(signal.SIGKILL)
        impostor = self._start_impostor(node.port)
        for other in self.cluster.nodes:
            if other is not node:
                self._kill_connections(other, "normal")
        self.struck = None
        pause(self.rng.uniform(0, 3))
        impostor.stop(signal.SIGKILL)
        node.start()

    def _start_impostor(self, port):
        """Starts a separate cluster, with a database and a user who has posted."""
        self.impostors += 1
        impostor = ClusterNode(self.servers.folder / f"impostor{self.impostors}", port=port).start()
        impostor.ask("ADDSLOTSRANGE", 0, SLOTS - 1)
        eventually(lambda: "cluster_state:ok" in impostor.ask("INFO"), "the other cluster works")
        impostor.url = f"redis+cluster://127.0.0.1:{port}"
        cli = Cli(impostor)
        cli.run("init", "--shards", self.shards)
        for name in ("u0", "u1", "u2"):
            cli.run("user", "add", name)
            cli.run("post", "--user", name, "amber of another database")
        return impostor

    def bus_cut(self, pause):
        """The links of a node to the others are closed as soon as they are opened."""
        node, _ = self._victim()
        for _ in range(self.node_timeout_ms // 50):
            node.cut_links()
            pause(0.05)

    def slow_clock(self, pause):
        """A replica whose clock is a fifth of a second behind becomes a master."""
        number = self.rng.randrange(len(self.clocks))
        node = self.cluster.nodes[number]
        self.clocks[number].set(-0.2)
        if node.master_port() is not None:
            self.cluster.promote(node)
        self.struck = self.cluster.shards_of(node)
        pause(3)
        self.clocks[number].set(0)

    def _intake(self):
        """Its process id; None: there is none."""
        return next((child for child in processes.children(self.gateway.pid)
                     if processes.name(child) == "sluiced-intake"), None)

    def kill_intake(self, _):
        os.kill(self._intake(), signal.SIGKILL)

    def overrun_ring(self, _):
        """A worker is stopped while more is published than the broadcast holds for it."""
        posts = Posts(self.rng)
        burst = "\n".join(posts.line() for _ in range(BURST))
        with processes.stopped([self.rng.choice(self.gateway.workers())]):
            self.cli.run("replay", "-", given=burst + "\n")

    def kill_everything(self, pause):
        for node in self.cluster.nodes:
            node.stop(signal.SIGKILL)
        self._kill_gateway()
        pause(self.rng.uniform(0, 1))
        for node in self.cluster.nodes:
            node.start()
        self.cluster.wait_whole()
        self._follow_up()

    # Counting

    def settle(self, seconds=60):
        self.probes.stop()
        super().settle(seconds)

    def lost(self):
        """Posts that were acknowledged but are in no log: lost by asynchronous replication."""
        return len(self.probes.acknowledged - self.in_log)
