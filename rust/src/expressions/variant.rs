//! Functions on variants: make them from JSON and rows, look up paths in them, describe their contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, NullBufferBuilder, StringBuilder, StructArray,
};
use arrow::datatypes::{DataType, Field, Fields};
use parquet_variant::Variant;

use super::arguments::Arguments;
use super::failure;
use super::json::Json;
use super::variant_bytes::{Column, Variants, days_of, digits_of, fields, unknown};
use super::variant_limits::Limits;
use super::variant_schema::Schema;
use super::variant_text::{push, push_scalar, zone_of};
use crate::error::{Error, Result};

/// Evaluates `parse_json(text, safe)`: the variant of JSON text. Malformed text gives null if `safe` is not
/// 0, else MALFORMED_RECORD_IN_PARSING.
pub fn parse_json(given: &Arguments) -> Result<ArrayRef> {
    let (texts, safe) = (given.text(0)?, given.integers(1)?);
    let mut out = Column::new(given.rows());
    for (row, text) in texts.iter().enumerate() {
        let Some(text) = text else {
            out.append_null()?;
            continue;
        };
        let written = match Json::parse_strict(text) {
            Some(value) => out.append(|encoder, bytes| encoder.json(&value, bytes))?,
            None => None,
        };
        if written.is_none() {
            if safe.value(row) == 0 {
                return Err(failure(
                    "MALFORMED_RECORD_IN_PARSING",
                    format!("Malformed records are detected in record parsing: {text}."),
                ));
            }
            out.append_null()?;
        }
    }
    Ok(Arc::new(out.finish()?))
}

/// Evaluates `to_variant(value)`: the value as a variant. A null stays null.
pub fn to_variant(given: &Arguments) -> Result<ArrayRef> {
    let values = given.array(0)?;
    let mut out = Column::new(given.rows());
    for row in 0..given.rows() {
        if values.is_null(row) {
            out.append_null()?;
        } else if out.append(|encoder, bytes| encoder.value(values, row, bytes))?.is_none() {
            return Err(failure("VARIANT_DUPLICATE_KEY", "an object has a name twice"));
        }
    }
    Ok(Arc::new(out.finish()?))
}

/// A step of a path such as `$.a[0]['b']`.
pub(super) enum Step {
    Named(String),
    Index(usize),
}

pub(super) fn path_of(text: &str) -> Option<Vec<Step>> {
    let mut rest = text.trim_start().strip_prefix('$')?;
    let mut steps = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some(steps);
        }
        if let Some(after) = rest.strip_prefix('.') {
            let after = after.trim_start();
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            steps.push(Step::Named(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some((quote, after)) =
            ["['", "[\""].iter().find_map(|quote| Some((&quote[1..], rest.strip_prefix(quote)?)))
        {
            let end = after
                .find(&format!("{quote}]"))
                .filter(|&end| end > 0 && !after[..end].contains(quote) && !after[..end].contains('?'))?;
            steps.push(Step::Named(after[..end].to_owned()));
            rest = &after[end + 2..];
        } else {
            let (inside, tail) = rest.strip_prefix('[')?.split_once(']')?;
            let digits = inside.trim();
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            steps.push(Step::Index(digits.parse::<i32>().ok()? as usize));
            rest = tail;
        }
    }
}

fn invalid_path(path: &str, name: &str) -> Error {
    failure(
        "INVALID_VARIANT_GET_PATH",
        format!("The path `{path}` is not a valid variant extraction path in `{name}`."),
    )
}

/// Returns the variants of the first argument or, if there is an argument at `place`, their parts at this
/// path; `None` if there is no such part.
pub(super) fn each_at<'a>(
    values: &'a Variants,
    given: &'a Arguments,
    place: usize,
) -> Result<impl Iterator<Item = Result<Option<Variant<'a, 'a>>>> + 'a> {
    let paths = if place < given.count() { Some(given.text(place)?) } else { None };
    let mut known: (String, Vec<Step>) = ("$".to_owned(), Vec::new());
    Ok(values.iter().enumerate().map(move |(row, value)| {
        let Some(paths) = &paths else { return value };
        let Some(value) = value?.filter(|_| paths.is_valid(row)) else { return Ok(None) };
        let path = paths.value(row);
        if path != known.0 {
            known = (path.to_owned(), path_of(path).ok_or_else(|| invalid_path(path, "variant_get"))?);
        }
        Ok(known.1.iter().try_fold(value, |value, step| match (step, &value) {
            (Step::Named(name), Variant::Object(object)) => object.get(name),
            (Step::Index(place), Variant::List(items)) => items.get(*place),
            _ => None,
        }))
    }))
}

