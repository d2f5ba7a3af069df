//! Files of the log -> segments of actions.
//!
//! - [`line`], [`commit`]: "Delta Log Entries": JSON lines -> Arrow, on several threads; [`once`]: each file once in a commit;
//!   [`compacted`]: names of "Log Compaction Files", which are read as commits are
//! - [`checkpoint`], [`checkpoint_file`], [`checkpoint_rows`]: "Checkpoints" -> Arrow; [`sidecar`]: "Sidecar Files"; [`volume`]: the limit
//!   of what a checkpoint may be once it is decoded
//! - [`segment`]: actions of one kind, with the [`keys`] (path, vector) of their files; [`slice`], [`lines`]: actions that stay in their
//!   checkpoint or commit until their columns are needed
//! - [`definition`]: protocol and metadata alone; [`hint`]: the checksum of `_last_checkpoint`

pub mod checkpoint;
pub mod checkpoint_file;
pub mod checkpoint_rows;
pub mod commit;
pub mod compacted;
pub mod definition;
pub mod hint;
pub mod keys;
pub mod line;
pub mod lines;
pub mod once;
pub mod segment;
pub mod sidecar;
pub mod slice;
pub mod volume;
