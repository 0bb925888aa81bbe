"""The release tarball contains the bundled dashboard."""

import subprocess

import pytest

from harness.programs import SOURCE


def test_tarball_needs_no_node(tmp_path):
    if not (SOURCE / ".git").exists():
        pytest.skip("the tarball is made of a git checkout")
    told = subprocess.run([SOURCE / "scripts" / "dist", tmp_path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "xzf", told.split()[-1], "-C", tmp_path], check=True)
    source, = (path for path in tmp_path.iterdir() if path.is_dir())
    assert (source / "README.md").exists() and not (source / ".git").exists()
    done = subprocess.run(["cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja",
                           "-DBUILD_TESTING=OFF", "-DSLUICE_NODE=NOTFOUND", "-DSLUICE_NPM=NOTFOUND"],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and "Dashboard: the one in web/dist" in done.stdout, done.stdout
    subprocess.run(["cmake", "--build", tmp_path / "build", "--target", "sluice_dashboard"],
                   check=True, stdout=subprocess.DEVNULL)
