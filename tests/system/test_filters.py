"""What the parameters of a stream select, compared with the second implementation and with the specification."""

import cmath
import itertools
import json
from urllib.parse import quote

import pytest

from harness import events, recompute
from harness.recompute import Filter
from harness.streams import Refused

# An event that matches everything below, with every percent and partition used.
END = next(n for n in itertools.count(10**9)
           if recompute.in_percent(n, 1) and recompute.in_partition(n, 2, 3))


def query(**parameters):
    return "&".join(f"{name}={quote(str(value), safe='')}" for name, value in parameters.items())


def posts():
    """A few hundred posts in which words, people, places and languages are combined in all ways."""
    texts = ["coffee first, meetings later", "Tea? #coffee!", "a coffee-tea mix", "今天喝咖啡 #周末去哪儿#",
             "コーヒーとお茶", "el café está aquí", "CAFE\u0301 de París", "@Ada look: https://x.example/coffee",
             "nothing of it", "Straße STRASSE", "کافه می‌خواهم", "$ACME up, $100 down", "☕", "кофе и чай",
             "क्या चाय मिलेगी?", "don't", "iPhone手机5G", "me@ada.example", "#Coffee_2024 #2024",
             "cafe con leche", "cafeteria", "thé à la menthe", "t for two"]
    places = [{}, {"geo": {"lon": 2.35, "lat": 48.85}}, {"geo": {"lon": 179.9, "lat": -17.0}},
              {"place": {"name": "Suva", "bbox": [178.0, -19.0, -179.0, -16.0]}},
              {"geo": {"lon": -180.0, "lat": -16.5}}, {"place": {"name": "nowhere"}}]
    langs = [{}, {"lang": "en"}, {"lang": "zh-TW"}, {"lang": "zh"}, {"lang": "ES"}]
    more = [{}, {"reply_to": {"post": "5", "user": "77"}}, {"repost_of": {"post": "6", "user": "3"}}]
    made = []
    for number, text in enumerate(texts * 24, 1000):
        made.append(events.post(number, text, user=str(number % 7 + 1), login=f"Ü{number % 7}",
                                **places[number % 6], **langs[number % 5], **more[number % 3]))
    return made


FILTERS = [
    dict(track="coffee"), dict(track="COFFEE tea"), dict(track="coffee,tea，咖啡"), dict(track="#coffee"),
    dict(track="coffee-tea"), dict(track="café"), dict(track="cafe"), dict(track="@ada"), dict(track="咖啡"),
    dict(track="#周末去哪儿#"), dict(track="strasse"), dict(track="$acme"), dict(track="☕,чай"), dict(track="手机"),
    dict(track="t"), dict(track="お茶", language="zh,en"), dict(follow="3"), dict(follow="3,77"),
    dict(follow="@ü2,@ada"), dict(locations="2,48,3,49"), dict(locations="170,-20,-170,-10"),
    dict(locations="-180,-20,-179,-10,2,48,3,49"), dict(track="coffee", follow="5", locations="2,48,3,49"),
    dict(track="coffee", language="en"), dict(language="zh", track="咖啡", follow="1,2,3,4,5,6,7"),
]


def test_every_filter_gets_exactly_what_it_asks_for(gateway, publish):
    """All filters at once over three transports; then every post, and its deletion."""
    end = events.post(END, "coffee tea #coffee coffee-tea café cafe @ada 咖啡 #周末去哪儿# strasse $acme ☕ "
                      "手机 t お茶", user="3", geo={"lon": -179.5, "lat": -15.0}, lang="zh")
    end2 = events.post(END + 1, "END", user="3", geo={"lon": 2.5, "lat": 48.5}, lang="zh")
    end3 = events.post(END + 2, "coffee", user="3", lang="en")
    open_streams = []
    for parameters, transport in zip(FILTERS, itertools.cycle(["ndjson", "websocket", "sse"])):
        ended = dict(parameters)
        for last in (end, end2, end3):
            if Filter(**ended).matches(last):
                break
        else:
            raise AssertionError(f"{parameters} would not hear the end")
        open_streams.append((parameters, last, gateway.stream("/v1/stream/filter?" + query(**parameters), transport)))
    sent = []
    for post in posts():
        sent += [post, events.delete(int(post["id"]) + 100000, post)]
    for event in [*sent, end, end2, end3]:
        publish(events.dump(event))
    for parameters, last, stream in open_streams:
        wanted = [e["id"] for e in sent if Filter(**parameters).matches(e)]
        assert wanted, parameters
        got = [m["id"] for m in stream.until(last["id"]) if m.type != "warning"]  # about logins
        assert got[:-1] == wanted, parameters


