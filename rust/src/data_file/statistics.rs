//! Computes the statistics of a file from its rows: PROTOCOL.md, "Per-file Statistics": numRecords, bounds
//! and null counts.
//!
//! As in delta-spark, there are bounds for numbers, dates, timestamps and text, and a null count for each
//! leaf; a list or map is one leaf. A column with a NaN has no maximum, as readers take NaN to be greater
//! than it.

use std::cmp::Ordering;
use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{max, min};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike, NaiveDate, Utc};

use crate::error::Result;
use crate::schema::{Field, Primitive, TableSchema, Type};

/// The columns that have statistics.
#[derive(Debug, Clone)]
pub enum IndexedColumns {
    /// The first leaves, as many as this number.
    First(usize),
    /// The named columns, by dotted logical name; a struct stands for its leaves.
    Named(Vec<String>),
}

/// The statistics to compute for a column, in the structure of its type.
#[derive(Debug, Clone)]
pub enum StatisticsShape {
    /// No statistics.
    Nothing,
    /// Null count, and bounds where its type has them.
    Leaf(Primitive),
    /// Null count only.
    Count,
    /// The statistics of each field.
    Struct(Vec<StatisticsShape>),
}

impl StatisticsShape {
    /// Returns the statistics to compute for each of `fields`, the data columns of the table in order.
    pub fn of(schema: &TableSchema, fields: &[&Field], indexed: &IndexedColumns) -> Result<Vec<Self>> {
        let mut left = match indexed {
            IndexedColumns::First(count) => *count,
            IndexedColumns::Named(_) => usize::MAX,
        };
        let mut named = Vec::new();
        if let IndexedColumns::Named(names) = indexed {
            for name in names {
                named.push(schema.leaf(name)?.path);
            }
        }
        let within = |path: &[String]| {
            matches!(indexed, IndexedColumns::First(_)) || named.iter().any(|name| path.starts_with(name))
        };
        let mut chosen = Vec::with_capacity(fields.len());
        for field in fields {
            let index = schema.column(&field.name)?.0;
            // Values of partition columns are in the log, and hidden columns are not searched by value.
            chosen.push(if schema.is_partition(index) || schema.is_hidden(index) {
                Self::Nothing
            } else {
                Self::of_type(&field.data_type, &mut vec![field.name.clone()], &within, &mut left)
            });
        }
        Ok(chosen)
    }

    fn of_type(
        data_type: &Type,
        path: &mut Vec<String>,
        within: &impl Fn(&[String]) -> bool,
        left: &mut usize,
    ) -> Self {
        if let Type::Struct(fields) = data_type {
            let child = |field: &Field| {
                path.push(field.name.clone());
                let wanted = Self::of_type(&field.data_type, path, within, left);
                path.pop();
                wanted
            };
            return Self::Struct(fields.iter().map(child).collect());
        }
        if *left == 0 || !within(path) {
            return Self::Nothing;
        }
        *left -= 1;
        match data_type {
            Type::Primitive(primitive) => Self::Leaf(*primitive),
            _ => Self::Count,
        }
    }
}

/// A minimum or maximum.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Integer(i64),
    Float(f64),
    Decimal(i128),
    Text(String),
}

impl Value {
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Decimal(a), Self::Decimal(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }
}

/// The statistics of a column.
#[derive(Debug, Clone)]
pub enum GatheredStatistics {
    /// No statistics.
    Nothing,
    /// The statistics of a leaf.
    Leaf(Leaf),
    /// The statistics of each field.
    Struct(Vec<GatheredStatistics>),
}

/// Null count and bounds of a leaf.
#[derive(Debug, Clone)]
pub struct Leaf {
    primitive: Option<Primitive>,
    nulls: u64,
    nan: bool,
    bounds: Option<(Value, Value)>,
}

