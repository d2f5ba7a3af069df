//! Options of writing data files, given as JSON, and the properties of the Parquet writer that they set.

use std::collections::BTreeMap;
use std::str::FromStr;

use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, Type as PhysicalType, ZstdLevel};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::schema::types::{ColumnDescriptor, ColumnPath, SchemaDescriptor};
use serde::Deserialize;

use super::source::MOST_ROWS;
use crate::error::{Error, Kind, Result};
use crate::schema::TableSchema;

/// Options of [`super::writer::write`]; the stub lists them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WriteOptions {
    /// Target size of a file in bytes.
    pub target_file_size: Option<u64>,
    /// Maximum number of rows of a row group.
    pub max_row_group_rows: Option<usize>,
    /// Approximate maximum number of bytes of a row group before encoding.
    pub max_row_group_bytes: Option<u64>,
    /// Codec and level, such as `zstd(3)`.
    pub compression: Option<String>,
    /// Approximate maximum number of bytes of a data page.
    pub data_page_size: Option<usize>,
    /// Approximate maximum number of rows of a data page.
    pub data_page_rows: Option<usize>,
    /// Approximate maximum number of bytes of a dictionary page.
    pub dictionary_page_size: Option<usize>,
    /// Number of values that the Parquet writer encodes at a time.
    pub write_batch_size: Option<usize>,
    /// Maximum number of bytes of text in Parquet's own bounds.
    pub statistics_truncate_length: Option<usize>,
    /// The settings of all columns; those in `columns` override them.
    pub default: ColumnOptions,
    /// The settings of single columns, by dotted logical name.
    pub columns: BTreeMap<String, ColumnOptions>,
    /// Columns with Delta statistics, by dotted logical name.
    pub statistics_columns: Option<Vec<String>>,
    /// Number of first leaves with Delta statistics; negative: all.
    pub indexed_columns: Option<i64>,
    /// Maximum number of characters of text in Delta's bounds.
    pub string_prefix_length: Option<usize>,
    /// `tightBounds`, if it is to be written.
    pub tight_bounds: Option<bool>,
    /// Number of letters of a random folder for each file; 0: none.
    pub random_prefix_length: usize,
    /// `dataChange` of the add actions.
    pub data_change: Option<bool>,
    /// `tags` of the add actions.
    pub tags: BTreeMap<String, String>,
    /// Number of threads that encode.
    pub threads: Option<usize>,
    /// Maximum number of bytes in memory; all running writes of the process share it in equal parts.
    pub memory_limit: Option<u64>,
    /// Maximum number of rows of a file.
    pub max_records_per_file: Option<u64>,
    /// `modificationTime` of the add actions, in milliseconds since 1970; by default the time of the write.
    pub modification_time: Option<i64>,
    /// True to write pages and encodings of Parquet's version 2.
    pub second_version: bool,
    /// True to write the partition columns into data files too.
    pub partition_columns: bool,
    /// True if the input is grouped by partition: a file is closed when another partition begins.
    pub file_per_partition_order: bool,
    /// True if the rows are changes: their files are written below `_change_data`, which readers of the table
    /// ignore.
    pub change_files: bool,
    /// True if the commit makes the files durable (`Store::put_after`), so that the write need not wait for
    /// the disk.
    pub synced_by_commit: bool,
    /// True to encode files of few rows on the thread pool too, for tests that compare both ways.
    pub pooled_small_files: bool,
}

/// Options of one column.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnOptions {
    /// True to encode values with a dictionary.
    pub dictionary: Option<bool>,
    /// Encoding of values, by Parquet's name; it excludes a dictionary.
    pub encoding: Option<String>,
    /// Which of Parquet's own statistics are written: "none", "chunk" or "page".
    pub statistics: Option<String>,
    /// True to write a bloom filter.
    pub bloom_filter: Option<bool>,
    /// The bloom filter's rate of false positives.
    pub bloom_filter_fpp: Option<f64>,
    /// The number of distinct values for which the bloom filter is sized.
    pub bloom_filter_ndv: Option<u64>,
}

