//! Writes one object of an object store: a small one by a single put, a larger one in parts that are uploaded
//! while it is written.

use std::io;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{ObjectStore, PutOptions, PutPayload, WriteMultipart};
use tokio::runtime::Runtime;

use super::{ObjectWriter, failure};
use crate::error::{Error, Kind, Result};

/// Number of bytes of each part of an upload.
const PART_BYTES: usize = 8 << 20;

/// Number of parts of one file that are uploaded at a time; all are in memory.
const PARTS_AT_ONCE: usize = 4;

/// A file that is being written. Up to one part is kept in memory; a larger file is uploaded in several parts
/// at a time.
pub struct Upload {
    backend: Arc<dyn ObjectStore>,
    full: Path,
    runtime: Arc<Runtime>,
    location: String,
    path: String,
    first: Vec<u8>,
    parts: Option<WriteMultipart>,
    written: u64,
}

impl Upload {
    /// Begins a file. `full`: its name in the backend; `location` and `path`: as users know it, for errors.
    pub fn new(
        backend: Arc<dyn ObjectStore>,
        full: Path,
        runtime: Arc<Runtime>,
        location: &str,
        path: &str,
    ) -> Self {
        Self {
            backend,
            full,
            runtime,
            location: location.to_owned(),
            path: path.to_owned(),
            first: Vec::new(),
            parts: None,
            written: 0,
        }
    }

    /// Returns the upload in parts, which the first call begins.
    fn parts(&mut self) -> Result<&mut WriteMultipart> {
        if self.parts.is_none() {
            let begun =
                self.runtime.block_on(self.backend.put_multipart_opts(&self.full, Default::default()));
            let begun = begun.map_err(|error| failure::backend_error(&self.location, &self.path, error))?;
            self.parts = Some(WriteMultipart::new_with_chunk_size(begun, PART_BYTES));
        }
        self.parts.as_mut().ok_or_else(|| Error::new(Kind::Io, "the upload is closed").at(self.path.clone()))
    }

    fn send(&mut self, data: &[u8]) -> Result<()> {
        let (runtime, location, path) = (Arc::clone(&self.runtime), self.location.clone(), self.path.clone());
        let parts = self.parts()?;
        let ready = runtime.block_on(parts.wait_for_capacity(PARTS_AT_ONCE));
        ready.map_err(|error| failure::backend_error(&location, &path, error))?;
        let _entered = runtime.enter(); // tasks of the runtime upload the parts
        parts.write(data);
        Ok(())
    }

    fn give_up(&mut self) {
        if let Some(parts) = self.parts.take() {
            // Nothing is visible; parts that stay are deleted by the store later.
            let _ = self.runtime.block_on(parts.abort());
        }
    }
}

impl io::Write for Upload {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.written += data.len() as u64;
        if self.parts.is_none() && self.first.len() + data.len() <= PART_BYTES {
            self.first.extend_from_slice(data);
            return Ok(data.len());
        }
        let first = std::mem::take(&mut self.first);
        for each in [first.as_slice(), data].into_iter().flat_map(|each| each.chunks(PART_BYTES)) {
            self.send(each).map_err(io::Error::other)?;
        }
        Ok(data.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ObjectWriter for Upload {
    fn finish(mut self: Box<Self>) -> Result<u64> {
        let sent = match self.parts.take() {
            Some(parts) => self.runtime.block_on(parts.finish()),
            None => {
                let whole = PutPayload::from(std::mem::take(&mut self.first));
                self.runtime.block_on(self.backend.put_opts(&self.full, whole, PutOptions::default()))
            }
        };
        sent.map_err(|error| failure::backend_error(&self.location, &self.path, error))?;
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
