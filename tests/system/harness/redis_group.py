"""A real master, replica and sentinels that watch them, on ports of this machine."""

import signal
import subprocess

import redis

from .ports import steady_port
from .redis_server import RedisServer, redis_program
from .waiting import eventually

MASTER_NAME = "the.master"


class Sentinel:
    """A single one is its own majority. With a certificate clients connect to it over TLS; `client` never does."""

    def __init__(self, folder, master_port, down_after_ms, quorum, failover_timeout_ms, certificate=None):
        folder.mkdir(parents=True)
        self.port = steady_port()
        self.public_port = steady_port() if certificate else self.port
        tls = ["tls-replication yes", f"tls-port {self.public_port}", "tls-auth-clients no",
               f"tls-ca-cert-file {certificate.file}", f"tls-cert-file {certificate.file}",
               f"tls-key-file {certificate.key}"] if certificate else []
        self.config = folder / "sentinel.conf"
        self.config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {folder}\nlogfile {folder}/sentinel.log\n"
            f"sentinel monitor {MASTER_NAME} 127.0.0.1 {master_port} {quorum}\n"
            f"sentinel down-after-milliseconds {MASTER_NAME} {down_after_ms}\n"
            f"sentinel failover-timeout {MASTER_NAME} {failover_timeout_ms}\n" + "\n".join(tls) + "\n")
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

    def is_calm(self, others):
        """All servers are up, and no failover is in progress."""
        master = self.client.sentinel_master(MASTER_NAME)
        replicas = self.client.sentinel_slaves(MASTER_NAME)
        return master["flags"] == "master" and master["num-other-sentinels"] == others and \
            [replica["flags"] for replica in replicas] == ["slave"]

    def fail_over(self):
        """Makes the replica the master, even if the master is well."""
        def is_ordered():
            try:
                return self.client.execute_command("SENTINEL", "FAILOVER", MASTER_NAME)
            except redis.ResponseError as refused:  # it has not checked the replica recently
                if "NOGOODSLAVE" not in str(refused):
                    raise
        eventually(is_ordered, "the sentinel has a replica to promote", 60)


class RedisGroup:
    """`master` and `replica` are those at the beginning. A slow master is not replaced, unless the test sets how long
    it may be silent."""

    def __init__(self, folder, down_after_ms=600000, sentinels=1, failover_timeout_ms=60000, append_only=False,
                 kind=None):
        self.master, self.replica = (RedisServer(folder / name, append_only, steady_port(), kind=kind)
                                     for name in "ab")
        certificate = self.master.certificate
        if certificate:
            self.replica.serve_tls(certificate)
        self.master.start()
        self.replica.start()
        for server in (self.master, self.replica) if certificate else ():
            server.client.config_set("tls-replication", "yes")
        self.replica.client.replicaof("127.0.0.1", self.master.public_port)
        eventually(lambda: self.replica.client.info("replication")["master_link_status"] == "up",
                   "the replica has its data")
        self.sentinels = [Sentinel(folder / f"s{n}", self.master.public_port, down_after_ms, sentinels // 2 + 1,
                                   failover_timeout_ms, certificate).start() for n in range(sentinels)]
        self.sentinel = self.sentinels[0]
        for sentinel in self.sentinels:
            eventually(sentinel.knows_replica, "the sentinel knows the replica", 60)
        # the first sentinel does not exist: the others are asked
        ports = [steady_port(), *(sentinel.public_port for sentinel in self.sentinels)]
        self.url = f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in ports)}/{MASTER_NAME}"
        if certificate:
            self.url = f"{self.url.replace('redis', 'rediss', 1)}?ssl-ca={certificate.file}"

    def forget_master(self):
        """From now on the sentinel knows no master, and corrects nothing."""
        self.sentinel.client.execute_command("SENTINEL", "REMOVE", MASTER_NAME)

    def name_master(self, server):
        """From now on this server is the master."""
        self.sentinel.client.execute_command("SENTINEL", "MONITOR", MASTER_NAME, "127.0.0.1", server.public_port, 1)

    def kill_master(self):
        """From now on silence counts as failure, for the sentinel, too."""
        self.master.stop(signal.SIGKILL)
        self.sentinel.client.execute_command("SENTINEL", "SET", MASTER_NAME, "down-after-milliseconds", 500)

    def wait_failover(self):
        """Waits until the sentinel has made the replica the master."""
        eventually(lambda: self.sentinel.master_port() == self.replica.public_port, "the replica was promoted", 60)

    def named_master(self):
        """The server that all sentinels name; None: they disagree."""
        ports = {sentinel.master_port() for sentinel in self.sentinels}
        return next((server for server in (self.master, self.replica) if ports == {server.public_port}), None)

    def wait_whole(self):
        """Waits until all agree that one is the master and the other its replica, with its data; returns the master.
        When a master comes back after a failover, its sentinels take ten seconds."""
        def whole():
            try:
                master = self.named_master()
                if not master or not all(s.is_calm(len(self.sentinels) - 1) for s in self.sentinels):
                    return None
                other = self.replica if master is self.master else self.master
                there, here = other.client.info("replication"), master.client.info("replication")
            except redis.RedisError:
                return None
            follows = there["role"] == "slave" and there["master_port"] == master.public_port and \
                there["master_link_status"] == "up"
            return master if here["role"] == "master" and follows else None
        return eventually(whole, "the group is whole", 120)

    def end(self):
        for sentinel in self.sentinels:
            sentinel.stop()
        self.replica.end()
        self.master.end()
