"""Arrays, maps and structs: constructors, items by index or key, functions with lambda functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array, DataType, Field, Map, Struct
from deltaic.spark_sql import operators
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, implicit
from deltaic.spark_sql.functions.registry import register
from deltaic.spark_sql.values import Value

if TYPE_CHECKING:
    from deltaic.spark_sql.translation import Translator

# --- items


def item(value: Value, index: Value, zone: Zone) -> Value:
    """Returns an item: `a[i]` of an array, counted from 0 (an index outside the array raises an error);
    `m[k]` of a map (null if the map has no such key); `s['f']` of a struct; of NULL, NULL."""
    if value.type == "void":
        return value
    if isinstance(value.type, Array):
        return _array_item(value, value.type, index, zone)
    if isinstance(value.type, Map):
        key = value.type.key
        if v.is_numeric(index.type) and v.is_numeric(key) and v.common_type(index.type, key) != key:
            raise v.unsupported("a key of a map", value.type, index.type)
        return _looked_up(value, implicit(index, key, zone, "a key of a map"))
    if isinstance(value.type, Struct) and isinstance(index.constant, str):
        from deltaic.spark_sql.scope import fields

        return fields(value, [index.constant])
    raise v.unsupported("an item", value.type, index.type)


def _array_item(value: Value, kind: Array, index: Value, zone: Zone) -> Value:
    if index.type not in ("byte", "short", "integer", "long", "void"):
        raise v.mismatch("an item of an array", index.type)
    index = cast(index, "long" if index.type == "long" else "integer", zone)
    found = f"list_extract({value.sql}, {index.sql} + 1)"
    message = (
        f"'The index ' || {index.sql} || ' is out of bounds. The array has ' || len({value.sql}) || '"
        " elements.'"
    )
    inside = f"{index.sql} >= 0 AND {index.sql} < len({value.sql})"
    outside = v.failure("INVALID_ARRAY_INDEX", message)
    sql = (
        f"(CASE WHEN {value.sql} IS NULL OR {index.sql} IS NULL THEN NULL WHEN {inside} THEN {found} ELSE"
        f" {outside} END)"
    )
    return v.combine(
        sql,
        kind.element,
        (value, index),
        nullable=value.nullable or index.nullable or kind.contains_null,
        raises=True,
    )


def map_item(value: Value, key: Value, zone: Zone) -> Value:
    assert isinstance(value.type, Map)
    common = v.sought("element_at", value.type.key, key.type)
    if not v.same_but_nulls(common, value.type.key):
        raise v.unsupported("function element_at", value.type, key.type)
    return _looked_up(value, cast(key, value.type.key, zone))


def _looked_up(value: Value, key: Value) -> Value:
    assert isinstance(value.type, Map)
    found = v.combine(
        f"map_extract_value({value.sql}, {key.sql})", value.type.value, (value, key), nullable=True
    )
    return v.in_order((value, key), found)


def _element_at(arguments: list[Value], zone: Zone, *, safe: bool = False) -> Value:
    value, index = arguments
    if isinstance(value.type, Map):
        return map_item(value, index, zone)
    if not isinstance(value.type, Array) or index.type not in ("byte", "short", "integer"):
        raise v.mismatch("element_at", value.type, index.type)
    index = cast(index, "integer", zone)
    zero = v.failure(
        "INVALID_INDEX_OF_ZERO",
        "'The index 0 is invalid. An index shall be either < 0 or > 0 (the first element has index 1).'",
    )
    message = (
        f"'The index ' || {index.sql} || ' is out of bounds. The array has ' || len({value.sql}) || '"
        " elements.'"
    )
    outside = "NULL" if safe else v.failure("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", message)
    sql = (
        f"(CASE WHEN {value.sql} IS NULL OR {index.sql} IS NULL THEN NULL "
        f"WHEN abs(CAST({index.sql} AS BIGINT)) > len({value.sql}) THEN {outside} "
        f"WHEN {index.sql} = 0 THEN {zero} ELSE list_extract({value.sql}, {index.sql}) END)"
    )
    return v.combine(
        sql,
        value.type.element,
        (value, index),
        nullable=safe or value.nullable or index.nullable or value.type.contains_null,
        raises=True,
    )


# --- constructors


def _array(arguments: list[Value], zone: Zone) -> Value:
    v.check_storable("an array of", arguments)
    common = v.common_of(arguments, "array")
    parts = [cast(argument, common, zone) for argument in arguments]
    kind = Array(common, any(part.nullable for part in parts))
    return v.combine(
        f"CAST([{', '.join(part.sql for part in parts)}] AS {v.duckdb_type(kind)})",
        kind,
        parts,
        nullable=False,
    )


def _map(arguments: list[Value], zone: Zone) -> Value:
    if len(arguments) % 2:
        raise v.unsupported("function map", *(argument.type for argument in arguments))
    if not arguments:
        kind = Map("void", "void", False)
        return Value(f"CAST(MAP([], []) AS {v.duckdb_type(kind)})", kind, False, foldable=True)
    return map_of(_array(arguments[::2], zone), _array(arguments[1::2], zone), nullable=False, paired=True)


def map_of(keys: Value, items: Value, *, nullable: bool | None = None, paired: bool = False) -> Value:
    """Returns a map of an array of keys and an array of values. A null key or a repeated key raises an error,
    as in Spark by default; DuckDB checks for repeated keys. `paired`: True if the arrays always have equal
    lengths, which are not compared then."""
    assert isinstance(keys.type, Array)
    assert isinstance(items.type, Array)
    if isinstance(keys.type.element, Map) or keys.type.element == "void":
        raise v.unsupported("a map with keys of type", keys.type.element)
    element, may_hold_null = keys.type.element, keys.type.contains_null
    if element in v.FRACTIONAL:  # Spark turns a key of -0.0 into 0.0
        positive = f"CASE WHEN deltaic_key = 0 THEN CAST(0 AS {v.duckdb_type(element)}) ELSE deltaic_key END"
        keys = keys.like(f"list_transform({keys.sql}, lambda deltaic_key: {positive})", keys.type)
    kind = Map(element, items.type.element, items.type.contains_null)
    sql = f"CAST(map({keys.sql}, {items.sql}) AS {v.duckdb_type(kind)})"
    checks = []
    if keys.nullable or items.nullable:
        checks.append(f"WHEN {keys.sql} IS NULL OR {items.sql} IS NULL THEN NULL")
    if not paired:
        lengths = v.failure(
            "_LEGACY_ERROR_TEMP_2128", "'The key array and value array of MapData must have the same length.'"
        )
        checks.append(f"WHEN len({keys.sql}) <> len({items.sql}) THEN {lengths}")
    if may_hold_null:
        null_key = v.failure("NULL_MAP_KEY", "'Cannot use null as map key.'")
        checks.append(
            f"WHEN len(list_filter({keys.sql}, lambda deltaic_key: deltaic_key IS NULL)) > 0 THEN {null_key}"
        )
    if checks:
        sql = f"(CASE {' '.join(checks)} ELSE {sql} END)"
    return v.combine(sql, kind, (keys, items), nullable=nullable, raises=True)


def struct_of(names: Sequence[str], parts: Sequence[Value]) -> Value:
    """Returns a struct of `parts`, with fields named `names`."""
    if not parts:
        raise InvalidArgumentError("[WRONG_NUM_ARGS] a struct has at least one field")
    v.check_storable("a struct of", parts)
    kind = Struct(Field(name, part.type, part.nullable) for name, part in zip(names, parts, strict=True))
    packed = ", ".join(f"{v.name(name)} := {part.sql}" for name, part in zip(names, parts, strict=True))
    return v.combine(f"struct_pack({packed})", kind, parts, nullable=False)


def _struct(translator: Translator, node: Any) -> Value:
    names, parts = [], []
    for number, argument in enumerate(node.expressions, 1):
        inner = argument.this if isinstance(argument, exp.Alias) else argument
        part = translator.value(inner)
        if isinstance(argument, exp.Alias):
            names.append(argument.alias)
        else:
            names.append(column_name(inner) or f"col{number}")
        parts.append(part)
    return struct_of(names, parts)


def column_name(node: exp.Expression) -> str | None:
    """Returns the name that Spark gives a struct's field made from a column or field, or None for any other
    expression."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, (exp.Column, exp.Identifier)):
        return node.name
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return node.expression.name
    return None


