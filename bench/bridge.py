#!/usr/bin/python3
"""Passes the posts of a Redis channel to a server that does not read Redis; its CPU time is not counted.

    bench/bridge.py REDIS-PORT CHANNEL nats|pushpin PORT

NATS gets them on the subject posts, or, if they have a keyword, on a subject of that name; Pushpin by its publish
request, on the channel posts, as lines of an HTTP stream."""

import http.client
import json
import re
import socket
import sys

import redis

KEYWORD = re.compile(rb'"text":"(kw\d+) ')


class Nats:
    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.sendall(b'CONNECT {"verbose":false}\r\n')
        self.connection.setblocking(False)

    def publish(self, post):
        keyword = KEYWORD.search(post)
        subject = keyword[1] if keyword else b"posts"
        self.connection.setblocking(True)
        self.connection.sendall(b"PUB %s %d\r\n%s\r\n" % (subject, len(post), post))
        self.connection.setblocking(False)
        try:
            if b"PING" in self.connection.recv(65536):
                self.connection.sendall(b"PONG\r\n")
        except BlockingIOError:
            pass


class Pushpin:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def publish(self, post):
        item = {"channel": "posts", "formats": {"http-stream": {"content": post.decode() + "\n"}}}
        self.connection.request("POST", "/publish/", json.dumps({"items": [item]}), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status


def main():
    redis_port, channel, kind, port = sys.argv[1:]
    peer = {"nats": Nats, "pushpin": Pushpin}[kind](int(port))
    heard = redis.Redis(port=int(redis_port)).pubsub(ignore_subscribe_messages=True)
    heard.subscribe(channel)
    for message in heard.listen():
        if message:
            peer.publish(message["data"])


main()
