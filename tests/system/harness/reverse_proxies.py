"""The proxies of docs/proxies.md, as child processes of a test: each runs the file from packaging/proxies, in which
only ports, names and paths are replaced, and has its files (logs, process ids) in its own folder."""

import os
import pathlib
import shutil
import socket
import subprocess

from .ports import steady_port
from .waiting import eventually

FILES = pathlib.Path(__file__).parents[3] / "packaging" / "proxies"
CERTIFICATE, KEY = "/etc/ssl/sluice.example.org.pem", "/etc/ssl/sluice.example.org.key"
APACHE_MODULES = "mpm_event authz_core env unixd alias asis headers http2 proxy proxy_http ssl".split()


def program(name):
    """Returns its path, also from directories that only root has in PATH; None: it is not installed."""
    return shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")


class ReverseProxy:
    """A proxy in front of `upstream`, a port of 127.0.0.1; clients connect to `port`, over TLS with the certificate in
    `folder`. start() returns when they can."""

    name = None
    programs = ()
    is_relay = False  # a TCP relay: TLS is handled by the server

    def __init__(self, folder, upstream, certificate):
        self.folder, self.upstream, self.certificate = pathlib.Path(folder), upstream, certificate
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = steady_port()
        self.both = self.folder / "both.pem"
        self.both.write_text(certificate.file.read_text() + certificate.key.read_text())
        self.log = self.folder / "log"
        self.processes = []

    @classmethod
    def missing(cls):
        return [name for name in cls.programs if not program(name)]

    def write(self, file, replaced, before="", behind="", as_name=None):
        """Writes the file of that name with replacements; every replaced word must be in it."""
        text = (FILES / file).read_text()
        for word, instead in replaced.items():
            assert word in text, f"{word} is not in {file}"
            text = text.replace(word, str(instead))
        written = self.folder / (as_name or file)
        written.write_text(before + text + behind)
        return written

    def run(self, name, *arguments, env=None):
        with open(self.log, "ab") as log:
            self.processes.append(subprocess.Popen(
                [program(name), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.folder), **(env or {})}))

    def said(self):
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def listens(self, port=None):
        for process in self.processes:
            assert process.poll() is None, f"{self.name} ended: {self.said()}"
        try:
            socket.create_connection(("127.0.0.1", port or self.port), 1).close()
            return True
        except OSError:
            return False

    def start(self):
        self.launch()
        eventually(self.listens, f"{self.name} listens")
        return self

    def launch(self):
        raise NotImplementedError

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []


class Nginx(ReverseProxy):
    name = "nginx"
    programs = ("nginx",)

    def launch(self):
        site = self.write("nginx.conf", {"443": f"127.0.0.1:{self.port}", "127.0.0.1:8080": f"127.0.0.1:{self.upstream}",
                                         "sluice.example.org;": "localhost;", CERTIFICATE: self.certificate.file,
                                         KEY: self.certificate.key}, as_name="site.conf")
        self.run_with(f"http {{ access_log off; {self.folders()} include {site}; }}\n")

    def folders(self):
        return "".join(f"{kind}_temp_path {self.folder}/{kind}; "
                       for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))

    def run_with(self, rest, modules=""):
        config = self.folder / "nginx.conf"
        config.write_text(f"{modules}daemon off; master_process off; pid {self.folder}/pid; error_log {self.log};\n"
                          f"events {{ worker_connections 256; }}\n{rest}")
        self.run("nginx", "-c", config, "-p", self.folder, "-e", self.log)


class Haproxy(ReverseProxy):
    name = "haproxy"
    programs = ("haproxy",)

    def launch(self):
        config = self.write("haproxy.cfg", {":443": f"127.0.0.1:{self.port}",
                                            "127.0.0.1:8080": f"127.0.0.1:{self.upstream}", CERTIFICATE: self.both})
        self.run("haproxy", "-db", "-f", config)


