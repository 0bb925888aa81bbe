"""Fixtures of the system tests: a real redis-server and a real sluiced for each file, and further ones for tests that
break one. A test fails if a server died or a sanitizer reported an error meanwhile."""

import json
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness.cli import Cli  # noqa: E402
from harness.clustered_redis import Clusters  # noqa: E402
from harness.redis_cluster import RedisCluster  # noqa: E402
from harness.redis_server import KIND  # noqa: E402
from harness.servers import Servers  # noqa: E402
from harness.tls import Certificate  # noqa: E402

# SLUICE_TEST_WIRE=tls: of the tests that run both ways, only those over TLS.
WIRES = os.environ.get("SLUICE_TEST_WIRE", "plain tls").split()


def pytest_generate_tests(metafunc):
    """`pytestmark = pytest.mark.wires`: the tests of a file run over plain connections and over TLS."""
    if "wire" in metafunc.fixturenames and metafunc.definition.get_closest_marker("wires"):
        metafunc.parametrize("wire", WIRES, indirect=True, scope="module")


def pytest_collection_modifyitems(items):
    """`@pytest.mark.one_redis("why")`: the test applies to a single Redis, not to a cluster."""
    for item in items if KIND == "cluster" else ():
        mark = item.get_closest_marker("one_redis")
        if mark:
            item.add_marker(pytest.mark.skip(f"one Redis: {mark.args[0]}"))


@pytest.fixture(scope="module")
def wire(request):
    """How clients connect: plain or tls."""
    return getattr(request, "param", "plain")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def wire_certificate(request, wire):
    return request.getfixturevalue("certificate") if wire == "tls" else None


@pytest.fixture(scope="session")
def clusters(tmp_path_factory):
    clusters = Clusters(tmp_path_factory.mktemp("clusters"))
    yield clusters
    clusters.stop()


@pytest.fixture(scope="module")
def module_servers(wire_certificate, clusters):
    servers = Servers(wire_certificate, clusters)
    yield servers
    servers.stop()


@pytest.fixture
def servers(wire_certificate, clusters):
    """For tests that need servers of their own: servers.redis(), servers.gateway(redis, ...)."""
    servers = Servers(wire_certificate, clusters)
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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A Redis Cluster of three masters and three replicas with a database of 64 shards, the same for all tests of a
    file, even if they change it."""
    cluster = RedisCluster(tmp_path_factory.mktemp("cluster"))
    Cli(cluster).run("init")
    yield cluster
    cluster.stop()


@pytest.fixture
def cli(redis):
    return Cli(redis)


@pytest.fixture
def cli_for():
    """cli_for(redis): the command line with another Redis; cli_for(None): with none."""
    return Cli


@pytest.fixture(autouse=True)
def servers_live(request):
    """After each test: every server that the file shares must still be alive."""
    yield
    if "module_servers" in request.fixturenames:
        request.getfixturevalue("module_servers").check()


@pytest.fixture
def publish(redis):
    """publish(event): plain PUBLISH of an object, or of unchanged text."""
    def publish(event):
        message = event if isinstance(event, (str, bytes)) else json.dumps(event)
        return redis.publish(message)
    return publish
