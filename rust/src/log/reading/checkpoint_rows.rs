//! Converts rows of a checkpoint to actions. Each error has file and row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, StringBuilder, StructArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, filter_record_batch, is_not_null};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};

use super::commit::Commit;
use super::line::TextKind;
use crate::error::{Error, Result};
use crate::log::json_text::write_value;
use crate::log::schema::{self, ADD, REMOVE};

/// A batch of a checkpoint, and its position in the file.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The columns that were read.
    pub batch: &'a RecordBatch,
    /// Number of rows of the file before the batch.
    pub first: usize,
    /// Name of the file.
    pub path: &'a str,
}

impl Rows<'_> {
    /// Returns, for an error, the file's name and the number of the row with the `nth` action of this kind.
    fn place(&self, name: &str, nth: usize) -> String {
        let rows = self.batch.column_by_name(name);
        let row =
            rows.and_then(|rows| (0..rows.len()).filter(|row| rows.is_valid(*row)).nth(nth)).unwrap_or(nth);
        format!("{} row {}", self.path, self.first + row)
    }
}

/// Adds the actions in these rows to the state. An error has file and row.
pub fn take_batch(state: &mut Commit, rows: &Rows<'_>) -> Result<()> {
    let file = |error: Error| error.within(rows.path);
    state.adds.extend(actions_of(rows, "add", &ADD)?);
    state.removes.extend(actions_of(rows, "remove", &REMOVE)?);
    for (name, kind) in [
        ("protocol", TextKind::Protocol),
        ("metaData", TextKind::Metadata),
        ("sidecar", TextKind::Sidecar),
        ("txn", TextKind::Transaction),
        ("domainMetadata", TextKind::Domain),
    ] {
        for (nth, text) in texts(rows.batch, name).map_err(file)?.into_iter().enumerate() {
            match kind {
                TextKind::Protocol => state.places.protocol = Some(rows.place(name, nth)),
                TextKind::Metadata => state.places.metadata = Some(rows.place(name, nth)),
                _ => {}
            }
            state.take_text(kind, text).map_err(|error| error.at(rows.place(name, nth)))?;
        }
    }
    Ok(())
}

/// Returns the actions on files of one kind in these rows, in the columns of `schema`. `None` if there are
/// none.
pub fn actions_of(rows: &Rows<'_>, name: &str, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
    let file = |error: Error| error.within(rows.path);
    let Some(found) = rows_of(rows.batch, name).map_err(file)? else { return Ok(None) };
    let found = if schema.index_of("stats").is_ok() { with_statistics(&found).map_err(file)? } else { found };
    checked(rows, &files(&found, schema, name).map_err(file)?, schema, name).map(Some)
}

/// Returns the rows with this action.
fn rows_of(batch: &RecordBatch, name: &str) -> Result<Option<StructArray>> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    let Some(rows) = column.as_struct_opt() else {
        let error = Error::protocol("an action of the checkpoint is no struct").at(name);
        return Err(error.found(column.data_type()).expected("a struct"));
    };
    if rows.null_count() == rows.len() {
        return Ok(None);
    }
    if rows.null_count() == 0 {
        return Ok(Some(rows.clone()));
    }
    let present = is_not_null(rows)?;
    let kept = filter_record_batch(&RecordBatch::try_from_iter([(name, Arc::clone(column))])?, &present)?;
    Ok(kept.column(0).as_struct_opt().cloned())
}

fn texts(batch: &RecordBatch, name: &str) -> Result<Vec<String>> {
    let Some(rows) = rows_of(batch, name)? else { return Ok(Vec::new()) };
    let write = |row| {
        let mut text = String::new();
        write_value(&mut text, &rows, row).map(|_| text)
    };
    (0..rows.len()).map(write).collect()
}

/// Returns these actions in the columns of `schema`. All columns may still be null.
fn files(rows: &StructArray, schema: &SchemaRef, name: &str) -> Result<RecordBatch> {
    if schema.index_of("path").is_ok() && rows.column_by_name("path").is_none() {
        let columns: Vec<&str> = rows.fields().iter().map(|field| field.name().as_str()).collect();
        return Err(Error::protocol("an action without a path")
            .at(name)
            .found(columns.join(", "))
            .expected("path"));
    }
    let nullable = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    let nullable = Arc::new(Schema::new(nullable.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(rows.fields().clone())), rows.columns().to_vec())?;
    schema::conform(&batch, &nullable).map_err(|error| error.within(name))
}

