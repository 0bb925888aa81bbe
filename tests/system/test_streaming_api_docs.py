"""docs/streaming-api.md: its commands, its conversations and its messages, run unchanged."""

import json
import re

import pytest

from harness import programs, zstd
from harness.asyncapi import Description
from harness.pages import Shell, examples, pattern, without_space
from harness.waiting import DeadlinePassed, eventually

PAGE = (programs.SOURCE / "docs/streaming-api.md").read_text()
DESCRIPTION = Description()
COMMANDS = [(command, expected) for command, expected in examples(PAGE)
            if not command.startswith("URL=")]  # the page tells its reader to set the server's address
LONG = re.compile(r"\$\(printf %0(\d+)d 1\)")


class Reader:
    """Somebody who runs the page's commands, and does in another terminal what it says."""

    def __init__(self, servers):
        self.redis = servers.redis()
        self.add_dictionaries()
        self.base = servers.gateway(self.redis)
        for number, status in ((40961, 200), (40962, 410)):
            self.base.wait_status(f"/v1/dictionaries/{number}", status)
        self.folder = servers.folder
        self.shell = Shell(SLUICE_REDIS=self.redis.url, SECRET=str(self.base.secret_file),
                           URL=self.url(self.base))
        for command, expected in COMMANDS:
            assert expected or not self.shell.run(command).strip()

    def add_dictionaries(self):
        """An active one of the size given in the page, and one that has been withdrawn."""
        data = zstd.train(40961, [f"Tea at {number}, or a night train" for number in range(1000)], size=2000)
        zstd.add_dictionary(self.redis, 40961, data)
        for number, withdrawn in ((40961, 0), (40962, 1)):
            self.redis.client.hset("sluice:{0}:dictionaries", number, f"{number} 16230 5441 {withdrawn}")

    def url(self, gateway):
        return f"http://127.0.0.1:{gateway.port}"

    def gateway_for(self, comment, servers):
        """Returns the server in the state that the comment after a command describes."""
        if comment == "after a silence":
            return servers.gateway(self.redis, "--keepalive-ms", 100)
        if comment == "and the server is stopped":
            return servers.gateway(self.redis)
        if comment == "where a subject may have one stream, and opens another":
            return servers.gateway(self.redis, "--max-connections-per-subject", 1, "--replace-oldest")
        if comment == "where a subject may have one stream, and has it":
            gateway = servers.gateway(self.redis, "--max-connections-per-subject", 1)
            self.open_another(gateway)
            return gateway
        if comment == "where the filters of a subject may take 64 KiB":
            return servers.gateway(self.redis, "--max-filter-bytes-per-subject", "64K")
        if comment == "where a request may take a tenth of a second":
            return servers.gateway(self.redis, "--handshake-timeout-ms", 100)
        if comment == "while Redis is away":
            gateway = servers.gateway(servers.redis())
            servers.redis_servers[-1].stop()
            gateway.wait_status("/readyz", 503)
            return gateway
        assert not comment, f"what is '{comment}'?"
        return self.base

    def open_another(self, gateway):
        """Opens a stream of the same subject."""
        bob = self.shell.run("echo $BOB").strip()
        self.other = gateway.stream("/v1/stream/firehose", token=gateway.token(sub=bob))

    def paste(self, command, expected, servers):
        command, _, comment = command.partition(" # ")
        gateway = self.gateway_for(comment, servers)
        self.shell.run(f"URL={self.url(gateway)}")
        if command.startswith(("stream ", "curl -N ")):
            self.follow(command, expected, {"and the server is stopped": gateway.begin_stop,
                        "where a subject may have one stream, and opens another":
                        lambda: self.open_another(gateway)}.get(comment))
        else:
            printed = self.shell.run(command)
            assert re.match(pattern(expected) + "$", without_space(printed)), \
                f"$ {command}\n{printed}\nexpected: {expected}"

    def follow(self, command, expected, end):
        """Opens the stream, causes what is shown, and closes it."""
        head, body = self.folder / "head", self.folder / "body"
        head.unlink(missing_ok=True)
        pid = self.shell.run(f"( curl() {{ exec curl -D {head} \"$@\"; }}; {command} ) >{body} & "
                             "echo $!").strip()
        eventually(lambda: head.exists() and b"\r\n\r\n" in head.read_bytes(), f"{command} is answered")
        if end:
            eventually(lambda: body.stat().st_size > 0 or "since" not in command, "the replay has begun")
            end()
        else:
            self.shell.run("happen")
        wanted = re.compile(pattern(expected))
        try:
            eventually(lambda: wanted.match(without_space(body.read_text())), f"what {command} brings")
        except DeadlinePassed:
            raise AssertionError(f"$ {command}\n{body.read_text()}\nexpected: {expected}") from None
        self.shell.run(f"{{ kill {pid}; wait {pid}; }} 2>/dev/null")


