"""`Condition`: an error condition of delta-spark or Spark, and which errors of deltaic get it.

Sources: delta-io/delta, spark/src/main/resources/error/delta-error-classes.json (names and SQLSTATEs) and
DeltaErrors.scala (classes); apache/spark, error-conditions.json, QueryCompilationErrors.scala,
QueryParsingErrors.scala and QueryExecutionErrors.scala.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deltaic import errors as e

ANALYSIS, RUNTIME, ARGUMENT = "AnalysisException", "SparkRuntimeException", "IllegalArgumentException"
OPERATION, PARSE, BASE = "UnsupportedOperationException", "ParseException", "PySparkException"
ARITHMETIC, NUMBER, TIME = "ArithmeticException", "NumberFormatException", "DateTimeException"


@dataclass(frozen=True)
class Condition:
    """An error condition of delta-spark or Spark.

    `kind`: name of the class of `pyspark.errors`.
    `error`, `pattern`: an error of this class gets the condition if its message matches the pattern. An empty
    pattern matches every message. If the pattern is None, only an error whose message begins with `[name]`
    gets the condition.
    `details`: a second pattern, which the whole text of the error must match ("message; found …; expected
    …"). Its groups are values of parameters, too.
    `requires`: name of a value that the error must have, "" if none.
    `parameters`: message parameter -> the source of its value: a group of `pattern` or `details`, a key of
    the error's `values`, or an attribute of the error. Signs around the source set how the value is written:

    | source | the error's value | the parameter's value |
    |---|---|---|
    | `found` | 5 | 5 |
    | "`columns`" | names, one or several | `id`, `part` |
    | ".path" | the parts of a name, or one name | `address`.`city` |
    | "[columns]" | names | [`id`, `part`] |
    | '"found"' | a type | "ARRAY<BIGINT>" |
    | "<found>" | a type | ARRAY<BIGINT> |
    | "(where)" | an expression | "id + 1" |
    | "'found'" | a text | 'x' |
    | "@time", "~time" | a time | 2026-01-31 12:00:00.25, 2026-01-31 12:00:00 |
    | "%schema" | a schema | a tree, as `printSchema` shows it |
    | "^type" | a type | IntegerType |
    | "&type" | a type | struct<a:int> |
    | "#types" | places with types | [a: StringType(UTF8_LCASE)] |
    | "=text" | text, the same in each error | text |
    | "table|where" | the first of these that the error has | |
    """

    name: str
    sql_state: str | None
    kind: str
    error: type[e.DeltaError] = e.DeltaError
    pattern: str | None = None
    details: str = field(default="", kw_only=True)
    requires: str = field(default="", kw_only=True)
    parameters: Mapping[str, str] = field(default_factory=dict)
