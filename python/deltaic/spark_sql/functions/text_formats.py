"""Functions that format values as text and parse numbers: format_string with a literal format, format_number,
to_char, to_number, quote, typeof."""

from __future__ import annotations

import re

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.registry import Build, call, constant_text, form, register
from deltaic.spark_sql.operators import scaled
from deltaic.spark_sql.values import Value

_DIRECTIVE = re.compile(r"%([-0+, ]*)([1-9][0-9]*)?(?:\.([0-9]+))?([a-zA-Z%])")
_WIDE = "[^\\x{10000}-\\x{10FFFF}]"
"""Matches one character of a single UTF-16 unit. Java counts any other character as two."""


def _format_string(arguments: list[Value], zone: Zone) -> Value:
    """Builds `format_string(format, …)` with the directives %s %d %x %f %% %n of `java.util.Formatter`. A
    null is formatted as `null`."""
    pattern, rest = constant_text(arguments[0], "a format"), list(arguments[1:])
    parts, end = [], 0
    for match in _DIRECTIVE.finditer(pattern):
        parts.append(v.text(pattern[end : match.start()]))
        end = match.end()
        if match[4] in "%n" and not (match[1] or match[2] or match[3]):
            parts.append(v.text("%" if match[4] == "%" else "\n"))
            continue
        if not rest:
            raise InvalidArgumentError("[INVALID_PARAMETER_VALUE] the format has more directives than arguments", found=pattern)
        parts.append(_directive(match, rest.pop(0), zone))
    plain = pattern[end:]
    if "%" in "".join(_DIRECTIVE.split(pattern)[::5]):
        raise v.unsupported(f"the format {pattern!r}")
    parts.append(v.text(plain))
    sql = "(" + " || ".join(part for part in parts if part != "''") + ")" if any(part != "''" for part in parts) else "''"
    return v.combine(sql, "string", arguments, nullable=False)


def _directive(match: re.Match[str], value: Value, zone: Zone) -> str:
    flags, width, places, letter = match[1], int(match[2] or 0), match[3], match[4]
    refused = v.unsupported(f"the directive {match[0]!r} of a format", value.type)
    if letter == "s" and places is None and set(flags) <= {"-"} and _is_shown(value):
        shown = cast(value, "string", zone).sql
    elif letter == "d" and places is None and value.type in v.INTEGRAL and set(flags) <= {"-", "0", "+"}:
        shown = _signed(f"CAST({value.sql} AS VARCHAR)", value, flags, width)
    elif letter == "x" and places is None and value.type in ("integer", "long") and set(flags) <= {"-"}:
        unsigned = f"CAST({value.sql} AS HUGEINT) & CAST({(1 << v.BITS[str(value.type)]) - 1} AS HUGEINT)"
        shown = f"lower(ltrim(hex({unsigned}), '0'))"
        shown = f"(CASE WHEN {value.sql} = 0 THEN '0' ELSE {shown} END)"
    elif letter == "f" and value.type in v.FRACTIONAL and set(flags) <= {"-"}:
        shown = kernel_sql("fixed", "string", f"CAST({value.sql} AS DOUBLE)", places or "6", "'half_up'")
    else:
        raise refused
    text = f"coalesce({shown}, 'null')"
    if not width:
        return text
    units = f"(length({text}) + length(regexp_replace({text}, {v.text(_WIDE)}, '', 'g')))"
    blanks = f"repeat(' ', CAST(greatest({width} - {units}, 0) AS BIGINT))"
    return f"({text} || {blanks})" if "-" in flags else f"({blanks} || {text})"


def _is_shown(value: Value) -> bool:
    """True if Java formats values of this type as a cast to text does."""
    decimal = v.decimal_of(value.type)
    return value.type in (*v.INTEGRAL, "string", "boolean") or (decimal is not None and decimal[1] <= 6)


