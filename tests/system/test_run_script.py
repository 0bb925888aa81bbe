"""scripts/run: its printed commands are run unchanged, then Ctrl-C."""

import json
import os
import re
import signal
import subprocess

from harness import processes, programs
from harness.ports import steady_port
from harness.program import Program
from harness.waiting import Deadline


def descendants(pid):
    return [below for child in processes.children(pid) for below in [child, *descendants(child)]]


def pasted(printed, word):
    """Returns the printed command that begins with `word`, with its continuation lines joined."""
    lines = "\n".join(printed).replace("\\\n", " ").splitlines()
    return next(line.strip() for line in lines if line.strip().startswith(word))


def test_what_it_prints_works_and_ctrl_c_ends_all(tmp_path):
    run = Program(programs.SOURCE / "scripts" / "run", "--listen", f"127.0.0.1:{steady_port()}",
                  "--data-dir", tmp_path / "data", "--rate", "3000")
    printed = []
    deadline = Deadline(300, "scripts/run is ready")
    while not printed or "Ctrl-C" not in printed[-1]:
        deadline.left()
        if run.has_line(deadline.left()):
            printed.append(run.line())
    assert os.stat(tmp_path / "data" / "secret").st_mode & 0o777 == 0o600
    started = descendants(run.process.pid)
    assert {processes.name(pid) for pid in started} >= {"redis-server", "demo-producer"}
    token = re.search("export TOKEN=(.*)", "\n".join(printed)).group(1)
    env = {**programs.environment(), "TOKEN": token}

    def first_line(command):
        """Returns the first line that the command prints, and stops it."""
        with subprocess.Popen(["bash", "-c", "exec " + command], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL) as listener:
            Deadline(60, command).wait_readable(listener.stdout)
            line = listener.stdout.readline()
            listener.terminate()
            return line
    assert json.loads(first_line(pasted(printed, "curl -N -H")))["type"] in ("post", "delete")
    assert first_line(pasted(printed, "curl -N -G").replace("curl -N", "curl -sN")).startswith(
        ("id: ", ":", "retry"))
    tail = next(line.strip() for line in printed if "sluice tail" in line)
    assert json.loads(first_line(tail))["type"] in ("post", "delete")
    home = pasted(printed, "curl -N -H").replace("firehose", "home")
    assert json.loads(first_line(home))["type"] in ("post", "delete")
    posted = json.loads(first_line(pasted(printed, "curl -H").replace("curl", "curl -s")))
    assert posted["user"]["login"] == "you" and posted["text"] == "Hello, tea!"
    for command in [line.strip() for line in printed if " --redis " in line and "/sluice " in line]:
        said = subprocess.run(["bash", "-c", command], env=env, check=True, capture_output=True)
        assert said.stdout.strip().isdigit()

    run.process.send_signal(signal.SIGINT)
    run.ended()
    assert not any(map(processes.is_alive, started))
