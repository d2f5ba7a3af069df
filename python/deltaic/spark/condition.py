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

    `kind`: the class of `pyspark.errors`.
    `error`, `pattern`: an error of this class gets the condition if the pattern is found in its message. An
    empty pattern is found in every message. With None, only a message that begins with `[name]` counts.
    `details`: a second pattern, for the whole text of the error ("message; found …; expected …").
    Its groups are values of parameters, too.
    `parameters`: maps each message parameter to where the error has the value: a group of `pattern` or
    `details`, a key of `values`, or an attribute. Quotes around it say how the value is written:

    | source | value | parameter |
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
    | "=text" | text, the same in each error | text |
    | "table|where" | the first of these that the error has | |
    """

    name: str
    sql_state: str
    kind: str
    error: type[e.DeltaError] = e.DeltaError
    pattern: str | None = None
    details: str = field(default="", kw_only=True)
    parameters: Mapping[str, str] = field(default_factory=dict)
