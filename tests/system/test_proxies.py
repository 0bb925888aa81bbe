"""docs/proxies.md: each proxy that it names, with its configuration, in front of a sluiced. Clients connect over TLS,
with HTTP/1.1 and HTTP/2."""

import contextlib
import itertools
import json
import os
import socket
import subprocess
import threading
import time

import pytest

from harness import events
from harness.event_source import EventSource
from harness.http import HttpConnection, form_bytes
from harness.ports import steady_port
from harness.reverse_proxies import (Apache, Caddy, Haproxy, HaproxyTcp, HaproxyTcp1, Nginx, NginxStream,
                                     Varnish)
from harness.streams import HttpStream
from harness.waiting import Deadline, eventually
from harness.websocket import WebSocket

pytestmark = pytest.mark.one_redis("a cluster changes nothing between a client and its gateway")
FIREHOSE = "/v1/stream/firehose"
PER_ADDRESS = 5
SETTINGS = ("--ops-listen", "127.0.0.1:0", "--trusted-proxies", "127.0.0.1", "--keepalive-ms", 1000, "--max-connections-per-address", PER_ADDRESS)


class Unready:
    """Acts like a server that is not ready yet: it answers everything with 503."""

    def __init__(self, port):
        self.listener = socket.create_server(("127.0.0.1", port))
        self.asked = 0
        self.is_over = False
        self.thread = threading.Thread(target=self.serve)

    def serve(self):
        self.listener.settimeout(0.05)
        while not self.is_over:
            with contextlib.suppress(OSError), self.listener.accept()[0] as connection:
                connection.settimeout(5)
                if connection.recv(65536):
                    connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\nConnection: close\r\n"
                                       b"Content-Type: application/json\r\n\r\n{}\n")
                    self.asked += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()
        self.listener.close()


