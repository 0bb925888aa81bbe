"""Streams that are opened by their paths on one WebSocket to /v1/stream."""

import json
import random
import socket
import time

import pytest

from harness import events
from harness.cli import Cli
from harness.waiting import eventually
from harness.websocket import TEXT

pytestmark = pytest.mark.wires
MANY = "/v1/stream"
TRANSPORTS = ["raw-websocket", "raw-websocket+deflate", "raw-websocket+dictionary"]
HISTORY = 300


class Client:
    """A client of /v1/stream. Messages are sorted by stream: `said` has for each name what that stream would have sent
    alone, `other` what has no name."""

    def __init__(self, gateway, transport="raw-websocket", target=MANY, receive_buffer=None, **token):
        self.stream = gateway.stream(target, transport, token=gateway.token(**token), receive_buffer=receive_buffer)
        self.said, self.seen, self.other = {}, {}, []

    def take(self, seconds=None):
        """Sorts the next message; returns it if it is an answer."""
        message = self.stream.next(seconds)
        assert message is not None, "the server ended it"
        if "op" in message or "error" in message:
            return message.json
        if "stream" in message:
            name = message["stream"]
            self.said.setdefault(name, []).append(plain(message, name))
            if "id" in message:
                self.seen.setdefault(name, []).append(message["id"])
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
        self.wait(lambda said: all(self.ids(name)[-1:] == [event_id] for name in names))

    def ids(self, name):
        """Ids of events, and of closed buckets."""
        return self.seen.get(name, [])


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
    """A log, and a gateway that received none of it live."""
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


def test_an_opened_stream_has_a_pace_of_its_own(filled):
    redis, cli, gateway = filled
    path = f"/v1/stream/firehose?max_rate=2&since={redis.log()[10]['id']}"
    client = Client(gateway)
    client.open("paced", path)
    client.wait(lambda said: len(said.get("paced", [])) >= 3)
    got = client.said["paced"]
    with gateway.stream(path) as stream:
        assert [stream.next().raw.decode() for _ in got] == got
    assert any('"type":"skipped"' in raw for raw in got)


def test_there_are_at_most_sixteen(gateway):
    client = Client(gateway)
    for number in range(16):
        client.open(f"s{number}", f"/v1/stream/filter?track=w{number}")
    assert client.refused("/v1/stream/filter?track=w") == ("too_many_streams", None)
    client.open("s3", "/v1/stream/filter?track=other")  # replaces another one
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


def test_filters_and_streams_stand_side_by_side(gateway, publish):
    """Even under the same name: what a filter matches names its rules, and not the stream."""
    client = Client(gateway)
    assert client.say({"op": "subscribe", "id": "a", "filter": {"track": "kite"}})["op"] == "subscribed"
    client.open("a", "/v1/stream/filter?track=kite")
    publish(events.post(1, "a kite"))
    client.wait(lambda said: client.ids("a") == ["1"] and client.other)
    assert [message.json["matching_rules"] for message in client.other] == [[{"id": "a"}]]
    assert "matching_rules" not in client.said["a"][0]
    listed = client.say({"op": "list"})
    assert (listed["rules"], listed["streams"]) == ([{"id": "a"}], [{"id": "a", "stream": "filter"}])


def test_what_the_token_permits_holds_for_each(gateway):
    client = Client(gateway, scope="stream:filter", lim={"rules": 2, "track": 2})
    assert client.refused("/v1/stream/firehose") == ("insufficient_scope", None)
    assert client.refused("/v1/stream/counts?bucket=1s") == ("not_permitted", None)
    assert client.refused("/v1/stream/filter?track=a,b,c") == ("too_many_phrases", "track")
    client.open("a", "/v1/stream/filter?track=a,b")
    assert client.say({"op": "subscribe", "id": "f", "filter": {"track": "c"}})["op"] == "subscribed"
    assert client.refused("/v1/stream/filter?track=d", "b") == ("too_many_rules", "rules")
    assert client.say({"op": "subscribe", "id": "g", "filter": {"track": "c"}})["error"]["code"] == "too_many_rules"
    client.open("a", "/v1/stream/filter?track=d")  # replaces another one
    client.close("a")
    client.open("b", "/v1/stream/counts?bucket=1s&track=e")


