//! Casts of a reader: from the type in a file to the table's type, without loss.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow::util::display::FormatOptions;

use crate::error::{Error, Result};

/// How values are cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cast {
    /// To microseconds, rounded down. The time zone changes without a change of values.
    Micros,
    /// Arrow's own cast, where each value must fit.
    Checked,
}

/// Returns the cast between two primitive types, or `None` if the protocol has none.
pub fn cast_for(found: &DataType, target: &DataType) -> Option<Cast> {
    use DataType::{
        Binary, Date32, Decimal32, Decimal64, Decimal128, Decimal256, FixedSizeBinary, Float16, Float32,
        Float64, Int8, Int16, Int32, Int64, Timestamp, UInt8, UInt16, UInt32, UInt64, Utf8,
    };
    let known = match (found, target) {
        (Timestamp(_, _), Timestamp(TimeUnit::Microsecond, _)) => return Some(Cast::Micros),
        // Parquet stores short and byte in 32 bits, and some writers do not declare the narrower type.
        (Int8 | Int16 | Int32 | UInt8 | UInt16, Int8 | Int16 | Int32 | Int64) => true,
        (UInt32 | UInt64, Int64) => true,
        (Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32, Float64) => true,
        (Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64, Decimal128(_, _)) => true,
        (Float16, Float32) | (Float16 | Float32, Float64) => true,
        (
            Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) | Decimal256(p, s),
            Decimal128(precision, scale),
        ) => scale >= s && i16::from(*precision) - i16::from(*scale) >= i16::from(*p) - i16::from(*s),
        (Date32, Timestamp(TimeUnit::Microsecond, None)) => true,
        (Binary, Utf8) | (Utf8 | FixedSizeBinary(_), Binary) => true,
        _ => false,
    };
    known.then_some(Cast::Checked)
}

impl Cast {
    /// Casts an array to the type `target`.
    pub fn apply(self, array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
        match self {
            Self::Micros => micros(array, target),
            Self::Checked => {
                let options = CastOptions { safe: false, format_options: FormatOptions::default() };
                cast_with_options(array, target, &options).map_err(|error| {
                    Error::protocol("a value of the file does not fit the table's type")
                        .caused_by(error)
                        .expected(target)
                })
            }
        }
    }
}

/// Converts timestamps of any unit and zone to `target`, a timestamp in microseconds. Nanoseconds are rounded
/// down, as in Spark.
pub fn micros(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let DataType::Timestamp(TimeUnit::Microsecond, zone) = target else {
        return Err(Error::protocol("timestamps are kept in microseconds").found(target));
    };
    let scaled: PrimitiveArray<TimestampMicrosecondType> = match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            array.as_primitive::<TimestampMicrosecondType>().clone()
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            array.as_primitive::<TimestampNanosecondType>().unary(|value| value.div_euclid(1000))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => times::<TimestampMillisecondType>(array, 1000)?,
        DataType::Timestamp(TimeUnit::Second, _) => times::<TimestampSecondType>(array, 1_000_000)?,
        other => return Err(Error::protocol("no timestamp").found(other).expected(target)),
    };
    Ok(Arc::new(scaled.with_timezone_opt(zone.clone())))
}

fn times<T: ArrowPrimitiveType<Native = i64>>(
    array: &ArrayRef,
    factor: i64,
) -> Result<PrimitiveArray<TimestampMicrosecondType>> {
    array.as_primitive::<T>().try_unary(|value| {
        value.checked_mul(factor).ok_or_else(|| {
            Error::protocol("a timestamp is out of range").found(value).expected("microseconds in 64 bits")
        })
    })
}
