"""Opens scans: prunes their files by further predicates and starts the stream of their rows.

This module is separate from `deltaic.engine.dataset`, so that a scan does not import `pyarrow.dataset` (a
quarter of a second) unless a dataset is requested.
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
"""Maximum rows in a batch from `_core`. With 8192 rows, passing batches to DuckDB costs a third more."""
SMALL_BYTES = 256 * 1024
"""Maximum bytes of files, or of rows in memory, of small inputs. For these, finding out how to read less
costs more than reading everything."""
ROW_ID_FIELDS = (Field(FILE_COLUMN, "integer", False), Field(ROW_COLUMN, "long", False))


def with_predicate(scan: Scan, predicate: _core.Predicate | None) -> Scan:
    """Adds a predicate to a scan, and leaves out the files that cannot contain a matching row."""
    if predicate is None:
        return scan
    # A file keeps its ordinal when other files are left out, so row ids stay valid.
    whole = numbered(scan.files) if scan.row_ids else scan.files
    left = _core.files_that_may_match(whole, predicate)
    files = scan.files if left.num_rows == scan.files.num_rows else left
    return replace(
        scan, files=files, predicate=predicate if scan.predicate is None else scan.predicate & predicate
    )


def bytes_of_files(scan: Scan) -> int:
    return sum(size or 0 for size in scan.files["size"].to_pylist())


def numbered(files: pa.Table) -> pa.Table:
    """Adds FILE_COLUMN with the position of each file, so that row ids stay valid when files are left out."""
    if FILE_COLUMN in files.column_names:
        return files
    import numpy as np

    ordinals = pa.py_buffer(np.arange(files.num_rows, dtype=np.int32))  # `pa.array` would import pandas
    return files.append_column(
        _hidden()[0], pa.Array.from_buffers(pa.int32(), files.num_rows, [None, ordinals])
    )


def _hidden() -> tuple[pa.Field, pa.Field]:
    return pa.field(FILE_COLUMN, pa.int32(), nullable=False), pa.field(ROW_COLUMN, pa.int64(), nullable=False)


OPENED: ContextVar[list[tuple[Scan, _core.ReadStream]] | None] = ContextVar("OPENED", default=None)
"""List to which `open_scan` adds each scan that it opens, for reports; None if nothing collects scans."""


@dataclass(frozen=True)
class Encoding:
    """Columns that are read as Arrow types close to the encoding in the file, which is faster.

    `encoded`: strings as dictionaries, decimals of up to 18 digits in 32 or 64 bits.
    `views`: strings as views (`string_view`) into the pages of the file."""

    encoded: tuple[str, ...] = ()
    views: tuple[str, ...] = ()


PLAIN = Encoding()
"""Every column in the Arrow type of its Delta type."""


def open_scan(scan: Scan, *, encoding: Encoding = PLAIN) -> _core.ReadStream:
    """Starts reading. The stream does not apply `scan.where`; the engine evaluates it."""
    stream = _core.read(
        scan.store,
        scan.table_schema,
        scan.files,
        scan.columns,
        scan.predicate,
        row_ids=scan.row_ids,
        constants=[item.name for item in scan.constants],
        row_tracking=scan.row_tracking,
        # With a small limit, further threads would decode rows that are not needed.
        threads=1 if scan.limit is not None and scan.limit <= BATCH_ROWS else configuration.current().threads,
        memory_limit=configuration.budget().readers,
        limit=None if scan.limit is None else min(scan.limit, 2**63 - 1),
        batch_size=BATCH_ROWS if scan.limit is None else max(1, min(scan.limit, BATCH_ROWS)),
        encoded=list(encoding.encoded),
        views=list(encoding.views),
    )
    if (opened := OPENED.get()) is not None:
        opened.append((scan, stream))
    return stream


def narrowed_scan(scan: Scan, names: Sequence[str]) -> Scan:
    """Restricts a scan to these columns. Hidden columns come last, whatever the order of `names`."""
    hidden = {item.name for item in scan.constants} | {FILE_COLUMN, ROW_COLUMN, *(scan.row_tracking or ())}
    # The scan's names, so that a column that reads only `a.b` of the struct `a` does not become all of `a`.
    spelled = {narrowed(scan.schema, name).name: name for name in scan.columns}
    return replace(
        scan,
        columns=tuple(spelled[name] for name in names if name not in hidden),
        constants=tuple(item for item in scan.constants if item.name in names),
        row_tracking=scan.row_tracking if set(scan.row_tracking or ()) & set(names) else None,
        row_ids=scan.row_ids and (FILE_COLUMN in names or ROW_COLUMN in names),
    )


def scan_schema(scan: Scan) -> Schema:
    """Returns the columns of a scan, hidden columns last."""
    fields = [scan.schema.get(name) or narrowed(scan.schema, name) for name in scan.columns]
    fields += [Field(name, "long") for name in scan.row_tracking or ()]
    return Schema([*fields, *scan.constants, *(ROW_ID_FIELDS if scan.row_ids else ())])


def scan_arrow_schema(scan: Scan, *, encoding: Encoding = PLAIN) -> pa.Schema:
    """Returns the Arrow columns of a scan, hidden columns last. `encoding`: as for `open_scan`."""
    schema = scan.table_schema.to_arrow(
        list(scan.columns), encoded=list(encoding.encoded), views=list(encoding.views)
    )
    for name in scan.row_tracking or ():
        schema = schema.append(pa.field(name, pa.int64()))
    for item in scan.constants:
        schema = schema.append(scan.files.schema.field(item.name))
    for item in _hidden() if scan.row_ids else ():
        schema = schema.append(item)
    return schema
