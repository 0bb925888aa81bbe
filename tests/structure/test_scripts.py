"""Every script opens its shard before it does anything else: a shard with another number or schema, or one that is
being moved to another node of a cluster, is refused before a key is accessed."""

import pathlib
import re

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "src" / "scripts"
PRELUDES = {"common", "homes"}
OPENS = re.compile(r"\b(?:open_shard|check_shard|refuse_if_moving)\(")
TOUCHES = re.compile(r"\bp?call\(|\b(?:answered|emit|enqueue|read_\w+|take_id)\(")


def scripts():
    return sorted(file for file in SCRIPTS.glob("*.lua") if file.stem not in PRELUDES)


def statements(text):
    """Returns the lines outside of functions, without comments."""
    text = re.sub(r"^(?:local )?function.*?^end$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for line in text.splitlines() if not line.startswith("--")]


def test_there_are_scripts():
    assert len(scripts()) > 40


@pytest.mark.parametrize("script", scripts(), ids=lambda file: file.stem)
def test_the_shard_is_opened_first(script):
    lines = statements(script.read_text())
    opened = next(i for i, line in enumerate(lines) if OPENS.search(line))
    before = [line for line in lines[:opened] if TOUCHES.search(line)]
    # init checks whether there is a shard to open
    assert before == (["local meta = read_meta()"] if script.stem == "init" else [])
