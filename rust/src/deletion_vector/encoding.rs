//! Encodes a deletion vector to bytes and decodes it. PROTOCOL.md, "Deletion Vector Format"; the bitmaps are
//! those of the [RoaringFormatSpec](https://github.com/RoaringBitmap/RoaringFormatSpec). Everything is
//! little-endian:
//!
//! ```text
//! magic        4 bytes   1681511377
//! bitmaps      8 bytes   number of bitmaps
//! per bitmap:
//!   key        4 bytes   upper half of its rows; strictly ascending, below 2³¹
//!   cookie     4 bytes   12346, then 4 bytes: containers; or lower half 12347, upper half: containers − 1
//!   run flags  (containers + 7) / 8 bytes, only with cookie 12347: which containers are runs
//!   per container: key 2 bytes (strictly ascending), cardinality − 1 in 2 bytes
//!   per container: 4 bytes, where it begins in the bitmap; not with cookie 12347 and fewer than 4 containers
//!   containers: runs (2 bytes: how many; each first row and length − 1, 2 bytes each),
//!               up to 4096 rows: 2 bytes each, strictly ascending; more: 65,536 bits
//! ```
//! Each declared number is checked against the remaining bytes before memory is allocated for it, and the
//! declared cardinality of a container against its content, so that a set never has more rows than its
//! headers declare. The cardinality and the number of rows that the log declares are checked by
//! [`super::descriptor`].
#![warn(clippy::indexing_slicing)]

use roaring::RoaringBitmap;
use std::fmt::Display;

use super::{DeletionVector, limit};
use crate::error::{Error, Result};

/// First 4 bytes of a vector, little-endian.
pub const MAGIC: u32 = 1_681_511_377;
/// The magic of the format before this one, which was never in PROTOCOL.md.
const OLDER_MAGIC: u32 = 1_681_511_376;
const HEADER: usize = 12;
/// Minimum number of bytes of a bitmap: key, cookie and number of containers.
const SMALLEST_BITMAP: usize = 12;
const COOKIE: u32 = 12346;
const COOKIE_WITH_RUNS: u16 = 12347;
const MAX_CONTAINERS: u32 = 1 << 16;
/// A bitmap with runs has offsets if it has at least this many containers.
const OFFSETS_FROM: u32 = 4;
const MAX_KEY: u32 = i32::MAX as u32;
/// Maximum number of rows of a container that is stored as an array; a larger one is stored as bits.
const MAX_ARRAY: u32 = 4096;
const BITS_BYTES: usize = 8192;

/// Encodes a set as bytes.
pub fn encode(rows: &DeletionVector) -> Vec<u8> {
    let bitmaps: Vec<_> = rows.bitmaps().map(|(key, bitmap)| (key, smallest(bitmap))).collect();
    let size = HEADER + bitmaps.iter().map(|(_, bitmap)| 4 + bitmap.serialized_size()).sum::<usize>();
    let mut data = Vec::with_capacity(size);
    data.extend(MAGIC.to_le_bytes());
    data.extend((bitmaps.len() as u64).to_le_bytes());
    for (key, bitmap) in bitmaps {
        data.extend(key.to_le_bytes());
        // Writing into a Vec cannot fail.
        let _ = bitmap.serialize_into(&mut data);
    }
    data
}

fn smallest(bitmap: &RoaringBitmap) -> RoaringBitmap {
    let mut bitmap = bitmap.clone();
    bitmap.optimize();
    bitmap
}

/// Decodes bytes to a set.
///
/// # Errors
/// `data` is above the limit, too short, has another or the older magic, counts more bitmaps than it has
/// bytes for, has keys that do not ascend or exceed the rows of a file, has bitmaps that break the format in
/// any way, or goes on after the last bitmap.
pub fn decode(data: &[u8]) -> Result<DeletionVector> {
    let mut input = Input { data, at: 0 };
    let rows = decode_bitmaps(&mut input)?;
    check_end(&input)?;
    Ok(rows)
}

/// Decodes a set that may be followed by up to 3 zero bytes, the padding of Z85.
///
/// # Errors
/// The errors of [`decode`].
pub fn decode_padded(data: &[u8]) -> Result<DeletionVector> {
    let mut input = Input { data, at: 0 };
    let rows = decode_bitmaps(&mut input)?;
    match data.get(input.at..) {
        Some([] | [0] | [0, 0] | [0, 0, 0]) => Ok(rows),
        _ => check_end(&input).map(|()| rows),
    }
}

