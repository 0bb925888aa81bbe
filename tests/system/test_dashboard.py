"""The dashboard over plain HTTP; tests/browser uses it in a browser."""

import gzip
import re

import pytest
import yaml

from harness import programs
from harness.http import HttpConnection


@pytest.fixture(scope="module", params=["/", "/status"])
def page(gateway, request):
    answer = gateway.get(request.param)
    assert answer.status == 200, answer
    return answer


def assets(page):
    return sorted(set(re.findall(r'(?:href|src)="(/assets/[^"]+)"', page.text)))


def test_the_page_names_its_parts_and_each_is_there_with_its_type(gateway, page):
    types = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
             "svg": "image/svg+xml"}
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert {path.rsplit(".", 1)[1] for path in assets(page)} == set(types)
    for path in assets(page):
        answer = gateway.get(path)
        assert answer.status == 200, path
        assert answer.headers["content-type"] == types[path.rsplit(".", 1)[1]]
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_notices_of_what_is_bundled_are_there(gateway, page):
    """web/test/notices.test.mjs defines whose."""
    assert '<link rel="license" href="/licenses.txt">' in page.text
    answer = gateway.get("/licenses.txt")
    assert answer.status == 200 and answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert len(re.findall(r"^\S+ \d+\.\d+\.\d+ \(.*\)$", answer.text, re.M)) >= 4


def test_what_is_compressed_is_the_same(gateway, page):
    for path in ["/", *assets(page)]:
        plain = gateway.get(path)
        packed = gateway.get(path, {"Accept-Encoding": "br, gzip"})
        assert packed.headers["content-encoding"] == "gzip"
        assert len(packed.body) < len(plain.body)
        assert gzip.decompress(packed.body) == plain.body
        assert packed.headers["etag"] != plain.headers["etag"]
        assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


def test_who_has_it_is_told_so_on_a_connection_that_stays(gateway, page):
    with gateway.connect() as connection:
        for path in ["/", *assets(page)]:
            tag = connection.request("GET", path).headers["etag"]
            answer = connection.request("GET", path, headers={"If-None-Match": tag})
            assert (answer.status, answer.body) == (304, b"")
            assert answer.headers["etag"] == tag


def test_the_page_may_run_and_ask_for_nothing_but_its_own(page):
    policy = dict(part.strip().split(" ", 1)
                  for part in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy.pop("trusted-types") == "hub", policy  # the only script whose address a page computes (web/src/worker.js)
    assert all(value in ("'none'", "'self'", "'script'") for value in policy.values()), policy
    assert not re.search(r"<script[^>]*>[^<]|<style|style=|\son\w+=|https?://", page.text)


def test_who_reads_slowly_gets_all_of_it(gateway):
    script = next(path for path in assets(gateway.get("/")) if path.endswith(".js"))
    whole = gateway.get(script).body
    with HttpConnection(gateway.port, receive_buffer=2048) as connection:
        assert connection.request("GET", script).body == whole


def test_head_and_wrong_methods(gateway):
    with gateway.connect() as connection:
        head = connection.request("HEAD", "/")
        assert head.status == 200 and int(head.headers["content-length"]) > 1000
    with gateway.connect() as connection:
        answer = connection.request("DELETE", "/")
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_it_can_be_switched_off(servers, redis):
    gateway = servers.gateway(redis, "--dashboard", "off")
    assert gateway.get("/").status == 404
    assert gateway.get("/healthz").status == 200


def test_another_word_than_on_or_off_is_refused(servers, redis):
    gateway = servers.gateway(redis, "--dashboard", "yes", start=False)
    gateway.launch().process.wait()
    assert "--dashboard: \"yes\" is neither on nor off" in gateway.log()
    gateway.stop(expect=1)


def test_no_file_of_the_machine_is_reached(gateway):
    for path in ["/assets/", "/assets/..%2f..%2fetc/passwd", "/assets/../../etc/passwd", "/status/", "/index.html"]:
        assert gateway.get(path).status in (400, 404), path


# --- descriptions of the API ---

@pytest.mark.parametrize("name", ["openapi", "asyncapi"])
def test_the_descriptions_are_served_as_they_are_and_as_json(gateway, name):
    kept = (programs.SOURCE / f"docs/{name}.yaml").read_bytes()
    served = gateway.get(f"/{name}.yaml")
    assert (served.status, served.body) == (200, kept)
    assert served.headers["content-type"] == "application/yaml"
    assert gateway.get(f"/{name}.json").json == yaml.safe_load(kept)


def test_the_api_is_shown_without_anything_from_outside(gateway):
    page = gateway.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<script" not in page.text and "style=" not in page.text
    used = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert used and all(path.startswith("/") for path in used)
    assert all(gateway.get(path).status == 200 for path in set(used))
    for name in ("openapi", "asyncapi"):
        said = yaml.safe_load((programs.SOURCE / f"docs/{name}.yaml").read_text())
        for path in said.get("paths") or [one["address"] for one in said["channels"].values()]:
            assert f"{path}</code>" in page.text, path
    anchors = set(re.findall(r'id="([^"]+)"', page.text))
    assert set(re.findall(r'href="#([^"]+)"', page.text)) <= anchors


def test_v1_says_where_to_go(gateway):
    links = gateway.get("/v1").json
    assert links["streams"][0] == "/v1/stream/filter" and links["docs"] == "/docs"
    for name in ("openapi", "asyncapi", "docs", "health"):
        assert gateway.get(links[name]).status == 200


def test_browsers_find_an_icon_by_themselves(gateway):
    answer = gateway.get("/favicon.ico")
    assert answer.status == 200 and answer.headers["content-type"] == "image/svg+xml"
