"""Connections are listed, ended and given new tokens, whichever worker of whichever gateway has them."""

import json
import time

import pytest

from harness import events
from harness.api import JSON
from harness.gateway import SECRET
from harness.http import form_bytes
from harness.redis_group import RedisGroup
from harness.streams import Refused
from harness.tokens import hs256_token
from harness.waiting import USUAL_S, eventually

FIREHOSE = "/v1/stream/firehose"
WIRES = ["ndjson", "delimited", "sse", "raw-websocket"]
LEEWAY_S = 60
EVERYTHING = "stream:filter stream:sample stream:firehose stream:home read write"
ADMIN = "admin"


def ask(gateway, method, path, token):
    with gateway.connect() as connection:
        return connection.request(method, path, {"Authorization": f"Bearer {token}"})


def connection_id(stream):
    return stream.response.headers["sluice-connection"]


def listed(gateway, token, query=""):
    answer = ask(gateway, "GET", "/v1/connections" + query, token)
    assert answer.status == 200, answer
    return answer.json


def until_complete(gateway, token, count, query=""):
    """Returns the list as soon as all workers are subscribed."""
    found = []

    def is_complete():
        found[:] = [listed(gateway, token, query)]
        return found[0]["complete"] and found[0]["total"] == count
    eventually(is_complete, f"{count} connections are told of by all workers")
    return found[0]


@pytest.fixture(scope="module")
def pair(module_servers, redis):
    """Two gateways on one Redis, with two workers and with one."""
    settings = "--max-connections-per-subject", 200
    return module_servers.gateway(redis, *settings, workers=2), module_servers.gateway(redis, *settings)


def test_all_connections_of_two_gateways_are_listed_on_each(pair, publish):
    streams = [gateway.stream(FIREHOSE if wire != "sse" else "/v1/stream/filter?track=tea", wire,
                              token=gateway.token(scope=EVERYTHING, sub="lister"))
               for gateway in pair for wire in WIRES]
    ids = {connection_id(stream): stream for stream in streams}
    assert len(ids) == len(streams) and all(len(name) == 32 for name in ids)
    for gateway in pair:
        own = until_complete(gateway, gateway.token(scope="read", sub="lister"), len(streams))
        assert {item["id"] for item in own["items"]} == set(ids)
        assert own["next"] == max(ids) == own["items"][-1]["id"]
        everybody = until_complete(gateway, gateway.token(scope=ADMIN, sub="boss"), len(streams), "?sub=lister")
        assert {item["subject"] for item in everybody["items"]} == {"lister"}
        for item in own["items"]:
            stream = ids[item["id"]]
            transport = getattr(stream, "transport", "websocket")
            assert "subject" not in item and item["address"] == "127.0.0.1" and item["transport"] == transport
            assert item["path"] == ("/v1/stream/filter" if transport == "sse" else FIREHOSE)
            assert item["filters"] == 1 and item["filter_bytes"] > 0 and item["streams"] == 0
            assert item["since"] < item["expires"] and item["lag_ms"] >= 0
    publish(events.post(1, "tea"))
    for stream in streams:
        stream.until("1")
    sent = {item["id"]: item for item in listed(pair[1], pair[1].token(scope="write", sub="lister"))["items"]}
    assert all(sent[name]["events"] == 1 and sent[name]["bytes"] > 50 for name in ids)
    for stream in streams:
        stream.close()
    until_complete(pair[0], pair[0].token(scope="read", sub="lister"), 0)


