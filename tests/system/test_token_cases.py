"""Tokens as attackers and unusual libraries create them, each with the result: the rules are those of RFC 7515, 7518,
7519 and 8725, and stricter where docs/auth.md says so."""

import hashlib
import hmac
import json

import pytest

from harness.gateway import SECRET
from harness.tokens import KeyPair, base64url, hmac_token

GOOD, BAD = True, False
LATER = 4102444800
HEADER = '{"alg":"HS256"}'
CLAIMS = '{"sub":"42","scope":"read","exp":4102444800}'
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def signed(header=HEADER, claims=CLAIMS, key=SECRET.encode(), digest=hashlib.sha256):
    """Signs texts or bytes unchanged, whatever they contain."""
    parts = [base64url(part if isinstance(part, bytes) else part.encode()) for part in (header, claims)]
    return seal(".".join(parts), key, digest)


def seal(text, key=SECRET.encode(), digest=hashlib.sha256):
    return f"{text}.{base64url(hmac.new(key, text.encode(), digest).digest())}"


def claims(**changes):
    return json.dumps({"sub": "42", "scope": "read", "exp": LATER, **changes})


def claim(name, text):
    """The claims with one whose value is `text`, which need not be JSON."""
    values = {"sub": '"42"', "scope": '"read"', "exp": str(LATER), name: text}
    return signed(claims="{" + ",".join(f'"{key}":{value}' for key, value in values.items()) + "}")


def header(text):
    """A header with `text` after alg."""
    return signed(header='{"alg":"HS256",' + text + "}")


def loose_bits(part):
    """The same bytes for a decoder that ignores unused bits."""
    unused = {2: 4, 3: 2}[len(part) % 4]
    return part[:-1] + ALPHABET[ALPHABET.index(part[-1]) | (1 << unused) - 1]


def cases_of_form():
    head, body, signature = signed().split(".")
    yield "as it should be", signed(), GOOD
    yield "HS384", signed('{"alg":"HS384"}', digest=hashlib.sha384), GOOD
    yield "HS512", signed('{"alg":"HS512"}', digest=hashlib.sha512), GOOD
    yield "JSON with white space in it", signed(' {\n"alg" :\t"HS256" } ', f"\r\n{CLAIMS} "), GOOD
    yield "JSON with escapes in names", signed(header='{"\\u0061lg":"HS256"}'), GOOD
    yield "empty", ".", BAD
    yield "dots", "..", BAD
    yield "five parts, as an encrypted one has", f"{head}.{body}.{signature}.{body}.{signature}", BAD
    yield "a fourth part that is empty", f"{signed()}.", BAD
    yield "an empty part in front", f".{signed()}", BAD
    yield "no signature", f"{head}.{body}.", BAD
    yield "no signature and no dot", f"{head}.{body}", BAD
    yield "no claims", seal(f"{head}."), BAD
    yield "no header", seal(f".{body}"), BAD
    yield "a signature cut by a byte", f"{head}.{body}.{signature[:-2]}", BAD
    yield "a signature with a byte behind it", f"{head}.{body}.{signature}AA", BAD
    yield "half a signature", f"{head}.{body}.{signature[:len(signature) // 2]}", BAD
    yield "a signature of zeros", f"{head}.{body}.{base64url(bytes(32))}", BAD
    yield "of SHA-512, cut to the length of SHA-256", \
        f"{head}.{body}." + seal(f"{head}.{body}", digest=hashlib.sha512).split(".")[2][:43], BAD
    yield "signature of other claims", f"{head}.{base64url(claims(sub='43').encode())}.{signature}", BAD
    yield "signature of another header", signed('{"alg":"HS384"}'), BAD
    yield "signature over the bytes, not the text", \
        f"{head}.{body}." + base64url(hmac.new(SECRET.encode(), (HEADER + "." + CLAIMS).encode(),
                                               hashlib.sha256).digest()), BAD
    yield "trailing text", signed() + "x", BAD
    yield "trailing comma and another token", f"{signed()},{signed()}", BAD
    yield "trailing line", signed() + "%0a", BAD
    yield "a serialisation in JSON", json.dumps({"payload": body, "protected": head, "signature": signature}), BAD


