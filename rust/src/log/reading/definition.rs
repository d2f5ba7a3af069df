//! Reads the definition of a version, which is its protocol and metadata, without its files.

use std::sync::Arc;

use super::checkpoint;
use super::commit::Commit;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::store::Store;

/// JSON of the newest action of each kind.
#[derive(Debug, Clone, Default)]
pub struct Definition {
    /// `protocol`
    pub protocol: Option<String>,
    /// `metaData`
    pub metadata: Option<String>,
}

impl Definition {
    /// Reads the commits (version, path), newest first, then the checkpoint, until both actions are found.
    pub fn read(
        store: &Arc<dyn Store>,
        parts: &[String],
        commits: &[(u64, String)],
        interrupt: &Interrupt,
    ) -> Result<Self> {
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
