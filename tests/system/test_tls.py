"""The same streams over TLS."""

import json
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

from harness import events
from harness.api import Api
from harness.http import HttpConnection, form_bytes
from harness.streams import Collector, HttpStream
from harness.waiting import Deadline
from harness.websocket import PING, RawWebSocket, WebSocket

FIREHOSE = "/v1/stream/firehose"


def make_certificate(folder, name="localhost"):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
                   check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def tls(module_servers, redis, tmp_path_factory):
    """(gateway, client's TLS context)"""
    cert, key = make_certificate(tmp_path_factory.mktemp("tls"))
    gateway = module_servers.gateway(redis, "--tls-cert", cert, "--tls-key", key)
    return gateway, ssl.create_default_context(cafile=str(cert))


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "sse"])
def test_streams_over_tls(tls, publish, transport):
    gateway, context = tls
    with HttpStream(gateway.port, FIREHOSE, transport, headers=gateway.bearer(), tls=context) as stream:
        for number in range(1, 301):
            publish(events.post(number, "secret " * 200))
        assert [m["id"] for m in stream.until(300)] == [str(n) for n in range(1, 301)]


def test_websocket_over_tls(tls, publish):
    gateway, context = tls
    websocket = WebSocket(gateway.port, FIREHOSE, headers=gateway.bearer(), tls=context)
    for number in range(1, 301):
        publish(events.post(number, "secret " * 200))
    assert [m["id"] for m in websocket.until(300)] == [str(n) for n in range(1, 301)]
    websocket.close()


def test_slow_reader_over_tls(tls, redis, publish):
    gateway, context = tls
    stream = HttpStream(gateway.port, FIREHOSE, "ndjson", headers=gateway.bearer(), tls=context,
                        receive_buffer=4096)
    neighbour = Collector(HttpStream(gateway.port, FIREHOSE, "ndjson", headers=gateway.bearer(),
                                     tls=context))
    for number in range(1, 201):
        publish(events.post(number, "x" * 30000))  # in all, more than sockets hold
    neighbour.wait_id(200)
    stream.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    assert [m["id"] for m in stream.until(200)] == [str(n) for n in range(1, 201)]


def test_pings_during_partial_writes_over_tls(tls, publish):
    gateway, context = tls
    websocket = RawWebSocket(gateway.port, FIREHOSE, headers=gateway.bearer(), receive_buffer=4096,
                             tls=context)
    neighbour = Collector(HttpStream(gateway.port, FIREHOSE, "ndjson", headers=gateway.bearer(),
                                     tls=context))
    for number in range(1, 101):
        publish(events.post(number, "z" * 60000))
        websocket.send_frame(PING, b"p%d" % number)
        if number % 10 == 0:
            neighbour.wait_id(number)
    assert [m["id"] for m in websocket.until(100)] == [str(n) for n in range(1, 101)]
    publish(events.post(101, "the end"))
    websocket.until(101)
    assert websocket.pongs and websocket.pongs == sorted(websocket.pongs, key=lambda p: int(p[1:]))


def test_health_over_tls(tls):
    gateway, context = tls
    with urllib.request.urlopen(f"https://127.0.0.1:{gateway.port}/healthz", context=context,
                                timeout=20) as answer:
        assert answer.status == 200
    try:
        urllib.request.urlopen(f"https://127.0.0.1:{gateway.port}/nowhere", context=context, timeout=20)
        raise AssertionError("no error for an unknown path")
    except urllib.error.HTTPError as refusal:
        assert refusal.code == 404 and json.load(refusal)["error"]["code"]


def test_plain_text_to_a_tls_port(tls):
    gateway, context = tls
    with gateway.connect() as connection:
        connection.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.wait_closed()
    test_health_over_tls(tls)


def test_key_without_certificate(servers, redis, tmp_path):
    cert, key = make_certificate(tmp_path)
    from test_settings import run
    for options in (["--tls-cert", cert], ["--tls-key", key], ["--tls-cert", key, "--tls-key", cert]):
        assert "tls" in run("--redis", redis.url, "--listen", "127.0.0.1:0", *options).stderr


def test_the_api_over_tls(tls):
    gateway, context = tls
    admin = Api(gateway, scope="admin", tls=context)
    ada = Api(gateway, admin.expect(201, "POST", "/v1/users", {"login": "ada"})["id"], tls=context)
    posts = [ada.post("secret " * 1000 + str(number)) for number in range(5)]
    assert ada.get("/v1/users/me/posts?limit=200")["items"] == posts[::-1]
    assert ada.get(f"/v1/posts/{posts[0]['id']}") == posts[0]
    for _ in range(5):  # sent ahead, and answered in turn
        ada.send("GET", "/v1/users/me")
        ada.send("PUT", f"/v1/posts/{posts[1]['id']}/like", headers={"Content-Length": "0"})
    for _ in range(5):
        assert ada.read().json["posts"] == 5
        assert ada.read().status == 204
    ada.refused(400, "bad_json", "POST", "/v1/posts", b"{")
    ada.post("still there")
    admin.close()
    ada.close()


@pytest.mark.parametrize("name", ["Host", "Authorization", "Content-Type", "Origin"])
def test_headers_that_come_once_over_tls(tls, name):
    gateway, context = tls
    request = form_bytes("GET", FIREHOSE, {**gateway.bearer(), name: "a"})
    with HttpConnection(gateway.port, tls=context) as connection:
        connection.send(request.replace(b"\r\n\r\n", f"\r\n{name.lower()}: a\r\n\r\n".encode()))
        response = connection.read_response()
    assert response.status == 400 and response.error["param"] == name
    assert response.error["code"] == "repeated_header"


