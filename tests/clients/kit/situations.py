"""Situations of clients of streams. `wants`: the messages that must be passed on, by number or type; `ends`: how."""

import dataclasses
import json

from script import (COMPLETE, CUT, END, EXPIRING, FIRST, ONLY_HTTP, ONLY_WEBSOCKET, RESET, SILENCE, answer, at, bytewise, chunk,
                    cursor, disconnect, events, head, http, post, refuse, renewed, say, sse, visit)

@dataclasses.dataclass(frozen=True)
class Situation:
    name: str
    visits: tuple
    wants: tuple
    ends: str = "complete"
    renews: bool = True           # the token is a callback, otherwise a single text
    parameters: dict = dataclasses.field(default_factory=lambda: {"track": "tea"})
    silence_s: float = 20.0
    max_tries: int | None = None
    beside: tuple = ()            # the visits of another server, read at the same time; then the order does not matter
    filters: dict | None = None   # by name, if the situation is about them
    changes: tuple = ()           # of filters: (after this many messages, name, the new filter or None); each is answered
    others: tuple = ()            # parameters of further streams on the connection, or of `beside`; `ends` is that of the first


SHORT_S = 2.0  # of silence, which is waited for; the visit after it must not take that long on a busy machine
GAP = {"type": "gap", "from": at(1), "to": at(5), "reason": "retention"}
LATE = f"{at(30)}~{at(20)}:2"
WARNING = {"type": "warning", "code": "behind", "events": 9, "ms": 5}
SKIPPED = {"type": "skipped", "id": at(12), "events": 3}
HELLO = {"type": "hello", "stream": "filter", "cursor": at(9)}
HTML = b"<html><body>502 Bad Gateway</body></html>"

