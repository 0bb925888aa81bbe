"""The wall clock of Redis is set while eight shards are written to: nothing is lost, nothing comes twice, and
afterwards the ids of all shards rise together again."""

import subprocess
import threading
import zlib

import pytest

from harness import events, processes, programs
from harness.redis_server import shard_of
from harness.streams import Collector
from harness.waiting import DeadlinePassed, eventually
from harness.wall_clock import WallClock

pytestmark = pytest.mark.skipif(programs.have_sanitizer(), reason="with a sanitizer there is no clock shim")
FIREHOSE = "/v1/stream/firehose"
SHARDS = 8
TEN_MINUTES = 600


def login_of_shard(shard, name):
    """Returns a login in this shard."""
    return next(login for login in (f"{name}{number}" for number in range(10000))
                if zlib.crc32(login.encode()) % SHARDS == shard)


class Load:
    """Posts by users of the first shards, about 200 a second, until the context ends."""

    def __init__(self, cli):
        self.logins = [login_of_shard(shard, "busy") for shard in range(SHARDS // 2)]
        self.program = cli.start("replay", "-", stdin=subprocess.PIPE)
        self.count = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._post, daemon=True)

    def _post(self):
        while not self._is_over.wait(0.005):
            login = self.logins[self.count % len(self.logins)]
            line = events.dump(events.post(self.count + 1, f"post {self.count}", user=login, login=login))
            self.program.process.stdin.write(line.encode() + b"\n")
            self.count += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()
        self.program.process.stdin.close()
        self.program.process.stdin = None
        self.program.ended()


class Visitor:
    """Reconnects again and again with the greatest plain id that it has, which claims all shards; records what it
    receives, including gaps."""

    def __init__(self, gateway, first):
        self.gateway, self.cursor = gateway, int(first)
        self.got, self.gaps = [], []
        self.visits = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._visit, daemon=True)
        self._thread.start()

    def _visit(self):
        while not self._is_over.is_set():
            self.visits += 1
            with self.gateway.stream(f"{FIREHOSE}?since={self.cursor}") as stream:
                for _ in range(10 + self.visits % 30):
                    if not self._take(stream):
                        return

    def _take(self, stream):
        while not self._is_over.is_set():
            try:
                message = stream.next(0.5)
            except DeadlinePassed:
                continue
            if message.type == "gap":
                self.gaps.append((int(message["from"]), int(message["to"]), message["reason"], message["shard"]))
            else:
                self.got.append(message["id"])
                self.cursor = max(self.cursor, int(message["id"]))
                return True
        return False

    def wait(self, wanted):
        eventually(lambda: self.cursor >= max(map(int, wanted)), "the visitor has come to the end")
        self._is_over.set()
        self._thread.join()

    def assert_told(self, wanted):
        """What it has not received is in a gap of its shard; nothing came twice."""
        def is_told(number):
            return any(start < number <= end and shard == shard_of(number) and reason == "late"
                       for start, end, reason, shard in self.gaps)
        assert len(set(self.got)) == len(self.got) and set(self.got) <= set(wanted)
        missing = set(wanted) - set(self.got)
        assert [number for number in missing if not is_told(int(number))] == []


