"""Fixtures of the system tests: a real redis-server and a real sluiced for each file, more of them
for tests that break one. A test fails when a server died or a sanitizer spoke meanwhile."""

import json
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness.cli import Cli  # noqa: E402
from harness.gateway import Gateway  # noqa: E402
from harness.redis_server import RedisServer  # noqa: E402


class Servers:
    """Starts servers in folders of their own and ends them all."""

    def __init__(self):
        # Not pytest's tmp_path: the path of a unix socket must stay below 108 bytes.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
        self.redis_servers, self.gateways = [], []

    def folder_for(self, name):
        return self.folder / f"{name}{len(self.redis_servers) + len(self.gateways)}"

    def redis(self, **options):
        server = RedisServer(self.folder_for("redis"), **options)
        self.redis_servers.append(server)
        return server.start()

    def gateway(self, redis, *options, start=True, workers=1, **more):
        """A started sluiced; `redis` a RedisServer, an URL, or None for the embedded one."""
        url = redis.url if isinstance(redis, RedisServer) else redis
        gateway = Gateway(self.folder_for("gateway"), url, "--workers", workers, *options, **more)
        self.gateways.append(gateway)
        return gateway.start() if start else gateway

    def successor(self, gateway, *options, start=True, workers=1):
        """A sluiced that takes the place of `gateway`, with settings of its own."""
        return self.gateway(gateway.redis_url, "--takeover", *options, start=start,
                            workers=workers, listen=f"127.0.0.1:{gateway.port}",
                            data_dir=gateway.data_dir)

    def check(self):
        for gateway in self.gateways:
            gateway.check()

    def stop(self):
        failures = []
        for gateway in self.gateways:
            try:
                gateway.stop()
            except AssertionError as failure:
                failures.append(str(failure))
        for server in self.redis_servers:
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not failures, "\n".join(failures)


@pytest.fixture(scope="module")
def module_servers():
    servers = Servers()
    yield servers
    servers.stop()


@pytest.fixture
def servers():
    """For tests that need servers of their own: servers.redis(), servers.gateway(redis, ...)."""
    servers = Servers()
    yield servers
    servers.stop()


@pytest.fixture(scope="module")
def redis(module_servers):
    """A redis-server, the same for all tests of a file."""
    return module_servers.redis()


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    """A sluiced with one worker on `redis`, the same for all tests of a file."""
    return module_servers.gateway(redis)


@pytest.fixture
def cli(redis):
    return Cli(redis)


@pytest.fixture
def cli_for():
    """cli_for(redis): the command line on another Redis; cli_for(None): on none."""
    return Cli


@pytest.fixture(autouse=True)
def servers_live(request):
    """After each test: every server that the file shares must have lived through it."""
    yield
    if "module_servers" in request.fixturenames:
        request.getfixturevalue("module_servers").check()


@pytest.fixture
def publish(redis):
    """publish(event): plain PUBLISH of an object, or of text as it is."""
    def publish(event):
        message = event if isinstance(event, (str, bytes)) else json.dumps(event)
        return redis.publish(message)
    return publish
