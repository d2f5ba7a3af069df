//! Wraps a writer and keeps its first error, which the Parquet writer would turn into text.

use std::io::{Error as IoError, ErrorKind, Write};
use std::sync::{Arc, Mutex, PoisonError};

use parquet::errors::ParquetError;

use crate::error::Error;

/// Passes bytes to another writer, and stores the first error. The writer of Parquet files reduces some
/// errors to their text, which has no error number of the system, so that a full disk would look like any
/// other failure.
#[derive(Debug)]
pub struct NotedWriter<W> {
    /// The writer that gets the bytes.
    pub inner: W,
    failure: WriteFailure,
}

/// The first error of a [`NotedWriter`].
#[derive(Debug, Default, Clone)]
pub struct WriteFailure(Arc<Mutex<Option<IoError>>>);

impl WriteFailure {
    /// Returns a writer that notes its first error here.
    pub fn noted<W>(&self, inner: W) -> NotedWriter<W> {
        NotedWriter { inner, failure: self.clone() }
    }
    /// Returns the error of a file at `path`: the first one of its writer, or else Parquet's.
    pub fn error(&self, error: ParquetError, path: &str) -> Error {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(first) => Error::of_write(first, path),
            None => Error::of_writer(error, path),
        }
    }
    fn note<T>(&self, done: std::io::Result<T>) -> std::io::Result<T> {
        done.map_err(|error| {
            if error.kind() == ErrorKind::Interrupted {
                return error; // the caller tries again
            }
            let text = error.to_string();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            IoError::other(text)
        })
    }
}

impl<W: Write> Write for NotedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.failure.note(self.inner.write(bytes))
    }
    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.failure.note(self.inner.write_all(bytes))
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.failure.note(self.inner.flush())
    }
}
