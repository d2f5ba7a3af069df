//! Makes sets of rows from Arrow arrays, and removes deleted rows from batches.

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow::compute::{CastOptions, cast_with_options, filter_record_batch};

use super::{DeletionVector, RowIndex};
use crate::error::{Error, Kind, Result};

/// Returns the set of the rows that the arrays hold as integers of any width, in any order.
///
/// # Errors
/// An array of another type, a null, a negative row.
pub fn rows_of(arrays: &[ArrayRef]) -> Result<DeletionVector> {
    let mut rows: Vec<RowIndex> = Vec::with_capacity(arrays.iter().map(|array| array.len()).sum());
    for array in arrays {
        check_integers(array)?;
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let array = cast_with_options(array, &arrow::datatypes::DataType::UInt64, &strict)
            .map_err(|error| Error::new(Kind::InvalidArgument, "row index is negative").caused_by(error))?;
        rows.extend(
            array
                .as_any()
                .downcast_ref::<UInt64Array>()
                .map(|array| array.values().as_ref())
                .unwrap_or_default(),
        );
    }
    DeletionVector::from_rows(rows)
}

fn check_integers(array: &ArrayRef) -> Result<()> {
    if !array.data_type().is_integer() && !array.data_type().is_null() {
        return Err(Error::new(Kind::InvalidArgument, "row indexes are not integers")
            .found(array.data_type())
            .expected("integers"));
    }
    if array.logical_null_count() > 0 {
        return Err(Error::new(Kind::InvalidArgument, "row index is null")
            .found(format!("{} nulls", array.logical_null_count())));
    }
    Ok(())
}

/// Returns `batch` without its deleted rows. `first_row`: index of its first row in the data file.
pub fn filter(rows: &DeletionVector, batch: &RecordBatch, first_row: RowIndex) -> Result<RecordBatch> {
    let count = batch.num_rows();
    let end = first_row.saturating_add(count as u64);
    match rows.count_within(first_row..end) {
        0 => Ok(batch.clone()),
        deleted if deleted == count as u64 => Ok(batch.slice(0, 0)),
        _ => {
            let mask = BooleanArray::new(rows.keep_mask(first_row, count), None);
            let kept = filter_record_batch(batch, &mask);
            kept.map_err(|error| {
                Error::new(Kind::InvalidArgument, "data cannot be filtered").caused_by(error)
            })
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use arrow::array::{Int8Array, Int64Array, StringArray, UInt32Array};
    use std::sync::Arc;

    #[test]
    fn arrays_of_any_width() {
        let arrays: [ArrayRef; 3] = [
            Arc::new(Int8Array::from(vec![5, 1])),
            Arc::new(UInt32Array::from(vec![1, u32::MAX])),
            Arc::new(Int64Array::from(vec![i64::MAX])),
        ];
        let rows = rows_of(&arrays).unwrap();
        assert_eq!(rows.to_rows().unwrap(), [1, 5, u64::from(u32::MAX), i64::MAX as u64]);
    }

    #[test]
    fn rejects_what_is_no_row() {
        let refused: [(ArrayRef, &str); 3] = [
            (Arc::new(Int8Array::from(vec![Some(1), None])), "row index is null; found 1 nulls"),
            (Arc::new(Int8Array::from(vec![-1])), "row index is negative"),
            (Arc::new(StringArray::from(vec!["1"])), "row indexes are not integers; found Utf8"),
        ];
        for (array, message) in refused {
            let error = rows_of(&[array]).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument);
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn filters_by_absolute_rows() {
        let rows = DeletionVector::from_rows(vec![0, 10, 11, 14]).unwrap();
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(10..14));
        let batch = RecordBatch::try_from_iter([("row", column)]).unwrap();
        let kept = |first| {
            filter(&rows, &batch, first).unwrap().column(0).to_data().buffers()[0]
                .typed_data::<i64>()
                .to_vec()
        };
        assert_eq!(kept(10), [12, 13]);
        assert_eq!(kept(0), [11, 12, 13]);
        assert_eq!(kept(11), [11, 12]);
        assert_eq!(filter(&rows, &batch, 100).unwrap(), batch);
        assert_eq!(
            filter(&DeletionVector::from_rows((0..20).collect()).unwrap(), &batch, 10).unwrap().num_rows(),
            0
        );
    }
}
