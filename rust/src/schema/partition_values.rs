//! Converts between values and text: PROTOCOL.md, "Partition Value Serialization". Literals of predicates use
//! the same text.
//!
//! An empty string is null for every type. Timestamps are written as ISO 8601 in UTC, and read with or
//! without a time zone; without one they are in UTC. Text that is no value of the type is an error with this
//! text.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, Decimal128Array, PrimitiveArray,
    StringArray, new_null_array,
};
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{
    DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use chrono::{DateTime, NaiveDate, Utc};

use crate::error::{Error, Kind, Result};

/// Days from 0001-01-01 (chrono's day 1) to 1970-01-01.
const EPOCH_DAYS_FROM_CE: i32 = 719_163;

/// Parses texts to an array of `data_type`. Null and empty texts become null.
pub fn parse_array(texts: &StringArray, data_type: &DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Utf8 => Arc::new(present(texts).map(|t| t.map(str::to_owned)).collect::<StringArray>()),
        DataType::Binary => Arc::new(present(texts).map(|t| t.map(str::as_bytes)).collect::<BinaryArray>()),
        DataType::Boolean => Arc::new(
            present(texts).map(|t| t.map(parse_boolean).transpose()).collect::<Result<BooleanArray>>()?,
        ),
        DataType::Int8 => primitive::<Int8Type>(texts, parse_number)?,
        DataType::Int16 => primitive::<Int16Type>(texts, parse_number)?,
        DataType::Int32 => primitive::<Int32Type>(texts, parse_number)?,
        DataType::Int64 => primitive::<Int64Type>(texts, parse_number)?,
        DataType::Float32 => primitive::<Float32Type>(texts, parse_number)?,
        DataType::Float64 => primitive::<Float64Type>(texts, parse_number)?,
        DataType::Date32 => primitive::<Date32Type>(texts, parse_date)?,
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let parsed = texts_to::<TimestampMicrosecondType>(texts, parse_timestamp)?;
            Arc::new(parsed.with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(precision, scale) => {
            let parsed = present(texts)
                .map(|t| t.map(|t| parse_decimal(t, *precision, *scale)).transpose())
                .collect::<Result<Decimal128Array>>()?;
            Arc::new(
                parsed
                    .with_precision_and_scale(*precision, *scale)
                    .map_err(|e| invalid("decimal", &e.to_string()))?,
            )
        }
        DataType::Null => new_null_array(data_type, texts.len()),
        other => {
            return Err(Error::new(Kind::UnsupportedFeature, "values of this type have no text form")
                .found(other)
                .expected("a primitive type"));
        }
    })
}

