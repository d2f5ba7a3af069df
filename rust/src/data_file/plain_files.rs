//! Plain files: all their rows are live, and each column is stored in the table's own type. Another Parquet
//! reader finds the same rows in them as [`super::reader`].
//!
//! Such a reader may not compare the checksums of pages, so [`PlainFiles::verify`] does it before, once in a
//! process for each column of a file.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Type as Physical};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::open::{Output, Plan, footer};
use super::projection::leaves;
use super::source::FileBytes;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::pages::headers;
use crate::parallel::on_threads;
use crate::schema::{Field, Primitive, Type};
use crate::store::{CopySource, ObjectMeta, resolve};

/// Characters by which another reader may take a path for a pattern.
const PATTERNS: [char; 8] = ['*', '?', '[', ']', '{', '}', '\\', '\0'];
/// Key of the metadata of GeoParquet, whose columns other readers may convert.
const GEO: &str = "geo";
/// Maximum number of files that are remembered. Beyond it, all are forgotten, and would be verified again.
const REMEMBERED: usize = 100_000;

/// A file in one state: its path, size, time of modification, and identity.
type FileKey = (String, u64, i64, u64);

/// The files that a query has met, and the leaves of each whose pages have their checksums.
static VERIFIED: LazyLock<Mutex<HashMap<FileKey, BTreeSet<usize>>>> = LazyLock::new(Mutex::default);

/// The files of a scan, if all are plain.
#[derive(Debug)]
pub struct PlainFiles {
    /// Absolute local paths, in the order of the files.
    pub paths: Vec<String>,
    /// The name of each column of the scan in the files.
    pub names: Vec<String>,
    files: Vec<PlainFile>,
}

#[derive(Debug)]
struct PlainFile {
    key: FileKey,
    bytes: FileBytes,
    metadata: Arc<ParquetMetaData>,
    leaves: Vec<usize>,
}

impl PlainFiles {
    /// Returns the files of a scan, or `None` if one of them is not plain or not a local file.
    pub fn of(plan: &Plan) -> Result<Option<Self>> {
        let whole = plan.request.predicate.is_none() && plan.request.limit.is_none();
        if !whole || plan.outputs.iter().any(|output| !matches!(output, Output::Data(_))) {
            return Ok(None);
        }
        let mut found = Self { paths: Vec::new(), names: Vec::new(), files: Vec::new() };
        for index in 0..plan.files.len() {
            if plan.files.vector(index)?.is_some() || plan.files.selection(index)?.is_some() {
                return Ok(None);
            }
            let (store, path) = resolve(&plan.store, plan.files.path(index)?)?;
            let CopySource::File(place) = store.copy_source(&path)? else { return Ok(None) };
            let Some(place) =
                place.to_str().filter(|place| place.starts_with('/') && !place.contains(PATTERNS))
            else {
                return Ok(None);
            };
            let missing = || Error::lost(path.as_str(), "a data file");
            let ObjectMeta { size, modified_ms, identity, .. } = store.head(&path)?.ok_or_else(missing)?;
            let (metadata, finder) = footer(plan, index)?;
            let Some((names, leaves)) =
                columns(plan, &metadata, |field| finder.find(field, metadata.schema().fields()))
            else {
                return Ok(None);
            };
            if found.names.is_empty() {
                found.names = names;
            } else if found.names != names {
                return Ok(None);
            }
            let bytes =
                FileBytes::new(Arc::clone(&store), path.clone(), size, Arc::clone(&plan.metrics.bytes_read));
            let key = (place.to_owned(), size, modified_ms, identity);
            found.paths.push(place.to_owned());
            found.files.push(PlainFile { key, bytes, metadata: Arc::clone(metadata.metadata()), leaves });
        }
        Ok(Some(found))
    }

    /// Tells whether this was called before in this process for all of these files.
    pub fn met_again(&self) -> bool {
        let mut verified = verified(self.files.len());
        let mut again = true;
        for file in &self.files {
            again &= verified.contains_key(&file.key);
            verified.entry(file.key.clone()).or_default();
        }
        again
    }

    /// Returns the number of bytes that [`Self::verify`] would read.
    pub fn unverified_bytes(&self) -> u64 {
        let bytes =
            |file: &PlainFile| file.unverified().iter().map(|column| column.byte_range().1).sum::<u64>();
        self.files.iter().map(bytes).sum()
    }

    /// Compares the checksums of all pages of the columns, except those that were compared before.
    pub fn verify(&self, interrupt: &Interrupt) -> Result<()> {
        let columns = self
            .files
            .iter()
            .flat_map(|file| file.unverified().into_iter().map(move |column| (file, column)));
        on_threads(&columns.collect::<Vec<_>>(), interrupt, &|(file, column)| {
            let (start, length) = column.byte_range();
            let bytes = file.bytes.again();
            bytes.fetch(vec![start..start.saturating_add(length)])?;
            let place = || format!("{}, column {}", file.bytes.path(), column.column_path().string());
            headers::verify(&bytes, column).map_err(|error| error.at(place()))
        })?;
        let mut verified = verified(self.files.len());
        for file in &self.files {
            verified.entry(file.key.clone()).or_default().extend(&file.leaves);
        }
        drop(verified);
        Ok(())
    }
}

