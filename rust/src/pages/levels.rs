//! The definition levels of a page of a column without nesting: 1 for each row, or 0 if the row is null. As
//! stored (runs of one level, and runs of packed bits), they are nearly the same as Arrow's bitmap of nulls.
//!
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/>, "Run Length Encoding / Bit-Packing
//! Hybrid".

use arrow::array::BooleanBufferBuilder;
use arrow::util::bit_chunk_iterator::UnalignedBitChunk;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::errors::ParquetError;

type Result<T> = std::result::Result<T, ParquetError>;

/// The levels of a page that are not read yet.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    bytes: Bytes,
    /// Position of the next run.
    next: usize,
    run: Run,
    /// Number of remaining rows of the page.
    pub rows: usize,
}

#[derive(Debug, Clone)]
enum Run {
    /// Rows with the same level.
    Same { is_valid: bool, rows: usize },
    /// The bits of rows, one for each, from bit `first` of `bytes` on.
    Packed { first: usize, rows: usize },
}

impl Default for Run {
    fn default() -> Self {
        Self::Same { is_valid: false, rows: 0 }
    }
}

impl Levels {
    /// Divides a data page into its levels and the bytes of its values; also returns their encoding.
    pub fn of(page: &Page) -> Result<(Self, Bytes, Encoding)> {
        let cut = || ParquetError::General("a page of a Parquet file is shorter than its levels".to_owned());
        let (buffer, rows, encoding, start, end, is_packed) = match page {
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                #[expect(deprecated)] // old files have it
                let is_packed = *def_level_encoding == Encoding::BIT_PACKED;
                let (start, length) = if is_packed {
                    (0, num_values.div_ceil(8))
                } else {
                    let length = buf.first_chunk().ok_or_else(cut)?;
                    (4, u32::from_le_bytes(*length))
                };
                (buf, *num_values, *encoding, start, start + length as usize, is_packed)
            }
            Page::DataPageV2 {
                buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, ..
            } => {
                let start = *rep_levels_byte_len as usize;
                (buf, *num_values, *encoding, start, start + *def_levels_byte_len as usize, false)
            }
            Page::DictionaryPage { .. } => {
                return Err(ParquetError::General("a dictionary has no levels".to_owned()));
            }
        };
        if end > buffer.len() {
            return Err(cut());
        }
        let (mut bytes, rows) = (buffer.slice(start..end), rows as usize);
        let mut run = Run::default();
        if is_packed {
            bytes = bytes.iter().map(|byte| byte.reverse_bits()).collect();
            run = Run::Packed { first: 0, rows };
        }
        Ok((
            Self { next: if is_packed { bytes.len() } else { 0 }, bytes, run, rows },
            buffer.slice(end..),
            encoding,
        ))
    }

    /// Reads the levels of the next rows, at most `self.rows`, and appends a bit for each to `valid`, if
    /// given. Returns the number of rows that are not null.
    pub fn advance(
        &mut self,
        mut rows: usize,
        mut valid: Option<&mut BooleanBufferBuilder>,
    ) -> Result<usize> {
        let mut count = 0;
        self.rows -= rows;
        while rows > 0 {
            let now = match &mut self.run {
                Run::Same { rows: 0, .. } | Run::Packed { rows: 0, .. } => {
                    self.run = self.next_run()?;
                    continue;
                }
                Run::Same { is_valid, rows: left } => {
                    let now = rows.min(*left);
                    *left -= now;
                    count += if *is_valid { now } else { 0 };
                    if let Some(valid) = &mut valid {
                        valid.append_n(now, *is_valid);
                    }
                    now
                }
                Run::Packed { first, rows: left } => {
                    let now = rows.min(*left);
                    count += UnalignedBitChunk::new(&self.bytes, *first, now).count_ones();
                    if let Some(valid) = &mut valid {
                        valid.append_packed_range(*first..*first + now, &self.bytes);
                    }
                    *first += now;
                    *left -= now;
                    now
                }
            };
            rows -= now;
        }
        Ok(count)
    }

    fn next_run(&mut self) -> Result<Run> {
        let wrong = || {
            ParquetError::General(
                "the definition levels of a column without nesting cannot be read".to_owned(),
            )
        };
        let (mut header, mut shift) = (0_u64, 0);
        loop {
            let byte = *self.bytes.get(self.next).ok_or_else(wrong)?;
            self.next += 1;
            header |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
            if shift > 35 {
                return Err(wrong());
            }
        }
        let count = usize::try_from(header >> 1).map_err(|_| wrong())?;
        let left = self.bytes.len() - self.next;
        if header & 1 == 1 {
            let (first, bytes) = (self.next * 8, count.min(left)); // eight rows in a byte
            self.next += bytes;
            return if bytes == 0 { Err(wrong()) } else { Ok(Run::Packed { first, rows: bytes * 8 }) };
        }
        let is_valid = match self.bytes.get(self.next) {
            Some(level @ 0..=1) if count > 0 => *level == 1,
            _ => return Err(wrong()),
        };
        self.next += 1;
        Ok(Run::Same { is_valid, rows: count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(levels: &[u8], rows: u32, encoding: Encoding) -> Page {
        let length = (levels.len() as u32).to_le_bytes();
        let prefix: &[u8] = if encoding == Encoding::RLE { &length } else { &[] };
        Page::DataPage {
            buf: [prefix, levels, b"values"].concat().into(),
            num_values: rows,
            encoding: Encoding::PLAIN,
            def_level_encoding: encoding,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    fn read(page: &Page, steps: &[usize]) -> Result<String> {
        let (mut levels, values, _) = Levels::of(page)?;
        assert_eq!(values, "values");
        let mut valid = BooleanBufferBuilder::new(0);
        let mut count = 0;
        for rows in steps {
            count += levels.advance(*rows, Some(&mut valid))?;
        }
        let bits = valid.finish();
        assert_eq!(count, bits.count_set_bits());
        Ok(bits.iter().map(|bit| if bit { '1' } else { '0' }).collect())
    }

    #[test]
    fn runs_and_packed_bits() {
        // Five times 1, eight rows of the bits 10110000, three times 0.
        let page = page(&[5 << 1, 1, 1 << 1 | 1, 0b0000_1101, 3 << 1, 0], 16, Encoding::RLE);
        for steps in [&[16][..], &[1; 16], &[4, 3, 6, 3]] {
            assert_eq!(read(&page, steps).unwrap(), "1111110110000000");
        }
    }

    #[test]
    #[expect(deprecated)]
    fn bits_of_old_files_begin_with_the_highest() {
        let page = page(&[0b1011_0000, 0b1100_0000], 10, Encoding::BIT_PACKED);
        assert_eq!(read(&page, &[3, 7]).unwrap(), "1011000011");
    }

    #[test]
    fn levels_that_lie() {
        for levels in
            [&[][..], &[5 << 1, 2], &[0, 1], &[5 << 1], &[1], &[1 << 1 | 1], &[0xff; 9], &[3 << 1, 1]]
        {
            assert!(read(&page(levels, 5, Encoding::RLE), &[5]).is_err(), "{levels:?}");
        }
        let long = Page::DataPage {
            buf: [&9_u32.to_le_bytes()[..], b"short"].concat().into(),
            num_values: 1,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        assert!(Levels::of(&long).is_err());
    }
}