@pytest.mark.parametrize("path, refused", [
    ("", ("no_such_stream", "path")), ("/v1/stream", ("no_such_stream", "path")),
    ("/v1/counts?bucket=1s&since=-1h", ("no_such_stream", "path")), ("/v1/stream/filter/", ("no_such_stream", "path")),
    ("/v1/stream/firehose?access_token=x", ("unknown_parameter", "access_token")),
    ("/v1/stream/firehose?delimited=length", ("unknown_parameter", "delimited")),
    ("/v1/stream/firehose?zstd_dictionary=40000", ("unknown_parameter", "zstd_dictionary")),
    ("/v1/stream/firehose?no=1", ("unknown_parameter", "no")),
    ("/v1/stream/home?track=a", ("unknown_parameter", "track")),
    ("/v1/stream/filter?track=%ff", ("bad_encoding", "track")),
    ("/v1/stream/filter", ("no_selector", None)),
    ("/v1/stream/counts?bucket=1s&by=rule", ("bad_by", "by")),
    ("/v1/stream/counts?bucket=1s&since=2026-03-01", ("too_many_buckets", "since")),
    ("/v1/stream/firehose?until=-1h", ("bad_until", "until")), ("/v1/stream/firehose?since=7", ("bad_since", "since"))])
def test_what_is_wrong_is_said_as_of_the_stream_itself(gateway, path, refused):
    assert Client(gateway).refused(path) == refused


def test_what_a_filter_may_not_have_meant_is_told_by_its_name(filled):
    redis, cli, gateway = filled
    client = Client(gateway)
    path = "/v1/stream/filter?rule=tea+or+from:nobody"
    opened = client.say({"op": "open", "id": "a", "path": path})
    assert [warning["code"] for warning in opened.pop("warnings")] == ["operator_word"]
    assert opened == {"op": "opened", "id": "a"}
    client.wait(lambda said: said)
    warning = json.loads(client.said["a"][0])
    assert (warning["type"], warning["code"], "id" in warning) == ("warning", "unknown_user", False)
    client.open("b", f"{path}&since={redis.log()[-1]['id']}")  # a client that comes back was told before
    client.close("b")
    assert client.said.keys() == {"a"} and len(client.said["a"]) == 1


def test_only_a_connection_for_many_opens_streams(gateway):
    client = Client(gateway, target="/v1/stream/counts?bucket=1d&by=rule")
    answer = client.say({"op": "open", "id": "a", "path": "/v1/stream/firehose"})
    assert answer["error"]["code"] == "unknown_op"
    assert "streams" not in client.say({"op": "list"})


def test_what_is_asked_alike_by_the_same_name_is_made_once(gateway, publish):
    clients = [Client(gateway, transport) for transport in TRANSPORTS[:2] for _ in range(3)]
    for number, client in enumerate(clients):
        client.open("a", "/v1/stream/filter?track=kite")
        client.open(f"b{number % 3}", "/v1/stream/filter?track=kite")
    before = gateway.metrics()
    publish(events.post(1, "a kite " * 20))
    for number, client in enumerate(clients):
        client.wait(lambda said: client.ids("a") == client.ids(f"b{number % 3}") == ["1"])
        assert client.stream.deflated == (2 if number > 2 else 0)
    after = gateway.metrics()
    assert after["sluice_matches_total"] - before["sluice_matches_total"] == 2 * (1 + 3)
    blocks = 'sluice_compression_blocks_total{encoding="deflate"}'
    assert after[blocks] - before[blocks] == 1  # of the event, for all names


