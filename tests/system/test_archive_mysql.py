"""The archive in a MariaDB with users: passwords and where they come from, TLS, and the effects of an unavailable
server."""

import contextlib
import json
import pathlib
import signal
import socket
import struct
import subprocess
import threading
import urllib.parse

import pytest

from harness import events, mariadb_server
from harness.api import Api
from harness.ports import steady_port
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"
PASSWORD = "s@cret/ word"
POSTS, PROFILE_MAX = 6, 2


def make_certificates(folder):
    """An authority, its certificates for localhost and for a client, and another authority."""
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=folder)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other"):
        openssl("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", 2,
                "-subj", f"/CN=authority {name}")
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    for name, subject in (("server", "/CN=localhost"), ("client", "/CN=sluice")):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-days", 2, "-extfile", "names", "-out", f"{name}.pem")


@pytest.fixture(scope="module")
def mariadb(module_servers, tmp_path_factory):
    if not mariadb_server.is_installed():
        pytest.skip("mariadbd is not installed")
    folder = tmp_path_factory.mktemp("tls")
    make_certificates(folder)
    server = module_servers.mariadb(
        users=True, port=steady_port(),
        options=[f"--ssl-ca={folder}/ca.pem", f"--ssl-cert={folder}/server.pem",
                 f"--ssl-key={folder}/server.key"])
    server.certificates = folder
    # As docs/core.md says, and users with fewer permissions or other restrictions.
    server.sql(f"""
        CREATE USER sluice IDENTIFIED BY '{PASSWORD}';
        CREATE USER reader IDENTIFIED BY '{PASSWORD}';
        CREATE USER careful IDENTIFIED BY '{PASSWORD}' REQUIRE SSL;
        CREATE USER certified IDENTIFIED BY '{PASSWORD}' REQUIRE X509;
        CREATE DATABASE posts;
        GRANT CREATE, SELECT, INSERT, UPDATE ON posts.* TO sluice, careful, certified;
        GRANT SELECT ON posts.* TO reader;
        CREATE DATABASE nobodys;""")
    return server


@pytest.fixture(autouse=True)
def no_tables(mariadb):
    yield
    mariadb.sql("DROP DATABASE posts; CREATE DATABASE posts")


def url(mariadb, user="sluice", password=PASSWORD, host="127.0.0.1", database="posts", **options):
    options = {"timeout": 60, **options}  # with a longer timeout than usual: the machine may be slow
    login = f"{user}:{urllib.parse.quote(password, safe='')}" if password else user
    options = "&".join(f"{name.replace('_', '-')}={value}" for name, value in options.items())
    return f"mysql://{login}@{host}:{mariadb.port}/{database}?{options}"


def archive_some(cli, archive, **environment):
    """Returns ada's posts, newest first; those beyond PROFILE_MAX are in the archive."""
    cli.environment.update(SLUICE_ARCHIVE=archive, **environment)
    cli.run("user", "add", "ada")
    cli.run("config", "set", "profile-max", PROFILE_MAX)
    cli.run("config", "set", "archive", 1)
    posts = [cli.run("post", "--user", "ada", f"post {i}") for i in range(POSTS)]
    cli.run("worker", "--until-empty")
    return posts[::-1]


def posts_of(cli):
    return [json.loads(line)["id"] for line in cli.run("posts", "ada").splitlines()]


@pytest.fixture
def site(servers, cli_for):
    """A command line with its own Redis."""
    redis = servers.redis(shards=1)
    cli = cli_for(redis)
    cli.redis = redis
    return cli


def refused(cli, archive, *command, **environment):
    """Returns the error of the worker, or of `command`; it never contains the password."""
    cli.environment.update(SLUICE_ARCHIVE=archive, **environment)
    cli.run(*(command or ("worker", "--until-empty")), status=1)
    said = cli.done.stderr
    assert PASSWORD not in said and urllib.parse.quote(PASSWORD, safe="") not in said
    return said


# Passwords

@pytest.mark.parametrize("place", ["url", "environment", "file"])
def test_the_password_comes_from_where_it_is(mariadb, site, tmp_path, place):
    if place == "url":
        posts = archive_some(site, url(mariadb))
    elif place == "environment":
        posts = archive_some(site, url(mariadb, password=None), SLUICE_ARCHIVE_PASSWORD=PASSWORD)
    else:
        (tmp_path / "password").write_text(PASSWORD + "\n")
        posts = archive_some(site, url(mariadb, password=None, password_file=tmp_path / "password"))
    assert mariadb.sql("SELECT COUNT(*) FROM posts.sluice_posts") == str(POSTS - PROFILE_MAX)
    assert posts_of(site) == posts


