"""Queries of one column without an alias: every operator and function, on columns of all types, for the name
that the column gets.

scripts/record_spark_expressions.py records Spark's names (`names`), and test_column_names.py compares ours
with them.
"""

from __future__ import annotations

import itertools
import random

from spark_cases import Family, lines
from spark_forms import FAMILIES
from statistics_cases import AGGREGATES
from walk_cases import WALK, calls, is_small

from deltaic.spark_sql.functions.registry import FORMS

KEPT = 3
"""Calls of each function with arguments of any type."""

OTHERS = lines(r"""
a + 3
3 + a
a - 3
a + n
a + INTERVAL 1 DAY
a - INTERVAL 1 DAY
INTERVAL 1 DAY + a
INTERVAL 2 WEEK + a
a + INTERVAL 2 MONTH
INTERVAL 2 MONTH + a
a - INTERVAL '1-2' YEAR TO MONTH
m + INTERVAL 1 HOUR
m - INTERVAL 90 SECOND
INTERVAL 1.5 SECOND + m
m - INTERVAL '1 02:03:04.5' DAY TO SECOND
z + INTERVAL '25:30' HOUR TO MINUTE
a + INTERVAL 1 HOUR
a + INTERVAL 1 DAY * 2
(a + 1) + 1
(a - a) = INTERVAL 1 DAY
m - m > INTERVAL 1 DAY
date_add(a, 1) - 1
year(a + 1)
i + j * 2
i = j
s || t
n + l
count(*)
count(*) + 1
sum(n + 1)
max(a + 1)
count(DISTINCT a + 1)
sum(n) OVER (PARTITION BY p ORDER BY a)
sum(n) OVER (PARTITION BY p ORDER BY a + 1)
sum(n) OVER ()
row_number() OVER (ORDER BY n)
row_number() OVER (PARTITION BY p ORDER BY n DESC NULLS LAST, a)
rank() OVER (ORDER BY n)
dense_rank() OVER (ORDER BY n)
percent_rank() OVER (ORDER BY n)
cume_dist() OVER (ORDER BY n)
ntile(4) OVER (ORDER BY n)
lag(n) OVER (ORDER BY a)
lag(n, 2) OVER (ORDER BY a)
lag(n, 2, 0) OVER (ORDER BY a)
lead(n) OVER (ORDER BY a)
lead(n, -1) OVER (ORDER BY a)
lead(n, 1, 'x') OVER (ORDER BY a)
lag(n) IGNORE NULLS OVER (ORDER BY a)
first_value(n) OVER (ORDER BY a)
last_value(n) IGNORE NULLS OVER (ORDER BY a)
nth_value(n, 2) OVER (ORDER BY a)
nth_value(n, 2) IGNORE NULLS OVER (ORDER BY a)
sum(n) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
sum(n) OVER (ORDER BY a ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)
sum(n) OVER (ORDER BY a ROWS 2 PRECEDING)
sum(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)
sum(n) OVER (ORDER BY a RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW)
sum(n) FILTER (WHERE p) OVER (ORDER BY a)
sum(n) OVER (ORDER BY a) + 1
sum(sum(n)) OVER ()
count(*) OVER (PARTITION BY p)
avg(n) OVER (ORDER BY a DESC)
array_agg(n) OVER (ORDER BY a)
first(n) IGNORE NULLS
first(n, true)
last(n, true)
any_value(n, true)
n BETWEEN 1 AND 2
n NOT BETWEEN 1 AND 2
n IN (1, 2)
n NOT IN (1, NULL)
(n, l) IN ((1, 2))
t LIKE ANY ('a%', 'b')
t LIKE ALL ('a%', 'b')
t NOT LIKE ANY ('a%', 'b')
t NOT ILIKE 'a%'
t NOT RLIKE 'a'
t LIKE 'a' ESCAPE '!'
n << 1
n >> 1
n >>> 1
date_add(DAY, 1, a)
dateadd(MONTH, n, m)
timestampadd(HOUR, 1, m)
datediff(DAY, a, a)
timestampdiff(MONTH, m, m)
position('a' IN t)
position('a', t)
overlay(t PLACING 'x' FROM 2)
overlay(t PLACING 'x' FROM 2 FOR 1)
overlay(t, 'x', 2)
trim(t)
trim('a' FROM t)
trim(LEADING FROM t)
trim(LEADING 'a' FROM t)
trim(TRAILING 'a' FROM t)
ltrim(t)
ltrim('a', t)
rtrim('a', t)
btrim(t)
btrim(t, 'a')
substr(t, 2)
substring(t, 2)
substring(t FROM 2)
extract(YEAR FROM a)
extract(DAY FROM m)
date_part('YEAR', a)
current_date
current_timestamp
ai[0]
mt['a']
r.p
ar.p
ar[0].p
mt.a
r
(r).p
struct(n, t)
struct(n AS x, t)
named_struct('x', n)
struct(n + 1)
(n, t)
array(n, 1)
map('a', n)
array()
map()
transform(ai, (e, k) -> e + k)
filter(ai, e -> e > 1)
exists(ai, e -> e > n)
aggregate(ai, 0, (x, e) -> x + e)
zip_with(ai, ai, (x, y) -> x + y)
map_filter(mt, (k, v) -> v > 1)
array_sort(ai)
array_sort(ai, (x, y) -> x - y)
-1
- 1
-n
-(n)
-(-1)
+n
+1
~n
1e3
1.50
1.5BD
1e-9
1e10
123456789012
1.5F
100S
1L
X'1F'
'a' 'b'
r'a\b'
"x"
TRUE
NULL
DATE '2024-1-2'
TIMESTAMP '2024-01-02 03:04:05.6'
TIMESTAMP '2024-01-02 03:04:05.678901'
TIMESTAMP_NTZ '2024-01-02 03:04:05'
INTERVAL 1 DAY = INTERVAL 24 HOUR
a > DATE '2024-01-01' + INTERVAL 1 MONTH
CAST(n AS STRING)
CAST(n + 1 AS STRING)
CAST(r.p AS STRING)
CAST(ai AS ARRAY<STRING>)
CAST(NULL AS INT)
CAST('1' AS DECIMAL(10, 2))
TRY_CAST(t AS INT)
TRY_CAST(t || 'x' AS INT)
t :: INT
(n + 1) :: BIGINT
int(t)
int(n + 1)
string(n)
date(s)
timestamp(s)
double(n) + 1
CASE WHEN p THEN 1 END
CASE n WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END
if(p, n, 1)
iff(p, n, 1)
nvl(n, 1)
nvl2(n, 1, 2)
ifnull(n, 1)
nullif(n, 1)
coalesce(n, l, 1)
n <=> 1
n IS NULL
n IS NOT NULL
NOT n IS NULL
NOT (n IS NOT NULL)
p IS TRUE
p IS NOT TRUE
p IS FALSE
p IS UNKNOWN
p IS NOT UNKNOWN
n IS DISTINCT FROM 1
n IS NOT DISTINCT FROM 1
NOT p
! p
p AND p OR NOT p
n != 1
n <> 1
n == 1
explode(ai)
explode_outer(ai)
posexplode(ai)
inline(ar)
stack(2, n, 1)
json_tuple(t, 'a', 'b')
(SELECT 1)
(SELECT max(n) FROM given)
EXISTS (SELECT 1)
NOT EXISTS (SELECT 1)
n IN (SELECT 1)
n NOT IN (SELECT 1)
(SELECT max(x.n) FROM given x WHERE x.i = given.i)
(SELECT max(x.n) FROM given x WHERE x.i = given.i AND x.l = given.l)
(SELECT max(x.n) FROM given x WHERE x.i = given.i AND x.l = given.i)
(SELECT max(x.n) FROM given x WHERE x.i = given.i + given.n)
(SELECT max(x.n) FROM given x WHERE x.i = given.l OR x.l = given.i) + 1
EXISTS (SELECT 1 FROM given x WHERE x.i = given.i)
n IN (SELECT x.n FROM given x WHERE x.i = given.i)
grouping(n)
grouping_id()
percentile_cont(0.5) WITHIN GROUP (ORDER BY n)
percentile_cont(0.5) WITHIN GROUP (ORDER BY n DESC)
listagg(t, ',') WITHIN GROUP (ORDER BY n DESC, t)
listagg(t)
listagg(t, ',')
string_agg(DISTINCT t, ',')
mode(n)
mode(n, true)
mode() WITHIN GROUP (ORDER BY n DESC)
max_by(n, l)
count(n, l)
count(n) FILTER (WHERE p)
count_if(p)
approx_count_distinct(n)
approx_percentile(n, 0.5)
approx_percentile(n, 0.5, 100)
percentile_approx(n, array(0.5))
histogram_numeric(n, 3)
collect_set(n)
to_json(r)
to_json(r, map('dateFormat', 'yyyy'))
from_json(t, 'a INT')
from_json(t, 'a INT', map('mode', 'PERMISSIVE'))
from_csv(t, 'a INT')
schema_of_json('{}')
get_json_object(t, '$.a')
window(m, '1 day')
width_bucket(x, 0, 10, 5)
split(t, ',', 2)
sequence(1, 3)
sequence(1, 3, 2)
rand()
uuid()
between(n, 1, 2)
when(p, 1, 2)
log(2, x)
log(x)
ln(x)
hash(n, t)
make_date(2024, 1, 2)
make_timestamp(2024, 1, 2, 3, 4, 5)
convert_timezone('UTC', 'Asia/Tokyo', z)
now()
current_timezone()
pi()
e()
`n`
`given`.`n`
given.n + 1
""")  # fmt: skip


def name_forms() -> list[tuple[Family, str]]:
    """(rows, form): forms with an answer from Spark already, and some of the walk for each function and
    operator."""
    found = [(family, form) for family in FAMILIES for form in family.forms]
    given, chosen = Family("given", WALK.rows, ()), random.Random(3)
    walk = [
        form
        for name in FORMS
        if name.isidentifier()
        for form in chosen.choices([*calls(name, chosen, KEPT)], k=KEPT)
    ]
    sums = [
        f"{one} {sign} {other}"
        for sign in "+-*"
        for one, other in itertools.product(("n", "d", "s", "a", "m", "z"), repeat=2)
    ]
    return [
        *found,
        *((given, form) for form in dict.fromkeys([*OTHERS, *walk, *sums, *AGGREGATES]) if is_small(form)),
    ]
