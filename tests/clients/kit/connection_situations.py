"""Situations of clients with several streams on one connection: the first tracks tea, another one milk."""

from script import CUT, EXPIRING, SILENCE, asked, at, disconnect, events, left, of, of_all, post, refuse, renewed, say, upgrade, visit
from situations import Situation

MILK = ({"track": "milk"},)
OPENED = (asked("tea"), asked("milk"))
COMPLETE = disconnect("complete")
ALL_COMPLETE = (*of("tea", COMPLETE), *of("milk", COMPLETE), SILENCE)


def streams(name, *visits, wants, ends="complete", **more):
    return Situation(name, visits, wants, ends, others=MILK, **more)


CONNECTION_SITUATIONS = [
    streams("two streams on one connection", visit(
        upgrade(), *OPENED, *of("tea", *events(11)), *of("milk", *events(21)), *of("tea", *events(12)), *ALL_COMPLETE),
            wants=(11, 12, 21)),
    streams("cut: each goes on from its own cursor",
            visit(upgrade(), *OPENED, *of("tea", *events(11)), *of("milk", *events(21)), CUT),
            visit(upgrade(), asked("tea", since=at(11)), asked("milk", since=at(21)), *of("tea", *events(12)),
                  *of("milk", *events(22)), *ALL_COMPLETE), wants=(11, 12, 21, 22)),
    streams("silence: a cursor of one is of no other",
            visit(upgrade(), *OPENED, *of("milk", say({"type": "cursor", "id": at(40)})), CUT),
            visit(upgrade(), asked("tea", since=None), asked("milk", since=at(40)), *of("tea", *events(11)), *ALL_COMPLETE),
            wants=(11,)),
    streams("one is complete, and the other goes on", visit(
        upgrade(), *OPENED, *of("milk", *events(21), COMPLETE), left("milk"), *of("tea", *events(11), COMPLETE), left("tea"), SILENCE),
            wants=(11, 21)),
    streams("one is complete, and is not opened again",
            visit(upgrade(), *OPENED, *of("milk", *events(21), COMPLETE), left("milk"), CUT),
            visit(upgrade(), asked("tea"), *of("tea", *events(11), COMPLETE), SILENCE), wants=(11, 21)),
    streams("one is refused, and the other goes on", visit(
        upgrade(), asked("tea"), asked("milk", "syntax"), left("milk"), *of("tea", *events(11), COMPLETE), SILENCE), wants=(11,)),
    streams("the first is refused, and the other goes on", visit(
        upgrade(), asked("tea", "insufficient_scope"), asked("milk"), left("tea"), *of("milk", *events(21), COMPLETE), SILENCE),
            wants=(21,), ends="insufficient_scope"),
    streams("one is refused for now, and is asked for again", visit(
        upgrade(), asked("tea"), asked("milk", "busy"), *of("tea", *events(11)), asked("milk"), *of("milk", *events(21)),
        *ALL_COMPLETE), wants=(11, 21)),
    streams("one is too slow, and goes on where it was on the same connection", visit(
        upgrade(), *OPENED, *of("milk", *events(21), disconnect("too_slow", 22, retry_ms=10)), *of("tea", *events(11)),
        asked("milk", since=at(22)), *of("milk", *events(23)), *ALL_COMPLETE), wants=(11, 21, 23)),
    streams("one is ended for good, and its connection is not", visit(
        upgrade(), *OPENED, *of("tea", *events(11), disconnect("ended", 11)), left("tea"), *of("milk", *events(21), COMPLETE), SILENCE),
            wants=(11, 21), ends="ended"),
    streams("the connection is ended for good, and all of its streams are",
            visit(upgrade(), *OPENED, *of("milk", *events(21)), *of("tea", disconnect("replaced", 11)),
                  *of("milk", disconnect("replaced", 21)), of_all(disconnect("replaced")), SILENCE), wants=(21,), ends="replaced"),
    streams("draining: all go on",
            visit(upgrade(), *OPENED, *of("tea", *events(11), disconnect("draining", 12, retry_ms=10)),
                  *of("milk", disconnect("draining", 20, retry_ms=10)), of_all(disconnect("draining", retry_ms=10)), SILENCE),
            visit(upgrade(), asked("tea", since=at(12)), asked("milk", since=at(20)), *of("tea", *events(13)), *ALL_COMPLETE),
            wants=(11, 13)),
    streams("one token for all", visit(
        upgrade(), *OPENED, of_all(EXPIRING), renewed("token-2"), *of("tea", *events(11)), *of("milk", *events(21)), *ALL_COMPLETE),
            wants=(11, 21)),
    streams("a refused upgrade is that of all", visit(refuse(503, "redis_away", Retry_After=0)),
            visit(upgrade(), *OPENED, *of("tea", *events(11)), *ALL_COMPLETE), wants=(11,)),
    streams("what is of no stream here is not given", visit(
        upgrade(), *OPENED, of_all(say({**post(12), "stream": "nobodys"})), *of("tea", *events(11)), *ALL_COMPLETE), wants=(11,)),
]
