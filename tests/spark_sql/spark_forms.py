"""The expressions of each family; rows are in spark_cases.py."""

from __future__ import annotations

from function_forms import FUNCTION_FAMILIES
from null_forms import NULL_FAMILIES
from spark_cases import NESTED, NUMBERS, TEXT, TIMES, Family, lines
from text_forms import TEXT_FAMILIES
from variant_forms import VARIANT_FAMILIES

_BOTH = ("UTC", "America/New_York")

ARITHMETIC = lines("""
a + a
s + s
i + j
l + m
f + f
x + y
a + i
i + l
s * a
i + x
f + x
f + i
i - j
l - m
x - y
i * j
l * m
x * y
i / j
l / m
x / y
f / f
i / 4
i / 0
i % j
l % m
x % y
s % a
i % 3
l % -1
i div j
l div m
i div 3
mod(i, j)
-i
-l
-x
-f
-a
+i
abs(i)
abs(x)
abs(l)
abs(d)
abs(f)
i & j
i | j
i ^ j
~i
l & m
a | i
~l
shiftleft(i, 3)
shiftright(i, 1)
shiftrightunsigned(i, 1)
shiftleft(l, 33)
shiftright(l, 40)
i << 2
i >> 33
bit_count(i)
bit_count(l)
pmod(i, j)
pmod(l, m)
pmod(x, y)
pmod(i, 3)
sign(i)
sign(x)
signum(l)
sign(d)
ceil(x)
floor(x)
ceil(i)
floor(l)
ceiling(d)
floor(d)
ceil(h)
floor(f)
round(x)
round(y, 1)
round(i, -1)
round(d)
round(d, 1)
round(h, 2)
round(l, -2)
round(f, 1)
bround(x)
bround(d, 1)
bround(h, 2)
rint(x)
sqrt(y)
sqrt(i)
exp(y)
expm1(y)
ln(y)
log(y)
log10(y)
log2(y)
log1p(y)
log(2, y)
power(y, 2)
pow(2, i)
power(x, y)
cbrt(27.0D)
sin(y)
cos(y)
tan(y)
asin(y)
acos(y)
atan(y)
atan2(y, 1)
sinh(y)
cosh(y)
tanh(y)
degrees(y)
radians(y)
e()
pi()
cot(y)
factorial(a)
greatest(i, j)
least(i, j)
greatest(x, y)
least(x, y)
greatest(i, l, 5)
least(d, e)
greatest(a, x)
try_add(i, j)
try_add(l, m)
try_subtract(i, j)
try_multiply(l, m)
try_multiply(i, j)
try_divide(i, j)
try_divide(x, y)
try_mod(i, j)
try_add(x, y)
bin(i)
hex(i)
hex(l)
bin(l)
positive(i)
negative(i)
""")

DECIMALS = lines("""
d + e
d - e
d * e
d / e
d % e
-d
d + i
d * 2
2 * d
d / 3
d / i
i / d
d + 1.5
d + x
x * d
d + l
g + g
g - 1
g * 2
g % 7
h * h
h + d
h / d
d / h
w + w
w + 1
w - d
w * 2
d div e
d = e
d < e
d > 1
d >= h
g = 5
g > l
d = x
w > d
d = 1.25
d <=> e
d in (1.25, 3, 0.01)
d between 0 and 2.5
mod(d, e)
try_add(d, e)
try_divide(d, e)
try_multiply(d, e)
round(w, 3)
floor(w)
ceil(w)
coalesce(d, h)
if(i > 0, d, h)
greatest(d, h)
1.5 + 2.25
1.5 * i
10 / 4.0
1e3 + d
123456789012345678901234567890
d = 'abc'
d = '1.25'
""")