def test_nobody_sees_or_ends_what_is_not_theirs(pair):
    first, second = pair
    with first.stream(FIREHOSE, token=first.token(scope=EVERYTHING, sub="owner")) as stream:
        name = connection_id(stream)
        until_complete(second, second.token(scope="read", sub="owner"), 1)
        other = second.token(scope="read write", sub="other")
        assert listed(second, other)["items"] == []
        for method, path, status, code in [
                ("GET", f"/v1/connections/{name}", 404, "no_such_connection"),
                ("DELETE", f"/v1/connections/{name}", 404, "no_such_connection"),
                ("PUT", f"/v1/connections/{name}/token", 404, "no_such_connection"),
                ("GET", "/v1/connections?sub=owner", 403, "insufficient_scope"),
                ("DELETE", "/v1/connections?sub=owner", 403, "insufficient_scope"),
                ("DELETE", "/v1/connections", 400, "missing_parameter"),
                ("GET", "/v1/connections?after=12", 400, "bad_after"),
                ("GET", "/v1/connections?sub=", 400, "bad_sub"),
                ("GET", "/v1/connections?page=2", 400, "unknown_parameter"),
                ("POST", "/v1/connections", 405, "method_not_allowed"),
                ("GET", f"/v1/connections/{name}/token", 405, "method_not_allowed"),
                ("GET", "/v1/connections/none", 404, "not_found")]:
            answer = ask(second, method, path, other)
            assert (answer.status, answer.error["code"]) == (status, code), (method, path, answer)
        # A token that may only listen sees nothing, and one that may only read ends nothing.
        for scope, method in [("stream:firehose", "GET"), ("read", "DELETE")]:
            answer = ask(second, method, f"/v1/connections/{name}", second.token(scope=scope, sub="owner"))
            assert (answer.status, answer.error["code"]) == (403, "insufficient_scope")
        assert ask(second, "GET", "/v1/connections", "nonsense").status == 401
        own = ask(second, "GET", f"/v1/connections/{name}", second.token(scope="read", sub="owner"))
        assert own.status == 200 and own.json["id"] == name
        gone = name[:-1] + ("0" if name[-1] != "0" else "1")
        answer = ask(second, "GET", f"/v1/connections/{gone}", second.token(scope=ADMIN, sub="boss"))
        assert (answer.status, answer.error["code"]) == (404, "no_such_connection")


@pytest.mark.parametrize("transport", WIRES)
def test_connection_is_ended_from_another_gateway(pair, transport):
    first, second = pair
    stream = first.stream(FIREHOSE, transport, token=first.token(scope=EVERYTHING, sub="ends"))
    until_complete(second, second.token(scope="read", sub="ends"), 1)
    answer = ask(second, "DELETE", f"/v1/connections/{connection_id(stream)}",
                 second.token(scope="write", sub="ends"))
    assert answer.status == 204, answer
    last = stream.to_end()[-1]
    assert (last.type, last["code"]) == ("disconnect", "ended") and "retry_ms" not in last
    if transport == "raw-websocket":
        assert stream.close_code == 4004
    if transport == "sse":
        assert stream.retry_ms == 86400000
    until_complete(second, second.token(scope="read", sub="ends"), 0)


def test_all_of_a_subject_are_ended_and_others_go_on(pair, publish):
    doomed = [gateway.stream(FIREHOSE, token=gateway.token(scope=EVERYTHING, sub="doomed")) for gateway in pair * 2]
    with pair[0].stream(FIREHOSE, token=pair[0].token(sub="doomed2")) as left:
        boss = pair[1].token(scope=ADMIN, sub="boss")
        until_complete(pair[1], boss, 4, "?sub=doomed")
        answer = ask(pair[1], "DELETE", "/v1/connections?sub=doomed", boss)
        assert (answer.status, answer.json) == (200, {"ended": 4, "complete": True})
        for stream in doomed:
            assert stream.to_end()[-1]["code"] == "ended"
        publish(events.post(2, "for who is left"))
        assert left.until("2")


def test_list_has_pages_of_a_hundred(pair):
    first, second = pair
    token = first.token(scope=EVERYTHING, sub="crowd")
    streams = [gateway.stream(FIREHOSE, token=token) for gateway in pair for _ in range(60)]
    page = until_complete(second, token, 120)
    assert len(page["items"]) == 100
    rest = listed(second, token, f"?after={page['next']}")
    assert len(rest["items"]) == 20 and rest["total"] == 120
    assert {item["id"] for item in page["items"] + rest["items"]} == {connection_id(stream) for stream in streams}
    assert listed(second, token, f"?after={rest['next']}")["items"] == []
    for stream in streams:
        stream.close()


# A new token

def soon(seconds, **claims):
    """A token whose stream ends in this many seconds."""
    claims = {"scope": EVERYTHING, "sub": "renews", **claims}
    return hs256_token(SECRET, exp=int(time.time()) - LEEWAY_S + seconds, **claims)


def renew(gateway, stream, token):
    if hasattr(stream, "send_frame"):
        stream.send_frame(1, json.dumps({"op": "token", "token": token}).encode())
        answer = stream.until(lambda message: "op" in message)[-1]
        return answer.json.get("error", {}).get("code"), answer.json
    answer = ask(gateway, "PUT", f"/v1/connections/{connection_id(stream)}/token", token)
    return (answer.error["code"] if answer.status != 200 else None), answer.json


