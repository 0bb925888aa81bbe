"""Mastodon's streaming API over WebSocket: the frames that masto.js and megalodon read, and what they send."""

import json
import random

import pytest

from harness import events
from harness.api import Api
from harness.waiting import eventually
from harness.websocket import BINARY, PING, TEXT, RawWebSocket, upgrade

STREAMING = "/api/v1/streaming"


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--dialects", "mastodon", "--keepalive-ms", "300")


class Client:
    """Like masto.js: the token is the subprotocol. To send it otherwise, give `headers` and `target`."""

    def __init__(self, gateway, target=STREAMING, headers=None, **token):
        self.jwt = gateway.token(**token)
        if headers is None:
            headers = {"Sec-WebSocket-Protocol": self.jwt}
        self.socket = RawWebSocket(gateway.port, target.replace("$TOKEN", self.jwt), headers)

    def say(self, **message):
        self.socket.send_frame(TEXT, json.dumps(message))

    def subscribe(self, stream, **more):
        self.say(type="subscribe", stream=stream, **more)

    def next(self):
        message = self.socket.next()
        return message and message.json

    def event(self):
        """Returns the stream, the event's name, and its unchanged payload."""
        message = self.next()
        assert set(message) == {"stream", "event", "payload"} and isinstance(message["payload"], str)
        return message["stream"], message["event"], message["payload"]

    def status(self):
        stream, name, payload = self.event()
        assert name == "update"
        return stream, json.loads(payload)

    def settled(self):
        """Waits until the server has processed what was sent: it answers in order."""
        self.subscribe("none such")
        assert self.next() == {"error": "Unknown stream type", "status": 400}


def test_one_socket_has_many_streams(gateway, publish):
    client = Client(gateway)
    assert client.socket.response.headers["sec-websocket-protocol"] == client.jwt
    client.subscribe("hashtag", tag="Tea")
    client.subscribe("hashtag", tag="tea")
    client.subscribe("hashtag", tag="tea")
    client.subscribe("public:local")
    client.settled()
    publish(events.post(114677036875776, 'a "cup" #TEA', user="42", login="ada"))
    statuses = [client.status() for _ in range(3)]
    assert sorted(stream for stream, _ in statuses) == [["hashtag", "Tea"], ["hashtag", "tea"], ["public:local"]]
    assert {status["id"] for _, status in statuses} == {"114677036875776"}
    assert statuses[0][1]["content"] == '<p>a &quot;cup&quot; <span class="mention hashtag">#TEA</span></p>'
    client.say(type="unsubscribe", stream="hashtag", tag="Tea")
    client.say(type="unsubscribe", stream="public:local")
    client.say(type="unsubscribe", stream="public")
    client.settled()
    publish(events.post(114677036875777, "#tea again"))
    assert client.status()[0] == ["hashtag", "tea"]


@pytest.mark.parametrize("target, headers", [
    (STREAMING + "?stream=hashtag&tag=K%C3%A4se%22&access_token=$TOKEN", {}),  # megalodon
    (STREAMING + "/?access_token=$TOKEN&stream=hashtag&tag=K%C3%A4se%22", {}),  # Mastodon's own pages
    (STREAMING + "?stream=hashtag&tag=K%C3%A4se%22&no=thing", None)])
def test_the_address_may_say_it_all(gateway, publish, target, headers):
    client = Client(gateway, target, headers)
    client.settled()
    post = events.post(114677036875776, 'mit #Käse"')
    publish(post)
    stream, status = client.status()
    assert stream == ["hashtag", 'Käse"'] and [tag["name"] for tag in status["tags"]] == ["Käse"]
    publish(events.delete(114677036875779, post))
    assert client.event() == (["hashtag", 'Käse"'], "delete", "114677036875776")


def test_what_is_refused_is_told_and_the_rest_goes_on(gateway, publish):
    client = Client(gateway, STREAMING + "?stream=hashtag", scope="stream:filter")
    assert client.next() == {"error": "Missing tag name parameter", "status": 400}
    client.subscribe("list", list="7")
    assert client.next() == {"error": "there are no lists here", "status": 404}
    client.subscribe("public")
    assert client.next()["status"] == 403
    for text in ("{", "[]", '"subscribe"', "{}", '{"type":"other"}', '{"type":7,"stream":[]}', ""):
        client.socket.send_frame(TEXT, text)
    client.subscribe(["hashtag"], tag="\u2192")
    assert client.next() == {"error": "tag is not a hashtag", "status": 400}
    for tag in ("!", "x" * 60, "x" * 100000):  # which no post can have: together they are one silent stream
        client.subscribe("hashtag", tag=tag)
    for n in range(15):
        client.subscribe("hashtag", tag=f"tea{n}")
    client.settled()
    client.subscribe("hashtag", tag="more")
    assert client.next()["status"] == 413
    publish(events.post(114677036875776, "#tea7"))
    assert client.status()[0] == ["hashtag", "tea7"]
    client.socket.send_frame(BINARY, b"x")
    assert client.next() is None and client.socket.close_code == 1003


