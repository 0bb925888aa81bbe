"""Deadlines. Tests wait for events, never for time; a deadline only limits the waiting."""

import os
import select
import threading
import time

# Room for slow machines: SLUICE_TEST_TIMEOUT_FACTOR=5 multiplies every deadline by five.
TIMEOUT_FACTOR = float(os.environ.get("SLUICE_TEST_TIMEOUT_FACTOR", "1"))
USUAL_S = 20.0


class DeadlinePassed(AssertionError):
    """What a test waited for did not happen in time."""


class Deadline:
    def __init__(self, seconds=None, what="the awaited event"):
        self.what = what
        self.seconds = (USUAL_S if seconds is None else seconds) * TIMEOUT_FACTOR
        self.at = time.monotonic() + self.seconds

    def left(self):
        """Returns the seconds left; raises if there are none."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise DeadlinePassed(f"{self.what}: not within {self.seconds:g} s")
        return left

    def wait_readable(self, fd):
        if not select.select([fd], [], [], self.left())[0]:
            raise DeadlinePassed(f"{self.what}: not within {self.seconds:g} s")


def eventually(condition, what, seconds=None):
    """Returns the first true result of condition().

    Only for facts that are not announced (a number in /metrics, a process table); each check is a request to the
    server, with a short pause between two checks."""
    deadline = Deadline(seconds, what)
    pause = threading.Event()
    while True:
        result = condition()
        if result:
            return result
        pause.wait(min(0.02, deadline.left()))


def next_millisecond():
    """Ids within a millisecond are ordered by shard: what is done after this call is newer in all of them."""
    before = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == before:
        time.sleep(0.0001)
