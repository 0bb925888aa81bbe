"""The audit log: who opened what, for how long, how much, why it ended; who was refused; what administrators did."""

import json
import os
import signal
import stat
import subprocess

import pytest

from harness import events, programs
from harness.streams import Refused
from harness.waiting import eventually

FIREHOSE = "/v1/stream/firehose"
COUNTED = "sluice_audit_lines_total"


def lines(file):
    """Each line is whole, whichever process writes."""
    text = file.read_text() if file.exists() else ""
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def wait_for(file, count, event=None):
    def found():
        there = [line for line in lines(file) if event in (None, line["event"])]
        return there if len(there) >= count else None
    return eventually(found, f"{count} lines of {event}")


@pytest.fixture
def audited(servers, tmp_path):
    redis = servers.redis()
    return redis, servers.gateway(redis, "--audit-log", tmp_path / "audit"), tmp_path / "audit"


def test_a_stream_has_two_lines(audited):
    redis, gateway, file = audited
    with gateway.stream("/v1/stream/filter?track=Tea,coffee&language=en", token=gateway.token(jti="one")) as stream:
        [opened] = wait_for(file, 1)
        redis.publish(json.dumps(events.post(1, "black tea", lang="en")))
        assert stream.until("1")
    opened, ended = wait_for(file, 2)
    assert (opened["event"], ended["event"]) == ("stream_open", "stream_end")
    assert opened["connection"] == ended["connection"] and opened["jti"] == ended["jti"] == "one"
    assert (opened["sub"], opened["address"], opened["stream"], opened["transport"]) == ("42", "127.0.0.1", "filter", "ndjson")
    assert "tea" in opened["filter"] and "coffee" in opened["filter"] and "en" in opened["filter"]
    assert opened["kid"] == "secret"
    assert ended["events"] == 1 and ended["bytes"] > 0 and ended["ms"] >= 0 and ended["why"]
    assert "token" not in str(opened) and gateway.token()[:20] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    eventually(lambda: gateway.metrics()[COUNTED] == 2, "they are counted")
    assert gateway.metrics()["sluice_audit_lines_lost_total"] == 0


def test_what_comes_and_goes_on_a_connection(audited):
    _, gateway, file = audited
    with gateway.stream("/v1/stream", "websocket") as stream:
        for message in ({"op": "subscribe", "id": "a", "filter": {"track": "tea"}}, {"op": "unsubscribe", "id": "a"},
                        {"op": "open", "id": "n", "path": FIREHOSE}, {"op": "close", "id": "n"}):
            stream.send(json.dumps(message))
    found = wait_for(file, 6)
    assert [line["event"] for line in found] == ["stream_open", "filter_add", "filter_remove", "stream_open", "stream_end",
                                                 "stream_end"]
    assert len({line["connection"] for line in found}) == 1
    assert found[1]["id"] == "a" and "tea" in found[1]["filter"] and "filter" not in found[2]
    assert found[3]["opened"] == found[4]["opened"] == "n" and found[3]["stream"] == "firehose"


def test_a_long_filter_is_cut(audited):
    _, gateway, file = audited
    phrases = ",".join(f"phrase{number:04}茶" for number in range(399))
    gateway.stream("/v1/stream/filter", method="POST", body=f"track={phrases}".encode()).close()
    [opened] = wait_for(file, 1, "stream_open")
    assert len(opened["filter"].encode()) < 2100 and "phrase0001" in opened["filter"]


def test_who_is_refused(audited):
    _, gateway, file = audited
    for token in ("nonsense", gateway.token(exp=1), gateway.token(scope="read")):
        with pytest.raises(Refused):
            gateway.stream(FIREHOSE, token=token)
    assert gateway.get(f"{FIREHOSE}?ticket={'A' * 22}").status == 401
    assert gateway.get(FIREHOSE).error["code"] == "no_token"
    found = wait_for(file, 4)
    assert [(line["event"], line.get("fault") or line["code"]) for line in found] == [
        ("token_refused", "malformed"), ("token_refused", "expired"), ("refused", "insufficient_scope"),
        ("refused", "invalid_ticket")]
    assert {line["address"] for line in found} == {"127.0.0.1"}


def test_who_is_refused_before_a_body_is_read_and_in_a_dialect(servers, tmp_path):
    file = tmp_path / "audit"
    gateway = servers.gateway(servers.redis(), "--audit-log", file, "--dialects", "twitter2")
    with pytest.raises(Refused):
        gateway.stream("/v1/stream/filter", method="POST", body=b"track=tea", token=gateway.token(scope="read"))
    assert gateway.get("/2/tweets/firehose/stream?partition=1", headers=gateway.bearer(scope="read")).status == 403
    assert [(line["event"], line["code"]) for line in wait_for(file, 2)] == [("refused", "insufficient_scope")] * 2


# Open connections

def renew(gateway, stream, token):
    if hasattr(stream, "send"):
        stream.send(json.dumps({"op": "token", "token": token}))
        return stream.until(lambda message: "op" in message)[-1].json.get("error", {}).get("code")
    with gateway.connect() as connection:
        answer = connection.request("PUT", f"/v1/connections/{stream.response.headers['sluice-connection']}/token",
                                    {"Authorization": f"Bearer {token}"})
    return None if answer.status == 200 else answer.error["code"]


def of_tokens(file, count):
    return [line for line in wait_for(file, count) if line["event"].startswith("token_")]


