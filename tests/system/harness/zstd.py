"""Frames of zstd, read by an independent decoder; and dictionaries."""

import json
import time

import zstandard

from . import events


def train(dictionary_id, texts, size=4096):
    """Returns a dictionary for events with such texts, trained by zstd itself."""
    samples = [events.dump(events.post(10_000 + number, text)).encode() for number, text in enumerate(texts)]
    return zstandard.train_dictionary(size, samples, dict_id=dictionary_id).as_bytes()


def add_dictionary(redis, dictionary_id, data, posts=1):
    """Does what src/scripts/dictionary_add.lua does."""
    client = redis.master_of(0)
    client.set(f"sluice:{{0}}:dictionary:{dictionary_id}", data)
    client.hset("sluice:{0}:dictionaries", dictionary_id, f"{time.time_ns() // 1_000_000} {len(data)} {posts} 0")


def listed(gateway):
    """Returns the dictionaries of a gateway by id."""
    gateway.wait_status("/v1/dictionaries", 200)  # it has read the list
    answer = gateway.get("/v1/dictionaries")
    assert answer.status == 200, answer
    return {entry["id"]: entry for entry in json.loads(answer.body)["dictionaries"]}


def newest(gateway):
    """Returns (id, bytes) of the newest one that is not withdrawn."""
    found = [entry["id"] for entry in listed(gateway).values() if entry["state"] != "withdrawn"][-1]
    answer = gateway.get(f"/v1/dictionaries/{found}")
    assert answer.status == 200, answer
    return found, answer.body


class ZstdFrames:
    """Decodes the input piece by piece, like zlib's decompressobj. With a dictionary, frames that do not name it are
    read, too."""

    def __init__(self, dictionary=None):
        data = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        self.decompressor = zstandard.ZstdDecompressor(dict_data=data)
        self.frame = None
        self.frames = self.with_dictionary = 0  # number of frames; of those that name a dictionary

    @property
    def eof(self):
        """Is it between two frames?"""
        return self.frame is None

    unused_data = b""

    def decompress(self, data):
        said = b""
        while data:
            if self.frame is None:
                self.frame = self.decompressor.decompressobj()
                self.frames += 1
                self.with_dictionary += bool(zstandard.get_frame_parameters(data).dict_id)
            said += self.frame.decompress(data)
            if not self.frame.eof:
                break
            data, self.frame = self.frame.unused_data, None
        return said
