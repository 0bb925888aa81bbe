"""`sluice tail` for counts and trends, and which of its options are for which streams, with a real server."""

import json
import os
import pty
import re
import subprocess
import urllib.parse

import pytest

from harness import programs
from harness.cli import Cli
from harness.http import form_bytes
from harness.waiting import Deadline, eventually

STREAMS = {"filter": ["--track", "tea"], "sample": [], "firehose": [], "home": [], "counts": ["--bucket", "1s"],
           "trends": ["--bucket", "1s", "--window", "5m", "--of", "hashtags"]}

PARAMETERS = {
    "track": "tea", "follow": "1", "locations": "1,2,3,4", "rule": "tea", "language": "en", "percent": "50",
    "partition": "1/2", "types": "post", "bucket": "1s", "by": "lang", "refresh-ms": "500", "window": "5m", "of": "words",
    "terms": "5", "since": "-1m", "until": "+1m", "last": "5", "fields": "text", "max-rate": "1", "max": "5",
    "pick": "first", "latest-by": "user", "cell-degrees": "1", "on-slow": "sample"}
OURS = {"limit", "pretty", "json", "uncompressed", "url", "token", "cacert"}


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis)


@pytest.fixture
def cli(cli_for, redis, gateway):
    cli = cli_for(redis)
    cli.environment |= {"SLUICE_URL": gateway.url, "SLUICE_TOKEN": gateway.token()}
    return cli


@pytest.fixture(scope="module")
def posts(gateway, redis):
    """Ids of a few posts; the second of the last one is over."""
    cli = Cli(redis)
    people = [cli.run("user", "add", login) for login in ("ada", "bob", "cyd")]
    posts = [cli.run("post", "--user", user, "--lang", lang, "Tea #tea") for user in people for lang in ("en", "fr", "en")]
    cli.run("delete", "--user", "ada", posts[0])
    posts.append(cli.run("post", "--user", "ada", "Cake"))
    eventually(lambda: int(past(gateway, "bucket=1s&since=-1s")["cursor"]) > int(posts[-1]), "their second is over")
    return posts


@pytest.fixture
def last(posts):
    return posts[-1]


def past(gateway, query):
    with gateway.connect() as connection:
        connection.send(form_bytes("GET", f"/v1/counts?{query}", gateway.bearer()))
        return connection.read_response("GET").json


def test_every_option_is_tried(cli):
    options = set(re.findall("^  --([a-z-]+)", cli.run("tail", "--help"), re.M))
    assert options == set(PARAMETERS) | OURS


@pytest.mark.parametrize("stream", STREAMS)
def test_an_option_is_refused_where_the_server_has_no_such_parameter(cli, gateway, stream):
    with gateway.connect() as connection:
        for option, value in PARAMETERS.items():
            name = {"terms": "limit"}.get(option, option.replace("-", "_"))
            # `delimited` is refused in any case, but only after unknown parameters.
            query = urllib.parse.urlencode({name: value, "delimited": "x"})
            connection.send(form_bytes("GET", f"/v1/stream/{stream}?{query}", gateway.bearer()))
            is_unknown = connection.read_response("GET").json["error"]["code"] == "unknown_parameter"
            given = [] if f"--{option}" in STREAMS[stream] else [f"--{option}", value]
            cli.run("tail", stream, *STREAMS[stream], *given, "--token", "wrong", status=2 if is_unknown else 1)
            expected = f"--{option} is for .*, not for {stream}\n" if is_unknown else "status 401"
            assert re.search(expected, cli.done.stderr), (option, cli.done.stderr)


@pytest.mark.parametrize("stream, missing", [("counts", "bucket"), ("trends", "bucket"), ("trends", "window"), ("trends", "of")])
def test_what_a_stream_needs_is_told_without_a_server(cli, stream, missing):
    needed = list(STREAMS[stream])
    at = needed.index(f"--{missing}")
    del needed[at:at + 2]
    cli.run("tail", stream, *needed, "--url", "http://127.0.0.1:1", status=2)
    assert f"{stream} needs --{missing} " in cli.done.stderr


def test_counts_are_those_of_the_server(cli, gateway, posts):
    first, last = posts[0], posts[-1]
    counts = past(gateway, f"bucket=1s&by=lang&since={first}&until={last}")["counts"]
    assert sum(bucket["posts"] for bucket in counts) == len(posts)
    lines = cli.run("tail", "counts", "--bucket", "1s", "--by", "lang", "--since", first, "--until", last)
    assert [json.loads(line) for line in lines.splitlines()] == counts
    assert cli.done.stderr == ""


def test_counts_of_the_past_for_people(cli, last):
    said = cli.run("tail", "counts", "--bucket", "1d", "--by", "lang", "--refresh-ms", "100", "--pretty", "--limit", "1",
                   "--since", "-1d", "--track", "tea")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d       0 posts      0 users     0 deletes", said.splitlines()[0])
    program = cli.start("tail", "counts", "--bucket", "1d", "--by", "lang", "--refresh-ms", "100", "--pretty", "--track", "tea")
    deadline = Deadline(what="it prints the current day so far")
    while not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d       9 posts      3 users     1 deletes  en 6, fr 3 \(so far\)",
                           program.line()):
        deadline.left()
    program.process.kill()
    program.process.communicate()


def test_trends_of_the_past(cli, last):
    lines = cli.run("tail", "trends", "--bucket", "1s", "--window", "5m", "--of", "hashtags,words", "--terms", "1",
                    "--since", "-1s", "--limit", "2", "--lang", "en").splitlines()
    terms = {message["of"]: message["terms"] for message in map(json.loads, lines)}
    assert [(term["term"], term["users"], term["posts"]) for term in terms["hashtags"]] == [("#tea", 3, 6)]
    assert len(terms["words"]) <= 1
    said = cli.run("tail", "trends", "--bucket", "1s", "--window", "5m", "--of", "hashtags", "--limit", "1", "--pretty")
    assert re.search(r"^\S+ hashtags since \S+.*\n +users +before .*\n +3 +0 +9 .* #tea$", said)


def test_some_posts_of_the_past(cli, last):
    lines = cli.run("tail", "firehose", "--since", "-1h", "--until", last, "--max", "1", "--pick", "newest").splitlines()
    assert [json.loads(line)["post"]["text"] for line in lines] == ["Cake"]
    assert json.loads(cli.done.stderr)["type"] == "skipped"
    cli.run("tail", "firehose", "--max", "1", status=1)
    assert "--max: max needs since and until" in cli.done.stderr


def shown(cli, *arguments):
    """What it prints on a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen([programs.sluice(), *arguments], env=cli.environment, stdin=subprocess.DEVNULL, stdout=slave,
                               stderr=subprocess.PIPE)
    os.close(slave)
    deadline, text = Deadline(what="it ends"), b""
    while True:
        deadline.wait_readable(master)
        try:
            text += os.read(master, 65536)
        except OSError:  # nobody has the other end any more
            break
    os.close(master)
    assert process.wait(Deadline().seconds) == 0, process.stderr.read()
    process.stderr.close()
    return text.decode().splitlines()


def test_a_terminal_shows_it_for_people(cli, last):
    firehose = ["tail", "firehose", "--since", "-1h", "--until", last]
    assert shown(cli, *firehose)[-1].endswith("@ada: Cake")
    assert json.loads(shown(cli, *firehose, "--json")[-1])["id"] == last
    assert " posts " in shown(cli, "tail", "counts", "--bucket", "1s", "--since", "-1s", "--limit", "1")[0]
    cli.run("tail", "firehose", "--json", "--pretty", status=2)
    assert "--pretty and --json cannot be combined" in cli.done.stderr
