"""Registers scans of a table with DuckDB, which pushes the columns and filters of a query into the scan.

`duckdb._sources` is not public. Without it a scan is registered as a `pyarrow.dataset.Dataset`
(`registering.register`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from duckdb._sources import ArrowScanSource
from duckdb._sources.nodes import Binary, Col, In, Lit, Node, Postfix, Unary

from deltaic import _core
from deltaic.engine.duckdb.registering import Keep, compute
from deltaic.errors import DeltaError
from deltaic.plan.nodes import Scan
from deltaic.planning.literals import NotExpressible, instant
from deltaic.planning.opening import (
    PLAIN,
    SMALL_BYTES,
    Encoding,
    bytes_of_files,
    narrowed_scan,
    scan_arrow_schema,
    with_predicate,
)
from deltaic.protocol.schema import DataType, Struct, decimal_parts

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH = datetime(1970, 1, 1)
# Maximum depth of a predicate tree that is pushed into a scan; DuckDB evaluates deeper ones
_MOST_NESTED = 50


class ScanSource(ArrowScanSource):
    """The rows of `scan`. `read` opens a scan of some of its columns in an encoding
    (`planning.opening.open_scan`). `retyped` gives the schema that a stream of this schema is read under, of
    the same layout. `rows`: the estimated number of rows.
    `keep`: as `Snapshot.keep`, for results that the next query of the scan uses again."""

    schema_is_stable = True

    def __init__(
        self,
        scan: Scan,
        read: Callable[[Scan, Encoding], _core.ReadStream],
        retyped: Callable[[pa.Schema], pa.Schema] | None = None,
        *,
        rows: int | None = None,
        keep: Keep = compute,
    ) -> None:
        super().__init__(scan)
        self._scan, self._read, self._retyped, self._rows, self._keep = scan, read, retyped, rows, keep

        def columns() -> tuple[Encoding, pa.Schema]:
            encoding = _encoding(scan)
            return encoding, scan_arrow_schema(scan, encoding=encoding)

        self._encoding, schema = keep(("columns of a scan", scan.columns), columns)
        self._schema = schema if retyped is None else retyped(schema)
        self._predicates: dict[str, _core.Predicate] = {}
        self._kept: tuple[_core.Predicate, ...] | None = None
        self._required: list[_core.Predicate] = []

    def rows(self) -> int | None:
        return self._rows

    def keep_filters(self, learned: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Makes the scan apply the filters that DuckDB has offered so far, and accept no further ones. DuckDB
        then keeps its own filter above the scan, so its order of joins takes into account that fewer rows are
        left. Call this only for a source that the query reads in one place: the filters of two places would
        both be applied to each. Returns the filters. `learned`: the result of an earlier call, for the same
        query and the same columns."""
        if learned is None:
            learned = tuple(predicate.json for predicate in self._predicates.values())

        def filters() -> tuple[_core.Predicate, ...]:
            return tuple(_core.Predicate.from_json(text, self._scan.table_schema) for text in learned)

        self._kept = self._keep(("filters", learned), filters)
        return learned

    @property
    def is_filtered(self) -> bool:
        """True if the scan applies filters in every place that reads it."""
        return bool(self._kept or self._required)

    def require(self, predicate: _core.Predicate) -> None:
        """Makes the scan leave out rows for which this predicate is not true."""
        self._required.append(predicate)

    @property
    def table_schema(self) -> _core.TableSchema:
        return self._scan.table_schema

    def type_of(self, column: str) -> DataType | None:
        return item.type if (item := self._scan.schema.get(column)) is not None else None

    def among_keys(self, column: str, target: ScanSource, name: str, most: int) -> _core.Predicate | None:
        """Returns the predicate that column `name` of the target is one of the values of `column` in the rows
        that pass the filters (`Predicate.among`). None if there are more than half as many values as rows."""

        def predicate() -> _core.Predicate | None:
            import pyarrow as pa
            import pyarrow.compute as pc

            scan = with_predicate(self._scan, _all([*(self._kept or ()), *self._required]))
            rows = pa.RecordBatchReader.from_stream(
                self._read(narrowed_scan(scan, [column]), PLAIN)
            ).read_all()
            keys = pc.drop_null(pc.unique(rows.column(0)))
            if 2 * len(keys) > (self._rows or 0):
                return None
            return _core.Predicate.among([name], keys, target.table_schema, most=most)

        # A filter is the same object in each run of a query.
        key = "keys", column, self._kept, tuple(self._required), target.table_schema, name, most
        found: _core.Predicate | None = self._keep(key, predicate)
        return found

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def accepts(self, predicate: Node) -> bool:
        """True if `_core` evaluates the predicate as DuckDB does, for every row."""
        if self._kept is not None:
            return False
        try:
            text = json.dumps(_core_json(predicate, self._scan, 0))
            self._predicates[predicate.fragment()] = _core.Predicate.from_json(text, self._scan.table_schema)
        except (NotExpressible, DeltaError):
            return False
        return True

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Node]) -> tuple[object, bool]:
        scan = self._scan
        chosen: Sequence[_core.Predicate] = (
            [self._predicates[each.fragment()] for each in filters] if self._kept is None else self._kept
        )
        if predicates := [*chosen, *self._required]:
            scan = with_predicate(scan, _all(predicates))
        names = (
            [self._schema.names[index] for index in columns] if columns is not None else self._schema.names
        )
        scan = narrowed_scan(scan, names)
        rows = self._read(scan, self._encoding)
        if self._retyped is None and names == scan_arrow_schema(scan).names:
            return rows.__arrow_c_stream__(), True
        import pyarrow as pa

        from deltaic.engine.dataset import reordered, viewed

        reader = pa.RecordBatchReader.from_stream(rows)
        if self._retyped is not None:
            reader = viewed(reader, self._retyped(reader.schema))
        return (
            reader if reader.schema.names == names else reordered(reader, names)
        ).__arrow_c_stream__(), True


