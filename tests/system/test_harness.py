"""The harness's implementation of filters, compared with the examples of docs/filters.md and with the filter cases."""

import json

import pytest

from harness import programs, recompute
from harness.recompute import Filter, Words, normal, urls_in
from harness.wall_clock import WallClock


@pytest.mark.parametrize("text, wanted", [
    ("Straße", "strasse"), ("ＡＢＣ１２", "abc12"), ("ｶﾞ", "ガ"), ("İstanbul", "istanbul"),
    ("i̇stanbul", "istanbul"), ("ısparta", "ısparta"), ("Touche\u0301", "touché"), ("❤️", "❤"),
    ("می‌خواهم", "میخواهم"), ("👩‍🚀", "👩🚀"), ("＃话题", "#话题"),
])
def test_normal_form(text, wanted):
    assert normal(text) == wanted


def test_urls():
    text = "看http://t.cn/Ab1，好 xhttp://no.example http://; HTTPS://e.example/a."
    assert [text[a:b] for a, b in urls_in(text)] == ["http://t.cn/Ab1", "HTTPS://e.example/a"]


def test_tokens_and_gaps():
    assert Words("iPhone手机, 5G!").tokens == [("iphone", 1), ("手", 0), ("机", 0), ("5g", 1)]
    assert Words("don't").tokens == [("don", 1), ("t", 1)]
    assert Words("👍🏽").tokens == [("👍", 1), ("🏽", 0)]


def test_entities():
    words = Words("你好#北京#天气 a#b #2024 #2024年 me@b.c @Alice你好 //@张三: $AAPL $100 $aapl2")
    assert words.hashtags == {"北京", "2024年"}
    assert words.mentions == {"alice你好", "alice", "张三"}
    assert words.cashtags == {"aapl"}


@pytest.mark.parametrize("term, text, wanted", [
    ("coca-cola", "Coca Cola", True), ("coca-cola", "coca", False), ("中国", "在中国人", True),
    ("中国", "其中。国家", False), ("5g", "5G网络", True), ("#北京", "#北京天气#", False),
    ("北京", "#北京#", True), ("c++", "c is a language", True), ("hello", "http://hello.example", False),
])
def test_terms(term, text, wanted):
    assert Words(text).has_term(term) == wanted


def test_sample_and_partition():
    assert recompute.hash_of_id(1) == 0x910A2DEC89025CC1
    assert recompute.hash_of_id(1001) == 0x533E00F7F3C606D4
    assert recompute.in_partition(1001, 8, 8)
    assert recompute.in_percent(1001, 32.5165) and not recompute.in_percent(1001, 32.5164)


@pytest.mark.parametrize("box, point, wanted", [
    ([170, -20, -170, -10], [175, -15], True), ([170, -20, -170, -10], [-180, -15], True),
    ([170, -20, -170, -10], [169, -15], False), ([-180, 80, -170, 90], [0, 90], True),
    ([0, 0, 1, 1], [1, 1], True),
])
def test_boxes(box, point, wanted):
    assert recompute.boxes_touch(box, point + point) == wanted


def is_plain(event):
    """All its types are correct, which Filter does not check (the decoder's own cases do)."""
    post = event.get("post", {})
    people = [post["user"]] if post else [event["user"], event["target"]]
    return all(isinstance(person["id"], str) for person in people) and all(
        isinstance(post[name], kind) for name, kind in
        {"text": str, "lang": str, "audience": str, "geo": dict, "place": dict, "reply_to": dict,
         "repost_of": dict}.items() if name in post or (name == "text" and post)) and all(
        isinstance(number, float) for number in
        [*post.get("geo", {}).values(), *post.get("place", {}).get("bbox", [])]) and all(
        isinstance(post.get(name, {}).get("user", ""), str) for name in ("reply_to", "repost_of"))


def test_recomputation_agrees_with_the_filter_cases():
    """Every filter case that only uses what Filter knows, on every event."""
    folder = programs.SHARED / "data" / "filter-cases"
    if not folder.exists():
        pytest.skip("no ../shared/data/filter-cases")
    filters = {}
    for line in (folder / "filters.jsonl").read_text().splitlines():
        parameters = json.loads(line)
        number = parameters.pop("id")
        parameters.pop("tag", None)
        if set(parameters) <= {"track", "follow", "locations", "language", "types", "firehose"}:
            filters[number] = Filter(**parameters)
    compared = 0
    for line, verdict in zip((folder / "events.jsonl").read_bytes().split(b"\n"),
                             (folder / "expected.jsonl").read_text().split("\n")):
        matched = json.loads(verdict or "null")
        if matched is None:
            continue  # an invalid event
        event = json.loads(line)
        if isinstance(matched, dict):  # the answer to add_filter or remove_filter
            filters.pop(matched["id"], None)
            continue
        if "text" not in event.get("post", {"text": ""}) or not is_plain(event):
            continue
        for number, wanted in filters.items():
            compared += 1
            assert wanted.matches(event) == (number in matched), (number, line.decode())
    assert compared > 50000


@pytest.mark.skipif(programs.have_sanitizer(), reason="with a sanitizer there is no clock shim")
def test_wall_clock_of_redis_steps(servers):
    clock = WallClock(servers.folder / "clock")
    stepped, true = servers.redis(shards=1, env=clock.environment), servers.redis(shards=1)
    for ahead in (600, -600, 0):
        clock.set(ahead)
        assert abs(stepped.client.time()[0] - true.client.time()[0] - ahead) <= 1
