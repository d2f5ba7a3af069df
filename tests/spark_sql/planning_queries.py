"""Queries with literals that fail when they are computed: over a table without rows they show which
expressions Spark computes while it plans."""

PLANNING_SCHEMA = "i INT, j INT, u STRING, d DATE, t TIMESTAMP, f DOUBLE, b BOOLEAN"

_FORMS = r"""
'q' * i
i * 'q'
i + 'q' > 2
i = 'q'
'q' = i
i IN ('q', 2)
i IN (cast(NULL AS int), 'q')
NULL IN ('q', i)
CASE WHEN i > 1 THEN cast('q' AS int) END
CASE WHEN i = 'q' THEN 1 END
CASE 'q' WHEN i THEN 1 END
coalesce(i, cast('q' AS int))
coalesce(cast('q' AS int), i)
coalesce(1, cast('q' AS int))
coalesce(cast(NULL AS int), cast('q' AS int))
nvl(i, cast('q' AS int))
if(i > 1, cast('q' AS int), 2)
if(true, 1, cast('q' AS int))
if(true, i, cast('q' AS int))
nanvl(f, cast('q' AS double))
nullif(i, 'q')
nullif('second', cast(NULL AS boolean))
nullif(b, 'second')
'a' < cast(NULL AS date)
cast(NULL AS date) < 'a'
d < 'a'
d BETWEEN 'a' AND '2020-01-01'
'q' * cast(NULL AS int)
pow(' ', cast(NULL AS string))
pow(' ', f)
transform(array('UTC'), e -> e = cast(NULL AS timestamp))
transform(array(i), e -> e + cast('q' AS int))
transform(array(1), e -> e + cast('q' AS int))
transform(array(1), e -> e / 0)
filter(array(i), e -> e = 'q')
exists(array(1,2), e -> e = 'q')
aggregate(array(1,2), 0, (a, e) -> a + e / 0)
1/0
i/0
i + 1/0
i + 2147483647 + 1
(2147483647 + 1) + i
i > 2147483647 + 1
f > 1/0
b AND 1/0 > 1
b OR 1/0 > 1
false AND 1/0 > i
false AND i/0 > 1
true OR i > 1/0
NULL AND i > 1/0
i IS NULL AND 1 = cast('q' AS int)
try_cast('q' AS int) + i
try_add(2147483647, 1) + i
try_divide(1, 0) + i
try_divide(i, 0)
try_add(i, cast('q' AS int))
cast('2024-13-01' AS date) < d
date_add(d, cast('q' AS int))
date_add('2024-13-01', i)
add_months('x', i)
make_date(2024, 13, i)
make_date(2024, 13, 1) < d
make_timestamp(2024, 13, 1, 0, 0, i)
datediff(d, 'x')
array(1, 2)[5] + i
array(1, 2)[i]
array(i)[5]
element_at(array(1, 2), 5) + i
element_at(array(1, 2), 0)
element_at(map(1, 2), 3) + i
map(1, 2)[3] + i
map(NULL, i)
map(1, i, 1, 2)
concat(u, cast('q' AS int))
concat_ws(',', u, cast('q' AS int))
greatest(i, cast('q' AS int))
least(cast('q' AS int), i)
raise_error('x')
coalesce(i, raise_error('x'))
if(i > 0, 1, raise_error('x'))
assert_true(false)
assert_true(i > 0)
cast('99999' AS tinyint) + i
cast(99999 AS tinyint) + i
cast(1e30 AS int) + i
cast('x' AS boolean) AND b
NOT 'x'
b = 'x'
b <=> 'x'
i <=> 'x'
NULL <=> 'x'
'x' IS NULL
cast('x' AS int) IS NULL
isnull(cast('x' AS int))
cast('x' AS int) IS NULL AND i > 1
u LIKE cast('x' AS int)
substr(u, 'x')
substr(u, 1, 'x')
substr(NULL, 'x')
left(u, 'x')
lpad(u, 'x', 'y')
repeat(u, 'x')
round(f, 'x')
round(f, 1/0)
pmod(i, 0)
i % 0
5 % 0 + i
i div 0
5 div 0 + i
mod(i, 5 % 0)
abs(-2147483648) + i
-cast(-2147483648 AS int) + i
cast('P' AS interval day to second)
INTERVAL '1' DAY / 0
timestampadd(DAY, 'x', t)
date_trunc('x', t)
trunc(d, 'x')
to_date('x') < d
to_date('x', 'yyyy') < d
to_timestamp('x') < t
to_number('x', '99') + i
try_to_number('x', '99') + i
unhex('zz') = u
conv('zz', 10, 100)
decode(1, cast('q' AS int), i)
hash(cast('q' AS int), i)
size(array(cast('q' AS int), i))
size(array(1, cast('q' AS int)))
sort_array(array(cast('q' AS int), i))
sequence(1, cast('q' AS int))
sequence(1, 10, -1)
sequence(1, i, 0)
struct(cast('q' AS int), i).col2
named_struct('a', cast('q' AS int), 'b', i).b
from_json('x', 'a int')
i BETWEEN 1 AND 'q'
i BETWEEN 'q' AND cast(NULL AS int)
i > cast(NULL AS int) + 1/0
cast(NULL AS int) > i + 1/0
cast(NULL AS int) + 1/0
1/0 + cast(NULL AS int)
cast(cast(NULL AS string) AS int) + i
ln('x') + i
sqrt(cast('q' AS double)) > f
nvl2(i, 1, cast('q' AS int))
nvl2(cast('q' AS int), 1, i)
zeroifnull(cast('q' AS int))
i = 1 AND i / (i - 1) > 2
cast('q' AS int) = cast('q' AS int)
array_contains(array(1, 2), cast('q' AS int))
array_contains(array(i), cast('q' AS int))
bit_count(cast('q' AS int)) + i
CASE WHEN 1/0 > 1 THEN i ELSE 2 END
CASE WHEN true THEN i ELSE 1/0 END
CASE WHEN false THEN 1/0 ELSE i END
CASE WHEN b THEN 1/0 ELSE 1/0 END
if(1/0 > 1, i, 2)
if(NULL, 1/0, i)
substring('abc', i, 1/0)
i * 65536 * 65536
i + j + 2147483647 + 5
1 + i + 2147483647 > 5
cast(127 AS tinyint) + cast(1 AS tinyint) + i
CASE WHEN i > 1 THEN i + 2147483647 + 1 END
transform_values(map(1, i), (k, x) -> x + 1/0)
zip_with(array(1), array(i), (a, x) -> a + 1/0)
exists(array(i), e -> e = 'q')
aggregate(array(i), 0, (a, e) -> a + 1/0)
map_filter(map(1, i), (k, x) -> k = 'q')
"""

