"""The `sluice` program, as used by scripts."""

import base64
import json
import signal
import time
import zlib

import pytest

from harness import events
from harness.ports import steady_port
from harness.redis_server import shard_of
from harness.waiting import Deadline

STOPPED = (0, 130, -signal.SIGINT)  # exit statuses after Ctrl-C
EPOCH_MS = 1767225600000  # 2026-01-01T00:00:00Z


@pytest.fixture
def redis(servers):
    """A fresh one for each test."""
    return servers.redis()


@pytest.fixture
def cli(redis, cli_for):
    return cli_for(redis)


def work(cli):
    """Runs the tasks that writes have left for other shards."""
    cli.run("worker", "--until-empty", "--lease-ms", "50")


@pytest.mark.parametrize("arguments", [
    [], ["nothing"], ["post"], ["post", "--user"], ["post", "--user", "ada"], ["user"], ["user", "add"],
    ["post", "--wrong", "x"], ["post", "--user", "ada", "--geo", "here", "text"], ["follow", "ada"],
    ["post", "--user", "ada", "--geo", "181,0", "text"], ["delete", "--user", "ada"], ["tail"],
    ["delete", "--user", "ada", "x"], ["init", "--shards", "0"], ["init", "--shards", "65"],
    ["init", "--shards", "x"], ["token"], ["tail", "everything"], ["replay"], ["--redis"],
    ["post", "--user", "ada", "one", "two"], ["replay", "f", "--rate", "x"],
    ["token", "--secret-file", "/dev/null", "--sub", "1", "--scope", "x", "--ttl", "soon"],
    ["token", "--secret-file", "/dev/null", "--sub", "1", "--scope", "x", "--claim", "x"],
    ["config"], ["config", "get"], ["config", "get", "nothing"], ["config", "set", "log-count"],
    ["config", "set", "log-count", "0"], ["config", "set", "log-age", "24"], ["config", "list", "x"],
    ["worker", "x"], ["worker", "--concurrency", "0"], ["worker", "--lease-ms", "soon"],
    ["init", "--log-age", "soon"],
])
def test_wrong_usage_is_2(cli, arguments):
    cli.run(*arguments, status=2)
    assert cli.done.stderr and not cli.done.stdout


@pytest.mark.parametrize("arguments", [
    ["post", "--user", "nobody", "hello"], ["delete", "--user", "nobody", "4096"],
    ["follow", "nobody", "nowhere"], ["replay", "/nonexistent/file"],
    ["--redis", "unix:///nonexistent.sock", "user", "add", "ada"],
    ["token", "--secret-file", "/nonexistent/file", "--sub", "1", "--scope", "read"],
    ["token", "--secret-file", "/nonexistent/file", "--sub", "@nobody", "--scope", "stream:filter"],
    ["tail", "--url", "http://127.0.0.1:1", "--token", "x", "--track", "a", "sample"]])
def test_failure_is_1(cli, arguments):
    if arguments[0] == "tail":
        pytest.skip("tail tries again for ever when nobody listens")
    cli.run(*arguments, status=1)
    assert cli.done.stderr.strip() and not cli.done.stdout


def test_settings_are_read_and_changed_in_all_shards(servers, cli_for):
    redis = servers.redis(shards=None)
    cli = cli_for(redis)
    cli.run("init", "--shards", "3", "--log-age", "90m")
    assert cli.run("config", "get", "log-age") == "90m"
    assert cli.run("config", "get", "log-count") == "1000000"
    assert cli.run("config", "set", "log-count", "5000") == ""
    for shard in range(3):
        meta = redis.client.hgetall(f"sluice:{{{shard}}}:meta")
        assert (meta["log_count"], meta["log_age_ms"]) == ("5000", "5400000")
    rows = [line.split()[:2] for line in cli.run("config", "list").splitlines()]
    assert ["log-count", "5000"] in rows and ["log-age", "90m"] in rows
    cli.run("config", "set", "log-age", "default")
    assert cli.run("config", "get", "log-age") == "1d"
    redis.client.hset("sluice:{2}:meta", "log_count", "7")
    cli.run("config", "get", "log-count", status=1)
    assert "log-count differs between shards 0 and 2" in cli.done.stderr
    cli.run("config", "set", "log-count", "5000")
    assert cli.run("config", "get", "log-count") == "5000"


