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
/// Bytes copied at a time: a copy of fixed length is a few instructions, one of unknown length is a call.
const BYTES: usize = 64;

/// A mask over the rows of a batch, ready to be laid on each of its columns.
#[derive(Debug)]
pub struct Keep<'a> {
    mask: &'a BooleanBuffer,
    count: usize,
    /// The mask's bits from the lowest on, where many are set.
    bits: Option<Vec<u8>>,
    filter: OnceCell<FilterPredicate>,
}

impl<'a> Keep<'a> {
    /// The rows whose bit is set.
    pub fn new(mask: &'a BooleanBuffer) -> Self {
        let count = mask.count_set_bits();
        let bytes = || mask.bit_chunks().iter_padded().flat_map(u64::to_le_bytes).collect();
        Self { mask, count, bits: (count * DENSE >= mask.len()).then(bytes), filter: OnceCell::new() }
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
                DataType::Utf8 => return Ok(Arc::new(self.bytes(column.as_string::<i32>(), bits)?)),
                DataType::Binary => return Ok(Arc::new(self.bytes(column.as_binary::<i32>(), bits)?)),
                _ => {}
            }
        }
        let filter = || FilterBuilder::new(&BooleanArray::new(self.mask.clone(), None)).optimize().build();
        Ok(self.filter.get_or_init(filter).filter(column)?)
    }

    fn primitive<T: ArrowPrimitiveType>(&self, column: &PrimitiveArray<T>, bits: &[u8]) -> PrimitiveArray<T> {
        let values: &[T::Native] = column.values();
        // A block is copied whole: there is room for the last one.
        let mut kept = vec![T::Native::default(); self.count + 8];
        let mut to = 0;
        let (blocks, rest) = values.as_chunks::<8>();
        for (block, &bits) in blocks.iter().zip(bits) {
            if bits == u8::MAX {
                kept[to..to + 8].copy_from_slice(block);
                to += 8;
            } else {
                for (place, value) in block.iter().enumerate() {
                    kept[to] = *value; // written over by the next one where it goes
                    to += usize::from(bits >> place & 1);
                }
            }
        }
        for (place, value) in rest.iter().enumerate() {
            kept[to] = *value;
            to += usize::from(bits[blocks.len()] >> place & 1);
        }
        kept.truncate(to);
        PrimitiveArray::new(kept.into(), None).with_data_type(column.data_type().clone())
    }

    fn bytes<T: ByteArrayType<Offset = i32>>(&self, column: &GenericByteArray<T>, bits: &[u8]) -> Result<GenericByteArray<T>> {
        let (offsets, values) = (column.value_offsets(), column.value_data());
        let mut ends = vec![0_i32; self.count + 2];
        let (mut to, mut end, mut before) = (0, 0_i32, offsets[0]);
        for (row, &next) in offsets[1..].iter().enumerate() {
            let kept = bits[row / 8] >> (row % 8) & 1;
            end = end.wrapping_add(next.wrapping_sub(before) & -i32::from(kept));
            to += usize::from(kept);
            ends[to] = end; // once more the same where the row goes
            before = next;
        }
        ends.truncate(to + 1);
        let length = end as usize;
        let mut kept = vec![0_u8; length + BYTES];
        let mut at = 0;
        for run in runs(bits, column.len()) {
            at = append(&mut kept, at, values, offsets[run.start] as usize..offsets[run.end] as usize);
        }
        kept.truncate(length);
        Ok(GenericByteArray::try_new(OffsetBuffer::new(ends.into()), kept.into(), None)?)
    }
}

/// Copies `range` of `values` to `kept` from `at` on, and perhaps what is behind it, to be overwritten; where it ends.
fn append(kept: &mut [u8], at: usize, values: &[u8], range: Range<usize>) -> usize {
    let mut done = 0;
    while done < range.len() {
        match values[range.start + done..].first_chunk::<BYTES>() {
            Some(block) => kept[at + done..at + done + BYTES].copy_from_slice(block),
            None => kept[at + done..at + range.len()].copy_from_slice(&values[range.start + done..range.end]),
        }
        done += BYTES;
    }
    at + range.len()
}

/// Runs of rows whose bit is set.
fn runs(bits: &[u8], rows: usize) -> impl Iterator<Item = Range<usize>> {
    let gone = bits.chunks(8).enumerate().flat_map(|(index, word)| {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        let mut gone = !u64::from_le_bytes(bytes);
        std::iter::from_fn(move || {
            let place = gone.trailing_zeros();
            gone &= gone.wrapping_sub(1);
            (place < 64).then_some(index * 64 + place as usize)
        })
    });
    let mut begin = 0;
    gone.take_while(move |row| *row < rows).chain(std::iter::once(rows)).filter_map(move |row| {
        let run = begin..row;
        begin = row + 1;
        (run.start < run.end).then_some(run)
    })
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
