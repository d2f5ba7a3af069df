"""Settings of the process and of `with` blocks: memory, threads, time zone, defaults of new tables."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from deltaic import _core, memory
from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError, check_instance
from deltaic.process_state import module_lock

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")

# What a new table has unless the user says otherwise.
_TABLE_DEFAULTS: Mapping[str, str] = {"delta.enableDeletionVectors": "true"}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The settings in effect. Sizes are in bytes.

    `memory_limit`: of readers, writers and the embedded engine together; None: half of what the machine or
    the container allows. `temp_directory`, `temp_limit`: where and how much the engine spills; None: below
    the system's temporary folder, 90 % of its disk. `threads`: of the engine, of reading and writing;
    None: one for each processor. `default_properties`: of new tables. `durable`: fsync on local disks.
    `allowed_roots`: locations outside a table that its log may name. `cache_directory`, `cache_limit`:
    where local copies of immutable files of object stores are kept (None: nowhere), and how many bytes.
    `log_stores`: URL scheme -> factory(location, storage options) -> LogStore. `credentials`: (URL of a
    bucket) -> storage options that are credentials. `background_checkpoints`: True to write checkpoints
    after the call that commits has returned. `background_optimize`: True to compact small files after it, in
    tables with auto compaction. `log_compaction_interval`: number of commits of which a file with the
    actions of all is written; 0: no such files. `commit_coordinator`: (location of a table) ->
    `deltaic.CommitCoordinator` of the catalog that manages it, or None.
    """

    memory_limit: int | None = None
    temp_directory: str | None = None
    temp_limit: int | None = None
    threads: int | None = None
    default_properties: Mapping[str, Any] = field(default_factory=lambda: dict(_TABLE_DEFAULTS))
    time_zone: str = "UTC"
    durable: bool = True
    allowed_roots: tuple[str, ...] = ()
    cache_directory: str | None = None
    cache_limit: int = 10 * 10**9
    log_stores: Mapping[str, Callable[[str, Mapping[str, str]], Any]] = field(default_factory=dict)
    pickle_credentials: bool = False
    credentials: Callable[[str], Mapping[str, Any]] | None = None
    background_checkpoints: bool = False
    background_optimize: bool = False
    log_compaction_interval: int = 0
    commit_coordinator: Callable[[str], Any] | None = None


_lock = module_lock()
_process: tuple[Configuration, tuple[_Layer, ...]] = (Configuration(), ())
"""The process's settings, and the changes of calls of `configure` whose result still exists, so that a `with`
block may enter it: the changes then apply to that block instead of the process."""
_context: ContextVar[tuple[_Layer, ...]] = ContextVar("deltaic configuration", default=())
"""Changes of the `with` blocks around the running code, the innermost one last."""


_computed: tuple[Any, Any, Configuration] = (None, None, Configuration())
"""The last result of `current`, with the `_process` and the blocks that it was computed from."""


@dataclass(frozen=True, eq=False)
class _Layer:
    """The settings that one call of `configure` changes, and the object that it gave to the caller."""

    changes: Mapping[str, Any]
    setting: weakref.ref[Setting]


def current() -> Configuration:
    """The configuration of the running code: that of the process, with the changes of the `with` blocks
    around it."""
    global _computed
    process, blocks = _process, _context.get()
    computed = _computed  # one read, as another thread may replace it
    if computed[0] is process and computed[1] is blocks:
        return computed[2]
    configuration, layers = process
    for layer in (*layers, *blocks):
        configuration = replace(configuration, **layer.changes)
    _computed = process, blocks, configuration
    return configuration


def budget() -> memory.Budget:
    """Division of the memory limit among DuckDB, `_core` and rows that are held, for the running code."""
    configuration = current()
    found = memory.budget(configuration.memory_limit, configuration.threads)
    _core.keep_freed_memory(found.kept_freed)
    return found


class Setting:
    """The result of `configure`. In a `with` statement, its changes apply only to the running context (a
    thread or an asyncio task), until the block ends. Without `with`, they apply to the whole process, and
    stay."""

    def __init__(self, changes: Mapping[str, Any]) -> None:
        global _process
        self._layer = _Layer(changes, weakref.ref(self))
        with _lock:
            configuration, layers = _process
            while layers and layers[0].setting() is None:  # freed, so no `with` can enter it
                configuration, layers = replace(configuration, **layers[0].changes), layers[1:]
            _process = configuration, (*layers, self._layer)
        if blocks := _context.get():  # a call within a `with` block overrides the settings of the block
            _context.set((*blocks, self._layer))

    def __enter__(self) -> Configuration:
        global _process
        with _lock:
            configuration, layers = _process
            _process = configuration, tuple(layer for layer in layers if layer is not self._layer)
        _context.set((*(layer for layer in _context.get() if layer is not self._layer), self._layer))
        return current()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        layers = _context.get()
        if self._layer in layers:
            _context.set(layers[: layers.index(self._layer)])


