"""Forms of functions that kernels compute, and of similar functions. Rows are in spark_cases.py; those of
JSON and URLs are here."""

from __future__ import annotations

import pyarrow as pa
from spark_cases import NESTED, NUMBERS, TEXT, TIMES, Family, lines

_BOTH = ("UTC", "America/New_York")

DOCUMENTS = pa.table(
    {
        "j": pa.array(
            [
                '{"a":1,"b":"x\\"y","c":[1,2,{"d":null}],"e":{"f":1.50,"g":[{"h":"p"},{"h":"q"}]}}',
                (
                    '{"a":-0,"a":2,"b":"\\u00e9\\ud83d\\ude00\\n/","c":[],"e":{}, "i": 1e3,'
                    ' "k":123456789012345678901234567890}'
                ),
                None,
                '[1, [2, 3], {"a": "b"}, null, "x"]',
                "{bad json",
                "",
                '"text"',
                ' {"a" : [ [1,2],[3,[4]] ], "b": true, "e": null, "c": [{"d":[1,2]},{"d":[3]}] } trailing',
                '{"a":1',
                "12.5",
                "{'a':1}",
                '{"a b":{"c.d":"z"},"":0,"a":"1"}',
            ]
        ),
        "u": pa.array(
            [
                "http://user:pw@spark.apache.org:8080/path/p.php?query=1&b=%20x#Ref",
                "https://example.com",
                None,
                "ftp://a_b/c?d",
                "mailto:x@y.z",
                "not a url",
                "/relative/path?k=v&k=w",
                "http://[::1]:80/?a=b=c",
                "http://ex.com/a%2Fb?x&y=",
                "inva lid://x",
                "http://1.2.3.4/ü?q=ä",
                "",
            ]
        ),
        "w": pa.array(
            [
                "a b&c=d/ü",
                "%41%zz",
                None,
                "x+y%20z",
                "~!*()'",
                "100%",
                "",
                "%C3%A9",
                "+",
                "A-Z_.*",
                "%",
                "\t",
            ],
        ),
    }
)

JSON = lines(r"""
get_json_object(j, '$')
get_json_object(j, '$.a')
get_json_object(j, '$.b')
get_json_object(j, '$.c')
get_json_object(j, '$.c[0]')
get_json_object(j, '$.c[2].d')
get_json_object(j, '$.e')
get_json_object(j, '$.e.f')
get_json_object(j, '$.e.g[*].h')
get_json_object(j, '$.e.g[0].h')
get_json_object(j, '$[1]')
get_json_object(j, '$[1][0]')
get_json_object(j, '$[*]')
get_json_object(j, '$[2].a')
get_json_object(j, '$.a[*][*]')
get_json_object(j, '$.a[*]')
get_json_object(j, '$.a[1][1]')
get_json_object(j, '$.c[*].d[*]')
get_json_object(j, '$.c[*].d[0]')
get_json_object(j, '$.c[0].d[*]')
get_json_object(j, '$.*')
get_json_object(j, "$['a b']['c.d']")
get_json_object(j, "$['a']")
get_json_object(j, '$.i')
get_json_object(j, '$.k')
get_json_object(j, 'a')
get_json_object(j, '$.')
get_json_object(j, '')
get_json_object(j, NULL)
json_array_length(j)
json_object_keys(j)
to_json(named_struct('a', j, 'b', 1))
to_json(named_struct('a', j, 'n', CAST(NULL AS int), 'm', map('k', CAST(NULL AS int))), \
map('ignoreNullFields', 'false'))
hash(j, u)
xxhash64(j, u)
crc32(j)
url_encode(w)
url_decode(w)
try_url_decode(w)
url_encode(u)
parse_url(u, 'HOST')
try_parse_url(u, 'HOST')
try_parse_url(u, 'PATH')
try_parse_url(u, 'QUERY')
try_parse_url(u, 'REF')
try_parse_url(u, 'PROTOCOL')
try_parse_url(u, 'FILE')
try_parse_url(u, 'AUTHORITY')
try_parse_url(u, 'USERINFO')
try_parse_url(u, 'QUERY', 'query')
try_parse_url(u, 'QUERY', 'k')
try_parse_url(u, 'QUERY', 'a')
try_parse_url(u, 'HOST', 'a')
try_parse_url(u, 'host')
parse_url(u, 'QUERY', 'b')
from_json(j, 'a INT, b STRING')
from_json(j, 'a STRING, e STRUCT<f: DOUBLE>')
from_json(j, 'c ARRAY<STRING>')
from_json(j, 'ARRAY<STRING>')
schema_of_json('{"a":1,"b":[1.5,null],"c":{"d":"x"}}')
schema_of_json('[{"a":1},{"b":true}]')
""")

