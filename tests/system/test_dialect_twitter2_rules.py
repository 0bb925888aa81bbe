"""X's API, version 2: the rules of the filtered stream, which are stored for a subject."""

import base64
import datetime
import hashlib
import itertools
import json
import queue
import threading
import uuid

import pytest

from harness import events
from harness.cli import Cli
from harness.streams import Refused
from harness.waiting import eventually

STREAM = "/2/tweets/search/stream"
RULES = STREAM + "/rules"
PROBLEMS = "https://api.x.com/2/problems/"


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--dialects", "twitter2")


@pytest.fixture
def tweepy():
    return pytest.importorskip("tweepy", reason="this Debian has no python3-tweepy")


class Subject:
    """A new subject without rules."""

    def __init__(self, gateway, **claims):
        self.gateway, self.claims = gateway, {"sub": uuid.uuid4().hex, **claims}

    @property
    def bearer(self):
        return self.gateway.bearer(**self.claims)

    def ask(self, method="GET", query="", body=None, path=RULES):
        headers = {**self.bearer, **({"Content-Type": "application/json"} if body is not None else {})}
        with self.gateway.connect() as connection:
            answer = connection.request(method, path + query, headers=headers,
                                        body=json.dumps(body).encode() if body is not None else None)
        return answer.status, json.loads(answer.body)

    def add(self, *values, query="", tag=None):
        rules = [{"value": value, **({"tag": tag} if tag is not None else {})} for value in values]
        return self.ask("POST", query, {"add": rules})

    def added(self, *values, **more):
        status, answer = self.add(*values, **more)
        assert status == 201, answer
        return [rule["id"] for rule in answer["data"]]

    def delete(self, query="", **which):
        return self.ask("POST", query, {"delete": which})

    def values(self):
        return [rule["value"] for rule in self.ask()[1].get("data", [])]


@pytest.fixture
def subject(gateway):
    return Subject(gateway)


def test_rules_are_added_listed_and_deleted(subject):
    status, answer = subject.ask()
    assert (status, set(answer), answer["meta"]["result_count"]) == (200, {"meta"}, 0)
    status, answer = subject.add("cat has:media -grumpy", tag="cats")
    assert status == 201 and answer["meta"]["sent"].endswith("Z")
    assert answer["meta"]["summary"] == {"created": 1, "not_created": 0, "valid": 1, "invalid": 0}
    number = answer["data"][0]["id"]
    assert number.isdigit() and len(number) <= 19
    assert answer["data"] == [{"id": number, "value": "cat has:media -grumpy", "tag": "cats"}]
    second, third = subject.added("dog", "#tea OR 茶")
    status, answer = subject.ask()
    assert answer["data"][1:] == [{"id": second, "value": "dog"}, {"id": third, "value": "#tea OR 茶"}]
    assert answer["data"][0]["tag"] == "cats" and answer["meta"]["result_count"] == 3
    status, answer = subject.delete(ids=[second])
    assert status == 200 and answer["meta"]["summary"] == {"deleted": 1, "not_deleted": 0}
    assert subject.values() == ["cat has:media -grumpy", "#tea OR 茶"]
    status, answer = subject.delete(values=["cat has:media -grumpy", "fox"])
    assert status == 200 and answer["meta"]["summary"] == {"deleted": 1, "not_deleted": 1}
    assert answer["errors"][0]["type"] == PROBLEMS + "invalid-request"
    assert subject.values() == ["#tea OR 茶"]


def test_pages_and_some_of_them(subject):
    ids = subject.added(*(f"word{i}" for i in range(5)))
    status, answer = subject.ask(query="?max_results=2")
    assert [rule["id"] for rule in answer["data"]] == ids[:2]
    status, answer = subject.ask(query=f"?max_results=2&pagination_token={answer['meta']['next_token']}")
    assert [rule["id"] for rule in answer["data"]] == ids[2:4] and answer["meta"]["result_count"] == 2
    status, answer = subject.ask(query=f"?max_results=2&pagination_token={answer['meta']['next_token']}")
    assert [rule["id"] for rule in answer["data"]] == ids[4:] and "next_token" not in answer["meta"]
    status, answer = subject.ask(query=f"?ids={ids[3]},{ids[1]},17")
    assert [rule["id"] for rule in answer["data"]] == [ids[1], ids[3]]


