//! The log as Arrow: commits, checkpoints, and the live files of a version.
//!
//! - [`schema`]: the columns of `add` and `remove`, in PROTOCOL.md's own names; [`json_text`]: typed columns back as JSON
//! - [`reading`]: commits and checkpoints -> segments of actions
//! - [`skipping`]: which files may hold a matching row
//! - [`state`]: what a version consists of, and what its commits changed
//! - [`writing`]: commits, checkpoints and compacted files
//!
//! Each room uses those above it in this list, and none below it.

pub mod json_text;
pub mod reading;
pub mod schema;
pub mod skipping;
pub mod state;
pub mod writing;
