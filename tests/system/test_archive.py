"""The archive: old posts on disk are read, paged and deleted like those in Redis; as an SQLite file, and in MariaDB."""

import json
import sqlite3

import pytest

from harness import mariadb_server
from harness.api import Api
from harness.waiting import eventually

POSTS, PROFILE_MAX = 8, 3


class Site:
    """ada has posted more than a profile holds, bob likes the oldest post, and a worker has moved the old ones."""

    def __init__(self, shards, redis, cli, archive):
        self.redis, self.cli, self.archive = redis, cli, archive
        cli.run("init", "--shards", shards)
        self.ada, self.bob = (cli.run("user", "add", login) for login in ("ada", "bob"))
        cli.run("config", "set", "profile-max", PROFILE_MAX)
        cli.run("config", "set", "archive", 1)
        cli.environment["SLUICE_ARCHIVE"] = archive
        self.posts = [cli.run("post", "--user", "ada", f"post {i}") for i in range(POSTS)]
        self.work()
        self.posts.reverse()

    def work(self):
        self.cli.run("worker", "--until-empty", "--lease-ms", "50")
        assert self.cli.run("tasks") == "tasks: 0\ndead letters: 0"

    def lines(self, *arguments, **how):
        return [json.loads(line) for line in self.cli.run(*arguments, **how).splitlines()]

    def in_redis(self):
        return [key.rsplit(":", 1)[1] for key in self.redis.client.keys("sluice:{*}:post:*")]

    def pages(self, limit):
        """ada's posts, page by page up to the empty page."""
        found, before = [], []
        while page := self.lines("posts", "ada", "--limit", limit, *before):
            assert len(page) <= limit
            found += page
            before = ["--before", page[-1]["id"]]
        return [post["id"] for post in found]


@pytest.fixture(scope="module")
def mariadb(module_servers):
    if not mariadb_server.is_installed():
        pytest.skip("mariadbd is not installed")
    return module_servers.mariadb()


@pytest.fixture
def archives(request, tmp_path):
    """archives(kind): the URL of an archive that does not exist yet."""
    def make(kind):
        if kind == "sqlite":
            return f"sqlite:{tmp_path}/posts.db"
        mariadb = request.getfixturevalue("mariadb")
        mariadb.sql("DROP DATABASE IF EXISTS posts; CREATE DATABASE posts")
        return f"mysql://root@/posts?timeout=60&socket={mariadb.socket}"
    return make


# Kind and shards are independent of each other: two of the four pairs are as good and take half the time.
@pytest.fixture(params=["sqlite-1", "mysql-4"])
def site(request, servers, cli_for, archives):
    kind, shards = request.param.split("-")
    redis = servers.redis(shards=int(shards))
    return Site(int(shards), redis, cli_for(redis), archives(kind))


only_a_file = pytest.mark.parametrize("site", ["sqlite-4"], indirect=True)


def test_pages_run_through_redis_and_the_archive_without_hole_or_double(site):
    assert sorted(site.in_redis()) == sorted(site.posts[:PROFILE_MAX])
    for limit in (1, 2, 3, 20):
        assert site.pages(limit) == site.posts
    assert site.lines("user", "show", "ada")[0]["posts"] == POSTS


def test_posts_are_read_by_id_wherever_they_are(site):
    ids = [site.posts[-1], site.posts[0], site.posts[-2]]
    whole = site.lines("read", *ids)
    assert [post["id"] for post in whole] == ids
    assert [post["text"] for post in whole] == ["post 0", f"post {POSTS - 1}", "post 1"]
    assert whole[0].keys() == whole[1].keys()
    assert len(site.lines("read", site.posts[-1], "4096", status=1)) == 1
    assert "there is no post 4096" in site.cli.done.stderr


