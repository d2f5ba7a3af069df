//! Statistics of files, from the JSON of their `add` actions. PROTOCOL.md, "Per-file Statistics".
//!
//! Only the columns that are asked for are taken out of the text, in one pass and on several threads where files are many. Statistics
//! that do not parse are no statistics: they never fail a read and never skip a file. Where writers are known to round, bounds are
//! widened: timestamps to milliseconds, and wide decimals that passed through a double.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array, Int64Array, MapArray, PrimitiveArray, RecordBatch,
    StringArray, new_null_array,
};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, TimeUnit, TimestampMicrosecondType};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::predicate::statistics::{Bounds, Containers, may_match};
use crate::predicate::{Column, Predicate};
use crate::schema::partition_values::{parse_array, parse_scalar};

/// Files a thread parses at least: below, starting it costs more.
const FILES_PER_THREAD: usize = 8_192;

/// What is known of each file about the columns that a predicate names.
#[derive(Debug)]
pub struct FileStatistics {
    files: usize,
    known: Vec<(Arc<Column>, Bounds)>,
}

impl FileStatistics {
    /// Partition values, and with `statistics` the bounds of data columns, of these `add` rows.
    pub fn new(adds: &RecordBatch, columns: &[Arc<Column>], statistics: bool) -> Result<Self> {
        let mut known = Vec::with_capacity(columns.len());
        for column in columns.iter().filter(|column| column.partition) {
            known.push((column.clone(), Bounds::of_partition(partition_values(adds, column)?)));
        }
        let data: Vec<_> = columns.iter().filter(|column| !column.partition && is_ordered(&column.data_type)).cloned().collect();
        if statistics && !data.is_empty() {
            let bounds = parse_threaded(&stats_texts(adds)?, &data)?;
            known.extend(data.into_iter().zip(bounds));
        }
        Ok(Self { files: adds.num_rows(), known })
    }
}

impl Containers for FileStatistics {
    fn len(&self) -> usize {
        self.files
    }
    fn bounds(&self, column: &Column) -> Result<Option<Bounds>> {
        Ok(self.known.iter().find(|(known, _)| known.as_ref() == column).map(|(_, bounds)| bounds.clone()))
    }
}

/// Which files may hold a match, and what decided of the others.
#[derive(Debug)]
pub struct Selected {
    /// True for the files that stay.
    pub mask: BooleanArray,
    /// Left out by their partition values.
    pub skipped_by_partition: usize,
    /// Left out by their statistics.
    pub skipped_by_statistics: usize,
}

/// Partition values decide first; statistics are parsed only for the files that they leave.
pub fn select(adds: &RecordBatch, predicate: Option<&Predicate>, statistics: bool) -> Result<Selected> {
    let all = adds.num_rows();
    let Some(predicate) = predicate else {
        return Ok(Selected { mask: BooleanArray::from(vec![true; all]), skipped_by_partition: 0, skipped_by_statistics: 0 });
    };
    let columns = predicate.columns();
    let by_partition = may_match(predicate, &FileStatistics::new(adds, &columns, false)?)?;
    let left = by_partition.true_count();
    let skipped_by_partition = all - left;
    if !statistics || predicate.is_partition_only() || left == 0 {
        return Ok(Selected { mask: by_partition, skipped_by_partition, skipped_by_statistics: 0 });
    }
    let rest = arrow::compute::filter_record_batch(adds, &by_partition)?;
    let by_statistics = may_match(predicate, &FileStatistics::new(&rest, &columns, true)?)?;
    let kept = by_statistics.true_count();
    let mut answers = by_statistics.iter();
    let mask = by_partition.iter().map(|stays| Some(stays == Some(true) && answers.next().flatten() == Some(true))).collect();
    Ok(Selected { mask, skipped_by_partition, skipped_by_statistics: left - kept })
}

