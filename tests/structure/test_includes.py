"""Which folders may include which, and that every header compiles alone."""

import os
import pathlib
import re
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = ["libwebsockets", "hiredis", "libuv", "jansson", "yajl", "icu-uc", "libcurl"]
# The rooms (folders), each with those on which it depends: it may include these, and whatever they may include. A room
# knows nothing of those above it, so no two of them can include each other.
ROOMS = {
    "base": [],
    "filters": ["base"],
    "src/model": ["base"],
    "src/call": ["src/model"],
    "src/database": ["src/call"],
    "src/redis": ["src/database"],
    "src/social": ["src/call"],
    "src/home": ["src/social", "src/redis"],
    "src/archive": ["src/social"],
    "src/cache": ["src/social"],
    "src/tasks": ["src/home", "src/archive", "src/cache"],
    "src/scripts": [],
    "gateway/metrics": ["src/model"],
    "gateway/http": ["gateway/metrics"],
    "gateway/front": ["gateway/http", "filters"],
    "gateway/config": ["gateway/front", "src/archive", "src/cache", "src/redis"],
    "gateway/provider": ["gateway/front"],
    "gateway/redis": ["gateway/metrics", "src/tasks"],
    "gateway/intake": ["gateway/redis", "filters"],
    "gateway/access": ["gateway/intake", "gateway/front"],
    "gateway/counts": ["gateway/intake", "gateway/front"],
    "gateway/delivery": ["gateway/counts"],
    "gateway/api": ["gateway/access"],
    "gateway/streams": ["gateway/delivery", "gateway/access"],
    "gateway/dialects": ["gateway/intake", "gateway/front"],
    "gateway/serve": ["gateway/streams", "gateway/api", "gateway/config", "gateway/dialects"],
    "gateway/process": ["gateway/config", "gateway/provider", "gateway/intake", "src/tasks"],
    "gateway": ["gateway/serve", "gateway/process"],
    "cli": ["src/tasks"],
}
# These may include the following, and nothing else.
MAY_INCLUDE = {
    "tools": ["base", "filters", "gateway/intake", "gateway/front/filter_json.h", "tools"],
    "examples": [],  # <sluice/...> only: they build against the installed product
}
# Who may use a library: these rooms, and those in them.
KNOWN_TO = {
    "libwebsockets": ["gateway/http/wire.c"],
    "yajl/": ["gateway/intake/event_facts.c"],
    "sqlite3": ["src/archive/archive_sqlite.c"],
    "mysql|mariadb|errmsg|mysqld_error": ["src/archive/"],
    "unicode/": ["filters/", "src/model/"],
    "openssl/": ["gateway/http/", "gateway/front/", "gateway/config/", "gateway/dialects/dag_cbor.c", "cli/token_sign.c",
                 "src/redis/redis_tls.c"],
    "hiredis/": ["src/", "gateway/redis/", "gateway/intake/", "gateway/access/", "gateway/api/", "cli/"],
    "jansson": ["src/database/", "src/social/", "gateway/front/", "gateway/access/", "gateway/provider/", "gateway/api/",
                "gateway/dialects/", "gateway/streams/", "cli/"],
    "uv": ["gateway/"],
    "curl/": ["cli/", "gateway/provider/getter.c"],
}
FOLDERS = ["base", "filters", "src", "gateway", "cli", "tools", "examples"]


def sources(folder):
    return [file for end in ("c", "h", "def") for file in (SOURCE / folder).rglob(f"*.{end}")]


def included_by(file):
    return re.findall(r'^#\s*include "(.*)"', file.read_text(), re.MULTILINE)


def room_of(path):
    """Returns the room of a path from the root: the deepest one that contains it."""
    for folder in pathlib.PurePath(path).parents:
        if str(folder) in ROOMS:
            return str(folder)
    return None


def below(room):
    """Returns the rooms on which a room depends, directly or not, and itself."""
    return {room}.union(*(below(other) for other in ROOMS[room]))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_includes_only_what_it_stands_on(room):
    allowed = below(room)
    for file in sources(room):
        if room_of(file.relative_to(SOURCE)) != room:
            continue
        for included in included_by(file):
            assert room_of(included) in allowed, f"{file.relative_to(SOURCE)} includes {included}"


def test_every_source_is_in_a_room():
    for folder in ("base", "filters", "src", "gateway", "cli"):
        for file in sources(folder):
            assert room_of(file.relative_to(SOURCE)), file
    assert not [file for file in (SOURCE / "src").glob("*.[ch]")]


def test_no_two_rooms_include_each_other():
    includes = {room: {room_of(included) for file in sources(room)
                       if room_of(file.relative_to(SOURCE)) == room
                       for included in included_by(file)} - {room} for room in ROOMS}
    assert len([room for room in includes if includes[room]]) > 15
    while includes:
        lowest = [room for room in includes if not includes[room] & includes.keys()]
        assert lowest, f"these include each other: {includes}"
        for room in lowest:
            del includes[room]


@pytest.mark.parametrize("folder", MAY_INCLUDE)
def test_arrows(folder):
    allowed = tuple(name if name.endswith(".h") else name + "/" for name in MAY_INCLUDE[folder])
    for file in sources(folder):
        for included in included_by(file):
            assert included.startswith(allowed), f"{file.relative_to(SOURCE)} includes {included}"


@pytest.mark.parametrize("library", KNOWN_TO)
def test_a_library_is_known_where_it_is_needed(library):
    files = [file for folder in ("base", "filters", "src", "gateway", "cli") for file in sources(folder)
             if re.search(rf"^#\s*include <({library})", file.read_text(), re.MULTILINE)]
    assert files
    for file in files:
        assert str(file.relative_to(SOURCE)).startswith(tuple(KNOWN_TO[library])), file


@pytest.mark.parametrize("folder", FOLDERS)
def test_paths_are_spelled_from_the_root(folder):
    for file in sources(folder):
        for included in included_by(file):
            assert (SOURCE / included).exists(), f"{file.relative_to(SOURCE)} includes {included}"


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f != "examples"])
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