def _named_struct(translator: Translator, node: Any) -> Value:
    arguments = node.expressions
    names = [
        argument.name
        for argument in arguments[::2]
        if isinstance(argument, exp.Literal) and argument.is_string
    ]
    if len(arguments) % 2 or len(names) * 2 != len(arguments):
        raise InvalidArgumentError(
            "named_struct takes literal names, each followed by its value",
            found=node.sql(dialect="databricks")[:100],
        )
    return struct_of(names, [translator.value(argument) for argument in arguments[1::2]])


# --- functions with lambda functions


def _argument(translator: Translator, node: Any, count: Sequence[int], name: str) -> tuple[Value, Array]:
    if len(node.expressions) not in count:
        raise InvalidArgumentError(
            f"[WRONG_NUM_ARGS] {name} takes {' or '.join(map(str, count))} arguments",
            found=len(node.expressions),
        )
    value = translator.value(node.expressions[0])
    if not isinstance(value.type, Array):
        raise v.mismatch(name, value.type)
    return value, value.type


def _transform(translator: Translator, node: Any) -> Value:
    value, kind = _argument(translator, node, (2,), "transform")
    function = node.expressions[1]
    if isinstance(function, exp.Lambda) and len(function.expressions) == 2:
        element, index = translator.scope.fresh(), translator.scope.fresh()
        body = body_of(
            translator, function, [(element, kind.element), (f"CAST({index} - 1 AS INTEGER)", "integer")]
        )  # the engine counts from 1
        sql = f"list_transform({value.sql}, lambda {element}, {index}: {body.sql})"
    else:
        (element,), body = translator.lambda_value(function, [(kind.element, kind.contains_null)])
        sql = f"list_transform({value.sql}, lambda {element}: {body.sql})"
    v.check_storable("an array of", [body])
    result = Array(body.type, body.nullable)
    return v.combine(
        f"CAST({sql} AS {v.duckdb_type(result)})", result, (value, body), nullable=value.nullable
    )


