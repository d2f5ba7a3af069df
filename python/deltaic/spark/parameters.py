"""Parameters of statements: `:name` and `?` of `args`, and `{name}` as PySpark formats it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deltaic.errors import InvalidArgumentError, InvalidTypeError
from deltaic.relation.literal import lit
from deltaic.spark.expressions import sql_text
from deltaic.sql.tokens import Reader


def with_values(spark: Any, text: str, values: Mapping[str, Any], function: Callable[[str], Any]) -> Any:
    """Runs `function` on the text with `{name}` filled in by PySpark: DataFrames as temporary views, texts as literals."""
    if not hasattr(spark, "_jsparkSession"):
        raise InvalidArgumentError("{name} in a statement on Spark Connect", found=sorted(values), expected="args=")
    from pyspark.sql.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(spark)
    try:
        return function(formatter.format(text, **values))
    finally:
        formatter.clear()


def with_arguments(text: str, args: Any) -> str:
    """The text with its markers replaced by literals. InvalidArgumentError for a marker without a value."""
    if args is None or (isinstance(args, (Mapping, Sequence)) and not args):
        return text
    if isinstance(args, Mapping):
        return _marked(text, lambda name: _named(args, name), None)
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise InvalidTypeError("args are a dictionary or a list", found=type(args).__name__)
    left = iter(args)
    filled = _marked(text, None, lambda: _next(left))
    if rest := list(left):
        raise InvalidArgumentError("more args than markers", found=f"{len(rest)} left")
    return filled


def _named(args: Mapping[str, Any], name: str) -> Any:
    if name not in args:
        raise InvalidArgumentError("a marker without a value", found=f":{name}", expected=f"one of {sorted(args)}")
    return args[name]


def _next(values: Any) -> Any:
    for value in values:
        return value
    raise InvalidArgumentError("a marker without a value", found="?", expected="as many args as markers")


def _marked(text: str, named: Callable[[str], Any] | None, positional: Callable[[], Any] | None) -> str:
    reader = Reader(text)
    pieces: list[str] = []
    copied = 0
    for index, token in enumerate(reader.tokens):
        behind = reader.tokens[index + 1] if index + 1 < len(reader.tokens) else None
        if named is not None and token.text == ":" and behind is not None and behind.kind == "word" and behind.start == token.end:
            value, end = named(behind.text), behind.end
        elif positional is not None and token.text == "?":
            value, end = positional(), token.end
        else:
            continue
        pieces += [text[copied : token.start], _literal(value)]
        copied = end
    return "".join(pieces) + text[copied:]


def _literal(value: Any) -> str:
    return sql_text(value, "args") if hasattr(value, "_jc") else lit(value)
