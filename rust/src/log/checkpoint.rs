//! Checkpoints -> Arrow ("Checkpoints"): classic, multi-part, and V2 with sidecars. Only the columns that the state needs are decoded.

use std::collections::HashSet;
use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::checkpoint_rows::{Rows, take_batch};
use super::commit::{Commit, twice};
use super::sidecar::Sidecar;
use super::skipping::on_threads;
use super::volume::{self, Decoded};
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::store::Store;

/// Read at a time where the length of a page is not yet known.
const LOOK_AHEAD: u64 = 16 * 1024;

/// A Parquet file in a store.
#[derive(Clone)]
struct StoredFile {
    store: Arc<dyn Store>,
    path: String,
    size: u64,
}

impl Length for StoredFile {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for StoredFile {
    type T = Cursor<Bytes>;
    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(Cursor::new(self.range(start, LOOK_AHEAD.min(self.size.saturating_sub(start)))?))
    }
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.range(start, length as u64)
    }
}

impl StoredFile {
    fn range(&self, start: u64, length: u64) -> Result<Bytes, ParquetError> {
        let end = start.saturating_add(length);
        let mut read = self.store.get_ranges(&self.path, &[start..end]).map_err(|error| ParquetError::External(Box::new(error)))?;
        read.pop().ok_or_else(|| ParquetError::EOF("no bytes".to_owned()))
    }
}

/// The state that a checkpoint holds, and which sidecar each of its batches came from.
#[derive(Debug, Default)]
pub struct Checkpoint {
    /// All actions.
    pub state: Commit,
    /// Of each batch of `state.adds`.
    pub add_origins: Vec<Option<Arc<Sidecar>>>,
    /// Of each batch of `state.removes`.
    pub remove_origins: Vec<Option<Arc<Sidecar>>>,
}

impl Checkpoint {
    fn take(&mut self, part: Commit, sidecar: Option<&Arc<Sidecar>>) -> Result<()> {
        self.add_origins.extend(std::iter::repeat_n(sidecar.cloned(), part.adds.len()));
        self.remove_origins.extend(std::iter::repeat_n(sidecar.cloned(), part.removes.len()));
        merge(&mut self.state, part)
    }
}

/// Reads a checkpoint. `parts`: all files of it, relative to the table; sidecars are named in it.
pub fn read(store: &Arc<dyn Store>, parts: &[String], interrupt: &Interrupt) -> Result<Checkpoint> {
    let mut checkpoint = Checkpoint::default();
    let mut parquet = Vec::new();
    for part in parts {
        if part.ends_with(".json") {
            let lines = Commit::read_lines(store.as_ref(), part, interrupt)?;
            checkpoint.take(lines, None).map_err(|error| error.within(part))?;
        } else {
            parquet.push((part.clone(), None));
        }
    }
    read_files(store, &parquet, &mut checkpoint, interrupt)?;
    let named = std::mem::take(&mut checkpoint.state.sidecars);
    let top = parts.first().map_or("", String::as_str);
    let sidecars = sidecars_of(store.location(), &named).map_err(|error| error.within(top))?;
    if !sidecars.is_empty() {
        let mut files = Checkpoint::default();
        read_files(store, &sidecars, &mut files, interrupt)?;
        only_files(&files.state, &sidecars)?;
        checkpoint.add_origins.extend(files.add_origins);
        checkpoint.remove_origins.extend(files.remove_origins);
        merge(&mut checkpoint.state, files.state)?;
    }
    Ok(checkpoint)
}

/// Protocol and metadata of a checkpoint: nothing else of it is decoded.
pub fn read_definition(store: &Arc<dyn Store>, parts: &[String], interrupt: &Interrupt) -> Result<Commit> {
    let mut state = Commit::default();
    for part in parts {
        if part.ends_with(".json") {
            let lines = Commit::read_definition(store.as_ref(), part, interrupt)?;
            merge(&mut state, Commit { protocol: lines.protocol, metadata: lines.metadata, places: lines.places, ..Commit::default() })
                .map_err(|error| error.within(part))?;
            continue;
        }
        let file = open_columns(store, part, &|path| path.first().is_some_and(|action| action == "protocol" || action == "metaData"))?;
        for group in (0..file.metadata.metadata().num_row_groups()).filter(|group| file.may_define(*group)) {
            merge(&mut state, file.read_alone(group, interrupt)?).map_err(|error| error.within(part))?;
        }
    }
    Ok(state)
}

