//! The log as Arrow: commits, checkpoints, and the live files of a version.
//!
//! - [`schema`]: the columns of `add` and `remove`, in PROTOCOL.md's own names
//! - [`line`], [`commit`]: "Delta Log Entries": JSON lines -> Arrow, on several threads; [`body`]: Arrow -> JSON lines
//! - [`checkpoint`], [`checkpoint_writer`]: "Checkpoints"; [`json_text`]: typed columns back as JSON
//! - [`index`], [`snapshot`]: "Action Reconciliation": segments of actions, what of them lives, the key (path, vector)
//! - [`statistics`], [`skipping`]: "Per-file Statistics" as typed columns, for those that a predicate names
//! - [`actions`]: tables of actions made from others; [`listing`]: files as users see them

pub mod actions;
pub mod body;
pub mod checkpoint;
pub mod checkpoint_writer;
pub mod commit;
pub mod index;
pub mod json_text;
pub mod line;
pub mod listing;
pub mod schema;
pub mod skipping;
pub mod snapshot;
pub mod statistics;