def test_deleted_posts_leave_the_archive(site, tmp_path):
    site.cli.run("delete", "--user", "bob", site.posts[-1], status=1)
    assert "is not yours" in site.cli.done.stderr
    for place in (-1, 0, -2):
        gone = site.posts.pop(place)
        site.cli.run("delete", "--user", "ada", gone)
        site.cli.run("read", gone, status=1)
        assert site.pages(2) == site.posts  # even before a worker runs
    site.work()
    assert site.pages(2) == site.posts
    if site.archive.startswith("sqlite:"):
        assert b"post 0" not in (tmp_path / "posts.db").read_bytes()
    site.cli.run("delete", "--user", "ada", gone, status=1)
    assert site.lines("user", "show", "ada")[0]["posts"] == len(site.posts) == POSTS - 3


def test_the_audience_of_an_archived_post_counts(site):
    secret = site.cli.run("post", "--user", "ada", "--audience", "followers", "secret")
    for i in range(PROFILE_MAX):
        site.cli.run("post", "--user", "ada", "more")
    site.work()
    assert secret not in site.in_redis()

    def seen_by(*reader):
        return [post["text"] for post in site.lines("posts", "ada", "--limit", "5", *reader)]
    assert "secret" in seen_by()
    assert "secret" not in seen_by("--as", "bob")
    assert len(seen_by("--as", "bob")) == 5  # the page is filled
    site.cli.run("follow", "bob", "ada")
    site.work()
    assert "secret" in seen_by("--as", "bob")
    site.cli.run("hide", "ada", "bob")
    site.work()
    assert seen_by("--as", "bob") == []


@only_a_file
def test_an_archived_comment_stays_with_what_it_answers(site):
    post = site.cli.run("post", "--user", "bob", "question")
    comment = site.cli.run("post", "--user", "ada", "--reply-to", post, "answer")
    for i in range(PROFILE_MAX):
        site.cli.run("post", "--user", "ada", "more")
    site.work()
    assert comment not in site.in_redis()
    assert [line["text"] for line in site.lines("comments", post)] == ["answer"]
    site.cli.run("delete", "--user", "ada", comment)
    site.work()
    assert site.lines("comments", post) == []


def answer_and_like(site):
    """A post of ada's that bob likes and has replied to, and that was archived afterwards."""
    post = site.cli.run("post", "--user", "ada", "--audience", "followers", "question")
    site.cli.run("follow", "bob", "ada")
    site.work()
    site.cli.run("like", "--user", "bob", post)
    site.cli.run("post", "--user", "bob", "--reply-to", post, "answer")
    for i in range(PROFILE_MAX):
        site.cli.run("post", "--user", "ada", "more")
    site.work()
    assert post not in site.in_redis()
    return post


def test_likes_and_comments_of_an_archived_post_are_listed(site):
    post = answer_and_like(site)
    for reader in [], ["--as", "bob"]:
        assert [line["login"] for line in site.lines("likes", post, *reader)] == ["bob"]
        assert [line["text"] for line in site.lines("comments", post, *reader)] == ["answer"]
    site.cli.run("hide", "ada", "bob")
    for command in "likes", "comments":
        site.cli.run(command, post, "--as", "bob", status=1)
        assert f"there is no post {post}" in site.cli.done.stderr
        site.cli.run(command, "4096", status=1)
        assert "there is no post 4096" in site.cli.done.stderr
    site.cli.run("delete", "--user", "ada", post)
    site.cli.run("likes", post, status=1)


@pytest.fixture
def api(site, servers):
    """api(user id): the API for that user."""
    gateway = servers.gateway(site.redis, "--archive", site.archive)
    apis = []

    def make(sub):
        apis.append(Api(gateway, sub))
        return apis[-1]
    yield make
    for api in apis:
        api.close()


def api_pages(api, user, limit):
    found, before = [], ""
    while (page := api.get(f"/v1/users/{user}/posts?limit={limit}{before}"))["items"]:
        assert len(page["items"]) <= limit
        found += page["items"]
        before = f"&before={page['next']}"
    assert "next" not in page
    return [post["id"] for post in found]


