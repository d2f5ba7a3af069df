"""delta-spark's Python API, name by name: a job that says `from deltaic.spark.tables import DeltaTable` runs without a jar.

Conditions and values are text in Spark's SQL or Columns. Every call sees the table as it is then, as with delta-spark. What deltaic cannot
do raises UnsupportedFeatureError by name. Source: delta-io/delta, python/delta/tables.py, for names, parameters and what comes back.
"""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import deltaic
from deltaic.engine.spark.settings import MERGE_SCHEMA, RETENTION_CHECK, commit_options, is_on, table_properties
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, InvalidTypeError, TableNotFoundError, UnsupportedFeatureError, VersionNotFoundError
from deltaic.protocol.schema import Schema
from deltaic.rows.rows import Rows
from deltaic.spark.column_text import Origins
from deltaic.spark.expressions import assignments, condition_text, sql_text
from deltaic.spark.frames import version_at
from deltaic.spark.merge_builder import DeltaMergeBuilder, MergeStart
from deltaic.spark.raising import methods_raise_as_spark, raises_as_spark
from deltaic.spark.results import frame_of
from deltaic.spark.session_tables import moment_of
from deltaic.spark.table_builder import DeltaTableBuilder, IdentityGenerator, Way
from deltaic.spark.views import named_path
from deltaic.sql.describe import detail_rows, history_rows
from deltaic.sql.optimized import optimized
from deltaic.sql.results import nothing
from deltaic.sql.tokens import Reader
from deltaic.sql.upkeep import convert_path, convertible, restored_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from deltaic.commands.merge import Merge

__all__ = ["DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTable", "DeltaTableBuilder", "IdentityGenerator"]


MOST_FRAMES = 16
"""Maximum number of DataFrames of `toDF` whose columns conditions and values may name; of more, the newest."""


