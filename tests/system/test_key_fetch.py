"""Keys of identity providers: fetched by one process, kept when the provider is unavailable, slow or lies."""

import json
import os
import re
import signal

import pytest

from harness import events, processes
from harness.gateway import Gateway
from harness.provider import Answer, Provider
from harness.tls import Certificate
from harness.waiting import eventually

QUICK = ("--jwks-refresh-min", "200ms", "--jwks-again", "100ms", "--jwks-timeout", "2s")


@pytest.fixture
def provider(servers, tmp_path):
    provider = Provider(tmp_path)
    servers.programs.append(provider)
    return provider


def fetched(gateway):
    """The sets that are in files now."""
    return [json.loads(file.read_text()) for file in sorted(gateway.data_dir.glob("jwks-*.json"))]


def kids(gateway):
    return sorted(key["kid"] for found in fetched(gateway) for key in found["keys"])


def results(gateway):
    """Counts of the results of attempts, by name."""
    prefix = 'sluice_key_fetches_total{result="'
    return {name[len(prefix):-2]: number for name, number in gateway.metrics().items()
            if name.startswith(prefix) and number > 0}


def fetcher(gateway):
    found = [pid for pid in processes.children(gateway.pid) if processes.name(pid) == "sluiced-keys"]
    return found[0] if found else None


def health(gateway):
    return gateway.get("/readyz?verbose").json["parts"]["keys"]["state"]


def test_one_fetch_a_host_in_a_file_of_the_data_directory(servers, redis, provider):
    provider.key("first")
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, "--jwks-url", provider.url(), workers=2)
    eventually(lambda: kids(gateway) == ["first"], "the set is there")
    eventually(lambda: results(gateway) == {"good": 1}, "it is counted")
    numbers = gateway.metrics()
    assert provider.asked == ["/keys"]
    assert numbers["sluice_key_sets"] == 1 and numbers["sluice_key_fetcher_up"] == 1
    assert numbers["sluice_key_sets_missing"] == numbers["sluice_key_sets_failing"] == 0
    assert health(gateway) == "ok"
    [file] = gateway.data_dir.glob("jwks-*")
    assert file.stat().st_mode & 0o777 == 0o600


def test_nothing_to_fetch_is_no_process(servers, redis):
    gateway = servers.gateway(redis, "--jwt-issuer", "https://idp.example")  # and a secret
    assert fetcher(gateway) is None
    assert gateway.metrics()["sluice_key_fetcher_up"] == 0


def test_discovery_by_the_issuer_alone(servers, redis, provider):
    provider.key("found")
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, secret=None)
    eventually(lambda: kids(gateway) == ["found"], "the set is there")
    assert provider.asked == ["/.well-known/openid-configuration", "/keys"]


LIES = {
    "/gone": (Answer("{}", 500), "bad_status"),
    "/elsewhere": (Answer("", 302, Location="/keys"), "redirected"),
    "/huge": (Answer(b'{"keys":[' + b" " * 10_000_000 + b"]}"), "too_big"),
    "/long-head": (Answer("{}", **{"X-Long": "x" * 30_000}), "too_big"),
    "/html": (Answer("<html>log in</html>", type="text/html"), "not_json"),
    "/empty": (Answer({"keys": []}), "no_keys"),
    "/secret": (Answer({"keys": [{"kty": "oct", "k": "AAAA", "kid": "a"}]}), "no_keys"),
    "/silent": (Answer(None), "timed_out"),
}


