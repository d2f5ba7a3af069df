"""Functions that return several rows: explode, posexplode, inline, stack, json_tuple, and range in FROM.

A call becomes a list that a layer around the rows unnests, `SELECT *, unnest(…) AS "element_3" FROM …`, and
columns of the list's elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array, DataType, Map, Struct
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import cast, literal
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.registry import call as function_call
from deltaic.spark_sql.query.scopes import Column
from deltaic.spark_sql.values import Value, unsupported

if TYPE_CHECKING:
    from deltaic.spark_sql.query.sources import Rows
    from deltaic.spark_sql.query.subqueries import QueryTranslator

_NAMES = {
    *(
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
    ),
}
_IN_FROM = {"variant_explode", "variant_explode_outer"}
"""Functions that are allowed in FROM only."""


@dataclass(frozen=True)
class GeneratorColumns:
    """A translated call. `layers`: (label, SQL) of columns to add to the rows, one after the other.
    `columns`: the columns that the function returns."""

    layers: list[tuple[str, str]]
    columns: list[Column]


def call(tree: exp.Expr, *, in_from: bool = False) -> exp.Anonymous | None:
    """Returns the call of such a function if a column of a SELECT is one, else None. `in_from`: the tree is
    from FROM, where further functions are allowed."""
    if isinstance(tree, (exp.Alias, exp.Aliases)):
        tree = tree.this
    if not isinstance(tree, exp.Anonymous) or not isinstance(tree.this, str):
        return None
    if tree.this.lower() in _NAMES or (in_from and tree.this.lower() in _IN_FROM):
        return tree
    if tree.this.lower() in _IN_FROM:
        raise InvalidArgumentError("[NOT_A_SCALAR_FUNCTION] this function stands in FROM", found=tree.this)
    return None


def names(tree: exp.Expr, columns: Sequence[Column]) -> list[str]:
    """Returns the names of a call's columns: those of `AS (a, b)` or `AS a`, else the function's own
    names."""
    if isinstance(tree, exp.Aliases):
        aliases = [each.name for each in tree.expressions]
    elif isinstance(tree.parent, exp.Alias):
        aliases = [tree.parent.alias]
    else:
        return [column.name for column in columns]
    if len(aliases) != len(columns):
        raise InvalidArgumentError(
            "an alias needs one name for each column", found=len(aliases), expected=len(columns)
        )
    return aliases


def generate(node: exp.Anonymous, translator: QueryTranslator, *, outer: bool = False) -> GeneratorColumns:
    """Translates a call. `outer`: a call that returns no row returns a row of nulls instead."""
    name = node.this.lower()
    outer = outer or name.endswith("_outer")
    name = name.removesuffix("_outer")
    queries = translator.queries
    arguments = [queries.used(translator.value(item)) for item in node.expressions]
    if name == "json_tuple":
        return _json_tuple(arguments, translator)
    fields, elements, element = (
        _stack(arguments, translator) if name == "stack" else _elements(name, arguments, translator)
    )
    if outer:
        elements = f"(CASE WHEN len({elements}) > 0 THEN {elements} ELSE CAST([NULL] AS {element}[]) END)"
    label = queries.fresh("element")
    layers = [(label, f"unnest({elements})")]
    columns = []
    for field_name, kind, nullable, key in fields:
        if key is None:
            columns.append(Column(field_name, label, kind, nullable or outer))
            continue
        columns.append(Column(field_name, queries.fresh(field_name), kind, nullable or outer))
        layers.append((columns[-1].label, f"struct_extract({v.name(label)}, {v.text(key)})"))
    return GeneratorColumns(layers, columns)


_Fields = list[tuple[str, DataType, bool, "str | None"]]
"""Columns of a call: name, type, nullable, and the field of the list's element that holds the value (None:
the element is the value)."""


def _elements(name: str, arguments: list[Value], translator: QueryTranslator) -> tuple[_Fields, str, str]:
    """Returns the columns of explode, posexplode or inline, SQL of the list to unnest, and DuckDB's type of
    its elements."""
    if len(arguments) != 1:
        raise InvalidArgumentError(f"[WRONG_NUM_ARGS] {name} takes one argument", found=len(arguments))
    (value,) = arguments
    kind = value.type
    if name == "variant_explode":
        if kind not in ("variant", "void"):
            raise v.mismatch(name, kind)
        item_type = 'STRUCT("pos" INTEGER, "key" VARCHAR, "value" ' + v.duckdb_type("variant") + ")"
        parts_of: _Fields = [
            ("pos", "integer", False, "pos"),
            ("key", "string", True, "key"),
            ("value", "variant", False, "value"),
        ]
        return (
            parts_of,
            kernel_sql("variant_items", "variant items", cast(value, "variant", translator.zone).sql),
            item_type,
        )
    if name == "inline":
        if not isinstance(kind, Array) or not isinstance(kind.element, Struct):
            raise v.mismatch(name, kind)
        null = kind.contains_null
        fields: _Fields = [
            (field.name, field.type, field.nullable or null, field.name) for field in kind.element.fields
        ]
        return fields, value.sql, v.duckdb_type(kind.element)
    if isinstance(kind, Map):
        entries = f"map_entries({value.sql})"
        pairs: _Fields = [
            ("key", kind.key, False, "key"),
            ("value", kind.value, kind.value_contains_null, "value"),
        ]
        shape = [f"key {v.duckdb_type(kind.key)}", f"value {v.duckdb_type(kind.value)}"]
    elif isinstance(kind, Array):
        entries, pairs = value.sql, [("col", kind.element, kind.contains_null, None)]
        shape = [f"col {v.duckdb_type(kind.element)}"]
    else:
        raise v.mismatch(name, kind)
    if name == "explode":
        return (
            pairs,
            entries,
            f"STRUCT({', '.join(shape)})" if isinstance(kind, Map) else shape[0].removeprefix("col "),
        )
    item, index = translator.scope.fresh(), translator.scope.fresh()
    parts = ["key", "value"] if isinstance(kind, Map) else ["col"]
    members = (
        [f"{part} := struct_extract({item}, '{part}')" for part in parts]
        if isinstance(kind, Map)
        else [f"col := {item}"]
    )
    packed = f"struct_pack(pos := CAST({index} - 1 AS INTEGER), {', '.join(members)})"
    numbered = f"list_transform({entries}, lambda {item}, {index}: {packed})"
    fields = [("pos", "integer", False, "pos"), *((each[0], each[1], each[2], each[0]) for each in pairs)]
    return fields, numbered, f"STRUCT(pos INTEGER, {', '.join(shape)})"


def _stack(arguments: list[Value], translator: QueryTranslator) -> tuple[_Fields, str, str]:
    count = arguments[0].constant if arguments else None
    if not isinstance(count, int) or count < 1 or len(arguments) < 2:
        raise InvalidArgumentError(
            "[WRONG_NUM_ARGS] stack takes a number of rows and then their values", found=len(arguments)
        )
    values = arguments[1:]
    width = -(-len(values) // count)
    values += [literal(None, "void")] * (width * count - len(values))
    types = [_stacked(values[index::width]) for index in range(width)]
    rows = []
    for start in range(0, len(values), width):
        cells = [
            cast(value, kind, translator.zone)
            for value, kind in zip(values[start : start + width], types, strict=True)
        ]
        rows.append(
            f"struct_pack({', '.join(f'col{index} := {cell.sql}' for index, cell in enumerate(cells))})"
        )
    fields: _Fields = [
        (f"col{index}", kind, any(value.nullable for value in values[index::width]), f"col{index}")
        for index, kind in enumerate(types)
    ]
    shape = ", ".join(f"col{index} {v.duckdb_type(kind)}" for index, kind in enumerate(types))
    return fields, f"[{', '.join(rows)}]", f"STRUCT({shape})"


def _stacked(values: Sequence[Value]) -> DataType:
    """The one type of a column of stack, whose values are not cast."""
    known = [value.type for value in values if value.type != "void"]
    if different := [kind for kind in known if not v.same_but_nulls(kind, known[0])]:
        types = v.type_text(known[0]), v.type_text(different[0])
        raise InvalidArgumentError(
            "[DATATYPE_MISMATCH.STACK_COLUMN_DIFF_TYPES] a column of stack has one type",
            found=" and ".join(types),
            expected=types[0],
        )
    return v.common_of(values, "stack")


def _json_tuple(arguments: list[Value], translator: QueryTranslator) -> GeneratorColumns:
    if len(arguments) < 2:
        raise InvalidArgumentError(
            "[WRONG_NUM_ARGS] json_tuple takes a text and names of fields", found=len(arguments)
        )
    layers, columns = [], []
    for index, field in enumerate(arguments[1:]):
        if not isinstance(field.constant, str):
            raise unsupported("json_tuple of names that are not literals")
        path = literal(f"$['{field.constant}']", "string")
        value = function_call("get_json_object", [arguments[0], path], translator.zone)
        columns.append(Column(f"c{index}", translator.queries.fresh("c"), "string"))
        layers.append((columns[-1].label, value.sql))
    return GeneratorColumns(layers, columns)


def number_range(node: exp.Anonymous, translator: QueryTranslator, rows: Rows) -> list[Column]:
    """Translates range([start,] end [, step [, partitions]])."""
    numbers = [
        translator.queries.used(cast(translator.value(item), "long", translator.zone)).sql
        for item in node.expressions
    ]
    if not 1 <= len(numbers) <= 4:
        raise InvalidArgumentError("[WRONG_NUM_ARGS] range takes one to four numbers", found=len(numbers))
    start, end, step = (
        ("CAST(0 AS BIGINT)", numbers[0], "1")
        if len(numbers) == 1
        else (*numbers[:2], numbers[2] if len(numbers) > 2 else "1")
    )
    column = Column("id", translator.queries.fresh("id"), "long", False)
    rows.sql = (
        f"range({start}, {end}, {step}) AS"
        f" {v.name(translator.queries.fresh('range'))}({v.name(column.label)})"
    )
    return [column]
