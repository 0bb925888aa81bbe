"""A master, a replica and a sentinel that watches them: real ones, on ports of this machine."""

import socket
import subprocess

import redis

from .redis_server import RedisServer, redis_program
from .waiting import eventually

MASTER_NAME = "the.master"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Sentinel:
    """One is enough: it is its own majority."""

    def __init__(self, folder, master_port, down_after_ms):
        folder.mkdir(parents=True)
        self.port = free_port()
        self.config = folder / "sentinel.conf"
        self.config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {folder}\nlogfile {folder}/sentinel.log\n"
            f"sentinel monitor {MASTER_NAME} 127.0.0.1 {master_port} 1\n"
            f"sentinel down-after-milliseconds {MASTER_NAME} {down_after_ms}\n"
            f"sentinel failover-timeout {MASTER_NAME} 60000\n")
        self.client = redis.Redis(port=self.port, decode_responses=True)
        self.process = None

    def start(self):
        self.process = subprocess.Popen([redis_program(), str(self.config), "--sentinel"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self._answers, "the sentinel answers")
        return self

    def _answers(self):
        try:
            return self.client.ping()
        except redis.ConnectionError:
            return False

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait(20)
            self.process = None
            self.client.connection_pool.disconnect()

    def master_port(self):
        return int(self.client.sentinel_get_master_addr_by_name(MASTER_NAME)[1])

    def knows_replica(self):
        return self.client.sentinel_master(MASTER_NAME)["num-slaves"] == 1


class RedisGroup:
    def __init__(self, folder, down_after_ms=500):
        self.master = RedisServer(folder / "a", port=free_port()).start()
        self.replica = RedisServer(folder / "b", port=free_port()).start()
        self.replica.client.replicaof("127.0.0.1", self.master.port)
        eventually(lambda: self.replica.client.info("replication")["master_link_status"] == "up",
                   "the replica has its data")
        self.sentinel = Sentinel(folder / "s", self.master.port, down_after_ms).start()
        eventually(self.sentinel.knows_replica, "the sentinel knows the replica", 60)
        # the first sentinel is not there: the others are asked
        self.url = f"redis+sentinel://127.0.0.1:{free_port()},127.0.0.1:{self.sentinel.port}/{MASTER_NAME}"

    def forget_master(self):
        """From now on the sentinel knows nobody, and puts nothing right."""
        self.sentinel.client.execute_command("SENTINEL", "REMOVE", MASTER_NAME)

    def name_master(self, server):
        """This server is the master from now on."""
        self.sentinel.client.execute_command("SENTINEL", "MONITOR", MASTER_NAME, "127.0.0.1", server.port, 1)

    def wait_failover(self):
        """Until the sentinel has made the replica the master."""
        eventually(lambda: self.sentinel.master_port() == self.replica.port, "the replica was promoted", 60)

    def stop(self):
        self.sentinel.stop()
        self.replica.stop()
        self.master.stop()
