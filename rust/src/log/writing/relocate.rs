//! Rewrites the adds of one table for another table's log, as a clone needs them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, StringBuilder, StructArray,
    new_null_array,
};
use arrow::datatypes::DataType;
use uuid::Uuid;

use crate::data_file::layout::encode;
use crate::deletion_vector::columns::Descriptors;
use crate::deletion_vector::descriptor::{Descriptor, Location, StorageType};
use crate::error::Result;
use crate::log::schema::{self, ADD, long, text};
use crate::store::path::{locate, locate_encoded, scheme};
use crate::store::system::is_drive;
use crate::store::{Place, canonical};
use crate::z85;

/// An object to copy for a deep clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedObject {
    /// Decoded path in the source's store, or an absolute path or URL elsewhere.
    pub from: String,
    /// Decoded path in the target's store.
    pub to: String,
    /// True if the target has no such object yet: it is deleted if the clone fails.
    pub fresh: bool,
}

/// Returns the files of a table at `location` with absolute paths, also for their vectors, for a shallow
/// clone.
///
/// `part-0.parquet` of `/data/t` becomes `file:///data/t/part-0.parquet`. Row ids are omitted, as the clone
/// assigns its own.
pub fn absolute_adds(adds: &RecordBatch, location: &str) -> Result<RecordBatch> {
    let adds = schema::conform(adds, &ADD)?;
    let base = base_of(location);
    let paths = text(&adds, "path")?;
    let mut absolute =
        StringBuilder::with_capacity(paths.len(), paths.value_data().len() + paths.len() * (base.len() + 1));
    let mut whole = String::new();
    for path in paths.iter().map(Option::unwrap_or_default) {
        if is_absolute(path) {
            absolute.append_value(path);
        } else {
            whole.clear();
            whole.extend([base.as_str(), "/", path]);
            absolute.append_value(&whole);
        }
    }
    with_places(&adds, absolute.finish(), |descriptor| {
        Ok(match descriptor.location()? {
            Some(Location::InTable(path)) => Some((StorageType::Path, format!("{base}/{}", encode(&path)))),
            _ => None,
        })
    })
}

/// Returns the adds of a deep clone of the table at `location`, and the objects to copy.
///
/// A file keeps its path. If another object has this path in the target, or the file is outside of the
/// source, its name gets a prefix made from its location, size and time, which is the same each time. `live`:
/// the target's files; a file with the same path, size and time is taken to be the copy. `taken`: the paths
/// of all objects in the target.
pub fn relocated_adds(
    adds: &RecordBatch,
    location: &str,
    live: &RecordBatch,
    taken: &HashSet<String>,
) -> Result<(RecordBatch, Vec<CopiedObject>)> {
    let adds = schema::conform(adds, &ADD)?;
    let there = TargetFiles::of(&schema::conform(live, &ADD)?)?;
    let (paths, sizes, times) =
        (text(&adds, "path")?, long(&adds, "size")?, long(&adds, "modificationTime")?);
    let mut copies = Vec::new();
    let mut placed = StringBuilder::new();
    for row in 0..adds.num_rows() {
        let identity = (value(sizes, row), value(times, row));
        let (from, plain) = match locate_encoded(location, paths.value(row))? {
            Place::Inside(path) => (path.clone(), Some(path)),
            Place::Outside(place) => (place, None),
        };
        let is_copy = |path: &str| identity.1.is_some() && there.files.get(path) == Some(&identity);
        let plain = plain.filter(|path| is_copy(path) || !taken.contains(path));
        let to = plain.unwrap_or_else(|| prefixed(&from, &format!("{location}\n{from}\n{identity:?}")));
        placed.append_value(encode(&to));
        if !is_copy(&to) {
            copies.push(CopiedObject { fresh: !taken.contains(&to), from, to });
        }
    }
    let mut vectors: HashMap<Location, String> = HashMap::new();
    let adds = with_places(&adds, placed.finish(), |descriptor| {
        let Some(place) = descriptor.location()? else { return Ok(None) };
        let known = vectors.contains_key(&place);
        let (from, to, named) = match &place {
            Location::InTable(path) => (path.clone(), path.clone(), None),
            Location::Absolute(path) => {
                let id = Uuid::from_u64_pair(hash(path, 1), hash(path, 2));
                let from = match locate(location, path)? {
                    Place::Inside(path) | Place::Outside(path) => path,
                };
                (from, crate::deletion_vector::file::name(id), Some(id))
            }
        };
        if !known && !there.vectors.contains(&to) {
            copies.push(CopiedObject { fresh: !taken.contains(&to), from, to: to.clone() });
        }
        vectors.insert(place, to);
        Ok(named.map(|id| (StorageType::Uuid, z85::encode(id.as_bytes()))))
    })?;
    Ok((adds, copies))
}

