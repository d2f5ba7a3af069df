//! Makes rows of `add` for the files that Spark has just written to a folder of the table.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit};
use percent_encoding::percent_decode_str;

use super::adds::{self, NewFile};
use super::layout::{self, NULL_FOLDER};
use super::measure::{StatisticsSource, measure};
use super::options::WriteOptions;
use super::partition::{Values, stored};
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::schema::{TableSchema, partition_values};
use crate::store::{ObjectMeta, Store};

/// Returns rows of `add` for the files below `folder`, without statistics (see `footers`). `folder` has a
/// level `name=value` for each partition column, with the value as text; a timestamp with time zone is in
/// microseconds. Spark's own files, whose names begin with `_` or `.`, are left out.
pub fn adopt(
    store: &Arc<dyn Store>,
    schema: &TableSchema,
    folder: &str,
    options: &WriteOptions,
    interrupt: &Interrupt,
) -> Result<RecordBatch> {
    let mut added = Vec::new();
    for found in store.list_from(folder, None, true)? {
        interrupt.check()?;
        let inside =
            found.path.strip_prefix(folder).unwrap_or(&found.path).trim_start_matches('/').to_owned();
        let names: Vec<&str> = inside.split('/').collect();
        if names.iter().enumerate().any(|(level, name)| is_own(name, level < names.len() - 1)) {
            continue;
        }
        added.push(one(schema, found, &names)?);
    }
    adds::batch(added, options.data_change.unwrap_or(true), &options.tags)
}

/// Returns the rows of `add` with statistics from the footers that Spark has written.
pub fn footers(
    store: &Arc<dyn Store>,
    schema: &Arc<TableSchema>,
    adds: RecordBatch,
    options: &WriteOptions,
    interrupt: &Interrupt,
) -> Result<RecordBatch> {
    measure(store, schema, adds, options, StatisticsSource::JavasFooters, interrupt)
}

/// True for a file or folder of Spark itself, such as `_SUCCESS`. The folder of a partition contains `=`, so
/// its name may begin with `_` or `.`.
fn is_own(name: &str, folder: bool) -> bool {
    name.starts_with(['_', '.']) && !(folder && name.contains('='))
}

fn one(schema: &TableSchema, found: ObjectMeta, names: &[&str]) -> Result<NewFile> {
    let fields = schema.partition_fields();
    if names.len() != fields.len() + 1 {
        let error = Error::new(Kind::Io, "a written file does not lie where its partition says")
            .at(found.path.as_str());
        return Err(error.found(names.len() - 1).expected(format!("{} folders", fields.len())));
    }
    let mut partition_values: Values = Vec::with_capacity(fields.len());
    for (field, name) in fields.zip(names) {
        let value = value_of(name).and_then(|text| canonical(text, &field.data_type.to_arrow(false)));
        partition_values.push((
            schema.physical_name(field).to_owned(),
            value.map_err(|error| error.at(found.path.as_str()))?,
        ));
    }
    let path = layout::encode(&found.path);
    Ok(NewFile {
        path,
        partition_values,
        size: found.size,
        modification_time: found.modified_ms,
        stats: None,
    })
}

/// Returns the partition value in a folder's name: `a b` for `p=a%20b`, and `None` for null.
fn value_of(name: &str) -> Result<Option<String>> {
    let (_, value) = name
        .split_once('=')
        .ok_or_else(|| Error::new(Kind::Io, "a folder names no partition value").found(name))?;
    if value == NULL_FOLDER {
        return Ok(None);
    }
    let text = percent_decode_str(value)
        .decode_utf8()
        .map_err(|_| Error::new(Kind::Io, "a folder's name is not UTF-8").found(name))?;
    Ok(Some(text.into_owned()))
}

/// Converts a partition value from the text in a folder's name to the text in the log.
fn canonical(text: Option<String>, data_type: &DataType) -> Result<Option<String>> {
    let Some(text) = text else { return Ok(None) };
    let value: ArrayRef = match data_type {
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) => {
            let micros = text
                .parse()
                .map_err(|_| Error::new(Kind::Io, "a folder's timestamp is no number").found(&text))?;
            Arc::new(TimestampMicrosecondArray::from_value(micros, 1).with_timezone(Arc::clone(zone)))
        }
        _ => partition_values::parse_array(&StringArray::from(vec![text]), data_type)?,
    };
    Ok(partition_values::format_array(stored(&value)?.as_ref())?.iter().next().flatten().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_the_logs_text() {
        let zone = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let text = |name: &str, data_type: &DataType| {
            value_of(name).and_then(|text| canonical(text, data_type)).unwrap()
        };
        assert_eq!(text("t=1717236672000001", &zone).as_deref(), Some("2024-06-01T10:11:12.000001Z"));
        assert_eq!(text("p=a%2Fb%3D c", &DataType::Utf8).as_deref(), Some("a/b= c"));
        assert_eq!(text("x=-0.0", &DataType::Float64).as_deref(), Some("0.0"));
        assert_eq!(text("x=1.0E10", &DataType::Float64).as_deref(), Some("10000000000.0"));
        assert_eq!(text("p=__HIVE_DEFAULT_PARTITION__", &DataType::Utf8), None);
        assert!(value_of("nothing").is_err());
    }

    #[test]
    fn what_spark_keeps_to_itself_is_left_out() {
        assert!(is_own("_temporary", true) && is_own(".part-0.crc", false) && is_own("_SUCCESS", false));
        assert!(!is_own("_p=1", true) && !is_own("part-0.parquet", false));
    }
}