/// Evaluates `variant_get(variant, path)`: the part of a variant at a path, as a variant.
pub fn get(given: &Arguments) -> Result<ArrayRef> {
    let values = Variants::new(given.array(0)?)?;
    let mut out = Column::new(given.rows());
    for found in each_at(&values, given, 1)? {
        match found? {
            Some(found) => out.append_variant(&found)?,
            None => out.append_null()?,
        }
    }
    Ok(Arc::new(out.finish()?))
}

/// Evaluates `variant_is_null(variant)`: true for JSON's null, false for SQL's NULL.
pub fn is_null(given: &Arguments) -> Result<ArrayRef> {
    let values = Variants::new(given.array(0)?)?;
    let found = values.iter().map(|value| Ok(Some(matches!(value?, Some(Variant::Null)))));
    Ok(Arc::new(found.collect::<Result<BooleanArray>>()?))
}

/// Evaluates `variant_is_valid(variant)`: false if the bytes are malformed, null for NULL.
pub fn is_valid(given: &Arguments) -> Result<ArrayRef> {
    let values = Variants::new(given.array(0)?)?;
    let found = values.checked().map(|value| match value {
        Ok(None) => None,
        Ok(Some(_)) => Some(true),
        Err(_) => Some(false),
    });
    Ok(Arc::new(found.collect::<BooleanArray>()))
}

pub(super) fn whole_of(value: &Variant) -> Option<i64> {
    match value {
        Variant::Int8(number) => Some(i64::from(*number)),
        Variant::Int16(number) => Some(i64::from(*number)),
        Variant::Int32(number) => Some(i64::from(*number)),
        Variant::Int64(number) => Some(*number),
        _ => None,
    }
}

/// Evaluates `variant_parts(variant, zone [, path])`: the parts that casts need of a variant, or of its part
/// at a path. `kind`: its type; `whole`: a whole number, a boolean as 0 or 1, days, microseconds, or a
/// decimal without its fraction; `number`: a double or float; `text`: a string or decimal as text, an array,
/// object or UUID as JSON, and empty for all other types; `bytes`: a binary value.
pub fn parts(given: &Arguments) -> Result<ArrayRef> {
    let (values, zone) = (Variants::new(given.array(0)?)?, zone_of(given, 1)?);
    let rows = given.rows();
    let (mut kinds, mut texts) =
        (StringBuilder::with_capacity(rows, 8 * rows), StringBuilder::with_capacity(rows, 8 * rows));
    let mut wholes: Vec<Option<i64>> = Vec::with_capacity(rows);
    let mut numbers: Vec<Option<f64>> = Vec::with_capacity(rows);
    let (mut bytes, mut nulls) = (BinaryBuilder::new(), NullBufferBuilder::new(rows));
    let mut text = String::new();
    for value in each_at(&values, given, 2)? {
        let value = value?;
        nulls.append(value.is_some());
        let value = value.unwrap_or(Variant::Null);
        let kind = kind_of(&value)?;
        kinds.append_value(kind);
        wholes.push(match &value {
            Variant::BooleanTrue => Some(1),
            Variant::BooleanFalse => Some(0),
            Variant::Date(day) => Some(i64::from(days_of(*day))),
            Variant::TimestampMicros(moment) => Some(moment.timestamp_micros()),
            Variant::TimestampNtzMicros(moment) => Some(moment.and_utc().timestamp_micros()),
            other => match digits_of(other) {
                Some((digits, scale)) => i64::try_from(digits / 10i128.pow(u32::from(scale))).ok(),
                None => whole_of(other),
            },
        });
        numbers.push(match &value {
            Variant::Double(number) => Some(*number),
            Variant::Float(number) => Some(f64::from(*number)),
            _ => None,
        });
        text.clear();
        match kind {
            "null" | "long" | "double" | "float" | "date" | "timestamp" | "timestamp_ntz" | "boolean"
            | "binary" => {}
            "string" | "decimal" => push_scalar(&value, &zone, &mut text)?,
            _ => push(&value, &zone, &mut Limits::of(&value), &mut text)?,
        }
        texts.append_value(&text);
        bytes.append_option(if let Variant::Binary(bytes) = &value { Some(*bytes) } else { None });
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(kinds.finish()),
        Arc::new(arrow::array::Int64Array::from(wholes)),
        Arc::new(arrow::array::Float64Array::from(numbers)),
        Arc::new(texts.finish()),
        Arc::new(bytes.finish()),
    ];
    let names = ["kind", "whole", "number", "text", "bytes"];
    let fields: Fields = names
        .iter()
        .zip(&columns)
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    Ok(Arc::new(StructArray::try_new(fields, columns, nulls.finish())?))
}

