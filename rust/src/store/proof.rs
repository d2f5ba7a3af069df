//! Checks that a location supports put-if-absent, once per process and before the first commit.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use object_store::path::Path;
use object_store::{Error as BackendError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::task::JoinHandle;

use super::failure;
use super::runtime::runtime;
use crate::error::{Error, Kind, Result};

/// Locations that are known to support put-if-absent.
static PROVEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// True if a location is known to support put-if-absent.
fn is_proven(name: &str) -> bool {
    PROVEN.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
}

/// The check of put-if-absent that one store does: it puts a small object twice, and the second put must
/// fail.
pub struct PutIfAbsentProof {
    location: String,
    backend: Arc<dyn ObjectStore>,
    unproven: Option<String>,
    running: Mutex<Option<RunningProof>>,
}

/// A check whose requests run.
struct RunningProof {
    process: u32,
    path: String,
    puts: JoinHandle<(object_store::Result<()>, JoinHandle<()>)>,
}

impl PutIfAbsentProof {
    /// Makes the check of the store at `location`. `unproven`: a name for what is checked, which the process
    /// remembers; `None` if the store is known to support put-if-absent.
    pub fn new(location: String, backend: Arc<dyn ObjectStore>, unproven: Option<String>) -> Self {
        Self { location, backend, unproven, running: Mutex::default() }
    }

    /// Begins the check, unless the result is known. It runs beside an upload, so that the commit after it
    /// need not wait. `full`: returns the name in the backend of a path below the location.
    pub fn begin(&self, full: &dyn Fn(&str) -> Result<Path>) -> Result<()> {
        let Some(name) = &self.unproven else { return Ok(()) };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // A task of the parent never ends in the child of a fork.
        if is_proven(name) || running.as_ref().is_some_and(|proof| proof.process == std::process::id()) {
            return Ok(());
        }
        let path = format!("_delta_log/.probe-{}", uuid::Uuid::new_v4());
        let puts = runtime()?.spawn(second_put(Arc::clone(&self.backend), full(&path)?));
        std::mem::forget(running.replace(RunningProof { process: std::process::id(), path, puts }));
        Ok(())
    }

    /// Waits for the result of the check, which begins now if it has not begun. If the second put succeeded,
    /// commits could overwrite each other, which is an error of [`Kind::UnsafeStore`]. The returned task
    /// deletes the object while the commit goes on; `None` if the result was known.
    pub fn finish(&self, full: &dyn Fn(&str) -> Result<Path>) -> Result<Option<JoinHandle<()>>> {
        self.begin(full)?;
        let Some(RunningProof { path, puts, .. }) =
            self.running.lock().unwrap_or_else(PoisonError::into_inner).take()
        else {
            return Ok(None);
        };
        let stopped = |error| {
            Error::new(Kind::Io, "the check of put-if-absent got no answer")
                .at(path.as_str())
                .caused_by(error)
        };
        let (last, deleting) = runtime()?.block_on(puts).map_err(stopped)?;
        let refused = match last {
            Err(BackendError::AlreadyExists { .. } | BackendError::Precondition { .. }) => {
                PROVEN.lock().unwrap_or_else(PoisonError::into_inner).extend(self.unproven.clone());
                return Ok(Some(deleting));
            }
            Ok(()) => Error::new(
                Kind::UnsafeStore,
                "the store replaces objects where a put is only to create: two writers could lose commits",
            )
            .at(self.location.as_str())
            .found("a second put with If-None-Match that succeeded")
            .expected("a store that heeds If-None-Match, or a store of your own in configure(log_stores=)"),
            Err(error) => failure::backend_error(&self.location, &path, error),
        };
        let _ = runtime()?.block_on(deleting);
        Err(refused)
    }
}

/// Puts one name twice. Returns the outcome of the second put, and the task that deletes the object.
async fn second_put(backend: Arc<dyn ObjectStore>, full: Path) -> (object_store::Result<()>, JoinHandle<()>) {
    let put = || {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        backend.put_opts(&full, PutPayload::from_static(b"probe"), options)
    };
    let first = put().await;
    // If the answer to the first put was lost, its retry finds its own object, which is proof too.
    let last = if first.is_ok() { put().await } else { first };
    let deleting = tokio::spawn(async move {
        // If this fails, a small object is left, which a cleanup of the log deletes.
        let _ = backend.delete(&full).await;
    });
    (last.map(drop), deleting)
}
