"""/v1/stream: many named filters on one WebSocket, changed by messages while events arrive."""

import json

import pytest

from harness import events
from harness.streams import Refused
from harness.websocket import TEXT

pytestmark = pytest.mark.wires


class Client:
    """A client of /v1/stream; say() returns the answer, and keeps events that came before it."""

    def __init__(self, gateway, target="/v1/stream", **token):
        self.stream = gateway.stream(target, "raw-websocket", token=gateway.token(**token))
        self.early = []

    def say(self, message):
        self.stream.send_frame(TEXT, message if isinstance(message, str) else json.dumps(message))
        while (answer := self.stream.next()).type:
            self.early.append(answer)
        return answer.json

    def subscribe(self, name, answered="subscribed", **parameters):
        answer = self.say({"op": "subscribe", "id": name, "filter": parameters})
        assert answer == {"op": answered, "id": name}

    def next(self):
        """Returns (event id, [(id, tag), ...] of the filters that matched)."""
        message = self.early.pop(0) if self.early else self.stream.next()
        return message["id"], [(r["id"], r.get("tag")) for r in message["matching_rules"]]


@pytest.fixture
def client(gateway):
    return Client(gateway)


def test_each_delivery_says_which_filters_matched(client, publish):
    client.subscribe("a", track="kite")
    client.subscribe("b", track="kite,balloon", tag="in the air")
    client.subscribe("c", follow="7")
    publish(events.post(1, "a kite"))
    publish(events.post(2, "a balloon", user="7"))
    publish(events.post(3, "nothing"))
    publish(events.post(4, "a kite", user="7"))
    assert client.next() == ("1", [("a", None), ("b", "in the air")])
    assert client.next() == ("2", [("b", "in the air"), ("c", None)])
    assert client.next() == ("4", [("a", None), ("b", "in the air"), ("c", None)])


def test_words_near_each_other_and_polygons_are_named(client, publish):
    client.subscribe("near", rule='"kite balloon"~1')
    client.subscribe("here", rule="polygon:[8.2 46.8, 8.9 46.8, 8.5 47.3]", tag="lake")
    publish(events.post(1, "a balloon, a kite", geo={"lon": 8.5, "lat": 47.0}))
    publish(events.post(2, "a balloon and a kite", geo={"lon": 8.2, "lat": 47.0}))
    publish(events.post(3, "kite balloon"))
    assert client.next() == ("1", [("near", None), ("here", "lake")])
    assert client.next() == ("3", [("near", None)])
    refused = client.say({"op": "subscribe", "id": "bad", "filter": {"rule": "tea polygon:[1 2, 3 4 5, 6 7]"}})
    assert refused["error"]["at"] == len("tea polygon:[1 2, ")
    assert refused["error"]["code"] == "bad_polygon"
    assert "at character 19: tea polygon:[1 2, ^3 4 5, 6 7]" in refused["error"]["message"]


def test_shared_part_is_the_event(client, publish):
    client.subscribe("a", track="kite")
    event = events.post(5, "kite", mood="☀")
    publish(events.dump(event))
    message = client.stream.next()
    got = dict(message.json)
    assert got.pop("matching_rules") == [{"id": "a"}] and got == {**event, "cursor": got["cursor"]}


def test_unsubscribe_and_list(client, publish):
    client.subscribe("a", track="kite")
    client.subscribe("b", track="kite", tag="t")
    assert client.say({"op": "list"})["rules"] == [{"id": "a"}, {"id": "b", "tag": "t"}]
    assert client.say({"op": "unsubscribe", "id": "a"}) == {"op": "unsubscribed", "id": "a"}
    publish(events.post(6, "kite"))
    assert client.next() == ("6", [("b", "t")])
    assert client.say({"op": "unsubscribe", "id": "a"})["error"]["code"] == "no_such_filter"
    assert client.say({"op": "unsubscribe", "id": "b"}) == {"op": "unsubscribed", "id": "b"}
    assert client.say({"op": "list"})["rules"] == []


def test_an_answer_comes_behind_events_that_are_gathered(gateway, publish):
    client = Client(gateway, "/v1/stream?gather_ms=1000")
    client.subscribe("a", track="kite")
    with gateway.stream("/v1/stream/filter?track=kite&gather_ms=0") as neighbour:
        for number in range(1, 4):  # the first is sent at once
            publish(events.post(number, "kite"))
        neighbour.until(3)
    client.say({"op": "unsubscribe", "id": "a"})
    assert [event["id"] for event in client.early] == ["1", "2", "3"]


def test_replacing_goes_to_the_end_of_the_order(client, publish):
    client.subscribe("a", track="kite")
    client.subscribe("b", track="kite")
    client.subscribe("a", track="kite,balloon")
    publish(events.post(7, "kite"))
    assert client.next() == ("7", [("b", None), ("a", None)])