/// Physical rows of each file; null where the statistics do not say.
pub fn num_records(adds: &RecordBatch) -> Result<Int64Array> {
    let texts = stats_texts(adds)?;
    let parsed = in_threads(&texts, &|part| {
        let wanted = Wanted::counts();
        Ok(vec![Arc::new(integers(&wanted.read(part), NUM_RECORDS)) as ArrayRef])
    })?;
    Ok(parsed[0].as_primitive().clone())
}

/// The values of a partition column, in its type.
pub fn partition_values(adds: &RecordBatch, column: &Column) -> Result<ArrayRef> {
    let maps = adds.column_by_name("partitionValues").and_then(|maps| maps.as_map_opt()).ok_or_else(|| missing("partitionValues"))?;
    let name = column.physical.first().map(String::as_str).unwrap_or_default();
    let texts = map_values(maps, name);
    parse_array(&texts, &column.data_type).map_err(|e| e.at(format!("partitionValues of {}", column.path.join("."))))
}

fn map_values(maps: &MapArray, name: &str) -> StringArray {
    let (keys, values) = (maps.keys().as_string::<i32>(), maps.values().as_string::<i32>());
    let offsets = maps.value_offsets();
    let value_of = |row: usize| {
        let mut entries = offsets[row] as usize..offsets[row + 1] as usize;
        entries.find(|&i| keys.value(i) == name).filter(|&i| values.is_valid(i)).map(|i| values.value(i))
    };
    (0..maps.len()).map(|row| if maps.is_null(row) { None } else { value_of(row) }).collect()
}

fn stats_texts(adds: &RecordBatch) -> Result<StringArray> {
    let stats = adds.column_by_name("stats").ok_or_else(|| missing("stats"))?;
    Ok(stats.as_string_opt::<i32>().ok_or_else(|| missing("stats"))?.clone())
}

fn missing(column: &str) -> Error {
    Error::protocol("a table of add actions without a column that they have").found(column)
}

/// Types whose statistics are used; of the others only null counts would tell, which no file's statistics hold.
fn is_ordered(data_type: &DataType) -> bool {
    !data_type.is_nested() && !matches!(data_type, DataType::Binary | DataType::Null)
}

/// Slot of numRecords; a column's minimum, maximum and null count follow, three slots each.
const NUM_RECORDS: usize = 0;

fn parse_threaded(texts: &StringArray, columns: &[Arc<Column>]) -> Result<Vec<Bounds>> {
    let parsed = in_threads(texts, &|part| parse(part, columns))?;
    let integers = |slot: usize| parsed[slot].as_primitive().clone();
    let bounds = (0..columns.len()).map(|c| {
        let slot = 1 + 3 * c;
        Bounds { min: parsed[slot].clone(), max: parsed[slot + 1].clone(), null_count: integers(slot + 2), row_count: integers(NUM_RECORDS), exact: false }
    });
    Ok(bounds.collect())
}

/// Cuts the texts into one part a thread and puts the answers, an array a slot, together again.
fn in_threads(texts: &StringArray, work: &(dyn Fn(&StringArray) -> Result<Vec<ArrayRef>> + Sync)) -> Result<Vec<ArrayRef>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(texts.len() / FILES_PER_THREAD).max(1);
    let size = texts.len().div_ceil(threads).max(1);
    let parts: Vec<StringArray> = (0..threads).map(|t| t * size).filter(|&from| from == 0 || from < texts.len()).map(|from| texts.slice(from, size.min(texts.len() - from))).collect();
    let answers: Vec<Result<Vec<ArrayRef>>> = std::thread::scope(|scope| {
        let running: Vec<_> = parts.iter().map(|part| scope.spawn(move || work(part))).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(Error::protocol("statistics that cannot be parsed")))).collect()
    });
    let answers = answers.into_iter().collect::<Result<Vec<_>>>()?;
    let slots = answers.first().map_or(0, Vec::len);
    (0..slots).map(|slot| Ok(concat(&answers.iter().map(|arrays| arrays[slot].as_ref()).collect::<Vec<_>>())?)).collect()
}

