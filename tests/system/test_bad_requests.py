"""Invalid requests: each gets an answer with the reason, and does no harm."""

import gzip
import json
import socket
from urllib.parse import urlencode

import pytest

from harness import events
from harness.http import form_bytes
from harness.programs import NO_QUARANTINE
from harness.streams import Refused
from harness.waiting import Deadline
from harness.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, frame

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"


@pytest.fixture
def connection(gateway):
    with gateway.connect() as connection:
        yield connection


@pytest.fixture(autouse=True)
def neighbour(gateway, publish):
    """A client that must not be affected by the tests."""
    with gateway.stream(FIREHOSE) as stream:
        yield stream
        publish(events.post(1, "still here"))
        stream.until(1)


@pytest.mark.parametrize("path", ["/index.html", "/v1/stream/nothing", "/v1/stream/filter/x",
                                  "/v1/stream/filterx", "/V1/stream/filter", "/v2/stream/filter",
                                  "//v1/stream/filter", "/v1/stream/../stream/firehose",
                                  "/" + "x" * 3000])
def test_unknown_paths(gateway, connection, path):
    response = connection.request("GET", path, gateway.bearer())
    assert response.status == 404 and response.error["code"] == "not_found", response
    upgraded, response = gateway.upgrade(path, gateway.bearer())
    upgraded.close()
    assert response.status == 404 and response.error["code"] == "not_found"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", [FIREHOSE, "/v1/stream/filter?track=a", "/healthz", "/metrics"])
def test_wrong_methods(gateway, connection, method, path):
    response = connection.request(method, path, gateway.bearer())
    assert response.status == 405 and response.error["code"] == "method_not_allowed", response
    allowed = {m.strip() for m in response.headers["allow"].split(",")}
    assert "GET" in allowed and method not in allowed
    assert ("POST" in allowed) == path.startswith("/v1/stream")


@pytest.mark.parametrize("method", ["BREW", "GETT", "get", "CONNECT", "TRACE"])
def test_methods_that_nobody_knows(gateway, connection, method):
    response = connection.request(method, FIREHOSE, gateway.bearer())
    assert response.status in (400, 405, 501), response


@pytest.mark.parametrize("name", ["Authorization", "Content-Type", "Idempotency-Key",
                                  "Last-Event-ID", "Origin"])
def test_headers_that_come_once(gateway, connection, name):
    request = form_bytes("GET", FIREHOSE, {**gateway.bearer(), name: "a"})
    connection.send(request.replace(b"\r\n\r\n", f"\r\n{name.lower()}: a\r\n\r\n".encode()))
    response = connection.read_response()
    assert response.status == 400
    assert response.error == {"code": "repeated_header", "message": f"{name} is given twice",
                              "param": name}


def test_head_has_no_body(gateway, connection):
    connection.send(form_bytes("HEAD", "/healthz"))
    assert connection.read_response("HEAD").status in (200, 405)
    response = connection.request("GET", "/healthz")
    assert response.status == 200, "a body followed the answer to HEAD"


def test_keep_alive_after_refusals(gateway, connection):
    """One connection carries many answers, until one says Connection: close."""
    for path, status in (("/healthz", 200), ("/nowhere", 404), (FIREHOSE, 401), ("/readyz", 200)):
        response = connection.request("GET", path)
        assert response.status == status
        if response.headers.get("connection", "").lower() == "close":
            pytest.fail(f"{path} closes the connection")


def test_form_without_its_type(gateway, connection):
    for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
        response = connection.request("POST", "/v1/stream/filter",
                                      {**gateway.bearer(), "Content-Type": kind}, b"track=a")
        assert response.status in (400, 415), response
        assert response.error
        if response.headers.get("connection", "").lower() == "close":
            return


def test_form_that_is_compressed(gateway, connection):
    headers = {**gateway.bearer(), "Content-Type": "application/x-www-form-urlencoded"}
    response = connection.request("POST", "/v1/stream/filter", {**headers, "Content-Encoding": "gzip"},
                                  gzip.compress(b"track=a"))
    assert response.status == 415 and response.headers["accept-encoding"] == "identity"
    assert response.error["code"] == "bad_content_encoding" and response.error["param"] == "Content-Encoding"
    assert response.headers["connection"] == "close"


