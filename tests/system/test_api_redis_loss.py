"""The API while Redis is unavailable, stopped or full: quick and correct answers, streams unharmed."""

import signal
import statistics
import threading
import time

from harness import processes
from harness.api import Api, Site
from harness.ports import steady_port
from harness.waiting import TIMEOUT_FACTOR, eventually

FIREHOSE = "/v1/stream/firehose"


def new_user(gateway, login="ada"):
    site = Site(gateway)
    return site.user(login)


def refused_for_now(answer, *codes):
    assert answer.status == 503 and answer.error["code"] in codes, answer
    assert int(answer.headers["retry-after"]) >= 1


def test_redis_is_away_and_comes_back(servers):
    redis = servers.redis(append_only=True)
    gateway = servers.gateway(redis, "--api-timeout", "500ms")
    ada = new_user(gateway)
    with gateway.stream(FIREHOSE) as stream:
        redis.stop()
        gateway.wait_status("/readyz", 503)
        for request in (("GET", "/v1/users/me"), ("POST", "/v1/posts", {"text": "lost"}),
                        ("DELETE", "/v1/posts/1")):
            refused_for_now(ada.request(*request), "redis_away", "timeout")
        redis.start()
        gateway.wait_status("/readyz", 200)
        post = ada.post("found")
        stream.until(post["id"])


def test_connection_that_is_reset_is_left_at_once(servers):
    """A Redis that is killed with an unread request resets the connection instead of closing it."""
    redis = servers.redis(append_only=True)
    redis.client.config_set("appendfsync", "always")
    gateway = servers.gateway(redis.url_over_tcp())
    ada = new_user(gateway)
    other = Api(gateway, ada.sub)
    with processes.stopped(redis.pids):
        ada.send("GET", "/v1/users/me")
        eventually(lambda: gateway.metrics()["sluice_api_requests_in_flight"] == 1, "it is sent")
        redis.stop(signal.SIGKILL)
    redis.start()
    gateway.wait_status("/readyz", 200)
    begun = time.monotonic()
    assert other.get("/v1/users/me")["login"] == "ada"
    assert time.monotonic() - begun < 2 * TIMEOUT_FACTOR
    assert ada.read().status in (200, 503)
    other.close()


def test_writes_are_back_when_redis_is(servers):
    """However long it was unavailable."""
    redis = servers.redis(append_only=True)
    redis.client.config_set("appendfsync", "always")
    gateway = servers.gateway(redis, "--api-timeout", "500ms")
    ada = new_user(gateway)
    took = []
    for number in range(3):
        redis.stop(signal.SIGKILL)
        gateway.wait_status("/readyz", 503)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            assert ada.request("POST", "/v1/posts", {"text": "lost"}).status == 503
        redis.start()
        begun = time.monotonic()
        eventually(lambda: ada.request("POST", "/v1/posts", {"text": f"back {number}"}).status == 201,
                   "a write succeeds")
        took.append(time.monotonic() - begun)
    assert statistics.median(took) < 1 * TIMEOUT_FACTOR, took


def test_redis_was_never_there(servers):
    gateway = servers.gateway(f"unix://{servers.folder}/nothing", start=False,
                              listen=f"127.0.0.1:{steady_port()}").launch()
    gateway.wait_status("/healthz", 200)
    ada = Api(gateway, "4096")
    refused_for_now(ada.request("GET", "/v1/users/me"), "redis_away")
    ada.close()


