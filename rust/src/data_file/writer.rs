//! Writes rows to data files: checks them, splits them by partition, and into files and row groups, and makes
//! the `add` actions.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow::compute::concat_batches;
use parquet::arrow::ArrowSchemaConverter;
use parquet::file::writer::SerializedFileWriter;

use super::adds::{self, NewFile};
use super::budget::{Sharer, WRITES};
use super::conform::{CastPolicy, Conform, first_null, null_in};
use super::encode::Pool;
use super::layout;
use super::options::{WriteOptions, suffix};
use super::output::{FinishedFile, Output, Shape};
use super::partition::{self, Splitter};
use super::physical;
use super::shapes;
use super::statistics::{Form, IndexedColumns, NamedStatistics, StatisticsShape, to_json};
use crate::error::{Error, Kind, Result};
use crate::guard;
use crate::interrupt::Interrupt;
use crate::pages::checksums::ColumnWriters;
use crate::parallel::on_at_most;
use crate::schema::{ColumnMapping, Field, TableSchema};
use crate::store::Store;

/// Number of rows of a partition to collect before they are encoded, as tiny arrays take more time than their
/// rows.
const PENDING_ROWS: usize = 8192;
/// Maximum number of bytes of collected rows in a table without partitions, and of a file that is encoded by
/// one thread.
const PENDING_BYTES: u64 = 4 << 20;
/// Maximum number of files of other partitions that are open in the store.
const OPEN_FILES: usize = 128;
/// Maximum number of bytes that wait for the encoding threads.
const QUEUED: u64 = 64 << 20;
/// Default for the maximum number of bytes that all writes of the process hold together.
const MEMORY: u64 = 1 << 30;
/// Minimum size of a file from which the compression of later files is estimated.
const MEASURABLE: u64 = 64 << 10;
/// A target size below this is met closely: the writer waits for the encoders before each check of the size.
const CLOSE_TARGET: u64 = 64 << 20;

/// Writes data files, and returns a row of `add` for each. On an error, all files of the call are deleted.
pub fn write(
    store: &Arc<dyn Store>,
    schema: &TableSchema,
    input: Box<dyn RecordBatchReader + Send>,
    options: &WriteOptions,
    interrupt: &Interrupt,
) -> Result<RecordBatch> {
    let threads = options.threads.unwrap_or_else(crate::parallel::processors).clamp(1, 64);
    let (pool, started) = (Pool::default(), OnceLock::new());
    std::thread::scope(|scope| {
        let start = || {
            started
                .get_or_init(|| {
                    drop(scope.spawn(|| pool.work()));
                    // Fewer threads can do the work, if the system starts no more.
                    (1..threads).all(|_| Builder::new().spawn_scoped(scope, || pool.work()).is_ok());
                })
                .to_owned()
        };
        let mut writer = Writer::new(
            store,
            schema,
            options,
            Threads { pool: &pool, start: &start, number: threads },
            interrupt,
        )?;
        let outcome = guard::caught(|| writer.run(input));
        pool.close();
        let outcome = outcome
            .unwrap_or_else(|panic| Err(Error::new(Kind::Io, "the rows could not be written").found(panic)));
        let adds = outcome.and_then(|()| writer.sync()).and_then(|()| writer.adds());
        if adds.is_err() {
            writer.undo();
        }
        adds
    })
}

/// The encoding threads.
struct Threads<'a> {
    pool: &'a Pool,
    /// Starts the threads when they are needed: a file of few rows needs none.
    start: &'a dyn Fn(),
    number: usize,
}

/// Returns which columns have statistics by the options.
pub fn indexed(options: &WriteOptions) -> IndexedColumns {
    match &options.statistics_columns {
        Some(names) => IndexedColumns::Named(names.clone()),
        None => IndexedColumns::First(
            usize::try_from(options.indexed_columns.unwrap_or(32)).unwrap_or(usize::MAX),
        ),
    }
}

