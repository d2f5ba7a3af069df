"""Functions on JSON and CSV text. Kernels parse and write the text (`rust/src/expressions/json.rs`,
`csv.rs`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from deltaic import _core
from deltaic.errors import InvalidArgumentError
from deltaic.protocol.evolution import nullable_everywhere
from deltaic.protocol.schema import Array, DataType, Field, Map, Struct, type_to_json
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.nested import SPECIAL, struct_of
from deltaic.spark_sql.functions.registry import call, constant_text, form, register, takes_no_untyped_null
from deltaic.spark_sql.scope import fields
from deltaic.spark_sql.values import Value

if TYPE_CHECKING:
    from deltaic.spark_sql.translation import Translator

form("get_json_object", "=string, =string", "string", kernel="get_json_object", nullable=True)
form("json_array_length", "=string", "integer", kernel="json_array_length", nullable=True)
form("json_object_keys", "=string", "array<string>", kernel="json_object_keys", nullable=True)

_WRITTEN = (*v.INTEGRAL, *v.FRACTIONAL, "string", "boolean", "date", "timestamp", "timestamp_ntz", "void")
_KEYS = (*v.INTEGRAL, "string", "boolean")


def _is_written(kind: DataType) -> bool:
    """True if the kernel writes values of a type as Spark does."""
    if isinstance(kind, Array):
        return _is_written(kind.element)
    if isinstance(kind, Map):
        return kind.key in _KEYS and _is_written(kind.value)
    if isinstance(kind, Struct):
        return all(_is_written(field.type) for field in kind.fields)
    decimal = v.decimal_parts(kind)
    # Java writes small numbers of a larger scale with an exponent
    return kind in _WRITTEN or (decimal is not None and decimal[1] <= 6)


def _to_json(translator: Translator, node: Any) -> Value:
    value, options = _arguments(translator, node, "to_json", 1, (*_FORMATS, "ignoreNullFields"))
    if value[0].type == "variant" and not options:
        return value[0].like(
            kernel_sql("variant_to_json", "string", value[0].sql, v.text(translator.zone.name)),
            "string",
            raises=True,
        )
    if value[0].type == "void":
        return literal(None, "string")
    if isinstance(value[0].type, str):
        raise v.mismatch("to_json", value[0].type)
    written = with_formats(value[0], options, translator.zone)
    if not _is_written(written.type):
        raise v.unsupported("function to_json", written.type)
    nulls = "0" if options.get("ignoreNullFields", "true").lower() == "true" else "1"
    return written.like(
        kernel_sql("to_json", "string", v.text(translator.zone.name), written.sql, nulls), "string"
    )


_READ = ("byte", "short", "integer", "long", "float", "double", "string", "boolean")
_AS_TEXT = ("date", "timestamp", "timestamp_ntz")


def _is_read(kind: DataType) -> bool:
    """True if the kernel reads values of a type as Spark does."""
    if isinstance(kind, Array):
        return _is_read(kind.element) and not _is_cast(kind.element)
    if isinstance(kind, Struct):
        return len({field.name.lower() for field in kind.fields}) == len(kind.fields) and all(
            _is_read(field.type) for field in kind.fields
        )
    if isinstance(kind, Map):
        return kind.key == "string" and _is_read(kind.value) and not _is_cast(kind.value)
    return kind in _READ or _is_cast(kind)


def _is_cast(kind: DataType) -> bool:
    """True if the kernel returns values of a type as text, which DuckDB's SQL casts to the type."""
    return kind in _AS_TEXT or v.decimal_parts(kind) is not None


def _as_read(kind: DataType) -> DataType:
    """Returns the type that the kernel's answer has for a type: `string` in place of each type of
    `_is_cast`."""
    if isinstance(kind, Array):
        return Array(_as_read(kind.element), True)
    if isinstance(kind, Map):
        return Map(kind.key, _as_read(kind.value), True)
    if isinstance(kind, Struct):
        return Struct(Field(field.name, _as_read(field.type), True) for field in kind.fields)
    return "string" if _is_cast(kind) else kind


def _schema(text: str) -> DataType:
    """Parses a schema in DDL: a type (`struct<a int>`), or the fields of a struct (`a int, b string`)."""
    from sqlglot import parse_one
    from sqlglot.errors import ParseError

    from deltaic.spark_sql.types import data_type

    for whole in (text, f"STRUCT<{text}>"):
        try:
            tree = parse_one(f"CAST(NULL AS {whole})", read="databricks")
        except ParseError:
            continue
        if isinstance(tree, exp.Cast) and not (
            whole == text and tree.to.this == exp.DataType.Type.USERDEFINED
        ):
            return data_type(tree.to)
    raise InvalidArgumentError(
        "the schema is not valid", found=text, expected="a schema such as 'a INT, b STRING'"
    )


_FORMATS = {"dateFormat": "date", "timestampFormat": "timestamp", "timestampNTZFormat": "timestamp_ntz"}
"""Option -> the type whose values follow the pattern in the option."""


