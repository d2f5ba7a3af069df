"""Rows as a Polars LazyFrame. Its columns and the part of its filter that the predicate tree can express are
pushed into the scan. Polars applies the whole filter again, so results always follow its rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic.protocol.schema import DataType, Schema, Struct

if TYPE_CHECKING:
    import polars

Node = dict[str, Any]
Open = Callable[[Sequence[str], "list[Node]"], pa.RecordBatchReader]
"""(columns, nodes) -> a reader of the rows with at least these columns, in any order. The nodes are
conditions in the form of `_core.Predicate.from_json`; rows for which one of them is not true may be
missing."""

_OPERATORS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_INTEGERS = frozenset({"byte", "short", "integer", "long"})


def lazy_frame(schema: Schema, arrow_schema: pa.Schema, open_rows: Open) -> polars.LazyFrame:
    """Makes a LazyFrame of rows. `arrow_schema`: of the result of `open_rows` for all columns."""
    import polars

    frame_schema = polars.DataFrame(arrow_schema.empty_table()).schema

    def batches(
        names: list[str] | None, condition: polars.Expr | None, limit: int | None, batch_rows: int | None
    ) -> Iterator[polars.DataFrame]:
        columns = list(frame_schema) if names is None else names
        read = list(dict.fromkeys([*columns, *([] if condition is None else condition.meta.root_names())]))
        left = limit
        with open_rows(
            read or list(frame_schema)[:1], [] if condition is None else pushed_conjuncts(condition, schema)
        ) as reader:
            for batch in reader:
                frame = polars.DataFrame(batch)
                if condition is not None:
                    frame = frame.filter(condition)
                frame = frame.select(columns) if columns else frame
                yield frame if left is None else frame.head(left)
                if left is not None and (left := left - frame.height) <= 0:
                    return

    return polars.io.plugins.register_io_source(batches, schema=frame_schema)


def pushed_conjuncts(condition: polars.Expr, schema: Schema) -> list[Node]:
    """Returns the conjuncts of a condition that the predicate tree of `_core` can express. They are exact, as
    both order floats in the same way (NaN is equal to itself and greater than every number). Other forms are
    left to Polars."""
    try:
        tree = json.loads(condition.meta.serialize(format="json"))
    except Exception:  # Polars cannot serialize some forms, such as a Python function
        return []
    return [node for part in _conjuncts(tree) if (node := _PolarsExpression(schema).node(part)) is not None]


def _conjuncts(tree: Any) -> list[Any]:
    inner = tree.get("BinaryExpr") if isinstance(tree, dict) else None
    if inner is None or inner.get("op") not in ("And", "LogicalAnd"):
        return [tree]
    return [*_conjuncts(inner["left"]), *_conjuncts(inner["right"])]


class _PolarsExpression:
    """Translates Polars' JSON of an expression to a node of the predicate tree; None for a form that the tree
    lacks."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def node(self, tree: Any) -> Node | None:
        if not isinstance(tree, dict) or len(tree) != 1:
            return None
        ((kind, inner),) = tree.items()
        if kind == "BinaryExpr":
            return self._binary(inner)
        if kind == "Function" and isinstance(inner.get("function"), dict):
            return self._function(inner["function"].get("Boolean"), inner["input"])
        return None

    def _binary(self, inner: Mapping[str, Any]) -> Node | None:
        operator = inner["op"]
        if operator in ("And", "LogicalAnd", "Or", "LogicalOr"):
            sides = [self.node(inner["left"]), self.node(inner["right"])]
            return None if None in sides else {"op": operator.removeprefix("Logical").lower(), "args": sides}
        column = self._column(inner["left"])
        if operator not in _OPERATORS or column is None:
            return None
        text = _literal(inner["right"], column[1])
        return None if text is None else {"op": _OPERATORS[operator], "column": column[0], "literal": text}

    def _function(self, function: Any, inputs: Sequence[Any]) -> Node | None:
        if function == "Not":
            inner = self.node(inputs[0])
            return None if inner is None else {"op": "not", "arg": inner}
        column = self._column(inputs[0])
        if column is None:
            return None
        if function in ("IsNull", "IsNotNull"):
            node: Node = {"op": "is_null", "column": column[0]}
            return node if function == "IsNull" else {"op": "not", "arg": node}
        if isinstance(function, dict) and function.get("IsBetween") == {"closed": "Both"}:
            low, high = (_literal(each, column[1]) for each in inputs[1:])
            if low is not None and high is not None:
                bounds = ((">=", low), ("<=", high))
                return {
                    "op": "and",
                    "args": [{"op": op, "column": column[0], "literal": text} for op, text in bounds],
                }
        if isinstance(function, dict) and function.get("IsIn") == {"nulls_equal": False} and len(inputs) == 2:
            members = _members(inputs[1], column[1])
            return None if members is None else {"op": "in", "column": column[0], "literals": members}
        return None

    def _column(self, tree: Any) -> tuple[list[str], DataType] | None:
        """Returns the path of a column or of a struct field, and its type."""
        if not isinstance(tree, dict):
            return None
        if isinstance(name := tree.get("Column"), str):
            item = self._schema.get(name)
            return None if item is None or item.name != name else ([name], item.type)
        inner = tree.get("Function")
        if not isinstance(inner, dict) or not isinstance(inner.get("function"), dict):
            return None
        by_name = inner["function"].get("StructExpr")
        if not isinstance(by_name, dict) or not isinstance(field := by_name.get("FieldByName"), str):
            return None
        outer = self._column(inner["input"][0])
        if outer is None or not isinstance(outer[1], Struct):
            return None
        return next((([*outer[0], field], item.type) for item in outer[1].fields if item.name == field), None)


