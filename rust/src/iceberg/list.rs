//! Manifest lists: a record for each manifest of a snapshot.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::avro::{self, Cursor, Layout, malformed};
use crate::error::{Error, Kind, Result};

/// A manifest of a snapshot, under the names of the specification.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ManifestFile {
    manifest_path: String,
    manifest_length: i64,
    partition_spec_id: i64,
    content: i64,
    sequence_number: i64,
    min_sequence_number: i64,
    added_snapshot_id: i64,
    added_files_count: i64,
    existing_files_count: i64,
    deleted_files_count: i64,
    added_rows_count: i64,
    existing_rows_count: i64,
    deleted_rows_count: i64,
    /// Version 3: the first row id of the manifest's rows; `None` for manifests of deletes.
    #[serde(default)]
    first_row_id: Option<i64>,
}

fn schema(version: u8) -> String {
    let field = |name: &str, kind: &str, id: i32| json!({"name": name, "type": kind, "field-id": id});
    let mut fields = vec![
        field("manifest_path", "string", 500),
        field("manifest_length", "long", 501),
        field("partition_spec_id", "int", 502),
        field("content", "int", 517),
        field("sequence_number", "long", 515),
        field("min_sequence_number", "long", 516),
        field("added_snapshot_id", "long", 503),
        field("added_files_count", "int", 504),
        field("existing_files_count", "int", 505),
        field("deleted_files_count", "int", 506),
        field("added_rows_count", "long", 512),
        field("existing_rows_count", "long", 513),
        field("deleted_rows_count", "long", 514),
    ];
    if version >= 3 {
        fields.push(json!({"name": "first_row_id", "type": ["null", "long"], "default": null, "field-id": 520}));
    }
    json!({"type": "record", "name": "manifest_file", "fields": fields}).to_string()
}

/// A manifest list of these manifests (JSON). `header`: metadata of the file, a JSON object of texts. `version`: of the format.
pub fn write(manifests: &str, header: &str, version: u8) -> Result<Vec<u8>> {
    let bad = |error| Error::new(Kind::InvalidArgument, "manifests, or metadata of a manifest list, that are none").caused_by(error);
    let manifests: Vec<ManifestFile> = serde_json::from_str(manifests).map_err(bad)?;
    let header: std::collections::BTreeMap<String, String> = serde_json::from_str(header).map_err(bad)?;
    let schema = schema(version);
    let mut metadata: Vec<_> = header.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    metadata.push(("avro.schema", &schema));
    let mut container = avro::Container::new(&metadata);
    for item in &manifests {
        container.push(|out| {
            avro::bytes(out, item.manifest_path.as_bytes());
            let numbers = [
                item.manifest_length,
                item.partition_spec_id,
                item.content,
                item.sequence_number,
                item.min_sequence_number,
                item.added_snapshot_id,
                item.added_files_count,
                item.existing_files_count,
                item.deleted_files_count,
                item.added_rows_count,
                item.existing_rows_count,
                item.deleted_rows_count,
            ];
            numbers.into_iter().for_each(|number| avro::long(out, number));
            if version >= 3 {
                avro::optional_long(out, item.first_row_id);
            }
            Ok(())
        })?;
    }
    container.finish()
}

/// The manifests of a manifest list, as JSON. Fields that are not text or numbers are left out.
pub fn read(data: &[u8]) -> Result<String> {
    let contents = avro::read(data)?;
    let Layout::Record(fields) = &contents.layout else { return Err(malformed("a manifest list without records")) };
    let mut manifests = Vec::new();
    for (count, block) in &contents.blocks {
        let mut cursor = Cursor(block);
        for _ in 0..*count {
            let mut manifest = serde_json::Map::new();
            for (name, layout) in fields {
                if let Some(value) = plain(&mut cursor, layout)? {
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