def test_replacing_misses_and_doubles_nothing(client, redis):
    """Events arrive while a filter is replaced by itself again and again."""
    client.subscribe("a", track="kite")
    for round_ in range(20):
        numbers = range(round_ * 50 + 1, round_ * 50 + 51)
        redis.publish_many(events.dump(events.post(number, "kite")) for number in numbers)
        client.subscribe("a", track="kite" if round_ % 2 else "kite,kites")
    assert [client.next() for _ in range(1000)] == \
        [(str(n), [("a", None)]) for n in range(1, 1001)]


@pytest.mark.parametrize("message, code", [
    ("hello", "bad_json"), ("[]", "bad_json"), ("", "bad_json"), ("{", "bad_json"),
    ('{"op":"dance"}', "unknown_op"), ("{}", "unknown_op"), ('{"op":5}', "unknown_op"),
    ('{"op":"subscribe","filter":{"track":"a"}}', "bad_id"),
    ('{"op":"subscribe","id":"a b","filter":{"track":"a"}}', "bad_id"),
    ('{"op":"subscribe","id":"%s","filter":{"track":"a"}}' % ("x" * 65), "bad_id"),
    ('{"op":"subscribe","id":5,"filter":{"track":"a"}}', "bad_id"),
    ('{"op":"subscribe","id":"a"}', "no_filter"), ('{"op":"subscribe","id":"a","filter":[]}', "no_filter"),
    ('{"op":"subscribe","id":"a","track":"tea"}', "no_filter"),
    ('{"op":"subscribe","id":"a","filter":{}}', "no_selector"),
    ('{"op":"subscribe","id":"a","filter":{"track":5}}', "bad_type"),
    ('{"op":"subscribe","id":"a","filter":{"track":"a","tag":"%s"}}' % ("x" * 256), "bad_tag"),
    ('{"op":"subscribe","id":"a","filter":{"track":"!!!"}}', "empty_keyword"),
    ('{"op":"subscribe","id":"a","filter":{"rule":"-x"}}', "rule_too_broad"),
    ('{"op":"subscribe","id":"a","filter":{"track":"\\ud800"}}', "bad_json"),
    ('{"op":"unsubscribe","id":"nothing"}', "no_such_filter"), ('{"op":"unsubscribe"}', "bad_id"),
])
def test_errors_are_answers(client, publish, message, code):
    answer = client.say(message)
    assert answer["error"]["code"] == code and answer["error"]["message"], answer
    client.subscribe("still", track="kite")
    publish(events.post(8, "kite"))
    assert client.next() == ("8", [("still", None)])


def test_refused_replacement_changes_nothing(client, publish):
    client.subscribe("a", track="kite")
    answer = client.say({"op": "subscribe", "id": "a", "filter": {"track": "!!!"}})
    assert answer["id"] == "a" and answer["error"]["code"] == "empty_keyword"
    publish(events.post(9, "kite"))
    assert client.next() == ("9", [("a", None)])


def test_limits_and_scopes(gateway):
    client = Client(gateway, scope="stream:filter", lim={"rules": 2})
    client.subscribe("a", track="kite")
    client.subscribe("b", track="kite")
    assert client.say({"op": "subscribe", "id": "c", "filter": {"track": "x"}})["error"]["code"] == \
        "too_many_rules"
    client.subscribe("a", track="other")  # replaces an old one
    for parameters in ({"firehose": True}, {"sample": "1"}, {"firehose": True, "types": "post"}):
        answer = client.say({"op": "subscribe", "id": "b", "filter": parameters})
        assert answer["error"]["code"] in ("not_permitted", "insufficient_scope"), answer
    client.subscribe("b", firehose=True, types="delete")  # only ids: needs no further scope


def test_hundreds_of_filters_come_and_go(gateway, publish):
    client = Client(gateway, lim={"rules": 500})
    for number in range(400):
        client.subscribe(f"r{number}", track=f"word{number},all")
    for number in range(0, 400, 2):
        assert "error" not in client.say({"op": "unsubscribe", "id": f"r{number}"})
    publish(events.post(10, "word7 word8"))
    publish(events.post(11, "all"))
    assert client.next() == ("10", [("r7", None)])
    assert client.next() == ("11", [(f"r{n}", None) for n in range(1, 400, 2)])


def test_other_transports_are_refused(gateway):
    for transport in ("ndjson", "sse"):
        with pytest.raises(Refused) as refused:
            gateway.stream("/v1/stream", transport)
        assert refused.value.response.status in (400, 406, 426) and refused.value.response.error


def test_client_of_many_filters_that_stalls(gateway, redis, publish):
    client = Client(gateway)
    client.stream.close()
    stalled = gateway.stream("/v1/stream", "raw-websocket", receive_buffer=4096)
    stalled.send_frame(TEXT, json.dumps({"op": "subscribe", "id": "a", "filter": {"firehose": True}}))
    assert stalled.next().json == {"op": "subscribed", "id": "a"}
    neighbour = Client(gateway)
    neighbour.subscribe("a", firehose=True)
    for number in range(1, 151):
        redis.publish(events.dump(events.post(number, "x" * 3000)))
    assert [neighbour.next()[0] for _ in range(150)] == [str(n) for n in range(1, 151)]
    assert [m["id"] for m in stalled.until(150)] == [str(n) for n in range(1, 151)]
