"""As python_blocking.py, for asyncio."""

import asyncio
import json
import sys

import sluice_stream
from python_blocking import end_of, tokens
from sluice_stream import Options
from sluice_stream.aio import Client


async def main():
    plan = json.loads(sys.stdin.readline())
    options = Options(max_tries=plan["max_tries"], silence_s=plan["silence_s"], wait_scale=0.02)
    end = "complete"
    async with Client(plan["url"], plan.get("token") or tokens(plan["renews"]), options, transport=plan["transport"]) as client:
        try:
            async for message in getattr(client, plan["stream"])(**plan["parameters"]):
                print(json.dumps(message), flush=True)
        except sluice_stream.SluiceError as error:
            end = end_of(error)
    print(json.dumps({"end": end}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
