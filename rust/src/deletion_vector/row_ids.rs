//! Collects rows of many files from pairs (file ordinal, row index) in one bitmap per file, so that the
//! memory is that of the bitmaps.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, UInt32Array,
};
use arrow::compute::{cast, take_record_batch};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{DeletionVector, RowIndex};
use crate::error::{Error, Kind, Result};

/// Name of the column of file ordinals, int32.
pub const FILE_COLUMN: &str = "__deltaic_file";
/// Name of the column of absolute row indexes, int64.
pub const ROW_COLUMN: &str = "__deltaic_row";

/// Name of the column of bitmaps in the portable format, binary.
pub const BITMAP_COLUMN: &str = "__deltaic_bitmap";
/// Name of the column with the number of pairs of a bitmap, int64.
pub const COUNT_COLUMN: &str = "__deltaic_count";

/// Rows per file, keyed by the file's ordinal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowIds {
    files: BTreeMap<i32, DeletionVector>,
    /// Number of pairs for each file, including repeated ones.
    named: BTreeMap<i32, u64>,
    unique: bool,
}

impl RowIds {
    /// Makes an empty collection. `unique`: a repeated pair is an error.
    pub fn new(unique: bool) -> Self {
        Self { unique, ..Self::default() }
    }

    /// Adds the pairs of a batch, found by the names of its columns, in any order.
    ///
    /// # Errors
    /// A column is missing, null or negative; with `unique`, a pair is there already
    /// ([`Kind::MergeCardinality`]).
    pub fn extend(&mut self, batch: &RecordBatch) -> Result<()> {
        let files = column(batch, FILE_COLUMN, &DataType::Int32)?;
        let rows = column(batch, ROW_COLUMN, &DataType::Int64)?;
        let (files, rows) =
            (files.as_primitive::<Int32Type>().values(), rows.as_primitive::<Int64Type>().values());
        check_not_negative(files.iter().copied().min().map(i64::from), FILE_COLUMN)?;
        check_not_negative(rows.iter().copied().min(), ROW_COLUMN)?;
        // The output of a scan is sorted already, that of a join is not.
        let mut pairs: Vec<(i32, RowIndex)> =
            files.iter().copied().zip(rows.iter().map(|row| *row as RowIndex)).collect();
        if !pairs.is_sorted() {
            pairs.sort_unstable();
        }
        let mut sorted = Vec::new();
        for of_file in pairs.chunk_by(|a, b| a.0 == b.0) {
            let Some((file, _)) = of_file.first() else { continue };
            sorted.clear();
            sorted.extend(of_file.iter().map(|(_, row)| *row));
            self.extend_file(*file, &mut sorted)?;
        }
        Ok(())
    }

    /// Adds rows that were collected elsewhere: the rows of [`Self::bitmaps`] of several collections. A file
    /// may have several of them.
    ///
    /// # Errors
    /// A column is missing or null, or a value is not a bitmap; with `unique`, a pair occurs twice
    /// ([`Kind::MergeCardinality`]).
    pub fn extend_bitmaps(&mut self, batch: &RecordBatch) -> Result<()> {
        let (files, counts) =
            (column(batch, FILE_COLUMN, &DataType::Int32)?, column(batch, COUNT_COLUMN, &DataType::Int64)?);
        let (files, counts) =
            (files.as_primitive::<Int32Type>().values(), counts.as_primitive::<Int64Type>().values());
        check_not_negative(files.iter().copied().min().map(i64::from), FILE_COLUMN)?;
        check_not_negative(counts.iter().copied().min(), COUNT_COLUMN)?;
        let bitmaps = batch.column_by_name(BITMAP_COLUMN).filter(|found| found.null_count() == 0);
        let bitmaps = bitmaps.ok_or_else(|| {
            Error::new(Kind::InvalidArgument, "row ids lack a column").expected(BITMAP_COLUMN)
        })?;
        let bitmaps = cast(bitmaps, &DataType::Binary)?;
        for ((file, count), bitmap) in files.iter().zip(counts).zip(bitmaps.as_binary::<i32>().iter()) {
            let rows = self.files.entry(*file).or_default();
            rows.add_all(&DeletionVector::from_bytes(bitmap.unwrap_or_default())?);
            let named = self.named.entry(*file).or_default();
            *named += *count as u64;
            if self.unique && *named != rows.cardinality() {
                return Err(Error::new(
                    Kind::MergeCardinality,
                    "more than one source row matches the same target row",
                )
                .found(format!("{named} source rows for {} rows of file {file}", rows.cardinality()))
                .expected("at most one source row for each target row"));
            }
        }
        Ok(())
    }

