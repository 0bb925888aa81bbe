"""Producers in a storm, through the social core and without it."""

import random
import subprocess
import threading

from . import events
from .cli import Cli
from .waiting import Deadline, eventually

PEOPLE = 12
WORDS = ("amber basil cedar delta ember fjord grove hazel iris jade karst lotus maple nectar opal pine "
         "quartz river slate thyme umber velvet willow xenon yarrow zephyr").split()
COUNTRIES = ["FR", "JP", "DE"]
LANGUAGES = ["en", "en-GB", "de", "ja", None]


class Posts:
    """Lines for `sluice replay`: posts, and deletions of some of them."""

    def __init__(self, rng):
        self.rng, self.number, self.deletable = rng, 0, []
        self.long_every = 0  # one post in this many has about 15 kB; 0: none

    def begin_again(self):
        """Another replay does not know the posts of the previous one."""
        self.deletable = []

    def line(self):
        rng = self.rng
        self.number += 1
        if self.deletable and rng.random() < 0.08:
            post = self.deletable.pop(rng.randrange(len(self.deletable)))
            return events.dump({"id": str(self.number), "type": "delete", "post": {"id": post}})
        members = {}
        language = rng.choice(LANGUAGES)
        if language:
            members["lang"] = language
        if rng.random() < 0.3:
            members["geo"] = {"lon": rng.randrange(-1799, 1800) / 10,
                              "lat": rng.randrange(-899, 900) / 10}
        if rng.random() < 0.2:
            members["place"] = {"name": "there", "country": rng.choice(COUNTRIES), "bbox": [2.0, 48.0, 3.0, 49.0]}
        text = " ".join(rng.choices(WORDS, k=rng.randrange(3, 40)))
        for _ in range(rng.randrange(3)):  # some tags are always new
            text += f" #t{self.number // 300 * 4 + int(rng.paretovariate(1)) % 40}"
        if self.long_every and self.number % self.long_every == 0:
            text = f"{text} {self.number} " + "long " * 3000
        self.deletable.append(str(self.number))
        del self.deletable[:-200]
        person = rng.randrange(PEOPLE)
        return events.dump(events.post(self.number, text, user=person, login=f"u{person}", **members))


class Producer:
    """`sluice replay -`, fed line by line; it is started again when it has ended together with Redis."""

    def __init__(self, cli, rng):
        self.cli, self.posts = cli, Posts(rng)
        self.program = None
        self.made = self.restarts = 0

    def make(self, count=1):
        for _ in range(count):
            if self.program and self.program.process.poll() is not None:
                self.program.process.communicate()
                self.program = None
                self.restarts += 1
            if not self.program:
                self.program = self.cli.start("replay", "-", stdin=subprocess.PIPE)
                self.posts.begin_again()
            try:
                self.program.process.stdin.write(self.posts.line().encode() + b"\n")
            except BrokenPipeError:
                continue
            self.made += 1

    def stop(self):
        if self.program:
            self.program.process.stdin.close()
            self.program.process.stdin = None
            self.program.process.communicate(timeout=Deadline(60).seconds)


class Outsider:
    """A producer that PUBLISHes without the social core: such events are in no log."""

    EPOCH_MS = 1767225600000  # of ids: 2026-01-01T00:00:00Z

    def __init__(self, redis):
        self.redis = redis
        self.ids = set()

    def publish(self, ahead_s=0):
        """Publishes one event with an id of Redis's time, or of `ahead_s` seconds later."""
        seconds, microseconds = self.redis.client.time()
        ms = (seconds + ahead_s) * 1000 + microseconds // 1000 - self.EPOCH_MS
        shard = random.randrange(self.redis.shards)
        number = ms * 4096 + shard * 64 + 63
        self.ids.add(number)
        self.redis.publish(events.dump(events.post(number, "amber from outside", user=4096 + shard * 64)), shard)


class Writer(threading.Thread):
    """Posts as a user with the command line, one post after the other, until it is told to stop. `posts`: their ids."""

    def __init__(self, redis, login):
        super().__init__(daemon=True)
        self.cli, self.login, self.posts, self.is_over, self.error = Cli(redis), login, [], False, None

    def run(self):
        try:
            while not self.is_over:
                self.posts.append(int(self.cli.run("post", "--user", self.login, f"post {len(self.posts)}")))
        except AssertionError as error:
            self.error = error

    def begin(self, posts):
        self.start()
        self.wait_for(posts)

    def wait_for(self, more):
        wanted = len(self.posts) + more
        eventually(lambda: self.error or len(self.posts) >= wanted, "more posts are written", 60)

    def finish(self):
        self.is_over = True
        self.join()
        assert not self.error, self.error
        return self.posts