/// Returns how to write statistics as text by the options.
pub fn form(options: &WriteOptions) -> Form {
    Form { letters: options.string_prefix_length.unwrap_or(32).max(1), tight: options.tight_bounds }
}

/// The rows of one partition that are being written.
#[derive(Default)]
struct Target {
    pending: Vec<RecordBatch>,
    pending_rows: usize,
    pending_bytes: u64,
    output: Option<Output>,
}

impl Target {
    fn held(&self) -> u64 {
        self.pending_bytes + self.output.as_ref().map_or(0, |output| output.group().1)
    }
}

struct Writer<'a> {
    store: &'a Arc<dyn Store>,
    schema: &'a TableSchema,
    options: &'a WriteOptions,
    pool: &'a Pool,
    threads: Threads<'a>,
    interrupt: &'a Interrupt,
    columns: Vec<usize>,
    shape: Shape,
    splitter: Splitter,
    targets: Vec<Target>,
    finished: Vec<(usize, FinishedFile)>,
    number: usize,
    rows: u64,
    last: Option<usize>,
    /// Size of the last finished file, divided by its estimated size, which counts open pages before
    /// compression.
    shrinkage: f64,
    /// Counts the write among those that share memory.
    _running: Sharer,
}

impl<'a> Writer<'a> {
    fn new(
        store: &'a Arc<dyn Store>,
        schema: &'a TableSchema,
        options: &'a WriteOptions,
        threads: Threads<'a>,
        interrupt: &'a Interrupt,
    ) -> Result<Self> {
        let columns = physical::data_columns(schema, options.partition_columns)?;
        let physical = Arc::new(physical::file_schema(schema, &columns)?);
        let descriptor = ArrowSchemaConverter::new().schema_root("spark_schema").convert(&physical)?;
        let descriptor =
            shapes::marked(descriptor, columns.iter().map(|&index| &schema.fields()[index].data_type))?;
        let properties = Arc::new(options.properties(schema, &descriptor)?);
        // A file without rows, in memory, only to get the factory.
        let probe =
            SerializedFileWriter::new(Vec::new(), descriptor.root_schema_ptr(), Arc::clone(&properties))?;
        let factory = ColumnWriters::new(&probe, Arc::clone(&physical));
        let fields: Vec<&Field> = columns.iter().map(|&index| &schema.fields()[index]).collect();
        let wanted = StatisticsShape::of(schema, &fields, &indexed(options))?;
        let shape =
            Shape { schema: physical, root: descriptor.root_schema_ptr(), properties, factory, wanted };
        let splitter = Splitter::new(schema)?;
        Ok(Self {
            store,
            schema,
            options,
            pool: threads.pool,
            threads,
            interrupt,
            columns,
            shape,
            splitter,
            targets: Vec::new(),
            finished: Vec::new(),
            number: 0,
            rows: 0,
            last: None,
            shrinkage: 1.0,
            _running: WRITES.enter(),
        })
    }

    /// Returns the maximum number of bytes of this write.
    fn memory(&self) -> u64 {
        WRITES.part(self.options.memory_limit.unwrap_or(MEMORY))
    }

    fn run(&mut self, input: Box<dyn RecordBatchReader + Send>) -> Result<()> {
        let mut conform = Conform::new(self.schema, &input.schema(), CastPolicy::Strict)?;
        for batch in input {
            self.interrupt.check()?;
            let batch = conform.apply(&batch.map_err(from_source)?)?;
            self.check_nulls(&batch)?;
            self.rows += batch.num_rows() as u64;
            if batch.num_rows() > 0 {
                self.take(&batch)?;
            }
        }
        let mut small = Vec::new();
        for number in 0..self.targets.len() {
            if self.is_small(number) {
                let pending = std::mem::take(&mut self.targets[number].pending);
                small.push((number, self.path(number)?, pending));
                continue;
            }
            self.write_pending(number)?;
            self.finish(number)?;
        }
        self.write_small(small)
    }