def _literal(tree: Any, data_type: DataType) -> str | None:
    """Serializes a constant for the column's type; None unless Polars compares column and constant as values
    of that type."""
    value = tree.get("Literal") if isinstance(tree, dict) else None
    scalar = value.get("Dyn") or value.get("Scalar") if isinstance(value, dict) else None
    if not isinstance(scalar, dict) or len(scalar) != 1:
        return None
    ((kind, content),) = scalar.items()
    if isinstance(content, bool):
        return str(content).lower() if data_type == "boolean" else None
    if isinstance(content, int) and kind.startswith(("Int", "UInt")) and data_type in _INTEGERS:
        return str(content)
    if isinstance(content, (int, float)) and kind in ("Int", "Float", "Float64") and data_type == "double":
        return repr(float(content)) if abs(content) < 2**53 else None
    if isinstance(content, str) and kind in ("Str", "String") and data_type == "string":
        return content
    if isinstance(content, int) and kind == "Date" and data_type == "date":
        return _iso(pa.scalar(content, pa.date32()))
    if kind == "Datetime" and isinstance(content, list) and content[1:2] == ["Microseconds"]:
        return _moment(content[0], content[2], data_type)
    return None


def _moment(micros: int, zone: Any, data_type: DataType) -> str | None:
    if data_type == "timestamp_ntz" and zone is None:
        return _iso(pa.scalar(micros, pa.timestamp("us")))
    if data_type == "timestamp" and zone == {"inner": "UTC"}:
        text = _iso(pa.scalar(micros, pa.timestamp("us")))
        return None if text is None else f"{text.replace(' ', 'T')}Z"
    return None


def _iso(value: pa.Scalar) -> str | None:
    try:
        moment = value.as_py()
    except (ValueError, OverflowError):  # Python's dates end with the year 9999
        return None
    return (
        moment.isoformat(sep=" ", timespec="microseconds")
        if pa.types.is_timestamp(value.type)
        else str(moment.isoformat())
    )


def _members(tree: Any, data_type: DataType) -> list[str] | None:
    """Returns the values of a list of integers or strings, which Polars serializes as an Arrow stream. None
    for a list with a null: with it, the test of a value that is not in the list is null instead of false."""
    value = tree.get("Literal") if isinstance(tree, dict) else None
    content = (
        value["Scalar"].get("List")
        if isinstance(value, dict) and isinstance(value.get("Scalar"), dict)
        else None
    )
    if not isinstance(content, list):
        return None
    try:
        values = pa.ipc.open_stream(bytes(content)).read_all().column(0)
    except (pa.ArrowException, ValueError):
        return None
    text = (
        pa.types.is_large_string(values.type)
        or pa.types.is_string(values.type)
        or pa.types.is_string_view(values.type)
    )
    fits = text if data_type == "string" else data_type in _INTEGERS and pa.types.is_integer(values.type)
    if values.null_count or not fits:
        return None
    return [str(each) for each in values.to_pylist()]
