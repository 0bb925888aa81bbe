"""Each error code and each disconnect code of sluiced has an example in docs/, which
tests/system/test_streaming_api_docs.py and test_api_docs.py run."""

import pathlib
import re

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CALL = re.compile(r'\b(?:(?:http|api)_refuse\(\W*(?:[\w>-]+), \d{3},|refuse\w*\(&?\w+,) "([a-z_]+)"')
ROW = re.compile(r'\{\s*-\w+,\s*\d{3},\s*"([a-z_]+)"')
FAULT = re.compile(r'^ {4,8}(?:\[SL_FAULT_\w+\] = )?\{"([a-z_]+)",', re.MULTILINE)
WARNING = re.compile(r'\[SL_WARNING_\w+\] = \{"([a-z_]+)"')
LIMIT = re.compile(r'\[ADMISSION_\w+\] = \{\w+, "([a-z_]+)"')

# What no command can cause: the pages name it, and a test causes it. (Out of memory is caused in tests/unit, where no
# status is visible.)
# Which logins a user can have depends on the number of shards.
CIRCUMSTANCES = {"archive_away", "busy", "dictionary_not_ready", "draining", "internal", "keys_unavailable", "login_elsewhere",
                 "no_memory", "quota", "rate_limited", "redis_full", "timeout", "too_many_counts", "too_many_logins",
                 "too_many_revocations", "too_many_streams", "too_many_trends"}
CIRCUMSTANCES |= {"too_many_questions"}


def codes():
    found = set()
    for file in SOURCE.glob("gateway/**/*.c"):
        if file.parent.name == "dialects":
            continue  # their clients get the message without a code
        text = file.read_text()
        found |= set(CALL.findall(text)) | set(ROW.findall(text)) | set(LIMIT.findall(text))
    return found | set(FAULT.findall((SOURCE / "filters/filter_fault.c").read_text()))


def page(name):
    return (SOURCE / "docs" / name).read_text()


def examples():
    """Returns the codes in the output shown in the pages, and in the table of examples of filters.md."""
    shown = "\n".join(re.findall(r"^    .*$", page("streaming-api.md") + page("http-api.md"), re.M))
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| \d{3} \| .* \| `.+` \|$", page("filters.md"), re.M)
    return set(re.findall(r'"code":"(\w+)"', shown)) | set(re.findall(r"\w+", " ".join(rows)))


def test_codes_are_found_in_the_source():
    assert {"no_token", "bad_json", "too_many_connections", "redis_full", "bad_box", "gone"} <= codes()


@pytest.mark.parametrize("code", sorted(codes() - CIRCUMSTANCES))
def test_each_refusal_has_an_example(code):
    assert code in examples()


@pytest.mark.parametrize("code", sorted(CIRCUMSTANCES))
def test_each_circumstance_is_named_and_tested(code):
    assert f"`{code}`" in page("streaming-api.md") + page("http-api.md")
    if code == "no_memory":
        return
    tests = [file for folder in ("system", "unit") for file in (SOURCE / "tests" / folder).glob("test_*")]
    assert any(f'"{code}"' in file.read_text() for file in tests)


def test_the_api_lists_its_codes_by_their_statuses():
    rows = re.findall(r"^\| (\d{3}) \| ((?:`\w+`(?:, )?)+) \|", page("http-api.md"), re.M)
    listed = {(status, code) for status, row in rows for code in re.findall(r"\w+", row)}
    pair = re.compile(r'(?:_refuse\(\W*[\w>-]+|\{\s*-\w+), (\d{3}),\s*"([a-z_]+)"')
    given = {found for name in ("api/*.c", "front/bearer.c", "http/form.c")
             for file in (SOURCE / "gateway").glob(name) for found in pair.findall(file.read_text())}
    assert len(given) > 25 and given - listed == set()


def test_no_example_is_of_a_code_that_there_is_not():
    disconnects = set(re.findall(r'\[DISCONNECT_\w+\] = \{"([a-z_]+)"', (SOURCE / "gateway/front/disconnect.c").read_text()))
    assert len(disconnects) > 5
    warnings = set(WARNING.findall((SOURCE / "filters/filter_fault.c").read_text()))
    assert warnings and warnings <= set(re.findall(r"^\| `(\w+)` \|", page("filters.md"), re.M))
    of_estimates = set(re.findall(r'print_own_warning\(json, &?is_first, "(\w+)"',
                                  (SOURCE / "gateway/counts/estimate.c").read_text()))
    assert len(of_estimates) == 4 and all(f"`{code}`" in page("streaming-api.md") for code in of_estimates)
    assert examples() - codes() - disconnects - warnings - of_estimates == {"behind", "token_expiring"}