@pytest.mark.parametrize("parameters", [
    dict(percent=1), dict(percent=10), dict(percent="33.3333"), dict(partition="2/3"),
    dict(percent=20, partition="2/3"), dict(percent=100)])
def test_sample_is_the_specified_one(gateway, publish, parameters):
    percent = float(parameters.get("percent", 1))  # a partition alone is one of the default sample
    partition = (2, 3) if "partition" in parameters else None
    check = Filter(percent=percent, partition=partition)
    streams = [gateway.stream("/v1/stream/sample?" + query(**parameters), transport)
               for transport in ("ndjson", "websocket")]
    sent = [events.post(number * 4096, "sampled") for number in range(1, 1500)]
    for event in sent:
        publish(events.dump(event))
    publish(events.dump(events.post(END, "the end")))
    wanted = [e["id"] for e in sent if check.matches(e)]
    assert wanted
    for stream in streams:
        assert [m["id"] for m in stream.until(END)][:-1] == wanted


def test_sample_without_a_percent_is_one_percent(gateway, publish):
    with gateway.stream("/v1/stream/sample") as stream:
        sent = [events.post(number * 4096, "sampled") for number in range(1, 1000)]
        for event in sent:
            publish(events.dump(event))
        publish(events.dump(events.post(END, "the end")))
        assert [m["id"] for m in stream.until(END)][:-1] == \
            [e["id"] for e in sent if Filter(percent=1).matches(e)]


@pytest.mark.parametrize("rule, yes, no", [
    ("cat -dog", "a cat", "a cat and a dog"),
    ("(cat OR fox) lang:en", "the fox", "the wolf"),
    ('"night train"', "on the night train", "a train at night"),
    ('"night train"~2', "the train of the night", "train through all the night"),
    ("from:7 has:links", "look https://x.example/", "no link here"),
    ("url:x.example/a", "see https://www.x.example/a/b", "see https://x.example/ab"),
])
def test_rules(gateway, publish, rule, yes, no):
    with gateway.stream("/v1/stream/filter?" + query(rule=rule)) as stream:
        publish(events.post(1, no, user="7", lang="en"))
        publish(events.post(2, yes, user="7", lang="en"))
        assert stream.next()["id"] == "2"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_words_near_each_other_and_polygons(gateway, publish, method):
    """A hundred points would be too long for a rule if they counted as much as other characters."""
    circle = [cmath.rect(1, turn * cmath.tau / 100) for turn in range(100)]
    area = ", ".join(f"{(179.5 + at.real + 180) % 360 - 180:.7f} {at.imag - 17:.7f}" for at in circle)
    parameters = query(rule=f'polygon:[{area}] OR "夜行 列车"~1')
    target = "/v1/stream/filter"
    stream = gateway.stream(target, method=method, body=parameters.encode()) if method == "POST" else \
        gateway.stream(f"{target}?{parameters}")
    with stream:
        publish(events.post(1, "x", geo={"lon": 178.0, "lat": -17.0}))
        publish(events.post(2, "x", geo={"lon": -179.6, "lat": -17.0}))
        publish(events.post(3, "列车的的夜行"))
        publish(events.post(4, "列车的夜行"))
        publish(events.post(5, "x", place={"name": "Taveuni", "bbox": [179.9, -17.0, -179.9, -16.7]}))
        assert [stream.next()["id"] for _ in range(3)] == ["2", "4", "5"]


@pytest.mark.parametrize("parameters, status, code, param", [
    ("", 400, "no_selector", None),
    ("language=en", 400, "no_selector", None),
    ("track=", 400, "empty_track", "track"),
    ("track=%20%2C", 400, "empty_track", "track"),
    ("track=!!!", 400, "empty_keyword", "track"),
    ("track=" + "x" * 61, 413, "phrase_too_long", "track"),
    ("track=" + ",".join(f"w{n}" for n in range(401)), 413, "too_many_phrases", "track"),
    ("follow=", 400, "empty_follow", "follow"),
    ("follow=a%20b", 400, "bad_follow", "follow"),
    ("locations=1,2,3", 400, "bad_locations", "locations"),
    ("locations=1,2,3,x", 400, "bad_number", "locations"),
    ("locations=1,2,3,1e1", 400, "bad_number", "locations"),
    ("locations=0,10,1,9", 400, "bad_box", "locations"),
    ("locations=0,0,181,1", 400, "bad_box", "locations"),
    ("locations=" + ",".join("0,0,1,1" for _ in range(26)), 413, "too_many_boxes", "locations"),
    ("track=a&language=e", 400, "bad_language", "language"),
    ("track=a&types=likes", 400, "bad_types", "types"),
    ("rule=-dog", 400, "rule_too_broad", "rule"),
    ("rule=lang:ja", 400, "rule_too_broad", "rule"),
    ("rule=form:alice", 400, "unknown_operator", "rule"),
    ("rule=(a", 400, "syntax", "rule"),
    ("rule=%22a%20b%22~7", 400, "bad_proximity", "rule"),
    ("rule=polygon:[0%200,1%201,2%202]", 400, "bad_polygon", "rule"),
])
@pytest.mark.parametrize("transport", ["ndjson", "sse", "raw-websocket", "form"])
def test_bad_parameters_are_named(gateway, parameters, status, code, param, transport):
    if len(parameters) > 6000 and transport != "form":
        pytest.skip("longer than a request line")
    with pytest.raises(Refused) as refused:
        if transport == "form":
            gateway.stream("/v1/stream/filter", method="POST", body=parameters.encode())
        else:
            gateway.stream("/v1/stream/filter?" + parameters, transport)
    response = refused.value.response
    assert response.status == status, response
    assert response.error["code"] == code
    if param:
        assert response.error["param"] == param