def test_a_stopped_redis_costs_requests_their_time_and_streams_nothing(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--api-timeout", "300ms", "--keepalive-ms", 50)
    ada = new_user(gateway)
    waiting = [Api(gateway, ada.sub) for _ in range(20)]
    with gateway.stream(FIREHOSE) as stream:
        with processes.stopped(redis.pids):
            for user in waiting:
                user.send("POST", "/v1/posts", {"text": "late"}, {"Idempotency-Key": "late"})
            stream.wait_keepalives(3)
            for user in waiting:
                refused_for_now(user.read(), "timeout", "redis_away")
            stream.wait_keepalives(3)
            assert gateway.metrics()["sluice_api_requests_in_flight"] == 0
        answers = [user.request("POST", "/v1/posts", {"text": "late"}, {"Idempotency-Key": "late"})
                   for user in waiting]
        assert [answer.status for answer in answers] == [201] * len(waiting)
        assert len({answer.json["id"] for answer in answers}) == 1, "the key made it happen once"
        assert ada.get("/v1/users/me")["posts"] == 1
        stream.until(answers[0].json["id"])
    for user in waiting:
        user.close()


def test_more_requests_than_may_be_under_way_are_sent_away_at_once(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--max-api-requests", 5, "--api-timeout", "1m")
    ada = new_user(gateway)
    users = [Api(gateway, ada.sub) for _ in range(6)]
    with processes.stopped(redis.pids):
        for user in users[:5]:
            user.send("GET", "/v1/users/me")
        eventually(lambda: gateway.metrics()["sluice_api_requests_in_flight"] == 5, "five wait")
        refused_for_now(users[5].request("GET", "/v1/users/me"), "busy")
        users[0].close()
        eventually(lambda: gateway.metrics()["sluice_api_requests_in_flight"] <= 5, "it is noted")
    for user in users[1:5]:
        assert user.read().json["id"] == ada.sub
    assert users[5].get("/v1/users/me")["id"] == ada.sub
    assert gateway.metrics()["sluice_api_requests_shed_total"] == 1


def test_a_subject_has_a_quarter_of_the_requests_under_way(servers):
    """Even if it does not wait for the answers; other subjects are served."""
    redis = servers.redis()
    gateway = servers.gateway(redis, "--max-api-requests", 80, "--api-timeout", "1m")
    ada, bob = new_user(gateway), new_user(gateway, "bob")
    with processes.stopped(redis.pids):
        users = [Api(gateway, ada.sub) for _ in range(21)]
        for number, user in enumerate(users[:20]):
            user.send("GET", "/v1/users/me")
            eventually(lambda: gateway.metrics()["sluice_api_requests_in_flight"] == number + 1, "it waits")
        refused_for_now(users[20].request("GET", "/v1/users/me"), "busy")
        users[0].close()
        refused_for_now(users[20].request("GET", "/v1/users/me"), "busy")
        bob.send("GET", "/v1/users/me")
        eventually(lambda: gateway.metrics()["sluice_api_requests_in_flight"] >= 20, "another one's is taken")
    assert bob.read().json["id"] == bob.sub
    for user in users[1:20]:
        assert user.read().json["id"] == ada.sub
    assert gateway.metrics()["sluice_api_requests_shed_total"] == 2


def test_a_shutdown_answers_what_it_can(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--api-timeout", "1m", "--drain-timeout", "1m")
    ada = new_user(gateway)
    with processes.stopped(redis.pids):
        ada.send("POST", "/v1/posts", {"text": "last words"})
        eventually(lambda: gateway.metrics()["sluice_api_requests_in_flight"] == 1, "it is sent")
        gateway.begin_stop()
        eventually(lambda: "draining" in gateway.log(), "it drains")
    answer = ada.read()
    assert answer.status == 201 and answer.headers["connection"] == "close"
    gateway.stop()


def test_a_shutdown_does_not_wait_for_ever(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--api-timeout", "1m", "--drain-timeout", "100ms")
    ada = new_user(gateway)
    with processes.stopped(redis.pids):
        ada.send("GET", "/v1/users/me")
        eventually(lambda: gateway.metrics()["sluice_api_requests_in_flight"] == 1, "it is sent")
        gateway.stop()


def test_a_full_redis_says_so(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    ada = new_user(gateway)
    redis.client.config_set("maxmemory", 1)
    refused_for_now(ada.request("POST", "/v1/posts", {"text": "no room"}), "redis_full")
    assert ada.get("/v1/users/me")["posts"] == 0
    redis.client.config_set("maxmemory", 0)
    ada.post("room")


def wrong_type(redis):
    logs = [log for log in redis.logs() if redis.client.exists(log)]
    for log in logs:
        redis.client.rename(log, log + ":aside")
        redis.client.set(log, "")
    return lambda: [redis.client.rename(log + ":aside", log) for log in logs]


def disk_error(redis):
    """Redis cannot save its snapshot where a directory is."""
    snapshots = [folder / "dump.rdb" for folder in redis.folders]
    for snapshot in snapshots:
        snapshot.mkdir()
    redis.client.config_set("save", "3600 1")
    redis.client.bgsave()
    eventually(lambda: redis.client.info("persistence")["rdb_last_bgsave_status"] == "err",
               "the snapshot has failed")

    def undo():
        redis.client.config_set("save", "")
        for snapshot in snapshots:
            snapshot.rmdir()
    return undo


def setting(name, value, usual):
    def begin(redis):
        redis.client.config_set(name, value)
        return lambda: redis.client.config_set(name, usual)
    return begin


def replica(redis):
    if redis.is_clustered:
        return None  # otherwise the other one would become the master
    redis.client.replicaof("127.0.0.1", 1)
    return lambda: redis.client.replicaof("NO", "ONE")


def parts_of(gateway, status=200):
    answer = gateway.get("/readyz?verbose", gateway.bearer(scope="admin"))
    assert answer.status == status, answer
    return answer.json["parts"]


def test_a_redis_that_refuses_writes_is_told_from_one_that_is_away(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, "--api-timeout", "500ms")
    ada = new_user(gateway)
    ada.post("before")

    def writes_are(state, part="writes"):
        eventually(lambda: parts_of(gateway)[part]["state"] == state, f"{part} are {state}")
        return parts_of(gateway)

    faults = 1  # the last one below
    with gateway.stream(FIREHOSE) as stream:
        parts = writes_are("ok")
        for part, state in ("streams", "ok"), ("reads", "ok"), ("archive", "off"):
            assert parts[part]["state"] == state and parts[part]["why"] is None, parts
        for code, fault in (("OOM", setting("maxmemory", 1, 0)), ("MISCONF", disk_error),
                            ("NOREPLICAS", setting("min-replicas-to-write", 2, 0)),
                            ("READONLY", replica), ("WRONGTYPE", wrong_type)):
            undo = fault(redis)
            if not undo:
                continue
            faults += 1
            before_ms = time.time_ns() // 1000000
            parts = writes_are("failing")
            assert code in parts["writes"]["why"], parts
            assert abs(parts["writes"]["since_ms"] - before_ms) < 10000 * TIMEOUT_FACTOR
            assert parts["streams"]["state"] == parts["reads"]["state"] == "ok"
            metrics = gateway.metrics()
            assert metrics['sluice_failing{part="writes"}'] == 1
            assert metrics['sluice_failing{part="reads"}'] == 0
            assert ada.request("POST", "/v1/posts", {"text": "lost"}).status >= 500
            assert ada.request("GET", "/v1/users/me").status == 200
            status = gateway.get("/status.json", gateway.bearer(scope="admin"))
            assert status.json["health"] == parts_of(gateway)
            undo()
            writes_are("ok")
            assert gateway.metrics()['sluice_failing{part="writes"}'] == 0
            stream.until(ada.post(f"after {code}")["id"])
        redis.client.flushall()
        parts = writes_are("failing")
        assert "no Sluice database" in parts["writes"]["why"]
        assert parts["reads"]["state"] == "failing" and parts["streams"]["state"] == "ok"
    assert gateway.log().count("event=writes_refused") == gateway.log().count("event=writes_accepted") + 1 == faults


def test_parts_of_a_server_without_redis(servers):
    redis = servers.redis(append_only=True)
    gateway = servers.gateway(redis, "--redis-timeout", "300ms", "--api-timeout", "300ms")
    redis.stop()
    gateway.wait_status("/readyz", 503)
    eventually(lambda: parts_of(gateway, 503)["reads"]["state"] == "failing", "reads fail")
    parts = parts_of(gateway, 503)
    assert {parts[part]["state"] for part in ("streams", "reads", "writes")} == {"failing"}
    assert gateway.get("/readyz?verbose").json["ready"] is False
    redis.start()
    gateway.wait_status("/readyz", 200)

    def states():
        parts = gateway.get("/readyz?verbose").json["parts"]
        return {parts[part]["state"] for part in ("streams", "reads")}
    eventually(lambda: states() == {"ok"}, "they work")


def test_damage_is_ours_and_logged(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    ada = new_user(gateway)
    redis.client.hset(redis.key(ada.sub, f"user:{ada.sub}"), "posts", "many")
    ada.refused(500, "internal", "GET", "/v1/users/me")
    eventually(lambda: "api_failed" in gateway.log(), "the log says what it is")


def test_one_login_for_many_at_once(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, workers=2)
    admins = [Api(gateway, scope="admin") for _ in range(30)]
    for number, admin in enumerate(admins):
        admin.send("POST", "/v1/users", {"login": "wanted" if number % 2 else "WANTED"})
    answers = [admin.read() for admin in admins]
    assert sorted(answer.status for answer in answers) == [201] + [409] * 29
    for admin in admins:
        admin.close()


def test_many_connections_write_at_once(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis, workers=2)
    ada = new_user(gateway)
    with gateway.stream(FIREHOSE) as stream:
        def write(number):
            user = Api(gateway, ada.sub)
            for n in range(5):
                user.post(f"{number} {n}")
            user.close()
        writers = [threading.Thread(target=write, args=(number,)) for number in range(40)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        last = ada.get("/v1/users/me/posts?limit=1")["items"][0]["id"]
        assert len(stream.until(last)) == 200
    assert ada.get("/v1/users/me")["posts"] == 200
