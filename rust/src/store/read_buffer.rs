//! A store over a network that keeps small pieces of files in memory.
//!
//! A command reads some files several times: UPDATE finds its rows by one scan, reads them by another one,
//! and reads the deletion vectors of their files once more to add to them. Each further read would be a
//! request. The pieces live as long as the command. A snapshot names the files, so their bytes do not change.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::forwarded::forwarded;
use super::{CopySource, FirstLook, ObjectMeta, ObjectWriter, PutOutcome, StagedObject, Store};
use crate::error::Result;

/// Maximum number of bytes of a piece that is kept.
const LARGEST_PIECE: u64 = 1 << 20;

/// A store whose small reads of data files and deletion vectors are kept in memory.
#[derive(Debug)]
pub struct BufferedStore {
    inner: Arc<dyn Store>,
    pieces: Mutex<Pieces>,
}

/// The pieces of files that are kept in memory.
#[derive(Debug)]
struct Pieces {
    /// The pieces of each file: their first byte, and their bytes.
    of_files: HashMap<String, Vec<(u64, Bytes)>>,
    /// Number of bytes that may still be kept. When it is used up, no further piece is kept.
    left: u64,
}

impl Pieces {
    fn find(&self, path: &str, range: &Range<u64>) -> Option<Bytes> {
        let part = |(start, bytes): &(u64, Bytes)| {
            let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
            let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
            (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
        };
        self.of_files.get(path)?.iter().find_map(part)
    }

    fn keep(&mut self, path: &str, start: u64, bytes: &Bytes) {
        let size = bytes.len() as u64;
        if size > LARGEST_PIECE || size > self.left {
            return;
        }
        self.left -= size;
        // A copy, as the bytes may be part of a larger answer, which they would keep in memory.
        let piece = (start, Bytes::copy_from_slice(bytes));
        self.of_files.entry(path.to_owned()).or_default().push(piece);
    }

    fn forget(&mut self, path: &str) {
        for (_, bytes) in self.of_files.remove(path).into_iter().flatten() {
            self.left += bytes.len() as u64;
        }
    }
}

impl BufferedStore {
    /// Wraps `inner`, and keeps at most `limit` bytes that are read from it in memory.
    pub fn new(inner: Arc<dyn Store>, limit: u64) -> Self {
        Self { inner, pieces: Mutex::new(Pieces { of_files: HashMap::new(), left: limit }) }
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, path: &str) {
        self.pieces().forget(path);
    }
}

impl Store for BufferedStore {
    fn list_from(&self, prefix: &str, start_after: Option<&str>, recursive: bool) -> Result<Vec<ObjectMeta>> {
        self.inner.list_from(prefix, start_after, recursive)
    }

    fn first_look(&self, path: &str, most: u64, folder: &str) -> Result<Option<FirstLook>> {
        self.inner.first_look(path, most, folder)
    }

    fn head(&self, path: &str) -> Result<Option<ObjectMeta>> {
        self.inner.head(path)
    }

    fn get(&self, path: &str) -> Result<Bytes> {
        self.inner.get(path)
    }

    fn get_at_most(&self, path: &str, most: u64) -> Result<Option<Bytes>> {
        self.inner.get_at_most(path, most)
    }

    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let kept: Vec<Option<Bytes>> = {
            let pieces = self.pieces();
            ranges.iter().map(|range| pieces.find(path, range)).collect()
        };
        let missing: Vec<_> = ranges
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| kept.is_none())
            .map(|(range, _)| range.clone())
            .collect();
        let fetched = if missing.is_empty() { Vec::new() } else { self.inner.get_ranges(path, &missing)? };
        let mut pieces = self.pieces();
        for (range, bytes) in missing.iter().zip(&fetched) {
            pieces.keep(path, range.start, bytes);
        }
        drop(pieces);
        let mut fetched = fetched.into_iter();
        Ok(kept.into_iter().map(|kept| kept.or_else(|| fetched.next()).unwrap_or_default()).collect())
    }

    fn tail(&self, path: &str, length: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        self.inner.tail(path, length)
    }

    forwarded!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{OpenOptions, open};

    fn buffered(name: &str, limit: u64) -> (Arc<dyn Store>, BufferedStore) {
        let inner = open(&format!("memory://read-buffer/{name}"), &OpenOptions::default()).unwrap();
        inner.put("a.bin", Bytes::from_static(b"0123456789")).unwrap();
        let buffered = BufferedStore::new(Arc::clone(&inner), limit);
        (inner, buffered)
    }

    #[test]
    fn what_was_read_is_not_fetched_again() {
        let (inner, buffered) = buffered("again", 100);
        assert_eq!(buffered.get_ranges("a.bin", &[0..1, 2..6]).unwrap(), [&b"0"[..], b"2345"]);
        inner.delete("a.bin").unwrap();
        assert_eq!(buffered.get_ranges("a.bin", &[3..5, 0..1, 4..4]).unwrap(), [&b"34"[..], b"0", b""]);
        assert!(buffered.get_ranges("a.bin", &[5..7]).is_err());
    }

    #[test]
    fn only_the_missing_ranges_are_fetched() {
        let (inner, buffered) = buffered("missing", 100);
        buffered.get_ranges("a.bin", &[2..6]).unwrap();
        inner.put("a.bin", Bytes::from_static(b"abcdefghij")).unwrap();
        assert_eq!(buffered.get_ranges("a.bin", &[8..10, 2..4, 0..2]).unwrap(), [&b"ij"[..], b"23", b"ab"]);
    }

    #[test]
    fn no_more_than_the_limit_is_kept() {
        let (inner, buffered) = buffered("limit", 5);
        buffered.get_ranges("a.bin", &[0..4, 4..8, 9..10]).unwrap();
        inner.delete("a.bin").unwrap();
        assert_eq!(buffered.get_ranges("a.bin", &[0..4, 9..10]).unwrap(), [&b"0123"[..], b"9"]);
        assert!(buffered.get_ranges("a.bin", &[4..8]).is_err());
    }

    #[test]
    fn a_replaced_file_is_read_again() {
        let (_, buffered) = buffered("replaced", 10);
        for text in [b"abcdefghij", b"0123456789"] {
            buffered.put("a.bin", Bytes::from_static(text)).unwrap();
            assert_eq!(buffered.get_ranges("a.bin", &[0..10]).unwrap(), [&text[..]]);
        }
        buffered.delete("a.bin").unwrap();
        assert!(buffered.get_ranges("a.bin", &[0..10]).is_err());
    }
}
