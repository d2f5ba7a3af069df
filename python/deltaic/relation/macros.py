"""The engine's macros (prefix `deltaic_`): forms that need more than one of its own functions.

Each is plain SQL over its arguments, so it runs vectorised. `try_` macros answer NULL for what Spark could not convert; the caller adds
Spark's error. A macro's text is a pure function of nothing: `prepare` may install it any number of times.
"""

from __future__ import annotations

_SPACE = "[\\x00-\\x20\\x7f]*"  # what UTF8String.trimAll removes
_TRIMMED = "trim(s, (chr(0) || '" + "".join(map(chr, range(1, 33))) + "\x7f'))"
_ZONE_OFFSET = "(?:UTC|GMT|UT)?[+-][0-9]{1,2}(?::?[0-9]{2})?"
_DATE = f"{_SPACE}([+-]?[0-9]{{4,7}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T].*)?)?)?{_SPACE}"
_MOMENT = (
    f"(?s){_SPACE}([+-]?[0-9]{{4,6}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})"
    f"(?:[ T]([0-9]{{1,2}})(?::([0-9]{{1,2}})(?::([0-9]{{1,2}})(?:\\.([0-9]*))?(.*))?)?)?)?)?{_SPACE}"
)
_FLOAT = f"{_SPACE}[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?{_SPACE}"
_NUMBER = f"{_SPACE}[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?{_SPACE}"


def _group(pattern: str, group: int) -> str:
    return f"regexp_extract(s, '^{pattern}$', {group})"


def _part(pattern: str, group: int, default: int) -> str:
    return f"coalesce(TRY_CAST({_group(pattern, group)} AS INTEGER), {default})"


def _integral(kind: str) -> str:
    return f"CASE WHEN regexp_full_match(s, '{_SPACE}[+-]?[0-9]+{_SPACE}') THEN TRY_CAST(regexp_extract(s, '[+-]?[0-9]+') AS {kind}) END"


def _floating(kind: str) -> str:
    number = f"CAST(regexp_extract(s, '[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?') AS {kind})"
    return f"""CASE WHEN regexp_full_match(s, '{_FLOAT}') THEN TRY_{number}
        ELSE CASE lower({_TRIMMED}) WHEN 'nan' THEN CAST('nan' AS {kind})
            WHEN 'inf' THEN CAST('inf' AS {kind}) WHEN '+inf' THEN CAST('inf' AS {kind}) WHEN '-inf' THEN CAST('-inf' AS {kind})
            WHEN 'infinity' THEN CAST('inf' AS {kind}) WHEN '+infinity' THEN CAST('inf' AS {kind})
            WHEN '-infinity' THEN CAST('-inf' AS {kind}) END END"""


def _java_float(kind: str) -> str:
    """Double.toString: plain notation in [1e-3, 1e7), else one digit before the point and an exponent."""
    shown = f"CAST(abs(CAST(x AS {kind})) AS VARCHAR)"
    return f"""CASE WHEN isnan(x) THEN 'NaN' WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END
        ELSE CASE WHEN starts_with(CAST(x AS VARCHAR), '-') THEN '-' ELSE '' END || CASE WHEN x = 0 THEN '0.0'
        WHEN abs(x) >= 0.001 AND abs(x) < 10000000 THEN {shown} ELSE deltaic_scientific({shown}) END END"""


