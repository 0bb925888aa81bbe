"""Every test is run."""

import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).parent.parent
# System tests with further requirements are run by the folder that has these.
ELSEWHERE = {"system": [TESTS / "clients" / "npm" / "CMakeLists.txt"]}


@pytest.mark.parametrize("folder, files, entry", [
    ("unit", "test_*.c", r"^sluice_unit_test\((\w+)"),
    ("system", "test_*.py", r"^\s*sluice_system_test\((\w+)"),
    ("structure", "test_*.py", r"^\s*sluice_structure_test\((\w+)")])
def test_ctest_knows_every_file(folder, files, entry):
    entries = re.findall(entry, (TESTS / folder / "CMakeLists.txt").read_text(), re.MULTILINE)
    for other in ELSEWHERE.get(folder, []):
        entries += re.findall(r"-m pytest -q test_(\w+)\.py$", other.read_text(), re.MULTILINE)
    written = [file.stem.removeprefix("" if folder == "unit" else "test_")
               for file in (TESTS / folder).glob(files)]
    assert set(entries) ^ set(written) == set() and len(entries) == len(written)


def test_what_ctest_runs_over_tls_is_about_the_wire():
    """Without the mark, the same tests would run twice over plain connections."""
    entries = (TESTS / "system" / "CMakeLists.txt").read_text()
    both = re.findall(r"^sluice_system_test\((\w+) .*\b(?:WIRES|TLS_IN_RELEASE)\b", entries, re.MULTILINE)
    assert len(both) > 15
    for name in both:
        assert "pytest.mark.wires" in (TESTS / "system" / f"test_{name}.py").read_text(), name