fn decode_bitmaps(input: &mut Input<'_>) -> Result<DeletionVector> {
    limit::check(input.data.len() as u64)?;
    check_magic(input.array()?)?;
    let count = u64::from_le_bytes(input.array()?);
    check_bitmap_count(count, input.rest())?;
    // The number cannot be truncated, as there are bytes for this many bitmaps.
    let mut bitmaps = Vec::with_capacity(count as usize);
    let mut previous = None;
    for _ in 0..count {
        let at = input.at;
        let key = input.u32()?;
        check_bitmap_key(previous.replace(key), key, at)?;
        bitmaps.push((key, decode_bitmap(input)?));
    }
    Ok(DeletionVector::from_bitmaps(bitmaps))
}

/// Checks one bitmap to its end, and only then lets roaring build it.
fn decode_bitmap(input: &mut Input<'_>) -> Result<RoaringBitmap> {
    let start = input.at;
    let cookie = input.u32()?;
    let (count, runs) = match cookie {
        COOKIE => (input.u32()?, None),
        _ if cookie as u16 == COOKIE_WITH_RUNS => ((cookie >> 16) + 1, Some(())),
        _ => return Err(refused_cookie(cookie, start)),
    };
    check_container_count(count, start)?;
    let runs = runs.map_or(Ok(&[][..]), |()| input.take(count.div_ceil(8) as usize))?;
    let descriptions = input.take(count as usize * 4)?;
    let has_offsets = cookie == COOKIE || count >= OFFSETS_FROM;
    let offsets = if has_offsets { input.take(count as usize * 4)? } else { &[] };
    let mut offsets = offsets.as_chunks::<4>().0.iter();
    let mut previous = None;
    for (i, [k0, k1, c0, c1]) in descriptions.as_chunks::<4>().0.iter().enumerate() {
        let key = u16::from_le_bytes([*k0, *k1]);
        let cardinality = u32::from(u16::from_le_bytes([*c0, *c1])) + 1;
        check_container_key(previous.replace(key), key, start)?;
        if let Some(offset) = offsets.next() {
            check_offset(u32::from_le_bytes(*offset), input.at - start, start)?;
        }
        let is_run = runs.get(i / 8).is_some_and(|flags| flags >> (i % 8) & 1 == 1);
        match cardinality {
            _ if is_run => check_runs(input, cardinality)?,
            0..=MAX_ARRAY => check_array(input, cardinality)?,
            _ => check_bits(input, cardinality)?,
        }
    }
    let bitmap = input.data.get(start..input.at).unwrap_or_default();
    // All that this call does not check was checked above.
    RoaringBitmap::deserialize_unchecked_from(bitmap)
        .map_err(|error| fault("bitmap of a deletion vector cannot be decoded", start).caused_by(error))
}

fn check_magic(magic: [u8; 4]) -> Result<()> {
    let (little, big) = (u32::from_le_bytes(magic), u32::from_be_bytes(magic));
    let what = match (little, big) {
        (MAGIC, _) => return Ok(()),
        (OLDER_MAGIC, _) => {
            "deletion vector has the older format 1681511376 (a bitmap array that is not portable)"
        }
        (_, OLDER_MAGIC) => "deletion vector has the older format 1681511376, in big-endian order",
        (_, MAGIC) => "deletion vector is in big-endian order",
        _ => "deletion vector has a wrong magic number",
    };
    Err(fault(what, 0).found(little).expected(format!("{MAGIC}, little-endian")))
}

fn check_bitmap_count(count: u64, rest: usize) -> Result<()> {
    let most = (rest / SMALLEST_BITMAP) as u64;
    if count <= most {
        return Ok(());
    }
    Err(fault("deletion vector counts more bitmaps than it has bytes for", 4)
        .found(count)
        .expected(format!("at most {most}")))
}

fn check_bitmap_key(previous: Option<u32>, key: u32, start: usize) -> Result<()> {
    if key > MAX_KEY {
        let error = fault("bitmap of a deletion vector lies beyond the largest row index", start);
        return Err(error.found(format!("key {key}")).expected(format!("at most {MAX_KEY}")));
    }
    check_ascending("keys of the bitmaps of a deletion vector do not ascend", previous, key, start)
}

fn check_ascending<T: PartialOrd + Display>(
    what: &str,
    previous: Option<T>,
    key: T,
    start: usize,
) -> Result<()> {
    match previous {
        Some(previous) if key <= previous => Err(fault(what, start)
            .found(format!("{key} after {previous}"))
            .expected("strictly ascending keys")),
        _ => Ok(()),
    }
}

