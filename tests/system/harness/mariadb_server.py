"""A real mariadbd for a test: a unix socket in a fresh folder; TCP only on demand."""

import os
import pathlib
import shutil
import signal
import subprocess

from .waiting import eventually


def mariadb_program():
    return shutil.which("mariadbd", path="/usr/sbin:/usr/bin:/usr/local/sbin")


def is_installed():
    return bool(mariadb_program())


class MariadbServer:
    """With `users`, it has users with permissions (which takes seconds to install); without, anybody may do anything.
    `options` are mariadbd's own."""

    def __init__(self, folder, users=False, port=0, options=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = self.folder / "data"
        self.socket = self.folder / "mariadb.sock"
        self.users, self.port, self.options = users, port, options
        self.process = None
        self.as_root = ["--user=root"] if os.geteuid() == 0 else []

    def _install(self):
        done = subprocess.run(
            ["mariadb-install-db", "--no-defaults", f"--datadir={self.data}", "--skip-test-db",
             "--auth-root-authentication-method=normal", "--innodb-log-file-size=8M", *self.as_root],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=120, env={**os.environ, "TMPDIR": str(self.folder)})  # several at a time would overwrite each other's files
        assert done.returncode == 0, done.stdout

    def start(self):
        """Starts it, or starts it again on the same socket and data; returns when it answers."""
        if not self.data.exists():
            if self.users:
                self._install()
            else:
                self.data.mkdir()
        # The second address: a name of the server that Connector/C does not take for the local machine.
        network = [f"--port={self.port}", "--bind-address=127.0.0.1,127.0.0.2"] if self.port \
            else ["--skip-networking"]
        log = self.folder / "mariadb.log"
        with open(log, "ab") as out:
            said_before = out.tell()
            self.process = subprocess.Popen(
                [mariadb_program(), "--no-defaults", f"--socket={self.socket}",
                 f"--datadir={self.data}", "--innodb-buffer-pool-size=16M",
                 "--innodb-log-file-size=8M", "--skip-log-bin", "--performance-schema=OFF",
                 *([] if self.users else ["--skip-grant-tables"]), *network, *self.as_root,
                 *self.options],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

        def is_ready():
            ended = self.process.poll() is not None
            said = log.read_bytes()[said_before:]
            assert not ended, f"mariadbd ended: {said.decode(errors='replace')}"
            return b"ready for connections" in said
        eventually(is_ready, "mariadbd accepts connections", 60)
        return self

    def stop(self, how=signal.SIGKILL):
        if self.process:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None

    def freeze(self):
        """Returns when all its threads have stopped."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def sql(self, text):
        """Returns what the client prints: one line per row, columns separated by tabs. Since 11.4 it would verify a
        server's certificate even on a socket."""
        done = subprocess.run(
            ["mariadb", "--no-defaults", "--skip-ssl", "-u", "root", "-S", self.socket, "--batch",
             "--skip-column-names"], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
