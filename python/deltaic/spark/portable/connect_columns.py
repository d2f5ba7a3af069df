"""Converts columns of Spark Connect to SQL text, from the protocol message by which the client sends a
column.

A client of Connect has neither parser nor analyser. Names, literals, casts and calls in the message can be
written in SQL. Other columns (Python functions, columns bound to a DataFrame, windows) raise
UnsupportedFeatureError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from deltaic.engine.spark.native.session import is_classic_column
from deltaic.errors import UnsupportedFeatureError
from deltaic.plan.literal import col, lit
from deltaic.sql.tokens import Reader

_BETWEEN = {
    "==": "=",
    **{
        sign: sign
        for sign in ("=", ">", ">=", "<", "<=", "<=>", "!=", "+", "-", "*", "/", "%", "&", "|", "^")
    },
}
_BETWEEN |= {word: word.upper() for word in ("and", "or", "like", "ilike", "rlike")}
_BEFORE = {"not": "NOT ", "!": "NOT ", "negative": "-", "~": "~"}
_AFTER = {"isnull": " IS NULL", "isnotnull": " IS NOT NULL"}
_WIDTHS = {"byte": "TINYINT", "short": "SMALLINT", "long": "BIGINT", "float": "FLOAT"}
_DAY_ONE = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)


def is_of_connect(value: Any) -> bool:
    """True if a value is a Column of Spark Connect."""
    return type(value).__name__ == "Column" and not is_classic_column(value) and hasattr(value, "to_plan")


def connect_text(column: Any, what: str) -> str:
    """Returns the SQL text of a column. Raises UnsupportedFeatureError for a column without one; `what`
    names the argument in the message."""
    try:
        message = column.to_plan(None)  # None in place of the client: only columns without SQL text use it
    except (AttributeError, TypeError) as error:
        raise _no_text(what, column) from error
    text = _Text(what, column).of(message)
    return text[1:-1] if text.startswith("(") and _is_one_bracket(text) else text


def _is_one_bracket(text: str) -> bool:
    reader = Reader(text)
    reader.inside("an expression")
    return reader.done


def _no_text(what: str, column: Any) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{what}: a column that has no SQL text, such as a Python function, a window, or a column of a"
        " DataFrame (frame.x)",
        found=str(column)[:200],
        expected=(
            "col('x') or col('alias.x') with Spark's own functions, or a string: an expression in SQL syntax"
        ),
    )


class _Text:
    """Writes one column in SQL. `what`: name of the argument in errors."""

    def __init__(self, what: str, column: Any) -> None:
        self._what, self._column = what, column
        self._forms: Mapping[str, Callable[[Any], str]] = {
            "literal": self._literal,
            "unresolved_attribute": self._attribute,
            "unresolved_function": self._function,
            "call_function": lambda call: self._called(call.function_name, call.arguments),
            "expression_string": lambda text: f"({text.expression}\n)",
            "cast": self._cast,
            "unresolved_extract_value": lambda item: f"{self.of(item.child)}[{self.of(item.extraction)}]",
            "alias": lambda named: self.of(named.expr),
            "lambda_function": self._lambda,
            "unresolved_named_lambda_variable": lambda variable: ".".join(map(col, variable.name_parts)),
        }

    def of(self, message: Any) -> str:
        kind = message.WhichOneof("expr_type")
        if kind not in self._forms:
            raise self._refused()
        return self._forms[kind](getattr(message, kind))

    def _refused(self) -> UnsupportedFeatureError:
        return _no_text(self._what, self._column)

    def _attribute(self, named: Any) -> str:
        if named.HasField("plan_id") or named.is_metadata_column:
            raise self._refused()
        reader = Reader(_quoted(named.unparsed_identifier))
        parts = reader.dotted()
        reader.end()
        return ".".join(map(col, parts))

    def _function(self, call: Any) -> str:
        if call.is_distinct or call.is_internal:
            raise self._refused()
        name, messages = call.function_name.lower(), list(call.arguments)
        if name == "struct":
            return self._struct(messages)
        if name == "when":
            return self._case(messages)
        arguments = [self.of(each) for each in messages]
        if name in _BETWEEN and len(arguments) == 2:
            return f"({arguments[0]} {_BETWEEN[name]} {arguments[1]})"
        if name in _BEFORE and len(arguments) == 1:
            return f"({_BEFORE[name]}{arguments[0]})"
        if name in _AFTER and len(arguments) == 1:
            return f"({arguments[0]}{_AFTER[name]})"
        if name == "in" and len(arguments) > 1:
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
        return self._called(call.function_name, messages)

    def _called(self, name: str, arguments: Any) -> str:
        if not name.isidentifier():
            raise self._refused()
        return f"{name}({', '.join(self.of(each) for each in arguments)})"

    def _struct(self, fields: list[Any]) -> str:
        """Writes struct(…) with the aliases of its fields."""
        parts = [
            f"{self.of(each)} AS {col(each.alias.name[0])}" if each.HasField("alias") else self.of(each)
            for each in fields
        ]
        return f"struct({', '.join(parts)})"

    def _case(self, arguments: list[Any]) -> str:
        texts = [self.of(each) for each in arguments]
        pairs = zip(texts[::2], texts[1::2], strict=False)
        last = f" ELSE {texts[-1]}" if len(texts) % 2 else ""
        return f"CASE {' '.join(f'WHEN {condition} THEN {value}' for condition, value in pairs)}{last} END"

    def _cast(self, cast: Any) -> str:
        name = "TRY_CAST" if cast.eval_mode == cast.EVAL_MODE_TRY else "CAST"
        return f"{name}({self.of(cast.expr)} AS {cast.type_str or _type_text(cast.type)})"

    def _lambda(self, function: Any) -> str:
        names = [".".join(map(col, each.name_parts)) for each in function.arguments]
        parameters = names[0] if len(names) == 1 else f"({', '.join(names)})"  # `(x) -> …` does not parse
        return f"{parameters} -> {self.of(function.function)}"

    def _literal(self, literal: Any) -> str:
        kind = literal.WhichOneof("literal_type")
        if kind == "null":
            data_type = literal.null if literal.null.WhichOneof("kind") else literal.data_type
            return (
                "NULL"
                if data_type.WhichOneof("kind") in (None, "null")
                else f"CAST(NULL AS {_type_text(data_type)})"
            )
        value = getattr(literal, kind or "null")
        if kind in ("boolean", "integer", "double", "string", "binary"):
            return lit(value)
        if kind in _WIDTHS:
            return f"CAST({lit(str(value)) if kind == 'float' else lit(value)} AS {_WIDTHS[kind]})"
        if kind == "decimal":
            return _decimal(value)
        if kind == "date":
            return lit(_DAY_ONE + timedelta(days=value))
        if kind == "timestamp":
            return lit((_EPOCH + timedelta(microseconds=value)).replace(tzinfo=timezone.utc))
        if kind == "timestamp_ntz":
            return lit(_EPOCH + timedelta(microseconds=value))
        raise self._refused()


def _quoted(identifier: str) -> str:
    """Quotes the parts of a column name: `first name.x` becomes `` `first name`.x ``."""
    parts = [part if part.startswith("`") else col(part) for part in _split(identifier)]
    return ".".join(parts)


def _split(identifier: str) -> list[str]:
    parts, quoted = [""], False
    for sign in identifier:
        quoted = quoted != (sign == "`")
        if sign == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _decimal(literal: Any) -> str:
    """Returns the SQL of a decimal literal, cast to a type that is wide enough for its digits and for the
    message's type."""
    _, digits, exponent = Decimal(literal.value).as_tuple()
    scale = max(-int(exponent), literal.scale, 0)
    precision = max(len(digits) + max(int(exponent), 0), literal.precision, scale)
    return f"CAST('{Decimal(literal.value):f}' AS DECIMAL({precision},{scale}))"


def _type_text(message: Any) -> str:
    from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type

    return str(proto_schema_to_pyspark_data_type(message).simpleString())
