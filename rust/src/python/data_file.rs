//! `deltaic._core`, section data_file.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use super::arrow::{array_of, batch_of, table_of};
use super::interrupt;
use super::predicate::PyPredicate;
use super::schema::PyTableSchema;
use super::store::store_of;
use super::stream::{Batches, PyReadStream};
use crate::data_file::adopt;
use crate::data_file::conform::{Casting, Conform};
use crate::data_file::files::Files;
use crate::data_file::hand_over;
use crate::data_file::measure::{self, Measuring};
use crate::data_file::open::{Plan, Request};
use crate::data_file::options::WriteOptions;
use crate::data_file::reader::Reader;
use crate::data_file::writer;
use crate::error::{Error, Kind};

/// Logical rows of files, deleted ones skipped (stub: `read`).
#[pyfunction]
#[pyo3(signature = (store, schema, files, columns, predicate=None, *, row_ids=false, constants=vec![], row_tracking=None, threads=None,
                    batch_size=65536, limit=None, prefetch=None, pruning=true))]
#[allow(clippy::too_many_arguments)] // the stub's signature
fn read(
    py: Python<'_>,
    store: &Bound<'_, PyAny>,
    schema: &PyTableSchema,
    files: &Bound<'_, PyAny>,
    columns: Vec<String>,
    predicate: Option<&PyPredicate>,
    row_ids: bool,
    constants: Vec<String>,
    row_tracking: Option<(String, String)>,
    threads: Option<usize>,
    batch_size: usize,
    limit: Option<usize>,
    prefetch: Option<usize>,
    pruning: bool,
) -> PyResult<PyReadStream> {
    let (store, files, schema) = (store_of(store)?, batch_of(files)?, Arc::clone(&schema.0));
    let predicate = predicate.map(|predicate| predicate.0.as_ref().clone());
    let request = Request { columns, predicate, row_ids, constants, row_tracking, batch_size: batch_size.max(1), pruning };
    let plan = interrupt::brief(py, || Plan::new(store, schema, Files::new(files)?, request))?;
    Ok(PyReadStream::of_scan(Reader::new(plan, threads, limit, prefetch)))
}

/// Any Arrow data as the table's columns (stub: `conform`).
#[pyfunction(name = "conform")]
#[pyo3(signature = (data, schema, *, casting="strict"))]
fn conform_data(data: AnyRecordBatch, schema: &PyTableSchema, casting: &str) -> PyResult<PyReadStream> {
    let casting = match casting {
        "strict" => Casting::Strict,
        "try" => Casting::Try,
        other => return Err(Error::new(Kind::InvalidArgument, "unknown casting").found(other).expected("strict or try").into()),
    };
    let input = data.into_reader()?;
    let mut conform = Conform::new(&schema.0, &input.schema(), casting)?;
    let output = Arc::clone(conform.schema());
    let batches = input.map(move |batch| conform.apply(&batch.map_err(writer::from_source)?));
    Ok(PyReadStream::new(Box::new(Batches::new(output, batches))))
}

/// Writes data files (stub: `write`).
#[pyfunction]
#[pyo3(signature = (store, schema, data, options="{}"))]
fn write<'py>(
    py: Python<'py>,
    store: &Bound<'py, PyAny>,
    schema: &PyTableSchema,
    data: AnyRecordBatch,
    options: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let (store, schema, options) = (store_of(store)?, Arc::clone(&schema.0), WriteOptions::parse(options)?);
    let input = data.into_reader()?;
    let adds = interrupt::run(py, move |interrupt| writer::write(&store, &schema, input, &options, interrupt))?;
    table_of(py, adds)
}

/// Statistics of files that are there already (stub: `file_statistics`).
#[pyfunction]
#[pyo3(signature = (store, schema, files, options="{}", *, tight=false))]
fn file_statistics<'py>(
    py: Python<'py>,
    store: &Bound<'py, PyAny>,
    schema: &PyTableSchema,
    files: &Bound<'py, PyAny>,
    options: &str,
    tight: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (store, schema, files, options) = (store_of(store)?, Arc::clone(&schema.0), batch_of(files)?, WriteOptions::parse(options)?);
    let how = if tight { Measuring::LiveRows } else { Measuring::Footers };
    let measured = interrupt::run(py, move |interrupt| measure::measure(&store, &schema, files, &options, how, interrupt))?;
    table_of(py, measured)
}

/// Which files have values of dropped columns (stub: `has_dropped_columns`).
#[pyfunction]
fn has_dropped_columns<'py>(
    py: Python<'py>,
    store: &Bound<'py, PyAny>,
    schema: &PyTableSchema,
    files: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (store, schema, files) = (store_of(store)?, Arc::clone(&schema.0), batch_of(files)?);
    let dropped = interrupt::run(py, move |interrupt| measure::has_dropped_columns(&store, &schema, files, interrupt))?;
    array_of(py, Arc::new(dropped))
}

/// What another engine's reader must know of each file (stub: `hand_over`).
#[pyfunction(name = "hand_over")]
#[pyo3(signature = (store, schema, files, *, bits=false))]
fn hand_over_files<'py>(
    py: Python<'py>,
    store: &Bound<'py, PyAny>,
    schema: &PyTableSchema,
    files: &Bound<'py, PyAny>,
    bits: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (store, schema, files) = (store_of(store)?, Arc::clone(&schema.0), batch_of(files)?);
    let known = interrupt::run(py, move |_| hand_over::hand_over(&store, &schema, files, bits))?;
    table_of(py, known)
}

/// Statistics of what Spark has written (stub: `footers`).
#[pyfunction(name = "footers")]
#[pyo3(signature = (store, schema, adds, options="{}"))]
fn footers_of<'py>(
    py: Python<'py>,
    store: &Bound<'py, PyAny>,
    schema: &PyTableSchema,
    adds: &Bound<'py, PyAny>,
    options: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let (store, schema, adds, options) = (store_of(store)?, Arc::clone(&schema.0), batch_of(adds)?, WriteOptions::parse(options)?);
    let adds = interrupt::run(py, move |interrupt| adopt::footers(&store, &schema, adds, &options, interrupt))?;
    table_of(py, adds)
}

/// What Spark has written below a folder (stub: `adopt`).
#[pyfunction(name = "adopt")]
#[pyo3(signature = (store, schema, folder, options="{}", *, footers=true))]
fn adopt_files<'py>(
    py: Python<'py>,
    store: &Bound<'py, PyAny>,
    schema: &PyTableSchema,
    folder: String,
    options: &str,
    footers: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (store, schema, options) = (store_of(store)?, Arc::clone(&schema.0), WriteOptions::parse(options)?);
    let adds = interrupt::run(py, move |interrupt| {
        let adds = adopt::adopt(&store, &schema, &folder, &options, interrupt)?;
        if footers { adopt::footers(&store, &schema, adds, &options, interrupt) } else { Ok(adds) }
    })?;
    table_of(py, adds)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(conform_data, m)?)?;
    m.add_function(wrap_pyfunction!(write, m)?)?;
    m.add_function(wrap_pyfunction!(file_statistics, m)?)?;
    m.add_function(wrap_pyfunction!(has_dropped_columns, m)?)?;
    m.add_function(wrap_pyfunction!(hand_over_files, m)?)?;
    m.add_function(wrap_pyfunction!(adopt_files, m)?)?;
    m.add_function(wrap_pyfunction!(footers_of, m)?)?;
    m.add_function(wrap_pyfunction!(read, m)?)
}
