//! The bytes of variants (parquet-format, VariantEncoding.md).
//!
//! A column of variants is a struct of `metadata`, the names of all fields of objects in it, and `value`.
//! `parquet-variant` reads them; they are written here, byte by byte as Spark's `VariantBuilder` does:
//! numbers in the fewest bytes, names in the order of their first use.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, NullBufferBuilder, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Fields, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType,
};
use chrono::{Datelike, NaiveDate};
use parquet_variant::{Variant, VariantMetadata};

use super::failure;
use super::json::Json;
use super::variant_limits::{Limits, check_bytes, check_value, malformed};
use crate::error::{Error, Result};

/// The column of variants in an argument of a kernel.
pub(super) struct Variants {
    pub(super) metadata: BinaryArray,
    pub(super) value: BinaryArray,
    nulls: Option<NullBuffer>,
}

impl Variants {
    pub(super) fn new(array: &ArrayRef) -> Result<Self> {
        let rows = array
            .as_struct_opt()
            .ok_or_else(|| failure("INTERNAL_ERROR", "a variant is a struct of metadata and value"))?;
        let part = |name: &str| -> Result<BinaryArray> {
            let column = rows
                .column_by_name(name)
                .ok_or_else(|| failure("INTERNAL_ERROR", format!("a variant without {name}")))?;
            Ok(arrow::compute::cast(column, &DataType::Binary)?.as_binary::<i32>().clone())
        };
        Ok(Self { metadata: part("metadata")?, value: part("value")?, nulls: rows.nulls().cloned() })
    }

    /// Returns the variant of each row; `None` for NULL. Only the header is checked, as a check of all bytes
    /// takes longer than most functions. Malformed bytes after it cause a panic when they are read, which
    /// `evaluate` turns into MALFORMED_VARIANT.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<Option<Variant<'_, '_>>>> {
        self.rows(|names, value| Some(Variant::new_with_metadata(names, value)))
    }

    /// Returns the variants like `iter`, with all bytes checked.
    pub(super) fn checked(&self) -> impl Iterator<Item = Result<Option<Variant<'_, '_>>>> {
        self.rows(|names, value| {
            check_value(value).ok()?;
            Variant::try_new_with_metadata(names, value).ok()
        })
    }

    fn rows<'a>(
        &'a self,
        read: impl Fn(VariantMetadata<'a>, &'a [u8]) -> Option<Variant<'a, 'a>>,
    ) -> impl Iterator<Item = Result<Option<Variant<'a, 'a>>>> {
        let mut known: Option<(&[u8], VariantMetadata)> = None;
        (0..self.value.len()).map(move |row| {
            if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
                || self.value.is_null(row)
                || self.metadata.is_null(row)
            {
                return Ok(None);
            }
            let bytes = self.metadata.value(row);
            let names = match known.take().filter(|(before, _)| *before == bytes) {
                // The same names as in the row before, as in most columns, are checked only once.
                Some((_, names)) => names,
                None => VariantMetadata::try_new(bytes).map_err(|_| malformed())?,
            };
            known = Some((bytes, names.clone()));
            read(names, self.value.value(row)).map(Some).ok_or_else(malformed)
        })
    }
}

/// Returns the fields of a column of variants.
pub(super) fn fields() -> Fields {
    Fields::from(vec![
        Field::new("metadata", DataType::Binary, true),
        Field::new("value", DataType::Binary, true),
    ])
}

/// The values of a binary column, one after the other in one buffer.
struct Pieces {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
}

impl Pieces {
    fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { bytes: Vec::with_capacity(24 * rows), offsets }
    }

    /// Ends the value whose bytes were appended to `bytes`.
    fn end(&mut self) -> Result<()> {
        check_bytes(self.bytes.len())?;
        self.offsets.push(self.bytes.len() as i32);
        Ok(())
    }

    fn finish(self) -> Result<ArrayRef> {
        Ok(Arc::new(BinaryArray::try_new(OffsetBuffer::new(self.offsets.into()), self.bytes.into(), None)?))
    }
}

