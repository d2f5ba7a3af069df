//! Parquet files page by page: what the headers of pages claim is read before a decoder believes it, and no page unfolds to more.
//! Pages are written with their checksums ([`checksums`]), and every page that has one is held against it when it is read.
//!
//! Parquet's own readers make room for what a page claims with Snappy, Zstandard and plain LZ4, and refuse it where it is more. Those of gzip,
//! Brotli and the older LZ4 unfold all that there is and compare afterwards: a few kilobytes can stand for gigabytes. Columns of these
//! codecs are therefore read as if they were not compressed, and each page is unfolded here, no further than it claims. So are those of
//! Zstandard where many columns are read at once: Parquet's decoder of each holds 100 KB of its own.

pub mod checksums;
pub mod headers;
mod inflate;
mod reader;

use std::sync::Arc;

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection};
use parquet::arrow::parquet_to_arrow_field_levels;
use parquet::basic::Compression;
use parquet::column::page::PageReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use reader::{Bounded, Group};

/// From so many columns on the pages of Zstandard are unfolded here.
const MANY_COLUMNS: usize = 16;

/// Whether the pages of a codec are unfolded here, where so many columns are read.
fn is_unfolded_here(codec: Compression, columns: usize) -> bool {
    match codec {
        Compression::GZIP(_) | Compression::BROTLI(_) | Compression::LZ4 => true,
        Compression::ZSTD(_) => columns >= MANY_COLUMNS,
        _ => false,
    }
}

/// What is read of a row group.
#[derive(Debug)]
pub struct Wanted {
    /// The row group.
    pub group: usize,
    /// Its leaves.
    pub mask: ProjectionMask,
    /// Rows of a batch.
    pub batch: usize,
    /// Its rows; `None`: all.
    pub rows: Option<RowSelection>,
}

/// The batches of a row group, in the Arrow schema of `metadata`.
pub fn record_batches<R: ChunkReader + 'static>(
    file: R,
    metadata: &ArrowReaderMetadata,
    wanted: Wanted,
) -> Result<ParquetRecordBatchReader, ParquetError> {
    let Wanted { group, mask, batch, rows } = wanted;
    let columns = metadata.metadata().row_group(group).columns().iter().enumerate();
    let read: Vec<Compression> = columns.filter(|(leaf, _)| mask.leaf_included(*leaf)).map(|(_, column)| column.compression()).collect();
    if !read.iter().any(|codec| is_unfolded_here(*codec, read.len())) {
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
        let reader = reader.with_projection(mask).with_row_groups(vec![group]).with_batch_size(batch);
        return match rows {
            Some(rows) => reader.with_row_selection(rows).build(),
            None => reader.build(),
        };
    }
    let group = Group { file: Arc::new(file), metadata: Arc::clone(metadata.metadata()), index: group, columns: read.len() };
    let schema = metadata.metadata().file_metadata().schema_descr();
    let levels = parquet_to_arrow_field_levels(schema, mask, Some(metadata.schema().fields()))?;
    let batch = batch.min(usize::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0));
    ParquetRecordBatchReader::try_new_with_row_groups(&levels, &group, batch, rows)
}

/// The pages of a column chunk of so many rows. `places`: where they are, if that is known. `columns`: how many are read beside it.
pub fn of_column<R: ChunkReader + 'static>(
    file: Arc<R>,
    column: &ColumnChunkMetaData,
    rows: usize,
    places: Option<Vec<PageLocation>>,
    columns: usize,
) -> Result<Box<dyn PageReader>, ParquetError> {
    if is_unfolded_here(column.compression(), columns) {
        return Ok(Box::new(Bounded::new(file, column, rows, places)?));
    }
    Ok(Box::new(SerializedPageReader::new(file, column, rows, places)?))
}

#[cfg(test)]
mod tests;
