"""The home stream: the activity of a user and of those whom the user follows, while the graph changes."""

import contextlib

import pytest

from harness import events
from harness.redis_server import shard_of
from harness.streams import Collector, Refused
from harness.waiting import eventually

HOME = "/v1/stream/home"


@pytest.fixture
def people(servers, cli_for):
    """Four users in a fresh Redis: (gateway, cli, ids by login)."""
    redis = servers.redis()
    cli = cli_for(redis)
    ids = {login: cli.run("user", "add", login) for login in ("ada", "bob", "cid", "dan")}
    return servers.gateway(redis), cli, ids


def say(cli, login):
    return cli.run("post", "--user", login, f"from {login}")


@pytest.mark.parametrize("transport", ["ndjson", "sse", "websocket"])
def test_self_and_followed(people, transport):
    gateway, cli, ids = people
    cli.run("follow", "ada", "bob")
    cli.run("follow", "cid", "ada")
    stream = gateway.stream(HOME, transport, token=gateway.token(sub=ids["ada"]))
    wanted = [say(cli, "ada"), say(cli, "bob")]
    say(cli, "cid")
    say(cli, "dan")
    wanted.append(say(cli, "bob"))
    assert [m["id"] for m in stream.until(wanted[-1])] == wanted


def test_graph_changes_while_the_stream_is_open(people):
    gateway, cli, ids = people
    stream = gateway.stream(HOME, token=gateway.token(sub=ids["ada"]))
    say(cli, "bob")
    cli.run("follow", "ada", "bob")
    wanted = [say(cli, "bob")]
    cli.run("unfollow", "ada", "bob")
    say(cli, "bob")
    wanted.append(say(cli, "ada"))
    assert [m["id"] for m in stream.until(wanted[-1])] == wanted


def test_deletions_and_types(people):
    gateway, cli, ids = people
    cli.run("follow", "ada", "bob")
    token = gateway.token(sub=ids["ada"])
    usual, all_types = gateway.stream(HOME, token=token), \
        gateway.stream(HOME + "?types=post,delete,follow,unfollow", token=token)
    post_id = say(cli, "bob")
    cli.run("follow", "bob", "cid")
    cli.run("delete", "--user", "bob", post_id)
    end = say(cli, "ada")
    assert [m.type for m in usual.until(end)] == ["post", "delete", "post"]
    kinds = [m.type for m in all_types.until(end)]
    assert [k for k in kinds if "follow" not in k] == ["post", "delete", "post"]


def test_each_subject_has_a_home_of_their_own(people):
    gateway, cli, ids = people
    logins = list(ids)
    for number, login in enumerate(logins):
        cli.run("follow", login, logins[(number + 1) % 4])
    readers = {login: Collector(gateway.stream(HOME, token=gateway.token(sub=ids[login])))
               for login in logins}
    said = {login: say(cli, login) for login in logins}
    said2 = {login: say(cli, login) for login in logins}
    for number, login in enumerate(logins):
        near = {login, logins[(number + 1) % 4]}
        wanted = [said[x] for x in logins if x in near] + [said2[x] for x in logins if x in near]
        assert [m["id"] for m in readers[login].wait(lambda ms, w=wanted: len(ms) >= len(w),
                                                     "the home stream")] == wanted


def test_unknown_subject_has_an_empty_home(people):
    gateway, cli, ids = people
    stream = gateway.stream(HOME, token=gateway.token(sub="nobody at all"))
    say(cli, "ada")
    stream.close()


def test_many_followed(people, tmp_path, cli_for):
    """More than one page of the graph, which is read when the stream opens."""
    gateway, cli, ids = people
    file = tmp_path / "posts.jsonl"
    file.write_text("".join(events.dump(events.post(n, "hello", user=str(n))) + "\n"
                            for n in range(1, 301)))
    cli.run("replay", file)
    for number in range(1, 301, 7):
        cli.run("follow", "ada", f"u{number}")
    stream = gateway.stream(HOME, token=gateway.token(sub=ids["ada"]))
    wanted = []
    for number in range(1, 301, 30):
        post_id = say(cli, f"u{number}")
        if (number - 1) % 7 == 0:
            wanted.append(post_id)
    wanted.append(say(cli, "ada"))
    assert [m["id"] for m in stream.until(wanted[-1])] == wanted


def test_audiences(people):
    gateway, cli, ids = people
    cli.run("follow", "ada", "bob")
    stream = gateway.stream(HOME, token=gateway.token(sub=ids["ada"]))
    own = gateway.stream(HOME, token=gateway.token(sub=ids["bob"]))
    kinds = {"public": True, "followers": True, f"only:{ids['ada']},{ids['cid']}": True,
             f"only:{ids['cid']}": False, f"except:{ids['ada']}": False,
             f"except:{ids['cid']}": True}
    said = [cli.run("post", "--user", "bob", "--audience", kind, "hello") for kind in kinds]
    wanted = [post for post, shown in zip(said, kinds.values()) if shown]
    got = stream.until(wanted[-1])
    assert [m["id"] for m in got] == wanted
    assert [m["post"]["audience"] for m in got] == [
        kind.split(":")[0] for kind, shown in kinds.items() if shown]
    assert [m["id"] for m in own.until(said[-1])] == said


