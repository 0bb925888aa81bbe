"""What a stream ends with."""


class SluiceError(Exception):
    """Anything that ends a stream for good."""


class Refused(SluiceError):
    """The server does not give this stream, or take this filter: asking again unchanged would not help. `status` is that
    of HTTP, and 0 on a connection that is open; `param` says what is wrong, and `at` where in it, counted from 0."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None, at: int | None = None) -> None:
        super().__init__(f"{status or 'refused,'} {code}: {message}")
        self.status, self.code, self.message, self.param, self.at = status, code, message, param, at


class Disconnected(SluiceError):
    """The server has ended the stream, and it is not to be opened again by itself: `token_revoked`, `replaced`,
    `ended`, ... `cursor` is where it was."""

    def __init__(self, code: str, reason: str, cursor: str | None) -> None:
        super().__init__(f"{code}: {reason}")
        self.code, self.reason, self.cursor = code, reason, cursor


class TooManyTries(SluiceError):
    """`max_tries` connections in a row brought nothing; the last reason is its `__cause__`."""
