//! PROTOCOL.md, "Data Files" and "Per-file Statistics": reading and writing the Parquet files of a table.
//!
//! Reading: [`files`] (what to read) -> [`open`] (footer, vector, partition values) -> [`prune`] and [`row_selection`] (which rows)
//! -> [`decode`] ([`source`]: bytes, [`projection`] and [`cast`]: the table's columns, [`constant`]: values of a whole file,
//! [`encoded`]: nearer to the bytes, [`keep`]: without deleted rows) -> [`queue`] -> [`reader`].
//! [`budget`]: how much memory that may take.
//!
//! Writing: [`conform`] (any data -> the table's columns) -> [`writer`] ([`partition`]: which file; [`layout`]: where it lies;
//! [`options`]) -> [`output`] (a file) and [`encode`] (its row groups, on threads; [`physical`]: names in files, [`shapes`]: types of shapes) ->
//! [`statistics`] -> [`adds`] (rows of `add`). [`measure`]: statistics of files that are there already.
//!
//! Together with another engine: [`hand_over`] (what its reader must know of each file), [`adopt`] (what it wrote -> `add`), [`survey`]
//! (files of anybody that become a table).

pub mod adds;
pub mod adopt;
pub mod budget;
pub mod cast;
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
