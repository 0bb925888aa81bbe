"""The Python client with real servers: nothing lost, nothing twice; its types, its wheel."""

import asyncio
import pathlib
import subprocess
import sys
import threading
import time
import zipfile

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = SOURCE / "clients/python"
sys.path.insert(0, str(PACKAGE / "src"))

import sluice_stream  # noqa: E402
import sluice_stream.aio  # noqa: E402
from harness.cli import Cli  # noqa: E402
from harness.ports import steady_port  # noqa: E402
from harness.waiting import Deadline, eventually  # noqa: E402

QUICK = sluice_stream.Options(wait_scale=0.05)


@pytest.fixture(scope="module")
def ada(module_servers, redis):
    Cli(redis).run("user", "add", "ada", "--name", "Ada")
    return "ada"


class Reader:
    """Reads a stream in a thread; `ids` are those of its posts."""

    def __init__(self, client, **parameters):
        self.ids, self.error = [], None
        self._thread = threading.Thread(target=self._read, args=(client, parameters), daemon=True)
        self._thread.start()

    def _read(self, client, parameters):
        try:
            for message in client.firehose(**parameters):
                if message["type"] == "post":
                    self.ids.append(message["id"])
        except sluice_stream.SluiceError as error:
            self.error = error

    def wait(self, wanted):
        eventually(lambda: self.ids and self.ids[-1] == wanted, "the last post", 60)

    def join(self):
        self._thread.join(60)
        assert not self._thread.is_alive()


class AsyncReader(Reader):
    """The same with a client for asyncio, which `make_client` makes in the reader's thread."""

    def _read(self, make_client, parameters):
        asyncio.run(self._read_all(make_client, parameters))

    async def _read_all(self, make_client, parameters):
        self._loop = asyncio.get_running_loop()
        async with make_client() as self._client:
            async for message in self._client.firehose(**parameters):
                self.ids.append(message["id"])

    def close(self):
        asyncio.run_coroutine_threadsafe(self._client.close(), self._loop)
        self.join()


def posts(redis, ada, count):
    cli = Cli(redis)
    return [cli.run("post", "--user", ada, f"number {i}") for i in range(count)]


def test_it_goes_on_through_restarts(module_servers, redis, ada, tmp_path):
    first = posts(redis, ada, 1)[0]
    gateway = module_servers.gateway(redis, "--listen", f"127.0.0.1:{steady_port()}")
    store = sluice_stream.FileStore(tmp_path)
    with sluice_stream.Client(f"http://127.0.0.1:{gateway.port}", gateway.token, QUICK) as client:
        reader = Reader(client, since=first, store=store, name="all")
        ids = posts(redis, ada, 5)
        reader.wait(ids[-1])
        gateway.stop()
        ids += posts(redis, ada, 5)  # while nobody is connected
        gateway.start()
        reader.wait(ids[-1])
    reader.join()
    assert reader.ids == ids
    more = posts(redis, ada, 2)
    with sluice_stream.Client(f"http://127.0.0.1:{gateway.port}", gateway.token(), QUICK) as client:
        again = Reader(client, store=store, name="all")  # another program, later
        again.wait(more[-1])
    assert again.ids == more


@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_asyncio_goes_on_through_restarts_over_tls(module_servers, redis, ada, certificate, transport):
    first = posts(redis, ada, 1)[0]
    gateway = module_servers.gateway(redis, "--listen", f"127.0.0.1:{steady_port()}", certificate=certificate)

    def make_client():
        return sluice_stream.aio.Client(gateway.url, gateway.token, QUICK, certificate.context, transport)
    reader = AsyncReader(make_client, since=first)
    ids = posts(redis, ada, 5)
    reader.wait(ids[-1])
    gateway.stop()
    ids += posts(redis, ada, 5)  # while nobody listens
    gateway.start()
    reader.wait(ids[-1])
    reader.close()
    assert reader.ids == ids


