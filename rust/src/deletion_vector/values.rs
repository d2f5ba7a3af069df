//! Functions over columns of Z85 text or of deletion vectors, one value for each row, such as
//! `row_is_deleted` on Spark.

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Int64Type};

use super::{DeletionVector, RowIndex};
use crate::error::{Error, Kind, Result};
use crate::z85;

/// Encodes bytes to Z85 text; null stays null.
pub fn z85_encode(values: &ArrayRef) -> Result<StringArray> {
    let values = taken_as(values, &DataType::Binary)?;
    Ok(values.as_binary::<i32>().iter().map(|bytes| bytes.map(z85::encode)).collect())
}

/// Decodes Z85 text to bytes; null stays null.
pub fn z85_decode(values: &ArrayRef) -> Result<BinaryArray> {
    let values = taken_as(values, &DataType::Utf8)?;
    let mut decoded = BinaryBuilder::new();
    for text in values.as_string::<i32>() {
        decoded.append_option(text.map(z85::decode).transpose()?);
    }
    Ok(decoded.finish())
}

/// Returns for each row index if the vector in the same row contains it: false without a vector, null without
/// an index.
///
/// `vectors`: bytes in PROTOCOL.md's portable format. Equal vectors in consecutive rows are decoded once.
pub fn rows_deleted(vectors: &ArrayRef, rows: &ArrayRef) -> Result<BooleanArray> {
    if vectors.len() != rows.len() {
        return Err(Error::new(Kind::InvalidArgument, "columns of different lengths")
            .found(rows.len())
            .expected(vectors.len()));
    }
    let vectors = taken_as(vectors, &DataType::Binary)?;
    let rows = taken_as(rows, &DataType::Int64)?;
    let mut last: Option<(&[u8], DeletionVector)> = None;
    let mut answers = Vec::with_capacity(rows.len());
    for (bytes, row) in vectors.as_binary::<i32>().iter().zip(rows.as_primitive::<Int64Type>()) {
        answers.push(match (bytes, row) {
            (_, None) => None,
            (None, Some(_)) => Some(false),
            (Some(bytes), Some(row)) => {
                if last.as_ref().is_none_or(|(before, _)| *before != bytes) {
                    last = Some((bytes, DeletionVector::from_bytes(bytes)?));
                }
                let is_in = |row| last.as_ref().is_some_and(|(_, vector)| vector.contains(row));
                Some(RowIndex::try_from(row).is_ok_and(is_in))
            }
        });
    }
    Ok(BooleanArray::from(answers))
}

/// Casts values to `wanted` from another type of its kind, such as large, view and dictionary types.
fn taken_as(values: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    let found = values.data_type();
    let fits = match wanted {
        DataType::Int64 => found.is_integer() || found.is_null(),
        DataType::Utf8 => {
            matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
        }
        _ => {
            matches!(
                found,
                DataType::Binary
                    | DataType::LargeBinary
                    | DataType::BinaryView
                    | DataType::FixedSizeBinary(_)
                    | DataType::Null
            )
        }
    };
    let refused =
        || Error::new(Kind::InvalidArgument, "a column of the wrong type").found(found).expected(wanted);
    if !fits {
        return Err(refused());
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(values, wanted, &strict).map_err(|error| refused().caused_by(error))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, Int64Array, LargeBinaryArray};
    use std::sync::Arc;

    #[test]
    fn text_there_and_back() {
        let bytes: ArrayRef = Arc::new(LargeBinaryArray::from(vec![
            Some(&b"\x86\x4f\xd2\x6f\xb5\x59\xf7\x5b"[..]),
            None,
            Some(b""),
        ]));
        let text: ArrayRef = Arc::new(z85_encode(&bytes).unwrap());
        assert_eq!(text.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("HelloWorld"), None, Some("")]);
        assert_eq!(
            z85_decode(&text).unwrap().iter().collect::<Vec<_>>(),
            [Some(&b"\x86\x4f\xd2\x6f\xb5\x59\xf7\x5b"[..]), None, Some(b"")]
        );
        let wrong: ArrayRef = Arc::new(StringArray::from(vec!["abc\"e"]));
        assert!(z85_decode(&wrong).is_err());
        assert_eq!(z85_encode(&wrong).unwrap_err().kind(), Kind::InvalidArgument);
    }

    #[test]
    fn rows_beside_their_vectors() {
        let few = DeletionVector::from_rows(vec![1, 3]).unwrap().to_bytes();
        let none = DeletionVector::from_rows(vec![]).unwrap().to_bytes();
        let vectors: ArrayRef = Arc::new(BinaryArray::from(vec![
            Some(&few[..]),
            Some(&few),
            Some(&none),
            None,
            Some(&few),
            Some(&few),
        ]));
        let rows: ArrayRef =
            Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(1), Some(1), None, Some(-1)]));
        let answers = rows_deleted(&vectors, &rows).unwrap();
        assert_eq!(
            answers.iter().collect::<Vec<_>>(),
            [Some(true), Some(false), Some(false), Some(false), None, Some(false)]
        );
        let short: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        assert!(rows_deleted(&vectors, &short).is_err());
        let hostile: ArrayRef = Arc::new(BinaryArray::from(vec![&b"no vector"[..]]));
        assert!(rows_deleted(&hostile, &short).is_err());
    }
}