CASTS = lines("""
cast(a as short)
cast(a as bigint)
cast(i as tinyint)
cast(i as smallint)
cast(l as int)
cast(l as tinyint)
cast(i as bigint)
cast(l as float)
cast(l as double)
cast(i as float)
cast(x as int)
cast(x as bigint)
cast(y as tinyint)
cast(f as int)
cast(x as float)
cast(f as double)
cast(d as int)
cast(g as bigint)
cast(h as tinyint)
cast(d as double)
cast(w as double)
cast(d as float)
cast(w as float)
cast(i as decimal(10,2))
cast(i as decimal(5,2))
cast(l as decimal(20,0))
cast(l as decimal(10,0))
cast(x as decimal(10,2))
cast(y as decimal(38,18))
cast(f as decimal(20,10))
cast(d as decimal(10,1))
cast(d as decimal(5,2))
cast(d as decimal(20,5))
cast(w as decimal(38,2))
cast(g as decimal(10,0))
cast(i as string)
cast(l as string)
cast(a as string)
cast(x as string)
cast(y as string)
cast(f as string)
cast(d as string)
cast(h as string)
cast(w as string)
cast(p as string)
cast(p as int)
cast(p as double)
cast(p as decimal(3,1))
cast(i as boolean)
cast(x as boolean)
cast(d as boolean)
cast(null as int)
cast(1.5 as int)
cast(2.5 as int)
cast(-1.5 as int)
cast(1e20 as string)
cast(300 as tinyint)
cast(123456.7 as decimal(5,2))
try_cast(l as int)
try_cast(x as int)
try_cast(x as bigint)
try_cast(i as tinyint)
try_cast(d as decimal(5,2))
try_cast(y as decimal(5,2))
int(l)
bigint(i)
double(i)
float(i)
string(i)
smallint(i)
tinyint(i)
decimal(i)
boolean(i)
i::string
x::int
cast(1.0E-5 as string)
cast(123456789.125D as string)
cast(0.001D as string)
cast(1.0E7D as string)
cast(100000 as string)
cast(3.0F as string)
cast(1.1F as double)
cast(-0.0D as string)
cast(0.1F as decimal(20,18))
""")

COMPARISONS = lines("""
i = j
i == j
i <> j
i != j
i < j
i <= j
i > j
i >= j
i <=> j
x = y
x < y
x > y
x <=> y
x = x
not (x > y)
f = x
i = x
a < i
l = i
l > f
i between -10 and 10
i not between j and 100
i in (10, 25, 3)
i in (10, null)
i not in (10, null)
a in (1, 300)
x in (2.5D, 0.0D)
i is null
i is not null
isnull(i)
isnotnull(x)
i is distinct from j
i is not distinct from j
isnan(x)
isnan(f)
nanvl(x, y)
p
not p
p and i > 0
p or i > 0
p = true
p is true
p is not true
p is false
p and null
p or null
p = 'true'
i = '10'
i > '5'
x = '2.5'
i > 9 and 10 / j > 1
j <> 0 and i / j > 1
j = 0 or i / j > 1
if(j = 0, 0, i / j) > 1
case when j = 0 then null else i / j end
coalesce(i, 1 / 0)
coalesce(i, j, 0)
coalesce(null, i)
nvl(i, j)
ifnull(i, l)
nvl2(i, 'a', 'b')
nullif(i, j)
nullif(i, 10)
if(p, i, l)
if(i > 0, 'pos', 'neg')
case when i > 0 then 'a' when i < 0 then 'b' end
case i when 10 then 'ten' when 25 then 'many' else 'other' end
case when p then i else x end
case when p then 1 else 2.5 end
iff(p, 1, 2)
greatest(i, null, 3)
least(null, i)
zeroifnull(i)
nullifzero(i)
equal_null(i, j)
i + 2147483647 > 0
i * 2 > i
raise_error('bad')
assert_true(i > 0 or i <= 0)
i = 10 and assert_true(true) is null
""")

