//! Converts between the `deletionVector` column of tables of actions and descriptors.

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, StringArray, StructArray, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use std::ops::Range;
use std::sync::Arc;

use super::Descriptor;
use super::descriptor::StorageType;
use crate::error::{Error, Kind, Result};
use crate::log::schema::{conform_column, vector_fields};

/// Returns the descriptor of each row, or `None` for a file without a vector.
///
/// # Errors
/// The column is not a struct, a field has another type, or a required field is null.
pub fn read(column: &dyn Array) -> Result<Vec<Option<Descriptor>>> {
    let column = Descriptors::of(column)?;
    column.rows().map(|row| column.get(row)).collect()
}

/// Returns a column of these descriptors, with the types of tables of actions.
pub fn write(descriptors: &[Option<Descriptor>]) -> Result<StructArray> {
    let each = || descriptors.iter().map(Option::as_ref);
    let columns: Vec<Arc<dyn Array>> = vec![
        Arc::new(StringArray::from_iter(
            each().map(|vector| vector.map(|vector| vector.storage_type.letter())),
        )),
        Arc::new(StringArray::from_iter(each().map(|vector| vector.map(|vector| &vector.path_or_inline)))),
        Arc::new(Int32Array::from_iter(each().map(|vector| vector.and_then(|vector| vector.offset)))),
        Arc::new(Int32Array::from_iter(each().map(|vector| vector.map(|vector| vector.size_in_bytes)))),
        Arc::new(Int64Array::from_iter(each().map(|vector| vector.map(|vector| vector.cardinality)))),
    ];
    let nulls = NullBuffer::from_iter(descriptors.iter().map(Option::is_some));
    Ok(StructArray::try_new_with_length(vector_fields(), columns, Some(nulls), descriptors.len())?)
}

/// The column with its fields resolved. Rows are read one by one when needed.
#[derive(Debug, Clone)]
pub struct Descriptors {
    column: ArrayRef,
    fields: Option<Fields>,
}

#[derive(Debug, Clone)]
struct Fields {
    storage_type: StringArray,
    path: StringArray,
    offset: Int32Array,
    size: Int32Array,
    cardinality: Int64Array,
}

impl Descriptors {
    /// Resolves the fields by name, in the types of tables of actions. A column of type null has no vectors.
    ///
    /// # Errors
    /// The column is not a struct, or a field has a type that does not fit.
    pub fn of(column: &dyn Array) -> Result<Self> {
        let column = make_array(column.to_data());
        if column.data_type().is_null() {
            return Ok(Self { column, fields: None });
        }
        let column = conform_column(&column, &DataType::Struct(vector_fields()), "deletionVector")?;
        let wrong =
            || Error::new(Kind::InvalidArgument, "deletionVector is no descriptor").found(column.data_type());
        let Some([storage_type, path, offset, size, cardinality]) =
            column.as_struct_opt().map(StructArray::columns)
        else {
            return Err(wrong());
        };
        let fields = Fields {
            storage_type: storage_type.as_string_opt::<i32>().ok_or_else(wrong)?.clone(),
            path: path.as_string_opt::<i32>().ok_or_else(wrong)?.clone(),
            offset: offset.as_primitive_opt::<Int32Type>().ok_or_else(wrong)?.clone(),
            size: size.as_primitive_opt::<Int32Type>().ok_or_else(wrong)?.clone(),
            cardinality: cardinality.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?.clone(),
        };
        Ok(Self { column, fields: Some(fields) })
    }

    /// Returns the range of all rows.
    pub fn rows(&self) -> Range<usize> {
        0..self.column.len()
    }

    /// Returns the descriptor of one row, or `None` if the file has no vector.
    ///
    /// # Errors
    /// A required field is null, or the storage type is unknown.
    pub fn get(&self, row: usize) -> Result<Option<Descriptor>> {
        let Some(fields) = self
            .fields
            .as_ref()
            .filter(|fields| self.column.is_valid(row) && fields.storage_type.is_valid(row))
        else {
            return Ok(None);
        };
        let required: [(&str, &dyn Array); 3] = [
            ("pathOrInlineDv", &fields.path),
            ("sizeInBytes", &fields.size),
            ("cardinality", &fields.cardinality),
        ];
        if let Some((name, _)) = required.iter().find(|(_, field)| field.is_null(row)) {
            return Err(Error::protocol("deletion vector lacks a field").expected(name));
        }
        Ok(Some(Descriptor {
            storage_type: StorageType::parse(fields.storage_type.value(row))?,
            path_or_inline: fields.path.value(row).to_owned(),
            offset: fields.offset.is_valid(row).then(|| fields.offset.value(row)),
            size_in_bytes: fields.size.value(row),
            cardinality: fields.cardinality.value(row),
        }))
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
