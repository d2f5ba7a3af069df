"""Finds the condition of delta-spark or Spark that fits an error of deltaic: its name, SQLSTATE and class of
`pyspark.errors`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from deltaic import errors as e
from deltaic.protocol.ddl import catalog_string, format_type
from deltaic.spark import (
    conditions_of_computed_columns,
    conditions_of_conversions,
    conditions_of_data,
    conditions_of_features,
    conditions_of_iceberg,
    conditions_of_layout,
    conditions_of_options,
    conditions_of_rows,
    conditions_of_schemas,
    conditions_of_statements,
    conditions_of_tables,
)
from deltaic.spark.condition import ANALYSIS, ARGUMENT, OPERATION, RUNTIME, Condition
from deltaic.spark.schema_trees import class_text, places_text, tree_text
from deltaic.sql_text import spark_name

__all__ = [
    "CONDITIONS",
    "REST",
    "RUNTIME",
    "Condition",
    "condition_named",
    "fitting",
    "is_plain_argument",
    "kind_of",
    "parameters_of",
    "tag_of",
]

CONDITIONS: tuple[Condition, ...] = (
    *conditions_of_rows.CONDITIONS,
    *conditions_of_tables.CONDITIONS,
    *conditions_of_iceberg.CONDITIONS,
    *conditions_of_features.CONDITIONS,
    *conditions_of_data.CONDITIONS,
    *conditions_of_layout.CONDITIONS,
    *conditions_of_schemas.CONDITIONS,
    *conditions_of_computed_columns.CONDITIONS,
    *conditions_of_options.CONDITIONS,
    *conditions_of_conversions.CONDITIONS,
    *conditions_of_statements.CONDITIONS,
)
"""All conditions, the more specific ones first: an error gets the first condition that fits."""

# Conditions for errors that fit none of CONDITIONS and are not caused by an error of Spark with a condition.
REST: tuple[Condition, ...] = (
    Condition(
        "DELTA_OPERATION_NOT_ALLOWED",
        "0AKDC",
        ANALYSIS,
        e.UnsupportedFeatureError,
        "",
        {"operation": "message"},
    ),
    Condition("DELTA_METADATA_MISMATCH", "42KDG", ANALYSIS, e.SchemaMismatchError, ""),
)
KINDS: tuple[tuple[type[e.DeltaError], str], ...] = (
    (e.InvalidTypeError, ARGUMENT),
    (e.InvalidArgumentError, ANALYSIS),
    (e.DeltaError, RUNTIME),
)
"""Class of errors without a condition -> name of their class of `pyspark.errors`. The first entry that fits
counts."""

PLAIN: tuple[tuple[str, str], ...] = (
    (r"^property delta\.columnMapping\.mode: not a valid value", OPERATION),
    (
        r"^property delta\.[\w.]+: (not a|a duration is not)|^delta\.logRetentionDuration is shorter"
        r"|^no such protocol version|^a Delta table has exactly one path"
        r"|^the path of a table is empty|\d+ files of version \d+ are missing",
        ARGUMENT,
    ),
)
"""Pattern of the text of errors that have a class and no condition in delta-spark -> name of their class of
`pyspark.errors`."""

_TYPE = re.compile(r"\b\w+\b(?!:)")
"""Matches a type's name within a type, but not a field's name: in `struct<a: long>` it matches `struct` and
`long`."""
_TAG = re.compile(r"\[([A-Z_][A-Z0-9_.]+)\] ")
_QUOTED = re.compile(r"\A'([^']*)'\Z")
_BY_NAME = {each.name: each for each in reversed((*CONDITIONS, *REST))}


def condition_named(name: str) -> Condition | None:
    """Returns the condition with this name, or None if the lists have none."""
    return _BY_NAME.get(name)


def tag_of(error: e.DeltaError) -> str | None:
    """Returns the condition at the start of an error's message: NAME of `[NAME] text`, else None."""
    tag = _TAG.match(error.message)
    return None if tag is None else tag[1]


