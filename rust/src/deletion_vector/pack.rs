//! Writes vectors: several to one file, up to a target size, or inline into the log.

use bytes::Bytes;
use std::sync::Arc;
use uuid::Uuid;

use super::file::{self, FileBuilder};
use super::{DeletionVector, Descriptor, limit};
use crate::error::{Error, Kind, Result};
use crate::store::Store;

/// Where and how vectors are written.
#[derive(Debug, Clone)]
pub struct VectorTarget {
    /// True to write vectors into the log instead of files.
    pub inline: bool,
    /// Number of letters of a random folder for a file; 0: none.
    pub prefix_length: usize,
    /// Maximum number of bytes of a file, unless a single vector is larger.
    pub target_size: usize,
}

/// Writes files of vectors. They are deleted when this is dropped before [`Packer::finish`].
#[derive(Debug)]
pub struct Packer<'a> {
    store: &'a Arc<dyn Store>,
    packing: &'a VectorTarget,
    open: Option<OpenFile>,
    written: Vec<String>,
    bytes: u64,
}

#[derive(Debug, Default)]
struct OpenFile {
    prefix: String,
    id: Uuid,
    builder: FileBuilder,
}

impl<'a> Packer<'a> {
    /// Makes a packer that has written nothing yet.
    pub fn new(store: &'a Arc<dyn Store>, packing: &'a VectorTarget) -> Self {
        Self { store, packing, open: None, written: Vec::new(), bytes: 0 }
    }

    /// Adds a vector; its descriptor is valid after [`Self::finish`].
    ///
    /// # Errors
    /// The vector is above the limit for vectors, or the store fails.
    pub fn add(&mut self, rows: &DeletionVector) -> Result<Descriptor> {
        if self.packing.inline {
            return Descriptor::inline(rows);
        }
        let data = rows.to_bytes();
        limit::check(data.len() as u64)?;
        let full = |file: &OpenFile| {
            !file.builder.is_empty() && file.builder.len() + data.len() + 8 > self.packing.target_size
        };
        if self.open.as_ref().is_some_and(full) {
            self.close()?;
        }
        let file = self.open.get_or_insert_with(|| OpenFile {
            prefix: random_prefix(self.packing.prefix_length),
            id: Uuid::new_v4(),
            builder: FileBuilder::default(),
        });
        let place = file.builder.append(&data)?;
        Ok(Descriptor::in_file(&file.prefix, file.id, place, rows.cardinality() as i64))
    }

    fn close(&mut self) -> Result<()> {
        let Some(OpenFile { prefix, id, builder }) = self.open.take() else { return Ok(()) };
        let name = file::name(id);
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let data = Bytes::from(builder.finish());
        let size = data.len() as u64;
        // Remembered before the put, as a failed put may still have created the file.
        self.written.push(path.clone());
        // Not durable yet: the commit that names the file makes it durable.
        self.store.put_unsynced(&path, data)?;
        self.bytes += size;
        Ok(())
    }

    /// Writes the open file, and returns the paths of all files and their total size.
    pub fn finish(mut self) -> Result<(Vec<String>, u64)> {
        self.close()?;
        Ok((std::mem::take(&mut self.written), self.bytes))
    }
}

impl Drop for Packer<'_> {
    fn drop(&mut self) {
        for path in &self.written {
            if let Err(error) = self.store.delete(path) {
                log::warn!(
                    target: "deltaic",
                    "vector file {path} of a failed write was not deleted: {error}"
                );
            }
        }
    }
}

/// Returns random letters and digits, as other writers use them.
fn random_prefix(length: usize) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let random = std::iter::repeat_with(|| Uuid::new_v4().as_u128() >> 64);
    random
        .take(length)
        .filter_map(|number| LETTERS.get((number % 62) as usize))
        .map(|letter| char::from(*letter))
        .collect()
}

/// Returns an error for a folder name that file systems do not allow.
pub fn check(packing: &VectorTarget) -> Result<()> {
    if packing.prefix_length <= 200 {
        return Ok(());
    }
    Err(Error::new(Kind::InvalidArgument, "random prefix is too long")
        .found(packing.prefix_length)
        .expected("at most 200 letters"))
}

#[cfg(test)]
mod tests;
