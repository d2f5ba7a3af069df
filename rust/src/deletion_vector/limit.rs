//! The maximum number of bytes of one vector, for the whole process. A vector of a random half of 500 million
//! rows has 64 MiB.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// The default limit: 64 MiB.
pub const DEFAULT_BYTES: u64 = 64 << 20;

static BYTES: AtomicU64 = AtomicU64::new(DEFAULT_BYTES);

/// Returns the limit in bytes.
pub fn bytes() -> u64 {
    BYTES.load(Ordering::Relaxed)
}

/// Sets the limit for the process, and returns the previous one.
pub fn set_bytes(bytes: u64) -> u64 {
    BYTES.swap(bytes, Ordering::Relaxed)
}

/// Returns an error if a vector of `size` bytes exceeds the limit. Call it before fetching or allocating the
/// bytes.
pub fn check(size: u64) -> Result<()> {
    let limit = bytes();
    if size <= limit {
        return Ok(());
    }
    Err(Error::protocol("deletion vector is larger than the limit for vectors")
        .found(format!("{size} bytes"))
        .expected(format!("at most {limit} bytes (the limit `vector_bytes`)")))
}
