"""A real Redis Cluster of masters and their replicas, on ports of this machine."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import redis
from redis.crc import key_slot

from .ports import steady_port
from .redis_server import end_server, redis_program, tls_options
from .waiting import eventually

SLOTS = 16384
NODE_TIMEOUT_MS = 8000  # slow nodes are not replaced; propagating changes takes half of it


class ClusterNode:
    """With a certificate, clients and other nodes connect to it over TLS; `client` never does. `append_only`: what it
    has acknowledged is in its file. `settings`: further options on its command line."""

    def __init__(self, folder, certificate=None, append_only=False, env=None, node_timeout_ms=NODE_TIMEOUT_MS,
                 port=None, settings=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.port, self.bus_port = port or steady_port(), steady_port()
        self.public_port = steady_port() if certificate else self.port
        self.env = env or {}
        self.options = ["--cluster-node-timeout", str(node_timeout_ms), *settings]
        if append_only:
            self.options += ["--appendonly", "yes", "--appendfsync", "always"]
        if certificate:
            self.options += tls_options(certificate, self.public_port, "--tls-cluster", "--tls-replication")
        self.process = None
        self.client = redis.Redis(port=self.port, decode_responses=True)

    def start(self):
        with open(self.folder / "redis.log", "ab") as out:
            self.process = subprocess.Popen(
                [redis_program(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder),
                 "--save", "", "--cluster-enabled", "yes", "--cluster-config-file", str(self.folder / "nodes.conf"),
                 "--cluster-port", str(self.bus_port), "--enable-debug-command", "yes",
                 "--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0",
                 "--repl-diskless-sync-delay", "0", *self.options],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                env={**os.environ, **self.env})
        eventually(self._answers, "the node answers")
        self.id = self.client.cluster("MYID")
        return self

    def _answers(self):
        try:
            return self.client.ping()
        except redis.ConnectionError:
            return False

    def stop(self, how=signal.SIGTERM):
        if self.process:
            process, self.process = self.process, None
            end_server(process, how)
            self.client.connection_pool.disconnect()

    def is_running(self):
        return self.process is not None

    @contextlib.contextmanager
    def hanging(self):
        """Stops it: its connections stay open, but get no answers."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)
            eventually(self._answers, "the node answers again")

    def ask(self, *words):
        """Runs a CLUSTER command."""
        return self.client.execute_command("CLUSTER", *words)

    def follows(self, master):
        """Whether it now follows `master`; a node with which the handshake is not complete is not known by this name.
        """
        try:
            return self.ask("REPLICATE", master.id)
        except redis.ResponseError as error:
            assert "Unknown node" in str(error), error
            return False

    def slots(self):
        """[(first, last, port of the master)] as known to this node."""
        return [(entry[0], entry[1], entry[2][1]) for entry in self.ask("SLOTS")]

    def port_of(self, slot):
        """Port of the master that has it, as known to this node; None: nobody has."""
        return next((port for first, last, port in self.slots() if first <= slot <= last), None)

    def has_slot(self, slot):
        """According to the node itself."""
        return self.port_of(slot) == self.port

    def view(self):
        """{(id, master or -, whether it is failing, config epoch, slots)} as known to this node."""
        lines = [line.split() for line in self.ask("NODES").splitlines()]
        return frozenset((words[0], words[3], "fail" in words[2], words[6], *words[8:]) for words in lines)

    def has_heard_of_all(self, masters):
        return sum(last - first + 1 for first, last, _ in self.slots()) == SLOTS and \
            len({port for _, _, port in self.slots()}) == masters and "cluster_state:ok" in self.ask("INFO")

    def can_move_in_one_piece(self):
        """Valkey since 9.0 and Redis since 8.4 can, with their own commands."""
        said = " ".join(self.ask("HELP"))
        return "GETSLOTMIGRATIONS" in said or " MIGRATION " in f" {said} "

    def moves_made(self):
        """The number of atomic moves by the servers in which it took part."""
        words = ("GETSLOTMIGRATIONS",) if "GETSLOTMIGRATIONS" in self.ask("HELP") else ("MIGRATION", "STATUS", "ALL")
        jobs = [dict(zip(job[::2], job[1::2])) for job in self.ask(*words)]
        return sum(job["state"] in ("success", "completed") for job in jobs)

    def cut_links(self):
        """Closes its links to and from the other nodes, which open new ones."""
        for link in self.ask("LINKS"):
            said = dict(zip(link[::2], link[1::2]))
            self.client.execute_command("DEBUG", "CLUSTERLINK", "KILL", said["direction"], said["node"])

    def master_port(self):
        """None: it is a master."""
        role = self.client.role()
        return role[2] if role[0] == "slave" else None

    def is_following(self):
        role = self.client.role()
        return role[0] == "slave" and role[3] == "connected"


