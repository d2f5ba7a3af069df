//! Where a table's bytes live. Every read and write of the project goes through [`Store`].
//!
//! The trait is blocking: callers that want overlap use threads, which they own, so that a fork is safe.

use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Kind, Result};

pub mod local;
pub mod object;
pub mod path;

pub use path::{Place, canonical, resolve};

/// One object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Path below the store's root, decoded, '/'-separated.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Last change, milliseconds since 1970.
    pub modified_ms: i64,
    /// A symbolic link (local stores): never followed by deletes.
    pub symlink: bool,
    /// Differs where the object was replaced by another of the same size in the same millisecond, as far as the store can tell.
    pub identity: u64,
}

/// What became of a put-if-absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object is there and it is ours.
    Created,
    /// There was one already (maybe our own, from an attempt whose answer was lost).
    Exists,
    /// The store did not say.
    Unknown,
}

/// A file being written in pieces; invisible under its name until `finish`.
pub trait ObjectWriter: std::io::Write + Send {
    /// Makes it durable and visible; returns its size.
    fn finish(self: Box<Self>) -> Result<u64>;
    /// Leaves nothing behind.
    fn abort(self: Box<Self>);
}

/// A place for objects. Paths are relative to its root and have been through [`resolve`] where they come from a log.
pub trait Store: Send + Sync + std::fmt::Debug {
    /// What users call this place: an absolute local path or a URL.
    fn location(&self) -> &str;
    /// Objects in the folder `prefix` (below it with `recursive`), after `start_after`, sorted by path. A missing folder is empty.
    fn list_from(&self, prefix: &str, start_after: Option<&str>, recursive: bool) -> Result<Vec<ObjectMeta>>;
    /// `None` where there is no such object.
    fn head(&self, path: &str) -> Result<Option<ObjectMeta>>;
    /// The whole object.
    fn get(&self, path: &str) -> Result<Bytes>;
    /// The whole object; `None` where it has more than `most` bytes.
    fn get_at_most(&self, path: &str, most: u64) -> Result<Option<Bytes>> {
        if self.head(path)?.is_some_and(|found| found.size > most) { Ok(None) } else { self.get(path).map(Some) }
    }
    /// Byte ranges of one object, in their order. A range past the end is an error.
    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;
    /// Creates the object unless there is one. Durable when `Created`.
    fn put_if_absent(&self, path: &str, data: Bytes) -> Result<PutOutcome>;
    /// The same for what may be lost with the power: not durable where that would take time.
    fn put_if_absent_lightly(&self, path: &str, data: Bytes) -> Result<PutOutcome> {
        self.put_if_absent(path, data)
    }
    /// Creates or replaces the object, atomically.
    fn put(&self, path: &str, data: Bytes) -> Result<()>;
    /// Starts a file written in pieces; it replaces what is there.
    fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>>;
    /// Deletes one object; false where there was none. A link is deleted, not followed.
    fn delete(&self, path: &str) -> Result<bool>;
    /// Removes empty folders below `prefix`, where the store has folders; how many.
    fn remove_empty_directories(&self, prefix: &str) -> Result<u64>;
    /// The store that serves a location outside this root that the user allowed (shallow clones), with the path in it.
    fn outside(&self, location: &str) -> Result<(Arc<dyn Store>, String)>;
}

/// Opens the place that `location` names: an absolute or relative local path, `file://` or `memory://name/...`.
pub fn open(location: &str, options: &OpenOptions) -> Result<Arc<dyn Store>> {
    let scheme = path::scheme(location);
    match scheme {
        None | Some("file") => Ok(Arc::new(local::LocalStore::open(location, options)?)),
        Some("memory") => Ok(Arc::new(object::ObjectStoreAdapter::memory(location, options)?)),
        Some(other) => Err(Error::new(Kind::InvalidArgument, "no store for this kind of location")
            .at(path::without_query(location))
            .found(other)
            .expected("a local path, file:// or memory://")),
    }
}

/// How to open a store.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// fsync files and folders (local stores).
    pub durable: bool,
    /// Locations outside the root that a log may name.
    pub allowed_roots: Vec<String>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { durable: true, allowed_roots: Vec::new() }
    }
}

/// The store of an outside location if one of the allowed roots holds it.
fn open_outside(location: &str, options: &OpenOptions) -> Result<(Arc<dyn Store>, String)> {
    for root in &options.allowed_roots {
        let store = open(root, options)?;
        if let Place::Inside(path) = path::locate(store.location(), location)? {
            return Ok((store, path));
        }
    }
    let place = path::without_query(location);
    let error = Error::new(Kind::PathOutsideTable, "the file is outside the table and the allowed roots").at(place);
    Err(error.found(place).expected("a path below the table's root or an allowed one"))
}
