"""Ways in which a client can make a server with libwebsockets 4.1.6 crash, spin, stall or corrupt data. Each test fails
if the gateway's protection against it is missing."""

import json
import socket

import pytest

from harness import events, processes
from harness.http import form_bytes
from harness.programs import NO_QUARANTINE
from harness.streams import Collector
from harness.waiting import Deadline, eventually
from harness.websocket import PING, TEXT, frame

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
KEEPALIVE_MS = 400


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--keepalive-ms", KEEPALIVE_MS, "--gather-ms", 0,
                                  env=NO_QUARANTINE)


@pytest.fixture(scope="module")
def patient(module_servers, redis):
    """For WebSockets that do not read for a while: a ping must be answered before the next is due."""
    return module_servers.gateway(redis, "--gather-ms", 0)


def assert_idle(gateway):
    """The worker sleeps: while a quiet client receives four keep-alives (1.6 s of the server's own time), it uses
    almost no CPU. A spinning loop uses all of it."""
    with gateway.stream("/v1/stream/filter?track=nothing") as quiet:
        quiet.wait_keepalives(1)
        before = gateway.cpu_seconds()
        quiet.wait_keepalives(4)
        used = gateway.cpu_seconds() - before
    assert used < 0.3, f"{used:.2f} s of CPU in {KEEPALIVE_MS / 250:.1f} s of doing nothing"


def test_unknown_upgrade_after_keep_alive(gateway):
    """It freed its header table and then compared the protocol's name in it (section 9)."""
    for target in ("/healthz", FIREHOSE):
        for name in ("foo", "h2c", "websocket-not", "TLS/1.0"):
            with gateway.connect() as connection:
                assert connection.request("GET", "/healthz").status == 200
                connection.send(form_bytes("GET", target, {
                    **gateway.bearer(), "Connection": "Upgrade", "Upgrade": name}))
                try:
                    assert connection.read_head().status in (200, 400, 426)
                except ConnectionError:
                    pass
    assert gateway.get("/healthz").status == 200


def test_good_upgrade_after_keep_alive(gateway, publish):
    with gateway.connect() as connection:
        assert connection.request("GET", "/healthz").status == 200
        connection.send(form_bytes("GET", FIREHOSE, {
            **gateway.bearer(), "Connection": "Upgrade", "Upgrade": "websocket",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}))
        response = connection.read_head()
        assert response.status == 101
        assert response.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


MISDEEDS = {
    "an extra byte": lambda c: c.send(b"x"),
    "a second request": lambda c: c.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    "much more": lambda c: c.send(b"x" * 300_000),
    "a half close": lambda c: c.half_close(),
    "a byte and a half close": lambda c: (c.send(b"x"), c.half_close()),
    "a close": lambda c: c.close(),
    "a reset": lambda c: c.reset(),
    "a byte and a reset": lambda c: (c.send(b"x"), c.reset()),
}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_misdeeds_on_a_chunked_stream_do_not_spin(gateway, publish, method):
    """libwebsockets does not read while a response is streamed, but keeps polling (section 4.2).

    All of these at once, each on its own stream: one that spins keeps the worker busy."""
    body = b"track=kite" if method == "POST" else None
    target = "/v1/stream/filter" + ("" if body else "?track=kite")
    streams = {name: gateway.stream(target, method=method, body=body) for name in MISDEEDS}
    neighbour = gateway.stream("/v1/stream/filter?track=kite")
    publish(events.post(1, "kite"))
    for name, stream in streams.items():
        assert stream.next()["id"] == "1"
        MISDEEDS[name](stream.connection)
    assert_idle(gateway)
    publish(events.post(2, "kite"))
    assert_idle(gateway)
    publish(events.post(3, "kite"))
    assert [m["id"] for m in neighbour.until(3)] == ["1", "2", "3"]
    for stream in streams.values():
        if stream.connection.fileno() >= 0:
            stream.close()
    assert_idle(gateway)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_stray_bytes_on_streams(patient, publish, method):
    """After the request, and later, on a stream that is stalled and on one that is not."""
    body = b"track=kite" if method == "POST" else None
    form = form_bytes(method, "/v1/stream/filter" + ("" if body else "?track=kite"), {
        **patient.bearer(), "Content-Type": "application/x-www-form-urlencoded"}, body)
    stalled, reading = [patient.connect(receive_buffer=4096) for _ in range(2)]
    for connection in (stalled, reading):
        connection.send(form + form_bytes("GET", "/healthz"))
        assert connection.read_head().status == 200
        connection.send(b"stray")
    for number in range(1, 101):
        publish(events.post(number, "kite " * 12000))  # together more than sockets hold
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


def test_half_closed_client_is_let_go_or_served(gateway, publish):
    """Both are allowed; a stream that neither delivers events nor ends is not."""
    stream = gateway.stream(FIREHOSE)
    stream.connection.half_close()
    for number in range(10, 15):
        publish(events.post(number, "kite"))
    try:
        while (message := stream.next()) is not None and message["id"] != "14":
            pass
    except ConnectionError:
        pass


def test_post_streams_complete_once(gateway, publish):
    """More bytes than Content-Length announced completed the body again and again."""
    form = form_bytes("POST", "/v1/stream/filter", {
        **gateway.bearer(), "Content-Type": "application/x-www-form-urlencoded"}, b"track=kite")
    with gateway.connect() as connection:
        connection.send(form + b"more than was announced" * 1000)
        assert connection.read_head().status == 200
        assert_idle(gateway)


