//! Writes Arrow values as JSON text: fields of actions, and statistics from typed columns.
//!
//! Nulls in structs are omitted, nulls in maps are written. Numbers keep their digits, dates and timestamps
//! have the form of PROTOCOL.md's statistics. Binary values are omitted, as they have no statistics.

use std::fmt::Write as _;

use arrow::array::{Array, AsArray, types::ArrowPrimitiveType};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use chrono::{DateTime, NaiveDate, Utc};

use crate::error::{Error, Result};

/// True for each byte that JSON must escape in a text. A table takes one look-up for each byte: a text of
/// statistics has many quotes.
const ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escaped[byte] = true;
        byte += 1;
    }
    escaped[b'"' as usize] = true;
    escaped[b'\\' as usize] = true;
    escaped
};

/// Appends a text in quotes, as JSON.
pub fn write_text(out: &mut String, text: &str) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if !ESCAPED[byte as usize] {
            continue;
        }
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            _ => "",
        };
        out.push_str(&text[from..at]);
        from = at + 1;
        if escape.is_empty() {
            let _ = write!(out, "\\u{byte:04x}"); // writing to a String cannot fail
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[from..]);
    out.push('"');
}

/// Appends the value at `row`. Returns false, and appends nothing, if the value is null or has no JSON form.
pub fn write_value(out: &mut String, array: &dyn Array, row: usize) -> Result<bool> {
    if array.is_null(row) {
        return Ok(false);
    }
    match array.data_type() {
        DataType::Utf8 => write_text(out, array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => write_text(out, array.as_string::<i64>().value(row)),
        DataType::Utf8View => write_text(out, array.as_string_view().value(row)),
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Struct(_) => write_struct(out, array, row)?,
        DataType::Map(_, _) => write_map(out, array, row)?,
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            out.push('[');
            for item in 0..items.len() {
                if item > 0 {
                    out.push(',');
                }
                if !write_value(out, items.as_ref(), item)? {
                    out.push_str("null");
                }
            }
            out.push(']');
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Null => {
            return Ok(false);
        }
        _ => write_primitive(out, array, row)?,
    }
    Ok(true)
}

fn write_primitive(out: &mut String, array: &dyn Array, row: usize) -> Result<()> {
    fn number<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
        array.as_primitive::<T>().value(row)
    }
    match array.data_type() {
        DataType::Int8 => push(out, number::<Int8Type>(array, row)),
        DataType::Int16 => push(out, number::<Int16Type>(array, row)),
        DataType::Int32 => push(out, number::<Int32Type>(array, row)),
        DataType::Int64 => push(out, number::<Int64Type>(array, row)),
        DataType::Float32 => write_float(
            out,
            f64::from(number::<Float32Type>(array, row)),
            &format!("{:?}", number::<Float32Type>(array, row)),
        ),
        DataType::Float64 => write_float(
            out,
            number::<Float64Type>(array, row),
            &format!("{:?}", number::<Float64Type>(array, row)),
        ),
        DataType::Decimal128(_, _) => {
            out.push_str(&array.as_primitive::<Decimal128Type>().value_as_string(row))
        }
        DataType::Date32 => {
            let date =
                NaiveDate::from_epoch_days(number::<Date32Type>(array, row)).ok_or_else(|| beyond(array))?;
            push(out, format_args!("\"{}\"", date.format("%Y-%m-%d")));
        }
        DataType::Timestamp(unit, zone) => {
            let time = match unit {
                TimeUnit::Millisecond => {
                    DateTime::from_timestamp_millis(number::<TimestampMillisecondType>(array, row))
                }
                TimeUnit::Microsecond => {
                    DateTime::from_timestamp_micros(number::<TimestampMicrosecondType>(array, row))
                }
                TimeUnit::Nanosecond => {
                    Some(DateTime::from_timestamp_nanos(number::<TimestampNanosecondType>(array, row)))
                }
                TimeUnit::Second => None,
            };
            let time: DateTime<Utc> = time.ok_or_else(|| beyond(array))?;
            let zone = if zone.is_some() { "Z" } else { "" };
            push(out, format_args!("\"{}{zone}\"", time.format("%Y-%m-%dT%H:%M:%S%.6f")));
        }
        other => {
            return Err(Error::protocol("a value of the log has a type without a JSON form").found(other));
        }
    }
    Ok(())
}

fn push(out: &mut String, value: impl std::fmt::Display) {
    let _ = write!(out, "{value}"); // writing to a String cannot fail
}

fn write_float(out: &mut String, value: f64, text: &str) {
    if value.is_finite() {
        out.push_str(text);
    } else {
        push(
            out,
            format_args!(
                "\"{}\"",
                if value.is_nan() {
                    "NaN"
                } else if value > 0.0 {
                    "Infinity"
                } else {
                    "-Infinity"
                }
            ),
        );
    }
}

fn beyond(array: &dyn Array) -> Error {
    Error::protocol("a time in the log is beyond the calendar").found(array.data_type())
}

fn write_struct(out: &mut String, array: &dyn Array, row: usize) -> Result<()> {
    let array = array.as_struct();
    out.push('{');
    let start = out.len();
    for (field, column) in array.fields().iter().zip(array.columns()) {
        let before = out.len();
        if before > start {
            out.push(',');
        }
        write_text(out, field.name());
        out.push(':');
        if !write_value(out, column.as_ref(), row)? {
            out.truncate(before);
        }
    }
    out.push('}');
    Ok(())
}

fn write_map(out: &mut String, array: &dyn Array, row: usize) -> Result<()> {
    let map = array.as_map();
    let (from, to) = (map.value_offsets()[row] as usize, map.value_offsets()[row + 1] as usize);
    out.push('{');
    for entry in from..to {
        if entry > from {
            out.push(',');
        }
        let key = out.len();
        if !write_value(out, map.keys().as_ref(), entry)? || out.as_bytes().get(key) != Some(&b'"') {
            return Err(Error::protocol("a map of the log has keys that are no texts"));
        }
        out.push(':');
        if !write_value(out, map.values().as_ref(), entry)? {
            out.push_str("null");
        }
    }
    out.push('}');
    Ok(())
}
