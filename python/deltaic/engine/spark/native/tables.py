"""Makes a table a leaf of an analysed plan. An optimizer rule (`PlanTables` of `leaf_classes`) replaces the
leaf by the scan of one version when Spark plans a query.

So a DataFrame can follow a table: each query sees the version that is the newest when the query is planned.
A query that names the table several times sees one version of it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltaic.engine.spark.columns import TRACKED
from deltaic.engine.spark.errors import java_error_text
from deltaic.engine.spark.native.file_index import java_relation, relation_frame
from deltaic.engine.spark.native.filters import partition_predicate
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.engine.spark.native.scan import metadata_fields
from deltaic.engine.spark.native.session import TABLE_KEY
from deltaic.engine.spark.native.totals import totals
from deltaic.errors import DeltaError, UnsupportedFeatureError
from deltaic.protocol import row_tracking
from deltaic.protocol.schema import DataType, Field, Schema, Struct

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

SCHEMA_CHANGED = "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS KD007"
"""Condition and SQLSTATE of the error for a table whose columns have changed since the DataFrame was
created."""
PLANNINGS = 32
"""Maximum number of snapshots that are cached for queries that are being planned; above it, the oldest one is
dropped. Each snapshot has a list of files."""
MOST_SCANS = 4
"""Maximum number of plans of a leaf that are cached: those of a query that names the table so often."""
MOST_TABLES = 8
"""Maximum number of leaves that a session caches for the next queries; above it, the least recently used one
is dropped."""


@dataclass(frozen=True)
class TableRows:
    """The table behind a leaf of a Spark plan.

    `snapshot`: the version from which the DataFrame was created. `columns`: names of the leaf's columns.
    `newest`: opens the newest version, given the last one seen; None for a leaf that stays at its version.
    `place`: equal for leaves that read one table with the same credentials. `frame_of`: returns a DataFrame
    of the columns of a version, with Spark's `_metadata` last if its type is given as JSON. `changes`: the
    range, as text, if the rows are those of the change feed up to the version; else ""."""

    snapshot: Snapshot
    columns: tuple[str, ...]
    newest: Callable[[Snapshot], Snapshot] | None
    place: str
    frame_of: Callable[[Snapshot, str | None], Any]
    changes: str = ""

    @property
    def is_tracked(self) -> bool:
        """True if `_metadata` of the rows has the fields TRACKED."""
        return not self.changes and is_tracked(self.snapshot)


@dataclass(eq=False)
class QuerySnapshots:
    """The snapshots that queries read, so that all leaves of a table in one query read the same version.
    `_known`: (text of the query's planning, from `PlanTables`; `place` of the leaf) -> snapshot."""

    _known: OrderedDict[tuple[str, str], Snapshot] = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=threading.Lock)

    def version_for(self, planning: str, rows: TableRows, last: Snapshot) -> Snapshot:
        if rows.newest is None:
            return rows.snapshot
        key = (planning, rows.place)
        with self._lock:
            if (known := self._known.get(key)) is not None:
                return known
        newest = rows.newest(last)
        with self._lock:
            known = self._known.setdefault(key, newest)
            while len(self._known) > PLANNINGS:
                self._known.popitem(last=False)
        return known


_plannings = QuerySnapshots()


