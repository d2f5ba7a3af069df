"""SQL functions on URLs: parse_url, url_encode, url_decode and their `try_` forms."""

from __future__ import annotations

from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.registry import form


def _parse(key: str, safe: int) -> str:
    return kernel_sql("parse_url", "string", "{0}", "{1}", key, str(safe))


_NO_KEY = "CAST(NULL AS VARCHAR)"
form("url_encode", "string", "string", kernel="url_encode")
form(
    "url_decode",
    "string",
    "string",
    kernel_sql("url_decode", "string", "{0}", "0"),
    native=True,
    nullable=True,
    raises=True,
)
form(
    "try_url_decode",
    "string",
    "string",
    kernel_sql("url_decode", "string", "{0}", "1"),
    native=True,
    nullable=True,
)
form("parse_url", "=string, =string", "string", _parse(_NO_KEY, 0), native=True, nullable=True, raises=True)
form("try_parse_url", "=string, =string", "string", _parse(_NO_KEY, 1), native=True, nullable=True)
_KEYED = "CASE WHEN {2} IS NOT NULL THEN " + "{} END"
form(
    "parse_url",
    "=string, =string, =string",
    "string",
    _KEYED.replace("{}", _parse("{2}", 0)),
    native=True,
    nullable=True,
    raises=True,
)
form(
    "try_parse_url",
    "=string, =string, =string",
    "string",
    _KEYED.replace("{}", _parse("{2}", 1)),
    native=True,
    nullable=True,
)
