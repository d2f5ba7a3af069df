"""The protocol of a user's own store: what an object must do to hold a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, runtime_checkable

PutAnswer = Literal["created", "exists", "unknown"]


@runtime_checkable
class LogStore(Protocol):
    """A place for objects; paths are relative to the table's root, '/'-separated, decoded. Called from any thread.

    What it must keep: an object is seen whole or not at all; `put_if_absent` never replaces; a listing after a put shows it.
    A missing object is a FileNotFoundError. Where `put_if_absent` cannot say whether the object was written, it answers "unknown" (or raises
    TimeoutError or ConnectionError, which means the same); any other exception means that nothing was written.
    """

    def list_from(self, prefix: str, start_after: str | None, recursive: bool) -> Iterable[tuple[str, int, int]]:
        """(path, size in bytes, modification time in ms) of the objects in the folder `prefix`, sorted by path."""
        ...

    def head(self, path: str) -> tuple[int, int] | None:
        """(size, modification time in ms), None where there is no such object."""
        ...

    def get(self, path: str, start: int | None = None, end: int | None = None) -> bytes:
        """The object's bytes from `start` to before `end`; all of them by default."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> PutAnswer:
        """Creates the object unless there is one."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Creates or replaces the object, atomically."""
        ...

    def delete(self, path: str) -> bool:
        """Whether it was there."""
        ...
