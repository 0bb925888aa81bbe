"""A database that the old programs created, and what old and new programs do with it."""

import json
import random
import subprocess
import threading
import types

from harness.api import Api
from harness.cli import Cli
from harness.followers import Client, Kind
from harness.producers import Posts
from harness.servers import SHARDS
from harness.waiting import eventually

ALL_TYPES = "/v1/stream/firehose?types=post,delete,follow,unfollow"
PEOPLE = 12
TASKS_WAITING = 300  # at most, when a replay that is beside workers goes on
# The API does not run tasks: they wait for the workers that the test starts.
NO_TASKS = ("--run-tasks", "off")


class World:
    """Created by the old `sluice`. `old`, `new`: the command lines. `old_build`: where the old programs are."""

    def __init__(self, servers, old_build):
        self.servers, self.old_build = servers, old_build
        self.redis = servers.redis(shards=1)
        self.old, self.new = Cli(self.redis, build=old_build), Cli(self.redis)
        self.old.run("init", "--shards", SHARDS)
        self.redis.shards = SHARDS
        # So that one shard has tasks, too: a post is pushed to one follower at once, the rest is left to tasks.
        self.old.run("config", "set", "push-at-once", 1)
        self.people = {f"u{n}": self.old.run("user", "add", f"u{n}") for n in range(PEOPLE)}
        for n in range(PEOPLE):
            self.old.run("follow", f"u{n}", *(f"u{(n + step) % PEOPLE}" for step in range(1, 5)))

    def gateway(self, is_old, *options, **more):
        return self.servers.gateway(self.redis, *NO_TASKS, *options, build=self.old_build if is_old else None, **more)

    def take_over(self, gateway, is_old):
        """Starts the successor, after the previous one has ended."""
        successor = self.servers.successor(gateway, *NO_TASKS, build=self.old_build if is_old else None)
        gateway.wait_end()
        return successor

    def worker(self, cli):
        """Starts a `sluice worker` in the background."""
        worker = cli.start("worker", "--concurrency", 2)
        self.servers.programs.append(OtherProgram(worker))
        return worker

    def shard_keys(self, name):
        return [f"sluice:{{{shard}}}:{name}" for shard in range(self.redis.shards)]

    def count(self, name):
        """Returns the number of entries of this stream in all shards."""
        return sum(self.redis.client.xlen(key) for key in self.shard_keys(name))

    def wait_tasks(self):
        eventually(lambda: self.count("tasks") == 0, "all tasks are done", 60)
        assert self.count("dead") == 0, self.new.run("tasks")

    def tasks_left(self):
        """Returns how many tasks were ever added in the shards."""
        return sum(self.redis.client.xinfo_stream(key)["entries-added"] for key in self.shard_keys("tasks"))

    def tasks_ended(self):
        """Returns how many tasks were completed since the server started."""
        return self.redis.client.info("commandstats").get("cmdstat_xack", {"calls": 0})["calls"]


class OtherProgram:
    """A program that Servers ends if a test fails."""

    def __init__(self, program):
        self.program = program

    def stop(self):
        if self.program.process.poll() is None:
            self.program.process.kill()
            self.program.process.communicate()


class Writer:
    """Writes in its own thread until stop(), which raises any error. `made`: the number of writes so far."""

    def __init__(self):
        self.made, self.fault = 0, None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self):
        """Makes one write."""
        raise NotImplementedError

    def end(self):
        pass

    @property
    def is_stopping(self):
        return self._stopping.is_set()

    def _run(self):
        try:
            while not self._stopping.wait(0.004):
                self.write()
                self.made += 1
            self.end()
        except (Exception, AssertionError) as fault:  # for stop()
            self.fault = fault

    def stop(self):
        self._stopping.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self.fault:
            raise self.fault


class ReplayWriter(Writer):
    """Posts and deletions through `sluice replay`. `beside_workers`: a world whose workers do the tasks. It then writes
    no faster than they can: otherwise the tasks of other writers would wait behind ever more of them."""

    def __init__(self, cli, seed, beside_workers=None):
        self.world, self.posts = beside_workers, Posts(random.Random(seed))
        self.program = cli.start("replay", "-", stdin=subprocess.PIPE)
        super().__init__()

    def write(self):
        if self.world and self.made % 20 == 0:
            eventually(lambda: self.world.count("tasks") < TASKS_WAITING or self.is_stopping, "tasks are done", 60)
        self.program.process.stdin.write(self.posts.line().encode() + b"\n")

    def end(self):
        self.program.process.stdin.close()
        self.program.process.stdin = None
        self.program.ended(0)  # otherwise a line was refused


class CommandWriter(Writer):
    """Runs a program for each write."""

    def __init__(self, cli, user, other):
        self.cli, self.user, self.other = cli, user, other
        super().__init__()

    def write(self):
        run, user, other = self.cli.run, self.user, self.other
        post = run("post", "--user", user, f"number {self.made} by hand")
        answer = run("post", "--user", other, "--reply-to", post, "an answer")
        run("like", "--user", other, post)
        run("unfollow", user, other)
        run("follow", user, other)
        run("delete", "--user", other, answer)


