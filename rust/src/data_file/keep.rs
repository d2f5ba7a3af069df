//! Keeps the rows of decoded arrays that a mask selects: those that a deletion vector or a predicate leaves.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, GenericByteArray, PrimitiveArray,
    downcast_primitive,
};
use arrow::buffer::{BooleanBuffer, OffsetBuffer};
use arrow::compute::{FilterBuilder, FilterPredicate};
use arrow::datatypes::{ArrowPrimitiveType, ByteArrayType, DataType, Int32Type};

use super::compress::compress;
use crate::error::Result;

/// Arrow's filter makes one copy per run of rows, which is slow for short runs. It is used only if fewer than
/// one in this many rows is kept (it then copies rows one by one), and for rare types.
const DENSE: usize = 2;
/// If at most one in this many rows is removed, most groups of eight are kept as a whole and are checked
/// first. Otherwise the processor mispredicts this check too often. Measured: both take the same time at 2-4
/// % of the rows, for numbers of 4 and 8 bytes and texts of 15.
const SCATTERED: usize = 32;
/// Number of offsets, and of bytes, copied at a time: a copy of fixed length takes a few instructions, one of
/// unknown length is a call.
const OFFSETS: usize = 16;
const BYTES: usize = 64;

/// A mask over the rows of a batch, prepared for use on each column.
#[derive(Debug)]
pub struct RowMask<'a> {
    mask: &'a BooleanBuffer,
    count: usize,
    /// The bits of the mask, lowest first, if many are set.
    bits: Option<Cow<'a, [u8]>>,
    /// True if few groups of eight rows are kept as a whole.
    scattered: bool,
    runs: OnceCell<Vec<Range<usize>>>,
    filter: OnceCell<FilterPredicate>,
}

