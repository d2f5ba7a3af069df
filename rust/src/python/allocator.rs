//! Sets the memory allocator of the extension: for how long freed memory is kept.

use std::ffi::{c_int, c_long};

use pyo3::prelude::*;

/// `mi_option_purge_delay` of mimalloc 2: milliseconds until freed memory goes back to the system, arenas ten
/// times as late.
const PURGE_DELAY: c_int = 15;

#[allow(unsafe_code)]
unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
}

/// Sets for how many milliseconds freed memory is kept before it is returned to the system, unless the user
/// has set `MIMALLOC_PURGE_DELAY`.
#[pyfunction]
#[allow(unsafe_code)]
fn keep_freed_memory(milliseconds: u16) {
    static IS_THE_USERS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    if !IS_THE_USERS.get_or_init(|| std::env::var_os("MIMALLOC_PURGE_DELAY").is_some()) {
        // SAFETY: the option is a number that the allocator reads by itself; any thread may set it at any
        // time.
        unsafe { mi_option_set(PURGE_DELAY, c_long::from(milliseconds)) }
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(keep_freed_memory, m)?)
}
