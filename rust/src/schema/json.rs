//! Converts between types and their JSON.

use serde_json::{Map, Value, json};

use super::types::{Field, Primitive, Shape, Type, UNMAPPED};
use crate::error::{Error, Kind, Result};

/// Parses the JSON of a struct, and returns its fields.
pub fn parse_struct(text: &str) -> Result<Vec<Field>> {
    let value: Value = serde_json::from_str(text).map_err(|e| {
        Error::protocol("the schema is no JSON")
            .at("schemaString")
            .found(excerpt(text))
            .expected("JSON")
            .caused_by(e)
    })?;
    match parse_type(&value, "schema")? {
        Type::Struct(fields) => Ok(fields),
        _ => Err(Error::protocol("the schema is no struct")
            .at("schemaString")
            .found(excerpt(text))
            .expected("{\"type\":\"struct\",\"fields\":[...]}")),
    }
}

/// Parses a type. `place`: the column, for errors.
pub fn parse_type(value: &Value, place: &str) -> Result<Type> {
    match value {
        Value::String(name) if name == "variant" => Ok(Type::Variant),
        Value::String(name) => match Shape::parse(name) {
            Some(shape) => Ok(Type::Shape(shape)),
            None => Ok(Type::Primitive(parse_primitive(name, place)?)),
        },
        Value::Object(object) => parse_nested(object, place),
        other => Err(Error::protocol("a type is neither a name nor an object")
            .at(place)
            .found(excerpt(&other.to_string()))),
    }
}

fn parse_nested(object: &Map<String, Value>, place: &str) -> Result<Type> {
    let inner = |key: &str| -> Result<Type> {
        let value =
            object.get(key).ok_or_else(|| Error::protocol(format!("the type has no \"{key}\"")).at(place))?;
        parse_type(value, &format!("{place}.{}", key.trim_end_matches("Type")))
    };
    let flag = |key: &str| object.get(key).and_then(Value::as_bool).unwrap_or(true);
    match object.get("type").and_then(Value::as_str) {
        Some("struct") => {
            let fields = object.get("fields").and_then(Value::as_array);
            let fields = fields.ok_or_else(|| Error::protocol("a struct has no \"fields\"").at(place))?;
            let fields = fields.iter().map(|field| parse_field(field, place)).collect::<Result<Vec<_>>>()?;
            no_name_twice(&fields, place)?;
            Ok(Type::Struct(fields))
        }
        Some("array") => Ok(Type::Array(Box::new(inner("elementType")?), flag("containsNull"))),
        Some("map") => Ok(Type::Map(
            Box::new(inner("keyType")?),
            Box::new(inner("valueType")?),
            flag("valueContainsNull"),
        )),
        Some("variant") => Ok(Type::Variant), // as PROTOCOL.md's section on variants writes it
        Some("udt") => Ok(unmapped(inner("sqlType")?)), // Spark's user-defined types are stored as `sqlType`
        Some(name) => Err(unknown(name, place)),
        None => Err(Error::protocol("a type has no \"type\"").at(place)),
    }
}

/// Marks the fields within a user-defined type, to which Spark gives no column mapping.
fn unmapped(data_type: Type) -> Type {
    match data_type {
        Type::Struct(mut fields) => {
            for field in &mut fields {
                field.metadata.insert(UNMAPPED.to_owned(), Value::Bool(true));
                field.data_type = unmapped(field.data_type.clone());
            }
            Type::Struct(fields)
        }
        Type::Array(element, nulls) => Type::Array(Box::new(unmapped(*element)), nulls),
        Type::Map(key, value, nulls) => {
            Type::Map(Box::new(unmapped(*key)), Box::new(unmapped(*value)), nulls)
        }
        other => other,
    }
}

fn parse_field(value: &Value, place: &str) -> Result<Field> {
    let name = value
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| Error::protocol("a field has no \"name\"").at(place))?;
    let place = if place == "schema" { name.to_owned() } else { format!("{place}.{name}") };
    let data_type =
        value.get("type").ok_or_else(|| Error::protocol("a field has no \"type\"").at(place.as_str()))?;
    Ok(Field {
        name: name.to_owned(),
        data_type: parse_type(data_type, &place)?,
        nullable: value.get("nullable").and_then(Value::as_bool).unwrap_or(true),
        metadata: value.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default(),
    })
}

