"""Writes docs/sql.md, the list of SQL forms that the embedded engine supports, from the registry itself:
`python scripts/write_sql_forms.py`."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

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

_INTRODUCTION = """# SQL

Conditions (`where=`), values of an UPDATE, constraints, generated columns and the queries of `deltaic.sql`
are text in Spark's SQL dialect. The text means what it means in Spark 4 in ANSI mode, in the time zone of
`configure(time_zone=)`, which is UTC by default. A table opened with `spark=` leaves the evaluation to
Spark. Without Spark, the [embedded engine](glossary.md#engines) (DuckDB with [kernels](glossary.md#engines)
in Rust) evaluates the forms on this page:

```python
import deltaic

table = deltaic.write("days", {"day": ["2026-01-31", "2026-02-03"], "n": [7, 0]})
query = "SELECT add_months(CAST(day AS date), 1) AS later, n DIV 2 AS half FROM days WHERE n > 0"
((later, half),) = (row.values() for row in deltaic.sql(query, tables={"days": table}).to_pylist())
assert (later.isoformat(), half) == ("2026-02-28", 3)
```

Each form has Spark's value, Spark's type and Spark's error. A form that is not on this page raises
`UnsupportedFeatureError`, which names the form.

```python
try:
    deltaic.sql("SELECT 10 / n FROM days", tables={"days": table}).to_pylist()
except deltaic.errors.InvalidArgumentError as error:
    assert error.condition == "DIVIDE_BY_ZERO"                   # Spark's error condition
```

`tests/spark_sql/recorded` contains Spark's answers for these forms on rows with nulls, NaN, the limits of
types, unusual text, early dates and clock changes. A test compares every answer.
`scripts/write_sql_forms.py` writes this page from the code.

## Differences from Spark

- **Last digits**: `exp`, `ln`, `pow`, `cbrt` and the trigonometric functions may differ from Spark in the
  last digit of a double, because Java's and C's mathematical libraries do; so may `percentile` and `median`
  between two rows.
- **Text of doubles**: a double becomes the shortest text that reads back as the same number, as in Java 19
  and later. Example: `2e23` is `2.0E23`, which older Java versions write as `1.9999999999999998E23`.
- **Sums of integers**: a sum fails if the total is outside `bigint`. Spark may also fail if only an
  intermediate total is outside, which depends on the order of rows. Example: the sum of 9223372036854775807,
  1 and -5 is 9223372036854775803 here.
- **Conditions with a known value**: in `i = 0 AND 10 / i > 1` Spark puts 0 into `10 / i` and fails while it
  plans the query. The embedded engine fails when it meets a row with `i = 0`.
- **Order of rows**: as in Spark, the answers of `first`, `last`, `any_value` and `mode`, the choice of
  `max_by` and `min_by` between equal rows, the sign of a zero of `min` and `max`, and the last digits of
  `corr`, `covar_pop`, `covar_samp`, `skewness`, `kurtosis` and `regr_*` depend on the order of rows.
- **Approximations**: `approx_count_distinct` and `percentile_approx` are exact.
- **Groups of maps**: a null value of a map by which rows are grouped stays null. Spark 4.3 has a bug here and
  shows another value.
- **Year-month intervals** become `month_day_nano_interval` in Arrow. PySpark does not convert them.
- **`IN (SELECT ...)` as a column**: as in Spark, such a column is false where the condition would be null.
  Over a query with such a column `x`, `NOT x` is the opposite of the column; Spark may replace `x` by the
  condition, and then finds no row if one side has a null.
- **CHAR(n)**: a value is the stored text. Spark pads it with spaces when it reads.
- **Samples**: TABLESAMPLE selects other rows than Spark, also with the same seed.

Two rules of Spark can surprise. An expression of literals alone is computed before any row is read,
so `i + 1/0` fails on a table without rows. A branch of CASE, the right side of AND and OR, and a later
argument of `coalesce` fail only on rows for which Spark evaluates them:
`CASE WHEN i = 0 THEN 0 ELSE 1/i END` never fails.

