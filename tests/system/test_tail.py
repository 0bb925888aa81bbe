"""`sluice tail` with a server that the test controls."""

import json
import socket
import ssl
import time
import zlib
from urllib.parse import parse_qs

import pytest

from harness.streams import CONTROL
from harness.tls import Certificate
from harness.waiting import Deadline

FOR_GOOD = '{"type":"disconnect","code":"token_revoked","reason":"the token was revoked"}'
COME_BACK = '{"type":"disconnect","code":"draining","reason":"x","cursor":"7","retry_ms":%d}'


def is_control(message):
    return message.get("type") in CONTROL


class Visit:
    """One connection of the client, whose request has been read."""

    gzip = None  # the compressor, after begin(gzip=True)

    def __init__(self, connection):
        self.connection = connection
        connection.settimeout(Deadline().seconds)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head, body = received.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        self.method, self.target, _ = lines[0].split(" ")
        self.headers = {name.lower(): value for name, value in
                        (line.split(": ", 1) for line in lines[1:])}
        while len(body) < int(self.headers.get("content-length", 0)):
            body += self._receive()
        self.form = {name: value for name, (value,) in parse_qs(body.decode()).items()}

    def _receive(self):
        received = self.connection.recv(65536)
        assert received, "the client left"
        return received

    def refuse(self, status, *headers, message="because", **more):
        body = json.dumps({"error": {"code": "x", "message": message, **more}})
        self.connection.sendall("\r\n".join(
            [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", "Connection: close",
             *headers, "", body]).encode())
        self.connection.close()

    def begin(self, gzip=False):
        if gzip:
            self.gzip = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
        self.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                + (b"Content-Encoding: gzip\r\n" if gzip else b"")
                                + b"Transfer-Encoding: chunked\r\n\r\n")
        return self

    def chunk(self, data):
        data = data.encode() if isinstance(data, str) else data
        if self.gzip:
            data = self.gzip.compress(data) + self.gzip.flush(zlib.Z_SYNC_FLUSH)
        return self.raw_chunk(data)

    def raw_chunk(self, data):
        self.connection.sendall(b"%x\r\n%s\r\n" % (len(data), data))
        return self

    def say(self, *lines):
        """Sends each line of JSON as an event of the stream, with its id if it has one."""
        for line in lines:
            message = json.loads(line)
            head = f'id: {message["id"]}\n' if "id" in message and not is_control(message) else ""
            self.chunk(f'{head}event: {message.get("type", "post")}\ndata: {line}\n\n')
        return self

    def end(self):
        if self.gzip:
            self.raw_chunk(self.gzip.flush())
        self.connection.sendall(b"0\r\n\r\n")
        self.connection.close()

    def break_off(self):
        self.connection.close()


class Host:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(Deadline().seconds)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def visit(self):
        return Visit(self.listener.accept()[0])


@pytest.fixture
def host():
    host = Host()
    yield host
    host.listener.close()


@pytest.fixture
def tail(cli_for, host):
    """tail(arguments...) starts it, connected to the host."""
    programs = []

    def start(*arguments, token="secret.to.ken", url=None, **environment):
        cli = cli_for(None)
        cli.environment = {**cli.environment, **environment}
        given = ["--token", token] if token else []
        programs.append(cli.start("tail", "--url", url or host.url, *given, *arguments))
        return programs[-1]

    yield start
    for program in programs:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()
        program.process.stdout.close()
        program.process.stderr.close()


