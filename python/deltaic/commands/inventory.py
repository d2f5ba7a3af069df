"""VACUUM with an inventory: a list of the files below a table instead of a listing (delta-spark: VACUUM USING
INVENTORY).

An inventory has the columns path (string), length (bytes, long), isDir (boolean) and modificationTime (ms
since 1970, long), in any order and with others, as in delta-spark's VacuumCommand.INVENTORY_SCHEMA. Paths are
absolute and not percent-encoded: "s3a://bucket/table/part-1.parquet", "file:/data/table/part-1.parquet",
"/data/table/part-1.parquet". Entries outside of the table and relative paths are ignored. If a path has
several entries, the newest one counts.

Memory: 8 bytes for each file that is kept, and a row for each file that is deleted. The paths of files to
keep are written to a checkpoint in the temporary folder, read from it in batches, and hashed. If two paths
have one hash, a file is kept that could be deleted; no file is ever deleted because of it.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core, configuration
from deltaic.engine.exporters import Failure, check_unread, exporter_of, started
from deltaic.errors import InvalidArgumentError, SchemaMismatchError
from deltaic.log import references
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import locate, open_store
from deltaic.protocol.paths import decoded_path, url_path

log = logging.getLogger("deltaic.commands")

COLUMNS = {"path": "string", "length": "long", "isDir": "boolean", "modificationTime": "long"}
SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64()), ("modification_time", pa.int64())])
"""Columns of the files that may be deleted: path relative to the table, bytes, modification time in ms since
1970."""

_BATCH = 2_048
"""Number of entries that are processed together."""
_SECONDS = 100_000_000_000
"""Times before this one (ms: March 1973) are probably in seconds, which is an error."""
_NOT_A_PATH = r"^$|^/|//|/$|(^|/)\.{1,2}(/|$)|\x00"


class PathSet:
    """A set of paths, as hashes (xxhash64). About once in 10^19 pairs, a path that was not added counts as
    added; the opposite never happens."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._sorted = np.array([], np.int64)

    def add(self, paths: pa.Array | pa.ChunkedArray) -> None:
        self._parts.extend(_hashes(part) for part in _parts(paths))

    def count(self) -> int:
        """Returns the number of distinct paths that were added."""
        self._sort()
        return int(np.count_nonzero(self._sorted[1:] != self._sorted[:-1])) + min(len(self._sorted), 1)

    def _sort(self) -> None:
        if self._parts:
            self._sorted, self._parts = np.concatenate([self._sorted, *self._parts]), []
            self._sorted.sort()  # sorted in place, as `np.unique` would need three times more memory

    def contain(self, paths: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
        """Returns for each path if it was added."""
        self._sort()
        if not len(self._sorted):
            return pa.chunked_array([pa.array(np.zeros(len(paths), bool))])
        return pa.chunked_array([self._known(_hashes(part)) for part in _parts(paths)], pa.bool_())

    def _known(self, hashes: Any) -> pa.Array:
        places = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        return pa.array(self._sorted[places] == hashes)


def _parts(paths: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yields the paths in batches."""
    for chunk in paths.chunks if isinstance(paths, pa.ChunkedArray) else [paths]:
        for start in range(0, len(chunk), _BATCH):
            yield chunk.slice(start, _BATCH)


def _hashes(paths: pa.Array) -> Any:
    return _core.evaluate_kernel([pa.array(["xxhash64"]), references.folded(paths)]).to_numpy()


@dataclass
class InventoryFiles:
    """The entries of an inventory that a VACUUM deletes. `files`: files that may be deleted (SCHEMA).
    `folders`: old and visible folders on a local disk, relative to the table."""

    files: pa.Table
    folders: list[str] = field(default_factory=list)


@contextmanager
def freeing_memory() -> Iterator[None]:
    """Makes Rust return freed memory to the system at once, inside the block. The memory for a log of many
    files is not needed again soon."""
    _core.keep_freed_memory(0)
    try:
        yield
    finally:
        configuration.budget()  # sets the normal time for which freed memory is kept


def deletable_files(
    snapshot: Snapshot,
    inventory: Any,
    *,
    kept: Sequence[Snapshot],
    removed: Iterable[pa.Array],
    cutoff: int,
    is_shown: Callable[[pa.Table], pa.Array],
) -> InventoryFiles:
    """Returns the files of an inventory that VACUUM may delete: they are older than `cutoff` (ms), `is_shown`
    returns True for them, and no version, no tombstone since `cutoff` and none of the paths `removed` names
    them.

    InvalidTypeError is raised for an argument that has no rows, SchemaMismatchError for a missing column or
    another type, and InvalidArgumentError for a null or a time in seconds in an entry below the table."""
    entries = _entries(inventory, snapshot.location)
    needed = protected([snapshot, *kept], removed, cutoff)
    young, deletable, folders = PathSet(), [SCHEMA.empty_table()], set[str]()
    is_local = "://" not in snapshot.location
    has_entries = has_entries_below = False
    for batch in entries:
        below = _below(batch, snapshot.location)
        has_entries |= batch.num_rows > 0
        has_entries_below |= below.num_rows > 0
        if not below.num_rows:
            continue
        is_old = pc.less(below["modification_time"], cutoff)
        young.add(below["path"].filter(pc.invert(is_old)))
        old = below.filter(is_old)
        is_folder = old["isDir"]
        if is_local:
            folders.update(_visible_folders(old.filter(is_folder), is_shown))
        files = old.filter(pc.invert(is_folder)).select(SCHEMA.names)
        files = files.filter(pc.invert(pc.match_substring_regex(files["path"], _NOT_A_PATH)))
        files = files.filter(is_shown(files))
        deletable.append(files.filter(pc.invert(needed.contain(files["path"]))))
    if young.count():
        deletable = [files.filter(pc.invert(young.contain(files["path"]))) for files in deletable]
    files = pa.concat_tables(deletable)
    if _has_repeated_paths(files):
        files = files.group_by("path", use_threads=False).aggregate(
            [("size", "max"), ("modification_time", "max")]
        )
        files = files.rename_columns(SCHEMA.names)
    if has_entries and not has_entries_below:
        log.warning("%s: no entry of the inventory lies below the table", snapshot.location)
    pa.default_memory_pool().release_unused()
    return InventoryFiles(files, sorted(folders, reverse=True))


def _has_repeated_paths(files: pa.Table) -> bool:
    """True if a path may occur twice."""
    paths = PathSet()
    paths.add(files["path"])
    return bool(paths.count() < files.num_rows)


def unprotected(
    files: pa.Table, snapshot: Snapshot, kept: Sequence[Snapshot], removed: Iterable[pa.Array], cutoff: int
) -> pa.Table:
    """Returns the files that the versions, their tombstones and the paths `removed` do not need."""
    needed = protected([snapshot, *kept], removed, cutoff)
    return files.filter(pc.invert(needed.contain(files["path"])))


def protected(snapshots: Sequence[Snapshot], removed: Iterable[pa.Array], cutoff: int) -> PathSet:
    """Returns the data files and vector files of the versions and of their tombstones since `cutoff` (ms),
    and the paths `removed`."""
    needed = PathSet()
    for paths in removed:
        needed.add(paths)
    for snapshot in snapshots:
        for actions in _actions(snapshot, cutoff):
            needed.add(references.referenced(actions, snapshot.location))
    pa.default_memory_pool().release_unused()
    return needed


def _actions(snapshot: Snapshot, cutoff: int) -> Iterator[pa.Table]:
    """Yields path and deletion vector of the live files and of the tombstones of a version, in batches."""
    import pyarrow.parquet as pq

    columns = [f"{action}.{name}" for action in ("add", "remove") for name in ("path", "deletionVector")]
    with tempfile.TemporaryDirectory(
        prefix="deltaic-vacuum-", dir=configuration.current().temp_directory
    ) as folder:
        store = _core.Store(folder, durable=False)
        snapshot.core.write_checkpoint(
            store,
            "files.parquet",
            min_deletion_timestamp=cutoff - 1,
            stats_as_json=False,
            stats_as_struct=False,
        )
        with pq.ParquetFile(os.path.join(folder, "files.parquet"), pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=_BATCH, columns=columns, use_threads=False):
                for action in ("add", "remove"):
                    structs = batch.column(action)
                    structs = structs.filter(structs.is_valid())
                    if len(structs):
                        names = ["path", "deletionVector"]
                        yield pa.table([pc.struct_field(structs, name) for name in names], names=names)


def _entries(inventory: Any, where: str) -> Iterator[pa.Table]:
    """Yields the entries with the columns of COLUMNS, in batches."""
    if isinstance(inventory, (str, os.PathLike)):
        return _sliced(_of_parquet(inventory), where)
    if hasattr(inventory, "toArrow") and hasattr(inventory, "sparkSession"):
        inventory = _of_spark(inventory, where)
    check_unread(inventory)
    failure = Failure()
    exporter, schema = exporter_of(inventory, failure)
    _check(schema, where)
    return _sliced(_read(inventory, exporter, failure), where)


def _read(inventory: Any, exporter: Any, failure: Failure) -> Iterator[pa.RecordBatch]:
    started(inventory)
    reader = pa.RecordBatchReader.from_stream(exporter)
    try:
        yield from reader
    except Exception:
        failure.check()
        raise


def _of_parquet(path: str | os.PathLike[str]) -> Iterator[pa.RecordBatch]:
    """Reads an inventory in Parquet: one file, or all files below a folder whose names end with .parquet."""
    import pyarrow.parquet as pq

    place = locate(path)
    folder, name = place.rstrip("/"), ""
    if folder.endswith(".parquet") and ("://" in folder or not os.path.isdir(folder)):
        folder, _, name = folder.rpartition("/")
    store = open_store(folder)
    names = (
        [name]
        if name
        else [each for each in store.list_from("", recursive=True)["path"].to_pylist() if _is_data(each)]
    )
    if not names:
        raise InvalidArgumentError(
            "the inventory has no Parquet files",
            where=place,
            expected="a file, or a folder of files, *.parquet",
        )
    for each in names:
        is_local = "://" not in store.location
        source = os.path.join(store.location, each) if is_local else pa.BufferReader(store.get(each))
        with pq.ParquetFile(source, pre_buffer=False) as file:
            _check(file.schema_arrow, f"{folder}/{each}")
            yield from file.iter_batches(batch_size=_BATCH, columns=list(COLUMNS), use_threads=False)


def _is_data(path: str) -> bool:
    return path.endswith(".parquet") and not any(part.startswith(("_", ".")) for part in path.split("/"))


def _of_spark(frame: Any, where: str) -> pa.Table:
    """Collects the entries below the table. Spark filters out the others, so they are not sent to the
    driver."""
    from functools import reduce
    from operator import or_

    from pyspark.sql import functions as F

    names = {"string": "string", "bigint": "long", "boolean": "boolean"}
    _check_types({name: names.get(of, of) for name, of in frame.dtypes if name in COLUMNS}, where)
    prefixes = [F.col("path").startswith(prefix) for prefix in _prefixes(where)]
    return frame.where(reduce(or_, prefixes)).select(*COLUMNS).toArrow()


def _check(schema: pa.Schema, where: str) -> None:
    found = {}
    for item in schema:
        is_text = (
            pa.types.is_string(item.type)
            or pa.types.is_large_string(item.type)
            or pa.types.is_string_view(item.type)
        )
        names = {pa.int64(): "long", pa.bool_(): "boolean"}
        if item.name in COLUMNS:
            found[item.name] = "string" if is_text else names.get(item.type, str(item.type))
    _check_types(found, where)


def _check_types(found: dict[str, str], where: str) -> None:
    if found != COLUMNS:
        raise SchemaMismatchError(
            "the inventory does not have the required columns",
            where=where,
            found=", ".join(f"{name} {of}" for name, of in found.items()) or "none of them",
            expected=", ".join(f"{name} {of}" for name, of in COLUMNS.items()),
        )


def _sliced(batches: Iterator[pa.RecordBatch], where: str) -> Iterator[pa.Table]:
    types = (pa.string(), pa.int64(), pa.bool_(), pa.int64())
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH):
            part = batch.slice(start, _BATCH)
            yield pa.table(
                [part.column(name).cast(of) for name, of in zip(COLUMNS, types, strict=True)],
                names=list(COLUMNS),
            )


def _prefixes(location: str) -> list[str]:
    """Returns the prefixes with which paths below a table may begin: `/data/t/`, `file:/data/t/` and
    `file:///data/t/`."""
    place = location.rstrip("/")
    if "://" not in place:
        return [f"{place}/", *(f"{begin}{url_path(place)}/" for begin in ("file:", "file://"))]
    scheme, _, rest = place.partition("://")
    schemes = ("s3", "s3a", "s3n") if scheme in ("s3", "s3a", "s3n") else (scheme,)
    return list(
        dict.fromkeys(f"{each}://{spelled}/" for each in schemes for spelled in (rest, decoded_path(rest)))
    )


def _below(batch: pa.Table, location: str) -> pa.Table:
    """Returns the entries below the table with relative paths: path, size, isDir, modification_time. A null
    in one of them is an InvalidArgumentError."""
    if os.sep != "/" and "://" not in location:  # Windows: C:\tables\orders\part-1.parquet
        batch = batch.set_column(0, "path", pc.replace_substring(batch["path"], os.sep, "/"))
    parts = []
    for prefix in _prefixes(location):
        part = batch.filter(pc.starts_with(batch["path"], prefix))
        if part.num_rows:
            paths = pc.utf8_slice_codeunits(part["path"], len(prefix))
            parts.append(
                pa.table([paths, *part.columns[1:]], names=["path", "size", "isDir", "modification_time"])
            )
    if not parts:
        return batch.slice(0, 0).rename_columns(["path", "size", "isDir", "modification_time"])
    below = pa.concat_tables(parts)
    for name, column in zip(COLUMNS, ("path", "size", "isDir", "modification_time"), strict=True):
        if below[column].null_count:
            path = below["path"].filter(pc.is_null(below[column]))[0].as_py()
            raise InvalidArgumentError(
                f"the inventory has a null in {name}", where=f"{location}/{path}", expected=COLUMNS[name]
            )
    times = below["modification_time"]
    if pc.any(pc.and_(pc.greater(times, 0), pc.less(times, _SECONDS))).as_py():
        wrong = below.filter(pc.and_(pc.greater(times, 0), pc.less(times, _SECONDS)))
        raise InvalidArgumentError(
            "the inventory has a modificationTime that is not in milliseconds",
            where=f"{location}/{wrong['path'][0].as_py()}",
            found=wrong["modification_time"][0].as_py(),
            expected="milliseconds since 1970",
        )
    return below


def _visible_folders(folders: pa.Table, is_shown: Callable[[pa.Table], pa.Array]) -> list[str]:
    folders = folders.set_column(0, "path", pc.utf8_rtrim(folders["path"], "/"))
    folders = folders.filter(pc.invert(pc.match_substring_regex(folders["path"], _NOT_A_PATH)))
    paths: list[str] = folders["path"].filter(is_shown(folders)).to_pylist()
    return paths
