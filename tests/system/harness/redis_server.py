"""A real redis-server of the test's own: a unix socket in a fresh folder; TCP only on demand."""

import json
import pathlib
import shutil
import signal
import subprocess

import redis

from .waiting import eventually


def redis_program():
    return shutil.which("redis-server") or "/usr/bin/redis-server"


class RedisServer:
    def __init__(self, folder, append_only=False, port=0):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket = self.folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self.append_only = append_only
        self.port = port  # 0: none
        self.process = None
        self.client = redis.Redis(unix_socket_path=str(self.socket), decode_responses=True)

    def start(self):
        """Starts it, or starts it again on the same socket and data; returns when it answers."""
        log = self.folder / "redis.log"  # a pipe that nobody reads would stop it one day
        with open(log, "ab") as out:
            said_before = out.tell()
            self.process = subprocess.Popen(
                [redis_program(), "--port", str(self.port), "--bind", "127.0.0.1",
                 "--unixsocket", str(self.socket), "--dir", str(self.folder), "--save", "",
                 "--appendonly", "yes" if self.append_only else "no", "--daemonize", "no",
                 "--repl-diskless-sync-delay", "0"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

        def is_ready():
            ended = self.process.poll() is not None
            said = log.read_bytes()[said_before:]
            assert not ended, f"redis-server ended: {said.decode(errors='replace')}"
            return b"eady to accept connections" in said
        eventually(is_ready, "redis-server accepts connections")
        return self

    def stop(self, how=signal.SIGTERM):
        if self.process:
            self.process.send_signal(how)
            self.process.wait(20)
            self.process = None
            self.client.connection_pool.disconnect()

    def log(self):
        """Every event of the database, of all shards, in the order of their ids."""
        shards = int(self.client.hget("sluice:{0}:meta", "shards") or 1)
        entries = [entry for shard in range(shards)
                   for entry in self.client.xrange(f"sluice:{{{shard}}}:log")]
        return [json.loads(fields["e"])
                for _, fields in sorted(entries, key=lambda entry: int(entry[0].split("-")[0]))]

    def publish(self, message, shard=0):
        """Plain PUBLISH, as a producer in any language does; returns the number of receivers."""
        return self.client.publish(f"sluice:{{{shard}}}:live", message)

    def drop_subscribers(self):
        """Cuts every subscriber's connection, as a network failure would."""
        self.client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
