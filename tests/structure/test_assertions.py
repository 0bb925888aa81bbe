"""Assertions are enabled in every build, whatever its type and flags."""

import json
import os
import pathlib
import shlex
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", SOURCE / "build" / "dev")).absolute()
CC = os.environ.get("CC", "cc")


def run(*command, **how):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **how)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def asserts(file, *options):
    """Does the object or program call the function that a failed assertion calls?"""
    return "__assert_fail" in run("nm", "--undefined-only", *options, file)


def smallest_with_an_assertion(commands, folder):
    files = [command for command in commands if pathlib.Path(command["file"]).is_relative_to(SOURCE / folder)
             and " assert(" in pathlib.Path(command["file"]).read_text()]
    return min(files, key=lambda command: pathlib.Path(command["file"]).stat().st_size)


@pytest.mark.parametrize("program", ["gateway/sluiced", "cli/sluice", "libsluice.so", "libsluicefilter.so"])
def test_what_was_built_has_assertions(program):
    assert asserts(BUILD / program, "--dynamic")


@pytest.mark.parametrize("build_type, flags", [
    ("Debug", ""), ("RelWithDebInfo", ""), ("Release", ""), ("MinSizeRel", ""), ("", "-DNDEBUG"),
    ("Own", "-O1 -DNDEBUG")])
def test_build_type_has_assertions(build_type, flags, tmp_path):
    run("cmake", "-S", SOURCE, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_C_COMPILER={CC}",
        f"-DCMAKE_BUILD_TYPE={build_type}", f"-DCMAKE_C_FLAGS_{build_type.upper() or 'RELEASE'}={flags}"
        if flags and build_type else f"-DCMAKE_C_FLAGS={flags}",
        "-DSLUICE_DASHBOARD=OFF", "-DBUILD_TESTING=OFF")
    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    for command in commands:
        if "/examples/" in command["file"]:
            continue  # users' programs, which they build with their own flags
        defined = [word for word in shlex.split(command["command"]) if word.endswith("NDEBUG")]
        assert defined[-1:] == ["-UNDEBUG"], command["file"]
    for folder in ["filters", "src", "gateway"]:
        command = smallest_with_an_assertion(commands, folder)
        words = shlex.split(command["command"])
        words[words.index("-o") + 1] = str(tmp_path / "asserting.o")
        run(*words, cwd=command["directory"])
        assert asserts(tmp_path / "asserting.o")
