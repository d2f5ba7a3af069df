//! Reads and writes the log as Arrow: commits, checkpoints, and the live files of a version.
//!
//! - [`schema`]: the columns of `add` and `remove`, with the names of PROTOCOL.md
//! - [`line`], [`commit`]: parse "Delta Log Entries" from JSON lines to Arrow, on several threads; [`body`]:
//!   writes them; [`compaction`]: "Log Compaction Files"; [`once`]: checks that a commit names each file once
//! - [`checkpoint`], [`checkpoint_file`], [`checkpoint_rows`]: read "Checkpoints"; [`volume`]: limits their
//!   memory
//! - [`checkpoint_writer`], [`checkpoint_v2`]: write checkpoints of both forms; [`checkpoint_columns`]: their
//!   columns; [`sidecar`]: "Sidecar Files"; [`json_text`]: writes typed columns as JSON
//! - [`definition`]: reads protocol and metadata alone
//! - [`snapshot`], [`files`], [`replay`]: "Action Reconciliation", on [`segment`]s of actions and the
//!   [`keys`] of files; [`slice`], [`lines`]: actions that stay in their checkpoint or commit until they are
//!   needed; [`totals`]: distributions for version checksums
//! - [`statistics`], [`skipping`]: "Per-file Statistics" as typed columns, for the columns of a predicate;
//!   [`typed_statistics`]: those of checkpoints
//! - [`changes`]: the change data feed: the files, and rows of files, that commits inserted and deleted
//! - [`actions`]: makes tables of actions from others; [`relocate`]: the actions of a clone; [`listing`]:
//!   files as users see them

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
