//! Reads the bytes of one data file through a [`Store`], in few requests, for the Parquet reader.

use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};

use crate::error::{Error, Result};
use crate::pages::footer;
use crate::store::{Store, coalesce};

/// Number of bytes to fetch first from the end of a file; most footers are smaller.
const TAIL: u64 = 64 * 1024;
/// Ranges with a smaller gap between them are fetched together.
const GAP: u64 = 256 * 1024;

/// Maximum number of rows of a row group; more are an error. Masks of the rows of a row group have a bit for
/// each, also for rows that only the footer claims. Parquet's Java writer allows as many.
pub const MOST_ROWS: usize = i32::MAX as usize;

/// A file in a store, with the ranges of it that are in memory.
#[derive(Debug, Clone)]
pub struct FileBytes(Arc<Pieces>);

#[derive(Debug)]
struct Pieces {
    store: Arc<dyn Store>,
    path: String,
    size: u64,
    pieces: Mutex<Vec<(u64, Bytes)>>,
    later: Mutex<Vec<Range<u64>>>,
    windows: Mutex<Windows>,
    fetched: Arc<AtomicU64>,
    /// The first error of the store, which Arrow's reader of Parquet would reduce to its text. `None`: errors
    /// are not kept, but returned inside the error of the reader.
    failure: Option<Mutex<Option<Error>>>,
}

/// Column chunks that are fetched in windows, and the ranges in them that are needed; both ascending.
#[derive(Debug, Default)]
struct Windows {
    chunks: Vec<Range<u64>>,
    ranges: Vec<Range<u64>>,
    bytes: u64,
}

impl FileBytes {
    /// Makes the file at `path` (decoded) of `size` bytes; `fetched` counts the fetched bytes.
    pub fn new(store: Arc<dyn Store>, path: String, size: u64, fetched: Arc<AtomicU64>) -> Self {
        Self::with(store, path, size, fetched, None)
    }
    fn with(
        store: Arc<dyn Store>,
        path: String,
        size: u64,
        fetched: Arc<AtomicU64>,
        failure: Option<Mutex<Option<Error>>>,
    ) -> Self {
        let (pieces, later, windows) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Pieces { store, path, size, pieces, later, windows, fetched, failure }))
    }
    /// Returns the file's path in its store.
    pub fn path(&self) -> &str {
        &self.0.path
    }
    /// Returns the file with no ranges in memory, except for a small file over a network that is in memory as
    /// a whole. The returned file keeps the first error of the store, see [`Self::failure`].
    pub fn again(&self) -> Self {
        let fetched = Arc::clone(&self.0.fetched);
        let again = Self::with(
            Arc::clone(&self.0.store),
            self.0.path.clone(),
            self.0.size,
            fetched,
            Some(Mutex::default()),
        );
        if self.0.size <= TAIL
            && self.0.store.is_remote()
            && let Some(whole) = self.0.piece(0).filter(|bytes| bytes.len() as u64 == self.0.size)
        {
            again.0.pieces.lock().unwrap_or_else(PoisonError::into_inner).push((0, whole));
        }
        again
    }
    /// Returns the first error that a reader got from the store, and forgets it.
    pub fn failure(&self) -> Option<Error> {
        self.0.failure.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
    /// Converts an error of the store to one of Parquet's reader, and keeps the first one if errors are kept.
    fn failed(&self, error: Error) -> ParquetError {
        let Some(failure) = &self.0.failure else { return ParquetError::External(Box::new(error)) };
        let text = error.to_string();
        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        ParquetError::General(text)
    }
    /// Fetches these ranges, close ones together.
    pub fn fetch(&self, ranges: Vec<Range<u64>>) -> Result<()> {
        self.0.fetch(ranges)
    }
    /// Fetches these ranges together when one of them is first read.
    pub fn fetch_when_touched(&self, ranges: Vec<Range<u64>>) {
        *self.0.later.lock().unwrap_or_else(PoisonError::into_inner) = ranges;
    }
    /// Fetches these ranges in windows of at most `bytes` when they are read, and drops the windows before in
    /// the same column chunk. Each chunk must be read from start to end.
    pub fn fetch_by_windows(&self, mut chunks: Vec<Range<u64>>, mut ranges: Vec<Range<u64>>, bytes: u64) {
        chunks.sort_unstable_by_key(|chunk| chunk.start);
        ranges.sort_unstable_by_key(|range| range.start);
        *self.0.windows.lock().unwrap_or_else(PoisonError::into_inner) = Windows { chunks, ranges, bytes };
    }
}

