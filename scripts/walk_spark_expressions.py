"""Walks the list of SQL forms with arguments of every type, and compares each result of the embedded engine
with Spark's (ANSI on).

Prints every form with different results, every form that Spark refuses, and every form that is refused as
wrong although Spark evaluates it; forms that are refused by name are skipped. Needs PySpark and Java; run it
in the repository's root: `python scripts/walk_spark_expressions.py [--sample N] [--seed N] [--zone ZONE]
[--nested N] [--part I/N] [--known FOLDER] [--json FILE] [--record N] [--found]`. `--known` keeps Spark's
results, so that a second walk evaluates only new forms; `--part 0/2` walks every second form, beginning with
the first. `--record` writes at most N of the forms with equal results to the file that
tests/spark_sql/test_walk.py reads, with Spark's results; `--found` records the forms of
tests/spark_sql/walk_found.txt, which once differed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "spark_sql"))

from engine_answers import Answers, conditional, differences
from record_spark_expressions import session
from spark_answers import Answer, Known, Spark
from spark_recording import save
from walk_cases import WALK, first_level, nested

from deltaic.errors import InvalidArgumentError
from deltaic.spark_sql.duckdb import TranslatedExpression

FOUND = Path(__file__).resolve().parents[1] / "tests" / "spark_sql" / "walk_found.txt"
MAX_CONDITIONS = 150
"""Maximum number of failing forms whose error condition is compared, row by row. Of the other failing forms,
only the failure itself is compared."""
_CLOCK = re.compile(r"current_|now\(|localtimestamp|curdate|rand|uuid")
CHUNK = 1000


class Walk:
    """Compares form by form, a chunk of them at once."""

    def __init__(self, zone: str, known: Path | None) -> None:
        self.answers, self.spark = Answers(WALK, zone), Spark(session(), WALK.rows, zone)
        place = zone.replace("/", "_")
        paths = [known / f"{way}-{place}.jsonl" if known else None for way in ("early", "planned")]
        self.early, self.planned = (
            Known(self.spark, path, planned=path_of)
            for path, path_of in zip(paths, (False, True), strict=True)
        )
        self.counts: Counter[str] = Counter()
        self._conditions = 0

    def walk(self, forms: Sequence[str]) -> Iterator[tuple[str, Answer, list[str]]]:
        """Yields each form that is supported, Spark's answer, and the differences."""
        start = time.monotonic()
        for first in range(0, len(forms), CHUNK):
            yield from self._chunk([form for form in forms[first : first + CHUNK] if not _CLOCK.search(form)])
            print(
                f"{min(first + CHUNK, len(forms))} forms, {dict(self.counts)},"
                f" {time.monotonic() - start:.0f} s",
                flush=True,
            )

    def _chunk(self, forms: Sequence[str]) -> Iterator[tuple[str, Answer, list[str]]]:
        outcomes = {form: self.answers.outcome(form) for form in forms}
        answered = {
            form: outcome for form, outcome in outcomes.items() if isinstance(outcome, TranslatedExpression)
        }
        wrong = [form for form, outcome in outcomes.items() if isinstance(outcome, InvalidArgumentError)]
        wrong = wrong[: len(answered) // 20]  # most are wrong in Spark too, and asking one takes long
        self.counts["answered"] += len(answered)
        theirs = self.early.answers([*answered, *wrong])
        ours = dict(zip(answered, self.answers.tried([*answered.values()]), strict=True))
        why = {form: self._why(form, answered[form], ours[form], theirs[form]) for form in answered}
        # The optimizer's answer is the one that counts.
        doubtful = [form for form, found in why.items() if found]
        theirs |= self.planned.answers(doubtful)
        for form in doubtful:
            why[form] = self._why(form, answered[form], ours[form], theirs[form])
            if why[form]:
                theirs[form] = self.spark.alone(form)
                why[form] = self._why(
                    form, answered[form], self.answers.failing(answered[form]), theirs[form]
                )
        why |= {
            form: [f"refused, {outcomes[form]}"] if "refused" not in theirs[form] else [] for form in wrong
        }
        self.counts["different"] += sum(map(bool, why.values()))
        return ((form, theirs[form], found) for form, found in why.items())

    def _why(self, form: str, found: TranslatedExpression, ours: Sequence[Any], theirs: Answer) -> list[str]:
        why = differences(form, found, ours, theirs)
        failing = [
            row
            for row, value in enumerate(theirs.get("values", ()))
            if isinstance(value, dict) and value.get("error") == ""
        ]
        if not why and failing and self._conditions < MAX_CONDITIONS:
            self._conditions += 1
            values = [*theirs["values"]]
            values[failing[0]] = {"error": self.spark.condition(form, failing[0])}
            mine = [*ours]
            mine[failing[0]] = self.answers.single(found, failing[0] + 1)
            why = differences(form, found, mine, {**theirs, "values": values})
        return why or (conditional(self.answers, found, ours) if found.type == "boolean" else [])


def record_found(walk: Walk, zone: str) -> None:
    """Records Spark's answers to all forms that a walk ever found."""
    forms = FOUND.read_text(encoding="utf-8").splitlines()
    found = walk.planned.answers(forms)
    save("found", zone, [{"form": form, **found[form]} for form in forms])


def main(options: argparse.Namespace) -> None:
    walk, chosen = Walk(options.zone, options.known), random.Random(options.seed)
    if options.found:
        record_found(walk, options.zone)
        return
    forms = first_level()
    if options.nested:
        known = [
            form
            for form in chosen.sample(forms, 20_000)
            if isinstance(walk.answers.outcome(form), TranslatedExpression)
        ]
        forms = nested(known, options.nested, options.seed)
    elif options.sample:
        forms = chosen.sample(forms, options.sample)
    part, parts = map(int, options.part.split("/"))
    same, different = [], []
    for form, answer, why in walk.walk(forms[part::parts]):
        (different if why else same).append({"form": form, **answer, **({"why": why} if why else {})})
        if why:
            print(form, why[:2], flush=True)
    if options.json:
        options.json.write_text("".join(json.dumps(found) + "\n" for found in different), encoding="utf-8")
    if options.record:
        recorded = sorted(
            chosen.sample(same, min(options.record, len(same))), key=lambda entry: entry["form"]
        )
        planned = walk.planned.answers(entry["form"] for entry in recorded)
        save(
            "nested" if options.nested else WALK.name,
            options.zone,
            [{"form": form, **answer} for form, answer in planned.items()],
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("--sample", "--seed", "--nested", "--record"):
        parser.add_argument(name, type=int, default=0)
    parser.add_argument("--zone", default="America/New_York")
    parser.add_argument("--part", default="0/1")
    for name in ("--json", "--known"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--found", action="store_true")
    main(parser.parse_args())
