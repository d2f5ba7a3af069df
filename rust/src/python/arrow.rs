//! Converts Arrow data from any Python object with the PyCapsule interface, and to pyarrow.

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, RecordBatch, RecordBatchIterator, RecordBatchOptions,
    RecordBatchReader, StringArray, make_array,
};
use arrow::compute::{cast, concat, concat_batches};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use pyo3::prelude::*;
use pyo3_arrow::input::{AnyArray, AnyRecordBatch};
use pyo3_arrow::{PyArray, PyRecordBatch, PyTable};

use super::error::wrong_type;
use crate::error::{Error, Kind, Result};
use crate::guard;

/// Rows in memory. They become a `pyarrow.Table` only when one is requested, because importing pyarrow takes
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
        return Ok(with_own_empty_arrays(batch.into_inner()).map_err(Error::from)?);
    }
    let any: AnyRecordBatch = data.extract().map_err(|_| not_arrow(data))?;
    let reader = reader_of(any)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(Error::from)?;
    Ok(concat_batches(&schema, &batches).map_err(Error::from)?)
}

/// Returns a reader of a table, batch or stream (see [`with_own_empty_arrays`]).
pub fn reader_of(data: AnyRecordBatch) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let reader = data.into_reader()?;
    let schema = reader.schema();
    let batches = reader.map(|batch| with_own_empty_arrays(batch?));
    Ok(Box::new(RecordBatchIterator::new(batches, schema)))
}

/// Replaces each array without values, on every level, by one that arrow-rs makes. Other libraries may leave
/// the offsets of such an array out (Arrow's Java library does, so Spark's batches are such), but arrow-rs
/// reads the first offset of each array it imports: some bytes that do not belong to the array.
pub fn with_own_empty_arrays(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let is_plain = |column: &ArrayRef| !column.is_empty() && !column.data_type().is_nested();
    if batch.columns().iter().all(is_plain) {
        return Ok(batch);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let own = |column: &ArrayRef| match is_plain(column) {
        true => Ok(ArrayRef::clone(column)),
        false => own_empty_data(column.to_data()).map(make_array),
    };
    let columns = batch.columns().iter().map(own).collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}

#[allow(unsafe_code)]
fn own_empty_data(data: ArrayData) -> Result<ArrayData, ArrowError> {
    if data.is_empty() {
        return Ok(ArrayData::new_empty(data.data_type()));
    }
    if data.child_data().is_empty() {
        return Ok(data);
    }
    let children = data.child_data().iter().cloned().map(own_empty_data).collect::<Result<Vec<_>, _>>()?;
    // SAFETY: the children are those that the array had, or have no values just as they had none.
    Ok(unsafe { data.into_builder().child_data(children).build_unchecked() })
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
        let error = Error::new(Kind::InvalidArgument, "the Arrow data cannot be imported")
            .found("a slice of structs within structs");
        Err(error.expected("a copy of the rows, which take() makes").into())
    })
}

fn not_arrow(data: &Bound<'_, PyAny>) -> PyErr {
    wrong_type(data, "no Arrow data", "an object with __arrow_c_stream__ or __arrow_c_array__")
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyBatches>()
}
