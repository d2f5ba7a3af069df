"""The columns that a scan reads from data files, the constants of each file (partition values and others),
and the expressions that compute the scan's output from both. The native and the public path share them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic.engine.spark.types import (
    in_files,
    is_mapped_inside,
    is_renamed_inside,
    shown,
    shown_to_spark,
    type_to_spark,
    with_ids,
)
from deltaic.errors import ProtocolError
from deltaic.plan.literal import col
from deltaic.plan.nodes import FILE_COLUMN, ROW_COLUMN, Scan
from deltaic.planning.columns import narrowed
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.schema import DataType, Field, Schema, Struct, path_text
from deltaic.protocol.void import has_void_field, in_data_files

BASE_ROW_ID = "baseRowId"
ROW_VERSION = "defaultRowCommitVersion"
"""Fields of an `add` action from which the ids and versions of rows are computed."""
TRACKED = ("row_id", "base_row_id", "default_row_commit_version", "row_commit_version")
"""Fields of `_metadata` of a table with row tracking, as in delta-spark."""
BY_ID = "spark.sql.parquet.fieldId.read.enabled"
"""Setting: Spark's Parquet reader finds columns by field id instead of name, if its schema has ids."""


@dataclass(frozen=True)
class OpaqueColumn:
    """A column of data files with floats. Spark must not push conditions on it into Parquet: statistics of
    floats do not include NaN, which Spark orders above all other values. For `x > 1` Spark's reader would
    skip a row group whose maximum is 1, although it has a NaN.

    `source`: the column's quoted name in the frame. `nested`: True if the floats are in a struct. `lacks`:
    the column's type if it is a struct with void fields, which the frame's column lacks; else None."""

    source: str
    nested: bool
    lacks: DataType | None = None


@dataclass(frozen=True)
class FrameColumn:
    """A column of the output that is a column of the frame and need not be computed.

    `source`: its quoted name in the frame. `name`: its new name, "" to keep its name. `opaque`: True if
    Spark must not push conditions on it into Parquet (see `OpaqueColumn`). `metadata`: its new metadata as
    JSON, "" to keep its metadata."""

    source: str
    name: str = ""
    opaque: bool = False
    metadata: str = ""


