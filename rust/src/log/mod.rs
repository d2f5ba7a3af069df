//! The log as Arrow: commits, checkpoints, and the live files of a version.
//!
//! - [`schema`]: the columns of `add` and `remove`, in PROTOCOL.md's own names
//! - [`line`], [`commit`]: "Delta Log Entries": JSON lines -> Arrow, on several threads; [`body`]: Arrow -> JSON lines
//!   [`compaction`]: "Log Compaction Files"; [`once`]: what a commit may say of a file
//! - [`checkpoint`], [`checkpoint_file`], [`checkpoint_rows`]: "Checkpoints" -> Arrow; [`volume`]: what they may come to
//! - [`checkpoint_writer`], [`checkpoint_v2`]: the way back, in the two forms, with the
//!   [`checkpoint_columns`] of both; [`sidecar`]: "Sidecar Files"; [`json_text`]: typed columns back as JSON
//! - [`definition`]: protocol and metadata alone
//! - [`snapshot`], [`files`], [`replay`]: "Action Reconciliation": [`segment`]s of actions, what of them lives, the [`keys`] (path, vector);
//!   [`slice`], [`lines`]: those that stay in their checkpoint or commit until they are asked for
//!   [`totals`]: what version checksums say of them besides
//! - [`statistics`], [`skipping`]: "Per-file Statistics" as typed columns, for those that a predicate names; [`typed_statistics`]: as checkpoints have them
//! - [`changes`]: the change data feed: files, and rows of files, that commits inserted and deleted
//! - [`actions`]: tables of actions made from others; [`relocate`]: those of a clone; [`listing`]: files as users see them

pub mod actions;
pub mod body;
pub mod changes;
pub mod checkpoint;
mod checkpoint_columns;
pub mod checkpoint_file;
pub mod checkpoint_rows;
pub mod checkpoint_v2;
pub mod checkpoint_writer;
pub mod commit;
pub mod compaction;
pub mod definition;
pub mod files;
pub mod hint;
pub mod json_text;
pub mod keys;
pub mod line;
pub mod lines;
pub mod listing;
pub mod once;
pub mod relocate;
pub mod replay;
pub mod schema;
pub mod segment;
pub mod sidecar;
pub mod skipping;
pub mod slice;
pub mod snapshot;
pub mod statistics;
pub mod totals;
pub mod typed_statistics;
pub mod volume;
