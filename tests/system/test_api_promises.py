"""The promises of the HTTP API, one by one, tested with only Python's http.client, and without knowing the source. What
other shards have to do happens a moment later, so tests wait for it."""

import contextlib
import http.client
import itertools
import json
import threading

import pytest

from harness.cli import Cli
from harness.servers import SHARDS
from harness.waiting import eventually, next_millisecond

pytestmark = pytest.mark.wires
READ, WRITE, ADMIN = "read", "write", "admin"
OPERATIONS = [  # method, path, scope
    ("POST", "/v1/users", ADMIN), ("GET", "/v1/users/{user}", READ),
    ("GET", "/v1/users/{user}/posts", READ), ("GET", "/v1/users/{user}/followers", READ),
    ("GET", "/v1/users/{user}/following", READ), ("POST", "/v1/users/me/following", WRITE),
    ("PUT", "/v1/users/me/following/{user}", WRITE),
    ("DELETE", "/v1/users/me/following/{user}", WRITE),
    ("PUT", "/v1/users/me/hidden/{user}", WRITE), ("DELETE", "/v1/users/me/hidden/{user}", WRITE),
    ("PUT", "/v1/users/me/muted/{user}", WRITE), ("DELETE", "/v1/users/me/muted/{user}", WRITE),
    ("POST", "/v1/posts", WRITE), ("GET", "/v1/posts/{post}", READ),
    ("DELETE", "/v1/posts/{post}", WRITE), ("GET", "/v1/posts/{post}/likes", READ),
    ("GET", "/v1/posts/{post}/comments", READ), ("PUT", "/v1/posts/{post}/like", WRITE),
    ("DELETE", "/v1/posts/{post}/like", WRITE), ("GET", "/v1/timelines/home", READ)]
PATHS = sorted({path for _, path, _ in OPERATIONS})
HOME = "/v1/timelines/home"


def connect(gateway):
    if gateway.tls:
        return http.client.HTTPSConnection("localhost", gateway.port, timeout=120, context=gateway.tls)
    return http.client.HTTPConnection("localhost", gateway.port, timeout=120)


