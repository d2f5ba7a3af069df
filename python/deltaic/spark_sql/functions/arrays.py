"""Functions on arrays and maps that take no lambda function."""

from __future__ import annotations

from collections.abc import Callable

from deltaic.protocol.schema import Array, Field, Map, Struct
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.functions import nested as collections
from deltaic.spark_sql.functions import sequences
from deltaic.spark_sql.functions.registry import constant_text, literal, register
from deltaic.spark_sql.nested_values import is_sortable, sort_key
from deltaic.spark_sql.values import Value


def _element(value: Value, what: str) -> Array:
    if value.type == "void":
        raise v.mismatch(what, value.type)
    if not isinstance(value.type, Array) or not v.is_orderable(value.type.element):
        raise v.unsupported(f"function {what}", value.type)
    return value.type


def _size(arguments: list[Value], zone: Zone) -> Value:
    value = arguments[0]
    if isinstance(value.type, Array):
        return value.like(f"CAST(len({value.sql}) AS INTEGER)", "integer")
    if isinstance(value.type, Map):
        return value.like(f"CAST(cardinality({value.sql}) AS INTEGER)", "integer")
    raise v.mismatch("size", value.type)


def _contains(arguments: list[Value], zone: Zone) -> Value:
    """Builds array_contains: true if the item is in the array, null if the item is not found but the array
    holds a null, else false."""
    value, item = _with_item(arguments, zone, "array_contains")
    nulls = f"len(list_filter({value.sql}, lambda deltaic_e: deltaic_e IS NULL)) > 0"
    sql = (
        f"(CASE WHEN {value.sql} IS NULL OR {item.sql} IS NULL THEN NULL WHEN list_contains({value.sql},"
        f" {item.sql}) THEN true WHEN {nulls} THEN NULL ELSE false END)"
    )
    nullable = value.nullable or item.nullable or _element(value, "array_contains").contains_null
    return v.combine(sql, "boolean", (value, item), nullable=nullable)


def _with_item(arguments: list[Value], zone: Zone, what: str) -> tuple[Value, Value]:
    value, item = arguments
    kind = _element(value, what)
    if v.integral_meets_float(kind.element, item.type):
        raise v.unsupported(f"function {what}", value.type, item.type)
    common = (
        v.common_without_text(kind.element, item.type)
        if what == "array_contains"
        else v.sought(what, kind.element, item.type)
    )
    if common is None or (item.type == "void" and what == "array_contains"):
        raise v.mismatch(what, value.type, item.type)
    return cast(value, Array(common, kind.contains_null), zone), cast(item, common, zone)


def _position(arguments: list[Value], zone: Zone) -> Value:
    value, item = _with_item(arguments, zone, "array_position")
    sql = (
        f"(CASE WHEN {value.sql} IS NULL OR {item.sql} IS NULL THEN NULL ELSE"
        f" coalesce(list_position({value.sql}, {item.sql}), 0) END)"
    )
    return v.combine(f"CAST({sql} AS BIGINT)", "long", (value, item))


def _remove(arguments: list[Value], zone: Zone) -> Value:
    value, item = _with_item(arguments, zone, "array_remove")
    kept = f"list_filter({value.sql}, lambda deltaic_e: coalesce(deltaic_e <> {item.sql}, true))"
    return v.combine(f"(CASE WHEN {item.sql} IS NOT NULL THEN {kept} END)", value.type, (value, item))


def _append(first: bool) -> Callable[[list[Value], Zone], Value]:
    def build(arguments: list[Value], zone: Zone) -> Value:
        value, item = arguments
        kind = _element(value, "array_append")
        common = v.sought("array_append", kind.element, item.type)
        value, item = cast(value, Array(common, kind.contains_null), zone), cast(item, common, zone)
        parts = [f"[{item.sql}]", value.sql] if first else [value.sql, f"[{item.sql}]"]
        result = Array(common, kind.contains_null or item.nullable)
        sql = f"(CASE WHEN {value.sql} IS NOT NULL THEN {parts[0]} || {parts[1]} END)"
        return v.combine(sql, result, (value, item), nullable=value.nullable)

    return build


