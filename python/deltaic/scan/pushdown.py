"""From a condition in Spark SQL to what `_core`'s predicate tree can say.

Each conjunct is looked at alone. It is *exact* when the tree's predicate is true for just the rows for which Spark's is: then nothing is
left to evaluate. It may also give a *weaker* predicate, true for at least those rows: good for skipping, and the engine evaluates the text.
Everything the tree cannot say with the literal's exact value in the column's own type stays with the engine.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, TypeAlias

from sqlglot import exp

from deltaic import _core
from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import DataType, Schema, Struct, decimal_parts
from deltaic.relation.parsing import parse
from deltaic.scan.bounds import bounds, function_of, instant
from deltaic.scan.generated import Generated

Json: TypeAlias = dict[str, Any]

INTEGERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_COMPARISONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("=", "="),
    exp.NEQ: ("!=", "!="),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
# Casts to these types keep values of those, and their order.
_WIDER: dict[Any, tuple[str, ...]] = {
    exp.DType.SMALLINT: ("byte", "short"),
    exp.DType.INT: ("byte", "short", "integer"),
    exp.DType.BIGINT: ("byte", "short", "integer", "long"),
}
_FLOAT_MAX = 3.4028234663852886e38
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(Z|[+-]\d{2}:\d{2})?)?")


@dataclass(frozen=True)
class Pushed:
    """`predicate`: for the scan, None when nothing could be said. `residual`: the conjuncts' text that the engine must still evaluate."""

    predicate: _core.Predicate | None
    residual: tuple[str, ...]


def push(
    conjuncts: Sequence[str],
    schema: Schema,
    table_schema: _core.TableSchema,
    alias: str = "t",
    *,
    others: Sequence[str] = (),
    time_zone: str = "UTC",
) -> Pushed:
    """What of these conjuncts the scan of a table with `schema`, known as `alias`, can do. `others`: aliases of other relations in sight.
    `time_zone`: of timestamps written without one.

    What the tree can say is deterministic: a conjunct that calls a function stays with the engine."""
    said: list[Json] = []
    residual: list[str] = []
    for text in conjuncts:
        node, exact = _Reader(schema, alias, others, time_zone).read(text)
        if node is not None:
            said.append(node)
        if not exact:
            residual.append(text)
    if (derived := Generated.of(schema, table_schema.partition_columns).derive(said)) is not None:
        said.append(derived)
    predicate = None
    if said:
        predicate = _core.Predicate.from_json(json.dumps(said[0] if len(said) == 1 else {"op": "and", "args": said}), table_schema)
    return Pushed(predicate, tuple(residual))


class _NotSayable(Exception):
    """This node has no form in the predicate tree."""


