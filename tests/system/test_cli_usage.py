"""Help texts of `sluice`, and its messages about wrong arguments. No Redis is needed."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import programs

GROUPS = ["user", "config", "common", "cluster"]


@pytest.fixture
def cli(cli_for):
    return cli_for(None)


@pytest.fixture(scope="module")
def listed():
    """The names of all commands in the list of commands."""
    said = subprocess.run([programs.sluice(), "help"], env=programs.environment(), check=True,
                          capture_output=True, text=True).stdout
    rows = [line for line in said[:said.index("Options of every")].splitlines() if line.startswith("  ")]
    return [row[2:21].strip() for row in rows]


def built(name):
    return pathlib.Path(programs.sluice()).parent / name


def test_help_lists_everything(cli, listed):
    assert len(listed) > 30 and {"post", "user add", "tasks retry", "help"} <= set(listed)
    whole = cli.run("help")
    assert all(len(line) <= 80 for line in whole.splitlines())
    assert cli.run("-h") == whole and cli.run("--help") == whole
    for option in ("--redis URL", "--archive URL", "--cache URL", "--wait-replicas N", "--version", "Exit status"):
        assert option in whole


def test_reader_that_has_seen_enough_is_no_failure():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([programs.sluice(), "help"], env=programs.environment(), stdout=writer,
                          stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([programs.sluice(), "help"], env=programs.environment(), stdout=full,
                              stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1 and b"cannot write the result: No space left" in done.stderr


def test_every_command_says_what_it_takes_with_an_example(cli, listed):
    for name in listed:
        said = cli.run(*name.split(), "--help")
        assert said.splitlines()[0].startswith(f"usage: sluice {name}"), name
        assert f"sluice {name}" in said[said.index("Examples:"):], name
        assert cli.run("help", *name.split()) == said
        assert all(len(line) <= 80 for line in said[:said.index("Examples:")].splitlines()), name


@pytest.mark.parametrize("group", GROUPS)
def test_groups_list_their_commands(cli, listed, group):
    inside = [name for name in listed if name.startswith(group + " ")]
    cli.run(group, status=2)
    for name in inside:
        assert name in cli.done.stderr
    for words in ([group, "--help"], [group, "-h"], ["help", group], [group, "help"]):
        assert all(name in cli.run(*words) for name in inside)


def test_no_command_lists_them(cli, listed):
    cli.run(status=2)
    assert not cli.done.stdout and all(name in cli.done.stderr for name in listed)


@pytest.mark.parametrize("words, meant", [
    ("pots", "post"), ("hom", "home"), ("usr", "user"), ("user ad", "user add"), ("user shwo ada", "user show"),
    ("taskss", "tasks"), ("help pots", "post"), ("folow a b", "follow"), ("complet", "completion")])
def test_unknown_commands_suggest_the_nearest(cli, words, meant):
    cli.run(*words.split(), status=2)
    assert f"is '{meant}' meant?" in cli.done.stderr


def test_what_is_far_from_all_is_not_guessed(cli):
    cli.run("zzzzzz", status=2)
    assert "'sluice help' lists them" in cli.done.stderr and "meant?" not in cli.done.stderr


@pytest.mark.parametrize("words, said", [
    ("post --usr ada x", "is --user meant?"),
    ("--user ada post x", "--user goes after the command's name: sluice post --user"),
    ("user --redis x add ada", "options go before 'user' or after all words"),
    ("post x --user", "--user needs a value: --user USER"),
    ("top --once=3", "--once takes no value"),
    ("post x", "--user USER is needed"),
    ("post --user ada -hello", "write -- before an argument"),
    ("post --user ada Tea at five", "put it in quotes"),
    ("top --url a --url b", "--url is given twice"),
    ("top --cache a --cache b", "--cache is given twice"),
    ("home ada --li 5 --re x --l 3", "--limit is given twice"),
    ("init --l 3", "--l may mean several options"),
    ("like --user ada", "the ID of one post is needed"),
    ("user show 99999999999999999999", "is written @9999"),
    ("post --user ada --quote x text", "--quote must be the id of a post"),
    ("post --user ada --media {] text", "--media must be a JSON object"),
    ("top --interval soon", "'soon' is not a duration like 90s, 30m, 24h or 7d"),
    ("top --interval 2h", "--interval"),
    ("worker --lease-ms 2h", "lease-ms"),
    ("completion", "bash, zsh or fish"),
    ("completion tcsh", "bash, zsh or fish"),
])
def test_mistakes_are_told_with_what_to_do(cli, words, said):
    cli.run(*words.split(), status=2)
    assert said in cli.done.stderr and not cli.done.stdout


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "secret"
    file.write_text("x" * 64)
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("options, said", [
    (["--scope", "stream:filtre"], "is 'stream:filter' meant?"),
    (["--scope", "stream:filter  everything"], "unknown scope 'everything'; there are stream:filter"),
    (["--scope", "Read"], "is 'read' meant?"),
    (["--scope", ""], "permits nothing"),
    (["--scope", "read", "write"], "--scope 'read write'"),
    (["--scope", "read", "--claim", 'scope=["read"]'], "must be one string"),
    (["--scope", "read", "--claim", "lim=5"], "lim must be an object"),
    (["--scope", "read", "--claim", 'lim={"track":-1}'], "track must be a whole number"),
    (["--scope", "read", "--claim", 'lim={"track":4294967296}'], "to 4294967295"),
    (["--scope", "read", "--claim", 'lim={"track":1.5}'], "track must be a whole number"),
    (["--scope", "read", "--claim", 'lim={"sample":101}'], "sample must be a percentage"),
    (["--scope", "read", "--claim", 'lim={"tracks":1}'], "unknown limit 'tracks'"),
    (["--scope", "read", "--claim", "sub=7"], "the subject must be a string of 1 to 64 bytes"),
    (["--scope", "read", "--claim", 'sub="ada"'], "'ada' is not the id of a user"),
    (["--scope", "admin", "--sub", "x" * 65], "the subject must be a string of 1 to 64 bytes"),
    (["--scope", "admin", "--sub", ""], "the subject must be a string of 1 to 64 bytes"),
    (["--scope", "stream:home", "--sub", "99999999999999999999"], "is not the id of a user"),
    (["--scope", "read", "--claim", "exp=5"], "expired already"),
    (["--scope", "read", "--claim", 'exp="soon"'], "exp and nbf must be numbers: Unix times"),
    (["--scope", "read", "--ttl", "soon"], "'soon' is not a duration"),
    (["--scope", "read", "--ttl", "0s"], "--ttl must be greater than 0 and at most 3650d"),
    (["--scope", "read", "--ttl", "100000d"], "--ttl must be greater than 0 and at most 3650d"),
])
def test_tokens_that_no_server_takes_are_not_made(cli, secret, options, said):
    subject = [] if "--sub" in options else ["--sub", "1"]
    cli.run("token", "--secret-file", secret, *subject, *options, status=2)
    assert said in cli.done.stderr and not cli.done.stdout


@pytest.mark.parametrize("options", [
    ["--sub", "ops", "--scope", "admin read write"], ["--sub", "try", "--scope", "stream:filter stream:sample"],
    ["--sub", "5", "--scope", "read write stream:home stream:firehose"],
    ["--sub", "x" * 64, "--scope", "admin", "--claim", 'lim={"track":0,"sample":0.5}', "--claim", "nbf=5"]])
def test_tokens_that_are_of_use_are_made(cli, secret, options):
    assert cli.run("token", "--secret-file", secret, *options).count(".") == 2


def test_manual_has_every_command_and_option(cli, listed):
    page = built("sluice.1").read_text()
    synopsis = page[page.index(".Sh SYNOPSIS"):page.index(".Sh DESCRIPTION")]
    for name in listed:
        words = " ".join(f'"{word}"' for word in name.split())
        assert f".Cm {words}\n" in synopsis and f"\n.Ss {name}\n" in page, name
        usage = cli.run(*name.split(), "--help").split("\n\n")[0]
        for option in (word.strip("[].") for word in usage.split() if "--" in word):
            assert option.replace("-", "\\-", 2) in synopsis, (name, option)
    assert ".Sh EXIT STATUS" in page
    assert not re.search(r"^@\w+@$", page, re.MULTILINE)  # placeholders of the template


def test_manual_lists_the_commands_of_a_server(cli, listed):
    """Those with --cacert have the URL and the token from the environment."""
    entry = built("sluice.1").read_text().split(".It Ev SLUICE_URL\n")[1].split("\n.It ")[0]
    assert set(re.findall(r"^\.Cm (\w+)", entry, re.M)) == {
        name for name in listed if "[--cacert FILE]" in cli.run(*name.split(), "--help")}


@pytest.mark.skipif(not shutil.which("groff"), reason="groff formats it")
def test_manual_is_good_mdoc():
    done = subprocess.run(["groff", "-mdoc", "-Tutf8", built("sluice.1")], capture_output=True, text=True)
    assert done.returncode == 0 and "error" not in done.stderr and "warning: macro" not in done.stderr


# --- completions ---------------------------------------------------------------------------------

ASK = r"""
source "$1"; shift
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_sluice
printf '%s\n' "${COMPREPLY[@]}"
"""


def completed(*words):
    """What bash offers for the last of the words."""
    done = subprocess.run(["bash", "--norc", "-c", ASK, "bash", built("sluice.bash"), "sluice", *words],
                          capture_output=True, text=True, check=True)
    assert not done.stderr
    return set(done.stdout.split())


def test_bash_completes_commands(listed):
    assert completed("") == {name.split()[0] for name in listed}
    assert completed("--redis", "x", "fo") == {"follow", "followers", "following"}
    assert completed("user", "") == {"add", "show", "rename"}
    assert completed("tasks", "") == {"retry", "drop"}
    assert completed("user", "--redis", "add", "") == {"add", "show", "rename"}  # the value of an option


def test_bash_completes_options_and_values():
    assert {"--user", "--quote", "--redis", "--help"} <= completed("post", "--")
    assert completed("post", "--re") == {"--redis", "--reply-to", "--repost"}
    assert completed("post", "--user", "ada", "--audience", "p") == {"public"}
    assert completed("post", "--user", "") == set()
    assert completed("tail", "f") == {"filter", "firehose"}
    assert completed("tail", "--track", "cat", "h") == {"home"}
    assert completed("token", "--alg", "") == {"HS256", "HS384", "HS512"}
    assert completed("config", "set", "log-") == {"log-age", "log-count"}
    assert completed("completion", "") == {"bash", "zsh", "fish"}
    assert "--as" not in completed("followers", "--") and "--as" in completed("likes", "--")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_what_is_installed_and_good_syntax(cli, shell):
    file = built(f"sluice.{shell}")
    assert cli.run("completion", shell) + "\n" == file.read_text()
    if shutil.which(shell):
        subprocess.run([shell, "-n", file], check=True)
