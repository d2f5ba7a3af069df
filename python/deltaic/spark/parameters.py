"""Fills in the parameters of a statement: `:name` and `?` from `args`, and `{name}` from keyword arguments,
as `SparkSession.sql` does."""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deltaic.engine.spark.native.session import has_jvm, is_classic_column
from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.plan.literal import lit
from deltaic.spark.expressions import sql_text
from deltaic.spark.patches import spark_sql
from deltaic.spark.portable.connect_columns import is_of_connect
from deltaic.sql.parameters import literal, named_markers
from deltaic.sql.tokens import Reader
from deltaic.sql_text import edited

Formatted = Callable[[str, Mapping[str, Any]], Any]


def with_values(spark: Any, text: str, values: Mapping[str, Any], function: Formatted) -> Any:
    """Fills in `{name}` as PySpark does, strings as literals. Calls `function` with the text and with a dict
    of the DataFrames by their names in the text, and returns its result. With a JVM, the DataFrames are
    temporary views during the call, and the dict is empty."""
    if not has_jvm(spark):
        frames: dict[str, Any] = {}
        return function(_Formatter(frames).format(text, **values), frames)
    from pyspark.sql.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(spark)
    try:
        return function(formatter.format(text, **values), {})
    finally:
        formatter.clear()


_numbers = itertools.count()


class _Formatter(string.Formatter):
    """Formats values into a statement. `frames` collects the DataFrames among them by their names in the
    text."""

    def __init__(self, frames: dict[str, Any]) -> None:
        self._frames = frames

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        value, first = super().get_field(field_name, args, kwargs)
        return self._replacement(value), first

    def _replacement(self, value: Any) -> Any:
        if hasattr(value, "sparkSession"):
            known = [name for name, frame in self._frames.items() if frame is value]
            name = known[0] if known else f"__deltaic_frame_{next(_numbers)}__"
            self._frames[name] = value
            return name
        return (
            sql_text(value, "a column in a statement")
            if is_of_connect(value)
            else lit(value)
            if isinstance(value, str)
            else value
        )


def over_frames(spark: Any, text: str, args: Any, frames: Mapping[str, Any]) -> Any:
    """Runs Spark's own `sql` on a text with names of `frames`, without creating temporary views in the
    session."""
    if not frames:
        return spark_sql(spark, text, args)
    braced = text.replace("{", "{{").replace("}", "}}")
    for name in frames:
        braced = braced.replace(name, f"{{{name}}}")
    return spark_sql(spark, braced, args, **frames)


def with_arguments(text: str, args: Any) -> str:
    """Replaces the parameter markers of a text (`:name` or `?`) by literals. Raises InvalidArgumentError for
    a marker without a value, or a value without a marker."""
    if args is None or (isinstance(args, (Mapping, Sequence)) and not args):
        return text
    if isinstance(args, Mapping):
        return _marked(text, lambda name: _named(args, name), None)
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise InvalidTypeError("args are a dictionary or a list", found=type(args).__name__)
    values = iter(args)
    result = _marked(text, None, lambda: _next(values))
    if rest := list(values):
        raise InvalidArgumentError("more args than markers", found=f"{len(rest)} left")
    return result


def _named(args: Mapping[str, Any], name: str) -> Any:
    if name not in args:
        raise InvalidArgumentError(
            "a marker has no value", found=f":{name}", expected=f"one of {sorted(args)}"
        )
    return args[name]


def _next(values: Any) -> Any:
    for value in values:
        return value
    raise InvalidArgumentError("a marker has no value", found="?", expected="as many args as markers")


def _marked(text: str, named: Callable[[str], Any] | None, positional: Callable[[], Any] | None) -> str:
    reader = Reader(text, several=True)
    edits: list[tuple[int, int, str]] = []
    markers = named_markers(reader.tokens)
    for index, token in enumerate(reader.tokens):
        if named is not None and index in markers:
            name = reader.tokens[index + 1]
            value, end = named(name.text), name.end
        elif positional is not None and token.text == "?":
            value, end = positional(), token.end
        else:
            continue
        edits.append((token.start, end, _literal(value)))
    return edited(text, edits)


def _literal(value: Any) -> str:
    """Returns a value as SQL, like `literal`, but a dictionary becomes a map, as in PySpark."""
    if is_classic_column(value) or is_of_connect(value):
        return sql_text(value, "args")
    if isinstance(value, Mapping):
        return f"map({', '.join(map(_literal, itertools.chain(*value.items())))})"
    return literal(value)
