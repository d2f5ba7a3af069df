"""Forms of functions that read and write text: Java's regular expressions, CSV, options of JSON, formats of
numbers, encodings of bytes."""

from __future__ import annotations

import pyarrow as pa
from spark_cases import NUMBERS, TEXT, TIMES, Family, lines

PATTERNS = pa.table({
    "s": pa.array(["foobar", "aXbXc", None, "a\n", "é b_1", "2024-2024", "", "aaa", "AB", "a\r\n", "x.y|z",
                   "éb1"]),
    "p": pa.array(["o(?=b)", "x*", "a", "a$", r"\bb", r"(\d+)-\1", "^$", "a++", "(?i)ab", "[ab]?", None,
                   r"(?<=b)\d"]),
    "r": pa.array(["<$0>", "-", "x", None, r"\$", "$1", "new", "", "z", "[$0]", "y", r"\\"]),
    "g": pa.array([0, 0, 1, 0, 0, 1, 0, 0, None, 0, 0, 0], pa.int32()),
})  # fmt: skip
REGULAR = lines(r"""
s rlike p
regexp_like(s, p)
regexp_extract(s, p, g)
regexp_extract(s, p, 0)
regexp_extract_all(s, p, 0)
regexp_replace(s, p, r)
regexp_replace(s, p, r, 2)
regexp_count(s, p)
regexp_instr(s, p)
regexp_substr(s, p)
split(s, p)
split(s, p, 2)
s rlike '(?<=a)X'
s rlike '(\\w)\\1'
s rlike 'a$'
s rlike '(?m)^a$'
s rlike '(?s)a.$'
s rlike '\\bb'
s rlike '\\p{Lu}'
s rlike '\\p{IsAlphabetic}\\P{Alpha}'
s rlike '[\\w&&[^a]]'
s rlike '(?i)FOO|É'
s rlike '(?iu)É'
s rlike 'a++a'
s rlike '\\Qx.y|\\E'
s rlike '^\\S+\\Z'
s rlike '('
regexp_extract(s, '(?<year>[0-9]+)-', 1)
regexp_extract(s, 'foo(?!x)(.)', 1)
regexp_extract(s, '(x)|(b)', 1)
regexp_extract_all(s, '(?=(.))', 1)
regexp_extract_all(s, '')
regexp_extract_all(s, '', 0)
regexp_replace(s, '', '-')
regexp_replace(s, 'X|$', '!')
regexp_replace(s, '(?<n>[a-c])', '<$1>')
regexp_replace(s, '[a-c]', '\\$0')
regexp_replace(s, '(a)', '$12')
regexp_replace(s, 'a', '$1')
regexp_replace(s, 'a$', '!')
regexp_replace(s, '\\R', '|')
regexp_count(s, '')
regexp_count(s, 'a(?!a)')
regexp_instr(s, '(?<=a)')
regexp_instr(s, '\\d', 1)
regexp_substr(s, '\\d*')
split(s, 'x*')
split(s, '(?=[A-Z])')
split(s, '[Xb]', 2)
split(s, '$')
split(s, '\\|', 2)
""")