class RedisCluster:
    """Nodes 0 to 2 are masters at first, nodes 3 to 5 their replicas. `clocks`: a WallClock for each, and `env` further
    variables for all. `more` is for each ClusterNode."""

    def __init__(self, folder, masters=3, certificate=None, clocks=(), env=None, **more):
        self.folder, self.more = folder, {"certificate": certificate, **more}
        self.shards = 64  # of the database that will be in it
        self.nodes = [ClusterNode(folder / f"n{n}", env=clocks[n].environment if clocks else env, **self.more).start()
                      for n in range(2 * masters)]
        for n, node in enumerate(self.nodes):
            node.ask("SET-CONFIG-EPOCH", n + 1)  # otherwise they negotiate it, which takes seconds
        for node in self.nodes[1:]:
            self.nodes[0].ask("MEET", "127.0.0.1", node.public_port, node.bus_port)
        for n, node in enumerate(self.nodes[:masters]):
            node.ask("ADDSLOTSRANGE", SLOTS * n // masters, SLOTS * (n + 1) // masters - 1)
        eventually(lambda: all(len(node.ask("NODES").splitlines()) == 2 * masters for node in self.nodes),
                   "all nodes have met", 60)
        for node, replica in zip(self.nodes[:masters], self.nodes[masters:]):
            eventually(lambda: replica.follows(node), "the replica knows its master")
        self.masters = masters
        self.moves_in_one_piece = self.nodes[0].can_move_in_one_piece()
        self.wait_whole()
        seeds = ",".join(f"127.0.0.1:{node.public_port}" for node in self.nodes[:2])
        self.url = f"rediss+cluster://{seeds}?ssl-ca={certificate.file}" if certificate else f"redis+cluster://{seeds}"

    def is_whole(self):
        """Every node knows everything: one that does not know that a replica is one does not vote for it."""
        try:
            return len({node.view() for node in self.nodes}) == 1 and \
                all(node.has_heard_of_all(self.masters) for node in self.nodes) and \
                sum(node.is_following() for node in self.nodes) == len(self.nodes) - self.masters
        except redis.exceptions.BusyLoadingError:  # a replica that is receiving all data
            return False

    def wait_whole(self):
        """Waits until every node knows who has every slot, and every replica has its data."""
        eventually(self.is_whole, "the cluster is whole", 60)

    def wait_agreed(self):
        """Waits until every running node has the same view. Redis before 7.2 loses a slot, so that no node has it any
        more, if it is moved on by a node, or a replica is promoted, that does not know of its last move yet
        (https://github.com/redis/redis/pull/12344)."""
        eventually(lambda: len({node.view() for node in self.nodes if node.is_running()}) == 1,
                   "the nodes agree", 60)

    def has_replica(self, node):
        return any(other.is_running() and other.master_port() == node.port for other in self.nodes)

    def add_master(self):
        """Adds a master without slots; `masters` counts it when it has some."""
        node = ClusterNode(self.folder / f"n{len(list(self.folder.iterdir()))}", **self.more).start()
        self.nodes.append(node)
        self.nodes[0].ask("MEET", "127.0.0.1", node.public_port, node.bus_port)
        eventually(lambda: len({other.view() for other in self.nodes}) == 1 and "cluster_state:ok" in node.ask("INFO"),
                   "the new node is known", 60)
        return node

    def remove(self, node):
        """It has no slots any more, and may have become a replica because of that."""
        self.nodes.remove(node)
        node.stop(signal.SIGKILL)
        for other in self.nodes:
            other.ask("FORGET", node.id)

    def fix(self):
        """Does what redis-cli does about incomplete moves."""
        done = subprocess.run(["redis-cli", "--cluster", "fix", f"127.0.0.1:{self.nodes[0].port}"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)
        assert done.returncode == 0, done.stdout

    def slot(self, shard):
        return key_slot(f"{{{shard}}}".encode())

    def owners(self):
        """The running masters, in the order of the nodes."""
        return [node for node in self.nodes if node.is_running() and node.master_port() is None]

    def owner(self, shard):
        """The node that has the shard, according to itself."""
        slot = self.slot(shard)
        return next(node for node in self.nodes if node.is_running() and node.has_slot(slot))

    def master_of(self, shard):
        return self.owner(shard).client

    def shards_of(self, node):
        return {shard for shard in range(self.shards) if node.has_slot(self.slot(shard))}

    def log(self, shard):
        """The ids in the log of the shard."""
        return [int(entry) for entry, _ in self._entries(shard)]

    def posts(self, shard):
        """The same for posts only, without late markers."""
        return [int(entry) for entry, fields in self._entries(shard) if json.loads(fields["e"])["type"] == "post"]

    def _entries(self, shard):
        return [(entry.split("-")[0], fields)
                for entry, fields in self.owner(shard).client.xrange(f"sluice:{{{shard}}}:log")]

    def entries(self):
        """(id, fields) of every event of all shards, in order of their ids."""
        found = [entry for shard in range(self.shards) for entry in self._entries(shard)]
        return sorted(found, key=lambda entry: int(entry[0]))

    def replica_of(self, node):
        return next(other for other in self.nodes if other.is_running() and other.master_port() == node.port)

    def promote(self, replica, *how):
        """Makes it the master: with the master's consent, or (TAKEOVER) without the others. One that gets no votes,
        because the others do not know of all moves yet, gives up after five seconds."""
        asked = []

        def is_master():
            if not asked or time.monotonic() - asked[-1] > 6:
                asked.append(time.monotonic())
                replica.ask("FAILOVER", *how)
            return replica.master_port() is None
        eventually(is_master, "the replica was promoted", 60)

    def begin_move(self, shard, target, keys=0):
        """Marks the shard as being moved, and moves this many of its keys."""
        slot, source = self.slot(shard), self.owner(shard)
        target.ask("SETSLOT", slot, "IMPORTING", source.id)
        source.ask("SETSLOT", slot, "MIGRATING", target.id)
        if keys:
            self._move_keys(source, target, slot, keys)

    @staticmethod
    def _move_keys(source, target, slot, count):
        """False: there are none."""
        keys = source.ask("GETKEYSINSLOT", slot, count)
        if keys:
            source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 10000, "KEYS", *keys)
        return bool(keys)

    def move(self, shard, target, at_once=100, between=lambda: None):
        """Moves the slot of the shard like redis-cli --cluster reshard does: some keys, `between()`, some keys; then
        target, source and the other masters are told who has it."""
        slot, source = self.slot(shard), self.owner(shard)
        self.begin_move(shard, target)
        between()
        while self._move_keys(source, target, slot, at_once):
            between()
        masters = self.owners()
        for node in (target, source, *(other for other in masters if other not in (target, source))):
            try:
                node.ask("SETSLOT", slot, "NODE", target.id)
            except redis.ResponseError:  # it knows already, had no other slots, and is a replica now
                if node.master_port() is None:
                    raise

    def stop(self, how=signal.SIGKILL):
        for node in self.nodes:
            node.stop(how)

    def end(self):
        """Called at the end of the test."""
        self.stop()
