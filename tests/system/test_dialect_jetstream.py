"""Jetstream over WebSocket: what its clients check in each event, what they send, and cursors."""

import base64
import hashlib
import json
import re
import threading

import pytest

from harness import events
from harness.api import Api
from harness.cli import Cli
from harness.waiting import Deadline
from harness.websocket import BINARY, TEXT, RawWebSocket, upgrade

POSTS, FOLLOWS = "app.bsky.feed.post", "app.bsky.graph.follow"

# Like @atcute/jetstream, which drops anything else.
DID = re.compile(r"did:[a-z]+:[A-Za-z0-9._:%-]*[A-Za-z0-9._-]")
TID = re.compile(r"[2-7a-j][2-7a-z]{12}")
NSID = re.compile(r"[a-zA-Z]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)+\.[a-zA-Z][a-zA-Z0-9]*")
HANDLE = re.compile(r"([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?")
RKEY = re.compile(r"[A-Za-z0-9_.:~-]{1,512}")
CID = re.compile(r"baf[ky]rei[a-z2-7]{52}")


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--dialects", "jetstream")


@pytest.fixture(scope="module")
def cli(redis):
    return Cli(redis)


@pytest.fixture(scope="module")
def ada(cli):
    return cli.run("user", "add", "ada")


def cbor(value):
    """DAG-CBOR, by its specification."""
    def head(major, number):
        if number < 24:
            return bytes([major << 5 | number])
        size = next(size for size in (1, 2, 4, 8) if number < 1 << 8 * size)
        return bytes([major << 5 | 24 + (1, 2, 4, 8).index(size)]) + number.to_bytes(size, "big")
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return head(5, len(keys)) + b"".join(cbor(key) + cbor(value[key]) for key in keys)
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    assert type(value) is int and value >= 0
    return head(0, value)


def cid(codec, data):
    number = bytes([1, codec, 0x12, 0x20]) + hashlib.sha256(data).digest()
    return "b" + base64.b32encode(number).decode().lower().rstrip("=")


class Client:
    def __init__(self, gateway, query="", headers=None, extensions="", **token):
        jwt = gateway.token(**token)
        if headers is None:
            headers = {"Authorization": f"Bearer {jwt}"}
        if extensions:
            headers["Sec-WebSocket-Extensions"] = extensions
        self.socket = RawWebSocket(gateway.port, f"/subscribe?{query}".replace("$TOKEN", jwt), headers)

    def say(self, **message):
        self.socket.send_frame(TEXT, json.dumps(message))

    def update(self, **payload):
        self.say(type="options_update", payload=payload)

    def settled(self, passes_users=False):
        """Waits until the server has processed what was sent: a pong comes in order, and nothing before it, except
        perhaps events of users."""
        self.socket.pongs.clear()
        self.socket.send_frame(9, b"?")
        while not self.socket.pongs:
            opcode, payload = self.socket.read_frame(Deadline(what="a pong"))
            if passes_users and opcode == TEXT and json.loads(payload)["kind"] in ("identity", "account"):
                continue
            assert opcode in (9, 10), payload
            if opcode == 10:
                self.socket.pongs.append(payload)

    def of_user(self):
        """Returns the next message, of an identity or an account, which every client must accept."""
        event = self.socket.next().json
        kind = event["kind"]
        assert set(event) == {"did", "time_us", "kind", kind} and type(event["time_us"]) is int
        body = event[kind]
        assert set(body) == {"did", "seq", "time", {"identity": "handle", "account": "active"}[kind]}
        assert body["did"] == event["did"] and DID.fullmatch(event["did"])
        assert type(body["seq"]) is int and body["time"].endswith("Z")
        assert HANDLE.fullmatch(body["handle"]) if kind == "identity" else body["active"] is True
        return event

    def event(self):
        """Returns the next commit, which every client must accept; skips messages of users."""
        event = self.socket.next().json
        while event["kind"] in ("identity", "account"):
            event = self.socket.next().json
        assert set(event) == {"did", "time_us", "kind", "commit"} and event["kind"] == "commit"
        commit = event["commit"]
        assert DID.fullmatch(event["did"]) and type(event["time_us"]) is int and 0 < event["time_us"] < 2 ** 53
        assert TID.fullmatch(commit["rev"]) and NSID.fullmatch(commit["collection"]) and RKEY.fullmatch(commit["rkey"])
        if commit["operation"] == "delete":
            assert set(commit) == {"rev", "operation", "collection", "rkey"}
        else:
            assert commit["operation"] == "create" and CID.fullmatch(commit["cid"])
            assert commit["record"]["$type"] == commit["collection"] and commit["record"]["createdAt"].endswith("Z")
            assert commit["cid"] == cid(0x71, cbor(commit["record"]))
        return event

    def texts(self, count):
        return [self.event()["commit"]["record"]["text"] for _ in range(count)]


