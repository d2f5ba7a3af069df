//! Casts text to numbers, booleans, dates and timestamps; null where Spark's cast fails.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};

use super::arguments::Arguments;
use super::failure;
use super::zones;
use crate::error::Result;

const DAY: i64 = 86_400_000_000;

/// Removes the characters that Spark's casts ignore at both ends.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|character: char| character <= ' ' || character == '\x7f')
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Casts text to whole numbers. The second argument is their number of bits.
pub fn whole(given: &Arguments) -> Result<ArrayRef> {
    let (texts, bits) = (given.text(0)?, given.integers(1)?);
    let least = if given.rows() > 0 { i64::MIN >> (64 - bits.value(0)) } else { 0 };
    let numbers = texts.iter().map(|text| {
        let text = trimmed(text?);
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let number = if is_digits(digits) { text.parse::<i64>().ok()? } else { return None };
        (least <= number && number <= -(least + 1)).then_some(number)
    });
    Ok(Arc::new(numbers.collect::<Int64Array>()))
}

/// Returns the text of a number that Rust parses as Java does, or `None` for any other text.
pub(super) fn float_text(text: &str) -> Option<&str> {
    let text = trimmed(text);
    let (body, unsigned) = (text, text.strip_prefix(['+', '-']).unwrap_or(text));
    if unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        let body = body.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(body);
        let mantissa = unsigned.split(['e', 'E', 'f', 'F', 'd', 'D']).next().unwrap_or_default();
        let proper = mantissa.bytes().any(|byte| byte.is_ascii_digit())
            && mantissa.bytes().filter(|&byte| byte == b'.').count() <= 1;
        return proper.then_some(body);
    }
    let named = ["nan", "inf", "infinity"].iter().position(|name| unsigned.eq_ignore_ascii_case(name))?;
    (named > 0 || unsigned.len() == body.len()).then_some(body)
}

/// Casts text to doubles.
pub fn double(given: &Arguments) -> Result<ArrayRef> {
    let texts = given.text(0)?;
    Ok(Arc::new(texts.iter().map(|text| float_text(text?)?.parse::<f64>().ok()).collect::<Float64Array>()))
}

/// Casts text to floats.
pub fn float(given: &Arguments) -> Result<ArrayRef> {
    let texts = given.text(0)?;
    Ok(Arc::new(texts.iter().map(|text| float_text(text?)?.parse::<f32>().ok()).collect::<Float32Array>()))
}

/// Casts text to booleans: `t true y yes 1` and `f false n no 0`, in any case.
pub fn boolean(given: &Arguments) -> Result<ArrayRef> {
    let texts = given.text(0)?;
    let is_one = |text: &str, of: [&str; 5]| of.iter().any(|word| text.eq_ignore_ascii_case(word));
    let values = texts.iter().map(|text| match trimmed(text?) {
        yes if is_one(yes, ["t", "true", "y", "yes", "1"]) => Some(true),
        no if is_one(no, ["f", "false", "n", "no", "0"]) => Some(false),
        _ => None,
    });
    Ok(Arc::new(values.collect::<BooleanArray>()))
}

/// Returns the number of up to `most` digits at the beginning, and the rest of the text. `None` for fewer
/// than `least` digits.
fn digits(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if length < least { None } else { Some((text[..length].parse().ok()?, &text[length..])) }
}

/// Parses `-0044-3-15...`: returns year, month and day (1 if missing), the rest of the text, and the number
/// of parts.
fn date_parts(text: &str, most: usize) -> Option<((i64, i64, i64), &str, usize)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (year, rest) = digits(unsigned, 4, most)?;
    let year = if text.starts_with('-') { -year } else { year };
    let Some(after) = rest.strip_prefix('-') else { return Some(((year, 1, 1), rest, 1)) };
    let (month, rest) = digits(after, 1, 2)?;
    let Some(after) = rest.strip_prefix('-') else { return Some(((year, month, 1), rest, 2)) };
    let (day, rest) = digits(after, 1, 2)?;
    Some(((year, month, day), rest, 3))
}

/// Returns the days since 1970 in the proleptic Gregorian calendar, or `None` for a day that does not exist.
fn days((year, month, day): (i64, i64, i64)) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day < 1 || day > length {
        return None;
    }
    // Years begin in March here, so that the leap day is the last day of a year.
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Casts text to dates. Text after a space or a `T` after the day is ignored.
pub fn date(given: &Arguments) -> Result<ArrayRef> {
    let texts = given.text(0)?;
    let dates = texts.iter().map(|text| {
        let (parts, rest, count) = date_parts(trimmed(text?), 7)?;
        let whole = rest.is_empty() || (count == 3 && rest.starts_with([' ', 'T']));
        if whole { i32::try_from(days(parts)?).ok() } else { None }
    });
    Ok(Arc::new(dates.collect::<Date32Array>()))
}

