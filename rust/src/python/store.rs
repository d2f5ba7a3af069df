//! `Store`: the binding of [`crate::store`], also with a user's Python object as a store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use super::interrupt;
use super::log_store::PythonStore;
use super::python_owned::{PythonException, PythonOwned};
use crate::error::{Error, Kind};
use crate::store::copy::copy_objects;
use crate::store::credentials::{CredentialSource, Credentials};
use crate::store::{
    BufferedStore, CacheSettings, ObjectMeta, OpenOptions, PutOutcome, StagedObject, Store, open,
};

/// Number of deletes between two checks for an interrupt: the maximum of S3 in one request.
const DELETED_AT_ONCE: usize = 1000;

/// An object in a listing: path, size in bytes and time of modification in ms since 1970.
type Entry = (String, u64, i64);
/// The result of a first look: the bytes of the file, and the objects of the folder.
type PyFirstLook<'py> = (Option<Bound<'py, PyBytes>>, Option<Vec<Entry>>);

fn shown(found: Vec<ObjectMeta>) -> Vec<Entry> {
    found.into_iter().map(|meta| (meta.path, meta.size, meta.modified_ms)).collect()
}

/// The store of a table's location (stub: `Store`).
#[pyclass(name = "Store", module = "deltaic._core", frozen)]
pub struct PyStore {
    /// The store in Rust.
    pub store: Arc<dyn Store>,
    made: StoreOrigin,
}

/// An object that was written durably under a temporary name (stub: `StagedObject`).
#[pyclass(name = "StagedObject", module = "deltaic._core", frozen)]
pub struct PyStagedObject(Box<dyn StagedObject>);

#[pymethods]
impl PyStagedObject {
    fn publish(&self, py: Python<'_>, path: String) -> PyResult<bool> {
        Ok(interrupt::brief(py, || self.0.publish(&path))?)
    }

    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        Ok(interrupt::brief(py, || self.0.settle())?)
    }
}

/// The arguments from which a pickled store is opened again.
enum StoreOrigin {
    Opened { location: String, options: BTreeMap<String, String>, open: OpenOptions },
    Python { object: Py<PyAny>, location: String },
}

impl StoreOrigin {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Opened { location, options, open } => {
                Self::Opened { location: location.clone(), options: options.clone(), open: open.clone() }
            }
            Self::Python { object, location } => {
                Self::Python { object: object.clone_ref(py), location: location.clone() }
            }
        }
    }
}