@pytest.mark.parametrize("name, value, rest", [
    ("rule", "茶 OR (\U0001F600 has:milk)", "milk)"),
    ("rule", "tea OR", ""),
    ("rule", "(tea) fox)", ")"),
    ("rule", "tea OR lang:ja", "lang:ja"),
    ("rule", "-tea", "-tea"),
    ("track", "\U0001F600, ca*", "ca*"),
])
def test_refusals_say_where(gateway, name, value, rest):
    with pytest.raises(Refused) as refused:
        gateway.stream("/v1/stream/filter?" + query(**{name: value}))
    error = refused.value.response.error
    assert error["param"] == name and value[error["at"]:] == rest, error


@pytest.mark.parametrize("parameters, code, param", [
    ("percent=0", "bad_sample", "percent"), ("percent=101", "bad_sample", "percent"),
    ("percent=x", "bad_sample", "percent"), ("percent=", "bad_sample", "percent"),
    ("percent=1&partition=3/2", "bad_partition", "partition"),
    ("partition=0/2", "bad_partition", "partition"), ("partition=1", "bad_partition", "partition"),
])
def test_bad_samples_are_named(gateway, parameters, code, param):
    with pytest.raises(Refused) as refused:
        gateway.stream("/v1/stream/sample?" + parameters)
    response = refused.value.response
    assert (response.status, response.error["code"], response.error["param"]) == (400, code, param)


@pytest.mark.parametrize("query_string", [
    "track=%FF", "track=%C3", "track=%00", "track=a%00b", "track=%ED%A0%80"])
def test_parameters_that_are_no_text(gateway, query_string):
    with pytest.raises(Refused) as refused:
        gateway.stream("/v1/stream/filter?" + query_string)
    assert refused.value.response.status == 400 and refused.value.response.error


def test_logins_that_nobody_has_are_said(servers, cli_for):
    """As soon as Redis has answered; the filter matches nevertheless when somebody takes the login."""
    redis = servers.redis()
    cli = cli_for(redis)
    cli.run("user", "add", "ada")
    gateway = servers.gateway(redis)
    target = "/v1/stream/filter?follow=12,@ada,Bob,did:plc:x&rule=to:@Carl+OR+from:ada+OR+from:bob"
    with gateway.stream(target, "sse") as stream:
        warnings = [stream.next() for _ in range(2)]
        assert [(w.type, w["code"], w["param"]) for w in warnings] == \
            [("warning", "unknown_user", "follow"), ("warning", "unknown_user", "rule")]
        assert [w["message"] for w in warnings] == \
            [f"no user of this server has the login '{login}'" for login in ("bob", "carl")]
        cli.run("user", "add", "bob")
        post = cli.run("post", "--user", "bob", "here I am")
        assert stream.next()["id"] == post
    with gateway.stream(f"{target}&since={post}", "sse") as stream:  # a client that comes back was told before
        post = cli.run("post", "--user", "bob", "again")
        assert stream.next()["id"] == post
    with gateway.stream("/v1/stream", "websocket") as websocket:
        for name, login in ("a", "@carl"), ("b", "ada"), ("c", "dora"):
            websocket.send(json.dumps({"op": "subscribe", "id": name, "filter": {"follow": login}}))
        got = [websocket.next() for _ in range(5)]
    assert [m["id"] for m in got if m.json.get("op") == "subscribed"] == ["a", "b", "c"]
    assert [(m["id"], m["code"]) for m in got if "code" in m] == [("a", "unknown_user"), ("c", "unknown_user")]