def test_a_post_is_a_record(gateway, publish):
    client = Client(gateway)
    client.settled()
    post = events.post(114677036875776, "Tee für @bob #Kräuter http://a.example/", user="42", login="ada", lang="de",
                       reply_to={"post": "114677036740608", "user": "7", "login": "eve"})
    publish(post)
    event = client.event()
    commit, record = event["commit"], event["commit"]["record"]
    assert (event["did"], commit["collection"], commit["rkey"]) == ("did:sluice:42", POSTS, "114677036875776")
    assert (record["text"], record["langs"]) == ("Tee für @bob #Kräuter http://a.example/", ["de"])
    marked = [record["text"].encode()[facet["index"]["byteStart"]:facet["index"]["byteEnd"]].decode()
              for facet in record["facets"]]
    assert marked == ["#Kräuter", "http://a.example/"]
    uri = "at://did:sluice:7/app.bsky.feed.post/114677036740608"
    assert record["reply"]["parent"] == record["reply"]["root"] == {"uri": uri, "cid": cid(0x55, uri.encode())}
    publish(events.delete(114677036875779, post))
    gone = client.event()
    assert gone["did"] == event["did"] and gone["commit"]["operation"] == "delete"
    assert (gone["commit"]["collection"], gone["commit"]["rkey"]) == (POSTS, commit["rkey"])


def test_collections_and_users_are_chosen(gateway, cli, ada):
    bob = cli.run("user", "add", "bob")
    client = Client(gateway, f"wantedCollections=app.bsky.graph.*&wantedDids=did:sluice:{ada}", scope="stream:filter")
    client.settled()
    cli.run("post", "--user", "ada", "no collection that was asked for")
    cli.run("follow", "bob", "ada")
    cli.run("follow", "ada", "bob")
    followed = client.event()
    assert (followed["did"], followed["commit"]["rkey"]) == (f"did:sluice:{ada}", bob)
    assert followed["commit"]["record"]["subject"] == f"did:sluice:{bob}"
    cli.run("unfollow", "ada", "bob")
    gone = client.event()["commit"]
    assert (gone["operation"], gone["collection"], gone["rkey"]) == ("delete", FOLLOWS, bob)
    client.update(wantedDids=[f"did:sluice:{bob}", "did:plc:r2zybk6op3ymzpz6jhqpkoy5"], wantedCollections=[POSTS, "a.b.c"])
    client.settled()
    by_bob = [cli.run("post", "--user", "bob", "by bob")]
    cli.run("post", "--user", "ada", "--reply-to", by_bob[0], "to bob")
    by_bob.append(cli.run("post", "--user", "bob", "by bob, too"))
    assert [client.event()["commit"]["rkey"] for _ in by_bob] == by_bob
    client.update()  # requesting everything needs another scope
    assert client.socket.next() is None and client.socket.close_code == 1008


def change(gateway, user, **members):
    Api(gateway, sub=user).expect(200, "PATCH", "/v1/users/me", members)


@pytest.mark.parametrize("query", ["", "wantedCollections=app.bsky.feed.like", "requireHello=true"])
@pytest.mark.parametrize("extensions", ["", "permessage-deflate"])
def test_users_are_identities_and_accounts(servers, redis, query, extensions):
    """Whatever the collections, in one lane or in several."""
    gateway = servers.gateway(redis, "--dialects", "jetstream")
    cli, number = Cli(redis), len(redis.log_with_users())
    clients = [Client(gateway, query, extensions=extensions) for _ in range(2)]
    for client in clients:
        client.settled()
        if "Hello" in query:
            client.update(wantedCollections=[])
            client.settled()
    eve = cli.run("user", "add", f"Eve_{number}", "--name", "Eve")
    change(gateway, eve, name="Eve L.")
    change(gateway, eve, login=f"eve_{number}")
    did = f"did:sluice:{eve}"
    for client in clients:
        identity, account, renamed = (client.of_user() for _ in range(3))
        assert [event["kind"] for event in (identity, account, renamed)] == ["identity", "account", "identity"]
        assert {event["did"] for event in (identity, account, renamed)} == {did}
        assert identity["identity"]["handle"] == f"eve-{number}.sluice.invalid" == renamed["identity"]["handle"]
        assert identity["identity"]["seq"] == int(eve) == account["account"]["seq"] < renamed["identity"]["seq"]
        assert identity["time_us"] < account["time_us"] < renamed["time_us"]
        client.settled()  # nothing is sent for the name
    # A client that is disconnected between the first two gets both again; one that has both gets neither.
    for last, kinds in ((identity, ["identity", "account", "identity"]), (account, ["identity"]), (renamed, [])):
        again = Client(gateway, f"wantedCollections=app.bsky.feed.like&cursor={last['time_us']}")
        assert [again.of_user()["kind"] for _ in kinds] == kinds
        again.settled()


