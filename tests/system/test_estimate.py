"""Estimates of what a filter would match, compared with the log."""

import json
import os
import signal

import pytest

from harness import events
from harness.cli import Cli
from harness.redis_server import shard_of
from harness.waiting import eventually

PATH = "/v1/filters/estimate"
LANGS = ["en", "fr", "ja", None]


def write(folder, count):
    file = folder / "posts.jsonl"
    with open(file, "w") as out:
        for n in range(count):
            post = events.post(n + 1, f"post {n} w{n % 5}" + (" seldom" if n % 200 == 7 else ""), user=str(n % 11))
            if LANGS[n % 4]:
                post["post"]["lang"] = LANGS[n % 4]
            if n % 2:
                post["post"]["geo"] = {"lon": n % 7, "lat": n % 5}
            out.write(events.dump(post) + "\n")
    return file


@pytest.fixture(scope="module")
def filled(module_servers):
    """One gateway that has received some seconds of posts, and one that has received none of them."""
    redis = module_servers.redis()
    cli = Cli(redis)
    seen = module_servers.gateway(redis)
    cli.run("replay", write(redis.folder, 1500), "--rate", "600")
    cli.run("user", "add", "ada")
    posts = [cli.run("post", "--user", "ada", text) for text in ("pear one", "pear two", "pear three")]
    cli.run("delete", "--user", "ada", posts[2].strip())
    late = module_servers.gateway(redis)
    log = redis.log()
    eventually(lambda: ask(seen, {"track": "pear"})["events"] == 4, "all has passed")
    return log, seen, late


def post(gateway, body, headers=None, **claims):
    with gateway.connect() as connection:
        text = body if isinstance(body, str) else json.dumps(body)
        connection.send(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
                        f"{len(text.encode())}\r\n".encode() +
                        b"".join(f"{name}: {value}\r\n".encode()
                                 for name, value in {**gateway.bearer(**claims), **(headers or {})}.items()) +
                        b"\r\n" + text.encode())
        return connection.read_response("POST")


def ask(gateway, wanted, **more):
    response = post(gateway, {"filter": wanted, **more})
    assert response.status == 200, response
    return response.json


def words(event):
    return event["post"].get("text", "").split()


@pytest.mark.parametrize("wanted, wants", [
    ({"track": "w1"}, lambda event: "w1" in words(event)),
    ({"rule": "w1 lang:ja"}, lambda event: "w1" in words(event) and event["post"].get("lang") == "ja"),
    ({"rule": "lang:ja"}, lambda event: event["post"].get("lang") == "ja"),
    ({"track": "w1", "types": "delete"}, lambda event: False),
    ({"firehose": True}, lambda event: True),
    ({"track": "nowhere"}, lambda event: False)])
def test_the_ring_is_counted_as_the_log(filled, wanted, wants):
    log, seen, _ = filled
    types = wanted.get("types", "post,delete").split(",")
    passed = [event for event in log if event["type"] in types]
    expected = sum(map(wants, passed))
    answer = ask(seen, wanted)
    assert (answer["events"], answer["looked_at"]) == (expected, len(passed))
    assert answer["share"] == pytest.approx(expected / len(passed), rel=0.001)
    assert answer["per_second"] == pytest.approx(expected / answer["seconds"], rel=0.001)
    assert answer["per_second_low"] <= answer["per_second"] <= answer["per_second_high"]
    assert 60 <= answer["seconds"] < 600  # since the first event of all, or a minute: not an hour
    assert (answer["bytes_per_second"] > 50 * answer["per_second"]) == (expected > 0)
    newest = [event["id"] for event in reversed(passed) if wants(event) and event["type"] == "post"]
    told = [event["id"] for event in answer["examples"]]
    assert len(told) == min(5, len(newest)) and told == sorted(told, key=int, reverse=True)


