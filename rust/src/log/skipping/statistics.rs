//! Parses statistics from JSON to typed columns, for the columns that are needed ("Per-file Statistics").
//!
//! Other writers may have written the statistics. Statistics that do not parse, or do not decide anything,
//! are unknown (null), never an error.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float32Array, Float64Array, Int64Array, Int64Builder,
    StringArray, StringBuilder,
};
use arrow::array::{TimestampMicrosecondArray, new_null_array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, TimeUnit};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::log::reading::line::Text;
use crate::schema::partition_values::{parse_array, parse_scalar, parse_timestamp};

/// Number of microseconds that may be missing, as writers cut timestamps to milliseconds.
pub(crate) const CUT_MICROS: i64 = 999;

/// 1920-01-01 in microseconds. Since about then, offsets from UTC are whole minutes.
const FIRST_WHOLE_OFFSETS: i64 = -1_577_923_200_000_000;
/// Number of decimal digits that a double keeps.
pub(super) const DOUBLE_DIGITS: u8 = 15;

/// Typed statistics of one column, one row per file; null means unknown.
#[derive(Debug, Clone)]
pub struct ColumnStatistics {
    /// Lower bound.
    pub min: ArrayRef,
    /// Upper bound.
    pub max: ArrayRef,
    /// Number of nulls.
    pub null_count: Int64Array,
}

/// The requested statistics, one row per file.
#[derive(Debug, Clone)]
pub struct Statistics {
    /// Number of physical rows.
    pub num_records: Int64Array,
    /// The columns, in the order of the request.
    pub columns: Vec<ColumnStatistics>,
}

/// A column whose statistics are read.
#[derive(Debug, Clone, Copy)]
pub struct StatisticsColumn<'a> {
    /// Physical names from the top level down.
    pub path: &'a [String],
    /// The column's type.
    pub data_type: &'a DataType,
    /// True if the type was float before it was widened: bounds are widened so that they hold for files
    /// written before.
    pub was_float: bool,
}

/// Parses numRecords alone.
pub fn num_records(stats: &StringArray) -> Int64Array {
    #[derive(Deserialize)]
    struct Count<'a> {
        #[serde(rename = "numRecords", borrow)]
        count: Option<&'a RawValue>,
    }
    let read = |text: &str| {
        // serde also parses a struct from a list of its fields: `[5]`.
        text.trim_start().starts_with('{').then_some(())?;
        serde_json::from_str::<Count<'_>>(text)
            .ok()?
            .count?
            .get()
            .parse::<i64>()
            .ok()
            .filter(|count| *count >= 0)
    };
    stats.iter().map(|text| text.and_then(read)).collect()
}