MORE_TEXT = lines(r"""
soundex(s)
soundex(w)
soundex('Tymczak')
mask(s)
mask(s, 'Q')
mask(w, 'Q', 'q')
mask(s, 'Q', 'q', 'd')
mask(s, 'Q', 'q', 'd', 'o')
mask(s, NULL, 'q', NULL, '*')
mask(u, 'X', 'x', NULL)
levenshtein(s, t)
levenshtein(s, w)
levenshtein(s, w, 3)
levenshtein(s, t, n)
conv(u, 10, 16)
conv(u, 10, -16)
conv(s, 16, 10)
conv(n, 10, 2)
conv('-1', 10, 16)
conv('ff', 16, 10)
conv(u, 36, n)
luhn_check(u)
luhn_check('8112189876')
luhn_check('79927398713')
luhn_check(s)
unbase64(base64(b))
unbase64('YWJj')
is_valid_utf8(s)
make_valid_utf8(s)
validate_utf8(s)
try_validate_utf8(s)
hash(s)
hash(b)
hash(s, t, n)
xxhash64(s)
xxhash64(b, n)
xxhash64(s, t, u, v, k, w)
crc32(b)
crc32(s)
initcap(w)
upper(w)
lower(k)
format_string('%s-%d', s, n)
printf('%s', s)
format_string('%5d|%-5d|%05d', n, n, n)
format_string('%10s|%-10s|', t, t)
format_string('%%')
format_string('%x', n)
regexp_count(s, 'a')
regexp_count(w, '[a-z]+')
regexp_substr(w, '[a-z]+')
regexp_substr(s, 'a+b?')
regexp_instr(w, '[A-Z]')
regexp_instr(s, 'b')
regexp_extract_all(w, '([a-z])([a-z])', 2)
regexp_extract_all(w, '[a-z]+', 0)
regexp_extract_all(w, '([a-z]+)')
regexp_replace(s, 'a', 'x', 2)
split(s, 'a', 2)
split(s, ',', 1)
split(s, '[ab]')
split(w, '\\s+')
split(s, '')
typeof(s)
typeof(n)
typeof(b)
quote(w)
char_length(t)
format_number(n, 2)
to_binary('abcd', 'hex')
try_to_binary(u, 'hex')
to_binary('YWJj', 'base64')
to_binary(s, 'utf-8')
bitmap_bit_position(n)
bitmap_bucket_number(n)
""")

MORE_NUMBERS = lines(r"""
hypot(x, y)
hypot(i, j)
asinh(y)
asinh(x)
acosh(y)
atanh(y)
atanh(x)
sec(y)
csc(y)
csc(x)
width_bucket(y, 0, 10, 5)
width_bucket(x, 10, -10, 4)
width_bucket(i, 0, 100, 10)
width_bucket(d, 0, 10, j)
bit_get(i, 0)
getbit(i, 3)
bit_get(l, 62)
bit_get(l, j)
bit_get(a, 7)
hash(a)
hash(s)
hash(i)
hash(l)
hash(f)
hash(x)
hash(d)
hash(g)
hash(w)
hash(h)
hash(p)
hash(a, s, i, l, f, x, d, g, p)
xxhash64(a)
xxhash64(s)
xxhash64(i)
xxhash64(l)
xxhash64(f)
xxhash64(x)
xxhash64(d)
xxhash64(g)
xxhash64(w)
xxhash64(p)
xxhash64(a, s, i, l, f, x, d, g, p)
hash(NULL)
xxhash64(NULL, 1)
to_json(struct(a, s, i, l, p))
to_json(struct(d, g, p))
to_json(array(i, j))
to_json(map('a', i))
to_json(named_struct('x', named_struct('y', i)))
format_number(i, 2)
format_number(l, 0)
format_number(y, 3)
format_number(d, 1)
format_number(d, 4)
format_string('%.2f', y)
format_string('%d %s', i, d)
typeof(d)
typeof(x)
typeof(array(i))
ceil(d, 1)
floor(d, 1)
ceil(x, 1)
floor(x, 1)
ceil(i, -1)
floor(i, -1)
try_add(d, e)
""")

