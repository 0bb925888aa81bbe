"""A storm: producers, clients that connect, disconnect and stall, and faults of every kind; then the comparison.

Each client records what it receives over all its connections, resuming with its cursor. In the end that is compared
with the log: what is missing without a gap, what came twice, what is out of order. What happens is determined by a
seed; when it happens depends on the machine, which does not affect the comparison."""

import json
import math
import os
import random
import signal
import threading
import time
import warnings

from . import picks, processes, rising, zstd
from .cli import Cli
from .followers import Tail, kinds_of_streams
from .gateway import sanitizer_report
from .library import PROFILE_MAX, Library, ask
from .memcached import Memcached
from .ports import is_free, steady_port
from .producers import PEOPLE, WORDS, Outsider, Producer
from .proxy import Proxy
from .recounted import client_of
from .redis_group import RedisGroup
from .redis_server import RedisServer, shard_of
from .revoked import Revocations
from .waiting import DeadlinePassed, eventually
from .wall_clock import WallClock

WRITERS = 4  # through the API
RECOVERY_TIMEOUT_S = 0.5  # for one request, which is then repeated
CLOCK_STEPS_S = (-600, -20, 20, 600)

# What a storm may have in addition to Redis, gateway and clients: clocks that are set; posts that move to an archive,
# which becomes unavailable; a cache that comes and goes; events published without the log; connections to Redis that
# are reset; and clients whose tokens are revoked.
EXTRAS = ("clocks", "archive", "cache", "outsiders", "resets", "revocations")


