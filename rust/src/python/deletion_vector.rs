//! The class `DeletionVector`, and functions for Z85 and CRC-32.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;
use pyo3_arrow::input::{AnyArray, AnyRecordBatch};
use pyo3_arrow::{PyArray, PyRecordBatch, PyTable};

use super::arrow::{any_batch, reader_of, with_own_empty_arrays};
use super::error::wrong_type;
use super::{interrupt, store};
use crate::deletion_vector::descriptor::StorageType;
use crate::deletion_vector::values as vector_values;
use crate::deletion_vector::{DeletionVector, Descriptor, MAX_ROW, RowIndex, arrays, limit};
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::z85;

const EXPECTED_ROWS: &str = "Arrow integers or an iterable of int";

/// Adds this section to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyDeletionVector>()?;
    m.add_function(wrap_pyfunction!(z85_encode, m)?)?;
    m.add_function(wrap_pyfunction!(z85_decode, m)?)?;
    m.add_function(wrap_pyfunction!(z85_encode_values, m)?)?;
    m.add_function(wrap_pyfunction!(z85_decode_values, m)?)?;
    m.add_function(wrap_pyfunction!(rows_deleted, m)?)?;
    m.add_function(wrap_pyfunction!(crc32, m)?)?;
    m.add_function(wrap_pyfunction!(set_vector_limit, m)?)?;
    m.add_function(wrap_pyfunction!(read_deletion_vector, m)?)?;
    Ok(())
}

#[pyfunction]
fn z85_encode(py: Python<'_>, data: PyBackedBytes) -> String {
    py.detach(|| z85::encode(&data))
}

#[pyfunction]
fn z85_decode<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &interrupt::brief(py, || z85::decode(text))?))
}

#[pyfunction]
fn z85_encode_values(py: Python<'_>, values: PyArray) -> PyResult<Bound<'_, PyAny>> {
    let found = interrupt::brief(py, || vector_values::z85_encode(values.array()))?;
    to_pyarrow(py, Arc::new(found))
}

#[pyfunction]
fn z85_decode_values(py: Python<'_>, values: PyArray) -> PyResult<Bound<'_, PyAny>> {
    let found = interrupt::brief(py, || vector_values::z85_decode(values.array()))?;
    to_pyarrow(py, Arc::new(found))
}

#[pyfunction]
fn rows_deleted(py: Python<'_>, vectors: PyArray, rows: PyArray) -> PyResult<Bound<'_, PyAny>> {
    let found = interrupt::brief(py, || vector_values::rows_deleted(vectors.array(), rows.array()))?;
    to_pyarrow(py, Arc::new(found))
}

#[pyfunction]
fn crc32(py: Python<'_>, data: PyBackedBytes) -> u32 {
    py.detach(|| crc32fast::hash(&data))
}

#[pyfunction]
fn set_vector_limit(size: u64) -> u64 {
    limit::set_bytes(size)
}

#[pyfunction]
#[pyo3(signature = (store, storage_type, path_or_inline, offset, size_in_bytes, cardinality,
                    num_records = None))]
fn read_deletion_vector(
    store: &Bound<'_, PyAny>,
    storage_type: &str,
    path_or_inline: String,
    offset: Option<i32>,
    size_in_bytes: i32,
    cardinality: i64,
    num_records: Option<u64>,
) -> PyResult<PyDeletionVector> {
    let place = store::store_of(store)?;
    let descriptor = Descriptor {
        storage_type: StorageType::parse(storage_type)?,
        path_or_inline,
        offset,
        size_in_bytes,
        cardinality,
    };
    PyDeletionVector::detached(store.py(), || descriptor.read(place.as_ref(), num_records))
}

/// An immutable set of row indexes of one data file. `|`, `&` and `-` are union, intersection and difference.
///
/// ```python
/// >>> vector = deltaic.DeletionVector.from_rows([3, 4, 7])
/// >>> len(vector), 4 in vector, list(vector - deltaic.DeletionVector.from_rows([4]))
/// (3, True, [3, 7])
/// ```
#[pyclass(name = "DeletionVector", module = "deltaic", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq)]
pub struct PyDeletionVector(pub Arc<DeletionVector>);

impl PyDeletionVector {
    fn detached(py: Python<'_>, make: impl FnOnce() -> Result<DeletionVector> + Send) -> PyResult<Self> {
        Ok(Self(Arc::new(interrupt::brief(py, make)?)))
    }
}