MORE_TIMES = lines(r"""
current_timezone()
hash(d)
hash(t)
hash(z)
xxhash64(d, t, z)
to_json(struct(d))
make_timestamp_ltz(2024, 3, 10, 2, 30, 1.5)
make_timestamp_ltz(year(d), 2, 29, 1, 2, 3)
try_make_timestamp(year(d), 2, 29, 1, 2, 3)
try_make_timestamp_ltz(2024, month(d), 31, 1, 2, 3)
try_make_timestamp_ntz(2024, month(d), 31, 1, 2, 3)
try_make_timestamp(2024, 1, 1, 25, 0, 0)
to_timestamp_ltz(d)
to_timestamp_ltz('2024-06-01 10:00:00')
to_timestamp_ntz(t)
to_timestamp_ntz('2024-06-01 10:00:00')
to_timestamp_ltz('01/06/2024', 'dd/MM/yyyy')
to_timestamp_ntz('01/06/2024', 'dd/MM/yyyy')
try_to_timestamp(string(d))
try_to_timestamp('x')
try_to_timestamp(t)
try_to_timestamp('2024-13-01', 'yyyy-MM-dd')
try_to_timestamp('2024-12-01', 'yyyy-MM-dd')
try_to_date('x')
try_to_date(string(t))
try_to_date('2024-13-01', 'yyyy-MM-dd')
try_to_date('2024-12-01', 'yyyy-MM-dd')
convert_timezone('UTC', 'Europe/Berlin', z)
convert_timezone('America/New_York', 'Asia/Tokyo', z)
convert_timezone('Europe/Berlin', z)
sequence(d, date_add(d, 3))
sequence(date'2024-01-01', date'2024-01-10', interval 3 day)
typeof(t)
typeof(z)
typeof(d)
timestampadd(hour, 5, t)
timestampdiff(day, t, r)
to_char(d, 'yyyy')
make_date(2024, 2, 30)
""")

MORE_NESTED = lines(r"""
hash(a)
hash(s)
hash(r)
hash(x)
hash(c)
hash(z)
xxhash64(a, b)
xxhash64(r)
xxhash64(x, s)
hash(m)
to_json(r)
to_json(z)
to_json(m)
to_json(n)
to_json(a)
to_json(s)
to_json(struct(r, z, m))
array_insert(a, 1, 9)
array_insert(a, -1, 9)
array_insert(a, 5, 9)
array_insert(s, i, 'q')
array_insert(a, -5, 9)
array_insert(a, 0, 9)
arrays_zip(a, b)
arrays_zip(a, s)
arrays_zip(a)
transform_keys(m, (k, v) -> concat(k, '!'))
transform_keys(n, (k, v) -> k * 2)
map_zip_with(m, m, (k, v1, v2) -> v1 + v2)
map_zip_with(m, map('a', 10), (k, v1, v2) -> coalesce(v1, 0) + coalesce(v2, 0))
filter(a, (e, i) -> i > 0)
filter(s, (e, i) -> e = 'a' or i = 0)
try_element_at(a, 5)
typeof(a)
typeof(m)
typeof(r)
inline(z)
""")

NEWER_TEXT = lines(r"""
decode(s, 'a', t)
decode(s, 'a', 1, 'b', 2)
decode(s, 'a', 1, NULL, 2, 3)
decode(n, 1, 'one', 2, 'two', 'many')
s LIKE ANY ('a%', '%b')
s LIKE ALL ('a%', '%b')
s LIKE SOME ('a%')
s NOT LIKE ANY ('a%', '%b', NULL)
s NOT LIKE ALL ('a%', '%b', NULL)
s ILIKE ANY ('A%', NULL)
(s, n) IN (('a', 1), ('b', 2))
(s, n) NOT IN (('a', 1))
string(array(s, t))
string(array(n, NULL))
string(named_struct('a', s, 'b', n))
string(map(coalesce(t, 'q'), n))
sort_array(array(named_struct('a', s, 'b', n), named_struct('a', t, 'b', 1), NULL))
sort_array(array(named_struct('a', s, 'b', n), named_struct('a', t, 'b', 1), NULL), false)
sort_array(array(array(s), array(t, 'x'), array(), array(NULL)))
array_sort(array(named_struct('a', s, 'b', n), named_struct('a', t, 'b', 1)))
array_sort(array(s, t, w), (a, b) -> CASE WHEN a > b THEN -1 WHEN a < b THEN 1 ELSE 0 END)
array_sort(array('bb', 'a', 'ccc', 'dd'), (a, b) -> length(a) - length(b))
array_sort(array(n, 3, 1), (a, b) -> a - b)
struct(s, n) < struct(t, 5)
struct(s, n) >= struct(s, n)
array(s, t) > array(t, s)
array(n) <= array(n, 1)
""")

