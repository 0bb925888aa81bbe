"""What a user gets from `cmake --install`: headers that compile alone, libraries that export the intended symbols,
packages that are found, examples that build."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", SOURCE / "build" / "dev")).absolute()
CC = os.environ.get("CC", "cc")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """A fresh installation."""
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def run(*command, **how):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **how)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def environment(prefix):
    """Returns an environment in which the installation is found."""
    pc, = prefix.rglob("sluice.pc")
    return {**os.environ, "PKG_CONFIG_PATH": str(pc.parent), "LD_LIBRARY_PATH": str(pc.parents[1])}


def is_sanitized():
    return "SLUICE_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text()


def declared(prefix):
    """Returns the functions that the installed headers declare."""
    return {name for header in (prefix / "include" / "sluice").glob("*.h")
            for name in re.findall(r"SL_EXPORT[^;]*?\b(sl_\w+)\(", header.read_text())}


def exported(prefix, library):
    file, = [f for f in prefix.rglob(f"{library}.so") if f.is_symlink()]
    lines = run("nm", "--dynamic", "--defined-only", file).splitlines()
    return {line.split()[2] for line in lines if line.split()[2] not in ("_init", "_fini")}


def test_libraries_show_exactly_what_the_headers_offer(prefix):
    shown = {library: exported(prefix, library) for library in ("libsluice", "libsluicefilter")}
    for library, symbols in shown.items():
        strangers = {s for s in symbols if not s.startswith("sl_") and "asan" not in s}
        assert not strangers, f"{library} shows {strangers}"
    assert not shown["libsluice"] & shown["libsluicefilter"]
    assert {s for s in shown["libsluice"] | shown["libsluicefilter"] if s.startswith("sl_")} == \
        declared(prefix)


def test_each_installed_header_stands_alone(prefix, environment, tmp_path):
    headers = list((prefix / "include" / "sluice").glob("*.h"))
    assert len(headers) > 15
    flags = run("pkg-config", "--cflags", "sluice", "sluicefilter", env=environment).split()
    for header in headers:
        run(CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags, "-x", "c",
            "-include", f"sluice/{header.name}", "/dev/null", cwd=tmp_path)
        assert '#include "' not in header.read_text()


def test_shells_complete_and_man_finds_the_pages(prefix):
    for file in ("bash-completion/completions/sluice", "zsh/site-functions/_sluice",
                 "fish/vendor_completions.d/sluice.fish"):
        assert "sluice(1)" in (prefix / "share" / file).read_text()
    pages = {page.name for page in (prefix / "share" / "man").rglob("*.[158]")}
    assert pages == {"sluice.1", "filter-match.1", "sluiced.8", "sluiced.conf.5"}


def test_example_of_the_manual_page_builds(environment, tmp_path):
    page = (SOURCE / "docs/man/libsluice.3").read_text()
    example = re.search(r"^\.Bd [^\n]*\n(#include.*?)^\.Ed", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "example.c").write_text(example[1].replace("\\e", "\\"))
    flags = run("pkg-config", "--cflags", "--libs", "sluice", "hiredis", env=environment).split()
    if is_sanitized():
        flags.append("-Wl,--allow-shlib-undefined")
    run(CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "example.c", *flags, "-o", "example", cwd=tmp_path)


@pytest.mark.parametrize("example", ["firehose-consumer", "analytics", "demo-producer", "core-c", "profile", "home-timeline", "embed-filter"])
def test_examples_build_by_their_own_makefile(environment, tmp_path, example):
    if not (SOURCE / "examples" / example).exists():
        pytest.skip("no such example")
    shutil.copytree(SOURCE / "examples" / example, tmp_path / example)
    run("make", "-C", tmp_path / example, f"CC={CC}", "CFLAGS=-O1 -Wall -Wextra -Werror",
        "LDFLAGS=" + ("-Wl,--allow-shlib-undefined" if is_sanitized() else ""), env=environment)
    assert os.access(tmp_path / example / example, os.X_OK)


def test_embedded_filters_label_lines(environment, tmp_path):
    if is_sanitized():
        pytest.skip("a program without asan cannot load a library with it")
    shutil.copytree(SOURCE / "examples" / "embed-filter", tmp_path / "embed-filter")
    run("make", "-C", tmp_path / "embed-filter", f"CC={CC}", env=environment)
    program = tmp_path / "embed-filter" / "embed-filter"
    lines = run(program, "quakes=(quake OR 地震) -drill", "pacific=suva OR apia", env=environment,
                input="Strong quake near Oslo\n东京地震\nquake drill\nsuva!\n")
    assert lines == "quakes\tStrong quake near Oslo\nquakes\t东京地震\npacific\tsuva!\n"
    refused = subprocess.run([program, "all=-cat"], capture_output=True, text=True, env=environment)
    assert refused.returncode == 2 and "rule needs at least one" in refused.stderr


def test_cmake_finds_the_package(prefix, environment, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user C)\nfind_package(sluice 0.1 REQUIRED)\n"
        "add_executable(user user.c)\ntarget_link_libraries(user sluice::sluice sluice::sluicefilter)\n")
    (tmp_path / "user.c").write_text(
        "#include <sluice/filter.h>\n#include <sluice/id.h>\nint main(void) { struct sl_filter *f;"
        " struct sl_filter_text t = {.firehose = 1}; struct sl_filter_error e; uint64_t id;"
        " return sl_id_parse(SL_SLICE(\"5\"), &id) |"
        " sl_filter_new(&t, &SL_FILTER_LIMITS_DEFAULT, &f, &e); }\n")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_EXE_LINKER_FLAGS=" + (
            "-Wl,--allow-shlib-undefined" if is_sanitized() else ""))
    run("cmake", "--build", tmp_path / "build")
    if not is_sanitized():
        run(tmp_path / "build" / "user", env=environment)


@pytest.mark.parametrize("program", ["sluiced", "sluice", "filter-match"])
def test_programs_are_installed_and_need_no_build_folder(prefix, program):
    file, = prefix.glob(f"*bin/{program}")
    assert "usage:" in run(file, "--help", env={"PATH": "/usr/bin"}).lower()
    assert str(BUILD) not in run("readelf", "--dynamic", file)