async def _read_filters(gateway, cli, store):
    """Reads until the post that is the last, changing filters in the loop; (text, names) of each."""
    told = []
    async with sluice_stream.aio.Client(gateway.url, gateway.token(), QUICK) as client:
        async with client.filters({"tea": {"track": "tea"}, "cake": {"track": ["cake", "scone"]}}, store=store, name="it") as stream:
            cli.run("post", "--user", "ada", "tea first")  # it may be before the stream begins
            async for event in stream:
                text = event["post"]["text"]
                told.append((text, [rule["id"] for rule in event["matching_rules"]]))
                if text == "tea first":
                    with pytest.raises(sluice_stream.Refused) as refused:
                        await stream.subscribe("bad", rule="tea (")
                    assert (refused.value.code, refused.value.param, refused.value.at) == ("syntax", "rule", 5)
                    await stream.subscribe("milk", track="milk")
                    await stream.unsubscribe("cake")
                    warnings = await stream.subscribe("tea", track="oolong", language="english")
                    assert [warning["code"] for warning in warnings] == ["unknown_language"]
                    for words in ("tea", "scone", "milk"):
                        cli.run("post", "--user", "ada", words)
                    gateway.stop()
                    cli.run("post", "--user", "ada", "milk, while nobody listens")
                    gateway.start()
                    cli.run("post", "--user", "ada", "milk last")
                if text == "milk last":
                    return told


def test_named_filters_change_while_they_are_read(module_servers, redis, ada, tmp_path):
    gateway = module_servers.gateway(redis, "--listen", f"127.0.0.1:{steady_port()}")
    store = sluice_stream.FileStore(tmp_path)
    store.save("it", posts(redis, ada, 1)[0])
    told = asyncio.run(asyncio.wait_for(_read_filters(gateway, Cli(redis), store), Deadline(60).seconds))
    assert told == [("tea first", ["tea"]), ("milk", ["milk"]), ("milk, while nobody listens", ["milk"]), ("milk last", ["milk"])]


def test_two_servers_give_each_event_once(module_servers, redis, ada):
    first = posts(redis, ada, 1)[0]
    gateways = [module_servers.gateway(redis, "--listen", f"127.0.0.1:{steady_port()}") for _ in range(2)]
    urls = [f"http://127.0.0.1:{gateway.port}" for gateway in gateways]
    with sluice_stream.Client(urls, gateways[0].token(), QUICK) as client:
        reader = Reader(client, since=first)
        ids = posts(redis, ada, 3)
        reader.wait(ids[-1])
        gateways[0].stop()
        ids += posts(redis, ada, 3)
        eventually(lambda: set(ids) <= set(reader.ids), "those of the other server", 60)
        gateways[0].start()
        ids += posts(redis, ada, 3)
        eventually(lambda: set(ids) <= set(reader.ids), "those of both", 60)
    reader.join()
    assert sorted(reader.ids) == sorted(ids)


def test_a_token_that_ends_soon_is_followed_by_another_on_the_same_connection(module_servers, redis, ada):
    first = posts(redis, ada, 1)[0]
    gateway = module_servers.gateway(redis, "--token-warning", "10m")
    tokens = [gateway.token(exp=int(time.time()) + 300), gateway.token(exp=int(time.time()) + 7200)]
    url = f"http://127.0.0.1:{gateway.port}"
    with sluice_stream.Client(url, lambda: tokens.pop(0), QUICK) as client:
        reader = Reader(client, since=first)
        eventually(lambda: not tokens, "the other token was asked for", 60)
        ids = posts(redis, ada, 3)
        reader.wait(ids[-1])
    reader.join()
    assert reader.ids == ids and gateway.metrics()["sluice_streams_opened_total"] == 1


def test_what_the_server_refuses_is_told(gateway):
    with sluice_stream.Client(f"http://127.0.0.1:{gateway.port}", gateway.token()) as client:
        with pytest.raises(sluice_stream.Refused) as refused:
            next(client.filter(locations=[1, 2, 3]))
    assert (refused.value.status, refused.value.code, refused.value.param) == (400, "bad_locations", "locations")


def test_until_ends_it(gateway, redis, ada):
    first, *ids = posts(redis, ada, 4)
    with sluice_stream.Client(f"http://127.0.0.1:{gateway.port}", gateway.token()) as client:
        assert [message["id"] for message in client.firehose(since=first, until=ids[-1])] == ids


def test_types():
    done = subprocess.run(["mypy", "--strict", "--cache-dir", "/dev/null", "src/sluice_stream"], cwd=PACKAGE,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_wheel(tmp_path):
    copy = tmp_path / "package"
    subprocess.run(["cp", "-r", PACKAGE, copy], check=True)
    subprocess.run(["/usr/bin/python3", "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, copy],
                   check=True, capture_output=True)
    wheel, = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"sluice_stream/__init__.py", "sluice_stream/aio.py", "sluice_stream/py.typed"} <= set(names)