def cases_of_base64():
    head, body, signature = signed().split(".")
    for name, sent in (("header", f"{head}%s.{body}"), ("claims", f"{head}.{body}%s")):
        for pad in ("=", "==", "%3D", " ", "!", "*", "~"):
            yield f"{name} with {pad!r} behind", seal(sent % pad.replace("%", "%%")), BAD
        yield f"a letter behind the {name}, which no bytes make", \
            seal(sent % ("A" * ((5 - len(sent.split(".")[name == "claims"]) + 2) % 4 or 1))) + "A", BAD
    for pad in ("=", "==", "A", " ", "\t"):
        yield f"signature with {pad!r} behind", f"{head}.{body}.{signature}{pad}", \
            GOOD if pad.isspace() else BAD  # white space around a header's value does not belong to it
    yield "signature with other loose bits", f"{head}.{body}.{loose_bits(signature)}", BAD
    odd = claims(sub="4")
    odd += " " * (-len(odd) % 3 + 1)
    yield "claims with loose bits", seal(f"{head}.{loose_bits(base64url(odd.encode()))}"), BAD
    yield "the same without", seal(f"{head}.{base64url(odd.encode())}"), GOOD
    wide = claims(sub="4", x="\u00ff\u00fe??>>~~\u0fff")
    other = base64url(json.dumps(json.loads(wide), ensure_ascii=False).encode())
    assert set("-_") & set(other)
    yield "letters - and _", seal(f"{head}.{other}"), GOOD
    yield "letters + and /", seal(f"{head}.{other.replace('-', '+').replace('_', '/')}"), BAD
    yield "a line cut in two", seal(f"{head}.{body[:20]} {body[20:]}"), BAD
    yield "a letter that is no ASCII", seal(f"{head}.{body}\u00e9"), BAD


def cases_of_header(rsa, ec):
    for name in ("none", "None", "NONE", "nOnE", "", "HS", "HS1", "HS255", "HS256 ", " HS256", "hs256", "Hs256",
                 "HS256\\u0000", "SHA256", "PS256", "RS384", "ES384", "ES512", "EdDSA", "A256KW", "dir"):
        yield f"alg {name!r}", signed(f'{{"alg":"{name}"}}'), BAD
    for text in ("null", "true", "256", "[]", '["HS256"]', "{}", '{"HS256":1}'):
        yield f"alg is {text}", signed(f'{{"alg":{text}}}'), BAD
    yield "no alg", signed('{"typ":"JWT"}'), BAD
    yield "ALG", signed('{"ALG":"HS256"}'), BAD
    yield "alg none, without a signature", f'{base64url(b"{}")}.{base64url(CLAIMS.encode())}.', BAD
    yield "alg twice, the same", signed('{"alg":"HS256","alg":"HS256"}'), BAD
    yield "alg twice, none first", signed('{"alg":"none","alg":"HS256"}'), BAD
    yield "alg twice, none last", signed('{"alg":"HS256","alg":"none"}'), BAD
    yield "alg twice, once in other letters of JSON", signed('{"alg":"HS256","\\u0061lg":"none"}'), BAD
    yield "typ twice", header('"typ":"JWT","typ":"JWT"'), BAD
    for text in ("[]", '["exp"]', '["b64"]', '["alg"]', "null", '"exp"', "{}", "true"):
        yield f"crit {text}", header(f'"crit":{text},"exp":1,"b64":true'), BAD
    yield "b64 false, not critical: nobody has to know it", header('"b64":false'), GOOD
    yield "b64 false, and so it is", seal(f'{base64url(HEADER[:-1].encode() + b",")}' + '"b64":false}.' + CLAIMS), BAD
    yield "b64 false and critical", header('"b64":false,"crit":["b64"]'), BAD
    yield "zip", header('"zip":"DEF"'), GOOD  # it is for encrypted ones; the claims are not compressed
    yield "a key of its own", header('"jwk":{"kty":"oct","k":"AAAA"}'), GOOD  # ignored:
    yield "a key of its own that signed it", signed('{"alg":"HS256","jwk":{"kty":"oct","k":"AAAA"}}', key=bytes(3)), BAD
    for name in ("jku", "x5u"):
        yield f"{name}: nobody asks there", header(f'"{name}":"http://127.0.0.1:9/keys"'), GOOD
    yield "x5c: nobody reads it", header('"x5c":["AAAA"]'), GOOD
    for text in ("null", "1", "true", "[]", "{}", '["hs"]'):
        yield f"kid is {text}", header(f'"kid":{text}'), BAD
    for text in ("", "unknown", "../../dev/null", "/dev/null", "' OR 1=1 --", "x" * 3000, "\\u0000", "\\ud800"):
        yield f"kid {text[:20]!r}", header(f'"kid":"{text}"'), BAD
    yield "kid of nobody, signed with the empty text", signed('{"alg":"HS256","kid":"/dev/null"}', key=b""), BAD
    yield "signed with the empty text", signed(key=b""), BAD
    for kind, pair in (("rsa", rsa), ("ec", ec)):
        public = pair.public_file.read_bytes()
        for what, key in (("file", public), ("file without its newline", public.strip()),
                          ("file with CRLF", public.replace(b"\n", b"\r\n")),
                          ("base64", b"".join(public.split(b"\n")[1:-2])), ("path", str(pair.public_file).encode())):
            for alg, digest in (("HS256", hashlib.sha256), ("HS512", hashlib.sha512)):
                yield f"{alg} keyed with the public {kind} key: {what}", \
                    hmac_token(key, {"alg": alg}, CLAIMS), BAD
        good = pair.token(sub="42", scope="read")
        head, body, signature = good.split(".")
        yield f"{kind}", good, GOOD
        yield f"{kind}: a bit of the claims", f"{head}.{body[:-1]}{'A' if body[-1] != 'A' else 'Q'}.{signature}", BAD
        yield f"{kind}: no signature", f"{head}.{body}.", BAD
        yield f"{kind}: a byte less", f"{head}.{body}.{signature[:-2]}", BAD
        yield f"{kind}: zeros", f"{head}.{body}.{base64url(bytes(64 if kind == 'ec' else 256))}", BAD
        yield f"{kind}: a zero in front", f"{head}.{body}.{base64url(bytes(3))}{signature}", BAD
        yield f"{kind}: signed with the secret", seal(f"{head}.{body}"), BAD
        for alg in ("none", "HS256", "PS256", "ES256" if kind == "rsa" else "RS256"):
            yield f"{kind}: its header says {alg}", pair.token(header={"alg": alg}, sub="42", scope="read"), BAD
    raw = bytes(31) + b"\x01"
    for what, r, s in (("r is 0", bytes(32), raw), ("s is 0", raw, bytes(32)), ("r and s are 1", raw, raw),
                       ("r and s are ff..", b"\xff" * 32, b"\xff" * 32)):
        yield f"ec: {what}", f"{head}.{body}.{base64url(r + s)}", BAD
    yield "ec: as DER", f"{head}.{body}." + base64url(bytes.fromhex("3006020101020101")), BAD


