//! Runs long work without the interpreter's lock: Ctrl-C stops it, and a panic becomes an error.

use std::cell::RefCell;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use pyo3::prelude::*;

use super::python_owned;
use crate::error::{Error, Result};
use crate::guard;
use crate::interrupt::Interrupt;

/// The time between two checks for signals by the main thread while work runs on another thread.
const POLL: Duration = Duration::from_millis(100);

thread_local! {
    /// The flag that may stop the work of this thread, besides signals.
    static WATCHED: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// A flag by which one thread of Python stops the work of another, as only the main thread gets signals
/// (stub: `Interrupt`).
#[pyclass(name = "Interrupt", module = "deltaic._core", frozen)]
pub struct PyInterrupt(Interrupt);

#[pymethods]
impl PyInterrupt {
    #[new]
    fn new() -> Self {
        Self(Interrupt::default())
    }
    fn watch(&self) {
        WATCHED.with(|watched| watched.replace(Some(self.0.clone())));
    }
    fn stop(&self) {
        self.0.raise();
    }
}

/// Runs pending handlers of signals (on the main thread) and raises an exception that another thread has set
/// for this one.
pub fn check(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    // An exception that was set for a thread is raised only when bytecode is evaluated.
    py.eval(c"None", None, None).map(drop)
}

/// Runs `work` on a thread of its own while this one, detached from the interpreter, checks for signals.
/// `work` gets the flag to check in its loops; when the flag is set, the signal's own exception is raised.
pub fn run<T: Send>(py: Python<'_>, work: impl FnOnce(&Interrupt) -> Result<T> + Send) -> PyResult<T> {
    python_owned::free(py);
    if let Some(interrupt) = WATCHED.with(|watched| watched.borrow().clone()) {
        // Signals do not reach this thread; the thread that started it waits for them and raises the flag.
        return brief(py, || work(&interrupt));
    }
    let interrupt = Interrupt::default();
    let (done, finished) = sync_channel(1);
    let finished = Mutex::new(finished);
    let work = Mutex::new(Some(work));
    let take = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
    std::thread::scope(|scope| {
        let (token, take) = (interrupt.clone(), &take);
        let spawned = Builder::new().spawn_scoped(scope, move || {
            if let Some(work) = take() {
                let result = guarded(|| work(&token));
                let _ = done.send(result); // the receiver outlives this thread
            }
        });
        if spawned.is_err()
            && let Some(work) = take()
        {
            // The system starts no more threads, so signals wait for the end of the work.
            return brief(py, || work(&interrupt));
        }
        let mut stopped: Option<PyErr> = None;
        loop {
            let answer = py.detach(|| match finished.lock() {
                Ok(receiver) => receiver.recv_timeout(POLL),
                Err(_) => Err(RecvTimeoutError::Disconnected),
            });
            match answer {
                Ok(result) => return stopped.map_or_else(|| result.map_err(PyErr::from), Err),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::protocol("the worker ended without an answer").into());
                }
                Err(RecvTimeoutError::Timeout) if stopped.is_none() => {
                    if let Err(signal) = check(py) {
                        interrupt.raise();
                        stopped = Some(signal);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    })
}

/// Runs short work on this thread with the interpreter released; a panic becomes an error.
pub fn brief<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    python_owned::free(py);
    py.detach(|| guarded(work)).map_err(PyErr::from)
}

/// Runs `work`. Malformed bytes that make a dependency panic give an error, never a `PanicException`.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    guard::guarded("the input could not be processed", work)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyInterrupt>()
}
