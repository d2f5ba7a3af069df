//! `deltaic._core`, section log.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::arrow::{PyBatches, array_of, batch_of, strings, table_of, table_of_batches};
use super::interrupt;
use super::predicate::PyPredicate;
use super::schema::PyTableSchema;
use super::store::PyStore;
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::log::reading::commit::{Commit, Transactions};
use crate::log::reading::definition::Definition;
use crate::log::reading::{checkpoint, hint};
use crate::log::schema::{ADD, REMOVE, conform, text};
use crate::log::skipping::selection::{self, Selection, select};
use crate::log::skipping::statistics::num_records;
use crate::log::state::listing::Listing;
use crate::log::state::snapshot::{Snapshot, are_short};
use crate::log::state::totals::Sizes;
use crate::log::state::{actions, changes};
use crate::log::writing::checkpoint_writer::{self, Choices, WrittenCheckpoint};
use crate::log::writing::{body, checkpoint_v2, compaction, relocate};
use crate::parallel::on_threads;
use crate::schema::from_arrow::fields_from_arrow;
use crate::schema::json;

/// A parsed commit file.
#[pyclass(name = "Commit", module = "deltaic._core", frozen)]
struct PyCommit(Commit);

#[pymethods]
impl PyCommit {
    #[getter]
    fn version(&self) -> u64 {
        self.0.version
    }
    #[getter]
    fn commit_info(&self) -> Option<&str> {
        self.0.commit_info.as_deref()
    }
    #[getter]
    fn protocol(&self) -> Option<&str> {
        self.0.protocol.as_deref()
    }
    #[getter]
    fn metadata(&self) -> Option<&str> {
        self.0.metadata.as_deref()
    }
    #[getter]
    fn transactions(&self) -> Transactions {
        self.0.transactions.clone()
    }
    #[getter]
    fn domains(&self) -> BTreeMap<String, String> {
        self.0.domains.clone()
    }
    #[getter]
    fn adds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table_of_batches(py, self.0.adds.clone(), SchemaRef::clone(&ADD))
    }
    #[getter]
    fn removes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table_of_batches(py, self.0.removes.clone(), SchemaRef::clone(&REMOVE))
    }
    /// Numbers of the adds and of the removes, without making tables of them.
    #[getter]
    fn file_counts(&self) -> (usize, usize) {
        let count = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum();
        (count(&self.0.adds), count(&self.0.removes))
    }
    #[getter]
    fn has_cdc(&self) -> bool {
        self.0.has_cdc
    }
    #[getter]
    fn change_files(&self) -> Vec<String> {
        self.0.change_files.clone()
    }
}

#[pyfunction]
fn read_commit(py: Python<'_>, store: &PyStore, version: u64, path: String) -> PyResult<PyCommit> {
    interrupt::run(py, |interrupt| Commit::read(store.store.as_ref(), version, &path, interrupt))
        .map(PyCommit)
}

#[pyfunction]
fn read_commit_info(py: Python<'_>, store: &PyStore, path: String) -> PyResult<Option<String>> {
    store.call(py, || Commit::read_info(store.store.as_ref(), &path))
}

#[pyfunction]
fn read_commit_infos(py: Python<'_>, store: &PyStore, paths: Vec<String>) -> PyResult<Vec<Option<String>>> {
    interrupt::run(py, |interrupt| {
        on_threads(&paths, interrupt, &|path| Commit::read_info(store.store.as_ref(), path))
    })
}

#[pyfunction]
#[pyo3(signature = (actions, adds=None, removes=None, cdc=None))]
fn commit_body<'py>(
    py: Python<'py>,
    actions: Vec<String>,
    adds: Option<Bound<'py, PyAny>>,
    removes: Option<Bound<'py, PyAny>>,
    cdc: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let [adds, removes, cdc] = [adds, removes, cdc].map(|table| table.as_ref().map(batch_of).transpose());
    let (adds, removes, cdc) = (adds?, removes?, cdc?);
    let body = interrupt::run(py, |interrupt| {
        body::commit_body(&actions, adds.as_ref(), removes.as_ref(), cdc.as_ref(), interrupt)
    })?;
    PyBytes::new_with(py, body.iter().map(String::len).sum(), |mut bytes| {
        for text in body {
            let (now, rest) = bytes.split_at_mut(text.len());
            now.copy_from_slice(text.as_bytes());
            bytes = rest;
        }
        Ok(())
    })
}

