"""Revoked tokens: their streams end, further requests are refused, on every gateway; and all gateways learn about it,
even those that were unavailable."""

import json
import time

import pytest

from harness import events
from harness.api import Api
from harness.gateway import EVERY_STREAM, SECRET
from harness.proxy import Proxy
from harness.redis_group import RedisGroup
from harness.streams import Refused
from harness.tokens import hs256_token
from harness.waiting import eventually
from harness.websocket import TEXT

FIREHOSE = "/v1/stream/firehose"
TRANSPORTS = ["ndjson", "delimited", "sse", "raw-websocket"]
subjects = iter(range(1000, 100000))


class OtherProgram:
    """A program that is stopped with the servers."""

    def __init__(self, proxy):
        self.stop = proxy.close


@pytest.fixture
def sub():
    """A subject that no other test uses."""
    return f"s{next(subjects)}"


@pytest.fixture(scope="module")
def admin(gateway):
    admin = Api(gateway, scope="admin", sub="root")
    yield admin
    admin.close()


def revoke(admin, **members):
    return admin.expect(201, "POST", "/v1/revocations", members)


def undo(admin, revocation):
    admin.expect(204, "DELETE", f"/v1/revocations/{revocation['id']}")


def refused(gateway, token, target=FIREHOSE, transport="ndjson"):
    """Returns the error's code; None: it is accepted."""
    try:
        gateway.stream(target, transport, token=token).close()
        return None
    except Refused as refusal:
        assert refusal.response.status == 401, refusal.response
        return refusal.response.error["code"]


def wait_refused(gateway, token):
    eventually(lambda: refused(gateway, token) == "token_revoked", "the token is refused")


def wait_good(gateway, token):
    eventually(lambda: refused(gateway, token) is None, "the token is good")


def assert_ended(stream):
    """Expects that it has been told why."""
    last = stream.to_end()[-1]
    assert (last.type, last["code"]) == ("disconnect", "token_revoked") and "retry_ms" not in last
    if hasattr(stream, "close_code"):
        assert stream.close_code == 1008


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_streams_of_a_subject_end_and_others_go_on(gateway, admin, publish, sub, transport):
    token = gateway.token(sub=sub)
    with gateway.stream(FIREHOSE, transport, token=token) as ends, \
            gateway.stream(FIREHOSE, transport, token=gateway.token(sub=sub + "x")) as other:
        made = revoke(admin, sub=sub)
        assert_ended(ends)
        publish(events.post(7, "for those who are left"))
        assert other.next()["id"] == "7"
    answer = gateway.get(FIREHOSE, {"Authorization": f"Bearer {token}"})
    assert (answer.status, answer.error["code"]) == (401, "token_revoked")
    assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token", error_description="revoked"'
    undo(admin, made)
    wait_good(gateway, token)


def test_filters_and_opened_streams_end_with_their_connection(gateway, admin, sub):
    with gateway.stream("/v1/stream", "raw-websocket", token=gateway.token(sub=sub)) as stream:
        for message in ({"op": "subscribe", "id": "tea", "track": "tea"},
                        {"op": "open", "id": "all", "path": "/v1/stream/firehose"}):
            stream.send_frame(TEXT, json.dumps(message))
            stream.until(lambda answer: answer.json.get("id") == message["id"])
        revoke(admin, sub=sub)
        assert_ended(stream)


def test_every_request_is_refused(gateway, admin, sub):
    token = gateway.token(sub=sub, scope="read write admin stream:firehose stream:filter")
    revoke(admin, sub=sub)
    bearer = {"Authorization": f"Bearer {token}"}
    for path in (FIREHOSE, "/v1/users/1", "/v1/revocations", "/v1/counts?by=day&since=-1d"):
        answer = gateway.get(path, bearer)
        assert (answer.status, answer.error["code"]) == (401, "token_revoked"), path
    assert gateway.metrics()['sluice_tokens_refused_total{fault="revoked"}'] >= 4
    assert gateway.metrics()["sluice_revocations"] >= 1