fn parse(texts: &StringArray, columns: &[Arc<Column>]) -> Result<Vec<ArrayRef>> {
    let values = Wanted::of(columns).read(texts);
    let mut slots: Vec<ArrayRef> = vec![Arc::new(integers(&values, NUM_RECORDS))];
    for (c, column) in columns.iter().enumerate() {
        let slot = 1 + 3 * c;
        slots.push(bound(&values, slot, &column.data_type, Side::Low)?);
        slots.push(bound(&values, slot + 1, &column.data_type, Side::High)?);
        slots.push(Arc::new(integers(&values, slot + 2)));
    }
    Ok(slots)
}

fn integers(values: &[Vec<Option<String>>], slot: usize) -> Int64Array {
    values[slot].iter().map(|text| text.as_deref().and_then(|t| t.parse().ok())).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Low,
    High,
}

/// One side of a column's bounds in its type: what does not parse, and NaN, is unknown; what may be rounded is widened.
fn bound(values: &[Vec<Option<String>>], slot: usize, data_type: &DataType, side: Side) -> Result<ArrayRef> {
    let texts = StringArray::from(values[slot].clone());
    let array = match data_type {
        DataType::Utf8 => Arc::new(texts.clone()),
        _ => parse_array(&texts, data_type).or_else(|_| parse_each(&texts, data_type))?,
    };
    Ok(match data_type {
        DataType::Timestamp(TimeUnit::Microsecond, _) => Arc::new(widen_timestamps(array.as_primitive(), &texts, side)),
        DataType::Decimal128(precision, _) if *precision > 15 => Arc::new(widen_decimals(array.as_primitive(), side)?),
        DataType::Float32 => without_nan::<Float32Type>(&array, f32::is_nan),
        DataType::Float64 => without_nan::<Float64Type>(&array, f64::is_nan),
        _ => array,
    })
}

fn parse_each(texts: &StringArray, data_type: &DataType) -> Result<ArrayRef> {
    let parsed: Vec<ArrayRef> = texts.iter().map(|text| parse_scalar(text, data_type).unwrap_or_else(|_| new_null_array(data_type, 1))).collect();
    Ok(concat(&parsed.iter().map(AsRef::as_ref).collect::<Vec<_>>())?)
}

fn without_nan<T: ArrowPrimitiveType>(array: &ArrayRef, is_nan: fn(T::Native) -> bool) -> ArrayRef {
    Arc::new(array.as_primitive::<T>().iter().map(|v| v.filter(|v| !is_nan(*v))).collect::<PrimitiveArray<T>>())
}

/// Other writers cut maxima to milliseconds; Spark also cut zone offsets of local mean times to minutes.
fn widen_timestamps(array: &PrimitiveArray<TimestampMicrosecondType>, texts: &StringArray, side: Side) -> PrimitiveArray<TimestampMicrosecondType> {
    const FIRST_ZONED: i64 = -1_577_923_200_000_000; // 1920-01-01
    let widened = array.iter().zip(texts).map(|(value, text)| {
        let value = value?;
        let local = value < FIRST_ZONED && text.is_some_and(|t| !t.ends_with('Z'));
        let cut = if side == Side::High && value % 1_000 == 0 { 999 } else { 0 };
        let slack = cut + if local { 60_000_000 } else { 0 };
        Some(if side == Side::High { value.saturating_add(slack) } else { value.saturating_sub(slack) })
    });
    widened.collect::<PrimitiveArray<TimestampMicrosecondType>>().with_data_type(array.data_type().clone())
}

/// A decimal of more than 15 digits may have been rounded to a double on its way into JSON.
fn widen_decimals(array: &PrimitiveArray<Decimal128Type>, side: Side) -> Result<Decimal128Array> {
    let widened: Decimal128Array = array.unary(|value| {
        let slack = (value.unsigned_abs() >> 52) as i128 + 1;
        if side == Side::High { value.saturating_add(slack) } else { value.saturating_sub(slack) }
    });
    Ok(widened.with_data_type(array.data_type().clone()))
}

