//! A store over a network that keeps local copies of immutable objects.
//!
//! A copy is used in two cases: the object's name contains a UUID, so no other object ever has this name
//! (data files, vectors, sidecars); or the last listing of the log shows the same entity tag, size and time
//! as for the copy. A table that was deleted and created again at the same place has the same names of
//! commits and checkpoints, but other tags. For a data file without a UUID, tag, size and time are requested
//! once by an opened table, and again after a listing that shows another log, as tools that write such names
//! may have replaced the file. `_last_checkpoint`, listings, intents and all other objects are never copied.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::cache_folder::{Digest, Folder, Piece};
use super::forwarded::forwarded;
use super::keys::plain;
use super::{CopySource, FirstLook, ObjectMeta, ObjectWriter, OpenOptions, PutOutcome, StagedObject, Store};
use crate::error::Result;

/// Maximum number of objects whose version is remembered; above it, all are forgotten.
const MOST_KNOWN: usize = 200_000;
const LOG: &str = "_delta_log/";

/// The folder of local copies, and its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// A folder that only the user can read and write.
    pub directory: PathBuf,
    /// Maximum number of bytes of all copies.
    pub limit: u64,
}

/// A store that is read through local copies.
#[derive(Debug)]
pub struct CachedStore {
    inner: Arc<dyn Store>,
    folder: Folder,
    /// The beginning of each object's digest: the location, and the servers that it is reached by.
    place: Sha256,
    has_tags: bool,
    known: Mutex<HashMap<String, ObjectMeta>>,
}

/// A version of an object: the digest of its copies, and its size if known.
struct Version {
    digest: Digest,
    size: Option<u64>,
}