class ScanColumns:
    """The columns of a scan.

    `data`: fields to read from data files, with their logical names and metadata. `partitions`: all
    partition columns of the table. `constants`: columns of `scan.files`; each row of a file gets the file's
    values. `by_id`: True if columns of files are found by field id. `positions`: True if the row's index in
    its file is needed. `tracking`: hidden columns of row tracking. `output`: schema of the result.
    `metadata`: fields of Spark's column `_metadata`, which the result then has as its last column, in place
    of the hidden columns of row tracking; None if the result has no such column."""

    def __init__(self, scan: Scan, *, metadata: Sequence[str] | None = None) -> None:
        self.scan, self.metadata = scan, metadata
        partitioned = {name.lower() for name in scan.table_schema.partition_columns}
        roots = dict.fromkeys(scan.schema.find(name)[0][0] for name in scan.columns)
        fields = [scan.schema.field(name) for name in roots]
        stored = (
            field.with_(type=in_data_files(field.type))
            for field in fields
            if field.name.lower() not in partitioned
        )
        self.data = [field for field in stored if field.type != "void"]
        self.partitions = [scan.schema.field(name) for name in scan.table_schema.partition_columns]
        self.by_id = scan.table_schema.column_mapping == "id"
        self.constants = list(scan.constants)
        self.positions = scan.row_ids or scan.row_tracking is not None
        self.tracking = [Field(name, "long") for name in scan.row_tracking or ()]
        self.data += self.tracking
        if scan.row_tracking is not None:
            self.constants += [Field(name, "long") for name in (BASE_ROW_ID, ROW_VERSION)]
            self.check_files(scan.files)
        if scan.row_ids:
            self.constants.append(Field(FILE_COLUMN, "integer"))

    @property
    def output(self) -> Schema:
        from deltaic.planning.opening import scan_schema

        return scan_schema(self.scan if self.metadata is None else replace(self.scan, row_tracking=None))

    def check_files(self, files: pa.Table) -> None:
        """Raises ProtocolError if row tracking needs values that a file does not have."""
        for name in (BASE_ROW_ID, ROW_VERSION) if self.tracking else ():
            _check_complete(files, name)

    @property
    def in_files(self) -> Any:
        """Pyspark StructType of the data columns, with the names or ids by which Spark's reader finds them in
        files."""
        return with_ids(self.data) if self.by_id else shown_to_spark(map(in_files, self.data))

    @property
    def reader_options(self) -> dict[str, str]:
        """Options of Spark's Parquet reader."""
        rebase = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
        return rebase | ({BY_ID: "true"} if self.by_id else {})

    def hidden(self, frame: Any, opaque: Callable[[Any, bool], Any]) -> Any:
        """Returns the frame of data columns and constants with opaque data columns (`opaque(column,
        nested)`), if files are read by field id. Otherwise Spark would push conditions into Parquet by a name
        that another column of a file may have, and would lose the ids when it prunes the fields of a
        struct."""
        from pyspark.sql import functions as F

        if not self.by_id:
            return frame
        names = {in_files(field).name for field in self.data}
        return frame.select(
            *(
                opaque(F.col(col(name)), True).alias(name) if name in names else F.col(col(name))
                for name in frame.columns
            )
        )

    def selected(self, row_index: Any | None, opaque: Callable[[Any, bool], Any]) -> list[Any]:
        """Returns the columns of the output, for a frame with the data columns and constants under their
        physical names. Unchanged columns are strings instead of `Column` objects, because each `Column` costs
        several py4j calls.

        `row_index`: the column of the row's index, None if `positions` is False. `opaque(column, nested)`: a
        function that wraps a column in an expression through which Spark pushes no condition."""
        columns = [self._named(name, opaque) for name in self.scan.columns]
        if self.tracking and self.metadata is None:
            row_id, _, _, version = self._tracked(row_index)
            columns += [row_id.alias(self.tracking[0].name), version.alias(self.tracking[1].name)]
        columns += [col(field.name) for field in self.scan.constants]
        if self.scan.row_ids:
            assert row_index is not None
            columns += [FILE_COLUMN, row_index.alias(ROW_COLUMN)]
        return columns

    def metadata_column(self, file_metadata: Any, row_index: Any | None) -> Any:
        """Returns the column `_metadata` of the result. `file_metadata`: the column of that name that Spark's
        reader fills. `row_index`: as in `selected`."""
        from pyspark.sql import functions as F

        if not self.tracking:
            return file_metadata
        tracked = dict(zip(TRACKED, self._tracked(row_index), strict=True))
        fields = [tracked[name] if name in tracked else file_metadata[name] for name in self.metadata or ()]
        return F.struct(*(field.alias(name) for field, name in zip(fields, self.metadata or (), strict=True)))

    def _tracked(self, row_index: Any) -> list[Any]:
        """Returns the values of the fields TRACKED."""
        from pyspark.sql import functions as F

        row_id, version = (F.col(col(field.name)) for field in self.tracking)
        base, default = F.col(BASE_ROW_ID), F.col(ROW_VERSION)
        return [F.coalesce(row_id, base + row_index), base, default, F.coalesce(version, default)]

    def plain(self, row_index: str) -> list[FrameColumn] | None:
        """Returns the columns of the output in their order; None if one of them must be computed.
        `row_index`: name of the frame's column with the row's index."""
        columns = []
        for name in () if self.tracking else self.scan.columns:
            column, root = self._column(name), _root_of(self.scan, name)
            if not isinstance(column, (str, OpaqueColumn)):
                return None
            if isinstance(column, OpaqueColumn) and column.lacks is not None:
                return None
            source = column if isinstance(column, str) else column.source
            is_opaque = isinstance(column, OpaqueColumn)
            if not is_opaque and not self.by_id:
                # The frame's column has the metadata already.
                columns.append(FrameColumn(source, "" if source == col(root) else root))
            else:
                metadata = shown(self.scan.schema.field(root)).metadata
                columns.append(
                    FrameColumn(source, root, is_opaque, json.dumps(dict(metadata)) if metadata else "")
                )
        columns += [FrameColumn(col(field.name)) for field in self.scan.constants]
        if self.scan.row_ids:
            columns += [FrameColumn(FILE_COLUMN), FrameColumn(col(row_index), ROW_COLUMN)]
        return None if self.tracking else columns

    def _named(self, name: str, opaque: Callable[[Any, bool], Any]) -> Any:
        from pyspark.sql import functions as F

        column, root = self._column(name), _root_of(self.scan, name)
        if isinstance(column, str) and not self.by_id:
            return column if column == col(root) else F.col(column).alias(root)
        if isinstance(column, OpaqueColumn):
            lacks, column = column.lacks, opaque(F.col(column.source), column.nested)
            column = column if lacks is None else _completed(column, lacks)
        column, metadata = (
            F.col(column) if isinstance(column, str) else column,
            shown(self.scan.schema.field(root)).metadata,
        )
        return column.alias(root, metadata=dict(metadata)) if metadata else column.alias(root)

    def _column(self, name: str) -> Any:
        """Returns a column of the scan: a `Column` if it must be computed, an `OpaqueColumn` if Spark must
        not push conditions on it, else the quoted name of the frame's column. A dotted name such as `s.a` is
        the struct `s` with the field `a` alone."""
        from pyspark.sql import functions as F

        path, _ = self.scan.schema.find(name)
        field = self.scan.schema.field(path[0])
        if in_data_files(field.type) == "void":
            return _nothing(narrowed(self.scan.schema, name).type)
        if len(path) == 1:
            source, lacks = col(physical_name(field)), has_void_field(field.type)
            # Not `OpaqueColumn`: Spark pushes no condition through a cast of a struct, and `hidden` makes
            # columns that are found by id opaque.
            if is_mapped_inside(field.type) if self.by_id else is_renamed_inside(field.type):
                return _completed(F.col(source), field.type).cast(type_to_spark(field.type))
            is_data = field.name not in self.scan.table_schema.partition_columns
            if is_data and _has_floats(field.type):
                nested = not isinstance(field.type, str)
                return OpaqueColumn(source, nested, field.type if lacks else None)
            return _completed(F.col(source), field.type) if lacks else source
        branch = _branch(F.col(col(physical_name(field))), field, path[1:])
        narrow = narrowed(self.scan.schema, name)
        return branch.cast(type_to_spark(narrow.type))