def test_home_streams_are_opened_uncompressed(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    ada = cli.run("user", "add", "ada")
    gateway = servers.gateway(redis)
    client = Client(gateway, "raw-websocket+deflate", sub=ada)
    client.open("home", "/v1/stream/home")
    client.open("all", "/v1/stream/firehose")
    text = "of my own, at home, " * 20
    post = cli.ids("post", "--user", "ada", text)[0]
    client.wait_all(["home", "all"], post)
    assert client.stream.deflated == 1
    client.close("all")
    post = cli.ids("post", "--user", "ada", text)[0]
    client.wait_all(["home"], post)
    assert client.stream.deflated == 1
    assert client.ids("all") != client.ids("home")


def test_each_goes_on_from_its_own_cursor(filled):
    redis, cli, gateway = filled
    since = redis.log()[0]["id"]
    paths = {"all": "/v1/stream/firehose", "some": "/v1/stream/filter?track=w2"}
    whole = Client(gateway)
    for name, path in paths.items():
        whole.open(name, f"{path}{'&' if '?' in path else '?'}since={since}")
    last = cli.ids("post", "--user", "ada", "w2 to the end")[0]
    whole.wait_all(paths, last)
    pieces = {name: [] for name in paths}
    while any(not got or got[-1] != whole.ids(name)[-1] for name, got in pieces.items()):
        client = Client(gateway)
        for name, path in paths.items():
            client.open(name, f"{path}{'&' if '?' in path else '?'}since={(pieces[name] or [since])[-1]}")
        enough = {name: min(len(whole.ids(name)) - len(got), 40) for name, got in pieces.items()}
        client.wait(lambda said: all(len(client.ids(name)) >= count for name, count in enough.items()))
        client.stream.close()
        for name, got in pieces.items():
            got += client.ids(name)
    assert pieces == {name: whole.ids(name) for name in paths}


def test_an_opened_stream_ends_and_the_connection_goes_on(filled):
    redis, cli, gateway = filled
    until = redis.log()[100]["id"]
    client = Client(gateway)
    client.open("past", f"/v1/stream/firehose?since={redis.log()[90]['id']}&until={until}")
    client.open("now", "/v1/stream/firehose")
    client.wait(lambda said: said.get("past") and '"disconnect"' in said["past"][-1])
    end = json.loads(client.said["past"][-1])
    assert (end["code"], end["cursor"]) == ("complete", until)
    assert sorted(client.ids("past"), key=int)[-1] == until
    assert client.say({"op": "list"})["streams"] == [{"id": "now", "stream": "firehose"}]
    last = cli.ids("post", "--user", "ada", "and on")[0]
    client.wait_all(["now"], last)
    client.open("past", "/v1/stream/firehose")
    last = cli.ids("post", "--user", "ada", "by the same name")[0]
    client.wait_all(["now", "past"], last)


def test_a_cursor_older_than_the_log_is_a_gap_of_its_stream(servers, cli_for):
    redis = servers.redis(shards=1)
    cli = cli_for(redis)
    cli.run("replay", write(servers.folder, 1, 100))
    log = redis.log()
    [name] = redis.logs()
    redis.client.xtrim(name, minid=log[50]["id"], approximate=False)
    gateway = servers.gateway(redis)
    client = Client(gateway)
    client.open("old", f"/v1/stream/firehose?since={log[5]['id']}")
    client.open("young", f"/v1/stream/firehose?since={log[80]['id']}")
    client.wait_all(["old", "young"], log[-1]["id"])
    gap = json.loads(client.said["old"][0])
    assert (gap["type"], gap["from"], gap["to"], gap["reason"]) == ("gap", log[5]["id"], log[49]["id"], "retention")
    assert client.ids("old") == [event["id"] for event in log[50:]]
    assert client.ids("young") == [event["id"] for event in log[81:]]


def flood(cli, folder, count):
    file, rng = folder / "flood.jsonl", random.Random(count)
    with open(file, "w") as out:
        for n in range(1, count + 1):
            word = "needle" if n % 10 == 0 else "hay"
            text = rng.randbytes(5000).hex()  # incompressible
            out.write(events.dump(events.post(n, f"{word} {n} {text}", user=str(n % 9))) + "\n")
    cli.run("replay", file)


@pytest.mark.parametrize("transport", TRANSPORTS[:2])
def test_who_reads_slowly_gets_everything_of_each_stream(servers, cli_for, transport):
    """Each falls behind, is told so by its name, catches up and is live again; no message is damaged."""
    redis = servers.redis()
    cli = cli_for(redis)
    gateway = servers.gateway(redis, "--max-owed-bytes", 65536, "--ring-bytes", 1 << 20)
    client = Client(gateway, transport, receive_buffer=4096)
    paths = {"all": "/v1/stream/firehose", "again": "/v1/stream/firehose?fields=id,text",
             "needles": "/v1/stream/filter?track=needle"}
    for name, path in paths.items():
        client.open(name, path)
    flood(cli, servers.folder, 600)
    log = [event for event in redis.log() if event["type"] == "post"]
    slowest = eventually(lambda: gateway.get("/status.json", gateway.bearer(scope="admin")).json["slowest"], "it is slow")
    assert {one["stream"] for one in slowest} <= {"firehose", "filter"}
    client.stream.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    wanted = [event["id"] for event in log]
    client.wait(lambda said: all(len(client.ids(name)) >= len(wanted) for name in ("all", "again"))
                and len(client.ids("needles")) >= 60)
    assert events.by_shard(client.ids("all")) == events.by_shard(client.ids("again")) == events.by_shard(wanted)
    assert events.by_shard(client.ids("needles")) == \
        events.by_shard(event["id"] for event in log if "needle" in event["post"]["text"])
    warned = [name for name, said in client.said.items() if any('"code":"behind"' in raw for raw in said)]
    assert "all" in warned and not client.other
    eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 0, "all are live again")
    last = cli.ids("post", "--user", "u1", "a needle, live")[0]
    client.wait_all(paths, last)


