//! What defines a version, its protocol and metadata, with no look at its files.

use std::sync::Arc;

use super::checkpoint;
use super::commit::Commit;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::store::Store;

/// JSON of the newest of each action.
#[derive(Debug, Clone, Default)]
pub struct Definition {
    /// `protocol`
    pub protocol: Option<String>,
    /// `metaData`
    pub metadata: Option<String>,
}

impl Definition {
    /// From the commits (version, path), newest first, then from the checkpoint; no more of them than are needed.
    pub fn read(store: &Arc<dyn Store>, parts: &[String], commits: &[(u64, String)], interrupt: &Interrupt) -> Result<Self> {
        let mut found = Self::default();
        for (_, path) in commits.iter().rev() {
            interrupt.check()?;
            found.take(Commit::read_definition(store.as_ref(), path, interrupt)?);
            if found.is_whole() {
                return Ok(found);
            }
        }
        if !parts.is_empty() {
            found.take(checkpoint::read_definition(store, parts, interrupt)?);
        }
        Ok(found)
    }

    fn take(&mut self, older: Commit) {
        self.protocol = self.protocol.take().or(older.protocol);
        self.metadata = self.metadata.take().or(older.metadata);
    }

    fn is_whole(&self) -> bool {
        self.protocol.is_some() && self.metadata.is_some()
    }
}