/// Writes an array as texts. A null, and an empty string, become null.
pub fn format_array(values: &dyn Array) -> Result<StringArray> {
    use arrow::array::AsArray;
    let texts = match values.data_type() {
        DataType::Utf8 => {
            return Ok(present(values.as_string::<i32>()).map(|t| t.map(str::to_owned)).collect());
        }
        DataType::Binary => {
            let mut out = Vec::with_capacity(values.len());
            for bytes in values.as_binary::<i32>() {
                out.push(match bytes {
                    None | Some([]) => None,
                    Some(bytes) => Some(String::from_utf8(bytes.to_vec()).map_err(|_| {
                        Error::new(
                            Kind::SchemaMismatch,
                            "a binary partition value must be UTF-8 to be written as text",
                        )
                        .found(format!("{bytes:?}"))
                    })?),
                });
            }
            return Ok(out.into_iter().collect());
        }
        DataType::Boolean => values.as_boolean().iter().map(|v| v.map(|v| v.to_string())).collect(),
        DataType::Int8 => display::<Int8Type>(values),
        DataType::Int16 => display::<Int16Type>(values),
        DataType::Int32 => display::<Int32Type>(values),
        DataType::Int64 => display::<Int64Type>(values),
        DataType::Float32 => values
            .as_primitive::<Float32Type>()
            .iter()
            .map(|v| v.map(|v| float_text(f64::from(v), format!("{v:?}"))))
            .collect(),
        DataType::Float64 => values
            .as_primitive::<Float64Type>()
            .iter()
            .map(|v| v.map(|v| float_text(v, format!("{v:?}"))))
            .collect(),
        DataType::Date32 => moments(values.as_primitive::<Date32Type>(), date_text, "days")?,
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let pattern = if zone.is_some() { "%Y-%m-%dT%H:%M:%S%.6fZ" } else { "%Y-%m-%d %H:%M:%S%.6f" };
            let text =
                |micros| DateTime::from_timestamp_micros(micros).map(|time| time.format(pattern).to_string());
            moments(values.as_primitive::<TimestampMicrosecondType>(), text, "microseconds")?
        }
        DataType::Decimal128(_, _) => {
            let decimals = values.as_primitive::<arrow::datatypes::Decimal128Type>();
            (0..decimals.len()).map(|i| decimals.is_valid(i).then(|| decimals.value_as_string(i))).collect()
        }
        DataType::Null => (0..values.len()).map(|_| None).collect(),
        other => {
            return Err(Error::new(Kind::UnsupportedFeature, "values of this type have no text form")
                .found(other)
                .expected("a primitive type"));
        }
    };
    Ok(StringArray::from(texts))
}

/// Parses one value to an array of length 1.
pub fn parse_scalar(text: Option<&str>, data_type: &DataType) -> Result<ArrayRef> {
    parse_array(&StringArray::from(vec![text]), data_type)
}

fn present(texts: &StringArray) -> impl Iterator<Item = Option<&str>> {
    texts.iter().map(|t| t.filter(|t| !t.is_empty()))
}

fn texts_to<T: ArrowPrimitiveType>(
    texts: &StringArray,
    parse: fn(&str) -> Result<T::Native>,
) -> Result<PrimitiveArray<T>> {
    present(texts).map(|t| t.map(parse).transpose()).collect()
}

fn primitive<T: ArrowPrimitiveType>(
    texts: &StringArray,
    parse: fn(&str) -> Result<T::Native>,
) -> Result<ArrayRef> {
    Ok(Arc::new(texts_to::<T>(texts, parse)?))
}

/// Writes dates or timestamps as texts. A value outside of the calendar is an error, as it must not become
/// null.
fn moments<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    text: impl Fn(T::Native) -> Option<String>,
    unit: &str,
) -> Result<Vec<Option<String>>>
where
    T::Native: std::fmt::Display,
{
    let beyond = |value| {
        Error::new(Kind::SchemaMismatch, "a date or timestamp is too far from today to be written as text")
            .found(format!("{value} {unit} since 1970"))
            .expected("a year from -262143 to 262142")
    };
    values
        .iter()
        .map(|value| value.map(|value| text(value).ok_or_else(|| beyond(value))).transpose())
        .collect()
}

fn display<T: ArrowPrimitiveType>(values: &dyn Array) -> Vec<Option<String>>
where
    T::Native: ToString,
{
    use arrow::array::AsArray;
    values.as_primitive::<T>().iter().map(|v| v.map(|v| v.to_string())).collect()
}

fn invalid(expected: &str, found: &str) -> Error {
    Error::protocol("text that is not a value of its column's type")
        .found(format!("{found:?}"))
        .expected(expected)
}

fn parse_boolean(text: &str) -> Result<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(invalid("true or false", text)),
    }
}

fn parse_number<N: FromStr>(text: &str) -> Result<N> {
    text.trim().parse().map_err(|_| invalid(std::any::type_name::<N>(), text))
}

fn parse_date(text: &str) -> Result<i32> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| invalid("a date yyyy-MM-dd", text))?;
    Ok(chrono::Datelike::num_days_from_ce(&date) - EPOCH_DAYS_FROM_CE)
}

