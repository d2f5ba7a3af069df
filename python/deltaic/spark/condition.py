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
    `parameters`: maps each message parameter to the error's attribute, or the group of `pattern`, that has
    the value. In "`found`" the value is put in backticks, as Spark writes column names; in '"found"' it is a
    type, written in SQL. "=text" is a text that is the same in each error.
    """

    name: str
    sql_state: str
    kind: str
    error: type[e.DeltaError] = e.DeltaError
    pattern: str | None = None
    details: str = field(default="", kw_only=True)
    parameters: Mapping[str, str] = field(default_factory=dict)
