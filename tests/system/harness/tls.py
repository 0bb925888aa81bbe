"""The client's side of TLS, and certificates for servers.

A session uses memory instead of the socket, so that a test can stop in the middle of a handshake, close one direction
only, and write in one thread while another one reads."""

import socket
import ssl
import subprocess
import threading


class Certificate:
    """A self-signed certificate and its key, as files created with openssl."""

    def __init__(self, folder, name="localhost"):
        self.file, self.key = folder / "cert.pem", folder / "key.pem"
        self.renew(name)

    def renew(self, name="localhost"):
        """Writes another one to the same files. `context` trusts this one and not the last."""
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", self.key, "-out", self.file, "-days", "2", "-subj", f"/CN={name}",
             "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"], check=True, capture_output=True)
        self.context = self.client()

    def expire(self):
        """With the same name and key, but already expired."""
        folder = self.file.parent
        config, request = folder / "ca.conf", folder / "request.pem"
        (folder / "index.txt").write_text("")
        config.write_text(f"[ca]\ndefault_ca = it\n[it]\ndatabase = {folder}/index.txt\nnew_certs_dir = {folder}\n"
                          "default_md = sha256\npolicy = any\nrand_serial = yes\nx509_extensions = names\n[any]\n"
                          "commonName = supplied\n[names]\nsubjectAltName = IP:127.0.0.1,DNS:localhost\n")
        for command in (["req", "-new", "-key", self.key, "-out", request, "-subj", "/CN=localhost"],
                        ["ca", "-batch", "-selfsign", "-notext", "-config", config, "-keyfile", self.key,
                         "-startdate", "20200101000000Z", "-enddate", "20200102000000Z",
                         "-in", request, "-out", self.file]):
            subprocess.run(["openssl", *command], check=True, capture_output=True)

    def client(self):
        """Returns a new context for a client that trusts it."""
        return ssl.create_default_context(cafile=str(self.file))

    @property
    def options(self):
        """Options of sluiced."""
        return ["--tls-cert", self.file, "--tls-key", self.key]


def client_hello(context):
    """The first bytes of a handshake."""
    out = ssl.MemoryBIO()
    session = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        return out.read()
    raise AssertionError("a handshake without a server")


class TlsSocket:
    """A TLS session on a connected socket, with the socket's methods.

    `shakes_hands` False: only the first bytes of the handshake are sent; the rest, and what is sent meanwhile, follows
    when something is read."""

    def __init__(self, tcp, context, shakes_hands=True, server_name="localhost"):
        self._tcp = tcp
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self._in, self._out, server_hostname=server_name)
        self._lock = threading.Lock()  # of the session; waiting for the socket is done without it
        self._sending = threading.Lock()  # records are sent in the order in which they were made
        self._plain = bytearray()  # decrypted, not read yet
        self._early = bytearray()  # to be sent after the handshake
        self._is_open = False  # the handshake is over
        self.ended_properly = None  # set at the end: whether the server sent close_notify
        try:
            self._go_on()
            while shakes_hands and not self._is_open:
                self._read_tcp()
                self._go_on()
        except BaseException:
            self._tcp.close()
            raise

    def __getattr__(self, name):
        return getattr(self._tcp, name)

    def _go_on(self):
        """Continues the handshake with what has arrived."""
        with self._lock:
            try:
                self.session.do_handshake()
                self._is_open = True
                if self._early:
                    self.session.write(self._early)
                    self._early.clear()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLEOFError:
                raise ConnectionResetError("closed during the handshake") from None
            finally:
                self._flush()

    def _flush(self):
        """Sends the records that are ready; the session's lock is held, because they are small."""
        if self._out.pending:
            with self._sending:
                self._tcp.sendall(self._out.read())

    def _read_tcp(self):
        some = self._tcp.recv(65536)
        with self._lock:
            if some:
                self._in.write(some)
            else:
                self._in.write_eof()

    def _decrypt(self):
        """Decrypts what has arrived into _plain; returns True at the end."""
        while True:
            try:
                some = self.session.read(65536)
            except ssl.SSLWantReadError:
                return False
            except ssl.SSLZeroReturnError:
                some = b""
            except ssl.SSLEOFError:
                self.ended_properly = False
                return True
            except ssl.SSLError as error:
                raise ConnectionResetError(f"TLS: {error}") from None
            if not some:
                self.ended_properly = True
                return True
            self._plain += some

    def pending(self):
        """Whether receive() can return without waiting for the socket."""
        return bool(self._plain) or self._in.pending > 0 or self.ended_properly is not None

    def receive(self, size):
        """Reads once: bytes; b"" at the end; None if what arrived contains no data yet."""
        if not self.pending():
            self._read_tcp()
        if not self._is_open:
            self._go_on()
            if not self._is_open:
                return None
        with self._lock:
            at_end = self.ended_properly is not None or self._decrypt()
            self._flush()
            data = bytes(self._plain[:size])
            del self._plain[:size]
        return data if data or at_end else None

    def recv(self, size):
        while (data := self.receive(size)) is None:
            pass
        return data

    def sendall(self, data):
        with self._lock:
            if not self._is_open:
                self._early += data
                return
            if data:
                self.session.write(data)
            self._sending.acquire()
            records = self._out.read()
        try:
            self._tcp.sendall(records)
        finally:
            self._sending.release()

    def say_end(self):
        """Sends close_notify: nothing follows."""
        with self._lock:
            if self._is_open and self.ended_properly is None:
                self._decrypt()
                try:
                    self.session.unwrap()
                except ssl.SSLError:
                    pass  # the server has not sent its own yet
            self._flush()

    def close(self):
        """Sends close_notify if there is room for it, like clients do."""
        if self._tcp.fileno() >= 0:
            self._tcp.setblocking(False)
            try:
                self.say_end()
            except OSError:
                pass
            self._tcp.close()

    def reset(self):
        self._tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._tcp.close()