#[pyfunction]
fn empty_adds(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    table_of(py, RecordBatch::new_empty(SchemaRef::clone(&ADD)))
}

#[pyfunction]
fn empty_removes(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    table_of(py, RecordBatch::new_empty(SchemaRef::clone(&REMOVE)))
}

#[pyfunction]
#[pyo3(signature = (adds, deletion_timestamp, data_change=true))]
fn removes_of<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    deletion_timestamp: i64,
    data_change: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let adds = batch_of(adds)?;
    table_of(py, interrupt::brief(py, || actions::removes_of(&adds, deletion_timestamp, data_change))?)
}

/// Returns the text whose MD5 is the checksum in `_last_checkpoint`.
#[pyfunction]
fn canonical_json(document: &str) -> PyResult<String> {
    Ok(hint::canonical(document)?)
}

#[pyfunction]
fn physical_rows<'py>(py: Python<'py>, adds: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let adds = batch_of(adds)?;
    array_of(py, interrupt::brief(py, || Ok(Arc::new(num_records(text(&adds, "stats")?)) as ArrayRef))?)
}

#[pyfunction]
#[pyo3(signature = (adds, *, data_change=None))]
fn adds_again<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    data_change: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let adds = batch_of(adds)?;
    table_of(py, interrupt::brief(py, || actions::adds_again(&adds, data_change))?)
}

#[pyfunction]
fn absolute_adds<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    location: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let adds = batch_of(adds)?;
    table_of(py, interrupt::run(py, |_| relocate::absolute_adds(&adds, location))?)
}

#[pyfunction]
fn relocated_adds<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    location: &str,
    live: &Bound<'py, PyAny>,
    taken: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (adds, live, taken) = (batch_of(adds)?, batch_of(live)?, strings(taken)?);
    let (adds, copies) = interrupt::run(py, |_| {
        let taken = taken.iter().flatten().map(str::to_owned).collect();
        relocate::relocated_adds(&adds, location, &live, &taken)
    })?;
    let columns: [(&str, ArrayRef); 3] = [
        ("from", Arc::new(StringArray::from_iter_values(copies.iter().map(|copy| &copy.from)))),
        ("to", Arc::new(StringArray::from_iter_values(copies.iter().map(|copy| &copy.to)))),
        ("fresh", Arc::new(BooleanArray::from_iter(copies.iter().map(|copy| Some(copy.fresh))))),
    ];
    Ok((table_of(py, adds)?, table_of(py, RecordBatch::try_from_iter(columns).map_err(Error::from)?)?))
}

#[pyfunction]
fn overlapping_paths(
    py: Python<'_>,
    left: &Bound<'_, PyAny>,
    right: &Bound<'_, PyAny>,
) -> PyResult<Vec<String>> {
    let (left, right) = (batch_of(left)?, batch_of(right)?);
    interrupt::brief(py, || actions::overlapping_paths(&left, &right, 10))
}

#[pyfunction]
#[pyo3(signature = (adds, schema, predicate, *, partitions_only=false))]
fn filter_adds<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    schema: &PyTableSchema,
    predicate: Option<&PyPredicate>,
    partitions_only: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = schema; // the predicate is resolved against it already
    let adds = batch_of(adds)?;
    let predicate = predicate.map(|predicate| Arc::clone(&predicate.0));
    let kept = interrupt::run(py, |interrupt| {
        select(&conform(&adds, &ADD)?, predicate.as_deref(), !partitions_only, interrupt)
    })?;
    table_of_batches(py, kept.files, SchemaRef::clone(&ADD))
}