def test_wrong_logins_are_refused_without_their_password(mariadb, site, tmp_path):
    assert "Access denied for user 'sluice'" in refused(site, url(mariadb, password="another"))
    assert "Access denied for user 'sluice'" in refused(site, url(mariadb, password=None))
    assert "Access denied for user 'nobody'" in refused(site, url(mariadb, user="nobody"))
    missing = url(mariadb, password=None, password_file=tmp_path / "missing")
    assert "No such file" in refused(site, missing)
    (tmp_path / "empty").touch()
    assert "is empty" in refused(site, url(mariadb, password=None, password_file=tmp_path / "empty"))


def test_wrong_databases_are_refused(mariadb, site, servers, cli_for):
    assert "Access denied" in refused(site, url(mariadb, database="nobodys"))
    mariadb.sql("GRANT ALL ON missing.* TO sluice")
    assert "Unknown database 'missing'" in refused(site, url(mariadb, database="missing"))
    assert "CREATE command denied" in refused(site, url(mariadb, user="reader"))
    site.run("user", "add", "bob")
    assert "there is none" in refused(site, url(mariadb), "posts", "bob")
    archive_some(site, url(mariadb))
    other = cli_for(servers.redis(shards=1))
    other.run("init")
    assert "belongs to another database" in refused(other, url(mariadb))
    mariadb.sql("UPDATE posts.sluice_archive SET version = 2")
    assert "has version 2, not 1" in refused(site, url(mariadb))


def test_a_reader_needs_only_to_select(mariadb, site):
    posts = archive_some(site, url(mariadb))
    site.environment["SLUICE_ARCHIVE"] = url(mariadb, user="reader")
    assert posts_of(site) == posts


def test_the_password_is_nowhere_to_be_seen(mariadb, site, servers, tmp_path):
    (tmp_path / "password").write_text(PASSWORD)
    archive_some(site, url(mariadb, password=None, password_file=tmp_path / "password"))
    settings = tmp_path / "sluiced.conf"
    settings.write_text(f'archive = "{url(mariadb)}"\nrun-tasks = on\nlog-level = debug\n')
    gateway = servers.gateway(site.redis, "--config", settings)
    with contextlib.closing(Api(gateway, "4096")) as api:
        api.get("/v1/users/ada/posts?limit=20")
        mariadb.sql("ALTER USER sluice IDENTIFIED BY 'changed'")
        try:
            mariadb.sql("KILL CONNECTION USER sluice")
            api.refused(500, "internal", "GET", "/v1/users/ada/posts?limit=20")
        finally:
            mariadb.sql(f"ALTER USER sluice IDENTIFIED BY '{PASSWORD}'")
    seen = gateway.log() + gateway.get("/metrics").text + gateway.get("/status.json").text
    seen += "".join(pathlib.Path(f"/proc/{pid}/cmdline").read_text()
                    for pid in [gateway.pid, *gateway.workers()])
    assert "Access denied" in seen
    assert PASSWORD not in seen and urllib.parse.quote(PASSWORD, safe="") not in seen


# TLS

def test_tls_is_checked_where_it_is_asked_for(mariadb, site):
    ca = mariadb.certificates / "ca.pem"
    assert "Access denied for user 'careful'" in refused(site, url(mariadb, user="careful"))
    wrong = url(mariadb, user="careful", host="localhost", ssl_ca=mariadb.certificates / "other.pem")
    assert "TLS/SSL error" in refused(site, wrong)
    another = url(mariadb, user="careful", host="127.0.0.2", ssl_ca=ca)  # not the certificate's
    assert "TLS/SSL error" in refused(site, another)
    missing = url(mariadb, host="localhost", ssl_ca=mariadb.certificates / "missing.pem")
    assert "TLS/SSL error" in refused(site, missing)
    right = url(mariadb, user="careful", host="localhost", ssl_ca=ca)
    posts = archive_some(site, right)
    assert posts_of(site) == posts


def test_a_certificate_of_our_own_is_shown(mariadb, site):
    folder = mariadb.certificates
    certified = {"user": "certified", "host": "localhost", "ssl_ca": folder / "ca.pem"}
    assert "Access denied for user 'certified'" in refused(site, url(mariadb, **certified))
    posts = archive_some(site, url(mariadb, ssl_cert=folder / "client.pem",
                                   ssl_key=folder / "client.key", **certified))
    assert posts_of(site) == posts


# A server that becomes unavailable

