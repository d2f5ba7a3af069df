//! `deltaic._core`, section data_file.

use std::sync::Arc;

use pyo3::prelude::*;

use super::arrow::batch_of;
use super::interrupt;
use super::predicate::PyPredicate;
use super::schema::PyTableSchema;
use super::store::store_of;
use super::stream::PyReadStream;
use crate::data_file::files::Files;
use crate::data_file::open::{Plan, Request};
use crate::data_file::reader::Reader;

/// Logical rows of files, deleted ones skipped (stub: `read`).
#[pyfunction]
#[pyo3(signature = (store, schema, files, columns, predicate=None, *, row_ids=false, constants=vec![], threads=None, batch_size=65536,
                    limit=None, prefetch=None, pruning=true))]
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
    threads: Option<usize>,
    batch_size: usize,
    limit: Option<usize>,
    prefetch: Option<usize>,
    pruning: bool,
) -> PyResult<PyReadStream> {
    let (store, files, schema) = (store_of(store)?, batch_of(files)?, Arc::clone(&schema.0));
    let predicate = predicate.map(|predicate| predicate.0.as_ref().clone());
    let request = Request { columns, predicate, row_ids, constants, batch_size: batch_size.max(1), pruning };
    let plan = interrupt::brief(py, || Plan::new(store, schema, Files::new(files)?, request))?;
    Ok(PyReadStream::of_scan(Reader::new(plan, threads, limit, prefetch)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(read, m)?)
}