/// Names of the sidecars that a checkpoint names, without a look at its actions on files.
pub fn sidecar_names(store: &Arc<dyn Store>, parts: &[String], interrupt: &Interrupt) -> Result<Vec<String>> {
    let mut named = Vec::new();
    for part in parts {
        if part.ends_with(".json") {
            named.extend(Commit::read_lines(store.as_ref(), part, interrupt)?.sidecars);
            continue;
        }
        let file = open_columns(store, part, &|path| path.first().is_some_and(|action| action == "sidecar"))?;
        if !file.has_column("sidecar") {
            continue;
        }
        for group in 0..file.metadata.metadata().num_row_groups() {
            named.extend(file.read_alone(group, interrupt)?.sidecars);
        }
    }
    named.iter().map(|text| Sidecar::parse(store.location(), text).map(|sidecar| sidecar.name)).collect()
}

/// The files that these actions name, each once.
fn sidecars_of(root: &str, named: &[String]) -> Result<Vec<(String, Option<Sidecar>)>> {
    let mut files = Vec::with_capacity(named.len());
    let mut known = HashSet::with_capacity(named.len());
    for text in named {
        let sidecar = Sidecar::parse(root, text)?;
        if !known.insert(sidecar.name.clone()) {
            return Err(twice(format!("two sidecars {}", sidecar.name)));
        }
        files.push((sidecar.place(), Some(sidecar)));
    }
    Ok(files)
}

/// "The sidecar files can have only add file and remove file entries."
fn only_files(files: &Commit, sidecars: &[(String, Option<Sidecar>)]) -> Result<()> {
    let others = [
        ("protocol", files.protocol.is_some()),
        ("metaData", files.metadata.is_some()),
        ("sidecar", !files.sidecars.is_empty()),
        ("txn", !files.transactions.is_empty()),
        ("domainMetadata", !files.domains.is_empty()),
    ];
    match others.iter().find(|(_, there)| *there) {
        Some((name, _)) => {
            let first = sidecars.first().map(|(path, _)| path);
            let place = files.places.protocol.as_ref().or(files.places.metadata.as_ref()).or(first);
            let error = Error::protocol("a sidecar holds what belongs into its checkpoint").at(place.cloned().unwrap_or_default());
            Err(error.found(name).expected("add and remove alone"))
        }
        None => Ok(()),
    }
}

fn merge(state: &mut Commit, part: Commit) -> Result<()> {
    for (slot, value, name) in [(&mut state.protocol, part.protocol, "protocol"), (&mut state.metadata, part.metadata, "metaData")] {
        if let Some(value) = value
            && slot.replace(value).is_some()
        {
            return Err(twice(format!("two of {name}")));
        }
    }
    state.places = part.places.or(std::mem::take(&mut state.places));
    state.transactions.extend(part.transactions);
    state.domains.extend(part.domains);
    state.sidecars.extend(part.sidecars);
    state.adds.extend(part.adds);
    state.removes.extend(part.removes);
    Ok(())
}

fn read_files(
    store: &Arc<dyn Store>,
    files: &[(String, Option<Sidecar>)],
    checkpoint: &mut Checkpoint,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut tasks = Vec::new();
    let mut bytes = 0;
    for (path, sidecar) in files {
        let file = open(store, path)?;
        bytes += file.bytes.size;
        let actions = usize::try_from(file.metadata.metadata().file_metadata().num_rows()).unwrap_or_default();
        let sidecar = sidecar.clone().map(|sidecar| Arc::new(Sidecar { actions, ..sidecar }));
        tasks.extend((0..file.metadata.metadata().num_row_groups()).map(|group| (file.clone(), group, sidecar.clone())));
    }
    let decoded = Decoded::of(bytes);
    let read = on_threads(&tasks, interrupt, &|(file, group, _)| read_group(file, *group, &decoded, interrupt))?;
    for (part, (file, _, sidecar)) in read.into_iter().zip(&tasks) {
        checkpoint.take(part, sidecar.as_ref()).map_err(|error| error.within(&file.bytes.path))?;
    }
    Ok(())
}

#[derive(Clone)]
struct Open {
    bytes: StoredFile,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
}

impl Open {
    fn has_column(&self, name: &str) -> bool {
        let descriptor = self.metadata.metadata().file_metadata().schema_descr();
        descriptor.columns().iter().any(|column| column.path().parts().first().is_some_and(|part| part == name))
    }
}

impl Open {
    /// A row group when nothing else of the checkpoint is read.
    fn read_alone(&self, group: usize, interrupt: &Interrupt) -> Result<Commit> {
        read_group(self, group, &Decoded::of(self.bytes.size), interrupt)
    }

