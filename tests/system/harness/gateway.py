"""A real sluiced on a free port."""

import json
import os
import pathlib
import re
import signal
import subprocess

from . import processes, programs, zstd
from .http import HttpConnection
from .streams import HttpStream
from .tls import client_hello
from .tokens import hs256_token
from .waiting import Deadline, eventually
from .websocket import RawWebSocket, WebSocket, upgrade

SECRET = "a secret for tests, longer than thirty-two bytes"
EVERY_STREAM = "stream:filter stream:sample stream:firehose stream:home"

_SANITIZER = re.compile(
    r"(ERROR|WARNING): (Address|Leak|Memory|Thread|UndefinedBehavior)Sanitizer|runtime error:"
    r"|Assertion `|: Assertion ")


def sanitizer_report(text):
    """Returns the report of a sanitizer or an assertion in `text`, from its first line on; empty: there is none."""
    found = _SANITIZER.search(text)
    return text[found.start():found.start() + 6000] if found else ""


class Gateway:
    """A sluiced, started by start() and ended by stop(). `redis_url` None: the embedded Redis. `certificate`: its
    clients, including those of this class, connect over TLS. `prefix`: words before the command, for example to run it
    in a namespace. `build`: the build folder of another tree."""

    def __init__(self, folder, redis_url, *options, secret=SECRET, listen="127.0.0.1:0", env=None,
                 data_dir=None, certificate=None, prefix=(), build=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.redis_url, self.listen = redis_url, listen
        self.options = [str(option) for option in options]
        self.env = env or {}
        self.prefix = list(prefix)
        self.build = build
        self.data_dir = data_dir or self.folder / "data"
        self.certificate = certificate
        self.secret_file = None
        if secret is not None:
            self.secret_file = self.folder / "secret"
            self.secret_file.touch(mode=0o600)
            self.secret_file.write_text(secret + "\n")
        self.process = None
        self.ready_fd = None
        self.is_told = False
        self.port = int(listen.removesuffix(",proxy").rsplit(":", 1)[1])
        self.first_workers = []
        self.stderr = self.folder / "stderr"

    def command(self, ready_fd=None):
        command = [*self.prefix, programs.sluiced(self.build), "--listen", self.listen, "--data-dir", str(self.data_dir)]
        if self.redis_url:
            command += ["--redis", self.redis_url]
        if self.secret_file:
            command += ["--jwt-secret-file", str(self.secret_file)]
        if self.certificate:
            command += map(str, self.certificate.options)
        if ready_fd is not None:
            command += ["--ready-fd", str(ready_fd)]
        return command + self.options

    def launch(self):
        """Starts the process; wait_ready() waits until it serves."""
        self.is_told = False
        self.ready_fd, ready_write = os.pipe()
        with open(self.stderr, "ab") as stderr:
            self.process = subprocess.Popen(
                self.command(ready_write), pass_fds=[ready_write], stdin=subprocess.DEVNULL,
                stdout=stderr, stderr=stderr, env=programs.environment(**self.env))
        os.close(ready_write)
        return self

    def wait_ready(self, seconds=None):
        deadline = Deadline(seconds, "sluiced is ready")
        said = b""
        while not said.endswith(b"\n"):
            deadline.wait_readable(self.ready_fd)
            some = os.read(self.ready_fd, 4096)
            if not some:
                raise AssertionError(f"sluiced ended before it was ready:\n{self.log()}")
            said += some
        os.close(self.ready_fd)
        self.ready_fd = None
        self.ready = json.loads(said)
        self.port = self.ready["port"]
        self.pid = self.ready["pid"]
        self.first_workers = self.workers()
        return self

    def start(self):
        return self.launch().wait_ready()

    def log(self):
        return self.stderr.read_text(errors="replace") if self.stderr.exists() else ""

    def workers(self):
        """The processes that serve clients: the supervisor's children, or the process itself."""
        return [child for child in processes.children(self.pid)
                if processes.name(child) == "sluiced-worker"] or [self.pid]

    def check(self):
        """Fails if a process died or a sanitizer reported an error."""
        report = sanitizer_report(self.log())
        assert not report, f"a sanitizer or an assert spoke:\n{report}"
        if self.process:
            status = self.process.poll()
            assert status is None, f"sluiced ended with {status}:\n{self.log()[-4000:]}"
            assert self.workers() == self.first_workers, \
                f"a worker was replaced:\n{self.log()[-4000:]}"

    def begin_stop(self, how=signal.SIGTERM):
        """Tells it to end; stop() then only waits for that. A second signal would end it at once."""
        self.process.send_signal(how)
        self.is_told = True

    def stop(self, expect=0):
        """Ends it and checks its exit status."""
        if not self.process:
            return
        if not self.is_told:
            self.begin_stop()
        process, self.process, self.is_told = self.process, None, False
        if self.ready_fd is not None:
            os.close(self.ready_fd)
            self.ready_fd = None
        try:
            status = process.wait(Deadline(30).seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"sluiced did not end:\n{self.log()[-4000:]}") from None
        report = sanitizer_report(self.log())
        assert not report, f"a sanitizer or an assert spoke:\n{report}"
        assert status == expect, f"sluiced ended with {status}:\n{self.log()[-4000:]}"

    def wait_end(self, expect=0):
        """Waits for an end without a signal, because a successor took over."""
        self.is_told = True
        self.stop(expect)

    # Requests

    def token(self, scope=EVERY_STREAM, sub="42", **claims):
        return hs256_token(SECRET, scope=scope, sub=sub, **claims)

    def bearer(self, **claims):
        return {"Authorization": "Bearer " + self.token(**claims)}

    @property
    def tls(self):
        """The TLS context of clients; None: they are plain."""
        return self.certificate.context if self.certificate else None

    @property
    def url(self):
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    def connect(self, receive_buffer=None, tls=None, source=None, first=b"", **more):
        """`more` is passed to TlsSocket."""
        tls = tls or self.tls
        return HttpConnection(self.port, receive_buffer, tls, source, first, **(more if tls else {}))

    def connect_plain(self):
        return HttpConnection(self.port)

    def connect_half(self):
        """A connection that has sent half of a request, or of a handshake."""
        connection = self.connect_plain()
        connection.send(client_hello(self.tls)[:100] if self.tls else b"GET / HT")
        return connection

    def upgrade(self, target, headers=None):
        """Returns (connection, response) for a request for a WebSocket; without a token unless `headers` has it."""
        return upgrade(self.port, target, headers, tls=self.tls)

    def websocket(self, target, **more):
        """A WebSocket of the library; without a token unless `more` has it."""
        return WebSocket(self.port, target, tls=self.tls, **more)

    def get(self, path, headers=None):
        with self.connect() as connection:
            return connection.request("GET", path, headers=headers)

    def stream(self, target, transport="ndjson", method="GET", body=None, headers=None, token=None,
               receive_buffer=None, dictionary=None):
        """Opens a stream over any transport: ndjson, delimited, sse or websocket; compressed if followed by `+gzip`,
        `+zstd` or `+deflate`; with a dictionary if followed by `+dictionary`: with this one (id, bytes), or the newest.
        """
        sent = {"Authorization": f"Bearer {token or self.token()}"}
        transport, _, compression = transport.partition("+")
        if compression in ("gzip", "zstd"):
            sent["Accept-Encoding"] = compression
        elif compression == "dictionary":
            name, dictionary = dictionary or zstd.newest(self)
            target += ("&" if "?" in target else "?") + f"zstd_dictionary={name}"
        elif compression == "deflate" and transport == "raw-websocket":
            sent["Sec-WebSocket-Extensions"] = "permessage-deflate"
        sent.update(headers or {})
        if transport == "websocket":
            return self.websocket(target, headers=sent, compression=compression or None)
        if transport == "raw-websocket":
            return RawWebSocket(self.port, target, sent, receive_buffer, self.tls, dictionary)
        return HttpStream(self.port, target, transport, method, body, sent, receive_buffer, self.tls, dictionary)

    def metrics(self):
        """/metrics as a dictionary: `name` or `name{labels}` -> number."""
        answer = self.get("/metrics")
        assert answer.status == 200, answer
        numbers = {}
        for line in answer.text.splitlines():
            if line and not line.startswith("#"):
                key, value = line.rsplit(" ", 1)
                numbers[key] = float(value)
        return numbers

    def wait_status(self, path, status, seconds=None):
        def asked():
            try:
                return self.get(path).status == status
            except ConnectionError:
                return False
        eventually(asked, f"{path} answers {status}", seconds)

    def cpu_seconds(self):
        return sum(processes.cpu_seconds(pid) for pid in self.workers())

    def resident_bytes(self):
        return sum(processes.resident_bytes(pid) for pid in self.workers())
