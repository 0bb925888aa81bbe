"""Who may listen: valid and invalid tokens, three ways to send them, scopes, and what happens at `exp`."""

import contextlib
import json
import time

import pytest

from harness import events, tokens
from harness.gateway import EVERY_STREAM, SECRET
from harness.streams import Refused
from harness.tokens import KeyPair, hmac_token, hs256_token, unsigned_token
from harness.waiting import USUAL_S
from harness.websocket import UpgradeRefused

pytestmark = pytest.mark.wires
FIREHOSE = "/v1/stream/firehose"
LEEWAY_S = 60
CLAIMS = {"sub": "42", "scope": EVERY_STREAM, "exp": 4102444800}


def refusal(gateway, target=FIREHOSE, transport="ndjson", **how):
    with pytest.raises(Refused) as refused:
        gateway.stream(target, transport, **how)
    response = refused.value.response
    assert response.error
    return response


def assert_invalid(response):
    """401 with the same text, whatever the cause."""
    assert response.status == 401, response
    assert response.headers["www-authenticate"].startswith("Bearer ")
    assert 'error="invalid_token"' in response.headers["www-authenticate"]
    assert (response.error["code"], response.error["message"]) == ("invalid_token", "the token is not valid")


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_tokens_signed_with_the_secret(gateway, publish, algorithm):
    token = hs256_token(SECRET, alg=algorithm, sub="42", scope="stream:firehose")
    with gateway.stream(FIREHOSE, token=token) as stream:
        publish(events.post(1, "hello"))
        assert stream.next()["id"] == "1"


@pytest.fixture(scope="module")
def key_pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return {kind: KeyPair(folder, kind, kind) for kind in ("rsa", "ec")}


@pytest.fixture(scope="module")
def key_gateway(module_servers, redis, key_pairs):
    """Has two public keys and no secret."""
    return module_servers.gateway(redis, "--jwt-public-key", key_pairs["rsa"].public_file,
                                  "--jwt-public-key", key_pairs["ec"].public_file, secret=None)


@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_tokens_signed_with_a_key_pair(key_gateway, key_pairs, publish, kind):
    token = key_pairs[kind].token(sub="42", scope="stream:firehose")
    with key_gateway.stream(FIREHOSE, token=token) as stream:
        publish(events.post(1, "hello"))
        assert stream.next()["id"] == "1"


@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_public_key_is_no_secret(key_gateway, key_pairs, kind):
    """The classic algorithm confusion: HMAC with the text of the public key as its key."""
    public = key_pairs[kind].public_file.read_bytes()
    for secret in (public, public.rstrip(b"\n")):
        for algorithm in ("HS256", "HS384", "HS512"):
            token = hmac_token(secret, {"alg": algorithm}, CLAIMS)
            assert_invalid(refusal(key_gateway, token=token))


def test_signature_of_another_key(key_gateway, tmp_path):
    for kind in ("rsa", "ec"):
        other = KeyPair(tmp_path, kind, kind)
        assert_invalid(refusal(key_gateway, token=other.token(sub="42", scope=EVERY_STREAM)))


def test_algorithm_of_a_key_is_pinned(key_gateway, key_pairs):
    token = key_pairs["rsa"].token(header={"alg": "PS256"}, sub="42", scope=EVERY_STREAM)
    assert_invalid(refusal(key_gateway, token=token))
    token = key_pairs["rsa"].token(header={"alg": "ES256"}, sub="42", scope=EVERY_STREAM)
    assert_invalid(refusal(key_gateway, token=token))


def bad_tokens():
    good = hs256_token(SECRET, **CLAIMS)
    head, claims, signature = good.split(".")
    header = {"alg": "HS256", "typ": "JWT"}
    yield "wrong secret", hs256_token("another secret", **CLAIMS)
    yield "exp is huge", hmac_token(SECRET, header, '{"sub":"1","scope":"","exp":1e400}')
    yield "claims are a list", hmac_token(SECRET, header, "[]")
    yield "claims are no JSON", hmac_token(SECRET, header, "{")
    yield "repeated claim", hmac_token(SECRET, header,
                                       '{"exp":1,"exp":4102444800,"scope":"stream:firehose"}')
    yield "repeated alg", hmac_token(SECRET, '{"alg":"none","alg":"HS256"}', CLAIMS)
    yield "alg none", unsigned_token(**CLAIMS)
    yield "alg none with a signature", hmac_token(SECRET, {"alg": "none"}, CLAIMS)
    yield "alg None", hmac_token(SECRET, {"alg": "None"}, CLAIMS)
    yield "no alg", hmac_token(SECRET, {"typ": "JWT"}, CLAIMS)
    yield "alg is a number", hmac_token(SECRET, {"alg": 256}, CLAIMS)
    yield "crit", hmac_token(SECRET, {**header, "crit": ["x"], "x": 1}, CLAIMS)
    yield "header is no object", hmac_token(SECRET, '"HS256"', CLAIMS)
    yield "no signature", f"{head}.{claims}."
    yield "two parts", f"{head}.{claims}"
    yield "four parts", f"{good}.{signature}"
    yield "padded", f"{head}.{claims}.{signature}="
    yield "last character", good[:-1] + ("A" if good[-1] != "A" else "E")
    yield "white space", f"{head}.{claims}. {signature}"
    yield "not base64url", f"{head}.{claims}.{signature[:-2]}+/"
    yield "dots", ".."
    yield "one letter", "x"
    yield "too long", hs256_token(SECRET, **CLAIMS, padding="x" * 8200)


