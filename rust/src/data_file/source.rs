//! The bytes of one data file, fetched through a [`Store`] in few requests, as the Parquet reader wants them.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};

use crate::error::{Error, Result};
use crate::store::Store;

/// The tail that is fetched first: it holds most footers whole.
const TAIL: u64 = 64 * 1024;
/// A larger footer is refused before it is fetched.
const LARGEST_FOOTER: u64 = 256 << 20;
/// Ranges that lie closer are fetched together.
const GAP: u64 = 256 * 1024;

/// A file in a store, with the pieces of it that are already here.
#[derive(Debug)]
pub struct FileBytes {
    store: Arc<dyn Store>,
    path: String,
    size: u64,
    pieces: Mutex<Vec<(u64, Bytes)>>,
    later: Mutex<Vec<Range<u64>>>,
    fetched: Arc<AtomicU64>,
}

impl FileBytes {
    /// The file at `path` (decoded) of `size` bytes; `fetched` counts bytes.
    pub fn new(store: Arc<dyn Store>, path: String, size: u64, fetched: Arc<AtomicU64>) -> Self {
        Self { store, path, size, pieces: Mutex::default(), later: Mutex::default(), fetched }
    }
    /// The same file with no piece here.
    pub fn again(&self) -> Self {
        Self::new(Arc::clone(&self.store), self.path.clone(), self.size, Arc::clone(&self.fetched))
    }
    /// Fetches these ranges now, neighbours together.
    pub fn fetch(&self, ranges: Vec<Range<u64>>) -> Result<()> {
        let ranges = coalesce(ranges);
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
    /// Fetches these ranges together as soon as one of them is touched.
    pub fn fetch_when_touched(&self, ranges: Vec<Range<u64>>) {
        *self.later.lock().unwrap_or_else(PoisonError::into_inner) = ranges;
    }
    /// The piece that holds byte `start`, from there on.
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
        let end = start.saturating_add(length.max(1));
        self.fetch(vec![start..end])?;
        self.piece(start).filter(enough).ok_or_else(|| Error::protocol("the Parquet file is cut off").at(self.path.as_str()))
    }
}

/// Joins ranges that lie close; the result ascends.
fn coalesce(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| range.start < range.end);
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP) => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

impl Length for FileBytes {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for FileBytes {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let length = self.size.saturating_sub(start).min(TAIL); // page headers are read this way where there is no page index
        if let Some(bytes) = self.piece(start) {
            return Ok(bytes.reader());
        }
        Ok(self.piece_or_fetch(start, length).map_err(external)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        Ok(self.piece_or_fetch(start, length as u64).map_err(external)?.slice(..length))
    }
}

fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

/// Reads the footer, and the page index where `pages`.
pub fn read_footer(file: &FileBytes, pages: bool) -> Result<ParquetMetaData> {
    let size = file.size;
    if size < 12 {
        let error = Error::protocol("the file is too short for Parquet").at(file.path.as_str()).found(format!("{size} bytes"));
        return Err(error.expected("a Parquet file"));
    }
    let tail = TAIL.min(size);
    file.fetch(vec![size - tail..size])?;
    let trailer = file.piece_or_fetch(size - 8, 8)?;
    if &trailer[4..8] != b"PAR1" {
        let error = Error::protocol("the file does not end as Parquet does").at(file.path.as_str());
        return Err(error.found(format!("\"{}\"", trailer[4..8].escape_ascii())).expected("PAR1, unencrypted"));
    }
    let length = u64::from(u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]));
    if length + 8 > size || length > LARGEST_FOOTER {
        return Err(Error::protocol("the Parquet footer has an impossible length")
            .at(file.path.as_str())
            .found(length)
            .expected(format!("at most {}", LARGEST_FOOTER.min(size - 8))));
    }
    if length + 8 > tail {
        file.fetch(vec![size - length - 8..size])?;
    }
    let policy = if pages { PageIndexPolicy::Optional } else { PageIndexPolicy::Skip };
    let reader = ParquetMetaDataReader::new().with_page_index_policy(policy);
    let metadata = reader.parse_and_finish(file).map_err(|error| Error::from(error).at(file.path.as_str()))?;
    check_footer(file, &metadata)?;
    Ok(metadata)
}

/// Refuses numbers that no file has, before anything is reserved by them.
fn check_footer(file: &FileBytes, metadata: &ParquetMetaData) -> Result<()> {
    let wrong = |message: &str, found: String| Err(Error::protocol(message).at(file.path.as_str()).found(found));
    let mut rows = 0_i64;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        if group.num_rows() < 0 {
            return wrong("a row group has a negative number of rows", format!("row group {index}: {}", group.num_rows()));
        }
        rows = rows.saturating_add(group.num_rows());
        for column in group.columns() {
            let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
            let end = start.checked_add(column.compressed_size());
            if start < 0 || column.compressed_size() < 0 || end.is_none_or(|end| end as u64 > file.size) {
                let place = format!("row group {index}, column {}: {} bytes at {start}", column.column_path(), column.compressed_size());
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

/// The footer with the Arrow schema that the reader shall produce: what Parquet's own types say, INT96 as microseconds.
pub fn arrow_metadata(metadata: Arc<ParquetMetaData>) -> Result<ArrowReaderMetadata> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let plain = ArrowReaderMetadata::try_new(Arc::clone(&metadata), options.clone())?;
    match super::projection::int96_as_micros(plain.schema(), metadata.file_metadata().schema_descr()) {
        None => Ok(plain),
        Some(schema) => Ok(ArrowReaderMetadata::try_new(metadata, options.with_schema(Arc::new(schema)))?),
    }
}

/// The footer of no file at all: no column, no row.
pub fn empty_metadata() -> Result<ArrowReaderMetadata> {
    let root = parquet::schema::types::Type::group_type_builder("schema").build()?;
    let schema = Arc::new(parquet::schema::types::SchemaDescriptor::new(Arc::new(root)));
    let file = parquet::file::metadata::FileMetaData::new(1, 0, None, None, schema, None);
    Ok(ArrowReaderMetadata::try_new(
        Arc::new(ParquetMetaData::new(file, Vec::new())),
        ArrowReaderOptions::new().with_skip_arrow_metadata(true),
    )?)
}
