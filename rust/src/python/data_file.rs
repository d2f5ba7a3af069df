//! Binds data files to Python: reading, writing, statistics and footers, as in section `data_file.rs` of
//! `_core.pyi`.

use std::sync::Arc;

use arrow::array::Array;
use pyo3::prelude::*;
use pyo3_arrow::PySchema;
use pyo3_arrow::input::AnyRecordBatch;

use super::arrow::{array_of, batch_of, reader_of, table_of};
use super::interrupt;
use super::predicate::PyPredicate;
use super::schema::{PyTableSchema, texts_of};
use super::store::store_of;
use super::stream::{Batches, PyReadStream};
use crate::data_file::adopt;
use crate::data_file::conform::{CastPolicy, Conform};
use crate::data_file::encoded;
use crate::data_file::files::Files;
use crate::data_file::hand_over;
use crate::data_file::map_keys;
use crate::data_file::measure::{self, StatisticsSource};
use crate::data_file::open::{Plan, Request};
use crate::data_file::options::WriteOptions;
use crate::data_file::plain_files::PlainFiles;
use crate::data_file::reader::Reader;
use crate::data_file::survey::{self, Partitioning, Survey};
use crate::data_file::writer;
use crate::error::{Error, Kind};
use crate::log::schema::text;

/// Reads the logical rows of files, without deleted rows (stub: `read`).
#[pyfunction]
#[pyo3(signature = (store, schema, files, columns, predicate=None, *, row_ids=false, constants=vec![],
                    row_tracking=None, threads=None, batch_size=65536, limit=None, memory_limit=None,
                    pruning=true, encoded=vec![], views=vec![]))]
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
    memory_limit: Option<u64>,
    pruning: bool,
    encoded: Vec<String>,
    views: Vec<String>,
) -> PyResult<PyReadStream> {
    let (store, files, schema) = (store_of(store)?, batch_of(files)?, Arc::clone(&schema.0));
    let predicate = predicate.map(|predicate| predicate.0.as_ref().clone());
    let encoded = texts_of(encoded, views);
    let batch_size = batch_size.max(1);
    let request =
        Request { columns, predicate, row_ids, constants, row_tracking, batch_size, limit, pruning, encoded };
    let plan = interrupt::brief(py, || Plan::new(store, schema, Files::new(files)?, request))?;
    Ok(PyReadStream::of_scan(Reader::new(plan, threads, memory_limit)))
}

/// Returns the text columns that a file has dictionary-encoded (stub: `dictionary_columns`).
#[pyfunction]
fn dictionary_columns(
    py: Python<'_>,
    store: &Bound<'_, PyAny>,
    schema: &PyTableSchema,
    files: &Bound<'_, PyAny>,
    columns: Vec<String>,
) -> PyResult<Vec<String>> {
    let (store, files, schema) = (store_of(store)?, batch_of(files)?, Arc::clone(&schema.0));
    let found = interrupt::brief(py, || {
        let plan = Plan::new(store, schema, Files::new(files)?, Request::unpruned(columns))?;
        encoded::dictionary_columns(&plan)
    })?;
    Ok(found)
}

/// Returns the files that another Parquet reader reads as `read` does (stub: `plain_files`).
#[pyfunction]
fn plain_files(
    py: Python<'_>,
    store: &Bound<'_, PyAny>,
    schema: &PyTableSchema,
    files: &Bound<'_, PyAny>,
    columns: Vec<String>,
) -> PyResult<Option<(Vec<String>, Vec<String>, u64, bool)>> {
    let (store, files, schema) = (store_of(store)?, batch_of(files)?, Arc::clone(&schema.0));
    let found = interrupt::brief(py, || {
        PlainFiles::of(&Plan::new(store, schema, Files::new(files)?, Request::unpruned(columns))?)
    })?;
    Ok(found.map(|found| {
        let (bytes, again) = (found.unverified_bytes(), found.met_again());
        (found.paths, found.names, bytes, again)
    }))
}

/// Compares the checksums of plain files (stub: `verify_pages`).
#[pyfunction]
fn verify_pages(
    py: Python<'_>,
    store: &Bound<'_, PyAny>,
    schema: &PyTableSchema,
    files: &Bound<'_, PyAny>,
    columns: Vec<String>,
) -> PyResult<()> {
    let (store, files, schema) = (store_of(store)?, batch_of(files)?, Arc::clone(&schema.0));
    interrupt::run(py, move |interrupt| {
        let found =
            PlainFiles::of(&Plan::new(store, schema, Files::new(files)?, Request::unpruned(columns))?)?;
        found.map_or(Ok(()), |found| found.verify(interrupt))
    })
}

/// Converts Arrow data to the table's columns (stub: `conform`).
#[pyfunction(name = "conform")]
#[pyo3(signature = (data, schema, *, casting="strict", unique_keys=false))]
fn conform_data(
    data: AnyRecordBatch,
    schema: &PyTableSchema,
    casting: &str,
    unique_keys: bool,
) -> PyResult<PyReadStream> {
    let casting = match casting {
        "strict" => CastPolicy::Strict,
        "try" => CastPolicy::Try,
        other => {
            return Err(Error::new(Kind::InvalidArgument, "unknown casting")
                .found(other)
                .expected("strict or try")
                .into());
        }
    };
    let input = reader_of(data)?;
    let mut conform = Conform::new(&schema.0, &input.schema(), casting)?;
    let output = Arc::clone(conform.schema());
    let mut rows = 0;
    let batches = input.map(move |batch| {
        let batch = conform.apply(&batch.map_err(writer::from_source)?)?;
        if unique_keys {
            map_keys::check_unique(&batch, rows)?;
        }
        rows += batch.num_rows() as u64;
        Ok(batch)
    });
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
    let input = reader_of(data)?;
    let adds =
        interrupt::run(py, move |interrupt| writer::write(&store, &schema, input, &options, interrupt))?;
    table_of(py, adds)
}

