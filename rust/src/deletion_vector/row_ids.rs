//! Rows of many files, gathered from pairs (file ordinal, row index): one bitmap per file, so that memory follows the bitmaps.

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int32Array, RecordBatch, UInt32Array};
use arrow::compute::{cast, take_record_batch};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{DeletionVector, MAX_ROW, RowIndex};
use crate::error::{Error, Kind, Result};

/// Name of the column of file ordinals, int32.
pub const FILE_COLUMN: &str = "__deltaic_file";
/// Name of the column of absolute row indexes, int64.
pub const ROW_COLUMN: &str = "__deltaic_row";

/// Name of the column of words: 64 rows each, int64.
pub const WORD_COLUMN: &str = "__deltaic_word";
/// Name of the column of a word's bits, int64.
pub const BITS_COLUMN: &str = "__deltaic_bits";
/// Name of the column of how many rows a word was made of, int64.
pub const COUNT_COLUMN: &str = "__deltaic_count";
const MAX_WORD: i64 = (MAX_ROW / 64) as i64;

/// Rows per file, keyed by the file's ordinal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowIds {
    files: BTreeMap<i32, DeletionVector>,
    unique: bool,
}

impl RowIds {
    /// No rows yet. `unique`: a pair that comes twice is an error.
    pub fn new(unique: bool) -> Self {
        Self { files: BTreeMap::new(), unique }
    }

