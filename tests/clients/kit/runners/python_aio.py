"""Like python_blocking.py, for asyncio."""

import asyncio
import json
import sys

import sluice_stream
from python_blocking import end_of, tokens
from sluice_stream import Options
from sluice_stream.aio import Client


def show(message):
    print(json.dumps(message), flush=True)


async def read_filters(client, plan):
    track = plan["parameters"].pop("track", None)
    stream = client.filters({"tea": {"track": track}} if plan["filters"] is None else plan["filters"], **plan["parameters"])
    given = 0
    async for message in stream:
        show(message)
        given += 1
        for after, name, wanted in plan["changes"]:
            if after == given:
                show({"answer": await change(stream, name, wanted)})


async def change(stream, name, wanted):
    try:
        if wanted is None:
            await stream.unsubscribe(name)
            return "unsubscribed"
        await stream.subscribe(name, **wanted)
        return "subscribed"
    except sluice_stream.SluiceError as error:
        return error.code


async def read(client, plan):
    async for message in getattr(client, plan["stream"])(**plan["parameters"]):
        show(message)


async def main():
    plan = json.loads(sys.stdin.readline())
    options = Options(max_tries=plan["max_tries"], silence_s=plan["silence_s"], wait_scale=0.02)
    end = "complete"
    is_filters = plan["transport"] == "filters"
    transport = "websocket" if is_filters else plan["transport"]
    async with Client(plan["url"], plan.get("token") or tokens(plan["renews"]), options, transport=transport) as client:
        try:
            await (read_filters if is_filters else read)(client, plan)
        except sluice_stream.SluiceError as error:
            end = end_of(error)
    show({"end": end})


if __name__ == "__main__":
    asyncio.run(main())