class CurlStream:
    """A stream of NDJSON or SSE over HTTP/2; next() returns the next event's object."""

    def __init__(self, proxy, token, accept):
        self.process = subprocess.Popen(
            ["curl", "-sS", "-N", "--http2", "-i", "--cacert", proxy.certificate.file, "-H", f"Accept: {accept}",
             "-H", f"Authorization: Bearer {token}", f"https://localhost:{proxy.port}{FIREHOSE}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
        self.read = b""
        try:
            status = self.line(Deadline(what="the status by HTTP/2"))
            assert status.split()[:2] == [b"HTTP/2", b"200"], status
            while self.line(Deadline(what="the headers by HTTP/2")):
                pass
        except BaseException:
            self.close()
            raise

    def line(self, deadline):
        while b"\n" not in self.read:
            deadline.wait_readable(self.process.stdout)
            some = os.read(self.process.stdout.fileno(), 65536)
            assert some, f"curl ended: {self.read}"
            self.read += some
        line, self.read = self.read.split(b"\n", 1)
        return line.rstrip(b"\r")

    def next(self):
        deadline = Deadline(what="an event by HTTP/2")
        while True:
            line = self.line(deadline).removeprefix(b"data: ")
            if line.startswith(b"{"):
                return json.loads(line)

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.fixture(scope="module")
def plain(module_servers, redis):
    """A sluiced at a port that stays reserved while it restarts."""
    return module_servers.gateway(redis, *SETTINGS, listen=f"127.0.0.1:{steady_port()}")


@pytest.fixture(scope="module")
def gated(module_servers, redis, certificate):
    """One that requires the PROXY protocol, followed by TLS."""
    return module_servers.gateway(redis, *SETTINGS, listen=f"127.0.0.1:{steady_port()},proxy", certificate=certificate)


@pytest.fixture(scope="module", ids=lambda kind: kind.name,
                params=[Nginx, Haproxy, Caddy, Apache, Varnish, HaproxyTcp, HaproxyTcp1, NginxStream])
def proxy(request, module_servers, certificate):
    """A proxy in front of `proxy.gateway`."""
    kind = request.param
    if kind.missing():
        pytest.skip(f"not installed: {', '.join(kind.missing())}")
    gateway = request.getfixturevalue("gated" if kind.is_relay else "plain")
    proxy = kind(module_servers.folder / kind.name, gateway.port, certificate)
    proxy.gateway = gateway
    module_servers.programs.append(proxy)
    yield proxy.start()
    proxy.stop()


@pytest.fixture(scope="module")
def number():
    """Numbers of posts, ascending."""
    return itertools.count(1)


@pytest.fixture
def post(cli, number, tmp_path):
    """post(text): it is logged and published on return."""
    file = tmp_path / "posts.jsonl"

    def post(text):
        file.write_text(events.dump(events.post(next(number), text)) + "\n")
        cli.run("replay", file)
    return post


def open_stream(proxy, way):
    kind, _, version = way.partition("-")
    token = proxy.gateway.token()
    sent = {"Authorization": f"Bearer {token}"}
    if kind == "websocket":
        return WebSocket(proxy.port, FIREHOSE, headers=sent, tls=proxy.certificate.context)
    if version == "h2":
        return CurlStream(proxy, token, "text/event-stream" if kind == "sse" else "application/x-ndjson")
    return HttpStream(proxy.port, FIREHOSE, kind, headers=sent, tls=proxy.certificate.context)


def next_event(stream):
    while True:
        message = stream.next()
        assert message is not None, "the stream has ended"
        if message["type"] == "post":
            return message


def streams(gateway):
    """Returns the number of its streams."""
    with HttpConnection(gateway.ready["ops_port"]) as connection:
        text = connection.request("GET", "/metrics").text
    return int(text.split("\nsluice_streams ")[1].split()[0])


def nobody_is_left(gateway, seconds=None):
    eventually(lambda: streams(gateway) == 0, "the server knows that all have left", seconds)


WAYS = ["ndjson-h1", "sse-h1", "ndjson-h2", "sse-h2", "websocket"]


@pytest.mark.parametrize("way", WAYS)
def test_an_event_comes_at_once_and_who_leaves_is_noticed(proxy, post, way, number):
    """Each event arrives before the next is published. A proxy that buffers events would delay each of them."""
    if proxy.is_relay and way.endswith("h2"):
        pytest.skip("sluiced speaks HTTP/1.1")
    took = []
    with open_stream(proxy, way) as stream:
        eventually(lambda: streams(proxy.gateway) == 1, "the stream is there")
        for _ in range(5):
            text = f"tea {next(number)}"
            post(text)
            published = time.monotonic()
            assert next_event(stream)["post"]["text"] == text
            took.append(time.monotonic() - published)
    assert min(took) < 0.15, took
    nobody_is_left(proxy.gateway, 5)


def status_of(proxy, source, headers):
    """Returns the status of a stream that is opened, and the connection, to be closed."""
    connection = HttpConnection(proxy.port, tls=proxy.certificate.context, source=source)
    connection.send(form_bytes("GET", FIREHOSE, {**proxy.gateway.bearer(), **headers}))
    return connection.read_head().status, connection


def test_the_clients_address_comes_through_and_no_other(proxy):
    """The number of streams per address is limited: a client is refused beyond that, whichever address it claims."""
    spoofed = [{}, {"X-Forwarded-For": "198.51.100.1"}, {"X-Forwarded-For": "127.0.0.1"},
               {"Forwarded": "for=198.51.100.1"}, {"X-Forwarded-For": "198.51.100.1, 127.0.0.1"}]
    opened = [status_of(proxy, "127.0.0.2", {"X-Forwarded-For": f"198.51.100.{i}"})
              for i in range(PER_ADDRESS)]
    try:
        assert [status for status, _ in opened] == [200] * PER_ADDRESS
        for headers in spoofed:
            status, connection = status_of(proxy, "127.0.0.2", headers)
            connection.close()
            assert status == 429, headers
        opened.append(status_of(proxy, "127.0.0.3", {}))
        assert opened[-1][0] == 200
    finally:
        for _, connection in opened:
            connection.close()
    nobody_is_left(proxy.gateway)


def test_an_event_source_lives_through_a_restart(proxy, post):
    """It gives up on any status but 200. Events of the meantime arrive, each once, in order."""
    source = EventSource(proxy.port, FIREHOSE, proxy.gateway.token(), proxy.certificate.context)
    with source:
        eventually(lambda: streams(proxy.gateway) == 1, "the stream is there")
        post("before")
        source.wait_texts(["before"])
        tries = source.tries
        proxy.gateway.stop()
        post("meanwhile")
        eventually(lambda: source.tries > tries, "it has tried to come back")
        if proxy.is_relay:  # it passes a 503 on
            with source.holding():
                proxy.gateway.start()
        else:
            with Unready(proxy.gateway.port) as unready:
                eventually(lambda: unready.asked > 1, "it was answered 503, and has tried again")
            proxy.gateway.start()
        post("after")
        source.wait_texts(["before", "meanwhile", "after"])
    nobody_is_left(proxy.gateway)


def test_other_answers_pass_through(proxy):
    """Refusals, bodies, and kept-alive connections."""
    with HttpConnection(proxy.port, tls=proxy.certificate.context) as connection:
        assert connection.request("GET", "/healthz").status == 200
        refused = connection.request("GET", FIREHOSE)
        assert refused.status == 401 and refused.error["code"]
        answer = connection.request("POST", "/v1/filters/estimate", {**proxy.gateway.bearer(), "Content-Type": "application/json"},
                                    json.dumps({"filter": {"track": "tea " * 1000}}).encode())
        assert answer.status == 413 and answer.error["param"], answer
