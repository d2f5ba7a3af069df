//! Writes a snapshot as a classic checkpoint, one batch at a time ("Checkpoint Schema", "Checkpoint Format").

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::compute_leaves;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use super::checkpoint_columns::{Plan, single_actions};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::log::reading::line::FileKind;
use crate::log::reading::segment::{Piece, each_piece};
use crate::log::reading::sidecar::{Sidecar, unexpired};
use crate::log::state::snapshot::Snapshot;
use crate::pages::checksums::{ColumnWriter, ColumnWriters};
use crate::schema::TableSchema;
use crate::store::noted_writer::{NotedWriter, WriteFailure};
use crate::store::{ObjectWriter, Store};

/// Number of rows in a row group. A large checkpoint has several, which readers decode in parallel.
const GROUP_ROWS: usize = 128 * 1024;

/// Number of pieces that are prepared at once, on several threads.
const AT_ONCE: usize = 2;

/// Which actions and columns a checkpoint has.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// Tombstones of files deleted up to this time (ms since 1970) are omitted.
    pub min_deletion_timestamp: i64,
    /// Transactions last updated before this time are omitted, but those without a time are kept.
    pub min_transaction_timestamp: Option<i64>,
    /// True to write `stats`, the statistics as JSON.
    pub stats_as_json: bool,
    /// The table's schema, to write `stats_parsed` and `partitionValues_parsed`; `None`: they are not
    /// written.
    pub stats_as_struct: Option<Arc<TableSchema>>,
}

/// What was written as a checkpoint.
#[derive(Debug, Clone)]
pub struct WrittenCheckpoint {
    /// Number of actions.
    pub actions: usize,
    /// Number of add actions.
    pub adds: usize,
    /// Size of all files in bytes.
    pub bytes: u64,
    /// Size in bytes of the file that is named as a checkpoint.
    pub top_bytes: u64,
    /// The sidecars of a V2 checkpoint.
    pub sidecars: Vec<Arc<Sidecar>>,
    /// Number of sidecars that existed before and are referred to again.
    pub kept: usize,
    /// The columns of the checkpoint.
    pub schema: SchemaRef,
}

/// Writes the checkpoint at `path`, atomically.
pub fn write(
    snapshot: &Snapshot,
    store: &dyn Store,
    path: &str,
    choices: &Choices,
    interrupt: &Interrupt,
) -> Result<WrittenCheckpoint> {
    let plan = Plan::new(choices, false)?;
    let mut file = Sink::create(store, path, &plan.schema)?;
    let (mut actions, mut adds) = (0, 0);
    for batch in single_actions(snapshot, choices, &plan)? {
        actions += batch.num_rows();
        file.push(&batch)?;
    }
    for kind in [FileKind::Add, FileKind::Remove] {
        // A few pieces at a time, so that only their live rows are in memory.
        for pieces in snapshot.live(interrupt)?.pieces(kind).chunks(AT_ONCE) {
            let ready = |piece: &Piece<'_>| {
                let rows = unexpired(piece, choices.min_deletion_timestamp, interrupt)?;
                rows.iter().map(|batch| plan.actions(kind, batch)).collect::<Result<Vec<_>>>()
            };
            for batch in each_piece(pieces, interrupt, &ready)?.iter().flatten() {
                actions += batch.num_rows();
                adds += if kind == FileKind::Add { batch.num_rows() } else { 0 };
                file.push(batch)?;
            }
        }
    }
    let bytes = file.finish()?;
    Ok(WrittenCheckpoint {
        actions,
        adds,
        bytes,
        top_bytes: bytes,
        sidecars: Vec::new(),
        kept: 0,
        schema: plan.schema,
    })
}

/// A Parquet file that is being written. If it is dropped before `finish`, no file is left.
pub(super) struct Sink {
    writer: SerializedFileWriter<NotedWriter<Box<dyn ObjectWriter>>>,
    failure: WriteFailure,
    schema: SchemaRef,
    columns: ColumnWriters,
    /// The current row group: a writer for each leaf, and the number of rows.
    group: Vec<ColumnWriter>,
    rows: usize,
    path: String,
}

impl Sink {
    /// Creates a file at `path` in the store.
    pub fn create(store: &dyn Store, path: &str, schema: &SchemaRef) -> Result<Self> {
        let mut properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        for column in [["add", "path"], ["add", "stats"], ["remove", "path"]] {
            // All values differ, so a dictionary would only take space.
            properties = properties
                .set_column_dictionary_enabled(ColumnPath::from(column.map(String::from).to_vec()), false);
        }
        let root = ArrowSchemaConverter::new().convert(schema)?.root_schema_ptr();
        let failure = WriteFailure::default();
        let writer = SerializedFileWriter::new(
            failure.noted(store.writer(path)?),
            root,
            Arc::new(properties.build()),
        )?;
        let columns = ColumnWriters::new(&writer, Arc::clone(schema));
        Ok(Self {
            writer,
            failure,
            schema: Arc::clone(schema),
            columns,
            group: Vec::new(),
            rows: 0,
            path: path.to_owned(),
        })
    }

    /// Appends rows.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write(batch).map_err(|error| self.failed(error))
    }

    fn write(&mut self, batch: &RecordBatch) -> std::result::Result<(), ParquetError> {
        let mut from = 0;
        while from < batch.num_rows() {
            if self.group.is_empty() {
                self.group = self.columns.create()?;
            }
            let some = batch.slice(from, (GROUP_ROWS - self.rows).min(batch.num_rows() - from));
            let mut writers = self.group.iter_mut();
            for (field, column) in self.schema.fields().iter().zip(some.columns()) {
                for leaf in compute_leaves(field, column)? {
                    writers
                        .next()
                        .ok_or_else(|| ParquetError::General("more leaves than columns".to_owned()))?
                        .write(&leaf)?;
                }
            }
            from += some.num_rows();
            self.rows += some.num_rows();
            if self.rows == GROUP_ROWS {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn end_group(&mut self) -> std::result::Result<(), ParquetError> {
        self.rows = 0;
        let writers = std::mem::take(&mut self.group);
        if writers.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for writer in writers {
            writer.close()?.append_to(&mut group)?;
        }
        group.close().map(drop)
    }

    /// Makes the file visible, and returns its size.
    pub fn finish(mut self) -> Result<u64> {
        self.end_group().map_err(|error| self.failed(error))?;
        let (path, failure) = (self.path, self.failure);
        self.writer.into_inner().map_err(|error| failure.error(error, &path))?.inner.finish()
    }

    fn failed(&self, error: ParquetError) -> Error {
        self.failure.error(error, &self.path)
    }
}
