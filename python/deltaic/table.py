"""`DeltaTable` and `write`, the public API of tables: each method forwards to the module that does the
work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from deltaic import configuration
from deltaic.deltalake_names import TABLE, TABLE_OF_FRAMES, ExplainedNames, Version, renamed, unknown
from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.log import recent
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import locate, open_store, options_of, public_options
from deltaic.session import (
    commit_of,
    committing,
    engine_of,
    refresh_cached,
    session_of,
    stores_of,
    with_default_properties,
)
from deltaic.transaction import giving_way
from deltaic.worker import short_work

if TYPE_CHECKING:
    from deltaic.commands.add_files import AddFile
    from deltaic.commands.alter import Alter
    from deltaic.commands.create import Mode as CreateMode
    from deltaic.commands.describe import Detail
    from deltaic.commands.merge import Merge, MergeSpec
    from deltaic.commands.optimize import Optimize
    from deltaic.commands.vacuum import Mode as VacuumMode
    from deltaic.commands.write_job import Mode as WriteMode
    from deltaic.commands.write_job import SchemaMode, Write
    from deltaic.engine.engine import Engine
    from deltaic.options import CommitOptions, ParquetOptions
    from deltaic.plan.nodes import Scan
    from deltaic.protocol.actions import Metadata, Protocol
    from deltaic.protocol.schema import Schema
    from deltaic.rows.rows import Rows
    from deltaic.rows.tail import Tail
    from deltaic.spark_sql.query.tables import TableName

Path = str | os.PathLike[str]
Casting = Literal["strict", "try"]
T = TypeVar("T")


class DeltaTable(metaclass=ExplainedNames):
    """One version (snapshot) of a Delta table, opened for reading and changing.

    Reads see `version`. A command starts from this version, commits on top of the newest one if the conflict
    rules allow that, and moves the object to its own commit. Threads may share the object: each call keeps
    the snapshot with which it started.

    `path` (str or os.PathLike): a local folder, a `file://` URL or the URL of an object store. `~` is not
    expanded.
    `version` (int) or `timestamp` (datetime, or text in ISO 8601; UTC without a zone): an older version.
    Default: the newest.
    `storage_options`: options of the store, see docs/stores.md.
    `spark`: a SparkSession, which then does the work instead of the embedded engine (DuckDB in this process).

    Raises TableNotFoundError (the message says what is there instead), VersionNotFoundError, ProtocolError
    (the log cannot be read), UnsupportedFeatureError (it names the table feature), InvalidArgumentError (text
    that is no timestamp, or both a version and a timestamp) and InvalidTypeError.

    >>> table = deltaic.DeltaTable("flights")
    >>> older = deltaic.DeltaTable("flights", version=0)
    """

    def __init__(
        self,
        path: Path,
        *,
        version: int | None = None,
        timestamp: datetime | str | None = None,
        storage_options: Mapping[str, str] | None = None,
        spark: Any = None,
    ) -> None:
        _check_version(version)
        if spark is not None and not hasattr(spark, "createDataFrame"):
            raise InvalidTypeError(
                "spark has the wrong type", found=type(spark).__name__, expected="a SparkSession"
            )
        self._spark = spark
        self._options = options_of(storage_options)
        if spark is None:
            store = open_store(path, self._options)
            is_newest = version is None and timestamp is None
            self._snapshot = (
                recent.load(store)
                if is_newest
                else Snapshot.load(store, version=version, timestamp=timestamp)
            )
        else:
            from deltaic.engine.spark.engine import engine_of

            self._snapshot = engine_of(spark).recent_snapshots.open(
                spark, path, self._options, version, timestamp
            )

    @classmethod
    def _of(cls, snapshot: Snapshot, storage_options: Mapping[str, str], spark: Any = None) -> DeltaTable:
        table = cls.__new__(cls)
        table._options = dict(storage_options)
        table._spark = spark
        table._snapshot = snapshot
        return table

    # --- making tables

    @staticmethod
    def exists(path: Path, *, storage_options: Mapping[str, str] | None = None) -> bool:
        """True if there is a Delta table at `path`. Creates no folder and reads no data.

        `path`, `storage_options`: as for DeltaTable. Raises InvalidArgumentError for a URL without a store.

        >>> deltaic.DeltaTable.exists("flights")
        True
        """
        from deltaic.log.segment import list_log

        return not list_log(open_store(path, storage_options)).is_empty

    @classmethod
    @renamed(table_uri="path", configuration="properties", commit_properties="commit")
    def create(
        cls,
        path: Path,
        schema: Any,
        *,
        mode: CreateMode = "error",
        partition_by: str | Iterable[str] = (),
        cluster_by: str | Iterable[str] = (),
        name: str | None = None,
        description: str | None = None,
        properties: Mapping[str, Any] | None = None,
        commit: CommitOptions | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Creates an empty table in one commit, and returns it.

        `path` (str or os.PathLike): a local folder, a `file://` URL or the URL of an object store. A local
        folder is created if it does not exist.
        `schema`: DDL text (`"id long NOT NULL, day date"`), a `Schema`, or an object with
        `__arrow_c_schema__` (of pyarrow, pandas, Polars).
        `mode`, if there is a table already: "error" (the default) raises TableAlreadyExistsError, "ignore"
        returns that table, "overwrite" replaces its definition and its rows.
        `partition_by`, `cluster_by`: names of columns; one of the two.
        `name`, `description`: text of the table's metadata.
        `properties`: table properties by name; values are str, bool, int or timedelta.
        `commit`: CommitOptions. `storage_options`: options of the store.

        Raises TableAlreadyExistsError (mode "error"), InvalidArgumentError (an unknown column or property,
        DDL that does not parse), UnsupportedFeatureError (a property or type that this release does not
        support), the exceptions of conflicts and CommitUnknownError.

        >>> made = deltaic.DeltaTable.create(
        ...     "trips", "id long NOT NULL, day date, km double", partition_by="day"
        ... )
        """
        from deltaic.commands import create

        definition = create.TableOptions.of(partition_by, cluster_by, name, description, properties)
        snapshot = create.create(
            open_store(path, storage_options), schema, mode=mode, wanted=definition, commit=commit
        )
        return cls._of(snapshot, storage_options or {})

    @classmethod
    def convert(
        cls,
        path: Path,
        *,
        partition_schema: Any = None,
        partitioning: Literal["hive", "directory"] = "hive",
        statistics: bool = True,
        mode: Literal["error", "ignore"] = "error",
        name: str | None = None,
        description: str | None = None,
        properties: Mapping[str, Any] | None = None,
        commit: CommitOptions | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Makes a Delta table of the Parquet files below `path`: writes a log beside them, and touches no
        file.

        The table has the columns of all files; a column must have one type in all of them. Names that begin
        with `_` or `.` are skipped, and in a folder that a stream of Spark wrote all files that its
        `_spark_metadata` does not name. Column names with spaces or any of `,;{}()=` need the property
        `delta.columnMapping.mode = name`. Progress is logged to `deltaic.commands`.

        `partitioning`: how folders name partition values: "hive" (`year=2026/month=9/`, the default) or
        "directory" (`2026/09/`). With "hive", other folders than `name=value`, such as `2026/09/`, say
        nothing about the rows: files in them are files of a table without partition columns.
        `partition_schema`: names and types of the partition columns (DDL text or an Arrow schema), for
        "directory" in the order of the folders. Without it, types are inferred: whole numbers, doubles,
        dates, else text.
        `statistics`: True (the default) reads minima, maxima and null counts from the footers, so that
        conditions skip files.
        `mode`, if there is a Delta table already: "error" (the default) raises TableAlreadyExistsError,
        "ignore" returns it.
        `name`, `description`, `properties`, `commit`, `storage_options`: as for `create`.

        Raises TableAlreadyExistsError (mode "error"), InvalidArgumentError (no file, or folders that do not
        fit), SchemaMismatchError (a column of two types), ProtocolError (a file that is not Parquet).

        >>> table = deltaic.DeltaTable.convert("events", partition_schema="day date")
        """
        from deltaic.commands import convert, create

        snapshot = convert.convert(
            open_store(path, storage_options),
            partition_schema=partition_schema,
            partitioning=partitioning,
            statistics=statistics,
            mode=mode,
            wanted=create.TableOptions.of(None, None, name, description, properties),
            commit=commit,
        )
        return cls._of(snapshot, storage_options or {})

    @classmethod
    def convert_iceberg(
        cls,
        source: Any,
        *,
        statistics: bool = True,
        mode: Literal["error", "ignore"] = "error",
        name: str | None = None,
        description: str | None = None,
        properties: Mapping[str, Any] | None = None,
        commit: CommitOptions | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Makes a Delta table of the current snapshot of an Iceberg table: writes a log beside its data
        files, and changes none of them. Needs PyIceberg: `pip install 'deltaic[iceberg]'`.

        `source`: the path of the table's folder, whose newest file in `metadata/` is read; the path of one
        such `.metadata.json` file; or a `pyiceberg.table.Table` from its catalog, which is the only sure way
        to know the newest metadata.
        `statistics`: True (the default) reads minima, maxima and null counts from the footers, so that
        conditions skip files.
        `mode`, if there is a Delta table already: "error" (the default) raises TableAlreadyExistsError,
        "ignore" returns it.
        `name`, `description`, `properties`: of the new table; properties of the Iceberg table are kept.
        `commit`, `storage_options`: as for `create`.

        Iceberg versions 1 to 3 are read. Columns keep their ids (column mapping mode `id`, or `name` if data
        files have no ids and the table has a name mapping), so renamed and dropped columns are read
        correctly. Promoted types are recorded as type widening; a `write-default` becomes the column's
        default. A partition field `identity` is the column itself; `year`, `month`, `day`, `hour` and
        `truncate` become generated columns, as in delta-spark. The table is not partitioned by other fields
        (`bucket`, ...), nor by fields that some files were written without. Position deletes and deletion
        vectors become deletion vectors.

        Raises ModuleNotFoundError (PyIceberg is not installed), TableNotFoundError, InvalidArgumentError
        (two metadata files are the newest), ProtocolError (metadata that cannot be read),
        PathOutsideTableError (a file outside the folder), and UnsupportedFeatureError, which names the
        feature: equality deletes, ORC and Avro files, files without a column that has an `initial-default`,
        and the types time, uuid, timestamp_ns, variant and geometry.

        >>> table = deltaic.DeltaTable.convert_iceberg("/lake/iceberg/events")

        Source: delta-spark's CONVERT TO DELTA iceberg.`path`; the Iceberg table specification.
        """
        from deltaic.commands import convert_iceberg, create

        path, iceberg = _iceberg_place(source)
        snapshot = convert_iceberg.convert_iceberg(
            open_store(path, storage_options),
            iceberg,
            statistics=statistics,
            mode=mode,
            wanted=create.TableOptions.of(None, None, name, description, properties),
            commit=commit,
        )
        return cls._of(snapshot, storage_options or {})

    # --- the snapshot

    @property
    def version(self) -> int:
        """The version of this snapshot; the first one of a table is 0."""
        return Version(self._snapshot.version)

    @property
    def location(self) -> str:
        """The location of the table, which any reader can open: an absolute local path, or a URL."""
        return self._snapshot.location

    @property
    def schema(self) -> Schema:
        """The columns of this snapshot, with Delta's types."""
        return self._snapshot.schema

    @property
    def storage_options(self) -> Mapping[str, str]:
        """A copy of the options that the store was opened with."""
        return dict(self._options)

    @property
    def metadata(self) -> Metadata:
        """The `metaData` action of this snapshot: id, name, description, schema, partition columns,
        properties."""
        return self._snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        """The `protocol` action of this snapshot: reader and writer versions and features."""
        return self._snapshot.protocol

    def refresh(self) -> None:
        """Moves this object to the newest version. Reads only the commits since its own version.

        Raises TableNotFoundError if the table no longer exists.

        >>> table.refresh()
        """
        self._snapshot = self._snapshot.refresh()

    def at(self, version: int | None = None, *, timestamp: datetime | str | None = None) -> DeltaTable:
        """Returns another object of this table at a version or time; without an argument, at the newest
        version. This object does not change.

        `version`: int. `timestamp` (datetime, or text in ISO 8601; UTC without a zone): the version that was
        the newest at that time. Raises VersionNotFoundError (the message has the versions of the log), and
        InvalidArgumentError (text that is no timestamp, or both a version and a timestamp).

        >>> table.at(0).scan().count()
        3
        """
        _check_version(version)
        return self._of(self._snapshot.at(version, timestamp=timestamp), self._options, self._spark)

    def detail(self) -> Detail:
        """Returns a `Detail` of this version, like DESCRIBE DETAIL: name, location, partition and clustering
        columns, number and bytes of live files, properties, protocol. Reads no data file.

        Raises ProtocolError if the commit of this version cannot be read.

        >>> table.detail().num_files > 0
        True
        """
        from deltaic.commands import describe

        return describe.detail(self._snapshot)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Returns a dict for each commit, from this version to older ones.

        `limit` (int): maximum number of commits; by default all that are still in the log. Keys: `version`
        (int), `timestamp` (datetime, UTC), and those of the commit's `commitInfo`: `operation`,
        `operationParameters`, `operationMetrics` (text by name), `userMetadata`, `engineInfo`, ... A commit
        without commitInfo has only the first two. Raises InvalidArgumentError for an invalid `limit`.

        >>> [entry["operation"] for entry in table.history(limit=2)]
        ['DELETE', 'WRITE']
        """
        from deltaic.commands import describe

        return describe.history(self._snapshot, limit)

    def transaction_version(self, app_id: str) -> int | None:
        """Returns the last version number that an application has written with
        `CommitOptions(transactions={app_id: version})`, or None. A job that writes numbered batches finds
        out here which batches are in the table. Raises no error for an unknown application.

        >>> table.transaction_version("loader") is None
        True
        """
        transaction = self._snapshot.core.transactions.get(app_id)
        return None if transaction is None else transaction[0]

    def transaction_state(self, txn_id: str) -> int | None:
        """Returns the version of the commit whose `commitInfo.txnId` is `txn_id`, or None if there is no
        such commit. Use it after a CommitUnknownError, whose message has the id.

        >>> table.transaction_state("no such id") is None
        True
        """
        from deltaic.commands import describe

        return describe.transaction_state(self._snapshot, txn_id)

    # --- reading

    @cached_property
    def _engine(self) -> Engine:
        return engine_of(self._spark, partial(_read_by_query, self._options))

    @renamed(filters="where", filter="where", predicate="where", partitions="where")
    def scan(
        self, columns: Sequence[str] | None = None, where: str | None = None, *, limit: int | None = None
    ) -> Rows:
        """Returns the rows of this version as lazy `Rows`: they are read by `to_pandas()`, `to_arrow()`,
        `to_polars()`, ...

        `columns` (list of str): all by default. Fields of structs are dotted and stay in their struct:
        `["st.a", "st.b"]` gives a column `st`.
        `where` (str): a condition in Spark's SQL dialect; all rows by default. Files, row groups and pages
        that cannot match are not read.
        `limit` (int): maximum number of rows, which are any of the matching rows; no limit by default.

        Raises InvalidArgumentError (an unknown column, text that does not parse), InvalidTypeError,
        SchemaMismatchError (`where` is no boolean) and UnsupportedFeatureError (SQL that deltaic cannot
        run).

        >>> table.scan(["id", "delay"], where="origin = 'JFK'").to_pylist()
        [{'id': 1, 'delay': 5}]
        """
        from deltaic.rows import scan

        return scan.scan(self._snapshot, self._engine, columns, where, limit=limit)

    @renamed(partition_filters="where")
    def files(self, where: str | None = None, *, deleted_rows: bool = False) -> Rows:
        """Returns the live data files of this version that may have a matching row, as rows ordered by path.

        `where` (str): a condition in Spark's SQL dialect; all files by default. `deleted_rows=True` adds the
        column `deleted_rows` with the row indexes in the file's deletion vector. Columns: `path`, `location`
        (absolute), `size` (bytes), `modification_time`, `partition_values`, `num_records` (number of rows,
        deleted ones included), `null_count`, `min_values`, `max_values`, `deletion_vector`, `tags`. Raises
        InvalidArgumentError (an unknown column, text that does not parse).

        >>> table.files(where="id > 100").count()
        0
        """
        from deltaic.rows import scan

        return scan.files(self._snapshot, self._engine, where, deleted_rows=deleted_rows)

    def partitions(self, where: str | None = None) -> Rows:
        """Returns the partitions of this version as rows: the partition columns, `num_files` and `size`
        (bytes).

        `where` (str): a condition in Spark's SQL dialect; only files that may have a matching row count, by
        default all. A table without partition columns has one row. Raises InvalidArgumentError (an unknown
        column, text that does not parse).

        >>> table.partitions().to_pylist()[0]["num_files"]
        2
        """
        from deltaic.rows import scan

        return scan.partitions(self._snapshot, self._engine, where)

    def changes(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        *,
        starting_timestamp: datetime | str | None = None,
        ending_timestamp: datetime | str | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        allow_out_of_range: bool = False,
    ) -> Rows:
        """Returns the change data feed: the rows that a range of versions inserted, updated (before and
        after) and deleted, lazily and in no order.

        `starting_version` or `starting_timestamp`: the start of the range; one of them is required.
        `ending_version` or `ending_timestamp`: the end of the range; by default this version. Both ends are
        part of the range.
        `columns`, `where`: as for `scan`. Beside the table's columns there are `_change_type` (`insert`,
        `delete`, `update_preimage`, `update_postimage`), `_commit_version` and `_commit_timestamp`. The
        columns are those of the last version. If the first version made the type of a column narrower, such
        as a RESTORE, the column has the wider type, which rows that were removed may need.
        `allow_out_of_range`: True ends the range with the log; a range that begins after the log has no
        rows.

        Raises VersionNotFoundError for an end that is not in the log, InvalidArgumentError for a version
        that was written without the feed (`delta.enableChangeDataFeed`), SchemaMismatchError if a column was
        dropped, renamed or changed within the range.

        >>> table.changes(1, where="_change_type = 'delete'").to_arrow()["id"].to_pylist()
        [5]
        """
        from deltaic.log.changes import Range
        from deltaic.rows import changes

        versions = Range(starting_version, ending_version, starting_timestamp, ending_timestamp)
        return changes.changes(
            self._snapshot,
            self._engine,
            versions,
            columns=columns,
            where=where,
            allow_out_of_range=allow_out_of_range,
        )

    def tail(
        self,
        *,
        start: Literal["latest", "earliest"] | int | datetime = "latest",
        changes: bool = False,
        max_files: int | None = None,
        max_bytes: int | None = None,
        poll: float | None = 1.0,
        offset: str | None = None,
        ignore_deletes: bool = False,
        ignore_changes: bool = False,
        skip_change_commits: bool = False,
        exclude_regex: str | None = None,
        fail_on_data_loss: bool = True,
    ) -> Tail:
        """Follows the table: returns an iterator of `TailBatch` (`rows`: Rows; `offset`: JSON) with the rows
        of commits as they come.

        Offsets have the format of delta-spark's streams. A program that stores each offset together with its
        results, and starts again with `offset=`, gets each row once. The rows of a commit come in its order
        of files.

        `start`: "latest" (the default), the commits after this snapshot; "earliest", the rows of this
        snapshot, oldest file first, and then the commits; a version (int) or time (datetime), the commits
        from there on.
        `offset`: the offset of an earlier batch; `start` is ignored then.
        `changes`: True gives the change data feed, with its columns, instead of rows.
        `max_files`, `max_bytes`: maximum of one batch, which always has at least one file. Default: 1,000
        files if neither is given.
        `poll`: seconds between two looks at the log (default: 1); None ends the iterator when there is
        nothing new.
        `ignore_deletes`: True skips commits that only remove files. `skip_change_commits`: True skips all
        commits that remove files.
        `ignore_changes`: True skips commits that only remove files, and gives all rows of the files that
        other commits add, changed or not. Without one of these three, a commit that removes rows raises
        InvalidArgumentError.
        `exclude_regex`: skips files whose path matches. `fail_on_data_loss`: False goes on if commits are
        missing.

        Raises InvalidArgumentError (an invalid argument), VersionNotFoundError if commits are missing, and
        SchemaMismatchError if rows no longer fit this snapshot's schema: a new iterator of a refreshed table
        then goes on from the same offset.

        >>> for batch in table.tail(start="earliest", poll=None):
        ...     done = batch.rows.to_arrow(), batch.offset
        """
        from deltaic.log.stream_options import StreamOptions
        from deltaic.rows.tail import Tail

        options = StreamOptions(
            start=start,
            changes=changes,
            max_files=max_files,
            max_bytes=max_bytes,
            ignore_deletes=ignore_deletes,
            ignore_changes=ignore_changes,
            skip_change_commits=skip_change_commits,
            exclude_regex=exclude_regex,
            fail_on_data_loss=fail_on_data_loss,
        )
        return Tail(self._snapshot, self._engine.pinned(), options, poll, offset)

    # --- changing rows

    @renamed(
        predicate="where",
        writer_properties="parquet",
        commit_properties="commit",
        post_commithook_properties="commit",
    )
    def delete(
        self,
        where: str | None = None,
        *,
        parquet: ParquetOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Deletes the rows for which `where` is true, in one commit. Without `where`, deletes all rows.

        Files without remaining rows are removed; others get a deletion vector, or are rewritten if deletion
        vectors are turned off for the table.

        `where` (str): a condition in Spark's SQL dialect. On the embedded engine it may have subqueries over
        tables by path: ``table.delete("id IN (SELECT id FROM delta.`/data/gone`)")``.
        `parquet`: ParquetOptions of rewritten files. `commit`: CommitOptions.

        Returns a dict: `num_deleted_rows`, `num_copied_rows`, `num_removed_files`, `num_added_files`,
        `num_removed_bytes`, `num_added_bytes`, `num_deletion_vectors_added`, `num_deletion_vectors_updated`,
        `num_deletion_vectors_removed`, and `num_added_change_files` (files of the change data feed). If no
        row matches, nothing is committed.

        Raises InvalidArgumentError (an unknown column, SQL that does not parse), AppendOnlyError, conflicts
        with concurrent commits (subclasses of DeltaConcurrentModificationException) and CommitUnknownError.

        >>> table.delete("delay > 60")["num_deleted_rows"]
        1
        """
        from deltaic.commands import delete

        with committing(self._spark, commit) as options:
            return self._run(
                "DELETE",
                lambda snapshot: delete.delete(
                    snapshot, self._engine, where, parquet=parquet, commit=options
                ),
            )

    @renamed(
        updates="set",
        new_values="set",
        predicate="where",
        writer_properties="parquet",
        commit_properties="commit",
        post_commithook_properties="commit",
    )
    def update(
        self,
        set: Mapping[str, Any],
        where: str | None = None,
        *,
        casting: Casting = "strict",
        parquet: ParquetOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Sets columns in the rows for which `where` is true, in one commit. Without `where`, updates all
        rows.

        `set`: a dict from column (fields of structs dotted) to its new value. A string is an SQL expression
        over the old row, any other value a literal. A literal string is quoted as in SQL, `"'Oslo'"`, or is
        `deltaic.lit("Oslo")`. An empty dict writes the rows again as they are.
        `where` (str): a condition in Spark's SQL dialect. Both may have subqueries, as in `delete`.
        `casting`: "strict" (the default) fails if a value does not fit the column's type, "try" makes it
        null.
        `parquet`, `commit`: as for `delete`.

        Returns a dict: `num_updated_rows` and the other keys of `delete`. Raises InvalidArgumentError (an
        unknown column), SchemaMismatchError (a type that does not fit), ConstraintViolationError,
        AppendOnlyError, conflicts with concurrent commits and CommitUnknownError.

        >>> done = table.update({"delay": "delay + 1", "origin": deltaic.lit("EWR")}, where="id = 3")
        >>> done["num_updated_rows"]
        1
        """
        from deltaic.commands import update

        with committing(self._spark, commit) as options:
            return self._run(
                "UPDATE",
                lambda snapshot: update.update(
                    snapshot, self._engine, set, where, casting=casting, parquet=parquet, commit=options
                ),
            )

    @renamed(
        predicate="on",
        merge_schema="schema_mode",
        writer_properties="parquet",
        commit_properties="commit",
        post_commithook_properties="commit",
    )
    def merge(
        self,
        source: Any,
        on: str,
        *,
        source_alias: str = "s",
        target_alias: str = "t",
        schema_mode: Literal["merge"] | None = None,
        casting: Casting = "strict",
        parquet: ParquetOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> Merge:
        """Begins a MERGE INTO this table: add clauses to the `Merge` that is returned, then call its
        `execute()`, which commits once.

        `source`: rows of anything that `deltaic.write` takes (pandas, Arrow, Polars, a DeltaTable, `Rows`,
        ...).
        `on` (str): the condition that matches a source row with a target row, in Spark's SQL dialect.
        Columns are qualified by the aliases `s` (source) and `t` (target), or by `source_alias=` and
        `target_alias=`.
        `schema_mode="merge"`: adds columns that only the source has to the table.
        `casting`: "strict" (the default) fails if a value does not fit its column, "try" makes it null.
        `parquet`, `commit`: as for `delete`.

        Clauses: `when_matched_update_all()`, `when_matched_update(set)`, `when_matched_delete()`,
        `when_not_matched_insert_all()`, `when_not_matched_insert(values)`,
        `when_not_matched_by_source_update(set)`, `when_not_matched_by_source_delete()`, each with an
        optional further condition `where=`. Of several clauses for one row, the first one applies.
        `execute()` returns a dict, with `num_target_rows_inserted`, `num_target_rows_updated`,
        `num_target_rows_deleted` and others; `help(deltaic.Merge.execute)` has all keys and errors.

        Raises InvalidTypeError (`on`, `source`) and InvalidArgumentError (two equal aliases).

        >>> news = pa.table({"id": [1, 9], "origin": ["JFK", "LGA"], "delay": [7, 0]})
        >>> merge = table.merge(news, "t.id = s.id").when_matched_update({"delay": "s.delay"})
        >>> done = merge.when_not_matched_insert_all().execute()
        >>> done["num_target_rows_updated"], done["num_target_rows_inserted"]
        (1, 1)
        """
        from deltaic.commands.merge import MergeSpec
        from deltaic.engine.source import buffered

        spec = MergeSpec(
            source=buffered(source),  # a merge that failed with a conflict may be executed again
            on=on,
            source_alias=source_alias,
            target_alias=target_alias,
            schema_mode=schema_mode,
            casting=casting,
            parquet=parquet,
            commit=commit,
        )
        return self._merging(spec, self._engine)

    def _merging(self, spec: MergeSpec, engine: Engine) -> Merge:
        from deltaic.commands.merge import Merge, merge

        def run(whole: MergeSpec) -> dict[str, int]:
            with committing(self._spark, whole.commit) as options:
                job = replace(whole, commit=options)
                return self._run("MERGE", lambda snapshot: merge(snapshot, engine, job))

        return Merge(spec, run)

    def add_files(
        self,
        files: Iterable[str | AddFile],
        *,
        mode: Literal["append", "overwrite"] = "append",
        where: str | None = None,
        remove: Iterable[str] = (),
        check_rows: bool = True,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Adds Parquet files that another engine has written into the table's folder, in one commit. Copies
        no file.

        `files`: paths relative to the table, or `AddFile`.
        `mode`: "append" (the default) or "overwrite", which removes all rows, or with `where` (a condition in
        Spark's SQL dialect) the matching rows.
        `remove`: paths of files to remove from the table.
        `check_rows`: True (the default) reads and checks the rows if the table has constraints, NOT NULL
        columns or other rules.
        `commit`: CommitOptions.

        Returns a dict: `num_files` (added files), `num_output_bytes` (their bytes); with "overwrite" or
        `remove` also `num_removed_files` and `num_removed_bytes`, and with `where` the keys of `delete`.
        Raises InvalidArgumentError (a file that is named twice, does not exist or lies outside the table),
        SchemaMismatchError, ConstraintViolationError, conflicts with concurrent commits and
        CommitUnknownError.

        >>> rows = pa.table({"id": [7], "origin": ["LGA"], "delay": [3]})
        >>> pq.write_table(rows, f"{plain.location}/new.parquet")
        >>> plain.add_files(["new.parquet"])["num_files"]
        1
        """
        from deltaic.commands import add_files

        options = commit_of(self._spark, commit)
        return self._run(
            "WRITE",
            lambda snapshot: add_files.add_files(
                snapshot,
                self._engine,
                files,
                mode=mode,
                where=where,
                remove=remove,
                check_rows=check_rows,
                commit=options,
            ),
        )

    # --- definition and upkeep

    @property
    def alter(self) -> Alter:
        """Changes to the table's definition: columns, properties, constraints, features. Each method makes
        one commit. `help(table.alter)` shows the methods and their errors.

        >>> table.alter.add_columns("carrier string")
        """
        from deltaic.commands.alter import Alter

        return Alter(
            lambda: giving_way.compacted(self._snapshot),
            lambda: giving_way.command(self._snapshot),
            self._move,
            lambda: self._engine,
            lambda options: commit_of(self._spark, options),
        )

    @property
    def optimize(self) -> Optimize:
        """Changes to the layout of files: `compact`, `z_order`, `cluster`, `purge`, `statistics`; and
        `picture`, which draws it. `help(table.optimize)` shows their arguments, result keys and errors.

        >>> table.optimize.z_order("delay")["num_files_added"]
        1
        """
        from deltaic.commands.optimize import Optimize

        return Optimize(
            lambda: self._snapshot, self._move, self._engine, lambda options: commit_of(self._spark, options)
        )

    @renamed(
        retention_hours="retention",
        enforce_retention_duration="enforce_retention",
        full="mode",
        commit_properties="commit",
        post_commithook_properties="commit",
    )
    def vacuum(
        self,
        *,
        retention: timedelta | None = None,
        mode: VacuumMode = "full",
        dry_run: bool = False,
        enforce_retention: bool = True,
        keep_versions: Iterable[int] = (),
        inventory: Any = None,
        logged: bool = True,
        commit: CommitOptions | None = None,
    ) -> Rows:
        """Deletes files below the table's folder that no version within the retention needs. Older versions
        cannot be read afterwards.

        A vacuum makes two commits, VACUUM START and VACUUM END; if there is nothing to delete, none. On a
        full disk it deletes files without these commits, and logs a warning. Files in the log that a killed
        writer left incomplete are deleted after a day.

        `retention` (timedelta): by default the table's `delta.deletedFileRetentionDuration`, a week.
        `enforce_retention`: True (the default) refuses a retention shorter than that, unless `dry_run` is
        True.
        `mode`: "full" (the default) lists the folder; "lite" takes removed files from the log alone. On
            Spark, "lite" is refused if the log has lost commits since the last vacuum, as in delta-spark.
        `dry_run`: True deletes nothing.
        `keep_versions`: versions whose files are kept at any age. `commit`: CommitOptions.
        `logged`: False makes no commits, so that the history does not show the vacuum.
        `inventory`: a list of the files in the table's folder, which is then not listed (delta-spark: VACUUM
        USING INVENTORY): anything that `deltaic.write` takes, the path or URL of a Parquet file or of a
        folder of them, on Spark also a DataFrame. Columns: path (string: full paths, not percent-encoded),
        length (long, bytes), isDir (boolean), modificationTime (long, ms since 1970). Entries outside the
        table are ignored. Only folders that the inventory names and that are empty are deleted. Memory grows
        by 8 bytes for each file that is kept and by a row for each that is deleted.

        Returns a row for each file that is deleted (with `dry_run`: would be): `path`, `size` (bytes),
        `modification_time`. Raises InvalidArgumentError (a short retention, an unknown mode),
        InvalidTypeError, SchemaMismatchError (other columns of the inventory).

        >>> table.vacuum(dry_run=True).count()
        0
        """
        from deltaic.commands import vacuum
        from deltaic.rows.rows import Rows

        with giving_way.command(self._snapshot) as current:
            snapshot, gone = vacuum.vacuum(
                current.refresh(),
                retention=retention,
                mode=mode,
                dry_run=dry_run,
                enforce_retention=enforce_retention,
                keep_versions=keep_versions,
                inventory=inventory,
                logged=logged,
                needs_log=self._spark is not None,
                commit=commit_of(self._spark, commit),
            )
        if not dry_run and gone.num_rows:
            self._snapshot = snapshot
        return Rows.of(gone)

    @renamed(
        target="version", protocol_downgrade_allowed="allow_protocol_downgrade", commit_properties="commit"
    )
    def restore(
        self,
        version: int | None = None,
        *,
        timestamp: datetime | str | None = None,
        ignore_missing_files: bool = False,
        allow_protocol_downgrade: bool = False,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Restores the table to a version or a time, in a new commit; the versions in between are kept.

        `version` (int) or `timestamp` (datetime, or text in ISO 8601): one of them.
        `ignore_missing_files`: True goes on if files of that version have been deleted.
        `allow_protocol_downgrade`: True restores the protocol of that version, too.
        `commit`: CommitOptions.

        Returns a dict: `num_restored_files`, `num_removed_files`, `restored_files_size`,
        `removed_files_size` (bytes), `num_of_files_after_restore`, `table_size_after_restore`. Raises
        VersionNotFoundError, InvalidArgumentError (neither or both arguments, or deleted files),
        AppendOnlyError and conflicts with concurrent commits.

        >>> table.restore(0)["num_of_files_after_restore"]
        1
        """
        from deltaic.commands import restore

        _check_version(version)
        return self._run(
            "RESTORE",
            lambda snapshot: restore.restore(
                snapshot,
                version,
                timestamp=timestamp,
                ignore_missing_files=ignore_missing_files,
                allow_protocol_downgrade=allow_protocol_downgrade,
                ignore_append_only=self._spark is not None,  # as in delta-spark
                commit=commit_of(self._spark, commit),
            ),
        )

    def repair(self, *, dry_run: bool = False, commit: CommitOptions | None = None) -> Rows:
        """Removes data files from the log if they or their deletion vectors no longer exist in the store, in
        one commit. Their rows are lost; the rest can be read.

        `dry_run`: True commits nothing. `commit`: CommitOptions. Returns a row for each such file: `path`,
        `data_file_missing` (bool), `deletion_vector` (path of its file, or null), `deletion_vector_missing`
        (bool). Raises conflicts with concurrent commits and CommitUnknownError.

        >>> table.repair(dry_run=True).count()
        0
        """
        from deltaic.commands import repair
        from deltaic.rows.rows import Rows

        with giving_way.command(self._snapshot) as current:
            snapshot, gone = repair.repair(current, dry_run=dry_run, commit=commit_of(self._spark, commit))
        self._snapshot = snapshot
        return Rows.of(gone)

    def checkpoint(self) -> None:
        """Writes a checkpoint of this version, so that readers need only the commits after it. Every tenth
        commit (`delta.checkpointInterval`) writes one by itself. Raises UnsupportedFeatureError (a table that
        this release cannot write) and ProtocolError (the written file is not complete).

        >>> table.checkpoint()
        """
        from deltaic.log import checkpoint
        from deltaic.transaction.transaction import now_ms

        checkpoint.write(self._snapshot, now=now_ms())

    def clean_log(self) -> None:
        """Deletes expired commits (older than `delta.logRetentionDuration`, 30 days) that neither this
        version nor an unexpired one needs, and files in the log that a killed writer left incomplete a day
        ago or earlier. Raises UnsupportedFeatureError if a catalog manages the table.

        >>> table.clean_log()
        """
        from deltaic.log import cleanup
        from deltaic.transaction.transaction import now_ms

        cleanup.clean(self._snapshot, now=now_ms())

    def clone(
        self,
        target: Path,
        *,
        shallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, Any] | None = None,
        commit: CommitOptions | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Creates another table with the rows, definition and properties of this version, and a history of
        its own. Returns it.

        `target`: path or URL of the new table.
        `shallow`: True refers to this table's files instead of copying them. Readers of the clone need
        `deltaic.configure(allowed_roots=[...])` with this table's location before they open the clone (here:
        before `clone`), and cannot read it after a vacuum of this table has deleted its files; a vacuum of
        the clone deletes no file of this table.
        False (the default) copies files, by the store itself if it can; repeated with `replace=True`, only
        new ones.
        `replace`: True gives an existing table at `target` the rows and the definition of this one, as a new
        version.
        `properties`: table properties that replace those of this table.
        `commit`: CommitOptions. `storage_options`: of the target; by default those of this table.

        The history has the operation CLONE with `source`, `sourceVersion`, `isShallow` and delta-spark's
        metrics. Raises TableAlreadyExistsError, and InvalidArgumentError if the target is this table.

        >>> backup = table.clone("backup", replace=True)
        """
        return self._clone(target, shallow, replace, properties, commit, storage_options)[0]

    def _clone(
        self,
        target: Path,
        shallow: bool,
        replace: bool,
        properties: Mapping[str, Any] | None,
        commit: CommitOptions | None,
        storage_options: Mapping[str, str] | None,
        source_name: str | None = None,
    ) -> tuple[DeltaTable, dict[str, int]]:
        """Clones, and returns the new table and the metrics. `source_name`: the name of this table in the
        history of the clone; None: delta.`path`."""
        from deltaic.commands import clone

        options = self._options if storage_options is None else storage_options
        with stores_of(self._spark), committing(self._spark, commit) as commit_options:
            store = open_store(target, options)
            source = clone.CloneSource.of(self._snapshot, source_name)
            snapshot, metrics = clone.clone(
                source, store, shallow=shallow, replace=replace, properties=properties, commit=commit_options
            )
        refresh_cached(self._spark, snapshot)
        return self._of(snapshot, options, self._spark), metrics

    def generate(self, mode: str = "symlink_format_manifest") -> None:
        """Writes symlink manifests of the newest version: lists of its files, for engines that read
        manifests but not Delta (Presto, Athena).

        The manifests are written below `_symlink_format_manifest`, one for each partition. With
        `delta.compatibility.symlinkFormatManifest.enabled` every commit updates them. Raises
        UnsupportedFeatureError if files have deletion vectors, because readers of a manifest would see
        deleted rows, or if columns are mapped; InvalidArgumentError for another `mode`.

        >>> plain.generate()
        """
        from deltaic.log import manifests

        if mode != "symlink_format_manifest":
            raise InvalidArgumentError(
                "unknown mode of generate", found=repr(mode), expected="'symlink_format_manifest'"
            )
        manifests.generate(self._snapshot.refresh())

    def compact_log(self, starting_version: int, ending_version: int) -> None:
        """Writes the actions of a range of commits to one file, which readers may read instead of the
        commits. Nothing is committed.

        `starting_version`, `ending_version` (int): the range of at least two commits, both included. Raises
        InvalidArgumentError (an invalid range), InvalidTypeError, and VersionNotFoundError (a commit is
        missing).

        >>> table.compact_log(0, 1)
        """
        from deltaic.log import compaction

        compaction.compact(self._snapshot, starting_version, ending_version)

    def _run(self, operation: str, command: Callable[[Snapshot], tuple[Snapshot, T]]) -> T:
        """Runs a command on the current snapshot, and moves to its commit."""
        with self._engine.working_on(operation, self.location), giving_way.command(self._snapshot) as current:
            snapshot, answer = command(current)
        self._move(snapshot)
        return answer

    def _move(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        refresh_cached(self._spark, snapshot)

    # --- the object itself

    def __getattr__(self, name: str) -> Any:
        raise unknown(name, type(self).__name__, TABLE, TABLE_OF_FRAMES)

    def __getstate__(self) -> dict[str, Any]:
        options = (
            self._options if configuration.current().pickle_credentials else public_options(self._options)
        )
        return {"path": self.location, "version": self._snapshot.version, "storage_options": options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        DeltaTable.__init__(
            self, state["path"], version=state["version"], storage_options=state["storage_options"]
        )

    def __repr__(self) -> str:
        return f"DeltaTable({self.location!r}, version={self.version})"

    def _repr_html_(self) -> str:
        """Returns summary and columns of this version as HTML, for a notebook. Reads no data file."""
        from deltaic.commands import describe

        return describe.html(self._snapshot)


@renamed(
    table_or_uri="table",
    predicate="where",
    configuration="properties",
    writer_properties="parquet",
    commit_properties="commit",
    post_commithook_properties="commit",
    partition_filters="where",
)
def write(
    table: Path | DeltaTable,
    data: Any,
    *,
    mode: WriteMode = "error",
    where: str | None = None,
    schema_mode: SchemaMode | None = None,
    partition_by: str | Iterable[str] | None = None,
    cluster_by: str | Iterable[str] | None = None,
    name: str | None = None,
    description: str | None = None,
    properties: Mapping[str, Any] | None = None,
    casting: Casting | None = None,
    target_file_size: int | None = None,
    data_change: bool = True,
    parquet: ParquetOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DeltaTable:
    """Writes rows in one commit, and creates the table if there is none. Commits nothing if nothing changes
    (no new rows that replace none).

    `table`: the path or URL of a table, or a DeltaTable.
    `data`: a pandas DataFrame (named levels of the index become columns), Polars, a DuckDB relation, a
    pyarrow dataset, any object with `__arrow_c_stream__` or `__arrow_c_array__`, a list of dicts, a dict of
    columns, or a Spark DataFrame (its session writes it). An iterable of record batches may be larger than
    memory; a reader or generator that was read before is an error. A column that the data lacks becomes null,
    or its default; a partition column without a default is required.

    `mode`, if the table exists: "error" (the default) raises TableAlreadyExistsError, "ignore" writes
    nothing, "append" adds the rows, "overwrite" replaces all rows (with `where` only the matching rows, and
    every new row must match), "overwrite_partitions" replaces the partitions of the new rows.
    `where` (str): a condition in Spark's SQL dialect, with "overwrite".
    `schema_mode`: "merge" adds columns, "overwrite" (with the mode "overwrite" and no `where`) replaces the
    definition. Without it, arguments about the definition must agree with the existing table.
    `casting`: conversion of values of another type than their column's. None (the default) accepts only
    values that stay the same (a double 1.5 fits a float column, 0.1 does not). "strict" casts as UPDATE and
    MERGE do: it may round, and fails if a value is out of range. "try" makes such a value null.
    `target_file_size`: target bytes of a data file; by default `delta.targetFileSize`, 256 MiB.
    `data_change`: False if the table has the same rows before and after, in other files, as after your own
    compaction. Change feeds and streams do not show the commit then. It cannot create the table or change its
    definition, and `where` can read only partition columns.
    `partition_by`, `cluster_by` (names of columns), `name`, `description`, `properties`: of a new table, as
    for `DeltaTable.create`.
    `parquet`: ParquetOptions of the files. `commit`: CommitOptions. `storage_options`: options of the store,
    if `table` is a path.

    Returns the table at the new version; the object itself if `table` is a DeltaTable. Raises
    TableAlreadyExistsError (mode "error"), SchemaMismatchError (a type that does not fit, or a column that
    the table does not have), ConstraintViolationError, InvalidArgumentError, conflicts with concurrent
    commits and CommitUnknownError.

    >>> table = deltaic.write("visits", {"day": ["2026-01-31"], "visitors": [12]})
    >>> deltaic.write(table, [{"day": "2026-02-01", "visitors": 9}], mode="append").version
    1
    """
    from deltaic.commands import create
    from deltaic.commands.write_job import Write

    job = Write(
        mode=mode,
        where=where,
        schema_mode=schema_mode,
        wanted=create.TableOptions.of(partition_by, cluster_by, name, description, properties),
        casting=casting,
        target_file_size=target_file_size,
        data_change=data_change,
        parquet=parquet,
        commit=commit,
    )
    return run_write(table, data, job, storage_options)


def run_write(
    table: Path | DeltaTable, data: Any, job: Write, storage_options: Mapping[str, str] | None = None
) -> DeltaTable:
    """Runs `write` with a `Write` job. The session of a Spark DataFrame writes it."""
    is_remote = table._snapshot.store.is_remote if isinstance(table, DeltaTable) else "://" in locate(table)
    with nullcontext() if is_remote else short_work():
        return _run_write(table, data, job, storage_options)


def _run_write(
    table: Path | DeltaTable, data: Any, job: Write, storage_options: Mapping[str, str] | None
) -> DeltaTable:
    from deltaic.commands import create
    from deltaic.commands import write as writing

    if isinstance(table, DeltaTable):
        if storage_options is not None:
            raise InvalidArgumentError(
                "storage_options= requires a path, because a DeltaTable has its own options"
            )
        spark = session_of(data) if table._spark is None else table._spark
        engine = engine_of(spark)
        with committing(spark, job.commit) as options:
            with engine.working_on("WRITE", table.location), _writing(table._snapshot, job) as current:
                snapshot, _ = writing.write(
                    table._snapshot.store, current, engine, data, replace(job, commit=options)
                )
            table._move(snapshot)
        if table._spark is None and spark is not None:
            refresh_cached(spark, table._snapshot)
        return table
    spark = session_of(data)
    with stores_of(spark):
        store = open_store(locate(table), storage_options)
    store.expect_commit()
    before = (recent.newest(store) if job.mode == "append" else None) or create.existing(store)
    definition = with_default_properties(spark, job.wanted) if before is None or job.defines else job.wanted
    engine = engine_of(spark)
    with (
        committing(spark, job.commit) as options,
        engine.working_on("WRITE", store.location),
        _writing(before, job) as current,
    ):
        snapshot, _ = writing.write(
            store, current, engine, data, replace(job, wanted=definition, commit=options)
        )
    refresh_cached(spark, snapshot)
    return DeltaTable._of(snapshot, storage_options or {}, spark)


def _writing(snapshot: Snapshot | None, job: Write) -> AbstractContextManager[Snapshot | None]:
    """Yields the version from which a write starts; all writes but appends make a running compaction give
    way."""
    return nullcontext(snapshot) if snapshot is None or job.mode == "append" else giving_way.command(snapshot)


def clone_files(
    source_format: Literal["parquet", "iceberg"],
    path: Path,
    target: Path,
    *,
    shallow: bool,
    replace: bool,
    properties: Mapping[str, Any] | None,
    commit: CommitOptions | None,
    storage_options: Mapping[str, str] | None,
    spark: Any = None,
) -> dict[str, int]:
    """Clones Parquet files or an Iceberg table into a Delta table, and returns the metrics. The source stays
    as it is."""
    from deltaic.commands import clone, convert, convert_iceberg

    with stores_of(spark), committing(spark, commit) as commit_options:
        store = open_store(target, storage_options)
        if source_format == "parquet":
            source = convert.clone_source(open_store(path, storage_options))
        else:
            location, iceberg = _iceberg_place(path)
            source = convert_iceberg.clone_source(open_store(location, storage_options), iceberg)
        snapshot, metrics = clone.clone(
            source, store, shallow=shallow, replace=replace, properties=properties, commit=commit_options
        )
    refresh_cached(spark, snapshot)
    return metrics


def _iceberg_place(source: Any) -> tuple[str, Any]:
    """Returns the location of an Iceberg table's folder, and the source that `read_iceberg` takes."""
    if hasattr(source, "metadata_location") and hasattr(source, "location"):
        return locate(source.location()), source
    location = locate(source)
    if not location.endswith((".metadata.json", ".metadata.json.gz")):
        return location, None
    folder, _, name = location.rpartition("/")
    root, _, last = folder.rpartition("/")
    if last != "metadata" or not root:
        raise InvalidArgumentError(
            "a metadata file lies in the table's folder `metadata`",
            found=location,
            expected="<table>/metadata/<name>",
        )
    return root, f"metadata/{name}"


def _check_version(version: int | None) -> None:
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise InvalidTypeError("invalid version", found=repr(version), expected="a whole number")


def _read_by_query(storage_options: Mapping[str, str], name: TableName, alias: str) -> Scan:
    """Returns the scan of a table that a subquery names by its path."""
    from deltaic.planning.planned import ScanPlan

    if len(name.parts) != 2 or name.parts[0].lower() not in ("delta", "deltaic"):
        raise InvalidArgumentError("no such table", found=str(name), expected="delta.`path`")
    timestamp = None
    if name.timestamp is not None:
        from deltaic.engine.duckdb.times import timestamp_of

        timestamp = timestamp_of(name.timestamp)
    path = name.parts[1]
    table = DeltaTable(path, version=name.version, timestamp=timestamp, storage_options=storage_options)
    snapshot = table._snapshot
    return ScanPlan(snapshot).scan(snapshot.schema.names, alias=alias)
