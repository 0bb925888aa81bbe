"""What a stream brings: JSON objects, as docs/events.md and docs/streaming-api.md have them."""

from typing import Any, Literal, NotRequired, TypedDict


class User(TypedDict):
    id: str
    login: NotRequired[str]
    name: NotRequired[str]


class Reference(TypedDict):
    post: str
    user: NotRequired[str]
    login: NotRequired[str]


class Post(TypedDict):
    id: str
    user: User
    text: NotRequired[str]
    lang: NotRequired[str]
    created_at: NotRequired[str]
    geo: NotRequired[dict[str, float]]
    place: NotRequired[dict[str, Any]]
    reply_to: NotRequired[Reference]
    repost_of: NotRequired[Reference]
    quote_of: NotRequired[Reference]
    urls: NotRequired[list[str]]
    media: NotRequired[list[Any]]
    source: NotRequired[str]
    state: NotRequired[Literal["deleted"]]


class MatchingRule(TypedDict):
    """A filter that an event matches, by its name."""
    id: str
    tag: NotRequired[str]


class PostEvent(TypedDict):
    """Somebody posted, or a post was deleted: then `post` has ids only."""
    type: Literal["post", "delete"]
    id: str
    at: NotRequired[str]
    post: Post
    matching_rules: NotRequired[list[MatchingRule]]
    late: NotRequired[bool]
    cursor: NotRequired[str]


class FollowEvent(TypedDict):
    type: Literal["follow", "unfollow"]
    id: str
    at: NotRequired[str]
    user: User
    target: User
    matching_rules: NotRequired[list[MatchingRule]]


class UserEvent(TypedDict):
    """A user is new (`created`), or has changed (`updated`): then `members` says what."""
    type: Literal["user"]
    id: str
    at: NotRequired[str]
    user: User
    change: NotRequired[str]
    members: NotRequired[list[str]]
    matching_rules: NotRequired[list[MatchingRule]]
    late: NotRequired[bool]
    cursor: NotRequired[str]


class Gap(TypedDict):
    """Events behind `from`, up to and including `to`, that nobody can give any more."""
    type: Literal["gap"]
    to: str
    reason: str
    shard: NotRequired[int]


class Warning(TypedDict):
    type: Literal["warning"]
    code: str
    message: NotRequired[str]


class Counts(TypedDict):
    """How many there are in a bucket; with `partial` it is still open."""
    type: Literal["counts"]
    start: str
    end: str
    posts: int
    deletes: int
    users: int
    id: NotRequired[str]
    partial: NotRequired[bool]
    revision: NotRequired[int]
    gap: NotRequired[bool]
    groups: NotRequired[list[dict[str, Any]]]
    other: NotRequired[int]


class Trends(TypedDict):
    type: Literal["trends"]
    id: str
    complete: bool
    terms: list[dict[str, Any]]


class Skipped(TypedDict):
    """With `max_rate`: so many posts of a window were left out."""
    type: Literal["skipped"]
    id: str
    events: int


class FilterWarning(TypedDict):
    """A way in which a filter may not be what was meant."""
    code: str
    message: str
    param: NotRequired[str]
    at: NotRequired[int]


Message = PostEvent | FollowEvent | UserEvent | Gap | Warning | Counts | Trends | Skipped
