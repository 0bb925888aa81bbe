"""Validates answers against docs/openapi.yaml."""

import pathlib
import re

import jsonschema
import yaml

from .api import Api

FILE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "openapi.yaml"
METHODS = ("get", "put", "post", "delete", "patch")


class Operation:
    def __init__(self, description, method, path, shared, body):
        self.description = description
        self.method, self.path, self.body = method.upper(), path, body
        self.name = body["operationId"]
        self.is_public = body.get("security") == []
        self.scope = None if self.is_public else re.search(r"Needs scope `([\w:]+)`", body["description"])[1]
        self.parameters = [description.resolve(p) for p in [*shared, *body.get("parameters", [])]]
        self.responses = {status: description.resolve(response)
                          for status, response in body["responses"].items()}
        variables = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
        self.pattern = re.compile(f"{variables}$")

    def check_body(self, body):
        """An accepted body must be one that the description allows."""
        schema = self.body["requestBody"]["content"]["application/json"]["schema"]
        self.description.validate(body, schema)

    def check(self, response):
        answer = self.responses.get(str(response.status), self.responses["default"])
        assert str(response.status) in self.responses or response.status >= 500, \
            f"{self.name} does not say that it answers {response}"
        for name, header in answer.get("headers", {}).items():
            header = self.description.resolve(header)
            if name.lower() in response.headers:
                value = response.headers[name]
                if header["schema"]["type"] == "integer":
                    value = int(value)
                self.description.validate(value, header["schema"])
            else:
                assert not header.get("required"), f"{response} has no {name}"
        if "content" not in answer:
            assert not response.body and "content-type" not in response.headers, response
            return
        assert response.headers["content-type"] == "application/json", response
        schema = answer["content"]["application/json"]["schema"]
        self.description.validate(response.json, schema)


class Description:
    def __init__(self):
        self.document = yaml.safe_load(FILE.read_text())
        everything = [
            Operation(self, method, path, item.get("parameters", []), item[method])
            for path, item in self.document["paths"].items() for method in METHODS if method in item]
        self.operations = [operation for operation in everything if not operation.is_public]  # those of the API
        self.public = [operation for operation in everything if operation.is_public]

    def resolve(self, thing):
        while "$ref" in thing:
            part = self.document
            for name in thing["$ref"].removeprefix("#/").split("/"):
                part = part[name]
            thing = part
        return thing

    def validate(self, value, schema):
        resolver = jsonschema.RefResolver("", self.document)
        jsonschema.Draft202012Validator(
            schema, resolver=resolver,
            format_checker=jsonschema.FormatChecker()).validate(value)

    def find(self, method, path):
        """Returns the operation of a request; a path without variables takes precedence."""
        path = path.split("?")[0]
        found = [o for o in self.operations if o.method == method and o.pattern.match(path)]
        return min(found, key=lambda o: o.path.count("{")) if found else None


class DescribedApi(Api):
    """An Api all of whose answers must be allowed by the description."""

    def __init__(self, description, *arguments, **named):
        super().__init__(*arguments, **named)
        self.description, self.asked = description, []

    def send(self, method, path, body=None, headers=None):
        self.asked.append((method, path, body))
        super().send(method, path, body, headers)

    def read(self, method="GET"):
        response = super().read(method)
        method, path, body = self.asked.pop(0)
        operation = self.description.find(method, path)
        operation.check(response)
        if response.status < 300 and body is not None and not isinstance(body, bytes):
            operation.check_body(body)
        return response