impl CachedStore {
    /// Reads `inner` through the folder. `has_tags`: an object that replaces another one has another entity
    /// tag. Servers of plain HTTP compute tags from size and second, which two commits within a second may
    /// share.
    pub fn new(inner: Arc<dyn Store>, cache: &CacheSettings, options: &OpenOptions, has_tags: bool) -> Self {
        let mut place = Sha256::new();
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let prefixes = ["AWS_", "AZURE_", "AZURITE_", "GOOGLE_"];
        let of_clouds =
            environment.filter(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        let mut servers: Vec<_> = options.storage.clone().into_iter().chain(of_clouds).collect();
        servers.retain_mut(|(name, value)| {
            *name = plain(name);
            if name.ends_with("service_account_key") {
                let Some(url) = base_url(value) else { return false };
                *value = url;
            }
            // Azure's emulator and a base URL of Google are other servers, like an endpoint.
            ["endpoint", "account_name", "base_url", "service_account_key", "emulator", "azurite"]
                .iter()
                .any(|part| name.contains(part))
        });
        servers.sort_unstable();
        for text in std::iter::once(inner.location())
            .chain(servers.iter().flat_map(|(name, value)| [name.as_str(), value]))
        {
            place.update((text.len() as u64).to_le_bytes());
            place.update(text);
        }
        let folder = Folder::new(cache.directory.clone(), cache.limit);
        Self { inner, folder, place, has_tags, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, ObjectMeta>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the objects of a listing. If it shows new ones, versions of data files are forgotten.
    fn remember_log(&self, found: Vec<ObjectMeta>) {
        let mut known = self.known();
        if found.iter().any(|meta| known.get(&meta.path) != Some(meta)) {
            known.retain(|path, _| path.starts_with(LOG));
        }
        drop(known);
        self.remember(found);
    }

    fn remember(&self, found: Vec<ObjectMeta>) {
        let mut known = self.known();
        if known.len() + found.len() > MOST_KNOWN {
            known.clear();
        }
        known.extend(found.into_iter().map(|meta| (meta.path.clone(), meta)));
    }

    fn forget(&self, path: &str) {
        self.known().remove(path);
    }

    /// Returns the version of an object that copies may be used for. `None` if the object may be replaced at
    /// any time.
    fn version(&self, path: &str) -> Result<Option<Version>> {
        if has_unique_name(path) {
            return Ok(Some(Version { digest: self.digest(path, None), size: None }));
        }
        if !self.has_tags {
            return Ok(None);
        }
        let mut known = self.known().get(path).cloned();
        if known.is_none() && path.ends_with(".parquet") && !path.starts_with(LOG) {
            known = self.inner.head(path)?;
            self.remember(known.iter().cloned().collect());
        }
        // Without a tag, two objects of the same size and second could not be distinguished.
        let tagged = known.filter(|meta| meta.identity != 0);
        Ok(tagged.map(|meta| Version { digest: self.digest(path, Some(&meta)), size: Some(meta.size) }))
    }

    fn digest(&self, path: &str, meta: Option<&ObjectMeta>) -> Digest {
        let mut digest = self.place.clone();
        digest.update((path.len() as u64).to_le_bytes());
        digest.update(path);
        if let Some(meta) = meta {
            for number in [meta.size, meta.modified_ms.cast_unsigned(), meta.identity] {
                digest.update(number.to_le_bytes());
            }
        }
        digest.finalize().into()
    }

    /// Returns the copy of a whole object, with `size` bytes if the size is known.
    fn whole(&self, version: &Version) -> Option<Bytes> {
        match version.size {
            Some(size) => self.folder.range(&version.digest, 0, size),
            None => self.folder.get(&version.digest, Piece::WHOLE).map(|(_, bytes)| bytes),
        }
    }

    fn keep_whole(&self, version: &Version, data: &Bytes) {
        let piece = version.size.map_or(Piece::WHOLE, |size| Piece::range(0, size));
        self.folder.put(&version.digest, piece, &unknown(), data);
    }
}

/// Returns metadata for an object whose metadata is not needed.
fn unknown() -> ObjectMeta {
    ObjectMeta { path: String::new(), size: 0, modified_ms: 0, symlink: false, identity: 0 }
}

/// Returns the address in the JSON of a Google account that is used instead of Google's.
fn base_url(account: &str) -> Option<String> {
    let account: serde_json::Value = serde_json::from_str(account).ok()?;
    Some(account.get("gcs_base_url")?.as_str()?.to_owned())
}

/// True if no other object ever has this name: PROTOCOL.md requires it of data files, vectors and sidecars,
/// and writers ensure it by a UUID in the name. Names without one are used again if a table is deleted and
/// created again.
fn has_unique_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_file = name.ends_with(".parquet")
        || name.ends_with(".bin")
        || path.starts_with("_delta_log/_staged_commits/");
    is_file && name.as_bytes().windows(36).any(is_uuid)
}

fn is_uuid(text: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| {
        if matches!(at, 8 | 13 | 18 | 23) { *byte == b'-' } else { byte.is_ascii_hexdigit() }
    };
    text.iter().enumerate().all(fits)
}

/// True for files of the log whose version a listing shows: commits, checkpoints, compacted ranges,
/// checksums, but not `_last_checkpoint`.
fn is_versioned(path: &str) -> bool {
    let name = path.strip_prefix(LOG).unwrap_or_default();
    name.as_bytes().get(..20).is_some_and(|version| version.iter().all(u8::is_ascii_digit))
        && !name.contains('/')
}

impl Store for CachedStore {
    fn list_from(&self, prefix: &str, start_after: Option<&str>, recursive: bool) -> Result<Vec<ObjectMeta>> {
        let found = self.inner.list_from(prefix, start_after, recursive)?;
        self.remember_log(found.iter().filter(|meta| is_versioned(&meta.path)).cloned().collect());
        Ok(found)
    }

    fn first_look(&self, path: &str, most: u64, folder: &str) -> Result<Option<FirstLook>> {
        let found = self.inner.first_look(path, most, folder)?;
        let entries = found.iter().flat_map(|look| look.entries.iter().flatten());
        self.remember_log(entries.filter(|meta| is_versioned(&meta.path)).cloned().collect());
        Ok(found)
    }

    fn head(&self, path: &str) -> Result<Option<ObjectMeta>> {
        let found = self.inner.head(path)?;
        let mut known = self.known();
        if known.remove(path).is_some() {
            known.extend(found.iter().map(|meta| (path.to_owned(), meta.clone())));
        }
        drop(known);
        Ok(found)
    }

    fn get(&self, path: &str) -> Result<Bytes> {
        let Some(version) = self.version(path)? else { return self.inner.get(path) };
        if let Some(data) = self.whole(&version) {
            return Ok(data);
        }
        let data = self.inner.get(path)?;
        self.keep_whole(&version, &data);
        Ok(data)
    }

    fn get_at_most(&self, path: &str, most: u64) -> Result<Option<Bytes>> {
        let Some(version) = self.version(path)? else { return self.inner.get_at_most(path, most) };
        if version.size.is_some_and(|size| size > most) {
            return Ok(None);
        }
        if let Some(data) = self.whole(&version) {
            return Ok(Some(data).filter(|data| data.len() as u64 <= most));
        }
        let data = self.inner.get_at_most(path, most)?;
        data.iter().for_each(|data| self.keep_whole(&version, data));
        Ok(data)
    }

    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(version) = self.version(path)? else { return self.inner.get_ranges(path, ranges) };
        let is_inside = |range: &Range<u64>| {
            range.start <= range.end && version.size.is_none_or(|size| range.end <= size)
        };
        if !ranges.iter().all(is_inside) {
            return self.inner.get_ranges(path, ranges);
        }
        let copy = |range: &Range<u64>| match range.is_empty() {
            true => Some(Bytes::new()),
            false => self.folder.range(&version.digest, range.start, range.end),
        };
        let copies: Vec<Option<Bytes>> = ranges.iter().map(copy).collect();
        let missing: Vec<_> = ranges
            .iter()
            .zip(&copies)
            .filter(|(_, copy)| copy.is_none())
            .map(|(range, _)| range.clone())
            .collect();
        if missing.is_empty() {
            return Ok(copies.into_iter().flatten().collect());
        }
        let fetched = self.inner.get_ranges(path, &missing)?;
        for (range, data) in missing.iter().zip(&fetched) {
            self.folder.put(&version.digest, Piece::range(range.start, range.end), &unknown(), data);
        }
        let mut fetched = fetched.into_iter();
        Ok(copies.into_iter().map(|copy| copy.or_else(|| fetched.next()).unwrap_or_default()).collect())
    }

    fn tail(&self, path: &str, length: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        let Some(version) = self.version(path)? else { return self.inner.tail(path, length) };
        if let Some((meta, data)) = self.folder.get(&version.digest, Piece::tail(length)) {
            return Ok(Some((ObjectMeta { path: path.to_owned(), ..meta }, data)));
        }
        let found = self.inner.tail(path, length)?;
        if let Some((meta, data)) = &found
            && version.size.is_none_or(|size| size == meta.size)
            && data.len() as u64 == length.min(meta.size)
        {
            self.folder.put(&version.digest, Piece::tail(length), meta, data);
        }
        Ok(found)
    }

    forwarded!();
}
