//! A Parquet file of a checkpoint: its path, its footer, and the leaf columns to read from it.

use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};

use super::line::FileKind;
use super::segment::Columns;
use super::volume;
use crate::error::{Error, Kind, Result};
use crate::pages::footer;
use crate::store::{ObjectMeta, Store};

/// Number of bytes to read at a time while the length of a page is unknown.
const LOOK_AHEAD: u64 = 16 * 1024;
/// Number of bytes to fetch from the end of a file when it is opened over a network: they hold the footer, or
/// a small checkpoint as a whole.
const TAIL: u64 = 1 << 20;
/// Maximum number of bytes of a column in a row group that is fetched in advance, and of all such columns
/// together.
const NEAR: (u64, u64) = (256 << 10, 4 << 20);

/// A Parquet file in a store.
#[derive(Debug, Clone)]
pub struct StoredFile {
    store: Arc<dyn Store>,
    path: String,
    found: Arc<ObjectMeta>,
    /// Ranges of the file that are in memory: the position of the first byte, and the bytes.
    near: Arc<[(u64, Bytes)]>,
}

impl Length for StoredFile {
    fn len(&self) -> u64 {
        self.size()
    }
}

impl ChunkReader for StoredFile {
    type T = Cursor<Bytes>;
    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        if let Some(rest) = self.nearby(start) {
            return Ok(Cursor::new(rest));
        }
        Ok(Cursor::new(self.range(start, LOOK_AHEAD.min(self.size().saturating_sub(start)))?))
    }
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.range(start, length as u64)
    }
}

impl StoredFile {
    /// Returns the file's size in bytes.
    pub fn size(&self) -> u64 {
        self.found.size
    }

    /// Returns the file with small columns of a row group in memory, so that their pages need no requests of
    /// their own.
    pub fn near(&self, group: &RowGroupMetaData, mask: &ProjectionMask) -> Result<Self> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut total = 0;
        for (_, column) in group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf)) {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let (Ok(start), Ok(length)) = (u64::try_from(start), u64::try_from(column.compressed_size()))
            else {
                continue;
            };
            let end = start.saturating_add(length);
            if length > NEAR.0 || total + length > NEAR.1 || end > self.size() {
                continue; // wrong ranges in the footer are reported when the column is read
            }
            total += length;
            if self.nearby(start).is_some_and(|rest| rest.len() as u64 >= length) {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        let read = self.store.get_ranges(&self.path, &ranges)?;
        let fetched = ranges.iter().map(|range| range.start).zip(read);
        let near = self.near.iter().cloned().chain(fetched).collect();
        Ok(Self { near, ..self.clone() })
    }

    /// Returns the bytes from `start` on, if they are in memory.
    fn nearby(&self, start: u64) -> Option<Bytes> {
        self.near.iter().find_map(|(first, bytes)| {
            let skipped =
                usize::try_from(start.checked_sub(*first)?).ok().filter(|skipped| *skipped < bytes.len())?;
            Some(bytes.slice(skipped..))
        })
    }

    fn range(&self, start: u64, length: u64) -> Result<Bytes, ParquetError> {
        let wanted = usize::try_from(length).unwrap_or(usize::MAX);
        if let Some(rest) = self.nearby(start).filter(|rest| rest.len() >= wanted) {
            return Ok(rest.slice(..wanted));
        }
        let end = start.saturating_add(length);
        let mut read = self
            .store
            .get_ranges(&self.path, &[start..end])
            .map_err(|error| ParquetError::External(Box::new(error)))?;
        read.pop().ok_or_else(|| ParquetError::EOF("no bytes".to_owned()))
    }
}

/// A Parquet file of a checkpoint, and its footer.
#[derive(Debug, Clone)]
pub struct CheckpointFile {
    bytes: StoredFile,
    metadata: ArrowReaderMetadata,
    /// The leaf columns to read.
    pub mask: ProjectionMask,
    /// True if some files may have only typed statistics.
    typed_alone: bool,
}