def test_asks_with_a_form_and_a_bearer_token(host, tail):
    program = tail("--track", "coffee & tea,茶", "filter", "--locations", "-1,-2,3,4", "--rule", "a -b",
                   "--follow", "1,@ada", "--language", "en", "--types", "post", "--percent", "50%",
                   "--partition", "1/2", "--since", "2026-11-22")
    visit = host.visit()
    assert (visit.method, visit.target) == ("POST", "/v1/stream/filter")
    assert visit.headers["authorization"] == "Bearer secret.to.ken"
    assert visit.headers["accept"] == "text/event-stream"
    assert visit.headers["content-type"] == "application/x-www-form-urlencoded"
    assert visit.form == {"track": "coffee & tea,茶", "locations": "-1,-2,3,4", "rule": "a -b",
                          "follow": "1,@ada", "language": "en", "types": "post", "percent": "50%",
                          "partition": "1/2", "since": "1795305600000"}
    visit.refuse(401)
    program.ended(1)


def test_lists_are_joined(host, tail):
    program = tail("filter", "--track", "a", "--track", "b,c d", "--follow", "1", "--follow", "@ada",
                   "--locations", "1,2,3,4", "--locations", "5,6,7,8", "--language", "en", "--language", "zh",
                   "--types", "post", "--types", "follow")
    visit = host.visit()
    assert visit.form == {"track": "a,b,c d", "follow": "1,@ada", "locations": "1,2,3,4,5,6,7,8",
                          "language": "en,zh", "types": "post,follow"}
    visit.refuse(401)
    program.ended(1)


@pytest.mark.parametrize("name", ["rule", "percent", "partition", "since", "until", "limit", "url", "token"])
def test_an_option_that_is_not_a_list_may_be_given_once(cli_for, name):
    cli = cli_for(None)
    cli.run("tail", "filter", f"--{name}", "1", f"--{name}", "2", status=2)
    assert f"--{name} is given twice" in cli.done.stderr


@pytest.mark.parametrize("since, ago", [("-1h", 3600), ("90s", 90)])
def test_a_length_of_time_means_the_same_moment_later(host, tail, since, ago):
    now = time.time()
    program = tail("sample", "--since", since, "--until", "+1h")
    first = host.visit()
    first.break_off()
    second = host.visit()
    assert second.form == first.form
    assert abs(int(second.form["since"]) / 1000 - (now - ago)) < 30
    assert abs(int(second.form["until"]) / 1000 - (now + 3600)) < 30
    second.refuse(401)
    program.ended(1)


def test_url_from_the_environment(host, cli_for):
    cli = cli_for(None)
    cli.environment = {**cli.environment, "SLUICE_URL": host.url, "SLUICE_TOKEN": "x"}
    program = cli.start("tail", "sample")
    host.visit().refuse(401)
    program.ended(1)


def test_as_many_as_requested(host, tail):
    program = tail("sample", "--limit", "3")
    visit = host.visit().begin().say('{"id":"1"}').chunk('event: gap\ndata: {"type":"gap"}\n\n')
    visit.say('{"id":"2"}').break_off()
    host.visit().begin().say('{"id":"3"}', '{"id":"4"}')
    assert [program.line() for _ in range(3)] == ['{"id":"1"}', '{"id":"2"}', '{"id":"3"}']
    assert "4" not in program.process.stdout.read().decode()
    program.ended(0)


COMPLETE = '{"type":"disconnect","code":"complete","reason":"all of it has come","cursor":"7"}'


def test_ends_where_it_was_asked_to(host, tail):
    program = tail("sample", "--until", "114677036875776")
    visit = host.visit()
    assert visit.form == {"until": "114677036875776"}
    visit.begin().say('{"id":"1"}').say(COMPLETE).end()
    assert program.line() == '{"id":"1"}'
    assert program.ended(0) == ""


def test_nothing_is_left_to_come(host, tail):
    program = tail("sample", "--until", "114677036875776")
    host.visit().begin().say('{"id":"1"}').break_off()
    visit = host.visit()
    visit.connection.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    visit.connection.close()
    assert program.line() == '{"id":"1"}'
    program.ended(0)


