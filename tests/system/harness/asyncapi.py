"""Validates messages against docs/asyncapi.yaml: which of its messages is this?"""

import pathlib

import jsonschema
import yaml

FILE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "asyncapi.yaml"


class Description:
    def __init__(self):
        self.document = yaml.safe_load(FILE.read_text())
        self.resolver = jsonschema.RefResolver("", self.document)

    def resolve(self, thing):
        while "$ref" in thing:
            thing = self.resolver.resolve(thing["$ref"])[1]
        return thing

    def validator(self, schema):
        return jsonschema.Draft7Validator(schema, resolver=self.resolver,
                                          format_checker=jsonschema.FormatChecker())

    def said_by_clients(self, channel):
        """The names of the messages that the server receives."""
        prefix = f"#/channels/{channel}/messages/"
        return {message["$ref"].removeprefix(prefix)
                for operation in self.document["operations"].values()
                if operation["action"] == "receive" for message in operation["messages"]}

    def message(self, channel, value, by_client=False):
        """Returns the one message of the channel that matches `value`."""
        messages = self.document["channels"][channel]["messages"]
        client = self.said_by_clients(channel)
        found = [name for name, message in messages.items() if (name in client) == by_client
                 and self.validator(self.resolve(message)["payload"]).is_valid(value)]
        assert len(found) == 1, f"{value} of {channel} is {found}"
        return found[0]

    def parameters(self, channel):
        """By name, each with its schema."""
        query = self.resolve(self.document["channels"][channel]["bindings"]["ws"]["query"])
        return {name: self.resolve(schema) for name, schema in query["properties"].items()}
