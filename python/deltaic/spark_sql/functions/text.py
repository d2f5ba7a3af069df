"""SQL functions on text and bytes: upper, substring, concat, sha2, ... Positions and lengths count code
points, as in Spark."""

from __future__ import annotations

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, or_fail
from deltaic.spark_sql.casts import literal as constant_value
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.registry import Build, constant_text, form, literal, register
from deltaic.spark_sql.values import Value


def _ascii(function: str) -> str:
    """Returns SQL that calls DuckDB's own function for ASCII text, and the kernel for any other text."""
    return (
        f"CASE WHEN strlen({{0}}) = length({{0}}) THEN {function}({{0}}) ELSE"
        f" {kernel_sql(function, 'string', '{0}')} END"
    )


form("upper ucase", "string", "string", _ascii("upper"))
form("lower lcase", "string", "string", _ascii("lower"))
form("initcap", "string", "string", kernel="initcap")
form("length char_length character_length len", "string", "integer", "length({0})")
form("length char_length character_length len", "binary", "integer", "octet_length({0})")
form("octet_length", "string", "integer", "strlen({0})")
form("octet_length", "binary", "integer", "octet_length({0})")
form("bit_length", "string", "integer", "8 * strlen({0})")
form("bit_length", "binary", "integer", "8 * octet_length({0})")
form("reverse", "string", "string", "deltaic_reverse({0})")
form("trim btrim", "string", "string", "trim({0}, ' ')")
form("ltrim", "string", "string", "ltrim({0}, ' ')")
form("rtrim", "string", "string", "rtrim({0}, ' ')")
form("btrim", "string, string", "string", "trim({0}, {1})")
form("ltrim", "string, string", "string", "ltrim({1}, {0})")
form("rtrim", "string, string", "string", "rtrim({1}, {0})")
form("replace", "string, string", "string", "replace({0}, {1}, '')")
form("replace", "string, string, string", "string", "replace({0}, {1}, {2})")
form("instr", "string, string", "integer", "strpos({0}, {1})")
form("locate position", "string, string", "integer", "strpos({1}, {0})")
form("locate position", "string, string, integer", "integer", "deltaic_position({0}, {1}, {2})")
form("substring substr", "string, integer", "string", "deltaic_substring({0}, {1}, 2147483647)")
form("left", "string, integer", "string", "deltaic_substring({0}, 1, {1})")
form(
    "right",
    "string, integer",
    "string",
    "CASE WHEN {1} <= 0 THEN CASE WHEN {0} IS NOT NULL THEN '' END ELSE deltaic_substring({0}, -{1},"
    " 2147483647) END",
)
form(
    "repeat",
    "string, integer",
    "string",
    "repeat({0}, CAST(greatest({1}, CASE WHEN {1} IS NOT NULL THEN 0 END) AS BIGINT))",
    raises=True,
)
form(
    "space",
    "integer",
    "string",
    "repeat(' ', CAST(greatest({0}, CASE WHEN {0} IS NOT NULL THEN 0 END) AS BIGINT))",
)
form("startswith", "string, string", "boolean", "starts_with({0}, {1})")
form("endswith", "string, string", "boolean", "ends_with({0}, {1})")
form("contains", "string, string", "boolean", "contains({0}, {1})")
form("ascii", "string", "integer", "CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END")
form("chr char", "long", "string", "CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} & 255 AS INTEGER)) END")
form("hex", "string", "string", "hex({0})")
form("hex", "binary", "string", "hex({0})")
form("base64", "binary", "string", "base64({0})")
form("md5", "binary", "string", "md5({0})")
form("sha1 sha", "binary", "string", "sha1({0})")
form("levenshtein", "string, string", "integer", kernel="levenshtein")
form("levenshtein", "string, string, integer", "integer", kernel="levenshtein")
form("soundex", "string", "string", kernel="soundex")
form("conv", "string, integer, integer", "string", kernel="conv", nullable=True, raises=True)
_DIGIT = "CAST(substring({0}, -deltaic_i, 1) AS INTEGER)"
_LUHN = f"CASE WHEN deltaic_i % 2 = 1 THEN {_DIGIT} ELSE (2 * {_DIGIT}) // 10 + (2 * {_DIGIT}) % 10 END"
_SUM = f"list_sum(list_transform(range(1, length({{0}}) + 1), lambda deltaic_i: {_LUHN}))"
form(
    "luhn_check",
    "string",
    "boolean",
    f"CASE WHEN NOT regexp_full_match({{0}}, '[0-9]+') THEN false ELSE {_SUM} % 10 = 0 END",
)
form("is_valid_utf8", "string", "boolean", "CASE WHEN {0} IS NOT NULL THEN true END")
for _name in ("make_valid_utf8", "validate_utf8", "try_validate_utf8"):
    form(_name, "string", "string", "{0}")