def test_events_for_people(host, tail):
    program = tail("firehose", "--pretty", TZ="UTC-1")
    visit = host.visit().begin()
    user = {"id": "42", "login": "ada", "name": "Ada\nL"}
    at = "2026-11-21T01:02:03.456Z"
    events = [
        {"id": "1", "type": "post", "at": at, "post": {"id": "1", "user": user, "text": "Tea \x1b[2J\nat five",
                                                       "reply_to": {"post": "7"}, "quote_of": {"post": "8"}}},
        {"id": "2", "type": "post", "at": at, "post": {"id": "2", "user": {"id": "9"}, "text": "x"}},
        {"id": "3", "type": "delete", "at": at, "post": {"id": "1", "user": user}},
        {"id": "4", "type": "follow", "at": at, "user": user, "target": {"id": "9", "login": "bob"}},
        {"id": "5", "type": "unfollow", "at": "x", "user": user, "target": {"id": "9", "login": "bob"}},
        {"id": "8", "type": "user", "at": at, "user": user, "change": "created"},
        {"id": "9", "type": "user", "at": at, "user": {"id": "9"}, "change": "updated", "members": ["login", "name", "bio"]},
        {"id": "10", "type": "user", "at": at, "user": {"id": "9", "login": "bob", "name": "bob"}},
        {"id": "6", "type": "other"}]
    visit.say(*map(json.dumps, events))
    visit.chunk("id: 7\nevent: post\ndata: {no json\n\n").say(FOR_GOOD).end()
    assert [program.line() for _ in range(13)] == [
        "2026-11-21 02:02:03 @ada (Ada", "        L), answering 7, quoting 8: Tea \\u001b[2J", "        at five",
        "2026-11-21 02:02:03 9: x", "2026-11-21 02:02:03 1 is deleted", "2026-11-21 02:02:03 @ada follows @bob", "x @ada follows no more @bob",
        "2026-11-21 02:02:03 @ada (Ada", "        L) is new", "2026-11-21 02:02:03 9 has another login, name and bio", "2026-11-21 02:02:03 @bob has changed",
        '{"id": "6", "type": "other"}', "{no json"]
    program.ended(1)


def bucket(start, end, **more):
    return json.dumps({"type": "counts", "start": f"2026-11-21T{start}Z", "end": f"2026-11-21T{end}Z", **more})


def test_counts_for_people(host, tail):
    program = tail("counts", "--bucket", "10s", "--by", "country", "--pretty", TZ="UTC-1")
    groups = [{"key": f"C{n}", "posts": 20 - n} for n in range(12)]
    host.visit().begin().say(
        bucket("01:02:00", "01:02:10", id="1", posts=12, deletes=1, users=9),
        bucket("01:02:10", "01:02:20", posts=1, deletes=0, users=1, groups=[{"key": "FR", "posts": 1}], other=0, partial=True),
        bucket("01:02:20", "01:02:30", id="3", posts=0, deletes=0, users=0, groups=[], other=0, revision=2, gap=True),
        bucket("01:00:00", "02:00:00", id="4", posts=230, deletes=0, users=200, groups=groups, other=41),
        bucket("01:00:00", "02:00:00", id="5", posts=1, deletes=1, users=1,
               groups=[{"key": "post\n\x1b[2J", "events": 1}, {"key": "delete", "events": 1}], other=0),
        '{"type":"counts","id":"6","start":"soon"}', FOR_GOOD).end()
    assert [program.line() for _ in range(7)] == [
        "2026-11-21 02:02:00      12 posts      9 users     1 deletes",
        "2026-11-21 02:02:10       1 posts      1 users     0 deletes  FR 1 (so far)",
        "2026-11-21 02:02:20       0 posts      0 users     0 deletes (events are missing, counted again)",
        "2026-11-21 02:00     230 posts    200 users     0 deletes  "
        + ", ".join(f"C{n} {20 - n}" for n in range(10)) + ", others 60",
        "2026-11-21 02:00       1 posts      1 users     1 deletes  post", "        \\u001b[2J 1, delete 1",
        '{"type":"counts","id":"6","start":"soon"}']
    program.ended(1)


