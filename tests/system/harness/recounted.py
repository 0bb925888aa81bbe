"""Clients in a storm of streams that summarize: they receive counts, trends, or some of the posts and the number of the
others. In the end all of this is computed again from the log."""

import bisect
import collections
import time

from . import picks, rising
from .followers import CELL_DEGREES, Client, Follower, id_of
from .redis_server import shard_of
from .streams import CONTROL


def can_lose(client):
    """Returns whether Redis may have lost events that the client has received or was told of."""
    return client.storm.embedded or client.storm.group or any(gap.reason == "rewound" for gap in client.gaps)


class CountingClient(Client):
    """It receives the number of events: each bucket once, and again when that number has changed."""

    def __init__(self, *arguments):
        self.buckets = {}  # by id, the last ones received
        self.again = 0  # repeated, but not as a revision, nor because its cursor went back
        super().__init__(*arguments)

    def has(self, event_id):
        return any(bucket >= event_id for bucket in list(self.buckets))

    def _take(self, message):
        if message.type != "counts":
            super()._take(message)
        elif "partial" not in message:
            self._keep(message)

    def _keep(self, message):
        bucket = int(message["id"])
        self.again += bucket in self.buckets and "revision" not in message and bucket <= self.cursor
        self.buckets[bucket] = message.json
        self._come_back_with(message["id"])
        if self.is_sse and message.sse_id != message["id"]:
            self.faults.append(f"another id than the bucket's: {message}")

    def _check_members(self, bucket, events):
        """Users are exact up to 256, then within five standard errors of 1.6 %; groups are exact."""
        posts = self.storm.posts
        told, users = self.buckets.get(bucket), len({posts[event_id].user for event_id in events if event_id in posts})
        if told is None:
            return
        if abs(told["users"] - users) > (0.08 * users if users > 256 else 0):
            self.faults.append(f"{users} users, told {told}")
        if "groups" in told:
            groups = {group["key"]: group["events" if self.kind.groups == "type" else "posts"]
                      for group in told["groups"]}
            expected = collections.Counter(key for event_id in events for key in self._keys(event_id))
            if groups != expected or told["other"]:
                self.faults.append(f"other groups than {expected}: {told}")

    def _keys(self, event_id):
        """Returns the groups in which the event is counted."""
        post = self.storm.posts.get(event_id)
        if self.kind.groups == "type":
            return ["post" if post else "delete"]
        if not post:
            return []
        if self.kind.groups == "rule":
            return self.storm.rules[event_id]
        if self.kind.groups == "cell":
            cell = picks.cell_of(post.geo, CELL_DEGREES)
            return [f"{cell[0] * CELL_DEGREES - 180},{cell[1] * CELL_DEGREES - 90}" if cell else "none"]
        return [getattr(post, self.kind.groups)]

    def compare(self, wanted, in_log, unlogged=frozenset()):
        """By bucket: `missing` and `rewound` are the numbers of events too few and too many where there was no gap."""
        def bucket_of(event_id):
            return event_id // (1000 * 4096) * 1000 * 4096 + 1000 * 4096 - 1

        counts, result = collections.Counter(map(bucket_of, wanted)), super().compare([], in_log)
        members = collections.defaultdict(list)
        for event_id in wanted:
            members[bucket_of(event_id)].append(event_id)
        newest = max(self.buckets, default=0)
        for bucket in {*counts, *self.buckets}:
            told = self.buckets.get(bucket, {"posts": 0, "deletes": 0})
            difference = counts[bucket] - told["posts"] - told["deletes"]
            is_told = "gap" in told or any(gap.start < bucket and bucket_of(gap.end) >= bucket for gap in self.gaps)
            if not is_told and bucket_of(self.storm.start) < bucket <= newest:
                result["missing" if difference > 0 else "rewound"] += abs(difference)
                if difference == 0:
                    self._check_members(bucket, members[bucket])
        result["faults"] = len(self.faults)
        return {**result, "events": len(wanted), "twice": self.again}


class TrendsClient(CountingClient):
    """It receives trends of tags: each bucket once, and again when it has changed."""

    checked = 0  # messages that were computed again

    def _take(self, message):
        if message.type != "trends":
            Client._take(self, message)
            return
        self._keep(message)

    def _take_control(self, message):
        super()._take_control(message)
        if message.type == "gap":  # earlier messages about that time are no longer valid, or were not sent
            gap = self.gaps[-1]
            for bucket, told in self.buckets.items():
                if bucket > gap.start and rising.first_ms(bucket) <= picks.ms_of(gap.end):
                    told["gap"] = True

    def compare(self, wanted, in_log, unlogged=frozenset()):
        """Each message is computed again, unless there was a gap for it; `missing` are messages that differ, and those
        that have not arrived, and `rewound` those that differ where Redis may have lost what they count."""
        result = Follower.compare(self, [], in_log)
        for bucket, told in self.buckets.items():
            if "gap" in told or not told["complete"]:
                continue
            self.checked += 1
            expected = self.storm.rising.terms(bucket)
            if told["terms"] != expected:
                result["rewound" if can_lose(self) else "missing"] += 1
                if not can_lose(self):
                    self.faults.append(f"told {told} and not {expected}")
        second = 1000 * 4096
        for bucket in range(min(self.buckets, default=1), max(self.buckets, default=0), second):
            is_told = bucket in self.buckets or any(gap.start < bucket and gap.end > bucket - second for gap in self.gaps)
            result["missing"] += not is_told
        return {**result, "events": len(self.buckets), "twice": self.again, "faults": len(self.faults)}


