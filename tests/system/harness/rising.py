"""A second computation of trends over five minutes from the log, while all numbers are exact."""

import collections
import math

from . import picks

WINDOW_MS, PARTS = 300000, 12
SLICE_MS = WINDOW_MS // PARTS


def first_ms(end_id):
    """Beginning of the data for the bucket with this id: two windows, in slices."""
    return (picks.ms_of(end_id) // SLICE_MS + 1) * SLICE_MS - 2 * WINDOW_MS


class Slice:
    """`terms`: for each, how many posts have it, and their users."""

    def __init__(self, posts=()):
        self.posts = 0
        self.terms = {}
        for _, user, terms in posts:
            self.posts += 1
            for term in terms:
                count, users = self.terms.get(term, (0, frozenset()))
                self.terms[term] = count + 1, users | {user}


class Recount:
    """`posts`: (id, user, set of terms) of all posts in the log."""

    def __init__(self, posts):
        self.posts = collections.defaultdict(list)  # by slice
        for post in posts:
            self.posts[picks.ms_of(post[0]) // SLICE_MS].append(post)
        self.slices = {number: Slice(posts) for number, posts in self.posts.items()}
        self.told = {}

    def _slice(self, number, end_id):
        if picks.ms_of(end_id) // SLICE_MS > number:
            return self.slices.get(number, Slice())
        return Slice(post for post in self.posts.get(number, ()) if post[0] <= end_id)

    def terms(self, end_id, limit=20):
        """The terms that should be sent at the end of the bucket with this id."""
        if end_id not in self.told:
            self.told[end_id] = self._count(end_id, limit)
        return self.told[end_id]

    def _count(self, end_id, limit):
        last = picks.ms_of(end_id) // SLICE_MS
        window = [self._slice(number, end_id) for number in range(last - PARTS + 1, last + 1)]
        past = [self._slice(number, end_id) for number in range(last - 2 * PARTS + 1, last - PARTS + 1)]
        rate = (sum(part.posts for part in window) + 100) / (sum(part.posts for part in past) + 100)
        told = []
        for term in set().union(*(part.terms for part in window)):
            each = [part.terms.get(term, (0, frozenset())) for part in window]
            now = len(frozenset().union(*(users for _, users in each)))
            before = len(frozenset().union(*(part.terms[term][1] for part in past if term in part.terms)))
            score = math.floor((now - rate * before - 0.5) / math.sqrt(now + rate * rate * before + 0.5) * 10 + 0.5)
            if now >= 2 and score > 0:
                told.append((-score, -now, term.encode(), {
                    "term": term, "posts": sum(count for count, _ in each), "users": now, "before": before,
                    "score": score / 10, "past": [len(users) for _, users in each]}))
        return [row[3] for row in sorted(told, key=lambda row: row[:3])[:limit]]
