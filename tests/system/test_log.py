"""The log of sluiced: what it contains, in both formats, and what it never contains."""

import json

import pytest

from harness import events
from harness.waiting import eventually

FILTER = "/v1/stream/filter?track=kite"


def ends(gateway, parse):
    return [line for line in map(parse, gateway.log().splitlines())
            if line.get("event") == "stream_end"]


def logfmt(line):
    return dict(pair.split("=", 1) for pair in line.split(" ") if "=" in pair)


@pytest.mark.parametrize("form,parse", [("json", json.loads), ("logfmt", logfmt)])
def test_a_stream_leaves_one_line_which_says_how_it_was(servers, redis, form, parse):
    gateway = servers.gateway(redis, "--log-format", form)
    with gateway.stream(FILTER, "sse", token=gateway.token(sub='4"2')) as stream:
        redis.publish(events.dump(events.post(1, "a kite")))
        stream.until(1)
    eventually(lambda: ends(gateway, parse), "it is logged")
    line, = ends(gateway, parse)
    assert len(line["connection"].strip('"')) == 32
    assert line["subject"] in ('4"2', '"4\\x222"')
    assert (line["stream"], line["transport"], line["why"]) == ("filter", "sse", "client")
    assert int(line["filters"]) == 1 and int(line["filter_bytes"]) > 4
    assert int(line["events"]) == 1 and int(line["bytes"]) > 50
    assert float(line["seconds"]) >= 0


def test_json_lines_have_numbers_and_text(servers, redis):
    gateway = servers.gateway(redis, "--log-format", "json", "--log-level", "debug")
    lines = [json.loads(line) for line in gateway.log().splitlines()]
    ready, = [line for line in lines if line["event"] == "ready"]
    assert ready["port"] == gateway.port and ready["level"] == "info"


def test_why_a_token_was_refused_is_told_or_counted(servers, redis):
    gateway = servers.gateway(redis, "--log-format", "json")
    for _ in range(50):
        assert gateway.get(FILTER, {"Authorization": f"Bearer {gateway.token(exp=1)}"}).status == 401

    def lines():
        return [line for line in map(json.loads, gateway.log().splitlines())
                if line["event"] == "token_refused"]
    assert lines()[0]["fault"] == "expired"

    def all_told():
        assert gateway.get(FILTER, {"Authorization": "Bearer x"}).status == 401
        return lines()[-1]["fault"] == "malformed"
    eventually(all_told, "the next one is told, too")
    assert sum(1 + line["held_back"] for line in lines()) >= 51


def test_no_token_no_query_and_no_text_of_a_post(servers, redis):
    gateway = servers.gateway(redis, "--log-level", "debug")
    token = gateway.bearer()["Authorization"].removeprefix("Bearer ")
    with gateway.stream(FILTER) as stream:
        redis.publish(events.dump(events.post(1, "a kite and a secret")))
        redis.publish('{"id":"2","type":"post","post":{"text":"broken kite and a secret"')
        redis.publish(events.dump(events.post(3, "a kite, the last")))
        stream.until(3)
    assert gateway.get(FILTER + "&access_token=" + token[:-4] + "xxxx").status == 401
    eventually(lambda: "stream_end" in gateway.log(), "it is logged")
    for never in (token, token[:40], "kite", "secret", "access_token"):
        assert never not in gateway.log().replace("jwt-secret", ""), never