def test_ids_carry_their_time_and_shard(cli, redis):
    before = int(time.time() * 1000)
    ids = cli.ids("user", "add", "ada")
    for text in ("one", "two", "three"):
        ids += cli.ids("post", "--user", "ada", text)
    after = int(time.time() * 1000)
    numbers = [int(i) for i in ids]
    assert numbers == sorted(set(numbers))
    for number in numbers:
        assert before - 1 <= number // 4096 + EPOCH_MS <= after + 1
        assert shard_of(number) == zlib.crc32(b"ada") % redis.shards
        assert number < 2**53


def test_post_changes_state_log_and_channel_at_once(cli, redis):
    with redis.listening() as next_message:
        user_id = cli.run("user", "add", "ada", "--name", "Ada L")
        post_id = cli.run("post", "--user", "ada", "--lang", "en", "--geo", "120.5,30.25", "Hello")
        reply_id = cli.run("post", "--user", "ada", "--reply-to", post_id, "To myself")
        entries = redis.entries()
        assert [entry for entry, _ in entries] == [user_id, post_id, reply_id]
        assert entries[-1][1]["p"] == post_id
        for entry, fields in entries:
            assert next_message() == f"{entry} {fields['p']} {fields['e']}"
    post, reply = redis.log()[-2:]
    assert post["id"] == post["post"]["id"] == post_id
    assert post["post"]["user"] == {"id": user_id, "login": "ada", "name": "Ada L"}
    assert post["post"]["geo"] == {"lon": 120.5, "lat": 30.25} and post["post"]["lang"] == "en"
    assert post["post"].get("audience", "public") == "public"
    assert reply["post"]["reply_to"]["post"] == post_id
    assert reply["post"]["reply_to"]["user"] == user_id
    stored = redis.client.hgetall(redis.key(post_id, f"post:{post_id}"))
    assert stored["text"] == "Hello"
    user = redis.client.hgetall(redis.key(user_id, f"user:{user_id}"))
    assert (user["login"], user["name"], user["posts"]) == ("ada", "Ada L", "2")
    assert redis.client.hget(redis.key(user_id, "logins"), "ada") == user_id


def test_text_survives_whatever_it_holds(cli, redis):
    cli.run("user", "add", "ada")
    for text in ['"quotes" \\ and / slashes', "tab\tand\nnewline", "日本語 👩‍🚀 é e\u0301", "{\"json\":1}",
                 "%s %n %d", "x" * 5000, "--user", "\x7f\x1f"]:
        cli.run("post", "--user", "ada", "--", text)
        assert redis.log()[-1]["post"]["text"] == text


def test_text_that_is_none(cli):
    cli.run("user", "add", "ada")
    for text in ("", "\udcff", "x" * 100_000):
        cli.run("post", "--user", "ada", text.encode("utf-8", "surrogateescape")
                if "\udcff" in text else text, status=2)


