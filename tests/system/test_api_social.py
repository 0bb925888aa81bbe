"""Graph, likes, comments, audiences and lists over HTTP."""

import zlib

import pytest

from harness.api import Site
from harness.cli import Cli
from harness.waiting import eventually


@pytest.fixture(scope="module")
def site(module_servers):
    redis = module_servers.redis()
    worker = Cli(redis).start("worker")
    site = Site(module_servers.gateway(redis))
    site.redis = redis
    yield site
    site.close()
    worker.stop()


@pytest.fixture
def people(site, request):
    """people(n): new users, so that tests do not affect each other."""
    def people(count):
        return [site.user(f"u{len(site.users)}") for _ in range(count)]
    return people


def pages(user, path, limit=None):
    """Returns all pages of a list, and checks their cursors."""
    more = "&" if "?" in path else "?"
    query, found = (f"{more}limit={limit}" if limit else ""), []
    while True:
        page = user.get(path + query)
        assert set(page) == ({"items", "next"} if page["items"] else {"items"}), page
        if not page["items"]:
            return found
        found.append(page["items"])
        query = f"{more}before={page['next']}" + (f"&limit={limit}" if limit else "")


def items(user, path, limit=None):
    return [item for page in pages(user, path, limit) for item in page]


def ids(user, path, limit=None):
    return [item["id"] for item in items(user, path, limit)]


def test_follow_and_unfollow_change_both_sides_and_say_nothing_twice(people):
    ada, bob = people(2)
    for method, followed in (("PUT", 1), ("DELETE", 0)):
        for _ in range(2):
            assert ada.expect(204, method, f"/v1/users/me/following/{bob.sub}") is None
        assert ada.get("/v1/users/me")["following"] == followed
        eventually(lambda: ada.get(f"/v1/users/{bob.sub}")["followers"] == followed,
                   "the other side follows")
        assert ids(ada, "/v1/users/me/following") == [bob.sub][:followed]
        assert ids(ada, f"/v1/users/{bob.sub}/followers") == [ada.sub][:followed]


def test_users_are_followed_by_login_too(people):
    ada, bob = people(2)
    login = ada.get(f"/v1/users/{bob.sub}")["login"]
    ada.expect(204, "PUT", f"/v1/users/me/following/{login.upper()}")
    assert ids(ada, "/v1/users/me/following") == [bob.sub]


def test_nobody_follows_themselves_or_nobody(people):
    ada, = people(1)
    ada.refused(400, "bad_request", "PUT", f"/v1/users/me/following/{ada.sub}")
    for nobody in ("nobody_of_this_name", "4096", "9007199254740991", "not a login"):
        ada.refused(404, "not_found", "PUT", f"/v1/users/me/following/{nobody.replace(' ', '%20')}")


def test_following_is_listed_in_whole_users_newest_first(people):
    ada, *others = people(7)
    for other in others:
        ada.expect(204, "PUT", f"/v1/users/me/following/{other.sub}")
    listed = items(ada, "/v1/users/me/following", limit=2)
    assert [user["id"] for user in listed] == [other.sub for other in reversed(others)]
    assert [len(page) for page in pages(ada, "/v1/users/me/following", limit=4)] == [4, 2]
    for user in listed:
        assert set(user) == {"id", "login", "name", "signup", "followers", "following", "posts"}


def test_many_are_followed_at_once_and_each_is_told(people):
    ada, *others = people(41)
    ada.expect(204, "PUT", f"/v1/users/me/following/{others[0].sub}")
    users = [other.sub for other in others] + [ada.sub, "4096", "!"]
    key = {"Idempotency-Key": "batch"}
    answer = ada.expect(200, "POST", "/v1/users/me/following", {"users": users}, key)
    assert [result["user"] for result in answer["results"]] == users
    told = [(result["following"], result["changed"]) for result in answer["results"]]
    assert told == [(True, False)] + [(True, True)] * 39 + [(False, False)] * 3
    assert [result["error"]["code"] for result in answer["results"][40:]] == \
        ["bad_request", "not_found", "not_found"]
    assert ada.get("/v1/users/me")["following"] == 40
    assert ada.expect(200, "POST", "/v1/users/me/following", {"users": users}, key) == answer