class Storm:
    """The servers, the clients, and the faults. `servers` is conftest's. `sentinel`: with a master, a replica and three
    sentinels; `redis` is the current master. `extras` of EXTRAS, and several shards, are only possible with a single
    Redis behind a proxy. For clusters see cluster_storm.py."""

    least_workers = 1

    def __init__(self, servers, seed, embedded=False, workers=2, options=(), sentinel=False, shards=1,
                 extras=()):
        self.servers, self.rng, self.embedded = servers, random.Random(seed), embedded
        self.shards, self.extras = shards, extras
        assert not (embedded or sentinel) or (shards == 1 and not extras)
        self.options = ["--keepalive-ms", 500, "--max-owed-bytes", "64K", "--drain-timeout", "2s",
                        *options]
        self.due_steps = {}  # by clock
        self.redis_clock = self.gateway_clock = self.library = self.cache = self.outsider = self.revocations = None
        self.done = {}  # number of faults by name
        self.history = []  # (begin, end, name) of each fault
        self.is_over = threading.Event()  # no more events: stalled clients continue
        self.retired = []
        self.group = self.proxy = None
        self._start_servers(sentinel, workers=workers, listen=f"127.0.0.1:{steady_port()}")
        self.cli = Cli(self.group or self.redis)
        self.people = {f"u{n}": self.cli.run("user", "add", f"u{n}") for n in range(PEOPLE)}
        for n in range(1, 5):
            self.cli.run("follow", "u0", f"u{n}")
        self.start = int(self.cli.run("post", "--user", "u0", "the beginning"))
        self.producer = Producer(self.cli, random.Random(self.rng.random()))
        self.dictionary = self._add_dictionary(40961, workers)
        self.clients = []
        self.said = {}  # the JSON of each event by id and requested members, as received first
        if "archive" in extras:
            self._open_library()
        if "revocations" in extras:
            self.revocations = Revocations(self)

    def _add_dictionary(self, number, workers):
        """(id, bytes), which compressed streams may request."""
        draw = random.Random(number)
        texts = [" ".join(draw.choices(WORDS, k=9)) for _ in range(400)]
        data = zstd.train(number, texts)
        zstd.add_dictionary(self.redis, number, data)
        eventually(lambda: self.gateway.metrics()["sluice_dictionaries"] == workers, "all workers have it")
        return number, data

    def _start_servers(self, sentinel, **more):
        """`redis`, or `group`, and `gateway`."""
        if self.embedded:
            self.gateway = self.servers.gateway(None, *self.options, **more)
            self.redis = RedisServer(self.gateway.data_dir)  # started by sluiced
        elif sentinel:
            self.group = RedisGroup(self.servers.folder / "group", down_after_ms=1500, sentinels=3,
                                    failover_timeout_ms=10000, append_only=True)
            self.servers.redis_servers.append(self.group)
            for self.redis in (self.group.replica, self.group.master):
                self._write_at_once()
            self.gateway = self.servers.gateway(self.group.url, *self.options, **more)
        else:
            self._start_behind_proxy(**more)

    def _start_behind_proxy(self, **more):
        if "clocks" in self.extras:
            self.redis_clock = WallClock(self.servers.folder / "redis.clock")
            self.gateway_clock = WallClock(self.servers.folder / "gateway.clock")
        self.redis = self.servers.redis(self.shards, append_only=True,
                                        env=self.redis_clock and self.redis_clock.environment)
        self._write_at_once()
        self.proxy = Proxy(self.redis.socket)
        self._use_archive_and_cache()
        if self.shards > 1 or "archive" in self.extras:
            self.options += ["--run-tasks", "on"]
        self.gateway = self._start_gateway(f"redis://127.0.0.1:{self.proxy.port}", *self.options, **more)
        self.outsider = Outsider(self.redis) if "outsiders" in self.extras else None

    def _start_gateway(self, *arguments, **more):
        env = self.gateway_clock.environment if self.gateway_clock else None
        return self.servers.gateway(*arguments, env=env, **more)

    def _use_archive_and_cache(self):
        if "archive" in self.extras:
            self.archive_file = self.servers.folder / "archive.db"
            self.options += ["--archive", f"sqlite:{self.archive_file}"]
        if "cache" in self.extras:
            folder = self.servers.folder / "cache"
            folder.mkdir()
            self.cache = Memcached(folder).start()
            self.servers.programs.append(self.cache)
            self.options += ["--cache", self.cache.url]

    def _open_library(self):
        self.cli.run("config", "set", "profile-max", PROFILE_MAX)
        self.cli.run("config", "set", "archive", 1)
        self.cli.environment["SLUICE_ARCHIVE"] = f"sqlite:{self.archive_file}"
        users = [self.cli.run("user", "add", f"w{n}") for n in range(WRITERS)]
        self.library = Library(self, users, self.archive_file)

    def add_clients(self, per_kind, calm=1, names=None):
        """Adds this many of each kind (of those in `names`), with alternating transports; `calm` ones neither leave nor
        stall. Also a `sluice tail` where it can follow the stream and there is no certificate to verify."""
        for turn, kind in enumerate(kinds_of_streams(self.people)):  # each begins with other transports
            if names is not None and kind.name not in names:
                continue
            for number in range(per_kind):
                transport = kind.transports[(2 * turn + number) % len(kind.transports)]
                self.clients.append(client_of(kind)(self, kind, transport, self.rng.random(), number < calm))
            if kind.tail and not self.gateway.tls:  # it trusts only the system's authorities
                self.clients.append(Tail(self, kind))

    # Faults

    def faults(self):
        every = [self.kill_redis, self.kill_subscribers, self.kill_connections, self.stop_redis,
                 self.kill_worker, self.kill_gateway, self.kill_everything, self.take_over,
                 self.restart_gateway]
        if self.proxy:
            every += [self.restart_redis, self.cut_wire]
        if self.redis_clock:
            every += [self.step_redis_clock, self.step_gateway_clock]
        if self.library:
            every.append(self.take_archive)
        if self.cache:
            every += [self.kill_cache, self.stall_cache]
        if self.outsider:
            every += [self.publish_past_the_log, self.publish_ahead]
        if "resets" in self.extras:
            every.append(self.reset_wire)
        if self.group:
            every += [self.restart_redis, self.promote_replica, self.kill_master]
        return every

    def inflict(self, fault, pause):
        """`pause(seconds)` waits while something stays broken."""
        self.done[fault.__name__] = self.done.get(fault.__name__, 0) + 1
        self._find_master()
        began = time.time()
        fault(pause)
        self.history.append((began, time.time(), fault.__name__))
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
        """Otherwise a killed Redis may lose what it has acknowledged: up to two seconds of it while the disk is busy.
        """
        self.redis.client.config_set("appendfsync", "always")

    def _redis_answers(self):
        try:
            return self.redis.client.ping()
        except OSError:
            return False
        except Exception:  # the client's own exceptions: refused, loading
            return False

    def kill_subscribers(self, _):
        self.redis.drop_subscribers()

    def kill_connections(self, _):
        """Those for commands, including the producers'."""
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

    def reset_wire(self, pause):
        """While requests wait for an answer."""
        self.proxy.cut()
        pause(0.2)
        self.proxy.reset()

    def _step(self, clock, pause):
        due = self.due_steps.setdefault(clock, []) or self.rng.sample(CLOCK_STEPS_S, len(CLOCK_STEPS_S))
        clock.set(due.pop())
        self.due_steps[clock] = due
        pause(3)
        clock.set(0)

    def step_redis_clock(self, pause):
        self._step(self.redis_clock, pause)

    def step_gateway_clock(self, pause):
        self._step(self.gateway_clock, pause)

    def take_archive(self, pause):
        pids = processes.descendants(self.gateway.pid)
        self.library.take_archive(lambda: pause(self.rng.uniform(1, 4)), pids)

    def kill_cache(self, pause):
        self.cache.stop()
        pause(self.rng.uniform(0, 2))
        self.cache.start()

    def stall_cache(self, pause):
        self.cache.stall()
        pause(self.rng.uniform(0, 2))
        self.cache.go_on()

    def publish_past_the_log(self, _):
        for _ in range(10):
            self.outsider.publish()

    def publish_ahead(self, _):
        """Like a producer whose clock is an hour ahead."""
        self.outsider.publish(3600)

    def promote_replica(self, _):
        """By order of a sentinel: the old master keeps running, and accepts writes until it is told. On a busy machine
        the sentinel may give the order up after `failover_timeout_ms`; then another one is given it."""
        def is_promoted():
            return self.group.named_master() not in (None, self.redis)
        for _ in range(2):
            self.rng.choice(self.group.sentinels).fail_over()
            try:
                return eventually(is_promoted, "the replica is master", 20)
            except DeadlinePassed:
                continue
        eventually(is_promoted, "the replica is master", 20)

    def kill_master(self, pause):
        """Long enough that the replica is promoted; then it is back, and becomes a replica."""
        self.redis.stop(signal.SIGKILL)
        eventually(lambda: self.group.named_master() not in (None, self.redis), "the replica is master", 60)
        pause(self.rng.uniform(0, 2))
        self._start_redis()

    def kill_worker(self, _):
        gateway, worker = self.gateway, self.rng.choice(self.gateway.workers())
        os.kill(worker, signal.SIGKILL)
        # A server that is told to end meanwhile reports by its exit status that a worker died.
        eventually(lambda: worker == gateway.pid or worker not in processes.children(gateway.pid), "its parent knows")

    def _kill_gateway(self):
        """Kills the parent: the kernel kills its workers."""
        workers = self.gateway.workers()
        self.gateway.process.kill()
        self.gateway.process.wait()
        self.gateway.process = None
        eventually(lambda: not any(map(processes.is_alive, workers)), "the workers are gone")
        # The first thread of a process may have ended while others, which hold its sockets, are still ending.
        eventually(lambda: is_free(self.gateway.port), "nobody listens any more")

    def kill_gateway(self, pause):
        self._kill_gateway()
        pause(self.rng.uniform(0, 1))
        self._follow_up()

    def kill_everything(self, pause):
        """Kills all our processes; only what Redis has written remains."""
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
        self.gateway = self._start_gateway(
            self.gateway.redis_url, *self.options, *options, workers=self.rng.randrange(self.least_workers, 4),
            listen=f"127.0.0.1:{self.gateway.port}", data_dir=self.gateway.data_dir)

    def check(self):
        """Fails if a sanitizer or an assertion reported an error in any sluiced of this storm."""
        for gateway in (*self.retired, self.gateway):
            report = sanitizer_report(gateway.log())
            assert not report, report

    def await_recovery(self, seconds=10):
        """After a fault: returns how many seconds it takes until the API writes and reads again and all calm clients
        received what it wrote; infinite: not in time."""
        try:
            return self._await_recovery(seconds)
        except DeadlinePassed:
            return math.inf

    def _await_recovery(self, seconds):
        began = time.monotonic()
        calm = [client for client in self.clients if client.is_calm and client.kind.name == "firehose" and
                client.transport != "sluice tail"]

        def post(user):
            status, answer = ask(self.gateway, "POST", "/v1/posts", {"text": "after the fault"},
                                 RECOVERY_TIMEOUT_S, sub=user)
            return status == 201 and answer["id"]
        for user in self.witnesses():
            posted = eventually(lambda: post(user), "the API writes", seconds)
            eventually(lambda: ask(self.gateway, "GET", f"/v1/posts/{posted}", None, RECOVERY_TIMEOUT_S,
                                   sub=user)[0] == 200, "the API reads", seconds)
            eventually(lambda: all(client.has(int(posted)) for client in calm), "it was streamed", seconds)
        return time.monotonic() - began

    def witnesses(self):
        """Users whose posts show that everything works."""
        return [self.people["u0"]]

    # Counting

    def read_log(self):
        """Reads all ids that could be received, and those of each kind of stream."""
        self.in_log, self.posts = set(), {}
        self.deletes = {}  # by the number of the post
        self.wanted = {client.kind.name: [] for client in self.clients}
        self.rules = {}  # of events: the names of the rules that match them, of all kinds together
        rules = next((client.kind.rules for client in self.clients if client.kind.rules), ())
        said = []  # of all posts: the tags
        kinds = {client.kind.name: client.kind for client in self.clients}.values()
        for entry, fields in self.redis.entries():
            event, event_id = json.loads(fields["e"]), int(entry)
            if event["type"] == "post":
                tags = {word for word in event["post"]["text"].split() if word.startswith("#")}
                said.append((event_id, event["post"]["user"]["id"], tags))
            if event_id <= self.start:
                continue
            self.in_log.add(event_id)
            if event["type"] == "post":
                self.posts[event_id] = picks.post_of({**event, "id": event_id})
            elif event["type"] == "delete":
                self.deletes[int(event["post"]["id"])] = event_id
            for kind in kinds:
                if kind.matches(event):
                    self.wanted[kind.name].append(event_id)
            if event["type"] in ("post", "delete"):
                self.rules[event_id] = [name for name, test in rules if test(event)]
        self.rising = rising.Recount(said)

    def settle(self, seconds=60):
        """The producers stop, all faults are over: waits until all clients have everything."""
        if self.revocations:
            self.revocations.stop()
        self.producer.stop()
        if self.library:
            self.library.stop()
        self.is_over.set()
        self._find_master()
        self.gateway.wait_status("/readyz", 200, seconds)
        self.read_log()

        last = {name: {shard_of(event_id): event_id for event_id in wanted}.values()
                for name, wanted in self.wanted.items()}

        def all_have_the_last():
            return all(client.has(event_id) for client in self.clients for event_id in last[client.kind.name])
        try:
            eventually(all_have_the_last, "everything has come", seconds)
        except DeadlinePassed:  # the comparison will show it; clients that wait at the end for nothing are told here
            late = [f"{client.kind.name} by {client.transport}" for client in self.clients
                    if not all(client.has(event_id) for event_id in last[client.kind.name])]
            warnings.warn(f"the last events have not come within {seconds} s: {late}")
        for client in self.clients:
            client.stop()

    def rows(self):
        """Returns a row for each kind and transport: the sums of its clients."""
        rows = {}
        for client in self.clients:
            row = rows.setdefault((client.kind.name, client.transport), {"clients": 0})
            row["clients"] += 1
            counts = client.compare(self.wanted[client.kind.name], self.in_log,
                                    self.outsider.ids if self.outsider else frozenset())
            for name, count in counts.items():
                row[name] = row.get(name, 0) + count
        return rows


COLUMNS = ["clients", "connections", "stalls", "events", "missing", "twice", "disorder", "inversions",
           "foreign", "gaps", "rewound", "faults"]


def table(rows, columns=COLUMNS):
    """Markdown, with a line for the total."""
    lines = ["| stream | transport | " + " | ".join(columns) + " |",
             "| --- | --- |" + " ---: |" * len(columns)]
    total = dict.fromkeys(columns, 0)
    for (name, transport), row in rows.items():
        lines.append(f"| {name} | {transport} | " + " | ".join(str(row[c]) for c in columns) + " |")
        for column in columns:
            total[column] += row[column]
    lines.append("| all | | " + " | ".join(f"**{total[c]}**" for c in columns) + " |")
    return "\n".join(lines), total
