//! Reads the number of rows of a data file from its Parquet footer, for files whose statistics do not have
//! it.

use std::sync::Arc;

use crate::data_file::source::{FileBytes, read_footer};
use crate::error::{Error, Kind, Result};
use crate::store::{Store, resolve};

/// Returns the number of rows of the Parquet file at `path`, a path as written in the log.
///
/// # Errors
/// There is no such file, or it does not end as a Parquet file does.
pub fn rows(store: &Arc<dyn Store>, path: &str) -> Result<u64> {
    let (store, path) = resolve(store, path)?;
    let found = store
        .head(&path)?
        .ok_or_else(|| Error::new(Kind::NotFound, "no such data file").at(path.as_str()))?;
    let footer = read_footer(&FileBytes::new(store, path.clone(), found.size, Arc::default()), false)?;
    let rows = footer.file_metadata().num_rows();
    u64::try_from(rows)
        .map_err(|_| Error::protocol("data file has a negative number of rows").at(path).found(rows))
}
