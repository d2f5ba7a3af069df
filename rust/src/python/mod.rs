//! Registers the binding, with one file or folder for each module of the crate. A function extracts its
//! arguments, detaches from the interpreter, calls the crate and wraps the result.

use pyo3::prelude::*;

pub mod allocator;
pub mod arrow;
pub mod data_file;
pub mod deletion_vector;
pub mod error;
pub mod expressions;
pub mod iceberg;
pub mod interrupt;
pub mod log;
pub mod log_store;
pub mod matching;
pub mod predicate;
pub mod python_owned;
pub mod row_ids;
pub mod schema;
pub mod store;
pub mod stream;
pub mod zorder;

#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    // Warnings only, as the thread waits for Python's lock for each line.
    if let Ok(logger) = pyo3_log::Logger::new(m.py(), pyo3_log::Caching::Nothing) {
        // The first module of a process has installed its own.
        logger.filter(::log::LevelFilter::Warn).install().ok();
    }
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    allocator::register(m)?;
    arrow::register(m)?;
    data_file::register(m)?;
    deletion_vector::register(m)?;
    expressions::register(m)?;
    iceberg::register(m)?;
    interrupt::register(m)?;
    log::register(m)?;
    matching::register(m)?;
    predicate::register(m)?;
    row_ids::register(m)?;
    schema::register(m)?;
    store::register(m)?;
    stream::register(m)?;
    zorder::register(m)?;
    Ok(())
}