MACROS: dict[str, str] = {
    "deltaic_mantissa(shown)": """CASE WHEN shown = '5e-324' THEN '4.9' WHEN shown = '1e-45' THEN '1.4' WHEN contains(shown, 'e') THEN
        split_part(shown, 'e', 1)
        ELSE rtrim(regexp_replace(regexp_replace(shown, '^0\\.0*|\\.', ''), '^0+', ''), '0') END""",
    "deltaic_exponent(shown)": """CASE WHEN contains(shown, 'e') THEN CAST(split_part(shown, 'e', 2) AS INTEGER)
        WHEN starts_with(shown, '0.') THEN -1 - CAST(length(regexp_extract(shown, '^0\\.(0*)', 1)) AS INTEGER)
        ELSE CAST(strpos(shown, '.') AS INTEGER) - 2 END""",
    "deltaic_digits(mantissa)": """CASE WHEN contains(mantissa, '.') THEN mantissa WHEN length(mantissa) > 1
        THEN mantissa[1] || '.' || mantissa[2:] ELSE mantissa || '.0' END""",
    "deltaic_scientific(shown)": "deltaic_digits(deltaic_mantissa(shown)) || 'E' || CAST(deltaic_exponent(shown) AS VARCHAR)",
    "deltaic_double_to_string(x)": _java_float("DOUBLE"),
    "deltaic_float_to_string(x)": _java_float("FLOAT"),
    "deltaic_try_byte(s)": _integral("TINYINT"),
    "deltaic_try_short(s)": _integral("SMALLINT"),
    "deltaic_try_integer(s)": _integral("INTEGER"),
    "deltaic_try_long(s)": _integral("BIGINT"),
    "deltaic_try_double(s)": _floating("DOUBLE"),
    "deltaic_try_float(s)": _floating("FLOAT"),
    "deltaic_number_text(s)": f"CASE WHEN regexp_full_match(s, '{_NUMBER}') THEN regexp_extract(s, '[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?') END",
    "deltaic_try_boolean(s)": f"""CASE WHEN lower({_TRIMMED}) IN ('t', 'true', 'y', 'yes', '1') THEN true
        WHEN lower({_TRIMMED}) IN ('f', 'false', 'n', 'no', '0') THEN false END""",
    "deltaic_try_date(s)": f"""CASE WHEN regexp_full_match(s, '(?s){_DATE}') THEN
        try(make_date({_part("(?s)" + _DATE, 1, 0)}, {_part("(?s)" + _DATE, 2, 1)}, {_part("(?s)" + _DATE, 3, 1)})) END""",
    "deltaic_year_text(y)": """CASE WHEN y > 9999 THEN '+' || CAST(y AS VARCHAR) WHEN y >= 0 THEN lpad(CAST(y AS VARCHAR), 4, '0')
        ELSE '-' || lpad(CAST(-y AS VARCHAR), 4, '0') END""",
    "deltaic_date_to_string(d)": """CASE WHEN d >= DATE '0001-01-01' AND d <= DATE '9999-12-31' THEN CAST(d AS VARCHAR)
        ELSE deltaic_year_text(year(d)) || '-' || lpad(CAST(month(d) AS VARCHAR), 2, '0') || '-' || lpad(CAST(day(d) AS VARCHAR), 2, '0')
            END""",
    "deltaic_local_to_string(t)": """CASE WHEN t >= TIMESTAMP '0001-01-01' AND t < TIMESTAMP '10000-01-01' THEN CAST(t AS VARCHAR)
        ELSE deltaic_date_to_string(CAST(t AS DATE)) || ' ' || CAST(CAST(t AS TIME) AS VARCHAR) END""",
    "deltaic_local_time(s)": f"""try(CASE WHEN {_part(_MOMENT, 4, 0)} < 24 AND {_part(_MOMENT, 6, 0)} < 60 THEN
        make_timestamp({_part(_MOMENT, 1, 0)}, {_part(_MOMENT, 2, 1)}, {_part(_MOMENT, 3, 1)}, {_part(_MOMENT, 4, 0)}, {
        _part(_MOMENT, 5, 0)
    },
            CAST({_part(_MOMENT, 6, 0)} AS DOUBLE)) + to_microseconds(CAST(left(rpad({_group(_MOMENT, 7)}, 6, '0'), 6) AS INTEGER)) END)""",
    "deltaic_zone_text(s)": f"trim({_group(_MOMENT, 8)})",
    "deltaic_offset_seconds(z)": """(CASE WHEN contains(z, '-') THEN -1 ELSE 1 END)
        * (coalesce(TRY_CAST(regexp_extract(z, '[+-]([0-9]{1,2})', 1) AS BIGINT), 0) * 3600
        + coalesce(TRY_CAST(regexp_extract(z, '[+-][0-9]{1,2}:?([0-9]{2})', 1) AS BIGINT), 0) * 60)""",
    "deltaic_is_offset(z)": f"(regexp_full_match(z, '{_ZONE_OFFSET}') AND abs(deltaic_offset_seconds(z)) <= 64800)",
    "deltaic_is_time_only(s)": f"regexp_full_match(s, '(?s){_SPACE}T?[0-9]{{1,2}}:.*')",
    # Java's rule for a local time that comes twice is the earlier instant; the engine's own is the later one.
    "deltaic_instant(t, zone)": """CASE WHEN timezone(zone, timezone(zone, t - INTERVAL 1 DAY) + INTERVAL 24 HOUR) = t
        THEN least(timezone(zone, t - INTERVAL 1 DAY) + INTERVAL 24 HOUR, timezone(zone, t)) ELSE timezone(zone, t) END""",
    "deltaic_same_offset(start, t, zone)": "make_timestamptz(epoch_us(start) + epoch_us(t) - epoch_us(timezone(zone, start)))",
    "deltaic_moved(start, t, zone)": """CASE WHEN timezone(zone, deltaic_same_offset(start, t, zone)) = t THEN deltaic_same_offset(start,
        t, zone)
        ELSE deltaic_instant(t, zone) END""",
    # Java's until: the engine's datesub takes the last day of a short month for the 31st.
    "deltaic_packed(d)": "((year(d) * 12 + month(d)) * 32 + day(d))",
    "deltaic_last_whole(a, b)": """CAST(b AS DATE) + CASE
        WHEN CAST(b AS DATE) > CAST(a AS DATE) AND CAST(b AS TIME) < CAST(a AS TIME) THEN -1
        WHEN CAST(b AS DATE) < CAST(a AS DATE) AND CAST(b AS TIME) > CAST(a AS TIME) THEN 1 ELSE 0 END""",
    "deltaic_months(a, b)": "CAST(trunc((deltaic_packed(deltaic_last_whole(a, b)) - deltaic_packed(CAST(a AS DATE))) / 32) AS BIGINT)",
    "deltaic_utc(t)": "make_timestamptz(epoch_us(t))",
    "deltaic_utc_local(t)": "make_timestamp(epoch_us(t))",
    "deltaic_is_region(z)": "regexp_full_match(z, '[A-Za-z]+/[A-Za-z0-9_+/-]+')",
    "deltaic_try_local(s)": f"""CASE WHEN NOT regexp_full_match(s, '{_MOMENT}') THEN NULL
        WHEN deltaic_zone_text(s) IN ('', 'Z', 'UTC', 'GMT', 'UT') OR deltaic_is_offset(deltaic_zone_text(s))
            OR deltaic_is_region(deltaic_zone_text(s)) THEN deltaic_local_time(s) END""",
    "deltaic_zoned(s, z, zone)": """CASE WHEN z = '' THEN CASE WHEN zone = 'UTC' THEN deltaic_utc(deltaic_local_time(s)) ELSE
        deltaic_instant(deltaic_local_time(s), zone) END
        WHEN z IN ('Z', 'UTC', 'GMT', 'UT') THEN deltaic_utc(deltaic_local_time(s))
        WHEN deltaic_is_offset(z) THEN make_timestamptz(epoch_us(deltaic_local_time(s)) - 1000000 * deltaic_offset_seconds(z))
        WHEN deltaic_is_region(z) THEN deltaic_instant(deltaic_local_time(s), CASE WHEN deltaic_is_region(z) THEN z ELSE 'UTC' END) END""",
    "deltaic_try_instant(s, zone)": f"""CASE WHEN deltaic_is_time_only(s) THEN
        error('[UNSUPPORTED_TIME] a time without a date, ' || s)
        WHEN regexp_full_match(s, '{_MOMENT}') THEN deltaic_zoned(s, deltaic_zone_text(s), zone) END""",
    "deltaic_power(a, b)": """CASE WHEN isnan(b) OR (abs(a) = 1 AND isinf(b)) THEN CASE WHEN a IS NOT NULL THEN CAST('nan' AS DOUBLE) END
        ELSE pow(a, b) END""",
    "deltaic_substring_start(s, p)": "CAST(CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(s) + p WHEN p = 0 THEN 0 END AS BIGINT)",
    "deltaic_substring(s, p, n)": """substring(s,
        least(greatest(deltaic_substring_start(s, p), CASE WHEN p IS NOT NULL THEN 0 END) + 1, CASE WHEN p IS NOT NULL THEN 2147483647 END),
        least(greatest(deltaic_substring_start(s, p) + n - greatest(deltaic_substring_start(s, p), 0), CASE WHEN n IS NOT NULL THEN 0 END),
        CASE WHEN n IS NOT NULL THEN 2147483647 END))""",
    "deltaic_position(part, s, start)": """CASE WHEN start IS NULL THEN 0 WHEN part IS NULL OR s IS NULL THEN NULL
        WHEN start < 1 THEN 0
        WHEN part = '' THEN 1 WHEN start > length(s) + 1 OR strpos(substring(s, start), part) = 0 THEN 0
        ELSE strpos(substring(s, start), part) + start - 1 END""",
    # Code points, where the engine's own reverse keeps graphemes together.
    "deltaic_reverse(s)": """CASE WHEN strlen(s) = length(s) THEN reverse(s)
        ELSE array_to_string(list_reverse(list_transform(range(1, length(s) + 1), lambda deltaic_i: substring(s, deltaic_i, 1))), '')
            END""",
    "deltaic_split_part(s, d, n)": """CASE WHEN s IS NULL OR d IS NULL OR n IS NULL THEN NULL
        WHEN n = 0 THEN error('[INVALID_INDEX_OF_ZERO] The index 0 is invalid.')
        WHEN d = '' THEN CASE WHEN n IN (1, -1) THEN s ELSE '' END ELSE split_part(s, d, n) END""",
    "deltaic_substring_index(s, d, n)": """CASE WHEN s IS NULL OR d IS NULL OR n IS NULL THEN NULL WHEN n = 0 OR d = '' THEN
        CASE WHEN s IS NOT NULL AND d IS NOT NULL AND n IS NOT NULL THEN '' END
        WHEN n > 0 THEN array_to_string(string_split(s, d)[:n], d) ELSE array_to_string(string_split(s, d)[greatest(len(string_split(s,
            d)) + n + 1, 1):], d) END""",
    "deltaic_after(part, p, n)": "CAST(p AS BIGINT) + CASE WHEN n < 0 THEN length(part) ELSE n END",
    "deltaic_overlay(s, part, p, n)": """CASE WHEN s IS NULL OR part IS NULL OR p IS NULL OR n IS NULL THEN NULL
        WHEN p < -2147483647 OR deltaic_after(part, p, n) > 2147483647 THEN error('[UNSUPPORTED_OVERLAY] overlay beyond the range of int')
        ELSE deltaic_substring(s, 1, p - 1) || part || deltaic_substring(s, deltaic_after(part, p, n), 2147483647) END""",
    "deltaic_find_in_set(part, s)": """CASE WHEN part IS NULL OR s IS NULL THEN NULL WHEN contains(part, ',') THEN 0
        ELSE coalesce(list_position(string_split(s, ','), part), 0) END""",
    "deltaic_log1p(a)": "CASE WHEN abs(a) < 1e-5 THEN a - a * a / 2 + a * a * a / 3 ELSE ln(1 + a) END",
    "deltaic_floor(a, b)": "CAST(CASE WHEN a < 0 THEN -((-CAST(a AS HUGEINT) + (b - 1)) // b) ELSE a // b END AS BIGINT)",
    "deltaic_make_date(y, m, d)": """CASE WHEN y IS NULL OR m IS NULL OR d IS NULL THEN NULL
        ELSE coalesce(try(make_date(y, m, d)), error('[DATETIME_FIELD_OUT_OF_BOUNDS] Invalid date')) END""",
    "deltaic_make_local(y, mo, d, h, mi, s)": """CASE WHEN y IS NULL OR mo IS NULL OR d IS NULL OR h IS NULL OR mi IS NULL OR s IS NULL
        THEN NULL
        ELSE coalesce(try(CASE WHEN h >= 0 AND h < 24 AND s >= 0 AND s <= 60 THEN make_timestamp(y, mo, d, h, mi, 0)
            + to_microseconds(CAST(s * 1000000 AS BIGINT)) END), error('[DATETIME_FIELD_OUT_OF_BOUNDS] Invalid timestamp')) END""",
    "deltaic_months_between(a, sa, b, sb)": """CASE WHEN a IS NULL OR b IS NULL THEN NULL
        WHEN day(a) = day(b) OR (CAST(a AS DATE) = last_day(a) AND CAST(b AS DATE) = last_day(b))
        THEN CAST((year(a) - year(b)) * 12 + month(a) - month(b) AS DOUBLE)
        ELSE floor((CAST((year(a) - year(b)) * 12 + month(a) - month(b) AS DOUBLE)
            + CAST((day(a) - day(b)) * 86400 + sa - sb AS DOUBLE) / 2678400.0::DOUBLE) * 100000000.0::DOUBLE + 0.5::DOUBLE) /
                100000000.0::DOUBLE END""",
    "deltaic_divide(a, b)": "(a + sign(a) * (abs(b) // 2)) // b",
}
