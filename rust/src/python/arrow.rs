//! Converts Arrow data from any Python object with the PyCapsule interface, and to pyarrow.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::{cast, concat, concat_batches};
use arrow::datatypes::{DataType, SchemaRef};
use pyo3::prelude::*;
use pyo3_arrow::input::{AnyArray, AnyRecordBatch};
use pyo3_arrow::{PyArray, PyRecordBatch, PyTable};

use super::error::wrong_type;
use crate::error::{Error, Kind, Result};
use crate::guard;

/// Rows in memory. They become a `pyarrow.Table` only when one is asked for, because importing pyarrow takes
/// longer than planning (stub: `Batches`).
#[pyclass(name = "Batches", module = "deltaic._core", frozen)]
pub struct PyBatches {
    batches: Vec<RecordBatch>,
    schema: SchemaRef,
}

impl PyBatches {
    /// Keeps batches that have this schema.
    pub fn new(batches: Vec<RecordBatch>, schema: SchemaRef) -> Self {
        Self { batches, schema }
    }
}

#[pymethods]
impl PyBatches {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
    fn to_table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table_of_batches(py, self.batches.clone(), SchemaRef::clone(&self.schema))
    }
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = PyTable::try_new(self.batches.clone(), SchemaRef::clone(&self.schema))?;
        table.into_pyobject(py)?.call_method1("__arrow_c_stream__", (requested_schema,))
    }
}

/// Returns one batch as a `pyarrow.Table`.
pub fn table_of(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    let schema = batch.schema();
    table_of_batches(py, vec![batch], schema)
}

/// Returns batches of one schema as a `pyarrow.Table`.
pub fn table_of_batches(
    py: Python<'_>,
    batches: Vec<RecordBatch>,
    schema: SchemaRef,
) -> PyResult<Bound<'_, PyAny>> {
    // Not `pyarrow.table()`, which imports pandas to check for a data frame.
    let reader = py.import("pyarrow")?.getattr("RecordBatchReader")?;
    reader.call_method1("from_stream", (PyTable::try_new(batches, schema)?,))?.call_method0("read_all")
}

/// Returns an array as a `pyarrow.Array`.
pub fn array_of(py: Python<'_>, array: ArrayRef) -> PyResult<Bound<'_, PyAny>> {
    py.import("pyarrow")?.getattr("array")?.call1((PyArray::from_array_ref(array),))
}

/// Returns a table, batch or stream as one batch.
pub fn batch_of(data: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    if let Ok(batch) = data.extract::<PyRecordBatch>() {
        return Ok(batch.into_inner());
    }
    let any: AnyRecordBatch = data.extract().map_err(|_| not_arrow(data))?;
    let (batches, schema) = any.into_table().map_err(PyErr::from)?.into_inner();
    Ok(concat_batches(&schema, &batches).map_err(Error::from)?)
}

/// Returns the texts of an Arrow array or of a sequence of `str`.
pub fn strings(data: &Bound<'_, PyAny>) -> PyResult<StringArray> {
    if let Ok(sequence) = data.extract::<Vec<String>>() {
        return Ok(StringArray::from(sequence));
    }
    let any: AnyArray = data.extract().map_err(|_| not_arrow(data))?;
    let (chunks, _) = any.into_chunked_array().map_err(PyErr::from)?.into_inner();
    Ok(to_strings(&chunks.iter().map(|chunk| chunk.as_ref()).collect::<Vec<_>>())?)
}

fn to_strings(chunks: &[&dyn Array]) -> Result<StringArray> {
    if chunks.is_empty() {
        return Ok(StringArray::new_null(0));
    }
    let whole = cast(&concat(chunks)?, &DataType::Utf8)?;
    Ok(whole.as_string::<i32>().clone())
}

/// Returns a reader of a table, batch or stream. A stream is read only as the reader is.
pub fn any_batch(data: &Bound<'_, PyAny>) -> PyResult<AnyRecordBatch> {
    let is_arrow = data.hasattr("__arrow_c_array__")? || data.hasattr("__arrow_c_stream__")?;
    if !is_arrow {
        return Err(not_arrow(data));
    }
    // arrow-rs 59 panics on slices of structs within structs; no panic crosses into Python.
    guard::caught(|| data.extract()).unwrap_or_else(|_| {
        let error = Error::new(Kind::InvalidArgument, "the Arrow data cannot be taken in")
            .found("a slice of structs within structs");
        Err(error.expected("data of its own, such as take() makes").into())
    })
}

fn not_arrow(data: &Bound<'_, PyAny>) -> PyErr {
    wrong_type(data, "no Arrow data", "an object with __arrow_c_stream__ or __arrow_c_array__")
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyBatches>()
}
