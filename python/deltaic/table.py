"""`DeltaTable` and `write`, the public API of tables: each method forwards to the module that does the work."""

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
from deltaic.session import commit_of, committing, engine_of, refresh_cached, session_of, stores_of, with_default_properties
from deltaic.transaction import giving_way

if TYPE_CHECKING:
    from deltaic.commands.add_files import AddFile
    from deltaic.commands.alter import Alter
    from deltaic.commands.create import Mode as CreateMode
    from deltaic.commands.describe import Detail
    from deltaic.commands.merge import Merge, MergeSpec
    from deltaic.commands.optimize import Optimize
    from deltaic.commands.vacuum import Mode as VacuumMode
    from deltaic.commands.write import Mode as WriteMode
    from deltaic.commands.write import SchemaMode, Write
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
    """One snapshot of a table. Reads see `version`. A command starts from it, commits on top of the newest version if the
    conflict rules allow that, and moves the object to its own commit. Threads may share it: each call keeps the snapshot
    that it starts with.

    `path` (str or os.PathLike): a local folder, `file://` or another URL. `version` (int) or `timestamp` (datetime, or text
    in ISO 8601; UTC without a zone): an older version; the newest by default. `storage_options`: keys of the store, see
    docs/stores.md. `spark`: a SparkSession, which then does the work of the embedded engine.

    Raises TableNotFoundError (it says what is there instead), VersionNotFoundError, ProtocolError (a log that cannot be
    read), UnsupportedFeatureError (a table feature of this name), InvalidArgumentError.

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
            raise InvalidTypeError("spark", found=type(spark).__name__, expected="a SparkSession")
        self._spark = spark
        self._options = options_of(storage_options)
        if spark is None:
            self._snapshot = Snapshot.load(open_store(path, self._options), version=version, timestamp=timestamp)
        else:
            from deltaic.engine.spark.engine import engine_of

            self._snapshot = engine_of(spark).last_snapshot.open(spark, path, self._options, version, timestamp)

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
        """True where a Delta table is. No folder is made, and no data is read.

        `path`, `storage_options`: as for DeltaTable. Raises InvalidArgumentError (a URL that has no store).

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
        """Makes a table without rows, in one commit.

        `schema`: DDL text (`"id long NOT NULL, day date"`), a `Schema`, or anything with `__arrow_c_schema__` (pyarrow, pandas,
        Polars). `mode` where a table is already: "error" (the default: TableAlreadyExistsError), "ignore", or "overwrite", which
        replaces definition and rows in one commit. `partition_by`, `cluster_by`: names of columns, one or the other.
        `properties`: table properties by name (str, bool, int, timedelta). `commit`: CommitOptions.

        Returns the table. Raises InvalidArgumentError (an unknown column or property, text that is no DDL),
        UnsupportedFeatureError.

        >>> made = deltaic.DeltaTable.create("trips", "id long NOT NULL, day date, km double", partition_by="day")
        """
        from deltaic.commands import create

        wanted = create.TableOptions.of(partition_by, cluster_by, name, description, properties)
        snapshot = create.create(open_store(path, storage_options), schema, mode=mode, wanted=wanted, commit=commit)
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
        """Makes a Delta table of the Parquet files below `path`, in place: a log is written beside them, and no file is touched.

        The columns are those of all files, each of one type in all of them. `partitioning`: how folders say partition values, "hive"
        (`year=2026/month=9/`) or "directory" (`2026/09/`). `partition_schema`: names and types of the partition columns (DDL text or
        Arrow), for "directory" in the order of the folders; without it types are inferred: whole numbers, doubles, dates, else text.
        `statistics`: from the footers, so that conditions skip files. `mode` where there is a Delta table: "error"
        (TableAlreadyExistsError) or "ignore". Names that begin with `_` or `.` are left out. Progress is logged to `deltaic.commands`.
        Column names with spaces or any of `,;{}()=` need the property `delta.columnMapping.mode = name`.

        Raises InvalidArgumentError (no file, folders that do not fit), SchemaMismatchError (a column of two types), ProtocolError (a file
        that is not Parquet).

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
        """Makes a Delta table of an Iceberg table's current snapshot, in place: a log is written beside its data files, and no data file is
        changed. Needs PyIceberg: `pip install 'deltaic[iceberg]'`.

        `source`: the path of the table's folder, whose newest file in `metadata/` counts; the path of one such `.metadata.json` file; or a
        `pyiceberg.table.Table` from its catalog, which is the only sure way to know the newest metadata. `statistics`: minima, maxima and
        null counts from the footers, so that conditions skip files (default True). `mode` where there is a Delta table: "error"
        (TableAlreadyExistsError, the default) or "ignore". `name`, `description`, `properties`: of the new table; the Iceberg table's
        properties become its own.

        Iceberg versions 1 to 3 are read. Columns keep their ids (column mapping mode `id`, or `name` if data files have no ids and the
        table has a name mapping), so renamed and dropped columns read right; promoted types are recorded as type widening, and a
        `write-default` is the column's default. A partition field `identity` is the column itself; `year`, `month`, `day`, `hour` and
        `truncate` become generated columns, as in delta-spark. The table is not partitioned by other fields (`bucket`, ...) and by fields
        that some files were written without. Position deletes and deletion vectors become deletion vectors.

        Raises ModuleNotFoundError (PyIceberg is not installed), TableNotFoundError, InvalidArgumentError (two metadata files are the
        newest), ProtocolError (metadata that cannot be read), PathOutsideTableError (a file outside the folder), and
        UnsupportedFeatureError, which names it: equality deletes, ORC and Avro files, files without a column that has an
        `initial-default`, and the types time, uuid, timestamp_ns, variant and geometry.

        >>> table = deltaic.DeltaTable.convert_iceberg("/lake/iceberg/events")

        Source: delta-spark's CONVERT TO DELTA iceberg.`path`; the Iceberg table specification.
        """
        from deltaic.commands import convert_iceberg, create

        path, found = _iceberg_place(source)
        snapshot = convert_iceberg.convert_iceberg(
            open_store(path, storage_options),
            found,
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
        """Location that any reader can open: an absolute local path, otherwise a URL."""
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
        """The `metaData` action of this snapshot: id, name, description, schema, partition columns, properties."""
        return self._snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        """The `protocol` action of this snapshot: reader and writer versions and features."""
        return self._snapshot.protocol

    def refresh(self) -> None:
        """Moves this object to the newest version; reads only the commits since its own.

        Raises TableNotFoundError where the table is gone.

        >>> table.refresh()
        """
        self._snapshot = self._snapshot.refresh()

    def at(self, version: int | None = None, *, timestamp: datetime | str | None = None) -> DeltaTable:
        """This table at another version, as another object; the newest version when neither argument is given.

        `version`: int. `timestamp`: datetime, or text in ISO 8601; the version that was the newest then. Raises
        VersionNotFoundError, with the versions that the log has.

        >>> table.at(0).scan().count()
        3
        """
        _check_version(version)
        return self._of(self._snapshot.at(version, timestamp=timestamp), self._options, self._spark)

    def detail(self) -> Detail:
        """DESCRIBE DETAIL of this version, as a `Detail`: name, location, columns of partitions and clustering,
        number and bytes of live files, properties, protocol. No data file is read.

        >>> table.detail().num_files > 0
        True
        """
        from deltaic.commands import describe

        return describe.detail(self._snapshot)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The commits as their commitInfo describes them, this version first: a dict for each.

        `limit` (int): how many at most; all that the log still has by default. Keys: `version` (int), `timestamp` (datetime,
        UTC), and those of `commitInfo`: `operation`, `operationParameters`, `operationMetrics` (text by name), `userMetadata`,
        `engineInfo`, ...; a commit without commitInfo has the first two alone. Raises InvalidArgumentError (`limit`).

        >>> [entry["operation"] for entry in table.history(limit=2)]
        ['DELETE', 'WRITE']
        """
        from deltaic.commands import describe

        return describe.history(self._snapshot, limit)

    def transaction_version(self, app_id: str) -> int | None:
        """The last version number that an application has written with `CommitOptions(transactions={app_id: version})`;
        None where it has written none. Who writes batches asks here which of them are in the table.

        >>> table.transaction_version("loader") is None
        True
        """
        found = self._snapshot.core.transactions.get(app_id)
        return None if found is None else found[0]

    def transaction_state(self, txn_id: str) -> int | None:
        """The version of the table that carries this `commitInfo.txnId`; None where none does. Ask this after a
        CommitUnknownError, whose text has the id.

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
    def scan(self, columns: Sequence[str] | None = None, where: str | None = None, *, limit: int | None = None) -> Rows:
        """Rows of this version, read when an exit of `Rows` asks for them: `to_pandas()`, `to_arrow()`, `to_polars()`, ...

        `columns` (list of str): all by default; fields of structs are dotted and stay in their struct (`["st.a", "st.b"]` gives
        a column `st`). `where` (str): a condition in Spark's SQL; files, row groups and pages that cannot match are not read.
        `limit` (int): how many rows at most, of any. Raises InvalidArgumentError (an unknown column, text that does not parse),
        InvalidTypeError, SchemaMismatchError (`where` is no condition), UnsupportedFeatureError (SQL without an answer here).

        >>> table.scan(["id", "delay"], where="origin = 'JFK'").to_pylist()
        [{'id': 1, 'delay': 5}]
        """
        from deltaic.rows import scan

        return scan.scan(self._snapshot, self._engine, columns, where, limit=limit)

    @renamed(partition_filters="where")
    def files(self, where: str | None = None, *, deleted_rows: bool = False) -> Rows:
        """The live data files of this version that may hold a matching row, a row for each, ordered by path.

        `where` (str): a condition in Spark's SQL; all files by default. `deleted_rows=True` adds the column `deleted_rows`, the
        row indexes that the file's deletion vector marks. Columns: `path`, `location` (absolute), `size` (bytes),
        `modification_time`, `partition_values`, `num_records`, `null_count`, `min_values`, `max_values`, `deletion_vector`,
        `tags`. Raises InvalidArgumentError.

        >>> table.files(where="id > 100").count()
        0
        """
        from deltaic.rows import scan

        return scan.files(self._snapshot, self._engine, where, deleted_rows=deleted_rows)

    def partitions(self, where: str | None = None) -> Rows:
        """The partitions of this version: the partition columns, `num_files` and `size` (bytes), a row for each.

        `where` (str): a condition on partition columns. Raises InvalidArgumentError.

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
        """The change data feed: the rows that a range of versions inserted, updated (before and after) and deleted, lazily, in no order.

        The range has a start, a version or a time, and both its ends count; without an end it goes up to this version. `columns` and
        `where` (a condition in Spark's SQL dialect) are as for `scan`; beside the table's columns there are `_change_type` (`insert`,
        `delete`, `update_preimage`, `update_postimage`), `_commit_version` and `_commit_timestamp`. Columns are those of the last version.

        VersionNotFoundError for an end that is not in the log; with `allow_out_of_range` the range ends with the log, and one that begins
        after it has no rows. InvalidArgumentError for a version that was written without the feed (`delta.enableChangeDataFeed`),
        SchemaMismatchError where a column was dropped, renamed or changed within the range.

        >>> table.changes(1, where="_change_type = 'delete'").to_arrow()["id"].to_pylist()
        [5]
        """
        from deltaic.log.changes import Range
        from deltaic.rows import changes

        wanted = Range(starting_version, ending_version, starting_timestamp, ending_timestamp)
        return changes.changes(self._snapshot, self._engine, wanted, columns=columns, where=where, allow_out_of_range=allow_out_of_range)

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
        """Follows the table: an iterator of `TailBatch` (`rows`: Rows; `offset`: JSON) that gives the rows of commits as they come, those
        of a commit in its order of files. Offsets are those that delta-spark's streams keep; whoever stores each one together with what
        became of the rows goes on by `offset=` and gets each row once.

        `start`: "latest", the commits after this snapshot; "earliest", the rows of this snapshot, from the oldest file on, and then the
        commits; a version (int) or time (datetime), the commits from there on. `offset`: where an earlier iterator was; `start` is not
        heeded then. `changes`: the change data feed, with its columns, instead of rows. `max_files` and `max_bytes`: of a batch, of which
        one file is always there; 1,000 files where neither is given. `poll`: seconds between two looks at the log; None: end where there
        is nothing new.

        A commit that removes rows is an InvalidArgumentError: with `ignore_deletes` commits that only remove files are passed over, with
        `skip_change_commits` all that remove some; `ignore_changes` gives all rows of the files that they add, changed or not.
        `exclude_regex`: files whose path has a match are left out. `fail_on_data_loss=False` goes on where commits are gone.
        VersionNotFoundError where commits are gone, SchemaMismatchError where rows do not fit this snapshot's schema any more: a new
        iterator of a refreshed table goes on from the same offset.

        >>> for batch in table.tail(start="earliest", poll=None):
        ...     done = batch.rows.to_arrow(), batch.offset
        """
        from deltaic.log.stream import StreamOptions
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

    @renamed(predicate="where", writer_properties="parquet", commit_properties="commit", post_commithook_properties="commit")
    def delete(
        self, where: str | None = None, *, parquet: ParquetOptions | None = None, commit: CommitOptions | None = None
    ) -> dict[str, int]:
        """Deletes the rows for which `where` is true, in one commit; all rows without it. Files of which no row is left are
        removed, others get a deletion vector (or are written again, where the table has deletion vectors turned off).

        `where` (str): a condition in Spark's SQL. On the embedded engine it may have subqueries over tables by path:
        ``table.delete("id IN (SELECT id FROM delta.`/data/gone`)")``. `parquet`: ParquetOptions of files written again.
        `commit`: CommitOptions.

        Returns `num_deleted_rows`, `num_copied_rows`, `num_removed_files`, `num_added_files`, `num_removed_bytes`,
        `num_added_bytes`, `num_deletion_vectors_added`, `..._updated`, `..._removed`, and `num_added_change_files`, files of the
        change data feed. Where no row matches, nothing is committed. Raises InvalidArgumentError (an unknown column, SQL that
        does not parse), AppendOnlyError, the conflicts (subclasses of DeltaConcurrentModificationException),
        CommitUnknownError.

        >>> table.delete("delay > 60")["num_deleted_rows"]
        1
        """
        from deltaic.commands import delete

        with committing(self._spark, commit) as options:
            return self._run("DELETE", lambda snapshot: delete.delete(snapshot, self._engine, where, parquet=parquet, commit=options))

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
        """Sets columns in the rows for which `where` is true, in one commit; in all rows without it.

        `set`: column (fields of structs dotted) to its new value. Text is SQL over the old row, anything else a literal; text
        itself is quoted as SQL, `"'Oslo'"`, or `deltaic.lit("Oslo")`. `where` (str): a condition in Spark's SQL. Subqueries may
        stand in both, as in `delete`. `casting`: "strict" fails where a value does not fit the column's type, "try" makes it null.
        `parquet`, `commit`: as for `delete`.

        Returns `num_updated_rows` and the other keys of `delete`. Raises InvalidArgumentError (an unknown column),
        SchemaMismatchError (a type that does not fit), ConstraintViolationError, AppendOnlyError, the conflicts,
        CommitUnknownError.

        >>> table.update({"delay": "delay + 1", "origin": deltaic.lit("EWR")}, where="id = 3")["num_updated_rows"]
        1
        """
        from deltaic.commands import update

        with committing(self._spark, commit) as options:
            return self._run(
                "UPDATE",
                lambda snapshot: update.update(snapshot, self._engine, set, where, casting=casting, parquet=parquet, commit=options),
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
        """MERGE INTO this table: add clauses to the `Merge` that this returns, then call its `execute()`, which commits once.

        `source`: rows of anything that `deltaic.write` takes (pandas, Arrow, Polars, a DeltaTable, `Rows`, ...). `on` (str): the
        condition by which a source row matches a target row, in Spark's SQL; columns have the aliases `s` (source) and `t`
        (target) in front, or those that `source_alias=` and `target_alias=` give. `schema_mode="merge"`: columns that only the
        source has are added to the table. `casting`: "strict" (the default) fails where a value does not fit its column, "try"
        makes it null. `parquet`, `commit`: as for `delete`.

        Clauses: `when_matched_update_all()`, `when_matched_update(set)`, `when_matched_delete()`,
        `when_not_matched_insert_all()`, `when_not_matched_insert(values)`, `when_not_matched_by_source_update(set)`,
        `when_not_matched_by_source_delete()`, each with a further condition `where=`. Of several clauses for one row the first
        one counts. The keys of the result and the errors stand at `Merge.execute`. Raises InvalidTypeError (`on`, `source`),
        InvalidArgumentError (two equal aliases).

        >>> news = pa.table({"id": [1, 9], "origin": ["JFK", "LGA"], "delay": [7, 0]})
        >>> merge = table.merge(news, "t.id = s.id").when_matched_update({"delay": "s.delay"}).when_not_matched_insert_all()
        >>> done = merge.execute()
        >>> done["num_target_rows_updated"], done["num_target_rows_inserted"]
        (1, 1)
        """
        from deltaic.commands.merge import MergeSpec
        from deltaic.engine.source import buffered

        spec = MergeSpec(
            source=buffered(source),  # a merge that met a conflict may be executed again
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
        """Takes in Parquet files that another engine has written into the table's folder, in one commit; no file is copied.

        `files`: paths relative to the table, or `AddFile`. `mode`: "append" (the default) or "overwrite", which removes the
        files before; with `where` only those of matching partitions. `remove`: paths of files to take out of the table.
        `check_rows` (bool, True): their rows are read and checked where the table has constraints, NOT NULL columns or other
        rules. `commit`: CommitOptions.

        Returns `num_files` and `num_output_bytes`. Raises InvalidArgumentError (a file twice, or one that is not there),
        SchemaMismatchError, ConstraintViolationError, the conflicts, CommitUnknownError.

        >>> pq.write_table(pa.table({"id": [7], "origin": ["LGA"], "delay": [3]}), f"{plain.location}/new.parquet")
        >>> plain.add_files(["new.parquet"])["num_files"]
        1
        """
        from deltaic.commands import add_files

        options = commit_of(self._spark, commit)
        return self._run(
            "WRITE",
            lambda snapshot: add_files.add_files(
                snapshot, self._engine, files, mode=mode, where=where, remove=remove, check_rows=check_rows, commit=options
            ),
        )

    # --- definition and upkeep

    @property
    def alter(self) -> Alter:
        """Changes of the definition: columns, properties, constraints, features. Each method of `Alter` makes one commit.

        >>> table.alter.add_columns("carrier string")
        """
        from deltaic.commands.alter import Alter

        return Alter(
            lambda: giving_way.compacted(self._snapshot),
            lambda: giving_way.command(self._snapshot),
            self._move,
            lambda: self._engine,
            lambda given: commit_of(self._spark, given),
        )

    @property
    def optimize(self) -> Optimize:
        """Changes of the layout of files: `compact`, `z_order`, `cluster`, `purge`, `statistics`; and `picture`, which draws it.

        >>> table.optimize.z_order("delay")["num_files_added"]
        1
        """
        from deltaic.commands.optimize import Optimize

        return Optimize(lambda: self._snapshot, self._move, self._engine, lambda given: commit_of(self._spark, given))

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
        commit: CommitOptions | None = None,
    ) -> Rows:
        """Deletes files below the table's folder that no version within the retention needs. After that, older versions can
        be read no more. On a full disk it deletes without its two commits, and logs a warning. Files of the log that a killed
        writer left half written go after a day.

        `retention` (timedelta): default is the table's `delta.deletedFileRetentionDuration`, a week; a shorter one needs
        `enforce_retention=False`. `mode`: "full" lists the folder; "lite" takes the removed files from the log alone. `dry_run`
        (bool): deletes nothing. `keep_versions`: versions whose files stay whatever their age. `commit`: CommitOptions.

        `inventory`: a list of what lies in the table's folder, instead of a listing of it (delta-spark: VACUUM USING INVENTORY):
        anything that `deltaic.write` takes, the path or URL of a Parquet file or of a folder of them, on Spark also a DataFrame.
        Columns: path (string: full paths, not percent-encoded), length (long, bytes), isDir (boolean), modificationTime (long, ms
        since 1970). Entries outside of the table are passed over. Of folders only those go that the inventory names and that are
        empty. Memory grows by 8 bytes for each file that stays and by a row for each that goes.

        Returns a row for each file that went (or would, with `dry_run`): `path`, `size` (bytes), `modification_time`. Raises
        InvalidArgumentError (a short retention, an unknown mode), InvalidTypeError, SchemaMismatchError (other columns of the
        inventory).

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
                commit=commit_of(self._spark, commit),
            )
        if not dry_run and gone.num_rows:
            self._snapshot = snapshot
        return Rows.of(gone)

    @renamed(target="version", protocol_downgrade_allowed="allow_protocol_downgrade", commit_properties="commit")
    def restore(
        self,
        version: int | None = None,
        *,
        timestamp: datetime | str | None = None,
        ignore_missing_files: bool = False,
        allow_protocol_downgrade: bool = False,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Makes the table what it was at a version or a time, as a new commit; the versions in between stay.

        `version` (int) or `timestamp` (datetime, or text in ISO 8601): one of them. `ignore_missing_files` (bool): goes on where
        files of that version have been deleted. `allow_protocol_downgrade` (bool): the protocol becomes that of then, too.
        `commit`: CommitOptions.

        Returns `num_restored_files`, `num_removed_files`, `restored_files_size`, `removed_files_size` (bytes),
        `num_of_files_after_restore`, `table_size_after_restore`. Raises VersionNotFoundError, InvalidArgumentError (neither, both,
        or files that are gone), AppendOnlyError, the conflicts.

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
                commit=commit_of(self._spark, commit),
            ),
        )

    def repair(self, *, dry_run: bool = False, commit: CommitOptions | None = None) -> Rows:
        """Takes files out of the log that the store has no more, in one commit; their rows are lost, the rest can be read.

        `dry_run` (bool): commits nothing. `commit`: CommitOptions. Returns a row for each such file: `path`,
        `data_file_missing`, `deletion_vector`, `deletion_vector_missing`. Raises the conflicts, CommitUnknownError.

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
        """Writes a checkpoint of this version into the log, so that readers need only the commits after it. Commits do so by
        themselves, each tenth (`delta.checkpointInterval`).

        >>> table.checkpoint()
        """
        from deltaic.log import checkpoint
        from deltaic.transaction.transaction import now_ms

        checkpoint.write(self._snapshot, now=now_ms())

    def clean_log(self) -> None:
        """Deletes expired commits (`delta.logRetentionDuration`, 30 days) that neither this version nor an unexpired one
        needs, and files that a killed writer left half written in the log a day ago or longer.

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
        """Makes another table of this version: its rows, definition and properties, with a history of its own.

        `shallow`: the new table names the files of this one and copies none. Its readers must be allowed to look here
        (`deltaic.configure(allowed_roots=[...])`), and it cannot be read any more when a vacuum of this table deletes files that it still
        names; a vacuum of the new table touches no file of this one. Deep: files are copied, by the store itself where it can; repeated
        with `replace=True` only those that are new. `replace`: a table that is there gets the rows and the definition of this one, as a
        new version. `properties` replace those of this table. `storage_options`: of the target; those of this table by default.

        History: CLONE with `source`, `sourceVersion`, `isShallow` and delta-spark's metrics. Raises TableAlreadyExistsError,
        InvalidArgumentError where the target is this table.

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
    ) -> tuple[DeltaTable, dict[str, int]]:
        """The clone and its metrics."""
        from deltaic.commands import clone

        options = self._options if storage_options is None else storage_options
        with stores_of(self._spark), committing(self._spark, commit) as wanted:
            store = open_store(target, options)
            source = clone.CloneSource.of(self._snapshot)
            snapshot, metrics = clone.clone(source, store, shallow=shallow, replace=replace, properties=properties, commit=wanted)
        refresh_cached(self._spark, snapshot)
        return self._of(snapshot, options, self._spark), metrics

    def generate(self, mode: str = "symlink_format_manifest") -> None:
        """Writes symlink manifests of the newest version: lists of its files, for engines that read these and no Delta (Presto,
        Athena).

        They lie below `_symlink_format_manifest`, one for each partition. With
        `delta.compatibility.symlinkFormatManifest.enabled` every commit brings them up to date. Raises UnsupportedFeatureError
        where files have deletion vectors, as readers of a manifest would see deleted rows, and where columns are mapped;
        InvalidArgumentError (another `mode`).

        >>> plain.generate()
        """
        from deltaic.log import manifests

        if mode != "symlink_format_manifest":
            raise InvalidArgumentError("unknown mode of generate", found=repr(mode), expected="'symlink_format_manifest'")
        manifests.generate(self._snapshot.refresh())

    def compact_log(self, starting_version: int, ending_version: int) -> None:
        """Writes what the commits from one version to another (both count) say together, as one file that readers may take
        instead of them. `starting_version`, `ending_version`: int. Raises VersionNotFoundError (a commit that is gone).

        >>> table.compact_log(0, 1)
        """
        from deltaic.log import compaction

        compaction.compact(self._snapshot, starting_version, ending_version)

    def _run(self, operation: str, command: Callable[[Snapshot], tuple[Snapshot, T]]) -> T:
        """Runs a command on the snapshot of this moment, and moves to its commit."""
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
        carried = self._options if configuration.current().pickle_credentials else public_options(self._options)
        return {"path": self.location, "version": self._snapshot.version, "storage_options": carried}

    def __setstate__(self, state: dict[str, Any]) -> None:
        DeltaTable.__init__(self, state["path"], version=state["version"], storage_options=state["storage_options"])

    def __repr__(self) -> str:
        return f"DeltaTable({self.location!r}, version={self.version})"

    def _repr_html_(self) -> str:
        """Summary and columns of this version, for a notebook; no data file is read."""
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
    parquet: ParquetOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DeltaTable:
    """Writes rows, and makes the table where there is none; one commit, or none where nothing changes (no new rows that replace none).

    `data`: anything with `__arrow_c_stream__` or `__arrow_c_array__`, a pyarrow dataset, pandas (named levels of the index become
    columns), Polars, a DuckDB relation, a list of dicts, a dict of columns, an iterable of record batches (larger than memory if
    need be; a reader or generator that has been read before is an error), a Spark DataFrame (its session writes it). `mode` for a
    table that is there: "error", "ignore", "append", "overwrite" (with `where` only the matching rows, and every new row must
    match), "overwrite_partitions" (those that the data touches). `schema_mode`: "merge" adds columns, "overwrite" replaces the
    definition; what is said of an existing table's definition must agree with it otherwise. A column that the data lacks becomes null,
    or its default; a partition column without a default must be there.
    `casting`: what becomes of values of another type than their column's. None: only those are taken that stay the same (1.5 of a
    double column goes into a float column, 0.1 does not); "strict": a cast as in UPDATE and MERGE, which may round and fails where a value
    is out of range; "try": null there. `target_file_size`: bytes.

    `partition_by`, `cluster_by` (names of columns), `name`, `description`, `properties`: of a new table, as for `DeltaTable.create`.
    `parquet`: ParquetOptions of the files. `commit`: CommitOptions. `storage_options`: where `table` is a path.

    Returns the table at the new version: the object itself where `table` is one. Raises TableAlreadyExistsError (mode "error"),
    SchemaMismatchError (a type that does not fit, a column that the table has not), ConstraintViolationError, InvalidArgumentError,
    the conflicts, CommitUnknownError.

    >>> table = deltaic.write("visits", {"day": ["2026-01-31"], "visitors": [12]})
    >>> deltaic.write(table, [{"day": "2026-02-01", "visitors": 9}], mode="append").version
    1
    """
    from deltaic.commands import create
    from deltaic.commands import write as writing

    job = writing.Write(
        mode=mode,
        where=where,
        schema_mode=schema_mode,
        wanted=create.TableOptions.of(partition_by, cluster_by, name, description, properties),
        casting=casting,
        target_file_size=target_file_size,
        parquet=parquet,
        commit=commit,
    )
    return run_write(table, data, job, storage_options)


