//! Deletion vectors: sets of rows of one data file. PROTOCOL.md, "Deletion Vectors" and "Deletion Vector Format".
//!
//! - [`rows`]: the set itself: algebra, runs, masks
//! - [`arrays`]: Arrow arrays -> set, batches without deleted rows
//! - [`encoding`]: set <-> bytes (64-bit roaring, portable), hostile bytes refused by arithmetic
//! - [`file`]: bytes <-> `.bin` file (the frame and its CRC-32)
//! - [`descriptor`]: the `deletionVector` field of a log action: where the bytes are, and reading them
//! - [`columns`]: the `deletionVector` column of action tables <-> descriptors
//! - [`update`]: rows to delete -> merged vectors, and the actions that put them in place; with [`pack`] (writing many to one file),
//!   [`wide_statistics`] and [`footer`] (what the statistics of a file with a vector say)
//! - [`rebase`]: what another commit did to the rows that a command has found
//! - [`row_ids`]: rows of many files, gathered from pairs
//! - [`values`]: Z85 and vectors as values of columns
//! - [`limit`]: how large a vector may be

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

/// Index of a row in its data file, counted from the file's first row, whatever of the file was pruned or skipped.
pub type RowIndex = u64;

/// Rows of a file end here: a row index is a signed 64-bit number in Parquet and in the log.
pub const MAX_ROW: RowIndex = i64::MAX as u64;
