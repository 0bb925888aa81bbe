"""Creates JWTs, valid and invalid: HMAC with Python's hmac, signatures with the openssl program."""

import base64
import hashlib
import hmac
import json
import subprocess
import time

_HASH = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _part(value):
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return base64url(text.encode())


def _claims(ttl, claims):
    """`exp` is in an hour by default; a claim that is None is left out."""
    full = {"exp": int(time.time()) + ttl}
    full.update(claims)
    return {name: value for name, value in full.items() if value is not None}


def hmac_token(secret, header, claims):
    """Header and claims are objects, or text that no JSON library would write."""
    signed = f"{_part(header)}.{_part(claims)}"
    algorithm = header.get("alg", "HS256") if isinstance(header, dict) else "HS256"
    key = secret if isinstance(secret, bytes) else secret.encode()
    mac = hmac.new(key, signed.encode(), _HASH.get(algorithm, hashlib.sha256))
    return f"{signed}.{base64url(mac.digest())}"


def hs256_token(secret, ttl=3600, alg="HS256", **claims):
    return hmac_token(secret, {"alg": alg, "typ": "JWT"}, _claims(ttl, claims))


def unsigned_token(**claims):
    return f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(_claims(3600, claims))}."


class KeyPair:
    """An RSA or P-256 key pair created with openssl: .public_file, and tokens signed with it."""

    def __init__(self, folder, kind, name="key"):
        self.algorithm = {"rsa": "RS256", "ec": "ES256"}[kind]
        self.private_file = folder / f"{name}.pem"
        self.public_file = folder / f"{name}.pub.pem"
        options = {"rsa": ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
                   "ec": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]}[kind]
        _openssl("genpkey", "-algorithm", *options, "-out", str(self.private_file))
        _openssl("pkey", "-in", str(self.private_file), "-pubout", "-out", str(self.public_file))

    def token(self, ttl=3600, header=None, **claims):
        signed = (_part({"alg": self.algorithm, "typ": "JWT", **(header or {})}) + "." +
                  _part(_claims(ttl, claims)))
        signature = _openssl("dgst", "-sha256", "-sign", str(self.private_file),
                             given=signed.encode())
        if self.algorithm == "ES256":
            signature = _der_to_raw(signature)
        return f"{signed}.{base64url(signature)}"


class EdKey:
    """An Ed25519 key pair: .jwk() for a set, and tokens signed with it."""

    def __init__(self, folder, kid):
        self.kid = kid
        self._file = folder / f"{kid}.key"
        _openssl("genpkey", "-algorithm", "ED25519", "-out", str(self._file))
        self._public = _openssl("pkey", "-in", str(self._file), "-pubout", "-outform", "DER")[-32:]

    def jwk(self, **members):
        return {"kty": "OKP", "crv": "Ed25519", "x": base64url(self._public), "kid": self.kid, **members}

    def token(self, ttl=3600, **claims):
        signed = f"{_part({'alg': 'EdDSA', 'kid': self.kid})}.{_part(_claims(ttl, claims))}"
        text = self._file.with_suffix(".text")
        text.write_text(signed)
        return f"{signed}.{base64url(_openssl('pkeyutl', '-sign', '-rawin', '-inkey', str(self._file), '-in', str(text)))}"


def write_set(file, *keys):
    """Replaces the file atomically with a set of these keys."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"keys": [key if isinstance(key, dict) else key.jwk() for key in keys]}))
    new.rename(file)


def _openssl(*arguments, given=None):
    return subprocess.run(["openssl", *arguments], input=given, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout


def _der_to_raw(der):
    """SEQUENCE of two INTEGERs -> the two numbers, 32 bytes each (RFC 7518, section 3.4)."""
    numbers, at = [], 2 if der[1] < 0x80 else 3
    for _ in range(2):
        assert der[at] == 2
        size = der[at + 1]
        numbers.append(int.from_bytes(der[at + 2:at + 2 + size], "big").to_bytes(32, "big"))
        at += 2 + size
    return b"".join(numbers)
