"""Tasks: run by `sluice worker` and by sluiced, managed with `sluice tasks`."""

import os
import re
import signal
import time

import pytest

from harness import processes
from harness.redis_server import shard_of
from harness.waiting import eventually

SHARDS = 8


@pytest.fixture
def redis(servers):
    """A fresh one for each test, with several shards: most tasks go from one to another."""
    return servers.redis(shards=SHARDS)


@pytest.fixture
def cli(redis, cli_for):
    return cli_for(redis)


def make_users(cli, count):
    """Returns login -> id; the users are in several shards."""
    users = {f"user{i}": cli.run("user", "add", f"user{i}") for i in range(count)}
    assert len(set(map(shard_of, users.values()))) > 1
    return users


def followers(redis, user_id):
    members = redis.client.zrange(redis.key(user_id, f"followers:{user_id}"), 0, -1)
    assert redis.client.hget(redis.key(user_id, f"user:{user_id}"), "followers") == str(len(members))
    return members


def all_follow_the_first(cli, users):
    first, *others = users
    for other in others:
        cli.run("follow", other, first)
    return sorted(users[other] for other in others)



def add_poison(redis, shard=3):
    redis.client.xadd(f"sluice:{{{shard}}}:tasks", {"task": "nonsense", "id": "4096"})


def test_worker_runs_what_writes_leave_and_ends_on_sigterm(cli, redis):
    users = make_users(cli, 8)
    everybody = all_follow_the_first(cli, users)
    assert len(followers(redis, users["user0"])) < len(everybody)
    worker = cli.start("worker", "--concurrency", "2")
    redis.wait_tasks()
    assert sorted(followers(redis, users["user0"])) == everybody
    said = worker.stop()
    assert "worker_ready" in said and "error" not in said


def test_failures_are_logged_once_a_second_with_a_count_of_the_rest(cli, redis):
    failures = 300
    cli.run("init", "--shards", SHARDS, "--task-tries", "1")
    for i in range(failures):
        add_poison(redis, i % SHARDS)
    began = time.monotonic()
    cli.run("worker", "--until-empty")
    lines = [line for line in cli.done.stderr.splitlines() if "event=task_dead" in line]
    assert 1 <= len(lines) <= 1 + (time.monotonic() - began)
    assert "held_back=0" in lines[0] and "nonsense" in lines[0]
    assert f"dead letters: {failures}" in cli.run("tasks")


def test_dropping_old_posts_is_told_at_the_start(cli, redis):
    for archive, is_told in ("0", True), ("1", False):
        cli.run("config", "set", "profile-rest", "drop")
        cli.run("config", "set", "archive", archive)
        cli.run("worker", "--until-empty")
        assert ("event=old_posts_are_dropped" in cli.done.stderr) == is_told


def test_kept_request_ids_are_counted(cli, redis, servers):
    users = make_users(cli, 8)  # each with a request id
    gateway = servers.gateway(redis, "--run-tasks", "off")
    eventually(lambda: gateway.metrics()["sluice_request_ids"] == len(users), "they are counted")
    keys = redis.client.keys("sluice:{*}:done:*")
    assert len(keys) == len(users) and all(0 < redis.client.pttl(key) <= 3600000 for key in keys)
    redis.client.hincrby("sluice:{3}:done_counts", 1, 1000)  # from long ago
    redis.client.set("sluice:{0}:done_counts", "none")  # not a part of the write
    cli.run("user", "add", "one_more")
    for i in range(8):
        cli.run("user", "add", f"and_more{i}")


def test_killed_worker_loses_nothing(cli, redis):
    users = make_users(cli, 8)
    everybody = all_follow_the_first(cli, users)
    for shard in range(SHARDS):  # tasks of a worker that was killed before it could do anything
        redis.client.xreadgroup("workers", "killed", {f"sluice:{{{shard}}}:tasks": ">"})
    cli.run("worker", "--until-empty", "--lease-ms", "50")
    assert sorted(followers(redis, users["user0"])) == everybody
    assert not redis.tasks_left()


def test_that_redis_is_full_counts_as_no_try(cli, redis):
    cli.run("config", "set", "task-tries", "1")
    users = make_users(cli, 8)
    everybody = all_follow_the_first(cli, users)
    redis.client.config_set("maxmemory", "1")  # no script may write any more
    worker = cli.start("worker")
    eventually(lambda: redis.client.info("errorstats").get("errorstat_OOM"), "a task is refused")
    redis.client.config_set("maxmemory", "0")
    redis.wait_tasks()
    assert sorted(followers(redis, users["user0"])) == everybody
    assert cli.run("tasks").splitlines() == ["tasks: 0", "dead letters: 0"]
    assert "tasks_wait_for_redis" in worker.stop()


