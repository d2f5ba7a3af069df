//! Reads and writes the log as Arrow: commits, checkpoints, and the live files of a version.
//!
//! - [`schema`]: the columns of `add` and `remove`, with the names of PROTOCOL.md; [`json_text`]: writes
//!   typed columns as JSON
//! - [`reading`]: parses commits and checkpoints into segments of actions
//! - [`skipping`]: selects the files that may hold a matching row
//! - [`state`]: what a version consists of, and what its commits changed
//! - [`writing`]: writes commits, checkpoints and compacted files
//!
//! Each module uses only modules above it in this list.

pub mod json_text;
pub mod reading;
pub mod schema;
pub mod skipping;
pub mod state;
#[cfg(test)]
mod tests;
pub mod writing;
