//! Joins the columns of two readers of a row group, Parquet's own and that of `numbers`, to batches.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection, RowSelector};
use parquet::errors::ParquetError;

use super::numbers::Column;

/// An iterator over the batches of a row group.
pub struct Batches {
    schema: SchemaRef,
    reader: Option<ParquetRecordBatchReader>,
    numbers: Vec<(usize, Box<dyn Column>)>,
    /// Rows that `numbers` have not read yet.
    rows: VecDeque<RowSelector>,
    batch: usize,
}

impl Batches {
    /// Joins the columns of two readers. `reader`: reads the columns at `roots` of the file's schema;
    /// `numbers`: all other columns, with their positions and fields; `rows`: the rows that `reader` reads.
    pub(super) fn new(
        reader: Option<ParquetRecordBatchReader>,
        numbers: Vec<(usize, FieldRef, Box<dyn Column>)>,
        roots: &[usize],
        rows: RowSelection,
        batch: usize,
    ) -> Self {
        let read = reader.as_ref().map(arrow::array::RecordBatchReader::schema);
        let read = read
            .iter()
            .flat_map(|schema| schema.fields())
            .zip(roots)
            .map(|(field, root)| (*root, Arc::clone(field)));
        let mut fields: Vec<(usize, FieldRef)> =
            numbers.iter().map(|(root, field, _)| (*root, Arc::clone(field))).chain(read).collect();
        fields.sort_by_key(|(root, _)| *root);
        let place = |root| fields.iter().position(|(other, _)| *other == root).unwrap_or(0);
        let numbers = numbers.into_iter().map(|(root, _, column)| (place(root), column)).collect();
        let schema = Arc::new(Schema::new(fields.into_iter().map(|(_, field)| field).collect::<Vec<_>>()));
        Self { schema, reader, numbers, rows: Vec::from(rows).into(), batch }
    }
    /// Returns the schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let others = match &mut self.reader {
            None => None,
            Some(reader) => match reader.next() {
                None => return Ok(None),
                Some(batch) => Some(batch?),
            },
        };
        if self.numbers.is_empty() {
            return Ok(others);
        }
        self.read_numbers(others.as_ref().map_or(self.batch, RecordBatch::num_rows))?;
        let mut columns: Vec<ArrayRef> = others.map_or_else(Vec::new, |batch| batch.columns().to_vec());
        for (place, column) in &mut self.numbers {
            columns.insert(*place, column.take()?);
        }
        // A batch whose columns differ in length is an error.
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok((batch.num_rows() > 0).then_some(batch))
    }

    /// Reads the next `count` rows of the columns of numbers, or the remaining ones.
    fn read_numbers(&mut self, count: usize) -> Result<(), ParquetError> {
        let mut left = count;
        while left > 0
            && let Some(rows) = self.rows.pop_front()
        {
            let now = if rows.skip { rows.row_count } else { rows.row_count.min(left) };
            for (_, column) in &mut self.numbers {
                let found = if rows.skip { column.skip(now)? } else { column.read(now)? };
                if found != now {
                    return Err(ParquetError::General(format!(
                        "a column of numbers ends {} rows early",
                        now - found
                    )));
                }
            }
            if !rows.skip {
                left -= now;
                if now < rows.row_count {
                    self.rows.push_front(RowSelector::select(rows.row_count - now));
                }
            }
        }
        Ok(())
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
