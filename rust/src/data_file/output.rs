//! Writes one data file: row groups are encoded by several threads and appended in order. The file is
//! invisible until it is complete.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use super::encode::{EncodedColumn, Pool, RowGroup, encode};
use super::statistics::{GatheredStatistics, StatisticsShape};
use crate::error::{Error, Result};
use crate::pages::checksums::ColumnWriters;
use crate::store::noted_writer::{NotedWriter, WriteFailure};
use crate::store::{ObjectWriter, Store};
use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;

/// Number of bytes to collect before a file is opened in the store, so that of many small files only few are
/// open at once.
const UNOPENED: usize = 256 << 10;

/// The part of a write that all its files share.
pub struct Shape {
    /// The Arrow schema with physical names.
    pub schema: SchemaRef,
    /// The schema in Parquet's types.
    pub root: TypePtr,
    /// The properties of the Parquet writer.
    pub properties: WriterPropertiesPtr,
    /// Makes column writers.
    pub factory: ColumnWriters,
    /// Statistics to gather.
    pub wanted: Vec<StatisticsShape>,
}

/// A writer that collects bytes, and opens the file in the store only when they exceed `UNOPENED`.
struct Sink {
    store: Arc<dyn Store>,
    path: String,
    buffer: Vec<u8>,
    writer: Option<Box<dyn ObjectWriter>>,
}

impl Sink {
    fn flush_buffer(&mut self) -> std::io::Result<()> {
        if self.writer.is_none() {
            self.writer = Some(self.store.writer(&self.path).map_err(std::io::Error::other)?);
        }
        match &mut self.writer {
            Some(writer) => writer.write_all(&self.buffer)?,
            None => return Err(std::io::Error::other("no writer")),
        }
        self.buffer.clear();
        Ok(())
    }

    /// Finishes the file and returns its size. A file that is not open yet is written by one request.
    fn finish(&mut self) -> std::io::Result<u64> {
        let put = if self.writer.is_none() {
            let bytes = std::mem::take(&mut self.buffer);
            let size = bytes.len() as u64;
            self.store.put_unsynced(&self.path, bytes.into()).map(|()| size)
        } else {
            self.flush_buffer()?;
            self.writer.take().map_or(Ok(0), |writer| writer.finish_unsynced())
        };
        put.map_err(std::io::Error::other)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }
    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.buffer.len() + bytes.len() <= UNOPENED {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush_buffer()?;
        match &mut self.writer {
            Some(writer) => writer.write_all(bytes),
            None => Err(std::io::Error::other("no writer")),
        }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Sink {
    /// Removes the file if it is unfinished.
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.abort();
        }
    }
}

/// The row group that gets the next rows.
struct Current {
    group: RowGroup,
    rows: usize,
    raw: u64,
}

/// A data file being written.
pub struct Output {
    /// Path in the store.
    pub path: String,
    /// Number of rows so far.
    pub rows: u64,
    writer: SerializedFileWriter<NotedWriter<Sink>>,
    failure: WriteFailure,
    current: Option<Current>,
    closing: VecDeque<RowGroup>,
    gathered: Vec<GatheredStatistics>,
}

/// A finished file.
#[derive(Debug)]
pub struct FinishedFile {
    /// Path in the store.
    pub path: String,
    /// The file's size in bytes.
    pub size: u64,
    /// Number of rows.
    pub rows: u64,
    /// The statistics of each column.
    pub gathered: Vec<GatheredStatistics>,
}

