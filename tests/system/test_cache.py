"""The cache: posts and users in memcached. What is shown never depends on it."""

import json
import pathlib

import pytest

from harness.api import Api, Site
from harness.memcached import Memcached, program
from harness.waiting import eventually

pytestmark = pytest.mark.skipif(not program(), reason="there is no memcached (scripts/packages)")


@pytest.fixture
def memcached(servers):
    server = Memcached(pathlib.Path(servers.folder)).start()
    servers.programs.append(server)
    return server


class Club:
    """ada, who posts, and bob, who follows her; the readers read as bob."""

    def __init__(self, servers, memcached, cli_for, *options):
        self.redis = servers.redis()
        self.cli = cli_for(self.redis)
        if "--cache-timeout" not in options:
            options += ("--cache-timeout", "10s")  # otherwise slow machines have no hits
        self.gateway = servers.gateway(self.redis, "--cache", memcached.url, *options)
        self.site = Site(self.gateway)
        self.ada, self.bob = self.site.user("ada"), self.site.user("bob")
        self.bob.expect(204, "PUT", f"/v1/users/me/following/{self.ada.sub}")
        self.posts = [self.ada.post(f"post {i}")["id"] for i in range(5)]
        self.settle()

    def settle(self):
        """Waits until tasks have updated the other shards."""
        self.cli.run("worker", "--until-empty")

    def count(self, name):
        return self.gateway.metrics()[f"sluice_cache_{name}_total"]

    def until_hit(self, read, hits=1):
        """Reads until everything comes from the cache; what is read must never change."""
        first = read()

        def hit():
            before = self.count("hits")
            assert read() == first
            return self.count("hits") >= before + hits
        eventually(hit, "it comes from the cache")
        return first

    def read(self, post):
        return self.bob.get(f"/v1/posts/{post}")

    def home(self):
        return self.bob.get("/v1/timelines/home")["items"]

    def profile(self):
        return self.bob.get(f"/v1/users/{self.ada.sub}/posts")["items"]


@pytest.fixture
def club(servers, memcached, cli_for):
    club = Club(servers, memcached, cli_for)
    yield club
    club.site.close()


@pytest.fixture
def plain(servers, club):
    """bob with a server without a cache."""
    api = Api(servers.gateway(club.redis), club.bob.sub)
    yield api
    api.close()


def test_what_is_read_is_the_same_as_without_a_cache(club, plain):
    for i in range(3):
        club.ada.post(f"comment {i}", reply_to=club.posts[0])
    club.ada.post("for followers", audience="followers")
    club.bob.expect(204, "PUT", f"/v1/posts/{club.posts[1]}/like")
    club.settle()
    for path, hits in ((f"/v1/posts/{club.posts[0]}", 1), ("/v1/timelines/home", 8),
                       (f"/v1/users/{club.ada.sub}/posts", 8),
                       (f"/v1/posts/{club.posts[0]}/comments", 3),
                       (f"/v1/users/{club.ada.sub}/followers", 1),
                       (f"/v1/posts/{club.posts[1]}/likes", 1)):
        cached = club.until_hit(lambda: club.bob.get(path), hits)
        assert cached == plain.get(path), path
    assert club.count("values_refused") == 0
    assert club.count("read_bytes") > 0 and club.count("written_bytes") > 0


def test_renames_likes_and_counters_show_at_once(club):
    post = club.posts[0]
    club.until_hit(lambda: club.read(post))
    club.until_hit(lambda: club.bob.get("/v1/users/me/following"))
    for name in ("Ada Lovelace", 'A "quoted" name'):
        club.cli.run("user", "rename", "ada", name)
        assert club.read(post)["user"]["name"] == name
        assert {item["user"]["name"] for item in club.home() + club.profile()} == {name}
        assert club.bob.get(f"/v1/users/{club.ada.sub}")["name"] == name
        assert club.bob.get("/v1/users/me/following")["items"][0]["name"] == name
    club.bob.expect(204, "PUT", f"/v1/posts/{post}/like")
    assert club.read(post)["likes"] == 1
    club.ada.post("one more")
    assert club.bob.get(f"/v1/users/{club.ada.sub}")["posts"] == 6
    club.bob.expect(204, "DELETE", f"/v1/users/me/following/{club.ada.sub}")
    club.settle()
    assert club.bob.get(f"/v1/users/{club.ada.sub}")["followers"] == 0


