"""An HTTP/1.1 client on a socket, plain or TLS: it sends any bytes, valid or not, and checks strictly what it reads.

A test client must be able to misbehave, and must not tolerate errors of the server; so no library is used."""

import errno
import json
import select
import socket
import threading

from .tls import TlsSocket
from .waiting import Deadline


class ConnectionEnded(ConnectionError):
    """The server closed the connection where more bytes were due."""


class Socket:
    """A connection with a read buffer and deadlines; over TLS if there is a context, to which `more` applies. `source`:
    the address from which it connects. `first`: bytes sent before everything else, including TLS."""

    def __init__(self, port, receive_buffer=None, tls=None, source=None, first=b"", **more):
        self.socket = socket.socket()
        if source:
            self.socket.bind((source, 0))
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if receive_buffer and receive_buffer < 4096:  # on the loopback the sender would buffer 2.6 MB
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self.socket.settimeout(Deadline().seconds)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(first)
        if tls:
            self.socket = TlsSocket(self.socket, tls, **more)
        self.is_tls = bool(tls)
        self.buffer = bytearray()
        self.received = 0
        self.at_end = False

    def fileno(self):
        return self.socket.fileno()

    def send(self, data):
        self.socket.sendall(data)

    def send_aside(self, data):
        """Sends in a separate thread, for a server that does not read before its output is read. To stop, shut the
        socket down and join the thread."""
        def send():
            try:
                self.send(data)
            except OSError:
                pass  # the connection has ended
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        return thread

    def fill(self, deadline):
        """Reads once; False at the end of the stream."""
        while True:
            if not (self.is_tls and self.socket.pending()):
                deadline.wait_readable(self.socket)
            some = self._receive()
            if some is not None:
                return bool(some)

    def _receive(self):
        some = self.socket.receive(262144) if self.is_tls else self.socket.recv(262144)
        if some:
            self.received += len(some)
            self.buffer += some
        elif some is not None:
            self.at_end = True
        return some

    def has_news(self):
        """Whether anything has arrived, or the end; it remains to be read."""
        try:
            while not self.buffer and not self.at_end and select.select([self.socket], [], [], 0)[0]:
                self._receive()
        except ConnectionError:
            self.at_end = True
        return bool(self.buffer) or self.at_end

    def take(self, count):
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def read_exactly(self, count, deadline):
        while len(self.buffer) < count:
            if not self.fill(deadline):
                raise ConnectionEnded(f"end of stream {count - len(self.buffer)} bytes too early")
        return self.take(count)

    def read_line(self, deadline):
        """Returns a line without its CRLF; a bare LF is an error."""
        while True:
            end = self.buffer.find(b"\n")
            if end >= 0:
                line = self.take(end + 1)
                assert line.endswith(b"\r\n"), f"line not ended by CRLF: {line!r}"
                return line[:-2]
            if not self.fill(deadline):
                raise ConnectionEnded(f"end of stream in a line: {bytes(self.buffer)!r}")

    def read_to_end(self, deadline):
        while self.fill(deadline):
            pass
        return self.take(len(self.buffer))

    def wait_closed(self, seconds=None):
        """Discards input until the server has closed; a reset counts as closed."""
        deadline = Deadline(seconds, "the server closes the connection")
        try:
            while self.fill(deadline):
                self.buffer.clear()
        except ConnectionError:
            pass

    def half_close(self):
        try:
            if self.is_tls:
                self.socket.say_end()
            self.socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            if error.errno not in (errno.ENOTCONN, errno.EPIPE, errno.ECONNRESET):
                raise
            # the server has closed already

    def reset(self):
        """Closes with RST instead of FIN."""
        if self.is_tls:
            self.socket.reset()
            return
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Headers(dict):
    """Case-insensitive; values of a repeated header are joined with commas."""

    def add(self, name, value):
        name = name.lower()
        self[name] = f"{self[name]}, {value}" if name in self else value

    def get(self, name, default=None):
        return super().get(name.lower(), default)

    def __getitem__(self, name):
        return super().__getitem__(name.lower())

    def __contains__(self, name):
        return super().__contains__(name.lower())


class Response:
    def __init__(self, version, status, reason, headers):
        self.version, self.status, self.reason, self.headers = version, status, reason, headers
        self.body = b""

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """Returns the error object of a refusal; checks its form."""
        assert self.headers["content-type"].split(";")[0] == "application/json", self
        error = self.json["error"]
        assert set(error) <= {"code", "message", "param", "at"} and {"code", "message"} <= set(error)
        assert isinstance(error["message"], str) and error["message"]
        return error

    def __repr__(self):
        return f"<{self.status} {self.reason} {dict(self.headers)} {self.body[:400]!r}>"


def form_bytes(method, target, headers=None, body=None, version="HTTP/1.1"):
    """Returns a request as bytes. Host and Content-Length are added unless given (None: left out)."""
    lines = {"Host": "127.0.0.1"}
    if body is not None:
        lines["Content-Length"] = str(len(body))
    lines.update(headers or {})
    head = f"{method} {target} {version}\r\n"
    head += "".join(f"{k}: {v}\r\n" for k, v in lines.items() if v is not None)
    return head.encode() + b"\r\n" + (body or b"")


class HttpConnection(Socket):
    """One connection, which can carry several requests in succession."""

    def request(self, method, target, headers=None, body=None, version="HTTP/1.1"):
        """Sends a request and reads the whole answer."""
        self.send(form_bytes(method, target, headers, body, version))
        return self.read_response(method)

    def read_head(self, deadline=None):
        deadline = deadline or Deadline(what="the head of a response")
        version, status, *reason = self.read_line(deadline).decode().split(" ", 2)
        assert version in ("HTTP/1.1", "HTTP/1.0"), version
        headers = Headers()
        while line := self.read_line(deadline).decode("latin-1"):
            name, value = line.split(":", 1)
            assert name == name.strip(), f"space around a header's name: {line!r}"
            headers.add(name, value.strip())
        return Response(version, int(status), reason[0] if reason else "", headers)

    def read_response(self, method="GET"):
        deadline = Deadline(what="a response")
        response = self.read_head(deadline)
        if method == "HEAD" or response.status in (204, 304) or response.status < 200:
            return response
        if response.headers.get("transfer-encoding") == "chunked":
            while chunk := self.read_chunk(deadline):
                response.body += chunk
        elif "content-length" in response.headers:
            response.body = self.read_exactly(int(response.headers["content-length"]), deadline)
        else:
            response.body = self.read_to_end(deadline)
        return response

    def read_chunk(self, deadline):
        """Returns one chunk of a chunked body; empty: the last one."""
        size = self.read_line(deadline)
        assert size and all(c in b"0123456789abcdefABCDEF" for c in size), f"chunk size {size!r}"
        data = self.read_exactly(int(size, 16), deadline)
        assert self.read_exactly(2, deadline) == b"\r\n", "a chunk is not followed by CRLF"
        return data
