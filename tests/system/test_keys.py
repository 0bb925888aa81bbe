"""Key sets and issuers: watched files, a list that SIGHUP reloads, remembered tokens."""

import json
import os
import signal
import subprocess

import pytest

from harness import programs
from harness.tokens import EdKey, write_set
from harness.waiting import eventually

PATH = "/v1/stream/firehose?since=never"  # 400 if the token is accepted


@pytest.fixture
def keys(tmp_path):
    return [EdKey(tmp_path, name) for name in ("first", "second")]


def says(gateway, token):
    answer = gateway.get(PATH, {"Authorization": f"Bearer {token}"})
    if answer.status != 401:
        return "good"
    return answer.headers["www-authenticate"].partition("error_description=")[2].strip('"') or "invalid"


def test_set_is_watched_and_a_bad_one_changes_nothing(servers, redis, keys, tmp_path):
    first, second = keys
    file = tmp_path / "keys.json"
    write_set(file, first, {"kty": "oct", "k": "AAAA"})
    gateway = servers.gateway(redis, "--jwks-file", file, workers=2)
    tokens = [key.token(sub="1", scope="stream:firehose") for key in keys]

    def are(*expected):
        return lambda: all(says(gateway, token) == word for _ in range(4) for token, word in zip(tokens, expected))

    def reads(result):
        return gateway.metrics()[f'sluice_key_set_reads_total{{result="{result}"}}']
    assert are("good", "invalid")()
    good, bad = reads("good"), reads("bad")
    write_set(file, first, second)
    eventually(lambda: reads("good") >= good + 2, "all workers have read the second key")
    eventually(are("good", "good"), "and use it")
    for number, text in enumerate(("{", '{"keys":[]}', '{"keys":[{"kty":"oct","k":"AAAA"}]}'), 1):
        file.write_text(text)
        eventually(lambda: reads("bad") >= bad + 2 * number, f"all workers have read {text}")
    file.unlink()
    eventually(lambda: "No such file" in gateway.log(), "the missing file is told")
    assert are("good", "good")()
    assert "event=key_set_bad" in gateway.log() and "keys_kept=2" in gateway.log()
    write_set(file, second)
    eventually(are("invalid", "good"), "the first key is gone, remembered or not")


def issuer(name, file, **members):
    return {"issuer": name, "audience": "sluice", "jwks_file": str(file), **members}


def test_issuers_stand_side_by_side_and_are_read_anew(servers, redis, keys, tmp_path):
    first, second = keys
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, key in zip(files, keys):
        write_set(file, key)
    listed = tmp_path / "issuers.json"
    listed.write_text(json.dumps([issuer("https://a", files[0], roles={"fan": "stream:firehose"}),
                                  issuer("https://b", files[1], leeway=0)]))
    gateway = servers.gateway(redis, "--issuers-file", listed)
    good = {"aud": "sluice", "sub": "1", "scope": "stream:firehose"}
    a = first.token(iss="https://a", aud="sluice", sub="1", roles=["fan"])
    b = second.token(iss="https://b", **good)
    assert says(gateway, a) == says(gateway, b) == "good"
    gateway.stream("/v1/stream/firehose", token=a).close()
    assert says(gateway, first.token(iss="https://b", **good)) == "invalid"
    assert says(gateway, second.token(iss="https://a", **good)) == "invalid"
    assert says(gateway, second.token(iss="https://c", **good)) == "another issuer"
    assert says(gateway, second.token(iss="https://b", **{**good, "aud": "other"})) == "another audience"
    assert says(gateway, second.token(ttl=-30, iss="https://b", **good)) == "expired"
    assert says(gateway, first.token(ttl=-30, iss="https://a", **good)) == "good"
    assert says(gateway, first.token(iss="https://a", nbf=4102444800, **good)) == "not valid yet"
    assert says(gateway, first.token(iss="https://a", aud="sluice", sub=True)) == "bad claims"
    listed.write_text(json.dumps([issuer("https://a", files[0], leway=3)]))
    os.kill(gateway.pid, signal.SIGHUP)
    eventually(lambda: "[0].leway: there is no such member; is 'leeway' meant?" in gateway.log(), "it is refused")
    assert says(gateway, b) == "good"
    listed.write_text(json.dumps([issuer("https://a", files[0])]))
    os.kill(gateway.pid, signal.SIGHUP)
    eventually(lambda: says(gateway, b) != "good", "the second issuer is gone")
    assert says(gateway, a) == "good"
    assert gateway.get("/v1/stream/firehose", {"Authorization": f"Bearer {a}"}).status == 403  # its roles grant nothing now


def test_bad_files_are_told_before_anything_starts(tmp_path):
    listed, keys = tmp_path / "issuers.json", tmp_path / "keys.json"
    for option, file, text, why in (
            ("--jwks-file", keys, '{"keys":[]}', "the set is empty"),
            ("--jwks-file", keys, '{"keys":7}', "not an object with a list of keys"),
            ("--issuers-file", listed, "{}", "it is not a list of issuers"),
            ("--issuers-file", listed, json.dumps([issuer("https://a", tmp_path / "no.json")]), "no.json")):
        file.write_text(text)
        refusal = subprocess.run([programs.sluiced(), "--data-dir", tmp_path / "data", option, file], timeout=60,
                                 text=True, capture_output=True, check=False).stderr
        assert option[2:] in refusal and str(file.parent) in refusal and why in refusal


def test_who_comes_back_costs_no_signature(servers, redis, keys, tmp_path):
    file = tmp_path / "keys.json"
    write_set(file, keys[0])
    gateway = servers.gateway(redis, "--jwks-file", file, workers=1)
    token = keys[0].token(sub="1", scope="stream:firehose")
    by = {name: f'sluice_tokens_accepted_total{{by="{name}"}}' for name in ("signature", "memory")}
    before = {name: gateway.metrics()[family] for name, family in by.items()}
    for _ in range(5):
        assert says(gateway, token) == "good"
    eventually(lambda: gateway.metrics()[by["memory"]] == before["memory"] + 4, "four are remembered")
    assert gateway.metrics()[by["signature"]] == before["signature"] + 1
    os.kill(gateway.pid, signal.SIGHUP)
    eventually(lambda: "event=worker_reloaded" in gateway.log(), "the reload")
    assert says(gateway, token) == "good"
    assert gateway.metrics()[by["signature"]] == before["signature"] + 2