def test_trends_for_people(host, tail):
    program = tail("trends", "--bucket", "10s", "--window", "5m", "--of", "hashtags", "--terms", "3", "--pretty", TZ="UTC-1")
    visit = host.visit()
    assert visit.form == {"bucket": "10s", "window": "5m", "of": "hashtags", "limit": "3"}
    when = {"type": "trends", "start": "2026-11-21T00:57:05Z", "end": "2026-11-21T01:02:10Z", "of": "hashtags", "complete": True}
    terms = [{"term": "#rain", "posts": 52, "users": 40, "before": 3, "score": 5.6, "past": [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 14]},
             {"term": "#茶\x1b", "posts": 3, "users": 2, "before": 0, "score": 1, "past": [0] * 12}]
    visit.begin().say(json.dumps({**when, "id": "1", "terms": terms}),
                      json.dumps({**when, "id": "2", "terms": [], "complete": False, "revision": 1}), FOR_GOOD).end()
    assert [program.line() for _ in range(5)] == [
        "2026-11-21 02:02:10 hashtags since 2026-11-21 01:57:05",
        "    users  before   posts   score  past          term",
        "       40       3      52     5.6  ▁▁▂▂▃▃▄▄▄▄▄█  #rain",
        "        2       0       3     1.0  ▁▁▁▁▁▁▁▁▁▁▁▁  #茶\\u001b",
        "2026-11-21 02:02:10 hashtags since 2026-11-21 01:57:05: none is rising (part of the past is missing, counted again)"]
    program.ended(1)


def test_a_bucket_that_is_not_over_does_not_count_towards_the_limit(host, tail):
    program = tail("counts", "--bucket", "10s", "--refresh-ms", "100", "--limit", "1")
    visit = host.visit()
    assert visit.form == {"bucket": "10s", "refresh_ms": "100"}
    visit.begin().say('{"type":"counts","partial":true}', '{"type":"counts","id":"1"}')
    assert [program.line(), program.line()] == ['{"type":"counts","partial":true}', '{"type":"counts","id":"1"}']
    program.ended(0)
    visit.connection.close()


def test_a_refusal_names_the_option(host, tail):
    program = tail("trends", "--bucket", "10s", "--window", "5m", "--of", "words", "--terms", "1000")
    host.visit().refuse(400, param="limit", message="not a number from 1 to 100")
    assert "refused with status 400: --terms: not a number from 1 to 100\n" in program.ended(1)


def test_authority_of_a_server(cli_for, host, tmp_path):
    """A server with a self-signed certificate is accepted with --cacert, and not without."""
    certificate = Certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key)
    url = host.url.replace("http:", "https:")
    cli = cli_for(None)

    def accept():
        return context.wrap_socket(host.listener.accept()[0], server_side=True)

    for command in (["tail", "sample"], ["top", "--once"]):
        stranger = cli.start(*command, "--url", url, "--token", "x")
        with pytest.raises(ssl.SSLError):
            accept()
        assert "ertificate" in stranger.ended(1)
        cli.start(*command, "--url", url, "--token", "x", "--cacert", "/nonexistent.pem").ended(1)
        host.listener.accept()[0].close()
        program = cli.start(*command, "--url", url, "--token", "x", "--cacert", certificate.file)
        Visit(accept()).refuse(404)
        assert "404" in program.ended(1)


def test_url_with_a_path_and_a_token_from_the_environment(host, tail):
    program = tail("home", url=host.url + "/below/", token=None, SLUICE_TOKEN="from.the.env")
    visit = host.visit()
    assert visit.target == "/below/v1/stream/home"
    assert visit.headers["authorization"] == "Bearer from.the.env"
    assert visit.form == {}
    visit.refuse(403)
    program.ended(1)


