"""Compares docs/openapi.yaml with the running server: every operation with every status that it names."""

import re
import zlib

import jsonschema
import pytest

from harness.cli import Cli
from harness.http import form_bytes
from harness.openapi import Description, DescribedApi

DESCRIPTION = Description()
EVERYTHING = {"text": "everything", "lang": "en", "geo": {"lon": 1.5, "lat": -2},
              "place": {"name": "Here", "country": "FR", "bbox": [1, 2, 3, 4]}, "source": "web",
              "urls": ["https://example.org/"], "media": [{"url": "https://example.org/a.jpg"}]}


class World:
    """Ada, who sends requests, and Bob; a post by Ada, which Bob replies to and likes; and a server without Redis."""

    def __init__(self, servers):
        self.servers, self.redis = servers, servers.redis()
        self.gateway = servers.gateway(self.redis, "--run-tasks", "on")
        self.admin = self.api(scope="admin")
        self.ada, self.bob = (self.api(self.make_user(login)) for login in ("ada", "bob"))
        self.post = self.ada.post(**EVERYTHING)["id"]
        self.answer = self.bob.post("I agree", reply_to=self.post, quote_of=self.post)["id"]
        self.bob.expect(204, "PUT", f"/v1/posts/{self.post}/like")
        self.bob.expect(204, "PUT", f"/v1/users/me/following/{self.ada.sub}")
        self.ada.expect(204, "PUT", f"/v1/users/me/following/{self.bob.sub}")
        self.keys, self.streams = 0, []

    def connection(self):
        """The id of an open stream of Ada's."""
        self.streams.append(self.gateway.stream("/v1/stream/firehose", token=self.gateway.token(sub=self.ada.sub)))
        return self.streams[-1].response.headers["sluice-connection"]

    def api(self, sub=None, scope="read write stream:firehose", **more):
        return DescribedApi(DESCRIPTION, self.gateway, sub, scope, **more)

    def make_user(self, login):
        return self.admin.expect(201, "POST", "/v1/users", {"login": login})["id"]

    def key(self):
        self.keys += 1
        return {"Idempotency-Key": f"key-{self.keys}"}

    def path(self, operation):
        """With the required parameters."""
        values = {"bucket": "1s", "since": "-2s", "ids": self.post if "/posts" in operation.path else self.bob.sub,
                  "with": self.ada.sub, "sub": self.ada.sub}
        query = "&".join(f"{parameter['name']}={values[parameter['name']]}"
                         for parameter in operation.parameters
                         if parameter["in"] == "query" and parameter.get("required"))
        path = operation.path.replace("{user}", self.bob.sub).replace("{post}", self.post)
        if "{revocation}" in path:
            made = self.admin.expect(201, "POST", "/v1/revocations", {"sub": "nobody"})["id"]
            path = path.replace("{revocation}", made)
        if "{connection}" in path:
            path = path.replace("{connection}", self.connection())
        return f"{path}?{query}" if query else path

    def body(self, operation):
        self.keys += 1
        return {"createUser": {"login": f"user{self.keys}", "name": "A user"},
                "createPost": EVERYTHING,
                "followMany": {"users": [self.bob.sub, self.ada.sub, "nobody"]},
                "unfollowMany": {"users": ["nobody"]}, "keepLastRead": {"id": self.post},
                "estimateFilter": {"filter": {"firehose": True}},
                "makeTicket": {"path": "/v1/stream/firehose"},
                "revoke": {"jti": f"jti-{self.keys}"},
                "changeUser": {"name": "Ada", "bio": "I was first.", "avatar": "https://example.org/a.png",
                               "fields": [{"name": "Born", "value": "1815"}]}}.get(operation.name)

    def user(self, operation):
        return self.admin if operation.scope == "admin" else self.ada

    def ask(self, operation, headers=None, query="", user=None):
        path = self.path(operation)
        if query:
            path += ("&" if "?" in path else "?") + query
        return (user or self.user(operation)).request(
            operation.method, path, self.body(operation), headers)


@pytest.fixture(scope="module")
def world(module_servers):
    return World(module_servers)


@pytest.fixture(scope="module")
def without_redis(world, module_servers):
    gateway = module_servers.gateway(module_servers.redis(), "--api-timeout", "500ms")
    module_servers.redis_servers[-1].stop()
    gateway.wait_status("/readyz", 503)
    return gateway