def test_a_rule_that_is_there_is_not_added_again(subject):
    number, = subject.added("cat")
    status, answer = subject.add("cat", tag="other")
    assert status == 200 and "data" not in answer
    assert answer["meta"]["summary"] == {"created": 0, "not_created": 1, "valid": 0, "invalid": 1}
    assert answer["errors"] == [{"value": "cat", "id": number, "title": "DuplicateRule",
                                 "type": PROBLEMS + "duplicate-rules"}]
    status, answer = subject.add("dog", "cat", "dog")
    assert status == 201 and answer["meta"]["summary"] == {"created": 1, "not_created": 2, "valid": 1, "invalid": 2}
    assert subject.values() == ["cat", "dog"]


def test_of_rules_that_are_none_nothing_is_added(subject):
    status, answer = subject.add("cat", "cat context:12.34", "-dog")
    assert status == 400 and answer["meta"]["summary"] == {"created": 0, "not_created": 3, "valid": 1, "invalid": 2}
    first, second = answer["errors"]
    assert (first["value"], first["title"]) == ("cat context:12.34", "UnprocessableEntity")
    assert first["type"] == PROBLEMS + "invalid-rules"
    assert first["details"] == ["Reference to invalid operator 'context'. Operator is not available (at position 5)"]
    assert second["value"] == "-dog" and second["details"][0]
    assert subject.values() == []


def test_a_dry_run_changes_nothing(subject):
    subject.added("cat")
    status, answer = subject.add("dog", query="?dry_run=true")
    assert (status, answer["meta"]["summary"]["created"], answer["data"][0]["value"]) == (201, 1, "dog")
    status, answer = subject.delete(values=["cat"], query="?dry_run=true")
    assert answer["meta"]["summary"]["deleted"] == 1
    assert subject.values() == ["cat"]


def test_all_of_them_are_deleted(subject):
    subject.added("cat", "dog")
    status, answer = subject.ask("POST", "?delete_all=true", {})
    assert (status, answer["meta"]["summary"]) == (200, {"deleted": 2, "not_deleted": 0})
    assert subject.values() == []


@pytest.mark.parametrize("body", [{"add": [{"value": "fox"}]}, {"delete": {"values": ["cat"]}}, [], "all"])
def test_all_of_them_are_deleted_only_if_nothing_else_is_asked_for(subject, body):
    subject.added("cat", "dog")
    status, problem = subject.ask("POST", "?delete_all=true", body)
    assert (status, problem["type"]) == (400, PROBLEMS + "invalid-request")
    assert subject.values() == ["cat", "dog"]


def test_no_more_than_the_token_permits(gateway):
    subject = Subject(gateway, lim={"rules": 2})
    subject.added("cat")
    status, answer = subject.add("dog", "fox")
    assert status == 422 and answer["errors"][0]["type"] == PROBLEMS + "rule-cap"
    assert subject.values() == ["cat"]
    subject.added("dog")
    status, answer = subject.ask(path=RULES + "/counts")
    assert status == 200 and answer["data"]["cap_per_project"] == 2
    assert answer["data"]["client_app_rules_count"] == {"client_app_id": subject.claims["sub"], "rule_count": 2}


def test_everybody_has_their_own(gateway, subject):
    subject.added("cat")
    assert Subject(gateway).values() == []


