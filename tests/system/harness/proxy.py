"""A TCP proxy in front of a server, whose network can be cut: connections stay open, but nothing is transmitted."""

import selectors
import socket
import struct
import threading


class Proxy:
    def __init__(self, target):
        """`target`: the path of a unix socket, or a TCP port of this machine."""
        self.target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._wake, self._woken = socket.socketpair()
        self._peers = {}
        self._is_cut = self._is_closing = self._is_resetting = False
        self._seen = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self):
        """Returns when nothing is transmitted any more; new connections are accepted but silent."""
        self._tell(cut=True)

    def reset(self):
        """Ends every connection with RST, like a host that has lost its state; data in flight is lost. The network
        works again afterwards."""
        self._is_resetting = True
        self._tell(cut=False)

    def heal(self):
        """What was sent meanwhile arrives, as over a network that retransmits."""
        self._tell(cut=False)

    def close(self):
        self._is_closing = True
        self._tell(cut=False)
        self._thread.join(20)

    def _tell(self, cut):
        self._is_cut = cut
        self._wake.send(b"x")
        assert self._seen.acquire(timeout=20)

    def _connect(self):
        if isinstance(self.target, int):
            return socket.create_connection(("127.0.0.1", self.target))
        there = socket.socket(socket.AF_UNIX)
        there.connect(str(self.target))
        return there

    def _accept(self):
        here = self._listener.accept()[0]
        try:
            there = self._connect()
        except OSError:
            here.close()
            return
        self._peers[here], self._peers[there] = there, here

    def _drop(self, connection):
        other = self._peers.pop(connection, None)
        connection.close()
        if other:
            del self._peers[other]
            other.close()

    def _reset_all(self):
        """The server's side is closed in the usual way: only clients see a reset."""
        self._is_resetting = False
        for here in [end for end in self._peers if end.family == socket.AF_INET]:
            here.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for end in list(self._peers):
            if end in self._peers:
                self._drop(end)

    def _pass_on(self, connection):
        try:
            bytes_ = connection.recv(65536)
            if bytes_:
                self._peers[connection].sendall(bytes_)
        except OSError:
            bytes_ = b""
        if not bytes_:
            self._drop(connection)

    def _run(self):
        while not self._is_closing:
            with selectors.DefaultSelector() as selector:
                heard = [self._woken] if self._is_cut else [self._woken, self._listener, *self._peers]
                for connection in heard:
                    selector.register(connection, selectors.EVENT_READ)
                ready = [key.fileobj for key, _ in selector.select()]
            for connection in ready:
                if connection is self._woken:
                    self._woken.recv(1)
                    if self._is_resetting:
                        self._reset_all()
                    self._seen.release()
                    break  # check which listeners are active now
                if connection is self._listener:
                    self._accept()
                elif connection in self._peers:
                    self._pass_on(connection)
        self._seen.release()  # this may be the only sign that the client closed
        for connection in list(self._peers):
            self._drop(connection)
        self._listener.close()
        self._wake.close()
        self._woken.close()