def _sorted(arguments: list[Value], zone: Zone) -> Value:
    """Builds sort_array. In ascending order nulls come first, in descending order last."""
    value = arguments[0]
    kind = (
        value.type
        if isinstance(value.type, Array) and is_sortable(value.type.element)
        else _element(value, "sort_array")
    )
    ascending = arguments[1].constant if len(arguments) > 1 else True
    if ascending is None:
        return v.combine(f"CAST(NULL AS {v.duckdb_type(kind)})", kind, arguments, nullable=True)
    if not isinstance(ascending, bool):
        raise v.unsupported("sort_array with an order that is not a literal")
    order = "'ASC', 'NULLS FIRST'" if ascending else "'DESC', 'NULLS LAST'"
    return value.like(_sorted_sql(value.sql, kind, order), kind)


def _sorted_sql(sql: str, kind: Array, order: str) -> str:
    """Returns SQL of a sorted list. A list of arrays or structs is sorted by pairs of a sort key and the
    item."""
    if isinstance(kind.element, str):
        return f"list_sort({sql}, {order})"
    pair = (
        f"CASE WHEN deltaic_s IS NOT NULL THEN struct_pack(k := {sort_key('deltaic_s', kind.element)}, s :="
        " deltaic_s) END"
    )
    return (
        f"list_transform(list_sort(list_transform({sql}, lambda deltaic_s: {pair}), {order}), lambda"
        " deltaic_p: deltaic_p.s)"
    )


def _array_sort(arguments: list[Value], zone: Zone) -> Value:
    kind = arguments[0].type
    if isinstance(kind, Array) and not isinstance(kind.element, str) and is_sortable(kind.element):
        return arguments[0].like(_sorted_sql(arguments[0].sql, kind, "'ASC', 'NULLS LAST'"), kind)
    return arguments[0].like(
        f"list_sort({arguments[0].sql}, 'ASC', 'NULLS LAST')", _element(arguments[0], "array_sort")
    )


def _is_in(array: str, element: str) -> str:
    """Returns SQL that is true if an element is in an array; two nulls are equal."""
    nulls = f"len(list_filter({array}, lambda deltaic_n: deltaic_n IS NULL)) > 0"
    return f"(CASE WHEN {element} IS NULL THEN {nulls} ELSE list_contains({array}, {element}) END)"


def _distinct_sql(array: str, plain: bool) -> str:
    """Returns SQL of an array without repetitions: the first occurrence of each element is kept, also of
    null."""
    if plain:
        return (
            f"list_filter({array}, lambda deltaic_e, deltaic_i: list_position({array}, deltaic_e) ="
            " deltaic_i)"
        )
    earlier = _is_in(f"{array}[:deltaic_i - 1]", "deltaic_e")
    return f"list_filter({array}, lambda deltaic_e, deltaic_i: NOT {earlier})"


def _distinct(arguments: list[Value], zone: Zone) -> Value:
    kind = _element(arguments[0], "array_distinct")
    return arguments[0].like(_distinct_sql(arguments[0].sql, False), kind)


def _alike(arguments: list[Value], zone: Zone, what: str) -> tuple[Value, Value]:
    left, right = arguments
    if "void" in (left.type, right.type):
        raise v.mismatch(what, left.type, right.type)
    common = v.sought(what, left.type, right.type)
    return cast(left, common, zone), cast(right, common, zone)


def _set_operation(name: str) -> Callable[[list[Value], Zone], Value]:
    def build(arguments: list[Value], zone: Zone) -> Value:
        left, right = _alike(arguments, zone, name)
        kind = _element(left, name)
        if name == "array_union":
            # a lambda over a list of one list, so that the union is written once
            once = _distinct_sql("deltaic_both", False)
            sql = f"list_transform([{left.sql} || {right.sql}], lambda deltaic_both: {once})[1]"
        else:
            wanted = _is_in(right.sql, "deltaic_x")
            condition = wanted if name == "array_intersect" else f"NOT {wanted}"
            sql = _distinct_sql(f"list_filter({left.sql}, lambda deltaic_x: {condition})", False)
        return v.combine(
            f"(CASE WHEN {left.sql} IS NOT NULL AND {right.sql} IS NOT NULL THEN {sql} END)",
            kind,
            (left, right),
        )

    return build


