//! A store with one file in memory, so that no target uses a disk.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::TABLE;
use crate::error::{Error, Kind, Result};
use crate::store::{ObjectMeta, ObjectWriter, PutOutcome, Store};

/// A store with one file, which is at every path that ends with `name`.
#[derive(Debug)]
pub struct OneFile {
    name: &'static str,
    data: Bytes,
}

impl OneFile {
    /// Makes the store with these bytes.
    pub fn with(name: &'static str, data: &[u8]) -> Arc<dyn Store> {
        Arc::new(Self { name, data: Bytes::copy_from_slice(data) })
    }
}

fn missing(path: &str) -> Error {
    Error::new(Kind::NotFound, "no such file").at(path)
}

impl Store for OneFile {
    fn location(&self) -> &str {
        TABLE
    }
    fn list_from(&self, _: &str, _: Option<&str>, _: bool) -> Result<Vec<ObjectMeta>> {
        Ok(Vec::new())
    }
    fn head(&self, path: &str) -> Result<Option<ObjectMeta>> {
        let size = self.data.len() as u64;
        let found =
            || ObjectMeta { path: path.to_owned(), size, modified_ms: 0, symlink: false, identity: 0 };
        Ok(path.ends_with(self.name).then(found))
    }
    fn get(&self, path: &str) -> Result<Bytes> {
        if path.ends_with(self.name) { Ok(self.data.clone()) } else { Err(missing(path)) }
    }
    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let data = self.get(path)?;
        let size = data.len() as u64;
        let piece = |range: &Range<u64>| {
            let inside = range.start <= range.end && range.end <= size;
            let past = || Error::new(Kind::Io, "range past the end").at(path);
            inside.then(|| data.slice(range.start as usize..range.end as usize)).ok_or_else(past)
        };
        ranges.iter().map(piece).collect()
    }
    fn put_if_absent(&self, path: &str, _: Bytes) -> Result<PutOutcome> {
        Err(missing(path))
    }
    fn put(&self, path: &str, _: Bytes) -> Result<()> {
        Err(missing(path))
    }
    fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        Err(missing(path))
    }
    fn delete(&self, path: &str) -> Result<bool> {
        Err(missing(path))
    }
    fn remove_empty_directories(&self, _: &str) -> Result<u64> {
        Ok(0)
    }
    fn outside(&self, location: &str) -> Result<(Arc<dyn Store>, String)> {
        Err(Error::new(Kind::PathOutsideTable, "not allowed").found(location))
    }
}
