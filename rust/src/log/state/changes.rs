//! The change data feed: finds the rows of files that a commit inserted and deleted. PROTOCOL.md, "Change
//! Data Files" and "Reader Requirements for Change Data Files".
//!
//! The changes of a commit with `cdc` actions are in the files of these actions. For any other commit they
//! are derived: an added file holds inserted rows, a removed file holds deleted rows. If a path is added and
//! removed with two deletion vectors, the changes are the difference of the vectors: `{3} -> {3, 7}` means
//! that row 7 is deleted, and `{3} -> {}`, as RESTORE writes it, that row 3 is inserted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, MapArray, RecordBatch, UInt32Array, new_null_array,
};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use chrono::DateTime;
use serde::Deserialize;

use crate::deletion_vector::{DeletionVector, VectorRequest, columns, read_all};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::log::reading::commit::Commit;
use crate::log::reading::line::{FileAction, FileActions, FileKind, Text};
use crate::log::schema::{self, map, text, vectors};
use crate::store::{Store, canonical};

/// Name of the column of change files with the kind of change of each row.
pub const CHANGE_TYPE: &str = "_change_type";
/// Name of the column with the version that changed a row.
pub const COMMIT_VERSION: &str = "_commit_version";
/// Name of the column with the time of that version.
pub const COMMIT_TIMESTAMP: &str = "_commit_timestamp";

/// A commit of the requested range.
#[derive(Debug, Clone)]
pub struct Place {
    /// The commit's version.
    pub version: u64,
    /// The path of the commit's file.
    pub path: String,
    /// The commit's time in ms since 1970. `None`: take it from `inCommitTimestamp` in the commit.
    pub time: Option<i64>,
}

/// The files with the changes of one commit, in the schema of [`files_schema`]. Version and time of the
/// commit are among their partition values.
#[derive(Debug, Clone)]
pub struct Changes {
    /// JSON of the commit's `metaData`.
    pub metadata: Option<String>,
    /// Files of which all or some rows were inserted or deleted: `_change_type` is one of their partition
    /// values.
    pub derived: RecordBatch,
    /// Change files: `_change_type` is a column in them.
    pub recorded: RecordBatch,
}

/// Returns the columns of `add`, and those that select the rows of a file to read: `selection` and
/// `keep_selected`.
pub fn files_schema() -> SchemaRef {
    let mut fields: Vec<_> = schema::ADD.fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("selection", DataType::Binary, true)));
    fields.push(Arc::new(Field::new("keep_selected", DataType::Boolean, true)));
    Arc::new(Schema::new(fields))
}

/// Returns the changes of a commit. `partition_columns`: physical names. A remove action of a partitioned
/// table must have partition values, but delta-spark omits nulls in them: `"partitionValues":{}` means
/// `{"p":null}` there.
pub fn read(
    store: &dyn Store,
    place: &Place,
    partition_columns: &[String],
    interrupt: &Interrupt,
) -> Result<Changes> {
    let commit = Commit::read(store, place.version, &place.path, interrupt)?;
    let info = Info::of(&commit);
    let here = |error: Error| error.at(&place.path);
    let time = place.time.map_or_else(|| info.own_time(), Ok).and_then(timestamp_text).map_err(here)?;
    let commit_values = [(COMMIT_VERSION, place.version.to_string()), (COMMIT_TIMESTAMP, time)];
    let derive = ChangeDerivation { store, place, partition_columns, commit_values };
    let (mut derived, mut recorded) =
        (RecordBatch::new_empty(files_schema()), RecordBatch::new_empty(files_schema()));
    if !commit.change_files.is_empty() {
        let files = recorded_files(&commit).map_err(here)?;
        recorded = with_rows(&derive.with_values(&files, None)?, None)?;
    } else if !info.is_idle_merge() {
        derived = derive.files(&commit).map_err(here)?;
    }
    Ok(Changes { metadata: commit.metadata, derived, recorded })
}

