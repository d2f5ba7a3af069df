//! The schema of data files: physical names and field ids in place of logical ones, and no void fields.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::datatypes::{DataType, Field as ArrowField, Fields, Schema};
use serde_json::Value;

use crate::error::{Error, Kind, Result};
use crate::schema::types::{NESTED_IDS, PARQUET_FIELD_ID};
use crate::schema::{ColumnMapping, Field, Primitive, TableSchema, Type};

/// Returns the positions of the table's columns that are in data files: all except those of type null; with
/// `partitions`, partition columns come last.
pub fn data_columns(schema: &TableSchema, partitions: bool) -> Result<Vec<usize>> {
    let fields = schema.fields().iter().enumerate().filter(|(_, field)| !is_void(&field.data_type));
    let (last, mut chosen): (Vec<usize>, Vec<usize>) =
        fields.map(|(index, _)| index).partition(|&index| schema.is_partition(index));
    if chosen.is_empty() {
        return Err(Error::new(
            Kind::SchemaMismatch,
            "the table has no column besides partition columns, so its rows cannot be written",
        ));
    }
    if partitions {
        chosen.extend(last);
    }
    Ok(chosen)
}

fn is_void(data_type: &Type) -> bool {
    match data_type {
        Type::Primitive(primitive) => *primitive == Primitive::Void,
        Type::Struct(_) | Type::Variant | Type::Shape(_) => false,
        Type::Array(element, _) => is_void(element),
        Type::Map(key, value, _) => is_void(key) || is_void(value),
    }
}

/// Returns the Arrow schema of data files.
pub fn file_schema(schema: &TableSchema, columns: &[usize]) -> Result<Schema> {
    let fields =
        columns.iter().map(|&index| field_of(schema, &schema.fields()[index])).collect::<Result<Vec<_>>>()?;
    Ok(Schema::new(fields))
}

fn field_of(schema: &TableSchema, field: &Field) -> Result<ArrowField> {
    let name = schema.physical_name(field);
    let mapped = schema.mapping() != ColumnMapping::None;
    let ids = field.metadata.get(NESTED_IDS).and_then(Value::as_object).filter(|_| mapped);
    let arrow = ArrowField::new(
        name,
        type_of(schema, &field.data_type, &field.name, &Parts { ids, path: name.to_owned() })?,
        field.nullable,
    );
    let own = field.metadata.get(PARQUET_FIELD_ID).and_then(Value::as_i64);
    Ok(numbered(arrow, field.id().map(i64::from).or(own).filter(|_| mapped)))
}

fn numbered(field: ArrowField, id: Option<i64>) -> ArrowField {
    match id {
        None => field,
        Some(id) => field.with_metadata(HashMap::from([("PARQUET:field_id".to_owned(), id.to_string())])),
    }
}

/// Ids of the elements, keys and values below a field, `{"col-1.element": 7}`, if the table has them.
struct Parts<'a> {
    ids: Option<&'a serde_json::Map<String, Value>>,
    path: String,
}

impl<'a> Parts<'a> {
    fn below(&self, part: &str) -> Parts<'a> {
        Parts { ids: self.ids, path: format!("{}.{part}", self.path) }
    }
    fn field(
        &self,
        schema: &TableSchema,
        name: &str,
        data_type: &Type,
        nullable: bool,
        place: &str,
    ) -> Result<Arc<ArrowField>> {
        let part = self.below(name);
        let id = self.ids.and_then(|ids| ids.get(&part.path)).and_then(Value::as_i64);
        Ok(Arc::new(numbered(ArrowField::new(name, type_of(schema, data_type, place, &part)?, nullable), id)))
    }
}

fn type_of(schema: &TableSchema, data_type: &Type, place: &str, parts: &Parts<'_>) -> Result<DataType> {
    Ok(match data_type {
        Type::Primitive(Primitive::Void) => {
            return Err(Error::new(Kind::UnsupportedFeature, "an array or map of void cannot be written")
                .at(format!("column {place}")));
        }
        Type::Primitive(primitive) => primitive.to_arrow(),
        Type::Variant | Type::Shape(_) => data_type.to_arrow(false),
        Type::Struct(fields) => {
            let stored = fields.iter().filter(|field| field.data_type != Type::Primitive(Primitive::Void));
            let stored = stored.map(|field| field_of(schema, field)).collect::<Result<Fields>>()?;
            if stored.is_empty() {
                let message = if fields.is_empty() {
                    "a struct without fields cannot be written"
                } else {
                    "a struct that has only void fields cannot be written"
                };
                return Err(Error::new(Kind::UnsupportedFeature, message).at(format!("column {place}")));
            }
            DataType::Struct(stored)
        }
        Type::Array(element, contains_null) => {
            DataType::List(parts.field(schema, "element", element, *contains_null, place)?)
        }
        Type::Map(key, value, contains_null) => {
            let key = parts.field(schema, "key", key, false, place)?;
            let entries =
                Fields::from(vec![key, parts.field(schema, "value", value, *contains_null, place)?]);
            DataType::Map(Arc::new(ArrowField::new("key_value", DataType::Struct(entries), false)), false)
        }
    })
}

/// Returns the array with the names of `target`, and without the void fields of structs, which have no column
/// in a Parquet file: `{a: 1, b: null}` becomes `{a: 1}`.
pub fn relabel(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    match target {
        DataType::Struct(fields) => {
            let found = array.as_struct();
            let children = found
                .columns()
                .iter()
                .filter(|child| child.data_type() != &DataType::Null)
                .zip(fields)
                .map(|(child, field)| relabel(child, field.data_type()))
                .collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StructArray::try_new(fields.clone(), children, found.nulls().cloned())?))
        }
        DataType::List(field) => {
            let found = array.as_list::<i32>();
            let values = relabel(found.values(), field.data_type())?;
            Ok(Arc::new(ListArray::try_new(
                Arc::clone(field),
                found.offsets().clone(),
                values,
                found.nulls().cloned(),
            )?))
        }
        DataType::Map(field, sorted) => {
            let found = array.as_map();
            let entries: ArrayRef = Arc::new(found.entries().clone());
            let entries = relabel(&entries, field.data_type())?.as_struct().clone();
            Ok(Arc::new(MapArray::try_new(
                Arc::clone(field),
                found.offsets().clone(),
                entries,
                found.nulls().cloned(),
                *sorted,
            )?))
        }
        other => Err(Error::new(Kind::SchemaMismatch, "a column has another type than the table's")
            .found(array.data_type())
            .expected(other)),
    }
}
