//! Tables behind plain HTTP: read-only, and found without listings, which HTTP does not have.
//!
//! Versions of the log are requested by name, beginning with the checkpoint in `_last_checkpoint`, until one
//! is missing.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;

use super::object::ObjectStoreAdapter;
use super::{ObjectMeta, ObjectWriter, PutOutcome, Store};
use crate::error::{Error, Kind, Result};

/// Number of versions that are requested at a time.
const ASKED_AT_ONCE: u64 = 8;
/// Maximum number of bytes of `_last_checkpoint`; a longer one is not read.
const LONGEST_HINT: u64 = 4 << 20;
const LOG: &str = "_delta_log";

/// A table's folder behind HTTP.
#[derive(Debug)]
pub struct HttpTable(ObjectStoreAdapter);

/// The fields of `_last_checkpoint` that give the names of the checkpoint's files.
#[derive(Deserialize)]
struct Hint {
    version: u64,
    parts: Option<u32>,
    #[serde(rename = "v2Checkpoint")]
    v2: Option<NamedFile>,
}

#[derive(Deserialize)]
struct NamedFile {
    path: String,
}

impl Hint {
    fn files(&self) -> Vec<String> {
        let version = self.version;
        match (&self.v2, self.parts) {
            (Some(file), _) => vec![file.path.clone()],
            (None, Some(parts)) => (1..=parts.min(10_000))
                .map(|part| format!("{version:020}.checkpoint.{part:010}.{parts:010}.parquet"))
                .collect(),
            (None, None) => vec![format!("{version:020}.checkpoint.parquet")],
        }
    }
}

impl HttpTable {
    /// Makes the table from the client of its store.
    pub fn new(client: ObjectStoreAdapter) -> Self {
        Self(client)
    }

    fn refused<T>(&self, path: &str) -> Result<T> {
        let error = Error::new(Kind::UnsupportedFeature, "a table behind HTTP can only be read");
        Err(error
            .at(format!("{}/{path}", self.0.location()))
            .expected("an address of S3, Google Cloud Storage or Azure for writing"))
    }

    /// Returns which of some files in the log exist, in order. A server that forbids listings may answer 403
    /// for a missing file.
    fn present(&self, names: &[String]) -> Result<Vec<Option<ObjectMeta>>> {
        let ask = |name: &String| match self.0.head(&format!("{LOG}/{name}")) {
            Err(error) if error.message().starts_with("the credentials do not allow it") => Ok(None),
            other => other,
        };
        std::thread::scope(|scope| {
            let asked: Vec<_> = names.iter().map(|name| scope.spawn(move || ask(name))).collect();
            let lost =
                || Err(Error::new(Kind::Io, "a request ended without an answer").at(self.0.location()));
            asked.into_iter().map(|each| each.join().unwrap_or_else(|_| lost())).collect()
        })
    }

    fn checkpoint(&self, version: u64) -> Result<Vec<ObjectMeta>> {
        let Ok(Some(text)) = self.0.get_at_most(&format!("{LOG}/_last_checkpoint"), LONGEST_HINT) else {
            return Ok(Vec::new());
        };
        let Ok(hint) = serde_json::from_slice::<Hint>(&text) else { return Ok(Vec::new()) };
        if hint.version != version {
            return Ok(Vec::new());
        }
        let names: Vec<_> = hint.files().into_iter().filter(|name| !name.contains('/')).collect();
        let mut found = Vec::new();
        for names in names.chunks(ASKED_AT_ONCE as usize) {
            found.extend(self.present(names)?.into_iter().flatten());
        }
        Ok(found)
    }
}

impl Store for HttpTable {
    fn location(&self) -> &str {
        self.0.location()
    }

    fn list_from(&self, prefix: &str, start_after: Option<&str>, recursive: bool) -> Result<Vec<ObjectMeta>> {
        if recursive || prefix.trim_end_matches('/') != LOG {
            return self.refused(prefix);
        }
        let first = start_after.and_then(|after| after.get(..20)?.parse::<u64>().ok());
        let mut found = match first {
            Some(version) => self.checkpoint(version)?,
            None => Vec::new(),
        };
        let mut version = first.unwrap_or(0);
        loop {
            let names: Vec<_> =
                (version..version + ASKED_AT_ONCE).map(|each| format!("{each:020}.json")).collect();
            let present = self.present(&names)?;
            let ends = present.last().is_none_or(Option::is_none);
            found.extend(present.into_iter().flatten());
            version += ASKED_AT_ONCE;
            if ends {
                break;
            }
        }
        let after = start_after.map(|after| format!("{LOG}/{after}"));
        found.retain(|meta| after.as_ref().is_none_or(|after| meta.path > *after));
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn head(&self, path: &str) -> Result<Option<ObjectMeta>> {
        self.0.head(path)
    }
    fn get(&self, path: &str) -> Result<Bytes> {
        self.0.get(path)
    }
    fn get_at_most(&self, path: &str, most: u64) -> Result<Option<Bytes>> {
        self.0.get_at_most(path, most)
    }
    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.0.get_ranges(path, ranges)
    }
    fn tail(&self, path: &str, length: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        self.0.tail(path, length)
    }
    fn is_remote(&self) -> bool {
        true
    }
    fn put_if_absent(&self, path: &str, _data: Bytes) -> Result<PutOutcome> {
        self.refused(path)
    }
    fn put(&self, path: &str, _data: Bytes) -> Result<()> {
        self.refused(path)
    }
    fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        self.refused(path)
    }
    fn delete(&self, path: &str) -> Result<bool> {
        self.refused(path)
    }
    fn delete_all(&self, paths: &[&str]) -> Result<u64> {
        if paths.is_empty() { Ok(0) } else { self.refused(paths[0]) }
    }
    fn remove_empty_directories(&self, _prefix: &str) -> Result<u64> {
        Ok(0)
    }
    fn outside(&self, location: &str) -> Result<(Arc<dyn Store>, String)> {
        self.0.outside(location)
    }
}
