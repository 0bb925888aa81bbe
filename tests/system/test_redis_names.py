"""Redis by host name: streams continue when it cannot be resolved, and all its addresses are tried."""

import socket
import time

import pytest

from harness.api import Site
from harness.names import Names
from harness.ports import steady_port
from harness.waiting import TIMEOUT_FACTOR, eventually

pytestmark = pytest.mark.one_redis("the nodes of a cluster are named by the cluster")
FIREHOSE = "/v1/stream/firehose"


@pytest.fixture
def names(servers):
    try:
        names = Names(servers.folder)
    except PermissionError:
        pytest.skip("port 53 of a loopback address is not to be had")
    why = names.missing()
    if why:
        names.close()
        pytest.skip(f"no mount namespace of one's own: {why}")
    yield names
    names.close()


def test_a_silent_resolver_holds_nothing_up(servers, names):
    """While Redis is unavailable its name is looked up again and again."""
    redis = servers.redis(port=steady_port())
    names.set(redis=["127.0.0.1"])
    gateway = servers.gateway(f"redis://redis.test:{redis.port}", "--keepalive-ms", 50, "--api-timeout", "5s",
                              "--redis-timeout", "5s", prefix=names.prefix)
    with gateway.stream(FIREHOSE) as stream:
        names.set()
        redis.stop()
        gateway.wait_status("/readyz", 503)
        worst, until = 0, time.monotonic() + 6
        while time.monotonic() < until:
            begun = time.monotonic()
            assert gateway.get("/healthz").status == 200
            stream.wait_keepalives(1)
            worst = max(worst, time.monotonic() - begun)
        assert worst < 1.5 * TIMEOUT_FACTOR
    names.set(redis=["127.0.0.1"])
    redis.start()
    gateway.wait_status("/readyz", 200, 60)


def test_a_silent_resolver_does_not_hold_up_the_end(servers, names):
    redis = servers.redis(port=steady_port())
    names.set(redis=["127.0.0.1"])
    gateway = servers.gateway(f"redis://redis.test:{redis.port}", "--drain-timeout", "100ms", prefix=names.prefix)
    names.set()
    redis.stop()
    gateway.wait_status("/readyz", 503)
    eventually(names.is_asked, "the name is looked up")
    gateway.stop()


@pytest.fixture(params=["::1", "127.0.0.1"])
def redis_by_name(servers, names, request):
    """It listens on only one of the addresses of its name."""
    bind = request.param
    try:
        with socket.create_server((bind, 0), family=socket.AF_INET6 if ":" in bind else socket.AF_INET):
            pass
    except OSError:
        pytest.skip(f"no {bind} here")
    redis = servers.redis(port=steady_port(), bind=bind)
    names.set(redis=["127.0.0.1", "::1"])
    redis.url = f"redis://redis.test:{redis.port}"
    return redis


def test_sluiced_tries_every_address_of_a_name(servers, names, redis_by_name):
    gateway = servers.gateway(redis_by_name.url, prefix=names.prefix)
    site = Site(gateway)
    ada = site.user("ada")
    with gateway.stream(FIREHOSE) as stream:
        post = ada.post("by one of the addresses")
        stream.until(post["id"])
    eventually(lambda: gateway.metrics()["sluice_redis_round_trip_seconds_count"] > 0, "streams have theirs")


def test_libsluice_tries_every_address_of_a_name(names, cli_for, redis_by_name):
    cli = cli_for(redis_by_name, names.prefix)
    cli.run("user", "add", "ada")
    assert cli.run("post", "--user", "ada", "by one of the addresses")
