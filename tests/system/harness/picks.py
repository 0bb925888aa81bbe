"""Which posts of a window a stream with max_rate sends: a second implementation, different from the server's.

Posts are (what is hashed of the post, id of the event)."""

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


def even(posts, most):
    return sorted(posts, key=lambda post: hash_of(post[0]))[:most]


def newest(posts, most):
    return sorted(posts, key=lambda post: post[1])[-most:]


def first(posts, most):
    return sorted(posts, key=lambda post: post[1])[:most]


PICKS = {"even": even, "newest": newest, "first": first}


def is_in_part(number, percent):
    """Whether `sample` keeps this id at this percentage."""
    return (hash_of(number) >> 32) * 1000000 >> 32 < percent * 10000
