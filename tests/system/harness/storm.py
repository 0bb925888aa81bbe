"""A storm: producers, clients that come, go and stall, and faults of every kind; then the count.

Each client keeps what it has received over all its connections, coming back with its cursor. At the end
that is compared with the log: what is missing without a gap, what came twice, what is out of order. What
happens is drawn from a seed; when it happens is up to the machine, and changes nothing about the count."""

import json
import os
import random
import signal
import socket
import subprocess
import threading

from . import events, processes, programs, recompute
from .cli import Cli
from .gateway import sanitizer_report
from .ports import is_free, steady_port
from .proxy import Proxy
from .redis_group import RedisGroup
from .redis_server import RedisServer
from .streams import CONTROL, Refused
from .waiting import Deadline, DeadlinePassed, eventually
from .websocket import TEXT

LOG = "sluice:{0}:log"
PEOPLE = 12
WORDS = ("amber basil cedar delta ember fjord grove hazel iris jade karst lotus maple nectar opal pine "
         "quartz river slate thyme umber velvet willow xenon yarrow zephyr").split()
LANGUAGES = ["en", "en-GB", "de", "ja", None]
TRANSPORTS = ["ndjson", "delimited", "sse", "raw-websocket"]


class Posts:
    """Lines for `sluice replay`: posts, and deletions of some of them."""

    def __init__(self, rng):
        self.rng, self.number, self.deletable = rng, 0, []

    def begin_again(self):
        """Another replay does not know the posts of the last one."""
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
        text = " ".join(rng.choices(WORDS, k=rng.randrange(3, 40)))
        self.deletable.append(str(self.number))
        del self.deletable[:-200]
        person = rng.randrange(PEOPLE)
        return events.dump(events.post(self.number, text, user=person, login=f"u{person}", **members))


class Producer:
    """`sluice replay -`, fed line by line; another one when it has ended with Redis."""

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


class Kind:
    """A stream that clients ask for, and which events of the log they should get."""

    def __init__(self, name, target, matches, transports=TRANSPORTS, token=None, subscribes=(), tail=()):
        self.name, self.target, self.matches, self.transports = name, target, matches, transports
        self.token, self.subscribes = token or {}, subscribes
        self.tail = tail  # what `sluice tail` calls it; empty: nothing


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
        Kind("home", "/v1/stream/home", by("u0", "u1", "u2", "u3", "u4"),
             token={"sub": people["u0"]}, tail=["home"]),
        Kind("many", "/v1/stream", posts(lambda e: any(test(e) for _, _, test in many)),
             transports=["raw-websocket"], subscribes=[(name, f) for name, f, _ in many]),
    ]


class Follower:
    """Somebody who keeps what comes."""

    def __init__(self, storm, kind, transport, is_calm):
        self.storm, self.kind, self.transport, self.is_calm = storm, kind, transport, is_calm
        self.ids, self.gaps, self.faults = [], [], []
        self.story = []  # ids and gaps as they came, None for each connection
        self.connections = self.stalls = 0

    def has(self, event_id):
        """Whether this event has come, or it was said that it never will."""
        return (self.ids and self.ids[-1] >= event_id) or \
            any(start < event_id <= end for start, end, _ in self.gaps)

    def untold(self, in_log):
        """Events that Redis has lost and that were followed by others on the same connection, without
        a gap of that reason between them. (Who has left cannot be told.)"""
        count, lost = 0, []
        for part in self.story:
            if part is None:
                lost = []
            elif isinstance(part, tuple):
                start, end, reason = part
                lost = [event_id for event_id in lost
                        if reason != "rewound" or not start < event_id <= end]
            elif part in in_log:
                count += len(lost)
                lost = []
            else:
                lost.append(part)
        return count

    def compare(self, wanted, in_log):
        """What went wrong, by counting. `wanted`: the ids of the events it should have got;
        `in_log`: of all there are. What it got and Redis has lost since counts by itself."""
        ids = [event_id for event_id in self.ids if event_id in in_log]
        seen = set(ids)
        missing = [event_id for event_id in wanted if event_id not in seen and
                   not any(start < event_id <= end for start, end, _ in self.gaps)]
        return {
            "events": len(wanted), "missing": len(missing), "twice": len(ids) - len(seen),
            "disorder": sum(b < a for a, b in zip(ids, ids[1:])),
            "foreign": len(seen.difference(wanted)), "rewound": len(set(self.ids) - seen),
            "untold": self.untold(in_log), "gaps": len(self.gaps),
            "connections": self.connections, "stalls": self.stalls, "faults": len(self.faults),
        }