STRINGS = lines(r"""
upper(s)
lower(s)
ucase(t)
lcase(w)
length(s)
char_length(s)
character_length(s)
len(t)
binary(s)
ilike(s, 'A%')
rlike(s, 'b+')
regexp(s, '^a')
length(b)
octet_length(s)
bit_length(s)
concat(s, t)
s || t || 'x'
concat(s)
concat(s, 1, true)
concat_ws('-', s, t, w)
concat_ws(',', s)
substring(s, 2, 3)
substring(s, 0, 2)
substring(s, -3, 2)
substring(s, -10, 9)
substr(s, 2)
substring(s, n, 2)
substring(s, 1, n)
substring(s from 2 for 2)
left(s, 2)
right(s, 2)
left(s, n)
right(s, n)
trim(s)
ltrim(s)
rtrim(s)
btrim(s)
trim('a' from s)
trim(both ' H' from s)
trim(leading 'a' from s)
trim(trailing ',' from s)
btrim(s, 'ac')
ltrim('a', s)
rtrim('c', s)
lpad(s, 5, '*')
rpad(s, 5, 'xy')
lpad(s, 2, ' ')
rpad(s, n, '-')
lpad(s, 6)
replace(s, 'a', 'XX')
replace(s, t, '-')
replace(s, 'a')
translate(s, 'abc', 'xy')
translate(s, 'lo', '01')
instr(s, t)
locate(t, s)
locate('a', s, 2)
position(t, s)
charindex(t, s)
s like '%a%'
s like 'a_c'
w like 'x\\_y\\%z'
w like '100!%' escape '!'
w not like 'a%'
w ilike 'APPLE%'
s ilike '%STRASSE%'
like(s, 'a%')
w like '%\nb%'
s rlike '^a.c$'
s rlike '[a-c]+'
regexp_like(w, 'x.y')
w rlike '\\d+%'
s regexp 'l{2}'
regexp_extract(w, '(\\w+) (\\w+)', 2)
regexp_extract(w, '([a-z]+)')
regexp_extract(s, '(x)?abc', 1)
regexp_replace(w, '[aeiou]', '_')
regexp_replace(w, '(\\w)e', '<$1>')
split(s, ',')
split(w, ' ')
split(w, '\\.')
split_part(s, ',', 2)
split_part(s, ',', -1)
split_part(s, 'zz', 1)
substring_index(s, ',', 2)
substring_index(s, ',', -1)
repeat(s, 2)
repeat(s, n)
reverse(s)
initcap(w)
initcap(s)
startswith(s, 'a')
endswith(s, 'c')
contains(s, t)
startswith(s, t)
ascii(s)
chr(65)
char(n + 64)
chr(n)
hex(s)
hex(b)
unhex('4D')
unhex('ABC')
base64(b)
md5(s)
md5(b)
sha1(s)
sha(b)
sha2(s, 256)
sha2(s, 0)
levenshtein(s, t)
levenshtein(s, 'abd')
space(3)
space(n)
overlay(s, 'XX', 2)
encode(s, 'utf-8')
decode(encode(s, 'utf-8'), 'utf-8')
find_in_set(t, 'b,a,x')
elt(2, s, t)
nullif(s, '')
s = t
s < t
s > 'a'
s in ('abc', 'aaa')
s between 'a' and 'b'
s <=> t
s is null
coalesce(s, t)
greatest(s, t)
least(s, t, 'm')
if(s = '', null, s)
nvl2(s, t, w)
b = X'616263'
b < X'68'
cast(s as binary)
cast(s as string)
cast(cast(s as binary) as string)
cast(u as int)
cast(u as bigint)
cast(u as tinyint)
cast(u as double)
cast(u as decimal(10,2))
cast(u as boolean)
cast(v as boolean)
cast(k as double)
cast(k as float)
cast(k as decimal(10,2))
cast(k as decimal(4,2))
cast(k as int)
try_cast(u as int)
try_cast(u as double)
try_cast(v as boolean)
try_cast(k as decimal(4,2))
try_cast(u as decimal(10,2))
u + 1
u * 2
u = 12
u > 5
u / 2
'5' + 1
'5' * '2'
- u
cast('' as int)
cast('1e3' as int)
cast('Infinity' as float)
'a' 'b'
'O''Neil'
"say ""x"" twice"
"it's"
'O\'Neil'
r'a\nb'
'\u00e9'
s || n
s || 1.5D
cast(n as string) || s
concat(w, null)
char_length(trim(s))
upper('straße')
lower('İ')
string(n)
array_join(split(s, ','), '|')
nvl(t, 'none')
empty2null(s)
""")

