//! Writes actions to files of the log.
//!
//! - [`body`]: the JSON lines of a commit; [`compaction`]: "Log Compaction Files"; [`relocate`]: the actions
//!   of a clone
//! - [`checkpoint_writer`], [`checkpoint_v2`]: checkpoints of both forms; [`checkpoint_columns`]: their
//!   columns

pub mod body;
pub mod checkpoint_columns;
pub mod checkpoint_v2;
pub mod checkpoint_writer;
pub mod compaction;
pub mod relocate;
