//! `Descriptor`: where the bytes of a deletion vector are. PROTOCOL.md, "Deletion Vector Descriptor Schema"
//! and "Derived Fields":
//!
//! | storageType | pathOrInlineDv |
//! |---|---|
//! | `u` | optional prefix, then 20 letters of Z85: the UUID of the file in the table |
//! | `i` | the bytes themselves as Z85 |
//! | `p` | absolute path of a file, percent-encoded |
//!
//! The file of `u` is `[<prefix>/]deletion_vector_<uuid>.bin` in the table.
#![warn(clippy::indexing_slicing)]

use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use uuid::Uuid;

use super::{DeletionVector, file, limit};
use crate::error::{Error, Kind, Result};
use crate::store::path::locate;
use crate::store::{Place, Store, coalesce};
use crate::z85;

/// Number of letters of a UUID in Z85.
const UUID_LETTERS: usize = 20;
/// Vectors of one file with a smaller gap between them are fetched as one range.
const GAP: u64 = 64 << 10;

/// Where a vector is stored. Each place has a letter in the log (`storageType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StorageType {
    /// `u`: a file of the table, named by a UUID.
    Uuid,
    /// `i`: in the log itself.
    Inline,
    /// `p`: a file anywhere, named by its path.
    Path,
}

/// The `deletionVector` field of an `add` or `remove` action.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Where the vector is stored.
    pub storage_type: StorageType,
    /// The path, or the vector itself, as in the log.
    pub path_or_inline: String,
    /// Position of the vector in its file, where its size is. `None` for an inline vector.
    pub offset: Option<i32>,
    /// Number of bytes of the encoded set, without the size before it and the checksum after it.
    pub size_in_bytes: i32,
    /// Number of rows in the set.
    pub cardinality: i64,
}

/// The place of a file that holds vectors.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// Path in the table's store, decoded.
    InTable(String),
    /// Absolute path or URL, decoded.
    Absolute(String),
}

/// A vector to read, and the number of rows of its data file.
#[derive(Debug, Clone)]
pub struct VectorRequest {
    /// The descriptor of the vector.
    pub descriptor: Descriptor,
    /// Number of physical rows of the data file, if known. A larger row in the vector is an error.
    pub num_records: Option<u64>,
}

impl StorageType {
    /// Parses the type's letter in the log.
    pub fn parse(letter: &str) -> Result<Self> {
        match letter {
            "u" => Ok(Self::Uuid),
            "i" => Ok(Self::Inline),
            "p" => Ok(Self::Path),
            other => Err(Error::protocol("deletion vector has an unknown storage type")
                .found(format!("{other:?}"))
                .expected("u, i or p")),
        }
    }

    /// Returns the type's letter in the log.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Uuid => "u",
            Self::Inline => "i",
            Self::Path => "p",
        }
    }
}

impl Descriptor {
    /// Makes the descriptor of a vector in the file with this id, below the folder `prefix` (empty: in the
    /// table's root).
    pub fn in_file(prefix: &str, id: Uuid, (offset, size_in_bytes): (i32, i32), cardinality: i64) -> Self {
        let path_or_inline = format!("{prefix}{}", z85::encode(id.as_bytes()));
        Self {
            storage_type: StorageType::Uuid,
            path_or_inline,
            offset: Some(offset),
            size_in_bytes,
            cardinality,
        }
    }

    /// Makes the descriptor of a vector that is stored in the log itself.
    ///
    /// # Errors
    /// The vector has more than 2 GiB.
    pub fn inline(rows: &DeletionVector) -> Result<Self> {
        let data = rows.to_bytes();
        let size_in_bytes = i32::try_from(data.len()).map_err(|_| {
            Error::new(Kind::InvalidArgument, "deletion vector is too large to be inline").found(data.len())
        })?;
        let cardinality = rows.cardinality() as i64;
        Ok(Self {
            storage_type: StorageType::Inline,
            path_or_inline: z85::encode(&data),
            offset: None,
            size_in_bytes,
            cardinality,
        })
    }

    /// Returns the id of the vector among those of one data file: the storage type and the path, and the
    /// offset if there is one, as in `uab^-aqEH.-t@S}K{vb[*k^@4`.
    pub fn unique_id(&self) -> String {
        let id = format!("{}{}", self.storage_type.letter(), self.path_or_inline);
        match self.offset {
            Some(offset) => format!("{id}@{offset}"),
            None => id,
        }
    }

    /// Returns the file that holds the vector, or `None` if the vector is inline.
    ///
    /// # Errors
    /// The prefix is not a folder name, the UUID is not Z85, or the path is not percent-encoded UTF-8.
    pub fn location(&self) -> Result<Option<Location>> {
        match self.storage_type {
            StorageType::Inline => Ok(None),
            StorageType::Uuid => self.file_in_table().map(|path| Some(Location::InTable(path))),
            StorageType::Path => decode_path(&self.path_or_inline).map(|path| Some(Location::Absolute(path))),
        }
    }

