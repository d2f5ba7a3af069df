"""Writes docs/sql.md, the list of SQL forms that the embedded engine answers, from the registry itself: `python scripts/write_sql_forms.py`."""

from __future__ import annotations

from pathlib import Path

from deltaic.errors import DeltaError
from deltaic.spark_sql.casts import Zone, cast
from deltaic.spark_sql.functions import registered
from deltaic.spark_sql.functions.aggregates import NAMES
from deltaic.spark_sql.functions.nested import SPECIAL
from deltaic.spark_sql.functions.refused import REFUSED as NOT_HERE
from deltaic.spark_sql.functions.registry import FORMS
from deltaic.spark_sql.intervals import UNIT_FIRST
from deltaic.spark_sql.values import Value, type_text
from deltaic.sql.statement import REFUSED, STATEMENTS

FILE = Path(__file__).resolve().parents[1] / "docs" / "sql.md"
_PRIMITIVES = [
    "byte",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "decimal(10,2)",
    "string",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
]

_INTRODUCTION = """# SQL expressions

Conditions, values of `set=`, constraints and queries are text in Spark's SQL dialect. They mean what Spark 4 makes of them with ANSI mode on, in the
time zone of `configure(time_zone=)`, UTC unless it is set. On Spark, Spark itself evaluates them. The embedded engine answers the forms below, each
with Spark's value, Spark's type and Spark's error, and refuses anything else with `UnsupportedFeatureError` naming it; nothing is guessed.

`tests/spark_sql/recorded` holds what Spark answered for these forms on rows with nulls, NaN, limits of types, odd text, early dates and the hours in
which clocks change; `scripts/record_spark_expressions.py` records it, and a test compares every row. `scripts/walk_spark_expressions.py` and
`scripts/walk_spark_aggregates.py` ask Spark about every form with arguments of every type. This page is written by `scripts/write_sql_forms.py`.

An expression that fails on a row ends the command with `deltaic.spark_sql.duckdb.ExpressionError`, an `InvalidArgumentError`; its `condition` is
Spark's error condition, such as `DIVIDE_BY_ZERO`, `CAST_INVALID_INPUT` or `ARITHMETIC_OVERFLOW`. What stands in a branch of CASE, behind AND or OR, or
later in coalesce fails only where Spark would come to evaluate it.

Where the last digit is not Spark's: `exp`, `ln`, `pow`, the trigonometric functions and their like may differ in the last place of a double, as Java's
library and C's do. Doubles become text by the shortest digits that read back as the same number, as Java 19 and later write them.

What is made of literals alone is computed before any row is read, as Spark does while it plans: `i = 'q'` and `i + 1/0` fail on a table without rows too.
Of a sum or product of whole numbers the literals are put together first, as in Spark, which decides what overflows. A literal that a condition sets equal
to a column (`i = 0 AND 10 / i > 1`) is not looked for in its other parts: those fail on the rows that they meet. A sum of whole numbers fails where it
leaves `bigint`; in Spark it may also fail on the way, which hangs on the order of rows: the answer here is the one of an order that does not. `first`,
`last`, `any_value` and `mode`, which of two equal rows `max_by` and `min_by` choose, and which of two zeros `min` and `max` answer, hang on the order of
rows here as they do in Spark; so do the last places of `corr`, `covar_pop`, `covar_samp`, `skewness`, `kurtosis` and `regr_*`. `approx_count_distinct` and
`percentile_approx` are exact, which is within any deviation that Spark allows.

## Operators

| form | operands |
|---|---|
| `=` `==` `<>` `!=` `<=>` `IN` `IS [NOT] DISTINCT FROM` | any two of a common type, but no maps |
| `<` `<=` `>` `>=` `BETWEEN` | any two of a common type that is no map |
| `(a, b) IN ((1, 2), ...)` | rows of several columns |
| `AND` `OR` `NOT` `IS [NOT] NULL` `IS [NOT] TRUE` `IS [NOT] FALSE` | boolean, or text that says so |
| `+` `-` `*` `/` `%` `div`, unary `-` `+` | numbers; decimals by Spark's rules of precision and scale; text beside a number |
| `+` `-` | date and int; dates, timestamps and intervals; interval and interval |
| `*` | an interval and an integer |
| `&` `\\|` `^` `~` `<<` `>>` `>>>` | integers; a shift by a literal |
| `\\|\\|` | text (anything else becomes text), binary, arrays |
| `LIKE` `ILIKE` `RLIKE`, with NOT and ESCAPE; `LIKE ANY`, `SOME`, `ALL` | text and a literal pattern; of RLIKE any pattern of Java but for the flags `x` and `U`, `\\G`, `\\X` and blocks in `\\p{...}` |
| `CASE` `CAST` `TRY_CAST` `::` | see below |
| `a[i]` `m[k]` `s.field` | an item of an array (from 0), a map, a field of a struct or of each struct of an array; `m.k` for a map of text |
| `v:a.b[0]['c d']` | a part of a variant, as `variant_get` gives it |
| `INTERVAL` | a literal of one unit, or from one unit to another |
| `DATE` `TIMESTAMP` `TIMESTAMP_NTZ` `X` | literals |
| `x -> ...`, `(x, y) -> ...` | in the functions that take one |
"""


