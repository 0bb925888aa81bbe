"""Who may include whom, and that every header stands alone."""

import os
import pathlib
import re
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = ["libwebsockets", "hiredis", "libuv", "jansson", "yajl", "icu-uc", "libcurl"]
MAY_INCLUDE = {
    "base": ["base"],
    "filters": ["base", "filters"],
    "src": ["base", "src"],
    "gateway": ["base", "filters", "src", "gateway"],
    "cli": ["base", "src", "cli"],
    "tools": ["base", "filters", "gateway/intake", "gateway/front/filter_json.h", "tools"],
    "examples": [],  # <sluice/...> only: they build against what is installed
}


def sources(folder):
    return [file for end in ("c", "h", "def") for file in (SOURCE / folder).rglob(f"*.{end}")]


@pytest.mark.parametrize("folder", MAY_INCLUDE)
def test_arrows(folder):
    allowed = tuple(name if name.endswith(".h") else name + "/" for name in MAY_INCLUDE[folder])
    for file in sources(folder):
        for included in re.findall(r'^#\s*include "(.*)"', file.read_text(), re.MULTILINE):
            assert included.startswith(allowed), f"{file.relative_to(SOURCE)} includes {included}"
            assert (SOURCE / included).exists(), f"{included} is not spelled from the root"


@pytest.mark.parametrize("folder", [f for f in MAY_INCLUDE if f != "examples"])
def test_headers_stand_alone(folder, tmp_path):
    headers = [file.relative_to(SOURCE) for file in sources(folder) if file.suffix == ".h"]
    flags = subprocess.run(["pkg-config", "--cflags", *LIBRARIES], check=True, capture_output=True,
                           text=True).stdout.split()
    for header in headers:
        done = subprocess.run(
            [os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
             "-fsyntax-only", "-I", SOURCE, *flags, "-x", "c", "-include", header, "/dev/null"],
            cwd=SOURCE, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
