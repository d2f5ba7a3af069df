//! Checkpoints -> Arrow ("Checkpoints"): classic, multi-part, and V2 with sidecars. Only the columns that the state needs are decoded.

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, StringBuilder, StructArray};
use arrow::compute::{filter_record_batch, is_not_null};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::commit::{Commit, Transactions};
use super::json_text::write_value;
use super::schema::{self, ADD, REMOVE};
use super::sidecar::Sidecar;
use super::skipping::on_threads;
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::store::Store;

/// Rows of a batch while decoding.
const BATCH_ROWS: usize = 32 * 1024;
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
            let lines = Commit::parse(&store.get(part)?, part, interrupt)?;
            checkpoint.take(lines, None).map_err(|error| error.within(part))?;
        } else {
            parquet.push((part.clone(), None));
        }
    }
    read_files(store, &parquet, &mut checkpoint, interrupt)?;
    let named = std::mem::take(&mut checkpoint.state.sidecars);
    let sidecars = named.iter().map(|text| Sidecar::parse(store.location(), text)).collect::<Result<Vec<_>>>()?;
    let sidecars: Vec<_> = sidecars.into_iter().map(|sidecar| (sidecar.place(), Some(sidecar))).collect();
    read_files(store, &sidecars, &mut checkpoint, interrupt)?;
    if let Some(nested) = checkpoint.state.sidecars.first() {
        return Err(Error::protocol("a sidecar names sidecars").found(nested));
    }
    Ok(checkpoint)
}

/// Protocol and metadata of a checkpoint: nothing else of it is decoded.
pub fn read_definition(store: &Arc<dyn Store>, parts: &[String], interrupt: &Interrupt) -> Result<Commit> {
    let mut state = Commit::default();
    for part in parts {
        if part.ends_with(".json") {
            let lines = Commit::parse_definition(&store.get(part)?, part, interrupt)?;
            merge(&mut state, Commit { protocol: lines.protocol, metadata: lines.metadata, ..Commit::default() })
                .map_err(|error| error.within(part))?;
            continue;
        }
        let file = open_columns(store, part, &|path| path.first().is_some_and(|action| action == "protocol" || action == "metaData"))?;
        for group in (0..file.metadata.metadata().num_row_groups()).filter(|group| file.may_define(*group)) {
            merge(&mut state, read_group(&file, group, interrupt)?).map_err(|error| error.within(part))?;
        }
    }
    Ok(state)
}

/// Names of the sidecars that a checkpoint names, without a look at its actions on files.
pub fn sidecar_names(store: &Arc<dyn Store>, parts: &[String], interrupt: &Interrupt) -> Result<Vec<String>> {
    let mut named = Vec::new();
    for part in parts {
        if part.ends_with(".json") {
            named.extend(Commit::parse(&store.get(part)?, part, interrupt)?.sidecars);
            continue;
        }
        let file = open_columns(store, part, &|path| path.first().is_some_and(|action| action == "sidecar"))?;
        if !file.has_column("sidecar") {
            continue;
        }
        for group in 0..file.metadata.metadata().num_row_groups() {
            named.extend(read_group(&file, group, interrupt)?.sidecars);
        }
    }
    named.iter().map(|text| Sidecar::parse(store.location(), text).map(|sidecar| sidecar.name)).collect()
}

fn merge(state: &mut Commit, part: Commit) -> Result<()> {
    for (slot, value, name) in [(&mut state.protocol, part.protocol, "protocol"), (&mut state.metadata, part.metadata, "metaData")] {
        if let Some(value) = value
            && slot.replace(value).is_some()
        {
            return Err(Error::protocol("an action twice in one checkpoint").found(format!("two of {name}")));
        }
    }
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
    for (path, sidecar) in files {
        let file = open(store, path)?;
        let actions = usize::try_from(file.metadata.metadata().file_metadata().num_rows()).unwrap_or_default();
        let sidecar = sidecar.clone().map(|sidecar| Arc::new(Sidecar { actions, ..sidecar }));
        tasks.extend((0..file.metadata.metadata().num_row_groups()).map(|group| (file.clone(), group, sidecar.clone())));
    }
    let read = on_threads(&tasks, interrupt, &|(file, group, _)| read_group(file, *group, interrupt))?;
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
        return Err(Error::protocol("the file is no checkpoint").at(path).expected("columns add, remove, metaData, protocol"));
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

fn read_group(file: &Open, group: usize, interrupt: &Interrupt) -> Result<Commit> {
    let place = |error: Error| error.within(format_args!("{} (row group {group})", file.bytes.path));
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file.bytes.clone(), file.metadata.clone())
        .with_projection(file.mask.clone())
        .with_row_groups(vec![group])
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(|error| place(error.into()))?;
    let mut state = Commit::default();
    for batch in reader {
        interrupt.check()?;
        let batch = batch.map_err(|error| place(error.into()))?;
        take_batch(&mut state, &batch).map_err(place)?;
    }
    Ok(state)
}