def test_many_are_unfollowed_at_once_and_each_is_told(people):
    ada, *others = people(6)
    users = [other.sub for other in others]
    ada.expect(200, "POST", "/v1/users/me/following", {"users": users[:4]})
    answer = ada.expect(200, "POST", "/v1/users/me/unfollow", {"users": [*users[1:], "nobody_here"]})
    assert [(r["user"], r["following"], r["changed"]) for r in answer["results"]] == [
        *((user, False, True) for user in users[1:4]), (users[4], False, False),
        ("nobody_here", False, False)]
    assert [r.get("error", {}).get("code") for r in answer["results"]] == [None] * 4 + ["not_found"]
    assert ids(ada, "/v1/users/me/following") == users[:1]


def test_posts_are_read_by_their_ids_in_the_order_of_the_request(people):
    ada, bob, eve = people(3)
    posts = [author.post(text) for author, text in
             ((ada, "one"), (bob, "two"), (eve, "three"), (ada, "four"))]
    secret = ada.post("for bob", audience=f"only:{bob.sub}")
    gone = bob.post("gone")
    bob.expect(204, "DELETE", f"/v1/posts/{gone['id']}")
    asked = [posts[2], secret, posts[0], gone, posts[3], posts[1]]
    listed = ",".join([post["id"] for post in asked] + ["9007199254740991", posts[2]["id"]])
    assert eve.get(f"/v1/posts?ids={listed}") == {
        "items": [posts[2], posts[0], posts[3], posts[1]],
        "missing": [secret["id"], gone["id"], "9007199254740991"]}
    answer = bob.get(f"/v1/posts?ids={listed}")
    assert [post["id"] for post in answer["items"]] == [p["id"] for p in asked if p is not gone]
    assert answer["missing"] == [gone["id"], "9007199254740991"]
    ada.expect(204, "PUT", f"/v1/users/me/hidden/{bob.sub}")
    eventually(lambda: bob.get(f"/v1/posts?ids={posts[0]['id']}") ==
               {"items": [], "missing": [posts[0]["id"]]}, "ada hides")


def test_users_are_read_by_their_ids_in_the_order_of_the_request(people):
    users = people(9)
    asked = [user.sub for user in reversed(users)]
    listed = ",".join([asked[0], "4096", *asked[1:], asked[0]])
    answer = users[0].get(f"/v1/users?ids={listed}")
    assert answer == {"items": [users[0].get(f"/v1/users/{user}") for user in asked],
                      "missing": ["4096"]}


@pytest.mark.parametrize("query, code", [
    ("", "missing_parameter"), ("?ids=", "bad_ids"), ("?ids=1,", "bad_ids"),
    ("?ids=ada", "bad_ids"), ("?ids=1&limit=2", "unknown_parameter"),
    ("?ids=" + ",".join(str(number) for number in range(1, 202)), "bad_ids")])
def test_what_lists_no_ids_is_refused(people, query, code):
    ada, = people(1)
    for path in ("/v1/posts", "/v1/users"):
        ada.refused(400, code, "GET", path + query)


def test_common_followers_and_followed_are_listed(people):
    ada, bob, *others = people(12)
    for other in others:
        other.expect(204, "PUT", f"/v1/users/me/following/{ada.sub}")
    for other in others[::2]:
        other.expect(204, "PUT", f"/v1/users/me/following/{bob.sub}")
        bob.expect(204, "PUT", f"/v1/users/me/following/{other.sub}")
        ada.expect(204, "PUT", f"/v1/users/me/following/{other.sub}")
    ada.expect(204, "PUT", f"/v1/users/me/following/{others[1].sub}")
    eventually(lambda: (ada.get("/v1/users/me")["followers"], bob.get("/v1/users/me")["followers"])
               == (10, 5), "everybody follows")
    common = [other.sub for other in reversed(others[::2])]
    login = bob.get("/v1/users/me")["login"]
    for kind in ("followers", "following"):
        path = f"/v1/users/me/common-{kind}?with={login}"
        answer = ada.get(path)
        assert [user["id"] for user in answer["items"]] == common and "next" not in answer
        assert answer["items"][0] == ada.get(f"/v1/users/{common[0]}")
        found, before = [], ""
        while before is not None:
            page = others[3].get(f"/v1/users/{ada.sub}/common-{kind}?with={bob.sub}&limit=2{before}")
            assert len(page["items"]) <= 2
            found += [user["id"] for user in page["items"]]
            before = f"&before={page['next']}" if "next" in page else None
        assert found == common
        ada.refused(404, "not_found", "GET", f"/v1/users/me/common-{kind}?with=nobody_at_all")
        ada.refused(404, "not_found", "GET", f"/v1/users/4096/common-{kind}?with=me")
        ada.refused(404, "not_found", "GET", f"/v1/users/me/common-{kind}?with=4160")
        ada.refused(400, "missing_parameter", "GET", f"/v1/users/me/common-{kind}")