@pytest.mark.parametrize("token", [pytest.param(t, id=name) for name, t in bad_tokens()])
@pytest.mark.parametrize("transport", ["ndjson", "raw-websocket"])
def test_bad_tokens_get_one_answer(gateway, token, transport):
    assert_invalid(refusal(gateway, transport=transport, token=token))


@pytest.mark.parametrize("claims, code, said, description", [
    ({"exp": -1}, "token_expired", "has expired", "expired"),
    ({"exp": 1}, "token_expired", "has expired", "expired"),
    ({"nbf": 4102444800}, "invalid_token", "not valid yet", "not valid yet"),
    ({"exp": "4102444800"}, "invalid_token", "exp", "bad claims"),
    ({"exp": None}, "invalid_token", "exp", "bad claims"),
    ({"nbf": "0"}, "invalid_token", "nbf", "bad claims"),
    ({"sub": 2 ** 53}, "invalid_token", "subject is neither a string nor a whole number below 2^53", "bad claims"),
    ({"sub": "x" * 65}, "invalid_token", "sub", "bad claims"),
    ({"scope": {"stream:firehose": 1}}, "invalid_token", "scope or scp is neither a string nor a list", "bad claims"),
    ({"lim": {"likes": 5}}, "invalid_token", "lim", "bad claims"),
])
def test_what_is_wrong_with_a_token_is_said_when_it_is_signed(gateway, claims, code, said, description):
    """And only then: an unsigned token could contain anything."""
    claims = {**CLAIMS, **claims}
    response = refusal(gateway, token=hmac_token(SECRET, {"alg": "HS256"}, claims))
    assert (response.status, response.error["code"]) == (401, code), response
    assert said in response.error["message"]
    assert response.headers["www-authenticate"] == \
        f'Bearer error="invalid_token", error_description="{description}"'
    assert_invalid(refusal(gateway, token=hmac_token("another secret", {"alg": "HS256"}, claims)))


def test_no_token_at_all(gateway):
    for transport in ("ndjson", "sse", "raw-websocket"):
        response = refusal(gateway, transport=transport, headers={"Authorization": None})
        assert response.status == 401 and response.headers["www-authenticate"] == "Bearer"


def test_other_schemes_are_no_token(gateway):
    for value in ("Basic dXNlcjpwYXNz", "Bearer", "Bearer ", gateway.token()):
        assert refusal(gateway, headers={"Authorization": value}).status == 401


def test_scheme_is_case_insensitive(gateway):
    gateway.stream(FIREHOSE, headers={"Authorization": f"bearer {gateway.token()}"}).close()


def test_leeway_for_clocks_that_differ(gateway):
    now = int(time.time())
    for claims in ({"exp": now - 30}, {"nbf": now + 30}):
        gateway.stream(FIREHOSE, token=hs256_token(SECRET, **{**CLAIMS, **claims})).close()


def test_token_in_the_url(gateway, publish):
    for transport in ("ndjson", "sse", "raw-websocket"):
        with gateway.stream(f"{FIREHOSE}?access_token={gateway.token()}", transport,
                            headers={"Authorization": None}) as stream:
            publish(events.post(2, "hello"))
            assert stream.next()["id"] == "2"


def test_token_in_a_form(gateway, publish):
    with gateway.stream("/v1/stream/filter", method="POST", headers={"Authorization": None},
                        body=f"track=kite&access_token={gateway.token()}".encode()) as stream:
        publish(events.post(3, "kite"))
        assert stream.next()["id"] == "3"


def test_token_as_a_subprotocol(gateway, publish):
    websocket = gateway.websocket(FIREHOSE, subprotocols=["sluice.v1", f"bearer.{gateway.token()}"])
    assert websocket.subprotocol == "sluice.v1"
    publish(events.post(4, "hello"))
    assert websocket.next()["id"] == "4"


