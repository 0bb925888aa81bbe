#!/usr/bin/env python3
"""How many posts there are, a line for each ten seconds, from the past on: the numbers of /v1/stream/counts.

    dashboard.py [--bucket 10s] [--since=-5m] [--by lang] [--rounds N] http://127.0.0.1:8080 "$TOKEN" [track=tea ...]

When the connection breaks it comes back where it was: no bucket is missing, and none is counted twice."""

import argparse
import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request


def buckets(address, token, question):
    """Each bucket that is complete; a gap, or a bucket told anew, as it comes."""
    while True:
        ask = urllib.request.Request(f"{address}/v1/stream/counts?{urllib.parse.urlencode(question)}",
                                     headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(ask, timeout=60) as lines:
                for message in (json.loads(line) for line in lines if line.strip()):
                    yield message
                    question["since"] = message.get("id") or message.get("cursor") or question["since"]
        except urllib.error.HTTPError as refused:
            if refused.code not in (429, 503):
                raise SystemExit(f"dashboard: {refused.read().decode().strip()}") from None
        except (OSError, http.client.HTTPException, ValueError):
            pass  # cut off, or in the middle of a line
        time.sleep(1)


def line_of(bucket, most):
    groups = " ".join(f"{group['key']} {group['posts']}" for group in bucket.get("groups", [])[:5])
    mark = "?" if "gap" in bucket else "*" if "revision" in bucket else " "
    bar = "█" * round(30 * bucket["posts"] / most)
    return f"{bucket['start'][11:19]}{mark} {bar:30} {bucket['posts']:7} posts {bucket['users']:7} users  {groups}"


def main():
    options = argparse.ArgumentParser(description="Counts posts in a terminal.")
    options.add_argument("--bucket", default="10s", choices=["1s", "10s", "1m", "1h", "1d"])
    options.add_argument("--since", default="-5m", help="a time, a cursor, or how long ago")
    options.add_argument("--by", default="lang", choices=["lang", "country"])
    options.add_argument("--rounds", type=int, help="end after so many buckets")
    options.add_argument("address")
    options.add_argument("token")
    options.add_argument("filter", nargs="*", help="parameters of a filter, such as track=tea")
    given = options.parse_args()

    question = {"bucket": given.bucket, "by": given.by, "since": given.since}
    question.update(parameter.split("=", 1) for parameter in given.filter)
    shown, most = 0, 1
    for message in buckets(given.address, given.token, question):
        if message["type"] == "counts":
            most = max(most, message["posts"])
            print(line_of(message, most), flush=True)
            shown += 1
        elif message["type"] == "gap":
            print(f"         not all is known: {message['reason']}", flush=True)
        if shown == given.rounds:
            return


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