/// The parts of a statistics document that are taken out, as a tree of names.
#[derive(Debug, Default)]
struct Wanted {
    children: Vec<(String, Wanted)>,
    slot: Option<usize>,
    slots: usize,
}

impl Wanted {
    fn counts() -> Self {
        let mut root = Self::default();
        root.insert(&["numRecords"], NUM_RECORDS);
        root.slots = 1;
        root
    }

    fn of(columns: &[Arc<Column>]) -> Self {
        let mut root = Self::counts();
        for (c, column) in columns.iter().enumerate() {
            for (k, side) in ["minValues", "maxValues", "nullCount"].into_iter().enumerate() {
                let path: Vec<&str> = std::iter::once(side).chain(column.physical.iter().map(String::as_str)).collect();
                root.insert(&path, 1 + 3 * c + k);
            }
        }
        root.slots = 1 + 3 * columns.len();
        root
    }

    fn insert(&mut self, path: &[&str], slot: usize) {
        let Some((first, rest)) = path.split_first() else {
            self.slot = Some(slot);
            return;
        };
        let at = self.children.iter().position(|(name, _)| name == first).unwrap_or_else(|| {
            self.children.push(((*first).to_owned(), Self::default()));
            self.children.len() - 1
        });
        self.children[at].1.insert(rest, slot);
    }

    /// For each slot the text of each file's value.
    fn read(&self, texts: &StringArray) -> Vec<Vec<Option<String>>> {
        let mut found: Vec<Vec<Option<String>>> = vec![vec![None; texts.len()]; self.slots];
        for (file, text) in texts.iter().enumerate() {
            let Some(text) = text else { continue };
            let mut values = vec![None; self.slots];
            let mut reader = serde_json::Deserializer::from_str(text);
            let whole = Take { wanted: self, values: &mut values }.deserialize(&mut reader).is_ok();
            if whole {
                values.into_iter().enumerate().for_each(|(slot, value)| found[slot][file] = value);
            }
        }
        found
    }
}

struct Take<'a> {
    wanted: &'a Wanted,
    values: &'a mut [Option<String>],
}

impl<'de> DeserializeSeed<'de> for Take<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Take<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match self.wanted.children.iter().find(|(name, _)| *name == key) {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some((_, Wanted { slot: Some(slot), .. })) => self.values[*slot] = scalar(map.next_value::<&RawValue>()?.get()),
                Some((_, wanted)) => {
                    let raw = map.next_value::<&RawValue>()?.get();
                    let mut inner = serde_json::Deserializer::from_str(raw);
                    // null, or a scalar where the schema has a struct: nothing is known below
                    let _ = Take { wanted, values: self.values }.deserialize(&mut inner);
                }
            }
        }
        Ok(())
    }
}

