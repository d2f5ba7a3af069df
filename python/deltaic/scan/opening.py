"""Opening a scan: what of its condition the reader can do, which of its files are left, the stream of its rows.

Apart from `deltaic.scan.dataset`, so that a scan that nobody asks a `pyarrow.dataset` of does not import that (a quarter of a second).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deltaic import _core, configuration
from deltaic.protocol.schema import Field, Schema
from deltaic.relation.plan import FILE_COLUMN, ROW_COLUMN, Scan
from deltaic.scan.columns import narrowed

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa

ROW_ID_FIELDS = (Field(FILE_COLUMN, "integer", False), Field(ROW_COLUMN, "long", False))


def push_where(scan: Scan) -> tuple[Scan, tuple[str, ...]]:
    """The scan with what can be pushed of its `where` as predicate and files chosen by it, and the conjuncts that are left."""
    if not scan.where:
        return scan, ()
    from deltaic.scan.pushdown import push

    pushed = push(
        scan.where,
        scan.schema,
        scan.table_schema,
        scan.alias,
        time_zone=configuration.current().time_zone,
    )
    return replace(with_predicate(scan, pushed.predicate), where=()), pushed.residual


def with_predicate(scan: Scan, predicate: _core.Predicate | None) -> Scan:
    """The scan of only the rows for which `predicate` holds too, without the files that cannot have any."""
    if predicate is None:
        return scan
    left = _core.filter_adds(scan.files, scan.table_schema, predicate)
    return replace(scan, files=_narrowed(scan, left), predicate=predicate if scan.predicate is None else scan.predicate & predicate)


def _narrowed(scan: Scan, left: pa.Table) -> pa.Table:
    """The scan's files that are left, with all that the scan says of them: ordinals, chosen rows, constants."""
    if left.num_rows == scan.files.num_rows:
        return scan.files
    import pyarrow.compute as pc

    whole = numbered(scan.files) if scan.row_ids else scan.files
    # A path is listed once among the live files of a version.
    return whole.filter(pc.is_in(whole["path"], value_set=left["path"].combine_chunks()))


def numbered(files: pa.Table) -> pa.Table:
    """The files with their position as a column, so that a row's name stays the same when some of them are left out."""
    if FILE_COLUMN in files.column_names:
        return files
    import numpy as np

    ordinals = pa.py_buffer(np.arange(files.num_rows, dtype=np.int32))  # `pa.array` of it would import pandas
    return files.append_column(_hidden()[0], pa.Array.from_buffers(pa.int32(), files.num_rows, [None, ordinals]))


def _hidden() -> tuple[pa.Field, pa.Field]:
    return pa.field(FILE_COLUMN, pa.int32(), nullable=False), pa.field(ROW_COLUMN, pa.int64(), nullable=False)


def open_scan(scan: Scan) -> _core.ReadStream:
    """Starts reading. `where` must have been pushed or is applied by whoever reads."""
    return _core.read(
        scan.store,
        scan.table_schema,
        scan.files,
        scan.columns,
        scan.predicate,
        row_ids=scan.row_ids,
        constants=[item.name for item in scan.constants],
        row_tracking=scan.row_tracking,
        threads=configuration.current().threads,
    )


def scan_schema(scan: Scan) -> Schema:
    """The columns that a scan leaf gives, hidden ones last."""
    fields = [scan.schema.get(name) or narrowed(scan.schema, name) for name in scan.columns]
    fields += [Field(name, "long") for name in scan.row_tracking or ()]
    return Schema([*fields, *scan.constants, *(ROW_ID_FIELDS if scan.row_ids else ())])


def scan_arrow_schema(scan: Scan) -> pa.Schema:
    """The Arrow columns of a scan, hidden ones last."""
    schema = scan.table_schema.to_arrow(list(scan.columns))
    for name in scan.row_tracking or ():
        schema = schema.append(pa.field(name, pa.int64()))
    for item in scan.constants:
        schema = schema.append(scan.files.schema.field(item.name))
    for item in _hidden() if scan.row_ids else ():
        schema = schema.append(item)
    return schema
