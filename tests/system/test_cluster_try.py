"""sluice cluster try: a cluster, sluiced and demo posts with one command, which leaves nothing behind."""

import json
import os
import re
import signal
import socket
import sys
import urllib.request

import pytest

from harness import processes, programs
from harness.cli import Cli
from harness.ports import steady_ports
from harness.program import Program
from harness.redis_server import redis_program
from harness.waiting import eventually

NODES, BUS = 6, 10000


def first_port():
    return steady_ports(NODES, BUS)


class Trial:
    def __init__(self, folder, *options, server=None, listen="127.0.0.1:0"):
        self.temporary = folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        self.port = first_port()
        self.program = Program(
            programs.sluice(), "cluster", "try", "--sluiced", programs.sluiced(), "--listen", listen,
            "--port", self.port, "--redis-server", server or redis_program(), *options,
            env=programs.environment(TMPDIR=self.temporary))
        self.said = []

    def wait_for(self, text):
        while not any(text in line for line in self.said):
            self.said.append(self.program.line())
        return self

    def ready(self):
        self.wait_for("Ctrl-C ends everything")
        self.started = processes.descendants(self.program.process.pid)[1:]
        return self

    def told(self, name):
        """What it prints after `export` or another word."""
        return re.search(f"{name}[= ](.*)", "\n".join(self.said))[1]

    def cli(self):
        cli = Cli()
        cli.environment.update({name: self.told(f"export {name}")
                                for name in ("SLUICE_REDIS", "SLUICE_URL", "SLUICE_TOKEN")})
        return cli

    def refuses(self, *words):
        said = self.program.ended(1)
        for word in words:
            assert word in said, said
        assert not list(self.temporary.iterdir())
        return said

    def end(self, how):
        self.program.stop(how)
        self.is_gone()

    def is_gone(self):
        assert not any(map(processes.is_alive, self.started))
        assert not list(self.temporary.iterdir())


@pytest.fixture
def start(tmp_path):
    trials = []

    def start(*options, **more):
        trials.append(Trial(tmp_path, *options, **more))
        return trials[-1]
    yield start
    for trial in trials:
        if trial.program.process.poll() is None:
            trial.program.stop()


def test_it_goes_on_without_a_master_and_leaves_nothing_behind(start):
    trial = start("--rate", "600").ready()
    cli = trial.cli()
    assert cli.run("init").endswith("shards: 64")
    authors = {json.loads(line)["post"]["user"]["login"] for line in cli.run("tail", "firehose", "--limit", "5").splitlines()}
    assert authors and "you" not in authors
    post = cli.run("post", "--user", "you", "Hello, cluster!")
    assert post in cli.run("home", "you")
    assert cli.run("shards", "list").count(f"127.0.0.1:{trial.port} ") > 10
    assert "#token=" + cli.environment["SLUICE_TOKEN"] in "\n".join(trial.said)

    victim = int(trial.told("kill -9"))
    assert processes.is_alive(victim) and victim in trial.started
    os.kill(victim, signal.SIGKILL)
    trial.wait_for(f"127.0.0.1:{trial.port} ended by SIGKILL")
    assert urllib.request.urlopen(cli.environment["SLUICE_URL"] + "/readyz").status == 200
    trial.wait_for("is a master now").wait_for(f"127.0.0.1:{trial.port} is a replica now")
    cli.run("post", "--user", "you", "still here")
    assert "still here" in cli.run("home", "you")
    trial.end(signal.SIGINT)


def test_a_directory_is_gone_on_with_at_other_ports(start, tmp_path):
    trial = start("--dir", tmp_path / "kept", "--rate", "0").ready()
    post = trial.cli().run("post", "--user", "you", "kept")
    trial.end(signal.SIGTERM)

    again = start("--dir", tmp_path / "kept", "--rate", "0").ready()
    assert json.loads(again.cli().run("read", post))["text"] == "kept"
    again.program.process.kill()  # even then no process is left
    again.program.ended(-signal.SIGKILL)
    eventually(lambda: not any(map(processes.is_alive, again.started)), "all have ended", 60)


def test_it_is_ended_while_it_begins(start):
    trial = start()
    eventually(lambda: processes.children(trial.program.process.pid), "a node is started")
    trial.started = processes.descendants(trial.program.process.pid)[1:]
    trial.program.stop(signal.SIGTERM, (1,))
    trial.is_gone()


@pytest.mark.parametrize("distance", [3, BUS + 5])
def test_a_port_that_is_taken_is_named(start, monkeypatch, distance):
    port = first_port()
    monkeypatch.setitem(globals(), "first_port", lambda: port)
    with socket.create_server(("127.0.0.1", port + distance)):
        start().refuses(f"port {port + distance} of 127.0.0.1 cannot be had: Address already in use", "--port")


def test_an_address_of_sluiced_that_is_taken_is_named(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        start(listen=f"127.0.0.1:{port}").refuses("sluiced did not start", f"port {port} of 127.0.0.1 is in use")


def script(folder, text):
    file = folder / "server"
    file.write_text(text)
    file.chmod(0o755)
    return file


FAKE = """#!{python}
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])))
while True:
    peer, _ = server.accept()
    asked = peer.recv(1000)
    info = "# Server\\r\\nredis_version:6.2.1\\r\\n"
    peer.sendall(b"+PONG\\r\\n" if b"PING" in asked else f"${{len(info)}}\\r\\n{{info}}\\r\\n".encode())
    peer.close()
"""


def test_a_server_that_is_too_old_is_refused(start, tmp_path):
    start(server=script(tmp_path, FAKE.format(python=sys.executable))).refuses(
        "is Redis 6.2.1; in a cluster Sluice needs 7.0 or newer")


def test_a_server_without_clusters_is_refused(start, tmp_path):
    alone = script(tmp_path, f'#!/bin/bash\nexec {redis_program()} "${{@/yes/no}}"\n')
    start(server=alone).refuses("cannot be a node of a cluster")


def test_a_server_that_ends_is_told_with_its_last_words(start, tmp_path):
    start(server=script(tmp_path, "#!/bin/sh\necho no such option; exit 3\n")).refuses(
        "ended with status 3: no such option")


def test_programs_that_are_missing_are_named(start):
    start(server="/none/redis-server").refuses("no program '/none/redis-server'", "--redis-server")


def test_a_cluster_that_was_not_finished_is_refused(start, tmp_path):
    folder = tmp_path / "kept"
    trial = start("--dir", folder, "--rate", "0").ready()
    trial.end(signal.SIGTERM)
    (folder / "node-2" / "nodes.conf").unlink()
    start("--dir", folder).refuses("was not finished")