def test_users_are_chosen_by_did(gateway, cli, ada):
    witness = Client(gateway)
    witness.settled(passes_users=True)
    bob = cli.run("user", "add", "bob_of_dids")
    while (told := witness.of_user())["did"] != f"did:sluice:{bob}" or told["kind"] != "account":
        pass  # what happened before the client connects has passed
    client = Client(gateway, f"wantedDids=did:sluice:{bob}", scope="stream:filter")
    client.settled()
    cli.run("user", "add", "nobody_of_dids")
    change(gateway, ada, name="Ada the chosen")
    change(gateway, bob, login="Bob_of_DIDs")
    told = client.of_user()
    assert (told["did"], told["identity"]["handle"]) == (f"did:sluice:{bob}", "bob-of-dids.sluice.invalid")
    client.settled()


def test_options_take_the_place_of_those_before(gateway, publish):
    client, witness = Client(gateway, "requireHello=true"), Client(gateway)
    client.settled()
    witness.settled()

    def pass_by(event):
        """It has passed before any message is sent: the worker is the same."""
        publish(event)
        assert witness.event()["commit"]["rkey"] == event["post"]["id"]
    pass_by(events.post(114677036875776, "nobody said hello"))
    client.say(type="hello")
    client.settled()
    pass_by(events.post(114677036875777, "that was no hello"))
    client.update()
    client.settled()
    pass_by(events.post(114677036875778, "everything", user="so:me"))
    assert client.event()["did"] == "did:sluice:so%3Ame"
    client.update(wantedCollections=["app.bsky.feed.like"], wantedDids=None)
    client.settled()
    pass_by(events.post(114677036875779, "no like"))
    client.update(maxMessageSizeBytes=600)
    client.settled()
    publish(events.post(114677036875780, "long" * 200))
    publish(events.post(114677036875781, "short"))
    assert client.texts(1) == ["short"]


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.usefixtures("ada")
def test_a_cursor_goes_on_behind_the_event_that_has_it(gateway, cli, waits):
    first = Client(gateway)
    first.settled()
    ids = [cli.run("post", "--user", "ada", f"{n}") for n in range(6)]
    seen = [first.event() for _ in ids]
    assert [event["commit"]["rkey"] for event in seen] == ids
    assert sorted({event["time_us"] for event in seen}) == [event["time_us"] for event in seen]
    for n in (0, 3, 5):
        again = Client(gateway, f"cursor={seen[n]['time_us']}" + ("&requireHello=true" if waits else ""))
        if waits:
            again.settled()
            again.update(wantedCollections=[POSTS])
        ids.append(cli.run("post", "--user", "ada", "one more"))
        assert [again.event()["commit"]["rkey"] for _ in ids[n + 1:]] == ids[n + 1:]
    assert [first.event()["commit"]["rkey"] for _ in ids[6:]] == ids[6:]


@pytest.mark.parametrize("shards", [1, 8, 64])
def test_who_is_cut_off_again_and_again_misses_nothing_and_gets_nothing_twice(servers, shards):
    redis = servers.redis(shards=shards)
    gateway = servers.gateway(redis, "--dialects", "jetstream")
    cli, posted = Cli(redis), [[] for _ in range(4)]
    users = [cli.run("user", "add", f"user{n}") for n in range(len(posted))]

    def post(number):
        api = Api(gateway, sub=users[number])
        for _ in range(100):
            posted[number].append(api.expect(201, "POST", "/v1/posts", {"text": "hello"})["id"])

    client, got, cursor = Client(gateway), [], 0
    client.settled(passes_users=True)
    threads = [threading.Thread(target=post, args=(number,)) for number in range(len(posted))]
    for thread in threads:
        thread.start()
    while len(got) < 400:
        for _ in range(min(1 + len(got) * 7 % 31, 400 - len(got))):
            event = client.event()
            got.append(event["commit"]["rkey"])
            cursor = max(cursor, event["time_us"])
        client.socket.close()
        client = Client(gateway, f"cursor={cursor}")
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(sum(posted, []))
    client.settled(passes_users=True)  # nothing follows


