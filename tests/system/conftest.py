"""Fixtures of the system tests: a real redis-server and a real sluiced for each file, more of them
for tests that break one. A test fails when a server died or a sanitizer spoke meanwhile."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness.cli import Cli  # noqa: E402
from harness.servers import Servers  # noqa: E402


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
