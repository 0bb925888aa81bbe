"""The examples, run as their READMEs say, and the page in a real browser."""

import asyncio
import json
import pathlib
import shutil
import signal
import subprocess
import threading
import urllib.parse

import pytest
import websockets

from harness import events, programs
from harness.ports import steady_port
from harness.program import Program
from harness.streams import Collector
from harness.waiting import Deadline

FIREHOSE = "/v1/stream/firehose"
EXAMPLES = programs.SOURCE / "examples"


def listen(gateway, *command, env=None):
    """Starts an example that opens a stream; returns it when the stream is open."""
    before = gateway.metrics()["sluice_streams"]
    program = Program(*command, env=env)
    deadline = Deadline(what="the example opens its stream")
    while gateway.metrics()["sluice_streams"] == before:
        deadline.left()
        assert program.process.poll() is None, program.process.stderr.read()
    return program


def test_firehose_consumer(gateway, redis, publish):
    consumer = listen(gateway, programs.example("firehose-consumer"),
                      f"http://127.0.0.1:{gateway.port}{FIREHOSE}", gateway.token())
    post = events.post(1, "hello, 世界", login="ada")
    publish(events.dump(post))
    publish(events.delete(2, post))
    assert consumer.line() == "+ 1 ada: hello, 世界"
    assert consumer.line() == "- 1"
    consumer.stop()


def test_firehose_consumer_comes_back_and_misses_nothing(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis, listen=f"127.0.0.1:{steady_port()}")
    url = f"http://127.0.0.1:{gateway.port}{FIREHOSE}"
    consumer = listen(gateway, programs.example("firehose-consumer"), url, gateway.token())
    first = cli.run("post", "--user", "ada", "before")
    assert consumer.line() == f"+ {first} ada: before"
    gateway.stop()
    second = cli.run("post", "--user", "ada", "meanwhile")
    servers.gateway(redis, listen=gateway.listen)
    assert consumer.line() == f"+ {second} ada: meanwhile"
    third = cli.run("post", "--user", "ada", "after")
    assert consumer.line() == f"+ {third} ada: after"
    assert "draining" in consumer.stop()


def test_firehose_consumer_does_not_come_back_after_a_refusal(gateway):
    consumer = Program(programs.example("firehose-consumer"),
                       f"http://127.0.0.1:{gateway.port}{FIREHOSE}", "not a token")
    assert "401" in consumer.ended(1)


def test_analytics(gateway, redis, publish):
    analytics = listen(gateway, programs.example("analytics"), "--every", "2", "--rounds", "1",
                       f"127.0.0.1:{gateway.port}", gateway.token())
    for number, (lang, text) in enumerate([
            ("en", "#Tea and #tea"), ("zh", "#周末去哪儿# 去爬山"), ("en", "#tea, no # tag"), ("zh", "喝茶"),
            ("ar", "#كتب"), (None, "nothing")], 1):
        publish(events.dump(events.post(number, text, **({"lang": lang} if lang else {}))))
    assert analytics.line().endswith("  6 posts")
    languages, hashtags = analytics.line().split(), analytics.line().split()
    assert dict(zip(languages[1::2], languages[2::2])) == {"en": "2", "zh": "2", "ar": "1", "und": "1"}
    assert dict(zip(hashtags[1::2], hashtags[2::2])) == {"tea": "3", "周末去哪儿": "1", "كتب": "1"}
    analytics.ended()


TERMINAL_DASHBOARD = ("/usr/bin/python3", "-B", EXAMPLES / "terminal-dashboard" / "dashboard.py")
WITH_CLIENT = programs.environment(PYTHONPATH=programs.SOURCE / "clients" / "python" / "src")


def test_terminal_dashboard_says_what_is_wrong(gateway):
    """A parameter that the server refuses, and too few arguments."""
    url = f"http://127.0.0.1:{gateway.port}"
    refused = Program(*TERMINAL_DASHBOARD, url, gateway.token(), "bucket=7s", env=WITH_CLIENT).ended(1)
    assert refused.startswith("dashboard: ") and "bucket" in refused and "Traceback" not in refused
    assert "PARAMETER=VALUE" in Program(*TERMINAL_DASHBOARD, url, env=WITH_CLIENT).ended(1)


