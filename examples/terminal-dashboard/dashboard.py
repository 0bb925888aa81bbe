#!/usr/bin/env python3
"""Shows posts and users in a terminal, a line for each ten seconds: the last five minutes, then live.

    dashboard.py http://127.0.0.1:8080 "$TOKEN" [PARAMETER=VALUE ...]

The parameters are those of /v1/stream/counts, for example track=tea, bucket=1m, since=-1h or by=country."""

import sys

import sluice_stream


def line_of(bucket, most):
    groups = " ".join(f"{group['key']} {group['posts']}" for group in bucket.get("groups", [])[:5])
    mark = "?" if "gap" in bucket else "*" if "revision" in bucket else " "
    bar = "█" * round(30 * bucket["posts"] / most)
    return f"{bucket['start'][11:19]}{mark} {bar:30} {bucket['posts']:7} posts {bucket['users']:7} users  {groups}"


def main(address, token, *given):
    parameters = {"bucket": "10s", "by": "lang", "since": "-5m"} | dict(one.split("=", 1) for one in given)
    most = 1
    with sluice_stream.Client(address, token) as client:
        for message in client.counts(**parameters):
            if message["type"] == "counts":
                most = max(most, message["posts"])
                print(line_of(message, most), flush=True)
            elif message["type"] == "gap":
                print(f"          events are missing: {message['reason']}", flush=True)


if len(sys.argv) < 3:
    raise SystemExit(__doc__)
try:
    main(*sys.argv[1:])
except sluice_stream.SluiceError as error:
    raise SystemExit(f"dashboard: {error}") from None
except KeyboardInterrupt:
    pass