class PacedClient(Client):
    """It receives some posts of each window, and the number of those skipped."""

    def __init__(self, *arguments):
        self.skips = {}  # by the end of the window
        self.again = self.late_skips = 0
        super().__init__(*arguments)

    def has(self, event_id):
        """Also the number of those skipped, which comes after the posts of the window."""
        if any(window >= event_id for window in list(self.skips)):
            return True
        return super().has(event_id) and (self.late_skips > 0 or self._has_all_of(self.kind.pace.window_of(event_id)))

    def _has_all_of(self, window):
        for event_id in reversed(self.storm.wanted[self.kind.name]):
            of = self.kind.pace.window_of(event_id)
            if of < window:
                break
            if of == window and event_id in self.storm.posts and event_id not in self.seen:
                return False
        return True

    def _take(self, message):
        if message.type != "skipped":
            super()._take(message)
        elif "reason" in message:
            self.late_skips += message["events"]
        else:
            window = int(message["id"])
            self.again += window in self.skips
            self.skips[window] = message["events"]
            self._come_back_with(message["id"])
            if self.is_sse and message.sse_id != message["id"]:
                self.faults.append(f"another id than the window's: {message}")

    def _take_control(self, message):
        since, cursor = self.since, self.cursor
        super()._take_control(message)
        if message.type == "gap":  # posts of its window are still to come
            self.since, self.cursor = since, cursor

    def compare(self, wanted, in_log, unlogged=frozenset()):
        """By window: which posts should have arrived; differences count as `missing`, unless there was a gap."""
        posts, pace, expected, wrong, lost, late = self.storm.posts, self.kind.pace, [], 0, 0, self.late_skips
        were_late = set().union(*(client.late for client in self.storm.clients))
        windows = collections.defaultdict(list)
        for event_id in wanted:
            if event_id in posts:
                windows[pace.window_of(event_id)].append(event_id)
            else:
                expected.append(event_id)
        for window, matched in windows.items():
            told = [event_id for event_id in matched if event_id in self.seen]
            is_told = any(gap.start < window and pace.window_of(gap.end) >= window for gap in self.gaps)
            left = len(matched) - len(told) - self.skips.get(window, 0)
            # The first posts were sent before another one of the window came late: only the sums agree.
            has_other_firsts = pace.is_first and not were_late.isdisjoint(matched)
            if is_told or window <= pace.window_of(self.storm.start) or 0 < left <= late or \
                    (has_other_firsts and left == 0):
                expected += told
                late -= left if not is_told and 0 < left <= late else 0
            elif left < 0 and can_lose(self):  # it left before it could be told that they are lost
                expected += told
                lost -= left
            else:
                wrong += abs(left)
                expected += [post.id for post in pace.choose([posts[event_id] for event_id in matched])]
        result = super().compare(sorted(expected), in_log, unlogged)
        return {**result, "missing": result["missing"] + wrong, "twice": result["twice"] + self.again,
                "rewound": result["rewound"] + lost}


