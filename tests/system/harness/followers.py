"""Clients in a storm: they follow a stream, connect, disconnect and stall, and record what they receive over all their
connections. In the end that is compared with the log."""

import collections
import json
import random
import re
import signal
import socket
import subprocess
import threading
import time
import warnings

from . import events, picks, programs, recompute
from .redis_server import shard_of
from .streams import CONTROL, Refused
from .waiting import Deadline, DeadlinePassed
from .websocket import TEXT

# Each of them also compressed; where there are few clients, only some are.
TRANSPORTS = ["ndjson", "raw-websocket+deflate", "sse+gzip", "delimited", "ndjson+zstd", "raw-websocket", "sse",
              "delimited+gzip", "ndjson+gzip", "sse+zstd", "ndjson+dictionary", "raw-websocket+dictionary"]
ONE_SHOT = ["ndjson", "raw-websocket+deflate", "delimited", "ndjson+zstd"]  # `since` is no Last-Event-ID
UNCOMPRESSED = ["ndjson", "raw-websocket", "sse", "delimited"]  # their sockets are full soon
CELL_DEGREES = 60
WITHOUT_DICTIONARY = [transport for transport in TRANSPORTS if "dictionary" not in transport]


class Gap(collections.namedtuple("Gap", "start end reason shard")):
    """As received; `shard` None: the database has one."""

    def covers(self, event_id):
        return self.start < event_id <= self.end and self.shard in (None, shard_of(event_id))


def id_of(cursor):
    """Returns the part of a cursor of either form that applies to all shards that are not behind."""
    return int(str(cursor).split("~")[0])


class Kind:
    """A stream that clients request, and which events of the log they should get."""

    def __init__(self, name, target, matches, transports=TRANSPORTS, token=None, subscribes=(), tail=(), rules=(),
                 is_slow=False, fields=("full", "full", "full", "short", "ids", "text,user.login")):
        self.name, self.target, self.matches, self.transports = name, target, matches, transports
        self.token, self.subscribes = token or {}, subscribes
        self.rules = rules  # what each of them matches: (name, test)
        self.is_slow = is_slow  # its clients stall for long, with small buffers, and do not leave before that
        self.tail = tail  # its name in `sluice tail`; empty: none
        self.fields = fields  # which members clients request, other ones each time; empty: all
        self.is_sampled = "on_slow=sample" in target  # while it is slow
        self.counts = "/counts" in target  # it receives counts
        self.rises = "/trends" in target  # or which tags rise
        self.groups = (re.findall(r"by=(\w+)", target) or [None])[0] if self.counts else None
        self.pace = picks.Pace(target)


def _filter(name, **parameters):
    query = "&".join(f"{key}={value.replace(' ', '+')}" for key, value in parameters.items())
    options = [part for key, value in parameters.items() for part in (f"--{key}", value)]
    return Kind(name, f"/v1/stream/filter?{query}", recompute.Filter(**parameters).matches,
                tail=[*options, "filter"])


