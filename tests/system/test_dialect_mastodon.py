"""Mastodon's streaming API over Server-Sent Events: the bytes that clients need, and the unmodified Mastodon.py."""

import json
import queue

import pytest

from harness import events
from harness.cli import Cli
from harness.streams import HttpStream, Refused
from harness.waiting import Deadline, eventually

PUBLIC = "/api/v1/streaming/public"


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--dialects", "twitter1,mastodon", "--keepalive-ms", "300")


class Blocks:
    """A stream as it is, byte by byte."""

    def __init__(self, gateway, target, **token):
        self.stream = gateway.stream(target, "sse", headers={"Accept": "*/*"}, **token)

    def until(self, ending):
        deadline = Deadline(None, repr(ending))
        while ending not in self.stream.bytes:
            assert self.stream._more(deadline), "the body ends"
        end = self.stream.bytes.index(ending) + len(ending)
        text = bytes(self.stream.bytes[:end])
        del self.stream.bytes[:end]
        return text

    def event(self):
        """Returns the next one: name, data, id; skips keep-alives."""
        lines = self.until(b"\n\n").decode().split("\n")[:-2]
        fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
        assert {"event", "data"} <= set(fields) and "\r" not in "".join(lines)
        return fields["event"], fields["data"], fields.get("id")


def get(gateway, path, headers=None):
    with gateway.connect() as connection:
        return connection.request("GET", path, headers=headers or {})


def test_it_begins_and_is_kept_alive_as_clients_can_bear(gateway, publish):
    blocks = Blocks(gateway, PUBLIC)
    assert blocks.until(b"\n") == b":)\n"
    assert blocks.until(b"\n") == b":thump\n" == blocks.until(b"\n")
    publish(events.post(7, "after a silence"))
    name, data, _ = blocks.event()
    assert name == "update" and json.loads(data)["content"] == "<p>after a silence</p>"


def test_a_post_is_a_status(gateway, publish):
    blocks = Blocks(gateway, PUBLIC)
    publish(events.post(114677036875776, 'tea & <cake> for @bob @eve #Kräuter http://a.example/?b=1&c="d"\nnext', user="42",
                        login="ada", lang="en", reply_to={"post": "114677036740608", "user": "7", "login": "eve"}))
    name, data, _ = blocks.event()
    status = json.loads(data)
    assert name == "update" and status["id"] == "114677036875776" and status["created_at"].endswith("Z")
    assert status["content"] == (
        '<p>tea &amp; &lt;cake&gt; for <span class="u-url mention">@bob</span> <span class="u-url mention">@eve</span> <span class="mention hashtag">#Kräuter</span> '
        '<a href="http://a.example/?b=1&amp;c=" rel="nofollow noopener" target="_blank">http://a.example/?b=1&amp;c=</a>'
        "&quot;d&quot;<br>next</p>")
    assert (status["account"]["id"], status["account"]["acct"], status["language"]) == ("42", "ada", "en")
    assert (status["in_reply_to_id"], status["visibility"]) == ("114677036740608", "public")
    assert [tag["name"] for tag in status["tags"]] == ["Kräuter"]
    assert [(mention["id"], mention["acct"]) for mention in status["mentions"]] == [("bob", "bob"), ("7", "eve")]


def test_a_deletion_is_an_id_and_hashtags_are_found(gateway, publish):
    blocks = Blocks(gateway, "/api/v1/streaming/hashtag?tag=Tea")
    publish(events.post(114677036875777, "no tag: tea"))
    tagged = events.post(114677036875778, "#tea")
    publish(tagged)
    assert json.loads(blocks.event()[1])["id"] == "114677036875778"
    publish(events.delete(114677036875779, tagged))
    assert blocks.event()[:2] == ("delete", "114677036875778")


@pytest.mark.parametrize("tag", ["%23tea", "t-e+a", "Tea,", "%20te%E2%80%94a%22"])
def test_a_tag_is_read_without_what_no_hashtag_has(gateway, publish, tag):
    blocks = Blocks(gateway, "/api/v1/streaming/hashtag?tag=" + tag)
    publish(events.post(114677036875776, "#te #t #a"))
    publish(events.post(114677036875777, "#tea"))
    assert json.loads(blocks.event()[1])["id"] == "114677036875777"


