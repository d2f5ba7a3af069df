//! Finds the files that may hold a match: first by partition values, which decide exactly, then by
//! statistics.

use std::sync::Arc;

use arrow::array::{BooleanArray, Int64Array, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;

use super::path_order::{ordered, spelled_twice};
use super::statistics::{Statistics, StatisticsColumn, parse};
use super::typed_statistics::narrow;
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::log::reading::segment::{Columns, Piece};
use crate::log::schema::{ADD, conform, long, map, map_values, text};
use crate::parallel::{cut, on_threads};
use crate::predicate::statistics::{Bounds, Containers, may_match};
use crate::predicate::{Column, Predicate};
use crate::schema::partition_values::parse_array;

/// Maximum number of files of a piece for which all columns are decoded at once. For more files, the columns
/// that decide are decoded first.
const FEW: usize = 1024;

/// The selected files, ordered by path, and how many were ruled out for each reason.
#[derive(Debug, Default)]
pub struct Selection {
    /// Batches in the schema of the input.
    pub files: Vec<RecordBatch>,
    /// The path of a file that is live twice: with two vectors, or by two spellings of its path. The log is
    /// invalid then.
    pub live_twice: Option<String>,
    /// Number of files before selection.
    pub total_files: usize,
    /// Size in bytes of the files before selection.
    pub total_bytes: i64,
    /// Number of files ruled out by partition values.
    pub skipped_by_partition: usize,
    /// Number of files ruled out by statistics.
    pub skipped_by_statistics: usize,
}

/// Files as containers of rows, by their partition values and parsed statistics.
struct Files<'a> {
    batch: &'a RecordBatch,
    statistics: Option<(Vec<std::sync::Arc<Column>>, Statistics)>,
}

impl Containers for Files<'_> {
    fn len(&self) -> usize {
        self.batch.num_rows()
    }

    fn bounds(&self, column: &Column) -> Result<Option<Bounds>> {
        if column.partition {
            let name = column.physical.first().map(String::as_str).unwrap_or_default();
            let texts = map_values(map(self.batch, "partitionValues")?, name);
            let values = parse_array(&texts, &column.data_type).map_err(|error| {
                Error::protocol("a partition value is no value of its column")
                    .at(column.path.join("."))
                    .caused_by(error)
            })?;
            return Ok(Some(Bounds::of_partition(values)));
        }
        let Some((columns, statistics)) = &self.statistics else { return Ok(None) };
        let Some(at) = columns.iter().position(|known| known.as_ref() == column) else { return Ok(None) };
        let known = &statistics.columns[at];
        let (min, max, null_count) = (known.min.clone(), known.max.clone(), known.null_count.clone());
        Ok(Some(Bounds { min, max, null_count, row_count: statistics.num_records.clone(), exact: false }))
    }
}

/// The files that may hold a match, and how many each step ruled out.
#[derive(Debug, Default)]
struct SkippingOutcome {
    files: Vec<RecordBatch>,
    by_partition: usize,
    by_statistics: usize,
}

/// Returns the columns of a predicate that may have statistics.
fn of_statistics(predicate: &Predicate, skipping: bool) -> Vec<Arc<Column>> {
    if skipping {
        predicate.columns().into_iter().filter(|column| !column.partition).collect()
    } else {
        Vec::new()
    }
}

fn by_partition(batch: &RecordBatch, predicate: &Predicate) -> Result<BooleanArray> {
    may_match(predicate, &Files { batch, statistics: None })
}

fn by_statistics(
    batch: &RecordBatch,
    predicate: &Predicate,
    columns: &[Arc<Column>],
) -> Result<BooleanArray> {
    let wanted: Vec<StatisticsColumn<'_>> = columns
        .iter()
        .map(|column| StatisticsColumn {
            path: &column.physical,
            data_type: &column.data_type,
            was_float: column.was_float,
        })
        .collect();
    let statistics = parse(text(batch, "stats")?, &wanted)?;
    may_match(predicate, &Files { batch, statistics: Some((columns.to_vec(), statistics)) })
}

