//! PROTOCOL.md, "Delta Log Entries", "Checkpoints", "Action Reconciliation".
//!
//! - [`statistics`]: what the log knows of each file's rows, and which files it lets a reader skip

pub mod statistics;