def _overlap(arguments: list[Value], zone: Zone) -> Value:
    left, right = _alike(arguments, zone, "arrays_overlap")
    _element(left, "arrays_overlap")
    shared = (
        f"len(list_filter({left.sql}, lambda deltaic_e: deltaic_e IS NOT NULL AND list_contains({right.sql},"
        " deltaic_e))) > 0"
    )
    nulls = " OR ".join(
        f"len(list_filter({side.sql}, lambda deltaic_e: deltaic_e IS NULL)) > 0" for side in (left, right)
    )
    sql = (
        f"(CASE WHEN {left.sql} IS NULL OR {right.sql} IS NULL THEN NULL WHEN {shared} THEN true "
        f"WHEN len({left.sql}) = 0 OR len({right.sql}) = 0 THEN false WHEN {nulls} THEN NULL ELSE false END)"
    )
    return v.combine(sql, "boolean", (left, right), nullable=True)


def _extreme(name: str) -> Callable[[list[Value], Zone], Value]:
    def build(arguments: list[Value], zone: Zone) -> Value:
        value = arguments[0]
        kind = _element(value, f"array_{name}")
        sql = f"list_{name}({value.sql})"
        if kind.element in v.FRACTIONAL:  # of 0.0 and -0.0, Spark returns the first
            sql = (
                f"(CASE WHEN {sql} = 0 THEN list_filter({value.sql}, lambda deltaic_e: deltaic_e = 0)[1] ELSE"
                f" {sql} END)"
            )
        return value.like(f"CAST({sql} AS {v.duckdb_type(kind.element)})", kind.element, nullable=True)

    return build


def _slice(arguments: list[Value], zone: Zone) -> Value:
    value, start, length = arguments
    kind = _element(value, "slice") if isinstance(value.type, Array) else None
    if kind is None:
        raise v.mismatch("slice", value.type)
    zero = v.failure("INVALID_PARAMETER_VALUE.START", "'slice starts at 1, or at -1 from the end'")
    negative = v.failure("INVALID_PARAMETER_VALUE.LENGTH", "'the length of a slice is not negative'")
    first = (
        f"(CASE WHEN {start.sql} > 0 THEN {start.sql} ELSE CAST(len({value.sql}) AS INTEGER) + {start.sql} +"
        " 1 END)"
    )
    inside = (
        f"CASE WHEN {first} < 1 OR {first} > len({value.sql}) THEN [] ELSE {value.sql}[{first}:{first} - 1 +"
        f" {length.sql}] END"
    )
    sql = (
        f"(CASE WHEN {value.sql} IS NULL OR {start.sql} IS NULL OR {length.sql} IS NULL THEN NULL WHEN"
        f" {start.sql} = 0 THEN {zero} WHEN {length.sql} < 0 THEN {negative} ELSE {inside} END)"
    )
    return v.combine(f"CAST({sql} AS {v.duckdb_type(kind)})", kind, arguments, raises=True)


def _join(arguments: list[Value], zone: Zone) -> Value:
    value = arguments[0]
    if value.type != "void" and not (isinstance(value.type, Array) and isinstance(value.type.element, str)):
        raise v.mismatch("array_join", value.type)
    value = cast(value, Array("string"), zone)
    separator = literal(arguments[1], "a separator of array_join")
    if any(each.is_constant and each.constant is None for each in arguments):  # DuckDB would use a comma
        return v.combine("CAST(NULL AS VARCHAR)", "string", arguments, nullable=True)
    if len(arguments) > 2:
        kept = f"list_transform({value.sql}, lambda deltaic_e: coalesce(deltaic_e, {arguments[2].sql}))"
    else:
        kept = f"list_filter({value.sql}, lambda deltaic_e: deltaic_e IS NOT NULL)"
    return v.combine(f"array_to_string({kept}, {separator.sql})", "string", (value, *arguments[1:]))