def test_deleted_and_hidden_posts_are_gone_at_once(club, memcached):
    first, second = club.posts[:2]
    club.until_hit(lambda: club.read(first))
    club.until_hit(club.home, 5)
    eventually(lambda: f"post:{first}" in memcached.keys(), "its text is in the cache")
    club.ada.expect(204, "DELETE", f"/v1/posts/{first}")
    club.bob.refused(404, "not_found", "GET", f"/v1/posts/{first}")
    assert first not in [post["id"] for post in club.home() + club.profile()]
    eventually(lambda: f"post:{first}" not in memcached.keys(), "its text leaves the cache")
    club.cli.run("delete", "--user", "ada", second)  # by a program without the cache
    eventually(lambda: f"post:{second}" in memcached.keys(), "its text is in the cache")
    club.bob.refused(404, "not_found", "GET", f"/v1/posts/{second}")
    eventually(lambda: club.bob.refused(404, "not_found", "GET", f"/v1/posts/{second}")
               and club.count("stale") > 0, "the cache has what Redis does not show")
    club.ada.expect(204, "PUT", f"/v1/users/me/hidden/{club.bob.sub}")
    club.bob.refused(404, "not_found", "GET", f"/v1/posts/{club.posts[2]}")
    assert club.home() == [] and club.profile() == []


def test_the_cache_holds_only_what_everybody_may_see(club, memcached):
    secret = club.ada.post("for followers", audience="followers")["id"]
    club.until_hit(club.home, 5)
    assert club.read(secret)["text"] == "for followers"
    eventually(lambda: f"post:{club.posts[4]}" in memcached.keys(), "public posts are cached")
    assert f"post:{secret}" not in memcached.keys()


def test_a_cache_that_is_killed_stalled_or_flushed_costs_its_hits_only(servers, memcached, cli_for):
    club = Club(servers, memcached, cli_for, "--cache-timeout", "50ms")
    with club.gateway.stream("/v1/stream/firehose") as stream:
        def everything_works(text):
            post = club.ada.post(text)["id"]
            club.settle()
            assert stream.until(lambda event: event["type"] == "post")[-1]["post"]["id"] == post
            assert club.read(post)["text"] == text and club.home()[0]["text"] == text
            club.posts.append(post)
        club.until_hit(lambda: club.read(club.posts[0]))
        memcached.stop()
        everything_works("killed")
        eventually(lambda: club.home() and club.count("errors") > 0, "the failure is counted")
        memcached.start()
        club.until_hit(lambda: club.read(club.posts[0]))
        memcached.stall()
        for i in range(3):
            everything_works(f"stalled {i}")
        memcached.go_on()
        club.until_hit(lambda: club.read(club.posts[0]))
        memcached.say("flush_all")
        everything_works("flushed")
        club.until_hit(lambda: club.read(club.posts[0]))
    assert "event=cache_away" in club.gateway.log() and "event=cache_back" in club.gateway.log()
    club.site.close()


def test_an_archived_post_is_read_from_the_cache(servers, memcached, cli_for, tmp_path):
    club = Club(servers, memcached, cli_for, "--run-tasks", "on", "--archive",
                f"sqlite:{tmp_path}/posts.db")
    old = club.posts[0]
    club.cli.run("config", "set", "profile-max", 2)
    club.cli.run("config", "set", "archive", 1)
    club.ada.post("newest")
    eventually(lambda: not club.redis.client.keys(f"sluice:{{*}}:post:{old}"), "it is archived")
    first = club.until_hit(lambda: club.read(old))
    assert first["text"] == "post 0"
    club.cli.run("user", "rename", "ada", "Ada")
    assert club.read(old)["user"]["name"] == "Ada"
    club.ada.expect(204, "DELETE", f"/v1/posts/{old}")
    club.bob.refused(404, "not_found", "GET", f"/v1/posts/{old}")
    eventually(lambda: club.cli.run("tasks").startswith("tasks: 0"), "it is erased")
    club.bob.refused(404, "not_found", "GET", f"/v1/posts/{old}")
    assert f"post:{old}" not in memcached.keys()
    club.site.close()