form("split_part", "string, string, integer", "string", "deltaic_split_part({0}, {1}, {2})", raises=True)
form(
    "overlay", "string, string, integer", "string", "deltaic_overlay({0}, {1}, {2}, length({1}))", raises=True
)
form(
    "overlay",
    "string, string, integer, integer",
    "string",
    "deltaic_overlay({0}, {1}, {2}, {3})",
    raises=True,
)
form("find_in_set", "string, string", "integer", "deltaic_find_in_set({0}, {1})")


def _substring(arguments: list[Value], zone: Zone) -> Value:
    value, start, length = arguments
    plain = (
        start.is_constant
        and length.is_constant
        and start.constant is not None
        and length.constant is not None
    )
    if plain and start.constant > 0 and length.constant >= 0:
        return value.like(f"substring({value.sql}, {start.constant}, {length.constant})", "string")
    return v.combine(f"deltaic_substring({value.sql}, {start.sql}, {length.sql})", "string", arguments)


def _substring_index(arguments: list[Value], zone: Zone) -> Value:
    text, delimiter, count = arguments
    delimiter = literal(delimiter, "a delimiter of substring_index")
    return v.combine(
        f"deltaic_substring_index({text.sql}, {delimiter.sql}, {count.sql})", "string", arguments
    )


def _pad(name: str, kind: str) -> Build:
    """Builds lpad or rpad of text or bytes: cut to the length, or filled up with the pad. An empty pad fills
    nothing up."""
    count = "length" if kind == "string" else "octet_length"

    def build(arguments: list[Value], zone: Zone) -> Value:
        value, length = arguments[:2]
        pad = arguments[2] if len(arguments) > 2 else constant_value(" " if kind == "string" else b"\0", kind)
        size = f"greatest({length.sql}, CASE WHEN {length.sql} IS NOT NULL THEN 0 END)"
        if kind == "string" and pad.constant and isinstance(pad.constant, str):
            return v.combine(
                f"{name}({value.sql}, CAST({size} AS INTEGER), {v.text(pad.constant)})", kind, (value, length)
            )
        missing = f"({size} - {count}({value.sql}))"
        filling = (
            f"repeat({pad.sql}, CAST({missing} // greatest({count}({pad.sql}), 1) + 1 AS"
            f" BIGINT))[1:{missing}]"
        )
        sides = f"{filling} || {value.sql}" if name == "lpad" else f"{value.sql} || {filling}"
        short = f"WHEN {missing} <= 0 THEN {value.sql}[1:{size}] ELSE {sides}"
        nulls = " OR ".join(f"{each.sql} IS NULL" for each in (value, length, pad))
        return v.combine(
            f"CAST(CASE WHEN {nulls} THEN NULL {short} END AS {v.duckdb_type(kind)})",
            kind,
            (value, length, pad),
        )

    return build


def _concat(arguments: list[Value], zone: Zone) -> Value:
    """Builds concat: of arrays, which are cast to a common type, or of text; any other argument is cast to
    text."""
    if arguments and any(isinstance(argument.type, Array) for argument in arguments):
        if any(argument.type == "void" for argument in arguments):
            raise v.mismatch("concat", *(argument.type for argument in arguments))
        common = v.common_of(arguments, "concat")
        parts = [cast(argument, common, zone) for argument in arguments]
        return v.combine("(" + " || ".join(part.sql for part in parts) + ")", common, parts)
    if arguments and all(argument.type == "binary" for argument in arguments):
        return v.combine("(" + " || ".join(argument.sql for argument in arguments) + ")", "binary", arguments)
    if not arguments or any(not isinstance(argument.type, str) for argument in arguments):
        raise v.unsupported("function concat", *(argument.type for argument in arguments))
    parts = [cast(argument, "string", zone) for argument in arguments]
    if all(isinstance(part.constant, str) for part in parts):
        return constant_value("".join(part.constant for part in parts), "string")
    return v.combine("(" + " || ".join(part.sql for part in parts) + ")", "string", parts)


def _concat_ws(arguments: list[Value], zone: Zone) -> Value:
    separator = cast(arguments[0], "string", zone)
    parts = [separator, *(_joined(argument, separator, zone) for argument in arguments[1:])]
    if len(parts) == 1:
        sql = f"CASE WHEN {separator.sql} IS NOT NULL THEN '' END"
        return separator.like(f"({sql})", "string")
    return v.combine(
        f"concat_ws({', '.join(part.sql for part in parts)})", "string", parts, nullable=separator.nullable
    )