def strip(thing):
    """Returns it without what was included."""
    return {name: value for name, value in thing.items() if name not in ("included", "viewer")}


def test_pages_bring_newest_comments_and_likers_of_each_post(people, site):
    ada, bob, *others = people(9)
    posts = [ada.post(f"post {number}") for number in range(4)]
    ada.expect(204, "PUT", f"/v1/users/me/hidden/{others[0].sub}")
    comments = {}
    for number, post in enumerate(posts):
        path = f"/v1/posts/{post['id']}"
        for other in others[1:1 + 2 * number]:
            other.post("this", reply_to=post["id"])
            other.expect(204, "PUT", f"{path}/like")
        bob.post("for ada", reply_to=post["id"], audience=f"only:{ada.sub}")
        comments[post["id"]] = min(2 * number, 6) + 1
    for post, count in comments.items():
        eventually(lambda: ada.get(f"/v1/posts/{post}")["comments"] == count, "all comments are listed")
    bob.expect(204, "PUT", f"/v1/users/me/muted/{others[1].sub}")
    bob.expect(204, "PUT", f"/v1/users/me/following/{ada.sub}")
    eventually(lambda: others[1].sub not in
               [c["user"]["id"] for c in items(bob, f"/v1/posts/{posts[3]['id']}/comments")], "bob has muted")
    listed = ",".join(post["id"] for post in posts)
    for reader in (ada, bob, others[2]):
        paths = [f"/v1/users/{ada.sub}/posts?limit=50", f"/v1/posts?ids={listed}"]
        if reader is not others[2]:
            paths.append("/v1/timelines/home?limit=50")
        for path in paths:
            page = reader.get(path + "&include=comments:3,likes:5")
            plain = reader.get(path)
            assert [strip(post) for post in page["items"]] == plain["items"]
            for post in page["items"]:
                path = f"/v1/posts/{post['id']}"
                assert post["included"] == {"comments": items(reader, f"{path}/comments")[:3],
                                            "likes": items(reader, f"{path}/likes")[:5]}
        one = reader.get(f"/v1/posts/{posts[3]['id']}?include=likes:2")
        assert one["included"] == {"likes": items(reader, f"/v1/posts/{posts[3]['id']}/likes")[:2]}
    others[0].refused(404, "not_found", "GET", f"/v1/posts/{posts[3]['id']}?include=comments:3")


def test_what_is_included_costs_no_call_for_each_post(people, site):
    """At most two rounds of calls: there is one call for each shard and kind and 20 posts."""
    ada, *others = people(4)
    posts = [ada.post(f"post {number}") for number in range(20)]
    for post in posts:
        for other in others:
            other.post("this", reply_to=post["id"])
            other.expect(204, "PUT", f"/v1/posts/{post['id']}/like")
    eventually(lambda: ada.get(f"/v1/posts/{posts[-1]['id']}")["comments"] == 3, "all are listed")

    def scripts():
        calls = site.redis.client.info("commandstats")
        return sum(calls.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))

    def cost(path):
        """The minimum of several requests: the worker makes calls of its own."""
        costs = []
        for _ in range(5):
            before = scripts()
            assert len(ada.get(path)["items"]) == 20
            costs.append(scripts() - before)
        return min(costs)

    plain = cost("/v1/users/me/posts")
    more = cost("/v1/users/me/posts?include=comments:3,likes:5,viewer") - plain
    elsewhere = 0 if site.redis.shards == 1 else 2 * site.redis.shards
    assert more <= 2 + elsewhere