def test_a_provider_that_lies_is_counted_and_the_last_good_set_stays(servers, redis, provider):
    provider.key("good")
    good = Answer({"keys": provider.keys}, **{"Cache-Control": "no-cache"})
    for path in LIES:
        provider.answers[path] = good
    urls = [option for path in LIES for option in ("--jwks-url", provider.url(path))]
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, *urls, *QUICK)
    eventually(lambda: kids(gateway) == ["good"] * len(LIES), "all sets are there")
    eventually(lambda: set(results(gateway)) == {"good"}, "all is well")
    for path, (answer, _) in LIES.items():
        provider.answers[path] = answer
    wanted = {result for _, result in LIES.values()} | {"good"}
    eventually(lambda: set(results(gateway)) == wanted, "each lie is counted", 40)
    eventually(lambda: gateway.metrics()["sluice_key_sets_failing"] == len(LIES), "all fail", 40)
    assert kids(gateway) == ["good"] * len(LIES)
    assert health(gateway) == "failing"
    verdict = gateway.get("/status.json").json["verdict"]
    assert "keys" in [part["code"] for part in verdict["parts"]] and "127.0.0.1" not in json.dumps(verdict)
    assert gateway.log().count("event=keys_not_fetched") == len(LIES), "once a change"
    for path in LIES:
        provider.answers[path] = good
    provider.is_ending.set()
    eventually(lambda: gateway.metrics()["sluice_key_sets_failing"] == 0, "all is well again", 60)
    eventually(lambda: health(gateway) == "ok", "and said so")


@pytest.mark.parametrize("lie, result", [
    ({"issuer": "https://another.example"}, "wrong_issuer"),
    ({"jwks_uri": "http://192.0.2.1/keys"}, "bad_url"),
    ({"jwks_uri": "file:///etc/passwd"}, "bad_url"),
    ({"jwks_uri": None}, "bad_url"),
])
def test_a_discovery_document_that_lies(servers, redis, provider, lie, result):
    provider.key("good")
    provider.answers["/.well-known/openid-configuration"] = Answer(provider.discovery(**lie))
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, *QUICK, secret=None)
    eventually(lambda: results(gateway).get(result), "it is refused")
    assert fetched(gateway) == [] and "/keys" not in provider.asked
    assert gateway.metrics()["sluice_key_sets_missing"] == 1


def test_a_server_starts_without_its_provider_and_has_the_keys_when_it_comes(servers, redis, provider):
    late = provider.key("late")
    provider.stop()
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, *QUICK, secret=None)
    eventually(lambda: results(gateway).get("unreachable"), "nobody is there")
    assert health(gateway) == "failing"
    provider.start(provider.port)
    eventually(lambda: kids(gateway) == ["late"], "the set is there", 60)
    eventually(lambda: health(gateway) == "ok", "all is well")
    gateway.stop()
    provider.stop()
    again = servers.gateway(redis, "--jwt-issuer", provider.issuer, *QUICK, secret=None, data_dir=gateway.data_dir)
    assert is_good(again, token(provider, late)), "the last good set is on the disk"
    assert "without jwt-audience" in again.log()


def test_https_by_authorities_of_a_file(servers, redis, tmp_path):
    provider = Provider(tmp_path, Certificate(tmp_path))
    servers.programs.append(provider)
    provider.key("secure")
    options = "--jwt-issuer", provider.issuer, *QUICK
    stranger = servers.gateway(redis, *options, secret=None)
    eventually(lambda: results(stranger).get("unreachable"), "nobody vouches for it")
    assert fetched(stranger) == []
    gateway = servers.gateway(redis, *options, "--jwks-ca", provider.certificate.file, secret=None)
    eventually(lambda: kids(gateway) == ["secure"], "the set is there")


def test_rotation_by_the_age_that_the_answer_has(servers, redis, provider):
    provider.key("first")
    provider.cache_control = "public, max-age=0"
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, "--jwks-url", provider.url(), *QUICK)
    eventually(lambda: kids(gateway) == ["first"], "the set is there")
    provider.key("second")
    eventually(lambda: kids(gateway) == ["first", "second"], "the new one is there, too")
    provider.remove("first")
    eventually(lambda: kids(gateway) == ["second"], "and the old one is gone")
    assert 'event=keys_changed issuer="' in gateway.log()


