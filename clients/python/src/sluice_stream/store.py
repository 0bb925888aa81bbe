"""The position of a stream, stored by you, so that a program that is restarted continues where it was."""

import os
import pathlib
from typing import Protocol


class CursorStore(Protocol):
    """`key` names the stream. `save` is called when everything before the cursor has been handled."""

    def load(self, key: str) -> str | None: ...

    def save(self, key: str, cursor: str) -> None: ...


class MemoryStore:
    """Lasts as long as the program runs."""

    def __init__(self) -> None:
        self._cursors: dict[str, str] = {}

    def load(self, key: str) -> str | None:
        return self._cursors.get(key)

    def save(self, key: str, cursor: str) -> None:
        self._cursors[key] = cursor


class FileStore:
    """One small file per stream in `folder`, replaced atomically."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def _file(self, key: str) -> pathlib.Path:
        return self._folder / ("".join(c if c.isalnum() else "_" for c in key)[:200] + ".cursor")

    def load(self, key: str) -> str | None:
        try:
            return self._file(key).read_text().strip() or None
        except FileNotFoundError:
            return None

    def save(self, key: str, cursor: str) -> None:
        file = self._file(key)
        new = file.with_suffix(".new")
        new.write_text(cursor + "\n")
        new.replace(file)
