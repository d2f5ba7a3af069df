//! Checkpoints: writing one of a snapshot, the names of its sidecars, and the text of its checksum.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::log::reading::{checkpoint, hint};
use crate::log::state::snapshot::Snapshot;
use crate::log::writing::checkpoint_v2;
use crate::log::writing::checkpoint_writer::{self, Choices, WrittenCheckpoint};
use crate::python::interrupt;
use crate::python::store::PyStore;
use crate::schema::from_arrow::fields_from_arrow;
use crate::schema::json;

/// Writes a checkpoint of a snapshot. `second_form`: for a V2 checkpoint, an id for the names of its sidecars
/// and their time (ms).
pub fn write_checkpoint(
    snapshot: &Snapshot,
    store: &PyStore,
    path: &str,
    second_form: Option<&(String, i64)>,
    choices: &Choices,
    interrupt: &Interrupt,
) -> Result<WrittenCheckpoint> {
    let store = store.store.as_ref();
    match second_form {
        Some((id, now)) => checkpoint_v2::write(snapshot, store, path, (id, *now), choices, interrupt),
        None => checkpoint_writer::write(snapshot, store, path, choices, interrupt),
    }
}

/// Returns the result of `Snapshot.write_checkpoint` as a dict.
pub fn described<'py>(py: Python<'py>, written: &WrittenCheckpoint) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("size", written.actions)?;
    answer.set_item("size_in_bytes", written.bytes)?;
    answer.set_item("num_of_add_files", written.adds)?;
    answer.set_item("top_size_in_bytes", written.top_bytes)?;
    answer
        .set_item("sidecars", written.sidecars.iter().map(|sidecar| sidecar.to_json()).collect::<Vec<_>>())?;
    answer.set_item("kept_sidecars", written.kept)?;
    // The schema in `_last_checkpoint` is optional: it is omitted if a column has no Delta type.
    answer.set_item(
        "schema",
        fields_from_arrow(&written.schema).ok().map(|fields| json::struct_json(&fields).to_string()),
    )?;
    Ok(answer)
}

#[pyfunction]
fn checkpoint_sidecars(py: Python<'_>, store: &PyStore, parts: Vec<String>) -> PyResult<Vec<String>> {
    interrupt::run(py, |interrupt| checkpoint::sidecar_names(&store.store, &parts, interrupt))
}

/// Returns the text whose MD5 is the checksum in `_last_checkpoint`.
#[pyfunction]
fn canonical_json(document: &str) -> PyResult<String> {
    Ok(hint::canonical(document)?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(checkpoint_sidecars, m)?)?;
    m.add_function(wrap_pyfunction!(canonical_json, m)?)
}