def test_the_viewer_is_told_what_it_has_to_do_with_posts_and_users(people):
    ada, bob, eve = people(3)
    posts = [bob.post("one"), eve.post("two")]
    listed = ",".join(post["id"] for post in posts)
    nothing = {"following": False, "hidden": False, "muted": False}
    assert [post["viewer"] for post in ada.get(f"/v1/posts?ids={listed}&include=viewer")["items"]] == \
        [{"liked": False, **nothing}] * 2
    ada.expect(204, "PUT", f"/v1/posts/{posts[0]['id']}/like")
    ada.expect(204, "PUT", f"/v1/users/me/following/{eve.sub}")
    ada.expect(204, "PUT", f"/v1/users/me/hidden/{bob.sub}")
    ada.expect(204, "PUT", f"/v1/users/me/muted/{eve.sub}")
    of_bob = {**nothing, "hidden": True}
    of_eve = {**nothing, "following": True, "muted": True}
    bobs = ada.get(f"/v1/posts/{posts[0]['id']}?include=viewer")
    assert bobs["viewer"] == {"liked": True, **of_bob}
    ada.expect(204, "DELETE", f"/v1/users/me/muted/{eve.sub}")
    of_eve["muted"] = False
    eventually(lambda: [post["viewer"] for post in
                        ada.get(f"/v1/posts?ids={listed}&include=viewer")["items"]] ==
               [{"liked": True, **of_bob}, {"liked": False, **of_eve}], "eve is to be seen again")
    assert ada.get(f"/v1/users/{bob.sub}?include=viewer")["viewer"] == of_bob
    page = ada.get(f"/v1/users?ids={eve.sub},{bob.sub}&include=viewer")["items"]
    assert [user["viewer"] for user in page] == [of_eve, of_bob]
    assert [strip(user) for user in page] == ada.get(f"/v1/users?ids={eve.sub},{bob.sub}")["items"]
    assert [user["viewer"] for user in ada.get("/v1/users/me/following?include=viewer")["items"]] == [of_eve]


def test_whom_one_hides_from_and_mutes_is_listed(people):
    ada, *others = people(8)
    for kind in ("hidden", "muted"):
        assert ada.get(f"/v1/users/me/{kind}") == {"items": []}
        for other in others:
            ada.expect(204, "PUT", f"/v1/users/me/{kind}/{other.sub}")
        expected = sorted((other.sub for other in others), key=int, reverse=True)
        assert ids(ada, f"/v1/users/me/{kind}", limit=3) == expected
        assert items(ada, f"/v1/users/me/{kind}")[0] == ada.get(f"/v1/users/{expected[0]}")
        ada.expect(204, "DELETE", f"/v1/users/me/{kind}/{expected[0]}")
        assert ids(ada, f"/v1/users/me/{kind}") == expected[1:]
        assert others[0].get(f"/v1/users/me/{kind}") == {"items": []}


def test_what_one_likes_is_listed_newest_like_first(people, site):
    ada, *others = people(6)
    posts = [other.post("like me") for other in others for _ in range(2)]
    for post in posts:
        ada.expect(204, "PUT", f"/v1/posts/{post['id']}/like")
    found, before = [], ""
    while before is not None:
        page = ada.get(f"/v1/users/me/likes?limit=4{before}")
        found += page["items"]
        before = f"&before={page['next']}" if "next" in page else None
    assert found == [ada.get(f"/v1/posts/{post['id']}") for post in reversed(posts)]
    ada.expect(204, "DELETE", f"/v1/posts/{posts[0]['id']}/like")
    others[0].expect(204, "DELETE", f"/v1/posts/{posts[1]['id']}")
    others[1].expect(204, "PUT", f"/v1/users/me/hidden/{ada.sub}")
    left = [post["id"] for post in reversed(posts[4:])]
    eventually(lambda: ids(ada, "/v1/users/me/likes") == left, "others may not be seen")
    page = ada.get("/v1/users/me/likes?limit=2&include=viewer,likes:1")["items"]
    assert [post["viewer"]["liked"] for post in page] == [True, True]
    assert [post["included"]["likes"][0]["id"] for post in page] == [ada.sub] * 2
    assert ids(others[2], "/v1/users/me/likes") == []
    cli, login = Cli(site.redis), ada.get("/v1/users/me")["login"]
    cli.run("unlike", "--user", login, left[0])
    assert ids(ada, "/v1/users/me/likes") == left[1:]
    cli.run("like", "--user", login, left[0])
    assert ids(ada, "/v1/users/me/likes") == left
    # an unlike by an older program is recorded only with the post
    site.redis.client.zrem(site.redis.key(left[0], f"likes:{left[0]}"), ada.sub)
    assert ids(ada, "/v1/users/me/likes") == left[1:]


