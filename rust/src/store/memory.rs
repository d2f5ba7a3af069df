//! Stores in the memory of the process, as `memory://name/folder`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use object_store::ObjectStore;
use object_store::memory::InMemory;

use super::OpenOptions;
use super::object::{Clients, ObjectStoreAdapter};
use crate::error::{Error, Kind, Result};

/// Memory stores by the name in their URL; they exist as long as the process.
static MEMORY: Mutex<Option<HashMap<String, Arc<InMemory>>>> = Mutex::new(None);

/// Opens `memory://name/folder`. In a process, each name has one store.
pub fn open(location: &str, options: &OpenOptions) -> Result<ObjectStoreAdapter> {
    let body = location.strip_prefix("memory://").unwrap_or_default().trim_end_matches('/');
    let (name, prefix) = body.split_once('/').unwrap_or((body, ""));
    if name.is_empty() {
        return Err(Error::new(Kind::InvalidArgument, "a memory store has a name")
            .at(location)
            .expected("memory://name/folder"));
    }
    let mut registry = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let backend = Arc::clone(registry.get_or_insert_with(HashMap::new).entry(name.to_owned()).or_default());
    let backend: Arc<dyn ObjectStore> = backend;
    let clients = Clients { commits: Arc::clone(&backend), backend, pages: None, unproven: None };
    ObjectStoreAdapter::new(format!("memory://{body}"), prefix, clients, options)
}
