"""A part of the walk over the list of forms: each form has Spark's value, type and error on every row, or is
refused by name.

scripts/walk_spark_expressions.py makes the forms, runs them on Spark and records; `walk` has forms on columns
and literals, `found` the forms that a walk once found to differ.
"""

from __future__ import annotations

from typing import Any

import pytest
from engine_answers import Answers, conditional, differences
from spark_recording import load
from walk_cases import WALK

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark_sql.duckdb import TranslatedExpression

ZONE = "America/New_York"
NAMES = ("walk", "found")
CHUNKS = [(name, part, load(name, ZONE)[part::20]) for name in NAMES for part in range(20)]


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers(WALK, ZONE)


@pytest.mark.parametrize(
    "entries", [pytest.param(entries, id=f"{name}-{part}") for name, part, entries in CHUNKS]
)
def test_part_of_the_walk(answers: Answers, entries: list[dict[str, Any]]) -> None:
    outcomes = {entry["form"]: answers.outcome(entry["form"]) for entry in entries}
    answered = {
        form: outcome for form, outcome in outcomes.items() if isinstance(outcome, TranslatedExpression)
    }
    values = dict(zip(answered, answers.tried([*answered.values()]), strict=True))
    wrong: dict[str, Any] = {}
    for entry in entries:
        form, outcome = entry["form"], outcomes[entry["form"]]
        if isinstance(outcome, InvalidArgumentError) and "refused" not in entry:
            wrong[form] = f"refused as wrong: {outcome}"
        if isinstance(outcome, TranslatedExpression):
            found = differences(form, outcome, values[form], entry)
            if found and outcome.raises:  # what is refused on a row is an error so far
                found = differences(form, outcome, answers.failing(outcome), entry)
            if outcome.type == "boolean":
                found += conditional(answers, outcome, values[form])
            if found:
                wrong[form] = found
    assert wrong == {}


def test_the_walk_is_answered() -> None:
    """Most of what is recorded is answered: a refusal of everything would be no walk."""
    answers = Answers(WALK, ZONE)
    for name in NAMES:
        recorded = [entry for entry in load(name, ZONE) if "refused" not in entry]
        refused = sum(
            isinstance(answers.outcome(entry["form"]), UnsupportedFeatureError) for entry in recorded
        )
        assert len(recorded) > 200
        assert refused < len(recorded) // 3