/// A column of variants that is built row by row.
pub(super) struct Column {
    metadata: Pieces,
    value: Pieces,
    nulls: NullBufferBuilder,
    encoder: Encoder,
}

impl Column {
    pub(super) fn new(rows: usize) -> Self {
        Self {
            metadata: Pieces::new(rows),
            value: Pieces::new(rows),
            nulls: NullBufferBuilder::new(rows),
            encoder: Encoder::default(),
        }
    }

    pub(super) fn append_null(&mut self) -> Result<()> {
        self.nulls.append_null();
        self.metadata.end()?;
        self.value.end()
    }

    /// Appends the value that `write` encodes, or nothing if `write` returns `None`.
    pub(super) fn append(
        &mut self,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> Result<Option<()>>,
    ) -> Result<Option<()>> {
        self.encoder.clear();
        let start = self.value.bytes.len();
        if write(&mut self.encoder, &mut self.value.bytes)?.is_none() {
            self.value.bytes.truncate(start);
            return Ok(None);
        }
        self.encoder.metadata(&mut self.metadata.bytes);
        self.nulls.append_non_null();
        self.metadata.end()?;
        self.value.end()?;
        Ok(Some(()))
    }

    pub(super) fn append_variant(&mut self, variant: &Variant) -> Result<()> {
        self.append(|encoder, out| encoder.variant(variant, out).map(Some)).map(|_| ())
    }

    pub(super) fn finish(mut self) -> Result<StructArray> {
        let columns: Vec<ArrayRef> = vec![self.metadata.finish()?, self.value.finish()?];
        Ok(StructArray::try_new(fields(), columns, self.nulls.finish())?)
    }
}

/// Maximum number of names that are compared one by one; more are looked up in a map.
const FEW_NAMES: usize = 16;

/// Encodes variants, one after the other.
#[derive(Default)]
pub(super) struct Encoder {
    /// All names of the variant, concatenated; `ends`: the end of each.
    names: String,
    ends: Vec<usize>,
    /// The ids of names, if there are more than `FEW_NAMES`: an object may have a hundred thousand fields.
    ids: HashMap<String, usize>,
    /// The fields and items of the objects and arrays that are being written: the id of the name, and the
    /// start of the value.
    parts: Vec<(usize, usize)>,
    head: Vec<u8>,
    limits: Limits,
}

/// Returns the number of bytes for numbers up to `most`.
fn width(most: usize) -> usize {
    [0xff, 0xffff, 0xff_ffff].iter().position(|&limit| most <= limit).map_or(4, |place| place + 1)
}

fn push_number(number: usize, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(number as u64).to_le_bytes()[..width]);
}

fn name_of<'a>(names: &'a str, ends: &[usize], id: usize) -> &'a str {
    &names[if id == 0 { 0 } else { ends[id - 1] }..ends[id]]
}

impl Encoder {
    fn clear(&mut self) {
        self.names.clear();
        self.ends.clear();
        self.ids.clear();
        self.parts.clear();
        self.limits = Limits::default();
    }

    fn metadata(&self, out: &mut Vec<u8>) {
        let width = width(self.names.len().max(self.ends.len()));
        out.push(1 | ((width - 1) << 6) as u8);
        push_number(self.ends.len(), width, out);
        push_number(0, width, out);
        self.ends.iter().for_each(|&end| push_number(end, width, out));
        out.extend_from_slice(self.names.as_bytes());
    }

    fn id(&mut self, name: &str) -> usize {
        let count = self.ends.len();
        let known = if count > FEW_NAMES {
            self.ids.get(name).copied()
        } else {
            (0..count).find(|&id| name_of(&self.names, &self.ends, id) == name)
        };
        if let Some(id) = known {
            return id;
        }
        self.names.push_str(name);
        self.ends.push(self.names.len());
        if count >= FEW_NAMES {
            let first = if count == FEW_NAMES { 0 } else { count };
            for id in first..=count {
                self.ids.insert(name_of(&self.names, &self.ends, id).to_owned(), id);
            }
        }
        count
    }