/// The target's files, as decoded path -> (size, time of modification), and the paths of its vector files.
struct TargetFiles {
    files: HashMap<String, (Option<i64>, Option<i64>)>,
    vectors: HashSet<String>,
}

impl TargetFiles {
    fn of(adds: &RecordBatch) -> Result<Self> {
        let (paths, sizes, times) =
            (text(adds, "path")?, long(adds, "size")?, long(adds, "modificationTime")?);
        let identity = |row| (value(sizes, row), value(times, row));
        let files = (0..adds.num_rows())
            .map(|row| (canonical("", paths.value(row)).into_owned(), identity(row)))
            .collect();
        let descriptors = Descriptors::of(schema::vectors(adds)?)?;
        let mut vectors = HashSet::new();
        for row in 0..adds.num_rows() {
            if let Some(Location::InTable(path)) =
                descriptors.get(row)?.map(|vector| vector.location()).transpose()?.flatten()
            {
                vectors.insert(path);
            }
        }
        Ok(Self { files, vectors })
    }
}

/// Returns the adds with these paths, their vectors at the places of `place` (`None`: unchanged), without row
/// ids, and with dataChange true.
fn with_places(
    adds: &RecordBatch,
    paths: StringArray,
    mut place: impl FnMut(&Descriptor) -> Result<Option<(StorageType, String)>>,
) -> Result<RecordBatch> {
    let rows = adds.num_rows();
    let vectors = schema::vectors(adds)?;
    let vectors: ArrayRef = if vectors.null_count() == rows {
        Arc::new(vectors.clone())
    } else {
        let descriptors = Descriptors::of(vectors)?;
        let (mut kinds, mut texts) = (StringBuilder::new(), StringBuilder::new());
        for row in 0..rows {
            let descriptor = descriptors.get(row)?;
            let new = descriptor.as_ref().map(&mut place).transpose()?.flatten();
            kinds.append_option(
                new.as_ref()
                    .map(|(kind, _)| kind.letter())
                    .or(descriptor.as_ref().map(|d| d.storage_type.letter())),
            );
            texts.append_option(
                new.as_ref()
                    .map(|(_, text)| text.as_str())
                    .or(descriptor.as_ref().map(|d| d.path_or_inline.as_str())),
            );
        }
        let mut columns = vectors.columns().to_vec();
        (columns[0], columns[1]) = (Arc::new(kinds.finish()), Arc::new(texts.finish()));
        Arc::new(StructArray::try_new(schema::vector_fields(), columns, vectors.nulls().cloned())?)
    };
    let columns = ADD.fields().iter().zip(adds.columns()).map(|(field, column)| -> ArrayRef {
        match field.name().as_str() {
            "path" => Arc::new(paths.clone()),
            "dataChange" => Arc::new(BooleanArray::from(vec![true; rows])),
            "deletionVector" => Arc::clone(&vectors),
            "baseRowId" | "defaultRowCommitVersion" => new_null_array(&DataType::Int64, rows),
            _ => Arc::clone(column),
        }
    });
    Ok(RecordBatch::try_new(Arc::clone(&ADD), columns.collect())?)
}

/// Returns a location as the beginning of paths in a log: a URL, percent-encoded after its host.
fn base_of(location: &str) -> String {
    let location = location.trim_end_matches('/');
    match scheme(location) {
        None => return format!("file://{}", encode(location)),
        Some(drive) if is_drive(drive) => return format!("file:///{}", encode(location)),
        Some(_) => {}
    }
    let host = location.find("://").map_or(0, |at| at + 3);
    let folder = location[host..].find('/').map_or(location.len(), |at| host + at);
    format!("{}{}", &location[..folder], encode(&location[folder..]))
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || scheme(path).is_some()
}

/// Returns the file name of a path with a prefix made from `identity`, in the table's root.
fn prefixed(path: &str, identity: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("{:016x}-{name}", hash(identity, 0))
}

/// Hashes a text with FNV-1a, which is the same in all releases.
fn hash(text: &str, seed: u64) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn value(column: &Int64Array, row: usize) -> Option<i64> {
    column.is_valid(row).then(|| column.value(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_become_urls() {
        assert_eq!(base_of("/data/my table"), "file:///data/my%20table");
        assert_eq!(base_of("s3://bucket:9000/a b/t/"), "s3://bucket:9000/a%20b/t");
        assert_eq!(base_of("memory://name"), "memory://name");
        assert_eq!(base_of("C:/data/my table"), "file:///C%3A/data/my%20table");
    }

    #[test]
    fn names_of_copies_stay_the_same() {
        assert_eq!(prefixed("/a/b/part-0.parquet", "x"), prefixed("/a/b/part-0.parquet", "x"));
        assert!(prefixed("/a/b/part-0.parquet", "x").ends_with("-part-0.parquet"));
        assert_ne!(hash("x", 1), hash("x", 2));
    }
}
