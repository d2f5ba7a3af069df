//! Variants: JSON and rows as variants, paths into them, and what they hold (parquet-format, VariantEncoding.md).
//!
//! A column of variants is a struct of `metadata`, the names of all fields of objects in it, and `value`. `parquet-variant` reads them; they
//! are written here, byte by byte as Spark's `VariantBuilder` does: numbers in the fewest bytes, names in the order of their first use.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray, NullBufferBuilder, StringBuilder, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Fields, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use chrono::{Datelike, NaiveDate, NaiveDateTime, Offset, TimeZone};
use parquet_variant::Variant;

use super::arguments::Arguments;
use super::failure;
use super::json::{Json, push_quoted};
use super::numbers::{push_double, push_float};
use super::variant_schema::Schema;
use crate::error::{Error, Result};

/// Variants of one argument.
pub(super) struct Variants {
    metadata: BinaryArray,
    value: BinaryArray,
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
    fn json(&mut self, value: &Json, out: &mut Vec<u8>) -> Result<Option<()>> {
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
    fn value(&mut self, array: &ArrayRef, row: usize, out: &mut Vec<u8>) -> Result<Option<()>> {
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

fn unknown() -> Error {
    failure("UNKNOWN_PRIMITIVE_TYPE_IN_VARIANT", "a type of variants that Spark does not know")
}

fn days_of(day: NaiveDate) -> i32 {
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

/// A decimal without zeros at its end: 1.5, 100.
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

/// `parse_json(text, safe)`
pub fn parse_json(given: &Arguments) -> Result<ArrayRef> {
    let (texts, safe) = (given.text(0)?, given.integers(1)?);
    let mut out = Column::new(given.rows());
    for (row, text) in texts.iter().enumerate() {
        let Some(text) = text else {
            out.append_null();
            continue;
        };
        let written = match Json::parse_strict(text) {
            Some(value) => out.append(|encoder, bytes| encoder.json(&value, bytes))?,
            None => None,
        };
        if written.is_none() {
            if safe.value(row) == 0 {
                return Err(failure("MALFORMED_RECORD_IN_PARSING", format!("Malformed records are detected in record parsing: {text}.")));
            }
            out.append_null();
        }
    }
    Ok(Arc::new(out.finish()?))
}

/// `to_variant(value)`
pub fn to_variant(given: &Arguments) -> Result<ArrayRef> {
    let values = given.array(0)?;
    let mut out = Column::new(given.rows());
    for row in 0..given.rows() {
        if values.is_null(row) {
            out.append_null();
        } else if out.append(|encoder, bytes| encoder.value(values, row, bytes))?.is_none() {
            return Err(failure("VARIANT_DUPLICATE_KEY", "an object has a name twice"));
        }
    }
    Ok(Arc::new(out.finish()?))
}

/// A step of a path such as `$.a[0]['b']`.
pub(super) enum Step {
    Named(String),
    Index(usize),
}

pub(super) fn path_of(text: &str) -> Option<Vec<Step>> {
    let mut rest = text.trim_start().strip_prefix('$')?;
    let mut steps = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some(steps);
        }
        if let Some(after) = rest.strip_prefix('.') {
            let after = after.trim_start();
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            steps.push(Step::Named(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some((quote, after)) = ["['", "[\""].iter().find_map(|quote| Some((&quote[1..], rest.strip_prefix(quote)?))) {
            let end =
                after.find(&format!("{quote}]")).filter(|&end| end > 0 && !after[..end].contains(quote) && !after[..end].contains('?'))?;
            steps.push(Step::Named(after[..end].to_owned()));
            rest = &after[end + 2..];
        } else {
            let (inside, tail) = rest.strip_prefix('[')?.split_once(']')?;
            let digits = inside.trim();
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            steps.push(Step::Index(digits.parse::<i32>().ok()? as usize));
            rest = tail;
        }
    }
}

fn invalid_path(path: &str, name: &str) -> Error {
    failure("INVALID_VARIANT_GET_PATH", format!("The path `{path}` is not a valid variant extraction path in `{name}`."))
}

/// `variant_get(variant, path)` as a variant.
pub fn get(given: &Arguments) -> Result<ArrayRef> {
    let (values, paths) = (Variants::new(given.array(0)?)?, given.text(1)?);
    let mut out = Column::new(given.rows());
    let mut known: (&str, Vec<Step>) = ("$", Vec::new());
    for row in 0..given.rows() {
        let value = values.get(row)?;
        let (Some(value), true) = (value, paths.is_valid(row)) else {
            out.append_null();
            continue;
        };
        let path = paths.value(row);
        if path != known.0 {
            known = (path, path_of(path).ok_or_else(|| invalid_path(path, "variant_get"))?);
        }
        let found = known.1.iter().try_fold(value, |value, step| match (step, &value) {
            (Step::Named(name), Variant::Object(object)) => object.get(name),
            (Step::Index(place), Variant::List(items)) => items.get(*place),
            _ => None,
        });
        match found {
            Some(found) => out.append_variant(&found)?,
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()?))
}

/// `is_variant_null(variant)`: the null of JSON; false for NULL.
pub fn is_null(given: &Arguments) -> Result<ArrayRef> {
    let values = Variants::new(given.array(0)?)?;
    let found = (0..given.rows()).map(|row| Ok(Some(matches!(values.get(row)?, Some(Variant::Null)))));
    Ok(Arc::new(found.collect::<Result<BooleanArray>>()?))
}

/// `is_valid_variant(variant)`
pub fn is_valid(given: &Arguments) -> Result<ArrayRef> {
    let values = Variants::new(given.array(0)?)?;
    let found = (0..given.rows()).map(|row| match values.get(row) {
        Ok(None) => None,
        Ok(Some(_)) => Some(true),
        Err(_) => Some(false),
    });
    Ok(Arc::new(found.collect::<BooleanArray>()))
}

/// The zone of the session, the same in every row.
fn zone_of(given: &Arguments, place: usize) -> Result<Tz> {
    let zones = given.text(place)?;
    let zone = if given.rows() > 0 { zones.value(0) } else { "UTC" };
    zone.parse().map_err(|_| failure("UNSUPPORTED_TIME_ZONE", format!("the time zone {zone}")))
}

/// `to_json(variant, zone)`
pub fn to_json(given: &Arguments) -> Result<ArrayRef> {
    let (values, zone) = (Variants::new(given.array(0)?)?, zone_of(given, 1)?);
    let mut out = StringBuilder::with_capacity(given.rows(), 16 * given.rows());
    let mut buffer = String::new();
    for row in 0..given.rows() {
        match values.get(row)? {
            Some(value) => {
                buffer.clear();
                push(&value, &zone, &mut buffer)?;
                out.append_value(&buffer);
            }
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// Appends a value as JSON.
fn push(value: &Variant, zone: &Tz, out: &mut String) -> Result<()> {
    match value {
        Variant::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                push(&item, zone, out)?;
            }
            out.push(']');
        }
        Variant::Object(object) => {
            out.push('{');
            for (place, (name, item)) in object.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                push_quoted(name, out);
                out.push(':');
                push(&item, zone, out)?;
            }
            out.push('}');
        }
        Variant::Null => out.push_str("null"),
        Variant::String(_) | Variant::ShortString(_) => {
            let mut text = String::new();
            push_scalar(value, zone, &mut text)?;
            push_quoted(&text, out);
        }
        _ => {
            let mut text = String::new();
            push_scalar(value, zone, &mut text)?;
            let bare = matches!(value, Variant::BooleanTrue | Variant::BooleanFalse)
                || (text.ends_with(|last: char| last.is_ascii_digit())
                    && !matches!(
                        value,
                        Variant::Date(_)
                            | Variant::TimestampMicros(_)
                            | Variant::TimestampNtzMicros(_)
                            | Variant::Uuid(_)
                            | Variant::Binary(_)
                    ));
            if bare { out.push_str(&text) } else { out.push_str(&format!("\"{text}\"")) }
        }
    }
    Ok(())
}

fn push_moment(local: NaiveDateTime, out: &mut String) {
    let shown = local.format("%Y-%m-%d %H:%M:%S%.6f").to_string();
    out.push_str(shown.trim_end_matches('0').trim_end_matches('.'));
    if shown.ends_with(".000000") && !out.ends_with(|last: char| last.is_ascii_digit()) {
        out.push('0');
    }
}

/// Appends a value that is no array and no object, without quotes.
fn push_scalar(value: &Variant, zone: &Tz, out: &mut String) -> Result<()> {
    match value {
        Variant::BooleanTrue => out.push_str("true"),
        Variant::BooleanFalse => out.push_str("false"),
        Variant::Double(number) => push_double(*number, out),
        Variant::Float(number) => push_float(*number, out),
        Variant::String(text) => out.push_str(text),
        Variant::ShortString(text) => out.push_str(text.as_str()),
        Variant::Uuid(id) => out.push_str(&id.to_string()),
        Variant::Binary(bytes) => out.push_str(&base64(bytes)),
        Variant::Date(day) => out.push_str(&day.format("%Y-%m-%d").to_string()),
        Variant::TimestampNtzMicros(moment) => push_moment(*moment, out),
        Variant::TimestampMicros(moment) => {
            let offset = zone.offset_from_utc_datetime(&moment.naive_utc()).fix().local_minus_utc();
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

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0u32, |number, &byte| number << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            out.push(if place > chunk.len() { '=' } else { char::from(LETTERS[(number >> (18 - 6 * place) & 63) as usize]) });
        }
    }
    out
}

fn whole_of(value: &Variant) -> Option<i64> {
    match value {
        Variant::Int8(number) => Some(i64::from(*number)),
        Variant::Int16(number) => Some(i64::from(*number)),
        Variant::Int32(number) => Some(i64::from(*number)),
        Variant::Int64(number) => Some(*number),
        _ => None,
    }
}

/// `variant_parts(variant, zone)`: what casts of a variant start from. `kind` names its type; `whole` is a whole number, a boolean as 0 or
/// 1, days or microseconds, a decimal without its fraction; `number` a double or float; `text` a text, the digits of a decimal, and of all
/// else the JSON; `bytes` those of a binary.
pub fn parts(given: &Arguments) -> Result<ArrayRef> {
    let (values, zone) = (Variants::new(given.array(0)?)?, zone_of(given, 1)?);
    let rows = given.rows();
    let (mut kinds, mut texts) = (StringBuilder::with_capacity(rows, 8 * rows), StringBuilder::with_capacity(rows, 8 * rows));
    let mut wholes: Vec<Option<i64>> = Vec::with_capacity(rows);
    let mut numbers: Vec<Option<f64>> = Vec::with_capacity(rows);
    let (mut bytes, mut nulls) = (BinaryBuilder::new(), NullBufferBuilder::new(rows));
    for row in 0..rows {
        let value = values.get(row)?;
        nulls.append(value.is_some());
        let value = value.unwrap_or(Variant::Null);
        let kind = kind_of(&value)?;
        kinds.append_value(kind);
        wholes.push(match &value {
            Variant::BooleanTrue => Some(1),
            Variant::BooleanFalse => Some(0),
            Variant::Date(day) => Some(i64::from(days_of(*day))),
            Variant::TimestampMicros(moment) => Some(moment.timestamp_micros()),
            Variant::TimestampNtzMicros(moment) => Some(moment.and_utc().timestamp_micros()),
            other => match digits_of(other) {
                Some((digits, scale)) => i64::try_from(digits / 10i128.pow(u32::from(scale))).ok(),
                None => whole_of(other),
            },
        });
        numbers.push(match &value {
            Variant::Double(number) => Some(*number),
            Variant::Float(number) => Some(f64::from(*number)),
            _ => None,
        });
        let mut text = String::new();
        match kind {
            "null" | "long" | "double" | "float" | "date" | "timestamp" | "timestamp_ntz" | "boolean" | "binary" => {}
            "string" | "decimal" => push_scalar(&value, &zone, &mut text)?,
            _ => push(&value, &zone, &mut text)?,
        }
        texts.append_value(&text);
        bytes.append_option(if let Variant::Binary(bytes) = &value { Some(*bytes) } else { None });
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(kinds.finish()),
        Arc::new(arrow::array::Int64Array::from(wholes)),
        Arc::new(arrow::array::Float64Array::from(numbers)),
        Arc::new(texts.finish()),
        Arc::new(bytes.finish()),
    ];
    let names = ["kind", "whole", "number", "text", "bytes"];
    let fields: Fields = names.iter().zip(&columns).map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    Ok(Arc::new(StructArray::try_new(fields, columns, nulls.finish())?))
}

fn kind_of(value: &Variant) -> Result<&'static str> {
    Ok(match value {
        Variant::Null => "null",
        Variant::BooleanTrue | Variant::BooleanFalse => "boolean",
        Variant::Int8(_) | Variant::Int16(_) | Variant::Int32(_) | Variant::Int64(_) => "long",
        Variant::Double(_) => "double",
        Variant::Float(_) => "float",
        Variant::Decimal4(_) | Variant::Decimal8(_) | Variant::Decimal16(_) => "decimal",
        Variant::Date(_) => "date",
        Variant::TimestampMicros(_) => "timestamp",
        Variant::TimestampNtzMicros(_) => "timestamp_ntz",
        Variant::Binary(_) => "binary",
        Variant::String(_) | Variant::ShortString(_) => "string",
        Variant::Uuid(_) => "uuid",
        Variant::List(_) => "array",
        Variant::Object(_) => "object",
        Variant::TimestampNanos(_) | Variant::TimestampNtzNanos(_) | Variant::Time(_) => return Err(unknown()),
    })
}

/// `variant_items(variant)`: (pos, key, value) of each item of an array, whose key is null, and of each field of an object; null for any
/// other variant.
pub fn items(given: &Arguments) -> Result<ArrayRef> {
    let values = Variants::new(given.array(0)?)?;
    let mut keys = StringBuilder::new();
    let (mut places, mut column) = (Vec::new(), Column::new(given.rows()));
    let (mut offsets, mut nulls) = (vec![0i32], NullBufferBuilder::new(given.rows()));
    for row in 0..given.rows() {
        let found: Option<Vec<(Option<&str>, Variant)>> = match values.get(row)? {
            Some(Variant::List(items)) => Some(items.iter().map(|item| (None, item)).collect()),
            Some(Variant::Object(object)) => Some(object.iter().map(|(name, item)| (Some(name), item)).collect()),
            _ => None,
        };
        nulls.append(found.is_some());
        for (place, (key, item)) in found.into_iter().flatten().enumerate() {
            places.push(place as i32);
            keys.append_option(key);
            column.append_variant(&item)?;
        }
        offsets.push(places.len() as i32);
    }
    let columns: Vec<ArrayRef> =
        vec![Arc::new(arrow::array::Int32Array::from(places)), Arc::new(keys.finish()), Arc::new(column.finish()?)];
    let of_item = Fields::from(vec![
        Field::new("pos", DataType::Int32, true),
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Struct(fields()), true),
    ]);
    let items = StructArray::try_new(of_item.clone(), columns, None)?;
    let field = Arc::new(Field::new("item", DataType::Struct(of_item), true));
    let offsets = arrow::buffer::OffsetBuffer::new(offsets.into());
    Ok(Arc::new(arrow::array::ListArray::try_new(field, offsets, Arc::new(items), nulls.finish())?))
}

/// `schema_of_variant(variant)`
pub fn schema(given: &Arguments) -> Result<ArrayRef> {
    let values = Variants::new(given.array(0)?)?;
    let mut out = StringBuilder::new();
    for row in 0..given.rows() {
        match values.get(row)? {
            Some(value) => out.append_value(schema_of(&value)?.to_string()),
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// `schema_of_variants(list of variants)`: one schema for all of a list.
pub fn common_schema(given: &Arguments) -> Result<ArrayRef> {
    let lists = given.array(0)?;
    let mut out = StringBuilder::new();
    for row in 0..given.rows() {
        let mut found = Schema::Void;
        if lists.is_valid(row) {
            let values = Variants::new(&lists.as_list::<i32>().value(row))?;
            for place in 0..values.value.len() {
                if let Some(value) = values.get(place)? {
                    found = found.merged(schema_of(&value)?);
                }
            }
        }
        out.append_value(found.to_string());
    }
    Ok(Arc::new(out.finish()))
}

fn schema_of(value: &Variant) -> Result<Schema> {
    Ok(match value {
        Variant::List(items) => {
            let mut element = Schema::Void;
            for item in items.iter() {
                element = element.merged(schema_of(&item)?);
            }
            Schema::Array(Box::new(element))
        }
        Variant::Object(object) => {
            let fields: Result<BTreeMap<String, Schema>> =
                object.iter().map(|(name, item)| Ok((name.to_owned(), schema_of(&item)?))).collect();
            Schema::Object(fields?)
        }
        Variant::Null => Schema::Void,
        other => match digits_of(other) {
            Some((digits, scale)) => Schema::decimal(digits, scale),
            None => Schema::Scalar(kind_of(other)?),
        },
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, StringArray};

    use super::super::evaluate;
    use super::*;

    fn parsed(texts: Vec<&str>) -> ArrayRef {
        let safe: ArrayRef = Arc::new(Int32Array::from(vec![1; texts.len()]));
        evaluate("parse_json", &[Arc::new(StringArray::from(texts)), safe]).unwrap()
    }

    fn shown(variants: &ArrayRef) -> Vec<Option<String>> {
        let zones: ArrayRef = Arc::new(StringArray::from(vec!["UTC"; variants.len()]));
        let texts = evaluate("variant_to_json", &[Arc::clone(variants), zones]).unwrap();
        texts.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn text_to_variant_and_back() {
        let variants =
            parsed(vec![r#"{"b":1,"a":{"z":1.50,"y":[1,2,{"k":null}]}}"#, "1 x", "{bad", r#"{"a":1,"a":2}"#, "100.00", "'x'", "1e20"]);
        let expected = [Some(r#"{"a":{"y":[1,2,{"k":null}],"z":1.5},"b":1}"#), Some("1"), None, None, Some("100"), None, Some("1.0E20")];
        assert_eq!(shown(&variants), expected.map(|text| text.map(str::to_owned)));
    }

    #[test]
    fn bytes_are_those_of_spark() {
        let variants = parsed(vec![r#"{"a":1,"b":[1.5,true,null,"x"],"c":{"d":1e3}}"#]);
        let read = Variants::new(&variants).unwrap();
        assert_eq!(read.metadata.value(0), b"\x01\x04\x00\x01\x02\x03\x04abcd");
        assert_eq!(
            read.value.value(0),
            b"\x02\x03\x00\x01\x02\x00\x02\x13!\x0c\x01\x03\x04\x00\x06\x07\x08\n \x01\x0f\x00\x00\x00\x04\x00\x05x\x02\x01\x03\x00\t\x1c\x00\x00\x00\x00\x00@\x8f@"
        );
    }

    #[test]
    fn an_object_may_have_many_fields() {
        let fields = (0..100_000).map(|number| format!(r#""f{number}":{number}"#)).collect::<Vec<_>>().join(",");
        let variants = parsed(vec![&format!("{{{fields}}}"), r#"{"f0":1}"#]);
        let read = Variants::new(&variants).unwrap();
        let found = read.get(0).unwrap().unwrap();
        assert_eq!(found.as_object().unwrap().get("f77777"), Some(Variant::Int32(77_777)));
        assert_eq!(read.metadata.value(1), b"\x01\x01\x00\x02f0");
    }

    #[test]
    fn paths() {
        for (path, expected) in
            [("$.a[1].b", Some("7")), ("$['a'][0]", Some("1")), ("$[\"a\"][9]", None), ("$", Some(r#"{"a":[1,{"b":7}]}"#))]
        {
            let paths: ArrayRef = Arc::new(StringArray::from(vec![path]));
            let found = evaluate("variant_get", &[parsed(vec![r#"{"a":[1,{"b":7}]}"#]), paths]).unwrap();
            assert_eq!(shown(&found)[0].as_deref(), expected, "{path}");
        }
        for path in ["a", "$.", "$.a[", "$.a[-1]", "$.a[*]", "$['a?']"] {
            assert!(path_of(path).is_none(), "{path}");
        }
    }
}
