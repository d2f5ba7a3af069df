//! The bytes of variants (parquet-format, VariantEncoding.md).
//!
//! A column of variants is a struct of `metadata`, the names of all fields of objects in it, and `value`. `parquet-variant` reads them; they
//! are written here, byte by byte as Spark's `VariantBuilder` does: numbers in the fewest bytes, names in the order of their first use.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, NullBufferBuilder, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Fields, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use chrono::{Datelike, NaiveDate};
use parquet_variant::Variant;

use super::failure;
use super::json::Json;
use crate::error::{Error, Result};

/// Variants of one argument.
pub(super) struct Variants {
    pub(super) metadata: BinaryArray,
    pub(super) value: BinaryArray,
    nulls: Option<NullBuffer>,
}

impl Variants {
    pub(super) fn new(array: &ArrayRef) -> Result<Self> {
        let rows = array.as_struct_opt().ok_or_else(|| failure("INTERNAL_ERROR", "a variant is a struct of metadata and value"))?;
        let part = |name: &str| -> Result<BinaryArray> {
            let column = rows.column_by_name(name).ok_or_else(|| failure("INTERNAL_ERROR", format!("a variant without {name}")))?;
            Ok(arrow::compute::cast(column, &DataType::Binary)?.as_binary::<i32>().clone())
        };
        Ok(Self { metadata: part("metadata")?, value: part("value")?, nulls: rows.nulls().cloned() })
    }

    /// The variant of a row; None for NULL.
    pub(super) fn get(&self, row: usize) -> Result<Option<Variant<'_, '_>>> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) || self.value.is_null(row) || self.metadata.is_null(row) {
            return Ok(None);
        }
        let read = Variant::try_new(self.metadata.value(row), self.value.value(row));
        read.map(Some).map_err(|_| failure("MALFORMED_VARIANT", "the bytes are no variant"))
    }
}

/// The fields of a column of variants.
pub(super) fn fields() -> Fields {
    Fields::from(vec![Field::new("metadata", DataType::Binary, true), Field::new("value", DataType::Binary, true)])
}

/// A column of variants, row by row.
pub(super) struct Column {
    metadata: BinaryBuilder,
    value: BinaryBuilder,
    nulls: NullBufferBuilder,
    encoder: Encoder,
}

impl Column {
    pub(super) fn new(rows: usize) -> Self {
        let bytes = || BinaryBuilder::with_capacity(rows, 16 * rows);
        Self { metadata: bytes(), value: bytes(), nulls: NullBufferBuilder::new(rows), encoder: Encoder::default() }
    }

    pub(super) fn append_null(&mut self) {
        self.metadata.append_value([]);
        self.value.append_value([]);
        self.nulls.append_null();
    }

    /// Appends what `write` encodes; where it gives None, nothing is appended.
    pub(super) fn append(&mut self, write: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> Result<Option<()>>) -> Result<Option<()>> {
        let mut value = std::mem::take(&mut self.encoder.buffer);
        value.clear();
        self.encoder.names.clear();
        self.encoder.ids.clear();
        let written = write(&mut self.encoder, &mut value)?;
        if written.is_some() {
            self.metadata.append_value(self.encoder.metadata());
            self.value.append_value(&value);
            self.nulls.append_non_null();
        }
        self.encoder.buffer = value;
        Ok(written)
    }

    pub(super) fn append_variant(&mut self, variant: &Variant) -> Result<()> {
        self.append(|encoder, out| encoder.variant(variant, out).map(Some)).map(|_| ())
    }

    pub(super) fn finish(mut self) -> Result<StructArray> {
        let columns: Vec<ArrayRef> = vec![Arc::new(self.metadata.finish()), Arc::new(self.value.finish())];
        Ok(StructArray::try_new(fields(), columns, self.nulls.finish())?)
    }
}

/// The bytes of one variant after the other.
#[derive(Default)]
pub(super) struct Encoder {
    names: Vec<String>,
    /// The places of `names`: an object may have a hundred thousand fields.
    ids: HashMap<String, usize>,
    buffer: Vec<u8>,
}

