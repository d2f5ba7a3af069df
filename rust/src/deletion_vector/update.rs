//! Merges rows to delete into vectors, writes them, and makes the actions for them. PROTOCOL.md, "Deletion
//! Vectors" and "Writer Requirements for Deletion Vectors".

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::take_record_batch;
use std::sync::Arc;

use super::pack::{self, Packer, VectorTarget};
use super::wide_statistics::Statistics;
use super::{DeletionVector, Descriptor, RowIds, VectorRequest, columns, footer, read_all};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::log::schema;
use crate::log::state::actions;
use crate::store::Store;

/// The actions that mark rows as deleted, and the vector files that were written for them.
#[derive(Debug)]
pub struct VectorChanges {
    /// `add` rows with merged vectors; none for a file with no row left.
    pub adds: RecordBatch,
    /// `remove` rows of the files as they were.
    pub removes: RecordBatch,
    /// Numbers of rows, vectors and files.
    pub metrics: Metrics,
    /// Paths of the vector files, which the caller deletes if the commit fails.
    pub written: Vec<String>,
}

/// Counts as delta-spark reports them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// Number of rows that were live before and are deleted now.
    pub num_deleted_rows: u64,
    /// Number of new vectors: first vectors of files, and those that replace an older one.
    pub num_deletion_vectors_added: u64,
    /// Number of vectors that are no longer used: those of removed files, and replaced ones.
    pub num_deletion_vectors_removed: u64,
    /// Number of vectors that replace an older one.
    pub num_deletion_vectors_updated: u64,
    /// Number of files with no row left.
    pub num_removed_files: u64,
    /// Number of bytes of the written vector files.
    pub num_bytes_written: u64,
}

impl Metrics {
    /// Returns the counts with their names.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("num_deleted_rows", self.num_deleted_rows),
            ("num_deletion_vectors_added", self.num_deletion_vectors_added),
            ("num_deletion_vectors_removed", self.num_deletion_vectors_removed),
            ("num_deletion_vectors_updated", self.num_deletion_vectors_updated),
            ("num_removed_files", self.num_removed_files),
            ("num_bytes_written", self.num_bytes_written),
        ]
    }
}

/// A file with rows to delete.
struct MarkedFile {
    position: usize,
    statistics: Statistics,
    num_records: u64,
    old: Option<DeletionVector>,
    merged: DeletionVector,
}

/// Merges `rows` into the vectors of `files` (`add` rows, named by position or ordinal) and writes them.
/// A file none of whose rows is new to its vector is left as it is.
///
/// # Errors
/// A row is not in its file; a vector or footer cannot be read; the store fails. Then nothing stays written.
pub fn mark_deleted(
    store: &Arc<dyn Store>,
    files: &RecordBatch,
    rows: &RowIds,
    deletion_timestamp: i64,
    packing: &VectorTarget,
    interrupt: &Interrupt,
) -> Result<VectorChanges> {
    pack::check(packing)?;
    let touched = touch(store, files, rows, interrupt)?;
    let mut packer = Packer::new(store, packing);
    let vectors = touched.iter().map(|file| {
        interrupt.check()?;
        if file.is_gone() { Ok(None) } else { packer.add(&file.merged).map(Some) }
    });
    let vectors = vectors.collect::<Result<Vec<_>>>()?;
    let changed = schema::conform(&take(files, touched.iter().map(|file| file.position))?, &schema::ADD)?;
    let removes = actions::removes_of(&changed, deletion_timestamp, true)?;
    let mut metrics = count(&touched);
    let adds = new_adds(&changed, touched, vectors)?;
    let (written, bytes) = packer.finish()?;
    metrics.num_bytes_written = bytes;
    Ok(VectorChanges { adds, removes, metrics, written })
}

