//! Reads the sizes in the headers of Parquet pages before a page is decompressed: some codecs allocate the
//! whole declared size at once. Compares the checksums of pages without decoding them.
//!
//! Parses Parquet's `PageHeader` in Thrift's compact protocol. Of its fields only the type, the two sizes and
//! the checksum are used.

use std::io::Read;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;

use super::thrift::{I32, Input};
use crate::error::{Error, Result};

/// Number of bytes to read at once: they hold most headers, and all pages of a small column.
const USUAL: u64 = 64 << 10;
/// Maximum number of bytes of a header; a longer one is an error.
const LONGEST: u64 = 1 << 20;
/// Number of bytes that hold a header without long statistics.
const SMALL: u64 = 1 << 10;
/// Parquet's number of index pages.
const INDEX_PAGE: i64 = 1;
/// Parquet's number of dictionary pages.
const DICTIONARY_PAGE: i64 = 2;

/// Returns the sum of the decompressed sizes in the headers of a column chunk's pages.
pub fn claimed<R: ChunkReader>(file: &R, column: &ColumnChunkMetaData) -> Result<u64> {
    let mut sum = 0_u64;
    each_page(file, column, |_, header| {
        sum = sum.saturating_add(header.uncompressed.cast_unsigned());
        Ok(())
    })?;
    Ok(sum)
}

/// Compares the pages of a column chunk with their checksums, where they have one.
pub fn verify<R: ChunkReader>(file: &R, column: &ColumnChunkMetaData) -> Result<()> {
    each_page(file, column, |at, header| {
        let Some(checksum) = header.checksum else { return Ok(()) };
        let bytes = file.get_bytes(at, usize::try_from(header.compressed).unwrap_or(usize::MAX))?;
        let found = crc32fast::hash(&bytes).cast_signed();
        if i64::from(found) == checksum {
            return Ok(());
        }
        Err(Error::protocol("a page of a column does not have its checksum")
            .found(format!("{found:#x}"))
            .expected(format!("{checksum:#x}")))
    })
}

/// Calls `visit` with the position of each page's data and its header. Sizes are not negative.
fn each_page<R: ChunkReader>(
    file: &R,
    column: &ColumnChunkMetaData,
    mut visit: impl FnMut(u64, &Header) -> Result<()>,
) -> Result<()> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let wrong = |found: String| {
        Error::protocol("the pages of a column cannot be found")
            .found(found)
            .expected("pages within the file")
    };
    let (Ok(mut at), Ok(length)) = (u64::try_from(start), u64::try_from(column.compressed_size())) else {
        return Err(wrong(format!("{} bytes at {start}", column.compressed_size())));
    };
    let end = at.saturating_add(length);
    if end > file.len() {
        return Err(wrong(format!("a column to byte {end} of {}", file.len())));
    }
    let mut window = Window::default();
    while at < end {
        let header =
            window.header_at(file, at, end)?.ok_or_else(|| wrong(format!("no page header at byte {at}")))?;
        if header.uncompressed < 0 || header.compressed < 0 {
            return Err(wrong(format!(
                "a page of {} bytes, {} decompressed",
                header.compressed, header.uncompressed
            )));
        }
        let data = at.saturating_add(header.length as u64);
        visit(data, &header)?;
        at = data.saturating_add(header.compressed.cast_unsigned());
    }
    Ok(())
}

/// Reads the header of the page at this position of a file.
pub fn header_at<R: ChunkReader>(file: &R, at: u64) -> Result<Header> {
    let mut bytes = Vec::new();
    for most in [SMALL, USUAL, LONGEST] {
        bytes.clear();
        file.get_read(at)?.take(most).read_to_end(&mut bytes).map_err(ParquetError::from)?;
        if let Some(header) = parse(&bytes) {
            return Ok(header);
        }
    }
    // A reader may return only the bytes that it has in memory.
    let rest = file.len().saturating_sub(at).min(LONGEST);
    let header = parse(&file.get_bytes(at, usize::try_from(rest).unwrap_or(0))?);
    header.ok_or_else(|| {
        Error::protocol("a page of a column cannot be read").found(format!("no page header at byte {at}"))
    })
}

/// The bytes of the last read.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Window {
    fn header_at<R: ChunkReader>(&mut self, file: &R, at: u64, end: u64) -> Result<Option<Header>> {
        let held =
            usize::try_from(at.saturating_sub(self.start)).ok().and_then(|from| self.bytes.get(from..));
        if let Some(header) = held.and_then(parse) {
            return Ok(Some(header));
        }
        for most in [USUAL, LONGEST] {
            let length = most.min(end - at);
            (self.start, self.bytes) = (at, file.get_bytes(at, usize::try_from(length).unwrap_or(0))?);
            if let Some(header) = parse(&self.bytes) {
                return Ok(Some(header));
            }
            if length < most {
                break;
            }
        }
        Ok(None)
    }
}

/// The fields of a page's header that are used here.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// True for an index page, which has no values. No known writer writes it, and all readers skip it.
    pub index: bool,
    /// Number of bytes of the decompressed page, as declared.
    pub uncompressed: i64,
    /// Number of bytes of the page as stored, without this header.
    pub compressed: i64,
    /// CRC-32 of the bytes as stored, if the writer computed it.
    pub checksum: Option<i64>,
    /// Number of bytes of this header.
    pub length: usize,
}

