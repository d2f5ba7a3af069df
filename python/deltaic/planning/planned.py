"""Plans a read or a change of a snapshot: divides the condition between files, partitions and the engine, and
selects the files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from deltaic import _core
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    InvalidTypeError,
    ProtocolError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    shown,
)
from deltaic.plan.nodes import STORED_ALIAS, UNKNOWN, Scan
from deltaic.planning import simple
from deltaic.planning.opening import numbered
from deltaic.protocol.schema import Schema, Struct, type_name
from deltaic.spark_sql.char_types import has_char

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot
    from deltaic.plan.expression import Expression
    from deltaic.plan.nodes import TableRead

NON_DETERMINISTIC = (
    *("monotonically_increasing_id", "rand", "randn", "random", "randstr"),
    *("shuffle", "spark_partition_id", "uniform", "uuid"),
)
"""Functions with another value at each call."""

READ_BUFFER_BYTES = 16 << 20
"""Maximum bytes of pieces of files that a command keeps in memory, so that it does not request them again."""


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """A condition over one snapshot, divided into pushed and residual predicates, with the files that may
    contain a matching row.

    `predicate`: the part that is pushed in any version of the table. A transaction records it as what it has
    read.
    `among`: the partitions of this version that match (`partition_functions.py`). A later version may have
        further ones, so this part is not recorded.
    `residual`: the conjuncts that the engine evaluates; they name columns by `alias`.
    `residual_columns`: the columns that `residual` reads, in the order of the schema.
    `skipping`: False to read all files.
    `changes`: True for the plan of a command that changes rows, which reads the same files several times.
    `condition`: the whole condition, resolved if that took the parser of Spark's whole grammar."""

    snapshot: Snapshot
    predicate: _core.Predicate | None = None
    among: _core.Predicate | None = None
    residual: tuple[Expression, ...] = ()
    residual_columns: tuple[str, ...] = ()
    skipping: bool = True
    alias: str = "t"
    changes: bool = False
    condition: str | Expression | None = None

    @cached_property
    def pushed(self) -> _core.Predicate | None:
        """The pushed predicate for this version: `predicate` and `among`."""
        if self.predicate is None or self.among is None:
            return self.predicate or self.among
        return self.predicate & self.among

    @cached_property
    def selection(self) -> _core.FileSelection:
        selection = self.snapshot.core.files(self.snapshot.table_schema, self.pushed, skipping=self.skipping)
        if (path := selection.live_twice) is not None:
            raise ProtocolError(
                "a file is live twice: each of its rows would be read twice",
                where=path[:1000],
                found="two add actions for one file, with different deletion vectors",
                expected="one, as a commit that adds a file again removes it with its former vector",
            )
        return selection

    @property
    def reads_itself(self) -> bool:
        """True if a subquery of the condition reads the table."""
        return reads_table(self.residual, self.snapshot)

    @property
    def partition_only(self) -> bool:
        """True if partition values decide the whole condition, so that all rows of a selected file match."""
        return not self.residual and (self.pushed is None or self.pushed.is_partition_only())

    def scan(self, columns: Sequence[str], *, alias: str | None = None, row_ids: bool = False) -> Scan:
        """Returns the scan of these columns. `alias`: None for the alias of the condition."""
        leaf = self._leaf(columns, self._numbered if row_ids else self._adds)
        return replace(leaf, alias=alias or self.alias, row_ids=row_ids)

    @cached_property
    def _numbered(self) -> pa.Table:
        return numbered(self._adds)

    @cached_property
    def _adds(self) -> pa.Table:
        return self.selection.adds

    def scan_later(self, columns: Sequence[str], most: int, most_marked: int, most_vectors: int) -> Scan:
        """Like `scan`, but defers the selection of files to query planning if the table has more than `most`
        files, or more than `most_marked` files with deletion vectors. If the vectors exceed `most_vectors`
        bytes in total, files are selected immediately."""
        core = self.snapshot.core
        bound = most_marked if core.file_count > most_marked and core.with_vectors[0] > most_marked else most
        if not self.skipping or core.file_count <= bound or (self.pushed is not None and self._left <= bound):
            return self.scan(columns)
        if core.with_vectors[2] > most_vectors:
            return self.scan(columns)
        return replace(self._leaf(columns, _core.empty_adds()), later=PlannedFiles(self))

    def _leaf(self, columns: Sequence[str], files: pa.Table) -> Scan:
        return Scan(
            store=self._store,
            schema=self.snapshot.schema,
            table_schema=self.snapshot.table_schema,
            files=files,
            columns=tuple(columns),
            where=self.residual,
            predicate=self.pushed,
        )

    @cached_property
    def _store(self) -> _core.Store:
        store = self.snapshot.store
        return store.buffered(READ_BUFFER_BYTES) if self.changes and store.is_remote else store

    @property
    def _left(self) -> int:
        """Number of selected files."""
        selection = self.selection
        return selection.total_files - selection.skipped_by_partition - selection.skipped_by_statistics


