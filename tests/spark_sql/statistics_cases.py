"""Aggregates that describe a column or two, over the rows of the walk: all of them, some, none, and in
groups."""

from __future__ import annotations

from aggregate_cases import Query
from spark_cases import lines

_PAIRS = ("corr", "covar_pop", "covar_samp", "regr_count", "regr_avgx", "regr_avgy", "regr_slope",
          "regr_intercept", "regr_r2", "regr_sxx", "regr_sxy", "regr_syy")  # fmt: skip
AGGREGATES = lines(r"""
max_by(n, i)
max_by(t, n)
min_by(t, l)
min_by(n, t)
max_by(n, x)
min_by(n, x)
bit_and(n)
bit_or(i)
bit_xor(n)
bit_and(l)
bit_xor(y)
bit_or(DISTINCT n)
skewness(n)
kurtosis(n)
skewness(d)
kurtosis(d)
skewness(x)
percentile(n, 0.5)
percentile(n, 0.25)
percentile(d, 0.9)
percentile(n, 1)
percentile(i, 0.1)
median(n)
median(d)
percentile_approx(n, 0.5)
percentile_approx(n, 0.25)
percentile_approx(d, 0.9)
approx_percentile(l, 0.5, 100)
percentile(n, 0.5, 1)
percentile(n, 0.3, 2)
percentile(n, 0.7, abs(n))
percentile(d, array(0.25, 0.5), abs(n))
percentile(x, 0.5, CASE WHEN n > 0 THEN n END)
percentile(n, 0.5, n)
histogram_numeric(n, 3)
histogram_numeric(d, 5)
histogram_numeric(n, 100)
percentile_approx(n, 0)
percentile_approx(n, 1.0)
mode(p)
approx_count_distinct(p)
approx_count_distinct(n)
approx_count_distinct(t)
try_sum(n)
try_sum(l)
try_sum(x)
try_avg(n)
try_avg(x)
listagg(t)
string_agg(t, ',')
first(n, true)
last(t, true)
any_value(n, true)
first(n, false)
first_value(t, true)
last_value(n, true)
bitmap_construct_agg(bitmap_bit_position(n))
bitmap_construct_agg(abs(n) % 100)
bitmap_construct_agg(n)
bitmap_or_agg(encode(t, 'UTF-8'))
bitmap_and_agg(encode(t, 'UTF-8'))
bitmap_and_agg(unhex('0F01'))
bitmap_count(bitmap_or_agg(encode(t, 'UTF-8')))
""") + tuple(
    f"{name}({first}, {second})"
    for name in _PAIRS
    for first, second in (("n", "i"), ("n", "d"), ("d", "n"), ("n", "x"))
)

QUERIES = tuple(
    Query(aggregate, tail, key)
    for aggregate in AGGREGATES
    for tail, key in (
        ("", ""),
        ("WHERE n > 0", ""),
        ("WHERE false", ""),
        ("", "p"),
        ("WHERE l BETWEEN -1000 AND 100000", "n"),
    )
)
