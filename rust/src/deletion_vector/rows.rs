//! The set of deleted rows: one roaring bitmap for each 2³² rows, as in the format.

use arrow::buffer::{BooleanBuffer, Buffer};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use super::{MAX_ROW, RowIndex, encoding};
use crate::error::{Error, Kind, Result};
use crate::z85;

/// An immutable set of absolute row indexes of one data file.
///
/// Invariant: no bitmap is empty, and every key is below 2³¹.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletionVector {
    bitmaps: BTreeMap<u32, RoaringBitmap>,
}

impl DeletionVector {
    /// Makes the empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes the portable format. Malformed bytes are an error, see [`encoding::decode`].
    pub fn from_bytes(data: &[u8]) -> Result<Self> {
        encoding::decode(data)
    }

    /// Returns the set in the portable format, with containers in their smallest form.
    pub fn to_bytes(&self) -> Vec<u8> {
        encoding::encode(self)
    }

    /// Decodes Z85 text of the portable format, as in inline vectors.
    pub fn from_inline(text: &str) -> Result<Self> {
        encoding::decode_padded(&z85::decode(text)?)
    }

    /// Makes a set of rows in any order, repeated or not.
    ///
    /// # Errors
    /// A row above [`MAX_ROW`].
    pub fn from_rows(mut rows: Vec<RowIndex>) -> Result<Self> {
        if !rows.is_sorted() {
            rows.sort_unstable();
        }
        rows.dedup();
        if let Some(row) = rows.last().filter(|row| **row > MAX_ROW) {
            return Err(Error::new(Kind::InvalidArgument, "row index is too large")
                .found(row)
                .expected(format!("at most {MAX_ROW}")));
        }
        let mut set = Self::new();
        set.add_sorted(&rows);
        Ok(set)
    }

    /// Adds rows that ascend without repeating and are at most [`MAX_ROW`].
    pub(super) fn add_sorted(&mut self, rows: &[RowIndex]) {
        for rows in rows.chunk_by(|a, b| high(*a) == high(*b)) {
            let Some(first) = rows.first() else { continue };
            let bitmap = self.bitmaps.entry(high(*first)).or_default();
            let rows = rows.iter().map(|row| *row as u32);
            // The rows are sorted and distinct, so a new bitmap, or one that ends before them, can append
            // them all.
            if bitmap.max().is_none_or(|max| max < *first as u32) {
                let _ = bitmap.append(rows);
            } else {
                *bitmap |= RoaringBitmap::from_sorted_iter(rows).unwrap_or_default();
            }
        }
    }

    /// Makes a set of these bitmaps, without empty ones. The caller ensures that keys are valid.
    pub(super) fn from_bitmaps(bitmaps: impl IntoIterator<Item = (u32, RoaringBitmap)>) -> Self {
        Self { bitmaps: bitmaps.into_iter().filter(|(_, bitmap)| !bitmap.is_empty()).collect() }
    }

    /// Returns the bitmaps by the upper 32 bits of their rows, ascending, none empty.
    pub fn bitmaps(&self) -> impl ExactSizeIterator<Item = (u32, &RoaringBitmap)> {
        self.bitmaps.iter().map(|(key, bitmap)| (*key, bitmap))
    }

    /// Returns the number of rows.
    pub fn cardinality(&self) -> u64 {
        self.bitmaps.values().map(RoaringBitmap::len).sum()
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.bitmaps.is_empty()
    }

    /// True if `row` is in the set.
    pub fn contains(&self, row: RowIndex) -> bool {
        self.bitmaps.get(&high(row)).is_some_and(|bitmap| bitmap.contains(row as u32))
    }

    /// Returns the largest row.
    pub fn max(&self) -> Option<RowIndex> {
        let (key, bitmap) = self.bitmaps.last_key_value()?;
        Some(join(*key, bitmap.max()?))
    }

    /// Returns the number of rows in `range`.
    pub fn count_within(&self, range: Range<RowIndex>) -> u64 {
        self.parts(range).map(|(_, low, high, bitmap)| bitmap.range_cardinality(low..=high)).sum()
    }

    /// Iterates over all rows, ascending.
    pub fn iter(&self) -> impl Iterator<Item = RowIndex> {
        self.rows_within(0..MAX_ROW + 1)
    }

    /// Iterates over the rows in `range`, ascending.
    pub fn rows_within(&self, range: Range<RowIndex>) -> impl Iterator<Item = RowIndex> {
        self.parts(range)
            .flat_map(|(key, low, high, bitmap)| bitmap.range(low..=high).map(move |low| join(key, low)))
    }

    /// Returns all rows, ascending, in one allocation that may fail.
    ///
    /// # Errors
    /// There is not enough memory for all rows.
    pub fn to_rows(&self) -> Result<Vec<RowIndex>> {
        let count = self.cardinality();
        let mut rows = Vec::new();
        usize::try_from(count).ok().and_then(|count| rows.try_reserve_exact(count).ok()).ok_or_else(
            || {
                Error::new(
                    Kind::InvalidArgument,
                    "deletion vector has more rows than fit into memory one by one",
                )
                .found(format!("{count} rows"))
            },
        )?;
        for (key, bitmap) in &self.bitmaps {
            bitmap.iter().for_each(|low| rows.push(join(*key, low)));
        }
        Ok(rows)
    }

