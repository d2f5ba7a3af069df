"""LIKE and regular expressions. A literal pattern that means the same in Java and in RE2 is matched by
DuckDB's RE2; kernels match all other patterns (`rust/src/expressions/regex.rs`). A pattern of LIKE may come
from a column; it is then checked for each row."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

from deltaic import _core
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.protocol.schema import Array, DataType
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, implicit, literal
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.registry import Build, constant_text, register
from deltaic.spark_sql.values import Value


def like(value: Value, pattern: Value, escape: str, zone: Zone, name: str = "like") -> Value:
    """Returns LIKE or ILIKE. A pattern that is no literal is checked for each row."""
    if "binary" in (value.type, pattern.type):
        raise v.unsupported(name.upper(), value.type, pattern.type)
    value, pattern = (
        implicit(value, "string", zone, name.upper()),
        implicit(pattern, "string", zone, name.upper()),
    )
    if any(side.is_constant and side.constant is None for side in (value, pattern)):
        return v.combine("CAST(NULL AS BOOLEAN)", "boolean", (value, pattern), nullable=True)
    if not pattern.is_constant:
        return _like_of_rows(value, pattern, escape, zone, name)
    text = constant_text(pattern, f"a pattern of {name.upper()}")
    _check_escapes(text, escape)
    operand, sql = value.sql, v.text(text)
    if name == "ilike":
        from deltaic.spark_sql.functions.registry import call

        operand, sql = call("lower", [value], zone).sql, call("lower", [pattern], zone).sql
    ending = f" ESCAPE {v.text(escape)}" if escape in text else ""
    return value.like(f"({operand} LIKE {sql}{ending})", "boolean")


def _like_of_rows(value: Value, pattern: Value, escape: str, zone: Zone, name: str) -> Value:
    """Returns LIKE or ILIKE with a pattern of each row. An escape character that does not stand before `_`,
    `%` or itself raises the error of Spark, unless the value is null."""
    if not escape.isascii():
        raise v.unsupported(f"{name.upper()} with the escape character {escape!r}")
    if name == "ilike":
        from deltaic.spark_sql.functions.registry import call

        value, pattern = call("lower", [value], zone), call("lower", [pattern], zone)
    mark = f"\\x{ord(escape):02x}"
    pairs = f"(?s)(?:[^{mark}]|{mark}[_%{mark}])*"
    last, middle = v.failure(_ESCAPE_AT_END, pattern.sql), v.failure(_ESCAPE_WITHIN, pattern.sql)
    wrong = f"CASE WHEN regexp_full_match({pattern.sql}, '{pairs}{mark}') THEN {last} ELSE {middle} END"
    is_right = f"NOT contains({pattern.sql}, {v.text(escape)}) OR regexp_full_match({pattern.sql}, '{pairs}')"
    matched = f"{value.sql} LIKE {pattern.sql} ESCAPE {v.text(escape)}"
    nulls = f"{value.sql} IS NULL OR {pattern.sql} IS NULL"
    sql = f"(CASE WHEN {nulls} THEN NULL WHEN {is_right} THEN {matched} ELSE CAST({wrong} AS BOOLEAN) END)"
    return v.in_order((value, pattern), v.combine(sql, "boolean", (value, pattern), raises=True))


def bounds_of_like(value: Value, pattern: Value) -> list[str]:
    """Returns conditions that follow from LIKE with a literal prefix, for sources that can filter by a range:
    `value LIKE 'forest%'` implies `value >= 'forest'` and `value < 'foresu'`. Text is compared by code
    points."""
    text = (
        pattern.constant
        if pattern.is_constant and value.type == pattern.type == "string" and value.collation is None
        else None
    )
    prefix = re.split("[%_]", text)[0] if isinstance(text, str) else ""
    if not prefix or prefix == text or "\\" in prefix:
        return []
    above = prefix.rstrip(chr(sys.maxunicode))
    after = 0xE000 if above[-1:] == "\ud7ff" else ord(above[-1:] or " ") + 1
    upper = [f"({value.sql} < {v.text(above[:-1] + chr(after))})"] if above else []
    return [f"({value.sql} >= {v.text(prefix)})", *upper]


_ESCAPE_AT_END, _ESCAPE_WITHIN = "INVALID_FORMAT.ESC_AT_THE_END", "INVALID_FORMAT.ESC_IN_THE_MIDDLE"


def _check_escapes(pattern: str, escape: str) -> None:
    index = 0
    while index < len(pattern):
        if pattern[index] == escape:
            at_end = index + 1 == len(pattern)
            if at_end or pattern[index + 1] not in ("_", "%", escape):
                condition = _ESCAPE_AT_END if at_end else _ESCAPE_WITHIN
                raise InvalidArgumentError(
                    f"[{condition}] the escape character must stand before _, % or itself",
                    found=repr(pattern),
                )
            index += 1
        index += 1


# The parts of a pattern that mean the same in Java and RE2: literals, ., anchors at the ends, classes of
# plain characters, \d \w \s and their opposites, groups, |, greedy and reluctant repetition. These differ:
# possessive repetition, back references, look-around, flags, \b (Java's is Unicode), POSIX and \p classes, &&
# in a class.
_TOKEN = re.compile(
    r"\\[dwsDWS.\\+*?()\[\]{}|^$/\-tnrf\"'@#%&=:;,!<>~` ]"
    r"|\[\^?(?:\\[dwsDWS.\\+*?()\[\]{}|^$/\-tnrf]|[^\[\]\\&\n])+\]"
    r"|\(\?:|\(|\)|\||[.^$]|[^\\\[\](){}*+?|.^$]"
)
_LINE_ENDS = "\\n\\r\\x{85}\\x{2028}\\x{2029}"
_REPEAT = re.compile(r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??(?![+*?{])")


def check_regex(pattern: str) -> int:
    """Returns the number of groups of a pattern. Raises UnsupportedFeatureError if the pattern may mean
    different things in Java and RE2."""
    index, groups, depth, repeatable = 0, 0, 0, False
    while index < len(pattern):
        if repeatable and (found := _REPEAT.match(pattern, index)):
            index, repeatable = found.end(), False
            continue
        token = _TOKEN.match(pattern, index)
        if token is None or (pattern.startswith("(?", index) and token.group() != "(?:"):
            raise v.unsupported(f"the regular expression {pattern!r}")
        text = token.group()
        depth += text.startswith("(") - (text == ")")
        groups += text == "("
        repeatable = text not in ("(", "(?:", "|", "^", "$")
        if text == "$" and token.end() != len(pattern) and pattern[token.end()] not in ")|":
            raise v.unsupported(f"the regular expression {pattern!r}")
        index = token.end()
    if depth:
        raise v.unsupported(f"the regular expression {pattern!r}")
    return groups


def _regex(value: Value) -> str:
    """Returns a Java pattern rewritten for RE2. Java's `$` also matches before a final line break, its `.`
    excludes more line breaks, and its \\s includes \\x0B."""
    pattern = constant_text(value, "a regular expression")
    check_regex(pattern)
    out, index, in_class = [], 0, False
    while index < len(pattern):
        character = pattern[index]
        if character == "\\":
            pair = pattern[index : index + 2]
            if pair == "\\S" and in_class:
                raise v.unsupported(f"the regular expression {pattern!r}")
            space = "\\t\\n\\x0B\\f\\r "
            out.append({"\\s": space if in_class else f"[{space}]", "\\S": f"[^{space}]"}.get(pair, pair))
            index += 2
            continue
        in_class = character == "[" or (in_class and character != "]")
        out.append(character if in_class else {".": f"[^{_LINE_ENDS}]", "$": "\\z"}.get(character, character))
        index += 1
    return "".join(out)


def _is_native(pattern: Value) -> bool:
    """True if a pattern is a literal that means the same in Java and in RE2."""
    if not pattern.is_constant or not isinstance(pattern.constant, str):
        return False
    try:
        check_regex(pattern.constant)
        _regex(pattern)
    except UnsupportedFeatureError:
        return False
    return True


def _moves_on(pattern: Value) -> bool:
    """True if a pattern is a literal that means the same in Java and in RE2, and does not match the empty
    text: Java and RE2 continue differently after an empty match."""
    try:
        return _is_native(pattern) and re.match(str(pattern.constant), "") is None
    except re.error:
        return False


def _group_of(arguments: list[Value]) -> Value:
    return arguments[2] if len(arguments) > 2 else literal(1, "integer")


def _has_group(pattern: Value, group: Value) -> bool:
    """True if the group is a literal number of a group in the pattern. For any other number, the kernel
    raises an error on a row."""
    return isinstance(group.constant, int) and 0 <= group.constant <= check_regex(str(pattern.constant))


def _kernel(kernel: str, kind: str, arguments: list[Value], result: DataType | None = None) -> Value:
    """Returns a call of a kernel, which matches patterns as Java does."""
    pattern = arguments[1]
    known = isinstance(pattern.constant, str) and _is_pattern(pattern.constant)
    sql = kernel_sql(kernel, kind, *(argument.sql for argument in arguments))
    raises = not known or kernel in ("regex_extract", "regex_extract_all", "regex_replace")
    return v.combine(sql, result or kind, arguments, raises=raises)


def _is_pattern(pattern: str) -> bool:
    """True if a text is a valid Java pattern. Raises UnsupportedFeatureError if the kernels do not support
    it."""
    import pyarrow as pa

    try:
        _core.evaluate_kernel([pa.array(["regex_matches"]), pa.array([""]), pa.array([pattern])])
    except InvalidArgumentError as error:
        if "[UNSUPPORTED_REGEX]" in str(error):
            raise v.unsupported(f"the regular expression {pattern!r}") from None
        return False
    return True


def _either(value: Value, pattern: Value, native: str, kernel: Value) -> Value:
    """Returns DuckDB's own function (`native`). If the pattern has `$`, the kernel is called for text that
    ends with a line break."""
    if "$" not in str(pattern.constant):
        return value.like(native, kernel.type, nullable=kernel.nullable)
    sql = f"(CASE WHEN regexp_matches({value.sql}, '[{_LINE_ENDS}]\\z') THEN {kernel.sql} ELSE {native} END)"
    return replace(kernel, sql=sql)


def _matches(arguments: list[Value], zone: Zone) -> Value:
    value, pattern = (cast(argument, "string", zone) for argument in arguments)
    if pattern.is_constant and pattern.constant is None:
        return v.combine("CAST(NULL AS BOOLEAN)", "boolean", arguments, nullable=True)
    kernel = _kernel("regex_matches", "boolean", [value, pattern])
    if not _is_native(pattern):
        return kernel
    return _either(value, pattern, f"regexp_matches({value.sql}, {v.text(_regex(pattern))})", kernel)


def _extract(arguments: list[Value], zone: Zone) -> Value:
    value, pattern, group = arguments[0], arguments[1], _group_of(arguments)
    kernel = _kernel("regex_extract", "string", [value, pattern, group])
    if not _is_native(pattern) or not _has_group(pattern, group):
        return kernel
    return _either(
        value, pattern, f"regexp_extract({value.sql}, {v.text(_regex(pattern))}, {group.constant})", kernel
    )


def _replace(arguments: list[Value], zone: Zone) -> Value:
    value, pattern, replacement = arguments[:3]
    position = arguments[3] if len(arguments) > 3 else literal(1, "integer")
    if position.is_constant and position.constant is not None and position.constant < 1:
        raise InvalidArgumentError(
            "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] a position begins at 1", found=position.constant
        )
    kernel = _kernel("regex_replace", "string", [value, pattern, replacement, position])
    plain = replacement.constant if isinstance(replacement.constant, str) else "\\"
    if (
        position.constant != 1
        or not _moves_on(pattern)
        or not re.fullmatch(r"(?:[^\\$]|\$[0-9](?![0-9]))*", plain)
    ):
        return kernel
    if any(int(digit) > check_regex(str(pattern.constant)) for digit in re.findall(r"\$([0-9])", plain)):
        return kernel
    rewritten = v.text(re.sub(r"[$]([0-9])", r"\\\1", plain))
    return _either(
        value, pattern, f"regexp_replace({value.sql}, {v.text(_regex(pattern))}, {rewritten}, 'g')", kernel
    )


def _extract_all(arguments: list[Value], zone: Zone) -> Value:
    value, pattern, group = arguments[0], arguments[1], _group_of(arguments)
    kernel = _kernel("regex_extract_all", "array<string>", [value, pattern, group], Array("string", True))
    if not _moves_on(pattern) or not _has_group(pattern, group):
        return kernel
    return _either(
        value,
        pattern,
        f"regexp_extract_all({value.sql}, {v.text(_regex(pattern))}, {group.constant})",
        kernel,
    )


def _count(arguments: list[Value], zone: Zone) -> Value:
    value, pattern = arguments
    kernel = _kernel("regex_count", "integer", [value, pattern])
    if not _moves_on(pattern):
        return kernel
    return _either(
        value,
        pattern,
        f"CAST(len(regexp_extract_all({value.sql}, {v.text(_regex(pattern))}, 0)) AS INTEGER)",
        kernel,
    )


def _substr(arguments: list[Value], zone: Zone) -> Value:
    found = _extract([*arguments, literal(0, "integer")], zone)
    return replace(found.like(f"nullif({found.sql}, '')", "string", nullable=True), raises=found.raises)


def _instr(arguments: list[Value], zone: Zone) -> Value:
    """Builds `regexp_instr(text, pattern)`: the position of the first match, counted from 1, or 0. Spark
    ignores the group in a third argument."""
    value, pattern = arguments[:2]
    kernel = _kernel("regex_instr", "integer", [value, pattern])
    if len(arguments) < 3:
        return kernel
    return v.combine(
        f"(CASE WHEN {arguments[2].sql} IS NOT NULL THEN {kernel.sql} END)", "integer", [kernel, arguments[2]]
    )


def _split(arguments: list[Value], zone: Zone) -> Value:
    value, pattern = arguments[:2]
    limit = arguments[2] if len(arguments) > 2 else literal(-1, "integer")
    kind = Array("string", False)
    if not isinstance(pattern.constant, str) or not isinstance(limit.constant, int):
        if pattern.is_constant and pattern.constant is None:
            return v.combine(f"CAST(NULL AS {v.duckdb_type(kind)})", kind, arguments, nullable=True)
        # an empty pattern splits between all characters
        characters = f"regexp_extract_all({value.sql}, '(?s).', 0)"
        whole = _kernel("regex_split", "array<string>", [value, pattern, limit], kind)
        if pattern.is_constant and pattern.constant != "":
            return whole
        sql = (
            f"(CASE WHEN {pattern.sql} = '' AND {value.sql} <> '' AND {limit.sql} <= 0 THEN {characters} ELSE"
            f" {whole.sql} END)"
        )
        return replace(whole, sql=sql)
    most = limit.constant
    if most == 1:
        return (
            value.like(f"[{value.sql}]", kind)
            if not value.nullable
            else value.like(f"(CASE WHEN {value.sql} IS NOT NULL THEN [{value.sql}] END)", kind)
        )
    if not pattern.constant:
        count = f"length({value.sql})" if most <= 0 else f"least(length({value.sql}), {most})"
        # the last one has the rest
        part = "1" if most <= 0 else f"CASE WHEN deltaic_i = {most} THEN length({value.sql}) ELSE 1 END"
        characters = (
            f"list_transform(range(1, {count} + 1), lambda deltaic_i: substring({value.sql}, deltaic_i,"
            f" {part}))"
        )
        return value.like(
            f"(CASE WHEN {value.sql} IS NULL THEN NULL WHEN {value.sql} = '' THEN [''] ELSE {characters}"
            " END)",
            kind,
        )
    plain = re.fullmatch(r"(?:[^\\.\[\](){}*+?|^$]|\\[.|*+?()\[\]{}^$\\/-])+", pattern.constant)
    if plain is not None and most <= 0:
        separator = re.sub(r"\\(.)", r"\1", pattern.constant)
        return value.like(f"string_split({value.sql}, {v.text(separator)})", kind)
    kernel = _kernel("regex_split", "array<string>", [value, pattern, limit], kind)
    if not _moves_on(pattern) or most > 0:
        return kernel
    return _either(value, pattern, f"regexp_split_to_array({value.sql}, {v.text(_regex(pattern))})", kernel)


def _like(name: str) -> Build:
    def build(arguments: list[Value], zone: Zone) -> Value:
        escape = arguments[2].constant if len(arguments) > 2 else "\\"
        if not isinstance(escape, str) or len(escape) != 1:
            raise InvalidArgumentError("[INVALID_ESCAPE_CHAR] an escape is one character", found=repr(escape))
        return like(arguments[0], arguments[1], escape, zone, name)

    return build


for _name in ("like", "ilike"):
    register(_name, "string, string", "boolean", _like(_name))
    register(_name, "string, string, string", "boolean", _like(_name))
register("rlike regexp regexp_like", "string, string", "boolean", _matches)
register("regexp_extract", "string, string", "string", _extract)
register("regexp_extract", "string, string, integer", "string", _extract)
register("regexp_replace", "string, string, string", "string", _replace)
register("split", "string, string", "array<string>", _split)
register("split", "string, string, integer", "array<string>", _split)
register("regexp_replace", "string, string, string, integer", "string", _replace)
register("regexp_extract_all", "string, string", "array<string>", _extract_all)
register("regexp_extract_all", "string, string, integer", "array<string>", _extract_all)
register("regexp_count", "string, string", "integer", _count)
register("regexp_substr", "string, string", "string", _substr)
register("regexp_instr", "string, string", "integer", _instr)
register("regexp_instr", "string, string, integer", "integer", _instr)
