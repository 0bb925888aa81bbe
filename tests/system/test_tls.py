"""TLS itself: certificates, versions, negotiation, and how a connection ends. The tests that run both ways show that
everything else is the same as over plain connections."""

import json
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

from harness.http import form_bytes
from harness.tls import Certificate, client_hello
from harness.waiting import Deadline, eventually
from test_settings import run

FIREHOSE = "/v1/stream/firehose"


@pytest.fixture(scope="module")
def gateway(module_servers, redis, certificate):
    return module_servers.gateway(redis, certificate=certificate)


def with_context(gateway, context):
    """What a client with this context and the server agree on."""
    with gateway.connect(tls=context) as connection:
        assert connection.request("GET", "/healthz").status == 200
        return connection.socket.session


def test_somebody_elses_client(gateway):
    """Python's own, which checks the server's name in the certificate."""
    for host in ("127.0.0.1", "localhost"):
        url = f"https://{host}:{gateway.port}"
        with urllib.request.urlopen(f"{url}/healthz", context=gateway.tls, timeout=20) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(f"{url}/nowhere", context=gateway.tls, timeout=20)
        assert refusal.value.code == 404 and json.load(refusal.value)["error"]["code"]


def test_certificate_is_for_its_names_only(gateway):
    with pytest.raises(ssl.SSLCertVerificationError):
        gateway.connect(server_name="other.example")
    with pytest.raises(ssl.SSLCertVerificationError):
        gateway.connect(tls=ssl.create_default_context())
    assert gateway.get("/healthz").status == 200


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_versions_of_today(gateway, version):
    context = gateway.certificate.client()
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version.replace(".", "_"))
    assert with_context(gateway, context).version() == version


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("version", ["TLSv1", "TLSv1_1"])
def test_versions_of_the_past_are_refused(gateway, version):
    context = gateway.certificate.client()
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # otherwise the client itself would refuse
    context.options &= ~(ssl.OP_NO_TLSv1 | ssl.OP_NO_TLSv1_1)
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        gateway.connect(tls=context)


@pytest.mark.parametrize("offered, agreed", [([], None), (["http/1.1"], "http/1.1"),
                                             (["h2", "http/1.1"], "http/1.1")])
def test_protocol_is_agreed_on(gateway, offered, agreed):
    context = gateway.certificate.client()
    if offered:
        context.set_alpn_protocols(offered)
    assert with_context(gateway, context).selected_alpn_protocol() == agreed


def test_end_of_a_connection_is_said(gateway):
    """A client must be able to distinguish an answer's end from a broken connection (RFC 8446, 6.1)."""
    for request in (form_bytes("GET", "/healthz", {"Connection": "close"}),
                    form_bytes("GET", "/healthz", version="HTTP/1.0"), b"not a request\r\n\r\n"):
        with gateway.connect() as connection:
            connection.send(request)
            assert connection.read_to_end(Deadline(what="the answer")).startswith(b"HTTP/1.")
            assert connection.socket.ended_properly


def test_client_that_only_says_that_it_ends(gateway):
    """close_notify, while the TCP connection stays open."""
    with gateway.connect() as connection:
        assert connection.request("GET", "/healthz").status == 200
        connection.socket.say_end()
        connection.wait_closed()


def hello(gateway):
    return client_hello(gateway.tls)


NO_HANDSHAKE = {
    "a request": lambda g: form_bytes("GET", "/healthz"),
    "nothing but zeros": lambda g: bytes(5000),
    "a record of another kind": lambda g: b"\x17" + hello(g)[1:],
    "a record that is too long": lambda g: b"\x16\x03\x01\xff\xff" + bytes(70_000),
    "an empty record": lambda g: b"\x16\x03\x01\0\0" * 100,
    "an alert": lambda g: b"\x15\x03\x03\0\2\2\x28",
    "two hellos": lambda g: hello(g) * 2,
    "a hello that is longer than it says": lambda g: hello(g) + b"x" * 20_000,
}


@pytest.mark.parametrize("what", NO_HANDSHAKE)
def test_what_is_no_handshake_is_closed(gateway, what):
    with gateway.connect_plain() as connection:
        try:
            connection.send(NO_HANDSHAKE[what](gateway))
        except ConnectionError:
            pass
        connection.wait_closed()
    assert gateway.get("/healthz").status == 200


def test_handshake_in_single_bytes(gateway):
    with gateway.connect_plain() as connection:
        for byte in hello(gateway):
            connection.send(bytes([byte]))
        assert connection.read_exactly(3, Deadline(what="the server's part")) == b"\x16\x03\x03"


def test_records_of_single_bytes(gateway):
    with gateway.connect() as connection:
        for byte in form_bytes("GET", "/healthz") * 3:
            connection.send(bytes([byte]))
        assert [connection.read_response().status for _ in range(3)] == [200] * 3


def test_record_that_was_changed_on_its_way(gateway):
    with gateway.connect() as connection:
        assert connection.request("GET", "/healthz").status == 200
        connection.socket.send(b"\x17\x03\x03\0\x30" + b"x" * 0x30)  # bypassing the session
        connection.wait_closed()
    assert gateway.get("/healthz").status == 200


def test_clients_who_vanish_during_the_handshake(gateway):
    first = hello(gateway)
    before = gateway.metrics()["sluice_connections"]
    for cut in (0, 1, 5, 6, len(first) // 2, len(first) - 1, len(first)):
        for how in ("close", "reset", "half_close"):
            connection = gateway.connect_plain()
            connection.send(first[:cut])
            getattr(connection, how)()
            connection.close()
    eventually(lambda: gateway.metrics()["sluice_connections"] <= before, "all have gone")


def test_client_that_wants_another_handshake(gateway):
    """TLS 1.2 has renegotiation, which costs a server more than a client."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{gateway.port}", "-tls1_2", "-CAfile",
               gateway.certificate.file]
    asking = subprocess.run(command, input=b"R\n" * 5, capture_output=True, timeout=Deadline().seconds)
    assert b"Secure Renegotiation IS supported" in asking.stdout, "it would be possible"
    assert asking.stdout.count(b"RENEGOTIATING") <= 1 and asking.returncode != 0, asking
    assert gateway.get("/healthz").status == 200


def test_key_without_certificate(redis, tmp_path):
    certificate = Certificate(tmp_path)
    file, key = certificate.file, certificate.key
    for options in (["--tls-cert", file], ["--tls-key", key], ["--tls-cert", key, "--tls-key", file]):
        assert "tls" in run("--redis", redis.url, "--listen", "127.0.0.1:0", *options).stderr
