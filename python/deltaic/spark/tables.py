"""delta-spark's Python API: a job that imports DeltaTable from `deltaic.spark.tables` instead of
`delta.tables` runs without a jar.

Conditions and values are text in Spark's SQL dialect or Columns. As in delta-spark, each call reads the
newest version. Arguments that deltaic does not support raise UnsupportedFeatureError. Names, parameters and
results are those of delta-io/delta, python/delta/tables.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import deltaic
from deltaic.commands.vacuum import hours
from deltaic.engine.spark.native.column_text import Origins
from deltaic.engine.spark.native.session import has_jvm, is_classic_frame, qualified_columns
from deltaic.engine.spark.settings import (
    MERGE_SCHEMA,
    commit_options,
    enforces_retention,
    is_on,
    logs_vacuum,
    of_restore,
    table_properties,
    vacuum_mode,
)
from deltaic.engine.spark.stores import opening
from deltaic.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltaic.plan.literal import enclosed, lit
from deltaic.protocol.properties import FEATURE_PREFIX
from deltaic.rows.rows import Rows
from deltaic.spark.aliases import alias_of
from deltaic.spark.conversions import convert_named, following_sink_log, schema_of
from deltaic.spark.expressions import assignments, condition_text, sql_text
from deltaic.spark.frames import check_restorable, frame_of, newest
from deltaic.spark.merge_builder import DeltaMergeBuilder, MergeStart
from deltaic.spark.named_tables import entering, naming, parsed, place_of
from deltaic.spark.raising import OF_PARTITIONS, methods_raise_as_spark, raises_as_spark
from deltaic.spark.session_tables import SparkTables, timestamp_of
from deltaic.spark.table_builder import CreateMode, DeltaTableBuilder, IdentityGenerator
from deltaic.spark.views import lost_table, named_frame, named_path
from deltaic.sql.change import delete_rows, update_rows
from deltaic.sql.describe import detail_rows, history_rows
from deltaic.sql.names import Name
from deltaic.sql.optimized import optimized_in_order, z_ordered
from deltaic.sql.results import nothing
from deltaic.sql.subqueries import hold_queries
from deltaic.sql.tokens import Reader, without_qualifiers
from deltaic.sql.upkeep import convert_path, convertible, restored_rows
from deltaic.sql_text import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from deltaic.commands.merge import Merge

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]


MOST_FRAMES = 16
"""Maximum number of DataFrames from `toDF` whose columns conditions and values may use; beyond it, the
newest ones."""

_OF_STORES = ("fs.", "dfs.")
"""Beginnings of the names of settings that `DeltaTable.forPath` takes."""


@methods_raise_as_spark
class DeltaTable:
    """One Delta table on Spark, with delta-spark's methods. `forPath` and `forName` return one. Reads and
    commands see the newest version. Conditions and values are text in Spark's SQL dialect or Columns.

    Each error is an instance of a class of `deltaic.errors` and of a class of `pyspark.errors`;
    `getCondition()` returns delta-spark's condition.

    >>> table = DeltaTable.forPath(spark, "/data/flights")
    >>> table.delete("delay IS NULL")
    """

    def __init__(self, spark: SparkSession, path: str, alias: str | None = None) -> None:
        self._spark, self._path, self._alias = spark, path, alias
        self._frames: deque[DataFrame] = deque(maxlen=MOST_FRAMES)
        self._name: Name | None = None

    def _table(self) -> deltaic.DeltaTable:
        """Opens the newest version, with Spark as its engine."""
        return deltaic.DeltaTable(self._path, spark=self._spark)

    def _frame(self, rows: Rows) -> DataFrame:
        return frame_of(self._spark, rows)

    # --- finding and making tables

    @classmethod
    @raises_as_spark({TableNotFoundError: "DELTA_MISSING_DELTA_TABLE"})
    def forPath(
        cls,
        sparkSession: SparkSession,
        path: str,
        hadoopConf: dict[str, str] = dict(),  # noqa: B006, C408
    ) -> DeltaTable:
        """Returns the table at a path or URL. `hadoopConf`: settings of Hadoop's file systems (`fs.…`), which
        have no effect on a local path. For an object store they are set on the Spark session.

        Raises TableNotFoundError (DELTA_MISSING_DELTA_TABLE) if there is no table, InvalidArgumentError for
        other settings, UnsupportedFeatureError for `hadoopConf` with a URL.

        >>> DeltaTable.forPath(spark, "/data/flights").toDF().count()
        4
        """
        if others := {name: text for name, text in hadoopConf.items() if not name.startswith(_OF_STORES)}:
            raise InvalidArgumentError(
                "[DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF] only settings of file systems are allowed",
                found=", ".join(sorted(others)),
                expected="names that begin with fs. or dfs.",
            ).with_values(options=",".join(f"{name} -> {text}" for name, text in others.items()))
        if hadoopConf and "://" in path:
            raise UnsupportedFeatureError(
                "hadoopConf of forPath is not supported",
                found=sorted(hadoopConf),
                expected="settings of the Spark session",
            )
        deltaic.DeltaTable(path, spark=sparkSession)
        return cls(sparkSession, path)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """Returns a table by name: delta.`path`, a table of the session catalog, or a temporary view of one
        table.

        Raises TableNotFoundError if there is no table at the path, InvalidArgumentError if the name is not
        the name of a Delta table.

        >>> DeltaTable.forName(spark, "delta.`/data/flights`").toDF().count()
        4
        """
        path, name = named_path(sparkSession, tableOrViewName), parsed(tableOrViewName)
        with lost_table(sparkSession, () if name is None else name.parts):
            table = cls.forPath(sparkSession, path)
        table._name = name
        return table

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Returns True if there is a Delta table at `identifier`, a path or URL.

        >>> DeltaTable.isDeltaTable(spark, "/data/nothing")
        False
        """
        with opening(sparkSession):
            return deltaic.DeltaTable.exists(identifier)

    @classmethod
    def convertToDelta(
        cls, sparkSession: SparkSession, identifier: str, partitionSchema: Any = None
    ) -> DeltaTable:
        """Writes a Delta log beside Parquet files or an Iceberg table, and returns the table. Data files are
        neither moved nor written again.

        `identifier`: parquet.`path`, iceberg.`path`, or the name of a Parquet table in the session catalog,
        whose entry becomes that of a Delta table. A Delta table (delta.`path`, or a name) is returned
        unchanged. `partitionSchema`: partition columns of Parquet files, as DDL text or a StructType; None
        if there are none. The catalog has those of a table by name.

        Raises InvalidArgumentError if there are no files or the folders do not fit `partitionSchema`.

        >>> DeltaTable.convertToDelta(spark, "parquet.`/data/events`", "day DATE").toDF().count()
        1
        """
        source, partition_schema = tuple(Reader(identifier).dotted()), schema_of(partitionSchema)
        with opening(sparkSession), following_sink_log(sparkSession):
            if convert_named(sparkSession, Name(source), partition_schema):
                return cls.forName(sparkSession, identifier)
            source_format, path = convertible(source)
            properties, commit = table_properties(sparkSession, None), commit_options(sparkSession, None)
            convert_path(source_format, path, partition_schema, properties=properties, commit=commit)
        return cls.forPath(sparkSession, path)

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Returns a builder of a new table, whose `execute` raises TableAlreadyExistsError if the table
        exists. `sparkSession`: None is the active session.

        Raises InvalidArgumentError if no session is active.

        >>> trips = DeltaTable.create(spark).location("/data/trips").addColumn("id", "BIGINT").execute()
        """
        return cls._builder(sparkSession, "create")

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Like `create`, but the builder's `execute` returns an existing table unchanged.

        >>> builder = DeltaTable.createIfNotExists(spark).location("/data/flights")
        >>> flights = builder.addColumn("id", "BIGINT").execute()
        """
        return cls._builder(sparkSession, "createIfNotExists")

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Like `create`, but the builder's `execute` replaces the rows and the definition of an existing
        table, and raises TableNotFoundError if there is none.

        >>> flights = DeltaTable.replace(spark).location("/data/flights").addColumn("id", "BIGINT").execute()
        """
        return cls._builder(sparkSession, "replace")

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Like `create`, but the builder's `execute` replaces the rows and the definition of a table that
        exists.

        >>> builder = DeltaTable.createOrReplace(spark).location("/data/flights")
        >>> flights = builder.addColumn("id", "BIGINT").execute()
        """
        return cls._builder(sparkSession, "createOrReplace")

    @classmethod
    def _builder(cls, session: SparkSession | None, mode: CreateMode) -> DeltaTableBuilder:
        from pyspark.sql import SparkSession

        spark = session or SparkSession.getActiveSession()
        if spark is None:
            raise InvalidArgumentError("no Spark session is active", expected="a SparkSession")
        return DeltaTableBuilder(spark, mode, lambda path: cls.forPath(spark, path))

    # --- reading

    def toDF(self) -> DataFrame:
        """Returns the table's rows as a DataFrame, under the table's alias if it has one. Each query over it
        reads the newest version.

        >>> table.toDF().where("delay > 60").count()
        1
        """
        frame: DataFrame = newest(self._spark, self._path)
        self._frames.append(frame)
        if self._alias is not None:
            return frame.alias(self._alias)
        # On Spark Connect `frame.x` is a column of the frame's own plan, which an alias would change.
        named = self._name is not None and has_jvm(self._spark)
        return named_frame(self._spark, frame, str(self._name), self._path) if named else frame

    def alias(self, aliasName: str) -> DeltaTable:
        """Returns this table under an alias, which qualifies its columns in conditions and values.

        >>> table.alias("t").delete("t.delay > 60")
        """
        table = DeltaTable(self._spark, self._path, aliasName)
        table._frames, table._name = self._frames, self._name
        return table

    def history(self, limit: int | None = None) -> DataFrame:
        """Returns a DataFrame with a row for each commit, newest first: version, timestamp, operation,
        operationParameters, operationMetrics and the other columns of DESCRIBE HISTORY. `limit`: maximum
        number of rows; None is all.

        >>> table.history(1).select("version", "operation").first().asDict()
        {'version': 1, 'operation': 'WRITE'}
        """
        return self._frame(history_rows(self._table(), limit))

    def detail(self) -> DataFrame:
        """Returns a DataFrame with one row: format, id, name, location, partitionColumns, clusteringColumns,
        numFiles, sizeInBytes (bytes), properties and the other columns of DESCRIBE DETAIL.

        >>> table.detail().first().numFiles
        2
        """
        entry = None if self._name is None else SparkTables(self._spark).entry(self._name)
        return self._frame(detail_rows(self._table(), entry))

    # --- changing rows

    def delete(self, condition: Any = None) -> None:
        """Deletes the rows for which `condition` is true; None deletes all rows. A table with deletion
        vectors keeps its data files.

        `condition`: SQL text or a Column, of type boolean. Raises InvalidArgumentError for an unknown
        column, SchemaMismatchError for a condition of another type, and the errors of concurrent commits
        (DELTA_CONCURRENT_APPEND and others).

        >>> table.delete("delay > 60")
        """
        table = self._table()
        text = condition_text(condition, origins=self._origins(None))
        if text is None or not hold_queries([text]):
            table.delete(self._unqualified(table)(text))
            return
        with SparkTables(self._spark) as tables:
            delete_rows(table, text, self._named(), tables)

    def update(self, condition: Any = None, set: Any = None) -> None:
        """Sets columns in the rows for which `condition` is true; None updates all rows.

        `condition`: SQL text or a Column, of type boolean. `set`: a dict from column name to value (SQL text
        or a Column), computed from the row before the update. Raises InvalidArgumentError for an unknown
        column or without `set`, SchemaMismatchError for a value that does not fit its column, and the errors
        of concurrent commits.

        >>> table.update("delay IS NULL", set={"delay": "0"})
        """
        table = self._table()
        origins = self._origins(None)
        own = self._unqualified(table)
        values = {own(name): text for name, text in assignments(set, "'set'", origins).items()}
        text = condition_text(condition, origins=origins)
        if not hold_queries([*values.values(), text or ""]):
            table.update({name: own(value) for name, value in values.items()}, own(text))
            return
        with SparkTables(self._spark) as tables:
            update_rows(table, values, text, self._named(), tables)

    def merge(self, source: DataFrame, condition: Any) -> DeltaMergeBuilder:
        """Returns a builder of a MERGE of the DataFrame `source` into this table: add clauses, then call
        `execute()`.

        `condition`: SQL text or a Column, true for a source row and a row of the table that match. Columns
        are qualified by the aliases of table and DataFrame, unless only one of the two has the name. Raises
        InvalidArgumentError without `source` or `condition`, InvalidTypeError if `source` is no DataFrame;
        `execute()` raises MergeCardinalityError if two source rows match one row of the table.

        >>> source = spark.createDataFrame([(1, 7)], "id BIGINT, delay BIGINT").alias("s")
        >>> merge = table.alias("t").merge(source, "t.id = s.id")
        >>> metrics = merge.whenMatchedUpdate(set={"delay": "s.delay"}).execute()
        """
        if source is None or condition is None:
            raise InvalidArgumentError(
                f"'{'source' if source is None else 'condition'}' in merge cannot be None"
            )
        if not hasattr(source, "toArrow") or not hasattr(source, "createOrReplaceTempView"):
            raise InvalidTypeError(
                "Type of 'source' in merge must be DataFrame.", found=type(source).__name__
            )
        own_alias = alias_of(source)
        source_alias = own_alias or "__deltaic_s"
        names = self._qualifiers()
        short = names[-1][-1] if names else None
        if self._alias is None and short is not None and short.lower() == source_alias.lower():
            names, short = names[:-1], None  # the qualifier is that of the source
        target_alias = short or "__deltaic_t"
        replaced = {} if own_alias else _columns_by_alias(source, source_alias)
        replaced |= {name: f"{quote_name(target_alias)}." for name in names if len(name) > 1}
        origins = self._origins(target_alias, (source, source_alias), names=replaced)
        on = sql_text(condition, "condition", origins)

        def begin(evolution: bool) -> Merge:
            mode: Literal["merge"] | None = "merge" if evolution or is_on(self._spark, MERGE_SCHEMA) else None
            return self._table().merge(
                source, on, source_alias=source_alias, target_alias=target_alias, schema_mode=mode
            )

        # an insert knows only the source's columns, also if they are those of `toDF` in a merge into itself
        of_source = Origins(lambda: [(source, source_alias)], self._spark, replaced)
        return DeltaMergeBuilder(MergeStart(self._spark, begin, origins=origins, of_source=of_source))

    def _origins(
        self,
        alias: str | None,
        *others: tuple[DataFrame, str],
        names: Mapping[tuple[str, ...], str] | None = None,
    ) -> Origins:
        """Returns the DataFrames whose columns a condition or value may use: those of `toDF`, which the
        command names by `alias`, and `others`, each with its alias. `names`: as in `Origins`."""
        return Origins(lambda: [*((frame, alias) for frame in self._frames), *others], self._spark, names)

    def _named(self) -> Name:
        """Returns the name by which conditions and values with subqueries know the table."""
        return Name((self._alias,)) if self._alias is not None else self._name or Name(("t",))

    def _qualifiers(self) -> tuple[tuple[str, ...], ...]:
        """Returns the qualifiers that the table's columns may have, the longest first: its alias, or else the
        name of `forName` and its ends."""
        if self._alias is not None:
            return ((self._alias,),)
        return () if self._name is None else SparkTables(self._spark).qualifiers(self._name)

    def _unqualified(self, table: deltaic.DeltaTable) -> Callable[[Any], Any]:
        """Returns a function that removes the table's qualifiers before column names (`t.id` becomes `id`) in
        a text, because delete and update evaluate conditions without an alias."""
        qualifiers, columns = self._qualifiers(), table.schema.names
        return lambda text: text if text is None else without_qualifiers(text, qualifiers, columns)

    # --- upkeep

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Deletes files that no version within the retention needs, and returns an empty DataFrame.

        `retentionHours`: the retention in hours; None is the table's `delta.deletedFileRetentionDuration`,
        168 hours by default. Raises InvalidArgumentError for less than that, unless the setting
        `spark.databricks.delta.retentionDurationCheck.enabled` is false.

        >>> table.vacuum().count()
        0
        """
        retention = None if retentionHours is None else hours(float(retentionHours))
        self._table().vacuum(
            retention=retention,
            mode=vacuum_mode(self._spark),
            enforce_retention=enforces_retention(self._spark),
            logged=logs_vacuum(self._spark),
        )
        return self._frame(nothing())

    def optimize(self) -> DeltaOptimizeBuilder:
        """Returns a builder of an OPTIMIZE: compaction, or sorting along a Z-order curve.

        >>> metrics = table.optimize().executeCompaction()
        """
        return DeltaOptimizeBuilder(self._spark, self._table())

    @raises_as_spark({VersionNotFoundError: "DELTA_CANNOT_RESTORE_TABLE_VERSION"})
    def restoreToVersion(self, version: int) -> DataFrame:
        """Commits a new version with the rows and the definition of an older one.

        Returns one row: table_size_after_restore, num_of_files_after_restore, num_removed_files,
        num_restored_files, removed_files_size, restored_files_size (sizes in bytes). Raises
        VersionNotFoundError (DELTA_CANNOT_RESTORE_TABLE_VERSION), InvalidTypeError if `version` is no int.

        >>> table.restoreToVersion(0).first().num_of_files_after_restore
        1
        """
        _check(version, int, "version", "an int")
        return self._frame(restored_rows(self._table().restore(version, **of_restore(self._spark))))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Commits a new version with the rows and the definition of the version that was the newest at a
        time. Returns the row of `restoreToVersion`.

        `timestamp`: `2026-01-31` or `2026-01-31 12:00:00`, in the session's time zone. Raises
        VersionNotFoundError for a time before the first or after the last version, InvalidArgumentError for
        text that is no timestamp.

        >>> metrics = table.restoreToTimestamp(str(table.history().first().timestamp))
        """
        _check(timestamp, str, "timestamp", "a string")
        time = timestamp_of(self._spark, lit(timestamp))
        check_restorable(self._spark, self._path, time)
        return self._frame(restored_rows(self._table().restore(timestamp=time, **of_restore(self._spark))))

    def generate(self, mode: str) -> None:
        """Writes text files with the paths of the table's data files (manifests) below
        `_symlink_format_manifest/`, for readers that do not know Delta.

        `mode`: "symlink_format_manifest". Raises InvalidArgumentError for another mode,
        UnsupportedFeatureError if files have deletion vectors.

        >>> plain.generate("symlink_format_manifest")
        """
        self._table().generate(mode)

    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """Creates another table with the rows and the definition of the newest version, and returns it.

        `target`: an absolute path or URL, or the name of the new table. `isShallow`: True refers to this
        table's files instead of copying them; reading such a clone needs
        `deltaic.configure(allowed_roots=[...])` with this table's location. `replace`: True replaces a table
        at `target`. `properties`: table properties that replace those of this table.

        Raises TableAlreadyExistsError if there is a table at `target` and `replace` is False.

        >>> table.clone("/data/copy").toDF().count()
        4
        """
        return self._cloned(self._table(), target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """Like `clone`, but with the rows and the definition of an older version.

        `version` (int). `target`: an absolute path or URL, or the name of the new table. `isShallow`: True
        refers to this table's files instead of copying them. `replace`: True replaces a table at `target`.
        `properties`: table properties that replace those of this table.

        Raises VersionNotFoundError if the version does not exist, TableAlreadyExistsError if there is a table
        at `target` and `replace` is False.

        >>> table.cloneAtVersion(0, "/data/copy").toDF().count()
        3
        """
        _check(version, int, "version", "an int")
        return self._cloned(self._table().at(version), target, isShallow, replace, properties)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """Like `clone`, but with the version that was the newest at a time.

        `timestamp` (str): as for `restoreToTimestamp`. `target`: an absolute path or URL, or the name of the
        new table. `isShallow`: True refers to this table's files instead of copying them. `replace`: True
        replaces a table at `target`. `properties`: table properties that replace those of this table.

        Raises VersionNotFoundError for a time before the first version, TableAlreadyExistsError if there is a
        table at `target` and `replace` is False.

        >>> copy = table.cloneAtTimestamp(str(table.history().first().timestamp), "/data/copy")
        """
        _check(timestamp, str, "timestamp", "a string")
        table = self._table().at(timestamp=timestamp_of(self._spark, lit(timestamp)))
        return self._cloned(table, target, isShallow, replace, properties)

    def _cloned(
        self, table: deltaic.DeltaTable, target: str, shallow: bool, replace: bool, properties: Any
    ) -> DeltaTable:
        _check(target, str, "target", "a string")
        _check(shallow, bool, "isShallow", "a boolean")
        _check(replace, bool, "replace", "a boolean")
        if properties is not None:
            _check(properties, dict, "properties", "a dict")
        name = None if _is_path(target) else parsed(target)
        if name is None or name.path is not None:
            path = target if name is None or name.path is None else name.path
            table.clone(path, shallow=shallow, replace=replace, properties=properties)
            return DeltaTable.forPath(self._spark, path)
        with opening(self._spark):
            new = place_of(self._spark, name, None)
            if not new.enters and not replace:
                taken = TableAlreadyExistsError(
                    "the table of the clone already exists",
                    where=target,
                    expected="replace=True, or another name",
                )
                raise taken.with_values(**naming(self._spark, new.parts))
            with entering(self._spark, new, replaces=replace):
                table.clone(new.path, shallow=shallow, replace=replace, properties=properties)
        return DeltaTable.forName(self._spark, target)

    # --- protocol

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Upgrades the reader and writer versions of the table's protocol to at least these (ints). A version
        is never lowered.

        Raises InvalidTypeError for an argument that is no int, InvalidArgumentError for a version that Delta
        does not have.

        >>> table.upgradeTableProtocol(1, 4)
        """
        _check(readerVersion, int, "readerVersion", "an integer")
        _check(writerVersion, int, "writerVersion", "an integer")
        self._table().alter.set_properties(
            {"delta.minReaderVersion": readerVersion, "delta.minWriterVersion": writerVersion}
        )

    def addFeatureSupport(self, featureName: str) -> None:
        """Adds a table feature to the protocol, and raises the protocol's versions as the feature needs.
        Raises UnsupportedFeatureError for an unknown feature.

        >>> table.addFeatureSupport("v2Checkpoint")
        """
        _check(featureName, str, "featureName", "a string")
        # the operation of delta-spark
        self._table().alter.set_properties({FEATURE_PREFIX + featureName: "supported"})

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Removes a table feature: first its use from the newest version, then the feature from the
        protocol.

        `truncateHistory`: True deletes versions that use the feature from the log, once they are older than
        `delta.dropFeatureTruncateHistory.retentionDuration` (24 hours by default). Raises
        InvalidArgumentError if the table does not have the feature, or if such versions are left;
        UnsupportedFeatureError if the feature cannot be removed.

        >>> table.dropFeatureSupport("deletionVectors")
        """
        _check(featureName, str, "featureName", "a string")
        if truncateHistory is not None:
            _check(truncateHistory, bool, "truncateHistory", "a boolean")
        self._table().alter.drop_feature(featureName, truncate_history=bool(truncateHistory))


@methods_raise_as_spark
class DeltaOptimizeBuilder:
    """An OPTIMIZE of a table, which `DeltaTable.optimize` returns. `where` limits it to partitions;
    `executeCompaction` or `executeZOrderBy` runs it.

    >>> metrics = by_day.optimize().where("day = DATE'2026-01-01'").executeZOrderBy("id")
    """

    def __init__(self, spark: SparkSession, table: deltaic.DeltaTable) -> None:
        self._spark, self._table = spark, table
        self._filters: list[str] = []

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Limits OPTIMIZE to partitions for which `partitionFilter` (SQL text) is true. After several calls
        all conditions must be true.

        >>> metrics = by_day.optimize().where("day = DATE'2026-01-01'").executeCompaction()
        """
        self._filters.append(sql_text(partitionFilter, "partitionFilter"))
        return self

    @raises_as_spark(of_predicates=OF_PARTITIONS)
    def executeCompaction(self) -> DataFrame:
        """Rewrites small files, and files with many deleted rows, into files of `delta.targetFileSize`. In a
        table with clustering columns it sorts the rows of files that are not clustered yet by them.

        Returns one row: path, and the struct metrics: numFilesAdded, numFilesRemoved, filesAdded and
        filesRemoved (structs of min, max, avg, totalFiles, totalSize, in bytes), partitionsOptimized,
        numBatches, totalConsideredFiles, totalFilesSkipped and others. Raises InvalidArgumentError for a
        condition of `where` that uses other columns than partition columns.

        >>> table.optimize().executeCompaction().first().metrics.numFilesRemoved
        2
        """
        return frame_of(self._spark, optimized_in_order(self._table, self._where))

    @raises_as_spark(of_predicates=OF_PARTITIONS)
    def executeZOrderBy(self, *cols: Any) -> DataFrame:
        """Rewrites all files with their rows sorted along a Z-order curve over the columns `cols` (names), so
        that conditions on each of these columns skip files. A column that is named twice counts once. Without
        columns, it is `executeCompaction`.

        Returns one row as `executeCompaction` does. Raises InvalidArgumentError for an unknown column or a
        partition column.

        >>> metrics = table.optimize().executeZOrderBy("origin", "delay")
        """
        names = list(cols[0]) if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else list(cols)
        for name in names:
            if not isinstance(name, str):
                raise InvalidTypeError(
                    "Z-order column must be str.", found=f"{name!r} with type {type(name)}"
                )
        if not names:
            return self.executeCompaction()
        return frame_of(self._spark, z_ordered(self._table, names, self._where))

    @property
    def _where(self) -> str | None:
        if len(self._filters) == 1:
            return self._filters[0]
        return " AND ".join(map(enclosed, self._filters)) or None


def _columns_by_alias(frame: Any, alias: str) -> dict[tuple[str, ...], str]:
    """Returns what replaces the columns of a source whose plan has several aliases, as that of a join: `r.w`
    is the column `w` under the alias that the command gives to the source. A MERGE refuses a source with two
    columns of one name."""
    columns = qualified_columns(frame) if is_classic_frame(frame) else ()
    return {(its_alias, name): f"{quote_name(alias)}.{quote_name(name)}" for its_alias, name in columns}


def _check(value: Any, kind: type, name: str, expected: str) -> None:
    """Raises InvalidTypeError (a ValueError, as in delta-spark, and a TypeError) with delta-spark's message
    for an argument of the wrong type."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidTypeError(f"{name} needs to be {expected} but got '{type(value)}'.")


def _is_path(target: str) -> bool:
    """True for an absolute path or a URL; the target of a clone is a name otherwise, as in delta-spark."""
    return target.startswith(("/", "\\")) or ":/" in target or (target[1:2] == ":" and target[2:3] == "\\")
