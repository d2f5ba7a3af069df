"""Reads the log of Spark's Parquet sink: a stream lists in `_spark_metadata/` the files of its complete
batches, and readers of the folder ignore all other files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import InvalidArgumentError, ProtocolError
from deltaic.log import references

_BATCH = re.compile(r"^_spark_metadata/([0-9]+)(\.compact)?$")
_ignored: ContextVar[bool] = ContextVar("logs of sinks are ignored", default=False)
_ENTRIES = pa.schema([("path", pa.string()), ("action", pa.string())])


@contextmanager
def ignoring_logs() -> Iterator[None]:
    """In the body, `sink_files` finds no log."""
    before = _ignored.set(True)
    try:
        yield
    finally:
        _ignored.reset(before)


def sink_files(store: _core.Store, paths: pa.ChunkedArray) -> pa.Array | None:
    """Returns the files of a stream's complete batches, relative to the folder of the store; None for a
    folder without such a log. `paths`: all files below the folder."""
    if _ignored.get():
        return None
    batches = [
        (int(match[1]), match[2] is not None, path)
        for path in paths.filter(pc.starts_with(paths, "_spark_metadata/")).to_pylist()
        if (match := _BATCH.match(path))
    ]
    if not batches:
        return None
    # `9.compact` has the entries of the batches 0 to 9.
    last = max((number for number, is_compact, _ in batches if is_compact), default=-1)
    entries = pa.concat_tables(
        _entries(store, path)
        for number, is_compact, path in batches
        if number > last or (number == last and is_compact)
    )
    gone = entries.filter(pc.equal(entries["action"], "delete"))["path"]
    present = pc.unique(entries.filter(pc.invert(pc.is_in(entries["path"], value_set=gone)))["path"])
    files = references.data_files(pa.table({"path": present}), store.location)
    inside = references.inside(files)
    if len(inside) != len(files):
        raise InvalidArgumentError(
            "the stream that wrote the folder has files outside of it; if they were moved, remove"
            " _spark_metadata",
            where=store.location,
            found=files.filter(pc.invert(pc.is_in(files, value_set=inside)))[0].as_py(),
            expected="files below the folder",
        )
    return inside


def _entries(store: _core.Store, path: str) -> pa.Table:
    """Returns path (a URI) and action of the entries in a file of the log. Its first line is the version,
    `v1`."""
    import pyarrow.json

    where = f"{store.location}/{path}"
    version, _, lines = store.get(path).partition(b"\n")
    if version.strip() != b"v1":
        raise ProtocolError(
            "unknown version of the log of a stream", where=where, found=repr(version[:20]), expected="'v1'"
        )
    if not lines.strip():
        return _ENTRIES.empty_table()
    options = pyarrow.json.ParseOptions(explicit_schema=_ENTRIES, unexpected_field_behavior="ignore")
    try:
        entries = pyarrow.json.read_json(pa.BufferReader(lines), parse_options=options)
    except pa.ArrowInvalid as error:
        raise ProtocolError("the log of a stream cannot be read", where=where, found=str(error)) from None
    if entries["path"].null_count or entries["action"].null_count:
        raise ProtocolError("an entry of the log of a stream has no path or no action", where=where)
    return entries
