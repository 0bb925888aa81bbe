"""Invalid requests to the API: each is answered with the reason, and changes nothing."""

import json

import pytest

from harness.api import JSON, Api, Site
from harness.http import form_bytes
from harness.servers import SHARDS

pytestmark = pytest.mark.wires


@pytest.fixture(scope="module")
def site(gateway):
    site = Site(gateway)
    yield site
    site.close()


@pytest.fixture(scope="module")
def ada(site):
    return site.user("ada")


@pytest.fixture(autouse=True)
def nothing_changes(ada, site):
    before = ada.get("/v1/users/me"), ada.get("/v1/users/me/posts")
    yield
    assert (ada.get("/v1/users/me"), ada.get("/v1/users/me/posts")) == before
    assert site.gateway.metrics()["sluice_api_requests_in_flight"] == 0


OPERATIONS = [
    ("POST", "/v1/users", "admin"), ("GET", "/v1/users/ada", "read"),
    ("GET", "/v1/users/ada/posts", "read"), ("GET", "/v1/users/ada/followers", "read"),
    ("GET", "/v1/users/ada/following", "read"), ("POST", "/v1/users/me/following", "write"),
    ("PUT", "/v1/users/me/following/1", "write"), ("DELETE", "/v1/users/me/following/1", "write"),
    ("PUT", "/v1/users/me/hidden/1", "write"), ("DELETE", "/v1/users/me/hidden/1", "write"),
    ("PUT", "/v1/users/me/muted/1", "write"), ("DELETE", "/v1/users/me/muted/1", "write"),
    ("POST", "/v1/posts", "write"), ("GET", "/v1/posts/1", "read"),
    ("DELETE", "/v1/posts/1", "write"), ("GET", "/v1/posts/1/comments", "read"),
    ("GET", "/v1/posts/1/likes", "read"), ("PUT", "/v1/posts/1/like", "write"),
    ("DELETE", "/v1/posts/1/like", "write"), ("GET", "/v1/timelines/home", "read"),
    ("GET", "/v1/users?ids=1", "read"), ("GET", "/v1/posts?ids=1", "read"),
    ("GET", "/v1/users/1/common-followers?with=2", "read"), ("GET", "/v1/users/1/common-following?with=2", "read"),
    ("POST", "/v1/users/me/unfollow", "write"), ("GET", "/v1/users/me/hidden", "read"),
    ("GET", "/v1/users/me/muted", "read"), ("GET", "/v1/users/me/likes", "read"),
    ("PATCH", "/v1/users/me", "write"), ("GET", "/v1/users/me/last-read", "read"),
    ("PUT", "/v1/users/me/last-read", "write"), ("GET", "/v1/timelines/public", "read"),
]


@pytest.mark.parametrize("method, path, scope", OPERATIONS)
def test_every_operation_needs_a_token_with_its_scope(gateway, ada, method, path, scope):
    body = b"{}" if method == "POST" else None
    with gateway.connect() as connection:
        answer = connection.request(method, path, JSON if body else {}, body)
        assert answer.status == 401 and answer.error["code"] == "no_token", answer
        assert answer.headers["www-authenticate"] == "Bearer"
        answer = connection.request(method, path, {"Authorization": "Bearer x"}, body)
        assert answer.status == 401 and answer.error["code"] == "invalid_token", answer
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    others = " ".join({"read", "write", "admin", "stream:firehose"} - {scope})
    narrow = Api(gateway, ada.sub, scope=others)
    answer = narrow.request(method, path, body)
    assert answer.status == 403 and answer.error["code"] == "insufficient_scope", answer
    assert answer.headers["www-authenticate"] == \
        f'Bearer error="insufficient_scope", scope="{scope}"'
    narrow.close()


@pytest.mark.parametrize("sub", [None, "bob", "0", "007", "64", "99999999999999999999"])
def test_whoever_writes_is_a_user(gateway, sub):
    stranger = Api(gateway, sub)
    stranger.refused(403, "no_subject", "POST", "/v1/posts", {"text": "x"})
    stranger.refused(403, "no_subject", "GET", "/v1/users/me")
    stranger.refused(403, "no_subject", "GET", "/v1/timelines/home")
    assert stranger.get("/v1/users/ada")["login"] == "ada", "but may read"
    stranger.close()