NEWER_TIMES = lines(r"""
sequence(date'2024-01-31', date'2024-05-31', interval 1 month)
sequence(date'2024-01-31', date'2020-05-31', interval '-1' year)
sequence(date'2024-01-31', last_day(date'2024-06-01'), interval 2 months)
sequence(timestamp'2024-01-01 00:00:00', timestamp'2024-01-02 00:00:00', interval 6 hours)
sequence(timestamp'2024-03-09 12:00:00', timestamp'2024-03-12 00:00:00', interval 12 hours)
sequence(timestamp'2024-01-31 10:00:00', timestamp'2024-05-31 00:00:00', interval 1 month)
sequence(timestamp'2024-01-01 00:00:00', timestamp'2024-01-04 12:00:00')
sequence(timestamp'2024-01-04 12:00:00', timestamp'2024-01-01 00:00:00')
sequence(timestamp_ntz'2024-01-01 00:00:00', timestamp_ntz'2024-01-01 01:00:00', interval 20 minutes)
sequence(date'2024-01-01', date'2024-01-03', interval 24 hours)
sequence(t, t, interval 1 day)
sequence(z, z + interval 3 days, interval 36 hours)
sequence(d, add_months(d, 3), interval 1 month)
sequence(date'2024-01-01', timestamp'2024-01-02 12:00:00', interval 12 hours)
string(array(d, NULL))
sequence(timestamp'2024-03-09 12:00:00', timestamp'2024-03-12 00:00:00', interval 1 day)
sequence(timestamp'2024-03-12 12:00:00', timestamp'2024-03-09 00:00:00', interval '-1 06' day to hour)
string(array(t))
string(struct(d, z))
struct(d, t) < struct(date'2024-01-01', t)
from_json('{"t":"2024-06-01T10:00:00","z":"2024-06-01T10:00:00"}', 't timestamp, z timestamp_ntz')
from_json('{"t":"2024-03-10 02:30:00 Europe/Berlin"}', 't timestamp')
from_json('{"t":1700000000}', 't timestamp')
""")

READ_JSON = pa.table({"j": pa.array([
    '{"a":1.505,"b":"2.5","c":{"x":1,"y":null},"d":"2024-02-30","e":["2024-02-03",5]}',
    '{"a":123456789.5,"b":" 2","c":[1],"d":"2024-02-03 10:00:00","e":[]}',
    '{"a":"abc","b":1e2,"c":{},"d":"2024-1-2"}', None, "", "{bad", "5", '"x"', '{"c":{"a b":3.9}}',
    '{"d":20240203,"a":-0.004}',
])})  # fmt: skip
READ_JSON_FORMS = lines(r"""
from_json(j, 'a decimal(5,2), b decimal(10,0)')
from_json(j, 'a float, b double')
from_json(j, 'c map<string,int>')
from_json(j, 'map<string,string>')
from_json(j, 'd date, e array<string>')
from_json(j, 'c map<string,map<string,int>>')
from_json(j, 'a string, d timestamp')
from_json(j, 'e array<int>')
from_json(j, 'd timestamp_ntz')
""")

JSON_TIMES = lines(r"""
to_json(struct(t, z))
to_json(array(t, NULL, t))
to_json(map('a', t, 'b', NULL))
to_json(struct(d, array(struct(t, map('k', array(t)) AS m)) AS a))
to_json(IF(d IS NULL, NULL, struct(t)))
to_json(struct(t, z), map('timestampFormat', 'HH:mm dd/MM/yyyy'))
to_json(struct(t, z), map('timestampNTZFormat', 'HH:mm dd/MM/yyyy'))
to_csv(struct(t, z))
to_csv(struct(t, d), map('quoteAll', 'true', 'sep', ':'))
to_csv(struct(t, d), map('sep', ':'))
date_format(t, 'XXXX xxxx')
date_format(t, 'XXXXX xxxxx')
""")

FUNCTION_FAMILIES = (
    Family("json", DOCUMENTS, JSON),
    Family("more_text", TEXT, MORE_TEXT),
    Family("more_numbers", NUMBERS, MORE_NUMBERS),
    Family("more_times", TIMES, MORE_TIMES, _BOTH),
    Family("json_times", TIMES, JSON_TIMES, _BOTH),
    Family("more_nested", NESTED, MORE_NESTED),
    Family("newer_text", TEXT, NEWER_TEXT),
    Family("newer_times", TIMES, NEWER_TIMES, _BOTH),
    Family("read_json", READ_JSON, READ_JSON_FORMS),
)
