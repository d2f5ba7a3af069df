"""SQL functions on variants: parse_json, schema_of_variant, ... Kernels read and write the bytes of variants
(`rust/src/expressions/variant.rs`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal
from deltaic.spark_sql.functions.json_text import schema_argument
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.nested import SPECIAL
from deltaic.spark_sql.functions.registry import Build, form, register
from deltaic.spark_sql.values import Value
from deltaic.spark_sql.variant_casts import from_variant, to_variant

if TYPE_CHECKING:
    from deltaic.spark_sql.translation import Translator

form(
    "parse_json",
    "string",
    "variant",
    kernel_sql("parse_json", "variant", "{0}", "0"),
    native=True,
    raises=True,
)
form(
    "try_parse_json",
    "string",
    "variant",
    kernel_sql("parse_json", "variant", "{0}", "1"),
    native=True,
    nullable=True,
)
form("is_variant_null", "=variant", "boolean", kernel="variant_is_null", nullable=False)
form("is_valid_variant", "=variant", "boolean", kernel="variant_is_valid")
form("schema_of_variant", "=variant", "string", kernel="variant_schema")


def _object(arguments: list[Value], zone: Zone) -> Value:
    if isinstance(arguments[0].type, str):
        raise v.mismatch("to_variant_object", arguments[0].type)
    return to_variant(arguments[0], objects=True)


register("to_variant_object", "any", "variant", _object)


def _change(name: str) -> Build:
    """Builds a function that puts a value at a path: (variant, path, value [, create_if_missing])."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        value, path, new, *rest = arguments
        create = _flag(name, "create_if_missing", rest)
        new = cast(new, "variant", zone)
        sql = kernel_sql(
            "variant_change",
            "variant",
            value.sql,
            path.sql,
            new.sql,
            v.text(name),
            "0" if create is False else "1",
        )
        return _null_if_unknown(
            v.combine(sql, "variant", [value, path, new], nullable=True, raises=True), create
        )

    return build


def _flag(name: str, parameter: str, arguments: list[Value]) -> bool | None:
    """The value of an optional constant argument, which is true by default."""
    if not arguments:
        return True
    if not arguments[0].is_constant:
        raise InvalidArgumentError(
            f"[DATATYPE_MISMATCH.NON_FOLDABLE_INPUT] {parameter} of {name} is a literal"
        )
    return None if arguments[0].constant is None else bool(arguments[0].constant)


def _null_if_unknown(value: Value, flag: bool | None) -> Value:
    return value if flag is not None else literal(None, "variant")


for _name in ("variant_insert", "variant_set", "variant_array_append"):
    for _each in (_name, f"try_{_name}"):
        register(_each, "=variant, string, any", "variant", _change(_each))
        if _name == "variant_set":
            register(_each, "=variant, string, any, boolean", "variant", _change(_each))


def _delete(arguments: list[Value], zone: Zone) -> Value:
    value, *paths = arguments
    if not paths:
        raise InvalidArgumentError(
            "[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] variant_delete takes a variant and paths", found=1
        )
    sql = value.sql
    for path in paths:
        sql = kernel_sql("variant_delete", "variant", sql, path.sql)
    return v.combine(sql, "variant", arguments, nullable=value.nullable, raises=True)


def _strip_nulls(arguments: list[Value], zone: Zone) -> Value:
    items = _flag("variant_strip_nulls", "include_arrays", arguments[1:])
    sql = kernel_sql("variant_strip_nulls", "variant", arguments[0].sql, "0" if items is False else "1")
    return _null_if_unknown(v.combine(sql, "variant", arguments[:1], raises=True), items)


register("variant_delete", "=variant, string...", "variant", _delete)
register("variant_strip_nulls", "=variant", "variant", _strip_nulls)
register("variant_strip_nulls", "=variant, boolean", "variant", _strip_nulls)


def _get(*, safe: bool) -> Callable[[Translator, Any], Value]:
    """Builds variant_get(variant, path [, type]), or try_variant_get with `safe`."""

    def build(translator: Translator, node: Any) -> Value:
        name = "try_variant_get" if safe else "variant_get"
        if not 2 <= len(node.expressions) <= 3:
            raise InvalidArgumentError(
                f"[WRONG_NUM_ARGS] {name} takes two or three arguments", found=len(node.expressions)
            )
        values = [translator.value(each) for each in node.expressions]
        if values[0].type not in ("variant", "void"):
            raise v.mismatch(name, values[0].type)
        value, path = cast(values[0], "variant", translator.zone), cast(values[1], "string", translator.zone)
        found = v.combine(
            kernel_sql("variant_get", "variant", value.sql, path.sql),
            "variant",
            [value, path],
            nullable=True,
            raises=True,
        )
        if len(values) == 2:
            return found
        target = schema_argument(node.expressions[2], values[2], name)
        if target == "variant":
            return found
        return from_variant(found, target, translator.zone, safe=safe, within=(value.sql, path.sql))

    return build


SPECIAL |= {"variant_get": _get(safe=False), "try_variant_get": _get(safe=True)}
