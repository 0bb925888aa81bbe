"""Stores what happened in a storm, for debugging."""

import pathlib
import shutil
import time

from .producers import Outsider
from .redis_server import shard_of


def _clock(seconds):
    return time.strftime("%H:%M:%S", time.gmtime(seconds)) + f"{seconds % 1:.3f}"[1:]


def _event(event_id):
    """An event id with its time and shard."""
    return f"{event_id} ({_clock((event_id // 4096 + Outsider.EPOCH_MS) / 1000)}, shard {shard_of(event_id)})"


def _show(part):
    if part is None:
        return "connected"
    return _event(part) if isinstance(part, int) else str(part)


def keep(storm, folder):
    """Writes to a new folder: the logs of all servers, the faults, and of each client what went wrong and all that it
    has received, with times in UTC."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    for log in [*storm.servers.folder.glob("**/stderr"), *storm.servers.folder.glob("**/redis.log")]:
        shutil.copy(log, folder / "-".join(log.relative_to(storm.servers.folder).parts))
    (folder / "faults").write_text("".join(f"{_clock(began)} to {_clock(ended)} {name}\n"
                                           for began, ended, name in storm.history))
    (folder / "events").write_text("".join(f"{_event(event_id)}\n" for event_id in sorted(storm.in_log)))
    for number, client in enumerate(storm.clients):
        wrong = {"missing": client.missing(storm.wanted[client.kind.name]), "twice": client.twice(storm.in_log),
                 "untold": client.untold(storm.in_log)}
        with open(folder / f"client{number}-{client.kind.name}-{client.transport}".replace(" ", "-"), "w") as out:
            for name, ids in wrong.items():
                out.writelines(f"{name} {_event(event_id)}\n" for event_id in ids)
            out.writelines(f"{_clock(at)} {_show(part)}\n" for at, part in client.story)