def kinds_of_streams(people):
    """`people`: ids of users by login; u0 follows u1 to u4."""
    def by(*logins):
        wanted = {people[login] for login in logins}
        return lambda event: event["type"] in ("post", "delete") and \
            event["post"]["user"]["id"] in wanted

    def has(event, *words):
        return set(words) <= set(event["post"]["text"].split())

    def posts(test):
        return lambda event: event["type"] in ("post", "delete") and test(event)
    many = (("a", {"track": "amber"}, lambda e: has(e, "amber")),
            ("b", {"rule": "opal -pine"}, lambda e: has(e, "opal") and not has(e, "pine")))
    connection = {"transports": ["raw-websocket+deflate", "raw-websocket+dictionary", "raw-websocket"],
                  "subscribes": [(name, f) for name, f, _ in many], "rules": [(name, test) for name, _, test in many]}
    return [
        Kind("firehose", "/v1/stream/firehose", recompute.Filter(firehose=True).matches,
             tail=["firehose"]),
        _filter("track", track="amber basil,cedar,willow xenon yarrow"),
        _filter("follow", follow=",".join([people["u1"], people["u5"], "@u7"])),
        _filter("locations", locations="-20,-20,60,45,170,-50,-170,50"),
        _filter("track+language", track="delta,ember,fjord,grove", language="en,ja"),
        Kind("rule", "/v1/stream/filter?rule=(hazel+OR+iris)+-jade",
             posts(lambda e: (has(e, "hazel") or has(e, "iris")) and not has(e, "jade"))),
        Kind("sample", "/v1/stream/sample?percent=20",
             recompute.Filter(percent=20, firehose=True).matches),
        Kind("partition", "/v1/stream/firehose?partition=2/3",
             recompute.Filter(partition=(2, 3), firehose=True).matches),
        Kind("counts", "/v1/stream/counts?bucket=1s&by=lang&refresh_ms=300", recompute.Filter(firehose=True).matches,
             transports=WITHOUT_DICTIONARY, fields=()),
        Kind("counts+type", "/v1/stream/counts?bucket=1s&by=type", recompute.Filter(firehose=True).matches,
             transports=WITHOUT_DICTIONARY, fields=()),
        Kind("counts+country", "/v1/stream/counts?bucket=1s&by=country", recompute.Filter(firehose=True).matches,
             transports=WITHOUT_DICTIONARY, fields=()),
        Kind("counts+cell", f"/v1/stream/counts?bucket=1s&by=cell&cell_degrees={CELL_DEGREES}",
             recompute.Filter(firehose=True).matches, transports=WITHOUT_DICTIONARY, fields=()),
        Kind("counts+rule", "/v1/stream/counts?bucket=1s&by=rule",
             posts(lambda e: any(test(e) for _, _, test in many)), fields=(),
             **{**connection, "transports": ["raw-websocket+deflate", "raw-websocket"]}),
        Kind("counts+track", "/v1/stream/counts?bucket=1s&track=amber,willow",
             posts(lambda e: has(e, "amber") or has(e, "willow")), transports=WITHOUT_DICTIONARY, fields=()),
        Kind("trends", "/v1/stream/trends?window=5m&bucket=1s&of=hashtags", recompute.Filter(firehose=True).matches,
             transports=WITHOUT_DICTIONARY, fields=()),
        Kind("pace", "/v1/stream/firehose?max_rate=9", recompute.Filter(firehose=True).matches),
        Kind("pace+first", "/v1/stream/filter?track=amber,willow&max_rate=2&pick=first",
             posts(lambda e: has(e, "amber") or has(e, "willow"))),
        Kind("pace+newest", "/v1/stream/firehose?max_rate=3&pick=newest", recompute.Filter(firehose=True).matches),
        Kind("pace+half", "/v1/stream/firehose?max_rate=0.5&pick=newest", recompute.Filter(firehose=True).matches),
        Kind("pace+tenth", "/v1/stream/filter?track=amber,willow&max_rate=0.1",
             posts(lambda e: has(e, "amber") or has(e, "willow"))),
        Kind("pace+user", "/v1/stream/firehose?max_rate=3&latest_by=user", recompute.Filter(firehose=True).matches),
        Kind("pace+cell", f"/v1/stream/firehose?max_rate=4&latest_by=cell&cell_degrees={CELL_DEGREES}",
             recompute.Filter(firehose=True).matches),
        Kind("past", "/v1/stream/firehose?max=7", recompute.Filter(firehose=True).matches, transports=ONE_SHOT),
        Kind("past+user", "/v1/stream/filter?track=amber,willow&max=5&latest_by=user",
             posts(lambda e: has(e, "amber") or has(e, "willow")), transports=ONE_SHOT),
        Kind("sampled", "/v1/stream/firehose?on_slow=sample", recompute.Filter(firehose=True).matches,
             transports=UNCOMPRESSED, is_slow=True),
        Kind("home+sampled", "/v1/stream/home?on_slow=sample", by("u0", "u1", "u2", "u3", "u4"),
             transports=UNCOMPRESSED, token={"sub": people["u0"]}, is_slow=True),
        Kind("home", "/v1/stream/home", by("u0", "u1", "u2", "u3", "u4"),
             transports=WITHOUT_DICTIONARY, token={"sub": people["u0"]}, tail=["home"]),
        Kind("many", "/v1/stream", posts(lambda e: any(test(e) for _, _, test in many)), **connection),
        Kind("pace+slow", "/v1/stream/firehose?max_rate=60&pick=first", recompute.Filter(firehose=True).matches,
             is_slow=True),
        Kind("pace+slow+newest", "/v1/stream/firehose?max_rate=60&pick=newest",
             recompute.Filter(firehose=True).matches, is_slow=True),
        Kind("home+pace", "/v1/stream/home?max_rate=2", by("u0", "u1", "u2", "u3", "u4"),
             transports=WITHOUT_DICTIONARY, token={"sub": people["u0"]}),
        Kind("home+pace+first", "/v1/stream/home?max_rate=3&pick=first", by("u0", "u1", "u2", "u3", "u4"),
             transports=WITHOUT_DICTIONARY, token={"sub": people["u0"]}),
        Kind("many+pace", "/v1/stream?max_rate=2&pick=newest", posts(lambda e: any(test(e) for _, _, test in many)),
             **connection),
        Kind("many+pace+first", "/v1/stream?max_rate=2&pick=first",
             posts(lambda e: any(test(e) for _, _, test in many)), **connection),
    ]


