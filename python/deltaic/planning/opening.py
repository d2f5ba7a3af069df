"""Opening a scan: which of its files are left, the stream of its rows.

Apart from `deltaic.engine.dataset`, so that a scan that nobody asks a `pyarrow.dataset` of does not import that (a quarter of a second).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deltaic import _core, configuration
from deltaic.plan.nodes import FILE_COLUMN, ROW_COLUMN, Scan
from deltaic.planning.columns import narrowed
from deltaic.protocol.schema import Field, Schema

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa

BATCH_ROWS = 65536
"""At most so many rows in a batch of `_core`: at 8 k rows the hand-over to DuckDB costs a third more."""
SMALL_BYTES = 256 * 1024
"""Bytes of files, and of rows in memory, up to which less work is done to find out how to read less."""
ROW_ID_FIELDS = (Field(FILE_COLUMN, "integer", False), Field(ROW_COLUMN, "long", False))


def with_predicate(scan: Scan, predicate: _core.Predicate | None) -> Scan:
    """The scan of only the rows for which `predicate` holds too, without the files that cannot have any."""
    if predicate is None:
        return scan
    # The number of a file stays the same when others are left out.
    whole = numbered(scan.files) if scan.row_ids else scan.files
    left = _core.files_that_may_match(whole, predicate)
    files = scan.files if left.num_rows == scan.files.num_rows else left
    return replace(scan, files=files, predicate=predicate if scan.predicate is None else scan.predicate & predicate)


def bytes_of_files(scan: Scan) -> int:
    return sum(size or 0 for size in scan.files["size"].to_pylist())


def numbered(files: pa.Table) -> pa.Table:
    """The files with their position as a column, so that a row's name stays the same when some of them are left out."""
    if FILE_COLUMN in files.column_names:
        return files
    import numpy as np

    ordinals = pa.py_buffer(np.arange(files.num_rows, dtype=np.int32))  # `pa.array` of it would import pandas
    return files.append_column(_hidden()[0], pa.Array.from_buffers(pa.int32(), files.num_rows, [None, ordinals]))


def _hidden() -> tuple[pa.Field, pa.Field]:
    return pa.field(FILE_COLUMN, pa.int32(), nullable=False), pa.field(ROW_COLUMN, pa.int64(), nullable=False)


OPENED: ContextVar[list[tuple[Scan, _core.ReadStream]] | None] = ContextVar("OPENED", default=None)
"""List to which `open_scan` adds each scan that it opens, for reports; None if nothing collects scans."""


@dataclass(frozen=True)
class Encoding:
    """Columns that come in the types nearest to the files' bytes. `encoded`: texts as dictionaries, decimals of few digits in 32 or 64
    bits; `views`: texts as views of the pages of the file."""

    encoded: tuple[str, ...] = ()
    views: tuple[str, ...] = ()


PLAIN = Encoding()
"""Every column in its own type."""


def open_scan(scan: Scan, *, encoding: Encoding = PLAIN) -> _core.ReadStream:
    """Starts reading. Whoever reads evaluates `where`."""
    stream = _core.read(
        scan.store,
        scan.table_schema,
        scan.files,
        scan.columns,
        scan.predicate,
        row_ids=scan.row_ids,
        constants=[item.name for item in scan.constants],
        row_tracking=scan.row_tracking,
        # Other threads would decode what nobody asks for.
        threads=1 if scan.limit is not None and scan.limit <= BATCH_ROWS else configuration.current().threads,
        memory_limit=configuration.budget().readers,
        limit=scan.limit,
        batch_size=BATCH_ROWS if scan.limit is None else max(1, min(scan.limit, BATCH_ROWS)),
        encoded=list(encoding.encoded),
        views=list(encoding.views),
    )
    if (opened := OPENED.get()) is not None:
        opened.append((scan, stream))
    return stream


def narrowed_scan(scan: Scan, names: Sequence[str]) -> Scan:
    """The scan of only these of its columns. The hidden ones come last, whatever the order of the names."""
    hidden = {item.name for item in scan.constants} | {FILE_COLUMN, ROW_COLUMN, *(scan.row_tracking or ())}
    # The scan's own spelling of a name, so that a column that reads one nested branch stays that.
    spelled = {narrowed(scan.schema, name).name: name for name in scan.columns}
    return replace(
        scan,
        columns=tuple(spelled[name] for name in names if name not in hidden),
        constants=tuple(item for item in scan.constants if item.name in names),
        row_tracking=scan.row_tracking if set(scan.row_tracking or ()) & set(names) else None,
        row_ids=scan.row_ids and (FILE_COLUMN in names or ROW_COLUMN in names),
    )


def scan_schema(scan: Scan) -> Schema:
    """The columns that a scan leaf gives, hidden ones last."""
    fields = [scan.schema.get(name) or narrowed(scan.schema, name) for name in scan.columns]
    fields += [Field(name, "long") for name in scan.row_tracking or ()]
    return Schema([*fields, *scan.constants, *(ROW_ID_FIELDS if scan.row_ids else ())])


def scan_arrow_schema(scan: Scan, *, encoding: Encoding = PLAIN) -> pa.Schema:
    """The Arrow columns of a scan, hidden ones last. `encoding`: as for `open_scan`."""
    schema = scan.table_schema.to_arrow(list(scan.columns), encoded=list(encoding.encoded), views=list(encoding.views))
    for name in scan.row_tracking or ():
        schema = schema.append(pa.field(name, pa.int64()))
    for item in scan.constants:
        schema = schema.append(scan.files.schema.field(item.name))
    for item in _hidden() if scan.row_ids else ():
        schema = schema.append(item)
    return schema