impl WriteOptions {
    /// Parses the options from JSON; an unknown key is an error.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| {
            Error::new(Kind::InvalidArgument, "the write options cannot be read").caused_by(error)
        })
    }
    /// Returns the target size of a file in bytes.
    pub fn file_size(&self) -> u64 {
        self.target_file_size.unwrap_or(256 << 20).max(1)
    }
    /// Returns the maximum number of rows of a row group.
    pub fn group_rows(&self) -> usize {
        self.max_row_group_rows.unwrap_or(1 << 20).clamp(1, MOST_ROWS)
    }
    /// Returns the approximate maximum number of bytes of a row group before encoding.
    pub fn group_bytes(&self) -> u64 {
        self.max_row_group_bytes.unwrap_or(128 << 20).max(1)
    }
    /// Returns the codec.
    pub fn codec(&self) -> Result<Compression> {
        parse_codec(self.compression.as_deref().unwrap_or("zstd(3)"))
    }
    /// Returns the properties of the Parquet writer for files with these leaves.
    pub fn properties(&self, schema: &TableSchema, leaves: &SchemaDescriptor) -> Result<WriterProperties> {
        let mut builder = WriterProperties::builder()
            .set_created_by(concat!("deltaic ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(self.codec()?)
            .set_max_row_group_row_count(None);
        if self.second_version {
            builder = builder.set_writer_version(WriterVersion::PARQUET_2_0);
        }
        if let Some(size) = self.data_page_size {
            builder = builder.set_data_page_size_limit(size);
        }
        if let Some(rows) = self.data_page_rows {
            builder = builder.set_data_page_row_count_limit(rows);
        }
        if let Some(size) = self.dictionary_page_size {
            builder = builder.set_dictionary_page_size_limit(size);
        }
        if let Some(size) = self.write_batch_size {
            builder = builder.set_write_batch_size(size.max(1));
        }
        if let Some(length) = self.statistics_truncate_length {
            builder = builder
                .set_statistics_truncate_length(Some(length.max(1)))
                .set_column_index_truncate_length(Some(length.max(1)));
        }
        for leaf in leaves.columns() {
            builder = self.default.apply(builder, leaf.path().clone())?;
        }
        for (name, options) in &self.columns {
            let physical = schema.leaf(name)?.physical;
            for leaf in leaves.columns().iter().filter(|leaf| leaf.path().parts().starts_with(&physical)) {
                builder = options
                    .apply(builder, leaf.path().clone())
                    .map_err(|error| error.at(format!("column {name}")))?;
            }
        }
        let properties = builder.build();
        for leaf in leaves.columns() {
            check_encoding(&properties, leaf)?;
        }
        Ok(properties)
    }
}

/// Returns an error for an encoding that a column's type does not support, for which the Parquet writer
/// panics.
fn check_encoding(properties: &WriterProperties, leaf: &ColumnDescriptor) -> Result<()> {
    let physical = leaf.physical_type();
    let fits = match properties.encoding(leaf.path()) {
        None | Some(Encoding::PLAIN) => true,
        Some(Encoding::RLE) => physical == PhysicalType::BOOLEAN,
        Some(Encoding::DELTA_BINARY_PACKED) => matches!(physical, PhysicalType::INT32 | PhysicalType::INT64),
        Some(Encoding::DELTA_LENGTH_BYTE_ARRAY) => physical == PhysicalType::BYTE_ARRAY,
        Some(Encoding::DELTA_BYTE_ARRAY) => {
            matches!(physical, PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY)
        }
        Some(Encoding::BYTE_STREAM_SPLIT) => {
            !matches!(physical, PhysicalType::BOOLEAN | PhysicalType::BYTE_ARRAY | PhysicalType::INT96)
        }
        Some(_) => false,
    };
    if fits {
        return Ok(());
    }
    let error = Error::new(Kind::InvalidArgument, "a column's type does not have this encoding")
        .at(format!("column {}", leaf.path().string()));
    let found = properties
        .encoding(leaf.path())
        .map(|encoding| encoding.to_string().to_ascii_lowercase())
        .unwrap_or_default();
    Err(error.found(format!("{found} for {physical}")).expected("an encoding of the column's Parquet type"))
}

impl ColumnOptions {
    fn apply(
        &self,
        mut builder: WriterPropertiesBuilder,
        path: ColumnPath,
    ) -> Result<WriterPropertiesBuilder> {
        if let Some(name) = &self.encoding {
            if self.dictionary == Some(true) {
                return Err(
                    Error::new(Kind::InvalidArgument, "dictionary=True excludes an encoding").found(name)
                );
            }
            // The Parquet writer uses `encoding` only if the column has no dictionary.
            builder = builder
                .set_column_encoding(path.clone(), parse_encoding(name)?)
                .set_column_dictionary_enabled(path.clone(), false);
        }
        if let Some(dictionary) = self.dictionary {
            builder = builder.set_column_dictionary_enabled(path.clone(), dictionary);
        }
        if let Some(statistics) = &self.statistics {
            let enabled = match statistics.as_str() {
                "none" => EnabledStatistics::None,
                "chunk" => EnabledStatistics::Chunk,
                "page" => EnabledStatistics::Page,
                other => {
                    return Err(Error::new(Kind::InvalidArgument, "unknown kind of statistics")
                        .found(other)
                        .expected("none, chunk or page"));
                }
            };
            builder = builder.set_column_statistics_enabled(path.clone(), enabled);
        }
        if let Some(fpp) = self.bloom_filter_fpp {
            if !(fpp > 0.0 && fpp < 1.0) {
                return Err(Error::new(Kind::InvalidArgument, "bloom_filter_fpp is out of range")
                    .found(fpp)
                    .expected("above 0, below 1"));
            }
            builder = builder.set_column_bloom_filter_fpp(path.clone(), fpp);
        }
        if let Some(ndv) = self.bloom_filter_ndv {
            builder = builder.set_column_bloom_filter_max_ndv(path.clone(), ndv);
        }
        let wanted = self
            .bloom_filter
            .or((self.bloom_filter_fpp.is_some() || self.bloom_filter_ndv.is_some()).then_some(true));
        if let Some(enabled) = wanted {
            builder = builder.set_column_bloom_filter_enabled(path, enabled);
        }
        Ok(builder)
    }
}

fn parse_encoding(name: &str) -> Result<Encoding> {
    let wrong = || {
        Error::new(Kind::InvalidArgument, "unknown encoding")
            .found(name)
            .expected("a name that Parquet knows, such as plain or delta_binary_packed")
    };
    match Encoding::from_str(&name.to_ascii_uppercase()) {
        Ok(Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY) | Err(_) => Err(wrong()),
        Ok(encoding) => Ok(encoding),
    }
}

fn parse_codec(text: &str) -> Result<Compression> {
    let wrong = || {
        let error = Error::new(Kind::InvalidArgument, "unknown compression").found(text);
        error.expected("zstd(1..22), snappy, gzip(0..9), brotli(0..11), lz4_raw or uncompressed")
    };
    let text = text.trim().to_ascii_lowercase();
    let (name, level) = match text.split_once('(') {
        None => (text.as_str(), None),
        Some((name, rest)) => (
            name,
            Some(
                rest.strip_suffix(')')
                    .and_then(|level| level.trim().parse::<i32>().ok())
                    .ok_or_else(wrong)?,
            ),
        ),
    };
    let unsigned = |default: u32| level.map_or(Ok(default), u32::try_from).map_err(|_| wrong());
    Ok(match (name, level) {
        ("zstd", level) => Compression::ZSTD(ZstdLevel::try_new(level.unwrap_or(3)).map_err(|_| wrong())?),
        ("gzip", _) => Compression::GZIP(GzipLevel::try_new(unsigned(6)?).map_err(|_| wrong())?),
        ("brotli", _) => Compression::BROTLI(BrotliLevel::try_new(unsigned(1)?).map_err(|_| wrong())?),
        ("snappy", None) => Compression::SNAPPY,
        ("lz4_raw", None) => Compression::LZ4_RAW,
        ("uncompressed" | "none", None) => Compression::UNCOMPRESSED,
        _ => return Err(wrong()),
    })
}

/// Returns the codec's suffix in file names, with the point, or the empty text if it has none.
pub fn suffix(codec: Compression) -> &'static str {
    match codec {
        Compression::ZSTD(_) => ".zstd",
        Compression::SNAPPY => ".snappy",
        Compression::GZIP(_) => ".gz",
        Compression::BROTLI(_) => ".brotli",
        Compression::LZ4_RAW | Compression::LZ4 => ".lz4raw",
        _ => "",
    }
}