def test_who_fetches_is_started_again_and_reads_new_settings(servers, redis, provider):
    provider.key("first")
    config = servers.folder / "sluiced.conf"
    config.write_text("")
    gateway = servers.gateway(redis, "--config", config)
    assert fetcher(gateway) is None
    config.write_text(f"jwt-issuer = {provider.issuer}\njwks-url = {provider.url()}\n")
    os.kill(gateway.pid, signal.SIGHUP)
    eventually(lambda: kids(gateway) == ["first"], "it is fetched from now on")
    os.kill(eventually(lambda: fetcher(gateway), "a process fetches"), signal.SIGKILL)
    eventually(lambda: gateway.metrics()["sluice_key_fetcher_restarts_total"] == 1, "it died")
    eventually(lambda: len(provider.asked) >= 2, "another asks again")
    config.write_text("")
    os.kill(gateway.pid, signal.SIGHUP)
    eventually(lambda: fetcher(gateway) is None, "nothing is fetched any more")
    assert gateway.metrics()["sluice_key_fetcher_restarts_total"] == 1


@pytest.mark.parametrize("options, sentence", [
    (("--jwks-url", "https://idp.example/keys"), "--jwks-url: needs jwt-issuer too"),
    (("--jwks-url", "http://idp.example/keys"), "http is for this machine only"),
    (("--jwks-url", "ftp://idp.example/keys"), "not a URL that begins with https://"),
    (("--jwks-url", "https://user:word@idp.example/keys"), "a URL with a user in it"),
    (("--jwks-refresh-min", "2h", "--jwks-refresh-max", "1h"), "more than jwks-refresh-max"),
])
def test_settings_that_are_refused(servers, options, sentence):
    gateway = Gateway(servers.folder / "refused", "redis://127.0.0.1:1", *options)
    gateway.launch()
    assert gateway.process.wait(20) == 1
    assert sentence in gateway.log()
    gateway.process = None


FIREHOSE = "/v1/stream/firehose"


def token(provider, pair, **claims):
    return pair.token(header={"kid": pair.private_file.stem},
                      **{"iss": provider.issuer, "sub": "42", "scope": "stream:firehose", **claims})


def says(gateway, token):
    """What a token gets: past it a request is refused with 400."""
    return gateway.get(FIREHOSE + "?since=never", {"Authorization": f"Bearer {token}"})


def is_good(gateway, token, times=1):
    return all(says(gateway, token).status == 400 for _ in range(times))


def test_a_key_that_nobody_knows_is_fetched_at_once_but_not_too_often(servers, redis, provider):
    first = provider.key("first")
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, "--jwks-again", "1h", secret=None, workers=2)
    eventually(lambda: is_good(gateway, token(provider, first), 8), "all workers know the key")
    before = len(provider.asked)
    second = provider.key("second")
    assert says(gateway, token(provider, second)).json["error"]["code"] == "invalid_token"
    for number in range(20):
        assert says(gateway, second.token(header={"kid": f"none-{number}"}, iss=provider.issuer)).status == 401
    assert len(provider.asked) == before, "an hour is not over"
    gateway.stop()
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, "--jwks-again", "100ms", secret=None, workers=2)
    eventually(lambda: is_good(gateway, token(provider, second), 8), "the keys are there")
    third = provider.key("third")
    eventually(lambda: is_good(gateway, token(provider, third), 8), "the third was fetched, for it was asked for")
    assert says(gateway, token(provider, third, iss="https://another.example")).status == 401


def test_no_key_yet_is_our_fault(servers, redis, provider):
    late = provider.key("late")
    provider.answers["/keys"] = Answer("{}", 503)
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, *QUICK, secret=None)
    eventually(lambda: results(gateway).get("bad_status"), "the provider has no keys")
    answer = says(gateway, token(provider, late))
    assert answer.status == 503 and answer.json["error"]["code"] == "keys_unavailable"
    assert int(answer.headers["retry-after"]) > 0
    assert says(gateway, token(provider, late, iss="https://another.example")).status == 401
    assert gateway.get("/readyz").status == 200
    provider.answers.clear()
    eventually(lambda: is_good(gateway, token(provider, late)), "the keys are there")