    fn file_in_table(&self) -> Result<String> {
        let id = &self.path_or_inline;
        let (prefix, uuid) = id
            .len()
            .checked_sub(UUID_LETTERS)
            .and_then(|at| id.split_at_checked(at))
            .ok_or_else(|| short_id(id))?;
        check_prefix(prefix)?;
        let uuid = z85::decode_exact(uuid, 16)
            .and_then(|id| Uuid::from_slice(&id).map_err(|error| short_id(prefix).caused_by(error)))?;
        let name = file::name(uuid);
        Ok(if prefix.is_empty() { name } else { format!("{prefix}/{name}") })
    }

    /// Reads the set, and checks its bytes, checksum, cardinality, and that all rows are below `num_records`.
    pub fn read(&self, store: &dyn Store, num_records: Option<u64>) -> Result<DeletionVector> {
        let size = self.checked_size()?;
        let Some(location) = self.location()? else { return self.open_inline(size, num_records) };
        let offset = self.checked_offset()?;
        let frame = file::frame_range(offset, size)?;
        let place = format!("{}, offset {offset}", location.text());
        let pieces = read_pieces(store, &location, std::slice::from_ref(&frame))?;
        let data =
            pieces.frame(&frame).and_then(|frame| self.open(file::open_frame(&frame, size)?, num_records));
        data.map_err(|error| error.at(place))
    }

    fn open_inline(&self, size: u64, num_records: Option<u64>) -> Result<DeletionVector> {
        z85::decode_exact(&self.path_or_inline, size as usize)
            .and_then(|data| self.open(&data, num_records))
            .map_err(|error| error.at("inline deletion vector"))
    }

    fn open(&self, data: &[u8], num_records: Option<u64>) -> Result<DeletionVector> {
        let rows = DeletionVector::from_bytes(data)?;
        check_cardinality(&rows, self.cardinality)?;
        check_rows(&rows, num_records)?;
        Ok(rows)
    }

    fn checked_size(&self) -> Result<u64> {
        let size = u64::try_from(self.size_in_bytes).map_err(|_| {
            Error::protocol("deletion vector has a negative sizeInBytes").found(self.size_in_bytes)
        })?;
        limit::check(size)?;
        Ok(size)
    }

    /// Returns the offset, or that of the first vector of a file if there is none.
    fn checked_offset(&self) -> Result<u64> {
        let offset = self.offset.map_or(Ok(file::FIRST_OFFSET), u64::try_from);
        offset.ok().filter(|offset| *offset >= file::FIRST_OFFSET).ok_or_else(|| {
            let error = Error::protocol("deletion vector has an offset before the first one of a file");
            error.found(self.offset.unwrap_or_default()).expected("at least 1")
        })
    }
}

impl Location {
    /// Returns the path or URL, for error messages.
    pub fn text(&self) -> &str {
        match self {
            Self::InTable(path) | Self::Absolute(path) => path,
        }
    }
}

/// Reads many vectors, in few ranges per file. Returns them in the order of `wanted`.
///
/// # Errors
/// The first failure of any of them; see [`Descriptor::read`].
pub fn read_all(store: &dyn Store, wanted: &[Option<VectorRequest>]) -> Result<Vec<Option<DeletionVector>>> {
    let mut read = vec![None; wanted.len()];
    let mut files: BTreeMap<Location, Vec<Frame<'_>>> = BTreeMap::new();
    for (index, wanted) in wanted.iter().enumerate() {
        let Some(wanted) = wanted else { continue };
        match wanted.descriptor.location()? {
            None => put(&mut read, index, wanted.descriptor.read(store, wanted.num_records)?),
            Some(location) => files.entry(location).or_default().push(Frame::of(index, wanted)?),
        }
    }
    for (location, frames) in files {
        let ranges: Vec<_> = frames.iter().map(|frame| frame.range.clone()).collect();
        let pieces = read_pieces(store, &location, &ranges)?;
        for Frame { index, wanted, size, range } in frames {
            let rows = pieces
                .frame(&range)
                .and_then(|frame| wanted.descriptor.open(file::open_frame(&frame, size)?, wanted.num_records))
                .map_err(|error| error.at(format!("{}, offset {}", location.text(), range.start)))?;
            put(&mut read, index, rows);
        }
    }
    Ok(read)
}

struct Frame<'a> {
    index: usize,
    wanted: &'a VectorRequest,
    size: u64,
    range: Range<u64>,
}

