"""--ops-listen: the operators' endpoints have a separate address."""

import os
import signal
import socket
import ssl

import pytest

from harness import events, programs
from harness.http import HttpConnection
from harness.program import Program
from harness.streams import HttpStream
from harness.tls import Certificate
from harness.waiting import eventually
from harness.websocket import WebSocket

FIREHOSE = "/v1/stream/firehose"
FOR_OPERATORS = ["/metrics", "/status.json"]
FOR_ALL = ["/healthz", "/readyz"]
FREE = "127.0.0.1:0"


def ask(port, path, method="GET", headers=None, tls=None):
    with HttpConnection(port, tls=tls) as connection:
        return connection.request(method, path, headers=headers)


def statuses(port, paths, tls=None):
    return [ask(port, path, tls=tls).status for path in paths]


def pages(gateway):
    """The dashboard and all its parts, if this sluiced has one."""
    found = [path for path in ("/", "/status")
             if ask(gateway.ready.get("ops_port", gateway.port), path).status == 200]
    return found


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--ops-listen", FREE, workers=2)


def test_what_is_for_operators_is_there_and_nowhere_else(gateway):
    ops_port = gateway.ready["ops_port"]
    assert ops_port not in (0, gateway.port)
    paths = FOR_OPERATORS + pages(gateway)
    assert statuses(ops_port, paths + FOR_ALL) == [200] * (len(paths) + 2)
    assert statuses(gateway.port, paths) == [404] * len(paths)
    assert statuses(gateway.port, FOR_ALL) == [200, 200]


def test_public_port_says_no_more_than_of_any_other_path(gateway):
    """Neither with another method, nor in the error text, nor for clients that name the other listener's host."""
    nothing = ask(gateway.port, "/nothing")
    for path in FOR_OPERATORS + ["/"]:
        for method in ("GET", "HEAD", "POST"):
            answer = ask(gateway.port, path, method)
            expected = ask(gateway.port, "/nothing", method)
            assert (answer.status, answer.body) == (expected.status, expected.body)
    assert ask(gateway.port, "/readyz?verbose").body == ask(gateway.port, "/readyz").body
    assert b'"parts"' in ask(gateway.ready["ops_port"], "/readyz?verbose").body
    for host in ("ops", f"127.0.0.1:{gateway.ready['ops_port']}", "localhost:65535"):
        answer = ask(gateway.port, "/metrics", headers={"Host": host})
        assert (answer.status, answer.body) == (404, nothing.body)


def reasons(port, headers=None):
    """Why writes fail, according to both endpoints."""
    answers = [ask(port, path, headers=headers) for path in ("/readyz?verbose", "/status.json")]
    assert [answer.status for answer in answers] == [200, 200]
    readiness, status = [answer.json for answer in answers]
    assert readiness["parts"]["writes"]["state"] == status["health"]["writes"]["state"] == "failing"
    return {readiness["parts"]["writes"]["why"], status["health"]["writes"]["why"]}


def test_strangers_are_not_told_why_a_part_fails(servers):
    redis = servers.redis()
    with_port = servers.gateway(redis, "--ops-listen", FREE)
    without, dev = servers.gateway(redis), servers.gateway(redis, "--dev")
    redis.client.config_set("maxmemory", 1)
    for gateway in with_port, without, dev:
        eventually(lambda: gateway.log().count("event=writes_refused"), "writes are refused")
    for told in (reasons(with_port.ready["ops_port"]), reasons(dev.port),
                 reasons(without.port, without.bearer(scope="admin"))):
        assert all("OOM" in why for why in told), told
    withheld = {"withheld: in the log, at ops-listen, or with a token with scope admin"}
    assert reasons(without.port) == reasons(without.port, without.bearer(scope="read")) == withheld
    assert "why=" in without.log().split("event=writes_refused")[1].splitlines()[0]
    bad = ask(without.port, "/readyz?verbose", headers={"Authorization": "Bearer x.y.z"})
    assert bad.status == 401 and "OOM" not in bad.body.decode()


def test_kept_connection_stays_with_its_listener(gateway):
    for port, expected in ((gateway.port, 404), (gateway.ready["ops_port"], 200)):
        with HttpConnection(port) as connection:
            for _ in range(3):
                assert connection.request("GET", "/metrics").status == expected
                assert connection.request("GET", "/healthz").status == 200


def test_dashboard_finds_its_streams_on_its_own_origin(gateway, redis):
    ops_port = gateway.ready["ops_port"]
    assert ask(ops_port, FIREHOSE).status == 401
    own = {**gateway.bearer(), "Origin": f"http://localhost:{ops_port}"}
    streams = [HttpStream(ops_port, FIREHOSE, "sse", headers=own),
               WebSocket(ops_port, FIREHOSE, headers=own),
               HttpStream(gateway.port, FIREHOSE, "ndjson", headers=gateway.bearer())]
    redis.publish(events.dump(events.post(1, "heard at both")))
    assert [stream.next()["id"] for stream in streams] == ["1"] * 3
    for stream in streams:
        stream.close()