def test_stalled_reader_does_not_spin(gateway, redis):
    """With reading off, a partly written response never drained and used a whole core."""
    streams = [gateway.stream(FIREHOSE, transport, receive_buffer=4096)
               for transport in ("ndjson", "sse", "raw-websocket")]
    neighbour = Collector(gateway.stream(FIREHOSE))
    text = "x" * 50000  # together more than sockets hold
    for number in range(1, 121):
        redis.publish(events.dump(events.post(number, text)))
    neighbour.wait_id(120)
    assert_idle(gateway)
    for stream in streams:
        assert [m["id"] for m in stream.until(120)] == [str(n) for n in range(1, 121)]
    assert_idle(gateway)


def test_frames_stay_whole_behind_a_remainder(patient, redis):
    """A frame written while another's rest was buffered was sent without its header."""
    websocket = patient.stream(FIREHOSE, "raw-websocket", receive_buffer=4096)
    neighbour = Collector(patient.stream(FIREHOSE))
    for number in range(1, 101):
        redis.publish(events.dump(events.post(number, "y" * (number * 970 % 90000))))
        neighbour.wait_id(number)  # one turn of the loop each, so that every write is separate
    assert [m["id"] for m in websocket.until(100)] == [str(n) for n in range(1, 101)]


def test_pings_during_partial_writes(patient, redis):
    """A pong in the middle of a frame corrupts the stream permanently."""
    websocket = patient.stream(FIREHOSE, "raw-websocket", receive_buffer=4096)
    neighbour = Collector(patient.stream(FIREHOSE))
    for number in range(1, 101):
        redis.publish(events.dump(events.post(number, "z" * 60000)))
        websocket.send_frame(PING, b"p%d" % number)
        if number % 10 == 0:
            neighbour.wait_id(number)
    assert [m["id"] for m in websocket.until(100)] == [str(n) for n in range(1, 101)]
    redis.publish(events.dump(events.post(101, "the end")))
    websocket.until(101)
    # A pong answers the newest ping and may stand for earlier ones (RFC 6455, 5.5.3).
    assert websocket.pongs and websocket.pongs == sorted(websocket.pongs, key=lambda p: int(p[1:]))


def test_ping_flood_from_a_client_that_does_not_read(gateway):
    websocket = gateway.stream("/v1/stream/filter?track=nothing", "raw-websocket",
                               receive_buffer=4096)
    before = gateway.resident_bytes()
    websocket.connection.socket.settimeout(0.5)
    try:
        for _ in range(200_000):
            websocket.connection.socket.sendall(b"\x89\xfd\0\0\0\0" + b"p" * 125)
    except OSError:
        pass  # it no longer reads from us, or has closed
    assert gateway.resident_bytes() - before < 64 << 20
    websocket.close()
    assert_idle(gateway)


def test_what_a_client_compresses_breaks_no_library(gateway, publish):
    """The inflater of libwebsockets aborts on this input, which any client can send; ours is another one."""
    connection, response = gateway.upgrade(FIREHOSE, {
        **gateway.bearer(), "Sec-WebSocket-Extensions": "permessage-deflate"})
    assert response.status == 101 and "sec-websocket-extensions" in response.headers
    connection.send(frame(TEXT, b"\x4a\x4c\x04\x00", reserved=4))
    connection.wait_closed()
    connection.close()
    assert gateway.get("/healthz").status == 200


def test_clients_who_vanish_in_the_middle_of_everything(gateway, redis, publish):
    """At every stage of a connection, over all transports, with and without a reset."""
    head = form_bytes("GET", FIREHOSE, gateway.bearer())
    websocket = form_bytes("GET", FIREHOSE, {
        **gateway.bearer(), "Connection": "Upgrade", "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"})
    form = form_bytes("POST", "/v1/stream/filter", {
        **gateway.bearer(), "Content-Type": "application/x-www-form-urlencoded"}, b"track=" + b"a," * 99)
    refused = form_bytes("GET", "/nowhere")
    for request in (head, websocket, form, refused):
        for cut in [0, 1, 20, len(request) // 2, len(request) - 1, len(request)]:
            for how in ("close", "reset", "half_close"):
                connection = gateway.connect()
                connection.send(request[:cut])
                getattr(connection, how)()
                redis.publish(events.dump(events.post(1, "a, b")))
                if how == "half_close":
                    connection.close()
    with gateway.stream(FIREHOSE) as stream:
        publish(events.post(2, "the end"))
        stream.until(2)
    assert_idle(gateway)


def test_many_come_and_go(patient, redis):
    """Descriptors and memory are freed."""
    worker, = patient.workers()

    def round_of_clients():
        streams = [patient.stream(FIREHOSE, transport)
                   for transport in ("ndjson", "sse", "raw-websocket") * 20]
        redis.publish(events.dump(events.post(5, "hello all")))
        for number, stream in enumerate(streams):
            stream.until(5)
            stream.connection.reset() if number % 2 else stream.close()
    before = patient.metrics()["sluice_connections"]  # connections of other tests are still open
    round_of_clients()
    eventually(lambda: patient.metrics()["sluice_connections"] <= before, "all have left")
    files = processes.open_files(worker)
    for _ in range(5):
        round_of_clients()
    eventually(lambda: processes.open_files(worker) <= files + 1, "all descriptors are closed")


def test_request_behind_a_stream_is_not_answered_into_it(gateway, publish):
    """The answer to a pipelined second request must not be written into the first one's body."""
    with gateway.connect() as connection:
        connection.send(form_bytes("GET", FIREHOSE, gateway.bearer()) +
                        form_bytes("GET", "/healthz"))
        assert connection.read_head().status == 200
        for number in range(20, 30):
            publish(events.post(number, "kite"))
        deadline = Deadline()
        seen = []
        while len(seen) < 10:
            chunk = connection.read_chunk(deadline)
            if not chunk:
                break  # ended properly: also correct
            seen += [json.loads(line)["id"] for line in chunk.split(b"\r\n") if line]
        assert seen == [str(n) for n in range(20, 20 + len(seen))]