def test_none_waits_for_one_that_always_fills_the_socket(servers, cli_for):
    """Of the megabytes with which two streams catch up, much is still to come when a third delivers live events."""
    redis = servers.redis()
    cli = cli_for(redis)
    flood(cli, servers.folder, 800)
    gateway = servers.gateway(redis)
    client = Client(gateway, receive_buffer=4096)
    for name in ("all", "more"):
        client.open(name, "/v1/stream/firehose?since=-1h")
    eventually(lambda: gateway.metrics()["sluice_streams_catching_up"] == 2, "they have begun")
    client.open("live", "/v1/stream/filter?track=eureka")
    post = cli.ids("post", "--user", "u1", "eureka")[0]
    client.stream.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    client.wait(lambda said: client.ids("live") == [post])
    assert len(client.ids("all")) + len(client.ids("more")) < 1400
    client.wait_all(["all", "more"], post)
    assert len(client.ids("all")) == len(client.ids("more")) == 801


def test_who_is_too_slow_in_one_opens_it_again_on_the_same_connection(servers, cli_for):
    redis = servers.redis(shards=1)
    cli = cli_for(redis)
    gateway = servers.gateway(redis, "--max-owed-bytes", 65536, "--max-lag", "1s")
    client = Client(gateway, receive_buffer=4096)
    client.open("all", "/v1/stream/firehose")
    flood(cli, servers.folder, 800)
    eventually(lambda: gateway.metrics()['sluice_disconnects_total{code="too_slow"}'] == 1, "too slow")
    client.wait(lambda said: said.get("all") and '"disconnect"' in said["all"][-1])
    end = json.loads(client.said["all"][-1])
    assert end["code"] == "too_slow" and end["retry_ms"] > 0
    wanted = [event["id"] for event in redis.log() if event["type"] == "post"]
    got = list(client.ids("all"))
    assert got == wanted[:len(got)] and len(got) < 800
    client.open("rest", f"/v1/stream/firehose?since={end['cursor']}")  # on the same connection
    client.wait_all(["rest"], wanted[-1])
    assert got + client.ids("rest") == wanted


