"""Ports for servers that must be given one, instead of using any free one."""

import random
import socket


def steady_port():
    """Returns a free port outside of the range that the kernel assigns to outgoing connections and to servers on port
    0. So it is still free when its server starts later, or starts again."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as bounds:
        first = int(bounds.read().split()[0])
    while True:
        port = random.SystemRandom().randrange(10000, first)
        if is_free(port):
            return port


def steady_ports(count, distance):
    """Returns the first of `count` consecutive free ports; the ports `distance` above them are free, too."""
    while True:
        first = steady_port()
        if first + distance + count < 65536 and all(
                is_free(first + n + far) for n in range(count) for far in (0, distance)):
            return first


def is_free(port):
    """Does nobody listen there?"""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False
