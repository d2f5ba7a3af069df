//! Runs a function on several threads, over the pieces of a large batch or over a list of files.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Builder;

use arrow::array::RecordBatch;

use crate::error::{Error, Result};
use crate::guard;
use crate::interrupt::Interrupt;

/// Maximum number of rows of a piece of a batch.
pub const PIECE: usize = 32 * 1024;

/// Cuts a batch into slices of at most [`PIECE`] rows.
pub fn cut(batch: &RecordBatch) -> Vec<RecordBatch> {
    (0..batch.num_rows())
        .step_by(PIECE)
        .map(|from| batch.slice(from, PIECE.min(batch.num_rows() - from)))
        .collect()
}

/// Returns the number of processors that this process may use. The system call is made once: to find the
/// limits of a container it reads files, which takes 40 µs.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Maximum number of threads of one call.
const MOST_THREADS: usize = 8;

/// Returns the number of threads for this many pieces of work: at most one for each piece and processor.
pub fn threads_for(pieces: usize) -> usize {
    if pieces <= 1 { pieces } else { processors().min(MOST_THREADS).min(pieces) }
}

/// Calls `work` for each piece on several threads, and returns the results in the order of the pieces. The
/// caller's thread is one of them. The first error ends the work.
pub fn on_threads<I: Sync, T: Send>(
    pieces: &[I],
    interrupt: &Interrupt,
    work: &(dyn Fn(&I) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    on_at_most(MOST_THREADS.min(processors()), pieces, interrupt, work)
}

/// Like [`on_threads`], on at most `threads` threads: for work that waits for the disk or the network, more
/// than there are processors.
pub fn on_at_most<I: Sync, T: Send>(
    threads: usize,
    pieces: &[I],
    interrupt: &Interrupt,
    work: &(dyn Fn(&I) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let threads = threads.min(pieces.len());
    if threads <= 1 {
        return in_order(pieces, interrupt, work);
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T>)>> = Mutex::new(Vec::with_capacity(pieces.len()));
    let run = || {
        while let Some((index, piece)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| pieces.get(at).map(|piece| (at, piece)))
        {
            let result = one(piece, interrupt, work);
            let failed = result.is_err();
            if let Ok(mut done) = done.lock() {
                done.push((index, result));
            }
            if failed {
                next.store(pieces.len(), Ordering::Relaxed);
            }
        }
    };
    at_once(threads, run);
    let mut done = done.into_inner().map_err(|_| Error::protocol("a worker failed"))?;
    done.sort_unstable_by_key(|(index, _)| *index);
    let done = done.into_iter().map(|(_, result)| result).collect::<Result<Vec<T>>>()?;
    if done.len() < pieces.len() { Err(Error::protocol("a worker failed")) } else { Ok(done) }
}

/// Calls `work` on `threads` threads, of which one is the caller's; on fewer if the system starts no more.
pub fn at_once(threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 1..threads {
            if Builder::new().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
}

/// Like [`on_threads`], all on the caller's thread: for work that takes less time than the start of a thread.
pub fn in_order<I, T>(
    pieces: &[I],
    interrupt: &Interrupt,
    work: &(dyn Fn(&I) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    pieces.iter().map(|piece| one(piece, interrupt, work)).collect()
}

fn one<I, T>(piece: &I, interrupt: &Interrupt, work: &(dyn Fn(&I) -> Result<T> + Sync)) -> Result<T> {
    interrupt.check()?;
    guard::guarded("a file of the table cannot be processed", || work(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_the_caller_alone_have_the_same_results() {
        let pieces: Vec<u64> = (0..1000).collect();
        let square = |piece: &u64| Ok(piece * piece);
        let wanted: Vec<u64> = pieces.iter().map(|piece| piece * piece).collect();
        let none = Interrupt::default();
        assert_eq!(in_order(&pieces, &none, &square).unwrap(), wanted);
        assert_eq!(on_threads(&pieces, &none, &square).unwrap(), wanted);
        let fails =
            |piece: &u64| if *piece == 500 { Err(Error::protocol("five hundred")) } else { Ok(*piece) };
        let panics = |piece: &u64| if *piece == 500 { panic!("five hundred") } else { Ok(*piece) };
        for work in [&fails as &(dyn Fn(&u64) -> Result<u64> + Sync), &panics] {
            for error in
                [in_order(&pieces, &none, work).unwrap_err(), on_threads(&pieces, &none, work).unwrap_err()]
            {
                assert!(format!("{error:?}").contains("five hundred"), "{error:?}");
            }
        }
        none.raise();
        assert!(in_order(&pieces, &none, &square).is_err() && on_threads(&pieces, &none, &square).is_err());
    }
}
