"""Forms of functions on variants, of ciphers and of time buckets."""

from __future__ import annotations

import pyarrow as pa
from spark_cases import TEXT, TIMES, Family, lines

DOCUMENTS = pa.table(
    {
        "j": pa.array(
            [
                '{"a":1,"b":[1.5,true,null,"x"],"c":{"d":1e3,"e f":"é\\u00e9\\"\\n"}}',
                '{"a":"12","b":[1,300,70000,5000000000],"c":{"d":-0.50}}',
                None,
                '[1, [2, 3], {"a": "2024-01-02"}, null, "x"]',
                "null",
                '"2024-01-02 03:04:05"',
                "100.00",
                "true",
                "12345678901234567890123456789012345678",
                "123456789012345678901234567890123456789",
                '{"a":[{"x":1},{"y":"q"},{"x":2.25}],"b":{},"c":[]}',
                '{"z":1,"a":2,"m":{"z":0}}',
                "-7",
                "1e-7",
                '{"a":1704164645,"b":"yes","c":"abc"}',
            ]
        ),
        "k": pa.array(
            [
                "{bad",
                "",
                "1 x",
                ' {"a" : 1 } ',
                '{"a":1,"a":2}',
                "nullx",
                "[1,]",
                "'x'",
                '"a\tb"',
                "01",
                "1.",
                "-",
                None,
                "[1",
                "+1",
            ],
        ),
    }
)

