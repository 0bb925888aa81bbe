"""A real memcached for a test, on a unix socket."""

import os
import shutil
import signal
import socket
import subprocess

from .waiting import eventually


def program():
    return shutil.which("memcached")


class Memcached:
    def __init__(self, folder):
        self.socket = folder / "memcached.sock"
        self.url = f"memcached://{self.socket}"
        self.process = None

    def start(self):
        """Starts it, empty; returns when it accepts connections."""
        user = ["-u", "root"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen([program(), "-s", str(self.socket), "-t", "1", *user],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

        def is_ready():
            assert self.process.poll() is None, "memcached ended"
            try:
                self.say("version")
                return True
            except OSError:
                return False
        eventually(is_ready, "memcached takes connections")
        return self

    def stop(self, how=signal.SIGKILL):
        if self.process:
            self.process.send_signal(how)
            self.process.wait(20)
            self.process = None

    def stall(self):
        """It accepts connections, but answers none: all its threads are stopped."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def say(self, line):
        """Returns the answer to a line, up to and including its last line."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall(line.encode() + b"\r\n")
            said = b""
            while not said.endswith(b"\r\n"):
                more = connection.recv(65536)
                if not more:
                    raise ConnectionResetError("memcached closed the connection")
                said += more
        return said.decode(errors="replace")

    def keys(self):
        """Returns its keys in readable form: "post:123", "user:4096"; keys used at this moment may be left out."""
        said = self.say("lru_crawler metadump hash")
        while not said.endswith("END\r\n"):  # it may come in parts
            said = self.say("lru_crawler metadump hash")
        names = [line.split()[0].removeprefix("key=").replace("%3A", ":")
                 for line in said.splitlines() if line.startswith("key=")]
        return sorted(name.split(":", 3)[3] for name in names)