def test_the_api_reads_on_in_the_archive(site, api):
    bob = api(site.bob)
    for limit in (1, 2, 3, 20):
        assert api_pages(bob, site.ada, limit) == site.posts
    assert api_pages(bob, "ada", 2) == site.posts
    assert api_pages(bob, "bob", 2) == []
    for place in (0, -1):
        whole = bob.get(f"/v1/posts/{site.posts[place]}")
        assert whole == site.lines("read", site.posts[place])[0]
    bob.refused(404, "not_found", "GET", "/v1/posts/4096")
    bob.refused(404, "not_found", "GET", "/v1/users/nobody/posts")


def test_the_api_deletes_in_the_archive(site, api):
    ada, bob = api(site.ada), api(site.bob)
    gone = site.posts.pop()
    bob.refused(403, "not_yours", "DELETE", f"/v1/posts/{gone}")
    for _ in range(2):
        ada.expect(204, "DELETE", f"/v1/posts/{gone}")
        bob.refused(404, "not_found", "GET", f"/v1/posts/{gone}")
    assert api_pages(bob, "ada", 2) == site.posts
    site.work()
    ada.expect(204, "DELETE", f"/v1/posts/{gone}")
    assert api_pages(bob, "ada", 2) == site.posts
    assert ada.get("/v1/users/me")["posts"] == len(site.posts)


@only_a_file
def test_the_api_shows_archived_posts_to_whom_they_are_for(site, api):
    ada, bob = api(site.ada), api(site.bob)
    question = bob.post("question")["id"]
    secret = ada.post("secret", audience="followers", reply_to=question)["id"]
    for i in range(PROFILE_MAX):
        ada.post("more")
    site.work()
    assert secret not in site.in_redis()
    bob.refused(404, "not_found", "GET", f"/v1/posts/{secret}")
    assert secret not in api_pages(bob, "ada", 1)
    assert bob.get(f"/v1/posts/{question}/comments")["items"] == []
    bob.expect(204, "PUT", f"/v1/users/me/following/{site.ada}")
    site.work()
    assert bob.get(f"/v1/posts/{secret}")["audience"] == "followers"
    assert secret in api_pages(bob, "ada", 2)
    assert [post["id"] for post in bob.get(f"/v1/posts/{question}/comments")["items"]] == [secret]


def test_the_api_lists_likes_and_comments_of_an_archived_post(site, api):
    post = answer_and_like(site)
    bob = api(site.bob)
    assert [user["login"] for user in bob.get(f"/v1/posts/{post}/likes")["items"]] == ["bob"]
    page = bob.get(f"/v1/posts/{post}/comments?limit=1")
    assert [comment["text"] for comment in page["items"]] == ["answer"]
    assert bob.get(f"/v1/posts/{post}/comments?before={page['next']}") == {"items": []}
    site.cli.run("hide", "ada", "bob")
    for what in "likes", "comments":
        bob.refused(404, "not_found", "GET", f"/v1/posts/{post}/{what}")
        bob.refused(404, "not_found", "GET", f"/v1/posts/4096/{what}")


@only_a_file
def test_an_archive_that_cannot_be_read_costs_the_answer_only(site, api, tmp_path):
    bob = api(site.bob)

    def archive_is(state):
        admin = bob.gateway.bearer(scope="admin")
        part = bob.gateway.get("/readyz?verbose", admin).json["parts"]["archive"]
        return part["state"] == state and (state == "ok" or "the archive" in part["why"])

    eventually(lambda: archive_is("ok"), "the archive is found")
    for file in tmp_path.glob("posts.db*"):
        file.unlink()
    (tmp_path / "posts.db").write_bytes(b"x" * 5000)
    bob.refused(500, "internal", "GET", f"/v1/posts/{site.posts[-1]}")
    bob.refused(500, "internal", "GET", "/v1/users/ada/posts?limit=20")
    assert bob.get(f"/v1/posts/{site.posts[0]}")["text"] == f"post {POSTS - 1}"
    eventually(lambda: archive_is("failing"), "that is noticed")


