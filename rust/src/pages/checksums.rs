//! Writes pages with their checksums. Parquet's own writer leaves the field empty, so it is added to the
//! header of each page here.
//!
//! A column writer passes each page to its store as two blobs, header and data. The store keeps them with a
//! header that is a few bytes longer (`crc`, field 4 of `PageHeader`: CRC-32 of the bytes as stored). The
//! offsets and sizes in the column's metadata are corrected when the column is appended to a row group.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowLeafColumn, ArrowRowGroupWriterFactory};
use parquet::column::page_store::{PageKey, PageStore, PageStoreArgs, PageStoreFactory};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::headers;

/// A page as stored.
#[derive(Debug)]
struct StoredPage {
    header: Bytes,
    data: Bytes,
    /// Number of bytes that the checksum adds to the header.
    added: usize,
}

impl StoredPage {
    fn len(&self) -> usize {
        self.header.len() + self.data.len()
    }
}

/// The pages of a column chunk that is being written.
#[derive(Debug, Default)]
struct Pages {
    dictionary: Option<StoredPage>,
    data: Vec<StoredPage>,
    /// A header whose data has not come yet.
    header: Option<Bytes>,
    blobs: u64,
    bytes: usize,
}

impl Pages {
    fn put(&mut self, blob: Bytes) -> Result<PageKey> {
        let key = PageKey::new(self.blobs);
        self.blobs += 1;
        let Some(header) = self.header.take() else {
            self.header = Some(blob);
            return Ok(key);
        };
        let wrong = || ParquetError::General("a page header without room for a checksum".to_owned());
        let (longer, dictionary) =
            headers::with_checksum(&header, crc32fast::hash(&blob)).ok_or_else(wrong)?;
        let page = StoredPage { added: longer.len() - header.len(), header: longer.into(), data: blob };
        self.bytes += page.len();
        if dictionary {
            self.dictionary = Some(page);
        } else {
            self.data.push(page);
        }
        Ok(key)
    }
}

type Shared = Arc<Mutex<Pages>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The store that a column writer passes its pages to.
struct Store(Shared);

impl PageStore for Store {
    fn put(&mut self, blob: Bytes) -> Result<PageKey> {
        lock(&self.0).put(blob)
    }
    fn take(&mut self, _: PageKey) -> Result<Bytes> {
        Err(ParquetError::General("pages are appended with their checksums".to_owned()))
    }
    fn memory_size(&self) -> usize {
        lock(&self.0).bytes
    }
}

/// Creates the stores of a row group, and keeps them in the order of its leaves.
#[derive(Debug, Default)]
struct Stores(Mutex<Vec<Shared>>);

impl PageStoreFactory for Stores {
    fn create(&self, _: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        let pages = Shared::default();
        lock(&self.0).push(Arc::clone(&pages));
        Ok(Box::new(Store(pages)))
    }
}

/// Creates the column writers of row groups.
#[derive(Debug)]
pub struct ColumnWriters {
    factory: ArrowRowGroupWriterFactory,
    stores: Arc<Stores>,
    /// Held while a row group is begun, so that the stores of two row groups do not mix.
    one: Mutex<()>,
}

impl ColumnWriters {
    /// Makes a factory of column writers for the row groups of a file.
    pub fn new<W: Write + Send>(file: &SerializedFileWriter<W>, schema: SchemaRef) -> Self {
        let stores = Arc::new(Stores::default());
        let factory =
            ArrowRowGroupWriterFactory::new(file, schema).with_page_store_factory(Arc::clone(&stores) as _);
        Self { factory, stores, one: Mutex::default() }
    }

    /// Creates a writer for each leaf of a new row group.
    pub fn create(&self) -> Result<Vec<ColumnWriter>> {
        let _one = lock(&self.one);
        lock(&self.stores.0).clear();
        let writers = self.factory.create_column_writers(0)?;
        let stores = std::mem::take(&mut *lock(&self.stores.0));
        if stores.len() != writers.len() {
            return Err(ParquetError::General(format!(
                "{} stores for {} columns",
                stores.len(),
                writers.len()
            )));
        }
        Ok(writers.into_iter().zip(stores).map(|(writer, pages)| ColumnWriter { writer, pages }).collect())
    }
}

/// Encodes one leaf of a row group.
pub struct ColumnWriter {
    writer: ArrowColumnWriter,
    pages: Shared,
}

