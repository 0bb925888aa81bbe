"""SIGHUP: keys, certificates, limits and the log level change, and no client is affected."""

import json
import os
import signal
import ssl

import pytest

from harness import events
from harness.gateway import SECRET
from harness.http import HttpConnection
from harness.streams import HttpStream, Refused
from harness.tls import Certificate
from harness.tokens import hs256_token
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"
OTHER = "another secret, longer than thirty-two bytes too"


@pytest.fixture
def config(servers):
    file = servers.folder / "sluiced.conf"
    file.write_text("")
    return file


def reload(gateway, says="worker_reloaded", times=1):
    """Sends SIGHUP, and waits until every worker has reported the result."""
    before = gateway.log().count(f"event={says} ")
    os.kill(gateway.pid, signal.SIGHUP)
    eventually(lambda: gateway.log().count(f"event={says} ") == before + times, says)


def renew(gateway, stream):
    with gateway.connect() as connection:
        path = f"/v1/connections/{stream.response.headers['sluice-connection']}/token"
        return connection.request("PUT", path, gateway.bearer()).status


def test_changed_secret_counts_for_who_comes_from_now_on(servers, redis):
    gateway = servers.gateway(redis, workers=2)
    streams = [gateway.stream(FIREHOSE, transport) for transport in ("ndjson", "sse", "websocket")]
    gateway.secret_file.write_text(OTHER + "\n")
    reload(gateway, times=2)
    for _ in range(8):  # any of the workers
        with pytest.raises(Refused):
            gateway.stream(FIREHOSE, token=hs256_token(SECRET, sub="1", scope="stream:firehose"))
        gateway.stream(FIREHOSE,
                       token=hs256_token(OTHER, sub="1", scope="stream:firehose")).close()
    redis.publish(events.dump(events.post(1, "to those who came before")))
    for stream in streams:
        assert stream.next()["id"] == "1"
        stream.close()


def test_streams_end_when_another_secret_takes_the_place_of_theirs(servers, redis):
    """In the same file, so with the same name."""
    gateway = servers.gateway(redis, "--keys-removed-after", "500ms")
    streams = [gateway.stream(FIREHOSE, transport) for transport in ("ndjson", "sse", "websocket")]
    gateway.secret_file.write_text(OTHER + "\n")
    reload(gateway)
    new = gateway.stream(FIREHOSE, token=hs256_token(OTHER, sub="1", scope="stream:firehose"))
    for stream in streams:
        assert stream.next(seconds=60)["code"] == "token_revoked"
    redis.publish(events.dump(events.post(1, "to who stays")))
    assert new.next()["id"] == "1"


def test_tickets_and_renewals_through_another_gateway_tell_whose_key_it_was(servers, redis):
    """A ticket of an older gateway names only the key."""
    first, second = (servers.gateway(redis, "--keys-removed-after", "500ms") for _ in range(2))

    def by_ticket():
        with second.connect() as connection:
            answer = connection.request("POST", "/v1/tickets", {"Content-Type": "application/json", **second.bearer()},
                                        json.dumps({"path": FIREHOSE}).encode())
        return answer.json["ticket"]

    def open_by(ticket):
        return HttpStream(first.port, f"{FIREHOSE}?ticket={ticket}", "ndjson")

    ending = [open_by(by_ticket())]
    ticket = by_ticket()
    key, = (name for name in redis.client.keys("sluice:*:ticket:*"))
    row = json.loads(redis.client.get(key))
    redis.client.set(key, json.dumps({name: value for name, value in row.items() if name != "key"}))
    staying = open_by(ticket)
    renewed = first.stream(FIREHOSE)
    eventually(lambda: renew(second, renewed) == 200, "the other gateway has renewed it")
    ending.append(renewed)
    first.secret_file.write_text(OTHER + "\n")
    reload(first)
    for stream in ending:
        assert stream.until(lambda message: message.type == "disconnect", seconds=60)[-1]["code"] == "token_revoked"
    redis.publish(events.dump(events.post(1, "to who stays")))
    assert staying.next()["id"] == "1"


def test_new_certificate_is_shown_to_new_connections(servers, redis, tmp_path):
    gateway = servers.gateway(redis, certificate=Certificate(tmp_path))
    before = gateway.tls
    first = gateway.stream(FIREHOSE)
    gateway.certificate.renew("renewed")
    with pytest.raises(ssl.SSLError):
        gateway.connect()
    reload(gateway)
    second = gateway.stream(FIREHOSE)
    with pytest.raises(ssl.SSLError):
        HttpConnection(gateway.port, tls=before)
    redis.publish(events.dump(events.post(1, "to both")))
    for stream in (first, second):
        assert stream.next()["id"] == "1"
        stream.close()


class ConfiguredCertificate(Certificate):
    """Its paths are in the configuration file."""

    options = []

    def settings(self):
        return f"tls-cert = {self.file}\ntls-key = {self.key}\n"


