//! PROTOCOL.md, "Data Files" and "Per-file Statistics": reading and writing the Parquet files of a table.
//!
//! Reading: [`files`] (what to read) -> [`open`] (footer, vector, partition values) -> [`prune`] and [`row_selection`] (which rows)
//! -> [`decode`] ([`source`]: bytes, [`projection`] and [`cast`]: the table's columns) -> [`queue`] -> [`reader`].

pub mod cast;
pub mod decode;
pub mod files;
pub mod open;
pub mod projection;
pub mod prune;
pub mod queue;
pub mod reader;
pub mod row_selection;
pub mod source;
