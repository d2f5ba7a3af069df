//! `RowIds` and `mark_deleted`: turn the rows that a command deletes into deletion vectors and actions, and
//! `rebase_rows`: adds them to the vectors of a commit that was made meanwhile.

use arrow::array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrow::{any_batch, batch_of, reader_of, table_of};
use super::{interrupt, store};
use crate::deletion_vector::pack::VectorTarget;
use crate::deletion_vector::update::VectorChanges;
use crate::deletion_vector::{RowIds, mark_deleted, rebase};
use crate::error::{Error, Result};

/// Adds this section to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyRowIds>()?;
    m.add_class::<MarkedFiles>()?;
    m.add_function(wrap_pyfunction!(mark, m)?)?;
    m.add_class::<RebasedRows>()?;
    m.add_function(wrap_pyfunction!(rebase_rows, m)?)?;
    m.add_function(wrap_pyfunction!(adds_with_new_rows, m)?)?;
    Ok(())
}

/// The rows that a command found, with one bitmap for each file.
#[pyclass(name = "RowIds", module = "deltaic._core", frozen)]
pub struct PyRowIds(pub RowIds);

#[pymethods]
impl PyRowIds {
    #[staticmethod]
    #[pyo3(signature = (row_ids, *, unique = false))]
    fn collect(py: Python<'_>, row_ids: &Bound<'_, PyAny>, unique: bool) -> PyResult<Self> {
        gathered(py, row_ids, unique, RowIds::extend)
    }

    #[staticmethod]
    #[pyo3(signature = (bitmaps, *, unique = false))]
    fn of_bitmaps(py: Python<'_>, bitmaps: &Bound<'_, PyAny>, unique: bool) -> PyResult<Self> {
        gathered(py, bitmaps, unique, RowIds::extend_bitmaps)
    }

    fn bitmaps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table_of(py, interrupt::brief(py, || self.0.bitmaps())?)
    }

    #[getter]
    fn file_count(&self) -> usize {
        self.0.file_count()
    }

    fn __len__(&self) -> usize {
        self.0.len() as usize
    }

    #[pyo3(signature = (files, *, keep_selected = true))]
    fn select<'py>(
        &self,
        py: Python<'py>,
        files: &Bound<'py, PyAny>,
        keep_selected: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let files = batch_of(files)?;
        table_of(py, interrupt::brief(py, || self.0.select(&files, keep_selected))?)
    }
}

fn gathered(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    unique: bool,
    add: fn(&mut RowIds, &RecordBatch) -> Result<()>,
) -> PyResult<PyRowIds> {
    let reader = reader_of(any_batch(data)?)?;
    let rows = interrupt::run(py, |interrupt| {
        let mut rows = RowIds::new(unique);
        for batch in reader {
            interrupt.check()?;
            add(&mut rows, &batch.map_err(Error::from)?)?;
        }
        Ok(rows)
    })?;
    Ok(PyRowIds(rows))
}

#[pyfunction]
#[pyo3(name = "mark_deleted", signature = (store, files, rows, *, deletion_timestamp, inline = false,
                                           prefix_length = 0, target_size = 2_097_152))]
fn mark(
    store: &Bound<'_, PyAny>,
    files: &Bound<'_, PyAny>,
    rows: &PyRowIds,
    deletion_timestamp: i64,
    inline: bool,
    prefix_length: usize,
    target_size: usize,
) -> PyResult<MarkedFiles> {
    let (place, files) = (store::store_of(store)?, batch_of(files)?);
    let packing = VectorTarget { inline, prefix_length, target_size };
    let marked = interrupt::run(store.py(), |interrupt| {
        mark_deleted(&place, &files, &rows.0, deletion_timestamp, &packing, interrupt)
    })?;
    Ok(MarkedFiles(marked))
}

/// The result of `mark_deleted`: the changed files with their new vectors.
#[pyclass(module = "deltaic._core", frozen)]
pub struct MarkedFiles(VectorChanges);

#[pymethods]
impl MarkedFiles {
    #[getter]
    fn adds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table_of(py, self.0.adds.clone())
    }

    #[getter]
    fn removes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table_of(py, self.0.removes.clone())
    }

    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for (name, count) in self.0.metrics.named() {
            counts.set_item(name, count)?;
        }
        Ok(counts)
    }

    #[getter]
    fn written(&self) -> Vec<String> {
        self.0.written.clone()
    }
}

#[pyfunction]
fn rebase_rows(
    store: &Bound<'_, PyAny>,
    files: &Bound<'_, PyAny>,
    rows: &PyRowIds,
    adds: &Bound<'_, PyAny>,
    removes: &Bound<'_, PyAny>,
) -> PyResult<RebasedRows> {
    let (place, files, adds, removes) =
        (store::store_of(store)?, batch_of(files)?, batch_of(adds)?, batch_of(removes)?);
    let rebased =
        interrupt::run(store.py(), |_| rebase::rebase(place.as_ref(), &files, &rows.0, &adds, &removes))?;
    Ok(RebasedRows(rebased))
}

#[pyfunction]
fn adds_with_new_rows<'py>(
    store: &Bound<'py, PyAny>,
    adds: &Bound<'py, PyAny>,
    removes: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (place, adds, removes) = (store::store_of(store)?, batch_of(adds)?, batch_of(removes)?);
    let kept = interrupt::run(store.py(), |_| rebase::with_new_rows(place.as_ref(), &adds, &removes))?;
    table_of(store.py(), kept)
}

/// The result of `rebase_rows`: the files that are left after another commit, and their new vectors.
#[pyclass(module = "deltaic._core", frozen)]
pub struct RebasedRows(rebase::RebaseResult);

#[pymethods]
impl RebasedRows {
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table_of(py, self.0.files.clone())
    }

    #[getter]
    fn rows(&self) -> PyRowIds {
        PyRowIds(self.0.rows.clone())
    }

    #[getter]
    fn deleted(&self) -> Vec<(String, u64)> {
        self.0.deleted.clone()
    }

    #[getter]
    fn is_changed(&self) -> bool {
        self.0.is_changed
    }
}
