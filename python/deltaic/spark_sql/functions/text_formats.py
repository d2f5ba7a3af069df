"""Functions that format values as text and parse numbers: format_string with a literal format, format_number,
to_char, to_number, quote, typeof."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.registry import Build, call, constant_text, form, register
from deltaic.spark_sql.operators import scaled
from deltaic.spark_sql.values import Value

_DIRECTIVE = re.compile(r"%(?:([1-9][0-9]*)\$)?([-0+, (]*)([1-9][0-9]*)?(?:\.([0-9]+))?([a-zA-Z%])")
_WIDE = "[^\\x{10000}-\\x{10FFFF}]"
"""Matches one character of a single UTF-16 unit. Java counts any other character as two."""


@dataclass(frozen=True)
class _Directive:
    """`%-8.2f`: its text, flags, least width, places behind the point or most characters, and letter."""

    text: str
    flags: frozenset[str]
    width: int
    places: int | None
    letter: str


def _format_string(arguments: list[Value], zone: Zone) -> Value:
    """Builds `format_string(format, …)` with the directives %s %b %c %d %x %o %f %e %g %% %n of
    `java.util.Formatter`. A null is formatted as `null`."""
    if arguments[0].is_constant and arguments[0].constant is None:
        return literal(None, "string")
    pattern, values = constant_text(arguments[0], "a format"), arguments[1:]
    parts, end, following = [], 0, 0
    for match in _DIRECTIVE.finditer(pattern):
        parts.append(v.text(pattern[end : match.start()]))
        end = match.end()
        if match[5] in "%n" and not any(match.groups()[:4]):
            parts.append(v.text("%" if match[5] == "%" else "\n"))
            continue
        following += not match[1]
        place = int(match[1]) if match[1] else following
        if place > len(values):
            raise InvalidArgumentError(
                "[INVALID_PARAMETER_VALUE] the format has more directives than arguments", found=pattern
            )
        places = None if match[4] is None else int(match[4])
        parts.append(
            _formatted(
                _Directive(match[0], frozenset(match[2]), int(match[3] or 0), places, match[5]),
                values[place - 1],
                zone,
            )
        )
    plain = pattern[end:]
    if "%" in "".join(_DIRECTIVE.split(pattern)[::6]):
        raise v.unsupported(f"the format {pattern!r}")
    parts.append(v.text(plain))
    sql = (
        "(" + " || ".join(part for part in parts if part != "''") + ")"
        if any(part != "''" for part in parts)
        else "''"
    )
    return v.combine(sql, "string", arguments, nullable=False)


def _formatted(directive: _Directive, value: Value, zone: Zone) -> str:
    flags, width, places, letter = (
        directive.flags,
        directive.width,
        directive.places,
        directive.letter.lower(),
    )
    refused = v.unsupported(f"the directive {directive.text!r} of a format", value.type)
    if (flags & {"-", "0"} and not width) or {"-", "0"} <= flags or {"+", " "} <= flags:
        raise refused
    if letter == "s" and flags <= {"-"} and _is_shown(value):
        shown = _shown_text(value, zone)
    elif letter == "b" and flags <= {"-"}:
        is_true = value.sql if value.type == "boolean" else f"({value.sql} IS NOT NULL)"
        shown = f"CASE WHEN {is_true} THEN 'true' ELSE 'false' END"
    elif letter == "c" and flags <= {"-"} and places is None and value.type == "integer":
        shown = call("char", [cast(value, "long", zone)], zone).sql
    elif letter == "d" and places is None and value.type in v.INTEGRAL:
        shown = _signed(f"CAST({value.sql} AS VARCHAR)", flags, width)
    elif letter in ("x", "o") and places is None and value.type in v.INTEGRAL and flags <= {"-", "0"}:
        shown = _unsigned(value, letter, width if "0" in flags else 0, refused)
    elif letter in "dxofeg" and value.type == "void" and directive.letter != "F":
        shown = "CAST(NULL AS VARCHAR)"
    elif letter in ("e", "g") and value.type in v.FRACTIONAL and "," not in flags:
        digits = 6 if places is None else places if letter == "e" else max(places, 1)
        macro = "deltaic_scientific" if letter == "e" else "deltaic_general"
        shown = _signed(f"{macro}(CAST({value.sql} AS DOUBLE), {digits})", flags, width)
    elif letter == "f" and directive.letter == "f" and value.type in v.FRACTIONAL:
        digits = 6 if places is None else places
        shown = _signed(
            kernel_sql("fixed", "string", f"CAST({value.sql} AS DOUBLE)", str(digits), "'half_up'"),
            flags,
            width,
        )
    else:
        raise refused
    # The places of %f, %e and %g are also the most characters of a null.
    text = f"coalesce({shown}, {v.text('null' if places is None else 'null'[:places])})"
    if places is not None and letter in ("s", "b"):
        text = f"substring({text}, 1, {places})"
    if directive.letter.isupper():
        text = f"upper({text})"
    if not width:
        return text
    units = f"(length({text}) + length(regexp_replace({text}, {v.text(_WIDE)}, '', 'g')))"
    blanks = f"repeat(' ', CAST(greatest({width} - {units}, 0) AS BIGINT))"
    return f"({text} || {blanks})" if "-" in flags else f"({blanks} || {text})"


def _is_shown(value: Value) -> bool:
    """True if Java formats values of this type as `_shown_text` does."""
    decimal = v.decimal_parts(value.type)
    known = (*v.INTEGRAL, *v.FRACTIONAL, *v.TEMPORAL, "string", "boolean", "void")
    return value.type in known or (decimal is not None and decimal[1] <= 6)


def _shown_text(value: Value, zone: Zone) -> str:
    """Returns SQL of the text that Java shows for Spark's internal value: the days since 1970 of a date, the
    microseconds since 1970 of a timestamp."""
    if value.type == "date":
        return f"CAST(subtract({value.sql}, DATE '1970-01-01') AS VARCHAR)"
    if value.type in v.TEMPORAL:
        return f"CAST(epoch_us({value.sql}) AS VARCHAR)"
    return cast(value, "string", zone).sql


def _unsigned(value: Value, letter: str, zeros: int, refused: Exception) -> str:
    """Returns SQL of a whole number in hexadecimal or octal digits, filled up with zeros. A negative number
    is written by its bits: -1 of type int is ffffffff."""
    bits = v.INTEGER_BITS[str(value.type)]
    if letter == "o" and bits == 64:
        raise refused
    unsigned = f"CAST({value.sql} AS HUGEINT) & CAST({(1 << bits) - 1} AS HUGEINT)"
    shown = (
        f"to_base(CAST({unsigned} AS BIGINT), 8)" if letter == "o" else f"lower(ltrim(hex({unsigned}), '0'))"
    )
    shown = f"(CASE WHEN {value.sql} = 0 THEN '0' ELSE {shown} END)"
    return f"(repeat('0', greatest({zeros} - length({shown}), 0)) || {shown})" if zeros else shown


def _signed(shown: str, flags: frozenset[str], width: int) -> str:
    """Returns SQL of a number in decimal digits, `-1234.5` or `NaN`, with the sign, commas and zeros that the
    flags of the directive require."""
    if not flags & {"0", "+", " ", ",", "("}:
        return shown
    number, digits = "deltaic_number", "ltrim(deltaic_number, '-')"
    negative, is_finite = f"starts_with({number}, '-')", f"regexp_matches({number}, '[0-9]')"
    if "," in flags:
        whole = f"split_part({digits}, '.', 1)"
        grouped = f"ltrim(reverse(regexp_replace(reverse({whole}), '(...)', '\\1,', 'g')), ',')"
        digits = (
            f"CASE WHEN {is_finite} THEN {grouped} || substring({digits}, length({whole}) + 1) ELSE"
            f" {digits} END"
        )
    plus = "+" if "+" in flags else " " if " " in flags else ""
    sign = (
        f"CASE WHEN {negative} THEN '{'(' if '(' in flags else '-'}' WHEN {number} <> 'NaN' THEN '{plus}'"
        " ELSE '' END"
    )
    end = f"CASE WHEN {negative} THEN ')' ELSE '' END" if "(" in flags else "''"
    zeros = "''"
    if "0" in flags:
        missing = f"greatest({width} - length({digits}) - length({sign}) - length({end}), 0)"
        zeros = f"CASE WHEN {is_finite} THEN repeat('0', {missing}) ELSE '' END"
    text = f"({sign}) || ({zeros}) || ({digits}) || ({end})"
    return f"list_extract(list_transform([{shown}], lambda {number}: {text}), 1)"


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
            "[INVALID_FORMAT] the format of a number is not valid",
            found=repr(pattern),
            expected="[MI|S][$]digits[.digits][S|MI|PR]",
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
        raise InvalidArgumentError(
            "[INVALID_PARAMETER_VALUE.BINARY_FORMAT] not a format of binary",
            found=kind,
            expected=", ".join(names),
        )
    return call(names[kind], [arguments[0], *([literal("utf-8", "string")] if kind == "utf-8" else [])], zone)


def _to_number(*, safe: bool) -> Build:
    def build(arguments: list[Value], zone: Zone) -> Value:
        value, pattern = arguments
        if pattern.is_constant and pattern.constant is None:
            return v.combine("CAST(NULL AS DECIMAL(10, 0))", "decimal(10,0)", arguments, nullable=True)
        text = constant_text(pattern, "a format of to_number")
        before, behind = _digits(text)
        if before + behind > 38:
            raise InvalidArgumentError(
                "[DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION] a decimal has at most 38 digits", found=repr(text)
            )
        kind = v.decimal(before + behind, behind)
        digits = kernel_sql("to_number", "decimal(38,0)", value.sql, v.text(text), str(int(safe)))
        sql = scaled(digits, behind, kind)
        return v.combine(sql, kind, [value], nullable=safe or value.nullable, raises=not safe)

    return build


register("to_char to_varchar", "numeric, string", "string", _to_char)
register("to_char to_varchar", "=binary, string", "string", _binary_to_char)
register("to_number", "string, string", "decimal", _to_number(safe=False))
register("try_to_number", "string, string", "decimal", _to_number(safe=True))