class Client(Follower):
    """A client of the tests' own, in a thread of its own."""

    def __init__(self, storm, kind, transport, seed, is_calm):
        super().__init__(storm, kind, transport, is_calm)
        self.rng = random.Random(seed)
        self.cursor = storm.start
        self.broken = self.refused = self.warnings = 0
        self.disconnects = {}
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._socket = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _target(self):
        target = self.kind.target + ("&" if "?" in self.kind.target else "?") + "cursors=true"
        return target if self.transport == "sse" else f"{target}&since={self.cursor}"

    def _open(self):
        gateway = self.storm.gateway
        headers = {"Last-Event-ID": str(self.cursor)} if self.transport == "sse" else {}
        stream = gateway.stream(
            self._target(), self.transport, headers=headers, token=gateway.token(**self.kind.token),
            receive_buffer=None if self.is_calm else self.rng.choice([None, 4096]))
        for number, (name, wanted) in enumerate(self.kind.subscribes, 1):
            stream.send_frame(TEXT, json.dumps({"op": "subscribe", "id": name, "filter": wanted,
                                                "more": number < len(self.kind.subscribes)}))
        self.connections += 1
        self.story.append(None)
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
        except OSError:  # ConnectionEnded is one
            self.broken += 1
        except Exception as fault:  # shown at the end; the strict readers raise many kinds
            if not self._stopping.is_set():
                self.faults.append(repr(fault))
        with self._lock:
            self._socket = None
        if self.transport == "sse" and stream.last_event_id:
            self.cursor = max(self.cursor, int(stream.last_event_id))
        stream.close()

    def _take(self, message):
        if message.type in CONTROL:
            self._take_control(message)
        elif "op" in message:
            if "error" in message:
                self.faults.append(repr(message))
        else:
            self.cursor = int(message["id"])
            self.ids.append(self.cursor)
            self.story.append(self.cursor)
            if self.transport == "sse" and message.sse_id != message["id"]:
                self.faults.append(f"another id than the event's: {message}")

    def _take_control(self, message):
        if message.type == "gap":
            self.gaps.append((int(message["from"]), int(message["to"]), message["reason"]))
            self.story.append(self.gaps[-1])
            self.cursor = max(self.cursor, int(message["to"]))
        elif message.type == "cursor":
            self.cursor = int(message["id"])
        elif message.type == "warning":
            self.warnings += 1
        elif message.type == "disconnect":
            code = message["code"]
            self.disconnects[code] = self.disconnects.get(code, 0) + 1
            if "cursor" in message:
                self.cursor = int(message["cursor"])

    def _goes_on(self, stream):
        """False: it leaves. Else it may stop reading while a number of events happen."""
        if self.is_calm:
            return True
        dice = self.rng.random()
        if dice < 0.01:
            if dice < 0.005:
                stream.connection.reset()
            return False
        if dice < 0.015:
            self.stalls += 1
            until = self.storm.producer.made + self.rng.randrange(50, 800)
            while self.storm.producer.made < until and not self.storm.is_over.wait(0.05):
                pass
        return True

    def stop(self):
        self._stopping.set()
        with self._lock:
            if self._socket:
                try:
                    self._socket.shutdown(socket.SHUT_RDWR)  # its thread wakes up
                except OSError:
                    pass
        self._thread.join(Deadline(60).seconds)


class Tail(Follower):
    """`sluice tail`, which comes back by itself."""

    def __init__(self, storm, kind):
        super().__init__(storm, kind, "sluice tail", is_calm=True)
        gateway = storm.gateway
        self.connections = 1
        self._process = subprocess.Popen(
            [programs.sluice(), "tail", "--url", gateway.url, "--token",
             gateway.token(**kind.token), "--since", str(storm.start), *kind.tail],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=programs.environment())
        storm.servers.guests.append(self)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._process.stdout:
            try:
                self.ids.append(int(json.loads(line)["id"]))
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


