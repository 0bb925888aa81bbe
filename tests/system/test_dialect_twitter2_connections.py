"""A user's own connections, listed and ended as in X's API 2."""

import json
import re

import pytest

from harness.waiting import eventually

CONNECTIONS = "/2/connections"
SAMPLE, FIREHOSE = "/2/tweets/sample/stream", "/2/tweets/firehose/stream?partition=1"
EVERYTHING = "stream:sample stream:firehose stream:filter read write"


@pytest.fixture(scope="module")
def gateways(module_servers, redis):
    """Two gateways that exchange messages."""
    pair = [module_servers.gateway(redis, "--dialects", "twitter2") for _ in range(2)]
    streams = opened(pair, "first", SAMPLE, SAMPLE)
    for gateway in pair:
        eventually(lambda: listed(gateway, "first")["meta"]["result_count"] == 2, "both to be listed")
    for stream in streams:
        stream.close()
    return pair


def ask(gateway, sub, method="GET", path=CONNECTIONS, body=None, scope=EVERYTHING):
    with gateway.connect() as connection:
        answer = connection.request(method, path, headers=gateway.bearer(sub=sub, scope=scope),
                                    body=None if body is None else json.dumps(body).encode())
    return answer.status, json.loads(answer.body), answer.headers["content-type"]


def listed(gateway, sub, query=""):
    """Returns the list as soon as all workers have answered in time, which may take several requests under load."""
    answers = []

    def is_complete():
        status, answer, _ = ask(gateway, sub, path=CONNECTIONS + query)
        assert status == 200
        answers.append(answer)
        return "errors" not in answer
    eventually(is_complete, "a complete list")
    assert answers[-1]["meta"]["result_count"] == len(answers[-1].get("data", []))
    return answers[-1]


def end(gateway, sub, path=CONNECTIONS, body=None, left=0):
    """Repeats the request until only `left` connections are left; returns the answer to the first one, or None if not
    all workers have answered in time."""
    answers = []

    def are_gone():
        status, answer, _ = ask(gateway, sub, "DELETE", path, body)
        assert status == 200
        answers.append(answer)
        return listed(gateway, sub)["meta"]["result_count"] == left
    eventually(are_gone, "connections to end")
    return None if "errors" in answers[0] else answers[0]["data"]


def opened(gateways, sub, *paths):
    return [gateways[i % 2].stream(path, token=gateways[0].token(sub=sub, scope=EVERYTHING))
            for i, path in enumerate(paths)]


def ended(streams):
    return [stream.to_end() for stream in streams]


