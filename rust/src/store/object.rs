//! Any backend of the object_store crate behind [`Store`]; the memory store is one of them.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error as BackendError, GetOptions, MultipartUpload, ObjectStore, PutMode, PutOptions, PutPayload};
use tokio::runtime::{Builder, Runtime};

use super::local::past_end;
use super::{ObjectMeta, ObjectWriter, OpenOptions, PutOutcome, Store, open_outside, path};
use crate::error::{Error, Kind, Result};

/// Size of the parts of an upload.
const PART_BYTES: usize = 8 << 20;

/// A prefix of one object_store backend.
#[derive(Debug)]
pub struct ObjectStoreAdapter {
    location: String,
    prefix: String,
    backend: Arc<dyn ObjectStore>,
    options: OpenOptions,
}

/// Memory stores live as long as the process, by the name in their URL.
static MEMORY: Mutex<Option<HashMap<String, Arc<InMemory>>>> = Mutex::new(None);

/// The runtime of this process: after a fork the child makes its own.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

fn runtime() -> Result<Arc<Runtime>> {
    let mut slot = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = slot.as_ref()
        && *owner == process
    {
        return Ok(Arc::clone(runtime));
    }
    let fresh = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let fresh = Arc::new(fresh.map_err(|error| Error::new(Kind::Io, "no threads for the store").caused_by(error))?);
    // The parent's threads do not exist here: dropping its runtime would wait for them for ever.
    std::mem::forget(slot.replace((process, Arc::clone(&fresh))));
    Ok(fresh)
}

impl ObjectStoreAdapter {
    /// `memory://name/folder`: one store for each name in this process.
    pub fn memory(location: &str, options: &OpenOptions) -> Result<Self> {
        let body = location.strip_prefix("memory://").unwrap_or_default().trim_end_matches('/');
        let (name, prefix) = body.split_once('/').unwrap_or((body, ""));
        if name.is_empty() {
            return Err(Error::new(Kind::InvalidArgument, "a memory store has a name").at(location).expected("memory://name/folder"));
        }
        let mut registry = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
        let backend = Arc::clone(registry.get_or_insert_with(HashMap::new).entry(name.to_owned()).or_default());
        Self::new(format!("memory://{body}"), prefix, backend, options)
    }

    /// The folder `prefix` of a backend.
    pub fn new(location: String, prefix: &str, backend: Arc<dyn ObjectStore>, options: &OpenOptions) -> Result<Self> {
        if !prefix.is_empty() {
            path::check_relative(prefix)?;
        }
        Ok(Self { location, prefix: prefix.to_owned(), backend, options: options.clone() })
    }

    fn full(&self, path: &str) -> Result<Path> {
        path::check_relative(path)?;
        self.join(path)
    }

    fn join(&self, path: &str) -> Result<Path> {
        let text = if self.prefix.is_empty() { path.to_owned() } else { format!("{}/{path}", self.prefix) };
        Path::parse(&text).map_err(|error| Error::new(Kind::InvalidArgument, "not a name of this store").at(path).caused_by(error))
    }

    fn below(&self, full: &Path) -> String {
        let text = full.as_ref();
        let rest = text.strip_prefix(self.prefix.as_str()).unwrap_or(text);
        rest.trim_start_matches('/').to_owned()
    }

    fn meta(&self, meta: object_store::ObjectMeta) -> ObjectMeta {
        let path = self.below(&meta.location);
        let identity = meta.e_tag.map_or(0, |tag| ahash::RandomState::with_seeds(1, 2, 3, 4).hash_one(tag));
        ObjectMeta { path, size: meta.size, modified_ms: meta.last_modified.timestamp_millis(), symlink: false, identity }
    }
}

impl Store for ObjectStoreAdapter {
    fn location(&self) -> &str {
        &self.location
    }

    fn list_from(&self, prefix: &str, start_after: Option<&str>, recursive: bool) -> Result<Vec<ObjectMeta>> {
        let base = prefix.trim_end_matches('/');
        let folder = if base.is_empty() && self.prefix.is_empty() { None } else { Some(self.join(base)?) };
        let stream = match start_after {
            Some(after) => self.backend.list_with_offset(folder.as_ref(), &self.join(format!("{base}/{after}").trim_start_matches('/'))?),
            None => self.backend.list(folder.as_ref()),
        };
        let found: Vec<_> = runtime()?.block_on(stream.try_collect()).map_err(|error| backend_error(prefix, error))?;
        let depth = if base.is_empty() { 0 } else { base.len() + 1 };
        let mut found: Vec<ObjectMeta> = found.into_iter().map(|meta| self.meta(meta)).collect();
        found.retain(|meta| recursive || meta.path.get(depth..).is_some_and(|rest| !rest.contains('/')));
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn head(&self, path: &str) -> Result<Option<ObjectMeta>> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match runtime()?.block_on(self.backend.get_opts(&self.full(path)?, options)) {
            Ok(result) => Ok(Some(self.meta(result.meta))),
            Err(BackendError::NotFound { .. }) => Ok(None),
            Err(error) => Err(backend_error(path, error)),
        }
    }