@pytest.mark.parametrize("tag", ["%23", "!", "2026", "x" * 60, "%E8%8C%B6" * 60, "x" * 201, "tea" + "!" * 200])
def test_a_tag_that_no_post_has_is_silent(gateway, publish, tag):
    blocks = Blocks(gateway, "/api/v1/streaming/hashtag?tag=" + tag)
    publish(events.post(114677036875776, "#tea #" + "x" * 60, user="0"))
    assert blocks.until(b"\n:thump\n:thump\n") == b":)\n:thump\n:thump\n"


def test_a_refusal_does_not_speak_of_the_filter(gateway):
    """An arrow counts as part of a hashtag for Mastodon, but filters find no word in it."""
    with gateway.connect() as connection:
        answer = connection.request("GET", "/api/v1/streaming/hashtag?tag=%E2%86%92", gateway.bearer())
        assert (answer.status, answer.json) == (400, {"error": "tag is not a hashtag"})


def test_what_a_post_repeats_is_a_whole_status(gateway, publish):
    blocks = Blocks(gateway, PUBLIC)
    publish(events.post(114677036875776, "", user="114677036740608", login="ada",
                        repost_of={"post": "114677036740672", "user": "7", "login": "eve"}))
    status = json.loads(blocks.event()[1])
    assert set(status["reblog"]) == set(status) and status["reblog"]["reblog"] is None
    assert (status["reblog"]["id"], status["reblog"]["account"]["acct"]) == ("114677036740672", "eve")
    assert status["account"]["created_at"] == "2026-11-21T01:02:03.423Z"


def test_a_tag_or_a_mention_that_comes_twice_is_listed_once(gateway, publish):
    blocks = Blocks(gateway, PUBLIC)
    publish(events.post(114677036875776, "#tea @bob #tea @bob #bob"))
    status = json.loads(blocks.event()[1])
    assert [tag["name"] for tag in status["tags"]] == ["tea", "bob"]
    assert [mention["acct"] for mention in status["mentions"]] == ["bob"] and status["content"].count("#tea") == 2


def test_streams_of_media_have_no_other_posts(gateway, publish):
    all_of_it, pictures = Blocks(gateway, PUBLIC + "?only_media=FALSE&only_media_=1"), \
        Blocks(gateway, PUBLIC + "/local?only_media=true")
    publish(events.post(114677036875776, "without"))
    post = events.post(114677036875777, "with", media=[
        {"url": "https://a.example/1.png", "type": "image", "description": "a cup"}, {"type": 7}])
    publish(post)
    publish(events.delete(114677036875778, post))
    assert json.loads(all_of_it.event()[1])["media_attachments"] == []
    status = json.loads(pictures.event()[1])
    one, other = status["media_attachments"]
    assert (one["type"], one["url"], one["preview_url"]) == ("image", "https://a.example/1.png", "https://a.example/1.png")
    assert (one["description"], other["type"], other["url"]) == ("a cup", "unknown", None)
    assert one["id"] != other["id"]
    assert pictures.event()[:2] == ("delete", "114677036875777")


def test_posts_to_some_are_conversations(gateway, redis):
    cli = Cli(redis)
    writer, reader = cli.run("user", "add", "writer"), cli.run("user", "add", "reader")
    cli.run("follow", "reader", "writer")
    token = gateway.token(sub=reader)
    user, direct = Blocks(gateway, "/api/v1/streaming/user", token=token), \
        Blocks(gateway, "/api/v1/streaming/direct", token=token)
    cli.run("post", "--user", "writer", "to all")
    post = cli.run("post", "--user", "writer", "--audience", f"only:{reader}", "to you")
    name, data, _ = direct.event()
    conversation = json.loads(data)
    assert (name, conversation["last_status"]["id"], conversation["id"]) == ("conversation", post, post)
    assert [account["id"] for account in conversation["accounts"]] == [writer]
    statuses = [json.loads(user.event()[1]) for _ in range(2)]
    assert [status["visibility"] for status in statuses] == ["public", "direct"]


@pytest.mark.parametrize("path", ["public/remote", "public/remote?only_media=1", "user/notification"])
def test_what_there_is_none_of_is_silent(gateway, publish, path):
    blocks = Blocks(gateway, "/api/v1/streaming/" + path)
    publish(events.post(114677036875776, "of here", user="0", media=[{}]))
    assert blocks.until(b"\n:thump\n:thump\n") == b":)\n:thump\n:thump\n"