def configure(
    *,
    memory_limit: int | str | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    temp_limit: int | str | None = None,
    threads: int | None = None,
    default_properties: Mapping[str, Any] | None = None,
    time_zone: str | None = None,
    durable: bool | None = None,
    allowed_roots: Sequence[str | os.PathLike[str]] | None = None,
    cache_directory: str | os.PathLike[str] | None = None,
    cache_limit: int | str | None = None,
    limits: Any = None,
    log_stores: Mapping[str, Callable[[str, Mapping[str, str]], Any]] | None = None,
    pickle_credentials: bool | None = None,
    credentials: Callable[[str], Mapping[str, Any]] | None = None,
    background_checkpoints: bool | None = None,
    background_optimize: bool | None = None,
    log_compaction_interval: int | None = None,
    commit_coordinator: Callable[[str], Any] | None = None,
) -> Setting:
    """Changes settings for the process; in `with deltaic.configure(...):` for the code of the block alone.
    None (the default of every argument) leaves a setting as it is.

    Other threads and asyncio tasks do not see the settings of a block, unless they run in a copy of its
    context (`asyncio.to_thread`, tasks made in the block, `contextvars.copy_context().run`). Rows and queries
    keep the time zone they were made with.

    Sizes are bytes, or text like "4GB" and "512MiB".

    `memory_limit`: size of what reading, writing and the embedded engine take together in this process,
        within 20 %. The default is half of the machine's memory, or of what the container allows (control
        groups of version 1 and 2). The engine has about half of it and spills beyond that to files in
        `temp_directory`; scans and writes wait, or write smaller row groups. Objects of the caller, such as
        a table that is written or the result of `to_arrow()`, come on top. The libraries alone take some
        150 MB, so a limit below 600 MB is not kept. If the engine cannot do its work within its part,
        MemoryError is raised.
    `temp_directory`: folder for the files of the engine and of sources that are read twice; by default in
        the system's temporary folder. `temp_limit`: maximum size of the engine's files in it; by default
        90 % of the free space of its disk.
    `threads`: number of threads of a scan, of a write and of the engine; by default one per processor.
    `default_properties`: properties of new tables, in place of the default
        `{"delta.enableDeletionVectors": "true"}`.
    `time_zone`: an IANA name such as "Europe/Berlin", in which queries read and show timestamps; by default
        "UTC".
    `durable`: True (the default) to sync new files to the local disk before their commit is visible, so that
        a version survives a loss of power.
    `allowed_roots`: list of paths or URLs outside a table from which its files may be read, for example the
        source of a shallow clone; by default none. It holds for tables that are opened from then on.
    `log_stores`: by URL scheme, a function that opens a `deltaic.log.store.LogStore` for a location and its
        storage options; by default none. Example: `{"s3": deltaic.DynamoDBLogStores()}`.
    `credentials`: a function that gives the credentials of object stores. It is called with the URL of the
        bucket ("s3://bucket") and returns storage options, such as aws_access_key_id,
        aws_secret_access_key and aws_session_token, azure_storage_token or google_token; with `expires` (a
        datetime with a zone, or seconds since 1970) it is called again five minutes before that time. These
        go before credentials in `storage_options` and in the environment.
    `pickle_credentials`: True to keep the credentials of `storage_options` in pickled objects; by default
        False.
    `background_checkpoints`: True to return from a commit before the checkpoint that is due is written; by
        default False. The process does not end before the checkpoint is written. Checksums of tables in
        object stores are always written after the commit has returned.
    `background_optimize`: True to return from a write to a table with `delta.autoOptimize.autoCompact` before
        small files are compacted, on the embedded engine; by default False. The compaction gives way: it
        commits nothing if a command other than an append began on the table in this process meanwhile, or if
        it conflicts with a commit of another process. A later command on an older snapshot starts from the
        version that the compaction made. The process does not end before the compaction; errors are logged
        (`deltaic.commands`).
    `log_compaction_interval`: number of commits, at least 2, whose actions are also written to one compacted
        file, which readers may read instead; by default 0, for none.
    `commit_coordinator`: a function that gives the `deltaic.CommitCoordinator` of a table that a catalog
        manages. It is called often with the table's location and returns None for other tables; a table of
        a catalog is refused without it.
    `cache_directory`: a folder for local copies of what is immutable in object stores: commits,
        checkpoints, footers, ranges of data files and vectors; by default none. Tables opened from then on
        read through the cache (not those in stores of `log_stores`). The folder is created if it is missing,
        must be for this user alone (mode 700), may be shared by processes and deleted at any time.
    `cache_limit`: maximum size of that folder, by default 10 GB; the copies that were used least recently are
        deleted first.
    `limits`: not supported by this release; only None is accepted.

    Returns an object for the `with` statement, which a call without `with` can ignore. Raises
    InvalidArgumentError (an invalid value), InvalidTypeError (a value of another type), and
    UnsupportedFeatureError for `limits`.

    >>> with deltaic.configure(memory_limit="2GB", time_zone="Europe/Berlin"):
    ...     berlin = deltaic.sql("SELECT hour(TIMESTAMP '2026-01-31T12:00:00Z') AS h").to_pylist()
    """
    if limits is not None:
        raise UnsupportedFeatureError(
            "configure(limits=) is not supported by this release", found=repr(limits), expected="None"
        )
    changes = {
        "memory_limit": None if memory_limit is None else parse_size(memory_limit, "memory_limit"),
        "temp_directory": None
        if temp_directory is None
        else os.path.abspath(_place(temp_directory, "temp_directory")),
        "temp_limit": None if temp_limit is None else parse_size(temp_limit, "temp_limit"),
        "threads": _threads(threads),
        "default_properties": _properties(default_properties),
        "time_zone": checked_time_zone(time_zone),
        "durable": _flag(durable, "durable"),
        "allowed_roots": _roots(allowed_roots),
        "cache_directory": _cache_directory(cache_directory),
        "cache_limit": None if cache_limit is None else parse_size(cache_limit, "cache_limit"),
        "log_stores": _log_stores(log_stores),
        "pickle_credentials": _flag(pickle_credentials, "pickle_credentials"),
        "credentials": _function(credentials, "credentials"),
        "background_checkpoints": _flag(background_checkpoints, "background_checkpoints"),
        "background_optimize": _flag(background_optimize, "background_optimize"),
        "log_compaction_interval": _interval(log_compaction_interval),
        "commit_coordinator": _function(commit_coordinator, "commit_coordinator"),
    }
    return Setting({name: value for name, value in changes.items() if value is not None})


