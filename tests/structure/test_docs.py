"""What the pages link to exists, and what they name can be run."""

import os
import pathlib
import re

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


def test_every_header_of_libsluice_is_in_its_manual_page():
    headers = re.findall(r"^ +src/\w+/(\w+\.h)", (SOURCE / "cmake/SluiceInstall.cmake").read_text(), re.MULTILINE)
    page = (SOURCE / "docs/man/libsluice.3").read_text()
    assert headers and not [header for header in headers if header not in page]


def test_every_stream_is_described_for_programs():
    table = re.findall(r'\[STREAM_\w+\] = \{"(/v1/stream[^"]*)"', (SOURCE / "gateway/front/stream_request.c").read_text())
    described = re.findall(r"^    address: (\S+)$", (SOURCE / "docs/asyncapi.yaml").read_text(), re.MULTILINE)
    assert table and sorted(table) == sorted(described)


@pytest.mark.parametrize("folder", ["base", "bench", "cli", "filters", "gateway", "src", "tools"])
def test_long_sources_open_with_what_they_are(folder):
    for source in (SOURCE / folder).rglob("*.c"):
        name, text = str(source.relative_to(SOURCE)), source.read_text()
        if text.count("\n") <= 100 or name.startswith("filters/tables/"):
            continue
        opening = re.match(r"/\* (.*?)\*/", text, re.DOTALL)
        assert opening and opening[1].startswith((f"{source.name} - ", f"{name} - ")), name
        assert opening[1].count("\n") >= 2, f"{name}: what it is, how it works, what bounds it"