fn kind_of(value: &Variant) -> Result<&'static str> {
    Ok(match value {
        Variant::Null => "null",
        Variant::BooleanTrue | Variant::BooleanFalse => "boolean",
        Variant::Int8(_) | Variant::Int16(_) | Variant::Int32(_) | Variant::Int64(_) => "long",
        Variant::Double(_) => "double",
        Variant::Float(_) => "float",
        Variant::Decimal4(_) | Variant::Decimal8(_) | Variant::Decimal16(_) => "decimal",
        Variant::Date(_) => "date",
        Variant::TimestampMicros(_) => "timestamp",
        Variant::TimestampNtzMicros(_) => "timestamp_ntz",
        Variant::Binary(_) => "binary",
        Variant::String(_) | Variant::ShortString(_) => "string",
        Variant::Uuid(_) => "uuid",
        Variant::List(_) => "array",
        Variant::Object(_) => "object",
        Variant::TimestampNanos(_) | Variant::TimestampNtzNanos(_) | Variant::Time(_) => {
            return Err(unknown());
        }
    })
}

/// Evaluates `variant_items(variant)`: a list of (pos, key, value), one for each item of an array, with a
/// null key, or for each field of an object; null for any other variant.
pub fn items(given: &Arguments) -> Result<ArrayRef> {
    let values = Variants::new(given.array(0)?)?;
    let mut keys = StringBuilder::new();
    let (mut places, mut column) = (Vec::new(), Column::new(given.rows()));
    let (mut offsets, mut nulls) = (vec![0i32], NullBufferBuilder::new(given.rows()));
    for value in values.iter() {
        let found: Option<Vec<(Option<&str>, Variant)>> = match value? {
            Some(Variant::List(items)) => Some(items.iter().map(|item| (None, item)).collect()),
            Some(Variant::Object(object)) => {
                Some(object.iter().map(|(name, item)| (Some(name), item)).collect())
            }
            _ => None,
        };
        nulls.append(found.is_some());
        for (place, (key, item)) in found.into_iter().flatten().enumerate() {
            places.push(place as i32);
            keys.append_option(key);
            column.append_variant(&item)?;
        }
        offsets.push(places.len() as i32);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(arrow::array::Int32Array::from(places)),
        Arc::new(keys.finish()),
        Arc::new(column.finish()?),
    ];
    let of_item = Fields::from(vec![
        Field::new("pos", DataType::Int32, true),
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Struct(fields()), true),
    ]);
    let items = StructArray::try_new(of_item.clone(), columns, None)?;
    let field = Arc::new(Field::new("item", DataType::Struct(of_item), true));
    let offsets = arrow::buffer::OffsetBuffer::new(offsets.into());
    Ok(Arc::new(arrow::array::ListArray::try_new(field, offsets, Arc::new(items), nulls.finish())?))
}