_QUERIES = """
SELECT sum('q') AS x FROM t
SELECT sum(i + 'q') AS x FROM t
SELECT every('a') AS x FROM t
SELECT some('a') AS x FROM t
SELECT avg('q') AS x FROM t
SELECT count('q' + 1) AS x FROM t
SELECT max(cast('q' AS int)) AS x FROM t
SELECT min(i + 'q') AS x FROM t
SELECT sum(i) / 0 AS x FROM t
SELECT sum(1) / 0 AS x FROM t
SELECT sum(i) / (1 - 1) AS x FROM t
SELECT sum(i) + 1/0 AS x FROM t
SELECT sum(i) + 2147483647 + 9223372036854775807 AS x FROM t
SELECT sum(DISTINCT 'q') AS x FROM t
SELECT sum(i) FILTER (WHERE i = 'q') AS x FROM t
SELECT u, sum(i + 'q') AS x FROM t GROUP BY u
SELECT i + 'q' AS k, count(*) AS x FROM t GROUP BY i + 'q'
SELECT i + 1 AS k, i + 1 + 2147483647 AS x FROM t GROUP BY i + 1
SELECT i + 1 AS k, i + 1 + 2147483647 + 1 AS x FROM t GROUP BY i + 1
SELECT count(*) AS x FROM t GROUP BY i HAVING i > 'q'
SELECT count(*) AS x FROM t HAVING count(*) > 'q'
SELECT i FROM t WHERE 'q' = i
SELECT i FROM t WHERE 'abc'
SELECT i FROM t WHERE 1/0 > 1
SELECT i FROM t WHERE b AND (i > 5 OR i < 'q')
SELECT i FROM t WHERE CASE WHEN b THEN i = 'q' END
SELECT i FROM t ORDER BY i + 'q'
SELECT a.i FROM t a JOIN t b ON a.i = b.i + 'q'
SELECT a.i FROM t a LEFT JOIN t b ON a.i = b.i AND b.j = 'q'
SELECT (SELECT max(i + 'q') FROM t) AS x FROM t
SELECT i FROM t WHERE i IN (SELECT j + 'q' FROM t)
SELECT i FROM t WHERE EXISTS (SELECT 1 AS x FROM t WHERE j = 'q')
WITH c AS (SELECT i + 'q' AS k FROM t) SELECT k FROM c
SELECT i FROM t UNION ALL SELECT i + 'q' AS i FROM t
SELECT DISTINCT i + 'q' AS x FROM t
SELECT x + 1 AS y FROM (SELECT i + 'q' AS x FROM t)
"""

PLANNING = [
    *(f"SELECT {form} AS x FROM t" for form in _FORMS.strip().splitlines()),
    *_QUERIES.strip().splitlines(),
]
