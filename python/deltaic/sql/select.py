"""Queries over Delta tables and over data that the caller passes. They are lazy: each conversion of the rows
runs the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaic.deferred import load
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.plan.nodes import Data, TableRead
from deltaic.planning.columns import check_has_columns
from deltaic.rows.rows import Rows, ScanReport
from deltaic.spark_sql.text_cache import TextCache
from deltaic.sql.names import Name, Tables, read_name
from deltaic.sql.positions import placed
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from deltaic import _core
    from deltaic.engine.duckdb.engine import LocalEngine, LocalRelation
    from deltaic.log.snapshot import Snapshot
    from deltaic.plan.nodes import Scan
    from deltaic.planning.planned import ScanPlan
    from deltaic.protocol.schema import Schema
    from deltaic.rows.query_report import QueryReport
    from deltaic.spark_sql.query.queries import TranslatedQuery
    from deltaic.spark_sql.query.tables import TableName
else:
    from deltaic.deferred import pyarrow as pa

_KEPT_CHARACTERS = 100_000
"""Maximum characters of all queries whose parsed trees and translations are cached."""
_PARSED: TextCache[_ParsedQuery] = TextCache(_KEPT_CHARACTERS)
_TRANSLATED: TextCache[TranslatedQuery] = TextCache(_KEPT_CHARACTERS)
"""Translations by text, time zone and schemas of the tables, for programs that repeat a query, such as
dashboards."""
_KEPT_FILES = 1000
"""Maximum number of files of a table whose scan is cached with its snapshot."""


def select(reader: Reader, tables: Tables) -> Rows:
    """SELECT | WITH | VALUES | FROM | TABLE | (query)"""
    return query(reader.rest("a query"), tables)


def query(text: str, tables: Tables) -> Rows:
    """Returns the rows of a query, not yet computed. Its tables are opened here, so it reads their current
    versions."""
    load(
        "deltaic.engine.duckdb.engine", "deltaic.spark_sql.query.queries", "deltaic.engine.duckdb.connection"
    )
    from deltaic.engine.duckdb.engine import LocalEngine
    from deltaic.spark_sql.query.queries import translate_query
    from deltaic.sql import first_rows

    parsed = _PARSED.get(text, lambda: _ParsedQuery.of(text))
    engine = LocalEngine().pinned()
    leaves: dict[str, Scan | Data] = {}
    schemas: dict[str, Schema] = {}
    scans: dict[str, tuple[str, Snapshot]] = {}
    for name, (table, alias) in parsed.tables.items():
        data = _data(tables, table)
        if isinstance(data, DeltaTable):
            snapshot = data._snapshot
            check_has_columns(snapshot.schema, snapshot.location)
            scans[name] = alias, snapshot
            schemas[name] = _of_query(snapshot, parsed)
            leaves[name] = _planned(snapshot, engine).scan(schemas[name].names, alias=name)
        else:
            leaves[name] = engine.source(data, name)
            schemas[name] = leaves[name].schema

    def translate() -> TranslatedQuery:
        try:
            return translate_query(parsed.tree.copy(), schemas, time_zone=engine.time_zone)
        except InvalidArgumentError:
            # the schemas have only some columns; the error must list all columns of the tables
            whole = {name: leaf.schema for name, leaf in leaves.items()}
            translate_query(parsed.tree.copy(), whole, time_zone=engine.time_zone)
            raise

    translated = _TRANSLATED.get(text, translate, (engine.time_zone, *schemas.values()))
    keep = {name: snapshot.keep for name, (_, snapshot) in scans.items()}
    relation = first_rows.relation(engine, parsed.tree, translated, leaves, keep)
    if len(scans) == len(leaves) == 1 and first_rows.is_count(parsed.tree):
        ((_, snapshot),) = scans.values()
        if (rows := snapshot.core.num_records) is not None:
            relation = first_rows.counted(relation, rows)
    reads = [TableRead(snapshot.location, snapshot.version) for _, snapshot in scans.values()]
    reads += [read for leaf in leaves.values() if isinstance(leaf, Data) for read in leaf.reads]
    return _QueryRows(engine, relation, scans, tuple(reads))


@dataclass(frozen=True)
class _ParsedQuery:
    """A parsed query.

    `tree`: the syntax tree, with a unique name for each mention of a table.
    `tables`: by these names, the name in the text and the alias.
    `mentioned`: names in lower case that include all columns that the query reads; None if it reads columns
        that it does not name (`SELECT *`).
    `computed`: names inside sums, products and casts."""

    tree: exp.Expr
    tables: Mapping[str, tuple[TableName, str]]
    mentioned: frozenset[str] | None
    computed: frozenset[str]

    @staticmethod
    def of(text: str) -> _ParsedQuery:
        from sqlglot import exp

        from deltaic.spark_sql.expression import parse_statement
        from deltaic.spark_sql.query.tables import bind, mentioned_names

        tree = parse_statement(text)
        names = bind(tree, lambda name, _: name)
        aliases = {node.name: node.alias for node in tree.find_all(exp.Table) if node.name in names}
        tables = {leaf: (name, aliases[leaf]) for leaf, name in names.items()}
        return _ParsedQuery(tree, tables, mentioned_names(tree), _computed_columns(tree))


class _QueryRows(Rows):
    """The rows of a query. `scans`: by the name of its leaf, alias and snapshot of each mention of a Delta
    table. `reads`: as for `Rows`."""

    def __init__(
        self,
        engine: LocalEngine,
        relation: LocalRelation,
        scans: Mapping[str, tuple[str, Snapshot]],
        reads: tuple[TableRead, ...],
    ) -> None:
        super().__init__(
            relation.schema,
            lambda: engine.to_arrow(relation),
            lambda: engine.to_table(relation),
            reads,
        )
        self._scans = scans

    def explain(self) -> QueryReport:
        from deltaic.engine.duckdb.engine import PLANS
        from deltaic.planning.opening import OPENED
        from deltaic.rows.query_report import QueryReport, steps

        opened: list[tuple[Scan, _core.ReadStream]] = []
        plans: list[dict[str, Any]] = []
        tokens = OPENED.set(opened), PLANS.set(plans)
        try:
            self.count()
        finally:
            OPENED.reset(tokens[0])
            PLANS.reset(tokens[1])
        reports: dict[str, ScanReport] = {}
        for name, (alias, snapshot) in self._scans.items():
            key = alias if alias not in reports else f"{alias} ({len(reports) + 1})"
            reports[key] = _report(snapshot, [each for each in opened if each[0].alias == name])
        return QueryReport.of(
            self.schema.names, "\n".join(line for plan in plans for line in steps(plan)) or "scan", reports
        )


def _report(snapshot: Snapshot, opened: Sequence[tuple[Scan, _core.ReadStream]]) -> ScanReport:
    """Makes the report of one mention of a table, which may have been opened several times."""
    sizes = {path: size for scan, _ in opened for path, size in zip(*_paths_and_sizes(scan), strict=True)}
    predicates = {scan.predicate.json: scan.predicate for scan, _ in opened if scan.predicate is not None}
    selections = [snapshot.core.files(snapshot.table_schema, predicate) for predicate in predicates.values()]
    # At most the smallest number of any scan counts as skipped by partition; all other skipped files count as
    # skipped by statistics.
    by_partition = (
        min((each.skipped_by_partition for each in selections), default=0)
        if len(opened) == len(selections)
        else 0
    )
    files = snapshot.core.file_count
    metrics = [stream.metrics for _, stream in opened]
    read: dict[str, Any] = {
        name: sum(each[name] for each in metrics)
        for name in ("row_groups", "row_groups_read", "bytes_read", "rows")
    }
    return ScanReport(
        columns=tuple(dict.fromkeys(name for scan, _ in opened for name in scan.columns)),
        pushed=" or ".join(predicates) or None,
        files=files,
        files_skipped_by_partition=by_partition,
        files_skipped_by_statistics=files - by_partition - len(sizes) if opened else 0,
        files_read=len(sizes),
        bytes=snapshot.core.size_in_bytes,
        bytes_of_files=sum(sizes.values()),
        **read,
    )


def _paths_and_sizes(scan: Scan) -> tuple[list[str], list[int]]:
    return scan.files["path"].to_pylist(), [size or 0 for size in scan.files["size"].to_pylist()]


def explain(reader: Reader, tables: Tables) -> Rows:
    """EXPLAIN [EXTENDED | FORMATTED | COST | CODEGEN] query; the plan is the same with each of these
    words."""
    reader.expect("EXPLAIN")
    for mode in ("EXTENDED", "FORMATTED", "COST", "CODEGEN"):
        if reader.accept(mode):
            break
    word = reader.tokens[reader.position].keyword
    if word not in ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "("):
        raise UnsupportedFeatureError(
            "EXPLAIN supports only queries", found=word, expected="EXPLAIN SELECT ..."
        )
    rows = query(reader.rest("a query"), tables)

    def explained() -> pa.Table:
        return pa.table({"plan": [str(rows.explain())]})

    return Rows.computed(explained, pa.schema([("plan", pa.string())]))


def renamed(rows: Rows, names: Sequence[str]) -> Rows:
    """Renames the columns of rows, by position."""
    return placed(rows, [field.with_(name=name) for field, name in zip(rows.schema, names, strict=True)])


def _computed_columns(tree: exp.Expr) -> frozenset[str]:
    """Returns the names inside sums, products and casts, in lower case. Limits of these columns can show that
    nothing overflows."""
    from sqlglot import exp

    kinds = (exp.Add, exp.Sub, exp.Mul, exp.Cast)
    return frozenset(
        column.name.lower() for node in tree.find_all(*kinds) for column in node.find_all(exp.Column)
    )


def _of_query(snapshot: Snapshot, query: _ParsedQuery) -> Schema:
    """Returns the columns of a table that a query reads. Those with which it computes have limits from the
    statistics of the table's files."""
    names = set(map(str.lower, snapshot.schema.names))
    read = None if query.mentioned is None else query.mentioned & names
    key = read, query.computed & names

    def narrowed() -> Schema:
        from deltaic.planning.column_limits import column_limits
        from deltaic.protocol.schema import Schema
        from deltaic.spark_sql.scope import LIMITS

        limits = {name: {LIMITS: ends} for name, ends in column_limits(snapshot, query.computed).items()}
        fields = [field for field in snapshot.schema if read is None or field.name.lower() in read] or list(
            snapshot.schema
        )[:1]
        return Schema(
            field.with_(metadata={**field.metadata, **limits.get(field.name, {})}) for field in fields
        )

    return snapshot.keep(("columns of a query", *key), narrowed)