fn timestamp_text(ms: i64) -> Result<String> {
    let time = DateTime::from_timestamp_millis(ms)
        .ok_or_else(|| Error::protocol("the time of a commit is out of range").found(ms))?;
    Ok(time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

/// The fields of commitInfo that the feed needs.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Info {
    operation: Option<serde_json::Value>,
    operation_metrics: Option<serde_json::Value>,
    in_commit_timestamp: Option<serde_json::Value>,
}

impl Info {
    fn of(commit: &Commit) -> Self {
        commit.commit_info.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    fn own_time(&self) -> Result<i64> {
        self.in_commit_timestamp.as_ref().and_then(serde_json::Value::as_i64).ok_or_else(|| {
            let error = Error::protocol("the table has in-commit timestamps, and a commit has none");
            error.expected("commitInfo.inCommitTimestamp")
        })
    }

    /// True for a MERGE of delta-spark that rewrote files without changing a row. It has no change files, and
    /// there are no changes.
    fn is_idle_merge(&self) -> bool {
        let zero = |name| {
            self.operation_metrics
                .as_ref()
                .and_then(|metrics| metrics.get(name))
                .is_some_and(|count| count == "0")
        };
        self.operation.as_ref().is_some_and(|operation| operation == "MERGE")
            && ["numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"].into_iter().all(zero)
    }
}

/// Returns the `cdc` actions as rows of `add`.
fn recorded_files(commit: &Commit) -> Result<RecordBatch> {
    // Removes need only a path and dataChange, as these do.
    let mut files = FileActions::new(FileKind::Remove);
    for text in &commit.change_files {
        let malformed = |error| Error::protocol("a cdc action is malformed").caused_by(error);
        let action: FileAction<'_, Text<'_>> = serde_json::from_str(text).map_err(malformed)?;
        files.append(&action)?;
    }
    schema::conform(&files.finish()?, &schema::ADD)
}

struct ChangeDerivation<'a> {
    store: &'a dyn Store,
    place: &'a Place,
    partition_columns: &'a [String],
    /// Version and time of the commit, under the names of their columns.
    commit_values: [(&'static str, String); 2],
}

impl ChangeDerivation<'_> {
    fn files(&self, commit: &Commit) -> Result<RecordBatch> {
        let adds = changing(&commit.adds, &schema::ADD)?;
        let removes = schema::conform(&changing(&commit.removes, &schema::REMOVE)?, &schema::ADD)?;
        let root = self.store.location();
        let removed: HashMap<_, u32> = (0..)
            .zip(text(&removes, "path")?)
            .filter_map(|(row, path)| Some((canonical(root, path?), row)))
            .collect();
        let (mut inserted, mut pairs) = (Vec::new(), Vec::new());
        for (row, path) in (0_u32..).zip(text(&adds, "path")?) {
            match path.and_then(|path| removed.get(&canonical(root, path))) {
                Some(&before) => pairs.push((before, row)),
                None => inserted.push(row),
            }
        }
        let again: HashSet<u32> = pairs.iter().map(|(before, _)| *before).collect();
        let mut deleted: Vec<u32> = removed.values().copied().filter(|row| !again.contains(row)).collect();
        deleted.sort_unstable();
        let mut parts = vec![
            self.changed(&take(&removes, &deleted)?, "delete", None)?,
            self.changed(&take(&adds, &inserted)?, "insert", None)?,
        ];
        if !pairs.is_empty() {
            let (before, after): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
            let (before, after) = (take(&removes, &before)?, take(&adds, &after)?);
            let (old, new) = (self.vectors(&before)?, self.vectors(&after)?);
            // The file's current statistics do not cover the deleted rows.
            let gone = without(&without(&after, "deletionVector")?, "stats")?;
            for (files, kind, from, to) in
                [(gone, "delete", &new, &old), (without(&after, "deletionVector")?, "insert", &old, &new)]
            {
                let rows: Vec<DeletionVector> =
                    from.iter().zip(to).map(|(from, to)| from.difference(to)).collect();
                parts.push(self.changed(&files, kind, Some(&rows))?);
            }
        }
        Ok(concat_batches(&files_schema(), &parts)?)
    }

    /// Returns the deleted rows of each file; an empty set for a file without a vector.
    fn vectors(&self, files: &RecordBatch) -> Result<Vec<DeletionVector>> {
        let wanted: Vec<_> = columns::read(vectors(files)?)?
            .into_iter()
            .map(|descriptor| descriptor.map(|descriptor| VectorRequest { descriptor, num_records: None }))
            .collect();
        Ok(read_all(self.store, &wanted)?.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Returns `files` with further partition values: the type `kind` of the change, and the commit's version
    /// and time. With `rows`, only the files of which some rows changed are returned.
    fn changed(
        &self,
        files: &RecordBatch,
        kind: &str,
        rows: Option<&[DeletionVector]>,
    ) -> Result<RecordBatch> {
        let whole = self.with_values(files, Some(kind))?;
        let whole = with_rows(&whole, rows)?;
        let Some(rows) = rows else { return Ok(whole) };
        Ok(filter_record_batch(
            &whole,
            &BooleanArray::from_iter(rows.iter().map(|rows| Some(!rows.is_empty()))),
        )?)
    }

    fn with_values(&self, files: &RecordBatch, kind: Option<&str>) -> Result<RecordBatch> {
        let values = map(files, "partitionValues")?;
        if !self.partition_columns.is_empty() && values.null_count() > 0 {
            let at = (0..values.len()).find(|&row| values.is_null(row)).unwrap_or_default();
            let path = text(files, "path")?.value(at);
            let error = Error::protocol("a remove action does not say the partition values of its file");
            return Err(error
                .at(path)
                .found(format!("version {}", self.place.version))
                .expected("partitionValues"));
        }
        let commit_values = self.commit_values.iter().map(|(name, value)| (*name, value.as_str()));
        let more: Vec<_> = commit_values.chain(kind.map(|kind| (CHANGE_TYPE, kind))).collect();
        let nullable = if kind == Some("delete") { self.partition_columns } else { &[] };
        replaced(files, "partitionValues", Arc::new(extended(values, &more, nullable)?))
    }
}

/// Returns the maps with the entries `more`, and with nulls for names in `nullable` that are missing.
fn extended(maps: &MapArray, more: &[(&str, &str)], nullable: &[String]) -> Result<MapArray> {
    let (keys, values) = (maps.keys().as_string::<i32>(), maps.values().as_string::<i32>());
    let mut builder = schema::text_map_builder();
    for row in 0..maps.len() {
        let (from, to) = (maps.offsets()[row] as usize, maps.offsets()[row + 1] as usize);
        for at in if maps.is_valid(row) { from..to } else { 0..0 } {
            builder.keys().append_value(keys.value(at));
            builder.values().append_option(values.is_valid(at).then(|| values.value(at)));
        }
        let lacking =
            |name: &&String| !maps.is_valid(row) || (from..to).all(|at| keys.value(at) != name.as_str());
        for name in nullable.iter().filter(lacking) {
            builder.keys().append_value(name);
            builder.values().append_null();
        }
        for (key, value) in more {
            builder.keys().append_value(key);
            builder.values().append_value(value);
        }
        builder.append(true)?;
    }
    Ok(builder.finish())
}

/// Returns the actions with `dataChange` true.
fn changing(batches: &[RecordBatch], schema: &SchemaRef) -> Result<RecordBatch> {
    let whole = concat_batches(schema, batches)?;
    let changes = whole.column_by_name("dataChange").map(|column| column.as_boolean().clone());
    Ok(match changes {
        Some(changes) if changes.true_count() < whole.num_rows() => filter_record_batch(&whole, &changes)?,
        _ => whole,
    })
}

fn take(batch: &RecordBatch, rows: &[u32]) -> Result<RecordBatch> {
    Ok(take_record_batch(batch, &UInt32Array::from(rows.to_vec()))?)
}

fn replaced(batch: &RecordBatch, name: &str, column: ArrayRef) -> Result<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    columns[batch.schema_ref().index_of(name)?] = column;
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

fn without(batch: &RecordBatch, name: &str) -> Result<RecordBatch> {
    let data_type = batch.schema_ref().field_with_name(name)?.data_type().clone();
    replaced(batch, name, new_null_array(&data_type, batch.num_rows()))
}

/// Returns the files with the columns `selection` and `keep_selected`, which select `rows` of each file;
/// `None`: all rows.
fn with_rows(batch: &RecordBatch, rows: Option<&[DeletionVector]>) -> Result<RecordBatch> {
    let (selection, keep): (ArrayRef, ArrayRef) = match rows {
        Some(rows) => {
            let bytes: Vec<Vec<u8>> = rows.iter().map(DeletionVector::to_bytes).collect();
            (
                Arc::new(BinaryArray::from_iter_values(bytes)),
                Arc::new(BooleanArray::from(vec![true; rows.len()])),
            )
        }
        None => (
            new_null_array(&DataType::Binary, batch.num_rows()),
            new_null_array(&DataType::Boolean, batch.num_rows()),
        ),
    };
    let mut columns = batch.columns().to_vec();
    columns.extend([selection, keep]);
    Ok(RecordBatch::try_new(files_schema(), columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{OpenOptions, open};
    use crate::z85;

    fn vector(rows: &[u64]) -> String {
        let vector = DeletionVector::from_rows(rows.to_vec()).unwrap();
        let (bytes, count) = (vector.to_bytes(), rows.len());
        let text = z85::encode(&vector.to_bytes());
        let place = format!(r#""storageType":"i","pathOrInlineDv":"{text}""#);
        let size = bytes.len();
        format!(r#","deletionVector":{{{place},"sizeInBytes":{size},"cardinality":{count}}}"#)
    }

    fn changes(lines: &[String]) -> Result<Changes> {
        let store = open("memory://changes/table", &OpenOptions::default()).unwrap();
        let path = "_delta_log/00000000000000000005.json";
        store.put(path, lines.join("\n").into()).unwrap();
        read(
            &*store,
            &Place { version: 5, path: path.to_owned(), time: Some(1_000) },
            &["p".to_owned()],
            &Interrupt::default(),
        )
    }

    fn action(kind: &str, path: &str, more: &str) -> String {
        let file = r#""partitionValues":{},"size":1,"modificationTime":1,"dataChange":true"#;
        format!(r#"{{"{kind}":{{"path":"{path}",{file}{more}}}}}"#)
    }

    /// Returns (path, change, selected rows) of each file.
    fn summary(batch: &RecordBatch) -> Vec<(String, Option<String>, Option<Vec<u64>>)> {
        let kinds = schema::map_values(map(batch, "partitionValues").unwrap(), CHANGE_TYPE);
        let paths = text(batch, "path").unwrap();
        let selection = batch.column_by_name("selection").unwrap().as_binary::<i32>();
        let rows = |row: usize| {
            selection
                .is_valid(row)
                .then(|| DeletionVector::from_bytes(selection.value(row)).unwrap().iter().collect())
        };
        (0..batch.num_rows())
            .map(|row| {
                (
                    paths.value(row).to_owned(),
                    kinds.is_valid(row).then(|| kinds.value(row).to_owned()),
                    rows(row),
                )
            })
            .collect()
    }

    #[test]
    fn a_path_that_stays_changed_only_where_its_vectors_differ() {
        let lines = [
            action("remove", "a", &vector(&[3])),
            action("add", "a", &vector(&[3, 7])),
            action("remove", "b", ""),
            action("add", "b", &vector(&[1])),
            action("remove", "c", &vector(&[2, 4])),
            action("add", "c", &vector(&[4])),
            action("remove", "d", ""),
            action("add", "e", ""),
        ];
        let found = changes(&lines).unwrap();
        let one =
            |path: &str, kind: &str, rows: Option<Vec<u64>>| (path.to_owned(), Some(kind.to_owned()), rows);
        let expected = [
            one("d", "delete", None),
            one("e", "insert", None),
            one("a", "delete", Some(vec![7])),
            one("b", "delete", Some(vec![1])),
            one("c", "insert", Some(vec![2])),
        ];
        assert_eq!(summary(&found.derived), expected);
        assert_eq!(found.recorded.num_rows(), 0);
        let times = schema::map_values(map(&found.derived, "partitionValues").unwrap(), COMMIT_TIMESTAMP);
        assert_eq!(times.value(0), "1970-01-01T00:00:01.000000Z");
    }

    #[test]
    fn a_remove_action_without_a_partition_value_means_null() {
        let found = changes(&[action("remove", "a", ""), action("add", "b", "")]).unwrap().derived;
        let values = map(&found, "partitionValues").unwrap();
        let names = |row: usize| {
            values
                .value(row)
                .column(0)
                .as_string::<i32>()
                .iter()
                .flatten()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert!(names(0).contains(&"p".to_owned()));
        assert!(schema::map_values(values, "p").is_null(0));
        assert!(!names(1).contains(&"p".to_owned()), "an add action must have the value itself");
    }

    #[test]
    fn change_files_stand_for_all_of_their_commit() {
        let cdc =
            r#"{"cdc":{"path":"_change_data/c","partitionValues":{"p":null},"size":5,"dataChange":false}}"#
                .to_owned();
        let found = changes(&[action("remove", "a", ""), action("add", "b", ""), cdc]).unwrap();
        assert_eq!(summary(&found.recorded), [("_change_data/c".to_owned(), None, None)]);
        assert_eq!(found.derived.num_rows(), 0);
    }

    #[test]
    fn files_that_change_no_data_are_left_out() {
        let moved = |kind: &str| action(kind, kind, "").replace("true", "false");
        assert_eq!(changes(&[moved("remove"), moved("add")]).unwrap().derived.num_rows(), 0);
        let idle = concat!(
            r#"{"commitInfo":{"operation":"MERGE","#,
            r#""operationMetrics":{"numTargetRowsInserted":"0","numTargetRowsUpdated":"0","#,
            r#""numTargetRowsDeleted":"0"}}}"#,
        );
        assert_eq!(
            changes(&[idle.to_owned(), action("remove", "a", ""), action("add", "b", "")])
                .unwrap()
                .derived
                .num_rows(),
            0
        );
    }
}
