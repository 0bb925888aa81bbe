"""Problems are named: in /status.json, /readyz?verbose and `sluice top`, and recorded as incidents."""

import os
import signal
import time

import pytest

from harness.cli import Cli
from harness.waiting import eventually
from test_status import fall_behind, status

WITHIN_S = 10  # seconds of checking


def verdict(gateway):
    return status(gateway)["verdict"]


def part(gateway, code):
    found = [one for one in verdict(gateway)["parts"] if one["code"] == code]
    return found[0] if found else None


def named(gateway, code, *words):
    """Waits up to ten seconds; returns how long it took."""
    began = time.monotonic()
    found = eventually(lambda: (one := part(gateway, code)) and all(word in one["text"] for word in words)
                       and one, f"{code} with {words} is named", WITHIN_S)
    assert found["level"] in ("warning", "critical")
    assert verdict(gateway)["level"] != "ok"
    return time.monotonic() - began


def incident(gateway, code):
    return ([None] + [one for one in status(gateway)["incidents"] if one["code"] == code])[-1]


def is_well(gateway):
    return eventually(lambda: (found := verdict(gateway))["level"] == "ok" and found,
                      "all is well again", 60)


def test_a_frozen_redis_and_a_full_one(servers, redis):
    gateway, cli = servers.gateway(redis, workers=2), Cli(redis)
    cli.run("user", "add", "ada")
    is_well(gateway)
    for pid in redis.pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        took = named(gateway, "redis_silent", "Redis silent for")
        eventually(lambda: verdict(gateway)["level"] == "critical", "it is critical", WITHIN_S)
        ready = gateway.get("/readyz?verbose").json["verdict"]
        assert ready["text"].startswith("Redis silent for") and ready["parts"]
        assert "Redis silent for" in cli.run("top", "--once", "--url", gateway.url)
    finally:
        for pid in redis.pids:
            os.kill(pid, signal.SIGCONT)
    print(f"a frozen Redis is named after {took:.1f} s")
    found = is_well(gateway)
    assert found["text"].startswith("All is well: ")
    told = incident(gateway, "redis_silent")
    assert told["level"] == "critical" and told["end"] >= told["begin"]

    redis.client.config_set("maxmemory", 1)
    named(gateway, "writes", "Redis refuses writes: its memory is full")
    redis.client.config_set("maxmemory", 0)
    is_well(gateway)
    assert incident(gateway, "writes")["end"]


def test_refused_tokens_a_slow_reader_and_a_dead_worker(servers, redis):
    gateway = servers.gateway(redis, workers=2)
    is_well(gateway)
    for _ in range(40):
        assert gateway.get("/v1/stream/firehose", gateway.bearer(exp=1)).status == 401
    named(gateway, "tokens", "tokens a second are refused, most as expired")

    with gateway.stream("/v1/stream/firehose", receive_buffer=4096), \
            gateway.stream("/v1/stream/filter?track=nothing"):
        fall_behind(gateway, redis)
        named(gateway, "behind", "1 of 2 streams is behind, by ")
        slow = status(gateway)["slowest"][0]
        assert slow["late"] and slow["lag_ms"] >= 5000
        assert status(gateway)["metrics"]["sluice_owed_events"] > 0

        os.kill(gateway.workers()[0], signal.SIGKILL)
        named(gateway, "workers", "ended by signal 9 (Killed)")
    is_well(gateway)
    assert incident(gateway, "tokens")["consequence"] == "40 tokens refused"
    assert incident(gateway, "workers")["end"]
    assert incident(gateway, "behind")["end"]


def test_only_what_is_newer_is_given(gateway):
    now = eventually(lambda: len((found := status(gateway))["samples"]) >= 2 and found, "two samples", 20)
    first, second = now["samples"][:2]
    assert set(first) == {"at", "events_in", "events_out", "bytes_out", "streams", "streams_late", "lag_ms",
                          "owed_events", "match_us", "delivery_p99_us", "redis_us", "memory_bytes", "cpu_milli",
                          "busiest_cpu_milli"}
    newer = gateway.get(f"/status.json?since={first['at']}").json
    assert newer["samples"][0]["at"] == second["at"]
    assert now["incidents"][0]["code"] == "start"
    assert gateway.get("/status.json?since=%2B1m").json["incidents"] == []


@pytest.mark.parametrize("query, code, param", [
    ("since=yesterday", "bad_since", "since"),
    ("sinse=-1m", "unknown_parameter", "sinse"),
])
def test_a_bad_since_is_refused(gateway, query, code, param):
    error = gateway.get(f"/status.json?{query}")
    assert error.status == 400
    assert (error.json["error"]["code"], error.json["error"]["param"]) == (code, param)


def test_what_the_parent_does_is_told(servers, redis):
    file = servers.folder / "sluiced.conf"
    file.write_text("")
    gateway = servers.gateway(redis, "--config", str(file))
    assert incident(gateway, "start")["text"].endswith(" started.")
    file.write_text("no such option\n")
    os.kill(gateway.pid, signal.SIGHUP)
    refused = eventually(lambda: incident(gateway, "reload"), "it is told")
    assert refused["level"] == "warning" and "stay as they were" in refused["text"]
    file.write_text("")
    successor = servers.successor(gateway)
    # Until the port is taken over, the previous one may answer.
    eventually(lambda: len(found := status(successor)["incidents"]) == 1 and
               "took over from another" in found[0]["text"], "it is told, and nothing of the one before")
