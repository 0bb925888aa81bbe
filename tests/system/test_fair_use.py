"""What a subject and an address may use: each rate refused, with its headers; what it leaves is for others."""

import json
import re

import pytest

from harness.streams import Refused

FIREHOSE = "/v1/stream/firehose"


@pytest.fixture
def redis(servers):
    """Of its own: what a subject has used holds for all gateways of a Redis."""
    return servers.redis()


def policies(response):
    """RateLimit-Policy and RateLimit: name -> parameters."""
    return [{name: dict(pair.split("=") for pair in rest.split(";") if pair)
             for name, rest in re.findall(r'"([^"]+)"((?:;[^,]+)*)', response.headers.get(header, ""))}
            for header in ("ratelimit-policy", "ratelimit")]


def refusal(gateway, path=FIREHOSE, transport="ndjson", **more):
    with pytest.raises(Refused) as refused:
        gateway.stream(path, transport, **more)
    return refused.value.response


def assert_rate_limited(response, limit, within_s):
    assert response.status == 429, response
    assert response.error["code"] == "rate_limited"
    assert 1 <= int(response.headers["retry-after"]) <= within_s
    policy, left = policies(response)
    assert left[limit]["r"] == "0" and int(left[limit]["t"]) >= 1, response.headers
    assert policy[limit]["q"]
    return response


def refused_by(gateway, limit):
    return gateway.metrics()[f'sluice_use_refused_total{{limit="{limit}"}}']


@pytest.mark.parametrize("transport", ["ndjson", "sse", "raw-websocket"])
def test_connects_of_a_subject(servers, redis, transport):
    gateway = servers.gateway(redis, "--max-connects-per-minute", 3, workers=2)
    ada, bob = gateway.token(sub="1"), gateway.token(sub="2")
    for left in (2, 1, 0):
        with gateway.stream(FIREHOSE, transport, token=ada) as stream:
            policy, now = policies(stream.response)
            assert policy["connects"] == {"q": "3", "w": "60"}
            assert now["connects"]["r"] == str(left)
    assert_rate_limited(refusal(gateway, transport=transport, token=ada), "connects", 20)
    assert refused_by(gateway, "connects") == 1
    with gateway.stream(FIREHOSE, transport, token=bob):
        pass
    assert gateway.get("/v1/users/1", headers=gateway.bearer(sub="1", scope="read")).status == 404


def test_connects_of_an_address(servers, redis):
    gateway = servers.gateway(redis, "--max-connects-per-minute-per-address", 2)
    for sub in ("1", "2"):
        gateway.stream(FIREHOSE, token=gateway.token(sub=sub)).close()
    assert_rate_limited(refusal(gateway, token=gateway.token(sub="3")), "connects", 30)
    with gateway.connect(source="127.0.0.2") as other:
        assert other.request("GET", "/v1/users/1", gateway.bearer(scope="read")).status == 404


def test_requests_of_the_api(servers, redis):
    gateway = servers.gateway(redis, "--max-requests-per-second", 4, workers=2)
    ada = gateway.bearer(sub="1", scope="read")
    answers = []
    while not answers or answers[-1].status != 429:
        answers.append(gateway.get("/v1/users/1", headers=ada))
        assert len(answers) < 1000
    assert len(answers) > 4
    assert {answer.status for answer in answers[:-1]} == {404}
    assert policies(answers[0])[0] == {"requests": {"q": "4", "w": "1"}}
    assert int(policies(answers[0])[1]["requests"]["r"]) == 3
    assert_rate_limited(answers[-1], "requests", 1)
    gateway.stream(FIREHOSE, token=gateway.token(sub="1")).close()


def test_a_page_of_another_origin_reads_the_headers(servers, redis):
    gateway = servers.gateway(redis, "--max-requests-per-second", 40, "--allow-origin", "https://a.example")
    answer = gateway.get("/v1/users/1", headers={**gateway.bearer(scope="read"), "Origin": "https://a.example"})
    exposed = answer.headers["access-control-expose-headers"].split(", ")
    assert {"RateLimit", "RateLimit-Policy", "Retry-After"} <= set(exposed)
    assert "ratelimit" in answer.headers


def test_bad_tokens_of_an_address(servers, redis):
    gateway = servers.gateway(redis, "--max-bad-tokens-per-minute", 3)
    good = gateway.bearer(sub="1", scope="read")
    for _ in range(3):
        assert gateway.get("/v1/users/1", headers={"Authorization": "Bearer a.b.c"}).status == 401
    assert_rate_limited(gateway.get("/v1/users/1", headers={"Authorization": "Bearer a.b.c"}), "bad_tokens", 20)
    assert gateway.get("/v1/users/1", headers=good).status == 429
    assert refusal(gateway).status == 429
    body = {"Content-Length": str(1 << 20), "Expect": "100-continue"}
    with gateway.connect() as connection:  # nor is a body read for it
        connection.send(b"POST /v1/posts HTTP/1.1\r\nHost: x\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in {**good, **body}.items()).encode() + b"\r\n")
        assert connection.read_response().status == 429
    assert refused_by(gateway, "bad_tokens") == 4
    with gateway.connect(source="127.0.0.2") as other:
        assert other.request("GET", "/v1/users/1", good).status == 404
    assert gateway.get("/healthz").status == 200
    faults = gateway.metrics()
    assert faults['sluice_tokens_refused_total{fault="malformed"}'] == 3


def test_a_token_may_say_less_and_more(servers, redis):
    gateway = servers.gateway(redis, "--max-connects-per-minute", 2, "--max-requests-per-second", 40)
    few = gateway.token(sub="1", lim={"connects": 1})
    many = gateway.token(sub="2", lim={"connects": 50, "bytes": 1 << 40})
    none = gateway.token(sub="3", lim={"connects": 0})
    gateway.stream(FIREHOSE, token=few).close()
    assert refusal(gateway, token=few).status == 429
    for _ in range(5):
        gateway.stream(FIREHOSE, token=many).close()
    with gateway.stream(FIREHOSE, token=many) as stream:
        assert policies(stream.response)[0]["bytes"] == {"q": str(1 << 40), "qu": '"content-bytes"', "w": "86400"}
    never = refusal(gateway, token=none)
    assert never.status == 429 and never.headers["retry-after"] == "86400"
    spent = refusal(gateway, token=gateway.token(sub="4", lim={"bytes": 0}))
    assert spent.status == 429 and spent.error["code"] == "quota"
    assert 1 <= int(spent.headers["retry-after"]) <= 86400
    bad = refusal(gateway, token=gateway.token(lim={"connects": -1}))
    assert bad.status == 401


def test_no_bounds_no_headers(servers, redis):
    gateway = servers.gateway(redis)
    with gateway.stream(FIREHOSE) as stream:
        assert policies(stream.response) == [{"streams": {"q": "100", "qu": '"concurrent-requests"'}}, {}]
    answer = gateway.get("/v1/users/1", headers=gateway.bearer(scope="read"))
    assert "ratelimit" not in answer.headers
    assert json.loads(answer.text)["error"]["code"] == "not_found"
