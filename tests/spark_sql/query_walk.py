"""Random queries over three small tables: joins, LATERAL, subqueries, windows, grouping, set operations,
WITH, pipes.

The rows of a query do not depend on the order in which rows are read: windows whose result depends on an
order have a total one, LIMIT follows an ORDER BY of all columns, and doubles are multiples of a quarter,
whose sums are exact. No query fails: numbers are small, and divisors are not zero.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

_DAY = datetime.date(2024, 1, 30)


def tables() -> dict[str, pa.Table]:
    """Returns the tables by name: few different values, nulls, rows that come twice."""
    draw = random.Random(11)

    def some(values: Sequence[object], count: int) -> list[object]:
        return [None if draw.random() < 0.18 else draw.choice(values) for _ in range(count)]

    def table(count: int, **columns: tuple[pa.DataType, Sequence[object]]) -> pa.Table:
        made = {name: pa.array(some(values, count), kind) for name, (kind, values) in columns.items()}
        rows = pa.table(made)
        return pa.concat_tables([rows, rows.slice(0, 3)])

    whole, words = (pa.int32(), (0, 1, 2, 3, 5, -4)), (pa.string(), ("a", "b", "B", "ab", "", "zz "))
    days = (pa.date32(), [_DAY + datetime.timedelta(days=number) for number in (0, 1, 2, 31, -400)])
    money = [Decimal(text) for text in ("0.00", "1.50", "-2.25", "10.00", "99999.99")]
    fine = [Decimal(text) for text in ("0.0001", "3.1416", "-2.5000", "1.5000")]
    return {
        "t": table(11, a=whole, b=(pa.int64(), (1, 2, 7, -1, 1000)), d=(pa.decimal128(9, 2), money), s=words,
                   e=days, x=(pa.float64(), (0.25, 1.5, -3.0, 2.0)), f=(pa.bool_(), (True, False))),
        "u": table(9, k=whole, a=whole, s=words, v=(pa.decimal128(12, 4), fine), e=days),
        "w": table(7, a=(pa.int64(), (0, 1, 2, 3)), n=(pa.int16(), (1, 2, 300)), s=words,
                   f=(pa.bool_(), (True, False))),
    }  # fmt: skip


KINDS: dict[str, dict[str, str]] = {
    "t": {"a": "int", "b": "int", "d": "decimal", "s": "string", "e": "date", "x": "double", "f": "boolean"},
    "u": {"k": "int", "a": "int", "s": "string", "v": "decimal", "e": "date"},
    "w": {"a": "int", "n": "int", "s": "string", "f": "boolean"},
}
ALL = ("int", "decimal", "string", "date", "double", "boolean")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_JOINS = (
    "JOIN",
    "JOIN",
    "LEFT JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
    "CROSS JOIN",
    ",",
)


@dataclass
class Columns:
    """Columns in sight: (SQL, kind). `outer`: those of the query around."""

    own: list[tuple[str, str]]
    outer: list[tuple[str, str]] = field(default_factory=list)

    def of(self, kind: str) -> list[str]:
        return [sql for sql, each in self.own if each == kind]


class Walk:
    """Makes queries with the numbers of `draw`."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._names = 0
        self._shown = False
        self._defined: dict[str, list[tuple[str, str]]] = {}

    def query(self) -> str:
        """One query."""
        head = ""
        if self._chance(0.2):
            text, columns = self._select(1)
            self._defined["c"] = columns
            head = f"WITH c AS ({text}) "
        if self._chance(0.2):
            kinds = [self._one(ALL) for _ in range(self._draw.randint(1, 3))]
            word = self._one(("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"))
            left, columns = self._select(1, kinds)
            text = f"{left} {word} {self._select(1, kinds)[0]}"
        else:
            self._shown = self._chance(0.5)  # grouping_id() has no place in the queries within
            text, columns = self._select(1 if self._shown else 2)
        if self._chance(0.12):
            text, columns = self._piped(f"({text})", columns)
        if self._chance(0.3):
            order = [f"{name}{self._direction()}" for name, _ in columns]
            text = f"SELECT * FROM ({text}) ORDER BY {', '.join(order)} LIMIT {self._draw.randint(0, 12)}"
        return head + text

    def _piped(self, text: str, columns: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
        """Returns the query with one or two pipe operators after it."""
        for _ in range(self._draw.randint(1, 2)):
            (name, kind), (key, of_key) = self._draw.choice(columns), self._draw.choice(columns)
            step = self._draw.randint(0, 4)
            if step == 0:
                text += f" |> WHERE {name} IS NOT NULL"
            elif step == 1:
                count, most = self._name("o"), self._name("o")
                text += f" |> AGGREGATE count(*) AS {count}, max({name}) AS {most} GROUP BY {key}"
                columns = [(key, of_key), (count, "int"), (most, kind)]
            elif step == 2:
                added = self._name("o")
                text += f" |> EXTEND {name} AS {added}"
                columns = [*columns, (added, kind)]
            elif step == 3:
                text += f" |> SELECT DISTINCT {name}"
                columns = [(name, kind)]
            else:
                nulls = ", ".join("NULL" for _ in columns)
                text += f" |> {self._one(('UNION ALL', 'UNION', 'EXCEPT'))} (SELECT {nulls})"
        return text, columns

    # --- SELECT

    def _select(self, depth: int, kinds: Sequence[str] | None = None) -> tuple[str, list[tuple[str, str]]]:
        """Returns a SELECT and its columns; `kinds`: the types of the columns that it must have."""
        text, columns = self._from(depth)
        where = f" WHERE {self._condition(columns, depth, subqueries=True)}" if self._chance(0.6) else ""
        wanted = kinds or [self._one(ALL) for _ in range(self._draw.randint(1, 4))]
        if self._chance(0.35):
            return self._grouped(text + where, columns, wanted)
        distinct = "DISTINCT " if self._chance(0.15) else ""
        items = []
        for kind in wanted:
            item = self._scalar(kind, columns) if depth > 1 and self._chance(0.12) else ""
            # Of two windows each may give equal rows its values in another order, so that there is one at
            # most.
            if (
                not item
                and not distinct
                and not any(" OVER " in text for text, _ in items)
                and self._chance(0.2)
            ):
                item = self._window(kind, columns)
            items.append((item or self._value(kind, columns, 2), kind))
        named = [(f"{item} AS {self._name('o')}", kind) for item, kind in items]
        listed = [(text.rsplit(" ", 1)[1], kind) for text, kind in named]
        return f"SELECT {distinct}{', '.join(text for text, _ in named)}{text}{where}", listed

    def _from(self, depth: int) -> tuple[str, Columns]:
        first, alias, columns = self._source(depth)
        text, own = f" FROM {first}", [(f"{alias}.{name}", kind) for name, kind in columns]
        for _ in range(self._draw.choice((0, 0, 1, 1, 2))):
            join = self._one(_JOINS)
            source, alias, columns = self._source(depth)
            added = [(f"{alias}.{name}", kind) for name, kind in columns]
            # A comma binds less than a join: names before it are not seen in ON.
            if join == "," and "JOIN" in text:
                join = "CROSS JOIN"
            text += f"{join} {source}" if join == "," else f" {join} {source}"
            same = [
                name.split(".")[1]
                for name, kind in own
                for other, like in added
                if (other.split(".")[1], like) == (name.split(".")[1], kind)
            ]
            if (
                join not in (",", "CROSS JOIN")
                and len(own) == len({name.split(".")[1] for name, _ in own})
                and same
                and self._chance(0.2)
            ):
                text += f" USING ({self._one(same)})"
            elif join not in (",", "CROSS JOIN"):
                text += f" ON {self._joins(own, added)}"
            if join not in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
                own = own + added
        if self._chance(0.08) and own:
            (column, kind), alias, name = self._draw.choice(own), self._name("x"), self._name("o")
            table, inner, there = self._inner()
            if same := there.of(kind):
                rows = f"SELECT count(*) AS {name} FROM {table} AS {inner} WHERE {self._one(same)} = {column}"
                text += f" CROSS JOIN LATERAL ({rows}) AS {alias}"
                own = [*own, (f"{alias}.{name}", "int")]
        if self._chance(0.08) and (numbers := [name for name, kind in own if kind == "int"]):
            alias, name = self._name("x"), self._name("o")
            items = f"array({self._one(numbers)}, {self._one(numbers)}, 1)"
            text += f" LATERAL VIEW {self._one(('', 'OUTER '))}explode({items}) {alias} AS {name}"
            own = [*own, (f"{alias}.{name}", "int")]
        return text, Columns(own)

    def _source(self, depth: int) -> tuple[str, str, list[tuple[str, str]]]:
        alias = self._name("r")
        if self._defined and self._chance(0.4):
            return f"c AS {alias}", alias, self._defined["c"]
        if depth > 1 and self._chance(0.3):
            text, columns = self._select(depth - 1)
            return f"({text}) AS {alias}", alias, columns
        if self._chance(0.06):
            rows = ", ".join(f"({self._literal('int')}, {self._literal('string')})" for _ in range(3))
            return f"(VALUES (1, 'a'), {rows}) AS {alias} (k, s)", alias, [("k", "int"), ("s", "string")]
        table = self._one(tuple(KINDS))
        return f"{table} AS {alias}", alias, list(KINDS[table].items())

    def _joins(self, left: list[tuple[str, str]], right: list[tuple[str, str]]) -> str:
        pairs = [(one, other) for one, kind in left for other, same in right if same == kind]
        if not pairs:
            return "true"
        one, other = self._one(pairs)
        text = f"{one} {self._one(('=', '=', '=', '<=>'))} {other}"
        if self._chance(0.3):
            text += f" AND {self._condition(Columns(left + right), 0)}"
        return text

    def _grouped(
        self, rows: str, columns: Columns, wanted: Sequence[str]
    ) -> tuple[str, list[tuple[str, str]]]:
        keys = [
            (self._value(kind, columns, 1), kind)
            for kind in [self._one(ALL) for _ in range(self._draw.randint(0, 2))]
        ]
        keys = [(key, kind) for key, kind in keys if "." in key]  # a literal would be a position
        items, places = [], []
        for kind in wanted:
            same = [key for key, each in keys if each == kind]
            item = self._one(same) if same and self._chance(0.5) else self._aggregate(kind, columns)
            if keys and self._chance(0.12):
                item = self._over_groups(kind, keys, columns) or item
            items.append(f"{item} AS {self._name('o')}")
            places.append((items[-1].rsplit(" ", 1)[1], kind))
        group, sets, grouped = "", "", ""
        if keys:
            listed = ", ".join(key for key, _ in keys)
            sets = self._one(("", "", "", "ROLLUP", "CUBE", "GROUPING SETS"))
            group = f" GROUP BY {sets} ({listed})" if sets in ("ROLLUP", "CUBE") else f" GROUP BY {listed}"
            if sets == "GROUPING SETS":
                group += f" GROUPING SETS (({listed}), ({keys[0][0]}), ())"
            if sets and self._shown and self._chance(0.4):
                one, other = self._name("o"), self._name("o")
                grouped = f", grouping_id() AS {one}, grouping({keys[0][0]}) AS {other}"
                places += [(one, "int"), (other, "int")]
        having = ""
        if keys and self._chance(0.25):
            having = (
                f" HAVING {self._aggregate('int', columns)} {self._one(_COMPARISONS)}"
                f" {self._draw.randint(0, 3)}"
            )
        return f"SELECT {', '.join(items)}{grouped}{rows}{group}{having}", places

    def _over_groups(self, kind: str, keys: list[tuple[str, str]], columns: Columns) -> str:
        """Returns a window over the groups."""
        order = ", ".join(f"{key}{self._direction()}" for key, _ in keys)
        if kind == "int":
            return self._one(
                (
                    f"rank() OVER (ORDER BY {self._aggregate('int', columns)}{self._direction()})",
                    f"sum(count(*)) OVER (ORDER BY {order})",
                )
            )
        if kind == "decimal":
            return f"sum(sum({self._column('decimal', columns)})) OVER (PARTITION BY {keys[0][0]})"
        return f"max({self._aggregate(kind, columns)}) OVER ()" if kind in ("string", "date") else ""

    # --- aggregates, windows, subqueries

    def _aggregate(self, kind: str, columns: Columns) -> str:
        value = self._value(kind, columns, 1)
        texts: dict[str, list[str]] = {
            "int": ["count(*)", f"count({self._value(self._one(ALL), columns, 1)})", f"sum({value})",
                    f"count(DISTINCT {self._value(self._one(ALL), columns, 1)})", f"sum(DISTINCT {value})",
                    f"max({value})"],
            "decimal": [f"sum({value})", f"min({value})", f"sum(DISTINCT {value})",
                        f"avg({self._column('decimal', columns)})"],
            "double": [f"sum({self._column('double', columns)})", f"max({value})",
                       f"avg({self._value('int', columns, 1)})"],
            "string": [f"min({value})", f"max({value})", f"CAST(count({value}) AS STRING)"],
            "date": [f"min({value})", f"max({value})"],
            "boolean": [f"bool_or({value})", f"every({value})", f"count({value}) > 2", f"max({value})"],
        }  # fmt: skip
        text = self._one(texts[kind])
        if self._chance(0.15) and text.endswith(")") and not text.startswith("CAST"):
            text += f" FILTER (WHERE {self._condition(columns, 0)})"
        return text

    def _window(self, kind: str, columns: Columns) -> str:
        everything = ", ".join(f"{sql}{self._direction()}" for sql, _ in columns.own)
        partition = f"PARTITION BY {self._value(self._one(ALL), columns, 1)} " if self._chance(0.6) else ""
        key = f"ORDER BY {self._value(self._one(ALL), columns, 1)}{self._direction()}"
        value = self._value(kind, columns, 1)
        if kind == "int" and self._chance(0.5):
            rank = self._one(("row_number()", "rank()", "dense_rank()", "ntile(3)", "count(*)"))
            return f"{rank} OVER ({partition}ORDER BY {everything})"
        choice = self._draw.randint(0, 4)
        if choice == 0:
            return (
                f"{self._one(('lag', 'lead'))}({value}, {self._draw.randint(1, 2)})"
                f" OVER ({partition}ORDER BY {everything})"
            )
        if choice == 1:
            name = self._one(("first_value", "last_value"))
            return (
                f"{name}({value}) OVER ({partition}ORDER BY {everything}"
                " ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)"
            )
        function = "max" if kind not in ("int", "decimal") else self._one(("max", "min", "sum"))
        if choice == 2:
            return f"{function}({value}) OVER ({partition}{key})"
        if choice == 3:
            return (
                f"{function}({value}) OVER ({partition}ORDER BY {everything}"
                " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
            )
        return f"{function}({value}) OVER ({partition.strip()})"

    def _scalar(self, kind: str, columns: Columns) -> str:
        """Returns a query that gives one value, of the rows that have a column's value or of all."""
        table, alias, inner = self._inner()
        if not inner.of(kind):
            return ""
        return (
            f"(SELECT max({self._one(inner.of(kind))}) FROM {table} AS {alias}"
            f"{self._correlated(columns, inner)})"
        )

    def _inner(self) -> tuple[str, str, Columns]:
        table, alias = self._one(tuple(KINDS)), self._name("q")
        return table, alias, Columns([(f"{alias}.{name}", kind) for name, kind in KINDS[table].items()])

    def _correlated(self, columns: Columns, inner: Columns) -> str:
        pairs = [(one, other) for one, kind in columns.own for other, same in inner.own if same == kind]
        parts = (
            [f"{one} = {other}" for one, other in [self._one(pairs)]] if pairs and self._chance(0.7) else []
        )
        if self._chance(0.4):
            parts.append(self._condition(inner, 0))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    # --- expressions

    def _condition(self, columns: Columns, depth: int, *, subqueries: bool = False) -> str:
        if subqueries and self._chance(0.25):
            return self._asked(columns)
        if depth > 0 and self._chance(0.4):
            word = self._one(("AND", "OR"))
            both = [
                self._condition(columns, depth - 1, subqueries=subqueries and word == "AND") for _ in range(2)
            ]
            return f"({both[0]} {word} {both[1]})"
        return self._value("boolean", columns, 1)

    def _asked(self, columns: Columns) -> str:
        """EXISTS, IN or a comparison with a query."""
        table, alias, inner = self._inner()
        where = self._correlated(columns, inner)
        choice = self._draw.randint(0, 2)
        if choice == 0:
            return f"{self._one(('', 'NOT '))}EXISTS (SELECT 1 FROM {table} AS {alias}{where})"
        kinds = [kind for _, kind in columns.own if inner.of(kind)]
        if not kinds:
            return "true"
        kind = self._one(kinds)
        if choice == 1 and self._chance(0.2):
            return self._rows_among(columns, inner, f"FROM {table} AS {alias}{where}")
        if choice == 1:
            mine = self._one(columns.of(kind))
            return (
                f"{mine} {self._one(('', 'NOT '))}IN"
                f" (SELECT {self._one(inner.of(kind))} FROM {table} AS {alias}{where})"
            )
        scalar = self._scalar(kind, columns)
        return f"{self._one(columns.of(kind))} {self._one(_COMPARISONS[:6])} {scalar}" if scalar else "true"

    def _rows_among(self, columns: Columns, inner: Columns, rows: str) -> str:
        """`(a, b) IN (SELECT c, d ...)`."""
        pairs = [(one, other) for one, kind in columns.own for other, same in inner.own if same == kind]
        (one, other), (two, both) = self._one(pairs), self._one(pairs)
        return f"({one}, {two}) {self._one(('', 'NOT '))}IN (SELECT {other}, {both} {rows})"

    def _column(self, kind: str, columns: Columns) -> str:
        found = columns.of(kind)
        return self._one(found) if found else self._literal(kind)

    def _literal(self, kind: str) -> str:
        values = {
            "int": ("0", "1", "2", "-3"), "decimal": ("1.5", "0.25", "-2.00"), "string": ("'a'", "'B'", "''"),
            "date": ("DATE '2024-02-01'", "DATE '2024-01-30'"), "double": ("1.5D", "-0.25D"),
            "boolean": ("true", "false"),
        }  # fmt: skip
        return (
            f"CAST(NULL AS {kind})" if kind != "decimal" and self._chance(0.05) else self._one(values[kind])
        )

    def _value(self, kind: str, columns: Columns, depth: int) -> str:
        """Returns an expression of a kind, at most `depth` operators deep."""
        if depth == 0 or self._chance(0.4):
            return self._column(kind, columns) if self._chance(0.85) else self._literal(kind)
        if self._chance(0.2):
            return self._chosen(kind, columns, depth - 1)
        made: dict[str, Callable[[Columns, int], str]] = {
            "int": self._int, "decimal": self._decimal, "string": self._string, "date": self._date,
            "double": self._double, "boolean": self._boolean,
        }  # fmt: skip
        return made[kind](columns, depth - 1)

    def _chosen(self, kind: str, columns: Columns, depth: int) -> str:
        one, other = self._value(kind, columns, depth), self._value(kind, columns, depth)
        condition = self._value("boolean", columns, depth)
        return self._one(
            (
                f"CASE WHEN {condition} THEN {one} ELSE {other} END",
                f"coalesce({one}, {other})",
                f"nullif({one}, {other})",
                f"if({condition}, {one}, {other})",
                f"CASE WHEN {condition} THEN {one} END",
            )
        )

    def _int(self, columns: Columns, depth: int) -> str:
        one, other = self._value("int", columns, depth), self._value("int", columns, depth)
        text, day = self._value("string", columns, depth), self._value("date", columns, depth)
        return self._one(
            (
                f"({one} + {other})",
                f"({one} - {other})",
                f"({one} * {other})",
                f"({one} % 3)",
                f"abs({one})",
                f"(- {one})",
                f"length({text})",
                f"year({day})",
                f"datediff({day}, DATE '2024-01-01')",
                f"greatest({one}, {other})",
                f"({one} div 2)",
                f"CAST({self._column('decimal', columns)} AS INT)",
                f"pmod({one}, 4)",
            )
        )

    def _decimal(self, columns: Columns, depth: int) -> str:
        one, other, number = (
            self._value("decimal", columns, depth),
            self._column("decimal", columns),
            self._value("int", columns, depth),
        )
        return self._one(
            (
                f"({one} + {other})",
                f"({one} - {other})",
                f"({one} * {other})",
                f"round({one}, 1)",
                f"({one} * {number})",
                f"CAST({number} AS DECIMAL(12,2))",
                f"abs({one})",
                f"({one} / 3)",
                f"(- {one})",
            )
        )

    def _string(self, columns: Columns, depth: int) -> str:
        one, other = self._value("string", columns, depth), self._value("string", columns, depth)
        number = self._value("int", columns, depth)
        return self._one(
            (
                f"({one} || {other})",
                f"upper({one})",
                f"substr({one}, 1, 1)",
                f"CAST({number} AS STRING)",
                f"trim({one})",
                f"concat_ws('-', {one}, {other})",
                f"lpad({one}, 3, '*')",
                f"CAST({self._column('date', columns)} AS STRING)",
                f"CAST({self._column('decimal', columns)} AS STRING)",
                f"replace({one}, 'a', 'x')",
            )
        )

    def _date(self, columns: Columns, depth: int) -> str:
        one, number = self._value("date", columns, depth), self._column("int", columns)
        return self._one(
            (
                f"date_add({one}, CAST({number} % 50 AS INT))",
                f"last_day({one})",
                f"trunc({one}, 'MM')",
                f"({one} - INTERVAL 1 MONTH)",
                f"({one} + INTERVAL 2 DAY)",
                f"add_months({one}, 1)",
            )
        )

    def _double(self, columns: Columns, depth: int) -> str:
        one, number = self._value("double", columns, depth), self._value("int", columns, depth)
        return self._one(
            (
                f"({one} + {number})",
                f"({one} * 2)",
                f"abs({one})",
                f"CAST({number} AS DOUBLE)",
                f"({one} - 0.5D)",
            )
        )

    def _boolean(self, columns: Columns, depth: int) -> str:
        kind = self._one(ALL)
        one, other = self._value(kind, columns, depth), self._value(kind, columns, depth)
        text = self._value("string", columns, depth)
        inner = self._value("boolean", columns, depth)
        return self._one(
            (
                f"({one} {self._one(_COMPARISONS)} {other})",
                f"({one} {self._one(_COMPARISONS)} {other})",
                f"({one} IS {self._one(('', 'NOT '))}NULL)",
                f"({one} IN ({other}, {self._literal(kind)}))",
                f"({one} BETWEEN {other} AND {self._value(kind, columns, depth)})",
                f"({text} LIKE '%a%')",
                f"(NOT {inner})",
                f"({inner} {self._one(('AND', 'OR'))} {self._value('boolean', columns, depth)})",
            )
        )

    # --- draws

    def _one(self, values: Sequence[str] | Sequence[tuple[str, str]]) -> str:
        return self._draw.choice(values)  # type: ignore[return-value]

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _direction(self) -> str:
        return self._draw.choice(("", "", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"))