fn take_batch(state: &mut Commit, batch: &RecordBatch) -> Result<()> {
    if let Some(adds) = rows_of(batch, "add")? {
        state.adds.push(check_adds(files(&with_statistics(&adds)?, &ADD, "add")?)?);
    }
    if let Some(removes) = rows_of(batch, "remove")? {
        state.removes.push(files(&removes, &REMOVE, "remove")?);
    }
    for text in texts(batch, "protocol")? {
        merge(state, Commit { protocol: Some(text), ..Commit::default() })?;
    }
    for text in texts(batch, "metaData")? {
        merge(state, Commit { metadata: Some(text), ..Commit::default() })?;
    }
    state.sidecars.extend(texts(batch, "sidecar")?);
    for text in texts(batch, "txn")? {
        let line = format!("{{\"txn\":{text}}}");
        let parsed: Transactions = Commit::parse(line.as_bytes(), "txn", &Interrupt::default())?.transactions;
        state.transactions.extend(parsed);
    }
    for text in texts(batch, "domainMetadata")? {
        let line = format!("{{\"domainMetadata\":{text}}}");
        state.domains.extend(Commit::parse(line.as_bytes(), "domainMetadata", &Interrupt::default())?.domains);
    }
    Ok(())
}

/// Rows where the action is there.
fn rows_of(batch: &RecordBatch, name: &str) -> Result<Option<StructArray>> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    let Some(rows) = column.as_struct_opt() else {
        return Err(Error::protocol("an action of the checkpoint is no struct").at(name).found(column.data_type()));
    };
    let present = is_not_null(rows)?;
    if present.true_count() == 0 {
        return Ok(None);
    }
    let kept = filter_record_batch(&RecordBatch::try_from_iter([(name, Arc::clone(column))])?, &present)?;
    Ok(kept.column(0).as_struct_opt().cloned())
}

fn texts(batch: &RecordBatch, name: &str) -> Result<Vec<String>> {
    let Some(rows) = rows_of(batch, name)? else { return Ok(Vec::new()) };
    let write = |row| {
        let mut text = String::new();
        write_value(&mut text, &rows, row).map(|_| text)
    };
    (0..rows.len()).map(write).collect()
}

fn files(rows: &StructArray, schema: &SchemaRef, name: &str) -> Result<RecordBatch> {
    let path = rows.column_by_name("path").ok_or_else(|| Error::protocol("an action without a path").at(name))?;
    if path.null_count() > 0 {
        return Err(Error::protocol("an action without a path").at(name));
    }
    let batch = RecordBatch::try_new(Arc::new(arrow::datatypes::Schema::new(rows.fields().clone())), rows.columns().to_vec())?;
    schema::conform(&batch, schema)
}

fn check_adds(adds: RecordBatch) -> Result<RecordBatch> {
    for name in ["partitionValues", "size"] {
        if adds.column_by_name(name).is_some_and(|column| column.null_count() > 0) {
            return Err(Error::protocol("an add action without a field it needs").expected(name));
        }
    }
    if let Some(size) = schema::long(&adds, "size")?.iter().flatten().find(|size| *size < 0) {
        return Err(Error::protocol("an add action with a negative size").found(size));
    }
    Ok(adds)
}

/// Statistics as JSON for those that have them only typed.
fn with_statistics(adds: &StructArray) -> Result<StructArray> {
    let Some(typed) = adds.column_by_name("stats_parsed") else { return Ok(adds.clone()) };
    let json = adds
        .column_by_name("stats")
        .map(|column| schema::conform_column(column, &arrow::datatypes::DataType::Utf8, "stats"))
        .transpose()?;
    let json: Option<&StringArray> = json.as_ref().map(|column| column.as_string::<i32>());
    let mut out = StringBuilder::new();
    let mut text = String::new();
    for row in 0..adds.len() {
        match json.filter(|json| json.is_valid(row)) {
            Some(json) => out.append_value(json.value(row)),
            None => {
                text.clear();
                let known = write_value(&mut text, typed.as_ref(), row)?;
                out.append_option(known.then_some(text.as_str()));
            }
        }
    }
    let stats: ArrayRef = Arc::new(out.finish());
    let rest = adds.fields().iter().zip(adds.columns()).filter(|(field, _)| field.name() != "stats" && field.name() != "stats_parsed");
    let stats_field = Arc::new(arrow::datatypes::Field::new("stats", arrow::datatypes::DataType::Utf8, true));
    let (fields, columns): (Vec<_>, Vec<_>) =
        rest.map(|(field, column)| (Arc::clone(field), Arc::clone(column))).chain([(stats_field, stats)]).unzip();
    Ok(StructArray::try_new(fields.into(), columns, adds.nulls().cloned())?)
}
