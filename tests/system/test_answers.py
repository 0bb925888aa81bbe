"""Answers on one connection: in order, complete however slowly they are read, and nothing after the last."""

import socket
import time
from email.utils import parsedate_to_datetime

import pytest

from harness.api import Site
from harness.http import form_bytes
from harness.waiting import Deadline

pytestmark = pytest.mark.wires


@pytest.fixture
def ada(gateway, request):
    site = Site(gateway)
    yield site.user(f"ada_{abs(hash(request.node.name))}")
    site.close()


def read_quickly(connection):
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)


def test_requests_of_all_kinds_sent_ahead(gateway, ada):
    """Some are answered at once, others when Redis has answered."""
    asked = [(form_bytes("GET", "/healthz"), 200), (form_bytes("GET", "/nowhere"), 404),
             (ada.request_bytes("GET", "/v1/users/me"), 200),
             (ada.request_bytes("POST", "/v1/posts", {"text": "x" * 10_000}), 201),
             (ada.request_bytes("PUT", "/v1/users/me/following/1", b""), 404),
             (form_bytes("DELETE", "/healthz"), 405), (ada.request_bytes("POST", "/v1/posts", b"{"), 400),
             (form_bytes("OPTIONS", "/v1/posts"), 204), (form_bytes("GET", "/v1/stream/filter"), 401),
             (ada.request_bytes("GET", "/v1/users/me/posts?limit=200"), 200)]
    with gateway.connect() as connection:
        sending = connection.send_aside(b"".join(request for request, _ in asked) * 20)
        for turn in range(20):
            for request, status in asked:
                answer = connection.read_response()
                assert answer.status == status, (request, answer)
            assert len(answer.json["items"]) == turn + 1
        sending.join()


def test_cut_anywhere_they_are_the_same_requests(gateway, ada):
    requests = (form_bytes("GET", "/healthz") + ada.request_bytes("POST", "/v1/posts", {"text": "a text"}) +
                form_bytes("GET", "/nowhere"))
    for cut in range(1, len(requests), 7):
        with gateway.connect() as connection:
            connection.send(requests[:cut])
            connection.send(requests[cut:])
            assert [connection.read_response().status for _ in range(3)] == [200, 201, 404], cut


def test_refusals_that_are_sent_in_part_arrive_whole(gateway):
    """More refusals than sockets hold, to a client with a tiny window, which then reads."""
    count = 20_000
    with gateway.connect(receive_buffer=2048) as connection:
        sending = connection.send_aside(form_bytes("GET", "/nowhere") * count +
                           b"GET / HTTP/1.1\r\nno colon\r\n\r\n")
        assert gateway.get("/healthz").status == 200  # others are served meanwhile
        first = connection.read_response()
        assert first.status == 404 and first.error["code"] == "not_found"
        read_quickly(connection)
        for _ in range(count - 1):
            answer = connection.read_response()
            assert answer.status == 404 and answer.body == first.body
        last = connection.read_response()
        assert last.status == 400 and last.error, "it is whole as well"
        assert last.headers["connection"] == "close"
        assert connection.read_to_end(Deadline(what="the end")) == b""
        sending.join()


def test_refusal_arrives_though_more_is_sent_than_is_read(gateway):
    """Closing with unread input would reset the connection, and lose the answer."""
    for request in (b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
                    form_bytes("POST", "/v1/posts", {"Content-Length": "1000000"}),
                    form_bytes("GET", "/" + "x" * 20_000)):
        with gateway.connect() as connection:
            connection.send(request)
            connection.send(b"y" * 100_000)
            answer = connection.read_response()
            assert answer.status in (400, 401, 414, 431) and answer.error
            assert connection.read_to_end(Deadline(what="the end")) == b""


def test_large_answers_to_slow_readers(gateway, ada):
    """Each answer is complete, while others continue; a client that disconnects in the middle leaves nothing behind."""
    for number in range(200):
        ada.post("x" * 19_000 + str(number))
    request = ada.request_bytes("GET", "/v1/users/me/posts?limit=200")
    slow = [gateway.connect(receive_buffer=4096) for _ in range(6)]
    for connection in slow:
        connection.send(request * 3)
    assert ada.get("/v1/users/me")["posts"] == 200
    assert gateway.get("/healthz").status == 200
    slow.pop().reset()
    slow.pop().close()
    for connection in slow:
        read_quickly(connection)
        for _ in range(3):
            items = connection.read_response().json["items"]
            assert [item["text"][19_000:] for item in items] == [str(n) for n in range(199, -1, -1)]
        assert connection.request("GET", "/healthz").text == "ok\n"
        connection.close()


def test_every_answer_has_the_time(gateway):
    """Answers, refusals, also of what is no request, and the beginnings of streams."""
    token = gateway.bearer()
    handshake = {**token, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                 "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    for request, status in (
            (form_bytes("GET", "/healthz"), 200), (form_bytes("HEAD", "/healthz"), 200), (form_bytes("OPTIONS", "/v1/posts"), 204),
            (form_bytes("GET", "/nowhere"), 404), (form_bytes("GET", "/v1/stream/filter"), 401),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400), (form_bytes("GET", "/healthz", version="HTTP/1.0"), 200),
            (form_bytes("GET", "/v1/stream/firehose", token), 200), (form_bytes("GET", "/v1/stream/firehose", handshake), 101)):
        with gateway.connect() as connection:
            before = int(time.time())
            connection.send(request)
            answer = connection.read_head()
            assert answer.status == status
            assert before <= parsedate_to_datetime(answer.headers["date"]).timestamp() <= time.time(), answer
            assert answer.headers["date"].endswith(" GMT")
