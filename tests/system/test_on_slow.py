"""A client that is sent a share of its posts instead of falling behind, compared with the log: what is sent and what is
skipped are everything that there is, according to the tests' own hash."""

import json
import socket

import pytest

from harness import events, picks, websocket
from harness.cli import Cli
from harness.streams import CONTROL
from harness.waiting import eventually

TEXT = "a long post, so that few of them fill a socket " * 200  # 10 kB
HOME, FIREHOSE = "/v1/stream/home", "/v1/stream/firehose"


class Recount:
    """Of the messages of one client, over all its connections."""

    def __init__(self, redis):
        self.redis, self.had, self.percents, self.skipped, self.cursor = redis, set(), [], 0, None
        self.left_out, self.posts = set(), {}

    def look(self):
        """Reads the log first: a message may refer to posts that are not known yet."""
        self.posts = {int(event["id"]): int(event["post"]["id"]) for event in self.redis.log() if event["type"] == "post"}

    def connects(self):
        self.percent = 100

    def take(self, messages):
        for message in messages:
            if message.type == "sampling":
                self.percent = message["percent"]
                self.percents.append(self.percent)
            elif message.type == "skipped":
                end = int(message["id"])
                left = {event_id for event_id, post in self.posts.items() if event_id <= end and event_id not in self.had
                        and not picks.is_in_part(post, self.percent)}
                assert len(left) == message["events"], message.json
                self.had |= left
                self.left_out |= left
                self.cursor = message["id"]
            elif message.type not in CONTROL:
                event_id = int(message["id"])
                assert event_id not in self.had, message["id"]
                assert picks.is_in_part(self.posts[event_id], self.percent), (self.percent, message["id"])
                self.had.add(event_id)
                self.cursor = message["id"]

    def has_all(self):
        return len(self.had) == len(self.posts)


def write(folder, name, count):
    file = folder / f"{name}.jsonl"
    with open(file, "w") as out:
        for number in range(count):
            out.write(events.dump(events.post(number + 1, TEXT, user="1")) + "\n")
    return file


def read_all(stream, recount, is_done, seconds=90):
    """Reads as fast as possible."""
    stream.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)

    def take(message):
        recount.take([message])
        return is_done(message)
    stream.until(take, seconds)


@pytest.mark.parametrize("transport, path, shards", [
    ("ndjson", FIREHOSE, 8), ("delimited", HOME, 1), ("sse", FIREHOSE, 1), ("raw-websocket", HOME, 8)])
def test_slow_reader_is_sent_a_part_and_told_of_the_rest(servers, transport, path, shards):
    redis = servers.redis(shards=shards) if shards > 1 else servers.redis()
    gateway = servers.gateway(redis, "--max-owed-bytes", 65536, "--order-wait", "60s")  # nothing is late
    cli, recount, texts = Cli(redis), Recount(redis), write(redis.folder, "posts", 600)
    cli.run("replay", write(redis.folder, "first", 1))
    [first] = [event for event in redis.log() if event["type"] == "post"]
    token = gateway.token(sub=first["post"]["user"]["id"])
    recount.had.add(int(first["id"]))

    def open_stream(since=""):
        recount.connects()
        return gateway.stream(f"{path}?on_slow=sample{since}", transport, receive_buffer=4096, token=token)

    stream = open_stream(f"&since={first['id']}")  # live, it would be sent what a busy gateway has not received yet
    while gateway.metrics()["sluice_streams_sampled"] == 0:  # it reads nothing
        cli.run("replay", texts)
    recount.look()
    messages = stream.until(lambda message: message.type == "skipped", 60)
    recount.take(messages)
    assert recount.percents and recount.percents[0] == 50
    stream.close()

    stream = open_stream(f"&since={recount.cursor}")  # what was lost with the connection comes again, by another choice or the same
    while gateway.metrics()["sluice_streams_sampled"] == 0:
        cli.run("replay", texts)
    recount.look()
    read_all(stream, recount, lambda message: message.type == "sampling" and message["percent"] == 100)
    cli.run("replay", write(redis.folder, "last", 3))
    recount.look()
    read_all(stream, recount, lambda message: recount.has_all())
    assert recount.left_out and gateway.metrics()["sluice_posts_skipped_total"] >= len(recount.left_out)
    assert gateway.metrics()["sluice_streams_sampled"] == 0
    stream.close()


def test_named_filters_are_sampled_together(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--max-owed-bytes", 65536)
    cli, recount, texts = Cli(redis), Recount(redis), write(redis.folder, "posts", 600)
    stream = gateway.stream("/v1/stream?on_slow=sample", "raw-websocket", receive_buffer=4096)
    for name in "ab":
        stream.send_frame(websocket.TEXT, json.dumps({"op": "subscribe", "id": name, "filter": {"track": "long post"}}))
        stream.until(lambda message: "op" in message)
    recount.connects()
    while gateway.metrics()["sluice_streams_sampled"] == 0:
        cli.run("replay", texts)
    recount.look()
    read_all(stream, recount, lambda message: message.type == "sampling" and message["percent"] == 100)
    cli.run("replay", write(redis.folder, "last", 1))
    recount.look()
    read_all(stream, recount, lambda message: recount.has_all())


def test_tail_asks_for_it(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    cli = Cli(redis)
    cli.run("user", "add", "ada")
    cli.run("post", "--user", "ada", "tea")
    said = cli.run("tail", "--url", gateway.url, "--token", gateway.token(), "--on-slow", "sample", "--since", "-1h",
                   "--limit", "1", "firehose")
    assert json.loads(said)["post"]["text"] == "tea"
    eventually(lambda: gateway.metrics()["sluice_streams_sampled"] == 0, "nobody is sampled")
