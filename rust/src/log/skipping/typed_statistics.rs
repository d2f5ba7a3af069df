//! Reads `stats_parsed` and `partitionValues_parsed` of a checkpoint ("Checkpoint Schema"). The other columns
//! of files that they rule out are not decoded.
//!
//! Typed values are used only to rule out files, and only where they decide. A value that is missing, or has
//! another type than the column, is unknown here; the JSON text of statistics and partition values decides
//! then.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Int64Array, StringArray, StructArray, TimestampMicrosecondArray,
    new_null_array,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Field, TimeUnit, TimestampMicrosecondType};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::Type as PhysicalType;

use super::selection::kept;
use super::statistics::{CUT_MICROS, DOUBLE_DIGITS, Side, widen_decimals, widen_floats, without_nan};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::log::reading::checkpoint_file::CheckpointFile;
use crate::log::reading::slice::Slice;
use crate::predicate::statistics::{Bounds, Containers, may_match};
use crate::predicate::{Column, Predicate};

/// 1582-10-15 in days, 1900-01-01 in microseconds. For times before, writers with old calendars mean another
/// day by the same number.
const FIRST_DAY: i32 = -141_427;
const FIRST_MICROS: i64 = -2_208_988_800_000_000;

/// The selected rows of a slice, and how many each step ruled out.
#[derive(Debug)]
pub struct NarrowedRows {
    /// The selected rows, as bits.
    pub keep: BooleanBuffer,
    /// Number of rows ruled out by partition values.
    pub by_partition: usize,
    /// Number of rows ruled out by statistics.
    pub by_statistics: usize,
}

/// A column of the predicate, and the checkpoint's leaves with its statistics.
struct TypedColumn {
    column: Arc<Column>,
    min: Option<usize>,
    max: Option<usize>,
    null_count: Option<usize>,
}

impl TypedColumn {
    fn of(file: &CheckpointFile, column: &Arc<Column>) -> Self {
        let physical: Vec<&str> = column.physical.iter().map(String::as_str).collect();
        let at = |above: &[&str]| file.leaf(&[&["add"], above, &physical].concat());
        let column = Arc::clone(column);
        if column.partition {
            let value = at(&["partitionValues_parsed"]).filter(|_| is_certain(&column.data_type));
            return Self { column, min: value, max: value, null_count: None };
        }
        let of = |name| at(&["stats_parsed", name]);
        Self { column, min: of("minValues"), max: of("maxValues"), null_count: of("nullCount") }
    }

    fn leaves(&self) -> impl Iterator<Item = usize> {
        [self.min, self.max, self.null_count].into_iter().flatten()
    }
}

/// True for types whose partition values have one form only; for all others, the text decides.
fn is_certain(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Utf8 | DataType::Boolean | DataType::Date32 | DataType::Decimal128(_, _)
        )
}

/// Removes from `keep` the rows that the typed columns rule out. `skipping`: statistics are used too.
pub fn narrow(
    slice: &Slice,
    predicate: &Predicate,
    skipping: bool,
    keep: BooleanBuffer,
    interrupt: &Interrupt,
) -> Result<NarrowedRows> {
    let (file, group) = slice.place();
    let mut narrowed = NarrowedRows { keep, by_partition: 0, by_statistics: 0 };
    let mut known: Vec<TypedColumn> =
        predicate.columns().iter().map(|column| TypedColumn::of(file, column)).collect();
    known.retain(|known| (skipping || known.column.partition) && known.leaves().next().is_some());
    if known.is_empty() {
        return Ok(narrowed);
    }
    let with_statistics = known.iter().any(|known| !known.column.partition);
    for partitions_only in [true, false] {
        if !may_match(predicate, &RowGroup { file, group, known: &known, partitions_only })?.value(0) {
            let gone = narrowed.keep.count_set_bits();
            *if partitions_only { &mut narrowed.by_partition } else { &mut narrowed.by_statistics } += gone;
            narrowed.keep = BooleanBuffer::new_unset(narrowed.keep.len());
            return Ok(narrowed);
        }
    }
    let counts = file.leaf(&["add", "stats_parsed", "numRecords"]).filter(|_| with_statistics);
    let leaves: Vec<usize> = known.iter().flat_map(TypedColumn::leaves).chain(counts).collect();
    let (mut by_partition, mut by_both) = (Vec::new(), Vec::new());
    for rows in slice.read_leaves(&leaves, &narrowed.keep, interrupt)? {
        let files = |partitions_only| TypedFiles { rows: &rows, known: &known, partitions_only };
        by_partition.extend(may_match(predicate, &files(true))?.iter().map(|may| may != Some(false)));
        by_both.extend(may_match(predicate, &files(false))?.iter().map(|may| may != Some(false)));
    }
    narrowed.by_partition = by_partition.iter().filter(|may| !**may).count();
    let left = by_partition.iter().zip(&by_both).map(|(a, b)| *a && *b);
    let before = narrowed.keep.count_set_bits();
    narrowed.keep = kept(&narrowed.keep, left);
    narrowed.by_statistics = before - narrowed.keep.count_set_bits() - narrowed.by_partition;
    Ok(narrowed)
}

