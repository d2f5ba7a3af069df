"""Walks the list of SQL forms with arguments of every type and asks Spark (ANSI on) about each answer that the embedded engine gives.

Prints every form that is answered differently, that Spark refuses, or that is refused as wrong though Spark answers it; what is refused by
name is not asked. Needs PySpark and Java; from the repository's root: `python scripts/walk_spark_expressions.py [--sample N] [--seed N]
[--zone ZONE] [--nested N] [--json FILE] [--record N] [--found]`. `--record` writes the forms that are the same, N of them at most, with
Spark's answers, where tests/relation/test_walk.py finds them; `--found` records tests/relation/walk_found.txt, what once was different.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "relation"))

import pyarrow as pa
from engine_answers import Answers, conditional, differences
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.classic.column import Column
from pyspark.sql.functions import expr
from record_spark_expressions import condition, load, session
from spark_recording import encode, save
from walk_cases import WALK, first_level, nested

from deltaic.errors import UnsupportedFeatureError
from deltaic.relation.duckdb import Translated

FOUND = Path(__file__).resolve().parents[1] / "tests" / "relation" / "walk_found.txt"
MAX_CONDITIONS = 150
"""Of so many forms that fail the error condition is asked, a row at a time; of the others only whether they fail."""


class Spark:
    """Spark's answers to many forms: a batch of them at once, each in TryEval, so that what fails is told from what is null."""

    def __init__(self, spark: SparkSession, rows: pa.Table, zone: str) -> None:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        self._frame = load(spark, rows).localCheckpoint()
        self._rows = [load(spark, rows.take([i])) for i in range(rows.num_rows)]
        spark.conf.set("spark.sql.session.timeZone", zone)
        catalyst = spark._jvm.org.apache.spark.sql
        self._parser = spark._jsparkSession.sessionState().sqlParser()
        expressions = catalyst.catalyst.expressions
        self._try, self._struct, self._nullable = expressions.TryEval, expressions.CreateNamedStruct, expressions.KnownNullable
        self._column, self._sequence = catalyst.classic.ExpressionUtils.column, spark._jvm.PythonUtils.toSeq

    def kind(self, form: str) -> dict[str, Any]:
        """The type of a form, or why it is refused."""
        try:
            return {"type": self._frame.selectExpr(f"({form}) AS value").schema["value"].dataType.json()}
        except PySparkException as error:
            return {"refused": condition(error)}

    def kinds(self, forms: Sequence[str]) -> dict[str, dict[str, Any]]:
        """`kind` of many."""
        if not forms:
            return {}
        try:
            schema = self._frame.select(*[expr(form).alias(f"v{index}") for index, form in enumerate(forms[:60])]).schema
            known = {form: {"type": field.dataType.json()} for form, field in zip(forms, schema, strict=False)}
            return known | self.kinds(forms[60:])
        except PySparkException:
            if len(forms) == 1:
                return {forms[0]: self.kind(forms[0])}
        half = min(len(forms), 60) // 2
        return self.kinds(forms[:half]) | self.kinds(forms[half:])

    def values(self, forms: Sequence[str], batch: int = 60) -> list[list[Any]]:
        """For each its values on all rows; errors without their condition."""
        if len(forms) > batch:
            return [found for start in range(0, len(forms), batch) for found in self.values(forms[start : start + batch], batch)]
        columns = [self._boxed(form).alias(f"v{index}") for index, form in enumerate(forms)]
        try:
            table = self._frame.select(*columns).toArrow()
            return [[{"error": ""} if box is None else box["v"] for box in encode(table.column(i))] for i in range(len(forms))]
        except Exception:
            if len(forms) == 1:
                return [[{"error": ""}] * len(self._rows)]
        half = len(forms) // 2
        return self.values(forms[:half]) + self.values(forms[half:])

    def _boxed(self, form: str) -> Column:
        parts = [self._parser.parseExpression("'v'"), self._nullable(self._parser.parseExpression(f"({form})"))]
        return Column(self._column(self._try(self._struct(self._sequence(parts)))))

    def condition(self, form: str, row: int) -> str:
        """The error condition of a form on a row; empty where it does not fail."""
        try:
            self._rows[row].selectExpr(f"({form}) AS value").toArrow()
        except Exception as error:
            return condition(error)
        return ""


