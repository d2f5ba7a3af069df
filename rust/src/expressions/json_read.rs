//! `from_json`, `schema_of_json`: parses JSON text by a schema, and finds the schema of a text, as Spark's
//! `JacksonParser` does in PERMISSIVE mode.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder};

use super::arguments::Arguments;
use super::failure;
use super::json::{Json, push_quoted};
use crate::error::Result;

/// A type of `from_json` and `from_csv`.
pub(super) enum Type {
    Text,
    Boolean,
    /// Whole numbers with this number of bits.
    Whole(u32),
    Float,
    Double,
    /// Numbers, and texts of numbers; returned as text, which DuckDB casts.
    Decimal,
    /// Text, which DuckDB casts.
    Date,
    LocalTimestamp,
    /// Text, which DuckDB casts, or whole seconds since 1970.
    Timestamp,
    Array(Box<Type>),
    Map(Box<Type>),
    Struct(Vec<(String, Type)>),
}

impl Type {
    /// Parses a type in Delta's JSON: `"long"`, `{"type": "array", ...}`.
    pub(super) fn of(json: &Json) -> Option<Self> {
        match json {
            Json::Text(name) => Some(match name.as_ref() {
                "string" => Self::Text,
                "boolean" => Self::Boolean,
                "byte" => Self::Whole(8),
                "short" => Self::Whole(16),
                "integer" => Self::Whole(32),
                "long" => Self::Whole(64),
                "float" => Self::Float,
                "double" => Self::Double,
                "date" => Self::Date,
                "timestamp" => Self::Timestamp,
                "timestamp_ntz" => Self::LocalTimestamp,
                name if name.starts_with("decimal(") => Self::Decimal,
                _ => return None,
            }),
            Json::Object(_) if text(json, "type") == Some("map") => {
                (text(json, "keyType") == Some("string")).then_some(())?;
                Some(Self::Map(Box::new(Self::of(field(json, "valueType")?)?)))
            }
            Json::Object(_) if text(json, "type") == Some("array") => {
                Some(Self::Array(Box::new(Self::of(field(json, "elementType")?)?)))
            }
            Json::Object(_) if text(json, "type") == Some("struct") => {
                let Json::Array(fields) = field(json, "fields")? else { return None };
                let typed =
                    |one: &Json| Some((text(one, "name")?.to_owned(), Self::of(field(one, "type")?)?));
                fields.iter().map(typed).collect::<Option<Vec<_>>>().map(Self::Struct)
            }
            _ => None,
        }
    }
}

fn field<'a, 'b>(json: &'b Json<'a>, name: &str) -> Option<&'b Json<'a>> {
    let Json::Object(fields) = json else { return None };
    fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
}

/// Returns the text of a member of an object.
pub(super) fn text<'b>(json: &'b Json, name: &str) -> Option<&'b str> {
    match field(json, name)? {
        Json::Text(text) => Some(text),
        _ => None,
    }
}

/// Evaluates `from_json(text, schema)`: JSON text with just the fields of the schema, each value of its type
/// or null, which DuckDB casts to the type. Text that is malformed, or of another type, gives an object of
/// nulls if the schema is a struct, else null. Empty text gives null.
pub fn from_json(given: &Arguments) -> Result<ArrayRef> {
    let (texts, schemas) = (given.text(0)?, given.text(1)?);
    let mut out = StringBuilder::with_capacity(given.rows(), texts.value_data().len());
    if given.rows() == 0 {
        return Ok(Arc::new(out.finish()));
    }
    let schema = Json::parse(schemas.value(0)).as_ref().and_then(Type::of);
    let schema = schema
        .ok_or_else(|| failure("UNSUPPORTED_JSON", format!("from_json of the type {}", schemas.value(0))))?;
    let mut buffer = String::new();
    for value in &texts {
        let Some(value) = value.filter(|value| !value.trim_matches([' ', '\t', '\n', '\r']).is_empty())
        else {
            out.append_null();
            continue;
        };
        buffer.clear();
        let parsed = Json::parse(value);
        match (&schema, &parsed) {
            (Type::Struct(_) | Type::Map(_), Some(Json::Object(_)))
            | (Type::Array(_), Some(Json::Array(_))) => {
                if !push(parsed.as_ref().unwrap_or(&Json::Null), &schema, &mut buffer) {
                    out.append_null();
                    continue;
                }
            }
            (Type::Struct(_), Some(Json::Array(items)))
                if items.iter().all(|item| matches!(item, Json::Object(_))) =>
            {
                return Err(failure("UNSUPPORTED_JSON", "from_json of an array as a struct"));
            }
            (Type::Array(item), Some(Json::Object(_))) if matches!(**item, Type::Struct(_)) => {
                return Err(failure("UNSUPPORTED_JSON", "from_json of an object as an array"));
            }
            (Type::Struct(_), _) => {
                push(&Json::Object(Vec::new()), &schema, &mut buffer);
            }
            _ => {
                out.append_null();
                continue;
            }
        }
        out.append_value(&buffer);
    }
    Ok(Arc::new(out.finish()))
}

