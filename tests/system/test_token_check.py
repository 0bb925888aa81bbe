"""`sluice token check`: how a server with these settings would judge a token, in words."""

import json
import time

import pytest

from harness import programs
from harness.cli import Cli
from harness.gateway import SECRET
from harness.tokens import EdKey, hs256_token, write_set


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "jwt.secret"
    file.write_text(SECRET)
    file.chmod(0o600)
    return file


def check(*arguments, status, given="", **env):
    cli = Cli()
    cli.environment.update(env)
    return cli.run("token", "check", "--sluiced", programs.sluiced(), *arguments, status=status, given=given)


def test_each_verdict_says_why(secret):
    def says(token, *more, status=1):
        return check("--jwt-secret-file", secret, *more, token, status=status)
    good = says(hs256_token(SECRET, sub="42", scope="read stream:home", jti="a-1"), status=0)
    for words in ("good", 'subject: "42"', "scopes: stream:home read", 'key: "jwt"', 'jti: "a-1"', "ends: 20"):
        assert words in good
    assert "none, so it permits nothing" in says(hs256_token(SECRET, scope="raed"), status=0)
    for token, *words in (
            ("x", "malformed", "three parts"),
            ("x" * 9000, "malformed", "9000 bytes"),
            (hs256_token(SECRET, alg="none"), "wrong_algorithm", 'alg: "none"', '"jwt": HS256 HS384 HS512'),
            (hs256_token("another secret"), "bad_signature", "not that of the key"),
            (hs256_token(SECRET, ttl=-7200), "expired", "ago", "leeway: 60 s"),
            (hs256_token(SECRET, nbf=int(time.time()) + 600), "not_yet_valid", "nbf: 20", "in "),
            (hs256_token(SECRET, sub=2 ** 53), "bad_claims", "a whole number below 2^53"),
            (hs256_token(SECRET, lim={"trak": 1}), "bad_claims", "lim has an unknown limit")):
        said = says(token)
        assert said.startswith(f"refused ({words[0]}): ")
        assert not [word for word in words if word not in said], said
    said = says(hs256_token(SECRET, aud=["\u001b[2J", "b"]), "--jwt-audience", "sluice")
    assert "wrong_audience" in said and r'["\u001B[2J","b"]' in said and 'wanted: "sluice"' in said
    said = says(hs256_token(SECRET, sub="42", user="43"), "--jwt-subject-claim", "user", status=0)
    assert 'subject: "43"' in said
    said = says(hs256_token(SECRET, iss="https://b"), "--jwt-issuer", "https://a")
    assert "wrong_issuer" in said and 'iss: "https://b"' in said and 'wanted: "https://a"' in said


def test_token_and_settings_come_as_for_the_server(secret, tmp_path):
    token = hs256_token(SECRET, sub="42", scope="read")
    config = tmp_path / "sluiced.conf"
    config.write_text(f"jwt-secret-file = {secret}\n")
    assert "good" in check("--config", config, "-", status=0, given=f" {token}\n")
    assert "good" in check(status=0, SLUICE_TOKEN=token, SLUICE_JWT_SECRET_FILE=str(secret))
    assert "keys of the options: none" in check(token, status=1)
    cli = Cli()
    assert not cli.run("token", "check", "--sluiced", programs.sluiced(), "--jwt-secret-file", tmp_path / "no", token, status=1)
    assert "jwt-secret-file" in cli.done.stderr and "No such file" in cli.done.stderr
    cli.run("token", "check", status=2)
    assert "give a TOKEN" in cli.done.stderr
    cli.run("token", "check", "--sluiced", "/nowhere", token, status=1)
    assert "no program '/nowhere'" in cli.done.stderr


def test_keys_of_the_issuer_are_named(tmp_path):
    keys = [EdKey(tmp_path, name) for name in ("first", "second")]
    issuers = []
    for key in keys:
        write_set(tmp_path / f"{key.kid}.json", key)
        issuers.append({"issuer": f"https://{key.kid}", "audience": "sluice", "jwks_file": str(tmp_path / f"{key.kid}.json")})
    issuers.append({"issuer": "https://third", "audience": "sluice", "jwks_url": "https://third/keys"})
    listed = tmp_path / "issuers.json"
    listed.write_text(json.dumps(issuers))

    def says(token, status=1):
        return check("--issuers-file", listed, "--data-dir", tmp_path, token, status=status)
    assert 'issuer: "https://first"' in says(keys[0].token(iss="https://first", aud="sluice"), status=0)
    said = says(keys[0].token(iss="https://second", aud="sluice"))
    assert "unknown_key" in said and 'kid: "first"' in said and '"second": EdDSA Ed25519' in said
    assert '"first": ' not in said
    assert "none has been fetched yet" in says(keys[0].token(iss="https://third", aud="sluice"))
