"""Random queries with PIVOT and UNPIVOT, over the tables of query_walk.py; their numbers begin at `FIRST`.

Spark's SQL has no set operations BY NAME (`unionByName` is a method of DataFrames), so that no query has one.
"""

from __future__ import annotations

import random

from query_walk import ALL, Columns, Walk

FIRST = 200_000
_VALUES: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "2", "3", "5", "-4", "1 + 1", "NULL", "300"),
    "decimal": ("1.50", "-2.25", "10", "0.0001", "3.1416", "NULL"),
    "string": ("'a'", "'b'", "'B'", "''", "'zz '", "'a' || 'b'", "upper('b')", "NULL"),
    "date": ("DATE '2024-01-30'", "DATE '2024-01-31'", "DATE '2024-03-01'", "NULL"),
    "double": ("0.25D", "1.5D", "-3.0D", "NULL"),
    "boolean": ("true", "false", "NULL"),
}
_TURNED: dict[str, tuple[str, ...]] = {  # kinds that have a common type
    "int": ("int", "decimal", "double"),
    "decimal": ("int", "decimal"),
    "double": ("double", "int"),
    "string": ("string",),
    "date": ("date",),
    "boolean": ("boolean",),
}


def query(number: int) -> str:
    """Returns the query with a number: with PIVOT or UNPIVOT from `FIRST` on, of query_walk.py for smaller
    numbers."""
    draw = random.Random(number)
    return PivotWalk(draw).query() if number >= FIRST else Walk(draw).query()


class PivotWalk(Walk):
    """Makes queries whose rows are turned."""

    def query(self) -> str:
        text = self._pivot() if self._chance(0.6) else self._unpivot()
        if self._chance(0.15):
            text = f"SELECT count(*) AS {self._name('o')} FROM ({text})"
        return text

    def _columns(self) -> tuple[str, list[tuple[str, str]]]:
        """Returns a table, or a query with columns of one name each."""
        alias = self._name("r")
        if self._chance(0.15):
            text, columns = self._select(1)
            return f"({text}) AS {alias}", columns
        table, _, columns = self._inner()
        columns_of = [(name.split(".")[1], kind) for name, kind in columns.own]
        kept = [each for each in columns_of if self._chance(0.7)] or columns_of
        where = f" WHERE {self._condition(Columns(columns_of), 0)}" if self._chance(0.3) else ""
        if kept == columns_of and not where and self._chance(0.5):
            return f"{table}{self._one(('', f' AS {alias}'))}", columns_of
        return (
            (
                f"(SELECT {', '.join(name for name, _ in kept)} FROM"
                f" {table}{where}){self._one(('', f' AS {alias}'))}"
            ),
            kept,
        )

    def _around(self, rows: str, turned: str) -> str:
        """Returns the query of a table and a pivot: as a clause of FROM or after a pipe; some with a name for
        the rows and a condition."""
        if self._chance(0.15):
            return f"FROM {rows} |> {turned}"
        if self._chance(0.2):
            alias = self._name("p")
            return f"SELECT {self._one(('*', f'{alias}.*'))} FROM {rows} {turned} AS {alias}"
        return f"SELECT * FROM {rows} {turned}"

    def _pivot(self) -> str:
        rows, columns = self._columns()
        keys = self._draw.sample(columns, min(len(columns), self._draw.choice((1, 1, 1, 2))))
        rest = Columns([each for each in columns if each not in keys] or columns)
        calls = [self._call(rest) for _ in range(self._draw.choice((1, 1, 2, 3)))]
        named = [f"{call} AS {self._name('o')}" if self._chance(0.5) else call for call in calls]
        items = []
        for _ in range(self._draw.randint(1, 4)):
            parts = [self._one(_VALUES[kind]) for _, kind in keys]
            item = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
            # Its name is computed while planning, by Spark alone.
            computed = any("||" in part or "upper" in part for part in parts)
            items.append(f"{item} AS {self._name('v')}" if computed or self._chance(0.4) else item)
        over = keys[0][0] if len(keys) == 1 else f"({', '.join(name for name, _ in keys)})"
        return self._around(rows, f"PIVOT ({', '.join(named)} FOR {over} IN ({', '.join(items)}))")

    def _call(self, columns: Columns) -> str:
        """Returns an aggregate, sometimes over an expression, whose value does not depend on the order of
        rows."""
        kind = self._one(ALL)
        if self._chance(0.15):
            return (
                f"array_sort(collect_list({self._column('int', columns)}))"
                if self._chance(0.2)
                else "count(*)"
            )
        text = self._aggregate(kind, columns)
        return (
            text
            if text.split("(")[0] in ("count", "sum", "min", "max", "avg", "bool_or", "every")
            else "count(1)"
        )

    def _unpivot(self) -> str:
        rows, columns = self._columns()
        kind = self._one([kind for _, kind in columns])
        turned = [each for each in columns if each[1] in _TURNED[kind]]
        self._draw.shuffle(turned)
        nulls = self._one(("", "", "INCLUDE NULLS ", "EXCLUDE NULLS "))
        name, value = self._name("n"), self._name("o")
        if len(turned) > 1 and self._chance(0.35):
            other, half = self._name("o"), len(turned) // 2
            groups = [
                f"({one}, {two})" for (one, _), (two, _) in zip(turned[:half], turned[half:], strict=False)
            ]
            target = f"({value}, {other})"
        else:
            groups = [column for column, _ in turned[: self._draw.randint(1, 4)]]
            target = value
        listed = [f"{group} AS {self._name('v')}" if self._chance(0.3) else group for group in groups]
        return self._around(rows, f"UNPIVOT {nulls}({target} FOR {name} IN ({', '.join(listed)}))")