impl<'a> RowMask<'a> {
    /// Keeps the rows whose bit is set.
    pub fn new(mask: &'a BooleanBuffer) -> Self {
        let count = mask.count_set_bits();
        let bytes = || match (mask.offset() / 8, mask.offset() % 8) {
            (first, 0) => Cow::Borrowed(&mask.inner()[first..]),
            _ => Cow::Owned(mask.bit_chunks().iter_padded().flat_map(u64::to_le_bytes).collect()),
        };
        let bits = (count * DENSE >= mask.len()).then(bytes);
        let scattered = (mask.len() - count) * SCATTERED > mask.len();
        Self { mask, count, bits, scattered, runs: OnceCell::new(), filter: OnceCell::new() }
    }
    /// Returns the number of rows that are kept.
    pub fn count(&self) -> usize {
        self.count
    }
    /// Returns the column without the other rows.
    pub fn of(&self, column: &ArrayRef) -> Result<ArrayRef> {
        if let (Some(bits), 0) = (&self.bits, column.null_count()) {
            macro_rules! primitive {
                ($type:ty) => {
                    return Ok(Arc::new(self.primitive(column.as_primitive::<$type>(), bits)))
                };
            }
            downcast_primitive! {
                column.data_type() => (primitive),
                DataType::Utf8 => return Ok(Arc::new(self.bytes(column.as_string::<i32>(), bits))),
                DataType::Binary => return Ok(Arc::new(self.bytes(column.as_binary::<i32>(), bits))),
                DataType::Dictionary(key, _) if key.as_ref() == &DataType::Int32 => {
                    let dictionary = column.as_dictionary::<Int32Type>();
                    let keys = self.primitive(dictionary.keys(), bits);
                    let values = Arc::clone(dictionary.values());
                    return Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values)?));
                }
                _ => {}
            }
        }
        let filter = || FilterBuilder::new(&BooleanArray::new(self.mask.clone(), None)).optimize().build();
        Ok(self.filter.get_or_init(filter).filter(column)?)
    }

    fn primitive<T: ArrowPrimitiveType>(&self, column: &PrimitiveArray<T>, bits: &[u8]) -> PrimitiveArray<T> {
        let (blocks, rest) = column.values().as_chunks::<8>();
        let mut kept = compress(blocks, bits, self.count, !self.scattered);
        for (index, value) in rest.iter().enumerate() {
            if bits[blocks.len()] >> index & 1 == 1 {
                kept.push(*value);
            }
        }
        PrimitiveArray::new(kept.into(), None).with_data_type(column.data_type().clone())
    }

    fn bytes<T: ByteArrayType<Offset = i32>>(
        &self,
        column: &GenericByteArray<T>,
        bits: &[u8],
    ) -> GenericByteArray<T> {
        let offsets = column.value_offsets();
        let widest = || offsets.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).max().unwrap_or(0);
        let (ends, kept) = match self.scattered.then(widest) {
            Some(0..=16) => self.short::<_, 16>(column, bits),
            Some(17..=32) => self.short::<_, 32>(column, bits),
            Some(33..=64) => self.short::<_, 64>(column, bits),
            _ => self.run_by_run(column),
        };
        // SAFETY: each value is a complete value of `column`, so it is valid UTF-8 if `column` is; the
        // offsets ascend from 0 to the number of bytes.
        #[allow(unsafe_code)]
        unsafe {
            GenericByteArray::new_unchecked(OffsetBuffer::new_unchecked(ends.into()), kept.into(), None)
        }
    }

    /// Copies `WIDTH` bytes for each value, without a branch on its bit; a value that is not kept is
    /// overwritten by the next. No value of `column` may be longer. The memory is not zeroed first, which
    /// would take a third of the time of copying.
    fn short<T: ByteArrayType<Offset = i32>, const WIDTH: usize>(
        &self,
        column: &GenericByteArray<T>,
        bits: &[u8],
    ) -> (Vec<i32>, Vec<u8>) {
        let (offsets, values) = (column.value_offsets(), column.value_data());
        let (starts, _) = offsets[..column.len()].as_chunks::<8>();
        let (stops, _) = offsets[1..].as_chunks::<8>();
        let all = (offsets[column.len()] - offsets[0]) as usize;
        let mut bytes = Vec::with_capacity(all.min(self.count * WIDTH) + 8 * WIDTH);
        let mut rows = Vec::with_capacity(1 + self.count + 8);
        let (kept, ends) = (bytes.spare_capacity_mut(), rows.spare_capacity_mut());
        ends[0].write(0);
        let (mut seen, mut row, mut byte) = (0, 1, 0);
        'groups: for ((starts, stops), bits) in starts.iter().zip(stops).zip(bits) {
            let first = starts[0] as usize;
            let (Some(from), Some(into)) =
                (values.get(first..starts[7] as usize + WIDTH), kept.get_mut(byte..byte + 8 * WIDTH))
            else {
                break;
            };
            let Some(ends) = ends[row..].first_chunk_mut::<8>() else { break };
            let (mut place, mut end) = (0_usize, 0);
            for index in 0..8 {
                let from = from[starts[index] as usize - first..].first_chunk::<WIDTH>();
                let (Some(from), Some(into)) = (from, into[end..].first_chunk_mut::<WIDTH>()) else {
                    break 'groups;
                };
                *into = from.map(MaybeUninit::new);
                let bit = usize::from(bits >> index & 1);
                end += (stops[index] - starts[index]) as usize * bit;
                ends[place & 7].write((byte + end) as i32);
                place += bit;
            }
            (seen, row, byte) = (seen + 8, row + place, byte + end);
        }
        // The last values are copied by their lengths: `WIDTH` bytes from their start would exceed `values`.
        for (index, pair) in offsets[seen..].windows(2).enumerate() {
            if bits[(seen + index) / 8] >> (index % 8) & 1 == 1 {
                let value = &values[pair[0] as usize..pair[1] as usize];
                for (into, from) in kept[byte..byte + value.len()].iter_mut().zip(value) {
                    into.write(*from);
                }
                byte += value.len();
                ends[row].write(byte as i32);
                row += 1;
            }
        }
        // SAFETY: each kept value was written completely, directly after the kept value before it, so the
        // first `byte` bytes are initialized; its end was written after the end of the value before it, so
        // the first `row` ends are.
        #[allow(unsafe_code)]
        unsafe {
            bytes.set_len(byte);
            rows.set_len(row);
        }
        (rows, bytes)
    }

    /// Copies each run as a whole.
    fn run_by_run<T: ByteArrayType<Offset = i32>>(
        &self,
        column: &GenericByteArray<T>,
    ) -> (Vec<i32>, Vec<u8>) {
        let (offsets, values) = (column.value_offsets(), column.value_data());
        let runs = self.runs.get_or_init(|| runs(self.mask));
        let length = |run: &Range<usize>| (offsets[run.end] - offsets[run.start]) as usize;
        let mut kept = vec![0_u8; runs.iter().map(length).sum::<usize>() + BYTES];
        let mut ends = vec![0_i32; 1 + self.count + OFFSETS];
        let (mut row, mut byte) = (1, 0);
        for run in runs {
            let (start, moved) = (offsets[run.start] as usize, byte as i32 - offsets[run.start]);
            copy::<_, OFFSETS>(&offsets[run.start + 1..], &mut ends[row..], run.len(), |end| {
                end.wrapping_add(moved)
            });
            copy::<_, BYTES>(&values[start..], &mut kept[byte..], length(run), |value| value);
            row += run.len();
            byte += length(run);
        }
        ends.truncate(row);
        kept.truncate(byte);
        (ends, kept)
    }
}