def _predicate(translator: Translator, node: Any, name: str) -> tuple[Value, Array, str, Value]:
    value, kind = _argument(translator, node, (2,), name)
    (parameter,), body = translator.lambda_value(node.expressions[1], [(kind.element, kind.contains_null)])
    return value, kind, parameter, operators.condition(body, translator.zone, name)


def _filter(translator: Translator, node: Any) -> Value:
    function = node.expressions[1] if len(node.expressions) == 2 else None
    if isinstance(function, exp.Lambda) and len(function.expressions) == 2:
        value, kind = _argument(translator, node, (2,), "filter")
        element, index = translator.scope.fresh(), translator.scope.fresh()
        body = body_of(
            translator, function, [(element, kind.element), (f"CAST({index} - 1 AS INTEGER)", "integer")]
        )
        body = operators.condition(body, translator.zone, "filter")
        sql = f"list_filter({value.sql}, lambda {element}, {index}: {body.sql})"  # the engine counts from 1
        return v.combine(sql, kind, (value, body), nullable=value.nullable)
    value, kind, parameter, body = _predicate(translator, node, "filter")
    return v.combine(
        f"list_filter({value.sql}, lambda {parameter}: {body.sql})",
        kind,
        (value, body),
        nullable=value.nullable,
    )


def _exists(translator: Translator, node: Any) -> Value:
    value, _, parameter, body = _predicate(translator, node, "exists")
    sql = f"list_bool_or(list_transform({value.sql}, lambda {parameter}: {body.sql}))"
    decided = _three_valued(sql, value, parameter, body, "true")
    empty = (
        f"(CASE WHEN {value.sql} IS NULL THEN NULL WHEN len({value.sql}) = 0 THEN false ELSE {decided} END)"
    )
    return v.combine(empty, "boolean", (value, body))


