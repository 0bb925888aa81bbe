"""The `sluice` program."""

import subprocess

from . import programs
from .gateway import sanitizer_report
from .program import Program


def _as_argument(value):
    return value if isinstance(value, bytes) else str(value)


class Cli:
    """The `sluice` program."""

    def __init__(self, redis=None, prefix=(), build=None):
        """`prefix`: words before the command, for example to run it in a namespace. `build`: the build folder of
        another tree."""
        self.environment = programs.environment(**({"SLUICE_REDIS": redis.url} if redis else {}))
        self.prefix = list(prefix)
        self.build = build

    def start(self, *arguments, **more):
        """Starts it in the background."""
        return Program(programs.sluice(self.build), *arguments, env=self.environment, **more)

    def run(self, *arguments, status=0, given=""):
        """Runs it to its end, checks the exit status, and returns what it printed. `given`: its standard input."""
        self.done = done = subprocess.run(
            [*self.prefix, programs.sluice(self.build), *map(_as_argument, arguments)], env=self.environment, timeout=120,
            input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert not sanitizer_report(done.stderr), done.stderr
        assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stderr}"
        return done.stdout.removesuffix("\n")

    def ids(self, *arguments):
        return self.run(*arguments).split()
