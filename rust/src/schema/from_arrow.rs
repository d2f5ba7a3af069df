//! Returns the Delta type that holds every value of an Arrow type. Nanoseconds are cut to microseconds.

use arrow::datatypes::{DataType, Field as ArrowField, Schema};
use serde_json::{Map, Value};

use super::types::{Field, Primitive, Type};
use crate::error::{Error, Kind, Result};

/// Metadata keys whose values are JSON and not text.
const JSON_KEYS: [&str; 6] = [
    "delta.columnMapping.id",
    "delta.columnMapping.nested.ids",
    "delta.typeChanges",
    "delta.identity.start",
    "delta.identity.step",
    "delta.identity.highWaterMark",
];

/// Arrow's extension type of a variant.
const VARIANTS: [&str; 2] = ["arrow.parquet.variant", "parquet.variant"];

/// Returns the Delta fields of the columns of an Arrow schema.
pub fn fields_from_arrow(schema: &Schema) -> Result<Vec<Field>> {
    let fields = schema
        .fields()
        .iter()
        .map(|field| field_from_arrow(field, field.name()))
        .collect::<Result<Vec<_>>>()?;
    let mut seen = std::collections::HashSet::new();
    match fields.iter().find(|field| !seen.insert(field.name.to_lowercase())) {
        Some(field) => {
            Err(Error::new(Kind::SchemaMismatch, "two columns have the same name").found(&field.name))
        }
        None => Ok(fields),
    }
}

fn field_from_arrow(field: &ArrowField, place: &str) -> Result<Field> {
    let mut metadata = Map::new();
    for (key, text) in field.metadata() {
        if key.starts_with("PARQUET:") || key.starts_with("ARROW:") {
            continue; // metadata of other formats
        }
        let json = key == "delta.identity.allowExplicitInsert" || JSON_KEYS.contains(&key.as_str());
        let value = if json { serde_json::from_str(text).ok() } else { None };
        metadata.insert(key.clone(), value.unwrap_or_else(|| Value::String(text.clone())));
    }
    let variant = field.extension_type_name().is_some_and(|name| VARIANTS.contains(&name));
    let data_type = if variant { Type::Variant } else { type_from_arrow(field.data_type(), place)? };
    Ok(Field { name: field.name().clone(), data_type, nullable: field.is_nullable(), metadata })
}

/// Returns the Delta type of an Arrow type. `place`: the column, for errors.
pub fn type_from_arrow(data_type: &DataType, place: &str) -> Result<Type> {
    let primitive = match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Primitive::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Primitive::Binary
        }
        DataType::Boolean => Primitive::Boolean,
        DataType::Int8 => Primitive::Byte,
        DataType::Int16 | DataType::UInt8 => Primitive::Short,
        DataType::Int32 | DataType::UInt16 => Primitive::Integer,
        DataType::Int64 | DataType::UInt32 => Primitive::Long,
        DataType::UInt64 => Primitive::Decimal(20, 0),
        DataType::Float16 | DataType::Float32 => Primitive::Float,
        DataType::Float64 => Primitive::Double,
        DataType::Date32 | DataType::Date64 => Primitive::Date,
        DataType::Timestamp(_, Some(_)) => Primitive::Timestamp,
        DataType::Timestamp(_, None) => Primitive::TimestampNtz,
        DataType::Null => Primitive::Void,
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => decimal(*p, *s, data_type, place)?,
        DataType::Dictionary(_, values) => return type_from_arrow(values, place),
        DataType::RunEndEncoded(_, values) => return type_from_arrow(values.data_type(), place),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => {
            let element = type_from_arrow(item.data_type(), &format!("{place}.element"))?;
            return Ok(Type::Array(Box::new(element), item.is_nullable()));
        }
        DataType::Map(entries, _) => return map_from_arrow(entries, place),
        DataType::Struct(fields) => {
            let fields =
                fields.iter().map(|field| field_from_arrow(field, &format!("{place}.{}", field.name())));
            return Ok(Type::Struct(fields.collect::<Result<_>>()?));
        }
        _ => return Err(unsupported(data_type, place)),
    };
    Ok(Type::Primitive(primitive))
}

/// Returns a decimal type. A negative scale becomes zero, with more digits before the point.
fn decimal(precision: u8, scale: i8, data_type: &DataType, place: &str) -> Result<Primitive> {
    let (precision, scale) = if scale < 0 {
        (precision.saturating_add(scale.unsigned_abs()), 0)
    } else {
        (precision.max(scale.unsigned_abs()), scale)
    };
    if precision > 38 { Err(unsupported(data_type, place)) } else { Ok(Primitive::Decimal(precision, scale)) }
}

fn map_from_arrow(entries: &ArrowField, place: &str) -> Result<Type> {
    match entries.data_type() {
        DataType::Struct(fields) if fields.len() == 2 => {
            let key = type_from_arrow(fields[0].data_type(), &format!("{place}.key"))?;
            let value = type_from_arrow(fields[1].data_type(), &format!("{place}.value"))?;
            Ok(Type::Map(Box::new(key), Box::new(value), fields[1].is_nullable()))
        }
        other => Err(unsupported(other, place)),
    }
}

fn unsupported(data_type: &DataType, place: &str) -> Error {
    Error::new(Kind::SchemaMismatch, "Delta has no type for this Arrow type").at(place).found(data_type)
}