    /// Inserts the finished header into `out` at `start`.
    fn insert_head(&self, start: usize, out: &mut Vec<u8>) {
        let (end, size) = (out.len(), self.head.len());
        out.resize(end + size, 0);
        out.copy_within(start..end, start + size);
        out[start..start + size].copy_from_slice(&self.head);
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

    /// Writes an array of `count` items, which `write` appends.
    pub(super) fn list(
        &mut self,
        count: usize,
        out: &mut Vec<u8>,
        mut write: impl FnMut(&mut Self, usize, &mut Vec<u8>) -> Result<Option<()>>,
    ) -> Result<Option<()>> {
        self.limits.enter(count)?;
        let (start, base) = (out.len(), self.parts.len());
        for place in 0..count {
            self.parts.push((0, out.len() - start));
            if write(self, place, out)?.is_none() {
                return Ok(None);
            }
            check_bytes(out.len())?;
        }
        self.limits.leave();
        let size = out.len() - start;
        let (large, width) = (count > 255, width(size));
        self.head.clear();
        self.head.push(3 | ((width - 1) << 2) as u8 | u8::from(large) << 4);
        push_number(count, if large { 4 } else { 1 }, &mut self.head);
        for (_, offset) in self.parts.drain(base..) {
            push_number(offset, width, &mut self.head);
        }
        push_number(size, width, &mut self.head);
        self.insert_head(start, out);
        Ok(Some(()))
    }

    /// Writes an object with `names`, whose values `write` appends. `None` if a name repeats.
    pub(super) fn object<'n>(
        &mut self,
        names: impl ExactSizeIterator<Item = &'n str>,
        out: &mut Vec<u8>,
        mut write: impl FnMut(&mut Self, usize, &mut Vec<u8>) -> Result<Option<()>>,
    ) -> Result<Option<()>> {
        self.limits.enter(names.len())?;
        let (start, base) = (out.len(), self.parts.len());
        for (place, name) in names.enumerate() {
            let id = self.id(name);
            self.parts.push((id, out.len() - start));
            if write(self, place, out)?.is_none() {
                return Ok(None);
            }
            check_bytes(out.len())?;
        }
        self.limits.leave();
        let Self { names, ends, parts, head, .. } = self;
        let fields = &mut parts[base..];
        fields.sort_unstable_by(|one, other| name_of(names, ends, one.0).cmp(name_of(names, ends, other.0)));
        if fields.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Ok(None);
        }
        let size = out.len() - start;
        let (large, of_ids) =
            (fields.len() > 255, width(fields.iter().map(|field| field.0).max().unwrap_or(0)));
        let of_offsets = width(size);
        head.clear();
        head.push(2 | ((of_offsets - 1) << 2) as u8 | ((of_ids - 1) << 4) as u8 | u8::from(large) << 6);
        push_number(fields.len(), if large { 4 } else { 1 }, head);
        fields.iter().for_each(|field| push_number(field.0, of_ids, head));
        fields.iter().for_each(|field| push_number(field.1, of_offsets, head));
        push_number(size, of_offsets, head);
        parts.truncate(base);
        self.insert_head(start, out);
        Ok(Some(()))
    }

    /// Writes JSON. `None` if an object has a name twice.
    pub(super) fn json(&mut self, value: &Json, out: &mut Vec<u8>) -> Result<Option<()>> {
        match value {
            Json::Null => out.push(0),
            Json::Bool(value) => out.push(if *value { 1 << 2 } else { 2 << 2 }),
            Json::Text(text) => Self::text(text, out),
            Json::Number(text) => Self::number(text, out),
            Json::Array(items) => {
                return self.list(items.len(), out, |encoder, place, out| encoder.json(&items[place], out));
            }
            Json::Object(fields) => {
                let names = fields.iter().map(|(name, _)| name.as_ref());
                return self.object(names, out, |encoder, place, out| encoder.json(&fields[place].1, out));
            }
        }
        Ok(Some(()))
    }

    /// Writes a number: as a whole number if it fits, else as a decimal of at most 38 digits if it has no
    /// exponent, else as a double.
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
            Variant::TimestampMicros(moment) => {
                Self::fixed(12, &moment.timestamp_micros().to_le_bytes(), out)
            }
            Variant::TimestampNtzMicros(moment) => {
                Self::fixed(13, &moment.and_utc().timestamp_micros().to_le_bytes(), out)
            }
            Variant::Binary(bytes) => {
                Self::fixed(15, &(bytes.len() as u32).to_le_bytes(), out);
                out.extend_from_slice(bytes);
            }
            Variant::String(text) => Self::text(text, out),
            Variant::ShortString(text) => Self::text(text.as_str(), out),
            Variant::Uuid(id) => Self::fixed(20, id.as_bytes(), out),
            Variant::List(items) => {
                self.list(items.len(), out, |encoder, place, out| {
                    let item = items.get(place).ok_or_else(malformed)?;
                    encoder.variant(&item, out).map(Some)
                })?;
            }
            Variant::Object(object) => {
                let names = (0..object.len()).map(|place| object.field_name(place).unwrap_or_default());
                self.object(names, out, |encoder, place, out| {
                    let item = object.field(place).ok_or_else(malformed)?;
                    encoder.variant(&item, out).map(Some)
                })?;
            }
            Variant::TimestampNanos(_) | Variant::TimestampNtzNanos(_) | Variant::Time(_) => {
                return Err(unknown());
            }
        }
        Ok(())
    }

    /// Writes one value of an array; a null becomes the variant `null`.
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
            DataType::Float32 => {
                Self::fixed(14, &array.as_primitive::<Float32Type>().value(row).to_le_bytes(), out)
            }
            DataType::Float64 => {
                Self::fixed(7, &array.as_primitive::<Float64Type>().value(row).to_le_bytes(), out)
            }
            DataType::Decimal128(_, scale) => {
                Self::decimal(array.as_primitive::<Decimal128Type>().value(row), *scale as u8, out)
            }
            DataType::Utf8 => Self::text(array.as_string::<i32>().value(row), out),
            DataType::Binary => {
                let bytes = array.as_binary::<i32>().value(row);
                Self::fixed(15, &(bytes.len() as u32).to_le_bytes(), out);
                out.extend_from_slice(bytes);
            }
            DataType::Date32 => {
                Self::fixed(11, &array.as_primitive::<Date32Type>().value(row).to_le_bytes(), out)
            }
            DataType::Timestamp(_, zone) => {
                let header = if zone.is_some() { 12 } else { 13 };
                Self::fixed(
                    header,
                    &array.as_primitive::<TimestampMicrosecondType>().value(row).to_le_bytes(),
                    out,
                );
            }
            DataType::List(_) => {
                let items = array.as_list::<i32>().value(row);
                return self.list(items.len(), out, |encoder, place, out| encoder.value(&items, place, out));
            }
            DataType::Struct(fields) => {
                let (names, columns) =
                    (fields.iter().map(|field| field.name().as_str()), array.as_struct().columns());
                return self
                    .object(names, out, |encoder, place, out| encoder.value(&columns[place], row, out));
            }
            DataType::Map(_, _) => {
                let entries = array.as_map().value(row);
                let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1));
                let names = (0..keys.len()).map(|place| keys.value(place));
                return self.object(names, out, |encoder, place, out| encoder.value(values, place, out));
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

/// Returns the digits and the scale of a decimal.
pub(super) fn digits_of(value: &Variant) -> Option<(i128, u8)> {
    match value {
        Variant::Decimal4(number) => Some((i128::from(number.integer()), number.scale())),
        Variant::Decimal8(number) => Some((i128::from(number.integer()), number.scale())),
        Variant::Decimal16(number) => Some((number.integer(), number.scale())),
        _ => None,
    }
}