/// Reads the statistics and vectors of the files with `rows`, and adds the rows to the vectors. Omits files
/// whose vector does not change.
fn touch(
    store: &Arc<dyn Store>,
    files: &RecordBatch,
    rows: &RowIds,
    interrupt: &Interrupt,
) -> Result<Vec<MarkedFile>> {
    let positions = rows.positions(files)?;
    let wanted_files = take(files, positions.iter().map(|(at, _)| *at))?;
    let wanted_files = schema::conform(&wanted_files, &schema::ADD)?;
    let (paths, stats) = (schema::text(&wanted_files, "path")?, schema::text(&wanted_files, "stats")?);
    let mut known = Vec::with_capacity(positions.len());
    let mut wanted = Vec::with_capacity(positions.len());
    for (row, descriptor) in columns::read(schema::vectors(&wanted_files)?)?.into_iter().enumerate() {
        interrupt.check()?;
        let statistics = Statistics::parse(stats.is_valid(row).then(|| stats.value(row)))
            .map_err(|error| error.at(paths.value(row)))?;
        let num_records =
            statistics.num_records().map_or_else(|| footer::rows(store, paths.value(row)), Ok)?;
        wanted
            .push(descriptor.map(|descriptor| VectorRequest { descriptor, num_records: Some(num_records) }));
        known.push((statistics, num_records));
    }
    let old = read_all(store.as_ref(), &wanted)?;
    let mut touched = Vec::with_capacity(positions.len());
    for (row, (((position, ordinal), (statistics, num_records)), old)) in
        positions.into_iter().zip(known).zip(old).enumerate()
    {
        let Some(new) = rows.of_file(ordinal) else { continue };
        check_rows(new, num_records).map_err(|error| error.at(paths.value(row)))?;
        let merged = old.as_ref().map_or_else(|| new.clone(), |old| old.union(new));
        let file = MarkedFile { position, statistics, num_records, old, merged };
        if file.newly_deleted() > 0 {
            touched.push(file);
        }
    }
    Ok(touched)
}

impl MarkedFile {
    fn deleted_before(&self) -> u64 {
        self.old.as_ref().map_or(0, DeletionVector::cardinality)
    }

    fn newly_deleted(&self) -> u64 {
        self.merged.cardinality() - self.deleted_before()
    }

    /// True if no row is left.
    fn is_gone(&self) -> bool {
        self.merged.cardinality() == self.num_records
    }
}

fn check_rows(rows: &DeletionVector, num_records: u64) -> Result<()> {
    match rows.max() {
        Some(row) if row >= num_records => {
            Err(Error::protocol("data file has fewer rows than were read from it")
                .found(format!("row {row}"))
                .expected(format!("rows below {num_records} (numRecords)")))
        }
        _ => Ok(()),
    }
}

fn take(files: &RecordBatch, positions: impl Iterator<Item = usize>) -> Result<RecordBatch> {
    Ok(take_record_batch(files, &UInt32Array::from_iter_values(positions.map(|at| at as u32)))?)
}

/// Returns the `add` rows of the files that have a row left, with their new vectors and statistics. `None` in
/// `vectors`: no row is left.
fn new_adds(
    changed: &RecordBatch,
    touched: Vec<MarkedFile>,
    vectors: Vec<Option<Descriptor>>,
) -> Result<RecordBatch> {
    let kept: Vec<_> =
        vectors.iter().enumerate().filter_map(|(at, vector)| vector.as_ref().map(|_| at)).collect();
    let adds = take(changed, kept.into_iter())?;
    let (files, vectors): (Vec<_>, Vec<_>) =
        touched.into_iter().zip(vectors).filter(|(_, vector)| vector.is_some()).unzip();
    let stats = files.into_iter().map(|file| {
        let deleted = file.deleted_before();
        file.statistics.widen(file.num_records, deleted).map(Some)
    });
    let stats: ArrayRef = Arc::new(StringArray::from(stats.collect::<Result<Vec<_>>>()?));
    let vectors: ArrayRef = Arc::new(columns::write(&vectors)?);
    let changes: ArrayRef = Arc::new(BooleanArray::from(vec![true; adds.num_rows()]));
    let columns = adds.schema_ref().fields().iter().zip(adds.columns()).map(|(field, column)| {
        match field.name().as_str() {
            "stats" => Arc::clone(&stats),
            "deletionVector" => Arc::clone(&vectors),
            "dataChange" => Arc::clone(&changes),
            _ => Arc::clone(column),
        }
    });
    Ok(RecordBatch::try_new(adds.schema(), columns.collect())?)
}

fn count(touched: &[MarkedFile]) -> Metrics {
    let mut metrics = Metrics::default();
    for file in touched {
        metrics.num_deleted_rows += file.newly_deleted();
        metrics.num_removed_files += u64::from(file.is_gone());
        // A replaced vector counts as added, removed and updated.
        metrics.num_deletion_vectors_added += u64::from(!file.is_gone());
        metrics.num_deletion_vectors_removed += u64::from(file.old.is_some());
        metrics.num_deletion_vectors_updated += u64::from(!file.is_gone() && file.old.is_some());
    }
    metrics
}