def test_a_client_may_have_all_that_there_are(gateway, publish):
    """Including those that deliver nothing here: an error would end all of them in masto.js."""
    client = Client(gateway)
    names = ["user", "user:notification", "public", "public:local", "public:remote", "public:media", "public:local:media",
             "public:remote:media", "direct", "hashtag", "hashtag:local"]
    for name in names:
        client.subscribe(name, tag="tea")
    client.settled()
    publish(events.post(114677036875776, "#tea"))
    publish(events.post(114677036875777, "cup", media=[{"url": "https://a.example/1.png"}]))
    told = {}
    for _ in range(8):
        stream, status = client.status()
        told.setdefault(status["id"][-2:], []).append(stream)
    assert sorted(told["76"]) == [["hashtag", "tea"], ["hashtag:local", "tea"], ["public"], ["public:local"]]
    assert sorted(told["77"]) == [["public"], ["public:local"], ["public:local:media"], ["public:media"]]


def test_a_tag_of_what_has_none_makes_no_other_stream(gateway):
    client = Client(gateway)
    for n in range(20):
        client.subscribe("public:remote", tag=f"{n}" + "x" * 10000)
    client.settled()


def test_quiet_sockets_are_pinged_and_answer_pings(gateway):
    client = Client(gateway, STREAMING + "?stream=public")
    client.socket.shows_keepalives = True
    assert client.socket.next() is client.socket.next()
    assert client.socket.keepalives == 2
    client.socket.send_frame(PING, b"megalodon")
    eventually(lambda: client.socket.next() and client.socket.pongs == [b"megalodon"], "the pong")


def test_sockets_are_compressed_for_who_takes_it(gateway, publish):
    client = Client(gateway, STREAMING, {"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits",
                                         **gateway.bearer()})
    client.subscribe("hashtag", tag="tea")
    client.settled()
    for n in range(3):
        publish(events.post(114677036875776 + n, "#tea " * 40))
        assert client.status()[0] == ["hashtag", "tea"]
    assert client.socket.deflated == 3


@pytest.mark.parametrize("headers, status", [({}, 401), ({"Sec-WebSocket-Protocol": "x.y.z"}, 401),
                                             ({"Authorization": "Bearer x.y.z"}, 401), (None, 426)])
def test_a_socket_needs_a_token(gateway, headers, status):
    if headers is None:
        with gateway.connect() as connection:
            answer = connection.request("GET", STREAMING, headers=gateway.bearer())
    else:
        answer = upgrade(gateway.port, STREAMING, headers)[1]
    assert answer.status == status and json.loads(answer.body)["error"]


def test_a_token_that_is_taken_back_ends_all(gateway):
    client = Client(gateway, STREAMING + "?stream=public", sub="gone")
    stream = gateway.stream("/api/v1/streaming/public", "sse", token=gateway.token(sub="gone"))
    Api(gateway, scope="admin", sub="root").expect(201, "POST", "/v1/revocations", {"sub": "gone"})
    assert client.next() is None and (client.socket.close_code, client.socket.close_reason) == (1005, "")
    assert stream.to_end() == []
    assert upgrade(gateway.port, STREAMING, {"Sec-WebSocket-Protocol": client.jwt})[1].status == 401


def test_a_server_that_drains_is_left(servers, redis):
    gateway = servers.gateway(redis, "--dialects", "mastodon")
    client = Client(gateway, STREAMING + "?stream=public")
    client.settled()
    gateway.process.terminate()
    assert client.next() is None and client.socket.close_code == 1012


def test_who_is_too_slow_in_one_stream_is_told_by_the_close(servers, cli_for):
    """A single stream cannot be reported as ended, so all end."""
    redis = servers.redis(shards=1)
    cli = cli_for(redis)
    gateway = servers.gateway(redis, "--dialects", "mastodon", "--max-owed-bytes", 65536, "--max-lag", "1s")
    jwt = gateway.token()
    socket = RawWebSocket(gateway.port, STREAMING, {"Sec-WebSocket-Protocol": jwt}, receive_buffer=4096)
    for stream in ("public", "public:remote"):
        socket.send_frame(TEXT, json.dumps({"type": "subscribe", "stream": stream}))
    rng, file = random.Random(1), servers.folder / "flood.jsonl"
    with open(file, "w") as out:
        for n in range(1, 801):
            out.write(events.dump(events.post(n, rng.randbytes(5000).hex())) + "\n")
    cli.run("replay", file)
    eventually(lambda: gateway.metrics()['sluice_disconnects_total{code="too_slow"}'] > 0, "too slow")
    last = 0
    while message := socket.next():
        status = json.loads(message["payload"])
        assert int(status["id"]) > last and message["stream"] == ["public"]
        last = int(status["id"])
    assert (socket.close_code, socket.close_reason) == (4008, "too_slow")