    /// Returns a row for each file: [`FILE_COLUMN`], [`BITMAP_COLUMN`], [`COUNT_COLUMN`].
    pub fn bitmaps(&self) -> Result<RecordBatch> {
        let columns: [(&str, ArrayRef); 3] = [
            (FILE_COLUMN, Arc::new(Int32Array::from_iter_values(self.files.keys().copied()))),
            (
                BITMAP_COLUMN,
                Arc::new(BinaryArray::from_iter_values(self.files.values().map(DeletionVector::to_bytes))),
            ),
            (
                COUNT_COLUMN,
                Arc::new(Int64Array::from_iter_values(self.named.values().map(|count| *count as i64))),
            ),
        ];
        Ok(RecordBatch::try_from_iter(columns)?)
    }

    fn extend_file(&mut self, file: i32, sorted: &mut Vec<RowIndex>) -> Result<()> {
        let rows = self.files.entry(file).or_default();
        *self.named.entry(file).or_default() += sorted.len() as u64;
        if self.unique
            && let Some(twice) = first_twice(rows, sorted)
        {
            return Err(Error::new(
                Kind::MergeCardinality,
                "more than one source row matches the same target row",
            )
            .found(format!("row {twice} of file {file} at least twice"))
            .expected("at most one source row for each target row"));
        }
        sorted.dedup();
        rows.add_sorted(sorted);
        Ok(())
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u64 {
        self.files.values().map(DeletionVector::cardinality).sum()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the number of files with rows.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Returns the rows of the file with this ordinal.
    pub fn of_file(&self, ordinal: i32) -> Option<&DeletionVector> {
        self.files.get(&ordinal)
    }

    /// Returns the rows of the files with these ordinals.
    pub fn only(&self, ordinals: &[i32]) -> Self {
        let wanted: BTreeSet<_> = ordinals.iter().collect();
        let files = self
            .files
            .iter()
            .filter(|(file, _)| wanted.contains(file))
            .map(|(file, rows)| (*file, rows.clone()));
        let named =
            self.named.iter().filter(|(file, _)| wanted.contains(file)).map(|(file, count)| (*file, *count));
        Self { files: files.collect(), named: named.collect(), unique: self.unique }
    }

    /// Returns the positions in the table `files` of files with rows here, and their ordinals:
    /// [`FILE_COLUMN`] if `files` has it, else the position.
    ///
    /// # Errors
    /// Rows of a file that `files` does not have; one ordinal twice.
    pub fn positions(&self, files: &RecordBatch) -> Result<Vec<(usize, i32)>> {
        let ordinals = ordinals(files)?;
        let positions: Vec<_> = ordinals
            .values()
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, ordinal)| self.files.contains_key(ordinal))
            .collect();
        if positions.len() != self.files.len() {
            return Err(Error::new(Kind::InvalidArgument, "rows do not belong to these files").found(
                format!("rows of {} files, of which {} are there", self.files.len(), positions.len()),
            ));
        }
        Ok(positions)
    }