def _disorder(ids):
    """How often an event comes after a later one of its shard."""
    ordered = events.by_shard(ids)
    return sum(b < a and shard_of(a) == shard_of(b) for a, b in zip(ordered, ordered[1:]))


class Follower:
    """Records what arrives."""

    def __init__(self, storm, kind, transport, is_calm):
        self.storm, self.kind, self.transport, self.is_calm = storm, kind, transport, is_calm
        self.is_sse = transport.startswith("sse")
        self.claims = {"sub": f"client{len(storm.clients)}", **kind.token}  # the number of streams per subject is limited
        self.ids, self.gaps, self.faults = [], [], []
        self.seen = set()  # ids, too
        self.late = set()  # those that were marked as late
        self.rules = []  # (id, the names of the matching rules in the event)
        self.story = []  # (time, what): ids, cursors and gaps as received, None for each connection
        self.connections = self.stalls = 0

    def has(self, event_id):
        """Whether this event has arrived, or was reported as missing."""
        return event_id in self.seen or (self.storm.shards == 1 and self.ids and self.ids[-1] >= event_id) or \
            any(gap.covers(event_id) for gap in self.gaps)

    def untold(self, in_log):
        """Returns the events that Redis has lost and that were followed by others of their shard on the same
        connection, without a gap with that reason in between. (A disconnected client cannot be told.)"""
        untold, lost = [], collections.defaultdict(list)
        for _, part in self.story:
            if part is None:
                lost.clear()
            elif isinstance(part, Gap):
                if part.reason == "rewound":
                    for ids in lost.values():
                        ids[:] = [event_id for event_id in ids if not part.covers(event_id)]
            elif part in in_log:
                untold += lost.pop(shard_of(part), ())
            elif isinstance(part, int):
                lost[shard_of(part)].append(part)
        return untold

    def _tell(self, part):
        self.story.append((time.time(), part))

    def _keep(self, event_id):
        self.ids.append(event_id)
        self.seen.add(event_id)

    def inversions(self, ids):
        in_time = [event_id for event_id in ids if event_id not in self.late]
        return sum(b < a for a, b in zip(in_time, in_time[1:])) - _disorder(in_time)

    def _check_rules(self):
        """Which of its rules an event names."""
        for event_id, told in self.rules:
            named = self.storm.rules.get(event_id)
            if named is not None and told != named:
                self.faults.append(f"{event_id} is of the rules {named}, told {told}")

    def missing(self, wanted):
        return [event_id for event_id in wanted if event_id not in self.seen and
                not any(gap.covers(event_id) for gap in self.gaps)]

    def twice(self, in_log):
        return sorted(event_id for event_id, count in collections.Counter(self.ids).items()
                      for _ in range(count - 1) if event_id in in_log)

    def compare(self, wanted, in_log, unlogged=frozenset()):
        """Counts what went wrong. `wanted`: the ids of the events that it should have received; `in_log`: of all events
        in the log; `unlogged`: of those that were published without the log. Events that it received and Redis has lost
        since are counted separately. `disorder` is within a shard, `inversions` are between shards, where only late
        events may come after greater ids; gaps about late events do not count."""
        ids = [event_id for event_id in self.ids if event_id in in_log]
        seen = set(ids)
        self._check_rules()
        return {
            "events": len(wanted), "missing": len(self.missing(wanted)), "twice": len(self.twice(in_log)),
            "disorder": _disorder(ids), "inversions": self.inversions(ids),
            "foreign": len(seen.difference(wanted)), "rewound": len(self.seen - seen - unlogged),
            "untold": len(self.untold(in_log)), "gaps": sum(gap.reason != "late" for gap in self.gaps),
            "connections": self.connections, "stalls": self.stalls, "faults": len(self.faults),
        }