## Operators

| form | operands |
|---|---|
| `=` `==` `<>` `!=` `<=>` `IN` `IS [NOT] DISTINCT FROM` | any two values with a common type, except maps |
| `<` `<=` `>` `>=` `BETWEEN` | any two values with a common type, except maps |
| `(a, b) IN ((1, 2), ...)` | several columns against rows of values |
| `AND` `OR` `NOT` `IS [NOT] NULL` `IS [NOT] TRUE` `IS [NOT] FALSE` | boolean, or text such as `'true'` |
| `+` `-` `*` `/` `%` `div`, unary `-` `+` | numbers (decimals with Spark's precision and scale), or a \
number and text |
| `+` `-` | date and int; date or timestamp and interval; two dates or timestamps (`-`), or one and text; \
two intervals; text and an interval of days or times |
| `*` `/` | an interval and a number |
| `&` `\\|` `^` `~` `<<` `>>` `>>>` | integers |
| `\\|\\|` | text (other types are cast to text), binary, arrays |
| `LIKE` `ILIKE` `RLIKE`, with NOT and ESCAPE; `LIKE ANY`, `SOME`, `ALL` | text and a pattern; RLIKE takes \
Java's patterns except the flags `x` and `U`, `\\G`, `\\X` and Unicode blocks in `\\p{...}` |
| `CASE` `CAST` `TRY_CAST` `::` | types as in the table of casts |
| `a[i]` `m[k]` `s.field` | an item of an array (index from 0) or map, a field of a struct or of each struct \
in an array; `m.k` for a map with text keys |
| `v:a.b[0]['c d']` | a value inside a variant, like `variant_get` |
| `INTERVAL` | a literal of units (`INTERVAL 1 DAY 2 HOURS`), or from one unit to another (`INTERVAL '1-2' \
YEAR TO MONTH`); as a column of a result Arrow's `duration[us]`, or `month_day_nano_interval` for years and \
months |
| `DATE` `TIMESTAMP` `TIMESTAMP_NTZ` `X` | literals |
| `x -> ...`, `(x, y) -> ...` | as an argument of functions that take a lambda |
"""


_QUERIES = """## Queries

| clause | forms |
|---|---|
| `WITH` | several, each may read those before it; column names; `RECURSIVE`: `anchor UNION ALL step`, at \
most 100 steps or `MAX RECURSION LEVEL n`; also before INSERT, DELETE, UPDATE and MERGE |
| `SELECT` | expressions, also over aliases to their left (`1 AS a, a + 1`); `*`, `t.*`, `struct.*`, `* \
EXCEPT (a)`, each also among arguments (`hash(*)`, `struct(t.*)`); `DISTINCT`; two columns may have the same \
name |
| `FROM` | tables (``delta.`path` ``, names of `tables=`), `VERSION AS OF`, `TIMESTAMP AS OF`, queries in \
brackets, `VALUES`, a list with commas, `range(...)`, `table_changes(...)`, `table_changes_by_path(...)`, \
`explode(...)` and the other functions of LATERAL VIEW, `variant_explode(...)`, `variant_explode_outer(...)` |
| joins | `[INNER]`, `CROSS`, `LEFT`, `RIGHT`, `FULL [OUTER]`, `[LEFT] SEMI`, `[LEFT] ANTI`, each with `ON` \
or `USING`; `NATURAL`; `LATERAL (SELECT ...)`, `LATERAL explode(...)` |
| `LATERAL VIEW [OUTER]` | `explode`, `posexplode`, `inline`, each also with `_outer` (`explode_outer`, \
`posexplode_outer`, `inline_outer`), `stack`, `json_tuple`; the same functions as a column of SELECT |
| `WHERE`, `HAVING`, `QUALIFY` | a condition; window functions in QUALIFY alone |
| `GROUP BY` | expressions, positions, aliases of the SELECT, `ALL`; `ROLLUP`, `CUBE`, `GROUPING SETS`, also \
`WITH ROLLUP`; `grouping()`, `grouping_id()`; time windows: `window(at, '1 day' [, slide [, start]])`, \
`session_window(at, '5 minutes')` |
| windows | `row_number`, `rank`, `dense_rank`, `percent_rank`, `cume_dist`, `ntile`, `lag`, `lead`, \
`first_value`, `last_value`, `nth_value`, every aggregate; frames by `ROWS` and `RANGE`, also with \
intervals; named `WINDOW`; `IGNORE NULLS`; over aggregates |
| `ORDER BY` | expressions, positions, aliases, `ALL`, with `ASC`, `DESC`, `NULLS FIRST`, `NULLS LAST` |
| `LIMIT`, `OFFSET` | an integer, arithmetic on integers, `ALL` |
| `rand()`, `randn()`, `uuid()` | without a seed, in SELECT, WHERE, ORDER BY and GROUP BY |
| `UNION`, `EXCEPT` or `MINUS`, `INTERSECT`, each with `ALL` | queries with the same number of columns; \
`UNION BY NAME` |
| subqueries | `IN (SELECT ...)`, also of several columns, `EXISTS (SELECT ...)`, a subquery for one value, \
and `x > ANY (SELECT ...)`, `x > ALL (SELECT ...)`, which Spark does not have; each may use columns of the \
outer query; also in the conditions of DELETE and UPDATE |
| `:name`, `?` | a value of `parameters=` |
| `IDENTIFIER(...)` | the name of a table, a column or a function as text: literals, joined by `\\|\\|`, or \
a parameter |
| `f(a => 1)` | arguments by name, for the functions that take them in Spark: `mask`, and `explode` and \
similar functions in FROM |
| `PIVOT`, `UNPIVOT` | after a table or a query in brackets |
| `TABLESAMPLE` | after a table or a query in brackets: `n PERCENT`, `n ROWS` (the first n), `BUCKET x OUT \
OF y`, `REPEATABLE (seed)` |
| `\\|>` | `WHERE`, `SELECT`, `EXTEND`, `SET`, `DROP`, `AS`, `AGGREGATE ... GROUP BY`, joins, set \
operations, `ORDER BY`, `LIMIT`, `OFFSET`, `TABLESAMPLE`, `PIVOT`, `UNPIVOT` |
| hints, `SORT BY`, `DISTRIBUTE BY`, `CLUSTER BY` | accepted and ignored: they change no answer |
"""


def render() -> str:
    """Returns the page's text."""
    assert registered
    page = "\n".join(
        [_INTRODUCTION, _casts(), _functions(), _others(), _aggregates(), _refused(), _QUERIES, _statements()]
    )
    return "\n".join(line if line.startswith("|") else fill(line, 110) for line in page.split("\n"))


def _casts() -> str:
    lines = [
        "## Casts",
        "",
        "A cast goes from the type of the row to the type of the column. Arrays, structs and maps are cast",
        "item by item. A variant is cast to each of these types, and each of these types and arrays of them",
        "to variant.",
        "",
    ]
    names = [type_text(kind).removesuffix("(10,2)") for kind in _PRIMITIVES]
    lines += ["| from \\ to | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for source, name in zip(_PRIMITIVES, names, strict=True):
        lines.append(
            f"| {name} | "
            + " | ".join("yes" if _is_cast(source, target) else "" for target in _PRIMITIVES)
            + " |"
        )
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
        "`T`: any type, the same for each `T`. `any`: any type, also a different one for each argument.",
        "`...`: more arguments of the same kind. An argument of another type is cast as Spark casts it. A",
        "type after `=` must be given exactly. A NULL without a type gets the type that Spark gives it.",
        "`collection`: an array or map. Example: `date_add` (date, int) returns a date.",
        "",
    ]
    lines += ["| function | arguments | result |", "|---|---|---|"]
    for name in sorted(name for name in FORMS if name.isidentifier()):
        seen: dict[tuple[str, str], None] = {}
        for form in FORMS[name]:
            if form.result and "=void" not in form.parameters:
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
    return {
        "byte": "tinyint",
        "short": "smallint",
        "integer": "int",
        "long": "bigint",
        "K": "T",
        "V": "T",
    }.get(pattern, pattern).replace("<", "\\<")


def _others() -> str:
    special = ", ".join(f"`{name}`" for name in sorted(SPECIAL))
    units = ", ".join(f"`{name}`" for name in sorted(UNIT_FIRST))
    return f"""Constructors, functions that take a lambda and functions with options: {special}.

A map of literals gives the options: `to_json(s, map('dateFormat', 'dd.MM.yyyy'))`.

| functions | options |
|---|---|
| `from_json`, `to_json`, `from_csv`, `to_csv` | `dateFormat`, `timestampFormat`, `timestampNTZFormat` |
| `from_json`, `from_csv` | `mode`: `PERMISSIVE` |
| `from_csv`, `to_csv`, `schema_of_csv` | `sep` or `delimiter`, `quote`, `escape`, `nullValue`, \
`ignoreLeadingWhiteSpace`, `ignoreTrailingWhiteSpace` |
| `to_csv` | `quoteAll` |

The schema of `from_json` and `from_csv` is a text literal, or `schema_of_json` or `schema_of_csv` of a text
literal. It has no field `_corrupt_record`, which Spark fills with the text of a bad record.

Functions whose first argument is a unit, such as `timestampdiff(DAY, x, y)`: {units}.

A pattern for dates and times is a literal. Functions that write text, such as `date_format`, take the fields
`G GG GGG GGGG yyyy yy y` and `Q` to `QQQQ`, `M` to `MMMM`, `L` to `LLLL`,
`d dd D DD DDD E EE EEE EEEE F a h hh H HH k kk K KK m mm s ss`, `S` to `SSSSSSSSS`, `X` to `XXXXX`, `x` to
`xxxxx`, `Z ZZ ZZZ ZZZZ O OOOO VV z zz zzz zzzz`. Functions that read text, such as `to_date`, take
`yyyy yy y`, `M` to `MMMM`, `L` to `LLLL`, `d dd D DDD a h hh H HH k kk K KK m mm s ss`, `S` to `SSSSSSSSS`,
`X XX XXX Z`, and optional parts in brackets.
A name of a zone (`z`) is refused in the years in which the offsets of January and July do not show its
daylight saving time, and in the few zones that have no such years.
"""


def _aggregates() -> str:
    names = ", ".join(f"`{name}`" for name in sorted(NAMES))
    return f"""## Aggregate functions

Aggregate functions are allowed in the SELECT list, HAVING and ORDER BY of a query, with DISTINCT,
FILTER (WHERE ...), WITHIN GROUP (ORDER BY ...) and IGNORE NULLS if Spark allows these:
{names}.
"""


def _refused() -> str:
    reasons: dict[str, list[str]] = {}
    for name, reason in sorted(NOT_HERE.items()):
        reasons.setdefault(reason, []).append(f"`{name}`")
    lines = [f"| {reason} | {', '.join(names)} |" for reason, names in reasons.items()]
    return "\n".join(
        ["## Functions of Spark that are refused", "", "| reason | functions |", "|---|---|", *lines, ""]
    )


def _statements() -> str:
    known = ", ".join(f"`{word}`" for word in sorted(STATEMENTS))
    refused = ", ".join(f"`{word}`" for word in sorted(REFUSED))
    return f"""## Statements

`deltaic.sql` runs statements that begin with {known}. It refuses {refused}.
[`deltaic.sql`](reference.md) lists the columns that each statement returns.
"""


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
