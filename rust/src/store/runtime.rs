//! The threads of the process that run the requests of object stores.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, Kind, Result};

/// The runtime of this process; after a fork, the child creates its own.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// Returns the runtime of this process, which the first call creates.
pub fn runtime() -> Result<Arc<Runtime>> {
    let mut slot = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = slot.as_ref()
        && *owner == process
    {
        return Ok(Arc::clone(runtime));
    }
    let fresh = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let fresh =
        Arc::new(fresh.map_err(|error| Error::new(Kind::Io, "no threads for the store").caused_by(error))?);
    // The parent's threads do not exist in the child, so dropping the parent's runtime would wait for them
    // for ever.
    std::mem::forget(slot.replace((process, Arc::clone(&fresh))));
    Ok(fresh)
}