def kind_of(error: e.DeltaError) -> str:
    """Returns the name of the class of `pyspark.errors` for an error without a condition."""
    plain = (kind for pattern, kind in PLAIN if re.search(pattern, str(error.args[0])))
    return next(plain, None) or next(name for kind, name in KINDS if isinstance(error, kind))


def is_plain_argument(error: e.DeltaError) -> bool:
    """True if delta-spark raises an IllegalArgumentException without a condition for the error."""
    return tag_of(error) is None and fitting(error, CONDITIONS) is None and kind_of(error) == ARGUMENT


def fitting(error: e.DeltaError, conditions: tuple[Condition, ...]) -> Condition | None:
    """Returns the first condition that fits an error, or None."""
    return next((each for each in conditions if _fits(error, each)), None)


def _fits(error: e.DeltaError, condition: Condition) -> bool:
    if condition.pattern is None or not isinstance(error, condition.error):
        return False
    if condition.requires and error.values.get(condition.requires) is None:
        return False
    return bool(
        re.search(condition.pattern, error.message) and re.search(condition.details, str(error.args[0]))
    )


def _sql_type(name: object) -> str:
    """Writes a type of a message in SQL: `struct<a: long>` becomes `STRUCT<a: BIGINT>`."""
    return _TYPE.sub(lambda word: format_type(word[0]).upper(), str(name))


def parameters_of(error: e.DeltaError, condition: Condition) -> Iterator[tuple[str, str]]:
    """Yields name and value of the condition's message parameters whose values the error has."""
    matches = (
        re.search(condition.pattern or "", error.message),
        re.search(condition.details, str(error.args[0])),
    )
    named = {
        name: text
        for match in matches
        if match is not None
        for name, text in match.groupdict().items()
        if text is not None
    }
    for name, source in condition.parameters.items():
        if source.startswith("="):
            yield name, source[1:]
            continue
        attributes = source.strip("`\"'()[]<>@~.%^&#").split("|")
        values = (named.get(each, error.values.get(each, _attribute(error, each))) for each in attributes)
        value = next((each for each in values if each is not None), None)
        if value is not None:
            yield (
                name,
                _WRITTEN.get(source[0], _plain)(
                    _QUOTED.sub(r"\1", value) if isinstance(value, str) else value
                ),
            )


def _attribute(error: e.DeltaError, name: str) -> Any:
    """Returns an attribute of an error. The place of a missing table is its folder, not that of its log."""
    value = getattr(error, name, None)
    if name == "where" and isinstance(value, str) and isinstance(error, e.TableNotFoundError):
        return value.removesuffix("/_delta_log")
    return value


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _java_time(value: Any, *, seconds: bool) -> str:
    """Writes a time as `java.sql.Timestamp` does, in the local time zone: 2026-01-31 12:00:00.25; with
    `seconds`, without the fraction."""
    local = value.astimezone()
    whole = local.strftime("%Y-%m-%d %H:%M:%S")
    return whole if seconds else f"{whole}.{f'{local.microsecond:06}'.rstrip('0') or '0'}"


def _names(value: object, between: str = ", ") -> str:
    """Writes a name, or several, in backticks."""
    return between.join(spark_name(str(name)) for name in (value if isinstance(value, tuple) else (value,)))


_WRITTEN: dict[str, Callable[[Any], str]] = {
    "`": _names,
    ".": lambda value: _names(value, "."),
    "[": lambda value: f"[{_names(value)}]",
    "<": _sql_type,
    "@": lambda value: _java_time(value, seconds=False),
    "~": lambda value: _java_time(value, seconds=True),
    "%": tree_text,
    "^": class_text,
    "&": catalog_string,
    "#": places_text,
    '"': lambda value: f'"{_sql_type(value)}"',
    "(": lambda value: f'"{value}"',
    "'": lambda value: f"'{value}'",
}
"""First character of a parameter's source -> the function that writes the value (see `Condition`)."""