#[pyfunction]
fn files_that_may_match<'py>(
    py: Python<'py>,
    files: &Bound<'py, PyAny>,
    predicate: &PyPredicate,
) -> PyResult<Bound<'py, PyAny>> {
    let (files, predicate) = (batch_of(files)?, Arc::clone(&predicate.0));
    let left = interrupt::run(py, |interrupt| {
        let left = selection::positions(&files, &predicate, interrupt)?;
        Ok(take_record_batch(&files, &UInt32Array::from(left))?)
    })?;
    table_of(py, left)
}

/// The metadata of each commit, the files whose changes are derived from their rows, and the files of
/// recorded changes.
type Feed<'py> = (Vec<Option<String>>, Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pyfunction]
fn read_changes<'py>(
    py: Python<'py>,
    store: &PyStore,
    commits: Vec<(u64, String, Option<i64>)>,
    partition_columns: Vec<String>,
) -> PyResult<Feed<'py>> {
    let places: Vec<_> =
        commits.into_iter().map(|(version, path, time)| changes::Place { version, path, time }).collect();
    let files = changes::files_schema();
    let (metadata, derived, recorded) = interrupt::run(py, |interrupt| {
        let read = on_threads(&places, interrupt, &|place| {
            changes::read(store.store.as_ref(), place, &partition_columns, interrupt)
        })?;
        let derived = concat_batches(&files, read.iter().map(|commit| &commit.derived))?;
        let recorded = concat_batches(&files, read.iter().map(|commit| &commit.recorded))?;
        Ok((read.into_iter().map(|commit| commit.metadata).collect(), derived, recorded))
    })?;
    Ok((metadata, table_of(py, derived)?, table_of(py, recorded)?))
}

fn write_checkpoint(
    snapshot: &Snapshot,
    store: &PyStore,
    path: &str,
    second_form: Option<&(String, i64)>,
    choices: &Choices,
    interrupt: &Interrupt,
) -> Result<WrittenCheckpoint> {
    let store = store.store.as_ref();
    match second_form {
        Some((id, now)) => checkpoint_v2::write(snapshot, store, path, (id, *now), choices, interrupt),
        None => checkpoint_writer::write(snapshot, store, path, choices, interrupt),
    }
}

fn described<'py>(py: Python<'py>, written: &WrittenCheckpoint) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("size", written.actions)?;
    answer.set_item("size_in_bytes", written.bytes)?;
    answer.set_item("num_of_add_files", written.adds)?;
    answer.set_item("top_size_in_bytes", written.top_bytes)?;
    answer
        .set_item("sidecars", written.sidecars.iter().map(|sidecar| sidecar.to_json()).collect::<Vec<_>>())?;
    answer.set_item("kept_sidecars", written.kept)?;
    // The schema in `_last_checkpoint` is optional: it is omitted if a column has no Delta type.
    answer.set_item(
        "schema",
        fields_from_arrow(&written.schema).ok().map(|fields| json::struct_json(&fields).to_string()),
    )?;
    Ok(answer)
}

#[pyfunction]
fn compact_commits<'py>(
    py: Python<'py>,
    store: &PyStore,
    commits: Vec<(u64, String)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let lines = interrupt::run(py, |interrupt| compaction::compact(&store.store, &commits, interrupt))?;
    Ok(PyBytes::new(py, &lines))
}

type Text = Option<String>;

#[pyfunction]
fn read_definition(
    py: Python<'_>,
    store: &PyStore,
    checkpoint: Vec<String>,
    commits: Vec<(u64, String)>,
) -> PyResult<(Text, Text)> {
    let found =
        interrupt::run(py, |interrupt| Definition::read(&store.store, &checkpoint, &commits, interrupt))?;
    Ok((found.protocol, found.metadata))
}

#[pyfunction]
fn checkpoint_sidecars(py: Python<'_>, store: &PyStore, parts: Vec<String>) -> PyResult<Vec<String>> {
    interrupt::run(py, |interrupt| checkpoint::sidecar_names(&store.store, &parts, interrupt))
}

/// The live files of one version.
#[pyclass(name = "Snapshot", module = "deltaic._core", frozen)]
struct PySnapshot {
    files: RwLock<Arc<Snapshot>>,
    /// Builds the version again, if files of the log that it still needs were deleted.
    again: Option<Py<PyAny>>,
}

