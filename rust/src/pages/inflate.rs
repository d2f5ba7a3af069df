//! Decompresses a page, up to the size in its header.

use std::cell::RefCell;
use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;
use lz4_flex::block::decompress_into;
use lz4_flex::frame::FrameDecoder;
use parquet::basic::Compression;

/// Number of bytes that Brotli's decoder gets at a time.
const BROTLI_INPUT: usize = 4096;
/// Maximum number of bytes that one byte of LZ4 decompresses to; the first bytes of a block give a few more.
const LZ4_MOST: usize = 255;

/// The message of an error in a page.
pub type Wrong = String;

/// Returns a page of `size` bytes: `plain`, and then the decompressed `packed`. Never allocates more than
/// this size.
pub fn inflate(codec: Compression, plain: &[u8], packed: &[u8], size: usize) -> Result<Vec<u8>, Wrong> {
    let Some(rest) = size.checked_sub(plain.len()) else {
        return Err(format!("{} bytes of levels", plain.len()));
    };
    let page = match codec {
        _ if rest == 0 => plain.to_vec(), // a page of nulls only
        Compression::GZIP(_) => stream(plain, MultiGzDecoder::new(packed), rest)?,
        Compression::BROTLI(_) => stream(plain, brotli::Decompressor::new(packed, BROTLI_INPUT), rest)?,
        Compression::LZ4 => lz4(plain, packed, rest)?,
        Compression::ZSTD(_) => zstd(plain, packed, rest)?,
        other => return Err(format!("a page of {other}")),
    };
    if page.len() == size { Ok(page) } else { Err(format!("{} bytes", page.len())) }
}

/// Decompresses a stream, up to one byte more than declared, to find pages that are too large.
fn stream(plain: &[u8], from: impl Read, size: usize) -> Result<Vec<u8>, Wrong> {
    let mut page = Vec::with_capacity(plain.len() + size);
    page.extend_from_slice(plain);
    from.take(size as u64 + 1).read_to_end(&mut page).map_err(|error| error.to_string())?;
    if page.len() > plain.len() + size {
        Err(format!("more than {} bytes", plain.len() + size))
    } else {
        Ok(page)
    }
}

/// Decompresses Zstandard, with one context for all pages of a thread.
fn zstd(plain: &[u8], packed: &[u8], size: usize) -> Result<Vec<u8>, Wrong> {
    thread_local! {
        static CONTEXT: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    }
    let mut page = Vec::with_capacity(plain.len() + size);
    page.extend_from_slice(plain);
    let mut page = Cursor::new(page);
    page.set_position(plain.len() as u64);
    let unpacked = CONTEXT.with_borrow_mut(|context| {
        let context = match context {
            Some(context) => context,
            None => context.insert(zstd::bulk::Decompressor::new()?),
        };
        context.decompress_to_buffer(packed, &mut page)
    });
    unpacked.map_err(|error| error.to_string())?;
    Ok(page.into_inner())
}

/// Decompresses LZ4, a name for three formats: blocks of Hadoop, frames of older versions of the Rust writer,
/// and plain blocks of older C++ versions.
fn lz4(plain: &[u8], packed: &[u8], size: usize) -> Result<Vec<u8>, Wrong> {
    if size / LZ4_MOST > packed.len() + 1 {
        return Err(format!("{} bytes of LZ4", packed.len()));
    }
    let mut page = vec![0; plain.len() + size];
    page[..plain.len()].copy_from_slice(plain);
    let into = &mut page[plain.len()..];
    if blocks_of_hadoop(packed, into) == Some(size) {
        return Ok(page);
    }
    match stream(plain, FrameDecoder::new(packed), size) {
        Ok(page) if page.len() == plain.len() + size => return Ok(page),
        Err(wrong) if wrong.starts_with("more") => return Err(wrong),
        _ => {}
    }
    let count = decompress_into(packed, into).map_err(|error| error.to_string())?;
    page.truncate(plain.len() + count);
    Ok(page)
}

/// Decompresses Hadoop's blocks. Each has the number of its decompressed bytes, then pieces with the number
/// of their own bytes; both numbers are big-endian.
fn blocks_of_hadoop(mut packed: &[u8], into: &mut [u8]) -> Option<usize> {
    let number = |packed: &mut &[u8]| {
        let (number, rest) = packed.split_first_chunk::<4>()?;
        *packed = rest;
        usize::try_from(u32::from_be_bytes(*number)).ok()
    };
    let mut done = 0_usize;
    while !packed.is_empty() {
        let end = done.checked_add(number(&mut packed)?)?;
        while done < end {
            let length = number(&mut packed)?;
            let (piece, rest) = packed.split_at_checked(length)?;
            let count = decompress_into(piece, into.get_mut(done..end)?).ok().filter(|count| *count > 0)?;
            (packed, done) = (rest, done + count);
        }
    }
    Some(done)
}
