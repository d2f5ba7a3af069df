//! Converts actions in Arrow to the JSON lines of a commit.

use arrow::array::{Array, AsArray, RecordBatch, StructArray};

use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::log::json_text::write_value;
use crate::log::reading::once::check;
use crate::log::schema;
use crate::parallel::{cut, on_threads};

/// Returns the lines of a commit in this order: `actions` (each a JSON object, commitInfo first), removes,
/// adds, change files. Nulls are omitted. The body of the commit is the concatenation of all texts.
///
/// The tables may have their columns in any order, and any text types. A path that is added twice or removed
/// twice is an error.
pub fn commit_body(
    actions: &[String],
    adds: Option<&RecordBatch>,
    removes: Option<&RecordBatch>,
    cdc: Option<&RecordBatch>,
    interrupt: &Interrupt,
) -> Result<Vec<String>> {
    let mut out = String::new();
    for action in actions {
        check_action(action)?;
        out.push_str(action);
        out.push('\n');
    }
    let adds = adds.map(complete_adds).transpose()?;
    let removes = removes.map(|batch| schema::conform(batch, &schema::REMOVE)).transpose()?;
    let cdc = cdc.map(|batch| schema::conform(batch, &schema::CDC)).transpose()?;
    check("", "commit", adds.as_slice(), removes.as_slice(), false, interrupt)?;
    let mut body = vec![out];
    for (name, batch) in [("remove", &removes), ("add", &adds), ("cdc", &cdc)] {
        if let Some(batch) = batch {
            body.extend(action_lines(name, batch, interrupt)?);
        }
    }
    Ok(body)
}

/// Returns the number of bytes of the text columns.
fn text_bytes(rows: &StructArray) -> usize {
    let texts = rows.columns().iter().filter_map(|column| column.as_string_opt::<i32>());
    texts
        .filter_map(|texts| Some(texts.value_offsets().last()? - texts.value_offsets().first()?))
        .map(|bytes| bytes as usize)
        .sum()
}

/// Returns add actions in [`schema::ADD`], as a commit has them. Null partitionValues of all rows become
/// empty maps, as an add must have them.
pub fn complete_adds(adds: &RecordBatch) -> Result<RecordBatch> {
    let adds = schema::conform(adds, &schema::ADD)?;
    let at = adds.schema_ref().index_of("partitionValues")?;
    if adds.column(at).null_count() == 0 {
        return Ok(adds);
    }
    if adds.column(at).null_count() < adds.num_rows() {
        return Err(Error::new(Kind::InvalidArgument, "an add action without partitionValues"));
    }
    let mut columns = adds.columns().to_vec();
    columns[at] = schema::empty_maps(adds.num_rows())?;
    Ok(RecordBatch::try_new(adds.schema(), columns)?)
}

fn check_action(action: &str) -> Result<()> {
    let wrong =
        || Error::new(Kind::InvalidArgument, "an action is one JSON object on one line").found(action);
    if action.contains(['\n', '\r']) || !action.starts_with('{') {
        return Err(wrong());
    }
    serde_json::from_str::<serde::de::IgnoredAny>(action).map_err(|error| wrong().caused_by(error)).map(drop)
}

/// Returns a line for each row, as texts to be concatenated; for many rows, several threads write one text
/// each.
pub fn action_lines(name: &str, batch: &RecordBatch, interrupt: &Interrupt) -> Result<Vec<String>> {
    // Columns that are all null are skipped as a whole: most tables have no tags, vectors and row ids.
    let with_values: Vec<usize> =
        (0..batch.num_columns()).filter(|&at| batch.column(at).null_count() < batch.num_rows()).collect();
    on_threads(&cut(&batch.project(&with_values)?), interrupt, &|piece| {
        let rows = StructArray::from(piece.clone());
        let mut out = String::with_capacity(rows.len() * 32 + text_bytes(&rows) * 5 / 4);
        for row in 0..rows.len() {
            out.push_str("{\"");
            out.push_str(name);
            out.push_str("\":");
            write_value(&mut out, &rows, row)?;
            out.push_str("}\n");
        }
        Ok(out)
    })
}
