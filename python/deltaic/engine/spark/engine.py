"""`SparkEngine`, which runs plans on a Spark cluster: plans become DataFrames, and Spark's own reader and
writer read and write the data files.

On the driver, `_core` does the work on files, deletion vectors, statistics and actions, as it does for the
embedded engine.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.engine import AssignmentRules, Changing, Compaction, Curve, StoreAssignment, WriteTarget
from deltaic.engine.spark import many_rows, streamed_rows
from deltaic.engine.spark.batches import declared
from deltaic.engine.spark.cached_rows import is_cached
from deltaic.engine.spark.char_padding import compares_padded, padded
from deltaic.engine.spark.checkpoints import checkpointed
from deltaic.engine.spark.columns import ScanColumns
from deltaic.engine.spark.descriptions import job_description
from deltaic.engine.spark.engine_session import EngineSession
from deltaic.engine.spark.errors import named_errors
from deltaic.engine.spark.few_rows import few_rows
from deltaic.engine.spark.lowering import Lowering, nullable_schema, with_columns
from deltaic.engine.spark.native.session import spark_context
from deltaic.engine.spark.native.tables import RecentTables
from deltaic.engine.spark.on_driver import (
    SOURCE_BYTES,
    are_grouped,
    are_plain,
    collected,
    gathered,
    grouped,
    is_of_few,
    keys_and_arguments,
    most_bytes,
    nullable_fields,
    with_bytes_of_shapes,
)
from deltaic.engine.spark.parsed_conditions import parsed_condition
from deltaic.engine.spark.predicates import predicate_text
from deltaic.engine.spark.read_path import Native, ReadPath
from deltaic.engine.spark.relation import SparkRelation
from deltaic.engine.spark.settings import (
    NESTED_NOT_NULL,
    PERSISTENT_VECTORS,
    assignment_rules,
    auto_compacts,
    compaction,
    is_off,
    is_on,
    merges_as_usual,
    noting_commits,
    store_assignment,
)
from deltaic.engine.spark.sources import conformed, frame_of
from deltaic.engine.spark.stores import RecentSnapshots, travels
from deltaic.engine.spark.types import bare, described, nullable_inside, shown_to_spark
from deltaic.errors import UnsupportedFeatureError
from deltaic.plan.expression import Expression, Pieces, composed
from deltaic.plan.literal import col, enclosed
from deltaic.plan.nodes import Aggregate, Data, Filter, Join, Plan, Project, Scan, Union
from deltaic.planning.columns import narrowed
from deltaic.planning.opening import scan_schema
from deltaic.planning.planned import ScanPlan, column_names
from deltaic.protocol.schema import DataType, Schema

if TYPE_CHECKING:
    from deltaic.engine.spark.expressions import Analyser
    from deltaic.log.snapshot import Snapshot
    from deltaic.log.stream import TableStream
    from deltaic.log.stream_files import StreamFiles


CHEAP_BYTES = 2**30
"""Maximum bytes, as Spark estimates them, of rows that are computed a second time to count those that violate
a constraint; above it, they are not counted."""
UNKNOWN_BYTES = 2**60
"""Minimum estimate by which Spark shows that it does not know the size of rows, as of rows that Python made
and of the batches of most streams. Such rows may be few."""
MOST_FILES_AT_ONCE = 100
"""Maximum number of files of a table whose scan is created together with a DataFrame. For more files it is
created when Spark plans a query."""


class SparkEngine:
    """Runs plans of `plan.nodes` on a cluster; `Engine` of `engine.engine` describes the methods. `native`:
    "auto" uses Spark's driver interfaces (py4j) if they are available, "never" uses PySpark's public
    interfaces alone. Each session has one engine (`engine_of`), and threads may share it."""

    def __init__(self, spark: Any, native: Native = "auto") -> None:
        self.spark = spark
        self.read_path = ReadPath(spark, native)
        self.session = EngineSession(spark, self.read_path)
        self.recent_snapshots = RecentSnapshots()
        self._recent_tables = RecentTables()
        self._queries: Callable[[str], str] | None = None
        self._as_written: Callable[[str], str] = str

    def with_queries(self, prepare: Callable[[str], str], shown: Callable[[str], str] = str) -> SparkEngine:
        """Returns an engine for a statement whose expressions may hold subqueries. `prepare`: a function that
        replaces the tables in the text of an expression by names that the session knows. `shown`: its
        inverse, for texts in the history."""
        engine = copy.copy(self)
        engine._queries, engine._as_written = prepare, shown
        return engine

    @property
    def is_native(self) -> bool:
        """True if the engine uses Spark's driver interfaces."""
        return self.read_path.is_native

    @property
    def time_zone(self) -> str:
        return str(self.spark.conf.get("spark.sql.session.timeZone"))

    def pinned(self) -> SparkEngine:
        return self

    @contextmanager
    def working_on(self, operation: str, location: str) -> Iterator[None]:
        with job_description(self.spark, f"{operation} on {location}"), noting_commits(self.spark):
            yield

    @property
    def is_embedded(self) -> bool:
        return False

    @property
    def plain_sql(self) -> bool:
        return False

    @property
    def takes_repeated_files(self) -> bool:
        return False

    @property
    def pads_char(self) -> bool:
        return compares_padded(self.spark)

    @property
    def takes_nested_not_null(self) -> bool:
        return is_on(self.spark, NESTED_NOT_NULL)

    @property
    def store_assignment(self) -> StoreAssignment:
        return store_assignment(self.spark)

    @property
    def assignment_rules(self) -> AssignmentRules:
        return assignment_rules(self.spark)

    def marks_rows(self, command: Changing) -> bool:
        return not is_off(self.spark, PERSISTENT_VECTORS[command])

    @property
    def auto_compacts(self) -> bool | None:
        return auto_compacts(self.spark)

    @property
    def compaction(self) -> Compaction:
        return compaction(self.spark)

    def resolve(self, text: str, schemas: Mapping[str, Schema], *, queries: bool = False) -> Expression:
        if queries and self._queries is not None and isinstance(text, str):
            return self._analyser.resolve(self._queries(text), schemas, queries=True)
        return self._analyser.resolve(text, schemas)

    def shown_condition(self, condition: str | Expression, alias: str | None) -> str:
        from deltaic.spark_sql.resolved_text import resolved_text  # imports the parser

        return self._as_written(resolved_text(condition, alias))

    def parsed_text(self, condition: str) -> str:
        with named_errors():
            parsed = parsed_condition(self.spark, self.read_path, condition)
            return self.shown_condition(condition, None) if parsed is None else parsed

    def compose(self, pieces: Pieces, data_type: DataType) -> Expression:
        return composed(pieces, data_type, self.time_zone)

    @cached_property
    def _analyser(self) -> Analyser:
        # imports a parser of SQL, which a read of a whole table does not need
        from deltaic.engine.spark.expressions import Analyser

        return Analyser(self.spark, self.read_path)

    # --- leaves and plans

    def source(self, data: Any, alias: str, *, rounding: bool = False) -> Data:
        with named_errors():
            frame, schema, size = frame_of(self.spark, data, rounding)
            given = frame is data
            frame = self.session.same_frame(frame) if given else frame
            reads = self.session.reads_of(data)
            local, plain = self.session.is_local(frame), Schema(map(bare, schema))
            rows = SparkRelation(frame, plain, bytes=size, on_driver=local, partitioned=given and not local)
        return Data(handle=rows, schema=schema, alias=alias, reads=reads)

    def conform(self, data: Plan, schema: Schema) -> Data:
        relation = self.run(data)
        with named_errors():
            fitting = conformed(relation.frame, relation.schema, schema)
        alias = getattr(data, "alias", "s")
        return Data(handle=replace(relation, frame=fitting, schema=schema), schema=schema, alias=alias)

    def numbered(self, data: Plan, series: Mapping[str, tuple[int, int]]) -> Data:
        relation = self.run(data)
        with named_errors():
            texts = {
                name: f"{first}L + {step}L * monotonically_increasing_id()"
                for name, (first, step) in series.items()
            }
            frame = with_columns(
                relation.frame, [(name, texts.get(name, col(name))) for name in relation.schema.names]
            )
        alias = getattr(data, "alias", "u")
        return Data(handle=replace(relation, frame=frame.alias(alias)), schema=relation.schema, alias=alias)

    def run(self, plan: Plan) -> SparkRelation:
        with named_errors():
            if isinstance(plan, Aggregate) and (groups := self._grouped(plan)) is not None:
                return groups
            frame = Lowering(self._leaf, self.session.size_of, self._few_of).lower(plan)
            if isinstance(plan, Data):
                relation: SparkRelation = plan.handle
                return replace(relation, frame=frame)
            if isinstance(plan, Scan):
                size = int(pc.sum(plan.files["size"]).as_py() or 0)
                return SparkRelation(frame, scan_schema(plan), bytes=size, rows=_most_rows(plan))
            partitioned = _is_partitioned(plan)
            return SparkRelation(
                frame,
                nullable_schema(frame),
                rows=_most_rows(plan),
                on_driver=is_of_few(plan),
                partitioned=partitioned,
            )

    def _grouped(self, plan: Aggregate) -> SparkRelation | None:
        """Computes an aggregation of rows that are on the driver. Returns None if Spark must compute it."""
        if not self.session.max_driver_rows or not is_of_few(plan.input):
            return None
        rows = self.run(keys_and_arguments(plan))
        if not are_grouped(rows.schema) or not self.session.is_local(rows.frame):
            return None
        return self._on_driver(*grouped(plan, self.to_table(rows), rows.schema))

    def frame(self, planned: ScanPlan, columns: Sequence[str]) -> Any:
        """Returns the rows of a planned scan of one version as a DataFrame. If there are many files, they are
        deferred: each query selects its files when Spark plans it."""
        with named_errors():
            if planned.pushed is not None or planned.residual or not planned.skipping:
                return self._frame(planned, columns)
            return self._table(planned.snapshot, columns, None, planned.snapshot.location)

    def following(
        self, snapshot: Snapshot, columns: Sequence[str], newest: Callable[[Snapshot], Snapshot], place: str
    ) -> Any:
        """Returns a DataFrame that follows the table: each query over it reads the version that is the newest
        when the query is planned. On the public path the DataFrame stays at `snapshot`.

        `newest`: opens the newest version, given the snapshot that was opened last. `place`: text that is
        equal for the same table with the same credentials."""
        with named_errors():
            return self._table(snapshot, columns, newest, place)

    def stream(
        self,
        stream: TableStream,
        schema: Schema,
        opened: Callable[[], TableStream],
        frame_of: Callable[[StreamFiles], Any],
    ) -> Any:
        """Returns a streaming DataFrame of `stream` with the columns of `schema`. `opened`: opens the table
        again, for each query that reads the DataFrame. `frame_of`: returns a DataFrame of the files of a
        batch. Raises UnsupportedFeatureError on the public path."""
        from deltaic.engine.spark.native.stream import StreamSource, stream_frame

        def native() -> Any:
            return stream_frame(
                self.jvm, StreamSource(self.jvm, stream, opened, frame_of), shown_to_spark(schema, char=True)
            )

        def public() -> Any:
            raise UnsupportedFeatureError(
                "a stream of a Delta table is not supported on the public path",
                where=stream.snapshot.location,
                expected='spark.readStream.format("deltaic") of a session that is not enabled',
            )

        with named_errors():
            return self.read_path.planned("a stream of a table", native, public)

    def _frame(self, planned: ScanPlan, columns: Sequence[str], *, as_stored: bool = False) -> Any:
        return self._scan(replace(self._deferred_scan(planned, columns), as_stored=as_stored))

    def _deferred_scan(self, planned: ScanPlan, columns: Sequence[str]) -> Scan:
        from deltaic.engine.spark.native.files import MANY_FILES, MANY_VECTORS

        if not self.is_native:
            return planned.scan(columns)
        most = self.read_path.planned("the size of the heap", lambda: int(self.jvm.most_set_bytes), lambda: 0)
        return planned.scan_later(columns, MANY_FILES, MANY_VECTORS, most)

    def _table(
        self,
        snapshot: Snapshot,
        columns: Sequence[str],
        newest: Callable[[Snapshot], Snapshot] | None,
        place: str,
    ) -> Any:
        """Returns all rows of a version, or of the newest one if `newest` is set, by a leaf that is replaced
        by a scan when a query is planned. A leaf of this session that shows the same rows is used again,
        because the JVM has its files already."""

        def new_frame() -> Any:
            return self._new_table(snapshot, columns, newest, place)

        known = self._recent_tables.showing(snapshot, columns, place, follows=newest is not None)
        return (
            new_frame()
            if known is None
            else self.read_path.planned("a table in a plan", known.frame, new_frame)
        )

    def _new_table(
        self,
        snapshot: Snapshot,
        columns: Sequence[str],
        newest: Callable[[Snapshot], Snapshot] | None,
        place: str,
    ) -> Any:
        """Like `_table`, by a new leaf. The scan of few files is created here, so that its errors are raised
        here."""
        frame = None
        if not self.session.plans_tables or snapshot.core.file_count <= MOST_FILES_AT_ONCE:
            # Spark pads the columns of the leaf itself
            frame = self._frame(ScanPlan(snapshot), columns, as_stored=True)
            if not self.is_native:
                return self._padded(frame, snapshot, columns)

        def frame_of(version: Snapshot, metadata: str | None) -> Any:
            from deltaic.engine.spark.native.tables import tracking_columns

            scan = self._deferred_scan(ScanPlan(version), columns)
            known = replace(
                scan,
                schema=snapshot.schema,
                table_schema=snapshot.table_schema,
                as_stored=True,
                row_tracking=tracking_columns(version, metadata),
            )
            return self._scan(known, metadata)

        def native() -> Any:
            from deltaic.engine.spark.native.tables import TableRows, table_relation

            rows = TableRows(snapshot, tuple(columns), newest, place, frame_of)
            table = table_relation(self.jvm, rows, self._output(snapshot, columns), frame)
            self._recent_tables.add(table)
            return table.frame()

        def public() -> Any:
            return (
                self._frame(ScanPlan(snapshot), columns)
                if frame is None
                else self._padded(frame, snapshot, columns)
            )

        return self.read_path.planned("a table in a plan", native, public)

    def _padded(self, frame: Any, snapshot: Snapshot, columns: Sequence[str]) -> Any:
        return padded(self.spark, frame, Schema([narrowed(snapshot.schema, name) for name in columns]))

    def _output(self, snapshot: Snapshot, columns: Sequence[str]) -> Any:
        scan = Scan(
            store=snapshot.store,
            schema=snapshot.schema,
            table_schema=snapshot.table_schema,
            files=_core.empty_adds(),
            columns=tuple(columns),
        )
        return shown_to_spark(ScanColumns(scan).output, char=True)

    def _on_driver(self, table: pa.Table, schema: Schema) -> SparkRelation:
        frame = self.spark.createDataFrame(table, shown_to_spark(nullable_inside(schema), char=True))
        return SparkRelation(frame, schema, rows=table.num_rows, on_driver=True)

    def _few_of(self, frame: Any) -> Any | None:
        """Returns a frame with the rows collected to the driver; None if they are not few."""
        schema = described(frame)  # with metadata, which sets how CHAR columns are compared
        if not are_plain(schema) or (table := gathered(self.session, frame)) is None:
            return None
        return self._on_driver(table, schema).frame

    def _leaf(self, leaf: Scan | Data) -> Any:
        return leaf.handle.frame if isinstance(leaf, Data) else self._scan(leaf)

    def _scan(self, scan: Scan, metadata: str | None = None) -> Any:
        """Returns the rows of the scan for which all its conditions are true. `metadata`: as for
        `native_scan`."""
        from pyspark.sql import functions as F

        conditions = [each.text for each in scan.where]
        read = column_names(scan.where, scan.schema, scan.alias)
        if scan.predicate is not None:
            read = (*read, *scan.predicate.columns)
            conditions.append(predicate_text(scan.predicate, scan.schema, scan.alias))
        condition_columns = dict.fromkeys(name for name in read if name not in scan.columns)
        whole = replace(scan, columns=(*scan.columns, *condition_columns))
        frame = self._read(whole, metadata)
        if not scan.as_stored:
            frame = padded(self.spark, frame, scan_schema(whole))
        if conditions:
            frame = frame.alias(scan.alias)
            # One text in place of one filter for each condition: Spark's parser makes a tree of few levels of
            # `(a) AND (b) AND (c)`, and several filters make a plan with a level for each.
            frame = frame.where(
                F.expr(conditions[0] if len(conditions) == 1 else " AND ".join(map(enclosed, conditions)))
            )
        if not condition_columns:
            return frame
        return frame.select(*(F.col(col(name)) for name in scan_schema(scan).names))

    def _read(self, scan: Scan, metadata: str | None) -> Any:
        if scan.later is None and (few := few_rows(scan)) is not None:
            return self.spark.createDataFrame(few, shown_to_spark(nullable_inside(scan_schema(scan))))

        def native() -> Any:
            from deltaic.engine.spark.native.scan import native_scan

            return native_scan(self.jvm, scan, metadata)

        def public() -> Any:
            from deltaic.engine.spark.portable import portable_scan

            if metadata is not None:
                raise UnsupportedFeatureError(
                    "_metadata is not supported on the public path", where=scan.store.location
                )
            return portable_scan(
                self.spark,
                scan if scan.later is None else replace(scan, files=scan.later.files(None), later=None),
            )

        return self.read_path.planned("the scan of a table", native, public)

    def is_cheap(self, relation: SparkRelation) -> bool:
        size = self.session.size_of(relation.frame)
        return relation.on_driver or (size is not None and size <= CHEAP_BYTES)

    @property
    def jvm(self) -> Any:
        return self.session.jvm

    # --- consuming

    def to_arrow(self, relation: SparkRelation, *, limit: int | None = None) -> pa.RecordBatchReader:
        if limit is not None:
            return self.to_table(replace(relation, frame=relation.frame.limit(limit))).to_reader()
        with named_errors():
            is_small = (
                relation.on_driver
                or (self.session.size_of(relation.frame) or UNKNOWN_BYTES) <= streamed_rows.COLLECTED_BYTES
            )
        if is_small or not are_plain(relation.schema):
            return self.to_table(relation).to_reader()
        return streamed_rows.reader(nullable_fields(relation.frame), relation.schema)

    def count(self, relation: SparkRelation) -> int:
        with named_errors():
            return int(relation.frame.count())

    def to_table(self, relation: SparkRelation) -> pa.Table:
        with named_errors():
            table = collected(self.session, with_bytes_of_shapes(relation.frame, relation.schema))
        return declared(table, relation.schema)

    @contextmanager
    def hold(self, relation: SparkRelation, alias: str) -> Iterator[Data]:
        """Yields the rows so that they can be read several times. Few rows are collected to the driver;
        others are cached, in memory and on disk, until the body ends.

        Rows of a frame that is not deterministic are checkpointed instead, which cuts their lineage: if a
        block is lost, the query fails and never computes other rows. A frame that the user has cached is read
        from that cache, and stays cached."""
        from deltaic.engine.spark.write import refuse_shapes

        refuse_shapes(relation.schema)
        with named_errors():
            few = self._few_rows(relation)
        if few is not None:
            yield Data(handle=few, schema=relation.schema, alias=alias)
            return
        with ExitStack() as held:
            with named_errors():
                if not self.session.is_deterministic(relation.frame):
                    frame = held.enter_context(checkpointed(relation.frame))
                elif is_cached(relation.frame):
                    frame = relation.frame
                else:
                    frame = self._cached(relation.frame)
                    held.callback(frame.unpersist)
            if (
                relation.partitioned
                and self.session.max_driver_rows
                and (self.session.size_of(relation.frame) or 0) >= UNKNOWN_BYTES
            ):
                with named_errors():
                    few = self._collected(relation, frame)
            yield Data(handle=few or replace(relation, frame=frame), schema=relation.schema, alias=alias)

    def driver_bytes(self, store: _core.Store) -> int:
        return most_bytes(self.spark) if self.session.max_driver_rows and travels(store) else 0

    def rows_here(self, data: Data) -> pa.Table | None:
        relation: SparkRelation = data.handle
        if not (relation.on_driver and are_plain(data.schema) and self.session.has_few_rows(relation.frame)):
            return None
        return self.to_table(relation) if merges_as_usual(self.spark) else None

    def _cached(self, frame: Any) -> Any:
        """Caches the rows of a frame, and returns a frame that reads them. Spark finds cached rows by their
        plan, in all sessions. A condition that no other plan has keeps this cache apart from the user's cache
        of the same frame, so that `unpersist` of one does not drop the other."""
        from pyspark.sql import functions as F

        from deltaic.engine.spark.native.session import in_own_session

        own_frame = frame.where(F.lit(uuid.uuid4().hex).isNotNull())
        clone = self.read_path.planned(
            "a session of our own", lambda: in_own_session(self.spark, own_frame, _UNCOMPRESSED), lambda: None
        )
        (own_frame if clone is None else clone).persist()
        return own_frame

    def _few_rows(self, relation: SparkRelation) -> SparkRelation | None:
        session = self.session
        if session.is_local(relation.frame):
            return (
                replace(relation, on_driver=True)
                if not session.max_driver_rows or session.has_few_rows(relation.frame)
                else None
            )
        if not session.max_driver_rows or not (
            relation.on_driver or (session.size_of(relation.frame) or SOURCE_BYTES) < SOURCE_BYTES
        ):
            return None
        return self._collected(relation, relation.frame)

    def _collected(self, relation: SparkRelation, frame: Any) -> SparkRelation | None:
        """Returns the relation with its rows, read from `frame`, on the driver; None if they are not few."""
        few = self._few_of(frame)
        return None if few is None else replace(relation, frame=few, on_driver=True, partitioned=False)

    def row_ids(self, relation: SparkRelation, *, unique: bool = False) -> _core.RowIds:
        with named_errors():
            if many_rows.are_few(self.session, relation):
                return _core.RowIds.collect(collected(self.session, relation.frame), unique=unique)
            return _core.RowIds.of_bitmaps(many_rows.bitmaps(relation.frame), unique=unique)

    def mark_deleted(
        self, rows: _core.RowIds, scan: Scan, *, deletion_timestamp: int, inline: bool, prefix_length: int
    ) -> _core.MarkedFiles:
        return _core.mark_deleted(
            scan.store,
            scan.files,
            rows,
            deletion_timestamp=deletion_timestamp,
            inline=inline,
            prefix_length=prefix_length,
        )

    # --- writing

    def write(self, relation: SparkRelation, target: WriteTarget) -> pa.Table:
        from deltaic.engine.spark.write import write

        return write(self.session, relation, target)

    def cluster(self, plan: Scan, columns: Sequence[str], curve: Curve, files: int) -> SparkRelation:
        from deltaic.engine.spark.cluster import clustered

        with named_errors():
            frame = clustered(self.session, lambda scan: self.run(scan).frame, plan, columns, curve, files)
            return SparkRelation(frame, scan_schema(plan), files=files)


