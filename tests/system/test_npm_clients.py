"""Other people's clients from npm, unmodified, with the dialects that they were written for. Their programs are in
tests/clients/npm, and next to the packages in the build folder named by SLUICE_NPM_CLIENTS."""

import json
import os
import pathlib
import queue
import subprocess
import threading

import pytest

from harness import events
from harness.cli import Cli
from harness.ports import steady_port
from harness.waiting import TIMEOUT_FACTOR, eventually

NODE, FOLDER = os.environ.get("SLUICE_NODE", "node"), os.environ.get("SLUICE_NPM_CLIENTS")
JETSTREAM = ["skyware-jetstream", "atcute-jetstream"]
CLIENTS = ["twit", "twit-application", "twitter-api-v2", "twitter-api-v2-rules", "masto", "megalodon", *JETSTREAM]
NEED_NODE_20 = ["megalodon", *JETSTREAM]
HAS_NO_DELETIONS = ["twitter-api-v2-rules"]
SLOW_TO_RETURN = ["megalodon", "twit", "twit-application"]  # they retry after 10 s, or 90 s, if the server is not up yet

if not FOLDER or not pathlib.Path(FOLDER, "node_modules").is_dir():
    pytest.skip("SLUICE_NPM_CLIENTS names no folder with the packages", allow_module_level=True)


def node_version():
    said = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.removeprefix("v").split(".")[0])


class Client:
    def __init__(self, name, url, token):
        environment = {**os.environ, "URL": url, "TOKEN": token, "NODE_NO_WARNINGS": "1"}
        self.told, self.errors = queue.Queue(), []
        self.process = subprocess.Popen([NODE, f"{name}.mjs"], cwd=FOLDER, env=environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.threads = [threading.Thread(target=self._read), threading.Thread(target=self._complain)]
        for thread in self.threads:
            thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.told.put(json.loads(line))

    def _complain(self):
        self.errors += self.process.stderr

    def until(self, member):
        """Returns the next message that has this member."""
        while True:
            try:
                message = self.told.get(timeout=60 * TIMEOUT_FACTOR)
            except queue.Empty:
                raise AssertionError(f"no {member}: {''.join(self.errors)}") from None
            if member in message:
                return message

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture(scope="module")
def gateway(module_servers, redis):
    return module_servers.gateway(redis, "--dialects", "twitter1,mastodon,twitter2,jetstream",
                                  listen=f"127.0.0.1:{steady_port()}")


def skip_without_node(name):
    if name in NEED_NODE_20 and node_version() < 20:
        pytest.skip(f"{name} needs Node 20")


@pytest.fixture(params=CLIENTS)
def client(request, gateway):
    skip_without_node(request.param)
    with Client(request.param, gateway.url, gateway.token()) as client:
        client.name = request.param
        yield client


def first_post(client, publish, numbers):
    """A client does not report when it is connected: posts until it has received one."""
    def one():
        publish(events.post(next(numbers), "a cup of #tea", login="ada"))
        try:
            message = client.told.get(timeout=0.5)
        except queue.Empty:
            assert client.process.poll() is None, "".join(client.errors)
            return None
        assert "refused" not in message, message
        return message if "post" in message else None
    return eventually(one, "a post to arrive", 90)


@pytest.fixture(scope="module")
def numbers():
    return iter(range(114677036877000, 114677036879000))


def test_posts_and_deletions_arrive_and_it_comes_back(client, gateway, publish, numbers):
    post = first_post(client, publish, numbers)
    assert post["user"] in ("ada", "did:sluice:1") and "a cup of" in post["text"] and "tea" in post["text"]
    assert post.get("tags", ["hot"]) == ["hot"]
    if client.name not in HAS_NO_DELETIONS:
        publish(events.delete(next(numbers), events.post(int(post["post"]), "a cup of #tea", login="ada")))
        assert client.until("deleted")["deleted"] == post["post"]
    if client.name in SLOW_TO_RETURN:
        return
    gateway.stop()
    gateway.start()
    while not client.told.empty():
        client.told.get()
    assert int(first_post(client, publish, numbers)["post"]) > int(post["post"])


@pytest.mark.parametrize("name", ["twit", "twitter-api-v2"])
def test_a_bad_token_is_told_to_the_program(name, gateway):
    with Client(name, gateway.url, "x.y.z") as client:
        assert client.until("refused")["refused"] == 401


@pytest.mark.parametrize("name", JETSTREAM)
def test_a_cursor_misses_nothing_and_repeats_nothing(name, gateway, redis, publish, numbers):
    skip_without_node(name)
    cli = Cli(redis)
    login = f"user{next(numbers)}"
    cli.run("user", "add", login)
    with Client(name, gateway.url, gateway.token()) as client:
        first_post(client, publish, numbers)
        ids = [cli.run("post", "--user", login, f"{n}") for n in range(3)]
        seen = [client.until("post")["post"] for _ in range(3)]
        while seen[0] != ids[0]:  # those published meanwhile
            seen = [*seen[1:], client.until("post")["post"]]
        gateway.stop()
        ids += [cli.run("post", "--user", login, f"{n}") for n in range(3)]
        gateway.start()
        ids += [cli.run("post", "--user", login, "the last")]
        seen += [client.until("post")["post"] for _ in ids[3:]]
        assert seen == ids
