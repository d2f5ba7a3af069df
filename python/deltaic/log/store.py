"""Opens the store of a table, and defines the interface of a user's own store (`LogStore`)."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from deltaic import _core, configuration
from deltaic.errors import InvalidArgumentError, InvalidTypeError, PathOutsideTableError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Storage options of the places that were opened last with some; of more the first ones are forgotten.
_OPENED: OrderedDict[str, dict[str, str]] = OrderedDict()
_MOST_OPENED = 1000
_LOCK = threading.Lock()
# Names of storage options whose values must not leave the process.
_SECRET = re.compile(r"secret|token|passw|credential|signature|sas|key|auth|proxy[_-]?url", re.IGNORECASE)


@runtime_checkable
class LogStore(Protocol):
    """A place for objects; paths are relative to the table's root, '/'-separated, decoded. Called from any thread.

    What it must keep: an object is seen whole or not at all; `write_if_absent` never replaces; a listing after a write shows it. A missing
    object is a FileNotFoundError; whatever else is raised reaches the caller as it is. The compiled module checks the answers.
    """

    def list_from(self, prefix: str, start_after: str | None, recursive: bool, /) -> Iterable[tuple[str, int, int]]:
        """(path, size in bytes, modification time in ms) of the objects in the folder `prefix`, after the name `start_after` in it."""
        ...

    def head(self, path: str, /) -> tuple[int, int] | None:
        """(size, modification time in ms), None where there is no such object."""
        ...

    def read(self, path: str, start: int = 0, end: int | None = None, /) -> bytes:
        """The object's bytes from `start` to before `end`; all of them by default."""
        ...

    def write_if_absent(self, path: str, data: bytes, /) -> bool | None:
        """True: created, whole and visible at once. False (or FileExistsError): there is one already. None (or TimeoutError,
        ConnectionError): nobody knows. Any other exception says that nothing was written, and of a commit only where it cannot be read
        then."""
        ...

    def write(self, path: str, data: bytes, /) -> None:
        """Creates or replaces the object, atomically."""
        ...

    def delete(self, path: str, /) -> bool:
        """True if the object existed."""
        ...


class OneObject:
    """LogStore: these bytes, whatever the path. Nothing can be written."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def head(self, path: str) -> tuple[int, int]:
        """Returns the size of the object; its time is unknown."""
        return len(self._data), 0

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from `start` to before `end`."""
        return self._data[start:end]


def locate(path: str | os.PathLike[str]) -> str:
    """A user's path as a location: an absolute local path, or the URL as it is. `~` and variables are not expanded. `file:/x`, as Hadoop
    writes local paths, is /x."""
    try:
        text = os.fspath(path)
    except TypeError:
        raise InvalidTypeError("a table's path", found=type(path).__name__, expected="text or os.PathLike") from None
    if isinstance(text, bytes):
        raise InvalidTypeError("a table's path", found="bytes", expected="text or os.PathLike")
    if not text:
        raise InvalidArgumentError("a table's path is empty")
    if _URL.match(text):
        return text
    return os.path.abspath(text[5:] if text.startswith("file:/") else text)


Opener = Callable[[str, Mapping[str, str]], "_core.Store | None"]
_opener: ContextVar[Opener | None] = ContextVar("opener", default=None)


@contextmanager
def opened_by(opener: Opener) -> Iterator[None]:
    """While it lasts, `opener` (location, storage options) gives the stores of this thread, where it does not answer None."""
    token = _opener.set(opener)
    try:
        yield
    finally:
        _opener.reset(token)


def open_store(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> _core.Store:
    """The store of a table's place, by the configuration: durability, allowed roots, a user's own LogStore for its scheme."""
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


def options_of(storage_options: Mapping[str, str] | None) -> dict[str, str]:
    """A user's storage options. InvalidTypeError for what is no mapping; its value is not shown, as it may be a secret."""
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise InvalidTypeError(
            "storage_options", found=type(storage_options).__name__, expected="a mapping, like {'region': 'eu-central-1'}"
        )
    return dict(storage_options or {})


def open_beside(store: _core.Store, location: str) -> _core.Store:
    """The store of another table that the log of this one names, by the storage options that this one was opened with.

    PathOutsideTableError for one of another scheme or bucket, unless `configure(allowed_roots=)` has its place: who writes into a log
    shall not send readers anywhere.
    """
    roots = (locate(root).rstrip("/") for root in configuration.current().allowed_roots)
    if _authority(location) != _authority(store.location) and not any(f"{location}/".startswith(f"{root}/") for root in roots):
        raise PathOutsideTableError(
            "the log names a table in another store",
            where=store.location,
            found=location,
            expected="one of the same scheme and bucket, or a place in configure(allowed_roots=)",
        )
    return open_store(location, _OPENED.get(store.location))


def _authority(location: str) -> str:
    """Scheme and bucket of a URL; empty for a local path."""
    return "/".join(location.split("/", 3)[:3]) if _URL.match(location) and not location.startswith("file:") else ""


def _remember(location: str, options: Mapping[str, str]) -> None:
    if options:
        with _LOCK:
            _OPENED.pop(location, None)
            _OPENED[location] = dict(options)
            while len(_OPENED) > _MOST_OPENED:
                _OPENED.popitem(last=False)


def open_own(location: str, options: Mapping[str, str]) -> _core.Store:
    """The store of a location by our own clients: options, then the function of `configure(credentials=)`, then AWS profiles."""
    settings = configuration.current()
    scheme = location.split("://", 1)[0].lower() if _URL.match(location) else "file"
    function = None
    if scheme not in ("file", "memory"):
        from deltaic.log import credentials  # importing deltaic stays light

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
    """Returns the options whose names say that they are no secrets."""
    return {name: value for name, value in storage_options.items() if not _SECRET.search(name)}
