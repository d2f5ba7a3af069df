//! The trait [`Store`], through which every read and write of a table's files goes.
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
mod connector;
pub mod copy;
pub mod credentials;
mod durable;
mod failure;
mod forwarded;
mod http;
mod keys;
pub mod local;
mod memory;
pub mod noted_writer;
pub mod object;
pub mod path;
mod proof;
mod read_buffer;
mod runtime;
pub mod system;
mod upload;

pub use cache::CacheSettings;
pub use path::{Place, canonical, resolve};
pub use read_buffer::BufferedStore;

/// An object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Path below the store's root, decoded, '/'-separated.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Last change, milliseconds since 1970.
    pub modified_ms: i64,
    /// True for a symbolic link (local stores), which deletes never follow.
    pub symlink: bool,
    /// Changes if the object is replaced by another of the same size in the same millisecond, as far as the
    /// store can tell.
    pub identity: u64,
}

/// A file that was looked up by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundFile {
    /// Size in bytes.
    pub size: u64,
    /// Last change, milliseconds since 1970.
    pub modified_ms: i64,
}

/// The outcome of a put-if-absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object was created.
    Created,
    /// The object exists already. It may come from our own first attempt, if its answer was lost.
    Exists,
    /// Unknown: the store did not answer.
    Unknown,
}

/// A file that is written in pieces. It is not visible under its name before `finish`.
pub trait ObjectWriter: std::io::Write + Send {
    /// Makes the file durable and visible, and returns its size.
    fn finish(self: Box<Self>) -> Result<u64>;
    /// Like `finish`, but the file is durable only after [`Store::sync`], or a [`Store::put_after`] that
    /// names it.
    fn finish_unsynced(self: Box<Self>) -> Result<u64> {
        self.finish()
    }
    /// Removes the unfinished file.
    fn abort(self: Box<Self>);
}

/// An object in a form by which a store can copy it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopySource {
    /// A file of the local file system.
    File(std::path::PathBuf),
    /// An object in object_store: the URL and the client's options of its bucket, and the path in it.
    Object {
        /// The URL of the bucket, such as `s3://bucket`.
        place: String,
        /// Options of the client.
        storage: BTreeMap<String, String>,
        /// The object's whole path in the bucket.
        path: String,
    },
    /// The object can only be copied by reading its bytes.
    Bytes,
}

/// The result of [`Store::first_look`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstLook {
    /// The file. `None` if it is missing, too large or cannot be read, or if the entries are there.
    pub file: Option<Bytes>,
    /// The objects in the folder, sorted by path. `None` if one request cannot list them all.
    pub entries: Option<Vec<ObjectMeta>>,
}

/// A durable object without its final name. It is removed if it is dropped before it has a name.
pub trait StagedObject: Send + Sync {
    /// Gives the object this name; returns false if such an object exists. Other processes then see the
    /// object, but a power failure may lose its name.
    fn publish(&self, path: &str) -> Result<bool>;
    /// Makes the object's name durable.
    fn settle(&self) -> Result<()>;
}

/// A place for objects. Paths are relative to its root. A path from a log must be resolved by [`resolve`]
/// first.
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Returns the location as users know it: an absolute local path or a URL.
    fn location(&self) -> &str;
    /// Lists the objects in the folder `prefix` (with `recursive`, also in its folders) after `start_after`,
    /// sorted by path. A missing folder is empty.
    fn list_from(&self, prefix: &str, start_after: Option<&str>, recursive: bool) -> Result<Vec<ObjectMeta>>;
    /// Lists the beginning of a folder, and meanwhile reads a small file, which is needed only if the folder
    /// has more objects. `None` if the store cannot do both at once.
    fn first_look(&self, _path: &str, _most: u64, _folder: &str) -> Result<Option<FirstLook>> {
        Ok(None)
    }
    /// Returns the object's metadata. `None` if there is no such object.
    fn head(&self, path: &str) -> Result<Option<ObjectMeta>>;
    /// Looks up the names of a folder, in their order. `None` if a listing takes fewer requests.
    fn look_up(&self, _folder: &str, _names: &[String]) -> Result<Option<Vec<Option<FoundFile>>>> {
        Ok(None)
    }
    /// Reads the whole object.
    fn get(&self, path: &str) -> Result<Bytes>;
    /// Reads the whole object. `None` if it has more than `most` bytes.
    fn get_at_most(&self, path: &str, most: u64) -> Result<Option<Bytes>> {
        if self.head(path)?.is_some_and(|found| found.size > most) {
            Ok(None)
        } else {
            self.get(path).map(Some)
        }
    }
    /// Reads byte ranges of one object, in their order. A range beyond the end is an error.
    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;
    /// Returns the object's metadata and its last `length` bytes (or all), by one request if the store can.
    /// `None` if there is no such object.
    fn tail(&self, path: &str, length: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        let Some(found) = self.head(path)? else { return Ok(None) };
        let mut bytes = self.get_ranges(path, &[found.size.saturating_sub(length)..found.size])?;
        Ok(Some((found, bytes.pop().unwrap_or_default())))
    }
    /// Creates the object unless it exists. After `Created` it is durable.
    fn put_if_absent(&self, path: &str, data: Bytes) -> Result<PutOutcome>;
    /// Creates the object unless it exists. It may be lost by a power failure, if making it durable takes
    /// time.
    fn put_if_absent_lightly(&self, path: &str, data: Bytes) -> Result<PutOutcome> {
        self.put_if_absent(path, data)
    }
    /// Creates the object of a commit unless it exists. The files `after`, which the commit names, are
    /// durable before the object is visible.
    ///
    /// On a local disk, all are synced at the same time on several threads, which takes as long as a single
    /// sync.
    fn put_after(&self, path: &str, data: Bytes, after: &[String]) -> Result<PutOutcome> {
        self.sync(after)?;
        self.put_if_absent(path, data)
    }
    /// Makes `data` and the files `after` durable in `folder`, without a final name. This is the slow part of
    /// `put_after`, done before it is known which name is free. `None` if the store does not support it.
    fn stage(
        &self,
        _folder: &str,
        _data: &Bytes,
        _after: &[String],
    ) -> Result<Option<Box<dyn StagedObject>>> {
        Ok(None)
    }
    /// Creates a file whose name no other file has. Like [`ObjectWriter::finish_unsynced`], it is not durable
    /// yet.
    fn put_unsynced(&self, path: &str, data: Bytes) -> Result<()> {
        self.put(path, data)
    }
    /// Makes files and their folders durable, on several threads. Missing files are skipped.
    fn sync(&self, _paths: &[String]) -> Result<()> {
        Ok(())
    }
    /// Announces a commit, so that the store can begin checks that it needs before a commit while the caller
    /// goes on.
    fn expect_commit(&self) {}
    /// True if each call is a request over a network, so that fewer calls matter more than less work.
    fn is_remote(&self) -> bool {
        false
    }
    /// True if calls are short and run no user code, so that they need no thread of their own to watch for
    /// signals.
    fn is_brief(&self) -> bool {
        false
    }
    /// Creates or replaces the object, atomically.
    fn put(&self, path: &str, data: Bytes) -> Result<()>;
    /// Returns how another store can copy an object without reading its bytes here.
    fn copy_source(&self, _path: &str) -> Result<CopySource> {
        Ok(CopySource::Bytes)
    }
    /// Creates or replaces `to` by a copy that the storage system makes. Returns false if it cannot copy such
    /// a source.
    fn copy(&self, _source: &CopySource, _to: &str) -> Result<bool> {
        Ok(false)
    }
    /// Begins a file that is written in pieces; it replaces an existing one.
    fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>>;
    /// Deletes an object; returns false if there was none. A link is deleted, not followed.
    fn delete(&self, path: &str) -> Result<bool>;
    /// Deletes objects, in few requests if the store can. Returns the number of objects that existed; a store
    /// that does not report it counts all.
    fn delete_all(&self, paths: &[&str]) -> Result<u64> {
        paths.iter().try_fold(0, |deleted, path| Ok(deleted + u64::from(self.delete(path)?)))
    }
    /// Removes empty folders below `prefix`, if the store has folders, and returns how many.
    fn remove_empty_directories(&self, prefix: &str) -> Result<u64>;
    /// Returns the store and path of a location outside of this root that the user allowed (shallow clones).
    fn outside(&self, location: &str) -> Result<(Arc<dyn Store>, String)>;
}