RECORDS = pa.table({"c": pa.array([
    "1,abc", " 2 , x ", None, "", ",", '"a,b",c', '"a""b",c', '"a\\"b",c', '"a"b,c', '"ab,c', '"a"  x,"y" ',
    "x,TRUE,3", "3.5,\"\"", "NA;7", "a\nb,2", "1e3,false", "-5,t", "2024-01-02,2024-01-02 03:04:05",
    "26/08/2015,#", '"1,234.5",Inf', "NaN,-Inf", "300,0x1", "a\\,b", '"a\\\\",b\n',
    "99999999999999999999,1.5f",
])})  # fmt: skip
CSV = lines(r"""
from_csv(c, 'a INT, b STRING')
from_csv(c, 'a STRING, b STRING, d STRING')
from_csv(c, 'a DOUBLE, b BOOLEAN')
from_csv(c, 'a FLOAT, b DOUBLE')
from_csv(c, 'a BYTE, b BIGINT')
from_csv(c, 'a DECIMAL(10,2), b DECIMAL(5,1)')
from_csv(c, 'a DATE, b TIMESTAMP')
from_csv(c, 'a STRING, b TIMESTAMP_NTZ')
from_csv(c, 'a STRING, b INT', map('sep', ';', 'nullValue', 'NA'))
from_csv(c, 'a STRING, b STRING', map('ignoreLeadingWhiteSpace', 'true', 'ignoreTrailingWhiteSpace', 'true'))
from_csv(c, 'a STRING, b STRING', map('quote', '''', 'escape', '|'))
from_csv(c, 'a STRING, b STRING', map('escape', '"'))
from_csv(c, 'a DATE, b STRING', map('dateFormat', 'dd/MM/yyyy'))
from_csv(c, 'a TIMESTAMP', map('timestampFormat', 'dd/MM/yyyy'))
from_csv(c, schema_of_csv('1,x'))
schema_of_csv('1,abc')
schema_of_csv('1,1.5,2024-01-01,2024-01-01 00:00:00,true,99999999999,1e3,,999999999999999999999,x')
schema_of_csv('2024-1-1,2024,12:30,Inf,+5,"a",NaN')
schema_of_csv('1|abc', map('sep', '|'))
to_csv(struct(c))
to_csv(named_struct('a', 1, 'b', c, 'd', c))
to_csv(named_struct('a', c), map('sep', ';', 'quote', ''''))
to_csv(named_struct('a', c, 'b', true), map('quoteAll', 'true'))
to_csv(named_struct('a', c, 'b', CAST(NULL AS STRING)), map('nullValue', 'NULL'))
to_csv(named_struct('a', c), map('ignoreLeadingWhiteSpace', 'false'))
to_csv(named_struct('a', c), map('escape', '"'))
to_csv(from_csv(c, 'a INT, b STRING'))
from_json(concat('{"a":"', c, '"}'), 'a DATE', map('dateFormat', 'dd/MM/yyyy'))
from_json('{"t":"26/08/2015 10:00","n":5}', 't TIMESTAMP, n INT', map('timestampFormat', 'dd/MM/yyyy HH:mm'))
from_json('{"a":[1,2]}', schema_of_json('{"a":[1]}'))
hmac('key', c)
hmac('key', c, 'MD5')
hmac('a key that is longer than the sixty-four bytes of one block of a hash', c, 'SHA-1')
hmac('', c)
to_base32(c)
from_base32(c)
from_base32(to_base32(c))
jaro_winkler_similarity(c, '1,abd')
jaro_winkler_similarity(c, reverse(c))
jaro_winkler_similarity('MARTHA', 'MARHTA')
to_number(c, '9')
try_to_number(c, '9')
try_to_number(c, '9,999.9')
try_to_number(c, 'S99,999.99')
try_to_number(c, '9,9')
""")

FIGURES = pa.table({"t": pa.array([
    "454", "-5", "+5", "5-", "<5>", "<5", "5>", "12,454.8", "12454.8", ",454", " 4 ", "$78.12", "-$7", "$-7",
    None, "", ".", "7.", ".5", "004", "1 2", "1,2,3", "- 5", "$ 5", "5 -",
])})  # fmt: skip
NUMBER_FORMATS = lines(r"""
try_to_number(t, '999')
try_to_number(t, '000')
try_to_number(t, '99,999.99')
try_to_number(t, '00,999')
try_to_number(t, 'S9')
try_to_number(t, '9S')
try_to_number(t, 'MI9')
try_to_number(t, '9MI')
try_to_number(t, '9PR')
try_to_number(t, '$99.99')
try_to_number(t, 'S$9')
try_to_number(t, '$9S')
try_to_number(t, '99G9D0')
try_to_number(t, '9,9,9')
try_to_number(t, NULL)
to_number(t, '999')
to_number(t, 'x')
to_number(t, '')
to_number(t, '9S9')
""")
SHOWN = lines(r"""
to_char(i, '9999999999')
to_char(i, 'S9,999,999,999')
to_char(a, '999MI')
to_char(a, 'MI999')
to_char(a, '999PR')
to_char(a, '000')
to_char(a, '0')
to_char(s, '$99,999S')
to_char(l, '99G999G999G999G999G999G999')
to_char(d, '99999999.99')
to_char(d, 'S0,000.000')
to_char(d, '9.9')
to_char(d, '$9.')
to_char(h, '.9999')
to_char(h, '9.0000PR')
to_char(e, 'MI09D90')
to_char(f, '99999.9999999')
to_char(CASE WHEN abs(y) < 100 THEN y END, '99.999')
to_varchar(j, '9999999S')
to_char(i, NULL)
to_char(i, '9$')
to_char(i, '9.9.9')
""")
OF_TIMES = lines(r"""
to_varchar(d, 'yyyy')
to_varchar(t, 'HH:mm')
to_csv(struct(d, n))
to_csv(named_struct('z', z), map('timestampNTZFormat', 'dd.MM.yyyy'))
to_csv(named_struct('d', d), map('dateFormat', 'dd/MM/yyyy'))
to_json(named_struct('d', d, 'n', n), map('dateFormat', 'dd/MM/yyyy'))
""")
OF_BYTES = lines(r"""
to_char(b, 'hex')
to_char(b, 'base64')
to_varchar(b, 'hex')
to_base32(b)
hmac('k', b)
to_csv(struct(s, n, t, u))
to_csv(struct(k, v, w))
""")

