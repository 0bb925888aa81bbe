"""Compares docs/asyncapi.yaml with the running server, on every stream and transport."""

import json
import re
from urllib.parse import quote

import jsonschema
import pytest

from harness import events, programs
from harness.asyncapi import Description
from harness.cli import Cli
from harness.streams import Refused
from harness.waiting import eventually
from harness.websocket import upgrade

DESCRIPTION = Description()
CHANNELS = DESCRIPTION.document["channels"]
TRANSPORTS = {"http": ["ndjson", "delimited", "sse"], "websocket": ["websocket"]}
EVERY_TYPE = "types=post,delete,follow,unfollow,user"
PARAMETERS = DESCRIPTION.parameters("filter") | DESCRIPTION.parameters("counts") | DESCRIPTION.parameters("trends")
FILTER_OF_ALL = {"firehose": True, "types": "post,delete,follow,unfollow,user", "tag": "all"}


def transports(channel):
    return [transport for server in CHANNELS[channel]["servers"]
            for transport in TRANSPORTS[server["$ref"].rsplit("/", 1)[1]]]


EVERYWHERE = [(channel, transport) for channel in CHANNELS for transport in transports(channel)]


class World:
    """Ada and Bob, and parameters with which each stream delivers what they do."""

    def __init__(self, servers):
        self.redis = servers.redis()
        self.gateway = servers.gateway(self.redis)
        self.cli = Cli(self.redis)
        self.ada, self.bob = (self.cli.run("user", "add", login) for login in ("ada", "bob"))

    def query(self, channel):
        return {"filter": f"?{EVERY_TYPE}&follow={self.ada},@ada",
                "sample": f"?{EVERY_TYPE}&percent=100", "firehose": f"?{EVERY_TYPE}",
                "home": f"?{EVERY_TYPE}", "counts": f"?{EVERY_TYPE}&bucket=1s",
                "trends": "?window=5m&of=hashtags&bucket=1s", "many": "?"}[channel]

    def open(self, channel, transport, more="", gateway=None, **headers):
        gateway = gateway or self.gateway
        query = self.query(channel) + more
        if "hello" in more:
            query = query.replace("bucket=1s", "bucket=1d")  # keeps it silent
        stream = gateway.stream(CHANNELS[channel]["address"] + query, transport,
                                token=gateway.token(sub=self.ada), headers=headers)
        if channel == "many":
            say(stream, {"op": "subscribe", "id": "a", "filter": FILTER_OF_ALL})
            *stream.before, answer = until_answer(stream)
            assert kind(channel, answer) == "subscribed"
        return stream

    def live(self):
        """Creates a post, and returns the id."""
        return self.cli.run("post", "--user", "ada", "--lang", "en", "--geo", "-0.1,51.5", "Hello")


def kind(channel, message):
    return DESCRIPTION.message(channel, message.json)


def say(stream, message):
    """What the client sends is described as well."""
    assert DESCRIPTION.message("many", message, by_client=True) == message["op"]
    stream.send(json.dumps(message))


@pytest.fixture(scope="module")
def world(module_servers):
    return World(module_servers)


def until_answer(stream):
    """Reads up to the answer; posts of other tests may still come before it."""
    return stream.until(lambda message: "op" in message or "error" in message)


def without_case(name):
    return name.removeprefix("matched").lower()


@pytest.mark.parametrize("channel, transport", EVERYWHERE)
def test_events_are_as_described(world, channel, transport):
    with world.open(channel, transport) as stream:
        post = world.live()
        if channel == "trends":
            for login in ("ada", "bob"):
                world.cli.run("post", "--user", login, "#tea")
            told = stream.until(lambda message: message["terms"])
            assert {kind(channel, message) for message in told} == {"trends"}
            return
        if channel != "home":
            world.cli.run("follow", "ada", "bob")
            world.cli.run("unfollow", "ada", "bob")
        world.cli.run("user", "rename", "ada", f"Ada of {channel}, {transport}")
        world.cli.run("delete", "--user", "ada", post)
        if channel == "counts":
            told = stream.until(lambda message: message["deletes"] > 0)
            assert {kind(channel, message) for message in told} == {"counts"}
            return
        wanted = ["post", "user", "delete"] if channel == "home" else ["post", "follow", "unfollow", "user", "delete"]
        got = [stream.next() for _ in wanted]
    assert [without_case(kind(channel, message)) for message in got] == wanted
    for message in got if transport == "sse" else []:
        assert (message.sse_id, message.sse_event) == (message["id"], message.type)