def _forall(translator: Translator, node: Any) -> Value:
    value, _, parameter, body = _predicate(translator, node, "forall")
    sql = f"list_bool_and(list_transform({value.sql}, lambda {parameter}: {body.sql}))"
    decided = _three_valued(sql, value, parameter, body, "false")
    full = f"(CASE WHEN {value.sql} IS NULL THEN NULL WHEN len({value.sql}) = 0 THEN true ELSE {decided} END)"
    return v.combine(full, "boolean", (value, body))


def _three_valued(sql: str, value: Value, parameter: str, body: Value, decided: str) -> str:
    """Returns SQL of exists or forall with nulls as in Spark: null if no item decides the result (`decided`)
    but the condition is null for one. `sql`: DuckDB's aggregate, which ignores nulls."""
    nulls = f"len(list_filter({value.sql}, lambda {parameter}: ({body.sql}) IS NULL)) > 0"
    other = "false" if decided == "true" else "true"
    return (
        f"CASE WHEN coalesce({sql}, {other}) = {decided} THEN {decided} WHEN {nulls} THEN NULL ELSE {sql} END"
    )


def _aggregate(translator: Translator, node: Any) -> Value:
    value, kind = _argument(translator, node, (3, 4), "aggregate")
    start = translator.value(node.expressions[1])
    accumulated, element = translator.scope.fresh(), translator.scope.fresh()
    alike = v.duckdb_type(start.type) == v.duckdb_type(kind.element)
    names = (accumulated, element) if alike else (f"{accumulated}.a", f"{element}.e")
    body = body_of(translator, node.expressions[2], [(names[0], start.type), (names[1], kind.element)])
    if not v.same_but_nulls(body.type, start.type):
        raise v.mismatch("aggregate", start.type, body.type)
    # DuckDB's list_reduce requires a start value of the type of the list's elements. If the types differ,
    # each value is a struct with a field for both: `{a: start, e: element}`.
    boxed_type = f"STRUCT(a {v.duckdb_type(start.type)}, e {v.duckdb_type(kind.element)})"
    empty = f"CAST(NULL AS {v.duckdb_type(start.type)})"
    boxed = (
        f"list_transform({value.sql}, lambda {element}: CAST({{'a': {empty}, 'e': {element}}} AS"
        f" {boxed_type}))"
    )
    first = f"CAST({{'a': {start.sql}, 'e': NULL}} AS {boxed_type})"
    step = f"CAST({{'a': {body.sql}, 'e': NULL}} AS {boxed_type})"
    reduced = f"list_reduce({boxed}, lambda {accumulated}, {element}: {step}, {first}).a"
    if alike:
        whole = v.duckdb_type(start.type)
        reduced = (
            f"list_reduce({value.sql}, lambda {accumulated}, {element}: CAST({body.sql} AS {whole}),"
            f" CAST({start.sql} AS {whole}))"
        )
    sql = f"(CASE WHEN {value.sql} IS NULL THEN NULL ELSE {reduced} END)"
    result = v.combine(sql, start.type, (value, start, body), nullable=True)
    if len(node.expressions) == 3:
        return result
    final = node.expressions[3]
    if not isinstance(final, exp.Lambda) or len(final.expressions) != 1:
        raise v.unsupported("aggregate without a lambda function as its end")
    translator.scope.push({final.expressions[0].name: result})
    try:
        return translator.value(final.this)
    finally:
        translator.scope.pop()


