//! Any backend of the crate object_store as a [`Store`].

use std::fmt;
use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::Either;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    Error as BackendError, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};
use tokio::time::timeout;
use twox_hash::XxHash64;

use super::failure;
use super::local::past_end;
use super::proof::PutIfAbsentProof;
use super::runtime::runtime;
use super::upload::Upload;
use super::{
    CopySource, FirstLook, ObjectMeta, ObjectWriter, OpenOptions, PutOutcome, Store, open_outside, path,
};
use crate::error::{Error, Kind, Result};

/// Maximum number of objects that a first look lists. It is small because the listing is useless if the
/// folder has more.
const FIRST_LOOK: usize = 250;

/// Time after the request for a first look's listing at which the file is requested, too, without waiting
/// for the listing. A near store has answered by then, and if the listing has all objects, the file is not
/// needed. A far store answers both at about the same time, as a listing takes longer than a small file.
const FILE_AFTER: Duration = Duration::from_millis(10);

/// Maximum number of bytes of a commit that is kept in memory until it is read.
const LARGEST_KEPT: usize = 4 << 20;

/// The clients of one location of object_store.
#[derive(Clone)]
pub struct Clients {
    /// The client that reads, writes and deletes. It repeats failed requests.
    pub backend: Arc<dyn ObjectStore>,
    /// The client that puts if absent. It repeats no request: if the first answer is lost, a retry would find
    /// the object of the first attempt.
    pub commits: Arc<dyn ObjectStore>,
    /// The client that lists folder by folder, if the backend can.
    pub pages: Option<Arc<dyn PaginatedListStore>>,
    /// The location, if it is not yet known to support put-if-absent.
    pub unproven: Option<String>,
}

/// A folder in a backend of object_store.
pub struct ObjectStoreAdapter {
    location: String,
    prefix: String,
    backend: Arc<dyn ObjectStore>,
    commits: Arc<dyn ObjectStore>,
    pages: Option<Arc<dyn PaginatedListStore>>,
    options: OpenOptions,
    /// The last created commit, until it is read, replaced or deleted here, so that it need not be fetched.
    created: Mutex<Option<(String, Bytes)>>,
    proof: PutIfAbsentProof,
}

impl fmt::Debug for ObjectStoreAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectStoreAdapter").field("location", &self.location).finish_non_exhaustive()
    }
}

/// Reads a whole object. `None` if it has more than `most` bytes.
async fn at_most(
    backend: Arc<dyn ObjectStore>,
    full: Path,
    most: u64,
) -> object_store::Result<Option<Bytes>> {
    let found = backend.get_opts(&full, GetOptions::default()).await?;
    if found.meta.size > most { Ok(None) } else { found.bytes().await.map(Some) }
}

impl ObjectStoreAdapter {
    /// Makes the store of the folder `prefix` in a backend.
    pub fn new(location: String, prefix: &str, clients: Clients, options: &OpenOptions) -> Result<Self> {
        if !prefix.is_empty() {
            path::check_relative(prefix)?;
        }
        let Clients { backend, commits, pages, unproven } = clients;
        Ok(Self {
            proof: PutIfAbsentProof::new(location.clone(), Arc::clone(&backend), unproven),
            location,
            prefix: prefix.to_owned(),
            backend,
            commits,
            pages,
            options: options.clone(),
            created: Mutex::default(),
        })
    }

    /// Returns the URL without the folder.
    fn place(&self) -> String {
        let folder = self.location.strip_suffix(self.prefix.as_str()).unwrap_or(&self.location);
        folder.trim_end_matches('/').to_owned()
    }

    fn failed(&self, path: &str, error: BackendError) -> Error {
        failure::backend_error(&self.location, path, error)
    }

