"""docs/getting-started.md, pasted into one shell, section by section, as it stands."""

import re

from harness import programs
from harness.pages import Shell, examples, pattern, without_space
from harness.waiting import eventually

PAGE = (programs.SOURCE / "docs/getting-started.md").read_text()


def section(number):
    """Its text, each command on one line."""
    return PAGE.split(f"\n## {number}. ")[1].split("\n## ")[0].replace("\\\n", " ")


class Reader:
    """Somebody who follows the page, with a server that is there already."""

    def __init__(self, gateway, folder):
        self.gateway, self.output = gateway, folder / "output"
        self.shell = Shell(SLUICE_DATA_DIR=gateway.data_dir)
        self.shell.run(f"cd {folder}; cp {gateway.secret_file} jwt.secret")

    def local(self, command):
        """Where the server is, the page says for its reader."""
        url = f"http://127.0.0.1:{self.gateway.port}"
        return command.replace("http://127.0.0.1:8080", url).replace("sluice tail", f"sluice tail --url {url}")

    def expect(self, expected, printed):
        assert re.match(pattern(expected) + "$", without_space(printed)), (expected, printed)

    def paste(self, command, expected):
        if not command.endswith("&"):
            self.expect(expected, self.shell.run(self.local(command)))
            return
        before = self.gateway.metrics()["sluice_streams_opened_total"]
        self.shell.run(f"{self.local(command[:-1])} >{self.output} &")
        eventually(lambda: self.gateway.metrics()["sluice_streams_opened_total"] > before,
                   "the stream stands")
        if expected:
            self.see(expected)

    def see(self, expected):
        """What the stream behind `&` prints."""
        eventually(lambda: re.match(pattern(expected), without_space(self.output.read_text())),
                   f"the stream brings {expected}")


def test_page_works_as_it_stands(servers, tmp_path):
    reader = Reader(servers.gateway(None), tmp_path)
    for command, expected in examples(section(3)):
        reader.paste(command, expected)

    export = re.search(r"^    (export TOKEN=.*)$", section(4), re.M)[1]
    reader.shell.run(export)
    tail, (post, printed), *rest = examples(section(4))
    reader.paste(*tail)
    post_id, event = printed.split(" ", 1)
    reader.paste(post, post_id)
    reader.see(event)
    assert [command for command, _ in rest][::2] == ["kill $!", "kill $!"]
    for command, expected in rest:
        reader.paste(command, expected)

    (curl, expected), (end, _) = examples(section(5))
    reader.paste(curl, expected)
    assert end == "kill %1"  # the server of the page is a job of its shell
    reader.shell.close()
