"""Measures every function of docs/sql.md over a million rows, beside DuckDB's nearest expression.

    PYTHONPATH=python:tests/spark_sql python benches/peers/functions.py [name ...] [--record
    benches/records/functions.json]

The rows are those for which Spark's results are recorded, repeated. For each function, the first recorded
form that fails on no row is measured; aggregate functions over 100 groups. The measured time is that of all
threads together (`time.process_time`), the minimum of a few runs. DuckDB's nearest expression is the same
text if DuckDB supports it, else one of `NEAREST`. `REASONS` has a reason for each function that takes more
than three times as long and 50 ms more, or more than a second. The bench prints the functions that lack one.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from _pairs import record

TESTS = Path(__file__).resolve().parents[2] / "tests" / "spark_sql"
sys.path.insert(0, str(TESTS))

ROWS, RUNS, GROUPS = 1_000_000, 3, 100
SLOWER, SLACK, MOST = 3.0, 0.05, 1.0

# --- what is nearest in DuckDB, where the text is another

NEAREST: dict[str, str] = {
    "btrim": "trim(s)",
    "locate": "strpos(s, t)",
    "position": "strpos(s, t)",
    "regexp_like": "regexp_matches(w, 'x.y')",
    "substring_index": "array_to_string(string_split(s, ',')[1:2], ',')",
    "initcap": "upper(w)",
    "sha": "sha1(b)",
    "sha2": "sha256(s)",
    "space": "repeat(' ', n)",
    "array_join": "array_to_string(string_split(s, ','), '|')",
    "months_between": "datediff('month', c, d)",
    "date_format": "strftime(t, '%Y-%m-%d')",
    "from_unixtime": "strftime(TIMESTAMP '1970-01-01' + to_seconds(l), '%Y-%m-%d %H:%M:%S')",
    "to_utc_timestamp": "timezone('Asia/Tokyo', CAST(t AS TIMESTAMP))",
    "from_utc_timestamp": "timezone('America/New_York', t)",
    "convert_timezone": "timezone('Europe/Berlin', timezone('UTC', z))",
    "sort_array": "list_sort(a)",
    "array_union": "list_distinct(list_concat(a, b))",
    "array_except": "list_filter(a, lambda x: NOT list_contains(b, x))",
    "array_prepend": "list_prepend(9, a)",
    "array_insert": "list_concat(list_concat(a[:0], [9]), a)",
    "arrays_zip": "list_zip(a, b)",
    "forall": "list_bool_and(list_transform(a, lambda v: v > 0))",
    "aggregate": "list_reduce(a, lambda acc, v: acc + v, 0)",
    "reduce": "list_reduce(s, lambda acc, v: acc || coalesce(v, '-'), '')",
    "map": "map(['a', 'b'], [1, i])",
    "map_from_arrays": "map(['x', 'y'], [1, i])",
    "map_concat": "map_concat(m, map(['zz'], [1]))",
    "map_filter": "map_from_entries(list_filter(map_entries(n), lambda e: e.key > 0))",
    "transform_values": (
        "map_from_entries(list_transform(map_entries(n), lambda e: {'k': e.key, 'v': length(e.value)}))"
    ),
    "transform_keys": (
        "map_from_entries(list_transform(map_entries(m), lambda e: {'k': concat(e.key, '!'), 'v': e.value}))"
    ),
    "map_zip_with": "map_from_entries(list_transform(map_keys(m), lambda k: {'k': k, 'v': m[k] + m[k]}))",
    "get_json_object": "CASE WHEN json_valid(j) THEN json_extract_string(j, '$') END",
    "to_json": "to_json({'a': j, 'b': 1})",
    "xxhash64": "hash(j, u)",
    "try_url_decode": "url_decode(w)",
    "try_parse_url": "regexp_extract(u, '^[a-z]+://([^/:]*)', 1)",
    "try_to_binary": "TRY(unhex(u))",
    "unbase64": "from_base64(base64(b))",
    "format_string": "printf('%s-%d', s, n)",
    "format_number": "format('{:,.2f}', CAST(n AS DOUBLE))",
    "regexp_count": "len(regexp_extract_all(s, 'a'))",
    "regexp_substr": "regexp_extract(w, '[a-z]+')",
    "regexp_instr": "strpos(w, regexp_extract(w, '[A-Z]'))",
    "quote": "chr(39) || replace(w, chr(39), chr(92) || chr(39)) || chr(39)",
    "try_to_timestamp": "TRY_CAST(CAST(d AS VARCHAR) AS TIMESTAMP)",
    "try_to_number": "TRY_CAST(string_split(s, ' ')[1] AS DECIMAL(1, 0))",
    "ilike": "s ILIKE p ESCAPE '/'",
    "to_char": "strftime(d, '%Y')",
    "to_varchar": "format('{:d}', j)",
    "parse_json": "CAST(j AS JSON)",
    "try_parse_json": "TRY_CAST(j AS JSON)",
    "variant_get": "json_extract_string(j, '$.a')",
    "try_variant_get": "TRY_CAST(json_extract_string(j, '$.a') AS INTEGER)",
    "schema_of_variant": "json_structure(j)",
    "is_variant_null": "json_type(j) = 'NULL'",
    "is_valid_variant": "json_valid(j)",
    "from_json": "CASE WHEN json_valid(j) THEN json_extract_string(j, ['$.a', '$.b']) END",
    "from_csv": (
        "struct_pack(a := TRY_CAST(string_split(c, ',')[1] AS INTEGER), b := string_split(c, ',')[2])"
    ),
    "to_variant_object": "[struct_pack(a := j)]::VARIANT",
    "json_object_keys": "CASE WHEN json_valid(j) THEN json_keys(j) END",
    "json_array_length": "CASE WHEN json_valid(j) THEN json_array_length(j) END",
    "to_csv": "CAST(c AS VARCHAR)",
    "mask": (
        "regexp_replace(regexp_replace(regexp_replace(s, '[A-Z]', 'X', 'g'), '[a-z]', 'x', 'g'), '[0-9]',"
        " 'n', 'g')"
    ),
    "hypot": "sqrt(x * x + y * y)",
    "try_multiply": "TRY(CAST(l AS HUGEINT) * m)",
    "try_add": "TRY(i + j)",
    "try_subtract": "TRY(i - j)",
    "try_divide": "i / j",
    "try_mod": "i % nullif(nullif(j, 0), -1)",
    "zip_with": "list_transform(list_zip(a, b), lambda e: e[1] + e[2])",
    "try_make_timestamp": "make_timestamp(year(d), 2, 28, 1, 2, 3)",
    **{
        f"try_make_timestamp_{zone}": "make_timestamp(2024, month(d), 28, 1, 2, 3)" for zone in ("ltz", "ntz")
    },
    "sequence": "generate_series(1, i)",
    "exists": "list_bool_or(list_transform(a, lambda v: v > 2))",
    "shiftleft": "CAST(i AS BIGINT) * 8",
    "shiftright": "i >> 1",
    "shiftrightunsigned": "(CAST(i AS BIGINT) & 4294967295) >> 1",
    "find_in_set": "list_position(string_split('b,a,x', ','), t)",
    "arrays_overlap": "list_has_any(a, b)",
    "array_remove": "list_filter(a, lambda v: v <> 1)",
    "array_compact": "list_filter(a, lambda v: v IS NOT NULL)",
    "filter": "list_filter(a, lambda v: v > 1)",
    "transform": "list_transform(a, lambda v: v + 1)",
    "slice": "a[1:2]",
    "get": "a[i + 1]",
    "try_element_at": "a[5]",
    "array": "[i, 1]",
    "array_max": "list_max(a)",
    "array_min": "list_min(a)",
    "array_repeat": "list_value('x', 'x')",
    **dict.fromkeys(("size", "array_size"), "len(a)"),
    "bitmap_count": "bit_count(CAST(unhex('00') || b AS BIT))",
    "bitmap_bucket_number": "n // 32768",
    "bitmap_bit_position": "n % 32768",
    **dict.fromkeys(("getbit", "bit_get"), "(i >> 3) & 1"),
    **dict.fromkeys(("chr", "char"), "chr(abs(n) % 128)"),
    **dict.fromkeys(
        ("encode", "to_binary", "make_valid_utf8", "validate_utf8", "try_validate_utf8", "is_valid_utf8"),
        "encode(s)",
    ),
    "decode": "decode(encode(s))",
    "octet_length": "strlen(s)",
    "elt": "[s, t][2]",
    "startswith": "starts_with(s, 'a')",
    "endswith": "ends_with(s, 'c')",
    "like": "s LIKE 'a%'",
    "struct": "struct_pack(i := i, k := k)",
    "named_struct": "struct_pack(x := i, y := r.q)",
    "map_contains_key": "map_contains(m, 'a')",
    "map_from_entries": "map_from_entries([('x', 1), ('y', 2)])",
    "str_to_map": "map(['a', 'b'], ['1', '2'])",
    "add_months": "d + INTERVAL 1 MONTH",
    "dateadd": "d + 3",
    "date_sub": "d - 1",
    "next_day": "date_trunc('week', d) + INTERVAL 7 DAY",
    "trunc": "date_trunc('year', d)",
    **dict.fromkeys(("datediff", "date_diff"), "datediff('day', c, d)"),
    "unix_date": "datediff('day', DATE '1970-01-01', d)",
    "date_from_unix_date": "DATE '1970-01-01' + n",
    "unix_millis": "epoch_ms(t)",
    "unix_micros": "epoch_us(t)",
    **dict.fromkeys(
        ("unix_seconds", "unix_timestamp", "to_unix_timestamp"), "CAST(floor(epoch(t)) AS BIGINT)"
    ),
    "timestamp_seconds": "to_timestamp(l)",
    "timestamp_millis": "epoch_ms(l)",
    "timestamp_micros": "make_timestamp(l)",
    "timestamp": "CAST(d AS TIMESTAMPTZ)",
    "to_timestamp_ltz": "CAST(d AS TIMESTAMPTZ)",
    "to_timestamp_ntz": "CAST(t AS TIMESTAMP)",
    "try_to_date": "TRY_CAST('x' AS DATE)",
    "csc": "1 / sin(y)",
    "sec": "1 / cos(y)",
    "log1p": "ln(1 + abs(y))",
    "expm1": "exp(y) - 1",
    "pmod": "((i % 3) + 3) % 3",
    "bround": "round_even(x, 0)",
    "rint": "round_even(x, 0)",
    "signum": "sign(l)",
    "width_bucket": "TRY_CAST(y / 2 AS BIGINT) + 1",
    "factorial": "factorial(CAST(a % 5 + 5 AS INTEGER))",
    "positive": "+i",
    "nvl": "coalesce(i, j)",
    "nvl2": "CASE WHEN i IS NOT NULL THEN 'a' ELSE 'b' END",
    "nanvl": "CASE WHEN isnan(x) THEN y ELSE x END",
    "zeroifnull": "coalesce(i, 0)",
    "nullifzero": "nullif(i, 0)",
    "equal_null": "i IS NOT DISTINCT FROM j",
    "isnull": "i IS NULL",
    "isnotnull": "x IS NOT NULL",
    **{
        name: f"CAST(i AS {kind})"
        for name, kind in (
            ("string", "VARCHAR"),
            ("bigint", "BIGINT"),
            ("double", "DOUBLE"),
            ("float", "FLOAT"),
        )
    },
    "boolean": "CAST(i AS BOOLEAN)",
    "decimal": "CAST(i AS DECIMAL(10, 0))",
    # DuckDB has nothing like these: what is nearest does a part of the work
    "hmac": "sha256(c)",
    "aes_encrypt": "md5(s)",
    "try_aes_decrypt": "md5(b)",
    "soundex": "upper(s)",
    "crc32": "md5(j)",
    "luhn_check": "regexp_matches(u, '^[0-9]+$')",
    "to_base32": "to_base64(encode(c))",
    "from_base32": "to_base64(encode(c))",
    "conv": "TRY_CAST('0x' || s AS BIGINT)",
}

_BEYOND_ASCII = "letters beyond ASCII are turned as Java turns them, by a kernel"
_VARIANT = "bytes of a variant are written and read as Spark's; DuckDB looks for one name in the text"
REASONS: dict[str, str] = {
    **dict.fromkeys(("lower", "upper", "lcase", "ucase", "initcap"), _BEYOND_ASCII),
    **dict.fromkeys(
        ("skewness", "kurtosis"),
        "of the rows themselves, about their mean; DuckDB's are estimates from sums of powers",
    ),
    "months_between": (
        "months and the days between as a part of one, to eight places; DuckDB counts whole months"
    ),
    "array_except": "each element once, nulls among them",
    "map_concat": "DuckDB's map(), which looks for keys that come twice",
    **dict.fromkeys(
        ("map", "map_from_arrays", "map_zip_with"), "DuckDB's map(), which looks for keys that come twice"
    ),
    "histogram_numeric": "bins are merged value by value, as Spark does; DuckDB counts each value",
    "try_to_timestamp": "the forms of times that Spark reads, by a kernel",
    "try_url_decode": "text that is not encoded is null, by a kernel",
    "reverse": "text beyond ASCII is turned by characters; DuckDB keeps graphemes together",
    "url_encode": "Java's set of characters that stay, in a kernel",
    "jaro_winkler_similarity": "Spark's rounding and treatment of nulls, in a kernel",
    **dict.fromkeys(
        ("hash", "xxhash64"), "Spark's hash, value by value in order; DuckDB's own is not comparable"
    ),
    **dict.fromkeys(
        ("parse_json", "try_parse_json", "variant_get", "try_variant_get", "schema_of_variant"), _VARIANT
    ),
    **dict.fromkeys(("is_variant_null", "is_valid_variant", "to_variant_object"), _VARIANT),
    "get_json_object": "the whole text is read, and written again as Jackson does",
    "format_number": "Java's rounding of the decimal digits, in a kernel",
    "to_utc_timestamp": "the hours in which clocks change are answered as Java does",
    "from_utc_timestamp": "the hours in which clocks change are answered as Java does",
    "try_parse_url": "java.net.URI's rules, in a kernel",
    **dict.fromkeys(
        ("luhn_check", "soundex", "to_base32", "from_base32"),
        "DuckDB has none; what is beside it does a part of the work",
    ),
    "to_json": (
        "fields that are null are left out, and numbers are written as Jackson writes them, by a kernel"
    ),
    "from_csv": "each field has a type, and a value of another type is null, by a kernel",
    "from_json": "each field has a type, and a value of another type is null, by a kernel",
    "try_multiply": "the product is made in 128 bits; one that is no long is null",
    "to_csv": "quotes where Spark puts them, by a kernel",
    "hypot": "Java's last digit and no overflow in between, by a kernel",
}

# --- aggregate functions: Spark's form, and DuckDB's nearest

AGGREGATES: dict[str, tuple[str, str]] = {
    **{name: (f"{name}(b)", "bool_or(b)") for name in ("any", "some", "bool_or")},
    **{name: (f"{name}(b)", "bool_and(b)") for name in ("every", "bool_and")},
    **{
        name: (f"{name}(i)", f"{name}(i)")
        for name in ("count", "sum", "avg", "min", "max", "bit_and", "bit_or", "bit_xor", "mode")
    },
    **{
        name: (f"{name}(x)", f"{name}(x)")
        for name in ("stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance", "median")
    },
    **{name: (f"{name}(x)", f"{name}(x)") for name in ("skewness", "kurtosis")},
    **{name: (f"{name}(x, y)", f"{name}(x, y)") for name in ("corr", "covar_pop", "covar_samp")},
    **{
        f"regr_{part}": (f"regr_{part}(x, y)", f"regr_{part}(x, y)")
        for part in ("avgx", "avgy", "count", "intercept", "r2", "slope", "sxx", "sxy", "syy")
    },
    **{name: (f"{name}(i)", "first(i)") for name in ("any_value", "first", "first_value")},
    **{name: (f"{name}(i)", "last(i)") for name in ("last", "last_value")},
    **{name: (f"{name}(i)", "list(i)") for name in ("array_agg", "collect_list")},
    "bitmap_construct_agg": ("bitmap_construct_agg(i)", "bitstring_agg(i, 0, 32767)"),
    **{
        f"bitmap_{word}_agg": (
            f"bitmap_{word}_agg(binary(s))",
            f"bit_{word}(CAST((encode(s) || repeat(unhex('00'), 4096))[1:4096] AS BIT))",
        )
        for word in ("or", "and")
    },
    "collect_set": ("collect_set(i)", "list(DISTINCT i)"),
    "collect_union": ("collect_union(a)", "list_distinct(flatten(list(a)))"),
    "mean": ("mean(i)", "avg(i)"),
    "std": ("std(x)", "stddev(x)"),
    "count_if": ("count_if(b)", "count_if(b)"),
    "approx_count_distinct": ("approx_count_distinct(i)", "count(DISTINCT i)"),
    "approx_top_k": ("approx_top_k(i, 5)", "approx_top_k(i, 5)"),
    **{
        name: (f"{name}(s, i)", f"{'arg_max' if name == 'max_by' else 'arg_min'}(s, i)")
        for name in ("max_by", "min_by")
    },
    **{name: (f"{name}(x, 0.5)", "quantile_cont(x, 0.5)") for name in ("percentile",)},
    **{
        name: (f"{name}(x, 0.5)", "quantile_disc(x, 0.5)")
        for name in ("percentile_approx", "approx_percentile")
    },
    "percentile_cont": ("percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "quantile_cont(x, 0.5)"),
    "percentile_disc": ("percentile_disc(0.5) WITHIN GROUP (ORDER BY x)", "quantile_disc(x, 0.5)"),
    "histogram_numeric": ("histogram_numeric(i, 10)", "histogram(i)"),
    **{
        name: (f"{name}(s, ',') WITHIN GROUP (ORDER BY s)", "string_agg(s, ',' ORDER BY s)")
        for name in ("listagg", "string_agg")
    },
    "try_sum": ("try_sum(d)", "sum(d)"),
    "try_avg": ("try_avg(d)", "avg(d)"),
}


def rows_of_groups() -> pa.Table:
    """Returns a million rows in 100 groups."""
    random = np.random.default_rng(5)
    whole = random.integers(0, 1000, ROWS, dtype=np.int32)
    return pa.table(
        {
            "g": random.integers(0, GROUPS, ROWS, dtype=np.int32),
            "i": whole,
            "x": random.random(ROWS),
            "y": random.random(ROWS),
            "b": whole > 500,
            "d": pa.array(whole).cast(pa.decimal128(12, 2)),
            "s": pa.array([f"text {number}" for number in whole.tolist()]),
            "a": pa.array([[number, number + 1] for number in whole.tolist()], pa.list_(pa.int32())),
        }
    )


_PARSED = "parse_json(j)"


def forms() -> Iterator[tuple[str, Any, str]]:
    """Yields (function, family, form), one of each function."""
    import re

    from spark_forms import FAMILIES
    from spark_recording import load

    from deltaic.spark_sql.functions.nested import SPECIAL
    from deltaic.spark_sql.functions.registry import FORMS

    seen: set[str] = set()
    for family in FAMILIES:
        for entry in load(family.name, family.zones[0]):
            name = entry["form"].split("(")[0]
            fails = "refused" in entry or any(
                isinstance(value, dict) and "error" in value for value in entry["values"]
            )
            if name in seen or fails or name not in {**FORMS, **SPECIAL}:
                continue
            if any(
                column in re.findall(r"[a-z]+", entry["form"][len(name) :])
                for column in family.rows.column_names
            ):
                seen.add(name)
                yield name, family, _PARSED if name == "parse_json" else entry["form"]


def seconds(connection: duckdb.DuckDBPyConnection, sql: str) -> float:
    """Returns the seconds that all threads together spend on the processor: the minimum of a few runs."""
    best = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        connection.execute(sql).fetchall()
        best = min(best, time.process_time() - start)
    return best


def rival(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    try:
        return {"duckdb": {"seconds": round(seconds(connection, sql), 4)}}
    except duckdb.Error:
        return {}


def scalars(connection: duckdb.DuckDBPyConnection, names: list[str]) -> Iterator[dict[str, Any]]:
    from test_recorded import schema_of

    from deltaic.spark_sql.duckdb import quote, translate

    known: set[str] = set()
    for name, family, form in forms():
        if names and name not in names:
            continue
        rows = f"rows_{family.name}"
        if rows not in known:
            known.add(rows)
            connection.register(family.name, family.rows)
            connection.execute(
                f"CREATE TABLE {rows} AS SELECT {family.name}.* FROM range({ROWS // family.rows.num_rows}),"
                f" {family.name}"
            )
        ours = translate(
            form, {"t": schema_of(family)}, column_sql=lambda alias, path: quote(*path), time_zone="UTC"
        ).sql
        if _PARSED in form and name != "parse_json":  # what reads variants is measured without the parsing
            made = translate(
                _PARSED,
                {"t": schema_of(family)},
                column_sql=lambda alias, path: quote(*path),
                time_zone="UTC",
            ).sql
            connection.execute(f"CREATE TABLE IF NOT EXISTS parsed AS SELECT *, {made} AS v FROM {rows}")
            ours, form, rows = ours.replace(made, "v"), form.replace(_PARSED, "v"), "parsed"
        query = f"SELECT bit_xor(hash({{}})) FROM {rows}".format  # every value is computed and hashed
        nearest = NEAREST.get(name, form)
        yield {
            "job": form,
            "function": name,
            "deltaic": round(seconds(connection, query(ours)), 4),
            "nearest": nearest,
            "rivals": rival(connection, query(nearest)),
        }


def aggregates(connection: duckdb.DuckDBPyConnection, names: list[str]) -> Iterator[dict[str, Any]]:
    from deltaic.protocol.schema import Schema
    from deltaic.spark_sql.parsing import parse_statement
    from deltaic.spark_sql.query.queries import translate_query

    wanted = [name for name in AGGREGATES if not names or name in names]
    if not wanted:
        return
    rows = rows_of_groups()
    connection.register("given", rows)
    connection.execute("CREATE TABLE grouped AS SELECT * FROM given")
    schema = Schema.from_arrow(rows.schema)
    for name in wanted:
        form, nearest = AGGREGATES[name]
        query = "SELECT {} AS r FROM grouped GROUP BY g".format
        around = "SELECT bit_xor(hash(r)) FROM ({})".format
        found = translate_query(parse_statement(query(form)), {"grouped": schema})
        yield {
            "job": form,
            "function": name,
            "deltaic": round(seconds(connection, around(found.sql)), 4),
            "nearest": nearest,
            "rivals": rival(connection, around(query(nearest))),
        }


def judged(row: dict[str, Any]) -> str:
    """Returns the fault of a time; empty if there is none, or if it has a reason."""
    if row["deltaic"] > MOST and "reason" not in row:
        return "above 1 s"
    peer = row["rivals"].get("duckdb", {}).get("seconds")
    far = peer is not None and row["deltaic"] > SLOWER * peer and row["deltaic"] > peer + SLACK
    return "far above DuckDB" if far and "reason" not in row else ""


def main() -> None:
    """Measures all functions, or those named, and prints the slowest last."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    from deltaic.spark_sql.duckdb import prepare

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    prepare(connection)
    measured = []
    for row in itertools.chain(scalars(connection, given.names), aggregates(connection, given.names)):
        measured.append({**row, "reason": REASONS[row["function"]]} if row["function"] in REASONS else row)
        peer = row["rivals"].get("duckdb", {}).get("seconds")
        print(
            f"{row['deltaic']:8.3f} {'' if peer is None else f'{peer:.3f}':>8} {row['job']} "
            f" {judged(measured[-1])}",
            flush=True,
        )
    measured.sort(key=lambda row: -row["deltaic"])
    wrong = [f"{row['job']}: {judged(row)}" for row in measured if judged(row)]
    print(f"{len(measured)} functions", *wrong, sep="\n")
    if given.record is not None:
        record(given.record, ROWS, RUNS, measured)


if __name__ == "__main__":
    main()
