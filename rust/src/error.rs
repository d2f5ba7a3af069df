//! The error type of all modules: what failed, where, what was found and what was expected.

use std::fmt;

/// The kind of a failure. Each kind maps to one class of `deltaic.errors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A wrong argument of the caller (`InvalidArgumentError`).
    InvalidArgument,
    /// Bytes of the table that PROTOCOL.md does not allow (`ProtocolError`).
    Protocol,
    /// A file that the log names and the store does not have (`ProtocolError` with `is_lost` in its values).
    Lost,
    /// A feature that cannot be read or written (`UnsupportedFeatureError`).
    UnsupportedFeature,
    /// A file outside the table and the allowed roots (`PathOutsideTableError`).
    PathOutsideTable,
    /// A store that does not support put-if-absent (`UnsafeStoreError`).
    UnsafeStore,
    /// Data or expressions that do not fit the schema (`SchemaMismatchError`).
    SchemaMismatch,
    /// A row that breaks a constraint (`ConstraintViolationError`).
    ConstraintViolation,
    /// Two source rows for one target row (`MergeCardinalityError`).
    MergeCardinality,
    /// The object does not exist (`FileNotFoundError`).
    NotFound,
    /// A file of the log that was deleted after the version was opened (`FileNotFoundError`).
    Gone,
    /// A request to a store failed (`OSError`).
    Io,
    /// The user asked to stop (`KeyboardInterrupt`).
    Interrupted,
    /// A Python exception raised by a callback or a source, kept as it is.
    Foreign,
}

/// An error: its kind and message, and, if known, where it happened, what was found and what was expected.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    message: String,
    location: Option<String>,
    found: Option<String>,
    expected: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error of `kind`; `message` is a sentence without the location.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            location: None,
            found: None,
            expected: None,
            source: None,
        }))
    }
    /// Makes an error of [`Kind::Protocol`], the most frequent one.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(Kind::Protocol, message)
    }
    /// Returns the error of a file at `path` that the log names and the store does not have. `expected`: what
    /// the file should be.
    pub fn lost(path: impl Into<String>, expected: &str) -> Self {
        let message = "a file that the log names is not there; VACUUM may have removed it";
        Self::new(Kind::Lost, message).at(path).found("no such file").expected(expected)
    }
    /// Converts an error of Parquet's writer for the file at `path`. An error of the store within it is
    /// returned as it was.
    pub fn of_writer(error: parquet::errors::ParquetError, path: &str) -> Self {
        let failed = Self::new(Kind::Io, "writing failed").at(path);
        let parquet::errors::ParquetError::External(inner) = error else { return failed.caused_by(error) };
        match inner.downcast::<std::io::Error>() {
            Ok(io) => Self::of_write(*io, path),
            Err(other) => failed.caused_by(other),
        }
    }
    /// Converts an error of a store's writer for the file at `path`. An error of the store within it is
    /// returned as it was.
    pub fn of_write(error: std::io::Error, path: &str) -> Self {
        error
            .downcast::<Self>()
            .unwrap_or_else(|io| Self::new(Kind::Io, "writing failed").at(path).caused_by(io))
    }
    /// Sets the location (a path, with line, row or byte) if none is set yet; an inner, more precise location
    /// is never overwritten.
    pub fn at(mut self, location: impl Into<String>) -> Self {
        self.0.location.get_or_insert_with(|| short(location.into(), 1000));
        self
    }
    /// Adds an outer location to the known one: a file, if a column or line is known.
    pub fn within(mut self, outer: impl fmt::Display) -> Self {
        let outer = short(outer.to_string(), 1000);
        self.0.location = Some(match self.0.location.take() {
            Some(inner) => format!("{outer}, {inner}"),
            None => outer,
        });
        self
    }
    /// Sets what was found, in a few words (long values are truncated).
    pub fn found(mut self, found: impl fmt::Display) -> Self {
        self.0.found = Some(short(found.to_string(), 200));
        self
    }
    /// Sets what was expected instead.
    pub fn expected(mut self, expected: impl fmt::Display) -> Self {
        self.0.expected = Some(expected.to_string());
        self
    }
    /// Sets the cause of the error.
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }
    /// Returns the error's kind.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }
    /// Returns the message alone.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// Returns the place of the failure, if it is known.
    pub fn location(&self) -> Option<&str> {
        self.0.location.as_deref()
    }
    /// Returns what was found and what was expected, if they are known.
    pub fn found_expected(&self) -> (Option<&str>, Option<&str>) {
        (self.0.found.as_deref(), self.0.expected.as_deref())
    }
    /// Returns the cause, to raise a foreign exception as it was.
    pub fn into_source(self) -> Option<Box<dyn std::error::Error + Send + Sync>> {
        self.0.source
    }
}

/// Truncates a text to `most` characters.
fn short(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.0.location {
            write!(f, "{location}: ")?;
        }
        f.write_str(&self.0.message)?;
        if let Some(found) = &self.0.found {
            write!(f, "; found {found}")?;
        }
        if let Some(expected) = &self.0.expected {
            write!(f, "; expected {expected}")?;
        }
        match &self.0.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|s| s.as_ref() as _)
    }
}

impl From<Error> for arrow::error::ArrowError {
    fn from(error: Error) -> Self {
        arrow::error::ArrowError::ExternalError(Box::new(error))
    }
}

/// Arrow wraps errors of readers and callbacks; an error of ours within it is returned as it was.
impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::ExternalError(inner) => unwrap_ours(inner),
            other => damaged(&other).unwrap_or_else(|| {
                Self::protocol("the data cannot be read").found(other).expected("well-formed data")
            }),
        }
    }
}

/// Converts an error of Parquet as one of Arrow is converted.
impl From<parquet::errors::ParquetError> for Error {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            parquet::errors::ParquetError::External(inner) => unwrap_ours(inner),
            other => damaged(&other).unwrap_or_else(|| {
                Self::protocol("the Parquet file cannot be read")
                    .found(other)
                    .expected("a whole Parquet file")
            }),
        }
    }
}

/// Returns the error for a page with a wrong checksum, which is recognized by the text of Parquet's error.
fn damaged(error: &dyn std::error::Error) -> Option<Error> {
    let mismatch = error.to_string().contains("CRC checksum mismatch");
    mismatch.then(|| {
        Error::protocol("a page of the Parquet file is damaged")
            .found("other bytes than its checksum was made of")
    })
}

fn unwrap_ours(inner: Box<dyn std::error::Error + Send + Sync>) -> Error {
    match inner.downcast::<Error>() {
        Ok(ours) => *ours,
        Err(foreign) => match foreign.downcast::<std::io::Error>() {
            Ok(io) => match io.downcast::<Error>() {
                Ok(ours) => ours,
                Err(io) => Error::new(Kind::Io, "reading failed").caused_by(io),
            },
            Err(other) => Error::protocol("the data cannot be read").caused_by(other),
        },
    }
}