def run_write(table: Path | DeltaTable, data: Any, job: Write, storage_options: Mapping[str, str] | None = None) -> DeltaTable:
    """`write`, said as a job. A Spark DataFrame is written by its own session."""
    from deltaic.commands import create
    from deltaic.commands import write as writing

    if isinstance(table, DeltaTable):
        if storage_options is not None:
            raise InvalidArgumentError("storage_options= go with a path: a DeltaTable has its own")
        spark = session_of(data) if table._spark is None else table._spark
        engine = engine_of(spark)
        with committing(spark, job.commit) as options:
            with engine.working_on("WRITE", table.location), _writing(table._snapshot, job) as current:
                snapshot, _ = writing.write(table._snapshot.store, current, engine, data, replace(job, commit=options))
            table._move(snapshot)
        if table._spark is None and spark is not None:
            refresh_cached(spark, table._snapshot)
        return table
    spark = session_of(data)
    with stores_of(spark):
        store = open_store(locate(table), storage_options)
    store.expect_commit()
    before = (recent.newest(store) if job.mode == "append" else None) or create.existing(store)
    wanted = with_default_properties(spark, job.wanted) if before is None else job.wanted
    engine = engine_of(spark)
    with committing(spark, job.commit) as options, engine.working_on("WRITE", store.location), _writing(before, job) as current:
        snapshot, _ = writing.write(store, current, engine, data, replace(job, wanted=wanted, commit=options))
    refresh_cached(spark, snapshot)
    return DeltaTable._of(snapshot, storage_options or {}, spark)


