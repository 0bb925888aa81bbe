"""The messages of a stream: JSON objects as in docs/events.md and docs/streaming-api.md."""

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
    """A filter that an event matches, by name."""
    id: str
    tag: NotRequired[str]


class PostEvent(TypedDict):
    """A new post, or a deleted one: then `post` has only ids."""
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
    """A user was created, or changed (`updated`): then `members` says what."""
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
    """Events after `from`, up to and including `to`, that are no longer available."""
    type: Literal["gap"]
    to: str
    reason: str
    shard: NotRequired[int]


class Warning(TypedDict):
    type: Literal["warning"]
    code: str
    message: NotRequired[str]


class Counts(TypedDict):
    """The number of events in a bucket; with `partial` it is the current one."""
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
    """With `max_rate`: this many posts of a window were left out."""
    type: Literal["skipped"]
    id: str
    events: int


class FilterWarning(TypedDict):
    """The filter may not be what was meant."""
    code: str
    message: str
    param: NotRequired[str]
    at: NotRequired[int]


Message = PostEvent | FollowEvent | UserEvent | Gap | Warning | Counts | Trends | Skipped
