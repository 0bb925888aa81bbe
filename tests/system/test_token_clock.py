"""The clock is set while streams are open: tokens expire by its current time, in every stream format; new tokens are
checked with it."""

import time

import pytest

from harness import events, programs
from harness.streams import Refused
from harness.wall_clock import WallClock
from harness.waiting import eventually
from harness.websocket import UpgradeRefused

TRANSPORTS = ["ndjson", "delimited", "sse", "websocket"]
FIREHOSE = "/v1/stream/firehose"
HOUR = 3600

pytestmark = pytest.mark.skipif(programs.have_sanitizer(), reason="with a sanitizer there is no clock shim")


@pytest.fixture
def clock(servers):
    return WallClock(servers.folder / "clock")


@pytest.fixture
def stepped(servers, redis, clock):
    clock.set(0)
    return servers.gateway(redis, "--keepalive-ms", "200", env=clock.environment)


def test_forward_ends_those_whose_token_has_ended(stepped, clock, publish):
    short = stepped.token(exp=int(time.time()) + HOUR)
    long = stepped.token(exp=int(time.time()) + 10 * HOUR)
    ending = [stepped.stream(FIREHOSE, transport, token=short) for transport in TRANSPORTS]
    staying = [stepped.stream(FIREHOSE, transport, token=long) for transport in TRANSPORTS]
    clock.set(2 * HOUR)
    for stream in ending:
        message = [one for one in iter(stream.next, None) if one.type != "warning"][-1]
        assert (message.type, message["code"]) == ("disconnect", "token_expired")
    for transport in TRANSPORTS:
        with pytest.raises((Refused, UpgradeRefused)):
            stepped.stream(FIREHOSE, transport, token=short)
    publish(events.post(7, "for those who stay"))
    for stream in staying:
        assert stream.next()["id"] == "7"
        stream.close()


def test_back_ends_nobody_and_what_is_not_valid_yet_waits(stepped, clock, publish):
    now = int(time.time())
    streams = [stepped.stream(FIREHOSE, transport, token=stepped.token(exp=now + HOUR)) for transport in TRANSPORTS]
    clock.set(-2 * HOUR)
    streams[0].wait_keepalives(3)  # everything that checks the clock has done so
    publish(events.post(8, "for everybody"))
    for stream in streams:
        assert stream.next()["id"] == "8"
        stream.close()
    early = stepped.token(exp=now + HOUR, nbf=now)
    with pytest.raises(Refused) as refused:
        stepped.stream(FIREHOSE, token=early)
    assert (refused.value.response.status, refused.value.response.json["error"]["message"]) == (
        401, "the token is not valid yet")
    clock.set(0)
    eventually(lambda: stepped.stream(FIREHOSE, token=early).close() is None, "it is valid again")
