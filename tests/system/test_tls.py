"""TLS itself: certificates, versions, what is agreed on in handshakes, and how a connection ends. That
everything else is as over plain connections is shown by the tests that run over both."""

import json
import ssl
import urllib.error
import urllib.request

import pytest

from harness.http import form_bytes
from harness.tls import Certificate
from harness.waiting import Deadline
from test_settings import run

FIREHOSE = "/v1/stream/firehose"


@pytest.fixture(scope="module")
def gateway(module_servers, redis, certificate):
    return module_servers.gateway(redis, certificate=certificate)


def with_context(gateway, context):
    """What a client with this context agrees on with the server."""
    with gateway.connect(tls=context) as connection:
        assert connection.request("GET", "/healthz").status == 200
        return connection.socket.session


def test_somebody_elses_client(gateway):
    """Python's own, which knows a name of the server from its certificate."""
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
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # or the client itself would not want to
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
    """A client must be able to tell an answer's end from a cut connection (RFC 8446, 6.1)."""
    for request in (form_bytes("GET", "/healthz", {"Connection": "close"}),
                    form_bytes("GET", "/healthz", version="HTTP/1.0"), b"not a request\r\n\r\n"):
        with gateway.connect() as connection:
            connection.send(request)
            assert connection.read_to_end(Deadline(what="the answer")).startswith(b"HTTP/1.")
            assert connection.socket.ended_properly


def test_client_that_only_says_that_it_ends(gateway):
    """close_notify, and the TCP connection stays as it is."""
    with gateway.connect() as connection:
        assert connection.request("GET", "/healthz").status == 200
        connection.socket.say_end()
        connection.wait_closed()


def test_plain_text_to_a_tls_port(gateway):
    with gateway.connect_plain() as connection:
        connection.send(form_bytes("GET", "/healthz"))
        connection.wait_closed()
    assert gateway.get("/healthz").status == 200


def test_key_without_certificate(redis, tmp_path):
    certificate = Certificate(tmp_path)
    file, key = certificate.file, certificate.key
    for options in (["--tls-cert", file], ["--tls-key", key], ["--tls-cert", key, "--tls-key", file]):
        assert "tls" in run("--redis", redis.url, "--listen", "127.0.0.1:0", *options).stderr
