"""A condition of delta-spark or Spark, and which errors of deltaic are of it.

Sources: delta-io/delta, spark/src/main/resources/error/delta-error-classes.json (names and SQLSTATEs) and DeltaErrors.scala (classes);
apache/spark, error-conditions.json, QueryCompilationErrors.scala, QueryParsingErrors.scala and QueryExecutionErrors.scala.
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
    """One of delta-spark's conditions.

    `kind`: the class of `pyspark.errors`. `error`, `pattern`: errors of this class whose message the pattern finds are of the condition; an
    empty pattern takes every message, None only one that begins with `[name]`. `details`: a pattern for the whole text of the error, with
    what it found and expected, where that decides. `parameters`: names of message parameters -> the attribute of the error that has the
    value, or a group of one of the patterns; "`found`" puts the value into backticks, as Spark does with column names, and a name in double
    quotes is a type, written as SQL does.
    """

    name: str
    sql_state: str
    kind: str
    error: type[e.DeltaError] = e.DeltaError
    pattern: str | None = None
    details: str = field(default="", kw_only=True)
    parameters: Mapping[str, str] = field(default_factory=dict)