/// The text of a JSON scalar: a number's own digits, a string's content.
fn scalar(raw: &str) -> Option<String> {
    match raw.as_bytes().first()? {
        b'"' => serde_json::from_str(raw).ok(),
        b'n' | b'{' | b'[' => None,
        _ => Some(raw.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicate::parse::from_json;
    use crate::schema::TableSchema;
    use arrow::array::{MapBuilder, StringBuilder};

    const SCHEMA: &str = r#"{"type":"struct","fields":[
        {"name":"p","type":"integer","nullable":true,"metadata":{}},
        {"name":"i","type":"long","nullable":true,"metadata":{}},
        {"name":"t","type":"timestamp","nullable":true,"metadata":{}},
        {"name":"n","type":"decimal(38,2)","nullable":true,"metadata":{}},
        {"name":"s","type":{"type":"struct","fields":[{"name":"x","type":"string","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}}]}"#;

    fn adds(rows: &[(Option<&str>, Option<&str>)]) -> RecordBatch {
        let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for (p, _) in rows {
            maps.keys().append_value("p");
            maps.values().append_option(*p);
            maps.append(true).unwrap();
        }
        let stats: StringArray = rows.iter().map(|(_, stats)| *stats).collect();
        RecordBatch::try_from_iter([("partitionValues", Arc::new(maps.finish()) as ArrayRef), ("stats", Arc::new(stats))]).unwrap()
    }

    fn kept(rows: &[(Option<&str>, Option<&str>)], predicate: &str) -> (Vec<bool>, usize, usize) {
        let schema = TableSchema::parse(SCHEMA, &["p".to_owned()], "none").unwrap();
        let predicate = from_json(predicate, &|path| Column::resolve(&schema, path)).unwrap();
        let selected = select(&adds(rows), Some(&predicate), true).unwrap();
        (selected.mask.iter().map(|v| v.unwrap()).collect(), selected.skipped_by_partition, selected.skipped_by_statistics)
    }

    #[test]
    fn partitions_then_statistics() {
        let rows = [
            (Some("1"), Some(r#"{"numRecords":3,"minValues":{"i":1},"maxValues":{"i":5},"nullCount":{"i":0}}"#)),
            (Some("1"), Some(r#"{"numRecords":3,"minValues":{"i":7},"maxValues":{"i":9},"nullCount":{"i":0}}"#)),
            (Some("2"), Some(r#"{"numRecords":3,"minValues":{"i":1},"maxValues":{"i":5},"nullCount":{"i":0}}"#)),
            (None, None),
        ];
        let both = r#"{"op":"and","args":[{"op":"=","column":["p"],"literal":"1"},{"op":"<","column":["i"],"literal":"6"}]}"#;
        assert_eq!(kept(&rows, both), (vec![true, false, false, false], 2, 1));
        assert_eq!(kept(&rows, r#"{"op":"is_null","column":["p"]}"#), (vec![false, false, false, true], 3, 0));
    }

    #[test]
    fn what_is_missing_or_broken_never_skips() {
        let rows = [
            (None, None),
            (None, Some("")),
            (None, Some("{")),
            (None, Some("[]")),
            (None, Some(r#"{"minValues":{"i":"x"},"maxValues":{"i":null}}"#)),
            (None, Some(r#"{"minValues":{"i":8},"maxValues":{"i":9},"numRecords":1"#)),
            (None, Some(r#"{"minValues":3,"maxValues":{"s":7}}"#)),
        ];
        assert_eq!(kept(&rows, r#"{"op":"=","column":["i"],"literal":"1"}"#).0, vec![true; 7]);
    }

    #[test]
    fn rounded_bounds_are_widened() {
        let cut = r#"{"numRecords":1,"minValues":{"t":"2024-01-01T00:00:00.123Z"},"maxValues":{"t":"2024-01-01T00:00:00.123Z"}}"#;
        let at = |literal: &str| kept(&[(None, Some(cut))], &format!(r#"{{"op":"=","column":["t"],"literal":"{literal}"}}"#)).0[0];
        assert!(at("2024-01-01T00:00:00.123999Z"));
        assert!(!at("2024-01-01T00:00:00.124Z"));
        assert!(!at("2024-01-01T00:00:00.122999Z"));
        let double = r#"{"numRecords":1,"minValues":{"n":12345678901234567.89},"maxValues":{"n":12345678901234568}}"#;
        assert!(kept(&[(None, Some(double))], r#"{"op":">","column":["n"],"literal":"12345678901234568.01"}"#).0[0]);
    }

    #[test]
    fn nested_columns_and_null_counts() {
        let rows = [
            (None, Some(r#"{"numRecords":2,"minValues":{"s":{"x":"b"}},"maxValues":{"s":{"x":"d"}},"nullCount":{"s":{"x":0}}}"#)),
            (None, Some(r#"{"numRecords":2,"nullCount":{"s":{"x":2}},"tightBounds":false}"#)),
        ];
        assert_eq!(kept(&rows, r#"{"op":"=","column":["s","x"],"literal":"c"}"#).0, [true, false]);
        assert_eq!(kept(&rows, r#"{"op":"is_null","column":["s","x"]}"#).0, [false, true]);
        assert_eq!(num_records(&adds(&rows)).unwrap(), Int64Array::from(vec![2, 2]));
    }
}
