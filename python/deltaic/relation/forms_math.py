"""Functions on numbers."""

from __future__ import annotations

from deltaic.relation import operators
from deltaic.relation import values as v
from deltaic.relation.casts import Zone, cast
from deltaic.relation.forms import form, register
from deltaic.relation.values import Value


def _abs(arguments: list[Value], zone: Zone) -> Value:
    value = arguments[0] if v.is_numeric(arguments[0].type) else cast(arguments[0], "double", zone)
    return value.like(f"CAST(abs({value.sql}) AS {v.duckdb_type(value.type)})", value.type, raises=value.raises or value.type in v.INTEGRAL)


def _modulo(arguments: list[Value], zone: Zone) -> Value:
    return operators.arithmetic("%", arguments[0], arguments[1], zone)


register("abs", "numeric", "T", _abs)
register("abs", "double", "double", _abs)
register("mod", "any, any", "T", _modulo)
register("negative", "any", "T", lambda arguments, zone: operators.negative(arguments[0], zone))
register("positive", "numeric", "T", lambda arguments, zone: arguments[0])

for _name, _sql in {
    "bit &": "({0} & {1})",
    "bit |": "({0} | {1})",
    "bit ^": "xor({0}, {1})",
}.items():
    for _kind in v.INTEGRAL:
        form(_name, f"{_kind}, {_kind}", _kind, _sql)
for _kind in v.INTEGRAL:
    form("bit ~", _kind, _kind, "(~ {0})")
