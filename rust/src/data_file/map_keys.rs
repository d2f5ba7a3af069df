//! Finds maps with repeated keys: Spark writes none (DUPLICATED_MAP_KEY), and engines disagree on their
//! values.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, RecordBatch};
use arrow::compute::{interleave, is_not_null};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Kind, Result};
use crate::predicate::statistics::normalise;

/// Maximum number of keys of a map that are compared with each other; the keys of larger maps are put into a
/// set.
const FEW: usize = 8;

/// Returns an error for the first map of a batch, at any depth, with a repeated key. `first`: number of the
/// batch's first row.
pub fn check_unique(batch: &RecordBatch, first: u64) -> Result<()> {
    let schema = batch.schema_ref();
    for (field, column) in
        schema.fields().iter().zip(batch.columns()).filter(|(field, _)| has_map(field.data_type()))
    {
        for row in 0..if any_twice(column)? { column.len() } else { 0 } {
            if let Some(key) = twice(&column.slice(row, 1))? {
                let error = Error::new(
                    Kind::SchemaMismatch,
                    format!("row {}: a key of a map comes twice", first + row as u64),
                );
                return Err(error
                    .at(format!("column {}", field.name()))
                    .found(key)
                    .expected("each key once (DUPLICATED_MAP_KEY)"));
            }
        }
    }
    Ok(())
}

fn has_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(_, _) => true,
        DataType::List(item) => has_map(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_map(field.data_type())),
        _ => false,
    }
}

fn any_twice(column: &ArrayRef) -> Result<bool> {
    Ok(twice(column)?.is_some())
}

/// Returns the first key that a map in these values has twice, at any depth.
fn twice(values: &ArrayRef) -> Result<Option<String>> {
    match values.data_type() {
        DataType::Map(_, _) => {
            let map = values.as_map();
            let from = usize::try_from(map.value_offsets()[0]).unwrap_or(0);
            let to = usize::try_from(map.value_offsets()[map.len()]).unwrap_or(from);
            match twice_in(map)? {
                None if has_map(map.values().data_type()) => twice(&map.values().slice(from, to - from)),
                found => Ok(found),
            }
        }
        DataType::List(_) => {
            let list = values.as_list::<i32>();
            let (from, to) = (list.value_offsets()[0], list.value_offsets()[list.len()]);
            let (from, to) = (usize::try_from(from).unwrap_or(0), usize::try_from(to).unwrap_or(0));
            twice(&list.values().slice(from, to.saturating_sub(from)))
        }
        DataType::Struct(fields) => {
            let whole = values.as_struct();
            let inner = fields.iter().zip(whole.columns()).filter(|(field, _)| has_map(field.data_type()));
            for (_, column) in inner {
                // Values below a null struct do not count.
                let column = if whole.null_count() == 0 {
                    column.clone()
                } else {
                    arrow::compute::filter(column, &is_not_null(values)?)?
                };
                if let Some(key) = twice(&column)? {
                    return Ok(Some(key));
                }
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn twice_in(map: &MapArray) -> Result<Option<String>> {
    let keys = normalise(map.keys());
    let rows = RowConverter::new(vec![SortField::new(keys.data_type().clone())])?
        .convert_columns(std::slice::from_ref(&keys))?;
    let (mut known, offsets) = (HashSet::new(), map.value_offsets());
    for index in (0..map.len()).filter(|index| map.is_valid(*index)) {
        let (from, to) =
            (usize::try_from(offsets[index]).unwrap_or(0), usize::try_from(offsets[index + 1]).unwrap_or(0));
        let found = if to - from <= FEW {
            (from..to).find(|at| (from..*at).any(|other| rows.row(other) == rows.row(*at)))
        } else {
            known.clear();
            (from..to).find(|at| !known.insert(rows.row(*at)))
        };
        if let Some(at) = found {
            let key = interleave(&[map.keys().as_ref()], &[(0, at)])?;
            let shown =
                ArrayFormatter::try_new(key.as_ref(), &FormatOptions::default())?.value(0).to_string();
            return Ok(Some(shown));
        }
    }
    Ok(None)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Builder, Int32Builder, ListArray, MapBuilder, StructArray};
    use arrow::buffer::{NullBuffer, OffsetBuffer};
    use arrow::datatypes::Field;

    use super::*;

    fn map(rows: &[Option<&[f64]>]) -> ArrayRef {
        let mut maps = MapBuilder::new(None, Float64Builder::new(), Int32Builder::new());
        for row in rows {
            for key in row.iter().copied().flatten() {
                maps.keys().append_value(*key);
                maps.values().append_value(1);
            }
            maps.append(row.is_some()).unwrap();
        }
        Arc::new(maps.finish())
    }

    fn error(column: ArrayRef) -> Option<String> {
        check_unique(&RecordBatch::try_from_iter([("m", column)]).unwrap(), 10)
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn keys_of_one_map() {
        let many: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(error(map(&[Some(&[1.0, 2.0]), None, Some(&[1.0]), Some(&[]), Some(&many)])), None);
        assert!(
            error(map(&[Some(&[1.0]), Some(&[2.0, 1.0, 2.0])]))
                .unwrap()
                .contains("row 11: a key of a map comes twice")
        );
        assert!(error(map(&[Some(&[0.0, -0.0])])).is_some());
        assert!(error(map(&[Some(&[f64::NAN, -f64::NAN])])).is_some());
        let twice: Vec<f64> = many.iter().chain(&[7.0]).copied().collect();
        assert!(error(map(&[Some(&twice)])).unwrap().contains("7.0"));
        assert_eq!(error(map(&[Some(&twice), Some(&[1.0])]).slice(1, 1)), None);
    }

    #[test]
    fn maps_in_lists_and_structs() {
        let inner = map(&[Some(&[1.0]), Some(&[2.0, 2.0])]);
        let field = |array: &ArrayRef| Arc::new(Field::new("x", array.data_type().clone(), true));
        let list = |ends| {
            Arc::new(ListArray::new(field(&inner), OffsetBuffer::new(ends), inner.clone(), None)) as ArrayRef
        };
        assert!(error(list(vec![0, 2].into())).is_some());
        assert_eq!(error(list(vec![0, 1].into())), None);
        let of = |nulls| {
            Arc::new(StructArray::new(vec![field(&inner)].into(), vec![inner.clone()], nulls)) as ArrayRef
        };
        assert!(error(of(None)).unwrap().contains("row 11"));
        assert_eq!(error(of(Some(NullBuffer::from(vec![true, false])))), None);
    }
}
