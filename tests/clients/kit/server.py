"""A server that plays a script: how each visit is answered, byte by byte, and what it must request.

It stands for sluiced and for a proxy in front of it, in situations that are hard to cause with a real one. A client is
correct if it passes on exactly the messages that the situation wants, in order, and ends as it should."""

import json
import socket
import struct
import threading

from carriers import EXPIRES, OF_FILTERS, Fault, OverConnection, OverFilters, OverHttp, OverWebSocket, differences, read_target
from script import COMPLETE, error_body, head, visit

DEADLINE_S = 30


def is_connection(asked):
    return asked["key"] is not None and asked["path"] == "/v1/stream"


class Renewals:
    """New tokens for a stream over HTTP, which arrive in separate requests."""

    def __init__(self):
        self._changed = threading.Condition()
        self._wanted = None

    def wait(self, token, refused):
        with self._changed:
            self._wanted = token, refused
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._wanted is None, DEADLINE_S):
                raise Fault(f"nobody has brought the token {token}")

    def take(self, token):
        """Returns the answer to a PUT."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._wanted is not None, DEADLINE_S):
                raise Fault(f"nobody has asked for the token {token}")
            (wanted, refused), self._wanted = self._wanted, None
            self._changed.notify_all()
        if token != wanted:
            raise Fault(f"the new token is {token}, not {wanted}")
        status, body = ("200 OK", json.dumps({"expires": EXPIRES}).encode()) if refused is None \
            else ("403 Forbidden", error_body(refused))
        return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class ScriptedServer:
    """Plays the visits one after the other; a client that comes again after the last one is told that the stream is
    complete. If an upgrade gets no 101, a client that asks over HTTP for the reason gets the same answer again: so the
    script is the same for clients that can see the status, and for those that cannot. `transport`: what a WebSocket to
    `/v1/stream` is for, connection or filters."""

    def __init__(self, visits, transport):
        self._is_of_filters = transport == "filters"
        self._visits = list(visits)
        self._refused = None  # the steps with which an upgrade was answered without a 101
        self._lock = threading.Lock()
        self._renewals = {}   # by connection id
        self.faults = []
        self.requests = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    @property
    def unplayed(self):
        return len(self._visits)

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            connection.settimeout(DEADLINE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                asked = self._read_request(connection)
                if asked is not None and asked["method"] == "PUT":
                    self._renew(connection, asked)
                elif asked is not None:
                    self._play(connection, asked)
            except Fault as fault:
                self.faults.append(str(fault))
            except OSError:
                pass  # the client has disconnected

    def _read_request(self, connection):
        text = b""
        while b"\r\n\r\n" not in text:
            piece = connection.recv(65536)
            if not piece:
                return None
            text += piece
        first, *lines = text.split(b"\r\n\r\n")[0].decode().split("\r\n")
        method, target, _ = first.split()
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        asked = read_target(target)
        protocols = [name.strip() for name in headers.get("sec-websocket-protocol", "").split(",")]
        token = next((name for name in protocols if name.startswith("bearer.")), None)
        asked.update(method=method, key=headers.get("sec-websocket-key"),
                     extensions=headers.get("sec-websocket-extensions", ""),
                     token=token.removeprefix("bearer.") if token else headers.get("authorization", "").removeprefix("Bearer "))
        if "last-event-id" in headers:
            asked["since"] = headers["last-event-id"]
        return asked

    def _renew(self, connection, asked):
        connection_id = asked["path"].removeprefix("/v1/connections/").removesuffix("/token")
        if connection_id not in self._renewals:
            raise Fault(f"a PUT to {asked['path']}")
        connection.sendall(self._renewals[connection_id].take(asked["token"]))

    def _next_visit(self, asked):
        """Returns the visit, and the id of the connection."""
        with self._lock:
            if self._refused and asked["key"] is None:
                again, self._refused = self._refused, None
                return again, None
            self._refused = None
            self.requests.append(asked)
            number = len(self.requests)
            now = self._visits.pop(0) if self._visits else visit(head(), *COMPLETE)
            asks = now.asks
            if is_connection(asked):  # the rest is requested on it
                asks = {name: value for name, value in asks.items()
                        if (name not in OF_FILTERS if self._is_of_filters else name == "token")}
            self.faults += [f"visit {number}: {fault}" for fault in differences(asks, asked)]
            if asked["key"] is not None and now.steps[0][0] in ("answer", "cut", "reset", "silence"):
                self._refused = now
            connection_id = f"c{number}"
            self._renewals[connection_id] = Renewals()
            return now, connection_id

    def _play(self, connection, asked):
        now, connection_id = self._next_visit(asked)
        if is_connection(asked):
            carrier = (OverFilters if self._is_of_filters else OverConnection)(connection, asked, now.asks)
        elif asked["key"]:
            carrier = OverWebSocket(connection, asked)
        else:
            carrier = OverHttp(connection, asked, connection_id, self._renewals.get(connection_id))
        for name, *arguments in now.steps:
            if name == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            if name == "cut":
                return
            if name == "silence":
                self._wait_until_it_leaves(connection)
                return
            getattr(carrier, name)(*arguments)
        connection.shutdown(socket.SHUT_WR)
        self._wait_until_it_leaves(connection)

    @staticmethod
    def _wait_until_it_leaves(connection):
        while connection.recv(65536):
            pass
