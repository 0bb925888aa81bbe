"""Which client address counts: that of the peer, or the one reported by a trusted proxy, in a header or by the PROXY
protocol; others are not believed."""

import contextlib
import os
import signal
import socket
import struct

import pytest

from harness import programs
from harness.http import ConnectionEnded, HttpConnection, form_bytes
from harness.program import Program
from harness.waiting import eventually

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
ONE_EACH = ("--max-connections-per-address", 1)
MALFORMED = 'sluice_proxy_header_refused_total{reason="malformed"}'
LATE = 'sluice_proxy_header_refused_total{reason="timeout"}'
UNTRUSTED = 'sluice_proxy_header_refused_total{reason="untrusted"}'
UNUSABLE = "sluice_client_address_unusable_total"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def line(client):
    return f"PROXY {'TCP6' if ':' in client else 'TCP4'} {client} {'::1' if ':' in client else '127.0.0.1'} 4711 80\r\n".encode()


def numbers(client, extra=b""):
    family, kind = (0x21, socket.AF_INET6) if ":" in client else (0x11, socket.AF_INET)
    addresses = socket.inet_pton(kind, client) * 2 + struct.pack(">HH", 4711, 80) + extra
    return SIGNATURE + struct.pack(">BBH", 0x21, family, len(addresses)) + addresses


class Streams:
    """Streams that stay open; each returns its status."""

    def __init__(self, gateway):
        self.gateway, self.left = gateway, contextlib.ExitStack()

    def open(self, headers=(), **how):
        connection = self.left.enter_context(self.gateway.connect(**how))
        connection.send(form_bytes("GET", FIREHOSE, {**self.gateway.bearer(), **dict(headers)}))
        return connection.read_head().status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.left.close()


def test_nobody_is_believed_unless_told_so(servers, redis):
    gateway = servers.gateway(redis, *ONE_EACH, "--trusted-proxies", "192.0.2.0/24")
    with Streams(gateway) as streams:
        assert streams.open({"X-Forwarded-For": "198.51.100.1"}) == 200
        for spoofed in ({"X-Forwarded-For": "198.51.100.2"}, {"Forwarded": "for=198.51.100.2"},
                        {"X-Forwarded-For": "192.0.2.1, 198.51.100.2"}, {}):
            assert streams.open(spoofed) == 429
        assert gateway.metrics()[UNUSABLE] == 0


def test_a_trusted_proxy_tells_the_client(servers, redis):
    gateway = servers.gateway(redis, *ONE_EACH, "--trusted-proxies", "loopback, 10.0.0.0/8", workers=2)
    with Streams(gateway) as streams:
        for client in ("198.51.100.1", "198.51.100.2", "2001:db8::1"):
            assert streams.open({"X-Forwarded-For": client}) == 200
            assert streams.open({"X-Forwarded-For": f"{client}, 10.1.1.1"}) == 429
            assert streams.open({"X-Forwarded-For": f"203.0.113.9, {client}"}) == 429, "what the client wrote itself"
        assert streams.open({"X-Forwarded-For": "::ffff:198.51.100.1"}) == 429
        assert streams.open({"Forwarded": "for=203.0.113.1"}) == 200, "the proxy itself: the other header counts"
        assert streams.open({"X-Forwarded-For": "nonsense"}) == 429, "the same"
        assert gateway.metrics()[UNUSABLE] == 1
        # Headers that clients added before it lock nobody out.
        many = [f"X-Forwarded-For: {i}.0.0.1" for i in range(1, 9)] + ["X-Forwarded-For: 203.0.113.2"]
        connection = streams.left.enter_context(gateway.connect())
        connection.send(form_bytes("GET", FIREHOSE, gateway.bearer())[:-2] + "\r\n".join(many).encode() + b"\r\n\r\n")
        assert connection.read_head().status == 200


def test_which_header_counts_changes_without_a_restart(servers, redis):
    config = servers.folder / "sluiced.conf"
    config.write_text("trusted-proxies = 127.0.0.0/8\nclient-address = forwarded\n")
    gateway = servers.gateway(redis, *ONE_EACH, "--config", config)
    with Streams(gateway) as streams:
        assert streams.open({"Forwarded": 'for="[2001:db8::1]:80";proto=https'}) == 200
        assert streams.open({"Forwarded": "for=203.0.113.9, for=\"[2001:db8::1]\""}) == 429
        assert streams.open({"Forwarded": "for=\", for=203.0.113.1"}) == 200
        config.write_text("client-address = x-forwarded-for\n")
        os.kill(gateway.pid, signal.SIGHUP)
        eventually(lambda: "event=worker_reloaded " in gateway.log(), "the worker has read its settings")
        assert streams.open({"X-Forwarded-For": "203.0.113.2"}) == 200, "127.0.0.1"
        assert streams.open({"X-Forwarded-For": "203.0.113.3"}) == 429