impl PlainFile {
    fn unverified(&self) -> Vec<&ColumnChunkMetaData> {
        let verified = verified(0).get(&self.key).cloned().unwrap_or_default();
        let left: Vec<usize> = self.leaves.iter().copied().filter(|leaf| !verified.contains(leaf)).collect();
        self.metadata
            .row_groups()
            .iter()
            .flat_map(|group| left.iter().map(|leaf| group.column(*leaf)))
            .collect()
    }
}

/// Returns the leaves that are already verified, by file, and makes room for this many more files.
fn verified(more: usize) -> MutexGuard<'static, HashMap<FileKey, BTreeSet<usize>>> {
    let mut known = VERIFIED.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() + more > REMEMBERED {
        known.clear();
    }
    known
}

/// Returns the names and leaves of the plan's columns in a file; `None` if another reader may read a column
/// differently.
fn columns(
    plan: &Plan,
    metadata: &ArrowReaderMetadata,
    find: impl Fn(&Field) -> Option<usize>,
) -> Option<(Vec<String>, Vec<usize>)> {
    let fields = metadata.schema().fields();
    let texts = metadata.metadata().file_metadata().key_value_metadata();
    if texts.is_some_and(|texts| texts.iter().any(|text| text.key == GEO)) {
        return None;
    }
    let mut unique = BTreeSet::new();
    if !fields.iter().all(|field| unique.insert(field.name().to_lowercase())) {
        return None;
    }
    let (mut names, mut found) = (Vec::new(), Vec::new());
    for field in &plan.data {
        let Type::Primitive(primitive) = &field.data_type else { return None };
        let index = find(field)?;
        let leaf = fields[..index].iter().map(|other| leaves(other.data_type())).sum();
        let groups = metadata.metadata().row_groups();
        if fields[index].data_type() != field.to_arrow(false).data_type()
            || !groups.iter().all(|group| is_plain(primitive, group.column(leaf)))
        {
            return None;
        }
        names.push(fields[index].name().clone());
        found.push(leaf);
    }
    Some((names, found))
}

/// True if readers agree on the type of a column, its encodings and its statistics.
fn is_plain(primitive: &Primitive, column: &ColumnChunkMetaData) -> bool {
    let described = column.column_descr();
    let physical = described.physical_type();
    let is_stored = match primitive {
        Primitive::Byte | Primitive::Short | Primitive::Integer | Primitive::Date => {
            physical == Physical::INT32
        }
        Primitive::Long => physical == Physical::INT64,
        Primitive::Boolean => physical == Physical::BOOLEAN,
        Primitive::Float => physical == Physical::FLOAT,
        Primitive::Double => physical == Physical::DOUBLE,
        // Other readers have types of their own for JSON, ENUM and BSON.
        Primitive::String => {
            physical == Physical::BYTE_ARRAY && described.converted_type() == ConvertedType::UTF8
        }
        Primitive::Binary => {
            let has_type =
                described.logical_type_ref().is_some() || described.converted_type() != ConvertedType::NONE;
            physical == Physical::BYTE_ARRAY && !has_type
        }
        Primitive::Decimal(..) => {
            matches!(physical, Physical::INT32 | Physical::INT64 | Physical::FIXED_LEN_BYTE_ARRAY)
        }
        // Without the logical type, readers disagree on whether a timestamp is an instant.
        Primitive::Timestamp | Primitive::TimestampNtz => {
            physical == Physical::INT64
                && matches!(described.logical_type_ref(), Some(LogicalType::Timestamp(_)))
        }
        Primitive::Void => false,
    };
    let is_known = |encoding: Encoding| {
        matches!(
            encoding,
            Encoding::PLAIN
                | Encoding::RLE
                | Encoding::PLAIN_DICTIONARY
                | Encoding::RLE_DICTIONARY
                | Encoding::DELTA_BINARY_PACKED
                | Encoding::DELTA_LENGTH_BYTE_ARRAY
                | Encoding::DELTA_BYTE_ARRAY
        )
    };
    let codec = column.compression();
    let is_unpacked = matches!(
        codec,
        Compression::UNCOMPRESSED
            | Compression::SNAPPY
            | Compression::ZSTD(_)
            | Compression::GZIP(_)
            | Compression::LZ4_RAW
    );
    // Bounds of the deprecated kind compare bytes as signed numbers. A Bloom filter tells 0.0 from -0.0.
    let are_bytes = matches!(physical, Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY);
    let has_bounds =
        !are_bytes || column.statistics().is_none_or(|statistics| !statistics.is_min_max_deprecated());
    let is_float = matches!(physical, Physical::FLOAT | Physical::DOUBLE);
    let is_filtered = is_float && column.bloom_filter_offset().is_some();
    is_stored && is_unpacked && has_bounds && !is_filtered && column.encodings().all(is_known)
}
