"""Options, environment, configuration file: an error names the setting, and the exit status is 1."""

import os
import signal
import socket
import subprocess

import pytest

from harness import events, programs
from harness.gateway import sanitizer_report
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"


def run(*arguments, env=None, status=1):
    done = subprocess.run([programs.sluiced(), *map(str, arguments)], timeout=60, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=programs.environment(**(env or {})))
    assert not sanitizer_report(done.stderr), done.stderr
    assert done.returncode == status, (done.returncode, done.stderr)
    return done


@pytest.mark.parametrize("option, value", [
    ("--listen", "nowhere"), ("--listen", "127.0.0.1"), ("--listen", "127.0.0.1:65536"),
    ("--listen", "127.0.0.1:x"), ("--listen", "256.1.1.1:80"), ("--redis", "http://localhost"),
    ("--redis", "redis://"), ("--redis", "rediss://localhost?ssl-ca=/nonexistent"), ("--redis", "redis://h:99999"),
    ("--workers", "0"), ("--workers", "x"), ("--workers", "-1"), ("--workers", "2.5"),
    ("--log-level", "loud"), ("--dialects", "twitter1,klingon"), ("--ready-fd", "x"), ("--keepalive-ms", "9e9"),
    ("--max-event-bytes", "1"), ("--max-event-bytes", "5Q"), ("--allow-origin", "not an origin"),
    ("--config", "/nonexistent/file"), ("--redis", ""), ("--drain-timeout", "-5"), ("--jwt-secret-file", "/nonexistent/file"),
    ("--jwt-public-key", "/nonexistent/file"), ("--jwt-public-key", __file__),
    ("--tls-cert", "/nonexistent/file"), ("--tls-key", "/nonexistent/file"),
])
def test_bad_value_names_its_option(tmp_path, option, value):
    done = run("--data-dir", tmp_path / "data", option, value)
    assert option[2:] in done.stderr or value in done.stderr
    variable = "SLUICE_" + option[2:].upper().replace("-", "_")
    done = run("--data-dir", tmp_path / "data", env={variable: value})
    assert variable in done.stderr or value in done.stderr


def test_unknown_options_name_themselves():
    for arguments, named in ((["--wrong"], "--wrong"), (["--listen"], "--listen"),
                             (["extra"], '"extra"'), (["--workers=2", "--worker", "2"], '"--worker"')):
        done = run(*arguments)
        assert named in done.stderr


def test_help():
    text = run("--help", status=0).stdout
    for option in ("--config", "--listen", "--redis", "--data-dir", "--jwt-secret-file",
                   "--jwt-public-key", "--tls-cert", "--tls-key", "--allow-origin", "--workers",
                   "--ready-fd", "--log-level"):
        assert option in text


def test_empty_secret_is_refused(tmp_path):
    for content in (b"", b"\n"):
        (tmp_path / "secret").write_bytes(content)
        done = run("--data-dir", tmp_path / "data", "--jwt-secret-file", tmp_path / "secret")
        assert str(tmp_path / "secret") in done.stderr


def test_busy_port_is_named(gateway, redis):
    done = run("--listen", f"127.0.0.1:{gateway.port}", "--redis", redis.url)
    assert str(gateway.port) in done.stderr


def test_data_dir_in_use_is_named(servers):
    gateway = servers.gateway(None)
    done = run("--listen", "127.0.0.1:0", "--data-dir", gateway.data_dir)
    assert str(gateway.data_dir) in done.stderr
    gateway.check()


def test_environment_and_file_and_their_order(servers, redis, tmp_path):
    config = tmp_path / "sluiced.conf"
    config.write_text("# a comment\n\nkeepalive-ms = 100\nlog-level = error\nworkers = 2\n"
                      "allow-origin = https://a.example\nallow-origin = https://b.example\n")
    gateway = servers.gateway(redis, "--config", config,
                              env={"SLUICE_KEEPALIVE_MS": "60000", "SLUICE_LOG_LEVEL": "debug"})
    assert len(gateway.workers()) == 1  # the command line takes precedence over the file
    assert "level=debug" in gateway.log() or "debug" in gateway.log()
    for origin in ("https://a.example", "https://b.example"):
        gateway.stream(FIREHOSE, "raw-websocket", headers={"Origin": origin}).close()


@pytest.mark.parametrize("line", ["listen 127.0.0.1:0", "wrong = 1", "workers = many", "= 5", "[section]"])
def test_bad_line_of_the_file_is_named(tmp_path, line):
    config = tmp_path / "sluiced.conf"
    config.write_text("log-level = info\n" + line + "\n")
    done = run("--config", config, "--data-dir", tmp_path / "data")
    assert f"{config}:2" in done.stderr or (str(config) in done.stderr and "2" in done.stderr)


def test_ready_line(servers, redis):
    gateway = servers.gateway(redis)
    assert set(gateway.ready) == {"port", "redis", "pid"}
    assert gateway.ready["redis"] == redis.url
    os.kill(gateway.ready["pid"], signal.SIGTERM)
    assert gateway.process.wait(20) == 0


def test_ready_means_that_events_arrive(servers, redis):
    """No window between the ready line and the first event, in any worker."""
    for _ in range(5):
        gateway = servers.gateway(redis, workers=2)
        streams = [gateway.stream(FIREHOSE) for _ in range(4)]
        redis.publish(events.dump(events.post(1, "at once")))
        assert all(stream.next()["id"] == "1" for stream in streams)
        gateway.stop()


def test_ipv6(servers, redis):
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    gateway = servers.gateway(redis, listen="[::1]:0")
    with socket.create_connection(("::1", gateway.port)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b" 200 " in connection.recv(4096)


def test_too_many_connections(servers, redis):
    gateway = servers.gateway(redis, "--max-connections", 5)
    streams = [gateway.stream(FIREHOSE) for _ in range(5)]
    response = gateway.get("/v1/stream/firehose", gateway.bearer())
    assert response.status in (429, 503) and response.error
    assert int(response.headers["retry-after"]) >= 1
    streams.pop().close()
    eventually(lambda: gateway.get("/healthz").status == 200, "room again")