@pytest.mark.parametrize("transport", WIRES)
def test_stream_is_warned_and_given_another_token(pair, transport):
    """It is warned at once, because it has less than a minute."""
    first, second = pair
    with first.stream(FIREHOSE, transport, token=soon(50)) as stream:
        warning = stream.next()
        assert (warning.type, warning["code"]) == ("warning", "token_expiring")
        assert 0 < warning["ms"] <= 50000 and warning["message"]
        if transport == "sse":
            assert warning.sse_event == "warning"
        until_complete(second, second.token(scope="read", sub="renews"), 1)
        code, answer = renew(second, stream, soon(55))
        assert code is None and answer["expires"], answer
        assert stream.next()["code"] == "token_expiring"  # about the second one
    until_complete(second, second.token(scope="read", sub="renews"), 0)


def streams_that_outlive_their_token(gateway, other, seconds):
    """Returns [streams], one of each transport with a new token, and one that ends with the old one; None: it took too
    long."""
    old, new = soon(seconds, sub="outlives"), other.token(scope=EVERYTHING, sub="outlives")
    try:
        ends = gateway.stream(FIREHOSE, token=old)
        streams = [gateway.stream(FIREHOSE, transport, token=old) for transport in WIRES]
    except Refused:
        return None
    if any(renew(other, stream, new)[0] for stream in streams):
        return None
    return streams, ends


def test_streams_live_until_the_end_of_their_new_token(pair, publish):
    first, second = pair
    for seconds in (3, 10, 30):
        found = streams_that_outlive_their_token(first, second, seconds)
        if found:
            break
    streams, ends = found
    assert ends.to_end(seconds + USUAL_S)[-1]["code"] == "token_expired"
    publish(events.post(5, "after the first token"))
    for stream in streams:
        assert stream.until("5")
    for stream in streams:  # earlier than before: the newest token counts
        for seconds in (3, 10, 30):
            code, answer = renew(second, stream, soon(seconds, sub="outlives"))
            if code != "token_expired":  # otherwise it took longer to deliver it
                break
        assert code is None, answer
    for stream in streams:
        assert stream.to_end(seconds + USUAL_S)[-1]["code"] == "token_expired"


@pytest.mark.parametrize("transport", ["ndjson", "raw-websocket"])
def test_token_that_is_not_enough_is_refused_and_the_old_one_goes_on(pair, transport, publish):
    first, second = pair
    target = "/v1/stream/filter?track=tea,coffee"
    with first.stream(target, transport, token=first.token(scope="stream:filter", sub="keeps")) as stream:
        until_complete(second, second.token(scope="read", sub="keeps"), 1)
        refusals = [
            (second.token(scope="stream:filter", sub="another"),
             "another_subject" if transport == "raw-websocket" else "no_such_connection"),
            (second.token(scope="stream:sample", sub="keeps"), "narrower_scope"),
            (second.token(scope="stream:filter", sub="keeps", lim={"track": 1}), "narrower_limits"),
            (second.token(scope="stream:filter", sub="keeps", exp=1), "token_expired"),
            ("nonsense", "invalid_token")]
        for token, code in refusals:
            assert renew(second, stream, token)[0] == code
        assert renew(second, stream, second.token(scope="stream:filter", sub="keeps", lim={"track": 2}))[0] is None
        publish(events.post(3, "tea"))
        assert stream.until("3")


def test_what_is_opened_on_a_connection_counts_for_its_new_token(pair):
    gateway, _ = pair
    with gateway.stream("/v1/stream", "raw-websocket", token=gateway.token(scope=EVERYTHING, sub="many")) as stream:
        for message in ({"op": "subscribe", "id": "a", "filter": {"track": "tea"}},
                        {"op": "open", "id": "b", "path": "/v1/stream/sample"}):
            stream.send_frame(1, json.dumps(message).encode())
            assert "error" not in stream.until(lambda m: "op" in m)[-1]
        for scope, code in [("stream:filter", "narrower_scope"), ("stream:sample", "narrower_scope"),
                            ("stream:filter stream:sample", None)]:
            assert renew(gateway, stream, gateway.token(scope=scope, sub="many"))[0] == code
        assert renew(gateway, stream, gateway.token(scope=EVERYTHING, sub="many",
                                                    lim={"rules": 1}))[0] == "narrower_limits"
        # From now on less is permitted.
        stream.send_frame(1, json.dumps({"op": "open", "id": "c", "path": FIREHOSE}).encode())
        assert stream.until(lambda m: "op" in m)[-1]["error"]["code"] == "insufficient_scope"