fn date_text(days: i32) -> Option<String> {
    let date = NaiveDate::from_num_days_from_ce_opt(days.checked_add(EPOCH_DAYS_FROM_CE)?)?;
    Some(date.format("%Y-%m-%d").to_string())
}

/// Number of days in 400 years, after which the calendar repeats.
const DAYS_OF_CYCLE: i64 = 146_097;

/// Parses `yyyy-MM-dd[ T]HH:mm:ss[.f][zone]`, or a date alone, to microseconds; further digits are cut. A
/// year outside of 0 to 9999 has a sign: `+10000-01-01 00:00:00`.
pub fn parse_timestamp(text: &str) -> Result<i64> {
    let bad = || invalid("a timestamp yyyy-MM-dd HH:mm:ss.ffffff", text);
    let micros = |text: &str| {
        string_to_datetime(&Utc, text).map(|time: DateTime<Utc>| time.timestamp_micros()).map_err(|_| bad())
    };
    let Some(digits) = text.strip_prefix(['+', '-']) else { return micros(text) };
    // The parser accepts years of four digits only, so the same day in another cycle of 400 years is parsed,
    // and then moved.
    let (year, rest) =
        digits.split_once('-').filter(|(year, _)| (4..=6).contains(&year.len())).ok_or_else(bad)?;
    let year: i64 = if year.bytes().all(|byte| byte.is_ascii_digit()) {
        year.parse().map_err(|_| bad())?
    } else {
        return Err(bad());
    };
    let year = if text.starts_with('-') { -year } else { year };
    let near = 2000 + year.rem_euclid(400);
    let cycles = (year - near) / 400;
    let moved = (cycles * DAYS_OF_CYCLE)
        .checked_mul(86_400_000_000)
        .and_then(|far| far.checked_add(micros(&format!("{near}-{rest}")).ok()?));
    moved.ok_or_else(bad)
}

/// Parses a decimal exactly. A text with too many digits is an error.
pub fn parse_decimal(text: &str, precision: u8, scale: i8) -> Result<i128> {
    let expected = || format!("a decimal({precision},{scale})");
    let bad = || invalid(&expected(), text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| bad())?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes().first() {
        Some(b'-') => (true, &mantissa[1..]),
        Some(b'+') => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty()
        || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
    {
        return Err(bad());
    }
    let mut value: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        value =
            value.checked_mul(10).and_then(|v| v.checked_add(i128::from(digit - b'0'))).ok_or_else(bad)?;
    }
    let mut shift = i64::from(scale) + i64::from(exponent) - fraction.len() as i64;
    while shift > 0 && value != 0 {
        value = value.checked_mul(10).ok_or_else(bad)?;
        shift -= 1;
    }
    while shift < 0 && value != 0 {
        if value % 10 != 0 {
            return Err(bad());
        }
        value /= 10;
        shift += 1;
    }
    if value >= 10_i128.checked_pow(u32::from(precision)).ok_or_else(bad)? {
        return Err(bad());
    }
    Ok(if negative { -value } else { value })
}

