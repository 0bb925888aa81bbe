"""The servers of a test, of a file of tests, or of a benchmark."""

import os
import pathlib
import shutil
import tempfile

from .cli import Cli
from .clustered_redis import ClusteredRedis
from .gateway import Gateway
from .mariadb_server import MariadbServer
from .redis_server import KIND, Database, RedisServer


# SLUICE_TEST_SHARDS=8: the number of shards of databases that tests create, unless a test needs another number. If
# there are several, sluiced runs the tasks between them.
SHARDS = int(os.environ.get("SLUICE_TEST_SHARDS", "8" if KIND == "cluster" else "1"))


class Servers:
    """Starts servers in their own folders and ends them all. Clients connect over TLS if there is a certificate.
    `clusters`: provides clusters to tests that need any Redis."""

    def __init__(self, certificate=None, clusters=None):
        self.certificate, self.clusters = certificate, clusters
        # Not pytest's tmp_path: the path of a unix socket must be shorter than 108 bytes.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
        self.redis_servers, self.gateways = [], []
        self.programs = []  # other programs: stopped first, also when a test fails

    def folder_for(self, name):
        return self.folder / f"{name}{len(self.redis_servers) + len(self.gateways)}"

    def redis(self, shards=SHARDS, kind=KIND, **options):
        """Returns a started redis-server, or a cluster, with a database of this many shards; with one shard, a
        redis-server is still empty. `shards` None: it is empty in any case."""
        if kind == "cluster":
            server = ClusteredRedis(self.folder_for("redis"), self.clusters, **options)
        else:
            server = RedisServer(self.folder_for("redis"), kind=kind, **options).start()
        self.redis_servers.append(server)
        server.shards = shards or 1
        if server.shards > 1 or shards and kind == "cluster":
            Cli(server).run("init", "--shards", shards)
        return server

    def mariadb(self, **options):
        server = MariadbServer(self.folder / f"mariadb{len(self.programs)}", **options)
        self.programs.append(server)
        return server.start()

    def gateway(self, redis, *options, start=True, workers=1, **more):
        """Returns a started sluiced; `redis` is what redis() returned, a URL, or None for the embedded one."""
        url = redis.url if isinstance(redis, Database) else redis
        if isinstance(redis, Database) and redis.shards > 1 and "--run-tasks" not in options:
            options += ("--run-tasks", "on")
        timeouts = {"--api-timeout": "1m", "--redis-timeout": "1m"}  # a slow machine must not count as unavailable
        if not more.get("build"):  # programs before 0.2 do not have these options
            timeouts["--worker-timeout"] = "1m"
            if isinstance(redis, Database) and redis.shards > 1:
                timeouts["--order-wait"] = "10s"  # and no shard is late
        for option, time in timeouts.items():
            if option not in options:
                options += (option, time)
        more.setdefault("certificate", self.certificate)
        gateway = Gateway(self.folder_for("gateway"), url, "--workers", workers, *options, **more)
        self.gateways.append(gateway)
        return gateway.start() if start else gateway

    def successor(self, gateway, *options, start=True, workers=1, **more):
        """Returns a sluiced that takes over from `gateway`, with its own settings."""
        return self.gateway(gateway.redis_url, "--takeover", *options, start=start,
                            workers=workers, listen=f"127.0.0.1:{gateway.port}",
                            data_dir=gateway.data_dir, **more)

    def check(self):
        for gateway in self.gateways:
            gateway.check()

    def stop(self):
        failures = []
        for stop in [each.stop for each in self.programs + self.gateways] + [redis.end for redis in self.redis_servers]:
            try:
                stop()
            except AssertionError as failure:
                failures.append(str(failure))
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not failures, "\n".join(failures)