def test_tasks_are_listed_tried_again_and_dropped(cli, redis):
    assert cli.run("tasks") == "tasks: 0\ndead letters: 0"
    cli.run("config", "set", "task-tries", "1")
    users = make_users(cli, 4)
    all_follow_the_first(cli, users)
    left = redis.tasks_left()
    add_poison(redis)
    lines = cli.run("tasks").splitlines()
    assert re.fullmatch(rf"tasks: {left + 1}, begun 0, the oldest \d+\.\d s old", lines[0])
    assert sorted(line.split() for line in lines[1:3]) == [["follow", str(left)], ["nonsense", "1"]]
    cli.run("worker", "--until-empty")
    lines = cli.run("tasks").splitlines()
    assert lines[:2] == ["tasks: 0", "dead letters: 1"]
    letter = re.fullmatch(r"  (3:\d+-\d+)  nonsense  id 4096, tried 1 times: no kind of task is "
                          r"called 'nonsense'", lines[2]).group(1)

    assert cli.run("tasks", "retry", letter) == "1"
    assert cli.run("tasks").splitlines()[-1] == "dead letters: 0"
    cli.run("tasks", "retry", letter, status=1)
    assert "no such dead letter" in cli.done.stderr
    add_poison(redis, 5)
    cli.run("worker", "--until-empty")
    assert cli.run("tasks", "retry", "--all") == "2"
    cli.run("worker", "--until-empty")
    letters = [line.split()[0] for line in cli.run("tasks").splitlines()[2:]]
    assert cli.run("tasks", "drop", letters[0]) == "1"
    assert cli.run("tasks", "drop", "--all") == "1"
    assert cli.run("tasks") == "tasks: 0\ndead letters: 0"


def test_no_escape_of_a_task_reaches_the_terminal(cli, redis):
    """The names and errors of tasks may be texts of another program."""
    cli.run("config", "set", "task-tries", "1")
    evil = "a\x1b[2J\x9b\u202e\n0:1-1 b"
    redis.client.xadd("sluice:{3}:tasks", {"task": evil, "id": "4096"})
    for _ in range(2):
        said = cli.run("tasks")
        assert "  a\\u001b[2J\\u009b\\u202e\\u000a0:1-1 b " in said
        assert not set(said) & set("\x1b\x9b\u202e") and "\n0:1-1" not in said
        cli.run("worker", "--until-empty")
    assert said.splitlines()[1] == "dead letters: 1"


@pytest.mark.parametrize("arguments", [
    ["tasks", "x"], ["tasks", "retry"], ["tasks", "drop"], ["tasks", "retry", "--all", "0:1-0"],
    ["tasks", "drop", "8:1-0"], ["tasks", "drop", "1-0"], ["tasks", "drop", "0:1-0x"],
    ["tasks", "drop", "0:"], ["tasks", "retry", "-1:1-0"]])
def test_wrong_usage_is_2(cli, arguments):
    cli.run(*arguments, status=2)
    assert cli.done.stderr and not cli.done.stdout


def task_runner(gateway):
    return next((child for child in processes.children(gateway.pid)
                 if processes.name(child) == "sluice-tasks"), None)


def test_sluiced_runs_tasks_where_it_is_told_to_and_a_dead_runner_is_replaced(cli, redis, servers):
    gateway = servers.gateway(redis, "--run-tasks", "on")
    users = make_users(cli, 8)
    first = eventually(lambda: task_runner(gateway), "the task runner")
    os.kill(first, signal.SIGKILL)
    everybody = all_follow_the_first(cli, users)
    # Redis may not have noticed yet that the worker is dead, and give it a task: after 30 s it is claimed.
    redis.wait_tasks()
    assert sorted(followers(redis, users["user0"])) == everybody
    assert task_runner(gateway) not in (None, first)
    assert gateway.metrics()["sluice_task_runner_restarts_total"] == 1
    second = task_runner(gateway)
    gateway.stop()
    assert not processes.is_alive(second)


def test_redis_of_the_environment_is_told_and_its_tasks_are_run(cli, redis, servers):
    """Exported for `sluice`, it makes sluiced use this Redis instead of its private one."""
    users = make_users(cli, 8)
    gateway = servers.gateway(None, env={"SLUICE_REDIS": redis.url})
    warning, = [line for line in gateway.log().splitlines() if "redis_of_environment" in line]
    assert "level=warn" in warning and redis.url in warning and "run_tasks=on" in warning
    everybody = all_follow_the_first(cli, users)
    redis.wait_tasks()
    assert sorted(followers(redis, users["user0"])) == everybody
    assert not list(gateway.data_dir.glob("redis.sock"))


def test_redis_of_the_environment_without_tasks(redis, servers):
    gateway = servers.gateway(None, "--run-tasks", "off", env={"SLUICE_REDIS": redis.url})
    assert "run_tasks=off" in gateway.log() and task_runner(gateway) is None


def test_redis_of_the_command_line_is_expected(redis, servers):
    gateway = servers.gateway(redis.url)
    assert "redis_of_environment" not in gateway.log() and task_runner(gateway) is None
    assert "tasks_left_to_others" in gateway.log()


def test_sluiced_counts_the_tasks_of_another_redis_and_leaves_them_alone(cli, redis, servers):
    cli.run("config", "set", "task-tries", "1")
    add_poison(redis)
    cli.run("worker", "--until-empty")
    add_poison(redis)
    add_poison(redis, 4)
    redis.client.xreadgroup("workers", "somebody", {"sluice:{4}:tasks": ">"})
    gateway = servers.gateway(redis, "--run-tasks", "off")
    numbers = eventually(lambda: (found := gateway.metrics())["sluice_tasks"] and found,
                         "the tasks are counted")
    assert numbers["sluice_tasks"] == 2
    assert numbers["sluice_tasks_taken"] == 1
    assert numbers["sluice_tasks_dead"] == 1
    assert numbers["sluice_tasks_oldest_seconds"] > 0
    assert task_runner(gateway) is None


def test_sluiced_runs_the_tasks_of_its_private_redis(servers):
    gateway = servers.gateway(None)
    assert eventually(lambda: task_runner(gateway), "the task runner")
    gateway.stop()
    gateway = servers.gateway(None, "--run-tasks", "off")
    assert task_runner(gateway) is None
