"""What the pages link to exists, and the programs that they name can be run."""

import os
import pathlib
import re
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGES = [page for folder in (".", "docs", "examples", "bench", "fuzz", "tests")
         for page in SOURCE.glob("*.md" if folder == "." else f"{folder}/**/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SOURCE)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in link:
            assert (page.parent / link).exists(), link


def anchor(heading):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SOURCE)))
def test_links_into_a_page_lead_to_a_heading(page):
    for link, wanted in re.findall(r"\]\(([^):#]*)#([^)]+)\)", page.read_text()):
        target = page.parent / link if link else page
        if target.suffix == ".md":
            assert wanted in map(anchor, re.findall(r"^#+ (.*)$", target.read_text(), re.M)), link + "#" + wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SOURCE)))
def test_scripts_that_pages_name_can_be_run(page):
    for script in re.findall(r"(?<![\w/])(scripts/[a-z-]+|bench/[a-z0-9-]+|fuzz/run)(?![\w./-])",
                             page.read_text()):
        file = SOURCE / script
        if file.is_dir() or (script.startswith("bench/") and (SOURCE / f"{script}.c").exists()):
            continue  # a folder, or a program that is built
        assert os.access(file, os.R_OK), script
        assert script == "scripts/packages" or os.access(file, os.X_OK), f"{script} cannot be run"


def test_every_setting_is_listed_with_its_default():
    rows = re.findall(r'^SETTING\((\w+), "([a-z0-9-]+)"', (SOURCE / "src/database/settings.def").read_text(), re.MULTILINE)
    listed = re.findall(r"^\| `([a-z0-9-]+)` \| `(\w+)` \|", (SOURCE / "docs/core.md").read_text(), re.MULTILINE)
    assert rows and [(name, field) for field, name in rows] == listed


UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


def number(text):
    """Returns a default as written in a page in the unit of the table: bytes, milliseconds, or a count; 0: none."""
    if text in ("none", "off", "no"):
        return 0
    digits, unit = re.fullmatch(r"(\d+) ?([A-Za-z]*)", text).groups()
    return int(digits) * UNITS[unit]


def options():
    """Returns (section, name, default) of each option that is a number or a flag."""
    table = (SOURCE / "gateway/config/config_table.def").read_text()
    for section in re.split(r"^SECTION\(", table, flags=re.M)[1:]:
        for flag, name, default in re.findall(
                r'^(FLAG|NUMBER|BYTES|TIME)\(\w+,\s*"([a-z-]+)",(?:\s*"[A-Z]+",)?\s*(\d*)', section, re.M):
            yield section.split('"')[1], name, 0 if flag == "FLAG" else int(default)


def test_every_limit_is_listed_with_its_default():
    page = (SOURCE / "docs/operating.md").read_text()
    section = re.search(r"^## Limits$(.*?)^## ", page, re.M | re.S)[1]
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \|", section, re.M)
    assert len(rows) == len(dict(rows)) == len(re.findall(r"^\| `", section, re.M)), "a row with an option each"
    known = {name: default for _, name, default in options()}
    assert {name: number(default) for name, default in rows}.items() <= known.items()
    limits = {name for where, name, _ in options() if where in ("Limits", "The API")}
    assert len(limits) > 15 and {name for name, _ in rows} == limits


@pytest.mark.parametrize("page", ["delivery.md", "security.md"])
def test_defaults_of_options_are_those_of_the_table(page):
    """Where a table cell says `option`, default."""
    known = {name: default for _, name, default in options()}
    said = re.findall(r"[|;] `([a-z]+-[a-z-]+)`, (none|off|\d+(?: ?(?:K|M|G|ms|s|m|h))?)\b", (SOURCE / "docs" / page).read_text())
    assert len(said) > 8
    assert {(name, number(default)) for name, default in said} <= known.items()


def test_every_test_that_a_page_names_is_there():
    names = re.findall(r"`(test_\w+)\.py::(test_\w+)`", (SOURCE / "docs/security.md").read_text())
    assert len(names) > 12
    for file, test in names:
        source = (SOURCE / f"tests/system/{file}.py").read_text()
        assert re.search(rf"^def {test}\(", source, re.M), f"{file}.py::{test}"


def test_every_row_of_what_one_can_do_to_others_names_a_test():
    page = (SOURCE / "docs/security.md").read_text()
    rows = [row for table in re.findall(r"^\| what \|.*\n\| -.*\n((?:\|.*\n)+)", page, re.M)
            for row in table.splitlines()]
    assert len(rows) > 12
    for row in rows:
        assert re.search(r"\| (?:[^|]*)`test_\w+\.py::test_\w+`[^|]* \|$", row), row


def test_every_header_of_libsluice_is_in_its_manual_page():
    headers = re.findall(r"^ +src/\w+/(\w+\.h)", (SOURCE / "cmake/SluiceInstall.cmake").read_text(), re.MULTILINE)
    page = (SOURCE / "docs/man/libsluice.3").read_text()
    assert headers and not [header for header in headers if header not in page]


def test_every_stream_is_described_for_programs():
    table = re.findall(r'\[STREAM_\w+\] = \{"(/v1/stream[^"]*)"', (SOURCE / "gateway/front/stream_request.c").read_text())
    described = re.findall(r"^    address: (\S+)$", (SOURCE / "docs/asyncapi.yaml").read_text(), re.MULTILINE)
    assert len(table) > 5 and sorted(table) == sorted(described)


@pytest.mark.parametrize("folder", ["base", "bench", "cli", "filters", "gateway", "src", "tools"])
def test_long_sources_open_with_what_they_are(folder):
    for source in (SOURCE / folder).rglob("*.c"):
        name, text = str(source.relative_to(SOURCE)), source.read_text()
        if text.count("\n") <= 100 or name.startswith("filters/tables/"):
            continue
        opening = re.match(r"/\* (.*?)\*/", text, re.DOTALL)
        assert opening and opening[1].startswith((f"{source.name} - ", f"{name} - ")), name
        assert opening[1].count("\n") >= 2, f"{name}: what it is, how it works, what bounds it"


def test_the_page_of_scale_shows_what_the_model_says():
    page = (SOURCE / "docs/scaling.md").read_text()
    shown = re.findall(r"^    bench/model (.+)\n\n((?:.|\n)*?\|\n\n)", page, re.M)
    assert len(shown) == 2
    for arguments, text in shown:
        model = subprocess.run([SOURCE / "bench/model", *arguments.split()], stdout=subprocess.PIPE, text=True, check=True)
        assert text.strip() == model.stdout.strip(), "another unit: paste what it prints"
