"""One sluiced takes over from another: no connection is refused or reset, no event is lost, Redis continues."""

import os
import signal
import socket
import threading

import pytest

from harness import events, processes, programs
from harness.program import Program
from harness.streams import Collector
from harness.waiting import Deadline, eventually
from test_shutdown import private_redis

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"


class Visitors:
    """Clients that connect and disconnect all the time, in threads; every unexpected answer, and every refused or
    broken connection, is recorded as a fault."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.faults = []
        self._changed = threading.Condition()
        self._stopped = False
        visits = (self._short, self._short, self._kept, self._stream, self._stream,
                  self._websocket)
        self.counts = {visit.__name__: 0 for visit in visits}
        self._threads = [threading.Thread(target=self._loop, args=(visit,), daemon=True)
                         for visit in visits]
        for thread in self._threads:
            thread.start()

    def _loop(self, visit):
        while not self._stopped:
            try:
                visit()
            except Exception as fault:  # recorded for the test
                self.faults.append(f"{visit.__name__}: {fault!r}")
            with self._changed:
                self.counts[visit.__name__] += 1
                self._changed.notify_all()

    def _ask(self, connection, path, status=200):
        answer = connection.request("GET", path)
        assert answer.status == status, answer
        return answer

    def _short(self):
        with self.gateway.connect() as connection:
            self._ask(connection, "/healthz")

    def _kept(self):
        """Several requests on one connection, as long as the server keeps it alive."""
        with self.gateway.connect() as connection:
            for _ in range(5):
                if self._ask(connection, "/readyz").headers.get("connection") == "close":
                    break

    def _stream(self):
        with self.gateway.stream(FIREHOSE) as stream:
            stream.next()  # an event, or the disconnect of the server that drains

    def _websocket(self):
        with self.gateway.stream(FIREHOSE, "raw-websocket") as stream:
            stream.next()

    def wait_for_more(self, more=10):
        """Waits until each kind of visit was made this many more times."""
        with self._changed:
            goal = {name: count + more for name, count in self.counts.items()}
            deadline = Deadline(what="more visits")
            while any(self.counts[name] < goal[name] for name in goal):
                self._changed.wait(deadline.left())

    def stop(self):
        self._stopped = True
        for thread in self._threads:
            thread.join(Deadline().seconds)
        assert not self.faults, f"{len(self.faults)} of {self.counts}: {self.faults[:5]}"


class Chatter:
    """Publishes all the time, so that no stream waits for long."""

    def __init__(self, redis):
        self._stopped = threading.Event()

        def talk():
            number = 0
            while not self._stopped.wait(0.005):
                number += 1
                redis.publish(events.dump(events.post(number, "chatter")))
        self._thread = threading.Thread(target=talk, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()


def test_nobody_is_refused_or_reset(servers, redis):
    """A series of takeovers under load, with a different number of workers each time."""
    gateway = servers.gateway(redis)
    with Chatter(redis):
        visitors = Visitors(gateway)
        visitors.wait_for_more(1)
        for workers in (2, 2, 1, 3, 2):
            successor = servers.successor(gateway, workers=workers)
            visitors.wait_for_more()
            gateway.wait_end()
            visitors.wait_for_more()
            gateway = successor
        visitors.stop()
    gateway.stop()


def test_streams_are_disconnected_and_find_the_successor(servers, redis):
    gateway = servers.gateway(redis, workers=2)
    streams = [gateway.stream(FIREHOSE, transport) for transport in ("ndjson", "sse", "raw-websocket")]
    successor = servers.successor(gateway, workers=2)
    for stream in streams:
        last = stream.to_end()[-1]
        assert (last.type, last["code"]) == ("disconnect", "draining") and last["retry_ms"] > 0
    gateway.wait_end()
    with successor.stream(FIREHOSE) as stream:
        redis.publish(events.dump(events.post(1, "from the next")))
        assert stream.next()["id"] == "1"
    assert successor.pid != gateway.pid


def test_private_redis_goes_on(servers, cli_for):
    gateway = servers.gateway(None)
    redis = ["--redis", gateway.ready["redis"]]
    child = private_redis(gateway)
    cli_for(None).run(*redis, "user", "add", "ada")
    successor = servers.successor(gateway)
    gateway.wait_end()
    assert successor.ready["redis"] == gateway.ready["redis"]
    assert processes.is_alive(child)
    with successor.stream(FIREHOSE) as stream:
        post_id = cli_for(None).run(*redis, "post", "--user", "ada", "kept")
        assert stream.next()["id"] == post_id
    # It supervises it, too, and ends it.
    os.kill(child, signal.SIGKILL)
    successor.wait_status("/readyz", 503)
    successor.wait_status("/readyz", 200)
    third = servers.successor(successor)
    successor.wait_end()
    child = private_redis(third) or child
    cli_for(None).run(*redis, "post", "--user", "ada", "kept")
    third.stop()
    assert not os.path.exists(third.data_dir / "redis.sock")
    assert not os.path.exists(third.data_dir / "takeover.sock")


def test_who_waits_in_a_queue_is_served_by_the_successor(servers, redis):
    """Connections that the kernel has accepted, but no worker."""
    gateway = servers.gateway(redis, workers=2)
    for worker in gateway.workers():
        os.kill(worker, signal.SIGSTOP)
    knocking = [gateway.connect(shakes_hands=False) for _ in range(40)]
    for connection in knocking:
        connection.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
    successor = servers.successor(gateway, workers=1)
    for connection in knocking:
        assert connection.read_response().status == 200
    for worker in gateway.workers():
        os.kill(worker, signal.SIGCONT)
    gateway.wait_end()
    successor.stop()


def test_who_has_got_in_is_served_by_the_one_that_leaves(servers, redis):
    gateway = servers.gateway(redis, "--drain-timeout", "10m")
    silent = gateway.connect()  # a worker gets it after a second of silence
    eventually(lambda: gateway.metrics()["sluice_handshakes_pending"] >= 1, "it is in")
    half = gateway.connect()
    half.send(f"GET {FIREHOSE} HTTP/1.1\r\nHost: x\r\n".encode())
    eventually(lambda: gateway.metrics()["sluice_handshakes_pending"] >= 2, "both are in")
    servers.successor(gateway)
    assert silent.request("GET", "/readyz").status == 200
    half.send(f"Authorization: Bearer {gateway.token()}\r\n\r\n".encode())
    assert half.read_head().status == 200
    deadline, body = Deadline(what="the disconnect"), b""
    while chunk := half.read_chunk(deadline):
        body += chunk
    assert b'"draining"' in body
    for connection in (silent, half):
        connection.wait_closed()
        connection.close()
    gateway.wait_end()


def test_successor_that_fails_changes_nothing(servers, redis):
    gateway = servers.gateway(redis)
    stream = Collector(gateway.stream(FIREHOSE))
    with Chatter(redis):
        visitors = Visitors(gateway)
        visitors.wait_for_more(1)
        for how in (signal.SIGTERM, signal.SIGKILL):
            failing = servers.successor(gateway, "--redis", "unix:///nonexistent/redis.sock",
                                        start=False, workers=3).launch()
            eventually(lambda: "nonexistent" in failing.log(), "it waits for its Redis")
            visitors.wait_for_more()
            failing.process.send_signal(how)
            failing.process.wait(Deadline().seconds)
            failing.process = None
            os.close(failing.ready_fd)
            failing.ready_fd = None
        visitors.wait_for_more()
        visitors.stop()
    assert not stream.ended
    gateway.check()
    servers.successor(gateway)
    stream.wait_end()
    gateway.wait_end()


def test_predecessor_that_is_killed_leaves_everything(servers, cli_for):
    """While the successor is starting: it continues alone, and serves clients that connected meanwhile."""
    redis = servers.redis()
    gateway = servers.gateway(redis)
    with processes.stopped(redis.pids):
        successor = servers.successor(gateway, start=False).launch()
        eventually(lambda: "event=taking_over" in successor.log(), "it has the sockets")
        eventually(lambda: "event=worker_started" in successor.log(), "it gets ready")
        os.kill(gateway.process.pid, signal.SIGKILL)
        gateway.process.wait(Deadline().seconds)
        gateway.process = None
        knocking = gateway.connect(shakes_hands=False)
        knocking.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    successor.wait_ready()
    assert knocking.read_response().status == 200
    successor.stop()


def test_with_nobody_to_follow_it_just_starts(servers, redis):
    gateway = servers.gateway(redis, "--takeover")
    assert "event=nobody_to_take_over" in gateway.log()
    gateway.wait_status("/readyz", 200)
    assert (gateway.data_dir / "takeover.sock").stat().st_mode & 0o777 == 0o600


def refused(gateway, *options):
    """Returns the message of a sluiced on the same port that may not take over."""
    command = [programs.sluiced(), "--listen", f"127.0.0.1:{gateway.port}", "--data-dir",
               gateway.data_dir, "--redis", gateway.redis_url, "--jwt-secret-file",
               gateway.secret_file, *options]
    return Program(*command).ended(1)


def test_without_takeover_a_second_one_is_told_what_to_do(servers, redis):
    gateway = servers.gateway(redis)
    said = refused(gateway)
    assert f"port {gateway.port} of 127.0.0.1 is in use" in said
    assert f"process {gateway.pid}" in said and "--takeover" in said
    gateway.check()


def test_two_may_share_a_directory_that_holds_no_data(servers, redis):
    gateway = servers.gateway(redis)
    other = servers.gateway(redis, data_dir=gateway.data_dir)
    assert "event=no_takeover" in other.log() and str(gateway.pid) in other.log()
    other.wait_status("/readyz", 200)
    other.stop()
    servers.successor(gateway)  # which is run by the same user
    gateway.wait_end()


def test_takeover_of_another_port_is_refused(servers, redis):
    gateway = servers.gateway(redis)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    said = refused(gateway, "--takeover", "--listen", f"127.0.0.1:{port}")
    assert (f"--takeover: the running sluiced (pid {gateway.pid}) serves "
            f"127.0.0.1:{gateway.port}, not 127.0.0.1:{port}") in said
    gateway.check()
    assert servers.successor(gateway, "--listen", "127.0.0.1:0").port == gateway.port
    gateway.wait_end()


def test_service_manager_is_told(servers, redis):
    """systemd's protocol: which is the main process, and that it is ready; the one that leaves sends nothing, because
    the service continues."""
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(servers.folder / "notify"))
    manager.settimeout(Deadline().seconds)
    env = {"NOTIFY_SOCKET": servers.folder / "notify"}
    gateway = servers.gateway(redis, env=env)
    assert manager.recv(1000) == f"MAINPID={gateway.pid}\nREADY=1".encode()
    successor = servers.gateway(redis, "--takeover", env=env, data_dir=gateway.data_dir,
                                listen=f"127.0.0.1:{gateway.port}")
    assert manager.recv(1000) == f"MAINPID={successor.pid}\nREADY=1".encode()
    gateway.wait_end()
    successor.stop()
    assert manager.recv(1000) == b"STOPPING=1"
    manager.close()


def test_in_the_background_it_returns_when_it_serves(servers, redis):
    gateway = servers.gateway(redis, "--background", start=False).launch()
    assert gateway.process.wait(Deadline().seconds) == 0
    gateway.wait_ready()  # has been reported already
    assert gateway.pid != gateway.process.pid
    gateway.process = None
    gateway.wait_status("/readyz", 200)
    os.kill(gateway.pid, signal.SIGTERM)
    eventually(lambda: not processes.is_alive(gateway.pid), "it has ended")
    failing = servers.gateway(redis, "--background", "--tls-cert", "/nonexistent", start=False)
    failing.launch()
    assert failing.process.wait(Deadline().seconds) == 1
    failing.process = None


@pytest.mark.parametrize("broken", [b"", b"good day", b"ready"])
def test_what_else_is_said_on_the_socket_changes_nothing(servers, redis, broken):
    gateway = servers.gateway(redis)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.connect(str(gateway.data_dir / "takeover.sock"))
        if broken:
            stranger.send(broken)
            assert stranger.recv(1000) == b""
    gateway.check()
    servers.successor(gateway)
    gateway.wait_end()