def test_audiences_are_named_by_login_and_may_leave_out_followers(people):
    ada, bob, eve, tom = people(4)
    login = {user: user.get("/v1/users/me")["login"] for user in (bob, eve)}
    for user in (bob, eve):
        user.expect(204, "PUT", f"/v1/users/me/following/{ada.sub}")
    eventually(lambda: ada.get("/v1/users/me")["followers"] == 2, "both follow")
    for audience, kept, readers in (
            (f"only:@{login[bob].upper()},{tom.sub}", f"only:{bob.sub},{tom.sub}", (bob, tom)),
            (f"except:@{login[bob]}", f"except:{bob.sub}", (eve, tom)),
            (f"followers-except:@{login[bob]}", f"followers-except:{bob.sub}", (eve,)),
            (f"followers-except:{eve.sub}", f"followers-except:{eve.sub}", (bob,))):
        post = ada.post("for some", audience=audience)
        assert post["audience"] == kept
        path = f"/v1/posts/{post['id']}"
        for reader in (bob, eve, tom):
            if reader in readers:
                assert reader.get(path)["audience"] == kept.split(":")[0]
            else:
                reader.refused(404, "not_found", "GET", path)
        homes = [reader for reader in (bob, eve) if reader in readers]
        for reader in homes:
            eventually(lambda: post["id"] in [p["id"] for p in reader.get("/v1/timelines/home")["items"]],
                       "it is on the home timeline")
    error = ada.refused(400, "bad_request", "POST", "/v1/posts", {"text": "x", "audience": "only:@nobody_at_all"})
    assert error["param"] == "audience" and "nobody_at_all" in error["message"]
    ada.refused(400, "bad_request", "POST", "/v1/posts", {"text": "x", "audience": "only:@"})
    ada.refused(400, "bad_request", "POST", "/v1/posts", {"text": "x", "audience": "followers-except:"})


def test_posts_carry_links_media_reposts_and_quotes(people):
    ada, bob = people(2)
    post = bob.post("look")
    link = "https://example.org/" + "a" * 2028
    media = [{"url": "HTTP://example.org/cat.jpg", "alt": "a cat", "size": [3, 4]}]
    written = ada.post("this", urls=["http://example.org/?a=b#c", link], media=media,
                       repost_of=post["id"], quote_of=post["id"])
    assert written["urls"] == ["http://example.org/?a=b#c", link] and written["media"] == media
    assert written["repost_of"]["post"] == written["quote_of"]["post"] == post["id"]
    assert bob.get(f"/v1/posts/{written['id']}") == written
    for bad in ("javascript:alert(1)", "ftp://example.org/", "https://", "http:///x", "http://a b/",
                "//example.org", "", "data:text/html,x", "http://a\\b", "http://a\nb", link + "a"):
        error = ada.refused(400, "bad_request", "POST", "/v1/posts", {"text": "x", "urls": [bad]})
        assert error["param"] == "urls"
        error = ada.refused(400, "bad_request", "POST", "/v1/posts", {"text": "x", "media": [{"url": bad}]})
        assert error["param"] == "media"
    ada.refused(400, "bad_type", "POST", "/v1/posts", {"text": "x", "urls": [1]})
    ada.refused(400, "bad_type", "POST", "/v1/posts", {"text": "x", "media": ["http://example.org/"]})
    ada.refused(400, "bad_length", "POST", "/v1/posts", {"text": "x", "urls": ["http://a/"] * 17})


def test_the_public_timeline_has_what_everybody_may_see_newest_first(people):
    ada, bob, eve, *others = people(9)
    posts = []
    for number in range(5):
        for author in (ada, bob, *others):
            posts.append(author.post(f"post {number}"))
        ada.post("for some", audience="followers")
        eve.expect(204, "PUT", f"/v1/users/me/following/{others[number].sub}")  # events that are not posts
    gone = posts.pop(3)
    author, = [user for user in (ada, bob, *others) if user.sub == gone["user"]["id"]]
    author.expect(204, "DELETE", f"/v1/posts/{gone['id']}")
    posts.sort(key=lambda post: int(post["id"]), reverse=True)
    newest = eve.get("/v1/timelines/public?limit=39")
    assert newest["items"] == posts and newest["next"] == posts[-1]["id"]
    found, query = [], "?limit=7"
    while len(found) < len(posts):
        page = eve.get("/v1/timelines/public" + query)
        found += page["items"]
        query = f"?limit=7&before={page['next']}"
    assert found[:len(posts)] == posts
    eve.expect(204, "PUT", f"/v1/users/me/muted/{ada.sub}")
    bob.expect(204, "PUT", f"/v1/users/me/hidden/{eve.sub}")
    left = [post for post in posts if post["user"]["id"] not in (ada.sub, bob.sub)]
    eventually(lambda: eve.get(f"/v1/timelines/public?limit={len(left)}")["items"] == left, "two are out of sight")
    page = eve.get("/v1/timelines/public?limit=2&include=viewer")["items"]
    assert [strip(post) for post in page] == left[:2] and all(post["viewer"] for post in page)
    assert eve.get("/v1/timelines/public?before=1") == {"items": []}


