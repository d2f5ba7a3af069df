//! Which files may hold a matching row: by partition values and by "Per-file Statistics".
//!
//! - [`selection`]: the files that a predicate leaves
//! - [`statistics`]: statistics as JSON -> typed columns, for those that a predicate names; [`typed_statistics`]: as checkpoints have them

pub mod selection;
pub mod statistics;
pub mod typed_statistics;