@pytest.mark.parametrize("rule, at, shown", [
    ("tea colour:red", 4, "    tea colour:red\n        ^\n"),
    ("tea OR", 6, "    tea OR\n          ^\n"),
    ("茶\t(\U0001F600 e\u0301) x", 8, "    茶 (\U0001F600 e\u0301) x\n" + " " * 13 + "^\n"),
    ("a" * 50 + "?" + "b" * 50, 50, "    ..." + "a" * 40 + "?" + "b" * 29 + "...\n" + " " * 47 + "^\n"),
])
def test_refusal_of_a_rule_has_a_caret(host, tail, rule, at, shown):
    program = tail("filter", "--rule", rule)
    host.visit().refuse(400, param="rule", at=at)
    assert "refused with status 400: --rule: because\n" + shown in program.ended(1)


def test_lists_longer_than_any_url(host, tail):
    users = ",".join(str(number) for number in range(20000))
    program = tail("filter", "--follow", users)
    visit = host.visit()
    assert visit.form == {"follow": users}
    visit.refuse(413)
    program.ended(1)


def test_lines_come_whole_whatever_the_network_does(host, tail):
    program = tail("firehose")
    visit = host.visit().begin()
    long = json.dumps({"id": "4", "text": "x" * 300000})
    stream = ('id: 1\nevent: post\ndata: {"id":"1"}\n\n:\n\ndata:{"id":"2"}\r\n\r\nid: 9\n\n'
              f'event: post\ndata: {{"type":"post","id":"3"}}\n\ndata: {long}\n\n')
    start = stream.index(long) + 10
    for at in range(0, start):
        visit.chunk(stream[at])
    assert [program.line() for _ in range(3)] == ['{"id":"1"}', '{"id":"2"}',
                                                  '{"type":"post","id":"3"}']
    for at in range(start, len(stream), 70001):
        visit.chunk(stream[at:at + 70001])
    assert program.line() == long
    visit.say(FOR_GOOD).end()
    program.ended(1)


def test_gzip_is_asked_for_and_can_be_switched_off(host, tail):
    tail("firehose")
    assert host.visit().headers["accept-encoding"] == "gzip"
    tail("firehose", "--uncompressed")
    assert "accept-encoding" not in host.visit().headers