fn refused_cookie(cookie: u32, start: usize) -> Error {
    let error = fault("bitmap of a deletion vector begins with an unknown cookie", start);
    error.found(cookie).expected(format!("{COOKIE}, or {COOKIE_WITH_RUNS} in its lower half"))
}

fn check_container_count(count: u32, start: usize) -> Result<()> {
    if count <= MAX_CONTAINERS {
        return Ok(());
    }
    Err(fault("bitmap of a deletion vector has too many containers", start)
        .found(count)
        .expected(format!("at most {MAX_CONTAINERS}")))
}

fn check_container_key(previous: Option<u16>, key: u16, start: usize) -> Result<()> {
    check_ascending("keys of the containers of a deletion vector do not ascend", previous, key, start)
}

fn check_offset(offset: u32, expected: usize, start: usize) -> Result<()> {
    if offset as usize == expected {
        return Ok(());
    }
    Err(fault("container of a deletion vector is not where its offset points", start)
        .found(offset)
        .expected(expected))
}

/// Checks runs: they ascend without overlapping or touching, end within the container, and add up to the
/// declared cardinality.
fn check_runs(input: &mut Input<'_>, cardinality: u32) -> Result<()> {
    let start = input.at;
    let count = u16::from_le_bytes(input.array()?);
    let mut rows = 0;
    let mut free = 0;
    for [f0, f1, l0, l1] in input.take(usize::from(count) * 4)?.as_chunks::<4>().0 {
        let first = u32::from(u16::from_le_bytes([*f0, *f1]));
        let length = u32::from(u16::from_le_bytes([*l0, *l1])) + 1;
        if first < free || first + length > 1 << 16 {
            return Err(refused_run(first, length, free, start));
        }
        rows += length;
        free = first + length + 1;
    }
    check_cardinality(cardinality, rows, start)
}

fn refused_run(first: u32, length: u32, free: u32, start: usize) -> Error {
    fault("runs of a deletion vector overlap, touch or leave their container", start)
        .found(format!("{length} rows from {first} on"))
        .expected(format!("rows between {free} and 65535"))
}

fn check_array(input: &mut Input<'_>, cardinality: u32) -> Result<()> {
    let start = input.at;
    let (rows, _) = input.take(cardinality as usize * 2)?.as_chunks::<2>();
    // Without an early exit, so that several are compared at once.
    let ascending = rows
        .iter()
        .zip(rows.iter().skip(1))
        .fold(true, |ok, (a, b)| ok & (u16::from_le_bytes(*a) < u16::from_le_bytes(*b)));
    if ascending {
        return Ok(());
    }
    Err(fault("rows of a container of a deletion vector do not ascend", start)
        .expected("strictly ascending rows"))
}

fn check_bits(input: &mut Input<'_>, cardinality: u32) -> Result<()> {
    let start = input.at;
    let (words, _) = input.take(BITS_BYTES)?.as_chunks::<8>();
    check_cardinality(
        cardinality,
        words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum(),
        start,
    )
}

fn check_cardinality(declared: u32, rows: u32, start: usize) -> Result<()> {
    if declared == rows {
        return Ok(());
    }
    let error =
        fault("container of a deletion vector does not have the rows that its header declares", start);
    Err(error.found(format!("{rows} rows")).expected(format!("{declared} rows")))
}

fn check_end(input: &Input<'_>) -> Result<()> {
    if input.rest() == 0 {
        return Ok(());
    }
    let error = fault("deletion vector goes on after its last bitmap", input.at);
    Err(error.found(format!("{} more bytes", input.rest())).expected("no more bytes"))
}

/// Returns an error with the position `byte` in its message, as its location is the vector's file.
fn fault(what: &str, byte: usize) -> Error {
    Error::protocol(format!("{what} (byte {byte} of the vector)"))
}

/// The bytes to decode, and the position of the next one.
struct Input<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn rest(&self) -> usize {
        self.data.len() - self.at
    }

    /// Returns the next `count` bytes.
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let taken =
            self.data.get(self.at..).and_then(|rest| rest.get(..count)).ok_or_else(|| self.cut_off(count))?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let array =
            self.data.get(self.at..).and_then(|rest| rest.first_chunk()).ok_or_else(|| self.cut_off(N))?;
        self.at += N;
        Ok(*array)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn cut_off(&self, count: usize) -> Error {
        fault("deletion vector is cut off", self.at)
            .found(format!("{} bytes left", self.rest()))
            .expected(count)
    }
}

#[cfg(test)]
mod tests;
