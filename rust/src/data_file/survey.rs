//! Finds Parquet files of any writer below one folder: first their schemas and partitions, then their rows of
//! `add`. Each footer is read once.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, RecordBatch, StringArray};
use arrow::datatypes::{Fields, Schema};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use percent_encoding::percent_decode_str;

use super::adds::{self, NewFile};
use super::layout::{self, NULL_FOLDER};
use super::measure::{FooterStatistics, StatisticsSource, each_file};
use super::options::WriteOptions;
use super::partition::stored;
use super::source::{self, FileBytes};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::log::schema::{long, text};
use crate::schema::from_arrow::fields_from_arrow;
use crate::schema::{TableSchema, json, partition_values};
use crate::store::Store;

/// Maximum number of bytes of footers in memory between the two steps; further footers are read twice.
const KEPT: usize = 256 << 20;
/// Number of footers between two calls of `progress`.
const PROGRESS: usize = 1000;
/// Number of concurrent requests to a store over a network.
const REQUESTS: usize = 32;

/// The way in which folders are named after partition values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioning {
    /// `year=2026/month=9/x.parquet`
    Hive,
    /// `2026/09/x.parquet`: values alone, one per level.
    Directory,
}

/// The files that were found, in the order of the listing.
#[derive(Debug)]
pub struct Survey {
    store: Arc<dyn Store>,
    files: Vec<ListedFile>,
    schemas: Vec<FileSchema>,
}

/// The schema of one or more files.
#[derive(Debug)]
struct FileSchema {
    /// Columns of the footer, with `PARQUET:field_id` in the metadata of fields that have an id.
    fields: Fields,
    /// JSON of the Delta schema.
    json: String,
    /// Position of the first file with this schema.
    first: usize,
}

#[derive(Debug)]
struct ListedFile {
    path: String,
    size: u64,
    modified: i64,
    values: Vec<Option<String>>,
    footer: Option<ArrowReaderMetadata>,
}

impl Survey {
    /// Reads the footers of files, given as path (decoded), size and modification_time, as listed by a store.
    /// `progress` is called regularly with the number of footers read.
    pub fn new(
        store: Arc<dyn Store>,
        listing: &RecordBatch,
        how: Partitioning,
        progress: &(dyn Fn(usize) + Sync),
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let (paths, sizes, times) =
            (text(listing, "path")?, long(listing, "size")?, long(listing, "modification_time")?);
        let files = (0..paths.len())
            .map(|row| ListedFile {
                path: paths.value(row).to_owned(),
                size: u64::try_from(sizes.value(row)).unwrap_or_default(),
                modified: times.value(row),
                values: levels(paths.value(row), how).1,
                footer: None,
            })
            .collect();
        let mut survey = Self { store, files, schemas: Vec::new() };
        survey.read_footers(progress, interrupt)?;
        Ok(survey)
    }

    /// Returns the Delta schemas of the files as JSON, each with the first file that has it.
    pub fn schemas(&self) -> impl Iterator<Item = (&str, &str)> {
        self.schemas.iter().map(|schema| (schema.json.as_str(), self.files[schema.first].path.as_str()))
    }

    /// Returns the Arrow schemas of the files, with field ids as `PARQUET:field_id` in the metadata of
    /// fields, each with the first file that has it.
    pub fn arrow_schemas(&self) -> impl Iterator<Item = (Schema, &str)> {
        self.schemas
            .iter()
            .map(|schema| (Schema::new(schema.fields.clone()), self.files[schema.first].path.as_str()))
    }

    /// Returns each file's partition value at this level, as text.
    pub fn values(&self, level: usize) -> StringArray {
        self.files.iter().map(|file| file.values.get(level).and_then(Option::as_deref)).collect()
    }

    /// Returns the rows of `add`. `schema`: the table's schema, with partition columns in the order of the
    /// levels.
    pub fn adds(
        &self,
        schema: &Arc<TableSchema>,
        options: &WriteOptions,
        statistics: bool,
        interrupt: &Interrupt,
    ) -> Result<RecordBatch> {
        let footers = FooterStatistics::new(schema, options)?;
        let partitions: Vec<_> = schema.partition_fields().collect();
        let mut known: Vec<BTreeMap<Option<&str>, Option<String>>> = vec![BTreeMap::new(); partitions.len()];
        let mut stats = each_file(self.files.len(), self.threads(), interrupt, &|index| {
            let file = &self.files[index];
            if !statistics {
                return Ok(None);
            }
            let metadata = match &file.footer {
                Some(footer) => footer.clone(),
                None => self.footer(index)?,
            };
            footers.of(&metadata, &file.path, false, StatisticsSource::Footers).map(Some)
        })?
        .into_iter();
        let mut added = Vec::with_capacity(self.files.len());
        for file in &self.files {
            let mut partition_values = Vec::with_capacity(partitions.len());
            for ((field, value), known) in partitions.iter().zip(&file.values).zip(&mut known) {
                let text = match known.get(&value.as_deref()) {
                    Some(text) => text.clone(),
                    None => {
                        let array = partition_values::parse_scalar(
                            value.as_deref(),
                            &field.data_type.to_arrow(false),
                        );
                        let array = array.map_err(|error| {
                            error.within(format_args!("{}, partition column {}", file.path, field.name))
                        })?;
                        let text = partition_values::format_array(stored(&array)?.as_ref())?
                            .iter()
                            .next()
                            .flatten()
                            .map(str::to_owned);
                        known.insert(value.as_deref(), text.clone());
                        text
                    }
                };
                partition_values.push((schema.physical_name(field).to_owned(), text));
            }
            let (path, stats) = (layout::encode(&file.path), stats.next().flatten());
            added.push(NewFile {
                path,
                partition_values,
                size: file.size,
                modification_time: file.modified,
                stats,
            });
        }
        adds::batch(added, options.data_change.unwrap_or(true), &options.tags)
    }

