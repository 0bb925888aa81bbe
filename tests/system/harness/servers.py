"""The servers of a test, or of a file of tests, or of a bench."""

import os
import pathlib
import shutil
import tempfile

from .cli import Cli
from .gateway import Gateway
from .mariadb_server import MariadbServer
from .redis_server import RedisServer


# SLUICE_TEST_SHARDS=8: a database of a Redis that a test starts has so many shards, unless the test
# says how many it needs. Where there are several, sluiced runs the tasks between them.
SHARDS = int(os.environ.get("SLUICE_TEST_SHARDS", "1"))


class Servers:
    """Starts servers in folders of their own and ends them all. Clients come over TLS when there is a
    certificate."""

    def __init__(self, certificate=None):
        self.certificate = certificate
        # Not pytest's tmp_path: the path of a unix socket must stay below 108 bytes.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
        self.redis_servers, self.gateways = [], []
        self.guests = []  # whatever else runs: stopped first, also when a test fails

    def folder_for(self, name):
        return self.folder / f"{name}{len(self.redis_servers) + len(self.gateways)}"

    def redis(self, shards=SHARDS, **options):
        """A started redis-server for a database of so many shards; of one, it is empty still."""
        server = RedisServer(self.folder_for("redis"), **options)
        self.redis_servers.append(server)
        server.start()
        server.shards = shards
        if shards > 1:
            Cli(server).run("init", "--shards", shards)
        return server

    def mariadb(self, **options):
        server = MariadbServer(self.folder / f"mariadb{len(self.guests)}", **options)
        self.guests.append(server)
        return server.start()

    def gateway(self, redis, *options, start=True, workers=1, **more):
        """A started sluiced; `redis` a RedisServer, an URL, or None for the embedded one."""
        url = redis.url if isinstance(redis, RedisServer) else redis
        if isinstance(redis, RedisServer) and redis.shards > 1 and "--run-tasks" not in options:
            options += ("--run-tasks", "on")
        timeouts = ["--api-timeout", "--redis-timeout"]  # a slow machine is none that is away
        if not more.get("build"):  # programs of before 0.2 do not have it
            timeouts.append("--worker-timeout")
        for option in timeouts:
            if option not in options:
                options += (option, "1m")
        more.setdefault("certificate", self.certificate)
        gateway = Gateway(self.folder_for("gateway"), url, "--workers", workers, *options, **more)
        self.gateways.append(gateway)
        return gateway.start() if start else gateway

    def successor(self, gateway, *options, start=True, workers=1, **more):
        """A sluiced that takes the place of `gateway`, with settings of its own."""
        return self.gateway(gateway.redis_url, "--takeover", *options, start=start,
                            workers=workers, listen=f"127.0.0.1:{gateway.port}",
                            data_dir=gateway.data_dir, **more)

    def check(self):
        for gateway in self.gateways:
            gateway.check()

    def stop(self):
        failures = []
        for guest in self.guests:
            guest.stop()
        for gateway in self.gateways:
            try:
                gateway.stop()
            except AssertionError as failure:
                failures.append(str(failure))
        for server in self.redis_servers:
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not failures, "\n".join(failures)