def unauthorized(world, operation):
    stranger = world.api()
    stranger.headers = lambda body=None, headers=None: \
        {"Content-Type": "application/json"} if body is not None else {}
    return world.ask(operation, user=stranger)


def forbidden(world, operation):
    query = "sub=another" if operation.name == "readUsage" else ""
    return world.ask(operation, query=query, user=world.api(world.ada.sub, "none"))


def not_found(world, operation):
    if operation.name == "createPost":
        return world.ada.request("POST", "/v1/posts", {"text": "x", "reply_to": "4096"})
    if operation.name == "makeTicket":
        return world.ada.request("POST", "/v1/tickets", {"path": "/v1/stream/nowhere"})
    path = world.path(operation).replace(f"/{world.bob.sub}", "/nobody")
    path = re.sub("/[0-9a-f]{32}", "/" + 32 * "0", path.replace(f"/{world.post}", "/ada"))
    if operation.name == "unrevoke":
        path = "/v1/revocations/4096"
    return world.user(operation).request(operation.method, path)


def conflict(world, operation):
    if operation.name == "createUser":
        return world.admin.request("POST", "/v1/users", {"login": "ADA"})
    if operation.name == "changeUser":  # a login in the subject's shard
        shards, login = world.redis.shards, ""
        for number in range(10000):
            login = f"taken{number}"
            if zlib.crc32(login.encode()) % shards == int(world.ada.sub) // 64 % 64:
                break
        world.admin.request("POST", "/v1/users", {"login": login})
        return world.ada.request("PATCH", "/v1/users/me", {"login": login})
    fan = world.api(world.make_user("fan"))
    fan.expect(204, "PUT", f"/v1/users/me/following/{world.bob.sub}")
    cli = Cli(world.redis)
    cli.run("config", "set", "following-max", "1")
    response = fan.request("PUT", f"/v1/users/me/following/{world.ada.sub}")
    cli.run("config", "set", "following-max", "2000")
    return response


def gone(world, operation):
    key = world.key()
    post = world.ada.expect(201, "POST", "/v1/posts", {"text": "short-lived"}, key)
    world.ada.expect(204, "DELETE", f"/v1/posts/{post['id']}")
    return world.ada.request("POST", "/v1/posts", {"text": "short-lived"}, key)


def without_length(world, operation):
    user = world.user(operation)
    user.asked.append((operation.method, operation.path, None))
    user.close()
    user.owed, user.connection = 1, world.gateway.connect()
    user.connection.send(form_bytes("POST", operation.path,
                                    {**user.headers({}), "Content-Length": None}))
    return user.read()


