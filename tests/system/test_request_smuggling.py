"""Where does one request end and the next begin? If a proxy and the server behind it disagree, requests can be smuggled
past the proxy's rules. Each test sends its own bytes, over plain connections and over TLS, and checks every answer
until the server closes."""

import json
import pathlib
import re

import pytest

from harness import events
from harness.api import Site
from harness.http import ConnectionEnded, form_bytes
from harness.waiting import Deadline
from harness.websocket import PING, PONG, frame

pytestmark = pytest.mark.wires

FIREHOSE = "/v1/stream/firehose"
HOST = b"Host: x\r\n"
GET = b"GET /healthz HTTP/1.1\r\n"
POST = b"POST /v1/stream/filter HTTP/1.1\r\n" + HOST
HEALTH = GET + HOST + b"\r\n"
CHUNKS = b"7\r\ntrack=a\r\n0\r\n\r\n"


def answers(gateway, raw, methods=()):
    """Returns (status, code of its error) of all answers to these bytes, on one connection until it ends; if it is kept
    alive, of those to `methods`."""
    seen = []
    with gateway.connect() as connection:
        connection.send(raw)
        for method in methods or iter(lambda: "GET", None):
            try:
                response = connection.read_response(method)
            except ConnectionEnded:
                assert not connection.buffer, bytes(connection.buffer)
                break
            has_error = response.body and response.status >= 400
            seen.append((response.status, response.error["code"] if has_error else None))
    return seen


# One answer with this error, and nothing of what follows is taken for a request.