def test_users_by_id_or_login_everywhere(cli, redis):
    """Digits are an id, @x is a login, anything else is a login here."""
    ada, bob, digits = cli.ids("user", "add", "ada") + cli.ids("user", "add", "bob") + cli.ids("user", "add", "4096")
    for name, known in (("ada", ada), ("@ada", ada), (ada, ada), ("@ADA", ada), ("@4096", digits)):
        assert json.loads(cli.run("user", "show", name))["id"] == known
    cli.run("user", "show", "4096", status=1)  # an id without a user
    cli.run("user", "rename", "@4096", "One Two Three")
    cli.run("follow", "@bob", ada, "@4096")
    work(cli)
    assert {json.loads(line)["id"] for line in cli.run("following", bob).splitlines()} == {ada, digits}
    post = cli.run("post", "--user", ada, "by id")
    assert json.loads(cli.run("read", post, "--as", bob))["user"]["login"] == "ada"
    cli.run("like", "--user", bob, post)
    cli.run("hide", ada, "@bob")
    cli.run("mute", bob, ada)
    cli.run("unmute", "@bob", "@ada")
    work(cli)
    assert cli.run("posts", "@ada", "--as", bob) == ""
    cli.run("unhide", "@ada", bob)
    work(cli)
    assert [json.loads(line)["id"] for line in cli.run("posts", ada, "--as", "@bob").splitlines()] == [post]
    assert json.loads(cli.run("common", "following", bob, "@bob", "--limit", "1"))["login"] == "4096"
    cli.run("delete", "--user", "@ada", post)


def claims_of(token):
    claims = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))


@pytest.mark.parametrize("scope", ["stream:home", "read", "stream:filter write"])
def test_token_of_a_login_is_that_users(cli, tmp_path, scope):
    """Regression: a token with --sub ada opened a home stream that stayed empty forever."""
    secret = tmp_path / "secret"
    secret.write_text("x" * 64)
    secret.chmod(0o600)
    ada = cli.run("user", "add", "ada")
    for name in ("ada", "@ada", "@ADA", ada):
        token = cli.run("token", "--secret-file", secret, "--sub", name, "--scope", scope, "--ttl", "1h")
        assert claims_of(token)["sub"] == ada
    assert claims_of(token)["exp"] - claims_of(token)["iat"] == 3600
    cli.run("token", "--secret-file", secret, "--sub", "nobody", "--scope", scope, status=1)
    assert "there is no user @nobody" in cli.done.stderr and "'sluice user add'" in cli.done.stderr
    assert not cli.done.stdout


def test_posts_quote_repost_link_and_carry_media(cli):
    ada, bob = cli.run("user", "add", "ada"), cli.run("user", "add", "bob")
    first = cli.run("post", "--user", "ada", "first")
    post = cli.run("post", "--user", "bob", "--quote", first, "--repost", first, "--url", "https://a.example/",
                   "--url", "http://b.example/x", "--media", '{"kind":"image"}', "--media", '[{"kind":"film"}]',
                   "both")
    shown = json.loads(cli.run("read", post))
    for name in ("quote_of", "repost_of"):
        assert (shown[name]["post"], shown[name]["user"]) == (first, ada)
    assert shown["urls"] == ["https://a.example/", "http://b.example/x"]
    assert shown["media"] == [{"kind": "image"}, {"kind": "film"}]
    secret = cli.run("post", "--user", "ada", "--audience", "followers", "secret")
    for option in ("--quote", "--repost", "--reply-to"):
        cli.run("post", "--user", "bob", option, secret, "x", status=1)
    cli.run("follow", "bob", "ada")
    work(cli)
    quoting = json.loads(cli.run("read", cli.run("post", "--user", bob, "--quote", secret, "x")))
    assert quoting["quote_of"] == {"post": secret}
    cli.run("post", "--user", "bob", "--repost", secret, "x", status=1)


@pytest.mark.parametrize("given, kept", [
    ("one\n", "one"), ("two\nlines", "two\nlines"), ("empty line\n\n", "empty line\n"), ("é" * 10000, "é" * 10000),
    ("é" * 10000 + "\n", "é" * 10000)])
def test_text_from_standard_input(cli, given, kept):
    cli.run("user", "add", "ada")
    post = cli.run("post", "--user", "ada", "-", given=given)
    assert json.loads(cli.run("read", post))["text"] == kept


@pytest.mark.parametrize("given", ["", "\n", "é" * 10000 + "\n\n", "x" * 100000])
def test_standard_input_that_is_no_text(cli, given):
    cli.run("user", "add", "ada")
    cli.run("post", "--user", "ada", "-", given=given, status=2)
    assert cli.run("posts", "ada") == ""