def cases_of_json():
    for what, text in (("a list", f"[{HEADER}]"), ("a text", '"HS256"'), ("null", "null"), ("nothing", ""),
                       ("cut", HEADER[:-1]), ("two of them", HEADER * 2), ("a comma at its end", '{"alg":"HS256",}'),
                       ("comments", '{"alg":"HS256"/**/}'), ("single quotes", "{'alg':'HS256'}"),
                       ("a byte order mark", "\ufeff" + HEADER)):
        yield f"header is {what}", signed(header=text), BAD
    yield "header is UTF-16", signed(header=HEADER.encode("utf-16")), BAD
    for what, text in (("a list", f"[{CLAIMS}]"), ("a text", '"42"'), ("null", "null"), ("nothing", ""),
                       ("cut", CLAIMS[:-1]), ("two of them", CLAIMS * 2), ("text behind it", CLAIMS + "x"),
                       ("a zero byte behind it", CLAIMS + "\0"), ("a token", signed()),
                       ("a byte order mark", "\ufeff" + CLAIMS), ("NaN", '{"exp":NaN}'), ("hex", '{"exp":0xffffffffff}')):
        yield f"claims are {what}", signed(claims=text), BAD
    yield "claims are no UTF-8", signed(claims=CLAIMS.encode().replace(b"42", b"4\xff")), BAD
    yield "claims have an overlong letter", signed(claims=CLAIMS.encode().replace(b"42", b"4\xc0\xb2")), BAD
    yield "claims have half a surrogate pair", claim("x", '"\\ud800"'), BAD
    yield "exp twice, the first is over", signed(claims='{"exp":1,"sub":"42","exp":4102444800}'), BAD
    yield "exp twice, the second is over", signed(claims='{"exp":4102444800,"sub":"42","exp":1}'), BAD
    yield "sub twice", signed(claims='{"exp":4102444800,"sub":"42","sub":"1"}'), BAD
    yield "sub twice, once in other letters of JSON", \
        signed(claims='{"exp":4102444800,"sub":"42","s\\u0075b":"1"}'), BAD
    yield "a member twice deep inside", claim("x", '{"y":{"z":1,"z":2}}'), BAD
    for depth, verdict in ((100, GOOD), (2500, BAD)):
        yield f"lists, {depth} deep", claim("x", "[" * depth + "]" * depth), verdict
    yield "objects, 1000 deep", claim("x", '{"":' * 1000 + "1" + "}" * 1000), GOOD
    yield "as long as may be", signed(claims=claims(x="x" * 5900)), GOOD
    yield "longer", signed(claims=claims(x="x" * 6200)), BAD


