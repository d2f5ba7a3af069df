"""The front door: `DeltaTable` and `write`. Each method forwards to the module that does the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from deltaic import configuration
from deltaic.errors import InvalidArgumentError, InvalidTypeError, UnsupportedFeatureError
from deltaic.log.snapshot import Snapshot
from deltaic.log.store import locate, open_store, public_options

if TYPE_CHECKING:
    from deltaic.commands.add_files import AddFile
    from deltaic.commands.alter import Alter
    from deltaic.commands.create import Mode as CreateMode
    from deltaic.commands.describe import Detail
    from deltaic.commands.merge import Merge
    from deltaic.commands.optimize import Optimize
    from deltaic.commands.vacuum import Mode as VacuumMode
    from deltaic.commands.write import Mode as WriteMode
    from deltaic.commands.write import SchemaMode, Write
    from deltaic.engine.engine import Engine
    from deltaic.options import CommitOptions, ParquetOptions
    from deltaic.protocol.actions import Metadata, Protocol
    from deltaic.protocol.schema import Schema
    from deltaic.scan.rows import Rows

Path = str | os.PathLike[str]
Casting = Literal["strict", "try"]
T = TypeVar("T")


class DeltaTable:
    """One snapshot of a table. Reads see `version`; a command starts from it, commits on top of what is newest if the conflict
    rules allow, and moves the object to its own commit. Threads may share it: each call pins the snapshot it starts with.

    `path`: a local path, `file://` or another URL. `version` or `timestamp` (datetime, or text in ISO 8601; without a zone UTC): an older
    version. `storage_options`: of the store. `spark`: a SparkSession, which does then what the embedded engine does without it.
    Raises TableNotFoundError, VersionNotFoundError, ProtocolError, UnsupportedFeatureError.
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
        self._options = dict(storage_options or {})
        if spark is None:
            self._snapshot = Snapshot.load(open_store(path, self._options), version=version, timestamp=timestamp)
        else:
            from deltaic.engine.spark.engine import engine_of

            self._snapshot = engine_of(spark).opened.open(spark, path, self._options, version, timestamp)

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
        """Whether there is a table. Never creates a directory."""
        from deltaic.log.segment import list_log

        return not list_log(open_store(path, storage_options)).is_empty

    @classmethod
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
        """A table without rows. `schema`: anything with `__arrow_c_schema__`, or DDL text. `mode` for a table that is there: "error"
        (TableAlreadyExistsError), "ignore", or "overwrite", which replaces definition and rows in one commit."""
        from deltaic.commands import create

        wanted = create.Wanted.of(partition_by, cluster_by, name, description, properties)
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
        """Parquet files in place: a later release."""
        raise UnsupportedFeatureError("convert is not supported by this release", where=os.fspath(path))

    # --- the snapshot

    @property
    def version(self) -> int:
        return self._snapshot.version

    @property
    def location(self) -> str:
        """What any reader can open: an absolute local path, otherwise a URL."""
        return self._snapshot.location

    @property
    def schema(self) -> Schema:
        return self._snapshot.schema

    @property
    def storage_options(self) -> Mapping[str, str]:
        return dict(self._options)

    @property
    def metadata(self) -> Metadata:
        return self._snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        return self._snapshot.protocol

    def refresh(self) -> None:
        """Moves to the newest version; reads only what is new."""
        self._snapshot = self._snapshot.refresh()

    def at(self, version: int | None = None, *, timestamp: datetime | str | None = None) -> DeltaTable:
        """The same table at another version; the newest when neither is given."""
        _check_version(version)
        return self._of(self._snapshot.at(version, timestamp=timestamp), self._options, self._spark)

    def detail(self) -> Detail:
        """DESCRIBE DETAIL of this version."""
        from deltaic.commands import describe

        return describe.detail(self._snapshot)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """commitInfo of this version and those before, newest first, with `version` (int) and `timestamp` (datetime, UTC)."""
        from deltaic.commands import describe

        return describe.history(self._snapshot, limit)

    def transaction_version(self, app_id: str) -> int | None:
        """The last version that an application wrote with `CommitOptions.transactions`."""
        found = self._snapshot.core.transactions.get(app_id)
        return None if found is None else found[0]

    def transaction_state(self, txn_id: str) -> int | None:
        """The version that carries this commitInfo.txnId; None when none does. What to ask after a CommitUnknownError."""
        from deltaic.commands import describe

        return describe.transaction_state(self._snapshot, txn_id)

    # --- reading

    @cached_property
    def _engine(self) -> Engine:
        return _engine_of(self._spark)

    def scan(self, columns: Sequence[str] | None = None, where: str | None = None, *, limit: int | None = None) -> Rows:
        """Rows of this version, lazily. `columns`: names, nested ones dotted; `where`: a condition in Spark's SQL dialect."""
        from deltaic.scan import scan

        return scan.scan(self._snapshot, self._engine, columns, where, limit=limit)

    def files(self, where: str | None = None, *, deleted_rows: bool = False) -> Rows:
        """A row for each live file that may hold a matching row, ordered by path."""
        from deltaic.scan import scan

        return scan.files(self._snapshot, self._engine, where, deleted_rows=deleted_rows)

    def partitions(self, where: str | None = None) -> Rows:
        """A row for each partition: its columns, `num_files`, `size` (bytes)."""
        from deltaic.scan import scan

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
        """The change data feed: a later release."""
        raise UnsupportedFeatureError("the change data feed is not supported by this release", where=self.location)

    def tail(
        self,
        *,
        start: Literal["latest", "earliest"] | int = "latest",
        changes: bool = False,
        max_files: int | None = None,
        max_bytes: int | None = None,
        poll: float = 1.0,
        offset: str | None = None,
    ) -> Any:
        """Following a table: a later release."""
        raise UnsupportedFeatureError("tail is not supported by this release", where=self.location)

    # --- changing rows

    def delete(
        self, where: str | None = None, *, parquet: ParquetOptions | None = None, commit: CommitOptions | None = None
    ) -> dict[str, int]:
        """Deletes the rows for which `where` is true; all without it."""
        from deltaic.commands import delete

        options = _commit_of(self._spark, commit)
        return self._run(lambda snapshot: delete.delete(snapshot, self._engine, where, parquet=parquet, commit=options))

    def update(
        self,
        set: Mapping[str, Any],
        where: str | None = None,
        *,
        casting: Casting = "strict",
        parquet: ParquetOptions | None = None,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Sets columns in the rows for which `where` is true. Values: text is SQL, anything else a literal."""
        from deltaic.commands import update

        options = _commit_of(self._spark, commit)
        return self._run(
            lambda snapshot: update.update(snapshot, self._engine, set, where, casting=casting, parquet=parquet, commit=options)
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
        """MERGE INTO this table: add clauses to what this gives, then `execute()`."""
        from deltaic.commands.merge import Merge, MergeSpec, merge

        spec = MergeSpec(
            source=source,
            on=on,
            source_alias=source_alias,
            target_alias=target_alias,
            schema_mode=schema_mode,
            casting=casting,
            parquet=parquet,
            commit=_commit_of(self._spark, commit),
        )
        return Merge(spec, lambda whole: self._run(lambda snapshot: merge(snapshot, self._engine, whole)))

    def add_files(
        self,
        files: Iterable[str | AddFile],
        *,
        mode: Literal["append", "overwrite"] = "append",
        where: str | None = None,
        remove: Iterable[str] = (),
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Takes in Parquet files that another engine wrote into the table's folder."""
        from deltaic.commands import add_files

        return self._run(
            lambda snapshot: add_files.add_files(snapshot, self._engine, files, mode=mode, where=where, remove=remove, commit=commit)
        )

    # --- definition and upkeep

    @property
    def alter(self) -> Alter:
        """Changes of the definition, each one commit."""
        from deltaic.commands.alter import Alter

        return Alter(lambda: self._snapshot, self._move, lambda: self._engine)

    @property
    def optimize(self) -> Optimize:
        """Changes of the layout: compact, z_order, purge, statistics."""
        from deltaic.commands.optimize import Optimize

        return Optimize(lambda: self._snapshot, self._move, self._engine)

    def vacuum(
        self,
        *,
        retention: timedelta | None = None,
        mode: VacuumMode = "full",
        dry_run: bool = False,
        enforce_retention: bool = True,
        keep_versions: Iterable[int] = (),
        commit: CommitOptions | None = None,
    ) -> Rows:
        """Deletes files that no version within the retention needs, of the newest version on; -> path, size, modification_time of what
        went (or would, with `dry_run`)."""
        from deltaic.commands import vacuum
        from deltaic.scan.rows import Rows

        snapshot, gone = vacuum.vacuum(
            self._snapshot.refresh(),
            retention=retention,
            mode=mode,
            dry_run=dry_run,
            enforce_retention=enforce_retention,
            keep_versions=keep_versions,
            commit=commit,
        )
        if not dry_run and gone.num_rows:
            self._snapshot = snapshot
        return Rows.of(gone)

    def restore(
        self,
        version: int | None = None,
        *,
        timestamp: datetime | str | None = None,
        ignore_missing_files: bool = False,
        allow_protocol_downgrade: bool = False,
        commit: CommitOptions | None = None,
    ) -> dict[str, int]:
        """Makes the table what it was at a version or time, as a new commit."""
        from deltaic.commands import restore

        _check_version(version)
        return self._run(
            lambda snapshot: restore.restore(
                snapshot,
                version,
                timestamp=timestamp,
                ignore_missing_files=ignore_missing_files,
                allow_protocol_downgrade=allow_protocol_downgrade,
                commit=commit,
            )
        )

    def repair(self, *, dry_run: bool = False, commit: CommitOptions | None = None) -> Rows:
        """Takes files out of the log that the store no longer has; -> path of each."""
        from deltaic.commands import repair
        from deltaic.scan.rows import Rows

        snapshot, gone = repair.repair(self._snapshot, dry_run=dry_run, commit=commit)
        self._snapshot = snapshot
        return Rows.of(gone)

    def checkpoint(self) -> None:
        """Writes a checkpoint of this version."""
        from deltaic.log import checkpoint
        from deltaic.transaction.transaction import now_ms

        checkpoint.write(self._snapshot, now=now_ms())

    def clean_log(self) -> None:
        """Deletes expired commits that neither this version nor an unexpired one needs."""
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
        """A later release."""
        raise UnsupportedFeatureError("clone is not supported by this release", where=self.location)

    def generate(self, mode: str = "symlink_format_manifest") -> None:
        """A later release."""
        raise UnsupportedFeatureError("generate is not supported by this release", where=self.location)

    def compact_log(self, starting_version: int, ending_version: int) -> None:
        """Writes what the commits from one version to another (both count) say together, as one file that readers may take instead."""
        from deltaic.log import compaction

        compaction.compact(self._snapshot, starting_version, ending_version)

    def _run(self, command: Callable[[Snapshot], tuple[Snapshot, T]]) -> T:
        """Runs a command on the snapshot of this moment, and moves to its commit."""
        snapshot, answer = command(self._snapshot)
        self._snapshot = snapshot
        return answer

    def _move(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    # --- the object itself

    def __getstate__(self) -> dict[str, Any]:
        carried = self._options if configuration.current().pickle_credentials else public_options(self._options)
        return {"path": self.location, "version": self.version, "storage_options": carried}

    def __setstate__(self, state: dict[str, Any]) -> None:
        DeltaTable.__init__(self, state["path"], version=state["version"], storage_options=state["storage_options"])

    def __repr__(self) -> str:
        return f"DeltaTable({self.location!r}, version={self.version})"


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
    target_file_size: int | None = None,
    parquet: ParquetOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DeltaTable:
    """Writes rows, and makes the table where there is none; always one commit.

    `data`: anything with `__arrow_c_stream__` or `__arrow_c_array__`, a Polars LazyFrame, an iterable of record batches (read once,
    larger than memory if need be), a Spark DataFrame (its session writes it). `mode` for a table that is there: "error", "ignore",
    "append", "overwrite" (with `where` only the matching rows, and every new row must match), "overwrite_partitions" (those that the data
    touches). `schema_mode`: "merge" adds columns, "overwrite" replaces the definition; what is said of an existing table's definition
    must agree with it otherwise.
    `target_file_size`: bytes.

    Raises TableAlreadyExistsError, SchemaMismatchError, ConstraintViolationError, InvalidArgumentError, the conflicts, CommitUnknownError.
    """
    from deltaic.commands import create
    from deltaic.commands import write as writing

    job = writing.Write(
        mode=mode,
        where=where,
        schema_mode=schema_mode,
        wanted=create.Wanted.of(partition_by, cluster_by, name, description, properties),
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
        spark = _session_of(data) if table._spark is None else table._spark
        engine, job = _engine_of(spark), _as_said(spark, job, is_new=False)
        table._run(lambda snapshot: writing.write(snapshot.store, snapshot, engine, data, job))
        return table
    spark = _session_of(data)
    with _stores_of(spark):
        store = open_store(locate(table), storage_options)
    before = create.existing(store)
    snapshot, _ = writing.write(store, before, _engine_of(spark), data, _as_said(spark, job, is_new=before is None))
    return DeltaTable._of(snapshot, storage_options or {}, spark)


def _session_of(data: Any) -> Any | None:
    """The Spark session of a DataFrame, None for any other data."""
    return data.sparkSession if type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "sparkSession") else None


def _stores_of(spark: Any | None) -> AbstractContextManager[None]:
    """A session's settings say how its tables are reached."""
    if spark is None:
        return nullcontext()
    from deltaic.engine.spark.stores import opening

    return opening(spark)


def _commit_of(spark: Any | None, given: CommitOptions | None) -> CommitOptions | None:
    """A session has settings about its commits."""
    if spark is None:
        return given
    from deltaic.engine.spark.settings import commit_options

    return commit_options(spark, given)


def _as_said(spark: Any | None, job: Write, *, is_new: bool) -> Write:
    """The same of a write, and about the properties of new tables."""
    if spark is None:
        return job
    from deltaic.engine.spark.settings import commit_options, table_properties

    wanted = replace(job.wanted, properties=table_properties(spark, job.wanted.properties)) if is_new else job.wanted
    return replace(job, wanted=wanted, commit=commit_options(spark, job.commit))


def _engine_of(spark: Any | None) -> Engine:
    if spark is not None:
        from deltaic.engine.spark.engine import engine_of

        return engine_of(spark)
    from deltaic.engine.local import LocalEngine

    return LocalEngine()


def _check_version(version: int | None) -> None:
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise InvalidTypeError("version", found=repr(version), expected="a whole number")