_QUERIES = """## Queries

| clause | forms |
|---|---|
| `WITH` | several, each of which may read those before it; names of columns; `RECURSIVE`: `anchor UNION ALL step`, at most 100 steps |
| `SELECT` | expressions with or without an alias, also over aliases before them; `*`, `t.*`, `struct.*`, `* EXCEPT (a)`; `DISTINCT`; two columns of one name |
| `FROM` | tables (``delta.`path` ``, names of `tables=`), `VERSION AS OF`, `TIMESTAMP AS OF`, queries in brackets, `VALUES`, a comma, `range(...)`, `table_changes(...)`, `table_changes_by_path(...)`, `explode(...)` and its like, `variant_explode(...)`, `variant_explode_outer(...)` |
| joins | `[INNER]`, `CROSS`, `LEFT`, `RIGHT`, `FULL [OUTER]`, `[LEFT] SEMI`, `[LEFT] ANTI`, each with `ON` or `USING`; `NATURAL`; `LATERAL (SELECT ...)`, `LATERAL explode(...)` |
| `LATERAL VIEW [OUTER]` | `explode`, `posexplode`, `inline`, each also with `_outer` (`explode_outer`, `posexplode_outer`, `inline_outer`), `stack`, `json_tuple`; the same functions as a column of a SELECT |
| `WHERE`, `HAVING`, `QUALIFY` | a condition; of windows in QUALIFY alone |
| `GROUP BY` | expressions, positions, aliases of the SELECT, `ALL`; `ROLLUP`, `CUBE`, `GROUPING SETS`, also `WITH ROLLUP`; `grouping()`, `grouping_id()`; windows of time, `window(at, '1 day' [, slide [, start]])`, `session_window(at, '5 minutes')` |
| windows | `row_number`, `rank`, `dense_rank`, `percent_rank`, `cume_dist`, `ntile`, `lag`, `lead`, `first_value`, `last_value`, `nth_value`, every aggregate; frames by `ROWS` and `RANGE`, of intervals too; `WINDOW` names; `IGNORE NULLS`; over aggregates |
| `ORDER BY` | expressions, positions, aliases, `ALL`, with `ASC`, `DESC`, `NULLS FIRST`, `NULLS LAST` |
| `LIMIT`, `OFFSET` | a whole number, arithmetic on some, `ALL` |
| `rand()`, `randn()`, `uuid()` | without a seed, in SELECT, WHERE, ORDER BY and GROUP BY |
| `UNION`, `EXCEPT` or `MINUS`, `INTERSECT`, each with `ALL` | queries of as many columns; `UNION BY NAME` |
| subqueries | `IN (SELECT ...)`, of several columns too, `EXISTS (SELECT ...)`, and one that gives one value; all may read the queries around them; in `DELETE ... WHERE` and `UPDATE ... SET ... WHERE`, too |
| `:name`, `?` | a value of `parameters=` |
| `PIVOT`, `UNPIVOT` | behind a table or query in brackets |
| `TABLESAMPLE` | `n PERCENT`, `n ROWS`, `BUCKET x OUT OF y`, `REPEATABLE (seed)` |
| `\\|>` | `WHERE`, `SELECT`, `EXTEND`, `SET`, `DROP`, `AS`, `AGGREGATE ... GROUP BY`, joins, set operations, `ORDER BY`, `LIMIT`, `OFFSET`, `TABLESAMPLE`, `PIVOT`, `UNPIVOT` |
| hints, `SORT BY`, `DISTRIBUTE BY`, `CLUSTER BY` | read over: they change no answer |
"""