class TableLeaf:
    """The Python side of `TableFiles` of `leaf_classes`. `frame`: the DataFrame of `rows.snapshot`, or
    None.

    The plans of the last version are cached for the next queries that read the same version. Each scan of a
    query needs columns with expression ids of their own, so the first plan is for the first scan of a query,
    the second plan for its second scan, and so on."""

    def __init__(self, jvm: Jvm, rows: TableRows, frame: Any) -> None:
        self._jvm, self._rows = jvm, rows
        self._lock = threading.Lock()
        self._built: tuple[Snapshot, list[Any]] = (
            rows.snapshot,
            [] if frame is None else [self._analysed(frame)],
        )
        self._scans: OrderedDict[str, int] = OrderedDict()
        """Number of cached plans that a query has used, by the text of its planning."""

    def plan(self, planning: str, metadata: str | None) -> Any:
        """Returns the analysed plan of the rows of the version that the query reads, or the text `CONDITION
        SQLSTATE message` of an error. `planning`: text that is the same within one query. `metadata`: the
        type of `_metadata` as JSON, or None."""
        try:
            return self._plan(planning, metadata)
        except DeltaError as error:
            return java_error_text(error, f"{type(error).__module__}.{type(error).__name__}: {error}")

    def totals(self, planning: str, aggregates: str, conditions: Any) -> Any:
        """Returns the values of aggregates over the rows for which all conditions are true, as a Java List of
        text; None if the log does not have them. `aggregates`: one on each line, as `totals.totals` takes
        them. `conditions`: a Seq of Catalyst expressions."""
        if self._rows.changes:
            return None
        try:
            with self._lock:
                last = self._built[0]
            snapshot = _plannings.version_for(planning, self._rows, last)
            if snapshot is not self._rows.snapshot and _changes(self._rows, snapshot):
                return None  # Spark asks for the plan next, which has the error
            predicate = None
            if conditions.size():
                predicate = partition_predicate(self._jvm, conditions, snapshot.schema, snapshot.table_schema)
                if predicate is None:
                    return None
            values = totals(snapshot, aggregates.split("\n"), predicate)
        except DeltaError:
            return None  # Spark asks for the plan next, which has the error
        return None if values is None else self._jvm.java_list(values)

    def _plan(self, planning: str, metadata: str | None) -> Any:
        with self._lock:
            last, plans = self._built
        snapshot = _plannings.version_for(planning, self._rows, last)
        if metadata is None and plans and snapshot is last:
            return self._next(planning, plans)
        if snapshot is not self._rows.snapshot and (changes := _changes(self._rows, snapshot)):
            text = "; ".join(changes)
            return (
                f"{SCHEMA_CHANGED} the columns of the table at {snapshot.location} have changed: {text}. Load"
                " it again"
            )
        plan = self._analysed(self._rows.frame_of(snapshot, metadata))
        if metadata is None:
            with self._lock:
                self._built, self._scans = (snapshot, [plan]), OrderedDict({planning: 1})
        return plan

    def _analysed(self, frame: Any) -> Any:
        plan = frame._jdf.queryExecution().analyzed()
        if not self._rows.changes:
            return plan
        # Spark's rule that removes aliases runs before `PlanTables`.
        rule = self._jvm.companion("org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases")
        return rule.apply(plan)

    def _next(self, planning: str, plans: list[Any]) -> Any:
        """Returns the first of `plans` that this query has not used, or another plan like them."""
        with self._lock:
            number = self._scans.pop(planning, 0)
            self._scans[planning] = number + 1
            while len(self._scans) > PLANNINGS:
                self._scans.popitem(last=False)
            if number < len(plans):
                return plans[number]
        plan = _with_new_ids(self._jvm, plans[0])
        with self._lock:
            if len(plans) == number < MOST_SCANS:  # otherwise another query has added the plan of this number
                plans.append(plan)
        return plan


def _with_new_ids(jvm: Jvm, plan: Any) -> Any:
    """Returns a plan of the same rows, over the same file indexes, whose columns have new expression ids.
    Spark gives them to the second side when it joins a plan with itself."""
    plans = "org.apache.spark.sql.catalyst.plans."
    join = jvm.get(plans + "logical.Join")(
        plan,
        plan,
        jvm.companion(plans + "Cross"),
        jvm.none,
        jvm.companion(plans + "logical.JoinHint").NONE(),
    )
    rule = jvm.companion("org.apache.spark.sql.catalyst.analysis.DeduplicateRelations")
    return rule.apply(join).right()


@dataclass(frozen=True, eq=False)
class TableRelation:
    """The leaf of a table as a Java HadoopFsRelation, of which one call makes a DataFrame."""

    jvm: Jvm
    rows: TableRows
    java: Any

    def frame(self) -> Any:
        """Returns a new DataFrame of the table. Its columns have expression ids of their own, so that it can
        be joined with another DataFrame of the same relation."""
        return relation_frame(self.jvm, self.java)


@dataclass(eq=False)
class RecentTables:
    """The leaves that a session used last, so that reading a table again does not send its files and
    deletion vectors to the JVM again. There are at most MOST_TABLES leaves, and the deletion vectors of all
    but the newest one have at most `most_set_bytes` bytes. A table that is read at another version replaces
    its leaf."""

    _known: OrderedDict[tuple[str, tuple[str, ...], bool], TableRelation] = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=threading.Lock)

    def showing(
        self, snapshot: Snapshot, columns: Sequence[str], place: str, *, follows: bool
    ) -> TableRelation | None:
        """Returns the leaf of these columns of the snapshot, or None. `follows`: True for a leaf that follows
        the table from this snapshot on."""
        key = (place, tuple(columns), follows)
        with self._lock:
            table = self._known.get(key)
            if table is None or table.rows.snapshot is not snapshot:
                return None
            self._known.move_to_end(key)
            return table

    def add(self, table: TableRelation) -> None:
        rows = table.rows
        key = (rows.place, rows.columns, rows.newest is not None)
        with self._lock:
            self._known.pop(key, None)
            self._known[key] = table
            sizes = [each.rows.snapshot.core.with_vectors[2] for each in self._known.values()]
            while len(sizes) > 1 and (len(sizes) > MOST_TABLES or sum(sizes[:-1]) > table.jvm.most_set_bytes):
                self._known.popitem(last=False)
                del sizes[0]