/// Evaluates `variant_schema(variant)`: the type of a variant as DDL, as `schema_of_variant` returns it.
pub fn schema(given: &Arguments) -> Result<ArrayRef> {
    let values = Variants::new(given.array(0)?)?;
    let mut out = StringBuilder::new();
    for value in values.iter() {
        match value? {
            Some(value) => out.append_value(schema_of(&value, &mut Limits::of(&value))?.to_string()),
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// Evaluates `variant_common_schema(list of variants)`: the common type of all variants of a list, as DDL.
pub fn common_schema(given: &Arguments) -> Result<ArrayRef> {
    let lists = given.array(0)?;
    let mut out = StringBuilder::new();
    for row in 0..given.rows() {
        let mut found = Schema::Void;
        if lists.is_valid(row) {
            let values = Variants::new(&lists.as_list::<i32>().value(row))?;
            for value in values.iter() {
                if let Some(value) = value? {
                    found = found.merged(schema_of(&value, &mut Limits::of(&value))?);
                }
            }
        }
        out.append_value(found.to_string());
    }
    Ok(Arc::new(out.finish()))
}

fn schema_of(value: &Variant, limits: &mut Limits) -> Result<Schema> {
    Ok(match value {
        Variant::List(items) => {
            limits.enter(items.len())?;
            let mut element = Schema::Void;
            for item in items.iter() {
                element = element.merged(schema_of(&item, limits)?);
            }
            limits.leave();
            Schema::Array(Box::new(element))
        }
        Variant::Object(object) => {
            limits.enter(object.len())?;
            let fields: Result<BTreeMap<String, Schema>> =
                object.iter().map(|(name, item)| Ok((name.to_owned(), schema_of(&item, limits)?))).collect();
            limits.leave();
            Schema::Object(fields?)
        }
        Variant::Null => Schema::Void,
        other => match digits_of(other) {
            Some((digits, scale)) => Schema::decimal(digits, scale),
            None => Schema::Scalar(kind_of(other)?),
        },
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, Int32Array, StringArray};

    use super::super::evaluate;
    use super::*;

    fn parsed(texts: Vec<&str>) -> ArrayRef {
        let safe: ArrayRef = Arc::new(Int32Array::from(vec![1; texts.len()]));
        evaluate("parse_json", &[Arc::new(StringArray::from(texts)), safe]).unwrap()
    }

    fn shown(variants: &ArrayRef) -> Vec<Option<String>> {
        let zones: ArrayRef = Arc::new(StringArray::from(vec!["UTC"; variants.len()]));
        let texts = evaluate("variant_to_json", &[Arc::clone(variants), zones]).unwrap();
        texts.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn text_to_variant_and_back() {
        let variants = parsed(vec![
            r#"{"b":1,"a":{"z":1.50,"y":[1,2,{"k":null}]}}"#,
            "1 x",
            "{bad",
            r#"{"a":1,"a":2}"#,
            "100.00",
            "'x'",
            "1e20",
        ]);
        let expected = [
            Some(r#"{"a":{"y":[1,2,{"k":null}],"z":1.5},"b":1}"#),
            Some("1"),
            None,
            None,
            Some("100"),
            None,
            Some("1.0E20"),
        ];
        assert_eq!(shown(&variants), expected.map(|text| text.map(str::to_owned)));
    }

    #[test]
    fn bytes_are_those_of_spark() {
        let variants = parsed(vec![r#"{"a":1,"b":[1.5,true,null,"x"],"c":{"d":1e3}}"#]);
        let read = Variants::new(&variants).unwrap();
        assert_eq!(read.metadata.value(0), b"\x01\x04\x00\x01\x02\x03\x04abcd");
        assert_eq!(
            read.value.value(0),
            b"\x02\x03\x00\x01\x02\x00\x02\x13!\x0c\x01\x03\x04\x00\x06\x07\x08\n \x01\x0f\
              \x00\x00\x00\x04\x00\x05x\x02\x01\x03\x00\t\x1c\x00\x00\x00\x00\x00@\x8f@"
        );
    }

    #[test]
    fn malformed_bytes() {
        let field = |name: &str| Arc::new(Field::new(name, DataType::Binary, true));
        let column = |bytes: &[u8]| Arc::new(BinaryArray::from(vec![bytes])) as ArrayRef;
        let (zones, paths): (ArrayRef, ArrayRef) =
            (Arc::new(StringArray::from(vec!["UTC"])), Arc::new(StringArray::from(vec!["$[1]"])));
        // An array of two items, the second of which is a string of five bytes of which one is there.
        let bytes = column(b"\x03\x02\x00\x01\x03\x00\x15a");
        let variants: ArrayRef = Arc::new(StructArray::from(vec![
            (field("metadata"), column(b"\x01\x00\x00")),
            (field("value"), bytes),
        ]));
        let valid = evaluate("variant_is_valid", &[Arc::clone(&variants)]).unwrap();
        assert!(!valid.as_boolean().value(0));
        for name in ["variant_to_json", "variant_to_text", "variant_parts", "variant_schema", "variant_items"]
        {
            let failed = evaluate(name, &[Arc::clone(&variants), Arc::clone(&zones)]).unwrap_err();
            assert!(failed.to_string().contains("MALFORMED_VARIANT"), "{name}: {failed}");
        }
        let failed = evaluate("variant_get", &[variants, paths]).unwrap_err();
        assert!(failed.to_string().contains("MALFORMED_VARIANT"), "{failed}");
    }

    #[test]
    fn an_object_may_have_many_fields() {
        let fields =
            (0..100_000).map(|number| format!(r#""f{number}":{number}"#)).collect::<Vec<_>>().join(",");
        let variants = parsed(vec![&format!("{{{fields}}}"), r#"{"f0":1}"#]);
        let read = Variants::new(&variants).unwrap();
        let found = read.iter().next().unwrap().unwrap().unwrap();
        assert_eq!(found.as_object().unwrap().get("f77777"), Some(Variant::Int32(77_777)));
        assert_eq!(read.metadata.value(1), b"\x01\x01\x00\x02f0");
    }

    #[test]
    fn paths() {
        for (path, expected) in [
            ("$.a[1].b", Some("7")),
            ("$['a'][0]", Some("1")),
            ("$[\"a\"][9]", None),
            ("$", Some(r#"{"a":[1,{"b":7}]}"#)),
        ] {
            let paths: ArrayRef = Arc::new(StringArray::from(vec![path]));
            let found = evaluate("variant_get", &[parsed(vec![r#"{"a":[1,{"b":7}]}"#]), paths]).unwrap();
            assert_eq!(shown(&found)[0].as_deref(), expected, "{path}");
        }
        for path in ["a", "$.", "$.a[", "$.a[-1]", "$.a[*]", "$['a?']"] {
            assert!(path_of(path).is_none(), "{path}");
        }
    }
}
