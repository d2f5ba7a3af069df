//! Parses files of the log into segments of actions.
//!
//! - [`line`], [`commit`]: parse "Delta Log Entries" from JSON lines to Arrow, on several threads; [`once`]:
//!   checks that a commit names each file once; [`compacted`]: names of "Log Compaction Files", read like
//!   commits
//! - [`checkpoint`], [`checkpoint_file`], [`checkpoint_rows`]: read "Checkpoints"; [`sidecar`]: "Sidecar
//!   Files"; [`volume`]: limits their memory
//! - [`segment`]: actions of one kind, with the [`keys`] (path, vector) of their files; [`slice`], [`lines`]:
//!   actions that stay in their checkpoint or commit until they are needed
//! - [`definition`]: reads protocol and metadata alone; [`hint`]: the checksum of `_last_checkpoint`

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