@methods_raise_as_spark
class DeltaTable:
    """A table by its path. `alias`: what its columns may be qualified with."""

    def __init__(self, spark: SparkSession, path: str, alias: str | None = None) -> None:
        self._spark, self._path, self._alias = spark, path, alias
        self._frames: deque[DataFrame] = deque(maxlen=MOST_FRAMES)

    def _table(self) -> deltaic.DeltaTable:
        """The newest version, with the cluster as its engine."""
        return deltaic.DeltaTable(self._path, spark=self._spark)

    def _frame(self, rows: Rows) -> DataFrame:
        return frame_of(self._spark, rows)

    # --- finding and making tables

    @classmethod
    @raises_as_spark({TableNotFoundError: "DELTA_MISSING_DELTA_TABLE"})
    def forPath(cls, sparkSession: SparkSession, path: str, hadoopConf: dict[str, str] = dict()) -> DeltaTable:  # noqa: B006, C408
        """TableNotFoundError where there is none."""
        if hadoopConf:
            raise UnsupportedFeatureError("hadoopConf of forPath", found=sorted(hadoopConf), expected="settings of the Spark session")
        deltaic.DeltaTable(path, spark=sparkSession)
        return cls(sparkSession, path)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """delta.`path`, a table of the session catalog, or a temporary view of a table."""
        return cls.forPath(sparkSession, named_path(sparkSession, tableOrViewName))

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """True if there is a table at a path."""
        with opening(sparkSession):
            return deltaic.DeltaTable.exists(identifier)

    @classmethod
    def convertToDelta(cls, sparkSession: SparkSession, identifier: str, partitionSchema: Any = None) -> DeltaTable:
        """Parquet files or an Iceberg table in place, named parquet.`path` or iceberg.`path`. `partitionSchema`: of Parquet files, DDL
        text or a StructType. A Delta table stays as it is."""
        source_format, path = convertible(Reader(identifier).dotted())
        if hasattr(partitionSchema, "json"):
            partitionSchema = Schema.from_json(partitionSchema.json())
        with opening(sparkSession):
            properties, commit = table_properties(sparkSession, None), commit_options(sparkSession, None)
            convert_path(source_format, path, partitionSchema, properties=properties, commit=commit)
        return cls.forPath(sparkSession, path)

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A table that must not be there."""
        return cls._builder(sparkSession, "create")

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A table, or the one that is there, as it is."""
        return cls._builder(sparkSession, "createIfNotExists")

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A table in place of one that must be there."""
        return cls._builder(sparkSession, "replace")

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A table, in place of the one that is there if there is one."""
        return cls._builder(sparkSession, "createOrReplace")

    @classmethod
    def _builder(cls, session: SparkSession | None, way: Way) -> DeltaTableBuilder:
        from pyspark.sql import SparkSession

        spark = session or SparkSession.getActiveSession()
        if spark is None:
            raise InvalidArgumentError("no Spark session is active", expected="a SparkSession")
        return DeltaTableBuilder(spark, way, lambda path: cls.forPath(spark, path))

    # --- reading

    def toDF(self) -> DataFrame:
        """The table's rows, with its alias."""
        from deltaic.spark.frames import newest

        frame: DataFrame = newest(self._spark, self._path)
        self._frames.append(frame)
        return frame if self._alias is None else frame.alias(self._alias)

    def alias(self, aliasName: str) -> DeltaTable:
        """This table under an alias."""
        made = DeltaTable(self._spark, self._path, aliasName)
        made._frames = self._frames
        return made

    def history(self, limit: int | None = None) -> DataFrame:
        """The commits, newest first, with the columns of DESCRIBE HISTORY."""
        return self._frame(history_rows(self._table(), limit))

    def detail(self) -> DataFrame:
        """One row, with the columns of DESCRIBE DETAIL."""
        return self._frame(detail_rows(self._table()))

    # --- changing rows

    def delete(self, condition: Any = None) -> None:
        """Deletes the rows for which the condition is true; all without one."""
        self._table().delete(self._own(condition_text(condition, origins=self._origins(None))))

    def update(self, condition: Any = None, set: Any = None) -> None:
        """Sets columns in the rows for which the condition is true."""
        origins = self._origins(None)
        values = {self._own(name): self._own(text) for name, text in assignments(set, "'set'", origins).items()}
        self._table().update(values, self._own(condition_text(condition, origins=origins)))

    def merge(self, source: DataFrame, condition: Any) -> DeltaMergeBuilder:
        """MERGE of a DataFrame; columns are qualified by the aliases of table and DataFrame, or not where they are unambiguous."""
        if source is None or condition is None:
            raise InvalidArgumentError(f"'{'source' if source is None else 'condition'}' in merge cannot be None")
        if not hasattr(source, "toArrow") or not hasattr(source, "createOrReplaceTempView"):
            raise InvalidTypeError("Type of 'source' in merge must be DataFrame.", found=type(source).__name__)
        source_alias, target_alias = alias_of(source) or "__deltaic_s", self._alias or "__deltaic_t"
        origins = self._origins(target_alias, (source, source_alias))
        on = sql_text(condition, "condition", origins)

        def begin(evolution: bool) -> Merge:
            mode: Literal["merge"] | None = "merge" if evolution or is_on(self._spark, MERGE_SCHEMA) else None
            return self._table().merge(source, on, source_alias=source_alias, target_alias=target_alias, schema_mode=mode)

        return DeltaMergeBuilder(MergeStart(self._spark, begin, origins=origins))

    def _origins(self, alias: str | None, *others: tuple[DataFrame, str]) -> Origins:
        """Origins of columns: those of DataFrames from `toDF`, which the command names by `alias`, and those of the `others`."""
        return Origins(lambda: [*((frame, alias) for frame in self._frames), *others], self._spark)

    def _own(self, text: Any) -> Any:
        """Removes the table's alias before column names: delete and update evaluate conditions without an alias."""
        from deltaic.sql.tokens import without_qualifiers

        return text if text is None or self._alias is None else without_qualifiers(text, ((self._alias,),))

    # --- upkeep

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Deletes files that no version within the retention needs; -> an empty DataFrame."""
        retention = None if retentionHours is None else timedelta(hours=float(retentionHours))
        checked = str(self._spark.conf.get(RETENTION_CHECK, "true")).lower() != "false"
        self._table().vacuum(retention=retention, enforce_retention=checked)
        return self._frame(nothing())

    def optimize(self) -> DeltaOptimizeBuilder:
        """Compaction and Z-order."""
        return DeltaOptimizeBuilder(self._spark, self._table())

    @raises_as_spark({VersionNotFoundError: "DELTA_CANNOT_RESTORE_TABLE_VERSION"})
    def restoreToVersion(self, version: int) -> DataFrame:
        """A new version with the rows of an older one -> delta-spark's metrics."""
        _check(version, int, "version", "an int")
        return self._frame(restored_rows(self._table().restore(version)))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """The table as it was at a time: `2024-01-31` or `2024-01-31 12:00:00`, in the zone of the session."""
        _check(timestamp, str, "timestamp", "a string")
        version = version_at(self._spark, self._path, moment_of(self._spark, f"'{timestamp}'"))
        return self._frame(restored_rows(self._table().restore(version)))

    def generate(self, mode: str) -> None:
        """Manifests: `symlink_format_manifest`."""
        self._table().generate(mode)

    def clone(self, target: str, isShallow: bool = False, replace: bool = False, properties: dict[str, str] | None = None) -> DeltaTable:
        """A copy of the newest version."""
        return self._cloned(self._table(), target, isShallow, replace, properties)

    def cloneAtVersion(
        self, version: int, target: str, isShallow: bool = False, replace: bool = False, properties: dict[str, str] | None = None
    ) -> DeltaTable:
        """A copy of a version."""
        _check(version, int, "version", "an int")
        return self._cloned(self._table().at(version), target, isShallow, replace, properties)

    def cloneAtTimestamp(
        self, timestamp: str, target: str, isShallow: bool = False, replace: bool = False, properties: dict[str, str] | None = None
    ) -> DeltaTable:
        """A copy of the version at a time."""
        _check(timestamp, str, "timestamp", "a string")
        table = self._table().at(timestamp=moment_of(self._spark, f"'{timestamp}'"))
        return self._cloned(table, target, isShallow, replace, properties)

    def _cloned(self, table: deltaic.DeltaTable, target: str, shallow: bool, replace: bool, properties: Any) -> DeltaTable:
        _check(target, str, "target", "a string")
        _check(shallow, bool, "isShallow", "a boolean")
        _check(replace, bool, "replace", "a boolean")
        if properties is not None:
            _check(properties, dict, "properties", "a dict")
        table.clone(target, shallow=shallow, replace=replace, properties=properties)
        return DeltaTable.forPath(self._spark, target)

    # --- protocol

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raises the versions to at least these."""
        _check(readerVersion, int, "readerVersion", "an integer")
        _check(writerVersion, int, "writerVersion", "an integer")
        self._table().alter.set_properties({"delta.minReaderVersion": readerVersion, "delta.minWriterVersion": writerVersion})

    def addFeatureSupport(self, featureName: str) -> None:
        """Makes the table support a feature, with the versions that it needs."""
        _check(featureName, str, "featureName", "a string")
        self._table().alter.add_features(featureName)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Ends the support of a feature, after removing what is there of it."""
        _check(featureName, str, "featureName", "a string")
        if truncateHistory is not None:
            _check(truncateHistory, bool, "truncateHistory", "a boolean")
        self._table().alter.drop_feature(featureName, truncate_history=bool(truncateHistory))