impl GatheredStatistics {
    /// Makes statistics without rows.
    pub fn new(wanted: &StatisticsShape) -> Self {
        match wanted {
            StatisticsShape::Nothing => Self::Nothing,
            StatisticsShape::Leaf(primitive) => {
                Self::Leaf(Leaf { primitive: Some(*primitive), nulls: 0, nan: false, bounds: None })
            }
            StatisticsShape::Count => {
                Self::Leaf(Leaf { primitive: None, nulls: 0, nan: false, bounds: None })
            }
            StatisticsShape::Struct(fields) => Self::Struct(fields.iter().map(Self::new).collect()),
        }
    }
    /// Adds the values of an array. `above`: the nulls of the structs around it; a leaf is null there too.
    pub fn add(&mut self, array: &ArrayRef, above: Option<&NullBuffer>) {
        match self {
            Self::Nothing => {}
            Self::Leaf(leaf) => leaf.add(array, above),
            Self::Struct(fields) => {
                let Some(found) = array.as_struct_opt() else { return };
                let above = NullBuffer::union(above, found.nulls());
                fields
                    .iter_mut()
                    .zip(found.columns())
                    .for_each(|(field, child)| field.add(child, above.as_ref()));
            }
        }
    }
    /// Adds the statistics of other rows.
    pub fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Leaf(leaf), Self::Leaf(other)) => leaf.merge(other),
            (Self::Struct(fields), Self::Struct(others)) => {
                fields.iter_mut().zip(others).for_each(|(field, other)| field.merge(other))
            }
            _ => {}
        }
    }
}

impl Leaf {
    /// Makes the statistics of a leaf with only a null count.
    pub fn all_null(primitive: Primitive, nulls: u64) -> Self {
        Self { primitive: Some(primitive), nulls, nan: false, bounds: None }
    }
    /// Adds bounds of rows that are already counted. Parquet's bounds of floats do not include NaN, so they
    /// give no maximum unless their writer is known to treat NaN as the greatest value.
    pub fn widen_by(&mut self, low: &ArrayRef, high: &ArrayRef, nan_is_greatest: bool) {
        let nulls = self.nulls;
        self.add(low, None);
        self.add(high, None);
        self.nulls = nulls;
        self.nan |= low.data_type().is_floating() && !nan_is_greatest;
    }

    fn merge(&mut self, other: Self) {
        self.nulls += other.nulls;
        self.nan |= other.nan;
        if let Some((low, high)) = other.bounds {
            self.widen(low, high);
        }
    }

    fn widen(&mut self, low: Value, high: Value) {
        match &mut self.bounds {
            None => self.bounds = Some((low, high)),
            Some((min, max)) => {
                if low.order(min) == Ordering::Less {
                    *min = low;
                }
                if high.order(max) == Ordering::Greater {
                    *max = high;
                }
            }
        }
    }

    fn add(&mut self, array: &ArrayRef, above: Option<&NullBuffer>) {
        let nulls = NullBuffer::union(above, array.logical_nulls().as_ref());
        let null_count = nulls.as_ref().map_or(0, NullBuffer::null_count);
        self.nulls += null_count as u64;
        if null_count == array.len() {
            return;
        }
        match array.data_type() {
            DataType::Int8 => self.integers::<Int8Type>(array, nulls),
            DataType::Int16 => self.integers::<Int16Type>(array, nulls),
            DataType::Int32 => self.integers::<Int32Type>(array, nulls),
            DataType::Int64 => self.integers::<Int64Type>(array, nulls),
            DataType::Date32 => self.integers::<Date32Type>(array, nulls),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                self.integers::<TimestampMicrosecondType>(array, nulls)
            }
            DataType::Decimal128(_, _) => {
                if let Some((low, high)) = extremes(&masked::<Decimal128Type>(array, nulls)) {
                    self.widen(Value::Decimal(low), Value::Decimal(high));
                }
            }
            DataType::Float32 => {
                self.floats(masked::<Float32Type>(array, nulls).iter().flatten().map(f64::from))
            }
            DataType::Float64 => self.floats(masked::<Float64Type>(array, nulls).iter().flatten()),
            DataType::Utf8 => self.texts(array, nulls.as_ref()),
            _ => {}
        }
    }

    fn integers<T: ArrowPrimitiveType<Native: Into<i64>>>(
        &mut self,
        array: &ArrayRef,
        nulls: Option<NullBuffer>,
    ) {
        if let Some((low, high)) = extremes(&masked::<T>(array, nulls)) {
            self.widen(Value::Integer(low.into()), Value::Integer(high.into()));
        }
    }

    fn floats(&mut self, values: impl Iterator<Item = f64>) {
        let (mut low, mut high, mut any) = (f64::INFINITY, f64::NEG_INFINITY, false);
        for value in values {
            if value.is_nan() {
                self.nan = true;
                continue;
            }
            any = true;
            low = low.min(value);
            high = high.max(value);
        }
        if any {
            self.widen(Value::Float(low + 0.0), Value::Float(high + 0.0)); // -0.0 becomes 0.0
        }
    }

    fn texts(&mut self, array: &ArrayRef, nulls: Option<&NullBuffer>) {
        let texts = array.as_string::<i32>();
        let mut bounds: Option<(&str, &str)> = None;
        for index in 0..texts.len() {
            if nulls.is_some_and(|nulls| nulls.is_null(index)) {
                continue;
            }
            let text = texts.value(index);
            match &mut bounds {
                None => bounds = Some((text, text)),
                Some((low, high)) => {
                    if text < *low {
                        *low = text;
                    } else if text > *high {
                        *high = text;
                    }
                }
            }
        }
        if let Some((low, high)) = bounds {
            self.widen(Value::Text(low.to_owned()), Value::Text(high.to_owned()));
        }
    }
}

