"""A program in the background whose output is read line by line."""

import signal
import subprocess

from . import programs
from .gateway import sanitizer_report
from .waiting import Deadline


class Program:
    """Runs until stop(); line() waits for its next line of output."""

    def __init__(self, *command, env=None, stdin=subprocess.DEVNULL):
        self.process = subprocess.Popen(
            [part if isinstance(part, bytes) else str(part) for part in command], stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            env=env or programs.environment())
        self._read = b""

    def has_line(self, seconds):
        """Whether a line arrives within this time."""
        try:
            self._fill(Deadline(seconds))
        except AssertionError:
            return False
        return True

    def _fill(self, deadline):
        while b"\n" not in self._read:
            deadline.wait_readable(self.process.stdout)
            some = self.process.stdout.read(65536)
            if not some:
                raise RuntimeError(f"ended: {self.process.stderr.read().decode()}")
            self._read += some

    def line(self):
        self._fill(Deadline(what="a line of output"))
        line, self._read = self._read.split(b"\n", 1)
        return line.decode()

    def ended(self, *statuses):
        """Waits for its end and checks the exit status (0 by default); returns its stderr."""
        _, said = self.process.communicate(timeout=Deadline().seconds)
        said = said.decode()
        assert self.process.returncode in (statuses or (0,)), (self.process.returncode, said)
        assert not sanitizer_report(said), said
        return said

    def stop(self, how=signal.SIGTERM, statuses=(0,)):
        self.process.send_signal(how)
        return self.ended(*statuses)
