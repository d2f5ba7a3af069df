//! Binds schemas to Python: the class `TableSchema` and the conversion of Arrow types to Delta's, as in
//! section `schema.rs` of `_core.pyi`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use pyo3::prelude::*;
use pyo3_arrow::{PyDataType, PySchema};

use crate::data_file::encoded::{Texts, encoded_field};
use crate::schema::{ColumnMapping, TableSchema, from_arrow, json};

/// Returns the columns that come encoded, by name: `encoded` with texts as dictionaries, `views` with texts
/// as views.
pub fn texts_of(encoded: Vec<String>, views: Vec<String>) -> HashMap<String, Texts> {
    let keys = encoded.into_iter().map(|name| (name, Texts::Keys));
    keys.chain(views.into_iter().map(|name| (name, Texts::Views))).collect()
}

/// A table's schema (stub: `TableSchema`).
#[pyclass(name = "TableSchema", module = "deltaic._core", frozen)]
pub struct PyTableSchema(pub Arc<TableSchema>);

#[pymethods]
impl PyTableSchema {
    #[new]
    #[pyo3(signature = (schema, partition_columns=vec![], column_mapping="none"))]
    fn new(schema: &str, partition_columns: Vec<String>, column_mapping: &str) -> PyResult<Self> {
        Ok(Self(Arc::new(TableSchema::parse(schema, &partition_columns, column_mapping)?)))
    }
    #[getter]
    fn json(&self) -> &str {
        self.0.json()
    }
    #[getter]
    fn partition_columns(&self) -> Vec<String> {
        self.0.partition_fields().map(|field| field.name.clone()).collect()
    }
    #[getter]
    fn column_mapping(&self) -> &str {
        match self.0.mapping() {
            ColumnMapping::None => "none",
            ColumnMapping::Name => "name",
            ColumnMapping::Id => "id",
        }
    }
    #[pyo3(signature = (columns=None, *, encoded=vec![], views=vec![]))]
    fn to_arrow<'py>(
        &self,
        py: Python<'py>,
        columns: Option<Vec<String>>,
        encoded: Vec<String>,
        views: Vec<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut schema = self.0.to_arrow(columns.as_deref())?;
        let encoded = texts_of(encoded, views);
        if !encoded.is_empty() {
            let field = |field: &Arc<Field>| match encoded.get(field.name()) {
                Some(texts) => encoded_field(field.as_ref().clone(), *texts),
                None => field.as_ref().clone(),
            };
            schema = Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>());
        }
        PySchema::new(Arc::new(schema)).into_pyarrow(py)
    }
    #[pyo3(signature = (names, ids=Vec::new()))]
    fn with_hidden(&self, names: Vec<String>, ids: Vec<i32>) -> PyResult<Self> {
        Ok(Self(Arc::new(self.0.with_hidden(&names, &ids)?)))
    }
    fn __repr__(&self) -> String {
        format!("TableSchema({})", self.0.json())
    }
}

/// Returns the JSON of the Delta schema of an Arrow schema.
#[pyfunction]
fn schema_from_arrow(schema: PySchema) -> PyResult<String> {
    Ok(json::struct_json(&from_arrow::fields_from_arrow(&schema.into_inner())?).to_string())
}

/// Returns the JSON of the Delta type of an Arrow type.
#[pyfunction]
fn type_from_arrow(data_type: PyDataType) -> PyResult<String> {
    Ok(from_arrow::type_from_arrow(&data_type.into_inner(), "type")?.to_json().to_string())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTableSchema>()?;
    m.add_function(wrap_pyfunction!(schema_from_arrow, m)?)?;
    m.add_function(wrap_pyfunction!(type_from_arrow, m)?)
}