/// Copies the first `length` values, changed by `change`, in whole chunks, so values after them in `into` may
/// be overwritten.
fn copy<T: Copy, const CHUNK: usize>(from: &[T], into: &mut [T], length: usize, change: impl Fn(T) -> T) {
    let mut at = 0;
    while at < length {
        match (from[at..].first_chunk::<CHUNK>(), into[at..].first_chunk_mut::<CHUNK>()) {
            (Some(from), Some(into)) => *into = from.map(&change),
            _ => {
                for (from, into) in from[at..length].iter().zip(&mut into[at..length]) {
                    *into = change(*from);
                }
            }
        }
        at += CHUNK;
    }
}

/// Returns the runs of rows whose bit is set.
fn runs(mask: &BooleanBuffer) -> Vec<Range<usize>> {
    let mut runs = Vec::with_capacity(mask.len() / 8);
    let mut begin = 0;
    let mut close = |gone: usize| {
        if gone > begin {
            runs.push(begin..gone);
        }
        begin = gone + 1;
    };
    for (index, word) in mask.bit_chunks().iter_padded().enumerate() {
        let mut gone = !word;
        while gone != 0 {
            let row = index * 64 + gone.trailing_zeros() as usize;
            if row >= mask.len() {
                break;
            }
            close(row);
            gone &= gone - 1;
        }
    }
    close(mask.len());
    runs
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use arrow::array::{BinaryArray, Int8Array, Int64Array, StringArray};
    use arrow::compute::filter;
    use proptest::prelude::*;

    proptest! {
        /// The oracle is Arrow's own filter. The cases are whole arrays and slices, with nulls and without,
        /// with few rows removed and with many, with short texts and with long ones.
        #[test]
        fn keeps_what_a_filter_keeps(
            rows in prop::collection::vec((any::<i64>(), "[a-zß]{0,90}", 0_u8..100), 0..700),
            gone in 0_u8..60,
            longest in prop::sample::select(vec![0_usize, 1, 16, 17, 32, 64, 180]),
            from in 0_usize..40,
            nulls in any::<bool>(),
        ) {
            let cut = |text: &str| {
                text.char_indices()
                    .take_while(|(at, letter)| at + letter.len_utf8() <= longest)
                    .map(|(_, letter)| letter)
                    .collect()
            };
            let rows: Vec<(i64, String, u8)> =
                rows.into_iter().map(|(number, text, chance)| (number, cut(&text), chance)).collect();
            let numbers: Int64Array =
                rows.iter().map(|row| (!nulls || row.0 % 3 != 0).then_some(row.0)).collect();
            let small: Int8Array = rows.iter().map(|row| Some(row.0 as i8)).collect();
            let words: StringArray = rows.iter().map(|row| Some(row.1.as_str())).collect();
            let binary: BinaryArray = rows.iter().map(|row| Some(row.1.as_bytes())).collect();
            let from = from.min(rows.len());
            let mask: BooleanBuffer = rows[from..].iter().map(|row| row.2 >= gone).collect();
            let keep = RowMask::new(&mask);
            let columns: [ArrayRef; 4] =
                [Arc::new(numbers), Arc::new(small), Arc::new(words), Arc::new(binary)];
            for column in columns {
                let column = if from > 0 { column.slice(from, column.len() - from) } else { column };
                let expected = filter(&column, &BooleanArray::new(mask.clone(), None)).unwrap();
                let kept = keep.of(&column).unwrap();
                kept.to_data().validate_full().unwrap();
                prop_assert_eq!(&kept, &expected);
                prop_assert_eq!(kept.len(), keep.count());
            }
        }
    }
}