def test_terminal_dashboard_has_forty_lines():
    assert len(TERMINAL_DASHBOARD[-1].read_text().splitlines()) <= 40


def test_terminal_dashboard(servers, cli_for):
    """From the past and live, across a restart of the server: the sum is the number of posts."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    cli.run("post", "--user", "ada", "--lang", "en", "tea before")
    gateway = servers.gateway(redis, listen=f"127.0.0.1:{steady_port()}")
    dashboard = listen(gateway, *TERMINAL_DASHBOARD, f"http://127.0.0.1:{gateway.port}", gateway.token(), "bucket=1s",
                       "since=-1m", "track=tea", env=WITH_CLIENT)
    posts, times = 0, []

    def read_until(count):
        nonlocal posts
        deadline = Deadline(what=f"{count} posts are counted")
        while posts < count:
            deadline.left()
            words = dashboard.line().split()
            times.append(words[0])
            posts += int(words[words.index("posts") - 1])
        assert posts == count
        assert words[-2:] == ["en", words[words.index("posts") - 1]]

    read_until(1)
    gateway.stop()
    cli.run("post", "--user", "ada", "--lang", "en", "tea meanwhile")
    servers.gateway(redis, listen=gateway.listen)
    read_until(2)
    cli.run("post", "--user", "ada", "--lang", "en", "tea after")
    read_until(3)
    assert len(times) == len(set(times)), "a bucket was told twice"
    dashboard.stop(statuses=(-signal.SIGTERM,))


@pytest.mark.one_redis("it comes to a unix socket")
def test_publish_only(gateway, redis):
    with gateway.stream("/v1/stream/filter?track=python") as stream:
        publisher = Program("/usr/bin/python3", "-B", EXAMPLES / "publish-only" / "publish.py",
                            "--redis", f"unix://{redis.socket}", stdin=subprocess.PIPE)
        publisher.process.stdin.write(b"Hello from Python\n")
        publisher.process.stdin.close()
        publisher.process.stdin = None
        assert publisher.line().endswith("heard by 1")
        publisher.ended()
        assert stream.next()["post"]["text"] == "Hello from Python"


@pytest.mark.one_redis("it comes to a unix socket")
def test_shell_line_of_the_readme(gateway, redis):
    if not shutil.which("redis-cli"):
        pytest.skip("no redis-cli")
    readme = (EXAMPLES / "publish-only" / "README.md").read_text()
    line = next(line for line in readme.splitlines() if "redis-cli" in line and "PUBLISH" in line)
    with gateway.stream("/v1/stream/filter?track=shell") as stream:
        subprocess.run(line.strip().replace("/path/to/redis.sock", str(redis.socket)), shell=True,
                       check=True, stdout=subprocess.DEVNULL)
        assert stream.next()["post"]["text"] == "Hello from a shell"


def test_demo_producer(servers):
    redis = servers.redis()
    gateway = servers.gateway(redis)
    heard = Collector(gateway.stream(FIREHOSE + "?types=post,delete,follow,unfollow"))
    Program(programs.example("demo-producer"), "--redis", redis.url, "--per-minute", "1000000",
            "--count", "1000", EXAMPLES / "demo-producer" / "posts.jsonl").ended()
    heard.wait(lambda ms: {m.type for m in ms} == {"post", "delete", "follow", "unfollow"}, "all kinds")
    log = redis.log()
    assert len({e["post"]["lang"] for e in log if e["type"] == "post"}) >= 8
    last = [e["id"] for e in log if e["type"] in ("post", "delete", "follow", "unfollow")][-1]
    heard.wait_id(last)
    assert any("reply_to" in m["post"] for m in heard.messages if m.type == "post")
    # README.md listens for these words, so they must come within seconds at 90 actions a minute.
    with gateway.stream(f"/v1/stream/filter?track=coffee,tea&types=post&since=-1h&until={last}") as stream:
        matching = stream.until(lambda message: message.type == "disconnect")[:-1]
    assert len(matching) * 8 > sum(event["type"] == "post" for event in log)
    # A second run finds the users of the first.
    Program(programs.example("demo-producer"), "--redis", redis.url, "--per-minute", "1000000",
            "--count", "10", EXAMPLES / "demo-producer" / "posts.jsonl").ended()


# The page, in a browser that is controlled over its debugging protocol.

class Browser:
    def __init__(self, folder):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if not program:
            pytest.skip("no chromium")
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", f"--user-data-dir={folder}", "--remote-debugging-port=0", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline, said = Deadline(60, "chromium starts"), b""
        while b"DevTools listening on " not in said or not said.endswith(b"\n"):
            deadline.wait_readable(self.process.stderr)
            some = self.process.stderr.read1(65536)
            if not some:
                pytest.skip(f"chromium does not run here: {said[-500:]!r}")
            said += some
        self.url = said.split(b"DevTools listening on ")[1].split()[0].decode()

    def evaluate(self, page, script):
        """Opens `page` and returns the result of the promise `script` in it."""
        return asyncio.run(self._evaluate(page, script))

    async def _evaluate(self, page, script):
        async with websockets.connect(self.url, max_size=None, ping_interval=None) as socket:
            async def call(method, session=None, **parameters):
                message = {"id": 1, "method": method, "params": parameters}
                if session:
                    message["sessionId"] = session
                await socket.send(json.dumps(message))
                while (answer := json.loads(await socket.recv())).get("id") != 1:
                    pass
                return answer.get("result")
            target = (await call("Target.createTarget", url=page))["targetId"]
            session = (await call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
            answer = None
            while answer is None:  # the blank page in which the promise began was replaced by ours
                answer = await call("Runtime.evaluate", session, expression=script,
                                    awaitPromise=True, returnByValue=True)
            return answer["result"].get("value")

    def stop(self):
        self.process.terminate()
        self.process.communicate()


@pytest.fixture
def browser(tmp_path):
    browser = Browser(tmp_path / "chromium")
    yield browser
    browser.stop()


WHEN_SHOWN = """new Promise((done) => {
  const look = () => {
    const texts = [...document.querySelectorAll('article')].map((a) => `${a.className}|${a.textContent}`);
    if (texts.some((text) => text.includes('the end'))) done(texts);
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
  look();
})"""


def test_page_in_a_browser(servers, redis, browser):
    """EventSource: the page shows posts, and strikes out deleted ones."""
    gateway = servers.gateway(redis, "--dev")
    fragment = urllib.parse.urlencode({"url": f"http://127.0.0.1:{gateway.port}",
                                       "token": gateway.token(), "track": "kite"})
    page = pathlib.Path(EXAMPLES / "live-page" / "index.html").as_uri() + "#" + fragment

    def say():
        deadline = Deadline(60, "the page listens")
        while gateway.metrics()["sluice_streams"] == 0:
            deadline.left()
        kite = events.post(1, "a red kite", login="ada")
        redis.publish(events.dump(kite))
        redis.publish(events.dump(events.post(2, "not shown")))
        redis.publish(events.dump(events.post(3, "a <b>blue</b> kite 風箏", login="bob")))
        redis.publish(events.dump(events.delete(4, kite)))
        redis.publish(events.dump(events.post(5, "kite, the end", login="cid")))
    speaker = threading.Thread(target=say)
    speaker.start()
    shown = browser.evaluate(page, WHEN_SHOWN)
    speaker.join()
    assert shown == ["|cidkite, the end", "|boba <b>blue</b> kite 風箏", "deleted|ada(taken back)"]


def run_core_c(socket, *arguments):
    return subprocess.run([programs.example("core-c"), socket, *arguments], timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.one_redis("it comes to a unix socket")
def test_core_c(servers):
    redis = servers.redis()
    ids = []
    for text in ("first", "second"):
        done = run_core_c(redis.socket, "ada", text)
        assert done.returncode == 0, done.stderr
        ids.append(int(done.stdout))
    assert ids == sorted(ids)
    assert [event["post"]["text"] for event in redis.log()] == ["first", "second"]


def test_profile(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    for login in ("ada", "bob", "carl", "dora"):
        cli.run("user", "add", login, "--name", login.title())
    for login in ("bob", "carl", "dora"):
        cli.run("follow", login, "ada")
    post = cli.run("post", "--user", "ada", "first")
    cli.run("post", "--user", "bob", "--reply-to", post, "re")
    cli.run("like", "--user", "bob", post)
    cli.run("worker", "--until-empty", "--lease-ms", "50")

    def profile(*arguments):
        return subprocess.run([programs.example("profile"), *arguments], timeout=60, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done = profile(redis.url, "ADA")
    assert done.returncode == 0, done.stderr
    head, counters, first, *followers = done.stdout.splitlines()
    assert head.startswith("Ada (@ada), since 20")
    assert counters == "1 posts, 3 followers, follows 0"
    assert first.startswith("1 likes, 1 comments: {") and '"text":"first"' in first
    assert set(followers) == {"followed by @bob", "followed by @carl", "followed by @dora"}
    for arguments in ([redis.url, "nobody"], [redis.url, "a b"], ["nowhere", "ada"]):
        done = profile(*arguments)
        assert done.returncode == 1 and done.stderr.startswith("profile: "), done.stderr
    assert profile(redis.url).returncode == 2


def test_home_timeline(servers, cli_for):
    redis = servers.redis()
    cli = cli_for(redis)
    for login in ("ada", "bob", "carl", "dora"):  # in several shards, if there are several
        cli.run("user", "add", login, "--name", login.title())
    cli.run("follow", "ada", "bob", "carl", "dora")

    def post(count):
        """Creates posts; returns their texts, newest first."""
        made = {}
        for number in range(count):
            login = ("ada", "bob", "carl", "dora")[number % 4]
            text = f"{login} says {number} of {count}"
            made[int(cli.run("post", "--user", login, text))] = text
        cli.run("worker", "--until-empty", "--lease-ms", "50")
        return [made[number] for number in sorted(made, reverse=True)]

    def shown(count):
        lines = [program.line() for _ in range(count)]
        assert all(line.startswith("0 likes, 0 comments: {") for line in lines)
        return [json.loads(line.partition(": ")[2])["text"] for line in lines]
    old = post(15)
    program = Program(programs.example("home-timeline"), redis.url, "ADA", stdin=subprocess.PIPE)
    assert shown(10) == old[:10]
    program.process.stdin.write(b"more\n")
    assert shown(5) == old[10:]
    program.process.stdin.write(b"more\nnew\nnever\n")
    assert program.line() == "That is all."
    assert program.line() == "more or new?"
    new = post(13)  # more than a page
    program.process.stdin.write(b"new\n")
    assert shown(13) == new
    program.process.stdin.close()
    program.process.stdin = None
    assert program.ended(0) == ""
    for arguments, status in (([redis.url, "nobody"], 1), (["nowhere", "ada"], 1), ([redis.url], 2)):
        done = subprocess.run([programs.example("home-timeline"), *arguments], timeout=60, text=True,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert done.returncode == status and "home-timeline" in done.stderr


@pytest.mark.one_redis("it comes to a unix socket")
def test_core_c_says_what_is_wrong(servers):
    redis = servers.redis()
    for socket, login, why in ((redis.socket, "a b", b"U+0020"), ("/nonexistent", "ada", b"connect")):
        done = run_core_c(socket, login, "text")
        assert done.returncode == 1 and why in done.stderr and b"Sanitizer" not in done.stderr
    redis.client.set("sluice:{0}:meta", "x")
    done = run_core_c(redis.socket, "ada", "text")
    assert done.returncode == 1 and b"WRONGTYPE" in done.stderr
