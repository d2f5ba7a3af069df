//! Binds Iceberg manifests and manifest lists to Python, as in section `iceberg.rs` of `_core.pyi`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrow::batch_of;
use super::interrupt;
use super::schema::PyTableSchema;
use crate::error::{Error, Kind};
use crate::iceberg;

/// Returns a manifest with entries for added files and entries of older manifests (stub: `iceberg_manifest`).
#[pyfunction]
fn iceberg_manifest<'py>(
    py: Python<'py>,
    adds: &Bound<'py, PyAny>,
    schema: &Bound<'py, PyTableSchema>,
    options: &str,
    former: Vec<Vec<u8>>,
    gone: Vec<String>,
) -> PyResult<(Bound<'py, PyBytes>, String)> {
    let (adds, schema) = (batch_of(adds)?, std::sync::Arc::clone(&schema.get().0));
    let (data, counts) = interrupt::brief(py, || {
        let options = serde_json::from_str(options)
            .map_err(|error| Error::new(Kind::InvalidArgument, "options of a manifest").caused_by(error))?;
        let former: Vec<&[u8]> = former.iter().map(Vec::as_slice).collect();
        iceberg::manifest(&adds, &schema, &former, &gone, &options)
    })?;
    let counts = serde_json::to_string(&counts)
        .map_err(|error| Error::protocol("counts of a manifest").caused_by(error))?;
    Ok((PyBytes::new(py, &data), counts))
}

/// Returns a manifest list (stub: `iceberg_manifest_list`).
#[pyfunction]
fn iceberg_manifest_list<'py>(
    py: Python<'py>,
    manifests: &str,
    header: &str,
    version: u8,
) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &iceberg::write_list(manifests, header, version)?))
}

/// Returns the manifests of a manifest list (stub: `read_iceberg_manifest_list`).
#[pyfunction]
fn read_iceberg_manifest_list(data: &[u8]) -> PyResult<String> {
    Ok(iceberg::read_list(data)?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(iceberg_manifest, m)?)?;
    m.add_function(wrap_pyfunction!(iceberg_manifest_list, m)?)?;
    m.add_function(wrap_pyfunction!(read_iceberg_manifest_list, m)?)
}
