"""Shutting down: SIGTERM, disconnects, the private Redis, and killed processes."""

import os
import re
import signal

import pytest

from harness import events, processes
from harness.streams import Collector, Refused
from harness.waiting import eventually

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
TRANSPORTS = ["ndjson", "delimited", "sse", "websocket", "raw-websocket"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_clients_are_told_and_the_exit_is_clean(servers, redis, how):
    gateway = servers.gateway(redis, workers=2)
    streams = {transport: gateway.stream(FIREHOSE, transport) for transport in TRANSPORTS}
    redis.publish(events.dump(events.post(1, "the last one")))
    readers = {transport: Collector(stream) for transport, stream in streams.items()}
    for reader in readers.values():
        reader.wait_id(1)  # whether a worker notices Redis or the signal first is not defined
    gateway.begin_stop(how)
    for transport, reader in readers.items():
        first, last = reader.wait_end()  # the chunked body also ends properly
        assert first["id"] == "1"
        assert (last.type, last["code"]) == ("disconnect", "draining")
        assert last["reason"] and last["retry_ms"] >= 0
        if transport == "sse":
            assert (last.sse_event, last.sse_id) == ("disconnect", None)
        if "websocket" in transport:
            assert streams[transport].close_code == 1012
    gateway.stop()


def test_disconnect_carries_the_cursor(servers, redis, cli):
    cli.run("user", "add", "eve")
    gateway = servers.gateway(redis)
    stream = gateway.stream(FIREHOSE)
    post_id = cli.run("post", "--user", "eve", "the last one")
    assert stream.next()["id"] == post_id
    gateway.begin_stop()
    assert stream.next()["cursor"] == post_id
    assert stream.next() is None


def flood(gateway, redis):
    """Publishes a megabyte, which fills the sockets of clients that do not read. Returns a reader that has read all of
    it."""
    neighbour = Collector(gateway.stream(FIREHOSE))
    for number in range(1, 200):
        redis.publish(events.dump(events.post(number, "x" * 5000)))
    neighbour.wait_id(199)
    return neighbour


def test_stalled_clients_do_not_hold_up_the_exit(servers, redis):
    gateway = servers.gateway(redis, "--drain-timeout", "500ms")
    stalled = [gateway.stream(FIREHOSE, transport, receive_buffer=4096)
               for transport in ("ndjson", "raw-websocket")]
    flood(gateway, redis)
    gateway.stop()
    del stalled


def test_draining_takes_no_new_clients(servers, redis):
    gateway = servers.gateway(redis, "--drain-timeout", "10m")
    held = gateway.stream(FIREHOSE, receive_buffer=4096)
    neighbour = flood(gateway, redis)
    gateway.begin_stop()
    neighbour.wait(lambda ms: ms[-1].type == "disconnect", "draining has begun")
    try:
        gateway.stream(FIREHOSE).close()
        raise AssertionError("a new stream while draining")
    except Refused as refused:
        assert refused.response.status == 503
    except ConnectionError:
        pass  # no longer listening
    last = held.to_end()[-1]
    assert (last.type, last["code"]) == ("disconnect", "draining")
    gateway.stop()


def test_second_signal_ends_it_at_once(servers, redis):
    gateway = servers.gateway(redis, "--drain-timeout", "10m")
    held = gateway.stream(FIREHOSE, receive_buffer=4096)
    neighbour = flood(gateway, redis)
    gateway.begin_stop()
    neighbour.wait(lambda ms: ms[-1].type == "disconnect", "draining has begun")
    gateway.begin_stop()
    gateway.stop()
    del held


def test_sigterm_while_redis_is_away(servers):
    gateway = servers.gateway("unix:///nonexistent/redis.sock", start=False).launch()
    eventually(lambda: "event=redis_unavailable" in gateway.log(), "it says what it waits for")
    gateway.pid = gateway.process.pid
    gateway.stop()


def private_redis(gateway):
    """The pid of the redis-server that sluiced started."""
    def find(pid):
        for child in processes.children(pid):
            if processes.name(child) == "redis-server":
                return child
            if below := find(child):
                return below
        return None
    return find(gateway.process.pid)


def test_private_redis_comes_and_goes_with_it(servers, cli_for):
    gateway = servers.gateway(None)
    assert gateway.ready["redis"].startswith("unix://")
    child = private_redis(gateway)
    assert child
    cli = cli_for(None)
    redis = ["--redis", gateway.ready["redis"]]
    cli.run(*redis, "user", "add", "ada")
    with gateway.stream(FIREHOSE) as stream:
        post_id = cli.run(*redis, "post", "--user", "ada", "kept")
        assert stream.next()["id"] == post_id
    gateway.stop()
    assert not processes.is_alive(child)
    again = servers.gateway(None, data_dir=gateway.data_dir)
    redis = ["--redis", again.ready["redis"]]
    cli.run(*redis, "delete", "--user", "ada", post_id)
    cli.run(*redis, "user", "add", "ada", status=1)
    again.stop()


def test_private_redis_that_dies_comes_back(servers, cli_for):
    gateway = servers.gateway(None)
    cli = cli_for(None)
    redis = ["--redis", gateway.ready["redis"]]
    cli.run(*redis, "user", "add", "ada")
    with gateway.stream(FIREHOSE) as stream:
        first = cli.run(*redis, "post", "--user", "ada", "before")
        assert stream.next()["id"] == first
        os.kill(private_redis(gateway), signal.SIGKILL)
        gateway.wait_status("/readyz", 503)
        gateway.wait_status("/readyz", 200)
        second = cli.run(*redis, "post", "--user", "ada", "after")
        assert stream.until(second)[-1]["post"]["text"] == "after"


def test_killed_sluiced_leaves_its_redis_to_the_next(servers, cli_for):
    """The workers die with it; the private Redis continues, and the next sluiced takes it over."""
    gateway = servers.gateway(None, workers=2)
    redis, workers = private_redis(gateway), gateway.workers()
    cli_for(None).run("--redis", gateway.ready["redis"], "user", "add", "ada")
    gateway.process.kill()
    gateway.process.wait()
    gateway.process = None
    eventually(lambda: not any(map(processes.is_alive, workers)), "the workers are gone")
    again = servers.gateway(None, data_dir=gateway.data_dir)
    with again.stream(FIREHOSE) as stream:
        post_id = cli_for(None).run("--redis", again.ready["redis"], "post", "--user", "ada", "kept")
        assert stream.next()["id"] == post_id
    again.stop()
    assert not processes.is_alive(redis)


def test_worker_that_dies_is_replaced(servers, redis):
    gateway = servers.gateway(redis, workers=2)
    if gateway.workers() == [gateway.pid]:
        pytest.skip("one process only")
    os.kill(gateway.workers()[0], signal.SIGKILL)
    eventually(lambda: len(gateway.workers()) == 2 and
               gateway.workers() != gateway.first_workers, "a new worker")
    gateway.first_workers = gateway.workers()

    def all_serve():
        streams = [gateway.stream(FIREHOSE) for _ in range(16)]
        for stream in streams:
            stream.close()
        return True
    gateway.wait_status("/readyz", 200)
    eventually(all_serve, "both serve")
    assert gateway.metrics()  # the board has survived


def test_worker_that_hangs_is_told_and_replaced(servers, redis):
    gateway = servers.gateway(redis, "--worker-timeout", "3s", workers=2)
    hung = gateway.workers()[0]
    os.kill(hung, signal.SIGSTOP)
    eventually(lambda: hung not in gateway.workers() and len(gateway.workers()) == 2, "a new worker")
    gateway.first_workers = gateway.workers()
    gateway.wait_status("/readyz", 200)
    metrics = gateway.metrics()
    assert sum(metrics[f'sluice_worker_hangs_total{{worker="{worker}"}}'] for worker in range(2)) == 1
    assert re.search(rf"event=worker_hangs worker=\d pid={hung} silent_ms=\d+", gateway.log())
    assert re.search(rf"event=worker_died worker=\d pid={hung} ", gateway.log())
