"""Functions on variants. Kernels parse and write their bytes (`rust/src/expressions/variant.rs`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.functions.json_text import schema_argument
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.nested import SPECIAL
from deltaic.spark_sql.functions.registry import form, register
from deltaic.spark_sql.values import Value
from deltaic.spark_sql.variant_casts import from_variant, to_variant

if TYPE_CHECKING:
    from deltaic.spark_sql.translation import Translator

form("parse_json", "string", "variant", kernel_sql("parse_json", "variant", "{0}", "0"), native=True, raises=True)
form("try_parse_json", "string", "variant", kernel_sql("parse_json", "variant", "{0}", "1"), native=True, nullable=True)
form("is_variant_null", "=variant", "boolean", kernel="variant_is_null", nullable=False)
form("is_valid_variant", "=variant", "boolean", kernel="variant_is_valid")
form("schema_of_variant", "=variant", "string", kernel="variant_schema")


def _object(arguments: list[Value], zone: Zone) -> Value:
    if isinstance(arguments[0].type, str):
        raise v.mismatch("to_variant_object", arguments[0].type)
    return to_variant(arguments[0], objects=True)


register("to_variant_object", "any", "variant", _object)


def _get(*, safe: bool) -> Callable[[Translator, Any], Value]:
    """Builds variant_get(variant, path [, type]), or try_variant_get with `safe`."""

    def build(translator: Translator, node: Any) -> Value:
        name = "try_variant_get" if safe else "variant_get"
        if not 2 <= len(node.expressions) <= 3:
            raise InvalidArgumentError(f"[WRONG_NUM_ARGS] {name} takes two or three arguments", found=len(node.expressions))
        values = [translator.value(each) for each in node.expressions]
        if values[0].type not in ("variant", "void"):
            raise v.mismatch(name, values[0].type)
        value, path = cast(values[0], "variant", translator.zone), cast(values[1], "string", translator.zone)
        found = v.combine(kernel_sql("variant_get", "variant", value.sql, path.sql), "variant", [value, path], nullable=True, raises=True)
        if len(values) == 2:
            return found
        target = schema_argument(node.expressions[2], values[2], name)
        if target == "variant":
            return found
        return from_variant(found, target, translator.zone, safe=safe, within=(value.sql, path.sql))

    return build


SPECIAL |= {"variant_get": _get(safe=False), "try_variant_get": _get(safe=True)}