def table_relation(jvm: Jvm, rows: TableRows, schema: Any, frame: Any | None) -> TableRelation:
    """Creates the leaf of a table with the columns of `schema` (a pyspark StructType). `frame`: the DataFrame
    of `rows.snapshot` if it exists already, else None. Raises TypeError if Spark does not run the optimizer
    rule that replaces the leaf."""
    leaf = TableLeaf(jvm, rows, frame)
    size = rows.snapshot.core.size_in_bytes
    root = "" if rows.newest is None else rows.snapshot.location
    partitions = "" if rows.changes else "\0".join(rows.snapshot.table_schema.partition_columns)
    files = jvm.callbacks.create("TableFiles", leaf, jvm.spark, _key(rows), size, root, partitions)
    file_format = jvm.callbacks.tracked_format(" ".join(TRACKED)) if rows.is_tracked else None
    table = TableRelation(jvm, rows, java_relation(jvm, files, _no_columns(), schema, {}, file_format))
    _rehearse(jvm, table)
    return table


def _rehearse(jvm: Jvm, table: TableRelation) -> None:
    """Installs the optimizer rule and checks, once per session, that Spark runs it. Raises TypeError if the
    optimized plan still has the leaf."""
    if jvm.plans_tables:
        return
    rule = jvm.callbacks.rule()
    rule.install(jvm.spark._jsparkSession)
    if rule.holdsTable(
        table.frame()
        ._jdf.select("*", jvm.array(jvm.get("java.lang.String")))
        .queryExecution()
        .optimizedPlan()
    ):
        raise TypeError("Spark's optimizer does not run a rule that was added to the session")
    jvm.plans_tables = True


def _no_columns() -> Any:
    from pyspark.sql.types import StructType

    return StructType([])


def _key(rows: TableRows) -> str:
    """Returns the key of the leaf's file index. Spark considers leaves with equal keys as equal plans, and so
    finds cached rows."""
    snapshot = rows.snapshot
    version = "newest" if rows.newest is not None else f"{snapshot.metadata.id} {snapshot.version}"
    tracked = "with row ids " if rows.is_tracked else ""
    kind = f"deltaic {rows.changes} of " if rows.changes else TABLE_KEY
    return f"{kind}{rows.place} {version} {tracked}{' '.join(rows.columns)}"


def is_tracked(snapshot: Snapshot) -> bool:
    """True if `_metadata` of the table's rows has the fields TRACKED."""
    return row_tracking.is_enabled(snapshot.protocol, snapshot.metadata)


def tracking_columns(snapshot: Snapshot, metadata: str | None) -> tuple[str, str] | None:
    """Returns the hidden columns from which the fields TRACKED of `_metadata` are computed; None if the type
    of `_metadata`, given as JSON, does not have these fields. Raises UnsupportedFeatureError if the version
    has no such columns, although the version from which the DataFrame was created had them."""
    if metadata is None or TRACKED[0] not in metadata_fields(metadata):
        return None
    if (columns := row_tracking.hidden_columns(snapshot.metadata)) is None:
        raise UnsupportedFeatureError(
            "_metadata.row_id is not available for a version without row tracking",
            where=f"{snapshot.location}, version {snapshot.version}",
            expected="a DataFrame of this version: load the table again",
        )
    return columns


def _changes(rows: TableRows, now: Snapshot) -> list[str]:
    """Returns the reasons why the columns of a plan cannot be read from the version `now`. Columns that were
    added later are no reason."""
    then = rows.snapshot
    if (
        then.metadata.schema_string == now.metadata.schema_string
        and then.table_schema.partition_columns == now.table_schema.partition_columns
    ):
        return []
    if then.table_schema.partition_columns != now.table_schema.partition_columns:
        return [
            f"it is partitioned by {now.table_schema.partition_columns}, and was by"
            f" {then.table_schema.partition_columns}"
        ]
    if then.table_schema.column_mapping != now.table_schema.column_mapping:
        return [
            f"its column mapping is {now.table_schema.column_mapping}, and was"
            f" {then.table_schema.column_mapping}"
        ]
    return _field_changes(then.schema, now.schema, "")


_IDENTITY = ("delta.columnMapping.physicalName", "delta.columnMapping.id")


def _field_changes(then: Schema | Sequence[Field], now: Schema | Sequence[Field], prefix: str) -> list[str]:
    current = {each.name.lower(): each for each in now}
    changes = []
    for each in then:
        name, other = f"{prefix}{each.name}", current.get(each.name.lower())
        if other is None or any(each.metadata.get(key) != other.metadata.get(key) for key in _IDENTITY):
            changes.append(f"{name} is missing")
        elif other.nullable and not each.nullable:
            changes.append(f"{name} may be null")
        else:
            changes += _type_changes(each.type, other.type, name)
    return changes


def _type_changes(then: DataType, now: DataType, name: str) -> list[str]:
    if then == now:
        return []
    if isinstance(then, Struct) and isinstance(now, Struct):
        return _field_changes(then.fields, now.fields, f"{name}.")
    parts = [part for part in ("element", "key", "value") if hasattr(then, part)]
    if parts and type(then) is type(now):
        return [
            change
            for part in parts
            for change in _type_changes(getattr(then, part), getattr(now, part), f"{name}.{part}")
        ]
    return [f"{name} has another type"]
