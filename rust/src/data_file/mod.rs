//! Reads and writes the Parquet files of a table: PROTOCOL.md, "Data Files" and "Per-file Statistics".
//!
//! Reading: [`files`] (the files of a scan) -> [`open`] (footer, vector, partition values) -> [`prune`] and
//! [`row_selection`] (which rows) -> [`decode`] ([`source`]: bytes, [`chunk`]: decoded columns of some rows,
//! [`projection`] and [`cast`]: the table's columns, [`constant`]: values of a whole file, [`encoded`]: types
//! close to the file's bytes, [`keep`]: without deleted rows) -> [`queue`] -> [`reader`]. [`budget`]: limits
//! the memory.
//!
//! Writing: [`conform`] (any data -> the table's columns) -> [`writer`] ([`partition`]: which file;
//! [`layout`]: its path; [`options`]) -> [`output`] (a file) and [`encode`] (its row groups, on threads;
//! [`physical`]: names in files, [`shapes`]: geographic types) -> [`statistics`] -> [`adds`] (rows of `add`).
//! [`measure`]: statistics of existing files.
//!
//! With another engine: [`hand_over`] (what the engine's reader needs for each file), [`adopt`] (makes `add`
//! rows for the files that it wrote), [`survey`] (files of any writer that become a table), [`plain_files`]
//! (files that the engine's reader reads alone).

pub mod adds;
pub mod adopt;
pub mod budget;
pub mod cast;
mod chunk;
pub mod compress;
pub mod conform;
mod constant;
pub mod decode;
pub mod encode;
pub mod encoded;
pub mod files;
pub mod hand_over;
pub mod keep;
pub mod layout;
pub mod map_keys;
pub mod measure;
pub mod open;
pub mod options;
pub mod output;
pub mod partition;
pub mod physical;
pub mod plain_files;
pub mod projection;
pub mod prune;
pub mod queue;
pub mod reader;
pub mod row_selection;
pub mod shapes;
pub mod source;
pub mod statistics;
pub mod survey;
pub mod writer;
