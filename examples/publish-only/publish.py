#!/usr/bin/env python3
"""A producer that needs nothing but Redis: each line of the standard input becomes a post.

    publish.py [--redis URL] [--user ID] [--login LOGIN] [--lang TAG]

Such posts are live only: they are in no log, and their ids are the producer's own."""

import argparse
import json
import sys
import time

import redis


def main():
    options = argparse.ArgumentParser(description="Publishes the lines of its input as posts.")
    options.add_argument("--redis", default="redis://127.0.0.1:6379", metavar="URL")
    options.add_argument("--user", default="1", metavar="ID")
    options.add_argument("--login", default="publisher")
    options.add_argument("--lang", default="en", metavar="TAG")
    given = options.parse_args()

    server = redis.Redis.from_url(given.redis)
    last = 0
    for line in sys.stdin:
        # Any number that grows will do as an id; this one continues where an earlier run ended.
        last = max(last + 1, time.time_ns() // 1000)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        event = {"id": str(last), "type": "post", "at": at, "post": {
            "id": str(last), "user": {"id": given.user, "login": given.login},
            "text": line.rstrip("\n"), "lang": given.lang, "created_at": at}}
        gateways = server.publish("sluice:{0}:live", json.dumps(event, ensure_ascii=False))
        print(f"{last} heard by {gateways}", flush=True)


if __name__ == "__main__":
    main()