    fn created(&self) -> MutexGuard<'_, Option<(String, Bytes)>> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_created(&self, path: &str) {
        self.created().take_if(|(created, _)| created == path);
    }

    fn full(&self, path: &str) -> Result<Path> {
        path::check_relative(path)?;
        self.join(path)
    }

    fn join(&self, path: &str) -> Result<Path> {
        let text = if self.prefix.is_empty() { path.to_owned() } else { format!("{}/{path}", self.prefix) };
        Path::parse(&text).map_err(|error| {
            Error::new(Kind::InvalidArgument, "not a name of this store").at(path).caused_by(error)
        })
    }

    fn below(&self, full: &Path) -> String {
        let text = full.as_ref();
        let rest = text.strip_prefix(self.prefix.as_str()).unwrap_or(text);
        rest.trim_start_matches('/').to_owned()
    }

    fn meta(&self, meta: object_store::ObjectMeta) -> ObjectMeta {
        let path = self.below(&meta.location);
        // The identity must be equal in all processes, as the names of local copies depend on it. A server
        // without tags may send `""`.
        let tag = meta.e_tag.filter(|tag| !tag.trim_matches('"').is_empty());
        let identity = tag.map_or(0, |tag| XxHash64::oneshot(0, tag.as_bytes()));
        ObjectMeta {
            path,
            size: meta.size,
            modified_ms: meta.last_modified.timestamp_millis(),
            symlink: false,
            identity,
        }
    }
}

impl Store for ObjectStoreAdapter {
    fn location(&self) -> &str {
        &self.location
    }

