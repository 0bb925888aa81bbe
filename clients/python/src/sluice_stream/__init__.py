"""Streams of a Sluice server.

    import sluice_stream

    with sluice_stream.Client("https://stream.example.org", token=TOKEN) as client:
        for event in client.filter(track="tea"):
            print(event)

`sluice_stream.aio.Client` is the same for asyncio."""

from .blocking import Client
from .errors import Disconnected, Refused, SluiceError, TooManyTries
from .messages import Counts, FilterWarning, FollowEvent, Gap, MatchingRule, Message, PostEvent, Skipped, Trends, UserEvent
from .session import Options
from .store import CursorStore, FileStore, MemoryStore

__all__ = ["Client", "Counts", "CursorStore", "Disconnected", "FileStore", "FilterWarning", "FollowEvent", "Gap",
           "MatchingRule", "MemoryStore", "Message", "Options", "PostEvent", "Refused", "Skipped", "SluiceError",
           "TooManyTries", "Trends", "UserEvent"]