@methods_raise_as_spark
class DeltaOptimizeBuilder:
    """OPTIMIZE in the making: `where` narrows it to partitions, the other two run it -> path, metrics."""

    def __init__(self, spark: SparkSession, table: deltaic.DeltaTable) -> None:
        self._spark, self._table = spark, table
        self._filters: list[str] = []

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """A condition on partition columns; several must all be true."""
        self._filters.append(sql_text(partitionFilter, "partitionFilter"))
        return self

    def executeCompaction(self) -> DataFrame:
        """Small files, and files with many deleted rows, become files of the target size."""
        return frame_of(self._spark, optimized(self._table, lambda: self._table.optimize.compact(self._where)))

    def executeZOrderBy(self, *cols: Any) -> DataFrame:
        """All rows sorted along a curve over the columns."""
        names = list(cols[0]) if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else list(cols)
        for name in names:
            if not isinstance(name, str):
                raise InvalidTypeError("Z-order column must be str.", found=f"{name!r} with type {type(name)}")
        return frame_of(self._spark, optimized(self._table, lambda: self._table.optimize.z_order(names, self._where), "zorder"))

    @property
    def _where(self) -> str | None:
        return " AND ".join(f"({text})" for text in self._filters) or None


def alias_of(frame: Any) -> str | None:
    """The alias of a DataFrame, None where it has none or where nobody can tell (Spark Connect)."""
    if not hasattr(frame, "_jdf"):
        plan = getattr(frame, "_plan", None)
        return getattr(plan, "_alias", None)
    plan = frame._jdf.queryExecution().logical()
    return str(plan.alias()) if plan.nodeName() == "SubqueryAlias" else None


def _check(value: Any, kind: type, name: str, wanted: str) -> None:
    """delta-spark's own words for an argument of the wrong type; a ValueError, as there, and a TypeError."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidTypeError(f"{name} needs to be {wanted} but got '{type(value)}'.")
