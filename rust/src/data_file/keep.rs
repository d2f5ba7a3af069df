//! The rows of decoded arrays that a mask keeps: what a deletion vector or a predicate leaves.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, GenericByteArray, PrimitiveArray, downcast_primitive};
use arrow::buffer::{BooleanBuffer, OffsetBuffer};
use arrow::compute::{FilterBuilder, FilterPredicate};
use arrow::datatypes::{ArrowPrimitiveType, ByteArrayType, DataType};

use crate::error::Result;

/// Arrow's filter copies a run of rows with a call each, which is slow where runs are short: it is used only where fewer rows are kept
/// than one in so many (it copies them one by one then), and for types that are rare.
const DENSE: usize = 2;
/// Offsets moved at a time, and bytes: a copy of fixed length is a few instructions, one of unknown length is a call.
const OFFSETS: usize = 16;
const BYTES: usize = 64;

/// A mask over the rows of a batch, ready to be laid on each of its columns.
#[derive(Debug)]
pub struct Keep<'a> {
    mask: &'a BooleanBuffer,
    count: usize,
    /// The mask's bits from the lowest on, where many are set.
    bits: Option<Vec<u8>>,
    runs: OnceCell<Vec<Range<usize>>>,
    filter: OnceCell<FilterPredicate>,
}

impl<'a> Keep<'a> {
    /// The rows whose bit is set.
    pub fn new(mask: &'a BooleanBuffer) -> Self {
        let count = mask.count_set_bits();
        let bytes = || mask.bit_chunks().iter_padded().flat_map(u64::to_le_bytes).collect();
        let bits = (count * DENSE >= mask.len()).then(bytes);
        Self { mask, count, bits, runs: OnceCell::new(), filter: OnceCell::new() }
    }
    /// How many rows are kept.
    pub fn count(&self) -> usize {
        self.count
    }
    /// The column without the other rows.
    pub fn of(&self, column: &ArrayRef) -> Result<ArrayRef> {
        if let (Some(bits), 0) = (&self.bits, column.null_count()) {
            macro_rules! primitive {
                ($type:ty) => {
                    return Ok(Arc::new(self.primitive(column.as_primitive::<$type>(), bits)))
                };
            }
            downcast_primitive! {
                column.data_type() => (primitive),
                DataType::Utf8 => return Ok(Arc::new(self.bytes(column.as_string::<i32>())?)),
                DataType::Binary => return Ok(Arc::new(self.bytes(column.as_binary::<i32>())?)),
                _ => {}
            }
        }
        let filter = || FilterBuilder::new(&BooleanArray::new(self.mask.clone(), None)).optimize().build();
        Ok(self.filter.get_or_init(filter).filter(column)?)
    }

    /// Eight values at a time without a branch on each: one that goes is written over by the next.
    fn primitive<T: ArrowPrimitiveType>(&self, column: &PrimitiveArray<T>, bits: &[u8]) -> PrimitiveArray<T> {
        let (blocks, rest) = column.values().as_chunks::<8>();
        let mut kept = vec![T::Native::default(); self.count + 8]; // a block is written whole
        let mut to = 0;
        for (block, &bits) in blocks.iter().zip(bits) {
            let Some(into) = kept[to..].first_chunk_mut::<8>() else { break };
            if bits == u8::MAX {
                *into = *block;
                to += 8;
                continue;
            }
            let mut place = 0_usize;
            for (index, value) in block.iter().enumerate() {
                into[place & 7] = *value;
                place = place.wrapping_add(usize::from(bits >> index & 1));
            }
            to += place;
        }
        for (index, value) in rest.iter().enumerate() {
            kept[to] = *value;
            to += usize::from(bits[blocks.len()] >> index & 1);
        }
        kept.truncate(to);
        PrimitiveArray::new(kept.into(), None).with_data_type(column.data_type().clone())
    }

    fn bytes<T: ByteArrayType<Offset = i32>>(&self, column: &GenericByteArray<T>) -> Result<GenericByteArray<T>> {
        let (offsets, values) = (column.value_offsets(), column.value_data());
        let runs = self.runs.get_or_init(|| runs(self.mask));
        let length = |run: &Range<usize>| (offsets[run.end] - offsets[run.start]) as usize;
        let mut kept = vec![0_u8; runs.iter().map(length).sum::<usize>() + BYTES];
        let mut ends = vec![0_i32; 1 + self.count + OFFSETS];
        let (mut row, mut byte) = (1, 0);
        for run in runs {
            let (start, moved) = (offsets[run.start] as usize, byte as i32 - offsets[run.start]);
            copy::<_, OFFSETS>(&offsets[run.start + 1..], &mut ends[row..], run.len(), |end| end.wrapping_add(moved));
            copy::<_, BYTES>(&values[start..], &mut kept[byte..], length(run), |value| value);
            row += run.len();
            byte += length(run);
        }
        ends.truncate(row);
        kept.truncate(byte);
        Ok(GenericByteArray::try_new(OffsetBuffer::new(ends.into()), kept.into(), None)?)
    }
}

/// The first `length` values, changed. They are copied in whole chunks, so what is behind them in `into` may be overwritten.
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

/// Runs of rows whose bit is set.
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
        /// The oracle is Arrow's own filter. Whole arrays and slices, with nulls and without.
        #[test]
        fn keeps_what_a_filter_keeps(rows in prop::collection::vec((any::<i64>(), "[a-zß]{0,90}", 0_u8..20), 0..700),
                                     from in 0_usize..40, nulls in any::<bool>()) {
            let numbers: Int64Array = rows.iter().map(|row| (!nulls || row.0 % 3 != 0).then_some(row.0)).collect();
            let small: Int8Array = rows.iter().map(|row| Some(row.0 as i8)).collect();
            let words: StringArray = rows.iter().map(|row| Some(row.1.as_str())).collect();
            let binary: BinaryArray = rows.iter().map(|row| Some(row.1.as_bytes())).collect();
            let from = from.min(rows.len());
            let mask: BooleanBuffer = rows[from..].iter().map(|row| row.2 != 0).collect();
            let keep = Keep::new(&mask);
            for column in [Arc::new(numbers) as ArrayRef, Arc::new(small), Arc::new(words), Arc::new(binary)] {
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