/// The bytes that hold every number up to `most`.
fn width(most: usize) -> usize {
    [0xff, 0xffff, 0xff_ffff].iter().position(|&limit| most <= limit).map_or(4, |place| place + 1)
}

fn push_number(number: usize, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(number as u64).to_le_bytes()[..width]);
}

impl Encoder {
    fn metadata(&self) -> Vec<u8> {
        let size: usize = self.names.iter().map(String::len).sum();
        let width = width(size.max(self.names.len()));
        let mut out = vec![1 | ((width - 1) << 6) as u8];
        push_number(self.names.len(), width, &mut out);
        let mut offset = 0;
        for name in &self.names {
            push_number(offset, width, &mut out);
            offset += name.len();
        }
        push_number(offset, width, &mut out);
        self.names.iter().for_each(|name| out.extend_from_slice(name.as_bytes()));
        out
    }

    fn id(&mut self, name: &str) -> usize {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn long(number: i64, out: &mut Vec<u8>) {
        let bytes = number.to_le_bytes();
        let (header, width) = match number {
            -0x80..=0x7f => (3, 1),
            -0x8000..=0x7fff => (4, 2),
            -0x8000_0000..=0x7fff_ffff => (5, 4),
            _ => (6, 8),
        };
        out.push(header << 2);
        out.extend_from_slice(&bytes[..width]);
    }

    fn decimal(digits: i128, scale: u8, out: &mut Vec<u8>) {
        let precision = digits.unsigned_abs().checked_ilog10().map_or(1, |most| most + 1);
        let (header, width) = match precision.max(u32::from(scale)) {
            ..=9 => (8, 4),
            10..=18 => (9, 8),
            _ => (10, 16),
        };
        out.push(header << 2);
        out.push(scale);
        out.extend_from_slice(&digits.to_le_bytes()[..width]);
    }

    fn text(text: &str, out: &mut Vec<u8>) {
        if text.len() < 64 {
            out.push(((text.len() as u8) << 2) | 1);
        } else {
            out.push(16 << 2);
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(text.as_bytes());
    }

    fn fixed(header: u8, bytes: &[u8], out: &mut Vec<u8>) {
        out.push(header << 2);
        out.extend_from_slice(bytes);
    }

    /// An array of `count` items that `write` appends.
    fn list(
        &mut self,
        count: usize,
        out: &mut Vec<u8>,
        mut write: impl FnMut(&mut Self, usize, &mut Vec<u8>) -> Result<Option<()>>,
    ) -> Result<Option<()>> {
        let (mut items, mut offsets) = (Vec::new(), Vec::with_capacity(count + 1));
        for place in 0..count {
            offsets.push(items.len());
            if write(self, place, &mut items)?.is_none() {
                return Ok(None);
            }
        }
        offsets.push(items.len());
        let (large, width) = (count > 255, width(items.len()));
        out.push(3 | ((width - 1) << 2) as u8 | u8::from(large) << 4);
        push_number(count, if large { 4 } else { 1 }, out);
        offsets.iter().for_each(|&offset| push_number(offset, width, out));
        out.extend_from_slice(&items);
        Ok(Some(()))
    }

    /// An object of the fields `names`, whose values `write` appends; None where a name comes twice.
    fn object(
        &mut self,
        names: &[&str],
        out: &mut Vec<u8>,
        mut write: impl FnMut(&mut Self, usize, &mut Vec<u8>) -> Result<Option<()>>,
    ) -> Result<Option<()>> {
        let (mut values, mut fields) = (Vec::new(), Vec::with_capacity(names.len()));
        for (place, name) in names.iter().enumerate() {
            let id = self.id(name);
            fields.push((*name, id, values.len()));
            if write(self, place, &mut values)?.is_none() {
                return Ok(None);
            }
        }
        fields.sort_unstable();
        if fields.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Ok(None);
        }
        let (large, of_ids) = (fields.len() > 255, width(fields.iter().map(|field| field.1).max().unwrap_or(0)));
        let of_offsets = width(values.len());
        out.push(2 | ((of_offsets - 1) << 2) as u8 | ((of_ids - 1) << 4) as u8 | u8::from(large) << 6);
        push_number(fields.len(), if large { 4 } else { 1 }, out);
        fields.iter().for_each(|field| push_number(field.1, of_ids, out));
        fields.iter().for_each(|field| push_number(field.2, of_offsets, out));
        push_number(values.len(), of_offsets, out);
        out.extend_from_slice(&values);
        Ok(Some(()))
    }

    /// None where an object has a name twice.
    pub(super) fn json(&mut self, value: &Json, out: &mut Vec<u8>) -> Result<Option<()>> {
        match value {
            Json::Null => out.push(0),
            Json::Bool(value) => out.push(if *value { 1 << 2 } else { 2 << 2 }),
            Json::Text(text) => Self::text(text, out),
            Json::Number(text) => Self::number(text, out),
            Json::Array(items) => return self.list(items.len(), out, |encoder, place, out| encoder.json(&items[place], out)),
            Json::Object(fields) => {
                let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_ref()).collect();
                return self.object(&names, out, |encoder, place, out| encoder.json(&fields[place].1, out));
            }
        }
        Ok(Some(()))
    }