class Asker:
    """Sends requests with a token."""

    def __init__(self, gateway, sub=None, scope="read write"):
        self.id, self.token = sub, gateway.token(sub=sub, scope=scope)
        self.connection = connect(gateway)

    def ask(self, method, path, body=None, **headers):
        """Returns (status, headers, JSON or None)."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        with contextlib.suppress(OSError):  # it may be refused, and closed, before all of the body is sent
            self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        if method != "GET":
            next_millisecond()
        return answer.status, answer.headers, json.loads(content) if content else None

    def do(self, method, path, body=None, status=None, **headers):
        got, _, answer = self.ask(method, path, body, **headers)
        assert got == status if status else 200 <= got < 300, (method, path, got, answer)
        return answer

    def get(self, path):
        return self.do("GET", path, status=200)

    def post(self, text="something", **members):
        return self.do("POST", "/v1/posts", {"text": text, **members}, 201)

    def pages(self, path, limit):
        """Returns page by page, up to but without the empty one."""
        before = ""
        while True:
            page = self.get(f"{path}?limit={limit}{before}")
            if not page["items"]:
                assert set(page) == {"items"}
                return
            assert set(page) == {"items", "next"} and isinstance(page["next"], str)
            yield page["items"]
            before = f"&before={page['next']}"

    def ids(self, path, limit=3):
        return [item["id"] for page in self.pages(path, limit) for item in page]


class World:
    def __init__(self, gateway):
        self.gateway, self.numbers = gateway, itertools.count(1)
        self.askers = []
        self.admin = self.asker(None, ADMIN)

    def asker(self, sub, scope="read write"):
        self.askers.append(Asker(self.gateway, sub, scope))
        return self.askers[-1]

    def people(self, count):
        """New users, so that tests do not affect each other."""
        return [self.asker(self.admin.do("POST", "/v1/users", {"login": f"p{next(self.numbers)}"},
                                         201)["id"]) for _ in range(count)]

    def close(self):
        for asker in self.askers:
            asker.connection.close()


@pytest.fixture(scope="module")
def world(gateway):
    world = World(gateway)
    yield world
    world.close()


@pytest.fixture
def people(world):
    return world.people


@pytest.fixture(scope="module")
def somebody(world):
    """The user and post in the paths of tests that need any user and post."""
    user, = world.people(1)
    user.posted = user.post()["id"]
    return user


def follow(fan, author):
    fan.do("PUT", f"/v1/users/me/following/{author.id}")
    eventually(lambda: fan.id in author.ids("/v1/users/me/followers"), "the author knows")


def filled(path, somebody):
    return path.replace("{user}", somebody.id).replace("{post}", somebody.posted)


# --- permissions ---

@pytest.mark.parametrize("method, path, scope", OPERATIONS)
def test_each_operation_wants_a_token_that_is_good_and_covers_it(world, somebody, method, path,
                                                                 scope):
    path = filled(path, somebody)
    stranger = world.asker(somebody.id)
    body = {} if method == "POST" else None
    for token, wanted in ((None, ""), ("a.b.c", 'error="invalid_token"'),
                          (world.gateway.token(sub=somebody.id, scope="stream:filter"),
                           'error="insufficient_scope"')):
        stranger.token = token
        status, headers, answer = stranger.ask(method, path, body)
        assert status == (403 if "scope" in wanted else 401)
        assert headers["WWW-Authenticate"].startswith("Bearer") and wanted in headers["WWW-Authenticate"]
        assert set(answer["error"]) >= {"code", "message"}
    assert answer["error"]["code"] == "insufficient_scope"
    assert f'scope="{scope}"' in headers["WWW-Authenticate"]
    for others in {READ, WRITE, ADMIN} - {scope}:
        stranger.token = world.gateway.token(sub=somebody.id, scope=others)
        assert stranger.ask(method, path, body)[0] == 403
    stranger.token = world.gateway.token(sub=somebody.id, scope=scope)
    assert stranger.ask(method, path, body)[0] not in (401, 403, 404, 405)
    if method == "DELETE" and path.startswith("/v1/posts") and "like" not in path:
        somebody.posted = somebody.post()["id"]


@pytest.mark.parametrize("path", PATHS)
def test_each_path_takes_its_methods_and_names_them(somebody, path):
    taken = {method for method, other, _ in OPERATIONS if other == path}
    if path in ("/v1/users", "/v1/posts", "/v1/users/me/following"):
        taken.add("GET")  # with ids, or {user} is me
    allowed = taken | {"OPTIONS"} | ({"HEAD"} if "GET" in taken else set())
    path = filled(path, somebody)
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        if method in allowed - {"OPTIONS"}:
            continue
        status, headers, _ = somebody.ask(method, path)
        assert status == (204 if method == "OPTIONS" else 405), (method, path)
        assert set(headers["Allow"].split(", ")) == allowed, (method, path)
    if "GET" in taken:
        query = "?ids=4096" if path in ("/v1/users", "/v1/posts") else ""
        assert somebody.ask("HEAD", path + query)[0] == 200


# --- users ---

def test_a_user_has_an_id_and_integer_counters_at_the_top(world):
    made = world.admin.do("POST", "/v1/users", {"login": "Zo\u00eb", "name": "Zo\u00eb K."}, 201)
    assert int(made["id"]) < 2 ** 53 and (made["login"], made["name"]) == ("Zo\u00eb", "Zo\u00eb K.")
    for counter in ("followers", "following", "posts"):
        assert made[counter] == 0 and isinstance(made[counter], int)
    reader = world.asker(made["id"])
    for name in (made["id"], "Zo%C3%AB", "ZO%C3%8B", "me"):
        assert reader.get(f"/v1/users/{name}") == made
    reader.do("GET", "/v1/users/nobody_has_this_login", status=404)
    reader.do("GET", "/v1/users/4096", status=404)


def test_of_two_who_want_a_login_at_once_one_gets_it(world):
    for attempt in range(5):
        askers = [world.asker(None, ADMIN) for _ in range(6)]
        answers = [None] * len(askers)

        def create(number):
            login = f"Wanted_{attempt}"
            answers[number] = askers[number].ask(
                "POST", "/v1/users", {"login": login if number % 2 else login.upper()})

        threads = [threading.Thread(target=create, args=(n,)) for n in range(len(askers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(status for status, _, _ in answers) == [201] + [409] * 5
        assert {answer["error"]["code"] for status, _, answer in answers if status == 409} == \
            {"login_taken"}


def test_counters_are_the_sizes_of_the_lists(people):
    ada, *others = people(6)

    def expect(*wanted):
        counters = ("followers", "following", "posts")
        eventually(lambda: tuple(ada.get("/v1/users/me")[counter] for counter in counters) == wanted,
                   "the counters are right")
        assert tuple(len(ada.ids(f"/v1/users/me/{counter}")) for counter in counters) == wanted

    posts = [ada.post()["id"] for _ in range(4)]
    for other in others:
        other.do("PUT", f"/v1/users/me/following/{ada.id}")
        ada.do("PUT", f"/v1/users/me/following/{other.id}")
    expect(5, 5, 4)
    others[0].do("DELETE", f"/v1/users/me/following/{ada.id}")
    ada.do("DELETE", f"/v1/users/me/following/{others[1].id}")
    ada.do("DELETE", f"/v1/posts/{posts[2]}")
    expect(4, 4, 3)


# --- posts ---

def test_a_post_takes_what_is_said_and_answers_with_itself(people):
    ada, bob = people(2)
    first = bob.post("Which train?")
    said = {"text": "The night train #\u591c\u8eca", "lang": "en", "geo": {"lon": 12.5, "lat": 55.6},
            "place": {"name": "Malm\u00f6", "country": "SE", "bbox": [12.8, 55.5, 13.2, 55.7]},
            "audience": "public"}
    made = ada.do("POST", "/v1/posts", {**said, "reply_to": first["id"]}, 201)
    assert {name: made[name] for name in said} == said
    assert int(made["id"]) < 2 ** 53 and made["user"]["id"] == ada.id
    assert (made["reply_to"]["post"], made["reply_to"]["user"]) == (first["id"], bob.id)
    assert bob.get(f"/v1/posts/{made['id']}") == made
    eventually(lambda: bob.get(f"/v1/posts/{first['id']}")["comments"] == 1, "it is counted")
    assert bob.get(f"/v1/posts/{first['id']}/comments")["items"] == [made]


@pytest.mark.parametrize("audience", [
    "", " ", "everyone", "Public", "PUBLIC", "only", "only:", "only:,", "only:abc", "only:1,",
    "only:,1", "only:1,,2", "only:1;2", "only: 1", "only:-1", "except", "except:", "except:x",
    "ONLY:1", "public,followers", "followers:1", "only:1 ", "only:" + "9" * 40, 7, None, ["public"]])
def test_an_audience_that_is_none_is_refused_by_name(somebody, audience):
    error = somebody.do("POST", "/v1/posts", {"text": "x", "audience": audience}, 400)["error"]
    assert error["param"] == "audience" and error["message"]


def test_an_audience_is_kept_from_others_and_its_list_from_all_but_the_author(people):
    ada, fan, friend, stranger = people(4)
    follow(fan, ada)
    for audience, readers in (("public", {fan, friend, stranger}), ("followers", {fan}),
                              (f"only:{friend.id}", {friend}),
                              (f"only:{friend.id},{fan.id}", {friend, fan}),
                              (f"except:{friend.id}", {fan, stranger}),
                              (f"except:{friend.id},{stranger.id}", {fan})):
        post = ada.post(audience=audience)
        path = f"/v1/posts/{post['id']}"
        assert post["audience"] == ada.get(path)["audience"] == audience
        for reader in (fan, friend, stranger):
            status, _, answer = reader.ask("GET", path)
            profile = reader.ids(f"/v1/users/{ada.id}/posts")
            assert (post["id"] in profile) == (status == 200) == (reader in readers), audience
            if reader in readers:
                assert answer["audience"] == audience.split(":")[0]
            else:
                assert status == 404
                for list_of_it in ("likes", "comments"):
                    reader.do("GET", f"{path}/{list_of_it}", status=404)
                reader.do("PUT", f"{path}/like", status=404)
                reader.do("POST", "/v1/posts", {"text": "x", "reply_to": post["id"]}, 404)
        eventually(lambda: (post["id"] in fan.ids(HOME)) == (fan in readers), "it is in their homes")


def test_what_is_deleted_is_nowhere(people):
    ada, fan = people(2)
    follow(fan, ada)
    parent = fan.post("a question")
    post = ada.post("an answer", reply_to=parent["id"])
    fan.do("PUT", f"/v1/posts/{post['id']}/like")
    lists = [(ada, "/v1/users/me/posts"), (fan, f"/v1/users/{ada.id}/posts"), (ada, HOME),
             (fan, HOME), (fan, f"/v1/posts/{parent['id']}/comments")]
    for reader, path in lists:
        eventually(lambda: post["id"] in reader.ids(path), "it is there")
    fan.do("DELETE", f"/v1/posts/{post['id']}", status=403)
    ada.do("DELETE", f"/v1/posts/{post['id']}")
    ada.do("DELETE", f"/v1/posts/{post['id']}")
    for reader, path in lists:
        eventually(lambda: post["id"] not in reader.ids(path), "it is gone")
    for reader in (ada, fan):
        for path in ("", "/likes", "/comments"):
            reader.do("GET", f"/v1/posts/{post['id']}{path}", status=404)
        reader.do("PUT", f"/v1/posts/{post['id']}/like", status=404)
    eventually(lambda: fan.get(f"/v1/posts/{parent['id']}")["comments"] == 0, "it counts no more")


# --- lists ---

def test_every_list_is_paged_newest_first_and_only_the_page_past_the_end_is_empty(people):
    ada, *others = people(6)
    post = ada.post()["id"]
    mine = [ada.post(str(number))["id"] for number in range(5)]
    for other in others:
        ada.do("PUT", f"/v1/users/me/following/{other.id}")
        other.do("PUT", f"/v1/users/me/following/{ada.id}")
        other.do("PUT", f"/v1/posts/{post}/like")
    comments = [other.post("yes", reply_to=post)["id"] for other in others]
    people_ids = [other.id for other in others]
    for path, oldest_first in (("/v1/users/me/posts", [post, *mine]), (HOME, [post, *mine, *comments]),
                               ("/v1/users/me/following", people_ids),
                               ("/v1/users/me/followers", people_ids),
                               (f"/v1/posts/{post}/likes", people_ids),
                               (f"/v1/posts/{post}/comments", comments)):
        eventually(lambda: len(ada.ids(path)) == len(oldest_first), "all are there")
        if oldest_first is not people_ids:
            oldest_first.sort(key=int)
        elif SHARDS > 1 and not path.endswith("following"):
            # in the order of several shards' clocks, which have no order within a millisecond
            oldest_first = ada.ids(path)[::-1]
            assert set(oldest_first) == set(people_ids)
        for limit in (1, 2, 5, 6, 200):
            pages = list(ada.pages(path, limit))
            whole, rest = divmod(len(oldest_first), limit)
            assert [len(page) for page in pages] == [limit] * whole + [rest] * (rest > 0), path
            items = [item for page in pages for item in page]
            assert [item["id"] for item in items] == oldest_first[::-1], path
        if path.endswith(("following", "followers", "likes")):
            assert all({"login", "name", "followers", "following", "posts"} <= set(item) for item in items)
        else:
            assert all(ada.get(f"/v1/posts/{item['id']}") == item for item in items)
            middle = oldest_first[2]  # for posts, any id is possible; the post itself is not on the page
            page = ada.get(f"{path}?before={middle}")["items"]
            assert [item["id"] for item in page] == oldest_first[:2][::-1], path


def test_what_a_reader_may_not_see_makes_no_page_empty(people):
    ada, stranger = people(2)
    seen = [ada.post()["id"]]
    for _ in range(30):
        ada.post(audience="followers")
    seen.append(ada.post()["id"])
    pages = list(stranger.pages(f"/v1/users/{ada.id}/posts", 5))
    assert [item["id"] for page in pages for item in page] == seen[::-1]


# --- the graph ---

@pytest.mark.parametrize("what", ["/v1/users/me/following/{user}", "/v1/users/me/hidden/{user}",
                                  "/v1/users/me/muted/{user}", "/v1/posts/{post}/like"])
def test_put_and_delete_may_be_repeated(people, what):
    ada, bob = people(2)
    bob.posted = bob.post()["id"]
    for method in ("DELETE", "PUT", "PUT", "DELETE", "DELETE", "PUT"):
        ada.do(method, filled(what, bob))
    for method in ("PUT", "DELETE"):
        nobody = what.replace("{user}", "nobody_has_this_login").replace("{post}", "4096")
        if what != "/v1/posts/{post}/like" or method == "PUT":
            ada.do(method, nobody, status=404)


def test_hundreds_are_followed_at_once_by_id_or_login_and_each_is_reported(people):
    ada, *others = people(301)
    logins = [ada.get(f"/v1/users/{other.id}")["login"] for other in others[:50]]
    users = logins + [other.id for other in others[50:]] + ["4096", "nobody_has_this_login", ada.id]
    for changed in (True, False):
        results = ada.do("POST", "/v1/users/me/following", {"users": users}, 200)["results"]
        assert [result["user"] for result in results] == users
        assert all(result["following"] and result["changed"] == changed for result in results[:300])
        for result in results[300:]:
            assert not result["following"] and result["error"]["code"] and result["error"]["message"]
    assert ada.get("/v1/users/me")["following"] == 300
    assert set(ada.ids("/v1/users/me/following", 200)) == {other.id for other in others}


def test_nobody_follows_more_than_two_thousand(world, people, redis):
    ada, last = people(2)
    file = world.gateway.data_dir.parent / "two-thousand.jsonl"
    file.write_text("".join(json.dumps(
        {"type": "post", "post": {"user": {"login": f"followed{n}"}, "text": "x"}}) + "\n"
        for n in range(2000)))
    Cli(redis).run("replay", str(file))
    users = [f"followed{n}" for n in range(2000)]
    for half in (users[:1000], users[1000:]):
        results = ada.do("POST", "/v1/users/me/following", {"users": half}, 200)["results"]
        assert all(result["following"] for result in results), results[-1]
    assert ada.get("/v1/users/me")["following"] == 2000
    error = ada.do("PUT", f"/v1/users/me/following/{last.id}", status=409)["error"]
    assert error["code"] == "too_many_followed" and "2000" in error["message"].replace(",", "")
    result, = ada.do("POST", "/v1/users/me/following", {"users": [last.id]}, 200)["results"]
    assert not result["following"] and result["error"]["code"] == "too_many_followed"
    ada.do("DELETE", "/v1/users/me/following/followed7")
    ada.do("PUT", f"/v1/users/me/following/{last.id}")


# --- privacy, live ---

@contextlib.contextmanager
def listening(world, asker, path):
    """Yields next_text(): the text of the next post of a stream."""
    connection = connect(world.gateway)
    scopes = "stream:home stream:firehose stream:filter stream:sample"
    connection.request("GET", path, headers={
        "Authorization": f"Bearer {world.gateway.token(sub=asker.id, scope=scopes)}"})
    answer = connection.getresponse()
    assert answer.status == 200

    def next_text():
        while True:
            line = answer.readline().strip()
            if line:
                return json.loads(line)["post"]["text"]

    yield next_text
    connection.close()


@pytest.mark.parametrize("who, what", [("ada", "muted"), ("bob", "hidden")])
def test_home_streams_follow_mute_and_hide_as_they_happen(world, people, who, what):
    ada, bob = people(2)
    actor, other = (ada, bob) if who == "ada" else (bob, ada)
    follow(ada, bob)
    with listening(world, ada, "/v1/stream/home") as next_text:
        def change(method):
            """Waits for the next millisecond: within one, ids are ordered by shard."""
            actor.do(method, f"/v1/users/me/{what}/{other.id}")
            ada.post(method)
            assert next_text() == method

        seen = bob.post("seen")["id"]
        assert next_text() == "seen"
        change("PUT")
        bob.post("unseen")
        eventually(lambda: seen not in ada.ids(HOME), "the home timeline is without it")
        change("DELETE")
        bob.post("seen again")
        assert next_text() == "seen again"


def test_what_is_restricted_is_in_no_public_stream_and_hiding_changes_none(world, people):
    ada, bob = people(2)
    bob.do("PUT", f"/v1/users/me/hidden/{ada.id}")
    ada.do("PUT", f"/v1/users/me/muted/{bob.id}")
    for path in ("/v1/stream/firehose", f"/v1/stream/filter?follow={bob.id}&track=restricted",
                 "/v1/stream/sample?percent=100"):
        with listening(world, ada, path) as next_text:
            for audience in ("followers", f"only:{ada.id}", "except:4096"):
                bob.post("restricted", audience=audience)
            bob.post(f"public, {path}")
            assert next_text() == f"public, {path}"


# --- idempotency keys ---

def test_each_post_takes_a_key_and_is_done_once(world, people):
    ada, bob = people(2)
    for number, (asker, path, body) in enumerate((
            (world.admin, "/v1/users", {"login": "made_once"}), (ada, "/v1/posts", {"text": "once"}),
            (ada, "/v1/users/me/following", {"users": [bob.id]}))):
        first, again = (asker.ask("POST", path, body, Idempotency_Key=f"promise-{number}")
                        for _ in range(2))
        assert first[0] == again[0] and first[2] == again[2]
        assert first[1]["Idempotency-Replayed"] is None and again[1]["Idempotency-Replayed"] == "true"
    assert len(ada.ids("/v1/users/me/posts")) == 1


def test_a_key_that_two_bring_at_once_is_done_once(world, people):
    ada, = people(1)
    answers = []
    askers = [world.asker(ada.id) for _ in range(6)]
    threads = [threading.Thread(target=lambda asker=asker: answers.append(asker.ask(
        "POST", "/v1/posts", {"text": "once"}, Idempotency_Key="at-once"))) for asker in askers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [status for status, _, _ in answers] == [201] * 6
    assert {answer["id"] for _, _, answer in answers} == set(ada.ids("/v1/users/me/posts"))
    assert sum(headers["Idempotency-Replayed"] == "true" for _, headers, _ in answers) == 5


# --- bodies ---

@pytest.mark.parametrize("path", ["/v1/users", "/v1/posts", "/v1/users/me/following"])
def test_bodies_that_are_wrong_are_refused_in_the_one_form(world, somebody, path):
    asker = world.admin if path == "/v1/users" else somebody
    good = {"/v1/users": {"login": "x"}, "/v1/posts": {"text": "x"}}.get(path, {"users": ["1"]})
    for status, body, headers in (
            (400, b"{", {}), (400, b"", {}), (400, b"[]", {}), (400, b"null", {}), (400, b"{}", {}),
            (400, b'{"text":"\xff"}', {}), (400, {**good, "surprise": 1}, {}),
            (400, json.dumps(good).encode() + b"x", {}),
            (415, good, {"Content_Type": "text/plain"}),
            (415, good, {"Content_Type": "application/x-www-form-urlencoded"}),
            (413, {**good, "x": "x" * 300_000}, {}),
            (400, good, {"Idempotency_Key": "two words"}), (406, good, {"Accept": "text/html"})):
        got, answer_headers, answer = asker.ask("POST", path, body, **headers)
        assert got == status and answer_headers["Content-Type"].startswith("application/json")
        assert set(answer) == {"error"} and {"code", "message"} <= set(answer["error"])
