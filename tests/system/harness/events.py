"""Events as a producer publishes them."""

import json

from .redis_server import shard_of


def post(number, text, user="1", login=None, **members):
    """A post event; further members go into the post."""
    inner = {"id": str(number), "user": {"id": str(user), "login": login or f"u{user}"},
             "text": text}
    inner.update(members)
    return {"id": str(number), "type": "post", "post": inner}


def delete(number, of):
    """The deletion of the post event `of`."""
    return {"id": str(number), "type": "delete", "post": of["post"]}


def follow(number, user, target, kind="follow"):
    return {"id": str(number), "type": kind, "user": {"id": str(user)},
            "target": {"id": str(target)}}


def by_shard(ids):
    """Returns the ids of events by shard, each shard's in their order; no other order is guaranteed. With one shard
    they are unchanged."""
    return sorted(ids, key=shard_of)


def dump(event):
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))
