//! A user's Python object as a [`Store`]. Each call attaches the current thread to the interpreter.
//!
//! The methods of the object are those of `deltaic._core.LogStore` in the stub.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pyo3::exceptions::{PyConnectionError, PyFileExistsError, PyFileNotFoundError, PyTimeoutError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::python_owned::{PythonException, PythonOwned};
use crate::error::{Error, Kind, Result};
use crate::store::path::check_relative;
use crate::store::{ObjectMeta, ObjectWriter, PutOutcome, Store};

/// The object, and the location as users know it.
#[derive(Debug)]
pub struct PythonStore {
    object: Arc<PythonOwned<Py<PyAny>>>,
    location: String,
}

impl PythonStore {
    /// Makes a store of an object. `location`: used for messages, and for absolute paths in the log.
    pub fn new(object: Py<PyAny>, location: String) -> Self {
        Self {
            object: Arc::new(PythonOwned::new(object)),
            location: location.trim_end_matches('/').to_owned(),
        }
    }

    fn call<T>(
        &self,
        path: &str,
        work: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Result<T> {
        let gone = || Error::new(Kind::Io, "the user's store no longer exists").at(path);
        let object = self.object.get().ok_or_else(gone)?;
        Python::attach(|py| work(object.bind(py)).map_err(|error| foreign(py, path, error)))
    }
}

fn foreign(py: Python<'_>, path: &str, error: PyErr) -> Error {
    if error.is_instance_of::<PyFileNotFoundError>(py) {
        return Error::new(Kind::NotFound, "no such file")
            .at(path)
            .caused_by(PythonException::new(py, error));
    }
    Error::new(Kind::Foreign, "the user's store raised an exception")
        .at(path)
        .caused_by(PythonException::new(py, error))
}

impl Store for PythonStore {
    fn location(&self) -> &str {
        &self.location
    }

    fn list_from(&self, prefix: &str, start_after: Option<&str>, recursive: bool) -> Result<Vec<ObjectMeta>> {
        let rows = self.call(prefix, |object| {
            let answer = object.call_method1("list_from", (prefix, start_after, recursive))?;
            answer.try_iter()?.map(|row| row?.extract::<(String, u64, i64)>()).collect::<PyResult<Vec<_>>>()
        })?;
        let mut found: Vec<_> = rows
            .into_iter()
            .map(|(path, size, modified_ms)| ObjectMeta {
                path,
                size,
                modified_ms,
                symlink: false,
                identity: 0,
            })
            .collect();
        let base = prefix.trim_end_matches('/');
        let start = if base.is_empty() { String::new() } else { format!("{base}/") };
        let after = start_after.map(|after| format!("{start}{after}"));
        // Some stores do not list in order, or list beyond the folder; the order and the folder are ensured
        // here.
        found.retain(|meta| {
            meta.path.strip_prefix(start.as_str()).is_some_and(|rest| recursive || !rest.contains('/'))
                && after.as_ref().is_none_or(|after| meta.path > *after)
        });
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn head(&self, path: &str) -> Result<Option<ObjectMeta>> {
        check_relative(path)?;
        let found: Option<(u64, i64)> =
            self.call(path, |object| object.call_method1("head", (path,))?.extract())?;
        Ok(found.map(|(size, modified_ms)| ObjectMeta {
            path: path.to_owned(),
            size,
            modified_ms,
            symlink: false,
            identity: 0,
        }))
    }

    fn get(&self, path: &str) -> Result<Bytes> {
        check_relative(path)?;
        self.call(path, |object| {
            let data = object.call_method1("read", (path,))?;
            Ok(Bytes::copy_from_slice(data.extract::<&[u8]>()?))
        })
    }

    fn get_at_most(&self, path: &str, _most: u64) -> Result<Option<Bytes>> {
        self.get(path).map(Some) // the object is in Python's memory by now
    }

    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        check_relative(path)?;
        let read = |range: &Range<u64>| {
            let data = self.call(path, |object| {
                let data = object.call_method1("read", (path, range.start, range.end))?;
                Ok(Bytes::copy_from_slice(data.extract::<&[u8]>()?))
            })?;
            if data.len() as u64 == range.end.saturating_sub(range.start) {
                Ok(data)
            } else {
                Err(Error::protocol("the store returned another number of bytes than requested")
                    .at(path)
                    .found(data.len())
                    .expected(format!("bytes {} to {}", range.start, range.end)))
            }
        };
        ranges.iter().map(read).collect()
    }

    fn put_if_absent(&self, path: &str, data: Bytes) -> Result<PutOutcome> {
        check_relative(path)?;
        self.call(path, |object| {
            let py = object.py();
            match object.call_method1("write_if_absent", (path, PyBytes::new(py, &data))) {
                Ok(answer) => Ok(match answer.extract::<Option<bool>>()? {
                    Some(true) => PutOutcome::Created,
                    Some(false) => PutOutcome::Exists,
                    None => PutOutcome::Unknown,
                }),
                Err(error) if error.is_instance_of::<PyFileExistsError>(py) => Ok(PutOutcome::Exists),
                Err(error)
                    if error.is_instance_of::<PyTimeoutError>(py)
                        || error.is_instance_of::<PyConnectionError>(py) =>
                {
                    log::warn!(target: "deltaic", "put of {path} had no answer: {error}");
                    Ok(PutOutcome::Unknown)
                }
                Err(error) => Err(error),
            }
        })
    }

    fn put(&self, path: &str, data: Bytes) -> Result<()> {
        check_relative(path)?;
        self.call(path, |object| {
            object.call_method1("write", (path, PyBytes::new(object.py(), &data))).map(drop)
        })
    }

    fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        check_relative(path)?;
        let store = Self { object: Arc::clone(&self.object), location: self.location.clone() };
        Ok(Box::new(ObjectBuffer { store, path: path.to_owned(), data: Vec::new() }))
    }

    fn delete(&self, path: &str) -> Result<bool> {
        check_relative(path)?;
        self.call(path, |object| object.call_method1("delete", (path,))?.extract())
    }

    fn remove_empty_directories(&self, _prefix: &str) -> Result<u64> {
        Ok(0)
    }

    fn outside(&self, location: &str) -> Result<(Arc<dyn Store>, String)> {
        let place = crate::store::path::without_query(location);
        let error = Error::new(Kind::PathOutsideTable, "the file is outside the table's own store").at(place);
        Err(error.found(place).expected("a path below the table's root"))
    }
}

/// A file that is in memory until it is finished, as the object's methods write whole objects.
struct ObjectBuffer {
    store: PythonStore,
    path: String,
    data: Vec<u8>,
}

impl io::Write for ObjectBuffer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.data.extend_from_slice(data);
        Ok(data.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ObjectWriter for ObjectBuffer {
    fn finish(self: Box<Self>) -> Result<u64> {
        let size = self.data.len() as u64;
        self.store.put(&self.path, Bytes::from(self.data))?;
        Ok(size)
    }
    fn abort(self: Box<Self>) {}
}
