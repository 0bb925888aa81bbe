"""Bodies of requests: who may send one, how much of them is buffered, and which are dropped when that is full."""

import time

import pytest

from harness.api import JSON, Site
from harness.http import form_bytes
from harness.programs import NO_QUARANTINE

pytestmark = pytest.mark.wires
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
FILTER = "/v1/stream/filter"
MEGABYTE = 1 << 20
GRACE_S = 1.1  # a little more than HTTP_BODIES_GRACE_MS


@pytest.fixture
def gateway(servers, redis):
    """Its timeout for bodies is long."""
    return servers.gateway(redis, "--handshake-timeout-ms", 600000, env=NO_QUARANTINE)


def begin(gateway, size, sent, source=None, headers=None, target=FILTER):
    """Sends a request with a body of this size, of which so much is sent."""
    connection = gateway.connect(source=source)
    connection.send(form_bytes("POST", target, {**gateway.bearer(), **FORM, "Content-Length": str(size),
                                                **(headers or {})}))
    try:
        connection.send(b"track=kite".ljust(sent, b",")[:sent])
    except ConnectionError:
        pass  # it was refused meanwhile
    return connection


def flood(connection, size):
    try:
        connection.send(b"x" * size)
    except OSError:
        pass  # nobody has to read that


@pytest.mark.parametrize("target", [FILTER, "/v1/posts"])
@pytest.mark.parametrize("authorization", [None, "Bearer x.y.z"])
def test_token_comes_first(gateway, target, authorization):
    """For a form, the token may be in a small body. Nothing of a large one is read or buffered."""
    before = gateway.resident_bytes()
    kind = JSON if target == "/v1/posts" else FORM
    strangers = [begin(gateway, 200_000, 0, headers={"Authorization": authorization, **kind},
                       target=target) for _ in range(100)]
    for connection in strangers:
        answer = connection.read_response()
        assert answer.status == 401 and answer.headers["connection"] == "close", answer
        assert answer.error["code"] == ("invalid_token" if authorization else "no_token")
    strangers = [begin(gateway, 2_000_000, 0, headers={"Authorization": authorization})
                 for _ in range(100)]
    for connection in strangers:
        assert connection.read_response().status == 401
        flood(connection, 600_000)
    assert gateway.resident_bytes() - before < 16 * MEGABYTE


def test_upgrade_has_no_body(gateway):
    before = gateway.resident_bytes()
    crowd = []
    for _ in range(200):
        connection, answer = gateway.upgrade("/v1/stream", {**gateway.bearer(),
                                                            "Content-Length": "2000000"})
        assert answer.status == 400 and answer.error, answer
        flood(connection, 300_000)
        crowd.append(connection)
    assert gateway.resident_bytes() - before < 16 * MEGABYTE
    for headers in ({"Content-Length": "1"}, {"Transfer-Encoding": "chunked"}):
        connection, answer = gateway.upgrade("/v1/stream", {**gateway.bearer(), **headers})
        connection.close()
        assert answer.status in (400, 411), answer
    connection, answer = gateway.upgrade("/v1/stream", {**gateway.bearer(), "Content-Length": "0"})
    connection.close()
    assert answer.status == 101, "nothing is no body"


def sources(whose):
    """Addresses of clients that stop sending."""
    return [None] * 34 if whose == "the same" else [f"127.0.1.{n}" for n in range(1, 35)]


@pytest.mark.parametrize("whose", ["the same", "many"])
def test_who_makes_no_progress_goes_first(gateway, whose):
    """34 bodies without their last byte, 68 MiB in all, from one address or from many."""
    before = gateway.resident_bytes()
    stuck = [begin(gateway, 2 * MEGABYTE, 2 * MEGABYTE - 1, source) for source in sources(whose)]

    for _ in range(20):  # small ones are always accepted
        with begin(gateway, 16_000, 100) as connection:
            connection.send(b"," * 15_900)
            assert connection.read_head().status == 200

    def is_served():
        with begin(gateway, 1_000_000, 500_000) as connection:
            connection.send(b"," * 500_000)
            return connection.read_head().status == 200
    time.sleep(GRACE_S)  # until then all count as equally fast
    for _ in range(20):
        assert is_served(), "a large one is read"
    assert gateway.resident_bytes() - before < (40 if whose == "the same" else 96) * MEGABYTE
    gone = [connection for connection in stuck if connection.has_news()]
    for connection in gone:
        answer = connection.read_response()
        assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1, answer
    assert gone, "somebody had to go"


def test_one_address_does_not_take_all(gateway):
    """It gets a quarter of the total."""
    before = gateway.resident_bytes()
    greedy = [begin(gateway, 2 * MEGABYTE, 2 * MEGABYTE - 1, "127.0.2.1") for _ in range(34)]
    assert gateway.resident_bytes() - before < 40 * MEGABYTE
    others = [begin(gateway, 2 * MEGABYTE, 2 * MEGABYTE - 1, f"127.0.2.{n}") for n in range(2, 18)]
    for connection in others:
        connection.send(b",")
        assert connection.read_head().status == 200
    for connection in greedy:
        connection.close()


def test_bodies_that_come_slowly_are_whole(gateway):
    """Two of them in pieces, alternately; a third one is refused for its size."""
    site = Site(gateway)
    ada = site.user("ada")
    texts = [letter * 19_000 for letter in "ab"]
    requests = [ada.request_bytes("POST", "/v1/posts", {"text": text}) for text in texts]
    connections = [gateway.connect() for _ in requests]
    for start in range(0, len(requests[0]), 1000):
        for connection, request in zip(connections, requests):
            connection.send(request[start:start + 1000])
    for connection, text in zip(connections, texts):
        answer = connection.read_response()
        assert answer.status == 201 and answer.json["text"] == text
        assert connection.request("GET", "/healthz").status == 200
        connection.close()
    with begin(gateway, 1 << 30, 0) as connection:
        assert connection.read_response().status == 413
    site.close()