def test_gzip_is_read_as_it_comes_and_may_be_cut_off_anywhere(host, tail):
    program = tail("firehose")
    visit = host.visit().begin(gzip=True)
    for number in range(1, 4):
        visit.say(f'{{"id":"{number}"}}')
        assert program.line() == f'{{"id":"{number}"}}'
    whole = zlib.compress(b"more of it", wbits=-15)
    visit.raw_chunk(whole[:len(whole) // 2]).break_off()
    visit = host.visit()
    assert visit.headers["last-event-id"] == "3"
    visit.begin(gzip=True).say('{"id":"4"}', FOR_GOOD).end()
    assert program.line() == '{"id":"4"}'
    program.ended(1)


def test_what_is_no_gzip_is_trouble_that_passes(host, tail):
    program = tail("firehose")
    visit = host.visit().begin(gzip=True).say('{"id":"1"}')
    assert program.line() == '{"id":"1"}'
    visit.raw_chunk(b"\xff" * 100)
    host.visit().begin(gzip=True).say('{"id":"2"}', FOR_GOOD).end()
    assert program.line() == '{"id":"2"}'
    assert "Content" in program.ended(1)


def test_a_bomb_is_a_line_that_is_too_long(host, tail):
    program = tail("firehose")
    visit = host.visit().begin(gzip=True)
    block = visit.gzip.compress(b"x" * (129 << 20)) + visit.gzip.flush(zlib.Z_SYNC_FLUSH)
    try:
        visit.raw_chunk(block)
    except OSError:
        pass  # it has disconnected meanwhile
    assert "a line is too long" in program.ended(1)


def test_messages_of_the_server_go_to_standard_error(host, tail):
    program = tail("firehose")
    messages = ['{"type":"gap","from":"1","to":"2","reason":"redis"}',
                '{"type":"warning","code":"behind","events":1,"ms":2}', '{"type":"cursor","id":"9"}']
    visit = host.visit().begin()
    for number, message in enumerate(messages):
        visit.say(message, f'{{"id":"{number}"}}')
        assert program.line() == f'{{"id":"{number}"}}'
    visit.say(FOR_GOOD).end()
    said = program.ended(1)
    for message in [*messages, FOR_GOOD]:
        assert message in said


def test_disconnect_says_when_to_come_back(host, tail):
    program = tail("firehose")
    host.visit().begin().say('{"id":"1"}').say(COME_BACK % 600).end()
    left = time.monotonic()
    visit = host.visit()
    assert time.monotonic() - left > 0.5
    visit.begin().say('{"id":"2"}').say(FOR_GOOD).end()
    assert [program.line(), program.line()] == ['{"id":"1"}', '{"id":"2"}']
    program.ended(1)


def test_comes_back_behind_the_last_event_it_printed(host, tail):
    program = tail("firehose", "--since", "2026-11-21T06:00:00Z")
    visit = host.visit()
    assert visit.form == {"since": "1795240800000"} and "last-event-id" not in visit.headers
    visit.begin().say('{"id":"5"}', '{"id":"6"}').chunk('event: post\ndata: {"id":"99"}\n\n')
    assert [program.line() for _ in range(3)] == ['{"id":"5"}', '{"id":"6"}', '{"id":"99"}']
    visit.chunk('id: 7\nevent: post\nda').break_off()  # never printed
    visit = host.visit()
    assert visit.headers["last-event-id"] == "6"  # 99 was published without the log: no cursor
    assert visit.form == {"since": "1795240800000"}
    visit.begin().chunk("id: 8\n\n").break_off()  # a keep-alive
    visit = host.visit()
    assert visit.headers["last-event-id"] == "8"
    visit.begin().chunk('id: 9\nevent: post\ndata: {"id":"9"}\n').break_off()  # printed
    assert program.line() == '{"id":"9"}'
    visit = host.visit()
    assert visit.headers["last-event-id"] == "9"
    visit.refuse(401)
    program.ended(1)


def test_disconnect_without_a_way_back_is_the_end(host, tail):
    program = tail("sample")
    host.visit().begin().say(FOR_GOOD).end()
    assert "revoked" in program.ended(1)


def test_retry_after_is_honoured(host, tail):
    program = tail("sample")
    for status in (429, 503):
        host.visit().refuse(status, "Retry-After: 1")
        refused = time.monotonic()
    visit = host.visit()
    assert time.monotonic() - refused > 0.9
    visit.refuse(401)
    program.ended(1)


def said(program):
    """Returns its messages up to the one about reconnecting."""
    read, deadline = b"", Deadline(what="it says when it comes back")
    while b"reconnecting" not in read or not read.endswith(b"\n"):
        deadline.wait_readable(program.process.stderr)
        read += program.process.stderr.read(4096)
    return read.decode()


@pytest.mark.parametrize("asked", ["3660", "99999999999999999", "9223372036854775807"])
def test_retry_after_has_a_bound(host, tail, asked):
    program = tail("sample")
    host.visit().refuse(503, f"Retry-After: {asked}")
    assert "reconnecting in 3600." in said(program)


@pytest.mark.parametrize("asked", [3_660_000, 2**63 - 1])
def test_retry_ms_has_a_bound(host, tail, asked):
    program = tail("sample")
    host.visit().begin().say(COME_BACK % asked).end()
    assert "reconnecting in 3600.0 s" in said(program)


ESCAPES = "\x1b[2J", "\x9b2J", "\x7f", "\x85", "\u202e", "\u2066", "\u200f", "\u2028"


@pytest.mark.parametrize("escape", ESCAPES, ids=ascii)
def test_no_escape_reaches_the_terminal(host, tail, escape):
    """Neither from an event, nor from a message, nor from the text of a refusal."""
    program = tail("firehose")
    visit = host.visit().begin()
    event = json.dumps({"id": "1", "text": f"a{escape}茶\t"}, ensure_ascii=False, separators=(",", ":"))
    visit.chunk(f"id: 1\nevent: post\ndata: {event}\n\n")
    line = program.line()
    assert escape[0] not in line and "茶" in line and json.loads(line) == json.loads(event)
    visit.chunk(f'event: gap\ndata: {{"type":"gap{escape}"}}\n\n'.encode()).break_off()
    host.visit().refuse(401, message=f"no{escape}")
    said = program.ended(1)
    assert escape[0] not in said
    assert said.count(f"\\u{ord(escape[0]):04x}") == 2


def test_bytes_that_are_no_text_do_not_reach_the_terminal(host, tail):
    program = tail("firehose")
    visit = host.visit().begin()
    visit.chunk(b'id: 1\nevent: post\ndata: {"text":"\x9b\xff"}\n\n')
    assert program.line() == '{"text":"\\ufffd\\ufffd"}'
    visit.say(FOR_GOOD).end()
    program.ended(1)


@pytest.mark.parametrize("trouble", ["break", "end", "silence", "500", "408", "no listener"])
def test_trouble_is_survived(host, tail, trouble):
    if trouble == "no listener":
        port = host.listener.getsockname()[1]
        host.listener.close()
    program = tail("sample")
    if trouble == "no listener":
        Deadline().wait_readable(program.process.stderr)
        host.listener = socket.create_server(("127.0.0.1", port))
        host.listener.settimeout(Deadline().seconds)
    elif trouble == "break":
        host.visit().begin().say('{"id":"1"}').chunk('id: 7\nevent: post\nda').break_off()
    elif trouble == "end":
        host.visit().begin().say('{"id":"1"}').end()
    elif trouble == "silence":
        host.visit().break_off()
    else:
        host.visit().refuse(int(trouble))
    host.visit().begin().say('{"id":"2"}', FOR_GOOD).end()
    lines = ['{"id":"1"}'] if trouble in ("break", "end") else []
    assert [program.line() for _ in range(len(lines) + 1)] == lines + ['{"id":"2"}']
    program.ended(1)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 405, 406, 413])