impl<'a> Frame<'a> {
    fn of(index: usize, wanted: &'a VectorRequest) -> Result<Self> {
        let size = wanted.descriptor.checked_size()?;
        Ok(Self { index, wanted, size, range: file::frame_range(wanted.descriptor.checked_offset()?, size)? })
    }
}

fn put(read: &mut [Option<DeletionVector>], index: usize, rows: DeletionVector) {
    if let Some(slot) = read.get_mut(index) {
        *slot = Some(rows);
    }
}

/// Fetched ranges of one file.
struct Pieces(Vec<(Range<u64>, Bytes)>);

impl Pieces {
    fn frame(&self, range: &Range<u64>) -> Result<Bytes> {
        let piece = self.0.iter().find(|(piece, _)| piece.start <= range.start && range.end <= piece.end);
        let slice = piece.and_then(|(piece, bytes)| {
            let (start, end) = ((range.start - piece.start) as usize, (range.end - piece.start) as usize);
            (end <= bytes.len()).then(|| bytes.slice(start..end))
        });
        slice.ok_or_else(|| {
            Error::protocol("deletion vector is cut off in its file").expected(format!("bytes {range:?}"))
        })
    }
}

/// Fetches `frames` and the version byte, close ones together.
fn read_pieces(store: &dyn Store, location: &Location, frames: &[Range<u64>]) -> Result<Pieces> {
    let ranges = coalesce([0..1].into_iter().chain(frames.iter().cloned()).collect(), GAP);
    let (store, path) = resolve(store, location)?;
    let bytes = match &store {
        Target::Table(store) => store.get_ranges(&path, &ranges),
        Target::Outside(store) => store.get_ranges(&path, &ranges),
    }
    .map_err(|error| match error.kind() {
        Kind::NotFound => Error::lost(location.text(), "a file of deletion vectors").caused_by(error),
        _ => error.at(location.text()),
    })?;
    let version = bytes.first().and_then(|bytes| bytes.get(..1)).unwrap_or_default();
    file::check_version(version).map_err(|error| error.at(location.text()))?;
    Ok(Pieces(ranges.into_iter().zip(bytes).collect()))
}

enum Target<'a> {
    Table(&'a dyn Store),
    Outside(Arc<dyn Store>),
}

/// Returns the store and the path in it. A file outside of the table is read only if the user has allowed its
/// root.
fn resolve<'a>(store: &'a dyn Store, location: &Location) -> Result<(Target<'a>, String)> {
    match location {
        Location::InTable(path) => Ok((Target::Table(store), path.clone())),
        Location::Absolute(location) => match locate(store.location(), location)? {
            Place::Inside(path) => Ok((Target::Table(store), path)),
            Place::Outside(location) => {
                let (store, path) = store.outside(&location)?;
                Ok((Target::Outside(store), path))
            }
        },
    }
}

fn short_id(id: &str) -> Error {
    Error::protocol("deletion vector does not name its file")
        .found(format!("{id:?}"))
        .expected("an optional prefix and 20 letters of Z85")
}

/// Checks a prefix, which must be the name of one folder.
fn check_prefix(prefix: &str) -> Result<()> {
    let wrong = |c: char| c == '/' || c == '\\' || c.is_control();
    if prefix != "." && prefix != ".." && !prefix.contains(wrong) {
        return Ok(());
    }
    let error = Error::new(Kind::PathOutsideTable, "prefix of a deletion vector is not the name of a folder");
    Err(error.found(format!("{prefix:?}")).expected("the name of a folder"))
}

fn decode_path(encoded: &str) -> Result<String> {
    let bytes = encoded.as_bytes();
    let escapes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    for (at, _) in escapes {
        if !bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
            return Err(Error::protocol(format!(
                "path of a deletion vector has a bad escape at position {at}"
            ))
            .found(encoded));
        }
    }
    let path = percent_encoding::percent_decode_str(encoded).decode_utf8();
    path.map(|path| path.into_owned()).map_err(|error| {
        Error::protocol("path of a deletion vector is not UTF-8").found(encoded).caused_by(error)
    })
}

fn check_cardinality(rows: &DeletionVector, declared: i64) -> Result<()> {
    let cardinality = rows.cardinality();
    if u64::try_from(declared) == Ok(cardinality) {
        return Ok(());
    }
    Err(Error::protocol("deletion vector does not have the cardinality that its descriptor says")
        .found(cardinality)
        .expected(declared))
}

fn check_rows(rows: &DeletionVector, num_records: Option<u64>) -> Result<()> {
    match (rows.max(), num_records) {
        (Some(row), Some(count)) if row >= count => {
            let error = Error::protocol("deletion vector has a row that its data file lacks");
            Err(error.found(format!("row {row}")).expected(format!("rows below {count}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