def test_a_server_that_is_killed_while_posts_are_stored_loses_and_doubles_none(mariadb, site, tmp_path):
    users, rounds = [str(i) for i in range(1, 11)], 3
    archive_some(site, url(mariadb))
    site.run("config", "set", "task-tries", 1)

    def stored():
        return int(mariadb.sql("SELECT COUNT(*) FROM posts.sluice_posts"))
    worker = site.start("worker", "--lease-ms", 200, "--concurrency", 2)
    for number in range(rounds):
        before = stored()
        file = tmp_path / f"{number}.jsonl"
        file.write_text("".join(json.dumps(events.post(100 * number + i, "text", user=user)) + "\n"
                                for i, user in enumerate(users * (PROFILE_MAX + 1))))
        site.run("replay", file)
        eventually(lambda: stored() > before, "the worker stores")
        mariadb.stop(signal.SIGKILL)
        mariadb.start()
    due = POSTS - PROFILE_MAX + len(users) * (rounds * (PROFILE_MAX + 1) - PROFILE_MAX)
    eventually(lambda: stored() == due, "every post that is due is stored")
    eventually(lambda: site.run("tasks") == "tasks: 0\ndead letters: 0", "all tasks are done")
    worker.stop()
    for user in users:
        lines = [json.loads(line) for line in site.run("posts", f"u{user}").splitlines()]
        assert len({post["id"] for post in lines}) == len(lines) == rounds * (PROFILE_MAX + 1)


def refused_for_now(answer, *codes):
    assert answer.status == 503 and answer.error["code"] in codes, answer
    assert int(answer.headers["retry-after"]) >= 1


def test_an_archive_that_is_away_costs_its_readers_only(mariadb, site, servers):
    posts = archive_some(site, url(mariadb))
    gateway = servers.gateway(site.redis, "--archive", url(mariadb))
    with contextlib.closing(Api(gateway, "4096")) as api, gateway.stream(FIREHOSE) as stream:
        assert [post["id"] for post in api.get("/v1/users/ada/posts?limit=20")["items"]] == posts
        mariadb.stop(signal.SIGKILL)
        try:
            refused_for_now(api.request("GET", "/v1/users/ada/posts?limit=20"), "archive_away")
            refused_for_now(api.request("GET", f"/v1/posts/{posts[-1]}"), "archive_away")
            assert api.get(f"/v1/posts/{posts[0]}")["id"] == posts[0]
            stream.until(site.run("post", "--user", "ada", "meanwhile"))
        finally:
            mariadb.start()
        assert api.get(f"/v1/posts/{posts[-1]}")["id"] == posts[-1]


def test_an_archive_that_hangs_costs_its_readers_their_time(mariadb, site, servers):
    posts = archive_some(site, url(mariadb))
    gateway = servers.gateway(site.redis, "--archive", url(mariadb, timeout=1), "--keepalive-ms", 50,
                              "--api-timeout", "300ms")
    waiting = [Api(gateway, "4096") for _ in range(20)]
    with contextlib.closing(Api(gateway, "4096")) as api, gateway.stream(FIREHOSE) as stream:
        eventually(lambda: api.request("GET", f"/v1/posts/{posts[-1]}").status == 200, "it is read")
        mariadb.freeze()
        try:
            for user in waiting:
                user.send("GET", f"/v1/posts/{posts[-1]}")
            stream.wait_keepalives(3)
            for user in waiting:
                refused_for_now(user.read(), "timeout", "archive_away")
            stream.until(site.run("post", "--user", "ada", "meanwhile"))
        finally:
            mariadb.thaw()
        eventually(lambda: api.request("GET", f"/v1/posts/{posts[-1]}").status == 200,
                   "it is read again")
    for user in waiting:
        user.close()


class Stranger(threading.Thread):
    """Takes the place of the server, and requests a login method that would reveal the password."""

    def __init__(self, login):
        super().__init__(daemon=True)
        self.login = login.encode() + b"\0"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.heard = b""
        self.start()

    def run(self):
        connection, _ = self.listener.accept()
        with connection:
            greeting = (b"\x0a8.0.0\0" + struct.pack("<I", 1) + b"saltsalt\0" + struct.pack("<H", 0xf7ff)
                        + b"\x2d\x02\0" + struct.pack("<H", 0x8008) + b"\x15" + bytes(10)
                        + b"saltsaltsalt\0" + self.login)
            connection.sendall(struct.pack("<I", len(greeting))[:3] + b"\0" + greeting)
            while some := connection.recv(65536):
                self.heard += some
                if some[3] == 1:  # it must not log in in another way
                    ask = b"\xfe" + self.login
                    connection.sendall(struct.pack("<I", len(ask))[:3] + b"\x02" + ask)


@pytest.mark.parametrize("login", ["mysql_clear_password", "caching_sha2_password", "sha256_password"])
def test_a_stranger_is_not_told_the_password(site, login):
    stranger = Stranger(login)
    said = refused(site, f"mysql://sluice:secret@127.0.0.1:{stranger.port}/posts")
    assert "in a way that others could read; use ssl-ca, or a socket" in said
    stranger.join(20)
    assert not stranger.is_alive()
    assert b"sluice" in stranger.heard or not stranger.heard
    assert b"secret" not in stranger.heard