def _joined(value: Value, separator: Value, zone: Zone) -> Value:
    """Returns an argument of concat_ws as text. For an array this is the items that are not null, joined by
    the separator, or null if there are none."""
    if isinstance(value.type, Array):
        items = cast(value, Array("string"), zone)
        known = f"list_filter({items.sql}, lambda deltaic_item: deltaic_item IS NOT NULL)"
        sql = f"(CASE WHEN len({known}) > 0 THEN array_to_string({known}, {separator.sql}) END)"
        return v.combine(sql, "string", (items, separator), nullable=True)
    if not isinstance(value.type, str):
        raise v.unsupported("function concat_ws", value.type)
    return cast(value, "string", zone)


def _translate(arguments: list[Value], zone: Zone) -> Value:
    """Builds translate(text, from, to): replaces each character of `from` with the character of `to` at the
    same position, or removes it if `to` is shorter. If `from` repeats a character, the first one counts."""
    value, source, target = arguments
    if any(each.is_constant and each.constant is None for each in arguments):
        return v.combine("CAST(NULL AS VARCHAR)", "string", arguments, nullable=True)
    originals, replacements = (
        constant_text(source, "the characters of translate"),
        constant_text(target, "the characters of translate"),
    )
    pairs: dict[str, str] = {}
    for index, character in enumerate(originals):
        pairs.setdefault(character, replacements[index : index + 1])
    kept = "".join(character for character, new in pairs.items() if new)
    gone = "".join(character for character, new in pairs.items() if not new)
    new = "".join(pairs[character] for character in kept)
    return value.like(f"translate({value.sql}, {v.text(kept + gone)}, {v.text(new)})", "string")


def _unhex(arguments: list[Value], zone: Zone) -> Value:
    """Builds unhex: null for text that is not hexadecimal. A 0 is added in front of an odd number of
    digits."""
    sql = arguments[0].sql
    return arguments[0].like(
        f"(CASE WHEN regexp_full_match({sql}, '[0-9A-Fa-f]*') THEN unhex(CASE WHEN length({sql}) % 2 = 1 THEN"
        f" '0' || {sql} ELSE {sql} END) END)",
        "binary",
        nullable=True,
    )


def _sha2(arguments: list[Value], zone: Zone) -> Value:
    value, bits = arguments
    if bits.is_constant and bits.constant in (0, 256):
        return value.like(f"sha256({value.sql})", "string")
    return v.combine(kernel_sql("sha2", "string", value.sql, bits.sql), "string", arguments, nullable=True)


def _elt(arguments: list[Value], zone: Zone) -> Value:
    """Builds elt(n, value, …): value number n; a number beyond the values raises an error."""
    index, values = arguments[0], arguments[1:]
    if any(argument.type == "binary" for argument in values):
        raise v.unsupported("function elt", *(argument.type for argument in values))
    parts = [cast(argument, "string", zone) for argument in values]
    if index.is_constant and isinstance(index.constant, int) and 1 <= index.constant <= len(parts):
        return parts[index.constant - 1]
    whens = " ".join(f"WHEN {place} THEN {part.sql}" for place, part in enumerate(parts, start=1))
    found = (
        f"'the index ' || CAST({index.sql} AS VARCHAR) || ' is out of bounds: there are {len(parts)} values'"
    )
    sql = (
        f"(CASE {index.sql} {whens} ELSE (CASE WHEN {index.sql} IS NOT NULL THEN"
        f" {v.failure('INVALID_ARRAY_INDEX', found)} END) END)"
    )
    return v.combine(sql, "string", [index, *parts], nullable=True, raises=True)


_CHARACTER_SETS = ("US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32")


def _character_set(value: Value) -> str:
    name = constant_text(value, "a character set").upper()
    if name not in (*_CHARACTER_SETS, "UTF8"):
        raise InvalidArgumentError(
            "[INVALID_PARAMETER_VALUE.CHARSET] no such character set",
            found=name,
            expected=", ".join(_CHARACTER_SETS),
        )
    return "UTF-8" if name == "UTF8" else name


def _encode(arguments: list[Value], zone: Zone) -> Value:
    value, name = arguments[0], _character_set(arguments[1])
    if name == "UTF-8":
        return value.like(f"encode({value.sql})", "binary")
    return v.combine(kernel_sql("encode", "binary", value.sql, v.text(name)), "binary", [value], raises=True)


def _cast_to(kind: str) -> Build:
    return lambda arguments, zone: cast(arguments[0], kind, zone)


