//! Access to a table's files. Every read and write goes through [`Store`].
//!
//! The trait is blocking. Callers that need several requests at once use their own threads, so that a fork is
//! safe.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Kind, Result};

mod cache;
pub mod cache_folder;
mod cloud;
pub mod copy;
pub mod credentials;
mod durable;
mod failure;
mod http;
mod keys;
pub mod local;
pub mod object;
pub mod path;

pub use cache::CacheSettings;
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
    /// Like `finish`, but the file is durable only after [`Store::sync`], or a [`Store::put_after`] that names it.
    fn finish_unsynced(self: Box<Self>) -> Result<u64> {
        self.finish()
    }
    /// Leaves nothing behind.
    fn abort(self: Box<Self>);
}

/// An object, as a store can copy it by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopySource {
    /// A file of the local file system.
    File(std::path::PathBuf),
    /// An object of a place of object_store: the place, by its URL and the options of its client, and the path in it.
    Object {
        /// `s3://bucket`
        place: String,
        /// Options of the client.
        storage: BTreeMap<String, String>,
        /// The whole path.
        path: String,
    },
    /// Only its bytes can be read.
    Bytes,
}

/// What [`Store::first_look`] saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstLook {
    /// The file; `None` where it is missing, too large or cannot be read.
    pub file: Option<Bytes>,
    /// The objects in the folder, sorted by path; `None` where they are more than one request lists.
    pub entries: Option<Vec<ObjectMeta>>,
}

/// A durable object that waits for its name; one that got none leaves nothing behind.
pub trait StagedObject: Send + Sync {
    /// Gives it this name, unless there is such an object: then false. Others see it from now on, but its name may be lost with the power.
    fn publish(&self, path: &str) -> Result<bool>;
    /// Makes its name durable.
    fn settle(&self) -> Result<()>;
}

/// A place for objects. Paths are relative to its root and have been through [`resolve`] where they come from a log.
pub trait Store: Send + Sync + std::fmt::Debug {
    /// What users call this place: an absolute local path or a URL.
    fn location(&self) -> &str;
    /// Objects in the folder `prefix` (below it with `recursive`), after `start_after`, sorted by path. A missing folder is empty.
    fn list_from(&self, prefix: &str, start_after: Option<&str>, recursive: bool) -> Result<Vec<ObjectMeta>>;
    /// A small file and the beginning of a folder, asked for at the same time; `None` where the store answers one call after the other.
    fn first_look(&self, _path: &str, _most: u64, _folder: &str) -> Result<Option<FirstLook>> {
        Ok(None)
    }
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
    /// What `head` says, and the last `length` bytes or all of them: one request where the store can. `None` where there is no such object.
    fn tail(&self, path: &str, length: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        let Some(found) = self.head(path)? else { return Ok(None) };
        let mut bytes = self.get_ranges(path, &[found.size.saturating_sub(length)..found.size])?;
        Ok(Some((found, bytes.pop().unwrap_or_default())))
    }
    /// Creates the object unless there is one. Durable when `Created`.
    fn put_if_absent(&self, path: &str, data: Bytes) -> Result<PutOutcome>;
    /// The same for what may be lost with the power: not durable where that would take time.
    fn put_if_absent_lightly(&self, path: &str, data: Bytes) -> Result<PutOutcome> {
        self.put_if_absent(path, data)
    }
    /// Like `put_if_absent`, for a commit that names the files `after`: they are durable before the object becomes visible.
    ///
    /// On a local disk they are synced together with the object's own bytes, on several threads, so that all of them cost one wait.
    fn put_after(&self, path: &str, data: Bytes, after: &[String]) -> Result<PutOutcome> {
        self.sync(after)?;
        self.put_if_absent(path, data)
    }
    /// Makes `data` and the files `after` durable in `folder`, without a name yet: what takes long of `put_after`, done before it is known
    /// which name is free. `None` where the store has no such thing.
    fn stage(&self, _folder: &str, _data: &Bytes, _after: &[String]) -> Result<Option<Box<dyn StagedObject>>> {
        Ok(None)
    }
    /// Creates a file under a name that nobody else uses. Like [`ObjectWriter::finish_unsynced`], it is not durable yet.
    fn put_unsynced(&self, path: &str, data: Bytes) -> Result<()> {
        self.put(path, data)
    }
    /// Makes files and their folders durable, on several threads. A file that is missing is passed over.
    fn sync(&self, _paths: &[String]) -> Result<()> {
        Ok(())
    }
    /// A commit is likely to follow: what the store must learn about its place first, it begins to ask now, beside the caller's requests.
    fn expect_commit(&self) {}
    /// Each call is a request over a network: fewer are better than less work.
    fn is_remote(&self) -> bool {
        false
    }
    /// Calls end soon and run no foreign code, so that they need no thread beside the one that watches for signals.
    fn is_brief(&self) -> bool {
        false
    }
    /// Creates or replaces the object, atomically.
    fn put(&self, path: &str, data: Bytes) -> Result<()>;
    /// What another store must know of an object to copy it without its bytes passing through this process.
    fn copy_source(&self, _path: &str) -> Result<CopySource> {
        Ok(CopySource::Bytes)
    }
    /// Creates or replaces `to` by a copy that the system makes; false where it makes none of such a source.
    fn copy(&self, _source: &CopySource, _to: &str) -> Result<bool> {
        Ok(false)
    }
    /// Starts a file written in pieces; it replaces what is there.
    fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>>;
    /// Deletes one object; false where there was none. A link is deleted, not followed.
    fn delete(&self, path: &str) -> Result<bool>;
    /// Deletes these objects, with few requests where the store can; how many were there, as far as the store says.
    fn delete_all(&self, paths: &[&str]) -> Result<u64> {
        paths.iter().try_fold(0, |deleted, path| Ok(deleted + u64::from(self.delete(path)?)))
    }
    /// Removes empty folders below `prefix`, where the store has folders; how many.
    fn remove_empty_directories(&self, prefix: &str) -> Result<u64>;
    /// The store that serves a location outside this root that the user allowed (shallow clones), with the path in it.
    fn outside(&self, location: &str) -> Result<(Arc<dyn Store>, String)>;
}

