//! Binds the kernels of SQL functions to Python: `evaluate_kernel`, as in section `expressions.rs` of
//! `_core.pyi`.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::concat;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyArray;

use super::arrow::array_of;
use super::interrupt;
use crate::error::{Error, Kind};
use crate::expressions;

/// Runs a kernel on arrays. The first array has the kernel's name in every row; the others are the arguments.
#[pyfunction]
fn evaluate_kernel<'py>(py: Python<'py>, arguments: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let arrays = arguments.iter().map(whole).collect::<PyResult<Vec<_>>>()?;
    let result = interrupt::brief(py, || {
        let name =
            arrays.first().and_then(|array| array.as_string_opt::<i32>()).filter(|names| !names.is_empty());
        let name = name.ok_or_else(|| Error::new(Kind::InvalidArgument, "a kernel without a name"))?.value(0);
        expressions::evaluate(name, &arrays[1..])
    })?;
    array_of(py, result)
}

/// Returns an array; the chunks of a chunked array are joined.
fn whole(argument: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let any: AnyArray = argument.extract()?;
    let (chunks, field) = any.into_chunked_array()?.into_inner();
    match chunks.as_slice() {
        [one] => Ok(ArrayRef::clone(one)),
        [] => Ok(arrow::array::new_empty_array(field.data_type())),
        many => {
            let parts: Vec<_> = many.iter().map(|chunk| chunk.as_ref()).collect();
            Ok(concat(&parts).map_err(Error::from)?)
        }
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(evaluate_kernel, m)?)
}