class PlannedFiles:
    """The DeferredFiles of a ScanPlan: the engine selects them when it plans a query, with the query's
    filters."""

    def __init__(self, planned: ScanPlan) -> None:
        self._planned = replace(planned)  # a copy without the cached selection
        core, pushed = planned.snapshot.core, planned.pushed
        if pushed is None:
            whole, marked = (core.file_count, core.size_in_bytes), core.with_vectors[:2]
        else:
            adds = planned.selection.adds
            whole, marked = _weight(adds), _weight(adds.filter(adds["deletionVector"].is_valid()))
        self.marked = marked
        self.plain = whole[0] - marked[0], whole[1] - marked[1]

    @property
    def key(self) -> str:
        snapshot, pushed = self._planned.snapshot, self._planned.pushed
        of_version = (
            snapshot.location,
            snapshot.metadata.id,
            snapshot.version,
            snapshot.core.file_count,
            snapshot.core.size_in_bytes,
        )
        return " ".join(map(str, (*of_version, "" if pushed is None else pushed.json)))

    def files(self, predicate: _core.Predicate | None) -> pa.Table:
        known = self._planned.predicate
        both = known if predicate is None else predicate if known is None else known & predicate
        return replace(self._planned, predicate=both).selection.adds


def _weight(adds: pa.Table) -> tuple[int, int]:
    import pyarrow.compute as pc

    return adds.num_rows, pc.sum(adds["size"]).as_py() or 0


def plan(
    snapshot: Snapshot,
    engine: Engine,
    where: str | None,
    *,
    alias: str | None = None,
    skipping: bool = True,
    changes: bool = False,
    as_stored: bool = False,
) -> ScanPlan:
    """Resolves the condition `where` against the table and divides it.

    `alias`: the table's name in the condition; None for `own_alias`.
    `changes`: True for a command that changes rows. It evaluates the condition more than once, so the
        condition must be deterministic; it may contain subqueries.
    `as_stored`: True to compare CHAR(n) without padding on every engine.
    A text that is no condition over the table's columns is an InvalidArgumentError."""
    alias = own_alias(snapshot.schema) if alias is None else alias
    if where is None:
        return ScanPlan(snapshot, skipping=skipping, alias=alias, changes=changes)
    if (
        engine.plain_sql
        and (conjuncts := simple.read(where, snapshot.schema, alias, engine.time_zone)) is not None
    ):
        predicate = simple.predicate_of(conjuncts, snapshot.schema, snapshot.table_schema)
        return ScanPlan(snapshot, predicate, skipping=skipping, alias=alias, changes=changes, condition=where)
    from deltaic.planning.partition_functions import partition_predicate
    from deltaic.planning.pushdown import push

    resolved = resolve_condition(engine, where, snapshot.schema, alias, queries=changes)
    if changes:
        check_deterministic(resolved, "a condition by which rows change")
    pads = engine.pads_char and not as_stored
    pushed = push(
        resolved.conjuncts,
        snapshot.schema,
        snapshot.table_schema,
        alias,
        time_zone=engine.time_zone,
        pads_char=pads,
    )
    among, left = None, []
    for conjunct in pushed.residual:
        by_partition = skipping and not conjunct.sources and not _reads_char(conjunct, snapshot.schema, pads)
        exact = (
            partition_predicate(snapshot, engine, conjunct, pushed.predicate, alias) if by_partition else None
        )
        if exact is not None:
            among = exact if among is None else among & exact
        else:
            left.append(conjunct)
    columns = column_names(left, snapshot.schema, alias)
    return ScanPlan(
        snapshot, pushed.predicate, among, tuple(left), columns, skipping, alias, changes, resolved
    )


def own_alias(schema: Schema) -> str:
    """Returns the alias of a table that a caller did not name: `t`, unless a struct has this name, because
    `t.v` would be the column v then, and not the field v of the column t."""
    return (
        STORED_ALIAS
        if any(item.name.lower() == "t" and isinstance(item.type, Struct) for item in schema)
        else "t"
    )


def _reads_char(resolved: Expression, schema: Schema, pads: bool) -> bool:
    """True if an expression reads CHAR(n) columns that the engine pads, so stored values are not compared."""
    return pads and any(has_char(schema.field(path[0])) for _, path in resolved.columns)


def reads_table(expressions: Iterable[Expression], snapshot: Snapshot) -> bool:
    """True if a subquery of the expressions reads the table, or tables that are not known. Then any
    concurrent change of it is a conflict."""
    leaves = [leaf for each in expressions for leaf in each.sources.values()]
    reads = any(
        leaf is UNKNOWN or (isinstance(leaf, Scan) and leaf.store.location == snapshot.store.location)
        for leaf in leaves
    )
    if reads and snapshot.is_staged:
        raise UnsupportedFeatureError(
            "a subquery over the table that is changed does not see what the transaction staged before",
            where=snapshot.location,
            expected="no subquery over this table in a change that follows another one",
        )
    return reads