/// Returns the files of `batch` that may hold a match.
fn judge(batch: RecordBatch, predicate: &Predicate, skipping: bool) -> Result<SkippingOutcome> {
    let all = batch.num_rows();
    let batch = keep(batch, &|batch| by_partition(batch, predicate))?;
    let mut judged = SkippingOutcome { by_partition: all - batch.num_rows(), ..SkippingOutcome::default() };
    let columns = of_statistics(predicate, skipping);
    if columns.is_empty() || batch.num_rows() == 0 {
        judged.files.push(batch);
        return Ok(judged);
    }
    let left = batch.num_rows();
    let batch = keep(batch, &|batch| by_statistics(batch, predicate, &columns))?;
    judged.by_statistics = left - batch.num_rows();
    judged.files.push(batch);
    Ok(judged)
}

fn keep(batch: RecordBatch, mask: &dyn Fn(&RecordBatch) -> Result<BooleanArray>) -> Result<RecordBatch> {
    let mask = mask(&batch)?;
    if mask.true_count() == mask.len() { Ok(batch) } else { Ok(filter_record_batch(&batch, &mask)?) }
}

/// Returns `bits` without the set bits whose answer is false. `answers`: one for each set bit, in order.
pub fn kept(bits: &BooleanBuffer, answers: impl Iterator<Item = bool>) -> BooleanBuffer {
    let mut left = vec![false; bits.len()];
    for (at, answer) in bits.set_indices().zip(answers) {
        left[at] = answer;
    }
    BooleanBuffer::from(left)
}

/// Returns the files of a piece that may hold a match. For rows that are not in memory, no further column is
/// decoded once a file is ruled out.
fn judge_piece(
    piece: &Piece<'_>,
    predicate: &Predicate,
    skipping: bool,
    interrupt: &Interrupt,
) -> Result<SkippingOutcome> {
    let mut judged = SkippingOutcome::default();
    let mut left = piece.live();
    if let Some(slice) = piece.segment().slice() {
        let narrowed = narrow(slice, predicate, skipping, left, interrupt)?;
        (judged.by_partition, judged.by_statistics) = (narrowed.by_partition, narrowed.by_statistics);
        left = narrowed.keep;
        if left.count_set_bits() > FEW {
            judge_narrow(piece, predicate, skipping, &mut left, &mut judged, interrupt)?;
        }
    }
    for batch in piece.read(Columns::All, &left, interrupt)? {
        let more = judge(batch, predicate, skipping)?;
        judged.by_partition += more.by_partition;
        judged.by_statistics += more.by_statistics;
        judged.files.extend(more.files);
    }
    Ok(judged)
}

/// Selects rows of a piece, decoding only the columns that the predicate needs.
fn judge_narrow(
    piece: &Piece<'_>,
    predicate: &Predicate,
    skipping: bool,
    left: &mut BooleanBuffer,
    judged: &mut SkippingOutcome,
    interrupt: &Interrupt,
) -> Result<()> {
    let with_partitions = predicate.columns().iter().any(|column| column.partition);
    let answers = |columns,
                   mask: &dyn Fn(&RecordBatch) -> Result<BooleanArray>,
                   left: &mut BooleanBuffer|
     -> Result<usize> {
        let before = left.count_set_bits();
        let mut answers = Vec::with_capacity(before);
        for batch in piece.read(columns, left, interrupt)? {
            answers.extend(mask(&batch)?.iter().map(|may| may != Some(false)));
        }
        *left = kept(left, answers.into_iter());
        Ok(before - left.count_set_bits())
    };
    if with_partitions {
        judged.by_partition +=
            answers(Columns::Of(&["partitionValues"]), &|batch| by_partition(batch, predicate), left)?;
    }
    let columns = of_statistics(predicate, skipping);
    if !columns.is_empty() {
        let wanted = Columns::Of(if with_partitions { &["partitionValues", "stats"] } else { &["stats"] });
        judged.by_statistics += answers(wanted, &|batch| by_statistics(batch, predicate, &columns), left)?;
    }
    Ok(())
}

/// Selects the files of a table of adds that may hold a match. Without a predicate, selects all files.
pub fn select(
    live: &RecordBatch,
    predicate: Option<&Predicate>,
    skipping: bool,
    interrupt: &Interrupt,
) -> Result<Selection> {
    let totals = Selection {
        total_files: live.num_rows(),
        total_bytes: sum(long(live, "size")?),
        ..Selection::default()
    };
    let all = || SkippingOutcome { files: vec![live.clone()], ..SkippingOutcome::default() };
    let judged = match predicate {
        None => vec![all()],
        Some(predicate) => {
            on_threads(&cut(live), interrupt, &|piece| judge(piece.clone(), predicate, skipping))?
        }
    };
    totals.of(judged, "", interrupt)
}

