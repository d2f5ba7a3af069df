//! Deletion vectors: sets of rows of one data file. PROTOCOL.md, "Deletion Vectors" and "Deletion Vector
//! Format".
//!
//! - [`rows`]: the set itself: algebra, runs, masks
//! - [`arrays`]: makes sets from Arrow arrays, and removes deleted rows from batches
//! - [`encoding`]: converts between a set and bytes (64-bit roaring, portable); malformed bytes are found by
//!   arithmetic on sizes
//! - [`file`]: converts between bytes and a `.bin` file (the frame and its CRC-32)
//! - [`descriptor`]: the `deletionVector` field of an action, which names the place of the bytes; reads them
//! - [`columns`]: converts between the `deletionVector` column of tables of actions and descriptors
//! - [`update`]: merges rows to delete into vectors, and makes the actions for them; with [`pack`] (writes
//!   many vectors to one file), [`wide_statistics`] and [`footer`] (the statistics of a file with a vector)
//! - [`rebase`]: what another commit did to the rows that a command has found
//! - [`row_ids`]: collects rows of many files from pairs
//! - [`values`]: Z85 and vectors as values of columns
//! - [`limit`]: the maximum size of a vector

pub mod arrays;
pub mod columns;
pub mod descriptor;
pub mod encoding;
pub mod file;
pub mod footer;
pub mod limit;
pub mod pack;
pub mod rebase;
pub mod row_ids;
pub mod rows;
pub mod update;
pub mod values;
pub mod wide_statistics;

pub use descriptor::{Descriptor, VectorRequest, read_all};
pub use row_ids::RowIds;
pub use rows::DeletionVector;
pub use update::mark_deleted;

/// Index of a row in its data file, counted from the file's first row, including rows that are pruned or
/// skipped.
pub type RowIndex = u64;

/// Maximum row index: row indexes are signed 64-bit numbers in Parquet and in the log.
pub const MAX_ROW: RowIndex = i64::MAX as u64;