def _decode(arguments: list[Value], zone: Zone) -> Value:
    value, name = arguments[0], _character_set(arguments[1])
    if name == "UTF-8":
        return value.like(f"decode({value.sql})", "string", raises=True)
    return v.combine(kernel_sql("decode", "string", value.sql, v.text(name)), "string", [value], raises=True)


def _mask(arguments: list[Value], zone: Zone) -> Value:
    """Builds mask: replaces upper case letters, lower case letters, digits and other characters, each with
    one character given as a literal. A null leaves this class of characters unchanged."""
    characters = [literal(argument, "a character of mask") for argument in arguments[1:]]
    if any(isinstance(one.constant, str) and len(one.constant) != 1 for one in characters):
        raise InvalidArgumentError(
            "[DATATYPE_MISMATCH.INPUT_SIZE_NOT_ONE] mask takes single characters",
            found=[one.constant for one in characters],
        )
    shown = [one.constant for one in characters] + ["X", "x", "n", None][len(characters) :]
    masks = ["CAST(NULL AS VARCHAR)" if one is None else v.text(one) for one in shown]
    return arguments[0].like(kernel_sql("mask", "string", arguments[0].sql, *masks), "string")


for _count in range(1, 6):
    register("mask", ", ".join(["=string"] * _count), "string", _mask)


_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"


def _to_binary(safe: bool) -> Build:
    """Builds to_binary with the format hex, utf-8 or base64. With `safe`, text that does not have the format
    gives null."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        value = arguments[0]
        if safe and value.raises:
            raise v.unsupported("try_to_binary of a value that may itself fail")
        kind = constant_text(arguments[1], "a format of to_binary").lower() if len(arguments) > 1 else "hex"
        if kind in ("utf-8", "utf8"):
            return value.like(f"encode({value.sql})", "binary")
        if kind == "hex":
            attempt = _unhex([value], zone).sql
        elif kind == "base64":
            attempt = (
                f"(CASE WHEN regexp_full_match({value.sql}, '{_BASE64}') THEN from_base64({value.sql}) END)"
            )
        else:
            raise v.unsupported(f"to_binary by the format {kind!r}")
        if safe:
            return value.like(attempt, "binary", nullable=True)
        error = v.failure(
            "CONVERSION_INVALID_INPUT", f"'The value ''' || {value.sql} || ''' cannot be converted to BINARY'"
        )
        return or_fail(attempt, value, error, "binary")

    return build


register("substring substr", "string, integer, integer", "string", _substring)
register("substring_index", "string, string, integer", "string", _substring_index)
for _name in ("lpad", "rpad"):
    register(_name, "string, integer", "string", _pad(_name, "string"))
    register(_name, "string, integer, string", "string", _pad(_name, "string"))
    register(_name, "=binary, integer", "binary", _pad(_name, "binary"))
    register(_name, "=binary, integer, =binary", "binary", _pad(_name, "binary"))
register("concat", "any, any...", "T", _concat)
register("concat_ws", "string, any...", "string", _concat_ws)
register("translate", "string, string, string", "string", _translate)
register("unhex", "string", "binary", _unhex)
register("sha2", "binary, integer", "string", _sha2)
form(
    "unbase64",
    "string",
    "binary",
    f"CASE WHEN regexp_full_match({{0}}, '{_BASE64.replace('{', '{{').replace('}', '}}')}') THEN"
    " from_base64({0}) WHEN {0} IS NOT NULL THEN error('[UNSUPPORTED_BASE64] unbase64 of text that is"
    " not whole groups of four') END",
    raises=True,
)
for _name, _safe in {"to_binary": False, "try_to_binary": True}.items():
    register(_name, "string", "binary", _to_binary(_safe))
    register(_name, "string, string", "binary", _to_binary(_safe))
register("elt", "integer, any, any...", "string", _elt)
register("encode", "string, string", "binary", _encode)
register("decode", "binary, string", "string", _decode)
form(
    "bitmap_bit_position",
    "long",
    "long",
    "CASE WHEN {0} > 0 THEN ({0} - 1) % 32768 ELSE (-{0}) % 32768 END",
    raises=True,
)
form(
    "bitmap_bucket_number",
    "long",
    "long",
    "CASE WHEN {0} > 0 THEN 1 + ({0} - 1) // 32768 ELSE {0} // 32768 END",
)
for _name, _kind in {
    "string": "string",
    "int": "integer",
    "bigint": "long",
    "smallint": "short",
    "tinyint": "byte",
    "double": "double",
    "float": "float",
    "boolean": "boolean",
    "binary": "binary",
    "decimal": "decimal(10,0)",
    "date": "date",
    "timestamp": "timestamp",
}.items():
    register(_name, "any", _kind, _cast_to(_kind))
