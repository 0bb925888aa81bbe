"""Situations of clients with named filters on one connection: the situations of streams apply to one filter, and these
are about the filters tea and milk."""

from script import CUT, END, SILENCE, at, cursor, disconnect, events, matched, named, refuse, unnamed, upgrade, visit
from situations import Situation

COMPLETE = (disconnect("complete"), END)
TEA, MILK = {"track": "tea"}, {"track": "milk"}
BOTH = {"tea": {"track": "tea", "language": ["en", "ja"]}, "milk": MILK}
BEGINS = (upgrade(), named("tea", more=True, track="tea", language="en,ja"), named("milk", track="milk"))
ADDED = ((1, "milk", MILK),)  # after the first message


def filters(name, *visits, wants, ends="complete", begins=BOTH, changes=(), **more):
    return Situation(name, visits, wants, ends, filters=begins, changes=changes, parameters={}, **more)


def changed(name, *visits, wants, changes=ADDED, begins={"tea": TEA}, **more):
    return filters(name, *visits, wants=wants, begins=begins, changes=changes, **more)


def tea(*steps, **asks):
    """A connection that begins with one filter."""
    return visit(upgrade(), named("tea"), *steps, **asks)


FILTER_SITUATIONS = [
    filters("two filters, and each event says which it matches", visit(
        *BEGINS, matched(11, "tea"), matched(12, "milk"), matched(13, "tea", "milk"), *COMPLETE, since=None, cursors="true"),
            wants=("11 tea", "12 milk", "13 tea milk")),
    filters("cut: all of them are there again, from the cursor on",
            visit(*BEGINS, matched(11, "tea"), CUT), visit(*BEGINS, matched(12, "milk"), CUT, since=at(11)),
            visit(*BEGINS, *COMPLETE, since=at(12)), wants=("11 tea", "12 milk")),
    filters("silence moves the cursor", visit(*BEGINS, cursor(40), CUT), visit(*BEGINS, matched(41, "tea"), *COMPLETE, since=at(40)),
            wants=("41 tea",)),
    filters("draining: all come again", visit(*BEGINS, matched(11, "tea"), disconnect("draining", 12, retry_ms=10), END),
            visit(*BEGINS, matched(13, "milk"), *COMPLETE, since=at(12)), wants=("11 tea", "13 milk")),
    filters("a refused upgrade", visit(refuse(503, "redis_away", Retry_After=0)), visit(*BEGINS, matched(11, "tea"), *COMPLETE),
            wants=("11 tea",)),

    # --- changes
    changed("one is added", tea(matched(11, "tea"), named("milk", track="milk"), matched(12, "tea", "milk"), *COMPLETE),
            wants=("11 tea", "subscribed", "12 tea milk")),
    changed("one that was added is there after a cut", tea(matched(11, "tea"), named("milk"), matched(12, "milk"), CUT),
            visit(upgrade(), named("tea", more=True), named("milk", track="milk"), *COMPLETE, since=at(12)),
            wants=("11 tea", "subscribed", "12 milk")),
    changed("one is added to none", visit(upgrade(), *events(11), named("milk", track="milk"), matched(12, "milk"), *COMPLETE),
            wants=(11, "subscribed", "12 milk"), begins={}),
    changed("one is replaced", visit(*BEGINS, matched(11, "tea"), named("tea", track="oolong"), matched(12, "milk", "tea"), CUT),
            visit(upgrade(), named("milk", more=True), named("tea", track="oolong"), *COMPLETE, since=at(12)),
            wants=("11 tea", "subscribed", "12 milk tea"), begins=BOTH, changes=((1, "tea", {"track": "oolong"}),)),
    changed("one is removed, and stays so", visit(*BEGINS, matched(11, "tea", "milk"), unnamed("tea"), matched(12, "milk"), CUT),
            visit(upgrade(), named("milk"), matched(13, "milk"), *COMPLETE, since=at(12)),
            wants=("11 tea milk", "unsubscribed", "12 milk", "13 milk"), begins=BOTH, changes=((1, "tea", None),)),
    changed("events come before the answer", tea(
        matched(11, "tea"), matched(12, "tea"), matched(13, "tea"), named("milk"), matched(14, "milk"), *COMPLETE),
            wants=("11 tea", "subscribed", "12 tea", "13 tea", "14 milk")),

    # --- refused
    changed("one is refused, and those that were there stay",
            tea(matched(11, "tea"), named("milk", "syntax"), matched(12, "tea"), CUT), tea(*COMPLETE, since=at(12)),
            wants=("11 tea", "syntax", "12 tea")),
    changed("a refused replacement: the one before stays", visit(*BEGINS, matched(11, "tea"), named("milk", "syntax", track="("), CUT),
            visit(*BEGINS, *COMPLETE, since=at(11)), wants=("11 tea", "syntax"), begins=BOTH, changes=((1, "milk", {"track": "("}),)),
    filters("one of those it begins with is refused", visit(upgrade(), named("tea", "syntax", more=True), SILENCE),
            wants=(), ends="syntax"),
    filters("one is taken no longer after a cut", visit(*BEGINS, matched(11, "tea"), CUT),
            visit(upgrade(), named("tea", more=True), named("milk", "too_many_rules"), SILENCE), wants=("11 tea",), ends="too_many_rules"),
    filters("one is refused for now: all come again", visit(upgrade(), named("tea", "busy", more=True), SILENCE),
            visit(*BEGINS, matched(11, "tea"), *COMPLETE), wants=("11 tea",)),

    # --- cut before the answer
    changed("a new one has its answer on the next connection", tea(matched(11, "tea"), CUT),
            visit(upgrade(), named("tea", more=True), named("milk"), matched(12, "milk"), *COMPLETE, since=at(11)),
            wants=("11 tea", "subscribed", "12 milk")),
    changed("the answer is a refusal: what was missed does not wait for it", tea(matched(11, "tea"), CUT),
            visit(upgrade(), named("tea", more=True), named("milk", "syntax"), SILENCE, since=at(11)),
            tea(matched(12, "tea"), *COMPLETE, since=at(11)), wants=("11 tea", "syntax", "12 tea")),

    changed("ended for good while an answer is waited for", tea(matched(11, "tea"), disconnect("ended", 11), END),
            wants=("11 tea", "ended"), ends="ended"),

    filters("two servers: each event once, by the ids", visit(*BEGINS, matched(11, "tea"), matched(12, "milk"), *COMPLETE),
            wants=("11 tea", "12 milk"), beside=(visit(*BEGINS, matched(11, "tea"), matched(12, "milk"), *COMPLETE),)),
]
