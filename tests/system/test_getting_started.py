"""docs/getting-started.md, pasted: its commands as they stand, with the ids that this run gives out."""

import re
import subprocess

from harness import programs
from harness.waiting import Deadline, eventually

PAGE = programs.SOURCE / "docs" / "getting-started.md"


def commands(section):
    """(command, the line printed below it or None) of a section's indented lines."""
    text = PAGE.read_text().split(f"\n## {section}. ")[1].split("\n## ")[0]
    lines = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    lines = lines.replace("\\\n", " ").splitlines()
    for line, below in zip(lines, [*lines[1:], None]):
        command = re.match(r"(?:\$ )?((?:sluice|curl|export) .*)", line)
        if command:
            yield command[1], below if below and below[0] in "0123456789{" else None


class Reader:
    """The shell of somebody who follows the page."""

    def __init__(self, gateway, folder):
        self.gateway, self.ids = gateway, {}
        self.env = programs.environment(SLUICE_DATA_DIR=gateway.data_dir)
        self.env["PATH"] = f"{programs.BUILD}/gateway:{programs.BUILD}/cli:{self.env['PATH']}"
        self.folder = folder
        (folder / "jwt.secret").write_text(gateway.secret_file.read_text())

    def start(self, command):
        for written, given in self.ids.items():
            command = command.replace(written, given)
        command = command.replace("127.0.0.1:8080", f"127.0.0.1:{self.gateway.port}")
        if command.startswith("sluice tail"):
            command = command.replace("tail", f"tail --url http://127.0.0.1:{self.gateway.port}", 1)
        return subprocess.Popen(["bash", "-c", "exec " + command], env=self.env, cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, bufsize=0)

    def run(self, command, printed=None):
        if command.startswith("export TOKEN="):
            command = command.removeprefix("export TOKEN=$(").removesuffix(")")
            self.env["TOKEN"] = self.run(command)
            return None
        done = self.start(command)
        out, err = done.communicate(timeout=Deadline().seconds)
        assert done.returncode == 0, (command, err)
        out = out.decode().strip()
        if printed and printed.isdigit():
            assert out.isdigit(), (command, out)
            self.ids[printed] = out
        return out

    def follow(self, command):
        """Starts a stream that was asked for from now on, and waits until it stands."""
        before = self.gateway.metrics()["sluice_streams_opened_total"]
        stream = self.start(command)
        eventually(lambda: self.gateway.metrics()["sluice_streams_opened_total"] > before,
                   "the stream stands")
        return stream


def test_page_works_as_it_stands(servers, tmp_path):
    gateway = servers.gateway(None)
    reader = Reader(gateway, tmp_path)
    for command, printed in commands(3):
        reader.run(command, printed)
    assert len(reader.ids) == 3

    token, tail, post, curl, resumed = [command for command, _ in commands(4)]
    reader.run(token)
    streams = [reader.follow(tail), reader.follow(curl)]
    reader.run(post)
    for stream in [*streams, reader.follow(resumed)]:
        Deadline(what="the post").wait_readable(stream.stdout)
        line = stream.stdout.readline()
        assert b"A kite in the tree" in line, line
        stream.terminate()
        stream.communicate()

    (curl, _), = commands(5)
    assert '"text":"From my application"' in reader.run(curl)