def test_writers_at_once_lose_nothing_of_each_other(module_servers, redis, gateway):
    other = module_servers.gateway(redis, "--dialects", "twitter2")
    ours = Subject(gateway)
    theirs = Subject(other, **ours.claims)
    threads = [threading.Thread(target=lambda one=one, n=n: [one.added(f"w{n}x{i}") for i in range(3)])
               for n, one in enumerate([ours, theirs] * 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ours.values()) == sorted(f"w{n}x{i}" for n in range(4) for i in range(3))


@pytest.mark.parametrize("method, query, body", [
    ("POST", "", {}), ("POST", "", {"add": []}), ("POST", "", {"add": [{"tag": "a"}]}), ("POST", "", [1]),
    ("POST", "", {"add": [{"value": "a"}], "delete": {"ids": ["1"]}}), ("POST", "", {"delete": {"ids": ["a"]}}),
    ("POST", "", {"add": [{"value": "a", "tag": "b" * 256}]}), ("POST", "?dry_run=perhaps", {"add": [{"value": "a"}]}),
    ("GET", "?max_results=0", None), ("GET", "?ids=1,a", None), ("GET", "?pagination_token=a", None),
    ("GET", "?dry_run=true", None), ("GET", "?tea=1", None)])
def test_bad_requests(subject, method, query, body):
    status, problem = subject.ask(method, query, body)
    assert (status, problem["type"], problem["title"]) == (400, PROBLEMS + "invalid-request", "Invalid Request")
    assert problem["errors"][0]["message"]


def test_a_body_that_is_not_called_json(gateway, subject):
    with gateway.connect() as connection:
        answer = connection.request("POST", RULES, headers=subject.bearer, body=b'{"add":[{"value":"cat"}]}')
    assert answer.status == 400 and "Content-Type" in json.loads(answer.body)["errors"][0]["message"]


def test_whose_token_does_not_cover_it(gateway):
    status, problem = Subject(gateway, scope="stream:sample").ask()
    assert status == 403 and problem["type"] == PROBLEMS + "client-forbidden"
    with gateway.connect() as connection:
        assert connection.request("GET", RULES, headers={}).status == 401


def tweepy_client(gateway, token, kind):
    """Unmodified, except that its requests go to the gateway."""
    import requests

    class ToGateway(requests.adapters.HTTPAdapter):
        def send(self, request, **arguments):
            request.url = request.url.replace("https://api.twitter.com", gateway.url)
            return super().send(request, **arguments)

    client = kind(token)
    client.session.mount("https://api.twitter.com", ToGateway())
    return client


def test_rules_by_tweepy(tweepy, gateway, subject):
    client = tweepy_client(gateway, gateway.token(**subject.claims), tweepy.StreamingClient)
    assert client.get_rules().data is None
    answer = client.add_rules([tweepy.StreamRule("cat", "cats"), tweepy.StreamRule("dog")])
    assert [(rule.value, rule.tag) for rule in answer.data] == [("cat", "cats"), ("dog", None)]
    assert client.add_rules(tweepy.StreamRule("fox"), dry_run=True).meta["summary"]["created"] == 1
    assert client.add_rules(tweepy.StreamRule("cat")).errors[0]["title"] == "DuplicateRule"
    with pytest.raises(tweepy.BadRequest):
        client.add_rules(tweepy.StreamRule("cat context:1.2"))
    rules = client.get_rules().data
    assert [rule.value for rule in rules] == ["cat", "dog"]
    assert client.delete_rules(rules[0]).meta["summary"]["deleted"] == 1
    assert client.delete_rules([rule.id for rule in rules[1:]]).meta["summary"]["deleted"] == 1
    assert client.get_rules().data is None




def stream(subject, query="", gateway=None):
    gateway = gateway or subject.gateway
    return gateway.stream(STREAM + query, token=gateway.token(**subject.claims))


def posted_ms(number):
    return number // 4096 + 1767225600000


def moment(ms):
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def matched(message):
    """Returns the text, and the tags of the rules."""
    return message.json["data"]["text"], [rule["tag"] for rule in message.json["matching_rules"]]


def test_a_post_comes_once_with_all_the_rules_that_it_matches(subject, publish):
    first, = subject.added("cat", tag="cats")
    second, = subject.added("#tea -milk")
    with stream(subject) as one:
        publish(events.post(114677036875776, "nothing"))
        publish(events.post(114677036875777, "a cat drinks #tea"))
        publish(events.delete(114677036875778, events.post(114677036875777, "a cat drinks #tea")))
        publish(events.post(114677036875779, "#tea with milk for the cat"))
        line = one.next()
        assert line.json["data"]["id"] == "114677036875777" and line.raw.endswith(b"}")
        assert line.json["matching_rules"] == [{"id": first, "tag": "cats"}, {"id": second, "tag": ""}]
        assert matched(one.next()) == ("#tea with milk for the cat", ["cats"])


def test_a_stream_needs_rules(subject):
    with pytest.raises(Refused) as refused:
        stream(subject)
    problem = json.loads(refused.value.response.body)
    assert refused.value.response.status == 409
    assert (problem["type"], problem["connection_issue"]) == (PROBLEMS + "streaming-connection", "RuleConfigurationIssue")


def test_a_stream_of_a_token_that_does_not_cover_it(gateway):
    with pytest.raises(Refused) as refused:
        stream(Subject(gateway, scope="stream:sample"))
    assert refused.value.response.status == 403


def test_a_stream_takes_what_streams_of_x_take(subject, publish):
    subject.added("cat")
    with stream(subject, "?expansions=author_id&tweet.fields=lang") as one:
        publish(events.post(114677036876000, "cat", user="7", login="eve", lang="en"))
        message = one.next().json
        assert message["data"]["lang"] == "en" and message["includes"]["users"][0]["username"] == "eve"
        assert message["matching_rules"]
    with pytest.raises(Refused) as refused:
        stream(subject, "?partition=1")
    assert refused.value.response.status == 400


def test_what_has_passed_is_matched_too(subject, redis):
    cli = Cli(redis)
    cli.run("user", "add", "backfill")
    cli.run("post", "--user", "backfill", "a fox of before")
    subject.added("fox", tag="foxes")
    with stream(subject, "?backfill_minutes=5") as one:
        assert matched(one.next()) == ("a fox of before", ["foxes"])


def test_a_span_of_the_past_is_matched_and_then_the_stream_ends(subject, redis):
    cli = Cli(redis)
    cli.run("user", "add", "spans")
    ids = [int(cli.run("post", "--user", "spans", f"a badger {i}")) for i in range(3)]
    subject.added("badger", tag="badgers")
    span = f"?start_time={moment(posted_ms(ids[0]))}&end_time={moment(posted_ms(ids[-1]) + 1000)}"
    with stream(subject, span) as one:
        assert [matched(message) for message in one.to_end()] == [(f"a badger {i}", ["badgers"]) for i in range(3)]


def test_rules_change_while_a_stream_is_open(subject, publish):
    first, = subject.added("cat", tag="old")
    with stream(subject) as one:
        publish(events.post(114677036880000, "cat and dog"))
        assert matched(one.next()) == ("cat and dog", ["old"])
        assert "date" in one.response.headers
        subject.added("dog", tag="new")
        publish(events.post(114677036880001, "cat and dog again"))
        assert matched(one.next()) == ("cat and dog again", ["old", "new"])
        subject.delete(ids=[first])
        publish(events.post(114677036880002, "a cat"))
        publish(events.post(114677036880003, "a dog"))
        assert matched(one.next()) == ("a dog", ["new"])
        subject.ask("POST", "?delete_all=true", {})
        publish(events.post(114677036880004, "a dog of nobody"))
        subject.added("fox", tag="last")
        publish(events.post(114677036880005, "a fox"))
        assert matched(one.next()) == ("a fox", ["last"])


def wait_until_all_hear(subject, *gateways, streams):
    """Each gateway is asked by each: one that has just started may not be subscribed to the others yet."""
    def all_hear():
        answers = [Subject(gateway, **{**subject.claims, "scope": "read"}).ask(path="/v1/connections")[1]
                   for gateway in gateways]
        return all(answer["complete"] and len(answer["items"]) == streams for answer in answers)

    eventually(all_hear, "that all gateways hear each other")


def test_rules_change_at_all_gateways_before_the_answer(module_servers, redis, gateway, subject, publish):
    """What is posted after the answer is matched with the new rules, on any gateway."""
    other = module_servers.gateway(redis, "--dialects", "twitter2", "--workers", 2)
    subject.added("cat")
    with stream(subject) as here, stream(subject, gateway=other) as there:
        wait_until_all_hear(subject, gateway, other, streams=2)
        for round in range(10):
            word = f"word{round}"
            Subject((gateway, other)[round % 2], **subject.claims).added(word, tag=word)
            publish(events.post(114677036890000 + round, f"cat {word}"))
            for one in (here, there):
                assert matched(one.next()) == (f"cat {word}", ["", word])


def test_a_rule_that_stays_has_no_hole(module_servers, redis, gateway, subject, publish):
    other = module_servers.gateway(redis, "--dialects", "twitter2")
    subject.added("cat")
    done = threading.Event()
    changes = []

    def change():
        while not done.is_set() or not changes:
            changes.append(subject.added(f"a{len(changes)}", f"b{len(changes)}"))
            subject.delete(ids=changes[-1])

    thread = threading.Thread(target=change)
    with stream(subject) as here, stream(subject, gateway=other) as there:
        thread.start()
        for i in range(1000):
            publish(events.post(114677098000000 + i, f"cat a{i % 50} b{i % 30}"))
        done.set()
        thread.join(60)
        for one in (here, there):
            ids = [int(one.next().json["data"]["id"]) for _ in range(1000)]
            assert ids == list(range(114677098000000, 114677098001000))


def test_whoever_was_not_told_finds_out(redis, gateway, subject, publish):
    subject.added("aardvark")
    name = base64.urlsafe_b64encode(hashlib.sha256(subject.claims["sub"].encode()).digest()).decode().rstrip("=")
    with stream(subject) as one:
        key = next(key for key in (f"sluice:{{{shard}}}:rules:{name}" for shard in range(64))
                   if redis.client.hget(key, "version"))
        version = int(redis.client.hget(key, "version")) + 1
        redis.client.hset(key, mapping={"version": version, str(version * 1000): '{"value":"dog","tag":"later"}'})
        numbers = itertools.count(114677100000000)

        def is_followed():
            publish(events.post(next(numbers), "aardvark dog"))
            return matched(one.next())[1] == ["", "later"]

        eventually(is_followed, "the rule that nobody was told of")


def test_a_stream_by_tweepy_while_rules_change(tweepy, gateway, subject, publish):
    received, connected = queue.Queue(), threading.Event()

    class Listener(tweepy.StreamingClient):
        def on_connect(self):
            connected.set()

        def on_response(self, response):
            received.put((response.data.text, [rule.tag for rule in response.matching_rules]))

    token = gateway.token(**subject.claims)
    client = tweepy_client(gateway, token, Listener)
    cat = client.add_rules(tweepy.StreamRule("cat", "cats")).data[0]
    thread = client.filter(threaded=True)
    try:
        assert connected.wait(60)
        publish(events.post(114677036899000, "cat and dog"))
        assert received.get(timeout=60) == ("cat and dog", ["cats"])
        client.add_rules(tweepy.StreamRule("dog"))
        publish(events.post(114677036899001, "cat and dog again"))
        assert received.get(timeout=60) == ("cat and dog again", ["cats", ""])
        client.delete_rules(cat)
        publish(events.post(114677036899002, "cat"))
        publish(events.post(114677036899003, "dog"))
        assert received.get(timeout=60) == ("dog", [""])
    finally:
        client.disconnect()
        publish(events.post(114677036899004, "dog"))  # when something arrives it checks whether it should end
        thread.join(60)
