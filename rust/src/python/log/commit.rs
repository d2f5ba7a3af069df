//! Commits: reading one, its commitInfo or what several changed, and the bytes of a new or compacted one.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::log::reading::commit::{Commit, Transactions};
use crate::log::schema::{ADD, REMOVE};
use crate::log::state::changes;
use crate::log::writing::{body, compaction};
use crate::parallel::on_threads;
use crate::python::arrow::{batch_of, table_of, table_of_batches};
use crate::python::interrupt;
use crate::python::store::PyStore;

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
    /// Returns the numbers of adds and of removes, without making tables of them.
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
fn compact_commits<'py>(
    py: Python<'py>,
    store: &PyStore,
    commits: Vec<(u64, String)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let lines = interrupt::run(py, |interrupt| compaction::compact(&store.store, &commits, interrupt))?;
    Ok(PyBytes::new(py, &lines))
}

/// The result of `read_changes`: the metadata of each commit, the files whose rows are the changes, and the
/// change files.
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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyCommit>()?;
    m.add_function(wrap_pyfunction!(read_commit, m)?)?;
    m.add_function(wrap_pyfunction!(read_commit_info, m)?)?;
    m.add_function(wrap_pyfunction!(read_commit_infos, m)?)?;
    m.add_function(wrap_pyfunction!(commit_body, m)?)?;
    m.add_function(wrap_pyfunction!(compact_commits, m)?)?;
    m.add_function(wrap_pyfunction!(read_changes, m)?)
}
