//! Snapshots: the protocol, metadata and files of a version, and the files that a scan of it reads.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::checkpoint::{described, write_checkpoint};
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::log::reading::commit::{Commit, Transactions};
use crate::log::reading::definition::Definition;
use crate::log::schema::{ADD, REMOVE};
use crate::log::skipping::selection::Selection;
use crate::log::state::listing::Listing;
use crate::log::state::snapshot::{Snapshot, are_short};
use crate::log::state::totals::Sizes;
use crate::log::writing::body;
use crate::log::writing::checkpoint_writer::Choices;
use crate::python::arrow::{PyBatches, batch_of, table_of_batches};
use crate::python::interrupt;
use crate::python::predicate::PyPredicate;
use crate::python::schema::PyTableSchema;
use crate::python::store::PyStore;

/// The live files of one version.
#[pyclass(name = "Snapshot", module = "deltaic._core", frozen)]
struct PySnapshot {
    files: RwLock<Arc<Snapshot>>,
    /// A function that builds the version again, if files of the log that it still needs were deleted.
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

#[pyfunction]
fn read_definition(
    py: Python<'_>,
    store: &PyStore,
    checkpoint: Vec<String>,
    commits: Vec<(u64, String)>,
) -> PyResult<(Option<String>, Option<String>)> {
    let found =
        interrupt::run(py, |interrupt| Definition::read(&store.store, &checkpoint, &commits, interrupt))?;
    Ok((found.protocol, found.metadata))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySnapshot>()?;
    m.add_class::<PyFileSelection>()?;
    m.add_function(wrap_pyfunction!(read_definition, m)?)
}
