"""Which posts of a window a stream with max_rate, or max, sends: a second implementation, different from the server's."""

import collections
import math
import urllib.parse

EPOCH_MS = 1767225600000
WORD = (1 << 64) - 1


def ms_of(event_id):
    return int(event_id) // 4096 + EPOCH_MS


def id_before(ms):
    """The last id before that moment."""
    return (ms - EPOCH_MS) * 4096 - 1


def window_of(event_id, length_ms=1000):
    """The last id of the window."""
    return id_before(ms_of(event_id) // length_ms * length_ms + length_ms)


def hash_of(number):
    """SplitMix64, which `sample` uses."""
    z = (number + 0x9E3779B97F4A7C15) & WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


Post = collections.namedtuple("Post", "number id user lang country geo")
Post.__doc__ = "`number` is what is hashed; `id` is that of the event."


def post_of(event):
    post = event["post"]
    return Post(int(post["id"]), int(event["id"]), post["user"]["id"], post.get("lang") or "und",
                (post.get("place") or {}).get("country") or "none", post.get("geo"))


def cell_of(geo, side):
    """Returns the column and row of the cell, counted from -180 and -90; None: the post has no point."""
    return geo and tuple(min(math.floor((geo[name] - first) / side), math.ceil(-2 * first / side) - 1)
                         for name, first in (("lon", -180), ("lat", -90)))


def newest_of_each(posts, most, key):
    return newest({key(post): post for post in sorted(posts, key=lambda post: post.id)}.values(), most)


def even(posts, most):
    return sorted(posts, key=lambda post: hash_of(post[0]))[:most]


def newest(posts, most):
    return sorted(posts, key=lambda post: post[1])[-most:]


def first(posts, most):
    return sorted(posts, key=lambda post: post[1])[:most]


PICKS = {"even": even, "newest": newest, "first": first}


class Pace:
    """What a stream requests: the maximum number of posts of each window, or of all, and which ones."""

    def __init__(self, target):
        query = {name: values[0] for name, values in urllib.parse.parse_qs(urllib.parse.urlsplit(target).query).items()}
        rate = float(query.get("max_rate", 0))
        self.window_ms = 1000 if rate >= 1 or rate == 0 else math.ceil(1000 / rate)
        self.posts = int(query.get("max", 0)) or (max(1, int(rate)) if rate else 0)  # 0: it has none
        self.is_of_past = "max" in query
        self.is_first = query.get("pick") == "first"
        self._pick, self._by = PICKS[query.get("pick", "even")], query.get("latest_by")
        self._side = float(query.get("cell_degrees", 0))

    def window_of(self, event_id):
        return window_of(event_id, self.window_ms)

    def choose(self, posts):
        if not self._by:
            return self._pick(posts, self.posts)
        return newest_of_each(posts, self.posts,
                              lambda post: post.user if self._by == "user" else cell_of(post.geo, self._side))


def is_in_part(number, percent):
    """Whether `sample` keeps this id at this percentage."""
    return (hash_of(number) >> 32) * 1000000 >> 32 < percent * 10000