impl Pieces {
    fn fetch(&self, ranges: Vec<Range<u64>>) -> Result<()> {
        let mut ranges = coalesce(ranges, GAP);
        ranges.retain(|range| {
            self.piece(range.start).is_none_or(|bytes| (bytes.len() as u64) < range.end - range.start)
        });
        if ranges.is_empty() {
            return Ok(());
        }
        if let Some(range) = ranges.iter().find(|range| range.end > self.size) {
            return Err(Error::protocol("the Parquet file names bytes beyond its end")
                .at(self.path.as_str())
                .found(format!("bytes {range:?}"))
                .expected(format!("at most {}", self.size)));
        }
        let found = self.store.get_ranges(&self.path, &ranges)?;
        self.fetched.fetch_add(ranges.iter().map(|range| range.end - range.start).sum(), Ordering::Relaxed);
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.extend(ranges.iter().map(|range| range.start).zip(found));
        pieces.sort_by_key(|(start, _)| *start);
        Ok(())
    }
    /// Returns the bytes in memory from `start` on.
    fn piece(&self, start: u64) -> Option<Bytes> {
        let pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pieces.partition_point(|(first, _)| *first <= start).checked_sub(1)?;
        let (first, bytes) = &pieces[at];
        let offset = usize::try_from(start - first).ok().filter(|offset| *offset < bytes.len())?;
        Some(bytes.slice(offset..))
    }
    fn piece_or_fetch(&self, start: u64, length: u64) -> Result<Bytes> {
        let enough = |bytes: &Bytes| bytes.len() as u64 >= length;
        if let Some(bytes) = self.piece(start).filter(enough) {
            return Ok(bytes);
        }
        let later = std::mem::take(&mut *self.later.lock().unwrap_or_else(PoisonError::into_inner));
        if later.iter().any(|range| range.contains(&start)) {
            self.fetch(later)?;
            if let Some(bytes) = self.piece(start).filter(enough) {
                return Ok(bytes);
            }
        }
        let end = self.move_window(start).unwrap_or(start).max(start.saturating_add(length.max(1)));
        self.fetch(vec![start..end])?;
        self.piece(start)
            .filter(enough)
            .ok_or_else(|| Error::protocol("the Parquet file is cut off").at(self.path.as_str()))
    }
}

impl Pieces {
    /// Moves the window to `start`, if that is in a range that is read in windows: drops the bytes before it,
    /// and returns the end of the next window.
    fn move_window(&self, start: u64) -> Option<u64> {
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let chunk = holding(&windows.chunks, start)?;
        self.pieces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(first, _)| !(chunk.start..=start).contains(first));
        Some(holding(&windows.ranges, start)?.end.min(start.saturating_add(windows.bytes)))
    }
}

/// Returns the range, of ascending ranges, that contains a byte.
fn holding(ranges: &[Range<u64>], byte: u64) -> Option<&Range<u64>> {
    let at = ranges.partition_point(|range| range.start <= byte).checked_sub(1)?;
    ranges.get(at).filter(|range| range.contains(&byte))
}

impl Length for FileBytes {
    fn len(&self) -> u64 {
        self.0.size
    }
}

/// Reads a file sequentially from a position.
#[derive(Debug)]
pub struct FileRead {
    file: FileBytes,
    next: u64,
    piece: Bytes,
}

impl FileRead {
    fn fill(&mut self) -> Result<()> {
        let left = self.file.0.size.saturating_sub(self.next);
        if self.piece.is_empty() && left > 0 {
            self.piece = match self.file.0.piece(self.next) {
                Some(bytes) => bytes,
                // Page headers are read this way if there is no page index.
                None => self.file.0.piece_or_fetch(self.next, left.min(TAIL))?,
            };
            self.next += self.piece.len() as u64;
        }
        Ok(())
    }
}

impl Read for FileRead {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.fill().map_err(|error| match self.file.failed(error) {
            ParquetError::External(error) => std::io::Error::other(error),
            other => std::io::Error::other(other),
        })?;
        let length = self.piece.len().min(into.len());
        self.piece.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}

impl ChunkReader for FileBytes {
    type T = FileRead;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let mut read = FileRead { file: self.clone(), next: start, piece: Bytes::new() };
        read.fill().map_err(|error| self.failed(error))?;
        Ok(read)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        Ok(self.0.piece_or_fetch(start, length as u64).map_err(|error| self.failed(error))?.slice(..length))
    }
}

/// Reads the footer and, with `pages`, the page index.
pub fn read_footer(file: &FileBytes, pages: bool) -> Result<ParquetMetaData> {
    let placed = |error: Error| error.at(file.0.path.as_str());
    let size = file.0.size;
    let tail = TAIL.min(size);
    if tail > 0 {
        file.fetch(vec![size - tail..size])?;
    }
    let length = footer::length(file).map_err(placed)?;
    if length + 8 > tail {
        file.fetch(vec![size - length - 8..size])?;
    }
    footer::check(&file.get_bytes(size - length - 8, length as usize)?).map_err(placed)?;
    let policy = if pages { PageIndexPolicy::Optional } else { PageIndexPolicy::Skip };
    let reader = ParquetMetaDataReader::new().with_page_index_policy(policy);
    let metadata = reader.parse_and_finish(file).map_err(|error| placed(error.into()))?;
    check_footer(file, &metadata)?;
    Ok(metadata)
}

