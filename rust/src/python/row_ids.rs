//! `RowIds` and `mark_deleted`: from the rows that a command found to vectors and actions.

use pyo3::prelude::*;

use super::arrow::{any_batch, batch_of, table_of};
use super::interrupt;
use crate::deletion_vector::RowIds;
use crate::error::Error;

/// Adds this section to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyRowIds>()
}

/// Rows per file: one bitmap per file.
#[pyclass(name = "RowIds", module = "deltaic._core", frozen)]
pub struct PyRowIds(pub RowIds);

#[pymethods]
impl PyRowIds {
    #[staticmethod]
    #[pyo3(signature = (row_ids, *, unique = false))]
    fn collect(py: Python<'_>, row_ids: &Bound<'_, PyAny>, unique: bool) -> PyResult<Self> {
        let reader = any_batch(row_ids)?.into_reader()?;
        let rows = interrupt::run(py, |interrupt| {
            let mut rows = RowIds::new(unique);
            for batch in reader {
                interrupt.check()?;
                rows.extend(&batch.map_err(Error::from)?)?;
            }
            Ok(rows)
        })?;
        Ok(Self(rows))
    }

    #[getter]
    fn file_count(&self) -> usize {
        self.0.file_count()
    }

    fn __len__(&self) -> usize {
        self.0.len() as usize
    }

    #[pyo3(signature = (files, *, keep_selected = true))]
    fn select<'py>(&self, py: Python<'py>, files: &Bound<'py, PyAny>, keep_selected: bool) -> PyResult<Bound<'py, PyAny>> {
        let files = batch_of(files)?;
        table_of(py, interrupt::brief(py, || self.0.select(&files, keep_selected))?)
    }
}
