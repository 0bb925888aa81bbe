"""TLS to Redis: sluiced, its workers, the sentinels and the command line. Test files that also run with
SLUICE_TEST_REDIS=tls show that everything else is as without."""

import re

import pytest

from harness import programs
from harness.api import Site
from harness.pages import Shell, examples, pattern, without_space
from harness.ports import steady_port
from harness.redis_cluster import RedisCluster
from harness.redis_group import RedisGroup
from harness.redis_server import shard_of
from harness.tls import Certificate
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"


@pytest.fixture(scope="module")
def redis(module_servers):
    return module_servers.redis(kind="tls")


def why(gateway, part="streams"):
    """Returns the reason that /readyz?verbose gives for a failing part."""
    answer = gateway.get("/readyz?verbose", gateway.bearer(scope="admin"))
    return answer.json["parts"][part]["why"] or ""


def test_posts_reach_streams_and_the_api_writes(gateway, cli, redis):
    assert gateway.ready["redis"].startswith("rediss://127.0.0.1:")
    cli.run("user", "add", "ada")
    with gateway.stream(FIREHOSE) as stream:
        post_id = cli.run("post", "--user", "ada", "x" * 4000)
        assert stream.next()["id"] == post_id
        site = Site(gateway)
        bob = site.user("bob")
        made = bob.post("by the API")
        assert stream.next()["id"] == made["id"]
        site.close()
    sockets = redis.client.client_list()
    names = {client["name"]: client["addr"] for client in sockets if client["name"].startswith("sluiced")}
    assert names and all(address.startswith("127.0.0.1:") for address in names.values()), sockets


def test_a_worker_runs_tasks(servers, cli_for):
    redis = servers.redis(kind="tls", shards=8)
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    for number in range(8):
        cli.run("user", "add", f"user{number}")
        cli.run("follow", f"user{number}", "ada")

    def left():
        return sum(redis.client.xlen(f"sluice:{{{shard}}}:tasks") for shard in range(8))
    assert left() > 0  # users in other shards
    worker = cli.start("worker", "--concurrency", 2)
    eventually(lambda: left() == 0, "every task is done")
    said = worker.stop()
    assert "worker_ready" in said and "error" not in said


def test_redis_with_tls_is_restarted(servers, cli_for):
    redis = servers.redis(kind="tls", append_only=True)
    gateway, cli = servers.gateway(redis), cli_for(redis)
    cli.run("user", "add", "ada")
    with gateway.stream(FIREHOSE) as stream:
        redis.stop()
        gateway.wait_status("/readyz", 503)
        redis.start()
        gateway.wait_status("/readyz", 200)
        post_id = cli.run("post", "--user", "ada", "again")
        assert stream.until(post_id)


def test_a_certificate_that_has_expired_is_refused_until_it_is_renewed(servers):
    redis = servers.redis(kind="tls")
    gateway = servers.gateway(redis)
    redis.certificate.expire()
    redis.show_certificate()
    redis.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    redis.drop_subscribers()
    gateway.wait_status("/readyz", 503)
    eventually(lambda: "certificate has expired" in why(gateway), "the reason is told")
    redis.certificate.renew()
    redis.show_certificate()
    gateway.wait_status("/readyz", 200)


def test_the_log_says_why_redis_is_not_trusted(servers, redis, tmp_path):
    port = redis.tls_port
    stranger = Certificate(tmp_path)
    for url, reason in (
            (f"rediss://127.0.0.1:{port}?ssl-ca={stranger.file}", "the certificate of Redis is not trusted"),
            (f"{redis.url}&ssl-name=redis.example", "the certificate of Redis is not for redis.example"),
            (f"redis://127.0.0.1:{port}", "the URL must begin with rediss, not redis")):
        gateway = servers.gateway(url, "--redis-timeout", "2s", start=False).launch()
        eventually(lambda: "event=redis_unavailable" in gateway.log() and reason in gateway.log(), reason)


def test_a_certificate_of_ours(servers, cli_for, redis):
    wanting = servers.redis(kind="tls")
    wanting.client.config_set("tls-auth-clients", "yes")
    gateway = servers.gateway(wanting, start=False).launch()
    eventually(lambda: "Redis wants a certificate of ours (ssl-cert and ssl-key in the URL)" in gateway.log(),
               "the reason is told")
    cli = cli_for(wanting)
    cli.run("user", "add", "ada", status=1)
    assert "Redis wants a certificate of ours" in cli.done.stderr
    wanting.url += f"&ssl-cert={wanting.certificate.file}&ssl-key={wanting.certificate.key}"
    cli = cli_for(wanting)
    gateway = servers.gateway(wanting)
    cli.run("user", "add", "ada")
    with gateway.stream(FIREHOSE) as stream:
        assert stream.until(cli.run("post", "--user", "ada", "shown"))


def test_a_redis_without_tls(servers, cli_for):
    redis = servers.redis(kind="unix")
    port = steady_port()
    redis.client.config_set("port", port)
    gateway = servers.gateway(f"rediss://127.0.0.1:{port}", "--redis-timeout", "2s", start=False).launch()
    eventually(lambda: "begins with redis, not rediss" in gateway.log(), "the reason is told")


def test_the_page_works_as_it_stands(servers, tmp_path):
    page = (programs.SOURCE / "docs/operating.md").read_text().split("\n### TLS to Redis\n")[1].split("\n### ")[0]
    port, shell = str(steady_port()), Shell()
    try:
        shell.run(f"cd {tmp_path}")
        for command, expected in examples(page.replace("6390", port)):
            said = len(shell.errors())
            printed = shell.run(command)
            if command.startswith("redis-server"):
                log = tmp_path / "redis.log"
                eventually(lambda: log.exists() and "eady to accept" in log.read_text(), "Redis is there")
            elif command.startswith("sluice"):
                assert re.match(pattern(expected) + "$", without_space(printed + shell.errors()[said:])), (command, printed)
    finally:
        shell.run("kill %1")
        shell.close()


def test_sentinels(servers, cli_for):
    group = RedisGroup(servers.folder / "group", kind="tls")
    servers.redis_servers.append(group)
    gateway, cli = servers.gateway(group.url), cli_for(group)
    cli.run("--wait-replicas", "1", "user", "add", "ada")
    with gateway.stream(FIREHOSE) as stream:
        assert stream.until(cli.run("post", "--wait-replicas", 1, "--user", "ada", "before"))
        group.kill_master()
        group.wait_failover()
        gateway.wait_status("/readyz", 200)
        assert stream.until(cli.run("post", "--user", "ada", "after"))


def test_a_cluster(servers, cli_for, tmp_path):
    cluster = RedisCluster(servers.folder / "cluster", masters=2, certificate=Certificate(tmp_path))
    servers.redis_servers.append(cluster)
    cli = cli_for(cluster)
    cli.run("init")
    gateway = servers.gateway(cluster.url)
    users = [cli.run("user", "add", f"user{number}") for number in range(8)]
    assert len({cluster.owner(shard_of(user)) for user in users}) == 2
    with gateway.stream(FIREHOSE) as stream:
        posts = [cli.run("post", "--user", f"user{number}", "hi") for number in range(8)]
        assert {stream.next()["id"] for _ in posts} == set(posts)
        cli.run("delete", "--user", "user0", posts[0])
        assert stream.next().type == "delete"
    alone = f"rediss://127.0.0.1:{cluster.nodes[0].public_port}?ssl-ca={tmp_path}/cert.pem"
    cli.run("--redis", alone, "user", "add", "ada", status=1)
    assert "rediss+cluster://" in cli.done.stderr