@pytest.mark.parametrize("kind", ["sqlite", "mysql"])
def test_sluiced_moves_posts_too(servers, cli_for, archives, kind):
    redis = servers.redis(shards=1)
    site = Site(1, redis, cli_for(redis), archives(kind))
    servers.gateway(redis, "--run-tasks", "on", "--archive", site.archive)
    newest = site.cli.run("post", "--user", "ada", "newest")
    eventually(lambda: len(site.in_redis()) == PROFILE_MAX,
               "the profile within its limit")
    assert site.pages(5) == [newest, *site.posts]


@only_a_file
def test_posts_that_are_old_go_to_the_archive_however_few_a_user_has(site):
    mine = [site.cli.run("post", "--user", "bob", f"post {i}") for i in range(2)]
    worker = site.cli.start("worker")
    site.cli.run("config", "set", "archive-age", "1s")
    eventually(lambda: not site.in_redis(), "all that is old has gone")
    assert [post["id"] for post in site.lines("posts", "bob")] == mine[::-1]
    assert site.pages(3) == site.posts
    site.cli.run("config", "set", "archive-age", "1h")
    newer = site.cli.run("post", "--user", "bob", "newer")
    site.work()
    assert site.in_redis() == [newer]
    worker.stop()


def take_away(site, tmp_path, request):
    """Removes the archive, and restores the state before the first post was moved."""
    if site.archive.startswith("sqlite:"):
        for file in tmp_path.glob("posts.db*"):
            file.unlink()
    else:
        request.getfixturevalue("mariadb").sql("DROP DATABASE posts; CREATE DATABASE posts")


def post_more(site, count=PROFILE_MAX):
    for i in range(count):
        site.posts.insert(0, site.cli.run("post", "--user", "ada", f"more {i}"))


def test_an_empty_archive_is_refused_where_posts_have_been_archived(site, tmp_path, request):
    take_away(site, tmp_path, request)
    for forget in (), ("archive_id",):  # like a database of an earlier version
        for key in site.redis.client.keys("sluice:{*}:meta"):
            if forget:
                site.redis.client.hdel(key, *forget)
        site.cli.run("worker", "--until-empty", status=1)
        assert "this database has archived posts: put their archive back" in site.cli.done.stderr
    assert not list(tmp_path.glob("posts.db"))
    assert "the archive: " in site.cli.run("tasks")
    site.cli.run("worker", "--until-empty", "--accept-archive", "--lease-ms", "50")
    assert "the archive: " not in site.cli.run("tasks")
    post_more(site)
    site.work()
    assert len(site.in_redis()) == PROFILE_MAX
    assert site.pages(3) == site.posts[:2 * PROFILE_MAX]  # without those in the other one


def test_an_archive_that_is_taken_away_takes_no_posts(site, servers, tmp_path, request):
    gateway = servers.gateway(site.redis, "--run-tasks", "off")
    worker = site.cli.start("worker", "--concurrency", "2")
    post_more(site, 1)
    eventually(lambda: len(site.in_redis()) == PROFILE_MAX, "the worker has opened the archive")
    take_away(site, tmp_path, request)
    post_more(site)
    eventually(lambda: gateway.metrics()["sluice_archive_away"] == 1, "somebody notices")
    assert "the archive: " in site.cli.run("tasks")
    assert len(site.in_redis()) == 2 * PROFILE_MAX
    assert "event=task_failed" in worker.stop()
    assert "dead letters: 0" in site.cli.run("tasks")