def _has_floats(data_type: DataType) -> bool:
    """True if the type is a float, or a struct with one, so that Spark may push conditions on floats."""
    if isinstance(data_type, Struct):
        return any(_has_floats(item.type) for item in data_type.fields)
    return data_type in ("float", "double")


def _nothing(data_type: DataType) -> Any:
    """Returns the null of a type."""
    from pyspark.sql import functions as F

    null = F.lit(None)
    return null if data_type == "void" else null.cast(type_to_spark(data_type))


def _completed(column: Any, data_type: DataType) -> Any:
    """Returns a column of data files with the void fields of its structs, which are not in the files.

    The fields are added by `withField`, as Spark still reads only the fields that a query needs of such a
    struct, and still pushes conditions on them into Parquet. It adds at the end, so the fields that come
    after a void field are dropped and added again."""
    if not isinstance(data_type, Struct) or not has_void_field(data_type):
        return column
    stored = [in_data_files(item.type) != "void" for item in data_type.fields]
    first = stored.index(False) if False in stored else len(stored)
    result = column
    for number, (item, is_stored) in enumerate(zip(data_type.fields, stored, strict=True)):
        name = physical_name(item)
        if number == first:
            result = result.withField(col(name), _nothing(item.type))
            if later := [
                col(physical_name(other))
                for other, is_there in zip(data_type.fields[first:], stored[first:], strict=True)
                if is_there
            ]:
                result = result.dropFields(*later)
        elif not is_stored:
            result = result.withField(col(name), _nothing(item.type))
        elif number > first or has_void_field(item.type):
            result = result.withField(col(name), _completed(column.getField(name), item.type))
    return result


def _branch(column: Any, field: Field, path: tuple[str, ...]) -> Any:
    """Returns a struct with only the field of `path` at each level, null if the struct is null. For `s` and
    `("a",)`: `CASE WHEN s IS NOT NULL THEN named_struct('a', s.a) END`."""
    from pyspark.sql import functions as F

    if not path:
        return _completed(column, field.type)
    assert isinstance(field.type, Struct)
    child = next(item for item in field.type.fields if item.name == path[0])
    if in_data_files(child.type) == "void":
        inner = _nothing(narrowed(Schema([child]), path_text(path)).type)
    else:
        inner = _branch(column.getField(physical_name(child)), child, path[1:])
    return F.when(column.isNotNull(), F.struct(inner.alias(child.name)))


def _root_of(scan: Scan, name: str) -> str:
    return narrowed(scan.schema, name).name


def _check_complete(files: pa.Table, name: str) -> None:
    """Raises ProtocolError if a file has no value in the column `name`. Row tracking needs one in each."""
    missing = (
        pc.is_null(files[name])
        if name in files.column_names
        else pa.chunked_array([pa.array([True] * files.num_rows)])
    )
    if pc.any(missing).as_py():
        path = files["path"].filter(missing)[0].as_py()
        raise ProtocolError("row tracking is on and a file has no row ids", where=path, expected=name)