impl PySnapshot {
    fn now(&self) -> Arc<Snapshot> {
        Arc::clone(&self.files.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs work that only counts files: on this thread, if no file of the log needs to be read.
    fn counted<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Fn(&Snapshot, &Interrupt) -> Result<T> + Sync,
    ) -> PyResult<T> {
        let files = self.now();
        if files.is_decoded() {
            interrupt::brief(py, || work(&files, &Interrupt::default()))
        } else {
            self.with(py, work)
        }
    }

    /// Runs work that may read files of the log. If one of them was deleted, or is a checkpoint that cannot
    /// be read, the version is built again from the current files, without that checkpoint.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Fn(&Snapshot, &Interrupt) -> Result<T> + Sync,
    ) -> PyResult<T> {
        let files = self.now();
        let (mut gone, mut damaged) = (false, false);
        let note = |error: &Error| (gone, damaged) = (error.kind() == Kind::Gone, is_of_checkpoint(error));
        let done = interrupt::run(py, |interrupt| work(&files, interrupt).inspect_err(note));
        let Some(again) = self.again.as_ref().filter(|_| gone || damaged) else { return done };
        let built = match again.call1(py, (files.version(), damaged)) {
            Err(_) if damaged => return done, // there is no other way
            built => built?,
        };
        let files = built.bind(py).cast::<PySnapshot>()?.get().now();
        match interrupt::run(py, |interrupt| work(&files, interrupt)) {
            Err(_) if damaged => done,
            found => {
                *self.files.write().unwrap_or_else(PoisonError::into_inner) = files;
                found
            }
        }
    }
}

fn is_of_checkpoint(error: &Error) -> bool {
    let is_named = |place: &str| place.contains(".checkpoint.") || place.contains("/_sidecars/");
    error.kind() == Kind::Protocol && error.location().is_some_and(is_named)
}