    fn get(&self, path: &str) -> Result<Bytes> {
        let full = self.full(path)?;
        runtime()?
            .block_on(async { self.backend.get_opts(&full, GetOptions::default()).await?.bytes().await })
            .map_err(|error| backend_error(path, error))
    }

    fn get_at_most(&self, path: &str, most: u64) -> Result<Option<Bytes>> {
        let full = self.full(path)?;
        let read = async {
            let found = self.backend.get_opts(&full, GetOptions::default()).await?;
            if found.meta.size > most { Ok(None) } else { found.bytes().await.map(Some) }
        };
        runtime()?.block_on(read).map_err(|error| backend_error(path, error))
    }

    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let full = self.full(path)?;
        let size = self.head(path)?.ok_or_else(|| Error::new(Kind::NotFound, "no such file").at(path))?.size;
        if let Some(range) = ranges.iter().find(|range| range.start > range.end || range.end > size) {
            return Err(past_end(path, size, range));
        }
        // Empty ranges are ours to answer: backends refuse them.
        let wanted: Vec<_> = ranges.iter().filter(|range| range.start < range.end).cloned().collect();
        let mut read =
            runtime()?.block_on(self.backend.get_ranges(&full, &wanted)).map_err(|error| backend_error(path, error))?.into_iter();
        Ok(ranges.iter().map(|range| if range.start < range.end { read.next().unwrap_or_default() } else { Bytes::new() }).collect())
    }

    fn put_if_absent(&self, path: &str, data: Bytes) -> Result<PutOutcome> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match runtime()?.block_on(self.backend.put_opts(&self.full(path)?, PutPayload::from(data), options)) {
            Ok(_) => Ok(PutOutcome::Created),
            Err(BackendError::AlreadyExists { .. } | BackendError::Precondition { .. }) => Ok(PutOutcome::Exists),
            Err(error @ BackendError::NotImplemented { .. }) => {
                Err(Error::new(Kind::UnsafeStore, "the store cannot put only where nothing is").at(path).caused_by(error))
            }
            Err(BackendError::Generic { .. }) => Ok(PutOutcome::Unknown),
            Err(error) => Err(backend_error(path, error)),
        }
    }

    fn put(&self, path: &str, data: Bytes) -> Result<()> {
        let full = self.full(path)?;
        let put = self.backend.put_opts(&full, PutPayload::from(data), PutOptions::default());
        runtime()?.block_on(put).map(drop).map_err(|error| backend_error(path, error))
    }

    fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        let full = self.full(path)?;
        let runtime = runtime()?;
        let upload =
            runtime.block_on(self.backend.put_multipart_opts(&full, Default::default())).map_err(|error| backend_error(path, error))?;
        Ok(Box::new(Upload { upload: Some(upload), runtime, path: path.to_owned(), part: Vec::new(), written: 0 }))
    }

    fn delete(&self, path: &str) -> Result<bool> {
        if self.head(path)?.is_none() {
            return Ok(false);
        }
        let full = self.full(path)?;
        let deleting = self.backend.delete_stream(Box::pin(futures::stream::once(async { Ok(full) })));
        match runtime()?.block_on(deleting.try_collect::<Vec<_>>()) {
            Ok(_) => Ok(true),
            Err(BackendError::NotFound { .. }) => Ok(false),
            Err(error) => Err(backend_error(path, error)),
        }
    }

    fn remove_empty_directories(&self, _prefix: &str) -> Result<u64> {
        Ok(0)
    }

    fn outside(&self, location: &str) -> Result<(Arc<dyn Store>, String)> {
        open_outside(location, &self.options)
    }
}

struct Upload {
    upload: Option<Box<dyn MultipartUpload>>,
    runtime: Arc<Runtime>,
    path: String,
    part: Vec<u8>,
    written: u64,
}

impl Upload {
    fn send_part(&mut self) -> Result<()> {
        let upload = self.upload.as_mut().ok_or_else(|| Error::new(Kind::Io, "the upload is closed").at(self.path.clone()))?;
        let part = upload.put_part(PutPayload::from(std::mem::take(&mut self.part)));
        self.runtime.block_on(part).map_err(|error| backend_error(&self.path, error))
    }
    fn give_up(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            let _ = self.runtime.block_on(upload.abort()); // nothing is visible: at worst parts are left, which stores expire
        }
    }
}

impl io::Write for Upload {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let taken = data.len().min(PART_BYTES - self.part.len());
        self.part.extend_from_slice(&data[..taken]);
        self.written += taken as u64;
        if self.part.len() == PART_BYTES {
            self.send_part().map_err(io::Error::other)?;
        }
        Ok(taken)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ObjectWriter for Upload {
    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.send_part()?;
        if let Some(mut upload) = self.upload.take() {
            self.runtime.block_on(upload.complete()).map_err(|error| backend_error(&self.path, error))?;
        }
        Ok(self.written)
    }
    fn abort(mut self: Box<Self>) {
        self.give_up();
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.give_up();
    }
}

fn backend_error(path: &str, error: BackendError) -> Error {
    let (kind, message) = match error {
        BackendError::NotFound { .. } => (Kind::NotFound, "no such file"),
        _ => (Kind::Io, "the store failed"),
    };
    Error::new(kind, message).at(path).caused_by(error)
}
