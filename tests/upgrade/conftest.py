"""Fixtures of the upgrade tests: the programs of an older commit, and servers."""

import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

from harness import programs  # noqa: E402
from harness.servers import Servers  # noqa: E402

COMMIT = "3d2a879"  # its databases and programs must work together with those of this tree


@pytest.fixture(scope="session")
def old():
    """Returns the build folder of COMMIT."""
    folder = programs.BUILD.resolve().parent / "upgrade" / COMMIT
    done = subprocess.run([HERE / "build", COMMIT, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=900)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout[-4000:]
    return folder / "build"


@pytest.fixture
def servers():
    servers = Servers()
    yield servers
    servers.stop()
