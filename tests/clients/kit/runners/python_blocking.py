"""Runs the client in one situation: reads a line of JSON from standard input, and writes messages and the end to
standard output."""

import json
import sys

import sluice_stream
from sluice_stream import Options


def tokens(renews):
    count = 0

    def next_token():
        nonlocal count
        count += 1
        return f"token-{count}"
    return next_token if renews else "token-1"


def end_of(error):
    if isinstance(error, sluice_stream.Disconnected):
        return error.code
    return str(error.status or error.code) if isinstance(error, sluice_stream.Refused) else type(error).__name__


def main():
    plan = json.loads(sys.stdin.readline())
    options = Options(max_tries=plan["max_tries"], silence_s=plan["silence_s"], wait_scale=0.02)
    end = "complete"
    with sluice_stream.Client(plan["url"], plan.get("token") or tokens(plan["renews"]), options) as client:
        try:
            for message in getattr(client, plan["stream"])(**plan["parameters"]):
                print(json.dumps(message), flush=True)
        except sluice_stream.SluiceError as error:
            end = end_of(error)
    print(json.dumps({"end": end}), flush=True)


if __name__ == "__main__":
    main()
