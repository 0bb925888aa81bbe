"""sluice dictionary train, list, show, withdraw: from posts in the log to streams, without anything that only few
authors have written."""

import json
import random
import subprocess

import pytest
import zstandard

from harness import programs, zstd
from harness.cli import Cli
from harness.streams import Collector
from harness.waiting import eventually

SECRET = "the key below the third flowerpot is Kq7#zebra"
OF_FOUR = "four voices say moonlight sonata backwards"
OF_FIVE = "five of us sing yellow submarine tonight"
DELETED = "everybody takes this elderberry wine back"
HIDDEN = "among followers persimmon is spoken of freely"
WORDS = ["coffee", "morning", "weather", "good", "again", "today", "日本", "☕"]
AUTHORS = 24


def texts():
    """Returns (author, text, members) of posts in which every author repeats a text of his own."""
    rng = random.Random(1)
    for number in range(600):
        author = number % AUTHORS
        own = {0: SECRET}.get(author) or (OF_FOUR if 1 <= author < 5 else OF_FIVE if 5 <= author < 10 else "nothing")
        yield author, f"{rng.choice(WORDS)} {rng.choice(WORDS)} {own} {rng.choice(WORDS)}", {}
    for author in range(AUTHORS):
        yield author, HIDDEN, {"audience": "followers"}


@pytest.fixture(scope="module", name="world")
def a_world(module_servers, tmp_path_factory):
    redis = module_servers.redis()
    cli = Cli(redis)
    lines = [{"id": str(number), "type": "post", "post": {"id": str(number), "user": {"id": str(author), "login": f"u{author}"},
                                                          "text": text, **members}}
             for number, (author, text, members) in enumerate(texts(), 1000)]
    lines += [{"id": str(5000 + author), "type": "post", "post": {"id": str(5000 + author), "user": {
        "id": str(author), "login": f"u{author}"}, "text": DELETED}} for author in range(AUTHORS)]
    lines += [{"id": str(6000 + author), "type": "delete", "post": {"id": str(5000 + author), "user": {"id": str(author)}}}
              for author in range(AUTHORS)]
    file = tmp_path_factory.mktemp("dictionary") / "events.jsonl"
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    cli.run("replay", file)
    return redis, cli


def refused(cli, *arguments, status=1):
    cli.run(*arguments, status=status)
    return cli.done.stderr


def longest_part(text, data):
    return max(end - begin for begin in range(len(text)) for end in range(begin, len(text) + 1)
               if text[begin:end].encode() in data)


def test_from_posts_to_streams_and_back(world, servers):
    redis, cli = world
    before = cli.run("dictionary", "list")
    said = json.loads(cli.run("dictionary", "train", "--dry-run"))
    assert cli.run("dictionary", "list") == before
    said = json.loads(cli.run("dictionary", "train", "--size", "4096"))
    assert 1000 < said["bytes"] <= 4096 and said["posts"] + said["others"] == 600 and said["authors"] == AUTHORS
    assert said["with_it"] * 1.5 < said["by_itself"] <= said["event_bytes"]
    name = said["id"]
    listed = json.loads(cli.run("dictionary", "list").splitlines()[-1])
    assert (listed["id"], listed["bytes"], listed["posts"]) == (name, said["bytes"], said["posts"])

    shown = cli.run("dictionary", "show", name)
    assert longest_part(OF_FIVE, shown.encode()) > 20 and longest_part("coffee", shown.encode()) > 4
    gateway = servers.gateway(redis)
    eventually(lambda: gateway.get(f"/v1/dictionaries/{name}").status == 200, "the gateway has it")
    data = gateway.get(f"/v1/dictionaries/{name}").body
    assert zstandard.ZstdCompressionDict(data).dict_id() == name
    raw = subprocess.run([programs.sluice(), "dictionary", "show", "--raw", str(name)], capture_output=True, check=True,
                         env=cli.environment).stdout
    assert raw == data
    for kept in (SECRET, OF_FOUR, DELETED, HIDDEN):
        assert longest_part(kept, data) < 6, kept

    readers = [Collector(gateway.stream("/v1/stream/firehose", t)) for t in ("ndjson", "ndjson+dictionary",
                                                                           "raw-websocket+dictionary")]
    for number in range(5):
        post = cli.run("post", "--user", "u7", f"{OF_FIVE}, the {number}th time")
    for reader in readers:
        reader.wait_id(post)
    raws = [[m.raw if isinstance(m.raw, bytes) else m.raw.encode() for m in reader.messages] for reader in readers]
    assert raws[0] == raws[1] == raws[2]
    assert 1 <= readers[1].stream.decoder.with_dictionary <= 5  # what was gathered is one frame
    assert readers[2].stream.decoder.with_dictionary == 5

    cli.run("dictionary", "withdraw", name)
    cli.run("dictionary", "withdraw", name)  # the second time it does nothing
    assert "withdrawn_at" in json.loads(cli.run("dictionary", "list").splitlines()[-1])
    assert "or it was withdrawn" in refused(cli, "dictionary", "show", name)
    eventually(lambda: gateway.get(f"/v1/dictionaries/{name}").status == 410, "nobody is given it any more")
    assert zstd.listed(gateway)[name]["state"] == "withdrawn"
    gateway.stop()


def test_what_cannot_be_done_is_said(world, servers):
    _, cli = world
    assert "from 32768 to 65535" in refused(cli, "dictionary", "show", "7", status=2)
    assert "an ID is needed" in refused(cli, "dictionary", "withdraw", status=2)
    assert "there is no dictionary 33000" in refused(cli, "dictionary", "withdraw", "33000")
    assert "--size is at least 1024" in refused(cli, "dictionary", "train", "--size", "100", status=2)
    empty = Cli(servers.redis())
    assert "no string in these posts has 5 authors" in refused(empty, "dictionary", "train")
    made = [json.loads(cli.run("dictionary", "train", "--size", "1024", "--posts", "200"))["id"] for _ in range(8)]
    assert len(set(made)) == 8
    assert "there are 8 dictionaries; withdraw one first" in refused(cli, "dictionary", "train", "--size", "1024")
    for name in made:
        cli.run("dictionary", "withdraw", name)