def parse_size(value: int | str, name: str = "size") -> int:
    """Bytes, or text with a unit: "4GB" (10^9), "512MiB" (2^20)."""
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)) and match[2].lower() in _UNITS:
        size = int(float(match[1]) * _UNITS[match[2].lower()])
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        raise InvalidArgumentError(
            f"{name}: not a size", found=repr(value), expected="bytes, or text like '4GB' or '512MiB'"
        )
    if size < 1:
        raise InvalidArgumentError(f"{name}: not a size", found=repr(value), expected="at least 1 byte")
    return size


def _threads(value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidArgumentError("invalid threads", found=repr(value), expected="a number >= 1")
    return value


def _interval(value: int | None) -> int | None:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int) or value < 0 or value == 1
    ):
        raise InvalidArgumentError(
            "invalid log_compaction_interval", found=repr(value), expected="a number of commits >= 2, or 0"
        )
    return value


def _flag(value: bool | None, name: str) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise InvalidTypeError(f"{name} has the wrong type", found=repr(value), expected="True or False")
    return value


def _function(value: Callable[[str], Any] | None, name: str) -> Callable[[str], Any] | None:
    if value is not None and not callable(value):
        raise InvalidTypeError(
            f"{name} is not a function", found=type(value).__name__, expected="a callable that takes a URL"
        )
    return value


def checked_time_zone(value: str | None) -> str | None:
    if value is None or value == "UTC":
        return value
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(value)
    except Exception as error:  # ZoneInfo raises several kinds for what is no zone
        raise InvalidArgumentError(
            "unknown time zone", found=repr(value), expected="an IANA name, like 'Europe/Berlin'"
        ) from error
    return value


def _roots(value: Sequence[str | os.PathLike[str]] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, (str, os.PathLike)):
        raise InvalidTypeError(
            "allowed_roots has the wrong type", found=repr(value), expected="a list of locations"
        )
    check_instance(value, Sequence, "allowed_roots", "a list of locations")
    roots = [_place(root, "allowed_roots") for root in value]
    return tuple(root if "://" in root else os.path.abspath(root) for root in roots)


def _cache_directory(value: str | os.PathLike[str] | None) -> str | None:
    if value is None:
        return None
    directory = os.path.abspath(_place(value, "cache_directory"))
    _core.check_cache_folder(directory)
    return directory


def _place(value: str | os.PathLike[str], name: str) -> str:
    check_instance(value, (str, os.PathLike), name, "a path")
    return os.fspath(value)


def _log_stores(value: Mapping[str, Callable[[str, Mapping[str, str]], Any]] | None) -> dict[str, Any] | None:
    if value is None:
        return None
    check_instance(value, Mapping, "log_stores", "a mapping of URL schemes to factories")
    for scheme, factory in value.items():
        check_instance(scheme, str, "log_stores", "URL schemes")
        if not callable(factory):
            raise InvalidTypeError(
                f"log_stores[{scheme!r}] is not a function", found=repr(factory)[:80], expected="a callable"
            )
    return dict(value)


def _properties(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if value is None:
        return None
    from deltaic.protocol.properties import request  # only a check: importing deltaic stays light

    request(value)
    return dict(value)
