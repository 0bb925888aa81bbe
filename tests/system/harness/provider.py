"""An identity provider: an HTTP server with an OpenID discovery document and a key set, controlled by the test."""

import http.server
import json
import ssl
import subprocess
import threading

from .tokens import KeyPair, base64url


def jwk(pair, kid=None, **members):
    """Returns the public half of a KeyPair as a JSON Web Key; its `kid` is by default the name of its file."""
    der = subprocess.run(["openssl", "pkey", "-pubin", "-in", str(pair.public_file), "-outform", "DER"],
                         check=True, capture_output=True).stdout
    key = {"kid": kid or pair.private_file.stem, "use": "sig", "alg": pair.algorithm}
    if pair.algorithm == "ES256":
        key.update(kty="EC", crv="P-256", x=base64url(der[-64:-32]), y=base64url(der[-32:]))
    else:
        text = subprocess.run(["openssl", "rsa", "-pubin", "-in", str(pair.public_file), "-noout", "-modulus"],
                              check=True, capture_output=True, text=True).stdout
        key.update(kty="RSA", n=base64url(bytes.fromhex(text.strip().split("=")[1])), e="AQAB")
    return {**key, **members}


class Answer:
    """The answer for a path. `body` None: the connection stays open without an answer."""

    def __init__(self, body, status=200, type="application/json", **headers):
        self.body = body if body is None or isinstance(body, bytes) else \
            body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.status, self.type, self.headers = status, type, headers


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a connection that is not accepted at once waits a second


class Provider:
    """`answers`: by path; `asked`: the requested paths, in order. `certificate`: it uses https."""

    def __init__(self, folder, certificate=None, port=0):
        self.folder, self.certificate = folder, certificate
        self.answers, self.asked, self.keys = {}, [], []
        self.cache_control = "max-age=86400"
        self.is_ending = threading.Event()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                provider.answer(self)

            def log_message(self, *_):
                pass

        self.handler = Handler
        self.server = None
        self.start(port)

    def start(self, port=0):
        self.server = _Server(("127.0.0.1", port), self.handler)
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate.file, self.certificate.key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    @property
    def issuer(self):
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    def url(self, path="/keys"):
        return self.issuer + path

    def key(self, name, kind="ec", **members):
        """Creates a key pair and publishes it under its name."""
        pair = KeyPair(self.folder, kind, name)
        self.keys.append(jwk(pair, name, **members))
        return pair

    def remove(self, name):
        self.keys = [key for key in self.keys if key["kid"] != name]

    def discovery(self, **members):
        return {"issuer": self.issuer, "jwks_uri": self.url(), **members}

    def answer(self, request):
        self.asked.append(request.path)
        answer = self.answers.get(request.path)
        if not answer and request.path == "/keys":
            answer = Answer({"keys": self.keys}, **{"Cache-Control": self.cache_control})
        elif not answer and request.path == "/.well-known/openid-configuration":
            answer = Answer(self.discovery())
        elif not answer:
            answer = Answer("{}", 404)
        if answer.body is None:
            self.is_ending.wait()
            request.close_connection = True
            return
        request.send_response(answer.status)
        if answer.type:
            request.send_header("Content-Type", answer.type)
        for name, value in answer.headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(answer.body)))
        request.end_headers()
        try:
            request.wfile.write(answer.body)
        except OSError:
            request.close_connection = True  # the client closed: the answer was too large

    def stop(self):
        """It is unavailable; start(port) starts it again."""
        if self.server:
            self.is_ending.set()
            self.server.shutdown()
            self.server.server_close()
            self.server = None
            self.is_ending.clear()