impl ColumnWriter {
    /// Appends values.
    pub fn write(&mut self, leaf: &ArrowLeafColumn) -> Result<()> {
        self.writer.write(leaf)
    }
    /// Returns the approximate number of bytes of the finished column.
    pub fn estimated_bytes(&self) -> usize {
        self.writer.get_estimated_total_bytes()
    }
    /// Finishes the column.
    pub fn close(self) -> Result<Chunk> {
        let mut chunk = self.writer.close()?;
        let closed = chunk.close_mut();
        let (bloom_filter, column_index) = (closed.bloom_filter.take(), closed.column_index.take());
        let offset_index = closed.offset_index.take();
        let closed = ColumnCloseResult { bloom_filter, column_index, offset_index, ..closed.clone() };
        let pages = std::mem::take(&mut *lock(&self.pages));
        Chunk::new(pages, closed)
    }
}

/// A finished column of a row group.
#[derive(Debug)]
pub struct Chunk {
    blobs: VecDeque<Bytes>,
    closed: ColumnCloseResult,
}

impl Chunk {
    /// Adjusts the metadata to the positions of pages after checksums are added and the dictionary is put
    /// first.
    fn new(pages: Pages, mut closed: ColumnCloseResult) -> Result<Self> {
        let first = pages.dictionary.as_ref().map_or(0, StoredPage::len);
        let added = pages.dictionary.iter().chain(&pages.data).map(|page| page.added).sum::<usize>();
        if let Some(index) = &mut closed.offset_index {
            let mut offset = first;
            for (location, page) in index.page_locations.iter_mut().zip(&pages.data) {
                location.offset = offset as i64;
                location.compressed_page_size = i32::try_from(page.len())?;
                offset += page.len();
            }
        }
        let (stored, unfolded) = (closed.metadata.compressed_size(), closed.metadata.uncompressed_size());
        let metadata = closed.metadata.into_builder().set_data_page_offset(first as i64);
        let metadata = metadata.set_dictionary_page_offset(pages.dictionary.is_some().then_some(0));
        let metadata = metadata
            .set_total_compressed_size(stored + added as i64)
            .set_total_uncompressed_size(unfolded + added as i64);
        closed.metadata = metadata.build()?;
        closed.bytes_written += added as u64;
        let blobs = pages
            .dictionary
            .into_iter()
            .chain(pages.data)
            .flat_map(|page| [page.header, page.data])
            .collect();
        Ok(Self { blobs, closed })
    }

    /// Removes the bounds of a column of floats, which has a NaN. Parquet's bounds leave NaN out, so a reader
    /// that takes NaN for the greatest number, such as Spark, would skip rows with `value > 1` by a maximum
    /// of 1.
    pub fn remove_bounds_of_floats(&mut self) -> Result<()> {
        let unbounded = match self.closed.metadata.statistics() {
            Some(Statistics::Float(known)) => {
                Statistics::float(None, None, None, known.null_count_opt(), false)
            }
            Some(Statistics::Double(known)) => {
                Statistics::double(None, None, None, known.null_count_opt(), false)
            }
            _ => return Ok(()),
        };
        let metadata = self.closed.metadata.clone().into_builder().set_statistics(unbounded);
        self.closed.metadata = metadata.build()?;
        self.closed.column_index = None;
        Ok(())
    }

    /// Appends the column to a row group of its file.
    pub fn append_to<W: Write + Send>(self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
        group.append_column(&Blobs(Mutex::new(self.blobs)), self.closed)
    }
}

/// The bytes of a column chunk, which are read once from the start. A page is dropped after it was read.
struct Blobs(Mutex<VecDeque<Bytes>>);

impl Length for Blobs {
    fn len(&self) -> u64 {
        lock(&self.0).iter().map(|blob| blob.len() as u64).sum()
    }
}

impl ChunkReader for Blobs {
    type T = InOrder;
    fn get_read(&self, start: u64) -> Result<InOrder> {
        let blobs = std::mem::take(&mut *lock(&self.0));
        if start == 0 {
            Ok(InOrder(blobs))
        } else {
            Err(ParquetError::General(format!("a column that begins at {start}")))
        }
    }
    fn get_bytes(&self, _: u64, _: usize) -> Result<Bytes> {
        Err(ParquetError::General("pages are read in order".to_owned()))
    }
}

struct InOrder(VecDeque<Bytes>);

impl Read for InOrder {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let mut filled = 0;
        while let Some(blob) = self.0.front_mut().filter(|_| filled < into.len()) {
            let some = blob.split_to(blob.len().min(into.len() - filled));
            into[filled..filled + some.len()].copy_from_slice(&some);
            filled += some.len();
            if blob.is_empty() {
                self.0.pop_front();
            }
        }
        Ok(filled)
    }
}
