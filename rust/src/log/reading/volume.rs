//! Limits the memory of a decoded checkpoint, as a few bytes of Parquet may decode to gigabytes.
//!
//! The limits are on the bytes of decompressed pages, the number of rows, and the bytes of values, as each
//! row may refer to the same long value of a dictionary.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::basic::{Encoding, Type};
use parquet::column::page::Page;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;

use crate::error::{Error, Result};
use crate::pages;

/// Number of rows of a batch while decoding.
const BATCH_ROWS: u64 = 32 * 1024;
/// Maximum number of bytes of text in a batch, computed from the longest values of its columns.
const BATCH_BYTES: u64 = 64 << 20;
/// Limit of the decompressed bytes of a file: at least this many bytes, and this many times the file's size.
const PAGES: (u64, u64) = (64 << 20, 200);
/// Limit of the rows of a file: at least this many, and one for each byte of the file.
const ROWS: (u64, u64) = (1 << 20, 1);
/// Limit of the decoded bytes of a checkpoint: at least this many, and this many times the size of its files.
const ACTIONS: (u64, u64) = (192 << 20, 1000);

fn limit((always, times): (u64, u64), size: u64) -> u64 {
    always.max(size.saturating_mul(times))
}

fn too_much(found: String, most: u64, size: u64) -> Error {
    Error::protocol("the checkpoint decodes to more than the limit for its size")
        .found(found)
        .expected(format!("at most {most} for {size} bytes"))
}

/// Returns an error if the footer of a file of `size` bytes declares more than the limits.
pub fn check(metadata: &ParquetMetaData, mask: &ProjectionMask, size: u64) -> Result<()> {
    let rows = metadata
        .row_groups()
        .iter()
        .map(|group| group.num_rows().max(0).unsigned_abs())
        .fold(0, u64::saturating_add);
    if rows > limit(ROWS, size) {
        return Err(too_much(format!("{rows} rows"), limit(ROWS, size), size));
    }
    let chosen = metadata.row_groups().iter().flat_map(|group| chosen(group, mask));
    let pages = chosen.map(uncompressed).fold(0, u64::saturating_add);
    if pages > limit(PAGES, size) {
        return Err(too_much(format!("{pages} bytes of pages"), limit(PAGES, size), size));
    }
    Ok(())
}

fn chosen<'a>(
    group: &'a RowGroupMetaData,
    mask: &'a ProjectionMask,
) -> impl Iterator<Item = &'a ColumnChunkMetaData> {
    group
        .columns()
        .iter()
        .enumerate()
        .filter(move |(leaf, _)| mask.leaf_included(*leaf))
        .map(|(_, column)| column)
}

fn uncompressed(column: &ColumnChunkMetaData) -> u64 {
    column.uncompressed_size().max(0).unsigned_abs()
}

/// Returns the number of rows per batch with which texts stay within [`BATCH_BYTES`], for any dictionary.
pub fn batch_rows<R: ChunkReader + Clone + 'static>(
    file: &R,
    group: &RowGroupMetaData,
    mask: &ProjectionMask,
) -> Result<usize> {
    let rows = BATCH_ROWS.min(group.num_rows().max(1).unsigned_abs());
    let mut longest = 1_u64;
    for column in chosen(group, mask).filter(|column| column.column_type() == Type::BYTE_ARRAY) {
        if uncompressed(column).saturating_mul(rows) > BATCH_BYTES {
            longest = longest.saturating_add(longest_value(file, group, column)?);
        }
    }
    Ok(usize::try_from((BATCH_BYTES / longest).clamp(1, rows)).unwrap_or(1))
}

/// Returns the length of the longest value that several rows may share. Plain values are not shared.
fn longest_value<R: ChunkReader + Clone + 'static>(
    file: &R,
    group: &RowGroupMetaData,
    column: &ColumnChunkMetaData,
) -> Result<u64> {
    if column.encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY) {
        return Ok(uncompressed(column)); // each value may repeat the one before
    }
    if column.dictionary_page_offset().is_none()
        && !column.encodings().any(|encoding| encoding == Encoding::RLE_DICTIONARY)
    {
        return Ok(0);
    }
    let rows = usize::try_from(group.num_rows()).unwrap_or(0);
    match pages::of_column(Arc::new(file.clone()), column, rows, None)?.get_next_page()? {
        Some(Page::DictionaryPage { buf, .. }) => Ok(longest_of(&buf)),
        _ => Ok(0),
    }
}

/// Returns the length of the longest value; a value is stored as four bytes of length and its bytes.
fn longest_of(mut values: &[u8]) -> u64 {
    let mut longest = 0;
    while let Some((length, rest)) = values.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length);
        longest = longest.max(u64::from(length));
        values = rest.get(length as usize..).unwrap_or_default();
    }
    longest
}

/// The number of bytes to which the files of a checkpoint have decoded so far, on all threads.
#[derive(Debug)]
pub struct DecodedVolume {
    size: u64,
    pages: AtomicU64,
    bytes: AtomicU64,
}

impl DecodedVolume {
    /// Makes a new total for files of `size` bytes.
    pub fn of(size: u64) -> Self {
        Self { size, pages: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Adds the pages of a row group, by their headers, as the footer may declare less. Returns an error
    /// above the limit.
    pub fn expect<R: ChunkReader>(
        &self,
        file: &R,
        group: &RowGroupMetaData,
        mask: &ProjectionMask,
    ) -> Result<()> {
        for column in chosen(group, mask) {
            let more = pages::headers::claimed(file, column)?;
            let pages = self.pages.fetch_add(more, Ordering::Relaxed).saturating_add(more);
            if pages > limit(PAGES, self.size) {
                return Err(too_much(format!("{pages} bytes of pages"), limit(PAGES, self.size), self.size));
            }
        }
        Ok(())
    }

    /// Adds a batch. Returns an error above the limit.
    pub fn add(&self, batch: &RecordBatch) -> Result<()> {
        let more = batch.get_array_memory_size() as u64;
        let bytes = self.bytes.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        let most = limit(ACTIONS, self.size);
        if bytes > most {
            Err(too_much(format!("{bytes} bytes of actions"), most, self.size))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_grow_with_the_file() {
        assert_eq!(limit(PAGES, 1000), 64 << 20);
        assert_eq!(limit(PAGES, 1 << 30), 200 << 30);
        assert_eq!(limit(PAGES, u64::MAX), u64::MAX);
    }

    #[test]
    fn the_longest_of_plain_values() {
        assert_eq!(longest_of(&[]), 0);
        assert_eq!(longest_of(b"\x02\0\0\0ab\x03\0\0\0abc\x01\0\0\0a"), 3);
        assert_eq!(longest_of(b"\x02\0\0\0ab\xff\xff\xff\xff"), u64::from(u32::MAX));
        assert_eq!(longest_of(b"\x02\0\0"), 0);
    }
}
