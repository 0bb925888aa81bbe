"""Situations of clients of streams on WebSockets only."""

from script import (BINARY, COMPLETE, CUT, PING, PINGED, PONG, SILENCE, answer, at, close, deflated, disconnect, events, fragments,
                    frame, frame_bytes, frames, head, message_bytes, post, refuse, upgrade, visit)
from situations import HTML, SHORT_S, Situation

LARGE = post(12, filler="x" * 70_000)
CAFE = post(11, text="caf\u00e9 \U0001f375")


def goes_on(name, *steps, **more):
    """The connection ends after event 11; the next one delivers event 12."""
    return Situation(name, (visit(*steps), visit(head(), *events(12), since=at(11))), (11, 12), **more)


def cut_at(size, message=post(12)):
    return frame(frame_bytes(message_bytes(message))[:size])


def closed_by(code):
    return goes_on(f"closed with {code} and not a word", head(), *events(11), close(code))


WEBSOCKET_SITUATIONS = [
    # --- frames
    Situation("two frames in one piece", (visit(head(), frames(post(11), post(12)), *COMPLETE),), (11, 12)),
    Situation("an event in one piece with the 101", (visit(upgrade(then=[post(11)]), *events(12), *COMPLETE),), (11, 12)),
    Situation("a frame byte by byte", (visit(head(), *(frame(bytes([byte])) for byte in frame_bytes(message_bytes(post(11)))),
                                             *COMPLETE),), (11,)),
    Situation("an event in many frames", (visit(head(), fragments(post(11), 7), *COMPLETE),), (11,)),
    Situation("a character is cut in two by frames", (visit(head(), fragments(CAFE, 1), *COMPLETE),), (11,)),
    Situation("a ping between the frames of an event", (
        visit(head(), fragments(post(11), 20, frame_bytes(b"?", PING)), *COMPLETE),), (11,)),
    Situation("a frame with a length of 64 bits", (visit(head(), frames(LARGE), *COMPLETE),), (12,)),
    Situation("compressed events", (visit(upgrade(deflate=True), deflated(post(11)), deflated(post(12)), *COMPLETE),), (11, 12)),
    Situation("a ping is answered", (visit(head(), PINGED, *events(11), PINGED, *COMPLETE),), (11,)),
    Situation("a pong that nobody asked for", (visit(head(), frame(frame_bytes(b"", PONG)), *events(11), *COMPLETE),), (11,)),

    # --- broken connections
    goes_on("cut inside of the head of a frame", head(), *events(11), cut_at(1), CUT),
    goes_on("cut inside of the length of a frame", head(), *events(11), cut_at(5, LARGE), CUT),
    goes_on("cut inside of a frame", head(), *events(11), cut_at(30), CUT),
    goes_on("closed inside of an event", head(), *events(11), frame(frame_bytes(b'{"id"', final=False)), close(1001)),
    goes_on("silence inside of a frame", head(), *events(11), cut_at(30), SILENCE, silence_s=SHORT_S),

    # --- closed
    *(closed_by(code) for code in (None, 1000, 1001, 1008, 1011, 1012, 1013, 4008, 4012)),
    Situation("4001 and not a word: a new token", (
        visit(head(), *events(11), close(4001), token="token-1"), visit(head(), *events(12), since=at(11), token="token-2")), (11, 12)),
    Situation("4003 and not a word is final", (visit(head(), *events(11), close(4003)),), (11,), "replaced"),
    Situation("4004 and not a word is final", (visit(head(), *events(11), close(4004)),), (11,), "ended"),
    goes_on("draining, and a proxy says 1001", head(), *events(11), disconnect("draining", 11, retry_ms=10), close(1001)),
    goes_on("draining, and cut before the close", head(), *events(11), disconnect("draining", 11, retry_ms=10), CUT),
    Situation("replaced, and cut before the close", (visit(head(), *events(11), disconnect("replaced", 11), CUT),), (11,), "replaced"),
    Situation("complete, and cut before the close", (visit(head(), *events(11), disconnect("complete", 11), CUT),), (11,)),

    # --- invalid data
    goes_on("a text that is not UTF-8", head(), *events(11), frame(frame_bytes(b'{"id":"\xff"}'))),
    goes_on("a masked frame of a server", head(), *events(11), frame(frame_bytes(message_bytes(post(12)), mask=b"1234"))),
    goes_on("reserved bits", head(), *events(11), frame(frame_bytes(message_bytes(post(12)), reserved=2))),
    goes_on("an opcode that nobody knows", head(), *events(11), frame(frame_bytes(b"", opcode=5))),
    goes_on("a message that is no JSON", head(), *events(11), frame(frame_bytes(b"{oops"))),
    goes_on("a binary message", head(), *events(11), frame(frame_bytes(message_bytes(post(12)), BINARY))),
    goes_on("HTML of a proxy in place of a frame", head(), *events(11), frame(HTML)),

    # --- the upgrade
    Situation("an answer to another key", (visit(upgrade(key="another")), visit(head(), *events(11))), (11,)),
    Situation("a proxy has lost the subprotocol", (visit(upgrade(protocol=False)), visit(head(), *events(11))), (11,)),
    Situation("a proxy answers the upgrade with a page", (visit(answer(200, HTML, "text/html")), visit(head(), *events(11))), (11,)),
    Situation("426: the upgrade was lost on the way", (visit(refuse(426, "upgrade_required")),), (), "426"),
    Situation("503 three times, then a stream", (
        *(visit(refuse(503, "draining", Retry_After=0)) for _ in range(3)), visit(head(), *events(11))), (11,)),
    Situation("quota at the upgrade", (visit(refuse(429, "quota", Retry_After=0)), visit(head(), *events(11))), (11,)),
]
