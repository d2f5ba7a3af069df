//! Makes rows of `add` for written files: PROTOCOL.md, "Add File and Remove File".

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, new_null_array};
use arrow::datatypes::{DataType, Field, Schema};

use super::partition::Values;
use crate::error::Result;
use crate::log::schema::{text_map_builder, vector_fields};

/// A written data file, of which a row of `add` is made.
#[derive(Debug)]
pub struct NewFile {
    /// Path as written in the log: below the table's root, percent-encoded.
    pub path: String,
    /// Partition values as text, each with the physical name of its column.
    pub partition_values: Values,
    /// Size in bytes.
    pub size: u64,
    /// Time of modification in milliseconds since 1970.
    pub modification_time: i64,
    /// Statistics as JSON.
    pub stats: Option<String>,
}

/// Returns a row of `add` for each file.
pub fn batch(files: Vec<NewFile>, data_change: bool, tags: &BTreeMap<String, String>) -> Result<RecordBatch> {
    let rows = files.len();
    let tag_values: Values = tags.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    let tags = if tags.is_empty() { None } else { Some(tag_values.as_slice()) };
    let long = |value: fn(&NewFile) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(files.iter().map(value)))
    };
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("path", Arc::new(StringArray::from_iter_values(files.iter().map(|file| &file.path))), false),
        ("partitionValues", maps(files.iter().map(|file| Some(file.partition_values.as_slice())))?, true),
        ("size", long(|file| i64::try_from(file.size).unwrap_or(i64::MAX)), true),
        ("modificationTime", long(|file| file.modification_time), true),
        ("dataChange", Arc::new(BooleanArray::from(vec![data_change; rows])), true),
        ("stats", Arc::new(StringArray::from_iter(files.iter().map(|file| file.stats.as_deref()))), true),
        ("tags", maps((0..rows).map(|_| tags))?, true),
        ("deletionVector", new_null_array(&DataType::Struct(vector_fields()), rows), true),
        ("baseRowId", new_null_array(&DataType::Int64, rows), true),
        ("defaultRowCommitVersion", new_null_array(&DataType::Int64, rows), true),
        ("clusteringProvider", new_null_array(&DataType::Utf8, rows), true),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array, nullable)| Field::new(*name, array.data_type().clone(), *nullable))
        .collect();
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns.into_iter().map(|(_, array, _)| array).collect(),
    )?)
}

fn maps<'a>(rows: impl Iterator<Item = Option<&'a [(String, Option<String>)]>>) -> Result<ArrayRef> {
    let mut builder = text_map_builder();
    for row in rows {
        for (key, value) in row.into_iter().flatten() {
            builder.keys().append_value(key);
            builder.values().append_option(value.as_deref());
        }
        builder.append(row.is_some())?;
    }
    Ok(Arc::new(builder.finish()))
}