class Client(Follower):
    """A client of the harness, in its own thread."""

    def __init__(self, storm, kind, transport, seed, is_calm):
        super().__init__(storm, kind, transport, is_calm)
        self.rng = random.Random(seed)
        self.cursor = storm.start  # the greatest id
        self.since = str(storm.start)  # where it resumes: that, or the cursor that it was given
        self.broken = self.refused = self.warnings = 0
        self.members = None  # the last ones that it requested
        self.disconnects = {}
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._socket = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _target(self):
        target = self.kind.target + ("&" if "?" in self.kind.target else "?") + "cursors=true"
        if self.kind.fields:
            self.members = self.rng.choice(self.kind.fields)
            target += "&fields=" + self.members
        return target if self.is_sse else f"{target}&since={self.since}"

    def _open(self):
        gateway = self.storm.gateway
        headers = {"Last-Event-ID": self.since} if self.is_sse else {}
        stream = gateway.stream(
            self._target(), self.transport, headers=headers, token=gateway.token(**self.claims),
            receive_buffer=None if self.is_calm else 2048 if self.kind.is_slow else self.rng.choice([None, 4096]),
            dictionary=self.storm.dictionary if self.transport.endswith("+dictionary") else None)
        for number, (name, wanted) in enumerate(self.kind.subscribes, 1):
            stream.send_frame(TEXT, json.dumps({"op": "subscribe", "id": name, "filter": wanted,
                                                "more": number < len(self.kind.subscribes)}))
        self.connections += 1
        self._tell(None)
        return stream

    def _run(self):
        while not self._stopping.is_set():
            try:
                stream = self._open()
            except Refused as refused:
                self.refused += 1
                if refused.response.status not in (429, 503):
                    self.faults.append(repr(refused.response))
            except (OSError, DeadlinePassed):
                self.refused += 1
            else:
                self._follow(stream)
            self._stopping.wait(self.rng.uniform(0.01, 0.2))

    def _follow(self, stream):
        with self._lock:
            self._socket = stream.connection.socket
        try:
            while not self._stopping.is_set() and (message := stream.next(86400)) is not None:
                self._take(message)
                if not self._goes_on(stream):
                    break
        except OSError:  # including ConnectionEnded
            self.broken += 1
        except Exception as fault:  # shown at the end; the strict readers raise many kinds
            if not self._stopping.is_set():
                self.faults.append(repr(fault))
        with self._lock:
            self._socket = None
        if self.is_sse and stream.last_event_id:
            self._come_back_with(stream.last_event_id)
        stream.close()

    def _come_back_with(self, cursor):
        self._tell(f"cursor {cursor}")
        self.since, self.cursor = cursor, id_of(cursor)

    def _take(self, message):
        if message.type in CONTROL:
            self._take_control(message)
        elif "op" in message:
            if "error" in message:
                self.faults.append(repr(message))
        else:
            event_id = int(message["id"])
            if "cursor" in message:
                self.since = message["cursor"]
                self.cursor = max(self.cursor, id_of(self.since))
            else:
                self.cursor = event_id if self.storm.shards == 1 else max(self.cursor, event_id)
                self.since = str(self.cursor)
            self._keep(event_id)
            self._tell(event_id)
            if "late" in message:
                self.late.add(event_id)
                self._tell(f"late, cursor {message['cursor']}")
            self._check_cursor(message, event_id)
            if self.kind.rules:
                self.rules.append((event_id, [rule["id"] for rule in message.json.get("matching_rules", ())]))
            elif "cursor" not in message:
                self._check_bytes(message)

    def _check_bytes(self, message):
        """All clients that request the same members get the same bytes, whether compressed or not."""
        raw = message.raw if isinstance(message.raw, bytes) else message.raw.encode()  # for WebSockets it is text
        said = self.storm.said.setdefault((message["id"], self.members), raw)
        if said != raw:
            self.faults.append(f"{self.members}: {raw} here and {said} elsewhere")

    def _check_cursor(self, message, event_id):
        """The event says its cursor if that is not its id; Server-Sent Events have it with every event."""
        is_unlogged = self.storm.outsider is not None and event_id in self.storm.outsider.ids
        is_good = ("cursor" in message) == (is_unlogged or "late" in message)
        if self.is_sse and "cursor" in message:
            is_good = is_good and message.sse_id == message["cursor"]
        elif self.is_sse:
            is_good = is_good and id_of(message.sse_id) == event_id  # it has two forms while a shard is behind
        if not is_good:
            self.faults.append(f"not the event's cursor: {message}")

    def _take_control(self, message):
        if message.type == "gap":
            self.gaps.append(Gap(int(message["from"]), int(message["to"]), message["reason"],
                                 message.json.get("shard")))
            self._tell(self.gaps[-1])
            if "shard" not in message:  # otherwise it says nothing about other shards
                self.cursor = max(self.cursor, int(message["to"]))
                self.since = str(self.cursor)
        elif message.type == "cursor":
            self._come_back_with(message["id"])
        elif message.type == "warning":
            self.warnings += 1
        elif message.type == "disconnect":
            code = message["code"]
            self.disconnects[code] = self.disconnects.get(code, 0) + 1
            if "cursor" in message:
                self._come_back_with(message["cursor"])

    def _goes_on(self, stream):
        """False: it disconnects. Otherwise it may stop reading while a number of events happen."""
        if self.is_calm:
            return True
        dice = self.rng.random() * (8 if self.kind.is_slow else 1)
        if dice < 0.01:
            if dice < 0.005:
                stream.connection.reset()
            return False
        if dice < 0.015:
            self.stalls += 1
            until = self.storm.producer.made + self.rng.randrange(50, 800) * (6 if self.kind.is_slow else 1)
            while self.storm.producer.made < until and not self.storm.is_over.wait(0.05):
                pass
        return True

    def stop(self):
        self._stopping.set()
        with self._lock:
            if self._socket:
                try:
                    self._socket.shutdown(socket.SHUT_RDWR)  # wakes up its thread
                except OSError:
                    pass
        self._thread.join(Deadline(60).seconds)
        if self._thread.is_alive():
            warnings.warn(f"a reader of {self.kind.name} by {self.transport} does not end")


class Tail(Follower):
    """`sluice tail`, which reconnects by itself."""

    def __init__(self, storm, kind):
        super().__init__(storm, kind, "sluice tail", is_calm=True)
        gateway = storm.gateway
        self.connections = 1
        self._process = subprocess.Popen(
            [programs.sluice(), "tail", "--url", gateway.url, "--token",
             gateway.token(**self.claims), "--since", str(storm.start), *kind.tail],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=programs.environment())
        storm.servers.programs.append(self)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._process.stdout:
            try:
                event = json.loads(line)
                self._keep(int(event["id"]))
                if "late" in event:
                    self.late.add(int(event["id"]))
            except (ValueError, KeyError):
                self.faults.append(repr(line))
        status = self._process.wait()
        if status != -signal.SIGTERM and status != 0:
            self.faults.append(f"it ended with {status}")

    def stop(self):
        if not self._thread.is_alive():
            return  # it has ended; its faults say how
        self._process.terminate()
        self._thread.join(Deadline().seconds)