/// Parses bounds for skipping: widened if their writer may have cut them. The caller divides large inputs
/// over several threads.
pub fn parse(stats: &StringArray, wanted: &[StatisticsColumn<'_>]) -> Result<Statistics> {
    parse_as(stats, wanted, true)
}

/// Parses bounds for display: as written in the log, apart from those of a column that was `float` when they
/// were written.
pub fn parse_as_written(stats: &StringArray, wanted: &[StatisticsColumn<'_>]) -> Result<Statistics> {
    parse_as(stats, wanted, false)
}

fn parse_as(stats: &StringArray, wanted: &[StatisticsColumn<'_>], widen: bool) -> Result<Statistics> {
    let tree = Node::of(wanted.iter().map(|column| column.path));
    let mut counts = Int64Builder::with_capacity(stats.len());
    let mut columns: Vec<Texts> = wanted.iter().map(|_| Texts::default()).collect();
    for text in stats {
        let mut row = Row { num_records: None, values: vec![[const { None }; 3]; wanted.len()] };
        let whole = text.is_some_and(|text| {
            let mut deserializer = serde_json::Deserializer::from_str(text);
            Top { tree: &tree, row: &mut row }.deserialize(&mut deserializer).is_ok()
                && deserializer.end().is_ok()
        });
        counts.append_option(row.num_records.filter(|_| whole));
        for (column, [min, max, nulls]) in columns.iter_mut().zip(row.values) {
            column.min.append_option(min.filter(|_| whole));
            column.max.append_option(max.filter(|_| whole));
            column.null_count.append_option(
                nulls.filter(|_| whole).and_then(|text| text.parse::<i64>().ok()).filter(|count| *count >= 0),
            );
        }
    }
    let typed = columns.into_iter().zip(wanted).map(|(texts, column)| texts.finish(column, widen));
    Ok(Statistics { num_records: counts.finish(), columns: typed.collect::<Result<_>>()? })
}

#[derive(Default)]
struct Texts {
    min: StringBuilder,
    max: StringBuilder,
    null_count: Int64Builder,
}

impl Texts {
    fn finish(mut self, column: &StatisticsColumn<'_>, widen: bool) -> Result<ColumnStatistics> {
        let mut bound = |side| {
            let texts = if side == Side::Low { self.min.finish() } else { self.max.finish() };
            let values = typed(&texts, column.data_type, widen.then_some(side))?;
            Ok::<_, Error>(if column.was_float { widen_floats(&values, side) } else { values })
        };
        Ok(ColumnStatistics {
            min: bound(Side::Low)?,
            max: bound(Side::High)?,
            null_count: self.null_count.finish(),
        })
    }
}

/// The side of a column's values on which a bound is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Side {
    Low,
    High,
}

/// Parses values. `widen`: the side that the values bound, if they are to be widened.
fn typed(texts: &StringArray, data_type: &DataType, widen: Option<Side>) -> Result<ArrayRef> {
    match (data_type, widen) {
        // Binary values have no JSON form with their order; nested values have no statistics of their own.
        (
            DataType::Binary | DataType::Struct(_) | DataType::List(_) | DataType::Map(_, _) | DataType::Null,
            _,
        ) => Ok(new_null_array(data_type, texts.len())),
        (DataType::Timestamp(TimeUnit::Microsecond, zone), Some(side)) => {
            let read = |text: &str| timestamp_bound(text, zone.is_some(), side);
            let micros: TimestampMicrosecondArray = texts.iter().map(|text| text.and_then(read)).collect();
            Ok(Arc::new(micros.with_timezone_opt(zone.clone())))
        }
        _ => {
            let values = parse_array(texts, data_type).or_else(|_| leniently(texts, data_type))?;
            match (data_type, widen) {
                (DataType::Decimal128(precision, _), Some(side)) if *precision > DOUBLE_DIGITS => {
                    widen_decimals(&values, side)
                }
                _ => Ok(without_nan(values)),
            }
        }
    }
}

/// Widens decimals with more digits than a double keeps: their writer may have rounded them to a double.
pub(super) fn widen_decimals(values: &ArrayRef, side: Side) -> Result<ArrayRef> {
    let widened: Decimal128Array = values.as_primitive::<Decimal128Type>().unary(|value: i128| {
        let slack = (value.unsigned_abs() >> 52) as i128 + 1;
        if side == Side::High { value.saturating_add(slack) } else { value.saturating_sub(slack) }
    });
    Ok(Arc::new(widened.with_data_type(values.data_type().clone())))
}

/// Widens doubles that may have been floats: the text `0.7` may stand for the float 0.699999988079071. A
/// double that is exactly a float stays; any other becomes the next float on this side.
pub(crate) fn widen_floats(values: &ArrayRef, side: Side) -> ArrayRef {
    let Some(doubles) = values.as_primitive_opt::<Float64Type>() else { return Arc::clone(values) };
    let widen = |double: f64| {
        let float = double as f32;
        let next = f64::from(if side == Side::High { float.next_up() } else { float.next_down() });
        // A double beyond the range of floats was never a float.
        if f64::from(float) == double || (float.is_infinite() && double.abs() > f64::from(f32::MAX) * 2.0) {
            double
        } else {
            next
        }
    };
    Arc::new(doubles.unary::<_, Float64Type>(widen))
}

/// Parses texts one by one; a text that is no value of the type becomes null.
pub fn leniently(texts: &StringArray, data_type: &DataType) -> Result<ArrayRef> {
    let values: Vec<ArrayRef> = texts
        .iter()
        .map(|text| parse_scalar(text, data_type).unwrap_or_else(|_| new_null_array(data_type, 1)))
        .collect();
    if values.is_empty() {
        return Ok(new_null_array(data_type, 0));
    }
    Ok(concat(&values.iter().map(AsRef::as_ref).collect::<Vec<_>>())?)
}

/// Makes bounds of NaN unknown, as writers sort NaN differently.
pub(super) fn without_nan(values: ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => {
            let known =
                values.as_primitive::<Float32Type>().iter().map(|value| value.filter(|v| !v.is_nan()));
            Arc::new(known.collect::<Float32Array>())
        }
        DataType::Float64 => {
            let known =
                values.as_primitive::<Float64Type>().iter().map(|value| value.filter(|v| !v.is_nan()));
            Arc::new(known.collect::<Float64Array>())
        }
        _ => values,
    }
}

/// Returns a bound in microseconds, widened by what its writer may have cut. A timestamp without a time zone,
/// in a column that needs one, is unknown.
fn timestamp_bound(text: &str, zoned: bool, side: Side) -> Option<i64> {
    // A year outside of 0 to 9999 begins with a sign; such bounds are unknown.
    if text.starts_with(['+', '-']) || zoned && !text.get(10..)?.contains(['Z', '+', '-']) {
        return None;
    }
    let micros = parse_timestamp(text).ok()?;
    // Spark cut offsets of local mean times, in use before 1920, to minutes.
    let offset = if micros < FIRST_WHOLE_OFFSETS && !text.ends_with('Z') { 60_000_000 } else { 0 };
    let upper = side == Side::High;
    let micros = if upper { micros.checked_add(offset)? } else { micros.checked_sub(offset)? };
    let digits = text
        .find('.')
        .map_or(0, |dot| text.as_bytes()[dot + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count());
    let whole = micros % 1000 == 0; // "….123000Z" may be as cut as "….123Z"
    match upper {
        true if whole => micros.checked_add(CUT_MICROS),
        true if digits > 6 => micros.checked_add(1),
        // Before 1970, cutting may round towards zero, which is up.
        false if whole && micros < 0 => micros.checked_sub(CUT_MICROS),
        _ => Some(micros),
    }
}

/// The names of the requested columns as a tree, with the number of the column at each leaf.
#[derive(Default)]
struct Node {
    leaf: Option<usize>,
    children: Vec<(String, Node)>,
}

impl Node {
    fn of<'a>(paths: impl Iterator<Item = &'a [String]>) -> Self {
        let mut root = Self::default();
        for (index, path) in paths.enumerate() {
            let mut node = &mut root;
            for name in path {
                let at = node.children.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                    node.children.push((name.clone(), Self::default()));
                    node.children.len() - 1
                });
                node = &mut node.children[at].1;
            }
            node.leaf.get_or_insert(index);
        }
        root
    }
}

