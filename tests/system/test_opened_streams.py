"""Streams that are opened by their paths on one WebSocket to /v1/stream."""

import json
import socket

import pytest

from harness import events
from harness.cli import Cli
from harness.streams import Collector
from harness.waiting import eventually
from harness.websocket import TEXT

MANY = "/v1/stream"
TRANSPORTS = ["raw-websocket", "raw-websocket+deflate", "raw-websocket+dictionary"]
HISTORY = 300


class Client:
    """A client of /v1/stream. What comes is sorted by stream: `said` of each name, as that stream would have
    sent it, and `other`, what has no name."""

    def __init__(self, gateway, transport="raw-websocket", target=MANY, receive_buffer=None, **token):
        self.stream = gateway.stream(target, transport, token=gateway.token(**token), receive_buffer=receive_buffer)
        self.said, self.other = {}, []

    def take(self, seconds=None):
        """Sorts the next message; an answer is returned."""
        message = self.stream.next(seconds)
        assert message is not None, "the server ended it"
        if "op" in message or "error" in message:
            return message.json
        if "stream" in message:
            self.said.setdefault(message["stream"], []).append(plain(message, message["stream"]))
        else:
            self.other.append(message)
        return None

    def say(self, message):
        self.stream.send_frame(TEXT, json.dumps(message))
        while not (answer := self.take()):
            pass
        return answer

    def open(self, name, path):
        assert self.say({"op": "open", "id": name, "path": path}) == {"op": "opened", "id": name}

    def close(self, name):
        assert self.say({"op": "close", "id": name}) == {"op": "closed", "id": name}

    def refused(self, path, name="a"):
        answer = self.say({"op": "open", "id": name, "path": path})
        assert answer.keys() == {"op", "id", "error"} and answer["op"] == "open" and answer["id"] == name
        return answer["error"]["code"], answer["error"].get("param")

    def wait(self, condition):
        while not condition(self.said):
            assert self.take() is None

    def wait_all(self, names, event_id):
        self.wait(lambda said: all(said.get(name) and json.loads(said[name][-1]).get("id") == event_id for name in names))

    def ids(self, name):
        return [message["id"] for message in map(json.loads, self.said.get(name, [])) if "id" in message]


def plain(message, name):
    tail = f',"stream":"{name}"}}'
    assert message.raw.endswith(tail), message
    return message.raw[:-len(tail)] + "}"


def write(folder, first, count):
    file = folder / f"posts-{first}.jsonl"
    with open(file, "w") as out:
        for n in range(first, first + count):
            post = events.post(n, f"post {n} w{n % 5}", user=str(n % 11))
            post["post"]["lang"] = ["en", "fr", "ja"][n % 3]
            out.write(events.dump(post) + "\n")
    return file


@pytest.fixture(scope="module")
def filled(module_servers):
    """A log, and a gateway that has seen none of it."""
    redis = module_servers.redis()
    cli = Cli(redis)
    cli.run("replay", write(redis.folder, 1, HISTORY))
    cli.run("user", "add", "ada")
    cli.run("dictionary", "train")
    gateway = module_servers.gateway(redis)
    return redis, cli, gateway


PATHS = {
    "firehose": "/v1/stream/firehose?since={since}",
    "words": "/v1/stream/filter?track=w3,w4&since={since}",
    "short": "/v1/stream/filter?rule=w1+OR+w2&language=en&fields=text,user.login&since={since}",
    "part": "/v1/stream/sample?percent=100&partition=1/1&since={since}",
    "last": "/v1/stream/firehose?last=20&types=post",
}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_opened_stream_says_what_the_stream_itself_says(filled, transport):
    """From the log and live, with all of them on one connection."""
    redis, cli, gateway = filled
    since = redis.log()[10]["id"]
    client = Client(gateway, transport)
    for name, path in PATHS.items():
        client.open(name, path.format(since=since))
    alone = {name: gateway.stream(path.format(since=since)) for name, path in PATHS.items()}
    behind = [event for event in redis.log() if int(event["id"]) > int(since)]
    client.wait(lambda said: len(said.get("firehose", [])) == len(behind))
    last = cli.ids("post", "--user", "ada", "--lang", "en", "w1 w3 and the last")[0]
    client.wait_all(PATHS, last)
    for name, other in alone.items():
        wanted = [message.raw.decode() for message in other.until(last)]
        assert client.said[name] == wanted, name
        assert len(wanted) > 5
    if transport == TRANSPORTS[1]:
        assert client.stream.deflated > HISTORY


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_opened_counts_are_those_of_the_stream(filled, transport):
    redis, cli, gateway = filled
    client = Client(gateway, transport)
    paths = {"all": "/v1/stream/counts?bucket=1s&since=-1m", "lang": "/v1/stream/counts?bucket=1s&by=lang&track=w1,w2&since=-1m"}
    for name, path in paths.items():
        client.open(name, path)
    cli.run("post", "--user", "ada", "w1 again")
    last = redis.log()[-1]["id"]
    client.wait(lambda got: all(got.get(name) and int(json.loads(got[name][-1])["id"]) >= int(last) for name in paths))
    for name, path in paths.items():
        got = client.said[name]
        first = json.loads(got[0])["id"]
        with gateway.stream(f"{path.replace('since=-1m', 'since=' + str(int(first) - 1))}") as stream:
            assert [stream.next().raw.decode() for _ in got] == got
        assert sum(json.loads(raw)["posts"] for raw in got) > 0


def test_there_are_at_most_sixteen(gateway):
    client = Client(gateway)
    for number in range(16):
        client.open(f"s{number}", f"/v1/stream/filter?track=w{number}")
    assert client.refused("/v1/stream/filter?track=w") == ("too_many_streams", None)
    client.open("s3", "/v1/stream/filter?track=other")  # in the place of another
    client.close("s4")
    client.open("s4", "/v1/stream/filter?track=w4")
    listed = client.say({"op": "list"})
    assert {(entry["id"], entry["stream"]) for entry in listed["streams"]} == {(f"s{n}", "filter") for n in range(16)}
    assert gateway.metrics()['sluice_streams_by_kind{stream="filter",transport="websocket"}'] == 16
    assert gateway.metrics()["sluice_streams"] == 1
    client.stream.close()
    eventually(lambda: gateway.metrics()['sluice_streams_by_kind{stream="filter",transport="websocket"}'] == 0, "they are gone")


def test_a_stream_takes_the_place_of_the_one_with_its_name(gateway, publish):
    client = Client(gateway)
    client.open("a", "/v1/stream/filter?track=kite")
    publish(events.post(1, "a balloon"))
    publish(events.post(2, "a kite"))
    client.wait(lambda said: client.ids("a") == ["2"])
    client.open("a", "/v1/stream/filter?track=balloon")
    publish(events.post(3, "a kite"))
    publish(events.post(4, "a balloon"))
    client.wait(lambda said: client.ids("a") == ["2", "4"])
    assert client.refused("/v1/stream/filter?track=!!!") == ("empty_keyword", "track")  # changes nothing
    publish(events.post(5, "a balloon"))
    client.wait(lambda said: client.ids("a") == ["2", "4", "5"])
    client.close("a")
    client.open("b", "/v1/stream/filter?track=kite")
    publish(events.post(6, "a balloon"))
    publish(events.post(7, "a kite"))
    client.wait(lambda said: client.ids("b") == ["7"])
    assert client.ids("a") == ["2", "4", "5"] and not client.other
