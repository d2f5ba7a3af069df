//! `deltaic._core`, the sections of the log: commits, tables of actions, snapshots and checkpoints.

use pyo3::prelude::*;

mod actions;
mod checkpoint;
mod commit;
mod snapshot;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    commit::register(m)?;
    actions::register(m)?;
    snapshot::register(m)?;
    checkpoint::register(m)
}