struct Row<'de> {
    num_records: Option<i64>,
    values: Vec<[Option<Cow<'de, str>>; 3]>,
}

/// Visits the JSON object of a file's statistics.
struct Top<'t, 'r, 'de> {
    tree: &'t Node,
    row: &'r mut Row<'de>,
}

impl<'de> DeserializeSeed<'de> for Top<'_, '_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_, '_, 'de> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("statistics")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            let side = match key.0.as_ref() {
                "minValues" => 0,
                "maxValues" => 1,
                "nullCount" => 2,
                "numRecords" => {
                    let count: &'de RawValue = map.next_value()?;
                    self.row.num_records = count.get().parse().ok().filter(|count| *count >= 0);
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let value: &'de RawValue = map.next_value()?;
            walk(value, self.tree, side, &mut self.row.values).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

/// Visits a JSON object of values by column: `minValues`, `maxValues` or `nullCount`, or a struct within
/// them.
struct Level<'t, 'r, 'de> {
    node: &'t Node,
    side: usize,
    values: &'r mut Vec<[Option<Cow<'de, str>>; 3]>,
}

fn walk<'de>(
    value: &'de RawValue,
    node: &Node,
    side: usize,
    values: &mut Vec<[Option<Cow<'de, str>>; 3]>,
) -> Result<()> {
    let text = value.get();
    if let Some(leaf) = node.leaf {
        values[leaf][side] = match text.as_bytes().first() {
            Some(b'"') => serde_json::from_str::<Text<'de>>(text).ok().map(|text| text.0),
            Some(b'{' | b'[' | b'n') | None => None,
            Some(_) => Some(Cow::Borrowed(text)),
        };
    }
    if !node.children.is_empty() && text.starts_with('{') {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let level = Level { node, side, values };
        deserializer
            .deserialize_map(level)
            .map_err(|error| Error::protocol("malformed statistics").caused_by(error))?;
    }
    Ok(())
}

impl<'de> Visitor<'de> for Level<'_, '_, 'de> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by column")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match self.node.children.iter().find(|(name, _)| *name == key.0) {
                Some((_, child)) => {
                    let value: &'de RawValue = map.next_value()?;
                    walk(value, child, self.side, self.values).map_err(serde::de::Error::custom)?;
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_have_counts() {
        let texts = [r#"{"numRecords":5}"#, r#" {"numRecords":6}"#, "[7]", "8", r#"{"numRecords":"9"}"#];
        let counts = num_records(&StringArray::from(texts.to_vec()));
        assert_eq!(counts, Int64Array::from(vec![Some(5), Some(6), None, None, None]));
    }
}