impl Output {
    /// Begins a file at `path`.
    pub fn new(store: &Arc<dyn Store>, path: String, shape: &Shape) -> Result<Self> {
        let sink = Sink { store: Arc::clone(store), path: path.clone(), buffer: Vec::new(), writer: None };
        let failure = WriteFailure::default();
        let writer = SerializedFileWriter::new(
            failure.noted(sink),
            Arc::clone(&shape.root),
            Arc::clone(&shape.properties),
        )
        .map_err(|error| Error::of_writer(error, &path))?;
        let gathered = shape.wanted.iter().map(GatheredStatistics::new).collect();
        Ok(Self { path, rows: 0, writer, failure, current: None, closing: VecDeque::new(), gathered })
    }
    /// Returns the number of rows and of bytes (before encoding) of the current row group.
    pub fn group(&self) -> (usize, u64) {
        self.current.as_ref().map_or((0, 0), |current| (current.rows, current.raw))
    }
    /// Returns the approximate number of encoded bytes of the current row group.
    pub fn group_size(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.group.size())
    }
    /// Returns the approximate number of bytes so far.
    pub fn size(&self) -> u64 {
        let open = self
            .current
            .iter()
            .map(|current| current.group.size())
            .chain(self.closing.iter().map(RowGroup::size));
        self.writer.bytes_written() as u64 + open.sum::<u64>()
    }
    /// Returns the number of bytes that are not yet passed to the store, as the file is small.
    pub fn buffered(&self) -> u64 {
        self.writer.inner().inner.buffer.len() as u64
    }
    /// True if the file is open in the store.
    pub fn is_open(&self) -> bool {
        self.writer.inner().inner.writer.is_some()
    }
    /// Gives rows to the current row group.
    pub fn feed(
        &mut self,
        pool: &Pool,
        shape: &Shape,
        arrays: &[ArrayRef],
        sizes: &[u64],
        rows: usize,
    ) -> Result<()> {
        if self.current.is_none() {
            self.current = Some(Current {
                group: RowGroup::new(&shape.factory, &shape.schema, &shape.wanted)?,
                rows: 0,
                raw: 0,
            });
        }
        if let Some(current) = &mut self.current {
            pool.feed(&current.group, arrays, sizes);
            current.rows += rows;
            current.raw += sizes.iter().sum::<u64>();
        }
        self.rows += rows as u64;
        Ok(())
    }
    /// Ends the current row group. At most one row group waits to be appended later.
    pub fn end_group(&mut self, pool: &Pool, tick: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if let Some(current) = self.current.take() {
            pool.close_group(&current.group);
            self.closing.push_back(current.group);
        }
        while self.closing.len() > 1 {
            self.append(pool, tick)?;
        }
        Ok(())
    }
    /// Ends the current row group, and appends all that wait.
    pub fn drain(&mut self, pool: &Pool, tick: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.end_group(pool, tick)?;
        while !self.closing.is_empty() {
            self.append(pool, tick)?;
        }
        Ok(())
    }

    fn append(&mut self, pool: &Pool, tick: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let Some(group) = self.closing.pop_front() else { return Ok(()) };
        let done = pool.collect(group, tick)?;
        self.append_group(done)
    }

    fn append_group(&mut self, done: Vec<EncodedColumn>) -> Result<()> {
        let (path, failure) = (self.path.clone(), self.failure.clone());
        let wrap = |error| failure.error(error, &path);
        let mut writer = self.writer.next_row_group().map_err(wrap)?;
        for (column, gathered) in done.into_iter().zip(&mut self.gathered) {
            for chunk in column.chunks {
                chunk.append_to(&mut writer).map_err(wrap)?;
            }
            gathered.merge(column.gathered);
        }
        writer.close().map_err(wrap)?;
        Ok(())
    }
    /// Makes the file visible; `Store::sync` makes it durable.
    pub fn finish(mut self, pool: &Pool, tick: &mut dyn FnMut() -> Result<()>) -> Result<FinishedFile> {
        self.drain(pool, tick)?;
        self.close()
    }
    /// Writes a file of one row group, encoded on the current thread.
    pub fn whole(
        store: &Arc<dyn Store>,
        path: String,
        shape: &Shape,
        arrays: &[ArrayRef],
        rows: usize,
    ) -> Result<FinishedFile> {
        let mut output = Self::new(store, path, shape)?;
        output.append_group(encode(&shape.factory, &shape.schema, &shape.wanted, arrays)?)?;
        output.rows = rows as u64;
        output.close()
    }

    fn close(self) -> Result<FinishedFile> {
        let (path, failure) = (self.path, self.failure);
        let mut sink = self.writer.into_inner().map_err(|error| failure.error(error, &path))?;
        let size = sink.inner.finish().map_err(|error| Error::of_write(error, &path))?;
        Ok(FinishedFile { path, size, rows: self.rows, gathered: self.gathered })
    }
}
