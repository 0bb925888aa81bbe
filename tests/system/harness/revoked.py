"""Clients whose tokens are revoked while they listen: how long until their streams end, and what they still receive.
They reconnect with the same token until it is refused."""

import itertools
import threading
import time

from .http import ConnectionEnded
from .library import ask
from .streams import Refused
from .waiting import DeadlinePassed

FIREHOSE = "/v1/stream/firehose"
TRANSPORTS = ["ndjson", "delimited", "sse", "raw-websocket"]
GRACE_MS = 1000  # what was posted this long after the revocation must not reach its clients
DEADLINE_S = 40


def milliseconds(event_id):
    return int(event_id) // 4096


class Victim:
    """One subject after the other, in a thread."""

    def __init__(self, storm, number):
        self.storm, self.number = storm, number
        self.ends = []  # (time of the revocation, Unix time; seconds until its stream was told)
        self.late = []  # (id of the revocation, id of an event that arrived nevertheless)
        self.let_in = self.broken = self.unanswered = 0
        self.faults = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join(3 * DEADLINE_S)

    def _run(self):
        for turn in itertools.count():
            if self._over.wait(0.2):
                return
            transport = TRANSPORTS[(turn + self.number) % len(TRANSPORTS)]
            try:
                self._round(f"victim{self.number}.{turn}", transport)
            except (OSError, ConnectionEnded, DeadlinePassed, Refused):
                self.broken += 1  # before any revocation

    def _open(self, sub, transport):
        return self.storm.gateway.stream(FIREHOSE, transport, token=self.storm.gateway.token(sub=sub))

    def _round(self, sub, transport):
        with self._open(sub, transport) as stream:
            stream.until(lambda message: not message.is_control, DEADLINE_S)
            began, when = time.monotonic(), time.time()
            status, made = ask(self.storm.gateway, "POST", "/v1/revocations", {"sub": sub}, 5, scope="admin", sub="root")
            if status != 201:
                self.unanswered += 1
                return
            if self._listen(stream, made["id"], began + DEADLINE_S):
                self.ends.append((when, time.monotonic() - began))
        self._come_back(sub, transport, made["id"], time.monotonic() + DEADLINE_S)

    def _listen(self, stream, revocation, deadline):
        """Reads until it ends; true: with the reason. Checks what it receives."""
        try:
            while (message := stream.next(max(0.1, deadline - time.monotonic()))) is not None:
                if message.type == "disconnect" and message["code"] == "token_revoked":
                    return True
                if message.is_control or ("cursor" in message and "late" not in message):
                    continue  # the id of an event without the log is not of the time of Redis
                if milliseconds(message["id"]) > milliseconds(revocation) + GRACE_MS:
                    self.late.append((revocation, message["id"]))
        except DeadlinePassed:
            self.faults.append(f"{revocation}: the stream goes on")
        except (OSError, ConnectionEnded):
            pass  # a worker was killed
        return False

    def _come_back(self, sub, transport, revocation, deadline):
        while time.monotonic() < deadline:
            try:
                with self._open(sub, transport) as stream:
                    self.let_in += 1
                    self._listen(stream, revocation, deadline)
            except Refused as refused:
                if refused.response.status == 401:
                    if refused.response.error["code"] != "token_revoked":
                        self.faults.append(f"{revocation}: {refused.response}")
                    return
            except (OSError, ConnectionEnded, DeadlinePassed):
                pass
            time.sleep(0.05)
        self.faults.append(f"{revocation}: never refused")


class Revocations:
    def __init__(self, storm, count=4):
        self.storm = storm
        self.victims = [Victim(storm, number) for number in range(count)]

    def stop(self):
        for victim in self.victims:
            victim.stop()

    def _all(self, name):
        return [one for victim in self.victims for one in getattr(victim, name)]

    def ends(self):
        """(those without a fault, all others): seconds from the request to the stream's end, sorted."""
        rough = [(began - 1, ended + 3) for began, ended, _ in self.storm.history]
        calm, others = [], []
        for when, seconds in self._all("ends"):
            is_calm = all(when > ended or when + seconds < began for began, ended in rough)
            (calm if is_calm else others).append(seconds)
        return sorted(calm), sorted(others)

    def late(self):
        return self._all("late")

    def faults(self):
        return self._all("faults")

    def count(self, name):
        return sum(getattr(victim, name) for victim in self.victims)
