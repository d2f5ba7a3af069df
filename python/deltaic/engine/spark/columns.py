"""Which columns a scan needs of data files and of their constants, and what they become: shared by the native and the portable path."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic.engine.spark.types import in_files, is_mapped_inside, is_renamed_inside, shown, shown_to_spark, type_to_spark, with_ids
from deltaic.errors import ProtocolError
from deltaic.plan.literal import col, lit
from deltaic.plan.nodes import FILE_COLUMN, ROW_COLUMN, Scan
from deltaic.planning.columns import narrowed
from deltaic.protocol.column_mapping import physical_name
from deltaic.protocol.schema import DataType, Field, Schema, Struct

BASE_ROW_ID = "baseRowId"
ROW_VERSION = "defaultRowCommitVersion"
BY_ID = "spark.sql.parquet.fieldId.read.enabled"
"""Setting: Spark's reader finds columns by their ids, if its schema has ids."""


@dataclass(frozen=True)
class Opaque:
    """A column of data files, by its quoted name, of which Spark pushes no condition into Parquet. Bounds of floats in Parquet leave NaN
    out, which Spark takes for greater than everything: its reader would leave out row groups with a match."""

    there: str
    nested: bool


@dataclass(frozen=True)
class Plain:
    """A column of the output that is one of the frame's, by its quoted name `there`. `name`: a new name for it, "" for none. `metadata`: as
    JSON, "" for that which the column has."""

    there: str
    name: str = ""
    opaque: bool = False
    metadata: str = ""


