"""Names of columns without an alias are those of Spark 4.3: for `NAMES`, and for every form of name_forms.py,
as recorded."""

from __future__ import annotations

from typing import Any

import pytest
from name_forms import name_forms
from spark_recording import load
from test_recorded import schema_of

from deltaic.errors import DeltaError
from deltaic.protocol.schema import Schema
from deltaic.spark_sql.column_names import column_name
from deltaic.spark_sql.parsing import parse_statement
from deltaic.spark_sql.query.queries import translate_query

DIFFERENT = {"1.5BD", "timestamp '2024-01-01 00:00:00Z'"}
"""Forms whose spelling is not in the tree."""
NAMES = [
    ("1", "1"),
    ("1.5", "1.5"),
    ("1e3", "1000.0"),
    ("DATE '2024-01-01'", "DATE '2024-01-01'"),
    ("TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP '2024-01-01 00:00:00'"),
    ("TIMESTAMP_NTZ '2024-01-01'", "TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
    ("d > date'2024-01-01'", "(d > DATE '2024-01-01')"),
    ("1.5D", "1.5"),
    ("2L", "2"),
    ("3Y", "3"),
    ("'id'", "id"),
    ("'it''s'", "it's"),
    ("'a\\tb'", "a\tb"),
    ("NULL", "NULL"),
    ("true", "true"),
    ("-id", "(- id)"),
    ("-1", "-1"),
    ("id * (2 + id)", "(id * (2 + id))"),
    ("(id)", "id"),
    ("x = 'NaN'", "(x = NaN)"),
    ("id <> 1", "(NOT (id = 1))"),
    ("id != 1", "(NOT (id = 1))"),
    ("id == 1", "(id = 1)"),
    ("id <=> 1", "(id <=> 1)"),
    ("NOT ok", "(NOT ok)"),
    ("ok AND id > 1 OR ok", "((ok AND (id > 1)) OR ok)"),
    ("p IS NULL", "(p IS NULL)"),
    ("p IS NOT NULL", "(p IS NOT NULL)"),
    ("ok IS TRUE", "(ok <=> true)"),
    ("ok IS NOT TRUE", "(NOT (ok <=> true))"),
    ("id IN (1, 2)", "(id IN (1, 2))"),
    ("id NOT IN (1, 2)", "(NOT (id IN (1, 2)))"),
    ("id BETWEEN 1 AND 2", "between(id, 1, 2)"),
    ("p LIKE 'a%'", "p LIKE a%"),
    ("p NOT LIKE 'a%'", "(NOT p LIKE a%)"),
    ("p RLIKE 'a'", "RLIKE(p, a)"),
    ("p ILIKE 'a'", "ilike(p, a)"),
    ("p ILIKE 'a' ESCAPE '/'", "ilike(p, a)"),
    ("p NOT LIKE 'a' ESCAPE '/'", "(NOT p LIKE a ESCAPE '/')"),
    ("p LIKE a ESCAPE '\\\\'", "p LIKE a"),
    ("like(p, a, '/')", "p LIKE a ESCAPE '/'"),
    ("ilike(p, a, '/')", "ilike(p, a)"),
    ("p ILIKE ANY ('a%', '%b')", "likeany(lower(p))"),
    ("p LIKE ANY (a)", "p LIKE a"),
    ("p NOT LIKE ALL (a, 'x')", "((NOT p LIKE a) AND (NOT p LIKE x))"),
    ("p || 'b'", "concat(p, b)"),
    ("COUNT(*)", "count(1)"),
    ("count(id)", "count(id)"),
    ("COUNT(DISTINCT id)", "count(DISTINCT id)"),
    ("count(DISTINCT id, p)", "count(DISTINCT id, p)"),
    ("Sum(id)", "sum(id)"),
    ("sum(id) FILTER (WHERE id > 1)", "sum(id) FILTER (WHERE (id > 1))"),
    ("avg(x) + 1", "(avg(x) + 1)"),
    ("max(T.ID)", "max(ID)"),
    ("Upper(p)", "upper(p)"),
    ("substring(p, 1, 2)", "substring(p, 1, 2)"),
    ("substr(p FROM 1 FOR 2)", "substring(p, 1, 2)"),
    ("coalesce(p, 'x')", "coalesce(p, x)"),
    ("if(ok, 1, 2)", "(IF(ok, 1, 2))"),
    ("nvl(p, 'x')", "nvl(p, x)"),
    ("CASE WHEN ok THEN 'a' ELSE 'b' END", "CASE WHEN ok THEN a ELSE b END"),
    ("CASE id WHEN 1 THEN 'a' END", "CASE WHEN (id = 1) THEN a END"),
    ("CAST(id AS STRING)", "id"),
    ("CAST('1' AS INT)", "CAST(1 AS INT)"),
    ("cast(id as decimal(10,2))", "id"),
    ("try_cast(p as int)", "p"),
    ("id::string", "id"),
    ("a[0]", "a[0]"),
    ("m['k']", "m[k]"),
    ("st.b", "b"),
    ("st.`c c`", "c c"),
    ("struct(id, p)", "struct(id, p)"),
    ("array(1, 2)", "array(1, 2)"),
    ("map('a', 1)", "map(a, 1)"),
    ("named_struct('a', 1)", "named_struct(a, 1)"),
    ("extract(year FROM d)", "extract(year FROM d)"),
    ("year(d)", "year(d)"),
    ("date_add(d, 1)", "date_add(d, 1)"),
    ("current_date()", "current_date()"),
    ("trim(p)", "trim(p)"),
    ("trim(BOTH 'a' FROM p)", "TRIM(BOTH a FROM p)"),
    ("id % 2", "(id % 2)"),
    ("id / 2", "(id / 2)"),
    ("id div 2", "(id div 2)"),
    ("id & 1", "(id & 1)"),
    ("~id", "~id"),
    ("(SELECT 1)", "scalarsubquery()"),
    ("EXISTS (SELECT 1)", "exists()"),
    ("id IN (SELECT 1)", "(id IN (listquery()))"),
    ("`id`", "id"),
    ("t.id", "id"),
    ("t.ID", "ID"),
    ("round(x, 1)", "round(x, 1)"),
    ("ceil(x)", "CEIL(x)"),
    ("pow(x, 2)", "pow(x, 2)"),
    ("power(x, 2)", "POWER(x, 2)"),
    ("mean(x)", "mean(x)"),
    ("stddev(x)", "stddev(x)"),
    ("first(id)", "first(id)"),
    ("collect_list(id)", "collect_list(id)"),
    ("any_value(id)", "any_value(id)"),
    ("bool_and(ok)", "bool_and(ok)"),
    ("every(ok)", "every(ok)"),
    ("ifnull(p, 'x')", "ifnull(p, x)"),
    ("nullif(id, 1)", "nullif(id, 1)"),
    ("concat(p, 'a', p)", "concat(p, a, p)"),
    ("concat_ws(',', p)", "concat_ws(,, p)"),
    ("length(p)", "length(p)"),
    ("char_length(p)", "char_length(p)"),
    ("len(p)", "len(p)"),
    ("ucase(p)", "ucase(p)"),
    ("lower(p)", "lower(p)"),
    ("date_format(d, 'yyyy')", "date_format(d, yyyy)"),
    ("to_date('2024-01-01')", "to_date(2024-01-01)"),
    ("datediff(d, d)", "datediff(d, d)"),
    ("months_between(d,d)", "months_between(d, d, true)"),
    ("size(a)", "size(a)"),
    ("cardinality(a)", "cardinality(a)"),
    ("element_at(a, 1)", "element_at(a, 1)"),
    ("array_contains(a, 1)", "array_contains(a, 1)"),
    ("abs(id)", "abs(id)"),
    ("sign(x)", "sign(x)"),
    ("mod(id, 2)", "mod(id, 2)"),
    ("shiftleft(id, 1)", "shiftleft(id, 1)"),
    ("isnull(p)", "(p IS NULL)"),
    ("isnotnull(p)", "(p IS NOT NULL)"),
    ("greatest(id, 1)", "greatest(id, 1)"),
    ("regexp_replace(p, 'a', 'b')", "regexp_replace(p, a, b, 1)"),
    ("split(p, ',')", "split(p, ,, -1)"),
    ("now()", "now()"),
    ("current_timestamp", "current_timestamp()"),
    ("current_timestamp()", "current_timestamp()"),
    ("p IS DISTINCT FROM 'a'", "(NOT (p <=> a))"),
    ("'a' 'b'", "ab"),
    ("count(1)", "count(1)"),
    ("count_if(ok)", "count_if(ok)"),
    ("array_agg(id)", "collect_list(id)"),
    ("std(x)", "std(x)"),
    ("variance(x)", "variance(x)"),
    ("string(id)", "id"),
    ("hash(id)", "hash(id)"),
    ("date_part('year', d)", "date_part(year, d)"),
    ("day(d)", "day(d)"),
    ("dayofmonth(d)", "dayofmonth(d)"),
    ("substring_index(p, '.', 1)", "substring_index(p, ., 1)"),
    ("replace(p, 'a', 'b')", "replace(p, a, b)"),
    ("lpad(p, 3, ' ')", "lpad(p, 3,  )"),
    ("to_timestamp('2024-01-01')", "to_timestamp(2024-01-01)"),
    ("ln(x)", "ln(x)"),
    ("ceiling(x)", "ceiling(x)"),
    ("instr(p, 'a')", "instr(p, a)"),
    (
        "transform(p, t -> upper(t))",
        "transform(p, lambdafunction(upper(namedlambdavariable()), namedlambdavariable()))",
    ),
    (
        "aggregate(array(1, 2, 3), 0, (a, x) -> a + x, a -> a * 10)",
        (
            "aggregate(array(1, 2, 3), 0, lambdafunction((namedlambdavariable() + namedlambdavariable()),"
            " namedlambdavariable(), namedlambdavariable()), lambdafunction((namedlambdavariable() * 10),"
            " namedlambdavariable()))"
        ),
    ),
    ("named_struct('a', 1).a", "named_struct(a, 1).a"),
    ("max(struct(p, x)).x", "max(struct(p, x)).x"),
    ("d - INTERVAL '1' MONTH", "d - INTERVAL '1' MONTH"),
    ("sort_array(p)", "sort_array(p, true)"),
    ("percentile(x, array(0.25, 0.5))", "percentile(x, array(0.25, 0.5), 1)"),
    ("percentile_disc(0.25) WITHIN GROUP (ORDER BY x)", "percentile_disc(0.25) WITHIN GROUP (ORDER BY x)"),
    (
        "string_agg(p, '|') WITHIN GROUP (ORDER BY p)",
        "listagg(p, |) WITHIN GROUP (ORDER BY p ASC NULLS FIRST)",
    ),
    (
        "listagg(DISTINCT p, ',') WITHIN GROUP (ORDER BY p)",
        "listagg(DISTINCT p, ,) WITHIN GROUP (ORDER BY p ASC NULLS FIRST)",
    ),
    ("mode() WITHIN GROUP (ORDER BY x)", "mode() WITHIN GROUP (ORDER BY x DESC)"),
    ("any_value(p) IGNORE NULLS", "any_value(p)"),
    ("approx_count_distinct(p, 0.05)", "approx_count_distinct(p)"),
    ("from_json('{}', 'a INT')", "from_json({})"),
    ("approx_top_k(p, 2)", "approx_top_k(p, 2, 10000)"),
    ("str_to_map('a:1,b:2')", "str_to_map(a:1,b:2, ,, :)"),
]


@pytest.mark.parametrize(("form", "name"), NAMES, ids=[form for form, _ in NAMES])
def test_name(form: str, name: str) -> None:
    assert column_name(parse_statement(f"SELECT {form} FROM t").expressions[0]) == name


@pytest.fixture(scope="module")
def schemas() -> dict[str, Schema]:
    return {
        family.name: schema_of(family)
        for family in {family.name: family for family, _ in name_forms()}.values()
    }


def test_recorded_names(schemas: dict[str, Schema]) -> None:
    answered, wrong = 0, []
    for entry in load("names", "UTC"):
        found = _names(entry, schemas)
        answered += found is not None
        if found not in (None, entry["names"]) and entry["form"] not in DIFFERENT:
            wrong.append((entry["form"], found, entry["names"]))
    assert wrong == []
    assert answered >= 1800


def _names(entry: dict[str, Any], schemas: dict[str, Schema]) -> list[str] | None:
    """Our names of a query's columns; None where the embedded engine refuses it."""
    table = entry["rows"]
    try:
        query = translate_query(
            parse_statement(f"SELECT {entry['form']} FROM {table}"), {table: schemas[table]}
        )
    except DeltaError:
        return None
    return list(query.schema.names)
