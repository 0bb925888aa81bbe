"""filter-match as a program: input and output lines, verdicts, exit statuses."""

import json
import subprocess
import sys

import pytest

from harness import programs

CASES = programs.SOURCE / "tests" / "data" / "filter-cases"


def post(text, id="1"):
    return json.dumps({"id": id, "type": "post",
                       "post": {"id": id, "user": {"id": "1"}, "text": text}})


def run(*arguments, stdin=b"", expect=0):
    """Returns stdout and stderr of a run with the exit status `expect`."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = subprocess.run([programs.filter_match(), *map(str, arguments)], input=stdin,
                          capture_output=True, timeout=60, env=programs.environment())
    assert done.returncode == expect, done.stderr.decode()
    return done.stdout, done.stderr


@pytest.fixture
def filters(tmp_path):
    """filters(line, ...): a file with these lines."""
    def write(*lines, end="\n"):
        path = tmp_path / "filters.jsonl"
        path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + end.encode()
                                  for line in lines))
        return path
    return write


A = '{"id":"a","track":"rain"}'
B = '{"id":"b","firehose":true}'


def test_cases_come_out_byte_for_byte():
    out, _ = run("--filters", CASES / "filters.jsonl", stdin=(CASES / "events.jsonl").read_bytes())
    assert out == (CASES / "expected.jsonl").read_bytes()


def test_check_judges_every_line():
    out, _ = run("--check", "--filters", CASES / "bad-filters.jsonl")
    assert out == (CASES / "bad-filters.expected.jsonl").read_bytes()


def test_lines_may_end_in_crlf(filters):
    out, _ = run("--filters", filters(A, B, end="\r\n"),
                 stdin=post("rain") + "\r\n" + post("sun") + "\r\n\r\n")
    assert out == b'["a","b"]\n["b"]\nnull\n'


def test_last_line_needs_no_end(filters):
    out, _ = run("--filters", filters(A), stdin=post("rain"))
    assert out == b'["a"]\n'
    path = filters(A)
    path.write_bytes(path.read_bytes().rstrip())
    out, _ = run("--filters", path, stdin=post("rain"))
    assert out == b'["a"]\n'


def test_empty_input_gives_empty_output(filters):
    assert run("--filters", filters(A)) == (b"", b"")
    assert run("--check", "--filters", filters()) == (b"", b"")


def test_invalid_events_are_null(filters):
    lines = ["", " ", "null", "5", "[]", "{}", "nonsense", '{"type":"like","id":"1"}',
             post("rain")[:-1], post("rain") + post("rain"), '{"type":"add_filters"}',
             '{"id":"1","type":"hide","user":{"id":"1"},"target":{"id":"2"}}']
    out, _ = run("--filters", filters(B), stdin="\n".join(lines).encode() + b"\n\xff\n\0\n")
    assert out == b"null\n" * (len(lines) + 2)


def test_filters_change_on_the_way():
    lines = [post("rain"),
             '{"type":"add_filter","filter":' + A + '}', post("rain"),
             '{"type":"add_filter","filter":' + A + '}',
             '{"type":"add_filter","filter":' + B + '}', post("rain"),
             '{"type":"remove_filter","id":"a"}', post("rain"),
             '{"type":"add_filter","filter":' + A + '}', post("rain"),
             '{"type":"remove_filter","id":"x"}', '{"type":"remove_filter"}',
             '{"type":"remove_filter","id":{"a":1}}',
             '{"type":"add_filter"}', '{"type":"add_filter","filter":[]}',
             '{"type":"add_filter","filter":{"track":"x"}}',
             '{"type":"add_filter","filter":{"id":"a\\"b","track":"x"}}',
             '{"type":"add_filter","filter":{"id":"c","rule":"-x"}}',
             '{"type":"add_filter","filter":{"id":"c","rule":"\\ud800"}}',
             '{"type":"\\u0061dd_filter","filter":{"id":"c","rule":"x"}}']
    out, _ = run(stdin="\n".join(lines))
    assert out.decode().split("\n") == [
        "[]", '{"id":"a","ok":true}', '["a"]', '{"id":"a","error":"duplicate_id"}',
        '{"id":"b","ok":true}', '["a","b"]', '{"id":"a","ok":true}', '["b"]',
        '{"id":"a","ok":true}', '["b","a"]',
        '{"id":"x","error":"no_such_filter"}', '{"id":null,"error":"no_such_filter"}',
        '{"id":null,"error":"no_such_filter"}',
        '{"id":null,"error":"bad_json"}', '{"id":null,"error":"bad_json"}',
        '{"id":null,"error":"bad_id"}', '{"id":"a\\"b","error":"bad_id"}',
        '{"id":"c","error":"rule_too_broad"}', "null", '{"id":"c","ok":true}', ""]


def test_id_of_a_bad_filter_stays_free(filters):
    out, _ = run("--check", "--filters",
                 filters('{"id":"a","rule":"-x"}', A, A, '{"id":"a"}', "", "[]"))
    assert out.decode().split("\n") == [
        '{"id":"a","error":"rule_too_broad"}', '{"id":"a","ok":true}',
        '{"id":"a","error":"duplicate_id"}', '{"id":"a","error":"no_selector"}',
        '{"id":null,"error":"bad_json"}', '{"id":null,"error":"bad_json"}', ""]


@pytest.mark.parametrize("line, said", [
    ("not json", "2: bad_json: not a JSON object"),
    ("", "2: bad_json: not a JSON object"),
    ('{"id":"x","locations":"0,1,1,0"}',
     "2: locations: bad_box: box out of range, or its north is below its south '0,1,1,0'; "
     "a box is west, south, east, north in degrees"),
    (A, "2: id: duplicate_id: filter id already in use"),
])
def test_bad_filter_file_is_refused_without_output(filters, line, said):
    path = filters(A, line, B)
    out, err = run("--filters", path, stdin=post("rain"), expect=2)
    assert out == b""
    assert err.decode() == f"filter-match: {path}:{said}\n"


def test_unreadable_filter_file_is_refused(tmp_path):
    for path in (tmp_path / "missing", tmp_path):
        for more in ([], ["--check"]):
            out, err = run(*more, "--filters", path, expect=2)
            assert out == b""
            assert str(path) in err.decode()


@pytest.mark.parametrize("arguments", [["--nonsense"], ["extra"], ["--check"], ["--filters"]])
def test_wrong_usage(arguments):
    out, err = run(*arguments, expect=2)
    assert out == b"" and err != b""


def test_help():
    out, err = run("--help")
    assert out.startswith(b"Usage: filter-match") and err == b""


def test_stats_are_one_line_of_json(filters):
    lines = [post("rain"), "nonsense", '{"type":"add_filter","filter":{"id":"c","track":"x"}}',
             post("x")]
    _, err = run("--stats", "--filters", filters(A, B), stdin="\n".join(lines))
    assert err.count(b"\n") == 1
    stats = json.loads(err)
    assert list(stats) == ["filters", "events", "load_s", "match_s", "index_bytes"]
    assert stats["filters"] == 3 and stats["events"] == 2
    assert 0 <= stats["match_s"] < 10 and 0 <= stats["load_s"] < 10
    assert stats["index_bytes"] > 0


def test_answers_come_before_more_input_is_waited_for():
    process = subprocess.Popen([programs.filter_match()], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=programs.environment())
    for line, answer in [('{"type":"add_filter","filter":' + A + '}', b'{"id":"a","ok":true}\n'),
                         (post("rain"), b'["a"]\n'), (post("sun"), b"[]\n")]:
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == answer
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()


def test_lines_longer_than_any_buffer(filters):
    text = "sun " * 500_000
    out, _ = run("--filters", filters(A), stdin=post(text + "rain") + "\n" + post(text) + "\n")
    assert out == b'["a"]\n[]\n'


def test_lost_output_is_a_failure(filters):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([programs.filter_match(), "--filters", str(filters(B))],
                              input=post("x").encode(), stdout=full, stderr=subprocess.PIPE,
                              timeout=60, env=programs.environment())
    assert done.returncode == 1
    assert b"No space left" in done.stderr


def test_polygons_agree_with_geos():
    """bench/polygons tries a million points."""
    pytest.importorskip("shapely", reason="no GEOS to compare with: install python3-shapely")
    done = subprocess.run([sys.executable, programs.SOURCE / "bench" / "polygons", "--build", programs.BUILD,
                           "--points", "20000"], capture_output=True, text=True, env=programs.environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 differences" in done.stdout


def test_example_of_the_manual(filters, tmp_path):
    rule = filters('{"id":"r","rule":"(storm OR flood) -is:repost lang:en"}')
    posts = tmp_path / "posts.jsonl"
    storm = post("storm!").replace('"text"', '"lang":"en","text"')
    posts.write_text("\n".join([post("storm"), storm, post("calm")]) + "\n")
    command = (r"""%s --filters %s < %s | paste - %s | grep '^\["r"\]' | cut -f 2-"""
               % (programs.filter_match(), rule, posts, posts))
    out = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, check=True,
                         env=programs.environment()).stdout
    assert out.decode() == storm + "\n"
