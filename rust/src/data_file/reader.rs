//! Runs a scan: threads open files and decode row groups, and one consumer gets the batches in order.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::budget::{self, Allowance, SCANS, Sharer};
use super::decode::decode;
use super::open::{OpenFile, Plan};
use super::queue::{Queue, QueueItem};
use crate::error::{Error, Kind, Result};
use crate::guard;

/// Default for the maximum number of bytes that all scans hold together.
pub const DEFAULT_MEMORY: u64 = 1 << 30;
/// Maximum number of bytes of decoded batches that wait in one scan.
const MOST_WAITING: u64 = 256 << 20;
/// Number of files that are opened in advance; over a network more, as each waits for requests.
const FILES_AHEAD: usize = 8;
const REMOTE_FILES_AHEAD: usize = 32;
/// Over a network: number of threads that only open files, maximum number of threads that decode, and memory
/// for each of the latter.
const OPENERS: usize = 16;
const REMOTE_DECODERS: u64 = 8;
const OF_REMOTE_DECODER: u64 = 64 << 20;

/// A running scan. Dropping it stops its threads.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<ReaderState>,
    /// Counts the scan among those that share memory, from the first batch to the last.
    running: Option<Sharer>,
    started: bool,
    left: Option<usize>,
}

#[derive(Debug)]
struct ReaderState {
    plan: Plan,
    queue: Queue,
    work: Mutex<Work>,
    changed: Condvar,
    threads: usize,
    openers: usize,
    memory: u64,
}

/// The work of the threads: files are opened in advance, row groups are decoded in order.
#[derive(Debug, Default)]
struct Work {
    next_to_open: usize,
    current: usize,
    next_group: usize,
    opened: HashMap<usize, OpenedFile>,
    complete: bool,
}

#[derive(Debug)]
enum OpenedFile {
    File(Arc<OpenFile>),
    Failed(Error),
}

enum Task {
    Open(usize),
    Group(Arc<OpenFile>, usize, u64),
    Fail(Error, u64),
    Done,
}

