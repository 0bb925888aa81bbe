"""Invalid addresses of clusters: sluiced and `sluice` report what is wrong, and where."""

import contextlib

import pytest

from harness import programs
from harness.cli import Cli
from harness.ports import steady_port
from harness.program import Program
from harness.redis_cluster import RedisCluster
from harness.redis_server import RedisServer
from harness.tls import Certificate


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = RedisCluster(tmp_path_factory.mktemp("cluster"), masters=1)
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    cluster = RedisCluster(folder, masters=1, certificate=Certificate(folder))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    redis = RedisServer(tmp_path_factory.mktemp("alone"), port=steady_port(), kind="unix").start()
    yield redis
    redis.stop()


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "secret"
    file.write_text("x" * 64)
    file.chmod(0o600)
    return file


@pytest.fixture
def refused(secret):
    """refused(url, words): sluice fails with these words, and sluiced prints them and exits, or logs them."""
    @contextlib.contextmanager
    def serving(url):
        program = Program("bash", "-c", 'exec "$@" 2>&1', "-", programs.sluiced(), "--redis", url, "--listen", "127.0.0.1:0",
                          "--jwt-secret-file", secret, "--workers", "1", "--redis-timeout", "2s")
        yield program
        program.stop(statuses=(0, 1, -15))

    def refused(url, words):
        cli = Cli()
        cli.run("--redis", url, "init", status=1)
        assert words in cli.done.stderr, cli.done.stderr
        with serving(url) as sluiced:
            while words not in sluiced.line():
                pass
    return refused


@pytest.mark.parametrize("url, words", [
    ("redis+cluster://", "names no host"),
    ("redis+cluster://127.0.0.1:7001,", "names no host"),
    ("redis+cluster://127.0.0.1:0", "port is not a number from 1 to 65535"),
    ("redis+cluster://127.0.0.1/1", "no databases to choose from"),
    ("redis+cluster://127.0.0.1?db=1", "no databases to choose from"),
    ("redis+cluster://127.0.0.1?ssl-ca=/ca.pem", "what TLS needs stands behind rediss+cluster://"),
    ("rediss+cluster://127.0.0.1?db=1", "only these may stand: ssl-ca"),
    ("rediss+cluster://127.0.0.1?ssl-ca=/none/ca.pem", "cannot read the ssl-ca '/none/ca.pem'"),
    ("redis-cluster://127.0.0.1", "redis+cluster://host[:port],"),
    ("redis+cluster://" + ",".join("abcdefghi"), "at most 8 nodes"),
])
def test_what_is_no_address_of_a_cluster(refused, url, words):
    refused(url, words)


def test_seeds_that_are_away(refused):
    refused("redis+cluster://127.0.0.1:1", "Connection refused")
    refused("redis+cluster://gone.invalid", "not known")


def test_a_seed_that_is_no_cluster_is_named(refused, alone, cluster):
    seed = f"127.0.0.1:{alone.port}"
    refused(f"redis+cluster://{seed}", f"the Redis at {seed} is no node of a cluster; its URL begins with redis://")


@pytest.mark.parametrize("database", ["", "/1"])
def test_a_node_that_is_named_as_a_redis_alone(refused, cluster, database):
    words = "this Redis is a node of a cluster; "
    if database and int(cluster.nodes[0].client.info().get("valkey_version", "8").split(".")[0]) >= 9:
        words = "DB index is out of range"  # its clusters may have several databases
    refused(f"redis://127.0.0.1:{cluster.nodes[0].port}{database}", words)


def test_a_wrong_password(refused, cluster):
    refused(cluster.url.replace("://", "://ada:secret@"), "WRONGPASS")


def test_plain_text_for_tls_and_tls_for_plain_text(refused, cluster, encrypted):
    refused("rediss" + cluster.url.removeprefix("redis"), "begins with redis, not rediss")
    refused("redis" + encrypted.url.removeprefix("rediss").partition("?")[0], "must begin with rediss, not redis")


def test_a_certificate_of_somebody_else(refused, encrypted, tmp_path):
    plain = encrypted.url.partition("?")[0]
    refused(f"{plain}?ssl-ca={Certificate(tmp_path).file}", "the certificate of Redis is not trusted")
    refused(f"{encrypted.url}&ssl-name=other", "the certificate of Redis is not for other")


def test_a_node_that_announces_what_cannot_be_reached_is_named(refused, cluster):
    def announce(name, kind):
        for node in cluster.nodes:
            node.client.execute_command("CONFIG", "SET", "cluster-announce-hostname", name,
                                        "cluster-preferred-endpoint-type", kind)
    announce("gone.invalid", "hostname")
    refused(cluster.url, f"the node gone.invalid:{cluster.nodes[0].port}")
    announce("", "ip")