def test_subprotocol_without_a_token(gateway):
    connection, response = gateway.upgrade(FIREHOSE, {**gateway.bearer(),
                                                      "Sec-WebSocket-Protocol": "sluice.v1"})
    with connection:
        assert response.status == 101
        assert response.headers["sec-websocket-protocol"] == "sluice.v1"


def test_two_tokens_are_one_too_many(gateway):
    token = gateway.token()
    for transport in ("ndjson", "raw-websocket"):
        assert refusal(gateway, f"{FIREHOSE}?access_token={token}", transport).status == 400
    connection, response = gateway.upgrade(
        FIREHOSE, {**gateway.bearer(), "Sec-WebSocket-Protocol": f"sluice.v1, bearer.{token}"})
    connection.close()
    assert response.status == 400 and response.error


@pytest.mark.parametrize("target, scope", [
    ("/v1/stream/filter?track=a", "stream:filter"), ("/v1/stream/sample", "stream:sample"),
    (FIREHOSE, "stream:firehose"), ("/v1/stream/home", "stream:home")])
@pytest.mark.parametrize("transport", ["sse", "raw-websocket"])
def test_each_stream_needs_its_scope(gateway, target, scope, transport):
    gateway.stream(target, transport, token=gateway.token(scope=f"other {scope}")).close()
    others = " ".join(s for s in EVERY_STREAM.split() if s != scope)
    for lacking in (others, "", scope + "x", scope.upper()):
        response = refusal(gateway, target, transport, token=gateway.token(scope=lacking))
        assert response.status == 403, lacking
        assert 'error="insufficient_scope"' in response.headers["www-authenticate"]
        assert response.error["code"] == "insufficient_scope"


def test_deletions_of_everything_need_the_filter_scope_only(gateway, publish):
    token = gateway.token(scope="stream:filter")
    with gateway.stream(FIREHOSE + "?types=delete", token=token) as stream:
        post = events.post(5, "hello")
        publish(post)
        publish(events.delete(6, post))
        assert stream.next()["id"] == "6"


def test_home_needs_a_subject(gateway):
    response = refusal(gateway, "/v1/stream/home",
                       token=hs256_token(SECRET, scope="stream:home"))
    assert response.status in (401, 403)


def test_limits_in_the_token(gateway):
    token = gateway.token(lim={"track": 2, "follow": 1, "boxes": 1, "sample": 5})
    stream = "/v1/stream/filter?"
    gateway.stream(stream + "track=a,b&follow=1", token=token).close()
    assert refusal(gateway, stream + "track=a,b,c", token=token).error["code"] == "too_many_phrases"
    assert refusal(gateway, stream + "follow=1,2", token=token).error["code"] == "too_many_users"
    assert refusal(gateway, stream + "locations=0,0,1,1,2,2,3,3",
                   token=token).error["code"] == "too_many_boxes"
    response = refusal(gateway, "/v1/stream/sample?percent=6", token=token)
    assert (response.status, response.error["code"]) == (403, "not_permitted")
    gateway.stream("/v1/stream/sample?percent=5", token=token).close()


@pytest.fixture(scope="module")
def strict_gateway(module_servers, redis):
    return module_servers.gateway(redis, "--jwt-issuer", "https://id.example",
                                  "--jwt-audience", "sluice")


def test_issuer_and_audience_when_configured(strict_gateway):
    def token(**claims):
        return hs256_token(SECRET, **{**CLAIMS, "iss": "https://id.example", "aud": "sluice",
                                      **claims})
    strict_gateway.stream(FIREHOSE, token=token()).close()
    strict_gateway.stream(FIREHOSE, token=token(aud=["other", "sluice"])).close()
    for bad in ({"iss": "https://other.example"}, {"iss": None}, {"aud": "other"}, {"aud": None},
                {"aud": ["other"]}, {"aud": []}, {"aud": {"sluice": 1}}, {"iss": ["https://id.example"]}):
        response = refusal(strict_gateway, token=token(**bad))
        assert (response.status, response.error["code"]) == (401, "invalid_token"), response
        assert ("issuer" if "iss" in bad else "audience") in response.error["message"]
        assert ("issuer" if "iss" in bad else "audience") in response.headers["www-authenticate"]