def _arguments(
    translator: Translator, node: Any, name: str, count: int, known: Iterable[str]
) -> tuple[list[Value], dict[str, str]]:
    """Returns the first `count` arguments of a call, and the options after them: of `map('sep', ';')`,
    `{"sep": ";"}`. Names of options match `known` in any case. Raises UnsupportedFeatureError for an option
    that is not in `known`."""
    if not count <= len(node.expressions) <= count + 1:
        raise InvalidArgumentError(
            f"[WRONG_NUM_ARGS] {name} takes {count} to {count + 1} arguments", found=len(node.expressions)
        )
    values = [translator.value(each) for each in node.expressions[:count]]
    if len(node.expressions) == count:
        return values, {}
    options = node.expressions[count]
    parts = (
        [each.name for each in options.expressions if each.is_string]
        if isinstance(options, exp.Anonymous)
        else []
    )
    if (
        not parts
        or len(parts) != len(options.expressions)
        or str(options.this).lower() != "map"
        or len(parts) % 2
    ):
        raise v.unsupported(f"{name} with options that are no map of literals")
    names = {option.lower(): option for option in known}
    for option in parts[::2]:
        if option.lower() not in names:
            raise v.unsupported(f"{name} with the option {option}")
    return values, {
        names[option.lower()]: value for option, value in zip(parts[::2], parts[1::2], strict=True)
    }


def with_formats(value: Value, options: Mapping[str, str], zone: Zone) -> Value:
    """Returns a struct with its dates and timestamps formatted as text, by the patterns in `options`. Fields
    whose type has no pattern there are unchanged."""
    patterns = {kind: options[option] for option, kind in _FORMATS.items() if option in options}
    if not patterns:
        return value
    if not isinstance(value.type, Struct):
        raise v.unsupported("the pattern of dates or timestamps of", value.type)
    parts = []
    for field in value.type.fields:
        part = fields(value, [field.name])
        pattern = patterns.get(field.type) if isinstance(field.type, str) else None
        if pattern is not None:
            # a local time may be missing in the session's zone
            clock = zone if field.type == "timestamp" else Zone("UTC")
            part = call("date_format", [cast(part, "timestamp", clock), literal(pattern, "string")], clock)
        elif not isinstance(field.type, str):
            raise v.unsupported("the pattern of dates or timestamps in", field.type)
        parts.append(part)
    return _known(value, struct_of([field.name for field in value.type.fields], parts))


def _known(value: Value, made: Value) -> Value:
    """Returns the struct `made`, but null where `value` is null."""
    return v.combine(
        f"(CASE WHEN {value.sql} IS NOT NULL THEN {made.sql} END)",
        made.type,
        [value, made],
        nullable=value.nullable,
    )


def read_struct(
    kernel: Callable[[str], str], value: Value, kind: DataType, options: Mapping[str, str], zone: Zone
) -> Value:
    """Returns the value of type `kind` that a kernel parses from the text `value`. The kernel returns JSON
    text with just the fields of `kind`, each of its type or null; DuckDB casts this JSON to the type."""
    patterns = {name: options[option] for option, name in _FORMATS.items() if option in options}
    plain = kind
    if patterns and isinstance(kind, Struct):
        plain = Struct(
            field.with_(type="string") if field.type in patterns else field for field in kind.fields
        )
    read = _as_read(plain)
    kept = kernel(json.dumps(type_to_json(plain)))
    made = value.like(f"CAST(json({kept}) AS {v.duckdb_type(read)})", read, nullable=True, raises=True)
    made = made if read == plain else cast(made, plain, zone, safe=True)
    if plain == kind or not isinstance(kind, Struct):
        return made
    parts = []
    for field in kind.fields:
        part = fields(made, [field.name])
        if isinstance(field.type, str) and field.type in patterns:
            name = "try_to_date" if field.type == "date" else "try_to_timestamp"
            part = cast(call(name, [part, literal(patterns[field.type], "string")], zone), field.type, zone)
        parts.append(part)
    return v.combine(
        _known(made, struct_of([field.name for field in kind.fields], parts)).sql,
        kind,
        [made],
        nullable=True,
        raises=True,
    )


def _without_bad_record(kind: DataType, name: str) -> None:
    """Raises UnsupportedFeatureError if a schema has the field that Spark fills with the text of a bad
    record."""
    inner = kind.element if isinstance(kind, Array) else kind
    if isinstance(inner, Struct) and any(field.name == "_corrupt_record" for field in inner.fields):
        raise v.unsupported(f"function {name} with the field _corrupt_record in its schema")


def schema_argument(node: Any, value: Value, name: str) -> DataType:
    """Returns the schema that an argument gives: as text in DDL, or as a call of `schema_of_json` or
    `schema_of_csv` with a literal."""
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in ("schema_of_json", "schema_of_csv"):
        return _schema(_schema_text(str(node.this).lower(), node))
    return _schema(constant_text(value, f"a schema of {name}"))