def own_reads(reads: Iterable[TableRead], snapshot: Snapshot) -> list[_core.Predicate | None]:
    """Selects the reads of the table itself at the version from which a transaction starts. Returns the
    predicate of each, or None for one of the whole table. Rows of a former version do not depend on what
    happens to the table."""
    return [
        read.predicate
        for read in reads
        if read.location.rstrip("/") == snapshot.location.rstrip("/")
        and read.version in (None, snapshot.version)
    ]


def resolve_condition(
    engine: Engine, text: str, schema: Schema, alias: str = "t", *, queries: bool = False
) -> Expression:
    if not isinstance(text, str):
        raise InvalidTypeError(
            "a condition must be a string in Spark's SQL dialect",
            found=shown(text),
            expected='text, like "id = 1"',
        )
    try:
        resolved = engine.resolve(text, {alias: schema}, queries=queries)
    except DeltaError as error:
        error.with_values(predicate=text)
        raise
    if resolved.type != "boolean" and (resolved.type != "void" or not engine.is_embedded):
        found = type_name(resolved.type)
        raise SchemaMismatchError("a condition must be a boolean", where=repr(text), found=found)
    return resolved


def check_deterministic(resolved: Expression, what: str) -> None:
    """Raises InvalidArgumentError for an expression such as `rand() < 0.5`, whose value differs between
    evaluations. `what`: names the expression in the message."""
    if not resolved.deterministic:
        raise InvalidArgumentError(
            f"[INVALID_NON_DETERMINISTIC_EXPRESSIONS] {what} must be deterministic",
            found=repr(resolved.text[:200]),
        )


def column_names(resolved: Iterable[Expression], schema: Schema, alias: str = "t") -> tuple[str, ...]:
    """Returns the top-level columns that expressions read of the relation `alias`, in the order of
    `schema`."""
    read = {path[0] for each in resolved for of, path in each.columns if of == alias}
    return tuple(name for name in schema.names if name in read)


def check_of_partitions(engine: Engine, text: str, snapshot: Snapshot, what: str) -> None:
    """Raises InvalidArgumentError for a condition that reads other columns than partition columns, and
    UnsupportedFeatureError for one with a subquery. `what`: names the condition in the message."""
    known = tuple(snapshot.metadata.partition_columns)
    alias = own_alias(snapshot.schema)
    try:
        resolved = resolve_condition(engine, text, snapshot.schema, alias)
    except UnsupportedFeatureError as error:
        if "a subquery" in error.message:
            raise subquery_of_partitions(text) from None
        raise
    column = next(
        (name for name in column_names([resolved], snapshot.schema, alias) if name not in known), None
    )
    if column is not None:
        raise not_of_partitions(text, column, known, what)


def check_whole_partitions(engine: Engine, text: str, snapshot: Snapshot) -> None:
    """Raises InvalidArgumentError for a condition of a write with dataChange=false that reads other columns
    than partition columns: some rows of a file would be replaced."""
    known, alias = set(snapshot.metadata.partition_columns), own_alias(snapshot.schema)
    resolved = resolve_condition(engine, text, snapshot.schema, alias)
    filters = [
        engine.parsed_text(each.text)
        for each in resolved.conjuncts
        if not known.issuperset(column_names([each], snapshot.schema, alias))
    ]
    if filters:
        raise InvalidArgumentError(
            "[DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET] a write with dataChange=false replaces whole"
            " partitions",
            where="the condition of the overwrite",
            found=",".join(filters),
            expected="partition columns only",
        )


def not_of_partitions(
    text: str | None, column: str | None, known: tuple[str, ...], what: str
) -> InvalidArgumentError:
    """Returns the error of a condition that may read the partition columns `known` only. `column`: another
    column that it reads."""
    message = f"{what} is a condition on partition columns"
    if column is not None:  # in the words of delta-spark
        message = (
            f"Predicate references non-partition column '{column}'. Only the partition columns may be"
            f" referenced: [{', '.join(known)}]"
        )
    return InvalidArgumentError(message, found=repr(text)).with_values(columns=known, column=column)


def subquery_of_partitions(text: str | None) -> UnsupportedFeatureError:
    return UnsupportedFeatureError("the condition on partition columns has a subquery", found=repr(text))


def live_rows(planned: ScanPlan) -> int | None:
    """Counts the rows of the selected files from metadata, for a condition on partition values. None if the
    statistics of a file lack the number of rows."""
    snapshot = planned.snapshot
    if planned.pushed is None:
        return snapshot.core.num_records
    import pyarrow.compute as pc

    listing = snapshot.core.listing(snapshot.table_schema, planned.pushed, statistics_columns=[]).to_table()
    if listing["num_records"].null_count:
        return None
    deleted = pc.sum(pc.struct_field(listing["deletion_vector"], "cardinality")).as_py() or 0
    return int(pc.sum(listing["num_records"]).as_py() or 0) - int(deleted)