#[pymethods]
impl PyStore {
    #[new]
    #[pyo3(signature = (location, options=None, *, durable=true, allowed_roots=Vec::new(), credentials=None,
                        cache=None))]
    fn new(
        location: String,
        options: Option<BTreeMap<String, String>>,
        durable: bool,
        allowed_roots: Vec<String>,
        credentials: Option<Py<PyAny>>,
        cache: Option<(String, u64)>,
    ) -> PyResult<Self> {
        let options = options.unwrap_or_default();
        let credentials = credentials
            .map(|function| Arc::new(CredentialFunction::new(function)) as Arc<dyn CredentialSource>);
        let cache = cache.map(|(directory, limit)| CacheSettings { directory: directory.into(), limit });
        let settings = OpenOptions { durable, allowed_roots, storage: options.clone(), credentials, cache };
        let store = open(&location, &settings)?;
        let options = options.into_iter().filter(|(name, _)| !is_secret(name)).collect();
        Ok(Self {
            made: StoreOrigin::Opened { location: store.location().to_owned(), options, open: settings },
            store,
        })
    }

    #[staticmethod]
    fn from_python(log_store: Py<PyAny>, location: String, py: Python<'_>) -> Self {
        let store = Arc::new(PythonStore::new(log_store.clone_ref(py), location.clone()));
        Self { store, made: StoreOrigin::Python { object: log_store, location } }
    }

    #[getter]
    fn is_remote(&self) -> bool {
        self.store.is_remote()
    }

    fn buffered(&self, py: Python<'_>, limit: u64) -> Self {
        Self {
            store: Arc::new(BufferedStore::new(Arc::clone(&self.store), limit)),
            made: self.made.clone_ref(py),
        }
    }

    #[getter]
    fn location(&self) -> &str {
        self.store.location()
    }

    #[pyo3(signature = (prefix, start_after=None, *, recursive=false))]
    fn list_from<'py>(
        &self,
        py: Python<'py>,
        prefix: String,
        start_after: Option<String>,
        recursive: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = self.call(py, || self.store.list_from(&prefix, start_after.as_deref(), recursive))?;
        let columns: [(&str, ArrayRef); 4] = [
            ("path", Arc::new(StringArray::from_iter_values(found.iter().map(|meta| &meta.path)))),
            ("size", Arc::new(Int64Array::from_iter_values(found.iter().map(|meta| meta.size as i64)))),
            (
                "modification_time",
                Arc::new(Int64Array::from_iter_values(found.iter().map(|meta| meta.modified_ms))),
            ),
            ("symlink", Arc::new(BooleanArray::from_iter(found.iter().map(|meta| Some(meta.symlink))))),
        ];
        super::arrow::table_of(py, RecordBatch::try_from_iter(columns).map_err(Error::from)?)
    }

    #[pyo3(signature = (prefix, start_after=None))]
    fn entries(&self, py: Python<'_>, prefix: String, start_after: Option<String>) -> PyResult<Vec<Entry>> {
        Ok(shown(self.call(py, || self.store.list_from(&prefix, start_after.as_deref(), false))?))
    }

    fn first_look<'py>(
        &self,
        py: Python<'py>,
        path: String,
        folder: String,
        most: u64,
    ) -> PyResult<Option<PyFirstLook<'py>>> {
        let found = self.call(py, || self.store.first_look(&path, most, &folder))?;
        Ok(found.map(|look| (look.file.map(|data| PyBytes::new(py, &data)), look.entries.map(shown))))
    }

    fn expect_commit(&self) {
        self.store.expect_commit();
    }

    fn head(&self, py: Python<'_>, path: String) -> PyResult<Option<(u64, i64)>> {
        Ok(self.call(py, || self.store.head(&path))?.map(|meta| (meta.size, meta.modified_ms)))
    }

    fn look_up(
        &self,
        py: Python<'_>,
        folder: String,
        names: Vec<String>,
    ) -> PyResult<Option<Vec<Option<(u64, i64)>>>> {
        let found = self.call(py, || self.store.look_up(&folder, &names))?;
        Ok(found.map(|files| {
            files.into_iter().map(|file| file.map(|file| (file.size, file.modified_ms))).collect()
        }))
    }

    #[pyo3(signature = (path, *, most=None))]
    fn get<'py>(&self, py: Python<'py>, path: String, most: Option<u64>) -> PyResult<Bound<'py, PyBytes>> {
        let too_large = |most| {
            Error::protocol("the file is too large")
                .at(path.as_str())
                .found("more")
                .expected(format!("at most {most} bytes"))
        };
        let read = |most| self.store.get_at_most(&path, most)?.ok_or_else(|| too_large(most));
        Ok(PyBytes::new(py, &self.call(py, || most.map_or_else(|| self.store.get(&path), read))?))
    }

    #[pyo3(signature = (path, data, *, durable=true, after=None))]
    fn put_if_absent(
        &self,
        py: Python<'_>,
        path: String,
        data: PyBackedBytes,
        durable: bool,
        after: Option<Vec<String>>,
    ) -> PyResult<&'static str> {
        let (store, data, after) = (&self.store, Bytes::from_owner(data), after.unwrap_or_default());
        let put = || {
            if durable {
                store.put_after(&path, data, &after)
            } else {
                store.put_if_absent_lightly(&path, data)
            }
        };
        Ok(match self.call(py, put)? {
            PutOutcome::Created => "created",
            PutOutcome::Exists => "exists",
            PutOutcome::Unknown => "unknown",
        })
    }

    #[pyo3(signature = (folder, data, *, after))]
    fn stage(
        &self,
        py: Python<'_>,
        folder: String,
        data: PyBackedBytes,
        after: Vec<String>,
    ) -> PyResult<Option<PyStagedObject>> {
        let data = Bytes::from_owner(data);
        Ok(self.call(py, || self.store.stage(&folder, &data, &after))?.map(PyStagedObject))
    }

    fn put(&self, py: Python<'_>, path: String, data: PyBackedBytes) -> PyResult<()> {
        let data = Bytes::from_owner(data);
        self.call(py, || self.store.put(&path, data))
    }

    fn delete(&self, py: Python<'_>, paths: &Bound<'_, PyAny>) -> PyResult<u64> {
        let paths = super::arrow::strings(paths)?;
        interrupt::run(py, |interrupt| {
            let mut deleted = 0;
            for chunk in paths.iter().flatten().collect::<Vec<_>>().chunks(DELETED_AT_ONCE) {
                interrupt.check()?;
                deleted += self.store.delete_all(chunk)?;
            }
            Ok(deleted)
        })
    }

    fn copy_from(
        &self,
        py: Python<'_>,
        source: &Self,
        origins: &Bound<'_, PyAny>,
        paths: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (origins, paths) = (super::arrow::strings(origins)?, super::arrow::strings(paths)?);
        let objects: Vec<_> = origins
            .iter()
            .flatten()
            .zip(paths.iter().flatten())
            .map(|(from, to)| (from.to_owned(), to.to_owned()))
            .collect();
        interrupt::run(py, |interrupt| copy_objects(&source.store, &self.store, &objects, interrupt))
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
            StoreOrigin::Python { object, location } => {
                Ok((class.getattr("from_python")?, (object.clone_ref(py), location).into_pyobject(py)?))
            }
            StoreOrigin::Opened { location, options, open } => {
                let keywords = PyDict::new(py);
                keywords.set_item("durable", open.durable)?;
                keywords.set_item("allowed_roots", PyList::new(py, &open.allowed_roots)?)?;
                let make = py.import("functools")?.getattr("partial")?.call((class,), Some(&keywords))?;
                Ok((make, (location, options.clone()).into_pyobject(py)?))
            }
        }
    }
}