def _flatten(arguments: list[Value], zone: Zone) -> Value:
    value = arguments[0]
    if not isinstance(value.type, Array) or not isinstance(value.type.element, Array):
        raise v.mismatch("flatten", value.type)
    nulls = f"len(list_filter({value.sql}, lambda deltaic_e: deltaic_e IS NULL)) > 0"
    inner = value.type.element
    return value.like(
        f"CAST((CASE WHEN {nulls} THEN NULL ELSE flatten({value.sql}) END) AS {v.duckdb_type(inner)})",
        inner,
        nullable=True,
    )


def _repeat(arguments: list[Value], zone: Zone) -> Value:
    item, count = arguments
    v.check_storable("an array of", [item])
    kind = Array(item.type, item.nullable)
    times = f"range(1, CAST({count.sql} AS BIGINT) + 1)"
    sql = (
        f"(CASE WHEN {count.sql} IS NOT NULL THEN list_transform({times}, lambda deltaic_e: {item.sql}) END)"
    )
    # Spark evaluates the item even for zero repetitions
    if item.raises and not (item.foldable and count.is_constant):
        sql = f"(CASE WHEN {item.sql} IS NULL THEN {sql} ELSE {sql} END)"
    return v.combine(f"CAST({sql} AS {v.duckdb_type(kind)})", kind, arguments, nullable=count.nullable)


