"""systemd accepts the unit, and gives the service few permissions."""

import subprocess

import pytest

from harness.programs import BUILD


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("root") / "usr"
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    return prefix / "lib/systemd/system/sluiced.service"


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *map(str, arguments)], text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_exposure_is_below_three(unit):
    done = analyze("security", "--offline=true", "--threshold=30", unit)
    assert done.returncode == 0, done.stdout[-300:]
    assert "Overall exposure level for sluiced.service: " in done.stdout


def test_systemd_finds_nothing_wrong(unit):
    said = analyze("verify", "--man=no", unit).stdout
    assert "sluiced" not in said, said