class PastClient(Client):
    """It repeatedly requests some posts of a past interval (max=)."""

    def __init__(self, *arguments):
        self.intervals = []  # the complete ones: (since, until, ids of the posts sent, number of those skipped)
        self._sent, self._skipped, self._is_told = [], 0, False
        super().__init__(*arguments)

    def has(self, event_id):
        return True  # it waits for nothing

    def _target(self):
        until = max(self.storm.start + 1, picks.id_before(int(time.time() * 1000) - 2000))
        since = max(self.storm.start, until - self.rng.randrange(1, 10000) * 4096)
        self.cursor, self.since = until, str(since)
        self._sent, self._skipped, self._is_told = [], 0, False
        return f"{self.kind.target}&since={since}&until={until}"

    def _follow(self, stream):
        super()._follow(stream)
        self._stopping.wait(self.rng.uniform(0.5, 2))

    def _goes_on(self, stream):
        return True

    def _take(self, message):
        if message.type == "skipped":
            self._skipped += 0 if message.json.get("reason") == "unlogged" else message["events"]
        elif message.type == "gap":
            self._is_told = True
        elif message.type == "disconnect":
            if message["code"] == "complete" and not self._is_told:
                self.intervals.append((int(self.since), self.cursor, self._sent, self._skipped))
        elif message.type not in CONTROL:
            self._sent.append(int(message["id"]))

    def compare(self, wanted, in_log, unlogged=frozenset()):
        """`missing`: posts sent or skipped by mistake. Intervals with late events, or with some that Redis has lost, are
        not judged."""
        posts, deletes, clients = self.storm.posts, self.storm.deletes, self.storm.clients
        wanted, wrong, judged = sorted(set(wanted).intersection(posts)), 0, 0
        unsure = set().union(*(client.late for client in clients), *(client.seen - in_log - unlogged for client in clients))
        for since, until, sent, skipped in self.intervals:
            if any(since < event_id <= until for event_id in unsure):
                continue
            matched = [posts[i] for i in wanted[bisect.bisect_right(wanted, since):bisect.bisect_right(wanted, until)]]
            chosen = {post.id for post in self.kind.pace.choose(matched) if deletes.get(post.number, until + 1) > until}
            wrong += len(chosen.symmetric_difference(sent)) + abs(len(matched) - len(chosen) - skipped)
            judged += len(matched)
        return {**super().compare([], in_log, unlogged), "events": judged, "missing": wrong}


class SampledClient(Client):
    """While it is slow it receives a share of its posts, and the number of those left out. From time to time it reads
    only a few messages a second."""

    def __init__(self, *arguments):
        self.slow_until, self.pause_s = 0, 0  # until so many events have been made
        self.told = []  # (current percentage, cursor, number)
        self.parts = []  # (current percentage, id) of received posts
        self.percent, self.moves = 100, 0
        super().__init__(*arguments)

    def has(self, event_id):
        return id_of(self.since) >= event_id or super().has(event_id)

    def _open(self):
        self.percent = 100
        return super()._open()

    def _take(self, message):
        if message.type == "sampling":
            self.percent = message["percent"]
            self.moves += 1
        elif message.type == "skipped":
            self.told.append((self.percent, message["id"], message["events"]))
            self._come_back_with(message["id"])
            if self.is_sse and message.sse_id != message["id"]:
                self.faults.append(f"another id than the cursor: {message}")
        else:
            if message.type == "post" and "late" not in message and not self.gaps:
                self.parts.append((self.percent, int(message["id"])))
            super()._take(message)

    def _goes_on(self, stream):
        if self.storm.producer.made < self.slow_until:
            self.storm.is_over.wait(self.pause_s)
        elif not self.is_calm and self.rng.random() < 0.01:
            self.slow_until = self.storm.producer.made + self.rng.randrange(300, 1500)
            self.pause_s = self.rng.choice([0.02, 0.05, 0.2])
            self.stalls += 1
        return super()._goes_on(stream)

    def _is_in_part(self, event_id, percent):
        return picks.is_in_part(self.storm.posts[event_id].number, percent)

    def compare(self, wanted, in_log, unlogged=frozenset()):
        """Each number of left-out posts is computed again: those in the log, by the tests' own hash, up to its cursor,
        that were not sent and not reported before."""
        for percent, event_id in self.parts:
            if event_id in self.storm.posts and not self._is_in_part(event_id, percent):
                self.faults.append(f"not of {percent} %: {event_id}")
        open_posts, left_out, wrong, rewound = sorted(set(wanted).intersection(self.storm.posts)), set(), 0, 0
        for percent, cursor, count in self.told:
            here = [event_id for event_id in open_posts if event_id <= _of_shard(cursor, shard_of(event_id))]
            left = [event_id for event_id in here if event_id not in self.seen and
                    not self._is_in_part(event_id, percent)]
            sure = [event_id for event_id in left if not any(gap.covers(event_id) for gap in self.gaps)]
            wrong += max(0, len(sure) - count)
            rewound += max(0, count - len(left))
            left_out.update(left)
            open_posts = [event_id for event_id in open_posts if event_id not in left_out]
        result = super().compare([event_id for event_id in wanted if event_id not in left_out], in_log, unlogged)
        if not can_lose(self):
            wrong, rewound = wrong + rewound, 0
        return {**result, "events": len(wanted), "missing": result["missing"] + wrong,
                "rewound": result["rewound"] + rewound}


def _of_shard(cursor, shard):
    """Returns the part of the cursor for this shard."""
    first, *groups = str(cursor).split("~")
    for group in groups:
        low, _, bits = group.partition(":")
        if int(bits, 16) >> shard & 1:
            return int(low)
    return int(first)


def client_of(kind):
    """Returns the class of clients of this kind of stream."""
    if kind.pace.is_of_past:
        return PastClient
    return CountingClient if kind.counts else TrendsClient if kind.rises else \
        PacedClient if kind.pace.posts else SampledClient if kind.is_sampled else Client