    /// Returns the runs of consecutive rows in `range`, ascending, cut to `range`, with gaps between them.
    pub fn runs_within(&self, range: Range<RowIndex>) -> impl Iterator<Item = Range<RowIndex>> {
        let mut parts = self.parts(range).flat_map(|(key, low, high, bitmap)| {
            let mut rows = bitmap.range(low..=high);
            std::iter::from_fn(move || {
                rows.next_range().map(|run| join(key, *run.start())..join(key, *run.end()) + 1)
            })
        });
        let mut ahead = parts.next();
        std::iter::from_fn(move || {
            let mut run = ahead.take()?;
            // Runs continue across the boundaries of containers and bitmaps.
            loop {
                ahead = parts.next();
                match &ahead {
                    Some(next) if next.start == run.end => run.end = next.end,
                    _ => return Some(run),
                }
            }
        })
    }

    /// Returns one bit for each of the `count` rows from `first_row` on: set for live rows, clear for deleted
    /// ones.
    pub fn keep_mask(&self, first_row: RowIndex, count: usize) -> BooleanBuffer {
        let mut words = vec![u64::MAX; count.div_ceil(64)];
        self.clear_deleted(first_row, count, &mut words);
        BooleanBuffer::new(Buffer::from_vec(words), 0, count)
    }

    /// Clears the bits of deleted rows among the `count` rows from `first_row` on. `words`: their bits,
    /// lowest first. Rows beyond the end of `words` are ignored.
    pub fn clear_deleted(&self, first_row: RowIndex, count: usize, words: &mut [u64]) {
        let end = first_row.saturating_add(count as u64);
        for (key, low, high, bitmap) in self.parts(first_row..end) {
            let mut rows = bitmap.range(low..=high);
            let mut clear = |row: u32| {
                let at = (join(key, row) - first_row) as usize;
                if let Some(word) = words.get_mut(at / 64) {
                    *word &= !(1 << (at % 64));
                }
            };
            if bitmap.statistics().n_run_containers > 0 {
                // roaring 0.12 counts a run of 65536 rows in 16 bits if many rows are requested at once.
                while let Some(run) = rows.next_range() {
                    run.for_each(&mut clear);
                }
                continue;
            }
            let mut block = [0; 512];
            loop {
                let some = rows.next_many(&mut block);
                if some.is_empty() {
                    break;
                }
                some.iter().for_each(|row| clear(*row));
            }
        }
    }

    /// Returns the rows that are in either set.
    pub fn union(&self, other: &Self) -> Self {
        let both = |(key, mine): (&u32, &RoaringBitmap)| {
            (*key, other.bitmaps.get(key).map_or_else(|| mine.clone(), |theirs| mine | theirs))
        };
        let theirs = other.bitmaps.iter().filter(|(key, _)| !self.bitmaps.contains_key(key));
        Self::from_bitmaps(
            self.bitmaps.iter().map(both).chain(theirs.map(|(key, bitmap)| (*key, bitmap.clone()))),
        )
    }

    /// Adds the rows of the other set.
    pub(super) fn add_all(&mut self, other: &Self) {
        for (key, bitmap) in &other.bitmaps {
            *self.bitmaps.entry(*key).or_default() |= bitmap;
        }
    }

    /// Returns the rows that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let both =
            self.bitmaps.iter().filter_map(|(key, bitmap)| Some((*key, bitmap & other.bitmaps.get(key)?)));
        Self::from_bitmaps(both)
    }

    /// Returns the rows that are only in this set.
    pub fn difference(&self, other: &Self) -> Self {
        Self::from_bitmaps(self.bitmaps.iter().map(|(key, bitmap)| match other.bitmaps.get(key) {
            Some(less) => (*key, bitmap - less),
            None => (*key, bitmap.clone()),
        }))
    }

    /// Returns the part of each bitmap that lies in `range`: key, first and last lower half, bitmap.
    fn parts(&self, range: Range<RowIndex>) -> impl Iterator<Item = (u32, u32, u32, &RoaringBitmap)> {
        // An empty range touches no bitmap; otherwise `last` is in it.
        let last = range.end.min(MAX_ROW + 1).checked_sub(1).filter(|last| *last >= range.start);
        let keys = last.map(|last| high(range.start)..=high(last));
        keys.into_iter().flat_map(|keys| self.bitmaps.range(keys)).map(move |(key, bitmap)| {
            let low = if *key == high(range.start) { range.start as u32 } else { 0 };
            let end = last.filter(|last| high(*last) == *key).map_or(u32::MAX, |last| last as u32);
            (*key, low, end, bitmap)
        })
    }
}

/// Equal sets have equal hashes, whatever form their containers have.
impl Hash for DeletionVector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for run in self.runs_within(0..MAX_ROW + 1) {
            run.hash(state);
        }
    }
}

fn high(row: RowIndex) -> u32 {
    (row >> 32) as u32
}

fn join(key: u32, low: u32) -> RowIndex {
    u64::from(key) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests;