SITUATIONS = [
    # --- the normal course
    Situation("events come and it is complete", (visit(head(), *events(11, 12), disconnect("complete", 12), END,
                                                       path="/v1/stream/filter", track="tea", since=None),), (11, 12)),
    Situation("two events in one chunk", (visit(head(), chunk(sse(post(11), at(11)) + sse(post(12), at(12)))),), (11, 12)),
    Situation("an event in many chunks", (visit(head(), *bytewise(sse(post(11), at(11)))),), (11,)),
    Situation("a character is cut in two", (visit(head(), *bytewise(
        f'id: {at(11)}\nevent: post\ndata: {{"id":"{at(11)}","type":"post","post":{{"text":"'.encode() + "caf\u00e9 \U0001f375".encode()
        + b'"}}\n\n')),), (11,)),
    Situation("lines end by CRLF", (visit(head(), chunk(sse(post(11), at(11)).replace(b"\n", b"\r\n"))),), (11,)),
    Situation("comments and empty blocks say nothing", (visit(head(), chunk(b":\n\n"), *events(11), chunk(b"\n\n: hi\n\n")),),
              (11,)),
    Situation("a field that nobody knows", (visit(head(), chunk(b"colour: red\n" + sse(post(11), at(11)))),), (11,)),
    Situation("data in two lines", (visit(head(), chunk(
        f'id: {at(11)}\nevent: post\ndata: {{"id":"{at(11)}",\ndata: "type":"post","post":{{}}}}\n\n'.encode())),), (11,)),
    Situation("an empty stream that is complete", (visit(head(), disconnect("complete"), END),), ()),
    Situation("hello is not given", (visit(head(), say(HELLO), *events(11)),), (11,)),
    Situation("a warning is given", (visit(head(), say(WARNING), *events(11)),), ("warning", 11)),
    Situation("a gap is given, in its place", (visit(head(), *events(11), say(GAP), *events(12)),), (11, "gap", 12)),
    Situation("skipped is given, and moves the cursor", (
        visit(head(), *events(11), say(SKIPPED, at(12)), CUT), visit(head(), *events(13), since=at(12))), (11, "skipped", 13)),
    Situation("a message of a type that nobody knows is given", (
        visit(head(), say({"type": "rainbow", "id": "7"}), *events(11)),), ("rainbow", 11)),
    Situation("an event without a cursor of its own", (
        visit(head(), *events(11), say(post(5)), CUT), visit(head(), *events(12), since=at(11))), (11, 5, 12)),
    Situation("a large event", (visit(head(), say(post(11, filler="x" * 900_000), at(11))),), (11,)),
    Situation("many events", (visit(head(), *events(*range(11, 511))),), tuple(range(11, 511))),

    # --- broken connections
    Situation("cut between two events", (visit(head(), *events(11), CUT), visit(head(), *events(12), since=at(11))), (11, 12)),
    Situation("cut inside of an event", (
        visit(head(), *events(11), chunk(sse(post(12), at(12))[:30]), CUT), visit(head(), *events(12), since=at(11))), (11, 12)),
    Situation("cut inside of a chunk", (
        visit(head(), *events(11), http(b"ff\r\nid: 10000000000012\n"), CUT), visit(head(), *events(12), since=at(11))), (11, 12)),
    Situation("cut before the blank line", (
        visit(head(), *events(11), chunk(sse(post(12), at(12))[:-1]), CUT), visit(head(), *events(12), since=at(11))), (11, 12)),
    Situation("an incomplete event before a proper end", (
        visit(head(), *events(11), chunk(sse(post(12), at(12))[:-1]), END), visit(head(), *events(12), since=at(11))), (11, 12)),
    Situation("cut inside of the head", (visit(http(b"HTTP/1.1 200 OK\r\nConte"), CUT), visit(head(), *events(11))), (11,)),
    Situation("cut before the head", (visit(CUT), visit(head(), *events(11), since=None)), (11,)),
    Situation("reset", (visit(head(), *events(11), RESET), visit(head(), *events(12), since=at(11))), (11, 12)),
    Situation("reset before the head", (visit(RESET), visit(head(), *events(11))), (11,)),
    Situation("the body ends without a word", (visit(head(), *events(11), END), visit(head(), *events(12), since=at(11))), (11, 12)),
    Situation("cut five times", tuple(visit(head(), *events(n), CUT) for n in range(11, 16)), tuple(range(11, 16))),
    Situation("nothing but cuts", (visit(CUT), visit(CUT), visit(CUT)), (), "TooManyTries", max_tries=2),
    Situation("silence", (visit(head(), *events(11), SILENCE), visit(head(), *events(12), since=at(11))), (11, 12),
              silence_s=SHORT_S),
    Situation("silence before the head", (visit(SILENCE), visit(head(), *events(11))), (11,), silence_s=SHORT_S),
    Situation("keep-alives move the cursor", (visit(head(), *events(11), cursor(40), CUT), visit(head(), since=at(40))),
              (11,)),
    Situation("the beginning is a cursor", (visit(head(), cursor(9), CUT), visit(head(), *events(11), since=at(9))), (11,)),
    Situation("a shard is behind: the cursor is a longer one", (
        visit(head(), say(post(20, late=True, cursor=LATE), LATE), CUT), visit(head(), *events(31), since=LATE)), (20, 31)),
    Situation("a lower cursor after a longer one counts", (
        visit(head(), *events(30), say(post(20, late=True, cursor=LATE), LATE), *events(25), CUT),
        visit(head(), since=at(25))), (30, 20, 25)),
    Situation("since of one's own, then the cursor", (
        visit(head(), *events(11), CUT, since="-1h"), visit(head(), *events(12), since=at(11))), (11, 12),
        parameters={"track": "tea", "since": "-1h"}),
    Situation("last is not asked for again", (
        visit(head(), *events(11), CUT, last="5"), visit(head(), *events(12), last=None, since=at(11))), (11, 12),
        parameters={"track": "tea", "last": 5}),

    Situation("cursors are asked for by the user, too", (
        visit(head(), cursor(9), CUT, cursors="true"), visit(head(), *events(11), since=at(9))), (11,),
        parameters={"track": "tea", "cursors": "true"}),

    # --- disconnect
    Situation("draining", (visit(head(), *events(11), disconnect("draining", 12, retry_ms=10), END),
                           visit(head(), *events(13), since=at(12))), (11, 13)),
    Situation("too slow", (visit(head(), *events(11), disconnect("too_slow", 11, retry_ms=10), END),
                           visit(head(), *events(12), since=at(11))), (11, 12)),
    Situation("busy", (visit(head(), disconnect("busy", 10, retry_ms=10), END), visit(head(), *events(11), since=at(10))), (11,)),
    Situation("internal", (visit(head(), disconnect("internal", 10, retry_ms=10), END),
                           visit(head(), *events(11), since=at(10))), (11,)),
    Situation("replaced is final", (visit(head(), *events(11), disconnect("replaced", 11), END),), (11,), "replaced"),
    Situation("ended is final", (visit(head(), disconnect("ended", 11), END),), (), "ended"),
    Situation("revoked is final", (visit(head(), disconnect("token_revoked", 11), END),), (), "token_revoked"),
    Situation("quota without retry_ms is final", (visit(head(), disconnect("quota", 11), END),), (), "quota"),
    Situation("quota with retry_ms waits", (visit(head(), disconnect("quota", 11, retry_ms=10), END),
                                            visit(head(), *events(12), since=at(11))), (12,)),
    Situation("a code that nobody knows, without retry_ms, is final", (visit(head(), disconnect("rainbow", 11), END),), (),
              "rainbow"),
    Situation("a code that nobody knows, with retry_ms", (
        visit(head(), disconnect("rainbow", 11, retry_ms=10), END), visit(head(), *events(12), since=at(11))), (12,)),
    Situation("a disconnect without a cursor", (visit(head(), *events(11), disconnect("draining", retry_ms=10), END),
                                                visit(head(), *events(12), since=at(11))), (11, 12)),

    # --- tokens
    Situation("expired: a new one", (visit(head(), *events(11), disconnect("token_expired", 11), END, token="token-1"),
                                     visit(head(), *events(12), since=at(11), token="token-2")), (11, 12)),
    Situation("expired, and there is no other", (visit(head(), *events(11), disconnect("token_expired", 11), END),), (11,),
              "token_expired", renews=False),
    Situation("401 expired: a new one", (visit(refuse(401, "token_expired"), token="token-1"),
                                         visit(head(), *events(11), token="token-2")), (11,)),
    Situation("401 invalid is final", (visit(refuse(401, "invalid_token")),), (), "401"),
    Situation("a token that ends soon is followed by another", (
        visit(head(), *events(11), EXPIRING, renewed("token-2"), *events(12), *COMPLETE, token="token-1"),), (11, 12)),
    Situation("tokens end soon again and again", (
        visit(head(), EXPIRING, renewed("token-2"), *events(11), EXPIRING, renewed("token-3"), *events(12), CUT),
        visit(head(), *events(13), token="token-3", since=at(12))), (11, 12, 13)),
    Situation("the other token is not enough for what is open: it comes anew", (
        visit(head(), *events(11), EXPIRING, renewed("token-2", "narrower_scope"), SILENCE),
        visit(head(), *events(12), since=at(11), token="token-2")), (11, 12)),
    Situation("a token ends soon, and there is no other: until it ends", (
        visit(head(), *events(11), EXPIRING, *events(12), disconnect("token_expired", 12), END),), (11, 12), "token_expired",
        renews=False),

    # --- refusals
    Situation("400 is final", (visit(refuse(400, "bad_locations")),), (), "400"),
    Situation("403 is final", (visit(refuse(403, "insufficient_scope")),), (), "403"),
    Situation("404 is final", (visit(answer(404, b"not here", "text/plain")),), (), "404"),
    Situation("413 is final", (visit(refuse(413, "too_many_phrases")),), (), "413"),
    Situation("429 with Retry-After", (visit(refuse(429, "too_many_connections", Retry_After=0)), visit(head(), *events(11))), (11,)),
    Situation("429 without Retry-After", (visit(refuse(429, "too_many_connections")), visit(head(), *events(11))), (11,)),
    Situation("503 with Retry-After", (visit(refuse(503, "redis_away", Retry_After=0)), visit(head(), *events(11))), (11,)),
    Situation("502 of a proxy", (visit(answer(502, HTML, "text/html")), visit(head(), *events(11))), (11,)),
    Situation("504 of a proxy in the middle", (visit(head(), *events(11), CUT), visit(answer(504, HTML, "text/html")),
                                               visit(head(), *events(12), since=at(11))), (11, 12)),
    Situation("200 with HTML of a proxy", (visit(head(content_type="text/html"), chunk(HTML), END), visit(head(), *events(11))), (11,)),
    Situation("500 without a body", (visit(answer(500)), visit(head(), *events(11))), (11,)),
    Situation("204: there is no more", (visit(head(), *events(11), CUT), visit(answer(204))), (11,)),
    Situation("an error that is no JSON", (visit(answer(400, b"{", "application/json")),), (), "400"),

    # --- invalid data
    Situation("data that is no JSON", (visit(head(), *events(11), chunk(b"id: 10000000000012\nevent: post\ndata: {oops\n\n"), *events(13)),
                                       visit(head(), *events(12), since=at(11))), (11, 12)),
    Situation("counts, again with a revision", (
        visit(head(), *(say({"type": "counts", "id": at(20), "start": "a", "end": "b", "posts": n, "deletes": 0, "users": 1,
                             **({"revision": n} if n > 1 else {})}, at(20)) for n in (1, 2))),), ("counts", "counts"),
        parameters={"track": "tea", "bucket": "1s"}),

    # --- two servers
    Situation("two servers: each event once", (visit(head(), *events(11, 12, 13), *COMPLETE),), (11, 12, 13),
              beside=(visit(head(), *events(11, 12, 13), *COMPLETE),)),
    Situation("two servers, and each has what the other lacks", (visit(head(), *events(11, 13), *COMPLETE),), (11, 12, 13),
              beside=(visit(head(), *events(12, 13), *COMPLETE),)),
    Situation("two servers: each goes on from its own cursor", (
        visit(head(), *events(11), CUT), visit(head(), *events(12, 13), *COMPLETE, since=at(11))), (11, 12, 13),
        beside=(visit(head(), *events(11, 12), CUT), visit(head(), *events(13), *COMPLETE, since=at(12)))),
    Situation("two servers, and one is away for a while", (visit(CUT), visit(CUT), visit(head(), *events(11), *COMPLETE)), (11, 12),
              beside=(visit(head(), *events(11, 12), *COMPLETE),)),
    Situation("two servers: a gap of one is told", (visit(head(), say(GAP), *events(11), *COMPLETE),), (11, "gap"),
              beside=(visit(head(), *events(11), *COMPLETE),)),
    Situation("two servers end for good", (visit(head(), *events(11), disconnect("ended", 11), END),), (11,), "ended",
              beside=(visit(head(), *events(11), disconnect("ended", 11), END),)),
]
assert len({situation.name for situation in SITUATIONS}) == len(SITUATIONS)


def name_of(message):
    """The form of a message in `wants`, or the answer to a change."""
    if "answer" in message:
        return message["answer"]
    name = int(message["id"]) - FIRST if message["type"] == "post" else message["type"]
    return " ".join([str(name), *(rule["id"] for rule in message["matching_rules"])]) if "matching_rules" in message else name


def is_over(situation, transport):
    """Whether all its steps can be sent there."""
    kinds = {step[0] for each in situation.visits + situation.beside for step in each.steps}
    if transport == "connection":
        return not kinds & (ONLY_HTTP | ONLY_WEBSOCKET) and not situation.beside
    if transport == "filters":
        return not kinds & (ONLY_HTTP | ONLY_WEBSOCKET) and "bucket" not in situation.parameters
    return not kinds & (ONLY_HTTP if transport == "websocket" else ONLY_WEBSOCKET)


def dump(situation, url, transport):
    """What a runner gets, as one line of JSON."""
    return json.dumps({"url": url, "parameters": situation.parameters, "renews": situation.renews,
                       "stream": "counts" if "bucket" in situation.parameters else "filter", "transport": transport,
                       "silence_s": situation.silence_s, "max_tries": situation.max_tries, "others": situation.others,
                       "filters": situation.filters, "changes": situation.changes})