def _planned(snapshot: Snapshot, engine: LocalEngine) -> ScanPlan:
    """Plans the scan of a table without a condition. If its files are few, the plan is cached with the
    snapshot."""
    from deltaic.planning.planned import plan

    if snapshot.core.file_count > _KEPT_FILES:
        return plan(snapshot, engine, None)
    return snapshot.keep("whole scan", lambda: plan(snapshot, engine, None))


def leaf_of(tables: Tables, name: TableName, leaf_name: str, engine: Any) -> Scan | Data:
    """Returns the rows of a table that a statement names, as a leaf of a plan."""
    return _leaf(_data(tables, name), leaf_name, engine)


def _data(tables: Tables, name: TableName) -> Any:
    if (changes := name.changes) is None:
        return tables.read(Name(name.parts, name.version, name.timestamp))
    (text,) = name.parts
    if changes.by_path:
        named = Name(("delta", text))
    else:
        reader = Reader(text)
        named = read_name(reader)
        reader.end()
    table = tables.table(named)
    start, end = (
        tables.end_of_range(each) if isinstance(each, str) else each for each in (changes.start, changes.end)
    )
    return table.changes(
        start if isinstance(start, int) else None,
        end if isinstance(end, int) else None,
        starting_timestamp=None if isinstance(start, int) else start,
        ending_timestamp=None if isinstance(end, int) else end,
    )


def _leaf(data: Any, name: str, engine: Any) -> Scan | Data:
    if isinstance(data, DeltaTable):
        from deltaic.planning.planned import plan as plan_scan

        snapshot = data._snapshot
        check_has_columns(snapshot.schema, snapshot.location)
        return plan_scan(snapshot, engine, None).scan(snapshot.schema.names, alias=name)
    leaf: Data = engine.source(data, name)
    return leaf
