"""sluice replay: the effect of each line of a file."""

import json
import subprocess
import zlib

import pytest

from harness import events, programs
from harness.program import Program
from harness.redis_server import shard_of


@pytest.fixture
def redis(servers):
    """A fresh one for each test."""
    return servers.redis()


@pytest.fixture
def cli(redis, cli_for):
    return cli_for(redis)


@pytest.fixture
def replay(cli, tmp_path):
    """replay(events or lines, ...): runs it on a file of these."""
    def replay(lines, *options, status=0):
        file = tmp_path / "events.jsonl"
        file.write_bytes(b"".join(
            (line if isinstance(line, bytes) else
             (line if isinstance(line, str) else events.dump(line)).encode()) + b"\n"
            for line in lines))
        said = cli.run("replay", *options, file, status=status)
        replay.errors = cli.done.stderr
        return said
    return replay


def of_type(redis, *types):
    return [event for event in redis.log_with_users() if event["type"] in types]


def test_everything_a_post_has_is_kept(replay, redis):
    members = {"lang": "zh-TW", "geo": {"lon": -0.12345678, "lat": 51.5}, "source": "phone",
               "place": {"name": "Suva", "country": "FJ", "bbox": [178.0, -19.25, -179.0, -16.5]},
               "urls": ["http://a.example/?q=\"x\"", "https://b.example/"],
               "media": ["photo", {"kind": "video", "seconds": 12.5}],
               "repost_of": {"post": "77", "user": "did:plc:x", "login": "far"},
               "quote_of": {"post": "9223372036854775807", "user": "8"}}
    event = events.post(1, "text \\ / \" 日本", **members)
    event["post"]["user"]["name"] = "The First"
    replay([event])
    post, = (e["post"] for e in of_type(redis, "post"))
    assert {name: post[name] for name in members} == members
    assert post["text"] == "text \\ / \" 日本"
    assert post["user"]["login"] == "u1" and post["user"]["name"] == "The First"


def test_members_of_the_wrong_type_count_as_absent(replay, redis):
    event = events.post(1, "text", lang=5, geo={"lon": "1", "lat": 2}, source=[], urls={},
                        place={"name": 7, "bbox": [1, 2, 3]}, media="photo", reply_to=9)
    replay([event])
    post, = (e["post"] for e in of_type(redis, "post"))
    assert set(post) == {"id", "user", "text", "created_at", "audience"}


def test_deletions_and_references_follow_the_new_ids(replay, redis):
    first = events.post(500, "first", user="7")
    lines = [first,
             events.post(501, "second", user="8", reply_to={"post": "500", "user": "7"}),
             events.post(502, "third", user="8", quote_of={"post": 501}),
             events.post(503, "fourth", user="8", reply_to={"post": "999"}),
             events.post(504, "fifth", user="8", reply_to={"post": "999", "user": "7"}),
             events.delete(505, first)]
    replay(lines)
    by_text = {e["post"]["text"]: e["post"] for e in of_type(redis, "post")}
    posts = [by_text[text] for text in ("first", "second", "third", "fourth", "fifth")]
    assert posts[1]["reply_to"] == {"post": posts[0]["id"], **author_of(posts[0])}
    assert posts[2]["quote_of"] == {"post": posts[1]["id"], **author_of(posts[1])}
    assert "reply_to" not in posts[3]  # the author of that post is unknown
    assert posts[4]["reply_to"] == {"post": "999", **author_of(posts[0])}
    deletion, = of_type(redis, "delete")
    assert deletion["post"] == posts[0]


def author_of(post):
    return {"user": post["user"]["id"], "login": post["user"]["login"]}


def test_follows_by_id_or_login(replay, redis):
    lines = [events.post(1, "hello", user="7", login="ada"),
             {"id": "2", "type": "follow", "user": {"login": "bob"}, "target": {"id": "7"}},
             events.follow(3, 9, "7"),
             events.follow(4, 9, "7", kind="unfollow")]
    replay(lines)
    done = [(e["type"], e["user"]["login"], e["target"]["login"])
            for e in of_type(redis, "follow", "unfollow")]
    assert [by for by in done if by[1] == "9"] == [("follow", "9", "ada"), ("unfollow", "9", "ada")]
    assert [by for by in done if by[1] != "9"] == [("follow", "bob", "ada")]


