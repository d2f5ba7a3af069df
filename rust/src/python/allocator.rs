//! The allocator's settings.

use std::ffi::{c_int, c_long};

/// `mi_option_purge_delay` of mimalloc 2: milliseconds until freed memory goes back to the system, arenas ten times as late.
const PURGE_DELAY: c_int = 15;
/// Its value where nobody sets it: any other value means that this option is another one, or that the user has set it.
const UNSET: c_long = 10;
/// Between the batches of a scan, and between the queries of a session, memory stays: with 10 ms a quarter of the processor time of
/// TPC-H's q1 was spent on clearing pages that had just been given back.
const DELAY: c_long = 100;

/// Keeps freed memory for a while. `MIMALLOC_PURGE_DELAY` wins.
#[allow(unsafe_code)]
pub fn keep_freed_memory() {
    unsafe extern "C" {
        fn mi_option_get(option: c_int) -> c_long;
        fn mi_option_set_default(option: c_int, value: c_long);
    }
    // SAFETY: both take any option and value, and are called while the module is imported, before another thread allocates by it.
    unsafe {
        if mi_option_get(PURGE_DELAY) == UNSET {
            mi_option_set_default(PURGE_DELAY, DELAY);
        }
    }
}