@pytest.mark.parametrize("name", ["jti", "kid", "before", "sub and before", "sub and kid"])
def test_what_a_revocation_names(gateway, cli, sub, name):
    """A token must match all that the revocation names."""
    now = int(time.time())

    def token(jti, iat, sub=sub):
        return hs256_token(SECRET, scope=EVERY_STREAM, sub=sub, jti=f"{jti}-{sub}", iat=iat)
    old, new, timeless = token("old", now - 100), token("new", now), token("timeless", None)
    stranger = token("old", now - 100, "stranger")
    kid = gateway.command()[gateway.command().index("--jwt-secret-file") + 1].split("/")[-1].rsplit(".", 1)[0]
    time_between = str(now - 50)
    options, hit, spared = {
        "jti": (["--jti", f"old-{sub}"], [old], [new, timeless, stranger]),
        "kid": (["--kid", kid], [old, new, timeless, stranger], []),
        "before": (["--before", time_between], [old, timeless, stranger], [new]),
        "sub and before": (["--sub", sub, "--before", time_between], [old, timeless], [new, stranger]),
        "sub and kid": (["--sub", sub, "--kid", kid], [old, new, timeless], [stranger]),
    }[name]
    made = cli.run("revoke", *options)
    for each in hit:
        wait_refused(gateway, each)
    assert all(refused(gateway, each) is None for each in spared)
    cli.run("revoke", "--undo", made)
    for each in hit:
        wait_good(gateway, each)


def test_a_revocation_is_over_at_its_end(gateway, admin, sub):
    token = gateway.token(sub=sub)
    began = time.monotonic()
    revoke(admin, sub=sub, until="+2s")
    assert refused(gateway, token) == "token_revoked" or time.monotonic() - began > 2
    wait_good(gateway, token)
    assert all(one.get("sub") != sub for one in admin.get("/v1/revocations?limit=200")["items"])


def test_the_list_has_pages(gateway, admin, sub):
    made = [revoke(admin, sub=f"{sub}.{n}", until="+1h") for n in range(3)]
    assert made[0].keys() == {"id", "at", "sub", "until", "by"} and made[0]["by"] == "root"
    page = admin.get("/v1/revocations?limit=2")
    assert page["items"] == [made[2], made[1]] and page["next"] == made[1]["id"]
    page = admin.get(f"/v1/revocations?limit=1&before={page['next']}")
    assert page["items"] == [made[0]]
    for one in made:
        undo(admin, one)
    admin.refused(404, "not_found", "DELETE", f"/v1/revocations/{made[0]['id']}")
    admin.refused(404, "not_found", "DELETE", "/v1/revocations/x")


@pytest.mark.parametrize("body, code, param", [
    ({}, "bad_revocation", "sub"),
    ({"until": "+1h"}, "bad_revocation", "sub"),
    ({"sub": ""}, "bad_revocation", "sub"),
    ({"sub": "x" * 65}, "bad_revocation", "sub"),
    ({"jti": "x" * 513}, "bad_revocation", "jti"),
    ({"kid": "a\nb"}, "bad_revocation", "kid"),
    ({"jti": "x", "before": "now"}, "bad_revocation", "before"),
    ({"sub": "x", "until": "-1h"}, "bad_revocation", "until"),
    ({"sub": "x", "until": "2099-01-01"}, "bad_revocation", "until"),
    ({"before": "soon"}, "bad_time", "before"),
    ({"sub": 42}, "bad_type", "sub"),
    ({"subject": "x"}, "unknown_member", "subject"),
])
def test_refusals_say_what_is_wrong(admin, body, code, param):
    assert admin.refused(400, code, "POST", "/v1/revocations", body)["param"] == param


def test_only_an_admin_may(gateway):
    api = Api(gateway, sub="42", scope="read write")
    api.refused(403, "insufficient_scope", "POST", "/v1/revocations", {"sub": "43"})
    api.refused(403, "insufficient_scope", "GET", "/v1/revocations")
    api.close()


