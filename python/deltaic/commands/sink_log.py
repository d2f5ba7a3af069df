"""Reads the log of Spark's Parquet sink: a stream lists in `_spark_metadata/` the files of its complete
batches, and readers of the folder ignore all other files."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.errors import InvalidArgumentError, ProtocolError
from deltaic.log import references
from deltaic.protocol.bounded_json import parse_json

_BATCH = re.compile(r"^_spark_metadata/([0-9]+)(\.compact)?$")


def sink_files(store: _core.Store, paths: pa.ChunkedArray) -> pa.Array | None:
    """Returns the files of a stream's complete batches, relative to the folder of the store; None for a
    folder without such a log. `paths`: all files below the folder."""
    batches = sorted(
        (int(match[1]), match[2] is not None, path)
        for path in paths.filter(pc.starts_with(paths, "_spark_metadata/")).to_pylist()
        if (match := _BATCH.match(path))
    )
    if not batches:
        return None
    # `9.compact` has the entries of the batches 0 to 9.
    last = max((number for number, is_compact, _ in batches if is_compact), default=-1)
    entries: dict[str, str] = {}
    for number, is_compact, path in batches:
        if number > last or (number == last and is_compact):
            entries |= _entries(store, path)
    present = pa.array([uri for uri, action in entries.items() if action != "delete"], pa.string())
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


def _entries(store: _core.Store, path: str) -> dict[str, str]:
    """Returns URI -> action of the entries in a file of the log. Its first line is the version, `v1`."""
    version, *lines = store.get(path).decode().splitlines()
    if version != "v1":
        raise ProtocolError(
            "unknown version of the log of a stream", where=path, found=version, expected="v1"
        )
    actions = (parse_json(line) for line in lines if line)
    return {str(each["path"]): str(each["action"]) for each in actions}