class Caddy(ReverseProxy):
    name = "caddy"
    programs = ("caddy",)

    def launch(self):
        config = self.write(
            "Caddyfile", {"sluice.example.org {": f"https://localhost:{self.port}, https://127.0.0.1:{self.port} {{",
                          "127.0.0.1:8080": f"127.0.0.1:{self.upstream}", CERTIFICATE: self.certificate.file,
                          KEY: self.certificate.key},
            before="{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n\tskip_install_trust\n}\n")
        self.run("caddy", "run", "--adapter", "caddyfile", "--config", config,
                 env={"XDG_DATA_HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)})


class Apache(ReverseProxy):
    name = "apache"
    programs = ("apache2",)

    def launch(self):
        modules = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"
                          for name in APACHE_MODULES
                          if pathlib.Path(f"/usr/lib/apache2/modules/mod_{name}.so").exists())
        config = self.write(
            "apache.conf", {"*:443": f"127.0.0.1:{self.port}", "sluice.example.org\n": "localhost\n",
                            "127.0.0.1:8080": f"127.0.0.1:{self.upstream}", CERTIFICATE: self.certificate.file,
                            KEY: self.certificate.key, "/etc/apache2/sluice-away.asis": FILES / "sluice-away.asis"},
            before=f"ServerRoot {self.folder}\nPidFile {self.folder}/pid\nErrorLog {self.log}\nListen 127.0.0.1:{self.port}\n"
                   f"DefaultRuntimeDir {self.folder}\nMutex file:{self.folder} default\nServerName localhost\n"
                   f"StartServers 1\nTimeout 75\n{modules}")
        self.run("apache2", "-DFOREGROUND", "-d", self.folder, "-f", config)


class Varnish(ReverseProxy):
    name = "varnish"
    programs = ("varnishd", "hitch")

    def launch(self):
        inner = steady_port()
        config = self.write("varnish.vcl", {'"8080"': f'"{self.upstream}"', "443": self.port})
        tls = self.write("hitch.conf", {"[*]:443": f"[127.0.0.1]:{self.port}", "[127.0.0.1]:6086": f"[127.0.0.1]:{inner}",
                                        CERTIFICATE: self.both})
        self.run("varnishd", "-F", "-j", "none", "-n", self.folder / "varnish", "-a", f"127.0.0.1:{inner},PROXY",
                 "-p", "feature=+http2", "-s", "malloc,8m", "-f", config)
        eventually(lambda: self.listens(inner), "varnishd listens")
        user = ["--user=_hitch"] if os.geteuid() == 0 else []  # it refuses to run as root
        self.run("hitch", f"--config={tls}", "--workers=1", *user)


class HaproxyTcp(ReverseProxy):
    """Version 2 of the PROXY protocol; TLS is handled by the server."""

    name = "haproxy-tcp"
    programs = ("haproxy",)
    is_relay = True
    send = "send-proxy-v2"

    def launch(self):
        config = self.write("haproxy-tcp.cfg", {":443": f"127.0.0.1:{self.port}", "send-proxy-v2": self.send,
                                                "127.0.0.1:8443": f"127.0.0.1:{self.upstream}"})
        self.run("haproxy", "-db", "-f", config)


class HaproxyTcp1(HaproxyTcp):
    name = "haproxy-tcp-1"
    send = "send-proxy"


class NginxStream(Nginx):
    """Version 1, by nginx as a TCP relay."""

    name = "nginx-stream"
    is_relay = True
    module = pathlib.Path("/usr/lib/nginx/modules/ngx_stream_module.so")

    @classmethod
    def missing(cls):
        return super().missing() + ([] if cls.module.exists() else ["libnginx-mod-stream"])

    def launch(self):
        stream = self.write("nginx-stream.conf", {"listen 443": f"listen 127.0.0.1:{self.port}",
                                                  "127.0.0.1:8443": f"127.0.0.1:{self.upstream}"}, as_name="stream.conf")
        self.run_with(f"include {stream};\n", f"load_module {self.module};\n")