TIMES_FORMS = lines("""
date_add(d, 1)
date_add(d, n)
date_sub(d, 1)
date_sub(d, n)
d + 1
d - 1
1 + d
datediff(d, c)
date_diff(d, c)
datediff(t, c)
d - c = interval 1 day
d + interval 1 day
d - interval 2 days
d + interval 1 month
d - interval 1 year
d + interval '1-2' year to month
d + interval 1 hour
d + interval 1 week
t + interval 1 day
t - interval 1 day
t + interval 36 hours
t + interval 1 month
t - interval 3 months
t + interval '1 02:03:04.5' day to second
t + interval 90 minutes
z + interval 1 day
z - interval 1 month
z + interval '10' minute
t - r > interval 1 day
r + (t - r)
z - z = interval 0 seconds
t - interval 1 second < t
c + (d - c)
interval 1 day + interval 2 hours > interval 25 hours
t + 2 * interval 1 hour
add_months(d, 1)
add_months(d, n)
add_months(d, -13)
months_between(d, c)
months_between(t, r)
months_between(t, r, false)
months_between(d, c, n > 0)
last_day(d)
last_day(c)
next_day(d, 'MO')
next_day(d, 'Sunday')
year(d)
month(d)
day(d)
dayofmonth(d)
quarter(d)
dayofweek(d)
weekday(d)
dayofyear(d)
weekofyear(d)
year(t)
month(t)
day(t)
hour(t)
minute(t)
second(t)
hour(z)
minute(z)
second(z)
weekofyear(t)
dayofweek(t)
quarter(t)
extract(year from d)
extract(month from t)
extract(day from t)
extract(hour from t)
extract(minute from t)
extract(second from t)
extract(week from d)
extract(dow from d)
extract(dayofweek_iso from d)
extract(doy from d)
extract(quarter from d)
extract(yearofweek from d)
date_part('year', t)
datepart('month', d)
date_part('second', t)
trunc(d, 'YEAR')
trunc(d, 'MM')
trunc(d, 'week')
trunc(d, 'quarter')
trunc(t, 'month')
date_trunc('YEAR', t)
date_trunc('QUARTER', t)
date_trunc('MONTH', t)
date_trunc('WEEK', t)
date_trunc('DAY', t)
date_trunc('HOUR', t)
date_trunc('MINUTE', t)
date_trunc('SECOND', t)
date_trunc('MILLISECOND', t)
date_trunc('MONTH', d)
to_date(u)
to_date(v)
to_date('2024-06-01', 'yyyy-MM-dd')
to_date('20240601', 'yyyyMMdd')
to_date('01/06/2024', 'dd/MM/yyyy')
to_timestamp(u)
to_timestamp('2024-06-01 01', 'yyyy-MM-dd HH')
to_timestamp('2024-06-01 10:11:12', 'yyyy-MM-dd HH:mm:ss')
to_timestamp('06/01/2024 10:11', 'MM/dd/yyyy HH:mm')
date(v)
date(t)
timestamp(d)
date_format(t, 'yyyy-MM-dd')
date_format(t, 'yyyy-MM-dd HH:mm:ss')
date_format(d, 'yyyyMMdd')
date_format(t, 'dd/MM/yy')
date_format(t, 'HH:mm:ss.SSS')
date_format(t, 'yyyy')
date_format(d, 'MM')
date_format(t, 'EEEE, MMM d')
date_format(t, 'h:mm a')
unix_timestamp(t)
unix_timestamp(d)
to_unix_timestamp(t)
unix_timestamp('2024-06-01 10:11:12', 'yyyy-MM-dd HH:mm:ss')
from_unixtime(l)
from_unixtime(0)
from_unixtime(l, 'yyyy-MM-dd')
timestamp_seconds(l)
timestamp_millis(l)
timestamp_micros(l)
timestamp_seconds(x)
unix_seconds(t)
unix_millis(t)
unix_micros(t)
unix_date(d)
date_from_unix_date(n)
make_date(y, o, q)
make_timestamp(y, o, q, 1, 2, 3.5)
make_timestamp_ntz(y, o, q, 1, 2, 3.5)
to_utc_timestamp(t, 'Asia/Tokyo')
from_utc_timestamp(t, 'America/New_York')
cast(d as timestamp)
cast(d as timestamp_ntz)
cast(t as date)
cast(t as timestamp_ntz)
cast(z as timestamp)
cast(z as date)
cast(d as string)
cast(t as string)
cast(z as string)
cast(u as date)
cast(u as timestamp)
cast(u as timestamp_ntz)
cast(v as date)
cast(v as timestamp)
try_cast(u as date)
try_cast(u as timestamp)
try_cast(v as timestamp)
cast(t as bigint)
cast(t as double)
cast(t as int)
cast(t as decimal(20,6))
cast(l as timestamp)
cast(x as timestamp)
cast(-1 as timestamp)
d = c
d < c
d > '2024-01-01'
d = date '2024-06-01'
t > timestamp '2024-01-01 00:00:00'
t >= '2024-03-10 02:30:00'
t < r
t > d
z > d
z = t
t = timestamp '2024-11-03 01:30:00'
z < timestamp_ntz '2024-01-01 00:00:00'
d in (date '2024-06-01', '2024-02-29')
d between '2024-01-01' and '2024-12-31'
t between c and d
d is null
coalesce(d, c)
coalesce(t, d)
greatest(d, c)
least(t, r)
if(d > c, d, c)
case when d is null then t else r end
date '2024-02-29' + interval 1 year
timestamp '2024-01-01 00:00:00Z'
timestampadd(hour, 5, t)
timestampadd(month, 1, t)
timestampadd(day, n, t)
dateadd(day, 3, d)
timestampdiff(day, r, t)
timestampdiff(hour, r, t)
timestampdiff(month, r, t)
datediff(day, c, d)
date_format(z, 'yyyy-MM-dd HH:mm')
dayname(d)
monthname(d)
hour('2024-06-01 10:11:12')
year('2024-06-01')
date_add('2024-06-01', 1)
datediff('2024-06-05', d)
date_from_unix_date(0)
""")

