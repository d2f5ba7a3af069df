"""Reads a few selected rows of files on the driver, where only the pages with these rows are fetched. Spark's
tasks would decode whole files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from deltaic.plan.nodes import Scan
from deltaic.planning.opening import open_scan
from deltaic.protocol.schema import DataType, Field, has_user_type, is_shape, primitive_types

MOST_ROWS = 100_000
MOST_BYTES = 16 * 1024**2
"""Maximum number of rows, and maximum bytes of Arrow data, that are read on the driver; Spark reads more."""


def few_rows(scan: Scan) -> pa.Table | None:
    """Returns the rows of a scan that selects rows of each file by index; None for any other scan, if the
    rows are not few, and for data that Arrow does not have but Spark reads: text that is not UTF-8."""
    if (
        "selection" not in scan.files.column_names
        or not _keeps_selected(scan.files)
        or any(has_user_type(field) or not _has_arrow_form(field.type) for field in _fields(scan))
    ):
        return None
    # If the bitmaps are large, there are too many rows, and none is read: a bitmap takes about two bytes for
    # each row, or less if the rows are consecutive.
    if (pc.sum(pc.binary_length(scan.files["selection"])).as_py() or 0) > 4 * MOST_ROWS:
        return None
    stream = open_scan(scan)
    batches, rows, size = [], 0, 0
    try:
        for batch in pa.RecordBatchReader.from_stream(stream):
            batches.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows > MOST_ROWS or size > MOST_BYTES:
                stream.cancel()
                return None
    except pa.ArrowInvalid as error:
        if "non UTF-8" not in str(error):
            raise
        return None
    return pa.Table.from_batches(batches, stream.schema)


def _keeps_selected(files: pa.Table) -> bool:
    if files["selection"].null_count:
        return False
    return "keep_selected" not in files.column_names or bool(pc.all(files["keep_selected"]).as_py())


def _fields(scan: Scan) -> Iterator[Field]:
    for name in scan.columns:
        yield scan.schema.field(scan.schema.find(name)[0][0])


def _has_arrow_form(data_type: DataType) -> bool:
    """True if `createDataFrame` takes values of the type as Arrow data."""
    return not any(kind in ("variant", "void") or is_shape(kind) for kind in primitive_types(data_type))
