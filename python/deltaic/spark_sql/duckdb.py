"""Translates Spark SQL expressions to DuckDB's SQL. Every supported form of expression is listed in
docs/sql.md; any other form raises UnsupportedFeatureError with its name.

Source: Spark 4.3 in ANSI mode; tests/spark_sql/recorded holds its answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaic.errors import DeltaError, InvalidArgumentError
from deltaic.process_state import module_lock
from deltaic.protocol.schema import DataType, Schema
from deltaic.spark_sql.casts import Zone
from deltaic.spark_sql.macros import MACROS
from deltaic.spark_sql.parsing import parse
from deltaic.spark_sql.scope import ColumnSql, Path, Scope
from deltaic.spark_sql.translation import Translator
from deltaic.spark_sql.values import Value, is_interval, unsupported
from deltaic.sql_text import duckdb_name

if TYPE_CHECKING:
    import duckdb
    from sqlglot import exp

MAX_SQL = 4_000_000
"""Maximum number of characters of translated SQL; longer SQL raises InvalidArgumentError. Some forms write an
operand several times, so SQL grows exponentially with the depth of nesting."""


@dataclass(frozen=True)
class TranslatedExpression:
    """An expression in DuckDB's SQL. `sql`: gives values of exactly the type `type`. `raises`: the expression
    may fail on a row.
    `columns`: (alias, path) of each column and struct field that the expression reads.

    `constants`: SQL of the parts that Spark computes while it plans. They must be computed before any row, so
    that their errors are raised even for a table without rows."""

    sql: str
    type: DataType
    nullable: bool
    raises: bool
    deterministic: bool
    columns: frozenset[Path]
    constants: tuple[str, ...] = ()


class ExpressionError(InvalidArgumentError):
    """Raised for an expression that fails on a row, as in Spark. `condition`: Spark's error condition, such
    as DIVIDE_BY_ZERO."""

    def __init__(
        self, message: str, *, condition: str, where: str | None = None, found: object = None
    ) -> None:
        super().__init__(f"[{condition}] {message}", where=where, found=found)

    def within(self, place: str) -> ExpressionError:
        where, named = f"{place}, {self.where}" if self.where else place, self.condition or ""
        return ExpressionError(
            self.message.removeprefix(f"[{named}] "), condition=named, where=where, found=self.found
        )


def translate(
    text_or_tree: str | exp.Expression,
    schemas: Mapping[str, Schema],
    *,
    column_sql: ColumnSql,
    time_zone: str = "UTC",
) -> TranslatedExpression:
    """Returns an expression in DuckDB's SQL, with the same value, type and errors as in Spark.

    `schemas`: alias -> schema of the tables whose columns the expression may read. `column_sql(alias, path)`:
    SQL of a column or struct field; alias and path are in the case of the schemas. Call `prepare` on the
    connection before running the SQL.

    Raises UnsupportedFeatureError for a form that docs/sql.md does not list, and InvalidArgumentError for an
    unknown or ambiguous name, for types that do not fit, and for an aggregate or window function where a
    scalar is expected.
    """
    scope = Scope(schemas, column_sql)
    tree = parse(text_or_tree) if isinstance(text_or_tree, str) else text_or_tree
    value = evaluate(tree, scope, time_zone)
    check_result(value)
    return TranslatedExpression(
        value.sql,
        value.type,
        value.nullable,
        value.raises,
        value.deterministic,
        frozenset(scope.columns),
        value.constants,
    )


def check_result(value: Value) -> None:
    """Raises UnsupportedFeatureError if no column can have the value's type (an interval), and
    InvalidArgumentError if its SQL is longer than MAX_SQL."""
    if is_interval(value.type):
        raise unsupported(f"a result of type {value.type}")
    if len(value.sql) > MAX_SQL:
        raise InvalidArgumentError(
            "the expression is too large",
            found=f"{len(value.sql)} characters of SQL",
            expected=f"at most {MAX_SQL}",
        )


def evaluate(tree: exp.Expression, scope: Scope, time_zone: str) -> Value:
    """Returns the translated value of a parsed expression. Raises InvalidArgumentError if the expression is
    nested too deeply."""
    try:
        return Translator(scope, Zone(time_zone)).value(tree)
    except RecursionError:
        raise InvalidArgumentError("SQL is nested too deeply") from None


_installing = module_lock()
"""Held while functions are installed: threads use cursors of one database, and DuckDB refuses to create a
function that exists."""


def prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Installs what translated SQL needs: macros, a few vectorised functions, and the time zone UTC. May be
    called again on the same connection, and by several threads."""
    from deltaic.spark_sql.functions.kernels import install

    with _installing:
        connection.execute("SET GLOBAL TimeZone = 'UTC'; SET TimeZone = 'UTC'")
        listed = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name LIKE 'deltaic_%'"
        )
        known = {name for (name,) in listed.fetchall()}
        install(connection, known)
        missing = [
            f"CREATE OR REPLACE MACRO {head} AS {body};"
            for head, body in MACROS.items()
            if head.split("(")[0] not in known
        ]
        if missing:
            connection.execute("\n".join(missing))


