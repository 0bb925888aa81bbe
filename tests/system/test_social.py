"""Users, posts, comments, likes and the graph from the command line."""

import json

import pytest

from harness import events


@pytest.fixture
def site(servers, cli_for):
    """The command line with a fresh database with ada, bob, carl and dora."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.redis = redis
    cli.ids = {login: cli.run("user", "add", login) for login in ("ada", "bob", "carl", "dora")}
    cli.lines = lambda *arguments, **how: [json.loads(line)
                                           for line in cli.run(*arguments, **how).splitlines()]
    cli.work = lambda: cli.run("worker", "--until-empty", "--lease-ms", "50")
    return cli


def test_users_are_shown_and_renamed(site):
    site.run("user", "rename", "ADA", "Ada Lindqvist")
    ada, bob = site.lines("user", "show", "ada", site.ids["bob"])
    assert ada.pop("signup")[:2] == "20"
    assert ada == {"id": site.ids["ada"], "login": "ada", "name": "Ada Lindqvist", "followers": 0,
                   "following": 0, "posts": 0}
    assert bob["login"] == "bob"
    assert [user["login"] for user in site.lines("user", "show", "ada", "nobody", "bob", status=1)] \
        == ["ada", "bob"]
    assert "there is no user @nobody" in site.done.stderr


def test_many_are_followed_and_listed(site):
    said = site.run("follow", "ada", "bob", "nobody", "carl", "ada", "dora", "bob", status=1)
    assert said.splitlines() == ["bob: followed", "carl: followed", "dora: followed",
                                 "bob: nothing to do"]
    assert "nobody: there is no" in site.done.stderr
    assert "ada: nobody can follow themselves" in site.done.stderr
    site.run("follow", "bob", "carl")
    site.work()
    following = site.lines("following", "ada")
    assert [user["login"] for user in following] == ["dora", "carl", "bob"]
    assert [user["login"] for user in site.lines(
        "following", "ada", "--limit", "1", "--before", following[0]["position"])] == ["carl"]
    assert {user["login"] for user in site.lines("followers", "carl")} == {"ada", "bob"}
    counters = {user["login"]: (user["followers"], user["following"])
                for user in site.lines("user", "show", "ada", "bob", "carl", "dora")}
    assert counters == {"ada": (0, 3), "bob": (1, 1), "carl": (2, 0), "dora": (1, 0)}
    assert site.run("unfollow", "ada", "bob", "carl").splitlines() == \
        ["bob: unfollowed", "carl: unfollowed"]
    site.run("config", "set", "following-max", "1")
    site.run("follow", "ada", "bob", status=1)
    assert "more than 1 users" in site.done.stderr


def test_common_followers_and_following(site):
    site.run("follow", "ada", "carl", "dora", "bob")
    site.run("follow", "bob", "dora", "carl", "ada")
    site.run("follow", "dora", "bob")
    site.work()

    def common(*arguments):
        return [user["login"] for user in site.lines("common", *arguments)]
    assert common("following", "ada", "bob") == ["dora", "carl"]
    assert common("following", "bob", "ada") == ["carl", "dora"]
    assert set(common("followers", "carl", "dora")) == {"ada", "bob"}
    assert common("followers", "bob", "carl") == ["ada"]
    assert common("followers", "ada", "bob") == []
    first, = site.lines("common", "following", "ada", "bob", "--limit", "1")
    assert common("following", "ada", "bob", "--before", first["position"]) == ["carl"]
    site.run("common", "following", "ada", "nobody", status=1)


def test_posts_comments_and_likes_are_read(site):
    post = site.run("post", "--user", "ada", "--lang", "en", "first")
    comments = [site.run("post", "--user", login, "--reply-to", post, "re") for login in ("bob", "carl")]
    for login in ("bob", "carl", "carl"):
        site.run("like", "--user", login, post)
    site.work()
    whole, = site.lines("read", post)
    assert (whole["text"], whole["lang"], whole["likes"], whole["comments"]) == ("first", "en", 2, 2)
    assert whole["user"] == {"id": site.ids["ada"], "login": "ada", "name": "ada"}
    assert {comment["id"] for comment in site.lines("comments", post)} == set(comments)
    assert all(comment["reply_to"]["post"] == post for comment in site.lines("comments", post))
    likes = site.lines("likes", post)
    assert [user["login"] for user in likes] == ["carl", "bob"]
    assert [user["login"] for user in site.lines(
        "likes", post, "--before", likes[0]["position"])] == ["bob"]

    site.run("unlike", "--user", "carl", post)
    site.run("delete", "--user", "bob", comments[0])
    site.work()
    whole, = site.lines("read", post)
    assert (whole["likes"], whole["comments"]) == (1, 1)
    site.run("delete", "--user", "ada", post)
    assert site.lines("read", post, comments[1], status=1)[0]["id"] == comments[1]
    assert "there is no post " + post in site.done.stderr
    site.run("comments", post, status=1)


def test_posts_name_their_audience_by_login(site):
    post = site.run("post", "--user", "ada", "--audience", f"only:@Bob,{site.ids['carl']}", "this")
    read, = site.lines("read", "--as", "ada", post)
    assert read["audience"] == f"only:{site.ids['bob']},{site.ids['carl']}"
    site.run("post", "--user", "ada", "--audience", "only:@nobody", "x", status=1)
    assert "nobody" in site.done.stderr
    site.run("post", "--user", "ada", "--url", "javascript:alert(1)", "x", status=2)


def test_posts_of_a_user_are_paged_and_read_as_somebody(site):
    posts = [site.run("post", "--user", "ada", f"post {n}") for n in range(5)]
    assert [post["id"] for post in site.lines("posts", "ada")] == posts[::-1]
    assert [post["id"] for post in site.lines("posts", "ada", "--limit", "2", "--before", posts[3])] \
        == [posts[2], posts[1]]
    site.run("hide", "ada", "bob")
    site.work()
    assert site.lines("posts", "ada", "--as", "bob") == []
    assert len(site.lines("posts", "ada", "--as", "carl")) == 5
    site.run("read", posts[0], "--as", "bob", status=1)
    site.run("like", "--user", "bob", posts[0], status=1)


def test_pages_are_full_however_much_of_the_list_is_not_for_the_reader(site, tmp_path):
    first = [site.run("post", "--user", "ada", f"for all {n}") for n in range(3)]
    with open(tmp_path / "posts.jsonl", "w") as out:
        for number in range(1, 1201):  # a script skips at most 500
            out.write(events.dump(events.post(number, "for few", login="ada")) + "\n")
    site.run("replay", tmp_path / "posts.jsonl")
    for event in site.redis.log():
        if event["post"]["text"] == "for few":
            site.redis.client.hset(site.redis.key(event["id"], f"post:{event['id']}"), "audience",
                                   f"only:{site.ids['carl']}")
    last = site.run("post", "--user", "ada", "for all, too")
    for limit, wanted in ((1, [last]), (2, [last, first[2]]), (20, [last, *first[::-1]])):
        shown = site.lines("posts", "ada", "--as", "bob", "--limit", limit)
        assert [post["id"] for post in shown] == wanted
    assert site.lines("posts", "ada", "--as", "bob", "--before", first[0]) == []
    assert len(site.lines("posts", "ada", "--as", "carl", "--limit", "1000")) == 1000


def test_comments_by_users_who_hide_do_not_shorten_the_page(site):
    post = site.run("post", "--user", "ada", "who is there?")
    comments = [site.run("post", "--user", login, "--reply-to", post, "me")
                for login in ("bob", "carl", "dora", "carl", "carl", "carl")]
    site.run("hide", "carl", "dora")
    site.work()
    assert [comment["id"] for comment in site.lines(
        "comments", post, "--as", "dora", "--limit", "2")] == [comments[2], comments[0]]


@pytest.mark.parametrize("arguments", [
    ["user", "show"], ["user", "rename", "ada"], ["user", "show", "="], ["read"], ["read", "x"],
    ["posts"], ["posts", "ada", "bob"], ["posts", "ada", "--limit", "0"], ["comments", "x"],
    ["posts", "ada", "--limit", "1001"], ["followers", "ada", "--as", "bob"], ["like", "4096"],
    ["following", "ada", "--before", "x"], ["like", "--user", "ada", "x"], ["likes", "ada"],
    ["user", "rename", "ada", ""], ["common", "followers", "ada"], ["common", "ada", "bob"], ["follow", "ada", "a b"]])
def test_wrong_usage_is_2(site, arguments):
    site.run(*arguments, status=2)
    assert site.done.stderr and not site.done.stdout


@pytest.mark.parametrize("timeline", ["push", "pull", "hybrid"])
def test_home_timelines(site, timeline):
    site.run("config", "set", "timeline", timeline)
    home = lambda *options: [post["id"] for post in site.lines("home", "ada", *options)]
    assert home() == []
    site.run("follow", "ada", "bob", "carl")
    site.work()
    said = [site.run("post", "--user", login, "hello") for login in ("ada", "bob", "carl", "dora")]
    secret = site.run("post", "--user", "bob", "--audience", f"only:{site.ids['carl']}", "hush")
    site.run("like", "--user", "ada", said[1])
    site.work()
    newest = sorted(said[:3], key=int, reverse=True)
    assert home() == newest and secret not in newest
    assert home("--limit", "2") == newest[:2]
    assert home("--before", newest[1]) == newest[2:]
    assert home("--after", newest[2]) == newest[:2]
    shown = {post["id"]: post for post in site.lines("home", site.ids["ada"])}[said[1]]
    assert (shown["user"]["login"], shown["text"], shown["likes"], shown["comments"]) == \
        ("bob", "hello", 1, 0)

    site.run("mute", "ada", "carl")
    site.run("hide", "bob", "ada")
    assert home() == said[:1]
    site.run("unmute", "ada", "carl")
    site.run("unhide", "bob", "ada")
    site.work()
    assert home() == newest
    site.run("delete", "--user", "carl", said[2])
    site.run("unfollow", "ada", "bob")
    assert home() == said[:1]


def test_home_of_nobody(site):
    site.run("home", "nobody", status=1)
    assert "there is no user" in site.done.stderr