@pytest.fixture(scope="module")
def post(ada):
    return ada.post("to be left alone")["id"]


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("target", ["ada's", "1"])
@pytest.mark.parametrize("method, path", [
    ("PUT", "/v1/users/me/following/"), ("DELETE", "/v1/users/me/following/"),
    ("PUT", "/v1/users/me/hidden/"), ("DELETE", "/v1/users/me/hidden/"),
    ("PUT", "/v1/users/me/muted/"), ("DELETE", "/v1/users/me/muted/"), ("DELETE", "/v1/posts/"),
    ("PUT", "/v1/posts/{}/like"), ("DELETE", "/v1/posts/{}/like"), ("POST", "/v1/users/me/following"),
    ("POST", "/v1/posts"), ("GET", "/v1/users/me"), ("GET", "/v1/users/me/posts"),
    ("GET", "/v1/users/me/following"), ("GET", "/v1/users/me/followers"),
    ("GET", "/v1/timelines/home")])
def test_a_user_who_was_never_made_does_nothing(gateway, ada, post, shard, target, method, path):
    """Whether what is requested exists or not, and in whichever shard the user would be."""
    nobody = Api(gateway, str(4096 + 64 * shard))
    if target == "ada's":
        target = post if "/posts/" in path else ada.sub
    body = {"text": "x"} if path == "/v1/posts" else {"users": [target]} if method == "POST" else None
    path = path + target if path.endswith("/") else path.format(target)
    nobody.refused(403, "no_subject", method, path, body)
    nobody.close()


def test_the_token_may_stand_in_the_url_but_not_twice(gateway, ada):
    token = gateway.token(scope="read", sub=ada.sub)
    with gateway.connect() as connection:
        answer = connection.request("GET", f"/v1/users/me?access_token={token}")
        assert answer.status == 200 and answer.json["id"] == ada.sub
    ada.refused(400, "too_many_tokens", "GET", f"/v1/users/me?access_token={token}")


@pytest.mark.parametrize("path", ["/v1/users/me/", "/v1/users//posts", "/v1/posts/", "/v1/user",
                                  "/v1/posts/1/comment", "/v1/users/me/following/1/2", "/v1/timelines",
                                  "/V1/users/me"])
def test_paths_that_are_none(ada, path):
    ada.refused(404, "not_found", "GET", path)


@pytest.mark.parametrize("method, path, allow", [
    ("PUT", "/v1/users", "GET, HEAD, POST, OPTIONS"), ("DELETE", "/v1/posts", "GET, HEAD, POST, OPTIONS"),
    ("GET", "/v1/users/me/unfollow", "POST, OPTIONS"), ("POST", "/v1/users/me", "GET, HEAD, PATCH, OPTIONS"),
    ("POST", "/v1/users/me/last-read", "GET, HEAD, PUT, OPTIONS"),
    ("PATCH", "/v1/posts/1", "GET, HEAD, DELETE, OPTIONS"),
    ("PUT", "/v1/users/me/following", "GET, HEAD, POST, OPTIONS"),
    ("POST", "/v1/users/1/following", "GET, HEAD, OPTIONS"),
    ("POST", "/v1/users/me/muted/1", "PUT, DELETE, OPTIONS"),
    ("HEAD", "/v1/posts/1/like", "PUT, DELETE, OPTIONS")])
def test_methods_that_a_path_does_not_take(ada, method, path, allow):
    answer = ada.request(method, path, b"" if method in ("PATCH", "PUT", "POST") else None)
    assert answer.status == 405 and answer.headers["allow"] == allow, answer
    if method != "HEAD":
        assert answer.error["code"] == "method_not_allowed"
    options = ada.request("OPTIONS", path)
    assert options.status == 204 and options.headers["allow"] == allow


@pytest.mark.parametrize("path", ["/v1/users/nobody", "/v1/users/%FF", "/v1/users/a%20b",
                                  "/v1/users/9007199254740992", "/v1/users/@", "/v1/users/1/posts",
                                  "/v1/users/" + "x" * 2000, "/v1/posts/x", "/v1/posts/0",
                                  "/v1/posts/1", "/v1/posts/64", "/v1/posts/1/likes",
                                  "/v1/posts/9007199254740992", "/v1/posts/ada/comments"])
def test_things_that_are_not_there(ada, path):
    ada.refused(404, "not_found", "GET", path)


@pytest.mark.parametrize("accept, status", [("text/html", 406), ("application/json;q=0", 406),
                                            ("text/event-stream, application/x-ndjson", 406),
                                            ("*/*", 200), ("application/*", 200), ("", 200),
                                            ("text/html, application/json;q=0.1", 200)])
def test_answers_are_json(ada, accept, status):
    answer = ada.request("GET", "/v1/users/me", headers={"Accept": accept})
    assert answer.status == status, answer
    if status == 406:
        assert answer.error["code"] == "not_acceptable"


