//! Binds the predicate tree to Python: the class `Predicate`, as in section `predicate.rs` of `_core.pyi`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3_arrow::PyArray;

use super::schema::PyTableSchema;
use crate::predicate::{Column, Predicate, parse, pyarrow};

/// The predicate tree (stub: `Predicate`).
#[pyclass(name = "Predicate", module = "deltaic._core", frozen)]
pub struct PyPredicate(pub Arc<Predicate>);

#[pymethods]
impl PyPredicate {
    #[staticmethod]
    fn from_json(text: &str, schema: &PyTableSchema) -> PyResult<Self> {
        Ok(Self(Arc::new(parse::from_json(text, &|path| Column::resolve(&schema.0, path))?)))
    }
    #[staticmethod]
    fn from_pyarrow(expression: &Bound<'_, PyAny>, schema: &PyTableSchema) -> PyResult<(Option<Self>, bool)> {
        let pickled = expression.call_method0("__reduce__")?.get_item(1)?.get_item(0)?;
        let bytes: PyBackedBytes = pickled.call_method0("to_pybytes")?.extract()?;
        let (predicate, exact) = pyarrow::from_pickle(&bytes, &|path| Column::resolve(&schema.0, path))?;
        Ok((predicate.map(|predicate| Self(Arc::new(predicate))), exact))
    }
    #[staticmethod]
    #[pyo3(signature = (column, values, schema, *, most))]
    fn among(
        column: Vec<String>,
        values: PyArray,
        schema: &PyTableSchema,
        most: usize,
    ) -> PyResult<Option<Self>> {
        let found = Predicate::among(Column::resolve(&schema.0, &column)?, values.array(), most)?;
        Ok(found.map(|predicate| Self(Arc::new(predicate))))
    }
    #[getter]
    fn json(&self) -> PyResult<String> {
        Ok(parse::to_json(&self.0)?)
    }
    #[getter]
    fn columns(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.0.columns().into_iter().filter_map(|column| column.path.first().cloned()).collect();
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }
    fn is_partition_only(&self) -> bool {
        self.0.is_partition_only()
    }
    fn __and__(&self, other: &Self) -> Self {
        Self(Arc::new((*self.0).clone().and((*other.0).clone())))
    }
    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("Predicate({})", parse::to_json(&self.0)?))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyPredicate>()
}