/// Evaluates `make_date(year, month, day)`: null for a day that does not exist.
pub fn make_date(given: &Arguments) -> Result<ArrayRef> {
    let parts = (0..3).map(|place| given.integers(place)).collect::<Result<Vec<_>>>()?;
    let dates = (0..given.rows()).map(|row| {
        let part = |place: usize| parts[place].is_valid(row).then(|| i64::from(parts[place].value(row)));
        i32::try_from(days((part(0)?, part(1)?, part(2)?))?).ok()
    });
    Ok(Arc::new(dates.collect::<Date32Array>()))
}

/// Evaluates `make_timestamp(year, month, day, hour, minute, microseconds)`, with at most a minute of
/// microseconds: null for a time that does not exist.
pub fn make_timestamp(given: &Arguments) -> Result<ArrayRef> {
    let parts = (0..5).map(|place| given.integers(place)).collect::<Result<Vec<_>>>()?;
    let micros = given.longs(5)?;
    let moments = (0..given.rows()).map(|row| {
        let part = |place: usize| parts[place].is_valid(row).then(|| i64::from(parts[place].value(row)));
        let micros = micros
            .is_valid(row)
            .then(|| micros.value(row))
            .filter(|micros| (0..=60_000_000).contains(micros))?;
        let (hour, minute) = (
            part(3).filter(|hour| (0..24).contains(hour))?,
            part(4).filter(|minute| (0..60).contains(minute))?,
        );
        days((part(0)?, part(1)?, part(2)?))?
            .checked_mul(DAY)?
            .checked_add((hour * 60 + minute) * 60_000_000 + micros)
    });
    Ok(Arc::new(moments.collect::<TimestampMicrosecondArray>()))
}

/// Parses a text such as `2024-03-01 12:30:00 Europe/Berlin`: returns the local time in microseconds since
/// 1970, and the text of its zone, which may be empty.
fn local(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start_matches(|character: char| character <= ' ' || character == '\x7f');
    let (parts, rest, count) = date_parts(text, 6)?;
    let midnight = || days(parts)?.checked_mul(DAY);
    if trimmed(rest).is_empty() {
        return Some((midnight()?, ""));
    }
    let after = rest.strip_prefix([' ', 'T']).filter(|_| count == 3)?;
    let (hour, rest) = digits(after, 1, 2)?;
    let (mut minute, mut second, mut micros, mut zone, mut rest) = (0, 0, 0, "", rest);
    if let Some(after) = rest.strip_prefix(':') {
        (minute, rest) = digits(after, 1, 2)?;
        if let Some(after) = rest.strip_prefix(':') {
            (second, rest) = digits(after, 1, 2)?;
            if let Some(after) = rest.strip_prefix('.') {
                let length = after.bytes().take_while(u8::is_ascii_digit).count();
                let shown = &after[..length.min(6)];
                micros = if shown.is_empty() {
                    0
                } else {
                    shown.parse::<i64>().ok()? * 10_i64.pow(6 - shown.len() as u32)
                };
                rest = &after[length..];
            }
            (zone, rest) = (rest.trim_matches(' '), "");
            if trimmed(zone).is_empty() {
                zone = "";
            }
        }
    }
    if !trimmed(rest).is_empty() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let of_day = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros;
    Some((midnight()?.checked_add(of_day)?, zone))
}

/// Returns the seconds of an offset such as `+05:30` or `UTC-8`, at most 18 hours.
fn offset(zone: &str) -> Option<i64> {
    let rest = ["UTC", "GMT", "UT"].iter().find_map(|name| zone.strip_prefix(name)).unwrap_or(zone);
    let negative = rest.starts_with('-');
    let rest = rest.strip_prefix(['+', '-'])?;
    let (hours, rest) = digits(rest, 1, 2)?;
    let minutes = if rest.is_empty() {
        0
    } else {
        digits(rest.strip_prefix(':').unwrap_or(rest), 2, 2).filter(|(_, rest)| rest.is_empty())?.0
    };
    let seconds = hours * 3600 + minutes * 60;
    (seconds <= 64_800).then_some(if negative { -seconds } else { seconds })
}

fn is_utc(zone: &str) -> bool {
    matches!(zone, "Z" | "UTC" | "GMT" | "UT")
}

fn region(zone: &str) -> Option<Tz> {
    let (first, rest) = zone.split_once('/')?;
    let proper =
        !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_alphabetic()) && !rest.is_empty();
    if proper { zone.parse().ok() } else { None }
}

