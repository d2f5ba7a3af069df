"""Aggregates for a walk over the list of aggregate functions: each over arguments of every type, of all rows,
some, none, and in groups.

scripts/walk_spark_aggregates.py runs them on Spark; test_aggregates_recorded.py has a part of the walk.
"""

from __future__ import annotations

import itertools
import random
import re
from typing import NamedTuple

from spark_cases import lines
from walk_cases import COLUMNS

from deltaic.spark_sql.functions.aggregates import NAMES


class Query(NamedTuple):
    """`SELECT key AS k, aggregate AS v FROM given tail GROUP BY key`, without the key where there is none."""

    aggregate: str
    tail: str = ""
    key: str = ""

    def sql(self) -> str:
        return select([self.aggregate], self.tail, self.key)


def select(aggregates: list[str], tail: str, key: str) -> str:
    """Returns several aggregates in one query."""
    columns = ", ".join(f"{aggregate} AS v{number}" for number, aggregate in enumerate(aggregates))
    return (
        f"SELECT {key} AS k, {columns} FROM given {tail} GROUP BY {key}"
        if key
        else f"SELECT {columns} FROM given {tail}"
    )


EXPRESSIONS = lines(r"""
NULL
1
1.5
'a'
-0.0D
double('NaN')
n + 1
n * 1L
d * 2
d / 3
w * 1.0
x / 2
f + 1
abs(x)
-d
cast(d AS decimal(24,6))
cast(d AS decimal(30,10))
cast(n AS decimal(38,0))
cast(n AS decimal(20,18))
cast(n AS decimal(38,37))
cast(n AS decimal(28,0))
cast(n AS string)
CASE WHEN n > 0 THEN l END
CASE WHEN p THEN x END
CASE WHEN abs(x) < 1e6 THEN x END
CASE WHEN abs(f) < 1e6 THEN f END
CASE WHEN x = 0 THEN x END
CASE WHEN f = 0 THEN f END
CASE WHEN g < 10 THEN g END
CASE WHEN abs(w) < 10 THEN w END
if(p, 99999999999999999999999999999999999999, 1)
if(l < 0, 9223372036854775807, 1)
struct(n, t)
array(n, i)
array(x)
named_struct('a', x)
a - INTERVAL 1 DAY
m - m
cast(NULL AS int)
cast(NULL AS decimal(10,2))
cast(NULL AS string)
n > 1
t LIKE 'a%'
raise_error('x')
cast(s AS int)
1 / (n - 1)
""")

TAILS = ("", "WHERE n > 0", "WHERE l BETWEEN -1000 AND 100000", "WHERE false")
KEYS = (
    *COLUMNS,
    "n > 1",
    "x * 0",
    "NULL",
    "-x",
    "cast(x AS float)",
    "d * 2",
    "upper(t)",
    "m - INTERVAL 1 DAY",
    "array(x)",
    "struct(n, x)",
)
WIDE = lines(r"""
count(*)
count(1)
count(n, t)
count(DISTINCT n, t)
count(DISTINCT x, f)
count(n, NULL)
count(DISTINCT n, NULL)
count(*) FILTER (WHERE n > 1)
sum(n) FILTER (WHERE p)
sum(n) FILTER (WHERE n > 100)
count(DISTINCT n) FILTER (WHERE p)
collect_list(n) FILTER (WHERE p)
avg(d) FILTER (WHERE NULL)
sum(n) + count(*)
sum(d) / count(d)
sum(n) / 0
avg(n) * 2
max(x) = min(x)
coalesce(max(t), 'none')
if(count(*) > 10, sum(n), 0)
CASE WHEN max(n) > 3 THEN 1 / 0 ELSE 1 END
cast(avg(n) AS int)
array(min(n), max(n))
size(collect_list(n))
sort_array(collect_set(x))
sum(n, n)
sum()
count()
sum(*)
avg(DISTINCT *)
sum(sum(n))
first(n, true)
first(n) IGNORE NULLS
any_value(n, true)
last(t, true)
""")


def queries(seed: int = 3) -> list[Query]:
    """Returns every aggregate of every argument over all rows; with DISTINCT; and some of them over part of
    the rows and in groups."""
    chosen = random.Random(seed)
    arguments = (*COLUMNS, *EXPRESSIONS)
    found = [Query(f"{name}({argument})") for name, argument in itertools.product(sorted(NAMES), arguments)]
    found += [
        Query(f"{name}(DISTINCT {argument})")
        for name, argument in itertools.product(sorted(NAMES), arguments)
    ]
    found += [Query(text, tail) for text, tail in itertools.product(WIDE, TAILS)]
    for tail in TAILS[1:]:
        found += [
            Query(f"{name}({argument})", tail)
            for name, argument in itertools.product(sorted(NAMES), arguments)
        ]
    for key in KEYS:
        found += [Query(text, "", key) for text in WIDE]
        found += [
            Query(f"{name}({chosen.choice(arguments)})", chosen.choice(TAILS), key)
            for name in sorted(NAMES)
            for _ in range(4)
        ]
        found += [Query(f"{name}(DISTINCT {chosen.choice(arguments)})", "", key) for name in sorted(NAMES)]
    return [query for query in dict.fromkeys(found) if not re.search(r"\(first|current", query.aggregate)]