@pytest.mark.parametrize("transport", ["websocket", "ndjson"])
def test_a_new_token_has_a_line(audited, transport):
    _, gateway, file = audited
    with gateway.stream(FIREHOSE, transport, token=gateway.token(jti="one")) as stream:
        assert renew(gateway, stream, gateway.token(jti="two")) is None
    opened, renewed, ended = wait_for(file, 3)
    assert [line["event"] for line in (opened, renewed, ended)] == ["stream_open", "token_renewed", "stream_end"]
    assert len({line["connection"] for line in (opened, renewed, ended)}) == 1
    assert [line["jti"] for line in (opened, renewed, ended)] == ["one", "two", "two"]
    assert (renewed["sub"], renewed["kid"]) == ("42", "secret") and renewed["expires"].endswith("Z")


@pytest.mark.parametrize("transport", ["websocket", "ndjson"])
def test_a_token_that_is_not_taken_has_a_line(audited, transport):
    _, gateway, file = audited
    is_websocket = transport == "websocket"
    with gateway.stream(FIREHOSE, transport, token=gateway.token(jti="one")) as stream:
        [opened] = wait_for(file, 1)
        for token in ("nonsense", gateway.token(exp=1), gateway.token(scope="read"), gateway.token(sub="7")):
            assert renew(gateway, stream, token)
        found = of_tokens(file, 5)
    assert [line.get("fault") or line["code"] for line in found] == [
        "malformed", "expired", "narrower_scope", "another_subject" if is_websocket else "no_such_connection"]
    assert {line["event"] for line in found} == {"token_refused"} and {line["address"] for line in found} == {"127.0.0.1"}
    known = found if is_websocket else found[2:]  # a bad token in a request proves no identity
    assert {line["connection"] for line in known} == {opened["connection"]}
    assert [line["sub"] for line in known] == (["42"] * 4 if is_websocket else ["42", "7"])


def test_what_is_refused_on_a_connection(audited):
    _, gateway, file = audited
    with gateway.stream("/v1/stream", "websocket", token=gateway.token(scope="stream:filter", jti="few")) as stream:
        for message in ({"op": "open", "id": "n", "path": FIREHOSE}, {"op": "open", "id": "n", "path": "/nowhere"},
                        {"op": "subscribe", "id": "a", "filter": {"track": ""}}):
            stream.send(json.dumps(message))
            assert "error" in stream.until(lambda message: "op" in message)[-1].json
    opened, refused, ended = wait_for(file, 3)
    assert (refused["event"], refused["code"]) == ("refused", "insufficient_scope")
    assert (refused["connection"], refused["jti"], refused["address"]) == (opened["connection"], "few", "127.0.0.1")
    assert ended["event"] == "stream_end"


def test_those_who_are_refused_do_not_fill_the_disk(audited):
    _, gateway, file = audited
    with gateway.connect() as connection:
        for _ in range(400):
            connection.request("GET", FIREHOSE, {"Authorization": "Bearer nonsense"})
    found = wait_for(file, 100)
    held_back = sum(line.get("held_back", 0) for line in found)
    assert len(found) + held_back <= 400


def test_what_an_administrator_does(audited):
    _, gateway, file = audited
    with gateway.connect() as connection:
        for login in ("ada", "ada"):
            connection.request("POST", "/v1/users", {"Content-Type": "application/json", **gateway.bearer(sub="root", scope="admin")},
                               json.dumps({"login": login, "name": "Ada"}).encode())
        connection.request("GET", "/v1/users/ada", gateway.bearer(scope="read"))
    found = wait_for(file, 2)
    assert [(line["event"], line["sub"], line["operation"], line["status"]) for line in found] == [
        ("admin", "root", "POST /v1/users", 201), ("admin", "root", "POST /v1/users", 409)]


def test_whose_connections_an_administrator_ends(audited):
    _, gateway, file = audited
    with gateway.stream(FIREHOSE, token=gateway.token(sub="7")) as stream, gateway.connect() as connection:
        answer = connection.request("DELETE", "/v1/connections?sub=7", gateway.bearer(sub="root", scope="admin"))
        assert answer.json["ended"] == 1, answer
        assert stream.until(lambda message: message.type == "disconnect")[-1]["code"] == "ended"
    [line] = wait_for(file, 1, "admin")
    assert (line["sub"], line["operation"], line["of"], line["ended"]) == ("root", "DELETE /v1/connections", "7", 1)
    assert wait_for(file, 1, "stream_end")[0]["why"] == "ended"


def test_it_is_opened_anew_by_sighup(servers, tmp_path):
    """With several workers, each of which writes."""
    redis, file = servers.redis(), tmp_path / "audit"
    gateway = servers.gateway(redis, "--audit-log", file, workers=3)
    for _ in range(20):
        gateway.stream(FIREHOSE).close()
    assert {line["event"] for line in wait_for(file, 40)} == {"stream_open", "stream_end"}
    old = tmp_path / "audit.1"
    os.rename(file, old)
    with gateway.stream(FIREHOSE):
        wait_for(old, 41)
        gateway.process.send_signal(signal.SIGHUP)
        eventually(lambda: gateway.log().count("worker_reloaded") == 3, "all have heard it")
        wait_for(file, 1, "reloaded")
    wait_for(file, 1, "stream_end")
    for _ in range(20):
        gateway.stream(FIREHOSE).close()
    wait_for(file, 42)
    assert len(lines(old)) == 41


@pytest.mark.parametrize("path, why", [("/nonexistent/audit", "No such file or directory"), ("/", "Is a directory"),
                                       ("/dev/null", "is no regular file")])
def test_a_file_that_cannot_be_had(tmp_path, path, why):
    done = subprocess.run([programs.sluiced(), "--data-dir", tmp_path, "--audit-log", path], timeout=60, text=True,
                          stderr=subprocess.PIPE, env=programs.environment())
    assert done.returncode == 1 and "audit-log" in done.stderr and why in done.stderr