    /// True if a partition has only waiting rows, which are so few that they become one file.
    fn is_small(&self, number: usize) -> bool {
        let (target, options) = (&self.targets[number], self.options);
        let rows = u64::try_from(target.pending_rows).unwrap_or(u64::MAX);
        rows > 0
            && target.output.is_none()
            && !options.pooled_small_files
            && rows <= options.max_records_per_file.unwrap_or(u64::MAX).max(1)
            && target.pending_rows <= options.group_rows()
            && target.pending_bytes <= (options.file_size() / 4).min(options.group_bytes()).min(PENDING_BYTES)
    }

    /// Writes one file for each partition; each is encoded and written by one thread.
    fn write_small(&mut self, small: Vec<(usize, String, Vec<RecordBatch>)>) -> Result<()> {
        let (store, shape, finished) = (self.store, &self.shape, Mutex::new(Vec::new()));
        let (schema, columns) = (self.schema, &self.columns);
        let write = |(number, path, pending): &(usize, String, Vec<RecordBatch>)| {
            let rows = match &pending[..] {
                [one] => one.clone(),
                [first, ..] => concat_batches(&first.schema(), pending)?,
                [] => return Ok(()),
            };
            let file = Output::whole(
                store,
                path.clone(),
                shape,
                &stored_columns(schema, columns, &rows)?,
                rows.num_rows(),
            )?;
            lock(&finished).push((*number, file));
            Ok(())
        };
        let outcome = on_at_most(self.threads.number, &small, self.interrupt, &write).map(drop);
        let mut files = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
        files.sort_unstable_by_key(|(number, _)| *number);
        self.finished.append(&mut files);
        outcome
    }

    /// Makes all files durable at once, unless the commit does.
    fn sync(&self) -> Result<()> {
        if self.options.synced_by_commit {
            return Ok(());
        }
        let paths: Vec<String> = self.finished.iter().map(|(_, file)| file.path.clone()).collect();
        self.store.sync(&paths)
    }