class Site:
    """Eight shards with a user in each who has not posted yet, two workers, and a client."""

    def __init__(self, servers, cli_for):
        self.clock = WallClock(servers.folder / "clock")
        self.redis = servers.redis(shards=SHARDS, env=self.clock.environment)
        self.cli = cli_for(self.redis)
        self.quiet = [login_of_shard(shard, "quiet") for shard in range(SHARDS)]
        for login in self.quiet:
            self.cli.run("user", "add", login)
        self.gateway = servers.gateway(self.redis, "--drain-timeout", "100ms", "--run-tasks", "off",
                                       "--order-wait", "10s", workers=2)  # a slow shard is not considered late
        self.client = Collector(self.gateway.stream(FIREHOSE))
        self.first = self.post(self.quiet[0])

    def post(self, login, text="quiet"):
        return self.cli.run("post", "--user", login, text).strip()

    def number(self, name):
        return sum(number for key, number in self.gateway.metrics().items() if key.split("{")[0] == name)

    def wait_flow(self):
        """Waits until a hundred more events have arrived."""
        count = len(self.client.messages)
        self.client.wait(lambda got: len(got) > count + 100, "the load flows")

    def wait_raised(self):
        """Waits until the clock of each shard has been raised above the ids that were delivered."""
        eventually(lambda: self.number("sluice_clock_raises_total") >= SHARDS, "all clocks are raised")

    def posts(self):
        return [event["id"] for event in self.redis.log() if event["type"] == "post"]

    def marks(self):
        return [event for event in self.redis.log() if event["type"] == "late"]

    def assert_rising_together(self):
        """A later post has a later time, in all shards with the same clock."""
        for shards in self.redis.shards_by_clock():
            times = [int(self.post(self.quiet[shard])) // 4096 for shard in shards + shards]
            assert times == sorted(times)

    def assert_all_came_once(self):
        """Expects the whole log, in its order except for late events."""
        wanted = self.posts()
        self.client.wait(lambda _: self.client.ids.issuperset(wanted), "every event of the log comes")
        got = [event["id"] for event in self.client.events()]
        assert sorted(got) == sorted(wanted)
        greatest = late = 0
        for number in map(int, got):
            late += number < greatest
            greatest = max(greatest, number)
        assert late <= self.number("sluice_events_late_total")


@pytest.fixture
def site(servers, cli_for):
    site = Site(servers, cli_for)
    yield site
    site.gateway.begin_stop()
    site.client.wait_end()
    site.client.close()


def test_back_ten_minutes(site):
    visitor = Visitor(site.gateway, site.first)
    with Load(site.cli) as load:
        site.wait_flow()
        site.clock.set(-TEN_MINUTES)
        site.wait_raised()
        first = load.count
        site.wait_flow()
        late = site.number("sluice_events_late_total")
        site.assert_rising_together()
        site.wait_flow()
    site.assert_all_came_once()
    wanted = [number for number in site.posts() if int(number) > int(site.first)]
    visitor.wait(wanted)
    visitor.assert_told(wanted)
    assert first < load.count and site.number("sluice_events_late_total") == late
    assert site.number("sluice_clock_raises_total") == SHARDS  # one write per shard
    for shards in site.redis.shards_by_clock():
        assert len({site.redis.client.hget(f"sluice:{{{shard}}}:meta", "clock_until") for shard in shards}) == 1


def test_back_while_nothing_happens(site):
    """A post minutes later is not late, even if nobody has posted meanwhile."""
    site.client.wait_id(site.first)
    site.clock.set(-TEN_MINUTES)
    site.wait_raised()
    site.assert_rising_together()
    site.assert_all_came_once()
    assert site.number("sluice_events_late_total") == 0


def gap_of_late(site, plain_id, shard):
    """What a client that resumes from this id is told about this shard."""
    with site.gateway.stream(f"{FIREHOSE}?since={plain_id}") as stream:
        gap = stream.until(lambda m: m.type == "gap" and m["shard"] == shard)[-1]
    assert gap["reason"] == "late"
    return gap


def test_what_a_quiet_shard_wrote_meanwhile_comes_late_and_is_marked(site):
    with Load(site.cli):
        site.wait_flow()
    early = site.post(site.quiet[7])
    site.client.wait_id(early)
    with processes.stopped(site.gateway.workers()):
        site.clock.set(-TEN_MINUTES)
        busy, late = site.post(site.quiet[7]), site.post(site.quiet[6])
    assert int(late) < int(early) < int(busy)
    late_message = next(m for m in site.client.wait_id(late) if m.json.get("id") == late)
    assert late_message["late"] is True and "~" in late_message["cursor"]
    site.client.wait_id(busy)
    site.wait_raised()
    eventually(site.marks, "the late event is marked")
    site.assert_rising_together()
    site.assert_all_came_once()
    marks = {mark["shard"]: mark for mark in site.marks()}
    assert len(marks) == len(site.marks()) == site.number("sluice_late_marks_total")  # two workers, one marker
    assert sum(n for key, n in site.gateway.metrics().items() if key.startswith("sluice_events_refused")) == 0
    told = gap_of_late(site, busy, 6)
    assert int(told["from"]) == int(late) - 1 and told["to"] == busy
    with site.gateway.stream(f"{FIREHOSE}?since={told['from']}") as stream:
        stream.until(late)
    assert int(marks[6]["from"]) < int(late) < int(busy) <= int(marks[6]["to"]) < int(marks[6]["id"])


def test_forward_ten_minutes_and_back(site):
    with Load(site.cli):
        site.wait_flow()
        site.clock.set(TEN_MINUTES)
        site.wait_flow()
        site.assert_rising_together()
        assert site.number("sluice_events_late_total") == site.number("sluice_clock_raises_total") == 0
        site.clock.set(0)
        site.wait_raised()
        site.assert_rising_together()
        site.wait_flow()
    site.assert_all_came_once()
