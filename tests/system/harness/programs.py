"""Where the tested programs are: named by ctest, or in a build folder of the source tree."""

import os
import pathlib

SOURCE = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", SOURCE / "build" / "dev")).absolute()
SHARED = SOURCE.parent / "shared"


def _program(folder, name, build=None):
    path = pathlib.Path(build or BUILD) / folder / name
    if not path.exists():
        raise FileNotFoundError(f"{path}: build it, or say in SLUICE_BUILD where the build is")
    return str(path)


def sluiced(build=None):
    """`build`: the build folder of another tree."""
    return _program("gateway", "sluiced", build)


def sluice(build=None):
    return _program("cli", "sluice", build)


def sluice_killed():
    return _program("tests/support", "sluice_killed")


def example(name):
    return _program(f"examples/{name}", name)


def have_sanitizer():
    """The programs were built with a sanitizer; then there is no clock shim."""
    return not (BUILD / "tests" / "support" / "clock_shim.so").exists()


def clock_shim():
    return _program("tests/support", "clock_shim.so")


def filter_match():
    return _program("tools", "filter-match")


# Without its quarantine asan frees memory at once, so that memory can be measured.
NO_QUARANTINE = {"ASAN_OPTIONS": "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}


# Tests exceed the default limits per minute. Tests of these limits set them as options.
UNBOUNDED = {f"SLUICE_MAX_{what}": "0" for what in (
    "CONNECTS_PER_MINUTE", "CONNECTS_PER_MINUTE_PER_ADDRESS", "BAD_TOKENS_PER_MINUTE",
    "REQUESTS_PER_SECOND", "REQUESTS_PER_SECOND_PER_ADDRESS", "EVENTS_PER_DAY", "BYTES_PER_DAY",
    "REPLAYED_PER_DAY")}


def environment(**more):
    """Returns the environment of a tested program: ours, without settings that would affect it, and without limits of
    use."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE")}
    env.update(UNBOUNDED)
    env.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    env.update({k: str(v) for k, v in more.items()})
    return env