    /// Adds the pairs of a batch, found by the names of its columns, in any order.
    ///
    /// # Errors
    /// A column is missing, null or negative; with `unique`, a pair is there already ([`Kind::MergeCardinality`]).
    pub fn extend(&mut self, batch: &RecordBatch) -> Result<()> {
        let files = column(batch, FILE_COLUMN, &DataType::Int32)?;
        let rows = column(batch, ROW_COLUMN, &DataType::Int64)?;
        let (files, rows) = (files.as_primitive::<Int32Type>().values(), rows.as_primitive::<Int64Type>().values());
        check_not_negative(files.iter().copied().min().map(i64::from), FILE_COLUMN)?;
        check_not_negative(rows.iter().copied().min(), ROW_COLUMN)?;
        // A scan's output is sorted already; a join's is not.
        let mut pairs: Vec<(i32, RowIndex)> = files.iter().copied().zip(rows.iter().map(|row| *row as RowIndex)).collect();
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

    /// Adds rows that were gathered elsewhere: each line names 64 rows of a file by the bits of a word, and how many rows it was made of.
    ///
    /// # Errors
    /// Those of [`Self::extend`]; with `unique`, a line made of more rows than its word has bits.
    pub fn extend_words(&mut self, batch: &RecordBatch) -> Result<()> {
        let files = column(batch, FILE_COLUMN, &DataType::Int32)?;
        let [words, bits, counts] = [WORD_COLUMN, BITS_COLUMN, COUNT_COLUMN].map(|name| column(batch, name, &DataType::Int64));
        let (words, bits, counts) = (words?, bits?, counts?);
        let longs = |array: &ArrayRef| array.as_primitive::<Int64Type>().values().clone();
        let (files, words, bits, counts) = (files.as_primitive::<Int32Type>().values(), longs(&words), longs(&bits), longs(&counts));
        check_not_negative(files.iter().copied().min().map(i64::from), FILE_COLUMN)?;
        check_not_negative(words.iter().copied().min(), WORD_COLUMN)?;
        if let Some(word) = words.iter().max().filter(|word| **word > MAX_WORD) {
            return Err(Error::new(Kind::InvalidArgument, "row id is too large").at(WORD_COLUMN).found(word).expected(MAX_WORD));
        }
        let twice = bits.iter().zip(&counts).position(|(bits, count)| i64::from(bits.count_ones()) != *count);
        if let Some(at) = twice.filter(|_| self.unique) {
            return Err(Error::new(Kind::MergeCardinality, "more than one source row matches the same target row")
                .found(format!("one of the rows from {} on of file {} at least twice", words[at] * 64, files[at]))
                .expected("at most one source row for each target row"));
        }
        let mut lines: Vec<(i32, i64, u64)> = files.iter().zip(&words).zip(&bits).map(|((f, w), b)| (*f, *w, *b as u64)).collect();
        lines.sort_unstable();
        let mut rows = Vec::new();
        for of_file in lines.chunk_by(|a, b| a.0 == b.0) {
            let Some((file, ..)) = of_file.first() else { continue };
            rows.clear();
            let of_word = |&(_, word, bits): &(i32, i64, u64)| {
                (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word as RowIndex * 64 + bit)
            };
            rows.extend(of_file.iter().flat_map(of_word));
            rows.sort_unstable();
            self.extend_file(*file, &mut rows)?;
        }
        Ok(())
    }

    fn extend_file(&mut self, file: i32, sorted: &mut Vec<RowIndex>) -> Result<()> {
        let rows = self.files.entry(file).or_default();
        if self.unique
            && let Some(twice) = first_twice(rows, sorted)
        {
            return Err(Error::new(Kind::MergeCardinality, "more than one source row matches the same target row")
                .found(format!("row {twice} of file {file} at least twice"))
                .expected("at most one source row for each target row"));
        }
        sorted.dedup();
        rows.add_sorted(sorted);
        Ok(())
    }

    /// How many rows.
    pub fn len(&self) -> u64 {
        self.files.values().map(DeletionVector::cardinality).sum()
    }

    /// No rows.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// How many files have rows.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// The rows of the file with this ordinal.
    pub fn of_file(&self, ordinal: i32) -> Option<&DeletionVector> {
        self.files.get(&ordinal)
    }

    /// Which rows of the table `files` have rows here, with their ordinals: [`FILE_COLUMN`] where `files` has it, else the position.
    ///
    /// # Errors
    /// Rows of a file that `files` does not have; one ordinal twice.
    pub fn positions(&self, files: &RecordBatch) -> Result<Vec<(usize, i32)>> {
        let ordinals = ordinals(files)?;
        let positions: Vec<_> =
            ordinals.values().iter().copied().enumerate().filter(|(_, ordinal)| self.files.contains_key(ordinal)).collect();
        if positions.len() != self.files.len() {
            return Err(Error::new(Kind::InvalidArgument, "rows do not belong to these files").found(format!(
                "rows of {} files, of which {} are there",
                self.files.len(),
                positions.len()
            )));
        }
        Ok(positions)
    }

    /// The rows of the table `files` that have rows here, with the columns that make a scan read just these rows (`keep_selected`) or
    /// all but them: `selection` (binary, a portable bitmap), `keep_selected`, and [`FILE_COLUMN`].
    pub fn select(&self, files: &RecordBatch, keep_selected: bool) -> Result<RecordBatch> {
        let positions = self.positions(files)?;
        let taken = take_record_batch(files, &UInt32Array::from_iter_values(positions.iter().map(|(at, _)| *at as u32)))?;
        let bitmaps = positions.iter().filter_map(|(_, ordinal)| self.files.get(ordinal).map(DeletionVector::to_bytes));
        let added: [(&str, ArrayRef); 3] = [
            ("selection", Arc::new(BinaryArray::from_iter_values(bitmaps))),
            ("keep_selected", Arc::new(BooleanArray::from(vec![keep_selected; positions.len()]))),
            (FILE_COLUMN, Arc::new(Int32Array::from_iter_values(positions.iter().map(|(_, ordinal)| *ordinal)))),
        ];
        with_columns(&taken, added)
    }
}

/// `batch` with these columns, in the place of those of the same name or at the end.
fn with_columns<const N: usize>(batch: &RecordBatch, added: [(&str, ArrayRef); N]) -> Result<RecordBatch> {
    let schema = batch.schema();
    let kept = schema.fields().iter().zip(batch.columns()).filter(|(field, _)| added.iter().all(|(name, _)| name != field.name()));
    let (mut fields, mut columns): (Vec<_>, Vec<_>) = kept.map(|(field, column)| (field.clone(), column.clone())).unzip();
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
    let count = i32::try_from(files.num_rows()).map_err(|_| Error::new(Kind::InvalidArgument, "too many files").found(files.num_rows()))?;
    Ok(Int32Array::from_iter_values(0..count))
}

fn column(batch: &RecordBatch, name: &str, data_type: &DataType) -> Result<ArrayRef> {
    let column = batch.column_by_name(name).ok_or_else(|| Error::new(Kind::InvalidArgument, "row ids lack a column").expected(name))?;
    if column.null_count() > 0 {
        return Err(Error::new(Kind::InvalidArgument, "row id is null").at(name));
    }
    if !column.data_type().is_integer() && !column.data_type().is_null() {
        return Err(Error::new(Kind::InvalidArgument, "row id is no integer").at(name).found(column.data_type()).expected(data_type));
    }
    let column = cast(column, data_type)?;
    // An unsafe cast makes what does not fit null.
    if column.null_count() > 0 {
        return Err(Error::new(Kind::InvalidArgument, "row id does not fit").at(name).expected(data_type));
    }
    Ok(column)
}

fn check_not_negative(smallest: Option<i64>, name: &str) -> Result<()> {
    match smallest {
        Some(value) if value < 0 => Err(Error::new(Kind::InvalidArgument, "row id is negative").at(name).found(value)),
        _ => Ok(()),
    }
}

/// The first of the sorted `rows` that comes twice or is in `set` already.
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
