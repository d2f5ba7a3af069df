#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::hash::DefaultHasher;

fn vector(rows: impl IntoIterator<Item = u64>) -> DeletionVector {
    DeletionVector::from_rows(rows.into_iter().collect()).unwrap()
}

fn hash(rows: &DeletionVector) -> u64 {
    let mut hasher = DefaultHasher::new();
    rows.hash(&mut hasher);
    hasher.finish()
}

/// Generates sets with few and many rows, runs, and rows in several containers and bitmaps.
fn row_sets() -> impl Strategy<Value = BTreeSet<u64>> {
    let row = prop_oneof![0..200u64, 65_000..66_000u64, (1 << 32) - 100..(1u64 << 32) + 100, Just(MAX_ROW)];
    let run = (row.clone(), 1..300u64)
        .prop_map(|(first, length)| (first..first.saturating_add(length).min(MAX_ROW)).collect::<Vec<_>>());
    let dense = (0..70_000u64, 1..4usize)
        .prop_map(|(first, step)| (first..first + 20_000).step_by(step).collect::<Vec<_>>());
    let parts = prop_oneof![4 => row.prop_map(|row| vec![row]), 2 => run, 1 => dense];
    prop::collection::vec(parts, 0..8).prop_map(|parts| parts.into_iter().flatten().collect())
}

/// Computes the mask row by row, which is slow but clear.
fn naive_mask(rows: &BTreeSet<u64>, first: u64, count: usize) -> Vec<bool> {
    (0..count).map(|i| !rows.contains(&(first + i as u64))).collect()
}

fn naive_runs(rows: &BTreeSet<u64>, range: Range<u64>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for row in rows.iter().copied().filter(|row| range.contains(row)) {
        match runs.last_mut() {
            Some(run) if run.end == row => run.end += 1,
            _ => runs.push(row..row + 1),
        }
    }
    runs
}

#[test]
fn rejects_rows_beyond_the_last() {
    let error = DeletionVector::from_rows(vec![1, MAX_ROW + 1]).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidArgument);
    assert!(
        error.to_string().contains(
            "row index is too large; found 9223372036854775808; expected at most 9223372036854775807"
        )
    );
}

#[test]
fn runs_cross_containers_and_bitmaps() {
    let border = 1u64 << 32;
    let rows = vector((border - 70_000)..(border + 70_000));
    assert_eq!(rows.runs_within(0..MAX_ROW + 1).collect::<Vec<_>>(), [border - 70_000..border + 70_000]);
    assert_eq!(rows.bitmaps().len(), 2);
    assert_eq!(rows.cardinality(), 140_000);
}

#[test]
fn ranges_without_rows() {
    let rows = vector([5, MAX_ROW]);
    for range in [0..0, 5..5, Range { start: 7, end: 3 }, MAX_ROW + 1..u64::MAX, u64::MAX..u64::MAX] {
        assert_eq!(rows.count_within(range.clone()), 0, "{range:?}");
        assert_eq!(rows.runs_within(range).next(), None);
    }
    assert_eq!(rows.count_within(0..u64::MAX), 2);
    assert_eq!(rows.keep_mask(u64::MAX, 70).count_set_bits(), 70);
    assert_eq!(rows.keep_mask(MAX_ROW, 3).iter().collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn too_many_rows_for_memory_are_an_error() {
    let full = DeletionVector::from_bitmaps((0..1 << 10).map(|key| (key, RoaringBitmap::full())));
    assert_eq!(full.cardinality(), 1 << 42);
    let message = full.to_rows().map(|rows| rows.len()).map_err(|error| error.to_string());
    assert!(message.is_err_and(|text| text.contains("4398046511104 rows")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_set_of_rows(rows in row_sets(), order: u64) {
        let mut shuffled: Vec<u64> = rows.iter().copied().chain(rows.iter().take(3).copied()).collect();
        let length = shuffled.len().max(1) as u64;
        shuffled.rotate_left((order % length) as usize);
        let set = vector(shuffled);
        prop_assert_eq!(set.cardinality(), rows.len() as u64);
        prop_assert_eq!(set.max(), rows.last().copied());
        prop_assert_eq!(set.is_empty(), rows.is_empty());
        prop_assert!(set.iter().eq(rows.iter().copied()));
        prop_assert!(set.to_rows().unwrap().into_iter().eq(rows.iter().copied()));
        for row in [0, 5, 65_536, 1 << 32, MAX_ROW] {
            prop_assert_eq!(set.contains(row), rows.contains(&row));
        }
    }

    #[test]
    fn algebra(a in row_sets(), b in row_sets()) {
        let (x, y) = (vector(a.iter().copied()), vector(b.iter().copied()));
        prop_assert_eq!(x.union(&y), vector(a.union(&b).copied()));
        prop_assert_eq!(x.intersection(&y), vector(a.intersection(&b).copied()));
        prop_assert_eq!(x.difference(&y), vector(a.difference(&b).copied()));
        prop_assert_eq!(x.union(&y), y.union(&x));
        prop_assert_eq!(x == y, a == b);
    }

    #[test]
    fn equal_sets_have_equal_hashes(rows in row_sets()) {
        let set = vector(rows.iter().copied());
        let again = DeletionVector::from_bytes(&set.to_bytes()).unwrap();
        prop_assert_eq!(&set, &again);
        prop_assert_eq!(hash(&set), hash(&again));
    }

    #[test]
    fn masks_runs_and_counts(
        rows in row_sets(),
        first in prop_oneof![0..70_000u64, (1 << 32) - 1000..(1u64 << 32)],
        count in 0..3000usize,
    ) {
        let set = vector(rows.iter().copied());
        let range = first..first + count as u64;
        let mask = set.keep_mask(first, count);
        prop_assert_eq!(mask.iter().collect::<Vec<_>>(), naive_mask(&rows, first, count));
        prop_assert_eq!(set.runs_within(range.clone()).collect::<Vec<_>>(), naive_runs(&rows, range.clone()));
        prop_assert_eq!(set.count_within(range.clone()), rows.range(range.clone()).count() as u64);
        prop_assert!(set.rows_within(range.clone()).eq(rows.range(range).copied()));
    }
}
