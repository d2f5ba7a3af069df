"""Forms with NULLs without a type, shifts by the value of a column, text beside intervals, and bytes that are
filled up."""

from __future__ import annotations

from spark_cases import NUMBERS, TEXT, TIMES, Family, lines

UNTYPED = lines(r"""
pmod(NULL, 3)
pmod(i, NULL)
pmod(NULL, NULL)
pmod(NULL, 1.5)
try_mod(NULL, l)
try_mod(i, NULL)
try_add(1, NULL)
try_add(NULL, NULL)
try_add(d, NULL)
try_add(NULL, current_date)
typeof(try_subtract(current_date, NULL))
try_subtract(NULL, x)
try_multiply(l, NULL)
try_divide(NULL, NULL)
try_divide(1.5, NULL)
typeof(try_divide(INTERVAL 1 DAY, NULL))
typeof(try_multiply(NULL, INTERVAL 1 DAY))
~NULL
NULL << 1
i << NULL
l >> NULL
NULL >>> i
NULL & NULL
NULL & a
bit_get(NULL, 0)
bit_get(i, NULL)
bit_count(NULL)
round(d, NULL)
round(i, NULL)
bround(x, NULL)
round(NULL, NULL)
ceil(NULL, 3)
floor(NULL, 3)
nanvl(NULL, NULL)
greatest(NULL, NULL)
least(NULL, NULL)
sequence(1, NULL)
sequence(NULL, l)
sequence(1, i, NULL)
sequence(NULL, NULL)
sequence(1, 1000000000000)
sequence(CAST(-9223372036854775808 AS BIGINT), 9223372036854775807, 2)
current_date + NULL
NULL + TIMESTAMP_NTZ '2020-01-01 00:00:00'
typeof(DATE '2020-01-01' - NULL)
typeof(NULL - TIMESTAMP '2020-01-01 00:00:00')
typeof(NULL + INTERVAL 1 DAY)
typeof(INTERVAL '1-2' YEAR TO MONTH - NULL)
timestamp_seconds(NULL)
timestamp_millis(NULL)
timestamp_micros(NULL)
array_position(array(1), NULL)
array_position(NULL, 1)
array_remove(array(1), NULL)
array_append(array(1), NULL)
array_insert(array(1, 2), 5, NULL)
array_insert(array(1, 2), NULL, 5)
array_join(NULL, ',')
array_join(array('a', NULL), ',', NULL)
array_contains(NULL, 2)
array_max(NULL)
array_distinct(NULL)
array_size(NULL)
size(NULL)
cardinality(NULL)
slice(NULL, 1, 2)
sort_array(NULL)
sort_array(array('b', 'a'), NULL)
map_keys(NULL)
map_values(NULL)
map_concat(map(1, 2), NULL)
map_contains_key(map(1, 2), NULL)
concat(NULL, array(1))
reverse(NULL)
NULL[0]
NULL['a']
to_json(NULL)
to_csv(NULL)
schema_of_json(NULL)
to_char(NULL, '9')
to_char(i, NULL)
to_date('2020-01-01', NULL)
to_timestamp_ntz('2020-01-01', NULL)
try_to_timestamp(NULL, NULL)
unix_timestamp('2020-01-01', NULL)
from_unixtime(i, NULL)
date_part(NULL, current_date)
date_trunc(NULL, current_date)
trunc(current_date, NULL)
next_day(current_date, NULL)
to_utc_timestamp(current_timestamp, NULL)
convert_timezone(NULL, TIMESTAMP_NTZ '2020-01-01 00:00:00')
str_to_map('a:1', NULL)
encode('a', NULL)
decode(X'41', NULL)
to_binary('ab', NULL)
bitmap_count(NULL)
NULL div NULL
dateadd(DAY, NULL, current_date)
arrays_zip(NULL, array(1))
""")
SHIFTS = lines(r"""
1 << i
1L << i
i << j
l << j
l >> j
-l >> i
i >> a
s >> 2.5
i >>> j
l >>> j
shiftright(i, j)
shiftrightunsigned(l, 70)
shiftleft(i, l)
""")
TEXTS = lines(r"""
lpad(b, 3)
rpad(b, n)
lpad(b, 5, X'2A2B')
rpad(b, n, b)
lpad(b, n, X'')
lpad(s, n, t)
rpad(s, 7, '')
'2024-01-05' - INTERVAL 3 DAYS
INTERVAL '1 02:03:04' DAY TO SECOND + '2024-01-05'
'2024-01-05 10:00:00' + INTERVAL 90 MINUTES
'2024-01-31' + make_interval(0, 1)
'x' + INTERVAL 1 DAY
'2024-01-05' + INTERVAL 1 MONTH
INTERVAL 1 DAY - '2024-01-05'
typeof('2024-01-05' - DATE '2024-01-01')
try_add('2024-01-05', INTERVAL 1 DAY)
""")
SEQUENCES = lines(r"""
sequence(TIMESTAMP '1999-01-01 00:00:00', TIMESTAMP '9999-01-01 00:00:00', INTERVAL 1 MILLISECOND)
sequence(TIMESTAMP_NTZ '1999-01-01 00:00:00', TIMESTAMP_NTZ '9999-01-01 00:00:00', INTERVAL 1 SECOND)
'2024-03-09 12:00:00' + INTERVAL 1 DAY
'2024-03-09 12:00:00' + INTERVAL 24 HOURS
CAST(d AS STRING) - INTERVAL '1 02' DAY TO HOUR
typeof(CAST(d AS STRING) - t)
CAST(t AS STRING) - t = INTERVAL 0 SECONDS
""")
NULL_FAMILIES = (
    Family("untyped_nulls", NUMBERS, (*UNTYPED, *SHIFTS)),
    Family("filled", TEXT, TEXTS),
    Family("moved_text", TIMES, SEQUENCES, ("America/New_York",)),
)
