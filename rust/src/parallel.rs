//! Threads that share the pieces of a large batch, or a list of files.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use arrow::array::RecordBatch;

use crate::error::{Error, Result};
use crate::guard;
use crate::interrupt::Interrupt;

/// Maximum number of rows of a piece of a batch.
pub const PIECE: usize = 32 * 1024;

/// Cuts a batch into slices of at most [`PIECE`] rows.
pub fn cut(batch: &RecordBatch) -> Vec<RecordBatch> {
    (0..batch.num_rows()).step_by(PIECE).map(|from| batch.slice(from, PIECE.min(batch.num_rows() - from))).collect()
}

/// Returns the number of processors that this process may use. The system is asked once: to find the limits
/// of a container it reads files, which takes 40 µs.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Maximum number of threads of one call.
const MOST_THREADS: usize = 8;

/// Returns the number of threads that share so many pieces of work.
pub fn threads_for(pieces: usize) -> usize {
    if pieces <= 1 { pieces } else { processors().min(MOST_THREADS).min(pieces) }
}

/// Calls `work` for each piece on several threads, and returns the results in the order of the pieces. A
/// single piece runs on the caller's thread. The first error ends the work.
pub fn on_threads<I: Sync, T: Send>(pieces: &[I], interrupt: &Interrupt, work: &(dyn Fn(&I) -> Result<T> + Sync)) -> Result<Vec<T>> {
    let threads = threads_for(pieces.len());
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T>)>> = Mutex::new(Vec::with_capacity(pieces.len()));
    let run = || {
        while let Some((index, piece)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| pieces.get(at).map(|piece| (at, piece))) {
            let result = interrupt.check().and_then(|()| guard::guarded("a part of the log cannot be processed", || work(piece)));
            let failed = result.is_err();
            if let Ok(mut done) = done.lock() {
                done.push((index, result));
            }
            if failed {
                next.store(pieces.len(), Ordering::Relaxed);
            }
        }
    };
    if threads <= 1 {
        run();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(run);
            }
        });
    }
    let mut done = done.into_inner().map_err(|_| Error::protocol("a worker failed"))?;
    done.sort_unstable_by_key(|(index, _)| *index);
    let done = done.into_iter().map(|(_, result)| result).collect::<Result<Vec<T>>>()?;
    if done.len() < pieces.len() { Err(Error::protocol("a worker failed")) } else { Ok(done) }
}