    /// A whole number where it fits, a decimal of at most 38 digits where there is no exponent, a double.
    fn number(text: &str, out: &mut Vec<u8>) {
        if let Ok(whole) = text.parse::<i64>() {
            return Self::long(whole, out);
        }
        if !text.contains(['e', 'E']) {
            let (before, behind) = text.split_once('.').unwrap_or((text, ""));
            let digits = format!("{before}{behind}");
            if let (Ok(digits), ..=38) = (digits.parse::<i128>(), behind.len())
                && digits.unsigned_abs() < 10u128.pow(38)
            {
                return Self::decimal(digits, behind.len() as u8, out);
            }
        }
        Self::fixed(7, &text.parse::<f64>().unwrap_or(f64::NAN).to_le_bytes(), out);
    }

    pub(super) fn variant(&mut self, value: &Variant, out: &mut Vec<u8>) -> Result<()> {
        match value {
            Variant::Null => out.push(0),
            Variant::BooleanTrue => out.push(1 << 2),
            Variant::BooleanFalse => out.push(2 << 2),
            Variant::Int8(number) => Self::long(i64::from(*number), out),
            Variant::Int16(number) => Self::long(i64::from(*number), out),
            Variant::Int32(number) => Self::long(i64::from(*number), out),
            Variant::Int64(number) => Self::long(*number, out),
            Variant::Double(number) => Self::fixed(7, &number.to_le_bytes(), out),
            Variant::Float(number) => Self::fixed(14, &number.to_le_bytes(), out),
            Variant::Decimal4(_) | Variant::Decimal8(_) | Variant::Decimal16(_) => {
                if let Some((digits, scale)) = digits_of(value) {
                    Self::decimal(digits, scale, out);
                }
            }
            Variant::Date(day) => Self::fixed(11, &days_of(*day).to_le_bytes(), out),
            Variant::TimestampMicros(moment) => Self::fixed(12, &moment.timestamp_micros().to_le_bytes(), out),
            Variant::TimestampNtzMicros(moment) => Self::fixed(13, &moment.and_utc().timestamp_micros().to_le_bytes(), out),
            Variant::Binary(bytes) => {
                Self::fixed(15, &(bytes.len() as u32).to_le_bytes(), out);
                out.extend_from_slice(bytes);
            }
            Variant::String(text) => Self::text(text, out),
            Variant::ShortString(text) => Self::text(text.as_str(), out),
            Variant::Uuid(id) => Self::fixed(20, id.as_bytes(), out),
            Variant::List(items) => {
                let items: Vec<Variant> = items.iter().collect();
                self.list(items.len(), out, |encoder, place, out| encoder.variant(&items[place], out).map(Some))?;
            }
            Variant::Object(object) => {
                let (names, values): (Vec<&str>, Vec<Variant>) = object.iter().unzip();
                self.object(&names, out, |encoder, place, out| encoder.variant(&values[place], out).map(Some))?;
            }
            Variant::TimestampNanos(_) | Variant::TimestampNtzNanos(_) | Variant::Time(_) => return Err(unknown()),
        }
        Ok(())
    }