def test_certificate_of_another_path_is_shown_to_new_connections(servers, redis, config, tmp_path):
    """Twice: the second path replaces one that is no longer in the settings."""
    certificate = ConfiguredCertificate(tmp_path)
    config.write_text(certificate.settings())
    gateway = servers.gateway(redis, "--config", config, certificate=certificate)
    for name in ("other", "another"):
        folder = tmp_path / name
        folder.mkdir()
        before = gateway.tls
        gateway.certificate = ConfiguredCertificate(folder, name)
        config.write_text(gateway.certificate.settings())
        reload(gateway)
        gateway.stream(FIREHOSE).close()
        with pytest.raises(ssl.SSLError):
            HttpConnection(gateway.port, tls=before)


class SlowFile:
    """A file whose end nobody can read before let_go()."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        os.mkfifo(f"{path}.slow")
        os.rename(f"{path}.slow", path)

    def wait_for_reader(self):
        def opens():
            try:
                return os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # no reader
                return None
        self.fd = eventually(opens, f"somebody reads {self.path.name}")

    def let_go(self):
        """Afterwards readers find an ordinary file."""
        fast = self.path.with_suffix(".fast")
        fast.touch(mode=0o600)
        fast.write_text(self.text)
        fast.rename(self.path)
        os.write(self.fd, self.text.encode())
        os.close(self.fd)


def test_slow_files_stop_no_stream(servers, redis, config):
    """The signal goes to the worker itself: the parent would read the files first."""
    issuers = servers.folder / "issuers.json"
    issuers.write_text("[]")
    gateway = servers.gateway(redis, "--config", config, "--issuers-file", issuers)
    worker, = gateway.workers()
    stream = gateway.stream(FIREHOSE)
    slow = [SlowFile(issuers, "[]"), SlowFile(gateway.secret_file, OTHER + "\n")]
    os.kill(worker, signal.SIGHUP)
    for number, file in enumerate(slow, 1):
        file.wait_for_reader()
        redis.publish(events.dump(events.post(number, "while the disk is slow")))
        assert stream.next()["id"] == str(number)
        gateway.stream(FIREHOSE).close()  # the old settings are still in use
        assert "event=worker_reloaded " not in gateway.log()
        if file is slow[0]:  # received when it has read all
            config.write_text("max-connections-per-subject = 1\n")
            os.kill(worker, signal.SIGHUP)
        file.let_go()
    eventually(lambda: gateway.log().count("event=worker_reloaded ") == 2, "it has read them, and again")
    token = hs256_token(OTHER, sub="new", scope="stream:firehose")
    with gateway.stream(FIREHOSE, token=token), pytest.raises(Refused) as refusal:
        gateway.stream(FIREHOSE, token=token)
    assert refusal.value.response.status == 429


def test_limits_and_level_of_the_log_change(servers, redis, config):
    config.write_text("log-level = warn\n")
    gateway = servers.gateway(redis, "--config", config)
    stream = gateway.stream(FIREHOSE)
    assert gateway.get(FIREHOSE, {"Authorization": "Bearer x.y.z"}).status == 401
    assert "level=info" not in gateway.log()
    config.write_text("max-connections-per-subject = 1\n")
    reload(gateway)
    with pytest.raises(Refused) as refusal:
        gateway.stream(FIREHOSE)
    assert refusal.value.response.status == 429
    assert gateway.get(FIREHOSE, {"Authorization": "Bearer x.y.z"}).status == 401

    def is_logged():
        return "level=info event=token_refused" in gateway.log() or \
            gateway.get(FIREHOSE, {"Authorization": "Bearer x.y.z"}).status != 401
    eventually(is_logged, "more is logged")
    config.write_text("")
    reload(gateway)
    gateway.stream(FIREHOSE).close()
    stream.close()


def test_bad_settings_change_nothing(servers, redis, config):
    gateway = servers.gateway(redis, "--config", config)
    stream = gateway.stream(FIREHOSE)
    config.write_text("max-connections-per-subject = 1\nno-such-setting = 1\n")
    reload(gateway, says="reload_refused")
    assert f"{config}:2: " in gateway.log() and "no-such-setting" in gateway.log()
    config.write_text("jwt-public-key = /nowhere.pem\nmax-connections-per-subject = 1\n")
    reload(gateway, says="reload_refused")
    assert "/nowhere.pem" in gateway.log()
    gateway.stream(FIREHOSE).close()
    redis.publish(events.dump(events.post(1, "as before")))
    assert stream.next()["id"] == "1"
    stream.close()


def test_what_takes_a_restart_is_named(servers, redis, config):
    gateway = servers.gateway(redis, "--config", config)
    config.write_text("max-header-bytes = 8K\nring-bytes = 1M\nkeepalive-ms = 5000\n")
    reload(gateway)
    line, = [line for line in gateway.log().splitlines() if "event=restart_needed" in line]
    assert line.endswith('options="max-header-bytes, ring-bytes"'), line