def test_they_are_listed(gateways):
    streams = opened(gateways, "lists", SAMPLE, FIREHOSE, "/v1/stream/filter?track=tea", SAMPLE)
    opened(gateways, "somebody", SAMPLE)
    answer = listed(gateways[0], "lists")
    assert sorted(one["endpoint_name"] for one in answer["data"]) == [
        "/v1/stream/filter", "firehose_stream", "sample_stream", "sample_stream"]
    one = answer["data"][0]
    assert one["client_ip"] == "127.0.0.1" and re.fullmatch(r"[0-9a-f]{32}", one["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one["connected_at"])
    assert {one["endpoint_name"] for one in listed(gateways[1], "lists", "?endpoints=sample_stream,filtered_stream")["data"]
            } == {"sample_stream"}
    assert set(listed(gateways[1], "lists", "?connection.fields=client_ip")["data"][0]) == {"id", "client_ip"}
    found, query = [], "?max_results=3"
    page = listed(gateways[0], "lists", query)
    found += page["data"]
    page = listed(gateways[0], "lists", f"{query}&pagination_token={page['meta']['next_token']}")
    found += page["data"]
    assert sorted(one["id"] for one in found) == sorted(one["id"] for one in answer["data"])
    assert "next_token" not in page["meta"]
    assert listed(gateways[0], "lists", "?status=inactive") == {"meta": {"result_count": 0}}
    assert listed(gateways[0], "nobody") == {"meta": {"result_count": 0}}
    for stream in streams:
        stream.close()


def test_ours_are_listed_with_their_paths(gateways):
    stream, = opened(gateways, "paths", SAMPLE)
    headers = gateways[1].bearer(sub="paths", scope="read")
    eventually(lambda: [one["path"] for one in json.loads(gateways[1].get("/v1/connections", headers=headers).body)["items"]]
               == [SAMPLE], "it to be listed")
    stream.close()


def test_they_are_ended_by_their_ids(gateways):
    streams = opened(gateways, "ids", SAMPLE, SAMPLE)
    others, = opened(gateways, "others", SAMPLE)
    ids = [one["id"] for one in listed(gateways[0], "ids")["data"]]
    foreign = listed(gateways[0], "others")["data"][0]["id"]
    data = end(gateways[1], "ids", body={"uuids": [*ids, foreign, "x" * 32]})
    ended(streams)
    if data:
        results = {one["uuid"]: one for one in data["results"]}
        assert (data["successful_kills"], data["failed_kills"]) == (2, 2)
        assert all(results[one] == {"uuid": one, "success": True} for one in ids)
        assert not results[foreign]["success"] and results[foreign]["error_message"]
        assert not results["x" * 32]["success"]
    assert listed(gateways[0], "others")["meta"]["result_count"] == 1
    others.close()


def test_they_are_ended_by_their_endpoint(gateways):
    samples = opened(gateways, "endpoint", SAMPLE, SAMPLE, SAMPLE)
    firehose, = opened(gateways, "endpoint", FIREHOSE)
    data = end(gateways[0], "endpoint", f"{CONNECTIONS}/sample_stream", left=1)
    ended(samples)
    assert not data or (data["successful_kills"], data["failed_kills"], len(data["results"])) == (3, 0, 3)
    assert [one["endpoint_name"] for one in listed(gateways[0], "endpoint")["data"]] == ["firehose_stream"]
    assert ask(gateways[0], "endpoint", "DELETE", f"{CONNECTIONS}/likes_firehose_stream")[1]["data"] == {
        "successful_kills": 0, "failed_kills": 0, "results": []}
    data = end(gateways[0], "endpoint", f"{CONNECTIONS}/all")
    assert not data or data["successful_kills"] == 1
    ended([firehose])


@pytest.mark.parametrize("method, path, body, status, name", [
    ("GET", "?status=old", None, 400, "status"),
    ("GET", "?endpoints=sample", None, 400, "endpoints"),
    ("GET", "?max_results=0", None, 400, "max_results"),
    ("GET", "?max_results=101", None, 400, "max_results"),
    ("GET", "?pagination_token=x", None, 400, "pagination_token"),
    ("GET", "?connection.fields=shoe", None, 400, "connection.fields"),
    ("GET", "?tee=1", None, 400, "tee"),
    ("DELETE", "", None, 400, "uuids"),
    ("DELETE", "", {"uuids": []}, 400, "uuids"),
    ("DELETE", "", {"uuids": ["5"]}, 400, "uuids"),
    ("DELETE", "", {"uuids": ["0" * 32], "more": 1}, 400, "uuids"),
    ("DELETE", "/sample", None, 400, "endpoint_id"),
    ("GET", "/all", None, 405, None),
    ("GET", "s", None, 404, None),
])
def test_bad_requests(gateways, method, path, body, status, name):
    got, problem, kind = ask(gateways[0], "bad", method, CONNECTIONS + path, body)
    assert (got, problem["status"], kind) == (status, status, "application/problem+json")
    if name:
        assert list(problem["errors"][0]["parameters"]) == [name]


def test_scopes(gateways):
    assert ask(gateways[0], "scopes", scope="stream:sample")[0] == 403
    assert ask(gateways[0], "scopes", scope="read")[0] == 200
    status, problem, _ = ask(gateways[0], "scopes", "DELETE", f"{CONNECTIONS}/all", scope="read")
    assert status == 403 and problem["type"].endswith("/client-forbidden")
    with gateways[0].connect() as connection:
        assert connection.request("GET", CONNECTIONS).status == 401
