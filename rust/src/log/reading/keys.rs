//! The keys by which replay compares files: 128-bit hashes of the key of "Action Reconciliation" (canonical
//! path, deletion vector). The texts of keys can stay in the log's files.
//!
//! The hash has another seed in each process, so a log cannot be written on purpose so that its files have
//! equal hashes. By chance, two of a thousand million files have equal hashes in one of 10^20 tables.

use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, OnceLock};

use ahash::RandomState;
use arrow::array::{Array, RecordBatch, StringArray, StructArray};
use hashbrown::HashTable;

use super::commit::{VectorId, vector_id};
use crate::error::Result;
use crate::log::schema::{text, vectors};
use crate::store::canonical;

/// The 128-bit hash of a path and a vector.
pub type Key = u128;

static HASHERS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// Returns the key of a file without a vector.
pub fn of_path(root: &str, path: &str) -> Key {
    let path = canonical(root, path);
    bits(&path.as_ref())
}

/// Returns the key of a file with a vector. `path`: the key of its path, see [`of_path`]; `vector`: see
/// [`vector_id`].
pub fn with_vector(path: Key, vector: Option<VectorId<'_>>) -> Key {
    vector.map_or(path, |vector| bits(&(path, vector)))
}

fn bits(of: &impl Hash) -> Key {
    let [high, low] = [&HASHERS[0], &HASHERS[1]].map(|hasher| Key::from(hasher.hash_one(of)));
    high << 64 | low
}

/// Appends the keys of all rows to `keys`. `vectors`: `None` if no file has a vector.
pub fn append(keys: &mut Vec<Key>, root: &str, paths: &StringArray, vectors: Option<&StructArray>) {
    let key = |row| {
        with_vector(of_path(root, paths.value(row)), vectors.and_then(|vectors| vector_id(vectors, row)))
    };
    keys.extend((0..paths.len()).map(key));
}

/// Returns the keys of a batch with the columns `path` and `deletionVector`.
pub fn of_batch(root: &str, batch: &RecordBatch) -> Result<Vec<Key>> {
    let mut keys = Vec::new();
    append(&mut keys, root, text(batch, "path")?, Some(vectors(batch)?));
    Ok(keys)
}

/// Returns the half of a key that hash tables use as its hash.
pub fn slot(key: Key) -> u64 {
    key as u64
}

/// The keys of rows, and an index from keys to rows.
#[derive(Debug, Default)]
pub struct Keys {
    keys: Vec<Key>,
    /// The index, built at the second search. For a single search, comparing all keys takes less time.
    rows: OnceLock<HashTable<u32>>,
    asked: AtomicBool,
}

impl Keys {
    /// Makes the keys of rows, given in order.
    pub fn new(keys: Vec<Key>) -> Self {
        Self { keys, ..Self::default() }
    }

    /// Returns the keys in the order of rows.
    pub fn all(&self) -> &[Key] {
        &self.keys
    }

    /// True if searching for a few keys is faster than comparing all rows, which is so from the second search
    /// on.
    pub fn is_quick(&self) -> bool {
        self.rows.get().is_some() || self.asked.swap(true, Ordering::Relaxed)
    }

    /// Returns the rows with this key: at most one, unless the log is invalid.
    pub fn rows_of(&self, key: Key) -> impl Iterator<Item = u32> + '_ {
        self.rows
            .get_or_init(|| self.index())
            .iter_hash(slot(key))
            .copied()
            .filter(move |row| self.keys[*row as usize] == key)
    }

    fn index(&self) -> HashTable<u32> {
        let mut rows = HashTable::with_capacity(self.keys.len());
        for (row, key) in self.keys.iter().enumerate() {
            rows.insert_unique(slot(*key), row as u32, |row| slot(self.keys[*row as usize]));
        }
        rows
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::log::schema::vector_fields;
    use arrow::array::{ArrayRef, Int32Array, Int64Array, new_null_array};
    use arrow::buffer::NullBuffer;
    use std::sync::Arc;

    fn keyed(rows: &[(&str, Option<i32>)]) -> Vec<Key> {
        let count = rows.len();
        let text = |value: &str| Arc::new(StringArray::from(vec![value; count])) as ArrayRef;
        let offsets: Int32Array = rows.iter().map(|(_, offset)| *offset).collect();
        let nulls = NullBuffer::from_iter(rows.iter().map(|(_, offset)| offset.is_some()));
        let columns: Vec<ArrayRef> = vec![
            text("u"),
            text("ab"),
            Arc::new(offsets),
            new_null_array(&arrow::datatypes::DataType::Int32, count),
            Arc::new(Int64Array::from(vec![1; count])),
        ];
        let vectors = StructArray::try_new(vector_fields(), columns, Some(nulls)).unwrap();
        let mut keys = Vec::new();
        append(&mut keys, "/t", &rows.iter().map(|(path, _)| Some(*path)).collect(), Some(&vectors));
        keys
    }

    #[test]
    fn one_place_has_one_key_and_each_vector_its_own() {
        let keys = keyed(&[
            ("a b", None),
            ("a%20b", None),
            ("/t/a b", None),
            ("a b", Some(1)),
            ("a b", Some(2)),
            ("c", None),
        ]);
        assert_eq!((keys[0], keys[0]), (keys[1], keys[2]));
        let mut distinct = keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 4);
    }

    #[test]
    fn rows_are_found() {
        let keys = keyed(&[("a", None), ("b", None), ("a", None)]);
        let known = Keys::new(keys.clone());
        let mut rows: Vec<u32> = known.rows_of(keys[0]).collect();
        rows.sort_unstable();
        assert_eq!(rows, [0, 2]);
        assert_eq!(known.rows_of(keys[1]).collect::<Vec<_>>(), [1]);
        assert_eq!(known.rows_of(7).count(), 0);
    }
}