@pytest.mark.usefixtures("ada")
def test_a_cursor_may_lie_anywhere(gateway, cli):
    old = cli.run("post", "--user", "ada", "old")
    for cursor in (0, 1000000000000001):
        client = Client(gateway, f"cursor={cursor}")
        while client.event()["commit"]["rkey"] != old:
            pass
    later = Client(gateway, "cursor=9000000000000000")
    later.settled()
    new = cli.run("post", "--user", "ada", "new")
    assert later.event()["commit"]["rkey"] == new


@pytest.mark.usefixtures("ada")
def test_options_change_while_it_catches_up(gateway, cli):
    before = Client(gateway)
    before.settled()
    ids = [cli.run("post", "--user", "ada", f"{n}") for n in range(20)]
    client = Client(gateway, f"cursor={before.event()['time_us']}")
    for n in range(8):
        client.update(maxMessageSizeBytes=100000 + n)
    del ids[0]
    ids.append(cli.run("post", "--user", "ada", "the last"))
    assert [client.event()["commit"]["rkey"] for _ in ids] == ids


@pytest.mark.parametrize("query, headers", [
    ("access_token=$TOKEN&wantedCollections=app.bsky.feed.post", {}), ("", "basic"), ("", None)])
def test_the_token_stands_where_clients_can_put_it(gateway, publish, query, headers):
    if headers == "basic":
        password = base64.b64encode(f"jwt:{gateway.token()}".encode()).decode()
        headers = {"Authorization": f"Basic {password}"}
    client = Client(gateway, query, headers)
    client.settled()
    publish(events.post(114677036875776, "hello"))
    assert client.texts(1) == ["hello"]


@pytest.mark.parametrize("query, status, text", [
    ("wantedCollections=app.bsky", 400, "invalid collection: app.bsky\n"),
    ("wantedDids=42", 400, "invalid DID: 42\n"),
    ("cursor=yesterday", 400, "invalid cursor: yesterday\n"),
    ("compress=true", 400, "compress: this server has no dictionary of Jetstream's; leave it out\n")])
def test_what_is_wrong_is_said_in_words(gateway, query, status, text):
    answer = upgrade(gateway.port, f"/subscribe?{query}", gateway.bearer())[1]
    assert answer.status == status and answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.body.decode() == text


def test_a_client_that_decompresses_is_told(gateway):
    """The Go client requests it in a header by default."""
    answer = upgrade(gateway.port, "/subscribe", {**gateway.bearer(), "Socket-Encoding": "zstd"})[1]
    assert answer.status == 400 and answer.body.startswith(b"compress: ")


def test_a_token_bounds_what_is_wanted(gateway):
    client = Client(gateway, lim={"follow": 2})
    client.update(wantedDids=["did:a:b", "did:a:c"])
    client.settled()
    client.update(wantedDids=["did:a:b", "did:a:c", "did:a:d"])
    assert client.socket.next() is None and client.socket.close_code == 1008
    answer = upgrade(gateway.port, "/subscribe?wantedDids=did:a:b&wantedDids=did:a:c", gateway.bearer(lim={"follow": 1}))[1]
    assert answer.status == 400 and answer.body.endswith(b"\n")


@pytest.mark.parametrize("headers, status", [({}, 401), ({"Authorization": "Bearer x.y.z"}, 401),
                                             ({"Authorization": "Basic eA=="}, 401), ({"Authorization": "Basic !"}, 401),
                                             ("narrow", 403)])
def test_a_client_without_permission_is_refused(gateway, headers, status):
    if headers == "narrow":
        headers = gateway.bearer(scope="stream:filter")
    answer = upgrade(gateway.port, "/subscribe", headers)[1]
    assert answer.status == status and not answer.body.startswith(b"{") and answer.body.endswith(b"\n")


def test_it_is_for_websockets_only(gateway):
    with gateway.connect() as connection:
        assert connection.request("GET", "/subscribe", headers=gateway.bearer()).status == 426


@pytest.mark.parametrize("opcode, text, code", [
    (TEXT, "{", 1008), (TEXT, '{"type":"options_update"}', 1008),
    (TEXT, '{"type":"options_update","payload":{"wantedDids":["x"]}}', 1008), (BINARY, "x", 1003)])
def test_what_cannot_be_read_ends_it(gateway, opcode, text, code):
    client = Client(gateway)
    client.socket.send_frame(opcode, text)
    assert client.socket.next() is None and client.socket.close_code == code


def test_quiet_sockets_are_pinged(servers, redis):
    client = Client(servers.gateway(redis, "--dialects", "jetstream", "--keepalive-ms", "300"))
    client.socket.shows_keepalives = True
    client.socket.next()
    assert client.socket.keepalives == 1
