//! Passes batches from several threads to one consumer, in the order of the work items, with limited memory.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;

use crate::error::Result;

/// Number of bytes for which a sleeping consumer is woken; it is also woken for the end of a slot, and for
/// the first batch. To wake it for each batch takes longer than to decode a narrow batch.
const BURST: usize = 4 << 20;

/// The queue: one slot for each work item; slots are emptied in order.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    /// Signals that there is a batch to take.
    ready: Condvar,
    /// Signals that there is room again.
    room: Condvar,
}

#[derive(Debug, Default)]
struct State {
    slots: VecDeque<Slot>,
    first: u64,
    bytes: usize,
    /// Bytes put into the first slot since the consumer was last woken for it.
    unseen: usize,
    /// True if a batch was taken already.
    begun: bool,
    complete: bool,
    cancelled: bool,
}

#[derive(Debug, Default)]
struct Slot {
    batches: VecDeque<(RecordBatch, usize)>,
    end: Option<Result<()>>,
}

/// The answer to the consumer.
#[derive(Debug)]
pub enum QueueItem {
    /// The next batch.
    Batch(RecordBatch),
    /// There are no more batches, or the queue was cancelled.
    End,
    /// No batch came in time.
    Waiting,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds a slot after all others, and returns its number.
    pub fn open(&self) -> u64 {
        let mut state = self.lock();
        state.slots.push_back(Slot::default());
        state.first + state.slots.len() as u64 - 1
    }
    /// Declares that no further slot will be opened.
    pub fn complete(&self) {
        self.lock().complete = true;
        self.ready.notify_all();
    }
    /// Puts a batch into a slot. Waits while more than about `limit` bytes are in the queue, unless the slot
    /// is the one that is being read, and empty. Returns false if the queue was cancelled.
    pub fn push(&self, slot: u64, batch: RecordBatch, limit: usize) -> bool {
        let bytes = batch.get_array_memory_size();
        let mut state = self.lock();
        loop {
            if state.cancelled {
                return false;
            }
            let at = slot.checked_sub(state.first).and_then(|at| usize::try_from(at).ok());
            let room = state.bytes == 0 || state.bytes + bytes <= limit;
            let Some(target) = at.and_then(|at| state.slots.get_mut(at)) else { return false };
            if room || (at == Some(0) && target.batches.is_empty()) {
                target.batches.push_back((batch, bytes));
                state.bytes += bytes;
                if at == Some(0) {
                    state.unseen += bytes;
                    if state.unseen >= BURST || !state.begun {
                        state.unseen = 0;
                        self.ready.notify_all();
                    }
                }
                return true;
            }
            self.ready.notify_all();
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
    /// Ends a slot, with or without an error.
    pub fn finish(&self, slot: u64, end: Result<()>) {
        let mut state = self.lock();
        let at = slot.checked_sub(state.first).and_then(|at| usize::try_from(at).ok());
        if let Some(target) = at.and_then(|at| state.slots.get_mut(at)) {
            target.end = Some(end);
        }
        if at == Some(0) {
            self.ready.notify_all();
        }
    }
    /// Returns the next batch in order; waits at most `timeout`.
    pub fn next(&self, timeout: Duration) -> Result<QueueItem> {
        let mut state = self.lock();
        loop {
            if state.cancelled {
                return Ok(QueueItem::End);
            }
            let complete = state.complete;
            match state.slots.front_mut() {
                None if complete => return Ok(QueueItem::End),
                None => {}
                Some(slot) => {
                    if let Some((batch, bytes)) = slot.batches.pop_front() {
                        state.bytes -= bytes;
                        state.begun = true;
                        self.room.notify_all();
                        return Ok(QueueItem::Batch(batch));
                    }
                    if let Some(end) = slot.end.take() {
                        state.slots.pop_front();
                        state.first += 1;
                        self.room.notify_all();
                        end?;
                        continue;
                    }
                }
            }
            let (guard, waited) =
                self.ready.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if waited.timed_out() {
                return Ok(QueueItem::Waiting);
            }
        }
    }
    /// Stops all threads, and drops the batches in the queue.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        state.slots.clear();
        state.bytes = 0;
        self.ready.notify_all();
        self.room.notify_all();
    }
    /// True if the queue was cancelled.
    pub fn cancelled(&self) -> bool {
        self.lock().cancelled
    }
    /// Returns the number of open slots that are not yet emptied.
    pub fn waiting(&self) -> usize {
        self.lock().slots.len()
    }
}
