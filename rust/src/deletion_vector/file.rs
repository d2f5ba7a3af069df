//! The `.bin` files that hold vectors, many in one. PROTOCOL.md, "Deletion Vector File Storage Format":
//!
//! ```text
//! version      1 byte    1
//! per vector:  <- the descriptor's offset points here
//!   size       4 bytes, big-endian: bytes of data (the descriptor's sizeInBytes)
//!   data       see `encoding`
//!   checksum   4 bytes, big-endian: CRC-32 of data
//! ```
#![warn(clippy::indexing_slicing)]

use std::ops::Range;
use uuid::Uuid;

use crate::error::{Error, Kind, Result};

/// First byte of a file.
pub const VERSION: u8 = 1;
/// Offset of the first vector.
pub const FIRST_OFFSET: u64 = 1;
const SIZE_BYTES: u64 = 4;
const CHECKSUM_BYTES: u64 = 4;

/// Returns the name of the file with this id, in the folder of its prefix.
pub fn name(id: Uuid) -> String {
    format!("deletion_vector_{}.bin", id.as_hyphenated())
}

/// Returns the byte range of a vector of `size` bytes at `offset`, including its size and checksum.
pub fn frame_range(offset: u64, size: u64) -> Result<Range<u64>> {
    size.checked_add(SIZE_BYTES + CHECKSUM_BYTES)
        .and_then(|length| Some(offset..offset.checked_add(length)?))
        .ok_or_else(|| {
            Error::protocol("deletion vector lies outside any file")
                .found(format!("{size} bytes at {offset}"))
        })
}

/// Returns an error for a file of another version.
pub fn check_version(first_byte: &[u8]) -> Result<()> {
    match first_byte {
        [VERSION, ..] => Ok(()),
        [version, ..] => Err(Error::protocol("deletion vector file has an unknown version")
            .found(version)
            .expected(VERSION)),
        [] => Err(Error::protocol("deletion vector file is empty").expected(format!("version {VERSION}"))),
    }
}

/// Returns the data in `frame`, the bytes of [`frame_range`] for a vector of `size` bytes. The data is not
/// parsed before its checksum is verified.
///
/// # Errors
/// The frame is cut off, or has another size or checksum.
pub fn open_frame(frame: &[u8], size: u64) -> Result<&[u8]> {
    let (declared, rest) = frame.split_first_chunk::<4>().ok_or_else(|| cut_off(frame.len()))?;
    check_size(u32::from_be_bytes(*declared), size)?;
    let (data, checksum) = rest.split_last_chunk::<4>().ok_or_else(|| cut_off(frame.len()))?;
    if data.len() as u64 != size {
        return Err(cut_off(frame.len()));
    }
    check_checksum(data, u32::from_be_bytes(*checksum))?;
    Ok(data)
}

fn cut_off(length: usize) -> Error {
    Error::protocol("deletion vector is cut off in its file").found(format!("{length} bytes"))
}

fn check_size(declared: u32, size: u64) -> Result<()> {
    if u64::from(declared) == size {
        return Ok(());
    }
    Err(Error::protocol("deletion vector does not have the size that its descriptor says")
        .found(format!("{declared} bytes"))
        .expected(format!("{size} bytes")))
}

fn check_checksum(data: &[u8], expected: u32) -> Result<()> {
    let found = crc32fast::hash(data);
    if found == expected {
        return Ok(());
    }
    Err(Error::protocol("deletion vector has a wrong CRC-32")
        .found(format!("{found:#010x}"))
        .expected(format!("{expected:#010x}")))
}

/// A file that is being built.
#[derive(Debug)]
pub struct FileBuilder {
    bytes: Vec<u8>,
}

impl Default for FileBuilder {
    fn default() -> Self {
        Self { bytes: vec![VERSION] }
    }
}

impl FileBuilder {
    /// Appends a vector; returns its offset and size as the descriptor has them.
    ///
    /// # Errors
    /// The file or the vector would exceed 2 GiB, the maximum that a descriptor can express.
    pub fn append(&mut self, data: &[u8]) -> Result<(i32, i32)> {
        let too_large = || Error::new(Kind::InvalidArgument, "deletion vectors of one file pass 2 GiB");
        let offset = i32::try_from(self.bytes.len()).map_err(|_| too_large())?;
        let size = i32::try_from(data.len()).map_err(|_| too_large())?;
        self.bytes.reserve(data.len() + 8);
        self.bytes.extend(size.to_be_bytes());
        self.bytes.extend(data);
        self.bytes.extend(crc32fast::hash(data).to_be_bytes());
        Ok((offset, size))
    }

    /// Returns the number of bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if there is no vector yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() as u64 == FIRST_OFFSET
    }

    /// Returns the whole file.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
