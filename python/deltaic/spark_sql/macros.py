"""DuckDB macros with the prefix `deltaic_`, for forms that need several of DuckDB's own functions.

A macro is plain SQL over its arguments, so DuckDB runs it vectorised. A macro with `try_` in its name returns
NULL where Spark raises an error; the caller adds this error. Macro texts are constants, so `prepare` may run
again on the same connection.
"""

from __future__ import annotations

from deltaic.spark_sql.functions.kernels import kernel_sql

_SPACE = "[\\x00-\\x20\\x7f]*"  # the characters that UTF8String.trimAll removes
_NUMBER = f"{_SPACE}[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?{_SPACE}"


def _whole(kind: str, bits: int) -> str:
    return f"CAST({kernel_sql('text_to_whole', 'long', 's', str(bits))} AS {kind})"


MACROS: dict[str, str] = {
    "deltaic_double_to_string(x)": kernel_sql("double_to_string", "string", "x"),
    "deltaic_float_to_string(x)": kernel_sql("float_to_string", "string", "x"),
    "deltaic_try_byte(s)": _whole("TINYINT", 8),
    "deltaic_try_short(s)": _whole("SMALLINT", 16),
    "deltaic_try_integer(s)": _whole("INTEGER", 32),
    "deltaic_try_long(s)": _whole("BIGINT", 64),
    "deltaic_try_double(s)": kernel_sql("text_to_double", "double", "s"),
    "deltaic_try_float(s)": kernel_sql("text_to_float", "float", "s"),
    "deltaic_try_boolean(s)": kernel_sql("text_to_boolean", "boolean", "s"),
    "deltaic_try_date(s)": kernel_sql("text_to_date", "date", "s"),
    "deltaic_try_local(s)": kernel_sql("text_to_timestamp_ntz", "timestamp_ntz", "s"),
    "deltaic_try_instant(s, zone)": kernel_sql("text_to_timestamp", "timestamp", "s", "zone"),
    "deltaic_number_text(s)": f"""CASE WHEN regexp_full_match(s, '{_NUMBER}')
        THEN regexp_extract(s, '[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?') END""",
    "deltaic_year_text(y)": """CASE WHEN y > 9999 THEN '+' || CAST(y AS VARCHAR)
        WHEN y >= 0 THEN lpad(CAST(y AS VARCHAR), 4, '0')
        ELSE '-' || lpad(CAST(-y AS VARCHAR), 4, '0') END""",
    "deltaic_date_to_string(d)": """CASE WHEN d >= DATE '0001-01-01' AND d <= DATE '9999-12-31'
        THEN CAST(d AS VARCHAR)
        ELSE deltaic_year_text(year(d)) || '-' || lpad(CAST(month(d) AS VARCHAR), 2, '0')
            || '-' || lpad(CAST(day(d) AS VARCHAR), 2, '0') END""",
    "deltaic_local_to_string(t)": """CASE WHEN t >= TIMESTAMP '0001-01-01' AND t < TIMESTAMP '10000-01-01'
        THEN CAST(t AS VARCHAR)
        ELSE deltaic_date_to_string(CAST(t AS DATE)) || ' ' || CAST(CAST(t AS TIME) AS VARCHAR) END""",
    # For a local time that occurs twice, Java takes the earlier instant, DuckDB the later one.
    "deltaic_instant(t, zone)": """CASE
        WHEN timezone(zone, timezone(zone, t - INTERVAL 1 DAY) + INTERVAL 24 HOUR) = t
        THEN least(timezone(zone, t - INTERVAL 1 DAY) + INTERVAL 24 HOUR, timezone(zone, t))
        ELSE timezone(zone, t) END""",
    "deltaic_same_offset(start, t, zone)": """make_timestamptz(
        epoch_us(start) + epoch_us(t) - epoch_us(timezone(zone, start)))""",
    "deltaic_moved(start, t, zone)": """CASE WHEN timezone(zone, deltaic_same_offset(start, t, zone)) = t
        THEN deltaic_same_offset(start, t, zone)
        ELSE deltaic_instant(t, zone) END""",
    # Java's `until`. DuckDB's datesub differs: it takes the last day of a short month for the 31st.
    "deltaic_packed(d)": "((year(d) * 12 + month(d)) * 32 + day(d))",
    "deltaic_last_whole(a, b)": """CAST(b AS DATE) + CASE
        WHEN CAST(b AS DATE) > CAST(a AS DATE) AND CAST(b AS TIME) < CAST(a AS TIME) THEN -1
        WHEN CAST(b AS DATE) < CAST(a AS DATE) AND CAST(b AS TIME) > CAST(a AS TIME) THEN 1 ELSE 0 END""",
    "deltaic_months(a, b)": """CAST(trunc((deltaic_packed(deltaic_last_whole(a, b))
        - deltaic_packed(CAST(a AS DATE))) / 32) AS BIGINT)""",
    "deltaic_utc(t)": "make_timestamptz(epoch_us(t))",
    "deltaic_utc_local(t)": "make_timestamp(epoch_us(t))",
    "deltaic_power(a, b)": """CASE WHEN isnan(b) OR (abs(a) = 1 AND isinf(b))
        THEN CASE WHEN a IS NOT NULL THEN CAST('nan' AS DOUBLE) END
        ELSE pow(a, b) END""",
    "deltaic_substring_start(s, p)": """CAST(CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(s) + p
        WHEN p = 0 THEN 0 END AS BIGINT)""",
    "deltaic_substring(s, p, n)": """substring(s,
        least(greatest(deltaic_substring_start(s, p), CASE WHEN p IS NOT NULL THEN 0 END) + 1,
            CASE WHEN p IS NOT NULL THEN 2147483647 END),
        least(greatest(deltaic_substring_start(s, p) + n - greatest(deltaic_substring_start(s, p), 0),
            CASE WHEN n IS NOT NULL THEN 0 END), CASE WHEN n IS NOT NULL THEN 2147483647 END))""",
    "deltaic_position(part, s, start)": """CASE WHEN start IS NULL THEN 0
        WHEN part IS NULL OR s IS NULL THEN NULL
        WHEN start < 1 THEN 0
        WHEN part = '' THEN 1 WHEN start > length(s) + 1 OR strpos(substring(s, start), part) = 0 THEN 0
        ELSE strpos(substring(s, start), part) + start - 1 END""",
    # Reverses code points; DuckDB's own `reverse` keeps graphemes together.
    "deltaic_reverse(s)": """CASE WHEN strlen(s) = length(s) THEN reverse(s)
        ELSE array_to_string(list_reverse(list_transform(range(1, length(s) + 1),
            lambda deltaic_i: substring(s, deltaic_i, 1))), '') END""",
    "deltaic_split_part(s, d, n)": """CASE WHEN s IS NULL OR d IS NULL OR n IS NULL THEN NULL
        WHEN n = 0 THEN error('[INVALID_INDEX_OF_ZERO] The index 0 is invalid.')
        WHEN d = '' THEN CASE WHEN n IN (1, -1) THEN s ELSE '' END ELSE split_part(s, d, n) END""",
    "deltaic_substring_index(s, d, n)": """CASE WHEN s IS NULL OR d IS NULL OR n IS NULL THEN NULL
        WHEN n = 0 OR d = '' THEN CASE WHEN s IS NOT NULL AND d IS NOT NULL AND n IS NOT NULL THEN '' END
        WHEN n > 0 THEN array_to_string(string_split(s, d)[:n], d)
        ELSE array_to_string(string_split(s, d)[greatest(len(string_split(s, d)) + n + 1, 1):], d) END""",
    "deltaic_after(part, p, n)": "CAST(p AS BIGINT) + CASE WHEN n < 0 THEN length(part) ELSE n END",
    "deltaic_overlay(s, part, p, n)": """CASE
        WHEN s IS NULL OR part IS NULL OR p IS NULL OR n IS NULL THEN NULL
        WHEN p < -2147483647 OR deltaic_after(part, p, n) > 2147483647
        THEN error('[UNSUPPORTED_OVERLAY] overlay beyond the range of int')
        ELSE deltaic_substring(s, 1, p - 1) || part
            || deltaic_substring(s, deltaic_after(part, p, n), 2147483647) END""",
    "deltaic_find_in_set(part, s)": """CASE WHEN part IS NULL OR s IS NULL THEN NULL
        WHEN contains(part, ',') THEN 0
        ELSE coalesce(list_position(string_split(s, ','), part), 0) END""",
    "deltaic_log1p(a)": "CASE WHEN abs(a) < 1e-5 THEN a - a * a / 2 + a * a * a / 3 ELSE ln(1 + a) END",
    "deltaic_floor(a, b)": """CAST(CASE WHEN a < 0 THEN -((-CAST(a AS HUGEINT) + (b - 1)) // b)
        ELSE a // b END AS BIGINT)""",
    # Not written with `try`: DuckDB computes each row by itself once one row fails.
    "deltaic_is_day(y, m, d)": """CASE
        WHEN y BETWEEN -5877641 AND 5881579 AND m BETWEEN 1 AND 12 AND d BETWEEN 1 AND 31
        THEN d <= day(last_day(make_date(y, m, 1))) ELSE false END""",
    "deltaic_make_date(y, m, d)": """CASE WHEN y IS NULL OR m IS NULL OR d IS NULL THEN NULL
        WHEN deltaic_is_day(y, m, d) THEN make_date(y, m, d)
        ELSE error('[DATETIME_FIELD_OUT_OF_BOUNDS] Invalid date') END""",
    "deltaic_try_make_local(y, mo, d, h, mi, s)": """CASE
        WHEN y BETWEEN -290307 AND 294246 AND h BETWEEN 0 AND 23 AND mi BETWEEN 0 AND 59
        AND s >= 0 AND s <= 60 AND deltaic_is_day(y, mo, d)
        THEN make_timestamp(y, mo, d, h, mi, 0) + to_microseconds(CAST(s * 1000000 AS BIGINT)) END""",
    "deltaic_make_local(y, mo, d, h, mi, s)": """CASE
        WHEN y IS NULL OR mo IS NULL OR d IS NULL OR h IS NULL OR mi IS NULL OR s IS NULL
        THEN NULL ELSE coalesce(deltaic_try_make_local(y, mo, d, h, mi, s),
        error('[DATETIME_FIELD_OUT_OF_BOUNDS] Invalid timestamp')) END""",
    "deltaic_months_apart(a, sa, b, sb)": """CASE WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN day(a) = day(b) OR (CAST(a AS DATE) = last_day(a) AND CAST(b AS DATE) = last_day(b))
        THEN CAST((year(a) - year(b)) * 12 + month(a) - month(b) AS DOUBLE)
        ELSE CAST((year(a) - year(b)) * 12 + month(a) - month(b) AS DOUBLE)
            + CAST((day(a) - day(b)) * 86400 + sa - sb AS DOUBLE) / 2678400.0::DOUBLE END""",
    "deltaic_eight_digits(x)": "floor(x * 100000000.0::DOUBLE + 0.5::DOUBLE) / 100000000.0::DOUBLE",
    # The first n digits of a number other than zero, rounded half up from its shortest digits as Java does,
    # and the exponent of the first: 12345.0 and 3 are 123 and 4.
    "deltaic_significant(a, n)": """CASE WHEN a = 0 THEN struct_pack(d := repeat('0', n), x := 0)
        ELSE list_extract(list_transform(list_transform(list_transform(list_transform(
            [deltaic_double_to_string(abs(a))],
        lambda s: struct_pack(m := split_part(s, 'E', 1),
            e := coalesce(TRY_CAST(split_part(s, 'E', 2) AS INTEGER), 0))),
        lambda p: struct_pack(d := ltrim(replace(p.m, '.', ''), '0'),
            x := CAST(p.e + strpos(p.m, '.') - 1 - length(p.m)
                + length(ltrim(replace(p.m, '.', ''), '0')) AS INTEGER))),
        lambda q: struct_pack(d := CASE WHEN length(q.d) > n
            THEN CAST((CAST(left(q.d, n + 1) AS HUGEINT) + 5) // 10 AS VARCHAR)
            ELSE rpad(q.d, n, '0') END, x := q.x)),
        lambda r: struct_pack(d := left(r.d, n), x := CAST(r.x + length(r.d) - n AS INTEGER))), 1) END""",
    "deltaic_with_exponent(d, x)": """left(d, 1)
        || CASE WHEN length(d) > 1 THEN '.' || substring(d, 2) ELSE '' END
        || CASE WHEN x < 0 THEN 'e-' ELSE 'e+' END || printf('%02d', abs(x))""",
    "deltaic_with_point(d, x)": """CASE WHEN x < 0 THEN '0.' || repeat('0', -x - 1) || d
        ELSE left(d, x + 1) || CASE WHEN length(d) > x + 1 THEN '.' || substring(d, x + 2) ELSE '' END END""",
    "deltaic_scientific(a, places)": """CASE WHEN isnan(a) OR isinf(a) THEN deltaic_double_to_string(a)
        WHEN a IS NOT NULL THEN CASE WHEN signbit(a) THEN '-' ELSE '' END
        || list_extract(list_transform([deltaic_significant(a, places + 1)],
        lambda t: deltaic_with_exponent(t.d, t.x)), 1) END""",
    "deltaic_general(a, n)": """CASE WHEN isnan(a) OR isinf(a) THEN deltaic_double_to_string(a)
        WHEN a IS NOT NULL THEN CASE WHEN signbit(a) THEN '-' ELSE '' END
        || list_extract(list_transform([deltaic_significant(a, n)],
        lambda t: CASE WHEN t.x BETWEEN -4 AND n - 1 THEN deltaic_with_point(t.d, t.x)
            ELSE deltaic_with_exponent(t.d, t.x) END), 1) END""",
    "deltaic_divide(a, b)": "(a + sign(a) * (abs(b) // 2)) // b",
}