/// Appends a value as JSON of a type. Returns false for a value of another type; the struct's field that
/// contains it, at any depth of arrays and maps, becomes null then.
fn push(value: &Json, kind: &Type, out: &mut String) -> bool {
    match (kind, value) {
        (_, Json::Null) => out.push_str("null"),
        (Type::Array(item), Json::Array(items)) => {
            out.push('[');
            for (number, value) in items.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                if !push(value, item, out) {
                    return false;
                }
            }
            out.push(']');
        }
        (Type::Map(kind), Json::Object(values)) => {
            out.push('{');
            for (number, (name, value)) in values.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                push_quoted(name, out);
                out.push(':');
                if !push(value, kind, out) {
                    return false;
                }
            }
            out.push('}');
        }
        (Type::Struct(fields), Json::Object(values)) => {
            out.push('{');
            for (number, (name, kind)) in fields.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                push_quoted(name, out);
                out.push(':');
                let found = values
                    .iter()
                    .rev()
                    .find(|(field, _)| field == name)
                    .map_or(&Json::Null, |(_, value)| value);
                let length = out.len();
                if !push(found, kind, out) {
                    out.truncate(length);
                    out.push_str("null");
                }
            }
            out.push('}');
        }
        _ => return push_primitive(value, kind, out),
    }
    true
}

fn push_primitive(value: &Json, kind: &Type, out: &mut String) -> bool {
    match (kind, value) {
        (Type::Text, Json::Text(text)) => push_quoted(text, out),
        (Type::Text, other) => {
            let mut shown = String::new();
            other.push(&mut shown);
            push_quoted(&shown, out);
        }
        (Type::Boolean, Json::Bool(_)) => value.push(out),
        (Type::Whole(bits), Json::Number(digits)) => match digits.parse::<i64>() {
            Ok(number) if number >> (bits - 1) == 0 || number >> (bits - 1) == -1 => {
                out.push_str(&number.to_string())
            }
            _ => return false,
        },
        (Type::Float, Json::Number(digits)) => {
            let Ok(number) = digits.parse::<f64>() else { return false };
            push_number(f64::from(number as f32), &format!("{:e}", number as f32), out);
        }
        (Type::Double, Json::Number(digits)) => {
            let Ok(number) = digits.parse::<f64>() else { return false };
            push_number(number, &format!("{number:e}"), out);
        }
        (Type::Double | Type::Float, Json::Text(text))
            if matches!(text.as_ref(), "NaN" | "Infinity" | "-Infinity" | "+INF" | "INF" | "-INF") =>
        {
            push_quoted(&text.trim_start_matches('+').replace("INF", "Infinity"), out);
        }
        (Type::Decimal, Json::Number(digits)) => push_quoted(digits, out),
        (Type::Decimal, Json::Text(text)) if text.bytes().all(|byte| byte > b' ') => push_quoted(text, out),
        (Type::Date | Type::Timestamp | Type::LocalTimestamp, Json::Text(text)) => push_quoted(text, out),
        (Type::Timestamp, Json::Number(digits)) => {
            match digits.parse().ok().and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0)) {
                Some(moment) => push_quoted(&moment.format("%Y-%m-%dT%H:%M:%SZ").to_string(), out),
                None => return false,
            }
        }
        _ => return false,
    }
    true
}

/// Appends a number as `shown`. A number that is too large is infinite.
pub(super) fn push_number(number: f64, shown: &str, out: &mut String) {
    out.push_str(if number.is_finite() {
        shown
    } else if number > 0.0 {
        "\"Infinity\""
    } else {
        "\"-Infinity\""
    });
}

/// A type in the result of `schema_of_json`.
#[derive(Debug, Clone, PartialEq)]
enum JsonType {
    Nothing,
    Boolean,
    Whole,
    /// A whole number of more than 64 bits: a decimal with this number of digits.
    Digits(usize),
    Double,
    Text,
    Array(Box<JsonType>),
    Struct(BTreeMap<String, JsonType>),
}

