"""The rows that a table should have, in Python lists: the oracle of test_oracle.py, short enough to be read
in a minute.

A row is a tuple of Python values in the order of `Model.columns`. Conditions are small objects with a SQL
text and a three-valued answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]


def canonical(value: Any) -> Any:
    """Returns a hashable substitute that is equal exactly if values are: NaN equals NaN, -0.0 is not 0.0,
    structs and maps become pairs."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, dict):
        return tuple(sorted((key, canonical(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(canonical(item) for item in value)
    return value


def multiset(rows: Iterable[Row]) -> Counter[Any]:
    return Counter(canonical(row) for row in rows)


def arrow_rows(table: pa.Table) -> list[Row]:
    """Returns rows of an Arrow table as tuples in its order of columns."""
    return (
        list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []
    )


@dataclass(frozen=True)
class Condition:
    """SQL over one table, and its result for a row given as a mapping of columns: True, False or None."""

    sql: Callable[[str], str]
    holds: Callable[[dict[str, Any]], bool | None]

    def text(self, prefix: str = "") -> str:
        return self.sql(prefix)


def compare(column: str, operator: str, literal: str, value: Any) -> Condition:
    """column operator literal, the literal not NaN; null where the column is null. A NaN of the column is
    greater than all."""
    tests: dict[str, Callable[[Any], bool]] = {
        "=": lambda found: found == value,
        "<": lambda found: found < value,
        ">=": lambda found: found >= value,
        "<>": lambda found: found != value,
    }

    def holds(row: dict[str, Any]) -> bool | None:
        found = row[column]
        return (
            None
            if found is None
            else tests[operator](math.inf if isinstance(found, float) and math.isnan(found) else found)
        )

    return Condition(lambda prefix: f"{prefix}`{column}` {operator} {literal}", holds)


def is_null(column: str) -> Condition:
    return Condition(lambda prefix: f"{prefix}`{column}` IS NULL", lambda row: row[column] is None)


def both(left: Condition, right: Condition) -> Condition:
    def holds(row: dict[str, Any]) -> bool | None:
        answers = (left.holds(row), right.holds(row))
        return False if False in answers else (None if None in answers else True)

    return Condition(lambda prefix: f"({left.sql(prefix)} AND {right.sql(prefix)})", holds)


def either(left: Condition, right: Condition) -> Condition:
    def holds(row: dict[str, Any]) -> bool | None:
        answers = (left.holds(row), right.holds(row))
        return True if True in answers else (None if None in answers else False)

    return Condition(lambda prefix: f"({left.sql(prefix)} OR {right.sql(prefix)})", holds)


def negated(inner: Condition) -> Condition:
    def holds(row: dict[str, Any]) -> bool | None:
        answer = inner.holds(row)
        return None if answer is None else not answer

    return Condition(lambda prefix: f"NOT ({inner.sql(prefix)})", holds)


@dataclass(frozen=True)
class Change:
    """column = expression, as SQL and as the value that it gives for a row. In MERGE the expression may read
    the source as `s`."""

    column: str
    sql: str
    value: Callable[[dict[str, Any], dict[str, Any]], Any]


@dataclass
class Model:
    """Rows of the newest version, and those of every version before."""

    columns: list[str]
    rows: list[Row] = field(default_factory=list)
    versions: dict[int, tuple[list[str], list[Row]]] = field(default_factory=dict)

    def committed(self, version: int) -> None:
        self.versions[version] = (list(self.columns), list(self.rows))

    def named(self, row: Row) -> dict[str, Any]:
        return dict(zip(self.columns, row, strict=True))

    def matching(self, condition: Condition | None) -> list[Row]:
        return [row for row in self.rows if condition is None or condition.holds(self.named(row)) is True]

    def delete(self, condition: Condition | None) -> int:
        before = len(self.rows)
        self.rows = [
            row for row in self.rows if condition is not None and condition.holds(self.named(row)) is not True
        ]
        return before - len(self.rows)

    def _changed(self, row: Row, changes: Sequence[Change], source: dict[str, Any] | None = None) -> Row:
        old = self.named(row)
        new = {change.column: change.value(old, source or {}) for change in changes}
        return tuple({**old, **new}[column] for column in self.columns)

    def update(self, changes: Sequence[Change], condition: Condition | None) -> int:
        chosen = [condition is None or condition.holds(self.named(row)) is True for row in self.rows]
        self.rows = [
            self._changed(row, changes) if change else row
            for row, change in zip(self.rows, chosen, strict=True)
        ]
        return sum(chosen)

    def is_ambiguous(self, source: Sequence[Row], key: str, clauses: Sequence[Clause]) -> bool:
        """Returns whether two rows of the source would change one row. Not where all that can happen to
        matched rows is one delete of every row. The conditions of clauses read the table alone."""
        matched = [clause for clause in clauses if clause.kind == "matched"]
        if len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None:
            return False
        position = self.columns.index(key)
        keys = Counter(row[position] for row in source if row[position] is not None)
        return any(
            keys[row[position]] > 1 and any(clause.applies(self.named(row)) for clause in matched)
            for row in self.rows
        )

    def merge(self, source: Sequence[Row], key: str, clauses: Sequence[Clause]) -> Counter[str]:
        """MERGE ON t.key = s.key, where the source is not ambiguous. -> rows inserted, updated, deleted."""
        position = self.columns.index(key)
        by_key = {row[position]: row for row in source if row[position] is not None}
        done: Counter[str] = Counter()
        kept: list[Row] = []
        seen = set()
        for row in self.rows:
            other = by_key.get(row[position]) if row[position] is not None else None
            if other is not None:
                seen.add(row[position])
            kind = "matched" if other is not None else "by_source"
            incoming = None if other is None else self.named(other)
            clause = next((c for c in clauses if c.kind == kind and c.applies(self.named(row))), None)
            if clause is None:
                kept.append(row)
            elif clause.action == "delete":
                done["deleted"] += 1
            else:
                done["updated"] += 1
                kept.append(
                    tuple(other)
                    if clause.action == "update_all" and other is not None
                    else self._changed(row, clause.changes, incoming)
                )
        for row in source:
            if row[position] is None or row[position] not in seen:
                clause = next(
                    (c for c in clauses if c.kind == "not_matched" and c.applies(self.named(row))), None
                )
                if clause is not None:
                    done["inserted"] += 1
                    kept.append(tuple(row))
        self.rows = kept
        return done


@dataclass(frozen=True)
class Clause:
    """One clause of MERGE. kind: matched | not_matched | by_source; action: delete | update | update_all |
    insert_all."""

    kind: str
    action: str
    condition: Condition | None = None
    changes: tuple[Change, ...] = ()

    def applies(self, row: dict[str, Any]) -> bool:
        return self.condition is None or self.condition.holds(row) is True