fn masked<T: ArrowPrimitiveType>(array: &ArrayRef, nulls: Option<NullBuffer>) -> PrimitiveArray<T> {
    PrimitiveArray::new(array.as_primitive::<T>().values().clone(), nulls)
}

fn extremes<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Option<(T::Native, T::Native)> {
    Some((min(array)?, max(array)?))
}

/// The form of statistics as text.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Maximum number of characters of text in bounds.
    pub letters: usize,
    /// `tightBounds`, if it is to be written.
    pub tight: Option<bool>,
}

/// A column's name and its statistics.
#[derive(Debug)]
pub struct NamedStatistics<'a> {
    /// Physical name.
    pub name: &'a str,
    /// The column's type.
    pub data_type: &'a Type,
    /// The column's statistics.
    pub gathered: &'a GatheredStatistics,
}

/// The object that is written: minima, maxima or null counts.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Min,
    Max,
    Nulls,
}

/// Returns the statistics of a file of `rows` rows as JSON.
pub fn to_json(rows: u64, columns: &[NamedStatistics<'_>], schema: &TableSchema, form: Form) -> String {
    let mut text = format!("{{\"numRecords\":{rows}");
    for (key, part) in [("minValues", Part::Min), ("maxValues", Part::Max), ("nullCount", Part::Nulls)] {
        let tree = object(columns, part, schema, form).unwrap_or_else(|| "{}".to_owned());
        let _ = write!(text, ",\"{key}\":{tree}");
    }
    if let Some(tight) = form.tight {
        let _ = write!(text, ",\"tightBounds\":{tight}");
    }
    text.push('}');
    text
}

fn object(columns: &[NamedStatistics<'_>], part: Part, schema: &TableSchema, form: Form) -> Option<String> {
    let mut text = String::from("{");
    for column in columns {
        let value = match (column.gathered, column.data_type) {
            (GatheredStatistics::Nothing, _) => None,
            (GatheredStatistics::Leaf(leaf), _) => leaf.text(part, form),
            (GatheredStatistics::Struct(gathered), Type::Struct(fields)) => {
                let inner: Vec<NamedStatistics<'_>> = fields
                    .iter()
                    .zip(gathered)
                    .map(|(field, gathered)| NamedStatistics {
                        name: schema.physical_name(field),
                        data_type: &field.data_type,
                        gathered,
                    })
                    .collect();
                object(&inner, part, schema, form)
            }
            _ => None,
        };
        if let Some(value) = value {
            if text.len() > 1 {
                text.push(',');
            }
            let _ = write!(text, "{}:{value}", json_text(column.name));
        }
    }
    text.push('}');
    (text.len() > 2).then_some(text)
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Leaf {
    fn text(&self, part: Part, form: Form) -> Option<String> {
        if part == Part::Nulls {
            return Some(self.nulls.to_string());
        }
        if part == Part::Max && self.nan {
            return None;
        }
        let (low, high) = self.bounds.as_ref()?;
        let upper = part == Part::Max;
        match (if upper { high } else { low }, self.primitive?) {
            (Value::Integer(days), Primitive::Date) => date(*days).map(|date| format!("\"{date}\"")),
            (Value::Integer(micros), Primitive::Timestamp) => {
                timestamp(*micros, upper).map(|time| format!("\"{time}Z\""))
            }
            (Value::Integer(micros), Primitive::TimestampNtz) => {
                timestamp(*micros, upper).map(|time| format!("\"{time}\""))
            }
            (Value::Integer(value), _) => Some(value.to_string()),
            (Value::Float(value), Primitive::Float) => {
                finite(f64::from(*value as f32), serde_json::to_string(&(*value as f32)).ok())
            }
            (Value::Float(value), _) => finite(*value, serde_json::to_string(value).ok()),
            (Value::Decimal(value), Primitive::Decimal(_, scale)) => Some(decimal(*value, scale)),
            (Value::Text(text), _) => bound_text(text, form.letters, upper).map(|text| json_text(&text)),
            _ => None,
        }
    }
}

/// Returns `text`, or `None` for infinity and NaN, which JSON does not have.
fn finite(value: f64, text: Option<String>) -> Option<String> {
    if value.is_finite() { text } else { None }
}

fn decimal(value: i128, scale: i8) -> String {
    let digits = value.unsigned_abs().to_string();
    let scale = usize::try_from(scale).unwrap_or(0);
    let sign = if value < 0 { "-" } else { "" };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

fn date(days: i64) -> Option<String> {
    let date = NaiveDate::from_ymd_opt(1970, 1, 1)?.checked_add_signed(chrono::Duration::try_days(days)?)?;
    (1..=9999).contains(&date.year()).then(|| date.format("%Y-%m-%d").to_string())
}

/// Returns the text of a timestamp in milliseconds: a minimum is rounded down, a maximum (`upper`) up. `None`
/// outside of the years 1 to 9999.
fn timestamp(micros: i64, upper: bool) -> Option<String> {
    let millis = micros.div_euclid(1000) + i64::from(upper && micros.rem_euclid(1000) != 0);
    let time: DateTime<Utc> = DateTime::from_timestamp_millis(millis)?;
    (1..=9999).contains(&time.year()).then(|| time.format("%Y-%m-%dT%H:%M:%S%.3f").to_string())
}

/// Returns a bound of at most `letters` characters. A truncated maximum gets a last character that makes it
/// greater than the full text.
fn bound_text(text: &str, letters: usize, upper: bool) -> Option<String> {
    let Some((mut end, _)) = text.char_indices().nth(letters) else { return Some(text.to_owned()) };
    if !upper {
        return Some(text[..end].to_owned());
    }
    loop {
        let next = text[end..].chars().next()?;
        if next < '\u{7f}' {
            return Some(format!("{}\u{7f}", &text[..end]));
        }
        if next < char::MAX {
            return Some(format!("{}{}", &text[..end], char::MAX));
        }
        end += next.len_utf8();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_keep_their_digits() {
        assert_eq!(decimal(-5, 3), "-0.005");
        assert_eq!(decimal(123_456, 2), "1234.56");
        assert_eq!(decimal(i128::from(i64::MIN), 0), "-9223372036854775808");
    }

    #[test]
    fn timestamps_are_rounded_outwards() {
        assert_eq!(timestamp(-1, false).unwrap(), "1969-12-31T23:59:59.999");
        assert_eq!(timestamp(-1, true).unwrap(), "1970-01-01T00:00:00.000");
        assert_eq!(timestamp(1_234_567, true).unwrap(), "1970-01-01T00:00:01.235");
        assert_eq!(timestamp(i64::MAX, true), None);
    }

    proptest! {
        #[test]
        fn cut_bounds_hold(text in "[a\u{7e}\u{7f}é\u{10ffff}z]{0,12}", letters in 1_usize..6) {
            let low = bound_text(&text, letters, false).unwrap();
            prop_assert!(low.as_str() <= text.as_str() && low.chars().count() <= letters);
            if let Some(high) = bound_text(&text, letters, true) {
                prop_assert!(high.as_str() >= text.as_str());
            } else {
                prop_assert!(text.chars().skip(letters).all(|letter| letter == char::MAX));
            }
        }
    }
}