VARIANTS = lines(r"""
CAST(try_parse_json(k) AS STRING)
parse_json(k) IS NULL
CAST(parse_json(j) AS STRING)
to_json(parse_json(j))
parse_json(j)::string
schema_of_variant(parse_json(j))
is_variant_null(parse_json(j))
is_variant_null(variant_get(parse_json(j), '$[3]'))
is_valid_variant(parse_json(j))
variant_get(parse_json(j), '$.a', 'string')
try_variant_get(parse_json(j), '$.a', 'int')
variant_get(parse_json(j), '$.a', 'int')
try_variant_get(parse_json(j), '$.b[0]', 'decimal(5,2)')
try_variant_get(parse_json(j), '$.b[3]', 'bigint')
try_variant_get(parse_json(j), '$.b[1]', 'boolean')
try_variant_get(parse_json(j), '$.b', 'array<string>')
try_variant_get(parse_json(j), '$.b', 'array<double>')
variant_get(parse_json(j), '$.c["e f"]', 'string')
variant_get(parse_json(j), "$['c'].d", 'double')
try_variant_get(parse_json(j), '$.c', 'map<string,string>')
try_variant_get(parse_json(j), '$.c', 'struct<d double, `e f` string>')
try_variant_get(parse_json(j), '$.a', 'timestamp')
try_variant_get(parse_json(j), '$[2].a', 'date')
try_cast(parse_json(j) AS int)
try_cast(parse_json(j) AS tinyint)
try_cast(parse_json(j) AS bigint)
try_cast(parse_json(j) AS float)
try_cast(parse_json(j) AS double)
try_cast(parse_json(j) AS decimal(10,2))
try_cast(parse_json(j) AS decimal(38,0))
try_cast(parse_json(j) AS boolean)
try_cast(parse_json(j) AS date)
try_cast(parse_json(j) AS timestamp)
try_cast(parse_json(j) AS timestamp_ntz)
try_cast(parse_json(j) AS binary)
try_cast(parse_json(j) AS array<int>)
try_cast(parse_json(j) AS array<variant>) IS NULL
CAST(parse_json(j) AS int)
CAST(parse_json(j) AS double)
CAST(parse_json(j) AS struct<a: string>)
to_json(CAST(j AS VARIANT))
CAST(CAST(1 AS VARIANT) AS INT)
CAST(1 AS VARIANT)
CAST(300 AS VARIANT)
CAST(70000 AS VARIANT)
CAST(5000000000 AS VARIANT)
CAST(1.50 AS VARIANT)
CAST(1234567890.5 AS VARIANT)
CAST(1.5D AS VARIANT)
CAST(1.5F AS VARIANT)
CAST(true AS VARIANT)
CAST(X'01FF' AS VARIANT)
CAST(DATE'2024-01-02' AS VARIANT)
CAST(TIMESTAMP'2024-01-02 03:04:05.1' AS VARIANT)
CAST(TIMESTAMP_NTZ'2024-01-02 03:04:05' AS VARIANT)
CAST(array(1, 2, NULL) AS VARIANT)
to_json(CAST(DATE'2024-01-02' AS VARIANT))
to_json(CAST(TIMESTAMP'2024-01-02 03:04:05.1' AS VARIANT))
to_json(CAST(TIMESTAMP'2024-01-02 03:04:05' AS VARIANT))
to_json(CAST(TIMESTAMP_NTZ'2024-01-02 03:04:05.000100' AS VARIANT))
to_json(CAST(double('NaN') AS VARIANT))
to_json(CAST(1e20 AS VARIANT))
to_json(CAST(X'01FF' AS VARIANT))
to_json(CAST(1.5F AS VARIANT))
CAST(CAST(DATE'2024-01-02' AS VARIANT) AS STRING)
CAST(CAST(TIMESTAMP'2024-01-02 03:04:05.1' AS VARIANT) AS STRING)
CAST(CAST(X'41' AS VARIANT) AS STRING)
CAST(CAST(double('NaN') AS VARIANT) AS STRING)
CAST(CAST('abc' AS VARIANT) AS BINARY)
try_cast(CAST(12 AS VARIANT) AS BINARY)
schema_of_variant(CAST(1.5F AS VARIANT))
schema_of_variant(CAST(DATE'2024-01-02' AS VARIANT))
schema_of_variant(to_variant_object(named_struct('b', j, 'a', 2.5)))
to_json(to_variant_object(named_struct('b', j, 'a', array(1, NULL))))
to_variant_object(named_struct('b', 1, 'a', 2.5))
to_variant_object(map('b', 1, 'a', NULL))
to_variant_object(array(named_struct('a', j)))
to_variant_object(1)
CAST(map('a', 1) AS VARIANT)
CAST(named_struct('a', 1) AS VARIANT)
length(parse_json('"abc"'))
upper(parse_json('"abc"'))
typeof(parse_json('1'))
coalesce(parse_json(NULL), parse_json('2'))
array(parse_json('1'))
named_struct('v', parse_json('1')).v
parse_json(j):c.d::double
parse_json(j)[0]
parse_json(j) = parse_json(j)
hash(parse_json(j))
coalesce(parse_json(j), 'x')
coalesce(parse_json(j), parse_json('0'))
to_json(variant_get(parse_json(j), '$.a'))
to_json(variant_get(parse_json(j), '$[1]'))
to_json(CAST(NULL AS VARIANT))
to_json(if(j LIKE '[%', parse_json(j), NULL))
to_json(parse_json(j):a)
to_json(parse_json(j):['a'])
variant_get(parse_json('{}'), 'a')
variant_get(parse_json('{}'), '$.')
variant_get(parse_json('{}'), '$.a[')
variant_get(parse_json('{}'), '$[-1]')
variant_get(parse_json('{}'), '$.a[*]')
to_json(variant_insert(parse_json(j), '$.new', 2))
to_json(variant_insert(parse_json('{"a":1,"o":[]}'), '$.k' || length(j), j))
to_json(try_variant_insert(parse_json(j), '$.a', 2))
to_json(try_variant_insert(parse_json(j), '$.b[1]', 'z'))
to_json(try_variant_insert(parse_json(j), '$[6].x[1]', array(1, 2)))
to_json(variant_set(parse_json('{"a":{"b":1}}'), '$.a.c.d', 2))
to_json(variant_set(parse_json('["a","b","c"]'), '$[5]', date'2024-01-01'))
to_json(try_variant_set(parse_json(j), '$.a', 2))
to_json(try_variant_set(parse_json(j), "$['c'].d", 1.50, false))
to_json(try_variant_set(parse_json(j), '$.b[0]', parse_json('null')))
to_json(try_variant_set(parse_json(j), '$.x.y', 2, false))
to_json(variant_set(parse_json(j), '$.a', 9, CAST(NULL AS boolean)))
to_json(variant_set(parse_json(coalesce(j, '1')), '$', 2))
to_json(variant_delete(parse_json(j), '$.a'))
to_json(variant_delete(parse_json(j), NULL, '$.c.d', '$.a[1].y', '$.b[0]', '$[1][0]'))
to_json(variant_delete(parse_json(coalesce(j, '1')), 'a'))
to_json(variant_strip_nulls(parse_json(j)))
to_json(variant_strip_nulls(parse_json(j), false))
to_json(try_variant_array_append(parse_json(j), '$.b', 4))
to_json(try_variant_array_append(parse_json(j), '$', parse_json(j)))
to_json(variant_array_append(parse_json(j), '$.a[0]', 2))
to_json(variant_array_append(parse_json(j), '$.missing', 2))
""")

