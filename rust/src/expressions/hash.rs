//! Spark's hash functions: `hash` (Murmur3, 32 bits), `xxhash64`, `crc32`.
//!
//! The hash of a column is the seed for the next column of the row; a null leaves the hash as it is.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};

use super::arguments::Arguments;
use super::failure;
use crate::error::Result;

/// Spark's seed of both hash functions.
const SEED: i32 = 42;

/// Returns the CRC-32 of bytes, as an unsigned number.
pub fn crc32(given: &Arguments) -> Result<ArrayRef> {
    let sums = given
        .binary(0)?
        .iter()
        .map(|bytes| bytes.map(|bytes| i64::from(crc32fast::hash(bytes))))
        .collect::<Int64Array>();
    Ok(Arc::new(sums))
}

/// Evaluates `hash(column, ...)`: the Murmur3 hash of each row.
pub fn murmur3(given: &Arguments) -> Result<ArrayRef> {
    let mut seeds = vec![SEED; given.rows()];
    for array in given.from(0) {
        fold::<Murmur3>(array, &mut seeds)?;
    }
    Ok(Arc::new(Int32Array::from(seeds)))
}

/// Evaluates `xxhash64(column, ...)`: the XXH64 hash of each row.
pub fn xxhash64(given: &Arguments) -> Result<ArrayRef> {
    let mut seeds = vec![i64::from(SEED); given.rows()];
    for array in given.from(0) {
        fold::<XxHash64>(array, &mut seeds)?;
    }
    Ok(Arc::new(Int64Array::from(seeds)))
}

/// A hash function: hashes a value with a seed.
trait Hash {
    type Seed: Copy;
    fn int(value: i32, seed: Self::Seed) -> Self::Seed;
    fn long(value: i64, seed: Self::Seed) -> Self::Seed;
    fn bytes(value: &[u8], seed: Self::Seed) -> Self::Seed;
}

struct Murmur3;

impl Murmur3 {
    fn mix(seed: u32, part: u32) -> u32 {
        let part = part.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (seed ^ part).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    }
    fn finish(hash: u32, length: u32) -> i32 {
        let mut hash = hash ^ length;
        hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
        (hash ^ (hash >> 16)) as i32
    }
}

impl Hash for Murmur3 {
    type Seed = i32;
    fn int(value: i32, seed: i32) -> i32 {
        Self::finish(Self::mix(seed as u32, value as u32), 4)
    }
    fn long(value: i64, seed: i32) -> i32 {
        let low = Self::mix(seed as u32, value as u32);
        Self::finish(Self::mix(low, (value >> 32) as u32), 8)
    }
    /// Hashes with Murmur3 as Spark computes it, not as published: each byte after the last whole word is
    /// mixed in like a word, as a signed number.
    fn bytes(value: &[u8], seed: i32) -> i32 {
        let (words, rest) = value.as_chunks::<4>();
        let hash = words.iter().fold(seed as u32, |hash, word| Self::mix(hash, u32::from_le_bytes(*word)));
        let hash = rest.iter().fold(hash, |hash, byte| Self::mix(hash, *byte as i8 as u32));
        Self::finish(hash, value.len() as u32)
    }
}

struct XxHash64;

impl Hash for XxHash64 {
    type Seed = i64;
    fn int(value: i32, seed: i64) -> i64 {
        Self::bytes(&value.to_le_bytes(), seed)
    }
    fn long(value: i64, seed: i64) -> i64 {
        Self::bytes(&value.to_le_bytes(), seed)
    }
    fn bytes(value: &[u8], seed: i64) -> i64 {
        twox_hash::XxHash64::oneshot(seed as u64, value) as i64
    }
}

