//! `ReadStream`: a running scan, or any other stream of the core, as an Arrow stream. A `ReadStream` can be
//! read once, and keeps its first error.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use pyo3::exceptions::{PyBaseException, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};
use pyo3_arrow::{PyRecordBatchReader, PySchema, PyTable};

use super::interrupt::{check, guarded};
use super::python_owned::{PythonException, PythonOwned};
use crate::data_file::queue::QueueItem;
use crate::data_file::reader::{Observer, Reader};
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;

/// The consumer checks for signals once in this time.
const POLL: Duration = Duration::from_millis(100);

/// A source of batches, with a timeout for each.
pub trait Source: Send {
    /// Returns the schema of all batches.
    fn schema(&self) -> SchemaRef;
    /// Returns the next batch, the end, or that none came within `timeout`.
    fn next(&mut self, timeout: Duration) -> Result<QueueItem>;
    /// Stops the source, because no more batches are needed.
    fn cancel(&mut self) {}
}

impl Source for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(Reader::schema(self))
    }
    fn next(&mut self, timeout: Duration) -> Result<QueueItem> {
        Reader::next(self, timeout)
    }
    fn cancel(&mut self) {
        Reader::cancel(self);
    }
}

/// An iterator of batches as a source. `next` ignores the timeout, so signals are checked between batches
/// only.
pub struct Batches<I> {
    schema: SchemaRef,
    batches: I,
}

impl<I: Iterator<Item = Result<RecordBatch>> + Send> Batches<I> {
    /// Makes a source of batches that have this schema.
    pub fn new(schema: SchemaRef, batches: I) -> Self {
        Self { schema, batches }
    }
}

impl<I: Iterator<Item = Result<RecordBatch>> + Send> Source for Batches<I> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
    fn next(&mut self, _timeout: Duration) -> Result<QueueItem> {
        Ok(self.batches.next().transpose()?.map_or(QueueItem::End, QueueItem::Batch))
    }
}

/// The first error, shared by a stream and the Arrow readers made of it.
type FirstError = Arc<Mutex<Option<PythonOwned<PyErr>>>>;

/// A stream with `__arrow_c_stream__`, which can be called once (stub: `ReadStream`).
#[pyclass(name = "ReadStream", module = "deltaic._core", frozen)]
pub struct PyReadStream {
    schema: SchemaRef,
    source: Mutex<Option<Box<dyn Source>>>,
    error: FirstError,
    /// The first error as a Python object, once it was raised. Its traceback refers to the frames of the
    /// caller, and they may refer to this stream: the cyclic collector must see it.
    raised: Mutex<Option<PythonOwned<Py<PyBaseException>>>>,
    observer: Option<Observer>,
    stop: Interrupt,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PyReadStream {
    /// Makes a stream of a source.
    pub fn new(source: Box<dyn Source>) -> Self {
        Self {
            schema: source.schema(),
            source: Mutex::new(Some(source)),
            error: FirstError::default(),
            raised: Mutex::default(),
            observer: None,
            stop: Interrupt::default(),
        }
    }
    /// Makes a stream of a running scan.
    pub fn of_scan(reader: Reader) -> Self {
        let observer = Some(reader.observer());
        Self { observer, ..Self::new(Box::new(reader)) }
    }
    fn take(&self) -> PyResult<SignalReader> {
        let source = lock(&self.source)
            .take()
            .ok_or_else(|| PyOSError::new_err("the stream has been read already"))?;
        let (schema, error, stop) = (Arc::clone(&self.schema), Arc::clone(&self.error), self.stop.clone());
        Ok(SignalReader { schema, source, error, stop, looked: Instant::now(), done: false })
    }
}

#[pymethods]
impl PyReadStream {
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PySchema::new(Arc::clone(&self.schema)).into_pyarrow(py)
    }
    fn to_reader<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyRecordBatchReader::new(Box::new(self.take()?)).into_pyarrow(py)
    }
    fn to_table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let reader = self.take()?;
        let batches = py.detach(|| reader.collect::<Result<Vec<_>, ArrowError>>());
        self.check(py)?;
        let batches = batches.map_err(Error::from)?;
        PyTable::try_new(batches, Arc::clone(&self.schema))?.into_pyarrow(py)
    }
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let first =
            lock(&self.error).take().and_then(PythonOwned::into_inner).map(|error| error.into_value(py));
        let mut raised = lock(&self.raised);
        if let Some(first) = first {
            raised.get_or_insert_with(|| PythonOwned::new(first));
        }
        let known = raised.as_ref().and_then(PythonOwned::get).map(|error| error.clone_ref(py));
        drop(raised);
        known.map_or(Ok(()), |error| Err(PyErr::from_value(error.into_bound(py).into_any())))
    }
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.raised.try_lock() {
            Ok(raised) => {
                raised.as_ref().and_then(PythonOwned::get).map_or(Ok(()), |error| visit.call(error))
            }
            Err(_) => Ok(()),
        }
    }
    fn __clear__(&self) {
        let raised = lock(&self.raised).take();
        drop(raised.and_then(PythonOwned::into_inner)); // not under the mutex: a finaliser may call `check`
    }
    fn cancel(&self) {
        self.stop.raise();
        if let Some(observer) = &self.observer {
            observer.cancel();
        }
        lock(&self.source).take();
    }
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = PyDict::new(py);
        for (name, value) in self.observer.iter().flat_map(Observer::metrics) {
            metrics.set_item(name, value)?;
        }
        Ok(metrics)
    }
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PySchema::new(Arc::clone(&self.schema)).into_pyobject(py)?.call_method0("__arrow_c_schema__")
    }
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reader = PyRecordBatchReader::new(Box::new(self.take()?));
        reader.into_pyobject(py)?.call_method1("__arrow_c_stream__", (requested_schema,))
    }
}

/// A source as an Arrow reader, which checks for signals and keeps the first error.
struct SignalReader {
    schema: SchemaRef,
    source: Box<dyn Source>,
    error: FirstError,
    stop: Interrupt,
    looked: Instant,
    done: bool,
}

impl SignalReader {
    fn pull(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.stop.check()?;
            if self.looked.elapsed() >= POLL {
                self.looked = Instant::now();
                check_signals()?;
            }
            match guarded(|| self.source.next(POLL))? {
                QueueItem::Batch(batch) => return Ok(Some(batch)),
                QueueItem::End => return Ok(None),
                QueueItem::Waiting => {}
            }
        }
    }
}

/// Returns an error after Ctrl-C. Does nothing on other threads than the main one, and while Python exits.
pub fn check_signals() -> Result<()> {
    let signal = Python::try_attach(|py| check(py).err().map(|signal| PythonException::new(py, signal)));
    match signal.flatten() {
        Some(signal) => Err(Error::new(Kind::Foreign, "stopped by a signal").caused_by(signal)),
        None => Ok(()),
    }
}

impl Iterator for SignalReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        match self.pull() {
            Ok(Some(batch)) => Some(Ok(batch)),
            Ok(None) => {
                self.done = true;
                None
            }
            Err(error) => {
                self.done = true;
                self.source.cancel();
                let text = error.to_string();
                lock(&self.error).get_or_insert_with(|| PythonOwned::new(PyErr::from(error)));
                Some(Err(ArrowError::ExternalError(text.into())))
            }
        }
    }
}

impl RecordBatchReader for SignalReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyReadStream>()
}