def render() -> str:
    """The page's text."""
    assert registered
    return "\n".join([_INTRODUCTION, _casts(), _functions(), _others(), _aggregates(), _refused(), _QUERIES, _statements()])


def _casts() -> str:
    lines = [
        "## Casts",
        "",
        "From a row's type to a column's. Arrays, structs and maps are cast part by part. A variant is cast to any of these, and any of these, and arrays of them, to variant.",
        "",
    ]
    names = [type_text(kind).removesuffix("(10,2)") for kind in _PRIMITIVES]
    lines += ["| from \\ to | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for source, name in zip(_PRIMITIVES, names, strict=True):
        lines.append(f"| {name} | " + " | ".join("yes" if _is_cast(source, target) else "" for target in _PRIMITIVES) + " |")
    return "\n".join([*lines, ""])


def _is_cast(source: str, target: str) -> bool:
    try:
        cast(Value("x", source), target, Zone())
    except DeltaError:
        return False
    return True


def _functions() -> str:
    lines = [
        "## Functions",
        "",
        "`T`: any one type. `any`: each argument of its own type. `...`: any number more. Arguments of another type are cast as Spark",
        "does, but where `=` stands before the type: there Spark takes that one alone.",
        "",
    ]
    lines += ["| function | takes | gives |", "|---|---|---|"]
    for name in sorted(name for name in FORMS if name.isidentifier()):
        seen: dict[tuple[str, str], None] = {}
        for form in FORMS[name]:
            if form.result:
                seen[(", ".join(map(_shown, form.parameters)), _shown(form.result))] = None
        takes = "<br>".join(f"({parameters})" for parameters, _ in seen)
        gives = (
            "<br>".join(dict.fromkeys(result for _, result in seen))
            if len({result for _, result in seen}) == 1
            else "<br>".join(r for _, r in seen)
        )
        lines.append(f"| `{name}` | {takes} | {gives} |")
    return "\n".join([*lines, ""])


def _shown(pattern: str) -> str:
    if pattern.startswith("="):
        return "=" + _shown(pattern[1:])
    return {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "K": "T", "V": "T"}.get(pattern, pattern).replace(
        "<", "\\<"
    )


def _others() -> str:
    special = ", ".join(f"`{name}`" for name in sorted(SPECIAL))
    units = ", ".join(f"`{name}`" for name in sorted(UNIT_FIRST))
    return f"""Of constructors, functions with lambda functions and those with options: {special}.

Options of `from_json` and `to_json`, as a map of literals: `dateFormat`, `timestampFormat`, `timestampNTZFormat`; of `from_csv`, `to_csv` and
`schema_of_csv` these, `sep` or `delimiter`, `quote`, `escape`, `nullValue`, `ignoreLeadingWhiteSpace`, `ignoreTrailingWhiteSpace`, `quoteAll`. A schema
is text, or `schema_of_json` or `schema_of_csv` of a literal.

With a unit as their first argument, `f(unit, x, y)`: {units}.

Patterns of dates and times are literals of the fields `yyyy yy MM M MMM MMMM dd d HH H hh h mm m ss s SSS SSSSSS a E EEE EEEE D DDD`; for reading,
`yyyy MM M dd d HH H mm m ss s SSS SSSSSS`.
"""


def _aggregates() -> str:
    names = ", ".join(f"`{name}`" for name in sorted(NAMES))
    return f"""## Aggregate functions

In the SELECT list, HAVING and ORDER BY of a query, each with DISTINCT, FILTER (WHERE ...), WITHIN GROUP (ORDER BY ...) and
IGNORE NULLS where Spark takes them: {names}.
"""


def _refused() -> str:
    reasons: dict[str, list[str]] = {}
    for name, reason in sorted(NOT_HERE.items()):
        reasons.setdefault(reason, []).append(f"`{name}`")
    lines = [f"| {reason} | {', '.join(names)} |" for reason, names in reasons.items()]
    return "\n".join(["## Functions of Spark that are refused", "", "| why | functions |", "|---|---|", *lines, ""])


def _statements() -> str:
    known = ", ".join(f"`{word}`" for word in sorted(STATEMENTS))
    refused = ", ".join(f"`{word}`" for word in sorted(REFUSED))
    return f"""## Statements

A statement begins with one of {known}. Refused by name: {refused}. What each returns stands with `deltaic.sql`.
"""


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