#[pymethods]
impl PySnapshot {
    #[staticmethod]
    #[pyo3(signature = (store, version, checkpoint, commits, *, eager_limit=None, again=None))]
    fn load(
        py: Python<'_>,
        store: &PyStore,
        version: u64,
        checkpoint: Vec<String>,
        commits: Vec<(u64, String)>,
        eager_limit: Option<u64>,
        again: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let eager_limit = eager_limit.unwrap_or(u64::MAX);
        let files = interrupt::run(py, |interrupt| {
            Snapshot::load(&store.store, version, &checkpoint, &commits, eager_limit, interrupt)
        })?;
        Ok(Self { files: RwLock::new(Arc::new(files)), again })
    }
    #[staticmethod]
    #[pyo3(signature = (store, actions, adds, *, eager_limit=None))]
    fn first(
        py: Python<'_>,
        store: &PyStore,
        actions: Vec<String>,
        adds: &Bound<'_, PyAny>,
        eager_limit: Option<u64>,
    ) -> PyResult<Self> {
        let adds = batch_of(adds)?;
        let files = interrupt::run(py, |interrupt| {
            let commit = Commit::parse(actions.join("\n").as_bytes(), "version 0", interrupt)?;
            Snapshot::first(
                store.store.location(),
                commit,
                body::complete_adds(&adds)?,
                eager_limit.unwrap_or(u64::MAX),
            )
        })?;
        Ok(Self { files: RwLock::new(Arc::new(files)), again: None })
    }
    fn refresh(&self, py: Python<'_>, store: &PyStore, commits: Vec<(u64, String)>) -> PyResult<Self> {
        let now = self.now();
        let files = if now.is_decoded() && are_short(store.store.as_ref(), &commits) {
            interrupt::brief(py, || now.refresh(&store.store, &commits, &Interrupt::default()))?
        } else {
            self.with(py, |files, interrupt| files.refresh(&store.store, &commits, interrupt))?
        };
        Ok(Self {
            files: RwLock::new(Arc::new(files)),
            again: self.again.as_ref().map(|again| again.clone_ref(py)),
        })
    }
    #[getter]
    fn version(&self) -> u64 {
        self.now().version()
    }
    #[getter]
    fn protocol(&self) -> Option<String> {
        self.now().protocol().map(str::to_owned)
    }
    #[getter]
    fn metadata(&self) -> Option<String> {
        self.now().metadata().map(str::to_owned)
    }
    #[getter]
    fn protocol_place(&self) -> Option<String> {
        self.now().places().protocol.clone()
    }
    #[getter]
    fn metadata_place(&self) -> Option<String> {
        self.now().places().metadata.clone()
    }
    #[getter]
    fn transactions(&self) -> Transactions {
        self.now().transactions().clone()
    }
    #[getter]
    fn domains(&self) -> BTreeMap<String, String> {
        self.now().domains().clone()
    }
    #[getter]
    fn file_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.counted(py, |files, interrupt| Ok(files.live(interrupt)?.count()))
    }
    #[getter]
    fn size_in_bytes(&self, py: Python<'_>) -> PyResult<i64> {
        self.counted(py, |files, interrupt| Ok(files.live(interrupt)?.bytes()))
    }
    #[getter]
    fn num_records(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |files, interrupt| files.live(interrupt)?.num_records(interrupt))
    }
    #[getter]
    fn with_vectors(&self, py: Python<'_>) -> PyResult<(usize, i64, i64)> {
        let found = self.with(py, |files, interrupt| files.live(interrupt)?.with_vectors(interrupt))?;
        Ok((found.files, found.bytes, found.vector_bytes))
    }
    #[pyo3(signature = (bounds=None))]
    fn size_histogram(
        &self,
        py: Python<'_>,
        bounds: Option<Vec<i64>>,
    ) -> PyResult<(Vec<i64>, Vec<i64>, Vec<i64>)> {
        self.counted(py, |files, interrupt| {
            let live = files.live(interrupt)?;
            let Sizes { bounds, files, bytes } = match &bounds {
                Some(bounds) => live.sizes_in(bounds.clone())?,
                None => live.sizes()?.clone(),
            };
            Ok((bounds, files, bytes))
        })
    }
    #[getter]
    fn deleted_records(&self, py: Python<'_>) -> PyResult<(i64, i64, [i64; 10])> {
        self.counted(py, |files, interrupt| {
            let deleted = files.live(interrupt)?.deleted(interrupt)?;
            Ok((deleted.rows, deleted.vectors, deleted.files))
        })
    }
    #[pyo3(signature = (schema, predicate=None, *, skipping=true))]
    fn files(
        &self,
        py: Python<'_>,
        schema: &PyTableSchema,
        predicate: Option<&PyPredicate>,
        skipping: bool,
    ) -> PyResult<PyFileSelection> {
        let _ = schema; // the predicate is resolved against it already
        let predicate = predicate.map(|predicate| Arc::clone(&predicate.0));
        self.with(py, |files, interrupt| files.files(predicate.as_deref(), skipping, interrupt))
            .map(PyFileSelection)
    }
    #[pyo3(signature = (schema, predicate=None, *, statistics_columns=None, store=None, deleted_rows=false))]
    fn listing(
        &self,
        py: Python<'_>,
        schema: &PyTableSchema,
        predicate: Option<&PyPredicate>,
        statistics_columns: Option<Vec<String>>,
        store: Option<&PyStore>,
        deleted_rows: bool,
    ) -> PyResult<PyBatches> {
        let listing = Listing::new(Arc::clone(&schema.0), statistics_columns.as_deref(), self.now().root())?;
        let predicate = predicate.map(|predicate| Arc::clone(&predicate.0));
        let vectors_in = store.filter(|_| deleted_rows).map(|store| Arc::clone(&store.store));
        let rows = self.with(py, |files, interrupt| {
            let selected = files.files(predicate.as_deref(), true, interrupt)?;
            listing.of(&selected.files, vectors_in.as_deref(), interrupt)
        })?;
        let schema = rows.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        Ok(PyBatches::new(rows, schema))
    }
    #[pyo3(signature = (min_deletion_timestamp=None))]
    fn tombstones<'py>(
        &self,
        py: Python<'py>,
        min_deletion_timestamp: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batches =
            self.with(py, |files, interrupt| files.tombstones(min_deletion_timestamp, interrupt))?;
        table_of_batches(py, batches, SchemaRef::clone(&REMOVE))
    }
    #[pyo3(signature = (store, path, *, min_deletion_timestamp, min_transaction_timestamp=None,
                        stats_as_json=true, stats_as_struct=true, schema=None, overwrite=true,
                        second_form=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments of one call
    fn write_checkpoint<'py>(
        &self,
        py: Python<'py>,
        store: &PyStore,
        path: String,
        min_deletion_timestamp: i64,
        min_transaction_timestamp: Option<i64>,
        stats_as_json: bool,
        stats_as_struct: bool,
        schema: Option<&PyTableSchema>,
        overwrite: bool,
        second_form: Option<(String, i64)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let stats_as_struct = schema.filter(|_| stats_as_struct).map(|schema| Arc::clone(&schema.0));
        let choices =
            Choices { min_deletion_timestamp, min_transaction_timestamp, stats_as_json, stats_as_struct };
        let written = self.with(py, |files, interrupt| {
            if !overwrite && store.store.head(&path)?.is_some() {
                return Err(
                    Error::new(Kind::InvalidArgument, "there is a checkpoint already").at(path.clone())
                );
            }
            write_checkpoint(files, store, &path, second_form.as_ref(), &choices, interrupt)
        })?;
        described(py, &written)
    }
    fn __repr__(&self) -> String {
        format!("Snapshot(version={})", self.now().version())
    }
}

