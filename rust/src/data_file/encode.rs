//! Encodes the columns of row groups on several threads. The arrays of one column are encoded in order,
//! columns in parallel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type, SchemaRef};
use parquet::arrow::arrow_writer::compute_leaves;

use super::physical::relabel;
use super::statistics::{GatheredStatistics, StatisticsShape};
use crate::error::{Error, Result};
use crate::guard;
use crate::pages::checksums::{Chunk, ColumnWriter, ColumnWriters};

/// The columns that wait to be encoded, shared by the encoding threads.
#[derive(Debug, Default)]
pub struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Arc<Column>>,
    waiting: u64,
    failed: Option<Error>,
    closed: bool,
}

/// A row group that is being encoded.
#[derive(Debug)]
pub struct RowGroup {
    columns: Vec<Arc<Column>>,
    encoded: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Column {
    schema: SchemaRef,
    index: usize,
    encoded: Arc<AtomicU64>,
    inbox: Mutex<Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    arrays: VecDeque<(ArrayRef, u64)>,
    scheduled: bool,
    closing: bool,
    work: Option<Work>,
    done: Option<EncodedColumn>,
}

/// The writers and statistics of a column that is being encoded.
struct Work {
    writers: Vec<ColumnWriter>,
    gathered: GatheredStatistics,
    has_nan: bool,
    size: u64,
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work").field("size", &self.size).finish_non_exhaustive()
    }
}