def elsewhere(world):
    """Returns a login in another shard than the subject's, in a database of two."""
    redis = world.servers.redis(shards=2)
    gateway = world.servers.gateway(redis)
    admin = DescribedApi(DESCRIPTION, gateway, None, "admin")
    ada = DescribedApi(DESCRIPTION, gateway, admin.expect(
        201, "POST", "/v1/users", {"login": "ada"})["id"], "read write")
    login = next(login for login in (f"ada{number}" for number in range(100))
                 if zlib.crc32(login.encode()) % 2 != int(ada.sub) // 64 % 64)
    response = ada.request("PATCH", "/v1/users/me", {"login": login})
    admin.close()
    ada.close()
    return response


def reused(world, operation):
    key = world.key()
    if operation.name == "changeUser":
        return elsewhere(world)
    if operation.name == "createUser":  # a key is stored in the shard of the login
        world.admin.expect(201, "POST", "/v1/users", {"login": "once"}, key)
        return world.admin.request("POST", "/v1/users", {"login": "once", "name": "Twice"}, key)
    if operation.name == "revoke":
        world.admin.expect(201, "POST", "/v1/revocations", {"jti": "once"}, key)
        return world.admin.request("POST", "/v1/revocations", {"jti": "twice"}, key)
    if operation.name == "createPost":
        world.ada.expect(201, "POST", "/v1/posts", {"text": "once"}, key)
    else:
        world.ada.expect(200, "POST", operation.path, {"users": [world.bob.sub]}, key)
    return world.ask(operation, key)


PROVOKERS = {
    "200": lambda world, operation: world.ask(operation),
    "201": lambda world, operation: world.ask(operation),
    "204": lambda world, operation: world.ask(operation),
    "400": lambda world, operation: world.ask(operation, query="page=2"),
    "401": unauthorized,
    "403": forbidden,
    "404": not_found,
    "406": lambda world, operation: world.ask(operation, {"Accept": "text/html"}),
    "409": conflict,
    "410": gone,
    "411": without_length,
    "413": lambda world, operation: world.user(operation).request(
        operation.method, operation.path, b" " * (256 << 10) + b"{}"),
    "415": lambda world, operation: world.ask(operation, {"Content-Type": "text/plain"}),
    "422": reused,
    "429": lambda world, operation: world.ask(operation, user=world.api(
        world.ada.sub, "read write admin stream:firehose", lim={"requests": 0})),
}

CASES = sorted(((operation, status) for operation in DESCRIPTION.operations
                for status in operation.responses if status in PROVOKERS),
               key=lambda case: case[0].name == "deletePost" and case[1] == "204")  # this one is the last


@pytest.mark.parametrize("operation, status", CASES,
                         ids=[f"{operation.name}-{status}" for operation, status in CASES])
def test_every_status_of_every_operation(world, operation, status):
    response = PROVOKERS[status](world, operation)
    assert response.status == int(status), response


# These need no Redis: their answer says that it is incomplete.
IS_ANSWERED_WITHOUT_REDIS = {"listConnections", "endConnections"}


@pytest.mark.parametrize("operation", [o for o in DESCRIPTION.operations if o.name not in IS_ANSWERED_WITHOUT_REDIS],
                         ids=lambda o: o.name)
def test_every_operation_without_redis(world, without_redis, operation):
    user = DescribedApi(DESCRIPTION, without_redis, world.ada.sub, "read write admin stream:firehose")
    response = world.ask(operation, user=user)
    assert response.status == (200 if operation.name == "readUsage" else 503), response
    user.close()


def test_every_status_is_tried():
    for operation in DESCRIPTION.operations:
        assert set(operation.responses) <= {*PROVOKERS, "429", "503", "default"}, operation.name


def test_pages_are_as_described(world):
    post = world.ada.post("liked and answered")["id"]
    world.bob.post("so be it", reply_to=post)
    world.bob.expect(204, "PUT", f"/v1/posts/{post}/like")
    world.redis.wait_tasks()
    for path in (f"/v1/users/{world.ada.sub}/posts", f"/v1/users/{world.ada.sub}/followers",
                 f"/v1/posts/{post}/likes", f"/v1/posts/{post}/comments"):
        assert world.ada.get(path)["items"]
        assert world.ada.get(path + "?before=1") == {"items": []}
        assert all("viewer" in item for item in world.ada.get(path + "?include=viewer")["items"])
    included = world.ada.get(f"/v1/posts/{post}?include=comments:3,likes:5,viewer")["included"]
    assert included["comments"] and included["likes"]


def test_what_is_damaged_is_as_described(servers):
    world = World(servers)
    world.redis.client.hset(world.redis.key(world.bob.sub, f"user:{world.bob.sub}"), "posts", "many")
    assert world.ada.request("GET", f"/v1/users/{world.bob.sub}").status == 500


def test_operations_are_those_of_the_server(world):
    routes = {re.search(r'route="([^"]+)"', name)[1] for name in world.gateway.metrics()
              if name.startswith("sluice_api_requests_total")}
    described = {f"{o.method} {o.path}" for o in DESCRIPTION.operations if "/connections" not in o.path}
    of_streams = {"GET /v1/counts", "POST /v1/filters/estimate", "POST /v1/tickets"}
    of_streams.add("GET /v1/usage")
    assert routes - {"none"} == described - of_streams


def test_the_description_is_sound():
    names = [operation.name for operation in DESCRIPTION.operations]
    assert len(names) == len(set(names))
    for schema in DESCRIPTION.document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for operation in DESCRIPTION.operations:
        variables = set(re.findall(r"\{(\w+)\}", operation.path))
        assert {p["name"] for p in operation.parameters if p["in"] == "path"} == variables
        example = operation.body.get("requestBody", {}).get("content", {}).get("application/json")
        if example:
            operation.check_body(example["example"])