_CONDITION = re.compile(r"\[([A-Z_][A-Z0-9_.]+)\] (.*)", re.DOTALL)
_OVERFLOW = "the result of an operation is out of range of its type"
_VALUES = re.compile(r"""value "?([-+.\w]+)|\((-?[\d.]+ [-+*] -?[\d.]+)\)""")
"""Finds what a message of DuckDB is about: the value of a cast, or an operation with its numbers."""
_NATIVE = (
    (
        re.compile(r"to type DECIMAL|to DECIMAL|of DECIMAL\("),
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "a number has too many digits for its decimal type",
    ),
    (
        re.compile(r"can't be cast because the value is out of range|Failed to cast decimal value"),
        "CAST_OVERFLOW",
        "a number is out of range of the type it is cast to",
    ),
    (
        re.compile(r"Overflow in (addition|subtraction|multiplication) of INT(8|16)\b"),
        "BINARY_ARITHMETIC_OVERFLOW",
        _OVERFLOW,
    ),
    (re.compile(r"Overflow|out of range", re.IGNORECASE), "ARITHMETIC_OVERFLOW", _OVERFLOW),
    (
        re.compile(r"Map keys must be unique|map contains duplicate key"),
        "DUPLICATED_MAP_KEY",
        "a map has one key twice",
    ),
    (re.compile(r"Division by zero", re.IGNORECASE), "DIVIDE_BY_ZERO", "a number is divided by zero"),
    (re.compile(r"Cannot create a string of size"), "STRING_TOO_LARGE", "a text has more than 4 GB"),
    (
        re.compile(r"More than one row returned by a subquery"),
        "SCALAR_SUBQUERY_TOO_MANY_ROWS",
        "a subquery that stands for one value returned several rows",
    ),
)
"""Errors of DuckDB's own operators: a pattern of DuckDB's message, Spark's error condition, and the message
that the user gets."""


_BEYOND = (
    (re.compile(r"could not convert blob to UTF8"), "a text of bytes that are no UTF-8"),
    (
        re.compile(
            r"Date out of range|Timestamp microseconds out of range|not in timestamp range|INT32 with value"
            r" \S*\d-\d\d-\d\d"
        ),
        "a date or timestamp as far away as this one",
    ),
)
"""Errors for values that Spark has and DuckDB does not: a pattern of DuckDB's message, and what the value
is."""


def failure_of(error: Exception) -> DeltaError | None:
    """Returns DuckDB's error as the error of an expression that fails on a row, or None if it is another kind
    of error."""
    import duckdb

    if isinstance(
        error, duckdb.BinderException
    ) and "TRY can not be used in combination with a volatile function" in str(error):
        return unsupported("a conversion of a value that may itself fail")
    if not isinstance(
        error, (duckdb.InvalidInputException, duckdb.OutOfRangeException, duckdb.ConversionException)
    ):
        return None
    text = str(error)
    for pattern, what in _BEYOND:
        if pattern.search(text):
            return unsupported(what)
    if (
        (match := _CONDITION.search(text))
        and match[1].startswith("UNSUPPORTED")
        and not match[1].startswith("UNSUPPORTED_FEATURE")
    ):
        return unsupported(match[2].strip())
    if match:
        return ExpressionError(match[2].strip(), condition=match[1])
    for pattern, condition, message in _NATIVE:
        if pattern.search(text):
            named = _VALUES.search(text)
            return ExpressionError(message, found=named and (named[1] or named[2]), condition=condition)
    return None


def quote(*parts: str) -> str:
    """Returns a dotted name, each part quoted for DuckDB."""
    return ".".join(map(duckdb_name, parts))