def test_form_of_unknown_length(gateway, connection):
    connection.send(form_bytes("POST", "/v1/stream/filter", {
        **gateway.bearer(), "Content-Type": "application/x-www-form-urlencoded"}))
    response = connection.read_response()
    assert response.status == 411 and response.error["code"] == "length_required", response


def test_chunked_form(gateway, connection):
    connection.send(form_bytes("POST", "/v1/stream/filter", {
        **gateway.bearer(), "Content-Type": "application/x-www-form-urlencoded",
        "Transfer-Encoding": "chunked"}) + b"7\r\ntrack=a\r\n0\r\n\r\n")
    response = connection.read_head()
    assert response.status in (200, 411), response


@pytest.mark.parametrize("length", ["-1", "x", "1e3", "99999999999999999999", "0x10", ""])
def test_lengths_that_are_none(gateway, connection, length):
    connection.send(form_bytes("POST", "/v1/stream/filter", {
        **gateway.bearer(), "Content-Type": "application/x-www-form-urlencoded",
        "Content-Length": length}))
    response = connection.read_response()
    assert response.status in (400, 411, 413), response
    assert response.error


def test_body_that_is_too_large(gateway, connection):
    connection.send(form_bytes("POST", "/v1/stream/filter", {
        **gateway.bearer(), "Content-Type": "application/x-www-form-urlencoded",
        "Content-Length": str(1 << 30)}, b"track="))
    response = connection.read_response()
    assert response.status == 413 and response.error, response


def test_body_up_to_the_limit(servers, redis):
    gateway = servers.gateway(redis, "--max-request-bytes", 2048)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    filled = b"track=a" + b"," * (2048 - 7)
    with gateway.stream("/v1/stream/filter", method="POST", body=filled[:2048], headers=form):
        pass
    with pytest.raises(Refused) as refused:
        gateway.stream("/v1/stream/filter", method="POST", body=filled + b"y", headers=form)
    assert refused.value.response.status == 413


def test_expect_100_continue(gateway, connection):
    """curl sends it before long forms, and waits a second for an answer."""
    connection.send(form_bytes("POST", "/v1/stream/filter", {
        **gateway.bearer(), "Content-Type": "application/x-www-form-urlencoded",
        "Content-Length": "7", "Expect": "100-continue"}))
    connection.send(b"track=a")
    response = connection.read_head()
    if response.status == 100:
        response = connection.read_head()
    assert response.status in (200, 417), response


