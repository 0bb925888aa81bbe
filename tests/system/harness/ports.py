"""Ports for servers that must be told one, instead of asking for any that is free."""

import random
import socket


def steady_port():
    """A free port that nobody gets who asks for any: neither an outgoing connection nor a server on
    port 0. So it is still free when its server starts, however late, and starts again."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as bounds:
        first = int(bounds.read().split()[0])
    while True:
        port = random.SystemRandom().randrange(10000, first)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
