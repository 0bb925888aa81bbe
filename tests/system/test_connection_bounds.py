"""Connections without a stream: without a request yet, kept alive between two, and refused. Each kind has its own
limit; beyond it the connection that has waited longest is closed. All others are served."""

import contextlib
import resource

import pytest

from harness import events, processes
from harness.waiting import Deadline, eventually

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
CROWD = 300
BOUND = 10


class Scene:
    """A worker that may open a hundred more descriptors than it has, with a stream."""

    def __init__(self, servers, redis, *options):
        self.redis = redis
        self.gateway = servers.gateway(redis, *options)
        self.worker, = self.gateway.workers()
        self.stream = self.gateway.stream(FIREHOSE)
        self.files = self.count_files()
        limit = processes.open_files(self.worker) + 100
        resource.prlimit(self.worker, resource.RLIMIT_NOFILE, (limit, limit))
        self.accepted = self.gateway.metrics()["sluice_connections_accepted_total"]
        self.asked = 0

    def count_files(self):
        """Without those to Redis: connections to nodes of a cluster are opened when needed."""
        names = [client["name"] for client in self.redis.client.client_list()]
        return processes.open_files(self.worker) - sum(name.startswith("sluiced") for name in names)

    def wait_accepted(self, count):
        """Silent connections wait in the kernel for a second. A client that sends a request meanwhile counts, too, and
        may be the one that has waited longest."""
        def are_in():
            self.asked += 1
            with contextlib.suppress(ConnectionError):
                accepted = self.gateway.metrics()["sluice_connections_accepted_total"]
                return accepted - self.accepted >= count + self.asked
        eventually(are_in, "all are in")

    def check_others(self):
        for _ in range(20):
            assert self.gateway.get("/healthz").status == 200
        self.gateway.stream(FIREHOSE, "raw-websocket").close()
        self.redis.publish(events.dump(events.post(1, "still here")))
        assert self.stream.next()["id"] == "1"
        assert self.gateway.metrics()["sluice_accept_exhausted_total"] == 0

    def wait_files(self, more):
        eventually(lambda: self.count_files() <= self.files + more, "descriptors come back")


@pytest.mark.parametrize("says", ["nothing", "half"])
def test_connections_without_a_request(servers, redis, says):
    """For a TLS connection: without a complete handshake."""
    scene = Scene(servers, redis, "--max-pending-handshakes", BOUND, "--handshake-timeout-ms", 3000)
    gateway = scene.gateway
    crowd = [gateway.connect_plain() if says == "nothing" else gateway.connect_half()
             for _ in range(CROWD)]
    scene.wait_accepted(CROWD)
    metrics = gateway.metrics()
    assert metrics["sluice_handshakes_pending"] <= BOUND
    assert metrics["sluice_handshakes_dropped_total"] >= CROWD - BOUND
    scene.wait_files(BOUND)
    scene.check_others()
    scene.wait_files(0)  # when their time is over
    for connection in crowd:
        connection.wait_closed()


def test_handshakes_that_are_over_wait_for_a_request(servers, redis):
    """A TLS connection without a request yet counts like a plain one."""
    scene = Scene(servers, redis, "--max-pending-handshakes", BOUND, "--handshake-timeout-ms", 3000)
    crowd = [scene.gateway.connect() for _ in range(3 * BOUND)]
    scene.wait_accepted(3 * BOUND)
    assert scene.gateway.metrics()["sluice_handshakes_pending"] <= BOUND
    scene.check_others()
    scene.wait_files(0)  # when their time is over
    for connection in crowd:
        connection.wait_closed()


def test_refused_connections_linger_within_a_bound(servers, redis):
    """They do not close, although they were told the server's reason."""
    scene = Scene(servers, redis, "--max-lingering-connections", BOUND)
    gateway = scene.gateway
    crowd = []
    for _ in range(CROWD):
        connection = gateway.connect()
        connection.send(b"GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n")
        crowd.append(connection)
    for connection in crowd:
        assert connection.read_response().status == 400
    metrics = gateway.metrics()
    assert metrics["sluice_connections_lingering"] <= BOUND
    assert metrics["sluice_connections_lingering_dropped_total"] >= 1
    scene.wait_files(BOUND)
    scene.check_others()
    scene.wait_files(0)  # when their time is over
    for connection in crowd:
        connection.wait_closed()


def test_kept_connections_are_no_pending_ones(servers, redis):
    gateway = servers.gateway(redis, "--max-pending-handshakes", BOUND)
    kept = [gateway.connect() for _ in range(BOUND)]
    for _ in range(2):
        for connection in kept:
            assert connection.request("GET", "/healthz").status == 200
        kept += [gateway.connect() for _ in range(4)]
    for _ in range(2):
        for connection in kept:
            assert connection.request("GET", "/healthz").status == 200
    metrics = gateway.metrics()
    assert metrics["sluice_connections_idle"] == len(kept)
    assert metrics["sluice_handshakes_pending"] == metrics["sluice_handshakes_dropped_total"] == 0


def test_kept_connections_are_bounded(servers, redis):
    """Beyond the limit, the one that was used least recently is closed."""
    gateway = servers.gateway(redis, "--max-idle-connections", 5)
    kept = [gateway.connect() for _ in range(8)]
    for connection in (*kept[:5], kept[0], *kept[5:]):
        assert connection.request("GET", "/healthz").status == 200
    for connection in kept[1:4]:
        connection.wait_closed()
    for connection in (kept[0], *kept[4:]):
        assert connection.request("GET", "/healthz").status == 200
    metrics = dict(line.split(" ") for line in kept[0].request("GET", "/metrics").text.splitlines()
                   if line.startswith("sluice_connections_idle"))
    # While a request is served, its connection is not idle.
    assert metrics == {"sluice_connections_idle": "4", "sluice_connections_idle_dropped_total": "3"}


def test_kept_connection_is_closed_when_its_time_is_over(servers, redis):
    for timeout_ms in 300, 2000, 10000:  # a slow machine needs longer for the request itself
        gateway = servers.gateway(redis, "--handshake-timeout-ms", timeout_ms)
        with contextlib.suppress(ConnectionError), gateway.connect() as connection:
            answer = connection.request("GET", "/healthz")
            if answer.status == 200:
                assert connection.read_to_end(Deadline(what="its end")) == b"", "it was not asked anything"
                return
    pytest.fail("no request was in time")