def _zip_with(translator: Translator, node: Any) -> Value:
    """Builds zip_with; the shorter array is filled up with nulls."""
    if len(node.expressions) != 3:
        raise InvalidArgumentError("[WRONG_NUM_ARGS] zip_with takes 3 arguments", found=len(node.expressions))
    sides = [translator.value(argument) for argument in node.expressions[:2]]
    kinds = [side.type for side in sides]
    if not all(isinstance(kind, Array) for kind in kinds):
        raise v.mismatch("zip_with", *kinds)
    pair = translator.scope.fresh()
    elements = [
        (f"struct_extract({pair}, {number})", kind.element)
        for number, kind in enumerate(kinds, 1)
        if isinstance(kind, Array)
    ]
    body = body_of(translator, node.expressions[2], elements)
    sql = f"list_transform(list_zip({sides[0].sql}, {sides[1].sql}), lambda {pair}: {body.sql})"
    v.check_storable("an array of", [body])
    result = Array(body.type, body.nullable)
    present = " AND ".join(f"{side.sql} IS NOT NULL" for side in sides)
    return v.combine(
        f"CAST((CASE WHEN {present} THEN {sql} END) AS {v.duckdb_type(result)})",
        result,
        [*sides, body],
        nullable=any(side.nullable for side in sides),
    )


def body_of(translator: Translator, function: Any, parameters: Sequence[tuple[str, DataType]]) -> Value:
    """Returns the translated body of a lambda function. `parameters`: SQL and type of each parameter."""
    if not isinstance(function, exp.Lambda) or len(function.expressions) != len(parameters):
        raise v.unsupported(
            f"{function.sql(dialect='databricks')[:100]} in place of a lambda function of {len(parameters)}"
            " parameters"
        )
    names = [part.name for part in function.expressions]
    translator.scope.push(
        {name: Value(sql, kind) for name, (sql, kind) in zip(names, parameters, strict=True)}
    )
    try:
        return translator.value(function.this)
    finally:
        translator.scope.pop()


def map_lambda(translator: Translator, node: Any, name: str) -> tuple[Value, Map, str, Value]:
    if len(node.expressions) != 2:
        raise InvalidArgumentError(f"[WRONG_NUM_ARGS] {name} takes 2 arguments", found=len(node.expressions))
    value = translator.value(node.expressions[0])
    if not isinstance(value.type, Map):
        raise v.mismatch(name, value.type)
    entry = translator.scope.fresh()
    sides = [
        (f"struct_extract({entry}, 'key')", value.type.key),
        (f"struct_extract({entry}, 'value')", value.type.value),
    ]
    return value, value.type, entry, body_of(translator, node.expressions[1], sides)


def _map_filter(translator: Translator, node: Any) -> Value:
    value, kind, entry, body = map_lambda(translator, node, "map_filter")
    body = operators.condition(body, translator.zone, "map_filter")
    sql = f"map_from_entries(list_filter(map_entries({value.sql}), lambda {entry}: {body.sql}))"
    return v.combine(f"CAST({sql} AS {v.duckdb_type(kind)})", kind, (value, body), nullable=value.nullable)


def _transform_values(translator: Translator, node: Any) -> Value:
    value, kind, entry, body = map_lambda(translator, node, "transform_values")
    v.check_storable("a map of", [body])
    result = Map(kind.key, body.type, body.nullable)
    pair = f"{{'key': struct_extract({entry}, 'key'), 'value': {body.sql}}}"
    sql = f"map_from_entries(list_transform(map_entries({value.sql}), lambda {entry}: {pair}))"
    return v.combine(
        f"CAST({sql} AS {v.duckdb_type(result)})", result, (value, body), nullable=value.nullable
    )


SPECIAL: dict[str, Callable[[Any, Any], Value]] = {
    "struct": _struct,
    "named_struct": _named_struct,
    "transform": _transform,
    "filter": _filter,
    "exists": _exists,
    "forall": _forall,
    "aggregate": _aggregate,
    "reduce": _aggregate,
    "zip_with": _zip_with,
    "map_filter": _map_filter,
    "transform_values": _transform_values,
}

register("array", "any...", "array<T>", _array)
register("map", "any...", "map<K,V>", _map)
register(
    "map_from_arrays",
    "array<K>, array<V>",
    "map<K,V>",
    lambda arguments, zone: map_of(arguments[0], arguments[1]),
)
register("element_at", "any, any", "T", _element_at)
register("try_element_at", "any, any", "T", lambda arguments, zone: _element_at(arguments, zone, safe=True))