def test_once_for_one_idempotency_key(admin, sub):
    key = {"Idempotency-Key": f"key-{sub}"}
    first, again = (admin.expect(201, "POST", "/v1/revocations", {"sub": sub}, key) for _ in range(2))
    assert first == again
    undo(admin, first)


def test_there_are_not_too_many(servers):
    redis = servers.redis(shards=1)
    gateway = servers.gateway(redis)
    admin = Api(gateway, scope="admin")
    undo(admin, revoke(admin, sub="x"))
    redis.client.zadd("sluice:{0}:revocations_until", {str(n): 4102444800000 for n in range(100000)})
    admin.refused(409, "too_many_revocations", "POST", "/v1/revocations", {"sub": "x"})
    redis.client.zadd("sluice:{0}:revocations_until", {"7": 1000})  # this one has expired
    revoke(admin, sub="x")
    admin.close()
    gateway.stop()


def test_the_command_line(gateway, cli, sub):
    token = gateway.token(sub=sub)
    with gateway.stream(FIREHOSE, token=token) as stream:
        made = cli.run("revoke", "--sub", sub)
        assert_ended(stream)
    listed = [json.loads(line) for line in cli.run("revoke", "--list").splitlines()]
    assert [one["sub"] for one in listed if one["id"] == made] == [sub]
    cli.run("revoke", "--undo", made)
    wait_good(gateway, token)
    cli.run("revoke", "--undo", made, status=1)
    assert f"there is no revocation {made}" in cli.done.stderr
    for wrong in ((), ("--list", "--sub", "x"), ("--jti", "x", "--before", "now"), ("--before", "soon")):
        cli.run("revoke", *wrong, status=2)


def test_tickets_are_refused(gateway, admin, sub):
    """A ticket that was issued for a revoked token opens nothing."""
    def ticket():
        body = json.dumps({"path": FIREHOSE}).encode()
        with gateway.connect() as connection:
            return connection.request("POST", "/v1/tickets",
                                      {**gateway.bearer(sub=sub), "Content-Type": "application/json"}, body)
    given = ticket().json["ticket"]
    made = revoke(admin, sub=sub)
    answer = gateway.get(f"{FIREHOSE}?ticket={given}")
    assert (answer.status, answer.error["code"]) == (401, "token_revoked")
    assert ticket().error["code"] == "token_revoked"
    undo(admin, made)


def test_clients_are_told_nothing_of_it(gateway, admin, publish, sub):
    with gateway.stream(FIREHOSE) as stream:
        undo(admin, revoke(admin, sub=sub))
        publish(events.post(9, "the next event"))
        assert stream.next()["id"] == "9"


def test_all_workers_of_all_gateways(servers, redis, admin, sub):
    gateways = [servers.gateway(redis, workers=2), servers.gateway(redis)]
    token = gateways[0].token(sub=sub)
    streams = [gateway.stream(FIREHOSE, transport, token=token)
               for gateway in gateways for transport in TRANSPORTS for _ in range(2)]
    made = revoke(admin, sub=sub)
    for stream in streams:
        assert_ended(stream)
        stream.close()
    for gateway in gateways:
        wait_refused(gateway, token)
    undo(admin, made)
    for gateway in gateways:
        wait_good(gateway, token)


def test_who_begins_or_takes_over_knows(servers, redis, admin, sub):
    """The list is read before any client is admitted."""
    made = revoke(admin, sub=sub)
    gateway = servers.gateway(redis, workers=2)
    token = gateway.token(sub=sub)
    for _ in range(8):
        assert refused(gateway, token) == "token_revoked"
    successor = servers.successor(gateway, workers=2)
    for _ in range(8):
        assert refused(successor, token) == "token_revoked"
    gateway.wait_end()
    undo(admin, made)