def user_event(number, user, login, name, *members):
    change = {"change": "updated", "members": list(members)} if members else {"change": "created"}
    return {"id": str(number), "type": "user", "user": {"id": user, "login": login, "name": name}, **change}


def test_users_are_made_and_changed_again(replay, redis, cli):
    other = next(f"ada{n}" for n in range(1000) if n and login_shard(redis, f"ada{n}") == login_shard(redis, "ada"))
    said = replay([user_event(1, "7", "ada", "Ada"), user_event(2, "8", "bob", "Bob"),
                   user_event(3, "7", "ada", "Ada L.", "name"), events.post(4, "before", user="7", login="ada"),
                   user_event(5, "7", other, "Ada L.", "login"), events.post(6, "behind", user="7", login=other),
                   events.follow(7, "8", "7"), user_event(8, "9", "cyd", "Cyd C.", "name", "bio")])
    assert "1 follows, 0 unfollows, 5 changes of users; 3 users made, 0 lines refused" in said
    told = [(e["user"]["login"], e["user"]["name"], e["change"]) for e in of_type(redis, "user")]
    assert sorted(told) == sorted([("ada", "Ada", "created"), ("bob", "Bob", "created"), ("ada", "Ada L.", "updated"),
                                   (other, "Ada L.", "updated"), ("cyd", "Cyd C.", "created")])
    before, behind = (e["post"]["user"] for e in of_type(redis, "post"))
    assert before["id"] == behind["id"] and (before["login"], behind["login"]) == ("ada", other)
    follow, = of_type(redis, "follow")
    assert follow["target"]["id"] == before["id"]


def login_shard(redis, login):
    return zlib.crc32(login.encode()) % redis.shards


def test_a_new_user_of_the_file_who_exists_stays_as_is(replay, redis, cli):
    ada = cli.run("user", "add", "ada", "--name", "Ada")
    replay([user_event(1, "7", "ada", "Somebody"), events.post(2, "hello", user="7", login="ada")])
    post, = (e["post"] for e in of_type(redis, "post"))
    assert post["user"] == {"id": ada, "login": "ada", "name": "Ada"}


def test_what_was_not_for_everybody_is_not_either_when_it_is_replayed(replay, redis, cli):
    private = events.post(1, "for followers", user="7", audience="followers")
    answer = events.post(2, "re", user="8", reply_to={"post": "1"})
    replay([private, answer, events.post(3, "for all", user="7", audience="public")])
    posts = [e["post"] for e in of_type(redis, "post")]
    assert {p["text"]: p["audience"] for p in posts} == {
        "for followers": "followers", "re": "public", "for all": "public"}
    cli.run("worker", "--until-empty", "--lease-ms", "50")
    parent, = (p["id"] for p in posts if p["text"] == "for followers")
    reply, = (p for p in posts if p["text"] == "re")
    assert reply["reply_to"] == {"post": parent}
    assert [json.loads(line)["id"] for line in cli.run("comments", parent).splitlines()] == [reply["id"]]


def test_users_that_exist_are_used(replay, redis, cli):
    ada = cli.run("user", "add", "ada", "--name", "Ada")
    replay([events.post(1, "hello", user="7", login="ADA")])
    post, = (e["post"] for e in of_type(redis, "post"))
    assert post["user"] == {"id": ada, "login": "ada", "name": "Ada"}


def test_a_small_world(replay, redis):
    lines, alive, follows = [], {}, set()
    for number in range(1, 1001):
        user = number * 7 % 40  # all forty have posted when the follows begin
        lines.append(events.post(number, f"post {number}", user=str(user)))
        alive[number] = lines[-1]
        if number % 5 == 0:
            lines.append(events.delete(10000 + number, alive.pop(number - 3)))
        if number > 40 and number % 3 == 0 and user != number % 39:
            lines.append(events.follow(20000 + number, user, number % 39))
            follows.add((f"u{user}", f"u{number % 39}"))
    replay(lines)
    logged = redis.log()
    posts = [e["post"] for e in logged if e["type"] == "post"]
    assert sorted(p["text"] for p in posts) == sorted(f"post {n}" for n in range(1, 1001))
    deleted = {e["post"]["text"] for e in logged if e["type"] == "delete"}
    assert {p["text"] for p in posts} - deleted == {e["post"]["text"] for e in alive.values()}
    assert len({shard_of(p["id"]) for p in posts}) > redis.shards // 2
    assert {(e["user"]["login"], e["target"]["login"])
            for e in logged if e["type"] == "follow"} == follows