CIPHERS = lines(r"""
aes_encrypt(s, '0000111122223333', 'ECB')
aes_encrypt(b, 'abcdefghijklmnop12345678', 'ECB', 'PKCS')
aes_encrypt(s, 'abcdefghijklmnop12345678ABCDEFGH', 'CBC', 'DEFAULT', \
unhex('00000000000000000000000000000000'))
aes_encrypt(s, '0000111122223333', 'GCM', 'DEFAULT', unhex('000000000000000000000000'))
aes_encrypt(s, 'abcdefghijklmnop12345678ABCDEFGH', 'gcm', 'none', unhex('000000000000000000000001'), t)
aes_encrypt(s, t, 'ECB')
aes_encrypt(s, 'short')
aes_encrypt(s, '0000111122223333', 'CFB')
aes_encrypt(s, '0000111122223333', 'GCM', 'PKCS')
aes_encrypt(s, '0000111122223333', 'CBC', 'NONE')
aes_encrypt(s, '0000111122223333', 'ECB', 'PKCS', unhex('00'))
aes_encrypt(s, '0000111122223333', 'CBC', 'PKCS', unhex('00'))
aes_encrypt(s, '0000111122223333', 'CBC', 'PKCS', unhex('00000000000000000000000000000000'), 'aad')
string(aes_decrypt(aes_encrypt(s, '0000111122223333'), '0000111122223333'))
string(aes_decrypt(aes_encrypt(s, '0000111122223333', 'CBC'), '0000111122223333', 'CBC'))
string(aes_decrypt(aes_encrypt(s, '0000111122223333', 'GCM', 'DEFAULT', '', t), \
'0000111122223333', 'GCM', 'DEFAULT', t))
aes_decrypt(aes_encrypt(s, '0000111122223333', 'GCM', 'DEFAULT', '', 'x'), \
'0000111122223333', 'GCM', 'DEFAULT', 'y')
aes_decrypt(b, '0000111122223333')
aes_decrypt(unhex('348FF37EBDE05B7880BA339068FBDA5E'), '0000111122223333', 'ECB')
try_aes_decrypt(b, '0000111122223333')
try_aes_decrypt(b, 'short')
try_aes_decrypt(unhex('348FF37EBDE05B7880BA339068FBDA5E'), '0000111122223333', 'ECB')
aes_encrypt(s, NULL)
bitmap_count(b)
bitmap_count(X'FF01')
""")

BUCKETS = lines(r"""
time_bucket(INTERVAL '1' DAY, t)
time_bucket(INTERVAL '5' DAY, t)
time_bucket(INTERVAL 15 MINUTE, t)
time_bucket(INTERVAL '1' WEEK, z)
time_bucket(INTERVAL '7' HOUR, z)
time_bucket(INTERVAL '1 02:00:00' DAY TO SECOND, t)
time_bucket(INTERVAL '1' MONTH, t)
time_bucket(INTERVAL '5' MONTH, t)
time_bucket(INTERVAL '1' YEAR, z)
time_bucket(INTERVAL '5' DAY, t, TIMESTAMP'2024-01-01 02:00:00')
time_bucket(INTERVAL '1' MONTH, t, TIMESTAMP'2024-01-31 02:00:00')
time_bucket(INTERVAL '1' MONTH, z, TIMESTAMP_NTZ'2024-01-31 02:00:00')
time_bucket(INTERVAL '0' DAY, t)
time_bucket(INTERVAL '-1' DAY, t)
time_bucket(NULL, t)
time_bucket(INTERVAL '1' DAY, NULL)
time_bucket(INTERVAL '1' DAY, d)
time_bucket(INTERVAL '1' DAY, u)
""")

VARIANT_FAMILIES = (
    Family("variants", DOCUMENTS, VARIANTS),
    Family("ciphers", TEXT, CIPHERS),
    Family("buckets", TIMES, BUCKETS),
)