class ScanColumns:
    """`data`: fields of data files, with their logical names and metadata. `partitions`: partition columns. `constants`: columns of the
    scan's files that every row carries. `by_id`: whether columns of files are found by their ids. `positions`: whether the row's index is
    asked for. `output`: the columns that come out. `metadata`: whether Spark's `_metadata` is asked for besides."""

    def __init__(self, scan: Scan, *, metadata: bool = False) -> None:
        self.scan, self.metadata = scan, metadata
        partitioned = {name.lower() for name in scan.table_schema.partition_columns}
        roots = dict.fromkeys(scan.schema.find(name)[0][0] for name in scan.columns)
        wanted = [scan.schema.field(name) for name in roots]
        self.data = [field for field in wanted if field.name.lower() not in partitioned and field.type != "void"]
        self.partitions = [scan.schema.field(name) for name in scan.table_schema.partition_columns]
        self.by_id = scan.table_schema.column_mapping == "id"
        self.constants = list(scan.constants)
        self.positions = scan.row_ids or scan.row_tracking is not None
        self.tracking = [Field(name, "long") for name in scan.row_tracking or ()]
        self.data += self.tracking
        if scan.row_tracking is not None:
            for name in (BASE_ROW_ID, ROW_VERSION):
                _check_complete(scan.files, name)
                self.constants.append(Field(name, "long"))
        if scan.row_ids:
            self.constants.append(Field(FILE_COLUMN, "integer"))

    @property
    def output(self) -> Schema:
        from deltaic.planning.opening import scan_schema

        return scan_schema(self.scan)

    @property
    def in_files(self) -> Any:
        """A pyspark StructType of the data columns, as Spark's reader finds them in files."""
        return with_ids(self.data) if self.by_id else shown_to_spark(map(in_files, self.data))

    @property
    def reader_options(self) -> dict[str, str]:
        """Options of Spark's Parquet reader."""
        found = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
        return found | ({BY_ID: "true"} if self.by_id else {})

    def hidden(self, frame: Any, opaque: Callable[[Any, bool], Any]) -> Any:
        """A frame of the data columns and constants, through which Spark does not look where files are read by ids: it would push
        conditions into Parquet by names, which another column of a file may have, and forget the ids of what is in a struct."""
        from pyspark.sql import functions as F

        if not self.by_id:
            return frame
        names = {in_files(field).name for field in self.data}
        return frame.select(*(opaque(F.col(col(name)), True).alias(name) if name in names else F.col(col(name)) for name in frame.columns))

    def selected(self, row_index: Any | None, opaque: Callable[[Any, bool], Any]) -> list[Any]:
        """Columns of the output over a frame with the data columns and constants under their physical names. Unchanged
        columns are passed as strings instead of `Column` objects, each of which costs several py4j calls.

        `opaque(column, nested)`: the column as an `Opaque` one."""
        from pyspark.sql import functions as F

        chosen = [self._named(name, opaque) for name in self.scan.columns]
        if self.tracking:
            row_id, version = (F.col(col(field.name)) for field in self.tracking)
            first = F.coalesce(row_id, F.col(BASE_ROW_ID) + row_index)
            chosen += [first.alias(self.tracking[0].name), F.coalesce(version, F.col(ROW_VERSION)).alias(self.tracking[1].name)]
        chosen += [col(field.name) for field in self.scan.constants]
        if self.scan.row_ids:
            assert row_index is not None
            chosen += [FILE_COLUMN, row_index.alias(ROW_COLUMN)]
        return chosen

    def plain(self, row_index: str) -> list[Plain] | None:
        """The columns of the output, in their order, where each is one of the frame's; None where another must be computed. `row_index`:
        the name of the column of the row's index."""
        found = []
        for name in () if self.tracking else self.scan.columns:
            column, root = self._column(name), _root_of(self.scan, name)
            if not isinstance(column, (str, Opaque)):
                return None
            there = column if isinstance(column, str) else column.there
            is_opaque = isinstance(column, Opaque)
            if not is_opaque and not self.by_id:  # the reader's column has its metadata
                found.append(Plain(there, "" if there == col(root) else root))
            else:
                metadata = shown(self.scan.schema.field(root)).metadata
                found.append(Plain(there, root, is_opaque, json.dumps(dict(metadata)) if metadata else ""))
        found += [Plain(col(field.name)) for field in self.scan.constants]
        if self.scan.row_ids:
            found += [Plain(FILE_COLUMN), Plain(col(row_index), ROW_COLUMN)]
        return None if self.tracking else found

    def _named(self, name: str, opaque: Callable[[Any, bool], Any]) -> Any:
        from pyspark.sql import functions as F

        column, root = self._column(name), _root_of(self.scan, name)
        if isinstance(column, str) and not self.by_id:
            return column if column == col(root) else F.col(column).alias(root)
        if isinstance(column, Opaque):
            column = opaque(F.col(column.there), column.nested)
        column, metadata = F.col(column) if isinstance(column, str) else column, shown(self.scan.schema.field(root)).metadata
        return column.alias(root, metadata=dict(metadata)) if metadata else column.alias(root)

    def _column(self, name: str) -> Any:
        """A wanted column, as the table says, or the frame's own by its name (`Opaque` where no condition may reach the files); of a dotted
        name a struct with just that branch."""
        from pyspark.sql import functions as F

        path, _ = self.scan.schema.find(name)
        field = self.scan.schema.field(path[0])
        if field.type == "void":
            return F.lit(None)
        if len(path) == 1:
            there = col(physical_name(field))
            # No condition gets through a cast of a struct. Where columns are found by ids, none gets to the reader anyway.
            if is_mapped_inside(field.type) if self.by_id else is_renamed_inside(field.type):
                return F.col(there).cast(type_to_spark(field.type))
            is_data = field.name not in self.scan.table_schema.partition_columns
            return Opaque(there, not isinstance(field.type, str)) if is_data and _has_floats(field.type) else there
        branch = F.expr(_branch(col(physical_name(field)), field, path[1:]))
        narrow = narrowed(self.scan.schema, name)
        return branch.cast(type_to_spark(narrow.type))


def _has_floats(data_type: DataType) -> bool:
    """Floats that a condition can be said of: themselves, or within structs."""
    if isinstance(data_type, Struct):
        return any(_has_floats(item.type) for item in data_type.fields)
    return data_type in ("float", "double")


def _branch(text: str, field: Field, path: tuple[str, ...]) -> str:
    """SQL of a struct with one field at each level; null where the struct is."""
    if not path:
        return text
    assert isinstance(field.type, Struct)
    child = next(item for item in field.type.fields if item.name == path[0])
    inner = _branch(f"{text}.{col(physical_name(child))}", child, path[1:])
    return f"CASE WHEN {text} IS NOT NULL THEN named_struct({lit(child.name)}, {inner}) END"


def _root_of(scan: Scan, name: str) -> str:
    return narrowed(scan.schema, name).name


def _check_complete(files: pa.Table, name: str) -> None:
    """Row tracking needs row ids of every file."""
    missing = pc.is_null(files[name]) if name in files.column_names else pa.chunked_array([pa.array([True] * files.num_rows)])
    if pc.any(missing).as_py():
        path = files["path"].filter(missing)[0].as_py()
        raise ProtocolError("row tracking is on and a file has no row ids", where=path, expected=name)
