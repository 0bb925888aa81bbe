"""The errors with which a stream ends."""


class SluiceError(Exception):
    """Anything that ends a stream for good."""


class Refused(SluiceError):
    """The server refuses this stream, or this filter: repeating the request unchanged would not help. `status` is the
    HTTP status, or 0 on an open connection; `param` names what is wrong, and `at` is the position in it, counted from
    0."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None, at: int | None = None) -> None:
        super().__init__(f"{status or 'refused,'} {code}: {message}")
        self.status, self.code, self.message, self.param, self.at = status, code, message, param, at


class Disconnected(SluiceError):
    """The server has ended the stream, and it must not be reopened automatically: `token_revoked`, `replaced`, `ended`,
    ... `cursor` is its position."""

    def __init__(self, code: str, reason: str, cursor: str | None) -> None:
        super().__init__(f"{code}: {reason}")
        self.code, self.reason, self.cursor = code, reason, cursor


class TooManyTries(SluiceError):
    """`max_tries` connections in a row delivered nothing; the last error is its `__cause__`."""