def _schema_text(name: str, node: Any) -> str:
    import pyarrow as pa

    texts = [each.name for each in node.expressions if each.is_string]
    if len(texts) != 1 or len(node.expressions) != 1:
        raise v.unsupported(f"{name} with options in place of a schema")
    more = [pa.array([CSV_OPTIONS])] if name == "schema_of_csv" else []
    return str(_core.evaluate_kernel([pa.array([name]), pa.array(texts), *more])[0])


def _from_json(translator: Translator, node: Any) -> Value:
    values, options = _arguments(translator, node, "from_json", 2, (*_FORMATS, "mode"))
    kind = nullable_everywhere(schema_argument(node.expressions[1], values[1], "from_json"))
    _without_bad_record(kind, "from_json")
    if (
        isinstance(kind, str)
        or not _is_read(kind)
        or options.get("mode", "PERMISSIVE").upper() != "PERMISSIVE"
    ):
        raise v.unsupported("function from_json with the schema or mode", kind)
    text = cast(values[0], "string", translator.zone)
    return read_struct(
        lambda schema: kernel_sql("from_json", "string", text.sql, v.text(schema)),
        text,
        kind,
        options,
        translator.zone,
    )


def _schema_of_json(arguments: list[Value], zone: Zone) -> Value:
    text = constant_text(arguments[0], "the text of schema_of_json")
    return arguments[0].like(kernel_sql("schema_of_json", "string", v.text(text)), "string", nullable=False)


# --- CSV

_CSV = {
    "sep": ",",
    "quote": '"',
    "escape": "\\",
    "nullValue": "",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
CSV_OPTIONS = json.dumps(_CSV)
"""Default options of reading CSV, as JSON."""


def _csv_options(options: dict[str, str], *, writes: bool = False) -> str:
    defaults = {**_CSV, "quoteAll": "false"}
    if writes:
        defaults |= {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
    if "delimiter" in options:
        options = {"sep": options["delimiter"], **options}
    chosen = {name: options.get(name, default) for name, default in defaults.items()}
    chosen |= {
        name: chosen[name].lower()
        for name in ("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "quoteAll")
    }
    if any(len(chosen[name]) != 1 for name in ("sep", "quote", "escape")):
        raise v.unsupported("CSV with a separator, quote or escape of several characters or none")
    return v.text(json.dumps(chosen))


def _from_csv(translator: Translator, node: Any) -> Value:
    values, options = _arguments(translator, node, "from_csv", 2, (*_CSV, *_FORMATS, "delimiter", "mode"))
    kind = nullable_everywhere(schema_argument(node.expressions[1], values[1], "from_csv"))
    if not isinstance(kind, Struct):
        raise InvalidArgumentError(
            "[INVALID_SCHEMA.NON_STRUCT_TYPE] a schema of from_csv is a struct", found=v.type_text(kind)
        )
    _without_bad_record(kind, "from_csv")
    if (
        not all(isinstance(field.type, str) for field in kind.fields)
        or not _is_read(kind)
        or options.get("mode", "PERMISSIVE") != "PERMISSIVE"
    ):
        raise v.unsupported("function from_csv with the schema or mode", kind)
    text, format_ = cast(values[0], "string", translator.zone), _csv_options(options)
    return read_struct(
        lambda schema: kernel_sql("from_csv", "string", text.sql, v.text(schema), format_),
        text,
        kind,
        options,
        translator.zone,
    )


def _schema_of_csv(translator: Translator, node: Any) -> Value:
    values, options = _arguments(translator, node, "schema_of_csv", 1, (*_CSV, "delimiter"))
    text = constant_text(values[0], "the text of schema_of_csv")
    sql = kernel_sql("schema_of_csv", "string", v.text(text), _csv_options(options))
    return values[0].like(sql, "string", nullable=False)


def _to_csv(translator: Translator, node: Any) -> Value:
    (value,), options = _arguments(translator, node, "to_csv", 1, (*_CSV, *_FORMATS, "delimiter", "quoteAll"))
    zone = translator.zone
    if value.type == "void":
        return literal(None, "string")
    if not isinstance(value.type, Struct):
        raise v.mismatch("to_csv", value.type)
    written = with_formats(value, options, zone)
    if not _is_written(written.type) or not _is_flat(written.type):
        raise v.unsupported("function to_csv", written.type)
    sql = kernel_sql("to_csv", "string", v.text(zone.name), _csv_options(options, writes=True), written.sql)
    return written.like(sql, "string", nullable=True)


def _is_flat(kind: DataType) -> bool:
    return isinstance(kind, Struct) and all(isinstance(field.type, str) for field in kind.fields)


takes_no_untyped_null("schema_of_json", "=void")
register("schema_of_json", "string", "string", _schema_of_json)
SPECIAL |= {
    "from_json": _from_json,
    "to_json": _to_json,
    "from_csv": _from_csv,
    "to_csv": _to_csv,
    "schema_of_csv": _schema_of_csv,
}
