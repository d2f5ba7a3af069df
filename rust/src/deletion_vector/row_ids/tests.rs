#![allow(clippy::unwrap_used)]

use super::*;
use arrow::array::{Int64Array, StringArray};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn batch(pairs: &[(i32, i64)]) -> RecordBatch {
    let files: ArrayRef = Arc::new(Int32Array::from_iter_values(pairs.iter().map(|pair| pair.0)));
    let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(pairs.iter().map(|pair| pair.1)));
    RecordBatch::try_from_iter([(ROW_COLUMN, rows), (FILE_COLUMN, files)]).unwrap()
}

fn files(paths: &[&str]) -> RecordBatch {
    let paths: ArrayRef = Arc::new(StringArray::from(paths.to_vec()));
    RecordBatch::try_from_iter([("path", paths)]).unwrap()
}

fn message<T: std::fmt::Debug>(result: Result<T>, kind: Kind) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind);
    error.to_string()
}

#[test]
fn pairs_that_come_twice() {
    let mut rows = RowIds::new(true);
    rows.extend(&batch(&[(3, 5), (0, 7), (3, 6)])).unwrap();
    rows.extend(&batch(&[(3, 1), (3, 9)])).unwrap();
    let twice = message(rows.clone().extend(&batch(&[(0, 8), (3, 9)])), Kind::MergeCardinality);
    assert!(twice.contains("matches the same target row; found row 9 of file 3 at least twice"), "{twice}");
    message(rows.clone().extend(&batch(&[(0, 8), (0, 8)])), Kind::MergeCardinality);
    message(rows.clone().extend(&batch(&[(3, 1), (3, 100)])), Kind::MergeCardinality);
    let mut any = RowIds::new(false);
    any.extend(&batch(&[(3, 5), (3, 5), (3, 2)])).unwrap();
    any.extend(&batch(&[(3, 5)])).unwrap();
    assert_eq!((any.len(), any.file_count()), (2, 1));
}

#[test]
fn rejects_what_is_no_row_id() {
    let extend = |batch: &RecordBatch| message(RowIds::new(false).extend(batch), Kind::InvalidArgument);
    assert!(extend(&batch(&[(0, -1)])).contains("__deltaic_row: row id is negative; found -1"));
    assert!(extend(&batch(&[(-2, 1)])).contains("__deltaic_file: row id is negative; found -2"));
    assert!(extend(&files(&["a"])).contains("row ids lack a column; expected __deltaic_file"));
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let large: ArrayRef = Arc::new(Int64Array::from(vec![1, 1 << 40]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["1", "2"]));
    let pair = |file: &ArrayRef, row: &ArrayRef| {
        RecordBatch::try_from_iter([(FILE_COLUMN, file.clone()), (ROW_COLUMN, row.clone())]).unwrap()
    };
    assert!(extend(&pair(&large, &large)).contains("__deltaic_file: row id does not fit; expected Int32"));
    assert!(extend(&pair(&nulls, &large)).contains("row id is null"));
    assert!(extend(&pair(&texts, &large)).contains("row id is no integer; found Utf8; expected Int32"));
}

#[test]
fn bitmaps_of_parts_are_rows() {
    let part = |pairs: &[(i32, i64)]| {
        let mut rows = RowIds::new(false);
        rows.extend(&batch(pairs)).unwrap();
        rows.bitmaps().unwrap()
    };
    let mut rows = RowIds::new(true);
    rows.extend_bitmaps(&part(&[(0, 2), (1, 191), (0, 0)])).unwrap();
    rows.extend_bitmaps(&part(&[(1, 1 << 33), (1, 3)])).unwrap();
    rows.extend_bitmaps(&part(&[])).unwrap();
    assert_eq!(rows.of_file(0).unwrap().to_rows().unwrap(), [0, 2]);
    assert_eq!(rows.of_file(1).unwrap().to_rows().unwrap(), [3, 191, 1 << 33]);
    assert_eq!(
        RowIds { unique: false, ..rows.clone() }.bitmaps().unwrap(),
        part(&[(1, 3), (1, 191), (0, 0), (0, 2), (1, 1 << 33)])
    );
    let twice =
        |pairs: &[(i32, i64)]| message(rows.clone().extend_bitmaps(&part(pairs)), Kind::MergeCardinality);
    assert!(twice(&[(1, 7), (1, 191)]).contains("found 5 source rows for 4 rows of file 1"));
    assert!(twice(&[(2, 5), (2, 5)]).contains("found 2 source rows for 1 rows of file 2"));
    let mut any = RowIds::new(false);
    any.extend_bitmaps(&part(&[(2, 5), (2, 5)])).unwrap();
    assert_eq!(any.len(), 1);
    // However the bitmaps were sent, bytes that are no bitmap are an error.
    let broken: ArrayRef = Arc::new(BinaryArray::from_iter_values([b"none"]));
    let columns = part(&[(0, 1)]);
    let broken = with_columns(&columns, [(BITMAP_COLUMN, broken)]).unwrap();
    assert!(rows.clone().extend_bitmaps(&broken).is_err());
    assert!(
        message(rows.extend_bitmaps(&batch(&[(0, 1)])), Kind::InvalidArgument)
            .contains("row ids lack a column")
    );
}

#[test]
fn selects_files_by_position_or_ordinal() {
    let mut rows = RowIds::new(false);
    rows.extend(&batch(&[(2, 5), (0, 7), (2, 6)])).unwrap();
    let selected = rows.select(&files(&["a", "b", "c"]), true).unwrap();
    assert_eq!(
        selected.column_by_name("path").unwrap().as_string::<i32>(),
        &StringArray::from(vec!["a", "c"])
    );
    assert_eq!(
        selected.column_by_name(FILE_COLUMN).unwrap().as_primitive::<Int32Type>(),
        &Int32Array::from(vec![0, 2])
    );
    assert!(
        selected.column_by_name("keep_selected").unwrap().as_boolean().iter().all(|keep| keep == Some(true))
    );
    let bitmap = selected.column_by_name("selection").unwrap().as_binary::<i32>().value(1);
    assert_eq!(DeletionVector::from_bytes(bitmap).unwrap().to_rows().unwrap(), [5, 6]);
    // The selected files have ordinals of their own now.
    assert_eq!(rows.select(&selected, true).unwrap(), selected);
    let lacking = message(rows.select(&files(&["a"]), false), Kind::InvalidArgument);
    assert!(lacking.contains("rows of 2 files, of which 1 are there"), "{lacking}");
}

proptest! {
    #[test]
    fn any_order_and_any_batches(
        pairs in prop::collection::vec(
            (0..4i32, prop_oneof![0..500i64, 65_000..66_000i64, Just(1i64 << 33)]),
            0..300,
        ),
        size in 1..50usize,
    ) {
        let mut rows = RowIds::new(false);
        for part in pairs.chunks(size) {
            rows.extend(&batch(part)).unwrap();
        }
        let expected: BTreeSet<_> = pairs.into_iter().collect();
        prop_assert_eq!(rows.len(), expected.len() as u64);
        for file in 0..4 {
            let of_file = expected.iter().filter(|pair| pair.0 == file).map(|pair| pair.1 as u64);
            prop_assert!(rows.of_file(file).unwrap_or(&DeletionVector::new()).iter().eq(of_file));
        }
    }
}
