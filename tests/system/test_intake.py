"""Two workers and the process that subscribes to Redis for both: whether it is killed, hangs, or is too fast for one of
them, no client misses an event or gets one twice."""

import os
import signal

from harness import events, processes
from harness.streams import Collector
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"
POSTS = 600


def intake_of(gateway):
    """Its process id; None: there is none at the moment."""
    found = [child for child in processes.children(gateway.pid) if processes.name(child) == "sluiced-intake"]
    return found[0] if found else None


def hearing(gateway):
    """Each worker considers itself subscribed."""
    numbers = gateway.metrics()
    return all(numbers[f'sluice_worker_subscribed{{worker="{worker}"}}'] == 1 for worker in (0, 1))


def subscriptions(redis):
    """The names of the connections that subscribe to events, at each node; not those for the control channel."""
    return [[client["name"] for client in master.client_list() if int(client["sub"]) + int(client.get("ssub", 0)) > 0
             and client["name"] != "sluiced-control"] for master in redis.masters]


class Scene:
    """Readers on both workers, and a producer."""

    def __init__(self, servers, cli_for, *options):
        self.redis, self.folder = servers.redis(), servers.folder
        self.cli = cli_for(self.redis)
        self.gateway = servers.gateway(self.redis, *options, workers=2)
        self.made, self.readers = 0, []
        before = {worker: processes.open_files(worker) for worker in self.gateway.workers()}
        while any(processes.open_files(worker) == count for worker, count in before.items()):
            transport = ("ndjson", "websocket")[len(self.readers) % 2]
            self.readers.append(Collector(self.gateway.stream(FIREHOSE, transport)))

    def replay(self, count, size=40, rate=None):
        file = self.folder / "posts.jsonl"
        with open(file, "w") as out:
            for number in range(count):
                self.made += 1
                text = f"post {self.made} " + "x" * size
                out.write(events.dump(events.post(self.made, text, user=str(number % 20))) + "\n")
        return self.cli.start("replay", file, *(["--rate", rate] if rate else []))

    def flow(self, count):
        """Waits until this many more events have reached the first reader."""
        seen = len(self.readers[0].messages)
        self.readers[0].wait(lambda messages: len(messages) > seen + count, "events flow")

    def assert_all_were_read(self):
        wanted = [event["id"] for event in self.redis.log() if event["type"] == "post"]
        assert len(wanted) == self.made
        for reader in self.readers:
            reader.wait(lambda messages: len(messages) >= len(wanted), f"{len(wanted)} events")
            assert events.by_shard([m["id"] for m in reader.events()]) == events.by_shard(wanted)
            assert not [m for m in reader.messages if m.is_control]


def test_one_subscription_a_host(servers):
    redis = servers.redis()
    alone = servers.gateway(redis)
    assert intake_of(alone) is None and alone.metrics()["sluice_intake_up"] == 0
    assert subscriptions(redis) == [["sluiced"] for _ in redis.masters]
    both = servers.gateway(redis, workers=2)
    assert intake_of(both) and both.metrics()["sluice_intake_up"] == 1
    assert subscriptions(redis) == [["sluiced"] * 2 for _ in redis.masters]
    alone.stop()
    eventually(lambda: subscriptions(redis) == [["sluiced"] for _ in redis.masters], "one is gone")


def test_intake_that_dies_or_hangs_is_replaced_and_nothing_is_missing(servers, cli_for):
    scene = Scene(servers, cli_for, "--worker-timeout", "2s")
    gateway, load = scene.gateway, scene.replay(POSTS, rate=200)
    scene.flow(20)
    first = intake_of(gateway)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: intake_of(gateway) not in (None, first) and hearing(gateway), "another one hears")
    scene.flow(20)
    second = intake_of(gateway)
    os.kill(second, signal.SIGSTOP)
    eventually(lambda: intake_of(gateway) not in (None, second) and hearing(gateway), "the hung one is replaced")
    load.ended()
    scene.assert_all_were_read()
    numbers = gateway.metrics()
    assert numbers["sluice_intake_restarts_total"] == 2
    eventually(lambda: gateway.metrics()["sluice_intake_hangs_total"] == 1, "the hang was counted")
    assert gateway.log().count("event=intake_died") == 2 and gateway.log().count("event=intake_hangs") == 1


def test_worker_that_was_overrun_reads_the_log(servers, cli_for):
    """While it is stopped, more is published than the broadcast holds."""
    scene = Scene(servers, cli_for, "--max-event-bytes", 1024, "--worker-timeout", 0)
    scene.replay(50).ended()
    with processes.stopped(scene.gateway.workers()[:1]):
        scene.replay(1200, size=400).ended()
    scene.replay(50).ended()
    scene.assert_all_were_read()
    assert scene.gateway.metrics()["sluice_intake_overruns_total"] >= 1
    assert "event=intake_overrun worker=" in scene.gateway.log()
    assert scene.gateway.metrics()["sluice_intake_restarts_total"] == 0


def test_what_is_no_event_is_refused_once_for_all_workers(servers, cli_for):
    scene = Scene(servers, cli_for, "--max-event-bytes", 1024)
    scene.redis.publish("{}")
    scene.redis.publish(events.dump(events.post(900, "x" * 1024)))
    scene.replay(1).ended()
    scene.assert_all_were_read()
    numbers = scene.gateway.metrics()
    assert numbers['sluice_events_refused_total{reason="invalid"}'] == 1
    assert numbers['sluice_events_refused_total{reason="too_big"}'] == 1
    assert "event=event_refused" in scene.gateway.log()