#[pymethods]
impl PyDeletionVector {
    /// Returns the set of these rows: an iterable of int, a NumPy array or an Arrow array, in any order.
    /// Raises InvalidArgumentError for a negative or too large index.
    ///
    /// ```python
    /// >>> list(deltaic.DeletionVector.from_rows([3, 1]))
    /// [1, 3]
    /// ```
    #[staticmethod]
    fn from_rows(rows: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = rows.py();
        if let Some(arrays) = as_arrays(rows)? {
            return Self::detached(py, || arrays::rows_of(&arrays));
        }
        let each = rows.try_iter().map_err(|_| wrong_type(rows, "no row indexes", EXPECTED_ROWS))?;
        let rows = each.map(|row| row_index(&row?)).collect::<PyResult<Vec<_>>>()?;
        Self::detached(py, || DeletionVector::from_rows(rows))
    }

    /// Decodes PROTOCOL.md's portable format. Raises ProtocolError for malformed bytes.
    ///
    /// ```python
    /// >>> vector = deltaic.DeletionVector.from_rows([1, 3])
    /// >>> deltaic.DeletionVector.from_bytes(vector.to_bytes()) == vector
    /// True
    /// ```
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let data: PyBackedBytes = data
            .extract()
            .map_err(|_| wrong_type(data, "a vector's bytes are of the wrong type", "bytes"))?;
        Self::detached(py, || DeletionVector::from_bytes(&data))
    }

    /// Decodes the Z85 text of an inline vector (`pathOrInlineDv`). Raises ProtocolError for malformed text.
    ///
    /// ```python
    /// >>> vector = deltaic.DeletionVector.from_rows([1, 3])
    /// >>> deltaic.DeletionVector.from_inline(vector.to_inline()) == vector
    /// True
    /// ```
    #[staticmethod]
    fn from_inline(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Self> {
        let text: PyBackedStr =
            text.extract().map_err(|_| wrong_type(text, "an inline vector is of the wrong type", "text"))?;
        Self::detached(py, || DeletionVector::from_inline(&text))
    }

    /// The number of rows in the set.
    #[getter]
    fn cardinality(&self) -> u64 {
        self.0.cardinality()
    }

    fn __len__(&self) -> usize {
        self.0.cardinality() as usize
    }

    fn __contains__(&self, row: &Bound<'_, PyAny>) -> bool {
        row.extract().is_ok_and(|row| self.0.contains(row))
    }

    fn __iter__(&self) -> RowIterator {
        RowIterator { rows: self.0.clone(), next: 0, ahead: Vec::new().into_iter() }
    }

    fn __or__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        Self::detached(py, || Ok(self.0.union(&other.0)))
    }

    fn __and__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        Self::detached(py, || Ok(self.0.intersection(&other.0)))
    }

    fn __sub__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        Self::detached(py, || Ok(self.0.difference(&other.0)))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        match (self.0.iter().next(), self.0.max()) {
            (Some(first), Some(last)) => {
                format!("DeletionVector({} rows from {first} to {last})", self.0.cardinality())
            }
            _ => "DeletionVector(no rows)".to_owned(),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = slf.get_type().getattr(intern!(slf.py(), "from_bytes"))?;
        Ok((from_bytes, (slf.get().to_bytes(slf.py()),)))
    }

    /// Returns the row indexes in ascending order, as an Arrow uint64 array.
    ///
    /// ```python
    /// >>> deltaic.DeletionVector.from_rows([3, 1]).rows().to_pylist()
    /// [1, 3]
    /// ```
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = interrupt::brief(py, || self.0.to_rows())?;
        to_pyarrow(py, Arc::new(UInt64Array::from(rows)))
    }

    /// Returns PROTOCOL.md's portable format: magic number and bitmaps, without the frame of a file.
    ///
    /// ```python
    /// >>> len(deltaic.DeletionVector.from_rows([1, 3]).to_bytes())
    /// 36
    /// ```
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.to_bytes()))
    }

    /// Returns the portable format as Z85 text, the `pathOrInlineDv` of an inline vector.
    ///
    /// ```python
    /// >>> deltaic.DeletionVector.from_rows([1, 3]).to_inline()
    /// '^Bg9^0rr910000000000iXQKl0rr91000315c8Xg0rri4'
    /// ```
    fn to_inline(&self, py: Python<'_>) -> String {
        py.detach(|| z85::encode(&self.0.to_bytes()))
    }

    /// Returns the rows of Arrow data of the file, in the order of the file, that are not in the set.
    /// `first_row`: the index of the data's first row in the file.
    ///
    /// ```python
    /// >>> vector = deltaic.DeletionVector.from_rows([1, 3])
    /// >>> vector.filter(pa.table({"id": [10, 11, 12, 13]})).to_pydict()
    /// {'id': [10, 12]}
    /// ```
    #[pyo3(signature = (data, first_row = None), text_signature = "($self, data, first_row=0)")]
    fn filter<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        first_row: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let first_row = first_row.map_or(Ok(0), row_index)?;
        match any_batch(data)? {
            AnyRecordBatch::RecordBatch(batch) => {
                let batch = with_own_empty_arrays(batch.into_inner()).map_err(Error::from)?;
                PyRecordBatch::new(interrupt::brief(py, || arrays::filter(&self.0, &batch, first_row))?)
                    .into_pyarrow(py)
            }
            AnyRecordBatch::Stream(stream) => {
                let reader = reader_of(AnyRecordBatch::Stream(stream))?;
                let schema = reader.schema();
                let batches =
                    interrupt::run(py, |interrupt| filter_all(&self.0, reader, first_row, interrupt))?;
                PyTable::try_new(batches, schema)?.into_pyarrow(py)
            }
        }
    }

    /// Returns a boolean for each of `count` rows from `first_row` on: True for a row that is not in the set.
    ///
    /// ```python
    /// >>> vector = deltaic.DeletionVector.from_rows([1, 3])
    /// >>> vector.mask(0, 4).to_pylist()
    /// [True, False, True, False]
    /// ```
    fn mask<'py>(
        &self,
        py: Python<'py>,
        first_row: &Bound<'py, PyAny>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (first_row, count) = (row_index(first_row)?, row_index(count)? as usize);
        let mask = interrupt::brief(py, || checked_mask(&self.0, first_row, count))?;
        to_pyarrow(py, Arc::new(mask))
    }
}

