//! Registers the binding: one thin file per module of the crate. Extract, detach, call, wrap.

use pyo3::prelude::*;

pub mod error;
pub mod interrupt;
pub mod predicate;
pub mod schema;

#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    predicate::register(m)?;
    schema::register(m)?;
    Ok(())
}