/// Checks that no two names are equal in any case, as names are compared so everywhere.
fn no_name_twice(fields: &[Field], place: &str) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    match fields.iter().find(|field| !seen.insert(field.name.to_lowercase())) {
        Some(field) => Err(Error::protocol("two fields have the same name").at(place).found(&field.name)),
        None => Ok(()),
    }
}

fn parse_primitive(name: &str, place: &str) -> Result<Primitive> {
    Ok(match name {
        "string" => Primitive::String,
        "long" => Primitive::Long,
        "integer" => Primitive::Integer,
        "short" => Primitive::Short,
        "byte" => Primitive::Byte,
        "float" => Primitive::Float,
        "double" => Primitive::Double,
        "boolean" => Primitive::Boolean,
        "binary" => Primitive::Binary,
        "date" => Primitive::Date,
        "timestamp" => Primitive::Timestamp,
        "timestamp_ntz" => Primitive::TimestampNtz,
        "void" | "null" => Primitive::Void,
        "decimal" => Primitive::Decimal(10, 0), // Spark's default
        _ => {
            // String types with a length or a collation are plain strings to a reader.
            if ["char(", "varchar(", "string collate "].iter().any(|prefix| name.starts_with(prefix)) {
                return Ok(Primitive::String);
            }
            let (precision, scale) = parse_decimal(name).ok_or_else(|| unknown(name, place))?;
            if !(1..=38).contains(&precision) || !(0..=precision).contains(&scale) {
                return Err(Error::protocol("a decimal's precision or scale is out of range")
                    .at(place)
                    .found(name)
                    .expected("precision 1 to 38, scale 0 to precision"));
            }
            Primitive::Decimal(precision as u8, scale as i8)
        }
    })
}

fn parse_decimal(name: &str) -> Option<(i64, i64)> {
    let inside = name.strip_prefix("decimal(")?.strip_suffix(')')?;
    let (precision, scale) = inside.split_once(',')?;
    Some((precision.trim().parse().ok()?, scale.trim().parse().ok()?))
}

fn unknown(name: &str, place: &str) -> Error {
    Error::new(Kind::UnsupportedFeature, format!("the type \"{name}\" is not supported")).at(place)
}

fn excerpt(text: &str) -> String {
    text.chars().take(120).collect()
}

impl Primitive {
    /// Returns Delta's name of the type.
    pub fn name(&self) -> String {
        match self {
            Self::String => "string",
            Self::Long => "long",
            Self::Integer => "integer",
            Self::Short => "short",
            Self::Byte => "byte",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal(precision, scale) => return format!("decimal({precision},{scale})"),
            Self::Boolean => "boolean",
            Self::Binary => "binary",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::TimestampNtz => "timestamp_ntz",
            Self::Void => "void",
        }
        .to_owned()
    }
}

impl Type {
    /// Returns the type's JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Primitive(primitive) => Value::String(primitive.name()),
            Self::Variant => Value::String("variant".to_owned()),
            Self::Shape(shape) => Value::String(shape.name()),
            Self::Struct(fields) => struct_json(fields),
            Self::Array(element, contains_null) => {
                json!({"type": "array", "elementType": element.to_json(), "containsNull": contains_null})
            }
            Self::Map(key, value, contains_null) => {
                json!({"type": "map", "keyType": key.to_json(), "valueType": value.to_json(),
                    "valueContainsNull": contains_null})
            }
        }
    }
}

/// Returns fields as the JSON of a struct.
pub fn struct_json(fields: &[Field]) -> Value {
    let fields: Vec<Value> = fields
        .iter()
        .map(|field| {
            json!({"name": field.name, "type": field.data_type.to_json(), "nullable": field.nullable,
                "metadata": field.metadata})
        })
        .collect();
    json!({"type": "struct", "fields": fields})
}