def _is_partitioned(plan: Plan) -> bool:
    """True if the partitions of a plan's rows are those of a user's DataFrame."""
    if isinstance(plan, Data):
        return bool(getattr(plan.handle, "partitioned", False))
    return isinstance(plan, (Project, Filter)) and _is_partitioned(plan.input)


_UNCOMPRESSED = {"spark.sql.inMemoryColumnarStorage.compressed": "false"}
"""Settings for rows that a command caches and drops again: compressing them would take longer than it
saves."""


def _most_rows(plan: Plan) -> int | None:
    """Returns the maximum number of rows of a plan; None if it is unknown, and for joins. Rows of files are
    counted only in scans with row ids, because counting those of a million files takes a while."""
    if isinstance(plan, Scan):
        if not plan.row_ids:
            return None
        counts = _core.physical_rows(plan.files)
        return None if counts.null_count else int(pc.sum(counts).as_py() or 0)
    if isinstance(plan, Data):
        return getattr(plan.handle, "rows", None)
    if isinstance(plan, Join):
        return None
    parts = [_most_rows(each) for each in (plan.inputs if isinstance(plan, Union) else (plan.input,))]
    return None if None in parts else sum(part or 0 for part in parts)


SETTING = "_deltaic_native"
"""Attribute of an enabled session: the argument `native` of `enable`."""
_ENABLED = "_deltaic_enabled_session"
"""Attribute of an application (see `application_of`): the session that was enabled last."""
_OFF = "off"
"""Value of SETTING in a session that was disabled."""
_enabled: WeakSet[Any] = WeakSet()
"""Sessions that were enabled. They may be disabled again."""