def test_posts_that_are_archived_while_a_page_is_read_are_on_it(servers, memcached, cli_for, tmp_path):
    archive = f"sqlite:{tmp_path}/posts.db"
    club = Club(servers, memcached, cli_for, "--archive", archive)
    club.cli.environment["SLUICE_ARCHIVE"] = archive
    club.settle()  # creates the archive
    club.cli.run("config", "set", "profile-max", 2)
    club.cli.run("config", "set", "archive", 1)
    newest = club.ada.post("newest")["id"]
    texts = ["newest", *(f"post {i}" for i in (4, 3, 2, 1, 0))]

    def looked_at():
        return club.redis.client.info("commandstats")["cmdstat_zrevrangebyscore"]["calls"]
    for limit in 20, 3:  # a page that continues in the archive, and one that does not
        eventually(lambda: f"post:{newest}" in memcached.keys(), "what was written is cached")
        memcached.say("flush_all")
        memcached.stall()
        before = looked_at()
        club.bob.send("GET", f"/v1/users/{club.ada.sub}/posts?limit={limit}")
        eventually(lambda: looked_at() > before, "Redis has said what is on the page")
        club.settle()  # all but two of the posts are archived
        assert len(club.redis.client.keys("sluice:{*}:post:*")) == 2
        memcached.go_on()
        assert [post["text"] for post in club.bob.read().json["items"]] == texts[:limit]
        newest = club.ada.post("newer")["id"]
        texts.insert(0, "newer")
    club.site.close()


def test_the_command_line_uses_it_too(club, memcached):
    memcached.say("flush_all")
    plain = club.cli.run("read", *club.posts)
    club.cli.environment["SLUICE_CACHE"] = memcached.url

    def is_filled():
        assert club.cli.run("read", *club.posts) == plain
        return memcached.keys() == sorted(f"post:{post}" for post in club.posts)
    eventually(is_filled, "the cache has what was read")
    assert club.cli.run("read", *club.posts) == plain
    assert club.cli.run("posts", "ada") == club.cli.run("--cache", "", "posts", "ada")
    club.cli.run("user", "rename", "ada", "Countess")
    assert json.loads(club.cli.run("read", club.posts[0]))["user"]["name"] == "Countess"

    def is_gone():
        return f"post:{club.posts[0]}" not in memcached.keys()
    club.cli.run("delete", "--user", "ada", club.posts[0])
    club.cli.run("read", club.posts[0], status=1)
    eventually(is_gone, "its text leaves the cache")
    memcached.stop()
    assert club.cli.run("read", club.posts[1]) == club.cli.run("--cache", "", "read", club.posts[1])


def test_without_a_cache_its_numbers_are_there_and_zero(servers):
    metrics = servers.gateway(servers.redis()).metrics()
    numbers = {name: value for name, value in metrics.items() if name.startswith("sluice_cache_")}
    assert len(numbers) == 11 and set(numbers.values()) == {0}


def test_wrong_urls_are_refused_in_a_sentence(servers, cli_for):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--cache", "redis://localhost", start=False)
    gateway.launch()
    assert gateway.process.wait(20) == 1
    gateway.process = None
    assert "is not the URL of a cache" in gateway.log()
    cli = cli_for(redis)
    cli.run("init")
    cli.run("--cache", "memcached://localhost:0", "read", "4096", status=2)
    assert "port is not a number from 1 to 65535" in cli.done.stderr


def test_a_profile_that_changed_is_seen_at_once(club):
    def followed():
        return club.bob.get("/v1/users/me/following")["items"]

    assert "bio" not in club.until_hit(followed)[0]
    for bio in ("one", "two", None):
        club.ada.expect(200, "PATCH", "/v1/users/me", {"bio": bio})
        ada, = followed()
        assert ada.get("bio") == bio
        assert club.until_hit(followed) == [ada] == [club.bob.get(f"/v1/users/{club.ada.sub}")]
