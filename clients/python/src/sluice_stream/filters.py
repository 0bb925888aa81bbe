"""Named filters on one connection (docs/streaming-api.md, "Many filters over one connection"): what a server was asked
for, and what it has answered. No I/O."""

import dataclasses
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from .errors import Refused, SluiceError
from .messages import FilterWarning
from .session import Interrupted, parameters_of

PASSING = {"busy", "draining", "no_memory", "quota", "rate_limited", "redis_away", "timeout"}
Filter = Mapping[str, Any]
Send = Callable[[dict[str, Any]], None]
Answer = Future[list[FilterWarning]]


@dataclasses.dataclass
class Change:
    op: str
    name: str
    before: Filter | None  # the filter that had this name before
    answer: Answer
    is_opening: bool = False  # one of those with which a connection begins


class Filters:
    def __init__(self, filters: Mapping[str, Filter]) -> None:
        self._wanted = dict(filters)
        self._changes: list[Change] = []  # not answered yet
        self._send: Send | None = None
        self._over: BaseException | None = None  # why there are no more answers

    def change(self, name: str, wanted: Filter | None) -> Answer:
        """`wanted` None: the filter is removed."""
        answer: Answer = Future()
        if self._over:
            answer.set_exception(self._over)
            return answer
        op, before = "unsubscribe" if wanted is None else "subscribe", self._wanted.pop(name, None)
        if wanted is not None:
            self._wanted[name] = wanted  # after all others
        self._changes.append(Change(op, name, before, answer))
        self._say(op, name)
        return answer

    def opened(self, send: Send) -> None:
        """A connection is open: sends all filters, and requests missed events only with the last."""
        self._send = send
        last = {change.name: change for change in self._changes}
        for change in self._changes:
            change.is_opening = change.op == "subscribe" and last[change.name] is change
            if not change.is_opening:
                change.answer.set_result([])
        self._changes = [change for change in self._changes if change.is_opening]
        for number, name in enumerate(self._wanted, 1):
            self._say("subscribe", name, more=number < len(self._wanted))

    def closed(self) -> None:
        self._send = None

    def end(self, why: BaseException | None = None) -> None:
        self._over = self._over or why or SluiceError("the stream has ended")
        for change in self._changes:
            change.answer.set_exception(self._over)
        self._changes = []

    def answered(self, message: dict[str, Any]) -> bool:
        """Whether the message is an answer. Raises an error that ends the connection, or the stream."""
        op, name, error = str(message["op"]), message.get("id"), message.get("error")
        if not op.startswith(("subscribe", "unsubscribe")):
            return False
        if error and error.get("code") in PASSING:
            raise Interrupted(error["code"])
        change = next((one for one in self._changes if one.name == name and op.startswith(one.op)), None)
        if change:
            self._changes.remove(change)
        if not error:
            if change:
                change.answer.set_result(message.get("warnings", []))
            return True
        why = Refused(0, str(error.get("code")), str(error.get("message")), error.get("param"), error.get("at"))
        if change is None:
            raise why  # there is no caller to tell
        self._wanted.pop(change.name, None)
        if change.before is not None:
            self._wanted[change.name] = change.before
        change.answer.set_exception(why)
        if change.is_opening:
            raise Interrupted(why.code, 0)  # the previous one is still wanted, and `more` was promised
        return True

    def _say(self, op: str, name: str, more: bool = False) -> None:
        if self._send is None:
            return
        operation: dict[str, Any] = {"op": op, "id": name}
        if op == "subscribe":
            wanted = self._wanted[name]
            operation["filter"] = {key: wanted.get(key) if isinstance(wanted.get(key), bool) else text
                                   for key, text in parameters_of(wanted).items()}
            if more:
                operation["more"] = True
        self._send(operation)
