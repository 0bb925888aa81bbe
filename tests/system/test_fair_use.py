"""What a subject and an address may use: each rate limit refuses, with its headers, and others are not affected."""

import json
import re
import time

import pytest

from harness import events, programs
from harness.streams import Refused
from harness.waiting import eventually
from harness.wall_clock import WallClock

FIREHOSE = "/v1/stream/firehose"


@pytest.fixture
def redis(servers):
    """A separate one: usage is counted for all gateways of a Redis."""
    return servers.redis()


def policies(response):
    """Parses RateLimit-Policy and RateLimit: name -> parameters."""
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
    assert 1 <= int(response.headers["retry-after"]) <= within_s + 1
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
    with gateway.connect() as connection:  # its body is not read
        connection.send(b"POST /v1/posts HTTP/1.1\r\nHost: x\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in {**good, **body}.items()).encode() + b"\r\n")
        assert connection.read_response().status == 429
    assert refused_by(gateway, "bad_tokens") == 4
    with gateway.connect(source="127.0.0.2") as other:
        assert other.request("GET", "/v1/users/1", good).status == 404
    assert gateway.get("/healthz").status == 200
    faults = gateway.metrics()
    assert faults['sluice_tokens_refused_total{fault="malformed"}'] == 3


def test_bad_tokens_of_messages_count_as_those_of_requests(servers, redis):
    gateway = servers.gateway(redis, "--max-bad-tokens-per-minute", 3)
    with gateway.stream(FIREHOSE, "raw-websocket") as stream:
        codes = []
        for token in ["a.b.c", "a.b.c", gateway.token(exp=1), gateway.token(sub="42")]:
            stream.send_frame(1, json.dumps({"op": "token", "token": token}).encode())
            codes.append(stream.until(lambda message: "op" in message)[-1].json["error"]["code"])
        assert codes == ["invalid_token", "invalid_token", "token_expired", "rate_limited"]
    assert_rate_limited(refusal(gateway), "bad_tokens", 20)
    assert refused_by(gateway, "bad_tokens") == 2


def test_bad_tokens_of_renewals_count(servers, redis):
    gateway = servers.gateway(redis, "--max-bad-tokens-per-minute", 2)
    with gateway.stream(FIREHOSE) as stream, gateway.connect() as connection:
        path = f"/v1/connections/{stream.response.headers['sluice-connection']}/token"
        answers = [connection.request("PUT", path, {"Authorization": "Bearer a.b.c"}) for _ in range(3)]
    assert [answer.status for answer in answers] == [401, 401, 429]


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


# Daily sums

def publish(redis, numbers):
    redis.publish_many([events.dump(events.post(number, "x" * 400)) for number in numbers])


@pytest.mark.parametrize("transport", ["ndjson", "sse", "raw-websocket"])
@pytest.mark.parametrize("what, limit", [("events", 5), ("bytes", 3000)])
def test_a_stream_ends_when_its_day_is_used_up(servers, redis, transport, what, limit):
    gateway = servers.gateway(redis)
    token, more = (gateway.token(sub="1", lim={what: limit * times}) for times in (1, 100))
    with gateway.stream(FIREHOSE, transport, token=token) as stream, \
            gateway.stream(FIREHOSE, transport, token=more) as other:
        publish(redis, range(7, 17))
        *sent, disconnect = stream.to_end()
        assert [event["id"] for event in sent] == [str(number) for number in range(7, 17)]
        assert (disconnect.type, disconnect["code"]) == ("disconnect", "quota")
        assert 1 <= disconnect["retry_ms"] <= 86_460_000
        if transport == "sse":
            assert stream.retry_ms == disconnect["retry_ms"]
        if transport == "raw-websocket":
            assert stream.close_code == 4012
        publish(redis, [99])
        other.until("99")
    refused = refusal(gateway, token=token)
    assert (refused.status, refused.error["code"]) == (429, "quota")
    assert abs(int(refused.headers["retry-after"]) - disconnect["retry_ms"] / 1000) < 120
    assert policies(refused)[1][what]["r"] == "0"
    gateway.stream(FIREHOSE, transport, token=more).close()


def test_what_is_read_of_the_past(servers, redis):
    gateway = servers.gateway(redis)
    with gateway.connect() as connection:
        def ask(path, body, **token):
            answer = connection.request("POST", path, {**gateway.bearer(**token), "Content-Type": "application/json"},
                                        json.dumps(body).encode())
            assert answer.status == 201, answer
            return answer.json["id"]

        ada = ask("/v1/users", {"login": "ada"}, scope="admin", sub=None)
        posts = [ask("/v1/posts", {"text": f"post {number}"}, scope="write", sub=ada) for number in range(12)]
    with gateway.stream(f"{FIREHOSE}?types=post&since=-10m", token=gateway.token(sub="2")) as other:
        other.until(lambda message: message["id"] == posts[-1])  # all of them have passed
    token = gateway.token(sub="1", lim={"replayed": 10})
    with gateway.stream(f"{FIREHOSE}?types=post&since=-10m", token=token) as stream:
        *sent, disconnect = stream.to_end()
        assert [event["id"] for event in sent if event.type == "post"] == posts
        assert disconnect["code"] == "quota"
    refused = refusal(gateway, f"{FIREHOSE}?since=-10m", token=token)
    assert (refused.status, refused.error["code"]) == (429, "quota")
    with gateway.stream(FIREHOSE, token=token) as live:  # resuming at the present is still allowed
        publish(redis, [int(posts[-1]) + (1 << 30)])
        assert live.next()


@pytest.mark.skipif(programs.have_sanitizer(), reason="with a sanitizer there is no clock shim")
def test_a_day_ends(servers, redis):
    clock = WallClock(servers.folder / "clock")
    now = time.gmtime()
    left = 86400 - (now.tm_hour * 60 + now.tm_min) * 60 - now.tm_sec
    clock.set(left - 600)  # ten minutes before midnight
    gateway = servers.gateway(redis, env=clock.environment)
    token = gateway.token(sub="1", lim={"events": 5}, exp=int(time.time()) + 4 * 86400)
    with gateway.stream(FIREHOSE, token=token) as stream:
        publish(redis, range(7, 17))
        disconnect = stream.to_end()[-1]
        assert disconnect["code"] == "quota" and disconnect["retry_ms"] <= 660_000
    assert int(refusal(gateway, token=token).headers["retry-after"]) <= 600
    clock.set(left + 600)
    with gateway.stream(FIREHOSE, token=token) as stream:
        assert policies(stream.response)[1]["events"]["r"] == "5"


# All gateways together

SOON = "--use-exchange", "1s"

def usage(gateway, **token):
    answer = gateway.get("/v1/usage", headers=gateway.bearer(**token))
    assert answer.status == 200, answer
    return {use["name"]: use for use in answer.json["uses"]}


def test_two_gateways_count_together(servers, redis):
    one, other = servers.gateway(redis, *SOON, workers=2), servers.gateway(redis, *SOON)
    token = {"sub": "1", "lim": {"bytes": 3000, "streams": 2}}
    for gateway in (one, other):
        eventually(lambda: gateway.metrics()["sluice_use_gateways"] == 2, "they know of each other")
    streams = [one.stream(FIREHOSE, token=one.token(**token)) for _ in range(2)]
    eventually(lambda: usage(other, **token)["streams"]["used"] == 2, "streams of another gateway count")
    refused = refusal(other, token=other.token(**token))
    assert (refused.status, refused.error["code"]) == (429, "too_many_connections")
    publish(redis, range(7, 17))
    for stream in streams:
        assert stream.to_end()[-1]["code"] == "quota"
    eventually(lambda: usage(other, **token)["bytes"]["left"] == 0, "bytes of another gateway count")
    refused = refusal(other, token=other.token(**token))
    assert (refused.status, refused.error["code"]) == (429, "quota")
    eventually(lambda: usage(other, **token)["events"]["used"] == 20, "events of another gateway count")
    assert usage(other, **token)["events"]["here"] == 0
    one.stop()
    servers.gateways.remove(one)
    eventually(lambda: other.metrics()["sluice_use_gateways"] == 1, "one is gone")
    eventually(lambda: usage(other, **token)["streams"]["used"] == 0, "and so are its streams")


def test_usage(servers, redis):
    gateway = servers.gateway(redis, "--max-requests-per-second", 100)
    with gateway.stream(FIREHOSE, token=gateway.token(sub="1")):
        own = usage(gateway, sub="1", lim={"connects": 5})
        assert own["streams"] == {"name": "streams", "here": 1, "limit": 100, "used": 1, "left": 99}
        assert (own["connects"]["limit"], own["events"]["limit"], own["requests"]["used"]) == (5, None, 1)
        assert own["bytes"]["window_s"] == 86400
        admin = gateway.get("/v1/usage?sub=1", headers=gateway.bearer(sub="2", scope="admin"))
        assert admin.json["sub"] == "1" and admin.json["uses"][2]["used"] == 1
    other = gateway.get("/v1/usage?sub=1", headers=gateway.bearer(sub="2"))
    assert (other.status, other.error["code"]) == (403, "insufficient_scope")
    assert gateway.get("/v1/usage?sub=1", headers=gateway.bearer(sub="1")).status == 200
    assert gateway.get("/v1/usage").status == 401
    with gateway.connect() as connection:
        assert connection.request("OPTIONS", "/v1/usage").status == 204
        assert connection.request("POST", "/v1/usage", gateway.bearer()).status == 405


@pytest.mark.one_redis("it is stopped")
def test_without_redis(servers, redis):
    gateway = servers.gateway(redis)
    eventually(lambda: gateway.metrics()["sluice_use_gateways"] == 1, "it has been heard")
    redis.stop()
    gateway.wait_status("/readyz", 503)
    for used in (1, 2, 2):
        answer = gateway.get("/v1/usage", headers=gateway.bearer(sub="1", lim={"requests": 2}))
        assert answer.status in (200, 429)
    own = usage(gateway, sub="2", lim={"requests": 2})
    assert own["requests"]["limit"] == 2