    /// Returns the rows of the table `files` that have rows here, with columns for a scan that reads only
    /// these rows (`keep_selected`) or all others: `selection` (binary, a portable bitmap), `keep_selected`,
    /// and [`FILE_COLUMN`].
    pub fn select(&self, files: &RecordBatch, keep_selected: bool) -> Result<RecordBatch> {
        let positions = self.positions(files)?;
        let taken = take_record_batch(
            files,
            &UInt32Array::from_iter_values(positions.iter().map(|(at, _)| *at as u32)),
        )?;
        let bitmaps =
            positions.iter().filter_map(|(_, ordinal)| self.files.get(ordinal).map(DeletionVector::to_bytes));
        let added: [(&str, ArrayRef); 3] = [
            ("selection", Arc::new(BinaryArray::from_iter_values(bitmaps))),
            ("keep_selected", Arc::new(BooleanArray::from(vec![keep_selected; positions.len()]))),
            (
                FILE_COLUMN,
                Arc::new(Int32Array::from_iter_values(positions.iter().map(|(_, ordinal)| *ordinal))),
            ),
        ];
        with_columns(&taken, added)
    }
}

/// Returns `batch` with these columns: in place of those with the same names, or at the end.
fn with_columns<const N: usize>(batch: &RecordBatch, added: [(&str, ArrayRef); N]) -> Result<RecordBatch> {
    let schema = batch.schema();
    let kept = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .filter(|(field, _)| added.iter().all(|(name, _)| name != field.name()));
    let (mut fields, mut columns): (Vec<_>, Vec<_>) =
        kept.map(|(field, column)| (field.clone(), column.clone())).unzip();
    for (name, column) in added {
        fields.push(Arc::new(Field::new(name, column.data_type().clone(), false)));
        columns.push(column);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())), columns)?)
}

fn ordinals(files: &RecordBatch) -> Result<Int32Array> {
    if files.column_by_name(FILE_COLUMN).is_some() {
        return Ok(column(files, FILE_COLUMN, &DataType::Int32)?.as_primitive::<Int32Type>().clone());
    }
    let count = i32::try_from(files.num_rows())
        .map_err(|_| Error::new(Kind::InvalidArgument, "too many files").found(files.num_rows()))?;
    Ok(Int32Array::from_iter_values(0..count))
}

fn column(batch: &RecordBatch, name: &str, data_type: &DataType) -> Result<ArrayRef> {
    let column = batch
        .column_by_name(name)
        .ok_or_else(|| Error::new(Kind::InvalidArgument, "row ids lack a column").expected(name))?;
    if column.null_count() > 0 {
        return Err(Error::new(Kind::InvalidArgument, "row id is null").at(name));
    }
    if !column.data_type().is_integer() && !column.data_type().is_null() {
        return Err(Error::new(Kind::InvalidArgument, "row id is no integer")
            .at(name)
            .found(column.data_type())
            .expected(data_type));
    }
    let column = cast(column, data_type)?;
    // A cast that is not checked makes values that do not fit null.
    if column.null_count() > 0 {
        return Err(Error::new(Kind::InvalidArgument, "row id does not fit").at(name).expected(data_type));
    }
    Ok(column)
}

fn check_not_negative(smallest: Option<i64>, name: &str) -> Result<()> {
    match smallest {
        Some(value) if value < 0 => {
            Err(Error::new(Kind::InvalidArgument, "row id is negative").at(name).found(value))
        }
        _ => Ok(()),
    }
}

/// Returns the first of the sorted `rows` that repeats or is already in `set`.
fn first_twice(set: &DeletionVector, rows: &[RowIndex]) -> Option<RowIndex> {
    let twice = rows.windows(2).find_map(|pair| match pair {
        [a, b] if a == b => Some(*a),
        _ => None,
    });
    let known = set.max().filter(|max| rows.first().is_some_and(|first| first <= max));
    twice.or_else(|| known.and_then(|_| rows.iter().copied().find(|row| set.contains(*row))))
}

#[cfg(test)]
mod tests;