def test_logins_are_unique_under_case_folding(cli):
    first = cli.run("user", "add", "Straße")
    cli.run("user", "add", "STRASSE", status=1)
    cli.run("user", "add", "straße", status=1)
    assert cli.run("post", "--user", "sTRASSE", "same person") > first


@pytest.mark.parametrize("login", ["", " ", "a b", "a" * 200, "@ada", "a\nb", "-"])
def test_bad_logins(cli, login):
    cli.run("user", "add", "--", login, status=2)


def test_delete_is_for_the_author(cli, redis):
    cli.run("user", "add", "ada")
    cli.run("user", "add", "bob")
    post_id = cli.run("post", "--user", "ada", "mine")
    cli.run("delete", "--user", "bob", post_id, status=1)
    cli.run("delete", "--user", "ada", "4096", status=1)
    cli.run("delete", "--user", "ada", post_id)
    cli.run("delete", "--user", "ada", post_id, status=1)
    event = redis.log()[-1]
    assert event["type"] == "delete" and event["post"]["id"] == post_id
    assert event["post"]["text"] == "mine"  # the whole post, for the filters
    assert not redis.client.exists(redis.key(post_id, f"post:{post_id}"))


def test_follow_and_unfollow(cli, redis):
    ada, bob = cli.run("user", "add", "ada"), cli.run("user", "add", "bob")
    cli.run("follow", "ada", "bob")
    cli.run("follow", "ada", "bob")  # again: nothing to do, no error
    cli.run("follow", "ada", "ada", status=1)
    work(cli)
    assert redis.client.zrange(redis.key(ada, f"following:{ada}"), 0, -1) == [bob]
    assert redis.client.zrange(redis.key(bob, f"followers:{bob}"), 0, -1) == [ada]
    cli.run("unfollow", "ada", "bob")
    cli.run("unfollow", "ada", "bob")
    work(cli)
    for user, relation in ((ada, "following"), (bob, "followers")):
        assert not redis.client.exists(redis.key(user, f"{relation}:{user}"))
    events_ = [e for e in redis.log() if "follow" in e["type"]]
    assert [(e["type"], e["user"]["id"], e["target"]["id"]) for e in events_] == [
        ("follow", ada, bob), ("unfollow", ada, bob)]


