//! Returns the Arrow type of each Delta type. The children of lists and maps have the names of Arrow's
//! specification.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField, Fields, Schema, TimeUnit};
use serde_json::Value;

use super::types::{Field, Primitive, Type, UNMAPPED};

/// The zone of every `timestamp`.
pub const UTC: &str = "UTC";

impl Primitive {
    /// Returns the type's Arrow type.
    pub fn to_arrow(&self) -> DataType {
        match self {
            Self::String => DataType::Utf8,
            Self::Long => DataType::Int64,
            Self::Integer => DataType::Int32,
            Self::Short => DataType::Int16,
            Self::Byte => DataType::Int8,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale),
            Self::Boolean => DataType::Boolean,
            Self::Binary => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            Self::TimestampNtz => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Void => DataType::Null,
        }
    }
}

impl Type {
    /// Returns the type's Arrow type. With `with_metadata`, the fields in it carry their Delta metadata.
    pub fn to_arrow(&self, with_metadata: bool) -> DataType {
        match self {
            Self::Primitive(primitive) => primitive.to_arrow(),
            Self::Struct(fields) => {
                DataType::Struct(fields.iter().map(|field| field.to_arrow(with_metadata)).collect())
            }
            Self::Array(element, contains_null) => list_of(element.to_arrow(with_metadata), *contains_null),
            Self::Map(key, value, contains_null) => {
                map_of(key.to_arrow(with_metadata), value.to_arrow(with_metadata), *contains_null)
            }
            Self::Shape(_) => DataType::Binary,
            Self::Variant => {
                DataType::Struct(Self::variant_fields().iter().map(|field| field.to_arrow(false)).collect())
            }
        }
    }
}

/// Returns the type of a list, with the specification's name for its child.
pub fn list_of(element: DataType, contains_null: bool) -> DataType {
    DataType::List(Arc::new(ArrowField::new("element", element, contains_null)))
}

/// Returns the type of a map, with the specification's names for its children.
pub fn map_of(key: DataType, value: DataType, contains_null: bool) -> DataType {
    let entries = Fields::from(vec![
        ArrowField::new("key", key, false),
        ArrowField::new("value", value, contains_null),
    ]);
    DataType::Map(Arc::new(ArrowField::new("key_value", DataType::Struct(entries), false)), false)
}

impl Field {
    /// Returns the field in Arrow's form; with `with_metadata`, it has its Delta metadata as text.
    pub fn to_arrow(&self, with_metadata: bool) -> ArrowField {
        let field = ArrowField::new(&self.name, self.data_type.to_arrow(with_metadata), self.nullable);
        if !with_metadata || self.metadata.is_empty() {
            return field;
        }
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let shown = self.metadata.iter().filter(|(key, _)| *key != UNMAPPED);
        field.with_metadata(shown.map(|(key, value)| (key.clone(), text(value))).collect::<HashMap<_, _>>())
    }
}

/// Returns the Arrow schema of these columns.
pub fn schema_of(fields: &[Field], with_metadata: bool) -> Schema {
    Schema::new(fields.iter().map(|field| field.to_arrow(with_metadata)).collect::<Vec<_>>())
}