def _days(arguments: list[Value]) -> Value:
    """Returns a sequence of dates: day by day, or in steps of a literal number of days."""
    start, stop, *step = arguments
    micros = step[0].constant if step and isinstance(step[0].constant, int) else None
    by = (
        str(micros // 86_400_000_000)
        if micros
        else f"(CASE WHEN {start.sql} <= {stop.sql} THEN 1 ELSE -1 END)"
    )
    days = (
        f"generate_series(CAST(0 AS BIGINT), CAST(subtract({stop.sql}, {start.sql}) AS BIGINT), CAST({by} AS"
        " BIGINT))"
    )
    wrong = v.failure(
        "_LEGACY_ERROR_TEMP_3235", "'the step of a sequence does not lead from its start to its stop'"
    )
    away = f"({by} > 0 AND {start.sql} > {stop.sql}) OR ({by} < 0 AND {start.sql} < {stop.sql})"
    sql = (
        f"(CASE WHEN {start.sql} IS NULL OR {stop.sql} IS NULL THEN NULL WHEN {away} THEN {wrong} ELSE"
        f" list_transform({days}, lambda deltaic_i: CAST(add({start.sql}, CAST(deltaic_i AS INTEGER)) AS"
        " DATE)) END)"
    )
    return v.combine(sql, Array("date", False), arguments, raises=bool(step))


def _sequence(arguments: list[Value], zone: Zone) -> Value:
    if any(argument.type in v.TEMPORAL for argument in arguments[:2]):
        interval = arguments[2] if len(arguments) > 2 else None
        of_dates = all(argument.type == "date" for argument in arguments[:2])
        if of_dates and (
            interval is None or (interval.type == v.DAYS and interval.is_constant and interval.constant)
        ):
            return _days(arguments)
        return sequences.of_times(arguments, zone)
    if all(argument.type == "void" for argument in arguments):
        raise v.mismatch("sequence", *(argument.type for argument in arguments))
    if not all(argument.type in (*v.INTEGRAL, "void") for argument in arguments):
        raise v.unsupported("function sequence", *(argument.type for argument in arguments))
    common = v.common_of(arguments, "sequence")
    start, stop, *step = (cast(argument, common, zone) for argument in arguments)
    by = step[0].sql if step else f"(CASE WHEN {start.sql} <= {stop.sql} THEN 1 ELSE -1 END)"
    wrong = v.failure(
        "_LEGACY_ERROR_TEMP_3235", "'the step of a sequence does not lead from its start to its stop'"
    )
    valid = (
        f"({by} > 0 AND {start.sql} <= {stop.sql}) OR ({by} < 0 AND {start.sql} >= {stop.sql}) OR ({by} = 0"
        f" AND {start.sql} = {stop.sql})"
    )
    missing = " OR ".join(f"{argument.sql} IS NULL" for argument in (start, stop, *step))
    ends = f"(CAST({stop.sql} AS HUGEINT) - {start.sql})"
    most = f"abs({ends} // CAST({by} AS HUGEINT)) >= {sequences.MOST_ITEMS}"
    numbers = (
        f"generate_series(CAST({start.sql} AS BIGINT), CAST({stop.sql} AS BIGINT), CAST({by} AS BIGINT))"
    )
    sql = (
        f"(CASE WHEN {missing} THEN NULL WHEN NOT ({valid}) THEN {wrong} WHEN {start.sql} = {stop.sql} THEN"
        f" [{start.sql}] WHEN {most} THEN {sequences.TOO_MANY} ELSE {numbers} END)"
    )
    kind = Array(common, False)
    return v.combine(f"CAST({sql} AS {v.duckdb_type(kind)})", kind, arguments, raises=True)


def _compact(arguments: list[Value], zone: Zone) -> Value:
    value = arguments[0]
    kind = _element(value, "array_compact")
    return value.like(
        f"list_filter({value.sql}, lambda deltaic_e: deltaic_e IS NOT NULL)", Array(kind.element, False)
    )


def _get(arguments: list[Value], zone: Zone) -> Value:
    value, index = arguments
    if not isinstance(value.type, Array):
        raise v.mismatch("get", value.type)
    sql = f"(CASE WHEN {index.sql} >= 0 THEN list_extract({value.sql}, CAST({index.sql} AS BIGINT) + 1) END)"
    return v.combine(sql, value.type.element, arguments, nullable=True)


def _reverse(arguments: list[Value], zone: Zone) -> Value:
    return arguments[0].like(f"list_reverse({arguments[0].sql})", arguments[0].type)


# --- maps


def _map(value: Value, what: str) -> Map:
    if not isinstance(value.type, Map):
        raise v.mismatch(what, value.type)
    return value.type


def _keys(arguments: list[Value], zone: Zone) -> Value:
    return arguments[0].like(
        f"map_keys({arguments[0].sql})", Array(_map(arguments[0], "map_keys").key, False)
    )


def _values(arguments: list[Value], zone: Zone) -> Value:
    kind = _map(arguments[0], "map_values")
    return arguments[0].like(f"map_values({arguments[0].sql})", Array(kind.value, kind.value_contains_null))


def _entries(arguments: list[Value], zone: Zone) -> Value:
    kind = _map(arguments[0], "map_entries")
    entry = Struct([Field("key", kind.key, False), Field("value", kind.value, kind.value_contains_null)])
    return arguments[0].like(
        f"CAST(map_entries({arguments[0].sql}) AS {v.duckdb_type(Array(entry))})", Array(entry, False)
    )


def _contains_key(arguments: list[Value], zone: Zone) -> Value:
    value, key = arguments
    kind = _map(value, "map_contains_key")
    if key.type == "void":
        raise v.mismatch("map_contains_key", value.type, key.type)
    if v.sought("map_contains_key", kind.key, key.type) != kind.key:
        raise v.unsupported("function map_contains_key", value.type, key.type)
    key = cast(key, kind.key, zone)
    sql = (
        f"(CASE WHEN {value.sql} IS NOT NULL AND {key.sql} IS NOT NULL THEN"
        f" list_contains(map_keys({value.sql}), {key.sql}) END)"
    )
    return v.combine(sql, "boolean", (value, key))


def _map_concat(arguments: list[Value], zone: Zone) -> Value:
    if any(argument.type == "void" for argument in arguments):
        raise v.mismatch("map_concat", *(argument.type for argument in arguments))
    common = v.common_of(arguments, "map_concat")
    parts = [cast(argument, common, zone) for argument in arguments]
    kind = _map(parts[0], "map_concat")
    keys = " || ".join(f"map_keys({part.sql})" for part in parts)
    items = " || ".join(f"map_values({part.sql})" for part in parts)
    key_array = v.combine(f"({keys})", Array(kind.key, False), parts)
    return collections.map_of(
        key_array, v.combine(f"({items})", Array(kind.value, kind.value_contains_null), parts), paired=True
    )


def _from_entries(arguments: list[Value], zone: Zone) -> Value:
    value = arguments[0]
    if (
        not isinstance(value.type, Array)
        or not isinstance(value.type.element, Struct)
        or len(value.type.element.fields) != 2
    ):
        raise v.mismatch("map_from_entries", value.type)
    key, item = value.type.element.fields
    nulls = f"len(list_filter({value.sql}, lambda deltaic_e: deltaic_e IS NULL)) > 0"
    sides = [
        f"list_transform({value.sql}, lambda deltaic_e: struct_extract(deltaic_e, {v.text(field.name)}))"
        for field in (key, item)
    ]
    keys = value.like(sides[0], Array(key.type, key.nullable))
    made = collections.map_of(keys, value.like(sides[1], Array(item.type, item.nullable)), paired=True)
    return made.like(f"(CASE WHEN {nulls} THEN NULL ELSE {made.sql} END)", made.type, nullable=True)


def _str_to_map(arguments: list[Value], zone: Zone) -> Value:
    pair = constant_text(arguments[1], "a separator of str_to_map") if len(arguments) > 1 else ","
    key = constant_text(arguments[2], "a separator of str_to_map") if len(arguments) > 2 else ":"
    if any(character in r"\.[]{}()*+?^$|" for character in pair + key) or not pair or not key:
        raise v.unsupported(f"str_to_map with the separators {pair!r} and {key!r}")
    parts = f"string_split({arguments[0].sql}, {v.text(pair)})"
    keys = f"list_transform({parts}, lambda deltaic_e: split_part(deltaic_e, {v.text(key)}, 1))"
    rest = (
        f"CASE WHEN contains(deltaic_e, {v.text(key)}) THEN substring(deltaic_e, strpos(deltaic_e,"
        f" {v.text(key)}) + {len(key)}) END"
    )
    items = f"list_transform({parts}, lambda deltaic_e: {rest})"
    key_array, item_array = (
        arguments[0].like(sql, Array("string", nulls)) for sql, nulls in ((keys, False), (items, True))
    )
    return collections.map_of(key_array, item_array, paired=True)


register("size cardinality", "collection", "integer", _size)
register("array_size", "array<T>", "integer", _size)
register("array_contains", "any, any", "boolean", _contains)
register("array_position", "any, any", "long", _position)
register("array_remove", "any, any", "T", _remove)
register("array_append", "any, any", "T", _append(False))
register("array_prepend", "any, any", "T", _append(True))
register("sort_array", "array", "T", _sorted)
register("sort_array", "array, boolean", "T", _sorted)
register("array_sort", "any", "T", _array_sort)
register("array_distinct", "array", "T", _distinct)
for _name in ("array_union", "array_intersect", "array_except"):
    register(_name, "any, any", "T", _set_operation(_name))
register("arrays_overlap", "any, any", "boolean", _overlap)
register("array_min", "array", "T", _extreme("min"))
register("array_max", "array", "T", _extreme("max"))
register("slice", "array, integer, integer", "T", _slice)
register("array_join", "array<T>, =string", "string", _join)
register("array_join", "array<T>, =string, =string", "string", _join)
register("flatten", "any", "T", _flatten)
register("array_repeat", "any, =integer", "array<T>", _repeat)
register("sequence", "any, any", "array<T>", _sequence)
register("sequence", "any, any, any", "array<T>", _sequence)
register("array_compact", "array", "T", _compact)
register("get", "any, integer", "T", _get)
register("reverse", "array<T>", "array<T>", _reverse)
register("map_keys", "map", "array<K>", _keys)
register("map_values", "map", "array<V>", _values)
register("map_entries", "map", "array<struct>", _entries)
register("map_contains_key", "any, any", "boolean", _contains_key)
register("map_concat", "any, any...", "map<K,V>", _map_concat)
register("map_from_entries", "any", "map<K,V>", _from_entries)
register("str_to_map", "=string", "map<string,string>", _str_to_map)
register("str_to_map", "=string, =string", "map<string,string>", _str_to_map)
register("str_to_map", "=string, =string, =string", "map<string,string>", _str_to_map)