class _Reader:
    def __init__(self, schema: Schema, alias: str, others: Sequence[str], time_zone: str) -> None:
        self.schema, self.alias, self.others = schema, alias.lower(), {name.lower() for name in others}
        self.utc = time_zone.upper() in ("UTC", "ETC/UTC", "Z", "GMT")

    def read(self, text: str) -> tuple[Json | None, bool]:
        # A backslash in a string literal is read in more than one way; the engine's own reading of the text holds.
        if "\\" in text:
            return None, False
        try:
            tree = parse(text)
        except InvalidArgumentError:  # resolved, so a text that only another engine than the embedded one can read
            return None, False
        try:
            return self.node(tree), True
        except _NotSayable:
            return self.weaker(tree), False

    def weaker(self, node: exp.Expr) -> Json | None:
        """A predicate that is true wherever `node` is; None when that would be no restriction."""
        if isinstance(node, exp.Paren):
            return self.weaker(node.this)
        if isinstance(node, exp.And):
            parts = [part for side in (node.left, node.right) if (part := self.weaker(side)) is not None]
            return parts[0] if len(parts) == 1 else {"op": "and", "args": parts} if parts else None
        if isinstance(node, exp.Or):
            sides = [self.weaker(side) for side in (node.left, node.right)]
            return None if None in sides else {"op": "or", "args": sides}
        try:
            return self.node(node)
        except _NotSayable:
            return self.prefixed(node) if isinstance(node, exp.Like) and not _extra(node) else self.bounded(node)

    def prefixed(self, node: exp.Like) -> Json | None:
        """What a LIKE says by the text before its first wildcard."""
        if not isinstance(node.this, exp.Column) or not _is_text(node.expression):
            return None
        try:
            path, data_type = self.column(node.this)
        except _NotSayable:
            return None
        prefix = re.split("[%_]", str(node.expression.this))[0]
        return {"op": "starts_with", "column": list(path), "literal": prefix} if prefix and data_type == "string" else None

    def bounded(self, node: exp.Expr) -> Json | None:
        """What a comparison of a function that keeps its argument's order says of the argument."""
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            sides = [exp.GTE(this=node.this, expression=node.args["low"]), exp.LTE(this=node.this, expression=node.args["high"])]
            parts = [part for side in sides if (part := self.bounded(side)) is not None]
            return {"op": "and", "args": parts} if parts else None
        if type(node) not in _COMPARISONS:
            return None
        for op, call, literal in zip(_COMPARISONS[type(node)], (node.this, node.expression), (node.expression, node.this), strict=True):
            try:
                if type(call) is exp.Cast and call.to.this in _WIDER and isinstance(call.this, exp.Column):
                    path, data_type = self.column(call.this)
                    if data_type in _WIDER[call.to.this]:
                        return self.compared(op, path, data_type, literal)
                elif (found := function_of(call)) is not None:
                    path, data_type = self.column(found[1])
                    return bounds(op, found[0], path, data_type, partial(_year, literal), partial(_day, literal), utc=self.utc)
            except _NotSayable:
                continue
        return None

    def node(self, node: exp.Expr) -> Json:
        if isinstance(node, exp.Paren):
            return self.node(node.this)
        if isinstance(node, (exp.And, exp.Or)):
            return {"op": "and" if isinstance(node, exp.And) else "or", "args": [self.node(node.left), self.node(node.right)]}
        if isinstance(node, exp.Not):
            return {"op": "not", "arg": self.node(node.this)}
        if isinstance(node, exp.Boolean):
            return {"op": "true" if node.this else "false"}
        if isinstance(node, exp.Null):
            return {"op": "null"}
        if isinstance(node, exp.Column):
            path, data_type = self.column(node)
            if data_type != "boolean":
                raise _NotSayable
            return _compare("=", path, "true")
        return self.test(node)

    def test(self, node: exp.Expr) -> Json:
        if type(node) in _COMPARISONS:
            return self.comparison(node)
        if isinstance(node, exp.NullSafeEQ):
            return self.null_safe(node)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return {"op": "is_null", "column": list(self.column(node.this)[0])}
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            path, data_type = self.column(node.this)
            bounds = [self.compared(op, path, data_type, node.args[key]) for op, key in ((">=", "low"), ("<=", "high"))]
            return {"op": "and", "args": bounds}
        if isinstance(node, exp.In) and node.expressions and not set(node.args) - {"this", "expressions"}:
            return self.membership(node)
        if isinstance(node, exp.Like) and not _extra(node):
            return self.like(node)
        if isinstance(node, exp.Anonymous) and node.name.lower() == "startswith" and len(node.expressions) == 2:
            path, data_type = self.column(node.expressions[0])
            if data_type != "string" or not _is_text(node.expressions[1]):
                raise _NotSayable
            return {"op": "starts_with", "column": list(path), "literal": str(node.expressions[1].this)}
        raise _NotSayable

    def comparison(self, node: exp.Expr) -> Json:
        straight, mirrored = _COMPARISONS[type(node)]
        if isinstance(node.this, exp.Column):
            return self.compared(straight, *self.column(node.this), node.expression)
        return self.compared(mirrored, *self.column(node.expression), node.this)

    def compared(self, op: str, path: Sequence[str], data_type: DataType, literal: exp.Expr) -> Json:
        if isinstance(literal, exp.Null):
            return {"op": "null"}
        return _compare(op, path, self.literal(literal, data_type))

    def null_safe(self, node: exp.Expr) -> Json:
        column, literal = (node.this, node.expression) if isinstance(node.this, exp.Column) else (node.expression, node.this)
        path, data_type = self.column(column)
        null = {"op": "is_null", "column": list(path)}
        if isinstance(literal, exp.Null):
            return null
        return {"op": "and", "args": [{"op": "not", "arg": null}, _compare("=", path, self.literal(literal, data_type))]}

    def membership(self, node: exp.In) -> Json:
        path, data_type = self.column(node.this)
        values = [item for item in node.expressions if not isinstance(item, exp.Null)]
        if data_type == "string" and not all(_is_text(item) for item in values):
            raise _NotSayable  # one number in the list and Spark compares all of it as numbers
        found: Json = {"op": "in", "column": list(path), "literals": [self.literal(item, data_type) for item in values]}
        return found if len(values) == len(node.expressions) else {"op": "or", "args": [found, {"op": "null"}]}

    def like(self, node: exp.Like) -> Json:
        path, data_type = self.column(node.this)
        if data_type != "string" or not _is_text(node.expression):
            raise _NotSayable
        pattern = str(node.expression.this)
        prefix = pattern.rstrip("%")
        if "%" in prefix or "_" in prefix:
            raise _NotSayable
        if prefix == pattern:
            return _compare("=", path, pattern)
        return {"op": "starts_with", "column": list(path), "literal": prefix}

    def column(self, node: exp.Expr) -> tuple[tuple[str, ...], DataType]:
        """The path of a column in the table's own case, and its type. Arrays and maps are not looked into."""
        if not isinstance(node, exp.Column):
            raise _NotSayable
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and parts[0].lower() in self.others:
            raise _NotSayable
        found = self._find(parts[1:]) if parts[0].lower() == self.alias else None  # Spark looks for the alias first
        found = found or self._find(parts)
        if found is None:
            raise _NotSayable
        return found

    def _find(self, names: Sequence[str]) -> tuple[tuple[str, ...], DataType] | None:
        field = self.schema.get(names[0]) if names else None
        if field is None:
            return None
        path, data_type = [field.name], field.type
        for name in names[1:]:
            child = (
                next((item for item in data_type.fields if item.name.lower() == name.lower()), None)
                if isinstance(data_type, Struct)
                else None
            )
            if child is None:
                return None
            path.append(child.name)
            data_type = child.type
        return tuple(path), data_type

    def literal(self, node: exp.Expr, data_type: DataType) -> str:
        """The literal as PROTOCOL.md's "Partition Value Serialization" of the column's type, only where Spark's comparison of column and
        literal is the comparison of these two values."""
        if not isinstance(data_type, str):
            raise _NotSayable
        if data_type in INTEGERS:
            return str(_integer(_number(node), INTEGERS[data_type]))
        if data_type in ("double", "float"):
            return _floating(_number(node), data_type)
        if parts := decimal_parts(data_type):
            return _decimal(_number(node), *parts)
        if data_type == "boolean" and isinstance(node, exp.Boolean):
            return "true" if node.this else "false"
        if data_type == "string" and _is_text(node):
            return str(node.this)
        if data_type == "date":
            return _date(_dated(node, {exp.DType.DATE, exp.DType.DATE32}))
        if data_type == "timestamp":
            return self._timestamp(_dated(node, {exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ}))
        if data_type == "timestamp_ntz":
            return _timestamp_ntz(_dated(node, {exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMP}))
        raise _NotSayable

    def _timestamp(self, text: str) -> str:
        moment, zone = _moment(text)
        if zone is None and not self.utc:
            raise _NotSayable
        if zone not in (None, "Z"):
            sign = -1 if zone[0] == "-" else 1
            moment -= sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
        return instant(moment)


