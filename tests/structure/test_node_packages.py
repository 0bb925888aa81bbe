"""All npm packages are pinned, including indirect ones, and can be fetched from any registry."""

import json
import pathlib
import re

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["web", "tests/browser", "clients/typescript", "tests/clients/npm"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_packages_are_pinned_by_version_and_content(folder):
    package = json.loads((SOURCE / folder / "package.json").read_text())
    wanted = {**package.get("dependencies", {}), **package.get("devDependencies", {})}
    assert wanted
    locked = json.loads((SOURCE / folder / "package-lock.json").read_text())["packages"]
    for name, version in wanted.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), f"{name}: {version} is no exact version"
        assert locked[f"node_modules/{name}"]["version"] == version
    for path, package in locked.items():
        if path:
            assert package["integrity"].startswith("sha512-"), path


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_registry_is_written_down(folder):
    packages = json.loads((SOURCE / folder / "package-lock.json").read_text())["packages"]
    for path, package in packages.items():
        package.pop("funding", None)  # addresses for donations
        assert "resolved" not in package and "://" not in json.dumps(package), path