    fn check_nulls(&self, batch: &RecordBatch) -> Result<()> {
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            if !field.nullable
                && column.logical_null_count() > 0
                && let Some(at) = first_null(column, None)?
            {
                return Err(null_in(&field.name, self.rows + at as u64));
            }
        }
        Ok(())
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let partitioned = self.schema.partition_fields().len() > 0;
        for (number, rows) in self.splitter.split(batch)? {
            while self.targets.len() <= number {
                self.targets.push(Target::default());
            }
            if self.options.file_per_partition_order
                && let Some(last) = self.last.replace(number).filter(|last| *last != number)
            {
                self.write_pending(last)?;
                self.finish(last)?;
            }
            if rows.num_rows() >= PENDING_ROWS {
                self.write_pending(number)?;
                self.write_rows(number, &rows)?;
                continue;
            }
            let target = &mut self.targets[number];
            target.pending_rows += rows.num_rows();
            target.pending_bytes += rows.columns().iter().map(bytes_of).sum::<u64>();
            target.pending.push(rows);
            if target.pending_rows >= PENDING_ROWS || (!partitioned && target.pending_bytes > PENDING_BYTES) {
                self.write_pending(number)?;
            }
        }
        if partitioned { self.stay_within_memory() } else { Ok(()) }
    }

    /// Limits the memory and the open files of all partitions: the largest ones pass their rows on to their
    /// files, and the largest open file is finished if too many are open.
    fn stay_within_memory(&mut self) -> Result<()> {
        let limit = self.memory() / 2; // the rest is for encoded pages and the input
        let mut held: u64 = self.targets.iter().map(Target::held).sum();
        while held > limit {
            let Some((number, most)) =
                self.targets.iter().map(Target::held).enumerate().max_by_key(|(_, held)| *held)
            else {
                break;
            };
            self.write_pending(number)?;
            let (pool, interrupt) = (self.pool, self.interrupt);
            if let Some(output) = &mut self.targets[number].output {
                output.drain(pool, &mut || interrupt.check())?;
            }
            held = held.saturating_sub(most.max(1));
        }
        self.finish_buffered(limit)?;
        let open = |target: &&Target| target.output.as_ref().is_some_and(Output::is_open);
        if self.targets.iter().filter(open).count() > OPEN_FILES {
            let largest = self
                .targets
                .iter()
                .enumerate()
                .filter(|(_, target)| open(target))
                .max_by_key(|(_, target)| target.output.as_ref().map(Output::size));
            if let Some((number, _)) = largest {
                self.finish(number)?;
            }
        }
        Ok(())
    }

    /// Finishes files that are not yet open in the store, the largest first, until the others hold at most
    /// `limit` bytes.
    fn finish_buffered(&mut self, limit: u64) -> Result<()> {
        let buffered = |target: &Target| target.output.as_ref().map_or(0, Output::buffered);
        let mut held: u64 = self.targets.iter().map(buffered).sum();
        while held > limit {
            let Some((number, most)) =
                self.targets.iter().map(buffered).enumerate().max_by_key(|(_, held)| *held)
            else {
                break;
            };
            self.finish(number)?;
            held = held.saturating_sub(most.max(1));
        }
        Ok(())
    }

    fn write_pending(&mut self, number: usize) -> Result<()> {
        let target = &mut self.targets[number];
        let pending = std::mem::take(&mut target.pending);
        (target.pending_rows, target.pending_bytes) = (0, 0);
        match &pending[..] {
            [] => Ok(()),
            [one] => self.write_rows(number, one),
            [first, ..] => self.write_rows(number, &concat_batches(&first.schema(), &pending)?),
        }
    }

    fn write_rows(&mut self, number: usize, batch: &RecordBatch) -> Result<()> {
        let arrays = stored_columns(self.schema, &self.columns, batch)?;
        let width = arrays.iter().map(bytes_of).sum::<u64>() / batch.num_rows().max(1) as u64;
        let piece = (self.options.file_size() / 4).min(self.memory() / 16).clamp(64 << 10, 16 << 20);
        let piece_rows = usize::try_from(piece / width.max(1)).unwrap_or(usize::MAX).clamp(1, 1 << 16);
        let mut at = 0;
        while at < batch.num_rows() {
            let rows = self.room(number)?.min(piece_rows).min(batch.num_rows() - at);
            let slices: Vec<ArrayRef> = arrays.iter().map(|array| array.slice(at, rows)).collect();
            let sizes: Vec<u64> = slices.iter().map(bytes_of).collect();
            let (pool, interrupt) = (self.pool, self.interrupt);
            if let Some(output) = &mut self.targets[number].output {
                output.feed(pool, &self.shape, &slices, &sizes, rows)?;
            }
            at += rows;
            let close = self.options.file_size() < CLOSE_TARGET;
            let queued = QUEUED.min(self.memory() / 8);
            pool.wait_below(if close { 0 } else { queued }, &mut || interrupt.check())?;
            self.cut(number)?;
        }
        Ok(())
    }

    /// Returns the path of the next file of a partition.
    fn path(&mut self, number: usize) -> Result<String> {
        let codec = suffix(self.options.codec()?);
        let prefix = match (self.options.random_prefix_length, self.schema.mapping()) {
            // As in delta-spark: logical names may change, folders do not.
            (0, ColumnMapping::Name | ColumnMapping::Id) => 2,
            (length, _) => length,
        };
        let folder = layout::folder(&self.splitter.folder_values(number), prefix);
        let root = if self.options.change_files { layout::CHANGE_FOLDER } else { "" };
        let path = format!("{root}{folder}{}", layout::file_name(self.number, codec));
        self.number += 1;
        Ok(path)
    }

    /// Returns the number of rows that fit into the current row group. Opens the file if needed.
    fn room(&mut self, number: usize) -> Result<usize> {
        if self.targets[number].output.is_none() {
            (self.threads.start)();
            let path = self.path(number)?;
            self.targets[number].output = Some(Output::new(self.store, path, &self.shape)?);
        }
        let Some(output) = &self.targets[number].output else { return Ok(0) };
        let file = self.options.max_records_per_file.unwrap_or(u64::MAX).max(1) - output.rows;
        Ok((self.options.group_rows() - output.group().0).min(usize::try_from(file).unwrap_or(usize::MAX)))
    }

    /// Ends the current row group, or the whole file, if it is full.
    fn cut(&mut self, number: usize) -> Result<()> {
        let (pool, interrupt, options) = (self.pool, self.interrupt, self.options);
        // The row group before it may still wait to be appended, and the store may hold as much.
        let encoded = self.memory() / 4;
        let Some(output) = &mut self.targets[number].output else { return Ok(()) };
        let (rows, raw) = output.group();
        if output.size() as f64 * self.shrinkage >= options.file_size() as f64
            || options.max_records_per_file.is_some_and(|most| output.rows >= most.max(1))
        {
            return self.finish(number);
        }
        if rows >= options.group_rows() || raw >= options.group_bytes() || output.group_size() >= encoded {
            output.end_group(pool, &mut || interrupt.check())?;
        }
        Ok(())
    }

    fn finish(&mut self, number: usize) -> Result<()> {
        let (pool, interrupt) = (self.pool, self.interrupt);
        if let Some(output) = self.targets[number].output.take() {
            let estimated = output.size();
            let finished = output.finish(pool, &mut || interrupt.check())?;
            if estimated >= MEASURABLE {
                self.shrinkage = (finished.size as f64 / estimated as f64).clamp(0.1, 1.0);
            }
            self.finished.push((number, finished));
        }
        Ok(())
    }

    fn adds(&mut self) -> Result<RecordBatch> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        let added = self.finished.iter().map(|(number, file)| {
            let columns: Vec<NamedStatistics<'_>> = self
                .columns
                .iter()
                .zip(&file.gathered)
                .map(|(&index, gathered)| {
                    let field = &self.schema.fields()[index];
                    NamedStatistics {
                        name: self.schema.physical_name(field),
                        data_type: &field.data_type,
                        gathered,
                    }
                })
                .collect();
            NewFile {
                path: layout::encode(&file.path),
                partition_values: self.splitter.values[*number].clone(),
                size: file.size,
                modification_time: self.options.modification_time.unwrap_or(now),
                stats: Some(to_json(file.rows, &columns, self.schema, form(self.options))),
            }
        });
        adds::batch(added.collect(), self.options.data_change.unwrap_or(true), &self.options.tags)
    }

    /// Deletes the written files. Unfinished files remove themselves.
    fn undo(&mut self) {
        self.targets.clear();
        for (_, file) in self.finished.drain(..) {
            if let Err(error) = self.store.delete(&file.path) {
                log::warn!(target: "deltaic", "a data file of a failed write stays behind: {error}");
            }
        }
    }
}

/// Returns the columns of these rows that are in data files.
fn stored_columns(schema: &TableSchema, columns: &[usize], batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let array = |&index: &usize| match batch.column(index) {
        column if schema.is_partition(index) => partition::stored(column),
        column => Ok(Arc::clone(column)),
    };
    columns.iter().map(array).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of bytes of an array's rows, without other rows in its buffers.
fn bytes_of(array: &ArrayRef) -> u64 {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()) as u64
}

/// Converts an error of a source of rows, and keeps its kind.
pub fn from_source(error: arrow::error::ArrowError) -> Error {
    match error {
        arrow::error::ArrowError::ExternalError(_) => Error::from(error),
        other => {
            Error::new(Kind::InvalidArgument, "the data could not be read from its source").caused_by(other)
        }
    }
}