def test_refusal_that_would_be_repeated_is_the_end(host, tail, status):
    program = tail("sample")
    host.visit().refuse(status, message="a reason to read")
    said = program.ended(1)
    assert str(status) in said and "a reason to read" in said


def test_answer_that_is_no_json(host, tail):
    program = tail("sample")
    visit = host.visit()
    visit.connection.sendall(b"HTTP/1.1 404 Nothing\r\nContent-Length: 200000\r\n\r\n" + b"\xff" * 200000)
    assert "404" in program.ended(1)


def test_reader_that_has_seen_enough_ends_it(host, tail):
    program = tail("sample")
    visit = host.visit().begin().say('{"id":"1"}')
    program.line()
    program.process.stdout.close()
    visit.say('{"id":"2"}')
    assert program.process.wait(Deadline().seconds) == 0


@pytest.mark.parametrize("arguments", [
    ["filter", "--url", "ftp://127.0.0.1"], ["filter", "--url", "http://"], ["filter", "sample"],
    ["filter", "--token", "two words"], ["filter", "--token", ""], ["many"], ["filter", "--tracks", "a"]])
def test_wrong_usage(cli_for, arguments):
    cli = cli_for(None)
    cli.environment = {**cli.environment, "SLUICE_TOKEN": "x"}
    cli.run("tail", *arguments, status=2)
    assert cli.done.stderr and not cli.done.stdout


def test_no_token(cli_for):
    cli = cli_for(None)
    cli.environment = {name: value for name, value in cli.environment.items() if name != "SLUICE_TOKEN"}
    cli.run("tail", "sample", status=2)
    assert "SLUICE_TOKEN" in cli.done.stderr
