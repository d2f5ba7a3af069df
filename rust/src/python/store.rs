//! `Store`: the binding of [`crate::store`], and a user's Python object as a store.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use super::interrupt;
use super::log_store::PythonStore;
use crate::error::{Error, Kind};
use crate::store::{OpenOptions, PutOutcome, Store, open};

/// A table's place.
#[pyclass(name = "Store", module = "deltaic._core", frozen)]
pub struct PyStore {
    /// What the Rust side works on.
    pub store: Arc<dyn Store>,
    made: Made,
}

/// What pickling needs.
enum Made {
    Opened { location: String, options: BTreeMap<String, String>, open: OpenOptions },
    Python { object: Py<PyAny>, location: String },
}

#[pymethods]
impl PyStore {
    #[new]
    #[pyo3(signature = (location, options=None, *, durable=true, allowed_roots=Vec::new()))]
    fn new(location: String, options: Option<BTreeMap<String, String>>, durable: bool, allowed_roots: Vec<String>) -> PyResult<Self> {
        let settings = OpenOptions { durable, allowed_roots };
        let store = open(&location, &settings)?;
        let options = options.unwrap_or_default().into_iter().filter(|(name, _)| !is_secret(name)).collect();
        Ok(Self { made: Made::Opened { location: store.location().to_owned(), options, open: settings }, store })
    }

    #[staticmethod]
    fn from_python(log_store: Py<PyAny>, location: String, py: Python<'_>) -> Self {
        let store = Arc::new(PythonStore::new(log_store.clone_ref(py), location.clone()));
        Self { store, made: Made::Python { object: log_store, location } }
    }

    #[getter]
    fn location(&self) -> &str {
        self.store.location()
    }

    #[pyo3(signature = (prefix, start_after=None, *, recursive=false))]
    fn list_from<'py>(&self, py: Python<'py>, prefix: String, start_after: Option<String>, recursive: bool) -> PyResult<Bound<'py, PyAny>> {
        let found = interrupt::run(py, |_| self.store.list_from(&prefix, start_after.as_deref(), recursive))?;
        let columns: [(&str, ArrayRef); 4] = [
            ("path", Arc::new(StringArray::from_iter_values(found.iter().map(|meta| &meta.path)))),
            ("size", Arc::new(Int64Array::from_iter_values(found.iter().map(|meta| meta.size as i64)))),
            ("modification_time", Arc::new(Int64Array::from_iter_values(found.iter().map(|meta| meta.modified_ms)))),
            ("symlink", Arc::new(BooleanArray::from_iter(found.iter().map(|meta| Some(meta.symlink))))),
        ];
        super::arrow::table_of(py, RecordBatch::try_from_iter(columns).map_err(Error::from)?)
    }

    #[pyo3(signature = (prefix, start_after=None))]
    fn entries(&self, py: Python<'_>, prefix: String, start_after: Option<String>) -> PyResult<Vec<(String, u64, i64)>> {
        let found = interrupt::run(py, |_| self.store.list_from(&prefix, start_after.as_deref(), false))?;
        Ok(found.into_iter().map(|meta| (meta.path, meta.size, meta.modified_ms)).collect())
    }

    fn head(&self, py: Python<'_>, path: String) -> PyResult<Option<(u64, i64)>> {
        Ok(interrupt::run(py, |_| self.store.head(&path))?.map(|meta| (meta.size, meta.modified_ms)))
    }

    #[pyo3(signature = (path, *, most=None))]
    fn get<'py>(&self, py: Python<'py>, path: String, most: Option<u64>) -> PyResult<Bound<'py, PyBytes>> {
        let too_large =
            |most| Error::protocol("the file is too large").at(path.as_str()).found("more").expected(format!("at most {most} bytes"));
        let read = |most| self.store.get_at_most(&path, most)?.ok_or_else(|| too_large(most));
        Ok(PyBytes::new(py, &interrupt::run(py, |_| most.map_or_else(|| self.store.get(&path), read))?))
    }

    #[pyo3(signature = (path, data, *, durable=true))]
    fn put_if_absent(&self, py: Python<'_>, path: String, data: &[u8], durable: bool) -> PyResult<&'static str> {
        let (store, data) = (&self.store, Bytes::copy_from_slice(data));
        let put = || if durable { store.put_if_absent(&path, data) } else { store.put_if_absent_lightly(&path, data) };
        Ok(match interrupt::run(py, |_| put())? {
            PutOutcome::Created => "created",
            PutOutcome::Exists => "exists",
            PutOutcome::Unknown => "unknown",
        })
    }

    fn put(&self, py: Python<'_>, path: String, data: &[u8]) -> PyResult<()> {
        let data = Bytes::copy_from_slice(data);
        interrupt::run(py, |_| self.store.put(&path, data))
    }

    fn delete(&self, py: Python<'_>, paths: &Bound<'_, PyAny>) -> PyResult<u64> {
        let paths = super::arrow::strings(paths)?;
        interrupt::run(py, |interrupt| {
            let mut deleted = 0;
            for path in paths.iter().flatten() {
                interrupt.check()?;
                deleted += u64::from(self.store.delete(path)?);
            }
            Ok(deleted)
        })
    }

    #[pyo3(signature = (prefix=String::new()))]
    fn remove_empty_directories(&self, py: Python<'_>, prefix: String) -> PyResult<u64> {
        interrupt::run(py, |_| self.store.remove_empty_directories(&prefix))
    }

    fn __repr__(&self) -> String {
        format!("Store({:?})", crate::store::path::without_query(self.store.location()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let class = py.get_type::<Self>();
        match &self.made {
            Made::Python { object, location } => Ok((class.getattr("from_python")?, (object.clone_ref(py), location).into_pyobject(py)?)),
            Made::Opened { location, options, open } => {
                let keywords = PyDict::new(py);
                keywords.set_item("durable", open.durable)?;
                keywords.set_item("allowed_roots", PyList::new(py, &open.allowed_roots)?)?;
                let make = py.import("functools")?.getattr("partial")?.call((class,), Some(&keywords))?;
                Ok((make, (location, options.clone()).into_pyobject(py)?))
            }
        }
    }
}

/// Options whose value must not travel in a pickle.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "secret", "token", "password", "credential", "sas", "signature"].iter().any(|word| name.contains(word))
}

/// A path that must be text.
pub fn store_of(object: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Store>> {
    let store = object.cast::<PyStore>().map_err(|_| Error::new(Kind::InvalidArgument, "not a deltaic._core.Store").found(object))?;
    Ok(Arc::clone(&store.get().store))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyStore>()
}
