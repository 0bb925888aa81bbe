"""The HTTP API: its operations, and several requests on a connection."""

import pytest

from harness.api import Api, Site

pytestmark = pytest.mark.wires


@pytest.fixture
def site(gateway):
    site = Site(gateway)
    yield site
    site.close()


@pytest.fixture
def ada(site, request):
    """A new user for each test."""
    return site.user(f"ada_{request.node.name}"[:60].translate({ord(c): "_" for c in "[]-/. "}))


def test_a_user_is_made_and_read_by_id_and_by_login(site):
    made = site.admin.request("POST", "/v1/users", {"login": "Grace", "name": "Grace Hopper"})
    user = made.json
    assert made.status == 201 and made.headers["location"] == f"/v1/users/{user['id']}"
    assert user["login"] == "Grace" and user["name"] == "Grace Hopper"
    assert [user[counter] for counter in ("followers", "following", "posts")] == [0, 0, 0]
    reader = Api(site.gateway, scope="read")
    for path in (user["id"], "Grace", "gRACE", "@grace", "%47race", "%40grace"):
        assert reader.get(f"/v1/users/{path}") == user
    assert Api(site.gateway, user["id"]).get("/v1/users/me") == user
    reader.close()


def test_logins_of_other_scripts_and_of_digits_are_found(site):
    strasse, digits = site.user("Straße"), site.user("12345")
    assert site.users[0].get("/v1/users/STRASSE")["id"] == strasse.sub
    assert site.users[0].get("/v1/users/stra%C3%9fe")["id"] == strasse.sub
    assert site.users[0].get("/v1/users/@12345")["id"] == digits.sub


def test_a_login_is_given_once(site):
    site.user("unique")
    error = site.admin.refused(409, "login_taken", "POST", "/v1/users", {"login": "UNIQUE"})
    assert "unique" in error["message"]


def test_a_post_is_made_read_and_deleted(ada):
    body = {"text": "h\u00e9llo \U0001f600", "lang": "en", "geo": {"lon": 120.1, "lat": 30.2},
            "place": {"name": "Hangzhou", "bbox": [119.9, 30, 120.4, 30.5]}, "source": "web"}
    made = ada.request("POST", "/v1/posts", body)
    post = made.json
    assert made.status == 201 and made.headers["location"] == f"/v1/posts/{post['id']}"
    assert {name: post[name] for name in body} == body
    assert post["user"]["id"] == ada.sub and post["audience"] == "public"
    assert (post["likes"], post["comments"]) == (0, 0)
    assert ada.get(f"/v1/posts/{post['id']}") == post
    assert ada.get("/v1/users/me")["posts"] == 1
    for _ in range(2):  # the second time nothing is left
        assert ada.expect(204, "DELETE", f"/v1/posts/{post['id']}") is None
    ada.refused(404, "not_found", "GET", f"/v1/posts/{post['id']}")
    assert ada.get("/v1/users/me")["posts"] == 0


def test_nobody_deletes_what_others_posted(site, ada):
    post = ada.post("mine")
    site.user("stranger").refused(403, "not_yours", "DELETE", f"/v1/posts/{post['id']}")
    assert ada.get(f"/v1/posts/{post['id']}") == post


def test_a_post_that_the_subject_may_not_see_counts_as_deleted(site, ada):
    post = ada.post("secret", audience=f"only:{ada.sub}")
    for number in range(4):  # in several shards, if there are several
        assert site.user(f"stranger{number}").expect(204, "DELETE", f"/v1/posts/{post['id']}") is None
    assert ada.get(f"/v1/posts/{post['id']}") == post


def test_requests_sent_ahead_are_answered_in_turn(ada):
    texts = [str(n) for n in range(20)]
    for text in texts:
        ada.send("POST", "/v1/posts", {"text": text})
        ada.send("GET", "/v1/users/me")
    for number, text in enumerate(texts, 1):
        assert ada.read().json["text"] == text
        assert ada.read().json["posts"] == number


def test_head_is_get_without_the_body(ada):
    post = ada.post("head")
    answer = ada.request("HEAD", f"/v1/posts/{post['id']}")
    whole = ada.request("GET", f"/v1/posts/{post['id']}")
    assert answer.status == 200 and answer.headers == whole.headers
    assert int(whole.headers["content-length"]) == len(whole.body)


def test_a_key_makes_a_request_happen_once(ada):
    key = {"Idempotency-Key": "retry-1"}
    first = ada.request("POST", "/v1/posts", {"text": "once"}, key)
    again = ada.request("POST", "/v1/posts", {"text": "once"}, key)
    assert first.status == again.status == 201 and first.json == again.json
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    ada.refused(422, "idempotency_key_reused", "POST", "/v1/posts", {"text": "twice"}, key)
    assert ada.get("/v1/users/me")["posts"] == 1
    ada.expect(204, "DELETE", f"/v1/posts/{first.json['id']}")
    ada.refused(410, "gone", "POST", "/v1/posts", {"text": "once"}, key)


def test_keys_of_two_users_are_two(site, ada):
    key = {"Idempotency-Key": "same"}
    other = site.user("another_keyholder")
    posts = [user.expect(201, "POST", "/v1/posts", {"text": "once"}, key) for user in (ada, other)]
    assert posts[0]["id"] != posts[1]["id"]


def test_operations_are_counted_and_timed(site, ada):
    before = site.gateway.metrics()
    ada.post("counted")
    ada.refused(404, "not_found", "GET", "/v1/posts/1")
    after = site.gateway.metrics()

    def grown(name):
        return after[name] - before[name]

    assert grown('sluice_api_requests_total{route="POST /v1/posts",class="2xx"}') == 1
    assert grown('sluice_api_requests_total{route="GET /v1/posts/{post}",class="4xx"}') == 1
    assert grown("sluice_api_seconds_count") == 2
    assert after["sluice_api_requests_in_flight"] == 0


def test_a_slow_reader_gets_a_large_answer_and_the_next(site, ada):
    for number in range(200):
        ada.post("x" * 19000 + str(number))
    with site.gateway.connect(receive_buffer=4096) as connection:
        connection.send(ada.request_bytes("GET", "/v1/users/me/posts?limit=200") +
                        ada.request_bytes("GET", "/v1/users/me"))
        assert ada.get("/v1/users/me")["posts"] == 200, "others are served meanwhile"
        posts = connection.read_response().json["items"]
        assert [post["text"] for post in posts] == [f"{'x' * 19000}{n}" for n in range(199, -1, -1)]
        assert connection.read_response().json["posts"] == 200


def test_who_leaves_before_the_answer_harms_nobody(site, ada):
    for _ in range(20):
        with site.gateway.connect() as connection:
            connection.send(ada.request_bytes("GET", "/v1/users/me/posts"))
            connection.reset()
    ada.get("/v1/users/me")
