"""A Redis Cluster with the interface of a RedisServer: each command goes to the nodes that it concerns. This is what
servers.redis() returns with SLUICE_TEST_REDIS=cluster."""

import contextlib
import re
import signal

import redis
from redis.exceptions import MovedError

from .redis_cluster import RedisCluster
from .redis_server import Database
from .waiting import Deadline

_KEY = re.compile(r"sluice:{(\d+)}:")


def _merged(answers):
    """Merges the answers of all masters: lists are concatenated, numbers in reports added, of all else the first
    counts."""
    first = answers[0]
    if isinstance(first, list):
        return sum(answers, [])
    if isinstance(first, dict):
        names = {name: None for answer in answers for name in answer}
        return {name: _merged([answer[name] for answer in answers if name in answer]) for name in names}
    if isinstance(first, int) and not isinstance(first, bool):
        return sum(answers)
    return first


class ClusterClient:
    """A redis.Redis for all masters: a command goes to the node that has the shard of its keys, one without keys to all
    of them. Settings and users are also set on replicas."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._owners = {}  # by shard, as far as known

    def _owner(self, shard):
        if shard not in self._owners:
            self._owners[shard] = self._cluster.owner(shard)
        return self._owners[shard].client

    def _shard(self, *arguments):
        """The shard that they name; None: they name none."""
        shards = {int(shard) for shard in _KEY.findall(repr(arguments))}
        assert len(shards) <= 1, f"{arguments} are in several shards"
        return shards.pop() if shards else None

    def _call(self, name, arguments, more):
        if name == "config_set" or arguments[:1] == ("ACL",):
            return _merged([getattr(node.client, name)(*arguments, **more) for node in self._cluster.nodes])
        shard = self._shard(arguments, more)
        if shard is None:
            return _merged([getattr(node.client, name)(*arguments, **more) for node in self._cluster.owners()])
        try:
            return getattr(self._owner(shard), name)(*arguments, **more)
        except MovedError:
            self._owners.clear()
            return getattr(self._owner(shard), name)(*arguments, **more)

    def __getattr__(self, name):
        return lambda *arguments, **more: self._call(name, arguments, more)

    def pipeline(self, transaction=False):
        assert not transaction  # only for one shard, through ClusteredRedis.master_of()
        return _Pipeline(self)


class _Pipeline:
    """A pipeline for each node that is needed. execute() returns the answers in the order of the commands."""

    def __init__(self, client):
        self._client, self._pipes, self._order = client, {}, []

    def __getattr__(self, name):
        def add(*arguments, **more):
            shard = self._client._shard(arguments, more)
            node = self._client._owner(shard)
            if node not in self._pipes:
                self._pipes[node] = node.pipeline(transaction=False)
            getattr(self._pipes[node], name)(*arguments, **more)
            self._order.append(node)
            return self
        return add

    def execute(self):
        answers = {node: iter(pipe.execute()) for node, pipe in self._pipes.items()}
        return [next(answers[node]) for node in self._order]


class Clusters:
    """Clusters that earlier tests have used, reset to their initial state: starting a cluster takes seconds."""

    def __init__(self, folder):
        self.folder, self.free, self.count = folder, [], 0

    def take(self):
        if self.free:
            return self.free.pop()
        self.count += 1
        cluster = RedisCluster(self.folder / f"c{self.count}")
        cluster.first_state = self._state(cluster)
        return cluster

    def give_back(self, cluster):
        """A cluster that was changed other than by writing to it is ended."""
        if self._state(cluster) != cluster.first_state:
            cluster.stop()
            return
        for node in cluster.owners():
            node.client.flushall()
            node.client.script_flush()
        for node in cluster.nodes:
            node.client.config_resetstat()
        self.free.append(cluster)

    @staticmethod
    def _state(cluster):
        """Processes, roles, slots, settings and users; None: not all nodes answer."""
        with contextlib.suppress(redis.RedisError):
            return [(node.process and node.process.pid, node.view(), node.client.config_get(), node.client.acl_list())
                    for node in cluster.nodes]
        return None

    def stop(self):
        for cluster in self.free:
            cluster.stop()


class ClusteredRedis(Database):
    """A database in a cluster that does not change: one of `clusters`, or with `more` (options of each ClusterNode) a
    separate one."""

    is_clustered, publish_command = True, "SPUBLISH"

    def __init__(self, folder, clusters, **more):
        self.clusters = None if more else clusters
        self.cluster = RedisCluster(folder, **more) if more else clusters.take()
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.url = self.cluster.url
        self.client = ClusterClient(self.cluster)
        self.shards = 1

    def start(self):
        """Starts all nodes again; returns when they have found each other."""
        for node in self.cluster.nodes:
            node.start()
        self.cluster.wait_whole()
        return self

    def stop(self, how=signal.SIGTERM):
        self.cluster.stop(how)

    def end(self):
        """Called at the end of the test."""
        if self.clusters:
            self.clusters.give_back(self.cluster)
        else:
            self.cluster.stop()

    def master_of(self, shard):
        return self.cluster.owner(shard).client

    @property
    def masters(self):
        return [node.client for node in self.cluster.owners()]

    def shards_by_clock(self):
        nodes = {}
        for shard in range(self.shards):
            nodes.setdefault(self.cluster.owner(shard).port, []).append(shard)
        return list(nodes.values())

    @property
    def pids(self):
        return [node.process.pid for node in self.cluster.nodes]

    def url_over_tcp(self, login=""):
        """`login`: USER:PASSWORD@, for another user than the default one."""
        return self.url.replace("://", f"://{login}")

    @property
    def folders(self):
        """The folders with the masters' files."""
        return [node.folder for node in self.cluster.owners()]

    @contextlib.contextmanager
    def listening(self):
        connections = {}
        for shard in range(self.shards):
            port = self.cluster.owner(shard).port
            if port not in connections:
                connections[port] = redis.Connection(port=port, decode_responses=True)
            connections[port].send_command("SSUBSCRIBE", self.channel(shard))
            connections[port].read_response()

        def next_message():
            deadline = Deadline(what="a published message")
            while True:
                for connection in connections.values():
                    if connection.can_read(min(0.01, deadline.left())):
                        return connection.read_response()[2]
        yield next_message
        for connection in connections.values():
            connection.disconnect()