class ApiWriter(Writer):
    """The same over HTTP. `read_by`: another gateway, which must show at once what was written."""

    def __init__(self, gateway, user, other, read_by):
        self.api, self.other, self.reader = Api(gateway, user), Api(gateway, other), Api(read_by, other)
        super().__init__()

    def write(self):
        post = self.api.post(f"number {self.made} over HTTP")
        self._expect_read(post, likes=0, comments=0)
        answer = self.other.post("an answer", reply_to=post["id"])
        self.other.expect(204, "PUT", f"/v1/posts/{post['id']}/like")
        eventually(lambda: self.reader.get(f"/v1/posts/{post['id']}")["comments"] == 1, "the answer is counted",
                   120)  # behind the tasks of all writers
        self._expect_read(post, likes=1, comments=1)
        self.api.expect(204, "DELETE", f"/v1/users/me/following/{self.other.sub}")
        assert self.other.sub not in self._followed()
        self.api.expect(204, "PUT", f"/v1/users/me/following/{self.other.sub}")
        assert self.other.sub in self._followed()
        self.other.expect(204, "DELETE", f"/v1/posts/{answer['id']}")
        self.reader.refused(404, "not_found", "GET", f"/v1/posts/{answer['id']}")

    def _expect_read(self, post, **counts):
        shown = self.reader.get(f"/v1/posts/{post['id']}")
        assert shown == {**post, **counts}, (post, shown)

    def _followed(self):
        return [user["id"] for user in self.reader.get(f"/v1/users/{self.api.sub}/following")["items"]]

    def end(self):
        for api in (self.api, self.other, self.reader):
            api.close()


class Keeper(Client):
    """Follows everything, resumes with its cursor, stores each event's bytes."""

    def __init__(self, world, gateway, transport):
        self.bytes = {}
        self.cursors = []  # with which it has resumed
        storm = types.SimpleNamespace(gateway=gateway, shards=world.redis.shards, outsider=None, clients=[], dictionary=None,
                                      said={}, start=max(int(entry) for entry, _ in world.redis.entries()))
        super().__init__(storm, Kind("all", ALL_TYPES, None, fields=()), transport, 1, is_calm=True)

    def _open(self):
        self.cursors.append(self.cursor)
        return super()._open()

    def _take(self, message):
        super()._take(message)
        if not message.is_control:
            self.bytes[int(message["id"])] = message.raw if isinstance(message.raw, bytes) else message.raw.encode()


def is_within(old, new):
    """Whether `new` contains everything that `old` does; newer programs may return more."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(name in new and is_within(value, new[name])
                                             for name, value in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(old) == len(new) and all(map(is_within, old, new))
    return old == new


def read_list(api, path):
    """Returns all items, page by page."""
    items, before = [], ""
    while True:
        page = api.get(f"{path}?limit=100{before}")
        items += page["items"]
        if "next" not in page:
            return items
        before = f"&before={page['next']}"


def read_everything(world, gateway, posts):
    """Returns what the gateway shows of all people, of their lists and timelines, and of these posts."""
    found = {}
    for login, user in world.people.items():
        api = Api(gateway, user)
        for path in (f"/v1/users/{user}", f"/v1/users/@{login}"):
            found[path] = api.get(path)
        for path in ("/v1/users/me/posts", "/v1/users/me/followers", "/v1/users/me/following",
                     "/v1/timelines/home"):
            found[login, path] = read_list(api, path)
        api.close()
    api, hidden_from = Api(gateway, world.people["u5"]), Api(gateway, world.people["u0"])
    for post in posts:
        for path in (f"/v1/posts/{post}/comments", f"/v1/posts/{post}/likes"):
            found[path] = read_list(api, path)
        found[post] = api.get(f"/v1/posts/{post}")
        found["u0", post] = hidden_from.request("GET", f"/v1/posts/{post}").json
    api.close()
    hidden_from.close()
    return found


def fill(world, count):
    """The old `sluice` writes `count` posts and deletions, and some of everything else. Returns posts with comments and
    likes."""
    posts = Posts(random.Random(7))
    world.old.run("replay", "-", given="".join(posts.line() + "\n" for _ in range(count)))
    liked = [world.old.run("post", "--user", f"u{n}", "--lang", "en", "--geo", "7.5,47.5", f"liked {n}")
             for n in range(4)]
    for n, post in enumerate(liked):
        for step in range(1, 4):
            world.old.run("like", "--user", f"u{n + step}", post)
            world.old.run("post", "--user", f"u{n + step}", "--reply-to", post, f"answer {step}")
        world.old.run("unlike", "--user", f"u{n + 1}", post)
    for audience in ("followers", f"only:{world.people['u0']}", f"except:{world.people['u0']}"):
        world.old.run("post", "--user", "u1", "--audience", audience, f"to {audience}")
    world.old.run("hide", "u2", "u0")
    world.old.run("mute", "u0", "u3")
    world.old.run("user", "rename", "u4", "Renamed by the old one")
    return liked


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def logged(world, after):
    """Returns the events of the log after this id, unchanged, by id; without those that are for gateways only or
    unknown to the old programs."""
    return {int(entry): fields["e"].encode() for entry, fields in world.redis.entries()
            if int(entry) > after and not any(f'"type":"{kind}"' in fields["e"][:80] for kind in ("late", "user"))}


def milliseconds(event_id):
    return event_id // 4096


