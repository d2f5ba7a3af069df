//! `to_json`: rows as JSON text, as Spark's `JacksonGenerator` writes them.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike, Timelike};

use super::arguments::Arguments;
use super::failure;
use super::json::push_quoted;
use super::numbers::{push_double, push_float};
use super::zones;
use crate::error::Result;

/// How values are written.
pub(super) struct Writing {
    /// The session's time zone.
    pub(super) zone: Tz,
    /// False to leave out the fields of structs that are null.
    pub(super) nulls: bool,
}

/// Evaluates `to_json(zone, value, nulls)`. `zone`: the session's time zone; `nulls`: 1 to write null fields.
/// Both are the same in every row.
pub fn to_json(given: &Arguments) -> Result<ArrayRef> {
    let (zones, values) = (given.text(0)?, given.array(1)?);
    let zone = if given.rows() > 0 { zones.value(0) } else { "UTC" };
    let zone: Tz =
        zone.parse().map_err(|_| failure("UNSUPPORTED_TIME_ZONE", format!("the time zone {zone}")))?;
    let writing = Writing { zone, nulls: given.rows() > 0 && given.integers(2)?.value(0) != 0 };
    let mut out = StringBuilder::with_capacity(given.rows(), 32 * given.rows());
    let mut buffer = String::new();
    for row in 0..given.rows() {
        if values.is_null(row) {
            out.append_null();
            continue;
        }
        buffer.clear();
        push(values, row, &writing, &mut buffer)?;
        out.append_value(&buffer);
    }
    Ok(Arc::new(out.finish()))
}

/// Appends one value that is not null.
pub(super) fn push(array: &ArrayRef, row: usize, how: &Writing, out: &mut String) -> Result<()> {
    match array.data_type() {
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let mut separator = '{';
            for (field, column) in
                fields.iter().zip(columns).filter(|(_, column)| how.nulls || column.is_valid(row))
            {
                out.push(separator);
                separator = ',';
                push_quoted(field.name(), out);
                out.push(':');
                push_or_null(column, row, how, out)?;
            }
            if separator == '{' {
                out.push('{');
            }
            out.push('}');
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            out.push('[');
            for place in 0..items.len() {
                if place > 0 {
                    out.push(',');
                }
                push_or_null(&items, place, how, out)?;
            }
            out.push(']');
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            out.push('{');
            for place in 0..entries.len() {
                if place > 0 {
                    out.push(',');
                }
                let mut key = String::new();
                push_key(entries.column(0), place, &mut key)?;
                push_quoted(&key, out);
                out.push(':');
                push_or_null(entries.column(1), place, how, out)?;
            }
            out.push('}');
        }
        DataType::Utf8 => push_quoted(array.as_string::<i32>().value(row), out),
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Float32 | DataType::Float64 => push_finite_or_quoted(array, row, out)?,
        DataType::Date32 => push_day(array.as_primitive::<Date32Type>().value(row), out)?,
        DataType::Timestamp(_, zone) => {
            let zone = zone.is_some().then_some(&how.zone);
            push_instant(array.as_primitive::<TimestampMicrosecondType>().value(row), zone, out)?;
        }
        _ => push_key(array, row, out)?,
    }
    Ok(())
}

/// Appends a float: NaN and the infinities, which JSON does not have as numbers, in quotes.
fn push_finite_or_quoted(array: &ArrayRef, row: usize, out: &mut String) -> Result<()> {
    let mut shown = String::new();
    push_key(array, row, &mut shown)?;
    if shown.ends_with(|last: char| last.is_ascii_digit()) {
        out.push_str(&shown)
    } else {
        push_quoted(&shown, out)
    }
    Ok(())
}

/// Appends a date, which is given in days since 1970, with its quotes: "2024-02-29".
fn push_day(days: i32, out: &mut String) -> Result<()> {
    let day = DateTime::from_timestamp(i64::from(days) * 86_400, 0)
        .ok_or_else(|| failure("UNSUPPORTED_DATE", "a date as far away as this one"))?;
    out.push('"');
    push_date(&day.naive_utc(), out);
    out.push('"');
    Ok(())
}

