//! Binds tables of add and remove actions to Python: makes them from others, and selects files by a
//! predicate.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use pyo3::prelude::*;

use crate::error::Error;
use crate::log::schema::{ADD, REMOVE, conform, text};
use crate::log::skipping::selection::{positions, select};
use crate::log::skipping::statistics::num_records;
use crate::log::state::actions;
use crate::log::writing::relocate;
use crate::python::arrow::{array_of, batch_of, strings, table_of, table_of_batches};
use crate::python::interrupt;
use crate::python::predicate::PyPredicate;
use crate::python::schema::PyTableSchema;

#[pyfunction]
fn empty_adds(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    table_of(py, RecordBatch::new_empty(SchemaRef::clone(&ADD)))
}

#[pyfunction]
fn empty_removes(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    table_of(py, RecordBatch::new_empty(SchemaRef::clone(&REMOVE)))
}

#[pyfunction]
#[pyo3(signature = (adds, deletion_timestamp, data_change=true))]
fn removes_of<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    deletion_timestamp: i64,
    data_change: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let adds = batch_of(adds)?;
    table_of(py, interrupt::brief(py, || actions::removes_of(&adds, deletion_timestamp, data_change))?)
}

#[pyfunction]
#[pyo3(signature = (adds, *, data_change=None))]
fn adds_again<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    data_change: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let adds = batch_of(adds)?;
    table_of(py, interrupt::brief(py, || actions::adds_again(&adds, data_change))?)
}

#[pyfunction]
fn absolute_adds<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    location: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let adds = batch_of(adds)?;
    table_of(py, interrupt::run(py, |_| relocate::absolute_adds(&adds, location))?)
}

#[pyfunction]
fn relocated_adds<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    location: &str,
    live: &Bound<'py, PyAny>,
    taken: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (adds, live, taken) = (batch_of(adds)?, batch_of(live)?, strings(taken)?);
    let (adds, copies) = interrupt::run(py, |_| {
        let taken = taken.iter().flatten().map(str::to_owned).collect();
        relocate::relocated_adds(&adds, location, &live, &taken)
    })?;
    let columns: [(&str, ArrayRef); 3] = [
        ("from", Arc::new(StringArray::from_iter_values(copies.iter().map(|copy| &copy.from)))),
        ("to", Arc::new(StringArray::from_iter_values(copies.iter().map(|copy| &copy.to)))),
        ("fresh", Arc::new(BooleanArray::from_iter(copies.iter().map(|copy| Some(copy.fresh))))),
    ];
    Ok((table_of(py, adds)?, table_of(py, RecordBatch::try_from_iter(columns).map_err(Error::from)?)?))
}

#[pyfunction]
fn physical_rows<'py>(py: Python<'py>, adds: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let adds = batch_of(adds)?;
    array_of(py, interrupt::brief(py, || Ok(Arc::new(num_records(text(&adds, "stats")?)) as ArrayRef))?)
}

#[pyfunction]
fn overlapping_paths(
    py: Python<'_>,
    left: &Bound<'_, PyAny>,
    right: &Bound<'_, PyAny>,
) -> PyResult<Vec<String>> {
    let (left, right) = (batch_of(left)?, batch_of(right)?);
    interrupt::brief(py, || actions::overlapping_paths(&left, &right, 10))
}

#[pyfunction]
#[pyo3(signature = (adds, schema, predicate, *, partitions_only=false))]
fn filter_adds<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    schema: &PyTableSchema,
    predicate: Option<&PyPredicate>,
    partitions_only: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = schema; // the predicate is resolved against it already
    let adds = batch_of(adds)?;
    let predicate = predicate.map(|predicate| Arc::clone(&predicate.0));
    let kept = interrupt::run(py, |interrupt| {
        select(&conform(&adds, &ADD)?, predicate.as_deref(), !partitions_only, interrupt)
    })?;
    table_of_batches(py, kept.files, SchemaRef::clone(&ADD))
}

#[pyfunction]
fn files_that_may_match<'py>(
    py: Python<'py>,
    files: &Bound<'py, PyAny>,
    predicate: &PyPredicate,
) -> PyResult<Bound<'py, PyAny>> {
    let (files, predicate) = (batch_of(files)?, Arc::clone(&predicate.0));
    let left = interrupt::run(py, |interrupt| {
        let left = positions(&files, &predicate, interrupt)?;
        Ok(take_record_batch(&files, &UInt32Array::from(left))?)
    })?;
    table_of(py, left)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(empty_adds, m)?)?;
    m.add_function(wrap_pyfunction!(empty_removes, m)?)?;
    m.add_function(wrap_pyfunction!(removes_of, m)?)?;
    m.add_function(wrap_pyfunction!(adds_again, m)?)?;
    m.add_function(wrap_pyfunction!(absolute_adds, m)?)?;
    m.add_function(wrap_pyfunction!(relocated_adds, m)?)?;
    m.add_function(wrap_pyfunction!(physical_rows, m)?)?;
    m.add_function(wrap_pyfunction!(overlapping_paths, m)?)?;
    m.add_function(wrap_pyfunction!(filter_adds, m)?)?;
    m.add_function(wrap_pyfunction!(files_that_may_match, m)?)
}