@pytest.mark.parametrize("query, code, param", [
    ("before=x", "bad_before", "before"), ("before=0", "bad_before", "before"),
    ("before=9007199254740992", "bad_before", "before"), ("limit=0", "bad_limit", "limit"),
    ("limit=201", "bad_limit", "limit"), ("limit=-1", "bad_limit", "limit"),
    ("limit=2&limit=2", "repeated_parameter", "limit"), ("limt=2", "unknown_parameter", "limt"),
    ("limit=%ZZ", "bad_request", None), ("limit=%FF", "bad_encoding", "limit")])
def test_parameters_that_are_wrong(ada, query, code, param):
    error = ada.refused(400, code, "GET", f"/v1/users/me/posts?{query}")
    assert error.get("param") == param


def test_after_is_for_home_timelines(ada):
    ada.refused(400, "bad_after", "GET", "/v1/timelines/home?after=x")
    ada.refused(400, "unknown_parameter", "GET", "/v1/users/me/posts?after=1")


def test_operations_without_pages_take_no_parameters(ada):
    error = ada.refused(400, "unknown_parameter", "GET", "/v1/users/me?limit=2")
    assert error["param"] == "limit"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded",
                                  "application/jsonx", None])
def test_bodies_of_another_type(ada, kind):
    ada.refused(415, "bad_content_type", "POST", "/v1/posts", {"text": "x"}, {"Content-Type": kind})


@pytest.mark.parametrize("encoding", ["gzip", "deflate, identity", "zstd"])
def test_bodies_that_are_compressed(ada, encoding):
    error = ada.refused(415, "bad_content_encoding", "POST", "/v1/posts", {"text": "x"},
                        {"Content-Encoding": encoding})
    assert error["param"] == "Content-Encoding"


def test_a_body_that_is_encoded_as_it_is(ada):
    error = ada.refused(400, "bad_json", "POST", "/v1/posts", b'{"text":', {"Content-Encoding": "Identity"})
    assert error


def test_a_charset_does_not_hurt(site):
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    site.user("charset").expect(201, "POST", "/v1/posts", {"text": "\u00fc"}, headers)


@pytest.mark.parametrize("body, code, param, said", [
    ('', "bad_json", None, "empty"),
    ('{"text":"a"', "bad_json", None, "line 1, column 11"),
    ('{\n "text": a}', "bad_json", None, "line 2, column"),
    ('{"text":"a"} {}', "bad_json", None, "line 1, column"),
    ('["text"]', "bad_json", None, "not a JSON object"),
    ('"text"', "bad_json", None, "line 1"),
    ('{"text":"\\ud800"}', "bad_json", None, "byte"),
    ('{"text":"a\\u0000b"}', "bad_json", None, "byte"),
    (b'{"text":"\xff"}', "bad_json", None, "byte"),
    ('{"text":' + "[" * 40 + "]" * 40 + "}", "bad_json", None, "deep"),
    ('{"text":"a","text":"b"}', "duplicate_member", "text", "column"),
    ('{"text":"a","geo":{"lon":1,"lon":2,"lat":3}}', "duplicate_member", "lon", "column"),
    ('{"text":"a","txt":"b"}', "unknown_member", "txt", "txt"),
    ('{"text":"a","geo":{"lon":1,"lat":2,"alt":3}}', "unknown_member", "geo.alt", "geo.alt"),
    ('{"lang":"en"}', "missing_member", "text", "text"),
    ('{"text":"a","geo":{"lon":1}}', "missing_member", "geo.lat", "geo.lat"),
    ('{"text":1}', "bad_type", "text", "not a string"),
    ('{"text":null}', "bad_type", "text", "not a string"),
    ('{"text":"a","geo":[1,2]}', "bad_type", "geo", "not an object"),
    ('{"text":"a","geo":{"lon":"1","lat":2}}', "bad_type", "geo.lon", "not a number"),
    ('{"text":"a","reply_to":1}', "bad_type", "reply_to", "not a string"),
    ('{"text":"a","place":{"bbox":[1,2,3]}}', "bad_type", "place.bbox", "four numbers"),
    ('{"text":"a","place":{"bbox":[1,2,3,"4"]}}', "bad_type", "place.bbox", "four numbers"),
    ('{"text":""}', "bad_request", "text", "text"),
    ('{"text":"a","lang":"not a language"}', "bad_request", "lang", "language"),
    ('{"text":"a","geo":{"lon":181,"lat":0}}', "bad_request", "geo", "longitude"),
    ('{"text":"a","reply_to":"x"}', "bad_request", "reply_to", "reply_to"),
    ('{"text":"a","quote_of":"0"}', "bad_request", "quote_of", "quote_of"),
    ('{"text":"a","source":""}', "bad_request", "source", "source"),
    ('{"text":"a","place":{"country":"France"}}', "bad_request", "place", "country"),
    ('{"text":"a","audience":"only:"}', "bad_request", "audience", "audience"),
    ('{"text":"a","audience":"friends"}', "bad_request", "audience", "audience"),
    (json.dumps({"text": "a" * 20001}), "bad_request", "text", "20000"),
])
def test_bodies_that_are_wrong(ada, body, code, param, said):
    body = body if isinstance(body, bytes) else body.encode()
    error = ada.refused(400, code, "POST", "/v1/posts", body)
    assert error.get("param") == param and said in error["message"], error


