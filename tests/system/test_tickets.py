"""Tickets: a stream is opened once, without a token in its URL; and the cookie with which an EventSource reconnects."""

import hashlib
import json
import re
import threading

import pytest

from harness import events
from harness.cli import Cli
from harness.gateway import SECRET
from harness.streams import HttpStream, Refused
from harness.tokens import base64url, hs256_token
from harness.waiting import eventually
from harness.websocket import RawWebSocket

pytestmark = pytest.mark.wires
TEA = "/v1/stream/filter?track=tea"
PAGE = "https://page.example"


def ask(gateway, body, headers=None, method="POST"):
    text = body if isinstance(body, str) else json.dumps(body)
    with gateway.connect() as connection:
        return connection.request(method, "/v1/tickets", {"Content-Type": "application/json", **(headers or {})},
                                  text.encode())


def ticket(gateway, path=TEA, **claims):
    response = ask(gateway, {"path": path}, gateway.bearer(**claims))
    assert response.status == 200, response
    assert set(response.json) == {"ticket", "expires_in"}
    assert re.fullmatch(r"[\w-]{22}", response.json["ticket"])
    return response.json["ticket"]


def open_stream(gateway, target, transport="ndjson", headers=None):
    """Without a token."""
    if transport == "websocket":
        return RawWebSocket(gateway.port, target, headers or {}, tls=gateway.tls)
    return HttpStream(gateway.port, target, transport, headers=headers, tls=gateway.tls)


def refusal(gateway, target, transport="ndjson", headers=None):
    if transport == "websocket":
        connection, response = gateway.upgrade(target, headers)
        connection.close()
        return response
    with pytest.raises(Refused) as refused:
        open_stream(gateway, target, transport, headers)
    return refused.value.response


def assert_refused(gateway, target, transport="ndjson", headers=None):
    response = refusal(gateway, target, transport, headers)
    assert (response.status, response.error["code"]) == (401, "invalid_ticket"), response
    assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    return response


@pytest.fixture(scope="module")
def named(module_servers, redis):
    """A gateway that sets cookies, and allows the origin of a page."""
    return module_servers.gateway(redis, "--session-cookie", "on", "--allow-origin", PAGE, "--ticket-ttl", "20s")


# --- one use ---


@pytest.mark.parametrize("transport", ["ndjson", "sse", "websocket"])
def test_a_ticket_opens_one_stream_once(gateway, publish, transport):
    target = f"{TEA}&ticket={ticket(gateway)}"
    with open_stream(gateway, target, transport) as stream:
        assert "date" in stream.response.headers
        publish(events.post(1, "green tea"))
        assert stream.until(lambda message: message.type == "post")[-1]["post"]["text"] == "green tea"
        assert_refused(gateway, target, transport)


