"""`sluice top`: a screen on a terminal, lines otherwise, whatever happens to the server."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest

from harness import events, programs
from harness.gateway import sanitizer_report
from harness.ports import steady_port
from harness.waiting import Deadline, eventually

ALTERNATE, USUAL = "\x1b[?1049h", "\x1b[?1049l"


def url(gateway):
    return f"http://127.0.0.1:{gateway.port}"


def set_size(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Terminal:
    """`sluice top` on a pseudoterminal."""

    def __init__(self, *arguments, rows=60, columns=100, **env):
        self.master, self.slave = pty.openpty()
        set_size(self.master, rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.shown = ""
        self.process = subprocess.Popen(
            [programs.sluice(), "top", "--interval", "0.5", *arguments],
            env=programs.environment(**{"TERM": "xterm", "NO_COLOR": "", **env}),
            stdin=self.slave, stdout=self.slave, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def until(self, pattern):
        """Reads until the pattern was shown, and discards everything up to its end."""
        deadline = Deadline(what=f"the screen shows {pattern}")
        while not (found := re.search(pattern, self.shown, re.S)):
            deadline.wait_readable(self.master)
            self.shown += os.read(self.master, 65536).decode()
        self.shown = self.shown[found.end():]
        return found

    def press(self, keys):
        os.write(self.master, keys)

    def ended(self, status=0):
        """Expects its end, and that the terminal is restored."""
        self.until(re.escape(USUAL))
        said = self.process.communicate(timeout=Deadline().seconds)[1].decode()
        assert not sanitizer_report(said) and self.process.returncode == status, said
        assert termios.tcgetattr(self.slave) == self.before
        return said

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal():
    terminals = []

    def start(*arguments, **more):
        terminals.append(Terminal(*arguments, **more))
        return terminals[-1]
    yield start
    for terminal in terminals:
        terminal.close()


@pytest.mark.parametrize("end", [b"q", b"\x03", signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_terminal_is_given_back_as_it_was(gateway, terminal, end):
    top = terminal("--url", url(gateway))
    top.until(re.escape(ALTERNATE))
    top.until(f"sluiced [^ ]+ at {url(gateway)}, up .*, \x1b\\[32mall well")
    assert not termios.tcgetattr(top.slave)[3] & (termios.ICANON | termios.ECHO)
    if isinstance(end, bytes):
        top.press(b"x" + end)
    else:
        top.process.send_signal(end)
    assert not top.ended()


def test_what_happens_is_seen(gateway, redis, terminal):
    top = terminal("--url", url(gateway))
    with gateway.stream("/v1/stream/firehose", "sse") as stream:
        top.until(r"\nfirehose +0 +0 +0 +1 +1\D")
        redis.publish(events.dump(events.post(1, "one")))
        stream.next()
        top.until(r"events in     (?!0 /s|-)[\d.]+ /s")
    top.until(r"\nfirehose +0 +0 +0 +0 +0\D")
    top.press(b"q")
    top.ended()


def test_the_screen_has_the_size_of_the_window(gateway, terminal):
    top = terminal("--url", url(gateway), rows=4)
    top.until("all well")
    screen = top.until(r"\x1b\[H(.*?)\x1b\[J")[1]
    assert screen.count("\n") == 3 and "catching up" not in screen
    set_size(top.master, 40, 100)
    top.until("catching up.*since the start")
    top.press(b"q")
    top.ended()


def test_all_parts_fit_a_window_of_the_usual_size(gateway, terminal):
    """A long list of streams does not displace slow clients, the workers and incidents."""
    streams = [gateway.stream(f"/v1/stream/{path}", transport) for path in ("firehose", "sample?percent=1")
               for transport in ("ndjson", "sse", "websocket")]
    top = terminal("--url", url(gateway), rows=24, columns=80)
    top.until(r"\nall +2 +2 +0 +2 +6\D")
    screen = top.until(r"\x1b\[H(.*?)\x1b\[J")[1]
    lines = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", screen).replace("\r", "").split("\n")
    assert len(lines) <= 24 and max(map(len, lines)) <= 80, lines
    for said in ("all well", "all streams keep up", "worker ", "since the start"):
        assert any(said in line for line in lines), (said, lines)
    set_size(top.master, 24, 170)
    top.until(r"all well[^\n]*all streams keep up")  # now in the same line
    for stream in streams:
        stream.close()
    top.press(b"q")
    top.ended()


def test_colors_are_left_out_where_they_are_not_wanted(gateway, terminal):
    for value, expected in ("1", "all well"), ("", "\x1b\\[32mall well"):
        top = terminal("--url", url(gateway), NO_COLOR=value)
        screen = top.until(f"\x1b\\[1msluiced [^\n]*, {expected}.*?\x1b\\[J")[0]
        assert ("\x1b[32m" in screen) == (value == "")
        top.press(b"q")
        top.ended()


def test_terminal_that_takes_no_orders_gets_lines(gateway, terminal):
    top = terminal("--url", url(gateway), TERM="dumb")
    assert "\x1b" not in top.until("^ts=[^\n]*cpu_us_per_delivery=[^\n]*\n")[0]


def test_stopped_it_gives_the_terminal_back_until_it_goes_on(gateway, terminal):
    top = terminal("--url", url(gateway))
    top.until("all well")
    top.press(b"\x1a")
    top.until(re.escape(USUAL))
    eventually(lambda: open(f"/proc/{top.process.pid}/stat", encoding="ascii").read()
               .rsplit(")", 1)[1].split()[0] in "TS", "it stands still or goes on")
    top.process.send_signal(signal.SIGCONT)
    top.until(re.escape(ALTERNATE) + ".*all well")
    top.press(b"q")
    top.ended()


def test_a_server_that_goes_away_is_shown_and_seen_again(servers, terminal):
    redis = servers.redis()
    gateway = servers.gateway(redis, listen=f"127.0.0.1:{steady_port()}")
    top = terminal("--url", url(gateway))
    top.until("all well")
    gateway.stop()
    top.until(f"\x1b\\[7mno answer from {url(gateway)}: .*; trying again")
    top.until("all well")  # the last known state
    servers.gateway(redis, listen=gateway.listen)
    top.until(r"\x1b\[H\x1b\[1msluiced [^\n]*all well")
    top.press(b"q")
    top.ended()


def test_lines_where_there_is_no_terminal(gateway, cli_for):
    with gateway.stream("/v1/stream/sample?percent=100", "ndjson"):
        program = cli_for(None).start("top", "--url", url(gateway), "--interval", "0.5")
        lines = [dict(pair.split("=", 1) for pair in program.line().split(" ")) for _ in range(2)]
        program.stop(statuses=(-signal.SIGTERM,))
    assert [line["streams"] for line in lines] == ["1", "1"]
    assert lines[0]["ts"] < lines[1]["ts"]
    assert lines[0]["events_in"] == "0" and lines[0]["matches_per_event"] == "-"
    assert "memory_bytes" in lines[0] and "cpu_us_per_delivery" in lines[0]


def test_lines_go_on_when_a_server_comes_late(servers, cli_for):
    port = steady_port()
    program = cli_for(None).start("top", "--url", f"http://127.0.0.1:{port}", "--interval", "0.5")
    Deadline().wait_readable(program.process.stderr)
    servers.gateway(servers.redis(), listen=f"127.0.0.1:{port}")
    assert program.line().startswith("ts=")
    said = program.stop(statuses=(-signal.SIGTERM,))
    assert said.count("trying again") == 1


def test_reader_that_has_seen_enough_ends_it(gateway, cli_for):
    program = cli_for(None).start("top", "--url", url(gateway), "--interval", "0.5")
    program.line()
    program.process.stdout.close()
    assert program.process.wait(Deadline().seconds) == 0
    program.process.stderr.close()


def test_once_prints_a_page(gateway, cli):
    page = cli.run("top", "--once", "--url", url(gateway), "--interval", "0.5")
    assert "\x1b" not in page and "all well" in page.splitlines()[0]
    for said in ("events in     0 /s", "Redis", "memory", "all streams keep up", "since the start"):
        assert said in page
    worker = re.search(r"^0 +ready +[\d-]+.* 0$", page, re.M)
    assert worker, page


def test_whose_the_slowest_clients_are_is_shown_to_operators_only(gateway, redis, cli):
    stalled = gateway.stream("/v1/stream/firehose", "ndjson", receive_buffer=4096,
                             token=gateway.token(sub="slow one"))
    number = 0

    def is_slow():
        nonlocal number
        number += 1
        redis.publish(events.dump(events.post(number, "a long post " * 4000)))
        return gateway.get("/status.json").json["slowest"]
    eventually(is_slow, "it is on the list")
    once = ("top", "--once", "--url", url(gateway), "--interval", "0.5")
    page = cli.run(*once)
    assert re.search(r"firehose/ndjson +\(not shown\)", page), page
    assert "scope admin" in page and "slow one" not in page
    page = cli.run(*once, "--token", gateway.token(scope="admin"))
    assert re.search(r"firehose/ndjson +slow one", page), page
    assert "scope admin" not in page
    stalled.close()


def test_a_token_that_is_refused_ends_it(gateway, cli, terminal):
    cli.run("top", "--url", url(gateway), "--token", "no.good.token", status=1)
    assert "status 401" in cli.done.stderr and not cli.done.stdout
    top = terminal("--url", url(gateway), "--token", "no.good.token")
    assert "status 401" in top.ended(1)


def test_once_fails_without_a_server(cli):
    port = steady_port()
    cli.run("top", "--once", "--url", f"http://127.0.0.1:{port}", status=1)
    assert "no answer" in cli.done.stderr and not cli.done.stdout


def test_another_server_is_reported(gateway, cli):
    cli.run("top", "--once", "--url", url(gateway) + "/readyz?", status=1)
    assert cli.done.stderr


@pytest.mark.parametrize("arguments", [
    ["--interval", "0.1"], ["--interval", "x"], ["--interval", "nan"], ["--interval", "4000"],
    ["--url", "ftp://127.0.0.1"], ["--token", "two words"], ["now"]])
def test_wrong_usage(cli, arguments):
    cli.run("top", *arguments, status=2)
    assert cli.done.stderr and not cli.done.stdout