/// Returns an error for impossible numbers in the footer, before memory is allocated for them.
fn check_footer(file: &FileBytes, metadata: &ParquetMetaData) -> Result<()> {
    let wrong =
        |message: &str, found: String| Err(Error::protocol(message).at(file.0.path.as_str()).found(found));
    let mut rows = 0_i64;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        if !usize::try_from(group.num_rows()).is_ok_and(|rows| rows <= MOST_ROWS) {
            return wrong(
                "a row group has an impossible number of rows",
                format!("row group {index}: {}", group.num_rows()),
            );
        }
        rows = rows.saturating_add(group.num_rows());
        for column in group.columns() {
            let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
            let end = start.checked_add(column.compressed_size());
            if start < 0 || column.compressed_size() < 0 || end.is_none_or(|end| end as u64 > file.0.size) {
                let place = format!(
                    "row group {index}, column {}: {} bytes at {start}",
                    column.column_path(),
                    column.compressed_size()
                );
                return wrong("a column chunk lies outside the file", place);
            }
        }
    }
    if rows != metadata.file_metadata().num_rows() {
        let found = format!("{rows} in row groups, {} in all", metadata.file_metadata().num_rows());
        return wrong("the Parquet footer counts its rows in two ways", found);
    }
    Ok(())
}

/// Returns the footer with the Arrow schema to read: by Parquet's own types, with INT96 as microseconds.
pub fn arrow_metadata(metadata: Arc<ParquetMetaData>) -> Result<ArrowReaderMetadata> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let plain = ArrowReaderMetadata::try_new(Arc::clone(&metadata), options.clone())?;
    match super::projection::int96_as_micros(plain.schema(), metadata.file_metadata().schema_descr()) {
        None => Ok(plain),
        Some(schema) => Ok(ArrowReaderMetadata::try_new(metadata, options.with_schema(Arc::new(schema)))?),
    }
}

/// Returns a footer without columns and rows.
pub fn empty_metadata() -> Result<ArrowReaderMetadata> {
    let root = parquet::schema::types::Type::group_type_builder("schema").build()?;
    let schema = Arc::new(parquet::schema::types::SchemaDescriptor::new(Arc::new(root)));
    let file = parquet::file::metadata::FileMetaData::new(1, 0, None, None, schema, None);
    Ok(ArrowReaderMetadata::try_new(
        Arc::new(ParquetMetaData::new(file, Vec::new())),
        ArrowReaderOptions::new().with_skip_arrow_metadata(true),
    )?)
}

#[cfg(test)]
mod tests {
    use parquet::file::metadata::{FileMetaData, RowGroupMetaData};

    use super::*;
    use crate::store::{OpenOptions, open};

    #[test]
    fn row_groups_have_a_limit_of_rows() {
        let store = open("memory://groups/x", &OpenOptions::default()).unwrap();
        let file = FileBytes::new(store, "f".to_owned(), 100, Arc::default());
        let empty = empty_metadata().unwrap();
        let schema = empty.metadata().file_metadata().schema_descr_ptr();
        let checked = |rows: i64| {
            let group = RowGroupMetaData::builder(Arc::clone(&schema)).set_num_rows(rows).build().unwrap();
            let described = FileMetaData::new(1, rows, None, None, Arc::clone(&schema), None);
            check_footer(&file, &ParquetMetaData::new(described, vec![group]))
        };
        let most = MOST_ROWS as i64;
        assert!(checked(most).is_ok());
        for rows in [-1, most + 1, i64::MAX] {
            let error = checked(rows).unwrap_err().to_string();
            assert!(error.contains("an impossible number of rows"), "{error}");
        }
    }

    #[test]
    fn windows_let_go_of_what_lies_before_them() {
        let store = open("memory://windows/x", &OpenOptions::default()).unwrap();
        let data: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        store.put("f", Bytes::from(data.clone())).unwrap();
        let file = FileBytes::new(store, "f".to_owned(), 100_000, Arc::default());
        let chunks = [10..40_000, 40_000..90_000];
        file.fetch_by_windows(chunks.to_vec(), chunks.to_vec(), 1000);
        let held = || file.0.pieces.lock().unwrap().iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        for at in (0..39_000).step_by(700) {
            for chunk in &chunks {
                let start = chunk.start + at;
                let place = usize::try_from(start).unwrap();
                assert_eq!(file.get_bytes(start, 700).unwrap(), data[place..place + 700]);
                assert!(held() <= 2000);
            }
        }
        let mut read = Vec::new();
        file.get_read(80_000).unwrap().take(5000).read_to_end(&mut read).unwrap();
        assert_eq!(read, data[80_000..85_000]); // over the ends of windows
        assert_eq!(file.get_bytes(85_000, 4000).unwrap(), data[85_000..89_000]); // more than a window
        assert_eq!(file.get_bytes(95_000, 10).unwrap(), data[95_000..95_010]); // in no chunk
    }
}