impl Reader {
    /// Creates a scan, which starts when the first batch is requested. `memory`: maximum number of bytes,
    /// fetched and decoded, that all scans of the process hold together.
    pub fn new(plan: Plan, threads: Option<usize>, memory: Option<u64>) -> Self {
        let available = crate::parallel::processors();
        let memory = memory.unwrap_or(DEFAULT_MEMORY);
        let mut wanted = threads.unwrap_or(available).clamp(1, 256);
        let mut openers = 0;
        if plan.store.is_remote() && threads != Some(1) {
            wanted =
                wanted.max(usize::try_from((memory / OF_REMOTE_DECODER).min(REMOTE_DECODERS)).unwrap_or(1));
            openers = OPENERS.min(plan.unit_count().saturating_sub(wanted));
        }
        let threads = budget::threads(memory, wanted);
        let left = plan.request.limit;
        let (queue, work, changed) = (Queue::default(), Mutex::default(), Condvar::new());
        let shared = ReaderState { plan, queue, work, changed, threads, openers, memory };
        Self { shared: Arc::new(shared), running: None, started: false, left }
    }
    /// Returns the schema of the scan's batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.shared.plan.output
    }
    /// Returns the next batch, waiting at most `timeout`.
    pub fn next(&mut self, timeout: Duration) -> Result<QueueItem> {
        if self.left == Some(0) {
            self.shared.stop();
            self.running = None;
            return Ok(QueueItem::End);
        }
        if !self.started {
            self.started = true;
            self.running = Some(SCANS.enter());
            self.start()?;
        }
        let next = self.shared.queue.next(timeout).inspect_err(|_| self.shared.stop())?;
        if matches!(next, QueueItem::End) {
            self.running = None;
        }
        let QueueItem::Batch(batch) = next else { return Ok(next) };
        let batch = match &mut self.left {
            Some(left) => {
                let rows = batch.num_rows().min(*left);
                *left -= rows;
                if rows < batch.num_rows() { batch.slice(0, rows) } else { batch }
            }
            None => batch,
        };
        self.shared.plan.metrics.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
        Ok(QueueItem::Batch(batch))
    }
    /// Stops the scan: `next` then returns the end.
    pub fn cancel(&self) {
        self.shared.stop();
    }
    /// Returns the counters so far, by name.
    pub fn metrics(&self) -> [(&'static str, u64); 5] {
        self.shared.plan.metrics.named()
    }
    /// Returns a handle to read the counters and stop the scan while another thread uses it.
    pub fn observer(&self) -> Observer {
        Observer(Arc::clone(&self.shared))
    }

    fn start(&self) -> Result<()> {
        let shared = &self.shared;
        if shared.plan.files.is_empty() {
            shared.queue.complete();
        }
        let threads = if shared.plan.files.is_empty() { 0 } else { shared.threads };
        for index in 0..threads + shared.openers {
            let shared = Arc::clone(shared);
            let decodes = index < threads;
            let spawned = std::thread::Builder::new()
                .name(format!("deltaic-read-{index}"))
                .spawn(move || shared.work(decodes));
            match spawned {
                Ok(_) => {}
                Err(_) if index > 0 => break, // fewer threads can do the work
                Err(error) => return Err(Error::new(Kind::Io, "no thread to read with").caused_by(error)),
            }
        }
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// A handle that reads a scan's counters and can stop it.
#[derive(Debug, Clone)]
pub struct Observer(Arc<ReaderState>);

impl Observer {
    /// Stops the scan.
    pub fn cancel(&self) {
        self.0.stop();
    }
    /// Returns the counters so far, by name.
    pub fn metrics(&self) -> [(&'static str, u64); 5] {
        self.0.plan.metrics.named()
    }
}

impl ReaderState {
    fn stop(&self) {
        self.queue.cancel();
        // Set under the lock, so that no thread misses it between its check and its sleep.
        let _work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }

    fn work(&self, decodes: bool) {
        loop {
            match self.next_task(decodes) {
                Task::Done => return,
                Task::Fail(error, slot) => self.queue.finish(slot, Err(error)),
                Task::Open(index) => {
                    let opened =
                        match self.guarded(self.plan.unit(index).0, || OpenFile::open(&self.plan, index)) {
                            Ok(file) => OpenedFile::File(Arc::new(file)),
                            Err(error) => OpenedFile::Failed(error),
                        };
                    self.work.lock().unwrap_or_else(PoisonError::into_inner).opened.insert(index, opened);
                    self.changed.notify_all();
                }
                Task::Group(file, group, slot) => {
                    let mut sink = |batch: RecordBatch| {
                        Ok(batch.num_rows() == 0 || self.queue.push(slot, batch, self.most_waiting()))
                    };
                    let allowance = self.allowance();
                    let end = self.guarded(file.index, || {
                        decode(&self.plan, &file, &file.groups[group], allowance, &mut sink)
                    });
                    self.queue.finish(slot, end);
                }
            }
        }
    }

    /// Returns the maximum number of bytes of decoded batches that wait.
    fn most_waiting(&self) -> usize {
        usize::try_from((SCANS.part(self.memory) / 2).min(MOST_WAITING)).unwrap_or(usize::MAX)
    }

    fn allowance(&self) -> Allowance {
        budget::allowance(SCANS.part(self.memory), self.threads)
    }

    /// Turns a panic of the decoder, or an error, into an error with the file's path.
    fn guarded<T>(&self, index: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
        guard::guarded("the Parquet file cannot be decoded", work).map_err(|error| {
            match self.plan.files.path(index) {
                Ok(path) => error.at(path),
                Err(_) => error,
            }
        })
    }

    fn next_task(&self, decodes: bool) -> Task {
        let ahead = if self.openers > 0 { REMOTE_FILES_AHEAD } else { FILES_AHEAD };
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if work.complete || self.queue.cancelled() {
                return Task::Done;
            }
            if decodes && let Some(task) = self.ready(&mut work) {
                self.changed.notify_all();
                return task;
            }
            let files = self.plan.unit_count();
            if work.next_to_open < files && work.next_to_open < work.current + ahead {
                work.next_to_open += 1;
                return Task::Open(work.next_to_open - 1);
            }
            work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns a row group of the current file, if that is open, or of the next file if none is left.
    fn ready(&self, work: &mut Work) -> Option<Task> {
        loop {
            if work.current == self.plan.unit_count() {
                work.complete = true;
                self.queue.complete();
                return Some(Task::Done);
            }
            match work.opened.get(&work.current)? {
                OpenedFile::File(file) if work.next_group < file.groups.len() => {
                    work.next_group += 1;
                    return Some(Task::Group(Arc::clone(file), work.next_group - 1, self.queue.open()));
                }
                OpenedFile::File(_) => {
                    work.opened.remove(&work.current);
                    work.current += 1;
                    work.next_group = 0;
                }
                OpenedFile::Failed(_) => {
                    let Some(OpenedFile::Failed(error)) = work.opened.remove(&work.current) else {
                        return None;
                    };
                    work.current = self.plan.unit_count(); // nothing after an error
                    work.next_to_open = self.plan.unit_count();
                    return Some(Task::Fail(error, self.queue.open()));
                }
            }
        }
    }
}
