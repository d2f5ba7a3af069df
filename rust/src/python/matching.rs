//! Binds the join of two tables by equal keys to Python, as in section `matching.rs` of `_core.pyi`.

use pyo3::prelude::*;

use super::arrow::{batch_of, table_of};
use super::interrupt;
use crate::matching;

/// Returns the pairs of rows of two tables whose keys are equal (stub: `join`).
#[pyfunction]
#[pyo3(signature = (left, right, keys, *, most, keep_right=false))]
fn join<'py>(
    py: Python<'py>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    keys: Vec<(String, String)>,
    most: usize,
    keep_right: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (left, right) = (batch_of(left)?, batch_of(right)?);
    let joined = interrupt::brief(py, || matching::join(&left, &right, &keys, keep_right, most))?;
    joined.map(|pairs| table_of(py, pairs)).transpose()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(join, m)?)
}
