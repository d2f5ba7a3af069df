//! Computes sort keys that place rows with similar values in several columns close together.
//!
//! - [`range_id`]: replaces a value by the number of its range between sampled boundaries, so that all
//!   columns have the same weight
//! - [`interleave`]: Z-order: interleaves the bits of these numbers
//! - [`hilbert`]: the Hilbert curve through the same grid, on which consecutive cells are neighbours in the
//!   grid
//!
//! No file format depends on these keys. The names and the byte order are those of delta-spark's
//! `range_partition_id` and `interleave_bits`.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::error::{Error, Kind, Result};

pub mod hilbert;
pub mod interleave;
pub mod range_id;

pub use range_id::{Bounds, Sampler};

/// Name of the key column.
pub const KEY: &str = "__deltaic_key";

/// The curve through the cells of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// Z-order: interleaved bits.
    ZOrder,
    /// The Hilbert curve.
    Hilbert,
}

/// Appends a column with the key of each row to batches: int64 if the bits fit, else big-endian bytes, which
/// sort in the order of the curve.
#[derive(Debug)]
pub struct Keys {
    columns: Vec<(usize, Bounds)>,
    curve: Curve,
    bits: u32,
    schema: SchemaRef,
}

impl Keys {
    /// Prepares the keys of a stream of batches. `bounds`: the boundaries of each named column of `schema`.
    pub fn new(schema: &Schema, bounds: &[(String, Bounds)], curve: Curve) -> Result<Self> {
        let columns = bounds
            .iter()
            .map(|(name, bounds)| {
                let index = schema.index_of(name).map_err(|_| {
                    Error::new(Kind::InvalidArgument, "no such column to cluster by").found(name)
                })?;
                Ok((index, bounds.clone()))
            })
            .collect::<Result<Vec<_>>>()?;
        let ids = columns.iter().map(|(_, b)| b.len() as u32).max().unwrap_or_default();
        let bits = (u32::BITS - ids.leading_zeros()).max(1);
        let key = if fits(columns.len(), bits) { DataType::Int64 } else { DataType::Binary };
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(KEY, key, false)));
        Ok(Self { columns, curve, bits, schema: Arc::new(Schema::new(fields)) })
    }

    /// Returns the schema of the batches of `append`.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Returns the batch with its key column.
    pub fn append(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let ids = self
            .columns
            .iter()
            .map(|(index, bounds)| bounds.ids(batch.column(*index)))
            .collect::<Result<Vec<_>>>()?;
        let mut columns = batch.columns().to_vec();
        columns.push(keys(ids, self.curve, self.bits));
        RecordBatch::try_new(self.schema.clone(), columns).map_err(|e| {
            Error::new(Kind::SchemaMismatch, "a batch that does not fit its stream's schema").caused_by(e)
        })
    }
}

fn fits(columns: usize, bits: u32) -> bool {
    columns as u64 * u64::from(bits) < 64
}

fn keys(mut ids: Vec<Vec<u32>>, curve: Curve, bits: u32) -> ArrayRef {
    if curve == Curve::Hilbert {
        hilbert::transpose(&mut ids, bits);
    }
    let bytes = (ids.len() * bits as usize).div_ceil(8);
    let rows = interleave::rows(&ids);
    let width = 4 * ids.len();
    if !fits(ids.len(), bits) {
        let mut keys = BinaryBuilder::with_capacity(rows.len() / width.max(1), rows.len());
        rows.chunks_exact(width).for_each(|row| keys.append_value(&row[width - bytes..]));
        return Arc::new(keys.finish());
    }
    let number = |row: &[u8]| row[width - bytes..].iter().fold(0, |key, &byte| key << 8 | i64::from(byte));
    Arc::new(rows.chunks_exact(width.max(1)).map(number).collect::<Int64Array>())
}