def test_a_browser_goes_on_where_it_was(gateway, redis):
    cli = Cli(redis)
    cli.run("user", "add", "ada")
    first = cli.run("post", "--user", "ada", "one")
    second = cli.run("post", "--user", "ada", "two")
    stream = gateway.stream(PUBLIC, "sse", headers={"Last-Event-ID": first})
    message = stream.next()
    assert (message["id"], message.sse_id, message.sse_event) == (second, second, "update")


@pytest.mark.parametrize("target, status", [
    ("/api/v1/streaming/hashtag", 400), ("/api/v1/streaming/hashtag?tag=", 400), ("/api/v1/streaming/hashtag?tag=a%ff", 400),
    ("/api/v1/streaming/none", 400), ("/api/v1/streaming/" + "public" * 99, 400), ("/api/v1/streaming/list", 400), ("/api/v1/streaming/list?list=7", 404), (PUBLIC + "?access_token=x.y.z", 401)])
def test_refusals(gateway, target, status):
    with pytest.raises(Refused) as refused:
        HttpStream(gateway.port, target, "sse", headers=gateway.bearer() if status != 401 else {})
    assert refused.value.response.status == status and json.loads(refused.value.response.body)["error"]


def test_clients_find_out_whom_they_talk_to(gateway):
    host = {"Host": "social.example:8080"}
    for path in ("/api/v1/instance", "/api/v1/instance/"):
        one = get(gateway, path, host).json
        assert one["version"].startswith("4.") and one["urls"]["streaming_api"] == "ws://social.example:8080"
    for path in ("/api/v2/instance", "/api/v2/instance/"):
        two = get(gateway, path, host).json
        assert two["configuration"]["urls"]["streaming"] == "ws://social.example:8080"
    link = get(gateway, "/.well-known/nodeinfo", host).json["links"][0]["href"]
    assert link == "http://social.example:8080/nodeinfo/2.0"
    assert get(gateway, "/nodeinfo/2.0").json["software"]["name"] == "mastodon"
    assert get(gateway, "/api/v1/streaming/health").body == get(gateway, "/health").body == b"OK"
    assert get(gateway, "/api/v1/accounts/verify_credentials", gateway.bearer(sub="42")).json["id"] == "42"
    credentials = f"/api/v1/accounts/verify_credentials?access_token={gateway.token(sub='42')}"
    assert get(gateway, credentials).json["id"] == "42"
    assert get(gateway, "/api/v1/accounts/verify_credentials").status == 401
    before = gateway.metrics()['sluice_tokens_refused_total{fault="malformed"}']
    assert get(gateway, "/api/v1/accounts/verify_credentials", {"Authorization": "Bearer x.y.z"}).status == 401
    assert gateway.metrics()['sluice_tokens_refused_total{fault="malformed"}'] == before + 1


def test_mastodon_py(gateway, publish):
    mastodon = pytest.importorskip("mastodon", reason="this Debian has no python3-mastodon")
    received, deleted = queue.Queue(), queue.Queue()

    class Listener(mastodon.StreamListener):
        def on_update(self, status):
            received.put(status)

        def on_delete(self, status_id):
            deleted.put(status_id)

    client = mastodon.Mastodon(access_token=gateway.token(sub="42"), api_base_url=f"http://127.0.0.1:{gateway.port}")
    assert client.stream_healthy() and client.instance_health() and client.instance().urls.streaming_api
    assert client.instance_nodeinfo().software.name == "mastodon"
    assert client.account_verify_credentials().id == 42
    handle = client.stream_hashtag("tea", Listener(), run_async=True)
    post = events.post(114677036875900, "tea for clients #tea")

    def one():
        publish(post)
        try:
            return received.get(timeout=0.5)
        except queue.Empty:
            return None
    status = eventually(one, "a status to arrive", 60)
    assert (status.id, status.account.acct) == (114677036875900, "u1") and "tea for clients" in status.content
    publish(events.delete(114677036875901, post))
    assert int(deleted.get(timeout=30)) == 114677036875900
    handle.close()