def open_all(world, gateway, transport, more="", **headers):
    """Opens (channel, stream) for all channels that have the transport."""
    return [(channel, world.open(channel, transport, more, gateway, **headers))
            for channel in CHANNELS if transport in transports(channel)]


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "sse", "websocket"])
def test_messages_about_the_stream_are_as_described(world, servers, transport):
    # a client that has not answered a ping when the next one is due is disconnected
    gateway = servers.gateway(world.redis, "--keepalive-ms", 2000 if transport == "websocket" else 100)
    more, wanted = ("", set()) if transport == "sse" else ("&cursors=true", {"cursor"})
    wanted |= {"hello", "gap"}
    for channel, stream in open_all(world, gateway, transport, more + "&hello=true",
                                    **{"Last-Event-ID": "none"}):
        kinds = {kind(channel, message) for message in getattr(stream, "before", [])}
        while not wanted <= kinds:
            kinds.add(kind(channel, stream.next()))
        assert kinds == wanted
        stream.close()


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "sse", "websocket"])
def test_disconnects_are_as_described(world, servers, transport):
    gateway = servers.gateway(world.redis)
    streams = open_all(world, gateway, transport)
    gateway.begin_stop()
    for channel, stream in streams:
        *_, disconnect = stream.to_end()
        assert kind(channel, disconnect) == "disconnect" and disconnect["code"] == "draining"


def test_warnings_are_as_described(servers):
    redis = servers.redis()  # what is published here must not affect other tests
    gateway = servers.gateway(redis, "--max-owed-bytes", 65536)
    with gateway.stream("/v1/stream/firehose", "ndjson", receive_buffer=4096) as stream:
        for number in range(1, 101):  # 10 MB: more than a socket accepts
            redis.publish(events.dump(events.post(number, "x" * 100000)))
            if number % 10 == 0:
                eventually(lambda: gateway.metrics()["sluice_matches_total"] >= number, "they are matched")
        eventually(lambda: gateway.metrics()["sluice_streams_fallen_behind_total"] == 1, "it is behind")
        got = stream.until(lambda message: message.type == "warning", 60)
    assert kind("firehose", got[-1]) == "warning"
    assert {kind("firehose", message) for message in got} <= {"post", "gap", "warning"}


def test_answers_are_as_described(world):
    stream = world.open("many", "websocket")
    asked = [({"op": "subscribe", "id": "b", "filter": {"track": "tea"}, "more": True}, "subscribed"),
             ({"op": "list"}, "rules"), ({"op": "list", "id": "x"}, "rules"),
             ({"op": "open", "id": "o", "path": "/v1/stream/counts?bucket=1d&refresh_ms=100&track=nothing"}, "opened"),
             ({"op": "list"}, "rules"), ({"op": "close", "id": "o"}, "closed"),
             ({"op": "close", "id": "o"}, "refused"),
             ({"op": "token", "token": world.gateway.token(sub=world.ada)}, "renewed"),
             ({"op": "token", "token": "nonsense"}, "refused"),
             ({"op": "unsubscribe", "id": "b"}, "unsubscribed"),
             ({"op": "unsubscribe", "id": "b"}, "refused"),
             ({"op": "subscribe", "id": "c", "filter": {"track": "!!!"}}, "refused"),
             ({"op": "subscribe", "id": "c", "filter": {}}, "refused")]
    for message, answer in asked:
        say(stream, message)
        if answer == "opened":
            assert kind("many", stream.until(lambda message: message.type == "counts")[-1]) == "ofOpened"
            continue
        assert kind("many", until_answer(stream)[-1]) == answer, message
    for text in ("no JSON", "[]", "{}", '{"op":"dance"}', '{"op":"subscribe","id":"?","filter":{}}'):
        stream.send(text)
        assert kind("many", until_answer(stream)[-1]) == "refused", text
    stream.close()


@pytest.mark.parametrize("channel", [channel for channel in CHANNELS if channel != "many"])
def test_a_new_token_is_answered_as_described(world, channel):
    with world.open(channel, "websocket") as stream:
        for token, answer in ((world.gateway.token(sub=world.ada), "renewed"), ("nonsense", "refused")):
            stream.send(json.dumps({"op": "token", "token": token}))
            assert kind(channel, until_answer(stream)[-1]) == answer


