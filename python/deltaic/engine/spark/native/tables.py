"""A table in an analysed plan: a leaf that becomes the scan of one version when Spark optimizes a query.

A DataFrame of a table by its newest version follows the table: each query sees the version that is the newest when it is planned, the same
one wherever the query names the table. An optimizer rule (`PlanTables` of `driver_classes`) asks for that scan.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltaic.engine.spark.errors import said_to_java
from deltaic.engine.spark.native.file_index import relation
from deltaic.engine.spark.native.filters import partition_predicate
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.engine.spark.native.totals import totals
from deltaic.errors import DeltaError
from deltaic.protocol.schema import DataType, Field, Schema, Struct

if TYPE_CHECKING:
    from deltaic.log.snapshot import Snapshot

SCHEMA_CHANGED = "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS KD007"
"""Condition and SQLSTATE."""
PLANNINGS = 32
"""Maximum number of versions remembered for queries that are being planned; the oldest is forgotten first. A version is as large as its
list of files."""


@dataclass(frozen=True)
class TableRows:
    """The table behind a leaf of a Spark plan. `snapshot`: the version that the DataFrame was made of. `newest`: opens the newest one,
    None for a leaf that stays at its version. `place`: the same for leaves that follow one table with the same rights. `frame_of`: makes
    a DataFrame of the wanted columns of a version, with `_metadata` (its type as JSON) last where it is asked for."""

    snapshot: Snapshot
    columns: tuple[str, ...]
    newest: Callable[[Snapshot], Snapshot] | None
    place: str
    frame_of: Callable[[Snapshot, str | None], Any]


@dataclass(eq=False)
class QuerySnapshots:
    """The version of each table that a query sees."""

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
    """The Python side of `TableFiles`. `frame`: the DataFrame of the version at which the leaf was made, or None; queries that see the same
    version use its plan, which is why it is kept."""

    def __init__(self, jvm: Jvm, rows: TableRows, frame: Any) -> None:
        self._jvm, self._rows = jvm, rows
        self._lock = threading.Lock()
        self._built: tuple[Snapshot, Any] = (rows.snapshot, None if frame is None else frame._jdf.queryExecution().analyzed())
        self._used_by: str | None = None

    def plan(self, planning: str, metadata: str | None) -> Any:
        """The analysed plan of the rows, or the condition and message of an error."""
        try:
            return self._plan(planning, metadata)
        except DeltaError as error:
            return said_to_java(error, f"{type(error).__module__}.{type(error).__name__}: {error}")

    def totals(self, planning: str, wanted: str, conditions: Any) -> Any:
        """Values of aggregates over the rows for which the conditions are true, as `TableFiles` asks for them."""
        try:
            with self._lock:
                last = self._built[0]
            snapshot = _plannings.version_for(planning, self._rows, last)
            if snapshot is not self._rows.snapshot and _changes(self._rows, snapshot):
                return None  # the plan is asked for next, and says what changed
            predicate = None
            if conditions.size():
                predicate = partition_predicate(self._jvm, conditions, snapshot.schema, snapshot.table_schema)
                if predicate is None:
                    return None
            found = totals(snapshot, wanted.split("\n"), predicate)
        except DeltaError:
            return None  # the same
        return None if found is None else self._jvm.java_list(found)

    def _plan(self, planning: str, metadata: str | None) -> Any:
        with self._lock:
            last, built = self._built
        snapshot = _plannings.version_for(planning, self._rows, last)
        with self._lock:
            # Where a query names a table twice, the second scan needs expression ids of its own.
            if metadata is None and built is not None and snapshot is last and self._used_by != planning:
                self._used_by = planning
                return built
        if snapshot is not self._rows.snapshot and (changes := _changes(self._rows, snapshot)):
            said = "; ".join(changes)
            return f"{SCHEMA_CHANGED} the columns of the table at {snapshot.location} are others now: {said}. Load it again"
        made = self._rows.frame_of(snapshot, metadata)._jdf.queryExecution().analyzed()
        if metadata is None:
            with self._lock:
                self._built, self._used_by = (snapshot, made), planning
        return made


def table_frame(jvm: Jvm, rows: TableRows, schema: Any, frame: Any | None) -> Any:
    """A DataFrame with the columns of `schema` (a pyspark StructType) and a leaf for a plan. `frame`: of `rows` at their version, where it
    has been made already. TypeError where Spark does not run the rule that resolves the leaf."""
    leaf = TableLeaf(jvm, rows, frame)
    size = rows.snapshot.core.size_in_bytes
    root = "" if rows.newest is None else rows.snapshot.location
    java = jvm.callbacks.made("TableFiles", leaf, jvm.spark, _key(rows), size, root)
    made = relation(jvm, java, _no_columns(), schema, {})
    _rehearse(jvm, made)
    return made


def _rehearse(jvm: Jvm, frame: Any) -> None:
    if jvm.plans_tables:
        return
    rule = jvm.callbacks.rule()
    rule.install(jvm.spark._jsparkSession)
    if rule.holdsTable(frame._jdf.select("*", jvm.array(jvm.get("java.lang.String"))).queryExecution().optimizedPlan()):
        raise TypeError("Spark's optimizer does not run rules that come later")
    jvm.plans_tables = True


def _no_columns() -> Any:
    from pyspark.sql.types import StructType

    return StructType([])


def _key(rows: TableRows) -> str:
    """Equal keys are equal plans to Spark, whose cache goes by them."""
    snapshot = rows.snapshot
    version = "newest" if rows.newest is not None else f"{snapshot.metadata.id} {snapshot.version}"
    return f"deltaic table {rows.place} {version} {' '.join(rows.columns)}"


def _changes(rows: TableRows, now: Snapshot) -> list[str]:
    """Why the files of a version cannot be read by the columns that a plan knows; columns that came since do no harm."""
    then = rows.snapshot
    if (
        then.metadata.schema_string == now.metadata.schema_string
        and then.table_schema.partition_columns == now.table_schema.partition_columns
    ):
        return []
    if then.table_schema.partition_columns != now.table_schema.partition_columns:
        return [f"it is partitioned by {now.table_schema.partition_columns}, and was by {then.table_schema.partition_columns}"]
    if then.table_schema.column_mapping != now.table_schema.column_mapping:
        return [f"its column mapping is {now.table_schema.column_mapping}, and was {then.table_schema.column_mapping}"]
    return _field_changes(then.schema, now.schema, "")


_IDENTITY = ("delta.columnMapping.physicalName", "delta.columnMapping.id")


def _field_changes(then: Schema | Sequence[Field], now: Schema | Sequence[Field], prefix: str) -> list[str]:
    known = {each.name.lower(): each for each in now}
    found = []
    for each in then:
        name, other = f"{prefix}{each.name}", known.get(each.name.lower())
        if other is None or any(each.metadata.get(key) != other.metadata.get(key) for key in _IDENTITY):
            found.append(f"{name} is missing")
        elif other.nullable and not each.nullable:
            found.append(f"{name} may be null")
        else:
            found += _type_changes(each.type, other.type, name)
    return found


def _type_changes(then: DataType, now: DataType, name: str) -> list[str]:
    if then == now:
        return []
    if isinstance(then, Struct) and isinstance(now, Struct):
        return _field_changes(then.fields, now.fields, f"{name}.")
    parts = [part for part in ("element", "key", "value") if hasattr(then, part)]
    if parts and type(then) is type(now):
        return [change for part in parts for change in _type_changes(getattr(then, part), getattr(now, part), f"{name}.{part}")]
    return [f"{name} has another type"]
