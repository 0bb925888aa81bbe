"""The servers that bench/performance measures: each knows how it is started, how clients connect to it, and how it gets
posts.

Here are sluiced, the minimal broadcaster and nginx with nchan; they share a folder, a Redis, tokens and a certificate.
A server may speak TLS. Servers are pinned to core 0; Redis and the load client to core 1."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

NCHAN_MODULE = pathlib.Path("/usr/lib/nginx/modules/ngx_nchan_module.so")
CHANNEL = "sluice:{0}:live"
SERVER_CORE, LOAD_CORE = "0", "1"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, process):
    until = time.monotonic() + 15
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"{process.args} does not listen")


def stop(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def process_tree(pid):
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid] + [each for child in children for each in process_tree(int(child))]


def sign_token(secret, subject, scope):
    def encode(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    claims = {"sub": str(subject), "exp": int(time.time()) + 86400, "scope": scope}
    text = encode(b'{"alg":"HS256","typ":"JWT"}') + b"." + encode(json.dumps(claims).encode())
    return (text + b"." + encode(hmac.new(secret, text, hashlib.sha256).digest())).decode()


class Bench:
    """What all runs share: a folder, a Redis, the programs."""

    def __init__(self, given):
        self.given = given
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-performance-"))
        self.sluiced = given.build / "gateway" / "sluiced"
        self.log = open(self.folder / "log", "ab")
        self.secret = os.urandom(32).hex().encode()
        self.secret_file = self.folder / "secret"
        self.secret_file.write_bytes(self.secret)
        self.secret_file.chmod(0o600)
        self.tokens = self.folder / "tokens"  # one per subject: every handshake has its own signature
        self.tokens.write_text("".join(
            sign_token(self.secret, subject, "stream:firehose stream:filter") + "\n" for subject in range(10000)))
        self.certificate, self.key = self.make_certificate()
        self.nginx = NCHAN_MODULE.exists() and shutil.which("nginx", path="/usr/sbin:/usr/bin")
        self.redis_port = free_port()
        self.redis = self.start(
            ["redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", "",
             "--dir", str(self.folder), "--client-output-buffer-limit", "pubsub 0 0 0"], LOAD_CORE)
        await_port(self.redis_port, self.redis)

    def make_certificate(self):
        names = str(self.folder / "certificate.pem"), str(self.folder / "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=localhost", "-days", "2", "-out", names[0], "-keyout", names[1]],
                       check=True, capture_output=True)
        return names

    def program(self, name):
        return str(self.given.build / "bench" / name)

    def at_priority(self):
        if self.given.realtime:
            return ["chrt", "-f", "1"]
        return ["nice", "-n", str(self.given.nice)] if self.given.nice else []

    def start(self, command, cores, **more):
        return subprocess.Popen([*self.at_priority(), "taskset", "-c", cores, *command], stdin=subprocess.DEVNULL,
                                stdout=self.log, stderr=self.log, **more)

    def load(self, program, arguments):
        """Returns the result of a load client; it may report failure, but must print something."""
        result = subprocess.run([*self.at_priority(), "taskset", "-c", LOAD_CORE, self.program(program), *arguments],
                                stdout=subprocess.PIPE, text=True, check=False)
        if not result.stdout:
            raise RuntimeError(f"{program} {arguments} gave no result")
        return json.loads(result.stdout)

    def redis_publisher(self):
        return ["--redis", f"127.0.0.1:{self.redis_port}", "--channel", CHANNEL]

    def close(self):
        stop(self.redis)
        self.log.close()
        shutil.rmtree(self.folder)


# A load exceeds the default limits. As environment variables, because an older sluiced would refuse unknown options.
UNBOUNDED = {f"SLUICE_MAX_{what}": "0" for what in (
    "CONNECTS_PER_MINUTE", "CONNECTS_PER_MINUTE_PER_ADDRESS", "BAD_TOKENS_PER_MINUTE",
    "REQUESTS_PER_SECOND", "REQUESTS_PER_SECOND_PER_ADDRESS", "EVENTS_PER_DAY", "BYTES_PER_DAY",
    "REPLAYED_PER_DAY")}


class Sluiced:
    """`program`: another sluiced than that of the build, to compare with."""

    def __init__(self, gather_ms=None, workers=1, tls=False, program=None):
        self.gather_ms, self.workers, self.tls, self.program = gather_ms, workers, tls, program

    def exists(self, bench):
        return True

    def before(self, program):
        return Sluiced(self.gather_ms, self.workers, self.tls, program)

    def start(self, bench, wire):
        ready_read, ready_write = os.pipe()
        command = [str(self.program or bench.sluiced), "--listen", "127.0.0.1:0",
                   "--jwt-secret-file", str(bench.secret_file),
                   "--max-connections-per-subject", "1000000",
                   "--redis", f"redis://127.0.0.1:{bench.redis_port}", "--workers", str(self.workers),
                   "--ready-fd", str(ready_write)]
        if self.gather_ms is not None:
            command += ["--gather-ms", str(self.gather_ms)]
        if self.tls:
            command += ["--tls-cert", bench.certificate, "--tls-key", bench.key]
        cores = SERVER_CORE if self.workers == 1 else f"{SERVER_CORE},{LOAD_CORE}"
        process = bench.start(command, cores, pass_fds=[ready_write], env={**os.environ, **UNBOUNDED})
        os.close(ready_write)
        with os.fdopen(ready_read) as ready:
            line = ready.readline()
        if not line:
            raise RuntimeError("sluiced did not start")
        self.port = json.loads(line)["port"]
        return process

    def load(self, bench, wire, keywords):
        path = "/v1/stream/filter?track=kw%d" if keywords else "/v1/stream/firehose"
        if wire == "delimited":
            path += ("&" if keywords else "?") + "delimited=length"
        return ["--path", path, "--token-file", str(bench.tokens)] + bench.redis_publisher()

    def ask(self, bench, subject, scope, method, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, json.dumps(body),
                           {"Authorization": "Bearer " + sign_token(bench.secret, subject, scope),
                            "Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        if "id" not in answer:
            raise RuntimeError(f"{method} {path}: {answer}")
        return answer["id"]

    def request(self, bench, what):
        """Returns how bench/requests asks for it: health, or a post created for this."""
        if what == "health":
            return ["--path", "/healthz"]
        user = self.ask(bench, "admin", "admin read", "POST", "/v1/users", {"login": f"reader{self.port}"})
        post = self.ask(bench, user, "read write", "POST", "/v1/posts", {"text": "words " * 40, "lang": "en"})
        return ["--path", f"/v1/posts/{post}", "--header",
                "Authorization: Bearer " + sign_token(bench.secret, user, "read write"),
                "--beside", str(bench.redis.pid)]


class Broadcaster:
    def __init__(self, *options, tls=False):
        self.options, self.tls = options, tls

    def exists(self, bench):
        return True

    def start(self, bench, wire):
        self.port = free_port()
        tls = ["--certificate", bench.certificate, "--key", bench.key] if self.tls else []
        process = bench.start([bench.program("broadcaster"), "--port", str(self.port), "--redis-port",
                               str(bench.redis_port), "--channel", CHANNEL, "--format", wire,
                               *self.options, *tls], SERVER_CORE)
        await_port(self.port, process)
        return process

    def load(self, bench, wire, keywords):
        return ["--path", "/?track=kw%d" if keywords else "/"] + bench.redis_publisher()


class Nginx:
    """With nchan, which posts are published to over HTTP. It has no filters: each keyword is a channel."""

    CONFIGURATION = """