/// Iterates over the rows of a vector. A few thousand rows are decoded at once.
#[pyclass]
struct RowIterator {
    rows: Arc<DeletionVector>,
    next: RowIndex,
    ahead: std::vec::IntoIter<RowIndex>,
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self) -> Option<RowIndex> {
        if self.ahead.len() == 0 {
            let rows: Vec<_> = self.rows.rows_within(self.next..MAX_ROW + 1).take(4096).collect();
            self.next = rows.last().map_or(MAX_ROW + 1, |row| row + 1);
            self.ahead = rows.into_iter();
        }
        self.ahead.next()
    }
}

/// Returns the Arrow arrays of `rows`, an Arrow or NumPy array, or None for another object.
fn as_arrays(rows: &Bound<'_, PyAny>) -> PyResult<Option<Vec<ArrayRef>>> {
    let py = rows.py();
    let is_arrow = |rows: &Bound<'_, PyAny>| {
        Ok::<_, PyErr>(
            rows.hasattr(intern!(py, "__arrow_c_array__"))?
                || rows.hasattr(intern!(py, "__arrow_c_stream__"))?,
        )
    };
    let rows = if !is_arrow(rows)? && rows.hasattr(intern!(py, "__array__"))? {
        py.import(intern!(py, "pyarrow"))?.call_method1(intern!(py, "array"), (rows,))?
    } else {
        rows.clone()
    };
    if !is_arrow(&rows)? {
        return Ok(None);
    }
    Ok(Some(rows.extract::<AnyArray>()?.into_chunked_array()?.into_inner().0))
}

fn to_pyarrow(py: Python<'_>, array: ArrayRef) -> PyResult<Bound<'_, PyAny>> {
    let array = PyArray::from_array_ref(array);
    // The method's result borrows from the array, not only from the interpreter.
    let converted = array.to_pyarrow(py)?.unbind();
    Ok(converted.into_bound(py))
}

fn row_index(row: &Bound<'_, PyAny>) -> PyResult<RowIndex> {
    row.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyTypeError>(row.py()) {
            return wrong_type(row, "row index is no integer", EXPECTED_ROWS);
        }
        Error::new(Kind::InvalidArgument, "row index is out of range")
            .found(row)
            .expected(format!("0 to {MAX_ROW}"))
            .into()
    })
}

fn filter_all(
    rows: &DeletionVector,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, arrow::error::ArrowError>>,
    first_row: RowIndex,
    interrupt: &Interrupt,
) -> Result<Vec<RecordBatch>> {
    let mut first_row = first_row;
    let mut kept = Vec::new();
    for batch in batches {
        interrupt.check()?;
        let batch = batch
            .map_err(|error| Error::new(Kind::InvalidArgument, "data cannot be read").caused_by(error))?;
        kept.push(arrays::filter(rows, &batch, first_row)?);
        first_row = first_row.saturating_add(batch.num_rows() as u64);
    }
    Ok(kept)
}

fn checked_mask(rows: &DeletionVector, first_row: RowIndex, count: usize) -> Result<BooleanArray> {
    Vec::<u64>::new().try_reserve_exact(count.div_ceil(64)).map_err(|error| {
        Error::new(Kind::InvalidArgument, "mask does not fit into memory")
            .found(format!("{count} rows"))
            .caused_by(error)
    })?;
    Ok(BooleanArray::new(rows.keep_mask(first_row, count), None))
}