    fn list_from(&self, prefix: &str, start_after: Option<&str>, recursive: bool) -> Result<Vec<ObjectMeta>> {
        let base = prefix.trim_end_matches('/');
        let after = start_after
            .map(|after| self.join(format!("{base}/{after}").trim_start_matches('/')))
            .transpose()?;
        let folder = if base.is_empty() && self.prefix.is_empty() { None } else { Some(self.join(base)?) };
        let found = match &self.pages {
            Some(pages) => {
                runtime()?.block_on(listed(pages.as_ref(), folder.as_ref(), after.as_ref(), recursive))
            }
            None => {
                let stream = match &after {
                    Some(after) => self.backend.list_with_offset(folder.as_ref(), after),
                    None => self.backend.list(folder.as_ref()),
                };
                runtime()?.block_on(stream.try_collect())
            }
        };
        let found: Vec<_> = found.map_err(|error| self.failed(prefix, error))?;
        let depth = if base.is_empty() { 0 } else { base.len() + 1 };
        let mut found: Vec<ObjectMeta> = found.into_iter().map(|meta| self.meta(meta)).collect();
        found.retain(|meta| recursive || meta.path.get(depth..).is_some_and(|rest| !rest.contains('/')));
        // Some stores (directory buckets of S3) ignore the start of a listing.
        if let Some(after) = after.as_ref().map(|after| self.below(after)) {
            found.retain(|meta| meta.path > after);
        }
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn first_look(&self, path: &str, most: u64, folder: &str) -> Result<Option<FirstLook>> {
        let Some(pages) = &self.pages else { return Ok(None) };
        let full = self.full(path)?;
        let prefix = format!("{}/", self.join(folder)?);
        let options = PaginatedListOptions {
            delimiter: Some("/".into()),
            max_keys: Some(FIRST_LOOK),
            ..PaginatedListOptions::default()
        };
        let file = at_most(Arc::clone(&self.backend), full, most);
        let (page, file) = runtime()?.block_on(async move {
            let mut listing = pin!(pages.list_paginated(Some(&prefix), options));
            let (page, file) = match timeout(FILE_AFTER, &mut listing).await {
                Ok(page) => (page, Either::Left(file)),
                // The task goes on if its result is not needed, so that its connection can be used again.
                Err(_) => {
                    let file = tokio::spawn(file);
                    (listing.await, Either::Right(file.map(|ended| ended.unwrap_or(Ok(None)))))
                }
            };
            let is_long = page.as_ref().is_ok_and(|page| page.page_token.is_some());
            (page, if is_long { file.await } else { Ok(None) })
        });
        let page = page.map_err(|error| self.failed(folder, error))?;
        let entries = page.page_token.is_none().then(|| {
            let mut entries: Vec<ObjectMeta> =
                page.result.objects.into_iter().map(|meta| self.meta(meta)).collect();
            entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            entries
        });
        Ok(Some(FirstLook { file: file.ok().flatten(), entries }))
    }

    fn expect_commit(&self) {
        // On an error, the commit checks again and returns the error.
        let _ = self.proof.begin(&|path| self.full(path));
    }

    fn head(&self, path: &str) -> Result<Option<ObjectMeta>> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match runtime()?.block_on(self.backend.get_opts(&self.full(path)?, options)) {
            Ok(result) => Ok(Some(self.meta(result.meta))),
            Err(BackendError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    fn get(&self, path: &str) -> Result<Bytes> {
        let full = self.full(path)?;
        runtime()?
            .block_on(async { self.backend.get_opts(&full, GetOptions::default()).await?.bytes().await })
            .map_err(|error| self.failed(path, error))
    }

    fn get_at_most(&self, path: &str, most: u64) -> Result<Option<Bytes>> {
        if let Some((_, data)) = self.created().take_if(|(created, _)| created == path) {
            return Ok(Some(data).filter(|data| data.len() as u64 <= most));
        }
        let read = at_most(Arc::clone(&self.backend), self.full(path)?, most);
        runtime()?.block_on(read).map_err(|error| self.failed(path, error))
    }

    fn is_remote(&self) -> bool {
        self.pages.is_some()
    }

    fn tail(&self, path: &str, length: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        let full = self.full(path)?;
        let read = async {
            let options = GetOptions { range: Some(GetRange::Suffix(length)), ..GetOptions::default() };
            let found = self.backend.get_opts(&full, options).await?;
            Ok((found.meta.clone(), found.bytes().await?))
        };
        match runtime()?.block_on(read) {
            Ok((meta, bytes)) => Ok(Some((self.meta(meta), bytes))),
            Err(BackendError::NotFound { .. }) => Ok(None),
            // Azure has no ranges from the end, and no store has ranges of an empty object.
            Err(_) => {
                let Some(found) = self.head(path)? else { return Ok(None) };
                let mut bytes = self.get_ranges(path, &[found.size.saturating_sub(length)..found.size])?;
                Ok(Some((found, bytes.pop().unwrap_or_default())))
            }
        }
    }

    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let full = self.full(path)?;
        // Empty ranges are handled here, as backends refuse them.
        let wanted: Vec<_> = ranges.iter().filter(|range| range.start < range.end).cloned().collect();
        let read = runtime()?.block_on(self.backend.get_ranges(&full, &wanted));
        let whole = |read: &Vec<Bytes>| {
            read.iter().zip(&wanted).all(|(part, range)| part.len() as u64 == range.end - range.start)
        };
        match read {
            Ok(read) if whole(&read) => {
                let mut read = read.into_iter();
                Ok(ranges
                    .iter()
                    .map(
                        |range| {
                            if range.start < range.end {
                                read.next().unwrap_or_default()
                            } else {
                                Bytes::new()
                            }
                        },
                    )
                    .collect())
            }
            // Only after a failure, the size is requested, to tell a range beyond the end from other
            // failures.
            failed => {
                let size =
                    self.head(path)?.ok_or_else(|| Error::new(Kind::NotFound, "no such file").at(path))?.size;
                match (ranges.iter().find(|range| range.start > range.end || range.end > size), failed) {
                    (Some(range), _) => Err(past_end(path, size, range)),
                    (None, Err(error)) => Err(self.failed(path, error)),
                    (None, Ok(_)) => {
                        Err(Error::new(Kind::Io, "the store returned fewer bytes than requested").at(path))
                    }
                }
            }
        }
    }

    fn put_if_absent(&self, path: &str, data: Bytes) -> Result<PutOutcome> {
        let full = self.full(path)?;
        let deleting = self.proof.finish(&|path| self.full(path))?;
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = runtime()?.block_on(self.commits.put_opts(&full, PutPayload::from(data.clone()), options));
        if let Some(deleting) = deleting {
            let _ = runtime()?.block_on(deleting); // it began before the put, so it has ended by now
        }
        match put {
            Ok(_) => {
                if self.is_remote() && path.ends_with(".json") && data.len() <= LARGEST_KEPT {
                    *self.created() = Some((path.to_owned(), data));
                }
                Ok(PutOutcome::Created)
            }
            Err(BackendError::AlreadyExists { .. } | BackendError::Precondition { .. }) => {
                Ok(PutOutcome::Exists)
            }
            Err(error @ BackendError::NotImplemented { .. }) => {
                Err(Error::new(Kind::UnsafeStore, "the store has no put-if-absent").at(path).caused_by(error))
            }
            Err(BackendError::Generic { .. }) => Ok(PutOutcome::Unknown),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    fn put(&self, path: &str, data: Bytes) -> Result<()> {
        let full = self.full(path)?;
        self.forget_created(path);
        self.proof.begin(&|path| self.full(path))?;
        let put = self.backend.put_opts(&full, PutPayload::from(data), PutOptions::default());
        runtime()?.block_on(put).map(drop).map_err(|error| self.failed(path, error))
    }

    fn copy_source(&self, path: &str) -> Result<CopySource> {
        Ok(CopySource::Object {
            place: self.place(),
            storage: self.options.storage.clone(),
            path: self.full(path)?.to_string(),
        })
    }

    fn copy(&self, source: &CopySource, to: &str) -> Result<bool> {
        let CopySource::Object { place, storage, path } = source else { return Ok(false) };
        if *place != self.place() || *storage != self.options.storage {
            return Ok(false);
        }
        let from = Path::parse(path).map_err(|error| {
            Error::new(Kind::InvalidArgument, "not a name of this store").at(path).caused_by(error)
        })?;
        self.forget_created(to);
        match runtime()?.block_on(self.backend.copy(&from, &self.full(to)?)) {
            Ok(()) => Ok(true),
            Err(error @ BackendError::NotFound { .. }) => Err(self.failed(path, error)),
            // Some stores cannot copy, or not more than a few gigabytes; the bytes are then read and written
            // here.
            Err(_) => Ok(false),
        }
    }

    fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        self.forget_created(path);
        self.proof.begin(&|path| self.full(path))?;
        let upload =
            Upload::new(Arc::clone(&self.backend), self.full(path)?, runtime()?, &self.location, path);
        Ok(Box::new(upload))
    }

    fn delete(&self, path: &str) -> Result<bool> {
        self.forget_created(path);
        if self.head(path)?.is_none() {
            return Ok(false);
        }
        let deleted = runtime()?.block_on(self.backend.delete(&self.full(path)?));
        deleted.map(|()| true).map_err(|error| self.failed(path, error))
    }

    fn delete_all(&self, paths: &[&str]) -> Result<u64> {
        if !self.is_remote() {
            return paths.iter().try_fold(0, |deleted, path| Ok(deleted + u64::from(self.delete(path)?)));
        }
        paths.iter().for_each(|path| self.forget_created(path));
        let full = paths.iter().map(|path| self.full(path)).collect::<Result<Vec<_>>>()?;
        let names = futures::stream::iter(full.into_iter().map(Ok)).boxed();
        let deleting = self.backend.delete_stream(names).map(|deleted| match deleted {
            Ok(_) => Ok(1),
            Err(BackendError::NotFound { .. }) => Ok(0),
            Err(error) => Err(error),
        });
        let counted = runtime()?.block_on(deleting.try_fold(0, |sum, one| async move { Ok(sum + one) }));
        counted.map_err(|error| self.failed("", error))
    }

    fn remove_empty_directories(&self, _prefix: &str) -> Result<u64> {
        Ok(0)
    }

    fn outside(&self, location: &str) -> Result<(Arc<dyn Store>, String)> {
        open_outside(location, &self.options)
    }
}

/// Lists the objects of a folder, page by page; with `recursive`, also those in its folders.
async fn listed(
    pages: &dyn PaginatedListStore,
    folder: Option<&Path>,
    after: Option<&Path>,
    recursive: bool,
) -> object_store::Result<Vec<object_store::ObjectMeta>> {
    let prefix = folder.map(|folder| format!("{folder}/"));
    let mut found = Vec::new();
    let mut page_token = None;
    loop {
        let options = PaginatedListOptions {
            offset: after.map(ToString::to_string),
            delimiter: (!recursive).then_some("/".into()),
            page_token,
            ..PaginatedListOptions::default()
        };
        let page = pages.list_paginated(prefix.as_deref(), options).await?;
        found.extend(page.result.objects);
        page_token = page.page_token;
        if page_token.is_none() {
            return Ok(found);
        }
    }
}