load_module {module};
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log warn;
worker_rlimit_nofile 100000;
events {{ worker_connections 18000; }}
http {{
    access_log off; keepalive_requests 10000000; client_body_in_single_buffer on;
    client_body_buffer_size 64k; client_body_temp_path {folder}; proxy_temp_path {folder};
    fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
    nchan_shared_memory_size 512m; nchan_message_buffer_length 2000; nchan_message_timeout 60s;
    server {{
        listen 127.0.0.1:{port} backlog=4096 {tls}; tcp_nodelay on;
        listen 127.0.0.1:{publisher_port};
        ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
        nchan_subscriber_first_message newest; nchan_channel_id $arg_id;
        location = /healthz {{ default_type text/plain; return 200 "ok\\n"; }}
        location = /pub {{ nchan_publisher; {deflate} }}
        location = /ws {{ nchan_subscriber websocket; }}
        location = /sse {{ nchan_subscriber eventsource; }}
    }}
}}
"""

    def __init__(self, tls=False, deflates=False):
        self.tls, self.deflates = tls, deflates

    def exists(self, bench):
        return bench.nginx

    def start(self, bench, wire):
        self.port, self.publisher_port = free_port(), free_port()
        configuration = bench.folder / "nginx.conf"
        configuration.write_text(self.CONFIGURATION.format(
            module=NCHAN_MODULE, folder=bench.folder, port=self.port, publisher_port=self.publisher_port,
            tls="ssl" if self.tls else "", certificate=bench.certificate, key=bench.key,
            deflate="nchan_deflate_message_for_websocket on;" if self.deflates else ""))
        process = bench.start([bench.nginx, "-c", str(configuration), "-p", str(bench.folder),
                               "-e", str(bench.folder / "nginx.log")], SERVER_CORE)
        await_port(self.port, process)
        while len(process_tree(process.pid)) < 2:  # the worker, whose CPU counts
            time.sleep(0.02)
        return process

    def load(self, bench, wire, keywords):
        channel = "kw%d" if keywords else "posts"
        return ["--path", f"/{wire}?id={channel}", "--http-port", str(self.publisher_port), "--http-path",
                f"/pub?id={channel}"]

    def request(self, bench, what):
        return ["--path", "/healthz"]


class NodeWs:
    """The Node package ws, as installed for the browser tests; `deflates`: with a compression context for each client.
    """

    tls = False

    def __init__(self, deflates=False):
        self.deflates = deflates

    def packages(self, bench):
        return bench.given.build / "tests" / "browser"

    def exists(self, bench):
        return shutil.which("node") and (self.packages(bench) / "node_modules" / "ws").is_dir()

    def start(self, bench, wire):
        self.port = free_port()
        process = bench.start(["node", str(pathlib.Path(__file__).with_name("ws_peer.mjs")), str(self.port),
                               str(bench.redis_port), CHANNEL, str(self.packages(bench)),
                               *(["deflate"] if self.deflates else [])], SERVER_CORE)
        await_port(self.port, process)
        return process

    def load(self, bench, wire, keywords):
        return ["--path", "/"] + bench.redis_publisher()