/// A row group as one container, by Parquet's statistics of the typed columns.
struct RowGroup<'a> {
    file: &'a CheckpointFile,
    group: usize,
    known: &'a [TypedColumn],
    partitions_only: bool,
}

impl RowGroup<'_> {
    /// Returns the least or greatest value of a leaf; unknown if some file of the row group has none.
    fn bound(&self, leaf: Option<usize>, column: &Column, side: Side) -> Result<ArrayRef> {
        let unknown = || Ok(new_null_array(&column.data_type, 1));
        let (Some(leaf), Some(path)) = (leaf, self.file.leaf(&["add", "path"])) else { return unknown() };
        let metadata = self.file.parquet();
        let group = metadata.row_group(self.group);
        let chunk = group.column(leaf);
        let ordered = matches!(chunk.column_type(), PhysicalType::INT32 | PhysicalType::INT64);
        let old = chunk.statistics().is_none_or(|statistics| statistics.is_min_max_deprecated() && !ordered);
        let complete = self
            .file
            .nulls(self.group, leaf)
            .is_some_and(|nulls| Some(nulls) == self.file.nulls(self.group, path));
        // Bounds of floats do not include NaN.
        let Some(field) =
            field_of(self.file, leaf).filter(|_| !old && complete && !column.data_type.is_floating())
        else {
            return unknown();
        };
        let converter =
            StatisticsConverter::from_column_index(leaf, &field, metadata.file_metadata().schema_descr())?;
        let found = if side == Side::Low {
            converter.row_group_mins([group])?
        } else {
            converter.row_group_maxes([group])?
        };
        Ok(typed(&found, column, side))
    }
}

/// Returns the Arrow field of a leaf that is nested in structs only.
fn field_of(file: &CheckpointFile, leaf: usize) -> Option<Arc<Field>> {
    let descriptor = file.parquet().file_metadata().schema_descr();
    let column = descriptor.column(leaf);
    let mut fields = file.footer().schema().fields();
    let (last, above) = column.path().parts().split_last()?;
    for name in above {
        let DataType::Struct(inner) = fields.find(name)?.1.data_type() else { return None };
        fields = inner;
    }
    fields.find(last).map(|(_, field)| Arc::clone(field))
}

impl Containers for RowGroup<'_> {
    fn len(&self) -> usize {
        1
    }

    fn bounds(&self, column: &Column) -> Result<Option<Bounds>> {
        let Some(known) = self.known.iter().find(|known| known.column.as_ref() == column) else {
            return Ok(None);
        };
        if self.partitions_only && !column.partition {
            return Ok(None);
        }
        let (min, max) =
            (self.bound(known.min, column, Side::Low)?, self.bound(known.max, column, Side::High)?);
        let counts = Int64Array::new_null(1);
        Ok(Some(Bounds { min, max, null_count: counts.clone(), row_count: counts, exact: column.partition }))
    }
}

/// Files as containers, by their values in the typed columns.
struct TypedFiles<'a> {
    rows: &'a StructArray,
    known: &'a [TypedColumn],
    partitions_only: bool,
}

impl TypedFiles<'_> {
    fn at(&self, above: &[&str], column: &Column) -> Option<ArrayRef> {
        let mut rows: ArrayRef = Arc::new(self.rows.clone());
        for name in above.iter().copied().chain(column.physical.iter().map(String::as_str)) {
            let outer = rows.as_struct_opt()?.clone();
            let child = outer.column_by_name(name)?;
            // A field may have values where its struct is null.
            rows = if outer.null_count() == 0 { Arc::clone(child) } else { with_nulls(child, &outer)? };
        }
        Some(rows)
    }

    fn count(&self, found: Option<ArrayRef>) -> Int64Array {
        let counts = found
            .and_then(|found| cast(&found, &DataType::Int64).ok())
            .and_then(|found| found.as_primitive_opt().cloned());
        let counts = counts.unwrap_or_else(|| Int64Array::new_null(self.rows.len()));
        counts.iter().map(|count| count.filter(|count| *count >= 0)).collect()
    }
}