@pytest.mark.parametrize("form", [line, numbers])
def test_the_proxy_protocol_tells_the_client(servers, redis, form):
    gateway = servers.gateway(redis, *ONE_EACH, "--trusted-proxies", "127.0.0.1", "--ops-listen", "127.0.0.1:0",
                              listen="127.0.0.1:0,proxy", workers=2)
    with Streams(gateway) as streams:
        for client in ("198.51.100.1", "2001:db8::1"):
            assert streams.open(first=form(client)) == 200
            assert streams.open({"X-Forwarded-For": "198.51.100.77", "Forwarded": "for=198.51.100.78"},
                                first=form(client)) == 429
        assert streams.open(first=b"PROXY UNKNOWN\r\n" if form is line else SIGNATURE + b"\x20\0\0\0") == 200
    # Two requests after one header.
    with gateway.connect(first=form("198.51.100.1")) as connection:
        for _ in range(2):
            assert connection.request("GET", "/healthz").status == 200


def ops_metrics(gateway):
    with HttpConnection(gateway.ready["ops_port"]) as connection:
        text = connection.request("GET", "/metrics").text
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def assert_closed(gateway, **how):
    with pytest.raises((ConnectionError, ConnectionEnded)):
        with gateway.connect(**how) as connection:
            connection.request("GET", "/healthz")


def test_who_sends_no_header_is_hung_up_on(servers, redis):
    gateway = servers.gateway(redis, "--trusted-proxies", "127.0.0.1", "--ops-listen", "127.0.0.1:0",
                              "--handshake-timeout-ms", 300, listen="127.0.0.1:0,proxy")
    assert_closed(gateway)
    assert_closed(gateway, first=b"PROXY TCP4 198.51.100.1 127.0.0.1 1 99999\r\n")
    assert_closed(gateway, first=numbers("198.51.100.1", b"\x03\0\x04abcd"))  # a wrong checksum
    assert ops_metrics(gateway)[MALFORMED] == "3"
    assert_closed(gateway, first=line("198.51.100.1"), source="127.0.0.2")
    assert ops_metrics(gateway)[UNTRUSTED] == "1"
    with gateway.connect_plain() as silent:
        silent.send(b"PROXY TCP4 ")
        silent.wait_closed()
    assert ops_metrics(gateway)[LATE] == "1"
    assert "event=no_proxy_header peer=127.0.0.1" in gateway.log()
    with gateway.connect(first=numbers("198.51.100.1", b"\x20\0\x05\x01\0\0\0\0\x04\0\x00")) as connection:
        assert connection.request("GET", "/healthz").status == 200


def test_a_takeover_keeps_the_gate(servers, redis):
    gateway = servers.gateway(redis, "--trusted-proxies", "127.0.0.1", listen="127.0.0.1:0,proxy")
    successor = servers.gateway(gateway.redis_url, "--takeover", "--trusted-proxies", "127.0.0.1",
                                listen=f"127.0.0.1:{gateway.port},proxy", data_dir=gateway.data_dir)
    gateway.wait_end()
    with successor.connect(first=line("198.51.100.1")) as connection:
        assert connection.request("GET", "/healthz").status == 200
    assert_closed(successor)


@pytest.mark.parametrize("options, says", [
    (["--listen", "127.0.0.1:0,proxy"], "--listen: with proxy it needs trusted-proxies"),
    (["--ops-listen", "127.0.0.1:0,proxy"], "--ops-listen: with proxy it needs trusted-proxies"),
    (["--listen", "127.0.0.1:0,tls"], "only ,proxy may stand behind the port"),
    (["--trusted-proxies", "10.0.0.1/8"], '--trusted-proxies: "10.0.0.1/8" has bits behind its prefix'),
    (["--trusted-proxies", "proxy.example.org"], "neither an address nor a network"),
    (["--client-address", "x-real-ip"], '--client-address: "x-real-ip" is neither x-forwarded-for nor forwarded'),
])
def test_what_cannot_be_meant_is_refused(tmp_path, options, says):
    assert says in Program(programs.sluiced(), "--data-dir", tmp_path, *options).ended(1)
