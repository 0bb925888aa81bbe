"""Commands in a page of the manual, run unchanged, and what they should print."""

import os
import re
import subprocess
import tempfile

from . import programs
from .waiting import Deadline

END = "-- end of a command --"


def examples(text):
    """Returns (command, what it should print) for each `$ ` line."""
    found, is_block = [], False
    for line in text.splitlines():
        is_block = line.startswith("    ") and (is_block or line.startswith("    $ "))
        if line.startswith("    $ "):
            found.append([line[6:], []])
        elif is_block:
            found[-1][1].append(line.strip())
    return [(command, " ".join(output)) for command, output in found]


def without_space(text):
    return re.sub(r"\s+", "", text)


def pattern(expected):
    """Ids and times differ each time, `...` is anything, and lines are wrapped."""
    text = re.escape(without_space(expected))
    text = re.sub(r"\d{4}\\-\d\d\\-\d\dT[\d:.\\]+Z", lambda _: r"[-T:.Z\d]+", text)
    text = re.sub(r"\d{12,}", lambda _: r"\d+", text)
    return text.replace(r"\.\.\.", ".*")


def environment(**more):
    """Finds `sluice`; `more` says where `sluiced` is."""
    return programs.environment(
        **more, PATH=f"{os.path.dirname(programs.sluice())}:{os.environ['PATH']}")


class Shell:
    """A shell that runs commands one after the other."""

    def __init__(self, **variables):
        self.said = tempfile.TemporaryFile("w+")  # standard error
        self.process = subprocess.Popen(
            ["bash", "-u"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said,
            bufsize=0, env=environment(**variables))

    def run(self, command):
        """Returns what it prints."""
        self.process.stdin.write(f"{command}\necho; echo '{END}'\n".encode())
        deadline, printed = Deadline(60, f"the end of {command}"), b""
        while f"\n{END}\n".encode() not in printed:
            deadline.wait_readable(self.process.stdout)
            some = os.read(self.process.stdout.fileno(), 65536)
            assert some, f"the shell ended at {command}: {self.errors()}"
            printed += some
        return printed.decode().removesuffix(f"\n{END}\n")

    def errors(self):
        self.said.seek(0)
        return self.said.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait(Deadline().seconds)
        self.process.stdout.close()
        self.said.close()