def _signed(shown: str, value: Value, flags: str, width: int) -> str:
    if "0" in flags and width:
        digits = f"ltrim({shown}, '-')"
        room = f"CASE WHEN {value.sql} < 0{' OR true' if '+' in flags else ''} THEN {width - 1} ELSE {width} END"
        padded = f"CASE WHEN length({digits}) < {room} THEN lpad({digits}, CAST({room} AS INTEGER), '0') ELSE {digits} END"
        shown = f"(CASE WHEN {value.sql} < 0 THEN '-' ELSE '{'+' if '+' in flags else ''}' END || {padded})"
    elif "+" in flags:
        shown = f"(CASE WHEN {value.sql} >= 0 THEN '+' ELSE '' END || {shown})"
    return shown


register("format_string printf", "string, any...", "string", _format_string)
form("format_number", "number, integer", "string", kernel="format_number", nullable=True)
form("quote", "string", "string", "chr(39) || replace({0}, chr(39), '\\' || chr(39)) || chr(39)")
register("typeof", "any", "string", lambda arguments, zone: literal(v.type_text(arguments[0].type), "string"))

# --- to_char, to_number

_NUMBER_FORMAT = re.compile(r"(MI|S)?\$?((?:[09]+(?:[,G][09]+)*)?)(?:[.D]([09]*))?(PR|MI|S|S?MI)?")


def _digits(pattern: str) -> tuple[int, int]:
    """Returns the number of digits before and after the point of a format of numbers: of `S$99,990.00`, (5,
    2). Raises InvalidArgumentError if the format is not valid."""
    match = _NUMBER_FORMAT.fullmatch(pattern.upper())
    before, behind = (re.sub("[,G]", "", match[2]), match[3] or "") if match else ("", "")
    if match is None or not (before or behind) or (match[1] is not None and match[1] == match[4]):
        raise InvalidArgumentError(
            "[INVALID_FORMAT] the format of a number is not valid", found=repr(pattern), expected="[MI|S][$]digits[.digits][S|MI|PR]"
        )
    return len(before), len(behind)


def _to_char(arguments: list[Value], zone: Zone) -> Value:
    value, pattern = arguments
    if pattern.is_constant and pattern.constant is None:
        return v.combine("CAST(NULL AS VARCHAR)", "string", arguments, nullable=True)
    text = constant_text(pattern, "a format of to_char")
    _digits(text)
    if value.type in v.FRACTIONAL:
        value = cast(value, "decimal(30,15)" if value.type == "double" else "decimal(14,7)", zone)
    sql = kernel_sql("number_to_char", "string", f"CAST({value.sql} AS VARCHAR)", v.text(text))
    return v.combine(sql, "string", [value], nullable=value.nullable)


def _binary_to_char(arguments: list[Value], zone: Zone) -> Value:
    kind = constant_text(arguments[1], "a format of to_char").lower()
    names = {"base64": "base64", "hex": "hex", "utf-8": "decode"}
    if kind not in names:
        raise InvalidArgumentError("[INVALID_PARAMETER_VALUE.BINARY_FORMAT] not a format of binary", found=kind, expected=", ".join(names))
    return call(names[kind], [arguments[0], *([literal("utf-8", "string")] if kind == "utf-8" else [])], zone)


def _to_number(*, safe: bool) -> Build:
    def build(arguments: list[Value], zone: Zone) -> Value:
        value, pattern = arguments
        if pattern.is_constant and pattern.constant is None:
            return v.combine("CAST(NULL AS DECIMAL(10, 0))", "decimal(10,0)", arguments, nullable=True)
        text = constant_text(pattern, "a format of to_number")
        before, behind = _digits(text)
        if before + behind > 38:
            raise InvalidArgumentError("[DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION] a decimal has at most 38 digits", found=repr(text))
        kind = v.decimal(before + behind, behind)
        digits = kernel_sql("to_number", "decimal(38,0)", value.sql, v.text(text), str(int(safe)))
        sql = scaled(digits, behind, kind)
        return v.combine(sql, kind, [value], nullable=safe or value.nullable, raises=not safe)

    return build


register("to_char to_varchar", "numeric, string", "string", _to_char)
register("to_char to_varchar", "=binary, string", "string", _binary_to_char)
register("to_number", "string, string", "decimal", _to_number(safe=False))
register("try_to_number", "string, string", "decimal", _to_number(safe=True))