def test_restricted_posts_and_their_deletions_stay_off_the_public_streams(people):
    gateway, cli, ids = people
    token = gateway.token(scope="stream:firehose stream:sample stream:filter")
    public = [gateway.stream(f"/v1/stream/{path}", token=token) for path in (
        "firehose", "sample?percent=100", "filter?track=hello", f"filter?follow={ids['bob']}",
        "firehose?types=post,delete,follow,unfollow")]
    said = [cli.run("post", "--user", "bob", "--audience", kind, "hello")
            for kind in ("followers", f"only:{ids['ada']}", f"except:{ids['ada']}")]
    for post in said:
        cli.run("delete", "--user", "bob", post)
    cli.run("hide", "bob", "ada")
    cli.run("mute", "bob", "ada")
    end = cli.run("post", "--user", "bob", "hello to all")
    for stream in public:
        assert [m["id"] for m in stream.until(end)] == [end]


def test_hiding_and_muting_while_the_stream_is_open(people):
    gateway, cli, ids = people
    cli.run("follow", "ada", "bob")
    stream = gateway.stream(HOME, token=gateway.token(sub=ids["ada"]))
    wanted = [say(cli, "bob")]
    for on, off, pair in (("hide", "unhide", ("bob", "ada")), ("mute", "unmute", ("ada", "bob"))):
        cli.run(on, *pair)
        say(cli, "bob")
        cli.run(off, *pair)
        wanted.append(say(cli, "bob"))
    cli.run("hide", "ada", "bob")  # the other way round
    wanted.append(say(cli, "bob"))
    assert [m["id"] for m in stream.until(wanted[-1])] == wanted


def test_hidden_and_muted_since_before(people):
    gateway, cli, ids = people
    for other in ("bob", "cid", "dan"):
        cli.run("follow", "ada", other)
    cli.run("hide", "bob", "ada")
    cli.run("mute", "ada", "cid")
    stream = gateway.stream(HOME, token=gateway.token(sub=ids["ada"]))
    for other in ("bob", "cid"):
        say(cli, other)
    end = say(cli, "dan")
    assert [m["id"] for m in stream.until(end)] == [end]


def test_deletions_reach_whom_the_post_reached(people):
    gateway, cli, ids = people
    cli.run("follow", "ada", "bob")
    stream = gateway.stream(HOME, token=gateway.token(sub=ids["ada"]))
    seen = cli.run("post", "--user", "bob", "--audience", "followers", "hello")
    hidden = cli.run("post", "--user", "bob", "--audience", f"only:{ids['cid']}", "hello")
    cli.run("hide", "bob", "ada")
    later = say(cli, "bob")
    for post in (seen, hidden, later):
        cli.run("delete", "--user", "bob", post)
    end = say(cli, "ada")
    assert [(m.type, m["post"]["id"]) for m in stream.until(end)] == [
        ("post", seen), ("delete", seen), ("post", end)]


def test_hiding_reaches_a_stream_of_another_shard(servers, cli_for):
    """Both shards log that a user hides: the reader's list may be read before it is changed."""
    redis = servers.redis(shards=8)
    cli = cli_for(redis)
    ids = {login: cli.run("user", "add", login) for login in ("ada", "bob", "cid", "dan", "eve")}
    far = next(login for login in ids if shard_of(ids[login]) != shard_of(ids["ada"]))
    cli.run("follow", "ada", far)
    cli.run("worker", "--until-empty")
    cli.run("hide", far, "ada")  # the list in ada's shard is not changed yet
    gateway = servers.gateway(redis)
    stream = gateway.stream(HOME, token=gateway.token(sub=ids["ada"]))
    cli.run("worker", "--until-empty")
    say(cli, far)
    end = say(cli, "ada")
    assert [m["id"] for m in stream.until(end)] == [end]
    cli.run("unhide", far, "ada")
    cli.run("worker", "--until-empty")
    wanted = say(cli, far)
    assert [m["id"] for m in stream.until(wanted)] == [wanted]


def test_home_streams_are_bounded_in_all(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    ada, bob = (cli.run("user", "add", login) for login in ("ada", "bob"))
    redis.client.sadd(redis.key(ada, f"mutes:{ada}"), *range(1, 100))  # more than a quarter of the limit
    gateway = servers.gateway(redis, "--max-home-bytes", "64K")

    def home(user):
        return gateway.stream(HOME, token=gateway.token(sub=user))

    with home(ada) as stream:
        last = stream.to_end()[-1]
        assert (last.type, last["code"]) == ("disconnect", "busy") and last["retry_ms"] >= 1
    assert gateway.metrics()['sluice_disconnects_total{code="home_full"}'] == 1
    with contextlib.ExitStack() as streams:
        loyal = streams.enter_context(home(bob))
        with pytest.raises(Refused) as refused:
            for user in range(10, 100):
                streams.enter_context(home(f"{user}"))
        assert refused.value.response.status == 429
        assert refused.value.response.error["code"] == "too_many_connections"
        assert int(refused.value.response.headers["retry-after"]) >= 1
        metrics = gateway.metrics()
        assert metrics["sluice_home_bytes"] >= 64 << 10
        assert metrics['sluice_streams_refused_total{limit="home"}'] == 1
        streams.enter_context(home(bob))  # the same user again takes no memory
        posted = say(cli, "bob")
        assert loyal.next()["id"] == posted
    eventually(lambda: gateway.metrics()["sluice_home_bytes"] == 0, "it is given back")