def test_the_server_keeps_how_far_a_reader_was(people):
    ada, bob = people(2)
    ada.expect(204, "PUT", f"/v1/users/me/following/{bob.sub}")
    posts = [bob.post(f"post {number}") for number in range(4)]
    home = "/v1/timelines/home"
    eventually(lambda: len(ada.get(home)["items"]) == 4, "all are there")
    assert ada.get("/v1/users/me/last-read") == {"id": None}
    assert ada.get(f"{home}?after=last_read") == ada.get(home)
    for number in (2, 0, 3):
        ada.expect(204, "PUT", "/v1/users/me/last-read", {"id": posts[number]["id"]})
        assert ada.get("/v1/users/me/last-read") == {"id": posts[number]["id"]}
        assert ids(ada, f"{home}?after=last_read&limit=1") == \
            [post["id"] for post in reversed(posts[number + 1:])]
    assert bob.get("/v1/users/me/last-read") == {"id": None}
    for body in ({"id": "now"}, {"id": ""}, {"id": "0"}):
        ada.refused(400, "bad_request", "PUT", "/v1/users/me/last-read", body)
    ada.refused(400, "bad_after", "GET", f"{home}?after=last")
    ada.refused(400, "bad_before", "GET", f"{home}?before=last_read")


def login_of_shard(shard, shards, name):
    """Returns a login in this shard."""
    return next(login for login in (f"{name}{number}" for number in range(10000))
                if zlib.crc32(login.encode()) % shards == shard)


def test_users_change_what_they_say_of_themselves(people, site):
    ada, bob = people(2)
    before = ada.get("/v1/users/me")
    profile = {"bio": "First programmer.\nLondon \"and\" elsewhere", "avatar": "https://example.org/ada.png",
               "fields": [{"name": "Born", "value": "1815"}, {"name": "Site", "value": "https://ada.example/"}]}
    changed = ada.expect(200, "PATCH", "/v1/users/me", {"name": "Ada King", **profile})
    assert changed == {**before, "name": "Ada King", **profile}
    assert bob.get(f"/v1/users/{ada.sub}") == changed
    bob.expect(204, "PUT", f"/v1/users/me/following/{ada.sub}")
    listed, = bob.get("/v1/users/me/following")["items"]
    assert {**listed, "followers": 0} == changed
    assert ada.expect(200, "PATCH", "/v1/users/me", {})["bio"] == profile["bio"]
    ada.expect(200, "PATCH", "/v1/users/me", {"bio": None, "fields": []})
    assert set(ada.get("/v1/users/me")) == {*before, "avatar"}
    assert set(ada.expect(200, "PATCH", "/v1/users/me", {"avatar": None})) == set(before)


def test_what_cannot_be_said_of_oneself_is_refused(people):
    ada, = people(1)
    before = ada.get("/v1/users/me")
    field = {"name": "a", "value": "b"}
    for body, code, param in (
            ({"name": ""}, "bad_request", "name"), ({"name": None}, "bad_type", "name"),
            ({"bio": "x" * 2001}, "bad_request", "bio"), ({"avatar": "javascript:1"}, "bad_request", "avatar"),
            ({"avatar": "https://example.org/" + "a" * 2048}, "bad_request", "avatar"),
            ({"fields": [field] * 9}, "bad_length", "fields"), ({"fields": ["a"]}, "bad_type", "fields"),
            ({"fields": [{"name": "a"}]}, "missing_member", "fields.value"),
            ({"fields": [{"name": "", "value": "b"}]}, "bad_request", "fields"),
            ({"fields": [{**field, "x": 1}]}, "unknown_member", "fields.x"),
            ({"login": "no login"}, "bad_request", "login"), ({"id": "1"}, "unknown_member", "id"),
            ({"name": "Good", "bio": 1}, "bad_type", "bio")):
        assert ada.refused(400, code, "PATCH", "/v1/users/me", body)["param"] == param
    assert ada.get("/v1/users/me") == before