COLLECTIONS = lines("""
a[0]
a[i]
a[2]
s[1]
element_at(a, 1)
element_at(a, -1)
element_at(a, i)
try_element_at(a, i)
get(a, i)
size(a)
cardinality(a)
array_size(a)
size(m)
cardinality(m)
array_contains(a, 1)
array_contains(s, k)
array_contains(a, i)
sort_array(a)
sort_array(a, false)
sort_array(x)
array_sort(a)
array_distinct(a)
array_distinct(s)
array_position(a, 1)
array_position(s, 'a')
array_remove(a, 1)
array_min(a)
array_max(a)
array_max(x)
array_min(s)
slice(a, 1, 2)
slice(a, -2, 2)
slice(a, i, 1)
concat(a, b)
a || b
flatten(c)
array_join(s, ',')
array_join(s, ',', 'null')
reverse(a)
array_repeat('x', 2)
array_repeat(i, 3)
array_union(a, b)
array_intersect(a, b)
array_except(a, b)
arrays_overlap(a, b)
array_append(a, 9)
array_prepend(a, 9)
array_compact(a)
sequence(1, 5)
sequence(1, i)
sequence(5, 1, -2)
array(1, 2, 3)
array(i, 1)
array(1, 2.5, null)
array('a', k)
array(1, 2)[1]
transform(a, v -> v + 1)
transform(a, (v, j) -> v + j)
transform(s, v -> upper(v))
transform(a, v -> v + i)
filter(a, v -> v > 1)
filter(s, v -> v is not null)
exists(a, v -> v > 2)
exists(a, v -> v is null)
forall(a, v -> v > 0)
aggregate(a, 0, (acc, v) -> acc + v)
aggregate(a, 0, (acc, v) -> acc + coalesce(v, 0))
aggregate(a, 0L, (acc, v) -> acc + coalesce(v, 0), acc -> acc * 2)
reduce(s, '', (acc, v) -> acc || coalesce(v, '-'))
zip_with(a, b, (p, q) -> p + q)
r.p
r.q
R.P
r.p + 1
struct(i, k)
struct(i as one, k as two)
struct(i, k).k
named_struct('x', i, 'y', r.q)
named_struct('x', i).x
r = o
r <=> o
r is null
z.p
z.q
z[0].p
m['a']
m[k]
n[1]
element_at(m, 'a')
element_at(m, k)
element_at(n, i)
map_keys(m)
map_values(m)
map_contains_key(m, 'a')
map_contains_key(m, k)
map('a', 1, 'b', i)
map('a', i)['a']
map_from_arrays(array('x', 'y'), array(1, i))
map_entries(m)
map_concat(m, map('zz', 1))
map_filter(n, (kk, vv) -> kk > 0)
transform_values(n, (kk, vv) -> length(vv))
a = b
a <=> b
a = array(5)
s in (array('x', 'y'), array(''))
cast(a as array<bigint>)
cast(a as array<string>)
cast(a as array<tinyint>)
cast(r as struct<p:bigint,q:string>)
cast(m as map<string,bigint>)
cast(c as array<array<string>>)
coalesce(a, b)
coalesce(r, o)
if(i > 0, a, b)
case when i = 1 then m else map('q', 1) end
size(split('a,b,c', ','))
nullif(a, b)
a[0] + b[0]
transform(z, v -> v.p)
filter(z, v -> v.p > 1)
str_to_map('a:1,b:2')
map_from_entries(array(struct('x', 1), struct('y', 2)))
""")

FAMILIES = (
    Family("arithmetic", NUMBERS, ARITHMETIC),
    Family("decimals", NUMBERS, DECIMALS),
    Family("casts", NUMBERS, CASTS),
    Family("comparisons", NUMBERS, COMPARISONS),
    Family("strings", TEXT, STRINGS),
    Family("times", TIMES, TIMES_FORMS, _BOTH),
    Family("collections", NESTED, COLLECTIONS),
    *FUNCTION_FAMILIES,
    *NULL_FAMILIES,
    *TEXT_FAMILIES,
    *VARIANT_FAMILIES,
)