def test_init(servers, cli_for):
    redis = servers.redis(shards=None)
    cli = cli_for(redis)
    cli.run("init", "--shards", "4")
    assert redis.client.hget("sluice:{0}:meta", "shards") == "4"
    cli.run("init", "--shards", "4")
    cli.run("init", "--shards", "8", status=1)
    shards = {int(cli.run("user", "add", f"user{n}")) // 64 % 64 for n in range(24)}
    assert shards == {0, 1, 2, 3}


def test_hide_and_mute(cli, redis):
    ada, bob = cli.run("user", "add", "ada"), cli.run("user", "add", "bob")
    for command, own, mirror in (("hide", "hidden_from", "hidden_by"),
                                 ("mute", "mutes", "muted_by")):
        cli.run(command, "ada", "bob")
        cli.run(command, "ada", "bob")  # again: nothing to do, no error
        cli.run(command, "ada", "ada", status=1)
        work(cli)
        own, mirror = redis.key(ada, f"{own}:{ada}"), redis.key(bob, f"{mirror}:{bob}")
        assert redis.client.smembers(own) == {bob}
        assert redis.client.smembers(mirror) == {ada}
        cli.run("un" + command, "ada", "bob")
        work(cli)
        assert not redis.client.exists(own) and not redis.client.exists(mirror)
    assert [(e["type"], e["user"]["id"], e["target"]["id"]) for e in redis.log(ada)] == [
        (kind, ada, bob) for kind in ("hide", "unhide", "mute", "unmute")]


def test_posts_for_some(cli, redis):
    ada = cli.run("user", "add", "ada")
    for audience in ("public", "followers", f"only:{ada}"):
        cli.run("post", "--user", "ada", "--audience", audience, "hello")
    if redis.shards < 64:  # otherwise 63 is an ordinary shard
        cli.run("post", "--user", "ada", "--audience", f"except:{ada},4032", "hello", status=2)
    assert [e["post"]["audience"] for e in redis.log()] == ["public", "followers", f"only:{ada}"]


def test_users_of_several_shards_follow_and_post(cli_for, servers):
    redis = servers.redis(shards=4)
    cli = cli_for(redis)
    gateway = servers.gateway(redis)
    logins = [f"user{n}" for n in range(8)]
    for login in logins:
        cli.run("user", "add", login)
    with gateway.stream("/v1/stream/firehose") as stream:
        wanted = {cli.run("post", "--user", login, f"from {login}") for login in logins}
        assert {stream.next()["id"] for _ in logins} == wanted


def test_redis_by_environment_and_option(cli_for, redis, servers):
    other = servers.redis()
    cli = cli_for(other)
    cli.run("--redis", redis.url, "user", "add", "ada")
    assert redis.client.keys("*:logins") and not other.client.keys("*:logins")
    cli.run("user", "add", "ada")
    assert other.client.keys("*:logins")


def write(folder, lines):
    file = folder / "events.jsonl"
    file.write_text("".join(line + "\n" for line in lines))
    return file


def test_replay(cli, redis, tmp_path):
    lines = [events.dump(events.post(n, f"post {n}", user=str(n % 3), lang="en",
                                     geo={"lon": 1.5, "lat": 2.5}, urls=["http://x.example/"],
                                     place={"name": "Suva", "bbox": [178.0, -19.0, -179.0, -16.0]}))
             for n in range(1, 31)]
    cli.run("replay", write(tmp_path, lines))
    posts = [e["post"] for e in redis.log() if e["type"] == "post"]
    for user in range(3):  # in several shards, if there are several
        assert [p["text"] for p in posts if p["user"]["login"] == f"u{user}"] == \
            [f"post {n}" for n in range(1, 31) if n % 3 == user]
    for post in posts:
        assert post["geo"] == {"lon": 1.5, "lat": 2.5} and post["lang"] == "en"
        assert post["place"] == {"name": "Suva", "bbox": [178.0, -19.0, -179.0, -16.0]}


def test_replay_says_which_line_is_bad(cli, tmp_path):
    good = events.dump(events.post(1, "good"))
    for bad in ("garbage", "[]", '{"type":"post"}', good[:-1]):
        cli.run("replay", write(tmp_path, [good, bad]), status=1)
        assert "2" in cli.done.stderr


def test_replay_at_a_rate(cli, redis, tmp_path):
    lines = [events.dump(events.post(n, f"post {n}")) for n in range(1, 31)]
    start = time.monotonic()
    cli.run("replay", write(tmp_path, lines), "--rate", "50")
    assert 0.5 < time.monotonic() - start
    assert len([e for e in redis.log() if e["type"] == "post"]) == 30


def test_replay_in_a_loop_ends_by_signal(cli, redis, tmp_path):
    lines = [events.dump(events.post(n, f"post {n}")) for n in range(1, 4)]
    with redis.listening() as next_message:
        loop = cli.start("replay", write(tmp_path, lines), "--rate", "200", "--loop")
        posts = 0
        while posts < 10:
            posts += '"type":"post"' in next_message()
    loop.stop(signal.SIGINT, STOPPED)


# tail

def tail(cli, gateway, *arguments):
    return cli.start("tail", "--url", f"http://127.0.0.1:{gateway.port}",
                     "--token", gateway.token(), *arguments)


def heard(program, redis, event):
    """Publishes until tail prints it: it does not report when its stream is open."""
    deadline = Deadline(what="sluice tail listens")
    while True:
        redis.publish(events.dump(event))
        while program.has_line(0.05):
            line = json.loads(program.line())
            if line["id"] == event["id"]:
                return line
        deadline.left()


@pytest.mark.parametrize("arguments", [
    ["filter", "--track", "kite,balloon"], ["filter", "--follow", "1"], ["sample", "--percent", "100"],
    ["filter", "--locations", "0,0,2,2"], ["filter", "--track", "kite", "--language", "en"], ["firehose"],
    ["filter", "--track", "kite", "--track", "tea"], ["filter", "--track", "tea", "--track", "kite"]])
def test_tail_prints_lines(cli, redis, servers, arguments):
    gateway = servers.gateway(redis)
    program = tail(cli, gateway, *arguments)
    kite = events.post(1, "a kite", lang="en", geo={"lon": 1.0, "lat": 1.0})
    told = heard(program, redis, kite)
    assert told == {**kite, "cursor": told["cursor"]}
    redis.publish(events.dump({**kite, "id": "2"}))
    while json.loads(program.line())["id"] != "2":
        pass
    program.stop(signal.SIGINT, STOPPED)


def test_tail_of_the_past_for_people(cli, redis, servers):
    gateway = servers.gateway(redis)
    cli.run("user", "add", "ada", "--name", "Ada")
    posts = [cli.run("post", "--user", "ada", text) for text in ("Tea", "Cake", "More tea")]
    cli.environment |= {"SLUICE_URL": f"http://127.0.0.1:{gateway.port}", "SLUICE_TOKEN": gateway.token()}
    said = cli.run("tail", "filter", "--since", "-1h", "--track", "cake", "--track", "tea", "--limit", "3",
                   "--pretty").splitlines()
    assert [line[8:] for line in said] == [" @ada (Ada): Tea", " @ada (Ada): Cake", " @ada (Ada): More tea"]
    lines = cli.run("tail", "firehose", "--since", posts[0], "--limit", "2").splitlines()
    assert [json.loads(line)["id"] for line in lines] == posts[1:]
    assert json.loads(cli.run("tail", "firehose", "--since", posts[0], "--until", posts[1]))["id"] == posts[1]
    assert cli.done.stderr == ""


def test_tail_reconnects(cli, redis, servers):
    gateway = servers.gateway(redis, listen=f"127.0.0.1:{steady_port()}")
    program = tail(cli, gateway, "firehose")
    heard(program, redis, events.post(1, "before"))
    gateway.stop()
    servers.gateway(redis, listen=gateway.listen)
    heard(program, redis, events.post(2, "after"))
    program.stop(signal.SIGINT, STOPPED)


def test_tail_misses_nothing_while_it_is_away(cli_for, servers):
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    ids = [cli.run("post", "--user", "ada", f"number {number}") for number in range(5)]
    gateway = servers.gateway(redis, listen=f"127.0.0.1:{steady_port()}")
    program = tail(cli, gateway, "firehose", "--since", ids[1])
    assert [json.loads(program.line())["id"] for _ in range(3)] == ids[2:]
    gateway.stop()
    ids.append(cli.run("post", "--user", "ada", "meanwhile"))
    servers.gateway(redis, listen=gateway.listen)
    assert json.loads(program.line())["id"] == ids[-1]
    ids.append(cli.run("post", "--user", "ada", "after"))
    assert json.loads(program.line())["id"] == ids[-1]
    program.stop(signal.SIGINT, STOPPED)


def test_tail_gives_up_on_a_refusal(cli, redis, servers):
    gateway = servers.gateway(redis)
    url = f"http://127.0.0.1:{gateway.port}"
    cli.run("tail", "--url", url, "--token", "wrong", "firehose", status=1)
    assert "401" in cli.done.stderr or "token" in cli.done.stderr
    cli.run("tail", "--url", url, "--token", gateway.token(), "filter", "--track", "!!!", status=1)
    assert "keyword" in cli.done.stderr