@pytest.fixture(scope="module")
def reader(module_servers):
    reader = Reader(module_servers)
    yield reader
    reader.shell.close()


def test_what_the_page_says_is_what_happens(reader, servers):
    for command, expected in COMMANDS:
        if expected:
            reader.paste(command, expected, servers)
        elif command.startswith("TICKET="):
            reader.shell.run(command)  # the one from the beginning may have expired
    assert not reader.shell.errors()


def conversations():
    """Returns the lines of each block of `>` and `<`, and what it says about the token."""
    blocks = re.findall(r"(?:^    # a (?:token with (.*)|WebSocket to (.*))\n)?((?:^    [<>] .*\n)+)", PAGE, re.M)
    return [(json.loads(f"{{{claims}}}"), path or "/v1/stream", re.findall(r"^    ([<>]) (.*)$", block, re.M))
            for claims, path, block in blocks]


@pytest.mark.parametrize("claims, path, lines", conversations())
def test_what_clients_say_is_answered_so(reader, claims, path, lines):
    has_happened = False
    with reader.base.stream(path, "websocket", token=reader.base.token(**claims)) as stream:
        for who, text in lines:
            if who == ">":
                stream.send(LONG.sub(lambda match: "1".zfill(int(match[1])), text))
                continue
            if '"type"' in text and not has_happened:
                reader.shell.run("happen")
                has_happened = True
            answer = stream.next()
            while '"type":"counts"' in text and not answer["posts"]:
                answer = stream.next()
            assert re.match(pattern(text) + "$", without_space(answer.raw)), (text, answer)
            DESCRIPTION.message("counts" if "counts" in path else "many", answer.json)


def test_there_is_an_example_of_everything():
    asked = "\n".join(command for command, _ in COMMANDS)
    shown = "\n".join(f" {without_space(output)}" for _, output in COMMANDS)
    said = "\n".join(text for *_, lines in conversations() for _, text in lines)
    for name in DESCRIPTION.parameters("filter") | DESCRIPTION.parameters("counts") | DESCRIPTION.parameters("trends"):
        assert re.search(rf"[?&'\" ]{name}=", asked), f"no example of {name}"
    for path in ("filter", "sample", "firehose", "home", "counts", "trends"):
        assert f"/v1/stream/{path}" in asked
    for kind in ("post", "delete", "follow", "unfollow", "gap", "cursor", "hello", "disconnect", "counts", "skipped", "trends"):
        assert f'"type":"{kind}"' in shown, f"no example of {kind}"
    for op in ("subscribe", "unsubscribe", "list", "subscribed", "unsubscribed"):
        assert f'"op":"{op}"' in said
    rows = re.findall(r"^\| (\d{3}[\d, ]*) \|", PAGE, re.M)
    statuses = [status for row in rows for status in row.split(", ")]
    assert len(statuses) > 10
    for status in statuses:
        assert re.search(rf"(HTTP/1\.1|}}){status}\D?", shown), f"no example of {status}"


def refused_filters():
    """Returns (code, example) from the table of errors in a filter."""
    page = (programs.SOURCE / "docs/filters.md").read_text()
    return re.findall(r"^\| `(\w+)` \| \d{3} \| .* \| `(.+)` \|$", page, re.M)


def test_what_is_wrong_with_a_filter_is_named_as_in_the_table(reader):
    assert len(refused_filters()) > 30
    for code, example in refused_filters():
        quoted = example.replace('"', '\\"')
        printed = reader.shell.run(f'ask --data-urlencode "{quoted}" "{reader.url(reader.base)}/v1/stream/filter"')
        assert f'"code":"{code}"' in printed, (example, printed)


def test_messages_that_are_shown_alone_are_messages():
    alone = re.findall(r'\n\n    (\{"type":.*\})\n\n', PAGE)
    assert alone
    for message in alone:
        DESCRIPTION.message("firehose", json.loads(message))