def test_it_is_plain_when_the_public_listener_has_tls(servers, redis, tmp_path):
    gateway = servers.gateway(redis, "--ops-listen", FREE, certificate=Certificate(tmp_path))
    ops_port, tls = gateway.ready["ops_port"], gateway.tls
    assert statuses(ops_port, FOR_OPERATORS + FOR_ALL) == [200] * 4
    assert statuses(gateway.port, FOR_OPERATORS, tls) == [404] * 2
    assert statuses(gateway.port, FOR_ALL, tls) == [200] * 2
    with gateway.stream(FIREHOSE) as stream:
        redis.publish(events.dump(events.post(1, "secret")))
        assert stream.next()["id"] == "1"
    # Nor does the server name of a TLS client lead to the other listener.
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    for name in ("ops", "sluice", "elsewhere"):
        with socket.create_connection(("127.0.0.1", gateway.port)) as plain, \
                tls.wrap_socket(plain, server_hostname=name) as wrapped:
            wrapped.sendall(f"GET /metrics HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
            assert wrapped.recv(100).startswith(b"HTTP/1.1 404 ")
    # A new certificate is for the public listener; the other one stays plain.
    gateway.certificate.renew()
    os.kill(gateway.pid, signal.SIGHUP)
    eventually(lambda: ask(ops_port, "/readyz").status == 200, "it is ready")


def test_successor_gets_both_ports(servers, redis):
    gateway = servers.gateway(redis, "--ops-listen", FREE, workers=2)
    ops_port = gateway.ready["ops_port"]
    for workers in (1, 3):
        successor = servers.successor(gateway, "--ops-listen", f"127.0.0.1:{ops_port}",
                                      workers=workers)
        gateway.wait_end()
        gateway = successor
        assert gateway.ready["ops_port"] == ops_port
        assert statuses(ops_port, FOR_OPERATORS) == [200] * 2
        assert statuses(gateway.port, FOR_OPERATORS) == [404] * 2


def test_who_waits_at_the_ops_port_is_served_by_the_successor(servers, redis):
    gateway = servers.gateway(redis, "--ops-listen", FREE, workers=2)
    ops_port = gateway.ready["ops_port"]
    for worker in gateway.workers():
        os.kill(worker, signal.SIGSTOP)
    knocking = [HttpConnection(ops_port) for _ in range(20)]
    for connection in knocking:
        connection.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    servers.successor(gateway, "--ops-listen", f"127.0.0.1:{ops_port}")
    for connection in knocking:
        assert connection.read_response().status == 200
        connection.close()
    for worker in gateway.workers():
        os.kill(worker, signal.SIGCONT)
    gateway.wait_end()


def test_ops_port_may_come_move_and_go_with_a_successor(servers, redis):
    first = servers.gateway(redis)
    second = servers.successor(first, "--ops-listen", FREE)
    first.wait_end()
    ops_port = second.ready["ops_port"]
    assert statuses(second.port, ["/metrics"]) == [404]
    third = servers.successor(second, "--ops-listen", "[::1]:0" if has_ipv6() else "*:0")
    second.wait_end()
    assert third.ready["ops_port"] != ops_port
    with pytest.raises(ConnectionRefusedError):
        HttpConnection(ops_port)
    fourth = servers.successor(third)
    third.wait_end()
    assert "ops_port" not in fourth.ready
    assert statuses(fourth.port, FOR_OPERATORS) == [200] * 2


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def refused(redis, folder, *options):
    secret = folder / "secret"
    secret.write_text("a secret for tests, longer than thirty-two bytes")
    secret.chmod(0o600)
    return Program(programs.sluiced(), "--redis", redis.url, "--jwt-secret-file", secret,
                   "--data-dir", folder / "data", *options).ended(1)


def test_wrong_addresses_are_refused(gateway, redis, tmp_path):
    for address, why in (("9090", "has no port"), ("127.0.0.1:http", "is not a number")):
        said = refused(redis, tmp_path, "--listen", FREE, "--ops-listen", address)
        assert "--ops-listen: " in said and why in said
    ops_port = gateway.ready["ops_port"]
    said = refused(redis, tmp_path, "--listen", FREE, "--ops-listen", f"127.0.0.1:{ops_port}")
    assert f"--ops-listen: port {ops_port} of 127.0.0.1 is in use by another program" in said
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    said = refused(redis, tmp_path, "--listen", f"127.0.0.1:{port}", "--ops-listen", f"*:{port}")
    assert f"--ops-listen: port {port} is that of listen" in said


def test_top_asks_there(gateway):
    url = f"http://127.0.0.1:{gateway.ready['ops_port']}"
    Program(programs.sluice(), "top", "--once", "--url", url).ended(0)
    said = Program(programs.sluice(), "top", "--once", "--url",
                   f"http://127.0.0.1:{gateway.port}").ended(1)
    assert "404" in said and "--ops-listen" in said
