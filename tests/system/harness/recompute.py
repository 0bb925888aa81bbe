"""Which events match? A second, slow and simple implementation of docs/filters.md.

Only for simple filters: track (keywords, hashtags, mentions, cashtags), follow, locations, language, types, percent and
partition. Python's Unicode tables may be a version behind the server's; the tests' data contain nothing in which they
differ."""

import functools
import re
import unicodedata

_URL = re.compile(r"(?<![A-Za-z0-9_])https?://[!-~]*", re.IGNORECASE)
_NOT_IN_URL = re.compile(r'["<>\\^`{|}]')
_DEFAULT_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")
_UNSPACED = re.compile("CJK|IDEOGRAPH|HIRAGANA|KATAKANA|BOPOMOFO|HANGUL|^THAI |^LAO |^KHMER |^MYANMAR ")
MASK64 = (1 << 64) - 1


def normal(text):
    """Section 2: NFKC_Casefold, NFC, no dot above an i."""
    text = unicodedata.normalize("NFD", text)
    for _ in range(2):
        text = unicodedata.normalize("NFKC", _DEFAULT_IGNORABLE.sub("", text).casefold())
    return unicodedata.normalize("NFC", text).replace("i\u0307", "i")


def urls_in(text):
    """Section 3: (start, end) of each URL in the raw text."""
    found, at = [], 0
    while start := _URL.search(text, at):
        url = start.group()
        cut = _NOT_IN_URL.search(url)
        url = (url[:cut.start()] if cut else url).rstrip(".,;:!?')]")
        scheme = url.find("//") + 2
        if scheme > 1 and re.search("[A-Za-z0-9]", url[scheme:]):
            found.append((start.start(), start.start() + len(url)))
            at = start.start() + len(url)
        else:
            at = start.start() + start.group().index("//") + 2
    return found


@functools.lru_cache(maxsize=None)
def char_class(char):
    category = unicodedata.category(char)
    if category[0] in "LMN":
        return "U" if char == "ー" or _UNSPACED.search(unicodedata.name(char, "")) else "W"
    if char == "_":
        return "W"
    if category == "So" or "\U0001f3fb" <= char <= "\U0001f3ff":
        return "E"
    return " "


class Words:
    """Sections 4 and 5: tokens as (text, gap), hashtags, mentions, cashtags."""

    def __init__(self, text, with_urls=True):
        self.tokens, self.hashtags, self.mentions, self.cashtags = [], set(), set(), set()
        at = 0
        for start, end in urls_in(text) if with_urls else []:
            self._read(normal(text[at:start]))
            self.tokens.append((None, 1))
            at = end
        self._read(normal(text[at:]))

    def _read(self, piece):
        classes = [char_class(c) for c in piece]
        gap, at = 1, 0
        while at < len(piece):
            end = at + 1
            if classes[at] == " ":
                gap, at = 1, end
                continue
            while classes[at] == "W" and end < len(piece) and classes[end] == "W":
                end += 1
            self.tokens.append((piece[at:end], gap))
            gap, at = 0, end
        closed = -1
        for at, sign in enumerate(piece):
            if sign not in "#@$":
                continue
            before = piece[at - 1] if at else " "
            word_before = at > 0 and classes[at - 1] == "W"
            end = at + 1
            while end < len(piece) and classes[end] in "WU":
                end += 1
            run = piece[at + 1:end]
            if sign == "#" and at != closed and not word_before and before != "&":
                if any(unicodedata.category(c)[0] == "L" for c in run):
                    self.hashtags.add(run)
                    if end < len(piece) and piece[end] == "#":
                        closed = end
            elif sign == "@" and run and not word_before:
                self.mentions.add(run)
                prefix = re.match("[a-z0-9_]*", run).group()
                if prefix:
                    self.mentions.add(prefix)
            elif sign == "$" and not (at and (classes[at - 1] in "WU" or before == "$")):
                if re.fullmatch("[a-z]{1,6}", run):
                    self.cashtags.add(run)

    def has_term(self, term):
        """Section 6."""
        sign, rest = normal(term)[:1], normal(term)[1:]
        whole_run = rest and all(char_class(c) in "WU" for c in rest)
        if sign == "#":
            tag = rest[:-1] if rest.endswith("#") else rest
            if tag and all(char_class(c) in "WU" for c in tag) and \
                    any(unicodedata.category(c)[0] == "L" for c in tag):
                return tag in self.hashtags
        elif sign == "@" and whole_run:
            return rest in self.mentions
        elif sign == "$" and re.fullmatch("[a-z]{1,6}", rest):
            return rest in self.cashtags
        wanted = tokens_of(term)
        for at in range(len(self.tokens) - len(wanted) + 1):
            here = self.tokens[at:at + len(wanted)]
            if all(have[0] == want[0] and (i == 0 or want[1] == 1 or have[1] == 0)
                   for i, (have, want) in enumerate(zip(here, wanted))):
                return True
        return False