impl CheckpointFile {
    /// Returns the file's path below the table's root.
    pub fn path(&self) -> &str {
        &self.bytes.path
    }

    /// Returns the file in the store, which has the bytes.
    pub fn stored(&self) -> &StoredFile {
        &self.bytes
    }

    /// Returns the file's footer, for readers.
    pub fn footer(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }

    /// Returns the metadata in the file's footer.
    pub fn parquet(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// Returns the number of rows before a row group.
    pub fn first_row(&self, group: usize) -> usize {
        let before = self.parquet().row_groups().iter().take(group).map(RowGroupMetaData::num_rows);
        before.fold(0_usize, |sum, rows| sum.saturating_add(usize::try_from(rows).unwrap_or(0)))
    }

    /// Returns an error if the file was deleted or replaced since it was opened: bytes read since then may be
    /// of another file.
    pub fn unchanged(&self) -> Result<()> {
        match self.bytes.store.head(self.path())? {
            Some(now) if now == *self.bytes.found => Ok(()),
            found => {
                let error = Error::new(
                    Kind::Gone,
                    "a file of the log was deleted or replaced after the version was opened",
                )
                .at(self.path());
                Err(error
                    .found(if found.is_some() { "another file" } else { "no such file" })
                    .expected("the file that was opened"))
            }
        }
    }

    /// Returns the index of the leaf with this path.
    pub fn leaf(&self, path: &[&str]) -> Option<usize> {
        let descriptor = self.parquet().file_metadata().schema_descr();
        descriptor.columns().iter().position(|column| column.path().parts() == path)
    }

    /// Returns false if a row group has no actions of a kind, by the statistics of a leaf that every such
    /// action has.
    pub fn may_have(&self, group: usize, path: &[&str]) -> bool {
        match self.leaf(path) {
            Some(leaf) => {
                self.nulls(group, leaf) != Some(self.parquet().row_group(group).num_rows().unsigned_abs())
            }
            // The leaf is missing; the error is raised when it is read.
            None => path.first().is_some_and(|action| self.has_column(action)),
        }
    }

    /// Returns the number of nulls of a leaf in a row group, if known.
    pub fn nulls(&self, group: usize, leaf: usize) -> Option<u64> {
        self.parquet().row_group(group).column(leaf).statistics()?.null_count_opt()
    }

    /// Selects the leaves for whose paths `wanted` is true.
    pub fn mask_of(&self, wanted: &dyn Fn(&[String]) -> bool) -> ProjectionMask {
        mask_of(&self.metadata, wanted)
    }

    /// Selects these leaves.
    pub fn leaves(&self, leaves: &[usize]) -> ProjectionMask {
        ProjectionMask::leaves(self.parquet().file_metadata().schema_descr(), leaves.iter().copied())
    }

    /// Selects the leaves of these columns of actions on files.
    pub fn columns(&self, kind: FileKind, columns: Columns) -> ProjectionMask {
        self.mask_of(&|path| {
            let typed = path.get(1).is_some_and(|name| name == "stats_parsed") && columns.has("stats");
            path.first().is_some_and(|name| name == kind.name())
                && is_wanted(path, self.typed_alone)
                && (typed || path.get(1).is_none_or(|name| columns.has(name)))
        })
    }

    /// True if the file has this top-level column.
    pub fn has_column(&self, name: &str) -> bool {
        let descriptor = self.parquet().file_metadata().schema_descr();
        descriptor
            .columns()
            .iter()
            .any(|column| column.path().parts().first().is_some_and(|part| part == name))
    }
}

/// True if the state needs a leaf. `typed_alone`: typed statistics are needed too.
fn is_wanted(parts: &[String], typed_alone: bool) -> bool {
    match (parts.first().map(String::as_str), parts.get(1).map(String::as_str)) {
        (Some("add"), Some("partitionValues_parsed")) => false,
        (Some("add"), Some("stats_parsed")) => typed_alone,
        (Some("remove"), Some("stats" | "stats_parsed" | "partitionValues_parsed")) => false,
        (Some("add" | "remove" | "metaData" | "protocol" | "txn" | "domainMetadata" | "sidecar"), _) => true,
        _ => false,
    }
}

/// The actions of checkpoints. A part needs only the columns of its own actions ("Checkpoint Schema").
const ACTIONS: [&str; 8] =
    ["add", "remove", "metaData", "protocol", "txn", "domainMetadata", "checkpointMetadata", "sidecar"];

/// Opens a file with the columns that the state needs.
pub fn open(store: &Arc<dyn Store>, path: &str) -> Result<CheckpointFile> {
    let mut file = open_columns(store, path, &|_| true)?;
    if !ACTIONS.iter().any(|name| file.has_column(name)) {
        let root = file.parquet().file_metadata().schema_descr().root_schema().clone();
        let columns: Vec<&str> = root.get_fields().iter().map(|field| field.name()).collect();
        let error = Error::protocol("the file is no checkpoint")
            .at(path)
            .found(format!("columns {}", columns.join(", ")));
        return Err(error.expected(format!("a column of {}", ACTIONS.join(", "))));
    }
    // Typed statistics are decoded only if some file may have none as JSON.
    file.typed_alone = lacks_json_statistics(&file.metadata);
    file.mask = mask_of(&file.metadata, &|path| is_wanted(path, file.typed_alone));
    volume::check(file.parquet(), &file.mask, file.bytes.size()).map_err(|error| error.at(path))?;
    Ok(file)
}

/// Opens a file with the leaves for which `wanted` is true.
pub fn open_columns(
    store: &Arc<dyn Store>,
    path: &str,
    wanted: &dyn Fn(&[String]) -> bool,
) -> Result<CheckpointFile> {
    let missing = || Error::new(Kind::NotFound, "a file of the checkpoint is missing").at(path);
    let (found, near) = if store.is_remote() {
        let (found, bytes) = store.tail(path, TAIL)?.ok_or_else(missing)?;
        let start = found.size.saturating_sub(bytes.len() as u64);
        (found, Arc::from([(start, bytes)]))
    } else {
        (store.head(path)?.ok_or_else(missing)?, Arc::default())
    };
    let bytes = StoredFile { store: Arc::clone(store), path: path.to_owned(), found: Arc::new(found), near };
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = footer_of(&bytes)
        .and_then(|footer| Ok(ArrowReaderMetadata::try_new(Arc::new(footer), options)?))
        .map_err(|error| error.at(path))?;
    let mask = mask_of(&metadata, wanted);
    Ok(CheckpointFile { bytes, metadata, mask, typed_alone: true })
}

fn footer_of(file: &StoredFile) -> Result<ParquetMetaData> {
    let size = file.size();
    let length = footer::length(file)?;
    let bytes = file.get_bytes(size - length - 8, length as usize)?;
    footer::check(&bytes)?;
    Ok(ParquetMetaDataReader::decode_metadata(&bytes)?)
}

fn mask_of(metadata: &ArrowReaderMetadata, wanted: &dyn Fn(&[String]) -> bool) -> ProjectionMask {
    let descriptor = metadata.metadata().file_metadata().schema_descr_ptr();
    let leaves = (0..descriptor.num_columns()).filter(|leaf| wanted(descriptor.column(*leaf).path().parts()));
    ProjectionMask::leaves(&descriptor, leaves)
}

fn lacks_json_statistics(metadata: &ArrowReaderMetadata) -> bool {
    metadata.metadata().row_groups().iter().any(|group| {
        let nulls = |name: &str| {
            let column =
                group.columns().iter().find(|column| column.column_path().parts() == ["add", name])?;
            column.statistics()?.null_count_opt()
        };
        match (nulls("path"), nulls("stats")) {
            (Some(absent), Some(without)) => without > absent,
            _ => true,
        }
    })
}