/// An encoded column: its chunks (one per leaf) and its statistics.
#[derive(Debug)]
pub struct EncodedColumn {
    /// The encoded chunks, one for each Parquet leaf.
    pub chunks: Vec<Chunk>,
    /// The column's statistics.
    pub gathered: GatheredStatistics,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates the writers of a row group, one for each column of `schema` (physical).
fn works(factory: &ColumnWriters, schema: &SchemaRef, wanted: &[StatisticsShape]) -> Result<Vec<Work>> {
    let mut writers = factory.create()?.into_iter();
    let work = |(field, wanted): (&Arc<arrow::datatypes::Field>, &StatisticsShape)| {
        let writers = writers.by_ref().take(super::projection::leaves(field.data_type())).collect();
        Work { writers, gathered: GatheredStatistics::new(wanted), has_nan: false, size: 0 }
    };
    Ok(schema.fields().iter().zip(wanted).map(work).collect())
}

/// Encodes the columns of a row group with few rows on the current thread.
pub fn encode(
    factory: &ColumnWriters,
    schema: &SchemaRef,
    wanted: &[StatisticsShape],
    arrays: &[ArrayRef],
) -> Result<Vec<EncodedColumn>> {
    let finish = |(index, (mut work, array)): (usize, (Work, &ArrayRef))| {
        work.add(array, schema, index)?;
        work.finish()
    };
    works(factory, schema, wanted)?.into_iter().zip(arrays).enumerate().map(finish).collect()
}

impl RowGroup {
    /// Creates writers for the columns of `schema` (physical).
    pub fn new(factory: &ColumnWriters, schema: &SchemaRef, wanted: &[StatisticsShape]) -> Result<Self> {
        let encoded = Arc::new(AtomicU64::new(0));
        let column = |(index, work): (usize, Work)| {
            let inbox = Mutex::new(Inbox { work: Some(work), ..Inbox::default() });
            Arc::new(Column { schema: Arc::clone(schema), index, encoded: Arc::clone(&encoded), inbox })
        };
        let columns = works(factory, schema, wanted)?.into_iter().enumerate().map(column).collect();
        Ok(Self { columns, encoded })
    }
    /// Returns the approximate number of encoded bytes so far.
    pub fn size(&self) -> u64 {
        self.encoded.load(Ordering::Relaxed)
    }
}

impl Pool {
    /// Encodes waiting arrays on the current thread until [`Self::close`].
    pub fn work(&self) {
        loop {
            let column = {
                let mut state = lock(&self.state);
                loop {
                    if let Some(column) = state.ready.pop_front() {
                        break column;
                    }
                    if state.closed {
                        return;
                    }
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            };
            let outcome = guard::guarded("the rows cannot be encoded", || self.serve(&column));
            // Set under the lock; otherwise a waiter that has just checked would miss the notification.
            let mut state = lock(&self.state);
            if let Err(error) = outcome {
                state.failed.get_or_insert(error);
            }
            self.changed.notify_all();
        }
    }

    /// Encodes the waiting arrays of a column.
    fn serve(&self, column: &Column) -> Result<()> {
        loop {
            let (arrays, mut work) = {
                let mut inbox = lock(&column.inbox);
                let arrays = std::mem::take(&mut inbox.arrays);
                if arrays.is_empty() && !inbox.closing {
                    inbox.scheduled = false;
                    return Ok(());
                }
                let Some(work) = inbox.work.take() else { return Ok(()) };
                if arrays.is_empty() {
                    drop(inbox);
                    let done = work.finish()?;
                    lock(&column.inbox).done = Some(done);
                    return Ok(());
                }
                (arrays, work)
            };
            for (array, bytes) in arrays {
                let before = work.size;
                work.add(&array, &column.schema, column.index)?;
                column.encoded.fetch_add(work.size.wrapping_sub(before), Ordering::Relaxed);
                lock(&self.state).waiting -= bytes;
                self.changed.notify_all();
            }
            lock(&column.inbox).work = Some(work);
        }
    }

    /// Adds one array to each column of a row group, to be encoded. `sizes`: the bytes of each array.
    pub fn feed(&self, group: &RowGroup, arrays: &[ArrayRef], sizes: &[u64]) {
        lock(&self.state).waiting += sizes.iter().sum::<u64>();
        for ((column, array), size) in group.columns.iter().zip(arrays).zip(sizes) {
            let mut inbox = lock(&column.inbox);
            inbox.arrays.push_back((Arc::clone(array), *size));
            self.schedule(column, &mut inbox);
        }
    }

    fn schedule(&self, column: &Arc<Column>, inbox: &mut Inbox) {
        if !inbox.scheduled {
            inbox.scheduled = true;
            lock(&self.state).ready.push_back(Arc::clone(column));
            self.changed.notify_all();
        }
    }

    /// Waits until at most `bytes` bytes wait to be encoded. `tick` is called regularly; its error ends the
    /// wait.
    pub fn wait_below(&self, bytes: u64, tick: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.wait(tick, |state| state.waiting <= bytes)
    }

    fn wait(&self, tick: &mut dyn FnMut() -> Result<()>, ready: impl Fn(&State) -> bool) -> Result<()> {
        let mut state = lock(&self.state);
        loop {
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            if ready(&state) {
                return Ok(());
            }
            let pause = std::time::Duration::from_millis(50);
            state = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
            drop(state);
            tick()?;
            state = lock(&self.state);
        }
    }

    /// Declares that a row group gets no more rows.
    pub fn close_group(&self, group: &RowGroup) {
        for column in &group.columns {
            let mut inbox = lock(&column.inbox);
            inbox.closing = true;
            self.schedule(column, &mut inbox);
        }
    }

    /// Returns the columns of a closed row group, in order, when all are encoded.
    pub fn collect(
        &self,
        group: RowGroup,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<EncodedColumn>> {
        self.wait(tick, |_| group.columns.iter().all(|column| lock(&column.inbox).done.is_some()))?;
        Ok(group.columns.iter().filter_map(|column| lock(&column.inbox).done.take()).collect())
    }

    /// Ends the encoding threads. Arrays that still wait are not encoded.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.ready.clear();
        self.changed.notify_all();
    }
}

impl Work {
    fn add(&mut self, array: &ArrayRef, schema: &SchemaRef, index: usize) -> Result<()> {
        self.gathered.add(array, None);
        let field = schema.field(index);
        let physical: &DataType = field.data_type();
        let array = relabel(array, physical)?;
        self.has_nan = self.has_nan || has_nan(&array);
        for (writer, leaf) in self.writers.iter_mut().zip(compute_leaves(field, &array)?) {
            writer.write(&leaf)?;
        }
        self.size = self.writers.iter().map(|writer| writer.estimated_bytes() as u64).sum();
        Ok(())
    }

    fn finish(self) -> Result<EncodedColumn> {
        let mut chunks =
            self.writers.into_iter().map(|writer| Ok(writer.close()?)).collect::<Result<Vec<_>>>()?;
        if self.has_nan {
            chunks.iter_mut().try_for_each(Chunk::remove_bounds_of_floats)?;
        }
        Ok(EncodedColumn { chunks, gathered: self.gathered })
    }
}

/// True if an array of floats has a NaN, or a nested array has one in a float.
fn has_nan(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Float32 => any_nan::<Float32Type>(array, f32::is_nan),
        DataType::Float64 => any_nan::<Float64Type>(array, f64::is_nan),
        kind if kind.is_nested() || matches!(kind, DataType::Dictionary(..)) => {
            array.to_data().child_data().iter().any(|child| has_nan(&make_array(child.clone())))
        }
        _ => false,
    }
}

/// True if a value that is not null is NaN. The place of a null may have any value.
fn any_nan<T: ArrowPrimitiveType>(array: &ArrayRef, is_nan: fn(T::Native) -> bool) -> bool {
    let array = array.as_primitive::<T>();
    array.values().iter().any(|value| is_nan(*value)) && array.iter().flatten().any(is_nan)
}