/// Appends a timestamp, which is given in microseconds since 1970, with its quotes:
/// "2024-02-29T12:00:00.000+01:00". `zone`: the time zone in which it is shown; `None` for a timestamp
/// without time zone.
fn push_instant(micros: i64, zone: Option<&Tz>, out: &mut String) -> Result<()> {
    let instant = DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| failure("UNSUPPORTED_TIMESTAMP", "a timestamp as far away as this one"))?
        .naive_utc();
    let offset = zone.map(|zone| zones::offset(zone, &instant));
    let local = instant + chrono::Duration::seconds(i64::from(offset.unwrap_or(0)));
    out.push('"');
    push_date(&local, out);
    for (before, number) in [('T', local.hour()), (':', local.minute()), (':', local.second())] {
        out.push(before);
        push_digits(number, 2, out);
    }
    out.push('.');
    push_digits(local.nanosecond() / 1_000_000, 3, out);
    match offset {
        None => {}
        Some(0) => out.push('Z'),
        Some(seconds) => {
            let (sign, size) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
            out.push_str(&format!("{sign}{:02}:{:02}", size / 3600, size / 60 % 60));
            if size % 60 != 0 {
                out.push_str(&format!(":{:02}", size % 60));
            }
        }
    }
    out.push('"');
    Ok(())
}

fn push_date(day: &chrono::NaiveDateTime, out: &mut String) {
    let year = day.year();
    if year > 9999 {
        out.push('+');
    } else if year < 0 {
        out.push('-');
    }
    push_digits(year.unsigned_abs(), 4, out);
    for number in [day.month(), day.day()] {
        out.push('-');
        push_digits(number, 2, out);
    }
}

/// Appends a number with at least `width` digits.
fn push_digits(number: u32, width: u32, out: &mut String) {
    let mut unit = 10_u32.pow(width - 1);
    while number / unit >= 10 {
        unit *= 10;
    }
    while unit > 0 {
        out.push(char::from(b'0' + (number / unit % 10) as u8));
        unit /= 10;
    }
}

fn push_or_null(array: &ArrayRef, row: usize, how: &Writing, out: &mut String) -> Result<()> {
    if array.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    push(array, row, how, out)
}

/// Appends a number, or a text without quotes.
pub(super) fn push_key(array: &ArrayRef, row: usize, out: &mut String) -> Result<()> {
    match array.data_type() {
        DataType::Utf8 => out.push_str(array.as_string::<i32>().value(row)),
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => out.push_str(&array.as_primitive::<Int8Type>().value(row).to_string()),
        DataType::Int16 => out.push_str(&array.as_primitive::<Int16Type>().value(row).to_string()),
        DataType::Int32 => out.push_str(&array.as_primitive::<Int32Type>().value(row).to_string()),
        DataType::Int64 => out.push_str(&array.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::Float32 => push_float(array.as_primitive::<Float32Type>().value(row), out),
        DataType::Float64 => push_double(array.as_primitive::<Float64Type>().value(row), out),
        DataType::Decimal128(_, _) => {
            out.push_str(&array.as_primitive::<Decimal128Type>().value_as_string(row))
        }
        kind => return Err(failure("UNSUPPORTED_JSON", format!("to_json of {kind}"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int32Array, StringArray, StructArray, TimestampMicrosecondArray};
    use arrow::datatypes::Field;

    use super::super::evaluate;
    use super::*;

    #[test]
    fn rows_as_text() {
        let column = |name: &str, array: ArrayRef| {
            (Arc::new(Field::new(name, array.data_type().clone(), true)), array)
        };
        let moments = TimestampMicrosecondArray::from(vec![1_717_273_840_500_000; 2]).with_timezone("UTC");
        let rows = StructArray::from(vec![
            column("a", Arc::new(Int32Array::from(vec![Some(1), None]))),
            column("b", Arc::new(StringArray::from(vec!["x\"", "y"]))),
            column("c", Arc::new(Float64Array::from(vec![f64::NAN, 1e10]))),
            column("d", Arc::new(moments)),
        ]);
        let (zones, rows): (ArrayRef, ArrayRef) =
            (Arc::new(StringArray::from(vec!["America/New_York"; 2])), Arc::new(rows));
        let written = |nulls| {
            evaluate("to_json", &[zones.clone(), rows.clone(), Arc::new(Int32Array::from(vec![nulls; 2]))])
                .unwrap()
        };
        let result = written(0);
        let texts = result.as_string::<i32>();
        assert_eq!(texts.value(0), r#"{"a":1,"b":"x\"","c":"NaN","d":"2024-06-01T16:30:40.500-04:00"}"#);
        assert_eq!(texts.value(1), r#"{"b":"y","c":1.0E10,"d":"2024-06-01T16:30:40.500-04:00"}"#);
        assert_eq!(
            written(1).as_string::<i32>().value(1),
            r#"{"a":null,"b":"y","c":1.0E10,"d":"2024-06-01T16:30:40.500-04:00"}"#
        );
    }
}
