"""X's API, version 2: what its clients send to its streams, and what they must get."""

import json

import pytest

from harness import events
from harness.recompute import hash_of_id

SAMPLE = "/2/tweets/sample/stream"
PROBLEMS = "https://api.x.com/2/problems/"


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--dialects", "twitter2")


def refusal(gateway, target, method="GET", **arguments):
    with gateway.connect() as connection:
        answer = connection.request(method, target, headers=gateway.bearer(**arguments))
    problem = json.loads(answer.body)
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["status"] == answer.status and problem["title"] and problem["detail"]
    return answer, problem


def is_sampled(number, percent=1):
    return (hash_of_id(number) >> 32) * 1000000 >> 32 < percent * 10000


def sampled(number, percent=1):
    """The first id from `number` on that everybody's sample has."""
    return next(one for one in range(number, number + 100000) if is_sampled(one, percent))


def test_a_post_is_a_tweet(gateway, publish):
    number = sampled(114677036875776)
    with gateway.stream(SAMPLE) as stream:
        publish(events.post(number, "tea & cake ä"))
        line = stream.next().raw
    assert line.isascii()
    assert json.loads(line) == {"data": {"id": str(number), "text": "tea &amp; cake ä",
                                         "edit_history_tweet_ids": [str(number)]}}


def test_deletions_are_none_of_it(gateway, publish):
    first = events.post(sampled(114677036900000), "gone")
    last = events.post(sampled(int(first["id"]) + 1), "last")
    with gateway.stream(SAMPLE) as stream:
        publish(first)
        publish(events.delete(int(first["id"]) + 1, first))
        publish(last)
        assert [stream.next().json["data"]["text"] for _ in range(2)] == ["gone", "last"]


def test_a_parameter_that_there_is_not(gateway):
    answer, problem = refusal(gateway, f"{SAMPLE}?tee=a%20b")
    assert answer.status == 400
    assert (problem["type"], problem["title"]) == (PROBLEMS + "invalid-request", "Invalid Request")
    assert problem["errors"][0]["parameters"] == {"tee": ["a b"]} and problem["errors"][0]["message"]


def test_whoever_has_no_token_learns_nothing(gateway):
    with gateway.connect() as connection:
        answer = connection.request("GET", f"{SAMPLE}?tee=a", headers={"Authorization": "Bearer x.y.z"})
    assert answer.status == 401 and answer.headers["content-type"] == "application/problem+json"
    assert json.loads(answer.body)["type"] == "about:blank"
    assert "www-authenticate" in answer.headers


def test_a_scope_that_does_not_cover_it(gateway):
    answer, problem = refusal(gateway, SAMPLE, scope="stream:filter")
    assert answer.status == 403 and problem["type"] == PROBLEMS + "client-forbidden"


def test_too_many_connections(module_servers, redis):
    gateway = module_servers.gateway(redis, "--dialects", "twitter2", "--max-connections-per-subject", 1)
    with gateway.stream(SAMPLE):
        answer, problem = refusal(gateway, SAMPLE)
    assert answer.status == 429
    assert (problem["title"], problem["connection_issue"], problem["type"]) == (
        "ConnectionException", "TooManyConnections", PROBLEMS + "streaming-connection")


def test_without_the_setting_there_are_no_such_paths(module_servers, redis):
    gateway = module_servers.gateway(redis)
    with gateway.connect() as connection:
        assert connection.request("GET", SAMPLE, headers=gateway.bearer()).status == 404
