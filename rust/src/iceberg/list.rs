//! Writes and reads manifest lists: one record for each manifest of a snapshot.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::avro::{self, Cursor, Layout, malformed};
use crate::error::{Error, Kind, Result};

/// The fields of a manifest in the list: name, Avro type and field id of the specification.
const FIELDS: [(&str, &str, i32); 13] = [
    ("manifest_path", "string", 500),
    ("manifest_length", "long", 501),
    ("partition_spec_id", "int", 502),
    ("content", "int", 517),
    ("sequence_number", "long", 515),
    ("min_sequence_number", "long", 516),
    ("added_snapshot_id", "long", 503),
    ("added_files_count", "int", 504),
    ("existing_files_count", "int", 505),
    ("deleted_files_count", "int", 506),
    ("added_rows_count", "long", 512),
    ("existing_rows_count", "long", 513),
    ("deleted_rows_count", "long", 514),
];
/// Version 3: the first row id of the manifest's rows; null for manifests of deletes.
const FIRST_ROW_ID: &str = "first_row_id";
/// Maximum number of manifests in a list that is read; more are an error.
const MOST_MANIFESTS: usize = 1_000_000;

fn schema(version: u8) -> String {
    let mut fields: Vec<_> =
        FIELDS.iter().map(|(name, kind, id)| json!({"name": name, "type": kind, "field-id": id})).collect();
    if version >= 3 {
        fields
            .push(json!({"name": FIRST_ROW_ID, "type": ["null", "long"], "default": null, "field-id": 520}));
    }
    json!({"type": "record", "name": "manifest_file", "fields": fields}).to_string()
}

/// Writes a manifest list of manifests (JSON objects with `FIELDS`). `header`: metadata of the file, a JSON
/// object of texts. `version`: version of the format.
pub fn write(manifests: &str, header: &str, version: u8) -> Result<Vec<u8>> {
    let bad = || {
        Error::new(
            Kind::InvalidArgument,
            "the manifests, or the metadata of the manifest list, are not valid",
        )
    };
    let manifests: Vec<Map<String, Value>> =
        serde_json::from_str(manifests).map_err(|error| bad().caused_by(error))?;
    let header: BTreeMap<String, String> =
        serde_json::from_str(header).map_err(|error| bad().caused_by(error))?;
    let schema = schema(version);
    let mut metadata: Vec<_> = header.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    metadata.push(("avro.schema", &schema));
    let mut container = avro::Container::new(&metadata);
    for manifest in &manifests {
        container.push(|out| {
            for (name, _, _) in FIELDS {
                match manifest.get(name) {
                    Some(Value::String(text)) if name == "manifest_path" => avro::bytes(out, text.as_bytes()),
                    Some(Value::Number(number)) if name != "manifest_path" && number.is_i64() => {
                        avro::long(out, number.as_i64().unwrap_or_default());
                    }
                    other => return Err(bad().found(format!("{name}: {other:?}"))),
                }
            }
            if version >= 3 {
                avro::optional_long(out, manifest.get(FIRST_ROW_ID).and_then(Value::as_i64));
            }
            Ok(())
        })?;
    }
    container.finish()
}

/// Reads the manifests of a manifest list, as JSON with the fields that are written here.
pub fn read(data: &[u8]) -> Result<String> {
    let contents = avro::read(data)?;
    let Layout::Record(fields) = &contents.layout else {
        return Err(malformed("a manifest list without records"));
    };
    let mut manifests = Vec::new();
    for (count, block) in &contents.blocks {
        let mut cursor = Cursor(block);
        for _ in 0..*count {
            if manifests.len() == MOST_MANIFESTS {
                return Err(
                    malformed("a list with too many manifests").expected(format!("at most {MOST_MANIFESTS}"))
                );
            }
            let mut manifest = Map::new();
            for (name, layout) in fields {
                let is_known = name == FIRST_ROW_ID || FIELDS.iter().any(|(known, _, _)| known == name);
                if let Some(value) = plain(&mut cursor, layout)?.filter(|_| is_known) {
                    manifest.insert(name.clone(), value);
                }
            }
            manifests.push(Value::Object(manifest));
        }
    }
    Ok(Value::Array(manifests).to_string())
}

fn plain(cursor: &mut Cursor<'_>, layout: &Layout) -> Result<Option<Value>> {
    Ok(match layout {
        Layout::Long => Some(Value::from(cursor.long()?)),
        Layout::Bytes => std::str::from_utf8(cursor.bytes()?).ok().map(Value::from),
        Layout::Union(branches) => {
            let branch = cursor.branch(branches)?;
            plain(cursor, branch)?
        }
        other => {
            cursor.skip(other)?;
            None
        }
    })
}