@pytest.mark.parametrize("transport", ["ndjson", "raw-websocket"])
def test_token_that_was_taken_back_takes_the_place_of_none(pair, transport):
    first, second = pair
    with first.stream(FIREHOSE, transport, token=first.token(scope=EVERYTHING, sub="bears")) as stream:
        until_complete(second, second.token(scope="read", sub="bears"), 1)
        with second.connect() as connection:
            made = connection.request("POST", "/v1/revocations", {**second.bearer(scope=ADMIN, sub="boss"), **JSON},
                                      json.dumps({"jti": f"lost-{transport}"}).encode())
        assert made.status == 201, made
        lost = second.token(scope=EVERYTHING, sub="bears", jti=f"lost-{transport}")
        eventually(lambda: ask(first, "GET", "/v1/connections", lost).status == 401, "the first gateway has heard")
        assert renew(second, stream, lost)[0] == "token_revoked"
        assert renew(second, stream, second.token(scope=EVERYTHING, sub="bears", jti="found"))[0] is None


def test_token_without_a_subject_takes_the_place_of_none(pair):
    gateway, _ = pair
    token = hs256_token(SECRET, scope=EVERYTHING)
    with gateway.stream(FIREHOSE, "raw-websocket", token=token) as stream:
        assert renew(gateway, stream, token)[0] == "another_subject"
        assert [item["id"] for item in listed(gateway, token)["items"]] == [connection_id(stream)]


def test_hello_and_header_name_the_connection_and_pages_may_read_it(servers, redis):
    gateway = servers.gateway(redis, "--allow-origin", "https://app.example")
    with gateway.stream(FIREHOSE + "?hello=true", "sse", headers={"Origin": "https://app.example"}) as stream:
        assert stream.next()["connection"] == connection_id(stream)
        assert "Sluice-Connection" in stream.response.headers["access-control-expose-headers"]


def test_warning_is_a_setting(servers, redis):
    gateway = servers.gateway(redis, "--token-warning", "0", "--keepalive-ms", "50")
    with gateway.stream(FIREHOSE, "sse", token=soon(20)) as stream:
        stream.wait_keepalives(2)


# The command line

def test_command_lists_and_ends_them(pair, cli):
    first, second = pair
    streams = [gateway.stream(FIREHOSE, token=gateway.token(scope=EVERYTHING, sub="at work")) for gateway in pair for _ in range(55)]
    boss = second.token(scope=ADMIN, sub="boss")
    until_complete(second, boss, 110, "?sub=at%20work")
    server = "--url", second.url, "--token", boss
    lines = cli.run("connections", *server, "--sub", "at work").splitlines()
    assert {line.split()[0] for line in lines} == {connection_id(stream) for stream in streams}  # of two pages
    assert all(f"127.0.0.1 {FIREHOSE} ndjson filters=1 " in line and "subject=at work" in line for line in lines)
    listed_ones = cli.run("connections", *server, "--sub", "at work", "--json").splitlines()
    assert {json.loads(line)["id"] for line in listed_ones} == {connection_id(stream) for stream in streams}
    assert cli.run("connections", *server, "--end", connection_id(streams[0])) == ""
    assert streams[0].to_end()[-1]["code"] == "ended"
    assert cli.run("connections", *server, "--end-sub", "at work") == "109"
    for stream in streams[1:]:
        assert stream.to_end()[-1]["code"] == "ended"
    cli.run("connections", *server, "--end", connection_id(streams[0]), status=1)
    assert "no such connection" in cli.done.stderr
    cli.run("connections", *server, "--end", "7", status=2)
    cli.run("connections", *server, "--end-sub", "1", "--sub", "1", status=2)
    cli.run("connections", "--url", second.url, "--token", second.token(scope="read"), "--end-sub", "at work", status=1)
    assert "scope" in cli.done.stderr


# Incomplete answers

@pytest.mark.one_redis("in a cluster they hear by SSUBSCRIBE, which others count for nothing in")
def test_gateway_that_does_not_answer_is_missed(servers, redis):
    """All subscribers of the question count; one that does not answer for half a second is reported."""
    gateway = servers.gateway(redis)
    with gateway.stream(FIREHOSE, token=gateway.token(scope=EVERYTHING, sub="lonely")) as stream:
        token = gateway.token(scope="read write", sub="lonely")
        until_complete(gateway, token, 1)
        with redis.client.pubsub() as silent:
            silent.subscribe("sluice:{0}:control")
            eventually(lambda: not listed(gateway, token)["complete"], "somebody is missed")
            assert [item["id"] for item in listed(gateway, token)["items"]] == [connection_id(stream)]
        answer = ask(gateway, "DELETE", f"/v1/connections/{connection_id(stream)}", token)
        assert answer.status == 204