/// The files that a scan reads, as planning selected them (stub: `FileSelection`).
#[pyclass(name = "FileSelection", module = "deltaic._core", frozen)]
struct PyFileSelection(Selection);

#[pymethods]
impl PyFileSelection {
    #[getter]
    fn adds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table_of_batches(py, self.0.files.clone(), SchemaRef::clone(&ADD))
    }
    #[getter]
    fn live_twice(&self) -> Option<&str> {
        self.0.live_twice.as_deref()
    }
    #[getter]
    fn total_files(&self) -> usize {
        self.0.total_files
    }
    #[getter]
    fn total_bytes(&self) -> i64 {
        self.0.total_bytes
    }
    #[getter]
    fn skipped_by_partition(&self) -> usize {
        self.0.skipped_by_partition
    }
    #[getter]
    fn skipped_by_statistics(&self) -> usize {
        self.0.skipped_by_statistics
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyCommit>()?;
    m.add_class::<PySnapshot>()?;
    m.add_class::<PyFileSelection>()?;
    m.add_function(wrap_pyfunction!(read_commit, m)?)?;
    m.add_function(wrap_pyfunction!(read_commit_info, m)?)?;
    m.add_function(wrap_pyfunction!(read_commit_infos, m)?)?;
    m.add_function(wrap_pyfunction!(commit_body, m)?)?;
    m.add_function(wrap_pyfunction!(empty_adds, m)?)?;
    m.add_function(wrap_pyfunction!(empty_removes, m)?)?;
    m.add_function(wrap_pyfunction!(removes_of, m)?)?;
    m.add_function(wrap_pyfunction!(canonical_json, m)?)?;
    m.add_function(wrap_pyfunction!(physical_rows, m)?)?;
    m.add_function(wrap_pyfunction!(adds_again, m)?)?;
    m.add_function(wrap_pyfunction!(overlapping_paths, m)?)?;
    m.add_function(wrap_pyfunction!(absolute_adds, m)?)?;
    m.add_function(wrap_pyfunction!(relocated_adds, m)?)?;
    m.add_function(wrap_pyfunction!(compact_commits, m)?)?;
    m.add_function(wrap_pyfunction!(checkpoint_sidecars, m)?)?;
    m.add_function(wrap_pyfunction!(read_definition, m)?)?;
    m.add_function(wrap_pyfunction!(read_changes, m)?)?;
    m.add_function(wrap_pyfunction!(files_that_may_match, m)?)?;
    m.add_function(wrap_pyfunction!(filter_adds, m)?)
}
