//! Distributions over the live files for version checksums ("File Size Histogram Schema", "Deleted Record
//! Counts Histogram Schema").
//!
//! The distributions are counted once, when they are first needed, and then updated by each commit.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;

use crate::error::Result;
use crate::log::schema::vectors;

const KIB: i64 = 1 << 10;
const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// Ranges of file sizes, each with bins of one width: first size, end (exclusive), width. delta-spark and its
/// kernels use them.
const RANGES: [(i64, i64, i64); 8] = [
    (4 * MIB, 40 * MIB, 4 * MIB),
    (40 * MIB, 120 * MIB, 8 * MIB),
    (120 * MIB, 144 * MIB, 4 * MIB),
    (144 * MIB, 576 * MIB, 16 * MIB),
    (576 * MIB, 1408 * MIB, 64 * MIB),
    (1408 * MIB, 2 * GIB, 128 * MIB),
    (2 * GIB, 4 * GIB, 256 * MIB),
    (4 * GIB, 8 * GIB, 4 * GIB),
];

/// Returns the first size of each usual bin; that of the first bin is 0.
pub fn usual_bounds() -> Vec<i64> {
    let doubled = |from: i64, to: i64| {
        std::iter::successors(Some(from), |at| at.checked_mul(2)).take_while(move |at| *at < to)
    };
    let mut bounds = vec![0];
    bounds.extend(doubled(8 * KIB, 4 * MIB));
    for (from, to, step) in RANGES {
        bounds.extend((from..to).step_by(usize::try_from(step).unwrap_or(1)));
    }
    bounds.extend(doubled(8 * GIB, 512 * GIB));
    bounds
}

/// A histogram of file sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// First size of each bin, ascending.
    pub bounds: Vec<i64>,
    /// Number of files in each bin.
    pub files: Vec<i64>,
    /// Number of bytes in each bin.
    pub bytes: Vec<i64>,
}

impl Sizes {
    /// Makes an empty histogram with these bins.
    pub fn new(bounds: Vec<i64>) -> Self {
        let none = vec![0; bounds.len()];
        Self { files: none.clone(), bytes: none, bounds }
    }

    /// Adds a file, or removes it if `gone`.
    pub fn count(&mut self, size: i64, gone: bool) {
        let bin = self.bounds.partition_point(|bound| *bound <= size).saturating_sub(1);
        if let (Some(files), Some(bytes)) = (self.files.get_mut(bin), self.bytes.get_mut(bin)) {
            *files += if gone { -1 } else { 1 };
            *bytes = if gone { bytes.saturating_sub(size) } else { bytes.saturating_add(size) };
        }
    }
}

/// Totals of rows that vectors delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletedTotals {
    /// Number of files with a vector.
    pub vectors: i64,
    /// Number of rows that the vectors delete.
    pub rows: i64,
    /// Number of files by number of deleted rows: 0, below 10, below 100, and so on up to below 10⁷, then
    /// below 2³¹ − 1, and more.
    pub files: [i64; 10],
}

impl DeletedTotals {
    /// Adds a file, or removes it if `gone`. `rows`: the number of rows that its vector deletes; `None`: it
    /// has no vector.
    pub fn count(&mut self, rows: Option<i64>, gone: bool) {
        let one = if gone { -1 } else { 1 };
        self.files[bin_of(rows.unwrap_or(0))] += one;
        if let Some(rows) = rows {
            self.vectors += one;
            self.rows = self.rows.saturating_add(rows.saturating_mul(one));
        }
    }

    /// Adds a number of files without a vector.
    pub fn count_whole(&mut self, files: usize) {
        self.files[0] = self.files[0].saturating_add_unsigned(files as u64);
    }

    /// Adds all files of a batch.
    pub fn count_all(&mut self, batch: &RecordBatch) -> Result<()> {
        if vectors(batch)?.null_count() == batch.num_rows() {
            self.count_whole(batch.num_rows());
            return Ok(());
        }
        (0..batch.num_rows()).try_for_each(|row| {
            self.count(deleted_of(batch, row)?, false);
            Ok(())
        })
    }

    /// Returns the sum of both.
    pub fn plus(mut self, other: &Self) -> Self {
        self.vectors += other.vectors;
        self.rows = self.rows.saturating_add(other.rows);
        self.files.iter_mut().zip(other.files).for_each(|(sum, files)| *sum += files);
        self
    }
}

fn bin_of(rows: i64) -> usize {
    match rows {
        ..=0 => 0,
        1..10_000_000 => 1 + rows.ilog10() as usize,
        10_000_000..0x7fff_ffff => 8,
        _ => 9,
    }
}

/// Returns the number of rows that a file's vector deletes, from its descriptor. `None` if the file has no
/// vector.
pub fn deleted_of(batch: &RecordBatch, row: usize) -> Result<Option<i64>> {
    let vectors = vectors(batch)?;
    let counts =
        vectors.column_by_name("cardinality").and_then(|column| column.as_primitive_opt::<Int64Type>());
    Ok(vectors
        .is_valid(row)
        .then(|| counts.filter(|counts| counts.is_valid(row)).map_or(0, |counts| counts.value(row))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_bins_are_those_of_delta_spark() {
        let bounds = usual_bounds();
        assert_eq!(bounds.len(), 95);
        assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(
            bounds[..12],
            [0, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608]
        );
        assert_eq!(bounds[93..], [128 * GIB, 256 * GIB]);
    }

    #[test]
    fn files_come_and_go() {
        let mut sizes = Sizes::new(vec![0, 10, 100]);
        for size in [0, 9, 10, 99, 100, i64::MAX] {
            sizes.count(size, false);
        }
        assert_eq!((sizes.files.clone(), sizes.bytes.clone()), (vec![2, 2, 2], vec![9, 109, i64::MAX]));
        sizes.count(10, true);
        assert_eq!((sizes.files[1], sizes.bytes[1]), (1, 99));
    }

    #[test]
    fn bins_of_deleted_rows() {
        let bins =
            [0, 1, 9, 10, 99, 100, 9_999_999, 10_000_000, 2_147_483_646, 2_147_483_647, i64::MAX].map(bin_of);
        assert_eq!(bins, [0, 1, 1, 2, 2, 3, 7, 8, 8, 9, 9]);
        let mut deleted = DeletedTotals::default();
        deleted.count(None, false);
        deleted.count(Some(12), false);
        deleted.count(Some(0), false);
        assert_eq!((deleted.vectors, deleted.rows, deleted.files[0], deleted.files[2]), (2, 12, 2, 1));
        deleted.count(Some(12), true);
        assert_eq!((deleted.vectors, deleted.rows, deleted.files[2]), (1, 0, 0));
    }
}
