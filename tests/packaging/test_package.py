"""The Debian package, from cpack to purge."""

import os
import pathlib
import subprocess

import pytest

from harness.programs import BUILD

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    done = subprocess.run(
        [os.environ.get("CMAKE_CPACK_COMMAND", "cpack"), "--config", BUILD / "CPackConfig.cmake",
         "-B", folder], cwd=folder, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    file, = folder.glob("sluice_*.deb")
    return file


def test_it_depends_on_what_its_programs_use(package):
    told = subprocess.run(["dpkg-deb", "-f", package, "Depends"], check=True, text=True,
                          capture_output=True).stdout
    for library in ("libwebsockets-evlib-uv", "libwebsockets", "libhiredis", "libuv1", "libyajl2",
                    "libjansson4", "libsqlite3-0", "libmariadb3", "libicu", "libssl3", "libcurl4"):
        assert library in told, told


def test_shells_find_their_completions(package):
    files = subprocess.run(["dpkg-deb", "-c", package], check=True, text=True, capture_output=True).stdout
    for file in ("bash-completion/completions/sluice", "zsh/vendor-completions/_sluice",
                 "fish/vendor_completions.d/sluice.fish", "man/man1/sluice.1"):
        assert f"./usr/share/{file}\n" in files, files


def namespaces_are_allowed():
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"],
                          capture_output=True).returncode == 0


def test_install_start_upgrade_stop_remove_purge(package, tmp_path):
    if not namespaces_are_allowed():
        pytest.skip("needs root and namespaces of its own")
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child",
                           HERE / "package_life.sh", package, tmp_path],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=500)
    assert done.returncode == 0, done.stdout
