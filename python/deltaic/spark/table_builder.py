"""`DeltaTableBuilder`, which defines and creates a table, and `IdentityGenerator`, as in delta-spark's Python
API. `deltaic.spark.tables` has both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import deltaic
from deltaic.commands import identity
from deltaic.commands.create import computing_with, refuse_other_files, requiring_table
from deltaic.engine.spark.engine import engine_of
from deltaic.engine.spark.settings import commit_options, table_properties, timestamps_of
from deltaic.engine.spark.stores import opening
from deltaic.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from deltaic.protocol.schema import Field, Schema
from deltaic.spark.named_tables import entering, naming, parsed, place_of
from deltaic.spark.portable.arrow_values import delta_schema
from deltaic.spark.raising import methods_raise_as_spark, raises_as_spark
from deltaic.spark.views import path_of_view
from deltaic.sql.create import check_definition
from deltaic.sql.names import Existing, Name

if TYPE_CHECKING:
    from deltaic.spark.tables import DeltaTable

CreateMode = Literal["create", "createIfNotExists", "replace", "createOrReplace"]
_EXISTING: dict[CreateMode, Existing] = {
    "create": "error",
    "createIfNotExists": "ignore",
    "replace": "use",
    "createOrReplace": "use",
}


@dataclass
class IdentityGenerator:
    """The numbers of an identity column: `start`, `start + step`, `start + 2 * step`, ... `step` must not be
    0.

    >>> builder = builder.addColumn("n", "BIGINT", generatedAlwaysAs=IdentityGenerator(start=100, step=10))
    """

    start: int = 1
    step: int = 1


@methods_raise_as_spark
class DeltaTableBuilder:
    """The definition of a new table. Each method changes the builder and returns it; `execute` creates the
    table.

    >>> builder = DeltaTable.create(spark).location("/data/trips")
    >>> builder = builder.addColumn("km", "DOUBLE").addColumn("day", "DATE").partitionedBy("day")
    >>> builder.execute().toDF().count()
    0
    """

    def __init__(self, spark: Any, mode: CreateMode, open_table: Callable[[str], DeltaTable]) -> None:
        self._spark, self._mode, self._open_table = spark, mode, open_table
        self._path: str | None = None
        self._name: Name | None = None
        self._comment: str | None = None
        self._fields: list[Field] = []
        self._partitions: tuple[str, ...] | None = None
        self._clusters: tuple[str, ...] | None = None
        self._properties: dict[str, str] = {}

    def tableName(self, identifier: str) -> DeltaTableBuilder:
        """Sets the table by name: delta.`path`, a name of the session catalog, or a temporary view of a
        table. The files of a table with a name of the catalog and without `location` are in a folder of the
        warehouse.

        Raises InvalidArgumentError for text that is no table name, or another place than `location` has set.

        >>> builder = builder.tableName("delta.`/data/trips`")
        """
        _check(identifier, str, "Identifier must be str.")
        name = parsed(identifier)
        if name is None:
            raise InvalidArgumentError("not a name of a table", found=identifier)
        if (path := name.path or path_of_view(self._spark, name)) is not None:
            return self._at(path)
        self._name = name
        return self

    def location(self, location: str) -> DeltaTableBuilder:
        """Sets the table's path or URL. Raises InvalidArgumentError if `tableName` has set another path.

        >>> builder = builder.location("/data/trips")
        """
        _check(location, str, "Location must be str.")
        return self._at(location)

    def comment(self, comment: str) -> DeltaTableBuilder:
        """Sets the table's description.

        >>> builder = builder.comment("one row for each trip")
        """
        _check(comment, str, "Table comment must be str.")
        self._comment = comment
        return self

    def addColumn(
        self,
        colName: str,
        dataType: Any,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> DeltaTableBuilder:
        """Adds a column.

        `dataType`: DDL text of Spark (`BIGINT`) or a DataType. `nullable`: False makes the column NOT NULL.
        `generatedAlwaysAs`: SQL that computes the value from other columns, or an IdentityGenerator that
        numbers every row. `generatedByDefaultAs`: an IdentityGenerator that numbers rows which are inserted
        without a number. `comment`: description of the column.

        Raises InvalidTypeError for an argument of another type, InvalidArgumentError if both
        `generatedAlwaysAs` and `generatedByDefaultAs` are set, or an IdentityGenerator has a step of 0 or a
        column of another type than BIGINT.

        >>> builder = builder.addColumn("year", "INT", generatedAlwaysAs="year(day)")
        """
        _check(colName, str, "Column name must be str.")
        if not isinstance(dataType, str) and not hasattr(dataType, "jsonValue"):
            raise InvalidTypeError(
                "Column data type must be str or DataType.", found=f"{dataType!r} with type {type(dataType)}"
            )
        _check(nullable, bool, "Column nullable must be bool.")
        metadata = _generated(generatedAlwaysAs, generatedByDefaultAs)
        if comment is not None:
            _check(comment, str, "Column comment must be str.")
            metadata["comment"] = comment
        with timestamps_of(self._spark):
            column = _typed(dataType).with_(name=colName, nullable=nullable)
        column = column.with_(metadata={**column.metadata, **metadata})
        identity.check(Schema([column]), ())
        self._fields.append(column)
        return self

    def addColumns(self, cols: Any) -> DeltaTableBuilder:
        """Adds the columns of a StructType, or of a list of StructField. Raises InvalidTypeError for anything
        else.

        >>> builder = builder.addColumns(table.toDF().schema)
        """
        from pyspark.sql.types import StructField, StructType

        for item in cols if isinstance(cols, list) else ():
            _check(item, StructField, "Column in existing schema must be StructField.")
        schema = StructType(cols) if isinstance(cols, list) else cols
        _check(schema, StructType, "Schema must be StructType or a list of StructField.")
        self._fields.extend(delta_schema(schema))
        return self

    def partitionedBy(self, *cols: Any) -> DeltaTableBuilder:
        """Sets the partition columns: names as arguments, or one list of names.

        >>> builder = builder.partitionedBy("day")
        """
        self._partitions = _names(cols, "Partitioning column must be str.")
        return self

    def clusterBy(self, *cols: Any) -> DeltaTableBuilder:
        """Sets the clustering columns, by which OPTIMIZE sorts: names as arguments, or one list of names. A
        table has either clustering or partition columns.

        >>> builder = builder.clusterBy("origin", "delay")
        """
        self._clusters = _names(cols, "Clustering column must be str.")
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder:
        """Sets a table property. Raises InvalidTypeError if `key` or `value` is no string.

        >>> builder = builder.property("delta.appendOnly", "true")
        """
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidTypeError(
                "Key and value of property must be string.", found=f"{key!r} and {value!r}"
            )
        self._properties[key] = value
        return self

    @raises_as_spark(
        {TableNotFoundError: "TABLE_OR_VIEW_NOT_FOUND"},
        {"UNRESOLVED_COLUMN.WITH_SUGGESTION": "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"},
    )
    def execute(self) -> DeltaTable:
        """Creates the table in one commit, and returns it.

        Raises TableAlreadyExistsError (builder of `create`, and the table exists), TableNotFoundError
        (builder of `replace`, and there is no table), InvalidArgumentError (neither name nor location, an
        unknown column or property).

        >>> builder = DeltaTable.create(spark).location("/data/trips").addColumn("id", "BIGINT")
        >>> builder.execute().toDF().columns
        ['id']
        """
        new = (
            None
            if self._name is None
            else place_of(self._spark, self._name, self._path, _EXISTING[self._mode])
        )
        path = self._path if new is None else new.path
        if path is None:
            raise InvalidArgumentError(
                "the builder has no location and no table name", expected="location(path), or tableName(name)"
            )
        try:
            replaces = self._mode in ("replace", "createOrReplace")
            with opening(self._spark), entering(self._spark, new, replaces=replaces):
                self._make(path, is_new_name=new is not None and new.enters)
        except TableAlreadyExistsError as error:
            if self._name is None:
                raise
            raise error.within(str(self._name)) from None
        return self._open_table(path)

    def _make(self, path: str, *, is_new_name: bool) -> None:
        exists = deltaic.DeltaTable.exists(path)
        if is_new_name and exists and self._mode in ("create", "createIfNotExists"):
            check_definition(
                deltaic.DeltaTable(path),
                Schema(self._fields) if self._fields else None,
                self._partitions,
                self._clusters,
                self._properties,
            )
            return  # `entering` then adds the new name of the existing table to the catalog
        if self._mode == "replace" and (not exists or is_new_name):
            raise TableNotFoundError(
                "the table to replace cannot be found",
                where=path if self._name is None else str(self._name),
                expected="createOrReplace()",
            )
        if not self._fields and self._mode in ("replace", "createOrReplace"):
            raise InvalidArgumentError(
                "a table needs columns",
                where=path if self._name is None else str(self._name),
                expected="addColumn(name, type)",
            )
        if not exists:
            names = None if self._name is None else naming(self._spark, self._name.parts)
            refuse_other_files(path, None, names)
        mode: Literal["error", "ignore", "overwrite"] = "error"
        if self._mode != "create":
            mode = "ignore" if self._mode == "createIfNotExists" else "overwrite"
        with requiring_table(self._mode == "replace"), computing_with(engine_of(self._spark)):
            deltaic.DeltaTable.create(
                path,
                Schema(self._fields),
                mode=mode,
                partition_by=self._partitions or (),
                cluster_by=self._clusters or (),
                description=self._comment,
                properties=table_properties(self._spark, self._properties),
                commit=commit_options(self._spark, None),
            )

    def _at(self, path: str) -> DeltaTableBuilder:
        if self._path is not None and self._path != path:
            raise InvalidArgumentError(
                "the table has two locations",
                found=f"{self._path} and {path}",
                expected="location() or tableName()",
            )
        self._path = path
        return self


def _check(value: Any, kind: type, message: str) -> None:
    if not isinstance(value, kind):
        raise InvalidTypeError(message, found=f"{value!r} with type {type(value)}")


def _names(cols: tuple[Any, ...], message: str) -> tuple[str, ...]:
    """Returns the names of an argument list, which may be one list of names. Raises InvalidTypeError with
    `message` for a name that is no string."""
    names = tuple(cols[0]) if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
    for name in names:
        _check(name, str, message)
    return names


def _typed(data_type: Any) -> Field:
    """Returns a field of a type: DDL text, or a DataType of PySpark."""
    from pyspark.sql.types import StructField, StructType

    if isinstance(data_type, str):
        return Field("c", Schema.from_ddl(f"c {data_type}").field("c").type)
    (field,) = delta_schema(StructType([StructField("c", data_type)]))
    return field


def _generated(always: Any, by_default: Any) -> dict[str, Any]:
    """Returns the field metadata (as in PROTOCOL.md) of a generated or an identity column."""
    if always is not None and by_default is not None:
        raise InvalidArgumentError(
            "generatedByDefaultAs and generatedAlwaysAs cannot both be set.", found=[by_default, always]
        )
    if always is None and by_default is None:
        return {}
    if isinstance(always, str):
        return {"delta.generationExpression": always}
    generator = always if always is not None else by_default
    if not isinstance(generator, IdentityGenerator):
        allowed = "Generated always as expression must be str or IdentityGenerator."
        message = (
            allowed if always is not None else "Generated by default expression must be IdentityGenerator."
        )
        raise InvalidTypeError(message, found=f"{generator!r} with type {type(generator)}")
    if generator.step == 0:
        raise InvalidArgumentError("Column identity generation requires step to be non-zero.")
    return {
        "delta.identity.start": generator.start,
        "delta.identity.step": generator.step,
        "delta.identity.allowExplicitInsert": by_default is not None,
    }