def test_a_connection_that_takes_nothing_does_not_stay(servers, cli_for):
    """It does not read the end of its stream either: it is closed three keep-alives later; or, if there was room for
    the end at last, because of an unanswered ping."""
    redis = servers.redis(shards=1)
    flood(cli_for(redis), servers.folder, 800)
    gateway = servers.gateway(redis, "--max-owed-bytes", 65536, "--max-lag", "1s", "--keepalive-ms", 500)
    client = Client(gateway, receive_buffer=4096)
    client.open("all", f"/v1/stream/firehose?since={redis.log()[0]['id']}")
    ends = ('sluice_disconnects_total{code="too_slow"}', "sluice_broken_connections_total")
    eventually(lambda: sum(gateway.metrics()[end] for end in ends) == 2, "the stream and the connection have ended")


def test_all_are_told_where_to_go_on_when_the_server_drains(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("replay", write(servers.folder, 1, 50))
    gateway = servers.gateway(redis)
    client = Client(gateway)
    client.open("all", "/v1/stream/firehose?since=-1h")
    client.open("counts", "/v1/stream/counts?bucket=1s&since=-1m")
    log = [event["id"] for event in redis.log() if event["type"] == "post"]
    client.wait(lambda said: len(client.ids("all")) == 50)
    gateway.begin_stop()
    client.wait(lambda said: client.other)
    assert client.stream.next() is None
    assert client.stream.close_code == 1012
    assert [message["code"] for message in client.other] == ["draining"]
    ends = {name: json.loads(raws[-1]) for name, raws in client.said.items()}
    assert {name: end["code"] for name, end in ends.items()} == {"all": "draining", "counts": "draining"}
    assert all(end["retry_ms"] > 0 for end in ends.values())
    gateway.stop()
    log = [line for line in gateway.log().splitlines() if "event=stream_end" in line]
    assert sorted(line.split(" why=")[1] for line in log) == \
        ["draining", "draining opened=all", "draining opened=counts"]
    last = cli.ids("post", "--user", "u1", "meanwhile")[0]
    client = Client(servers.gateway(redis))
    client.open("all", f"/v1/stream/firehose?since={ends['all']['cursor']}")
    client.open("counts", f"/v1/stream/counts?bucket=1s&since={ends['counts']['cursor']}")
    client.wait(lambda said: client.ids("all") == [last] and any(json.loads(raw)["posts"] for raw in said.get("counts", [])))


def test_a_quiet_stream_says_where_it_is_beside_a_busy_one(servers, cli_for):
    """With cursors=true, after silence of that stream; pings belong to the connection."""
    redis = servers.redis(shards=1)
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis, "--keepalive-ms", 1000)
    client = Client(gateway)
    client.open("busy", "/v1/stream/firehose")
    client.open("quiet", "/v1/stream/filter?track=nothing&cursors=true")
    deadline = time.monotonic() + 30
    while not client.said.get("quiet"):
        assert time.monotonic() < deadline
        last = cli.ids("post", "--user", "ada", "busy")[0]
        client.wait(lambda said: last in client.ids("busy"))
    cursor = json.loads(client.said["quiet"][0])
    assert cursor["type"] == "cursor" and cursor["id"] in client.ids("busy")


def test_the_token_ends_all_of_them(gateway):
    for seconds in (3, 6, 12, 24):  # a slow machine needs longer
        client = Client(gateway, exp=int(time.time()) - 60 + seconds)
        client.open("a", "/v1/stream/firehose")
        client.open("b", "/v1/stream/filter?track=kite")
        got = client.stream.to_end(seconds + 20)
        if len(got) == 3:
            break
    assert sorted((message.json.get("stream"), message["code"]) for message in got[:2]) == \
        [("a", "token_expired"), ("b", "token_expired")]
    assert (got[2]["code"], "stream" in got[2], client.stream.close_code) == ("token_expired", False, 4001)