def test_who_leaves_hears_of_it(servers, redis, admin, sub):
    """Its connections are served until they end, and its events are the successor's."""
    gateway = servers.gateway(redis, "--drain-timeout", "10m")
    connection = gateway.connect()
    connection.send(f"GET {FIREHOSE} HTTP/1.1\r\nHost: x\r\n".encode())
    eventually(lambda: gateway.metrics()["sluice_handshakes_pending"] >= 1, "it is in")
    servers.successor(gateway)
    def known():
        """What it has read, or received if it has not begun to drain."""
        return gateway.log().count("event=revocations_read") + gateway.log().count("event=revocation ")
    before = known()
    made = revoke(admin, sub=sub)
    eventually(lambda: known() > before, "who leaves has read it")
    connection.send(f"Authorization: Bearer {gateway.token(sub=sub)}\r\n\r\n".encode())
    assert connection.read_head().status == 401
    connection.close()
    gateway.wait_end()
    undo(admin, made)


@pytest.mark.parametrize("is_trimmed", [False, True])
@pytest.mark.one_redis("what is cut off is one Redis")
def test_who_was_away_hears_of_it(servers, cli_for, sub, is_trimmed):
    """From the log; or, if it was trimmed, from the list."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("init")
    proxy = Proxy(redis.socket)
    servers.programs.append(OtherProgram(proxy))
    gateway = servers.gateway(f"redis://127.0.0.1:{proxy.port}", "--redis-timeout", "1s")
    token = gateway.token(sub=sub)
    with gateway.stream(FIREHOSE, token=token) as ends, gateway.stream(FIREHOSE) as other:
        proxy.cut()
        gateway.wait_status("/readyz", 503)
        cli.run("revoke", "--sub", sub)
        if is_trimmed:
            redis.client.xtrim("sluice:{0}:log", maxlen=0, approximate=False)
        proxy.heal()
        assert_ended(ends)
        gateway.wait_status("/readyz", 200)
        assert refused(gateway, token) == "token_revoked"
        redis.publish(json.dumps(events.post(9, "after it")))
        other.until("9")
    gateway.stop()


@pytest.mark.one_redis("a sentinel watches one Redis")
def test_who_is_promoted_has_them(servers, cli_for, sub):
    """And a gateway that learned them from the master reads them again from the promoted replica."""
    group = RedisGroup(servers.folder / "group")
    servers.redis_servers.append(group)
    cli = cli_for(group)
    cli.run("init")
    gateway = servers.gateway(group.url)
    token = gateway.token(sub=sub)
    cli.run("revoke", "--sub", sub)
    wait_refused(gateway, token)
    eventually(lambda: group.replica.client.zcard("sluice:{0}:revocations") == 1, "the replica has it")
    group.kill_master()
    group.wait_failover()
    gateway.wait_status("/readyz", 200)
    assert refused(gateway, token) == "token_revoked"
    other = cli.run("revoke", "--sub", sub + "x")
    wait_refused(gateway, gateway.token(sub=sub + "x"))
    cli.run("revoke", "--undo", other)
    wait_good(gateway, gateway.token(sub=sub + "x"))
    gateway.stop()


def test_who_cannot_read_them_serves_after_a_while(servers):
    """And reports that."""
    redis = servers.redis(shards=1)
    redis.client.set("sluice:{0}:revocations", "no list")
    gateway = servers.gateway(redis)
    assert refused(gateway, gateway.token()) is None
    assert gateway.metrics()["sluice_revocations_unread_total"] == 1
    assert "event=revocations_unread" in gateway.log() and "event=revocations_not_read" in gateway.log()
    redis.client.delete("sluice:{0}:revocations")
    gateway.stop()


def test_many_streams_end_in_slices(servers, redis, admin, sub):
    """More than are checked in one turn of the loop; other streams continue."""
    gateway = servers.gateway(redis, "--max-connections-per-subject", 1000)
    streams = [gateway.stream(FIREHOSE, token=gateway.token(sub=sub if n % 2 else "42")) for n in range(600)]
    made = revoke(admin, sub=sub)
    for stream in streams[1::2]:
        assert_ended(stream)
    redis.publish(json.dumps(events.post(11, "to the others")))
    for stream in streams[::2]:
        assert stream.next()["id"] == "11"
    for stream in streams:
        stream.close()
    undo(admin, made)