fn parse(bytes: &[u8]) -> Option<Header> {
    let mut input = Input { rest: bytes };
    let (mut uncompressed, mut compressed, mut checksum, mut field, mut index) = (None, None, None, 0, false);
    while let Some(kind) = input.field(&mut field)? {
        match (field, kind) {
            (1, I32) => index = input.int()? == INDEX_PAGE,
            (2, I32) => uncompressed = Some(input.int()?),
            (3, I32) => compressed = Some(input.int()?),
            (4, I32) => checksum = Some(input.int()?),
            (1..=4, _) => return None,
            _ => input.skip(kind)?,
        }
    }
    let length = bytes.len() - input.rest.len();
    Some(Header { index, uncompressed: uncompressed?, compressed: compressed?, checksum, length })
}

/// Returns a header with the checksum of its page, and whether the page is a dictionary. `None` if the header
/// already has a checksum, or is invalid.
pub fn with_checksum(header: &[u8], checksum: u32) -> Option<(Vec<u8>, bool)> {
    let mut input = Input { rest: header };
    let (mut field, mut kind) = (0, 0);
    for wanted in [1, 2, 3] {
        if input.field(&mut field)?? != I32 || field != wanted {
            return None;
        }
        let value = input.zigzag()?;
        kind = if wanted == 1 { value } else { kind };
    }
    let (before, next) = header.split_at(header.len() - input.rest.len());
    // A field begins with the difference of its number to that of the field before, here field 3. The
    // checksum, field 4, is inserted between them.
    let (head, rest) = next.split_first().filter(|(head, _)| **head >> 4 >= 2)?;
    let mut longer = Vec::with_capacity(header.len() + 6);
    longer.extend_from_slice(before);
    longer.push(0x15);
    let signed = checksum.cast_signed();
    let mut value = (signed << 1 ^ signed >> 31).cast_unsigned();
    while value > 0x7f {
        longer.push(value as u8 | 0x80);
        value >>= 7;
    }
    longer.push(value as u8);
    longer.push(head - 0x10);
    longer.extend_from_slice(rest);
    Some((longer, kind == DICTIONARY_PAGE))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// type 0, uncompressed 300, compressed 100, data_page_header { num_values 5, encoding 0, 3, 3,
    /// statistics { max "ab" } }, data.
    const HEADER: [u8; 23] = [
        0x15, 0, 0x15, 0xd8, 0x04, 0x15, 0xc8, 0x01, 0x2c, 0x15, 10, 0x15, 0, 0x15, 6, 0x15, 6, 0x1c, 0x18,
        2, b'a', b'b', 0,
    ];

    #[test]
    fn a_header_with_statistics() {
        let bytes = [&HEADER[..], &[0, 0, 99, 99]].concat();
        assert_eq!(
            parse(&bytes),
            Some(Header { index: false, uncompressed: 300, compressed: 100, checksum: None, length: 25 })
        );
    }

    #[test]
    fn a_header_gets_its_checksum() {
        let bytes = [&HEADER[..], &[0, 0]].concat();
        for checksum in [0, 1, 0x7f, 0x8000_0000, u32::MAX, 0x1234_5678] {
            let (longer, dictionary) = with_checksum(&bytes, checksum).unwrap();
            assert!(!dictionary);
            assert_eq!(
                parse(&longer),
                Some(Header {
                    length: longer.len(),
                    checksum: Some(i64::from(checksum.cast_signed())),
                    ..parse(&bytes).unwrap()
                })
            );
            assert_eq!(with_checksum(&longer, checksum), None);
            let mut input = Input { rest: &longer[8..] };
            assert_eq!(input.field(&mut 3), Some(Some(5)));
            assert_eq!(input.zigzag().map(|value| value as i32), Some(checksum.cast_signed()));
        }
        assert!(with_checksum(&[0x15, 4, 0x15, 4, 0x15, 6, 0x4c, 0x15, 2, 0x15, 0, 0, 0], 7).unwrap().1);
        for broken in [&[][..], &[0x15, 4, 0x15, 4, 0], &[0x15, 4, 0x15, 4, 0x15, 6, 0]] {
            assert_eq!(with_checksum(broken, 7), None);
        }
    }

    #[test]
    fn sizes_of_more_than_32_bits() {
        let size = |high: u8| parse(&[0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, high, 0x15, 6, 0]);
        assert_eq!(size(0x0f).unwrap().uncompressed, i64::from(i32::MAX));
        assert_eq!(size(0x1f), None);
    }

    #[test]
    fn pages_of_an_index() {
        assert!(parse(&[0x15, 2, 0x15, 4, 0x15, 6, 0]).unwrap().index);
    }

    #[test]
    fn a_header_longer_than_what_is_at_hand() {
        let long = [
            &[0x15, 0, 0x15, 4, 0x15, 6, 0x2c, 0x18][..],
            &[0xa0, 0x8d, 0x06],
            &vec![b'x'; 100_000],
            &[0, 0],
        ]
        .concat();
        let file = Bytes::from([&[9; 7][..], &long, &[9; 7]].concat());
        assert_eq!(
            header_at(&file, 7).unwrap(),
            Header { index: false, uncompressed: 2, compressed: 3, checksum: None, length: long.len() }
        );
        assert!(header_at(&file.slice(..50_000), 7).is_err());
    }

    #[test]
    fn headers_that_are_none() {
        for cut in 0..HEADER.len() {
            assert_eq!(parse(&HEADER[..cut]), None);
        }
        assert_eq!(parse(&[0x15, 0, 0]), None);
        assert_eq!(parse(&[0x1c; 64]), None);
        assert_eq!(parse(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(parse(&[0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), None);
    }

    #[test]
    fn negative_sizes() {
        assert_eq!(
            parse(&[0x15, 0, 0x15, 1, 0x15, 3, 0]),
            Some(Header { index: false, uncompressed: -1, compressed: -2, checksum: None, length: 7 })
        );
    }
}
