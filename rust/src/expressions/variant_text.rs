//! Variants as JSON, as Spark's `to_json` writes them.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, StringBuilder};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::NaiveDateTime;
use parquet_variant::Variant;

use super::arguments::Arguments;
use super::failure;
use super::json::push_quoted;
use super::numbers::{push_double, push_float};
use super::variant::{each_at, whole_of};
use super::variant_bytes::{Variants, digits_of, unknown};
use super::variant_limits::{Limits, check_bytes};
use super::zones;
use crate::error::Result;

/// Returns a decimal without zeros at its end: 1.5, 100.
fn plain(mut digits: i128, mut scale: u8) -> String {
    while scale > 0 && digits % 10 == 0 {
        digits /= 10;
        scale -= 1;
    }
    if scale == 0 {
        return digits.to_string();
    }
    let shown = format!("{:0>1$}", digits.unsigned_abs(), usize::from(scale) + 1);
    let (before, behind) = shown.split_at(shown.len() - usize::from(scale));
    format!("{}{before}.{behind}", if digits < 0 { "-" } else { "" })
}

/// Returns the session's time zone, which is the same in all rows.
pub(super) fn zone_of(given: &Arguments, place: usize) -> Result<Tz> {
    let zones = given.text(place)?;
    let zone = if given.rows() > 0 { zones.value(0) } else { "UTC" };
    zone.parse().map_err(|_| failure("UNSUPPORTED_TIME_ZONE", format!("the time zone {zone}")))
}

/// Evaluates `variant_to_json(variant, zone)`: the JSON of a variant.
pub fn to_json(given: &Arguments) -> Result<ArrayRef> {
    let (values, zone) = (Variants::new(given.array(0)?)?, zone_of(given, 1)?);
    let mut out = StringBuilder::with_capacity(given.rows(), 16 * given.rows());
    let mut buffer = String::new();
    for value in values.iter() {
        match value? {
            Some(value) => {
                buffer.clear();
                push(&value, &zone, &mut Limits::of(&value), &mut buffer)?;
                out.append_value(&buffer);
            }
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// Evaluates `variant_to_text(variant, zone [, path])`: the cast to a string: text as it is, arrays and
/// objects as JSON, times as in SQL, and null for JSON's null.
pub fn to_text(given: &Arguments) -> Result<ArrayRef> {
    let (values, zone) = (Variants::new(given.array(0)?)?, zone_of(given, 1)?);
    let mut out = StringBuilder::with_capacity(given.rows(), 16 * given.rows());
    let mut buffer = String::new();
    for value in each_at(&values, given, 2)? {
        buffer.clear();
        match value? {
            None | Some(Variant::Null) => {
                out.append_null();
                continue;
            }
            Some(value @ (Variant::List(_) | Variant::Object(_))) => {
                push(&value, &zone, &mut Limits::of(&value), &mut buffer)?;
            }
            Some(Variant::TimestampMicros(moment)) => {
                let offset = zones::offset(&zone, &moment.naive_utc());
                push_moment(moment.naive_utc() + chrono::Duration::seconds(i64::from(offset)), &mut buffer);
            }
            Some(Variant::Binary(bytes)) => buffer.push_str(std::str::from_utf8(bytes).map_err(|_| {
                failure("INVALID_UTF8_STRING", "the bytes of a variant are no text in UTF-8")
            })?),
            Some(value) => push_scalar(&value, &zone, &mut buffer)?,
        }
        out.append_value(&buffer);
    }
    Ok(Arc::new(out.finish()))
}

/// Appends a value as JSON.
pub(super) fn push(value: &Variant, zone: &Tz, limits: &mut Limits, out: &mut String) -> Result<()> {
    match value {
        Variant::List(items) => {
            limits.enter(items.len())?;
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                push(&item, zone, limits, out)?;
            }
            out.push(']');
            limits.leave();
        }
        Variant::Object(object) => {
            limits.enter(object.len())?;
            out.push('{');
            for (place, (name, item)) in object.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                push_quoted(name, out);
                out.push(':');
                push(&item, zone, limits, out)?;
            }
            out.push('}');
            limits.leave();
        }
        Variant::Null => out.push_str("null"),
        Variant::String(text) => push_quoted(text, out),
        Variant::ShortString(text) => push_quoted(text.as_str(), out),
        _ => {
            let start = out.len();
            push_scalar(value, zone, out)?;
            let bare = matches!(value, Variant::BooleanTrue | Variant::BooleanFalse)
                || (out.ends_with(|last: char| last.is_ascii_digit())
                    && !matches!(
                        value,
                        Variant::Date(_)
                            | Variant::TimestampMicros(_)
                            | Variant::TimestampNtzMicros(_)
                            | Variant::Uuid(_)
                            | Variant::Binary(_)
                    ));
            if !bare {
                out.insert(start, '"');
                out.push('"');
            }
        }
    }
    check_bytes(out.len())
}

fn push_moment(local: NaiveDateTime, out: &mut String) {
    let shown = local.format("%Y-%m-%d %H:%M:%S%.6f").to_string();
    out.push_str(shown.trim_end_matches('0').trim_end_matches('.'));
}

/// Appends a value that is no array and no object, without quotes.
pub(super) fn push_scalar(value: &Variant, zone: &Tz, out: &mut String) -> Result<()> {
    match value {
        Variant::BooleanTrue => out.push_str("true"),
        Variant::BooleanFalse => out.push_str("false"),
        Variant::Double(number) => push_double(*number, out),
        Variant::Float(number) => push_float(*number, out),
        Variant::String(text) => out.push_str(text),
        Variant::ShortString(text) => out.push_str(text.as_str()),
        Variant::Uuid(id) => out.push_str(&id.to_string()),
        Variant::Binary(bytes) => STANDARD.encode_string(bytes, out),
        Variant::Date(day) => out.push_str(&day.format("%Y-%m-%d").to_string()),
        Variant::TimestampNtzMicros(moment) => push_moment(*moment, out),
        Variant::TimestampMicros(moment) => {
            let offset = zones::offset(zone, &moment.naive_utc());
            push_moment(moment.naive_utc() + chrono::Duration::seconds(i64::from(offset)), out);
            let (sign, size) = (if offset < 0 { '-' } else { '+' }, offset.abs());
            out.push_str(&format!("{sign}{:02}:{:02}", size / 3600, size / 60 % 60));
        }
        other => match (digits_of(other), whole_of(other)) {
            (Some((digits, scale)), _) => out.push_str(&plain(digits, scale)),
            (_, Some(number)) => out.push_str(&number.to_string()),
            _ => return Err(unknown()),
        },
    }
    Ok(())
}