/// Returns the positions of the files that may hold a match, ascending. A path may occur several times.
pub fn positions(files: &RecordBatch, predicate: &Predicate, interrupt: &Interrupt) -> Result<Vec<u32>> {
    let batch = conform(files, &ADD)?;
    let count = u32::try_from(batch.num_rows())
        .map_err(|_| Error::new(Kind::InvalidArgument, "too many files").found(batch.num_rows()))?;
    let mut columns = batch.columns().to_vec();
    // The positions are passed in a column that no predicate reads.
    columns[ADD.index_of("baseRowId")?] = Arc::new(Int64Array::from_iter_values((0..count).map(i64::from)));
    let numbered = RecordBatch::try_new(Arc::clone(&ADD), columns)?;
    let judged = on_threads(&cut(&numbered), interrupt, &|piece| judge(piece.clone(), predicate, true))?;
    let mut left = Vec::new();
    for batch in judged.iter().flat_map(|judged| &judged.files) {
        left.extend(
            long(batch, "baseRowId")?.iter().flatten().filter_map(|position| u32::try_from(position).ok()),
        );
    }
    Ok(left)
}

/// Selects files of a version, on several threads if there are many. `totals`: number and bytes of all files.
pub fn select_live(
    root: &str,
    live: &[Piece<'_>],
    totals: Selection,
    predicate: Option<&Predicate>,
    skipping: bool,
    interrupt: &Interrupt,
) -> Result<Selection> {
    let judged = on_threads(live, interrupt, &|piece| match predicate {
        None => Ok(SkippingOutcome {
            files: piece.read(Columns::All, &piece.live(), interrupt)?,
            ..SkippingOutcome::default()
        }),
        Some(predicate) => judge_piece(piece, predicate, skipping, interrupt),
    })?;
    totals.of(judged, root, interrupt)
}

impl Selection {
    fn of(mut self, judged: Vec<SkippingOutcome>, root: &str, interrupt: &Interrupt) -> Result<Self> {
        let mut left = Vec::new();
        for judged in judged {
            self.skipped_by_partition += judged.by_partition;
            self.skipped_by_statistics += judged.by_statistics;
            left.extend(judged.files.into_iter().filter(|batch| batch.num_rows() > 0));
        }
        (self.files, self.live_twice) = ordered(&left, interrupt)?;
        if self.live_twice.is_none() {
            self.live_twice = spelled_twice(&self.files, root)?;
        }
        if self.files.is_empty() {
            self.files.push(RecordBatch::new_empty(Arc::clone(&ADD)));
        }
        Ok(self)
    }
}

fn sum(sizes: &Int64Array) -> i64 {
    sizes.iter().flatten().fold(0, i64::saturating_add)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::log::skipping::statistics::num_records;
    use crate::predicate::parse::from_json;
    use crate::schema::TableSchema;
    use arrow::array::{ArrayRef, MapBuilder, StringArray, StringBuilder};
    use std::sync::Arc;

    const SCHEMA: &str = concat!(
        r#"{"type":"struct","fields":[
        {"name":"p","type":"integer","nullable":true,"metadata":{}},
        {"name":"i","type":"long","nullable":true,"metadata":{}},
        {"name":"t","type":"timestamp","nullable":true,"metadata":{}},
        {"name":"n","type":"decimal(38,2)","nullable":true,"metadata":{}},
        {"name":"s","type":{"type":"struct","fields":[{"name":"x","type":"string","nullable":true,"#,
        r#""metadata":{}}]},"nullable":true,"metadata":{}}]}"#,
    );

    fn adds(rows: &[(Option<&str>, Option<&str>)]) -> RecordBatch {
        let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for (p, _) in rows {
            maps.keys().append_value("p");
            maps.values().append_option(*p);
            maps.append(true).unwrap();
        }
        let stats: StringArray = rows.iter().map(|(_, stats)| *stats).collect();
        let row: Int64Array = (0..rows.len() as i64).collect();
        RecordBatch::try_from_iter([
            ("partitionValues", Arc::new(maps.finish()) as ArrayRef),
            ("stats", Arc::new(stats)),
            ("row", Arc::new(row)),
        ])
        .unwrap()
    }

    fn kept(rows: &[(Option<&str>, Option<&str>)], predicate: &str) -> (Vec<bool>, usize, usize) {
        let schema = TableSchema::parse(SCHEMA, &["p".to_owned()], "none").unwrap();
        let predicate = from_json(predicate, &|path| Column::resolve(&schema, path)).unwrap();
        let judged = judge(adds(rows), &predicate, true).unwrap();
        let left: Vec<i64> =
            judged.files.iter().flat_map(|left| long(left, "row").unwrap().values().to_vec()).collect();
        (
            (0..rows.len() as i64).map(|row| left.contains(&row)).collect(),
            judged.by_partition,
            judged.by_statistics,
        )
    }

    #[test]
    fn partitions_then_statistics() {
        let rows = [
            (
                Some("1"),
                Some(r#"{"numRecords":3,"minValues":{"i":1},"maxValues":{"i":5},"nullCount":{"i":0}}"#),
            ),
            (
                Some("1"),
                Some(r#"{"numRecords":3,"minValues":{"i":7},"maxValues":{"i":9},"nullCount":{"i":0}}"#),
            ),
            (
                Some("2"),
                Some(r#"{"numRecords":3,"minValues":{"i":1},"maxValues":{"i":5},"nullCount":{"i":0}}"#),
            ),
            (None, None),
        ];
        let both = concat!(
            r#"{"op":"and","args":[{"op":"=","column":["p"],"literal":"1"},"#,
            r#"{"op":"<","column":["i"],"literal":"6"}]}"#,
        );
        assert_eq!(kept(&rows, both), (vec![true, false, false, false], 2, 1));
        assert_eq!(
            kept(&rows, r#"{"op":"is_null","column":["p"]}"#),
            (vec![false, false, false, true], 3, 0)
        );
    }

    #[test]
    fn what_is_missing_or_broken_never_skips() {
        let rows = [
            (None, None),
            (None, Some("")),
            (None, Some("{")),
            (None, Some("[]")),
            (None, Some(r#"{"minValues":{"i":"x"},"maxValues":{"i":null}}"#)),
            (None, Some(r#"{"minValues":{"i":8},"maxValues":{"i":9},"numRecords":1"#)),
            (None, Some(r#"{"minValues":3,"maxValues":{"s":7}}"#)),
        ];
        assert_eq!(kept(&rows, r#"{"op":"=","column":["i"],"literal":"1"}"#).0, vec![true; 7]);
    }

    #[test]
    fn rounded_bounds_are_widened() {
        let cut = concat!(
            r#"{"numRecords":1,"minValues":{"t":"2024-01-01T00:00:00.123Z"},"#,
            r#""maxValues":{"t":"2024-01-01T00:00:00.123Z"}}"#,
        );
        let at = |literal: &str| {
            kept(&[(None, Some(cut))], &format!(r#"{{"op":"=","column":["t"],"literal":"{literal}"}}"#)).0[0]
        };
        assert!(at("2024-01-01T00:00:00.123999Z"));
        assert!(!at("2024-01-01T00:00:00.124Z"));
        assert!(!at("2024-01-01T00:00:00.122999Z"));
        let double =
            r#"{"numRecords":1,"minValues":{"n":12345678901234567.89},"maxValues":{"n":12345678901234568}}"#;
        assert!(
            kept(&[(None, Some(double))], r#"{"op":">","column":["n"],"literal":"12345678901234568.01"}"#).0
                [0]
        );
    }

    #[test]
    fn nested_columns_and_null_counts() {
        let rows = [
            (
                None,
                Some(concat!(
                    r#"{"numRecords":2,"minValues":{"s":{"x":"b"}},"maxValues":{"s":{"x":"d"}},"#,
                    r#""nullCount":{"s":{"x":0}}}"#,
                )),
            ),
            (None, Some(r#"{"numRecords":2,"nullCount":{"s":{"x":2}},"tightBounds":false}"#)),
        ];
        assert_eq!(kept(&rows, r#"{"op":"=","column":["s","x"],"literal":"c"}"#).0, [true, false]);
        assert_eq!(kept(&rows, r#"{"op":"is_null","column":["s","x"]}"#).0, [false, true]);
        assert_eq!(num_records(text(&adds(&rows), "stats").unwrap()), Int64Array::from(vec![2, 2]));
    }
}
