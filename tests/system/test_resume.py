"""Coming back with a cursor: everything since, then live, without a seam."""

import json

import pytest

from harness import events
from harness.streams import Collector

FIREHOSE = "/v1/stream/firehose"
WIRES = ["ndjson", "delimited", "sse", "websocket"]
LOG = "sluice:{0}:log"


@pytest.fixture(scope="module")
def redis(module_servers):
    redis = module_servers.redis()
    return redis


def replay(cli, folder, count, first=1, rate=None, text="post", name="posts"):
    """Posts by seven users, logged; in the background when there is a rate."""
    file = folder / f"{name}.jsonl"
    with open(file, "w") as out:
        for number in range(first, first + count):
            out.write(events.dump(events.post(number, f"{text} {number} w{number % 5}",
                                              user=str(number % 7))) + "\n")
    if rate is None:
        return cli.run("replay", file)
    return cli.start("replay", file, "--rate", str(rate))


def logged(redis, after=0, kinds=("post", "delete")):
    """The events of the log behind this id."""
    entries = redis.client.xrange(LOG, f"({after}-0" if after else "-")
    return [e for e in (json.loads(fields["e"]) for _, fields in entries) if e["type"] in kinds]


def ids(some):
    return [e["id"] for e in some]


@pytest.mark.parametrize("wire", WIRES)
def test_what_was_missed_comes_first_then_what_happens(servers, cli_for, wire):
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    replay(cli, servers.folder, 500)
    cursor = logged(redis)[100]["id"]
    with gateway.stream(f"{FIREHOSE}?since={cursor}", wire) as stream:
        wanted = ids(logged(redis, cursor))
        got = [stream.next()["id"] for _ in wanted]
        assert got == wanted
        last = cli.ids("post", "--user", "u1", "and now")[0]
        assert stream.next()["id"] == last


@pytest.mark.parametrize("wire", WIRES)
def test_resume_under_load_has_no_seam(servers, cli_for, wire):
    """Clients come back again and again while events flow: together they see each once."""
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    load = replay(cli, servers.folder, 3000, rate=1500)
    first = Collector(gateway.stream(FIREHOSE))
    first.wait(lambda ms: len(ms) > 10, "the load flows")
    cursor, got = first.messages[5]["id"], []
    while len(got) < 2000:
        with gateway.stream(f"{FIREHOSE}?since={cursor}", wire) as stream:
            got += [stream.next() for _ in range(300)]
            cursor = got[-1]["id"]
    load.ended()
    assert not [m for m in got if m.is_control]
    assert [m["id"] for m in got] == ids(logged(redis, first.messages[5]["id"]))[:len(got)]