    fn threads(&self) -> Option<usize> {
        self.store.is_remote().then_some(REQUESTS)
    }

    fn footer(&self, index: usize) -> Result<ArrowReaderMetadata> {
        let file = &self.files[index];
        let bytes = FileBytes::new(Arc::clone(&self.store), file.path.clone(), file.size, Arc::default());
        source::arrow_metadata(Arc::new(source::read_footer(&bytes, false)?))
    }

    fn read_footers(&mut self, progress: &(dyn Fn(usize) + Sync), interrupt: &Interrupt) -> Result<()> {
        let schemas: Mutex<Vec<FileSchema>> = Mutex::default();
        let (kept, read) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let footers = each_file(self.files.len(), self.threads(), interrupt, &|index| {
            let metadata = self.footer(index)?;
            let fields = metadata.schema().fields();
            let mut known = schemas.lock().unwrap_or_else(PoisonError::into_inner);
            match known.iter_mut().find(|schema| schema.fields == *fields) {
                Some(schema) => schema.first = index.min(schema.first),
                None => {
                    let found = fields_from_arrow(metadata.schema())
                        .map_err(|error| error.within(&self.files[index].path))?;
                    known.push(FileSchema {
                        fields: fields.clone(),
                        json: json::struct_json(&found).to_string(),
                        first: index,
                    });
                }
            }
            drop(known);
            let done = read.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(PROGRESS) {
                progress(done);
            }
            let size = 2 * metadata.metadata().memory_size(); // the Arrow schema takes about as much again
            Ok((kept.fetch_add(size, Ordering::Relaxed) < KEPT).then_some(metadata))
        })?;
        for (file, footer) in self.files.iter_mut().zip(footers) {
            file.footer = footer;
        }
        self.schemas = schemas.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.schemas.sort_unstable_by_key(|schema| schema.first); // independent of the order of threads
        Ok(())
    }
}

/// Returns the partition columns that the folders of these files name, by level, each with the position of
/// the first file in such folders. There is one entry if all files are in folders of the same columns. Names
/// are empty if folders have only values.
pub fn partition_columns<'a>(
    paths: impl Iterator<Item = &'a str>,
    how: Partitioning,
) -> Vec<(Vec<String>, usize)> {
    let mut seen = HashSet::new();
    let names = paths.enumerate().map(|(position, path)| (levels(path, how).0, position));
    names.filter(|(names, _)| !seen.contains(names) && seen.insert(names.clone())).collect()
}

/// Returns the names and values of the folders above a file that say partition values.
///
/// Like in Spark these are the folders named `name=value` that are next to each other and nearest to the
/// file: of `a=1/x/b=2/c=3/y/f.parquet`, they are `b=2` and `c=3`. Other folders say nothing about the rows.
fn levels(path: &str, how: Partitioning) -> (Vec<String>, Vec<Option<String>>) {
    let Some((folders, _)) = path.rsplit_once('/') else { return (Vec::new(), Vec::new()) };
    let value = |text: &str| (text != NULL_FOLDER).then(|| unescaped(text));
    match how {
        Partitioning::Directory => folders.split('/').map(|folder| (String::new(), value(folder))).unzip(),
        Partitioning::Hive => {
            let mut pairs: Vec<_> = folders
                .rsplit('/')
                .map(|folder| folder.split_once('='))
                .skip_while(Option::is_none)
                .map_while(|pair| pair.map(|(name, text)| (unescaped(name), value(text))))
                .collect();
            pairs.reverse();
            pairs.into_iter().unzip()
        }
    }
}

/// Decodes Hive's escapes. A percent sign that begins no escape stays.
fn unescaped(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_say_values() {
        let (names, values) = levels("a=1/b=x%2Fy/__HIVE/f.parquet", Partitioning::Directory);
        assert_eq!((names.len(), values[1].as_deref()), (3, Some("b=x/y")));
        let (names, values) = levels("a=1/b=__HIVE_DEFAULT_PARTITION__/f", Partitioning::Hive);
        assert_eq!(names, ["a", "b"]);
        assert_eq!(values, [Some("1".to_owned()), None]);
        for (path, expected) in
            [("f", ""), ("x/f", ""), ("x/a=1/f", "a"), ("a=1/x/y/f", "a"), ("a=1/x/b=2/c=3/y/f", "b c")]
        {
            assert_eq!(levels(path, Partitioning::Hive).0.join(" "), expected, "{path}");
        }
    }

    #[test]
    fn columns_of_all_files() {
        let paths = ["x/f", "a=1/f", "g", "y/a=2/f", "a=1/b=2/f"];
        let found = partition_columns(paths.into_iter(), Partitioning::Hive);
        let texts: Vec<_> = found.iter().map(|(names, first)| (names.join(" "), *first)).collect();
        let expected = [("", 0), ("a", 1), ("a b", 4)];
        assert_eq!(texts, expected.map(|(names, first)| (names.to_owned(), first)));
    }
}
