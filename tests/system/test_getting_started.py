"""docs/getting-started.md, section by section, run unchanged in one shell."""

import os
import re
import signal
import socket
import urllib.error
import urllib.request

import pytest

from harness import programs
from harness.pages import Shell, examples, pattern, without_space
from harness.ports import steady_port, steady_ports
from harness.waiting import eventually

PAGE = (programs.SOURCE / "docs/getting-started.md").read_text()


def section(number):
    """Returns its text, each command on one line."""
    return PAGE.split(f"\n## {number}. ")[1].split("\n## ")[0].replace("\\\n", " ")


class Reader:
    """Somebody who follows the page, with a server that is already running."""

    def __init__(self, gateway, folder):
        self.gateway, self.output = gateway, folder / "output"
        self.shell = Shell(SLUICE_DATA_DIR=gateway.data_dir)
        self.shell.run(f"cd {folder}; cp {gateway.secret_file} jwt.secret")

    def local(self, command):
        """The page tells its reader to set the server's address, and shows what a terminal does."""
        url = f"http://127.0.0.1:{self.gateway.port}"
        return command.replace("http://127.0.0.1:8080", url).replace("sluice tail", f"sluice tail --url {url} --pretty")

    def expect(self, expected, printed):
        assert re.match(pattern(expected) + "$", without_space(printed)), (expected, printed)

    def paste(self, command, expected):
        if not command.endswith("&"):
            self.expect(expected, self.shell.run(self.local(command)))
            return
        before = self.gateway.metrics()["sluice_streams_opened_total"]
        self.shell.run(f"{self.local(command[:-1])} >{self.output} &")
        eventually(lambda: self.gateway.metrics()["sluice_streams_opened_total"] > before,
                   "the stream stands")
        if expected:
            self.see(expected)

    def see(self, expected):
        """Expects the output of the stream that runs in the background."""
        eventually(lambda: re.match(pattern(expected), without_space(self.output.read_text())),
                   f"the stream brings {expected}")


def test_page_works_as_it_stands(servers, tmp_path):
    reader = Reader(servers.gateway(None), tmp_path)
    for command, expected in examples(section(3)):
        reader.paste(command, expected)

    export = re.search(r"^    (export TOKEN=.*)$", section(4), re.M)[1]
    reader.shell.run(export)
    tail, (post, printed), *rest = examples(section(4))
    reader.paste(*tail)
    post_id, event = printed.split(" ", 1)
    reader.paste(post, post_id)
    reader.see(event)
    assert [command for command, _ in rest][::2] == ["kill $!"] * 3
    for command, expected in rest:
        reader.paste(command, expected)

    (curl, expected), (end, _) = examples(section(5))
    reader.paste(curl, expected)
    assert end == "kill %1"  # the server of the page is a job of its shell
    reader.shell.close()


NODES = [str(port) for port in range(7001, 7007)]


@pytest.fixture
def nodes(tmp_path):
    """{port in the page: port here}; what was started there ends with the test."""
    first = steady_ports(len(NODES), 10000)
    yield {port: str(first + n) for n, port in enumerate(NODES)}
    for file in tmp_path.glob("node-*/redis.pid"):
        os.kill(int(file.read_text()), signal.SIGKILL)


def answers(url):
    try:
        return urllib.request.urlopen(url).status == 200
    except urllib.error.URLError:
        return False


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(port))) == 0


def test_a_cluster_is_set_up_as_the_page_says(tmp_path, nodes):
    def local(text):
        return re.sub(r"\b700[1-6]\b", lambda port: nodes[port[0]], text)
    page = section(7)
    url = f"127.0.0.1:{steady_port()}"
    (tmp_path / "redis.conf").write_text(re.search(r"^```\n(.*?)^```$", page, re.M | re.S)[1])
    shell = Shell()
    shell.run(f"cd {tmp_path}")
    commands = examples(local(page))
    for command, expected in commands:
        if command.endswith("&"):
            shell.run(command.replace("sluiced", f"{programs.sluiced()} --listen {url}")[:-1] + ">log 2>&1 &")
        else:
            if "--cluster create" in command:
                eventually(lambda: all(listens(port) for port in nodes.values()), "all nodes are there")
            printed = shell.run(command)
            assert not expected or re.match(pattern(expected) + "$", without_space(printed), re.S), (command, expected, printed)
        if command.startswith("sluiced"):
            eventually(lambda: answers(f"http://{url}/readyz"), "sluiced is ready", 60)
    assert commands[-1][0].endswith("shutdown now; done")
    eventually(lambda: not list(tmp_path.glob("node-*/redis.pid")), "the nodes have ended", 60)
    shell.close()