/// Opens a location: an absolute or relative local path, `file://`, `memory://name/...`, or a URL of S3,
/// Google Cloud Storage or Azure.
pub fn open(location: &str, options: &OpenOptions) -> Result<Arc<dyn Store>> {
    let scheme = path::scheme(location);
    match scheme {
        None | Some("file") => Ok(Arc::new(local::LocalStore::open(location, options)?)),
        Some(drive) if system::native().is_drive(drive) => {
            Ok(Arc::new(local::LocalStore::open(location, options)?))
        }
        Some("memory") => Ok(Arc::new(memory::open(location, options)?)),
        Some(scheme) if cloud::SCHEMES.contains(&scheme) => cloud::open(location, options),
        Some(other) => Err(Error::new(Kind::InvalidArgument, "no store for this kind of location")
            .at(path::without_query(location))
            .found(other)
            .expected(format!(
                "a local path, file://, memory://, or a URL of {}",
                cloud::SCHEMES.join(", ")
            ))),
    }
}

/// Joins ranges with at most `gap` bytes between them, which one request fetches. The result is ascending and
/// has no empty range.
pub fn coalesce(mut ranges: Vec<Range<u64>>, gap: u64) -> Vec<Range<u64>> {
    ranges.retain(|range| range.start < range.end);
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// How to open a store.
#[derive(Clone)]
pub struct OpenOptions {
    /// True to sync written files and folders to the disk (local stores).
    pub durable: bool,
    /// Locations outside the root that a log may name.
    pub allowed_roots: Vec<String>,
    /// Keys and values for the client of an object store (endpoints, credentials, timeouts).
    pub storage: BTreeMap<String, String>,
    /// A source of credentials, used instead of those in `storage` and the environment.
    pub credentials: Option<Arc<dyn credentials::CredentialSource>>,
    /// The folder and limit of local copies of immutable objects (object stores); `None`: there are no
    /// copies.
    pub cache: Option<CacheSettings>,
}

impl fmt::Debug for OpenOptions {
    /// Omits the values of `storage`, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OpenOptions");
        shown.field("durable", &self.durable).field("allowed_roots", &self.allowed_roots);
        shown.field("storage", &self.storage.keys()).finish()
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            durable: true,
            allowed_roots: Vec::new(),
            storage: BTreeMap::new(),
            credentials: None,
            cache: None,
        }
    }
}

/// Returns the store of an outside location, if it is in one of the allowed roots.
fn open_outside(location: &str, options: &OpenOptions) -> Result<(Arc<dyn Store>, String)> {
    for root in &options.allowed_roots {
        let store = open(root, options)?;
        if let Place::Inside(path) = path::locate(store.location(), location)? {
            return Ok((store, path));
        }
    }
    let place = path::without_query(location);
    let error =
        Error::new(Kind::PathOutsideTable, "the file is outside the table and the allowed roots").at(place);
    Err(error.found(place).expected(
        "a path below the table's root, or below one of deltaic.configure(allowed_roots=[...]) when the \
         table was opened",
    ))
}