def refusal(world, channel, parameter, value):
    """Returns the error of the answer; None: it was accepted."""
    needed = {"filter": "track=tea", "counts": "bucket=1d", "trends": "bucket=1d&window=5m&of=words"}.get(channel, "")
    query = "&".join(pair for pair in needed.split("&") if not pair.startswith(parameter + "="))
    query += "&max_rate=1" if parameter in ("pick", "latest_by", "cell_degrees") and channel not in ("counts", "trends") else ""
    query += "&latest_by=cell" if parameter == "cell_degrees" and channel not in ("counts", "trends") else ""
    query += "&since=-1h&until=%2B1h" if parameter == "max" and channel not in ("counts", "trends") else ""
    query += "&by=cell" if parameter == "cell_degrees" and channel == "counts" else ""
    target = f"{CHANNELS[channel]['address']}?{query}&{parameter}={quote(value)}"
    headers = {"Authorization": "Bearer " + world.gateway.token(sub=world.ada)}
    if channel == "many":
        connection, response = upgrade(world.gateway.port, target, headers)
        connection.close()
        return None if response.status == 101 else response.json["error"]
    try:
        world.gateway.stream(target, headers=headers).close()
        return None
    except Refused as refused:
        return refused.response.json["error"]


@pytest.mark.parametrize("channel", CHANNELS)
def test_parameters_are_those_of_the_server(world, channel):
    described = DESCRIPTION.parameters(channel)
    for name, schema in PARAMETERS.items():
        if name in ("access_token", "ticket"):
            continue  # here it is in a header, and two are refused
        for value in schema.get("examples") or schema.get("enum") or [schema["const"]]:
            error = refusal(world, channel, name, value)
            is_taken = not error or error["code"] == "unknown_dictionary"  # there is none, but there could be
            assert is_taken == (name in described), (name, value, error)
            if error:
                assert error["param"] == name
                DESCRIPTION.validator({"$ref": "#/components/schemas/Fault"}).validate(error)
    assert refusal(world, channel, "no_such", "1")["param"] == "no_such"
    assert set(described) <= set(PARAMETERS)


@pytest.mark.parametrize("channel, parameter", [
    ("counts", "cell_degrees"), ("counts", "refresh_ms"), ("firehose", "max_rate"), ("firehose", "max"),
    ("firehose", "cell_degrees"), ("firehose", "gather_ms"), ("trends", "limit")])
def test_ranges_are_those_of_the_server(world, channel, parameter):
    """A refusal names the range; the description has the same numbers."""
    numbers = re.compile(r"\d+(?:\.\d+)?")
    said = numbers.findall(refusal(world, channel, parameter, "-1")["message"])
    assert len(said) == 2
    assert set(said) <= set(numbers.findall(DESCRIPTION.parameters(channel)[parameter]["description"]))


def test_defaults_are_said():
    """Of each parameter of counts, trends and a pace that may be absent; ("Without it ..." or a default)."""
    for name in ("by", "refresh_ms", "max_rate", "pick", "on_slow", "limit", "percent", "language", "partition", "gather_ms"):
        assert "default" in PARAMETERS[name] or re.search("default|without it", PARAMETERS[name]["description"]), name


def test_what_it_says_of_disconnects_is_what_the_page_says():
    page = (programs.SOURCE / "docs/streaming-api.md").read_text()
    codes = re.findall(r"^\| `(\w+)` \| ([\d, ]+) \|", page, re.M)
    disconnect = DESCRIPTION.document["components"]
    assert [code for code, _ in codes] == \
        disconnect["schemas"]["Disconnect"]["properties"]["code"]["enum"]
    said = disconnect["messages"]["disconnect"]["description"]
    for code, numbers in codes:
        for number in numbers.split(", "):
            assert re.search(rf"{code} [\d, or\n]*{number}", said), (code, number)


def test_the_description_is_sound():
    components = DESCRIPTION.document["components"]
    for schema in components["schemas"].values():
        jsonschema.Draft7Validator.check_schema(schema)
    for name, message in components["messages"].items():
        for example in message.get("examples", []):
            DESCRIPTION.validator(message["payload"]).validate(example["payload"])
        assert name.startswith("matched") or message["examples"]
    used = set()

    def look(thing):
        for key, value in thing.items() if isinstance(thing, dict) else enumerate(thing):
            if key == "$ref":
                assert DESCRIPTION.resolve(thing)
                used.add(value.rsplit("/", 1)[1])
            elif isinstance(value, (dict, list)):
                look(value)
    look(DESCRIPTION.document)
    assert set(components["messages"]) <= used
