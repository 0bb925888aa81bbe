"""A real redis-server for a test: a unix socket in a fresh folder; TCP only on demand."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

import redis

from .ports import steady_port
from .tls import Certificate
from .waiting import Deadline, eventually

# SLUICE_TEST_REDIS: what servers.redis() starts, unless the test says otherwise. tls: sluiced and sluice connect with
# rediss://; the test itself always uses the unix socket. cluster: a ClusteredRedis.
KIND = os.environ.get("SLUICE_TEST_REDIS", "unix")


def shard_of(number):
    """Returns the shard of the user, post or event with this id."""
    return int(number) // 64 % 64


def redis_program():
    """SLUICE_TEST_REDIS_SERVER: another Redis than the installed one, or a Valkey."""
    return os.environ.get("SLUICE_TEST_REDIS_SERVER") or shutil.which("redis-server") or "/usr/bin/redis-server"


def end_server(process, how):
    """Also waits for its end. A server that cannot save ignores SIGTERM: it is killed, and the test fails."""
    process.send_signal(how)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError("redis-server did not end when it was told to") from None


def tls_options(certificate, port, *more):
    """Options of a redis-server with this certificate at this port; `more`: further uses of TLS."""
    file, key = map(str, (certificate.file, certificate.key))
    return ["--tls-port", str(port), "--tls-auth-clients", "no", "--tls-ca-cert-file", file, "--tls-cert-file", file,
            "--tls-key-file", key, *(word for option in more for word in (option, "yes"))]


class Database:
    """The contents of a Redis, or of a cluster, accessed directly by `client`."""

    is_clustered, publish_command = False, "PUBLISH"

    def key(self, owner, name):
        """The key of data that belong to the user or post with this id."""
        return f"sluice:{{{shard_of(owner)}}}:{name}"

    def logs(self):
        """The keys of the shards' logs."""
        return [f"sluice:{{{shard}}}:log" for shard in range(self.shards)]

    def entries(self, owner=None):
        """(id, fields) of every event of all shards, or of that of `owner`, in order of their ids."""
        logs = self.logs() if owner is None else [self.key(owner, "log")]
        found = [entry for log in logs for entry in self.client.xrange(log)]
        return sorted(((entry.split("-")[0], fields) for entry, fields in found),
                      key=lambda entry: int(entry[0]))

    def log(self, owner=None):
        """The same, with the events' JSON; without events of users, which clients only get on request."""
        return [event for event in self.log_with_users(owner) if event["type"] != "user"]

    def log_with_users(self, owner=None):
        return [json.loads(fields["e"]) for _, fields in self.entries(owner)]

    def publish(self, message, shard=0):
        """Publishes like a producer in any language; returns the number of receivers."""
        return self.client.execute_command(self.publish_command, self.channel(shard), message)

    def publish_many(self, messages, shard=0):
        """Publishes all at once, in this order."""
        pipe = self.client.pipeline(transaction=False)
        for message in messages:
            pipe.execute_command(self.publish_command, self.channel(shard), message)
        pipe.execute()

    def tasks_left(self):
        return sum(self.client.xlen(f"sluice:{{{shard}}}:tasks") for shard in range(self.shards))

    def wait_tasks(self):
        eventually(lambda: not self.tasks_left(), "every task is done", 90)

    @staticmethod
    def channel(shard):
        return f"sluice:{{{shard}}}:live"

    def drop_subscribers(self):
        """Closes every subscriber's connection, as a network failure would."""
        self.client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")

    def drop_clients(self, name):
        """Closes the connections with this name."""
        for master in self.masters:
            for client in master.client_list():
                if client["name"] == name:
                    master.client_kill_filter(_id=client["id"])


class RedisServer(Database):
    def __init__(self, folder, append_only=False, port=0, bind="127.0.0.1", env=None, kind=None):
        """`kind`: "unix" or "tls", for `url`."""
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket = self.folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self.certificate, self.tls_port = None, 0
        self.append_only = append_only
        self.env = env or {}
        self.port, self.bind = port, bind  # port 0: none
        if (kind or KIND) == "tls":
            self.serve_tls(Certificate(self.folder))
        self.shards = 1  # of the database that is or will be in it
        self.process = None
        self.client = redis.Redis(unix_socket_path=str(self.socket), decode_responses=True)

    def serve_tls(self, certificate):
        """From its next start on it serves TLS, and `url` uses only that."""
        self.certificate, self.tls_port = certificate, steady_port()
        self.url = f"rediss://127.0.0.1:{self.tls_port}/0?ssl-ca={certificate.file}"

    def url_over_tcp(self, login=""):
        """Without TLS. `login`: USER:PASSWORD@, for another user than the default one."""
        if not self.port:
            self.port = steady_port()
            self.client.config_set("port", self.port)
        return f"redis://{login}127.0.0.1:{self.port}"

    @property
    def public_port(self):
        """The port for others, with TLS if enabled."""
        return self.tls_port or self.port

    def show_certificate(self):
        """New connections get the certificate that is in the files now."""
        self.client.execute_command("CONFIG", "SET", "tls-cert-file", str(self.certificate.file),
                                    "tls-key-file", str(self.certificate.key))

    def start(self):
        """Starts it, or starts it again on the same socket and data; returns when it answers."""
        log = self.folder / "redis.log"  # with a pipe that nobody reads it would block some day
        with open(log, "ab") as out:
            said_before = out.tell()
            self.process = subprocess.Popen(
                [redis_program(), "--port", str(self.port), "--bind", self.bind,
                 "--unixsocket", str(self.socket), "--dir", str(self.folder), "--save", "",
                 "--appendonly", "yes" if self.append_only else "no", "--daemonize", "no",
                 "--repl-diskless-sync-delay", "0",
                 *(tls_options(self.certificate, self.tls_port) if self.certificate else [])],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                env={**os.environ, **self.env})

        def is_ready():
            ended = self.process.poll() is not None
            said = log.read_bytes()[said_before:]
            assert not ended, f"redis-server ended: {said.decode(errors='replace')}"
            return b"eady to accept connections" in said
        eventually(is_ready, "redis-server accepts connections")
        return self

    def stop(self, how=signal.SIGTERM):
        if self.process:
            process, self.process = self.process, None
            end_server(process, how)
            self.client.connection_pool.disconnect()

    def end(self):
        """The test is over, and its data are not needed any more."""
        self.stop(signal.SIGKILL)

    def master_of(self, shard):
        """The client of the node that has the shard."""
        return self.client

    @property
    def masters(self):
        """The clients of each."""
        return [self.client]

    def shards_by_clock(self):
        """Shards that share a clock."""
        return [list(range(self.shards))]

    @property
    def pids(self):
        return [self.process.pid]

    @property
    def folders(self):
        """The folders of its files."""
        return [self.folder]

    @contextlib.contextmanager
    def listening(self):
        """Yields next_message(): what is published in any shard, one after the other."""
        channel = self.client.pubsub()
        channel.psubscribe("sluice:{*}:live")

        def next_message(kind="pmessage"):
            deadline, message = Deadline(what="a published message"), None
            while not message or message["type"] != kind:
                message = channel.get_message(timeout=deadline.left())
            return message["data"]
        next_message("psubscribe")
        yield next_message
        channel.close()
