"""The cluster as engine: plans become DataFrames, and Spark's own reader and writer touch the data files.

Whatever can be decided on the driver (files, vectors, statistics, actions) is decided by `_core`, as on one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.engine import Curve, WriteTarget
from deltaic.engine.spark import many_rows
from deltaic.engine.spark.errors import named_errors
from deltaic.engine.spark.few_rows import few_rows
from deltaic.engine.spark.lowering import Lowering, nullable_schema
from deltaic.engine.spark.on_driver import (
    SOURCE_BYTES,
    are_plain,
    collected,
    gathered,
    grouped,
    has_few_rows,
    is_local,
    is_of_few,
    most_rows,
)
from deltaic.engine.spark.predicates import predicate_text
from deltaic.engine.spark.sources import conformed, frame_of
from deltaic.engine.spark.stores import Opened
from deltaic.engine.spark.types import of_frame, to_spark
from deltaic.engine.spark.ways import Native, Ways
from deltaic.protocol.schema import Schema
from deltaic.relation.expression import Resolved
from deltaic.relation.literal import col
from deltaic.relation.plan import Aggregate, Data, Join, Plan, Scan, Union
from deltaic.scan.opening import scan_schema
from deltaic.scan.scan import Planned, column_names

if TYPE_CHECKING:
    from deltaic.engine.spark.expressions import Analyser


@dataclass(frozen=True, eq=False)
class SparkRelation:
    """A DataFrame and its columns as Delta has them. `bytes`: of the files that its rows are in, where they are just these. `files`: into
    how many its rows have been divided, on purpose. `rows`: how many there are at most, where that is known. `on_driver`: whether they come
    from rows that lie on the driver, so that they are likely few."""

    frame: Any
    schema: Schema
    bytes: int | None = None
    files: int | None = None
    rows: int | None = None
    on_driver: bool = False


class SparkEngine:
    """`relation.plan` on a cluster. `native`: "auto" reads through Spark's own driver interfaces where they are there, "never" by public
    ones alone. One for each session is enough; threads may share it."""

    def __init__(self, spark: Any, native: Native = "auto") -> None:
        self.spark = spark
        self.ways = Ways(spark, native)
        self.opened = Opened()
        self._jvm: Any = None

    @property
    def is_native(self) -> bool:
        """Whether Spark's own driver interfaces are used."""
        return self.ways.is_native

    @property
    def time_zone(self) -> str:
        return str(self.spark.conf.get("spark.sql.session.timeZone"))

    @property
    def plain_sql(self) -> bool:
        return False

    def resolve(self, text: str, schemas: Mapping[str, Schema]) -> Resolved:
        return self._analyser.resolve(text, schemas)

    @cached_property
    def _analyser(self) -> Analyser:
        from deltaic.engine.spark.expressions import Analyser  # and a parser of SQL with it, which a read of a whole table does without

        return Analyser(self.spark, self.ways)

    # --- leaves and plans

    def source(self, data: Any, alias: str) -> Data:
        with named_errors():
            frame, schema, size = frame_of(self.spark, data)
            relation = SparkRelation(frame, schema, bytes=size, on_driver=self.is_local(frame))
        return Data(handle=relation, schema=relation.schema, alias=alias)

    def conform(self, data: Plan, schema: Schema) -> Data:
        relation = self.run(data)
        with named_errors():
            fitting = conformed(relation.frame, relation.schema, schema)
        alias = getattr(data, "alias", "s")
        return Data(handle=replace(relation, frame=fitting, schema=schema), schema=schema, alias=alias)

    def run(self, plan: Plan) -> SparkRelation:
        with named_errors():
            if isinstance(plan, Aggregate) and self.most_here and (found := grouped(self, plan)) is not None:
                return self._here(*found)
            frame = Lowering(self._leaf, self.size_of, self._few_of).lower(plan)
            if isinstance(plan, Data):
                held: SparkRelation = plan.handle
                return replace(held, frame=frame)
            if isinstance(plan, Scan):
                size = int(pc.sum(plan.files["size"]).as_py() or 0)
                return SparkRelation(frame, scan_schema(plan), bytes=size, rows=_most_rows(plan))
            return SparkRelation(frame, nullable_schema(frame), rows=_most_rows(plan), on_driver=is_of_few(plan))

    def frame(self, planned: Planned, columns: Sequence[str]) -> Any:
        """The rows of a planned scan as a DataFrame. Of many files those that a query over it needs are chosen when Spark plans that."""
        from deltaic.engine.spark.native.files import MANY_FILES, MANY_VECTORS

        with named_errors():
            if not self.is_native:
                return self._scan(planned.scan(columns))
            most = self.ways.planned("the size of the heap", lambda: int(self.jvm.most_set_bytes), lambda: 0)
            return self._scan(planned.scan_later(columns, MANY_FILES, MANY_VECTORS, most))

    @property
    def most_here(self) -> int:
        """How many rows may come to the driver as part of a command's work."""
        return most_rows(self.spark) if self.is_native else 0

    def _here(self, table: pa.Table, schema: Schema) -> SparkRelation:
        frame = self.spark.createDataFrame(table, to_spark(schema))
        return SparkRelation(frame, schema, rows=table.num_rows, on_driver=True)

    def _few_of(self, frame: Any) -> Any | None:
        """The same rows, computed now, where they are few."""
        schema = of_frame(frame)
        if not are_plain(schema) or (table := gathered(self, frame)) is None:
            return None
        return self._here(table, schema).frame

    def _leaf(self, leaf: Scan | Data) -> Any:
        return leaf.handle.frame if isinstance(leaf, Data) else self._scan(leaf)

    def _scan(self, scan: Scan) -> Any:
        """The rows of the scan for which all its conditions are true."""
        from pyspark.sql import functions as F

        conditions = list(scan.where)
        read = column_names([self.resolve(text, {scan.alias: scan.schema}) for text in conditions], scan.schema, scan.alias)
        if scan.predicate is not None:
            read = (*read, *scan.predicate.columns)
            conditions.append(predicate_text(scan.predicate, scan.schema, scan.alias))
        more = dict.fromkeys(name for name in read if name not in scan.columns)
        frame = self._read(replace(scan, columns=(*scan.columns, *more)))
        if conditions:
            frame = frame.alias(scan.alias)
        for text in conditions:
            frame = frame.where(F.expr(text))
        if not more:
            return frame
        return frame.select(*(F.col(col(name)) for name in scan_schema(scan).names))

    def _read(self, scan: Scan) -> Any:
        if scan.later is None and (few := few_rows(scan)) is not None:
            return self.spark.createDataFrame(few, to_spark(scan_schema(scan)))

        def native() -> Any:
            from deltaic.engine.spark.native.scan import native_scan

            return native_scan(self.jvm, scan)

        def public() -> Any:
            from deltaic.engine.spark.portable import portable_scan

            return portable_scan(self.spark, scan if scan.later is None else replace(scan, files=scan.later.files(None), later=None))

        return self.ways.planned("the scan of a table", native, public)

    def size_of(self, frame: Any) -> int | None:
        """Bytes that Spark thinks the rows to be, None where it does not tell."""
        return self.ways.planned("the size of rows", lambda: int(str(_optimized(frame).stats().sizeInBytes())), lambda: None)

    @property
    def jvm(self) -> Any:
        if self._jvm is None:
            from deltaic.engine.spark.native.jvm import Jvm

            self._jvm = Jvm(self.spark)
        return self._jvm

    # --- consuming

    def to_arrow(self, relation: SparkRelation, *, limit: int | None = None) -> pa.RecordBatchReader:
        return self.to_table(relation if limit is None else replace(relation, frame=relation.frame.limit(limit))).to_reader()

    def count(self, relation: SparkRelation) -> int:
        with named_errors():
            return int(relation.frame.count())

    def to_table(self, relation: SparkRelation) -> pa.Table:
        with named_errors():
            table = collected(self, relation.frame)
        schema = _core.TableSchema(relation.schema.to_json())
        found = _core.conform(table, schema).to_table()
        declared = schema.to_arrow()
        return found if found.schema.equals(declared, check_metadata=True) else pa.Table.from_arrays(found.columns, schema=declared)

    @contextmanager
    def hold(self, relation: SparkRelation, alias: str) -> Iterator[Data]:
        """On the driver where they are few, else cached, on disk where memory ends. What would be another answer when computed again is cut
        off from where it came from: a lost part of it is an error then, never other rows."""
        with named_errors():
            few = self._held_here(relation)
        if few is not None:
            yield Data(handle=few, schema=relation.schema, alias=alias)
            return
        if self._is_deterministic(relation.frame):
            with named_errors():
                frame = relation.frame.persist()
        else:
            with named_errors():
                frame = relation.frame.localCheckpoint(eager=True)
        try:
            yield Data(handle=replace(relation, frame=frame), schema=relation.schema, alias=alias)
        finally:
            frame.unpersist()

    def _held_here(self, relation: SparkRelation) -> SparkRelation | None:
        if self.is_local(relation.frame):
            return replace(relation, on_driver=True) if not self.most_here or has_few_rows(self, relation.frame) else None
        if not self.most_here or not (relation.on_driver or (self.size_of(relation.frame) or SOURCE_BYTES) < SOURCE_BYTES):
            return None
        frame = self._few_of(relation.frame)
        return None if frame is None else replace(relation, frame=frame, on_driver=True)

    def is_local(self, frame: Any) -> bool:
        """Whether the rows lie on the driver."""
        return self.ways.planned("where rows lie", lambda: is_local(frame), lambda: False)

    def _is_deterministic(self, frame: Any) -> bool:
        return self.ways.planned(
            "whether rows are the same each time", lambda: bool(frame._jdf.queryExecution().analyzed().deterministic()), lambda: False
        )

    def row_ids(self, relation: SparkRelation, *, unique: bool = False) -> _core.RowIds:
        with named_errors():
            if many_rows.are_few(self, relation):
                return _core.RowIds.collect(collected(self, relation.frame), unique=unique)
            return _core.RowIds.of_bitmaps(many_rows.bitmaps(relation.frame), unique=unique)

    def mark_deleted(
        self, rows: _core.RowIds, scan: Scan, *, deletion_timestamp: int, inline: bool, prefix_length: int
    ) -> _core.MarkedFiles:
        return _core.mark_deleted(
            scan.store, scan.files, rows, deletion_timestamp=deletion_timestamp, inline=inline, prefix_length=prefix_length
        )

    # --- writing

    def write(self, relation: SparkRelation, target: WriteTarget) -> pa.Table:
        from deltaic.engine.spark.write import write

        return write(self, relation, target)

    def cluster(self, plan: Scan, columns: Sequence[str], curve: Curve, files: int) -> SparkRelation:
        from deltaic.engine.spark.cluster import clustered

        with named_errors():
            return SparkRelation(clustered(self, plan, columns, curve, files), scan_schema(plan), files=files)


def _optimized(frame: Any) -> Any:
    return frame._jdf.queryExecution().optimizedPlan()


def _most_rows(plan: Plan) -> int | None:
    """How many rows a plan without joins has at most; None where nobody knows. Only of rows with ids does anybody ask: counting a million
    files takes a while."""
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
"""Attribute of an enabled session: which way it reads."""


def engine_of(spark: Any, native: Native | None = None) -> SparkEngine:
    """The session's engine: the same object each time, so that what it has learned stays. `native` None: as the session was enabled."""
    enabled: Native = getattr(spark, SETTING, "auto")
    chosen = native or enabled
    kept: dict[Native, SparkEngine] = spark.__dict__.setdefault("_deltaic_engines", {})
    if chosen not in kept:
        kept[chosen] = SparkEngine(spark, chosen)
    return kept[chosen]
