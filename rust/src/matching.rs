//! Equality joins of two batches in memory. For a few rows, they take less time than a query of an engine.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{Field, Schema};
use arrow::row::{RowConverter, SortField};

use crate::error::{Error, Kind, Result};

/// Returns the pairs of rows with equal keys: the columns of `left`, then those of `right`. `keys`: names of
/// the key columns, which have the same type on both sides. `keep_right`: also returns the rows of `right`
/// without a match, with nulls for `left`. `None` if there are more than `most` pairs. A null key equals
/// nothing, as in SQL. Floats are compared by their bits, so the caller must not use them as keys.
pub fn join(
    left: &RecordBatch,
    right: &RecordBatch,
    keys: &[(String, String)],
    keep_right: bool,
    most: usize,
) -> Result<Option<RecordBatch>> {
    let of_left = columns(left, keys.iter().map(|(name, _)| name))?;
    let of_right = columns(right, keys.iter().map(|(_, name)| name))?;
    if let Some((one, other)) =
        of_left.iter().zip(&of_right).find(|(one, other)| one.data_type() != other.data_type())
    {
        let error = Error::new(Kind::InvalidArgument, "the keys of a join are not of one type")
            .found(other.data_type());
        return Err(error.expected(one.data_type()));
    }
    let converter =
        RowConverter::new(of_left.iter().map(|key| SortField::new(key.data_type().clone())).collect())?;
    let (left_rows, right_rows) =
        (converter.convert_columns(&of_left)?, converter.convert_columns(&of_right)?);
    let mut places: HashMap<&[u8], Vec<u32>> = HashMap::new();
    let encoded: Vec<_> = left_rows.iter().collect();
    for (place, row) in (0_u32..).zip(&encoded) {
        if !any_null(&of_left, place) {
            places.entry(row.data()).or_default().push(place);
        }
    }
    let (mut from_left, mut from_right) = (Vec::new(), Vec::new());
    for (place, row) in (0_u32..).zip(right_rows.iter()) {
        let matches = if any_null(&of_right, place) { None } else { places.get(row.data()) };
        for &other in matches.into_iter().flatten().take(most + 1) {
            from_left.push(Some(other));
            from_right.push(place);
        }
        if keep_right && matches.is_none() {
            from_left.push(None);
            from_right.push(place);
        }
        if from_right.len() > most {
            return Ok(None);
        }
    }
    let (from_left, from_right) = (UInt32Array::from(from_left), UInt32Array::from(from_right));
    let mut fields: Vec<Arc<Field>> = Vec::new();
    let mut taken: Vec<ArrayRef> = Vec::new();
    for (batch, rows, nullable) in [(left, &from_left, keep_right), (right, &from_right, false)] {
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            fields.push(if nullable {
                Arc::new(field.as_ref().clone().with_nullable(true))
            } else {
                Arc::clone(field)
            });
            taken.push(take(column, rows, None)?);
        }
    }
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(from_right.len()));
    Ok(Some(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), taken, &options)?))
}

fn columns<'a>(batch: &RecordBatch, names: impl Iterator<Item = &'a String>) -> Result<Vec<ArrayRef>> {
    names
        .map(|name| {
            let found = batch.column_by_name(name).map(Arc::clone);
            found
                .ok_or_else(|| Error::new(Kind::InvalidArgument, "no such column").found(format!("{name:?}")))
        })
        .collect()
}

fn any_null(keys: &[ArrayRef], place: u32) -> bool {
    keys.iter().any(|key| key.is_null(place as usize))
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batch(keys: Vec<Option<i64>>, texts: Vec<Option<&str>>) -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> =
            vec![("k", Arc::new(Int64Array::from(keys))), ("t", Arc::new(StringArray::from(texts)))];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn keys(names: &[&str]) -> Vec<(String, String)> {
        names.iter().map(|name| ((*name).to_owned(), (*name).to_owned())).collect()
    }

    /// Finds the pairs by comparing every pair of rows.
    fn pairs(left: &RecordBatch, right: &RecordBatch, keep_right: bool) -> Vec<(Option<usize>, usize)> {
        let value = |batch: &RecordBatch, row: usize| {
            let (k, t) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string::<i32>());
            (k.is_valid(row) && t.is_valid(row)).then(|| (k.value(row), t.value(row).to_owned()))
        };
        let mut found = Vec::new();
        for right_row in 0..right.num_rows() {
            let before = found.len();
            for left_row in 0..left.num_rows() {
                if value(right, right_row).is_some() && value(left, left_row) == value(right, right_row) {
                    found.push((Some(left_row), right_row));
                }
            }
            if keep_right && found.len() == before {
                found.push((None, right_row));
            }
        }
        found
    }

    #[test]
    fn pairs_are_those_of_the_nested_loop() {
        let left = batch(
            vec![Some(1), Some(2), None, Some(2), Some(3)],
            vec![Some("a"), Some("b"), Some("c"), Some("b"), None],
        );
        let right = batch(
            vec![Some(2), Some(9), None, Some(1), Some(3), Some(2)],
            vec![Some("b"), Some("b"), Some("c"), Some("a"), None, Some("b")],
        );
        for keep_right in [false, true] {
            let joined = join(&left, &right, &keys(&["k", "t"]), keep_right, 100).unwrap().unwrap();
            let expected = pairs(&left, &right, keep_right);
            assert_eq!(joined.num_rows(), expected.len());
            for (row, (left_row, right_row)) in expected.into_iter().enumerate() {
                for column in 0..2 {
                    let of_left = joined.column(column).slice(row, 1);
                    match left_row {
                        Some(place) => assert_eq!(&of_left, &left.column(column).slice(place, 1)),
                        None => assert_eq!(of_left.null_count(), 1),
                    }
                    assert_eq!(
                        &joined.column(2 + column).slice(row, 1),
                        &right.column(column).slice(right_row, 1)
                    );
                }
            }
        }
    }

    #[test]
    fn keys_of_two_types_are_refused() {
        let left = batch(vec![Some(1)], vec![Some("a")]);
        let error = join(&left, &left, &[("k".to_owned(), "t".to_owned())], false, 1).unwrap_err();
        assert!(error.to_string().contains("not of one type"), "{error}");
        assert!(join(&left, &left, &keys(&["nope"]), false, 1).unwrap_err().to_string().contains("nope"));
    }

    #[test]
    fn no_rows_are_no_pairs() {
        let left = batch(vec![Some(1)], vec![Some("a")]);
        let none = left.slice(0, 0);
        assert_eq!(join(&left, &none, &keys(&["k"]), true, 1).unwrap().unwrap().num_rows(), 0);
        assert_eq!(join(&none, &left, &keys(&["k"]), true, 1).unwrap().unwrap().num_rows(), 1);
        assert_eq!(join(&none, &left, &keys(&["k"]), false, 1).unwrap().unwrap().num_rows(), 0);
    }

    #[test]
    fn too_many_pairs_are_none() {
        let same = batch(vec![Some(1); 10], vec![Some("a"); 10]);
        assert!(join(&same, &same, &keys(&["k"]), false, 99).unwrap().is_none());
        assert_eq!(join(&same, &same, &keys(&["k"]), false, 100).unwrap().unwrap().num_rows(), 100);
    }
}
