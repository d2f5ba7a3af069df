//! Finds what another commit did to the rows of files: which of a command's rows the other commit deleted,
//! and the current actions of the files, so that [`super::mark_deleted`] can add the command's rows to that
//! commit's vectors.

use arrow::array::{Array, ArrayRef, Int32Array, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema};
use std::collections::HashMap;
use std::sync::Arc;

use super::row_ids::FILE_COLUMN;
use super::{DeletionVector, Descriptor, RowIds, VectorRequest, columns, read_all};
use crate::error::{Error, Result};
use crate::log::schema;
use crate::store::{Store, canonical};

/// The rows of a command after another commit.
#[derive(Debug)]
pub struct RebaseResult {
    /// The files that hold the rows, as `add` rows with [`FILE_COLUMN`], without files that the commit
    /// removed.
    pub files: RecordBatch,
    /// The rows of these files.
    pub rows: RowIds,
    /// The files in which the commit deleted some of the rows, and how many.
    pub deleted: Vec<(String, u64)>,
    /// True if the commit changed one of the files.
    pub is_changed: bool,
}

/// Returns `rows` after a commit with these actions. `files`: the files of the rows, as `add` rows as the
/// command read them.
///
/// # Errors
/// A row is in none of the files, or a vector cannot be read.
pub fn rebase(
    store: &dyn Store,
    files: &RecordBatch,
    rows: &RowIds,
    adds: &RecordBatch,
    removes: &RecordBatch,
) -> Result<RebaseResult> {
    let positions = rows.positions(files)?;
    let ordinals: Vec<_> = positions.iter().map(|(_, ordinal)| *ordinal).collect();
    let before = schema::conform(&take(files, positions.iter().map(|(at, _)| *at))?, &schema::ADD)?;
    let adds = schema::conform(adds, &schema::ADD)?;
    let (added, removed, paths) = (by_path(&adds)?, by_path(removes)?, schema::text(&before, "path")?);
    let touched: Vec<_> = (0..before.num_rows())
        .filter_map(|row| {
            let path = canonical("", paths.value(row));
            let again = added.get(path.as_ref()).copied();
            (again.is_some() || removed.contains_key(path.as_ref())).then_some((row, again))
        })
        .collect();
    let old = vectors(store, &before, touched.iter().map(|(row, _)| Some(*row)))?;
    let new = vectors(store, &adds, touched.iter().map(|(_, again)| *again))?;
    let mut deleted = Vec::new();
    for (((row, again), old), new) in touched.iter().zip(old).zip(new) {
        let mine = ordinals.get(*row).and_then(|ordinal| rows.of_file(*ordinal)).cloned().unwrap_or_default();
        // Restored rows were not visible to the command, so its rows do not contain them; they count as added
        // rows.
        let taken =
            if again.is_some() { mine.intersection(&new).difference(&old) } else { mine.difference(&old) };
        if !taken.is_empty() {
            deleted.push((paths.value(*row).to_owned(), taken.cardinality()));
        }
    }
    let gone_or_again: HashMap<_, _> = touched.iter().copied().collect();
    let untouched: Vec<_> = (0..before.num_rows()).filter(|row| !gone_or_again.contains_key(row)).collect();
    let again: Vec<_> = touched.iter().filter_map(|(row, again)| again.map(|again| (*row, again))).collect();
    let kept = concat_batches(
        &schema::ADD,
        &[take(&before, untouched.iter().copied())?, take(&adds, again.iter().map(|(_, at)| *at))?],
    )?;
    let left = untouched.iter().copied().chain(again.iter().map(|(row, _)| *row));
    let left: Vec<_> = left.filter_map(|row| ordinals.get(row).copied()).collect();
    let rows = rows.only(&left);
    Ok(RebaseResult { files: with_ordinals(&kept, left)?, rows, deleted, is_changed: !touched.is_empty() })
}

/// Returns the `add` rows of a commit whose files may have new rows: all except files in which the commit
/// only deleted rows.
///
/// # Errors
/// A vector cannot be read.
pub fn with_new_rows(store: &dyn Store, adds: &RecordBatch, removes: &RecordBatch) -> Result<RecordBatch> {
    let (adds, removes) = (schema::conform(adds, &schema::ADD)?, schema::conform(removes, &schema::REMOVE)?);
    let (removed, paths) = (by_path(&removes)?, schema::text(&adds, "path")?);
    let pairs: Vec<_> = (0..adds.num_rows())
        .map(|row| (row, removed.get(canonical("", paths.value(row)).as_ref()).copied()))
        .collect();
    let had_vector: Vec<_> = pairs
        .iter()
        .filter_map(|(row, before)| {
            before
                .filter(|before| schema::vectors(&removes).is_ok_and(|found| found.is_valid(*before)))
                .map(|before| (*row, before))
        })
        .collect();
    let old = vectors(store, &removes, had_vector.iter().map(|(_, before)| Some(*before)))?;
    let new = vectors(store, &adds, had_vector.iter().map(|(row, _)| Some(*row)))?;
    let resurrecting =
        had_vector.iter().zip(old).zip(new).filter(|((_, old), new)| !old.difference(new).is_empty());
    let mut kept: Vec<_> = resurrecting.map(|(((row, _), _), _)| *row).collect();
    kept.extend(pairs.iter().filter(|(_, before)| before.is_none()).map(|(row, _)| *row));
    kept.sort_unstable();
    take(&adds, kept.into_iter())
}

/// Reads the vectors of these rows of a table of actions. A file without a vector, and `None`, give an empty
/// set.
fn vectors(
    store: &dyn Store,
    actions: &RecordBatch,
    rows: impl Iterator<Item = Option<usize>>,
) -> Result<Vec<DeletionVector>> {
    let found = columns::read(schema::vectors(actions)?)?;
    let wanted = rows.map(|row| row.and_then(|row| found.get(row).cloned().flatten()));
    let wanted: Vec<_> = wanted
        .map(|descriptor: Option<Descriptor>| {
            descriptor.map(|descriptor| VectorRequest { descriptor, num_records: None })
        })
        .collect();
    Ok(read_all(store, &wanted)?.into_iter().map(Option::unwrap_or_default).collect())
}

/// Returns a map from the decoded path of each file to its row in a table of actions.
fn by_path(actions: &RecordBatch) -> Result<HashMap<String, usize>> {
    let column = actions.column_by_name("path").ok_or_else(|| Error::protocol("actions without paths"))?;
    let paths = schema::conform_column(column, &DataType::Utf8, "path")?;
    let paths = paths
        .as_any()
        .downcast_ref::<arrow::array::StringArray>()
        .ok_or_else(|| Error::protocol("paths are texts"))?;
    Ok(paths
        .iter()
        .enumerate()
        .filter_map(|(row, path)| path.map(|path| (canonical("", path).into_owned(), row)))
        .collect())
}

fn take(batch: &RecordBatch, rows: impl Iterator<Item = usize>) -> Result<RecordBatch> {
    Ok(take_record_batch(batch, &UInt32Array::from_iter_values(rows.map(|row| row as u32)))?)
}

fn with_ordinals(files: &RecordBatch, ordinals: Vec<i32>) -> Result<RecordBatch> {
    let mut fields: Vec<_> = files.schema_ref().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(FILE_COLUMN, DataType::Int32, false)));
    let mut columns = files.columns().to_vec();
    let ordinals: ArrayRef = Arc::new(Int32Array::from(ordinals));
    columns.push(ordinals);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}
