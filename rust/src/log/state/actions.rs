//! Makes tables of actions from other tables of actions: the removes of added files, adds that are written
//! again, and the actions that two tables have in common.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::DataType;

use crate::error::{Error, Kind, Result};
use crate::log::schema::{self, text};
use crate::store::canonical;

/// Returns the remove actions of these files, with all fields of the adds that a tombstone may have.
pub fn removes_of(adds: &RecordBatch, deletion_timestamp: i64, data_change: bool) -> Result<RecordBatch> {
    let rows = adds.num_rows();
    let adds = schema::conform(adds, &schema::ADD)?;
    let columns = schema::REMOVE.fields().iter().map(|field| -> Result<ArrayRef> {
        Ok(match field.name().as_str() {
            "deletionTimestamp" => Arc::new(Int64Array::from(vec![deletion_timestamp; rows])),
            "dataChange" => Arc::new(BooleanArray::from(vec![data_change; rows])),
            "extendedFileMetadata" => Arc::new(BooleanArray::from(vec![true; rows])),
            // Statistics in tombstones are optional and make every later checkpoint larger.
            "stats" => arrow::array::new_null_array(&DataType::Utf8, rows),
            name => Arc::clone(
                adds.column_by_name(name)
                    .ok_or_else(|| Error::new(Kind::InvalidArgument, "no such column").found(name))?,
            ),
        })
    });
    Ok(RecordBatch::try_new(Arc::clone(&schema::REMOVE), columns.collect::<Result<_>>()?)?)
}

/// Returns the add actions as they are, to be written again. `data_change`: a new value of `dataChange`.
pub fn adds_again(adds: &RecordBatch, data_change: Option<bool>) -> Result<RecordBatch> {
    let adds = schema::conform(adds, &schema::ADD)?;
    let Some(data_change) = data_change else { return Ok(adds) };
    let mut columns = adds.columns().to_vec();
    columns[adds.schema_ref().index_of("dataChange")?] =
        Arc::new(BooleanArray::from(vec![data_change; adds.num_rows()]));
    Ok(RecordBatch::try_new(adds.schema(), columns)?)
}

/// Returns the decoded paths that both tables have, at most `limit` of them.
pub fn overlapping_paths(left: &RecordBatch, right: &RecordBatch, limit: usize) -> Result<Vec<String>> {
    let (left, right) = (paths(left)?, paths(right)?);
    let (few, many) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let (few, many) = (few.as_any().downcast_ref(), many.as_any().downcast_ref());
    let (Some(few), Some(many)): (Option<&arrow::array::StringArray>, Option<&arrow::array::StringArray>) =
        (few, many)
    else {
        return Err(Error::new(Kind::InvalidArgument, "paths are texts"));
    };
    let mut known: HashMap<_, bool> = few.iter().flatten().map(|path| (canonical("", path), false)).collect();
    let mut both = Vec::new();
    for path in many.iter().flatten() {
        if let Some(seen) = known.get_mut(&canonical("", path))
            && !std::mem::replace(seen, true)
        {
            both.push(canonical("", path).into_owned());
            if both.len() == limit {
                break;
            }
        }
    }
    Ok(both)
}

fn paths(batch: &RecordBatch) -> Result<ArrayRef> {
    let column =
        batch.column_by_name("path").ok_or_else(|| Error::new(Kind::InvalidArgument, "no column 'path'"))?;
    schema::conform_column(column, &DataType::Utf8, "path")
}

/// Returns the number of rows of live files, without deleted rows. `None` if a file has no count.
pub fn logical_rows(batch: &RecordBatch) -> Result<Option<i64>> {
    let counts = crate::log::skipping::statistics::num_records(text(batch, "stats")?);
    let vectors = schema::vectors(batch)?;
    let cardinality = vectors.column_by_name("cardinality").map(Arc::clone);
    let cardinality = cardinality.and_then(|column| column.as_any().downcast_ref::<Int64Array>().cloned());
    let mut rows = 0_i64;
    for row in 0..counts.len() {
        if counts.is_null(row) {
            return Ok(None);
        }
        let deleted = cardinality
            .as_ref()
            .filter(|c| vectors.is_valid(row) && c.is_valid(row))
            .map_or(0, |c| c.value(row));
        rows = rows.saturating_add(counts.value(row).saturating_sub(deleted));
    }
    Ok(Some(rows))
}

/// The number and size of the files that have a deletion vector.
#[derive(Debug, Clone, Copy, Default)]
pub struct VectorFiles {
    /// Number of files.
    pub files: usize,
    /// Size of the files in bytes.
    pub bytes: i64,
    /// Size of their vectors in bytes.
    pub vector_bytes: i64,
}

impl VectorFiles {
    /// Counts the files with a vector in a batch of adds.
    pub fn of(batch: &RecordBatch) -> Result<Self> {
        let vectors = schema::vectors(batch)?;
        if vectors.null_count() == vectors.len() {
            return Ok(Self::default());
        }
        let sizes = schema::long(batch, "size")?;
        let lengths = vectors
            .column_by_name("sizeInBytes")
            .and_then(|column| column.as_any().downcast_ref::<Int32Array>());
        let with = (0..vectors.len()).filter(|&row| vectors.is_valid(row));
        Ok(with.fold(Self::default(), |sum, row| {
            let bytes = if sizes.is_valid(row) { sizes.value(row) } else { 0 };
            let vector_bytes = lengths
                .filter(|column| column.is_valid(row))
                .map_or(0, |column| i64::from(column.value(row)));
            sum.plus(Self { files: 1, bytes, vector_bytes })
        }))
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            bytes: self.bytes.saturating_add(other.bytes),
            vector_bytes: self.vector_bytes.saturating_add(other.vector_bytes),
        }
    }
}
