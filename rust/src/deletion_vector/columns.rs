//! The `deletionVector` column of action tables <-> descriptors.

use arrow::array::{Array, AsArray, Int32Array, Int64Array, StringArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use std::sync::Arc;

use super::Descriptor;
use super::descriptor::StorageType;
use crate::error::{Error, Kind, Result};
use crate::log::schema::{conform_column, vector_fields};

/// A descriptor for each row; none where the file has no vector.
///
/// # Errors
/// The column is no struct, a field has another type, or a required one is null.
pub fn read(column: &dyn Array) -> Result<Vec<Option<Descriptor>>> {
    if column.data_type().is_null() {
        return Ok(vec![None; column.len()]);
    }
    let column = arrow::array::make_array(column.to_data());
    let column = conform_column(&column, &DataType::Struct(vector_fields()), "deletionVector")?;
    let column = column.as_struct_opt().ok_or_else(|| Error::new(Kind::InvalidArgument, "deletionVector is no struct"))?;
    let fields = Fields::of(column)?;
    (0..column.len())
        .map(|row| if column.is_null(row) || fields.storage_type.is_null(row) { Ok(None) } else { fields.get(row).map(Some) })
        .collect()
}

/// The column for these descriptors, in the types of the log's tables.
pub fn write(descriptors: &[Option<Descriptor>]) -> Result<StructArray> {
    let each = || descriptors.iter().map(Option::as_ref);
    let columns: Vec<Arc<dyn Array>> = vec![
        Arc::new(StringArray::from_iter(each().map(|vector| vector.map(|vector| vector.storage_type.letter())))),
        Arc::new(StringArray::from_iter(each().map(|vector| vector.map(|vector| &vector.path_or_inline)))),
        Arc::new(Int32Array::from_iter(each().map(|vector| vector.and_then(|vector| vector.offset)))),
        Arc::new(Int32Array::from_iter(each().map(|vector| vector.map(|vector| vector.size_in_bytes)))),
        Arc::new(Int64Array::from_iter(each().map(|vector| vector.map(|vector| vector.cardinality)))),
    ];
    let nulls = NullBuffer::from_iter(descriptors.iter().map(Option::is_some));
    Ok(StructArray::try_new_with_length(vector_fields(), columns, Some(nulls), descriptors.len())?)
}

struct Fields<'a> {
    storage_type: &'a StringArray,
    path: &'a StringArray,
    offset: &'a Int32Array,
    size: &'a Int32Array,
    cardinality: &'a Int64Array,
}

impl<'a> Fields<'a> {
    fn of(column: &'a StructArray) -> Result<Self> {
        let [storage_type, path, offset, size, cardinality] = column.columns() else {
            return Err(Error::new(Kind::InvalidArgument, "deletionVector has other fields").found(column.num_columns()));
        };
        Ok(Self {
            storage_type: storage_type.as_string(),
            path: path.as_string(),
            offset: offset.as_primitive::<Int32Type>(),
            size: size.as_primitive::<Int32Type>(),
            cardinality: cardinality.as_primitive::<Int64Type>(),
        })
    }

    fn get(&self, row: usize) -> Result<Descriptor> {
        for (name, field) in [("pathOrInlineDv", self.path as &dyn Array), ("sizeInBytes", self.size), ("cardinality", self.cardinality)] {
            if field.is_null(row) {
                return Err(Error::protocol("deletion vector lacks a field").expected(name));
            }
        }
        Ok(Descriptor {
            storage_type: StorageType::parse(self.storage_type.value(row))?,
            path_or_inline: self.path.value(row).to_owned(),
            offset: self.offset.is_valid(row).then(|| self.offset.value(row)),
            size_in_bytes: self.size.value(row),
            cardinality: self.cardinality.value(row),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::deletion_vector::DeletionVector;

    #[test]
    fn round_trip() {
        let inline = Descriptor::inline(&DeletionVector::from_rows(vec![1, 2]).unwrap()).unwrap();
        let file = Descriptor::in_file("ab", uuid::Uuid::from_u128(7), (1, 34), 2);
        let vectors = vec![None, Some(inline), Some(file), None];
        assert_eq!(read(&write(&vectors).unwrap()).unwrap(), vectors);
        assert_eq!(read(&write(&[]).unwrap()).unwrap(), []);
        assert_eq!(read(&arrow::array::NullArray::new(2)).unwrap(), [None, None]);
    }

    #[test]
    fn rejects_what_lacks_a_field() {
        let whole = write(&[Some(Descriptor::in_file("", uuid::Uuid::from_u128(7), (1, 34), 2))]).unwrap();
        let (fields, mut columns, nulls) = whole.into_parts();
        *columns.last_mut().unwrap() = Arc::new(Int64Array::new_null(1));
        let error = read(&StructArray::new(fields, columns, nulls)).unwrap_err();
        assert_eq!(error.to_string(), "deletion vector lacks a field; expected cardinality");
    }
}