def cases_of_claims():
    for text in ('"4102444800"', '""', "null", "true", "[4102444800]", "{}", '"never"', "-1", "-0", "0", "0.0", "1",
                 "-4102444800", "-1e300", "1e400", "-1e400", "99999999999999999999", "9223372036854775808", "04102444800", "+4102444800",
                 "4102444800.", ".5", "4102444800e", "1/1"):
        yield f"exp is {text}", claim("exp", text), BAD
    for text in ("4102444800.5", "4.1024448e9", "41024448E+2", "9223372036854775807", "1e15", "1e300", "253402300800"):
        yield f"exp is {text}", claim("exp", text), GOOD
    yield "no exp", signed(claims='{"sub":"42","scope":"read"}'), BAD
    yield "Exp", signed(claims='{"sub":"42","Exp":4102444800}'), BAD
    for text in ('"0"', "null", "true", "[]", "4102444800", "4102444800.5", "1e300", "9223372036854775807"):
        yield f"nbf is {text}", claim("nbf", text), BAD
    for text in ("0", "-1", "1.5", "-1e300"):
        yield f"nbf is {text}", claim("nbf", text), GOOD
    yield "iat is in the future, and nobody asked", claim("iat", "4102444800"), GOOD
    for text in ("9007199254740992", "-9007199254740992", "null", "true", '["42"]', "{}", '""', '"' + "x" * 65 + '"',
                 '"4\\u00002"', "4.2", "42.0", "42e0"):
        yield f"sub is {text[:20]}", claim("sub", text), BAD
    for text in ("42", "-1", "9007199254740991", '"' + "x" * 64 + '"', '"' + "\u00e9" * 32 + '"', '"a b"', '"\\u202e"',
                 '"\\n"'):
        yield f"sub is {text[:20]}", claim("sub", text), GOOD
    for name in ("scope", "scp"):
        for text in ('["read",1]', '[["read"]]', "null", "1", "true", "{}", '"read\\u0000"'):
            yield f"{name} is {text}", claim(name, text), BAD
        for text in ('"read"', '"read read"', '"  read  x"', '"x" ', '""', '["read"]', '["read","x write"]', "[]"):
            yield f"{name} is {text}", claim(name, text), GOOD
    for text in ("null", "[]", "5", '{"track":-1}', '{"track":4294967296}', '{"track":1.0}', '{"track":"1"}',
                 '{"sample":101}', '{"sample":-1}', '{"sample":"1"}', '{"unknown":1}', '{"Track":1}', '{"track":1e1}'):
        yield f"lim is {text}", claim("lim", text), BAD
    for text in ("{}", '{"track":0}', '{"track":4294967295}', '{"sample":0.5}', '{"sample":100}'):
        yield f"lim is {text}", claim("lim", text), GOOD
    yield "aud of somebody else, and nobody asked", claim("aud", '"other"'), GOOD
    yield "a claim that nobody knows", claim("admin", "true"), GOOD


def cases_of_audience():
    for text in ('"sluice"', '["sluice"]', '["other","sluice"]', '[1,null,"sluice"]'):
        yield f"aud is {text}", claim("aud", text), GOOD
    for text in ('"Sluice"', '"sluice "', '"sluicex"', '"sluic"', '""', "[]", '["other"]', '[["sluice"]]', "null", "1",
                 '{"sluice":1}', '"sluice\\u0000"', '"other sluice"'):
        yield f"aud is {text}", claim("aud", text), BAD
    yield "no aud", signed(), BAD


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return [KeyPair(folder, kind, kind) for kind in ("rsa", "ec")]


@pytest.fixture(scope="module")
def gateway(module_servers, redis, keys):
    return module_servers.gateway(redis, *(part for key in keys for part in ("--jwt-public-key", key.public_file)))


def verdict(connection, token):
    """Whether the token was accepted. One that cannot be a header's value makes the request invalid."""
    answer = connection.request("GET", "/v1/stream/firehose?since=never",
                                headers={"Authorization": f"Bearer {token}".encode().decode("latin-1")})
    if answer.status == 401:
        assert answer.error["code"] in ("invalid_token", "token_expired")
        return BAD
    assert answer.status in (400, 403), answer
    return answer.error["code"] != "bad_request" and GOOD


def check(gateway, cases):
    wrong = []
    for name, token, expected in cases:
        with gateway.connect() as connection:
            if verdict(connection, token) != expected:
                wrong.append(f"{name}: {'refused' if expected else 'accepted'}")
    assert not wrong, "\n".join(wrong)
    assert gateway.get("/healthz").status == 200


@pytest.mark.parametrize("cases", [cases_of_form, cases_of_base64, cases_of_json, cases_of_claims],
                         ids=lambda cases: cases.__name__)
def test_each_token_gets_its_verdict(gateway, cases):
    assert len(list(cases())) > 20
    check(gateway, cases())


def test_each_header_gets_its_verdict(gateway, keys):
    check(gateway, cases_of_header(*keys))


def test_each_audience_gets_its_verdict(module_servers, redis):
    check(module_servers.gateway(redis, "--jwt-audience", "sluice"), cases_of_audience())
