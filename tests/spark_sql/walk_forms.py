"""Literals, and forms that are not plain calls, for walk_cases.py: {0}, {1}, {2} are operands."""

from __future__ import annotations

from spark_cases import lines

LITERALS = lines(r"""
NULL
0
1
-1
2
3
100
2147483647
-2147483648
3000000000
9223372036854775807
1Y
-128Y
2S
1L
1.5
0.0
-2.50
123456789012345678901234567890
0.1
1e0
0.0D
-0.0D
2.5D
1.5F
double('NaN')
double('Infinity')
''
'a'
'abc'
'1'
'-1.5'
' '
','
'b'
'%'
'a%'
'year'
'MM'
'day'
'second'
'mon'
'UTC'
'America/New_York'
'utf-8'
'yyyy-MM-dd'
'yyyy-MM-dd HH:mm:ss'
'2024-01-31'
'2024-01-31 10:20:30'
'true'
'q'
true
false
DATE'2024-01-31'
TIMESTAMP'2024-01-31 10:20:30'
TIMESTAMP_NTZ'2024-01-31 10:20:30'
X'61'
X''
array()
array(1, 2)
array('a', NULL)
array(NULL)
map()
map('a', 1)
map(1, 'a')
named_struct('p', 1, 'q', 'a')
cast(NULL AS int)
cast(NULL AS string)
cast(NULL AS boolean)
cast(NULL AS double)
cast(NULL AS date)
cast(NULL AS timestamp)
cast(NULL AS array<int>)
INTERVAL 1 DAY
INTERVAL '2' MONTH
INTERVAL '1:30' HOUR TO MINUTE
INTERVAL -3 YEAR
INTERVAL 90 SECOND
""")

CASTS = lines(r"""
tinyint
smallint
int
bigint
float
double
decimal(10,2)
decimal(38,18)
decimal(3,1)
decimal(38,0)
string
boolean
binary
date
timestamp
timestamp_ntz
array<int>
array<string>
array<double>
map<string,string>
map<int,string>
struct<p:bigint,q:string>
struct<a:string,b:int>
array<struct<p:string,q:int>>
array<array<string>>
""")

LAMBDAS = lines(r"""
transform({0}, e -> e)
transform({0}, e -> e + 1)
transform({0}, (e, n) -> n)
transform({0}, e -> concat(e, {1}))
filter({0}, e -> e > 1)
filter({0}, e -> e IS NOT NULL)
filter({0}, e -> {1})
exists({0}, e -> e = {1})
exists({0}, e -> e > 1)
forall({0}, e -> e = {1})
forall({0}, e -> e)
aggregate({0}, 0, (n, e) -> n + e)
aggregate({0}, {1}, (n, e) -> n + e)
aggregate({0}, 0L, (n, e) -> n + e, n -> n * 2)
reduce({0}, '', (n, e) -> concat(n, e))
zip_with({0}, {1}, (e, n) -> e + n)
zip_with({0}, {1}, (e, n) -> e)
map_filter({0}, (k, e) -> e > 1)
map_filter({0}, (k, e) -> k = {1})
transform_values({0}, (k, e) -> e)
transform_values({0}, (k, e) -> concat(k, e))
transform({0}, e -> e[0])
transform({0}, e -> {1})
transform(array({0}), e -> e = {1})
filter(array({0}, {1}), e -> e = {0})
aggregate({0}, {1}, (n, e) -> coalesce(n, e))
""")

TRIPLES = lines(r"""
CASE WHEN {0} THEN {1} ELSE {2} END
CASE {0} WHEN {1} THEN 1 WHEN {2} THEN 2 END
CASE WHEN p THEN {0} WHEN NOT p THEN {1} ELSE {2} END
{0} IN ({1}, {2})
{0} NOT IN ({1}, {2})
{0} BETWEEN {1} AND {2}
{0} NOT BETWEEN {1} AND {2}
coalesce({0}, {1}, {2})
greatest({0}, {1}, {2})
least({0}, {1}, {2})
if({0}, {1}, {2})
array({0}, {1}, {2})
concat({0}, {1}, {2})
struct({0}, {1}, {2})
map({0}, {1}, {0}, {2})
concat_ws({0}, {1}, {2})
({0} + {1}) * {2}
({0} - {1}) = {2}
({0} * {1}) / {2}
{0} + {1} < {2}
nvl2({0}, {1}, {2})
elt({0}, {1}, {2})
named_struct('a', {0}, 'b', {1}, 'c', {2})
{0} || {1} || {2}
""")

PAIRS = lines(r"""
{0} IN ({1})
{0} IN ({1}, NULL)
{0} IS DISTINCT FROM {1}
{0} LIKE {1}
{0} NOT LIKE {1}
{0} ILIKE {1}
{0} RLIKE {1}
({0})[{1}]
array({0}, {1})
map({0}, {1})
struct({0}, {1})
nullif({0}, {1})
if(p, {0}, {1})
CASE WHEN {0} THEN {1} END
CASE {0} WHEN {1} THEN 1 ELSE 0 END
{0} = -{1}
cast({0} AS string) || {1}
array({0}) = array({1})
array({0})[{1}]
array_contains(array({0}), {1})
map({0}, 1)[{1}]
{0} LIKE '%' ESCAPE {1}
struct({0}) = struct({1})
least(array({0}), array({1}))
try_add({0}, {1}) IS NULL
-({0} + {1})
concat({0}, {1}) = {1}
({0} + {1}) - {0}
({0} / {1}) * {1}
substring({0} FROM {1})
position({0} IN {1})
trim({0} FROM {1})
trim(LEADING {0} FROM {1})
overlay({0} PLACING {1} FROM 2)
NOT {0} = {1}
""")

SINGLES = lines(r"""
{0}
-{0}
+{0}
~{0}
NOT {0}
{0} IS NULL
{0} IS NOT NULL
{0} IS TRUE
{0} IS NOT FALSE
{0} IS UNKNOWN
array({0})
struct({0})
map({0}, {0})
({0}).p
({0}).q
({0})['p']
-(-{0})
NOT NOT {0}
{0} IN ({0})
{0} = {0}
{0} <=> {0}
{0}[0]
{0}['a']
{0}[1]
{0}[-1]
CASE WHEN {0} THEN 1 END
if({0}, 1, 2)
{0} AND true
{0} OR false
{0} LIKE 'a%'
{0} LIKE '\\_b'
{0} RLIKE '^a.c$'
{0} LIKE NULL
{0} IN (NULL)
coalesce({0})
concat({0})
greatest({0})
concat_ws(',', {0}, 'x')
""")
