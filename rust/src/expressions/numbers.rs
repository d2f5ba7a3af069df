//! Formats numbers as text: as Java's `Double.toString`, with fixed decimal places, in other bases.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, StringBuilder};
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use super::arguments::Arguments;
use super::failure;
use crate::error::Result;

/// Returns the square root of the sum of two squares, without intermediate overflow.
pub fn hypot(given: &Arguments) -> Result<ArrayRef> {
    Ok(Arc::new(arrow::compute::binary::<_, _, _, Float64Type>(
        &given.doubles(0)?,
        &given.doubles(1)?,
        f64::hypot,
    )?))
}

/// Evaluates `conv(digits, from, to)`: a whole number of 64 bits from one base to another; a negative `to`
/// reads it as signed.
///
/// Parsing ends at the first character that is no digit of the base. More than 64 bits raise
/// ARITHMETIC_OVERFLOW.
pub fn conv(given: &Arguments) -> Result<ArrayRef> {
    let (values, from, to) = (given.text(0)?, given.integers(1)?, given.integers(2)?);
    let mut out = StringBuilder::with_capacity(given.rows(), 8 * given.rows());
    for row in 0..given.rows() {
        let null = values.is_null(row) || from.is_null(row) || to.is_null(row);
        let bases = |base: i32| (2..=36).contains(&base);
        if null || !bases(from.value(row)) || !bases(to.value(row).saturating_abs()) {
            out.append_null();
            continue;
        }
        match converted(values.value(row).trim_matches(' '), from.value(row) as u32, to.value(row))? {
            Some(text) => out.append_value(text),
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn converted(text: &str, from: u32, to: i32) -> Result<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    let (minus, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let mut value = 0_u64;
    for digit in digits.chars().map_while(|character| character.to_digit(from)) {
        value = value
            .checked_mul(u64::from(from))
            .and_then(|value| value.checked_add(u64::from(digit)))
            .ok_or_else(|| {
                failure("ARITHMETIC_OVERFLOW", format!("Overflow in function conv() of {text}"))
            })?;
    }
    let mut negative = minus;
    if minus && to > 0 {
        value = if (value as i64) < 0 { u64::MAX } else { value.wrapping_neg() };
    }
    if to < 0 && (value as i64) < 0 {
        value = value.wrapping_neg();
        negative = true;
    }
    let base = u64::from(to.unsigned_abs());
    let mut shown = Vec::new();
    loop {
        shown.push(char::from_digit((value % base) as u32, base as u32).unwrap_or('0').to_ascii_uppercase());
        value /= base;
        if value == 0 {
            break;
        }
    }
    if negative && to < 0 {
        shown.push('-');
    }
    Ok(Some(shown.into_iter().rev().collect()))
}

/// Formats doubles as Java 19's `Double.toString`: with the fewest digits, and without an exponent between
/// 1e-3 and 1e7.
pub fn double_to_string(given: &Arguments) -> Result<ArrayRef> {
    Ok(texts(&given.doubles(0)?, push_double))
}

/// Formats floats as Java's `Float.toString`.
pub fn float_to_string(given: &Arguments) -> Result<ArrayRef> {
    let array = arrow::compute::cast(given.array(0)?, &DataType::Float32)?;
    Ok(texts(array.as_primitive::<Float32Type>(), push_float))
}

fn texts<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, push: fn(T::Native, &mut String)) -> ArrayRef {
    let mut out = StringBuilder::with_capacity(values.len(), 8 * values.len());
    let mut buffer = String::new();
    for value in values {
        let Some(value) = value else {
            out.append_null();
            continue;
        };
        buffer.clear();
        push(value, &mut buffer);
        out.append_value(&buffer);
    }
    Arc::new(out.finish())
}

/// Appends a double as Java writes it.
pub fn push_double(value: f64, out: &mut String) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let mut shown = format!("{value:e}");
    // Java writes at least two digits, the nearest to the number: 4.9E-324, although 5E-324 is enough.
    if is_one_digit(&shown) {
        let two = format!("{value:.1e}");
        if two.parse() == Ok(value) {
            shown = two;
        }
    }
    push_java(&shown, out);
}

/// Appends a float as Java writes it.
pub fn push_float(value: f32, out: &mut String) {
    if !value.is_finite() {
        return push_double(f64::from(value), out);
    }
    let mut shown = format!("{value:e}");
    if is_one_digit(&shown) {
        let two = format!("{value:.1e}");
        if two.parse() == Ok(value) {
            shown = two;
        }
    }
    push_java(&shown, out);
}

fn is_one_digit(shown: &str) -> bool {
    !shown.contains('.')
}

/// Appends a number, given in Rust's scientific notation, as Java writes it: `-1.25E-7` for `-1.25e-7`.
fn push_java(shown: &str, out: &mut String) {
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((shown, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    // At most 17 digits, so no memory is allocated.
    let mut buffer = [0_u8; 24];
    let mut length = 0;
    for digit in mantissa.bytes().filter(u8::is_ascii_digit).take(buffer.len()) {
        buffer[length] = digit;
        length += 1;
    }
    let digits = match std::str::from_utf8(&buffer[..length]).unwrap_or_default().trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    out.push_str(sign);
    if !(-3..7).contains(&exponent) {
        let rest = &digits[1..];
        out.push_str(&digits[..1]);
        out.push('.');
        out.push_str(if rest.is_empty() { "0" } else { rest });
        out.push('E');
        return out.push_str(&exponent.to_string());
    }
    if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        return out.push_str(digits);
    }
    let whole = exponent as usize + 1;
    let (before, after) = digits.split_at(whole.min(digits.len()));
    out.push_str(before);
    out.extend(std::iter::repeat_n('0', whole - before.len()));
    out.push('.');
    out.push_str(if after.is_empty() { "0" } else { after });
}

/// Evaluates `fixed(number, places, rounding)`: a double with a fixed number of places. `half_up` rounds its
/// shortest digits as `java.util.Formatter`, `half_even` rounds the exact number as
/// `java.text.DecimalFormat`.
pub fn fixed(given: &Arguments) -> Result<ArrayRef> {
    let (values, places, modes) = (given.doubles(0)?, given.integers(1)?, given.text(2)?);
    let mut out = StringBuilder::with_capacity(values.len(), 8 * values.len());
    for row in 0..given.rows() {
        if values.is_null(row) || places.is_null(row) {
            out.append_null();
            continue;
        }
        let (value, places) = (values.value(row), places.value(row).clamp(0, 1000) as usize);
        if value.is_nan() {
            out.append_value("NaN");
        } else if value.is_infinite() {
            out.append_value(if value > 0.0 { "Infinity" } else { "-Infinity" });
        } else if modes.is_valid(row) && modes.value(row) == "half_up" {
            out.append_value(half_up(value, places));
        } else {
            out.append_value(format!("{value:.places$}")); // exact, half to even
        }
    }
    Ok(Arc::new(out.finish()))
}

/// Rounds the shortest digits of a double half up to a number of places.
fn half_up(value: f64, places: usize) -> String {
    let shown = format!("{}", value.abs());
    let (whole, fraction) = shown.split_once('.').unwrap_or((&shown, ""));
    let mut digits: Vec<u8> =
        whole.bytes().chain(fraction.bytes().chain(std::iter::repeat(b'0')).take(places)).collect();
    if fraction.as_bytes().get(places).is_some_and(|&next| next >= b'5') {
        up(&mut digits);
    }
    let mut out = String::with_capacity(digits.len() + 2);
    if value.is_sign_negative() {
        out.push('-');
    }
    let point = digits.len() - places;
    for (place, digit) in digits.iter().enumerate() {
        if place == point {
            out.push('.');
        }
        out.push(char::from(*digit));
    }
    out
}

/// Evaluates `format_number(number, places)`: rounds half to even, and puts commas between groups of three
/// digits. Null for negative places.
pub fn format_number(given: &Arguments) -> Result<ArrayRef> {
    let (values, places) = (given.array(0)?, given.integers(1)?);
    let is_double = matches!(values.data_type(), DataType::Float32 | DataType::Float64);
    let doubles = if is_double { Some(given.doubles(0)?) } else { None };
    let shown = if is_double { None } else { Some(given.text(0)?) };
    let mut out = StringBuilder::with_capacity(given.rows(), 16 * given.rows());
    for row in 0..given.rows() {
        if values.is_null(row) || places.is_null(row) || places.value(row) < 0 {
            out.append_null();
            continue;
        }
        let places = places.value(row).min(1000) as usize;
        let text = match (&doubles, &shown) {
            (Some(doubles), _) if doubles.value(row).is_nan() => "NaN".to_owned(),
            (Some(doubles), _) if doubles.value(row).is_infinite() => {
                if doubles.value(row) > 0.0 { "∞" } else { "-∞" }.to_owned()
            }
            (Some(doubles), _) => grouped(&format!("{:.places$}", doubles.value(row))), // exact, half to even
            (None, Some(shown)) => grouped(&half_even(shown.value(row), places)),
            (None, None) => String::new(),
        };
        out.append_value(text);
    }
    Ok(Arc::new(out.finish()))
}

/// Rounds decimal digits half to even to a number of places.
fn half_even(text: &str, places: usize) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let mut digits: Vec<u8> =
        whole.bytes().chain(fraction.bytes().chain(std::iter::repeat(b'0')).take(places)).collect();
    if let Some(next) = fraction.as_bytes().get(places) {
        let exact = *next == b'5' && fraction.as_bytes()[places + 1..].iter().all(|&digit| digit == b'0');
        let odd = digits.last().is_some_and(|last| last % 2 == 1);
        if *next > b'5' || (*next == b'5' && (!exact || odd)) {
            up(&mut digits);
        }
    }
    let point = digits.len() - places;
    let shown: String = digits.into_iter().map(char::from).collect();
    if places == 0 {
        format!("{sign}{shown}")
    } else {
        format!("{sign}{}.{}", &shown[..point], &shown[point..])
    }
}

/// Adds one to the last of the decimal digits: `199` becomes `200`.
fn up(digits: &mut Vec<u8>) {
    for place in (0..digits.len()).rev() {
        if digits[place] < b'9' {
            digits[place] += 1;
            return;
        }
        digits[place] = b'0';
    }
    digits.insert(0, b'1');
}

/// Returns `-1234567.50` with its whole part in groups: `-1,234,567.50`.
fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) =
        rest.split_once('.').map_or((rest, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut out = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases() {
        for (text, from, to, expected) in [
            ("100", 2, 10, "4"),
            ("-10", 16, -10, "-16"),
            ("-1", 10, 16, "FFFFFFFFFFFFFFFF"),
            ("ff", 16, 10, "255"),
            ("12x9", 10, 10, "12"),
            ("x", 10, 10, "0"),
            ("18446744073709551615", 10, -10, "-1"),
        ] {
            assert_eq!(converted(text, from, to).unwrap().as_deref(), Some(expected), "{text}");
        }
        assert!(converted("18446744073709551616", 10, 10).is_err());
        assert_eq!(converted("", 10, 10).unwrap(), None);
    }

    #[test]
    fn doubles_as_java_shows_them() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (123456.789, "123456.789"),
            (1e7, "1.0E7"),
            (9999999.0, "9999999.0"),
            (0.001, "0.001"),
            (0.00012, "1.2E-4"),
            (5e-324, "4.9E-324"),
            (2e23, "2.0E23"),
            (-1.5e300, "-1.5E300"),
            (100.0, "100.0"),
        ] {
            let mut out = String::new();
            push_double(value, &mut out);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn groups() {
        assert_eq!(grouped("-1234567.50"), "-1,234,567.50");
        assert_eq!(grouped("123"), "123");
        assert_eq!(half_even("2.55", 1), "2.6");
        assert_eq!(half_even("1.25", 1), "1.2");
        assert_eq!(half_even("-99.995", 2), "-100.00");
        assert_eq!(half_even("7", 2), "7.00");
    }

    #[test]
    fn places() {
        assert_eq!(half_up(0.125, 2), "0.13");
        assert_eq!(half_up(-9.996, 2), "-10.00");
        assert_eq!(half_up(1e21, 1), "1000000000000000000000.0");
        assert_eq!(half_up(2.5, 0), "3");
    }
}