    /// One value of an array, with a null as the variant `null`.
    pub(super) fn value(&mut self, array: &ArrayRef, row: usize, out: &mut Vec<u8>) -> Result<Option<()>> {
        if array.is_null(row) {
            out.push(0);
            return Ok(Some(()));
        }
        match array.data_type() {
            DataType::Boolean => out.push(if array.as_boolean().value(row) { 1 << 2 } else { 2 << 2 }),
            DataType::Int8 => Self::long(i64::from(array.as_primitive::<Int8Type>().value(row)), out),
            DataType::Int16 => Self::long(i64::from(array.as_primitive::<Int16Type>().value(row)), out),
            DataType::Int32 => Self::long(i64::from(array.as_primitive::<Int32Type>().value(row)), out),
            DataType::Int64 => Self::long(array.as_primitive::<Int64Type>().value(row), out),
            DataType::Float32 => Self::fixed(14, &array.as_primitive::<Float32Type>().value(row).to_le_bytes(), out),
            DataType::Float64 => Self::fixed(7, &array.as_primitive::<Float64Type>().value(row).to_le_bytes(), out),
            DataType::Decimal128(_, scale) => Self::decimal(array.as_primitive::<Decimal128Type>().value(row), *scale as u8, out),
            DataType::Utf8 => Self::text(array.as_string::<i32>().value(row), out),
            DataType::Binary => {
                let bytes = array.as_binary::<i32>().value(row);
                Self::fixed(15, &(bytes.len() as u32).to_le_bytes(), out);
                out.extend_from_slice(bytes);
            }
            DataType::Date32 => Self::fixed(11, &array.as_primitive::<Date32Type>().value(row).to_le_bytes(), out),
            DataType::Timestamp(_, zone) => {
                let header = if zone.is_some() { 12 } else { 13 };
                Self::fixed(header, &array.as_primitive::<TimestampMicrosecondType>().value(row).to_le_bytes(), out);
            }
            DataType::List(_) => {
                let items = array.as_list::<i32>().value(row);
                return self.list(items.len(), out, |encoder, place, out| encoder.value(&items, place, out));
            }
            DataType::Struct(fields) => {
                let (names, columns): (Vec<&str>, _) =
                    (fields.iter().map(|field| field.name().as_str()).collect(), array.as_struct().columns());
                return self.object(&names, out, |encoder, place, out| encoder.value(&columns[place], row, out));
            }
            DataType::Map(_, _) => {
                let entries = array.as_map().value(row);
                let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1));
                let names: Vec<&str> = (0..keys.len()).map(|place| keys.value(place)).collect();
                return self.object(&names, out, |encoder, place, out| encoder.value(values, place, out));
            }
            kind => return Err(failure("UNSUPPORTED_VARIANT", format!("a variant of {kind}"))),
        }
        Ok(Some(()))
    }
}

pub(super) fn unknown() -> Error {
    failure("UNKNOWN_PRIMITIVE_TYPE_IN_VARIANT", "a type of variants that Spark does not know")
}

pub(super) fn days_of(day: NaiveDate) -> i32 {
    day.num_days_from_ce() - 719_163
}

/// The digits and the scale of a decimal.
pub(super) fn digits_of(value: &Variant) -> Option<(i128, u8)> {
    match value {
        Variant::Decimal4(number) => Some((i128::from(number.integer()), number.scale())),
        Variant::Decimal8(number) => Some((i128::from(number.integer()), number.scale())),
        Variant::Decimal16(number) => Some((number.integer(), number.scale())),
        _ => None,
    }
}
