"""Opens the store of a table, and defines the interface of a user's own store (`LogStore`)."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from deltaic import _core, configuration
from deltaic.errors import InvalidArgumentError, InvalidTypeError, PathOutsideTableError
from deltaic.process_state import module_lock
from deltaic.protocol.paths import local_path

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Storage options by location, of the last _MOST_OPENED locations that were opened with any.
_OPENED: OrderedDict[str, dict[str, str]] = OrderedDict()
# Maximum number of locations in _OPENED; above it, the one opened longest ago is dropped.
_MOST_OPENED = 1000
_LOCK = module_lock()
# Names of storage options whose values must not leave the process.
_SECRET = re.compile(r"secret|token|passw|credential|signature|sas|key|auth|proxy[_-]?url", re.IGNORECASE)


@runtime_checkable
class LogStore(Protocol):
    """A store of the objects of a table. Paths are relative to the table, with `/`, and decoded. Any thread
    may call it.

    The store must guarantee that readers see an object completely or not at all, that `write_if_absent` never
    replaces an object, and that a listing after a write contains the object. A missing object is a
    FileNotFoundError; other exceptions reach the caller unchanged. Rust validates the results.
    """

    def list_from(
        self, prefix: str, start_after: str | None, recursive: bool, /
    ) -> Iterable[tuple[str, int, int]]:
        """Returns (path, size in bytes, modification time in ms) of the objects in the folder `prefix` whose
        names sort after `start_after`. `recursive`: with those of folders below it."""
        ...

    def head(self, path: str, /) -> tuple[int, int] | None:
        """Returns (size in bytes, modification time in ms) of an object; None if it does not exist."""
        ...

    def read(self, path: str, start: int = 0, end: int | None = None, /) -> bytes:
        """Returns the bytes of an object from `start` (inclusive) to `end` (exclusive); by default all
        bytes."""
        ...

    def write_if_absent(self, path: str, data: bytes, /) -> bool | None:
        """Creates an object unless it exists.

        Returns True if it was created, completely and visible at once, False if it exists, None if the
        outcome is unknown. FileExistsError counts as False; TimeoutError and ConnectionError as unknown. Any
        other exception means that nothing was written; for a commit, this is checked by reading it."""
        ...

    def write(self, path: str, data: bytes, /) -> None:
        """Creates or replaces the object, atomically."""
        ...

    def delete(self, path: str, /) -> bool:
        """True if the object existed."""
        ...


class OneObject:
    """A read-only LogStore with the same object at every path."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def head(self, path: str) -> tuple[int, int]:
        """Returns the size of the object, and 0 as its time."""
        return len(self._data), 0

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        """Returns the bytes from `start` (inclusive) to `end` (exclusive)."""
        return self._data[start:end]


def locate(path: str | os.PathLike[str]) -> str:
    """Converts a user's path to a location: an absolute local path, or the URL unchanged. `~` and variables
    are not expanded. `file:/x`, as Hadoop writes local paths, becomes `/x`, and on Windows `C:\\x` becomes
    `C:/x`."""
    try:
        text = os.fspath(path)
    except TypeError:
        raise InvalidTypeError(
            "the path of a table has the wrong type",
            found=type(path).__name__,
            expected="text or os.PathLike",
        ) from None
    if isinstance(text, bytes):
        raise InvalidTypeError(
            "the path of a table has the wrong type", found="bytes", expected="text or os.PathLike"
        )
    if not text:
        raise InvalidArgumentError("the path of a table is empty")
    if _URL.match(text):
        return text
    path = os.path.abspath(local_path(text) if text.startswith("file:/") else text)
    return path if os.sep == "/" else path.replace(os.sep, "/")


Opener = Callable[[str, Mapping[str, str]], "_core.Store | None"]
_opener: ContextVar[Opener | None] = ContextVar("opener", default=None)