CODES = lines(r"""
sha2(s, 224)
sha2(s, 384)
sha2(s, 512)
sha2(b, 512)
sha2(s, 1)
sha2(s, n)
sha2(s, CAST(NULL AS INT))
hmac(s, b)
hmac(b, s, 'sha1')
hmac('key', s, 'SHA-224')
hmac('key', s, 'SHA-384')
hmac('key', s, 'SHA-512')
hmac(t, s, 'SHA256')
encode(s, 'US-ASCII')
encode(s, 'iso-8859-1')
encode(s, 'utf-16')
encode(s, 'UTF-16LE')
encode(t, 'UTF-16BE')
encode(t, 'UTF-32')
decode(encode(s, 'utf-16'), 'utf-16')
decode(encode(s, 'UTF-16LE'), 'UTF-16LE')
decode(encode(s, 'UTF-32'), 'UTF-32')
decode(b, 'US-ASCII')
decode(b, 'ISO-8859-1')
decode(b, 'UTF-16')
decode(b, 'UTF-32')
elt(n, s, t)
elt(1, s, t)
elt(3, s, t)
elt(0, s)
elt(CAST(NULL AS INT), s)
""")

MATCHED = pa.table(
    {
        "s": ["a", "a%", "a_b", "x", "abc", "é", "😀", None, "a", "a\\b", "", "a\nb", "Abc", "x", "a"],
        "p": [
            "a%",
            "a\\%",
            "a\\_b",
            "a\\b",
            "%b%",
            "_",
            "_",
            "a%",
            None,
            "a\\\\b",
            "%",
            "a_b",
            "aB%",
            "x\\",
            "a/%",
        ],
    }
)
LIKES = lines(r"""
s LIKE p
s NOT LIKE p
s ILIKE p
s LIKE p ESCAPE '/'
s ILIKE p ESCAPE '/'
s LIKE p ESCAPE '%'
s LIKE p ESCAPE '_'
s LIKE p ESCAPE 'a'
s LIKE concat(p, '%')
s LIKE '%' || s || '%'
s LIKE concat(upper(s), '')
s LIKE ANY (p, 'x')
s LIKE ALL ('%', s)
s NOT LIKE ANY (p, s)
s NOT ILIKE ALL (p, 'x')
like(s, p)
like(s, p, '/')
ilike(s, p, '/')
like(s, 'a/_b', '/')
like(s, p, NULL)
like(s, p, s)
like(NULL, 'a/b', '/')
NULL LIKE p
s LIKE concat('a', NULL)
s LIKE 1
length(s) LIKE length(s)
""")

PARTS = pa.table(
    {
        "a": [["2024", "x"], ["2023"], ["12"], None, [None], ["x"]],
        "s": ["2024-02-30 a", "7 b", "2020 z", "2021", None, "2024-02-29 c"],
        "k": pa.array([1, 2, 1, 1, 1, 1], pa.int32()),
    }
)
OF_PARTS = lines(r"""
to_date(split(s, ' ')[0], 'yyyy')
to_date(split(s, ' ')[0], 'yyyy-MM-dd')
to_date(element_at(a, k), 'yyyy')
to_timestamp(concat(element_at(a, k), ' 10:00'), 'yyyy HH:mm')
to_timestamp_ltz(a[0], 'yyyy')
to_timestamp_ntz(split(s, ' ')[0], 'yyyy-MM-dd')
to_number(split(s, ' ')[0], '9')
try_to_number(split(s, ' ')[0], '9')
try_to_date(a[k - 1], 'yyyy')
try_to_timestamp(a[k - 1], 'yyyy')
try_to_date(CAST(CAST(a[0] AS INT) AS STRING), 'yyyy')
unix_timestamp(element_at(a, k), 'yyyy')
to_unix_timestamp(split(s, ' ')[0], 'yyyy-MM-dd')
transform(a, x -> to_date(CAST(CAST(x AS INT) AS STRING), 'yyyy'))
date_format(to_timestamp(split(s, ' ')[0], 'yyyy'), 'yy')
to_date(date_format(to_date(split(s, ' ')[0], 'yyyy'), 'MM/yyyy'), 'MM/yyyy')
""")

TEXT_FAMILIES = (
    Family("parts", PARTS, OF_PARTS, ("UTC", "America/New_York")),
    Family("likes", MATCHED, LIKES),
    Family("patterns", PATTERNS, REGULAR),
    Family("csv", RECORDS, CSV),
    Family("number_formats", FIGURES, NUMBER_FORMATS),
    Family("shown_numbers", NUMBERS, SHOWN),
    Family("written_times", TIMES, OF_TIMES),
    Family("written_bytes", TEXT, OF_BYTES),
    Family("codes", TEXT, CODES),
)