    /// False for a row group that, by its statistics, has neither a protocol nor metadata.
    fn may_define(&self, group: usize) -> bool {
        let group = self.metadata.metadata().row_group(group);
        let nulls = |path: [&str; 2]| {
            let column = group.columns().iter().find(|column| column.column_path().parts() == path)?;
            column.statistics()?.null_count_opt()
        };
        let rows = group.num_rows() as u64;
        [["protocol", "minReaderVersion"], ["metaData", "id"]].into_iter().any(|path| nulls(path) != Some(rows))
    }
}

/// With the columns that the state needs.
fn open(store: &Arc<dyn Store>, path: &str) -> Result<Open> {
    let mut file = open_columns(store, path, &|_| true)?;
    if !["add", "remove", "metaData", "protocol"].iter().any(|name| file.has_column(name)) {
        let root = file.metadata.metadata().file_metadata().schema_descr().root_schema().clone();
        let columns: Vec<&str> = root.get_fields().iter().map(|field| field.name()).collect();
        let error = Error::protocol("the file is no checkpoint").at(path).found(format!("columns {}", columns.join(", ")));
        return Err(error.expected("columns add, remove, metaData, protocol"));
    }
    // Typed statistics are decoded only where some file may lack them as JSON.
    let typed = lacks_json_statistics(&file.metadata);
    let wanted = |parts: &[String]| match (parts.first().map(String::as_str), parts.get(1).map(String::as_str)) {
        (Some("add"), Some("partitionValues_parsed")) => false,
        (Some("add"), Some("stats_parsed")) => typed,
        (Some("remove"), Some("stats" | "stats_parsed" | "partitionValues_parsed")) => false,
        (Some("add" | "remove" | "metaData" | "protocol" | "txn" | "domainMetadata" | "sidecar"), _) => true,
        _ => false,
    };
    file.mask = mask_of(&file.metadata, &wanted);
    volume::check(file.metadata.metadata(), &file.mask, file.bytes.size).map_err(|error| error.at(path))?;
    Ok(file)
}

fn open_columns(store: &Arc<dyn Store>, path: &str, wanted: &dyn Fn(&[String]) -> bool) -> Result<Open> {
    let head = store.head(path)?.ok_or_else(|| Error::new(Kind::NotFound, "a file of the checkpoint is missing").at(path))?;
    let bytes = StoredFile { store: Arc::clone(store), path: path.to_owned(), size: head.size };
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load(&bytes, options).map_err(|error| Error::from(error).at(path))?;
    let mask = mask_of(&metadata, wanted);
    Ok(Open { bytes, metadata, mask })
}

fn mask_of(metadata: &ArrowReaderMetadata, wanted: &dyn Fn(&[String]) -> bool) -> ProjectionMask {
    let descriptor = metadata.metadata().file_metadata().schema_descr_ptr();
    let leaves = (0..descriptor.num_columns()).filter(|leaf| wanted(descriptor.column(*leaf).path().parts()));
    ProjectionMask::leaves(&descriptor, leaves)
}

fn lacks_json_statistics(metadata: &ArrowReaderMetadata) -> bool {
    metadata.metadata().row_groups().iter().any(|group| {
        let nulls = |name: &str| {
            let column = group.columns().iter().find(|column| column.column_path().parts() == ["add", name])?;
            column.statistics()?.null_count_opt()
        };
        match (nulls("path"), nulls("stats")) {
            (Some(absent), Some(without)) => without > absent,
            _ => true,
        }
    })
}

fn read_group(file: &Open, group: usize, decoded: &Decoded, interrupt: &Interrupt) -> Result<Commit> {
    let place = |error: Error| error.within(format_args!("{} (row group {group})", file.bytes.path));
    let described = file.metadata.metadata().row_group(group);
    decoded.expect(&file.bytes, described, &file.mask).map_err(place)?;
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file.bytes.clone(), file.metadata.clone())
        .with_projection(file.mask.clone())
        .with_row_groups(vec![group])
        .with_batch_size(volume::batch_rows(&file.bytes, described, &file.mask).map_err(place)?)
        .build()
        .map_err(|error| place(error.into()))?;
    let before = file.metadata.metadata().row_groups().iter().take(group).map(RowGroupMetaData::num_rows);
    let mut first = before.fold(0_usize, |sum, rows| sum.saturating_add(usize::try_from(rows).unwrap_or(0)));
    let mut state = Commit::default();
    for batch in reader {
        interrupt.check()?;
        let batch = batch.map_err(|error| place(error.into()))?;
        decoded.add(&batch).map_err(place)?;
        take_batch(&mut state, &Rows { batch: &batch, first, path: &file.bytes.path })?;
        first += batch.num_rows();
    }
    Ok(state)
}
