"""The commands in docs/http-api.md and the README, run unchanged: do they print what is shown?"""

import re

import pytest

from harness import programs
from harness.pages import Shell, examples, pattern, without_space
from harness.program import Program


@pytest.fixture
def shell(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--run-tasks", "on")
    shell = Shell(SLUICE_REDIS=redis.url, URL=f"http://127.0.0.1:{gateway.port}", TOKEN="", SECRET=str(gateway.secret_file))
    shell.run('curl() { command curl -sS "$@"; }')
    shell.redis = redis
    yield shell
    shell.close()


@pytest.mark.parametrize("page, begin, end", [("docs/http-api.md", "# The HTTP API", None),
                                              ("README.md", "## The HTTP API", "## The command")])
def test_what_the_page_says_is_what_happens(shell, page, begin, end):
    text = (programs.SOURCE / page).read_text().split(begin, 1)[1]
    found = examples(text.split(end, 1)[0] if end else text)
    assert len(found) > 5
    # the page tells its reader to set the server's address
    for command, expected in found:
        if not command.startswith("SECRET="):
            printed = shell.run(command)
            shell.redis.wait_tasks()
            assert re.match(pattern(expected) + "$", without_space(printed)), \
                f"$ {command}\n{printed}\nexpected: {expected}"
    assert not shell.errors()


RUNS_UNTIL_STOPPED = ("sluice tail home", "sluice worker", "sluice top", "sluice cluster try")


def test_the_command_lines_of_the_readme_work_in_their_order(servers, tmp_path):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    Program(programs.example("demo-producer"), "--redis", redis.url, "--per-minute", "1000000", "--count", "300",
            programs.SOURCE / "examples" / "demo-producer" / "posts.jsonl").ended()
    token = gateway.token(scope="stream:filter stream:firehose stream:home read write")
    shell = Shell(SLUICE_REDIS=redis.url, SLUICE_URL=gateway.url, SLUICE_TOKEN=token, SECRET=str(gateway.secret_file))
    shell.run(f"cd {tmp_path}")
    block = re.search(r"^## The command line\n\n(.*?)\n\n", (programs.SOURCE / "README.md").read_text(), re.M | re.S)[1]
    commands = [line.split("  #")[0].strip() for line in block.splitlines()]
    assert len(commands) > 10
    for command in commands:
        if not command.startswith(RUNS_UNTIL_STOPPED):
            printed = shell.run(command.replace("build/run/secret", '"$SECRET"') + " && echo worked")
            assert printed.rstrip().endswith("worked"), (command, printed, shell.errors())
    shell.close()