@pytest.mark.parametrize("body, code, param", [
    ({}, "missing_member", "users"), ({"users": "1"}, "bad_type", "users"),
    ({"users": []}, "bad_length", "users"), ({"users": ["1"] * 1001}, "bad_length", "users"),
    ({"users": ["1", 2]}, "bad_type", "users"), ({"users": ["1"], "user": "1"}, "unknown_member",
                                                 "user")])
def test_batches_that_are_wrong(ada, body, code, param):
    assert ada.refused(400, code, "POST", "/v1/users/me/following", body)["param"] == param


@pytest.mark.parametrize("body, said", [({"login": "a b"}, "login"), ({"login": ""}, "login"),
                                        ({"login": "x" * 65}, "login"),
                                        ({"login": "ok", "name": "a\nb"}, "name")])
def test_users_that_cannot_be(site, body, said):
    error = site.admin.refused(400, "bad_request", "POST", "/v1/users", body)
    assert said in error["message"] and error["param"] == said


def test_a_body_has_a_limit(ada):
    body = json.dumps({"text": "a" * (256 << 10)}).encode()
    ada.refused(413, "body_too_large", "POST", "/v1/posts", body)
    ada.send("POST", "/v1/posts", headers={"Content-Length": "99999999"})
    answer = ada.read()
    assert answer.status == 413 and answer.error["code"] == "body_too_large"


def test_a_body_needs_its_length(gateway, ada):
    for headers, body in (({"Content-Length": None}, b""),
                          ({"Content-Length": None, "Transfer-Encoding": "chunked"}, b"0\r\n\r\n")):
        with gateway.connect() as connection:
            connection.send(form_bytes("POST", "/v1/posts", {**ada.headers({}), **headers}, body))
            answer = connection.read_response()
            assert answer.status == 411 and answer.error["code"] == "length_required"


@pytest.mark.parametrize("method, path", [("PUT", "/v1/users/me/following/1"),
                                          ("DELETE", "/v1/posts/1")])
def test_operations_that_take_no_body(ada, method, path):
    ada.refused(400, "bad_request", method, path, {"a": "body"})
    ada.refused(404, "not_found", "PUT", "/v1/users/me/following/1", b"")


@pytest.mark.parametrize("key", ["", "a b", "\u00fc", "x" * 101])
def test_keys_that_are_none(ada, key):
    error = ada.refused(400, "bad_idempotency_key", "POST", "/v1/posts", {"text": "x"},
                        {"Idempotency-Key": key})
    assert error["param"] == "Idempotency-Key"


def test_an_upgrade_does_not_lead_here(gateway):
    connection, answer = gateway.upgrade("/v1/posts", gateway.bearer(scope="read write"))
    connection.close()
    assert answer.status == 404


def test_pages_of_allowed_origins_may_use_it(servers, redis):
    gateway = servers.gateway(redis, "--allow-origin", "https://good.example")
    with gateway.connect() as connection:
        for origin, allowed in (("https://good.example", True), ("https://bad.example", False)):
            asked = {"Origin": origin, "Access-Control-Request-Method": "POST",
                     "Access-Control-Request-Headers": "idempotency-key"}
            preflight = connection.request("OPTIONS", "/v1/posts", asked)
            assert preflight.status == 204
            assert preflight.headers["access-control-allow-methods"] == "GET, HEAD, POST, OPTIONS"
            assert "idempotency-key" in preflight.headers["access-control-allow-headers"].lower()
            answer = connection.request("GET", "/v1/users/ada",
                                        {**gateway.bearer(scope="read"), "Origin": origin})
            assert answer.status == 200
            for response in (preflight, answer):
                assert response.headers["vary"] == "Origin"
                assert (response.headers.get("access-control-allow-origin") == origin) == allowed
                exposed = response.headers.get("access-control-expose-headers", "")
                assert ("Location" in exposed) == allowed