/// Returns the actions in `schema`. An action that would be an error in a commit is an error here too.
fn checked(rows: &Rows<'_>, files: &RecordBatch, schema: &SchemaRef, name: &str) -> Result<RecordBatch> {
    let wrong = |row: usize, found: String, expected: &str| {
        Error::protocol("the action on a file is malformed")
            .at(rows.place(name, row))
            .found(found)
            .expected(expected)
    };
    let first_null = |column: &ArrayRef| {
        (column.null_count() > 0).then(|| (0..column.len()).find(|row| column.is_null(*row))).flatten()
    };
    let needed: &[&str] = if name == "add" { &["path", "partitionValues", "size"] } else { &["path"] };
    for field in needed {
        if let Some(row) = files.column_by_name(field).and_then(first_null) {
            return Err(wrong(row, "no such field".to_owned(), field));
        }
    }
    if let Ok(paths) = schema::text(files, "path")
        && let Some(row) = paths.iter().position(|path| path == Some(""))
    {
        return Err(wrong(row, "an empty path".to_owned(), "a path"));
    }
    if let Ok(sizes) = schema::long(files, "size")
        && let Some((row, size)) =
            sizes.iter().enumerate().find_map(|(row, size)| size.filter(|s| *s < 0).map(|s| (row, s)))
    {
        return Err(wrong(row, format!("size {size}"), "a size of 0 or more"));
    }
    let mut columns = files.columns().to_vec();
    if let Ok(vectors) = schema::vectors(files)
        && vectors.null_count() < vectors.len()
    {
        columns[schema.index_of("deletionVector")?] = Arc::new(checked_vectors(vectors, &wrong)?);
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// Checks that descriptors are complete. For a file without a vector, some writers write a descriptor of
/// nulls.
fn checked_vectors(
    vectors: &StructArray,
    wrong: &dyn Fn(usize, String, &str) -> Error,
) -> Result<StructArray> {
    let there =
        |row: usize| vectors.is_valid(row) && vectors.columns().iter().any(|column| column.is_valid(row));
    let numbers = [vectors.column(2), vectors.column(3), vectors.column(4)]
        .map(|column| cast(column, &DataType::Int64));
    for row in (0..vectors.len()).filter(|row| there(*row)) {
        for (at, field) in [(0, "storageType"), (1, "pathOrInlineDv"), (3, "sizeInBytes"), (4, "cardinality")]
        {
            if vectors.column(at).is_null(row) {
                return Err(wrong(row, "no such field".to_owned(), &format!("deletionVector.{field}")));
            }
        }
        for number in &numbers {
            let number = number
                .as_ref()
                .map_err(|error| wrong(row, error.to_string(), "numbers"))?
                .as_primitive::<Int64Type>();
            if number.is_valid(row) && number.value(row) < 0 {
                return Err(wrong(
                    row,
                    "a negative number in deletionVector".to_owned(),
                    "sizes of 0 or more",
                ));
            }
        }
    }
    let nulls = NullBuffer::from_iter((0..vectors.len()).map(there));
    Ok(StructArray::try_new(vectors.fields().clone(), vectors.columns().to_vec(), Some(nulls))?)
}

/// Adds statistics as JSON to the files that have only typed ones.
fn with_statistics(adds: &StructArray) -> Result<StructArray> {
    // Typed statistics are not read for tombstones.
    let Some(typed) = adds.column_by_name("stats_parsed") else { return Ok(adds.clone()) };
    let json = adds
        .column_by_name("stats")
        .map(|column| schema::conform_column(column, &DataType::Utf8, "stats"))
        .transpose()?;
    let json: Option<&StringArray> = json.as_ref().map(|column| column.as_string::<i32>());
    let mut out = StringBuilder::new();
    let mut text = String::new();
    for row in 0..adds.len() {
        match json.filter(|json| json.is_valid(row)) {
            Some(json) => out.append_value(json.value(row)),
            None => {
                text.clear();
                let known = write_value(&mut text, typed.as_ref(), row)?;
                out.append_option(known.then_some(text.as_str()));
            }
        }
    }
    let stats: ArrayRef = Arc::new(out.finish());
    let rest = adds
        .fields()
        .iter()
        .zip(adds.columns())
        .filter(|(field, _)| field.name() != "stats" && field.name() != "stats_parsed");
    let stats_field = Arc::new(Field::new("stats", DataType::Utf8, true));
    let (fields, columns): (Vec<_>, Vec<_>) = rest
        .map(|(field, column)| (Arc::clone(field), Arc::clone(column)))
        .chain([(stats_field, stats)])
        .unzip();
    Ok(StructArray::try_new(fields.into(), columns, adds.nulls().cloned())?)
}