def test_streams_end_when_their_key_is_gone_for_good(servers, redis, provider):
    old, new = provider.key("old"), provider.key("new")
    provider.cache_control = "max-age=0"
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, *QUICK, "--keys-removed-after", "1s",
                              secret=None, workers=2)
    eventually(lambda: is_good(gateway, token(provider, old), 8), "all workers know the keys")
    ending = [gateway.stream(FIREHOSE, wire, token=token(provider, old)) for wire in ("ndjson", "sse", "websocket")]
    staying = gateway.stream(FIREHOSE, token=token(provider, new))
    for bad in (Answer({"keys": []}), Answer(None), Answer({"keys": []})):
        provider.answers["/keys"] = bad
        before = sum(results(gateway).values())
        eventually(lambda: sum(results(gateway).values()) > before, "a bad answer")
    redis.publish(events.dump(events.post(1, "to all")))
    for stream in (*ending, staying):
        assert stream.next()["id"] == "1"
    provider.remove("old")
    provider.answers.clear()
    provider.is_ending.set()
    for stream in ending:
        assert stream.next(seconds=60)["code"] == "token_revoked"
    redis.publish(events.dump(events.post(2, "to who stays")))
    assert staying.next()["id"] == "2"
    assert says(gateway, token(provider, old)).status == 401
    assert gateway.metrics()['sluice_disconnects_total{code="token_revoked"}'] == 3


def test_streams_of_a_removed_key_do_not_end_all_at_once(servers, redis, provider):
    """Otherwise all would reconnect at the same moment. They end over 5 seconds."""
    old = provider.key("old")
    provider.key("new")
    provider.cache_control = "max-age=0"
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, *QUICK, "--keys-removed-after", "100ms", secret=None)
    eventually(lambda: is_good(gateway, token(provider, old)), "the keys are there")
    streams = [gateway.stream(FIREHOSE, token=token(provider, old, sub=f"user{number}")) for number in range(40)]
    provider.remove("old")
    for stream in streams:
        assert stream.next(seconds=60)["code"] == "token_revoked"

    def ended():
        return [int(count) for count in re.findall(r"removed_key_streams.* ended=(\d+)", gateway.log())]

    eventually(lambda: sum(ended()) == len(streams), "all ends are logged")
    assert len(ended()) > 4 and max(ended()) < len(streams) / 2


def test_streams_stay_where_the_settings_say_so(servers, redis, provider):
    old = provider.key("old")
    provider.key("new")
    provider.cache_control = "max-age=0"
    gateway = servers.gateway(redis, "--jwt-issuer", provider.issuer, *QUICK, "--keys-removed-after", "100ms",
                              "--keys-removed", "keep", secret=None)
    eventually(lambda: is_good(gateway, token(provider, old)), "the keys are there")
    stream = gateway.stream(FIREHOSE, token=token(provider, old))
    provider.remove("old")
    eventually(lambda: says(gateway, token(provider, old)).status == 401, "the key is not there any more")
    good = results(gateway)["good"]
    eventually(lambda: says(gateway, token(provider, old)) and results(gateway)["good"] > good + 3, "it is still not")
    redis.publish(events.dump(events.post(1, "to who stays")))
    assert stream.next()["id"] == "1"


def test_issuers_of_a_file_are_fetched_each_for_itself(servers, redis, tmp_path):
    providers = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        providers.append(Provider(tmp_path / name))
    servers.programs += providers
    keys = [provider.key("one") for provider in providers]
    listed = tmp_path / "issuers.json"
    listed.write_text(json.dumps([
        {"issuer": providers[0].issuer, "audience": "sluice", "discovery": True},
        {"issuer": providers[1].issuer, "audience": "sluice", "jwks_url": providers[1].url()}]))
    gateway = servers.gateway(redis, "--issuers-file", listed)  # and a secret
    for provider, pair in zip(providers, keys):
        eventually(lambda: is_good(gateway, token(provider, pair, aud="sluice")), "its keys are there")
        assert says(gateway, token(provider, pair)).status == 401, "no audience"
    for provider, pair in zip(providers, reversed(keys)):
        assert says(gateway, token(provider, pair, aud="sluice")).status == 401, "a key of the other one"
    gateway.stream(FIREHOSE).close()  # with the secret
    assert len(fetched(gateway)) == 2 and gateway.metrics()["sluice_key_sets"] == 2
