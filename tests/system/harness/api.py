"""A user of the HTTP API: JSON in, JSON out, on one keep-alive connection."""

import json

from .http import form_bytes
from .waiting import next_millisecond

JSON = {"Content-Type": "application/json"}


class Api:
    """Sends requests to `gateway` as the subject `sub` (a user's id; None: a token without one)."""

    def __init__(self, gateway, sub=None, scope="read write", **claims):
        self.gateway, self.sub, self.scope, self.claims = gateway, sub, scope, claims
        self.connection = None
        self.owed = 0  # answers that have not been read

    def headers(self, body=None, headers=None):
        claims = {"scope": self.scope, "sub": self.sub, **self.claims}
        return {**self.gateway.bearer(**claims), **(JSON if body is not None else {}),
                **(headers or {})}

    def request_bytes(self, method, path, body=None, headers=None):
        """`body` is an object that is sent as JSON, or bytes."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return form_bytes(method, path, self.headers(body, headers), body)

    def send(self, method, path, body=None, headers=None):
        if self.connection and not self.owed and self.connection.has_news():
            self.close()  # it was idle for too long
        if not self.connection:
            self.connection = self.gateway.connect()
        self.owed += 1
        self.connection.send(self.request_bytes(method, path, body, headers))

    def read(self, method="GET"):
        response = self.connection.read_response(method)
        self.owed -= 1
        if response.headers.get("connection", "").lower() == "close":
            self.close()
        return response

    def request(self, method, path, body=None, headers=None):
        """After a write, it returns in a later millisecond."""
        self.send(method, path, body, headers)
        response = self.read(method)
        if method != "GET":
            next_millisecond()
        return response

    def expect(self, status, method, path, body=None, headers=None):
        """Returns the answer's JSON (None: it has none); the status must be this one."""
        response = self.request(method, path, body, headers)
        assert response.status == status, response
        return response.json if response.body else None

    def refused(self, status, code, method, path, body=None, headers=None):
        """Returns the error of an answer, which must be this refusal."""
        response = self.request(method, path, body, headers)
        assert response.status == status and response.error["code"] == code, response
        return response.error

    def get(self, path):
        return self.expect(200, "GET", path)

    def post(self, text, **members):
        """Creates a post, and returns it."""
        return self.expect(201, "POST", "/v1/posts", {"text": text, **members})

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection, self.owed = None, 0


class Site:
    """Creates users on `gateway`."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.admin = Api(gateway, scope="admin")
        self.users = []

    def user(self, login, name=None):
        """Returns the Api of a new user; its `sub` is the id."""
        body = {"login": login, **({"name": name} if name else {})}
        user = Api(self.gateway, self.admin.expect(201, "POST", "/v1/users", body)["id"])
        self.users.append(user)
        return user

    def close(self):
        for api in (self.admin, *self.users):
            api.close()