/// Returns the statistics of files that exist already (stub: `file_statistics`).
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
    let (store, schema, files, options) =
        (store_of(store)?, Arc::clone(&schema.0), batch_of(files)?, WriteOptions::parse(options)?);
    let how = if tight { StatisticsSource::LiveRows } else { StatisticsSource::Footers };
    let measured = interrupt::run(py, move |interrupt| {
        measure::measure(&store, &schema, files, &options, how, interrupt)
    })?;
    table_of(py, measured)
}

/// Returns, for each file, whether it has values of dropped columns (stub: `has_dropped_columns`).
#[pyfunction]
fn has_dropped_columns<'py>(
    py: Python<'py>,
    store: &Bound<'py, PyAny>,
    schema: &PyTableSchema,
    files: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (store, schema, files) = (store_of(store)?, Arc::clone(&schema.0), batch_of(files)?);
    let dropped =
        interrupt::run(py, move |interrupt| measure::has_dropped_columns(&store, &schema, files, interrupt))?;
    array_of(py, Arc::new(dropped))
}

/// Returns what another engine needs to read each file (stub: `hand_over`).
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

/// Returns the statistics of files that Spark has written, from their footers (stub: `footers`).
#[pyfunction(name = "footers")]
#[pyo3(signature = (store, schema, adds, options="{}"))]
fn footers_of<'py>(
    py: Python<'py>,
    store: &Bound<'py, PyAny>,
    schema: &PyTableSchema,
    adds: &Bound<'py, PyAny>,
    options: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let (store, schema, adds, options) =
        (store_of(store)?, Arc::clone(&schema.0), batch_of(adds)?, WriteOptions::parse(options)?);
    let adds =
        interrupt::run(py, move |interrupt| adopt::footers(&store, &schema, adds, &options, interrupt))?;
    table_of(py, adds)
}

/// Returns the files that Spark has written below a folder (stub: `adopt`).
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

#[pyfunction]
#[pyo3(signature = (files, *, hive=true))]
fn partition_folders(files: &Bound<'_, PyAny>, hive: bool) -> PyResult<Vec<(Vec<String>, String)>> {
    let files = batch_of(files)?;
    let paths = text(&files, "path")?;
    let columns = survey::partition_columns((0..paths.len()).map(|row| paths.value(row)), partitioning(hive));
    Ok(columns.into_iter().map(|(names, first)| (names, paths.value(first).to_owned())).collect())
}

fn partitioning(hive: bool) -> Partitioning {
    if hive { Partitioning::Hive } else { Partitioning::Directory }
}

/// Parquet files that belong to no table, and the schema and partitions found in them (stub: `Survey`).
#[pyclass(name = "Survey", module = "deltaic._core", frozen)]
struct PySurvey(Survey);

#[pymethods]
impl PySurvey {
    #[new]
    #[pyo3(signature = (store, files, *, hive=true, progress=None))]
    fn new(
        py: Python<'_>,
        store: &Bound<'_, PyAny>,
        files: &Bound<'_, PyAny>,
        hive: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (store, files) = (store_of(store)?, batch_of(files)?);
        let how = partitioning(hive);
        let report = |done: usize| {
            if let Some(progress) = &progress {
                // A message that fails is no failure of the work.
                let _ = Python::attach(|py| progress.call1(py, (done,)).map(drop));
            }
        };
        interrupt::run(py, |interrupt| Survey::new(store, &files, how, &report, interrupt)).map(Self)
    }
    #[getter]
    fn schemas(&self) -> Vec<(&str, &str)> {
        self.0.schemas().collect()
    }
    #[getter]
    fn arrow_schemas<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyAny>, &str)>> {
        self.0
            .arrow_schemas()
            .map(|(schema, path)| Ok((PySchema::new(Arc::new(schema)).into_pyarrow(py)?, path)))
            .collect()
    }
    fn values<'py>(&self, py: Python<'py>, level: usize) -> PyResult<Bound<'py, PyAny>> {
        array_of(py, Arc::new(self.0.values(level)))
    }
    #[pyo3(signature = (schema, options="{}", *, statistics=true))]
    fn adds<'py>(
        &self,
        py: Python<'py>,
        schema: &PyTableSchema,
        options: &str,
        statistics: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (schema, options) = (Arc::clone(&schema.0), WriteOptions::parse(options)?);
        table_of(py, interrupt::run(py, |interrupt| self.0.adds(&schema, &options, statistics, interrupt))?)
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySurvey>()?;
    m.add_function(wrap_pyfunction!(partition_folders, m)?)?;
    m.add_function(wrap_pyfunction!(dictionary_columns, m)?)?;
    m.add_function(wrap_pyfunction!(plain_files, m)?)?;
    m.add_function(wrap_pyfunction!(verify_pages, m)?)?;
    m.add_function(wrap_pyfunction!(conform_data, m)?)?;
    m.add_function(wrap_pyfunction!(write, m)?)?;
    m.add_function(wrap_pyfunction!(file_statistics, m)?)?;
    m.add_function(wrap_pyfunction!(has_dropped_columns, m)?)?;
    m.add_function(wrap_pyfunction!(hand_over_files, m)?)?;
    m.add_function(wrap_pyfunction!(adopt_files, m)?)?;
    m.add_function(wrap_pyfunction!(footers_of, m)?)?;
    m.add_function(wrap_pyfunction!(read, m)?)
}