@pytest.mark.parametrize("size", [17000, 70000, 2_000_000])
@pytest.mark.parametrize("where", ["header", "url", "many headers"])
def test_oversized_head_gets_an_answer(gateway, connection, size, where):
    if where == "url":
        request = form_bytes("GET", FIREHOSE + "?track=" + "a" * size, gateway.bearer())
    elif where == "header":
        request = form_bytes("GET", FIREHOSE, {**gateway.bearer(), "X-Long": "a" * size})
    else:
        request = form_bytes("GET", FIREHOSE, {
            **gateway.bearer(), **{f"X-{n}": "a" * 90 for n in range(size // 100)}})
    try:
        connection.send(request)
    except ConnectionError:
        pass  # answered and closed while we were still sending
    response = connection.read_response()
    assert response.status in (400, 414, 431), response
    assert response.error


def test_head_just_below_the_limit(gateway):
    headers = {"X-Long": "a" * 12000}
    gateway.stream(FIREHOSE, headers=headers).close()
    gateway.stream(FIREHOSE, "raw-websocket", headers=headers).close()


def test_oversized_head_of_an_upgrade_gets_an_answer(gateway):
    connection, response = gateway.upgrade(FIREHOSE, {**gateway.bearer(), "X-Long": "a" * 17000})
    connection.close()
    assert response.status in (400, 414, 431)


@pytest.mark.parametrize("raw", [
    b"\r\n\r\n", b"\0" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET /\r\n\r\n", b"GET  HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n", b"GET healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nno colon\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\xff\xfe\xfd" * 2000 + b"\r\n\r\n",
    b"GET /v1/stream/filter?track=%zz%4 HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_what_is_no_request_is_answered_or_closed(gateway, connection, raw):
    connection.send(raw)
    connection.half_close()
    connection.wait_closed()
    assert gateway.get("/healthz").status == 200


GET = b"GET /healthz HTTP/1.1\r\n"
SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("raw", [
    GET + b"Host: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    GET + b"Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    GET + b"Host: x\r\nTransfer-Encoding: xchunked\r\n\r\n",
    GET + b"Host: x\r\nContent-Length: +18\r\n\r\n", GET + b"Host: x\r\nContent-Length: 1 8\r\n\r\n",
    GET + b"Host: x\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n",
    GET + b"Host: x\r\nContent-Length: 0, 44\r\n\r\n", GET + b"Host : x\r\n\r\n", GET + b" Host: x\r\n\r\n",
    GET + b"Host: x\r\n continued\r\n\r\n", GET + b"Host: x\r\nHost: x\r\n\r\n", GET + b"\r\n",
    GET + b"Host: x\r\nX-Name: a\0b\r\n\r\n", GET + b"Host: x\r\n: nothing\r\n\r\n",
    GET + b"Host: x\r\nX Y: z\r\n\r\n", b"GET /healthz HTTP/1.1\nHost: x\n\n", GET + b"Host: x\r\nX: a\rb\r\n\r\n",
    b"GET /healthz HTTP/1.1 \r\nHost: x\r\n\r\n", b"GET /healthz  HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET\t/healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n",
    b"GET /healthz HTTP/1.10\r\nHost: x\r\n\r\n", b"GET /healthz http/1.1\r\nHost: x\r\n\r\n"])
def test_what_proxies_might_read_otherwise(connection, raw):
    """Refused, and what follows is not taken for another request."""
    connection.send(raw + SMUGGLED)
    answer = connection.read_response()
    assert answer.status in (400, 411, 501, 505) and answer.error, answer
    assert answer.headers["connection"] == "close"
    assert connection.read_to_end(Deadline(what="the end")) == b""


@pytest.mark.parametrize("path", [
    "/%2e/healthz", "/./healthz", "/a/../healthz", "/a/%2e%2e/healthz", "/a/%2E%2e/healthz", "//healthz",
    "/%2fhealthz", "/healthz%00", "/healthz%0d.css", "/healthz/", "/healthz;a", "/healthz%20", "/Healthz",
    "/v1/stream/../../healthz"])
def test_a_path_has_one_name(connection, path):
    """The rules of a proxy apply to that name."""
    answer = connection.request("GET", path)
    assert answer.status in (400, 404) and answer.error, answer


def test_clients_who_send_all_and_then_close_one_direction(gateway, connection):
    """Like `nc -N` and `openssl s_client` do at the end of a file."""
    connection.send(form_bytes("GET", "/healthz") * 3 + form_bytes("GET", "/nowhere"))
    connection.half_close()
    assert [connection.read_response().status for _ in range(4)] == [200, 200, 200, 404]
    assert connection.read_to_end(Deadline(what="the end")) == b""


def test_crowd_that_asks_and_does_not_read(servers, redis):
    """What was sent ahead stays in the kernel."""
    gateway = servers.gateway(redis, env=NO_QUARANTINE)
    before = gateway.resident_bytes()
    crowd = [gateway.connect(receive_buffer=2048) for _ in range(50)]
    asked = form_bytes("GET", "/metrics") * 20_000  # 880 kB, for 400 MB of answers
    threads = [connection.send_aside(asked) for connection in crowd]
    for _ in range(20):
        assert gateway.get("/healthz").status == 200
    assert gateway.resident_bytes() - before < 40 << 20
    for connection, thread in zip(crowd, threads):
        connection.socket.shutdown(socket.SHUT_RDWR)
        thread.join()
        connection.close()


def test_request_line_arriving_byte_by_byte(gateway, connection, publish):
    for byte in form_bytes("GET", FIREHOSE, gateway.bearer()):
        connection.send(bytes([byte]))
    assert connection.read_head().status == 200
    publish(events.post(2, "slowly"))
    assert json.loads(connection.read_chunk(Deadline()))["id"] == "2"


def test_connection_that_never_finishes_its_request(servers, redis):
    gateway = servers.gateway(redis, "--handshake-timeout-ms", 200)
    for said in (b"", b"GET /v1/stream/fire", form_bytes("GET", FIREHOSE)[:-2]):
        with gateway.connect() as connection:
            connection.send(said)
            connection.wait_closed()


def test_pipelined_requests(gateway, connection):
    connection.send(form_bytes("GET", "/healthz") * 3)
    for _ in range(3):
        assert connection.read_response().status == 200


def test_slow_reader_who_asks_ahead(gateway):
    with gateway.connect(receive_buffer=4096) as connection:
        connection.send(form_bytes("GET", "/metrics") * 400)  # more than sockets hold
        assert gateway.get("/healthz").status == 200  # others are served meanwhile
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        for _ in range(400):
            assert connection.read_response().text.endswith("\n")
        assert connection.request("GET", "/healthz").text == "ok\n"


# Cross-origin

def test_cross_origin_requests_of_an_allowed_page(servers, redis):
    gateway = servers.gateway(redis, "--allow-origin", "https://app.example",
                              "--allow-origin", "http://localhost:3000")
    for origin in ("https://app.example", "http://localhost:3000"):
        with gateway.connect() as connection:
            response = connection.request("OPTIONS", FIREHOSE, {
                "Origin": origin, "Access-Control-Request-Method": "GET",
                "Access-Control-Request-Headers": "authorization"})
            assert response.status in (200, 204)
            assert response.headers["access-control-allow-origin"] == origin
            assert "authorization" in response.headers["access-control-allow-headers"].lower()
            assert "GET" in response.headers["access-control-allow-methods"]
        with gateway.stream(FIREHOSE, headers={"Origin": origin}) as stream:
            assert stream.response.headers["access-control-allow-origin"] == origin
            assert "origin" in stream.response.headers["vary"].lower()
        gateway.stream(FIREHOSE, "raw-websocket", headers={"Origin": origin}).close()
        with gateway.connect() as connection:
            response = connection.request("GET", FIREHOSE, {"Origin": origin})
            assert response.status == 401
            assert response.headers["access-control-allow-origin"] == origin


def preflight(gateway, origin, wanted):
    with gateway.connect() as connection:
        return connection.request("OPTIONS", FIREHOSE, {
            "Origin": origin, "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": wanted})


def test_a_page_may_send_any_header_and_credentials_if_it_is_listed(servers, redis):
    gateway = servers.gateway(redis, "--allow-origin", "https://app.example")
    wanted = "authorization,cache-control,traceparent,x-requested-with"
    answer = preflight(gateway, "https://app.example", wanted)
    assert answer.headers["access-control-allow-headers"] == wanted
    assert answer.headers["access-control-allow-credentials"] == "true"
    with gateway.stream(FIREHOSE, headers={"Origin": "https://app.example"}) as stream:
        assert stream.response.headers["access-control-allow-origin"] == "https://app.example"
        assert stream.response.headers["access-control-allow-credentials"] == "true"
    for strange in ("x-a: 1", "a\tb", "x" * 1025, '"quoted"'):
        allowed = preflight(gateway, "https://app.example", strange).headers["access-control-allow-headers"]
        assert allowed == "Authorization, Content-Type, Idempotency-Key, Last-Event-ID"


@pytest.mark.parametrize("option, origin", [((), "https://evil.example"), (("--dev",), "https://any.example")])
def test_a_page_that_is_not_listed_may_send_no_credentials(servers, redis, option, origin):
    gateway = servers.gateway(redis, "--allow-origin", "https://app.example", *option)
    answer = preflight(gateway, origin, "authorization")
    assert "access-control-allow-credentials" not in answer.headers
    assert ("access-control-allow-origin" in answer.headers) == bool(option)


def test_cross_origin_requests_of_other_pages(servers, redis):
    gateway = servers.gateway(redis, "--allow-origin", "https://app.example")
    for origin in ("https://evil.example", "https://app.example.evil.example", "null",
                   "http://app.example", "https://app.example:8443"):
        with gateway.connect() as connection:
            response = connection.request("OPTIONS", FIREHOSE, {
                "Origin": origin, "Access-Control-Request-Method": "GET"})
            assert "access-control-allow-origin" not in response.headers
        connection, response = gateway.upgrade(FIREHOSE, {**gateway.bearer(), "Origin": origin})
        connection.close()
        assert response.status == 403 and response.error
    gateway.stream(FIREHOSE, "raw-websocket").close()  # not a browser: no origin


def test_development_mode_allows_every_page(servers, redis):
    gateway = servers.gateway(redis, "--dev")
    with gateway.stream(FIREHOSE, headers={"Origin": "null"}) as stream:
        assert stream.response.headers["access-control-allow-origin"] in ("*", "null")
    gateway.stream(FIREHOSE, "raw-websocket", headers={"Origin": "https://any.example"}).close()


# WebSocket: the handshake

@pytest.mark.parametrize("headers, statuses", [
    ({"Sec-WebSocket-Version": "8"}, (400, 426)), ({"Sec-WebSocket-Version": None}, (400, 426)),
    ({"Sec-WebSocket-Key": None}, (400,)), ({"Sec-WebSocket-Key": ""}, (400,)),
    ({"Sec-WebSocket-Protocol": "chat"}, (101, 400)),
    ({"Sec-WebSocket-Protocol": "chat, sluice.v1"}, (101,)),
    ({"Sec-WebSocket-Protocol": ",,,"}, (101, 400)),
    ({"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits"}, (101,)),
    ({"Upgrade": "h2c"}, (200, 400, 426)), ({"Upgrade": ""}, (200, 400, 426)),
])
def test_odd_handshakes(gateway, headers, statuses):
    connection, response = gateway.upgrade(FIREHOSE, {**gateway.bearer(), **headers}) \
        if "Sec-WebSocket-Key" not in headers else _upgrade_without_key(gateway, headers)
    connection.close()
    assert response.status in statuses, response
    if response.status == 101:
        assert response.headers.get("sec-websocket-protocol") in (None, "sluice.v1")
        assert response.headers.get("sec-websocket-extensions") in \
            (None, "permessage-deflate; client_no_context_takeover")
    if response.status >= 400:
        assert response.error


def _upgrade_without_key(gateway, headers):
    connection = gateway.connect()
    connection.send(form_bytes("GET", FIREHOSE, {
        **gateway.bearer(), "Upgrade": "websocket", "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13", **headers}))
    return connection, connection.read_response()


def test_upgrade_by_post(gateway, connection):
    connection.send(form_bytes("POST", FIREHOSE, {
        **gateway.bearer(), "Upgrade": "websocket", "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Content-Length": "0"}))
    assert connection.read_head().status != 101


# Typical mistakes of beginners: the answer says what to do instead.

WEBSOCKET_KEY = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}


@pytest.mark.parametrize("path, headers, status, code, said", [
    ("/v1/stream/firehose?since=5", {}, 400, "bad_since", "5 is no event id"),
    ("/v1/stream/firehose?since=tomorrow", {}, 400, "bad_since", "as in -1h, 2026-11-22"),
    ("/v1/stream/filter?track=ca*", {}, 400, "wildcard", "there are no wildcards"),
    ("/v1/stream/filter?rule=cat~2", {}, 400, "wildcard", "at character 1: ^cat~2"),
    ("/v1/stream/filter?rule=tea+OR+OR+fox", {}, 400, "syntax", "at character 8: tea OR ^OR fox"),
    ("/v1/stream/filter?rule=colour:red", {}, 400, "unknown_operator", "'colour:' at character 1"),
    ("/v1/stream/firehose?types=likes", {}, 400, "bad_types", "'likes'; the types are post, delete"),
    ("/v1/stream/filter?locations=37,-123,38,-122", {}, 400, "bad_box", "did you mean -123,37,-122,38?"),
    ("/v1/stream/filter?follow=a/b", {}, 400, "bad_follow", "'a/b'"),
    (FIREHOSE, WEBSOCKET_KEY, 426, "upgrade_required", "proxy"),
    ("/v1/stream", WEBSOCKET_KEY, 426, "upgrade_required", "proxy"),
])
def test_mistakes_of_the_first_day_are_told_from_each_other(gateway, connection, path, headers, status,
                                                           code, said):
    response = connection.request("GET", path, {**gateway.bearer(), **headers})
    assert (response.status, response.error["code"]) == (status, code), response
    assert said in response.error["message"], response
    assert status != 426 or "upgrade" in response.headers["connection"].lower()


@pytest.mark.parametrize("parameters, code, said", [
    ({"rule": "cat or dog"}, "operator_word", "at character 5: cat ^or dog; the operators are OR"),
    ({"track": "cat OR dog"}, "operator_word", "separated by commas"),
    ({"locations": "48,2,49,3"}, "box_at_sea", "did you mean 2,48,3,49?"),
    ({"track": "cat", "language": "english"}, "unknown_language", "did you mean en?"),
])
@pytest.mark.parametrize("transport", ["ndjson", "sse"])
def test_what_is_likely_not_meant_is_said_first(gateway, publish, transport, parameters, code, said):
    path = "/v1/stream/filter?" + urlencode(parameters)
    with gateway.stream(path, transport) as stream:
        warning = stream.next()
        assert (warning.type, warning["code"], warning["param"]) == ("warning", code, list(parameters)[-1])
        assert said in warning["message"], warning
        publish(events.post(2, "cat or OR dog", lang="english", geo={"lon": 48.5, "lat": 2.5}))
        assert stream.next()["id"] == "2"  # and it matches that rule
    with gateway.stream(path + "&since=" + str(115322742161408), transport) as stream:
        publish(events.post(3, "cat or OR dog", lang="english", geo={"lon": 48.5, "lat": 2.5}))
        assert stream.next()["id"] == "3"  # a client that comes back was told before
    with gateway.stream("/v1/stream", "websocket") as websocket:
        websocket.send(json.dumps({"op": "subscribe", "id": "a", "filter": parameters}))
        [warning] = websocket.next()["warnings"]
        assert (warning["code"], warning["param"]) == (code, list(parameters)[-1]) and said in warning["message"]


@pytest.mark.parametrize("path, allowed", [("/v1/posts/1/like", "PUT, DELETE, OPTIONS"),
                                           ("/v1/users/me/following/1", "PUT, DELETE, OPTIONS"),
                                           ("/healthz", None)])
def test_a_post_without_a_body_is_told_the_methods_of_the_path(gateway, connection, path, allowed):
    """And nothing of what follows is taken for a request: it may have been the body."""
    connection.send(form_bytes("POST", path, gateway.bearer()) + form_bytes("GET", "/healthz", {}))
    response = connection.read_response()
    assert (response.status, response.error["code"]) == (405, "method_not_allowed"), response
    assert allowed in (None, response.headers["allow"])
    assert response.headers["connection"] == "close"
    assert connection.read_to_end(Deadline(what="the end")) == b""


def test_a_message_to_a_stream_of_one_filter_is_told_where_to_go(gateway):
    with gateway.stream("/v1/stream/filter?track=a", "websocket") as websocket:
        websocket.send('{"op":"subscribe","id":"a","filter":{"track":"b"}}')
        [message] = websocket.to_end()
        assert (message.type, message["code"]) == ("disconnect", "bad_message")
        assert "/v1/stream" in message["reason"] and websocket.close_code == 1002


# WebSocket: frames that break the protocol

def assert_disconnect(websocket, close_code, code="bad_message"):
    """Expects `disconnect`, then the close code; frames before that are events."""
    messages = websocket.to_end()
    assert messages, "closed without a disconnect message"
    assert (messages[-1].type, messages[-1]["code"]) == ("disconnect", code)
    assert websocket.close_code == close_code
    websocket.closed()


BROKEN = {
    "not masked": lambda: frame(TEXT, b"unmasked", masked=False),
    "reserved bit": lambda: frame(TEXT, b"x", reserved=4),
    "unknown opcode": lambda: frame(3, b"x"),
    "unknown control opcode": lambda: frame(11, b"x"),
    "continuation of nothing": lambda: frame(CONTINUATION, b"of nothing"),
    "ping too long": lambda: frame(PING, b"x" * 126),
    "ping in fragments": lambda: frame(PING, b"x", final=False),
    "message within a message": lambda: frame(TEXT, b"a", final=False) + frame(TEXT, b"b"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_protocol_errors_close_the_websocket(gateway, broken):
    """For errors that libwebsockets itself finds it may close without a message; otherwise our own disconnect or a
    proper close frame must come. In any case the connection must end."""
    websocket = gateway.stream(FIREHOSE, "raw-websocket")
    websocket.connection.send(BROKEN[broken]())
    try:
        messages = websocket.to_end()
    except ConnectionError:
        return  # closed at once, which is allowed (RFC 6455, 7.1.7)
    assert all(m.type == "disconnect" for m in messages)
    assert websocket.close_code in (1002, 1005)
    websocket.closed()


def test_binary_message_closes_the_websocket(gateway):
    websocket = gateway.stream(FIREHOSE, "raw-websocket")
    websocket.send_frame(BINARY, b"\0\1\2")
    assert_disconnect(websocket, 1003)


@pytest.mark.parametrize("target", [FIREHOSE, "/v1/stream"])
def test_invalid_utf8_closes_the_websocket(gateway, target):
    websocket = gateway.stream(target, "raw-websocket")
    websocket.send_frame(TEXT, b"{\"op\":\"\xff\"}")
    assert_disconnect(websocket, 1007)


@pytest.mark.parametrize("target", [FIREHOSE, "/v1/stream"])
def test_oversized_message_closes_the_websocket(gateway, target):
    websocket = gateway.stream(target, "raw-websocket")
    try:
        websocket.connection.send(frame(TEXT, b"[" + b" " * 8_000_000 + b"]"))
    except ConnectionError:
        pass  # closed while we were still sending
    try:
        assert_disconnect(websocket, 1009)
    except ConnectionResetError:
        pass  # unread input when the socket was closed


def test_endless_message_in_fragments(gateway):
    websocket = gateway.stream(FIREHOSE, "raw-websocket")
    with pytest.raises(ConnectionError):
        websocket.send_frame(TEXT, b"x" * 1000, final=False)
        while True:
            websocket.send_frame(CONTINUATION, b"x" * 60000, final=False)


def test_frame_that_announces_more_than_it_sends(gateway):
    websocket = gateway.stream(FIREHOSE, "raw-websocket")
    websocket.connection.send(frame(TEXT, b"short", length=1 << 62))
    websocket.connection.half_close()
    websocket.connection.wait_closed()


def test_client_may_close_with_any_code(gateway):
    for payload in (b"", b"\x03\xe8", b"\x03\xe8bye", b"\x0f\xa0"):
        websocket = gateway.stream(FIREHOSE, "raw-websocket")
        websocket.send_frame(CLOSE, payload)
        assert websocket.to_end() == []
        websocket.closed()


def test_pings_are_answered(gateway):
    """Each before the next is sent: of several at once the server may answer only one."""
    websocket = gateway.stream("/v1/stream/filter?track=nothing", "raw-websocket")
    for payload in (b"first", b"", b"x" * 125):
        websocket.send_frame(PING, payload)
        assert websocket.read_frame(Deadline(what="a pong")) == (PONG, payload)


def test_fragmented_and_unsolicited_control_frames(gateway):
    websocket = gateway.stream("/v1/stream", "raw-websocket")
    text = b'{"op":"list"}'
    websocket.send_frame(TEXT, text[:5], final=False)
    websocket.send_frame(PING, b"between")
    websocket.send_frame(PONG, b"unsolicited")
    websocket.send_frame(CONTINUATION, text[5:])
    answers = dict(websocket.read_frame(Deadline(what="two answers")) for _ in range(2))
    assert answers[PONG] == b"between" and json.loads(answers[TEXT])["rules"] == []


@pytest.mark.parametrize("path, near", [
    ("/v1/stream/firehose/", "/v1/stream/firehose"), ("/v1/streams/firehose", "/v1/stream/firehose"),
    ("/v1/streams/", "/v1/stream"), ("/stream/sample", "/v1/stream/sample"),
    ("/firehose", "/v1/stream/firehose"), ("/v1/filter/", "/v1/stream/filter"),
    ("/v1/timelines/home/", "/v1/timelines/home"), ("/healthz/", "/healthz"), ("/v1/", "/v1")])
def test_a_path_that_is_nearly_right_is_told_what_is_there(gateway, path, near):
    answer = gateway.get(path)
    assert answer.status == 404
    assert answer.error["message"] == f"there is nothing at this path; there is {near}"


@pytest.mark.parametrize("path", ["/nowhere", "/v1/stream/nowhere/", "//", "/v1/streamsx"])
def test_a_path_that_is_like_none_gets_no_hint(gateway, path):
    assert gateway.get(path).error["message"] == "there is nothing at this path"
