//! `Chunk`, the decoded columns of some rows of a row group, and a queue of chunks, from which batches are
//! taken.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array,
};
use arrow::compute::{concat, take};
use arrow::datatypes::{Field as ArrowField, Schema};

use super::keep::RowMask;
use crate::error::{Error, Result};
use crate::schema::Field;

/// Decoded columns, one for each requested field, in the table's types.
pub struct Chunk {
    /// The columns; none if only the number of rows is needed.
    pub columns: Vec<ArrayRef>,
    /// Number of rows.
    pub rows: usize,
    /// Positions of the rows in the file, if they are needed.
    pub positions: Option<Int64Array>,
}

impl Chunk {
    /// Returns the rows whose value in `mask` is true.
    pub fn keep(self, mask: &BooleanArray) -> Result<Self> {
        let keep = RowMask::new(mask.values());
        let columns = self.columns.iter().map(|column| keep.of(column)).collect::<Result<Vec<_>>>()?;
        let positions = match self.positions {
            None => None,
            Some(positions) => Some(keep.of(&(Arc::new(positions) as ArrayRef))?.as_primitive().clone()),
        };
        Ok(Self { columns, rows: keep.count(), positions })
    }

    /// Returns the rows at these positions, which may repeat.
    pub fn take(self, places: &UInt32Array) -> Result<Self> {
        let columns =
            self.columns.iter().map(|column| take(column, places, None)).collect::<Result<Vec<_>, _>>()?;
        let positions = self.positions.map(|positions| take(&positions, places, None)).transpose()?;
        Ok(Self {
            columns,
            rows: places.len(),
            positions: positions.map(|positions| positions.as_primitive().clone()),
        })
    }

    /// Returns the rows of all `parts`, which have `rows` rows together.
    pub fn join(parts: &[Self], rows: usize) -> Result<Self> {
        let Some(first) = parts.first() else {
            return Ok(Self { columns: Vec::new(), rows, positions: None });
        };
        let column = |index: usize| {
            Ok(concat(&parts.iter().map(|part| part.columns[index].as_ref()).collect::<Vec<_>>())?)
        };
        let columns = (0..first.columns.len()).map(column).collect::<Result<Vec<_>>>()?;
        let positions: Vec<&dyn Array> =
            parts.iter().filter_map(|part| part.positions.as_ref().map(|p| p as &dyn Array)).collect();
        let positions =
            if positions.is_empty() { None } else { Some(concat(&positions)?.as_primitive().clone()) };
        Ok(Self { columns, rows, positions })
    }

    /// Returns the chunk as a batch, with each column under the name of its field.
    pub fn named(&self, fields: &[Field]) -> Result<RecordBatch> {
        let columns = fields.iter().zip(&self.columns);
        let columns = columns
            .map(|(field, column)| ArrowField::new(&field.name, column.data_type().clone(), true))
            .collect::<Vec<_>>();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::new(Schema::new(columns));
        Ok(RecordBatch::try_new_with_options(schema, self.columns.clone(), &options)?)
    }
}

/// Chunks in their order, from which any number of rows can be taken. It holds the columns that a predicate
/// needed until the other columns of the same rows are decoded.
#[derive(Default)]
pub struct ChunkQueue {
    chunks: VecDeque<Chunk>,
    offset: usize,
    rows: usize,
}

impl ChunkQueue {
    /// True if no chunk with rows was added.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds a chunk at the end.
    pub fn push(&mut self, chunk: Chunk) {
        if chunk.rows > 0 {
            self.rows += chunk.rows;
            self.chunks.push_back(chunk);
        }
    }

    /// Removes and returns the next `count` rows.
    pub fn take(&mut self, count: usize) -> Result<Chunk> {
        let mut parts: Vec<Chunk> = Vec::new();
        let mut left = count;
        while left > 0 {
            let Some(front) = self.chunks.front() else {
                return Err(Error::protocol("the columns of a row group have different numbers of rows"));
            };
            let length = left.min(front.rows - self.offset);
            parts.push(Chunk {
                columns: front.columns.iter().map(|column| column.slice(self.offset, length)).collect(),
                rows: length,
                positions: front.positions.as_ref().map(|positions| positions.slice(self.offset, length)),
            });
            left -= length;
            self.offset += length;
            if self.offset == front.rows {
                self.chunks.pop_front();
                self.offset = 0;
            }
        }
        match parts.len() {
            1 => Ok(parts.swap_remove(0)),
            _ => Chunk::join(&parts, count),
        }
    }
}