def _writing(snapshot: Snapshot | None, job: Write) -> AbstractContextManager[Snapshot | None]:
    """While a write runs; -> the version that it starts from. An append is none of a compaction's business."""
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
    """Clones Parquet files or an Iceberg table into a Delta table; -> the metrics of the clone. The source stays as it is."""
    from deltaic.commands import clone, convert, convert_iceberg

    with stores_of(spark), committing(spark, commit) as wanted:
        store = open_store(target, storage_options)
        if source_format == "parquet":
            source = convert.clone_source(open_store(path, storage_options))
        else:
            place, found = _iceberg_place(path)
            source = convert_iceberg.clone_source(open_store(place, storage_options), found)
        snapshot, metrics = clone.clone(source, store, shallow=shallow, replace=replace, properties=properties, commit=wanted)
    refresh_cached(spark, snapshot)
    return metrics


def _iceberg_place(source: Any) -> tuple[str, Any]:
    """The location of an Iceberg table's folder, and what `read_iceberg` takes as its source."""
    if hasattr(source, "metadata_location") and hasattr(source, "location"):
        return locate(source.location()), source
    location = locate(source)
    if not location.endswith((".metadata.json", ".metadata.json.gz")):
        return location, None
    folder, _, name = location.rpartition("/")
    root, _, last = folder.rpartition("/")
    if last != "metadata" or not root:
        raise InvalidArgumentError(
            "a metadata file lies in the table's folder `metadata`", found=location, expected="<table>/metadata/<name>"
        )
    return root, f"metadata/{name}"


def _check_version(version: int | None) -> None:
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise InvalidTypeError("version", found=repr(version), expected="a whole number")


def _read_by_query(storage_options: Mapping[str, str], name: TableName, alias: str) -> Scan:
    """The rows of a table that a subquery names by its path."""
    from deltaic.planning.planned import ScanPlan

    if len(name.parts) != 2 or name.parts[0].lower() not in ("delta", "deltaic"):
        raise InvalidArgumentError("no such table", found=str(name), expected="delta.`path`")
    snapshot = DeltaTable(name.parts[1], version=name.version, timestamp=name.timestamp, storage_options=storage_options)._snapshot
    return ScanPlan(snapshot).scan(snapshot.schema.names, alias=alias)
