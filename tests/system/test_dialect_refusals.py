"""Refusals of a dialect's paths are in its format, even if they are made before the request is complete."""

import pytest

from harness.http import form_bytes
from harness.waiting import Deadline

FILTER, PUBLIC, SAMPLE = "/1.1/statuses/filter.json", "/api/v1/streaming/public", "/2/tweets/sample/stream"
SUBSCRIBE = "/subscribe"


def is_plain(response):
    return response.headers["content-type"].startswith("text/plain") and response.body.endswith(b"\r\n")


def is_mastodon(response):
    return isinstance(response.json["error"], str)


def is_problem(response):
    return response.json["title"] and response.json["status"] == response.status


def is_line(response):
    return response.headers["content-type"].startswith("text/plain") and response.body.count(b"\n") == 1


DIALECTS = {FILTER: is_plain, PUBLIC: is_mastodon, SAMPLE: is_problem, SUBSCRIBE: is_line}


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--dialects", "twitter1,mastodon,twitter2,jetstream")


def answer(gateway, path, headers, body=b"", method="POST"):
    """Returns the answer to what is sent, which may be an incomplete request."""
    with gateway.connect() as connection:
        connection.send(form_bytes(method, path, {**gateway.bearer(), **headers}) + body)
        response = connection.read_response()
        assert DIALECTS[path](response), response
        connection.read_to_end(Deadline(what="the end of the connection"))
        return response.status


@pytest.mark.parametrize("path", DIALECTS)
def test_before_the_body_is_read(gateway, path):
    bad = {"Authorization": "Bearer x.y.z", "Content-Length": "9"}
    assert answer(gateway, path, bad) == (401 if path == FILTER else 405)


@pytest.mark.parametrize("path", DIALECTS)
def test_in_a_head_that_cannot_be_read(gateway, path):
    assert answer(gateway, path, {"Content-Length": "1000000000000"}) in (413, 400)
    assert answer(gateway, path, {"Transfer-Encoding": "chunked"}) == 411
    assert answer(gateway, path, {"Content-Length": "x"}) in (400, 406)


def test_while_the_body_comes(module_servers, redis):
    gateway = module_servers.gateway(redis, "--dialects", "twitter1", "--handshake-timeout-ms", "1000")
    assert answer(gateway, FILTER, {"Content-Length": "9"}, b"track=") == 408


@pytest.mark.parametrize("query", ["a=%00", "a=%zz", "a=%f", "a=\x7f"])
@pytest.mark.parametrize("path", DIALECTS)
def test_in_a_query_that_cannot_be_read(gateway, path, query):
    with gateway.connect() as connection:
        connection.send(form_bytes("GET", f"{path}?{query}", gateway.bearer()))
        response = connection.read_response()
        assert response.status in (400, 406) and DIALECTS[path](response), response


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize("path, like", [
    ("/1.1/account/settings.json", FILTER), ("/2/users/me", SAMPLE),
    ("/api/v1/timelines/home", PUBLIC), ("/api/v2/search", PUBLIC)])
def test_at_paths_of_that_service_that_are_not_here(gateway, method, path, like):
    with gateway.connect() as connection:
        response = connection.request(method, path, gateway.bearer(), b"{}" if method in ("POST", "PUT") else b"")
        assert response.status == 404 and DIALECTS[like](response), response


def test_other_paths_have_ours(gateway):
    with gateway.connect() as connection:
        connection.send(form_bytes("POST", "/v1/stream/filter", {"Authorization": "Bearer x", "Content-Length": "9"}))
        assert connection.read_response().error["code"] == "invalid_token"


@pytest.mark.parametrize("target", [f"{FILTER}?track=", "/api/v1/streaming/hashtag?tag=", f"{SAMPLE}?no=parameter"])
def test_of_parameters_a_stranger_learns_nothing(gateway, target):
    for headers, statuses in ((gateway.bearer(), (400, 406)), ({"Authorization": "Bearer x.y.z"}, (401,)), ({}, (401,))):
        with gateway.connect() as connection:
            assert connection.request("GET", target, headers).status in statuses


@pytest.mark.parametrize("path", DIALECTS)
def test_without_the_setting_there_are_no_such_paths(module_servers, redis, path):
    gateway = module_servers.gateway(redis)
    with gateway.connect() as connection:
        answer = connection.request("GET", path, headers=gateway.bearer())
    assert answer.status == 404 and answer.error["code"] == "not_found"


@pytest.mark.parametrize("path", [FILTER, PUBLIC, SAMPLE])
def test_of_a_scope_that_does_not_cover_it(gateway, path):
    with gateway.connect() as connection:
        answer = connection.request("GET", f"{path}?track=tea" if path == FILTER else path, headers=gateway.bearer(scope="read"))
    assert answer.status == 403 and DIALECTS[path](answer)