def test_of_many_who_show_it_at_once_one_comes_in(gateway):
    target = f"{TEA}&ticket={ticket(gateway)}"
    opened, refused = [], []

    def show():
        try:
            opened.append(open_stream(gateway, target))
        except Refused as why:
            refused.append(why.response.error["code"])
    threads = [threading.Thread(target=show) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1 and refused == ["invalid_ticket"] * 7
    opened[0].close()


def test_what_is_sent_behind_a_handshake_is_heard(gateway):
    text = json.dumps({"op": "ping"})
    secret = ticket(gateway, "/v1/stream")
    with open_stream(gateway, f"/v1/stream?ticket={secret}", "websocket") as stream:
        stream.send_frame(1, text.encode())
        assert stream.next()


def test_only_where_to_begin_may_be_added(gateway, publish):
    for wrong in ("/v1/stream/filter?track=coffee", "/v1/stream/filter?track=tea&language=en",
                  "/v1/stream/sample", "/v1/stream/filter?track=tea&hello=true", "/v1/stream/filter?track="):
        assert_refused(gateway, f"{wrong}{'&' if '?' in wrong else '?'}ticket={ticket(gateway)}")
    secret = ticket(gateway, "/v1/stream/filter?track=tea%20time&since=-5m")
    assert_refused(gateway, f"{TEA}&ticket={secret}")
    with open_stream(gateway, f"/v1/stream/filter?ticket={secret}&track=tea+time&last=3"):
        pass


def test_a_refusal_does_not_use_it_up(servers, redis):
    gateway = servers.gateway(redis, "--max-connections-per-subject", "1")
    target = f"{TEA}&ticket={ticket(gateway)}"
    with gateway.stream("/v1/stream/sample"):
        assert refusal(gateway, target).status == 429
    for method, status in (("HEAD", 405), ("OPTIONS", 204), ("PUT", 405), ("POST", 401)):
        with gateway.connect() as connection:
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            body = b"" if method in ("POST", "PUT") else None
            assert connection.request(method, target, headers, body).status == status, method
    assert refusal(gateway, f"{target}&since=tomorrow").error["code"] == "bad_since"
    assert refusal(gateway, f"{target}&gather_ms=5").error["code"] == "invalid_ticket"
    assert refusal(gateway, target, headers=gateway.bearer()).error["code"] == "too_many_tokens"
    assert refusal(gateway, f"{target}&access_token={gateway.token()}").error["code"] == "too_many_tokens"
    assert refusal(gateway, target, "websocket", {"Origin": "https://evil.example"}).status == 403
    assert refusal(gateway, target, headers={"Accept": "text/html"}).status == 406
    eventually(lambda: gateway.metrics()["sluice_streams"] == 0, "the other stream has ended")
    with open_stream(gateway, target):
        pass


def test_what_is_no_ticket(gateway):
    for text in ("", "a", "A" * 22, "A" * 21 + "B", "A" * 4000, "%41" * 22):
        assert_refused(gateway, f"{TEA}&ticket={text}")
    assert refusal(gateway, f"{TEA}&ticket={ticket(gateway)}&ticket=a").error["code"] == "repeated_parameter"
    with gateway.connect() as connection:
        response = connection.request("GET", f"/v1/counts?track=tea&since=-1m&ticket={ticket(gateway)}", gateway.bearer())
    assert response.error["code"] == "unknown_parameter"


# --- requesting a ticket ---


def test_the_path_is_checked_as_the_stream_would_be(gateway):
    for path, status, code in (
            ("/v1/stream/nothing", 404, "no_such_stream"), ("/v1/counts?since=-1h", 404, "no_such_stream"),
            ("v1/stream/filter?track=tea", 404, "no_such_stream"),
            ("/v1/stream/filter?trak=tea", 400, "unknown_parameter"),
            ("/v1/stream/filter", 400, "no_selector"),
            ("/v1/stream/filter?track=%zz", 400, "bad_encoding"),
            ("/v1/stream/filter?rule=(tea", 400, "syntax"),
            ("/v1/stream/filter?track=tea&since=soon", 400, "bad_since"),
            ("/v1/stream/filter?track=tea&access_token=a", 400, "unknown_parameter"),
            ("/v1/stream/filter?track=tea&ticket=a", 400, "unknown_parameter"),
            ("/v1/stream/filter?track=tea&delimited=lines", 400, "bad_delimited")):
        response = ask(gateway, {"path": path}, gateway.bearer())
        assert (response.status, response.error["code"]) == (status, code), path
    for path, scope in (("/v1/stream/firehose", "stream:filter"), ("/v1/stream/home", "stream:filter"),
                        (TEA, "stream:firehose"), ("/v1/stream/sample", "read write admin")):
        response = ask(gateway, {"path": path}, gateway.bearer(scope=scope))
        assert response.status == 403 and "insufficient_scope" in response.headers["www-authenticate"], path
    for path in ("/v1/stream", "/v1/stream/counts?by=rule&bucket=1m", "/v1/stream/filter?track=tea&delimited=length",
                 "/v1/stream/trends?window=5m&of=hashtags&bucket=1m", "/v1/stream/home"):
        ticket(gateway, path)


def test_limits_of_the_token_are_those_of_the_ticket(gateway):
    assert ask(gateway, {"path": "/v1/stream/filter?track=tea,milk"}, gateway.bearer(lim={"track": 1})).status == 413
    secret = ticket(gateway, "/v1/stream", lim={"track": 1})
    with open_stream(gateway, f"/v1/stream?ticket={secret}", "websocket") as stream:
        stream.send_frame(1, b'{"op":"subscribe","id":"a","filter":{"track":"tea,milk"}}')
        assert stream.next()["error"]["code"] == "too_many_phrases"


@pytest.mark.parametrize("body, status, code", [
    ("{", 400, "bad_json"), ("[]", 400, "bad_json"), ({}, 400, "missing_member"),
    ({"path": 1}, 400, "bad_type"), ({"path": TEA, "ttl": 5}, 400, "unknown_member")])
def test_a_body_that_is_none(gateway, body, status, code):
    response = ask(gateway, body, gateway.bearer())
    assert (response.status, response.error["code"]) == (status, code)


def test_who_asks_needs_a_token(gateway):
    assert ask(gateway, {"path": TEA}).error["code"] == "no_token"
    assert ask(gateway, "{", {"Authorization": "Bearer no"}).error["code"] == "invalid_token"
    assert ask(gateway, {"path": TEA}, {"Content-Type": "text/plain", **gateway.bearer()}).status == 415
    assert ask(gateway, {"path": TEA}, gateway.bearer(), "PUT").status == 405
    assert gateway.get("/v1/tickets", gateway.bearer()).headers["allow"] == "POST, OPTIONS"


# --- in Redis ---


def key_of(redis, kind, secret):
    """The key under which a secret's data is stored."""
    name = base64url(hashlib.sha256(secret.encode()).digest())
    number = 0
    for letter in name[:8]:
        number = (number * 31 + ord(letter)) % 2 ** 32
    return f"sluice:{{{number % redis.shards}}}:{kind}:{name}"


def session_key(redis, stream):
    return key_of(redis, "session", given(stream)[0].split("=")[1])


def test_redis_has_a_hash_for_a_time(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--ticket-ttl", "90s")
    response = ask(gateway, {"path": TEA}, gateway.bearer(jti="one"))
    secret = response.json["ticket"]
    assert response.json["expires_in"] == 90
    key = key_of(redis, "ticket", secret)
    kept = redis.client.get(key)
    assert secret not in f"{key}{kept}"
    assert 80_000 < redis.client.pttl(key) <= 90_000
    row = json.loads(kept)
    assert (row["sub"], row["jti"], row["lim"]["track"]) == ("42", "one", 400) and "stream:filter" in row["scope"]
    with open_stream(gateway, f"{TEA}&ticket={secret}"):
        assert not redis.client.exists(key)


@pytest.mark.parametrize("change, is_good", [
    ({}, True), ({"key": None}, True), ({"key": 1}, False), ({"kid": "another"}, False), ({"iss": "another"}, False)])
def test_it_is_good_while_the_key_of_its_token_is(servers, change, is_good):
    """Gateways of older versions do not say which key of that name it was."""
    redis = servers.redis()
    gateway = servers.gateway(redis)
    secret = ticket(gateway)
    key = key_of(redis, "ticket", secret)
    row = json.loads(redis.client.get(key))
    assert row["kid"] == "secret" and row["key"] > 1
    redis.client.set(key, json.dumps({name: value for name, value in {**row, **change}.items() if value is not None}))
    if is_good:
        open_stream(gateway, f"{TEA}&ticket={secret}").close()
    else:
        assert "the key of its token" in assert_refused(gateway, f"{TEA}&ticket={secret}").error["message"]
        assert redis.client.exists(key)


def test_any_gateway_takes_it(servers, redis, gateway):
    other = servers.gateway(redis)
    with open_stream(other, f"{TEA}&ticket={ticket(gateway)}"):
        pass


def test_a_ticket_ends_with_its_token(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    secret = ticket(gateway)
    key = key_of(redis, "ticket", secret)
    row = json.loads(redis.client.get(key))
    redis.client.set(key, json.dumps({**row, "exp": 1}))
    assert refusal(gateway, f"{TEA}&ticket={secret}").error["code"] == "token_expired"
    redis.client.set(key, "{}")
    assert refusal(gateway, f"{TEA}&ticket={secret}").status == 503


@pytest.mark.one_redis("one is taken away")
def test_without_redis_there_are_none(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--redis-timeout", "300ms")
    secret = ticket(gateway)
    redis.stop()
    eventually(lambda: gateway.get("/readyz").status == 503, "the gateway knows")
    for response in (ask(gateway, {"path": TEA}, gateway.bearer()), refusal(gateway, f"{TEA}&ticket={secret}")):
        assert (response.status, response.error["code"]) == (503, "redis_away")
        assert "retry-after" in response.headers


@pytest.mark.one_redis("one is stopped")
def test_who_leaves_while_redis_is_slow_leaves_nothing(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--redis-timeout", "2s")
    secret = ticket(gateway)
    redis.client.client_pause(1000, all=True)
    for target in (f"{TEA}&ticket={secret}", f"{TEA}&ticket={'A' * 22}"):
        connection = gateway.connect()
        connection.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        connection.reset()
    eventually(lambda: redis.client.ping(), "Redis answers")
    with open_stream(gateway, f"{TEA}&ticket={ticket(gateway)}"):
        eventually(lambda: gateway.metrics()["sluice_streams"] == 1, "one stream")


def test_who_comes_by_a_ticket_counts(servers):
    gateway = servers.gateway(servers.redis(), "--max-connects-per-minute", 1, "--session-cookie", "on")
    target, stream = come(gateway)
    stream.close()
    assert "connects" in stream.response.headers["ratelimit"]
    for url, headers in ((target, {**OURS, "Cookie": given(stream)[0]}), (f"{TEA}&ticket={ticket(gateway)}", OURS)):
        response = refusal(gateway, url, "sse", headers)
        assert (response.status, response.error["code"]) == (429, "rate_limited")
    assert gateway.metrics()['sluice_use_refused_total{limit="connects"}'] == 2


def test_guesses_are_bad_tokens(servers):
    gateway = servers.gateway(servers.redis(), "--max-bad-tokens-per-minute", 1)
    secret = ticket(gateway)
    assert_refused(gateway, f"{TEA}&ticket={'A' * 22}")
    assert refusal(gateway, f"{TEA}&ticket={secret}").status == 429


# --- the cookie ---

OURS = {"Sec-Fetch-Site": "same-origin"}


def given(stream):
    """Returns (name=value, attributes) of the cookie that the answer sets, or None."""
    header = stream.response.headers.get("set-cookie")
    if header is None:
        return None
    pair, *attributes = header.split("; ")
    return pair, attributes


def come(gateway, headers=OURS, path=TEA, transport="sse"):
    target = f"{path}&ticket={ticket(gateway, path)}"
    stream = open_stream(gateway, target, transport, headers)
    return target, stream


def test_an_event_source_is_given_a_cookie_to_come_back_with(named, redis):
    cli = Cli(redis)
    cli.run("user", "add", "ada")
    target, stream = come(named)
    with stream:
        cookie, attributes = given(stream)
        assert re.fullmatch(r"sluice_[\w-]{16}=[\w-]{22}", cookie)
        assert {"Path=/v1/stream", "Secure", "HttpOnly", "SameSite=Strict"} < set(attributes)
        assert re.fullmatch(r"Max-Age=3[56]\d\d", attributes[0])
        black = cli.run("post", "--user", "ada", "black tea").strip()
        last = stream.until(black)[-1].sse_id
    white = cli.run("post", "--user", "ada", "white tea").strip()
    headers = {**OURS, "Cookie": f"a=b; {cookie}; c=d", "Last-Event-ID": last}
    for _ in range(2):
        with open_stream(named, target, "sse", headers) as again:
            assert "set-cookie" not in again.response.headers
            assert again.until(white)


def test_only_an_event_source_of_a_known_page_has_one(named, gateway):
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "none"}, {"Origin": "https://evil.example"},
                    {"Origin": "null", **OURS}):
        target, stream = come(named, headers)
        with stream:
            assert given(stream) is None, headers
    target, stream = come(named, transport="ndjson")
    stream.close()
    assert given(stream) is None
    target, stream = come(gateway)
    stream.close()
    assert given(stream) is None, "it is off unless asked for"
    target, stream = come(named, {"Origin": PAGE})
    with stream:
        assert given(stream)
        assert stream.response.headers["access-control-allow-credentials"] == "true"
        assert stream.response.headers["access-control-allow-origin"] == PAGE


def test_a_cookie_opens_nothing_else(named, gateway):
    target, stream = come(named)
    stream.close()
    cookie = {"Cookie": given(stream)[0]}
    for headers in (cookie, {**cookie, "Sec-Fetch-Site": "cross-site"}, {**cookie, "Sec-Fetch-Site": "same-site"},
                    {**cookie, "Origin": "https://evil.example"}):
        assert_refused(named, target, "sse", headers)
    mine = {**cookie, **OURS}
    assert_refused(named, target, "ndjson", mine)
    assert refusal(named, target, "websocket", mine).status == 401
    assert_refused(gateway, target, "sse", mine)
    other = target.replace("track=tea", "track=milk")
    assert_refused(named, other, "sse", mine)
    assert_refused(named, other, "sse", {**OURS, "Cookie": re.sub(r"_[\w-]{16}=", "_" + "A" * 16 + "=", cookie["Cookie"])})
    name, value = cookie["Cookie"].split("=")
    assert_refused(named, target, "sse", {**OURS, "Cookie": f"{name}={'B' if value[0] == 'A' else 'A'}{value[1:]}"})
    assert refusal(named, TEA, "sse", mine).error["code"] == "no_token"
    with named.connect() as connection:
        assert connection.request("GET", "/v1/users/me", mine).status == 401
    with open_stream(named, target, "sse", mine):
        pass


def test_a_session_ends_with_its_token_and_its_key(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--session-cookie", "on")
    target, stream = come(gateway)
    stream.close()
    mine = {**OURS, "Cookie": given(stream)[0]}
    key = session_key(redis, stream)
    assert 3_500_000 < redis.client.pttl(key) <= 3_660_000
    row = json.loads(redis.client.get(key))
    redis.client.set(key, json.dumps({**row, "exp": 1}))
    assert refusal(gateway, target, "sse", mine).error["code"] == "token_expired"
    redis.client.delete(key)
    assert_refused(gateway, target, "sse", mine)


def test_what_is_revoked_ends_tickets_and_sessions(servers):
    gateway = servers.gateway(servers.redis(), "--session-cookie", "on")
    target, stream = come(gateway)
    mine = {**OURS, "Cookie": given(stream)[0]}
    secret, other = ticket(gateway), ticket(gateway, sub="43")
    with gateway.connect() as connection:
        response = connection.request("POST", "/v1/revocations", {"Content-Type": "application/json",
                                                                  **gateway.bearer(sub="root", scope="admin")}, b'{"sub":"42"}')
        assert response.status == 201, response
    assert stream.until(lambda message: message.type == "disconnect")[-1]["code"] == "token_revoked"
    for url, headers in ((f"{TEA}&ticket={secret}", OURS), (target, mine)):
        assert refusal(gateway, url, "sse", headers).error["code"] == "token_revoked"
    open_stream(gateway, f"{TEA}&ticket={other}").close()


def test_a_day_is_the_longest_session(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--session-cookie", "on")
    secret = ask(gateway, {"path": TEA}, {"Authorization": "Bearer " + hs256_token(
        SECRET, 10 ** 6, sub="42", scope="stream:filter")}).json["ticket"]
    with open_stream(gateway, f"{TEA}&ticket={secret}", "sse", OURS) as stream:
        assert given(stream)[1][0] == "Max-Age=86400"
    assert 0 < redis.client.pttl(session_key(redis, stream)) <= 86_400_000


def test_a_browser_has_so_many_cookies(named):
    others = "; ".join(f"sluice_{number:016}={'A' * 22}" for number in range(16))
    target, stream = come(named, {**OURS, "Cookie": others})
    with stream:
        assert given(stream) is None
    assert_refused(named, target, "sse", {**OURS, "Cookie": others})
