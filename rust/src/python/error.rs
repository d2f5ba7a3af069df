//! Converts [`Error`] to the classes of `deltaic.errors` and Python's own.

use pyo3::exceptions::{PyFileNotFoundError, PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::python_owned::PythonException;
use crate::error::{Error, Kind};
use crate::store::local::STORE_FAILED;

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error.kind() {
            Kind::Foreign => {
                let text = error.to_string();
                let source = error.into_source().and_then(|source| source.downcast::<PythonException>().ok());
                source.and_then(|raised| raised.into_inner()).unwrap_or_else(|| PyOSError::new_err(text))
            }
            Kind::NotFound | Kind::Gone => PyFileNotFoundError::new_err(error.to_string()),
            Kind::Io => os_error(&error),
            Kind::Interrupted => PyKeyboardInterrupt::new_err(error.to_string()),
            kind => Python::attach(|py| raise(py, class_of(kind), &error).unwrap_or_else(|failure| failure)),
        }
    }
}

/// Makes an error of Python's own class for the system's error number: `PermissionError(13, "Permission
/// denied", "/t/part-0.parquet")`.
fn os_error(error: &Error) -> PyErr {
    let system = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    let Some(number) = system.and_then(std::io::Error::raw_os_error) else {
        return PyOSError::new_err(error.to_string());
    };
    let text = std::io::Error::from_raw_os_error(number).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let text = if error.message() == STORE_FAILED {
        text.to_owned()
    } else {
        format!("{text} ({})", error.message())
    };
    match error.location() {
        // The last argument is `winerror`, from which Python derives `errno` on Windows. Other systems ignore
        // it.
        Some(place) => PyOSError::new_err((number, text, place.to_owned(), number)),
        None => PyOSError::new_err((number, text)),
    }
}

fn class_of(kind: Kind) -> &'static str {
    match kind {
        Kind::InvalidArgument => "InvalidArgumentError",
        Kind::UnsupportedFeature => "UnsupportedFeatureError",
        Kind::PathOutsideTable => "PathOutsideTableError",
        Kind::UnsafeStore => "UnsafeStoreError",
        Kind::SchemaMismatch => "SchemaMismatchError",
        Kind::ConstraintViolation => "ConstraintViolationError",
        Kind::MergeCardinality => "MergeCardinalityError",
        _ => "ProtocolError",
    }
}

/// Makes an instance of `deltaic.errors.<class>` with the parts of `error` as attributes.
fn raise(py: Python<'_>, class: &str, error: &Error) -> PyResult<PyErr> {
    let mut message = error.message().to_owned();
    if let Some(source) = std::error::Error::source(error) {
        message.push_str(&format!(" ({source})"));
    }
    let (found, expected) = error.found_expected();
    let parts = PyDict::new(py);
    parts.set_item("where", error.location())?;
    parts.set_item("found", found)?;
    parts.set_item("expected", expected)?;
    let instance = py.import("deltaic.errors")?.getattr(class)?.call((message,), Some(&parts))?;
    if error.kind() == Kind::Lost {
        let values = PyDict::new(py);
        values.set_item("is_lost", true)?;
        instance.call_method("with_values", (), Some(&values))?;
    }
    Ok(PyErr::from_value(instance))
}

/// Makes a `deltaic.errors.InvalidTypeError`, for an argument of the wrong Python type.
pub fn wrong_type(argument: &Bound<'_, PyAny>, message: &str, expected: &str) -> PyErr {
    let found = argument.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    let error = Error::new(Kind::InvalidArgument, message).found(found).expected(expected);
    raise(argument.py(), "InvalidTypeError", &error).unwrap_or_else(|failure| failure)
}
