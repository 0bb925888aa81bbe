"""Host names for a test: sluiced runs in a mount namespace with its own /etc/hosts and resolver."""

import random
import select
import socket
import subprocess

_PREPARE = ('mount --bind "$0/hosts" /etc/hosts && mount --bind "$0/resolv.conf" /etc/resolv.conf && '
            'mount --bind "$0/nsswitch.conf" /etc/nsswitch.conf && exec "$@"')


class Names:
    """What the hosts file does not have is asked of a resolver that never answers."""

    def __init__(self, folder):
        self.folder = folder / "names"
        self.folder.mkdir()
        self.resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        address = f"127.{random.randrange(1, 255)}.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
        self.resolver.bind((address, 53))
        (self.folder / "resolv.conf").write_text(f"nameserver {address}\n")
        (self.folder / "nsswitch.conf").write_text("hosts: files dns\n")
        self.set()

    def set(self, **addresses):
        """set(name=[address, ...]): replaces the hosts file; running programs see it."""
        lines = [f"{address} {name}.test\n" for name, some in addresses.items() for address in some]
        (self.folder / "hosts").write_text("".join(lines))

    @property
    def prefix(self):
        """The words before a command that is to run with these names."""
        return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _PREPARE, str(self.folder)]

    def is_asked(self):
        """Has any program asked the resolver?"""
        return bool(select.select([self.resolver], [], [], 0)[0])

    def missing(self):
        """Why this is not possible here; empty: it is."""
        done = subprocess.run([*self.prefix, "true"], capture_output=True, text=True)
        return done.stderr.strip() if done.returncode else ""

    def close(self):
        self.resolver.close()
