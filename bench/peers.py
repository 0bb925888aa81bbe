"""Servers that bench/performance compares with, and that do not read Redis: NATS and Pushpin, Debian's packages.

bench/bridge.py passes the posts to them. Both are started as their documentation says, with limits that admit all
clients."""

import http.server
import re
import pathlib
import shutil
import socketserver
import threading

from servers import CHANNEL, LOAD_CORE, SERVER_CORE, await_port, free_port

BRIDGE = str(pathlib.Path(__file__).with_name("bridge.py"))


class Bridged:
    """`beside`: processes to end with it. They do not belong to the server: their CPU does not count."""

    tls = False

    def bridge(self, bench, kind, port):
        self.beside = [bench.start(["/usr/bin/python3", BRIDGE, str(bench.redis_port), CHANNEL, kind, str(port)],
                                   LOAD_CORE)]


class Nats(Bridged):
    """Over WebSocket, as its browser clients do; a keyword is a subject."""

    CONFIGURATION = """
listen: "127.0.0.1:{publisher_port}"
max_connections: 64000
max_pending: 256MB
write_deadline: "60s"
websocket {{ listen: "127.0.0.1:{port}", no_tls: true }}
"""

    def exists(self, bench):
        return shutil.which("nats-server", path="/usr/sbin:/usr/bin:/usr/local/bin")

    def start(self, bench, wire):
        self.port, publisher_port = free_port(), free_port()
        configuration = bench.folder / "nats.conf"
        configuration.write_text(self.CONFIGURATION.format(port=self.port, publisher_port=publisher_port))
        process = bench.start([self.exists(bench), "-c", str(configuration)], SERVER_CORE)
        await_port(self.port, process)
        await_port(publisher_port, process)
        self.bridge(bench, "nats", publisher_port)
        return process

    def load(self, bench, wire, keywords):
        subject = "kw%d" if keywords else "posts"
        return ["--path", "/", "--hello", f'CONNECT {{"verbose":false}}\r\nSUB {subject} 1\r\n', *bench.redis_publisher()]


class Origin(http.server.BaseHTTPRequestHandler):
    """Pushpin asks it about each request; it answers to hold it open as a stream of the channel."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        for name, value in (("Content-Type", "text/plain"), ("Grip-Hold", "stream"), ("Grip-Channel", "posts"),
                            ("Content-Length", "0")):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *words):
        pass


class Origins(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 1024


class Pushpin(Bridged):
    """Over HTTP streams. Its proxy talks to its own zurl, not to the one that Debian runs for everybody."""

    def exists(self, bench):
        return shutil.which("pushpin") and shutil.which("zurl")

    def start(self, bench, wire):
        folder = bench.folder / "pushpin"
        folder.mkdir(exist_ok=True)
        origins = Origins(("127.0.0.1", 0), Origin)
        threading.Thread(target=origins.serve_forever, daemon=True).start()
        (folder / "routes").write_text(f"* 127.0.0.1:{origins.server_address[1]}\n")
        self.port, publisher_port = free_port(), free_port()
        settings = {
            "rundir": folder, "logdir": folder, "services": "condure,zurl,pushpin-proxy,pushpin-handler",
            "http_port": f"127.0.0.1:{self.port}", "log_level": 0, "client_maxconn": 50000,
            "push_in_http_port": publisher_port, "push_in_spec": f"tcp://127.0.0.1:{free_port()}",
            "push_in_sub_specs": f"tcp://127.0.0.1:{free_port()}", "command_spec": f"tcp://127.0.0.1:{free_port()}",
            "message_rate": 0, "message_hwm": 1000000, "message_wait": 0}
        text = pathlib.Path("/etc/pushpin/pushpin.conf").read_text()
        for name, value in settings.items():
            text = re.sub(rf"^{name}=.*$", f"{name}={value}", text, flags=re.M)
        inner = pathlib.Path("/usr/lib/pushpin/internal.conf").read_text()
        (folder / "internal.conf").write_text(
            inner.replace("/var/run/zurl/zurl-", "{rundir}/{ipc_prefix}zurl-"))
        (folder / "pushpin.conf").write_text(text.replace("{libdir}/internal.conf", str(folder / "internal.conf")))
        process = bench.start(["pushpin", "--config", str(folder / "pushpin.conf")], SERVER_CORE)
        await_port(self.port, process)
        await_port(publisher_port, process)
        self.bridge(bench, "pushpin", publisher_port)
        return process

    def load(self, bench, wire, keywords):
        return ["--path", "/", *bench.redis_publisher()]