@functools.lru_cache(maxsize=8192)
def tokens_of(term):
    return Words(term, with_urls=False).tokens


words_of = functools.lru_cache(maxsize=8192)(Words)  # many filters ask about the same text


def hash_of_id(number):
    """Section 10."""
    z = (number + 0x9E3779B97F4A7C15) & MASK64
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK64
    return z ^ z >> 31


def in_percent(number, percent):
    return ((hash_of_id(number) >> 32) * 1000000 >> 32) < round(percent * 10000)


def in_partition(number, k, n):
    return ((hash_of_id(number) & 0xFFFFFFFF) * n >> 32) + 1 == k


def boxes_touch(a, b):
    """Section 8: do two boxes w,s,e,n share a point?"""
    if a[1] > b[3] or b[1] > a[3]:
        return False
    if (a[3] == 90 and b[3] == 90) or (a[1] == -90 and b[1] == -90):
        return True

    def spans(box):
        spans = [(box[0], box[2])] if box[0] <= box[2] else [(box[0], 180), (-180, box[2])]
        return spans + [(-180, -180) for _, e in spans if e == 180] + \
            [(180, 180) for w, _ in spans if w == -180]
    return any(w1 <= e2 and w2 <= e1 for w1, e1 in spans(a) for w2, e2 in spans(b))


def _list(text):
    return [item.strip() for item in re.split("[,，]", text or "") if item.strip()]


class Filter:
    """A filter with the parameters of a stream's URL."""

    def __init__(self, track=None, follow=None, locations=None, language=None,
                 types="post,delete", percent=None, partition=None, firehose=False):
        self.phrases = [phrase.split() for phrase in _list(track)]
        self.follow = _list(follow)
        numbers = [float(number) for number in _list(locations)]
        self.boxes = [numbers[i:i + 4] for i in range(0, len(numbers), 4)]
        self.languages = [tag.lower() for tag in _list(language)]
        self.types = _list(types)
        self.percent, self.partition = percent, partition
        self.everything = firehose or not (self.phrases or self.follow or self.boxes)

    def matches(self, event):
        """`event`: the whole event; a deletion contains its post."""
        if event["type"] not in self.types:
            return False
        if event["type"] in ("follow", "unfollow"):
            return self.everything or event["user"]["id"] in self.follow or \
                event["target"]["id"] in self.follow
        if event["type"] == "user":
            return self.everything or event["user"]["id"] in self.follow
        post = event["post"]
        if post.get("audience", "public") != "public":
            return False
        number = int(post["id"])
        if self.percent is not None and not in_percent(number, self.percent):
            return False
        if self.partition and not in_partition(number, *self.partition):
            return False
        if self.languages:
            lang = (post.get("lang") or "und").lower()
            if not any(lang == r or lang.startswith(r + "-") for r in self.languages):
                return False
        return self.everything or self._selected(post)

    def _selected(self, post):
        words = words_of(post["text"])
        if any(all(words.has_term(term) for term in phrase) for phrase in self.phrases):
            return True
        people = {post["user"]["id"]}
        for relation in ("reply_to", "repost_of"):
            people.add((post.get(relation) or {}).get("user"))
        for wanted in self.follow:
            if wanted.startswith("@"):
                login = normal(wanted[1:])
                if normal(post["user"].get("login", "")) == login or login in words.mentions:
                    return True
            elif wanted in people:
                return True
        return any(boxes_touch(self._shape(post), box) for box in self.boxes
                   if self._shape(post))

    @staticmethod
    def _shape(post):
        if post.get("geo"):
            point = [post["geo"]["lon"], post["geo"]["lat"]]
            return point + point
        return (post.get("place") or {}).get("bbox")
