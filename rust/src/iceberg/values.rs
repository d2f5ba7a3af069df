//! Writes values of columns in Iceberg's forms: in partition records (Avro), and as bounds ("Binary
//! single-value serialization").

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType,
};
use serde_json::{Value, json};

use super::avro;
use crate::error::{Error, Kind, Result};
use crate::log::skipping::statistics::{CUT_MICROS, Side, widen_floats};
use crate::schema::partition_values::parse_scalar;
use crate::schema::{Primitive, Type};

/// Returns the Avro type of a partition value. `id`: the field's id, for names of types, which must be unique
/// in a schema.
pub fn avro_type(data_type: &Type, id: i32) -> Result<Value> {
    let Type::Primitive(primitive) = data_type else { return Err(not_partition(data_type)) };
    Ok(match primitive {
        Primitive::Boolean => json!("boolean"),
        Primitive::Byte | Primitive::Short | Primitive::Integer => json!("int"),
        Primitive::Long => json!("long"),
        Primitive::Float => json!("float"),
        Primitive::Double => json!("double"),
        Primitive::String => json!("string"),
        Primitive::Binary => json!("bytes"),
        Primitive::Date => json!({"type": "int", "logicalType": "date"}),
        Primitive::Timestamp => {
            json!({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": true})
        }
        Primitive::TimestampNtz => {
            json!({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": false})
        }
        Primitive::Decimal(precision, scale) => json!({
            "type": "fixed", "name": format!("decimal_{precision}_{scale}_{id}"),
            "size": decimal_bytes(*precision), "logicalType": "decimal",
            "precision": precision, "scale": scale,
        }),
        Primitive::Void => return Err(not_partition(data_type)),
    })
}

fn not_partition(data_type: &Type) -> Error {
    Error::new(Kind::UnsupportedFeature, "a partition column has a type that Iceberg cannot partition by")
        .found(data_type.to_json())
}

/// Returns the smallest number of bytes that holds every decimal of this precision.
fn decimal_bytes(precision: u8) -> usize {
    let most = 10_i128.pow(u32::from(precision)) - 1;
    (1..16).find(|bytes| most < 1_i128 << (8 * bytes - 1)).unwrap_or(16)
}

/// Appends a partition value to a record: null, or the value that the text stands for.
pub fn partition(out: &mut Vec<u8>, text: Option<&str>, data_type: &Type) -> Result<()> {
    let array = parse_scalar(text, &data_type.to_arrow(false))?;
    if array.is_null(0) {
        avro::long(out, 0);
        return Ok(());
    }
    avro::long(out, 1);
    match array.data_type() {
        DataType::Boolean => out.push(u8::from(array.as_boolean().value(0))),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Date32
        | DataType::Timestamp(_, _) => {
            avro::long(out, whole(&array));
        }
        DataType::Decimal128(precision, _) => {
            let bytes = array.as_primitive::<Decimal128Type>().value(0).to_be_bytes();
            out.extend_from_slice(&bytes[16 - decimal_bytes(*precision)..]);
        }
        DataType::Float32 | DataType::Float64 => out.extend_from_slice(&single(&array)?),
        _ => avro::bytes(out, &single(&array)?),
    }
    Ok(())
}

/// Returns a bound of statistics as bytes. `None` if it is no value of the type. `was_float`: the type is a
/// double that was widened from float.
pub fn bound(stated: &str, data_type: &Type, was_float: bool, side: Side) -> Option<Vec<u8>> {
    let Type::Primitive(primitive) = data_type else { return None };
    let text = if stated.starts_with('"') {
        serde_json::from_str::<String>(stated).ok()?
    } else {
        stated.to_owned()
    };
    match primitive {
        // A text in statistics of numbers is "NaN" or an infinity, which are no safe bounds.
        Primitive::Float | Primitive::Double if stated.starts_with('"') => return None,
        Primitive::Boolean | Primitive::Binary | Primitive::Void => return None,
        Primitive::String if !stated.starts_with('"') => return None,
        _ => {}
    }
    let array = parse_scalar(Some(&text), &primitive.to_arrow()).ok()?;
    if array.is_null(0) {
        return None;
    }
    let upper = side == Side::High;
    // Files from before the widening hold floats, and their statistics have the shortest text of a float: 0.7
    // for 0.699999988079071.
    let array = if was_float { widen_floats(&array, side) } else { array };
    if let DataType::Timestamp(TimeUnit::Microsecond, _) = array.data_type() {
        let value = array.as_primitive::<TimestampMicrosecondType>().value(0);
        return Some(value.saturating_add(if upper { CUT_MICROS } else { 0 }).to_le_bytes().to_vec());
    }
    let mut bytes = single(&array).ok()?;
    // Iceberg orders -0.0 before 0.0; statistics may have either of them for both.
    let is_zero = match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().value(0) == 0.0,
        DataType::Float64 => array.as_primitive::<Float64Type>().value(0) == 0.0,
        _ => false,
    };
    if is_zero && let Some(last) = bytes.last_mut() {
        *last = if upper { 0 } else { 0x80 };
    }
    Some(bytes)
}

fn whole(array: &ArrayRef) -> i64 {
    match array.data_type() {
        DataType::Int8 => array.as_primitive::<Int8Type>().value(0).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(0).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(0).into(),
        DataType::Date32 => array.as_primitive::<Date32Type>().value(0).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(0),
        _ => array.as_primitive::<TimestampMicrosecondType>().value(0),
    }
}

/// Returns the bytes of the first value: numbers little-endian, decimals big-endian in the fewest bytes.
fn single(array: &ArrayRef) -> Result<Vec<u8>> {
    Ok(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(0).as_bytes().to_vec(),
        DataType::Binary => array.as_binary::<i32>().value(0).to_vec(),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(0).to_le_bytes().to_vec(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(0).to_le_bytes().to_vec(),
        DataType::Int64 => whole(array).to_le_bytes().to_vec(),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Date32 => {
            (whole(array) as i32).to_le_bytes().to_vec()
        }
        DataType::Decimal128(_, _) => {
            let bytes = array.as_primitive::<Decimal128Type>().value(0).to_be_bytes();
            let sign = if bytes[0] >= 0x80 { 0xff } else { 0 };
            let needed = |from: usize| {
                bytes[..from].iter().any(|&byte| byte != sign) || (bytes[from] >= 0x80) != (sign == 0xff)
            };
            let from = (0..16).rev().find(|&from| !needed(from)).unwrap_or(0);
            bytes[from..].to_vec()
        }
        other => {
            return Err(
                Error::new(Kind::UnsupportedFeature, "a value that Iceberg has no bytes for").found(other)
            );
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_the_bytes_of_the_specification() {
        let side = |upper| if upper { Side::High } else { Side::Low };
        let of = |stated: &str, primitive: Primitive, upper: bool| {
            bound(stated, &Type::Primitive(primitive), false, side(upper))
        };
        assert_eq!(of("7", Primitive::Short, false).unwrap(), 7_i32.to_le_bytes());
        assert_eq!(of("-7", Primitive::Long, true).unwrap(), (-7_i64).to_le_bytes());
        assert_eq!(of("\"2020-01-02\"", Primitive::Date, true).unwrap(), 18263_i32.to_le_bytes());
        assert_eq!(
            of("\"1970-01-01T00:00:00.001Z\"", Primitive::Timestamp, false).unwrap(),
            1000_i64.to_le_bytes()
        );
        assert_eq!(
            of("\"1970-01-01T00:00:00.001Z\"", Primitive::Timestamp, true).unwrap(),
            1999_i64.to_le_bytes()
        );
        assert_eq!(of("1.28", Primitive::Decimal(9, 2), false).unwrap(), [0, 128]);
        assert_eq!(of("-1.28", Primitive::Decimal(9, 2), false).unwrap(), [128]);
        assert_eq!(of("0", Primitive::Decimal(9, 2), false).unwrap(), [0]);
        assert_eq!(of("\"a\"", Primitive::String, false).unwrap(), b"a");
        assert_eq!(of("0.0", Primitive::Double, false).unwrap(), (-0.0_f64).to_le_bytes());
        assert_eq!(of("-0.0", Primitive::Double, true).unwrap(), 0.0_f64.to_le_bytes());
        for (stated, primitive) in [
            ("\"NaN\"", Primitive::Double),
            ("true", Primitive::Boolean),
            ("\"x\"", Primitive::Long),
            ("1e400", Primitive::Long),
        ] {
            assert_eq!(of(stated, primitive, true), None);
        }
    }

    #[test]
    fn bounds_of_doubles_that_were_floats_hold_the_floats() {
        for float in [0.1_f32, 0.7, -0.1, 1e-45, f32::MAX, 0.5] {
            let of =
                |side| bound(&float.to_string(), &Type::Primitive(Primitive::Double), true, side).unwrap();
            let [low, high] =
                [Side::Low, Side::High].map(|side| f64::from_le_bytes(of(side).try_into().unwrap()));
            assert!(low <= f64::from(float) && f64::from(float) <= high, "{low} {float} {high}");
        }
    }

    #[test]
    fn decimals_of_partitions_have_a_fixed_width() {
        assert_eq!([1, 2, 4, 9, 18, 19, 38].map(decimal_bytes), [1, 1, 2, 4, 8, 9, 16]);
        let mut out = Vec::new();
        partition(&mut out, Some("-1.5"), &Type::Primitive(Primitive::Decimal(9, 2))).unwrap();
        assert_eq!(out, [2, 255, 255, 255, 106]);
        out.clear();
        partition(&mut out, None, &Type::Primitive(Primitive::Long)).unwrap();
        assert_eq!(out, [0]);
    }
}