impl PyStore {
    /// Calls the store. The call runs on a new thread, so that Ctrl-C interrupts it, unless the store's calls
    /// are short.
    pub fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> crate::error::Result<T> + Send,
    ) -> PyResult<T> {
        if self.store.is_brief() { interrupt::brief(py, work) } else { interrupt::run(py, |_| work()) }
    }
}

/// A Python function that takes a location, and returns storage options and the seconds since 1970 until
/// which they are valid, or None.
#[derive(Debug)]
struct CredentialFunction {
    function: PythonOwned<Py<PyAny>>,
    identity: usize,
}

impl CredentialFunction {
    fn new(function: Py<PyAny>) -> Self {
        Self { identity: function.as_ptr() as usize, function: PythonOwned::new(function) }
    }
}

impl CredentialSource for CredentialFunction {
    fn credentials(&self, location: &str) -> crate::error::Result<Credentials> {
        let gone =
            || Error::new(Kind::Io, "the function that returns credentials no longer exists").at(location);
        let function = self.function.get().ok_or_else(gone)?;
        Python::attach(|py| {
            let given = function
                .bind(py)
                .call1((location,))
                .and_then(|given| given.extract::<(BTreeMap<String, String>, Option<f64>)>());
            let raised = |error| {
                Error::new(Kind::Foreign, "the function that returns credentials raised an exception")
                    .at(location)
                    .caused_by(PythonException::new(py, error))
            };
            let (options, until) = given.map_err(raised)?;
            let until = until
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .map(|since| SystemTime::UNIX_EPOCH + since);
            Ok((options, until))
        })
    }
    fn identity(&self) -> usize {
        self.identity
    }
}

/// Returns true for an option whose value must not be in a pickle.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "secret", "token", "passw", "credential", "sas", "signature", "auth", "proxy_url"]
        .iter()
        .any(|word| name.contains(word))
}

/// Returns the store of a Python object. Another object than a `Store` is an InvalidArgumentError.
pub fn store_of(object: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Store>> {
    let store = object
        .cast::<PyStore>()
        .map_err(|_| Error::new(Kind::InvalidArgument, "not a deltaic._core.Store").found(object))?;
    Ok(Arc::clone(&store.get().store))
}

/// Raises InvalidArgumentError if the local cache cannot use this folder.
#[pyfunction]
fn check_cache_folder(path: std::path::PathBuf) -> PyResult<()> {
    Ok(crate::store::cache_folder::check(&path)?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(check_cache_folder, m)?)?;
    m.add_class::<PyStagedObject>()?;
    m.add_class::<PyStore>()
}
