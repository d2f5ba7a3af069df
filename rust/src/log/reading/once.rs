//! Checks that a commit names each file once ("Action Reconciliation").

use std::collections::HashSet;

use arrow::array::RecordBatch;
use hashbrown::HashTable;

use super::commit::vector_id;
use super::keys::{self, Key};
use super::line::FileKind;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::log::schema::{text, vectors};
use crate::parallel::{cut, on_threads};
use crate::store::canonical;

/// The keys of the files of one commit: for each action the key with the vector, and the key of the path
/// alone.
#[derive(Debug, Default)]
pub struct FileKeys {
    /// Keys of `add` actions, in order: with the vector, and of the path alone.
    pub adds: Vec<(Key, Key)>,
    /// Keys of `remove` actions, likewise.
    pub removes: Vec<(Key, Key)>,
}

/// A function that returns the path of the nth action of a kind, for error messages.
type PathOf<'a> = &'a dyn Fn(FileKind, usize) -> String;

impl FileKeys {
    /// Checks a commit: no path is added twice or removed twice, and no file (path and vector) is both added
    /// and removed.
    pub fn check_once(&self, place: &str, path: PathOf<'_>) -> Result<()> {
        for (of, kind, done, name) in [
            (&self.adds, FileKind::Add, "added", "add"),
            (&self.removes, FileKind::Remove, "removed", "remove"),
        ] {
            if let Some(row) = repeated(of.iter().map(|(_, path)| *path)) {
                let error = Error::protocol(format!("a file is {done} twice in one commit"))
                    .at(place)
                    .found(path(kind, row));
                return Err(error.expected(format!("one {name} of it")));
            }
        }
        if self.removes.is_empty() || self.adds.is_empty() {
            return Ok(());
        }
        let added: HashSet<Key> = self.adds.iter().map(|(key, _)| *key).collect();
        match self.removes.iter().position(|(key, _)| added.contains(key)) {
            Some(row) => {
                let error = Error::protocol("one commit both adds and removes a file")
                    .at(place)
                    .found(path(FileKind::Remove, row));
                Err(error.expected("one of the two, for each path and vector"))
            }
            None => Ok(()),
        }
    }

    /// Checks a compacted range, whose actions are reconciled: no file is in it twice, added or removed.
    pub fn check_reconciled(&self, place: &str, path: PathOf<'_>) -> Result<()> {
        let Some(row) = repeated(self.removes.iter().chain(&self.adds).map(|(key, _)| *key)) else {
            return Ok(());
        };
        let removes = self.removes.len();
        let found =
            if row < removes { path(FileKind::Remove, row) } else { path(FileKind::Add, row - removes) };
        Err(Error::protocol("a file twice in one compacted range")
            .at(place)
            .found(found)
            .expected("one action for each path and vector"))
    }
}

/// Returns the position of the first repeated key.
fn repeated(keys: impl Iterator<Item = Key>) -> Option<usize> {
    let mut known = HashTable::with_capacity(keys.size_hint().0);
    for (row, key) in keys.enumerate() {
        if known.find(keys::slot(key), |other| *other == key).is_some() {
            return Some(row);
        }
        known.insert_unique(keys::slot(key), key, |key| keys::slot(*key));
    }
    None
}

/// Checks that actions in memory name each file once. `reconciled`: true for the actions of a compacted
/// range.
pub fn check(
    root: &str,
    place: &str,
    adds: &[RecordBatch],
    removes: &[RecordBatch],
    reconciled: bool,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut files = FileKeys::default();
    for (batches, into) in [(adds, &mut files.adds), (removes, &mut files.removes)] {
        let pieces: Vec<RecordBatch> = batches.iter().flat_map(cut).collect();
        let keys = on_threads(&pieces, interrupt, &|piece| {
            let (paths, vectors) = (text(piece, "path")?, vectors(piece)?);
            let keys = (0..piece.num_rows()).map(|row| {
                let path = keys::of_path(root, paths.value(row));
                (keys::with_vector(path, vector_id(vectors, row)), path)
            });
            Ok(keys.collect::<Vec<_>>())
        })?;
        into.extend(keys.into_iter().flatten());
    }
    let path = |kind: FileKind, nth: usize| {
        let batches = if kind == FileKind::Add { adds } else { removes };
        let paths = batches.iter().filter_map(|batch| text(batch, "path").ok());
        paths
            .flat_map(|paths| paths.iter())
            .nth(nth)
            .flatten()
            .map(|path| canonical(root, path).into_owned())
            .unwrap_or_default()
    };
    if reconciled { files.check_reconciled(place, &path) } else { files.check_once(place, &path) }
}