@pytest.mark.one_redis("in a cluster nobody can hear what they hear, and be silent")
def test_questions_of_a_subject_are_bounded(servers, redis):
    gateway = servers.gateway(redis)
    headers = {"Authorization": f"Bearer {gateway.token(scope=ADMIN, sub='asks')}"}

    def is_refused():
        connections = [gateway.connect() for _ in range(6)]
        for connection in connections:
            connection.send(form_bytes("GET", "/v1/connections", headers))
        answers = [connection.read_response() for connection in connections]
        for connection in connections:
            connection.close()
        refused = [answer for answer in answers if answer.status != 200]
        assert all((answer.status, answer.error["code"]) == (429, "too_many_questions") for answer in refused)
        return len(refused) == 2
    with redis.client.pubsub() as silent:  # so that each request takes half a second
        silent.subscribe("sluice:{0}:control")
        eventually(is_refused, "a fifth one at a time is refused")


def test_worker_that_stops_is_missed_and_its_connections_are_not_there(servers, redis):
    first, second = servers.gateway(redis), servers.gateway(redis)
    token = first.token(scope=EVERYTHING, sub="stops")
    with first.stream(FIREHOSE, token=token) as stream:
        name = connection_id(stream)
        until_complete(second, token, 1)
    first.stop()
    until_complete(second, token, 0)
    answer = ask(second, "DELETE", f"/v1/connections/{name}", token)
    assert (answer.status, answer.error["code"]) == (404, "no_such_connection")


@pytest.mark.one_redis("which node has shard 0 is the cluster's affair")
def test_own_connections_are_told_of_without_redis(servers):
    redis = servers.redis(shards=1)
    gateway = servers.gateway(redis, "--redis-timeout", "1s", "--api-timeout", "1s")
    with gateway.stream(FIREHOSE, token=gateway.token(scope=EVERYTHING, sub="alone")) as stream:
        token = gateway.token(scope="read write", sub="alone")
        until_complete(gateway, token, 1)
        redis.stop()
        answer = listed(gateway, token)
        assert not answer["complete"] and [item["id"] for item in answer["items"]] == [connection_id(stream)]
        assert ask(gateway, "DELETE", f"/v1/connections/{connection_id(stream)}", token).status == 204
        assert stream.to_end()[-1]["code"] == "ended"


@pytest.fixture
def group(servers):
    group = RedisGroup(servers.folder / "group")
    yield group
    group.end()


def test_they_are_told_of_behind_another_master(servers, cli_for, group):
    cli_for(group).run("init")
    gateways = [servers.gateway(group.url) for _ in range(2)]
    streams = [gateway.stream(FIREHOSE, token=gateway.token(scope=EVERYTHING, sub="stays")) for gateway in gateways]
    token = gateways[0].token(scope="read write", sub="stays")
    until_complete(gateways[0], token, 2)
    group.kill_master()
    group.wait_failover()
    for gateway in gateways:
        until_complete(gateway, token, 2)
    answer = ask(gateways[0], "DELETE", f"/v1/connections/{connection_id(streams[1])}", token)
    assert answer.status == 204, answer
    assert streams[1].to_end()[-1]["code"] == "ended"
    streams[0].close()


def test_nonsense_on_the_channel_changes_nothing(pair, redis, publish):
    gateway, _ = pair
    with gateway.stream(FIREHOSE, token=gateway.token(scope=EVERYTHING, sub="calm")) as stream:
        token = gateway.token(scope="read", sub="calm")
        until_complete(gateway, token, 1)
        for text in ("", "{}", "[]", "x" * 300000, '{"v":1,"kind":"question"}',
                     '{"v":1,"kind":"question","number":"0000000000000001","from":"0123456789ab","op":"end",'
                     '"holder":"","id":"","after":""}'):
            redis.client.publish("sluice:{0}:control", text)
        until_complete(gateway, token, 1)
        publish(events.post(4, "all is well"))
        assert stream.until("4")


def test_refused_stream_has_no_connection(pair):
    with pytest.raises(Refused) as refused:
        pair[0].stream(FIREHOSE, token="nonsense")
    assert "sluice-connection" not in refused.value.response.headers