impl JsonType {
    fn of(json: &Json) -> Self {
        match json {
            Json::Null => Self::Nothing,
            Json::Bool(_) => Self::Boolean,
            Json::Number(digits) if digits.contains(['.', 'e', 'E']) => Self::Double,
            Json::Number(digits) if digits.parse::<i64>().is_ok() => Self::Whole,
            Json::Number(digits) => match digits.trim_start_matches('-').len() {
                digits @ ..=38 => Self::Digits(digits),
                _ => Self::Double,
            },
            Json::Text(_) => Self::Text,
            Json::Array(items) => {
                Self::Array(Box::new(items.iter().map(Self::of).fold(Self::Nothing, Self::with)))
            }
            Json::Object(fields) => {
                Self::Struct(fields.iter().map(|(name, value)| (name.to_string(), Self::of(value))).collect())
            }
        }
    }

    /// Returns a type that holds the values of both types, which is text if they have nothing in common.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, one) | (one, Self::Nothing) => one,
            (one, same) if one == same => one,
            (Self::Whole, Self::Double) | (Self::Double, Self::Whole) => Self::Double,
            (Self::Array(one), Self::Array(other)) => Self::Array(Box::new(one.with(*other))),
            (Self::Struct(mut one), Self::Struct(other)) => {
                for (name, kind) in other {
                    let merged = one.remove(&name).map_or(kind.clone(), |mine| mine.with(kind));
                    one.insert(name, merged);
                }
                Self::Struct(one)
            }
            _ => Self::Text,
        }
    }

    fn push(&self, out: &mut String) {
        match self {
            Self::Nothing | Self::Text => out.push_str("STRING"),
            Self::Boolean => out.push_str("BOOLEAN"),
            Self::Whole => out.push_str("BIGINT"),
            Self::Digits(digits) => out.push_str(&format!("DECIMAL({digits},0)")),
            Self::Double => out.push_str("DOUBLE"),
            Self::Array(item) => {
                out.push_str("ARRAY<");
                item.push(out);
                out.push('>');
            }
            Self::Struct(fields) => {
                out.push_str("STRUCT<");
                for (number, (name, kind)) in fields.iter().enumerate() {
                    if number > 0 {
                        out.push_str(", ");
                    }
                    let plain =
                        name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.is_empty();
                    if plain {
                        out.push_str(name)
                    } else {
                        out.push_str(&format!("`{}`", name.replace('`', "``")))
                    }
                    out.push_str(": ");
                    kind.push(out);
                }
                out.push('>');
            }
        }
    }
}

/// Evaluates `schema_of_json(text)`: the schema as DDL; null for text that is not JSON.
pub fn schema_of_json(given: &Arguments) -> Result<ArrayRef> {
    let texts = given.text(0)?;
    let mut out = StringBuilder::new();
    for value in &texts {
        out.append_option(value.and_then(Json::parse).map(|json| {
            let mut shown = String::new();
            JsonType::of(&json).push(&mut shown);
            shown
        }));
    }
    Ok(Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_a_schema() {
        let schema = concat!(
            r#"{"type":"struct","fields":[{"name":"a","type":"byte"},"#,
            r#"{"name":"b","type":{"type":"array","elementType":"string"}}]}"#,
        );
        let kind = Type::of(&Json::parse(schema).unwrap()).unwrap();
        for (text, expected) in [
            (
                r#"{"a":127,"b":["x",1,null,{"c":1.50}],"z":0}"#,
                r#"{"a":127,"b":["x","1",null,"{\"c\":1.5}"]}"#,
            ),
            (r#"{"a":128,"b":"x"}"#, r#"{"a":null,"b":null}"#),
            (r#"{"a":1,"a":-128}"#, r#"{"a":-128,"b":null}"#),
        ] {
            let mut out = String::new();
            push(&Json::parse(text).unwrap(), &kind, &mut out);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn schemas() {
        for (text, expected) in [
            (
                r#"{"b":[1.5,null],"a":1,"c d":{"e":"x"}}"#,
                "STRUCT<a: BIGINT, b: ARRAY<DOUBLE>, `c d`: STRUCT<e: STRING>>",
            ),
            (r#"[{"a":1},{"b":true}]"#, "ARRAY<STRUCT<a: BIGINT, b: BOOLEAN>>"),
            ("[1,\"x\"]", "ARRAY<STRING>"),
            ("123456789012345678901", "DECIMAL(21,0)"),
        ] {
            let mut out = String::new();
            JsonType::of(&Json::parse(text).unwrap()).push(&mut out);
            assert_eq!(out, expected);
        }
    }
}