def _all(predicates: Sequence[_core.Predicate]) -> _core.Predicate:
    first, *others = predicates
    for other in others:
        first = first & other
    return first


def _encoding(scan: Scan) -> Encoding:
    """Returns the encoding in which the scan's columns are read: decimals of few digits as integers, texts as
    dictionaries if the files store them as dictionaries, all other texts as views. DuckDB computes more
    slowly on a dictionary that has a value for each row."""
    decimals, texts = list[str](), list[str]()
    for name in scan.columns:
        data_type = item.type if (item := scan.schema.get(name)) is not None else None
        if data_type == "string":
            texts.append(name)
        elif isinstance(data_type, str) and decimal_parts(data_type) is not None:
            decimals.append(name)
    keys = list[str]()
    if texts and bytes_of_files(scan) > SMALL_BYTES and scan.store.location.startswith("/"):
        keys = _core.dictionary_columns(scan.store, scan.table_schema, scan.files, texts)
    return Encoding((*decimals, *keys), tuple(name for name in texts if name not in keys))


# --- filters


def _core_json(node: Node, scan: Scan, depth: int) -> dict[str, Any]:
    """Returns the filter as JSON of `_core.Predicate`. Raises NotExpressible if the predicate tree has no
    such form."""
    if depth > _MOST_NESTED:
        raise NotExpressible
    match node:
        case Binary(op="AND" | "OR" as op, left=left, right=right):
            return {"op": op.lower(), "args": [_core_json(side, scan, depth + 1) for side in (left, right)]}
        case Unary(op="NOT", operand=operand):
            return {"op": "not", "arg": _core_json(operand, scan, depth + 1)}
        case Postfix(op="IS NULL", operand=Col() as column):
            return {"op": "is_null", "column": _path(column, scan)}
        case Postfix(op="IS NOT NULL", operand=Col() as column):
            return {"op": "not", "arg": {"op": "is_null", "column": _path(column, scan)}}
        case Binary(
            op="=" | "!=" | "<" | "<=" | ">" | ">=" as op, left=Col() as column, right=Lit() as literal
        ):
            return {"op": op, "column": _path(column, scan), "literal": _text(literal)}
        case In(operand=Col() as column, values=values):
            literals = [_text(value) for value in values if isinstance(value, Lit)]
            if len(literals) < len(values):
                raise NotExpressible
            return {"op": "in", "column": _path(column, scan), "literals": literals}
    raise NotExpressible


def _path(column: Col, scan: Scan) -> list[str]:
    item = scan.schema.get(column.parts[0])
    if item is None:
        raise NotExpressible  # a hidden column
    data_type = item.type
    for part in column.parts[1:]:
        inside = (
            {child.name: child.type for child in data_type.fields} if isinstance(data_type, Struct) else {}
        )
        if part not in inside:
            raise NotExpressible
        data_type = inside[part]
    return list(column.parts)


def _text(literal: Lit) -> str:
    """Returns the literal as text, as PROTOCOL.md's "Partition Value Serialization" of its column's type."""
    value: Any = literal.value
    if literal.type == "VARCHAR" and isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if literal.type == "TIMESTAMP WITH TIME ZONE" and isinstance(value, int):
        try:
            return instant(_EPOCH + timedelta(microseconds=value))
        except OverflowError:
            raise NotExpressible from None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if literal.type == "TIMESTAMP" and isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="microseconds")
    if literal.type == "DATE" and isinstance(value, date):
        return value.isoformat()
    raise NotExpressible