fn with_nulls(child: &ArrayRef, outer: &StructArray) -> Option<ArrayRef> {
    let nulls = arrow::buffer::NullBuffer::union(child.nulls(), outer.nulls());
    child.to_data().into_builder().nulls(nulls).build().ok().map(arrow::array::make_array)
}

impl Containers for TypedFiles<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn bounds(&self, column: &Column) -> Result<Option<Bounds>> {
        if !self.known.iter().any(|known| known.column.as_ref() == column) {
            return Ok(None);
        }
        let rows = self.rows.len();
        let bound = |above: &[&str], side| match self.at(above, column) {
            Some(found) => typed(&found, column, side),
            None => new_null_array(&column.data_type, rows),
        };
        if column.partition {
            let values = bound(&["partitionValues_parsed"], Side::Low);
            // A missing value may be null, or a text that is no value of the type.
            let null_count = (0..rows).map(|row| values.is_valid(row).then_some(0)).collect();
            let row_count = std::iter::repeat_n(1, rows).collect();
            return Ok(Some(Bounds {
                min: Arc::clone(&values),
                max: values,
                null_count,
                row_count,
                exact: true,
            }));
        }
        if self.partitions_only {
            return Ok(None);
        }
        let (min, max) = (
            bound(&["stats_parsed", "minValues"], Side::Low),
            bound(&["stats_parsed", "maxValues"], Side::High),
        );
        let null_count = self.count(self.at(&["stats_parsed", "nullCount"], column));
        let records = self
            .rows
            .column_by_name("stats_parsed")
            .and_then(|stats| stats.as_struct_opt()?.column_by_name("numRecords").cloned());
        Ok(Some(Bounds { min, max, null_count, row_count: self.count(records), exact: false }))
    }
}

/// Returns values as bounds of a column, in its type; null if uncertain.
fn typed(found: &ArrayRef, column: &Column, side: Side) -> ArrayRef {
    let target = &column.data_type;
    let unknown = || new_null_array(target, found.len());
    match (found.data_type(), target) {
        (from, to) if from.is_integer() && to.is_integer() => {
            if from.primitive_width() <= to.primitive_width() {
                cast(found, to).unwrap_or_else(|_| unknown())
            } else {
                unknown()
            }
        }
        (DataType::Utf8, DataType::Utf8) if column.partition => {
            // An empty text means null.
            Arc::new(
                found
                    .as_string::<i32>()
                    .iter()
                    .map(|text| text.filter(|text| !text.is_empty()))
                    .collect::<StringArray>(),
            )
        }
        (DataType::Utf8, DataType::Utf8) | (DataType::Boolean, DataType::Boolean) => Arc::clone(found),
        (DataType::Float32, DataType::Float32) | (DataType::Float64, DataType::Float64) => {
            let values = without_nan(Arc::clone(found));
            if column.was_float { widen_floats(&values, side) } else { values }
        }
        (DataType::Date32, DataType::Date32) => {
            let days =
                found.as_primitive::<Date32Type>().iter().map(|day| day.filter(|day| *day >= FIRST_DAY));
            Arc::new(days.collect::<Date32Array>())
        }
        (
            DataType::Timestamp(TimeUnit::Microsecond, zone),
            DataType::Timestamp(TimeUnit::Microsecond, wanted),
        ) if zone.is_some() == wanted.is_some() => {
            let micros =
                found.as_primitive::<TimestampMicrosecondType>().iter().map(|micros| wide(micros?, side));
            Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone_opt(wanted.clone()))
        }
        (from @ DataType::Decimal128(precision, _), to) if from == to => {
            let exact = column.partition || *precision <= DOUBLE_DIGITS;
            if exact { Arc::clone(found) } else { widen_decimals(found, side).unwrap_or_else(|_| unknown()) }
        }
        _ => unknown(),
    }
}

/// Widens a timestamp that its writer may have cut to milliseconds.
fn wide(micros: i64, side: Side) -> Option<i64> {
    match side {
        _ if micros < FIRST_MICROS => None,
        Side::High if micros % 1000 == 0 => micros.checked_add(CUT_MICROS),
        Side::Low if micros % 1000 == 0 && micros < 0 => micros.checked_sub(CUT_MICROS),
        _ => Some(micros),
    }
}