@pytest.mark.parametrize("line, why", [
    ("garbage", "not JSON"), ("[1]", "not a JSON object"), ("{}", "type"), ('"post"', "not JSON"),
    ('{"type":"hide","user":{"id":"1"},"target":{"id":"2"}}', "type"),
    ('{"type":"post"}', "post.user has neither id nor login"),
    ('{"type":"post","post":{"user":{"id":"1"}}}', "no text"),
    ('{"type":"post","post":{"user":{"id":"1"},"text":5}}', "no text"),
    ('{"type":"post","post":{"user":{"id":"a b"},"text":"x"}}', "U+0020"),
    ('{"type":"post","post":{"user":{"id":"1"},"text":"x","lang":"e n"}}', "BCP 47"),
    ('{"type":"post","post":{"user":{"id":"1"},"text":"x","audience":"only:1"}}', "audience"),
    ('{"type":"post","post":{"user":{"id":"1"},"text":"x","audience":"except"}}', "audience"),
    ('{"type":"post","post":{"user":{"id":"1"},"text":"x","geo":{"lon":181,"lat":0}}}', "longitude"),
    ('{"type":"delete","post":{"id":"7","user":{"id":"1"}}}', "not from this file"),
    ('{"type":"delete","post":{}}', "post.id is missing"),
    ('{"type":"follow","user":{"id":"1"},"target":{"id":"1"}}', "themselves"),
    ('{"type":"follow","user":{"id":"1"}}', "target has neither"),
    (b'{"type":"post","post":{"user":{"id":"1"},"text":"\xff"}}', "not JSON"),
    ('{"type":"post","post":{"user":{"id":"1"},"text":"\\u0000"}}', "not JSON"),
    pytest.param("x" * 1_100_000, "longer than a megabyte", id="long"),
    pytest.param("x" * 1_048_577, "longer than a megabyte", id="one byte too long"),
])
def test_a_bad_line_is_reported_and_passed_over(replay, redis, line, why):
    good = [events.post(n, f"good {n}") for n in (1, 2)]
    replay([good[0], "", line, good[1]], status=1)
    assert "line 3: " in replay.errors and why in replay.errors
    assert [e["post"]["text"] for e in of_type(redis, "post")] == ["good 1", "good 2"]


def test_many_bad_lines_are_counted_not_listed(replay):
    said = replay(["bad"] * 100, status=1)
    assert replay.errors.count("\n") < 30
    assert "100 lines refused" in said


def test_lines_may_end_in_any_way(replay, redis, cli, tmp_path):
    file = tmp_path / "e.jsonl"
    file.write_text(events.dump(events.post(1, "one")) + "\r\n\r\n\n" +
                    events.dump(events.post(2, "two")))
    cli.run("replay", file)
    assert [e["post"]["text"] for e in of_type(redis, "post")] == ["one", "two"]


def test_standard_input_is_not_held_back(cli, redis):
    """A line from a pipe is posted at once, not when a batch is full."""
    with redis.listening() as next_message:
        program = Program(programs.sluice(), "replay", "-", env=cli.environment,
                          stdin=subprocess.PIPE)
        for number in range(1, 4):
            program.process.stdin.write(
                events.dump(events.post(number, f"post {number}")).encode() + b"\n")
            told = next_message()
            if number == 1:
                assert '"change":"created"' in told
                told = next_message()
            assert f"post {number}" in told
    program.process.stdin.close()
    program.process.stdin = None
    program.ended()


def test_standard_input_has_no_loop(cli):
    cli.run("replay", "--loop", "-", status=2)


def test_a_loop_over_nothing_ends(replay):
    replay(["bad"], "--loop", status=1)
    replay([""], "--loop")


def test_a_login_of_two_spellings_is_one_user(replay, redis):
    replay([events.post(1, "one", user="1", login="Ada"),
            events.post(2, "two", user="1", login="ADA")])
    assert len({e["post"]["user"]["id"] for e in of_type(redis, "post")}) == 1


def test_replay_ends_when_redis_does(cli, redis, tmp_path):
    file = tmp_path / "e.jsonl"
    file.write_text("".join(events.dump(events.post(n, "x")) + "\n" for n in range(1, 2001)))
    with redis.listening() as next_message:
        program = cli.start("replay", "--rate", "500", file)
        next_message()
    redis.stop()
    errors = program.ended(1)
    assert "before line" in errors and "Redis" in errors
