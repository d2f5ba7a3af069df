"""Expressions that another engine evaluates differently if only their names are translated.

Spark's results are recorded; each expression has the same result here, or is refused under its name
(`REFUSED`).
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
from spark_cases import Family, lines

_UTC = dt.timezone.utc

ROWS = pa.table(
    {
        "k": pa.array([7, -7, None, 1000000, 0], pa.int32()),
        "v": pa.array([2.5, -1.5, None, 1e20, 0.0], pa.float64()),
        "d": pa.array(
            [Decimal(n) if n else None for n in ("12.00", "-7.55", None, "99999999.99", "0.01")],
            pa.decimal128(10, 2),
        ),
        "e": pa.array(
            [Decimal(n) if n else None for n in ("7.00", "3.00", "1.00", None, "0.00")], pa.decimal128(10, 2)
        ),
        "s": pa.array(["Ångström", "x yz", None, "İstanbul", ""], pa.string()),
        "q": pa.array(["2", "2.5", None, "two", "1e3"], pa.string()),
        "a": pa.array(
            [dt.date(2023, 7, 15), dt.date(2024, 2, 29), None, dt.date(1582, 10, 15), dt.date(1400, 1, 1)],
            pa.date32(),
        ),
        "m": pa.array(
            [
                dt.datetime(2023, 7, 16, 1, 2, 3, 250000, tzinfo=_UTC),
                dt.datetime(2024, 11, 3, 5, 59, 59, tzinfo=_UTC),
                None,
                dt.datetime(1969, 7, 20, 20, 17, 40, tzinfo=_UTC),
                dt.datetime(1400, 1, 1, tzinfo=_UTC),
            ],
            pa.timestamp("us", "UTC"),
        ),
        "n": pa.array(
            [
                dt.datetime(2023, 7, 15, 21, 2, 3),
                dt.datetime(2024, 3, 10, 2, 30),
                None,
                dt.datetime(1969, 7, 20),
                dt.datetime(1400, 1, 1),
            ],
            pa.timestamp("us"),
        ),
        "b": pa.array([b"\x00\xff", b"", None, b"abc", b"\xc3\xa9"], pa.binary()),
        "l": pa.array([[4, 5, 6], [], None, [None, 9], [9]], pa.list_(pa.int32())),
    }
)

# Decimals divide to Spark's scale, casts truncate or fail, positions and weekdays count as in Spark, and
# times use the session's clock.
FORMS = lines("""
d / e
e / 7
d / 0.25
cast(7.5 AS int)
cast(-2.5 AS int)
cast(3.5 AS bigint)
cast(v AS int)
cast(v AS bigint)
cast(v AS string)
cast(2e21 AS string)
cast(m AS string)
cast(n AS string)
cast('2023-07-15 01:02:03' AS timestamp)
cast('2024-11-03 01:30:00' AS timestamp)
substring(s, 0, 3)
substr(s, -3, 2)
upper(s)
lower(s)
upper('groß')
lower('ΑΣ')
date_add(a, 30)
date_sub(a, 30)
(a - DATE'2023-01-01') = INTERVAL 195 DAY
a - DATE'2023-01-01'
dayofweek(a)
weekday(a)
date_trunc('week', m)
date_trunc('month', m)
date_trunc('quarter', m)
to_timestamp('2023-07-15 05', 'yyyy-MM-dd HH')
m + INTERVAL 2 DAY
m + INTERVAL '3' MONTH
n + INTERVAL 36 HOUR
(m - TIMESTAMP'2023-07-14 00:00:00') > INTERVAL 1 DAY
m - TIMESTAMP'2023-07-14 00:00:00'
extract(dow FROM a)
extract(dow FROM m)
hash(k)
ln(v)
ln(0.0D)
log10(0.0D)
format_string('%04d', k)
url_encode(s)
date_from_unix_date(k)
cast(n AS timestamp)
cast(m AS timestamp_ntz)
to_utc_timestamp(m, 'Asia/Kolkata')
from_utc_timestamp(m, 'Asia/Kolkata')
cast(a AS timestamp)
cast(DATE'1400-01-01' AS timestamp)
cast(-2 AS timestamp)
cast(k AS timestamp)
cast(m AS bigint)
cast(m AS double)
sum(k) OVER ()
cast('2.5' AS int)
cast(q AS int)
cast(q AS double)
cast('xyz' AS int)
cast('2e3' AS int)
cast('' AS bigint)
cast(200 AS tinyint)
cast(k AS smallint)
NOT k
2 / 0
k / 0
2.0D / 0
k / 0.0
k % 0
l[5]
l[k]
l[0]
cast(98765.4 AS decimal(4,1))
cast(d AS decimal(5,2))
bround(v)
bround(3.5)
length(b)
trunc(a, 'MM')
trunc(a, 'year')
unix_timestamp(m)
to_unix_timestamp(m)
unix_timestamp('2023-07-15 00:00:00')
timestamp_seconds(k)
timestamp_seconds(12)
exists(l, x -> x > 4)
crc32(s)
xxhash64(s)
pmod(k, 3)
pmod(-8, 3)
width_bucket(v, 0, 10, 5)
soundex(s)
format_number(v, 2)
'2' + k
q + 1
bigint(k)
bigint(q)
from_json('{"k":1}', 'k int')
parse_url('http://a.b/c?d=e', 'HOST')
monotonically_increasing_id()
e()
zip_with(l, l, (x, y) -> x * y)
arrays_overlap(l, array(9, NULL))
mask(s)
nanvl(v, 1)
nanvl(double('NaN'), v)
to_number('34', '99')
stack(1, k)
btrim('  x ')
btrim(s, 'Åm')
str_to_map('k:1,v')
str_to_map(s)
""")

REFUSED = frozenset({"monotonically_increasing_id()"})

TRANSPILATION = Family("transpilation", ROWS, FORMS, ("UTC", "America/New_York"))