/// Hashes each value of a column with the hash of its row so far as the seed.
fn fold<H: Hash>(array: &ArrayRef, seeds: &mut [H::Seed]) -> Result<()> {
    macro_rules! each {
        ($values:expr, $hash:expr) => {
            for (seed, value) in seeds.iter_mut().zip($values.iter()) {
                if let Some(value) = value {
                    *seed = $hash(value, *seed);
                }
            }
        };
    }
    match array.data_type() {
        DataType::Null => {}
        DataType::Boolean => each!(array.as_boolean(), |value, seed| H::int(i32::from(value), seed)),
        DataType::Int8 => {
            each!(array.as_primitive::<Int8Type>(), |value, seed| H::int(i32::from(value), seed))
        }
        DataType::Int16 => {
            each!(array.as_primitive::<Int16Type>(), |value, seed| H::int(i32::from(value), seed))
        }
        DataType::Int32 => each!(array.as_primitive::<Int32Type>(), H::int),
        DataType::Int64 => each!(array.as_primitive::<Int64Type>(), H::long),
        DataType::Date32 => each!(array.as_primitive::<Date32Type>(), H::int),
        DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, _) => {
            each!(array.as_primitive::<TimestampMicrosecondType>(), H::long)
        }
        DataType::Float32 => {
            each!(array.as_primitive::<Float32Type>(), |value: f32, seed| H::int(float_bits(value), seed))
        }
        DataType::Float64 => {
            each!(array.as_primitive::<Float64Type>(), |value: f64, seed| H::long(double_bits(value), seed))
        }
        DataType::Decimal128(precision, _) if *precision <= 18 => {
            each!(array.as_primitive::<Decimal128Type>(), |value: i128, seed| H::long(value as i64, seed));
        }
        DataType::Decimal128(_, _) => {
            each!(array.as_primitive::<Decimal128Type>(), |value: i128, seed| H::bytes(
                shortest(&value.to_be_bytes()),
                seed
            ))
        }
        DataType::Utf8 => {
            each!(array.as_string::<i32>(), |value: &str, seed| H::bytes(value.as_bytes(), seed))
        }
        DataType::LargeUtf8 => {
            each!(array.as_string::<i64>(), |value: &str, seed| H::bytes(value.as_bytes(), seed))
        }
        DataType::Binary => each!(array.as_binary::<i32>(), H::bytes),
        DataType::LargeBinary => each!(array.as_binary::<i64>(), H::bytes),
        DataType::Struct(_) => return fold_struct::<H>(array, seeds),
        DataType::List(_) => return fold_lists::<H>(array, seeds),
        kind => return Err(failure("UNSUPPORTED_HASH", format!("a hash of {kind}"))),
    }
    Ok(())
}

/// Hashes a struct field by field; a null struct leaves the hash as it is.
fn fold_struct<H: Hash>(array: &ArrayRef, seeds: &mut [H::Seed]) -> Result<()> {
    let values = array.as_struct();
    let before = seeds.to_vec();
    for column in values.columns() {
        fold::<H>(column, seeds)?;
    }
    for (row, seed) in seeds.iter_mut().enumerate() {
        if values.is_null(row) {
            *seed = before[row];
        }
    }
    Ok(())
}

/// Hashes lists item by item.
fn fold_lists<H: Hash>(array: &ArrayRef, seeds: &mut [H::Seed]) -> Result<()> {
    let lists = array.as_list::<i32>();
    let items = lists.values();
    for (row, seed) in seeds.iter_mut().enumerate() {
        if lists.is_valid(row) {
            let offsets = lists.value_offsets();
            for place in offsets[row]..offsets[row + 1] {
                let mut one = [*seed];
                fold::<H>(&items.slice(place as usize, 1), &mut one)?;
                *seed = one[0];
            }
        }
    }
    Ok(())
}

/// Returns the bits of a float like Java's `Float.floatToIntBits`, but those of 0.0 for -0.0.
fn float_bits(value: f32) -> i32 {
    if value.is_nan() { 0x7fc0_0000 } else { (value + 0.0).to_bits() as i32 }
}

fn double_bits(value: f64) -> i64 {
    if value.is_nan() { 0x7ff8_0000_0000_0000 } else { (value + 0.0).to_bits() as i64 }
}

/// Removes the leading bytes that the sign does not need, as Java's `BigInteger.toByteArray` does.
fn shortest(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [first, second, ..] = rest {
        if (*first == 0 && *second < 0x80) || (*first == 0xff && *second >= 0x80) {
            rest = &rest[1..]
        } else {
            break;
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::super::evaluate;
    use super::*;

    #[test]
    fn hashes_of_sparks_documentation() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["Spark"]));
        let lists =
            arrow::array::ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(123)])]);
        let columns = [text, Arc::new(lists) as ArrayRef, Arc::new(Int32Array::from(vec![2]))];
        assert_eq!(evaluate("hash", &columns).unwrap().as_primitive::<Int32Type>().value(0), -1_321_691_492);
        assert_eq!(
            evaluate("xxhash64", &columns).unwrap().as_primitive::<Int64Type>().value(0),
            5_602_566_077_635_097_486
        );
        assert_eq!(
            evaluate("crc32", &columns[..1]).unwrap().as_primitive::<Int64Type>().value(0),
            1_557_323_817
        );
    }

    #[test]
    fn bytes_of_big_integers() {
        assert_eq!(shortest(&0_i128.to_be_bytes()), [0]);
        assert_eq!(shortest(&128_i128.to_be_bytes()), [0, 128]);
        assert_eq!(shortest(&(-129_i128).to_be_bytes()), [255, 127]);
    }
}