def test_parts_and_what_brings_nothing(filled):
    log, seen, _ = filled
    answer = ask(seen, {"track": "w1, nowhere", "locations": "0,0,3,3", "rule": "w2 OR seldom"})
    parts = {(part["param"], part["value"]): part["events"] for part in answer["parts"]}
    count = {word: sum(word in words(event) for event in log) for word in ("w1", "w2", "seldom")}
    boxed = sum(event["post"]["geo"]["lon"] <= 3 and event["post"]["geo"]["lat"] <= 3 for event in log
                if event["type"] == "post" and "geo" in event["post"])
    assert parts == {("track", "w1"): count["w1"], ("track", "nowhere"): 0, ("locations", "0,0,3,3"): boxed,
                     ("rule", "w2"): count["w2"], ("rule", "seldom"): count["seldom"]}
    assert [w["message"] for w in answer["warnings"] if w["code"] == "part_brings_nothing"] == \
        [f"nowhere brings none of {answer['looked_at']} events"]

    answer = ask(seen, {"rule": "w1 -w3 lang:ga"})
    assert {part["value"]: (part["events"], part["without"]) for part in answer["parts"]} == \
        {"w1": (count["w1"], 0), "lang:ga": (0, count["w1"])}
    warning, = [w for w in answer["warnings"] if w["code"] == "nothing_matches"]
    assert warning["message"].endswith(f"without lang:ga it would be {count['w1']}") and warning["param"] == "rule"

    answer = ask(seen, {"rule": "country:FR", "language": "english"})
    assert [w["code"] for w in answer["warnings"]] == ["unknown_language", "wide_rule", "nothing_matches"]


def test_examples_are_not_deleted(filled):
    log, seen, _ = filled
    texts = [event["post"]["text"] for event in ask(seen, {"track": "pear"})["examples"]]
    assert texts == ["pear two", "pear one"]


def test_the_log_is_drawn_from_where_memory_does_not_reach(filled):
    log, _, late = filled
    begun = ask(late, {"track": "w1"})
    assert begun["events"] == 0 and begun["looked_at"] <= 4
    assert "short_time" in [warning["code"] for warning in begun["warnings"]]
    answer = ask(late, {"track": "w1,nowhere"}, since=str(int(log[0]["id"]) - 1))
    of_one_shard = sum(shard_of(event["id"]) == shard_of(log[0]["id"]) for event in log)
    assert min(of_one_shard // 2, 500) <= answer["looked_at"] <= 2000 and answer["seconds"] > 1.5
    assert abs(answer["share"] - 0.2) < 4 * (0.16 / answer["looked_at"]) ** 0.5
    parts = {part["value"]: part["events"] for part in answer["parts"]}
    assert parts == {"w1": answer["events"], "nowhere": 0} and answer["examples"] == []


@pytest.mark.parametrize("body, code, param, at", [
    ({"filter": {"rule": "tea OR"}}, "syntax", "rule", 6),
    ({"filter": {"rule": "-tea"}}, "rule_too_broad", "rule", 0),
    ({"filter": {"track": "a,!"}}, "empty_keyword", "track", 2),
    ({"filter": {"track": 1}}, "bad_type", "track", None),
    ({"filter": {}}, "no_selector", None, None),
    ({}, "no_filter", "filter", None),
    ({"filter": {"track": "a"}, "sinse": "-1m"}, "unknown_member", "sinse", None),
    ({"filter": {"track": "a"}, "since": 5}, "bad_type", "since", None),
    ({"filter": {"track": "a"}, "since": "soon"}, "bad_since", "since", None),
    ({"filter": {"track": "a"}, "since": "-2h"}, "bad_since", "since", None),
    ({"filter": {"track": "a"}, "since": "+5m"}, "bad_since", "since", None),
    ("[]", "bad_json", None, None),
    ("{", "bad_json", None, None)])
def test_what_is_wrong_is_told(filled, body, code, param, at):
    _, seen, _ = filled
    response = post(seen, body)
    error = response.error
    assert (response.status, error["code"], error.get("param"), error.get("at")) == (400, code, param, at), response


def test_scopes_and_limits_are_those_of_the_stream(filled):
    _, seen, _ = filled
    for scope, wanted, status in (("stream:filter", {"track": "tea"}, 200), ("stream:firehose", {"track": "tea"}, 403),
                                ("stream:filter", {"firehose": True}, 403), ("stream:firehose", {"firehose": True}, 200),
                                ("stream:sample", {"sample": "1"}, 200), ("read", {"track": "tea"}, 403)):
        assert post(seen, {"filter": wanted}, scope=scope).status == status, (scope, wanted)
    assert post(seen, {"filter": {"track": "a,b"}}, lim={"track": 1}).error["code"] == "too_many_phrases"
    assert post(seen, {"filter": {"track": "a"}}, {"Authorization": "Bearer x"}).status == 401
    assert post(seen, {"filter": {"track": "a"}}, {"Content-Type": "text/plain"}).status in (400, 415)
    with seen.connect() as connection:
        response = connection.request("GET", PATH, seen.bearer())
        assert (response.status, response.headers["allow"]) == (405, "POST, OPTIONS")


def test_only_so_many_at_a_time_and_none_for_ever(servers, cli_for):
    """The log cannot be read while Redis does not answer."""
    redis = servers.redis()
    cli_for(redis).run("replay", write(servers.folder, 10))
    gateway = servers.gateway(redis)
    text = json.dumps({"filter": {"track": "w1"}, "since": "-10m"}).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in gateway.bearer().items())
    request = f"POST {PATH} HTTP/1.1\r\nHost: x\r\n{head}Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    eventually(lambda: ask(gateway, {"track": "w1"}), "it is ready")
    waiting = [gateway.connect() for _ in range(2)]
    try:
        for pid in redis.pids:
            os.kill(pid, signal.SIGSTOP)
        for connection in waiting:
            connection.send(request.encode() + text)
        refused = eventually(lambda: (lambda r: r if r.status == 429 else None)(
            post(gateway, {"filter": {"track": "w1"}, "since": "-10m"})), "the others are worked on")
        assert refused.json["error"]["code"] == "too_many_estimates"
        for connection in waiting:
            response = connection.read_response("POST")
            assert response.status == 503 and response.json["error"]["code"] == "busy"
    finally:
        for pid in redis.pids:
            os.kill(pid, signal.SIGCONT)
        for connection in waiting:
            connection.close()


