"""The commands in docs/http-api.md and the README, pasted as they stand: do they print that?"""

import os
import re
import subprocess

import pytest

from harness import programs

END = "-- end of a command --"


def examples(text):
    """(command, what it should print) of each `$ ` line."""
    found, is_block = [], False
    for line in text.splitlines():
        is_block = line.startswith("    ") and (is_block or line.startswith("    $ "))
        if line.startswith("    $ "):
            found.append([line[6:], []])
        elif is_block:
            found[-1][1].append(line.strip())
    return [(command, " ".join(output)) for command, output in found]


def pattern(expected):
    """Ids and times are others each time, `...` is anything, and lines are folded."""
    text = re.escape(re.sub(r"\s+", "", expected))
    text = re.sub(r"\d{4}\\-\d\d\\-\d\dT[\d:.\\]+Z", lambda _: r"[-T:.Z\d]+", text)
    text = re.sub(r"\d{12,}", lambda _: r"\d+", text)
    return text.replace(r"\.\.\.", ".*") + "$"


def run(commands, gateway):
    """What each prints, in one shell."""
    script = 'curl() { command curl -sS "$@"; }\n' + "".join(f"{command}\necho; echo '{END}'\n" for command in commands)
    done = subprocess.run(
        ["bash", "-eu", "-c", script], text=True, timeout=120, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**programs.environment(), "URL": f"http://127.0.0.1:{gateway.port}", "TOKEN": "",
             "SECRET": str(gateway.secret_file),
             "PATH": f"{os.path.dirname(programs.sluice())}:{os.environ['PATH']}"})
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split(END)[:-1]


@pytest.mark.parametrize("page, begin, end", [("docs/http-api.md", "# The HTTP API", None),
                                              ("README.md", "## The HTTP API", "## The command")])
def test_what_the_page_says_is_what_happens(servers, page, begin, end):
    gateway = servers.gateway(servers.redis())
    text = (programs.SOURCE / page).read_text().split(begin, 1)[1]
    found = examples(text.split(end, 1)[0] if end else text)
    assert len(found) > 5
    # where the server is, the page says for its reader
    found = [(command, output) for command, output in found if not command.startswith("SECRET=")]
    printed = run([command for command, _ in found], gateway)
    for (command, expected), output in zip(found, printed, strict=True):
        assert re.match(pattern(expected), re.sub(r"\s+", "", output)), \
            f"$ {command}\n{output}\nexpected: {expected}"