def walk(forms: Sequence[str], answers: Answers, spark: Spark) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(what differs, what is the same), each with Spark's answer."""
    start = time.monotonic()
    outcomes = {form: answers.outcome(form) for form in forms}
    asked = [form for form, outcome in outcomes.items() if not isinstance(outcome, UnsupportedFeatureError)]
    answered = [form for form in asked if isinstance(outcomes[form], Translated)]
    wrong = [form for form in asked if not isinstance(outcomes[form], Translated)]
    asked = answered + wrong[: len(answered) // 5]  # most are wrong in Spark too, and asking one takes long
    kinds = spark.kinds(asked)
    print(
        f"{len(forms)} forms, {len(answered)} answered, {len(wrong)} refused as wrong; {time.monotonic() - start:.0f} s",
        flush=True,
    )
    different = [
        {"form": form, "why": [f"refused, and Spark answers {kinds[form]['type']}: {str(outcomes[form])[:200]}"]}
        for form in asked
        if form not in set(answered) and "type" in kinds[form]
    ]
    typed = [form for form in answered if "type" in kinds[form]]
    theirs = dict(zip(typed, spark.values(typed), strict=True))
    print(f"Spark's values; {time.monotonic() - start:.0f} s", flush=True)
    ours = {form: answers.failing(outcomes[form], theirs.get(form, ())) for form in answered}  # type: ignore[arg-type]
    print(f"our values; {time.monotonic() - start:.0f} s", flush=True)
    same: list[dict[str, Any]] = []
    conditions = 0
    for form in answered:
        recorded = {"form": form, **kinds[form]} | ({"values": theirs[form]} if form in theirs else {})
        for row, value in enumerate(recorded.get("values", ())):
            if conditions < MAX_CONDITIONS and value == {"error": ""} and ours[form][row].__class__ is dict and "error" in ours[form][row]:
                conditions += 1
                recorded["values"] = [*recorded["values"]]
                recorded["values"][row] = {"error": spark.condition(form, row)}
                break
        why = differences(form, outcomes[form], ours[form], recorded)  # type: ignore[arg-type]
        if outcomes[form].type == "boolean":  # type: ignore[union-attr]
            why += conditional(answers, outcomes[form], ours[form])  # type: ignore[arg-type]
        (different if why else same).append({**recorded, "why": why} if why else recorded)
    print(f"compared; {time.monotonic() - start:.0f} s", flush=True)
    return different, same


def record_found(spark: Spark, zone: str) -> None:
    """Spark's answers to all that a walk ever found."""
    forms = FOUND.read_text(encoding="utf-8").splitlines()
    kinds = spark.kinds(forms)
    typed = [form for form in forms if "type" in kinds[form]]
    values = dict(zip(typed, spark.values(typed), strict=True))
    save("found", zone, [{"form": form, **kinds[form]} | ({"values": values[form]} if form in values else {}) for form in forms])


def main(options: argparse.Namespace) -> None:
    if options.found:
        record_found(Spark(session(), WALK.rows, options.zone), options.zone)
        return
    answers, forms = Answers(WALK, options.zone), first_level()
    chosen = random.Random(options.seed)
    if options.nested:
        known = [form for form in chosen.sample(forms, 20_000) if isinstance(answers.outcome(form), Translated)]
        forms = nested(known, options.nested, options.seed)
    elif options.sample:
        forms = chosen.sample(forms, options.sample)
    different, same = walk(forms, answers, Spark(session(), WALK.rows, options.zone))
    print(Counter(found["why"][0].split(":")[0].rstrip("0123456789 ") for found in different))
    if options.json:
        options.json.write_text("".join(json.dumps(found) + "\n" for found in different), encoding="utf-8")
    else:
        for found in different:
            print(found["form"], found["why"][:2])
    if options.record:
        recorded = sorted(chosen.sample(same, min(options.record, len(same))), key=lambda entry: entry["form"])
        save("nested" if options.nested else WALK.name, options.zone, recorded)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("--sample", "--seed", "--nested", "--record"):
        parser.add_argument(name, type=int, default=0)
    parser.add_argument("--zone", default="America/New_York")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--found", action="store_true")
    main(parser.parse_args())