@pytest.mark.parametrize("first", ["GET", "POST"])
def test_a_body_sent_ahead_over_tls_is_never_mistaken(tls, first):
    """libwebsockets would take the second request's head for its body, in an endless loop; 4.3 takes
    all of the second request for a part of the first one's body, which is the last one then."""
    gateway, context = tls
    admin = Api(gateway, scope="admin", tls=context)
    login = f"ahead_{first}".lower()
    ada = Api(gateway, admin.expect(201, "POST", "/v1/users", {"login": login})["id"], tls=context)
    requests = [ada.request_bytes("GET", "/v1/users/me") if first == "GET" else
                ada.request_bytes("POST", "/v1/posts", {"text": "first"}),
                ada.request_bytes("POST", "/v1/posts", {"text": "second"})]
    connection = HttpConnection(gateway.port, tls=context)
    connection.send(b"".join(requests))
    answer = connection.read_response()
    assert answer.status == (200 if first == "GET" else 201)
    if first == "GET" or "connection" not in answer.headers:
        answer = connection.read_response()
        assert answer.status == 503 and answer.error["code"] == "sent_ahead"
    assert answer.headers["connection"] == "close"
    assert connection.read_to_end(Deadline(what="the end of the connection")) == b""
    assert ada.get("/v1/users/me")["posts"] == (0 if first == "GET" else 1)
    admin.close()
    ada.close()


def test_large_answers_over_tls_to_a_slow_reader(tls):
    gateway, context = tls
    admin = Api(gateway, scope="admin", tls=context)
    bob = Api(gateway, admin.expect(201, "POST", "/v1/users", {"login": "bob"})["id"], tls=context)
    for number in range(200):
        bob.post("x" * 19000 + str(number))
    with HttpConnection(gateway.port, receive_buffer=4096, tls=context) as connection:
        connection.send(bob.request_bytes("GET", "/v1/users/me/posts?limit=200") +
                        bob.request_bytes("GET", "/v1/users/me"))
        assert bob.get("/v1/users/me")["posts"] == 200, "others are served meanwhile"
        assert len(connection.read_response().json["items"]) == 200
        assert connection.read_response().json["posts"] == 200
    admin.close()
    bob.close()


def test_answers_at_once_over_tls_to_a_slow_reader_who_asks_ahead(tls):
    gateway, context = tls
    with HttpConnection(gateway.port, receive_buffer=4096, tls=context) as connection:
        connection.send(form_bytes("GET", "/metrics") * 400)  # more than sockets hold
        test_health_over_tls(tls)  # others are served meanwhile
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        for _ in range(400):
            assert connection.read_response().text.endswith("\n")
        assert connection.request("GET", "/healthz").text == "ok\n"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_stray_bytes_on_streams_over_tls(tls, publish, method):
    """Behind the request, and later, on a stream that is stalled and on one that is not."""
    gateway, context = tls
    body = b"track=kite" if method == "POST" else None
    form = form_bytes(method, "/v1/stream/filter" + ("" if body else "?track=kite"), {
        **gateway.bearer(), "Content-Type": "application/x-www-form-urlencoded"}, body)
    stalled, reading = [HttpConnection(gateway.port, receive_buffer=4096, tls=context)
                        for _ in range(2)]
    for connection in (stalled, reading):
        connection.send(form + form_bytes("GET", "/healthz"))
        assert connection.read_head().status == 200
        connection.send(b"stray")
    for number in range(1, 101):
        publish(events.post(number, "kite " * 12000))  # in all, more than sockets hold
        stalled.send(b"more")
        assert json.loads(reading.read_chunk(Deadline()))["id"] == str(number)
    stalled.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    deadline = Deadline()
    lines = b""
    while lines.count(b"\n") < 100:
        lines += stalled.read_chunk(deadline)
    assert [json.loads(line)["id"] for line in lines.splitlines()] == [str(n) for n in range(1, 101)]
    stalled.close()
    reading.close()


@pytest.mark.parametrize("transport", ["ndjson", "raw-websocket"])
def test_slow_reader_catches_up_over_tls(servers, cli_for, transport, tmp_path):
    """From the log, then with a cursor once more; live in the end."""
    cert, key = make_certificate(tmp_path)
    redis = servers.redis()
    gateway = servers.gateway(redis, "--tls-cert", cert, "--tls-key", key, "--max-owed-bytes", 65536,
                              "--ring-bytes", 65536)
    context = ssl.create_default_context(cafile=str(cert))
    cli = cli_for(redis)

    def connect(target, **more):
        if transport == "raw-websocket":
            return RawWebSocket(gateway.port, target, headers=gateway.bearer(), tls=context, **more)
        return HttpStream(gateway.port, target, transport, headers=gateway.bearer(), tls=context, **more)

    stream = connect(FIREHOSE, receive_buffer=4096)
    file = servers.folder / "posts.jsonl"
    with open(file, "w") as out:
        for number in range(1, 801):
            out.write(events.dump(events.post(number, "many words " * 900, user=str(number % 9))) + "\n")
    cli.run("replay", file)
    wanted = [event["id"] for event in redis.log() if event["type"] == "post"]
    stream.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    got = []
    while len(got) < len(wanted):
        message = stream.next(120)
        got += [] if message.is_control else [message["id"]]
    assert events.by_shard(got) == events.by_shard(wanted)
    last = cli.run("post", "--user", "u1", "live")
    assert stream.next()["id"] == last
    with connect(f"{FIREHOSE}?since={wanted[700]}") as resumed:
        got = [m["id"] for m in resumed.until(last)]
        assert events.by_shard(got) == events.by_shard([*wanted[701:], last])
