"""Functions on text."""

from __future__ import annotations

from deltaic.relation.forms import form

_ASCII = "strlen({0}) = length({0})"

form("upper ucase", "string", "string", f"CASE WHEN {_ASCII} THEN upper({{0}}) ELSE deltaic_upper({{0}}) END")
form("lower lcase", "string", "string", f"CASE WHEN {_ASCII} THEN lower({{0}}) ELSE deltaic_lower({{0}}) END")
form("length char_length character_length len", "string", "integer", "length({0})")
form("length char_length character_length len", "binary", "integer", "octet_length({0})")
form("octet_length", "string", "integer", "strlen({0})")
form("octet_length", "binary", "integer", "octet_length({0})")