/// Casts text to timestamps without a zone. A zone in the text is ignored, but must be valid.
pub fn timestamp_ntz(given: &Arguments) -> Result<ArrayRef> {
    let texts = given.text(0)?;
    let moments = texts.iter().map(|text| {
        let (moment, zone) = local(text?)?;
        (zone.is_empty() || is_utc(zone) || offset(zone).is_some() || region(zone).is_some())
            .then_some(moment)
    });
    Ok(Arc::new(moments.collect::<TimestampMicrosecondArray>()))
}

/// Casts text to timestamps, in the zone of the text or of the second argument. A time without a date, which
/// means today in Spark, is an error.
pub fn timestamp(given: &Arguments) -> Result<ArrayRef> {
    let (texts, zones) = (given.text(0)?, given.text(1)?);
    let name = if given.rows() > 0 { zones.value(0) } else { "UTC" };
    let session: Tz =
        name.parse().map_err(|_| failure("UNSUPPORTED_TIME_ZONE", format!("the time zone {name}")))?;
    moments(&texts, name == "UTC", &session).map(|moments| Arc::new(moments.with_timezone("UTC")) as ArrayRef)
}

fn moments(texts: &StringArray, utc: bool, session: &Tz) -> Result<TimestampMicrosecondArray> {
    let mut out = Vec::with_capacity(texts.iter().len());
    for text in texts {
        let Some(text) = text else {
            out.push(None);
            continue;
        };
        out.push(match local(text) {
            Some((moment, "")) if utc => Some(moment),
            Some((moment, "")) => zones::instant(session, moment),
            Some((moment, zone)) if is_utc(zone) => Some(moment),
            Some((moment, zone)) => match offset(zone) {
                Some(seconds) => moment.checked_sub(seconds * 1_000_000),
                None => region(zone).and_then(|zone| zones::instant(&zone, moment)),
            },
            None if is_time_only(text) => {
                return Err(failure("UNSUPPORTED_TIME", format!("a time without a date, {text}")));
            }
            None => None,
        });
    }
    Ok(TimestampMicrosecondArray::from(out))
}

/// True if a text is a timestamp in some zone; a time alone is a timestamp of today.
pub(super) fn is_timestamp(text: &str) -> bool {
    let known =
        |zone: &str| zone.is_empty() || is_utc(zone) || offset(zone).is_some() || region(zone).is_some();
    is_time_only(text) || local(text).is_some_and(|(_, zone)| known(zone))
}

/// True for a time alone: `12:30`, `T12:30:00`.
fn is_time_only(text: &str) -> bool {
    let text = trimmed(text);
    let text = text.strip_prefix('T').unwrap_or(text);
    digits(text, 1, 2).is_some_and(|(_, rest)| rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_dates() {
        assert_eq!(days((1970, 1, 1)), Some(0));
        assert_eq!(days((2024, 2, 29)), Some(19_782));
        assert_eq!(days((2023, 2, 29)), None);
        assert_eq!(days((1, 1, 1)), Some(-719_162));
        assert_eq!(days((9999, 12, 31)), Some(2_932_896));
        assert_eq!(days((-4, 3, 1)), days((-4, 2, 29)).map(|day| day + 1));
    }

    #[test]
    fn local_times() {
        assert_eq!(local("1970-01-01 00:00:01.5"), Some((1_500_000, "")));
        assert_eq!(local(" 1970-1-2T3 "), Some((DAY + 3 * 3_600_000_000, "")));
        assert_eq!(local("1970-01-01 00:00:00 +01:00"), Some((0, "+01:00")));
        assert_eq!(local("1970"), Some((0, "")));
        assert_eq!(local("1970-01-01 24:00:00"), None);
        assert_eq!(local("1970-01-01T"), None);
        assert_eq!(local("70-01-01"), None);
    }

    #[test]
    fn offsets() {
        for (text, seconds) in [
            ("+05:30", Some(19_800)),
            ("UTC-8", Some(-28_800)),
            ("+0530", Some(19_800)),
            ("+19:00", None),
            ("5", None),
        ] {
            assert_eq!(offset(text), seconds, "{text}");
        }
    }

    #[test]
    fn numbers() {
        for (text, shown) in [
            ("1.5f", Some("1.5")),
            (" -2e3 ", Some("-2e3")),
            (".", None),
            ("1e", Some("1e")),
            ("NaN", Some("NaN")),
            ("+nan", None),
        ] {
            assert_eq!(float_text(text), shown, "{text}");
        }
    }
}
