"""LIKE and regular expressions. A pattern must be a literal that means the same to Java and to the engine's RE2; others are refused."""

from __future__ import annotations

import re

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array
from deltaic.relation import values as v
from deltaic.relation.casts import Zone, cast, implicit
from deltaic.relation.forms import constant_int, constant_text, register
from deltaic.relation.values import Value


def like(value: Value, pattern: Value, escape: str, zone: Zone, name: str = "like") -> Value:
    """LIKE or ILIKE with a literal pattern."""
    if "binary" in (value.type, pattern.type):
        raise v.unsupported(name.upper(), value.type, pattern.type)
    value, pattern = implicit(value, "string", zone, name.upper()), implicit(pattern, "string", zone, name.upper())
    if pattern.is_constant and pattern.constant is None:
        return v.combine("CAST(NULL AS BOOLEAN)", "boolean", (value,), nullable=True)
    text = constant_text(pattern, f"a pattern of {name.upper()}")
    _check_escapes(text, escape)
    operand, sql = value.sql, v.text(text)
    if name == "ilike":
        from deltaic.relation.forms import call

        operand, sql = call("lower", [value], zone).sql, call("lower", [pattern], zone).sql
    ending = f" ESCAPE {v.text(escape)}" if escape in text else ""
    return value.like(f"({operand} LIKE {sql}{ending})", "boolean")


def _check_escapes(pattern: str, escape: str) -> None:
    index = 0
    while index < len(pattern):
        if pattern[index] == escape:
            if index + 1 == len(pattern) or pattern[index + 1] not in ("_", "%", escape):
                raise InvalidArgumentError("[INVALID_FORMAT] the escape character must stand before _, % or itself", found=repr(pattern))
            index += 1
        index += 1


# What both engines read alike: literals, ., anchors at the ends, classes of plain characters, \d \w \s and their opposites, groups, |,
# greedy and
# reluctant repetition. Refused: possessive repetition, back references, look-around, flags, \b (Java's is Unicode), POSIX and \p classes,
# && in a class.
_TOKEN = re.compile(
    r"\\[dwsDWS.\\+*?()\[\]{}|^$/\-tnrf\"'@#%&=:;,!<>~` ]"
    r"|\[\^?(?:\\[dwsDWS.\\+*?()\[\]{}|^$/\-tnrf]|[^\[\]\\&\n])+\]"
    r"|\(\?:|\(|\)|\||[.^$]|[^\\\[\](){}*+?|.^$]"
)
_LINE_ENDS = "\\n\\r\\x{85}\\x{2028}\\x{2029}"
_REPEAT = re.compile(r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??(?![+*?{])")


def check_regex(pattern: str) -> int:
    """The number of groups of a pattern that both engines read alike; UnsupportedFeatureError for any other."""
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
    """The pattern for RE2. Java's `$` also matches before a final newline, its `.` stops at more line ends, its \\s knows \\x0B."""
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


def _matches(arguments: list[Value], zone: Zone) -> Value:
    value, pattern = (cast(argument, "string", zone) for argument in arguments)
    if pattern.constant is None:
        return v.combine("CAST(NULL AS BOOLEAN)", "boolean", arguments, nullable=True)
    if "$" in constant_text(pattern, "a regular expression"):
        value = _without_line_end(value)
    return value.like(f"regexp_matches({value.sql}, {v.text(_regex(pattern))})", "boolean")


def _without_line_end(value: Value) -> Value:
    """Refuses at run time the one kind of text on which `$` differs: with a line end last."""
    bad = v.failure("UNSUPPORTED_REGEX", "'a regular expression with $ on text that ends with a line break'")
    return value.like(
        f"(CASE WHEN regexp_matches({value.sql}, '[{_LINE_ENDS}]\\z') THEN {bad} ELSE {value.sql} END)", "string", raises=True
    )


def _extract(arguments: list[Value], zone: Zone) -> Value:
    value, pattern = arguments[0], arguments[1]
    group = constant_int(arguments[2], "a group of a regular expression") if len(arguments) > 2 else 1
    groups = check_regex(constant_text(pattern, "a regular expression"))
    if not 0 <= group <= groups:
        raise InvalidArgumentError(
            "[INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX] the pattern has no such group", found=group, expected=f"0 to {groups}"
        )
    if "$" in constant_text(pattern, "a regular expression"):
        value = _without_line_end(value)
    return value.like(f"regexp_extract({value.sql}, {v.text(_regex(pattern))}, {group})", "string")


def _replace(arguments: list[Value], zone: Zone) -> Value:
    value, pattern, replacement = arguments
    plain = constant_text(replacement, "a replacement of regexp_replace")
    text = constant_text(pattern, "a regular expression")
    check_regex(text)
    try:
        matches_nothing = re.match(text, "") is not None
    except re.error:
        matches_nothing = True
    if matches_nothing or not re.fullmatch(r"(?:[^\\$]|\$[0-9](?![0-9]))*", plain):
        raise v.unsupported(f"regexp_replace with {text!r} and {plain!r}")
    if any(int(digit) > check_regex(text) for digit in re.findall(r"\$([0-9])", plain)):
        raise InvalidArgumentError("[INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX] the pattern has no such group", found=plain)
    if "$" in text:
        value = _without_line_end(value)
    rewritten = re.sub(r"[$]([0-9])", r"\\\1", plain)
    sql = f"regexp_replace({value.sql}, {v.text(_regex(pattern))}, {v.text(rewritten)}, 'g')"
    return value.like(sql, "string")


def _split(arguments: list[Value], zone: Zone) -> Value:
    value, pattern = arguments[0], constant_text(arguments[1], "a pattern of split")
    if len(arguments) > 2 and constant_int(arguments[2], "a limit of split") > 0:
        raise v.unsupported("split with a limit")
    plain = re.fullmatch(r"(?:[^\\.\[\](){}*+?|^$]|\\[.|*+?()\[\]{}^$\\/-])+", pattern)
    if plain is None:
        raise v.unsupported(f"split with the regular expression {pattern!r}")
    separator = re.sub(r"\\(.)", r"\1", pattern)
    return value.like(f"string_split({value.sql}, {v.text(separator)})", Array("string", False))


register("like", "string, string", "boolean", lambda arguments, zone: like(arguments[0], arguments[1], "\\", zone))
register("ilike", "string, string", "boolean", lambda arguments, zone: like(arguments[0], arguments[1], "\\", zone, "ilike"))
register("rlike regexp regexp_like", "string, string", "boolean", _matches)
register("regexp_extract", "string, string", "string", _extract)
register("regexp_extract", "string, string, integer", "string", _extract)
register("regexp_replace", "string, string, string", "string", _replace)
register("split", "string, string", "array<string>", _split)
register("split", "string, string, integer", "array<string>", _split)
