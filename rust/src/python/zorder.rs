//! Binds clustering to Python: the boundaries of ranges, and the keys of rows on a Z-order or Hilbert curve,
//! as in section `zorder.rs` of `_core.pyi`.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch, RecordBatchIterator, RecordBatchReader, UInt32Array};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;
use pyo3_arrow::{PyArray, PyRecordBatchReader};

use super::arrow::{array_of, reader_of};
use super::interrupt;
use crate::error::{Error, Kind, Result};
use crate::zorder::{Bounds, Curve, Keys, Sampler, hilbert, interleave};

/// Sampled boundaries of several columns (stub: `RangeBounds`).
#[pyclass(name = "RangeBounds", module = "deltaic._core", frozen)]
pub struct PyRangeBounds(Vec<(String, Bounds)>);

#[pymethods]
impl PyRangeBounds {
    #[staticmethod]
    #[pyo3(signature = (data, columns, *, ranges=1000, sample_size=100_000, seed=0))]
    fn sample(
        py: Python<'_>,
        data: PyRecordBatchReader,
        columns: Vec<String>,
        ranges: usize,
        sample_size: usize,
        seed: u64,
    ) -> PyResult<Self> {
        let reader = reader_of(AnyRecordBatch::Stream(data))?;
        let bounds = interrupt::run(py, |stop| {
            let places = places(reader.as_ref(), &columns)?;
            let mut sampler = Sampler::new(columns.len(), sample_size, seed);
            sampler.add(&RecordBatch::new_empty(reader.schema()), &places)?;
            for batch in reader {
                stop.check()?;
                sampler.add(&batch?, &places)?;
            }
            sampler
                .finish()?
                .iter()
                .map(|values| Bounds::from_sample(values, ranges.max(1)))
                .collect::<Result<Vec<_>>>()
        })?;
        Ok(Self(columns.into_iter().zip(bounds).collect()))
    }

    #[staticmethod]
    fn of(columns: Vec<String>, boundaries: Vec<PyArray>) -> PyResult<Self> {
        if columns.len() != boundaries.len() {
            let error = Error::new(Kind::InvalidArgument, "the numbers of columns and of boundaries differ")
                .found(boundaries.len());
            return Err(error.expected(columns.len()).into());
        }
        let bounds =
            boundaries.iter().map(|values| Bounds::of(values.array())).collect::<Result<Vec<_>>>()?;
        Ok(Self(columns.into_iter().zip(bounds).collect()))
    }

    #[getter]
    fn boundaries<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.iter().map(|(_, bounds)| array_of(py, Arc::clone(bounds.values()))).collect()
    }
}

fn places(reader: &dyn RecordBatchReader, columns: &[String]) -> Result<Vec<usize>> {
    let place = |name: &String| reader.schema().index_of(name);
    columns
        .iter()
        .map(|c| {
            place(c).map_err(|_| Error::new(Kind::InvalidArgument, "no such column to cluster by").found(c))
        })
        .collect()
}

fn curve_of(name: &str) -> Result<Curve> {
    match name {
        "zorder" => Ok(Curve::ZOrder),
        "hilbert" => Ok(Curve::Hilbert),
        other => {
            Err(Error::new(Kind::InvalidArgument, "unknown curve").found(other).expected("zorder or hilbert"))
        }
    }
}

/// Returns the stream with one column more: the key of each row on the curve.
#[pyfunction]
fn curve_keys<'py>(
    py: Python<'py>,
    data: PyRecordBatchReader,
    bounds: &PyRangeBounds,
    curve: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let reader = reader_of(AnyRecordBatch::Stream(data))?;
    let keys = Keys::new(&reader.schema(), &bounds.0, curve_of(curve)?)?;
    let schema = keys.schema();
    let batches = reader.map(move |batch| keys.append(&batch?).map_err(ArrowError::from));
    PyRecordBatchReader::new(Box::new(RecordBatchIterator::new(batches, schema))).into_pyarrow(py)
}

/// Returns, for each value, the number of the range between two bounds in which the value is.
#[pyfunction]
fn range_ids<'py>(py: Python<'py>, values: PyArray, bounds: PyArray) -> PyResult<Bound<'py, PyAny>> {
    let ids = Bounds::of(bounds.array())?.ids(values.array())?;
    let ids = arrow::compute::cast(&UInt32Array::from(ids), &DataType::Int32).map_err(Error::from)?;
    array_of(py, ids)
}

/// Returns the values of int32 columns as unsigned numbers with the same bits. Null is 0.
fn bits_of(columns: Vec<PyArray>) -> Result<Vec<Vec<u32>>> {
    use arrow::array::AsArray;
    let column = |array: ArrayRef| match array.as_primitive_opt::<arrow::datatypes::Int32Type>() {
        Some(values) => Ok(values.iter().map(|v| v.unwrap_or_default() as u32).collect()),
        None => Err(Error::new(Kind::InvalidArgument, "a column that cannot be interleaved")
            .found(array.data_type())
            .expected("Int32")),
    };
    let columns =
        columns.into_iter().map(|c| column(c.array().clone())).collect::<Result<Vec<Vec<u32>>>>()?;
    match columns.windows(2).find(|pair| pair[0].len() != pair[1].len()) {
        Some(pair) => Err(Error::new(Kind::InvalidArgument, "columns of different lengths")
            .found(pair[1].len())
            .expected(pair[0].len())),
        None => Ok(columns),
    }
}

fn to_binary<'py>(py: Python<'py>, columns: &[Vec<u32>], bytes: usize) -> PyResult<Bound<'py, PyAny>> {
    let width = 4 * columns.len().max(1);
    let rows = interleave::rows(columns);
    let keys =
        BinaryArray::from_iter_values(rows.chunks_exact(width).map(|row| &row[width - bytes.min(width)..]));
    array_of(py, Arc::new(keys))
}

/// Interleaves the bits of the columns: the first bit of each column, then the second of each, and so on. A
/// key has 4 bytes for each column.
#[pyfunction]
fn interleave_bits<'py>(py: Python<'py>, columns: Vec<PyArray>) -> PyResult<Bound<'py, PyAny>> {
    let columns = bits_of(columns)?;
    to_binary(py, &columns, 4 * columns.len())
}

/// Returns the index of each row on Hilbert's curve. A key has as many bytes as columns times `bits` require.
#[pyfunction]
fn hilbert_index<'py>(py: Python<'py>, columns: Vec<PyArray>, bits: u32) -> PyResult<Bound<'py, PyAny>> {
    let mut columns = bits_of(columns)?;
    let too_large = columns.iter().flatten().find(|v| bits < 32 && **v >> bits != 0);
    if bits == 0 || bits > 32 || too_large.is_some() {
        let found = too_large.map_or(format!("{bits} bits"), |v| format!("{} in {bits} bits", *v as i32));
        return Err(Error::new(Kind::InvalidArgument, "coordinates that do not fit")
            .found(found)
            .expected("0 <= value < 2^bits, 1 to 32 bits")
            .into());
    }
    hilbert::transpose(&mut columns, bits);
    let bytes = (columns.len() * bits as usize).div_ceil(8);
    to_binary(py, &columns, bytes)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyRangeBounds>()?;
    m.add_function(wrap_pyfunction!(curve_keys, m)?)?;
    m.add_function(wrap_pyfunction!(range_ids, m)?)?;
    m.add_function(wrap_pyfunction!(interleave_bits, m)?)?;
    m.add_function(wrap_pyfunction!(hilbert_index, m)?)
}
