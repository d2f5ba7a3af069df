//! `PythonOwned`, which holds Python objects in a value that any thread may drop, with or without the
//! interpreter's lock.
//!
//! pyarrow releases the lock before it calls the release callback of an Arrow stream. If that happens within
//! a call of this module (the cyclic collector runs during the call and frees a reader), PyO3 takes the
//! thread to be attached, and an object that is dropped then aborts the process.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// Dropped values, until a thread that certainly has the lock frees them.
static DROPPED: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

/// A value with Python objects in it (`Py`, `PyErr`) that may be dropped anywhere: [`free`] frees them later.
pub struct PythonOwned<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> PythonOwned<T> {
    /// Holds `value`.
    pub fn new(value: T) -> Self {
        Self(Some(value))
    }
    /// Returns the value, which then is dropped in the usual way. It is never `None`.
    pub fn into_inner(mut self) -> Option<T> {
        self.0.take()
    }
    /// Returns a reference to the value. It is never `None`.
    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T: Send + 'static> Drop for PythonOwned<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            DROPPED.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(value));
        }
    }
}

impl<T: Send + 'static> fmt::Debug for PythonOwned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PythonOwned")
    }
}

/// Frees the values that were dropped since the last call. Called at the beginning of calls from Python,
/// which have the lock.
pub fn free(_py: Python<'_>) {
    let dropped = std::mem::take(&mut *DROPPED.lock().unwrap_or_else(PoisonError::into_inner));
    drop(dropped); // not under the mutex: an object's finaliser may call this again
}

/// A Python exception as the source of an error of the core.
#[derive(Debug)]
pub struct PythonException {
    error: PythonOwned<PyErr>,
    text: String,
}

impl PythonException {
    /// Keeps the exception and its text, as reading the text of a Python object needs the lock.
    pub fn new(_py: Python<'_>, error: PyErr) -> Self {
        Self { text: error.to_string(), error: PythonOwned::new(error) }
    }
    /// Returns the exception itself.
    pub fn into_inner(self) -> Option<PyErr> {
        self.error.into_inner()
    }
}

impl fmt::Display for PythonException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for PythonException {}
