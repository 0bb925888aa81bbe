"""The packages in clients/ in a storm: as programs, like the runners of tests/clients/kit, which reconnect by
themselves."""

import itertools
import json
import os
import subprocess
import sys
import threading
from urllib.parse import parse_qsl, urlsplit

from . import programs
from .followers import Follower, Gap
from .waiting import Deadline

RUNNERS = programs.SOURCE / "tests/clients/kit/runners"
TYPESCRIPT = programs.BUILD / "clients/typescript/dist"
NEVER = {"hello", "cursor", "disconnect"}  # not passed to applications


def kinds_of_packages():
    """Returns (name, command, transport) of each package that is built."""
    python = [(f"python {kind}{suffix}", [sys.executable, RUNNERS / f"python_{kind}.py"], transport)
              for kind, suffix, transport in (("blocking", "", "http"), ("aio", "", "http"), ("aio", " websocket", "websocket"),
                                              ("aio", " filters", "filters"))]
    typescript = [(f"typescript {transport}", ["node", RUNNERS / "typescript.mjs"], transport)
                  for transport in ("http", "websocket", "connection", "filters")]
    return python + (typescript if (TYPESCRIPT / "index.js").exists() else [])


def trust(certificate):
    """The environment in which Python and Node trust it in addition to the system's authorities."""
    return {"SSL_CERT_FILE": str(certificate.file), "NODE_EXTRA_CA_CERTS": str(certificate.file)} if certificate else {}


class PackageClient(Follower):
    def __init__(self, storm, kind, package):
        name, command, transport = package
        super().__init__(storm, kind, name, is_calm=True)
        target = urlsplit(kind.target)
        plan = {"url": storm.gateway.url, "stream": target.path.rsplit("/", 1)[1], "transport": transport, "renews": False,
                "parameters": {**dict(parse_qsl(target.query)), "since": str(storm.start)}, "silence_s": 20, "max_tries": None,
                "token": storm.gateway.token(**self.claims), "filters": dict(kind.subscribes), "changes": []}
        self.connections = 1
        self._is_stopping = False
        self._process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(programs.SOURCE / "clients/python/src"), "SLUICE_TYPESCRIPT": str(TYPESCRIPT),
                 **trust(storm.gateway.certificate)})
        storm.servers.programs.append(self)
        self._process.stdin.write(json.dumps(plan).encode() + b"\n")
        self._process.stdin.close()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._process.stdout:
            self._take(json.loads(line))
        said = self._process.stderr.read().decode()
        if not self._is_stopping:
            self.faults.append(f"it has ended: {said}")

    def _take(self, message):
        kind = message.get("type")
        if "end" in message or kind in NEVER:
            self.faults.append(repr(message))
        elif kind == "gap":
            self.gaps.append(Gap(int(message["from"]), int(message["to"]), message["reason"], message.get("shard")))
            self._tell(self.gaps[-1])
        elif kind != "warning":
            event_id = int(message["id"])
            self._keep(event_id)
            self._tell(event_id)
            if self.kind.rules:
                self.rules.append((event_id, [rule["id"] for rule in message["matching_rules"]]))
            if "late" in message:
                self.late.add(event_id)

    def stop(self):
        if self._process.poll() is None:
            self._is_stopping = True
            self._process.terminate()
            self._thread.join(Deadline().seconds)
            self._process.wait()


def add_packages(storm):
    """All of them follow the firehose, and one each the other streams of events that a `sluice tail` can follow;
    filters by name are those of `many`."""
    of_streams = [package for package in kinds_of_packages() if package[2] != "filters"]
    of_filters = [package for package in kinds_of_packages() if package[2] == "filters"]
    turns = itertools.cycle(of_streams)
    for kind in {client.kind.name: client.kind for client in storm.clients}.values():
        chosen = of_filters if kind.name == "many" else of_streams if kind.name == "firehose" else [next(turns)] if kind.tail else []
        for package in chosen:
            storm.clients.append(PackageClient(storm, kind, package))