def test_a_login_changes_within_its_shard_and_is_given_once(people, site):
    ada, bob = people(2)
    shards, before = site.redis.shards, ada.get("/v1/users/me")
    shard = int(ada.sub) // 64 % 64
    post = ada.post("by the old name")
    login = login_of_shard(shard, shards, f"{before['login']}_new")
    assert ada.expect(200, "PATCH", "/v1/users/me", {"login": login.upper()})["login"] == login.upper()
    assert bob.get(f"/v1/users/{login}") == bob.get(f"/v1/users/{before['login']}")
    assert bob.get(f"/v1/posts/{post['id']}")["user"]["login"] == login.upper()
    site.admin.refused(409, "login_taken", "POST", "/v1/users", {"login": before["login"]})
    taken = site.user(login_of_shard(shard, shards, f"{before['login']}_taken"))
    error = ada.refused(409, "login_taken", "PATCH", "/v1/users/me", {"login": taken.get("/v1/users/me")["login"]})
    assert taken.sub in error["message"]
    if shards > 1:
        elsewhere = login_of_shard((shard + 1) % shards, shards, "elsewhere")
        error = ada.refused(422, "login_elsewhere", "PATCH", "/v1/users/me", {"login": elsewhere, "name": "X"})
        assert error["param"] == "login" and elsewhere in error["message"]
    for number in range(6):
        ada.expect(200, "PATCH", "/v1/users/me", {"login": login_of_shard(shard, shards, f"{login}_{number}_")})
    ada.refused(409, "too_many_logins", "PATCH", "/v1/users/me",
                {"login": login_of_shard(shard, shards, f"{login}_last")})
    assert ada.expect(200, "PATCH", "/v1/users/me", {"login": before["login"]})["login"] == before["login"]


@pytest.mark.parametrize("path, include", [
    ("/v1/users/me/posts", "comments:0"), ("/v1/users/me/posts", "comments:11"),
    ("/v1/users/me/posts", "comments"), ("/v1/users/me/posts", "likes:1,likes:2"),
    ("/v1/users/me/posts", ""), ("/v1/users/me/posts", "viewer,viewer"),
    ("/v1/users/me/posts", "author"), ("/v1/users/me", "likes:1"), ("/v1/users/me/followers", "comments:1"),
    ("/v1/users/me/posts?limit=101", "comments:5,likes:5")])
def test_what_cannot_be_included_is_refused(people, path, include):
    ada, = people(1)
    ada.refused(400, "bad_include", "GET", f"{path}{'&' if '?' in path else '?'}include={include}")


def test_posts_of_a_user_are_listed_newest_first(people):
    ada, = people(1)
    posts = [ada.post(str(number)) for number in range(7)]
    assert items(ada, "/v1/users/me/posts") == posts[::-1]
    assert items(ada, f"/v1/users/{ada.sub}/posts", limit=3) == posts[::-1]
    for post in posts[2:5]:
        ada.expect(204, "DELETE", f"/v1/posts/{post['id']}")
    assert ids(ada, "/v1/users/me/posts", limit=2) == [posts[n]["id"] for n in (6, 5, 1, 0)]


def test_comments_are_posts_that_answer_from_any_shard(people):
    ada, *others = people(9)
    post = ada.post("what do you think?")
    comments = [other.post("this", reply_to=post["id"]) for other in others]
    for other, comment in zip(others, comments):
        assert comment["reply_to"]["post"] == post["id"]
        assert comment["reply_to"]["user"] == ada.sub
        assert comment["user"]["id"] == other.sub
    eventually(lambda: ada.get(f"/v1/posts/{post['id']}")["comments"] == len(comments),
               "all comments are counted")
    comments.sort(key=lambda comment: int(comment["id"]), reverse=True)  # of several shards
    assert items(ada, f"/v1/posts/{post['id']}/comments", limit=3) == comments


def test_nobody_answers_what_is_not_there(people):
    ada, = people(1)
    ada.refused(404, "not_found", "POST", "/v1/posts", {"text": "what?", "reply_to": "4096"})
    ada.refused(400, "bad_request", "POST", "/v1/posts", {"text": "what?", "reply_to": "x"})


def test_likes_are_counted_and_listed_and_given_once(people):
    ada, *others = people(5)
    post = ada.post("like me")
    path = f"/v1/posts/{post['id']}"
    for other in others * 2:
        other.expect(204, "PUT", f"{path}/like")
    assert ada.get(path)["likes"] == 4
    assert ids(ada, f"{path}/likes", limit=3) == [other.sub for other in reversed(others)]
    for _ in range(2):
        others[1].expect(204, "DELETE", f"{path}/like")
    assert ada.get(path)["likes"] == 3
    assert others[1].sub not in ids(ada, f"{path}/likes")
    ada.refused(404, "not_found", "PUT", "/v1/posts/4096/like")