def _compare(op: str, path: Sequence[str], literal: str) -> Json:
    return {"op": op, "column": list(path), "literal": literal}


def _extra(node: exp.Expr) -> bool:
    return any(value for key, value in node.args.items() if key not in ("this", "expression"))


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _number(node: exp.Expr) -> tuple[Decimal, bool]:
    """(value, whether Spark types it as a double). A plain `1.5` is a decimal, `1e3` and `1.5D` are doubles."""
    negative = isinstance(node, exp.Neg)
    inner = node.this if negative else node
    double = False
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal):
        kind = inner.to.this
        if kind == exp.DType.DOUBLE:
            double = True
        elif kind not in (exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.TINYINT, exp.DType.INT):
            raise _NotSayable
        inner = inner.this
    if not isinstance(inner, exp.Literal) or inner.is_string:
        raise _NotSayable
    try:
        value = Decimal(inner.this)
    except InvalidOperation:
        raise _NotSayable from None
    return (-value if negative else value), double or "e" in inner.this.lower()


def _integer(number: tuple[Decimal, bool], bits: int) -> int:
    value, double = number
    limit = 1 << (bits - 1)
    if value != value.to_integral_value() or not -limit <= value < limit or (double and abs(value) > 1 << 53):
        raise _NotSayable
    if double and bits == 64:
        raise _NotSayable  # Spark compares as doubles: several longs are equal to one
    return int(value)


def _floating(number: tuple[Decimal, bool], data_type: str) -> str:
    value = float(number[0])
    if not math.isfinite(value):
        raise _NotSayable
    if data_type == "float" and (abs(value) > _FLOAT_MAX or struct.unpack("f", struct.pack("f", value))[0] != value):
        raise _NotSayable  # compared as doubles, and no float has this value
    return repr(value)


def _decimal(number: tuple[Decimal, bool], precision: int, scale: int) -> str:
    value, double = number
    if double:
        raise _NotSayable
    shifted = value.scaleb(scale)
    if shifted != shifted.to_integral_value() or abs(shifted) >= 10**precision:
        raise _NotSayable
    return format(value, "f")


def _dated(node: exp.Expr, casts: set[Any]) -> str:
    """The text of a date or time literal: `date'...'`, `cast('...' as date)`, or a string, which Spark casts to the column's type."""
    if isinstance(node, exp.Cast) and node.to.this in casts and type(node) is exp.Cast:
        node = node.this
    if not _is_text(node):
        raise _NotSayable
    return str(node.this)


def _date(text: str) -> str:
    if not _DATE.fullmatch(text):
        raise _NotSayable
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise _NotSayable from None


def _day(node: exp.Expr) -> date:
    return date.fromisoformat(_date(_dated(node, {exp.DType.DATE, exp.DType.DATE32})))


def _year(node: exp.Expr) -> int:
    return _integer(_number(node), 32)


def _timestamp_ntz(text: str) -> str:
    moment, zone = _moment(text)
    if zone is not None:
        raise _NotSayable
    return moment.isoformat(sep=" ", timespec="microseconds")


def _moment(text: str) -> tuple[datetime, str | None]:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise _NotSayable
    day, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00:00'}")
        return moment.replace(microsecond=int((fraction or "0").ljust(6, "0"))), zone
    except ValueError:
        raise _NotSayable from None
