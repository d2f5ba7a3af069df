//! The log as Arrow: commits, checkpoints, and the live files of a version.
//!
//! - [`schema`]: the columns of `add` and `remove`, in PROTOCOL.md's own names
//! - [`line`], [`commit`]: "Delta Log Entries": JSON lines -> Arrow, on several threads; [`body`]: Arrow -> JSON lines
//!   [`compaction`]: "Log Compaction Files"
//! - [`checkpoint`], [`checkpoint_rows`]: "Checkpoints" -> Arrow; [`volume`], [`page_headers`]: what they may come to
//! - [`checkpoint_writer`], [`checkpoint_v2`]: the way back, in the two forms, with the
//!   [`checkpoint_columns`] of both; [`sidecar`]: "Sidecar Files"; [`json_text`]: typed columns back as JSON
//! - [`definition`]: protocol and metadata alone
//! - [`index`], [`snapshot`]: "Action Reconciliation": segments of actions, what of them lives, the key (path, vector)
//! - [`statistics`], [`skipping`]: "Per-file Statistics" as typed columns, for those that a predicate names
//! - [`actions`]: tables of actions made from others; [`listing`]: files as users see them

pub mod actions;
pub mod body;
pub mod checkpoint;
mod checkpoint_columns;
pub mod checkpoint_rows;
pub mod checkpoint_v2;
pub mod checkpoint_writer;
pub mod commit;
pub mod compaction;
pub mod definition;
pub mod index;
pub mod json_text;
pub mod line;
pub mod listing;
pub mod page_headers;
pub mod schema;
pub mod sidecar;
pub mod skipping;
pub mod snapshot;
pub mod statistics;
pub mod volume;
