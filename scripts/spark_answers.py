"""Evaluates many forms on Spark at once, for scripts/walk_spark_expressions.py; a file of JSON lines can keep
the results.

Forms are evaluated in one of two ways. *At once*: over a local relation, where Spark evaluates the projection
before it is optimized; no job runs, and a form that fails does not affect the others, so this takes
milliseconds for each form. *As planned*: over rows of an executor, as over a table, with all steps of the
optimizer. If the optimizer fails on the constants of a form, the whole batch fails, and its halves are
evaluated again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.column import Column
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from record_spark_expressions import condition, load
from spark_recording import encode

Answer = dict[str, Any]
"""{"type": JSON of Spark's type, "values": one for each row, {"error": condition} where it fails} or
{"refused": condition}."""


class Spark:
    """Spark's answers on the rows of a family, in one session time zone."""

    def __init__(self, spark: SparkSession, rows: pa.Table, zone: str) -> None:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        self._planned = load(spark, rows).localCheckpoint()
        self._rows = [load(spark, rows.take([i])) for i in range(rows.num_rows)]
        catalyst = spark._jvm.org.apache.spark.sql
        relation = load(spark, rows, partitions=False)._jdf.queryExecution().optimizedPlan()
        self._local = ClassicFrame(catalyst.classic.Dataset.ofRows(spark._jsparkSession, relation), spark)
        spark.conf.set("spark.sql.session.timeZone", zone)
        self._parser = spark._jsparkSession.sessionState().sqlParser()
        expressions = catalyst.catalyst.expressions
        self._try, self._struct, self._nullable = (
            expressions.TryEval,
            expressions.CreateNamedStruct,
            expressions.KnownNullable,
        )
        self._name = self._parser.parseExpression("'v'")
        self._column, self._sequence = catalyst.classic.ExpressionUtils.column, spark._jvm.PythonUtils.toSeq

    def answers(self, forms: Sequence[str], *, planned: bool = False, batch: int = 40) -> dict[str, Answer]:
        """Returns the answer to each form; errors of rows have an empty condition, which `condition`
        finds."""
        frame = self._planned if planned else self._local
        found: dict[str, Answer] = {}
        for start in range(0, len(forms), batch):
            found |= self._together(forms[start : start + batch], frame)
        return found

    def _together(self, forms: Sequence[str], frame: DataFrame) -> dict[str, Answer]:
        """Puts each form in TryEval, so that a failure is distinguished from a null."""
        try:
            selected = frame.select(
                *[self._boxed(form).alias(f"v{index}") for index, form in enumerate(forms)]
            )
            kinds = [field.dataType["v"].dataType.json() for field in selected.schema]
            table = selected.toArrow()
            boxes = [encode(table.column(index)) for index in range(len(forms))]
        except Exception as error:
            if len(forms) == 1:
                return {forms[0]: self._failing(forms[0], error)}
            half = len(forms) // 2
            return self._together(forms[:half], frame) | self._together(forms[half:], frame)
        return {
            form: {"type": kind, "values": [{"error": ""} if box is None else box["v"] for box in column]}
            for form, kind, column in zip(forms, kinds, boxes, strict=True)
        }

    def _failing(self, form: str, error: Exception) -> Answer:
        """Returns the answer for a form that the analyser refuses, or that fails before the first row."""
        try:
            kind = self._local.selectExpr(f"({form}) AS value").schema["value"].dataType.json()
        except Exception as refused:  # what is no analysis error is one inside Spark
            return {"refused": condition(refused)}
        return {"type": kind, "values": [{"error": condition(error)}] * len(self._rows)}

    def _boxed(self, form: str) -> Column:
        parts = [self._name, self._nullable(self._parser.parseExpression(f"({form})"))]
        return Column(self._column(self._try(self._struct(self._sequence(parts)))))

    def alone(self, form: str) -> Answer:
        """Evaluates a form on one row after the other, each in a query of its own: Spark keeps a half-built
        map if TryEval caught its error, and puts its entries into the next one."""
        answer = self._together([form], self._local)[form]
        return (
            {**answer, "values": [self._on(row, form) for row in self._rows]} if "type" in answer else answer
        )

    def condition(self, form: str, row: int) -> str:
        """Returns the error condition of a form on a row; empty if it does not fail."""
        value = self._on(self._rows[row], form)
        return str(value["error"]) if isinstance(value, dict) and value.keys() == {"error"} else ""

    def _on(self, row: DataFrame, form: str) -> Any:
        try:
            return encode(row.selectExpr(f"({form}) AS value").toArrow().column(0))[0]
        except Exception as error:
            return {"error": condition(error)}


class Known:
    """Answers that a file keeps; those that are not in it are requested from Spark and added."""

    def __init__(self, spark: Spark, path: Path | None, *, planned: bool) -> None:
        self._spark, self._path, self._planned = spark, path, planned
        self._answers: dict[str, Answer] = {}
        if path is not None and path.exists():
            with path.open(encoding="utf-8") as lines:
                self._answers = {entry.pop("form"): entry for entry in map(json.loads, lines)}

    def answers(self, forms: Iterable[str]) -> dict[str, Answer]:
        forms = list(forms)
        missing = [form for form in forms if form not in self._answers]
        for start in range(0, len(missing), 400):
            asked = self._spark.answers(missing[start : start + 400], planned=self._planned)
            self._answers |= asked
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as lines:
                    lines.writelines(
                        json.dumps({"form": form, **answer}) + "\n" for form, answer in asked.items()
                    )
        return {form: self._answers[form] for form in forms}