def test_the_worker_that_made_the_archive_makes_no_other_one(servers, cli_for, tmp_path):
    """It would be in the way of the one that is put back, and pages would lack posts without saying so."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("config", "set", "profile-max", PROFILE_MAX)
    cli.run("config", "set", "archive", 1)
    cli.environment["SLUICE_ARCHIVE"] = f"sqlite:{tmp_path}/posts.db"
    cli.run("user", "add", "ada")
    worker = cli.start("worker", "--lease-ms", "50")  # nothing has been archived yet

    def in_redis():
        return len(redis.client.keys("sluice:{*}:post:*"))
    for i in range(PROFILE_MAX + 1):
        cli.run("post", "--user", "ada", f"post {i}")
    eventually(lambda: in_redis() == PROFILE_MAX, "a post is in the archive")
    for file in tmp_path.glob("posts.db*"):
        file.unlink()
    cli.run("post", "--user", "ada", "one more")
    eventually(lambda: "unable to open database file" in cli.run("tasks"), "the worker looks for it")
    assert not list(tmp_path.glob("posts.db*")) and in_redis() == PROFILE_MAX + 1
    worker.stop()


@only_a_file
def test_an_archive_that_is_put_back_is_gone_on_with(site, servers, tmp_path):
    bob = Api(servers.gateway(site.redis, "--run-tasks", "off", "--archive", site.archive), site.bob)
    worker = site.cli.start("worker", "--lease-ms", "200")  # postponed tasks wait as long
    for turn in range(2):
        post_more(site, 1)
        eventually(lambda: len(site.in_redis()) == PROFILE_MAX, "the worker uses the archive")
        assert api_pages(bob, site.ada, 20) == site.posts
        away = tmp_path / "away"
        away.mkdir(exist_ok=True)
        for file in tmp_path.glob("posts.db*"):
            file.rename(away / file.name)
        post_more(site, 1)
        eventually(lambda: "the archive: " in site.cli.run("tasks"), "the worker misses it")
        if turn == 0:
            bob.refused(503, "archive_away", "GET", f"/v1/posts/{site.posts[-1]}")
            for file in away.iterdir():
                file.rename(tmp_path / file.name)
        else:  # a copy, for example from a backup
            with sqlite3.connect(away / "posts.db") as old, sqlite3.connect(tmp_path / "posts.db") as new:
                old.backup(new)
            old.close()
            new.close()
        eventually(lambda: len(site.in_redis()) == PROFILE_MAX, "the worker goes on")
        assert api_pages(bob, site.ada, 20) == site.posts
    assert "the archive: " not in site.cli.run("tasks")
    worker.stop()
    bob.close()


@only_a_file
def test_another_archive_of_the_database_is_refused(site, tmp_path):
    site.cli.environment["SLUICE_ARCHIVE"] = f"sqlite:{tmp_path}/other.db"
    site.cli.run("worker", "--until-empty", status=1)
    assert "unable to open" in site.cli.done.stderr
    known = site.redis.client.hget(site.redis.key(site.ada, "meta"), "archive_id")
    site.cli.run("worker", "--until-empty", "--accept-archive")
    accepted = site.redis.client.hget(site.redis.key(site.ada, "meta"), "archive_id")
    assert len(accepted) == 32 and accepted != known
    site.cli.environment["SLUICE_ARCHIVE"] = site.archive
    site.cli.run("worker", "--until-empty", status=1)
    assert f"the archive is {known}, and posts were archived to {accepted}" in site.cli.done.stderr


@only_a_file
def test_wrong_archives_are_refused_in_a_sentence(site, tmp_path):
    def refused(command, url):
        site.cli.environment["SLUICE_ARCHIVE"] = url
        site.cli.run(*command, status=1)
        return site.cli.done.stderr
    worker = ("worker", "--until-empty")
    assert "no archives of the kind 'oracle'" in refused(worker, "oracle://localhost/posts")
    assert "names no user" in refused(worker, "mysql://localhost/posts")
    assert "is not the URL of an archive" in refused(worker, "posts.db")
    assert "unable to open" in refused(worker, f"sqlite:{tmp_path}/no/posts.db")
    assert "unable to open" in refused(("posts", "ada"), f"sqlite:{tmp_path}/other.db")
    (tmp_path / "posts.db").write_bytes(b"x" * 5000)
    assert "not a database" in refused(("posts", "ada"), site.archive)
