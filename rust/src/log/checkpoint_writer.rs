//! A snapshot -> a classic checkpoint, streamed ("Checkpoint Schema", "Checkpoint Format").

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::checkpoint_columns::{Plan, single_actions};
use super::line::FileKind;
use super::segment::Piece;
use super::sidecar::{Sidecar, unexpired};
use super::skipping::on_threads;
use super::snapshot::Snapshot;
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::schema::TableSchema;
use crate::store::{ObjectWriter, Store};

/// Rows of a row group: several in a large checkpoint, so that readers decode them side by side.
const GROUP_ROWS: usize = 128 * 1024;

/// Pieces that are made ready at once, on several threads.
const AT_ONCE: usize = 2;

/// What goes into a checkpoint.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// Tombstones of files deleted up to then (ms since 1970) are left out.
    pub min_deletion_timestamp: i64,
    /// Transactions last updated before are left out; those without a time stay.
    pub min_transaction_timestamp: Option<i64>,
    /// `stats`
    pub stats_as_json: bool,
    /// `stats_parsed` and `partitionValues_parsed`: need the schema.
    pub stats_as_struct: Option<Arc<TableSchema>>,
}

/// What was written.
#[derive(Debug, Clone)]
pub struct Written {
    /// Actions.
    pub actions: usize,
    /// Adds among them.
    pub adds: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of the file that is named as a checkpoint.
    pub top_bytes: u64,
    /// Of the second form: the files that it names.
    pub sidecars: Vec<Arc<Sidecar>>,
    /// How many of them were there before.
    pub kept: usize,
    /// Its columns.
    pub schema: SchemaRef,
}

/// Writes the checkpoint at `path`, atomically.
pub fn write(snapshot: &Snapshot, store: &dyn Store, path: &str, choices: &Choices, interrupt: &Interrupt) -> Result<Written> {
    let plan = Plan::new(choices, false)?;
    let mut file = Sink::create(store, path, &plan.schema)?;
    let (mut actions, mut adds) = (0, 0);
    for batch in single_actions(snapshot, choices, &plan)? {
        actions += batch.num_rows();
        file.push(&batch)?;
    }
    for kind in [FileKind::Add, FileKind::Remove] {
        // A few pieces at a time: what lives of them is gone again before the next.
        for pieces in snapshot.live(interrupt)?.pieces(kind).chunks(AT_ONCE) {
            let ready = |piece: &Piece<'_>| {
                let rows = unexpired(piece, choices.min_deletion_timestamp, interrupt)?;
                rows.iter().map(|batch| plan.actions(kind, batch)).collect::<Result<Vec<_>>>()
            };
            for batch in on_threads(pieces, interrupt, &ready)?.iter().flatten() {
                actions += batch.num_rows();
                adds += if kind == FileKind::Add { batch.num_rows() } else { 0 };
                file.push(batch)?;
            }
        }
    }
    let bytes = file.finish()?;
    Ok(Written { actions, adds, bytes, top_bytes: bytes, sidecars: Vec::new(), kept: 0, schema: plan.schema })
}

/// The Parquet file under way; dropped unfinished, it leaves nothing.
pub(super) struct Sink {
    writer: ArrowWriter<Box<dyn ObjectWriter>>,
    path: String,
}

impl Sink {
    /// At `path` in the store.
    pub fn create(store: &dyn Store, path: &str, schema: &SchemaRef) -> Result<Self> {
        let mut properties = WriterProperties::builder().set_compression(Compression::SNAPPY).set_max_row_group_row_count(Some(GROUP_ROWS));
        for column in [["add", "path"], ["add", "stats"], ["remove", "path"]] {
            // All values differ: a dictionary would only cost.
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(column.map(String::from).to_vec()), false);
        }
        let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(store.writer(path)?, Arc::clone(schema), options)?;
        Ok(Self { writer, path: path.to_owned() })
    }

    /// More rows.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(|error| self.failed(error))
    }

    /// Makes it visible; its size.
    pub fn finish(self) -> Result<u64> {
        let path = self.path;
        self.writer
            .into_inner()
            .map_err(|error| Error::new(Kind::Io, "the checkpoint cannot be written").at(path).caused_by(error))?
            .finish()
    }

    fn failed(&self, error: parquet::errors::ParquetError) -> Error {
        Error::new(Kind::Io, "the checkpoint cannot be written").at(self.path.clone()).caused_by(error)
    }
}