@contextmanager
def opened_by(opener: Opener) -> Iterator[None]:
    """Makes `open_store` call `opener` inside the block: (location, storage options) -> a store, or None to
    open it as usual."""
    token = _opener.set(opener)
    try:
        yield
    finally:
        _opener.reset(token)


def open_store(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> _core.Store:
    """Opens the store of a table by the configuration: durability, allowed roots, a user's LogStore for the
    scheme."""
    location = locate(path)
    settings = configuration.current()
    options = options_of(storage_options)
    scheme = location.split("://", 1)[0] if _URL.match(location) else "file"
    if factory := settings.log_stores.get(scheme):
        return _core.Store.from_python(factory(location, options), location)
    opener = _opener.get()
    if opener is not None and (store := opener(location, options)) is not None:
        return store
    store = open_own(location, options)
    _remember(store.location, options)
    return store


def is_own_and_local(store: _core.Store) -> bool:
    """True for a store of a local folder that `open_store` opens in this context without a user's LogStore
    and without a session's settings."""
    is_own = "file" not in configuration.current().log_stores and _opener.get() is None
    return is_own and not store.is_remote and "://" not in store.location


def options_of(storage_options: Mapping[str, str] | None) -> dict[str, str]:
    """Returns a user's storage options as a dict. Anything but a mapping is an InvalidTypeError, whose
    message does not show the value, as it may be a secret."""
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise InvalidTypeError(
            "storage_options has the wrong type",
            found=type(storage_options).__name__,
            expected="a mapping, like {'region': 'eu-central-1'}",
        )
    return dict(storage_options or {})


def open_beside(store: _core.Store, location: str) -> _core.Store:
    """Opens the store of another table that the log of this table names, with the storage options of this
    table.

    A location with another scheme or bucket is a PathOutsideTableError unless it is in
    `configure(allowed_roots=)`: a writer of a log must not be able to direct readers to any location.
    """
    roots = (locate(root).rstrip("/") for root in configuration.current().allowed_roots)
    if _authority(location) != _authority(store.location) and not any(
        f"{location}/".startswith(f"{root}/") for root in roots
    ):
        raise PathOutsideTableError(
            "the log names a table in another store",
            where=store.location,
            found=location,
            expected="one of the same scheme and bucket, or a place in configure(allowed_roots=)",
        )
    return open_store(location, _OPENED.get(store.location))


def _authority(location: str) -> str:
    """Returns scheme and bucket of a URL: `s3://bucket`; empty for a local path."""
    return (
        "/".join(location.split("/", 3)[:3])
        if _URL.match(location) and not location.startswith("file:")
        else ""
    )


def _remember(location: str, options: Mapping[str, str]) -> None:
    if options:
        with _LOCK:
            _OPENED.pop(location, None)
            _OPENED[location] = dict(options)
            while len(_OPENED) > _MOST_OPENED:
                _OPENED.popitem(last=False)


def open_own(location: str, options: Mapping[str, str]) -> _core.Store:
    """Opens the store of a location with deltaic's own clients. Credentials come from the options, then from
    the function of `configure(credentials=)`, then from AWS profiles."""
    settings = configuration.current()
    scheme = location.split("://", 1)[0].lower() if _URL.match(location) else "file"
    function = None
    if scheme not in ("file", "memory"):
        from deltaic.log import credentials  # imported here, so that `import deltaic` stays fast

        if settings.credentials is not None:
            function = credentials.checked(settings.credentials)
        elif scheme in ("s3", "s3a"):
            options, function = credentials.of_profile(options)
    directory = settings.cache_directory
    return _core.Store(
        location,
        dict(options),
        durable=settings.durable,
        allowed_roots=settings.allowed_roots,
        credentials=function,
        cache=None if directory is None else (directory, settings.cache_limit),
    )


def public_options(storage_options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options without those whose names look like secrets."""
    return {name: value for name, value in storage_options.items() if not _SECRET.search(name)}