def note_enabled(spark: Any, native: Native) -> None:
    """Marks a session as enabled. All other sessions of its application that were neither enabled nor
    disabled count as enabled, too."""
    setattr(spark, SETTING, native)
    setattr(application_of(spark), _ENABLED, spark)
    _enabled.add(spark)


def note_disabled(spark: Any) -> bool:
    """Marks a session as disabled; other sessions of its application stay enabled. Returns True if no session
    of the process is enabled any more."""
    setattr(spark, SETTING, _OFF)
    application = application_of(spark)
    others = [each for each in _enabled if getattr(each, SETTING, _OFF) != _OFF]
    if getattr(application, _ENABLED, None) is spark:
        setattr(
            application,
            _ENABLED,
            next((each for each in others if application_of(each) is application), None),
        )
    return not others


def enabled_as(spark: Any) -> Native | None:
    """Returns the argument `native` with which a session was enabled; None if the session is not enabled. A
    session that was neither enabled nor disabled is as the session of its application that was enabled last,
    because Spark creates sessions by `newSession()` and for each batch of `foreachBatch`."""
    native = getattr(spark, SETTING, None) or getattr(
        getattr(application_of(spark), _ENABLED, None), SETTING, None
    )
    return None if native is None or native == _OFF else cast(Native, native)


def application_of(spark: Any) -> Any:
    """Returns the object that all sessions of an application share: the SparkContext, or the session class on
    Spark Connect."""
    return spark_context(spark) or type(spark)


def session_of(maker: Any) -> Any:
    """Returns the session of a reader or writer of DataFrames or streams. The attribute has no public name,
    and other names on Spark Connect."""
    attributes = vars(maker)
    return (
        next(
            (
                attributes[name]
                for name in ("_spark", "_session", "_client")
                if attributes.get(name) is not None
            ),
            None,
        )
        or maker._df.sparkSession
    )


def engine_of(spark: Any, native: Native | None = None) -> SparkEngine:
    """Returns the session's engine: one object for each value of `native`, because the engine caches what it
    learns about the session. `native` None: the value with which the session was enabled, else "auto"."""
    mode: Native = native or enabled_as(spark) or "auto"
    engines: dict[Native, SparkEngine] = spark.__dict__.setdefault("_deltaic_engines", {})
    if mode not in engines:
        engines[mode] = SparkEngine(spark, mode)
    return engines[mode]