def test_the_command_tells_it_to_people(filled):
    log, seen, _ = filled
    cli = Cli()
    server = ["--url", f"http://127.0.0.1:{seen.port}", "--token", seen.token()]
    out = cli.run("estimate", *server, "pear OR nowhere").splitlines()
    assert "in the next ten minutes" in out[0] and out[1].startswith("from 4 of ")
    assert [line.split() for line in out[2:4]] == [["4", "rule:", "pear"], ["0", "rule:", "nowhere"]]
    assert out[4:] == ["", "such as", "  pear two", "  pear one"]
    assert "nowhere brings none of" in cli.done.stderr
    assert json.loads(cli.run("estimate", *server, "--json", "--track", "pear"))["events"] == 4
    cli.run("estimate", *server, "梨 colour:red", status=1)
    assert cli.done.stderr.endswith("    梨 colour:red\n       ^\n")
    cli.run("estimate", *server, "--track", "pear", "--percent", "200", status=1)
    assert "--percent" in cli.done.stderr
    cli.run("estimate", *server, status=2)
    cli.run("estimate", "--url", "http://127.0.0.1:1", "--token", "x", "tea", status=1)


def test_only_public_posts_are_estimated(servers, cli_for):
    """From memory and from the log; also for their author."""
    redis = servers.redis()
    cli, gateway = cli_for(redis), servers.gateway(redis)
    ada = cli.run("user", "add", "ada")
    for audience in ("followers", f"only:{ada}", "public"):
        last = cli.run("post", "--user", "ada", "--audience", audience, f"fig for {audience}")
    wanted = {"filter": {"track": "fig"}}

    def brought(**more):
        return post(gateway, {**wanted, **more}, sub=ada).json

    eventually(lambda: brought()["events"] > 0, "the last one has passed")
    for answer in (brought(), brought(since="-1m")):
        assert answer["events"] == 1
        assert [example["id"] for example in answer["examples"]] == [last]
