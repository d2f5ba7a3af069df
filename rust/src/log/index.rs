//! Which row of which segment last spoke of a file: the key is (path made canonical, vector), as "Action Reconciliation" has it.
//!
//! The table holds hashes and positions only; keys stay in the Arrow columns. Two layers, so that a new version shares the large
//! one: `base` covers the segments up to a mark and is never changed, `recent` what came after and is small.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, StringArray, StructArray};
use hashbrown::HashTable;

use super::commit::vector_id;
use super::schema::{text, vectors};
use crate::error::Result;
use crate::store::canonical;

/// A row of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Which segment.
    pub segment: u32,
    /// Which row of it.
    pub row: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u64,
    at: Position,
}

/// Keys of one batch, hashed.
pub struct Keys<'a> {
    root: &'a str,
    paths: &'a StringArray,
    vectors: &'a StructArray,
}

impl<'a> Keys<'a> {
    /// `batch` has the columns `path` and `deletionVector`.
    pub fn of(root: &'a str, batch: &'a RecordBatch) -> Result<Self> {
        Ok(Self { root, paths: text(batch, "path")?, vectors: vectors(batch)? })
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// None at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The path in a row, as the log spells it.
    pub fn path(&self, row: usize) -> &str {
        self.paths.value(row)
    }

    fn hash(&self, row: usize) -> u64 {
        let mut hasher = ahash::RandomState::with_seeds(0x5ca1, 0xab1e, 0xde1, 0x7a).build_hasher();
        canonical(self.root, self.paths.value(row)).hash(&mut hasher);
        vector_id(self.vectors, row).hash(&mut hasher);
        hasher.finish()
    }

    fn same(&self, row: usize, other: &Keys<'_>, other_row: usize) -> bool {
        let (mine, theirs) = (self.paths.value(row), other.paths.value(other_row));
        (mine == theirs || canonical(self.root, mine) == canonical(other.root, theirs))
            && vector_id(self.vectors, row) == vector_id(other.vectors, other_row)
    }
}

/// The index over the segments of a snapshot.
#[derive(Debug, Clone, Default)]
pub struct Index {
    base: Arc<HashTable<Slot>>,
    recent: HashTable<Slot>,
}

impl Index {
    /// Room for `rows` more in the layer that is being filled.
    pub fn reserve(&mut self, rows: usize) {
        self.recent.reserve(rows, |slot| slot.hash);
    }

    /// How many entries the layer that is copied with each version has.
    pub fn recent_len(&self) -> usize {
        self.recent.len()
    }

    /// Makes what was gathered the shared layer. Only for an index that had none.
    pub fn seal(&mut self) {
        self.base = Arc::new(std::mem::take(&mut self.recent));
    }

    /// Forgets the recent layer.
    pub fn clear_recent(&mut self) {
        self.recent = HashTable::new();
    }

    /// Notes that `row` of `keys` is what now speaks of its file; gives what did before.
    pub fn replace<'a>(&mut self, keys: &Keys<'_>, row: usize, at: Position, of: impl Fn(u32) -> Option<&'a Keys<'a>>) -> Option<Position> {
        let hash = keys.hash(row);
        let same = |slot: &Slot| slot.hash == hash && of(slot.at.segment).is_some_and(|known| known.same(slot.at.row as usize, keys, row));
        if let Some(slot) = self.recent.find_mut(hash, same) {
            return Some(std::mem::replace(&mut slot.at, at));
        }
        let before = self.base.find(hash, same).map(|slot| slot.at);
        self.recent.insert_unique(hash, Slot { hash, at }, |slot| slot.hash);
        before
    }
}