/// Opens the place that `location` names: an absolute or relative local path, `file://`, `memory://name/...`, or a URL of S3, Google Cloud
/// Storage or Azure.
pub fn open(location: &str, options: &OpenOptions) -> Result<Arc<dyn Store>> {
    let scheme = path::scheme(location);
    match scheme {
        None | Some("file") => Ok(Arc::new(local::LocalStore::open(location, options)?)),
        Some("memory") => Ok(Arc::new(object::ObjectStoreAdapter::memory(location, options)?)),
        Some(scheme) if cloud::SCHEMES.contains(&scheme) => cloud::open(location, options),
        Some(other) => Err(Error::new(Kind::InvalidArgument, "no store for this kind of location")
            .at(path::without_query(location))
            .found(other)
            .expected(format!("a local path, file://, memory://, or a URL of {}", cloud::SCHEMES.join(", ")))),
    }
}

/// How to open a store.
#[derive(Clone)]
pub struct OpenOptions {
    /// fsync files and folders (local stores).
    pub durable: bool,
    /// Locations outside the root that a log may name.
    pub allowed_roots: Vec<String>,
    /// Keys and values for the client of an object store (endpoints, credentials, timeouts).
    pub storage: BTreeMap<String, String>,
    /// Gives the credentials instead of `storage` and the environment.
    pub credentials: Option<Arc<dyn credentials::CredentialSource>>,
    /// Local copies of what is immutable in an object store.
    pub cache: Option<CacheSettings>,
}

impl fmt::Debug for OpenOptions {
    /// Without the values of `storage`, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OpenOptions");
        shown.field("durable", &self.durable).field("allowed_roots", &self.allowed_roots);
        shown.field("storage", &self.storage.keys()).finish()
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { durable: true, allowed_roots: Vec::new(), storage: BTreeMap::new(), credentials: None, cache: None }
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
