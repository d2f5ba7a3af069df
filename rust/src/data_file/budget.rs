//! The memory that all scans of the process share, and the memory that all writes share. Each running one has
//! an equal part.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of scans, or of writes, that run now.
#[derive(Debug, Default)]
pub struct Sharers(AtomicU64);

/// The running scans.
pub static SCANS: Sharers = Sharers(AtomicU64::new(0));
/// The running writes.
pub static WRITES: Sharers = Sharers(AtomicU64::new(0));

/// A running scan or write, counted until it is dropped.
#[derive(Debug)]
pub struct Sharer(&'static Sharers);

impl Sharers {
    /// Counts a scan or write until the result is dropped.
    pub fn enter(&'static self) -> Sharer {
        self.0.fetch_add(1, Ordering::Relaxed);
        Sharer(self)
    }
    /// Returns the part of `bytes` that each running scan or write may use now.
    pub fn part(&self, bytes: u64) -> u64 {
        bytes / self.0.load(Ordering::Relaxed).max(1)
    }
}

impl Drop for Sharer {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The memory of one thread of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Maximum number of stored bytes of a row group that is fetched as a whole; a larger one is fetched in
    /// windows.
    pub fetched: u64,
    /// Approximate number of bytes of a decoded batch.
    pub batch: u64,
}

/// Maximum number of bytes of a batch, estimated from the footer.
const BATCH: u64 = 32 << 20;
/// Minimum memory of a thread; with less, it would mostly wait for the others.
const SMALLEST_PART: u64 = 8 << 20;

/// Returns the number of threads for a scan with this memory, at most `threads`. Half of the memory is for
/// decoded batches that wait.
pub fn threads(memory: u64, threads: usize) -> usize {
    threads.min(usize::try_from(memory / 2 / SMALLEST_PART).unwrap_or(usize::MAX)).max(1)
}

/// Returns the memory of one of `threads` threads in a scan with this memory.
pub fn allowance(memory: u64, threads: usize) -> Allowance {
    let part = memory / 2 / threads.max(1) as u64;
    Allowance { fetched: part / 2, batch: (part / 4).clamp(64 << 10, BATCH) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_run_share() {
        static RUNS: Sharers = Sharers(AtomicU64::new(0));
        assert_eq!(RUNS.part(100), 100);
        let first = RUNS.enter();
        let second = RUNS.enter();
        assert_eq!(RUNS.part(100), 50);
        drop(first);
        assert_eq!(RUNS.part(100), 100);
        drop(second);
        assert_eq!(RUNS.part(100), 100);
    }

    #[test]
    fn all_threads_together_stay_within_half() {
        for memory in [1 << 20, 100 << 20, 1 << 30, 64 << 30] {
            let few = threads(memory, 64);
            let each = allowance(memory, few);
            assert!((1..=64).contains(&few));
            assert!(few as u64 * (each.fetched + each.batch) <= (memory / 2).max(1 << 20), "{memory}");
        }
        assert_eq!((threads(0, 8), threads(1 << 30, 8), threads(32 << 20, 8)), (1, 8, 2));
    }
}
