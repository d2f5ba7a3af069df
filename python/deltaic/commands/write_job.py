"""`Write`, the checked arguments of a write, and the operation, parameters and metrics that its commit has
in the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from deltaic.commands.assignment import check_casting
from deltaic.commands.create import TableOptions, definition_parameters, operation_of
from deltaic.commands.marking import rows_of, total_size
from deltaic.commands.store_assignment import Casting
from deltaic.errors import InvalidArgumentError
from deltaic.options import CommitOptions, ParquetOptions
from deltaic.plan.nodes import TableRead
from deltaic.protocol.actions import Metadata

if TYPE_CHECKING:
    from deltaic.commands.replacement import Replacement

Mode = Literal["error", "append", "overwrite", "overwrite_partitions", "ignore"]
SchemaMode = Literal["merge", "overwrite"]
_MODES = {
    "error": "ErrorIfExists",
    "append": "Append",
    "overwrite": "Overwrite",
    "overwrite_partitions": "Overwrite",
    "ignore": "Ignore",
}


@dataclass(frozen=True, kw_only=True)
class Write:
    """The arguments of a write; see `deltaic.write`.

    `checks_where`: False to allow new rows for which `where` is not true.
    `shown_where`: the condition that the history shows, if it is another text than `where`: that of
        `replaceWhere` of Spark in a mode other than overwrite, which has no effect.
    `where_of_partitions`: True to refuse a `where` that reads other columns than partition columns.
    `wanted`: options of a new table.
    `properties_of_new`: True if the properties in `wanted` have no effect on an existing table, like the
        options of a Spark writer. A table that `defines` replaces gets them.
    `defines`: True for CREATE [OR REPLACE] TABLE AS SELECT, which replaces an existing table completely.
    `saves_as_table`: True for the overwrite of Spark's saveAsTable, which keeps the definition of an existing
        table, and whose operation in the history is CREATE OR REPLACE TABLE AS SELECT.
    `casting`: None to allow only values that stay the same in the column's type.
    `same_types`: True to refuse rows whose types differ from those of the columns, even if all values fit.
    `fills`: True to set fields that cast structs lack to null.
    `more`: further options of the engine's writer.
    `streaming`: for a batch of a stream, its parameters in the history.
    `data_change`: False if the new rows are those that they replace, in other files: readers of changes and
        streams do not see the commit. The caller vouches for that.
    `reads`: for a batch of a stream, the tables from which its rows come.
    `replacement`: for an overwrite, which rows it replaces; None for all rows, or those of `where`.
    `fills_partitions`: True to write nulls into a partition column that the rows lack, as INSERT does; else
        this is an error."""

    mode: Mode = "error"
    where: str | None = None
    checks_where: bool = True
    shown_where: str | None = None
    where_of_partitions: bool = False
    schema_mode: SchemaMode | None = None
    wanted: TableOptions = field(default_factory=TableOptions)
    properties_of_new: bool = False
    target_file_size: int | None = None
    parquet: ParquetOptions | None = None
    commit: CommitOptions | None = None
    defines: bool = False
    saves_as_table: bool = False
    casting: Casting | None = None
    same_types: bool = False
    fills: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    data_change: bool = True
    streaming: Mapping[str, Any] | None = None
    reads: tuple[TableRead, ...] = ()
    replacement: Replacement | None = None
    fills_partitions: bool = False

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise InvalidArgumentError(
                "unknown mode of write", found=repr(self.mode), expected=", ".join(map(repr, _MODES))
            )
        if self.schema_mode not in (None, "merge", "overwrite"):
            raise InvalidArgumentError(
                "unknown schema_mode", found=repr(self.schema_mode), expected="'merge', 'overwrite' or None"
            )
        if self.where is not None and self.mode != "overwrite":
            raise InvalidArgumentError("where= requires mode='overwrite'", found=f"mode={self.mode!r}")
        if self.schema_mode == "overwrite" and (self.mode != "overwrite" or self.where is not None):
            raise InvalidArgumentError(
                "schema_mode='overwrite' goes with mode='overwrite' and no where=",
                found=f"mode={self.mode!r}, where={self.where!r}",
            )
        if self.casting is not None:
            check_casting(self.casting)
        size = self.target_file_size
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise InvalidArgumentError(
                "invalid target_file_size", found=repr(size), expected="bytes, at least 1"
            )

    @property
    def replaces_definition(self) -> bool:
        return self.schema_mode == "overwrite"

    @property
    def wanted_of_existing(self) -> TableOptions:
        """The options in `wanted` that count for an existing table. A stream's clustering and properties are
        those of a new table only, as in delta-spark's sink."""
        if self.streaming is not None:
            return TableOptions(partition_by=self.wanted.partition_by)
        return replace(self.wanted, properties=None) if self.properties_of_new else self.wanted

    @property
    def history_predicate(self) -> str | None:
        """The condition that the history shows."""
        return self.where if self.shown_where is None else self.shown_where

    @property
    def keeps_rows(self) -> bool:
        """True if an overwrite replaces only some rows, by a condition or by a match."""
        return self.where is not None or self.replacement is not None

    @property
    def needs_stored_columns(self) -> bool:
        """True if rows that have partition columns only are an error, as in delta-spark."""
        by_partition = self.mode == "overwrite_partitions" and self.casting is not None
        return self.same_types or (by_partition and not self.fills_partitions)

    def check_partitions(self, before: Metadata, after: Metadata) -> None:
        """Raises InvalidArgumentError if a write that keeps rows changes the partition columns: the rows
        would lose the values of the former ones."""
        if self.where is not None and before.partition_columns != after.partition_columns:
            raise InvalidArgumentError(
                "a write with a condition, which keeps other rows, cannot change the partition columns",
                found=list(after.partition_columns),
                expected=list(before.partition_columns),
            )

    def check_data_change(self, before: Metadata | None, after: Metadata) -> None:
        """Raises InvalidArgumentError if a write with data_change=False creates the table or changes its
        definition. CREATE OR REPLACE TABLE AS SELECT may replace an existing table."""
        if self.data_change or (before is not None and (self.defines or before == after)):
            return
        what = (
            "create a Delta table"
            if before is None
            else "overwrite the Delta table schema or change the partition schema"
            if self.replaces_definition
            else "change the Delta table schema"
        )
        raise InvalidArgumentError(
            f"[DELTA_DATA_CHANGE_FALSE] a write with dataChange=false cannot {what}",
            expected="the definition of an existing table, or dataChange=true",
        ).with_values(operation=what.capitalize().replace("delta", "Delta"))

    @property
    def operation(self) -> str:
        """The operation in commitInfo, as in delta-spark."""
        if self.streaming is not None:
            return "STREAMING UPDATE"
        if not (self.defines or self.saves_as_table):
            return "WRITE"
        return f"{operation_of(replaces=self.mode.startswith('overwrite'))} AS SELECT"

    def parameters(self, metadata: Metadata) -> dict[str, Any]:
        """Returns the operationParameters in commitInfo, like delta-spark."""
        if self.streaming is not None:
            return dict(self.streaming)
        shown: dict[str, Any] = {
            "mode": _MODES[self.mode],
            "partitionBy": list(self.wanted.partition_by or ()),
        }
        if self.defines or self.saves_as_table:
            shown = definition_parameters(self.wanted, metadata)
            if not self.saves_as_table:
                return shown
            shown["isV1SaveAsTableOverwrite"] = True
        if self.history_predicate is not None:
            shown["predicate"] = self.history_predicate
        if self.replacement is not None:
            shown |= self.replacement.parameters
        if self.mode == "overwrite_partitions":
            shown["isDynamicPartitionOverwrite"] = True
        if self.schema_mode is not None:
            shown["canMergeSchema" if self.schema_mode == "merge" else "canOverwriteSchema"] = True
        return shown

    def metrics_of(self, adds: pa.Table) -> dict[str, int]:
        """Returns the metrics of the new files, with delta-spark's names for WRITE or STREAMING UPDATE."""
        files = (
            {"num_files": adds.num_rows}
            if self.streaming is None
            else {"num_added_files": adds.num_rows, "num_removed_files": 0}
        )
        counted = {**files, "num_output_rows": rows_of(adds), "num_output_bytes": total_size(adds)}
        if self.history_predicate is not None and not self.where_of_partitions:
            counted |= {"num_added_change_files": 0, "num_copied_rows": 0}
        return counted