fn float_text(value: f64, finite: String) -> String {
    match value {
        v if v.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => finite,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;

    fn round_trip(texts: &[Option<&str>], data_type: DataType) -> Vec<Option<String>> {
        let parsed = parse_array(&StringArray::from(texts.to_vec()), &data_type).unwrap();
        assert_eq!(parsed.data_type(), &data_type);
        format_array(&parsed).unwrap().iter().map(|t| t.map(str::to_owned)).collect()
    }

    #[test]
    fn empty_text_is_null_for_every_type() {
        for t in
            [DataType::Utf8, DataType::Int32, DataType::Date32, DataType::Boolean, DataType::Decimal128(5, 2)]
        {
            assert_eq!(round_trip(&[Some(""), None], t), vec![None, None]);
        }
    }

    #[test]
    fn values_survive() {
        let s = |t: &str| Some(t.to_owned());
        assert_eq!(round_trip(&[Some("-7")], DataType::Int8), vec![s("-7")]);
        assert_eq!(
            round_trip(&[Some("1e21"), Some("NaN"), Some("-Infinity")], DataType::Float64),
            vec![s("1e21"), s("NaN"), s("-Infinity")]
        );
        assert_eq!(
            round_trip(&[Some("1500-01-01"), Some("2024-02-29")], DataType::Date32),
            vec![s("1500-01-01"), s("2024-02-29")]
        );
        assert_eq!(
            round_trip(&[Some("1.50"), Some("-2E+1")], DataType::Decimal128(5, 2)),
            vec![s("1.50"), s("-20.00")]
        );
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(
            round_trip(
                &[
                    Some("2024-06-01 10:11:12"),
                    Some("1969-12-31T23:59:59.999999Z"),
                    Some("2024-06-01T10:00:00+02:00")
                ],
                utc
            ),
            vec![
                s("2024-06-01T10:11:12.000000Z"),
                s("1969-12-31T23:59:59.999999Z"),
                s("2024-06-01T08:00:00.000000Z")
            ]
        );
    }

    #[test]
    fn years_far_from_today_survive_or_are_an_error() {
        for zone in [None, Some("UTC".into())] {
            let data_type = DataType::Timestamp(TimeUnit::Microsecond, zone);
            for (micros, year) in [
                (253_402_300_800_000_000, "+10000-01-01"),
                (-62_198_755_200_000_001, "-0002-12-31"),
                (8_000_000_000_000_000_000, "+255479-"),
                (-8_000_000_000_000_000_000, "-251540-"),
            ] {
                let values = PrimitiveArray::<TimestampMicrosecondType>::from(vec![micros])
                    .with_data_type(data_type.clone());
                let texts = format_array(&values).unwrap();
                assert!(texts.value(0).starts_with(year), "{texts:?}");
                assert_eq!(
                    parse_array(&texts, &data_type).unwrap().as_primitive::<TimestampMicrosecondType>(),
                    &values
                );
            }
            let values =
                PrimitiveArray::<TimestampMicrosecondType>::from(vec![i64::MAX]).with_data_type(data_type);
            let error = format_array(&values).unwrap_err().to_string();
            let expected = "a date or timestamp is too far from today to be written as text; found \
                            9223372036854775807 microseconds since 1970; expected a year from -262143 to \
                            262142";
            assert_eq!(error, expected);
        }
        let days = PrimitiveArray::<Date32Type>::from(vec![i32::MAX]);
        assert!(format_array(&days).unwrap_err().to_string().contains("found 2147483647 days since 1970"));
        for text in [
            "+999-01-01 00:00:00",
            "+1000000-01-01 00:00:00",
            "+20024-02-30",
            "-+1000-01-01",
            "+ 1000-01-01",
            "+",
            "-",
        ] {
            assert!(parse_timestamp(text).is_err(), "{text}");
        }
    }

    #[test]
    fn wrong_text_is_an_error_and_no_digit_is_rounded() {
        for (text, t) in [
            ("300", DataType::Int8),
            ("yes", DataType::Boolean),
            ("2024-13-01", DataType::Date32),
            ("1.005", DataType::Decimal128(5, 2)),
            ("12345", DataType::Decimal128(5, 2)),
            (".", DataType::Decimal128(5, 2)),
            ("noon", DataType::Timestamp(TimeUnit::Microsecond, None)),
        ] {
            assert_eq!(parse_scalar(Some(text), &t).unwrap_err().kind(), Kind::Protocol, "{text}");
        }
        assert_eq!(
            parse_scalar(Some("1.500"), &DataType::Decimal128(3, 2))
                .unwrap()
                .as_primitive::<arrow::datatypes::Decimal128Type>()
                .value(0),
            150
        );
    }
}