def test_subject_is_in_the_claim_that_the_settings_name(module_servers, redis):
    """A name with dots is one name."""
    claim = "https://example.org/user.id"
    gateway = module_servers.gateway(redis, "--jwt-subject-claim", claim, "--max-connections-per-subject", "1")

    def token(**claims):
        return hs256_token(SECRET, **{**CLAIMS, **claims})
    with gateway.stream(FIREHOSE, token=token(**{"sub": "a", claim: 42})):
        response = refusal(gateway, token=token(**{"sub": "b", claim: "42"}))
        assert (response.status, response.error["code"]) == (429, "too_many_connections"), response
        gateway.stream(FIREHOSE, token=token(**{"sub": "a", claim: "43"})).close()
        gateway.stream(FIREHOSE, token=token(sub="42")).close()  # which has no subject
    for bad in (2 ** 53, 1.5, True, [], "", {"id": "42"}):
        response = refusal(gateway, token=token(**{claim: bad}))
        assert (response.status, response.error["code"]) == (401, "invalid_token"), response
        assert "subject" in response.error["message"] or "sub " in response.error["message"]


@contextlib.contextmanager
def stream_until_its_token_ends(gateway, publish, transport):
    """Returns a stream that has delivered an event, and its last message. A slow machine needs a token that is valid
    for longer than a second: it tries how much longer."""
    for seconds in (2, 5, 10, 20, 40):
        exp = int(time.time()) - LEEWAY_S + seconds
        try:
            stream = gateway.stream(FIREHOSE, transport, token=hs256_token(SECRET, **{**CLAIMS, "exp": exp}))
        except (Refused, UpgradeRefused):
            continue
        with stream:
            publish(events.post(7, "before the end"))
            *others, last = stream.to_end(seconds + USUAL_S)
            assert others.pop(0)["code"] == "token_expiring"
            if [message["id"] for message in others] == ["7"]:
                yield stream, last
                return
            assert not others
    raise AssertionError("no token was good for long enough")


@pytest.mark.parametrize("transport", ["ndjson", "delimited", "sse", "websocket", "raw-websocket"])
def test_stream_ends_when_the_token_does(gateway, publish, transport):
    with stream_until_its_token_ends(gateway, publish, transport) as (stream, last):
        assert (last.type, last["code"]) == ("disconnect", "token_expired")
        assert last["reason"] and isinstance(last["retry_ms"], int)
        if "websocket" in transport:
            assert stream.close_code == 4001
        if transport == "sse":
            assert (last.sse_event, last.sse_id) == ("disconnect", None)


def test_nothing_secret_is_logged(servers, redis):
    gateway = servers.gateway(redis, "--log-level", "debug")
    token = gateway.token()
    gateway.stream(f"{FIREHOSE}?access_token={token}", headers={"Authorization": None}).close()
    with gateway.stream(FIREHOSE) as stream:
        redis.publish(events.dump(events.post(8, "a confidential kite")))
        stream.next()
    redis.publish('{"id":"9","type":"post","post":{"id":"9","text":"a confidential kite"}}')
    refusal(gateway, f"{FIREHOSE}?access_token={token[:-3]}", headers={"Authorization": None})
    with gateway.connect() as connection:
        connection.request("GET", f"/nowhere?access_token={token}")
    gateway.stop()
    log = gateway.log()
    for secret in (token, token[:-3], token.split(".")[2][:20], "confidential", SECRET):
        assert secret not in log


def test_without_any_key_every_token_is_refused(servers, redis):
    gateway = servers.gateway(redis, secret=None)
    assert_invalid(refusal(gateway, token=gateway.token()))
    assert_invalid(refusal(gateway, token=hs256_token("", **CLAIMS)))
    assert_invalid(refusal(gateway, token=unsigned_token(**CLAIMS)))


def test_secret_file_loses_one_newline_only(servers, redis):
    gateway = servers.gateway(redis, start=False)
    gateway.secret_file.write_bytes(b"two newlines, the second is ours to keep\n\n")
    gateway.start()
    kept = b"two newlines, the second is ours to keep\n"
    gateway.stream(FIREHOSE, token=hmac_token(kept, {"alg": "HS256"}, CLAIMS)).close()
    assert_invalid(refusal(gateway, token=hmac_token(kept.strip(), {"alg": "HS256"}, CLAIMS)))


def test_token_made_by_the_command_line(gateway, cli_for, publish):
    token = cli_for(None).run("token", "--secret-file", gateway.secret_file, "--sub", "42",
                              "--scope", "stream:firehose", "--ttl", "60",
                              "--claim", 'lim={"track":7}', "--claim", 'note="x"')
    head, claims, _ = token.split(".")
    decoded = json.loads(tokens.base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert decoded["sub"] == "42" and decoded["scope"] == "stream:firehose"
    assert decoded["lim"] == {"track": 7} and decoded["note"] == "x"
    assert 0 <= decoded["exp"] - time.time() <= 61
    with gateway.stream(FIREHOSE, token=token) as stream:
        publish(events.post(10, "hello"))
        assert stream.next()["id"] == "10"
