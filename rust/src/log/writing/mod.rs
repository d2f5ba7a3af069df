//! Actions -> files of the log.
//!
//! - [`body`]: the JSON lines of a commit; [`compaction`]: "Log Compaction Files"; [`relocate`]: the adds of a clone
//! - [`checkpoint_writer`], [`checkpoint_v2`]: checkpoints in the two forms, with the [`checkpoint_columns`] of both

pub mod body;
pub mod checkpoint_columns;
pub mod checkpoint_v2;
pub mod checkpoint_writer;
pub mod compaction;
pub mod relocate;