REFUSED = {
    "both a length and chunks": (POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
                                 411, "length_required"),
    "chunks and a length": (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + CHUNKS,
                            411, "length_required"),
    "chunks alone": (POST + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS, 411, "length_required"),
    "chunks of a GET": (GET + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411,
                        "length_required"),
    "chunks in HTTP/1.0": (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS, 411,
                           "length_required"),
    "another coding": (POST + b"Content-Length: 4\r\nTransfer-Encoding: xchunked\r\n\r\n", 411,
                       "length_required"),
    "the identity": (POST + b"Content-Length: 0\r\nTransfer-Encoding: identity\r\n\r\n", 411,
                     "length_required"),
    "chunks in capitals": (POST + b"TRANSFER-ENCODING:\tCHUNKED\r\n\r\n" + CHUNKS, 411,
                           "length_required"),
    "a space behind Transfer-Encoding": (POST + b"Content-Length: 0\r\nTransfer-Encoding : chunked\r\n\r\n",
                                         400, "bad_request"),
    "a tab before Transfer-Encoding": (POST + b"Content-Length: 0\r\n\tTransfer-Encoding: chunked\r\n\r\n",
                                       400, "bad_request"),
    "Transfer-Encoding behind a bare LF": (
        POST + b"Content-Length: 0\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n", 400, "bad_request"),
    "Transfer-Encoding behind a bare CR": (
        POST + b"Content-Length: 0\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n", 400, "bad_request"),
    "two lengths": (POST + b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n", 400, "repeated_header"),
    "the same length twice": (POST + b"Content-Length: 0\r\ncontent-length: 0\r\n\r\n", 400,
                              "repeated_header"),
    "a list of lengths": (POST + b"Content-Length: 0, 0\r\n\r\n", 400, "bad_request"),
    "a signed length": (POST + b"Content-Length: +18\r\n\r\n", 400, "bad_request"),
    "a negative length": (POST + b"Content-Length: -1\r\n\r\n", 400, "bad_request"),
    "a hexadecimal length": (POST + b"Content-Length: 0x10\r\n\r\n", 400, "bad_request"),
    "a length with a space in it": (POST + b"Content-Length: 1 8\r\n\r\n", 400, "bad_request"),
    "a length that is empty": (POST + b"Content-Length:\r\n\r\n", 400, "bad_request"),
    "a length beyond 64 bits": (POST + b"Content-Length: 18446744073709551616\r\n\r\n", 413,
                                "body_too_large"),
    "a folded length": (POST + b"Content-Length:\r\n 18\r\n\r\n", 400, "bad_request"),
    "a space behind Content-Length": (POST + b"Content-Length : 0\r\n\r\n", 400, "bad_request"),
    "no length": (POST + b"\r\n", 411, "length_required"),
    "a GET with a body": (GET + HOST + b"Content-Length: %d\r\n\r\n" % len(HEALTH), 400, "bad_request"),
    "a folded header": (GET + HOST + b"X: a\r\n b\r\n\r\n", 400, "bad_request"),
    "a first header that is folded": (GET + b" Host: x\r\n" + HOST + b"\r\n", 400, "bad_request"),
    "a space behind Host": (GET + b"Host : x\r\n\r\n", 400, "bad_request"),
    "a space behind another name": (GET + HOST + b"X : y\r\n\r\n", 400, "bad_request"),
    "a name with a NUL": (GET + HOST + b"X\0: y\r\n\r\n", 400, "bad_request"),
    "a value with a NUL": (GET + HOST + b"X: y\0z\r\n\r\n", 400, "bad_request"),
    "a header without a name": (GET + HOST + b": y\r\n\r\n", 400, "bad_request"),
    "a header without a colon": (GET + HOST + b"Transfer-Encoding\r\n\r\n", 400, "bad_request"),
    "bare LF": (b"GET /healthz HTTP/1.1\nHost: x\n\n", 400, "bad_request"),
    "a bare LF behind the request line": (b"GET /healthz HTTP/1.1\n" + HOST + b"\r\n", 400,
                                          "bad_request"),
    "a bare LF between headers": (GET + b"Host: x\nX: y\r\n\r\n", 400, "bad_request"),
    "a bare LF for an empty line": (GET + HOST + b"\n", 400, "bad_request"),
    "an empty line before": (b"\r\n" + HEALTH, 400, "bad_request"),
    "no Host": (GET + b"\r\n", 400, "bad_request"),
    "two Hosts": (GET + HOST + HOST + b"\r\n", 400, "repeated_header"),
    "a Host that is none": (GET + b"Host: x/y\r\n\r\n", 400, "bad_request"),
    "an absolute target": (b"GET http://y/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400, "bad_request"),
    "an absolute target of our own": (b"GET http://x/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400,
                                      "bad_request"),
    "a target with an authority": (b"GET x:80 HTTP/1.1\r\n" + HOST + b"\r\n", 400, "bad_request"),
    "a tunnel": (b"CONNECT x:80 HTTP/1.1\r\n" + HOST + b"\r\n", 501, "not_implemented"),
    "an asterisk": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 400, "bad_request"),
    "a fragment": (b"GET /healthz#x HTTP/1.1\r\n" + HOST + b"\r\n", 400, "bad_request"),
    "a target with a tab": (b"GET /healthz\tx HTTP/1.1\r\n" + HOST + b"\r\n", 400, "bad_request"),
    "a target with a space": (b"GET /healthz x HTTP/1.1\r\n" + HOST + b"\r\n", 505, "http_version"),
    "two spaces": (b"GET  /healthz HTTP/1.1\r\n" + HOST + b"\r\n", 505, "http_version"),
    "a method in small letters": (b"get /healthz HTTP/1.1\r\n" + HOST + b"\r\n", 501, "not_implemented"),
    "no version": (b"GET /healthz\r\n" + HOST + b"\r\n", 505, "http_version"),
    "HTTP/0.9": (b"GET /healthz HTTP/0.9\r\n" + HOST + b"\r\n", 505, "http_version"),
    "HTTP/1.2": (b"GET /healthz HTTP/1.2\r\n" + HOST + b"\r\n", 505, "http_version"),
    "HTTP/2.0": (b"GET /healthz HTTP/2.0\r\n" + HOST + b"\r\n", 505, "http_version"),
    "HTTP/1.10": (b"GET /healthz HTTP/1.10\r\n" + HOST + b"\r\n", 505, "http_version"),
    "http/1.1": (b"GET /healthz http/1.1\r\n" + HOST + b"\r\n", 505, "http_version"),
    "a space behind the version": (b"GET /healthz HTTP/1.1 \r\n" + HOST + b"\r\n", 505, "http_version"),
    "HTTP/2's preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 501, "not_implemented"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_could_be_read_in_two_ways(gateway, case):
    head, status, code = REFUSED[case]
    assert answers(gateway, head + HEALTH) == [(status, code)]


@pytest.mark.parametrize("case", ["both a length and chunks", "a signed length", "a folded header",
                                  "a space behind Host", "bare LF", "no Host", "HTTP/1.2"])
def test_it_is_refused_on_a_kept_connection_too(gateway, case):
    head, status, code = REFUSED[case]
    assert answers(gateway, HEALTH + HEALTH + head + HEALTH) == [(200, None), (200, None), (status, code)]


def everything(gateway, raw):
    """Returns all bytes until the connection ends, but for the time of day."""
    with gateway.connect() as connection:
        connection.send(raw)
        return re.sub(rb"\r\nDate: [^\r]*", b"", connection.read_to_end(Deadline(what="the end of the connection")))


def test_the_heads_of_the_fuzzer_over_both_wires(servers, redis, certificate):
    gateways = [servers.gateway(redis, "--handshake-timeout-ms", 500, certificate=own)
                for own in (None, certificate)]
    last = HEALTH.replace(HOST, HOST + b"Connection: close\r\n")
    heads = sorted((pathlib.Path(__file__).parents[2] / "fuzz/corpus/head").iterdir())
    assert len(heads) > 30
    for path in heads:
        plain, tls = (everything(gateway, path.read_bytes() + HEALTH + last) for gateway in gateways)
        assert plain == tls, path.name
        assert plain, path.name


@pytest.mark.parametrize("name", ["Authorization", "Content-Type", "Host", "Idempotency-Key",
                                  "Last-Event-ID", "Origin", "Sec-WebSocket-Key",
                                  "Sec-WebSocket-Protocol", "Sec-WebSocket-Version"])
def test_headers_that_come_once(gateway, name):
    line = name.encode() + b": x\r\n"
    other = line.upper() if name == "Host" else line.lower()
    request = GET + (b"" if name == "Host" else HOST) + line + b"X: y\r\n" + other + b"\r\n"
    assert answers(gateway, request + HEALTH) == [(400, "repeated_header")]


# A proxy's rules for paths apply to the path that is served.

@pytest.mark.parametrize("path", [
    "//healthz", "///healthz", "/./healthz", "/../healthz", "/a/../healthz", "/healthz/.", "/healthz/..",
    "/%2e/healthz", "/%2E%2e/healthz", "/a/%2e%2e/healthz", "/.%2e/healthz", "/%2fhealthz",
    "/%2Fhealthz", "/a%2f..%2fhealthz", "/healthz%0d.css", "/healthz%0a", "/healthz%7f", "/healthz%1f",
    "/healthz;x", "/healthz/", "/healthz%3f", "/healthz%20", "/h%65althz", "/HEALTHZ", "/\\healthz",
    "/a/..;/healthz", "/metrics%0d.css", "//metrics", "/v1/stream/./filter", "/v1%2fstream%2ffilter"])
def test_a_path_has_one_name(gateway, path):
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    assert answers(gateway, request) == [(404, "not_found")]
    connection, response = upgrade_to(gateway, path)
    connection.close()
    assert (response.status, response.error["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/%", "/healthz%", "/healthz%0", "/healthz%zz", "/healthz?%", "/a%\r"])
def test_escapes_that_are_none(gateway, path):
    assert answers(gateway, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() + HEALTH) == \
        [(400, "bad_request")]


def test_a_user_in_a_path_may_be_escaped(site):
    user = site.user("esc_aped")
    for name in ("esc_aped", "%65sc_aped", "esc%5Faped", "%40esc_aped"):
        assert user.get("/v1/users/" + name)["id"] == user.sub
    user.refused(404, "not_found", "GET", "/v1/users/%2565sc_aped")
    user.refused(404, "not_found", "GET", "/v1/users/esc_aped%2f")


# Pipelined requests

@pytest.fixture
def site(gateway):
    site = Site(gateway)
    yield site
    site.close()


def numbered(number):
    """The bodies look like requests and like headers, so that an error of one byte would show."""
    return f"{number}: GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def test_bodies_sent_ahead_are_bodies(site):
    user = site.user("ahead")
    raw, wanted = b"", []
    for number in range(20):
        body = json.dumps({"text": numbered(number)}, indent=number % 3).encode()
        raw += user.request_bytes("POST", "/v1/posts", body)
        raw += user.request_bytes("GET", "/v1/users/me") if number % 2 else HEALTH
        wanted += [201, 200]
    with site.gateway.connect() as connection:
        connection.send(raw)
        assert [connection.read_response().status for _ in wanted] == wanted
    texts = [post["text"] for post in user.get("/v1/users/me/posts?limit=200")["items"]]
    assert texts == [numbered(number) for number in reversed(range(20))]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_requests_sent_in_pieces(site, size):
    user = site.user(f"pieces_{size}_{site.gateway.port}")
    raw = user.request_bytes("POST", "/v1/posts", {"text": numbered(1)}) + HEALTH + \
        user.request_bytes("POST", "/v1/posts", {"text": numbered(2)}) + HEALTH
    with site.gateway.connect() as connection:
        for at in range(0, len(raw), size):
            connection.send(raw[at:at + size])
        assert [connection.read_response().status for _ in range(4)] == [201, 200, 201, 200]
    assert [post["text"] for post in user.get("/v1/users/me/posts")["items"]] == [numbered(2), numbered(1)]


def test_answers_to_head_have_no_body(gateway):
    head = HEALTH.replace(b"GET", b"HEAD")
    assert answers(gateway, head + HEALTH + head + HEALTH, ["HEAD", "GET"] * 2) == [(200, None)] * 4


def test_a_body_for_a_path_that_takes_none_is_a_body(gateway):
    request = b"DELETE /healthz HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(HEALTH)
    assert answers(gateway, request + HEALTH + HEALTH, ["DELETE", "GET"]) == \
        [(405, "method_not_allowed"), (200, None)]


def test_a_body_that_is_longer_than_it_says(site):
    """What is beyond the length is the next request, and here it is not one."""
    user = site.user("longer")
    request = user.request_bytes("POST", "/v1/posts", b'{"text":"a"}')
    assert answers(site.gateway, request + b"}\r\n\r\n" + HEALTH) == [(201, None), (400, "bad_request")]


@pytest.mark.parametrize("last", [HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
                                  HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: x, Close\r\n\r\n"),
                                  HEALTH.replace(b"HTTP/1.1", b"HTTP/1.0"),
                                  b"GET /healthz HTTP/1.0\r\n\r\n"])
def test_nothing_is_answered_behind_the_last_request(gateway, last):
    assert answers(gateway, HEALTH + last + HEALTH * 3) == [(200, None)] * 2


def test_one_who_waits_for_100_continue(site):
    user = site.user("waits")
    body = json.dumps({"text": "waited for"}).encode()
    expecting = user.headers(body, {"Expect": "100-continue"})
    request = form_bytes("POST", "/v1/posts", expecting, body)
    with site.gateway.connect() as connection:
        for _ in range(2):  # on a kept-alive connection as on a new one
            connection.send(request[:-len(body)])
            assert connection.read_response().status == 100
            connection.send(body)
            assert connection.read_response().status == 201
        connection.send(request + HEALTH)  # a client that does not wait needs no 100
        statuses = [connection.read_response().status for _ in range(2)]
        if statuses[0] == 100:
            statuses = [statuses[1], connection.read_response().status]
        assert statuses == [201, 200]


@pytest.mark.parametrize("old, new, status", [(b"HTTP/1.1", b"HTTP/1.0", 201),
                                              (b"100-continue", b"a miracle", 201)])
def test_one_who_is_not_told_to_go_on(site, old, new, status):
    user = site.user("unheard_" + new.decode()[-3:].replace(".", ""))
    body = json.dumps({"text": "unheard"}).encode()
    request = form_bytes("POST", "/v1/posts", user.headers(body, {"Expect": "100-continue"}), body)
    with site.gateway.connect() as connection:
        connection.send(request.replace(old, new)[:-len(body)])
        connection.send(body)
        assert connection.read_response().status == status


def test_a_refusal_is_not_preceded_by_100(gateway):
    head = POST + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert answers(gateway, head) == [(411, "length_required")]


def test_a_stream_is_the_last_answer(gateway, publish):
    with gateway.connect() as connection:
        connection.send(form_bytes("GET", FIREHOSE, gateway.bearer()) + HEALTH * 3)
        assert connection.read_head().status == 200
        publish(events.post(1, "an event"))
        try:
            while chunk := connection.read_chunk(Deadline(what="the event, or the end")):
                event = json.loads(chunk) if chunk.strip() else {"type": "post"}
                assert event["type"] == "post"
                if event.get("id") == "1":  # posts of other tests may come before
                    break
        except ConnectionEnded:
            pass


# Upgrades

def upgrade_to(gateway, target, headers=None, body=b"", method="GET", version="HTTP/1.1"):
    """Returns (connection, head of the answer); reads a refusal to its end."""
    connection = gateway.connect()
    lines = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
             "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", **gateway.bearer(), **(headers or {})}
    connection.send(form_bytes(method, target, lines, version=version) + body)
    response = connection.read_head()
    if response.status >= 400:
        response.body = connection.read_exactly(int(response.headers["content-length"]), Deadline())
    return connection, response


@pytest.mark.parametrize("headers", [
    {}, {"Connection": "keep-alive, Upgrade"}, {"Connection": "keep-alive\r\nConnection: upgrade"},
    {"Upgrade": "WebSocket"}, {"Upgrade": "h2c, websocket"}, {"Upgrade": "h2c\r\nUpgrade: websocket"},
    {"Content-Length": "0"}, {"Sec-WebSocket-Extensions": "x; y=" + "z" * 3000},
    {"Sec-WebSocket-Extensions": "permessage-deflate\r\nSec-WebSocket-Extensions: x"},
    {"Sec-WebSocket-Protocol": "sluice.v1"}, {"Sec-WebSocket-Protocol": "chat, sluice.v1"}])
def test_upgrades_in_other_words(gateway, headers):
    connection, response = upgrade_to(gateway, FIREHOSE, headers)
    connection.close()
    assert response.status == 101
    assert response.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert response.headers.get("sec-websocket-protocol") == \
        ("sluice.v1" if "Sec-WebSocket-Protocol" in headers else None)


@pytest.mark.parametrize("headers, status, code", [
    ({"Content-Length": "5"}, 400, "bad_request"),
    ({"Content-Length": str(1 << 40)}, 413, "body_too_large"),
    ({"Transfer-Encoding": "chunked"}, 411, "length_required"),
    ({"Connection": None}, 400, "bad_request"), ({"Connection": "keep-alive"}, 400, "bad_request"),
    ({"Sec-WebSocket-Key": None}, 400, "bad_request"),
    ({"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="[:-4]}, 400, "bad_request"),
    ({"Sec-WebSocket-Version": "8"}, 426, "websocket_version"),
    ({"Sec-WebSocket-Version": "13, 8"}, 426, "websocket_version"),
    ({"Sec-WebSocket-Protocol": "chat"}, 400, "bad_protocol"),
    ({"Host": None}, 400, "bad_request")])
def test_upgrades_that_are_refused(gateway, headers, status, code):
    connection, response = upgrade_to(gateway, FIREHOSE, headers, b"12345")
    with connection:
        assert (response.status, response.error["code"]) == (status, code)
        connection.wait_closed()
        assert not connection.buffer


def test_upgrades_by_other_methods(gateway):
    connection, response = upgrade_to(gateway, FIREHOSE, {"Content-Length": "0"}, method="POST")
    connection.close()
    assert (response.status, response.error["code"]) == (405, "method_not_allowed")


def test_http_1_0_knows_no_upgrade(gateway):
    connection, response = upgrade_to(gateway, "/healthz", version="HTTP/1.0")
    connection.close()
    assert response.status == 200 and "upgrade" not in response.headers


def test_other_upgrades_are_passed_over(gateway):
    with gateway.connect() as connection:
        for name in ("h2c", "TLS/1.0", "websocket/13", "websockets"):
            response = connection.request("GET", "/healthz", {"Connection": "Upgrade", "Upgrade": name})
            assert response.status == 200 and "upgrade" not in response.headers


def test_a_token_among_the_subprotocols(gateway, publish):
    """For browsers, which cannot set any other header."""
    token = "bearer." + gateway.token()
    for offered in (f"sluice.v1, {token}", f"{token},sluice.v1", f"chat, {token}, sluice.v1"):
        connection, response = upgrade_to(gateway, FIREHOSE, {"Authorization": None,
                                                              "Sec-WebSocket-Protocol": offered})
        connection.close()
        assert response.status == 101 and response.headers["sec-websocket-protocol"] == "sluice.v1"
    for offered, status, code in ((f"sluice.v1, {token}, {token}", 400, "too_many_tokens"),
                                  ("sluice.v1, bearer.a.b.c", 401, "invalid_token"),
                                  ("sluice.v1, bearer.", 401, "invalid_token"),
                                  ("sluice.v1", 401, "no_token"), (token, 400, "bad_protocol")):
        connection, response = upgrade_to(gateway, FIREHOSE, {"Authorization": None,
                                                              "Sec-WebSocket-Protocol": offered})
        connection.close()
        assert (response.status, response.error["code"]) == (status, code)


@pytest.mark.parametrize("is_kept", [False, True])
def test_frames_sent_with_the_handshake(gateway, is_kept):
    request = form_bytes("GET", "/v1/stream", {
        **gateway.bearer(), "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
    with gateway.connect() as connection:
        if is_kept:
            assert connection.request("GET", "/healthz").status == 200
        connection.send(request + frame(PING, b"ahead"))
        assert connection.read_head().status == 101
        assert connection.read_exactly(7, Deadline(what="a pong")) == bytes([0x80 | PONG, 5]) + b"ahead"