class Storm:
    """The servers, the clients, and what is done to them. `servers` is conftest's. `sentinel`: with a
    master, a replica and three sentinels; `redis` is whoever is the master."""

    def __init__(self, servers, seed, embedded=False, workers=2, options=(), sentinel=False):
        self.servers, self.rng, self.embedded = servers, random.Random(seed), embedded
        self.options = ["--keepalive-ms", 500, "--max-owed-bytes", "64K", "--drain-timeout", "2s",
                        *options]
        listen = f"127.0.0.1:{steady_port()}"
        self.done = {}  # faults by name
        self.is_over = threading.Event()  # nothing happens any more: whoever stalls goes on
        self.retired = []
        self.group = self.proxy = None
        if embedded:
            self.gateway = servers.gateway(None, *self.options, workers=workers, listen=listen)
            self.redis = RedisServer(self.gateway.data_dir)  # which sluiced has started
        elif sentinel:
            self.group = RedisGroup(servers.folder / "group", down_after_ms=1500, sentinels=3,
                                    failover_timeout_ms=10000, append_only=True)
            servers.redis_servers.append(self.group)
            for self.redis in (self.group.replica, self.group.master):
                self._write_at_once()
            self.gateway = servers.gateway(self.group.url, *self.options, workers=workers, listen=listen)
        else:
            # Only with one shard a cursor is exact, so that none comes twice.
            self.redis = servers.redis(shards=1, append_only=True)
            self._write_at_once()
            self.proxy = Proxy(self.redis.socket)
            self.gateway = servers.gateway(f"redis://127.0.0.1:{self.proxy.port}", *self.options,
                                           workers=workers, listen=listen)
        self.cli = Cli(self.group or self.redis)
        self.people = {f"u{n}": self.cli.run("user", "add", f"u{n}") for n in range(PEOPLE)}
        for n in range(1, 5):
            self.cli.run("follow", "u0", f"u{n}")
        self.start = int(self.cli.run("post", "--user", "u0", "the beginning"))
        self.producer = Producer(self.cli, random.Random(self.rng.random()))
        self.clients = []

    def add_clients(self, per_kind, calm=1):
        """So many of each kind, in turn over its transports; `calm` ones neither leave nor stall. And a
        `sluice tail` where it can follow that and has no certificate to check."""
        for kind in kinds_of_streams(self.people):
            for number in range(per_kind):
                transport = kind.transports[number % len(kind.transports)]
                self.clients.append(Client(self, kind, transport, self.rng.random(), number < calm))
            if kind.tail and not self.gateway.tls:  # it trusts the system's authorities only
                self.clients.append(Tail(self, kind))

    # Faults

    def faults(self):
        every = [self.kill_redis, self.kill_subscribers, self.kill_connections, self.stop_redis,
                 self.kill_worker, self.kill_gateway, self.kill_everything, self.take_over,
                 self.restart_gateway]
        if self.proxy:
            every += [self.restart_redis, self.cut_wire]
        if self.group:
            every += [self.restart_redis, self.promote_replica, self.kill_master]
        return every

    def inflict(self, fault, pause):
        """`pause(seconds)` passes the time that something stays broken."""
        self.done[fault.__name__] = self.done.get(fault.__name__, 0) + 1
        self._find_master()
        fault(pause)
        self._find_master()

    def _find_master(self):
        if self.group:
            self.redis = self.group.wait_whole()

    def redis_pid(self):
        if not self.embedded:
            return self.redis.process.pid
        return self.redis.client.info("server")["process_id"]

    def kill_redis(self, pause):
        if self.embedded:
            os.kill(self.redis_pid(), signal.SIGKILL)  # sluiced starts it again
            self.redis.client.connection_pool.disconnect()
            eventually(self._redis_answers, "Redis is back")
            return
        self.redis.stop(signal.SIGKILL)
        pause(self.rng.uniform(0, 2))
        self._start_redis()

    def restart_redis(self, pause):
        self.redis.stop()
        pause(self.rng.uniform(0, 2))
        self._start_redis()

    def _start_redis(self):
        self.redis.start()
        self._write_at_once()

    def _write_at_once(self):
        """Or a Redis that is killed may lose what it has said already: up to two seconds of it
        while the disk is busy."""
        self.redis.client.config_set("appendfsync", "always")

    def _redis_answers(self):
        try:
            return self.redis.client.ping()
        except OSError:
            return False
        except Exception:  # the client's own kinds: refused, loading
            return False

    def kill_subscribers(self, _):
        self.redis.drop_subscribers()

    def kill_connections(self, _):
        """Those of commands, the producers' too."""
        self.redis.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def stop_redis(self, pause):
        pid = self.redis_pid()
        os.kill(pid, signal.SIGSTOP)
        pause(self.rng.uniform(0.5, 8))
        os.kill(pid, signal.SIGCONT)

    def cut_wire(self, pause):
        self.proxy.cut()
        pause(self.rng.uniform(0.5, 8))
        self.proxy.heal()

    def promote_replica(self, _):
        """By order of a sentinel: the master lives, and takes what it is sent until it is told."""
        self.rng.choice(self.group.sentinels).fail_over()
        eventually(lambda: self.group.named_master() not in (None, self.redis), "the replica is master", 60)

    def kill_master(self, pause):
        """For so long that the replica is promoted; then it is back, and made a replica."""
        self.redis.stop(signal.SIGKILL)
        eventually(lambda: self.group.named_master() not in (None, self.redis), "the replica is master", 60)
        pause(self.rng.uniform(0, 2))
        self._start_redis()

    def kill_worker(self, _):
        os.kill(self.rng.choice(self.gateway.workers()), signal.SIGKILL)

    def _kill_gateway(self):
        """The parent: the kernel kills its workers."""
        workers = self.gateway.workers()
        self.gateway.process.kill()
        self.gateway.process.wait()
        self.gateway.process = None
        eventually(lambda: not any(map(processes.is_alive, workers)), "the workers are gone")
        # The first thread of a process may be gone while others, who hold its sockets, are on their way.
        eventually(lambda: is_free(self.gateway.port), "nobody listens any more")

    def kill_gateway(self, pause):
        self._kill_gateway()
        pause(self.rng.uniform(0, 1))
        self._follow_up()

    def kill_everything(self, pause):
        """Every process of ours; what Redis has written is what is left."""
        if self.embedded:
            os.kill(self.redis_pid(), signal.SIGKILL)
        else:
            self.redis.stop(signal.SIGKILL)
        self.redis.client.connection_pool.disconnect()
        self._kill_gateway()
        pause(self.rng.uniform(0, 1))
        if not self.embedded:
            self._start_redis()
        self._follow_up()

    def restart_gateway(self, pause):
        self.gateway.stop()
        pause(self.rng.uniform(0, 1))
        self._follow_up()

    def take_over(self, _):
        before = self.gateway
        self._follow_up("--takeover")
        before.wait_end()

    def _follow_up(self, *options):
        self.retired.append(self.gateway)
        self.gateway = self.servers.gateway(
            self.gateway.redis_url, *self.options, *options, workers=self.rng.randrange(1, 4),
            listen=f"127.0.0.1:{self.gateway.port}", data_dir=self.gateway.data_dir)

    def check(self):
        """Fails when a sanitizer or an assert spoke in any sluiced of this storm."""
        for gateway in (*self.retired, self.gateway):
            report = sanitizer_report(gateway.log())
            assert not report, report

    # The count

    def read_log(self):
        """What there was to get: all ids, and those of each kind of stream."""
        self.in_log = set()
        self.wanted = {client.kind.name: [] for client in self.clients}
        kinds = {client.kind.name: client.kind for client in self.clients}.values()
        entries = self.redis.client.xrange(LOG, f"({self.start}-0")
        for entry, fields in entries:
            event, event_id = json.loads(fields["e"]), int(entry.split("-")[0])
            self.in_log.add(event_id)
            for kind in kinds:
                if kind.matches(event):
                    self.wanted[kind.name].append(event_id)

    def settle(self, seconds=60):
        """The producers stop, all faults are over: waits until everybody has everything."""
        self.producer.stop()
        self.is_over.set()
        self._find_master()
        self.gateway.wait_status("/readyz", 200, seconds)
        self.read_log()

        def all_have_the_last():
            return all(client.has(self.wanted[client.kind.name][-1]) for client in self.clients
                       if self.wanted[client.kind.name])
        try:
            eventually(all_have_the_last, "everything has come", seconds)
        except DeadlinePassed:
            pass  # the count will show it
        for client in self.clients:
            client.stop()

    def rows(self):
        """A row for each kind and transport: the counts of its clients added up."""
        rows = {}
        for client in self.clients:
            row = rows.setdefault((client.kind.name, client.transport), {"clients": 0})
            row["clients"] += 1
            counts = client.compare(self.wanted[client.kind.name], self.in_log)
            for name, count in counts.items():
                row[name] = row.get(name, 0) + count
        return rows


COLUMNS = ["clients", "connections", "stalls", "events", "missing", "twice", "disorder", "foreign",
           "gaps", "rewound", "faults"]


def table(rows, columns=COLUMNS):
    """Markdown, with a line for all."""
    lines = ["| stream | transport | " + " | ".join(columns) + " |",
             "| --- | --- |" + " ---: |" * len(columns)]
    total = dict.fromkeys(columns, 0)
    for (name, transport), row in rows.items():
        lines.append(f"| {name} | {transport} | " + " | ".join(str(row[c]) for c in columns) + " |")
        for column in columns:
            total[column] += row[column]
    lines.append("| all | | " + " | ".join(f"**{total[c]}**" for c in columns) + " |")
    return "\n".join(lines), total
