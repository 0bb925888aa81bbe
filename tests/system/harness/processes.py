"""Facts about processes, read from /proc."""

import contextlib
import os
import pathlib
import signal


def children(pid):
    """The direct children of `pid` that are alive."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except FileNotFoundError:
            pass
    return found


def descendants(pid):
    """`pid` and all its descendants."""
    return [pid] + [each for child in children(pid) for each in descendants(child)]


@contextlib.contextmanager
def stopped(pids):
    """Stops them while the context lasts; processes that end meanwhile are ignored."""
    def tell(what):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, what)
    tell(signal.SIGSTOP)
    try:
        yield
    finally:
        tell(signal.SIGCONT)


def name(pid):
    """The program's name; empty if the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_alive(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def cpu_seconds(pid):
    """User and system time, in steps of a clock tick."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    """Private and shared memory in RAM."""
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))
