"""No two files of a folder call each other in a circle, unless one of them gives the reason.

What calls what is read from the objects of the build: a file calls another if it uses a symbol that the other one
defines. A pointer that is passed on (a callback) does not count. Files that must call each other say so in the opening
comment of one of them, `Calls in a circle with other.c, third.c: ` and then the reason."""

import os
import pathlib
import re
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", SOURCE / "build" / "dev")).absolute()
FOLDERS = ("base", "filters", "src", "gateway", "cli")


def objects():
    """Returns the object of each source, by the source's path from the root."""
    found = {}
    for folder in FOLDERS:
        for file in (BUILD / folder).rglob("*.c.o"):
            inside = re.search(r"\.dir/(.*)\.o$", str(file))
            source = pathlib.Path(folder, inside[1])
            if (SOURCE / source).exists():
                found[source] = file
    return found


def symbols(files):
    """Returns for each object the symbols that it defines for others, and those of others that it uses."""
    found = {file: (set(), set()) for file in files}
    listed = subprocess.run(["nm", "--print-file-name", *files], check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        file, symbol = line.rsplit(":", 1)
        kind, name = symbol.split()[-2:]
        defined, used = found[pathlib.Path(file)]
        if kind == "U":
            used.add(name)
        elif kind.isupper():
            defined.add(name)
    return found


def calls_by_room():
    """Returns {room: {file: {the files of the room that it calls}}}."""
    found = objects()
    symbols_of = symbols(found.values())
    known = {source: symbols_of[file] for source, file in found.items()}
    rooms = {}
    for source, (_, used) in known.items():
        calls = rooms.setdefault(str(source.parent), {}).setdefault(source.name, set())
        calls.update(other.name for other, (defined, _) in known.items()
                     if other.parent == source.parent and other != source and used & defined)
    return rooms


CALLS = calls_by_room()


def reached(calls, file):
    seen, left = set(), [file]
    while left:
        for other in calls[left.pop()] - seen:
            seen.add(other)
            left.append(other)
    return seen


def circles(calls):
    """Returns the sets of files that reach each other."""
    reach = {file: reached(calls, file) for file in calls}
    return {frozenset(other for other in reach[file] if file in reach[other])
            for file in calls if file in reach[file]}


def excused(room):
    """Returns the circles for which a file of the room gives a reason."""
    found = set()
    for file in (SOURCE / room).glob("*.c"):
        comment = re.match(r"/\*(.*?)\*/", file.read_text(), re.S)
        words = re.sub(r"\s*\n \*\s*", " ", comment[1]) if comment else ""
        for others in re.findall(r"Calls in a circle with ([\w., ]+): \w", words):
            found.add(frozenset([file.name, *re.findall(r"\w+\.c", others)]))
    return found


def test_a_circle_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {frozenset("abc")}
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == set()


def test_the_build_is_read():
    assert len(CALLS) > 15
    assert "ring.c" in CALLS["gateway/delivery"]["deliver.c"]
    assert "text.c" in CALLS["src/model"]["login.c"]


@pytest.mark.parametrize("room", sorted(CALLS))
def test_files_of_a_room_call_each_other_in_no_circle(room):
    found, said = circles(CALLS[room]), excused(room)
    assert not found - said, "in a circle: " + "; ".join(" ".join(sorted(c)) for c in found - said)
    assert not said - found, "no circle any more: " + "; ".join(" ".join(sorted(c)) for c in said - found)