def test_what_refers_to_a_restricted_post_carries_its_id_alone(people):
    ada, *others = people(4)
    for other in others:
        other.expect(204, "PUT", f"/v1/users/me/following/{ada.sub}")
    eventually(lambda: ada.get("/v1/users/me")["followers"] == 3, "ada has followers")
    public = ada.post("for everybody")["id"]
    restricted = ada.post("for followers", audience="followers")["id"]
    for user in (ada, *others):  # in several shards, if there are several
        post = user.post("re", reply_to=restricted, quote_of=public)
        assert post["reply_to"] == {"post": restricted}
        assert post["quote_of"].items() >= {"post": public, "user": ada.sub}.items()
        user.refused(422, "not_public", "POST", "/v1/posts", {"text": "re", "repost_of": restricted})
        user.post("re", repost_of=public)
    assert ada.get(f"/v1/posts/{restricted}")["text"] == "for followers"


def test_an_audience_decides_who_may_see(people):
    ada, follower, chosen, stranger = people(4)
    follower.expect(204, "PUT", f"/v1/users/me/following/{ada.sub}")
    eventually(lambda: ada.get("/v1/users/me")["followers"] == 1, "the follower counts")
    seen_by = {"public": {follower, chosen, stranger}, "followers": {follower},
               f"only:{chosen.sub}": {chosen}, f"except:{chosen.sub}": {follower, stranger}}
    for audience, readers in seen_by.items():
        post = ada.post("for some", audience=audience)
        assert post["audience"] == audience, "the author reads the list"
        for reader in (follower, chosen, stranger):
            answer = reader.request("GET", f"/v1/posts/{post['id']}")
            assert answer.status == (200 if reader in readers else 404), (audience, answer)
            if reader in readers:
                assert answer.json["audience"] == audience.split(":")[0]
            else:
                reader.refused(404, "not_found", "PUT", f"/v1/posts/{post['id']}/like")
    assert len(items(ada, "/v1/users/me/posts")) == 4
    for reader, count in ((follower, 3), (chosen, 2), (stranger, 2)):
        assert len(items(reader, f"/v1/users/{ada.sub}/posts", limit=1)) == count
    ada.refused(400, "bad_request", "POST", "/v1/posts", {"text": "x", "audience": "friends"})


def test_who_is_hidden_from_sees_no_posts_until_shown_to(people):
    ada, bob = people(2)
    post = ada.post("hidden")
    for _ in range(2):
        ada.expect(204, "PUT", f"/v1/users/me/hidden/{bob.sub}")
    eventually(lambda: bob.request("GET", f"/v1/posts/{post['id']}").status == 404, "it is hidden")
    assert items(bob, f"/v1/users/{ada.sub}/posts") == []
    for _ in range(2):
        ada.expect(204, "DELETE", f"/v1/users/me/hidden/{bob.sub}")
    eventually(lambda: bob.request("GET", f"/v1/posts/{post['id']}").status == 200, "it is shown")


def test_muting_is_idempotent(people):
    ada, bob = people(2)
    for method in ("PUT", "PUT", "DELETE", "DELETE"):
        ada.expect(204, method, f"/v1/users/me/muted/{bob.sub}")


def test_a_home_timeline_has_own_and_followed_posts_newest_first(people):
    ada, *others = people(6)
    own = [ada.post("mine") for _ in range(2)]
    for other in others:
        ada.expect(204, "PUT", f"/v1/users/me/following/{other.sub}")
    posts = own + [other.post("theirs") for other in others for _ in range(3)]
    posts.sort(key=lambda post: int(post["id"]), reverse=True)
    home = "/v1/timelines/home"
    eventually(lambda: items(ada, home) == posts, "all posts are there")
    assert items(ada, home, limit=4) == posts
    newer = ada.get(f"{home}?after={posts[5]['id']}")
    assert newer == {"items": posts[:5], "next": posts[4]["id"]}
    author = next(user for user in [ada, *others] if user.sub == posts[0]["user"]["id"])
    author.expect(204, "DELETE", f"/v1/posts/{posts[0]['id']}")
    ada.expect(204, "DELETE", f"/v1/users/me/following/{others[1].sub}")
    left = [post for post in posts[1:] if post["user"]["id"] != others[1].sub]
    eventually(lambda: items(ada, home, limit=3) == left, "what is gone is gone")
